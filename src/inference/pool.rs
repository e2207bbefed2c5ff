//! Random questions, and what a model makes of them: to find some on which others differ.

use mmaprobe_model::Model;
use mmaprobe_model::scalar::{Inputs, Lockstep};
use mmaprobe_model::tree::Normalised;
use mmaprobe_probes::boundaries::{self, Boundaries};
use mmaprobe_probes::random::{self, Distribution};
use mmaprobe_probes::{
    DotAdd, Edition, Signature, brink, cancelling, crowding, leftover, lowered, sparse, trifles, vary,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use rayon::prelude::*;

use super::evidence;
use super::held::{Held, Values};

/// Questions with few summands.
const SPARSE: usize = 6000;
/// Questions from the random distributions.
const DENSE: usize = 3000;
/// Of those with few summands, one of so many comes once more with what is large in it cancelled.
const MIRRORED: usize = 4;
/// And one of so many where a result that keeps fewer bits than c is rounded, if any does.
const BOUNDED: usize = 4;
/// Questions with few summands near what ends inside.
const NEAR: usize = 3000;
/// Questions in which two summands nearly cancel.
const CANCELLING: usize = 1500;
/// Questions in which the last bits that a sum keeps are left over.
const LEFT_OVER: usize = 1000;
/// Questions in which all summands are near what ends inside.
const CROWDED: usize = 1000;
/// Questions in which a number is next to what ends inside.
const AT_BRINK: usize = 1000;
/// Questions in which what is too small to count alone adds up.
const TRIFLING: usize = 1000;
/// Questions with a product of subnormal factors.
const LOWERED: usize = 1000;

/// Exponents of the smallest results of a model's sums.
fn smallest(model: &Model) -> Vec<i32> {
    let mut smallest = cancelling::smallest(&model.d, model.d.fraction_bits).to_vec();
    for rule in &model.tree.rules {
        if let Normalised::To(round) = &rule.normalised {
            smallest.extend(cancelling::smallest(&round.format, round.fraction_bits));
        }
    }
    smallest.sort_unstable();
    smallest.dedup();
    smallest
}

/// Questions to try, which matter where a model is right: with few summands, some of which nearly cancel, some at the
/// boundaries of its results, some in which the last bits that a sum keeps are left over, some in which all summands are where
/// something ends or one is next to that, some in which what is too small to count alone adds up, as many near the exponents
/// that end something in it and near other ones, some with products of subnormal factors, and from every distribution; of
/// these, what is asked in this edition.
pub fn questions(
    signature: &Signature,
    edition: Edition,
    model: &Model,
    others: &[i32],
    seed: u64,
) -> Vec<(DotAdd, Inputs)> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let distributions = Distribution::asked_in(edition);
    let sparse: Vec<DotAdd> = (0..SPARSE).map(|_| sparse::dot_add(signature, &mut rng)).collect();
    let dense = (0..DENSE)
        .map(|index| random::dot_add(distributions[index % distributions.len()], signature, &mut rng));
    let mut pool: Vec<DotAdd> = sparse.into_iter().chain(dense).collect();
    let mirrored = |question| vary::mirrored(signature, question, &mut rng);
    let mirrored: Vec<DotAdd> = pool.iter().take(SPARSE).step_by(MIRRORED).map(mirrored).collect();
    pool.extend(mirrored);
    let smallest = smallest(model);
    pool.extend((0..CANCELLING).map(|_| cancelling::dot_add(signature, &smallest, &mut rng)));
    let boundaries = Boundaries::of(model);
    let all_ends: Vec<i32> = boundaries.ends.iter().chain(&smallest).copied().collect();
    pool.extend((0..CROWDED).map(|_| crowding::dot_add(signature, &all_ends, &mut rng)));
    pool.extend((0..AT_BRINK).map(|_| brink::dot_add(signature, &all_ends, &boundaries, &mut rng)));
    let last_bits = boundaries::last_bits(model);
    pool.extend((0..TRIFLING).map(|_| trifles::dot_add(signature, &last_bits, &mut rng)));
    if !boundaries.kept.is_empty() {
        let left_over = |question| leftover::dot_add(signature, question, &boundaries, &mut rng);
        let left_over: Vec<DotAdd> = pool.iter().take(LEFT_OVER).map(left_over).collect();
        pool.extend(left_over);
    }
    if !boundaries.results.is_empty() {
        let bounded = |question| boundaries::at_boundary(signature, question, &boundaries, &mut rng);
        let bounded: Vec<DotAdd> = pool.iter().take(SPARSE).step_by(BOUNDED).map(bounded).collect();
        pool.extend(bounded);
    }
    for ends in [others, &boundaries.ends].into_iter().filter(|ends| !ends.is_empty()) {
        // In turn: only the first are looked at from the inside.
        let near = (0..NEAR).map(|_| sparse::near(signature, ends, &mut rng));
        let rest = pool.split_off(NEAR);
        pool = near.zip(pool).flat_map(|(near, other)| [near, other]).chain(rest).collect();
    }
    if edition >= Edition::Third {
        pool.extend((0..LOWERED).map(|_| lowered::dot_add(signature, &mut rng)));
    }
    with_inputs(signature, pool)
}

