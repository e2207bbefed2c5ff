//! The search for a model that explains every answer.
//!
//! From a structure with guessed rules, knobs are turned one at a time toward fewer contradicted
//! answers, class by class: plain numbers first, NaNs last. Where single turns no longer help, the
//! [wide search](super::search) takes over.

use std::ops::ControlFlow;

use mmaprobe_model::scalar::{Inputs, Lockstep, Scalar};
use mmaprobe_model::tree::NanRule;
use mmaprobe_model::{Decoded, Format, Model};
use rayon::prelude::*;

use super::budget::Budget;
use super::evidence::{Answered, Class, Evidence, Stage};
use super::held::Held;
use super::knobs::{self, Scope, Turned};
use super::simplicity;

mod sampling;

use sampling::{Size, promising};

/// A model and how many answers contradict it.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The model.
    pub model: Model,
    /// Contradicted answers of the classes looked at.
    pub contradicted: usize,
}

/// Whether a model gives this answer. Where its NaN rule is unknown, any NaN is as good as any other.
pub fn explains(executor: &mut Scalar, answered: &Answered) -> bool {
    let d = executor.execute(&answered.inputs);
    !differ(executor.model(), d, answered.answer)
}

/// Whether two answers differ as far as a model can tell: where its NaN rule is unknown, all NaNs are one.
pub fn differ(model: &Model, x: u64, y: u64) -> bool {
    x != y && !(model.nan == NanRule::Unknown && both_nan(&model.d, x, y))
}

/// Whether two bit patterns are both NaN.
pub fn both_nan(format: &Format, x: u64, y: u64) -> bool {
    [x, y].into_iter().all(|bits| matches!(format.decode(bits), Decoded::Nan { .. }))
}

/// Which of these answers, in their order, a model gives; `None` if it cannot be executed. As many as vectors have lanes are
/// executed at once.
pub fn all_explained(model: &Model, answers: &[&Answered]) -> Option<Vec<bool>> {
    let mut lockstep = Lockstep::new(model).ok()?;
    let inputs: Vec<&Inputs> = answers.iter().map(|answered| &answered.inputs).collect();
    let mut found = Vec::with_capacity(inputs.len());
    lockstep.execute(&inputs, &mut found);
    Some(answers.iter().zip(found).map(|(answered, d)| !differ(model, d, answered.answer)).collect())
}

/// Counts the answers that contradict a model; stops at `limit`.
pub fn contradicted<'a>(model: &Model, answers: impl Iterator<Item = &'a Answered>, limit: usize) -> usize {
    contradicted_of(model, answers, limit).0
}

/// Answers that a model is held against alone, before others, many at once: most that are wrong end there.
const ALONE: usize = 2;

/// The same, and how many answers it was held against.
pub fn contradicted_of<'a>(
    model: &Model,
    mut answers: impl Iterator<Item = &'a Answered>,
    limit: usize,
) -> (usize, usize) {
    let Ok(mut executor) = Scalar::new(model) else {
        return (limit, 0);
    };
    let (mut count, mut seen) = (0, 0);
    for answered in answers.by_ref().take(ALONE) {
        seen += 1;
        if !explains(&mut executor, answered) {
            count += 1;
            if count >= limit {
                return (count, seen);
            }
        }
    }
    let mut lockstep = Lockstep::with(executor);
    let (mut some, mut inputs, mut found) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        some.clear();
        some.extend(answers.by_ref().take(Lockstep::LANES));
        if some.is_empty() {
            return (count, seen);
        }
        inputs.clear();
        inputs.extend(some.iter().map(|answered: &&Answered| &answered.inputs));
        found.clear();
        lockstep.execute(&inputs, &mut found);
        for (answered, &d) in some.iter().zip(&found) {
            seen += 1;
            if differ(model, d, answered.answer) {
                count += 1;
                if count >= limit {
                    return (count, seen);
                }
            }
        }
    }
}

/// A model, and how many of all answers contradict it.
pub fn scored(evidence: &Evidence, model: Model) -> Fitted {
    let contradicted = contradicted(&model, evidence.answers.iter(), usize::MAX);
    Fitted { model, contradicted }
}

