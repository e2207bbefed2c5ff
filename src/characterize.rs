//! From a device to a parameter sheet: every instruction characterised, and the findings written
//! down with their evidence.

use mmaprobe_model::Model;
use mmaprobe_model::naming::{self, Named as ModelName};
use mmaprobe_model::tree::NanRule;
use mmaprobe_probes::DotAdd;

use crate::bits::hex;
use crate::device::{Device, DeviceError, Instruction};
use crate::inference::evidence::Evidence;
use crate::inference::knobs::Knob;
use crate::inference::separate::Inseparable;
use crate::inference::trust::Distrust;
use crate::inference::{self, Conclusion, Finding, Options, Progress, Silent};
use crate::sheet::ordered::Ordered;
use crate::sheet::{self, Entry, Sheet, Status, arithmetic, schema, words};
use crate::validation::{Nans, Outcome, Plan};

/// A sheet that could not be finished.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Unfinished {
    /// The instructions that were characterised before the device failed.
    pub sheet: Box<Sheet>,
    /// How it failed.
    #[source]
    pub error: DeviceError,
}

/// Characterises these instructions of a device, in order.
///
/// An instruction in another mode of the machine is first compared with the instruction by default,
/// if that is among them and has a model: where no answer changes, the mode has no effect and needs
/// no model of its own.
///
/// # Errors
/// If the device fails; the sheet so far is in the error.
pub fn characterize(
    device: &dyn Device,
    instructions: &[Instruction],
    options: &Options,
    date: Option<String>,
    progress: &dyn Named,
) -> Result<Sheet, Unfinished> {
    let identity = device.identity();
    let mut sheet = Sheet {
        schema: sheet::SCHEMA.to_string(),
        tool: format!("mmaprobe {}", env!("CARGO_PKG_VERSION")),
        device: schema::DeviceFacts {
            name: identity.name.clone(),
            description: identity.description.clone(),
            properties: Ordered(identity.properties.clone()),
        },
        provenance: identity.provenance,
        date,
        absent: identity
            .absent
            .iter()
            .map(|(name, reason)| schema::Absent { name: name.clone(), reason: reason.clone() })
            .collect(),
        instructions: Vec::new(),
    };
    // Evidence and models of instructions in their default mode.
    let mut defaults: Vec<(Evidence, Option<Model>)> = Vec::new();
    for instruction in instructions {
        let progress = progress.named(&instruction.name);
        let result = one(device, instruction, options, progress.as_ref(), &mut defaults);
        let finding = match result {
            Ok(finding) => finding,
            Err(error) => return Err(Unfinished { sheet: Box::new(sheet), error }),
        };
        if let Some((base, mode)) = &instruction.mode_of
            && let Some(entry) = sheet.instructions.iter_mut().find(|entry| entry.name == *base)
        {
            entry.modes.push(mode_effect(instruction, mode, &finding));
        }
        let mut entry = entry(instruction, &finding);
        if let Some((base, mode)) = &instruction.mode_of
            && !sheet.instructions.iter().any(|known| known.name == *base)
        {
            // A mode refers to the instruction by default, which has to be in the sheet.
            entry.mode_of = None;
            entry.notes.push(format!("This is {base} where {mode}; {base} itself was not asked for."));
        }
        sheet.instructions.push(entry);
    }
    Ok(sheet)
}

/// Hands out a progress display for each instruction.
pub trait Named {
    /// The display for the instruction of that name.
    fn named(&self, name: &str) -> Box<dyn Progress + '_>;
}

impl Named for Silent {
    fn named(&self, _: &str) -> Box<dyn Progress + '_> {
        Box::new(Silent)
    }
}

