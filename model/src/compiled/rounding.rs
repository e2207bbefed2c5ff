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

/// A vector of fixed-point sums: of 64 bits each, or of 32.
pub(super) trait Sum<L: Lanes>: Int {
    const BITS: i64;
    /// The low bits of a number in each lane.
    fn splat(lanes: L, value: i64) -> Self;
    fn leading_zeros(self, lanes: L) -> Self;
    fn widen(lanes: L, words: L::W) -> Self;
    fn narrow(self, lanes: L) -> L::W;
}

/// Sums of 64 bits.
#[derive(Clone, Copy)]
pub(super) struct Wide<V>(pub V);

/// Sums of 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Narrow<V>(pub V);

macro_rules! sum {
    ($sum:ident, $vector:ident, $bits:literal, |$lanes:ident, $value:ident| $splat:expr, $leading_zeros:ident,
     |$lanes_:ident, $words:ident| $widen:expr, |$lanes__:ident, $vector_:ident| $narrow:expr) => {
        impl<V: Int> Int for $sum<V> {
            sum!(@binary $sum: add, sub, and, or, xor, eq, gt, srl, sll, sra, truncated, max, min);
            #[inline(always)]
            fn negative(self) -> Self {
                $sum(self.0.negative())
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $sum(self.0.abs())
            }
        }
        impl<L: Lanes> Sum<L> for $sum<L::$vector> {
            const BITS: i64 = $bits;
            #[inline(always)]
            fn splat($lanes: L, $value: i64) -> Self {
                $sum($splat)
            }
            #[inline(always)]
            fn leading_zeros(self, lanes: L) -> Self {
                $sum(lanes.$leading_zeros(self.0))
            }
            #[inline(always)]
            fn widen($lanes_: L, $words: L::W) -> Self {
                $sum($widen)
            }
            #[inline(always)]
            fn narrow(self, $lanes__: L) -> L::W {
                let $vector_ = self.0;
                $narrow
            }
        }
    };
    (@binary $sum:ident: $($name:ident),*) => {
        $(
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                $sum(self.0.$name(other.0))
            }
        )*
    };
}

sum!(
    Wide,
    D,
    64,
    |lanes, value| lanes.splat_wide(value),
    leading_zeros,
    |lanes, words| lanes.widen(words),
    |lanes, vector| lanes.narrow(vector)
);
sum!(
    Narrow,
    W,
    32,
    |lanes, value| lanes.splat(value as i32),
    leading_zeros_narrow,
    |_lanes, words| words,
    |_lanes, vector| vector
);

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
            && rounding != Rounding::ToOdd
            && subnormals == Subnormals::Kept;
        let overflow =
            [false, true].map(|negative| format.pack(round.round(&Term::new(negative, 1, 1 << 16, 0))));
        supported.then_some(Rounder { format, fraction_bits, rounding, overflow, zero: rule.zero })
    }

    /// Rounds sums of units 2^`unit`. A sum of zero gets the sign that cancellation gives.
    #[inline(always)]
    pub fn round<L: Lanes, V: Sum<L>>(&self, lanes: L, sum: V, unit: V) -> Rounded<L::W> {
        let splat = |value| V::splat(lanes, value);
        let (zero, one) = (splat(0), splat(1));
        let format = &self.format;
        let fraction_bits = i64::from(self.fraction_bits);
        let dropped = format.fraction_bits - self.fraction_bits;
        let negative = sum.negative();
        let magnitude = sum.abs();
        let normal_shift = splat(V::BITS - 1 - fraction_bits).sub(magnitude.leading_zeros(lanes));
        let subnormal_shift = splat(i64::from(format.min_exponent()) - fraction_bits).sub(unit);
        let shift = normal_shift.max(subnormal_shift);
        // The exponent field less one: the hidden bit adds it.
        let field = shift.add(unit).add(splat(fraction_bits + i64::from(format.bias) - 1));
        // Where it is larger than that the number is too large, and the field might not fit.
        let largest_field = (1 << format.exponent_bits) - 3;
        let too_large = field.gt(splat(largest_field));
        let field = field.min(splat(largest_field));
        // Beyond that nothing changes.
        let shift = shift.min(splat(V::BITS + 1));
        // Only one of the counts is in range, or both are zero.
        let kept = magnitude.srl(shift).or(magnitude.sll(zero.sub(shift)));
        let kept = match self.rounding {
            Rounding::TowardZero => kept,
            mode => {
                let half = magnitude.srl(shift.sub(one)).and(one);
                let rest = magnitude.sll(splat(V::BITS + 1).sub(shift)).eq(zero).add(one);
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
                    Rounding::ToOdd => unreachable!("no rounder is made for it"),
                };
                kept.add(increment)
            }
        };
        let magnitude_bits =
            field.sll(splat(format.fraction_bits.into())).add(kept.sll(splat(dropped.into())));
        let infinity = ((1i64 << format.exponent_bits) - 1) << format.fraction_bits;
        let overflows = too_large.or(magnitude_bits.gt(splat(infinity - 1)));
        let sign_bit = splat(1 << (format.bits() - 1));
        let mut sign = negative.and(sign_bit);
        if !self.zero.underflow_keeps_sign {
            sign = V::select(kept.eq(zero), zero, sign);
        }
        let [plus, minus] = self.overflow;
        let beyond = V::select(negative, splat(minus as i64), splat(plus as i64));
        let bits = V::select(overflows, beyond, magnitude_bits.or(sign));
        let is_zero = sum.eq(zero);
        let cancelled = if self.zero.cancellation_is_negative { sign_bit } else { zero };
        let bits = V::select(is_zero, cancelled, bits);
        Rounded { bits: bits.narrow(lanes), zero: is_zero.narrow(lanes) }
    }
}
