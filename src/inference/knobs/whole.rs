//! Turns of the whole tree: what is rounded twice, and where sums start.

use mmaprobe_model::tree::{Model, Node, NodeId, Normalised, Rule};

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
