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
use super::order::Skeleton;
use super::triples::{self, Tree, Triple};

/// Triples of a sum that are asked with every pattern.
const LOOKED_AT: usize = 8;
/// Patterns with which all triples are asked.
const PATTERNS: usize = 6;
/// The most triples of one sum that are asked.
const MOST_TRIPLES: usize = 500;
/// Different fourth summands of one triple.
const FOURTHS: usize = 2;

/// A sum to look into.
#[derive(Clone, Debug)]
struct Sum {
    /// Its children, each with a summand in it that stands for it.
    children: Vec<(Summand, Skeleton)>,
    /// Triples of them, by index, to ask about.
    triples: Vec<[usize; 3]>,
    /// Summands that are not in it.
    outside: Vec<Summand>,
    /// Whether other summands of the triples' sum may hold −X. Where a sum is zero and normalised, what
    /// follows is not lost beside it, which would look like an order.
    may_cancel: bool,
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
        collect(skeleton, &all, &mut sums);
        let children = all.iter().map(|&summand| (summand, Skeleton::Leaf(summand))).collect();
        sums.push(Sum::new(children, Vec::new(), false));
        Sums { patterns: vec![Vec::new(); sums.len()], sums }
    }

    /// The first questions: a few triples of each sum, at every distance.
    pub fn first_probe(&self, evidence: &Evidence) -> Probe {
        let dot_adds = self.sums.iter().flat_map(|sum| {
            let triples = thinned(&sum.triples, LOOKED_AT);
            triples.into_iter().flat_map(move |three| {
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

    /// The order with what was found inside its sums, and the one found without it; those that differ from
    /// it and each other.
    pub fn orders(&self, evidence: &Evidence, skeleton: &Skeleton) -> Vec<Skeleton> {
        let mut trees =
            self.sums.iter().zip(&self.patterns).map(|(sum, patterns)| sum.tree(evidence, patterns));
        let inside = refined(skeleton, &mut trees);
        let leaves: Vec<Skeleton> = evidence.signature().summands().map(Skeleton::Leaf).collect();
        let anew = trees.next().map(|tree| as_skeleton(&tree, &leaves, &Skeleton::Sum));
        let mut orders = Vec::new();
        for order in std::iter::once(inside).chain(anew) {
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

fn collect(skeleton: &Skeleton, all: &[Summand], sums: &mut Vec<Sum>) {
    let (Skeleton::Sum(children) | Skeleton::Inner(children)) = skeleton else { return };
    for child in children {
        collect(child, all, sums);
    }
    if children.len() < 3 {
        return;
    }
    let inside = skeleton.summands();
    let outside = all.iter().copied().filter(|summand| !inside.contains(summand)).collect();
    let children = children.iter().map(|child| (child.nearest(), child.clone())).collect();
    sums.push(Sum::new(children, outside, true));
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
    // Steps of a number that has no divisor in common with theirs go through all.
    let total = triples.len();
    let step = (total * 5 / 8..).find(|step| gcd(*step, total) == 1).unwrap_or(1);
    let mixed = (0..total).map(|index| triples[index * step % total]);
    mixed.take(most).collect()
}

/// For each of the three ways to divide a triple, whether it makes no difference on which of the pair the small
/// values are; `None` where the formats do not hold what has to be asked.
#[derive(Clone, Copy, Debug)]
struct Division([Option<bool>; 3]);

impl Division {
    /// Whether all ways can be compared, or two of which one is right.
    fn says_something(&self) -> bool {
        match self.0.iter().flatten().count() {
            3 => true,
            2 => self.first().is_some(),
            _ => false,
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
    fn new(children: Vec<(Summand, Skeleton)>, outside: Vec<Summand>, may_cancel: bool) -> Sum {
        Sum { triples: triples_of(children.len(), MOST_TRIPLES), children, outside, may_cancel }
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
        grouping::questions(evidence.signature(), pair, self.children[large].0, fourth, pattern)
    }

    /// What answers say about a triple, with each fourth summand.
    fn divisions(&self, evidence: &Evidence, three: [usize; 3], pattern: Pattern) -> Vec<Division> {
        let meets = |pair: [usize; 2], large: usize, fourth: Option<Summand>| {
            let questions = self.asked(evidence, pair, large, fourth, pattern)?;
            let [both, first, second] = [0, 1, 2].map(|index| evidence.answer(&questions[index]));
            Some(both? == first? && both? == second?)
        };
        let fourths = self.fourths(three, pattern).into_iter();
        let divisions =
            fourths.map(|fourth| Division(divided(three).map(|(pair, large)| meets(pair, large, fourth))));
        divisions.filter(Division::says_something).collect()
    }

    /// The patterns that tell most: each explains triples that those before it do not.
    fn telling(&self, evidence: &Evidence) -> Vec<Pattern> {
        let triples = thinned(&self.triples, LOOKED_AT);
        let mut shown: Vec<(Pattern, Vec<bool>)> = Pattern::all()
            .map(|pattern| {
                let says = |&three: &[usize; 3]| {
                    self.divisions(evidence, three, pattern).iter().any(|division| division.first().is_some())
                };
                (pattern, triples.iter().map(says).collect())
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
        let mut asked: Vec<[usize; 3]> = Vec::new();
        let mut rooted: Vec<Triple> = Vec::new();
        for &three in &self.triples {
            let of_pattern = |&pattern| self.divisions(evidence, three, pattern);
            let divisions: Vec<Division> = patterns.iter().flat_map(of_pattern).collect();
            // What the formats do not hold speaks neither for a sum nor against it.
            if !divisions.is_empty() {
                asked.push(three);
                rooted.extend(Self::rooted(three, &divisions));
            }
        }
        let all: Vec<usize> = (0..self.children.len()).collect();
        triples::tree(&all, &asked, &rooted)
    }

    /// Which two of three children meet before the third: the answers vote.
    fn rooted(three: [usize; 3], divisions: &[Division]) -> Option<Triple> {
        let mut votes = [0usize; 3];
        divisions.iter().filter_map(Division::first).for_each(|first| votes[first] += 1);
        let total: usize = votes.iter().sum();
        let most = (0..3).max_by_key(|&index| votes[index])?;
        (2 * votes[most] > total).then(|| divided(three)[most])
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
