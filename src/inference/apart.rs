//! How each summand of a sum is aligned, where each may be in a way of its own.
//!
//! Where two summands meet in a sum, mostly the smaller one alone loses bits: what answers that says how it is aligned and
//! how the result is rounded, and nothing about the other. So the answers are divided by the place of the smaller
//! summand; for each rounding of the result, every place has its best alignment, whatever the others have, and the
//! best rounding is the one with which all places together explain most.

use std::cmp::Reverse;

use mmaprobe_model::tree::{Added, Alignment, Fused, Model, Node, NodeId, Normalised, Rule, RuleId};
use mmaprobe_probes::{Signature, place, vary};
use rayon::prelude::*;

use super::budget::Budget;
use super::evidence::Answered;
use super::fit::{self, Fitted};
use super::grid::{self, Trial};
use super::held::Held;
use super::{knobs, simplicity};

/// Answers of each place that alignments are tried on: first on some, most of which have to be explained.
const DECISIVE: usize = 12;
const OF_EACH: usize = 36;
/// Roundings of the result that are tried with every place; with the places that most answers are about, all are.
const ROUNDINGS: usize = 6;
const FIRST_PLACES: usize = 2;

/// The best models in which each summand of the sums of a rule has a way of its own to be aligned, with these results; the
/// best first. All else about the rule is as in `base`. None where no answer is about two summands of such a sum.
pub fn models(
    signature: &Signature,
    best: &Fitted,
    base: &Fused,
    results: &[Normalised],
    trial: Trial,
) -> Vec<Fitted> {
    let Trial { rule, answers, budget, .. } = trial;
    let arity = knobs::arity(&best.model, rule);
    if !(2..=grid::POSITIONS).contains(&arity) {
        return Vec::new();
    }
    let groups: Vec<Group> = by_smaller(signature, &best.model, rule, arity, answers)
        .iter()
        .map(|group| Group::new(&best.model, group))
        .collect();
    let alignments: Vec<Alignment> = grid::alignments().collect();
    let scores = |position: usize, results: &[Normalised]| {
        scores(&best.model, rule, base, (position, arity), &alignments, results, &groups[position], budget)
    };
    // The places that say most come first.
    let mut places: Vec<usize> = (0..arity).filter(|&place| groups[place].number_of_answers() > 0).collect();
    places.sort_by_key(|&place| Reverse(groups[place].number_of_answers()));
    if places.is_empty() {
        return Vec::new();
    }
    let (first, others) = places.split_at(FIRST_PLACES.min(places.len()));
    let known: Vec<Vec<Vec<usize>>> = first.iter().map(|&place| scores(place, results)).collect();
    let explained = |of_result: &[usize]| of_result.iter().copied().max().unwrap_or(0);
    let mut likely: Vec<usize> = (0..results.len()).collect();
    let of_first = |result: usize| known.iter().map(|place| explained(&place[result])).sum::<usize>();
    likely.sort_by_key(|&result| Reverse(of_first(result)));
    likely.truncate(ROUNDINGS);
    let chosen: Vec<Normalised> = likely.iter().map(|&result| results[result]).collect();
    let of_others = others.iter().map(|&place| scores(place, &chosen));
    let known: Vec<Vec<Vec<usize>>> = known
        .iter()
        .map(|place| likely.iter().map(|&result| place[result].clone()).collect())
        .chain(of_others)
        .collect();
    let mut found: Vec<Fitted> = chosen
        .iter()
        .enumerate()
        .filter(|_| !budget.is_spent())
        .map(|(index, result)| {
            let of_result: Vec<&[usize]> = known.iter().map(|place| &place[index][..]).collect();
            let usual = usual(&of_result);
            let mut each = vec![alignments[usual]; arity];
            places
                .iter()
                .zip(ways(&of_result, usual))
                .for_each(|(&place, way)| each[place] = alignments[way]);
            let own = &best.model.tree.rules[rule];
            let mut model = best.model.clone();
            let added = Added::Fused(Fused { alignment: knobs::alignment_of_each(each), ..base.clone() });
            model.tree.rules[rule] = Rule { added, normalised: *result, ..own.clone() };
            let contradicted = budget.contradicted(&model, answers, usize::MAX);
            Fitted { model, contradicted }
        })
        .collect();
    found.sort_by_key(|fitted| (fitted.contradicted, simplicity::exceptions(&fitted.model)));
    found
}

