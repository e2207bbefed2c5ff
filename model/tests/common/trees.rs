//! Random trees with random rules.

use mmaprobe_model::Rounding;
use mmaprobe_model::format::{self, Format, Overflow, RoundTo, Subnormals, Tininess};
use mmaprobe_model::tree::{
    Added, Alignment, Beyond, Carry, Exponents, Far, Fused, InputInfinities, InputSubnormals, Model, NanRule,
    NanSource, Node, Normalised, Operand, Product, Propagation, Rule, Scale, Tree, ZeroSigns, ZeroTerms,
};
use rand::{Rng, RngExt};

pub fn one_of<T: Copy>(choices: &[T], rng: &mut impl Rng) -> T {
    choices[rng.random_range(0..choices.len())]
}

fn rounding(rng: &mut impl Rng) -> Rounding {
    one_of(&Rounding::EVERY, rng)
}

fn round_to(format: Format, rng: &mut impl Rng) -> RoundTo {
    let tiny = one_of(&[Tininess::BeforeRounding, Tininess::AfterRounding, Tininess::Delivered], rng);
    RoundTo {
        format,
        fraction_bits: if rng.random() {
            format.fraction_bits
        } else {
            rng.random_range(0..=format.fraction_bits)
        },
        rounding: rounding(rng),
        subnormals: one_of(&[Subnormals::Kept, Subnormals::Flushed { tiny, sign_kept: rng.random() }], rng),
        overflow: one_of(&[Overflow::Infinity, Overflow::Largest, Overflow::ByRounding], rng),
    }
}

fn fused(rng: &mut impl Rng) -> Fused {
    let alignment = (0..rng.random_range(1..4))
        .map(|_| Alignment {
            fraction_bits: rng.random_range(0..=64) >> rng.random_range(0..3),
            rounding: rounding(rng),
            far: rng
                .random_bool(0.2)
                .then(|| Far { distance: rng.random_range(0..40), rounding: rounding(rng) }),
        })
        .collect();
    Fused {
        alignment,
        exponents: one_of(&[Exponents::Raw, Exponents::Normalised], rng),
        floor: rng.random_bool(0.2).then(|| rng.random_range(-200..200)),
        zeros: one_of(
            &[ZeroTerms::Ignored, ZeroTerms::SumsCounted, ZeroTerms::Counted, ZeroTerms::CountedAsFp32],
            rng,
        ),
        carry: rng.random_bool(0.3).then(|| Carry {
            bits: rng.random_range(0..5),
            beyond: one_of(&[Beyond::Wraps, Beyond::MagnitudeWraps, Beyond::Saturates], rng),
        }),
        sticky: rng.random_bool(0.3),
    }
}

fn rule(format: Option<Format>, rng: &mut impl Rng) -> Rule {
    Rule {
        added: if rng.random_bool(0.3) { Added::Exact } else { Added::Fused(fused(rng)) },
        zero: ZeroSigns {
            negative_zeros_stay: rng.random(),
            cancellation_is_negative: rng.random(),
            underflow_keeps_sign: rng.random(),
        },
        infinite_operands_first: rng.random(),
        normalised: match format {
            Some(format) => Normalised::To(round_to(format, rng)),
            None => Normalised::No { exponent: rng.random_bool(0.2).then(|| rng.random_range(-50..50)) },
        },
    }
}

