//! The summation tree as rows, repetition folded: what drawings of it have in common.
//!
//! Each row is a node, or stands for several that are alike, and knows which products are under it.

use mmaprobe_model::tree::{Node, NodeId, RuleId};

use crate::sheet::outline::{Chain, Outline, Part, abbreviated, list};

/// A row of a folded tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// For the ancestors below the root and then for the node itself: whether it is its parent's last
    /// branch. Empty for roots.
    pub path: Vec<bool>,
    /// What the row is.
    pub kind: Kind,
    /// What it says; of a sum, what it is called and what it is multiplied by.
    pub text: String,
    /// The products under it, in order.
    pub products: Vec<usize>,
}

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sum.
    Sum {
        /// Its rule.
        rule: RuleId,
        /// Bytes of the text that are its name: `d = `, or nothing.
        name: usize,
    },
    /// Products, c or +0.
    Leaves,
    /// What is like the row before, or like what is drawn elsewhere.
    More,
}

impl Row {
    /// The rule, if it is a sum.
    pub fn rule(&self) -> Option<RuleId> {
        match self.kind {
            Kind::Sum { rule, .. } => Some(rule),
            Kind::Leaves | Kind::More => None,
        }
    }

    /// The text before what the rule says, and the text behind it.
    pub fn around_rule(&self) -> (&str, &str) {
        match self.kind {
            Kind::Sum { name, .. } => self.text.split_at(name),
            Kind::Leaves | Kind::More => (&self.text, ""),
        }
    }
}

/// The rows of a tree. Sums that would be more than `deepest` levels down follow as roots of their own.
pub fn rows(outline: &Outline<'_>, deepest: usize) -> Vec<Row> {
    let mut folding = Folding { outline, deepest, rows: Vec::new(), below: vec![outline.root()] };
    let mut done = 0;
    while let Some(&id) = folding.below.get(done) {
        done += 1;
        let name = format!("{} = ", outline.step_name(id));
        folding.node(id, &name, Vec::new(), Detail::Full);
    }
    folding.rows
}

/// How a sum's summands are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// With everything below them; chains are folded.
    Full,
    /// The first link of a chain whose last link has been shown: only where the chain starts is
    /// there something new, and what is alike is not shown again.
    First {
        /// Where the chain starts.
        start: NodeId,
    },
}

struct Folding<'o> {
    outline: &'o Outline<'o>,
    deepest: usize,
    rows: Vec<Row>,
    /// Sums that are shown one below the other: the root, then those too deep to be shown in place.
    below: Vec<NodeId>,
}

/// A branch.
enum Branch {
    /// A row.
    Row(Kind, String, Vec<usize>),
    /// A node with all that hangs from it.
    Node(NodeId),
    /// A row, and below it the first link of a chain.
    Folded(String, Vec<usize>, Chain),
}

