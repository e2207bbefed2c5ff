//! The order of summation as a tree, without any arithmetic.

mod variants;

use std::collections::HashSet;

use mmaprobe_model::Model;
use mmaprobe_model::tree::{Node, NodeId};
use mmaprobe_probes::Summand;

/// The summation order: what is added in which sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skeleton {
    /// A product or c.
    Leaf(Summand),
    /// A sum: children that contain c first, then other sums, then products.
    Sum(Vec<Skeleton>),
    /// A sum that masks do not show: it is handed to the sum it is in without being normalised.
    Inner(Vec<Skeleton>),
}

impl Skeleton {
    /// What a node of a model's tree adds, without sums of one summand; `None` of zeros.
    pub fn of(model: &Model, node: NodeId) -> Option<Skeleton> {
        match &model.tree.nodes[node] {
            Node::Product(k) => Some(Skeleton::Leaf(Summand::Product(*k))),
            Node::Accumulator => Some(Skeleton::Leaf(Summand::C)),
            Node::Zero => None,
            node => {
                let children = node.children().iter();
                let mut children: Vec<Skeleton> =
                    children.filter_map(|&child| Skeleton::of(model, child)).collect();
                if children.len() < 2 {
                    return children.pop();
                }
                Skeleton::sort(&mut children);
                Some(Skeleton::Sum(children))
            }
        }
    }

    /// Whether c is among its leaves.
    pub fn contains_c(&self) -> bool {
        match self {
            Skeleton::Leaf(summand) => *summand == Summand::C,
            Skeleton::Sum(children) | Skeleton::Inner(children) => children.iter().any(Skeleton::contains_c),
        }
    }

    /// Whether another has sums of the same summands, in whatever order.
    pub fn has_the_same_sums(&self, other: &Skeleton) -> bool {
        self.sums() == other.sums()
    }

    /// The sums, in words that are the same for every order that has the same.
    pub fn sums(&self) -> String {
        self.in_order().to_string()
    }

    /// The same, with the summands of each sum in an order that depends on nothing but them.
    fn in_order(&self) -> Skeleton {
        match self {
            Skeleton::Leaf(_) => self.clone(),
            Skeleton::Sum(children) | Skeleton::Inner(children) => {
                let mut children: Vec<Skeleton> = children.iter().map(Skeleton::in_order).collect();
                children.sort_by_cached_key(Skeleton::to_string);
                Skeleton::Sum(children)
            }
        }
    }

    /// Whether it has sums that masks do not show.
    pub fn has_inner(&self) -> bool {
        match self {
            Skeleton::Leaf(_) => false,
            Skeleton::Inner(_) => true,
            Skeleton::Sum(children) => children.iter().any(Skeleton::has_inner),
        }
    }

    /// Whether nothing is nested.
    pub fn is_flat(&self) -> bool {
        match self {
            Skeleton::Leaf(_) => true,
            Skeleton::Sum(children) | Skeleton::Inner(children) => {
                children.iter().all(|child| matches!(child, Skeleton::Leaf(_)))
            }
        }
    }

    /// Whether most of its summands are added in its last sum.
    pub fn is_mostly_flat(&self) -> bool {
        let Skeleton::Sum(children) = self else { return true };
        let leaves = children.iter().filter(|child| matches!(child, Skeleton::Leaf(_))).count();
        2 * leaves > self.summands().len()
    }

    /// Its leaves.
    pub fn summands(&self) -> Vec<Summand> {
        match self {
            Skeleton::Leaf(summand) => vec![*summand],
            Skeleton::Sum(children) | Skeleton::Inner(children) => {
                children.iter().flat_map(Skeleton::summands).collect()
            }
        }
    }

    /// Its sums of sums, with the parts in which products are added, as another order has them where it has the same part.
    pub fn with_parts_of(&self, other: &Skeleton) -> Skeleton {
        let Skeleton::Sum(children) = self else { return self.clone() };
        let is_product = |child: &Skeleton| matches!(child, Skeleton::Leaf(Summand::Product(_)));
        if !children.iter().any(is_product) {
            return Skeleton::Sum(children.iter().map(|child| child.with_parts_of(other)).collect());
        }
        let mut summands = self.summands();
        summands.sort_unstable();
        other.part_of(&summands).unwrap_or(self).clone()
    }

    /// The sum of these summands, which are sorted, in whatever order it adds them; `None` if there is none.
    pub fn part_of(&self, summands: &[Summand]) -> Option<&Skeleton> {
        let mut own = self.summands();
        own.sort_unstable();
        if own == summands {
            return Some(self);
        }
        let (Skeleton::Sum(children) | Skeleton::Inner(children)) = self else { return None };
        children.iter().find_map(|child| child.part_of(summands))
    }

