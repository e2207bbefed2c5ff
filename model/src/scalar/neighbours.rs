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
use crate::tree::{Model, Node, NodeId, RuleId};

/// The values that a model gives to the nodes of its tree, for one dot-add.
#[derive(Clone, Debug)]
pub struct Nodes {
    pub(super) cells: Vec<Cell>,
    /// The values that are no numbers.
    specials: Vec<(NodeId, Value)>,
    d: u64,
}

impl Nodes {
    /// The bit pattern of d.
    pub fn d(&self) -> u64 {
        self.d
    }

    /// How a node's value is written, if it is a number. Values that are written alike are the same to every sum.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn written(&self, node: NodeId) -> Option<Written> {
        let cell = &self.cells[node];
        let flags = u8::from(cell.negative) | u8::from(cell.is_open_sum) << 1;
        let written =
            || Written { halves: cell.halves, exponents: [cell.lsb, cell.exponent, cell.lowered], flags };
        (!cell.is_special).then(written)
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

/// A number with all that a sum may make something of: its significand, its exponents and its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Written {
    halves: [u64; 2],
    exponents: [i32; 3],
    flags: u8,
}

/// Where two models over the same tree may give different values.
#[derive(Clone, Debug)]
pub struct Changes {
    /// Whether what a node itself does is different.
    pub(super) own: Vec<bool>,
    /// The nodes that may have another value: these, and those above them.
    pub(super) nodes: Vec<NodeId>,
    /// See [`Changes::kinds`].
    kinds: Option<Vec<Kind>>,
    /// See [`Changes::are_of_sums`].
    of_sums: bool,
}

impl Changes {
    /// What is different where others take the places of these rules of a model, and nothing else is.
    pub fn of_rules(model: &Model, rules: &[RuleId]) -> Changes {
        let nodes = &model.tree.nodes;
        let kinds = Some(rules.iter().map(|&rule| Kind::Sum(rule)).collect());
        let mut changes = Changes { own: vec![false; nodes.len()], nodes: Vec::new(), kinds, of_sums: true };
        let mut reached = vec![false; nodes.len()];
        for (id, node) in nodes.iter().enumerate() {
            if let Node::Sum { rule, .. } = node {
                changes.own[id] = rules.contains(rule);
            }
            reached[id] = changes.own[id] || node.children().iter().any(|&child| reached[child]);
            if reached[id] {
                changes.nodes.push(id);
            }
        }
        changes
    }

    /// What is different about `other`; `None` where its values cannot be told from the tree alone: other
    /// trees, formats or rules for NaNs.
    pub fn between(model: &Model, other: &Model) -> Option<Changes> {
        let is_comparable = model.tree.adds_the_same(&other.tree)
            && (model.k, model.scale, model.d, model.nan) == (other.k, other.scale, other.d, other.nan)
            && [(&model.a, &other.a), (&model.b, &other.b), (&model.c, &other.c)]
                .iter()
                .all(|(one, another)| one.format == another.format);
        if !is_comparable {
            return None;
        }
        let products = (model.product, model.a, model.b) != (other.product, other.a, other.b);
        let accumulator = model.c != other.c;
        // The rules of sums in both models that have been compared.
        let mut compared: Vec<((RuleId, RuleId), bool)> = Vec::new();
        let mut differ = |pair: (RuleId, RuleId)| match compared.iter().find(|(known, _)| *known == pair) {
            Some((_, differ)) => *differ,
            None => {
                let differ = model.tree.rules[pair.0] != other.tree.rules[pair.1];
                compared.push((pair, differ));
                differ
            }
        };
        // Of each rule, which other one stands in its place where one does.
        let mut replaced: Vec<Option<RuleId>> = vec![None; model.tree.rules.len()];
        let kinds = [(products, Kind::Product), (accumulator, Kind::Accumulator)].into_iter();
        let mut kinds: Option<Vec<Kind>> =
            Some(kinds.filter(|(is_other, _)| *is_other).map(|(_, kind)| kind).collect());
        let mut own = vec![false; model.tree.nodes.len()];
        let mut reached = own.clone();
        let mut nodes = Vec::new();
        for (id, (node, another)) in model.tree.nodes.iter().zip(&other.tree.nodes).enumerate() {
            own[id] = match (node, another) {
                (Node::Sum { rule, .. }, Node::Sum { rule: another, .. }) => {
                    let is_other = differ((*rule, *another));
                    if is_other && replaced[*rule].is_none() {
                        replaced[*rule] = Some(*another);
                        kinds.iter_mut().for_each(|kinds| kinds.push(Kind::Sum(*rule)));
                    }
                    kinds = kinds.filter(|_| !is_other || replaced[*rule] == Some(*another));
                    is_other
                }
                (Node::Product(_), _) => products,
                (Node::Accumulator, _) => accumulator,
                _ => false,
            };
            reached[id] = own[id] || node.children().iter().any(|&child| reached[child]);
            if reached[id] {
                nodes.push(id);
            }
        }
        Some(Changes { own, nodes, kinds, of_sums: !products && !accumulator })
    }

    /// Whether all that is different is what sums do.
    pub fn are_of_sums(&self) -> bool {
        self.of_sums
    }

