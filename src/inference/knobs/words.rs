//! What becomes of results at either end of a format's range, and how that and other things are said.

use mmaprobe_model::Rounding;
use mmaprobe_model::format::{Overflow, RoundTo, Subnormals, Tininess};
use mmaprobe_model::tree::{Model, Node, NodeId, RuleId, ZeroSigns};

/// What can become of results below the normal range.
pub(super) fn all_subnormals() -> Vec<Subnormals> {
    let mut all = vec![Subnormals::Kept];
    for tiny in [Tininess::AfterRounding, Tininess::BeforeRounding, Tininess::Delivered] {
        for sign_kept in [true, false] {
            all.push(Subnormals::Flushed { tiny, sign_kept });
        }
    }
    all
}

/// A flush, or none, in words.
pub(super) fn subnormal_words(subnormals: Subnormals) -> String {
    match subnormals {
        Subnormals::Kept => "kept".to_string(),
        Subnormals::Flushed { tiny, sign_kept } => {
            let when = match tiny {
                Tininess::BeforeRounding => "tiny before rounding",
                Tininess::AfterRounding => "tiny after rounding",
                Tininess::Delivered => "subnormal once rounded",
            };
            let zero = if sign_kept { "a zero of its sign" } else { "+0" };
            format!("flushed to {zero} if {when}")
        }
    }
}

/// Signs of zeros in words.
pub(super) fn sign_words(zero: ZeroSigns) -> String {
    format!(
        "{}; x − x is {}; underflow {}",
        if zero.negative_zeros_stay { "−0 − 0 is −0" } else { "−0 − 0 is +0" },
        if zero.cancellation_is_negative { "−0" } else { "+0" },
        if zero.underflow_keeps_sign { "keeps its sign" } else { "gives +0" },
    )
}

/// Summands by which a sum is named, at most.
const NAMED: usize = 3;

/// The first sum that is added by a rule, by what it adds.
pub(super) fn sum_words(model: &Model, rule: RuleId) -> String {
    let nodes = &model.tree.nodes;
    let summand = |&id: &NodeId| {
        let unscaled = match nodes[id] {
            Node::Scaled { child, .. } => child,
            _ => id,
        };
        match &nodes[unscaled] {
            Node::Product(k) => format!("p{k}"),
            Node::Accumulator => "c".to_string(),
            Node::Zero => "+0".to_string(),
            Node::Scaled { .. } | Node::Sum { .. } => "a sum".to_string(),
        }
    };
    let children = nodes.iter().find_map(|node| match node {
        Node::Sum { children, rule: own } if *own == rule => Some(children),
        _ => None,
    });
    let mut summands: Vec<String> = children.into_iter().flatten().take(NAMED + 1).map(summand).collect();
    if summands.len() > NAMED {
        summands[NAMED] = "…".to_string();
    }
    format!("the sum of {}", summands.join(", "))
}

/// An overflow in words.
pub(super) fn overflow_words(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::Infinity => "to infinity",
        Overflow::Largest => "to the largest number",
        Overflow::ByRounding => "as the rounding mode says",
    }
}

/// What can become of results that are too large, if it makes a difference.
pub(super) fn overflows(round: &RoundTo) -> Vec<Overflow> {
    // Rounding to nearest, or away from zero, always leads to infinity; RZ never does.
    let leads_back = matches!(round.rounding, Rounding::Up | Rounding::Down);
    let mut all = vec![Overflow::Infinity, Overflow::Largest];
    if leads_back || round.overflow == Overflow::ByRounding {
        all.push(Overflow::ByRounding);
    }
    all
}
