//! Inference: from answers to a sum tree.
//!
//! The steps of the design, in order: [trust] nothing yet; find the [order] of summation and [ask](asking)
//! the crafted probes; [look](looking) for rules that explain every answer ([structure], [knobs],
//! [fit]); [separate] what remains; validate on fresh random inputs. The engine knows a device
//! through [`Device::run`] alone.

pub mod alike;
pub mod apart;
pub mod asking;
pub mod budget;
pub mod depth;
pub mod directed;
pub mod disputed;
pub mod evidence;
pub mod exchanging;
pub mod fit;
pub mod flushed;
pub mod grid;
pub mod grouping;
pub mod handing;
pub mod held;
pub mod knobs;
pub mod looking;
pub mod nesting;
pub mod nodewise;
pub mod order;
pub mod overflowing;
pub mod pool;
pub mod regroup;
pub mod regular;
pub mod search;
pub mod searching;
pub mod separate;
pub mod simplicity;
pub mod standing;
pub mod statements;
pub mod structure;
pub mod triples;
pub mod trust;

use std::ops::ControlFlow;

use mmaprobe_model::Model;
use mmaprobe_model::scalar::Scalar;
use mmaprobe_model::tree::NanRule;
use mmaprobe_probes::DotAdd;
use mmaprobe_probes::boundaries::Boundaries;
use mmaprobe_probes::random::{self, Distribution};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::device::simulated::Simulated;
use crate::device::{Device, DeviceError, Identity, Instruction, Provenance};
use crate::validation::{self, Mismatch, Nans, Outcome, Plan, SparseMismatch, SparsePlan, ValidationError};
use evidence::Evidence;
use fit::Fitted;
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
    /// Inputs tried on each of those.
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
}

/// Says nothing.
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
}

/// Counterexamples that may widen the evidence before the search gives up.
const ATTEMPTS: u64 = 16;

/// Times that answers kept aside may contradict a model that explains the others.
const MOVES: u64 = 16;

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
    progress.step("is it a function?", None);
    asking::first(evidence, options.seed)?;
    let (distrust, spent) = trust::check(evidence.device(), evidence.instruction(), options.seed)?;
    evidence.rounds += spent.rounds;
    evidence.dot_adds += spent.dot_adds;
    if let Some(distrust) = distrust {
        finding.conclusion = Conclusion::Distrusted(distrust);
        return Ok(finished(finding, evidence));
    }
    let mut outline = match asking::outline(evidence, progress)? {
        ControlFlow::Continue(outline) => outline,
        ControlFlow::Break(distrust) => {
            finding.conclusion = Conclusion::Distrusted(distrust);
            return Ok(finished(finding, evidence));
        }
    };
    finding.unreachable_pairs = outline.order.unreachable;
    finding.order_answers = outline.order_answers;
    let mut validated_seed = options.seed;
    let mut fitted: Option<Fitted> = None;
    let (mut attempt, mut moves, mut refuted) = (0, 0, 0);
    while attempt < ATTEMPTS {
        attempt += 1;
        let seed = options.seed.wrapping_add(attempt);
        let mut found = match searching::search(evidence, &mut outline, fitted.take(), seed, progress)? {
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
        if evidence.move_contradictions(&found.model) {
            moves += 1;
            if moves > MOVES {
                let smallest = smallest_contradiction(&found.model, evidence);
                finding.conclusion = Conclusion::Unexplained(smallest);
                return Ok(given_up(evidence, finding));
            }
            // Nothing has been held against the device yet.
            attempt -= 1;
            fitted = Some(found);
            continue;
        }
        let mut left = Vec::new();
        found = fit::simplify(evidence, found, &mut left);
        found.model = found.model.canonical();
        progress.step("separating candidates", None);
        let seed = options.seed.wrapping_add(1000 * attempt);
        if attempt > 1 && separate::is_contradicted_soon(evidence, &found.model, seed)? {
            disputed::around(evidence, &found.model, seed)?;
            fitted = Some(found);
            continue;
        }
        // Fresh inputs contradict most models that are wrong, and cost less than separating.
        let screen = Number::of(options).screen();
        match validate(evidence, &found.model, screen, seed.wrapping_mul(SCREEN), progress)? {
            Verdict::Holds(_) => {}
            Verdict::Noise(distrust) => {
                finding.conclusion = Conclusion::Distrusted(distrust);
                return Ok(finished(finding, evidence));
            }
            Verdict::Contradicted { counterexample, .. } => {
                asking::around(evidence, &counterexample.question)?;
                if let Some(distrust) = answered_otherwise(evidence, &counterexample) {
                    finding.conclusion = Conclusion::Distrusted(distrust);
                    return Ok(finished(finding, evidence));
                }
                if attempt > 1 {
                    disputed::around(evidence, &found.model, seed)?;
                }
                refuted = refuted.max(1);
                fitted = Some(found);
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
                fitted = Some(found);
                continue;
            }
            Separation::Settled { inseparable, tried } => {
                finding.inseparable = inseparable;
                finding.tried = tried;
            }
        }
        // What replaces a refuted model is probably wrong more rarely, and still wrong.
        let number = Number::of(options).doubled(refuted);
        let verdict = validate(evidence, &found.model, number, validated_seed, progress)?;
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
                asking::around(evidence, &counterexample.question)?;
                if let Some(distrust) = answered_otherwise(evidence, &counterexample) {
                    finding.conclusion = Conclusion::Distrusted(distrust);
                    return Ok(finished(finding, evidence));
                }
                refuted += 1;
                validated_seed = validated_seed.wrapping_add(1);
                fitted = Some(found);
            }
        }
    }
    let model = fitted.expect("every attempt leaves a model").model;
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
    let Verdict::Holds(validation) = validate(evidence, model, number, options.seed, progress)? else {
        return Ok(None);
    };
    let finding = Finding { validation, ..Finding::of(Conclusion::ModeWithoutEffect) };
    Ok(Some(finished(finding, evidence)))
}

