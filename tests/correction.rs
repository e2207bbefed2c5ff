//! Error-corrected single-precision products: the paper's Table 5, and worse inputs for every generation.

use mmaprobe::catalog::Catalog;
use mmaprobe::correction::{Comparison, Method, Unit, table_5};
use mmaprobe::device::Device;
use mmaprobe::device::sim::Sim;
use mmaprobe::model::format::{FP16, FP32};

/// The first instruction of each generation that takes fp16 and adds in fp32.
fn with_units(check: &mut dyn FnMut(&str, &Unit)) {
    let mut generations = 0;
    for name in [
        "volta",
        "turing",
        "ampere",
        "ada",
        "hopper",
        "blackwell",
        "rtx_blackwell",
        "cdna1",
        "cdna2",
        "cdna3",
    ] {
        let device = Sim::open(name, &Catalog::embedded()).expect("it is in the catalogue");
        let instruction = device
            .instructions()
            .iter()
            .find(|i| i.a == FP16 && i.b == FP16 && i.c == FP32 && i.d == FP32 && i.scale.is_none());
        let instruction = instruction.unwrap_or_else(|| panic!("{name} takes fp16"));
        check(name, &Unit::new(&device, instruction).expect("it takes fp16 and adds in fp32"));
        generations += 1;
    }
    assert_eq!(generations, 10);
}

#[test]
fn table_5_is_reproduced() {
    let problem = table_5();
    with_units(&mut |name, unit| {
        let found = &unit.compare(std::slice::from_ref(&problem)).expect("a simulation answers")[0];
        assert_eq!(found.ootomo_yokota, 1.0, "{name}");
        if ["volta", "turing", "ampere"].contains(&name) {
            assert_eq!(found.markidis, 1.0 + f32::EPSILON, "{name}");
            assert!(found.is_worse(Method::OotomoYokota), "{name}");
        }
    });
}

/// Errors of both methods in units of 2^−100, in integers: another way than the library's.
fn errors(found: &Comparison) -> [i128; 2] {
    let fixed = |x: f32, unit: i32| -> i128 {
        let bits = x.to_bits();
        let (field, fraction) = ((bits >> 23 & 0xff) as i32, i128::from(bits & 0x7f_ffff));
        let (significand, exponent) =
            if field == 0 { (fraction, -149) } else { (fraction | 0x80_0000, field - 150) };
        assert!(significand == 0 || exponent >= unit, "{x} has bits below 2^{unit}");
        let magnitude = if significand == 0 { 0 } else { significand << (exponent - unit) };
        if bits >> 31 == 1 { -magnitude } else { magnitude }
    };
    let products: i128 =
        found.problem.a.iter().zip(&found.problem.b).map(|(&a, &b)| fixed(a, -50) * fixed(b, -50)).sum();
    let exact = products + fixed(found.problem.c, -100);
    [found.markidis, found.ootomo_yokota].map(|result| (fixed(result, -100) - exact).abs())
}

#[test]
fn either_method_is_worse_somewhere_on_every_generation() {
    with_units(&mut |name, unit| {
        for worse in [Method::Markidis, Method::OotomoYokota] {
            let found = unit.find_worse(worse, 1).expect("a simulation answers");
            let found = found.unwrap_or_else(|| panic!("{name}: {worse} is worse somewhere"));
            let [markidis, ootomo_yokota] = errors(&found);
            match worse {
                Method::Markidis => assert!(markidis > ootomo_yokota, "{name}: {found}"),
                Method::OotomoYokota => assert!(ootomo_yokota > markidis, "{name}: {found}"),
            }
        }
    });
}

#[test]
fn only_units_that_take_fp16_and_add_in_fp32_will_do() {
    let device = Sim::open("ampere", &Catalog::embedded()).expect("it is in the catalogue");
    for instruction in device.instructions() {
        let fits = instruction.a == FP16 && instruction.d == FP32;
        assert_eq!(Unit::new(&device, instruction).is_some(), fits, "{}", instruction.name);
    }
}
