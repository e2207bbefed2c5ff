//! Models as constants: what [`tree`] holds in vectors, in borrowed slices.
//!
//! A [`Model`](crate::Model) owns its tree, so it cannot stand in a `const`. [`Model`] can, and is
//! laid out to be read: the sums in the order in which they are computed, runs of products as
//! ranges. Generated model crates write each instruction down in this form.
//!
//! # Example: a fused sum of four products and c, as a constant
//!
//! ```
//! use mmaprobe_model::constant::{Added, Model, Rule, Step, Summand};
//! use mmaprobe_model::format::{FP16, FP32, RoundTo};
//! use mmaprobe_model::tree::{
//!     Alignment, Exponents, NanRule, Normalised, Operand, Product, ZeroSigns, ZeroTerms,
//! };
//! use mmaprobe_model::{Executor, Rounding};
//!
//! const FDA: Model = Model {
//!     k: 4,
//!     a: Operand::plain(FP16),
//!     b: Operand::plain(FP16),
//!     c: Operand::plain(FP32),
//!     scale: None,
//!     product: Product::Exact,
//!     rules: &[Rule {
//!         added: Added::Fused {
//!             alignment: &[Alignment { fraction_bits: 25, rounding: Rounding::TowardZero, far: None }],
//!             exponents: Exponents::Raw,
//!             floor: None,
//!             zeros: ZeroTerms::SumsCounted,
//!             carry: None,
//!             sticky: false,
//!         },
//!         zero: ZeroSigns::IEEE,
//!         infinite_operands_first: false,
//!         normalised: Normalised::To(RoundTo::nearest_even(FP32)),
//!     }],
//!     steps: &[Step {
//!         rule: 0,
//!         summands: &[Summand::Products { first: 0, last: 3, stride: 1 }, Summand::Accumulator],
//!     }],
//!     d: FP32,
//!     nan: NanRule::Canonical(0x7fff_ffff),
//! };
//!
//! let model = FDA.to_model();
//! let one = 0x3c00;
//! let d = Executor::new(&model)?.dot_add(&[one; 4], &[one; 4], 0, &[], &[]);
//! assert_eq!(f32::from_bits(d as u32), 4.0);
//! # Ok::<(), mmaprobe_model::tree::ModelError>(())
//! ```

use alloc::vec::Vec;

use crate::format::Format;
use crate::tree::{
    self, Alignment, Carry, Exponents, Fused, NanRule, Node, NodeId, Normalised, Operand, Product, Scale,
    Tree, ZeroSigns, ZeroTerms,
};

/// What an instruction computes: a [`tree::Model`] as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Number of products, K.
    pub k: usize,
    /// How elements of A are read.
    pub a: Operand,
    /// How elements of B are read.
    pub b: Operand,
    /// How elements of C are read.
    pub c: Operand,
    /// Block scales, if the instruction has them.
    pub scale: Option<Scale>,
    /// How products are formed.
    pub product: Product,
    /// The rules that steps refer to.
    pub rules: &'static [Rule],
    /// The sums, in the order in which they are computed; the last one is d.
    pub steps: &'static [Step],
    /// Format of the result.
    pub d: Format,
    /// What a NaN result looks like.
    pub nan: NanRule,
}

/// A [`tree::Rule`] as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The addition.
    pub added: Added,
    /// The sign of a zero result.
    pub zero: ZeroSigns,
    /// Whether infinite operands decide before products are formed.
    pub infinite_operands_first: bool,
    /// The normalisation.
    pub normalised: Normalised,
}

/// A [`tree::Added`] as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The infinitely precise sum.
    Exact,
    /// Aligned to the largest exponent, with a limited number of fraction bits; see [`Fused`].
    Fused {
        /// How each summand is aligned; the last entry holds for all further ones.
        alignment: &'static [Alignment],
        /// Whether exponents are taken raw or normalised.
        exponents: Exponents,
        /// The least that the largest exponent can be.
        floor: Option<i32>,
        /// Which zeros take part in the largest exponent.
        zeros: ZeroTerms,
        /// The width of the sum's integer part, where it is limited.
        carry: Option<Carry>,
        /// Whether one sticky bit says that a summand lost something.
        sticky: bool,
    },
}

/// A sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// How it is added: an index into [`Model::rules`].
    pub rule: usize,
    /// What is added, in order.
    pub summands: &'static [Summand],
}

/// What a [`Step`] adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summand {
    /// The product a_k·b_k.
    Product(usize),
    /// The products of these indices, both ends included.
    Products {
        /// The first index.
        first: usize,
        /// The last index.
        last: usize,
        /// The difference between neighbours.
        stride: usize,
    },
    /// The accumulator's initial value c.
    Accumulator,
    /// A positive zero.
    Zero,
    /// The value of an earlier step, by index.
    Step(usize),
    /// A summand times both scales of a block.
    Scaled {
        /// The summand; of a range, each of its products.
        summand: &'static Summand,
        /// Index of the block along K.
        block: usize,
    },
}

impl Model {
    /// The same model in vectors, in [canonical](tree::Model::canonical) order.
    ///
    /// # Panics
    /// If the steps are no tree, or refer to a rule or step that does not exist.
    pub fn to_model(&self) -> tree::Model {
        let mut nodes = Vec::new();
        let mut sums: Vec<NodeId> = Vec::with_capacity(self.steps.len());
        for step in self.steps {
            let mut children = Vec::new();
            for summand in step.summands {
                summand.push(&mut nodes, &sums, &mut children);
            }
            nodes.push(Node::Sum { children, rule: step.rule });
            sums.push(nodes.len() - 1);
        }
        let &Model { k, a, b, c, scale, product, d, nan, .. } = self;
        let rules = self.rules.iter().map(Rule::rule).collect();
        tree::Model { k, a, b, c, scale, product, tree: Tree { nodes: nodes.into(), rules }, d, nan }
            .canonical()
    }
}

impl Summand {
    /// Appends the nodes of a summand, and its own to `children`.
    fn push(&self, nodes: &mut Vec<Node>, sums: &[NodeId], children: &mut Vec<NodeId>) {
        let leaf = match *self {
            Summand::Product(k) => Node::Product(k),
            Summand::Accumulator => Node::Accumulator,
            Summand::Zero => Node::Zero,
            Summand::Products { first, last, stride } => {
                for k in (first..=last).step_by(stride) {
                    children.push(nodes.len());
                    nodes.push(Node::Product(k));
                }
                return;
            }
            Summand::Step(step) => {
                children.push(sums[step]);
                return;
            }
            Summand::Scaled { summand, block } => {
                let mut inner = Vec::new();
                summand.push(nodes, sums, &mut inner);
                for child in inner {
                    children.push(nodes.len());
                    nodes.push(Node::Scaled { child, block });
                }
                return;
            }
        };
        children.push(nodes.len());
        nodes.push(leaf);
    }
}

impl Rule {
    /// The same rule in vectors.
    fn rule(&self) -> tree::Rule {
        let &Rule { added, zero, infinite_operands_first, normalised } = self;
        let added = match added {
            Added::Exact => tree::Added::Exact,
            Added::Fused { alignment, exponents, floor, zeros, carry, sticky } => {
                let alignment = alignment.to_vec();
                tree::Added::Fused(Fused {
                    alignment: alignment.into(),
                    exponents,
                    floor,
                    zeros,
                    carry,
                    sticky,
                })
            }
        };
        tree::Rule { added, zero, infinite_operands_first, normalised }
    }
}
