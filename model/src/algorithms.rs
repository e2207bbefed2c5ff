//! The nine published algorithms as sum trees (MMA-Sim paper, section IV).
//!
//! [`Algorithm::model`] makes a [`Model`] of an algorithm and the [`Types`] of an instruction.
//!
//! # Where the paper is silent
//!
//! | question | here | because |
//! |---|---|---|
//! | exponents of zeros | products of a zero factor, and a c of zero, have no say in e_max; sums that cancel do ([`Conventions::zeros`]) | Step 2 of FDA gives a zero its format's smallest exponent, −14 in fp16. On a V100, c = 2^−149 beside zero products comes out as it is (Fasi et al. 2021, "Support for subnormal numbers"); under −28, with F = 23, it would vanish. Section VI.C (a) of the paper has a dot product that cancels to zero and yet aligns c |
//! | a floor under e_max | none ([`Conventions::floor`]) | published models differ: none, −126, −133 |
//! | zero results of tensor cores | +0, but a negative sum that rounds to zero is −0 | sums are two's complement numbers; section III.F asks and does not say |
//! | zero results of matrix cores | IEEE 754, section 6.3: −0 if all summands are | |
//! | subnormal factors of GPS | those of the operand's own format | Step 1's text; Algorithm 3 prints 2^−126, which is fp32's and bf16's |
//! | NaNs of SFMA, GPS and FDRDA | [`NanRule::Unknown`] | section V: "their encoding rule for the NaN payloads is unknown" |
//!
//! # Example: an H100 adds sixteen products at once, and keeps 25 bits below the largest
//!
//! ```
//! use mmaprobe_model::algorithms::{Algorithm, Output, Types};
//! use mmaprobe_model::{Executor, format};
//!
//! let types = Types::plain(format::FP16, format::FP32, 16);
//! let algorithm = Algorithm::Fda { fraction_bits: 25, output: Output::Rz23 };
//! assert_eq!(algorithm.to_string(), "FDA(F=25)");
//!
//! let model = algorithm.model(&types)?;
//! let mut executor = Executor::new(&model)?;
//! let mut one_and_16_times = |square: u64| {
//!     f32::from_bits(executor.dot_add(&[square; 16], &[square; 16], 0x3f80_0000, &[], &[]) as u32)
//! };
//! let (two_to_the_minus_12, minus_13) = (0x0c00, 0x0800);
//! assert_eq!(one_and_16_times(two_to_the_minus_12), 1.0 + 16.0 * 2f32.powi(-24));
//! // Each product is cut off, although their sum would not be.
//! assert_eq!(one_and_16_times(minus_13), 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::format::{self, Format, RoundTo, Subnormals, Tininess};
use crate::rounding::Rounding;
use crate::tree::{
    Added, Alignment, Far, Fused, InputSubnormals, Model, ModelError, NanRule, Node, NodeId, Normalised,
    Operand, Product, Rule, RuleId, Scale, Tree, ZeroSigns, ZeroTerms,
};

/// What an instruction multiplies and adds: its formats, its number of products, its block scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    /// Format of A.
    pub a: Format,
    /// Format of B.
    pub b: Format,
    /// Format of C.
    pub c: Format,
    /// Format of D.
    pub d: Format,
    /// Number of products, K.
    pub k: usize,
    /// Block scales, if the instruction has them.
    pub scale: Option<Scale>,
}

impl Types {
    /// Factors of one format, c and d of another, no scales.
    pub const fn plain(factors: Format, accumulator: Format, k: usize) -> Types {
        Types { a: factors, b: factors, c: accumulator, d: accumulator, k, scale: None }
    }
}

/// How an algorithm delivers its result (MMA-Sim paper, section IV.C, step 5, and IV.F, step 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// fp32, truncated.
    Rz23,
    /// fp32 with 13 fraction bits, truncated: FP8 on Ada Lovelace and Hopper.
    Rz13,
    /// fp16, rounded to nearest even.
    Rne10,
    /// fp32, rounded to nearest even.
    Rne23,
}

impl Output {
    /// Every output.
    pub const ALL: [Output; 4] = [Output::Rz23, Output::Rz13, Output::Rne10, Output::Rne23];

