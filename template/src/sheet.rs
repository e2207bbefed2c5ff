//! The parameter sheets that the instructions are from.

use crate::instruction::Instruction;
use crate::sheets::SHEETS;

/// A parameter sheet.
#[derive(Clone, Copy, Debug)]
pub struct Sheet {
    /// Its name in this crate.
    pub name: &'static str,
    /// What it is about: the device or architecture.
    pub device: &'static str,
    /// Where its statements come from: `measured`, `recorded`, `simulated` or `published`.
    pub provenance: &'static str,
    /// Its instructions, in its order.
    pub instructions: &'static [Instruction],
    /// The names of its instructions that are not in this crate, and why not.
    pub left_out: &'static [(&'static str, &'static str)],
}

/// Every sheet in this crate.
pub fn sheets() -> &'static [Sheet] {
    SHEETS
}

impl Instruction {
    /// Every instruction in this crate, sheet by sheet.
    pub fn all() -> impl Iterator<Item = Instruction> {
        SHEETS.iter().flat_map(|sheet| sheet.instructions.iter().copied())
    }

    /// The instruction of this name. Where several sheets have one, `None`: write `SHEET/NAME`.
    pub fn named(name: &str) -> Option<Instruction> {
        let mut found = Instruction::all().filter(|instruction| instruction.name() == name);
        match (found.next(), found.next()) {
            (Some(instruction), None) => Some(instruction),
            (None, _) => Instruction::all().find(|own| {
                let behind = name.strip_prefix(own.sheet()).and_then(|rest| rest.strip_prefix('/'));
                behind == Some(own.name())
            }),
            _ => None,
        }
    }
}
