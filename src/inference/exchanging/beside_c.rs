//! Groups of products that are added to each other, or to c one after the other.
//!
//! Products of factors with little range are added exactly, in whatever order. But beside a large c, something is lost of
//! each, and it is not lost of both where they are added to each other first. Those of one group can be exchanged, and
//! those of two cannot; c [handed on](crate::inference::handing) shows which of two groups comes first. Where sums keep more
//! than d, and d is rounded to nearest, what they lose shows beside c and half of d's last bit. And two products that are
//! halves of the last bit that c keeps make a whole one where they are rounded together, even if no two are aligned alike.

use mmaprobe_probes::handing::{self, Halved, Trial};
use mmaprobe_probes::place::Dyadic;
use mmaprobe_probes::{DotAdd, Signature};

use super::{QUESTIONS, most_telling, probe};
use crate::device::DeviceError;
use crate::inference::evidence::Evidence;
use crate::inference::fit::thinned;
use crate::inference::grouping::mixed;
use crate::inference::handing::{alone, chained};
use crate::inference::skeleton::{self, Skeleton};

/// Pairs of products that are tried with all values.
const LOOKED_AT: usize = 48;
/// Of these values, the ones that tell most, with which all pairs are tried.
const TELLING: usize = 16;
/// Pairs of the products of two groups, to find out which group comes first.
const ORDERED: usize = 6;

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
            beside(signature, [p, q])
                .step_by(2)
                .enumerate()
                .map(|(at, k)| (k, [others.first, others.second][at % 2]))
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

/// Whether both products are in a group.
fn has_both(group: &[usize], [p, q]: Pair) -> bool {
    group.contains(&p) && group.contains(&q)
}

/// Whether they are in one group.
fn are_in_one(groups: &[Vec<usize>], pair: Pair) -> bool {
    groups.iter().any(|group| has_both(group, pair))
}

/// All products but two.
fn beside(signature: &Signature, [p, q]: Pair) -> impl DoubleEndedIterator<Item = usize> + use<> {
    (0..signature.k).filter(move |&k| k != p && k != q)
}

/// Whether two questions have different answers.
fn are_told_apart(evidence: &Evidence, questions: [Option<DotAdd>; 2]) -> bool {
    let [one, other] = questions.map(|question| evidence.answer(&question?));
    one.zip(other).is_some_and(|(one, other)| one != other)
}

/// Two products that are given the same beside a large c, or one of them both at once.
#[derive(Clone, Copy)]
struct Doubled<'t> {
    c: Dyadic,
    each: Dyadic,
    /// What another product is given, if it is.
    half: Option<Half<'t>>,
}

/// Half of the last bit that is kept of c.
#[derive(Clone, Copy)]
struct Half<'t> {
    value: Dyadic,
    /// Whether the last product is given it that neither of the two is, or the first.
    is_last: bool,
    /// Groups of products that are rounded together; the half and both products are of one.
    rounded: &'t [Vec<usize>],
}

impl Half<'_> {
    /// The product that is given the half.
    fn place(self, [p, q]: Pair) -> Option<usize> {
        let together = self.rounded.iter().find(|group| has_both(group, [p, q]))?;
        let mut free = together.iter().copied().filter(|&k| k != p && k != q);
        if self.is_last { free.next_back() } else { free.next() }
    }
}

impl Doubled<'_> {
    /// c with u in both products, and with 2u in one of them: the same where they are added to each other first.
    fn questions(self, signature: &Signature, [p, q]: Pair) -> [Option<DotAdd>; 2] {
        let Doubled { c, each, half } = self;
        let twice = Dyadic { exponent: each.exponent + 1, ..each };
        let half = match half {
            Some(half) => match half.place([p, q]) {
                Some(k) => Some((k, half.value)),
                None => return [None, None],
            },
            None => None,
        };
        [&[(p, each), (q, each)][..], &[(p, twice)]].map(|products| {
            let all: Vec<(usize, Dyadic)> = products.iter().copied().chain(half).collect();
            handing::question(signature, c, &all)
        })
    }

    /// Whether that makes a difference.
    fn differs(self, evidence: &Evidence, pair: Pair) -> bool {
        are_told_apart(evidence, self.questions(evidence.signature(), pair))
    }
}