    /// The rounding. A magnitude that the format cannot hold becomes infinity, even where smaller ones
    /// are truncated.
    pub const fn round_to(self) -> RoundTo {
        let fp32 = RoundTo::nearest_even(format::FP32);
        let rz23 = RoundTo { rounding: Rounding::TowardZero, ..fp32 };
        match self {
            Output::Rz23 => rz23,
            Output::Rz13 => RoundTo { fraction_bits: 13, ..rz23 },
            Output::Rne10 => RoundTo::nearest_even(format::FP16),
            Output::Rne23 => fp32,
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Output::Rz23 => "rz23",
            Output::Rz13 => "rz13",
            Output::Rne10 => "rne10",
            Output::Rne23 => "rne23",
        })
    }
}

/// One of the nine algorithms, with its parameters.
///
/// It displays as in the paper's Tables III and IV, with the parameters that the paper gives in the text
/// where they are not the only published ones: `FDA(F=25)`, `CoFDA(F=24, chain=2)`, `GPS(G=4)`. How the
/// result is delivered is no part of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Sequential fused multiply-add: a chain of FMAs from c (section IV.A).
    Sfma,
    /// Group pairwise sum: rounded products summed in pairs, the groups' sums added to c one after the
    /// other (section IV.B).
    Gps {
        /// Products in a group, G.
        group: usize,
        /// Whether subnormal numbers are flushed everywhere, as on CDNA2. On CDNA1 they are not.
        flushed: bool,
    },
    /// Fused dot-add: one fixed-point sum of all products and c (section IV.C).
    Fda {
        /// Bits kept below the largest exponent, F.
        fraction_bits: u32,
        /// How the result is delivered.
        output: Output,
    },
    /// Chain of FDA: an FDA for each part of the products (section IV.D).
    CoFda {
        /// Bits kept below the largest exponent, F.
        fraction_bits: u32,
        /// Number of FDA operations.
        chain: usize,
        /// How each of them delivers its result.
        output: Output,
    },
    /// Group dot fused sum: exact sums of groups, scaled, then one fixed-point sum (section IV.E).
    Gdfs {
        /// Products in a group, G.
        group: usize,
        /// Bits kept below the largest exponent, F.
        fraction_bits: u32,
        /// How the result is delivered.
        output: Output,
    },
    /// Fused dot, round-down add: a fixed-point dot product, to which c is added (section IV.F).
    Fdrda {
        /// Bits kept below the largest exponent of the products, F.
        fraction_bits: u32,
        /// Bits kept of the dot product when c is added.
        dot_fraction_bits: u32,
        /// Bits kept of c when it is added.
        c_fraction_bits: u32,
    },
    /// Chain of FDRDA (section IV.G).
    CoFdrda {
        /// Bits kept below the largest exponent of the products, F.
        fraction_bits: u32,
        /// Bits kept of the dot product when c is added.
        dot_fraction_bits: u32,
        /// Bits kept of c when it is added.
        c_fraction_bits: u32,
        /// Number of FDRDA operations.
        chain: usize,
    },
    /// Group FDRDA: even and odd products apart, joined, then c (section IV.H).
    Gfdrda {
        /// Bits kept below the largest exponent of the products, and where the two sums join, F.
        fraction_bits: u32,
        /// Bits kept of the dot product when c is added.
        dot_fraction_bits: u32,
        /// Bits kept of c when it is added.
        c_fraction_bits: u32,
        /// c is rounded toward zero, not down, where its exponent is below e_max minus this.
        c_rz_below: i32,
    },
    /// Chain of GFDRDA (section IV.I).
    CoGfdrda {
        /// Bits kept below the largest exponent of the products, and where the two sums join, F.
        fraction_bits: u32,
        /// Bits kept of the dot product when c is added.
        dot_fraction_bits: u32,
        /// Bits kept of c when it is added.
        c_fraction_bits: u32,
        /// c is rounded toward zero, not down, where its exponent is below e_max minus this.
        c_rz_below: i32,
        /// Number of GFDRDA operations.
        chain: usize,
    },
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Algorithm::Sfma => write!(f, "SFMA"),
            Algorithm::Gps { group, flushed: true } => write!(f, "GPS(G={group})"),
            Algorithm::Gps { group, flushed: false } => write!(f, "GPS(G={group}, subnormals kept)"),
            Algorithm::Fda { fraction_bits, .. } => write!(f, "FDA(F={fraction_bits})"),
            Algorithm::CoFda { fraction_bits, chain, .. } => {
                write!(f, "CoFDA(F={fraction_bits}, chain={chain})")
            }
            Algorithm::Gdfs { group, fraction_bits, .. } => write!(f, "GDFS(G={group}, F={fraction_bits})"),
            Algorithm::Fdrda { fraction_bits, dot_fraction_bits, c_fraction_bits } => {
                write!(f, "FDRDA(F={fraction_bits}, F_dot={dot_fraction_bits}, F_c={c_fraction_bits})")
            }
            Algorithm::CoFdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, chain } => {
                write!(
                    f,
                    "CoFDRDA(F={fraction_bits}, F_dot={dot_fraction_bits}, F_c={c_fraction_bits}, \
                     chain={chain})"
                )
            }
            Algorithm::Gfdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, c_rz_below } => write!(
                f,
                "GFDRDA(F={fraction_bits}, F_dot={dot_fraction_bits}, F_c={c_fraction_bits}, \
                 c_rz_below={c_rz_below})"
            ),
            Algorithm::CoGfdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, c_rz_below, chain } => {
                write!(
                    f,
                    "CoGFDRDA(F={fraction_bits}, F_dot={dot_fraction_bits}, F_c={c_fraction_bits}, \
                     c_rz_below={c_rz_below}, chain={chain})"
                )
            }
        }
    }
}

