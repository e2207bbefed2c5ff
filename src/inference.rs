//! Inference: from answers to a sum tree.
//!
//! The steps of the design, in order: [trust] nothing yet; find the [order] of summation; ask the
//! crafted probes; search for rules that explain every answer ([structure], [knobs], [fit]);
//! [separate] what remains; validate on fresh random inputs. The engine knows a device through
//! [`Device::run`] alone.

pub mod directed;
pub mod evidence;
pub mod fit;
pub mod knobs;
pub mod nesting;
pub mod nodewise;
pub mod order;
pub mod search;
pub mod separate;
pub mod simplicity;
pub mod statements;
pub mod structure;
pub mod trust;

use mmaprobe_model::Model;
use mmaprobe_model::scalar::Scalar;
use mmaprobe_model::tree::NanRule;
use mmaprobe_probes::random::{self, Distribution};
use mmaprobe_probes::{DotAdd, Probe, Signature, infinities, nans, precision, rounding, subnormals, zeros};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use rayon::prelude::*;

use crate::device::simulated::Simulated;
use crate::device::{Device, DeviceError, Identity, Instruction, Provenance};
use crate::validation::{self, Mismatch, Nans, Outcome, Plan, ValidationError};
use evidence::{Answered, Class, Evidence, Stage};
use fit::Fitted;
use knobs::{Knob, Turned};
use order::{Order, Skeleton};
use search::Search;
use separate::{Inseparable, Separation};
use statements::Statement;
use structure::Structure;
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

/// Random questions of each distribution among the first evidence.
const RANDOM_EACH: usize = 120;
/// Counterexamples that may widen the evidence before the search gives up.
const ATTEMPTS: u64 = 8;

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
    let (distrust, spent) = trust::check(evidence.device(), evidence.instruction(), options.seed)?;
    evidence.rounds += spent.rounds;
    evidence.dot_adds += spent.dot_adds;
    if let Some(distrust) = distrust {
        finding.conclusion = Conclusion::Distrusted(distrust);
        return Ok(finished(finding, evidence));
    }
    // Of all that is asked, this says most about everything: asked first, it shows that a device was
    // another one before it changed for good.
    evidence.ask(vec![random_probe(evidence.signature(), options.seed)])?;
    progress.step("order of summation", None);
    let before = evidence.answers.len();
    let order = order::find(evidence)?;
    finding.unreachable_pairs = order.unreachable;
    finding.order_answers = (evidence.answers.len() - before) as u64;
    progress.step("crafted probes", None);
    let cuts = ask_crafted(evidence, &order.skeleton)?;
    let nested = nesting::refine(evidence, &order.skeleton, &cuts)?;
    let mut validated_seed = options.seed;
    let mut fitted: Option<Fitted> = None;
    let mut rivals: Vec<Turned> = Vec::new();
    for attempt in 0..ATTEMPTS {
        progress.step("search for rules", None);
        let starts = Starts { evidence, order: &order, nested: &nested, cuts: &cuts };
        let mut candidates = look(&starts, fitted.take(), &mut rivals);
        if candidates[0].contradicted > 0 {
            // Asking costs less than searching.
            if let Some(distrust) = asked_again(evidence)? {
                finding.conclusion = Conclusion::Distrusted(distrust);
                return Ok(finished(finding, evidence));
            }
            ask_each_sum(evidence, &order, &nested, options.seed)?;
            let starts = Starts { evidence, order: &order, nested: &nested, cuts: &cuts };
            candidates = look_closely(&starts);
            if candidates[0].contradicted > 0 {
                candidates.extend(look(&starts, None, &mut rivals));
                candidates.extend(look_further(&starts));
                candidates.sort_by_key(|fitted| fitted.contradicted);
            }
        }
        let mut found = search(evidence, candidates);
        if found.contradicted > 0 {
            finding.conclusion = Conclusion::Unexplained(smallest_contradiction(&found.model, evidence));
            return Ok(finished(finding, evidence));
        }
        found = fit::simplify(evidence, found);
        found.model = found.model.canonical();
        progress.step("separating candidates", None);
        let seed = options.seed.wrapping_add(1000 * (attempt + 1));
        match separate::separate(evidence, &found.model, rivals.clone(), seed)? {
            Separation::Contradicted => {
                fitted = Some(found);
                continue;
            }
            Separation::Settled { inseparable, tried } => {
                finding.inseparable = inseparable;
                finding.tried = tried;
            }
        }
        let verdict = validate(evidence, &found.model, options, validated_seed, progress)?;
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
            Verdict::Contradicted { counterexample, validation } if attempt + 1 == ATTEMPTS => {
                finding.statements = statements::about(&found.model, evidence);
                finding.validation = Some(validation);
                finding.conclusion = Conclusion::Refuted(found.model, counterexample);
                return Ok(finished(finding, evidence));
            }
            Verdict::Contradicted { counterexample, .. } => {
                widen(evidence, &counterexample.question)?;
                validated_seed = validated_seed.wrapping_add(1);
                fitted = Some(found);
            }
        }
    }
    let model = fitted.map(|fitted| fitted.model);
    finding.conclusion = match model {
        Some(model) => {
            let counterexample = smallest_contradiction(&model, evidence);
            Conclusion::Refuted(model, counterexample)
        }
        None => unreachable!("every attempt leaves a model"),
    };
    Ok(finished(finding, evidence))
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
    let questions: Vec<DotAdd> = base.answers.iter().map(|answered| answered.question.clone()).collect();
    let answers = evidence.run(&questions)?;
    if base.answers.iter().zip(&answers).any(|(answered, &answer)| answered.answer != answer) {
        return Ok(None);
    }
    let Verdict::Holds(validation) = validate(evidence, model, options, options.seed, progress)? else {
        return Ok(None);
    };
    let finding = Finding { validation, ..Finding::of(Conclusion::ModeWithoutEffect) };
    Ok(Some(finished(finding, evidence)))
}

