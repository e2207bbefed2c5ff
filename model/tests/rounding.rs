//! Rounding to a format against rationals, `half` and the hardware.

mod common;

use common::rational::{Grids, Rounded, grids, is_encoded, number, power, round, round_between, term, value};
use common::spec::{Kind, Read, Spec};
use common::{cases, on_two_threads};
use mmaprobe_model::Rounding;
use mmaprobe_model::format::{self, Format, Overflow, RoundTo, Subnormals, Tininess};
use num_bigint::BigInt;
use num_traits::{Signed, Zero};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const OVERFLOWS: [Overflow; 3] = [Overflow::Infinity, Overflow::Largest, Overflow::ByRounding];

fn subnormals() -> Vec<Subnormals> {
    let mut all = vec![Subnormals::Kept];
    for tiny in [Tininess::BeforeRounding, Tininess::AfterRounding, Tininess::Delivered] {
        all.extend([false, true].map(|sign_kept| Subnormals::Flushed { tiny, sign_kept }));
    }
    all
}

/// Numbers at, between and just beside every two neighbours of an 8-bit format, and beyond both ends.
fn inputs(spec: &Spec) -> Vec<BigInt> {
    let mut points: Vec<BigInt> = (0..1 << spec.bits()).filter_map(|bits| value(spec, bits)).collect();
    points.push(BigInt::zero());
    // Where the grid would go on, and far beyond.
    let (s, l) = spec.max();
    points.extend((1..=10).map(|above| number(false, s + above, l)));
    points.extend([power(l + 40), power(l + 300)]);
    // Where it would go on below.
    let least = spec.emin() - spec.m as i32;
    points.extend((1..=5).map(|below| power(least - below)));
    points.extend([power(least - 60), power(least - 300)]);
    let mut magnitudes: Vec<BigInt> = points.into_iter().filter(|x| !x.is_negative()).collect();
    magnitudes.sort();
    magnitudes.dedup();

    let mut inputs = magnitudes.clone();
    for pair in magnitudes.windows(2) {
        let (x, y) = (&pair[0], &pair[1]);
        let quarter: BigInt = (y - x) / 4;
        for base in [x.clone(), x + &quarter, x + 2 * &quarter, x + 3 * &quarter, y.clone()] {
            // Relative to the gap: 2^−60 stays within 128 bits, 2^−190 does not.
            for tiny in [60, 125, 190] {
                let tiny: BigInt = (y - x) >> tiny;
                inputs.extend([&base + &tiny, &base - &tiny]);
            }
            inputs.push(base);
        }
    }
    let negative: Vec<BigInt> = inputs.iter().filter(|x| !x.is_zero()).map(|x| -x).collect();
    inputs.extend(negative);
    inputs.sort();
    inputs.dedup();
    inputs
}

/// The neighbours of a number in a list of all magnitudes of a format.
fn search(list: &[BigInt], quantum_bits: u32, x: &BigInt, spec: &Spec) -> Grids {
    let computed = grids(x, spec, quantum_bits);
    let magnitude = x.abs();
    if magnitude < *list.last().expect("a format has numbers") {
        let above = list.partition_point(|y| *y <= magnitude);
        let (below, above) = (&list[above - 1], &list[above]);
        let (low, high) = if *below == magnitude {
            (x.clone(), x.clone())
        } else if x.is_negative() {
            (-above, -below)
        } else {
            (below.clone(), above.clone())
        };
        assert_eq!((&computed.bounded.low, &computed.bounded.high), (&low, &high), "{} {x}", spec.name);
    }
    computed
}

#[test]
fn every_mode_exhaustively_for_narrow_formats() {
    let narrow: Vec<Format> = Format::ALL.into_iter().filter(|format| format.bits() <= 8).collect();
    assert_eq!(narrow.len(), 9);
    std::thread::scope(|scope| {
        for half in 0..2 {
            let narrow = &narrow;
            scope.spawn(move || narrow.iter().skip(half).step_by(2).for_each(exhaustively));
        }
    });
}

