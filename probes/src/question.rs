//! Questions: one output element's operands, the shape they have to fit, and what they are for.

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

    /// Every summand: the K products, then c.
    pub fn summands(&self) -> impl DoubleEndedIterator<Item = Summand> + Clone + use<> {
        let k = self.k;
        (0..=k).map(move |index| Summand::from_index(index, k))
    }
}

/// One of the K + 1 summands p₀ … p₍K₋₁₎, c (MMA-Sim paper, equation 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Summand {
    /// The product a_k·b_k.
    Product(usize),
    /// The accumulator's initial value.
    C,
}

impl Summand {
    /// The summand of this index: products from 0, c has index K.
    pub fn from_index(index: usize, k: usize) -> Summand {
        if index == k { Summand::C } else { Summand::Product(index) }
    }

    /// Its index: products from 0, c has index K.
    pub fn index(self, k: usize) -> usize {
        match self {
            Summand::Product(index) => index,
            Summand::C => k,
        }
    }
}

impl std::fmt::Display for Summand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Summand::Product(index) => write!(f, "p{index}"),
            Summand::C => f.write_str("c"),
        }
    }
}

/// One question: the operands of d = f(c, a, b), as bit patterns in the low bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

/// Crafted inputs that belong together: a question of numerical analysis put to the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// A short name, kind first: `rounding/tables`.
    pub name: &'static str,
    /// The question in words.
    pub question: &'static str,
    /// Where it comes from: paper and section.
    pub source: &'static str,
    /// The inputs.
    pub dot_adds: Vec<DotAdd>,
}
