//! Encoding random numbers: total functions from sign, exponent and fraction to a bit pattern, for
//! any format, clamped to what the format holds.

use mmaprobe_model::format::{Decoded, Format, Specials};

/// A format with its limits worked out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoder {
    /// The format.
    pub format: Format,
    /// Exponent of the smallest normal number.
    pub min: i32,
    /// Exponent of the largest number.
    pub max: i32,
    /// Exponent of the smallest subnormal number.
    pub quantum: i32,
    fraction_bits: u32,
    sign: u64,
    smallest: u64,
    largest: u64,
    /// These bits have this value in infinities and NaNs; then `finite` are kept to make them numbers.
    special: (u64, u64),
    finite: u64,
}

impl Encoder {
    pub fn new(format: Format) -> Encoder {
        let fields = format.exponent_bits + format.fraction_bits;
        Encoder {
            min: format.min_exponent(),
            max: format.max_exponent(),
            quantum: format.min_quantum(),
            fraction_bits: format.fraction_bits,
            sign: if format.signed { 1 << (fields + format.ignored_low_bits) } else { 0 },
            smallest: u64::from(format.specials != Specials::PowersOfTwo),
            largest: format.pack(format.largest(false)) >> format.ignored_low_bits,
            special: {
                let ignored = format.ignored_low_bits;
                let magnitude = (1 << fields) - 1;
                let top = (1 << fields) - (1 << format.fraction_bits);
                match format.specials {
                    Specials::Ieee => (top << ignored, top << ignored),
                    Specials::AllOnesNan | Specials::PowersOfTwo => {
                        (magnitude << ignored, magnitude << ignored)
                    }
                    Specials::NegativeZeroNan => {
                        ((magnitude << 1 | 1) << ignored, (magnitude + 1) << ignored)
                    }
                    // No pattern without bits is 1.
                    Specials::FiniteOnly => (0, 1),
                }
            },
            finite: match format.specials {
                // The NaN is the pattern of −0: nothing can be cleared but the sign.
                Specials::NegativeZeroNan => 0,
                _ => !(1 << (fields - 1 + format.ignored_low_bits)),
            },
            format,
        }
    }

    /// The pattern itself if it is a number, else the number with the top exponent bit cleared.
    #[inline]
    pub fn made_finite(&self, bits: u64) -> u64 {
        if bits & self.special.0 == self.special.1 { bits & self.finite } else { bits }
    }

    /// The number ±1.`fraction` × 2^`exponent`, truncated to the format. Beyond the largest number
    /// the exponent is clamped; below the smallest, the result is the smallest: it is never zero.
    #[inline]
    pub fn number(&self, negative: bool, exponent: i32, fraction: u64) -> u64 {
        self.number_64(negative.into(), exponent.into(), fraction)
    }

    /// The same, all in 64 bits and without branches, as vectors want it; `sign` is 1 or 0.
    #[inline(always)]
    pub fn number_64(&self, sign: u64, exponent: i64, fraction: u64) -> u64 {
        let (min, max) = (i64::from(self.min), i64::from(self.max));
        // Two shifts, as one by 64 is undefined.
        let fraction = fraction >> 1 >> (63 - self.fraction_bits);
        let field = exponent.min(max).wrapping_add(self.format.bias.into()) as u64;
        let normal = field << self.fraction_bits | fraction;
        let subnormal = (1 << self.fraction_bits | fraction) >> ((min - exponent).clamp(0, 63) as u64 & 63);
        let magnitude = if exponent >= min { normal } else { subnormal };
        let magnitude = magnitude.max(self.smallest).min(self.largest);
        magnitude << self.format.ignored_low_bits | sign.wrapping_neg() & self.sign
    }

    /// The number whose magnitude is `steps` representable numbers further from zero, clamped to the
    /// smallest and largest number. Zeros, infinities and NaNs become numbers too.
    #[inline]
    pub fn nudged(&self, bits: u64, steps: i64) -> u64 {
        let magnitude = ((bits & self.format.mask() & !self.sign) >> self.format.ignored_low_bits) as i64;
        let moved = magnitude.saturating_add(steps).clamp(self.smallest as i64, self.largest as i64);
        self.signed(bits & self.sign != 0, moved as u64)
    }

    /// The number with as large a significand as there is with its exponent, less these of the last bits of the fraction.
    #[inline]
    pub fn full(&self, bits: u64, cleared: u64) -> u64 {
        let ones = (1 << self.fraction_bits) - 1;
        let magnitude = (bits & self.format.mask() & !self.sign) >> self.format.ignored_low_bits;
        let full = (magnitude | ones) & !(cleared & ones);
        self.signed(bits & self.sign != 0, full.clamp(self.smallest, self.largest))
    }

