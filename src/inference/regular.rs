//! Regular orders: those that hardware is likely to have.

use mmaprobe_probes::{Signature, Summand};

use super::order::Skeleton;

/// Orders that hardware is known or likely to have, for formats that hold no X far enough above y to show
/// theirs: chains of groups of consecutive products or of strided ones, from either end, and pairwise sums,
/// with c first or last. Which of them explains the answers is for the search to find.
pub fn likely(signature: &Signature) -> Vec<Skeleton> {
    let mut all = Vec::new();
    for order in orders(signature.k) {
        let leaves: Vec<Skeleton> = order.iter().map(|&k| Skeleton::Leaf(Summand::Product(k))).collect();
        for size in powers(signature.k) {
            let groups: Vec<&[Skeleton]> = leaves.chunks(size).collect();
            all.extend(chains(&groups));
        }
        all.push(Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), pairwise(leaves)]));
    }
    all
}

/// c first, and the members of every group added to it at once; and c behind the last group.
fn chains(groups: &[&[Skeleton]]) -> Vec<Skeleton> {
    let c = Skeleton::Leaf(Summand::C);
    let add = |sum: Skeleton, group: &&[Skeleton]| {
        Skeleton::Sum(std::iter::once(sum).chain(group.iter().cloned()).collect())
    };
    let mut all = vec![groups.iter().fold(c.clone(), add)];
    if let Some((first, others)) = groups.split_first() {
        let first = match first {
            [only] => only.clone(),
            all => Skeleton::Sum(all.to_vec()),
        };
        all.push(Skeleton::Sum(vec![c, others.iter().fold(first, add)]));
    }
    all
}

/// The regular order that one which was found is most like, if it is like one: of three summands of which the one says
/// which two meet first, the other mostly says the same. What a wide sum hides from masks, or shows of a few summands in a
/// wrong way, is made good that way.
pub fn nearest(signature: &Signature, found: &Skeleton) -> Option<Skeleton> {
    let found = Meetings::of(signature, found);
    let mut best: Option<(i64, Skeleton)> = None;
    for order in likely(signature).into_iter().chain(chained_groups(signature)) {
        let (alike, otherwise) = found.compared_with(&Meetings::of(signature, &order));
        let is_better = best.as_ref().is_none_or(|(most, _)| alike - otherwise > *most);
        if is_better && alike > ALIKE * otherwise {
            best = Some((alike - otherwise, order));
        }
    }
    best.map(|(_, order)| order)
}

/// So many times more is alike than not between orders that are like each other.
const ALIKE: i64 = 2;

/// Groups that are summed first, of neighbours or of strided products, from either end, one added after the other to c,
/// or to each other and c last.
fn chained_groups(signature: &Signature) -> Vec<Skeleton> {
    let mut all = Vec::new();
    for order in orders(signature.k) {
        for size in powers(signature.k).filter(|&size| size > 1) {
            let leaf = |k: &usize| Skeleton::Leaf(Summand::Product(*k));
            let sums: Vec<Skeleton> =
                order.chunks(size).map(|group| Skeleton::Sum(group.iter().map(leaf).collect())).collect();
            let alone: Vec<&[Skeleton]> = sums.chunks(1).collect();
            all.extend(chains(&alone));
        }
    }
    all
}

/// Powers of two below K.
fn powers(k: usize) -> impl Iterator<Item = usize> {
    (0..usize::BITS).map(|power| 1 << power).take_while(move |&size| size < k)
}

/// Products in the orders in which they may be added: strided, the first of these one after the other, and from the last.
fn orders(k: usize) -> Vec<Vec<usize>> {
    let mut orders: Vec<Vec<usize>> = powers(k).map(|stride| strided(k, stride)).collect();
    orders.push((0..k).rev().collect());
    orders
}

/// For each two leaves of a tree, how many sums their own is inside of.
struct Meetings {
    number: usize,
    depths: Vec<u32>,
}

impl Meetings {
    fn of(signature: &Signature, tree: &Skeleton) -> Meetings {
        let number = signature.k + 1;
        let mut meetings = Meetings { number, depths: vec![0; number * number] };
        meetings.add(tree, 0);
        meetings
    }

