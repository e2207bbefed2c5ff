//! Telling the remaining candidates apart.
//!
//! Every choice of every knob that no answer contradicts is a candidate. Inputs on which it differs
//! from the model are searched for, in all random distributions and [directed] by what differs inside,
//! and put to the device, until each candidate is contradicted, or no input that was tried tells it
//! from the model. Of candidates that have been alike so far, some are searched for all.

use std::collections::BTreeMap;

use mmaprobe_model::Model;
use mmaprobe_model::tree::RuleId;
use mmaprobe_probes::{DotAdd, Probe, Signature, boundaries};
use rayon::prelude::*;

use super::directed::{self, Kept, Others, Search, Told, Wide};
use super::evidence::{Answered, Class, Evidence};
use super::fit;
use super::knobs::{self, Knob, Scope, Turned};
use super::pool::{self, Pool, Seen};
use super::standing::{self, Candidate, standing};
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
        /// Choices that inputs do tell from the model, none of which the device, a recording made before such were asked, can
        /// answer.
        unasked: Vec<Inseparable>,
        /// Inputs tried on each of them, at least.
        tried: u64,
    },
    /// An answer contradicts the model.
    Contradicted,
}

/// Inputs asked for each candidate in a round.
const ASKED_EACH: usize = 2;
/// Rounds of asking, at most.
const ROUNDS: u64 = 5;

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
    let mut tried = u64::MAX;
    let mut candidates: Vec<Candidate> =
        neighbours(evidence, model).into_iter().chain(rivals).map(Candidate::new).collect();
    let mut checked = 0;
    let mut tries_all = false;
    for round in 0..=ROUNDS {
        if round == 0 {
            let all: Vec<&Answered> = evidence.answers.iter().collect();
            candidates = standing(candidates, model, &all);
            // What is asked from here on is not kept aside.
            let aside: Vec<&Answered> = evidence.aside().collect();
            candidates = standing(candidates, model, &aside);
            // What several changes together make, and a single one too, is told as the single one.
            let mut models: Vec<Model> = Vec::new();
            candidates.retain(|candidate| {
                let is_new = !models.contains(&candidate.turned.model);
                if is_new {
                    models.push(candidate.turned.model.clone());
                }
                is_new
            });
        } else {
            let new: Vec<&Answered> = evidence.answers[checked..].iter().collect();
            candidates = standing(candidates, model, &new);
        }
        checked = evidence.answers.len();
        if round == ROUNDS {
            break;
        }
        let mut chosen = standing::next(&candidates);
        tries_all |= round + 1 == ROUNDS || chosen.is_empty();
        if tries_all {
            chosen = (0..candidates.len()).filter(|&index| candidates[index].pools == 0).collect();
        }
        if chosen.is_empty() && tried < u64::MAX {
            break;
        }
        let own = boundaries::ends(model);
        let mut others: Vec<i32> =
            candidates.iter().flat_map(|candidate| boundaries::ends(&candidate.turned.model)).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|end| !own.contains(end));
        let seed_of_round = seed.wrapping_add(round);
        let questions = pool::questions(&signature, evidence.edition(), model, &others, seed_of_round);
        // Every candidate that is left in the end has been held against one pool at least.
        tried = tried.min(questions.len() as u64);
        let pool = Pool::new(model, &questions);
        // Where an answer contradicts the model at once, a thorough search would have been in vain.
        let how = if round == 0 { Search::Soon } else { Search::Thorough };
        let models: Vec<&Model> = chosen.iter().map(|&index| &candidates[index].turned.model).collect();
        let of_chosen = told(&signature, model, &models, &pool, (how, seed));
        let mut separating: Vec<DotAdd> = Vec::new();
        for (index, told) in chosen.into_iter().zip(of_chosen) {
            candidates[index].pools += 1;
            if let Told::Apart(questions) = told {
                separating.extend(questions);
            }
        }
        if separating.is_empty() {
            match how {
                Search::Thorough if tries_all => break,
                Search::Thorough => tries_all = true,
                Search::Soon => {}
            }
        }
        ask(evidence, separating)?;
        if fit::contradicted(model, evidence.answers[checked..].iter(), 1) > 0 {
            return Ok(Separation::Contradicted);
        }
    }
    let (unasked, alike) = told_by_later_editions(evidence, model, candidates, seed);
    let choices = |candidates: Vec<Candidate>| {
        let turned = candidates.into_iter().map(|candidate| candidate.turned);
        turned.map(|turned| Inseparable { knob: turned.knob, choice: turned.choice }).collect()
    };
    Ok(Separation::Settled { inseparable: choices(alike), unasked: choices(unasked), tried })
}

