//! Models of many shapes, for tests.

use mmaprobe::model::format::{self, Overflow, RoundTo, Subnormals, Tininess};
use mmaprobe::model::tree::{
    Added, Alignment, Beyond, Carry, Exponents, Far, Fused, InputInfinities, InputSubnormals, NanRule,
    NanSource, Node, NodeId, Normalised, Operand, Product, Propagation, Rule, RuleId, Scale, Tree, ZeroSigns,
    ZeroTerms,
};
use mmaprobe::model::{Format, Model, Rounding};

/// Builds a tree from the leaves up.
#[derive(Default)]
pub struct Nodes(Vec<Node>);

impl Nodes {
    fn push(&mut self, node: Node) -> NodeId {
        self.0.push(node);
        self.0.len() - 1
    }

    fn products(&mut self, indices: impl Iterator<Item = usize>) -> Vec<NodeId> {
        indices.map(|k| self.push(Node::Product(k))).collect()
    }

    fn sum(&mut self, children: Vec<NodeId>, rule: RuleId) -> NodeId {
        self.push(Node::Sum { children, rule })
    }
}

fn model(k: usize, factors: Format, nodes: Nodes, rules: Vec<Rule>) -> Model {
    Model {
        k,
        a: Operand::plain(factors),
        b: Operand::plain(factors),
        c: Operand::plain(format::FP32),
        scale: None,
        product: Product::Exact,
        tree: Tree { nodes: nodes.0.into(), rules },
        d: format::FP32,
        nan: NanRule::Unknown,
    }
}

fn truncated() -> Normalised {
    Normalised::To(RoundTo { rounding: Rounding::TowardZero, ..RoundTo::nearest_even(format::FP32) })
}

fn fused(fused: Fused, normalised: Normalised) -> Rule {
    Rule { added: Added::Fused(fused), normalised, ..Rule::ieee(format::FP32) }
}

const OPEN: Normalised = Normalised::No { exponent: None };

/// FDA: one fused sum.
pub fn flat(k: usize) -> Model {
    let mut nodes = Nodes::default();
    let mut children = nodes.products(0..k);
    children.push(nodes.push(Node::Accumulator));
    nodes.sum(children, 0);
    let rule = fused(Fused::uniform(24, Rounding::TowardZero), truncated());
    Model { nan: NanRule::Canonical(0x7fff_ffff), ..model(k, format::BF16, nodes, vec![rule]) }
}

/// CoFDA: fused sums of `group` products each, chained.
pub fn chained(k: usize, group: usize) -> Model {
    let mut nodes = Nodes::default();
    let mut sum = nodes.push(Node::Accumulator);
    for first in (0..k).step_by(group) {
        let mut children = nodes.products(first..first + group);
        children.push(sum);
        sum = nodes.sum(children, 0);
    }
    let mut fused = fused(Fused::uniform(13, Rounding::TowardZero), truncated());
    fused.round_to().unwrap().fraction_bits = 13;
    model(k, format::E4M3, nodes, vec![fused])
}

/// FDRDA: an unnormalised fused dot product, then c, each with a precision of its own.
pub fn two_precisions(k: usize) -> Model {
    let mut nodes = Nodes::default();
    let children = nodes.products(0..k);
    let dot = nodes.sum(children, 0);
    let c = nodes.push(Node::Accumulator);
    nodes.sum(vec![dot, c], 1);
    let join = Fused {
        alignment: vec![
            Alignment { fraction_bits: 31, rounding: Rounding::Down, far: None },
            Alignment { fraction_bits: 24, rounding: Rounding::Down, far: None },
        ]
        .into(),
        exponents: Exponents::Normalised,
        ..Fused::uniform(0, Rounding::Down)
    };
    let rules = vec![
        fused(Fused::uniform(24, Rounding::TowardZero), OPEN),
        fused(join, Normalised::To(RoundTo::nearest_even(format::FP32))),
    ];
    Model {
        product: Product::OverflowsAt { exponent: 128 },
        nan: NanRule::Propagated(Propagation {
            generated: 0xffc0_0000,
            order: [NanSource::Accumulator, NanSource::A, NanSource::B],
            later_first: true,
            quieted: true,
            generated_first: false,
        }),
        ..model(k, format::FP16, nodes, rules)
    }
}

