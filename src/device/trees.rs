//! The sum trees behind a virtual device, for whoever may look at them: what explains an answer step by
//! step, or searches where two models differ. Inference may not, and sees a [device](super::Device).

use mmaprobe_model::Model;

use crate::device::Instruction;
use crate::device::sim::Sim;
use crate::device::simulated::Simulated;

/// The trees of a virtual device.
#[derive(Clone, Debug)]
pub enum Trees {
    /// Those of an architecture's sheet.
    Sim(Box<Sim>),
    /// Those of a sheet.
    Sheet(Simulated),
}

impl Trees {
    /// The model of an instruction, if there is one.
    pub fn model(&self, instruction: &Instruction) -> Option<&Model> {
        match self {
            Trees::Sim(sim) => sim.model(instruction),
            Trees::Sheet(sheet) => sheet.model(&instruction.name),
        }
    }
}