    /// A leaf that is in as few sums inside it as any.
    pub fn nearest(&self) -> Summand {
        fn below(skeleton: &Skeleton) -> (usize, Summand) {
            match skeleton {
                Skeleton::Leaf(summand) => (0, *summand),
                Skeleton::Sum(children) | Skeleton::Inner(children) => {
                    let nearest = children.iter().map(below).min_by_key(|(depth, _)| *depth);
                    let (depth, summand) = nearest.expect("a sum has children");
                    (depth + 1, summand)
                }
            }
        }
        below(self).1
    }

    /// The same as a sum that masks show, if it is one that they do not show.
    pub fn into_sum(self) -> Skeleton {
        match self {
            Skeleton::Inner(children) => Skeleton::Sum(children),
            other => other,
        }
    }

    /// Sorts children as in every skeleton, keeping their order otherwise.
    pub fn sort(children: &mut [Skeleton]) {
        children.sort_by_key(|child| match child {
            child if child.contains_c() => 0,
            Skeleton::Sum(_) | Skeleton::Inner(_) => 1,
            Skeleton::Leaf(_) => 2,
        });
    }
}

/// The first of these orders whose sums are not those of one before, so many at most.
pub fn distinct(orders: impl Iterator<Item = Skeleton>, most: usize) -> Vec<Skeleton> {
    let mut known = HashSet::new();
    orders.filter(|order| known.insert(order.sums())).take(most).collect()
}

impl std::fmt::Display for Skeleton {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Skeleton::Leaf(Summand::C) => f.write_str("c"),
            Skeleton::Leaf(Summand::Product(k)) => write!(f, "p{k}"),
            Skeleton::Sum(children) | Skeleton::Inner(children) => {
                let children: Vec<String> = children.iter().map(Skeleton::to_string).collect();
                write!(f, "({})", children.join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format;
    use mmaprobe_probes::Signature;

    use super::*;
    use crate::inference::structure::{self, Structure};

    #[test]
    fn sums_are_the_same_in_whatever_order() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let c = || Skeleton::Leaf(Summand::C);
        let pair = |x, y| Skeleton::Sum(vec![leaf(x), leaf(y)]);
        let tree = Skeleton::Sum(vec![c(), pair(0, 1), pair(2, 3)]);
        let other = Skeleton::Sum(vec![pair(3, 2), pair(0, 1), c()]);
        assert!(tree != other && tree.has_the_same_sums(&other));
        assert!(!tree.has_the_same_sums(&Skeleton::Sum(vec![c(), pair(0, 2), pair(1, 3)])));
        assert!(
            !tree.has_the_same_sums(&Skeleton::Sum(vec![c(), Skeleton::Sum(vec![pair(0, 1), pair(2, 3)])]))
        );
        assert_eq!(tree.to_string(), "(c (p0 p1) (p2 p3))");
        let signature = Signature {
            k: 4,
            a: format::FP16,
            b: format::FP16,
            c: format::FP32,
            d: format::FP32,
            scale: None,
        };
        let [one, another] = [&tree, &other].map(|order| {
            let start = Structure::Plain;
            structure::start(&signature, order, start).tree
        });
        assert!(!one.adds_the_same(&another) && one.has_the_same_sums(&another));
        let flat = Skeleton::Sum((0..4).map(leaf).chain([c()]).collect());
        let flat = structure::start(&signature, &flat, Structure::Plain);
        assert!(!one.has_the_same_sums(&flat.tree));
    }

    #[test]
    fn parts_are_taken_from_another_order() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let c = || Skeleton::Leaf(Summand::C);
        let sum = |children: Vec<Skeleton>| Skeleton::Sum(children);
        let masked = sum(vec![c(), sum(vec![sum((0..3).map(leaf).collect()), sum(vec![leaf(3), leaf(4)])])]);
        let part = || sum(vec![sum(vec![leaf(2), leaf(0)]), leaf(1)]);
        // Parts are in another order there, and one of them is no part.
        let other = sum(vec![sum(vec![c(), part()]), leaf(3), leaf(4)]);
        let expected = sum(vec![c(), sum(vec![part(), sum(vec![leaf(3), leaf(4)])])]);
        assert_eq!(masked.with_parts_of(&other), expected);
        // Where products stand beside sums, these are a part, too.
        let beside = sum(vec![leaf(3), sum((0..3).map(leaf).collect())]);
        let whole = sum(vec![part(), leaf(3)]);
        assert_eq!(beside.with_parts_of(&sum(vec![whole.clone(), c()])), whole);
    }
}
