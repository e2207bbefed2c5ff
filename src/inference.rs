//! Inference: from answers to a sum tree.
//!
//! The steps of the design, in order: [trust] nothing yet; find the [order] of summation and [ask](asking)
//! the crafted probes; [look](looking) for rules that explain every answer ([structure], [knobs],
//! [fit]); [separate] what remains; validate on fresh random inputs. The engine knows a device
//! through [`Device::run`] alone.

pub mod alike;
pub mod apart;
pub mod asking;
pub mod blame;
pub mod budget;
pub mod depth;
pub mod directed;
pub mod disputed;
pub mod evidence;
pub mod exchanging;
pub mod fit;
pub mod flushed;
pub mod fresh;
pub mod grid;
pub mod grouping;
pub mod handing;
pub mod held;
pub mod knobs;
pub mod looking;
pub mod neighbours;
pub mod nesting;
pub mod nodewise;
pub mod order;
pub mod overflowing;
pub mod pool;
pub mod regroup;
pub mod regular;
pub mod remembered;
pub mod search;
pub mod searching;
pub mod separate;
pub mod simplicity;
pub mod skeleton;
pub mod standing;
pub mod statements;
pub mod structure;
#[cfg(test)]
mod testing;
pub mod ties;
pub mod tracing;
pub mod triples;
pub mod trust;

use std::ops::ControlFlow;

use mmaprobe_model::Model;
use mmaprobe_model::scalar::Scalar;
use mmaprobe_model::tree::Tree;
use mmaprobe_probes::DotAdd;

use crate::device::{Device, DeviceError, Instruction};
use crate::validation::{Outcome, Plan};
use asking::Outline;
use evidence::Evidence;
use fit::Fitted;
use fresh::{Number, Verdict};
use looking::Starts;
use searching::Searched;
use separate::{Inseparable, Separation};
use statements::Statement;
use trust::Distrust;

/// What the caller chooses.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Random dot-adds to validate the model on; 0 for none.
    pub validate: u64,
    /// Seed of everything random.
    pub seed: u64,
}

/// How far inference got.
#[derive(Clone, Debug)]
pub enum Conclusion {
    /// A model explains every answer and every validated dot-add.
    Characterized(Model),
    /// A model explains every answer, but fresh inputs contradict it, again and again.
    Refuted(Model, Counterexample),
    /// No model of the grammar explains every answer.
    Unexplained(Counterexample),
    /// The device is no function, or not the same one everywhere.
    Distrusted(Distrust),
    /// A mode of the machine in which another instruction computes what it does by default.
    ModeWithoutEffect,
}

/// A question that a model answers wrongly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The question.
    pub question: DotAdd,
    /// The device's answer.
    pub device: u64,
    /// The model's answer.
    pub model: u64,
}

/// What was found out about an instruction.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The end of the search.
    pub conclusion: Conclusion,
    /// The statements about the model, with their evidence.
    pub statements: Vec<Statement>,
    /// Choices that no input tells from the model's own.
    pub inseparable: Vec<Inseparable>,
    /// Choices that inputs tell from the model's own which the device, a recording, was never asked.
    pub unasked: Vec<Inseparable>,
    /// Inputs tried on each of the inseparable ones.
    pub tried: u64,
    /// Answers that the order of summation was read from.
    pub order_answers: u64,
    /// Pairs of summands whose order the formats cannot show.
    pub unreachable_pairs: usize,
    /// The validation that ended the search.
    pub validation: Option<(Plan, Outcome)>,
    /// Calls of the device, validation apart.
    pub rounds: u64,
    /// Dot-adds asked, validation apart.
    pub dot_adds: u64,
}

impl Finding {
    /// A conclusion with nothing beside it.
    fn of(conclusion: Conclusion) -> Finding {
        Finding {
            conclusion,
            statements: Vec::new(),
            inseparable: Vec::new(),
            unasked: Vec::new(),
            tried: 0,
            order_answers: 0,
            unreachable_pairs: 0,
            validation: None,
            rounds: 0,
            dot_adds: 0,
        }
    }
}