/// CoGFDRDA: even and odd dot products, joined, then c, chained over halves; c is rounded otherwise
/// when far below.
pub fn even_and_odd_dots(k: usize) -> Model {
    let mut nodes = Nodes::default();
    let mut sum = nodes.push(Node::Accumulator);
    for first in [0, k / 2] {
        let even = nodes.products((first..first + k / 2).step_by(2));
        let even = nodes.sum(even, 0);
        let odd = nodes.products((first + 1..first + k / 2).step_by(2));
        let odd = nodes.sum(odd, 0);
        let dot = nodes.sum(vec![even, odd], 1);
        sum = nodes.sum(vec![dot, sum], 2);
    }
    let far = Some(Far { distance: 25, rounding: Rounding::TowardZero });
    let join = Fused {
        alignment: vec![
            Alignment { fraction_bits: 31, rounding: Rounding::Down, far: None },
            Alignment { fraction_bits: 24, rounding: Rounding::Down, far },
        ]
        .into(),
        floor: Some(-126),
        zeros: ZeroTerms::SumsCounted,
        ..Fused::uniform(0, Rounding::Down)
    };
    let mut join = fused(join, Normalised::To(RoundTo::nearest_even(format::FP32)));
    join.infinite_operands_first = true;
    let rules = vec![
        fused(Fused::uniform(24, Rounding::TowardZero), OPEN),
        fused(Fused::uniform(24, Rounding::Down), Normalised::No { exponent: Some(-5) }),
        join,
    ];
    model(k, format::E4M3FNUZ, nodes, rules)
}

/// GDFS: exact sums of blocks, scaled, then one fused sum.
pub fn scaled(k: usize, block: usize) -> Model {
    let mut nodes = Nodes::default();
    let mut children = Vec::new();
    for index in 0..k / block {
        let products = nodes.products(index * block..(index + 1) * block);
        let child = nodes.sum(products, 0);
        children.push(nodes.push(Node::Scaled { child, block: index }));
    }
    children.push(nodes.push(Node::Accumulator));
    nodes.sum(children, 1);
    let exact = Rule { normalised: OPEN, ..Rule::ieee(format::FP32) };
    let rules = vec![exact, fused(Fused::uniform(35, Rounding::TowardZero), truncated())];
    Model { scale: Some(Scale { format: format::UE4M3, block }), ..model(k, format::E2M1, nodes, rules) }
}

/// Two chains from zero over even and odd products, joined, and c added last; everything flushed.
pub fn lanes(k: usize) -> Model {
    let mut nodes = Nodes::default();
    let lanes: Vec<NodeId> = (0..2)
        .map(|lane| {
            let zero = nodes.push(Node::Zero);
            (lane..k).step_by(2).fold(zero, |sum, index| {
                let product = nodes.push(Node::Product(index));
                nodes.sum(vec![sum, product], 0)
            })
        })
        .collect();
    let joined = nodes.sum(lanes, 0);
    let c = nodes.push(Node::Accumulator);
    nodes.sum(vec![c, joined], 0);
    let mut rule = Rule::ieee(format::FP32);
    rule.round_to().unwrap().subnormals =
        Subnormals::Flushed { tiny: Tininess::BeforeRounding, sign_kept: true };
    let flushed =
        |format| Operand { subnormals: InputSubnormals::FlushedToSignedZero, ..Operand::plain(format) };
    let model = model(k, format::BF16, nodes, vec![rule]);
    Model { a: flushed(format::BF16), b: flushed(format::BF16), c: flushed(format::FP32), ..model }
}

/// GPS: rounded products, pairwise sums of groups, chained onto c.
pub fn pairwise(k: usize, group: usize) -> Model {
    let mut nodes = Nodes::default();
    let mut sum = nodes.push(Node::Accumulator);
    for first in (0..k).step_by(group) {
        let mut level = nodes.products(first..first + group);
        while level.len() > 1 {
            level = level.chunks(2).map(|pair| nodes.sum(pair.to_vec(), 0)).collect();
        }
        sum = nodes.sum(vec![sum, level[0]], 0);
    }
    let mut rule = Rule::ieee(format::FP32);
    let round = rule.round_to().unwrap();
    round.subnormals = Subnormals::Flushed { tiny: Tininess::AfterRounding, sign_kept: false };
    let product = Product::Rounded(*round);
    Model {
        product,
        a: Operand { subnormals: InputSubnormals::FlushedToPositiveZero, ..Operand::plain(format::FP16) },
        ..model(k, format::FP16, nodes, vec![rule])
    }
}