fn finished(finding: Finding, evidence: &Evidence) -> Finding {
    Finding { rounds: evidence.rounds, dot_adds: evidence.dot_adds, ..finding }
}

/// The crafted probes of the paper's sections III.D to III.F.
///
/// Returns the fraction bits at which something was lost.
fn ask_crafted(evidence: &mut Evidence, skeleton: &Skeleton) -> Result<Vec<i32>, DeviceError> {
    let signature = *evidence.signature();
    evidence.ask(crafted(&signature))?;
    let cuts = cuts(evidence);
    let mut probes = rounding::probe(&signature, &cuts);
    probes.push(rounding::exponents(&signature, &cuts));
    probes.push(nesting::first_probe(evidence, skeleton, &cuts));
    evidence.ask(probes)?;
    Ok(cuts)
}

/// The crafted probes that depend on no answer.
pub fn crafted(signature: &Signature) -> Vec<Probe> {
    let mut probes = precision::probe(signature);
    probes.push(rounding::sticky(signature));
    probes.extend(subnormals::probe(signature));
    probes.extend(zeros::probe(signature));
    probes.extend(infinities::probe(signature));
    probes.extend(nans::probe(signature));
    probes
}

/// Random dot-adds of every distribution.
fn random_probe(signature: &Signature, seed: u64) -> Probe {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let dot_adds = Distribution::ALL
        .iter()
        .flat_map(|&distribution| std::iter::repeat_n(distribution, RANDOM_EACH))
        .map(|distribution| random::dot_add(distribution, signature, &mut rng))
        .collect();
    Probe {
        name: "random",
        question: "what is the answer to random inputs?",
        source: "MMA-Sim paper, section V",
        dot_adds,
    }
}

