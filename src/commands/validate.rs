//! `mmaprobe validate`.

use serde::Serialize;

use super::open;
use super::{Failure, Outcome, names, print, print_json, select, width};
use crate::catalog::Catalog;
use crate::characterize::{Named, counterexample};
use crate::cli::{Output, Validate};
use crate::device::{Device, Instruction};
use crate::probes::random::Distribution;
use crate::progress::Display;
use crate::sheet::schema::Counterexample;
use crate::table;
use crate::validation::{Nans, Outcome as Comparison, Plan, ValidationError, check_comparable, validate};

pub fn run(arguments: &Validate, output: Output, catalog: &Catalog) -> Result<Outcome, Failure> {
    let against = arguments.against.as_deref().ok_or_else(|| {
        Failure::Usage("--against names the device to compare with; or use --vectors".to_string())
    })?;
    let sources = [arguments.device.device.as_str(), against];
    let device = open::open(sources[0], arguments.device.timeout, catalog)?;
    let against = open::open(sources[1], arguments.device.timeout, catalog)?;
    let selected = select(device.as_ref(), arguments.instruction.as_deref())?;
    let (pairs, missing) = pairs(selected, against.as_ref(), sources)?;
    let device = open::recorded(device, &sources, &arguments.record)?;
    let display = Display::new();
    let mut report = Report { sources, rows: Vec::new(), documents: Vec::new(), details: String::new() };
    let compared = compare_all(device.as_ref(), against.as_ref(), &pairs, arguments, &display, &mut report)
        .and_then(|()| device.finish().and(against.finish()).map_err(Failure::from));
    display.clear();
    // What was compared before a device failed is told all the same.
    let printed = match output {
        _ if report.rows.is_empty() => Ok(()),
        Output::Text | Output::Markdown => print(&report.text()),
        Output::Json => print_json(&report.documents),
    };
    compared.and(printed)?;
    for name in missing {
        eprintln!("mmaprobe: not compared: {} has no {name}", sources[1]);
    }
    Ok(if report.details.is_empty() { Outcome::Held } else { Outcome::Failed })
}

/// The same instruction of two devices.
type Pair = (Instruction, Instruction);

/// The instructions that both devices have, and the names of those that the second lacks.
fn pairs(
    selected: Vec<Instruction>,
    against: &dyn Device,
    [first, second]: [&str; 2],
) -> Result<(Vec<Pair>, Vec<String>), Failure> {
    let mut pairs = Vec::new();
    let mut missing = Vec::new();
    for instruction in selected {
        match against.instruction(&instruction.name) {
            Ok(other) => pairs.push((instruction, other)),
            Err(_) => missing.push(instruction),
        }
    }
    if pairs.is_empty() {
        let has = match against.instructions() {
            [] => "knows the arithmetic of none".to_string(),
            has => format!("has {}", names(has)),
        };
        return Err(Failure::Usage(format!(
            "no instruction in common: {first} has {}; {second} {has}",
            names(&missing)
        )));
    }
    for (instruction, other) in &pairs {
        check_comparable(instruction, other)
            .map_err(|error| Failure::Usage(format!("{first} and {second}: {error}")))?;
    }
    Ok((pairs, missing.into_iter().map(|instruction| instruction.name).collect()))
}

fn compare_all(
    device: &dyn Device,
    against: &dyn Device,
    pairs: &[Pair],
    arguments: &Validate,
    display: &Display,
    report: &mut Report,
) -> Result<(), Failure> {
    for (instruction, other) in pairs {
        let elements = (instruction.m * instruction.n) as u64;
        let nans_mean_bits = device.means_nan_bits(instruction) && against.means_nan_bits(other);
        let nans = if arguments.any_nan || !nans_mean_bits { Nans::AsOne } else { Nans::Bits };
        // A recording answers no others.
        let edition = device.edition().min(against.edition());
        let distributions = Distribution::asked_in(edition).to_vec();
        let plan = Plan { sets: arguments.sets, seed: arguments.seed, distributions, nans };
        let progress = display.named(&instruction.name);
        progress.step("comparing", Some(plan.sets * elements));
        let advance = |sets: u64| progress.advance(sets * elements);
        match validate(device, instruction, against, other, &plan, &advance) {
            Ok(comparison) => report.add(instruction, &comparison),
            Err(ValidationError::Device(error)) => return Err(error.into()),
            Err(error) => return Err(Failure::Usage(error.to_string())),
        }
    }
    Ok(())
}

/// Names of devices up to here are told with their answers.
const LONGEST_NAME: usize = 40;

/// What goes to stdout: a row for each comparison, and every mismatch in full below.
struct Report<'a> {
    sources: [&'a str; 2],
    rows: Vec<[String; 4]>,
    documents: Vec<Compared>,
    details: String,
}

/// A comparison as JSON has it.
#[derive(Serialize)]
struct Compared {
    instruction: String,
    sets: u64,
    dot_adds: u64,
    nan_payloads_compared: bool,
    /// The first mismatch, shrunk: its operands and both answers.
    mismatch: Option<Counterexample>,
}

impl Report<'_> {
    fn add(&mut self, instruction: &Instruction, comparison: &Comparison) {
        let verdict = match (&comparison.mismatch, comparison.nans) {
            (Some(_), _) => "MISMATCH",
            (None, Nans::Bits) => "equal",
            (None, Nans::AsOne) => "equal, any NaN for any other",
        };
        self.documents.push(Compared {
            instruction: instruction.name.clone(),
            sets: comparison.sets,
            dot_adds: comparison.dot_adds,
            nan_payloads_compared: comparison.nans == Nans::Bits,
            mismatch: comparison.mismatch.as_ref().map(|mismatch| {
                let (first, second) = mismatch.shrunk_answers;
                let note = format!("d[{}][{}] of set {}, shrunk", mismatch.i, mismatch.j, mismatch.set);
                counterexample(instruction, &mismatch.shrunk, first, Some(second), note)
            }),
        });
        self.rows.push([
            instruction.name.clone(),
            comparison.sets.to_string(),
            comparison.dot_adds.to_string(),
            verdict.to_string(),
        ]);
        if let Some(mismatch) = &comparison.mismatch {
            let [first, second] = self.sources;
            let title = format!("{}: {first} and {second} differ", instruction.name);
            let title = textwrap::fill(&title, width());
            // Commands may differ only in their last words: then what they were given as says more.
            let short = [first, second].iter().all(|name| name.len() <= LONGEST_NAME);
            let names = if short { (first, second) } else { ("--device", "--against") };
            let mismatch = mismatch.describe(&instruction.signature(), names);
            self.details.push_str(&format!("\n{title}\n{mismatch}"));
        }
    }

    fn text(&self) -> String {
        table::plain(["instruction", "matrix sets", "dot-adds", "result"], &self.rows, width())
            + &self.details
    }
}