/// The answers in which two summands that are not zero meet in a sum of this rule, by the place of the smaller there. Another
/// one may be outside that sum: where it cancels the larger, more shows of the smaller.
fn by_smaller<'a>(
    signature: &Signature,
    model: &Model,
    rule: RuleId,
    arity: usize,
    answers: &[&'a Answered],
) -> Vec<Vec<&'a Answered>> {
    let ways_up = WaysUp::of(model);
    let follows = |node: NodeId| matches!(&model.tree.nodes[node], Node::Sum { rule: of, .. } if *of == rule);
    let mut groups = vec![Vec::new(); arity];
    for &answered in answers.iter().filter(|answered| (2..=3).contains(&answered.summands)) {
        let question = &answered.question;
        let values: Vec<(usize, i32)> = (0..=signature.k)
            .filter_map(|index| {
                let leading = match index == signature.k {
                    true => place::leading(&signature.c, question.c),
                    false => vary::product(signature, question, index).and_then(|value| value.leading()),
                };
                leading.map(|leading| (index, leading))
            })
            .collect();
        let (one, other) = match *values {
            [one, other] => (one, other),
            [x, y, z] => {
                // The two that meet before they meet the third.
                let Some(pair) = [(x, y, z), (x, z, y), (y, z, x)].into_iter().find(|(one, other, third)| {
                    let [pair, all] = [other, third].map(|with| ways_up.meeting(one.0, with.0));
                    pair.zip(all).is_some_and(|((pair, _), (all, _))| pair < all)
                }) else {
                    continue;
                };
                (pair.0, pair.1)
            }
            _ => continue,
        };
        if one.1 == other.1 {
            continue;
        }
        let (smaller, larger) = if one.1 < other.1 { (one.0, other.0) } else { (other.0, one.0) };
        if let Some((of_node, place)) = ways_up.meeting(smaller, larger)
            && follows(of_node)
        {
            groups[place].push(answered);
        }
    }
    groups
}

/// For each summand, c last, the sums that it is in, from the last one down, with its place in each.
struct WaysUp(Vec<Vec<(NodeId, usize)>>);

impl WaysUp {
    fn of(model: &Model) -> WaysUp {
        let nodes = &model.tree.nodes;
        let mut above: Vec<Option<(NodeId, usize)>> = vec![None; nodes.len()];
        for (id, node) in nodes.iter().enumerate() {
            node.children().iter().enumerate().for_each(|(place, &child)| above[child] = Some((id, place)));
        }
        let mut ways = vec![Vec::new(); model.k + 1];
        for (id, node) in nodes.iter().enumerate() {
            let index = match node {
                Node::Product(k) => *k,
                Node::Accumulator => model.k,
                _ => continue,
            };
            ways[index] = std::iter::successors(above[id], |&(node, _)| above[node]).collect();
            ways[index].reverse();
        }
        WaysUp(ways)
    }

    /// The sum in which two summands meet, and the place of the first in it.
    fn meeting(&self, first: usize, second: usize) -> Option<(NodeId, usize)> {
        let pairs = self.0[first].iter().zip(&self.0[second]);
        pairs.into_iter().find(|(one, other)| one.1 != other.1).map(|(one, _)| *one)
    }
}

/// Answers about one place.
struct Group<'a, 'm> {
    decisive: Held<'a, 'm>,
    others: Held<'a, 'm>,
}