fn one<'d>(
    device: &'d dyn Device,
    instruction: &'d Instruction,
    options: &Options,
    progress: &dyn Progress,
    defaults: &mut Vec<(Evidence<'d>, Option<Model>)>,
) -> Result<Finding, DeviceError> {
    let mut evidence = Evidence::new(device, instruction);
    let base = instruction
        .mode_of
        .as_ref()
        .and_then(|(base, _)| defaults.iter().find(|(evidence, _)| evidence.instruction().name == *base));
    if let Some((base, Some(model))) = base {
        let found = inference::mode_without_effect(base, model, &mut evidence, options, progress)?;
        if let Some(finding) = found {
            return Ok(finding);
        }
    }
    let finding = inference::characterize_with(&mut evidence, options, progress)?;
    if instruction.mode_of.is_none() {
        let model = match &finding.conclusion {
            Conclusion::Characterized(model) => Some(model.clone()),
            _ => None,
        };
        defaults.push((evidence, model));
    }
    Ok(finding)
}

fn mode_effect(instruction: &Instruction, mode: &str, finding: &Finding) -> schema::ModeEffect {
    let (effect, evidence) = match &finding.conclusion {
        Conclusion::ModeWithoutEffect => {
            let validated = finding.validation.as_ref().map_or(0, |(_, outcome)| outcome.dot_adds);
            let asked = finding.dot_adds;
            (
                "ignored".to_string(),
                format!("{asked} probe answers and {validated} random dot-adds unchanged"),
            )
        }
        Conclusion::Characterized(_) => {
            (format!("obeyed: see {}", instruction.name), "answers to the same probes changed".to_string())
        }
        _ => (
            format!("changes answers, in a way that is not explained: see {}", instruction.name),
            "answers to the same probes changed".to_string(),
        ),
    };
    schema::ModeEffect { mode: mode.to_string(), effect, evidence }
}

fn entry(instruction: &Instruction, finding: &Finding) -> Entry {
    let mut entry = Entry {
        name: instruction.name.clone(),
        mode_of: instruction
            .mode_of
            .as_ref()
            .map(|(base, mode)| schema::ModeOf { instruction: base.clone(), mode: mode.clone() }),
        shape: schema::Shape { m: instruction.m, n: instruction.n, k: instruction.k },
        formats: schema::Formats { a: instruction.a, b: instruction.b, c: instruction.c, d: instruction.d },
        scale: instruction.scale.map(Into::into),
        status: Status::Characterized,
        algorithm: "unnamed".to_string(),
        summary: String::new(),
        arithmetic: None,
        modes: Vec::new(),
        evidence: Vec::new(),
        equivalent: Vec::new(),
        ambiguous: Vec::new(),
        disputed: Vec::new(),
        counterexample: None,
        validation: finding.validation.as_ref().map(|(plan, outcome)| validation(plan, outcome)),
        cost: Some(schema::Cost { rounds: finding.rounds, dot_adds: finding.dot_adds }),
        notes: Vec::new(),
    };
    if let Conclusion::Characterized(model) | Conclusion::Refuted(model, _) = &finding.conclusion {
        let names = arithmetic::rule_names(&model.tree.rules);
        if finding.order_answers > 0 {
            entry.evidence.push(order_statement(finding));
        }
        entry.evidence.extend(finding.statements.iter().map(|found| statement(found, &names)));
        let tried = format!("equal on every answer and on {} random inputs", finding.tried);
        entry.equivalent = alternatives(&finding.inseparable, &tried, &names);
        let unasked = "equal on every answer; inputs tell them apart that this recording was never asked";
        entry.ambiguous = alternatives(&finding.unasked, unasked, &names);
    }
    match &finding.conclusion {
        Conclusion::Characterized(model) => {
            entry.summary = words::describe(model);
            entry.arithmetic = Some(model.into());
            let name = naming::name(model);
            entry.algorithm = name.to_string();
            if let ModelName::Unnamed { description } = name {
                entry.notes.push(description);
            }
            if model.nan == NanRule::Unknown && instruction.d.has_nan() {
                entry.notes.push(
                    "Which NaN a NaN result is follows no rule of the grammar: NaNs were compared as one."
                        .to_string(),
                );
            }
        }
        Conclusion::Refuted(model, counterexample) => {
            entry.status = Status::Refuted;
            entry.summary =
                "Refuted: the arithmetic below explains every probe, but fresh inputs contradict it."
                    .to_string();
            entry.arithmetic = Some(model.into());
            entry.counterexample = Some(counterexample_of(instruction, counterexample));
        }
        Conclusion::Unexplained(counterexample) => {
            entry.status = Status::Unexplained;
            entry.summary = "Unexplained: no sum tree that was tried gives all answers.".to_string();
            entry.counterexample = Some(counterexample_of(instruction, counterexample));
        }
        Conclusion::Distrusted(distrust) => distrusted(&mut entry, instruction, distrust),
        Conclusion::ModeWithoutEffect => {
            entry.status = Status::ModeWithoutEffect;
            let base = instruction.mode_of.as_ref().map_or("", |(base, _)| base);
            entry.summary = format!("The mode has no effect: it computes what {base} computes by default.");
        }
    }
    if finding.unreachable_pairs > 0 {
        entry.notes.push(format!(
            "For {} pairs of summands the formats hold no X far enough above y to show which is added first; \
             their order is the one that explains all answers.",
            finding.unreachable_pairs
        ));
    }
    entry
}

