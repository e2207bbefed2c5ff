//! Orders that may show as another: what answers say about one, they hardly say against these.

use mmaprobe_probes::Summand;

use super::Skeleton;
use crate::inference::regular;

impl Skeleton {
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

    /// With the products beside c, or beside another sum, added to each other first, wherever there is more than one, if there
    /// are such: what a sum hands on as it is shows as little of it as one that never was.
    pub fn gathered(&self) -> Option<Skeleton> {
        let gathered = self.with_products_gathered();
        (!gathered.has_the_same_sums(self)).then_some(gathered)
    }

    fn with_products_gathered(&self) -> Skeleton {
        let Skeleton::Sum(children) = self else { return self.clone() };
        let is_product = |child: &&Skeleton| matches!(child, Skeleton::Leaf(Summand::Product(_)));
        let (products, others): (Vec<&Skeleton>, Vec<&Skeleton>) = children.iter().partition(is_product);
        let mut all: Vec<Skeleton> = others.iter().map(|other| other.with_products_gathered()).collect();
        let products: Vec<Skeleton> = products.into_iter().cloned().collect();
        match all.is_empty() || products.len() < 2 {
            true => all.extend(products),
            false => all.push(Skeleton::Sum(products)),
        }
        Skeleton::sort(&mut all);
        Skeleton::Sum(all)
    }

    /// With all products of each group of a chain added at once, however the group is nested, if any is: where summands of one
    /// sum are aligned in ways of their own, it looks like several.
    pub fn coarsened(&self) -> Option<Skeleton> {
        let coarsened = self.with_groups_flat();
        (!coarsened.has_the_same_sums(self)).then_some(coarsened)
    }

    fn with_groups_flat(&self) -> Skeleton {
        match self {
            Skeleton::Sum(children) if self.contains_c() => {
                Skeleton::Sum(children.iter().map(Skeleton::with_groups_flat).collect())
            }
            Skeleton::Sum(_) => self.flattened(),
            other => other.clone(),
        }
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

    /// The products that each sum of a chain from c adds to the one before, the first first; `None` if it is no such chain.
    pub fn links(&self) -> Option<Vec<Vec<Skeleton>>> {
        if *self == Skeleton::Leaf(Summand::C) {
            return Some(Vec::new());
        }
        let Skeleton::Sum(children) = self else { return None };
        let (with_c, products): (Vec<&Skeleton>, Vec<&Skeleton>) =
            children.iter().partition(|child| child.contains_c());
        let [before] = with_c[..] else { return None };
        let are_products = products.iter().all(|product| matches!(product, Skeleton::Leaf(_)));
        let mut links = before.links().filter(|_| are_products)?;
        links.push(products.into_iter().cloned().collect());
        Some(links)
    }

    /// The chain from c with such [links](Skeleton::links).
    pub fn chain_of(links: &[Vec<Skeleton>]) -> Skeleton {
        links.iter().fold(Skeleton::Leaf(Summand::C), |sum, products| {
            Skeleton::Sum(std::iter::once(sum).chain(products.iter().cloned()).collect())
        })
    }

    /// With all summands in one sum.
    pub fn flattened(&self) -> Skeleton {
        let mut summands: Vec<Skeleton> = self.summands().into_iter().map(Skeleton::Leaf).collect();
        Skeleton::sort(&mut summands);
        Skeleton::Sum(summands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_chain_is_its_links() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let c = || Skeleton::Leaf(Summand::C);
        let pair = |one, other| Skeleton::Sum(vec![one, other]);
        let chain = Skeleton::Sum(vec![pair(pair(c(), leaf(3)), leaf(0)), leaf(1), leaf(2)]);
        let links = chain.links().expect("it is a chain");
        assert_eq!(links, [vec![leaf(3)], vec![leaf(0)], vec![leaf(1), leaf(2)]]);
        assert_eq!(Skeleton::chain_of(&links), chain);
        assert_eq!(pair(c(), pair(leaf(0), leaf(1))).links(), None, "a sum is no product");
        assert_eq!(pair(leaf(0), leaf(1)).links(), None, "there is no c");
    }

    #[test]
    fn what_a_sum_may_hide_is_gathered_coarsened_or_flattened() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let c = || Skeleton::Leaf(Summand::C);
        let sum = Skeleton::Sum;
        let said = |order: Option<Skeleton>| order.map(|order| order.to_string());
        let beside_c = sum(vec![c(), leaf(0), leaf(1)]);
        let chain = sum(vec![sum(vec![beside_c, sum(vec![leaf(2), leaf(3)])]), leaf(4), leaf(5)]);
        assert_eq!(chain.to_string(), "(((c p0 p1) (p2 p3)) p4 p5)");
        let gathered = chain.gathered();
        assert_eq!(said(gathered.clone()), Some("(((c (p0 p1)) (p2 p3)) (p4 p5))".to_string()));
        assert_eq!(gathered.and_then(|gathered| gathered.gathered()), None, "nothing is left to gather");
        // One product beside a sum stays.
        assert_eq!(said(sum(vec![c(), sum(vec![sum(vec![leaf(0), leaf(1)]), leaf(2)])]).gathered()), None);

        let nested = |first: usize| sum(vec![sum(vec![leaf(first), leaf(first + 1)]), leaf(first + 2)]);
        let groups = sum(vec![sum(vec![c(), nested(0)]), nested(3)]);
        assert_eq!(said(groups.coarsened()), Some("((c (p0 p1 p2)) (p3 p4 p5))".to_string()));
        assert_eq!(said(chain.coarsened()), None, "no group is nested");

        assert_eq!(chain.flattened().to_string(), "(c p0 p1 p2 p3 p4 p5)");
    }
}
