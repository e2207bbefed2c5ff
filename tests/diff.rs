//! `diff` and `explain`, from outside and through the library, against what can be worked out by hand.

use std::path::Path;

use mmaprobe::device::simulated::Simulated;
use mmaprobe::device::trees::Trees;
use mmaprobe::device::{Device, Identity, Instruction, Provenance};
use mmaprobe::diff::{Comparison, Plan, Side, compare};
use mmaprobe::model::algorithms::{Algorithm, Output as Rounded, Types};
use mmaprobe::model::format::{BF16, E4M3FNUZ, FP16, FP32, Overflow, Subnormals, Tininess};
use mmaprobe::model::tree::{
    Added, Beyond, Carry, Exponents, Far, Fused, InputInfinities, InputSubnormals, NanRule, Normalised,
    Product, ZeroSigns, ZeroTerms,
};
use mmaprobe::model::{Model, Rounding};
use serde_json::Value;

use crate::common::{json, mmaprobe, text};

fn bits(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

fn all_bits(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(bits).collect()
}

/// A finite fp16 or fp32 as an integer significand and the exponents of its lowest bit and, raw, of its
/// hidden one.
fn taken_apart(pattern: u64, exponent_bits: u32, fraction_bits: u32) -> (i128, i32, i32) {
    let fraction = (pattern & ((1 << fraction_bits) - 1)) as i128;
    let field = (pattern >> fraction_bits & ((1 << exponent_bits) - 1)) as i32;
    let bias = (1 << (exponent_bits - 1)) - 1;
    let (significand, exponent) =
        if field == 0 { (fraction, 1 - bias) } else { (fraction | 1 << fraction_bits, field - bias) };
    let negative = pattern >> (exponent_bits + fraction_bits) & 1 == 1;
    (if negative { -significand } else { significand }, exponent - fraction_bits as i32, exponent)
}

/// The paper's FDA (section IV.C) over fp16 products and an fp32 c, in integers: every summand is cut off
/// F bits below the largest exponent, the sum at 24 significant bits. A second formulation: it shares
/// nothing with the model, and knows no subnormal results, overflows or special values.
fn fda(a: &[u64], b: &[u64], c: u64, fraction_bits: i32) -> f32 {
    let mut summands: Vec<(i128, i32, i32)> = a
        .iter()
        .zip(b)
        .map(|(&a, &b)| {
            let ((x, x_lsb, x_exponent), (y, y_lsb, y_exponent)) =
                (taken_apart(a, 5, 10), taken_apart(b, 5, 10));
            (x * y, x_lsb + y_lsb, x_exponent + y_exponent)
        })
        .collect();
    summands.push(taken_apart(c, 8, 23));
    summands.retain(|(significand, ..)| *significand != 0);
    let Some(largest) = summands.iter().map(|(_, _, exponent)| *exponent).max() else { return 0.0 };
    let lowest = largest - fraction_bits;
    let mut sum: i128 = 0;
    for (significand, lsb, _) in summands {
        sum += match lsb - lowest {
            up @ 0.. => significand << up,
            down if down > -127 => significand / (1 << -down),
            _ => 0,
        };
    }
    let magnitude = sum.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros() as i32 - 24).max(0);
    let kept = (magnitude >> excess) as f64;
    (sum.signum() as f64 * kept * 2f64.powi(lowest + excess)) as f32
}