    /// Adds those of a tree that is inside of so many sums; its leaves.
    fn add(&mut self, tree: &Skeleton, depth: u32) -> Vec<usize> {
        let children = match tree {
            Skeleton::Leaf(Summand::Product(k)) => return vec![*k],
            Skeleton::Leaf(Summand::C) => return vec![self.number - 1],
            Skeleton::Sum(children) | Skeleton::Inner(children) => children,
        };
        let mut leaves: Vec<usize> = Vec::new();
        for child in children {
            let inside = self.add(child, depth + 1);
            for &one in &inside {
                for &other in &leaves {
                    self.depths[one * self.number + other] = depth;
                    self.depths[other * self.number + one] = depth;
                }
            }
            leaves.extend(inside);
        }
        leaves
    }

    /// Which two of three meet first: the number of the one that is left, if it is told.
    fn first_of(&self, three: [usize; 3]) -> Option<usize> {
        let [x, y, z] = three;
        let depth = |one: usize, other: usize| self.depths[one * self.number + other];
        let pairs = [depth(y, z), depth(x, z), depth(x, y)];
        let most = *pairs.iter().max()?;
        let mut deepest = (0..3).filter(|&left| pairs[left] == most);
        let left = deepest.next();
        left.filter(|_| deepest.next().is_none())
    }

    /// Of all threes of which these say which two meet first, those of which the others say the same, and the rest: an
    /// order that tells less is less of an answer.
    fn compared_with(&self, other: &Meetings) -> (i64, i64) {
        let (mut alike, mut otherwise) = (0, 0);
        for x in 0..self.number {
            for y in 0..x {
                for z in 0..y {
                    let Some(first) = self.first_of([x, y, z]) else { continue };
                    match other.first_of([x, y, z]) == Some(first) {
                        true => alike += 1,
                        false => otherwise += 1,
                    }
                }
            }
        }
        (alike, otherwise)
    }
}

/// 0, s, 2s, …, then 1, s + 1, …
pub fn strided(k: usize, stride: usize) -> Vec<usize> {
    (0..stride).flat_map(|first| (first..k).step_by(stride)).collect()
}

/// Sums of neighbours, and of these sums, up to one.
fn pairwise(mut sums: Vec<Skeleton>) -> Skeleton {
    while sums.len() > 1 {
        sums = sums
            .chunks(2)
            .map(|pair| if let [only] = pair { only.clone() } else { Skeleton::Sum(pair.to_vec()) })
            .collect();
    }
    sums.remove(0)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{FP16, FP32};

    use super::*;

    fn signature(k: usize) -> Signature {
        Signature { k, a: FP16, b: FP16, c: FP32, d: FP32, scale: None }
    }

    fn chain(order: impl Iterator<Item = usize>) -> Skeleton {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        order.fold(Skeleton::Leaf(Summand::C), |sum, k| Skeleton::Sum(vec![sum, leaf(k)]))
    }

    #[test]
    fn a_chain_with_a_few_pairs_in_one_sum_is_made_whole() {
        let signature = signature(25);
        let whole = chain(strided(25, 4).into_iter());
        let mut found = Skeleton::Leaf(Summand::C);
        let order = strided(25, 4);
        for group in order[..3].chunks(1).chain(order[3..5].chunks(2)).chain(order[5..].chunks(1)) {
            let leaves = group.iter().map(|&k| Skeleton::Leaf(Summand::Product(k)));
            found = Skeleton::Sum(std::iter::once(found).chain(leaves).collect());
        }
        assert_ne!(found, whole);
        assert_eq!(nearest(&signature, &found), Some(whole));
    }

    #[test]
    fn a_summand_in_a_wrong_place_does_not_matter() {
        let found = chain([1, 26].into_iter().chain((2..26).rev()).chain([0]));
        assert_eq!(nearest(&signature(27), &found), Some(chain((0..27).rev())));
    }

    #[test]
    fn what_is_like_none_has_none() {
        let found = chain([3, 7, 0, 12, 9, 1, 14, 5, 11, 2, 15, 8, 4, 13, 6, 10].into_iter());
        assert_eq!(nearest(&signature(16), &found), None);
        let flat = Skeleton::Sum(
            (0..16)
                .map(|k| Skeleton::Leaf(Summand::Product(k)))
                .chain([Skeleton::Leaf(Summand::C)])
                .collect(),
        );
        assert_eq!(nearest(&signature(16), &flat), None);
    }
}
