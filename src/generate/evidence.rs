//! The tests of a generated crate: dot-adds and what was answered to them.
//!
//! Of a recording, those answers are taken that contradict an alternative to what the sheet says, for
//! every alternative; answers to random sets of the validation, as far as they were recorded; and a sample
//! of all others. A sheet that comes without a recording (a published one
//! always does) has no evidence: then the dot-adds are answered by the general executor, which tells
//! whether the crate computes what the tool does, and nothing about hardware.

use std::collections::HashMap;
use std::fmt::Write;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crate::batch;
use crate::characterize::knob_words;
use crate::device::replay::Replay;
use crate::device::{DeviceError, Instruction};
use crate::generate::GenerateError;
use crate::inference::asking::crafted;
use crate::inference::evidence::{Answered, Class, Evidence};
use crate::inference::held::Held;
use crate::inference::{fit, knobs};
use crate::markdown;
use crate::model::scalar::Scalar;
use crate::model::tree::Node;
use crate::model::{Executor, Format, Model};
use crate::probes::random::{self, Distribution};
use crate::probes::{DotAdd, Probe, Signature};
use crate::sheet::arithmetic::rule_names;
use crate::sheet::schema::{Entry, Validation};
use crate::validation::{Nans, Plan};

/// Answers of each instruction that are looked at: those asked first, crafted ones, all; of the many
/// random ones behind them a part.
const KEPT: usize = 16_384;
/// Of the answers beyond [`KEPT`], one of so many is looked at.
const THINNED: usize = 61;
/// Answers that contradict the same alternative, at most.
const WITNESSES: usize = 2;
/// Answers to random sets of one distribution, at most.
const VALIDATED: usize = 20;
/// Answers in the sample of all others.
const SAMPLE: usize = 100;
/// Bytes that a file of unrecorded answers should have, about.
const BYTES: usize = 24_000;
/// Least and most dot-adds in such a file.
const UNRECORDED: std::ops::RangeInclusive<usize> = 48..=300;

/// Recorded answers, by instruction.
pub type Recorded = HashMap<String, Vec<(DotAdd, u64)>>;

/// Reads the answers of a recording.
///
/// # Errors
/// If it cannot be read.
pub fn recorded(replay: &Replay) -> Result<Recorded, DeviceError> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut recorded = Recorded::new();
    replay.each(&mut |instruction, questions, answer| {
        let seen = seen.entry(instruction.name.clone()).or_default();
        let kept = recorded.entry(instruction.name.clone()).or_default();
        let diagonal = instruction.m.min(instruction.n);
        let answers = batch::answers(instruction, questions.count * diagonal, answer);
        for (index, answer) in answers.into_iter().enumerate() {
            *seen += 1;
            if *seen <= KEPT || seen.is_multiple_of(THINNED) {
                let (problem, at) = (index / diagonal, index % diagonal);
                kept.push((batch::dot_add_at(instruction, &questions, problem, at, at), answer));
            }
        }
    })?;
    Ok(recorded)
}

/// The file of recorded answers of an instruction.
///
/// # Errors
/// If the model contradicts one of them.
pub fn of_recording(
    instruction: &Instruction,
    entry: &Entry,
    model: &Model,
    answers: &[(DotAdd, u64)],
    device: &str,
) -> Result<String, GenerateError> {
    let answered = answers_of(instruction, model, answers)?;
    let mut file = File::new(instruction);
    file.comment(&format!("What {device} answered when {} was characterized.", instruction.name));
    let probes = probe_names(&instruction.signature());
    let mut chosen = vec![false; answered.len()];
    for (statement, witnesses) in witnesses(instruction, model, &answered) {
        if witnesses.is_empty() {
            continue;
        }
        let probe = |&index: &usize| probes.get(&answered[index].question).copied();
        let mut names: Vec<&str> = witnesses.iter().filter_map(probe).collect();
        names.sort_unstable();
        names.dedup();
        file.comment(&match names.is_empty() {
            true => statement,
            false => format!("{statement} ({})", names.join(", ")),
        });
        for index in witnesses {
            chosen[index] = true;
            file.dot_add(&answered[index].question, answered[index].answer);
        }
    }
    for (distribution, validated) in validated(instruction, entry, &answered) {
        let unchosen: Vec<usize> = validated.into_iter().filter(|&index| !chosen[index]).collect();
        if !unchosen.is_empty() {
            file.comment(&format!("validated random sets: {distribution}"));
        }
        for &index in spread(&unchosen, VALIDATED) {
            chosen[index] = true;
            file.dot_add(&answered[index].question, answered[index].answer);
        }
    }
    let rest: Vec<usize> = (0..answered.len()).filter(|&index| !chosen[index]).collect();
    file.comment("A sample of all other answers.");
    for &index in spread(&rest, SAMPLE) {
        file.dot_add(&answered[index].question, answered[index].answer);
    }
    Ok(file.finished())
}

