//! Sums of one other sum alone.
//!
//! Such a sum rounds a second time what was rounded before, or for the first time what was left open. The latter is one
//! sum, written as two; and so is the former where one of the roundings changes nothing.

use mmaprobe_model::tree::{Model, Node, Rule};

use super::{Knob, Turned};

/// Models in which a sum that adds one other alone is left out: that one is rounded as either of them was, and its zeros
/// have the signs of either.
pub fn turn_lone(model: &Model) -> Vec<Turned> {
    let nodes = &model.tree.nodes;
    let rule_of = |id: usize| match &nodes[id] {
        Node::Sum { children, rule } => Some((children, &model.tree.rules[*rule])),
        _ => None,
    };
    let mut turned: Vec<Turned> = Vec::new();
    for id in 0..nodes.len() {
        let Some(([inner], outside)) = rule_of(id).map(|(children, rule)| (&children[..], rule)) else {
            continue;
        };
        let Some((summands, inside)) = rule_of(*inner) else { continue };
        for normalised in [outside.normalised, inside.normalised] {
            for zero in [outside.zero, inside.zero] {
                let mut other = model.clone();
                let rule = other.tree.rules.len();
                other.tree.rules.push(Rule { normalised, zero, ..inside.clone() });
                other.tree.nodes[id] = Node::Sum { children: summands.clone(), rule };
                // The sum inside is no part of the tree any more.
                let other = other.canonical();
                if other.check().is_ok() && turned.iter().all(|known| known.model != other) {
                    let knob = Knob { what: "sums of one sum alone".to_string(), rule: None };
                    turned.push(Turned { knob, choice: "as one sum".to_string(), model: other });
                }
            }
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32, RoundTo};
    use mmaprobe_model::tree::{Added, Fused, Normalised, Tree};

    use super::*;

    #[test]
    fn a_sum_that_is_left_open_and_rounded_alone_is_one_fused_sum() {
        let inside = Rule {
            added: Added::Fused(Fused::uniform(25, Rounding::TowardZero)),
            normalised: Normalised::No { exponent: None },
            ..Rule::ieee(FP32)
        };
        let toward_zero = RoundTo { rounding: Rounding::TowardZero, ..RoundTo::nearest_even(FP32) };
        let outside = Rule { normalised: Normalised::To(toward_zero), ..Rule::ieee(FP32) };
        let summands = [Node::Accumulator, Node::Product(0), Node::Product(1)];
        let mut two = Model::chain_of_fma(FP16, FP32, 2);
        let sum = |children, rule| Node::Sum { children, rule };
        let nodes = [&summands[..], &[sum(vec![0, 1, 2], 0), sum(vec![3], 1)]].concat();
        two.tree = Tree { nodes: nodes.into(), rules: vec![inside.clone(), outside.clone()] };
        let turned = turn_lone(&two);
        let one = Rule { normalised: outside.normalised, ..inside };
        let nodes = [&summands[..], &[sum(vec![0, 1, 2], 0)]].concat();
        assert_eq!(turned.len(), 1, "{turned:?}");
        assert_eq!(turned[0].model.tree, Tree { nodes: nodes.into(), rules: vec![one] });
        assert!(turn_lone(&turned[0].model).is_empty());
    }
}
