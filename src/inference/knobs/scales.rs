//! Where block scales are applied.

use mmaprobe_model::tree::{Model, Node, NodeId};

/// Applies the scale of each block to its products, or to sums of them, up to so many sums above each other, as
/// far as all summands are of one block. Nothing changes in a model without scales.
pub(super) fn place_scales(model: &mut Model, sums: usize) {
    let Some(scale) = model.scale else { return };
    let nodes = std::mem::take(&mut model.tree.nodes);
    if let Some(root) = nodes.len().checked_sub(1) {
        let mut placed = Placed { old: &nodes, block: scale.block, sums, new: &mut model.tree.nodes };
        placed.put(root);
    }
}

struct Placed<'a> {
    old: &'a [Node],
    /// Products of a block.
    block: usize,
    /// The most sums above each other to which a scale is not yet applied.
    sums: usize,
    new: &'a mut Vec<Node>,
}

/// A node in its new place.
#[derive(Clone, Copy)]
struct Put {
    node: NodeId,
    /// The block whose scale it still lacks.
    lacks: Option<usize>,
    /// The sums above each other in it that lack a scale.
    sums: usize,
}

impl Placed<'_> {
    fn push(&mut self, node: Node) -> NodeId {
        self.new.push(node);
        self.new.len() - 1
    }

    fn put(&mut self, id: NodeId) -> Put {
        match &self.old[id] {
            Node::Product(k) => {
                let node = self.push(Node::Product(*k));
                Put { node, lacks: Some(k / self.block), sums: 0 }
            }
            // Each product's scale is put where it belongs anew.
            Node::Scaled { child, .. } => self.put(*child),
            leaf @ (Node::Accumulator | Node::Zero) => {
                let node = self.push(leaf.clone());
                Put { node, lacks: None, sums: 0 }
            }
            Node::Sum { children, rule } => {
                let children: Vec<Put> = children.iter().map(|&child| self.put(child)).collect();
                let mut others = children.iter().filter(|child| !matches!(self.new[child.node], Node::Zero));
                let sums = 1 + children.iter().map(|child| child.sums).max().unwrap_or(0);
                let first = others.next().and_then(|first| first.lacks);
                if first.is_some() && sums <= self.sums && others.all(|other| other.lacks == first) {
                    let children = children.into_iter().map(|child| child.node).collect();
                    let node = self.push(Node::Sum { children, rule: *rule });
                    return Put { node, lacks: first, sums };
                }
                let scaled = children.into_iter().map(|child| match child.lacks {
                    Some(block) => self.push(Node::Scaled { child: child.node, block }),
                    None => child.node,
                });
                let children = scaled.collect();
                let node = self.push(Node::Sum { children, rule: *rule });
                Put { node, lacks: None, sums: 0 }
            }
        }
    }
}