/// [`told`], of two products and twice one of them.
fn told_doubled<'t>(
    evidence: &mut Evidence,
    pairs: &[Pair],
    values: &[Doubled<'t>],
) -> Result<Vec<Doubled<'t>>, DeviceError> {
    told(evidence, pairs, values, |signature, pair, doubled| doubled.questions(signature, pair))
}

/// Groups of products that are added to each other first, of those that are rounded together, as what is lost of each alone
/// shows beside c: so they are found where the sums lose something of what d would show; otherwise where another product
/// makes a half of d's last bit.
fn added_first(
    evidence: &mut Evidence,
    pairs: &[Pair],
    trials: &[Trial],
    halved: &[Halved],
    rounded: &[Vec<usize>],
) -> Result<Vec<Vec<usize>>, DeviceError> {
    let k = evidence.signature().k;
    let together: Vec<Pair> = pairs.iter().copied().filter(|pair| are_in_one(rounded, *pair)).collect();
    let first = |evidence: &Evidence, telling: &[Doubled]| {
        let differs = |pair: Pair| telling.iter().any(|doubled| doubled.differs(evidence, pair));
        groups(k, |pair| !are_in_one(rounded, pair) || differs(pair))
    };
    let plain: Vec<Doubled> =
        trials.iter().map(|trial| Doubled { c: trial.c, each: trial.first, half: None }).collect();
    let mut telling = told_doubled(evidence, &together, &plain)?;
    let mut added_first = first(evidence, &telling);
    if telling.is_empty() || rounded.len() > 1 {
        // What comes before all other sums may be lost in its own.
        let with_half = |(at, halved): (usize, &Halved)| Doubled {
            c: halved.trial.c,
            each: halved.trial.first,
            half: Some(Half { value: halved.half, is_last: at % 2 == 1, rounded }),
        };
        let with_halves: Vec<Doubled> = halved.iter().enumerate().map(with_half).collect();
        telling.extend(told_doubled(evidence, &together, &with_halves)?);
        added_first = first(evidence, &telling);
    }
    Ok(added_first)
}

/// One of so many pairs at most is not as the groups say that are rounded together.
const ASTRAY: usize = 20;

/// Groups of products that are rounded together, if any are not: a half of the last bit that is kept of c in each of two
/// makes a whole one. Of the bits that may be kept, the ones with which the fewest pairs contradict the groups.
fn rounded_together(
    evidence: &mut Evidence,
    pairs: &[Pair],
    halved: &[Halved],
) -> Result<Option<Vec<Vec<usize>>>, DeviceError> {
    let k = evidence.signature().k;
    let mut kept: Vec<u32> = halved.iter().map(|halved| halved.trial.c.significand.ilog2()).collect();
    kept.sort_unstable();
    kept.dedup();
    let mut found: Option<(usize, Vec<Vec<usize>>)> = None;
    for bits in kept {
        let of_these = halved.iter().filter(|halved| halved.trial.c.significand.ilog2() == bits);
        let halves: Vec<Doubled> =
            of_these.map(|halved| Doubled { c: halved.trial.c, each: halved.half, half: None }).collect();
        let telling = told_doubled(evidence, pairs, &halves)?;
        let is_apart = |pair: Pair| telling.iter().any(|doubled| doubled.differs(evidence, pair));
        let groups = groups(k, is_apart);
        let astray = pairs.iter().filter(|pair| is_apart(**pair) == are_in_one(&groups, **pair)).count();
        let is_better = found.as_ref().is_none_or(|(least, _)| astray < *least);
        if (2..k).contains(&groups.len()) && ASTRAY * astray <= pairs.len() && is_better {
            found = Some((astray, groups));
        }
    }
    Ok(found.map(|(_, groups)| groups))
}

/// Orders that are tried at most.
const MOST_ORDERS: usize = 12;

