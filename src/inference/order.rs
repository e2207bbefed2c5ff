//! The summation tree, from the survivors of masks.
//!
//! For each pair of summands, X on one and −X on the other, the summands that do *not* survive are
//! those that were added to one of the two before they met. With the pair itself they form a set:
//! all leaves of the sum in which the two meet, if that sum loses small summands at all. The sets of
//! all pairs, made laminar, are the nodes of the tree (MMA-Sim paper, section III.C; FPRev, Xie et
//! al. 2025, which reads the sizes of these sets; here it is the sets themselves, so that no order is
//! assumed and a sum that loses nothing is recognised).

use mmaprobe_model::format::Decoded;
use mmaprobe_probes::order::{self, Mask};
use mmaprobe_probes::{DotAdd, Dyadic, Probe, Signature, Summand, place};
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use super::evidence::Evidence;
use super::skeleton::Skeleton;
use crate::device::DeviceError;

/// What the masks have shown.
#[derive(Clone, Debug)]
pub struct Order {
    /// The tree.
    pub skeleton: Skeleton,
    /// Pairs of summands whose masks could not be asked, because the formats hold no X far enough from y, or
    /// could not be read.
    pub unreachable: usize,
}

/// A set of summands, by index; c has index K.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Set(Vec<u64>);

impl Set {
    pub(super) fn of(count: usize, members: impl IntoIterator<Item = usize>) -> Set {
        let mut words = vec![0; count.div_ceil(64)];
        for member in members {
            words[member / 64] |= 1 << (member % 64);
        }
        Set(words)
    }

    pub(super) fn size(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    fn contains(&self, other: &Set) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & b == *b)
    }

    /// Whether they have members in common, and each has one that the other lacks.
    fn overlaps(&self, other: &Set) -> bool {
        let common = self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0);
        common && !self.contains(other) && !other.contains(self)
    }

    fn join(&mut self, other: &Set) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }

    fn first(&self) -> usize {
        let word = self.0.iter().position(|&word| word != 0).unwrap_or(0);
        64 * word + self.0[word].trailing_zeros() as usize
    }
}

/// How many binades X has to be above y for a loss to be likely: fp16's own precision.
const LEAST_DISTANCE: i32 = 12;
/// An exponent that any sum on the way can hold, as its opposite: those of fp16 are the smallest range.
const NEAR: i32 = 14;
/// The largest and the smallest exponent that fp16 holds, of subnormal numbers, too: X and y are no farther apart where a sum on
/// the way overflows, and y is no smaller than it is at first.
const FARTHEST_NEAR: (i32, i32) = (15, -24);
/// The most questions that a further pass over unreadable pairs may cost.
const DEAREST_PASS: usize = 40_000;