impl<'a, 'm> Group<'a, 'm> {
    /// Some of all answers about a place.
    fn new(model: &'m Model, all: &[&'a Answered]) -> Group<'a, 'm> {
        let some = fit::thinned(all, DECISIVE + OF_EACH);
        let every = some.len().div_ceil(DECISIVE).max(1);
        let (mut decisive, mut others) = (Vec::new(), Vec::new());
        for (index, answered) in some.into_iter().enumerate() {
            if index % every == 0 { &mut decisive } else { &mut others }.push(answered);
        }
        Group { decisive: Held::new(model, &decisive), others: Held::new(model, &others) }
    }

    fn number_of_answers(&self) -> usize {
        self.decisive.number_of_answers() + self.others.number_of_answers()
    }

    /// How many of them a model explains; where it leaves many unexplained, only as far as that is known.
    fn explained(&self, model: &Model, budget: &Budget) -> usize {
        let explained = |held: &Held| {
            let limit = held.number_of_answers() / TOLERATED + 1;
            let contradicted = budget.contradicted_in_passing(model, held, limit);
            (contradicted < limit).then(|| held.number_of_answers() - contradicted)
        };
        let Some(decisive) = explained(&self.decisive) else { return 0 };
        decisive + explained(&self.others).unwrap_or(0)
    }
}

/// What leaves more than one of so many of them unexplained explains as good as none.
const TOLERATED: usize = 3;

/// For each result, how many of the answers about a place each way to align the summand there explains.
#[expect(clippy::too_many_arguments)]
fn scores(
    model: &Model,
    rule: RuleId,
    base: &Fused,
    (position, arity): (usize, usize),
    alignments: &[Alignment],
    results: &[Normalised],
    group: &Group,
    budget: &Budget,
) -> Vec<Vec<usize>> {
    let own = &model.tree.rules[rule];
    let whole = Fused { alignment: vec![grid::WHOLE].into(), ..base.clone() };
    let score = |scratch: &mut Model, (alignment, result): (&Alignment, &Normalised)| {
        let added = Added::Fused(knobs::aligned_at(&whole, arity, position, *alignment));
        scratch.tree.rules[rule] = Rule { added, normalised: *result, ..own.clone() };
        group.explained(scratch, budget)
    };
    results
        .par_iter()
        .map_init(
            || model.clone(),
            |scratch, result| {
                alignments.iter().map(|alignment| score(scratch, (alignment, result))).collect()
            },
        )
        .collect()
}

/// The alignment that explains most of all places.
fn usual(of_places: &[&[usize]]) -> usize {
    let total = |way: usize| of_places.iter().map(|place| place[way]).sum::<usize>();
    (0..of_places[0].len()).min_by_key(|&way| Reverse(total(way))).unwrap_or(0)
}

