//! What a kernel has to know of an instruction, whoever made it.

use mmaprobe_model::Format;
use mmaprobe_model::tree::Scale;

/// An instruction, as the catalogue describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec<K> {
    /// The kind of kernel.
    pub kind: K,
    /// Rows of A and of D.
    pub m: usize,
    /// Columns of B and of D.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Format of A's elements.
    pub a: Format,
    /// Format of B's elements.
    pub b: Format,
    /// Format of C's elements.
    pub c: Format,
    /// Format of D's elements.
    pub d: Format,
    /// Block scales along K.
    pub scale: Option<Scale>,
    /// Independent problems that one execution computes.
    pub blocks: usize,
}

/// No kernel here runs that instruction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no kernel runs {what}: {why}")]
pub struct Unsupported {
    /// The instruction.
    pub what: String,
    /// What stands against it.
    pub why: String,
}

impl<K> Spec<K> {
    /// A refusal of this instruction.
    pub fn unsupported(&self, why: impl Into<String>) -> Unsupported {
        let Spec { m, n, k, a, b, c, d, .. } = self;
        Unsupported { what: format!("m{m}n{n}k{k} of {a}·{b} + {c} → {d}"), why: why.into() }
    }
}
