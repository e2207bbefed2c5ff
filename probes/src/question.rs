//! Questions: one output element's operands, and the shape they have to fit.

use mmaprobe_model::Format;
use mmaprobe_model::tree::Scale;

/// What an instruction takes for one output element: K and the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Number of products, K.
    pub k: usize,
    /// Declared format of A's elements.
    pub a: Format,
    /// Declared format of B's elements.
    pub b: Format,
    /// Declared format of C's elements.
    pub c: Format,
    /// Declared format of D's elements.
    pub d: Format,
    /// Declared block scales, if any.
    pub scale: Option<Scale>,
}

impl Signature {
    /// Number of scales that each of A's rows and B's columns has: K / block, or 0 without scales.
    pub fn scales(&self) -> usize {
        self.scale.map_or(0, |scale| self.k / scale.block)
    }
}

/// One question: the operands of d = f(c, a, b), as bit patterns in the low bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DotAdd {
    /// K elements of a row of A.
    pub a: Vec<u64>,
    /// K elements of a column of B.
    pub b: Vec<u64>,
    /// The element of C.
    pub c: u64,
    /// K / block scales of the row of A; empty without scales.
    pub sa: Vec<u64>,
    /// K / block scales of the column of B; empty without scales.
    pub sb: Vec<u64>,
}
