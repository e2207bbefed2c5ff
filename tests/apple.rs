//! Apple's matrix unit in the tool: `sim:m1`, executed on the unit as a machine, against its sheet,
//! executed as sum trees; and what inference finds when it is only asked.

use std::process::{Command, Output};

use mmaprobe::catalog::Catalog;
use mmaprobe::device::sheet::simulate;
use mmaprobe::device::sim::Sim;
use mmaprobe::device::{Batch, Device, apple};
use mmaprobe::sheet::schema::Sheet;
use mmaprobe::sheet::{Status, yaml};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

fn mmaprobe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mmaprobe")).args(arguments).output().unwrap()
}

fn published() -> Sheet {
    let catalog = Catalog::embedded();
    catalog.find("m1").unwrap().architecture.sheet().unwrap().unwrap()
}

/// Two executions that share formats and exact terms, and neither places, products nor sums.
#[test]
fn the_unit_computes_what_the_sheet_says() {
    let catalog = Catalog::embedded();
    let unit = Sim::open("m1", &catalog).unwrap();
    let sheet = simulate(&published(), "sheet".to_string()).unwrap();
    assert_eq!(unit.instructions(), sheet.instructions());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for instruction in unit.instructions() {
        let architecture = catalog.find("m1").unwrap().architecture;
        assert!(apple::form(architecture, instruction).is_some(), "{}", instruction.name);
        let elements = instruction.m * instruction.n;
        for count in [1, 7, 100_000 / elements] {
            let mut batch = Batch::zeros(instruction, count);
            for array in [&mut batch.a, &mut batch.b, &mut batch.c] {
                rng.fill_bytes(array);
                // A third of all bytes from where exponents meet, and zeros, infinities and NaNs come up.
                for byte in array.iter_mut() {
                    match rng.next_u32() % 9 {
                        0 => *byte = 0x3c,
                        1 => *byte = 0,
                        2 => *byte = 0x7c,
                        _ => {}
                    }
                }
            }
            let [unit, sheet] = [unit.run(instruction, &batch), sheet.run(instruction, &batch)];
            assert!(unit.unwrap() == sheet.unwrap(), "{} of {count}", instruction.name);
        }
    }
}

#[test]
fn what_the_unit_does_not_have_is_refused() {
    let sim = Sim::open("m1", &Catalog::embedded()).unwrap();
    let fma = sim.instruction("fma32.matrix.f16.f32.f32").unwrap();
    let short = Batch { count: 2, ..Batch::zeros(&fma, 1) };
    assert!(sim.run(&fma, &short).unwrap_err().to_string().contains("wrong lengths"));
    let wider = mmaprobe::device::Instruction { n: 32, ..fma };
    assert!(sim.run(&wider, &Batch::zeros(&wider, 1)).is_err());
    assert!(sim.instruction("fma32.matrix.f64.f64.f64").is_err());
}

/// The arithmetic that inference finds is the published one, and it has its name.
#[test]
fn characterizing_it_finds_what_is_published() {
    let output = mmaprobe(&["characterize", "--device", "sim:m1", "--validate", "3000"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let text = String::from_utf8(output.stdout).unwrap();
    let found = yaml::parse(&text, "stdout".as_ref()).unwrap();
    let published = published();
    assert_eq!(found.instructions.len(), 13);
    for (found, published) in found.instructions.iter().zip(&published.instructions) {
        assert_eq!(found.name, published.name);
        assert_eq!(found.status, Status::Characterized, "{}", found.name);
        assert_eq!(found.algorithm, "SFMA", "{}", found.name);
        assert_eq!(found.arithmetic, published.arithmetic, "{}", found.name);
    }
}

#[test]
fn explain_fits_80_columns_and_refuses_what_is_no_operand() {
    for arguments in [&["0xffffffffffffffff"][..], &["0", "--instruction", "fma16"], &["0x8000000000000000"]]
    {
        let output = mmaprobe(&[&["explain"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("X offset") && text.starts_with("operand 0x"), "{text}");
    }
    for (arguments, says) in [
        (&["0xfffffffffffffffff"][..], "more than 64 bits"),
        (&["-1"], "no decimal number"),
        (&["0", "--instruction", "fma8"], "expected fma16, fma32, fma64"),
        (&["0", "--instruction", "0x00201220"], "instruction 17 of the matrix unit is not modelled"),
    ] {
        let output = mmaprobe(&[&["explain"], arguments].concat());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
    }
}