/// Asks the masks of all pairs and builds the tree.
///
/// # Errors
/// If the device fails.
pub fn find(evidence: &mut Evidence) -> Result<Order, DeviceError> {
    let signature = *evidence.signature();
    let summands = signature.k + 1;
    let pairs = |n: usize| n * (n - 1) / 2;
    let mut scales = order::scales(&signature);
    // What has an order that can be asked: summands, or blocks that have their own scales.
    let mut units: Vec<Vec<usize>> = (0..summands).map(|index| vec![index]).collect();
    if let Some(scale) = signature.scale
        && scales.0 - scales.1 < LEAST_DISTANCE
    {
        scales = order::scales_across_blocks(&signature);
        let products: Vec<usize> = (0..signature.k).collect();
        units = products.chunks(scale.block).map(<[usize]>::to_vec).collect();
        units.push(vec![signature.k]);
    }
    let count = units.len();
    if scales.0 - scales.1 < LEAST_DISTANCE {
        // Nothing can be lost: every mask would look like an exact sum.
        return Ok(Order { skeleton: build(&signature, Vec::new()), unreachable: pairs(summands) });
    }
    let within_units: usize = units.iter().map(|unit| pairs(unit.len())).sum();
    let firsts: Vec<Summand> = units.iter().map(|unit| Summand::from_index(unit[0], signature.k)).collect();
    let mut pending: Vec<(usize, usize)> = pairs_of(count).collect();
    let set = |(i, j): (usize, usize), lost: &[Summand]| {
        let firsts = lost.iter().map(|s| s.index(signature.k)).chain([units[i][0], units[j][0]]);
        let of_unit = |first| units.iter().filter(move |unit| unit[0] == first).flatten();
        Set::of(summands, firsts.flat_map(of_unit).copied())
    };
    let mut sets = Vec::new();
    // Where a sum on the way has less range than d, X far above y overflows there.
    let near = (scales.0.min(NEAR), scales.1.max(-NEAR));
    let farther = (scales.0.min(FARTHEST_NEAR.0), scales.1.max(FARTHEST_NEAR.1));
    // Signs of X and y, and how many small values share a question: the plain choice first. What
    // comes back unreadable is asked again, one small value at a time and with other signs.
    let weights = order::weights(&signature, scales);
    let plain = Pass { scales, per_question: weights, negative_x: false, negative_y: false };
    let single = Pass { per_question: 1, ..plain };
    let passes = [
        plain,
        Pass { scales: near, ..single },
        single,
        Pass { negative_x: true, ..single },
        Pass { negative_y: true, ..single },
        Pass { negative_x: true, negative_y: true, ..single },
    ];
    let mut overflown: Vec<(usize, usize)> = Vec::new();
    for (number, pass) in passes.iter().enumerate() {
        let is_near = number == 1;
        let asked: Vec<(usize, usize)> = if is_near { overflown.clone() } else { pending.clone() };
        // A pass that would ask the same again, or too much.
        let questions = asked.len() * (count - 2).div_ceil(pass.per_question);
        let is_new = !passes[..number].contains(pass) && pass.scales.0 - pass.scales.1 >= LEAST_DISTANCE;
        if number > 0 && (!is_new || questions > DEAREST_PASS) {
            continue;
        }
        let masks = ask(evidence, &asked, &firsts, pass)?;
        let is_last = number + 1 == passes.len();
        // Of those that overflow, the ones between which not all is lost where X is near, and what is.
        let mut near_lost: Vec<Between> = Vec::new();
        for (&(i, j), masks) in asked.iter().zip(&masks) {
            match lost(&signature, evidence, masks, count, is_last) {
                Some(lost) => {
                    pending.retain(|pair| *pair != (i, j));
                    match is_near && lost.len() + 2 < count {
                        true => near_lost.push(Between { pair: (i, j), lost }),
                        false => sets.push(set((i, j), &lost)),
                    }
                }
                _ if number == 0 && overflows(&signature, evidence, masks, scales.0) => {
                    overflown.push((i, j));
                }
                _ => {}
            }
        }
        if !near_lost.is_empty() {
            let lost = lost_farther(evidence, near_lost, &firsts, &Pass { scales: farther, ..single })?;
            sets.extend(lost.iter().map(|between| set(between.pair, &between.lost)));
        }
        sets.sort();
        sets.dedup();
        let again = pairs(count) * (count - 2) <= DEAREST_PASS && weights > 1;
        if number == 0 && again && sets.iter().any(|set| sets.iter().any(|other| set.overlaps(other))) {
            // A sum that loses nothing looks like this, but so does one that rounds the survivors' sum.
            pending = pairs_of(count).collect();
            sets.clear();
        }
        if pending.is_empty() {
            break;
        }
    }
    Ok(Order { skeleton: build(&signature, sets), unreachable: pending.len() + within_units })
}

/// What is lost between X and −X on a pair.
struct Between {
    pair: (usize, usize),
    lost: Vec<Summand>,
}