/// Where ladders end: the fraction bits at which something was lost, the format's own among them.
fn cuts(evidence: &Evidence) -> Vec<i32> {
    let signature = evidence.signature();
    let mut counted: Vec<(i32, usize)> = Vec::new();
    for ladder in precision::pair_ladders(signature).iter().chain(&precision::triple_ladders(signature)) {
        let answers: Vec<Option<u64>> = ladder.iter().map(|question| evidence.answer(question)).collect();
        let Some(last) = answers.last() else { continue };
        // The last rung whose answer is not the one that all later rungs share.
        if let Some(cut) = answers.iter().rposition(|answer| answer != last)
            && cut + 2 < answers.len()
        {
            match counted.iter_mut().find(|(c, _)| *c == cut as i32) {
                Some((_, count)) => *count += 1,
                None => counted.push((cut as i32, 1)),
            }
        }
    }
    counted.sort_by_key(|&(cut, count)| (std::cmp::Reverse(count), cut));
    counted.truncate(4);
    let mut cuts: Vec<i32> = counted.into_iter().map(|(cut, _)| cut).collect();
    cuts.push(signature.d.fraction_bits as i32);
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// What there is to start a search from.
struct Starts<'a, 'd> {
    evidence: &'a Evidence<'d>,
    order: &'a Order,
    nested: &'a [Skeleton],
    cuts: &'a [i32],
}

impl Starts<'_, '_> {
    /// Every structure of the order that was found, simplest first.
    fn structures(&self) -> impl Iterator<Item = (Structure, Model)> {
        let start = |skeleton: &Skeleton, s| (s, structure::start(self.evidence.signature(), skeleton, s));
        let flat = &self.order.skeleton;
        let flat = Structure::candidates(flat).into_iter().map(move |s| start(flat, s));
        flat.chain(self.nested.iter().flat_map(move |tree| Structure::NESTED.map(|s| start(tree, s))))
    }

    /// What is tried when none of those is enough: aligned sums, and orders where the formats show none.
    fn others(&self) -> Vec<Model> {
        let signature = self.evidence.signature();
        let mut all = structure::aligned_starts(signature, &self.order.skeleton, self.cuts);
        if self.order.unreachable > 0 {
            let orders = order::likely(signature);
            all.extend(orders.iter().map(|order| structure::start(signature, order, Structure::Plain)));
        }
        all
    }
}

/// A quick look at every structure, and at the model so far: those that the fewest answers
/// contradict first, at least one. Other structures that no answer contradicts become `rivals`.
fn look(starts: &Starts, known: Option<Fitted>, rivals: &mut Vec<Turned>) -> Vec<Fitted> {
    let evidence = starts.evidence;
    if let Some(known) = known {
        let improved = fit::settle_nans(evidence, fit::improve(evidence, known, Stage::LAST));
        if improved.contradicted == 0 {
            return vec![improved];
        }
        // What is known of each sum is mostly right.
        let mut budget = nodewise::BUDGET;
        let improved = nodewise::fit(evidence, &improved.model, &mut budget);
        if improved.contradicted == 0 {
            return vec![improved];
        }
    }
    // Simpler structures go first; where one explains everything, the others only have to be told
    // from it: they are rivals if its rules make them explain everything too.
    let mut looked: Vec<Fitted> = Vec::new();
    let mut structures = starts.structures();
    for (_, model) in structures.by_ref() {
        looked.push(improve_by_stage(evidence, Fitted { model, contradicted: usize::MAX }));
        if looked.last().is_some_and(|fitted| fitted.contradicted == 0) {
            break;
        }
    }
    // A stable sort: simpler structures first among equals.
    looked.sort_by_key(|fitted| fitted.contradicted);
    *rivals = structures
        .map(|(structure, model)| Turned {
            knob: Knob { what: "structure of the sums".to_string(), rule: None },
            choice: structure.to_string(),
            model: structure::with_rules_of(model, &looked[0].model),
        })
        .filter(|rival| fit::contradicted(&rival.model, evidence.answers.iter(), 1) == 0)
        .collect();
    looked
}

/// Questions about each sum of the trees found, all together.
const ABOUT_SUMS: usize = 6000;

/// Asks about each sum of the trees that were found.
fn ask_each_sum(
    evidence: &mut Evidence,
    order: &Order,
    nested: &[Skeleton],
    seed: u64,
) -> Result<(), DeviceError> {
    let signature = *evidence.signature();
    let tree = nested.first().unwrap_or(&order.skeleton);
    let sums = nodewise::sums(&structure::start(&signature, tree, Structure::Plain));
    let each = ABOUT_SUMS / sums.len().max(1);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ SUMS);
    evidence.ask(vec![mmaprobe_probes::sums::probe(&signature, &sums, each, &mut rng)])
}

