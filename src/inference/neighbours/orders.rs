//! What else the summands of a sum may be summed in.

use std::collections::{BTreeSet, HashSet};

use mmaprobe_probes::Summand;

use crate::inference::skeleton::Skeleton;

/// The leaves of an order, or of a part of it.
pub type Summands = BTreeSet<Summand>;

/// An order that differs from another in one sum.
#[derive(Debug)]
pub struct Order {
    /// The whole order.
    pub order: Skeleton,
    /// The summands that are in a new sum of their own, if there is one.
    pub new: Option<Summands>,
}

/// The orders that differ in the sum of these summands, each once: some of them have a sum of their own, or a sum
/// among them has none, or has other summands. None if there is no such sum.
pub fn differing(whole: &Skeleton, sum: &Summands) -> Vec<Order> {
    let sorted: Vec<Summand> = sum.iter().copied().collect();
    let Some(Skeleton::Sum(children) | Skeleton::Inner(children)) = whole.part_of(&sorted) else {
        return Vec::new();
    };
    let mut known = HashSet::from([whole.sums()]);
    variants(children)
        .into_iter()
        .map(|Variant { children, new }| Order { order: replaced(whole, sum, &children), new })
        .filter(|order| known.insert(order.order.sums()))
        .collect()
}

/// The smallest sum that these summands are in, but for their own; `None` of all.
pub fn around(tree: &Skeleton, inside: &Summands) -> Option<Summands> {
    let (Skeleton::Sum(children) | Skeleton::Inner(children)) = tree else { return None };
    let own = summands(tree);
    let is_around = own != *inside && inside.is_subset(&own);
    is_around.then(|| children.iter().find_map(|child| around(child, inside)).unwrap_or(own))
}

/// What a sum may add instead.
struct Variant {
    children: Vec<Skeleton>,
    /// The summands that are in a new sum of their own, if there is one.
    new: Option<Summands>,
}

/// What a sum of these may add instead.
fn variants(children: &[Skeleton]) -> Vec<Variant> {
    let mut all = with_new_sum(children);
    for (place, child) in children.iter().enumerate() {
        let (Skeleton::Sum(inside) | Skeleton::Inner(inside)) = child else { continue };
        let others = children.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, other)| other);
        let dissolved: Vec<Skeleton> = inside.iter().chain(others).cloned().collect();
        all.extend(with_new_sum(&dissolved));
        all.push(Variant { children: dissolved, new: None });
    }
    all
}

/// Where a sum has so many summands or fewer, two of them are also all but two others, or all but one.
const FEW: usize = 4;

/// These summands, with two of them, all but one, or all but two in a sum of their own.
fn with_new_sum(children: &[Skeleton]) -> Vec<Variant> {
    if children.len() < 3 {
        return Vec::new();
    }
    let places = 0..children.len();
    let pairs = places.clone().flat_map(|one| (one + 1..children.len()).map(move |other| vec![one, other]));
    let ones = places.map(|one| vec![one]);
    let all_but = |some: Vec<usize>| (0..children.len()).filter(|place| !some.contains(place)).collect();
    let all_but_two = pairs.clone().filter(|_| children.len() > FEW).map(all_but);
    let summed = pairs.chain(ones.map(all_but)).chain(all_but_two);
    summed
        .map(|summed: Vec<usize>| {
            let (inside, outside): (Vec<_>, Vec<_>) =
                children.iter().enumerate().partition(|(place, _)| summed.contains(place));
            let [mut inside, outside] = [inside, outside]
                .map(|some| some.into_iter().map(|(_, child)| child.clone()).collect::<Vec<_>>());
            Skeleton::sort(&mut inside);
            let new = Skeleton::Sum(inside);
            let of_new = Some(summands(&new));
            Variant { children: std::iter::once(new).chain(outside).collect(), new: of_new }
        })
        .collect()
}

/// A tree in which the sum of these summands adds other children.
fn replaced(tree: &Skeleton, sum: &Summands, by: &[Skeleton]) -> Skeleton {
    let mut children = match tree {
        Skeleton::Leaf(_) => return tree.clone(),
        _ if summands(tree) == *sum => by.to_vec(),
        Skeleton::Sum(children) | Skeleton::Inner(children) => {
            children.iter().map(|child| replaced(child, sum, by)).collect()
        }
    };
    Skeleton::sort(&mut children);
    Skeleton::Sum(children)
}

/// The summands of a tree.
pub fn summands(tree: &Skeleton) -> Summands {
    tree.summands().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(k: usize) -> Skeleton {
        Skeleton::Leaf(Summand::Product(k))
    }

    fn sum<const N: usize>(children: [Skeleton; N]) -> Skeleton {
        Skeleton::Sum(children.to_vec())
    }

    /// Checks that these are the orders that differ in a sum, each once.
    fn assert_differing(whole: &Skeleton, of: &Skeleton, expected: &[Skeleton]) {
        let found = differing(whole, &summands(of));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for order in expected {
            assert!(found.iter().any(|found| found.order.has_the_same_sums(order)), "{order}: {found:?}");
        }
    }

    #[test]
    fn a_sum_of_two_sums_has_every_order_that_is_one_sum_away() {
        let [x, y] = [sum([leaf(0), leaf(1)]), sum([leaf(2), leaf(3)])];
        let inner = sum([x.clone(), y.clone()]);
        let with_c = |inside: Skeleton| sum([Skeleton::Leaf(Summand::C), inside]);
        let nested = |pair: &Skeleton, near: usize, far: usize| {
            with_c(sum([sum([pair.clone(), leaf(near)]), leaf(far)]))
        };
        let expected = [
            nested(&x, 2, 3),
            nested(&x, 3, 2),
            nested(&y, 0, 1),
            nested(&y, 1, 0),
            with_c(sum([x.clone(), leaf(2), leaf(3)])),
            with_c(sum([leaf(0), leaf(1), y.clone()])),
        ];
        assert_differing(&with_c(inner.clone()), &inner, &expected);
    }

    #[test]
    fn summands_of_a_flat_sum_get_a_sum_of_their_own() {
        let whole = sum([0, 1, 2].map(leaf));
        let pair = |x, y, other| sum([sum([leaf(x), leaf(y)]), leaf(other)]);
        assert_differing(&whole, &whole, &[pair(0, 1, 2), pair(0, 2, 1), pair(1, 2, 0)]);
        let of_five = sum([0, 1, 2, 3, 4].map(leaf));
        let all = differing(&of_five, &summands(&of_five));
        // Ten pairs, five times all but one, and ten times all but two.
        assert_eq!(all.len(), 25);
        assert!(all.iter().all(|order| order.new.as_ref().is_some_and(|new| (2..5).contains(&new.len()))));
        assert!(differing(&of_five, &summands(&leaf(0))).is_empty(), "one summand is no sum");
    }

    #[test]
    fn a_sum_is_found_around_another() {
        let pair = sum([leaf(0), leaf(1)]);
        let three = sum([pair.clone(), leaf(2)]);
        let whole = sum([three.clone(), leaf(3)]);
        let around = |inside: &Skeleton| around(&whole, &summands(inside));
        assert_eq!(around(&pair), Some(summands(&three)));
        assert_eq!(around(&leaf(2)), Some(summands(&three)));
        assert_eq!(around(&three), Some(summands(&whole)));
        assert_eq!(around(&whole), None);
    }
}
