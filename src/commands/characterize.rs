//! `mmaprobe characterize`.

use super::open;
use super::{Failure, Outcome, print, select};
use crate::catalog::Catalog;
use crate::characterize::{Unfinished, characterize};
use crate::cli::Characterize;
use crate::device::Device;
use crate::inference::Options;
use crate::progress::Display;
use crate::sheet::{Sheet, Status, yaml};

pub fn run(arguments: &Characterize, catalog: &Catalog) -> Result<Outcome, Failure> {
    let device = open::open(&arguments.device.device, arguments.device.timeout, catalog)?;
    let device = open::recorded(device, &arguments.record)?;
    let instructions = select(&device, arguments.instruction.as_deref())?;
    let options = Options { validate: arguments.validate, seed: arguments.seed };
    let display = Display::new();
    let result = characterize(device.as_ref(), &instructions, &options, arguments.date.clone(), &display)
        .and_then(|sheet| match device.finish() {
            Ok(()) => Ok(sheet),
            Err(error) => Err(Unfinished { sheet: Box::new(sheet), error }),
        });
    display.clear();
    match result {
        Ok(sheet) => {
            print(&yaml::write(&sheet))?;
            let failed = summarize(&sheet, arguments.strict);
            Ok(if failed { Outcome::Failed } else { Outcome::Held })
        }
        Err(Unfinished { sheet, error }) => {
            keep(&sheet, arguments)?;
            Err(error.into())
        }
    }
}

/// What a device that failed had answered before is not lost.
fn keep(sheet: &Sheet, arguments: &Characterize) -> Result<(), Failure> {
    if let Some(path) = &arguments.record.record {
        eprintln!("mmaprobe: the answers so far are in {}", path.display());
    }
    if !sheet.instructions.is_empty() {
        print(&yaml::write(sheet))?;
        let count = sheet.instructions.len();
        eprintln!(
            "mmaprobe: the sheet on stdout holds the {count} instructions finished before the device failed"
        );
    }
    Ok(())
}

/// One line for each instruction on stderr. Returns whether a claim failed.
fn summarize(sheet: &Sheet, strict: bool) -> bool {
    let mut failed = false;
    for entry in &sheet.instructions {
        let validated = entry.validation.as_ref().map_or(String::new(), |validation| {
            format!(", {} dot-adds validated, {} mismatches", validation.dot_adds, validation.mismatches)
        });
        let cost = entry
            .cost
            .as_ref()
            .map_or(String::new(), |cost| format!(", {} questions in {} rounds", cost.dot_adds, cost.rounds));
        eprintln!("{}: {}{validated}{cost}", entry.name, entry.status);
        failed |= match entry.status {
            Status::Characterized | Status::ModeWithoutEffect | Status::Published => {
                strict && !entry.ambiguous.is_empty()
            }
            Status::Ambiguous => strict,
            Status::Refuted | Status::Unexplained | Status::NotDeterministic | Status::NotUniform => true,
        };
    }
    failed
}
