//! Which summands of a sum are summed first, by a sum that loses next to nothing?
//!
//! What such a sum loses shows where one of its summands is large and another is as small as formats hold: once the opposite
//! of the large one has been added, only the small one is left, or what has become of it. Where nothing is summed first,
//! it is the same whichever two these are.

use std::ops::RangeInclusive;

use rand_core::Rng;

use crate::place;
use crate::precision;
use crate::question::{DotAdd, Probe, Signature, Summand};
use crate::sparse::below;
use crate::sums::{self, Sum, any_of};

/// Questions about two summands of a sum, at most.
const EACH: usize = 24;

/// The name of the probe that these questions make.
pub const NAME: &str = "pairs";

/// Random questions about two summands of each of these sums that has more than two, about all pairs or, evenly spread, about
/// some: no more than so many in all, and than 24 about each. Half of the large numbers lie `within` these exponents, those of
/// the powers of two that all sums which let ordinary numbers out hand on unchanged, and half are as large as formats hold.
pub fn probe(
    signature: &Signature,
    sums: &[Sum],
    number: usize,
    within: &RangeInclusive<i32>,
    rng: &mut (impl Rng + ?Sized),
) -> Probe {
    let places = |count: usize| (0..count * count).map(move |both| (both / count, both % count));
    let wide: Vec<(&Sum, Vec<Summand>)> =
        sums.iter().filter(|sum| sum.len() > 2).map(|sum| (sum, sums::beside(sum, sums))).collect();
    let pairs: Vec<(&Sum, &[Summand], usize, usize)> = wide
        .iter()
        .flat_map(|(sum, beside)| {
            places(sum.len()).map(move |(large, small)| (*sum, &beside[..], large, small))
        })
        .filter(|(_, _, large, small)| large != small)
        .collect();
    let each = (number / pairs.len().max(1)).clamp(1, EACH);
    let step = pairs.len().div_ceil(number.max(1)).max(1);
    let asked = pairs.into_iter().step_by(step).flat_map(|pair| {
        let asked = (0..each).filter_map(|_| question(signature, pair, within, rng));
        asked.collect::<Vec<DotAdd>>()
    });
    Probe {
        name: NAME,
        question: "which summands of a sum are summed first, by one that loses what is far below the others?",
        source: "after MMA-Sim paper, section III.C",
        dot_adds: asked.collect(),
    }
}

/// A large number on one summand of a sum, a small one on another, and the opposite of the large one on a third, or, now and
/// then, on what the sum is added to next; `None` if formats do not hold them.
fn question(
    signature: &Signature,
    (sum, beside, large, small): (&Sum, &[Summand], usize, usize),
    within: &RangeInclusive<i32>,
    rng: &mut (impl Rng + ?Sized),
) -> Option<DotAdd> {
    let (large, small) = (any_of(&sum[large], rng)?, any_of(&sum[small], rng)?);
    let inside: Vec<Summand> = sum
        .iter()
        .filter(|leaves| !leaves.contains(&large) && !leaves.contains(&small))
        .flatten()
        .copied()
        .collect();
    let from = if beside.is_empty() || below(4, rng) > 0 { &inside } else { beside };
    let opposite = any_of(from, rng)?;
    let (lowest, highest) = place::reach_of_factors(signature);
    let lowest = lowest - (signature.a.fraction_bits + signature.b.fraction_bits) as i32;
    let top = match below(2, rng) {
        0 => sums::unit(signature, within),
        _ => highest.min(signature.c.max_exponent()).min(signature.d.max_exponent()) - 1,
    };
    let deepest = (top - lowest).clamp(1, precision::LONGEST);
    // As far as formats reach more often than near.
    let distance = deepest - below(deepest as u64, rng).min(below(deepest as u64, rng)) as i32;
    let value = sums::number(top, rng);
    let values = [(large, value), (small, sums::number(top - distance, rng)), (opposite, -value)];
    place::question(signature, &values)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::scalar::Scalar;
    use mmaprobe_model::tree::{Added, Fused, Node, Normalised, Rule};
    use mmaprobe_model::{Model, Rounding, format};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    /// Four products and c in one exact sum, or two of the products first, in one that keeps 36 bits.
    fn model(is_nested: bool) -> Model {
        let mut model = Model::chain_of_fma(format::FP16, format::FP32, 4);
        let sum = |children: Vec<usize>, rule| Node::Sum { children, rule };
        let leaves = (0..4).map(Node::Product).chain([Node::Accumulator]);
        let sums = match is_nested {
            true => vec![sum(vec![1, 3], 1), sum(vec![0, 2, 5, 4], 0)],
            false => vec![sum(vec![0, 1, 2, 3, 4], 0)],
        };
        model.tree.nodes = leaves.chain(sums).collect::<Vec<_>>().into();
        if is_nested {
            let added = Added::Fused(Fused::uniform(36, Rounding::TowardZero));
            let normalised = Normalised::No { exponent: None };
            model.tree.rules.push(Rule { added, normalised, ..model.tree.rules[0].clone() });
        }
        model
    }

    #[test]
    fn what_is_summed_first_shows() {
        let (fp16, fp32) = (format::FP16, format::FP32);
        let signature = Signature { k: 4, a: fp16, b: fp16, c: fp32, d: fp32, scale: None };
        let sum: Sum = signature.summands().map(|summand| vec![summand]).collect();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let asked = probe(&signature, &[sum], 400, &(-14..=15), &mut rng).dot_adds;
        assert!((200..=400).contains(&asked.len()), "{}", asked.len());
        let [flat, nested] = [false, true].map(model);
        let [mut flat, mut nested] = [&flat, &nested].map(|model| Scalar::new(model).expect("a model"));
        let differing: Vec<&DotAdd> = asked
            .iter()
            .filter(|q| {
                let [flat, nested] =
                    [&mut flat, &mut nested].map(|one| one.dot_add(&q.a, &q.b, q.c, &[], &[]));
                flat != nested
            })
            .collect();
        assert!(differing.len() > 10, "{} of {}", differing.len(), asked.len());
        // Both summands of what is summed first are asked about.
        let is_zero = |bits: u64| bits & 0x7fff == 0;
        assert!(differing.iter().all(|q| !is_zero(q.a[1]) && !is_zero(q.a[3])));
    }

    #[test]
    fn sums_of_two_are_not_asked_about() {
        let (fp16, fp32) = (format::FP16, format::FP32);
        let signature = Signature { k: 2, a: fp16, b: fp16, c: fp32, d: fp32, scale: None };
        let pair: Sum = (0..2).map(|k| vec![Summand::Product(k)]).collect();
        let outer: Sum = vec![(0..2).map(Summand::Product).collect(), vec![Summand::C]];
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        assert!(probe(&signature, &[pair, outer], 400, &(-14..=15), &mut rng).dot_adds.is_empty());
    }
}
