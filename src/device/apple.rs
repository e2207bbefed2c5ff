//! Instructions of Apple's matrix unit, executed on the unit as a machine: operands go into its registers,
//! one instruction is executed, and the result is read out of Z.
//!
//! What the [sheet](crate::catalog::published) of the architecture says is another way to the same
//! answers, by sum trees; the tests hold the two against each other.

use mmaprobe_apple::form::Problems;
use mmaprobe_apple::{Form, Unit};

use crate::catalog::Architecture;
use crate::device::{Batch, Instruction};

/// What the catalogue calls the kind of kernel that runs them.
pub const KERNEL: &str = "apple";

/// The unit's form of an instruction, if an architecture's catalogue file says that the unit executes it
/// and the two mean the same by its name.
pub fn form(architecture: &Architecture, instruction: &Instruction) -> Option<&'static Form> {
    let form = Form::named(&instruction.name)?;
    let is_meant = architecture.families.iter().any(|family| {
        family.kernel == KERNEL && matches!(family.named(form.name), Some(Ok(own)) if own == *instruction)
    });
    let (size, widths) = (form.size(), form.widths());
    let formats = [widths.y, widths.x, widths.z, widths.z];
    let Instruction { m, n, k, a, b, c, d, .. } = *instruction;
    (is_meant && [m, n, k] == [size, size, 1] && [a, b, c, d] == formats).then_some(form)
}

/// Computes D for a batch that [fits](Batch::fits) the form's instruction, on a unit switched on for it.
pub fn run(form: &Form, batch: &Batch) -> Vec<u8> {
    let mut d = vec![0; batch.c.len()];
    let Batch { count, a, b, c, .. } = batch;
    form.run(&mut Unit::new(), Problems { count: *count, a, b, c, d: &mut d });
    d
}
