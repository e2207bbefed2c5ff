//! The order inside sums, from which summands are added to each other first.
//!
//! Masks see a sum as flat whose parts are handed on without being normalised, and take sums for each
//! other whose children are aligned in different ways. [The grouping probe](mmaprobe_probes::grouping) says
//! of three of the children which two meet before the third, and from enough of such [triples] the tree
//! follows. It takes many questions, and is asked where masks have not been enough.

use mmaprobe_probes::grouping::{self, Pattern};
use mmaprobe_probes::{DotAdd, Probe, Summand};

use super::evidence::Evidence;
use super::fit::thinned;
use super::flushed::Flushed;
use super::skeleton::Skeleton;
use super::triples::{self, Tree, Triple};

/// Triples of a sum that are asked with every pattern; more where only one way to divide each can be asked.
const LOOKED_AT: usize = 8;
const LOOKED_AT_ONE_WAY: usize = 20;
/// Patterns with which all triples are asked.
const PATTERNS: usize = 6;
/// The most triples of one sum that are asked, and the most of which these are chosen.
const MOST_TRIPLES: usize = 500;
const MOST_SEEN: usize = 20 * MOST_TRIPLES;
/// Different fourth summands of one triple.
const FOURTHS: usize = 2;

/// A sum to look into.
#[derive(Clone, Debug)]
struct Sum {
    /// Its children, each with a summand in it that stands for it.
    children: Vec<(Summand, Skeleton)>,
    /// Triples of them, by index, to ask about; those first of which the formats hold most.
    triples: Vec<[usize; 3]>,
    /// Whether the formats hold only one of the three ways to divide each of them.
    is_one_way: bool,
    /// Summands that are not in it.
    outside: Vec<Summand>,
    /// Whether other summands of the triples' sum may hold −X. Where a sum is zero and normalised, what
    /// follows is not lost beside it, which would look like an order.
    may_cancel: bool,
    /// What the small values may not be made of.
    flushed: Flushed,
}

/// The sums of an order of summation that may have an order inside, and what is known of them.
#[derive(Clone, Debug)]
pub struct Sums {
    sums: Vec<Sum>,
    patterns: Vec<Vec<Pattern>>,
}

impl Sums {
    /// Every sum of the order with more than two children; and all summands as if they were of one sum.
    pub fn of(evidence: &Evidence, skeleton: &Skeleton) -> Sums {
        let all: Vec<Summand> = evidence.signature().summands().collect();
        let mut sums = Vec::new();
        let flushed = Flushed::of(evidence);
        collect(evidence, skeleton, (&all, flushed), &mut sums);
        let children = all.iter().map(|&summand| (summand, Skeleton::Leaf(summand))).collect();
        sums.push(Sum::new(evidence, children, Vec::new(), false, flushed));
        Sums { patterns: vec![Vec::new(); sums.len()], sums }
    }

    /// The first questions: a few triples of each sum, at every distance.
    pub fn first_probe(&self, evidence: &Evidence) -> Probe {
        let dot_adds = self.sums.iter().flat_map(|sum| {
            sum.looked_at().into_iter().flat_map(move |three| {
                Pattern::all().flat_map(move |pattern| sum.questions(evidence, three, pattern))
            })
        });
        probe(dot_adds.collect())
    }

    /// The other questions: all triples, at the distances that have shown something.
    pub fn second_probe(&mut self, evidence: &Evidence) -> Probe {
        self.patterns = self.sums.iter().map(|sum| sum.telling(evidence)).collect();
        let mut dot_adds = Vec::new();
        for (sum, patterns) in self.sums.iter().zip(&self.patterns) {
            for &three in &sum.triples {
                for &pattern in patterns {
                    dot_adds.extend(sum.questions(evidence, three, pattern));
                }
            }
        }
        probe(dot_adds)
    }

    /// The order with what was found inside its sums, and the one found without it; where only a large c shows which
    /// summands meet, also with what was found added to c one after the other. Those that differ from the order and
    /// each other.
    pub fn orders(&self, evidence: &Evidence, skeleton: &Skeleton) -> Vec<Skeleton> {
        let mut trees =
            self.sums.iter().zip(&self.patterns).map(|(sum, patterns)| sum.tree(evidence, patterns));
        let inside = refined(skeleton, &mut trees);
        let leaves: Vec<Skeleton> = evidence.signature().summands().map(Skeleton::Leaf).collect();
        let anew = trees.next().map(|tree| as_skeleton(&tree, &leaves, &Skeleton::Sum));
        let found: Vec<Skeleton> = std::iter::once(inside).chain(anew).collect();
        let is_beside_c = self.sums.iter().any(|sum| sum.is_one_way);
        let chained: Vec<Skeleton> = match is_beside_c {
            true => found.iter().flat_map(Skeleton::chained_from_c).collect(),
            false => Vec::new(),
        };
        let mut orders = Vec::new();
        for order in found.into_iter().chain(chained) {
            if order != *skeleton && !orders.contains(&order) && !order.is_flat() {
                orders.push(order);
            }
        }
        orders
    }
}

