//! Sums that add the same in another order.
//!
//! A sum of several summands is the same number whatever their order, but of several NaNs it hands on the one that stands
//! first or last. Nothing shows where c stands in a sum, and which of several sums in it comes first, but that.

use mmaprobe_model::tree::{Added, Fused, Model, Node, Rule};

use super::{Term, changed, is_product, term, with_tree};

/// Every model in which one sum adds what is no product in another order: c moved behind all other summands, or before them,
/// or all that are no products the other way round, each aligned as it was.
pub fn reordered(model: &Model) -> Vec<Model> {
    let mut trees = Vec::new();
    changed(&term(model, model.tree.nodes.len() - 1), &mut trees, &|sum, rule| {
        let orders = orders(sum).into_iter();
        orders.map(|order| ((), in_order(sum, rule, &order))).collect()
    });
    let mut all: Vec<Model> = Vec::new();
    for other in trees.into_iter().map(|((), tree)| with_tree(model, &tree)) {
        if other.check().is_ok() && !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

/// Other orders of these summands, by their places.
fn orders(sum: &[Term]) -> Vec<Vec<usize>> {
    let own: Vec<usize> = (0..sum.len()).collect();
    let mut orders: Vec<Vec<usize>> = Vec::new();
    if let Some(c) = sum.iter().position(|term| matches!(term, Term::Leaf(Node::Accumulator))) {
        let others = || own.iter().copied().filter(|&place| place != c);
        orders.push(others().chain([c]).collect());
        orders.push([c].into_iter().chain(others()).collect());
    }
    let others: Vec<usize> = own.iter().copied().filter(|&place| !is_product(&sum[place])).collect();
    let mut reversed = own.clone();
    for (&place, &other) in others.iter().zip(others.iter().rev()) {
        reversed[place] = other;
    }
    orders.push(reversed);
    orders.retain(|order| *order != own);
    orders.dedup();
    orders
}

/// The sum of these summands in an order of their places.
fn in_order(sum: &[Term], rule: &Rule, order: &[usize]) -> Term {
    let mut rule = rule.clone();
    if let Added::Fused(fused) = &rule.added
        && fused.alignment.len() > 1
    {
        let alignment = order.iter().map(|&place| *fused.alignment_of(place)).collect();
        rule.added = Added::Fused(Fused { alignment, ..fused.clone() });
    }
    Term::Sum(order.iter().map(|&place| sum[place].clone()).collect(), rule)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32};
    use mmaprobe_model::tree::Alignment;

    use super::*;

    #[test]
    fn what_is_no_product_changes_places_with_its_alignment() {
        // c + p0 + (p1 + p2), aligned in three ways.
        let mut model = Model::chain_of_fma(FP16, FP32, 3);
        let alignment = [24, 20, 16].map(|fraction_bits| Alignment {
            fraction_bits,
            rounding: Rounding::Down,
            far: None,
        });
        let fused = Fused { alignment: alignment.to_vec().into(), ..Fused::uniform(0, Rounding::Down) };
        let own = Rule { added: Added::Fused(fused.clone()), ..model.tree.rules[0].clone() };
        model.tree.rules.push(own);
        let leaves = [Node::Accumulator, Node::Product(0), Node::Product(1), Node::Product(2)];
        let sums =
            [Node::Sum { children: vec![2, 3], rule: 0 }, Node::Sum { children: vec![0, 1, 4], rule: 1 }];
        model.tree.nodes = leaves.into_iter().chain(sums).collect::<Vec<_>>().into();
        assert_eq!(model.check(), Ok(()));
        let kept = |model: &Model| -> Vec<(String, u32)> {
            let Some(Node::Sum { children, rule }) = model.tree.nodes.last() else { panic!("it is a sum") };
            let Added::Fused(fused) = &model.tree.rules[*rule].added else { panic!("it aligns") };
            let name = |child: usize| match &model.tree.nodes[child] {
                Node::Accumulator => "c".to_string(),
                Node::Product(k) => format!("p{k}"),
                _ => "sum".to_string(),
            };
            children
                .iter()
                .enumerate()
                .map(|(place, &child)| (name(child), fused.alignment_of(place).fraction_bits))
                .collect()
        };
        let pairs = |pairs: [(&str, u32); 3]| pairs.map(|(name, bits)| (name.to_string(), bits)).to_vec();
        let found: Vec<_> = reordered(&model).iter().map(kept).collect();
        let last = pairs([("p0", 20), ("sum", 16), ("c", 24)]);
        let reversed = pairs([("sum", 16), ("p0", 20), ("c", 24)]);
        assert_eq!(found, [last, reversed]);
    }
}