/// What is lost between each pair where X is near, and what is beside that where it is farther: a sum on the way may have
/// little range and many bits. Nothing beside that where it cannot be read, nor what is lost alone, too: y is too small for
/// a sum on its way.
fn lost_farther(
    evidence: &mut Evidence,
    mut near: Vec<Between>,
    summands: &[Summand],
    pass: &Pass,
) -> Result<Vec<Between>, DeviceError> {
    let signature = *evidence.signature();
    if near.len() * (summands.len() - 2) > DEAREST_PASS {
        return Ok(near);
    }
    let pairs: Vec<(usize, usize)> = near.iter().map(|between| between.pair).collect();
    let masks = ask(evidence, &pairs, summands, pass)?;
    let passing = passing_alone(evidence, summands, pass.scales.1)?;
    for (between, masks) in near.iter_mut().zip(&masks) {
        let farther = lost(&signature, evidence, masks, summands.len(), false).unwrap_or_default();
        // A set has each but once.
        between.lost.extend(farther.into_iter().filter(|summand| passing.contains(summand)));
    }
    Ok(near)
}

/// The summands of which 2^`y` alone comes out as it was.
fn passing_alone(evidence: &mut Evidence, summands: &[Summand], y: i32) -> Result<Vec<Summand>, DeviceError> {
    let signature = *evidence.signature();
    let alone =
        |&summand: &Summand| Some((summand, place::question(&signature, &[(summand, Dyadic::power(y))])?));
    let alone: Vec<(Summand, DotAdd)> = summands.iter().filter_map(alone).collect();
    ask_aside(evidence, alone.iter().map(|(_, question)| question.clone()).collect())?;
    let as_it_was = place::exactly(&signature.d, Dyadic::power(y));
    let passes = |question: &DotAdd| evidence.answer(question).is_some_and(|d| Some(d) == as_it_was);
    Ok(alone.iter().filter(|(_, question)| passes(question)).map(|(summand, _)| *summand).collect())
}

/// Asks the masks of pairs of summands, with small values on all others.
fn ask(
    evidence: &mut Evidence,
    pairs: &[(usize, usize)],
    summands: &[Summand],
    pass: &Pass,
) -> Result<Vec<Vec<Mask>>, DeviceError> {
    let signature = *evidence.signature();
    let masks: Vec<Vec<Mask>> = pairs
        .iter()
        .map(|&(i, j)| {
            let others = (0..summands.len()).filter(|other| ![i, j].contains(other));
            let others: Vec<Summand> = others.map(|other| summands[other]).collect();
            let signs = (pass.negative_x, pass.negative_y);
            let pair = (summands[i], summands[j]);
            order::masks(&signature, pair, &others, pass.scales, pass.per_question, signs)
        })
        .collect();
    ask_aside(evidence, masks.iter().flatten().map(|mask| mask.question.clone()).collect())?;
    Ok(masks)
}

/// Asks what says something about the order of summation, and hardly about rules.
fn ask_aside(evidence: &mut Evidence, dot_adds: Vec<DotAdd>) -> Result<(), DeviceError> {
    evidence.ask_mostly_aside(vec![Probe {
        name: order::NAME,
        question: order::QUESTION,
        source: order::SOURCE,
        dot_adds,
    }])
}

