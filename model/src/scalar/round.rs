//! Rounding a cell to a format.

use super::cell::Sum;
use crate::exact::Term;
use crate::format::{Decoded, RoundTo, Subnormals};
use crate::rounding::Rounding;

/// A [`RoundTo`], with what it asks of its format looked up.
#[derive(Clone, Debug)]
pub(super) struct Rounder {
    round: RoundTo,
    min_exponent: i32,
    max_exponent: i32,
    max_significand: u64,
    /// Fraction bits of the format that are not kept.
    dropped: u32,
    /// Whether numbers below the smallest normal one, and negative ones, are rounded like others.
    is_usual: bool,
    /// What +0 and −0 become.
    zeros: [Option<Rounded>; 2],
}

/// A number of the format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounded {
    pub negative: bool,
    pub significand: u64,
    pub exponent: i32,
}

impl Rounder {
    pub fn new(round: RoundTo) -> Rounder {
        let format = &round.format;
        let zero = |negative| rounded(&round, &Sum { negative, ..Sum::zero(0) });
        Rounder {
            zeros: [zero(false), zero(true)],
            min_exponent: format.min_exponent(),
            max_exponent: format.max_exponent(),
            max_significand: format.max_significand(),
            dropped: format.fraction_bits - round.fraction_bits,
            is_usual: round.subnormals == Subnormals::Kept && format.signed && format.has_negative_zero(),
            round,
        }
    }

    /// Fraction bits of the format.
    pub fn fraction_bits(&self) -> i32 {
        self.round.format.fraction_bits as i32
    }

    /// Rounds; `None` if the result is no number of the format.
    #[inline]
    pub fn round(&self, sum: &Sum) -> Option<Rounded> {
        let &Sum { negative, magnitude, lsb, .. } = sum;
        if magnitude == 0 {
            return self.zeros[usize::from(negative)];
        }
        let leading = sum.leading_exponent();
        let is_normal = leading >= self.min_exponent && self.round.format.signed;
        if !is_normal && !self.is_usual {
            return rounded(&self.round, sum);
        }
        let RoundTo { fraction_bits, rounding, .. } = self.round;
        let mut exponent = leading.max(self.min_exponent);
        let shift = exponent - fraction_bits as i32 - lsb;
        let mut significand = if shift <= 0 {
            (magnitude as u64) << -shift
        } else if magnitude >> 64 == 0 {
            shift_right(rounding, negative, magnitude as u64, shift as u32)
        } else {
            rounding.shift_right(negative, magnitude, false, shift as u32) as u64
        };
        if significand >> fraction_bits > 1 {
            significand >>= 1;
            exponent += 1;
        }
        significand <<= self.dropped;
        if exponent > self.max_exponent || exponent == self.max_exponent && significand > self.max_significand
        {
            return rounded(&self.round, sum);
        }
        Some(Rounded { negative, significand, exponent })
    }
}

/// Zero, what is flushed, what overflows.
#[cold]
fn rounded(round: &RoundTo, sum: &Sum) -> Option<Rounded> {
    match round.round(&Term::new(sum.negative, sum.magnitude, sum.lsb, sum.exponent)) {
        Decoded::Finite { negative, significand, exponent } => {
            Some(Rounded { negative, significand, exponent })
        }
        _ => None,
    }
}

/// As [`Rounding::shift_right`], for magnitudes of 64 bits and shifts of at least 1.
#[inline]
pub(super) fn shift_right(rounding: Rounding, negative: bool, magnitude: u64, shift: u32) -> u64 {
    let kept = magnitude.checked_shr(shift).unwrap_or(0);
    if rounding == Rounding::TowardZero {
        return kept;
    }
    let half = magnitude.checked_shr(shift - 1).unwrap_or(0) & 1 == 1;
    let rest = magnitude.checked_shl(65 - shift.min(65)).unwrap_or(0) != 0;
    kept + u64::from(rounding.increments(negative, kept & 1 == 1, half, rest))
}