#[test]
fn hopper_against_ada() {
    let document = json(&["diff", "sim:hopper", "sim:ada", "--instruction", "mma*"], 1);
    let comparisons = document["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 9);
    let of = |name: &str| comparisons.iter().find(|comparison| comparison["first"] == name).unwrap();
    let double = of("mma.m8n8k4.f64.f64.f64.f64");
    assert_eq!((&double["different"], &double["same_tree"]), (&Value::Bool(false), &Value::Bool(true)));
    for comparison in comparisons.iter().filter(|comparison| !std::ptr::eq(*comparison, double)) {
        let differences = comparison["differences"].as_array().unwrap();
        let chained = comparison["first"].as_str().unwrap().contains("k16")
            || comparison["first"] == "mma.m16n8k8.f32.tf32.tf32.f32";
        assert_eq!(differences.len(), if chained { 2 } else { 1 }, "{comparison}");
        let bits = differences.last().unwrap();
        assert_eq!((&bits["first"], &bits["second"]), (&"25".into(), &"24".into()), "{comparison}");
        for difference in differences {
            assert!(!difference["example"].is_null(), "{difference}");
        }
    }
    // What FDA gives, worked out again, where that is all there is to it.
    let plain = of("mma.m16n8k8.f32.f16.f16.f32");
    let example = &plain["differences"][0]["example"];
    let (a, b, c) = (all_bits(&example["a"]), all_bits(&example["b"]), bits(&example["c"]));
    let answers = all_bits(&example["answers"]);
    for (answer, fraction_bits) in answers.iter().zip([25, 24]) {
        let expected = fda(&a, &b, c, fraction_bits);
        assert_eq!(*answer, u64::from(expected.to_bits()), "F={fraction_bits}: {example}");
    }
    assert_ne!(answers[0], answers[1]);
    // One product beside c, or two: nothing smaller tells them apart.
    let live = a.iter().zip(&b).filter(|pair| *pair != (&0, &0)).count() + usize::from(c != 0);
    assert_eq!(live, 2, "{example}");
    let only: Vec<&str> =
        document["only_in_first"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(
        only,
        ["mma.m16n8k4.f64.f64.f64.f64", "mma.m16n8k8.f64.f64.f64.f64", "mma.m16n8k16.f64.f64.f64.f64"]
    );
    assert_eq!(document["only_in_second"].as_array().unwrap().len(), 16);
}

#[test]
fn turing_against_ampere_and_a_gpu_against_its_architecture() {
    let told = text(&["diff", "sim:turing", "sim:ampere"], 1);
    assert_eq!(told.matches("equal: the same tree").count(), 2, "{told}");
    assert!(told.contains("Only in sim:turing: mma.m8n8k4.f32.f16.f16.f32"), "{told}");
    let told = text(&["diff", "sim:volta", "sim:v100"], 0);
    assert!(!told.contains("DIFFERENT") && told.matches("equal: the same tree").count() == 3, "{told}");
}

/// Each disputed model is told from the other by an input that the tool finds, and so are two generations;
/// on each of these inputs, explain confirms that both differ.
#[test]
fn what_is_found_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    for (first, second, instruction, what) in [
        ("sim:hopper", "sim:ada", "mma*", "bits kept at alignment (F)"),
        ("sim:volta", "sim:volta+floor", "*", "least exponent to align to"),
        ("sim:volta", "sim:volta+zeros", "*", "zeros in the largest exponent"),
        ("sim:cdna1", "sim:cdna1+exact-sums", "v_mfma_f32_4x4x*f16", "which summands meet"),
        ("sim:blackwell", "sim:blackwell+fp4-34", "*k64*block16.ue4m3", "bits kept at alignment (F)"),
    ] {
        let found = folder.path().join(second.replace(':', "-"));
        let found_path = found.display().to_string();
        let arguments = ["diff", first, second, "--instruction", instruction, "--save", &found_path];
        let told = text(&arguments, 1);
        assert!(told.contains(&format!("DIFFERENT: {what}")) || told.contains(what), "{told}");
        let mut shown = 0;
        for file in std::fs::read_dir(&found).unwrap() {
            let path = file.unwrap().path().display().to_string();
            let explained = json(&["explain", "--counterexample", &path], 0);
            let devices = explained["devices"].as_array().unwrap();
            assert_eq!((&devices[0]["device"], &devices[1]["device"]), (&first.into(), &second.into()));
            assert_ne!(devices[0]["answer"], devices[1]["answer"], "{path}");
            for device in devices {
                let d = device["steps"]["d"].as_u64().unwrap();
                assert_eq!(bits(&device["answer"]), d, "{path}");
            }
            text(&["explain", "--counterexample", &path], 0);
            shown += 1;
        }
        assert!(shown > 0, "{told}");
        // What exists is not overwritten.
        let again = mmaprobe(&arguments);
        assert_eq!(again.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&again.stderr).contains("--force replaces it"));
    }
}

/// A device that computes a model, and its tree.
fn device(model: &Model) -> (Simulated, Trees, Instruction) {
    let Model { k, a, b, c, d, .. } = model;
    let (a, b, c, d) = (a.format, b.format, c.format, *d);
    let instruction =
        Instruction { name: "x".into(), m: 2, n: 2, k: *k, a, b, c, d, scale: None, mode_of: None };
    let identity = Identity {
        name: "model".into(),
        description: String::new(),
        properties: vec![],
        provenance: Provenance::Simulated,
        absent: vec![],
    };
    let device = Simulated::new(identity, vec![(instruction.clone(), model.clone())]).unwrap();
    (device.clone(), Trees::Sheet(device), instruction)
}