/// Sets the seeds of questions about sums apart from others.
const SUMS: u64 = 0x73_756d_7300;

/// Answers that models may be held against in all of a close look.
const CLOSELY: u64 = 3 * nodewise::BUDGET;

/// Every structure with rules found sum by sum: those that the fewest answers contradict first; one
/// alone if none contradicts it.
fn look_closely(starts: &Starts) -> Vec<Fitted> {
    let mut looked: Vec<Fitted> = Vec::new();
    let mut budget = CLOSELY;
    for (_, model) in starts.structures() {
        looked.push(nodewise::fit(starts.evidence, &model, &mut budget));
        if looked.last().is_some_and(|fitted| fitted.contradicted == 0) {
            return looked.split_off(looked.len() - 1);
        }
    }
    looked.sort_by_key(|fitted| fitted.contradicted);
    looked
}

/// The best of the other starts, by what a glimpse of plain answers with few summands makes of them.
fn look_further(starts: &Starts) -> Vec<Fitted> {
    let evidence = starts.evidence;
    let plain = |summands| Stage { class: Class::Plain, summands };
    let answers: Vec<&Answered> =
        evidence.answers.iter().filter(|answered| plain(usize::MAX).has(answered)).collect();
    let mut glimpsed: Vec<Fitted> = starts
        .others()
        .into_par_iter()
        .map(|model| {
            let start = Fitted { model, contradicted: usize::MAX };
            let fitted =
                [1, 2, 3].iter().fold(start, |fitted, &most| fit::improve(evidence, fitted, plain(most)));
            let contradicted = fit::contradicted(&fitted.model, answers.iter().copied(), usize::MAX);
            Fitted { contradicted, ..fitted }
        })
        .collect();
    glimpsed.sort_by_key(|fitted| fitted.contradicted);
    glimpsed.truncate(SEARCHED);
    glimpsed.into_iter().map(|fitted| improve_by_stage(evidence, fitted)).collect()
}

/// Structures that the wide search starts from.
const SEARCHED: usize = 8;

/// The model that the fewest answers contradict, best none: found by the wide search where a quick look
/// was not enough.
fn search(evidence: &Evidence, mut candidates: Vec<Fitted>) -> Fitted {
    if candidates[0].contradicted == 0 {
        return candidates.swap_remove(0);
    }
    candidates.truncate(SEARCHED);
    let starts = candidates.into_iter().map(|fitted| fitted.model).collect();
    let mut found = Search::new(evidence).run(starts);
    fit::settle_nans(evidence, found.swap_remove(0))
}

/// Asks everything once more, and once more in reverse and so at other places: what no model explains
/// may be no function.
fn asked_again(evidence: &mut Evidence) -> Result<Option<Distrust>, DeviceError> {
    let questions: Vec<DotAdd> = evidence.answers.iter().map(|answered| answered.question.clone()).collect();
    let changed = |evidence: &Evidence, again: &[u64]| {
        let differs = |(answered, again): &(&Answered, &u64)| answered.answer != **again;
        let pairs = evidence.answers.iter().zip(again);
        let first = pairs.enumerate().find(|(_, pair)| differs(pair));
        first.map(|(index, (answered, &again))| (index, answered.question.clone(), (answered.answer, again)))
    };
    let again = evidence.run(&questions)?;
    if let Some((_, question, answers)) = changed(evidence, &again) {
        return Ok(Some(Distrust::NotDeterministic { question, answers, between: "two times of asking" }));
    }
    let backward: Vec<DotAdd> = questions.iter().rev().cloned().collect();
    let mut reversed = evidence.run(&backward)?;
    reversed.reverse();
    Ok(changed(evidence, &reversed).map(|(index, question, answers)| {
        let place = |index: usize| format!("place {index} of a batch of {}", questions.len());
        Distrust::NotUniform { question, answers, places: (place(index), place(questions.len() - 1 - index)) }
    }))
}