/// A skeleton with these trees inside its sums, in the order in which [`collect`] goes through them.
fn refined(skeleton: &Skeleton, trees: &mut dyn Iterator<Item = Tree>) -> Skeleton {
    let Skeleton::Sum(children) = skeleton else { return skeleton.clone() };
    let children: Vec<Skeleton> = children.iter().map(|child| refined(child, trees)).collect();
    if children.len() < 3 {
        return Skeleton::Sum(children);
    }
    match trees.next() {
        Some(tree) => as_skeleton(&tree, &children, &Skeleton::Inner).into_sum(),
        None => Skeleton::Sum(children),
    }
}

fn collect(
    evidence: &Evidence,
    skeleton: &Skeleton,
    (all, flushed): (&[Summand], Flushed),
    sums: &mut Vec<Sum>,
) {
    let (Skeleton::Sum(children) | Skeleton::Inner(children)) = skeleton else { return };
    for child in children {
        collect(evidence, child, (all, flushed), sums);
    }
    if children.len() < 3 {
        return;
    }
    let inside = skeleton.summands();
    let outside = all.iter().copied().filter(|summand| !inside.contains(summand)).collect();
    let children = children.iter().map(|child| (child.nearest(), child.clone())).collect();
    sums.push(Sum::new(evidence, children, outside, true, flushed));
}

fn probe(dot_adds: Vec<DotAdd>) -> Probe {
    Probe { name: grouping::NAME, question: grouping::QUESTION, source: grouping::SOURCE, dot_adds }
}

/// Triples of so many things to ask about, in an order that has nothing to do with theirs; at most so many.
pub fn triples_of(count: usize, most: usize) -> Vec<[usize; 3]> {
    let mut triples = Vec::new();
    for i in 0..count {
        for j in i + 1..count {
            triples.extend((j + 1..count).map(|k| [i, j, k]));
        }
    }
    let mut triples = mixed(&triples);
    triples.truncate(most);
    triples
}

/// The same in an order that has nothing to do with theirs.
pub fn mixed<T: Copy>(all: &[T]) -> Vec<T> {
    // Steps of a number that has no divisor in common with theirs go through all.
    let total = all.len();
    let step = (total * 5 / 8..).find(|step| gcd(*step, total) == 1).unwrap_or(1);
    (0..total).map(|index| all[index * step % total]).collect()
}

/// For each of the three ways to divide a triple, whether it makes no difference on which of the pair the small
/// values are; `None` where the formats do not hold what has to be asked.
#[derive(Clone, Copy, Debug)]
struct Division([Option<bool>; 3]);

impl Division {
    /// Which pair meets first, if any; `None` where that cannot be said: where not all ways can be compared, nor two of
    /// which one is right, nor one beside a large value that divides others, if these are the values that do.
    fn vote(&self, divides: [bool; 3]) -> Option<Option<usize>> {
        let mut known = (0..3).filter(|&way| self.0[way].is_some());
        match (known.next(), known.next(), known.next()) {
            (_, _, Some(_)) => Some(self.first()),
            (_, Some(_), None) => self.first().map(Some),
            (Some(only), None, None) => divides[only].then(|| self.first()),
            (None, None, None) => None,
        }
    }

    /// Which pair meets first: of the only way in which it makes no difference.
    fn first(&self) -> Option<usize> {
        let mut alike = (0..3).filter(|&way| self.0[way] == Some(true));
        let first = alike.next()?;
        alike.next().is_none().then_some(first)
    }
}

/// The three ways to divide three things into two and one.
pub fn divided([x, y, z]: [usize; 3]) -> [([usize; 2], usize); 3] {
    [([y, z], x), ([x, z], y), ([x, y], z)]
}

impl Sum {
    fn new(
        evidence: &Evidence,
        children: Vec<(Summand, Skeleton)>,
        outside: Vec<Summand>,
        may_cancel: bool,
        flushed: Flushed,
    ) -> Sum {
        let triples = triples_of(children.len(), MOST_SEEN);
        let mut sum = Sum { triples: Vec::new(), is_one_way: false, children, outside, may_cancel, flushed };
        // Formats with little range hold small values beside a large c alone, or in other blocks.
        let distance = evidence.signature().d.fraction_bits as i32 + 1;
        let below_all = Pattern { distance, negative: false, cancelled: false };
        let ways = |three: &[usize; 3]| {
            let is_held = |(pair, large)| sum.asked(evidence, pair, large, None, below_all).is_some();
            divided(*three).into_iter().filter(|&way| is_held(way)).count()
        };
        let mut triples: Vec<(usize, [usize; 3])> =
            triples.into_iter().map(|three| (ways(&three), three)).collect();
        // A stable sort: the first among equals.
        triples.sort_by_key(|(ways, _)| std::cmp::Reverse(*ways));
        let is_one_way = triples.first().is_some_and(|(ways, _)| *ways == 1);
        if is_one_way {
            triples.retain(|(ways, _)| *ways == 1);
        }
        triples.truncate(MOST_TRIPLES);
        (sum.triples, sum.is_one_way) = (triples.into_iter().map(|(_, three)| three).collect(), is_one_way);
        sum
    }