/// What published models of one algorithm disagree about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conventions {
    /// Which zeros take part in the largest exponent.
    pub zeros: ZeroTerms,
    /// The least that the largest exponent can be.
    pub floor: Option<i32>,
}

impl Conventions {
    /// What agrees with the paper where it speaks, and with experiments where it does not (see the
    /// [module](self)).
    pub const DEFAULT: Conventions = Conventions { zeros: ZeroTerms::SumsCounted, floor: None };
}

/// Why an algorithm and an instruction's types make no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlgorithmError {
    /// K products do not divide into this many parts, or into parts of this size.
    Indivisible {
        /// K.
        k: usize,
        /// The number of parts, or their size.
        by: usize,
    },
    /// Products cannot be summed in pairs.
    GroupNotPowerOfTwo {
        /// The size.
        group: usize,
    },
    /// The algorithm delivers another format than that of d.
    Output {
        /// What the algorithm delivers.
        delivers: &'static str,
        /// The format of d.
        d: &'static str,
    },
    /// The algorithm has no place for block scales.
    Scaled,
    /// The algorithm needs block scales.
    Unscaled,
    /// The blocks do not consist of whole groups.
    Blocks {
        /// Elements in a block.
        block: usize,
        /// Products in a group.
        group: usize,
    },
    /// The model cannot be executed.
    Model(ModelError),
}

