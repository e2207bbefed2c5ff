//! Sums as chains, and chains whose summands change places.

use mmaprobe_model::tree::{Node, Rule};

use super::{Changed, Term, has_accumulator};

/// Sizes of groups of summands that a chain adds one after the other.
const LINKS: [usize; 5] = [1, 2, 3, 4, 8];

/// The sum as a chain: what has the accumulator and the first group of the others, the sum of these and the second
/// group, and so on, from either end; with what has been changed. All but the last sum follow `of_links`.
pub(super) fn chained(children: &[Term], rule: &Rule, of_links: &Rule) -> Vec<Changed> {
    let (start, others): (Vec<Term>, Vec<Term>) = children.iter().cloned().partition(has_accumulator);
    let reversed: Vec<Term> = others.iter().rev().cloned().collect();
    let mut chains = Vec::new();
    if children.len() < 3 {
        // The same sum.
        return chains;
    }
    let strided: Vec<Term> = (0..2).flat_map(|lane| others.iter().skip(lane).step_by(2)).cloned().collect();
    let half = others.len().div_ceil(2);
    let halves: Vec<Term> =
        (0..half).flat_map(|lane| others.iter().skip(lane).step_by(half)).cloned().collect();
    let ends = [
        (&others, " from the first on"),
        (&reversed, " from the last on"),
        (&strided, ", every second one first"),
        (&halves, ", from both halves in turn"),
    ];
    let sizes = LINKS.into_iter().chain((!LINKS.contains(&half)).then_some(half));
    let all = ends.into_iter().flat_map(|(others, end)| sizes.clone().map(move |size| (others, end, size)));
    for (others, end, size) in all.filter(|(others, _, size)| others.len() > *size) {
        let link = |sum: Vec<Term>, group: &[Term]| {
            let mut members = match &sum[..] {
                [] | [_] => sum,
                _ => vec![Term::Sum(sum, of_links.clone())],
            };
            members.extend_from_slice(group);
            members
        };
        let change = format!(", a chain that adds {size} at a time{end}");
        chains.push((change, Term::Sum(others.chunks(size).fold(start.clone(), link), rule.clone())));
    }
    chains
}

/// What has the accumulator, and the sum beside it in groups that are summed as it was and added one after the other,
/// from either end; with what has been changed. All but the last sum of the chain follow `of_links`.
pub(super) fn dots_chained(children: &[Term], rule: &Rule, of_links: &Rule) -> Vec<Changed> {
    let (start, others): (Vec<Term>, Vec<Term>) = children.iter().cloned().partition(has_accumulator);
    let ([start], [Term::Sum(summands, of_groups)]) = (&start[..], &others[..]) else { return Vec::new() };
    let half = summands.len().div_ceil(2);
    let sizes = LINKS.into_iter().chain((!LINKS.contains(&half)).then_some(half));
    let mut chains = Vec::new();
    for size in sizes.filter(|&size| size > 1 && size < summands.len()) {
        let group = |group: &[Term]| match group {
            [alone] => alone.clone(),
            _ => Term::Sum(group.to_vec(), of_groups.clone()),
        };
        let groups: Vec<Term> = summands.chunks(size).map(group).collect();
        let reversed: Vec<Term> = groups.iter().rev().cloned().collect();
        for (groups, end) in [(groups, "first"), (reversed, "last")] {
            let (last, before) = groups.split_last().expect("there are two or more");
            let link = |sum, group: &Term| Term::Sum(vec![sum, group.clone()], of_links.clone());
            let chain = before.iter().fold(start.clone(), link);
            let change =
                format!(", {size} at a time summed first and added one after the other, the {end} first");
            chains.push((change, Term::Sum(vec![chain, last.clone()], rule.clone())));
        }
    }
    chains
}

/// How far down a chain summands are that change places, in sums.
const APART: usize = 4;
/// Pairs of summands of two sums that change places, at most.
const EXCHANGED: usize = 8;

/// The summands, where a chain goes on in one of them, with one of the others in the place of one further down the chain
/// and the other way round, or with all of the others.
pub(super) fn exchanged(children: &[Term]) -> Vec<(String, Vec<Term>)> {
    let mut all = Vec::new();
    let here = beside_chain(children);
    let mut below = children;
    for depth in 1..=APART {
        let Some(Term::Sum(inside, _)) = goes_on(below).map(|at| &below[at]) else { break };
        below = inside;
        let there = beside_chain(below);
        let words = |what: &str| format!(", {what} and what is added {depth} before it change places");
        if here.len() == there.len() && here.len() > 1 {
            let exchanged = with_beside(&with_beside(children, depth, &here), 0, &there);
            all.push((words("what is added last"), exchanged));
        }
        if here.len() * there.len() > EXCHANGED {
            continue;
        }
        for (one, other) in (0..here.len()).flat_map(|one| (0..there.len()).map(move |other| (one, other))) {
            let (mut here, mut there) = (here.clone(), there.clone());
            std::mem::swap(&mut here[one], &mut there[other]);
            let exchanged = with_beside(&with_beside(children, depth, &there), 0, &here);
            all.push((words("one that is added last"), exchanged));
        }
    }
    all
}

/// The place of the summand in which a chain goes on: the one sum that more sums are nested in than in any other, but
/// not beside what it may start from.
fn goes_on(children: &[Term]) -> Option<usize> {
    let nested: Vec<usize> = children.iter().map(nested).collect();
    let most = *nested.iter().max()?;
    let mut deepest = (0..children.len()).filter(|&at| nested[at] == most);
    let at = deepest.next().filter(|_| deepest.next().is_none())?;
    (most > 0 && !children.iter().any(starts_chain)).then_some(at)
}

/// How many sums are nested in each other.
fn nested(tree: &Term) -> usize {
    match tree {
        Term::Leaf(_) => 0,
        Term::Scaled(child, _) => nested(child),
        Term::Sum(children, _) => 1 + children.iter().map(nested).max().unwrap_or(0),
    }
}

/// Whether a chain may start from this.
fn starts_chain(tree: &Term) -> bool {
    matches!(tree, Term::Leaf(Node::Accumulator | Node::Zero))
}

/// Whether this is neither what a chain goes on in nor what it starts from, by its place among these.
fn is_beside(children: &[Term], at: usize) -> bool {
    goes_on(children) != Some(at) && !starts_chain(&children[at])
}

/// The summands that a chain adds to what it goes on in or starts from.
fn beside_chain(children: &[Term]) -> Vec<Term> {
    let beside = (0..children.len()).filter(|&at| is_beside(children, at));
    beside.map(|at| children[at].clone()).collect()
}

/// The summands with these in place of those beside the chain, so many sums further down.
fn with_beside(children: &[Term], depth: usize, beside: &[Term]) -> Vec<Term> {
    if depth == 0 {
        let chain = (0..children.len()).filter(|&at| !is_beside(children, at));
        return chain.map(|at| children[at].clone()).chain(beside.iter().cloned()).collect();
    }
    let mut changed = children.to_vec();
    if let Some(at) = goes_on(children)
        && let Term::Sum(inside, _) = &mut changed[at]
    {
        *inside = with_beside(inside, depth - 1, beside);
    }
    changed
}
