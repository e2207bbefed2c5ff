//! What does a sum lose of two summands?
//!
//! What a sum with two summands loses of the smaller one shows hardly anywhere but where it decides to which neighbour the result
//! is rounded: a half of the result's ulp and a little more, or less. And what it loses of the larger one, or of its result, shows
//! where the smaller one cancels all but its last bits. Random values hardly ever lie there, and no third summand can cancel
//! what is larger before sums further up round the rest away. (MMA-Sim paper, section III.E, Tables I and II, asked of sums that
//! sums further up hide.)

use std::ops::RangeInclusive;

use rand_core::Rng;

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};
use crate::sparse::below;
use crate::sums::{self, Sum, any_of, significand_bits};

/// Binades that the largest summand may be below the largest that is asked.
const LOWER: u64 = 8;

/// So many random questions about two summands of a sum, which is [added to these next](sums::beside), and whose result is
/// rounded to so many fraction bits, if it is. The values lie `within` these exponents as far as they can.
pub fn dot_adds(
    signature: &Signature,
    (sum, beside, of_result): (&Sum, &[Summand], Option<u32>),
    number: usize,
    within: &RangeInclusive<i32>,
    rng: &mut (impl Rng + ?Sized),
) -> Vec<DotAdd> {
    let unit = sums::unit(signature, within);
    let asked = (0..number).filter_map(|_| {
        let first = below(sum.len() as u64, rng) as usize;
        let second = (first + 1 + below(sum.len() as u64 - 1, rng) as usize) % sum.len();
        let two = [any_of(&sum[first], rng)?, any_of(&sum[second], rng)?];
        let top = unit - below(LOWER, rng) as i32;
        match of_result {
            Some(bits) if below(2, rng) == 0 => {
                let third = any_of(beside, rng).filter(|_| below(2, rng) == 0);
                about_a_half(signature, (two, third), (top, bits), rng)
            }
            _ => nearly_cancelling(signature, two, top, rng),
        }
    });
    asked.collect()
}

/// What there is of the second summand is about a half of the ulp of the result, which is even, or odd where the first holds
/// that; the third cancels the first. `None` where the formats do not hold it.
fn about_a_half(
    signature: &Signature,
    ([large, small], third): ([Summand; 2], Option<Summand>),
    (top, fraction_bits): (i32, u32),
    rng: &mut (impl Rng + ?Sized),
) -> Option<DotAdd> {
    let bits = fraction_bits.min(significand_bits(signature, large));
    let significand = if below(2, rng) == 0 { 1 << bits } else { 1 << bits | 1 };
    let value = Dyadic { negative: below(2, rng) == 1, significand, exponent: top - bits as i32 };
    // Of a power of two less something, the ulp is half as large.
    let half = top - fraction_bits as i32 - 1 - below(2, rng) as i32;
    let [is_more, is_below] = [(); 2].map(|()| below(2, rng) == 0);
    let kinds = |bits: u32| match is_more {
        true => (1 << bits | 1, half - bits as i32),
        false => ((2 << bits) - 1, half - 1 - bits as i32),
    };
    longest(signature, small, rng).find_map(|bits| {
        let (significand, exponent) = kinds(bits);
        let other = Dyadic { negative: value.negative, significand, exponent };
        let of_third = third.map(|third| (third, -value));
        let values = |other| {
            [Some((large, value)), Some((small, other)), of_third].into_iter().flatten().collect::<Vec<_>>()
        };
        place::question(signature, &values(if is_below { -other } else { other }))
    })
}

/// The second summand is the negative of the first one without its last bits; `None` where the formats do not hold it.
fn nearly_cancelling(
    signature: &Signature,
    [long, short]: [Summand; 2],
    top: i32,
    rng: &mut (impl Rng + ?Sized),
) -> Option<DotAdd> {
    let random = rng.next_u64();
    let kind = below(4, rng);
    // A power of two, or two bits.
    let leading = if below(2, rng) == 0 { 1 } else { 2 | random & 1 };
    let lead = 63 - u64::leading_zeros(leading);
    let negative = below(2, rng) == 1;
    longest(signature, long, rng).find_map(|bits| {
        let last = match kind {
            0 | 1 => 1,
            2 => (1 << bits.min(2)) - 1,
            _ => random >> 8 & ((1 << bits) - 1),
        };
        let exponent = top - (lead + bits) as i32;
        let value = Dyadic { negative, significand: leading << bits | last, exponent };
        let other = Dyadic { negative: !negative, significand: leading, exponent: top - lead as i32 };
        place::question(signature, &[(long, value), (short, other)])
    })
}

/// Numbers of bits of a significand after the first that are tried, the most first: few long ones are products of two factors.
fn longest(
    signature: &Signature,
    summand: Summand,
    rng: &mut (impl Rng + ?Sized),
) -> impl Iterator<Item = u32> {
    let most = significand_bits(signature, summand).max(1);
    (1..=1 + below(u64::from(most), rng) as u32).rev()
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{FP16, FP32, RoundTo};
    use mmaprobe_model::tree::{Added, Fused, Normalised};
    use mmaprobe_model::{Executor, Model, Rounding};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    const SIGNATURE: Signature = Signature { k: 1, a: FP16, b: FP16, c: FP32, d: FP32, scale: None };

    fn questions(of_result: Option<u32>) -> Vec<DotAdd> {
        let sum: Sum = vec![vec![Summand::C], vec![Summand::Product(0)]];
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let questions = dot_adds(&SIGNATURE, (&sum, &[], of_result), 400, &(-14..=15), &mut rng);
        assert!(questions.len() > 200, "{}", questions.len());
        questions
    }

    fn answers(model: &Model, questions: &[DotAdd]) -> Vec<u64> {
        let mut executor = Executor::new(model).expect("it is a model");
        questions.iter().map(|DotAdd { a, b, c, sa, sb }| executor.dot_add(a, b, *c, sa, sb)).collect()
    }

    #[test]
    fn what_is_lost_below_the_bits_of_a_result_shows() {
        let questions = questions(Some(23));
        let exact = Model::chain_of_fma(FP16, FP32, 1);
        for fraction_bits in 25..34 {
            for rounding in [Rounding::TowardZero, Rounding::NearestTiesToEven] {
                let mut fused = exact.clone();
                fused.tree.rules[0].added = Added::Fused(Fused::uniform(fraction_bits, rounding));
                assert_ne!(
                    answers(&fused, &questions),
                    answers(&exact, &questions),
                    "{fraction_bits} bits, {rounding:?}"
                );
            }
        }
    }

    /// A sum that loses the last bits of the larger summand, and one that loses those of its result.
    #[test]
    fn what_is_lost_of_what_is_nearly_cancelled_shows() {
        let questions = questions(None);
        let mut rounded = Model::chain_of_fma(FP16, FP32, 1);
        let few = RoundTo { fraction_bits: 16, ..RoundTo::nearest_even(FP32) };
        rounded.tree.rules[0].normalised = Normalised::To(few);
        let mut fused = rounded.clone();
        fused.tree.rules[0].added = Added::Fused(Fused::uniform(16, Rounding::NearestTiesToEven));
        assert_ne!(answers(&fused, &questions), answers(&rounded, &questions));
    }
}
