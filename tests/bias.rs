//! Error distributions, against a second formulation with other random numbers.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::common::{json, mmaprobe, text};

/// MMA-Sim paper, section VI.C (b) and Figure 2.
#[test]
fn cdna3_is_biased_and_its_variant_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let drawing = |name: &str| folder.path().join(name).display().to_string();
    let bias =
        ["bias", "sim:cdna3", "sim:cdna3+rz", "--instruction", "v_mfma_f32_32x32x8_f16", "--count", "30000"];
    let run = |threads: &str, name: &str| {
        let document = json(&[&bias[..], &["--threads", threads, "--svg", &drawing(name)]].concat(), 0);
        (document, std::fs::read_to_string(drawing(name)).unwrap())
    };
    let (document, svg) = run("1", "one.svg");
    let (again, svg_again) = run("2", "two.svg");
    assert_eq!((&document, &svg), (&again, &svg_again));
    let figure = |side: &str, what: &str| document[0][side][what].as_f64().unwrap();
    assert!(figure("first", "count") >= 30_000.0 && figure("first", "without") == 0.0);
    let in_errors = |side| figure(side, "mean") / figure(side, "standard_error");
    assert!(in_errors("first") < -30.0, "{document}");
    assert!(in_errors("second").abs() < 4.0, "{document}");
    assert!(figure("first", "negative") > 0.6, "{document}");
    // The paper's drawing has both; each plot says what is in it.
    for says in ["sim:cdna3<", "sim:cdna3+rz<", "mean -0."] {
        assert!(svg.contains(says), "{says}: {svg}");
    }
    assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
    assert!(svg.matches("<rect ").count() > 40);
    let told = text(&bias, 0);
    assert!(told.contains("mean error") && told.contains("standard deviation"), "{told}");
    let refused = mmaprobe(&[&bias[..], &["--svg", &drawing("one.svg")]].concat());
    assert_eq!(refused.status.code(), Some(2));
}

/// A number from the standard normal distribution (Box and Muller 1958).
fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
}

/// The nearest fp16, ties to even: the values here are far from overflow.
fn fp16(value: f64) -> f64 {
    let quantum = 2f64.powi(exponent(value).max(-14) - 10);
    (value / quantum).round_ties_even() * quantum
}

/// The exponent of the leading bit.
fn exponent(value: f64) -> i32 {
    (value.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

/// The multiple of 2^`lowest` below a number, or toward zero, as an integer.
fn cut(value: f64, lowest: i32, down: bool) -> i128 {
    let scaled = value * 2f64.powi(-lowest);
    (if down { scaled.floor() } else { scaled.trunc() }) as i128
}

/// The error of FDRDA (MMA-Sim paper, section IV.F) on one random input: products are cut off 24 bits below
/// the largest, toward zero; their sum is cut off 31 bits below the largest exponent, and c 24, down or
/// toward zero; the result is rounded to nearest in fp32.
fn error(rng: &mut Xoshiro256PlusPlus, down: bool) -> f64 {
    let products: Vec<(f64, i32)> = (0..8)
        .map(|_| {
            let (a, b) = (fp16(1000.0 * normal(rng)), fp16(1000.0 * normal(rng)));
            (a * b, exponent(a) + exponent(b))
        })
        .collect();
    let c = f64::from(normal(rng) as f32);
    let largest = products.iter().map(|(_, exponent)| *exponent).max().unwrap();
    let dot: i128 = products.iter().map(|(product, _)| cut(*product, largest - 24, false)).sum();
    let of_all = largest.max(exponent(c));
    // A dot product of these lengths is an fp64.
    let dot = dot as f64 * 2f64.powi(largest - 24);
    let sum = cut(dot, of_all - 31, down) as f64 * 2f64.powi(of_all - 31)
        + cut(c, of_all - 24, down) as f64 * 2f64.powi(of_all - 24);
    let d = f64::from(sum as f32);
    // In units of 2^−40 products are integers; what is finer of c shows in no figure.
    let exact: i128 = products.iter().map(|(product, _)| cut(*product, -40, false)).sum();
    let difference = cut(d, -40, false) - exact;
    difference as f64 * 2f64.powi(-40) - c
}

#[test]
fn a_second_formulation_has_the_same_distributions() {
    let bias = ["bias", "sim:cdna3", "sim:cdna3+rz", "--instruction", "v_mfma_f32_32x32x8_f16"];
    let document = json(&bias, 0);
    for (side, down) in [("first", true), ("second", false)] {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let errors: Vec<f64> = (0..50_000).map(|_| error(&mut rng, down)).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let deviation =
            (errors.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / errors.len() as f64).sqrt();
        let standard_error = deviation / (errors.len() as f64).sqrt();
        let figure = |what: &str| document[0][side][what].as_f64().unwrap();
        let apart = (figure("mean") - mean).abs() / standard_error.hypot(figure("standard_error"));
        assert!(apart < 4.0, "{side}: mean {mean}, {document}");
        assert!((figure("deviation") / deviation - 1.0).abs() < 0.03, "{side}: {deviation}, {document}");
        let negative = errors.iter().filter(|error| **error < 0.0).count() as f64 / errors.len() as f64;
        assert!((figure("negative") - negative).abs() < 0.01, "{side}: {negative}, {document}");
    }
}
