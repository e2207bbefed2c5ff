//! Numbers as people write them, as bit patterns of a format: `1.5`, `-0x1.8p-3`, `0x3e00`, `nan`.
//!
//! A number that the format does not have is rounded to the nearest one, ties to even, once.

use mmaprobe_model::format::{FP64, RoundTo};
use mmaprobe_model::{Decoded, Format, Term};

/// Reads a number: bits (`0x` or `0b` without an exponent), a hexadecimal number (`0x1.8p-3`) or a
/// decimal one (`-1.5e-3`, `inf`, `nan`).
///
/// # Errors
/// A sentence that says what is wrong.
pub fn read(text: &str, format: &Format) -> Result<u64, String> {
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = magnitude.to_ascii_lowercase();
    let number = match lower.as_str() {
        "inf" | "infinity" if format.has_infinity() => Decoded::Infinite { negative },
        "nan" if format.has_nan() => Decoded::Nan { negative, fraction: 1 << format.fraction_bits >> 1 },
        "inf" | "infinity" | "nan" => return Err(format!("{format} has no {lower}")),
        _ => {
            let term = match lower.strip_prefix("0x") {
                Some(digits) if digits.contains('p') => hexadecimal(digits),
                _ if lower.starts_with("0x") || lower.starts_with("0b") => {
                    return if text.len() == magnitude.len() {
                        pattern(&lower, format)
                    } else {
                        Err(format!(
                            "'{text}': a bit pattern has no sign; a hexadecimal number has p: 0x1.8p+0"
                        ))
                    };
                }
                _ => decimal(&lower),
            };
            let term = term.ok_or_else(|| {
                format!("'{text}' is no number; write 1.5, 0x1.8p+0 or the bits, 0x… or 0b…")
            })?;
            if negative && !format.signed {
                return Err(format!("'{text}': {format} has no sign"));
            }
            let rounded = RoundTo::nearest_even(*format).round(&Term { negative, ..term });
            if matches!(rounded, Decoded::Nan { .. }) {
                return Err(format!("'{text}' is beyond the largest number of {format}"));
            }
            rounded
        }
    };
    Ok(format.pack(number))
}

/// `0x3e00`, `0b0011`; `_` may stand between digits.
fn pattern(text: &str, format: &Format) -> Result<u64, String> {
    let digits = text[2..].replace('_', "");
    let radix = if text.starts_with("0x") { 16 } else { 2 };
    let bits = Some(&digits).filter(|digits| digits.chars().all(|c| c.is_digit(radix)));
    let bits = bits.and_then(|digits| u64::from_str_radix(digits, radix).ok());
    let bits = bits.ok_or_else(|| format!("'{text}' is no pattern of at most 64 bits"))?;
    let width = format.bits() + format.ignored_low_bits;
    match bits.checked_shr(width).unwrap_or(0) {
        0 => Ok(bits),
        _ => Err(format!("'{text}' has more than the {width} bits of {format}")),
    }
}

/// Exponents that a number can be written with: far beyond every format.
const MAX_EXPONENT: i32 = 5000;

fn exponent(text: &str) -> Option<i32> {
    text.parse().ok().filter(|exponent: &i32| exponent.abs() <= MAX_EXPONENT)
}

/// The digits before and after the point, as one integer, and how many stand after it.
fn digits(text: &str, radix: u32) -> Option<(u128, i32)> {
    let (before, after) = text.split_once('.').unwrap_or((text, ""));
    let all = [before, after].concat();
    let well_formed = !all.is_empty() && all.chars().all(|c| c.is_digit(radix));
    let integer = u128::from_str_radix(&all, radix).ok().filter(|_| well_formed)?;
    Some((integer, i32::try_from(after.len()).ok()?))
}

/// `1.8p-3`.
fn hexadecimal(text: &str) -> Option<Term> {
    let (significand, power) = text.split_once('p')?;
    let (integer, places) = digits(significand, 16)?;
    let lsb = exponent(power)? - 4 * places;
    Some(Term::new(false, integer, lsb, lsb))
}

