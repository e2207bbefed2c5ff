//! The catalogue against the paper's tables, its sheets, its virtual devices and its files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mmaprobe::catalog::{Architecture, Catalog, CatalogError, Family, coverage, file, published};
use mmaprobe::device::sim::{Sim, SimError};
use mmaprobe::device::{Batch, Device, Instruction, element, set_element};
use mmaprobe::model::{Executor, Model};
use mmaprobe::report::committed;
use mmaprobe::sheet::{self, Status};

/// The columns of Table III, and of Table IV.
const NVIDIA: [&str; 7] = ["volta", "turing", "ampere", "ada", "hopper", "blackwell", "rtx_blackwell"];
const AMD: [&str; 2] = ["cdna2", "cdna3"];

const F8: [&str; 2] = ["e4m3", "e5m2"];
const F8F6F4: [&str; 5] = ["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"];

/// The rows of Table III: what the machine calls the instruction, ours, how many of its type pairings
/// there are, and the algorithm on each architecture.
///
/// The transcription at hand has lost cells that span rows: which rows have which algorithm was put
/// together again with sections IV.A, C, D and E.
fn table_iii() -> Vec<(&'static str, Vec<String>, [&'static str; 7])> {
    const FDA: &str = "FDA(F=25)";
    let mma = |shape: &str, d: &str, ab: &str, c: &str| vec![format!("mma.{shape}.{d}.{ab}.{ab}.{c}")];
    let pairs = |types: &[&str], name: &dyn Fn(&str, &str) -> String| -> Vec<String> {
        types.iter().flat_map(|a| types.iter().map(move |b| name(a, b))).collect()
    };
    let old = ["FDA(F=23)", "FDA(F=24)", "-", "-", "-", "-", "-"];
    let small = ["-", "FDA(F=24)", "FDA(F=24)", "FDA(F=24)", FDA, FDA, FDA];
    let ampere = ["-", "-", "FDA(F=24)", "FDA(F=24)", FDA, FDA, FDA];
    let chained = ["-", "-", "CoFDA(F=24, chain=2)", "CoFDA(F=24, chain=2)", FDA, FDA, FDA];
    let double = ["-", "-", "SFMA", "SFMA", "SFMA", "SFMA", "SFMA"];
    let hopper_double = ["-", "-", "-", "-", "SFMA", "-", "-"];
    let wgmma = ["-", "-", "-", "-", FDA, "-", "-"];
    let wgmma8 = ["-", "-", "-", "-", "FDA(F=13)", "-", "-"];
    let qmma32 = ["-", "-", "-", "CoFDA(F=13, chain=2)", "-", "-", FDA];
    let qmma16 = ["-", "-", "-", "FDA(F=13)", "-", "-", FDA];
    let rtx = ["-", "-", "-", "-", "-", "-", FDA];
    let rtx4 = ["-", "-", "-", "-", "-", "-", "GDFS(G=16, F=35)"];
    let utc = ["-", "-", "-", "-", "-", FDA, "-"];
    let utc4 = ["-", "-", "-", "-", "-", "GDFS(G=16, F=35)", "-"];
    let scaled =
        |shape: &'static str| move |a: &str, b: &str| format!("{shape}.f32.{a}.{b}.f32.block32.ue8m0");
    let mut rows = vec![
        ("HMMA.884.F32.F32", mma("m8n8k4", "f32", "f16", "f32"), old),
        ("HMMA.884.F32.F16", mma("m8n8k4", "f32", "f16", "f16"), old),
        ("HMMA.884.F16.F16", mma("m8n8k4", "f16", "f16", "f16"), old),
        ("HMMA.1688.F32", mma("m16n8k8", "f32", "f16", "f32"), small),
        ("HMMA.1688.F16", mma("m16n8k8", "f16", "f16", "f16"), small),
        ("DMMA.884", mma("m8n8k4", "f64", "f64", "f64"), double),
        ("HMMA.1688.F32.TF32", mma("m16n8k8", "f32", "tf32", "f32"), chained),
        ("HMMA.16816.F32", mma("m16n8k16", "f32", "f16", "f32"), chained),
        ("HMMA.16816.F16", mma("m16n8k16", "f16", "f16", "f16"), chained),
        ("HMMA.16816.F32.BF16", mma("m16n8k16", "f32", "bf16", "f32"), chained),
        ("HMMA.1684.F32.TF32", mma("m16n8k4", "f32", "tf32", "f32"), ampere),
        ("HMMA.1688.F32.BF16", mma("m16n8k8", "f32", "bf16", "f32"), ampere),
        ("DMMA.16x8x16", mma("m16n8k16", "f64", "f64", "f64"), hopper_double),
        ("DMMA.16x8x8", mma("m16n8k8", "f64", "f64", "f64"), hopper_double),
        ("DMMA.16x8x4", mma("m16n8k4", "f64", "f64", "f64"), hopper_double),
        ("HGMMA.64x8x8.F32.TF32", vec!["wgmma.m64n8k8.f32.tf32.tf32".into()], wgmma),
        ("HGMMA.64x8x16.F32", vec!["wgmma.m64n8k16.f32.f16.f16".into()], wgmma),
        ("HGMMA.64x8x16.F16", vec!["wgmma.m64n8k16.f16.f16.f16".into()], wgmma),
        ("HGMMA.64x8x16.F32.BF16", vec!["wgmma.m64n8k16.f32.bf16.bf16".into()], wgmma),
        ("QMMA.SF.16832.F32", pairs(&F8F6F4, &scaled("mma.m16n8k32")), rtx),
        ("OMMA.SF.16864.F32.E2M1.E2M1.E8", pairs(&["e2m1"], &scaled("mma.m16n8k64")), rtx4),
        (
            "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X",
            vec!["mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3".into()],
            rtx4,
        ),
        ("UTCOMMA", vec!["tcgen05.m128n8k64.f32.e2m1.e2m1.block32.ue8m0".into()], utc4),
        (
            "UTCOMMA.4X",
            ["ue8m0", "ue4m3"].map(|s| format!("tcgen05.m128n8k64.f32.e2m1.e2m1.block16.{s}")).to_vec(),
            utc4,
        ),
        (
            "UTCHMMA",
            [("8", "f32", "tf32"), ("16", "f32", "f16"), ("16", "f32", "bf16"), ("16", "f16", "f16")]
                .map(|(k, d, ab)| format!("tcgen05.m64n8k{k}.{d}.{ab}.{ab}"))
                .to_vec(),
            utc,
        ),
        ("UTCQMMA", pairs(&F8F6F4, &|a, b| format!("tcgen05.m128n8k32.f32.{a}.{b}.block32.ue8m0")), utc),
    ];
    for d in ["f32", "f16"] {
        let at = |f32: &'static str, f16: &'static str| if d == "f32" { f32 } else { f16 };
        rows.extend([
            (
                at("QMMA.16832.F32", "QMMA.16832.F16"),
                pairs(&F8, &|a, b| format!("mma.m16n8k32.{d}.{a}.{b}.{d}")),
                qmma32,
            ),
            (
                at("QMMA.16816.F32", "QMMA.16816.F16"),
                pairs(&F8, &|a, b| format!("mma.m16n8k16.{d}.{a}.{b}.{d}")),
                qmma16,
            ),
            (
                at("QGMMA.64x8x32.F32", "QGMMA.64x8x32.F16"),
                pairs(&F8, &|a, b| format!("wgmma.m64n8k32.{d}.{a}.{b}")),
                wgmma8,
            ),
            (
                at("QMMA.16832.F32", "QMMA.16832.F16"),
                pairs(&F8F6F4, &|a, b| format!("mma.m16n8k32.{d}.{a}.{b}.{d}")),
                {
                    let mut others = rtx;
                    // What ada has of these is in the row above.
                    others[3] = "*";
                    others
                },
            ),
            ("UTCQMMA", pairs(&F8F6F4, &|a, b| format!("tcgen05.m64n8k32.{d}.{a}.{b}")), utc),
        ]);
    }
    rows
}