    /// The kinds of nodes that the other model evaluates otherwise; `None` if sums that follow one rule in the first do
    /// not all follow the same one in the other, where they are others.
    pub fn kinds(&self) -> Option<&[Kind]> {
        self.kinds.as_deref()
    }
}

/// Nodes that a model evaluates alike: whether one of them has another value than in another model depends on its
/// operands or summands alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The products.
    Product,
    /// c.
    Accumulator,
    /// The sums that follow this rule.
    Sum(RuleId),
}

/// What is known of a model's values beside those of another, of some dot-adds.
///
/// Of sums with the same summands by the same rule one is enough, and of products of the same factors. Whoever executes
/// many dot-adds gives these a number; the rest is filled in.
#[derive(Debug, Default)]
pub struct Known<'n> {
    /// The number of the dot-add.
    pub dot_add: usize,
    /// For each of its nodes, its number, if nodes have numbers.
    pub numbers: &'n [u32],
    /// For each number, whether what has it is known to have the same value.
    pub same: Vec<bool>,
    /// All values of nodes that are others, in one number: two models that have the same ones for the same dot-adds
    /// have the same fingerprint.
    pub fingerprint: u64,
}

/// An odd number with bits all over.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

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
        let d = self.evaluate(&inputs.elements, &inputs.products)?;
        let special = |(id, cell): (NodeId, &Cell)| cell.is_special.then(|| (id, self.specials[id].clone()));
        let specials = self.cells.iter().enumerate().filter_map(special).collect();
        Some(Nodes { cells: self.cells.clone(), specials, d })
    }

    /// As [`execute`](Scalar::execute), where `base` are the values that another model has for these inputs,
    /// and `changes` what is different about this one. What is `known` of the nodes is added to. `None` if a value is
    /// too wide.
    ///
    /// # Panics
    /// If they are those of other inputs or of a model over another tree, it may panic, or return anything.
    pub fn execute_from(
        &mut self,
        inputs: &Inputs,
        base: &Nodes,
        changes: &Changes,
        known: &mut Known,
    ) -> Option<u64> {
        let model = self.model;
        let elements = &inputs.elements;
        let is_numbered = changes.kinds.is_some() && !known.numbers.is_empty();
        for &id in &changes.nodes {
            let node = &model.tree.nodes[id];
            let children = node.children();
            let is_own = !children.iter().any(|&child| self.differs[child]);
            let number = (is_own && is_numbered).then(|| known.numbers[id] as usize);
            if is_own && !changes.own[id] || number.is_some_and(|number| known.same[number]) {
                self.differs[id] = false;
                continue;
            }
            for &child in children {
                // What is evaluated here stands in its place already.
                if !self.differs[child] {
                    self.take_over(child, base);
                }
            }
            self.node(id, elements, &inputs.products)?;
            let (now, before) = (&self.cells[id], &base.cells[id]);
            let is_same = now.is_same(before) && (!now.is_special || self.specials[id] == *base.special(id));
            self.differs[id] = !is_same;
            if let Some(number) = number {
                known.same[number] = is_same;
            }
            if !is_same {
                let print = self.fingerprint(id, (known.dot_add << 16 | id) as u64);
                known.fingerprint = known.fingerprint.wrapping_add(print);
            }
        }
        let root = model.tree.nodes.len() - 1;
        if changes.nodes.last() != Some(&root) || !self.differs[root] {
            return Some(base.d);
        }
        self.packed()
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
        known: &mut Known,
    ) -> Option<Option<[Value; 2]>> {
        self.execute_from(inputs, base, changes, known)?;
        let node = changes.nodes.iter().copied().find(|&node| self.differs[node]);
        Some(node.map(|node| [base.value(node), self.value(node)]))
    }

    /// A number for the value of a node at a place.
    fn fingerprint(&self, node: NodeId, place: u64) -> u64 {
        let cell = &self.cells[node];
        let special = match &self.specials[node] {
            _ if !cell.is_special => 0,
            Value::Infinite { negative, overflowed } => 1 + u64::from(*negative) + 2 * u64::from(*overflowed),
            Value::Nan(nan) => {
                let source = nan.source.map_or(0, |source| 1 + source as u64);
                let flags = u64::from(nan.negative) | u64::from(nan.overflowed) << 1 | source << 2;
                (5 + nan.fraction).wrapping_mul(MIX) ^ flags.rotate_left(32)
            }
            Value::Finite(_) => unreachable!("a finite value is no special one"),
        };
        let flags = u64::from(cell.negative) | u64::from(cell.is_open_sum) << 1 | special << 2;
        let exponents = u64::from(cell.lsb as u32) << 32 | u64::from(cell.exponent as u32);
        let parts = [cell.halves[0], cell.halves[1], exponents, cell.lowered as u64, flags];
        parts.into_iter().fold(place, |mixed, part| (mixed ^ part).wrapping_mul(MIX).rotate_left(29))
    }

    fn take_over(&mut self, node: NodeId, base: &Nodes) {
        self.take(node, base, node);
    }

    /// Gives a node the value that another has.
    pub(super) fn take(&mut self, node: NodeId, base: &Nodes, from: NodeId) {
        self.cells[node] = base.cells[from];
        if base.cells[from].is_special {
            self.specials[node] = base.special(from).clone();
        }
    }
}
