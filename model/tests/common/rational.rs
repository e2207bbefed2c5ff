//! Rationals whose denominator is 2^[`D`], as big integers, and rounding them: neighbours first,
//! then a decision by comparison.

use mmaprobe_model::Rounding;
use mmaprobe_model::exact::{Magnitude, Term};
use mmaprobe_model::format::{Overflow, RoundTo, Subnormals, Tininess};
use num_bigint::{BigInt, Sign};
use num_traits::{One, Signed, Zero};
use std::cmp::Ordering;

use super::spec::{Kind, Read, Spec};

/// fp64 products, scaled by block scales, are multiples of 2^−(2148 + 254).
pub const D: i32 = 2560;

pub fn power(e: i32) -> BigInt {
    BigInt::one() << (e + D) as usize
}

pub fn number(neg: bool, s: impl Into<BigInt>, l: i32) -> BigInt {
    let magnitude = s.into() << (l + D) as usize;
    if neg { -magnitude } else { magnitude }
}

/// The value of a number, or `None`.
pub fn value(spec: &Spec, bits: u64) -> Option<BigInt> {
    match spec.read(bits) {
        Read::Num { neg, s, l, .. } => Some(number(neg, s, l)),
        _ => None,
    }
}

/// Exponent of the leading one of a number that is not zero.
pub fn leading(x: &BigInt) -> i32 {
    x.bits() as i32 - 1 - D
}

/// The neighbours of a number on a grid; both are the number itself if it lies on it.
#[derive(Clone, Debug)]
pub struct Neighbours {
    pub low: BigInt,
    pub high: BigInt,
    /// Whether `low` is an odd multiple of the spacing above it in magnitude; `high` is then even.
    pub low_is_odd: bool,
}

pub fn neighbours(x: &BigInt, quantum: i32) -> Neighbours {
    if quantum < -D {
        return Neighbours { low: x.clone(), high: x.clone(), low_is_odd: false };
    }
    let unit = (quantum + D) as usize;
    // The shift of a BigInt rounds toward −∞.
    let multiple: BigInt = x >> unit;
    let low: BigInt = &multiple << unit;
    let high = if low == *x { low.clone() } else { &low + power(quantum) };
    Neighbours { low, high, low_is_odd: multiple.bit(0) }
}

/// Tables I and II, for one number between two neighbours.
pub fn decide(x: &BigInt, n: &Neighbours, mode: Rounding) -> BigInt {
    let pick = |high: bool| if high { n.high.clone() } else { n.low.clone() };
    if n.low == n.high {
        return n.low.clone();
    }
    let negative = x.is_negative();
    match mode {
        Rounding::Up => pick(true),
        Rounding::Down => pick(false),
        Rounding::TowardZero => pick(negative),
        Rounding::AwayFromZero => pick(!negative),
        Rounding::ToOdd => pick(!n.low_is_odd),
        _ => match (x + x).cmp(&(&n.low + &n.high)) {
            Ordering::Less => pick(false),
            Ordering::Greater => pick(true),
            Ordering::Equal => match mode {
                Rounding::NearestTiesUp => pick(true),
                Rounding::NearestTiesDown => pick(false),
                Rounding::NearestTiesToZero => pick(negative),
                Rounding::NearestTiesAway => pick(!negative),
                Rounding::NearestTiesToEven => pick(n.low_is_odd),
                Rounding::NearestTiesToOdd => pick(!n.low_is_odd),
                _ => unreachable!(),
            },
        },
    }
}

pub fn to_multiple(x: &BigInt, quantum: i32, mode: Rounding) -> BigInt {
    decide(x, &neighbours(x, quantum), mode)
}

/// A rounded number; zeros have a sign.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rounded {
    Number { neg: bool, x: BigInt },
    Infinite { neg: bool },
}

/// The neighbours that a rounding chooses from: on the grid with its lower end, and on the grid whose
/// exponent has none.
pub struct Grids {
    pub bounded: Neighbours,
    pub unbounded: Neighbours,
}

pub fn grids(x: &BigInt, spec: &Spec, fraction_bits: u32) -> Grids {
    let e = leading(x);
    let f = fraction_bits as i32;
    Grids { bounded: neighbours(x, e.max(spec.emin()) - f), unbounded: neighbours(x, e - f) }
}

