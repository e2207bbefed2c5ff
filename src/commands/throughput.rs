//! `mmaprobe throughput`.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use mmaprobe_kernels::cpu::{Processor, Unit};

use serde::Serialize;

use super::{Failure, Outcome, open, print, print_json, width};
use crate::catalog::Catalog;
use crate::characterize::Named;
use crate::cli::{Output, Threads, Throughput};
use crate::device::cpu::Cpu;
use crate::output;
use crate::progress::Display;
use crate::table;
use crate::throughput::peak::Peak;
use crate::throughput::{Plan, Throughput as Measured, cores, measure, plot, report};

/// As many threads as the published tables go up to.
const MOST_BY_DEFAULT: usize = 6;

/// What was measured, as JSON has it.
#[derive(Serialize)]
struct Document<'d> {
    measured: &'d [Measured],
    absent: Vec<Lacking<'d>>,
}

/// What was not.
#[derive(Serialize)]
struct Lacking<'d> {
    instruction: &'d str,
    why: &'d str,
}

pub fn run(
    arguments: &Throughput,
    threads: Option<Threads>,
    output: Output,
    catalog: &Catalog,
) -> Result<Outcome, Failure> {
    check_device(&arguments.device, catalog)?;
    Cpu::open()?;
    let processor = Processor::detect();
    let glob = arguments.instruction.as_deref().unwrap_or("*");
    let pattern = glob::Pattern::new(glob)
        .map_err(|error| Failure::Usage(format!("--instruction '{glob}' is no pattern: {error}")))?;
    let matching = |unit: &&Unit| pattern.matches(unit.shape().name);
    let units: Vec<(Unit, Option<Peak>)> =
        processor.units.iter().filter(matching).map(|unit| (*unit, Peak::of(&processor, unit))).collect();
    let absent: Vec<(String, String)> = processor
        .absent
        .iter()
        .filter(|(name, _)| pattern.matches(name))
        .map(|(name, reason)| (name.to_string(), reason.clone()))
        .collect();
    if units.is_empty() {
        let names: Vec<&str> = processor.units.iter().map(|unit| unit.shape().name).collect();
        let reasons: Vec<String> = absent.iter().map(|(name, why)| format!("{name}: {why}; ")).collect();
        let reasons = reasons.concat();
        let there_are = names.join(", ");
        return Err(Failure::Usage(format!(
            "no instruction here matches '{glob}': {reasons}there are: {there_are}"
        )));
    }
    let files = arguments.report.as_deref().map(|path| files(path, arguments.force)).transpose()?;
    let plan = Plan {
        threads: numbers(threads).collect(),
        repetitions: arguments.repetitions.into(),
        cores: cores(),
    };
    let display = Display::new();
    let progress = display.named("throughput");
    progress.step("measuring", Some(plan.repetitions as u64));
    let measured = measure(&units, &plan, || progress.advance(1));
    drop(progress);
    display.clear();

    if output == Output::Json {
        let lacking = absent.iter().map(|(name, why)| Lacking { instruction: name, why });
        print_json(&Document { measured: &measured, absent: lacking.collect() })?;
    } else {
        print(&text(&measured, &absent))?;
    }
    if let Some((markdown, svg)) = files {
        let name = svg.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let write = |path: &Path, text: String| {
            output::write(path, text.as_bytes(), arguments.force).map_err(|error| unwritable(path, &error))
        };
        write(&svg, plot::svg(&measured))?;
        write(&markdown, report::markdown(&processor, &measured, &absent, &name))?;
    }
    Ok(Outcome::Held)
}

/// A table for each instruction, and what is not here.
fn text(measured: &[Measured], absent: &[(String, String)]) -> String {
    let tables: Vec<String> = measured.iter().map(|one| report::terminal(one, width())).collect();
    let mut text = tables.join("\n");
    if !absent.is_empty() {
        text.push_str("\nNOT RUN, as it is not here:\n");
        let rows: Vec<[String; 2]> = absent.iter().map(|(name, why)| [name.clone(), why.clone()]).collect();
        text.push_str(&table::plain(["instruction", "why"], &rows, width()));
    }
    text
}

/// The numbers of threads: as asked, or from one to all cores as far as the published tables go.
fn numbers(threads: Option<Threads>) -> RangeInclusive<usize> {
    match threads {
        Some(Threads { from, to }) => from.into()..=to.into(),
        None => 1..=cores().min(MOST_BY_DEFAULT),
    }
}

/// Refuses what is no hardware, and hardware that cannot be measured yet.
fn check_device(device: &str, catalog: &Catalog) -> Result<(), Failure> {
    let why = match device.split_once(':').map_or(device, |(kind, _)| kind) {
        "cpu" if device == "cpu" => return Ok(()),
        "sim" | "sheet" | "replay" => {
            "it is no hardware, and this program's own speed says nothing of a unit"
        }
        "exec" => "the way to a program and back is slower than any unit",
        "cuda" | "hip" => "GPUs are not timed yet, by resident warps or otherwise",
        _ if catalog.find(device).is_some_and(|found| !found.architecture.is_of_processors()) => {
            "GPUs are not timed yet, by resident warps or otherwise"
        }
        _ => return Err(open::unknown(device, catalog)),
    };
    Err(Failure::Usage(format!("the throughput of {device} cannot be measured: {why} (--device cpu can be)")))
}

/// The report's file and its plot's, both of which can be written.
fn files(path: &Path, force: bool) -> Result<(PathBuf, PathBuf), Failure> {
    if path.extension().is_none_or(|extension| extension != "md") {
        return Err(Failure::Usage(format!("--report {}: its name must end in .md", path.display())));
    }
    let svg = path.with_extension("svg");
    for file in [path, &svg] {
        output::check(file, force).map_err(|error| unwritable(file, &error))?;
    }
    Ok((path.to_path_buf(), svg))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("--report: {} cannot be written: {error}", path.display()))
}