/// The rows of Table IV: names on CDNA2 and on CDNA3, and the algorithm on each.
fn table_iv() -> Vec<([&'static str; 2], [&'static str; 2])> {
    const FDRDA: &str = "FDRDA(F=24, F_dot=31, F_c=24)";
    const COFDRDA: &str = "CoFDRDA(F=24, F_dot=31, F_c=24, chain=2)";
    const GFDRDA: &str = "GFDRDA(F=24, F_dot=31, F_c=24, c_rz_below=25)";
    const COGFDRDA: &str = "CoGFDRDA(F=24, F_dot=31, F_c=24, c_rz_below=25, chain=2)";
    let sfma = ["SFMA", "SFMA"];
    let (four, chain4, two) = (["GPS(G=4)", FDRDA], ["GPS(G=4)", COFDRDA], ["GPS(G=2)", "-"]);
    vec![
        (["f64_16x16x4f64", "f64_16x16x4_f64"], sfma),
        (["f64_4x4x4f64", "f64_4x4x4_4b_f64"], sfma),
        (["f32_32x32x1f32", "f32_32x32x1_2b_f32"], sfma),
        (["f32_16x16x1f32", "f32_16x16x1_4b_f32"], sfma),
        (["f32_4x4x1f32", "f32_4x4x1_16b_f32"], sfma),
        (["f32_32x32x2f32", "f32_32x32x2_f32"], sfma),
        (["f32_16x16x4f32", "f32_16x16x4_f32"], sfma),
        (["f32_16x16x8_xf32", "f32_16x16x8_xf32"], ["-", COFDRDA]),
        (["f32_32x32x4_xf32", "f32_32x32x4_xf32"], ["-", FDRDA]),
        (["f32_32x32x4f16", "f32_32x32x4_2b_f16"], four),
        (["f32_16x16x4f16", "f32_16x16x4_4b_f16"], four),
        (["f32_4x4x4f16", "f32_4x4x4_16b_f16"], four),
        (["f32_32x32x8f16", "f32_32x32x8_f16"], four),
        (["f32_16x16x16f16", "f32_16x16x16_f16"], chain4),
        (["f32_32x32x2bf16", "f32_32x32x2bf16"], two),
        (["f32_16x16x2bf16", "f32_16x16x2bf16"], two),
        (["f32_4x4x2bf16", "f32_4x4x2bf16"], two),
        (["f32_32x32x4bf16", "f32_32x32x4bf16"], two),
        (["f32_16x16x8bf16", "f32_16x16x8bf16"], two),
        (["f32_32x32x4bf16_1k", "f32_32x32x4_2b_bf16"], four),
        (["f32_16x16x4bf16_1k", "f32_16x16x4_4b_bf16"], four),
        (["f32_4x4x4bf16_1k", "f32_4x4x4_16b_bf16"], four),
        (["f32_32x32x8bf16_1k", "f32_32x32x8_bf16"], four),
        (["f32_16x16x16bf16_1k", "f32_16x16x16_bf16"], chain4),
        (["f32_16x16x32_bf8_bf8"; 2], ["-", COGFDRDA]),
        (["f32_16x16x32_bf8_fp8"; 2], ["-", COGFDRDA]),
        (["f32_16x16x32_fp8_bf8"; 2], ["-", COGFDRDA]),
        (["f32_16x16x32_fp8_fp8"; 2], ["-", COGFDRDA]),
        (["f32_32x32x16_bf8_bf8"; 2], ["-", GFDRDA]),
        (["f32_32x32x16_bf8_fp8"; 2], ["-", GFDRDA]),
        (["f32_32x32x16_fp8_bf8"; 2], ["-", GFDRDA]),
        (["f32_32x32x16_fp8_fp8"; 2], ["-", GFDRDA]),
    ]
}