fn distrusted(entry: &mut Entry, instruction: &Instruction, distrust: &Distrust) {
    let (status, counterexample) = accusation(instruction, distrust);
    entry.status = status;
    entry.summary = match status {
        Status::NotUniform => "Not one function: the answer depends on the place. It gets no sum tree.",
        _ => "Not a function: the same question has several answers. It gets no sum tree.",
    }
    .to_string();
    entry.counterexample = Some(counterexample);
}

/// What a device that is no function is called, and the question that it answered in two ways.
pub(crate) fn accusation(instruction: &Instruction, distrust: &Distrust) -> (Status, schema::Counterexample) {
    let (status, question, answers, note) = match distrust {
        Distrust::NotDeterministic { question, answers, between } => (
            Status::NotDeterministic,
            question,
            answers,
            format!(
                "the answer changed between {between}; a second answer: {}",
                hex(&instruction.d, answers.1)
            ),
        ),
        Distrust::NotUniform { question, answers, places } => (
            Status::NotUniform,
            question,
            answers,
            format!("the answer at {}; at {} it is {}", places.0, places.1, hex(&instruction.d, answers.1)),
        ),
    };
    (status, counterexample(instruction, question, answers.0, None, note))
}

fn counterexample_of(instruction: &Instruction, found: &inference::Counterexample) -> schema::Counterexample {
    let note = "the simplest input found on which device and arithmetic differ".to_string();
    counterexample(instruction, &found.question, found.device, Some(found.model), note)
}

pub(crate) fn counterexample(
    instruction: &Instruction,
    question: &DotAdd,
    device: u64,
    model: Option<u64>,
    note: String,
) -> schema::Counterexample {
    let all = |format: &mmaprobe_model::Format, bits: &[u64]| bits.iter().map(|&b| hex(format, b)).collect();
    let scales = |bits: &[u64]| instruction.scale.map_or(Vec::new(), |scale| all(&scale.format, bits));
    schema::Counterexample {
        a: all(&instruction.a, &question.a),
        b: all(&instruction.b, &question.b),
        c: hex(&instruction.c, question.c),
        sa: scales(&question.sa),
        sb: scales(&question.sb),
        device: hex(&instruction.d, device),
        model: model.map(|model| hex(&instruction.d, model)),
        note,
    }
}

/// At most this many choices of one knob are listed; the rest are counted.
const LISTED: usize = 6;

