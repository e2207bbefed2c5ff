//! Telling the remaining candidates apart.
//!
//! Every choice of every knob that no answer contradicts is a candidate. Inputs on which it differs
//! from the model are searched for, in all random distributions and [directed] by what differs inside,
//! and put to the device, until each candidate is contradicted, or no input that was tried tells it
//! from the model.

use std::collections::HashSet;

use mmaprobe_model::Model;
use mmaprobe_model::format::{Format, RoundTo};
use mmaprobe_model::scalar::{Inputs, Nodes, Scalar};
use mmaprobe_model::tree::{Added, Normalised, Product};
use mmaprobe_probes::random::{self, Distribution};
use mmaprobe_probes::{DotAdd, Probe, Signature, sparse};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use rayon::prelude::*;

use super::directed::{self, Told};
use super::evidence::{self, Answered, Class, Evidence};
use super::fit;
use super::held::{Held, Neighbour};
use super::knobs::{self, Knob, Scope, Turned};
use crate::device::DeviceError;

/// A choice that cannot be told from the model's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inseparable {
    /// The knob.
    pub knob: Knob,
    /// The other choice.
    pub choice: String,
}

/// How separating ended.
#[derive(Clone, Debug)]
pub enum Separation {
    /// The model stands; these choices are the same function on everything tried.
    Settled {
        /// The choices.
        inseparable: Vec<Inseparable>,
        /// Inputs tried on each of them.
        tried: u64,
    },
    /// An answer contradicts the model.
    Contradicted,
}

/// Inputs with few summands that each candidate is tried on in a round.
const SPARSE: usize = 6000;
/// Inputs from the random distributions that each candidate is tried on in a round.
const DENSE: usize = 3000;
/// Inputs with few summands near what ends inside that each candidate is tried on in a round.
const NEAR: usize = 3000;
/// Inputs asked for each candidate in a round.
const ASKED_EACH: usize = 2;
/// Rounds of asking, at most.
const ROUNDS: u64 = 4;

/// Asks inputs that separate the model from its neighbours and from its rivals.
///
/// # Errors
/// If the device fails.
pub fn separate(
    evidence: &mut Evidence,
    model: &Model,
    rivals: Vec<Turned>,
    seed: u64,
) -> Result<Separation, DeviceError> {
    let signature = *evidence.signature();
    let mut tried = 0;
    let mut candidates = neighbours(evidence, model);
    candidates.extend(rivals);
    // What never differs, not even inside, is not tried again.
    let mut alike: Vec<Turned> = Vec::new();
    let mut checked = 0;
    for round in 0..=ROUNDS {
        if round == 0 {
            let all: Vec<&Answered> = evidence.all().collect();
            candidates = standing(candidates, model, &all);
            // What several changes together make, and a single one too, is told as the single one.
            let mut models: Vec<Model> = Vec::new();
            candidates.retain(|candidate| {
                let is_new = !models.contains(&candidate.model);
                if is_new {
                    models.push(candidate.model.clone());
                }
                is_new
            });
        } else {
            let new: Vec<&Answered> = evidence.answers[checked..].iter().collect();
            candidates = standing(candidates, model, &new);
            alike = standing(alike, model, &new);
        }
        checked = evidence.answers.len();
        if round == ROUNDS {
            break;
        }
        let questions = questions(&signature, &ends(model), seed.wrapping_add(round));
        tried += questions.len() as u64;
        let pool = Pool::new(model, &questions);
        let told: Vec<Told> = candidates
            .par_iter()
            .enumerate()
            .map(|(index, candidate)| {
                let other = &candidate.model;
                let found = pool.differing(other);
                if found.is_empty() {
                    let seed = seed ^ (index as u64) << 32;
                    directed::search(&signature, model, other, &questions, &pool.nodes, seed)
                } else {
                    Told::Apart(found)
                }
            })
            .collect();
        let mut separating: Vec<DotAdd> = Vec::new();
        let mut others = Vec::new();
        for (candidate, told) in candidates.into_iter().zip(told) {
            match told {
                Told::Apart(questions) => {
                    separating.extend(questions);
                    others.push(candidate);
                }
                Told::InsideOnly => others.push(candidate),
                Told::Never => alike.push(candidate),
            }
        }
        candidates = others;
        if separating.is_empty() {
            break;
        }
        evidence.ask(vec![Probe {
            name: "separation",
            question: "what is the answer to inputs on which the remaining candidates disagree?",
            source: "design, inference step 5",
            dot_adds: separating,
        }])?;
        if fit::contradicted(model, evidence.answers[checked..].iter(), 1) > 0 {
            return Ok(Separation::Contradicted);
        }
    }
    let inseparable = candidates
        .into_iter()
        .chain(alike)
        .map(|turned| Inseparable { knob: turned.knob, choice: turned.choice })
        .collect();
    Ok(Separation::Settled { inseparable, tried })
}

