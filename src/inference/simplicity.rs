//! Which of two models that explain the same answers is the simpler one.
//!
//! Hardware does things for a reason: a limit, an exception or a narrower width is only believed where
//! an answer asks for it.

use mmaprobe_model::Rounding;
use mmaprobe_model::format::{self, RoundTo, Subnormals};
use mmaprobe_model::tree::{
    Added, InputInfinities, InputSubnormals, Model, NanRule, Node, Normalised, Product, Rule, ZeroSigns,
    ZeroTerms,
};

/// How much a model says beyond "an exact sum, rounded once": the number of its exceptions.
pub fn exceptions(model: &Model) -> u32 {
    let [a, b, c] = [model.a.subnormals, model.b.subnormals, model.c.subnormals];
    // Where factors are flushed, so are summands, unless an answer says otherwise.
    let usual = if a == b { a } else { InputSubnormals::Kept };
    let flushed =
        [a, b].iter().filter(|&&input| input != InputSubnormals::Kept).count() as u32 + u32::from(c != usual);
    let infinities = [model.a.infinities, model.b.infinities, model.c.infinities];
    let changed = infinities.iter().filter(|&&input| input != InputInfinities::Kept).count() as u32;
    let product = match &model.product {
        Product::Exact => 0,
        Product::OverflowsAt { .. } | Product::FlushedBelow { .. } => 2,
        Product::Rounded(round) => 2 + of_rounding(round),
    };
    let zeros = model.tree.nodes.iter().filter(|node| matches!(node, Node::Zero)).count() as u32;
    let rules: u32 = model.tree.rules.iter().map(|rule| 4 + of_rule(rule)).sum();
    let nan = u32::from(model.nan == NanRule::Unknown);
    let uneven = u32::from(a != b);
    2 * (flushed + changed) + uneven + product + zeros.min(1) + rules + nan
}

/// What is preferred of models that explain the same answers, the least: few [exceptions], then few nodes (a sum of another
/// sum alone is one more, and so is a +0 to start from), and then products that are rounded as d is.
pub fn plainness(model: &Model) -> (u32, usize, bool) {
    let last = model.tree.nodes.last().and_then(|node| match node {
        Node::Sum { rule, .. } => Some(&model.tree.rules[*rule].normalised),
        _ => None,
    });
    let is_odd = match (&model.product, last) {
        (Product::Rounded(product), Some(Normalised::To(last))) => product.rounding != last.rounding,
        _ => false,
    };
    (exceptions(model), model.tree.nodes.len(), is_odd)
}

fn of_rule(rule: &Rule) -> u32 {
    let added = match &rule.added {
        Added::Exact => 0,
        Added::Fused(fused) => {
            let alignments: u32 = fused
                .alignment
                .iter()
                .map(|alignment| {
                    let plain = matches!(alignment.rounding, Rounding::TowardZero | Rounding::Down);
                    2 + u32::from(!plain) + 2 * u32::from(alignment.far.is_some())
                })
                .sum();
            let zeros = u32::from(!matches!(fused.zeros, ZeroTerms::Ignored | ZeroTerms::SumsCounted));
            let limits = u32::from(fused.floor.is_some()) + u32::from(fused.carry.is_some());
            alignments + zeros + 2 * (limits + u32::from(fused.sticky))
        }
    };
    let signs = u32::from(rule.zero != ZeroSigns::IEEE);
    let normalised = match &rule.normalised {
        Normalised::No { exponent } => u32::from(exponent.is_some()),
        Normalised::To(round) => 1 + of_rounding(round),
    };
    added + signs + normalised + u32::from(rule.infinite_operands_first)
}

fn of_rounding(round: &RoundTo) -> u32 {
    let narrower = u32::from(round.fraction_bits != round.format.fraction_bits && !is_tf32(round));
    let unusual = u32::from(!matches!(round.rounding, Rounding::NearestTiesToEven | Rounding::TowardZero));
    let flushed = u32::from(round.subnormals != Subnormals::Kept);
    3 * narrower + unusual + flushed + u32::from(round.overflow != mmaprobe_model::format::Overflow::Infinity)
}

/// Whether a result is rounded to tf32: fp32's exponents, with fp16's precision.
fn is_tf32(round: &RoundTo) -> bool {
    round.fraction_bits == format::TF32.fraction_bits
        && round.format.exponent_bits == format::TF32.exponent_bits
}
