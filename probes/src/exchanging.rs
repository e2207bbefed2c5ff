//! Do two summands change places without a trace?
//!
//! What two summands of one sum are given may be given the other way round: the sum is the same, whatever its arithmetic.
//! Where one of them meets a third first, it is another sum, and most are rounded otherwise. So three summands get three
//! values in all six orders: two that can be exchanged in each of these meet before the third, or all three meet at once.
//! Unlike masks, this assumes nothing about what a sum keeps or how it rounds, but that a value that is alone passes the
//! sums before it: values have few bits.

use std::ops::RangeInclusive;

use rand_core::Rng;

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};
use crate::sparse::below;

/// The probe's name.
pub const NAME: &str = "order/exchanging";
/// The question in words.
pub const QUESTION: &str = "which of three summands can be exchanged?";
/// Where the probe comes from.
pub const SOURCE: &str = "commutativity of each sum; rooted triples, after MMA-Sim paper, section III.C";

/// What summands are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The values of the three.
    pub values: [Dyadic; 3],
    /// Of all others, those that are −0, as bits; the rest are +0.
    pub negative: u64,
    /// How they were drawn.
    pub kind: Kind,
}

/// What three values are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two cancel; the third is what is left.
    Cancelled,
    /// Two are so small that they are rounded away beside the first, one by one.
    RoundedAway,
    /// Two nearly cancel.
    NearlyCancelled,
    /// Any distances.
    Any,
    /// Two cancel, or all are zero: what shows is the sign of a zero.
    Zeros {
        /// Whether some of the other summands are −0.
        beside_negative: bool,
    },
}

impl Trial {
    /// Whether the first two of the values leave at most little of each other.
    pub fn cancels(&self) -> bool {
        let [x, y, _] = self.values;
        x.negative != y.negative && x.leading() == y.leading()
    }
}

/// The orders in which three summands get three values, as indices of these.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0], [2, 0, 1]];

/// The questions about three summands, in the orders that the formats hold.
pub type Questions = [Option<DotAdd>; 6];

/// The questions about three summands with these values.
pub fn questions(signature: &Signature, three: [Summand; 3], trial: &Trial) -> Questions {
    ORDERS.map(|order| {
        let values = [0, 1, 2].map(|at| (three[at], trial.values[order[at]]));
        beside_zeros(signature, &values, trial)
    })
}

/// The question about one summand with one of these values, beside the same zeros.
pub fn alone(signature: &Signature, summand: Summand, trial: &Trial, value: usize) -> Option<DotAdd> {
    beside_zeros(signature, &[(summand, trial.values[value])], trial)
}

/// A question about these values, with all others +0 or −0 as a trial says; `None` where the formats do not hold them.
fn beside_zeros(signature: &Signature, values: &[(Summand, Dyadic)], trial: &Trial) -> Option<DotAdd> {
    type Values = Vec<(Summand, Dyadic)>;
    let (zeros, others): (Values, Values) = values.iter().partition(|(_, value)| value.significand == 0);
    // Scales are chosen for what is not zero; zeros keep their signs beside any.
    let mut question = place::question(signature, &others)?;
    let minus = Dyadic { negative: true, ..Dyadic::new(0, 0) };
    let is_free = |summand: &Summand| values.iter().all(|(own, _)| own != summand);
    let negative = signature
        .summands()
        .enumerate()
        .filter(|(index, summand)| trial.negative >> (index % 64) & 1 == 1 && is_free(summand));
    let negative = negative.map(|(_, summand)| (summand, minus));
    let is_set = zeros
        .into_iter()
        .chain(negative)
        .all(|(summand, zero)| place::set(&mut question, signature, summand, zero));
    is_set.then_some(question)
}

/// For each of three summands, whether the other two can be exchanged, which these answers show or not; `None` where
/// nothing could be asked.
pub fn exchangeable(answers: &[Option<u64>; 6]) -> [Option<bool>; 3] {
    [0, 1, 2].map(|left| {
        let mut found = None;
        for (one, order) in ORDERS.iter().enumerate() {
            let mut exchanged = *order;
            exchanged.swap((left + 1) % 3, (left + 2) % 3);
            let other = ORDERS.iter().position(|order| *order == exchanged).expect("all orders are there");
            if let (Some(x), Some(y)) = (answers[one], answers[other])
                && one < other
            {
                found = Some(found.unwrap_or(true) && x == y);
            }
        }
        found
    })
}

