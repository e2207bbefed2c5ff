//! Which element each register of a Matrix Core instruction holds, put down shape by shape and in the
//! direction in which AMD prints it: from a lane and a place in its registers to the element.
//!
//! Sources: "Register to matrix element mapping" of AMD's matrix instruction calculator (CDNA1 to CDNA3;
//! where it was not seen printed for a shape, its formula for the like shape); for the
//! scaled instructions the tables in `test/mx_mfma_op` of AMD's Composable Kernel.

/// An operand: what the two factors have in common, the accumulators, or scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A by (row, k), or B by (column, k).
    Factor,
    /// C or D by (row, column).
    Accumulator,
    /// Scales by (row or column, block along K).
    Scales,
}

/// An instruction, as far as its layouts depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Rows and columns.
    pub m: usize,
    /// Problems at once.
    pub blocks: usize,
    /// Elements of a factor that each lane holds.
    pub each: usize,
    /// Whether everything is fp64.
    pub double: bool,
    /// Whether the factor is of 8 bits, in an instruction with scales.
    pub scaled_bytes: bool,
    /// Products of an element.
    pub k: usize,
}

/// The block, and the two indices, of what is element `e` of a lane, counted from its lowest bit on.
///
/// # Panics
/// If there is no such instruction.
pub fn element(shape: Shape, operand: Operand, lane: usize, e: usize) -> [usize; 3] {
    let Shape { m, blocks, each, double, scaled_bytes, k } = shape;
    match (operand, m, blocks, double) {
        (Operand::Factor, 32 | 16, 1, _) if scaled_bytes => {
            let first_half = e < 16;
            let k = if first_half { 16 * (lane / m) + e } else { k / 2 + 16 * (lane / m) + e - 16 };
            [0, lane % m, k]
        }
        (Operand::Factor, 32, 1, false) => [0, lane % 32, each * (lane / 32) + e],
        (Operand::Factor, 32, 2, false) => [lane / 32, lane % 32, e],
        (Operand::Factor, 16, 1, _) => [0, lane % 16, each * (lane / 16) + e],
        (Operand::Factor, 16, 4, false) => [lane / 16, lane % 16, e],
        (Operand::Factor, 4, 16, false) => [lane / 4, lane % 4, e],
        (Operand::Factor, 4, 4, true) => [lane / 4 % 4, lane % 4, lane / 16 + e],
        (Operand::Accumulator, 32, _, false) => {
            [e / 16, 8 * (e / 4) % 32 + 4 * (lane / 32) + e % 4, lane % 32]
        }
        (Operand::Accumulator, 16, _, false) => [e / 4, 4 * (lane / 16) + e % 4, lane % 16],
        (Operand::Accumulator, 4, 16, false) => [lane / 4, e, lane % 4],
        (Operand::Accumulator, 16, 1, true) => [0, 4 * e + lane / 16, lane % 16],
        (Operand::Accumulator, 4, 4, true) => [lane / 4 % 4, lane / 16, lane % 4],
        (Operand::Scales, 32 | 16, 1, false) if e == 0 => [0, lane % m, lane / m],
        _ => panic!("no such instruction: {shape:?}, {operand:?}"),
    }
}