fn architecture<'c>(catalog: &'c Catalog, name: &str) -> &'c Architecture {
    catalog.architectures().iter().find(|other| other.name == name).unwrap()
}

fn family<'a>(architecture: &'a Architecture, name: &str) -> Option<&'a Family> {
    architecture.families.iter().find(|family| matches!(family.named(name), Some(Ok(_))))
}

/// Compares one cell of a table, and ticks off the instructions that it covers.
fn check_cell(
    architecture: &Architecture,
    names: &[String],
    cell: &str,
    isa: Option<&str>,
    seen: &mut Vec<String>,
) {
    for name in names {
        let found = family(architecture, name);
        if cell == "*" {
            continue;
        }
        if cell == "-" {
            assert!(found.is_none(), "{}: {name} is N/A", architecture.name);
            continue;
        }
        let found = found.unwrap_or_else(|| panic!("{}: {name} is missing", architecture.name));
        let published = found.published.as_ref().unwrap();
        assert_eq!(published.algorithm.to_string(), cell, "{}: {name}", architecture.name);
        if let Some(isa) = isa {
            let instruction = found.named(name).unwrap().unwrap();
            let own = found.isa(instruction.m, instruction.n);
            let double = isa == "DMMA.884" && own == "DMMA.8x8x4";
            assert!(own.starts_with(isa) || double, "{name}: {own} is no {isa}");
        }
        seen.push(found.pattern.clone());
    }
}

#[test]
fn tables_iii_and_iv_row_by_row() {
    let catalog = Catalog::embedded();
    let mut seen = Vec::new();
    for (column, name) in NVIDIA.iter().enumerate() {
        let architecture = architecture(&catalog, name);
        seen.clear();
        for (isa, names, cells) in table_iii() {
            check_cell(architecture, &names, cells[column], Some(isa), &mut seen);
        }
        let missing: Vec<&String> = architecture
            .families
            .iter()
            .map(|family| &family.pattern)
            .filter(|pattern| !seen.contains(pattern))
            .collect();
        assert!(missing.is_empty(), "{name} has what no row of Table III has: {missing:?}");
    }
    for (column, name) in AMD.iter().enumerate() {
        let architecture = architecture(&catalog, name);
        seen.clear();
        for (names, cells) in table_iv() {
            let name = format!("v_mfma_{}", names[column]);
            check_cell(architecture, &[name], cells[column], None, &mut seen);
        }
        assert_eq!(seen.len(), architecture.families.len(), "{name}");
    }
}

