//! The nine published algorithms (MMA-Sim paper, section IV) as sum trees.
//!
//! Where the paper is silent: NVIDIA's sums never are −0 unless a negative sum rounds to zero; AMD's
//! are −0 if all summands are.

use mmaprobe_model::Rounding;
use mmaprobe_model::format::{self, Format, RoundTo, Subnormals, Tininess};
use mmaprobe_model::tree::{
    Added, Alignment, Far, Fused, InputSubnormals, Model, NanRule, Node, NodeId, Normalised, Operand,
    Product, Rule, RuleId, Scale, Tree, ZeroSigns, ZeroTerms,
};

pub const NO_NEGATIVE_ZERO: ZeroSigns =
    ZeroSigns { negative_zeros_stay: false, cancellation_is_negative: false, underflow_keeps_sign: true };

pub const AMD_NAN: u64 = 0x7fc0_0000;

pub fn nvidia_nan(d: &Format) -> u64 {
    if d.name == "fp16" { 0x7fff } else { 0x7fff_ffff }
}

/// Truncated to `fraction_bits`, numbers of 2^128 or more being infinite: NVIDIA's fp32 results.
pub fn truncated(fraction_bits: u32) -> RoundTo {
    RoundTo { fraction_bits, rounding: Rounding::TowardZero, ..RoundTo::nearest_even(format::FP32) }
}

struct Builder {
    nodes: Vec<Node>,
}

impl Builder {
    fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn sum(&mut self, children: Vec<NodeId>, rule: RuleId) -> NodeId {
        self.add(Node::Sum { children, rule })
    }

    fn product(&mut self, k: usize) -> NodeId {
        self.add(Node::Product(k))
    }
}

fn start() -> (Builder, NodeId) {
    (Builder { nodes: vec![Node::Accumulator] }, 0)
}

fn fused(fraction_bits: u32, rounding: Rounding) -> Fused {
    // Step 3 of FDA takes the largest exponent of all summands; zeros are not excepted.
    Fused { zeros: ZeroTerms::Counted, ..Fused::uniform(fraction_bits, rounding) }
}

fn model(factors: [Format; 2], c: Format, k: usize, builder: Builder, rules: Vec<Rule>, d: Format) -> Model {
    Model {
        k,
        a: Operand::plain(factors[0]),
        b: Operand::plain(factors[1]),
        c: Operand::plain(c),
        scale: None,
        product: Product::Exact,
        tree: Tree { nodes: builder.nodes, rules },
        d,
        nan: NanRule::Canonical(nvidia_nan(&d)),
    }
}

/// Section IV.A.
pub fn sfma(factors: Format, accumulator: Format, k: usize) -> Model {
    let nan = if accumulator.name == "fp64" { 0x7ff8_0000_0000_0000 } else { AMD_NAN };
    Model { nan: NanRule::Canonical(nan), ..Model::chain_of_fma(factors, accumulator, k) }
}

/// Section IV.B.
pub fn gps(factors: Format, k: usize, group: usize) -> Model {
    fn pairwise(builder: &mut Builder, products: std::ops::Range<usize>) -> NodeId {
        if products.len() == 1 {
            return builder.product(products.start);
        }
        let middle = products.start + products.len() / 2;
        let low = pairwise(builder, products.start..middle);
        let high = pairwise(builder, middle..products.end);
        builder.sum(vec![low, high], 0)
    }
    let (mut builder, mut d) = start();
    for first in (0..k).step_by(group) {
        let sum = pairwise(&mut builder, first..first + group);
        d = builder.sum(vec![d, sum], 0);
    }
    let flushed = RoundTo {
        subnormals: Subnormals::Flushed { tiny: Tininess::Delivered, sign_kept: true },
        ..RoundTo::nearest_even(format::FP32)
    };
    let rule = Rule { normalised: Normalised::To(flushed), ..Rule::ieee(format::FP32) };
    let operand = |format| Operand { format, subnormals: InputSubnormals::FlushedToPositiveZero };
    Model {
        a: operand(factors),
        b: operand(factors),
        c: operand(format::FP32),
        product: Product::Rounded(flushed),
        nan: NanRule::Canonical(AMD_NAN),
        ..model([factors; 2], format::FP32, k, builder, vec![rule], format::FP32)
    }
}