/// The best alignment of each place: of several, the usual one, or that of the place before, if these are among them.
fn ways(of_places: &[&[usize]], usual: usize) -> Vec<usize> {
    let mut before = usual;
    of_places
        .iter()
        .map(|place| {
            let most = place.iter().copied().max().unwrap_or(0);
            let is_best = |way: usize| place[way] == most;
            let way = [usual, before].into_iter().find(|&way| is_best(way));
            let way = way.or_else(|| (0..place.len()).find(|&way| is_best(way))).unwrap_or(usual);
            before = way;
            way
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP32, RoundTo};
    use mmaprobe_model::tree::Model;

    use super::*;
    use crate::inference::evidence;
    use crate::inference::skeleton::Skeleton;
    use crate::inference::structure::{self, Structure};
    use crate::inference::testing;
    use mmaprobe_probes::{Dyadic, Summand};

    /// c and three products in one sum, with these alignments and this rounding of the result.
    fn flat(signature: &Signature, alignments: &[(u32, Rounding)], rounding: Rounding) -> Model {
        let leaves = signature.summands().map(Skeleton::Leaf).collect();
        let mut model = structure::start(signature, &Skeleton::Sum(leaves), Structure::Plain);
        let alignment = |&(fraction_bits, rounding)| Alignment { fraction_bits, rounding, far: None };
        let fused = Fused::uniform(0, Rounding::TowardZero);
        let alignment = alignments.iter().map(alignment).collect();
        model.tree.rules[0].added = Added::Fused(Fused { alignment, ..fused });
        model.tree.rules[0].normalised = Normalised::To(RoundTo { rounding, ..RoundTo::nearest_even(FP32) });
        model
    }

    #[test]
    fn summands_that_are_each_aligned_in_a_way_of_their_own_are_told_apart() {
        let signature = testing::signature(3);
        let own = [
            (24, Rounding::Up),
            (20, Rounding::NearestTiesToEven),
            (26, Rounding::Down),
            (18, Rounding::ToOdd),
        ];
        let machine = flat(&signature, &own, Rounding::AwayFromZero);
        let answers = testing::sparse_answers(&signature, &machine, 8000, 5);
        let answers: Vec<&Answered> = answers
            .iter()
            .filter(|answered| answered.class == evidence::Class::Plain && answered.summands <= 2)
            .collect();
        let start = flat(&signature, &[(24, Rounding::TowardZero)], Rounding::NearestTiesToEven);
        let contradicted = fit::contradicted(&start, answers.iter().copied(), usize::MAX);
        let start = Fitted { model: start, contradicted };
        let round = |rounding| Normalised::To(RoundTo { rounding, ..RoundTo::nearest_even(FP32) });
        let results = Rounding::EVERY.map(round);
        let budget = Budget::of(u64::MAX);
        let trial = Trial { rule: 0, scope: knobs::Scope::All, answers: &answers, budget: &budget };
        let base = Fused::uniform(24, Rounding::TowardZero);
        let found = models(&signature, &start, &base, &results, trial);
        let Added::Fused(fused) = &found[0].model.tree.rules[0].added else { panic!("it is aligned") };
        assert!(fused.alignment.len() > 2, "{fused:?}");
        assert_eq!(found[0].model.tree.rules[0].normalised, round(Rounding::AwayFromZero));
        // A few answers show what those that alignments are tried on do not; one way for all leaves many more.
        let alike = grid::alignments().map(|way| {
            let ways = [(way.fraction_bits, way.rounding)];
            let alike = flat(&signature, &ways, Rounding::AwayFromZero);
            fit::contradicted(&alike, answers.iter().copied(), usize::MAX)
        });
        let (apart, alike) = (found[0].contradicted, alike.min().expect("there are ways"));
        assert!(apart * 5 < alike, "{apart} and {alike} of {}", answers.len());
    }

    #[test]
    fn what_is_outside_a_sum_does_not_hide_which_summand_is_smaller() {
        let signature = testing::signature(2);
        let [p0, p1] = [0, 1].map(Summand::Product);
        let pair = Skeleton::Sum(vec![Skeleton::Leaf(p0), Skeleton::Leaf(p1)]);
        let tree = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), pair]);
        let (model, order) =
            crate::inference::nodewise::individual(&structure::start(&signature, &tree, Structure::Plain));
        let answered = |values: &[(Summand, i32)]| {
            let values: Vec<_> = values.iter().map(|&(summand, e)| (summand, Dyadic::power(e))).collect();
            let question = place::question(&signature, &values).expect("the formats hold these");
            Answered::new(&signature, 0, question, u64::from(1f32.to_bits()))
        };
        let [alone, beside, other] = [
            answered(&[(p0, 4), (p1, -4)]),
            answered(&[(p0, 4), (p1, -4), (Summand::C, 4)]),
            answered(&[(p0, 4), (Summand::C, -4)]),
        ];
        let groups = |rule: RuleId| {
            let groups = by_smaller(&signature, &model, rule, 2, &[&alone, &beside, &other]);
            let mut sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(groups(order[1]), [0, 2], "the pair's");
        assert_eq!(groups(order[0]), [0, 1], "the root's");
    }

    #[test]
    fn summands_meet_where_their_ways_part() {
        let signature = testing::signature(2);
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let pair = Skeleton::Sum(vec![leaf(0), leaf(1)]);
        let tree = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), pair]);
        let model = structure::start(&signature, &tree, Structure::Plain);
        let ways_up = WaysUp::of(&model);
        let root = model.tree.nodes.len() - 1;
        let [first, second] = [0, 1].map(|k| ways_up.meeting(k, 2).expect("they meet"));
        assert_eq!((first.0, second.0), (root, root));
        assert_eq!(first.1, second.1);
        let (of_pair, place) = ways_up.meeting(1, 0).expect("they meet");
        assert_ne!(of_pair, root);
        assert_eq!(ways_up.meeting(0, 1), Some((of_pair, 1 - place)));
    }
}