/// The file of an instruction of which no answer was recorded.
pub fn unrecorded(instruction: &Instruction, model: &Model, tool: &str) -> String {
    let mut file = File::new(instruction);
    file.comment(&format!(
        "No answer of hardware came with the sheet. These are the answers of {tool}, by its general executor:"
    ));
    file.comment("they show that this crate computes what the tool does, and nothing about hardware.");
    let mut executor = Executor::new(model).expect("the sheet's model has been checked");
    let mut answer = |q: &DotAdd| executor.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb);
    let signature = instruction.signature();
    let named = |probe: Probe| probe.dot_adds.into_iter().map(move |question| (probe.name, question));
    let crafted: Vec<(&str, DotAdd)> = crafted(&signature).into_iter().flat_map(named).collect();
    let zeros = crate::probes::place::zeros(&signature);
    let count = (BYTES / file.line(&zeros, 0).len()).clamp(*UNRECORDED.start(), *UNRECORDED.end());
    let mut name = "";
    for (probe, question) in spread(&crafted, count / 2) {
        if *probe != name {
            name = probe;
            file.comment(name);
        }
        file.dot_add(question, answer(question));
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for distribution in Distribution::ALL {
        file.comment(&format!("random: {distribution}"));
        for _ in 0..(count / 2).div_ceil(Distribution::ALL.len()) {
            let question = random::dot_add(distribution, &signature, &mut rng);
            let answer = answer(&question);
            file.dot_add(&question, answer);
        }
    }
    file.finished()
}

/// The recorded answers to the random sets with which the sheet's validation began, by distribution: none
/// if nothing was validated while the recording ran.
fn validated(
    instruction: &Instruction,
    entry: &Entry,
    answered: &[Answered],
) -> Vec<(Distribution, Vec<usize>)> {
    let Some(Validation { seed, distributions, .. }) = &entry.validation else { return Vec::new() };
    // Those of the day on which it was validated, in their order.
    let named = distributions.iter().filter_map(|distribution| Distribution::from_name(&distribution.name));
    let distributions: Vec<Distribution> = named.collect();
    if distributions.is_empty() {
        return Vec::new();
    }
    let plan = Plan { sets: u64::MAX, seed: *seed, distributions: distributions.clone(), nans: Nans::Bits };
    let sets: HashMap<DotAdd, Distribution> =
        plan.first_dot_adds(instruction).into_iter().map(|(distribution, set)| (set, distribution)).collect();
    let of = |wanted: Distribution| {
        let is_wanted = |&index: &usize| sets.get(&answered[index].question) == Some(&wanted);
        (wanted, (0..answered.len()).filter(is_wanted).collect())
    };
    distributions.into_iter().map(of).collect()
}

/// The names of the crafted probes, by question.
pub fn probe_names(signature: &Signature) -> HashMap<DotAdd, &'static str> {
    let named = |probe: Probe| probe.dot_adds.into_iter().map(move |question| (question, probe.name));
    crafted(signature).into_iter().flat_map(named).collect()
}

/// Distinct questions with their answers.
///
/// # Errors
/// If the model contradicts one of them.
pub fn answers_of(
    instruction: &Instruction,
    model: &Model,
    answers: &[(DotAdd, u64)],
) -> Result<Vec<Answered>, GenerateError> {
    let signature = instruction.signature();
    let mut known = std::collections::HashSet::new();
    let answered: Vec<Answered> = answers
        .iter()
        .filter(|(question, _)| known.insert(question))
        .map(|(question, answer)| Answered::new(&signature, 0, question.clone(), *answer))
        .collect();
    let mut executor = Scalar::new(model).expect("the sheet's model has been checked");
    match answered.iter().find(|answered| !fit::explains(&mut executor, answered)) {
        Some(wrong) => Err(GenerateError::contradicted(instruction, &wrong.question, wrong.answer)),
        None => Ok(answered),
    }
}

/// Something else that could be said of an instruction.
pub struct Alternative {
    /// What is said, as a sheet has it.
    pub statement: String,
    /// What could be said instead.
    pub choice: String,
    /// The model with that.
    pub model: Model,
    /// The answers that contradict it, by index.
    pub contradicting: Vec<usize>,
}

/// The alternatives to every statement about a model, with the answers that contradict them.
pub fn alternatives(instruction: &Instruction, model: &Model, answered: &[Answered]) -> Vec<Alternative> {
    let names = rule_names(&model.tree.rules);
    let mut all: Vec<(String, String, Model)> = exchanged(model)
        .into_iter()
        .map(|(choice, other)| ("order of summation: as in the steps".to_string(), choice, other))
        .collect();
    let turned = knobs_of(instruction, model, answered);
    for turn in &turned {
        let own = turned.iter().find(|other| other.knob == turn.knob && other.model == *model);
        if let Some(own) = own
            && turn.model != *model
        {
            let statement = format!("{}: {}", knob_words(&turn.knob, &names), own.choice);
            all.push((statement, turn.choice.clone(), turn.model.clone()));
        }
    }
    let held = Held::new(model, &answered.iter().collect::<Vec<&Answered>>());
    all.into_par_iter()
        .map(|(statement, choice, model)| {
            let contradicting = held.contradicting(&model, usize::MAX).unwrap_or_default();
            Alternative { statement, choice, model, contradicting }
        })
        .collect()
}

