//! Regular orders: those that hardware is likely to have.

use mmaprobe_probes::{Signature, Summand};

use super::skeleton::{self, Skeleton};

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

/// Every regular order: what machines are built of, and what is like it.
pub struct Regular {
    orders: Vec<Known>,
    /// The threes of summands that they are compared by.
    threes: Vec<[usize; 3]>,
    signature: Signature,
}

/// A regular order, and what is known of it.
struct Known {
    order: Skeleton,
    meetings: Meetings,
    /// Of how many threes it says which two meet first.
    told: i64,
}

impl Regular {
    /// Those of an instruction.
    pub fn of(signature: &Signature) -> Regular {
        let mut orders: Vec<Skeleton> = likely(signature);
        orders.extend(chained_groups(signature));
        orders.extend(joined_groups(signature));
        let threes = threes(signature.k + 1);
        let known = |order: Skeleton| {
            let meetings = Meetings::of(signature, &order);
            let told = threes.iter().filter(|&&three| meetings.first_of(three).is_some()).count() as i64;
            Known { order, meetings, told }
        };
        Regular { orders: orders.into_iter().map(known).collect(), threes, signature: *signature }
    }

    /// The one that an order which was found is most like, if it is like one: of three summands of which the one says
    /// which two meet first, the other says the same more than so many times as often as not. What a wide sum hides from
    /// masks, or shows of a few summands in a wrong way, is made good that way.
    pub fn nearest(&self, found: &Skeleton, times: i64) -> Option<Skeleton> {
        self.nearest_that_adds(found, times, |_, _| true)
    }

    /// The same, of those alone that the order which was found says most of already.
    pub fn mostly_told(&self, found: &Skeleton, times: i64) -> Option<Skeleton> {
        self.nearest_that_adds(found, times, |alike, more| alike >= more)
    }

    /// Those that say all that an order which was found does, and more: where formats hold no X far enough above y, only some
    /// of the sums show. Those that say least more first, each once.
    pub fn finer(&self, found: &Skeleton) -> Vec<Skeleton> {
        let found = Meetings::of(&self.signature, found);
        let mut finer: Vec<(i64, &Skeleton)> = Vec::new();
        for Known { order, meetings, told } in &self.orders {
            let Compared { alike, otherwise, .. } = found.compared_with(meetings, &self.threes);
            if otherwise == 0 && *told > alike {
                finer.push((told - alike, order));
            }
        }
        // A stable sort: those that hardware is likelier to have first.
        finer.sort_by_key(|(more, _)| *more);
        skeleton::distinct(finer.into_iter().map(|(_, order)| order.clone()), usize::MAX)
    }

    /// The one that is most like an order, of those of which enough is known: of so many threes both say the same, of so
    /// many more it alone says which two meet first.
    fn nearest_that_adds(
        &self,
        found: &Skeleton,
        times: i64,
        is_enough: impl Fn(i64, i64) -> bool,
    ) -> Option<Skeleton> {
        let found = Meetings::of(&self.signature, found);
        let mut best: Option<(i64, &Skeleton)> = None;
        for Known { order, meetings, told } in &self.orders {
            let Compared { alike, otherwise, silent } = found.compared_with(meetings, &self.threes);
            // Of those that say much the same of what is known, the one that says least.
            let score = KNOWN * (alike - otherwise) - (told - alike - otherwise);
            let is_better = best.as_ref().is_none_or(|(most, _)| score > *most);
            let more = told - alike - (otherwise - silent);
            if is_better && alike > times * otherwise && is_enough(alike, more) {
                best = Some((score, order));
            }
        }
        best.map(|(_, order)| order.clone())
    }
}

/// What is known counts so many times as much as what is not.
const KNOWN: i64 = 4;

/// How sums are joined.
#[derive(Clone, Copy)]
enum Join {
    /// All at once.
    Flat,
    /// One after the other.
    Chain,
    /// Neighbours, and then these sums.
    Pairs,
}

impl Join {
    const ALL: [Join; 3] = [Join::Flat, Join::Chain, Join::Pairs];

    fn of(self, mut sums: Vec<Skeleton>) -> Skeleton {
        match self {
            _ if sums.len() == 1 => sums.remove(0),
            Join::Flat => Skeleton::Sum(sums),
            Join::Chain => {
                let mut sums = sums.into_iter();
                let first = sums.next().expect("there is a sum");
                sums.fold(first, |sum, next| Skeleton::Sum(vec![sum, next]))
            }
            Join::Pairs => pairwise(sums),
        }
    }
}

/// Sizes of groups of products that follow each other, and numbers of lanes that they are dealt to.
const SIZES: [usize; 6] = [1, 2, 3, 4, 8, 16];
const LANES: [usize; 2] = [2, 4];
/// Parts that are chained from c, each of two lanes.
const PARTS: [usize; 3] = [1, 2, 4];