#[test]
fn counts() {
    let counts: Vec<(String, usize)> = Catalog::embedded()
        .architectures()
        .iter()
        .map(|architecture| (architecture.name.clone(), architecture.families.len()))
        .collect();
    let expected = [
        ("volta", 3),
        ("turing", 5),
        ("ampere", 9),
        ("ada", 25),
        ("hopper", 24),
        ("blackwell", 91),
        ("rtx_blackwell", 94),
        ("cdna1", 15),
        ("cdna2", 22),
        ("cdna3", 27),
        ("m1", 13),
        ("cdna4", 54),
    ];
    assert_eq!(counts, expected.map(|(name, count)| (name.to_string(), count)));
}

#[test]
fn blocks_formats_and_scales() {
    let catalog = Catalog::embedded();
    let find =
        |name: &str, instruction: &str| family(architecture(&catalog, name), instruction).unwrap().clone();
    assert_eq!(find("cdna3", "v_mfma_f32_4x4x4_16b_f16").blocks, 16);
    assert_eq!(find("cdna2", "v_mfma_f64_4x4x4f64").blocks, 4);
    assert_eq!(find("cdna1", "v_mfma_f32_32x32x1f32").blocks, 2);
    assert_eq!(find("volta", "mma.m8n8k4.f32.f16.f16.f16").types.c.name, "fp16");
    let mixed = find("cdna3", "v_mfma_f32_16x16x32_fp8_bf8");
    assert_eq!((mixed.types.a.name, mixed.types.b.name), ("e4m3fnuz", "e5m2fnuz"));
    let scaled = find("cdna4", "v_mfma_scale_f32_16x16x128_f8f6f4.fp8.fp4");
    assert_eq!((scaled.types.a.name, scaled.types.b.name), ("e4m3", "e2m1"));
    assert_eq!(scaled.types.scale.unwrap().block, 32);
    assert_eq!(scaled.isa, "v_mfma_scale_f32_16x16x128_f8f6f4");
    assert_eq!(find("hopper", "wgmma.m64n256k16.f32.bf16.bf16").isa(64, 256), "HGMMA.64x256x16.F32.BF16");
}

#[test]
fn n_is_what_the_manual_allows() {
    let catalog = Catalog::embedded();
    let sim = |name: &str| Sim::open(name, &catalog).unwrap();
    let (hopper, blackwell) = (sim("h100"), sim("b200"));
    for n in 1..=272 {
        let name = format!("wgmma.m64n{n}k32.f32.e4m3.e4m3");
        assert_eq!(hopper.instruction(&name).is_ok(), n % 8 == 0 && n <= 256, "{name}");
    }
    let tcgen05 = |m, n, rest: &str| blackwell.instruction(&format!("tcgen05.m{m}n{n}k{rest}")).is_ok();
    for n in (8..=256).step_by(8) {
        assert!(tcgen05(64, n, "16.f32.f16.f16") && tcgen05(128, n, "32.f16.e2m1.e3m2"));
        assert_eq!(tcgen05(256, n, "8.f32.tf32.tf32"), n % 16 == 0);
        assert!(tcgen05(128, n, "64.f32.e2m1.e2m1.block16.ue4m3"));
        assert!(!tcgen05(64, n, "64.f32.e2m1.e2m1.block16.ue4m3"));
    }
    assert!(!tcgen05(32, 8, "16.f32.f16.f16") && !tcgen05(64, 264, "16.f32.f16.f16"));
    let refused = hopper.instruction("wgmma.m64n12k32.f32.e4m3.e4m3").unwrap_err();
    assert!(refused.ends_with("m = 64, n = 8 to 256 in steps of 8"), "{refused}");
    assert!(hopper.instruction("wgmma.m64n016k32.f32.e4m3.e4m3").is_err());
}

/// Random bits, and now and then values at the edges.
fn batch(instruction: &Instruction, count: usize, seed: u64) -> Batch {
    let mut batch = Batch::zeros(instruction, count);
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 20
    };
    let scale = instruction.scale.map_or(instruction.a, |scale| scale.format);
    for (array, format) in [
        (&mut batch.a, instruction.a),
        (&mut batch.b, instruction.b),
        (&mut batch.c, instruction.c),
        (&mut batch.sa, scale),
        (&mut batch.sb, scale),
    ] {
        let low = (1u64 << format.fraction_bits) - 1;
        for index in 0..array.len() / format.bytes {
            let random = (next() << 30) ^ next();
            let edges = [0, !low, !0, low, low + 1, !0 - low - 1, 1, !0 >> 1];
            let bits = if random % 8 == 0 { edges[(random >> 8) as usize % edges.len()] } else { random };
            set_element(array, &format, index, bits & format.mask());
        }
    }
    batch
}

