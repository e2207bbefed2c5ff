//! What a machine computes, as data.
//!
//! The vocabulary is that of hardware: adders with shifters of limited width, carries that wrap,
//! sticky bits, flushes.

use crate::format::Format;
use crate::rounding::Rounding;

/// A matrix unit with one instruction, and what that computes for each output element.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Rows of A and D.
    pub m: usize,
    /// Columns of B and D.
    pub n: usize,
    /// Number of products.
    pub k: usize,
    /// Declared format of A.
    pub a: Format,
    /// Declared format of B.
    pub b: Format,
    /// Declared format of C.
    pub c: Format,
    /// Format of D.
    pub d: Format,
    /// Block scales along K.
    pub scale: Option<Scale>,
    /// How elements of A are read.
    pub read_a: Reading,
    /// How elements of B are read.
    pub read_b: Reading,
    /// How elements of C are read.
    pub read_c: Reading,
    /// How products are formed.
    pub product: Product,
    /// The rules that sums refer to.
    pub rules: Vec<Rule>,
    /// The order of summation.
    pub tree: Node,
    /// Infinite operands decide before infinities that products overflowed to are looked at.
    pub infinite_operands_first: bool,
    /// What a NaN result looks like.
    pub nan: NanRule,
    /// The shape of the tree in a few words, and the order of the summands.
    pub shape: Shape,
    /// Whether nobody would build it.
    pub odd: bool,
}

impl Machine {
    /// The simplest machine: K fused multiply-adds, one after another from c, as IEEE 754 has them, all in
    /// one IEEE format.
    pub fn chain_of_fma(format: Format, k: usize) -> Machine {
        let read = Reading { format, subnormals: Flush::Never, infinities: Infinities::Kept };
        let chain = |sum, k| Node::Sum(vec![sum, Node::Product(k)], 0);
        Machine {
            m: 1,
            n: 1,
            k,
            a: format,
            b: format,
            c: format,
            d: format,
            scale: None,
            read_a: read,
            read_b: read,
            read_c: read,
            product: Product::Exact,
            rules: vec![Rule {
                adder: Adder::Exact,
                zeros: ZeroSigns::IEEE,
                output: Output::Rounded(Round::ieee(format)),
            }],
            tree: (0..k).fold(Node::C, chain),
            infinite_operands_first: false,
            nan: NanRule::Canonical(format.nan(false, 1 << (format.fraction_bits - 1))),
            shape: Shape { kind: "chain from c", order: "forward" },
            odd: false,
        }
    }
}

/// How the tree was drawn, for tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The kind of tree, of few.
    pub kind: &'static str,
    /// The order of the products along it, of few.
    pub order: &'static str,
}

/// Block scales: one factor for each `block` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Their format.
    pub format: Format,
    /// Elements that share one.
    pub block: usize,
}

/// How elements of an operand are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The format as which: fp32 for a tf32 whose low bits count.
    pub format: Format,
    /// What subnormal elements become.
    pub subnormals: Flush,
    /// What infinities become.
    pub infinities: Infinities,
}

/// What becomes of subnormal elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Nothing.
    Never,
    /// +0.
    ToPlusZero,
    /// A zero of their sign.
    ToSignedZero,
}

/// What becomes of infinite elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Infinities {
    /// They stay.
    Kept,
    /// They are NaNs.
    Nan,
    /// They are the largest number.
    Largest,
}

/// How a product is formed.
#[derive(Clone, Debug, PartialEq)]
pub enum Product {
    /// Exactly.
    Exact,
    /// Rounded to a format.
    Rounded(Round),
    /// Exactly, but infinite from 2^`0` on.
    OverflowsAt(i32),
    /// Exactly, but zero below 2^`exponent`; the zero has its sign, or none.
    FlushedBelow {
        /// The exponent.
        exponent: i32,
        /// Whether the zero has the product's sign.
        signed: bool,
    },
}

/// A node of the order of summation.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// The product a_k·b_k.
    Product(usize),
    /// The element of C.
    C,
    /// +0, where a chain starts that does not start from c.
    Zero,
    /// A value times both scales of a block.
    Scaled(Box<Node>, usize),
    /// A sum, and the index of its rule.
    Sum(Vec<Node>, usize),
}

/// How a sum is formed.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The adder.
    pub adder: Adder,
    /// The sign of a zero.
    pub zeros: ZeroSigns,
    /// What leaves the sum.
    pub output: Output,
}

/// An adder.
#[derive(Clone, Debug, PartialEq)]
pub enum Adder {
    /// As wide as it takes.
    Exact,
    /// As wide as is said: summands are aligned to the largest exponent.
    Aligned(Aligned),
}