/// The order that products larger than any result show, where there are such and they show one: a sum on the way that
/// has more bits than d loses nothing beside what d holds.
///
/// # Errors
/// If the device fails.
pub fn find_beyond(evidence: &mut Evidence) -> Result<Option<Skeleton>, DeviceError> {
    let signature = *evidence.signature();
    let Some(scales) = order::scales_beyond(&signature) else { return Ok(None) };
    let summands: Vec<Summand> = signature.summands().collect();
    let count = summands.len();
    let c = Summand::C.index(signature.k);
    let pass = Pass { scales, per_question: 1, negative_x: false, negative_y: false };
    let mut sets = Vec::new();
    // What the first product shows, the others mostly do: nothing.
    let (first, others): (Vec<_>, Vec<_>) =
        pairs_of(count).filter(|&(i, j)| ![i, j].contains(&c)).partition(|&(i, _)| i == 0);
    for pairs in [first, others] {
        if pairs.len() * (count - 2) > DEAREST_PASS {
            break;
        }
        let masks = ask(evidence, &pairs, &summands, &pass)?;
        for (&(i, j), masks) in pairs.iter().zip(&masks) {
            let lost = lost(&signature, evidence, masks, count, false);
            let set = |lost: Vec<Summand>| {
                let lost = lost.iter().map(|summand| summand.index(signature.k));
                Set::of(count, lost.chain([i, j]))
            };
            sets.extend(lost.map(set));
        }
        if sets.iter().all(|set| [2, count as u32].contains(&set.size())) {
            return Ok(None);
        }
    }
    let order = build(&signature, sets);
    Ok((!order.is_flat()).then_some(order))
}

/// A way to ask the masks.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pass {
    /// Exponents of X and of the smallest y.
    scales: (i32, i32),
    /// Small values that share a question.
    per_question: usize,
    negative_x: bool,
    negative_y: bool,
}

/// Whether some answer is no number, or about as large as X, where X and −X should have cancelled.
fn overflows(signature: &Signature, evidence: &Evidence, masks: &[Mask], x: i32) -> bool {
    masks.iter().filter_map(|mask| evidence.answer(&mask.question)).any(|answer| {
        match signature.d.decode(answer) {
            Decoded::Finite { exponent, .. } => exponent >= x - 1,
            Decoded::Infinite { .. } | Decoded::Nan { .. } => true,
        }
    })
}

/// Every two of so many.
pub(super) fn pairs_of(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |i| (i + 1..count).map(move |j| (i, j)))
}

/// The small summands that did not survive; `None` if an answer is no sum of survivors, or if not all others of so many were
/// asked about.
///
/// With `any_other_is_lost`, an answer that is not exactly the small value counts as its loss.
fn lost(
    signature: &Signature,
    evidence: &Evidence,
    masks: &[Mask],
    count: usize,
    any_other_is_lost: bool,
) -> Option<Vec<Summand>> {
    if masks.iter().map(|mask| mask.small.len()).sum::<usize>() != count - 2 {
        return None;
    }
    let mut lost = Vec::new();
    for mask in masks {
        let answer = evidence.answer(&mask.question)?;
        let lowest = mask.small.first()?.1;
        // The answer as a multiple of the smallest value is a bit mask of the survivors.
        let survivors = match signature.d.decode(answer) {
            Decoded::Finite { significand: 0, .. } => Some(0),
            Decoded::Finite { negative, significand, exponent } if negative == lowest.negative => {
                let shift = exponent - signature.d.fraction_bits as i32 - lowest.exponent;
                let trailing = significand.trailing_zeros() as i32;
                (shift + trailing >= 0
                    && shift + 64 - (significand.leading_zeros() as i32) <= mask.small.len() as i32)
                    .then(|| if shift >= 0 { significand << shift } else { significand >> -shift })
            }
            _ => None,
        };
        let survivors = match survivors {
            Some(survivors) => survivors,
            None if any_other_is_lost => 0,
            None => return None,
        };
        for (weight, &(summand, _)) in mask.small.iter().enumerate() {
            if survivors >> weight & 1 == 0 {
                lost.push(summand);
            }
        }
    }
    Some(lost)
}

/// The sums of one order, and those of another that can be beside all of them: what one way of asking does not
/// show, another may.
pub fn combined(signature: &Signature, order: &Skeleton, other: &Skeleton) -> Skeleton {
    let mut sets = sets_of(signature, order);
    for set in sets_of(signature, other) {
        if !sets.iter().any(|known| known.overlaps(&set)) {
            sets.push(set);
        }
    }
    build(signature, sets)
}

