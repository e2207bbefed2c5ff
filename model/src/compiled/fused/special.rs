//! Infinities, NaNs and the signs of zeros: all lanes at once where operands alone decide, else one output
//! at a time.
//!
//! The rules are those of the general executor. A step's inner sums need not be told apart: none is
//! normalised, all have the same rules, and what one hands on (an infinity, a NaN, the sign of a zero) is
//! what its summands would have brought to the outer sum themselves.

use super::kernel::Side;
use super::{FusedPlan, Step};
use crate::compiled::lanes::{Int, Lanes};
use crate::compiled::operand::{Class, Kind, NAN_SCALE, Reader, SpecialLanes};
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

    /// Whether only infinite operands and NaNs make a result that the kernel does not find: no product
    /// overflows, and a zero is +0.
    #[inline(always)]
    pub(super) fn specials_decide(&self) -> bool {
        self.overflows_at.is_none() && !self.negative_zeros_stay && !self.cancellation_is_negative
    }

    /// What infinite operands and NaNs make of the results of a step, in all lanes.
    #[inline(always)]
    pub(super) fn specials<L: Lanes, const PAIRS: bool>(
        &self,
        lanes: L,
        index: usize,
        step: &Step,
        (x, y): (Side, Side),
        c: L::W,
    ) -> SpecialLanes<L::W> {
        let zero = lanes.splat(0);
        let c = self.reader_of_c(index).specials(lanes, c);
        let mut nan = c.nan;
        // By sign.
        let mut infinite = [c.infinite.and(c.negative.eq(zero)), c.infinite.and(c.negative)];
        if self.scale.is_some() {
            for run in step.dots.iter().flatten() {
                let is_nan = |scales: L::W| scales.eq(lanes.splat(NAN_SCALE));
                let width = if PAIRS { L::N } else { 1 };
                nan = nan.or(is_nan(lanes.load(&x.scales[run.block * L::N..])));
                nan = nan.or(is_nan(Side::vector::<L, PAIRS>(lanes, &y.scales[run.block * width..])));
            }
        }
        let xs = Side::run::<true>(x.bits, step.all, L::N);
        let ys = Side::run::<PAIRS>(y.bits, step.all, L::N);
        let x_significands = Side::run::<true>(x.significands, step.all, L::N);
        let y_significands = Side::run::<PAIRS>(y.significands, step.all, L::N);
        for ((a, b), (p, q)) in xs.zip(ys).zip(x_significands.zip(y_significands)) {
            let a = x.reader.specials(lanes, lanes.load(a));
            let b = y.reader.specials(lanes, Side::vector::<L, PAIRS>(lanes, b));
            // Those of infinities and NaNs are zero, too.
            let no_number = |side: SpecialLanes<L::W>| side.nan.or(side.infinite);
            let a_zero = lanes.load(p).eq(zero).and(no_number(a).eq(zero));
            let b_zero = Side::vector::<L, PAIRS>(lanes, q).eq(zero).and(no_number(b).eq(zero));
            let no_product = a.infinite.and(b_zero).or(b.infinite.and(a_zero));
            nan = nan.or(a.nan).or(b.nan).or(no_product);
            let product = a.infinite.or(b.infinite);
            let negative = a.negative.xor(b.negative);
            infinite =
                [infinite[0].or(product.and(negative.eq(zero))), infinite[1].or(product.and(negative))];
        }
        nan = nan.or(infinite[0].and(infinite[1]));
        SpecialLanes { nan, infinite: infinite[0].or(infinite[1]), negative: infinite[1] }
    }

    fn reader_of_c(&self, index: usize) -> &Reader {
        if index == 0 { &self.c_reader } else { &self.sum_reader }
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
            if self.scale.is_some()
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
        let c = self.reader_of_c(index).class(c);
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