/// Choices as a list to read: runs of numbers as "F = 47 … 64", the first few, and how many more.
fn listed(choices: &[String]) -> Vec<String> {
    let split = |choice: &str| {
        let text = choice.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('-');
        Some((text.to_string(), choice[text.len()..].parse::<i64>().ok()?))
    };
    let mut runs: Vec<(String, Option<(i64, i64)>)> = Vec::new();
    for choice in choices {
        match (split(choice), runs.last_mut()) {
            (Some((text, number)), Some((last, Some((_, to))))) if *last == text && *to + 1 == number => {
                *to = number;
            }
            (Some((text, number)), _) => runs.push((text, Some((number, number)))),
            (None, _) => runs.push((choice.clone(), None)),
        }
    }
    let more = runs.len().saturating_sub(LISTED);
    let mut listed: Vec<String> = runs
        .into_iter()
        .take(LISTED)
        .map(|(text, numbers)| match numbers {
            None => text,
            Some((from, to)) if from == to => format!("{text}{from}"),
            Some((from, to)) => format!("{text}{from} … {to}"),
        })
        .collect();
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    listed
}

/// A knob in words; rules are called as the sheet calls them.
pub(crate) fn knob_words(knob: &Knob, names: &[String]) -> String {
    match knob.rule.and_then(|rule| names.get(rule)) {
        Some(name) => format!("{} of `{name}`", knob.what),
        None => knob.what.clone(),
    }
}

fn order_statement(finding: &Finding) -> schema::Statement {
    schema::Statement {
        statement: "order of summation: as in the steps".to_string(),
        probes: vec![crate::probes::order::NAME.to_string()],
        answers: finding.order_answers,
        rejected: Vec::new(),
        source: None,
    }
}

fn statement(found: &inference::statements::Statement, names: &[String]) -> schema::Statement {
    schema::Statement {
        statement: format!("{}: {}", knob_words(&found.knob, names), found.choice),
        probes: found.probes.clone(),
        answers: found.answers,
        rejected: listed(&found.rejected),
        source: None,
    }
}

/// Choices that no answer tells from what is said, a line for each knob, and what was tried.
fn alternatives(choices: &[Inseparable], tried: &str, names: &[String]) -> Vec<schema::Ambiguity> {
    let mut knobs: Vec<(&Knob, Vec<String>)> = Vec::new();
    for Inseparable { knob, choice } in choices {
        match knobs.iter_mut().find(|(known, _)| *known == knob) {
            // Several models may be one in words.
            Some((_, choices)) if choices.contains(choice) => {}
            Some((_, choices)) => choices.push(choice.clone()),
            None => knobs.push((knob, vec![choice.clone()])),
        }
    }
    knobs
        .into_iter()
        .map(|(knob, choices)| schema::Ambiguity {
            statement: knob_words(knob, names),
            alternatives: listed(&choices),
            tried: tried.to_string(),
        })
        .collect()
}

fn validation(plan: &Plan, outcome: &Outcome) -> schema::Validation {
    let mismatches = u64::from(outcome.mismatch.is_some());
    // The rule of three: with no failure in n independent trials, the rate is below 3/n at 95 %. The
    // elements of a set share rows and columns; only whole sets are independent.
    let elements = outcome.dot_adds.checked_div(outcome.sets).unwrap_or(1);
    let bound = if mismatches == 0 && outcome.sets > 0 {
        let trial = if elements == 1 { "inputs" } else { "matrix sets" };
        let nans = if plan.nans == Nans::AsOne { ", all NaNs taken as one" } else { "" };
        format!(
            "Fewer than {:.1e} of {trial} drawn like these differ, with 95 % confidence{nans}.",
            3.0 / outcome.sets as f64
        )
    } else {
        "None: the comparison stopped at the first mismatch.".to_string()
    };
    schema::Validation {
        dot_adds: outcome.dot_adds,
        seed: plan.seed,
        distributions: outcome
            .per_distribution
            .iter()
            .map(|(distribution, sets)| schema::Distribution {
                name: distribution.name().to_string(),
                dot_adds: sets * elements,
            })
            .collect(),
        mismatches,
        nan_payloads: match plan.nans {
            Nans::Bits => schema::NanPayloads::Compared,
            Nans::AsOne => schema::NanPayloads::NotCompared,
        },
        bound,
    }
}