#[test]
fn every_instruction_of_every_sheet_executes() {
    let catalog = Catalog::embedded();
    for architecture in catalog.architectures().iter().filter(|architecture| architecture.has_sheet()) {
        let sim = Sim::open(&architecture.name, &catalog).unwrap();
        let sheet = architecture.sheet().unwrap().unwrap();
        assert_eq!(sim.instructions().len(), architecture.families.len());
        for (entry, instruction) in sheet.instructions.iter().zip(sim.instructions()) {
            assert_eq!(entry.status, Status::Published);
            let arithmetic = entry.arithmetic.as_ref().unwrap();
            let model = Model::try_from(arithmetic).unwrap();
            model.check().unwrap();
            for dispute in &entry.disputed {
                let other = Model::try_from(&dispute.amendment.apply(arithmetic)).unwrap();
                other.check().unwrap();
                assert_ne!(other, model, "{}: {} changes nothing", entry.name, dispute.name);
            }
            let batch = batch(instruction, 2, 7);
            let d = sim.run(instruction, &batch).unwrap();
            assert_eq!(d.len(), instruction.bytes().d * 2);
            let mut executor = Executor::new(&model).unwrap();
            let &Instruction { m, n, k, a, b, c, scale, .. } = instruction;
            let blocks = scale.map_or(0, |scale| k / scale.block);
            let scales = scale.map_or(a, |scale| scale.format);
            let take = |array: &[u8], format, first: usize, count: usize| -> Vec<u64> {
                (first..first + count).map(|index| element(array, &format, index)).collect()
            };
            // The last element of the second problem: everything before it has its place.
            let last = executor.dot_add(
                &take(&batch.a, a, (2 * m - 1) * k, k),
                &take(&batch.b, b, (2 * n - 1) * k, k),
                element(&batch.c, &c, 2 * m * n - 1),
                &take(&batch.sa, scales, (2 * m - 1) * blocks, blocks),
                &take(&batch.sb, scales, (2 * n - 1) * blocks, blocks),
            );
            assert_eq!(element(&d, &instruction.d, 2 * m * n - 1), last, "{}", entry.name);
        }
    }
}

#[test]
fn a_wider_shape_computes_the_same() {
    let sim = Sim::open("hopper", &Catalog::embedded()).unwrap();
    let narrow = sim.instruction("wgmma.m64n8k16.f32.f16.f16").unwrap();
    let wide = sim.instruction("wgmma.m64n24k16.f32.f16.f16").unwrap();
    assert!(sim.means_nan_bits(&wide));
    let batch = batch(&wide, 1, 3);
    let d = sim.run(&wide, &batch).unwrap();
    for part in 0..3 {
        let mut own = Batch::zeros(&narrow, 1);
        own.a.clone_from(&batch.a);
        let bytes = own.b.len();
        own.b.copy_from_slice(&batch.b[part * bytes..][..bytes]);
        for row in 0..64 {
            own.c[row * 32..][..32].copy_from_slice(&batch.c[(row * 24 + part * 8) * 4..][..32]);
        }
        let narrow_d = sim.run(&narrow, &own).unwrap();
        for row in 0..64 {
            assert_eq!(narrow_d[row * 32..][..32], d[(row * 24 + part * 8) * 4..][..32]);
        }
    }
    let forged = Instruction { k: 32, ..wide };
    assert!(sim.run(&forged, &Batch::zeros(&forged, 1)).is_err());
}

/// d[0][0] for a first row of A, a first column of B, c, and scales.
fn first(sim: &Sim, name: &str, (a, b): (&[u64], &[u64]), c: u64, (sa, sb): (&[u64], &[u64])) -> u64 {
    let instruction = sim.instruction(name).unwrap();
    let mut batch = Batch::zeros(&instruction, 1);
    let scale = instruction.scale.map_or(instruction.a, |scale| scale.format);
    for (array, format, values) in [
        (&mut batch.a, instruction.a, a),
        (&mut batch.b, instruction.b, b),
        (&mut batch.c, instruction.c, &[c]),
        (&mut batch.sa, scale, sa),
        (&mut batch.sb, scale, sb),
    ] {
        for (index, value) in values.iter().enumerate() {
            set_element(array, &format, index, *value);
        }
    }
    element(&sim.run(&instruction, &batch).unwrap(), &instruction.d, 0)
}