/// The answers of a stage.
pub fn relevant<'e>(evidence: &'e Evidence, stage: Stage) -> Vec<&'e Answered> {
    evidence.answers.iter().filter(|answered| stage.has(answered)).collect()
}

/// Improves a model on the answers of a stage, within a budget. Deterministic for any number of threads.
pub fn improve(evidence: &Evidence, start: Fitted, stage: Stage, budget: &Budget) -> Fitted {
    match improve_within(evidence, start, stage, budget, |answers| answers) {
        ControlFlow::Continue(fitted) | ControlFlow::Break(fitted) => fitted,
    }
}

/// The same, but given up, with the model so far, where more than `tolerated` of so many answers contradict it.
pub fn improve_within(
    evidence: &Evidence,
    start: Fitted,
    stage: Stage,
    budget: &Budget,
    tolerated: impl Fn(usize) -> usize,
) -> ControlFlow<Fitted, Fitted> {
    let all = relevant(evidence, stage);
    // What led no further with simpler answers hardly does with more of them, but for the last of a class; nor
    // what led no further with a part of them with all.
    let mut is_stuck = (1..usize::MAX).contains(&start.contradicted) && stage.summands != usize::MAX;
    let mut fitted = start;
    // What is wrong shows in a part of them.
    for most in [GLIMPSED, all.len()] {
        let answers = if most < all.len() && stage.summands == usize::MAX {
            glimpse(&fitted.model, &all)
        } else {
            thinned(&all, most.max(1))
        };
        let turns = match stage {
            _ if is_stuck => &[Turn::Once],
            Stage::LAST => Turn::AT_LAST,
            _ => Turn::of(stage.class),
        };
        fitted = improve_on(evidence, fitted, &answers, stage.class, turns, budget);
        is_stuck = fitted.contradicted > 0;
        if fitted.contradicted > tolerated(answers.len()) {
            return ControlFlow::Break(fitted);
        }
        if answers.len() == all.len() {
            break;
        }
    }
    ControlFlow::Continue(fitted)
}

/// Answers that a model is improved on before all.
const GLIMPSED: usize = 4000;
/// Answers that contradict a model, if no more, are all among those: one or two of them can be explained in many ways, of
/// which the simplest is not always that of the others.
const ALL_OF: usize = 500;

/// A part of these answers, with all that contradict a model if these are few.
fn glimpse<'a>(model: &Model, all: &[&'a Answered]) -> Vec<&'a Answered> {
    let mut ordered = all.to_vec();
    let wrong = front_load(model, &mut ordered);
    if wrong > ALL_OF {
        return thinned(all, GLIMPSED);
    }
    let (wrong, right) = ordered.split_at(wrong);
    wrong.iter().copied().chain(thinned(right, GLIMPSED)).collect()
}

/// A model explains most that no more than one answer of so many contradicts.
const MOSTLY: usize = 10;

/// The best turn explains at least one of so many answers, or none leads out of here.
const PROGRESS: usize = 50;

/// Improves a model on these answers, which are of this class or simpler ones, by these turns, within a budget.
/// Deterministic for any number of threads.
pub fn improve_on(
    evidence: &Evidence,
    start: Fitted,
    answers: &[&Answered],
    class: Class,
    turns: &[Turn],
    budget: &Budget,
) -> Fitted {
    improve_some(evidence, start, Scope::All, answers, class, turns, budget)
}

/// The same by turns of some rules, and of what belongs to no rule.
pub fn improve_some(
    evidence: &Evidence,
    start: Fitted,
    scope: Scope,
    answers: &[&Answered],
    class: Class,
    turns: &[Turn],
    budget: &Budget,
) -> Fitted {
    let mut answers = answers.to_vec();
    let mut best = start;
    loop {
        best.contradicted = front_load(&best.model, &mut answers);
        if best.contradicted == 0 || budget.is_spent() {
            return best;
        }
        let is_progress =
            |better: &Fitted| (best.contradicted - better.contradicted) * PROGRESS >= best.contradicted;
        let mut step: Option<Fitted> = None;
        for turn in turns {
            let turned = turn.best(evidence, &best, scope, class, &answers, budget);
            let is_better =
                |other: &Fitted| step.as_ref().is_none_or(|step| other.contradicted < step.contradicted);
            step = turned.filter(is_better).or(step);
            let is_enough =
                |step: &Fitted| (best.contradicted - step.contradicted) * turn.enough() >= best.contradicted;
            if step.as_ref().is_some_and(is_enough) {
                break;
            }
        }
        let Some(better) = step else { return best };
        let leads_on = is_progress(&better);
        best = better;
        if !leads_on {
            return best;
        }
    }
}

