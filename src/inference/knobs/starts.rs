//! Where sums of products start.

use mmaprobe_model::tree::{Model, Node, NodeId, RuleId, Tree, ZeroSigns};

use super::{Knob, Turned};

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

/// Models in which no sum of products starts from +0: there, and in the last sum, negative zeros add up to −0 or to +0
/// instead, which is all that a +0 does.
pub fn turn_starts(model: &Model) -> Vec<Turned> {
    if !model.tree.nodes.contains(&Node::Zero) {
        return Vec::new();
    }
    let mut without = model.clone();
    start_sums(&mut without, false);
    let started = |rule: RuleId| {
        model.tree.nodes.iter().any(|node| match node {
            Node::Sum { children, rule: own } => {
                *own == rule && children.iter().any(|&child| model.tree.nodes[child] == Node::Zero)
            }
            _ => false,
        })
    };
    let Some(last) = without.tree.nodes.last().and_then(|node| match node {
        Node::Sum { rule, .. } => Some(*rule),
        _ => None,
    }) else {
        return Vec::new();
    };
    let positive = ZeroSigns { negative_zeros_stay: false, ..ZeroSigns::IEEE };
    let signs = [ZeroSigns::IEEE, positive];
    let both = signs.into_iter().flat_map(|inside| signs.map(|outside| (inside, outside)));
    both.map(|(inside, outside)| {
        let mut other = without.clone();
        for (rule, own) in other.tree.rules.iter_mut().enumerate() {
            if rule == last {
                own.zero = outside;
            } else if started(rule) {
                own.zero = inside;
            }
        }
        let knob = Knob { what: "where sums of products start".to_string(), rule: None };
        Turned { knob, choice: "from their first summands".to_string(), model: other }
    })
    .filter(|turned| turned.model.check().is_ok())
    .collect()
}

/// The sum in which a product meets sums of others, and how those are added, if it is the only one there: what is
/// left of products that are summed in groups.
fn lone_product(nodes: &[Node], children: &[NodeId]) -> Option<(NodeId, RuleId)> {
    let is_lone = |id: NodeId| match &nodes[id] {
        Node::Sum { children, .. } => matches!(children[..], [only] if is_product(nodes, only)),
        _ => is_product(nodes, id),
    };
    let mut lone = children.iter().copied().filter(|&id| is_lone(id));
    let (Some(product), None) = (lone.next(), lone.next()) else { return None };
    let others = children.iter().filter(|&&id| id != product);
    others
        .filter(|&&id| !has_accumulator(nodes, id))
        .find_map(|&id| sum_rule(nodes, id))
        .map(|rule| (product, rule))
}

/// The rule of a sum, scaled or not.
fn sum_rule(nodes: &[Node], id: NodeId) -> Option<RuleId> {
    match &nodes[id] {
        Node::Sum { rule, .. } => Some(*rule),
        Node::Scaled { child, .. } => sum_rule(nodes, *child),
        _ => None,
    }
}

fn has_accumulator(nodes: &[Node], id: NodeId) -> bool {
    matches!(nodes[id], Node::Accumulator)
        || nodes[id].children().iter().any(|&child| has_accumulator(nodes, child))
}

/// Makes a sum of its own of each product that is alone beside sums of others, added as these are, or takes it away;
/// `None` where there is no such product.
pub(super) fn sum_lone_products(model: &Model, summed: bool) -> Option<Model> {
    let nodes = &model.tree.nodes;
    let lone = |node: &Node| match node {
        Node::Sum { children, .. } => lone_product(nodes, children),
        _ => None,
    };
    if !nodes.iter().any(|node| lone(node).is_some()) {
        return None;
    }
    let mut into: Vec<Node> = Vec::with_capacity(nodes.len());
    let mut moved: Vec<NodeId> = Vec::with_capacity(nodes.len());
    let alone: Vec<NodeId> = nodes.iter().filter_map(lone).map(|(id, _)| id).collect();
    for (id, node) in nodes.iter().enumerate() {
        if let (Node::Sum { children, .. }, true, false) = (node, alone.contains(&id), summed) {
            moved.push(moved[children[0]]);
            continue;
        }
        let copied = match node {
            Node::Scaled { child, block } => Node::Scaled { child: moved[*child], block: *block },
            Node::Sum { children, rule } => {
                let mut children: Vec<NodeId> = children.iter().map(|&child| moved[child]).collect();
                if let Some((product, of_others)) = lone(node)
                    && summed
                    && is_product(nodes, product)
                {
                    into.push(Node::Sum { children: vec![moved[product]], rule: of_others });
                    let own = into.len() - 1;
                    children
                        .iter_mut()
                        .filter(|child| **child == moved[product])
                        .for_each(|child| *child = own);
                }
                Node::Sum { children, rule: *rule }
            }
            leaf => leaf.clone(),
        };
        into.push(copied);
        moved.push(into.len() - 1);
    }
    Some(Model { tree: Tree { nodes: into.into(), rules: model.tree.rules.clone() }, ..model.clone() })
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
    fn how(&self, nodes: &[Node]) -> Pairs {
        match self.start_rule {
            None => Pairs::AtOnce,
            Some(_) if index(nodes, self.first) < index(nodes, self.second) => Pairs::EarlierFirst,
            Some(_) => Pairs::LaterFirst,
        }
    }
}

