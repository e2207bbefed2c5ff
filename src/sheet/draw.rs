//! The summation tree as text: box-drawing characters, repetition folded.
//!
//! ```text
//! d = Σ exact → fp32 RNE
//! ├─ ⋮ 14 more like it: p1 … p14
//! │  └─ Σ exact → fp32 RNE
//! │     ├─ c
//! │     └─ p0
//! └─ p15
//! ```

use mmaprobe_model::Model;
use mmaprobe_model::tree::{Added, Fused, Node, NodeId, Normalised, Rule};

use crate::sheet::outline::{Chain, Outline, Part, abbreviated, list};
use crate::sheet::spelling::short;

/// The least width that leaves room for labels beside the branches.
const MIN_WIDTH: usize = 40;

/// Draws the sum tree of a model in lines of at most `width` columns (and at least 40).
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn draw(model: &Model, width: usize) -> Vec<String> {
    let model = model.canonical();
    let outline = Outline::new(&model.tree);
    let mut drawing = Drawing {
        outline: &outline,
        rules: &model.tree.rules,
        width: width.max(MIN_WIDTH),
        lines: Vec::new(),
        below: vec![outline.root()],
    };
    let mut drawn = 0;
    while let Some(&id) = drawing.below.get(drawn) {
        drawn += 1;
        let name = outline.step_name(id);
        drawing.node(id, &format!("{name} = "), "", "", Detail::Full);
    }
    drawing.lines
}

/// How a sum's summands are drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// With everything below them; chains are folded.
    Full,
    /// The first link of a chain whose last link has been drawn: only where the chain starts is
    /// there something new, and what is alike is not drawn again.
    First {
        /// Where the chain starts.
        start: NodeId,
    },
}

struct Drawing<'o> {
    outline: &'o Outline<'o>,
    rules: &'o [Rule],
    width: usize,
    lines: Vec<String>,
    /// Sums that are drawn one below the other: the root, then those too deep to be drawn in place.
    below: Vec<NodeId>,
}

/// A branch.
enum Branch {
    /// A line.
    Text(String),
    /// A node with all that hangs from it.
    Node(NodeId),
    /// A line, and below it the first link of a chain.
    Folded(String, Chain),
}

impl Drawing<'_> {
    /// Writes a text after `first`, and further lines after `rest`.
    fn text(&mut self, text: &str, first: &str, rest: &str) {
        let options = textwrap::Options::new(self.width).initial_indent(first).subsequent_indent(rest);
        let lines = textwrap::wrap(text, options);
        self.lines.extend(lines.into_iter().map(|line| line.trim_end().to_string()));
    }

    /// Draws a node: its label after `first`, what hangs from it after `rest`.
    fn node(&mut self, id: NodeId, name: &str, first: &str, rest: &str, detail: Detail) {
        let (inner, blocks) = self.outline.unscaled(id);
        let scales: String = blocks.iter().map(|block| format!(" × scale[{block}]")).collect();
        let Some((rule, children)) = self.outline.sum(inner) else {
            let leaf = match self.outline.node(inner) {
                Node::Product(k) => format!("p{k}"),
                Node::Accumulator => "c".into(),
                _ => "+0".into(),
            };
            return self.text(&format!("{name}{leaf}{scales}"), first, rest);
        };
        if first.chars().count() > self.width / 2 {
            self.below.push(inner);
            let reference = format!("{}{scales} (below)", self.outline.step_name(inner));
            return self.text(&reference, first, rest);
        }
        self.text(&format!("{name}Σ {}{scales}", label(&self.rules[rule])), first, rest);
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
            let (fork, line) = if position == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let (first, rest) = (format!("{rest}{fork}"), format!("{rest}{line}"));
            match branch {
                Branch::Text(text) => self.text(&text, &first, &rest),
                Branch::Node(id) => self.node(id, "", &first, &rest, Detail::Full),
                Branch::Folded(text, Chain { links, start, .. }) => {
                    self.text(&text, &first, &rest);
                    let (first, rest) = (format!("{rest}└─ "), format!("{rest}   "));
                    self.node(links[0], "", &first, &rest, Detail::First { start });
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
            more => Branch::Folded(format!("⋮ {more} more like it: {}", list(&between)), chain.clone()),
        }
    }

    /// What stands for a summand.
    fn branch(&self, id: NodeId, detail: Detail) -> Branch {
        let is_sum = self.outline.sum(self.outline.unscaled(id).0).is_some();
        match detail {
            Detail::First { start } if id != start && is_sum => {
                Branch::Text(format!("as above: {}", self.covered(id)))
            }
            _ => Branch::Node(id),
        }
    }

    /// The products under a node, and its scales.
    fn covered(&self, id: NodeId) -> String {
        let (inner, blocks) = self.outline.unscaled(id);
        let scales: String = blocks.iter().map(|block| format!(" × scale[{block}]")).collect();
        list(&self.outline.products(inner)) + &scales
    }

    /// Takes neighbouring products together, and draws one of several alike sums.
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
                Part::Products(products) => grouped.push(Branch::Text(list(&products))),
                Part::Accumulator => grouped.push(Branch::Text("c".into())),
                Part::Zero => grouped.push(Branch::Text("+0".into())),
                Part::Inner(group) => {
                    grouped.push(Branch::Node(group[0]));
                    if group.len() > 1 {
                        let covered: Vec<String> = group[1..].iter().map(|&id| self.covered(id)).collect();
                        let more = group.len() - 1;
                        grouped
                            .push(Branch::Text(format!("⋮ {more} more like it: {}", abbreviated(&covered))));
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

/// A rule in a few characters: `fused F=24 RZ → fp32 RZ`.
pub fn label(rule: &Rule) -> String {
    let added = match &rule.added {
        Added::Exact => "exact".into(),
        Added::Fused(Fused { alignment, sticky, .. }) => {
            let alignments: Vec<String> = alignment
                .iter()
                .map(|alignment| format!("F={} {}", alignment.fraction_bits, alignment.rounding))
                .collect();
            format!("fused {}{}", alignments.join(" | "), if *sticky { ", sticky" } else { "" })
        }
    };
    match &rule.normalised {
        Normalised::To(round) => format!("{added} → {}", short(round)),
        Normalised::No { .. } => format!("{added}, unnormalised"),
    }
}
