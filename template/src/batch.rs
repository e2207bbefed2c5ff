//! Problems in bytes.

use crate::compiled::Problems;
use crate::instruction::Instruction;

/// Problems for one instruction, laid out as the device protocol has them; see
/// [`Prepared::execute_bytes`](crate::instruction::Prepared::execute_bytes).
#[derive(Clone, Copy, Debug)]
pub struct Batch<'b> {
    /// Number of problems.
    pub count: usize,
    /// A of all problems, row by row.
    pub a: &'b [u8],
    /// B of all problems, column by column.
    pub b: &'b [u8],
    /// C of all problems, row by row.
    pub c: &'b [u8],
    /// Scales of A of all problems; empty without scales.
    pub sa: &'b [u8],
    /// Scales of B of all problems; empty without scales.
    pub sb: &'b [u8],
}

impl<'b> Batch<'b> {
    /// The same problems with the instruction's shape.
    pub(crate) fn problems(&self, instruction: &Instruction) -> Problems<'b> {
        let Batch { count, a, b, c, sa, sb } = *self;
        Problems { count, m: instruction.m(), n: instruction.n(), a, b, c, sa, sb }
    }
}