/// A chain with a rounding mode of its own in each link, and every way to treat zeros and carries.
pub fn many_rules() -> Model {
    let mut nodes = Nodes::default();
    let mut sum = nodes.push(Node::Accumulator);
    let mut rules = Vec::new();
    for (index, rounding) in Rounding::EVERY.into_iter().enumerate() {
        let product = nodes.push(Node::Product(index));
        sum = nodes.sum(vec![product, sum], index);
        let overflow = [Overflow::Infinity, Overflow::Largest, Overflow::ByRounding][index % 3];
        let round = RoundTo { rounding, overflow, ..RoundTo::nearest_even(format::FP32) };
        let zeros = [ZeroTerms::Ignored, ZeroTerms::SumsCounted, ZeroTerms::Counted][index % 3];
        let beyond = [Beyond::Saturates, Beyond::Wraps, Beyond::MagnitudeWraps][index % 3];
        let carry = [None, Some(Carry { bits: 3, beyond })][(index / 2) % 2];
        let mut rule = fused(
            Fused { zeros, carry, sticky: index % 4 == 3, ..Fused::uniform(20 + index as u32, rounding) },
            Normalised::To(round),
        );
        rule.zero = ZeroSigns {
            negative_zeros_stay: index % 2 == 0,
            cancellation_is_negative: index % 3 == 0,
            underflow_keeps_sign: index % 5 != 0,
        };
        rules.push(rule);
    }
    let plain = model(Rounding::EVERY.len(), format::TF32, nodes, rules);
    Model {
        a: Operand { infinities: InputInfinities::Nan, ..plain.a },
        b: Operand {
            subnormals: InputSubnormals::FlushedToPositiveZero,
            infinities: InputInfinities::Largest,
            ..plain.b
        },
        product: Product::FlushedBelow { exponent: -126, sign_kept: true },
        nan: NanRule::Merged { generated: 0x7fc0_0000 },
        ..plain
    }
}

/// Sums of no repeating kind: each takes a product more than the one before.
pub fn irregular(k: usize) -> Model {
    let mut nodes = Nodes::default();
    let mut sum = nodes.push(Node::Accumulator);
    let mut rest: Vec<usize> = (0..k).rev().collect();
    for size in 1.. {
        if rest.is_empty() {
            break;
        }
        let taken = rest.split_off(rest.len().saturating_sub(size));
        let mut children = nodes.products(taken.into_iter());
        children.insert(0, sum);
        sum = nodes.sum(children, 0);
    }
    model(k, format::FP16, nodes, vec![fused(Fused::uniform(24, Rounding::TowardZero), truncated())])
}

/// A balanced tree over all products.
pub fn balanced(k: usize) -> Model {
    let mut nodes = Nodes::default();
    let mut level = nodes.products(0..k);
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| nodes.sum(pair.to_vec(), 0)).collect();
    }
    let c = nodes.push(Node::Accumulator);
    nodes.sum(vec![level[0], c], 0);
    model(k, format::FP16, nodes, vec![Rule::ieee(format::FP32)])
}

/// One of each.
pub fn all() -> Vec<(&'static str, Model)> {
    let mut all = vec![
        ("fma", Model::chain_of_fma(format::FP64, format::FP64, 1)),
        ("chain", Model::chain_of_fma(format::FP32, format::FP32, 16)),
        ("many rules", many_rules()),
    ];
    for k in [8, 32, 64] {
        all.extend([
            ("flat", flat(k)),
            ("chained", chained(k, k / 4)),
            ("two precisions", two_precisions(k)),
            ("even and odd dots", even_and_odd_dots(k)),
            ("scaled", scaled(k, 4)),
            ("lanes", lanes(k)),
            ("pairwise", pairwise(k, 4)),
            ("irregular", irregular(k)),
            ("balanced", balanced(k)),
        ]);
    }
    all
}
