//! Looks at the rules of a model that are to blame for what contradicts it.

use super::{EACH_RULE, FEW, LONG, better_of, improved_at_last};
use crate::inference::blame;
use crate::inference::evidence::{Class, Evidence, Stage};
use crate::inference::fit::{self, Fitted, Turn};
use crate::inference::grid::{self, Kind, Trial};
use crate::inference::knobs::Scope;

/// Rules to blame in which everything is combined.
const BLAMED: usize = 3;
/// Times that one is looked for, as long as each leaves no more than half of what the one before did.
const TIMES: usize = 3;
const LEFT: usize = 2;
/// Answers that models may be held against before no other rule is tried.
const ALL_BLAMED: u64 = 4 * EACH_RULE;

/// The same, or the better model in which one of the [rules to blame](blame) after the other is another, such that no plain
/// answer contradicts it, or none at all.
pub(super) fn with_blamed_rules_improved(evidence: &Evidence, mut fitted: Fitted) -> Fitted {
    let plain = Stage { class: Class::Plain, ..Stage::LAST };
    let most = evidence.work().spent() + ALL_BLAMED;
    for (stage, kinds) in [(plain, &Kind::FEW_ANSWERS[..]), (Stage::LAST, &Kind::NOT_PLAIN[..])] {
        let answers = fit::relevant(evidence, stage);
        let contradicted = fit::contradicted(&fitted.model, answers.iter().copied(), usize::MAX);
        // Few enough can be explained in many ways.
        if contradicted < FEW {
            continue;
        }
        let mut best = Fitted { model: fitted.model.clone(), contradicted };
        for _ in 0..TIMES {
            if evidence.work().spent() > most {
                break;
            }
            let start = best.clone();
            for rule in blame::ranked(evidence, &start.model, &answers, stage.class).into_iter().take(BLAMED)
            {
                if best.contradicted == 0 || evidence.work().spent() > most {
                    break;
                }
                let budget = evidence.budget(EACH_RULE);
                let trial = Trial { rule, scope: Scope::All, answers: &answers, budget: &budget };
                let turns = [Turn::Once, Turn::Jointly];
                let found = grid::improve(evidence, start.clone(), trial, kinds, stage.class, &turns);
                let least = found.into_iter().min_by_key(|found| found.contradicted);
                best = least.filter(|found| found.contradicted < best.contradicted).unwrap_or(best);
            }
            if best.contradicted == 0 || best.contradicted * LEFT > start.contradicted {
                break;
            }
        }
        if best.contradicted > 0 {
            break;
        }
        fitted = better_of(evidence, fitted, improved_at_last(evidence, best, LONG));
    }
    fitted
}