/// The orders that products show beside a large c. Which are added to each other first shows in what is lost of each alone;
/// chains from c have those together which are rounded together, or can be exchanged, and in these the ones that are added
/// to each other first, or all, or none. And one order has what is added first added to c at once: the first where that goes across the levels of a
/// chain or there is none, otherwise before others that are less likely. None where nothing shows.
pub(super) fn orders(
    evidence: &mut Evidence,
    trials: &[Trial],
    halved: &[Halved],
) -> Result<Vec<Skeleton>, DeviceError> {
    let k = evidence.signature().k;
    let pairs: Vec<Pair> = (0..k).flat_map(|p| (p + 1..k).map(move |q| [p, q])).collect();
    let rounded = rounded_together(evidence, &pairs, halved)?;
    let all = [(0..k).collect()];
    let added_first = added_first(evidence, &pairs, trials, halved, rounded.as_deref().unwrap_or(&all))?;
    let rounded = rounded.map(|rounded| in_order(evidence, rounded, trials)).transpose()?.unwrap_or_default();
    let levels = levels(evidence, &pairs, trials)?;
    let mut orders: Vec<Skeleton> = Vec::new();
    for levels in [&rounded, &levels] {
        if levels.len() > 1 {
            let all = levels.iter().map(|level| vec![level.clone()]).collect();
            let none = levels.iter().map(|level| alone(level)).collect();
            // All in one group tell no more than the levels.
            let divided = Some(divided(levels, &added_first)).filter(|_| added_first.len() > 1);
            orders.extend(divided.into_iter().chain([all, none]).map(chained));
        }
    }
    // What is added first and cannot be exchanged shows that there is no chain.
    let is_in_one =
        |group: &Vec<usize>| levels.iter().any(|level| group.iter().all(|product| level.contains(product)));
    let is_chain = levels.len() > 1 && (added_first.len() == 1 || added_first.iter().all(is_in_one));
    if (2..k).contains(&added_first.len()) {
        let place = if is_chain { orders.len() } else { 0 };
        orders.insert(place, chained([added_first.clone()]));
    }
    orders.extend(if is_chain {
        with_one_level_apart(&levels)
    } else {
        with_one_met_first(&levels, &added_first)
    });
    Ok(skeleton::distinct(orders.into_iter(), MOST_ORDERS))
}

/// Chains in which one level differs from the others, the last first: all its products are added first, or none, where none or
/// all are of the others.
fn with_one_level_apart(levels: &[Vec<usize>]) -> Vec<Skeleton> {
    let several = (0..levels.len()).rev().filter(|&level| levels[level].len() > 1);
    let each = several.flat_map(|apart| [true, false].map(|is_first| (apart, is_first)));
    each.map(|(apart, is_first)| {
        let level = |(at, level): (usize, &Vec<usize>)| match (at == apart) == is_first {
            true => vec![level.clone()],
            false => alone(level),
        };
        chained(levels.iter().enumerate().map(level))
    })
    .collect()
}

/// Orders in which c meets the products of a level, or several that are added first, and then all others at once; the fewest
/// first.
fn with_one_met_first(levels: &[Vec<usize>], added_first: &[Vec<usize>]) -> Vec<Skeleton> {
    let of_levels = levels.iter().filter(|_| levels.len() > 1);
    let several = added_first.iter().filter(|group| added_first.len() > 1 && group.len() > 1);
    let mut met: Vec<&Vec<usize>> = of_levels.chain(several).collect();
    // A stable sort: those of a level first.
    met.sort_by_key(|products| products.len());
    let others = |met: &[usize]| {
        let others = added_first.iter().map(|group| without(group, met));
        others.filter(|group| !group.is_empty()).collect()
    };
    met.into_iter().map(|met| chained([alone(met), others(met)])).collect()
}

/// These products but for those.
fn without(products: &[usize], others: &[usize]) -> Vec<usize> {
    products.iter().copied().filter(|product| !others.contains(product)).collect()
}

