//! Virtual devices: where elements sit in a batch, what is refused, and which entries of a sheet run.

use crate::shapes;
use mmaprobe::device::simulated::{Misfit, Simulated, check_fit};
use mmaprobe::device::{
    Batch, Device, Fault, Identity, Instruction, Provenance, element, set_element, sheet::simulate,
};
use mmaprobe::model::tree::Scale;
use mmaprobe::model::{Executor, Format, Model, format};
use mmaprobe::sheet::schema::{
    DeviceFacts, Entry, Formats, ModeOf, SCHEMA, ScaleFacts, Shape, Sheet, Status,
};

fn identity() -> Identity {
    Identity {
        name: "test".into(),
        description: "models for tests".into(),
        properties: Vec::new(),
        provenance: Provenance::Simulated,
        absent: Vec::new(),
    }
}

fn instruction(name: &str, (m, n): (usize, usize), model: &Model) -> Instruction {
    Instruction {
        name: name.into(),
        m,
        n,
        k: model.k,
        a: model.a.format,
        b: model.b.format,
        c: model.c.format,
        d: model.d,
        scale: model.scale,
        mode_of: None,
    }
}

/// A batch in which all elements differ.
fn random(instruction: &Instruction, count: usize) -> Batch {
    let mut batch = Batch::zeros(instruction, count);
    let mut state = 1u64;
    for array in [&mut batch.a, &mut batch.b, &mut batch.c, &mut batch.sa, &mut batch.sb] {
        for byte in array.iter_mut() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *byte = (state >> 56) as u8;
        }
    }
    batch
}

#[test]
fn small_integers_multiply_as_matrices() {
    let model = Model::chain_of_fma(format::FP32, format::FP32, 3);
    let fma = instruction("fma", (2, 4), &model);
    let device = Simulated::new(identity(), vec![(fma.clone(), model)]).unwrap();
    let mut batch = Batch::zeros(&fma, 2);
    // Row i of A is i + 1 everywhere but for its own column; B holds its place; C tells problems apart.
    let a = |p: usize, i: usize, k: usize| (10 * p + i + 1 + k * k) as f32;
    let b = |p: usize, k: usize, j: usize| (p + 7 * k + j) as f32;
    let c = |p: usize, i: usize, j: usize| (1000 * p + 100 * i + j) as f32;
    let bits = |value: f32| u64::from(value.to_bits());
    for p in 0..2 {
        for i in 0..2 {
            for k in 0..3 {
                set_element(&mut batch.a, &format::FP32, p * 6 + i * 3 + k, bits(a(p, i, k)));
            }
            for j in 0..4 {
                set_element(&mut batch.c, &format::FP32, p * 8 + i * 4 + j, bits(c(p, i, j)));
            }
        }
        for k in 0..3 {
            for j in 0..4 {
                set_element(&mut batch.b, &format::FP32, p * 12 + j * 3 + k, bits(b(p, k, j)));
            }
        }
    }
    let d = device.run(&fma, &batch).unwrap();
    for p in 0..2 {
        for i in 0..2 {
            for j in 0..4 {
                let expected = c(p, i, j) + (0..3).map(|k| a(p, i, k) * b(p, k, j)).sum::<f32>();
                assert_eq!(element(&d, &format::FP32, p * 8 + i * 4 + j), bits(expected));
            }
        }
    }
}

#[test]
fn scales_go_with_their_row_and_column() {
    let model = shapes::scaled(32, 16);
    let scaled = instruction("scaled", (3, 2), &model);
    let device = Simulated::new(identity(), vec![(scaled.clone(), model.clone())]).unwrap();
    let count = 5;
    let batch = random(&scaled, count);
    let d = device.run(&scaled, &batch).unwrap();
    let mut executor = Executor::new(&model).unwrap();
    // Byte by byte, from the protocol's layout: one byte an element but for c and d.
    for p in 0..count {
        for i in 0..3 {
            for j in 0..2 {
                let a: Vec<u64> = (0..32).map(|k| batch.a[p * 96 + i * 32 + k].into()).collect();
                let b: Vec<u64> = (0..32).map(|k| batch.b[p * 64 + j * 32 + k].into()).collect();
                let sa: Vec<u64> = (0..2).map(|g| batch.sa[p * 6 + i * 2 + g].into()).collect();
                let sb: Vec<u64> = (0..2).map(|g| batch.sb[p * 4 + j * 2 + g].into()).collect();
                let place = 4 * (p * 6 + i * 2 + j);
                let word = |array: &[u8]| u32::from_le_bytes(array[place..place + 4].try_into().unwrap());
                let expected = executor.dot_add(&a, &b, word(&batch.c).into(), &sa, &sb);
                assert_eq!(u64::from(word(&d)), expected);
            }
        }
    }
}

