//! Which of many candidates are held against all answers: those that do best on a sample.
//!
//! A sample of as many answers that contradict the model as of others finds what explains much. Where few of all are
//! left, that lets through what breaks one in a hundred of the others, which is far more than it explains: there each
//! answer counts for as many as it stands for, and of the others there are more.

use mmaprobe_model::Model;
use rayon::prelude::*;

use super::thinned;
use crate::inference::budget::Budget;
use crate::inference::evidence::Answered;
use crate::inference::held::Held;
use crate::inference::simplicity;

/// How large a sample is.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// Answers that contradict the model, and about as many others.
    of_each: usize,
    /// Others, where far more answers are explained than not.
    others: usize,
    /// The most candidates that are let through for either reason.
    kept: usize,
}

impl Size {
    /// A small one for all candidates, and a large one for those that it lets through.
    pub(super) const ALL: [Size; 2] =
        [Size { of_each: 40, others: 200, kept: 100 }, Size { of_each: 700, others: 2000, kept: 8 }];

    /// Whether a sample of so many answers is worth it.
    fn is_worth_it(self, candidates: usize, answers: usize) -> bool {
        candidates > self.kept && answers > 4 * self.of_each
    }
}

/// Far more answers are explained than not: more than so many for each.
const FAR_MORE: usize = 4;

/// What breaks a quarter more answers than it explains, and a few of the sample more, is not what is looked for, whatever
/// else the sample says.
const QUARTERS: u64 = 5;
const FEW_BROKEN: u64 = 4;

/// Of these candidates, neighbours of a model, those that seem to explain most of the answers that contradict it, `wrong`, and
/// break least of the others, `right`: the best of a sample of about as many of both, then those that are among the best by
/// what each answer stands for alone. All, where none does better than the model in the former: what a small sample
/// does not show, a larger one may.
pub(super) fn promising(
    candidates: Vec<Model>,
    size: Size,
    model: &Model,
    (wrong, right): (&[&Answered], &[&Answered]),
    budget: &Budget,
) -> Vec<Model> {
    if !size.is_worth_it(candidates.len(), wrong.len() + right.len()) {
        return candidates;
    }
    let sample = Sample::new(size, model, wrong, right);
    let numbered = candidates.par_iter().enumerate();
    let tried: Vec<Tried> =
        numbered.filter_map(|(index, model)| sample.tried(index, model, budget)).collect();
    if tried.is_empty() {
        return candidates;
    }
    let mut kept: Vec<usize> = best(size, &tried, |tried| Some(tried.sampled as u64));
    for index in best(size, &tried, |tried| tried.estimated) {
        if !kept.contains(&index) {
            kept.push(index);
        }
    }
    kept.into_iter().map(|index| candidates[index].clone()).collect()
}

/// The candidates with the least of something, among equals the simplest, then the first.
fn best(size: Size, tried: &[Tried], key: impl Fn(&Tried) -> Option<u64>) -> Vec<usize> {
    let keyed = |tried: &Tried| Some((key(tried)?, tried.exceptions, tried.index));
    let mut sorted: Vec<(u64, u32, usize)> = tried.iter().filter_map(keyed).collect();
    sorted.sort_unstable();
    sorted.truncate(size.kept);
    sorted.into_iter().map(|(_, _, index)| index).collect()
}

/// What a candidate makes of a sample.
struct Tried {
    index: usize,
    exceptions: u32,
    /// The answers of the sample that contradict it, of about as many that contradict the model as of others.
    sampled: usize,
    /// How many of all do, in a unit that is the same for all candidates; `None` where that is not looked at, or where the
    /// candidate breaks too many.
    estimated: Option<u64>,
}

/// Answers, and the model whose neighbours are held against them.
struct Sample<'a, 'm> {
    wrong: Held<'a, 'm>,
    right: Held<'a, 'm>,
    /// More of those that the model explains, where these are far more than others.
    others: Option<Others<'a, 'm>>,
}

/// More answers that the model explains.
struct Others<'a, 'm> {
    held: Held<'a, 'm>,
    /// What one of the answers that contradict the model counts, and one of these: as many as it stands for.
    weights: [u64; 2],
}

