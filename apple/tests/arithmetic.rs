//! The fused multiply-add against exact rational arithmetic, and against this processor's own.
//!
//! As often as the issue asks (f16 on 10⁸ triples, f32 and f64 on 10⁷), which takes minutes:
//! `MMAPROBE_TEST_SCALE=100 cargo test --release -p mmaprobe-apple --test arithmetic`.

use mmaprobe_apple::alu::{Element, default_nan, fma};
use mmaprobe_kernels::cpu::{Mode, Problems, Processor};
use mmaprobe_model::format::{Decoded, FP16, FP32, FP64, Format, RoundTo};
use num_bigint::BigInt;
use num_traits::Zero;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

#[path = "../../model/tests/common/mod.rs"]
mod common;

use common::spec::{Read, Spec};
use common::{cases, on_two_threads, rational};

fn ours(formats: [Format; 3], [x, y, z]: [u64; 3]) -> u64 {
    let element = |bits, format| Element { format, bits };
    fma(element(x, formats[0]), element(y, formats[1]), element(z, formats[2]))
}

/// An f16 as a multiple of 2^−24; its largest is below 2^40 of them.
fn f16_in_units(bits: u64) -> i128 {
    let (field, fraction) = ((bits >> 10 & 31) as u32, i128::from(bits & 0x3ff));
    let magnitude = if field == 0 { fraction } else { (fraction | 0x400) << (field - 1) };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// x·y + z in f16: exact as an integer of 2^−48, and then the nearest f16 by bisecting all of them.
fn f16_exactly([x, y, z]: [u64; 3]) -> u64 {
    const NAN: u64 = 0x7e00;
    const INFINITY: u64 = 0x7c00;
    let magnitude = |bits: u64| bits & 0x7fff;
    if [x, y, z].iter().any(|&bits| magnitude(bits) > INFINITY) {
        return NAN;
    }
    let product_sign = (x ^ y) & 0x8000;
    let infinite = |bits: u64| magnitude(bits) == INFINITY;
    if infinite(x) || infinite(y) {
        let zero = magnitude(x) == 0 || magnitude(y) == 0;
        let opposite = infinite(z) && z & 0x8000 != product_sign;
        return if zero || opposite { NAN } else { product_sign | INFINITY };
    }
    if infinite(z) {
        return z;
    }
    let sum = f16_in_units(x) * f16_in_units(y) + (f16_in_units(z) << 24);
    if sum == 0 {
        return product_sign & z & 0x8000 & if f16_in_units(z) == 0 { 0x8000 } else { 0 };
    }
    let sign = if sum < 0 { 0x8000 } else { 0 };
    let size = sum.abs();
    // The pattern of infinity stands for 2^16, from half way to which on a result is infinite.
    let value = |pattern: u64| f16_in_units(pattern) << 24;
    let (mut below, mut above) = (0, INFINITY);
    while above - below > 1 {
        let middle = (below + above) / 2;
        if value(middle) <= size { below = middle } else { above = middle }
    }
    let (down, up) = (size - value(below), value(above) - size);
    sign | if down < up || down == up && below % 2 == 0 { below } else { above }
}

/// ±: zero, the ends of the subnormal and the normal numbers, those around 1, infinity, both kinds of NaN.
fn specials(format: Format) -> Vec<u64> {
    let hidden = 1u64 << format.fraction_bits;
    let one = hidden * ((1 << (format.exponent_bits - 1)) - 1);
    let infinity = hidden * ((1 << format.exponent_bits) - 1);
    let magnitudes = [
        0,
        1,
        2,
        hidden - 1,
        hidden,
        hidden + 1,
        one - 1,
        one,
        one + 1,
        one + hidden,
        infinity - 1,
        infinity,
        infinity + 1,
        infinity + hidden / 2,
        infinity + hidden - 1,
    ];
    let sign = 1 << (format.bits() - 1);
    magnitudes.into_iter().flat_map(|magnitude| [magnitude, magnitude | sign]).collect()
}

fn triples(format: Format) -> impl Iterator<Item = [u64; 3]> {
    let specials = specials(format);
    let all = specials.clone();
    (0..all.len().pow(3)).map(move |index| {
        let n = specials.len();
        [index % n, index / n % n, index / n / n].map(|index| specials[index])
    })
}

/// Operands of the formats: random bits; exponents whose product is near that of z, so that sums cancel
/// and tie; and the ends of the range.
fn random(formats: [Format; 3], rng: &mut impl Rng) -> [u64; 3] {
    let bits = |format: Format, rng: &mut dyn Rng| rng.next_u64() >> (64 - format.bits());
    let mut operands = formats.map(|format| bits(format, rng));
    match rng.random_range(0..4) {
        0 => {}
        1 => {
            // z near −x·y, with few significand bits that differ.
            let [x, y, _] = operands;
            let zero = 0;
            let product = ours(formats, [x, y, zero]);
            let sign = 1 << (formats[2].bits() - 1);
            operands[2] = (product ^ sign).wrapping_add(rng.random_range(0..5)) & formats[2].mask();
        }
        2 => {
            // Few significand bits: ties.
            for (bits, format) in operands.iter_mut().zip(formats) {
                let kept = rng.random_range(0..=format.fraction_bits);
                *bits = *bits >> kept << kept;
            }
            let [x, y, _] = operands;
            let product = ours(formats, [x, y, 0]);
            let step = u64::from(rng.random_range(0..=formats[2].fraction_bits)) << formats[2].fraction_bits;
            operands[2] = product.wrapping_add(step) & formats[2].mask();
        }
        _ => {
            let at = rng.random_range(0..3);
            let specials = specials(formats[at]);
            operands[at] = specials[rng.random_range(0..specials.len())];
        }
    }
    operands
}

#[test]
fn f16_agrees_with_exact_integers() {
    for operands in triples(FP16) {
        assert_eq!(ours([FP16; 3], operands), f16_exactly(operands), "{operands:x?}");
    }
    on_two_threads(cases(1_000_000), 1, |count, seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..count {
            let operands = random([FP16; 3], &mut rng);
            assert_eq!(ours([FP16; 3], operands), f16_exactly(operands), "{operands:x?}");
        }
    });
}