/// An adder of limited width.
#[derive(Clone, Debug, PartialEq)]
pub struct Aligned {
    /// The shifter of each summand; the last one is that of all further summands.
    pub shifters: Vec<Shifter>,
    /// Whether a summand's exponent is that of its leading one; otherwise the one it comes with.
    pub normalised: bool,
    /// The least that the largest exponent can be.
    pub floor: Option<i32>,
    /// Whose exponent counts though it is zero.
    pub zeros: ZeroExponents,
    /// The width above the binary point.
    pub carry: Option<Carry>,
    /// Whether one sticky bit below the sum says that any summand lost something.
    pub sticky: bool,
}

/// A shifter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shifter {
    /// Bits kept below the largest exponent.
    pub fraction_bits: u32,
    /// What becomes of the others.
    pub rounding: Rounding,
    /// From which distance on they are rounded otherwise, and how.
    pub far: Option<(i32, Rounding)>,
}

/// Which zeros take part in the largest exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroExponents {
    /// None.
    Ignored,
    /// Those of sums that were not normalised, under the exponent they were aligned to.
    OpenSums,
    /// All; a zero operand has its format's smallest exponent.
    All,
    /// All; a zero operand has exponent −126.
    AllAsFp32,
}

/// The width of an adder above the binary point: sums lie in [−2^`bits`, 2^`bits`) × 2^(largest
/// exponent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carry {
    /// Bits above the binary point.
    pub bits: u32,
    /// What becomes of a sum outside.
    pub beyond: Beyond,
}

/// What becomes of a sum that is too large for its adder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// It wraps, as a two's complement number.
    Wraps,
    /// Its magnitude wraps and its sign stays.
    MagnitudeWraps,
    /// It is the end of the range that it left.
    Saturates,
}

/// The sign of a zero sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroSigns {
    /// Zeros that are all negative stay so.
    pub negative_stays: bool,
    /// What cancels is −0.
    pub cancelled_negative: bool,
    /// What is rounded to zero keeps its sign.
    pub underflow_signed: bool,
}

impl ZeroSigns {
    /// IEEE 754, section 6.3, for every direction but down.
    pub const IEEE: ZeroSigns =
        ZeroSigns { negative_stays: true, cancelled_negative: false, underflow_signed: true };
}

/// What leaves a sum.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The sum as it is, under the exponent that its summands were aligned to, or under this one.
    Open(Option<i32>),
    /// It is rounded.
    Rounded(Round),
    /// It is rounded, and what came out is rounded again.
    RoundedTwice(Round, Round),
}

/// Rounding to a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// The format, an IEEE one.
    pub format: Format,
    /// Fraction bits kept, at most the format's.
    pub fraction_bits: u32,
    /// The mode.
    pub rounding: Rounding,
    /// What becomes of results below the smallest normal number.
    pub subnormals: Subnormals,
    /// What becomes of results above the largest number.
    pub overflow: Overflow,
}

impl Round {
    /// To nearest, ties to even, as IEEE 754 has it.
    pub const fn ieee(format: Format) -> Round {
        Round {
            format,
            fraction_bits: format.fraction_bits,
            rounding: Rounding::NearestEven,
            subnormals: Subnormals::Kept,
            overflow: Overflow::Infinity,
        }
    }
}

/// What becomes of results below the smallest normal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subnormals {
    /// They are subnormal.
    Kept,
    /// They are zeros.
    Flushed {
        /// What "below" means.
        tiny: Tiny,
        /// Whether the zero keeps the sign.
        signed: bool,
    },
}

/// When a result is below the smallest normal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiny {
    /// If it is before rounding.
    Before,
    /// If it is after rounding with unlimited exponents.
    After,
    /// If what would be delivered is subnormal.
    Delivered,
}

/// What becomes of results above the largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Infinity.
    Infinity,
    /// The largest number of as many fraction bits as are kept.
    Largest,
    /// Infinity, unless the rounding mode leads back: RZ always, RU below zero, RD above.
    ByMode,
}

/// What a NaN result looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NanRule {
    /// Always this pattern.
    Canonical(u64),
    /// A NaN operand is handed on, in the upper bits of D's fraction.
    HandedOn {
        /// Which operand goes first: the rank of A's, B's, and of c and earlier sums.
        ranks: [u8; 3],
        /// Whether the last of equal rank goes first.
        last: bool,
        /// Whether it becomes a quiet one.
        quieted: bool,
        /// The sign of a NaN that no operand brought along; its fraction is the quiet bit.
        generated_negative: bool,
        /// Whether that one goes before those of operands.
        generated_first: bool,
    },
    /// The fractions of all NaN operands, ORed; the sign is that of the last NaN.
    Ored,
}