/// Sections IV.C and IV.D: `links` FDA operations in a chain.
pub fn fda(factors: [Format; 2], c: Format, k: usize, links: usize, f: u32, to: RoundTo) -> Model {
    let (mut builder, mut d) = start();
    for link in 0..links {
        let mut children = vec![d];
        children.extend((link * k / links..(link + 1) * k / links).map(|index| builder.product(index)));
        d = builder.sum(children, 0);
    }
    let rule = Rule {
        added: Added::Fused(fused(f, Rounding::TowardZero)),
        zero: NO_NEGATIVE_ZERO,
        infinite_operands_first: false,
        normalised: Normalised::To(to),
    };
    model(factors, c, k, builder, vec![rule], to.format)
}

/// Section IV.C, "Scale factor": one UE8M0 scale for each 32 products.
pub fn scaled_fda(factors: [Format; 2], k: usize, f: u32) -> Model {
    let (mut builder, c) = start();
    let mut children = vec![c];
    for index in 0..k {
        let child = builder.product(index);
        children.push(builder.add(Node::Scaled { child, block: index / 32 }));
    }
    builder.sum(children, 0);
    let plain = fda(factors, format::FP32, k, 1, f, truncated(23));
    Model {
        scale: Some(Scale { format: format::UE8M0, block: 32 }),
        tree: Tree { nodes: builder.nodes, ..plain.tree },
        ..plain
    }
}

/// Section IV.E.
pub fn gdfs(scale: Format, block: usize) -> Model {
    let (mut builder, c) = start();
    let mut children = vec![];
    for group in 0..4 {
        let products = (16 * group..16 * (group + 1)).map(|index| builder.product(index)).collect();
        let child = builder.sum(products, 0);
        children.push(builder.add(Node::Scaled { child, block: 16 * group / block }));
    }
    children.push(c);
    builder.sum(children, 1);
    // Step 4: a scaled group's exponent is that of its scales alone.
    let group = Rule {
        added: Added::Exact,
        zero: NO_NEGATIVE_ZERO,
        infinite_operands_first: false,
        normalised: Normalised::No { exponent: Some(0) },
    };
    let last = Rule {
        added: Added::Fused(fused(35, Rounding::TowardZero)),
        normalised: Normalised::To(truncated(23)),
        ..group.clone()
    };
    let rules = vec![group, last];
    Model {
        scale: Some(Scale { format: scale, block }),
        ..model([format::E2M1; 2], format::FP32, 64, builder, rules, format::FP32)
    }
}

/// Sections IV.F to IV.I: `links` FDRDA or (`grouped`) GFDRDA operations in a chain.
pub fn fdrda(factors: [Format; 2], k: usize, links: usize, grouped: bool) -> Model {
    let (mut builder, mut d) = start();
    for link in 0..links {
        let products: Vec<NodeId> =
            (link * k / links..(link + 1) * k / links).map(|index| builder.product(index)).collect();
        let dot = if grouped {
            let even = builder.sum(products.iter().copied().step_by(2).collect(), 0);
            let odd = builder.sum(products.iter().copied().skip(1).step_by(2).collect(), 0);
            builder.sum(vec![even, odd], 1)
        } else {
            builder.sum(products, 0)
        };
        d = builder.sum(vec![dot, d], 2);
    }
    let dot = |rounding| Rule {
        added: Added::Fused(fused(24, rounding)),
        zero: ZeroSigns::IEEE,
        infinite_operands_first: true,
        normalised: Normalised::No { exponent: None },
    };
    let down = |fraction_bits, far| Alignment { fraction_bits, rounding: Rounding::Down, far };
    let far = grouped.then_some(Far { distance: 25, rounding: Rounding::TowardZero });
    let last = Rule {
        added: Added::Fused(Fused {
            alignment: vec![down(31, None), down(24, far)],
            ..fused(24, Rounding::Down)
        }),
        normalised: Normalised::To(RoundTo::nearest_even(format::FP32)),
        ..dot(Rounding::Down)
    };
    Model {
        product: Product::OverflowsAt { exponent: 128 },
        nan: NanRule::Canonical(AMD_NAN),
        ..model(
            factors,
            format::FP32,
            k,
            builder,
            vec![dot(Rounding::TowardZero), dot(Rounding::Down), last],
            format::FP32,
        )
    }
}

/// All K + 1 summands in one node, added exactly.
pub fn exact_fp64_sum(k: usize) -> Model {
    let (mut builder, c) = start();
    let mut children = vec![c];
    children.extend((0..k).map(|index| builder.product(index)));
    builder.sum(children, 0);
    Model {
        nan: NanRule::Canonical(0x7ff8_0000_0000_0000),
        ..model([format::FP64; 2], format::FP64, k, builder, vec![Rule::ieee(format::FP64)], format::FP64)
    }
}
