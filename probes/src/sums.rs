//! How does each sum of a known tree work?
//!
//! Where the order of summation is known, a sum can be asked on its own: values on few of its summands
//! and zeros elsewhere pass through the sums above it alone. What those round away is shown by a value
//! that cancels the largest one, outside the sum or inside. (MMA-Sim paper, sections III.D and III.E,
//! asks the same of the one sum that its trees have at each place.)

use std::ops::RangeInclusive;

use rand_core::Rng;

use crate::place::{self, Dyadic};
use crate::precision;
use crate::question::{DotAdd, Probe, Signature, Summand};
use crate::sparse::below;

/// Binades that a sum of a few values may be above the largest of them.
const HEADROOM: i32 = 3;

/// The exponent of the largest values in questions about sums: that of the ladders' "1", or lower where a sum of a few such
/// values would not lie within these exponents.
pub(crate) fn unit(signature: &Signature, within: &RangeInclusive<i32>) -> i32 {
    precision::unit(signature).min(within.end().saturating_sub(HEADROOM))
}

/// A sum: for each of its summands, the products and c that are in it.
pub type Sum = Vec<Vec<Summand>>;

/// Whether a product, or c, is in a sum.
pub(crate) fn is_in(sum: &Sum, summand: &Summand) -> bool {
    sum.iter().any(|leaves| leaves.contains(summand))
}

/// Any of these, if there are any.
pub(crate) fn any_of(summands: &[Summand], rng: &mut (impl Rng + ?Sized)) -> Option<Summand> {
    (!summands.is_empty()).then(|| summands[below(summands.len() as u64, rng) as usize])
}

/// What a sum is added to next in the smallest of these sums that it is in: the products and c in that, but for its own. What
/// cancels one of its summands there does so before sums further up round the rest away. Nothing, if it is in none.
pub fn beside(sum: &Sum, sums: &[Sum]) -> Vec<Summand> {
    let leaves = |sum: &Sum| sum.iter().map(Vec::len).sum::<usize>();
    let is_around = |other: &&Sum| {
        leaves(other) > leaves(sum) && sum.iter().flatten().all(|summand| is_in(other, summand))
    };
    let next = sums.iter().filter(is_around).min_by_key(|other| leaves(other));
    next.into_iter().flatten().flatten().copied().filter(|summand| !is_in(sum, summand)).collect()
}

/// How long significands are in questions about sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Significands {
    /// All have few bits: nine after the first, at most.
    Short,
    /// In half of the questions, one has as many bits as its summand holds, but no more than 30
    /// after the first, or fewer.
    Long,
}

/// Random questions about each of these sums, so many each. Most values lie `within` these exponents: those of
/// the powers of two that all sums which let ordinary numbers out hand on unchanged.
pub fn probe(
    signature: &Signature,
    sums: &[Sum],
    each: usize,
    (within, significands): (&RangeInclusive<i32>, Significands),
    rng: &mut (impl Rng + ?Sized),
) -> Probe {
    let asked = sums.iter().flat_map(|sum| about(signature, (sum, sums), each, (within, significands), rng));
    let dot_adds = asked.collect();
    Probe {
        name: "sums/each",
        question: "what does each sum make of few summands that are far apart, or nearly cancel?",
        source: "after MMA-Sim paper, sections III.D and III.E",
        dot_adds,
    }
}

/// Random questions about one of these sums, so many: what [`probe`] asks about each.
pub fn about(
    signature: &Signature,
    (sum, sums): (&Sum, &[Sum]),
    number: usize,
    (within, significands): (&RangeInclusive<i32>, Significands),
    rng: &mut (impl Rng + ?Sized),
) -> Vec<DotAdd> {
    let beside = beside(sum, sums);
    let asked = (0..number).filter_map(|_| {
        let values = values(signature, (sum, &beside), within, rng);
        match significands {
            Significands::Long if below(2, rng) == 0 => with_a_long_one(signature, values, rng),
            _ => place::question(signature, &values),
        }
    });
    asked.collect()
}