fn finished(finding: Finding, evidence: &Evidence) -> Finding {
    Finding { rounds: evidence.rounds, dot_adds: evidence.dot_adds, ..finding }
}

/// A device that has answered the question of a counterexample otherwise when it was asked for the evidence: then nothing
/// there need contradict the model.
fn answered_otherwise(evidence: &Evidence, counterexample: &Counterexample) -> Option<Distrust> {
    let Counterexample { question, device, .. } = counterexample;
    let other = evidence.answer(question).filter(|other| other != device)?;
    let (question, answers) = (question.clone(), (*device, other));
    Some(Distrust::NotDeterministic { question, answers, between: "two times of asking" })
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

enum Verdict {
    Holds(Option<(Plan, Outcome)>),
    Contradicted { counterexample: Counterexample, validation: (Plan, Outcome) },
    Noise(Distrust),
}

/// How many inputs a model is validated on.
#[derive(Clone, Copy, Debug)]
struct Number {
    /// From every distribution; 0 for no validation.
    dot_adds: u64,
    /// With few summands. They cost little, and a rule that is wrong where few summands meet may show in one of ten
    /// thousands.
    sparse: u64,
    /// Whether some are asked in batches of one problem, and in large ones.
    in_other_batches: bool,
}

/// Of the inputs that a model is validated on, one of so many as are tried before it is told from others.
const SCREENED: u64 = 5;

/// Sets the seeds of what is tried before apart from others.
const SCREEN: u64 = 0xbf58_476d_1ce4_e5b9;

/// Inputs with few summands, at first: so many times the others, up to this number; and always so many times at least.
const MORE_SPARSE: u64 = 10;
const MANY_SPARSE: u64 = 100_000;
const AT_LEAST: u64 = 2;
/// Times that the numbers are doubled, at most.
const MOST_DOUBLED: u32 = 3;

impl Number {
    fn of(options: &Options) -> Number {
        let times = |times: u64| options.validate.saturating_mul(times);
        let sparse = times(MORE_SPARSE).min(MANY_SPARSE).max(times(AT_LEAST));
        Number { dot_adds: options.validate, sparse, in_other_batches: true }
    }

    /// After validation has refuted so many models: what replaces them is wrong more rarely, and may still be.
    fn doubled(self, refuted: u32) -> Number {
        let times = 1 << refuted.min(MOST_DOUBLED);
        let [dot_adds, sparse] = [self.dot_adds, self.sparse].map(|number| number.saturating_mul(times));
        Number { dot_adds, sparse, ..self }
    }

    /// For a first look at a model.
    fn screen(self) -> Number {
        let [dot_adds, sparse] = [self.dot_adds, self.sparse].map(|number| number / SCREENED);
        Number { dot_adds, sparse, in_other_batches: false }
    }
}

/// Compares the model with the device on fresh random inputs.
fn validate(
    evidence: &mut Evidence,
    model: &Model,
    number: Number,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Verdict, DeviceError> {
    let (device, instruction) = (evidence.device(), evidence.instruction());
    if number.dot_adds == 0 {
        return Ok(Verdict::Holds(None));
    }
    let elements = (instruction.m * instruction.n) as u64;
    let nans =
        if model.nan == NanRule::Unknown && instruction.d.has_nan() { Nans::AsOne } else { Nans::Bits };
    let plan = Plan {
        sets: number.dot_adds.div_ceil(elements),
        seed,
        distributions: Distribution::ALL.to_vec(),
        nans,
    };
    let identity = Identity {
        name: "model".to_string(),
        description: "the model found".to_string(),
        properties: Vec::new(),
        provenance: Provenance::Simulated,
        absent: Vec::new(),
    };
    let simulated = Simulated::new(identity, vec![(instruction.clone(), model.clone())])
        .expect("a fitted model can be executed");
    progress.step("validating", Some(plan.sets * elements));
    let advance = |sets: u64| progress.advance(sets * elements);
    let outcome = compared(evidence, &simulated, &plan, &advance)?;
    let Some(Mismatch { question, answers, shrunk, shrunk_answers, reproduced_alone, .. }) =
        outcome.mismatch.clone()
    else {
        if number.in_other_batches {
            if let Some(verdict) = alone(evidence, &simulated, &plan)? {
                return Ok(verdict);
            }
            if let Some(verdict) = crowded(evidence, &simulated, &plan)? {
                return Ok(verdict);
            }
        }
        let sparse = SparsePlan {
            dot_adds: number.sparse,
            seed: plan.seed.wrapping_mul(SPARSE),
            nans: plan.nans,
            boundaries: Boundaries::of(model),
        };
        let modelled = (&simulated as &dyn Device, &simulated.instructions()[0]);
        return match validation::sparse_mismatch((device, instruction), modelled, &sparse)? {
            None => Ok(Verdict::Holds(Some((plan, outcome)))),
            Some(SparseMismatch { question, answers })
                if validation::differ(&instruction.d, plan.nans, answers) =>
            {
                let (device, model) = answers;
                let counterexample = Counterexample { question, device, model };
                Ok(Verdict::Contradicted { counterexample, validation: (plan, outcome) })
            }
            Some(SparseMismatch { question, answers }) => noise(evidence, question, answers, sparse.seed),
        };
    };
    if !reproduced_alone {
        return noise(evidence, question, answers, seed);
    }
    let counterexample =
        Counterexample { question: shrunk, device: shrunk_answers.0, model: shrunk_answers.1 };
    Ok(Verdict::Contradicted { counterexample, validation: (plan, outcome) })
}

/// Sets the seeds of questions with few summands apart from others.
const SPARSE: u64 = 0xd1b5_4a32_d192_ed03;

/// Names a device that alone answers a question as the model does: its first answer depended on something else.
fn noise(
    evidence: &mut Evidence,
    question: DotAdd,
    answers: (u64, u64),
    seed: u64,
) -> Result<Verdict, DeviceError> {
    let (device, instruction) = (evidence.device(), evidence.instruction());
    let questions = [vec![question.clone()], like(&question, instruction, seed)].concat();
    let problems = validation::sets_per_block(instruction) as usize;
    let (distrust, spent) = trust::check_on(device, instruction, &questions, problems)?;
    evidence.rounds += spent.rounds;
    evidence.dot_adds += spent.dot_adds;
    let between = "an element among others and alone";
    let unknown = Distrust::NotDeterministic { question, answers, between };
    Ok(Verdict::Noise(distrust.unwrap_or(unknown)))
}

/// Compares the device with a model of its instruction.
fn compared(
    evidence: &Evidence,
    simulated: &Simulated,
    plan: &Plan,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Outcome, DeviceError> {
    let (device, instruction) = (evidence.device(), evidence.instruction());
    match validation::validate(device, instruction, simulated, instruction, plan, progress) {
        Ok(outcome) => Ok(outcome),
        Err(ValidationError::Device(error)) => Err(error),
        Err(error) => unreachable!("the model is that of the instruction: {error}"),
    }
}

/// Compares a model that holds in the batches of a plan with the device in one as large as any, where the plan has none:
/// a device may compute otherwise in those.
fn crowded(
    evidence: &mut Evidence,
    simulated: &Simulated,
    plan: &Plan,
) -> Result<Option<Verdict>, DeviceError> {
    let sets = validation::sets_per_block(evidence.instruction());
    if plan.sets >= sets {
        return Ok(None);
    }
    let crowd = Plan { sets, seed: plan.seed.wrapping_mul(CROWDED), ..plan.clone() };
    let outcome = compared(evidence, simulated, &crowd, &|_| {})?;
    let Some(mismatch) = outcome.mismatch.clone() else { return Ok(None) };
    let Mismatch { question, answers, shrunk, shrunk_answers, reproduced_alone, .. } = mismatch;
    if !reproduced_alone {
        return noise(evidence, question, answers, crowd.seed).map(Some);
    }
    let counterexample =
        Counterexample { question: shrunk, device: shrunk_answers.0, model: shrunk_answers.1 };
    Ok(Some(Verdict::Contradicted { counterexample, validation: (crowd, outcome) }))
}

/// Sets the seeds of large batches apart from others.
const CROWDED: u64 = 0xa076_1d64_78bd_642f;

/// Problems that are asked in batches of one.
const ALONE: u64 = 64;
/// Problems of a batch that shows what is answered among others: an even number.
const AMONG: usize = 300;

/// Compares a model that holds in large batches with the device in batches of a single problem. What differs
/// is asked again among others: a device that then answers as the model does is not the same everywhere.
fn alone(
    evidence: &mut Evidence,
    simulated: &Simulated,
    plan: &Plan,
) -> Result<Option<Verdict>, DeviceError> {
    let instruction = evidence.instruction();
    for index in 0..ALONE {
        let distribution = Distribution::ALL[index as usize % Distribution::ALL.len()];
        let seed = plan.seed.wrapping_add(index).wrapping_mul(SINGLE);
        let single = Plan { sets: 1, seed, distributions: vec![distribution], ..plan.clone() };
        let outcome = compared(evidence, simulated, &single, &|_| {})?;
        let Some(mismatch) = outcome.mismatch.clone() else { continue };
        let Mismatch { question, answers, shrunk, shrunk_answers, reproduced_alone, .. } = mismatch;
        let problems = vec![question.clone(); AMONG * instruction.m * instruction.n];
        let among = evidence.run(&problems)?;
        if let Some(&other) = among.iter().find(|&&answer| answer != answers.0) {
            let (answers, between) = ((answers.0, other), "a problem alone and among others");
            return Ok(Some(Verdict::Noise(Distrust::NotDeterministic { question, answers, between })));
        }
        if !reproduced_alone {
            return noise(evidence, question, answers, seed).map(Some);
        }
        let counterexample =
            Counterexample { question: shrunk, device: shrunk_answers.0, model: shrunk_answers.1 };
        return Ok(Some(Verdict::Contradicted { counterexample, validation: (single, outcome) }));
    }
    Ok(None)
}

/// Sets the seeds of single problems apart from others.
const SINGLE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Random questions to ask beside one that had two answers.
fn like(question: &DotAdd, instruction: &Instruction, seed: u64) -> Vec<DotAdd> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let signature = instruction.signature();
    let others = Distribution::ALL.iter().map(|&each| random::dot_add(each, &signature, &mut rng));
    // The one in question stands at several places.
    others.flat_map(|other| [other, question.clone()]).collect()
}