/// Groups of products that can be exchanged beside c, in the order in which they come to it; one if all can be.
fn levels(evidence: &mut Evidence, pairs: &[Pair], trials: &[Trial]) -> Result<Vec<Vec<usize>>, DeviceError> {
    let next = trials.iter().cycle().skip(1);
    let alone = trials.iter().map(|trial| Beside { trial, others: None });
    let besides: Vec<Beside> = alone
        .chain(trials.iter().zip(next).map(|(trial, others)| Beside { trial, others: Some(others) }))
        .collect();
    let telling =
        told(evidence, pairs, &besides, |signature, pair, beside| beside.exchanged(signature, pair))?;
    let k = evidence.signature().k;
    let groups = groups(k, |pair| telling.iter().any(|beside| beside.differs(evidence, pair)));
    let mut trials: Vec<Trial> = Vec::new();
    for Beside { trial, .. } in telling {
        if !trials.contains(trial) {
            trials.push(*trial);
        }
    }
    if groups.len() < 2 { Ok(groups) } else { in_order(evidence, groups, &trials) }
}

/// Asks two questions about each of these pairs with those of these values that together tell most pairs apart, of some; these
/// values.
fn told<T: Copy>(
    evidence: &mut Evidence,
    pairs: &[Pair],
    values: &[T],
    questions: impl Fn(&Signature, Pair, &T) -> [Option<DotAdd>; 2],
) -> Result<Vec<T>, DeviceError> {
    let signature = *evidence.signature();
    let looked_at = thinned(&mixed(pairs), LOOKED_AT);
    ask(evidence, &looked_at, values, &questions)?;
    let tells = |value: &T| {
        let are_told = |&pair: &Pair| are_told_apart(evidence, questions(&signature, pair, value));
        looked_at.iter().map(are_told).collect()
    };
    let shown: Vec<(T, Vec<bool>)> = values.iter().map(|value| (*value, tells(value))).collect();
    let most = (QUESTIONS / (2 * pairs.len().max(1))).clamp(1, TELLING);
    let telling = most_telling(shown, most);
    ask(evidence, pairs, &telling, &questions)?;
    Ok(telling)
}

/// What is added first at each level: a group is where most of its products are, the first of those.
fn divided(levels: &[Vec<usize>], added_first: &[Vec<usize>]) -> Vec<Vec<Vec<usize>>> {
    let mut divided = vec![Vec::new(); levels.len()];
    for group in added_first {
        let at = |level: &Vec<usize>| group.iter().filter(|product| level.contains(product)).count();
        let most = levels.iter().map(at).max();
        let place = levels.iter().position(|level| Some(at(level)) == most).unwrap_or(0);
        divided[place].push(group.clone());
    }
    divided.retain(|groups| !groups.is_empty());
    divided
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

/// Products in groups, each with those most of which it is not told apart from.
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

    fn shown(orders: Vec<Skeleton>) -> Vec<String> {
        orders.iter().map(Skeleton::to_string).collect()
    }

    #[test]
    fn each_level_of_several_products_is_added_first_alone_and_not_alone() {
        let orders = with_one_level_apart(&[vec![0, 2], vec![1], vec![3, 4], vec![5, 6]]);
        let each = [
            "((((c p0 p2) p1) p3 p4) (p5 p6))",
            "((((c (p0 p2)) p1) (p3 p4)) p5 p6)",
            "((((c p0 p2) p1) (p3 p4)) p5 p6)",
            "((((c (p0 p2)) p1) p3 p4) (p5 p6))",
            "((((c (p0 p2)) p1) p3 p4) p5 p6)",
            "((((c p0 p2) p1) (p3 p4)) (p5 p6))",
        ];
        assert_eq!(shown(orders), each);
    }

    #[test]
    fn c_meets_a_level_or_a_group_before_all_others() {
        let orders = with_one_met_first(&[vec![0, 2, 3], vec![1]], &[vec![0, 1], vec![2], vec![3]]);
        assert_eq!(shown(orders), ["((c p1) p0 p2 p3)", "((c p0 p1) p2 p3)", "((c p0 p2 p3) p1)"]);
        assert!(with_one_met_first(&[vec![0, 1, 2]], &[vec![0, 1, 2]]).is_empty());
    }
}
