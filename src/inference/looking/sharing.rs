//! Looks at rules that sums share.
//!
//! In most machines adders come in few kinds. With a rule for each sum, the first that is found has to be right before
//! the next is looked for, and what a sum makes of numbers that pass it cannot be told from what those below do. Where all
//! share a rule, every answer is about it.

use mmaprobe_model::Model;

use super::chaining;
use super::regrouping::regrouped;
use super::starts::distinct;
use super::{LONG, Looked, better_of, improved_at_last, recounted};
use crate::inference::alike::{self, Sharing};
use crate::inference::evidence::Evidence;
use crate::inference::looking::Starts;
use crate::inference::nodewise::{self, Effort, Start};
use crate::inference::regular::Regular;

/// Trees whose sums are taken to share rules, of those that exchanged summands show, of those grouped otherwise, and of all.
const EXCHANGED: usize = 2;
const GROUPED: usize = 2;
const TREES: usize = 6;
/// Where little effort leaves no more than one of so many answers unexplained, more is made in the best of these trees.
const WORTH_MORE: usize = 5;
/// Where no more than one of so many answers contradicts the best of these, other trees are tried.
const REGROUPED_SHARED: usize = 3;

/// Rules that sums share, in the trees that exchanged summands and masks show and in the regular ones that are most like
/// what a closer look shows, until one explains nearly everything. Where one does already, in its tree once more, from no
/// rules, and in those that exchanged summands show. The best first, without those that are far from it.
pub fn shared(starts: &Starts, mut looked: Vec<Looked>) -> Vec<Looked> {
    let evidence = starts.evidence;
    let exchanged = distinct(starts.exchanged(), EXCHANGED);
    // Groups that are not as they are shown are told from what adds their sums.
    let grouped = distinct(starts.gathered().take(1).chain(starts.coarsened()), GROUPED);
    let is_grouped =
        |start: &Model| grouped.iter().any(|grouped| grouped.tree.has_the_same_sums(&start.tree));
    let trees = if looked[0].is_all_but_explained(evidence) {
        // Turns that explain most answers may be wrong, and lead on to others that are.
        distinct(std::iter::once(looked[0].start.clone()).chain(exchanged), usize::MAX)
    } else {
        let others = starts.shown(0).chain(starts.regulars()).chain(starts.shown(1));
        distinct(exchanged.into_iter().chain(grouped.iter().cloned()).chain(others), TREES)
    };
    let look = |start: &Model, model: Model, rules: Start, effort: Effort| {
        Looked::sharing(evidence, start, model, rules, effort)
    };
    let before = looked.len();
    let mut worth_more: Vec<(usize, &Model, Model)> = Vec::new();
    'trees: for start in &trees {
        let kinds =
            if is_grouped(start) { &[Sharing::ByKind][..] } else { &[Sharing::Inside, Sharing::ByKind] };
        for &sharing in kinds {
            let Some(model) = alike::with_shared_rules(start, sharing).filter(shares_rules) else { continue };
            let found = look(start, model.clone(), Start::Guessed, Effort::Quick);
            let left = found.fitted.contradicted;
            let split = alike::split_by_kind(&found.fitted.model).filter(shares_rules);
            let is_nearly = found.is_nearly_explained(evidence);
            looked.push(found);
            if let Some(split) = split.filter(|_| is_nearly && left > 0) {
                looked.push(look(start, split, Start::Known, Effort::Quick));
            } else if !is_nearly && left * WORTH_MORE <= evidence.answers.len() {
                worth_more.push((left, start, model));
            }
            if is_nearly {
                break 'trees;
            }
        }
    }
    let best = looked.iter().skip(before).min_by_key(|looked| looked.fitted.contradicted);
    if let Some(best) = best.filter(|best| !best.is_nearly_explained(evidence)) {
        // Rules may be right where the tree is not, in all places that are alike.
        let left = best.fitted.contradicted;
        let start = best.start.clone();
        let other = regrouped(evidence, best.fitted.clone(), REGROUPED_SHARED);
        if other.contradicted < left {
            looked.push(look(&start, other.model, Start::Known, Effort::Quick));
        }
    }
    // The first among equals.
    let best = worth_more.into_iter().min_by_key(|(left, ..)| *left);
    if let Some((_, start, model)) = best
        && !looked.iter().any(|looked| looked.is_nearly_explained(evidence))
    {
        looked.push(look(start, model, Start::Guessed, Effort::Usual));
    }
    without_far_ones(evidence, looked, before)
}

/// These models, of those behind so many only the ones that are not far from right: others would stand before trees that a rule
/// for each sum explains. The best first.
fn without_far_ones(evidence: &Evidence, mut looked: Vec<Looked>, before: usize) -> Vec<Looked> {
    let shared = looked.split_off(before).into_iter();
    looked.extend(shared.filter(|looked| looked.is_worth_regrouping(evidence)));
    recounted(evidence, looked)
}

