//! Rounding a vector of fixed-point sums to a format.

use super::lanes::{Int, Lanes};
use crate::exact::Term;
use crate::format::{Format, RoundTo, Specials, Subnormals};
use crate::rounding::Rounding;
use crate::tree::{Normalised, Rule, ZeroSigns};

/// Rounds sums to an IEEE format of at most 32 bits that has subnormal numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounder {
    format: Format,
    fraction_bits: u32,
    rounding: Rounding,
    /// What too large a magnitude becomes, by sign.
    overflow: [u64; 2],
    zero: ZeroSigns,
}

/// A vector of results.
#[derive(Clone, Copy)]
pub(super) struct Rounded<W> {
    /// The bit patterns.
    pub bits: W,
    /// Whether the sum was zero.
    pub zero: W,
}

impl Rounder {
    /// What a rule does with its sum, if it is a rounding of this kind.
    pub fn new(rule: &Rule) -> Option<Rounder> {
        let Normalised::To(round) = &rule.normalised else { return None };
        let &RoundTo { format, fraction_bits, rounding, subnormals, .. } = round;
        let supported = format.specials == Specials::Ieee
            && format.bits() <= 32
            && format.ignored_low_bits == 0
            && subnormals == Subnormals::Kept;
        let overflow =
            [false, true].map(|negative| format.pack(round.round(&Term::new(negative, 1, 1 << 16, 0))));
        supported.then_some(Rounder { format, fraction_bits, rounding, overflow, zero: rule.zero })
    }

    /// Rounds sums of units 2^`unit`. A sum of zero gets the sign that cancellation gives.
    #[inline(always)]
    pub fn round<L: Lanes>(&self, lanes: L, sum: L::D, unit: L::D) -> Rounded<L::W> {
        let (zero, one) = (lanes.splat_wide(0), lanes.splat_wide(1));
        let format = &self.format;
        let fraction_bits = i64::from(self.fraction_bits);
        let dropped = format.fraction_bits - self.fraction_bits;
        let negative = sum.negative();
        let magnitude = sum.xor(negative).sub(negative);
        let normal_shift = lanes.splat_wide(63 - fraction_bits).sub(lanes.leading_zeros(magnitude));
        let subnormal_shift = lanes.splat_wide(i64::from(format.min_exponent()) - fraction_bits).sub(unit);
        let shift = normal_shift.max(subnormal_shift);
        // The exponent field less one: the hidden bit adds it.
        let field = shift.add(unit).add(lanes.splat_wide(fraction_bits + i64::from(format.bias) - 1));
        // Beyond that nothing changes.
        let shift = shift.min(lanes.splat_wide(65));
        // Only one of the counts is in range, or both are zero.
        let kept = magnitude.srl(shift).or(magnitude.sll(zero.sub(shift)));
        let kept = match self.rounding {
            Rounding::TowardZero => kept,
            mode => {
                let half = magnitude.srl(shift.sub(one)).and(one);
                let rest = magnitude.sll(lanes.splat_wide(65).sub(shift)).eq(zero).add(one);
                let odd = kept.and(one);
                let minus = negative.and(one);
                let plus = one.sub(minus);
                let increment = match mode {
                    Rounding::TowardZero => zero,
                    Rounding::Up => half.or(rest).and(plus),
                    Rounding::Down => half.or(rest).and(minus),
                    Rounding::AwayFromZero => half.or(rest),
                    Rounding::NearestTiesUp => half.and(rest.or(plus)),
                    Rounding::NearestTiesDown => half.and(rest.or(minus)),
                    Rounding::NearestTiesToZero => half.and(rest),
                    Rounding::NearestTiesAway => half,
                    Rounding::NearestTiesToEven => half.and(rest.or(odd)),
                    Rounding::NearestTiesToOdd => half.and(rest.or(one.sub(odd))),
                };
                kept.add(increment)
            }
        };
        let magnitude_bits = field
            .sll(lanes.splat_wide(format.fraction_bits.into()))
            .add(kept.sll(lanes.splat_wide(dropped.into())));
        let infinity = ((1i64 << format.exponent_bits) - 1) << format.fraction_bits;
        let overflows = magnitude_bits.gt(lanes.splat_wide(infinity - 1));
        let sign_bit = lanes.splat_wide(1 << (format.bits() - 1));
        let mut sign = negative.and(sign_bit);
        let underflows = kept.eq(zero);
        if !self.zero.underflow_keeps_sign {
            sign = L::D::select(underflows, zero, sign);
        }
        let [plus, minus] = self.overflow;
        let beyond = L::D::select(negative, lanes.splat_wide(minus as i64), lanes.splat_wide(plus as i64));
        let bits = L::D::select(overflows, beyond, magnitude_bits.or(sign));
        let is_zero = sum.eq(zero);
        let cancelled = if self.zero.cancellation_is_negative { sign_bit } else { zero };
        let bits = L::D::select(is_zero, cancelled, bits);
        Rounded { bits: lanes.narrow(bits), zero: lanes.narrow(is_zero) }
    }
}
