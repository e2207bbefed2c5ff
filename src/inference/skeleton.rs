//! The order of summation as a tree, without any arithmetic.

use std::collections::HashSet;

use mmaprobe_model::Model;
use mmaprobe_model::tree::{Node, NodeId};
use mmaprobe_probes::Summand;

use super::regular;

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

    /// With c and the groups of the sum beside it as summands of one sum, if there are such: masks hardly tell the
    /// one from the other where little of a sum is kept.
    pub fn hoisted(&self) -> Option<Skeleton> {
        let Skeleton::Sum(children) = self else { return None };
        let [Skeleton::Leaf(Summand::C), Skeleton::Sum(groups) | Skeleton::Inner(groups)] = &children[..]
        else {
            return None;
        };
        let leaf = |skeleton: &Skeleton| matches!(skeleton, Skeleton::Leaf(_));
        let c = Skeleton::Leaf(Summand::C);
        (!groups.iter().any(leaf)).then(|| Skeleton::Sum([vec![c], groups.clone()].concat()))
    }

    /// With c added to the sum of all products, if it is added anywhere else.
    pub fn with_c_last(&self) -> Option<Skeleton> {
        let last = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), self.without_c()?]);
        (!last.has_the_same_sums(self)).then_some(last)
    }

    /// The sum of all products; `None` if there are none.
    fn without_c(&self) -> Option<Skeleton> {
        let (Skeleton::Sum(children) | Skeleton::Inner(children)) = self else {
            return (*self != Skeleton::Leaf(Summand::C)).then(|| self.clone());
        };
        let mut left: Vec<Skeleton> = children.iter().filter_map(Skeleton::without_c).collect();
        match left.len() {
            0 | 1 => left.pop(),
            _ => {
                Skeleton::sort(&mut left);
                let sum = if matches!(self, Skeleton::Inner(_)) { Skeleton::Inner } else { Skeleton::Sum };
                Some(sum(left))
            }
        }
    }

    /// Where c is added to a chain of products: with these added to c instead, the last first, in both orders of the two that
    /// the chain begins with. Where the summands of a sum are aligned in ways of their own, the last of a chain can
    /// be exchanged rather than the first, and it looks reversed.
    pub fn reversed_from_c(&self) -> Vec<Skeleton> {
        let Skeleton::Sum(children) = self else { return Vec::new() };
        let c = Skeleton::Leaf(Summand::C);
        if let [one, other] = &children[..]
            && (*one == c || *other == c)
        {
            let chain = if *one == c { other } else { one };
            let Some((outer, [x, y])) = chain.outside_in() else { return Vec::new() };
            let add = |sum, product: &Skeleton| Skeleton::Sum(vec![sum, product.clone()]);
            let begun = outer.into_iter().fold(c, add);
            return [[x, y], [y, x]].map(|pair| pair.into_iter().fold(begun.clone(), add)).to_vec();
        }
        let with = |place: usize, child: Skeleton| {
            let mut children = children.clone();
            children[place] = child;
            Skeleton::Sum(children)
        };
        let all = children.iter().enumerate();
        all.flat_map(|(place, child)| {
            child.reversed_from_c().into_iter().map(move |child| with(place, child)).collect::<Vec<_>>()
        })
        .collect()
    }

    /// The products of a chain of more than two, the last first, and apart the two that it begins with; `None` of what is no
    /// such chain.
    fn outside_in(&self) -> Option<(Vec<&Skeleton>, [&Skeleton; 2])> {
        let mut outer = Vec::new();
        let mut inside = self;
        loop {
            let Skeleton::Sum(children) = inside else { return None };
            let [one, other] = &children[..] else { return None };
            match (one, other) {
                (Skeleton::Leaf(_), Skeleton::Leaf(_)) => {
                    return (!outer.is_empty()).then_some((outer, [one, other]));
                }
                (Skeleton::Leaf(_), _) => {
                    outer.push(one);
                    inside = other;
                }
                (_, Skeleton::Leaf(_)) => {
                    outer.push(other);
                    inside = one;
                }
                _ => return None,
            }
        }
    }

    /// With the products of each sum that is added to one other sum as summands of the sum that adds the two instead, if there
    /// are such. Where what the other hands on has been rounded, its summands cannot be exchanged with these, whether these
    /// are added to each other first or not.
    pub fn dissolved(&self) -> Option<Skeleton> {
        let dissolved = self.with_groups_dissolved();
        (!dissolved.has_the_same_sums(self)).then_some(dissolved)
    }

    fn with_groups_dissolved(&self) -> Skeleton {
        let (Skeleton::Sum(children) | Skeleton::Inner(children)) = self else { return self.clone() };
        let mut into: Vec<Skeleton> = children.iter().map(Skeleton::with_groups_dissolved).collect();
        // Of two groups of products, the one that comes first is taken for what the other is added to.
        if let [one, other] = &into[..]
            && let Skeleton::Sum(products) = other
            && matches!(one, Skeleton::Sum(_))
            && products.iter().all(|product| matches!(product, Skeleton::Leaf(Summand::Product(_))))
        {
            into = [vec![one.clone()], products.clone()].concat();
        }
        if matches!(self, Skeleton::Inner(_)) { Skeleton::Inner(into) } else { Skeleton::Sum(into) }
    }

    /// Where c and sums are summands of one sum: with these and all others added to c one after the other instead, in
    /// likely orders. Where products are too small beside c to be told from each other, nothing shows which comes
    /// first.
    pub fn chained_from_c(&self) -> Vec<Skeleton> {
        let Skeleton::Sum(children) = self else { return Vec::new() };
        let (c, groups): (Vec<&Skeleton>, Vec<&Skeleton>) =
            children.iter().partition(|child| **child == Skeleton::Leaf(Summand::C));
        let ([c], true) = (&c[..], groups.iter().any(|group| !matches!(group, Skeleton::Leaf(_)))) else {
            return Vec::new();
        };
        let count = groups.len();
        let add = |sum, group: usize| Skeleton::Sum(vec![sum, groups[group].clone()]);
        let orders = [(0..count).collect(), (0..count).rev().collect(), regular::strided(count, 2)];
        orders.into_iter().map(|order: Vec<usize>| order.into_iter().fold((*c).clone(), add)).collect()
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
    fn c_is_moved_to_the_end() {
        let moved = |order: Skeleton| order.with_c_last().map(|last| last.to_string());
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let c = || Skeleton::Leaf(Summand::C);
        let sum = Skeleton::Sum;
        let pair = |one, other| sum(vec![one, other]);
        let others = || (2..6).map(leaf);
        let first = sum(std::iter::once(pair(pair(c(), leaf(0)), leaf(1))).chain(others()).collect());
        assert_eq!(first.to_string(), "(((c p0) p1) p2 p3 p4 p5)");
        assert_eq!(moved(first), Some("(c ((p0 p1) p2 p3 p4 p5))".to_string()));
        let products = sum(std::iter::once(pair(leaf(0), leaf(1))).chain(others()).collect());
        assert_eq!(moved(pair(c(), products)), None);
        assert_eq!(moved(Skeleton::Leaf(Summand::C)), None);
    }

    #[test]
    fn groups_that_are_added_one_after_the_other_are_dissolved() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let group = |products: std::ops::Range<usize>| Skeleton::Sum(products.map(leaf).collect());
        let pair = |one, other| Skeleton::Sum(vec![one, other]);
        let with_c = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), leaf(0), leaf(1)]);
        let from_c = pair(pair(with_c.clone(), group(2..5)), group(5..7));
        assert_eq!(
            from_c.dissolved().map(|order| order.to_string()),
            Some("(((c p0 p1) p2 p3 p4) p5 p6)".to_string())
        );
        let from_zero = pair(Skeleton::Leaf(Summand::C), pair(group(0..2), group(2..5)));
        assert_eq!(
            from_zero.dissolved().map(|order| order.to_string()),
            Some("(c ((p0 p1) p2 p3 p4))".to_string())
        );
        let beside_others = Skeleton::Sum(vec![with_c, group(2..5), group(5..7)]);
        for whole in [beside_others, group(0..7), pair(Skeleton::Leaf(Summand::C), group(0..7))] {
            assert_eq!(whole.dissolved(), None, "{whole}");
        }
    }

    #[test]
    fn a_chain_is_reversed_from_c() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let pair = |one, other| Skeleton::Sum(vec![one, other]);
        let chain = pair(pair(pair(leaf(1), leaf(3)), leaf(0)), leaf(2));
        let shown = pair(pair(Skeleton::Leaf(Summand::C), chain.clone()), leaf(4));
        let orders: Vec<String> = shown.reversed_from_c().iter().map(Skeleton::to_string).collect();
        assert_eq!(orders, ["(((((c p2) p0) p1) p3) p4)", "(((((c p2) p0) p3) p1) p4)"]);
        assert!(chain.reversed_from_c().is_empty(), "there is no c");
        let of_two = pair(Skeleton::Leaf(Summand::C), pair(leaf(0), leaf(1)));
        assert!(of_two.reversed_from_c().is_empty(), "there is no chain");
    }

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