/// Gives a model that explains everything but which NaN it is the first rule for NaNs that explains
/// that too, if there is one.
pub fn settle_nans(evidence: &Evidence, fitted: Fitted) -> Fitted {
    if fitted.model.nan != NanRule::Unknown || fitted.contradicted > 0 {
        return fitted;
    }
    let rules = knobs::nan_rules(&fitted.model, evidence.signature(), evidence);
    let settled = rules.into_par_iter().find_first(|&nan| {
        contradicted(&Model { nan, ..fitted.model.clone() }, evidence.answers.iter(), 1) == 0
    });
    match settled {
        Some(nan) => Fitted { model: Model { nan, ..fitted.model }, contradicted: 0 },
        None => fitted,
    }
}

/// Answers that simpler models are held against before all.
const NEWEST: usize = 500;

/// Takes every exception back that no answer asks for, also those of sums that may be added as others are or need not be
/// two, and puts the models with sums of their own into `left`: these explain everything, too. Deterministic for any
/// number of threads.
pub fn simplify(evidence: &Evidence, mut fitted: Fitted, left: &mut Vec<Model>) -> Fitted {
    if fitted.contradicted > 0 {
        return fitted;
    }
    loop {
        let own = simplicity::plainness(&fitted.model);
        let turned = knobs::turn_all(&fitted.model, evidence.signature(), Class::Nan, evidence);
        let alike = knobs::turn_alike(&fitted.model).into_iter().chain(knobs::turn_lone(&fitted.model));
        let alike = alike.map(|turned| turned.model.canonical());
        let mut simpler: Vec<_> = turned
            .into_iter()
            .chain(knobs::turn_starts(&fitted.model))
            .map(|turned| turned.model)
            .chain(alike)
            .map(|model| (simplicity::plainness(&model), model))
            .filter(|(plainness, _)| *plainness < own)
            .collect();
        // A stable sort: the first among equals.
        simpler.sort_by_key(|(plainness, _)| *plainness);
        // What was asked last has told models like these apart.
        let newest = evidence.answers.iter().rev().take(NEWEST);
        let stands = |model: &Model| contradicted(model, newest.clone().chain(evidence.all()), 1) == 0;
        let found = simpler.into_par_iter().find_first(|(_, model)| stands(model));
        match found {
            Some((_, model)) => {
                if model.tree.rules.len() < fitted.model.tree.rules.len() {
                    left.push(fitted.model);
                }
                fitted.model = model;
            }
            None => return fitted,
        }
    }
}

/// Puts the answers that contradict the model in front, keeping their order otherwise: they are likely
/// to contradict its neighbours, and a count can stop early. How many there are: all, where the model cannot be
/// executed.
pub fn front_load(model: &Model, answers: &mut Vec<&Answered>) -> usize {
    let Some(explained) = all_explained(model, answers) else { return answers.len() };
    let mut explained = explained.into_iter();
    let (right, mut ordered): (Vec<&Answered>, Vec<&Answered>) =
        answers.drain(..).partition(|_| explained.next() == Some(true));
    let wrong = ordered.len();
    ordered.extend(right);
    *answers = ordered;
    wrong
}

/// The best of these candidates, if it is better than `best`; among equals the simplest, then the first.
fn best_of(
    mut candidates: Vec<Model>,
    best: &Fitted,
    answers: &[&Answered],
    budget: &Budget,
) -> Option<Fitted> {
    // The answers that contradict the model stand in front.
    let split = answers.split_at(best.contradicted);
    for size in Size::ALL {
        candidates = promising(candidates, size, &best.model, split, budget);
    }
    best_of_all(candidates, best, answers, budget)
}

/// So many models or more are held against answers as neighbours of the best one.
const ALIKE: usize = 3;