/// A tree over all products and c: subtrees are joined at random until one is left.
pub fn model(rng: &mut impl Rng) -> Model {
    use format::*;
    let k: usize = rng.random_range(1..7);
    let factors = one_of(
        &[
            [FP64, FP64],
            [FP32, FP32],
            [TF32, TF32],
            [FP16, FP16],
            [FP16, BF16],
            [BF16, BF16],
            [E4M3, E5M2],
            [E4M3FNUZ, E5M2FNUZ],
            [E3M2, E2M3],
            [E2M1, E2M1],
        ],
        rng,
    );
    let d = one_of(&[FP64, FP32, FP32, FP16, BF16, E5M2, E4M3, E4M3FNUZ, E2M1], rng);
    let c = if rng.random() { d } else { one_of(&[FP64, FP32, FP16, BF16, E4M3], rng) };
    let scale = rng
        .random_bool(0.3)
        .then(|| Scale { format: one_of(&[UE8M0, UE4M3, E4M3, E5M2], rng), block: rng.random_range(1..=k) });
    let mut nodes: Vec<Node> = (0..k).map(Node::Product).collect();
    nodes.push(Node::Accumulator);
    if rng.random_bool(0.2) {
        nodes.push(Node::Zero);
    }
    let mut open: Vec<usize> = (0..nodes.len()).collect();
    let mut rules = Vec::new();
    loop {
        if let Some(scale) = scale
            && rng.random_bool(0.3)
        {
            let child = open.swap_remove(rng.random_range(0..open.len()));
            let block = rng.random_range(0..k.div_ceil(scale.block));
            open.push(nodes.len());
            nodes.push(Node::Scaled { child, block });
        }
        let arity = rng.random_range(1..=open.len());
        let children = (0..arity).map(|_| open.swap_remove(rng.random_range(0..open.len()))).collect();
        let is_root = open.is_empty();
        let format = if is_root {
            Some(d)
        } else if rng.random() {
            Some(one_of(&[FP64, FP32, FP32, FP16, BF16, E4M3, E4M3FNUZ, E2M1, UE4M3, UE8M0], rng))
        } else {
            None
        };
        rules.push(rule(format, rng));
        open.push(nodes.len());
        nodes.push(Node::Sum { children, rule: rules.len() - 1 });
        if is_root {
            break;
        }
    }
    let flushing = [
        InputSubnormals::Kept,
        InputSubnormals::Kept,
        InputSubnormals::FlushedToPositiveZero,
        InputSubnormals::FlushedToSignedZero,
    ];
    use InputInfinities::{Kept, Largest, Nan};
    let mut operand = |format| Operand {
        format,
        subnormals: one_of(&flushing, rng),
        infinities: one_of(&[Kept, Kept, Kept, Nan, Largest], rng),
    };
    let (a, b, c) = (operand(factors[0]), operand(factors[1]), operand(c));
    let product = match rng.random_range(0..5) {
        0 => Product::Rounded(round_to(one_of(&[FP64, FP32, FP16, BF16, E4M3, E2M1], rng), rng)),
        1 => Product::OverflowsAt { exponent: rng.random_range(-5..20) << rng.random_range(0..4) },
        2 => Product::FlushedBelow {
            exponent: rng.random_range(-20..5) << rng.random_range(0..4),
            sign_kept: rng.random(),
        },
        _ => Product::Exact,
    };
    Model { k, a, b, c, scale, product, tree: Tree { nodes: nodes.into(), rules }, d, nan: NanRule::Unknown }
}

/// The model with one thing different, mostly a rule; with the same tree and formats.
pub fn neighbour(model: &Model, rng: &mut impl Rng) -> Model {
    let mut other = model.clone();
    let kept = InputSubnormals::Kept;
    match rng.random_range(0..8) {
        0 => {
            other.product =
                Product::FlushedBelow { exponent: rng.random_range(-20..5), sign_kept: rng.random() }
        }
        1 => other.a.subnormals = one_of(&[kept, InputSubnormals::FlushedToSignedZero], rng),
        2 => other.c.subnormals = one_of(&[kept, InputSubnormals::FlushedToPositiveZero], rng),
        _ => {
            let index = rng.random_range(0..other.tree.rules.len());
            let own = &mut other.tree.rules[index];
            let fresh = match &own.normalised {
                Normalised::To(round) => rule(Some(round.format), rng),
                Normalised::No { .. } => rule(None, rng),
            };
            match rng.random_range(0..4) {
                0 => own.added = fresh.added,
                1 => own.normalised = fresh.normalised,
                2 => own.zero = fresh.zero,
                _ => *own = fresh,
            }
        }
    }
    other
}

/// A rule for NaNs.
pub fn nan_rule(d: &Format, rng: &mut impl Rng) -> NanRule {
    use NanSource::{A, Accumulator, B};
    // Any pattern: in a format without NaN it stands for a number.
    let generated = rng.random::<u64>() & d.mask();
    let orders = [[A, B, Accumulator], [A, Accumulator, B], [B, A, Accumulator], [Accumulator, B, A]];
    match rng.random_range(0..4) {
        0 => NanRule::Unknown,
        1 => NanRule::Canonical(generated),
        2 => NanRule::Merged { generated },
        _ => NanRule::Propagated(Propagation {
            generated,
            order: one_of(&orders, rng),
            later_first: rng.random(),
            quieted: rng.random(),
            generated_first: rng.random(),
        }),
    }
}
