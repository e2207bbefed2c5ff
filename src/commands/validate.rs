//! `mmaprobe validate`.

use super::open;
use super::{Failure, Outcome, print, select, width};
use crate::characterize::Named;
use crate::cli::Validate;
use crate::device::Device;
use crate::probes::random::Distribution;
use crate::progress::Display;
use crate::table;
use crate::validation::{Nans, Plan, ValidationError, validate};

pub fn run(arguments: &Validate) -> Result<Outcome, Failure> {
    if arguments.sets == 0 {
        return Err(Failure::Usage("--sets 0 compares nothing; ask for at least 1".to_string()));
    }
    let against_name = arguments.against.as_deref().ok_or_else(|| {
        Failure::Usage("--against names the device to compare with; or use --vectors".to_string())
    })?;
    let device = open::open(&arguments.device.device, arguments.device.timeout)?;
    let device = open::recorded(device, &arguments.record)?;
    let against = open::open(against_name, arguments.device.timeout)?;
    let mut pairs = Vec::new();
    let mut missing = Vec::new();
    for instruction in select(device.instructions(), arguments.instruction.as_deref())? {
        match against.instructions().iter().find(|other| other.name == instruction.name) {
            Some(other) => pairs.push((instruction, other.clone())),
            None => missing.push(instruction.name),
        }
    }
    if pairs.is_empty() {
        return Err(Failure::Usage(format!(
            "{} has none of the instructions of {}: {}",
            against_name,
            arguments.device.device,
            missing.join(", ")
        )));
    }
    let display = Display::new();
    let mut rows = Vec::new();
    let mut details = String::new();
    for (instruction, other) in &pairs {
        let elements = (instruction.m * instruction.n) as u64;
        let nans_mean_bits = device.means_nan_bits(instruction) && against.means_nan_bits(other);
        let nans = if arguments.any_nan || !nans_mean_bits { Nans::AsOne } else { Nans::Bits };
        let distributions = Distribution::ALL.to_vec();
        let plan = Plan { sets: arguments.sets, seed: arguments.seed, distributions, nans };
        let progress = display.named(&instruction.name);
        progress.step("comparing", Some(plan.sets * elements));
        let advance = |sets: u64| progress.advance(sets * elements);
        let outcome = match validate(device.as_ref(), instruction, against.as_ref(), other, &plan, &advance) {
            Ok(outcome) => outcome,
            Err(ValidationError::Device(error)) => return Err(error.into()),
            Err(error) => return Err(Failure::Usage(error.to_string())),
        };
        let verdict = match (&outcome.mismatch, nans) {
            (Some(_), _) => "MISMATCH",
            (None, Nans::Bits) => "equal",
            (None, Nans::AsOne) => "equal, any NaN for any other",
        };
        rows.push([
            instruction.name.clone(),
            outcome.sets.to_string(),
            outcome.dot_adds.to_string(),
            verdict.to_string(),
        ]);
        if let Some(mismatch) = &outcome.mismatch {
            details.push_str(&format!(
                "\n{}: {} and {} differ\n{}",
                instruction.name,
                arguments.device.device,
                against_name,
                mismatch.describe(&instruction.signature(), (&arguments.device.device, against_name))
            ));
        }
    }
    display.clear();
    device.finish()?;
    against.finish()?;
    let failed = !details.is_empty();
    print(&(table::plain(["instruction", "matrix sets", "dot-adds", "result"], &rows, width()) + &details))?;
    for name in missing {
        eprintln!("mmaprobe: not compared: {against_name} has no {name}");
    }
    Ok(if failed { Outcome::Failed } else { Outcome::Held })
}