/// Rounds `x`, which has the sign `neg` if it is zero. Conventions: overflow is decided after rounding
/// as if the exponent had no upper end; a number that rounds to zero keeps its sign; formats without a
/// sign, or without zero, deliver their smallest number for what lies below it.
pub fn round(x: &BigInt, neg: bool, to: &RoundTo) -> Rounded {
    let spec = Spec::of(to.format.name);
    if x.is_zero() || (x.is_negative() && !spec.sign) {
        return zero(&spec, neg && x.is_zero());
    }
    round_between(x, &grids(x, &spec, to.fraction_bits), &spec, to)
}

fn zero(spec: &Spec, neg: bool) -> Rounded {
    if spec.kind == Kind::Power {
        return Rounded::Number { neg: false, x: power(-127) };
    }
    Rounded::Number { neg: neg && spec.sign && spec.kind != Kind::Fnuz, x: BigInt::zero() }
}

pub fn round_between(x: &BigInt, grids: &Grids, spec: &Spec, to: &RoundTo) -> Rounded {
    let neg = x.is_negative();
    let rounded = decide(x, &grids.bounded, to.rounding);
    let smallest = power(spec.emin());
    if let Subnormals::Flushed { tiny, sign_kept } = to.subnormals {
        let judged = match tiny {
            Tininess::BeforeRounding => x.clone(),
            Tininess::AfterRounding => decide(x, &grids.unbounded, to.rounding),
            Tininess::Delivered => rounded.clone(),
        };
        if judged.abs() < smallest {
            return zero(spec, neg && sign_kept);
        }
    }
    if rounded.is_zero() {
        return zero(spec, neg);
    }
    let (s, l) = spec.max();
    let max = number(false, s, l);
    if rounded.abs() <= max {
        return Rounded::Number { neg, x: rounded };
    }
    let leads_back = match to.overflow {
        Overflow::Infinity => false,
        Overflow::Largest => true,
        Overflow::ByRounding => match to.rounding {
            Rounding::TowardZero => true,
            Rounding::Up => neg,
            Rounding::Down => !neg,
            _ => false,
        },
    };
    if !leads_back {
        return Rounded::Infinite { neg };
    }
    let dropped = (spec.m - to.fraction_bits) as i32;
    let largest = to_multiple(&max, l + dropped, Rounding::TowardZero);
    Rounded::Number { neg, x: if neg { -largest } else { largest } }
}

/// Whether a bit pattern is what a rounding delivers: an infinity where the format has one, else NaN,
/// else the largest number.
pub fn is_encoded(spec: &Spec, bits: u64, rounded: &Rounded) -> bool {
    match (rounded, spec.read(bits)) {
        (Rounded::Number { neg, x }, Read::Num { neg: got, s, l, .. }) => {
            number(got, s, l) == *x && (*neg == got || !x.is_zero())
        }
        (Rounded::Infinite { neg }, Read::Inf { neg: got }) => *neg == got,
        (Rounded::Infinite { .. }, Read::Nan) => spec.kind != Kind::Ieee,
        (Rounded::Infinite { neg }, Read::Num { neg: got, s, l, .. }) => {
            spec.kind == Kind::Finite && *neg == got && (s, l) == spec.max()
        }
        _ => false,
    }
}

/// The model's type for exact numbers, in its smallest form.
pub fn term(x: &BigInt, neg: bool) -> Term {
    if x.is_zero() {
        return Term::zero(neg, 0);
    }
    let (sign, magnitude) = (x.sign(), x.magnitude());
    let zeros = magnitude.trailing_zeros().expect("not zero");
    let limbs = (magnitude >> zeros).to_u64_digits();
    let limb = |i: usize| limbs.get(i).copied().unwrap_or(0) as u128;
    let magnitude =
        if limbs.len() <= 2 { Magnitude::Small(limb(0) | limb(1) << 64) } else { Magnitude::Large(limbs) };
    Term { negative: sign == Sign::Minus, magnitude, lsb: zeros as i32 - D, exponent: leading(x) }
}