/// Sums of a tree, if no fewer, that are taken to share rules before each gets one of its own: with many, that takes minutes.
const MANY_SUMS: usize = 6;
/// Orders in which they are, and answers that models may be held against before no other is.
const RACED: usize = 16;
const ALL_RACED: u64 = 100_000_000;

/// Whether the first order that exchanged summands show has so many sums that those are taken to share rules before a rule for
/// each is looked for: not where one is nearly explained.
pub fn is_shared_first(starts: &Starts, looked: &[Looked]) -> bool {
    let has_many = |start: Model| nodewise::individual(&start).1.len() >= MANY_SUMS;
    !looked[0].is_nearly_explained(starts.evidence)
        && starts.of_exchanged_orders().next().is_some_and(has_many)
}

/// One rule for the sums of products and one for the sums of those, in the orders that exchanged summands and masks show, with
/// groups taken otherwise, too, and in those that say more, until one explains nearly everything; no longer than in a race in
/// those that leave many answers unexplained. The best first, without those that are far from it.
pub fn shared_by_kind(starts: &Starts, mut looked: Vec<Looked>) -> Vec<Looked> {
    let evidence = starts.evidence;
    let most = evidence.work().spent() + ALL_RACED;
    let before = looked.len();
    let regular = Regular::of(evidence.signature());
    for start in distinct(starts.grouped_otherwise(&regular).chain(starts.finer_of(&regular)), RACED) {
        let model = alike::with_shared_rules(&start, Sharing::ByKind).filter(shares_rules);
        let Some(model) = model else { continue };
        let look = |effort| Looked::sharing(evidence, &start, model.clone(), Start::Guessed, effort);
        let mut found = look(Effort::Race);
        let is_ahead = found.fitted.contradicted * WORTH_MORE <= evidence.answers.len();
        if is_ahead && !found.is_nearly_explained(evidence) {
            found = look(Effort::Quick);
        }
        let is_nearly = found.is_nearly_explained(evidence);
        looked.push(found);
        if is_nearly || evidence.work().spent() >= most {
            break;
        }
    }
    without_far_ones(evidence, looked, before)
}

/// Orders in which all sums but the last are taken to share a rule before any is looked at sum by sum, the first of those
/// that exchanged summands and masks show, of those with groups dissolved, and of all, and answers that models may be held
/// against before no other is.
const ORDERS_SHOWN: usize = 12;
const ORDERS: usize = 80;
const ALL_ORDERS: u64 = 300_000_000;
/// Of these, the ones that get a quick look after a glance at all, and answers that models may be held against in each before any
/// gets more.
const ORDERS_AGAIN: usize = 2;
const SHORTLY: u64 = 100_000_000;
/// Sizes of groups, the largest, within which sums share a rule in each of those orders.
const GROUPS: usize = 1;

/// One rule for all sums but the last, or one for those in groups and one for those between, in the orders that exchanged
/// summands and masks show, also with groups dissolved, in chains of which only part of the order shows, and, where formats
/// have little range, so that what is shown is part of the order, in the regular ones that say more, until one explains
/// everything. One rule is found soon, and mostly in the right order alone: all get a glance, those that do best a quick look,
/// which is short at first, and the best of these a longer one where little is left. The best first, of these only those that
/// leave hardly anything.
pub fn shared_at_once(starts: &Starts, mut looked: Vec<Looked>) -> Vec<Looked> {
    let evidence = starts.evidence;
    let look_with = |evidence: &Evidence, start: &Model, sharing: Sharing, effort: Effort| {
        let model = alike::with_shared_rules(start, sharing).filter(shares_rules)?;
        let looked = Looked::sharing(evidence, start, model, Start::Guessed, effort);
        Some(Shared { looked, sharing })
    };
    let look = |start: &Model, sharing: Sharing, effort: Effort| look_with(evidence, start, sharing, effort);
    // A wrong order takes the longest.
    let shortly = |found: &Shared| {
        let part = evidence.part(SHORTLY);
        let mut found = look_with(&part, &found.looked.start, found.sharing, Effort::Quick)?;
        found.looked.is_cut = part.work().is_spent();
        Some(found)
    };
    // One rule that explains nearly everything is hardly far from right.
    let improved = |found: Looked| {
        let improved = improved_at_last(evidence, found.fitted.clone(), LONG);
        let fitted = better_of(evidence, found.fitted.clone(), improved);
        Looked { fitted, ..found }
    };
    let mut short: Vec<Shared> = Vec::new();
    for best in glanced_at(starts, &look).into_iter().take(ORDERS_AGAIN) {
        short.extend(if best.looked.is_explained() { Some(best) } else { shortly(&best) });
        if short.last().is_some_and(|found| found.looked.is_explained()) {
            looked.extend(short.pop().map(|found| found.looked));
            return recounted(evidence, looked);
        }
    }
    let mut others: Vec<Shared> = Vec::new();
    for found in short {
        let again = || look(&found.looked.start, found.sharing, Effort::Quick);
        let Some(found) = (if found.looked.is_cut { again() } else { Some(found) }) else { continue };
        if !found.looked.is_nearly_explained(evidence) {
            others.push(found);
            continue;
        }
        looked.push(improved(found.looked));
        // Formats with little range show little of an order: others explain nearly everything, too.
        if looked.last().is_some_and(Looked::is_explained) {
            return recounted(evidence, looked);
        }
    }
    // So little is hardly left in a wrong order.
    let best = others.into_iter().min_by_key(|other| other.looked.fitted.contradicted);
    let best = best.filter(|best| best.looked.is_mostly_explained(evidence));
    let found = best.and_then(|best| look(&best.looked.start, best.sharing, Effort::Usual));
    let found = found.map(|found| found.looked);
    looked.extend(found.filter(|found| found.is_nearly_explained(evidence)).map(improved));
    recounted(evidence, looked)
}

