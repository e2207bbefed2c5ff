//! Rules that sums share: of those that were found for each, the ones that answers do not tell apart.

use mmaprobe_model::Model;
use rayon::prelude::*;

use crate::inference::evidence::{Answered, Evidence, Stage};
use crate::inference::fit::{self, Fitted};
use crate::inference::search::Search;
use crate::inference::simplicity;

/// Answers that models may be held against with rules that sums share; and half as many again.
const SHARED: u64 = 30_000_000;

/// All answers, for a model that explains nearly all plain ones: sums that add alike mostly do
/// everything alike, and one turn for all is found where one for each would explain nothing yet.
pub(super) fn with_shared_rules(evidence: &Evidence, model: Model) -> Fitted {
    let alone = evidence.budget(SHARED);
    let all: Vec<&Answered> = evidence.answers.iter().collect();
    let mut found = Fitted { model: model.clone(), contradicted: usize::MAX };
    let mut next = model;
    loop {
        let start = Fitted { model: next, contradicted: usize::MAX };
        let improved =
            Stage::all().fold(start, |fitted, stage| fit::improve(evidence, fitted, stage, &alone));
        let improved = fit::scored(evidence, improved.model);
        if improved.contradicted >= found.contradicted {
            break;
        }
        found = improved;
        // What only looked different may now be alike.
        next = merged(&all, &found.model);
        if found.contradicted == 0 || next.tree.rules.len() == found.model.tree.rules.len() {
            break;
        }
    }
    if found.contradicted > 0 {
        found = Search::within(evidence, SHARED / 2).run(vec![found.model]).swap_remove(0);
    }
    fit::settle_nans(evidence, found)
}

/// The model with as few rules as explain as many of these answers: a sum's own rule becomes that of another
/// sum where no answer asks for its own.
pub(super) fn merged(answers: &[&Answered], model: &Model) -> Model {
    let mut best = model.clone();
    let limit = fit::contradicted(model, answers.iter().copied(), usize::MAX) + 1;
    for rule in (0..best.tree.rules.len()).rev() {
        let candidates: Vec<Model> = (0..best.tree.rules.len())
            .filter(|&other| best.tree.rules[other] != best.tree.rules[rule])
            .map(|other| {
                let mut model = best.clone();
                model.tree.rules[rule] = model.tree.rules[other].clone();
                model
            })
            .filter(|model| {
                simplicity::exceptions(&model.canonical()) < simplicity::exceptions(&best.canonical())
            })
            .collect();
        let found = candidates
            .into_par_iter()
            .find_last(|model| fit::contradicted(model, answers.iter().copied(), limit) < limit);
        best = found.unwrap_or(best);
    }
    best.canonical()
}
