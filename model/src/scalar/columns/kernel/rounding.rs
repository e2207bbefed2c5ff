//! Rounding in lanes.

use super::{Cells, NEGATIVE, not};
use crate::compiled::lanes::{Int, Lanes};
use crate::format::{Overflow, RoundTo, Specials, Subnormals, Tininess};
use crate::rounding::Rounding;

/// A magnitude divided by 2^`shift`, which is at least 1, and rounded.
#[inline(always)]
pub(super) fn shift_right<L: Lanes>(
    lanes: L,
    rounding: Rounding,
    negative: L::D,
    magnitude: L::D,
    shift: L::D,
) -> L::D {
    let kept = magnitude.srl(shift);
    let one = lanes.splat_wide(1);
    let increments = match rounding {
        Rounding::TowardZero => return kept,
        Rounding::Up => not(lanes, negative.or(is_whole(magnitude, kept, shift))),
        Rounding::Down => negative.and(not(lanes, is_whole(magnitude, kept, shift))),
        Rounding::AwayFromZero => not(lanes, is_whole(magnitude, kept, shift)),
        Rounding::ToOdd => not(lanes, kept.and(one).eq(one).or(is_whole(magnitude, kept, shift))),
        _ => {
            // Of what is lost, the first bit, and whether there are others.
            let half = magnitude.srl(shift.sub(one)).and(one).eq(one);
            let above = lanes.splat_wide(65);
            let no_rest = magnitude.sll(above.sub(shift.min(above))).eq(lanes.splat_wide(0));
            let odd = kept.and(one).eq(one);
            match rounding {
                Rounding::NearestTiesUp => half.and(not(lanes, no_rest.and(negative))),
                Rounding::NearestTiesDown => half.and(not(lanes, no_rest).or(negative)),
                Rounding::NearestTiesToZero => half.and(not(lanes, no_rest)),
                Rounding::NearestTiesToEven => half.and(not(lanes, no_rest).or(odd)),
                Rounding::NearestTiesToOdd => half.and(not(lanes, no_rest.and(odd))),
                _ => half,
            }
        }
    };
    kept.sub(increments)
}

/// Whether nothing of a magnitude is lost, of which this is kept after shifting it to the right.
#[inline(always)]
fn is_whole<D: Int>(magnitude: D, kept: D, shift: D) -> D {
    kept.sll(shift).eq(magnitude)
}

/// Whether an overflow of this sign becomes the largest number.
fn becomes_largest(round: &RoundTo, negative: bool) -> bool {
    round.format.specials == Specials::FiniteOnly || round.overflows_to_largest(negative)
}

/// A magnitude divided by 2^`shift`, which may be negative, and rounded.
#[inline(always)]
fn to_multiple<L: Lanes>(lanes: L, rounding: Rounding, negative: L::D, magnitude: L::D, shift: L::D) -> L::D {
    let zero = lanes.splat_wide(0);
    let kept = shift_right(lanes, rounding, negative, magnitude, shift);
    L::D::select(shift.gt(zero), kept, magnitude.sll(zero.sub(shift)))
}

/// A sum rounded to a format.
#[inline(always)]
pub(super) fn rounded<L: Lanes>(
    lanes: L,
    round: &RoundTo,
    negative: L::D,
    magnitude: L::D,
    lowest: L::D,
    underflow_keeps_sign: bool,
) -> (Cells<L>, L::D) {
    let (zero, one, all) = (lanes.splat_wide(0), lanes.splat_wide(1), lanes.splat_wide(-1));
    let format = &round.format;
    let bits = i64::from(round.fraction_bits);
    let min_exponent = lanes.splat_wide(format.min_exponent().into());
    let max_exponent = lanes.splat_wide(format.max_exponent().into());
    let is_nothing = magnitude.eq(zero);
    let leading = lowest.add(lanes.splat_wide(63)).sub(lanes.leading_zeros(magnitude));
    // The exponent of the lowest bit kept of numbers under the exponent 0.
    let unit = lanes.splat_wide(bits).add(lowest);
    let exponent = L::D::select(is_nothing, min_exponent, leading.max(min_exponent));
    let significand = to_multiple(lanes, round.rounding, negative, magnitude, exponent.sub(unit));
    let largest_kept = lanes.splat_wide((2 << bits) - 1);
    let (is_tiny, tiny_keeps_sign) = match round.subnormals {
        Subnormals::Kept => (zero, true),
        Subnormals::Flushed { tiny, sign_kept } => {
            let is_below = min_exponent.gt(leading).and(not(lanes, is_nothing));
            let is_tiny = match tiny {
                Tininess::BeforeRounding => is_below,
                Tininess::Delivered => is_below.and(lanes.splat_wide(1 << bits).gt(significand)),
                Tininess::AfterRounding => {
                    let is_just_below = leading.eq(min_exponent.sub(one));
                    let shift = leading.sub(unit);
                    let kept = to_multiple(lanes, round.rounding, negative, magnitude, shift);
                    let becomes_normal = is_just_below.and(kept.gt(largest_kept));
                    is_below.and(not(lanes, becomes_normal))
                }
            };
            (is_tiny, sign_kept)
        }
    };
    let carries = significand.gt(largest_kept);
    let significand = L::D::select(carries, significand.srl(one), significand);
    let significand = L::D::select(is_tiny, zero, significand);
    let dropped = format.fraction_bits - round.fraction_bits;
    let significand = significand.sll(lanes.splat_wide(dropped.into()));
    let exponent = L::D::select(carries, exponent.add(one), exponent);
    let exponent = L::D::select(is_tiny, min_exponent, exponent);
    let most = lanes.splat_wide(format.max_significand() as i64);
    let overflows = exponent.gt(max_exponent).or(exponent.eq(max_exponent).and(significand.gt(most)));
    let plus = lanes.splat_wide(-i64::from(becomes_largest(round, false)));
    let minus = lanes.splat_wide(-i64::from(becomes_largest(round, true)));
    let is_largest = overflows.and(L::D::select(negative, minus, plus));
    let unfit = overflows.and(not(lanes, is_largest));
    // That of an overflow is the largest on the grid; that of a format without infinities, which an overflow to
    // infinity becomes, the largest of all.
    let is_on_grid =
        format.specials != Specials::FiniteOnly || dropped == 0 || round.overflow == Overflow::Largest;
    let unfit = if is_on_grid { unfit } else { overflows };
    let on_grid = format.max_significand() >> dropped << dropped;
    let significand = L::D::select(is_largest, lanes.splat_wide(on_grid as i64), significand);
    let exponent = L::D::select(is_largest, max_exponent, exponent);
    let keeps_sign = match format.has_negative_zero() {
        false => zero,
        true if !underflow_keeps_sign => is_nothing,
        true if !tiny_keeps_sign => not(lanes, is_tiny),
        true => all,
    };
    let negative = negative.and(keeps_sign.or(not(lanes, significand.eq(zero))));
    let cells = Cells {
        magnitude: significand,
        lowest: exponent.sub(lanes.splat_wide(format.fraction_bits.into())),
        exponent,
        flags: negative.and(lanes.splat_wide(NEGATIVE.into())),
    };
    (cells, unfit)
}
