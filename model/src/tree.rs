//! The sum tree: what a matrix instruction computes, as data.
//!
//! A [`Model`] is the whole of an instruction's arithmetic for one output element: how operands are
//! read, how products are formed, the [`Tree`] in which products and c are added, and what a NaN
//! looks like. [`Executor`](crate::Executor) runs it.

use alloc::vec;
use alloc::vec::Vec;

use crate::format::{Format, RoundTo};
use crate::rounding::Rounding;
use crate::shared::Shared;

/// What an instruction computes: d = f(c, a, b), bit for bit.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// How products and c are added.
    pub tree: Tree,
    /// Format of the result; the root of the tree rounds to it.
    pub d: Format,
    /// What a NaN result looks like.
    pub nan: NanRule,
}

/// How the elements of an operand are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The format as which the bits are read. It differs from the declared format where hardware
    /// does: a tf32 operand whose low bits count is read as fp32.
    pub format: Format,
    /// What becomes of subnormal elements.
    pub subnormals: InputSubnormals,
    /// What becomes of infinite elements, in formats that have them.
    pub infinities: InputInfinities,
}

impl Operand {
    /// An operand that is read as it is.
    pub const fn plain(format: Format) -> Operand {
        Operand { format, subnormals: InputSubnormals::Kept, infinities: InputInfinities::Kept }
    }
}

/// What becomes of subnormal elements of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputSubnormals {
    /// They are numbers like all others.
    Kept,
    /// They become +0 (CDNA2; MMA-Sim paper, section IV.B, step 1).
    FlushedToPositiveZero,
    /// They become a zero of their sign (x86 "denormals are zero"; Intel SDM, volume 1, 10.2.3.4).
    FlushedToSignedZero,
}

/// What becomes of infinite elements of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputInfinities {
    /// They are infinities.
    Kept,
    /// They become the quiet NaN of their sign with an empty payload.
    Nan,
    /// They become the largest finite number of their sign.
    Largest,
}

/// The block scales of A and B: one factor for each `block` consecutive elements along K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Format of the scales.
    pub format: Format,
    /// Elements that share a scale.
    pub block: usize,
}

/// How a product a·b is formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// Exactly; its nominal exponent is the sum of the factors' raw exponents.
    Exact,
    /// Rounded to a format (CDNA2 rounds to fp32 and flushes).
    Rounded(RoundTo),
    /// Exactly, but a magnitude of 2^`exponent` or more becomes infinity (CDNA3, 128; MMA-Sim paper,
    /// section IV.F, step 2).
    OverflowsAt {
        /// The power of two that is too large.
        exponent: i32,
    },
    /// Exactly, but a magnitude below 2^`exponent` becomes a zero; its nominal exponent stays what it was.
    FlushedBelow {
        /// The power of two that is not too small.
        exponent: i32,
        /// Whether the zero keeps the sign of what was flushed; otherwise it is +0.
        sign_kept: bool,
    },
}

/// Index of a node in [`Tree::nodes`].
pub type NodeId = usize;

/// Index of a rule in [`Tree::rules`].
pub type RuleId = usize;

/// Products and c at the leaves, sums at the inner nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The nodes; children stand before their parents, and the root is last.
    pub nodes: Shared<Node>,
    /// The rules that sums refer to.
    pub rules: Vec<Rule>,
}

impl Tree {
    /// Whether another tree adds the same summands in the same order, whatever rules its sums follow.
    pub fn adds_the_same(&self, other: &Tree) -> bool {
        let is_same = |(one, another): (&Node, &Node)| match (one, another) {
            (Node::Sum { children: one, .. }, Node::Sum { children: another, .. }) => one == another,
            _ => one == another,
        };
        let is_each_same = || self.nodes.iter().zip(&other.nodes).all(is_same);
        self.nodes.is_shared_with(&other.nodes) || self.nodes.len() == other.nodes.len() && is_each_same()
    }

    /// Whether another tree adds the same summands in each sum, whatever the order of nodes and of a sum's summands, and
    /// whatever rules its sums follow.
    pub fn has_the_same_sums(&self, other: &Tree) -> bool {
        self.nodes.len() == other.nodes.len() && self.sorted() == other.sorted()
    }