/// About so many of these, evenly spread.
pub fn thinned<T: Copy>(all: &[T], number: usize) -> Vec<T> {
    let step = all.len().div_ceil(number).max(1);
    all.iter().step_by(step).copied().collect()
}

fn best_of_all(
    candidates: Vec<Model>,
    best: &Fitted,
    answers: &[&Answered],
    budget: &Budget,
) -> Option<Fitted> {
    // What explains most of what the model does not mostly breaks least of what it does.
    let (wrong, right) = answers.split_at(best.contradicted);
    // What they have in common is executed once.
    let held = (candidates.len() >= ALIKE).then(|| Held::new(&best.model, wrong));
    let count = |(index, model): (usize, Model)| {
        let missed = match &held {
            Some(held) => budget.contradicted_held(&model, held, wrong.len()),
            None => budget.contradicted(&model, wrong, wrong.len()),
        };
        (missed, simplicity::exceptions(&model), index, model)
    };
    let mut counted: Vec<(usize, u32, usize, Model)> =
        candidates.into_par_iter().enumerate().map(count).collect();
    counted.sort_by_key(|(missed, exceptions, index, _)| (*missed, *exceptions, *index));
    let mut limit = best.contradicted;
    let mut found: Option<(usize, u32, usize, Model)> = None;
    for (missed, exceptions, index, model) in counted {
        if missed >= limit {
            break;
        }
        let contradicted = missed + budget.contradicted(&model, right, limit - missed);
        let is_better = found.as_ref().is_none_or(|(least, others, first, _)| {
            (contradicted, exceptions, index) < (*least, *others, *first)
        });
        if contradicted < limit && is_better {
            // The next may be as good, and simpler.
            limit = contradicted + 1;
            found = Some((contradicted, exceptions, index, model));
        }
    }
    found.map(|(contradicted, .., model)| Fitted { model, contradicted })
}

/// What is turned, the next where the one before leads no further.
#[derive(Clone, Copy, Debug)]
pub enum Turn {
    /// One knob.
    Once,
    /// Several things about an alignment, or the same in all rules.
    Jointly,
    /// How one of the first summands is aligned.
    Positions,
    /// The result is rounded by way of another number.
    Twice,
    /// One knob of some of the sums that share a rule.
    Apart,
    /// Summands far below are rounded otherwise, also where an exact sum is aligned instead.
    Far,
    /// Which summands are aligned in ways of their own.
    Places,
    /// What becomes of small results, and of zeros, of one rule; also where its sums are handed on as they are.
    SmallResults,
}

impl Turn {
    /// Those that tell which summands are aligned in ways of their own, and in which.
    pub const ABOUT_PLACES: &[Turn] = &[Turn::Once, Turn::Jointly, Turn::Positions, Turn::Places];

    /// A single knob, or what one rule makes of small results.
    pub const ABOUT_SMALL_RESULTS: &[Turn] = &[Turn::Once, Turn::SmallResults];

    /// Those that lead on with all answers: in formats with little range, only sums that may overflow show how small
    /// summands are rounded.
    const AT_LAST: &[Turn] = &[Turn::Once, Turn::Jointly, Turn::Positions, Turn::Far];

