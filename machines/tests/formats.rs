//! Decoding and encoding against the CPU's own fp32 and fp64, the `half` crate, and the tables of the
//! OCP specifications.
#![allow(missing_docs)]

use half::{bf16, f16};
use mmaprobe_machines::format::{self, Datum, Format};
use mmaprobe_machines::generate::Dice;

fn value(format: &Format, bits: u64) -> f64 {
    match format.decode(bits) {
        Datum::Nan(..) => f64::NAN,
        Datum::Infinite(negative) => {
            if negative {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        Datum::Number { negative, significand, exponent } => {
            let magnitude = significand as f64 * 2f64.powi(exponent - format.fraction_bits as i32);
            if negative { -magnitude } else { magnitude }
        }
    }
}

fn same(x: f64, y: f64) -> bool {
    x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan()
}

#[test]
fn sixteen_bit_formats_are_those_of_half() {
    for bits in 0..=u16::MAX {
        assert!(same(value(&format::FP16, bits.into()), f16::from_bits(bits).to_f64()), "{bits:#x}");
        assert!(same(value(&format::BF16, bits.into()), bf16::from_bits(bits).to_f64()), "{bits:#x}");
        // E5M2 is the upper half of an fp16; tf32 that of an fp32 with 13 bits that do not count.
        let e5m2 = (bits >> 8) as u64;
        assert!(same(value(&format::E5M2, e5m2), f16::from_bits(bits & 0xff00).to_f64()));
    }
}

#[test]
fn wide_formats_are_those_of_the_cpu() {
    let mut dice = Dice::new(3, 0, 100);
    for _ in 0..100_000 {
        let bits = dice.bits() as u32;
        assert!(same(value(&format::FP32, bits.into()), f32::from_bits(bits).into()), "{bits:#x}");
        assert!(same(value(&format::TF32, bits.into()), f32::from_bits(bits & !0x1fff).into()), "{bits:#x}");
        // Exponents near 1, where powi does not overflow on the way.
        let bits = dice.bits() & !(0x700 << 52) | 0x300 << 52;
        assert!(same(value(&format::FP64, bits), f64::from_bits(bits)), "{bits:#x}");
    }
}

#[test]
fn small_formats_are_those_of_the_specifications() {
    // OCP OFP8 1.0, table 2; OCP MX 1.0, tables 3 to 5: largest, smallest normal, smallest number.
    for (format, patterns, values) in [
        (format::E4M3, [0x7e, 0x08, 0x01], [448.0, 2f64.powi(-6), 2f64.powi(-9)]),
        (format::E5M2, [0x7b, 0x04, 0x01], [57344.0, 2f64.powi(-14), 2f64.powi(-16)]),
        (format::E3M2, [0x1f, 0x04, 0x01], [28.0, 0.25, 0.0625]),
        (format::E2M3, [0x1f, 0x08, 0x01], [7.5, 1.0, 0.125]),
        (format::E2M1, [0x07, 0x02, 0x01], [6.0, 1.0, 0.5]),
        // Noune et al. 2022: one binade lower than OCP, and one more at the top.
        (format::E4M3FNUZ, [0x7f, 0x08, 0x01], [240.0, 2f64.powi(-7), 2f64.powi(-10)]),
        (format::E5M2FNUZ, [0x7f, 0x04, 0x01], [57344.0, 2f64.powi(-15), 2f64.powi(-17)]),
        (format::UE4M3, [0x7e, 0x08, 0x01], [448.0, 2f64.powi(-6), 2f64.powi(-9)]),
    ] {
        for (bits, expected) in patterns.into_iter().zip(values) {
            assert_eq!(value(&format, bits), expected, "{format} {bits:#x}");
        }
    }
    for nan in [0x7f, 0xff] {
        assert!(value(&format::E4M3, nan).is_nan());
    }
    assert!(value(&format::E4M3FNUZ, 0x80).is_nan() && value(&format::E5M2FNUZ, 0x80).is_nan());
    assert!(value(&format::UE8M0, 0xff).is_nan());
    assert_eq!(value(&format::UE8M0, 0), 2f64.powi(-127));
    assert_eq!(value(&format::UE8M0, 127), 1.0);
    // The top bit of the byte has no meaning.
    assert_eq!(value(&format::UE4M3, 0xb8), 1.0);
}

#[test]
fn what_is_decoded_is_encoded_again() {
    let mut dice = Dice::new(4, 0, 100);
    for format in [format::FP16, format::BF16, format::FP32, format::FP64, format::E5M2] {
        for _ in 0..20_000 {
            let bits = dice.bits() >> (64 - 8 * format.bytes);
            let again = match format.decode(bits) {
                Datum::Nan(negative, fraction) => format.nan(negative, fraction),
                Datum::Infinite(negative) => format.infinity(negative),
                Datum::Number { negative, significand, exponent } => {
                    format.encode(negative, significand, exponent)
                }
            };
            assert_eq!(again, bits, "{format}");
        }
    }
}
