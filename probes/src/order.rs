//! In which order are the summands added?
//!
//! X and −X on two summands cancel where they meet. What was added to either of them before that
//! is lost, if X is large enough; what comes later survives. So the *survivors* of every pair of
//! summands tell which sums contain both (MMA-Sim paper, section III.C; FPRev, Xie et al. 2025).

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};

/// The question in words.
pub const QUESTION: &str = "which summands are lost between X on one summand and -X on another?";
/// Where the probe comes from.
pub const SOURCE: &str = "MMA-Sim paper, section III.C; FPRev (Xie et al. 2025)";
/// The probe's name.
pub const NAME: &str = "order/masks";

/// One question about a pair: X on `i`, −X on `j`, and small values on some of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// The summand that holds X.
    pub i: Summand,
    /// The summand that holds −X.
    pub j: Summand,
    /// The summands that hold small values, and the values.
    pub small: Vec<(Summand, Dyadic)>,
    /// The input.
    pub question: DotAdd,
}

/// X and the smallest y for a signature: as far apart as every summand, and the result, can hold in
/// normal numbers, but no further apart than 2^140, and y no less than sums of less range can hold.
pub fn scales(signature: &Signature) -> (i32, i32) {
    within(signature, place::reach(signature))
}

/// The same for summands in different blocks, whose scales differ.
pub fn scales_across_blocks(signature: &Signature) -> (i32, i32) {
    within(signature, place::reach_with_scales(signature))
}

/// The same where X is a product larger than any result, and y may be a subnormal result: what is added on the way may
/// have more range than d. `None` if that brings them no further apart.
pub fn scales_beyond(signature: &Signature) -> Option<(i32, i32)> {
    let (x, y) = scales(signature);
    let (low, high) = place::reach_of_factors(signature);
    let smallest = low.max(signature.d.min_exponent() - signature.d.fraction_bits as i32);
    (high > x && x - y < FURTHEST).then(|| (high.min(smallest + FURTHEST), smallest))
}

fn within(signature: &Signature, (low, high): (i32, i32)) -> (i32, i32) {
    // The result has to hold y, and any sum on the way may be in its format: it has to hold 2·X.
    let low = low.max(signature.d.min_exponent());
    let high = high.min(signature.d.max_exponent() - 1);
    let smallest = if high - HELD_BY_ALL >= APART { low.max(HELD_BY_ALL) } else { low };
    (high.min(smallest + FURTHEST), smallest)
}

/// The exponent of a number that any sum on the way can hold: fp16's smallest normal number.
const HELD_BY_ALL: i32 = -14;
/// How far apart X and y have to be for that to be the smaller y's.
const APART: i32 = 40;
/// The furthest apart: X fits in fp32 then.
const FURTHEST: i32 = 140;

/// Small values that share a question, at most: sums on the way may hold fewer bits than the result does.
const TOGETHER: usize = 4;

/// How many small values of different weight one question can hold so that each can be told from
/// the result, and X still towers over all by at least 2^70: 1 if there is room for one only.
pub fn weights(signature: &Signature, (x, y): (i32, i32)) -> usize {
    let room = x - y - 70;
    (room.max(1) as usize).min(signature.d.fraction_bits as usize).clamp(1, TOGETHER)
}

/// The questions for one pair: each of the others holds a small value in one of them. X = 2^`x`, and the
/// smallest y = 2^`y`.
///
/// `negative_x` swaps X and −X, `negative_y` makes the small values negative: a rounding that is not
/// symmetric can turn a lost summand into a wrong sum under one choice of signs and not another.
pub fn masks(
    signature: &Signature,
    (i, j): (Summand, Summand),
    others: &[Summand],
    (x, y): (i32, i32),
    per_question: usize,
    (negative_x, negative_y): (bool, bool),
) -> Vec<Mask> {
    let large = Dyadic { negative: negative_x, ..Dyadic::power(x) };
    others
        .chunks(per_question)
        .filter_map(|chunk| {
            let small: Vec<(Summand, Dyadic)> = chunk
                .iter()
                .enumerate()
                .map(|(weight, &s)| (s, Dyadic { negative: negative_y, ..Dyadic::power(y + weight as i32) }))
                .collect();
            let mut values = small.clone();
            values.extend([(i, large), (j, -large)]);
            let question = place::question(signature, &values)?;
            Some(Mask { i, j, small, question })
        })
        .collect()
}