impl<'a, 'm> Sample<'a, 'm> {
    fn new(size: Size, model: &'m Model, wrong: &[&'a Answered], right: &[&'a Answered]) -> Sample<'a, 'm> {
        let held = |answers: &[&'a Answered], number| Held::new(model, &thinned(answers, number));
        let sampled = held(wrong, size.of_each);
        let others = (right.len() > FAR_MORE * wrong.len()).then(|| {
            let held = held(right, size.others);
            // Each stands for a part of its own kind; both are brought to one unit.
            let weights = [
                wrong.len() as u64 * held.number_of_answers() as u64,
                right.len() as u64 * sampled.number_of_answers() as u64,
            ];
            Others { held, weights }
        });
        Sample { wrong: sampled, right: held(right, size.of_each), others }
    }

    /// What a candidate makes of it; `None` if it leaves as much unexplained as the model.
    fn tried(&self, index: usize, model: &Model, budget: &Budget) -> Option<Tried> {
        let all = self.wrong.number_of_answers();
        let missed = budget.contradicted_held(model, &self.wrong, all);
        if missed >= all {
            return None;
        }
        let broken = budget.contradicted_in_passing(model, &self.right, all - missed);
        if missed + broken >= all {
            return None;
        }
        let estimated =
            self.others.as_ref().and_then(|others| others.estimated(model, (missed, all), budget));
        Some(Tried { index, exceptions: simplicity::exceptions(model), sampled: missed + broken, estimated })
    }
}

impl Others<'_, '_> {
    /// How many of all answers contradict a candidate that misses so many of so many which contradict the model; `None` if it
    /// breaks too many.
    fn estimated(&self, model: &Model, (missed, all): (usize, usize), budget: &Budget) -> Option<u64> {
        let [of_wrong, of_others] = self.weights;
        let explained = (all - missed) as u64 * of_wrong;
        let most = explained * QUARTERS / 4 / of_others + FEW_BROKEN;
        let broken = budget.contradicted_in_passing(model, &self.held, most as usize) as u64;
        (broken < most).then_some(missed as u64 * of_wrong + broken * of_others)
    }
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32};
    use mmaprobe_model::scalar::Scalar;
    use mmaprobe_model::tree::Normalised;

    use super::*;
    use crate::inference::fit::{self, Fitted};
    use crate::inference::testing;

    #[test]
    fn what_breaks_few_answers_is_kept_from_pushing_out_what_breaks_none() {
        let signature = testing::signature(3);
        let model = Model::chain_of_fma(FP16, FP32, 3);
        // Where the model rounds up, only one of the two differs from it, and where it rounds down, only the other.
        let rounded = |rounding| {
            let mut other = model.clone();
            let Normalised::To(round) = &mut other.tree.rules[0].normalised else {
                panic!("a chain of FMA rounds");
            };
            round.rounding = rounding;
            other
        };
        let (right_turn, breaking) = (rounded(Rounding::Up), rounded(Rounding::Down));
        let all = testing::sparse_answers(&signature, &model, 30_000, 5);
        let answers: Vec<&Answered> = all.iter().collect();
        let given = |model| fit::all_explained(model, &answers).expect("it can be executed");
        let told: Vec<(bool, bool)> = given(&right_turn).into_iter().zip(given(&breaking)).collect();
        let those = |wanted: (bool, bool)| {
            let told = told.iter().zip(&all);
            told.filter(move |(told, _)| **told == wanted).map(|(_, answered)| answered)
        };
        // Of 80 answers the one turn explains 30 and the other 50, but that breaks one in a hundred of the others.
        let mut wrong: Vec<Answered> = Vec::new();
        for (turn, wanted, number) in [(&right_turn, (false, true), 30), (&breaking, (true, false), 50)] {
            let mut executor = Scalar::new(turn).expect("it can be executed");
            wrong.extend(those(wanted).take(number).map(|answered| {
                let answer = executor.execute(&answered.inputs);
                Answered { answer, ..answered.clone() }
            }));
        }
        let right: Vec<&Answered> = those((true, true)).collect();
        let broken: Vec<&Answered> = those((true, false)).skip(50).take(right.len() / 100).collect();
        assert!(right.len() > 10_000 && broken.len() > 80 && wrong.len() == 80, "{}", right.len());
        let mut ordered: Vec<&Answered> = wrong.iter().collect();
        for (index, right) in right.iter().enumerate() {
            ordered.push(right);
            ordered.extend((index % 100 == 50).then(|| broken.get(index / 100)).flatten());
        }
        let best = Fitted { model: model.clone(), contradicted: 80 };
        // What explains more is there more often than is let through.
        let mut candidates = vec![breaking; 150];
        candidates.push(right_turn.clone());
        let budget = Budget::of(u64::MAX);
        let found = fit::best_of(candidates, &best, &ordered, &budget).expect("one is better");
        assert_eq!((found.model, found.contradicted), (right_turn, 50));
    }
}
