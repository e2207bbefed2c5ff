//! Looks at trees, sum by sum.

use std::collections::VecDeque;

use mmaprobe_model::Model;

use super::starts::distinct;
use super::{Looked, Starts, recounted};
use crate::inference::evidence::Evidence;
use crate::inference::fit::Fitted;
use crate::inference::neighbours::{self, Neighbour};
use crate::inference::nodewise::{self, Effort};

/// Sums of a tree whose rules are found one by one in a short time.
const FEW_SUMS: usize = 8;
/// And where nothing else has led further.
pub(super) const MORE_SUMS: usize = 12;

/// Rules found sum by sum in the tree whose look explains most, if other trees are tried like it, in the trees that masks
/// show, and in the one that explains most of those that a closer look does, where they have few sums. The best first.
pub fn few_sums(starts: &Starts, mut looked: Vec<Looked>) -> Vec<Looked> {
    let closer: Vec<Model> = starts.closer().map(|(_, start)| start).collect();
    let best = looked.iter().map(|looked| looked.start.clone()).find(|start| closer.contains(start));
    let most = Some(&looked[0]).filter(|most| most.is_worth_regrouping(starts.evidence));
    let most = most.map(|most| most.start.clone());
    let trees = most.into_iter().chain(starts.exchanged().take(1)).chain(starts.shown(0)).chain(best);
    let found = looks_sum_by_sum(starts, trees, FEW_SUMS);
    looked.extend(found);
    recounted(starts.evidence, looked)
}

/// Sums of a tree that gets a quick look, sum by sum, at most.
const MOST_SUMS: usize = 40;
/// Trees that get one beside a model which explains nearly everything.
pub const ONE: usize = 1;
/// Trees that get one at once.
pub const AT_FIRST: usize = 2;
/// And where nothing else has led further.
pub const AT_LAST: usize = 12;

/// Quick looks, sum by sum, at so many of the trees that have got none with what has been asked since: at those that exchanged
/// summands show, each order first, at those that masks do, at the regular one that is most like what a closer look shows, and
/// at all others; until one explains everything. The best first.
pub fn quick_sums(starts: &Starts, mut looked: Vec<Looked>, trees: usize) -> Vec<Looked> {
    let evidence = starts.evidence;
    let others = starts.structures().map(|(_, start)| start);
    let exchanged = starts.of_exchanged_orders().chain(starts.exchanged());
    let mut quick = 0;
    for start in exchanged.chain(starts.shown(0)).chain(starts.regular()).chain(others) {
        let is_known = looked.iter().any(|looked| looked.is_known(evidence, &start));
        if is_known || nodewise::individual(&start).1.len() > MOST_SUMS {
            continue;
        }
        looked.push(Looked::sum_by_sum(evidence, start, Effort::Quick));
        quick += 1;
        if quick == trees || looked.last().is_some_and(Looked::is_explained) {
            break;
        }
    }
    recounted(evidence, looked)
}

/// Sums of a tree that masks or exchanged summands show, at most, where it gets a quick look before all others.
const SUMS_AT_ONCE: usize = 20;

/// Orders that exchanged summands show which get such a look; and where formats have little range, so that most answers are
/// explained in most of them.
const ORDERS_AT_ONCE: usize = 4;
const MORE_ORDERS_AT_ONCE: usize = 12;

