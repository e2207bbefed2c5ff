//! Groups of products that are added to c one after the other.
//!
//! Products of factors with little range are added exactly, in whatever order. But beside a large c, those of one group can
//! be exchanged, and those of two cannot; c [handed on](crate::inference::handing) shows which of two groups comes first.

use mmaprobe_probes::handing::{self, Trial};
use mmaprobe_probes::place::Dyadic;
use mmaprobe_probes::{DotAdd, Signature};

use super::{QUESTIONS, probe};
use crate::device::DeviceError;
use crate::inference::evidence::Evidence;
use crate::inference::fit::thinned;
use crate::inference::grouping::mixed;
use crate::inference::handing::chain;
use crate::inference::order::Skeleton;

/// Pairs of products that are tried with all values.
const LOOKED_AT: usize = 24;
/// Of these values, the ones that tell most, with which all pairs are tried.
const TELLING: usize = 16;
/// Pairs of the products of two groups, to find out which group comes first.
const ORDERED: usize = 6;
/// Pairs of the products of one group, to find out whether they are added to each other first.
const SUMMED: usize = 12;

/// Two products.
type Pair = [usize; 2];

/// A value of c and of two products, and those of other products beside them: what comes between two on c's way shows that
/// they are not of one group.
#[derive(Clone, Copy)]
struct Beside<'t> {
    trial: &'t Trial,
    others: Option<&'t Trial>,
}

impl Beside<'_> {
    /// c and both products, and every second of the others.
    fn question(self, signature: &Signature, [p, q]: Pair) -> Option<DotAdd> {
        let Trial { c, first, second } = *self.trial;
        let others = self.others.into_iter().flat_map(|others| {
            let free = (0..signature.k).filter(move |&k| k != p && k != q);
            free.step_by(2).enumerate().map(|(at, k)| (k, [others.first, others.second][at % 2]))
        });
        let products: Vec<(usize, Dyadic)> = [(p, first), (q, second)].into_iter().chain(others).collect();
        handing::question(signature, c, &products)
    }

    /// The same, and with the products exchanged.
    fn exchanged(self, signature: &Signature, [p, q]: Pair) -> [Option<DotAdd>; 2] {
        [self.question(signature, [p, q]), self.question(signature, [q, p])]
    }

    /// Whether it makes a difference.
    fn differs(self, evidence: &Evidence, pair: Pair) -> bool {
        are_told_apart(evidence, self.exchanged(evidence.signature(), pair))
    }
}

/// Whether two questions have different answers.
fn are_told_apart(evidence: &Evidence, questions: [Option<DotAdd>; 2]) -> bool {
    let [one, other] = questions.map(|question| evidence.answer(&question?));
    one.zip(other).is_some_and(|(one, other)| one != other)
}

/// Chains from c of the groups that products are in which can be exchanged beside it; with the products of each group added to
/// each other first where that is what it looks like, of all groups, and of none. None where all can be exchanged.
pub(super) fn chains(evidence: &mut Evidence, trials: &[Trial]) -> Result<Vec<Skeleton>, DeviceError> {
    let signature = *evidence.signature();
    let k = signature.k;
    let pairs: Vec<Pair> = (0..k).flat_map(|p| (p + 1..k).map(move |q| [p, q])).collect();
    let looked_at = thinned(&mixed(&pairs), LOOKED_AT);
    let next = trials.iter().cycle().skip(1);
    let alone = trials.iter().map(|trial| Beside { trial, others: None });
    let besides: Vec<Beside> = alone
        .chain(trials.iter().zip(next).map(|(trial, others)| Beside { trial, others: Some(others) }))
        .collect();
    ask(evidence, &looked_at, &besides, |signature, pair, beside| beside.exchanged(signature, pair))?;
    let mut shown: Vec<(usize, &Beside)> = besides
        .iter()
        .map(|beside| (looked_at.iter().filter(|&&pair| beside.differs(evidence, pair)).count(), beside))
        .filter(|(pairs, _)| *pairs > 0)
        .collect();
    // A stable sort: the first among equals.
    shown.sort_by_key(|(pairs, _)| std::cmp::Reverse(*pairs));
    let most = (QUESTIONS / (2 * pairs.len().max(1))).clamp(1, TELLING);
    let telling: Vec<Beside> = shown.iter().take(most).map(|(_, beside)| **beside).collect();
    ask(evidence, &pairs, &telling, |signature, pair, beside| beside.exchanged(signature, pair))?;
    let groups = groups(k, |pair| telling.iter().any(|beside| beside.differs(evidence, pair)));
    if groups.len() < 2 {
        return Ok(Vec::new());
    }
    let mut trials: Vec<Trial> = Vec::new();
    for Beside { trial, .. } in telling {
        if !trials.contains(trial) {
            trials.push(*trial);
        }
    }
    let groups = in_order(evidence, groups, &trials)?;
    let are_summed_first = are_summed_first(evidence, &groups, &trials)?;
    let mut chains: Vec<Skeleton> = Vec::new();
    let uniform = [true, false].map(|summed| vec![summed; groups.len()]);
    for summed in std::iter::once(are_summed_first).chain(uniform) {
        let chain = chain(groups.iter().cloned().zip(summed));
        if !chains.contains(&chain) {
            chains.push(chain);
        }
    }
    Ok(chains)
}