    /// The nodes from the root down, with the summands of each sum in an order that depends on nothing but them.
    fn sorted(&self) -> Vec<u64> {
        let mut below: Vec<Vec<u64>> = Vec::with_capacity(self.nodes.len());
        for node in self.nodes.iter() {
            let kind = match node {
                Node::Accumulator => 0,
                Node::Zero => 1,
                Node::Sum { children, .. } => 2 + 3 * children.len() as u64,
                Node::Scaled { block, .. } => 3 + 3 * *block as u64,
                Node::Product(k) => 4 + 3 * *k as u64,
            };
            let mut inside: Vec<Vec<u64>> =
                node.children().iter().map(|&child| core::mem::take(&mut below[child])).collect();
            inside.sort_unstable();
            below.push(core::iter::once(kind).chain(inside.into_iter().flatten()).collect());
        }
        below.pop().unwrap_or_default()
    }
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// The product a_k·b_k.
    Product(usize),
    /// The accumulator's initial value c.
    Accumulator,
    /// A positive zero: where a chain starts when it does not start from c.
    Zero,
    /// A child's value times the two scales of a block.
    Scaled {
        /// The child.
        child: NodeId,
        /// Index of the block along K.
        block: usize,
    },
    /// A sum.
    Sum {
        /// The summands, in order.
        children: Vec<NodeId>,
        /// How they are added.
        rule: RuleId,
    },
}

impl Node {
    /// The children, in order.
    pub fn children(&self) -> &[NodeId] {
        match self {
            Node::Sum { children, .. } => children,
            Node::Scaled { child, .. } => core::slice::from_ref(child),
            Node::Product(_) | Node::Accumulator | Node::Zero => &[],
        }
    }
}

/// How a sum is added and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The addition.
    pub added: Added,
    /// The sign of a zero result.
    pub zero: ZeroSigns,
    /// Whether infinite *operands* decide before products are formed, so that a product that
    /// overflows meets them too late (CDNA3; MMA-Sim paper, section IV.F, steps 1 to 3).
    pub infinite_operands_first: bool,
    /// The normalisation.
    pub normalised: Normalised,
}

impl Rule {
    /// The rounding to a format, if the sum is normalised.
    pub fn round_to(&mut self) -> Option<&mut RoundTo> {
        match &mut self.normalised {
            Normalised::To(round) => Some(round),
            Normalised::No { .. } => None,
        }
    }

    /// An IEEE 754 operation: the exact sum, rounded to nearest, ties to even.
    pub fn ieee(format: Format) -> Rule {
        Rule {
            added: Added::Exact,
            zero: ZeroSigns::IEEE,
            infinite_operands_first: false,
            normalised: Normalised::To(RoundTo::nearest_even(format)),
        }
    }
}

/// How the summands of a node are added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// The infinitely precise sum.
    Exact,
    /// Aligned to the largest exponent, with a limited number of fraction bits, then summed as
    /// integers (MMA-Sim paper, section IV.C, steps 3 and 4).
    Fused(Fused),
}

/// A fused sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fused {
    /// How each child is aligned; the last entry holds for all further children.
    pub alignment: Shared<Alignment>,
    /// Whether exponents are taken raw or normalised.
    pub exponents: Exponents,
    /// The least that the largest exponent can be.
    pub floor: Option<i32>,
    /// Which zeros take part in the largest exponent.
    pub zeros: ZeroTerms,
    /// The width of the sum's integer part, where it is limited.
    pub carry: Option<Carry>,
    /// Whether one bit more, below the lowest of the sum, is set in its magnitude where alignment changed
    /// any summand: half a unit of the summand with most fraction bits, added to the magnitude after the
    /// carry. A sum that is zero stays so.
    pub sticky: bool,
}

impl Fused {
    /// A fused sum that aligns all summands alike, with raw exponents and no limits.
    pub fn uniform(fraction_bits: u32, rounding: Rounding) -> Fused {
        Fused {
            alignment: vec![Alignment { fraction_bits, rounding, far: None }].into(),
            exponents: Exponents::Raw,
            floor: None,
            zeros: ZeroTerms::Ignored,
            carry: None,
            sticky: false,
        }
    }

    /// The alignment of the child at this position.
    #[inline]
    pub fn alignment_of(&self, position: usize) -> &Alignment {
        self.alignment
            .get(position)
            .unwrap_or_else(|| self.alignment.last().expect("a fused sum has an alignment"))
    }
}