    /// Those that lead on with answers of a class.
    pub fn of(class: Class) -> &'static [Turn] {
        match class {
            Class::Plain => {
                &[Turn::Once, Turn::Jointly, Turn::Positions, Turn::Twice, Turn::Apart, Turn::Far]
            }
            _ => &[Turn::Once, Turn::Jointly],
        }
    }

    /// Enough is explained, if it is one of so many answers, for the next kind of turn to be left out: many
    /// small steps end where one larger one does not.
    fn enough(self) -> usize {
        match self {
            Turn::Once => 2,
            Turn::Jointly => 10,
            Turn::Positions | Turn::Twice | Turn::Apart | Turn::Far | Turn::Places | Turn::SmallResults => {
                PROGRESS
            }
        }
    }

    /// The best of all turns, if it is better than `best`; among equals the first.
    fn best(
        self,
        evidence: &Evidence,
        best: &Fitted,
        scope: Scope,
        class: Class,
        answers: &[&Answered],
        budget: &Budget,
    ) -> Option<Fitted> {
        let signature = evidence.signature();
        let model = &best.model;
        let mut groups: Vec<(Model, Vec<Turned>)> = Vec::new();
        match self {
            Turn::Once => {
                let mut turned = knobs::turn(model, signature, class, evidence, scope);
                turned.extend(knobs::turn_kind(model, signature, scope));
                if class >= Class::Subnormal {
                    turned.extend(knobs::turn_products(model, signature, class));
                }
                groups.push((model.clone(), turned));
            }
            Turn::Jointly => {
                let mut turned = knobs::turn_everywhere(model, signature, class);
                turned.extend(knobs::turn_ends(model, class));
                turned.extend(knobs::turn_product_exponents(model, signature));
                turned.extend(knobs::turn_zeros(model, scope));
                turned.extend(knobs::turn_filed(model, scope));
                turned.extend(knobs::turn_cutoff(model));
                if class >= Class::Infinite {
                    turned.extend(knobs::turn_range_twice(model, signature));
                }
                // Of one rule beside right ones, zeros show as much about what is lost.
                if class == Class::Plain || class == Class::Zero && scope != Scope::All {
                    turned.extend(knobs::turn_alignments(model, false, scope));
                    turned.extend(knobs::turn_products(model, signature, class));
                }
                groups.push((model.clone(), turned));
            }
            // Where more is wrong, that is not why.
            Turn::Far | Turn::Places if best.contradicted > answers.len() / MOSTLY => {}
            Turn::Positions if class > Class::Plain && best.contradicted > answers.len() / MOSTLY => {}
            Turn::Positions => groups.push((model.clone(), knobs::turn_positions(model))),
            Turn::Twice => groups.extend(knobs::turn_twice(model, signature)),
            Turn::Places => {
                let mut turned = knobs::turn_places(model);
                turned.extend(knobs::turn_own_places(model));
                groups.push((model.clone(), turned));
            }
            Turn::Far => {
                let mut turned = knobs::turn_exact_but_far(model);
                turned.extend(knobs::turn_far(model, scope));
                turned.extend(knobs::turn_not_far(model));
                groups.push((model.clone(), turned));
            }
            Turn::SmallResults => {
                let mut turned = knobs::turn_ends_of_each(model);
                turned.extend(knobs::turn_open_ends(model, signature));
                groups.push((model.clone(), turned));
            }
            Turn::Apart => {
                for split in knobs::split(model) {
                    let turned = knobs::turn_all(&split, signature, class, evidence);
                    groups.push((split, turned));
                }
            }
        }
        let mut found: Option<Fitted> = None;
        for (base, turned) in groups {
            let limit = found.as_ref().map_or(best.contradicted, |found| found.contradicted);
            let base = Fitted { model: base, contradicted: best.contradicted };
            // Not all that is turned goes by rules.
            let candidates = turned.into_iter().map(|turned| turned.model);
            let candidates =
                candidates.filter(|model| scope.has_all_that_differ(&base.model, model)).collect();
            let better = best_of(candidates, &base, answers, budget);
            found = better.filter(|other| other.contradicted < limit).or(found);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{FP16, FP32};

    use super::*;
    use crate::inference::testing;

    #[test]
    fn a_glimpse_has_every_one_of_few_answers_that_contradict() {
        let signature = testing::signature(3);
        let model = Model::chain_of_fma(FP16, FP32, 3);
        let mut all = testing::sparse_answers(&signature, &model, 3 * GLIMPSED, 3);
        let wrong_in_glimpse = |all: &[Answered]| {
            let glimpse = glimpse(&model, &all.iter().collect::<Vec<_>>());
            assert!(glimpse.len() <= GLIMPSED + ALL_OF, "{}", glimpse.len());
            contradicted(&model, glimpse.into_iter(), usize::MAX)
        };
        assert_eq!(wrong_in_glimpse(&all), 0);
        for index in 0..5 {
            all[1001 * index + 1].answer ^= 1;
        }
        assert_eq!(wrong_in_glimpse(&all), 5);
        // Of many, a part says as much.
        all.iter_mut().for_each(|answered| answered.answer ^= 1);
        assert!(wrong_in_glimpse(&all) > GLIMPSED / 2);
    }
}