#[test]
fn both_sides_of_every_dispute_execute() {
    let catalog = Catalog::embedded();
    let sim = |name: &str| Sim::open(name, &catalog).unwrap();
    let bf16 = |value: f64| u64::from((value as f32).to_bits() >> 16);
    let fp32 = |value: f64| u64::from((value as f32).to_bits());
    let two = |exponent: i32| 2f64.powi(exponent);
    let name = "mma.m16n8k16.f32.bf16.bf16.f32";

    // 0 · 2^100 beside c = 2^−60: an exponent of −26 pushes c out.
    let question = |sim: &Sim| first(sim, name, (&[0], &[bf16(two(100))]), fp32(two(-60)), (&[], &[]));
    assert_eq!(question(&sim("hopper")), fp32(two(-60)));
    assert_eq!(question(&sim("hopper+zeros")), 0);
    assert_eq!(question(&sim("hopper+floor")), fp32(two(-60)));
    // The same in fp16, where a format's own zero would have the exponent −14.
    let half = |sim: &Sim, c| first(sim, "mma.m16n8k16.f32.f16.f16.f32", (&[0], &[0x7800]), c, (&[], &[]));
    assert_eq!(half(&sim("hopper+zeros"), fp32(two(-30))), fp32(two(-30)));
    assert_eq!(half(&sim("hopper+zeros"), 1), 0);
    assert_eq!(half(&sim("hopper"), 1), 1);

    // Fifteen products (1 + 2^−7)² · 2^−153 and 49 · 2^−159 make 2^−149 and a little; cut off at
    // 2^−158 they make less.
    let mut a = [bf16(129.0 / 128.0 * two(-76)); 16];
    let mut b = [bf16(129.0 / 128.0 * two(-77)); 16];
    (a[15], b[15]) = (bf16(1.75 * two(-77)), bf16(1.75 * two(-78)));
    let question = |sim: &Sim| first(sim, name, (&a, &b), 0, (&[], &[]));
    assert_eq!(question(&sim("hopper")), 1);
    assert_eq!(question(&sim("hopper+floor")), 0);

    // c = 1 and a group of −1 cancel; 2^−F and 2^−(F+1) beside them tell how many bits are kept.
    let fp4 = |sim: &Sim, exponent: u64| {
        let (mut a, mut b) = ([0; 64], [0; 64]);
        (a[0], b[0], a[32], b[32]) = (2, 2 + 8, 2, 2);
        let scales: (&[u64], &[u64]) = (&[127, 127 - exponent], &[127, 127]);
        let name = "mma.m16n8k64.f32.e2m1.e2m1.f32.block32.ue8m0";
        first(sim, name, (&a, &b), fp32(1.0), scales)
    };
    for (name, bits) in [("", 35), ("+fp4-34", 34), ("+fp4-36", 36), ("+fp4-37", 37)] {
        let sim = sim(&format!("rtx_blackwell{name}"));
        assert_eq!(fp4(&sim, bits), fp32(two(-(bits as i32))), "{name}");
        assert_eq!(fp4(&sim, bits + 1), 0, "{name}");
    }

    // 2^24 + 1 + 1, rounded once or after each.
    let fp16 = (&[0x6c00, 0x3c00, 0, 0x3c00][..], &[0x6c00, 0x3c00, 0, 0x3c00][..]);
    let question = |sim: &Sim| first(sim, "v_mfma_f32_4x4x4f16", fp16, 0, (&[], &[]));
    assert_eq!(question(&sim("cdna1")), fp32(two(24)));
    assert_eq!(question(&sim("cdna1+exact-sums")), fp32(two(24) + 2.0));

    for architecture in catalog.architectures().iter().filter(|architecture| architecture.has_sheet()) {
        for dispute in architecture.sheet().unwrap().unwrap().disputes() {
            sim(&format!("{}+{dispute}", architecture.name));
        }
    }
    let unknown = Sim::open("hopper+rounding", &catalog).unwrap_err();
    assert!(matches!(unknown, SimError::NoDispute { known, .. } if known == ["zeros", "floor"]));
}