fn compared(one: &Model, other: &Model, with_trees: bool) -> Comparison {
    let (first, first_trees, instruction) = device(one);
    let (second, second_trees, _) = device(other);
    let side = |device, trees| Side { name: "model", device, trees: Some(trees).filter(|_| with_trees) };
    let sides = [&side(&first as &dyn Device, &first_trees), &side(&second as &dyn Device, &second_trees)];
    let plan = Plan { random: 4000, seed: 1, any_nan: false };
    compare(sides, (&instruction, &instruction), &plan).unwrap()
}

/// FDA on fp16 with F = 24, and everything else as it can be.
fn base() -> Model {
    let types = Types::plain(FP16, FP32, 8);
    Algorithm::Fda { fraction_bits: 24, output: Rounded::Rz23 }.model(&types).unwrap()
}

fn fused(model: &mut Model) -> &mut Fused {
    match &mut model.tree.rules[0].added {
        Added::Fused(fused) => fused,
        Added::Exact => panic!("FDA is one fused sum"),
    }
}

/// What a change is called, and the change.
type Corner = (&'static str, Box<dyn Fn(&mut Model)>);

/// Models that differ from the base in one corner each, and what that is called.
fn corners() -> Vec<Corner> {
    fn round(model: &mut Model) -> &mut mmaprobe::model::format::RoundTo {
        model.tree.rules[0].round_to().unwrap()
    }
    vec![
        ("how sums add", Box::new(|m| m.tree.rules[0].added = Added::Exact)),
        ("bits kept at alignment (F)", Box::new(|m| fused(m).alignment[0].fraction_bits = 25)),
        ("bits kept at alignment (F)", Box::new(|m| fused(m).alignment[0].fraction_bits = 60)),
        ("rounding at alignment", Box::new(|m| fused(m).alignment[0].rounding = Rounding::Down)),
        ("rounding at alignment", Box::new(|m| fused(m).alignment[0].rounding = Rounding::ToOdd)),
        (
            "rounding of summands far below",
            Box::new(|m| {
                fused(m).alignment[0].far = Some(Far { distance: 26, rounding: Rounding::AwayFromZero });
            }),
        ),
        ("exponents that sums align by", Box::new(|m| fused(m).exponents = Exponents::Normalised)),
        ("least exponent to align to", Box::new(|m| fused(m).floor = Some(-120))),
        ("least exponent to align to", Box::new(|m| fused(m).floor = Some(-30))),
        ("zeros in the largest exponent", Box::new(|m| fused(m).zeros = ZeroTerms::Counted)),
        ("zeros in the largest exponent", Box::new(|m| fused(m).zeros = ZeroTerms::CountedAsFp32)),
        (
            "limit of a sum's integer part",
            Box::new(|m| fused(m).carry = Some(Carry { bits: 4, beyond: Beyond::Wraps })),
        ),
        (
            "limit of a sum's integer part",
            Box::new(|m| fused(m).carry = Some(Carry { bits: 3, beyond: Beyond::Saturates })),
        ),
        (
            "signs of zero sums",
            Box::new(|m| {
                let zero = &mut m.tree.rules[0].zero;
                *zero = ZeroSigns { negative_zeros_stay: !zero.negative_zeros_stay, ..*zero };
            }),
        ),
        ("signs of zero sums", Box::new(|m| m.tree.rules[0].zero.cancellation_is_negative = true)),
        ("rounding of sums", Box::new(|m| round(m).rounding = Rounding::NearestTiesToEven)),
        ("fraction bits of sums", Box::new(|m| round(m).fraction_bits = 22)),
        (
            "subnormal sums",
            Box::new(|m| {
                round(m).subnormals = Subnormals::Flushed { tiny: Tininess::BeforeRounding, sign_kept: true };
            }),
        ),
        ("how A is read", Box::new(|m| m.a.subnormals = InputSubnormals::FlushedToSignedZero)),
        ("how B is read", Box::new(|m| m.b.infinities = InputInfinities::Largest)),
        ("how C is read", Box::new(|m| m.c.subnormals = InputSubnormals::FlushedToPositiveZero)),
        ("products", Box::new(|m| m.product = Product::OverflowsAt { exponent: 31 })),
        ("NaN results", Box::new(|m| m.nan = NanRule::Canonical(0x7fc0_0000))),
    ]
}

#[test]
fn models_that_differ_in_one_corner_are_told_apart() {
    for (what, change) in corners() {
        let mut other = base();
        change(&mut other);
        for (one, two) in [(&base(), &other), (&other, &base())] {
            let comparison = compared(one, two, true);
            let names: Vec<&str> = comparison.differences.iter().map(|shown| shown.what).collect();
            assert_eq!(names, [what]);
            let example = comparison.differences[0].example.as_ref();
            let example = example.unwrap_or_else(|| panic!("{what}: none of {}", comparison.tried));
            assert_ne!(example.answers.0, example.answers.1, "{what}");
        }
    }
}

/// A sticky bit can only be seen where sums are not truncated.
#[test]
fn a_sticky_bit_is_seen_by_a_rounding_to_nearest() {
    let mut one = base();
    one.tree.rules[0].round_to().unwrap().rounding = Rounding::NearestTiesToEven;
    let mut other = one.clone();
    fused(&mut other).sticky = true;
    let comparison = compared(&one, &other, true);
    assert_eq!(comparison.differences[0].what, "a sticky bit below the sum");
    assert!(comparison.is_different());
}

/// Products of bf16 reach beyond fp32; those of fp16 end at 2^32, where no c is moved by them.
#[test]
fn overflow_differs_where_sums_can_overflow() {
    for (factors, differs) in [(BF16, true), (FP16, false)] {
        let types = Types::plain(factors, FP32, 8);
        let one = Algorithm::Fda { fraction_bits: 24, output: Rounded::Rz23 }.model(&types).unwrap();
        let mut other = one.clone();
        other.tree.rules[0].round_to().unwrap().overflow = Overflow::Largest;
        let comparison = compared(&one, &other, true);
        assert_eq!(comparison.differences[0].what, "sums beyond the largest number");
        assert_eq!(comparison.is_different(), differs, "{}", factors.name);
        assert_eq!(comparison.same_tree, Some(false));
        assert_eq!(compared(&one, &other, false).is_different(), differs, "{}", factors.name);
    }
}

#[test]
fn what_is_the_same_is_called_so() {
    let same = compared(&base(), &base(), true);
    assert_eq!((same.same_tree, same.differences.len(), same.is_different()), (Some(true), 0, false));
    assert_eq!(same.tried, 4000);
    // The sum of a number with itself alone is what it is: another way to say the same.
    let mut other = base();
    fused(&mut other).alignment.push(fused(&mut base()).alignment[0]);
    assert!(!compared(&base(), &other, true).is_different());
    // Eight products of 22 bits, aligned within their range, fit into 64 bits: more make no difference.
    let mut wide = base();
    fused(&mut wide).alignment[0].fraction_bits = 63;
    let mut wider = wide.clone();
    fused(&mut wider).floor = Some(-300);
    let comparison = compared(&wide, &wider, true);
    assert!(!comparison.is_different() && comparison.same_tree == Some(false));
    assert!(comparison.tried > 10_000, "{}", comparison.tried);
}

/// Two devices of which nothing is known but their answers.
#[test]
fn devices_without_trees_are_told_apart_by_probes() {
    for (what, change) in corners() {
        // Deep below every F that is asked about, only trees say where to look.
        if what == "least exponent to align to" {
            continue;
        }
        let mut other = base();
        change(&mut other);
        let comparison = compared(&base(), &other, false);
        assert_eq!(comparison.same_tree, None);
        assert!(comparison.is_different(), "{what}: none of {}", comparison.tried);
        assert_eq!(comparison.differences[0].what, "answers");
    }
}

#[test]
fn normalised_sums_differ_from_others() {
    // A sum that is handed on as it is, and one that is rounded to fp32 before.
    let types = Types::plain(FP16, FP32, 8);
    let algorithm = Algorithm::Fdrda { fraction_bits: 24, dot_fraction_bits: 31, c_fraction_bits: 24 };
    let one = algorithm.model(&types).unwrap();
    let mut other = one.clone();
    let root = other.tree.rules.len() - 1;
    let Normalised::To(round) = other.tree.rules[root].normalised else { panic!() };
    let inner = other.tree.rules.iter_mut().find(|rule| rule.normalised != Normalised::To(round)).unwrap();
    inner.normalised = Normalised::To(round);
    let comparison = compared(&one, &other, true);
    assert_eq!(comparison.differences[0].what, "what becomes of a sum");
    assert!(comparison.is_different());
}

/// Algorithms of the paper, one parameter apart, deep inside their trees.
#[test]
fn algorithms_one_parameter_apart_are_told_apart() {
    let f8 = Types::plain(E4M3FNUZ, FP32, 16);
    let f16 = Types::plain(FP16, FP32, 16);
    let grouped = |bits, dot, c, c_rz_below| Algorithm::Gfdrda {
        fraction_bits: bits,
        dot_fraction_bits: dot,
        c_fraction_bits: c,
        c_rz_below,
    };
    let chained = |bits, dot, c, chain| Algorithm::CoFdrda {
        fraction_bits: bits,
        dot_fraction_bits: dot,
        c_fraction_bits: c,
        chain,
    };
    for (types, one, other) in [
        (f8, grouped(24, 31, 24, 25), grouped(24, 31, 24, 26)),
        (f8, grouped(24, 31, 24, 25), grouped(25, 31, 24, 25)),
        (f16, chained(24, 31, 24, 2), chained(24, 30, 24, 2)),
        (f16, chained(24, 31, 24, 2), chained(24, 31, 25, 2)),
        (f16, chained(24, 31, 24, 2), chained(24, 31, 24, 4)),
        (f16, Algorithm::Gps { group: 4, flushed: true }, Algorithm::Gps { group: 2, flushed: true }),
        (f16, Algorithm::Gps { group: 4, flushed: true }, Algorithm::Gps { group: 4, flushed: false }),
    ] {
        let comparison = compared(&one.model(&types).unwrap(), &other.model(&types).unwrap(), true);
        assert!(comparison.is_different(), "{one} and {other}: none of {}", comparison.tried);
    }
}

/// The sheet's own counterexamples can be looked at as well.
#[test]
fn counterexamples_of_sheets_are_explained() {
    let mut sheet = mmaprobe::sheet::load(Path::new("reports/volta.yaml")).unwrap();
    let entry = &mut sheet.instructions[0];
    let words = |word: &str| vec![word.to_string(), "0x0".into(), "0x0".into(), "0x0".into()];
    entry.counterexample = Some(mmaprobe::sheet::schema::Counterexample {
        a: words("0x3c00"),
        b: words("0x4000"),
        c: "0x3f800000".into(),
        sa: vec![],
        sb: vec![],
        device: "0x40400000".into(),
        model: None,
        note: "no more than an example".into(),
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sheet.yaml").display().to_string();
    std::fs::write(&path, mmaprobe::sheet::write(&sheet)).unwrap();
    let device = ["--device", "sim:volta"];
    let explained = json(&[&["explain", "--counterexample", &path], &device[..]].concat(), 0);
    // 1 · 2 + 1.
    assert_eq!(bits(&explained["devices"][0]["answer"]), u64::from(3f32.to_bits()));
    assert_eq!(explained["devices"][0]["instruction"], sheet.instructions[0].name.as_str());
}

// What is printed of a single input.

/// MMA-Sim paper, section VI.C (a): on CDNA3, −0.000001 becomes −0.25.
#[test]
fn the_paper_s_example_of_asymmetric_rounding() {
    let name = "v_mfma_f32_32x32x8_f16";
    let inputs = ["--a", "2048,2048", "--b", "2048,-2048", "--c", "-0.000001"];
    let devices = ["explain", "--device", "sim:mi300x", "--device", "sim:cdna3+rz", "--instruction", name];
    let told = text(&[&devices[..], &inputs[..]].concat(), 0);
    for says in [
        "p0      2^22, exponent 22",
        "c       0xb58637bd = -0x1.0c6f7ap-20 = -9.99999997475243e-7",
        "RD at",
        "-2^-2",
        "RZ at",
        "0xbe800000 = -2^-2",
        "0x00000000 = 0",
    ] {
        assert!(told.contains(says), "{says}: {told}");
    }
    let explained = json(&[&devices[..], &inputs[..]].concat(), 0);
    let exact = f64::from(-0.000001f32);
    for (device, answer) in explained["devices"].as_array().unwrap().iter().zip([-0.25f64, 0.0]) {
        assert_eq!(bits(&device["answer"]), u64::from((answer as f32).to_bits()));
        let ulp = 2f64.powi(-20 - 23);
        assert_eq!(device["error_in_ulps"].as_f64().unwrap(), (answer - exact) / ulp);
    }
    // The same numbers in other words.
    let bits = ["--a", "0x6800,1:0x1p11", "--b", "0b0110100000000000,1:-2.048e3", "--c", "0xb58637bd"];
    assert_eq!(told, text(&[&devices[..], &bits[..]].concat(), 0));
}

#[test]
fn what_falls_off_is_shown() {
    let name = "mma.m16n8k8.f32.f16.f16.f32";
    let arguments = ["--instruction", name, "--a", "1,0x1p-12", "--b", "1,0x1.8p-13", "--c", "-1"];
    let devices = ["--device", "sim:ampere", "--device", "sim:hopper", "--device", "sim:rtx5090"];
    let explained = json(&[&["explain"], &devices[..], &arguments[..]].concat(), 0);
    assert_eq!(explained["exact"], "0x1.8p-25");
    let lost = |index: usize| {
        let sum = &explained["devices"][index]["steps"]["sums"][0];
        let summand = sum["summands"].as_array().unwrap().iter().find(|one| one["name"] == "p1").unwrap();
        (summand["aligned"]["kept"].clone(), summand["aligned"]["lost"].clone(), sum["result"].clone())
    };
    // 1.5 · 2^−25 beside 1: with 24 bits nothing is left of it, with 25 its leading bit.
    assert_eq!(lost(0), ("0".into(), "0x1.8p-25".into(), "0".into()));
    assert_eq!(lost(1), ("2^-25".into(), "2^-26".into(), "2^-25".into()));
    // Three devices stand one below the other.
    let told = text(&[&["explain"], &devices[..], &arguments[..]].concat(), 0);
    assert_eq!(told.matches("│ step ").count(), 3, "{told}");
}

#[test]
fn devices_that_only_answer_are_explained_as_far_as_that_goes() {
    let device = format!(
        "exec:python3 '{}'",
        Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/device.py").display()
    );
    let arguments = ["explain", "--device", &device, "--instruction", "dot4", "--a", "1,2", "--b", "3,4"];
    let explained = json(&arguments, 0);
    assert_eq!(bits(&explained["devices"][0]["answer"]), u64::from(11f32.to_bits()));
    assert!(explained["devices"][0]["steps"].is_null());
    assert!(text(&arguments, 0).contains("not known: it only answers"));
}

#[test]
fn inputs_that_make_no_sense_are_refused() {
    let volta = ["--device", "sim:volta", "--instruction", "mma.m8n8k4.f32.f16.f16.f32"];
    for (more, says) in [
        (&["--a", "1,2,3,4,5"][..], "there is no element 4"),
        (&["--a", "4:1"], "there is no element 4"),
        (&["--a", "x:1"], "'x' is no place"),
        (&["--b", "0x12345"], "more than the 16 bits of fp16"),
        (&["--c", "one"], "'one' is no number"),
        (&["--sa", "1"], "takes no block scales"),
        (&["--device", "sim:ampere"], "sim:ampere has no instruction"),
        (&["--counterexample", "Cargo.toml"], "Cargo.toml"),
        (&["--counterexample", "catalog/volta.yaml"], "mmaprobe-catalog/1"),
        (&["--counterexample", "reports/volta.yaml"], "has no counterexample"),
    ] {
        let output = mmaprobe(&[&["explain"], &volta[..], more].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {stderr}");
        assert!(stderr.contains(says), "{more:?}: {stderr}");
    }
    let failed = mmaprobe(&["diff", "exec:no-such-command", "sim:volta"]);
    assert_eq!(failed.status.code(), Some(3));
    for (arguments, says) in [
        (&["explain"][..], "--device says whose steps"),
        (&["explain", "--device", "sim:volta"], "--instruction says which"),
        (&["diff", "sim:volta"], "<D2>"),
        (&["diff", "sim:volta", "sim:volta+rz"], "there are: zeros, floor"),
        (&["diff", "sim:volta", "sim:ampere", "--instruction", "x"], "'x'"),
        (&["bias", "sim:volta", "sim:cdna3"], "no instruction in common"),
        (&["bias", "sim:volta", "sim:volta", "--factors", "0"], "above 0"),
    ] {
        let output = mmaprobe(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
    }
}

/// The variant is executable, and no publication is said to state it.
#[test]
fn hypothetical_variants_are_no_disputes() {
    let shown = text(&["show", "reports/cdna3.yaml"], 0);
    assert!(!shown.contains("hypothetical") && !shown.contains("not down"));
    let told = text(&["diff", "sim:cdna3", "sim:cdna3+rz", "--instruction", "*16x16x16_f16"], 1);
    assert!(told.contains("DIFFERENT: rounding at alignment"), "{told}");
}
