//! Looks at trees that differ a little from that of a model which explains most.

use mmaprobe_model::Model;
use rayon::prelude::*;

use super::{Looked, better_of, improved_at_last};
use crate::inference::evidence::{Answered, Class, Evidence, Stage};
use crate::inference::fit::{self, Fitted, Turn};
use crate::inference::knobs::Turned;
use crate::inference::regroup;

/// Where no more than one of so many answers contradicts the best model, other trees like its own are tried.
pub(super) const REGROUPED: usize = 10;
/// Times that a tree is changed.
const CHANGES: usize = 3;
/// Answers that contradict a model, and others, which other trees are tried on.
const TRIED_ON: [usize; 2] = [100, 300];
/// Trees whose rules are improved, and answers that models may be held against for each.
pub(super) const CHANGED: usize = 4;
const EACH_CHANGED: u64 = 2_000_000;
/// Where no more than so many answers contradict the model, those of more trees are: the right one may first explain a few
/// answers less than wrong ones, until its new sums get rules of their own.
const FEW_LEFT: usize = 20;
const CHANGED_WITH_FEW_LEFT: usize = 16;

/// A look at trees that differ in one place from that of a model which no more than one of so many answers contradicts.
pub(super) fn regrouped(evidence: &Evidence, mut best: Fitted, one_of: usize) -> Fitted {
    let mut answers: Vec<&Answered> = evidence.answers.iter().collect();
    for _ in 0..CHANGES {
        best = fit::scored(evidence, best.model);
        if best.contradicted == 0 || best.contradicted * one_of > answers.len() {
            break;
        }
        best = placed(evidence, best);
        if best.contradicted == 0 {
            break;
        }
        fit::front_load(&best.model, &mut answers);
        let (wrong, right) = answers.split_at(best.contradicted);
        let samples = [wrong, right].into_iter().zip(TRIED_ON).map(|(some, of)| fit::thinned(some, of));
        let sample: Vec<&Answered> = samples.flatten().collect();
        let mut tried: Vec<Fitted> = regroup::regrouped(&best.model)
            .into_par_iter()
            .map(|Turned { model, .. }| {
                let contradicted = fit::contradicted(&model, sample.iter().copied(), usize::MAX);
                Fitted { model, contradicted }
            })
            .collect();
        // A stable sort: what changes less comes first among equals.
        tried.sort_by_key(|fitted| fitted.contradicted);
        tried.truncate(if best.contradicted <= FEW_LEFT { CHANGED_WITH_FEW_LEFT } else { CHANGED });
        let found = best_improved(evidence, tried, EACH_CHANGED, best.contradicted);
        match found {
            Some(found) => best = found,
            None => break,
        }
    }
    best
}

/// What improving these models makes of them, each within this budget, until one explains everything: the best, if fewer
/// answers contradict it than `contradicted`.
pub(super) fn best_improved(
    evidence: &Evidence,
    starts: Vec<Fitted>,
    each: u64,
    contradicted: usize,
) -> Option<Fitted> {
    // Among equals, the one with the fewest rules and sums.
    let key = |fitted: &Fitted| {
        let tree = &fitted.model.tree;
        (fitted.contradicted, tree.rules.len(), tree.nodes.len())
    };
    let mut found: Option<Fitted> = None;
    for start in starts {
        let improved = improved_at_last(evidence, start, each);
        let is_better = |improved: &Fitted| match &found {
            Some(found) => key(improved) < key(found),
            None => improved.contradicted < contradicted,
        };
        found = Some(improved).filter(is_better).or(found);
        if found.as_ref().is_some_and(|found| found.contradicted == 0) {
            break;
        }
    }
    found
}

/// A model that explains every answer with the rules of this one, in a tree that differs in one place, if there is one.
pub(super) fn explained_by_a_tree(evidence: &Evidence, model: &Model) -> Option<Fitted> {
    let mut answers: Vec<&Answered> = evidence.answers.iter().collect();
    fit::front_load(model, &mut answers);
    regroup::regrouped(model)
        .into_par_iter()
        .find_first(|turned| fit::contradicted(&turned.model, answers.iter().copied(), 1) == 0)
        .map(|turned| Fitted { model: turned.model, contradicted: 0 })
}

/// Answers that models may be held against while it is found out which summands are aligned in ways of their own.
const PLACED: u64 = 10_000_000;

/// The same, or the better model that comes of other summands in the places of those that are aligned in ways of their own.
pub(super) fn placed(evidence: &Evidence, fitted: Fitted) -> Fitted {
    let fitted = fit::scored(evidence, fitted.model);
    let budget = evidence.budget(PLACED);
    let stages = [Class::Plain, Class::Nan].map(|class| Stage { class, ..Stage::LAST });
    let placed = stages.into_iter().fold(fitted.clone(), |found, stage| {
        let answers = fit::relevant(evidence, stage);
        fit::improve_on(evidence, found, &answers, stage.class, Turn::ABOUT_PLACES, &budget)
    });
    better_of(evidence, fitted, fit::settle_nans(evidence, placed))
}

/// A simpler tree is changed, too, where no more than so many times as many answers contradict it.
const SIMPLER: usize = 2;

/// The best of these, and what becomes of it where it explains most but for its tree. The best first.
pub fn best_regrouped(evidence: &Evidence, looked: Vec<Looked>) -> Vec<Looked> {
    best_regrouped_if(evidence, looked, REGROUPED)
}

/// The same, where no more than one of so many answers contradicts it.
pub(super) fn best_regrouped_if(evidence: &Evidence, mut looked: Vec<Looked>, one_of: usize) -> Vec<Looked> {
    if looked[0].is_explained() {
        return looked;
    }
    let most = looked[0].fitted.contradicted;
    let sums = |looked: &Looked| looked.fitted.model.tree.nodes.len();
    // What happens to explain most may be further from the tree than the simpler one that both come from.
    let is_simpler =
        |other: &&Looked| sums(other) < sums(&looked[0]) && other.fitted.contradicted <= SIMPLER * most;
    let simpler = looked.iter().skip(1).find(is_simpler).map(|looked| looked.fitted.clone());
    for start in std::iter::once(looked[0].fitted.clone()).chain(simpler) {
        let fitted = regrouped(evidence, start, one_of);
        if fitted.contradicted < looked[0].fitted.contradicted {
            looked.insert(0, Looked::as_it_is(fitted));
        }
        if looked[0].is_explained() {
            break;
        }
    }
    looked
}