/// A look at an order in which sums share rules in this way.
struct Shared {
    looked: Looked,
    sharing: Sharing,
}

/// What a glance leaves in each of those orders, with one rule for all sums but the last, and with one for those in groups,
/// until one explains everything; those that leave least first.
fn glanced_at(starts: &Starts, look: &impl Fn(&Model, Sharing, Effort) -> Option<Shared>) -> Vec<Shared> {
    let work = starts.evidence.work();
    let most = work.spent() + ALL_ORDERS;
    let others = starts.dissolved().take(ORDERS_SHOWN).chain(chaining::apart(starts));
    let shown = starts.of_shown_orders().take(ORDERS_SHOWN).chain(others);
    // Products that each are aligned in a way of their own look like an order.
    let shown = starts.accumulator_late().into_iter().chain(shown);
    let finer = if starts.has_little_range() { starts.finer() } else { Vec::new() };
    let mut glanced: Vec<Shared> = Vec::new();
    'orders: for start in distinct(shown.chain(finer), ORDERS) {
        let groups = alike::groups(&start).into_iter().map(Sharing::ByGroup);
        for sharing in std::iter::once(Sharing::Inside).chain(groups.take(GROUPS)) {
            glanced.extend(look(&start, sharing, Effort::Glance));
            if glanced.last().is_some_and(|glanced| glanced.looked.is_explained()) || work.spent() >= most {
                break 'orders;
            }
        }
    }
    // A stable sort: those shown first among equals.
    glanced.sort_by_key(|glanced| glanced.looked.fitted.contradicted);
    glanced
}

/// Whether a model has fewer rules than sums.
fn shares_rules(model: &Model) -> bool {
    nodewise::individual(model).1.len() > model.tree.rules.len()
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32};
    use mmaprobe_model::tree::{Added, Alignment, Fused, Node};
    use mmaprobe_probes::Summand;

    use super::*;
    use crate::device::Device;
    use crate::inference::skeleton::Skeleton;
    use crate::inference::structure::{self, Structure};
    use crate::inference::{Silent, asking, fit, testing};

    /// c and two groups of products, all summed by one rule that aligns summands in two ways by turns.
    fn groups() -> Model {
        let mut model = Model::chain_of_fma(FP16, FP32, 6);
        let alignment = |fraction_bits, rounding| Alignment { fraction_bits, rounding, far: None };
        let by_turns = vec![alignment(24, Rounding::NearestTiesAway), alignment(21, Rounding::Down)];
        let fused = Fused { alignment: by_turns.into(), ..Fused::uniform(0, Rounding::Down) };
        model.tree.rules[0].added = Added::Fused(fused);
        let group = |first: usize| (first..first + 3).map(Node::Product);
        let sum = |children: &[usize]| Node::Sum { children: children.to_vec(), rule: 0 };
        let first: Vec<Node> = group(0).chain([sum(&[0, 1, 2])]).collect();
        let second = group(3).chain([sum(&[4, 5, 6]), sum(&[3, 7]), Node::Accumulator, sum(&[8, 9])]);
        model.tree.nodes = first.into_iter().chain(second).collect::<Vec<_>>().into();
        model
    }

    #[test]
    fn one_rule_for_all_sums_is_found_in_the_order_that_masks_show_where_exchanged_summands_show_another() {
        let truth = groups();
        assert_eq!(truth.check(), Ok(()));
        let signature = testing::signature(6);
        let device = testing::device(&signature, truth.clone(), (1, 1));
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        asking::first(&mut evidence, 1).expect("it answers");
        let outlined = asking::outline(&mut evidence, &Silent).expect("it answers");
        let mut outline = outlined.continue_value().expect("it is a function");
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let chain = (0..6).fold(Skeleton::Leaf(Summand::C), |sum, k| Skeleton::Sum(vec![sum, leaf(k)]));
        outline.exchanged = vec![chain.clone()];
        asking::each_sum(&mut evidence, &outline, 1).expect("it answers");
        let start = structure::start(&signature, &chain, Structure::Plain);
        let known = vec![Looked::as_it_is(fit::scored(&evidence, start))];
        let found = shared_at_once(&Starts { evidence: &evidence, outline: &outline }, known);
        assert!(found[0].is_explained(), "{} left", found[0].fitted.contradicted);
        assert!(found[0].fitted.model.tree.has_the_same_sums(&truth.tree));
    }
}
