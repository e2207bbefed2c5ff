//! Exact numbers: integers times powers of two.

use num_bigint::BigInt;

use crate::rounding::{Place, Rounding};

/// The number `value` × 2^`unit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dyadic {
    value: Integer,
    unit: i32,
}

/// An integer; nearly always a short one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Integer {
    /// Below 2^[`SHORT`] in magnitude.
    Short(i128),
    /// Any other.
    Long(BigInt),
}

/// Bits of a short integer's magnitude: two fewer than fit, so that a rounding cannot overflow.
const SHORT: u32 = 125;

fn bits(value: i128) -> u32 {
    128 - value.unsigned_abs().leading_zeros()
}

fn integer(value: BigInt) -> Integer {
    if value.bits() <= u64::from(SHORT) {
        Integer::Short(i128::try_from(value).expect("125 bits fit into an i128"))
    } else {
        Integer::Long(value)
    }
}

impl Dyadic {
    /// Zero.
    pub const ZERO: Dyadic = Dyadic { value: Integer::Short(0), unit: 0 };

    /// `value` × 2^`unit`, for magnitudes below 2^125.
    pub fn new(value: i128, unit: i32) -> Dyadic {
        debug_assert!(bits(value) <= SHORT);
        Dyadic { value: Integer::Short(value), unit }
    }

    /// 2^`exponent`.
    pub fn power(exponent: i32) -> Dyadic {
        Dyadic::new(1, exponent)
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self.value, Integer::Short(0))
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        match &self.value {
            Integer::Short(value) => *value < 0,
            Integer::Long(value) => value.sign() == num_bigint::Sign::Minus,
        }
    }

    /// Its negation.
    pub fn negated(self) -> Dyadic {
        let value = match self.value {
            Integer::Short(value) => Integer::Short(-value),
            Integer::Long(value) => Integer::Long(-value),
        };
        Dyadic { value, ..self }
    }

    /// Exponent of the magnitude's leading one; `None` for zero.
    pub fn leading(&self) -> Option<i32> {
        match &self.value {
            Integer::Short(0) => None,
            Integer::Short(value) => Some(self.unit + bits(*value) as i32 - 1),
            Integer::Long(value) => Some(self.unit + value.bits() as i32 - 1),
        }
    }

    /// The number times `factor` × 2^`unit`.
    pub fn times(&self, factor: u32, unit: i32) -> Dyadic {
        let value = match &self.value {
            Integer::Short(value) if bits(*value) + 32 <= SHORT => Integer::Short(value * i128::from(factor)),
            Integer::Short(value) => integer(BigInt::from(*value) * factor),
            Integer::Long(value) => integer(value * factor),
        };
        Dyadic { value, unit: self.unit + unit }
    }

    /// Whether it is a multiple of 2^`quantum`.
    pub fn is_multiple_of(&self, quantum: i32) -> bool {
        let zeros = match &self.value {
            Integer::Short(0) => return true,
            Integer::Short(value) => i64::from(value.trailing_zeros()),
            Integer::Long(value) => value.trailing_zeros().map_or(0, |zeros| zeros as i64),
        };
        zeros >= i64::from(quantum) - i64::from(self.unit)
    }

    /// The number rounded to a multiple of 2^`quantum`.
    pub fn rounded(&self, quantum: i32, rounding: Rounding) -> Dyadic {
        if quantum <= self.unit {
            return self.clone();
        }
        let shift = (quantum - self.unit) as u32;
        let value = match &self.value {
            Integer::Short(value) => Integer::Short(rounded_short(*value, shift, rounding)),
            Integer::Long(value) => integer(rounded_long(value, shift, rounding)),
        };
        Dyadic { value, unit: quantum }
    }

    /// The number as a multiple of 2^`quantum`, of which it is one, where its magnitude is below 2^125.
    pub fn short(&self, quantum: i32) -> Option<i128> {
        let Integer::Short(value) = self.value else { return None };
        if value == 0 {
            return Some(0);
        }
        let shift = i64::from(self.unit) - i64::from(quantum);
        if shift >= 0 {
            return (shift + i64::from(bits(value)) <= i64::from(SHORT)).then(|| value << shift);
        }
        debug_assert!(self.is_multiple_of(quantum));
        Some(if shift < -127 { 0 } else { value >> -shift })
    }

    /// The exact sum of two numbers, or a short number on the same side of every multiple of 2^`q`, for
    /// every `q` of at least the larger one's leading exponent − 60: all that a rounding to 53 bits sees.
    pub fn sum_to_round(x: &Dyadic, y: &Dyadic) -> Dyadic {
        let (large, small) = if x.leading() >= y.leading() { (x, y) } else { (y, x) };
        if let (Some(leading), Some(top)) = (large.leading(), small.leading()) {
            // The larger one is a multiple of 2^grid, and the smaller one lies within the next ones.
            let grid = large.unit.min(leading - 60);
            if top < grid {
                let bit = Dyadic::power(grid - 1);
                let bit = if small.is_negative() { bit.negated() } else { bit };
                return Dyadic::sum([large, &bit].into_iter());
            }
        }
        Dyadic::sum([x, y].into_iter())
    }

    /// The exact sum.
    pub fn sum<'d>(terms: impl Iterator<Item = &'d Dyadic> + Clone) -> Dyadic {
        let mut unit = i32::MAX;
        let mut top = i32::MIN;
        let mut count = 0usize;
        for term in terms.clone() {
            if let Some(leading) = term.leading() {
                unit = unit.min(term.unit);
                top = top.max(leading);
                count += 1;
            }
        }
        if count == 0 {
            return Dyadic::ZERO;
        }
        let carries = usize::BITS - count.leading_zeros();
        let width = (top - unit + 1) as u32 + carries;
        if width <= SHORT {
            let aligned = |term: &Dyadic| match term.value {
                Integer::Short(0) => 0,
                Integer::Short(value) => value << (term.unit - unit),
                Integer::Long(_) => unreachable!("a long summand of a short sum"),
            };
            return Dyadic::new(terms.map(aligned).sum(), unit);
        }
        let mut total = BigInt::ZERO;
        for term in terms.filter(|term| !term.is_zero()) {
            let shift = term.unit - unit;
            match &term.value {
                Integer::Short(value) => total += BigInt::from(*value) << shift,
                Integer::Long(value) => total += value << shift,
            }
        }
        Dyadic { value: integer(total), unit }
    }
}