/// Where exchanged summands show an order: a quick look, sum by sum, at the regular tree that what is shown is very much
/// like, at the trees that masks show, at the first of those that exchanged summands do, at the first with c elsewhere, at all
/// products in one sum where masks show one of all summands, at the others that exchanged summands show, and at the first with
/// groups dissolved. One that explains nearly everything is enough, but for all products in one sum, and where c is moved, for c
/// elsewhere: nearly the same order may explain everything. Where formats have little range, at more of those, the ones first
/// of which the first looks explain most, until one explains everything. Not at the tree of a model which leaves next to
/// nothing already. The best first.
pub fn exchanged_sums(starts: &Starts, mut looked: Vec<Looked>) -> Vec<Looked> {
    let evidence = starts.evidence;
    let is_enough = |quick: &Looked| match starts.has_little_range() {
        true => quick.is_explained(),
        false => quick.is_nearly_explained(evidence),
    };
    // Summands that are aligned in ways of their own may look like an order where others are exchanged.
    let moved: Vec<Model> = starts.c_moved().collect();
    let late: Vec<Model> = starts.accumulator_late().into_iter().collect();
    let is_one_of =
        |models: &[Model], start: &Model| models.iter().any(|one| one.tree.has_the_same_sums(&start.tree));
    let mut next = VecDeque::from(at_once(starts, &looked));
    while let Some(start) = next.pop_front() {
        let quick = Looked::sum_by_sum(evidence, start, Effort::Quick);
        let is_moved = is_one_of(&moved, &quick.start);
        let (is_enough, is_explained) = (is_enough(&quick), quick.is_explained());
        looked.push(quick);
        if is_explained {
            break;
        }
        if is_enough {
            next.retain(|other| is_one_of(&late, other) || is_moved && is_one_of(&moved, other));
        }
    }
    recounted(evidence, looked)
}

/// The trees that get a quick look before all others, the likeliest first, or where formats have little range, those that
/// explain most so far; none where exchanged summands show no order.
fn at_once(starts: &Starts, looked: &[Looked]) -> Vec<Model> {
    let sums = |start: &Model| nodewise::individual(start).1.len();
    if starts.exchanged().next().is_none() {
        return Vec::new();
    }
    let exchanged = starts.of_exchanged_orders().take(1).chain(starts.parts().take(1));
    let exchanged = exchanged.chain(starts.c_moved()).chain(starts.accumulator_late());
    let has_little_range = starts.has_little_range();
    let most = if has_little_range { MORE_ORDERS_AT_ONCE } else { ORDERS_AT_ONCE };
    let others = starts.of_exchanged_orders().take(most).chain(starts.dissolved().take(1));
    let first = starts.of_regular_order().into_iter().chain(starts.shown(0));
    let mut all = distinct(first.chain(exchanged).chain(others), usize::MAX);
    if has_little_range {
        // Those first that explain most at a quick look.
        all.sort_by_cached_key(|start| {
            let same = looked.iter().filter(|looked| looked.start.tree.has_the_same_sums(&start.tree));
            same.map(|looked| looked.fitted.contradicted).min().unwrap_or(usize::MAX)
        });
    }
    let known = Some(&looked[0]).filter(|known| known.is_all_but_explained(starts.evidence));
    let is_new = |start: &Model| known.is_none_or(|known| !known.has_the_same_sums(start));
    let is_small = |start: &Model| sums(start) <= SUMS_AT_ONCE;
    all.into_iter().filter(|start| is_small(start) && is_new(start)).collect()
}

/// The tree of the first order that exchanged summands show, if they show any.
pub fn first_exchanged(starts: &Starts) -> Vec<Model> {
    starts.of_exchanged_orders().take(1).collect()
}

/// Trees that get a second quick look.
const SECOND: usize = 4;

/// The trees of the quick looks, sum by sum, that explain most, the best first.
pub fn best_quick_trees(looked: &[Looked]) -> Vec<Model> {
    let quick = looked.iter().filter(|looked| looked.summed.is_some());
    quick.take(SECOND).map(|quick| quick.start.clone()).collect()
}

/// Quick looks, sum by sum, from other guesses at these trees, until one explains nearly everything: from one guess the rule
/// of the last sum may be found where it is not from another. The best first.
pub fn open_sums(evidence: &Evidence, mut looked: Vec<Looked>, trees: Vec<Model>) -> Vec<Looked> {
    for start in trees {
        looked.push(Looked::from_open_sums(evidence, start));
        if looked.last().is_some_and(|open| open.is_nearly_explained(evidence)) {
            break;
        }
    }
    recounted(evidence, looked)
}