/// Products that are asked about alone, evenly spread.
const ALONE: usize = 4;
/// Exponents of the powers of two that are asked about alone: past the ends of every format with less range than
/// bfloat16, and of fp16's subnormals.
const EXPONENTS: RangeInclusive<i32> = -40..=40;

/// Products that are asked about alone as 1 and with a second bit, evenly spread; and how many bits after the first, with
/// none for 1.
const WITH_BITS: usize = 16;
const FRACTION_BITS: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 16, 19, 22];

/// Powers of two alone, and numbers with a second bit: which of them do all sums hand on unchanged?
pub fn range(signature: &Signature) -> Probe {
    let products =
        |number: usize| (0..signature.k).step_by(signature.k.div_ceil(number)).map(Summand::Product);
    let alone = |summand, value| place::question(signature, &[(summand, value)]);
    // A small number may be rounded away, or up to another, as its sign says.
    let powers = products(ALONE).chain([Summand::C]).flat_map(|summand| {
        let both = |exponent| [false, true].map(|negative| Dyadic { negative, ..Dyadic::power(exponent) });
        EXPONENTS.flat_map(both).filter_map(move |value| alone(summand, value))
    });
    let with_bits = products(WITH_BITS).chain([Summand::C]).flat_map(|summand| {
        let number =
            |bits: u32| Dyadic { negative: false, significand: 1 << bits | 1, exponent: -(bits as i32) };
        let both = move |bits| [number(bits), Dyadic { negative: true, ..number(bits) }];
        FRACTION_BITS.into_iter().flat_map(both).filter_map(move |value| alone(summand, value))
    });
    Probe {
        name: "sums/range",
        question: "which numbers do all sums hand on unchanged?",
        source: "after MMA-Sim paper, sections III.D and III.E",
        dot_adds: powers.chain(with_bits).collect(),
    }
}

/// Values of some summands that tell about a sum, which is added to these next.
fn values(
    signature: &Signature,
    (sum, beside): (&Sum, &[Summand]),
    within: &RangeInclusive<i32>,
    rng: &mut (impl Rng + ?Sized),
) -> Vec<(Summand, Dyadic)> {
    let unit = unit(signature, within);
    let top = unit - if below(2, rng) == 0 { 0 } else { below(8, rng) as i32 };
    let depth = i64::from(top) - i64::from(*within.start());
    let children = some(sum.len(), [1, 2, 2, 2, 2, 3, 3, 4][below(8, rng) as usize], rng);
    let mut values: Vec<(Summand, Dyadic)> = Vec::new();
    for (index, &child) in children.iter().enumerate() {
        let Some(summand) = any_of(&sum[child], rng) else { continue };
        let mut distance = if index == 0 { 0 } else { distance(rng) };
        if i64::from(distance) > depth && below(4, rng) != 0 {
            distance = below(depth.max(0) as u64 + 1, rng) as i32;
        }
        values.push((summand, number(top - distance, rng)));
    }
    // Another value cancels the first, most often outside the sum.
    if below(3, rng) == 0 {
        let used: Vec<Summand> = values.iter().map(|(summand, _)| *summand).collect();
        let free: Vec<Summand> = signature.summands().filter(|summand| !used.contains(summand)).collect();
        let outside: Vec<Summand> = free.iter().copied().filter(|summand| !is_in(sum, summand)).collect();
        let near: Vec<Summand> = outside.iter().copied().filter(|summand| beside.contains(summand)).collect();
        let outside = if near.is_empty() || below(2, rng) == 0 { outside } else { near };
        let from = if outside.is_empty() || below(4, rng) == 0 { &free } else { &outside };
        let first = values[0].1;
        values.extend(any_of(from, rng).map(|summand| (summand, -first)));
    }
    values
}

/// Bits after the first of a short significand, at most.
const SHORT: u32 = 9;
/// And of a long one.
const LONGEST_SIGNIFICAND: u32 = 30;