/// Groups of neighbours or of lanes, joined inside in one way and with each other in another, and c last, among them, or in
/// front of the first.
fn joined_groups(signature: &Signature) -> Vec<Skeleton> {
    let c = || Skeleton::Leaf(Summand::C);
    let mut all = Vec::new();
    for order in orders(signature.k) {
        let leaves: Vec<Skeleton> = order.iter().map(|&k| Skeleton::Leaf(Summand::Product(k))).collect();
        let chunks = SIZES
            .iter()
            .filter(|&&size| size < signature.k)
            .map(|&size| leaves.chunks(size).map(<[Skeleton]>::to_vec).collect::<Vec<Vec<Skeleton>>>());
        let lanes = LANES.iter().filter(|&&lanes| lanes < signature.k).map(|&lanes| dealt(&leaves, lanes));
        for groups in chunks.chain(lanes) {
            let is_of_one = groups.iter().all(|group| group.len() == 1);
            for inner in if is_of_one { &Join::ALL[..1] } else { &Join::ALL[..] } {
                let sums: Vec<Skeleton> = groups.iter().map(|group| inner.of(group.clone())).collect();
                let mut from_c = groups.clone();
                from_c[0].insert(0, c());
                let from_c: Vec<Skeleton> = from_c.into_iter().map(|group| inner.of(group)).collect();
                for outer in Join::ALL {
                    all.push(Skeleton::Sum(vec![c(), outer.of(sums.clone())]));
                    all.push(outer.of([vec![c()], sums.clone()].concat()));
                    all.push(outer.of(from_c.clone()));
                }
            }
        }
        all.push(pairwise([leaves.clone(), vec![c()]].concat()));
        for parts in PARTS {
            let parts = leaves.chunks(leaves.len().div_ceil(parts));
            let dots = parts.map(|part| {
                Join::Flat.of(dealt(part, 2).into_iter().map(|lane| Join::Flat.of(lane)).collect())
            });
            all.push(dots.fold(c(), |sum, dot| Skeleton::Sum(vec![sum, dot])));
        }
    }
    all
}

/// These dealt to so many lanes, without those that get none.
fn dealt(leaves: &[Skeleton], lanes: usize) -> Vec<Vec<Skeleton>> {
    let lane = |first: usize| leaves.iter().skip(first).step_by(lanes).cloned().collect();
    (0..lanes.min(leaves.len())).map(lane).collect()
}