/// Questions with what they are to a model.
pub fn with_inputs(signature: &Signature, questions: Vec<DotAdd>) -> Vec<(DotAdd, Inputs)> {
    let with_inputs = |question| {
        let inputs = evidence::inputs(signature, &question);
        (question, inputs)
    };
    questions.into_par_iter().map(with_inputs).collect()
}

/// Random questions, so many of each kind, of the kinds that are asked since a later edition than this one; none, if it is the
/// latest.
pub fn later(signature: &Signature, edition: Edition, each: usize, seed: u64) -> Vec<(DotAdd, Inputs)> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut later: Vec<DotAdd> = Vec::new();
    for &distribution in &Distribution::asked_in(Edition::LATEST)[Distribution::asked_in(edition).len()..] {
        later.extend((0..each).map(|_| random::dot_add(distribution, signature, &mut rng)));
    }
    if edition < Edition::Third {
        later.extend((0..each).map(|_| lowered::dot_add(signature, &mut rng)));
    }
    with_inputs(signature, later)
}

/// Questions that are decoded at once.
const AT_ONCE: usize = 1024;

/// What a model makes of questions.
pub fn answers(model: &Model, questions: &[(DotAdd, Inputs)]) -> Vec<u64> {
    let answers = questions.par_chunks(AT_ONCE).flat_map_iter(|some| {
        let inputs: Vec<&Inputs> = some.iter().map(|(_, inputs)| inputs).collect();
        let mut answers = Vec::with_capacity(inputs.len());
        Lockstep::new(model).expect("a fitted model can be executed").execute(&inputs, &mut answers);
        answers
    });
    answers.collect()
}

/// Questions, and the values that a model has for each.
pub struct Pool<'a> {
    /// The questions.
    pub questions: &'a [(DotAdd, Inputs)],
    held: Held<'a, 'a>,
}

impl<'a> Pool<'a> {
    /// What the model makes of questions.
    pub fn new(model: &'a Model, questions: &'a [(DotAdd, Inputs)]) -> Pool<'a> {
        let asked = questions.iter().map(|(_, inputs)| inputs).zip(answers(model, questions));
        Pool { questions, held: Held::of(model, asked) }
    }

    /// What the model makes of the questions inside.
    pub fn values(&self) -> &Values {
        self.held.values()
    }

    /// The first questions, so many at most, to which another model's answers differ.
    pub fn differing(&self, other: &Model, most: usize) -> Vec<DotAdd> {
        self.at(&self.held.contradicting(other, most).unwrap_or_default())
    }

    /// What questions show of another model, so many at most of those to which its answers differ.
    pub fn seen(&self, other: &Model, most: usize) -> Seen {
        let (differing, fingerprint) = self.held.seen(other, most).unwrap_or_default();
        Seen { differing: self.at(&differing), fingerprint }
    }

    fn at(&self, places: &[usize]) -> Vec<DotAdd> {
        places.iter().map(|&place| self.questions[place].0.clone()).collect()
    }
}

/// What questions show of a model beside another.
pub struct Seen {
    /// Questions to which the answers differ.
    pub differing: Vec<DotAdd>,
    /// If there are none, a number for what differs inside, as far as that can be said.
    pub fingerprint: Option<u64>,
}