/// How a summand is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Bits kept below the largest exponent, F.
    pub fraction_bits: u32,
    /// What happens to bits below those. RZ truncates a magnitude, RD a two's complement number.
    pub rounding: Rounding,
    /// Another rounding for summands that are far below the largest exponent.
    pub far: Option<Far>,
}

/// A special rounding of summands with e < e_max − `distance` (CDNA3's FP8 instructions; MMA-Sim
/// paper, section IV.H, step 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Far {
    /// The distance, in exponents, that is not yet far.
    pub distance: i32,
    /// The rounding from there on.
    pub rounding: Rounding,
}

/// The exponent of a summand, for alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exponents {
    /// The [nominal](crate::Term::exponent) one: products of significands in [1, 4) have the sum of
    /// their factors' exponents.
    Raw,
    /// That of the leading one.
    Normalised,
}

/// Which zeros take part in the largest exponent of a fused sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZeroTerms {
    /// None: only non-zero summands have a say.
    Ignored,
    /// Sums that came out as zero do, under the exponent they were aligned to (in which nothing
    /// counted, to none); products with a zero factor and a c of zero do not.
    SumsCounted,
    /// All do: a zero factor, and a c of zero, under its format's smallest exponent.
    Counted,
    /// All do: a zero factor, and a c of zero, under the exponent −126, whatever its format. (One
    /// published model of NVIDIA's units.)
    CountedAsFp32,
}

impl ZeroTerms {
    /// The exponent of a zero operand under [`ZeroTerms::CountedAsFp32`].
    pub const FP32_EXPONENT: i32 = -126;
}

/// A limit to the integer part of a fused sum: the sum stays in [−2^`bits`, 2^`bits`) × 2^e_max.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carry {
    /// Bits before the binary point.
    pub bits: u32,
    /// What becomes of a sum beyond the limit.
    pub beyond: Beyond,
}

/// What becomes of a sum that its [`Carry`] cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Beyond {
    /// It wraps, as a two's complement number does.
    Wraps,
    /// Its magnitude wraps, modulo 2^`bits` × 2^e_max, and its sign stays.
    MagnitudeWraps,
    /// It becomes the largest or smallest number within the limit, the largest having as many fraction bits
    /// as the summand with most.
    Saturates,
}

impl Beyond {
    /// All, in this order.
    pub const EVERY: [Beyond; 3] = [Beyond::Wraps, Beyond::MagnitudeWraps, Beyond::Saturates];
}

/// The sign of a zero sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ZeroSigns {
    /// Negative zeros alone add up to −0; otherwise to +0.
    pub negative_zeros_stay: bool,
    /// Summands that cancel, and zeros of both signs, give −0 (IEEE 754, section 6.3: when rounding
    /// down); otherwise +0.
    pub cancellation_is_negative: bool,
    /// A sum that is not zero but rounds to zero keeps its sign; otherwise it is +0.
    pub underflow_keeps_sign: bool,
}

impl ZeroSigns {
    /// IEEE 754-2019, section 6.3, for every rounding mode but RD.
    pub const IEEE: ZeroSigns =
        ZeroSigns { negative_zeros_stay: true, cancellation_is_negative: false, underflow_keeps_sign: true };
}

/// What becomes of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalised {
    /// It is rounded to a format.
    To(RoundTo),
    /// Its significand and exponent pass upward as they are.
    No {
        /// The exponent under which it is filed; `None` for the one its summands were aligned to.
        exponent: Option<i32>,
    },
}

/// What a NaN result looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NanRule {
    /// Always this bit pattern (NVIDIA: 0x7FFFFFFF and 0x7FFF; MMA-Sim paper, section IV.C, step 1).
    Canonical(u64),
    /// A NaN operand is handed on.
    Propagated(Propagation),
    /// Where NaNs meet, their fractions are ORed, and the sign is that of the last: of the factor from B,
    /// of the summand furthest right, or of the NaN that the operation generates.
    Merged {
        /// The pattern of a NaN that no operand brought along (0·∞, ∞ − ∞).
        generated: u64,
    },
    /// It is a NaN, and which one is not known. The executor delivers the format's positive quiet
    /// NaN with an empty payload; comparisons must treat all NaNs alike and say that they do.
    Unknown,
}