/// For each statement about the model, answers that contradict its alternatives.
fn witnesses(instruction: &Instruction, model: &Model, answered: &[Answered]) -> Vec<(String, Vec<usize>)> {
    let mut chosen = vec![false; answered.len()];
    let mut statements: Vec<(String, Vec<usize>)> = Vec::new();
    for Alternative { statement, contradicting, .. } in alternatives(instruction, model, answered) {
        let already = contradicting.iter().filter(|&&index| chosen[index]).count();
        let fresh: Vec<usize> = contradicting.into_iter().filter(|&index| !chosen[index]).collect();
        let witnesses = spread(&fresh, WITNESSES.saturating_sub(already));
        witnesses.clone().for_each(|&index| chosen[index] = true);
        match statements.iter_mut().find(|(known, _)| *known == statement) {
            Some((_, known)) => known.extend(witnesses),
            None => statements.push((statement, witnesses.copied().collect())),
        }
    }
    statements
}

/// The neighbours of the model, as inference turns its knobs.
fn knobs_of(instruction: &Instruction, model: &Model, answered: &[Answered]) -> Vec<knobs::Turned> {
    // The answers are all that is looked at: whoever gave them, nothing more is asked.
    let silent = NoDevice(crate::device::Identity {
        name: "recorded".to_string(),
        description: String::new(),
        properties: Vec::new(),
        provenance: crate::device::Provenance::Recorded,
        absent: Vec::new(),
    });
    let mut evidence = Evidence::new(&silent, instruction);
    evidence.answers.extend(answered.iter().cloned());
    knobs::turn_all(model, &instruction.signature(), Class::Nan, &evidence)
}

/// Stands where a device is expected that nobody asks.
struct NoDevice(crate::device::Identity);

impl crate::device::Device for NoDevice {
    fn identity(&self) -> &crate::device::Identity {
        &self.0
    }

    fn instructions(&self) -> &[Instruction] {
        &[]
    }

    fn run(&self, _: &Instruction, _: &crate::device::Batch) -> Result<Vec<u8>, DeviceError> {
        Err(DeviceError {
            device: self.0.name.clone(),
            fault: crate::device::Fault::NotRecorded("nothing is asked of a recording here".to_string()),
        })
    }
}

/// Models in which two neighbouring summands have changed places, and which ones: products in the order of
/// their indices, then c.
fn exchanged(model: &Model) -> Vec<(String, Model)> {
    let leaf = |wanted: &Node| model.tree.nodes.iter().position(|node| node == wanted);
    let leaves: Vec<usize> = (0..model.k)
        .map(Node::Product)
        .chain([Node::Accumulator])
        .filter_map(|wanted| leaf(&wanted))
        .collect();
    leaves
        .windows(2)
        .map(|pair| {
            let mut other = model.clone();
            other.tree.nodes.swap(pair[0], pair[1]);
            let name = |node: &Node| match node {
                Node::Product(k) => format!("p{k}"),
                _ => "c".to_string(),
            };
            let [first, second] = [pair[0], pair[1]].map(|id| name(&model.tree.nodes[id]));
            (format!("{first} and {second} exchanged"), other)
        })
        .collect()
}

/// At most `count` items, evenly spread.
fn spread<T>(items: &[T], count: usize) -> impl Iterator<Item = &T> + Clone {
    let count = count.min(items.len());
    (0..count).map(move |index| &items[index * items.len() / count])
}

/// A file in the making; `tests/support.rs` of the generated crate reads it.
struct File {
    signature: Signature,
    text: String,
    dot_adds: usize,
}

impl File {
    fn new(instruction: &Instruction) -> File {
        File { signature: instruction.signature(), text: String::new(), dot_adds: 0 }
    }

    fn comment(&mut self, text: &str) {
        writeln!(self.text, "# {}", markdown::printable(text)).expect("strings take any text");
    }

    fn dot_add(&mut self, question: &DotAdd, answer: u64) {
        let line = self.line(question, answer);
        self.text += &line;
        self.dot_adds += 1;
    }

    fn line(&self, question: &DotAdd, answer: u64) -> String {
        let Signature { a, b, c, d, scale, .. } = &self.signature;
        let hex = |format: &Format, bits: &[u64]| {
            let digits = 2 * format.bytes;
            let elements: Vec<String> = bits.iter().map(|bits| format!("{bits:0digits$x}")).collect();
            elements.join(" ")
        };
        let mut operands = vec![hex(a, &question.a), hex(b, &question.b), hex(c, &[question.c])];
        if let Some(scale) = scale {
            operands.extend([hex(&scale.format, &question.sa), hex(&scale.format, &question.sb)]);
        }
        format!("{} = {}\n", operands.join(" | "), hex(d, &[answer]))
    }

    fn finished(mut self) -> String {
        let dot_adds = self.dot_adds;
        self.comment(&format!("dot-adds: {dot_adds}"));
        self.text
    }
}