/// Whether a result is that of exact arithmetic on big rationals.
fn is_exact(formats: [Format; 3], operands: [u64; 3], result: u64) -> bool {
    let specs = formats.map(|format| Spec::of(format.name));
    let reads = [0, 1, 2].map(|index| specs[index].read(operands[index]));
    let format = formats[2];
    let infinity = |negative| result == format.pack(Decoded::Infinite { negative });
    let nan = result == default_nan(format);
    let [x, y, z] = reads;
    let negative = |read: Read| match read {
        Read::Inf { neg } | Read::Num { neg, .. } => neg,
        Read::Nan => false,
    };
    let product_negative = negative(x) != negative(y);
    let is_zero = |read| matches!(read, Read::Num { s: 0, .. });
    let is_infinite = |read| matches!(read, Read::Inf { .. });
    if reads.iter().any(|&read| matches!(read, Read::Nan)) {
        return nan;
    }
    if is_infinite(x) || is_infinite(y) {
        let opposite = is_infinite(z) && negative(z) != product_negative;
        return if is_zero(x) || is_zero(y) || opposite { nan } else { infinity(product_negative) };
    }
    if is_infinite(z) {
        return infinity(negative(z));
    }
    let (Read::Num { s: sx, l: lx, .. }, Read::Num { s: sy, l: ly, .. }, Read::Num { s: sz, l: lz, .. }) =
        (x, y, z)
    else {
        return false;
    };
    let product = rational::number(product_negative, BigInt::from(sx) * BigInt::from(sy), lx + ly);
    let sum: BigInt = product + rational::number(negative(z), sz, lz);
    let negative_zero = sum.is_zero() && product_negative && negative(z);
    let rounded = rational::round(&sum, negative_zero, &RoundTo::nearest_even(format));
    rational::is_encoded(&specs[2], result, &rounded)
}

#[test]
fn f32_and_f64_agree_with_exact_rationals() {
    for (formats, seed) in [([FP32; 3], 2), ([FP64; 3], 3), ([FP16, FP16, FP32], 4), ([FP16, FP32, FP32], 5)]
    {
        if formats[0] == formats[2] {
            for operands in triples(formats[0]) {
                assert!(is_exact(formats, operands, ours(formats, operands)), "{formats:?} {operands:x?}");
            }
        }
        on_two_threads(cases(100_000), seed, |count, seed| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            for _ in 0..count {
                let operands = random(formats, &mut rng);
                assert!(is_exact(formats, operands, ours(formats, operands)), "{formats:?} {operands:x?}");
            }
        });
    }
}

#[test]
fn this_processors_fma_agrees_but_for_nan_encodings() {
    let processor = Processor::detect();
    for (name, format) in [("vfmadd231ps", FP32), ("vfmadd231pd", FP64), ("vfmadd231ph", FP16)] {
        let Some(unit) = processor.unit(name) else {
            eprintln!("NOT RUN: this processor has no {name}");
            continue;
        };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
        let mut left = cases(100_000);
        while left > 0 {
            let count = left.min(4096);
            let operands: Vec<[u64; 3]> = (0..count).map(|_| random([format; 3], &mut rng)).collect();
            let [a, b, c] = [0, 1, 2].map(|index| -> Vec<u8> {
                operands.iter().flat_map(|o| o[index].to_le_bytes()[..format.bytes].to_vec()).collect()
            });
            let mut d = vec![0; c.len()];
            unit.run(Problems { count: operands.len(), a: &a, b: &b, c: &c }, &mut d, Mode::Default);
            for (&operands, bytes) in operands.iter().zip(d.chunks(format.bytes)) {
                let theirs = bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
                let expected = match format.decode(theirs) {
                    Decoded::Nan { .. } => default_nan(format),
                    _ => theirs,
                };
                assert_eq!(ours([format; 3], operands), expected, "{name} {operands:x?}");
            }
            left -= count;
        }
    }
}
