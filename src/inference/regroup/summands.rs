//! Sums that hand summands to each other.

use mmaprobe_model::tree::{Added, Fused, Rule};

use super::{Term, has_accumulator, in_order, is_product};

/// The summands with those of one sum among them in its place, or of all.
pub(super) fn dissolved(children: &[Term]) -> impl Iterator<Item = Vec<Term>> {
    let is_sum = |at: usize| matches!(children[at], Term::Sum(..));
    let sums: Vec<usize> = (0..children.len()).filter(|&at| is_sum(at)).collect();
    let all = (sums.len() > 1).then(|| sums.clone());
    let each = sums.into_iter().map(|at| vec![at]);
    each.chain(all).map(|which| {
        let place = |(at, child): (usize, &Term)| match child {
            Term::Sum(inside, _) if which.contains(&at) => inside.clone(),
            other => vec![other.clone()],
        };
        children.iter().enumerate().flat_map(place).collect()
    })
}

/// Summands, at most, in front of those of a sum that is dissolved.
const APART_IN_FRONT: usize = 3;

/// The sum with the summands of one sum among them behind the others, each aligned as it was: of summands that one sum
/// aligns in different ways, some seem to be added last.
pub(super) fn dissolved_apart(children: &[Term], rule: &Rule) -> Vec<Term> {
    let mut all = Vec::new();
    let Added::Fused(outside) = &rule.added else { return all };
    if children.len() > APART_IN_FRONT + 1 {
        return all;
    }
    for (at, child) in children.iter().enumerate() {
        let Term::Sum(inside, Rule { added: Added::Fused(own), .. }) = child else { continue };
        let others = || (0..children.len()).filter(|&other| other != at);
        let in_front = others().map(|other| *outside.alignment_of(other));
        let fused =
            Fused { alignment: in_front.chain(own.alignment.iter().copied()).collect(), ..own.clone() };
        let summands = others().map(|other| children[other].clone()).chain(inside.iter().cloned());
        all.push(Term::Sum(summands.collect(), Rule { added: Added::Fused(fused), ..rule.clone() }));
    }
    all
}

/// The summands with one of them, that is no sum, in a sum among them: what one sum aligns apart from
/// its other summands may seem to be no summand of it. None where that leaves nothing beside that sum.
pub(super) fn taken_in(children: &[Term]) -> Vec<Vec<Term>> {
    let mut all = Vec::new();
    if children.len() < 3 {
        return all;
    }
    for (into, sum) in children.iter().enumerate() {
        let Term::Sum(inside, rule) = sum else { continue };
        for (at, taken) in children.iter().enumerate() {
            if matches!(taken, Term::Sum(..)) || has_accumulator(taken) {
                continue;
            }
            let mut summands = children.to_vec();
            summands[into] = in_order([inside.clone(), vec![taken.clone()]].concat(), rule);
            summands.remove(at);
            all.push(summands);
        }
    }
    all
}

/// The summands with those of one sum among them in its place, and the rule of that sum, which then is that of all.
pub(super) fn taken_over(children: &[Term]) -> impl Iterator<Item = (Vec<Term>, &Rule)> {
    children.iter().enumerate().filter_map(|(at, child)| {
        let Term::Sum(inside, rule) = child else { return None };
        let summands = [&children[..at], inside, &children[at + 1..]].concat();
        Some((summands, rule))
    })
}

/// The sum with one of the products that a sum among them adds taken out of it and added afterwards, as that sum adds: what
/// comes in between may show in few answers.
pub(super) fn added_after(children: &[Term], rule: &Rule) -> Vec<Term> {
    let mut all = Vec::new();
    for (at, child) in children.iter().enumerate() {
        let Term::Sum(inside, own) = child else { continue };
        if inside.len() < 3 {
            continue;
        }
        for (place, taken) in inside.iter().enumerate().filter(|(_, taken)| is_product(taken)) {
            let mut left = inside.clone();
            left.remove(place);
            let mut summands = children.to_vec();
            summands[at] = Term::Sum(left, without(own, place, inside.len()));
            all.push(Term::Sum(vec![Term::Sum(summands, rule.clone()), taken.clone()], own.clone()));
        }
    }
    all
}

/// The rule of so many summands without that of one of them, by its place.
fn without(rule: &Rule, place: usize, count: usize) -> Rule {
    match &rule.added {
        Added::Fused(fused) if fused.alignment.len() > 1 => {
            let left = (0..count).filter(|&other| other != place);
            let alignment = left.map(|other| *fused.alignment_of(other)).collect();
            Rule { added: Added::Fused(Fused { alignment, ..fused.clone() }), ..rule.clone() }
        }
        _ => rule.clone(),
    }
}