/// Which NaN operand becomes the result, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Propagation {
    /// The pattern of a NaN that no operand brought along (0·∞, ∞ − ∞).
    pub generated: u64,
    /// Who goes first when several operands of one operation are NaN.
    pub order: [NanSource; 3],
    /// Whether the summand further right goes first among equals.
    pub later_first: bool,
    /// Whether the quiet bit is set in a NaN that is handed on.
    pub quieted: bool,
    /// Whether a NaN generated by an operation goes before those handed to it.
    pub generated_first: bool,
}

/// Where a NaN comes from, as one operation sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NanSource {
    /// The factor from A.
    A,
    /// The factor from B.
    B,
    /// A summand that is no product: c, or an earlier sum.
    Accumulator,
}

/// Why a [`Model`] cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// The tree has no nodes.
    Empty,
    /// A node refers to a node that does not stand before it.
    Order {
        /// The node that refers.
        node: NodeId,
    },
    /// A sum refers to a rule that does not exist.
    NoSuchRule {
        /// The sum.
        node: NodeId,
    },
    /// A product's index is not below K, or a block's index is not below K / block.
    NoSuchProduct {
        /// The leaf or scaled node.
        node: NodeId,
    },
    /// A product, or c, is used more than once or not at all, or a sum is used more than once.
    NotATree,
    /// The root is no sum that is rounded to the format of d.
    RootNotRounded,
    /// A sum has no summands.
    EmptySum {
        /// The sum.
        node: NodeId,
    },
    /// Products are rounded to more fraction bits than their format has.
    ProductFractionBits,
    /// A rule keeps more fraction bits than its format has, or more than 64 at alignment, or a fused
    /// sum has no alignment.
    FractionBits {
        /// The rule.
        rule: RuleId,
    },
}

impl core::fmt::Display for ModelError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ModelError::Empty => write!(f, "the sum tree is empty"),
            ModelError::Order { node } => {
                write!(f, "node {node} of the sum tree refers to a node that does not stand before it")
            }
            ModelError::NoSuchRule { node } => {
                write!(f, "node {node} of the sum tree refers to a rule that does not exist")
            }
            ModelError::NoSuchProduct { node } => write!(
                f,
                "node {node} of the sum tree names a product or block that the instruction does not have"
            ),
            ModelError::NotATree => write!(f, "the sum tree does not use each product and c exactly once"),
            ModelError::RootNotRounded => {
                write!(f, "the root of the sum tree is not rounded to the format of d")
            }
            ModelError::EmptySum { node } => write!(f, "node {node} of the sum tree sums nothing"),
            ModelError::ProductFractionBits => {
                write!(f, "products are rounded to more fraction bits than their format has")
            }
            ModelError::FractionBits { rule } => {
                write!(f, "rule {rule} of the sum tree keeps a number of fraction bits that is not possible")
            }
        }
    }
}

impl core::error::Error for ModelError {}

impl Model {
    /// A chain of K fused multiply-adds, starting from c, all in one format: the SFMA algorithm
    /// (MMA-Sim paper, section IV.A).
    pub fn chain_of_fma(factors: Format, accumulator: Format, k: usize) -> Model {
        let mut nodes = vec![Node::Accumulator];
        for index in 0..k {
            let accumulator = nodes.len() - 1;
            nodes.push(Node::Product(index));
            nodes.push(Node::Sum { children: vec![accumulator, accumulator + 1], rule: 0 });
        }
        Model {
            k,
            a: Operand::plain(factors),
            b: Operand::plain(factors),
            c: Operand::plain(accumulator),
            scale: None,
            product: Product::Exact,
            tree: Tree { nodes: nodes.into(), rules: vec![Rule::ieee(accumulator)] },
            d: accumulator,
            nan: NanRule::Unknown,
        }
    }