/// A decimal number, or one that rounds as it does to every format of at most 64 bits: the nearest fp64,
/// and a little more or less where that is not the number itself.
fn decimal(text: &str) -> Option<Term> {
    let (significand, power) = text.split_once('e').unwrap_or((text, "0"));
    let (integer, places) = digits(significand, 10)?;
    let power = exponent(power)? - places;
    let nearest: f64 = text.parse().ok()?;
    if !nearest.is_finite() {
        // More than every format has.
        return Some(Term::new(false, 1, MAX_EXPONENT, MAX_EXPONENT));
    }
    let Decoded::Finite { significand, exponent, .. } = FP64.decode(nearest.to_bits()) else {
        return None;
    };
    let lsb = exponent - FP64.fraction_bits as i32;
    // Both sides times 10^−power, where that is an integer.
    let exact = times_power_of_ten(Term::new(false, integer, 0, 0), power.max(0));
    let float = times_power_of_ten(Term::new(true, significand.into(), lsb, 0), (-power).max(0));
    let rest = Term::sum([&exact, &float]);
    let quarters = 4 * u128::from(significand);
    let quarters = match (rest.is_zero(), rest.negative) {
        (true, _) => quarters,
        (false, true) => quarters - 1,
        (false, false) => quarters + 1,
    };
    Some(Term::new(false, quarters, lsb - 2, lsb - 2))
}

fn times_power_of_ten(mut term: Term, power: i32) -> Term {
    /// The largest power of five in 64 bits is the 27th.
    const STEP: i32 = 27;
    let mut left = power;
    while left > 0 {
        let step = left.min(STEP);
        term = term.scaled(5u64.pow(step as u32), step, 0);
        left -= step;
    }
    term
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmaprobe_model::format::{BF16, E2M1, E4M3, FP16, FP32, TF32, UE8M0};

    #[test]
    fn floats_are_read_as_the_standard_library_reads_them() {
        for text in [
            "0",
            "-0",
            "1",
            "-1.5",
            "0.1",
            "3.4028235e38",
            "3.5e38",
            "1e-45",
            "7e-46",
            "7.1e-46",
            "1e400",
            "1e-400",
            "16777217",
            "16777217.000000000000000001",
            "16777216.99999999999999999",
            "0.000001",
            ".5",
            "5.",
            "123456789012345678901234567890",
        ] {
            let expected: f32 = text.parse().unwrap();
            assert_eq!(read(text, &FP32), Ok(expected.to_bits().into()), "{text}");
            let expected: f64 = text.parse().unwrap();
            assert_eq!(read(text, &FP64), Ok(expected.to_bits()), "{text}");
        }
    }

    #[test]
    fn numbers_are_rounded_once() {
        // Just above the tie between 1 and its successor in fp16; in fp64 it is the tie.
        assert_eq!(read("1.00048828125", &FP16), Ok(0x3c00));
        assert_eq!(read("1.0004882812500000000001", &FP16), Ok(0x3c01));
        assert_eq!(read("1.00146484374999999999999", &FP16), Ok(0x3c01));
        assert_eq!(read("-0x1.002p+0", &FP16), Ok(0xbc00));
        assert_eq!(read("0x1.0021p+0", &FP16), Ok(0x3c01));
    }

    #[test]
    fn bits_and_hexadecimal_numbers_are_told_apart() {
        for (text, format, bits) in [
            ("0x3c00", FP16, 0x3c00),
            ("0b1_0000_0000", BF16, 0x100),
            ("0x1p-14", FP16, 0x0400),
            ("-0x.8p+0", FP16, 0xb800),
            ("0X1.8P1", FP32, 0x4040_0000),
            ("inf", FP16, 0x7c00),
            ("-Infinity", FP32, 0xff80_0000),
            ("nan", FP32, 0x7fc0_0000),
            ("-nan", E4M3, 0xff),
            ("448", E4M3, 0x7e),
            ("6", E2M1, 0x7),
            ("2", UE8M0, 128),
            ("1.5", TF32, 0x3fc0_0000),
            ("0x3fc01fff", TF32, 0x3fc0_1fff),
        ] {
            assert_eq!(read(text, &format), Ok(bits), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for (text, format, problem) in [
            ("", FP32, "no number"),
            ("one", FP32, "no number"),
            ("1.2.3", FP32, "no number"),
            ("1e", FP32, "no number"),
            ("1e99999", FP32, "no number"),
            ("--1", FP32, "no number"),
            ("0x1.8", FP32, "no pattern"),
            ("0xg", FP32, "no pattern"),
            ("0x", FP32, "no pattern"),
            ("-0x3c00", FP16, "has no sign"),
            ("0x10000", FP16, "more than the 16 bits"),
            ("inf", E4M3, "e4m3 has no inf"),
            ("nan", E2M1, "e2m1 has no nan"),
            ("-1", UE8M0, "ue8m0 has no sign"),
            ("1000", E4M3, "beyond the largest number of e4m3"),
        ] {
            let error = read(text, &format).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