impl fmt::Display for AlgorithmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AlgorithmError::Indivisible { k, by } => write!(f, "{k} products do not divide by {by}"),
            AlgorithmError::GroupNotPowerOfTwo { group } => {
                write!(f, "{group} products cannot be summed in pairs; expected a power of two")
            }
            AlgorithmError::Output { delivers, d } => {
                write!(f, "the algorithm delivers {delivers}, and d is {d}")
            }
            AlgorithmError::Scaled => write!(f, "the algorithm has no place for block scales"),
            AlgorithmError::Unscaled => write!(f, "the algorithm needs block scales"),
            AlgorithmError::Blocks { block, group } => {
                write!(f, "blocks of {block} do not consist of groups of {group}")
            }
            AlgorithmError::Model(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for AlgorithmError {}

/// NVIDIA's sums: never −0 unless a negative sum rounds to zero.
const TWOS_COMPLEMENT: ZeroSigns =
    ZeroSigns { negative_zeros_stay: false, cancellation_is_negative: false, underflow_keeps_sign: true };

impl Algorithm {
    /// The algorithm on an instruction's types, under [default conventions](Conventions::DEFAULT).
    ///
    /// # Errors
    /// If the algorithm does not go with the types.
    pub fn model(&self, types: &Types) -> Result<Model, AlgorithmError> {
        self.model_under(types, &Conventions::DEFAULT)
    }

    /// The algorithm on an instruction's types. Conventions have no effect on SFMA and GPS.
    ///
    /// # Errors
    /// If the algorithm does not go with the types.
    pub fn model_under(&self, types: &Types, conventions: &Conventions) -> Result<Model, AlgorithmError> {
        let builder = Builder::new(types, conventions);
        let model = match *self {
            Algorithm::Sfma => builder.sfma(),
            Algorithm::Gps { group, flushed } => builder.gps(group, flushed),
            Algorithm::Fda { fraction_bits, output } => builder.fda(fraction_bits, 1, output),
            Algorithm::CoFda { fraction_bits, chain, output } => builder.fda(fraction_bits, chain, output),
            Algorithm::Gdfs { group, fraction_bits, output } => builder.gdfs(group, fraction_bits, output),
            Algorithm::Fdrda { fraction_bits, dot_fraction_bits, c_fraction_bits } => {
                builder.fdrda(fraction_bits, dot_fraction_bits, c_fraction_bits, 1, None)
            }
            Algorithm::CoFdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, chain } => {
                builder.fdrda(fraction_bits, dot_fraction_bits, c_fraction_bits, chain, None)
            }
            Algorithm::Gfdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, c_rz_below } => {
                builder.fdrda(fraction_bits, dot_fraction_bits, c_fraction_bits, 1, Some(c_rz_below))
            }
            Algorithm::CoGfdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, c_rz_below, chain } => {
                builder.fdrda(fraction_bits, dot_fraction_bits, c_fraction_bits, chain, Some(c_rz_below))
            }
        }?;
        model.check().map_err(AlgorithmError::Model)?;
        Ok(model)
    }
}

/// A chain of correctly rounded sums, each of `group` products and the sum so far: none of the nine, but
/// what one published model has for CDNA1's fp16 and bf16 instructions.
///
/// # Errors
/// If K is no multiple of `group`, or the types have scales.
pub fn chain_of_exact_sums(types: &Types, group: usize) -> Result<Model, AlgorithmError> {
    let mut builder = Builder::new(types, &Conventions::DEFAULT);
    builder.unscaled()?;
    let mut d = builder.accumulator();
    for part in builder.parts_of(group)? {
        let mut children = vec![d];
        children.extend(part.map(|index| builder.push(Node::Product(index))));
        d = builder.sum(children, 0);
    }
    let model = builder.finish(vec![Rule::ieee(types.d)], NanRule::Unknown);
    model.check().map_err(AlgorithmError::Model)?;
    Ok(model)
}

/// Builds a tree from the leaves up.
struct Builder<'t> {
    types: &'t Types,
    conventions: &'t Conventions,
    nodes: Vec<Node>,
}

