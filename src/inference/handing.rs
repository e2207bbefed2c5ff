//! The order in which products come to c, from what comes out given back as c.
//!
//! Where the sums on c's way to the result are rounded to c's own format, a product comes before another if
//! [the device composed with itself](mmaprobe_probes::handing) answers as at once. Products of which neither
//! comes before the other are added in one sum, or to each other first.

use mmaprobe_probes::handing::{self, Trial};
use mmaprobe_probes::{DotAdd, Probe, Summand};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::evidence::Evidence;
use super::skeleton::Skeleton;
use crate::device::DeviceError;

/// Values that each pair of products is tried with.
const TRIALS: usize = 12;

/// Orders in which c is handed from one group of products to the next; none if it is not.
///
/// # Errors
/// If the device fails.
pub fn orders(evidence: &mut Evidence, cuts: &[i32], seed: u64) -> Result<Vec<Skeleton>, DeviceError> {
    let signature = *evidence.signature();
    if signature.k < 2 {
        return Ok(Vec::new());
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ HANDED);
    let trials = handing::trials(&signature, TRIALS, cuts, &mut rng);
    let products = || 0..signature.k;
    let alone = |trial: &Trial, k: usize| handing::question(&signature, trial.c, &[(k, trial.first)]);
    let both = |trial: &Trial, [p, q]: [usize; 2]| {
        handing::question(&signature, trial.c, &[(p, trial.first), (q, trial.second)])
    };
    let pairs = || products().flat_map(move |p| products().filter(move |&q| q != p).map(move |q| [p, q]));
    let first = trials.iter().flat_map(|trial| {
        products().filter_map(|k| alone(trial, k)).chain(pairs().filter_map(|pair| both(trial, pair)))
    });
    evidence.ask(vec![probe(first.collect())])?;
    let next = |evidence: &Evidence, trial: &Trial, [p, q]: [usize; 2]| {
        let handed = handing::handed(&signature, evidence.answer(&alone(trial, p)?)?)?;
        let question = handing::question(&signature, handed, &[(q, trial.second)])?;
        Some(question)
    };
    let second = trials.iter().flat_map(|trial| pairs().filter_map(|pair| next(evidence, trial, pair)));
    let second = probe(second.collect());
    evidence.ask(vec![second])?;
    let mut before = vec![vec![false; signature.k]; signature.k];
    for [p, q] in pairs() {
        let equal = trials.iter().filter_map(|trial| {
            let at_once = evidence.answer(&both(trial, [p, q])?)?;
            Some(evidence.answer(&next(evidence, trial, [p, q])?)? == at_once)
        });
        before[p][q] = { equal }.all(|equal| equal);
    }
    Ok(chains(&before))
}

/// Sets the seeds of trials apart from others.
const HANDED: u64 = 0x6861_6e64_6564;

fn probe(dot_adds: Vec<DotAdd>) -> Probe {
    Probe { name: handing::NAME, question: handing::QUESTION, source: handing::SOURCE, dot_adds }
}

/// Chains from c of the groups that "comes before" divides the products into, with the products of a group
/// added to c at once, and to each other first; none if there is only one group, or they have no order.
fn chains(before: &[Vec<bool>]) -> Vec<Skeleton> {
    let count = before.len();
    let strictly = |p: usize, q: usize| before[p][q] && !before[q][p];
    let rank = |q: usize| (0..count).filter(|&p| p != q && strictly(p, q)).count();
    let mut ranked: Vec<(usize, usize)> = (0..count).map(|k| (rank(k), k)).collect();
    ranked.sort_unstable();
    let groups: Vec<Vec<usize>> = ranked
        .chunk_by(|(x, _), (y, _)| x == y)
        .map(|group| group.iter().map(|(_, k)| *k).collect())
        .collect();
    let group_of = |k: usize| groups.iter().position(|group| group.contains(&k));
    let is_order =
        (0..count).all(|p| (0..count).all(|q| p == q || strictly(p, q) == (group_of(p) < group_of(q))));
    if groups.len() < 2 || !is_order {
        return Vec::new();
    }
    let at_once = groups.iter().map(|group| alone(group)).collect();
    let summed_first = groups.iter().map(|group| vec![group.clone()]).collect();
    let mut chains: Vec<Skeleton> =
        [at_once, summed_first].map(|levels: Vec<Vec<Vec<usize>>>| chained(levels)).to_vec();
    chains.dedup();
    chains
}

/// Each of these products in a group of its own.
pub fn alone(products: &[usize]) -> Vec<Vec<usize>> {
    products.iter().map(|&product| vec![product]).collect()
}

/// A chain from c, to which at each level the sums of these groups are added at once.
pub fn chained(levels: impl IntoIterator<Item = Vec<Vec<usize>>>) -> Skeleton {
    levels.into_iter().fold(Skeleton::Leaf(Summand::C), |sum, groups| {
        let leaf = |&k: &usize| Skeleton::Leaf(Summand::Product(k));
        let groups = groups.iter().map(|group| match &group[..] {
            [product] => leaf(product),
            products => Skeleton::Sum(products.iter().map(leaf).collect()),
        });
        let mut children: Vec<Skeleton> = std::iter::once(sum).chain(groups).collect();
        Skeleton::sort(&mut children);
        Skeleton::Sum(children)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_chained_in_their_order() {
        // 2 and 0 come together, then 1.
        let before =
            [[false, true, false], [false, false, false], [false, true, false]].map(|row| row.to_vec());
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let c = Skeleton::Leaf(Summand::C);
        let at_once = Skeleton::Sum(vec![Skeleton::Sum(vec![c.clone(), leaf(0), leaf(2)]), leaf(1)]);
        let first =
            Skeleton::Sum(vec![Skeleton::Sum(vec![c, Skeleton::Sum(vec![leaf(0), leaf(2)])]), leaf(1)]);
        assert_eq!(chains(&before), [at_once, first]);
        assert!(chains(&[vec![false, false], vec![false, false]]).is_empty());
        assert!(chains(&[vec![true, true], vec![true, true]]).is_empty(), "nothing speaks for an order");
    }
}
