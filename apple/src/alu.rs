//! What the unit does to one element: x·y + z, or what is left of that without some of the inputs.
//!
//! Every operation is exact up to one rounding to nearest, ties to even. A NaN result is the
//! [default NaN](default_nan), whatever NaNs went in.

use mmaprobe_model::format::RoundTo;
use mmaprobe_model::{Decoded, Format, Term};

use crate::operand::Operand;

/// An element: its bits, in the low bits, and their format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// The format.
    pub format: Format,
    /// The bits.
    pub bits: u64,
}

/// A number before it is rounded, or what is no number.
enum Value {
    Nan,
    Infinite { negative: bool },
    Exact(Term),
}

impl Value {
    fn of(element: Element) -> Value {
        let Element { format, bits } = element;
        match format.decode(bits) {
            Decoded::Nan { .. } => Value::Nan,
            Decoded::Infinite { negative } => Value::Infinite { negative },
            Decoded::Finite { negative, significand, exponent } => {
                let lsb = exponent - format.fraction_bits as i32;
                Value::Exact(Term::new(negative, significand.into(), lsb, exponent))
            }
        }
    }

    /// The exact product.
    fn product(x: Element, y: Element) -> Value {
        match (x.format.decode(x.bits), y.format.decode(y.bits)) {
            (Decoded::Nan { .. }, _) | (_, Decoded::Nan { .. }) => Value::Nan,
            (Decoded::Infinite { negative: n }, other) | (other, Decoded::Infinite { negative: n }) => {
                match other {
                    Decoded::Finite { significand: 0, .. } | Decoded::Nan { .. } => Value::Nan,
                    Decoded::Finite { negative, .. } | Decoded::Infinite { negative } => {
                        Value::Infinite { negative: n != negative }
                    }
                }
            }
            (
                Decoded::Finite { negative: nx, significand: sx, exponent: ex },
                Decoded::Finite { negative: ny, significand: sy, exponent: ey },
            ) => {
                let exponent = ex + ey;
                let lsb = exponent - (x.format.fraction_bits + y.format.fraction_bits) as i32;
                Value::Exact(Term::new(nx != ny, u128::from(sx) * u128::from(sy), lsb, exponent))
            }
        }
    }

    /// The sum, exact as far as a rounding can see. Its zero is −0 if both summands are −0, and +0 if
    /// they cancel (IEEE 754-2019, section 6.3).
    fn sum(x: Value, y: Value) -> Value {
        match (x, y) {
            (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
            (Value::Infinite { negative: x }, Value::Infinite { negative: y }) if x != y => Value::Nan,
            (Value::Infinite { negative }, _) | (_, Value::Infinite { negative }) => {
                Value::Infinite { negative }
            }
            (Value::Exact(x), Value::Exact(y)) => {
                let sum = Term::sum_for_rounding(&x, &y);
                let negative_zeros = sum.is_zero() && x.negative && y.negative;
                Value::Exact(Term { negative: sum.negative || negative_zeros, ..sum })
            }
        }
    }

    /// The bits in a format, after the one rounding.
    fn deliver(self, format: Format) -> u64 {
        match self {
            Value::Nan => default_nan(format),
            Value::Infinite { negative } => format.pack(Decoded::Infinite { negative }),
            Value::Exact(term) => format.pack(RoundTo::nearest_even(format).round(&term)),
        }
    }
}

/// The default NaN: positive and quiet, its payload empty.
pub const fn default_nan(format: Format) -> u64 {
    let quiet = 1 << (format.fraction_bits - 1);
    format.pack(Decoded::Nan { negative: false, fraction: quiet })
}

/// x·y + z, rounded once to the format of z.
pub fn fma(x: Element, y: Element, z: Element) -> u64 {
    Value::sum(Value::product(x, y), Value::of(z)).deliver(z.format)
}

/// What an operand's skip bits make of x, y and z; the result has the format of z.
pub fn operate(operand: &Operand, x: Element, y: Element, z: Element) -> u64 {
    let format = z.format;
    match (operand.skip_x, operand.skip_y, operand.skip_z) {
        (false, false, false) => fma(x, y, z),
        (false, false, true) => Value::product(x, y).deliver(format),
        (false, true, false) => Value::sum(Value::of(x), Value::of(z)).deliver(format),
        (false, true, true) => moved(x, format),
        (true, false, false) => Value::sum(Value::of(y), Value::of(z)).deliver(format),
        (true, false, true) => moved(y, format),
        (true, true, false) => z.bits,
        (true, true, true) => 0,
    }
}

/// An input alone: as it is, or converted if Z has another format.
fn moved(element: Element, format: Format) -> u64 {
    if element.format == format { element.bits } else { Value::of(element).deliver(format) }
}
