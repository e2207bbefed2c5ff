//! Models over trees that have parts in common with one that has been evaluated.
//!
//! Trees that group the same summands otherwise share their products, and mostly some of their sums. What one model makes of
//! those is [kept](Nodes); of the other, only the rest is evaluated.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::{Inputs, Nodes, Scalar};
use crate::tree::{Model, Node, NodeId, RuleId};

/// Which nodes of a tree have the values of nodes of another.
#[derive(Clone, Debug)]
pub struct Grafts {
    /// What is done for each node, in order; nodes that nothing evaluated needs are left out.
    pub(super) steps: Vec<(NodeId, Step)>,
}

/// Where a node's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// From this node of the other tree.
    Taken(NodeId),
    /// It is evaluated.
    Evaluated,
}

/// What decides a node's value: what it is, and the nodes with the values of its children.
type Key = Vec<usize>;

/// The key of a node: `same` is the node of the first tree that has a child's value, `rule` a number for a rule.
fn key(node: &Node, same: impl Fn(NodeId) -> Option<NodeId>, rule: impl Fn(RuleId) -> usize) -> Option<Key> {
    Some(match node {
        Node::Product(k) => vec![0, *k],
        Node::Accumulator => vec![1],
        Node::Zero => vec![2],
        Node::Scaled { child, block } => vec![3, *block, same(*child)?],
        Node::Sum { children, rule: of } => {
            let mut key = vec![4, rule(*of)];
            for &child in children {
                key.push(same(child)?);
            }
            key
        }
    })
}

impl Grafts {
    /// A model's own products, c and zeros, onto which all else is evaluated.
    pub(super) fn onto_leaves(model: &Model) -> Grafts {
        let step = |(id, node): (NodeId, &Node)| match node {
            Node::Sum { .. } | Node::Scaled { .. } => (id, Step::Evaluated),
            Node::Product(_) | Node::Accumulator | Node::Zero => (id, Step::Taken(id)),
        };
        Grafts { steps: model.tree.nodes.iter().enumerate().map(step).collect() }
    }

    /// The nodes of `other` that have the values of nodes of `model`; `None` where formats, products, operands or rules for
    /// NaNs are others, so that the same node may have another value.
    pub fn between(model: &Model, other: &Model) -> Option<Grafts> {
        let around = |model: &Model| (model.k, model.a, model.b, model.c, model.scale, model.product);
        if around(model) != around(other) || (model.d, model.nan) != (other.d, other.nan) {
            return None;
        }
        let rules = &model.tree.rules;
        // Equal rules share the number of the first; those that only `other` has come behind all.
        let number = |of: &Model, rule: RuleId| {
            let known = rules.iter().position(|known| *known == of.tree.rules[rule]);
            known.unwrap_or(rules.len() + rule)
        };
        let numbers =
            |of: &Model| (0..of.tree.rules.len()).map(|rule| number(of, rule)).collect::<Vec<usize>>();
        let (own, others) = (numbers(model), numbers(other));
        let mut first_with: BTreeMap<Key, NodeId> = BTreeMap::new();
        let mut first: Vec<NodeId> = Vec::new();
        for (id, node) in model.tree.nodes.iter().enumerate() {
            let key = key(node, |child| Some(first[child]), |rule| own[rule])?;
            first.push(*first_with.entry(key).or_insert(id));
        }
        let mut same: Vec<Option<NodeId>> = Vec::new();
        for node in &other.tree.nodes {
            let key = key(node, |child| same[child], |rule| others[rule]);
            same.push(key.and_then(|key| first_with.get(&key).copied()));
        }
        // What is evaluated needs its children; the root is always needed.
        let mut is_needed = vec![false; same.len()];
        *is_needed.last_mut()? = true;
        for (node, same) in other.tree.nodes.iter().zip(&same) {
            if same.is_none() {
                node.children().iter().for_each(|&child| is_needed[child] = true);
            }
        }
        let step = |same: Option<NodeId>| same.map_or(Step::Evaluated, Step::Taken);
        let steps = same.into_iter().enumerate().filter(|(id, same)| is_needed[*id] || same.is_none());
        Some(Grafts { steps: steps.map(|(id, same)| (id, step(same))).collect() })
    }
}

impl Scalar<'_> {
    /// As [`execute`](Scalar::execute), where `base` are the values that the other model has for these inputs, and `grafts`
    /// says which of them this one's nodes have. `None` if a value is too wide.
    ///
    /// # Panics
    /// If they are those of other inputs or of other models, it may panic, or return anything.
    pub fn execute_grafted(&mut self, inputs: &Inputs, base: &Nodes, grafts: &Grafts) -> Option<u64> {
        for &(id, step) in &grafts.steps {
            match step {
                Step::Taken(from) => self.take(id, base, from),
                Step::Evaluated => self.node(id, &inputs.elements, &inputs.products)?,
            }
        }
        self.packed()
    }
}