/// Told what inference is doing.
pub trait Progress: Sync {
    /// A new step has begun; `length` is what [`advance`](Progress::advance) will add up to, if known.
    fn step(&self, what: &str, length: Option<u64>);
    /// Part of a step is done.
    fn advance(&self, amount: u64);
    /// Inference has come to a model, which may leave some of the evidence unexplained; `what` is what becomes of it. For those
    /// who work on the inference: nothing need be done.
    fn model(&self, _what: &str, _model: &Model, _evidence: &Evidence) {}
}

/// Says nothing.
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
}

/// Sets the seeds of what is tried before candidates are told apart from others.
const SCREEN: u64 = 0xbf58_476d_1ce4_e5b9;

/// Counterexamples that may widen the evidence before the search gives up.
const ATTEMPTS: u64 = 32;
/// Models that explained everything until more was asked which the next is looked for from.
const KNOWN: usize = 4;

/// After one was refuted, a model with more rules than so many is asked what its sums hide and lose, in so many trees at most:
/// where each sum works in a way of its own, some may lose next to nothing, and what contradicts a model without them, one answer
/// after the other, leads astray.
const MANY_RULES: usize = 4;
const TREES_ASKED_IN: usize = 3;

/// Times that answers kept aside may contradict a model that explains the others.
const MOVES: u64 = 16;

/// What is asked before anything is looked for: whether the device is a function, the order of summation, and the crafted
/// probes.
fn opened(
    evidence: &mut Evidence,
    seed: u64,
    progress: &dyn Progress,
) -> Result<ControlFlow<Distrust, Outline>, DeviceError> {
    progress.step("is it a function?", None);
    asking::first(evidence, seed)?;
    let (distrust, spent) = trust::check(evidence.device(), evidence.instruction(), seed)?;
    evidence.rounds += spent.rounds;
    evidence.dot_adds += spent.dot_adds;
    match distrust {
        Some(distrust) => Ok(ControlFlow::Break(distrust)),
        None => asking::outline(evidence, progress),
    }
}

/// Asks nothing but whether a device is a function: what characterising asks before it looks for anything, and all that once
/// more, at other places and in small batches. `None`: it answered every question in one way.
///
/// # Errors
/// If the device fails.
pub fn distrusted(
    device: &dyn Device,
    instruction: &Instruction,
    seed: u64,
) -> Result<Option<Distrust>, DeviceError> {
    let mut evidence = Evidence::new(device, instruction);
    match opened(&mut evidence, seed, &Silent)? {
        ControlFlow::Break(distrust) => Ok(Some(distrust)),
        ControlFlow::Continue(_) => asking::again(&mut evidence),
    }
}