impl Folding<'_> {
    fn row(&mut self, path: Vec<bool>, kind: Kind, text: String, products: Vec<usize>) {
        self.rows.push(Row { path, kind, text, products });
    }

    /// A node and what hangs from it.
    fn node(&mut self, id: NodeId, name: &str, path: Vec<bool>, detail: Detail) {
        let (inner, blocks) = self.outline.unscaled(id);
        let scales: String = blocks.iter().map(|block| format!(" × scale[{block}]")).collect();
        let products = self.outline.products(inner);
        let Some((rule, children)) = self.outline.sum(inner) else {
            let leaf = match self.outline.node(inner) {
                Node::Product(k) => format!("p{k}"),
                Node::Accumulator => "c".into(),
                _ => "+0".into(),
            };
            return self.row(path, Kind::Leaves, format!("{name}{leaf}{scales}"), products);
        };
        if path.len() > self.deepest {
            self.below.push(inner);
            let reference = format!("{}{scales} (below)", self.outline.step_name(inner));
            return self.row(path, Kind::More, reference, products);
        }
        let kind = Kind::Sum { rule, name: name.len() };
        self.row(path.clone(), kind, format!("{name}{scales}"), products);
        let chain = self.outline.chain(inner).filter(|_| detail == Detail::Full);
        let mut branches = Vec::new();
        for (position, &child) in children.iter().enumerate() {
            match &chain {
                Some(chain) if chain.position == position => branches.push(self.folded(chain)),
                _ => branches.push(self.branch(child, detail)),
            }
        }
        let branches = self.grouped(branches);
        let last = branches.len().saturating_sub(1);
        for (position, branch) in branches.into_iter().enumerate() {
            let mut path = path.clone();
            path.push(position == last);
            match branch {
                Branch::Row(kind, text, products) => self.row(path, kind, text, products),
                Branch::Node(id) => self.node(id, "", path, Detail::Full),
                Branch::Folded(text, products, Chain { links, start, .. }) => {
                    self.row(path.clone(), Kind::More, text, products);
                    path.push(true);
                    self.node(links[0], "", path, Detail::First { start });
                }
            }
        }
    }

    /// What stands for the earlier links of a chain.
    fn folded(&self, chain: &Chain) -> Branch {
        let between: Vec<usize> = chain.links[1..chain.links.len() - 1]
            .iter()
            .flat_map(|&link| children(self.outline, link, chain.position))
            .flat_map(|id| self.outline.products(id))
            .collect();
        match chain.links.len() - 2 {
            0 => Branch::Node(chain.links[0]),
            more => {
                Branch::Folded(format!("⋮ {more} more like it: {}", list(&between)), between, chain.clone())
            }
        }
    }

    /// What stands for a summand.
    fn branch(&self, id: NodeId, detail: Detail) -> Branch {
        let inner = self.outline.unscaled(id).0;
        match detail {
            Detail::First { start } if id != start && self.outline.sum(inner).is_some() => {
                let text = format!("as above: {}", self.covered(id));
                Branch::Row(Kind::More, text, self.outline.products(inner))
            }
            _ => Branch::Node(id),
        }
    }

    /// The products under a node, and its scales, in words.
    fn covered(&self, id: NodeId) -> String {
        let (inner, blocks) = self.outline.unscaled(id);
        let scales: String = blocks.iter().map(|block| format!(" × scale[{block}]")).collect();
        list(&self.outline.products(inner)) + &scales
    }

    /// Takes neighbouring products together, and shows one of several alike sums.
    fn grouped(&self, branches: Vec<Branch>) -> Vec<Branch> {
        let mut grouped = Vec::new();
        let mut pending: Vec<NodeId> = Vec::new();
        for branch in branches {
            match branch {
                Branch::Node(id) => pending.push(id),
                other => {
                    self.group(std::mem::take(&mut pending), &mut grouped);
                    grouped.push(other);
                }
            }
        }
        self.group(pending, &mut grouped);
        grouped
    }

    fn group(&self, nodes: Vec<NodeId>, grouped: &mut Vec<Branch>) {
        for part in self.outline.parts(nodes) {
            match part {
                Part::Products(products) => {
                    grouped.push(Branch::Row(Kind::Leaves, list(&products), products));
                }
                Part::Accumulator => grouped.push(Branch::Row(Kind::Leaves, "c".into(), Vec::new())),
                Part::Zero => grouped.push(Branch::Row(Kind::Leaves, "+0".into(), Vec::new())),
                Part::Inner(group) => {
                    grouped.push(Branch::Node(group[0]));
                    if let [_, others @ ..] = &group[..]
                        && !others.is_empty()
                    {
                        let covered: Vec<String> = others.iter().map(|&id| self.covered(id)).collect();
                        let text = format!("⋮ {} more like it: {}", others.len(), abbreviated(&covered));
                        let products = others.iter().flat_map(|&id| self.outline.products(id)).collect();
                        grouped.push(Branch::Row(Kind::More, text, products));
                    }
                }
            }
        }
    }
}

/// The summands of a link but for the link before.
fn children(outline: &Outline<'_>, link: NodeId, position: usize) -> Vec<NodeId> {
    let summands = outline.sum(link).map_or(&[][..], |(_, summands)| summands);
    summands.iter().enumerate().filter(|&(i, _)| i != position).map(|(_, &child)| child).collect()
}
