//! Models that differ little from one that has been evaluated.
//!
//! What differs only in one rule has the same products, and mostly the same sums. The values that one model
//! gives to every node are [kept](Nodes); of a neighbour, only the nodes are evaluated that [may
//! differ](Changes), and those above them whose summands do.

use alloc::vec;
use alloc::vec::Vec;

use super::cell::Cell;
use super::{Inputs, Scalar};
use crate::execute::Value;
use crate::tree::{Model, Node, NodeId};

/// The values that a model gives to the nodes of its tree, for one dot-add.
#[derive(Clone, Debug)]
pub struct Nodes {
    cells: Vec<Cell>,
    /// The values that are no numbers.
    specials: Vec<(NodeId, Value)>,
    d: u64,
}

impl Nodes {
    /// The bit pattern of d.
    pub fn d(&self) -> u64 {
        self.d
    }

    /// The value of a node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn value(&self, node: NodeId) -> Value {
        let cell = &self.cells[node];
        if cell.is_special { self.special(node).clone() } else { cell.value() }
    }

    fn special(&self, node: NodeId) -> &Value {
        let (_, value) = self.specials.iter().find(|(id, _)| *id == node).expect("the cell says so");
        value
    }
}

/// Where two models over the same tree may give different values.
#[derive(Clone, Debug)]
pub struct Changes {
    /// Whether what a node itself does is different.
    own: Vec<bool>,
    /// The nodes that may have another value: these, and those above them.
    nodes: Vec<NodeId>,
}

impl Changes {
    /// What is different about `other`; `None` where its values cannot be told from the tree alone: other
    /// trees, formats or rules for NaNs.
    pub fn between(model: &Model, other: &Model) -> Option<Changes> {
        let is_comparable = model.tree.nodes == other.tree.nodes
            && model.tree.rules.len() == other.tree.rules.len()
            && (model.k, model.scale, model.d, model.nan) == (other.k, other.scale, other.d, other.nan)
            && [(&model.a, &other.a), (&model.b, &other.b), (&model.c, &other.c)]
                .iter()
                .all(|(one, another)| one.format == another.format);
        if !is_comparable {
            return None;
        }
        let products = (model.product, model.a, model.b) != (other.product, other.a, other.b);
        let accumulator = model.c != other.c;
        let rules: Vec<bool> =
            model.tree.rules.iter().zip(&other.tree.rules).map(|(one, another)| one != another).collect();
        let mut own = vec![false; model.tree.nodes.len()];
        let mut reached = own.clone();
        let mut nodes = Vec::new();
        for (id, node) in model.tree.nodes.iter().enumerate() {
            own[id] = match node {
                Node::Product(_) => products,
                Node::Accumulator => accumulator,
                Node::Zero | Node::Scaled { .. } => false,
                Node::Sum { rule, .. } => rules[*rule],
            };
            reached[id] = own[id] || node.children().iter().any(|&child| reached[child]);
            if reached[id] {
                nodes.push(id);
            }
        }
        Some(Changes { own, nodes })
    }
}

impl Scalar<'_> {
    /// Evaluates every node and keeps the values. `None` if the operands were decoded in other formats than the
    /// model's, or a value is too wide: then the general [`Executor`](crate::Executor) has to be asked.
    ///
    /// # Panics
    /// If there are fewer operands than the model calls for.
    pub fn nodes(&mut self, inputs: &Inputs) -> Option<Nodes> {
        if inputs.formats != self.formats {
            return None;
        }
        let d = self.evaluate(&inputs.elements)?;
        let special = |(id, cell): (NodeId, &Cell)| cell.is_special.then(|| (id, self.specials[id].clone()));
        let specials = self.cells.iter().enumerate().filter_map(special).collect();
        Some(Nodes { cells: self.cells.clone(), specials, d })
    }

    /// As [`execute`](Scalar::execute), where `base` are the values that another model has for these inputs,
    /// and `changes` what is different about this one.
    ///
    /// # Panics
    /// If they are those of other inputs or of a model over another tree, it may panic, or return anything.
    pub fn execute_from(&mut self, inputs: &Inputs, base: &Nodes, changes: &Changes) -> u64 {
        match self.evaluate_from(inputs, base, changes) {
            Some(d) => d,
            None => self.execute(inputs),
        }
    }

    /// The first node whose value differs from that in `base`, as in [`execute_from`](Scalar::execute_from):
    /// its value there, and here. `None` if a value is too wide to say.
    ///
    /// # Panics
    /// As [`execute_from`](Scalar::execute_from).
    pub fn first_difference(
        &mut self,
        inputs: &Inputs,
        base: &Nodes,
        changes: &Changes,
    ) -> Option<Option<[Value; 2]>> {
        self.evaluate_from(inputs, base, changes)?;
        let node = changes.nodes.iter().copied().find(|&node| self.differs[node]);
        Some(node.map(|node| [base.value(node), self.value(node)]))
    }

    fn evaluate_from(&mut self, inputs: &Inputs, base: &Nodes, changes: &Changes) -> Option<u64> {
        let model = self.model;
        let elements = &inputs.elements;
        for &id in &changes.nodes {
            let node = &model.tree.nodes[id];
            let children = node.children();
            if !changes.own[id] && !children.iter().any(|&child| self.differs[child]) {
                self.differs[id] = false;
                continue;
            }
            for &child in children {
                // What is evaluated here stands in its place already.
                if !self.differs[child] {
                    self.take_over(child, base);
                }
            }
            match node {
                Node::Product(k) => self.product(id, &elements.a[*k], &elements.b[*k])?,
                Node::Accumulator => self.accumulator(id, elements.c?)?,
                Node::Zero => {}
                Node::Scaled { child, block } => {
                    self.scaled(id, *child, [elements.sa[*block], elements.sb[*block]])?;
                }
                Node::Sum { children, rule } => self.sum(id, children, *rule)?,
            }
            let (now, before) = (&self.cells[id], &base.cells[id]);
            self.differs[id] =
                !now.is_same(before) || now.is_special && self.specials[id] != *base.special(id);
        }
        let root = model.tree.nodes.len() - 1;
        if changes.nodes.last() != Some(&root) || !self.differs[root] {
            return Some(base.d);
        }
        self.packed()
    }

    fn take_over(&mut self, node: NodeId, base: &Nodes) {
        self.cells[node] = base.cells[node];
        if base.cells[node].is_special {
            self.specials[node] = base.special(node).clone();
        }
    }
}