/// A question with these values, one of which has got a long significand; `None` if the formats hold it with no number
/// of bits. What is lost of a sum with many bits shows how it is rounded more often than what is lost of one with few.
/// A value that was to cancel the long one no longer does, and leaves its last bits.
fn with_a_long_one(
    signature: &Signature,
    mut values: Vec<(Summand, Dyadic)>,
    rng: &mut (impl Rng + ?Sized),
) -> Option<DotAdd> {
    let at = below(values.len() as u64, rng) as usize;
    let (summand, value) = values[at];
    let most = significand_bits(signature, summand).clamp(1, LONGEST_SIGNIFICAND);
    let bits = 1 + below(u64::from(most), rng) as u32;
    let kind = below(4, rng);
    let random = rng.next_u64();
    let leading = value.leading()?;
    // Few long significands are products of two factors.
    (1..=bits).rev().find_map(|bits| {
        let significand = match kind {
            0 | 1 => (2 << bits) - 1,
            2 => 1 << bits | 1,
            _ => 1 << bits | random & ((1 << bits) - 1),
        };
        values[at] = (summand, Dyadic { significand, exponent: leading - bits as i32, ..value });
        place::question(signature, &values)
    })
}

/// Bits after the first that the significand of a summand has, at most.
pub(crate) fn significand_bits(signature: &Signature, summand: Summand) -> u32 {
    match summand {
        Summand::C => signature.c.fraction_bits,
        Summand::Product(_) => signature.a.fraction_bits + signature.b.fraction_bits + 1,
    }
}

/// A distance below the largest value: none, a few bits, or as far as any sum reaches.
fn distance(rng: &mut (impl Rng + ?Sized)) -> i32 {
    match below(8, rng) {
        0 => 0,
        1 | 2 => below(6, rng) as i32,
        3..=5 => below(40, rng) as i32,
        _ => below(precision::LONGEST as u64, rng) as i32,
    }
}

/// A number of about 2^`exponent`: a power of two, or one with few bits, all ones or a bit far below.
pub(crate) fn number(exponent: i32, rng: &mut (impl Rng + ?Sized)) -> Dyadic {
    let (significand, bits) = match below(8, rng) {
        0..=2 => (1, 0),
        3 | 4 => (2 + below(2, rng), 1),
        5 => (4 + below(4, rng), 2),
        6 => {
            let bits = 1 + below(6, rng);
            ((2 << bits) - 1, bits)
        }
        _ => {
            let bits = 1 + below(u64::from(SHORT), rng);
            (1 << bits | 1, bits)
        }
    };
    Dyadic { negative: below(2, rng) == 1, significand, exponent: exponent - bits as i32 }
}