    /// The triples that are asked with every pattern.
    fn looked_at(&self) -> Vec<[usize; 3]> {
        thinned(&self.triples, if self.is_one_way { LOOKED_AT_ONE_WAY } else { LOOKED_AT })
    }

    /// Summands that may hold −X beside a triple.
    fn fourths(&self, three: [usize; 3], pattern: Pattern) -> Vec<Option<Summand>> {
        if !pattern.cancelled {
            return vec![None];
        }
        if !self.may_cancel {
            return Vec::new();
        }
        let count = self.children.len();
        let others = (0..count).map(|index| (index + three[0] + three[1]) % count);
        let others = others.filter(|index| !three.contains(index)).map(|index| self.children[index].0);
        let outside = self.outside.first().copied();
        outside.into_iter().chain(others).take(FOURTHS).map(Some).collect()
    }

    fn questions(&self, evidence: &Evidence, three: [usize; 3], pattern: Pattern) -> Vec<DotAdd> {
        let mut questions = Vec::new();
        for fourth in self.fourths(three, pattern) {
            for (pair, large) in divided(three) {
                questions.extend(self.asked(evidence, pair, large, fourth, pattern).into_iter().flatten());
            }
        }
        questions
    }

    fn asked(
        &self,
        evidence: &Evidence,
        pair: [usize; 2],
        large: usize,
        fourth: Option<Summand>,
        pattern: Pattern,
    ) -> Option<[DotAdd; 3]> {
        let pair = pair.map(|index| self.children[index].0);
        let signature = evidence.signature();
        let questions = grouping::questions(signature, pair, self.children[large].0, fourth, pattern)?;
        let is_flushed = questions.iter().any(|question| self.flushed.has(signature, question));
        (!is_flushed).then_some(questions)
    }

    /// What answers say about a triple, with each fourth summand.
    fn divisions(&self, evidence: &Evidence, three: [usize; 3], pattern: Pattern) -> Vec<Division> {
        let meets = |pair: [usize; 2], large: usize, fourth: Option<Summand>| {
            let questions = self.asked(evidence, pair, large, fourth, pattern)?;
            let [both, first, second] = [0, 1, 2].map(|index| evidence.answer(&questions[index]));
            Some(both? == first? && both? == second?)
        };
        let fourths = self.fourths(three, pattern).into_iter();
        fourths
            .map(|fourth| Division(divided(three).map(|(pair, large)| meets(pair, large, fourth))))
            .collect()
    }

    /// What answers with a pattern say about each of these triples: which pair meets first, if any, once for each fourth
    /// summand with which they say something.
    fn votes(
        &self,
        evidence: &Evidence,
        triples: &[[usize; 3]],
        pattern: Pattern,
    ) -> Vec<Vec<Option<usize>>> {
        let divisions: Vec<Vec<Division>> =
            triples.iter().map(|&three| self.divisions(evidence, three, pattern)).collect();
        // Where that is all there is: at a distance at which X makes no difference to any two, it says nothing that it
        // makes none.
        let mut divides = vec![false; self.children.len()];
        for (&three, divisions) in triples.iter().zip(&divisions).filter(|_| self.is_one_way) {
            for (way, (_, large)) in divided(three).into_iter().enumerate() {
                divides[large] |= divisions.iter().any(|division| division.0[way] == Some(false));
            }
        }
        let vote = |(&three, divisions): (&[usize; 3], &Vec<Division>)| {
            let divides = three.map(|large| divides[large]);
            divisions.iter().filter_map(|division| division.vote(divides)).collect()
        };
        triples.iter().zip(&divisions).map(vote).collect()
    }