/// Characterises an instruction.
///
/// # Errors
/// If the device fails.
pub fn characterize(
    device: &dyn Device,
    instruction: &Instruction,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Finding, DeviceError> {
    let mut evidence = Evidence::new(device, instruction);
    characterize_with(&mut evidence, options, progress)
}

/// Characterises an instruction and leaves the evidence with the caller.
///
/// # Errors
/// If the device fails.
pub fn characterize_with(
    evidence: &mut Evidence,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Finding, DeviceError> {
    let mut finding = Finding::of(Conclusion::ModeWithoutEffect);
    let mut outline = match opened(evidence, options.seed, progress)? {
        ControlFlow::Continue(outline) => outline,
        ControlFlow::Break(distrust) => {
            finding.conclusion = Conclusion::Distrusted(distrust);
            return Ok(finished(finding, evidence));
        }
    };
    finding.unreachable_pairs = outline.order.unreachable;
    finding.order_answers = outline.order_answers;
    let mut validated_seed = options.seed;
    // Models that explained everything until more was asked, the last first.
    let mut known: Vec<Fitted> = Vec::new();
    // Trees of such models in which sums that others hide were asked about.
    let mut asked_in: Vec<Tree> = Vec::new();
    let (mut attempt, mut moves, mut refuted) = (0, 0, 0);
    while attempt < ATTEMPTS {
        attempt += 1;
        let seed = options.seed.wrapping_add(attempt);
        known.truncate(KNOWN);
        let mut found = match searching::search(evidence, &mut outline, &known, seed, progress)? {
            Searched::Best(found) => *found,
            Searched::Distrusted(distrust) => {
                finding.conclusion = Conclusion::Distrusted(distrust);
                return Ok(finished(finding, evidence));
            }
        };
        if found.contradicted > 0 {
            let smallest = smallest_contradiction(&found.model, evidence);
            finding.conclusion = Conclusion::Unexplained(smallest);
            return Ok(given_up(evidence, finding));
        }
        progress.model("found", &found.model, evidence);
        if evidence.move_contradictions(&found.model) {
            moves += 1;
            if moves > MOVES {
                let smallest = smallest_contradiction(&found.model, evidence);
                finding.conclusion = Conclusion::Unexplained(smallest);
                return Ok(given_up(evidence, finding));
            }
            // Nothing has been held against the device yet.
            attempt -= 1;
            known.insert(0, found);
            continue;
        }
        let mut left = Vec::new();
        found = fit::simplify(evidence, found, &mut left);
        found.model = found.model.canonical();
        let seed = options.seed.wrapping_add(1000 * attempt);
        if attempt > 1
            && found.model.tree.rules.len() > MANY_RULES
            && asked_in.len() < TREES_ASKED_IN
            && !asked_in.iter().any(|tree| tree.has_the_same_sums(&found.model.tree))
        {
            progress.step("what sums hide and lose", None);
            asked_in.push(found.model.tree.clone());
            disputed::hidden_and_lost(evidence, &found.model, seed)?;
            found = fit::scored(evidence, found.model);
            if found.contradicted > 0 {
                disputed::around(evidence, &found.model, seed)?;
                known.insert(0, found);
                continue;
            }
        }
        progress.step("separating candidates", None);
        if attempt > 1 && separate::is_contradicted_soon(evidence, &found.model, seed)? {
            disputed::around(evidence, &found.model, seed)?;
            known.insert(0, found);
            continue;
        }
        // Fresh inputs contradict most models that are wrong, and cost less than separating.
        let screen = Number::of(options).screen(&found.model);
        match fresh::validate(evidence, &found.model, screen, seed.wrapping_mul(SCREEN), progress)? {
            Verdict::Holds(_) => {}
            Verdict::Noise(distrust) => {
                finding.conclusion = Conclusion::Distrusted(distrust);
                return Ok(finished(finding, evidence));
            }
            Verdict::Contradicted { counterexample, .. } => {
                if let Some(distrust) = fresh::learn(evidence, &found.model, counterexample, screen, seed)? {
                    finding.conclusion = Conclusion::Distrusted(distrust);
                    return Ok(finished(finding, evidence));
                }
                if attempt > 1 {
                    disputed::around(evidence, &found.model, seed)?;
                }
                refuted = refuted.max(1);
                known.insert(0, found);
                continue;
            }
        }
        progress.step("separating candidates", None);
        let mut rivals = looking::rivals(&Starts { evidence, outline: &outline }, &found.model);
        rivals.extend(left.into_iter().map(looking::with_own_rules));
        rivals.extend(regroup::regrouped(&found.model));
        match separate::separate(evidence, &found.model, rivals, seed)? {
            Separation::Contradicted => {
                if attempt > 1 {
                    disputed::around(evidence, &found.model, seed)?;
                }
                known.insert(0, found);
                continue;
            }
            Separation::Settled { inseparable, unasked, tried } => {
                finding.inseparable = inseparable;
                finding.unasked = unasked;
                finding.tried = tried;
            }
        }
        // What replaces a refuted model is probably wrong more rarely, and still wrong.
        let number = Number::of(options).doubled(refuted);
        let verdict = fresh::validate(evidence, &found.model, number, validated_seed, progress)?;
        match verdict {
            Verdict::Holds(validation) => {
                finding.statements = statements::about(&found.model, evidence);
                finding.validation = validation;
                finding.conclusion = Conclusion::Characterized(found.model);
                return Ok(finished(finding, evidence));
            }
            Verdict::Noise(distrust) => {
                finding.conclusion = Conclusion::Distrusted(distrust);
                return Ok(finished(finding, evidence));
            }
            Verdict::Contradicted { counterexample, validation } if attempt == ATTEMPTS => {
                finding.statements = statements::about(&found.model, evidence);
                finding.validation = Some(validation);
                finding.conclusion = Conclusion::Refuted(found.model, counterexample);
                return Ok(given_up(evidence, finding));
            }
            Verdict::Contradicted { counterexample, .. } => {
                if let Some(distrust) = fresh::learn(evidence, &found.model, counterexample, number, seed)? {
                    finding.conclusion = Conclusion::Distrusted(distrust);
                    return Ok(finished(finding, evidence));
                }
                refuted += 1;
                validated_seed = validated_seed.wrapping_add(1);
                known.insert(0, found);
            }
        }
    }
    let model = known.into_iter().next().expect("every attempt leaves a model").model;
    let counterexample = smallest_contradiction(&model, evidence);
    finding.conclusion = Conclusion::Refuted(model, counterexample);
    Ok(given_up(evidence, finding))
}

/// The end of a search that has found no model. What no model explains may be no function: all is asked once more. A
/// device that fails now has answered all that the conclusion needs.
fn given_up(evidence: &mut Evidence, finding: Finding) -> Finding {
    let finding = match asking::again(evidence) {
        Ok(Some(distrust)) => Finding {
            order_answers: finding.order_answers,
            unreachable_pairs: finding.unreachable_pairs,
            ..Finding::of(Conclusion::Distrusted(distrust))
        },
        Ok(None) | Err(_) => finding,
    };
    finished(finding, evidence)
}

/// Asks an instruction in another mode everything that was asked by default. `Some` if all answers
/// are the same and fresh random inputs agree with the model: the mode has no effect.
///
/// # Errors
/// If the device fails.
pub fn mode_without_effect(
    base: &Evidence,
    model: &Model,
    evidence: &mut Evidence,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Option<Finding>, DeviceError> {
    progress.step("does the mode have an effect?", None);
    let questions: Vec<DotAdd> = base.all().map(|answered| answered.question.clone()).collect();
    let answers = evidence.run(&questions)?;
    if base.all().zip(&answers).any(|(answered, &answer)| answered.answer != answer) {
        return Ok(None);
    }
    let number = Number::of(options);
    let Verdict::Holds(validation) = fresh::validate(evidence, model, number, options.seed, progress)? else {
        return Ok(None);
    };
    let finding = Finding { validation, ..Finding::of(Conclusion::ModeWithoutEffect) };
    Ok(Some(finished(finding, evidence)))
}

fn finished(finding: Finding, evidence: &Evidence) -> Finding {
    Finding { rounds: evidence.rounds, dot_adds: evidence.dot_adds, ..finding }
}

/// The simplest question whose answer contradicts a model.
fn smallest_contradiction(model: &Model, evidence: &Evidence) -> Counterexample {
    let mut executor = Scalar::new(model).expect("a fitted model can be executed");
    let zeros = mmaprobe_probes::place::zeros(evidence.signature());
    let weight = |question: &DotAdd| {
        let differing = |x: &[u64], y: &[u64]| x.iter().zip(y).filter(|(x, y)| x != y).count();
        let ones: u32 =
            question.a.iter().chain(&question.b).chain([&question.c]).map(|bits| bits.count_ones()).sum();
        (differing(&question.a, &zeros.a) + differing(&question.b, &zeros.b), ones)
    };
    evidence
        .answers
        .iter()
        .filter(|answered| !fit::explains(&mut executor, answered))
        .map(|answered| (answered.question.clone(), answered.answer))
        .collect::<Vec<(DotAdd, u64)>>()
        .into_iter()
        .map(|(question, device)| {
            let q = &question;
            let model = executor.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb);
            Counterexample { question, device, model }
        })
        .min_by_key(|counterexample| (weight(&counterexample.question), counterexample.question.clone()))
        .expect("an answer contradicts the model")
}