    /// The number with that sign, if the format has signs.
    #[inline]
    pub fn with_sign(&self, bits: u64, negative: bool) -> u64 {
        bits & !self.sign | if negative { self.sign } else { 0 }
    }

    /// A number times 2^`power`; exact for normal numbers that stay normal.
    #[inline]
    pub fn scaled(&self, bits: u64, power: i32) -> u64 {
        self.nudged(bits, i64::from(power) << self.fraction_bits)
    }

    /// The number with the opposite sign. Zero stays as it is in formats without −0.
    #[inline]
    pub fn negated(&self, bits: u64) -> u64 {
        if bits & !self.sign == 0 && !self.format.has_negative_zero() { bits } else { bits ^ self.sign }
    }

    /// Zero of that sign, or the nearest thing that the format has.
    #[inline]
    pub fn zero(&self, negative: bool) -> u64 {
        if negative && self.format.has_negative_zero() { self.sign } else { 0 }
    }

    /// A random pattern of the format's bits; ignored low bits are random too.
    #[inline]
    pub fn pattern(&self, random: u64) -> u64 {
        random & (self.format.mask() | self.ignored())
    }

    /// The mask of the low bits that the format ignores.
    pub fn ignored(&self) -> u64 {
        (1 << self.format.ignored_low_bits) - 1
    }

    /// The value of a bit pattern; `None` for infinities and NaNs. Exact unless it underflows.
    #[inline]
    pub fn value(&self, bits: u64) -> Option<f64> {
        match self.format.decode(bits) {
            Decoded::Finite { negative, significand, exponent } => {
                let lsb = exponent - self.fraction_bits as i32;
                // In two steps, where the power of two is no normal number.
                let magnitude = if lsb >= -1022 {
                    significand as i64 as f64 * power_of_two(lsb)
                } else {
                    let half = lsb / 2;
                    significand as f64 * power_of_two(half) * power_of_two(lsb - half)
                };
                Some(if negative { -magnitude } else { magnitude })
            }
            _ => None,
        }
    }

    /// `value` truncated to the format as by [`number`](Encoder::number); `None` if it is not normal.
    #[inline]
    pub fn truncated(&self, value: f64, fraction_mask: u64) -> Option<u64> {
        value.is_normal().then(|| {
            let bits = value.to_bits();
            let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
            self.number(value < 0.0, exponent, bits << 12 & fraction_mask)
        })
    }

    #[inline]
    fn signed(&self, negative: bool, magnitude: u64) -> u64 {
        magnitude << self.format.ignored_low_bits | if negative { self.sign } else { 0 }
    }
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_finite_and_not_zero_in_every_format() {
        for format in Format::ALL {
            let encoder = Encoder::new(format);
            for exponent in -1200..1200 {
                for fraction in [0, 1 << 63, u64::MAX] {
                    for negative in [false, true] {
                        let bits = encoder.number(negative, exponent, fraction);
                        let Decoded::Finite { significand, exponent: found, .. } = format.decode(bits) else {
                            panic!("{format} {bits:#x}");
                        };
                        assert_ne!(significand, 0, "{format} {bits:#x}");
                        if (encoder.min..encoder.max).contains(&exponent) {
                            assert_eq!(found, exponent, "{format} {bits:#x}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn patterns_are_made_finite_where_they_are_not() {
        for format in Format::ALL {
            let encoder = Encoder::new(format);
            for bits in 0..=u16::MAX {
                let bits = u64::from(bits) << (format.bits() + format.ignored_low_bits).saturating_sub(16);
                let bits = encoder.pattern(bits);
                let finite = encoder.made_finite(bits);
                assert!(matches!(format.decode(finite), Decoded::Finite { .. }), "{format} {bits:#x}");
                let was_finite = matches!(format.decode(bits), Decoded::Finite { .. });
                assert!(!was_finite || finite == bits, "{format} {bits:#x}");
            }
        }
    }

    #[test]
    fn values_agree_with_f32() {
        let encoder = Encoder::new(mmaprobe_model::format::FP32);
        for bits in (0..=u32::MAX).step_by(65_521) {
            let value = f32::from_bits(bits);
            let expected = value.is_finite().then_some(f64::from(value));
            assert_eq!(encoder.value(bits.into()), expected);
            if value.is_normal() {
                assert_eq!(encoder.truncated(value.into(), u64::MAX), Some(bits.into()));
            }
        }
    }
}
