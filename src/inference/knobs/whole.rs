//! Turns of the whole tree: what is rounded twice, and where sums start.

use mmaprobe_model::Rounding;
use mmaprobe_model::format::RoundTo;
use mmaprobe_model::tree::{Model, Node, NodeId, Normalised, Rule};
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

/// Puts a +0 among the summands of each sum of products alone, or takes it away: its only effect is on
/// the sign of a zero sum. It comes last, so that the summands keep their places.
pub(super) fn start_sums(model: &mut Model, from_zero: bool) {
    let nodes = std::mem::take(&mut model.tree.nodes);
    let mut moved = Vec::with_capacity(nodes.len());
    let is_product = |id: NodeId| match &nodes[id] {
        Node::Product(_) => true,
        Node::Scaled { child, .. } => matches!(nodes[*child], Node::Product(_)),
        _ => false,
    };
    let is_zero = |id: NodeId| matches!(nodes[id], Node::Zero);
    let of_products = |children: &[NodeId]| {
        children.iter().all(|&id| is_product(id) || is_zero(id)) && children.iter().any(|&id| is_product(id))
    };
    for node in &nodes {
        let copied = match node {
            Node::Sum { children, rule } => {
                let starts_here = of_products(children) && children.len() > 1;
                let mut kept: Vec<NodeId> = children
                    .iter()
                    .filter(|&&id| !(starts_here && is_zero(id)))
                    .map(|&id| moved[id])
                    .collect();
                if starts_here && from_zero {
                    model.tree.nodes.push(Node::Zero);
                    kept.push(model.tree.nodes.len() - 1);
                }
                Node::Sum { children: kept, rule: *rule }
            }
            Node::Scaled { child, block } => Node::Scaled { child: moved[*child], block: *block },
            leaf => leaf.clone(),
        };
        // A zero that nothing starts from any more would be no part of the tree.
        let is_dropped = |id: usize| {
            nodes.iter().any(|node| matches!(node, Node::Sum { children, .. } if children.contains(&id) && of_products(children) && children.len() > 1))
        };
        if matches!(copied, Node::Zero) && is_dropped(moved.len()) {
            moved.push(NodeId::MAX);
            continue;
        }
        model.tree.nodes.push(copied);
        moved.push(model.tree.nodes.len() - 1);
    }
}

/// How a sum of two products is added: at once, or one after the other to +0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairs {
    AtOnce,
    EarlierFirst,
    LaterFirst,
}

/// Two products that are added at once, or one after the other to +0.
struct Pair {
    /// Their sum.
    sum: NodeId,
    first: NodeId,
    second: NodeId,
    is_chain: bool,
}

fn pair_at(nodes: &[Node], sum: NodeId) -> Option<Pair> {
    let is_product = |id: NodeId| match &nodes[id] {
        Node::Product(_) => true,
        Node::Scaled { child, .. } => matches!(nodes[*child], Node::Product(_)),
        _ => false,
    };
    let Node::Sum { children, .. } = &nodes[sum] else { return None };
    let &[one, second] = children.as_slice() else { return None };
    if !is_product(second) {
        return None;
    }
    match &nodes[one] {
        Node::Sum { children, .. } => match children.as_slice() {
            &[zero, first] if matches!(nodes[zero], Node::Zero) && is_product(first) => {
                Some(Pair { sum, first, second, is_chain: true })
            }
            _ => None,
        },
        _ if is_product(one) => Some(Pair { sum, first: one, second, is_chain: false }),
        _ => None,
    }
}

impl Pair {
    /// How it is added.
    fn how(&self) -> Pairs {
        match self.is_chain {
            false => Pairs::AtOnce,
            true if self.first < self.second => Pairs::EarlierFirst,
            true => Pairs::LaterFirst,
        }
    }
}

/// Adds the sums of two products in another way: all of them.
pub(super) fn add_pairs(model: &mut Model, how: Pairs) {
    add_each_pair(model, |_| how);
}

/// Adds each sum of two products as is said of it.
fn add_each_pair(model: &mut Model, how: impl Fn(&Pair) -> Pairs) {
    let nodes = std::mem::take(&mut model.tree.nodes);
    let pairs: Vec<Option<Pair>> = (0..nodes.len()).map(|id| pair_at(&nodes, id)).collect();
    // The zero and the sum that a chain starts with go; new ones come where they are wanted.
    let mut dropped = vec![false; nodes.len()];
    for pair in pairs.iter().flatten().filter(|pair| pair.is_chain) {
        let Node::Sum { children, .. } = &nodes[pair.sum] else { continue };
        dropped[children[0]] = true;
        dropped[nodes[children[0]].children()[0]] = true;
    }
    let mut moved: Vec<NodeId> = Vec::with_capacity(nodes.len());
    for (id, node) in nodes.iter().enumerate() {
        if dropped[id] {
            moved.push(NodeId::MAX);
            continue;
        }
        let into = &mut model.tree.nodes;
        let copied = match (node, &pairs[id]) {
            (Node::Sum { rule, .. }, Some(pair)) => {
                let (low, high) = (pair.first.min(pair.second), pair.first.max(pair.second));
                let how = how(pair);
                let (first, second) = if how == Pairs::LaterFirst { (high, low) } else { (low, high) };
                let (first, second) = (moved[first], moved[second]);
                if how == Pairs::AtOnce {
                    Node::Sum { children: vec![first, second], rule: *rule }
                } else {
                    into.push(Node::Zero);
                    let zero = into.len() - 1;
                    into.push(Node::Sum { children: vec![zero, first], rule: *rule });
                    Node::Sum { children: vec![into.len() - 1, second], rule: *rule }
                }
            }
            (Node::Sum { children, rule }, None) => {
                Node::Sum { children: children.iter().map(|&child| moved[child]).collect(), rule: *rule }
            }
            (Node::Scaled { child, block }, _) => Node::Scaled { child: moved[*child], block: *block },
            (leaf, _) => leaf.clone(),
        };
        into.push(copied);
        moved.push(into.len() - 1);
    }
}

/// The models in which the two products that one chain starts with change their places.
pub(super) fn swapped_starts(model: &Model) -> Vec<Model> {
    let nodes = &model.tree.nodes;
    let chains = (0..nodes.len()).filter_map(|id| pair_at(nodes, id)).filter(|pair| pair.is_chain);
    chains
        .map(|chain| {
            let mut other = model.clone();
            add_each_pair(&mut other, |pair| match pair.how() {
                Pairs::EarlierFirst if pair.sum == chain.sum => Pairs::LaterFirst,
                Pairs::LaterFirst if pair.sum == chain.sum => Pairs::EarlierFirst,
                how => how,
            });
            other
        })
        .collect()
}