fn exhaustively(format: &Format) {
    let spec = Spec::of(format.name);
    let inputs = inputs(&spec);
    for fraction_bits in 0..=format.fraction_bits {
        // All magnitudes on the reduced grid, from the encodings.
        let mut list: Vec<BigInt> = (0..1 << spec.bits())
            .filter_map(|bits| match spec.read(bits) {
                Read::Num { neg: false, s, l, .. } => {
                    (s % (1 << (spec.m - fraction_bits)) == 0).then(|| number(false, s, l))
                }
                _ => None,
            })
            .collect();
        if spec.kind == Kind::Power {
            list.push(BigInt::zero());
        }
        list.sort();
        for x in &inputs {
            let term = term(x, false);
            let between = (!x.is_zero()).then(|| search(&list, fraction_bits, x, &spec));
            for subnormals in subnormals() {
                for overflow in OVERFLOWS {
                    for rounding in Rounding::EVERY {
                        let to = RoundTo { format: *format, fraction_bits, rounding, subnormals, overflow };
                        let bits = format.pack(to.round(&term));
                        let expected = match &between {
                            Some(between) if spec.sign || x.is_positive() => {
                                round_between(x, between, &spec, &to)
                            }
                            _ => round(x, false, &to),
                        };
                        assert!(is_encoded(&spec, bits, &expected), "{to:?} {x} {bits:#x} {expected:?}");
                    }
                }
            }
        }
    }
}

/// A number near the grid of a format: on it, a tie, or beside one by a little; any exponent.
fn near(spec: &Spec, fraction_bits: u32, rng: &mut impl Rng) -> BigInt {
    let (_, l) = spec.max();
    let (lowest, highest) = (spec.emin() - spec.m as i32 - 4, l + spec.m as i32 + 3);
    let e = match rng.random_range(0..4) {
        0 => rng.random_range(lowest..spec.emin() + 3),
        1 => rng.random_range(highest - 5..highest),
        _ => rng.random_range(lowest..highest),
    };
    let f = fraction_bits as i32;
    let significand: u64 = 1 << f
        | match rng.random_range(0..3) {
            0 => (1 << f) - 1 - rng.random_range(0..4.min(1 << f)),
            _ => rng.random::<u64>() & ((1 << f) - 1),
        };
    let mut x = number(false, significand, e - f);
    // A quarter, a half or three quarters of the spacing, there or at a subnormal number's.
    let quantum = if rng.random() { e - f } else { e.max(spec.emin()) - f };
    x += number(false, rng.random_range(0..4u32), quantum - 2);
    x += match rng.random_range(0..4) {
        0 => BigInt::zero(),
        1 => number(rng.random(), rng.random::<u64>(), quantum - 70),
        2 => number(rng.random(), 1, quantum - rng.random_range(60..70)),
        _ => number(rng.random(), 1, quantum - rng.random_range(100..300)),
    };
    if rng.random() { x } else { -x }
}

#[test]
fn every_mode_at_random_for_wide_formats() {
    let formats = [format::FP64, format::FP32, format::TF32, format::FP16, format::BF16];
    on_two_threads(cases(1_000_000), 1, |cases, seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let subnormals = subnormals();
        for case in 0..cases {
            let format = formats[case as usize % formats.len()];
            let spec = Spec::of(format.name);
            let fraction_bits = match rng.random_range(0..3) {
                0 => rng.random_range(0..=format.fraction_bits),
                _ => format.fraction_bits,
            };
            let to = RoundTo {
                format,
                fraction_bits,
                rounding: Rounding::EVERY[rng.random_range(0..11)],
                subnormals: subnormals[rng.random_range(0..subnormals.len())],
                overflow: OVERFLOWS[rng.random_range(0..3)],
            };
            let x = near(&spec, fraction_bits, &mut rng);
            let bits = format.pack(to.round(&term(&x, false)));
            let expected = round(&x, false, &to);
            assert!(is_encoded(&spec, bits, &expected), "{to:?} {x} {bits:#x} {expected:?}");
        }
    });
}

