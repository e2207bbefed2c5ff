//! The order inside sums that masks show as flat.
//!
//! Answers to the [nesting probe](mmaprobe_probes::nesting) say of three products of a sum which two are
//! added first, if any. From enough of these [triples] the tree follows. Where c comes in they do not say;
//! each place it can have is a candidate.

use std::collections::HashMap;

use mmaprobe_probes::nesting::{self, Pattern};
use mmaprobe_probes::{Probe, Summand};

use super::evidence::Evidence;
use super::skeleton::Skeleton;
use super::triples::{self, Tree, Triple};
use crate::device::DeviceError;

/// The most triples of one sum that are asked.
const MOST_TRIPLES: usize = 1200;
/// Patterns with which all triples are asked: those that showed most.
const PATTERNS: usize = 3;
/// Triples of a sum, for each of its products, that are asked with every pattern at first.
const FIRST_EACH: usize = 2;

/// The questions of the first look: a few triples of each flat sum, with every pattern.
pub fn first_probe(evidence: &Evidence, skeleton: &Skeleton, cuts: &[i32]) -> Probe {
    let patterns = nesting::patterns(cuts);
    let triples: Vec<[usize; 3]> = flat_sums(skeleton).iter().flat_map(|sum| some_triples(sum)).collect();
    probe(evidence, &triples, &patterns)
}

/// Trees for the skeleton in which flat sums have an order inside; none if no answer speaks for one.
///
/// # Errors
/// If the device fails.
pub fn refine(
    evidence: &mut Evidence,
    skeleton: &Skeleton,
    cuts: &[i32],
) -> Result<Vec<Skeleton>, DeviceError> {
    let sums = flat_sums(skeleton);
    // Which patterns show anything?
    let mut telling: Vec<(usize, Pattern)> = nesting::patterns(cuts)
        .into_iter()
        .map(|pattern| {
            let triples = sums.iter().flat_map(|sum| some_triples(sum));
            let shown = triples.filter(|&three| odd_one(evidence, three, pattern).is_some()).count();
            (shown, pattern)
        })
        .filter(|(shown, _)| *shown > 0)
        .collect();
    if telling.is_empty() {
        return Ok(Vec::new());
    }
    telling.sort_by_key(|(shown, _)| std::cmp::Reverse(*shown));
    telling.truncate(PATTERNS);
    let patterns: Vec<Pattern> = telling.into_iter().map(|(_, pattern)| pattern).collect();
    let triples: Vec<[usize; 3]> = sums.iter().flat_map(|sum| all_triples(sum)).collect();
    let probe = probe(evidence, &triples, &patterns);
    evidence.ask_mostly_aside(vec![probe])?;
    let mut trees: HashMap<Vec<usize>, Skeleton> = HashMap::new();
    for sum in &sums {
        let rooted: Vec<Triple> = all_triples(sum)
            .into_iter()
            .filter_map(|three| {
                // The patterns vote.
                let votes: Vec<usize> =
                    patterns.iter().filter_map(|&pattern| odd_one(evidence, three, pattern)).collect();
                let odd = *votes.iter().max_by_key(|&&v| votes.iter().filter(|&&w| w == v).count())?;
                let mut others = three.into_iter().filter(|&k| k != odd);
                Some(([others.next()?, others.next()?], odd))
            })
            .collect();
        trees.insert(sum.clone(), inside(&triples::tree(sum, &all_triples(sum), &rooted)));
    }
    let mut refined = Vec::new();
    for place in Place::ALL {
        let candidate = refined_with(skeleton, &trees, place);
        if candidate != *skeleton && !refined.contains(&candidate) {
            refined.push(candidate);
        }
    }
    Ok(refined)
}

/// The product of three whose holding X makes a difference, if it is one of them alone.
fn odd_one(evidence: &Evidence, three: [usize; 3], pattern: Pattern) -> Option<usize> {
    let questions = nesting::questions(evidence.signature(), three, pattern)?;
    let [x, y, z] = [0, 1, 2].map(|index| evidence.answer(&questions[index]));
    match (x? == y?, y? == z?, x? == z?) {
        (true, false, false) => Some(three[2]),
        (false, true, false) => Some(three[0]),
        (false, false, true) => Some(three[1]),
        _ => None,
    }
}

fn probe(evidence: &Evidence, triples: &[[usize; 3]], patterns: &[Pattern]) -> Probe {
    let signature = evidence.signature();
    let dot_adds = triples
        .iter()
        .flat_map(|&three| patterns.iter().filter_map(move |&p| nesting::questions(signature, three, p)))
        .flatten()
        .collect();
    Probe { name: nesting::NAME, question: nesting::QUESTION, source: nesting::SOURCE, dot_adds }
}

/// The products directly under each sum that has at least three.
fn flat_sums(skeleton: &Skeleton) -> Vec<Vec<usize>> {
    let (Skeleton::Sum(children) | Skeleton::Inner(children)) = skeleton else { return Vec::new() };
    let mut sums: Vec<Vec<usize>> = children.iter().flat_map(flat_sums).collect();
    let own = products(children);
    if own.len() >= 3 {
        sums.push(own);
    }
    sums
}