#[test]
fn threads_share_a_device() {
    let model = shapes::lanes(32);
    let lanes = instruction("lanes", (16, 16), &model);
    let device = Simulated::new(identity(), vec![(lanes.clone(), model)]).unwrap();
    let batch = random(&lanes, 4);
    let expected = device.run(&lanes, &batch).unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| device.run(&lanes, &batch).unwrap())).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), expected);
        }
    });
}

#[test]
fn what_does_not_fit_is_refused() {
    let model = shapes::flat(8);
    let good = instruction("flat", (2, 2), &model);
    let misfit = |change: &dyn Fn(&mut Instruction)| {
        let mut instruction = good.clone();
        change(&mut instruction);
        check_fit(&instruction, Some(&model)).unwrap_err()
    };
    assert_eq!(misfit(&|i| i.k = 4), Misfit::Products { found: 8, expected: 4 });
    assert_eq!(misfit(&|i| i.m = 0), Misfit::Shape { m: 0, n: 2, k: 8 });
    assert_eq!(
        misfit(&|i| i.a = format::E4M3),
        Misfit::Operand { operand: 'a', found: "bf16", expected: "e4m3" }
    );
    assert_eq!(misfit(&|i| i.d = format::FP16), Misfit::Result { found: "fp32", expected: "fp16" });
    assert_eq!(
        misfit(&|i| i.scale = Some(Scale { format: format::UE8M0, block: 3 })),
        Misfit::Blocks { k: 8, block: 3 }
    );
    let twice = vec![(good.clone(), model.clone()), (good.clone(), model.clone())];
    assert!(matches!(Simulated::new(identity(), twice).unwrap_err().fault, Fault::Description(_)));

    let device = Simulated::new(identity(), vec![(good.clone(), model)]).unwrap();
    let mut batch = Batch::zeros(&good, 1);
    batch.a.pop();
    assert!(matches!(device.run(&good, &batch).unwrap_err().fault, Fault::Refused(_)));
    let other = Instruction { name: "other".into(), ..good };
    assert!(matches!(device.run(&other, &Batch::default()).unwrap_err().fault, Fault::Refused(_)));
}

fn entry(name: &str, status: Status, model: Option<&Model>, mode_of: Option<&str>) -> Entry {
    let factors: Format = format::BF16;
    Entry {
        name: name.into(),
        mode_of: mode_of.map(|of| ModeOf { instruction: of.into(), mode: "rounds toward zero".into() }),
        shape: Shape { m: 2, n: 2, k: 8 },
        formats: Formats { a: factors, b: factors, c: format::FP32, d: format::FP32 },
        scale: model.and_then(|model| model.scale).map(ScaleFacts::from),
        status,
        algorithm: "unnamed".into(),
        summary: String::new(),
        arithmetic: model.map(Into::into),
        modes: Vec::new(),
        evidence: Vec::new(),
        equivalent: Vec::new(),
        ambiguous: Vec::new(),
        disputed: Vec::new(),
        counterexample: None,
        validation: None,
        cost: None,
        notes: Vec::new(),
    }
}

#[test]
fn a_sheet_runs_what_it_stands_for() {
    let (flat, lanes) = (shapes::flat(8), shapes::lanes(8));
    let sheet = Sheet {
        schema: SCHEMA.into(),
        tool: "mmaprobe".into(),
        device: DeviceFacts { name: "x".into(), description: "y".into(), properties: Default::default() },
        provenance: Provenance::Measured,
        date: None,
        absent: Vec::new(),
        instructions: vec![
            entry("refuted", Status::Refuted, Some(&flat), None),
            entry("mode", Status::ModeWithoutEffect, None, Some("lanes")),
            entry("lanes", Status::Characterized, Some(&lanes), None),
            entry("noisy", Status::NotDeterministic, None, None),
            entry("flat", Status::Ambiguous, Some(&flat), None),
            entry("mode of refuted", Status::ModeWithoutEffect, None, Some("refuted")),
        ],
    };
    let path = std::env::temp_dir().join(format!("mmaprobe-sheet-{}.yaml", std::process::id()));
    std::fs::write(&path, mmaprobe::sheet::write(&sheet)).unwrap();
    let (device, read) = mmaprobe::device::sheet::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read, sheet);
    assert_eq!(device.identity().provenance, Provenance::Simulated);
    let names: Vec<&str> = device.instructions().iter().map(|own| own.name.as_str()).collect();
    assert_eq!(names, ["mode", "lanes", "flat"]);
    assert_eq!(device.model("mode"), device.model("lanes"));
    let same = simulate(&sheet, "again".into()).unwrap();
    let flat = &device.instructions()[2];
    let batch = random(flat, 3);
    assert_eq!(device.run(flat, &batch), same.run(flat, &batch));
}