/// Asks something about these pairs with each of these values.
fn ask<T>(
    evidence: &mut Evidence,
    pairs: &[Pair],
    values: &[T],
    questions: impl Fn(&Signature, Pair, &T) -> [Option<DotAdd>; 2],
) -> Result<(), DeviceError> {
    let signature = *evidence.signature();
    let each = pairs.iter().flat_map(|&pair| values.iter().map(move |values| (pair, values)));
    let dot_adds = each.flat_map(|(pair, values)| questions(&signature, pair, values)).flatten().collect();
    evidence.ask_aside(vec![probe(dot_adds)])
}

/// c and both products.
fn both(signature: &Signature, pair: Pair, trial: &Trial) -> Option<DotAdd> {
    Beside { trial, others: None }.question(signature, pair)
}

/// c with u in both products, and with 2u in one of them: the same where they are added to each other first.
fn doubled(signature: &Signature, [p, q]: Pair, trial: &Trial) -> [Option<DotAdd>; 2] {
    let Trial { c, first, .. } = *trial;
    let twice = Dyadic { exponent: first.exponent + 1, ..first };
    [&[(p, first), (q, first)][..], &[(p, twice)]].map(|products| handing::question(signature, c, products))
}

/// Whether the products of each group are added to each other first.
fn are_summed_first(
    evidence: &mut Evidence,
    groups: &[Vec<usize>],
    trials: &[Trial],
) -> Result<Vec<bool>, DeviceError> {
    let of_each: Vec<Vec<Pair>> = groups
        .iter()
        .map(|group| {
            let all = (1..group.len()).flat_map(|y| (0..y).map(move |x| [group[x], group[y]]));
            thinned(&all.collect::<Vec<Pair>>(), SUMMED)
        })
        .collect();
    ask(evidence, &of_each.concat(), trials, doubled)?;
    let signature = *evidence.signature();
    let is_apart =
        |pair: &Pair| trials.iter().any(|trial| are_told_apart(evidence, doubled(&signature, *pair, trial)));
    Ok(of_each
        .iter()
        .map(|pairs| 2 * pairs.iter().filter(|pair| is_apart(pair)).count() < pairs.len())
        .collect())
}

/// Products in groups, each with those most of which it can be exchanged with.
fn groups(k: usize, differs: impl Fn(Pair) -> bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for product in 0..k {
        let is_own = |group: &&mut Vec<usize>| {
            2 * group.iter().filter(|&&one| differs([one, product])).count() < group.len()
        };
        match groups.iter_mut().find(is_own) {
            Some(group) => group.push(product),
            None => groups.push(vec![product]),
        }
    }
    groups
}

/// The groups in the order in which they come to c: what comes out with a product of the first, given back as c with one
/// of the second, mostly comes out as both at once.
fn in_order(
    evidence: &mut Evidence,
    groups: Vec<Vec<usize>>,
    trials: &[Trial],
) -> Result<Vec<Vec<usize>>, DeviceError> {
    let of_two = |x: usize, y: usize| {
        let all: Vec<Pair> = groups[x].iter().flat_map(|&p| groups[y].iter().map(move |&q| [p, q])).collect();
        thinned(&all, ORDERED)
    };
    let twos = || (0..groups.len()).flat_map(|y| (0..y).map(move |x| (x, y)));
    let pairs: Vec<Pair> =
        twos().flat_map(|(x, y)| of_two(x, y)).flat_map(|[p, q]| [[p, q], [q, p]]).collect();
    let trials = &trials[..trials.len().min((QUESTIONS / (3 * pairs.len())).max(1))];
    ask(evidence, &pairs, trials, |signature, [p, q], trial: &Trial| {
        [handing::question(signature, trial.c, &[(p, trial.first)]), both(signature, [p, q], trial)]
    })?;
    let next = |evidence: &Evidence, [p, q]: Pair, trial: &Trial| {
        let signature = evidence.signature();
        let alone = handing::question(signature, trial.c, &[(p, trial.first)])?;
        let handed = handing::handed(signature, evidence.answer(&alone)?)?;
        handing::question(signature, handed, &[(q, trial.second)])
    };
    let mut second = Vec::new();
    for &pair in &pairs {
        second.extend(trials.iter().filter_map(|trial| next(evidence, pair, trial)));
    }
    evidence.ask_aside(vec![probe(second)])?;
    let is_handed = |pair: Pair, trial: &&Trial| {
        let at_once = both(evidence.signature(), pair, trial).and_then(|question| evidence.answer(&question));
        let handed = next(evidence, pair, trial).and_then(|question| evidence.answer(&question));
        at_once.is_some() && at_once == handed
    };
    let handed = |pair: Pair| trials.iter().filter(|trial| is_handed(pair, trial)).count() as i64;
    let mut earlier = vec![0i64; groups.len()];
    for (x, y) in twos() {
        let balance: i64 = of_two(x, y).into_iter().map(|[p, q]| handed([p, q]) - handed([q, p])).sum();
        earlier[x] += balance.signum();
        earlier[y] -= balance.signum();
    }
    let mut ranked: Vec<(i64, Vec<usize>)> = earlier.into_iter().zip(groups).collect();
    ranked.sort_by_key(|(earlier, _)| std::cmp::Reverse(*earlier));
    Ok(ranked.into_iter().map(|(_, group)| group).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_grouped_with_those_they_can_be_exchanged_with() {
        // One pair of a group differs by chance.
        let differs = |[p, q]: Pair| p % 2 != q % 2 || [p, q] == [2, 6];
        assert_eq!(groups(8, differs), [[0, 2, 4, 6], [1, 3, 5, 7]]);
    }
}
