//! The order of summation from what leaves traces, in formats whose masks show none.
//!
//! As with [masks](super::order), X and −X on two products cancel where they meet; but what has met one of them before is not
//! lost, it leaves [a trace](mmaprobe_probes::traces). With which values it does depends on what sums keep. So all are tried on
//! a few pairs, and those on all pairs with which most of them show some of the other summands but not all.

use mmaprobe_probes::traces::{self, Values};
use mmaprobe_probes::{DotAdd, Probe, Summand};

use super::evidence::Evidence;
use super::grouping::mixed;
use super::order::{self, Set};
use super::skeleton::{self, Skeleton};
use crate::device::DeviceError;

/// Pairs on which all values are tried, at most.
const TRIED: usize = 6;
/// Values with which all pairs are asked about, at most.
const TELLING: usize = 3;
/// The most questions that the pairs may cost on which all values are tried, and all pairs.
const MOST_TRYING: usize = 20_000;
const MOST_QUESTIONS: usize = 40_000;

/// The orders of summation that traces show, if they show any. What is asked is kept aside.
///
/// # Errors
/// If the device fails.
pub fn orders(evidence: &mut Evidence) -> Result<Vec<Skeleton>, DeviceError> {
    let signature = *evidence.signature();
    let k = signature.k;
    let pairs = mixed(&order::pairs_of(k).collect::<Vec<_>>());
    let all = traces::values(&signature);
    // Each summand but two, beside X and −X and alone.
    let of_a_pair = 2 * k.saturating_sub(1);
    let at_once = MOST_QUESTIONS / (pairs.len() * of_a_pair).max(1);
    if k < 2 || all.is_empty() || at_once == 0 {
        return Ok(Vec::new());
    }
    let tried = (MOST_TRYING / (all.len() * of_a_pair)).clamp(1, TRIED);
    let some = &pairs[..tried.min(pairs.len())];
    ask(evidence, &all, some)?;
    let shows = |values: &Values| {
        let sets = some.iter().filter_map(|&pair| set(evidence, values, pair));
        sets.filter(|set| (3..=k as u32).contains(&set.size())).count()
    };
    let mut telling: Vec<(usize, Values)> = all.iter().map(|values| (shows(values), *values)).collect();
    telling.retain(|(shown, _)| *shown > 0);
    // A stable sort: simpler values first among equals.
    telling.sort_by_key(|(shown, _)| std::cmp::Reverse(*shown));
    let telling: Vec<Values> =
        telling.into_iter().take(at_once.min(TELLING)).map(|(_, values)| values).collect();
    ask(evidence, &telling, &pairs)?;
    let order = |values: &Values| {
        let sets = pairs.iter().filter_map(|&pair| set(evidence, values, pair)).collect();
        order::build(&signature, sets)
    };
    Ok(skeleton::distinct(telling.iter().map(order).filter(|order| !order.is_flat()), TELLING))
}

/// Asks what leaves a trace between pairs.
fn ask(evidence: &mut Evidence, all: &[Values], pairs: &[(usize, usize)]) -> Result<(), DeviceError> {
    let signature = *evidence.signature();
    let about = |values, pair| {
        others(signature.k, pair)
            .filter_map(move |summand| traces::questions(&signature, values, pair, summand))
    };
    let dot_adds: Vec<DotAdd> = all
        .iter()
        .flat_map(|values| pairs.iter().flat_map(move |&pair| about(values, pair)))
        .flatten()
        .collect();
    let (name, question, source) = (traces::NAME, traces::QUESTION, traces::SOURCE);
    evidence.ask_aside(vec![Probe { name, question, source, dot_adds }])
}

/// A pair, and what leaves a trace between its two: what is in the sum in which they meet. `None` if that was not asked of
/// all others.
fn set(evidence: &Evidence, values: &Values, (x, opposite): (usize, usize)) -> Option<Set> {
    let signature = evidence.signature();
    let mut members = vec![x, opposite];
    for summand in others(signature.k, (x, opposite)) {
        let questions = traces::questions(signature, values, (x, opposite), summand)?;
        let [beside, alone] = questions.map(|question| evidence.answer(&question));
        if beside? != alone? {
            members.push(summand.index(signature.k));
        }
    }
    Some(Set::of(signature.k + 1, members))
}

/// All summands but these products.
fn others(k: usize, (x, opposite): (usize, usize)) -> impl Iterator<Item = Summand> {
    let pair = [x, opposite].map(Summand::Product);
    (0..=k).map(move |index| Summand::from_index(index, k)).filter(move |summand| !pair.contains(summand))
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{E2M3, E3M2, FP16, FP32, RoundTo};
    use mmaprobe_model::tree::{Added, Fused, Normalised};
    use mmaprobe_probes::Signature;

    use super::*;
    use crate::device::Device;
    use crate::inference::structure::{self, Structure};
    use crate::inference::{nodewise, testing};

    /// What traces show of a device that adds products one after the other, in this order, and c last; each sum of products
    /// adds and hands on its sum in this way, and the last in that.
    fn found(
        signature: &Signature,
        order: &[usize],
        inside: (Added, Normalised),
        last: Added,
    ) -> Vec<Skeleton> {
        let model = structure::start(signature, &chain(order), Structure::Plain);
        let (mut model, rules) = nodewise::individual(&model);
        for &rule in &rules[1..] {
            (model.tree.rules[rule].added, model.tree.rules[rule].normalised) = inside.clone();
        }
        model.tree.rules[rules[0]].added = last;
        let device = testing::device(signature, model, (1, 1));
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        orders(&mut evidence).expect("it answers")
    }

    /// Products one after the other, and then c.
    fn chain(order: &[usize]) -> Skeleton {
        let leaf = |&k: &usize| Skeleton::Leaf(Summand::Product(k));
        let two = |sum, next| Skeleton::Sum(vec![sum, next]);
        let products = order[1..].iter().fold(leaf(&order[0]), |sum, next| two(sum, leaf(next)));
        two(Skeleton::Leaf(Summand::C), products)
    }

    const ORDER: [usize; 6] = [3, 0, 5, 1, 4, 2];

    #[test]
    fn an_exponent_that_outlives_what_cancels_leaves_traces_in_c() {
        let signature = Signature { k: 6, a: E3M2, b: E3M2, c: FP32, d: FP32, scale: None };
        let aligned = |fraction_bits| Added::Fused(Fused::uniform(fraction_bits, Rounding::TowardZero));
        let open = Normalised::No { exponent: None };
        let orders = found(&signature, &ORDER, (aligned(40), open), aligned(25));
        assert!(orders[0].has_the_same_sums(&chain(&ORDER)), "{orders:?}");
    }

    #[test]
    fn a_last_bit_that_is_rounded_away_beside_many_leaves_traces() {
        let signature = Signature { k: 6, a: E2M3, b: E2M3, c: FP16, d: FP16, scale: None };
        let rounded =
            Normalised::To(RoundTo { rounding: Rounding::NearestTiesDown, ..RoundTo::nearest_even(FP16) });
        let orders = found(&signature, &ORDER, (Added::Exact, rounded), Added::Exact);
        assert!(orders[0].has_the_same_sums(&chain(&ORDER)), "{orders:?}");
    }

    #[test]
    fn sums_that_lose_nothing_leave_none() {
        let signature = Signature { k: 6, a: E3M2, b: E3M2, c: FP32, d: FP32, scale: None };
        let open = Normalised::No { exponent: None };
        assert_eq!(found(&signature, &ORDER, (Added::Exact, open), Added::Exact), Vec::new());
    }
}
