//! Where sums of products start.

use mmaprobe_model::tree::{Model, Node, NodeId, RuleId};

/// Whether a node is a product, with its scale or without.
fn is_product(nodes: &[Node], id: NodeId) -> bool {
    match &nodes[id] {
        Node::Product(_) => true,
        Node::Scaled { child, .. } => matches!(nodes[*child], Node::Product(_)),
        _ => false,
    }
}

/// Puts a +0 among the summands of each sum of products alone, or takes it away: its only effect is on
/// the sign of a zero sum. It comes last, so that the summands keep their places.
pub(super) fn start_sums(model: &mut Model, from_zero: bool) {
    let nodes = std::mem::take(&mut model.tree.nodes);
    let mut moved = Vec::with_capacity(nodes.len());
    let is_zero = |id: NodeId| matches!(nodes[id], Node::Zero);
    let of_products = |children: &[NodeId]| {
        children.iter().all(|&id| is_product(&nodes, id) || is_zero(id))
            && children.iter().any(|&id| is_product(&nodes, id))
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
    /// Both products are summands of one sum.
    AtOnce,
    /// The product with the smaller k is added to +0, and the other to that.
    EarlierFirst,
    /// The product with the larger k is added to +0, and the other to that.
    LaterFirst,
}

/// Two products that are added at once, or one after the other to +0.
struct Pair {
    /// Their sum.
    sum: NodeId,
    first: NodeId,
    second: NodeId,
    /// Of a chain, the rule of the sum that it starts with.
    start_rule: Option<RuleId>,
}

fn pair_at(nodes: &[Node], sum: NodeId) -> Option<Pair> {
    let Node::Sum { children, .. } = &nodes[sum] else { return None };
    let &[one, second] = children.as_slice() else { return None };
    if !is_product(nodes, second) {
        return None;
    }
    match &nodes[one] {
        Node::Sum { children, rule } => match children.as_slice() {
            &[zero, first] if matches!(nodes[zero], Node::Zero) && is_product(nodes, first) => {
                Some(Pair { sum, first, second, start_rule: Some(*rule) })
            }
            _ => None,
        },
        _ if is_product(nodes, one) => Some(Pair { sum, first: one, second, start_rule: None }),
        _ => None,
    }
}

impl Pair {
    /// How it is added.
    fn how(&self) -> Pairs {
        match self.start_rule {
            None => Pairs::AtOnce,
            Some(_) if self.first < self.second => Pairs::EarlierFirst,
            Some(_) => Pairs::LaterFirst,
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
    for pair in pairs.iter().flatten().filter(|pair| pair.start_rule.is_some()) {
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
                    let start_rule = pair.start_rule.unwrap_or(*rule);
                    into.push(Node::Sum { children: vec![zero, first], rule: start_rule });
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
    let chains =
        (0..nodes.len()).filter_map(|id| pair_at(nodes, id)).filter(|pair| pair.start_rule.is_some());
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