/// The k of a product, scaled or not.
fn index(nodes: &[Node], id: NodeId) -> usize {
    match nodes[id] {
        Node::Product(k) => k,
        Node::Scaled { child, .. } => index(nodes, child),
        _ => unreachable!("a pair is of products"),
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
                let (low, high) = match index(&nodes, pair.first) < index(&nodes, pair.second) {
                    true => (pair.first, pair.second),
                    false => (pair.second, pair.first),
                };
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
            add_each_pair(&mut other, |pair| match pair.how(nodes) {
                Pairs::EarlierFirst if pair.sum == chain.sum => Pairs::LaterFirst,
                Pairs::LaterFirst if pair.sum == chain.sum => Pairs::EarlierFirst,
                how => how,
            });
            other
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format;
    use mmaprobe_probes::{Signature, Summand};

    use super::*;
    use crate::inference::skeleton::Skeleton;
    use crate::inference::structure::{self, Structure};

    #[test]
    fn the_later_product_of_a_pair_comes_first_in_any_order_of_nodes() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let skeleton = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), Skeleton::Sum(vec![leaf(0), leaf(1)])]);
        let signature = Signature {
            k: 2,
            a: format::FP16,
            b: format::FP16,
            c: format::FP32,
            d: format::FP32,
            scale: None,
        };
        let model = structure::start(&signature, &skeleton, Structure::FromZero { later_first: true });
        for model in [model.canonical(), model] {
            let nodes = &model.tree.nodes;
            let pairs: Vec<Pairs> =
                (0..nodes.len()).filter_map(|id| pair_at(nodes, id)).map(|pair| pair.how(nodes)).collect();
            assert_eq!(pairs, [Pairs::LaterFirst]);
        }
    }

    #[test]
    fn a_product_that_is_left_over_is_a_sum_of_its_own_or_not() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let pairs = Skeleton::Sum(vec![Skeleton::Sum(vec![leaf(0), leaf(1)]), leaf(2)]);
        let skeleton = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), pairs]);
        let signature = Signature {
            k: 3,
            a: format::FP16,
            b: format::FP16,
            c: format::FP32,
            d: format::FP32,
            scale: None,
        };
        let model = structure::start(&signature, &skeleton, Structure::Plain);
        let summed = sum_lone_products(&model, true).expect("p2 is alone");
        summed.check().expect("a tree");
        let sums_of_one = |model: &Model| {
            let sums = model.tree.nodes.iter().filter_map(|node| match node {
                Node::Sum { children, .. } if children.len() == 1 => {
                    Some(model.tree.nodes[children[0]].clone())
                }
                _ => None,
            });
            sums.collect::<Vec<Node>>()
        };
        assert_eq!(sums_of_one(&summed), [Node::Product(2)]);
        // Once is enough, and it can be taken back.
        assert_eq!(sum_lone_products(&summed, true).expect("p2 is alone"), summed);
        let back = sum_lone_products(&summed, false).expect("p2 is alone");
        assert_eq!(back, model);
        let chain = Skeleton::Sum(vec![Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), leaf(0)]), leaf(1)]);
        let chain = structure::start(&Signature { k: 2, ..signature }, &chain, Structure::Plain);
        assert_eq!(sum_lone_products(&chain, true), None);
    }
}
