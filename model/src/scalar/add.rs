//! Adding cells as fixed-point numbers.

use super::cell::{Cell, Sum};
use super::round::shift_right;
use crate::execute::BELOW_ALL;
use crate::rounding::Rounding;
use crate::tree::{Beyond, Carry, Exponents, Fused, ZeroTerms};

/// The exponent of what has no say.
const NONE: i32 = i32::MIN;

/// The exact sum; `None` if it does not fit, or a summand is no number. If it is only rounded, another number may stand for it that
/// every [`RoundTo`](crate::format::RoundTo) rounds the same way.
#[inline]
pub(super) fn exact(cells: &[Cell], children: &[usize], is_rounded: bool) -> Option<Sum> {
    let mut exponent = NONE;
    let (mut lowest, mut highest, mut high) = (i32::MAX, NONE, 0);
    for &child in children {
        let cell = &cells[child];
        if cell.is_special {
            return None;
        }
        exponent = exponent.max(cell.exponent);
        if !cell.is_zero() {
            lowest = lowest.min(cell.lsb);
            highest = highest.max(cell.top);
            high |= cell.halves[1];
        }
    }
    if highest == NONE {
        return Some(Sum::zero(exponent));
    }
    // Carries, and the sign.
    let width = highest - lowest + 3 + children.len().ilog2() as i32;
    if width < 64 && high == 0 {
        let mut sum = 0i64;
        for &child in children {
            let cell = &cells[child];
            // Where the shift is out of range the magnitude is zero.
            let multiple = cell.halves[0].wrapping_shl((cell.lsb.wrapping_sub(lowest)) as u32);
            let sign = -i64::from(cell.negative);
            sum += (multiple as i64 ^ sign) - sign;
        }
        return Some(total(sum.into(), lowest, exponent));
    }
    if width >= 127 {
        return match *children {
            [x, y] if is_rounded => for_rounding(&cells[x], &cells[y]),
            _ => None,
        };
    }
    let mut sum = 0i128;
    for &child in children {
        let cell = &cells[child];
        if !cell.is_zero() {
            sum += signed(cell.negative, cell.magnitude() << (cell.lsb - lowest));
        }
    }
    Some(total(sum, lowest, exponent))
}

/// The sum of two numbers, rounded to odd so far down that rounding it again gives what rounding the exact
/// sum would give; `None` if the numbers are too wide for that.
///
/// Rounded to odd is the smaller one, to a multiple of 2^q, and as the larger is an even multiple, the sum
/// is then rounded to odd, too (Boldo and Melquiond 2008, "Emulation of a FMA and correctly rounded sums:
/// proved algorithms using rounding to odd").
fn for_rounding(x: &Cell, y: &Cell) -> Option<Sum> {
    let exponent = x.exponent.max(y.exponent);
    for (zero, other) in [(x, y), (y, x)] {
        if zero.is_zero() {
            let (negative, magnitude, lsb) = (other.negative, other.magnitude(), other.lsb);
            return Some(Sum { negative, magnitude, lsb, exponent });
        }
    }
    let (large, small) = if x.leading_exponent() >= y.leading_exponent() { (x, y) } else { (y, x) };
    let leading = large.leading_exponent();
    let quantum = leading - 124;
    // No more than the leading bit may cancel.
    if large.lsb <= quantum || leading - small.leading_exponent() < 3 {
        return None;
    }
    let large_multiple = signed(large.negative, large.magnitude() << (large.lsb - quantum));
    let shift = quantum - small.lsb;
    let small_multiple = if shift <= 0 {
        small.magnitude() << -shift
    } else {
        Rounding::ToOdd.shift_right(small.negative, small.magnitude(), false, shift as u32)
    };
    let sum = large_multiple + signed(small.negative, small_multiple);
    Some(total(sum, quantum, exponent))
}

/// The fused sum; `None` if it does not fit, or a summand is no number.
#[inline]
pub(super) fn fused(fused: &Fused, cells: &[Cell], children: &[usize]) -> Option<Sum> {
    let mut largest = NONE;
    let (mut top, mut high) = (NONE, 0);
    for &child in children {
        let cell = &cells[child];
        if cell.is_special {
            return None;
        }
        if !cell.is_zero() {
            top = top.max(cell.top);
            high |= cell.halves[1];
            largest = largest.max(exponent_of(fused, cell));
        } else {
            let counts = match fused.zeros {
                ZeroTerms::Ignored => false,
                ZeroTerms::SumsCounted => cell.is_open_sum,
                ZeroTerms::Counted | ZeroTerms::CountedAsFp32 => true,
            };
            if counts {
                largest = largest.max(exponent_of(fused, cell));
            }
        }
    }
    if let Some(floor) = fused.floor {
        largest = largest.max(floor);
    }
    if top == NONE {
        return Some(Sum::zero(if largest == NONE { BELOW_ALL } else { largest }));
    }
    let alignments = &fused.alignment[..fused.alignment.len().min(children.len())];
    let bits = alignments.iter().map(|alignment| alignment.fraction_bits as i32);
    let (finest, coarsest) =
        bits.fold((0, 64), |(finest, coarsest), bits| (bits.max(finest), bits.min(coarsest)));
    let unit = largest - finest;
    // Of summands before and after their rounding, of carries, and of the sign.
    let width = (top - unit).max(finest - coarsest) + 3 + children.len().ilog2() as i32;
    let sum = if width < 64 && high == 0 {
        let uniform = alignments.len() == 1 && alignments[0].far.is_none() && !fused.sticky;
        if uniform && alignments[0].rounding == Rounding::TowardZero {
            Some((i128::from(truncated_sum(cells, children, unit)), false))
        } else {
            Some(narrow_sum(fused, cells, children, largest, unit))
        }
    } else if width < 127 {
        Some(wide_sum(fused, cells, children, largest, unit))
    } else {
        None
    };
    let (mut sum, lost) = sum?;
    if let Some(carry) = fused.carry {
        sum = limited(sum, carry, finest)?;
    }
    if lost && sum != 0 {
        // Half a unit more in magnitude.
        return Some(total(2 * sum + sum.signum(), unit - 1, largest));
    }
    Some(total(sum, unit, largest))
}