/// Some of the numbers below `n`, in random order; the first ones, which often differ, more often.
fn some(n: usize, count: usize, rng: &mut (impl Rng + ?Sized)) -> Vec<usize> {
    let mut chosen = Vec::new();
    while chosen.len() < count.min(n) {
        let among = if below(2, rng) == 0 { n.min(4) } else { n };
        let next = below(among as u64, rng) as usize;
        if !chosen.contains(&next) {
            chosen.push(next);
        } else if chosen.len() >= among {
            let rest = (0..n).find(|index| !chosen.contains(index));
            chosen.extend(rest);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmaprobe_model::{Decoded, Format, format};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn every_summand_of_a_sum_is_asked_about_and_few_at_a_time() {
        let (fp16, fp32) = (format::FP16, format::FP32);
        let signature = Signature { k: 8, a: fp16, b: fp16, c: fp32, d: fp32, scale: None };
        let sum: Sum = (2..8).map(|k| vec![Summand::Product(k)]).collect();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let probe = probe(&signature, &[sum], 300, (&(i32::MIN..=i32::MAX), Significands::Short), &mut rng);
        assert!(probe.dot_adds.len() > 200, "{} of 300 can be asked", probe.dot_adds.len());
        let mut asked = [0; 8];
        for question in &probe.dot_adds {
            let is_zero = |&bits: &u64| matches!(fp16.decode(bits), Decoded::Finite { significand: 0, .. });
            let set: Vec<usize> = (0..8).filter(|&k| !is_zero(&question.a[k])).collect();
            assert!(set.len() <= 5, "{question:?}");
            set.into_iter().for_each(|k| asked[k] += 1);
        }
        assert!(asked[2..].iter().all(|&count| count > 20), "{asked:?}");
    }

    #[test]
    fn what_a_sum_is_added_to_next_is_the_rest_of_the_smallest_around_it() {
        let product = |k| vec![Summand::Product(k)];
        let pair: Sum = vec![product(0), product(1)];
        let four: Sum = vec![vec![Summand::Product(0), Summand::Product(1)], product(2), product(3)];
        let last: Sum = vec![(0..4).map(Summand::Product).collect(), vec![Summand::C]];
        let sums = [last.clone(), pair.clone(), four.clone()];
        assert_eq!(beside(&pair, &sums), [2, 3].map(Summand::Product));
        assert_eq!(beside(&four, &sums), [Summand::C]);
        assert!(beside(&last, &sums).is_empty());
    }

    #[test]
    fn long_significands_are_asked_about_where_that_is_wanted() {
        let (fp16, fp32) = (format::FP16, format::FP32);
        let signature = Signature { k: 8, a: fp16, b: fp16, c: fp32, d: fp32, scale: None };
        let products = (0..7).map(|k| vec![Summand::Product(k)]);
        let sum: Sum = products.chain([vec![Summand::C]]).collect();
        // Bits after the first, of a number with so many trailing zeros.
        let bits = |format: Format, bits: u64| match format.decode(bits) {
            Decoded::Finite { significand, .. } if significand > 0 => {
                significand.ilog2() - significand.trailing_zeros()
            }
            _ => 0,
        };
        let counted = |significands| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
            let asked =
                probe(&signature, std::slice::from_ref(&sum), 600, (&(-14..=15), significands), &mut rng)
                    .dot_adds;
            assert!(asked.len() > 400, "{} of 600 can be asked", asked.len());
            let is_long_c = |question: &&DotAdd| bits(fp32, question.c) > SHORT;
            let is_long = |question: &&DotAdd| {
                let mut factors = question.a.iter().zip(&question.b);
                factors.any(|(&a, &b)| bits(fp16, a) + bits(fp16, b) > SHORT)
            };
            [asked.iter().filter(is_long_c).count(), asked.iter().filter(is_long).count()]
        };
        assert_eq!(counted(Significands::Short), [0, 0]);
        let [of_c, of_products] = counted(Significands::Long);
        assert!(of_c > 5 && of_products > 100, "{of_c} with c, {of_products} with products");
    }

    #[test]
    fn most_values_lie_within_what_is_asked_for() {
        let fp32 = format::FP32;
        let signature = Signature { k: 8, a: fp32, b: fp32, c: fp32, d: fp32, scale: None };
        let sum: Sum = (0..8).map(|k| vec![Summand::Product(k)]).collect();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        let probe = probe(&signature, &[sum], 300, (&(-14..=15), Significands::Short), &mut rng);
        let exponent = |bits: u64| match fp32.decode(bits) {
            Decoded::Finite { significand, exponent, .. } if significand > 0 => Some(exponent),
            _ => None,
        };
        let mut counts = [0; 2];
        for question in &probe.dot_adds {
            let exponents =
                question.a.iter().zip(&question.b).filter_map(|(&a, &b)| Some(exponent(a)? + exponent(b)?));
            exponents.for_each(|exponent| counts[usize::from((-14..=15).contains(&exponent))] += 1);
        }
        let [outside, within] = counts;
        assert!(outside > 0 && within > 8 * outside, "{within} within, {outside} outside");
    }
}
