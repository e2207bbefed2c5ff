//! Executing a model on whole problems, in bytes.

use alloc::vec::Vec;

use crate::Executor;
use crate::format::Format;
use crate::instruction::Instruction;
use crate::tree::Model;

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

/// One element of D. The lengths have been checked.
pub(crate) fn dot_add(model: &Model, a: &[u64], b: &[u64], c: u64, sa: &[u64], sb: &[u64]) -> u64 {
    executor(model).dot_add(a, b, c, sa, sb)
}

/// Computes every element of every problem. The lengths have been checked.
pub(crate) fn run(instruction: &Instruction, model: &Model, batch: &Batch<'_>, d: &mut [u8]) {
    let (m, n, k, scales) = (instruction.m(), instruction.n(), instruction.k(), instruction.scales());
    let scale = instruction.scale().map_or(instruction.a(), |scale| &scale.format);
    let mut executor = executor(model);
    let mut results = d.chunks_exact_mut(instruction.d().bytes);
    for problem in 0..batch.count {
        // Every row meets every column: unpack each once.
        let rows = unpack(batch.a, instruction.a(), problem, m * k);
        let columns = unpack(batch.b, instruction.b(), problem, n * k);
        let addends = unpack(batch.c, instruction.c(), problem, m * n);
        let row_scales = unpack(batch.sa, scale, problem, m * scales);
        let column_scales = unpack(batch.sb, scale, problem, n * scales);
        for (index, (&c, result)) in addends.iter().zip(&mut results).enumerate() {
            let (row, column) = (index / n, index % n);
            let bits = executor.dot_add(
                &rows[row * k..][..k],
                &columns[column * k..][..k],
                c,
                &row_scales[row * scales..][..scales],
                &column_scales[column * scales..][..scales],
            );
            result.copy_from_slice(&bits.to_le_bytes()[..result.len()]);
        }
    }
}

fn executor(model: &Model) -> Executor<'_> {
    Executor::new(model).expect("the tool checked the model before it wrote it down")
}

/// The `each` elements of one problem.
fn unpack(array: &[u8], format: &Format, problem: usize, each: usize) -> Vec<u64> {
    let bytes = &array[problem * each * format.bytes..][..each * format.bytes];
    let element = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
    bytes.chunks_exact(format.bytes).map(element).collect()
}
