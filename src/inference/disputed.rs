//! What is asked where models explain nearly everything.
//!
//! One answer in a thousand that nothing explains shows little: turning a knob that is wrong makes hardly any
//! answer right, and many knobs were set by chance, for want of answers that they show in. So more is asked:
//! what is like the questions whose answers contradict the best model, what the models that were
//! looked at, and the neighbours of the best one, disagree about, and to which neighbour each sum of the best one
//! rounds what each of its summands [loses](ties).

use mmaprobe_model::Model;
use mmaprobe_model::scalar::Scalar;
use mmaprobe_probes::{DotAdd, Probe, Signature, vary};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use rayon::prelude::*;

use super::evidence::{Answered, Evidence};
use super::fit::{self, Fitted};
use super::pool::{self, Pool};
use super::separate;
use super::standing::{self, Candidate};
use super::{depth, ties};
use crate::device::DeviceError;

/// Contradictions that are varied.
const VARIED: usize = 16;
/// Variations of each.
const VARIATIONS: usize = 40;
/// Neighbours of the best model that are told from it.
const NEIGHBOURS: usize = 400;
/// Questions for each of them.
const EACH_NEIGHBOUR: usize = 2;
/// Questions for each of the other models.
const EACH_OTHER: usize = 30;

/// Questions about what is lost at all cuts together, at most.
const ALL_TIES: usize = 2000;

/// A model explains nearly everything that no more than one answer of so many contradicts.
const NEARLY: usize = 30;

/// The name of the probe that these questions make.
const DISPUTED: &str = "disputed";
/// And of those about what is lost.
const TIES: &str = "rounding/each";

/// Asks about what these models, the best first, do not explain or disagree about. Whether anything was asked:
/// not if even the best is far from the answers.
///
/// # Errors
/// If the device fails.
pub fn ask(evidence: &mut Evidence, models: &[&Fitted], seed: u64) -> Result<bool, DeviceError> {
    // What was asked because it is disputed says nothing about how much is.
    let is_disputed = |a: &&Answered| [DISPUTED, TIES].contains(&evidence.probes[a.probe].name);
    let others = || evidence.answers.iter().filter(|answered| !is_disputed(answered));
    let tolerated = others().count() / NEARLY;
    let is_near = |model: &&Model| fit::contradicted(model, others(), tolerated + 1) <= tolerated;
    let near: Vec<&Model> = models.iter().map(|fitted| &fitted.model).take_while(is_near).collect();
    let Some((&best, others)) = near.split_first() else { return Ok(false) };
    let signature = *evidence.signature();
    let seed = seed ^ SEED;
    let mut dot_adds = like_contradictions(evidence, best, seed);
    let questions = pool::questions(&signature, best, &[], seed.wrapping_add(1));
    let pool = Pool::new(best, &questions);
    let neighbours = standing_neighbours(evidence, best);
    let neighbours = fit::thinned(&neighbours.iter().collect::<Vec<_>>(), NEIGHBOURS);
    let told: Vec<Vec<DotAdd>> =
        neighbours.par_iter().map(|other| pool.differing(other, EACH_NEIGHBOUR)).collect();
    dot_adds.extend(told.into_iter().flatten());
    let told: Vec<Vec<DotAdd>> = others.par_iter().map(|other| pool.differing(other, EACH_OTHER)).collect();
    dot_adds.extend(told.into_iter().flatten());
    let before = evidence.answers.len();
    let ties = about_ties(evidence, best, seed.wrapping_add(2));
    evidence.ask(vec![probe(dot_adds), ties])?;
    Ok(evidence.answers.len() > before)
}

/// What each summand of each sum of a model loses, and what the sums do.
fn about_ties(evidence: &Evidence, model: &Model, seed: u64) -> Probe {
    let cuts = ties::cuts(model);
    let each = (ALL_TIES / cuts.len().max(1)).clamp(1, mmaprobe_probes::ties::EACH);
    let within = depth::unchanged(evidence).exponents;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    Probe {
        name: TIES,
        question: "to which neighbour is what a summand loses at alignment rounded, and what the sum does?",
        source: "MMA-Sim paper, section III.E, Tables I and II",
        dot_adds: mmaprobe_probes::ties::dot_adds(evidence.signature(), &cuts, each, &within, &mut rng),
    }
}

fn probe(dot_adds: Vec<DotAdd>) -> Probe {
    Probe {
        name: DISPUTED,
        question: "what is the answer where models that explain nearly everything fail or disagree?",
        source: "design, inference step 5",
        dot_adds,
    }
}

/// Asks what is like the questions whose answers contradict a model that explained everything until more was asked: of the
/// turns that explain these few, the right one explains those, too.
///
/// # Errors
/// If the device fails.
pub fn around(evidence: &mut Evidence, model: &Model, seed: u64) -> Result<(), DeviceError> {
    let dot_adds = like_contradictions(evidence, model, seed ^ SEED);
    evidence.ask(vec![probe(dot_adds)])
}

/// Sets the seeds of disputed questions apart from others.
const SEED: u64 = 0x6469_7370_7574_6564;

/// Variations of the questions whose answers contradict a model, those with the fewest summands first.
fn like_contradictions(evidence: &Evidence, model: &Model, seed: u64) -> Vec<DotAdd> {
    let signature: &Signature = evidence.signature();
    let mut executor = Scalar::new(model).expect("a fitted model can be executed");
    let mut wrong: Vec<&Answered> =
        evidence.answers.iter().filter(|answered| !fit::explains(&mut executor, answered)).collect();
    // A stable sort: what was asked first stays first among equals.
    wrong.sort_by_key(|answered| (answered.class, answered.summands));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    fit::thinned(&wrong, VARIED)
        .into_iter()
        .flat_map(|answered| std::iter::repeat_n(&answered.question, VARIATIONS))
        .map(|question| vary::varied(signature, question, &mut rng))
        .collect()
}

/// Answers that neighbours are held against, the last and some of all others: what these do not tell from the model is asked
/// about, and so are few others that more of them might have told.
const HELD_AGAINST: usize = 5000;

/// The neighbours of a model that contradict none of these answers which it explains.
fn standing_neighbours(evidence: &Evidence, model: &Model) -> Vec<Model> {
    let mut executor = Scalar::new(model).expect("a fitted model can be executed");
    let explained: Vec<&Answered> =
        evidence.answers.iter().filter(|answered| fit::explains(&mut executor, answered)).collect();
    let neighbours = separate::neighbours(evidence, model).into_iter().map(Candidate::new).collect();
    let some = standing::mostly_last(&explained, HELD_AGAINST);
    standing::standing(neighbours, model, &some).into_iter().map(|candidate| candidate.turned.model).collect()
}