/// Random questions of each kind that is asked since a later edition than that of the device, which candidates are held
/// against.
const LATER: usize = 3000;

/// The candidates that questions of later editions than the device's tell from a model, and the others.
fn told_by_later_editions(
    evidence: &Evidence,
    model: &Model,
    candidates: Vec<Candidate>,
    seed: u64,
) -> (Vec<Candidate>, Vec<Candidate>) {
    let questions = pool::later(evidence.signature(), evidence.edition(), LATER, seed);
    if questions.is_empty() {
        return (Vec::new(), candidates);
    }
    let pool = Pool::new(model, &questions);
    let is_told = |candidate: &Candidate| !pool.differing(&candidate.turned.model, 1).is_empty();
    candidates.into_par_iter().partition(is_told)
}

/// Answers that candidates have to stand before they are held against random questions.
const THINNED: usize = 2000;

/// About so many candidates are held against the pool.
const GLANCED: usize = 400;

/// Of the pool, one of so many questions is used for a look that is soon done.
const SKIPPED: usize = 3;

/// Whether an answer contradicts a model as soon as random questions are asked that separate it from its neighbours.
/// Where answers have contradicted models before, that costs less than [separating](separate) each of them.
///
/// # Errors
/// If the device fails.
pub fn is_contradicted_soon(evidence: &mut Evidence, model: &Model, seed: u64) -> Result<bool, DeviceError> {
    let questions = pool::questions(evidence.signature(), evidence.edition(), model, &[], seed);
    let questions: Vec<_> = questions.into_iter().step_by(SKIPPED).collect();
    let pool = Pool::new(model, &questions);
    let all: Vec<&Answered> = evidence.all().collect();
    let candidates = neighbours(evidence, model).into_iter().map(Candidate::new).collect();
    let candidates = standing(candidates, model, &fit::thinned(&all, THINNED));
    let indices: Vec<usize> = (0..candidates.len()).collect();
    let candidates: Vec<Candidate> = fit::thinned(&indices, GLANCED)
        .into_par_iter()
        .map(|index| candidates[index].clone())
        .filter(|candidate| !pool.differing(&candidate.turned.model, 1).is_empty())
        .collect();
    let dot_adds = standing(candidates, model, &all)
        .par_iter()
        .flat_map_iter(|candidate| pool.differing(&candidate.turned.model, ASKED_EACH))
        .collect();
    let before = evidence.answers.len();
    ask(evidence, dot_adds)?;
    Ok(fit::contradicted(model, evidence.answers[before..].iter(), 1) > 0)
}

/// Asks what separates candidates.
fn ask(evidence: &mut Evidence, dot_adds: Vec<DotAdd>) -> Result<(), DeviceError> {
    evidence.ask(vec![Probe {
        name: "separation",
        question: "what is the answer to inputs on which the remaining candidates disagree?",
        source: "design, inference step 5",
        dot_adds,
    }])
}

