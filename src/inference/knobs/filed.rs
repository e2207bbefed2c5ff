//! Fixed exponents that sums are handed on under.

use mmaprobe_model::tree::{Added, Exponents, Fused, Model, Node, NodeId, Normalised, RuleId};

use super::joint::rules;
use super::rule::{MOST_FRACTION_BITS, MOST_OPEN_EXPONENT};
use super::{Knob, Scope, Turned};

/// Models in which sums that are handed on under a fixed exponent have another one, and those that they are handed to
/// keep as many more bits, or as many fewer: where that exponent is the largest, the two together make no difference. And
/// such in which what was the least exponent of a sum is that under which a sum is handed to it.
pub fn turn_filed(model: &Model, scope: Scope) -> Vec<Turned> {
    let mut turned = with_floors_filed(model, scope);
    for (rule, own) in rules(model, scope) {
        let Normalised::No { exponent: Some(current) } = own.normalised else { continue };
        for exponent in -MOST_OPEN_EXPONENT..=MOST_OPEN_EXPONENT {
            let mut other = model.clone();
            let more = exponent - current;
            let mut is_possible = more != 0;
            for (index, rule_of_other) in other.tree.rules.iter_mut().enumerate() {
                if index == rule {
                    rule_of_other.normalised = Normalised::No { exponent: Some(exponent) };
                } else if let Added::Fused(fused) = &mut rule_of_other.added {
                    for alignment in &mut fused.alignment {
                        let bits = alignment.fraction_bits as i32 + more;
                        is_possible &= (0..=MOST_FRACTION_BITS as i32).contains(&bits);
                        alignment.fraction_bits = bits.max(0) as u32;
                    }
                }
            }
            if is_possible {
                let knob = Knob { what: "fixed exponent and fraction bits".to_string(), rule: Some(rule) };
                let choice = format!("{more:+} bits beside 2^{exponent}");
                turned.push(Turned { knob, choice, model: other });
            }
        }
    }
    turned
}

/// Models in which sums that are handed on as they are to one that aligns its summands to an exponent not below some least
/// one are handed on under that exponent instead, all of those that follow a rule, and the other way round; with either kind
/// of exponents. Until what is handed on is above it, the two make no difference.
fn with_floors_filed(model: &Model, scope: Scope) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (rule, own) in rules(model, scope) {
        let Added::Fused(fused) = &own.added else { continue };
        for inside in rules_inside(model, rule) {
            let (floor, filed) = match (fused.floor, model.tree.rules[inside].normalised) {
                (Some(least), Normalised::No { exponent: None }) => (None, Some(least)),
                (None, Normalised::No { exponent: Some(fixed) }) => (Some(fixed), None),
                _ => continue,
            };
            for exponents in [Exponents::Raw, Exponents::Normalised] {
                let mut other = model.clone();
                other.tree.rules[rule].added = Added::Fused(Fused { floor, exponents, ..fused.clone() });
                other.tree.rules[inside].normalised = Normalised::No { exponent: filed };
                let kind = if exponents == Exponents::Raw { "raw" } else { "normalised" };
                let what = "least and fixed exponents, and their kind".to_string();
                let choice = match (filed, floor) {
                    (Some(fixed), _) => format!("{kind}, a sum inside under 2^{fixed}"),
                    (None, Some(least)) => format!("{kind}, not below 2^{least}"),
                    (None, None) => continue,
                };
                turned.push(Turned { knob: Knob { what, rule: Some(rule) }, choice, model: other });
            }
        }
    }
    turned
}

/// The rules of the sums that are summands of those of a rule, but for that rule.
fn rules_inside(model: &Model, rule: RuleId) -> Vec<RuleId> {
    let nodes = &model.tree.nodes;
    let rule_of = |mut node: NodeId| loop {
        match &nodes[node] {
            Node::Scaled { child, .. } => node = *child,
            Node::Sum { rule, .. } => return Some(*rule),
            _ => return None,
        }
    };
    let of_rule = nodes.iter().filter(|node| matches!(node, Node::Sum { rule: of, .. } if *of == rule));
    let mut inside: Vec<RuleId> = of_rule
        .flat_map(|node| node.children().iter().copied())
        .filter_map(rule_of)
        .filter(|&inside| inside != rule)
        .collect();
    inside.sort_unstable();
    inside.dedup();
    inside
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32};
    use mmaprobe_model::tree::Rule;

    use super::*;

    /// c and the sum of two products, which is handed on under this exponent, aligned to one not below this.
    fn model(filed: Option<i32>, floor: Option<i32>, exponents: Exponents) -> Model {
        let mut model = Model::chain_of_fma(FP16, FP32, 2);
        let products = (0..2).map(Node::Product);
        let sum = |children: Vec<usize>, rule| Node::Sum { children, rule };
        let sums = [sum(vec![0, 1], 1), Node::Accumulator, sum(vec![3, 2], 0)];
        model.tree.nodes = products.chain(sums).collect::<Vec<_>>().into();
        let normalised = Normalised::No { exponent: filed };
        model.tree.rules.push(Rule { normalised, ..model.tree.rules[0].clone() });
        let fused = Fused { floor, exponents, ..Fused::uniform(30, Rounding::TowardZero) };
        model.tree.rules[0].added = Added::Fused(fused);
        assert_eq!(model.check(), Ok(()));
        model
    }

    #[test]
    fn the_least_exponent_of_a_sum_may_be_that_of_one_inside() {
        let least = model(None, Some(6), Exponents::Normalised);
        let filed = model(Some(6), None, Exponents::Raw);
        for (from, to) in [(&least, &filed), (&filed, &least)] {
            assert!(turn_filed(from, Scope::All).iter().any(|turned| turned.model == *to));
        }
        let neither = model(None, None, Exponents::Raw);
        assert!(turn_filed(&neither, Scope::All).is_empty());
    }
}
