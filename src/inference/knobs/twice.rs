//! The result is rounded by way of another number.

use mmaprobe_model::Rounding;
use mmaprobe_model::format::RoundTo;
use mmaprobe_model::tree::{Model, Node, Normalised, Rule};
use mmaprobe_probes::Signature;

use super::rule::intermediate;
use super::words::{overflow_words, overflows};
use super::{Knob, Turned};

/// The model with its result rounded once more, which changes nothing, and those in which the first of the two
/// roundings is another one. `None` where it is rounded twice already.
pub fn turn_twice(model: &Model, signature: &Signature) -> Option<(Model, Vec<Turned>)> {
    let mut doubled = model.clone();
    round_twice(&mut doubled, true);
    if doubled == *model {
        return None;
    }
    // The first rounding gets a rule of its own.
    let root = model.tree.nodes.len() - 1;
    let Node::Sum { rule, .. } = &mut doubled.tree.nodes[root] else { return None };
    let (own, first) = (*rule, doubled.tree.rules.len());
    *rule = first;
    doubled.tree.rules.push(doubled.tree.rules[own].clone());
    let Normalised::To(before) = doubled.tree.rules[first].normalised else { return None };
    let mut turned = Vec::new();
    for format in intermediate(signature) {
        for fraction_bits in 0..=format.fraction_bits {
            for rounding in Rounding::EVERY {
                let round = RoundTo { format, fraction_bits, rounding, ..before };
                // What has less range than d shows its end in ordinary numbers.
                let has_less_range = format.max_exponent() < signature.d.max_exponent();
                for overflow in if has_less_range { overflows(&round) } else { vec![round.overflow] } {
                    let mut other = doubled.clone();
                    other.tree.rules[first].normalised = Normalised::To(RoundTo { overflow, ..round });
                    let knob = Knob { what: "rounding before the last".to_string(), rule: Some(first) };
                    let overflow = overflow_words(overflow);
                    let choice =
                        format!("{rounding} to {fraction_bits} bits of {format}, overflow {overflow}");
                    turned.push(Turned { knob, choice, model: other });
                }
            }
        }
    }
    Some((doubled, turned))
}

/// Rounds the result once more, by a rule of its own that first is as the root's, or no more.
pub(super) fn round_twice(model: &mut Model, twice: bool) {
    let Some(Node::Sum { children, rule }) = model.tree.nodes.last().cloned() else { return };
    let is_twice = children.len() == 1 && matches!(model.tree.nodes[children[0]], Node::Sum { .. });
    if twice && !is_twice {
        let Normalised::To(round) = model.tree.rules[rule].normalised else { return };
        let root = model.tree.nodes.len() - 1;
        let again = Rule { normalised: Normalised::To(round), ..Rule::ieee(model.d) };
        model.tree.rules.push(again);
        model.tree.nodes.push(Node::Sum { children: vec![root], rule: model.tree.rules.len() - 1 });
    } else if !twice && is_twice {
        let single = matches!(model.tree.nodes[children[0]], Node::Sum { rule, .. }
            if matches!(model.tree.rules[rule].normalised, Normalised::To(round) if round.format == model.d));
        if single {
            model.tree.nodes.pop();
        }
    }
}
