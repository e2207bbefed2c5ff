//! Which summands of a sum are those that it aligns in ways of their own.
//!
//! A rule says by their places how the first summands of a sum are aligned, and all after them alike. Which summand is in
//! which place shows in nothing else, so the order of a sum is that of its products until an answer says otherwise.

use mmaprobe_model::Rounding;
use mmaprobe_model::tree::{Added, Alignment, Fused, Model, Node, NodeId};

use super::joint::aligned_at;
use super::{Knob, MOST_FRACTION_BITS, Turned, arity};

/// Models in which two summands of a sum change places that are aligned otherwise.
pub fn turn_places(model: &Model) -> Vec<Turned> {
    let mut turned = Vec::new();
    for Aligned { node, children, fused, knob } in aligned_sums(model) {
        for one in 0..children.len() {
            for other in one + 1..children.len() {
                if fused.alignment_of(one) != fused.alignment_of(other) {
                    let mut swapped = children.to_vec();
                    swapped.swap(one, other);
                    let choice = format!("{one} and {other} change places");
                    let model = with_sum(model, node, swapped, None);
                    turned.push(Turned { knob: knob.clone(), choice, model });
                }
            }
        }
    }
    turned
}

/// Models in which one of the summands that are aligned alike has a place among those that are aligned in ways of their
/// own. Right behind these, it is aligned in another way, or as before, and those after it are not; in the place of
/// one of them, it is aligned in another way than that.
pub fn turn_own_places(model: &Model) -> Vec<Turned> {
    let mut turned = Vec::new();
    // Of two, each is told by its place.
    let sums = aligned_sums(model).filter(|sum| sum.children.len() > 2);
    for Aligned { node, children, fused, knob } in sums {
        let arity = arity(model, knob.rule.expect("a sum follows a rule"));
        let own = fused.alignment.len() - 1;
        let before = *fused.alignment_of(own);
        for (into, instead) in fused.alignment[..own].iter().enumerate() {
            for from in own..children.len() {
                let mut swapped = children.to_vec();
                swapped.swap(into, from);
                for other in alignments(before).filter(|other| other != instead) {
                    let choice = format!("{from} for {into}, {}", words(other));
                    let fused = aligned_at(fused, arity, into, other);
                    let model = with_sum(model, node, swapped.clone(), Some(fused));
                    turned.push(Turned { knob: knob.clone(), choice, model });
                }
            }
        }
        // The one that is there already need not come there.
        for from in own + 1..children.len() {
            let mut moved = children.to_vec();
            let summand = moved.remove(from);
            moved.insert(own, summand);
            for other in alignments(before).filter(|other| *other != before) {
                let apart = aligned_at(fused, arity, own, other);
                let mut rest = aligned_at(fused, arity, own, before);
                rest.alignment.truncate(own + 1);
                rest.alignment.push(other);
                for (what, fused) in [("it alone", apart), ("all after it", rest)] {
                    let choice = format!("{from} behind those, {}, {what}", words(other));
                    let model = with_sum(model, node, moved.clone(), Some(fused));
                    turned.push(Turned { knob: knob.clone(), choice, model });
                }
            }
        }
    }
    turned
}

/// A sum that aligns its summands.
struct Aligned<'m> {
    node: NodeId,
    children: &'m [NodeId],
    fused: &'m Fused,
    knob: Knob,
}

fn aligned_sums(model: &Model) -> impl Iterator<Item = Aligned<'_>> {
    model.tree.nodes.iter().enumerate().filter_map(|(node, content)| {
        let Node::Sum { children, rule } = content else { return None };
        let Added::Fused(fused) = &model.tree.rules[*rule].added else { return None };
        let knob = Knob { what: format!("places of the summands of sum {node}"), rule: Some(*rule) };
        Some(Aligned { node, children, fused, knob })
    })
}

/// The model with these children of a sum, and its rule aligning so.
fn with_sum(model: &Model, node: NodeId, children: Vec<NodeId>, fused: Option<Fused>) -> Model {
    let mut other = model.clone();
    if let Node::Sum { children: own, rule } = &mut other.tree.nodes[node] {
        *own = children;
        if let Some(fused) = fused {
            other.tree.rules[*rule].added = Added::Fused(fused);
        }
    }
    other
}

/// Every number of fraction bits with every rounding.
fn alignments(before: Alignment) -> impl Iterator<Item = Alignment> {
    (0..=MOST_FRACTION_BITS).flat_map(move |fraction_bits| {
        Rounding::EVERY.map(|rounding| Alignment { fraction_bits, rounding, ..before })
    })
}

fn words(alignment: Alignment) -> String {
    format!("F = {}, {}", alignment.fraction_bits, alignment.rounding)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::tree::{Normalised, Rule, Tree};
    use mmaprobe_model::{Model, Rounding, format};

    use super::*;

    /// c and four products in one sum, aligned so by their places.
    fn sum(order: [usize; 4], alignment: Vec<Alignment>) -> Model {
        let mut model = Model::chain_of_fma(format::FP16, format::FP32, 4);
        let leaves = std::iter::once(Node::Accumulator).chain(order.map(Node::Product));
        let mut nodes: Vec<Node> = leaves.collect();
        nodes.push(Node::Sum { children: (0..5).collect(), rule: 0 });
        let added =
            Added::Fused(Fused { alignment: alignment.into(), ..Fused::uniform(0, Rounding::TowardZero) });
        let normalised = Normalised::To(format::RoundTo::nearest_even(format::FP32));
        let rules = vec![Rule { added, normalised, ..model.tree.rules[0].clone() }];
        model.tree = Tree { nodes: nodes.into(), rules };
        model
    }

    fn aligned(fraction_bits: u32) -> Alignment {
        Alignment { fraction_bits, rounding: Rounding::TowardZero, far: None }
    }

    fn has(turned: &[Turned], order: [usize; 4], alignment: [u32; 5]) -> bool {
        let expected = sum(order, alignment.map(aligned).to_vec());
        let of = |model: &Model| {
            let Some(Node::Sum { children, .. }) = model.tree.nodes.last() else { panic!() };
            let Added::Fused(fused) = &model.tree.rules[0].added else { panic!() };
            let place = |(place, &child): (usize, &NodeId)| {
                (model.tree.nodes[child].clone(), *fused.alignment_of(place))
            };
            children.iter().enumerate().map(place).collect::<Vec<_>>()
        };
        turned.iter().any(|turned| of(&turned.model) == of(&expected))
    }

    #[test]
    fn any_summand_may_be_one_that_is_aligned_in_a_way_of_its_own() {
        let model = sum([0, 1, 2, 3], [19, 16, 25].map(aligned).to_vec());
        let swapped = turn_places(&model);
        // c with each product, and p0 with each other one.
        assert_eq!(swapped.len(), 7);
        assert!(has(&swapped, [2, 1, 0, 3], [19, 16, 25, 25, 25]));
        let own = turn_own_places(&model);
        assert!(has(&own, [0, 3, 1, 2], [19, 16, 29, 25, 25]), "p3, alone, is aligned in another way");
        assert!(has(&own, [0, 3, 1, 2], [19, 16, 25, 7, 7]), "p3, alone, is aligned as before");
        assert!(has(&own, [2, 1, 0, 3], [19, 30, 25, 25, 25]), "p2 is in the place of p0");
        assert!(own.iter().all(|turned| turned.model.check().is_ok()));
    }
}