#[inline]
fn exponent_of(fused: &Fused, cell: &Cell) -> i32 {
    let is_zero = cell.is_zero();
    match fused.exponents {
        _ if is_zero && fused.zeros == ZeroTerms::CountedAsFp32 => cell.exponent - cell.lowered,
        Exponents::Normalised if !is_zero => cell.leading_exponent(),
        Exponents::Raw | Exponents::Normalised => cell.exponent,
    }
}

/// Sums magnitudes of 64 bits, truncated to multiples of 2^`unit`.
#[inline]
fn truncated_sum(cells: &[Cell], children: &[usize], unit: i32) -> i64 {
    let mut sum = 0;
    for &child in children {
        let cell = &cells[child];
        let magnitude = cell.halves[0];
        let shift = unit - cell.lsb;
        // Where the shift to the left is out of range the magnitude is zero.
        let multiple = if shift > 0 {
            if shift > 63 { 0 } else { magnitude >> shift }
        } else {
            magnitude.wrapping_shl(shift.wrapping_neg() as u32)
        };
        let sign = -i64::from(cell.negative);
        sum += (multiple as i64 ^ sign) - sign;
    }
    sum
}

/// The quantum and the rounding of a summand.
#[inline]
fn grid(fused: &Fused, position: usize, cell: &Cell, largest: i32) -> (i32, Rounding) {
    let alignment = fused.alignment_of(position);
    let rounding = match alignment.far {
        Some(far) if exponent_of(fused, cell) < largest - far.distance => far.rounding,
        _ => alignment.rounding,
    };
    (largest - alignment.fraction_bits as i32, rounding)
}

/// Sums magnitudes of 64 bits, each rounded to its own grid; and whether anything was lost.
#[inline]
fn narrow_sum(fused: &Fused, cells: &[Cell], children: &[usize], largest: i32, unit: i32) -> (i128, bool) {
    let mut sum = 0;
    let mut lost = false;
    for (position, &child) in children.iter().enumerate() {
        let cell = &cells[child];
        let magnitude = cell.halves[0];
        if magnitude == 0 {
            continue;
        }
        let (quantum, rounding) = grid(fused, position, cell, largest);
        let shift = quantum - cell.lsb;
        let multiple = if shift > 0 {
            lost |= magnitude.trailing_zeros() < shift as u32;
            shift_right(rounding, cell.negative, magnitude, shift as u32) << (quantum - unit)
        } else {
            magnitude << (cell.lsb - unit)
        };
        let sign = -i64::from(cell.negative);
        sum += (multiple as i64 ^ sign) - sign;
    }
    (sum.into(), lost && fused.sticky)
}

/// Sums magnitudes, each rounded to its own grid; and whether anything was lost.
#[inline]
fn wide_sum(fused: &Fused, cells: &[Cell], children: &[usize], largest: i32, unit: i32) -> (i128, bool) {
    let mut sum = 0;
    let mut lost = false;
    for (position, &child) in children.iter().enumerate() {
        let cell = &cells[child];
        let magnitude = cell.magnitude();
        if magnitude == 0 {
            continue;
        }
        let (quantum, rounding) = grid(fused, position, cell, largest);
        let shift = quantum - cell.lsb;
        let multiple = if shift > 0 {
            lost |= magnitude.trailing_zeros() < shift as u32;
            rounding.shift_right(cell.negative, magnitude, false, shift as u32) << (quantum - unit)
        } else {
            magnitude << (cell.lsb - unit)
        };
        sum += signed(cell.negative, multiple);
    }
    (sum, lost && fused.sticky)
}

/// Applies a limit to the integer part of a fused sum with so many fraction bits; `None` if the limit does
/// not fit.
fn limited(sum: i128, carry: Carry, fraction_bits: i32) -> Option<i128> {
    let limit_bits = carry.bits as i32 + fraction_bits;
    if limit_bits > 124 {
        return None;
    }
    let limit = 1i128 << limit_bits;
    if (-limit..limit).contains(&sum) {
        return Some(sum);
    }
    Some(match carry.beyond {
        Beyond::Wraps => (sum + limit).rem_euclid(2 * limit) - limit,
        Beyond::MagnitudeWraps => sum % limit,
        Beyond::Saturates => sum.clamp(-limit, limit - 1),
    })
}

#[inline]
fn signed(negative: bool, magnitude: u128) -> i128 {
    if negative { -(magnitude as i128) } else { magnitude as i128 }
}

#[inline]
fn total(sum: i128, lsb: i32, exponent: i32) -> Sum {
    Sum { negative: sum < 0, magnitude: sum.unsigned_abs(), lsb, exponent }
}