/// Trees in which sums are taken to hand on what they add, with as much effort as any, where nothing else has led further.
const OPENED: usize = 3;

/// Where no other tree explains nearly everything: the usual look, sum by sum, from other guesses, at the first trees that
/// exchanged summands and masks show, and at what adds all products at once, until one does. The best first.
pub(super) fn other_guesses(starts: &Starts, looked: Vec<Looked>) -> Vec<Looked> {
    let evidence = starts.evidence;
    let shown = starts.of_exchanged_orders().take(1).chain(starts.shown(0));
    let opened = distinct(shown, OPENED).into_iter().map(|start| nodewise::opened(&start));
    let is_new = |start: &Model| !looked.iter().any(|looked| looked.is_summed_in(evidence, start));
    let others: Vec<Model> = opened.chain(starts.flat().into_iter().filter(is_new)).collect();
    until_nearly_explained(evidence, looked, others, Effort::Usual)
}

/// Looks, sum by sum, at these models, one after the other, until one explains nearly everything. The best first.
pub(super) fn until_nearly_explained(
    evidence: &Evidence,
    mut looked: Vec<Looked>,
    models: Vec<Model>,
    effort: Effort,
) -> Vec<Looked> {
    for start in models {
        looked.push(Looked::sum_by_sum(evidence, start, effort));
        if looked.last().is_some_and(|looked| looked.is_nearly_explained(evidence)) {
            break;
        }
    }
    recounted(evidence, looked)
}

/// Times that an order is changed in one sum, and orders that are tried each time.
const CHANGES: usize = 8;
const CHANGED: usize = 2;
/// Answers that models may be held against before no other order is changed.
const ALL_CHANGED: u64 = 1_000_000_000;

/// Quick looks, sum by sum, at [orders that differ in one sum](neighbours) from that of the best of the looks that were such,
/// and of all, and from those on, until one explains nearly everything; not from those that were tried, which are added to.
/// The best first.
pub fn neighbouring_sums(
    evidence: &Evidence,
    mut looked: Vec<Looked>,
    tried: &mut Vec<Model>,
) -> Vec<Looked> {
    let best = looked.iter().find(|looked| looked.summed.is_some()).into_iter().chain(&looked[..1]);
    // The next is the last.
    let mut next: Vec<Model> = best.rev().map(|best| best.fitted.model.clone()).collect();
    let most = evidence.work().spent() + ALL_CHANGED;
    for _ in 0..CHANGES {
        let is_tried = |model: &Model| tried.iter().any(|known| known.tree.has_the_same_sums(&model.tree));
        next.retain(|model| !is_tried(model));
        let Some(model) = next.pop().filter(|_| evidence.work().spent() < most) else { break };
        let others = neighbours::of(evidence, &model).into_iter().filter(Neighbour::is_likely);
        let others = others.map(|other| other.model).filter(|other| !is_tried(other));
        let likely: Vec<Model> = others.take(CHANGED).collect();
        tried.push(model);
        let last = next.len();
        for start in likely {
            let fitted = nodewise::fit(evidence, &start, nodewise::Start::Guessed, Effort::Quick);
            next.insert(last, fitted.model.clone());
            looked.push(Looked::summed(evidence, start, fitted, Effort::Quick));
            if looked.last().is_some_and(|looked| looked.is_nearly_explained(evidence)) {
                return recounted(evidence, looked);
            }
        }
    }
    recounted(evidence, looked)
}

/// Regular orders that get a quick look because they say more than what is shown, and answers that models may be held
/// against before none does.
const FINER: usize = 16;
const ALL_FINER: u64 = 500_000_000;

