//! `mmaprobe validate --vectors`.

use std::path::PathBuf;

use serde::Serialize;

use super::open;
use super::{Failure, Outcome, print, print_json, width};
use crate::catalog::Catalog;
use crate::characterize::Named;
use crate::cli::{Output, Validate};
use crate::device::Device;
use crate::progress::Display;
use crate::table;
use crate::validation::Nans;
use crate::vectors::compare::compare;
use crate::vectors::{self, VectorsError};

/// What became of a file, as JSON has it.
#[derive(Serialize)]
struct Compared {
    file: String,
    instruction: String,
    vectors: usize,
    mismatches: usize,
    nan_payloads_compared: bool,
    /// The line of the first mismatch.
    first_mismatch: Option<usize>,
}

pub fn run(
    arguments: &Validate,
    files: &[PathBuf],
    output: Output,
    catalog: &Catalog,
) -> Result<Outcome, Failure> {
    let device = open::open(&arguments.device.device, arguments.device.timeout, catalog)?;
    let device = open::recorded(device, &[&arguments.device.device], &arguments.record)?;
    // All files first: what is wrong with the last one should not take long to come out.
    let mut sets = Vec::new();
    for path in files {
        let vectors = vectors::load(path).map_err(|error| Failure::Usage(error.to_string()))?;
        let instruction = vectors
            .instruction_of(device.as_ref(), arguments.instruction.as_deref())
            .map_err(|(line, problem)| VectorsError { path: path.clone(), line, problem })
            .map_err(|error| Failure::Usage(error.to_string()))?;
        sets.push((path.display().to_string(), vectors, instruction));
    }
    let display = Display::new();
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    let mut details = String::new();
    for (path, vectors, instruction) in &sets {
        let any_nan = arguments.any_nan || !device.means_nan_bits(instruction);
        let nans = if any_nan { Nans::AsOne } else { Nans::Bits };
        let progress = display.named(path);
        progress.step("comparing", Some(vectors.vectors.len() as u64));
        let outcome = compare(device.as_ref(), instruction, vectors, nans, &|asked| progress.advance(asked))?;
        let note = if any_nan { ", any NaN for any other" } else { "" };
        documents.push(Compared {
            file: path.clone(),
            instruction: instruction.name.clone(),
            vectors: outcome.vectors,
            mismatches: outcome.mismatches,
            nan_payloads_compared: !any_nan,
            first_mismatch: outcome.first.as_ref().map(|mismatch| mismatch.line),
        });
        rows.push([
            path.clone(),
            instruction.name.clone(),
            outcome.vectors.to_string(),
            format!("{}{note}", outcome.mismatches),
        ]);
        if let Some(mismatch) = &outcome.first {
            let signature = instruction.signature();
            details.push_str(&format!(
                "\n{path}:{}: the first of {} mismatches\n{}",
                mismatch.line,
                outcome.mismatches,
                mismatch.describe(&signature, &vectors.gpu, &arguments.device.device)
            ));
        }
    }
    display.clear();
    device.finish()?;
    let failed = !details.is_empty();
    match output {
        Output::Text | Output::Markdown => {
            print(
                &(table::plain(["file", "instruction", "vectors", "mismatches"], &rows, width()) + &details),
            )?;
        }
        Output::Json => print_json(&documents)?,
    }
    Ok(if failed { Outcome::Failed } else { Outcome::Held })
}