    /// The same function in canonical order: nodes in post-order, of summands the taller subtrees
    /// first, so that a chain reads in the order in which it is computed; rules in the order of their
    /// first use, none twice and none unused.
    ///
    /// # Panics
    /// If the model does not pass [`check`](Model::check).
    pub fn canonical(&self) -> Model {
        let mut nodes: Vec<Node> = Vec::with_capacity(self.tree.nodes.len());
        let mut rules: Vec<Rule> = Vec::new();
        let mut moved: Vec<NodeId> = vec![0; self.tree.nodes.len()];
        let mut heights: Vec<usize> = Vec::with_capacity(self.tree.nodes.len());
        for node in &self.tree.nodes {
            heights.push(node.children().iter().map(|&child| heights[child] + 1).max().unwrap_or(0));
        }
        // A node is met twice: before its children, and after them.
        let mut stack = vec![(self.tree.nodes.len() - 1, false)];
        while let Some((id, children_done)) = stack.pop() {
            let node = &self.tree.nodes[id];
            if !children_done {
                stack.push((id, true));
                // The stack turns the order around; the sort is stable.
                let mut later_first: Vec<NodeId> = node.children().iter().rev().copied().collect();
                later_first.sort_by_key(|&child| heights[child]);
                stack.extend(later_first.into_iter().map(|child| (child, false)));
                continue;
            }
            let node = match node {
                Node::Sum { children, rule } => {
                    let rule = &self.tree.rules[*rule];
                    let known = rules.iter().position(|other| other == rule);
                    let rule = known.unwrap_or_else(|| {
                        rules.push(rule.clone());
                        rules.len() - 1
                    });
                    Node::Sum { children: children.iter().map(|&child| moved[child]).collect(), rule }
                }
                Node::Scaled { child, block } => Node::Scaled { child: moved[*child], block: *block },
                leaf => leaf.clone(),
            };
            moved[id] = nodes.len();
            nodes.push(node);
        }
        Model { tree: Tree { nodes: nodes.into(), rules }, ..self.clone() }
    }

    /// Checks that the model can be executed.
    pub fn check(&self) -> Result<(), ModelError> {
        let nodes = &self.tree.nodes;
        let mut used = vec![0u32; nodes.len()];
        let mut products = vec![0u32; self.k];
        let mut accumulators = 0;
        for (node, content) in nodes.iter().enumerate() {
            match content {
                Node::Product(k) => *products.get_mut(*k).ok_or(ModelError::NoSuchProduct { node })? += 1,
                Node::Accumulator => accumulators += 1,
                Node::Zero => {}
                Node::Scaled { child, block } => {
                    let scale = self.scale.ok_or(ModelError::NoSuchProduct { node })?;
                    if scale.block == 0 || block * scale.block >= self.k {
                        return Err(ModelError::NoSuchProduct { node });
                    }
                    *used[..node].get_mut(*child).ok_or(ModelError::Order { node })? += 1;
                }
                Node::Sum { children, rule } => {
                    if children.is_empty() {
                        return Err(ModelError::EmptySum { node });
                    }
                    if *rule >= self.tree.rules.len() {
                        return Err(ModelError::NoSuchRule { node });
                    }
                    for &child in children {
                        *used[..node].get_mut(child).ok_or(ModelError::Order { node })? += 1;
                    }
                }
            }
        }
        let (root, others) = used.split_last().ok_or(ModelError::Empty)?;
        if *root != 0
            || others.iter().any(|&uses| uses != 1)
            || accumulators != 1
            || products.iter().any(|&uses| uses != 1)
        {
            return Err(ModelError::NotATree);
        }
        if let Product::Rounded(round) = &self.product
            && round.fraction_bits > round.format.fraction_bits
        {
            return Err(ModelError::ProductFractionBits);
        }
        self.tree.rules.iter().enumerate().try_for_each(|(index, rule)| self.check_rule(index, rule))?;
        let is_sum = matches!(nodes.last(), Some(Node::Sum { .. }));
        if is_sum { Ok(()) } else { Err(ModelError::RootNotRounded) }
    }

    /// Checks that the model can be executed with this as its rule of this index, if it can be with another.
    ///
    /// # Errors
    /// If the rule keeps more fraction bits than there can be, or is the root's and does not round to d.
    pub fn check_rule(&self, index: RuleId, rule: &Rule) -> Result<(), ModelError> {
        let too_many = ModelError::FractionBits { rule: index };
        if let Added::Fused(fused) = &rule.added
            && (fused.alignment.is_empty()
                || fused.alignment.iter().any(|alignment| alignment.fraction_bits > 64))
        {
            return Err(too_many);
        }
        let format = match &rule.normalised {
            Normalised::To(round) if round.fraction_bits > round.format.fraction_bits => {
                return Err(too_many);
            }
            Normalised::To(round) => Some(round.format),
            Normalised::No { .. } => None,
        };
        match self.tree.nodes.last() {
            Some(Node::Sum { rule: of_root, .. }) if *of_root == index && format != Some(self.d) => {
                Err(ModelError::RootNotRounded)
            }
            _ => Ok(()),
        }
    }
}