/// Binades that the largest value stays below the end of what passes all sums.
const HEADROOM: i32 = 3;
/// No value is further from 1: past every sum's width.
const FARTHEST: i32 = 72;

/// What random values are drawn from: of few bits, which the formats of products and of c hold if they have the range.
#[derive(Clone, Copy, Debug)]
pub struct Values<'c> {
    /// The exponents that most of them have.
    reach: (i32, i32),
    /// Distances at which something is known to be lost; those between values are often near one of them.
    cuts: &'c [i32],
}

impl<'c> Values<'c> {
    /// Values that mostly lie `within` these exponents.
    pub fn new(signature: &Signature, within: &RangeInclusive<i32>, cuts: &'c [i32]) -> Values<'c> {
        let (low, high) = place::reach_with_scales(signature);
        let high = high.min(within.end().saturating_sub(HEADROOM)).min(signature.d.max_exponent() - HEADROOM);
        let low = low.max(*within.start()).max(-FARTHEST);
        Values { reach: (low, high.min(FARTHEST).max(low)), cuts }
    }

    /// So many, of any kinds.
    pub fn trials(&self, count: usize, rng: &mut (impl Rng + ?Sized)) -> Vec<Trial> {
        (0..count)
            .map(|_| {
                let kind = kind(rng);
                trial(kind, self.reach, self.cuts, rng)
            })
            .collect()
    }

    /// So many, of the kinds that these are of, in turns. None if there are none.
    pub fn like(&self, known: &[Trial], count: usize, rng: &mut (impl Rng + ?Sized)) -> Vec<Trial> {
        let known = known.iter().cycle().take(count);
        known.map(|known| trial(known.kind, self.reach, self.cuts, rng)).collect()
    }
}

fn kind(rng: &mut (impl Rng + ?Sized)) -> Kind {
    match below(10, rng) {
        0 | 1 | 8 => Kind::Cancelled,
        2..=4 => Kind::RoundedAway,
        5 | 9 => Kind::NearlyCancelled,
        6 => Kind::Any,
        _ => Kind::Zeros { beside_negative: below(2, rng) == 1 },
    }
}

fn trial(kind: Kind, (low, high): (i32, i32), cuts: &[i32], rng: &mut (impl Rng + ?Sized)) -> Trial {
    let span = (high - low) as u64;
    let top = if below(2, rng) == 0 { high } else { high - below(span / 2 + 1, rng) as i32 };
    let room = (top - low) as u64;
    let distance = |rng: &mut _| {
        let near_cut = |rng: &mut _| match cuts.len() {
            0 => None,
            number => Some(cuts[below(number as u64, rng) as usize] + below(5, rng) as i32 - 2),
        };
        let any = |rng: &mut _| below(room + 1, rng) as i32;
        let cut = if below(2, rng) == 0 { near_cut(rng) } else { None };
        cut.filter(|cut| (0..=room as i32).contains(cut)).unwrap_or_else(|| any(rng))
    };
    let zero = |rng: &mut _| Dyadic { negative: below(2, rng) == 1, ..Dyadic::new(0, 0) };
    let x = number(top, rng);
    let mut negative = 0;
    let values = match kind {
        Kind::Cancelled => [x, -x, number(top - distance(rng), rng)],
        Kind::RoundedAway => {
            let distance = distance(rng);
            let next = (distance + below(4, rng) as i32 - 1).clamp(0, room as i32);
            [x, number(top - distance, rng), number(top - next, rng)]
        }
        Kind::NearlyCancelled => {
            let bits = 1 + below(4, rng);
            let next = Dyadic { significand: 1 << bits | 1, exponent: top - bits as i32, ..x };
            [next, -Dyadic { significand: 1, exponent: top, ..x }, number(top - distance(rng), rng)]
        }
        Kind::Any => [x, number(top - distance(rng), rng), number(top - distance(rng), rng)],
        Kind::Zeros { beside_negative } => {
            negative = if beside_negative { rng.next_u64() } else { 0 };
            match below(3, rng) {
                0 => [zero(rng), zero(rng), zero(rng)],
                _ => [x, -x, zero(rng)],
            }
        }
    };
    Trial { values, negative, kind }
}

/// A number of about 2^`exponent` with few bits.
fn number(exponent: i32, rng: &mut (impl Rng + ?Sized)) -> Dyadic {
    let (significand, bits) = [(1, 0), (1, 0), (3, 1), (5, 2)][below(4, rng) as usize];
    Dyadic { negative: below(2, rng) == 1, significand, exponent: exponent - bits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmaprobe_model::format::{self, Decoded, Format};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    const SIGNATURE: Signature =
        Signature { k: 2, a: format::BF16, b: format::BF16, c: format::FP32, d: format::FP32, scale: None };

    fn number(format: &Format, bits: u64) -> f32 {
        match format.decode(bits) {
            Decoded::Finite { negative, significand, exponent } => {
                let magnitude = significand as f32 * 2f32.powi(exponent - format.fraction_bits as i32);
                if negative { -magnitude } else { magnitude }
            }
            other => panic!("{other:?} was asked"),
        }
    }

    /// How often each two of c, p0 and p1 can alone be exchanged, of so many trials.
    fn exchanged(sum: impl Fn([f32; 3]) -> f32) -> [usize; 3] {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
        let three = [Summand::C, Summand::Product(0), Summand::Product(1)];
        let mut counts = [0; 3];
        // So near each other that binary64 adds them exactly.
        for trial in Values::new(&SIGNATURE, &(-20..=20), &[24]).trials(400, &mut rng) {
            let answers = questions(&SIGNATURE, three, &trial).map(|question| {
                let DotAdd { a, b, c, .. } = question?;
                let product = |k: usize| number(&SIGNATURE.a, a[k]) * number(&SIGNATURE.b, b[k]);
                let answer = sum([number(&SIGNATURE.c, c), product(0), product(1)]);
                Some(u64::from(answer.to_bits()))
            });
            assert!(answers.iter().all(Option::is_some), "{trial:?}");
            let ways = exchangeable(&answers);
            let mut alike = (0..3).filter(|&way| ways[way] == Some(true));
            if let (Some(first), None) = (alike.next(), alike.next()) {
                counts[first] += 1;
            }
        }
        counts
    }

    /// binary32 addition of this machine's processor, in each of three orders.
    #[test]
    fn those_that_meet_first_can_be_exchanged() {
        let orders: [fn([f32; 3]) -> f32; 3] =
            [|[c, p, q]| (p + q) + c, |[c, p, q]| (c + q) + p, |[c, p, q]| (c + p) + q];
        for (left, sum) in orders.into_iter().enumerate() {
            let mut counts = exchanged(sum);
            assert!(std::mem::take(&mut counts[left]) > 100);
            assert_eq!(counts, [0; 3]);
        }
    }

    #[test]
    fn all_of_one_sum_can_be_exchanged() {
        assert_eq!(exchanged(|values| values.iter().map(|&x| f64::from(x)).sum::<f64>() as f32), [0; 3]);
    }

    /// Block scales that bring 2^20 within reach of e2m1 leave the signs of zeros in other blocks alone.
    #[test]
    fn zeros_keep_their_signs_beside_scales() {
        let scale = Some(mmaprobe_model::tree::Scale { format: format::UE8M0, block: 2 });
        let factors = format::E2M1;
        let signature = Signature { k: 6, a: factors, b: factors, c: format::FP32, d: format::FP32, scale };
        let x = Dyadic::power(20);
        let minus = Dyadic { negative: true, ..Dyadic::new(0, 0) };
        let kind = Kind::Zeros { beside_negative: true };
        let trial = Trial { values: [x, -x, minus], negative: 1 << 4, kind };
        let three = [0, 1, 2].map(Summand::Product);
        let [question, ..] = questions(&signature, three, &trial);
        let question = question.expect("scales reach it");
        let is_negative = |k: usize| question.a[k] == place::sign_bit(&factors);
        assert_eq!([2, 3, 4, 5].map(is_negative), [true, false, true, false]);
    }

    /// A sum of zeros that is negative where one of two is: only signs of zeros show in which order it is formed.
    #[test]
    fn signs_of_zeros_show_an_order() {
        let add = |x: f32, y: f32| match x + y {
            0.0 if x != 0.0 || x.is_sign_negative() != y.is_sign_negative() => -0.0,
            0.0 => 0.0,
            sum => f32::from_bits((sum.to_bits() >> 12) << 12),
        };
        let [left, ..] = exchanged(|[c, p, q]| add(add(p, q), c));
        assert!(left > 20);
    }
}
