//! Candidates that no answer contradicts, and which of them are alike.

use mmaprobe_model::Model;
use rayon::prelude::*;

use super::evidence::Answered;
use super::fit;
use super::held::Held;
use super::knobs::{Knob, Turned};

/// A choice of a knob beside a model's own.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The choice.
    pub turned: Turned,
    /// A number for all values of nodes that are others than the model's, in all answers so far; `None` where some of
    /// them cannot be said.
    fingerprint: Option<u64>,
    /// Pools of random questions that it has been held against.
    pub pools: usize,
}

impl Candidate {
    /// A choice that has been held against nothing yet.
    pub fn new(turned: Turned) -> Candidate {
        Candidate { turned, fingerprint: Some(0), pools: 0 }
    }

    /// What candidates share that are choices of one knob and give the same values to all nodes in all answers so far:
    /// what tells one of them from the model most often tells the others, too. `None` where that cannot be said.
    fn class(&self) -> Option<(u64, &Knob)> {
        Some((self.fingerprint?, &self.turned.knob))
    }
}

/// Answers that candidates are held against at once.
pub const PORTION: usize = 1000;

/// The candidates, neighbours of a model, that none of these answers contradicts.
pub fn standing(mut candidates: Vec<Candidate>, model: &Model, answers: &[&Answered]) -> Vec<Candidate> {
    let (others, last) = without_last(answers);
    for portion in std::iter::once(last).chain(others.chunks(PORTION)) {
        let held = Held::new(model, portion);
        let stands = |mut candidate: Candidate| {
            let (contradicting, fingerprint) = held.seen(&candidate.turned.model, 1)?;
            let together = |one: u64, other: u64| one.rotate_left(7).wrapping_add(other);
            candidate.fingerprint =
                candidate.fingerprint.zip(fingerprint).map(|(one, other)| together(one, other));
            contradicting.is_empty().then_some(candidate)
        };
        candidates = candidates.into_par_iter().filter_map(stands).collect();
    }
    candidates
}

/// The last of these answers, and about so many of all others, evenly spread, in their order.
pub fn mostly_last<'a>(answers: &[&'a Answered], others: usize) -> Vec<&'a Answered> {
    let (first, last) = without_last(answers);
    [&fit::thinned(first, others)[..], last].concat()
}

/// Answers, and the last portion of them: what was asked last was asked because it tells such models apart.
fn without_last<'s, 'a>(answers: &'s [&'a Answered]) -> (&'s [&'a Answered], &'s [&'a Answered]) {
    answers.split_at(answers.len().saturating_sub(PORTION))
}

/// Of candidates that are alike, so many are held against a pool. Each of these, and each one that is like no other, is held
/// against so many pools at most.
const AT_ONCE: usize = 2;
const POOLS: usize = 2;

/// The indices of the candidates to hold against the next pool: some of those that are alike, and all others, but for what
/// has been held against enough of them.
pub fn next(candidates: &[Candidate]) -> Vec<usize> {
    let mut classes: Vec<((u64, &Knob), Vec<usize>)> = Vec::new();
    let mut chosen = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        match candidate.class() {
            None if candidate.pools < POOLS => chosen.push(index),
            None => {}
            Some(class) => match classes.iter_mut().find(|(known, _)| *known == class) {
                Some((_, alike)) => alike.push(index),
                None => classes.push((class, vec![index])),
            },
        }
    }
    for (_, mut alike) in classes {
        let pools: usize = alike.iter().map(|&index| candidates[index].pools).sum();
        if pools < POOLS * alike.len().min(AT_ONCE) {
            // A stable sort: the first among equals.
            alike.sort_by_key(|&index| candidates[index].pools);
            chosen.extend(alike.into_iter().take(AT_ONCE));
        }
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{FP16, FP32};

    use super::*;
    use crate::inference::testing;

    fn candidate(what: &str, model: &Model) -> Candidate {
        let knob = Knob { what: what.to_string(), rule: Some(0) };
        Candidate::new(Turned { knob, choice: String::new(), model: model.clone() })
    }

    #[test]
    fn what_answers_contradict_falls_and_what_is_the_same_inside_is_alike() {
        let signature = testing::signature(2);
        let model = Model::chain_of_fma(FP16, FP32, 2);
        let answers = testing::sparse_answers(&signature, &model, 2 * PORTION + 10, 3);
        let answers: Vec<&Answered> = answers.iter().collect();
        let mut other = model.clone();
        other.tree.rules[0].zero.cancellation_is_negative ^= true;
        // The same function twice, another one, and the same by another knob.
        let candidates = vec![
            candidate("x", &model),
            candidate("x", &model),
            candidate("x", &other),
            candidate("y", &model),
        ];
        let left = standing(candidates, &model, &answers);
        assert_eq!(left.len(), 3, "cancellation shows in these answers");
        assert_eq!(left[0].class(), left[1].class());
        assert_ne!(left[0].class(), left[2].class());
        assert_eq!(left[0].fingerprint, left[2].fingerprint);
    }

    #[test]
    fn of_those_alike_two_are_tried_and_all_others() {
        let model = Model::chain_of_fma(FP16, FP32, 2);
        let mut all: Vec<Candidate> = (0..5).map(|_| candidate("x", &model)).collect();
        all.push(candidate("y", &model));
        all.push(Candidate { fingerprint: None, ..candidate("y", &model) });
        let tried = |all: &mut Vec<Candidate>| {
            let chosen = next(all);
            chosen.iter().for_each(|&index| all[index].pools += 1);
            chosen
        };
        assert_eq!(tried(&mut all), [0, 1, 5, 6]);
        assert_eq!(tried(&mut all), [2, 3, 5, 6]);
        assert_eq!(tried(&mut all), [0usize; 0]);
        // Where one of those that were tried falls, another one is.
        all.remove(2);
        assert_eq!(tried(&mut all), [0, 3]);
    }
}