/// The sums of an order.
fn sets_of(signature: &Signature, skeleton: &Skeleton) -> Vec<Set> {
    let (Skeleton::Sum(children) | Skeleton::Inner(children)) = skeleton else { return Vec::new() };
    let members = skeleton.summands().into_iter().map(|summand| summand.index(signature.k));
    let here = Set::of(signature.k + 1, members);
    children.iter().flat_map(|child| sets_of(signature, child)).chain([here]).collect()
}

/// Makes the sets laminar and turns containment into a tree.
pub(super) fn build(signature: &Signature, mut sets: Vec<Set>) -> Skeleton {
    let count = signature.k + 1;
    sets.push(Set::of(count, 0..count));
    // Sets that overlap belong to one sum: one that loses nothing shows each pair of its children
    // alone. Each chain of overlaps is replaced by its union.
    loop {
        sets.sort();
        sets.dedup();
        let mut merged: Vec<Set> = Vec::new();
        let mut left: Vec<Set> = std::mem::take(&mut sets);
        let mut any = false;
        while let Some(set) = left.pop() {
            let mut union = set.clone();
            let mut members = vec![set];
            while let Some(next) = left.iter().position(|other| members.iter().any(|set| set.overlaps(other)))
            {
                union.join(&left[next]);
                members.push(left.swap_remove(next));
                any = true;
            }
            merged.push(union);
        }
        sets = merged;
        if !any {
            break;
        }
    }
    sets.extend((0..count).map(|leaf| Set::of(count, [leaf])));
    sets.sort_by_key(|set| (std::cmp::Reverse(set.size()), set.first()));
    let mut graph: DiGraph<Set, ()> = DiGraph::new();
    for set in sets {
        // The smallest set so far that contains it is its parent.
        let parent =
            graph.node_indices().filter(|&n| graph[n].contains(&set)).min_by_key(|&n| graph[n].size());
        if parent.is_some_and(|n| graph[n] == set) {
            continue;
        }
        let node = graph.add_node(set);
        if let Some(parent) = parent {
            graph.add_edge(parent, node, ());
        }
    }
    let root = graph.externals(Direction::Incoming).next().expect("the set of all summands is the root");
    skeleton(&graph, root, signature.k)
}

