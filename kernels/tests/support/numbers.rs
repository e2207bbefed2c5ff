//! Numbers that are so small, and have so few digits, that a format has them exactly.

use mmaprobe_model::Format;
use mmaprobe_model::format::Decoded;

/// The number of a bit pattern.
///
/// # Panics
/// If it is none.
pub fn decode(format: &Format, bits: u64) -> f64 {
    match format.decode(bits) {
        Decoded::Finite { negative, significand, exponent } => {
            let value = significand as f64 * f64::powi(2.0, exponent - format.fraction_bits as i32);
            if negative { -value } else { value }
        }
        other => panic!("{other:?} of {bits:#x} in {format}"),
    }
}

/// The bit pattern of a number that is zero or normal in the format.
///
/// # Panics
/// If the format does not have it.
pub fn encode(format: &Format, value: f64) -> u64 {
    let double = value.to_bits();
    let (exponent, fraction) = ((double >> 52 & 0x7FF) as i32 - 1023, double & ((1 << 52) - 1));
    let field = if value == 0.0 { 0 } else { (exponent + format.bias) as u64 };
    let sign = (double >> 63) << (format.exponent_bits + format.fraction_bits);
    let bits = (sign | field << format.fraction_bits | fraction >> (52 - format.fraction_bits))
        << format.ignored_low_bits;
    assert_eq!(decode(format, bits), value, "{format} has {value}");
    bits
}