impl<'t> Builder<'t> {
    fn new(types: &'t Types, conventions: &'t Conventions) -> Builder<'t> {
        Builder { types, conventions, nodes: Vec::new() }
    }

    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn accumulator(&mut self) -> NodeId {
        self.push(Node::Accumulator)
    }

    fn sum(&mut self, children: Vec<NodeId>, rule: RuleId) -> NodeId {
        self.push(Node::Sum { children, rule })
    }

    /// The products' indices, in parts of a size.
    fn parts_of(&self, size: usize) -> Result<impl Iterator<Item = Range<usize>> + use<>, AlgorithmError> {
        let k = self.types.k;
        if size == 0 || k == 0 || !k.is_multiple_of(size) {
            return Err(AlgorithmError::Indivisible { k, by: size });
        }
        Ok((0..k / size).map(move |part| part * size..(part + 1) * size))
    }

    /// The products' indices, in a number of parts.
    fn parts(&self, count: usize) -> Result<impl Iterator<Item = Range<usize>> + use<>, AlgorithmError> {
        let k = self.types.k;
        if count == 0 || !k.is_multiple_of(count) {
            return Err(AlgorithmError::Indivisible { k, by: count });
        }
        self.parts_of(k / count)
    }

    fn unscaled(&self) -> Result<(), AlgorithmError> {
        if self.types.scale.is_some() { Err(AlgorithmError::Scaled) } else { Ok(()) }
    }

    fn delivers(&self, round: &RoundTo) -> Result<(), AlgorithmError> {
        let (delivers, d) = (round.format.name, self.types.d.name);
        if round.format == self.types.d { Ok(()) } else { Err(AlgorithmError::Output { delivers, d }) }
    }

    /// Step 3 of FDA.
    fn fused(&self, fraction_bits: u32, rounding: Rounding) -> Fused {
        let Conventions { zeros, floor } = *self.conventions;
        Fused { zeros, floor, ..Fused::uniform(fraction_bits, rounding) }
    }

    fn finish(self, rules: Vec<Rule>, nan: NanRule) -> Model {
        let types = self.types;
        Model {
            k: types.k,
            a: Operand::plain(types.a),
            b: Operand::plain(types.b),
            c: Operand::plain(types.c),
            scale: types.scale,
            product: Product::Exact,
            tree: Tree { nodes: self.nodes.into(), rules },
            d: types.d,
            nan,
        }
    }

    /// Section IV.C, step 1: the canonical NaNs of NVIDIA.
    fn canonical_nan(&self) -> NanRule {
        NanRule::Canonical(if self.types.d == format::FP16 { 0x7fff } else { 0x7fff_ffff })
    }

    /// Section IV.A.
    fn sfma(mut self) -> Result<Model, AlgorithmError> {
        self.unscaled()?;
        let mut d = self.accumulator();
        for index in 0..self.types.k {
            let product = self.push(Node::Product(index));
            d = self.sum(vec![d, product], 0);
        }
        let rules = vec![Rule::ieee(self.types.d)];
        Ok(self.finish(rules, NanRule::Unknown))
    }

    /// Algorithm 2.
    fn pairwise_sum(&mut self, products: Range<usize>) -> NodeId {
        if products.len() == 1 {
            return self.push(Node::Product(products.start));
        }
        let middle = products.start + products.len() / 2;
        let low = self.pairwise_sum(products.start..middle);
        let high = self.pairwise_sum(middle..products.end);
        self.sum(vec![low, high], 0)
    }

    /// Section IV.B, Algorithm 3.
    fn gps(mut self, group: usize, flushed: bool) -> Result<Model, AlgorithmError> {
        self.unscaled()?;
        if !group.is_power_of_two() {
            return Err(AlgorithmError::GroupNotPowerOfTwo { group });
        }
        let mut d = self.accumulator();
        for part in self.parts_of(group)? {
            let sum = self.pairwise_sum(part);
            d = self.sum(vec![d, sum], 0);
        }
        let mut round = RoundTo::nearest_even(self.types.d);
        let mut input = InputSubnormals::Kept;
        if flushed {
            round.subnormals = Subnormals::Flushed { tiny: Tininess::Delivered, sign_kept: true };
            input = InputSubnormals::FlushedToPositiveZero;
        }
        let rule = Rule { normalised: Normalised::To(round), ..Rule::ieee(self.types.d) };
        let mut model = self.finish(vec![rule], NanRule::Unknown);
        model.product = Product::Rounded(round);
        for operand in [&mut model.a, &mut model.b, &mut model.c] {
            operand.subnormals = input;
        }
        Ok(model)
    }

    /// Sections IV.C and IV.D.
    fn fda(mut self, fraction_bits: u32, chain: usize, output: Output) -> Result<Model, AlgorithmError> {
        let round = output.round_to();
        self.delivers(&round)?;
        let mut d = self.accumulator();
        for part in self.parts(chain)? {
            let mut children = vec![d];
            for index in part {
                let product = self.push(Node::Product(index));
                children.push(match self.types.scale {
                    // IV.C, "Scale factor".
                    Some(scale) if scale.block > 0 => {
                        self.push(Node::Scaled { child: product, block: index / scale.block })
                    }
                    _ => product,
                });
            }
            d = self.sum(children, 0);
        }
        let rule = Rule {
            added: Added::Fused(self.fused(fraction_bits, Rounding::TowardZero)),
            zero: TWOS_COMPLEMENT,
            infinite_operands_first: false,
            normalised: Normalised::To(round),
        };
        let nan = self.canonical_nan();
        Ok(self.finish(vec![rule], nan))
    }

    /// Section IV.E.
    fn gdfs(mut self, group: usize, fraction_bits: u32, output: Output) -> Result<Model, AlgorithmError> {
        let round = output.round_to();
        self.delivers(&round)?;
        let scale = self.types.scale.ok_or(AlgorithmError::Unscaled)?;
        let parts = self.parts_of(group)?;
        if scale.block == 0 || !scale.block.is_multiple_of(group) {
            return Err(AlgorithmError::Blocks { block: scale.block, group });
        }
        let mut children = vec![self.accumulator()];
        for part in parts {
            let block = part.start / scale.block;
            let products = part.map(|index| self.push(Node::Product(index))).collect();
            let child = self.sum(products, 0);
            children.push(self.push(Node::Scaled { child, block }));
        }
        self.sum(children, 1);
        // Step 4: a scaled group's exponent is that of its scales alone.
        let dot = Rule {
            added: Added::Exact,
            zero: TWOS_COMPLEMENT,
            infinite_operands_first: false,
            normalised: Normalised::No { exponent: Some(0) },
        };
        let last = Rule {
            added: Added::Fused(self.fused(fraction_bits, Rounding::TowardZero)),
            normalised: Normalised::To(round),
            ..dot.clone()
        };
        let nan = self.canonical_nan();
        Ok(self.finish(vec![dot, last], nan))
    }

    /// Sections IV.F and IV.G; with `c_rz_below`, IV.H and IV.I.
    fn fdrda(
        mut self,
        fraction_bits: u32,
        dot_fraction_bits: u32,
        c_fraction_bits: u32,
        chain: usize,
        c_rz_below: Option<i32>,
    ) -> Result<Model, AlgorithmError> {
        let round = Output::Rne23.round_to();
        self.unscaled()?;
        self.delivers(&round)?;
        let grouped = c_rz_below.is_some();
        // Where the last rule stands: only the grouped kind joins two dot products.
        let last = if grouped { 2 } else { 1 };
        let mut d = self.accumulator();
        for part in self.parts(chain)? {
            let products: Vec<NodeId> = part.map(|index| self.push(Node::Product(index))).collect();
            let dot = if grouped {
                if products.len() < 2 {
                    return Err(AlgorithmError::Indivisible { k: products.len(), by: 2 });
                }
                let even = self.sum(products.iter().copied().step_by(2).collect(), 0);
                let odd = self.sum(products.iter().copied().skip(1).step_by(2).collect(), 0);
                self.sum(vec![even, odd], 1)
            } else {
                self.sum(products, 0)
            };
            d = self.sum(vec![dot, d], last);
        }
        let dot = |rounding| Rule {
            added: Added::Fused(self.fused(fraction_bits, rounding)),
            zero: ZeroSigns::IEEE,
            infinite_operands_first: true,
            normalised: Normalised::No { exponent: None },
        };
        let down = |fraction_bits, far| Alignment { fraction_bits, rounding: Rounding::Down, far };
        let far = c_rz_below.map(|distance| Far { distance, rounding: Rounding::TowardZero });
        let add = Fused {
            alignment: vec![down(dot_fraction_bits, None), down(c_fraction_bits, far)].into(),
            ..self.fused(fraction_bits, Rounding::Down)
        };
        let add = Rule { added: Added::Fused(add), normalised: Normalised::To(round), ..dot(Rounding::Down) };
        let mut rules = vec![dot(Rounding::TowardZero)];
        if grouped {
            rules.push(dot(Rounding::Down));
        }
        rules.push(add);
        let mut model = self.finish(rules, NanRule::Unknown);
        // IV.F, step 2.
        model.product = Product::OverflowsAt { exponent: 128 };
        Ok(model)
    }
}