fn skeleton(graph: &DiGraph<Set, ()>, node: NodeIndex, k: usize) -> Skeleton {
    let mut children: Vec<NodeIndex> = graph.edges(node).map(|edge| edge.target()).collect();
    if children.is_empty() {
        return Skeleton::Leaf(Summand::from_index(graph[node].first(), k));
    }
    children.sort_by_key(|&child| graph[child].first());
    let mut children: Vec<Skeleton> = children.into_iter().map(|child| skeleton(graph, child, k)).collect();
    // A stable sort: the children stay in the order of their first products.
    Skeleton::sort(&mut children);
    Skeleton::Sum(children)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{E4M3, E5M2, FP16, FP32, FP64, RoundTo, Subnormals, Tininess};
    use mmaprobe_model::tree::{Added, Normalised, Rule};

    use super::*;
    use crate::device::Device;
    use crate::device::simulated::Simulated;
    use crate::inference::structure::{self, Structure};
    use crate::inference::{nodewise, testing};

    /// The tree with these products and c (`usize::MAX`) in each sum, written from the inside out.
    fn order(sums: &[&[usize]]) -> Skeleton {
        let signature = signature();
        let index = |&k: &usize| k.min(signature.k);
        build(&signature, sums.iter().map(|sum| Set::of(signature.k + 1, sum.iter().map(index))).collect())
    }

    fn signature() -> Signature {
        testing::signature(6)
    }

    const C: usize = usize::MAX;

    /// A device that adds pairs in fp16, chained from c to 32 bits, in this order; the last pair makes this of subnormal
    /// results.
    fn chained(wanted: &Skeleton, last: Subnormals) -> Simulated {
        let signature = Signature { a: E5M2, b: E4M3, ..signature() };
        let start = structure::start(&signature, wanted, Structure::Plain);
        let (mut model, _) = nodewise::individual(&start);
        for nodewise::Meeting { sum, rule, .. } in nodewise::meetings(&model) {
            let summands: Vec<Summand> = sum.into_iter().flatten().collect();
            let is_last = summands.contains(&Summand::Product(signature.k - 1));
            let rounded = match summands.contains(&Summand::C) {
                true if is_last => RoundTo::nearest_even(FP32),
                true => RoundTo { fraction_bits: 32, ..RoundTo::nearest_even(FP64) },
                false if is_last => RoundTo { subnormals: last, ..RoundTo::nearest_even(FP16) },
                false => RoundTo::nearest_even(FP16),
            };
            let own = &mut model.tree.rules[rule];
            *own = Rule { added: Added::Exact, normalised: Normalised::To(rounded), ..own.clone() };
        }
        testing::device(&signature, model, (4, 4))
    }

    /// Three pairs, one after the other.
    fn pairs() -> Skeleton {
        order(&[&[C, 0, 1], &[C, 0, 1, 2, 3], &[0, 1], &[2, 3], &[4, 5]])
    }

    #[test]
    fn a_chain_of_many_bits_shows_where_what_it_adds_has_little_range() {
        let device = chained(&pairs(), Subnormals::Kept);
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        let found = find(&mut evidence).expect("a simulated device answers");
        assert_eq!(found.skeleton.to_string(), pairs().to_string());
    }

    #[test]
    fn what_a_sum_flushes_is_not_taken_for_lost_beside_others() {
        let [p1, p2, p3, p5] = [1, 2, 3, 5].map(Summand::Product);
        let flushed = Subnormals::Flushed { tiny: Tininess::BeforeRounding, sign_kept: true };
        let pass = Pass { scales: (15, -20), per_question: 1, negative_x: false, negative_y: false };
        for (subnormals, pair, lost) in [
            (Subnormals::Kept, (0, 2), vec![p1, p3, Summand::C]),
            (flushed, (0, 2), vec![p1, p3, Summand::C]),
            (Subnormals::Kept, (2, 3), Vec::new()),
            (flushed, (2, 3), Vec::new()),
            (Subnormals::Kept, (0, 4), vec![p1, p2, p3, p5, Summand::C]),
            // Between these it is lost beside X, but would be without.
            (flushed, (0, 4), vec![p1, p2, p3, Summand::C]),
        ] {
            let device = chained(&pairs(), subnormals);
            let mut evidence = Evidence::new(&device, &device.instructions()[0]);
            let summands: Vec<Summand> = evidence.signature().summands().collect();
            let near = vec![Between { pair, lost: Vec::new() }];
            let found = lost_farther(&mut evidence, near, &summands, &pass);
            let found = found.expect("a simulated device answers").swap_remove(0).lost;
            assert_eq!(found, lost, "{pair:?}, {subnormals:?}");
        }
    }

    #[test]
    fn orders_that_show_different_sums_are_combined() {
        let [masks, handed] = [order(&[&[C, 0], &[C, 0, 2]]), order(&[&[C, 0, 2, 4], &[1, 3, 5], &[1, 3]])];
        let all = order(&[&[C, 0], &[C, 0, 2], &[C, 0, 2, 4], &[1, 3], &[1, 3, 5]]);
        assert_eq!(combined(&signature(), &masks, &handed), all);
        assert_eq!(combined(&signature(), &handed, &masks), all);
    }

    #[test]
    fn the_first_order_is_kept_where_two_contradict_each_other() {
        let [first, second] = [order(&[&[C, 0, 1]]), order(&[&[1, 2], &[3, 4]])];
        assert_eq!(combined(&signature(), &first, &second), order(&[&[C, 0, 1], &[3, 4]]));
    }
}