/// Answers that candidates, neighbours of the model, are held against at once.
const PORTION: usize = 1000;

/// The candidates that none of these answers contradicts.
fn standing(mut candidates: Vec<Turned>, model: &Model, answers: &[&Answered]) -> Vec<Turned> {
    for portion in answers.chunks(PORTION) {
        let held = Held::new(model, portion);
        let stands = |candidate: &Turned| held.contradicted(&candidate.model, 1) == 0;
        candidates = candidates.into_par_iter().filter(stands).collect();
    }
    candidates
}

/// Choices other than the model's own, each once: every single change, and those of an alignment that
/// only several changes together make possible.
fn neighbours(evidence: &Evidence, model: &Model) -> Vec<Turned> {
    let mut seen = HashSet::new();
    knobs::turn_all(model, evidence.signature(), Class::Nan, evidence)
        .into_iter()
        .chain(knobs::turn_alignments(model, true, Scope::All))
        .filter(|turned| turned.model != *model && seen.insert((turned.knob.clone(), turned.choice.clone())))
        .collect()
}

/// Exponents at which something ends inside a model, but not in d: the ranges of formats between, and what
/// products are cut off at.
fn ends(model: &Model) -> Vec<i32> {
    let mut ends = Vec::new();
    let mut of_format = |round: &RoundTo| {
        let of = |format: &Format| [format.min_exponent(), format.max_exponent()];
        if of(&round.format) != of(&model.d) {
            ends.extend(of(&round.format));
        }
    };
    for rule in &model.tree.rules {
        if let Normalised::To(round) = &rule.normalised {
            of_format(round);
        }
    }
    match &model.product {
        Product::Rounded(round) => of_format(round),
        Product::OverflowsAt { exponent } | Product::FlushedBelow { exponent, .. } => ends.push(*exponent),
        Product::Exact => {}
    }
    let floors = model.tree.rules.iter().filter_map(|rule| match &rule.added {
        Added::Fused(fused) => fused.floor,
        Added::Exact => None,
    });
    ends.extend(floors);
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// Questions to try: with few summands, and from every distribution.
fn questions(signature: &Signature, ends: &[i32], seed: u64) -> Vec<(DotAdd, Inputs)> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let sparse: Vec<DotAdd> = (0..SPARSE).map(|_| sparse::dot_add(signature, &mut rng)).collect();
    let dense = (0..DENSE).map(|index| {
        random::dot_add(Distribution::ALL[index % Distribution::ALL.len()], signature, &mut rng)
    });
    let mut pool: Vec<DotAdd> = sparse.into_iter().chain(dense).collect();
    if !ends.is_empty() {
        // In turn: only the first are looked at from the inside.
        let near = (0..NEAR).map(|_| sparse::near(signature, ends, &mut rng));
        let others = pool.split_off(NEAR);
        pool = near.zip(pool).flat_map(|(near, other)| [near, other]).chain(others).collect();
    }
    pool.into_par_iter()
        .map(|question| {
            let inputs = evidence::inputs(signature, &question);
            (question, inputs)
        })
        .collect()
}

/// Questions, and the values that a model has for each.
struct Pool<'a> {
    model: &'a Model,
    questions: &'a [(DotAdd, Inputs)],
    /// Those of every node, if they fit.
    nodes: Vec<Option<Nodes>>,
    /// d.
    results: Vec<u64>,
}

impl<'a> Pool<'a> {
    fn new(model: &'a Model, questions: &'a [(DotAdd, Inputs)]) -> Pool<'a> {
        let executor = Scalar::new(model).expect("a fitted model can be executed");
        let values = |executor: &mut Scalar, (_, inputs): &(DotAdd, Inputs)| {
            let nodes = executor.nodes(inputs);
            let d = nodes.as_ref().map_or_else(|| executor.execute(inputs), Nodes::d);
            (nodes, d)
        };
        let (nodes, results) = questions.par_iter().map_with(executor, values).unzip();
        Pool { model, questions, nodes, results }
    }

    /// The first questions to which another model's answers differ.
    fn differing(&self, other: &Model) -> Vec<DotAdd> {
        let Some(mut neighbour) = Neighbour::new(self.model, other) else { return Vec::new() };
        let values = self.nodes.iter().zip(&self.results);
        let differing = self.questions.iter().zip(values).filter(|((_, inputs), (nodes, d))| {
            fit::differ(other, neighbour.execute(inputs, nodes.as_ref()), **d)
        });
        differing.map(|((question, _), _)| question.clone()).take(ASKED_EACH).collect()
    }
}