fn products(children: &[Skeleton]) -> Vec<usize> {
    children
        .iter()
        .filter_map(|child| match child {
            Skeleton::Leaf(Summand::Product(k)) => Some(*k),
            _ => None,
        })
        .collect()
}

/// Triples of a sum for a first look: neighbours, and some further apart.
fn some_triples(sum: &[usize]) -> Vec<[usize; 3]> {
    let count = sum.len();
    let mut triples = Vec::new();
    for (index, &first) in sum.iter().enumerate() {
        for step in 1..=FIRST_EACH {
            let second = sum[(index + step) % count];
            let third = sum[(index + step * step + step * count / 3 + 1) % count];
            if first != second && second != third && first != third {
                let mut three = [first, second, third];
                three.sort_unstable();
                triples.push(three);
            }
        }
    }
    triples.sort_unstable();
    triples.dedup();
    triples
}

/// All triples of a sum, or those with some of its products, where that is too many.
fn all_triples(sum: &[usize]) -> Vec<[usize; 3]> {
    let mut triples = Vec::new();
    let count = sum.len();
    for i in 0..count {
        for j in i + 1..count {
            for k in j + 1..count {
                triples.push([sum[i], sum[j], sum[k]]);
            }
        }
    }
    if triples.len() > MOST_TRIPLES {
        // Every pair with a few third ones.
        triples.retain(|&[i, j, k]| (i + j + k) % (triples_of(count) / MOST_TRIPLES + 1) == 0);
    }
    triples
}

fn triples_of(count: usize) -> usize {
    count * (count - 1) * (count - 2) / 6
}

/// A tree of products, as a sum that masks do not show.
fn inside(tree: &Tree) -> Skeleton {
    match tree {
        Tree::Leaf(k) => Skeleton::Leaf(Summand::Product(*k)),
        Tree::Node(children) => Skeleton::Inner(children.iter().map(inside).collect()),
    }
}

/// Where c comes into a sum whose products have an order inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It is added to the sum of all products.
    Last,
    /// It is added together with the last ones.
    WithLast,
    /// It is added together with the first ones.
    WithFirst,
    /// It is added to the first of the first ones, or the second, before all others.
    BeforeFirst(usize),
}

impl Place {
    const ALL: [Place; 5] =
        [Place::Last, Place::WithLast, Place::WithFirst, Place::BeforeFirst(0), Place::BeforeFirst(1)];
}

fn refined_with(skeleton: &Skeleton, trees: &HashMap<Vec<usize>, Skeleton>, place: Place) -> Skeleton {
    let Skeleton::Sum(children) = skeleton else { return skeleton.clone() };
    let own = products(children);
    let others: Vec<Skeleton> = children
        .iter()
        .filter(|child| !matches!(child, Skeleton::Leaf(Summand::Product(_))))
        .map(|child| refined_with(child, trees, place))
        .collect();
    let leaves = own.iter().map(|&k| Skeleton::Leaf(Summand::Product(k)));
    match trees.get(&own) {
        Some(Skeleton::Inner(inside)) if inside.iter().any(|child| matches!(child, Skeleton::Inner(_))) => {
            with_others(others, inside.clone(), place)
        }
        _ => Skeleton::Sum(others.into_iter().chain(leaves).collect()),
    }
}

/// A sum of these others, c or a sum with c among them, and a tree of products.
fn with_others(others: Vec<Skeleton>, inside: Vec<Skeleton>, place: Place) -> Skeleton {
    if others.is_empty() {
        return Skeleton::Sum(inside);
    }
    match place {
        Place::Last => Skeleton::Sum(others.into_iter().chain([Skeleton::Inner(inside)]).collect()),
        Place::WithLast => Skeleton::Sum(others.into_iter().chain(inside).collect()),
        _ => match deepest_with(&inside, others, place) {
            Skeleton::Inner(children) => Skeleton::Sum(children),
            other => other,
        },
    }
}

/// The tree with the others in its deepest sum.
fn deepest_with(children: &[Skeleton], others: Vec<Skeleton>, place: Place) -> Skeleton {
    let deepest =
        (0..children.len()).max_by_key(|&index| (depth(&children[index]), std::cmp::Reverse(index)));
    let mut children = children.to_vec();
    match deepest {
        Some(index) if depth(&children[index]) > 0 => {
            let Skeleton::Inner(inside) = children.remove(index) else {
                unreachable!("only sums have a depth")
            };
            children.insert(0, deepest_with(&inside, others, place));
            Skeleton::Inner(children)
        }
        _ => match place {
            Place::BeforeFirst(index) if children.len() == 2 => {
                let first = children.remove(index);
                let started = Skeleton::Inner(others.into_iter().chain([first]).collect());
                Skeleton::Inner([started].into_iter().chain(children).collect())
            }
            _ => Skeleton::Inner(others.into_iter().chain(children).collect()),
        },
    }
}

fn depth(skeleton: &Skeleton) -> usize {
    match skeleton {
        Skeleton::Leaf(_) => 0,
        Skeleton::Sum(children) | Skeleton::Inner(children) => {
            1 + children.iter().map(depth).max().unwrap_or(0)
        }
    }
}