/// Groups that are summed first, of neighbours or of strided products, from either end, one added after the other to c,
/// or to each other and c last.
fn chained_groups(signature: &Signature) -> Vec<Skeleton> {
    let mut all = Vec::new();
    for order in orders(signature.k) {
        for size in powers(signature.k).filter(|&size| size > 1) {
            let leaf = |k: &usize| Skeleton::Leaf(Summand::Product(*k));
            let sums: Vec<Skeleton> =
                order.chunks(size).map(|group| Join::Flat.of(group.iter().map(leaf).collect())).collect();
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
    // From both halves in turn.
    orders.push(strided(k, k.div_ceil(2)));
    orders.push((0..k).rev().collect());
    let mut each: Vec<Vec<usize>> = Vec::new();
    for order in orders {
        if !each.contains(&order) {
            each.push(order);
        }
    }
    each
}

/// For each two leaves of a tree, how many sums their own is inside of.
struct Meetings {
    number: usize,
    depths: Vec<u32>,
}

/// Threes of summands that orders are compared by, at most.
const COMPARED: usize = 6000;

/// Threes of so many summands, evenly spread.
fn threes(number: usize) -> Vec<[usize; 3]> {
    let total = number * (number - 1) * number.saturating_sub(2) / 6;
    let all = (0..number).flat_map(|x| (0..x).flat_map(move |y| (0..y).map(move |z| [x, y, z])));
    all.step_by(total.div_ceil(COMPARED).max(1)).collect()
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
    fn compared_with(&self, other: &Meetings, threes: &[[usize; 3]]) -> Compared {
        let mut compared = Compared { alike: 0, otherwise: 0, silent: 0 };
        for &three in threes {
            let Some(first) = self.first_of(three) else { continue };
            match other.first_of(three) {
                Some(also) if also == first => compared.alike += 1,
                also => {
                    compared.otherwise += 1;
                    compared.silent += i64::from(also.is_none());
                }
            }
        }
        compared
    }
}

/// Of threes of which an order says which two meet first, how many another says the same of, and not the same, the latter
/// with those of which it says nothing.
struct Compared {
    alike: i64,
    otherwise: i64,
    silent: i64,
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
    use super::*;
    use crate::inference::testing::signature;

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
        assert_eq!(Regular::of(&signature).nearest(&found, 2), Some(whole));
    }

    #[test]
    fn a_summand_in_a_wrong_place_does_not_matter() {
        let found = chain([1, 26].into_iter().chain((2..26).rev()).chain([0]));
        assert_eq!(Regular::of(&signature(27)).nearest(&found, 2), Some(chain((0..27).rev())));
    }

    #[test]
    fn lanes_and_groups_are_made_whole() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let c = Skeleton::Leaf(Summand::C);
        let lane = |from: usize| Join::Chain.of((from..16).step_by(4).map(leaf).collect());
        let lanes: Vec<Skeleton> = (0..4).map(lane).collect();
        let whole = Skeleton::Sum(vec![c.clone(), Join::Flat.of(lanes.clone())]);
        // The last of a lane is taken for one of the next.
        let short = |lane: &Skeleton| match lane {
            Skeleton::Sum(children) => children[0].clone(),
            other => other.clone(),
        };
        let mixed = Skeleton::Sum(vec![lanes[1].clone(), leaf(12)]);
        let found = Skeleton::Sum(vec![short(&lanes[0]), mixed, lanes[2].clone(), lanes[3].clone()]);
        let found = Skeleton::Sum(vec![c.clone(), found]);
        assert_eq!(Regular::of(&signature(16)).nearest(&found, 5), Some(whole));
        let pair = |k: usize| Skeleton::Sum(vec![leaf(k), leaf(k + 1)]);
        let pairs = |k: usize| Skeleton::Sum(vec![pair(k), pair(k + 2)]);
        let whole = Skeleton::Sum(vec![c.clone(), Skeleton::Sum(vec![pairs(0), pairs(4)])]);
        let found = Skeleton::Sum(vec![c, Skeleton::Sum(vec![pair(0), pair(2), pairs(4)])]);
        assert_eq!(Regular::of(&signature(8)).nearest(&found, 5), Some(whole));
    }

    #[test]
    fn of_groups_that_hide_their_pairs_the_pairs_are_tried() {
        let signature = signature(8);
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let c = Skeleton::Leaf(Summand::C);
        let add = |sum: Skeleton, more: Vec<Skeleton>| Skeleton::Sum([vec![sum], more].concat());
        let found = add(add(c.clone(), (0..4).map(leaf).collect()), (4..8).map(leaf).collect());
        let dots = (0..4).fold(c.clone(), |sum, pair| {
            add(sum, vec![Skeleton::Sum(vec![leaf(2 * pair), leaf(2 * pair + 1)])])
        });
        let finer = Regular::of(&signature).finer(&found);
        let at = |order: &Skeleton| finer.iter().position(|finer| finer == order);
        assert!(at(&dots).is_some_and(|at| at < 16), "{finer:?}");
        assert_eq!(at(&found), None, "it says no more");
        // Nothing is said of which of two that are added at once comes first.
        let at_once = (0..4).fold(c, |sum, pair| add(sum, vec![leaf(2 * pair), leaf(2 * pair + 1)]));
        assert!(at(&at_once) < at(&dots) && at(&at_once).is_some(), "{finer:?}");
        // What says otherwise is none.
        assert_eq!(at(&chain((0..8).rev())), None);
    }

    #[test]
    fn what_is_mostly_told_is_made_whole() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let c = || Skeleton::Leaf(Summand::C);
        let whole = Skeleton::Sum(vec![c(), pairwise(strided(16, 4).into_iter().map(leaf).collect())]);
        let pair = |x, y| Skeleton::Sum(vec![x, y]);
        let half = |k| pair(pair(leaf(k), leaf(k + 4)), pair(leaf(k + 8), leaf(k + 12)));
        // One of the sums of two pairs is taken apart.
        let (first, last) = (pair(leaf(0), leaf(4)), pair(leaf(8), leaf(12)));
        let mixed = Skeleton::Sum(vec![first, half(1), last]);
        let found = Skeleton::Sum(vec![c(), pair(mixed, pair(half(2), half(3)))]);
        assert_eq!(Regular::of(&signature(16)).mostly_told(&found, 5), Some(whole));
        // c and one product: any chain of groups says more than that.
        let flat = std::iter::once(pair(c(), leaf(13))).chain((0..16).filter(|k| *k != 13).map(leaf));
        let found = Skeleton::Sum(flat.collect());
        assert!(Regular::of(&signature(16)).nearest(&found, 5).is_some());
        assert_eq!(Regular::of(&signature(16)).mostly_told(&found, 5), None);
    }

    #[test]
    fn what_is_like_none_has_none() {
        let found = chain([3, 7, 0, 12, 9, 1, 14, 5, 11, 2, 15, 8, 4, 13, 6, 10].into_iter());
        assert_eq!(Regular::of(&signature(16)).nearest(&found, 2), None);
        let flat = Skeleton::Sum(
            (0..16)
                .map(|k| Skeleton::Leaf(Summand::Product(k)))
                .chain([Skeleton::Leaf(Summand::C)])
                .collect(),
        );
        assert_eq!(Regular::of(&signature(16)).nearest(&flat, 2), None);
    }
}
