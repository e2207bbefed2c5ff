//! Infinities, NaNs and the signs of zeros, one output at a time.
//!
//! The rules are those of the general executor. A step's inner sums need not be told apart: none is
//! normalised, all have the same rules, and what one hands on (an infinity, a NaN, the sign of a zero) is
//! what its summands would have brought to the outer sum themselves.

use super::kernel::Side;
use super::{FusedPlan, Step};
use crate::compiled::operand::{Class, Kind, NAN_SCALE};
use crate::format::Decoded;

/// What a step's result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// What the kernel found.
    Number,
    Zero {
        negative: bool,
    },
    Infinite {
        negative: bool,
    },
    Nan,
}

impl FusedPlan {
    /// The pattern of infinity.
    pub(super) fn infinity(&self, negative: bool) -> i32 {
        self.d_format.pack(Decoded::Infinite { negative }) as i32
    }

    /// The result of a step in a lane; `was_zero` says that the kernel found a sum of zero.
    #[cold]
    pub(super) fn outcome(
        &self,
        index: usize,
        step: &Step,
        (x, y): (Side, Side),
        lane: usize,
        c: i32,
        was_zero: bool,
    ) -> Outcome {
        for run in step.dots.iter().flatten() {
            if self.block.is_some()
                && (x.scale(run.block, lane) == NAN_SCALE || y.scale(run.block, lane) == NAN_SCALE)
            {
                return Outcome::Nan;
            }
        }
        // By sign: infinite operands, products that overflow; then the signs of zeros.
        let mut infinite = [false; 2];
        let mut overflowed = [false; 2];
        let mut zeros = [false; 2];
        let mut all_zero = true;
        for slot in step.all.first..step.all.end {
            let (a, b) = (x.class(slot, lane), y.class(slot, lane));
            let negative = usize::from(a.negative != b.negative);
            match (a.kind, b.kind) {
                (Kind::Nan, _) | (_, Kind::Nan) => return Outcome::Nan,
                (Kind::Infinite, Kind::Zero) | (Kind::Zero, Kind::Infinite) => return Outcome::Nan,
                (Kind::Infinite, _) | (_, Kind::Infinite) => infinite[negative] = true,
                (Kind::Zero, _) | (_, Kind::Zero) => zeros[negative] = true,
                (Kind::Number { significand: p, lsb: ep }, Kind::Number { significand: q, lsb: eq }) => {
                    all_zero = false;
                    overflowed[negative] |=
                        self.overflows_at.is_some_and(|limit| (p * q).ilog2() as i32 + ep + eq >= limit);
                }
            }
        }
        let c = self.class_of_c(index, c);
        match c.kind {
            Kind::Nan => return Outcome::Nan,
            Kind::Infinite => infinite[usize::from(c.negative)] = true,
            Kind::Zero => zeros[usize::from(c.negative)] = true,
            Kind::Number { .. } => all_zero = false,
        }
        // Infinite operands decide before products that overflow.
        for signs in [infinite, overflowed] {
            match signs {
                [true, true] => return Outcome::Nan,
                [false, false] => {}
                [_, negative] => return Outcome::Infinite { negative },
            }
        }
        if !was_zero {
            return Outcome::Number;
        }
        let negative = match zeros {
            [false, true] if all_zero => self.negative_zeros_stay,
            [true, false] if all_zero => false,
            _ => self.cancellation_is_negative,
        };
        Outcome::Zero { negative }
    }

    fn class_of_c(&self, index: usize, bits: i32) -> Class {
        let reader = if index == 0 { &self.c_reader } else { &self.sum_reader };
        reader.class(bits)
    }
}

impl Side<'_> {
    fn class(&self, slot: usize, lane: usize) -> Class {
        self.reader.class(self.bits[self.at(slot, lane)])
    }

    fn scale(&self, block: usize, lane: usize) -> i32 {
        self.scales[self.at(block, lane)]
    }

    fn at(&self, index: usize, lane: usize) -> usize {
        if self.width == 1 { index } else { index * self.width + lane }
    }
}