/// `value` / 2^`shift`, rounded to an integer.
fn rounded_short(value: i128, shift: u32, rounding: Rounding) -> i128 {
    let (floor, place) = if shift > 126 {
        // The magnitude is below half of 2^shift.
        let place = match value {
            0 => Place::Exact,
            1.. => Place::BelowHalf,
            _ => Place::AboveHalf,
        };
        (if value < 0 { -1 } else { 0 }, place)
    } else {
        let rest = value & ((1i128 << shift) - 1);
        let half = 1i128 << (shift - 1);
        let place = match rest.cmp(&half) {
            _ if rest == 0 => Place::Exact,
            std::cmp::Ordering::Less => Place::BelowHalf,
            std::cmp::Ordering::Equal => Place::Half,
            std::cmp::Ordering::Greater => Place::AboveHalf,
        };
        (value >> shift, place)
    };
    floor + i128::from(rounding.goes_up(value < 0, floor & 1 != 0, place))
}

/// `value` / 2^`shift`, rounded to an integer.
fn rounded_long(value: &BigInt, shift: u32, rounding: Rounding) -> BigInt {
    // Shifting a BigInt rounds down.
    let floor: BigInt = value >> shift;
    let zeros = value.trailing_zeros().unwrap_or(u64::MAX);
    let shift = u64::from(shift);
    let place = match (zeros >= shift, value.bit(shift - 1)) {
        (true, _) => Place::Exact,
        (_, false) => Place::BelowHalf,
        (_, true) if zeros == shift - 1 => Place::Half,
        (_, true) => Place::AboveHalf,
    };
    let negative = value.sign() == num_bigint::Sign::Minus;
    if rounding.goes_up(negative, floor.bit(0), place) { floor + 1 } else { floor }
}