    /// The patterns that tell most: each explains triples that those before it do not.
    fn telling(&self, evidence: &Evidence) -> Vec<Pattern> {
        let triples = self.looked_at();
        let mut shown: Vec<(Pattern, Vec<bool>)> = Pattern::all()
            .map(|pattern| {
                let votes = self.votes(evidence, &triples, pattern);
                (pattern, votes.iter().map(|votes| votes.iter().any(Option::is_some)).collect())
            })
            .collect();
        let mut chosen = Vec::new();
        let mut told = vec![0usize; triples.len()];
        while chosen.len() < PATTERNS {
            // What has been told once counts less.
            let gain = |says: &[bool]| -> usize {
                says.iter().zip(&told).filter(|(says, _)| **says).map(|(_, told)| 12 / (1 + told)).sum()
            };
            let best =
                (0..shown.len()).max_by_key(|&index| (gain(&shown[index].1), std::cmp::Reverse(index)));
            let Some(best) = best.filter(|&index| gain(&shown[index].1) > 0) else { break };
            let (pattern, says) = shown.swap_remove(best);
            shown.sort_by_key(|(pattern, _)| *pattern);
            told.iter_mut().zip(says).for_each(|(told, says)| *told += usize::from(says));
            chosen.push(pattern);
        }
        chosen
    }

    /// The tree over the children; flat where nothing speaks for another one.
    fn tree(&self, evidence: &Evidence, patterns: &[Pattern]) -> Tree {
        let mut votes: Vec<Vec<Option<usize>>> = vec![Vec::new(); self.triples.len()];
        for &pattern in patterns {
            let of_pattern = self.votes(evidence, &self.triples, pattern);
            votes.iter_mut().zip(of_pattern).for_each(|(votes, more)| votes.extend(more));
        }
        // What the formats do not hold speaks neither for a sum nor against it.
        let told = self.triples.iter().zip(&votes).filter(|(_, votes)| !votes.is_empty());
        let asked: Vec<[usize; 3]> = told.clone().map(|(&three, _)| three).collect();
        let rooted: Vec<Triple> = told.filter_map(|(&three, votes)| Self::rooted(three, votes)).collect();
        let all: Vec<usize> = (0..self.children.len()).collect();
        triples::tree(&all, &asked, &rooted)
    }

    /// Which two of three children meet before the third: the answers vote.
    fn rooted(three: [usize; 3], votes: &[Option<usize>]) -> Option<Triple> {
        let mut counts = [0usize; 3];
        votes.iter().flatten().for_each(|&first| counts[first] += 1);
        let total: usize = counts.iter().sum();
        let most = (0..3).max_by_key(|&index| counts[index])?;
        (2 * counts[most] > total).then(|| divided(three)[most])
    }
}

/// A tree of children as a skeleton.
pub fn as_skeleton(tree: &Tree, leaves: &[Skeleton], node: &dyn Fn(Vec<Skeleton>) -> Skeleton) -> Skeleton {
    match tree {
        Tree::Leaf(index) => leaves[*index].clone(),
        Tree::Node(children) => {
            let mut children: Vec<Skeleton> =
                children.iter().map(|child| as_skeleton(child, leaves, node)).collect();
            Skeleton::sort(&mut children);
            node(children)
        }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{E2M1, FP32};
    use mmaprobe_probes::Signature;

    use super::*;
    use crate::device::Device;
    use crate::inference::skeleton::Skeleton;
    use crate::inference::structure::{self, Structure};
    use crate::inference::testing;

    /// What grouping finds of a device with these sums, where masks have shown nothing.
    fn found(sums: &Skeleton, k: usize) -> Vec<Skeleton> {
        let signature = Signature { k, a: E2M1, b: E2M1, c: FP32, d: FP32, scale: None };
        let model = structure::start(&signature, sums, Structure::Plain);
        let device = testing::device(&signature, model, (4, 4));
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        let flat = Skeleton::Sum(signature.summands().map(Skeleton::Leaf).collect());
        let mut sums = Sums::of(&evidence, &flat);
        evidence.ask(vec![sums.first_probe(&evidence)]).expect("it answers");
        let second = sums.second_probe(&evidence);
        evidence.ask(vec![second]).expect("it answers");
        sums.orders(&evidence, &flat)
    }

    /// Products of e2m1 span 6 binades; a large c alone shows which of them are added before they meet it.
    #[test]
    fn groups_of_products_with_little_range_show_beside_c() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let c = || Skeleton::Leaf(Summand::C);
        let groups = || [[0, 5, 3, 6], [1, 2, 4, 7]].map(|group| Skeleton::Sum(group.map(leaf).to_vec()));
        let sorted = || [[0, 3, 5, 6], [1, 2, 4, 7]].map(|group| Skeleton::Sum(group.map(leaf).to_vec()));
        let chain = |groups: [Skeleton; 2]| {
            groups.into_iter().fold(c(), |sum, group| Skeleton::Sum(vec![sum, group]))
        };
        let orders = found(&chain(groups()), 8);
        assert!(orders.contains(&chain(sorted())), "{orders:?}");
        let beside = Skeleton::Sum(std::iter::once(c()).chain(sorted()).collect());
        assert!(orders.contains(&beside), "{orders:?}");
        let flat = Skeleton::Sum(std::iter::once(c()).chain((0..8).map(leaf)).collect());
        assert_eq!(found(&flat, 8), Vec::new());
    }
}