/// Settles one stage of answers after the other.
fn improve_by_stage(evidence: &Evidence, mut fitted: Fitted) -> Fitted {
    for stage in Stage::all() {
        fitted = fit::improve(evidence, fitted, stage);
    }
    fit::settle_nans(evidence, fitted)
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

/// Compares the model with the device on fresh random inputs.
fn validate(
    evidence: &mut Evidence,
    model: &Model,
    options: &Options,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Verdict, DeviceError> {
    let (device, instruction) = (evidence.device(), evidence.instruction());
    if options.validate == 0 {
        return Ok(Verdict::Holds(None));
    }
    let elements = (instruction.m * instruction.n) as u64;
    let nans =
        if model.nan == NanRule::Unknown && instruction.d.has_nan() { Nans::AsOne } else { Nans::Bits };
    let plan = Plan {
        sets: options.validate.div_ceil(elements),
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
    let outcome = match validation::validate(device, instruction, &simulated, instruction, &plan, &advance) {
        Ok(outcome) => outcome,
        Err(ValidationError::Device(error)) => return Err(error),
        Err(error) => unreachable!("the model is that of the instruction: {error}"),
    };
    let Some(Mismatch { question, answers, shrunk, shrunk_answers, reproduced_alone, .. }) =
        outcome.mismatch.clone()
    else {
        return Ok(Verdict::Holds(Some((plan, outcome))));
    };
    if !reproduced_alone {
        // Alone, the device answers as the model does: its first answer depended on something else.
        let questions = [vec![question.clone()], like(&question, instruction, seed)].concat();
        let (distrust, spent) = trust::check_on(device, instruction, &questions)?;
        evidence.rounds += spent.rounds;
        evidence.dot_adds += spent.dot_adds;
        let between = "an element among others and alone";
        let unknown = Distrust::NotDeterministic { question, answers, between };
        return Ok(Verdict::Noise(distrust.unwrap_or(unknown)));
    }
    let counterexample =
        Counterexample { question: shrunk, device: shrunk_answers.0, model: shrunk_answers.1 };
    Ok(Verdict::Contradicted { counterexample, validation: (plan, outcome) })
}

/// Random questions to ask beside one that had two answers.
fn like(question: &DotAdd, instruction: &Instruction, seed: u64) -> Vec<DotAdd> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let signature = instruction.signature();
    let others = Distribution::ALL.iter().map(|&each| random::dot_add(each, &signature, &mut rng));
    // The one in question stands at several places.
    others.flat_map(|other| [other, question.clone()]).collect()
}

/// Adds a counterexample and inputs around it to the evidence: single bits flipped, signs changed,
/// summands left out.
fn widen(evidence: &mut Evidence, question: &DotAdd) -> Result<(), DeviceError> {
    let signature = *evidence.signature();
    let mut around = vec![question.clone()];
    let zeros = mmaprobe_probes::place::zeros(&signature);
    let bits = |format: &mmaprobe_model::Format| {
        (format.ignored_low_bits..format.ignored_low_bits + format.bits()).map(|bit| 1u64 << bit)
    };
    for flipped in bits(&signature.c) {
        around.push(DotAdd { c: question.c ^ flipped, ..question.clone() });
    }
    let mut varied = 0;
    for k in 0..signature.k {
        if (question.a[k], question.b[k]) == (zeros.a[k], zeros.b[k]) || varied == 4 {
            continue;
        }
        varied += 1;
        let mut without = question.clone();
        (without.a[k], without.b[k]) = (zeros.a[k], zeros.b[k]);
        around.push(without);
        for flipped in bits(&signature.a) {
            let mut near = question.clone();
            near.a[k] ^= flipped;
            around.push(near);
        }
        for flipped in bits(&signature.b) {
            let mut near = question.clone();
            near.b[k] ^= flipped;
            around.push(near);
        }
    }
    evidence.ask(vec![Probe {
        name: "counterexample",
        question: "what is the answer to a counterexample, and around it?",
        source: "design, inference step 5",
        dot_adds: around,
    }])
}