/// MMA-Sim paper, Tables I and II: rows by mode, entries as multiples of u added to ±1.
///
/// One entry differs from the print: Table II has RNU take 1 + 1.5u to 1 + u, which is not up.
#[test]
fn tables_one_and_two() {
    use Rounding::*;
    // Inputs 1+0.75u, 1+0.25u, −1−0.75u, −1−0.25u.
    let table_1 = [
        (Up, [1, 1, 0, 0]),
        (Down, [0, 0, 1, 1]),
        (TowardZero, [0, 0, 0, 0]),
        (AwayFromZero, [1, 1, 1, 1]),
        (NearestTiesUp, [1, 0, 1, 0]),
        (NearestTiesDown, [1, 0, 1, 0]),
        (NearestTiesToZero, [1, 0, 1, 0]),
        (NearestTiesAway, [1, 0, 1, 0]),
        (NearestTiesToEven, [1, 0, 1, 0]),
        (NearestTiesToOdd, [1, 0, 1, 0]),
        // Not in the paper: from its definition, 1 being even.
        (ToOdd, [1, 1, 1, 1]),
    ];
    // Inputs 1+0.5u, 1+1.5u, −1−0.5u, −1−1.5u.
    let table_2 = [
        (NearestTiesUp, [1, 2, 0, 1]),
        (NearestTiesDown, [0, 1, 1, 2]),
        (NearestTiesToZero, [0, 1, 0, 1]),
        (NearestTiesAway, [1, 2, 1, 2]),
        (NearestTiesToEven, [0, 2, 0, 2]),
        (NearestTiesToOdd, [1, 1, 1, 1]),
        (ToOdd, [1, 1, 1, 1]),
    ];
    for format in [format::FP64, format::FP32, format::FP16, format::BF16, format::E5M2, format::E4M3] {
        let f = format.fraction_bits as i32;
        let one = (format.bias as u64) << f;
        let check = |rounding, quarters: [i32; 4], expected: [u64; 4]| {
            for (index, (quarters, expected)) in quarters.into_iter().zip(expected).enumerate() {
                let neg = index >= 2;
                let x = number(neg, 4u64 << f | quarters as u64, -f - 2);
                let to = RoundTo { rounding, ..RoundTo::nearest_even(format) };
                let sign = (neg as u64) << (format.bits() - 1);
                let bits = format.pack(to.round(&term(&x, false)));
                assert_eq!(bits, sign | (one + expected), "{format} {rounding} {quarters}");
            }
        };
        table_1.iter().for_each(|&(mode, expected)| check(mode, [3, 1, 3, 1], expected));
        table_2.iter().for_each(|&(mode, expected)| check(mode, [2, 6, 2, 6], expected));
    }
}

#[test]
fn abbreviations() {
    for mode in Rounding::EVERY {
        assert_eq!(Rounding::from_abbreviation(mode.abbreviation()), Some(mode));
    }
    assert_eq!(Rounding::from_abbreviation("RN"), None);
}

#[test]
fn conversions_agree_with_half_and_the_hardware() {
    on_two_threads(cases(8_000_000), 2, |cases, seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let to = [format::FP16, format::BF16, format::FP32].map(RoundTo::nearest_even);
        for _ in 0..cases {
            // Half of the numbers within the range of fp16.
            let mut bits: u32 = rng.random();
            if rng.random() {
                bits = bits & 0x807f_ffff | (rng.random_range(100..146) << 23);
            }
            let x = f32::from_bits(bits);
            let half = to[0].convert(&format::FP32, bits.into());
            let bf = to[1].convert(&format::FP32, bits.into());
            if x.is_nan() {
                assert!(
                    half::f16::from_bits(half as u16).is_nan() && half::bf16::from_bits(bf as u16).is_nan()
                );
            } else {
                assert_eq!(half, half::f16::from_f32(x).to_bits().into(), "{bits:#x}");
                assert_eq!(bf, half::bf16::from_f32(x).to_bits().into(), "{bits:#x}");
            }
            let mut bits: u64 = rng.random();
            if rng.random() {
                bits = bits & 0x800f_ffff_ffff_ffff | (rng.random_range(860..1160) << 52);
            }
            // Ties are rare among 29 random bits.
            if rng.random() {
                bits &= !0u64 << 28;
            }
            let x = f64::from_bits(bits);
            let single = to[2].convert(&format::FP64, bits);
            if x.is_nan() {
                assert!(f32::from_bits(single as u32).is_nan());
            } else {
                assert_eq!(single, (x as f32).to_bits().into(), "{bits:#x}");
            }
        }
    });
}

/// A zero keeps its sign where the format has one.
#[test]
fn zeros() {
    for format in Format::ALL {
        let spec = Spec::of(format.name);
        for neg in [false, true] {
            for subnormals in subnormals() {
                let to = RoundTo { subnormals, ..RoundTo::nearest_even(format) };
                let bits = format.pack(to.round(&term(&BigInt::zero(), neg)));
                let expected = round(&BigInt::zero(), neg, &to);
                assert!(matches!(expected, Rounded::Number { .. }));
                assert!(is_encoded(&spec, bits, &expected), "{to:?} {neg} {bits:#x} {expected:?}");
            }
        }
    }
}
