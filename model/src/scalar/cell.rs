//! Values of nodes, in at most 128 bits.

use super::round::Rounded;
use crate::exact::{Magnitude, Term};
use crate::execute::{Number, Value};

/// The value of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    /// The magnitude as an integer, its low half first.
    pub halves: [u64; 2],
    /// Exponent of its lowest bit.
    pub lsb: i32,
    /// The nominal exponent.
    pub exponent: i32,
    /// An upper bound of the leading one's exponent.
    pub top: i32,
    /// See [`Number::lowered`].
    pub lowered: i32,
    pub negative: bool,
    /// See [`Number::is_open_sum`].
    pub is_open_sum: bool,
    /// Whether it is no number: then its value stands among [`Scalar`](super::Scalar)'s specials.
    pub is_special: bool,
}

impl Cell {
    #[inline]
    pub const fn zero(negative: bool, exponent: i32) -> Cell {
        Cell {
            halves: [0; 2],
            lsb: exponent,
            exponent,
            top: exponent,
            lowered: 0,
            negative,
            is_open_sum: false,
            is_special: false,
        }
    }

    /// Takes over a sum that has not been rounded.
    #[inline]
    pub fn set(&mut self, sum: &Sum) {
        self.halves = [sum.magnitude as u64, (sum.magnitude >> 64) as u64];
        self.lsb = sum.lsb;
        self.exponent = sum.exponent;
        self.top = sum.leading_exponent();
        self.lowered = 0;
        self.negative = sum.negative;
        self.is_open_sum = false;
        self.is_special = false;
    }

    /// Becomes a number of a format with so many fraction bits.
    #[inline]
    pub fn round_to(&mut self, fraction_bits: i32, rounded: &Rounded) {
        self.halves = [rounded.significand, 0];
        self.lsb = rounded.exponent - fraction_bits;
        self.exponent = rounded.exponent;
        self.top = rounded.exponent;
        self.lowered = 0;
        self.negative = rounded.negative;
        self.is_open_sum = false;
        self.is_special = false;
    }

    #[inline]
    pub fn magnitude(&self) -> u128 {
        u128::from(self.halves[1]) << 64 | u128::from(self.halves[0])
    }

    #[inline]
    pub fn is_zero(&self) -> bool {
        self.halves == [0; 2]
    }

    /// Exponent of the leading one, if there is one.
    #[inline]
    pub fn leading_exponent(&self) -> i32 {
        let [low, high] = self.halves;
        self.lsb + if high == 0 { 63 - low.leading_zeros() as i32 } else { 127 - high.leading_zeros() as i32 }
    }

    /// Whether both are the same number, written in the same way.
    #[inline]
    pub fn is_same(&self, other: &Cell) -> bool {
        let key = |cell: &Cell| {
            let flags = [cell.negative, cell.is_open_sum, cell.is_special];
            (cell.halves, cell.lsb, cell.exponent, cell.lowered, flags)
        };
        key(self) == key(other)
    }

    pub fn value(&self) -> Value {
        let term = Term::new(self.negative, self.magnitude(), self.lsb, self.exponent);
        Value::Finite(Number { term, is_open_sum: self.is_open_sum, lowered: self.lowered })
    }

    /// The number as a cell, if it fits.
    pub fn of(number: &Number) -> Option<Cell> {
        let Number { term, is_open_sum, lowered } = number;
        let Magnitude::Small(magnitude) = term.magnitude else { return None };
        let sum = Sum { negative: term.negative, magnitude, lsb: term.lsb, exponent: term.exponent };
        let mut cell = Cell::zero(false, 0);
        cell.set(&sum);
        Some(Cell { lowered: *lowered, is_open_sum: *is_open_sum, ..cell })
    }
}

/// A sum before it is rounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub negative: bool,
    pub magnitude: u128,
    /// Exponent of the magnitude's lowest bit.
    pub lsb: i32,
    /// The nominal exponent.
    pub exponent: i32,
}

impl Sum {
    pub const fn zero(exponent: i32) -> Sum {
        Sum { negative: false, magnitude: 0, lsb: exponent, exponent }
    }

    /// Exponent of the leading one, if there is one.
    #[inline]
    pub fn leading_exponent(&self) -> i32 {
        let (low, high) = (self.magnitude as u64, (self.magnitude >> 64) as u64);
        self.lsb + if high == 0 { 63 - low.leading_zeros() as i32 } else { 127 - high.leading_zeros() as i32 }
    }
}
