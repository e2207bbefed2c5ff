//! The evidence behind each statement about an instruction: what a sheet says of it, and where a
//! recording is there, the very questions and answers.

use std::collections::{BTreeMap, HashMap};

use crate::bits::Shown;
use crate::device::Instruction;
use crate::generate::GenerateError;
use crate::generate::evidence::{Alternative, alternatives, answers_of, probe_names};
use crate::inference::asking::crafted;
use crate::inference::evidence::Answered;
use crate::markdown::printable;
use crate::model::{Executor, Model};
use crate::probes::{DotAdd, Probe};
use crate::report::special::inputs;
use crate::sheet::schema::{Entry, Statement};
use crate::sheet::table::counted;

/// Alternatives to a statement that are shown with an answer that contradicts them, at most.
const SHOWN: usize = 4;

/// A statement and what supports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supported {
    /// The statement.
    pub statement: String,
    /// Who states it, where it was not asked.
    pub source: Option<String>,
    /// Number of answers that bear on it.
    pub answers: u64,
    /// The probes that were asked.
    pub probes: Vec<String>,
    /// Alternatives that answers contradicted.
    pub rejected: Vec<String>,
    /// Recorded answers that contradict alternatives.
    pub witnesses: Vec<Witness>,
}

/// A recorded answer that contradicts an alternative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The alternative.
    pub alternative: String,
    /// The probe that asked.
    pub probe: String,
    /// The operands, a line each.
    pub inputs: Vec<String>,
    /// What the device answered.
    pub answer: String,
    /// What the alternative would have given.
    pub otherwise: String,
}

/// A kind of question, with one of its questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The probe.
    pub name: String,
    /// What it asks.
    pub question: String,
    /// Where the question is from.
    pub source: String,
    /// How many dot-adds it consists of.
    pub dot_adds: usize,
    /// The operands of one of them, a line each.
    pub inputs: Vec<String>,
    /// What the arithmetic gives for it.
    pub answer: String,
}

impl Supported {
    /// How much supports it: `1,642 answers, 2 alternatives contradicted`.
    pub fn support(&self) -> String {
        let answers = counted(self.answers, "answer");
        match self.rejected.len() {
            0 => answers,
            rejected => format!("{answers}; {} contradicted", counted(rejected as u64, "alternative")),
        }
    }
}

impl Asked {
    /// How many questions it stands for, and where they are from.
    pub fn origin(&self) -> String {
        format!("{}; {}", counted(self.dot_adds as u64, "dot-add"), self.source)
    }
}

/// The statements of an entry, without recorded answers.
pub fn stated(entry: &Entry) -> Vec<Supported> {
    let each = |text: &Vec<String>| text.iter().map(|text| printable(text)).collect();
    entry
        .evidence
        .iter()
        .map(|Statement { statement, probes, answers, rejected, source }| Supported {
            statement: printable(statement),
            source: source.as_ref().map(|source| printable(source)),
            answers: *answers,
            probes: each(probes),
            rejected: each(rejected),
            witnesses: Vec::new(),
        })
        .collect()
}

/// Adds recorded answers to statements.
///
/// # Errors
/// If the model contradicts one of them.
pub fn add_witnesses(
    statements: &mut [Supported],
    instruction: &Instruction,
    model: &Model,
    recorded: &[(DotAdd, u64)],
) -> Result<(), GenerateError> {
    let answered = answers_of(instruction, model, recorded)?;
    let names = probe_names(&instruction.signature());
    let mut known: BTreeMap<String, Vec<Alternative>> = BTreeMap::new();
    for alternative in alternatives(instruction, model, &answered) {
        known.entry(printable(&alternative.statement)).or_default().push(alternative);
    }
    for statement in statements {
        let alternatives = known.get(&statement.statement).into_iter().flatten();
        let witnesses =
            alternatives.filter_map(|alternative| witness(instruction, alternative, &answered, &names));
        statement.witnesses = witnesses.take(SHOWN).collect();
    }
    Ok(())
}

/// The simplest answer that contradicts an alternative: the one with fewest operands that are not zero.
fn witness(
    instruction: &Instruction,
    alternative: &Alternative,
    answered: &[Answered],
    names: &HashMap<DotAdd, &'static str>,
) -> Option<Witness> {
    let size = |question: &DotAdd| {
        let DotAdd { a, b, c, .. } = question;
        a.iter().chain(b).chain([c]).filter(|&&bits| bits != 0).count()
    };
    let simplest = alternative.contradicting.iter().min_by_key(|&&index| size(&answered[index].question))?;
    let Answered { question, answer, .. } = &answered[*simplest];
    let DotAdd { a, b, c, sa, sb } = question;
    let otherwise = Executor::new(&alternative.model).ok()?.dot_add(a, b, *c, sa, sb);
    let shown = |bits| Shown { format: &instruction.d, bits }.to_string();
    Some(Witness {
        alternative: alternative.choice.clone(),
        probe: names.get(question).map_or_else(|| "another question".to_string(), |name| name.to_string()),
        inputs: inputs(&instruction.signature(), question),
        answer: shown(*answer),
        otherwise: shown(otherwise),
    })
}

/// The probes that statements name, as far as they do not depend on earlier answers: what they ask, and
/// one question of each with what the model gives.
///
/// # Panics
/// If the model does not pass [`Model::check`], or is not of the instruction.
pub fn asked(statements: &[Supported], instruction: &Instruction, model: &Model) -> Vec<Asked> {
    if statements.iter().all(|own| own.probes.is_empty()) {
        return Vec::new();
    }
    let is_named = |name: &str| statements.iter().any(|own| own.probes.iter().any(|probe| probe == name));
    let signature = instruction.signature();
    let mut executor = Executor::new(model).expect("the sheet's model has been checked");
    let mut all: Vec<Asked> = Vec::new();
    for Probe { name, question, source, dot_adds } in crafted(&signature) {
        // One of the middle: ladders begin and end with the plainest.
        let Some(example) = dot_adds.get(dot_adds.len() / 2).filter(|_| is_named(name)) else { continue };
        match all.iter_mut().find(|own| own.name == name) {
            Some(own) => own.dot_adds += dot_adds.len(),
            None => {
                let DotAdd { a, b, c, sa, sb } = example;
                let bits = executor.dot_add(a, b, *c, sa, sb);
                all.push(Asked {
                    name: name.to_string(),
                    question: question.to_string(),
                    source: source.to_string(),
                    dot_adds: dot_adds.len(),
                    inputs: inputs(&signature, example),
                    answer: Shown { format: &instruction.d, bits }.to_string(),
                });
            }
        }
    }
    all
}
