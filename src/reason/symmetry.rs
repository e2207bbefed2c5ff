//! Trees that are the same function because addition does not see the order of its summands.

use crate::model::Model;
use crate::model::tree::{Added, NanRule, Node, NodeId};

/// Whether two models are the same sum tree, but for the order of summands that no result depends on.
///
/// # Panics
/// If a model does not pass [`Model::check`].
pub fn same_function(one: &Model, other: &Model) -> bool {
    ordered(one) == ordered(other)
}

/// The model with its products renumbered: what was p`k` is p`order[k]`.
///
/// # Panics
/// If `order` names fewer products than the model has.
pub fn permuted(model: &Model, order: &[usize]) -> Model {
    let mut model = model.clone();
    for node in &mut model.tree.nodes {
        if let Node::Product(k) = node {
            *k = order[*k];
        }
    }
    model
}

/// The model with the summands of each sum in one order, where their order means nothing: they are aligned
/// alike, and no NaN is chosen by its place.
fn ordered(model: &Model) -> Model {
    let mut model = model.canonical();
    let by_place = matches!(model.nan, NanRule::Propagated(_) | NanRule::Merged { .. });
    if by_place {
        return model;
    }
    // What a subtree holds, as a key to order it by.
    let mut keys: Vec<String> = Vec::with_capacity(model.tree.nodes.len());
    let mut moved: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
    for (id, node) in model.tree.nodes.iter().enumerate() {
        let key = match node {
            Node::Sum { children, rule } => {
                let alike = match &model.tree.rules[*rule].added {
                    Added::Exact => 0,
                    // The last alignment holds for all further summands.
                    Added::Fused(fused) => fused.alignment.len() - 1,
                };
                let mut children = children.clone();
                if alike < children.len() {
                    children[alike..].sort_by(|&x, &y| keys[x].cmp(&keys[y]));
                }
                let parts: Vec<&str> = children.iter().map(|&child| keys[child].as_str()).collect();
                let key = format!("sum {rule} ({})", parts.join(", "));
                moved.push((id, children));
                key
            }
            Node::Scaled { child, block } => format!("scaled {block} ({})", keys[*child]),
            leaf => format!("{leaf:?}"),
        };
        keys.push(key);
    }
    for (id, sorted) in moved {
        if let Node::Sum { children, .. } = &mut model.tree.nodes[id] {
            *children = sorted;
        }
    }
    model.canonical()
}
