//! Two devices, and the instructions that they have in common.

use super::{Failure, open, select};
use crate::catalog::Catalog;
use crate::cli::TwoDevices;
use crate::device::{Device, Instruction};
use crate::diff::{Matched, matched};

/// Two devices.
pub struct Opened {
    /// What they are called.
    pub names: [String; 2],
    /// The devices.
    pub devices: [Box<dyn Device>; 2],
    /// Their instructions.
    pub matched: Matched,
}

/// Opens both devices and matches the instructions that the arguments name, all without a name.
///
/// # Errors
/// If a device cannot be opened, neither has any of them, or the glob is no pattern.
pub fn opened(arguments: &TwoDevices, catalog: &Catalog) -> Result<Opened, Failure> {
    let names = [open::device_name(&arguments.first), open::device_name(&arguments.second)];
    let first = open::open(&names[0], arguments.timeout, catalog)?;
    let second = open::open(&names[1], arguments.timeout, catalog)?;
    let glob = arguments.instruction.as_deref();
    let (one, other) = selected(first.as_ref(), second.as_ref(), glob)?;
    // A glob names what is to be compared, and a device may take more than it lists.
    let of_second = |name: &str| glob.and_then(|_| second.instruction(name).ok());
    let matched = matched(one, other, &of_second);
    Ok(Opened { names, devices: [first, second], matched })
}

/// The instructions of both that a glob names. What matches on one side alone is the other's lack.
fn selected(
    first: &dyn Device,
    second: &dyn Device,
    glob: Option<&str>,
) -> Result<(Vec<Instruction>, Vec<Instruction>), Failure> {
    match (select(first, glob), select(second, glob)) {
        (Err(error), Err(_)) => Err(error),
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(error), _) | (_, Err(error)) if glob.is_none() => Err(error),
        (one, other) => Ok((one.unwrap_or_default(), other.unwrap_or_default())),
    }
}