#[test]
fn names_and_aliases() {
    let catalog = Catalog::embedded();
    for (name, architecture) in [
        ("H100", "hopper"),
        ("h200", "hopper"),
        ("GH200", "hopper"),
        ("sm_90", "hopper"),
        ("sm_90a", "hopper"),
        ("rtx4090", "ada"),
        ("RTX 4090", "ada"),
        ("rtx-1000-ada", "ada"),
        ("v100", "volta"),
        ("sm_86", "ampere"),
        ("B200", "blackwell"),
        ("rtx5090", "rtx_blackwell"),
        ("RTX-Blackwell", "rtx_blackwell"),
        ("mi300x", "cdna3"),
        ("Instinct MI325X", "cdna3"),
        ("gfx942", "cdna3"),
        ("gfx90a", "cdna2"),
        ("mi100", "cdna1"),
        ("mi355x", "cdna4"),
        ("M1", "m1"),
        ("M1 Max", "m1"),
    ] {
        let found = catalog.find(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(found.architecture.name, architecture, "{name}");
    }
    assert!(catalog.find("").is_none() && catalog.find("mi300y").is_none());
    assert!(catalog.near("mi300y").contains(&"mi300x".to_string()));
    let mut all = Vec::new();
    for architecture in catalog.architectures() {
        all.push(architecture.name.to_lowercase());
        all.extend(architecture.targets.iter().cloned());
        all.extend(architecture.gpus.iter().flat_map(|gpu| gpu.names().map(str::to_lowercase)));
        assert!(architecture.gpus.iter().all(|gpu| architecture.targets.contains(&gpu.target)));
    }
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "a name stands for two things");
}

#[test]
fn reports_are_up_to_date() {
    let catalog = Catalog::embedded();
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    let stale = "run: cargo run --example reports";
    for architecture in catalog.architectures() {
        let path = reports.join(format!("{}.yaml", architecture.name));
        match published::sheet(architecture) {
            Some(sheet) => {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(text == sheet::write(&sheet), "{}: {stale}", path.display());
                assert_eq!(sheet::load(&path).unwrap(), sheet);
            }
            None => assert!(!path.exists()),
        }
    }
    let pages = committed::pages(&catalog, &reports).unwrap();
    for (path, page) in &pages {
        let text = std::fs::read_to_string(reports.join(path)).unwrap_or_default();
        assert!(text == *page, "{path}: {stale}");
    }
    // Nothing is left of a page that is made no more.
    for folder in ["", "measured/"] {
        for entry in reports.join(folder).read_dir().unwrap() {
            let path = format!("{folder}{}", entry.unwrap().file_name().to_str().unwrap());
            let is_made = pages.iter().any(|(known, _)| *known == path);
            assert!(is_made || !path.ends_with(".html"), "{path} is made no more");
        }
    }
    let table = std::fs::read_to_string(reports.join("coverage.md")).unwrap();
    assert!(table == coverage::markdown(&catalog), "{stale}");
    // Where the README has the table, it is this one.
    let readme = std::fs::read_to_string(reports.with_file_name("README.md")).unwrap_or_default();
    if let Some((_, rest)) = readme.split_once("<!-- coverage -->") {
        let (own, _) = rest.split_once("<!-- /coverage -->").unwrap();
        assert_eq!(own.trim(), table.trim(), "{stale}, and put reports/coverage.md into the README");
    }
}

/// A catalogue file that a user could write.
const MINE: &str = "\
schema: mmaprobe-catalog/1
architecture: mine
title: My Unit
vendor: me
targets: [gfx0000]
source: my bench
gpus:
  - {name: M1, target: gfx0000, aliases: [My One]}
types: {f32: fp32, fp8: e4m3}
disputes:
  zeros: {statement: s, source: x, alternative: t, alternative_source: y, change: {zeros: counted}}
instructions:
  - kernel: mfma
    name: my_{m}x{n}x{k}_{a}_{b}
    operands: {a: [fp8, e5m2], b: [fp8], d: f32}
    algorithm: {name: FDA, F: 25, out: rz23}
    disputed: [zeros]
    shapes:
      - {m: 16, n: {from: 8, to: 32, step: 8}, k: 32, isa: 'MY.{A}'}
";

fn problem(text: &str) -> CatalogError {
    file::parse(text, Path::new("mine.yaml")).unwrap_err()
}