/// Quick looks, sum by sum, at regular orders that say all that exchanged summands show, and more, until one leaves next to
/// nothing: formats with little range show only some of the sums. The best first.
pub fn finer_sums(starts: &Starts, mut looked: Vec<Looked>) -> Vec<Looked> {
    let evidence = starts.evidence;
    let most = evidence.work().spent() + ALL_FINER;
    let is_small = |start: &Model| nodewise::individual(start).1.len() <= SUMS_AT_ONCE;
    let is_new = |start: &Model| !looked.iter().any(|looked| looked.is_known(evidence, start));
    let finer: Vec<Model> =
        starts.finer().into_iter().filter(|start| is_small(start) && is_new(start)).collect();
    for start in finer.into_iter().take(FINER) {
        if evidence.work().spent() >= most {
            break;
        }
        looked.push(Looked::sum_by_sum(evidence, start, Effort::Quick));
        if looked.last().is_some_and(|quick| quick.is_all_but_explained(evidence)) {
            break;
        }
    }
    recounted(evidence, looked)
}

/// Whether rules that were found sum by sum explain nearly everything.
pub fn sums_explain_nearly(evidence: &Evidence, looked: &[Looked]) -> bool {
    looked.iter().any(|looked| looked.summed.is_some() && looked.is_nearly_explained(evidence))
}

/// Trees that then get the usual look: a quick one may explain more in a tree that is only nearly right.
const USUAL_AT_ONCE: usize = 2;

/// The usual look, sum by sum, from the first guesses, at the regular tree and at those in which quick ones explain most.
/// The best first.
pub fn usual_sums(starts: &Starts, looked: Vec<Looked>) -> Vec<Looked> {
    let evidence = starts.evidence;
    let regular = starts.of_regular_order();
    let is_worth_it = |quick: &&Looked| quick.summed.is_some() && quick.is_worth_regrouping(evidence);
    let mut best: Vec<&Looked> = looked.iter().filter(is_worth_it).collect();
    // A stable sort: those that explain most, after the regular one.
    best.sort_by_key(|quick| regular.as_ref() != Some(&quick.start));
    let best = distinct(best.into_iter().map(|quick| quick.start.clone()), USUAL_AT_ONCE);
    until_nearly_explained(evidence, looked, best, Effort::Usual)
}

/// Rules found sum by sum in the likeliest trees, where a model explains nearly everything after more was asked. The best,
/// if there is any.
pub fn from_the_start(starts: &Starts) -> Option<Fitted> {
    looks_sum_by_sum(starts, starts.shown(1), MORE_SUMS)
        .into_iter()
        .map(|looked| looked.fitted)
        .min_by_key(|fitted| fitted.contradicted)
}

/// Looks, sum by sum, at those of these trees that have so many sums at most, until one explains nearly everything.
fn looks_sum_by_sum(starts: &Starts, trees: impl Iterator<Item = Model>, most: usize) -> Vec<Looked> {
    let mut looked: Vec<Looked> = Vec::new();
    for start in trees.filter(|start| nodewise::individual(start).1.len() <= most) {
        if looked.last().is_some_and(|looked| looked.is_nearly_explained(starts.evidence)) {
            break;
        }
        if looked.iter().all(|known| !known.start.tree.has_the_same_sums(&start.tree)) {
            looked.push(Looked::sum_by_sum(starts.evidence, start, Effort::Usual));
        }
    }
    looked
}

/// Trees whose rules are looked for sum by sum once more, closely.
const CLOSER: usize = 3;

/// A closer look, sum by sum, at the best of the trees that were looked at in that way, where they have few sums. The
/// best first.
pub(super) fn closer_sum_by_sum(evidence: &Evidence, looked: Vec<Looked>) -> Vec<Looked> {
    let is_worth_it = |looked: &&Looked| {
        looked.is_summed(evidence)
            && Effort::is_closer(nodewise::individual(&looked.start).0.tree.rules.len())
    };
    let best: Vec<Model> =
        looked.iter().filter(is_worth_it).take(CLOSER).map(|looked| looked.start.clone()).collect();
    until_nearly_explained(evidence, looked, best, Effort::Close)
}
