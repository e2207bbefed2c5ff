//! The values that a model gives to the nodes of its tree for some dot-adds, and which of them are alike.

use std::collections::HashMap;

use mmaprobe_model::Model;
use mmaprobe_model::scalar::{Inputs, Kind, Nodes, Scalar, Written};
use mmaprobe_model::tree::{Node, NodeId};
use rustc_hash::FxBuildHasher;

/// The values of every node, if they fit, and d.
pub fn evaluated(executor: &mut Scalar, inputs: &Inputs) -> (Option<Nodes>, u64) {
    let nodes = executor.nodes(inputs);
    let d = nodes.as_ref().map_or_else(|| executor.execute(inputs), Nodes::d);
    (nodes, d)
}

/// What a model makes of some dot-adds, for its neighbours.
///
/// Most sums of most questions are those of another question, too: of zeros, or of one summand; and so are products.
/// Each different one is held against a neighbour once.
pub struct Values {
    /// For each dot-add, the values of every node, if they fit.
    pub nodes: Vec<Option<Nodes>>,
    number_of_nodes: usize,
    /// How many numbers there are.
    pub(super) different: usize,
    /// For each dot-add and each node, the number that equal ones share.
    numbers: Vec<u32>,
    /// For each kind of nodes, their numbers.
    pub(super) of_kind: Vec<Lists>,
}

impl Values {
    /// What a model makes of dot-adds: of each, its inputs and the values of every node, if they fit.
    pub fn new<'i>(model: &Model, dot_adds: impl IntoIterator<Item = (&'i Inputs, Option<Nodes>)>) -> Values {
        let mut values = Values {
            nodes: Vec::new(),
            number_of_nodes: model.tree.nodes.len(),
            different: 0,
            numbers: Vec::new(),
            of_kind: vec![Lists::default(); FIRST_RULE + model.tree.rules.len()],
        };
        let mut numbering = Numbering::default();
        for (inputs, nodes) in dot_adds {
            numbering.number(model, inputs, nodes.as_ref(), &mut values);
            values.of_kind.iter_mut().for_each(Lists::end);
            values.nodes.push(nodes);
        }
        values.different = numbering.numbers as usize;
        values
    }

    /// What a model makes of dot-adds with these inputs.
    pub fn of<'i>(model: &Model, inputs: impl IntoIterator<Item = &'i Inputs>) -> Values {
        let mut executor = Scalar::new(model).ok();
        let mut nodes = |inputs| executor.as_mut()?.nodes(inputs);
        Values::new(model, inputs.into_iter().map(|inputs| (inputs, nodes(inputs))))
    }

    /// For each node of a dot-add, its number.
    pub(super) fn numbers_of(&self, dot_add: usize) -> &[u32] {
        let first = dot_add * self.number_of_nodes;
        &self.numbers[first..first + self.number_of_nodes]
    }
}

/// Of the lists of numbers, the first of a rule: those of products and of c come before it.
const FIRST_RULE: usize = 2;

/// Which of the lists holds the numbers of this kind.
pub(super) fn list_of(kind: Kind) -> usize {
    match kind {
        Kind::Product => 0,
        Kind::Accumulator => 1,
        Kind::Sum(rule) => FIRST_RULE + rule,
    }
}

/// For each dot-add, the numbers of some of its nodes, each once.
#[derive(Clone, Default)]
pub(super) struct Lists {
    numbers: Vec<u32>,
    /// Where each dot-add's end.
    ends: Vec<usize>,
}

impl Lists {
    pub(super) fn of(&self, dot_add: usize) -> &[u32] {
        let first = if dot_add == 0 { 0 } else { self.ends[dot_add - 1] };
        &self.numbers[first..self.ends[dot_add]]
    }

    /// Adds a number to the last list.
    fn add(&mut self, number: u32) {
        let first = self.ends.last().copied().unwrap_or(0);
        if !self.numbers[first..].contains(&number) {
            self.numbers.push(number);
        }
    }

    fn end(&mut self) {
        self.ends.push(self.numbers.len());
    }
}

/// Gives equal nodes the same number.
#[derive(Default)]
struct Numbering {
    /// How many there are so far.
    numbers: u32,
    products: HashMap<[u64; 2], u32, FxBuildHasher>,
    accumulators: HashMap<u64, u32, FxBuildHasher>,
    /// By what the last summand has led to.
    sums: HashMap<u32, u32, FxBuildHasher>,
    /// What a rule or the summands so far become by one more.
    longer: HashMap<(u32, u32), u32, FxBuildHasher>,
    number_of_steps: u32,
    values: HashMap<Written, u32, FxBuildHasher>,
    number_of_values: u32,
    /// For each node of a dot-add, which value it has.
    of_node: Vec<u32>,
}

/// Sets rules apart from what they become.
const RULES: u32 = 1 << 31;

impl Numbering {
    /// Adds a dot-add's numbers.
    fn number(&mut self, model: &Model, inputs: &Inputs, nodes: Option<&Nodes>, into: &mut Values) {
        let Some(nodes) = nodes else {
            into.numbers.resize(into.numbers.len() + into.number_of_nodes, 0);
            return;
        };
        self.of_node.clear();
        for (id, node) in model.tree.nodes.iter().enumerate() {
            let fresh = self.numbers;
            let (kind, number) = match node {
                Node::Product(k) => {
                    (Some(Kind::Product), *self.products.entry(inputs.factors(*k)).or_insert(fresh))
                }
                Node::Accumulator => {
                    let number = *self.accumulators.entry(inputs.accumulator()).or_insert(fresh);
                    (Some(Kind::Accumulator), number)
                }
                Node::Sum { children, rule } => {
                    let last = self.last_step(children, *rule as u32);
                    (Some(Kind::Sum(*rule)), *self.sums.entry(last).or_insert(fresh))
                }
                Node::Zero | Node::Scaled { .. } => (None, 0),
            };
            if let Some(kind) = kind {
                self.numbers += u32::from(number == fresh);
                into.of_kind[list_of(kind)].add(number);
            }
            into.numbers.push(number);
            let fresh = self.number_of_values;
            let value = match nodes.written(id) {
                Some(written) => *self.values.entry(written).or_insert(fresh),
                // Infinities and NaNs: equal to no other.
                None => fresh,
            };
            self.number_of_values += u32::from(value == fresh);
            self.of_node.push(value);
        }
    }

    /// What the summands of a sum lead to: the same for those that have the same values and follow the same rule.
    fn last_step(&mut self, children: &[NodeId], rule: u32) -> u32 {
        let mut step = RULES | rule;
        for &child in children {
            let fresh = self.number_of_steps;
            step = *self.longer.entry((step, self.of_node[child])).or_insert(fresh);
            self.number_of_steps += u32::from(step == fresh);
        }
        step
    }
}