#[test]
fn malformed_files_are_told_with_their_line() {
    file::parse(MINE, Path::new("mine.yaml")).unwrap();
    for (from, to, line, says) in [
        ("mmaprobe-catalog/1", "mmaprobe-catalog/2", 1, "mmaprobe-catalog/2"),
        ("vendor: me", "vender: me", 4, "vender"),
        ("fp8: e4m3", "fp8: e4m4", 9, "e4m4"),
        ("[gfx0000]", "[]", 5, "no targets"),
        ("zeros: counted}", "zeros: maybe}", 11, "maybe"),
        ("x{k}_{a}", "x{q}_{a}", 14, "{q}"),
        ("_{a}_{b}", "_{b}", 14, "two instructions"),
        ("{n}x", "", 14, "several"),
        ("e5m2]", "e5m3]", 15, "e5m3"),
        ("b: [fp8], ", "", 15, "either"),
        ("FDA, F: 25", "FDB, F: 25", 16, "FDB"),
        ("F: 25, ", "", 16, "`F`"),
        ("F: 25, ", "F: 25, G: 4, ", 16, "all of these parameters"),
        ("rz23", "rne10", 16, "fp16"),
        ("[zeros]", "[floor]", 17, "floor"),
        ("step: 8", "step: 0", 19, "no range"),
        ("k: 32, isa", "isa", 19, "`k`"),
        ("k: 32, isa", "k: 0, isa", 16, "0"),
        ("m: 16, n", "n", 19, "tiles"),
        ("'MY.{A}'", "'MY.{X}'", 19, "{X}"),
        ("    disputed: [zeros]", "    disputed: [zeros]\n    variants: [rz]", 18, "no variant `rz`"),
        ("schema: mma", "schema: [mma", 1, ""),
    ] {
        assert!(MINE.contains(from), "{from}");
        let error = problem(&MINE.replacen(from, to, 1));
        let shown = error.to_string();
        assert!(shown.starts_with("mine.yaml:"), "{to}: {shown}");
        assert_eq!(error.position.map(|at| at.line), Some(line), "{to}: {shown}");
        assert!(shown.contains(says), "{to}: {shown}");
    }
}

fn mmaprobe(arguments: &[&str]) -> Output {
    // Also where there is a GPU these are tests of what is said without one.
    let mut command = Command::new(env!("CARGO_BIN_EXE_mmaprobe"));
    command.args(arguments).env("CUDA_VISIBLE_DEVICES", "").output().unwrap()
}

fn with_file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.yaml");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

#[test]
fn a_user_adds_an_architecture_with_a_file() {
    let (_folder, path) = with_file(MINE);
    let path = path.to_str().unwrap();
    let listed = mmaprobe(&["instructions", "--arch", "mine", "--catalog", path]);
    let text = String::from_utf8(listed.stdout).unwrap();
    assert!(text.contains("my_16xNx32_fp8_fp8") && text.contains("2 instructions of My Unit"), "{text}");
    let devices = mmaprobe(&["devices", "--catalog", path]);
    assert!(String::from_utf8(devices.stdout).unwrap().contains("sim:mine"));
    let validate = |against: &str, instruction: &str| {
        mmaprobe(&[
            "validate",
            "--catalog",
            path,
            "--device",
            "sim:my-one",
            "--against",
            against,
            "--sets",
            "50",
            "--instruction",
            instruction,
        ])
        .status
        .code()
    };
    assert_eq!(validate("sim:gfx0000", "my_16x32x32_e5m2_fp8"), Some(0));
    assert_eq!(validate("sim:mine+zeros", "my_16x8x32_e5m2_fp8"), Some(1));
    assert_eq!(validate("sim:mine", "my_16x12x32_e5m2_fp8"), Some(2));

    let (_folder, wrong) = with_file(&MINE.replace("rz23", "rz24"));
    let refused = mmaprobe(&["devices", "--catalog", wrong.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("mine.yaml:16:"));
    assert_eq!(mmaprobe(&["devices", "--catalog", "/no/such/file"]).status.code(), Some(2));
}

#[test]
fn the_command_line_says_what_is_missing() {
    for (device, code, says) in [
        ("mi300x", 3, "MI300X (AMD CDNA3, gfx942)"),
        ("h100", 3, "--device sim:h100"),
        ("sm_90", 3, "NVIDIA Hopper"),
        ("gfx942", 3, "sim:gfx942"),
        ("mi355x", 3, "not been published"),
        ("m1-max", 3, "with this processor it is --device cpu"),
        ("mi300y", 2, "mi300x"),
        ("sim:mi300y", 2, "mi300x"),
        ("sim:cdna4", 2, "not been published"),
        ("sim:hopper+nothing", 2, "zeros, floor"),
    ] {
        let output = mmaprobe(&["instructions", "--device", device]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{device}: {stderr}");
        assert!(stderr.contains(says), "{device}: {stderr}");
    }
}

#[test]
fn tables_fit_80_columns() {
    for architecture in Catalog::embedded().architectures() {
        let listed = mmaprobe(&["instructions", "--arch", &architecture.name]);
        let text = String::from_utf8(listed.stdout).unwrap();
        let count = format!("{} instructions of {}", architecture.families.len(), architecture.title);
        assert!(text.ends_with(&(count + "\n")), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    let devices = String::from_utf8(mmaprobe(&["devices"]).stdout).unwrap();
    assert!(devices.lines().all(|line| line.chars().count() <= 80), "{devices}");
}
