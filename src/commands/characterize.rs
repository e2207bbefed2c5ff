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
    let instructions = select(device.as_ref(), arguments.instruction.as_deref())?;
    let device = open::recorded(device, &[&arguments.device.device], &arguments.record)?;
    let options = Options { validate: arguments.thoroughness.validate, seed: arguments.thoroughness.seed };
    let display = Display::new();
    let result =
        characterize(device.as_ref(), &instructions, &options, arguments.thoroughness.date.clone(), &display)
            .and_then(|sheet| match device.finish() {
                Ok(()) => Ok(sheet),
                Err(error) => Err(Unfinished { sheet: Box::new(sheet), error }),
            });
    display.clear();
    match result {
        Ok(sheet) => {
            // First: it stands even if the sheet cannot be written.
            let failed = summarize(&sheet, arguments.strict);
            print(&yaml::write(&sheet))?;
            Ok(if failed { Outcome::Failed } else { Outcome::Held })
        }
        Err(Unfinished { sheet, error }) => {
            keep(&sheet, arguments);
            Err(error.into())
        }
    }
}

/// What a device that failed had answered before is not lost.
fn keep(sheet: &Sheet, arguments: &Characterize) {
    if let Some(path) = &arguments.record.record {
        eprintln!("mmaprobe: the answers so far are in {}", path.display());
    }
    if !sheet.instructions.is_empty() {
        let finished = counted(sheet.instructions.len() as u64, "instruction");
        match print(&yaml::write(sheet)) {
            Ok(()) => {
                eprintln!(
                    "mmaprobe: the sheet on stdout holds the {finished} finished before the device failed"
                );
            }
            // The device's failure is the one to end with.
            Err(failure) if failure.is_closed_pipe() => {}
            Err(failure) => eprintln!("mmaprobe: {failure}"),
        }
    }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// One line for each instruction on stderr. Returns whether a claim failed.
pub fn summarize(sheet: &Sheet, strict: bool) -> bool {
    let mut failed = false;
    for entry in &sheet.instructions {
        let validated = entry.validation.as_ref().map_or(String::new(), |validation| {
            format!(", {} dot-adds validated, {} mismatches", validation.dot_adds, validation.mismatches)
        });
        let cost = entry.cost.as_ref().map_or(String::new(), |cost| {
            format!(", {} in {}", counted(cost.dot_adds, "question"), counted(cost.rounds, "round"))
        });
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
