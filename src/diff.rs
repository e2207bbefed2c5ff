//! What two devices compute differently: in which parameters, and on which inputs.
//!
//! Instructions are compared in pairs: of the same name, or else of the same shape and formats. Where both
//! sides execute sum trees, the trees say what differs, and an input is searched for that shows each
//! difference by itself: one on which the first tree, with the second's choice of that alone, gives another
//! result, and on which the devices differ too. Where a side is a device and nothing else, crafted and
//! random inputs have to do. Inputs that are found are shrunk.

pub mod aspects;
pub mod inputs;
pub mod search;
pub mod text;

use crate::device::trees::Trees;
use crate::device::{Device, Instruction};
use crate::validation::check_comparable;

pub use search::{Comparison, Example, Plan, Shown, compare};

/// One side: a device, and the trees behind it if there are any.
pub struct Side<'d> {
    /// What was given on the command line.
    pub name: &'d str,
    /// The device.
    pub device: &'d dyn Device,
    /// What it executes.
    pub trees: Option<&'d Trees>,
}

/// Instructions of two devices, matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// The same instruction of both.
    pub pairs: Vec<(Instruction, Instruction)>,
    /// Names of instructions of the same name that take or give other things, and what.
    pub unlike: Vec<(String, String)>,
    /// Instructions that the second device lacks.
    pub only_first: Vec<Instruction>,
    /// Instructions that the first device lacks.
    pub only_second: Vec<Instruction>,
}

/// Matches instructions by name, and what is left by shape, formats and block scales, in order.
pub fn matched(
    first: Vec<Instruction>,
    second: Vec<Instruction>,
    of_second: &dyn Fn(&str) -> Option<Instruction>,
) -> Matched {
    let mut matched = Matched::default();
    let mut left = second;
    let mut rest = Vec::new();
    for own in first {
        let position = left.iter().position(|other| other.name == own.name);
        // A device may take more shapes than it lists.
        let other = position.map(|position| left.remove(position)).or_else(|| of_second(&own.name));
        match other {
            None => rest.push(own),
            Some(other) => match check_comparable(&own, &other) {
                Ok(()) => matched.pairs.push((own, other)),
                Err(error) => matched.unlike.push((own.name, error.to_string())),
            },
        }
    }
    for own in rest {
        match left.iter().position(|other| check_comparable(&own, other).is_ok()) {
            Some(position) => matched.pairs.push((own, left.remove(position))),
            None => matched.only_first.push(own),
        }
    }
    matched.only_second = left;
    matched
}
