//! What repeats in a sum tree: chains, groups of alike sums, runs of products.
//!
//! Words and drawings are made from this, so that K = 64 takes no more room than K = 8. Nothing here
//! knows an algorithm or a machine: two subtrees are alike if they have the same shape and rules, and
//! differ only in which products and blocks they hold.

use std::collections::BTreeMap;

use mmaprobe_model::tree::{Node, NodeId, RuleId, Tree};

use crate::sheet::program::runs;

/// A canonical tree, and which of its subtrees are alike.
#[derive(Clone, Debug)]
pub struct Outline<'t> {
    tree: &'t Tree,
    /// The class of each subtree: alike subtrees have the same.
    classes: Vec<usize>,
}

/// A shape, given those of the children.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Product,
    Accumulator,
    Zero,
    Scaled(usize),
    Sum(RuleId, Vec<usize>),
}

/// Sums that each take the one before as a summand, and are alike in the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The sums, the first to be computed first; at least two.
    pub links: Vec<NodeId>,
    /// Where among its summands a link has the link before.
    pub position: usize,
    /// What stands there in the first link.
    pub start: NodeId,
}

/// Neighbouring summands of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Products, by index.
    Products(Vec<usize>),
    /// The accumulator's initial value.
    Accumulator,
    /// A positive zero.
    Zero,
    /// Sums, or scaled values, that are all alike.
    Inner(Vec<NodeId>),
}

impl<'t> Outline<'t> {
    /// Finds what is alike in a tree whose children stand before their parents.
    pub fn new(tree: &'t Tree) -> Outline<'t> {
        let mut known: BTreeMap<Shape, usize> = BTreeMap::new();
        let mut classes: Vec<usize> = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            let shape = match node {
                Node::Product(_) => Shape::Product,
                Node::Accumulator => Shape::Accumulator,
                Node::Zero => Shape::Zero,
                Node::Scaled { child, .. } => Shape::Scaled(classes[*child]),
                Node::Sum { children, rule } => {
                    Shape::Sum(*rule, children.iter().map(|&child| classes[child]).collect())
                }
            };
            let next = known.len();
            classes.push(*known.entry(shape).or_insert(next));
        }
        Outline { tree, classes }
    }

    /// The node itself.
    pub fn node(&self, id: NodeId) -> &'t Node {
        &self.tree.nodes[id]
    }

    /// The rule and the summands of a sum.
    pub fn sum(&self, id: NodeId) -> Option<(RuleId, &'t [NodeId])> {
        match self.node(id) {
            Node::Sum { children, rule } => Some((*rule, children)),
            _ => None,
        }
    }

    /// The root.
    pub fn root(&self) -> NodeId {
        self.tree.nodes.len() - 1
    }

    /// The name that the sheet's program gives to a sum.
    pub fn step_name(&self, id: NodeId) -> String {
        if id == self.root() {
            return "d".into();
        }
        let sums = self.tree.nodes[..id].iter().filter(|node| matches!(node, Node::Sum { .. }));
        format!("s{}", sums.count())
    }

    /// The longest chain that ends in this sum.
    pub fn chain(&self, id: NodeId) -> Option<Chain> {
        let (_, children) = self.sum(id)?;
        let chains = (0..children.len()).map(|position| self.chain_at(id, position));
        // Of equally long ones the first; `max_by_key` would take the last.
        chains.rev().max_by_key(|chain| chain.links.len()).filter(|chain| chain.links.len() > 1)
    }

    fn chain_at(&self, id: NodeId, position: usize) -> Chain {
        let mut links = vec![id];
        let mut start = self.node(id).children()[position];
        while self.alike_but_for(links[links.len() - 1], start, position) {
            links.push(start);
            start = self.node(start).children()[position];
        }
        links.reverse();
        Chain { links, position, start }
    }

    /// Whether two sums are alike in all summands but one.
    fn alike_but_for(&self, id: NodeId, other: NodeId, position: usize) -> bool {
        let (Some((rule, one)), Some((other_rule, other))) = (self.sum(id), self.sum(other)) else {
            return false;
        };
        rule == other_rule
            && one.len() == other.len()
            && one
                .iter()
                .zip(other)
                .enumerate()
                .all(|(i, (&x, &y))| i == position || self.classes[x] == self.classes[y])
    }

    /// The levels of a perfect binary tree of alike sums over products; at least two.
    pub fn pairwise_levels(&self, id: NodeId) -> Option<u32> {
        let (rule, _) = self.sum(id)?;
        let mut levels = 0;
        let mut id = id;
        loop {
            match self.node(id) {
                Node::Product(_) => return (levels > 1).then_some(levels),
                Node::Sum { children, rule: own } if *own == rule => match children[..] {
                    [x, y] if self.classes[x] == self.classes[y] => id = x,
                    _ => return None,
                },
                _ => return None,
            }
            levels += 1;
        }
    }

    /// Summands, neighbours of a kind taken together.
    pub fn parts(&self, summands: impl IntoIterator<Item = NodeId>) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for id in summands {
            match (self.node(id), parts.last_mut()) {
                (Node::Product(k), Some(Part::Products(products))) => products.push(*k),
                (Node::Product(k), _) => parts.push(Part::Products(vec![*k])),
                (Node::Accumulator, _) => parts.push(Part::Accumulator),
                (Node::Zero, _) => parts.push(Part::Zero),
                (_, Some(Part::Inner(group))) if self.classes[group[0]] == self.classes[id] => group.push(id),
                (_, _) => parts.push(Part::Inner(vec![id])),
            }
        }
        parts
    }

    /// The products under a node, in order.
    pub fn products(&self, id: NodeId) -> Vec<usize> {
        let mut products = Vec::new();
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            match self.node(id) {
                Node::Product(k) => products.push(*k),
                node => stack.extend(node.children().iter().rev()),
            }
        }
        products
    }

    /// What is under the factors of a scaled value, and the blocks of the factors.
    pub fn unscaled(&self, id: NodeId) -> (NodeId, Vec<usize>) {
        let (mut id, mut blocks) = (id, Vec::new());
        while let Node::Scaled { child, block } = self.node(id) {
            blocks.push(*block);
            id = *child;
        }
        (id, blocks)
    }
}

/// Products by name, runs abbreviated: `p0 … p15`, `p0, p2, … p30`, `p3, p1`.
pub fn list(products: &[usize]) -> String {
    let one = |run: crate::sheet::program::Run| match (run.count, run.stride) {
        (1, _) => format!("p{}", run.first),
        (_, 1) => format!("p{} … p{}", run.first, run.last()),
        (_, stride) => format!("p{}, p{}, … p{}", run.first, run.first + stride, run.last()),
    };
    runs(products).into_iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Items one after another, the middle left out where there are many: `a; b; … z`.
pub fn abbreviated(items: &[String]) -> String {
    match items {
        [first, second, _, _, .., last] => format!("{first}; {second}; … {last}"),
        few => few.join("; "),
    }
}
