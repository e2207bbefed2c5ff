//! `mmaprobe selftest`.

use super::{Failure, Outcome, print, print_json, width};
use crate::cli::{Output, Selftest};
use crate::progress::Display;
use crate::selftest::details::{Details, Existing};
use crate::selftest::report::Line;
use crate::selftest::{Plan, Tried, attempt, report, run as run_all};
use crate::sheet::yaml;

pub fn run(arguments: &Selftest, format: Output) -> Result<Outcome, Failure> {
    let Selftest { machines, defective, functions, seed, validate, only, details, resume, force } = arguments;
    let plan = Plan {
        seed: *seed,
        machines: *machines,
        defective: *defective,
        functions: *functions,
        validate: *validate,
    };
    if let Some(which) = only {
        let display = Display::new();
        let tried = attempt(&plan, *which, &display);
        display.clear();
        progress(&tried);
        if format == Output::Json {
            print_json(&[Line::of(&tried)])?;
            return Ok(outcome(std::slice::from_ref(&tried)));
        }
        let sheet = tried.sheet.as_ref().map_or(String::new(), yaml::write);
        print(&format!("{}\n{sheet}", report::in_full(&tried).trim_start()))?;
        return Ok(outcome(std::slice::from_ref(&tried)));
    }
    let existing = match (force, resume) {
        (true, _) => Existing::Replaced,
        (false, true) => Existing::Resumed,
        (false, false) => Existing::Kept,
    };
    let begun = details.as_deref().map(|path| Details::begin(path, &plan, existing)).transpose();
    let (details, known) = begun.map_err(|error| Failure::Usage(error.to_string()))?.unzip();
    let known = known.unwrap_or_default();
    if !known.is_empty() {
        eprintln!("{} units have ended already", known.len());
    }
    let start = std::time::Instant::now();
    let done = |tried: &Tried| {
        if let Some(details) = &details {
            details.keep(tried);
        }
        progress(tried);
    };
    let before = known.len();
    let all = run_all(&plan, known, &done);
    eprintln!("{} units in {:.1} s", all.len() - before, start.elapsed().as_secs_f64());
    match format {
        Output::Text | Output::Markdown => print(&report::text(&all, width()))?,
        Output::Json => print_json(&all.iter().map(Line::of).collect::<Vec<_>>())?,
    }
    if let Some(details) = details {
        details.finish(&all).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    Ok(outcome(&all))
}

fn outcome(all: &[Tried]) -> Outcome {
    if all.iter().any(|tried| tried.verdict.is_failure()) { Outcome::Failed } else { Outcome::Held }
}

/// A line on stderr as a unit ends.
fn progress(tried: &Tried) {
    let cost = tried
        .cost
        .map_or(String::new(), |cost| format!("{} rounds, {} dot-adds, ", cost.rounds, cost.dot_adds));
    let what = tried.defect.as_ref().map_or(String::new(), |defect| format!("[{defect}] "));
    eprintln!(
        "{}: {} {what}({cost}{:.1} s) {}",
        tried.which,
        tried.verdict.name(),
        tried.time.as_secs_f64(),
        tried.features.join("; ")
    );
}
