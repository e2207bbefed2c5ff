//! Which summands of one sum are added before the others?
//!
//! Sums that are handed on without being normalised lose small summands as one flat sum does: masks
//! see no order inside. But two small summands that are added first can make up a unit that is kept,
//! where each alone is cut off. So X on one of three summands, and three quarters of the last unit that
//! is kept beside X on the other two: if the answer depends on which of the three holds X, that one
//! meets the others late, or early.

use crate::place::{self, Dyadic};
use crate::precision;
use crate::question::{DotAdd, Signature, Summand};

/// The probe's name.
pub const NAME: &str = "order/nesting";
/// The question in words.
pub const QUESTION: &str = "does it matter which of three summands of a sum holds X beside two small values?";
/// Where the probe comes from.
pub const SOURCE: &str = "three-summand masks, after MMA-Sim paper, section III.C";

/// What the three summands hold, and c.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// X is 1, and the small values are ¾·2^−`cut`.
    pub cut: i32,
    /// Whether the small values are negative.
    pub negative: bool,
    /// Whether c holds −X, so that what is left of the small values shows.
    pub cancelled: bool,
}

/// The patterns for these numbers of fraction bits, and for one more of each.
pub fn patterns(cuts: &[i32]) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for &cut in cuts {
        for cut in [cut, cut + 1] {
            for negative in [false, true] {
                for cancelled in [true, false] {
                    let pattern = Pattern { cut, negative, cancelled };
                    if !patterns.contains(&pattern) {
                        patterns.push(pattern);
                    }
                }
            }
        }
    }
    patterns
}

/// The three questions about products `three`: X on the first, the second, the third. `None` if the
/// formats do not hold the values.
pub fn questions(signature: &Signature, three: [usize; 3], pattern: Pattern) -> Option<[DotAdd; 3]> {
    let unit = precision::unit(signature);
    let large = Dyadic::power(unit);
    let small = Dyadic { negative: pattern.negative, significand: 3, exponent: unit - pattern.cut - 2 };
    let mut asked = [0, 1, 2].map(|holder| {
        let mut values: Vec<(Summand, Dyadic)> = three
            .iter()
            .enumerate()
            .map(|(index, &k)| (Summand::Product(k), if index == holder { large } else { small }))
            .collect();
        if pattern.cancelled {
            values.push((Summand::C, -large));
        }
        place::question(signature, &values)
    });
    Some([asked[0].take()?, asked[1].take()?, asked[2].take()?])
}