/// What tells each candidate from the model.
///
/// What is searched for is where both differ inside; candidates that differ nowhere in the whole pool, nor where rules keep
/// more bits in the first of it, are not searched.
fn told(
    signature: &Signature,
    model: &Model,
    candidates: &[&Model],
    pool: &Pool,
    (how, seed): (Search, u64),
) -> Vec<Told> {
    let seen: Vec<Seen> = candidates.par_iter().map(|candidate| pool.seen(candidate, ASKED_EACH)).collect();
    let mut told: Vec<Told> = seen.iter().map(|seen| Told::Apart(seen.differing.clone())).collect();
    // Those in which the same rules differ are looked at from the inside together.
    let mut others: BTreeMap<Option<Vec<RuleId>>, Vec<usize>> = BTreeMap::new();
    for (index, candidate) in
        candidates.iter().enumerate().filter(|(index, _)| seen[*index].differing.is_empty())
    {
        let other: &Model = candidate;
        let rules = model.tree.adds_the_same(&other.tree).then(|| Wide::rules(model, other));
        others.entry(rules).or_default().push(index);
    }
    for (rules, alike) in others {
        let wide = rules.filter(|_| alike.len() > 1).map(|rules| Wide::new(model, &rules, pool.questions));
        let kept = Kept { values: Some(pool.values()), wide: wide.as_ref() };
        // Of those that differ inside in the same ways only some are searched.
        let fingerprint = |index: usize| {
            let wide = wide.as_ref()?.fingerprint(model, candidates[index], pool.questions)?;
            Some([seen[index].fingerprint?, wide])
        };
        let fingerprints: Vec<Option<[u64; 2]>> = alike.par_iter().map(|&index| fingerprint(index)).collect();
        let mut classes: BTreeMap<[u64; 2], Vec<usize>> = BTreeMap::new();
        let mut each_alone = Vec::new();
        for (&index, fingerprint) in alike.iter().zip(fingerprints) {
            match fingerprint {
                Some([NOTHING, NOTHING]) => told[index] = Told::Never,
                Some(fingerprint) => classes.entry(fingerprint).or_default().push(index),
                None => each_alone.push(index),
            }
        }
        let mut searched = each_alone;
        for class in classes.values() {
            // Not the same two as in a search that is soon done.
            let skipped = usize::from(how == Search::Thorough && class.len() > SEARCHED);
            searched.extend(fit::thinned(&class[skipped..], SEARCHED));
        }
        let open: Vec<usize> = alike.into_iter().filter(|&index| told[index] != Told::Never).collect();
        let models: Vec<&Model> = open.iter().map(|&index| candidates[index]).collect();
        let searched: Vec<usize> = (0..open.len()).filter(|&place| searched.contains(&open[place])).collect();
        let others = Others { models: &models, searched: &searched };
        let found = directed::search(signature, model, &others, pool.questions, kept, (how, seed));
        for (index, found) in open.into_iter().zip(found) {
            told[index] = found;
        }
    }
    told
}

/// Of candidates that differ from the model in the same values inside, so many are searched.
const SEARCHED: usize = 2;

/// The fingerprint of a model that differs nowhere.
const NOTHING: u64 = 0;

/// Choices other than a model's own: every single change, and those of an alignment, of small results and of sums
/// that are added alike, which only several changes together make possible. Some come more than once.
pub fn neighbours(evidence: &Evidence, model: &Model) -> Vec<Turned> {
    knobs::turn_all(model, evidence.signature(), Class::Nan, evidence)
        .into_iter()
        .chain(knobs::turn_alignments(model, true, Scope::All))
        .chain(knobs::turn_near_far(model))
        .chain(knobs::turn_zeros(model, Scope::All))
        .chain(knobs::turn_filed(model, Scope::All))
        .chain(knobs::turn_kind(model, evidence.signature(), Scope::All))
        .chain(knobs::turn_ends_of_each(model))
        .chain(knobs::turn_product_exponents(model, evidence.signature()))
        .chain(knobs::turn_cutoff(model))
        .chain(knobs::turn_alike(model))
        .chain(knobs::turn_places(model))
        .filter(|turned| turned.model != *model)
        .collect()
}
