//! The order of summation from which summands [can be exchanged](mmaprobe_probes::exchanging).
//!
//! Of three summands, the two that can be exchanged whatever their values meet before the third; from enough of such
//! [triples] a tree follows, whatever its sums keep and however they round. Then each of its sums is asked about with more
//! values. Where factors have little range, hardly any values of three products tell anything; then
//! a large c shows more.

mod beside_c;

use std::collections::HashSet;

use mmaprobe_probes::exchanging::{self, Questions, Trial, Values};
use mmaprobe_probes::handing;
use mmaprobe_probes::{DotAdd, Probe, Summand};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::depth;
use super::evidence::Evidence;
use super::fit::thinned;
use super::grouping::{as_skeleton, divided, triples_of};
use super::skeleton::Skeleton;
use super::triples::{self, Triple};
use crate::device::DeviceError;

/// Values that some threes are tried with, and how many threes: with c, and without.
const TRIALS: usize = 128;
const LOOKED_AT: usize = 12;
/// The most threes; of those values, the ones that tell most, with which all of them are tried; and about the most questions
/// that all are asked, before those inside of parts.
const MOST_THREES: usize = 1000;
const TELLING: usize = 24;
const QUESTIONS: usize = 60_000;
/// Values that tell, if no more do, are tried like others of their kinds.
const FEW_TELL: usize = 8;
/// Threes that those are chosen of.
const MOST_SEEN: usize = 20 * MOST_THREES;
/// Values with which each sum of a tree is asked about, beside those that tell most.
const CLOSELY: usize = 40;
/// Threes of summands that one sum is asked about with.
const OF_ONE_SUM: usize = 20;
/// Times that the sums of a tree are asked about.
const ROUNDS: usize = 3;
/// Summands of a part of a tree in which all threes are asked about that have not been: so many at most.
const OF_A_PART: usize = 16;
/// Summands of a group at the end of a larger part, all of which are asked about: so many at most.
const OF_A_GROUP: usize = 6;
/// Votes of values that three summands hand on alike, where others have one.
const HANDED_ON: usize = 4;

/// Set the seeds of trials apart from others.
const EXCHANGED: u64 = 0x65_7863_6861_6e67;
const HALVED: u64 = 0x6861_6c76_6564;

/// The orders that exchanged summands show, if any.
///
/// # Errors
/// If the device fails.
pub fn orders(evidence: &mut Evidence, cuts: &[i32], seed: u64) -> Result<Vec<Skeleton>, DeviceError> {
    let signature = *evidence.signature();
    if signature.k < 2 {
        return Ok(Vec::new());
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ EXCHANGED);
    let within = depth::unchanged(evidence).near;
    let values = Values::new(&signature, &within, cuts);
    let trials = values.trials(TRIALS, &mut rng);
    let beside_c = handing::trials(&signature, TRIALS, cuts, &mut rng);
    // Drawn apart, so that what else is asked stays the same.
    let halved =
        handing::halved(&signature, TRIALS, cuts, &mut Xoshiro256PlusPlus::seed_from_u64(seed ^ HALVED));
    let mut threes = Threes::of(signature.summands().collect());
    let looked_at = threes.looked_at();
    let mut telling = threes.telling(evidence, &looked_at, &trials)?;
    let mut more = thinned(&trials, CLOSELY);
    if telling.len() < FEW_TELL {
        // Others of their kinds may tell more.
        let [others, closely] = [TRIALS, CLOSELY].map(|number| values.like(&telling, number, &mut rng));
        let trials = [telling, others].concat();
        more = closely;
        telling = threes.telling(evidence, &looked_at, &trials)?;
    }
    threes.ask(evidence, &telling)?;
    let mut orders: Vec<Skeleton> = Vec::new();
    for of_kind in kinds(&telling) {
        let Some(tree) = threes.completed(evidence, &of_kind)? else { continue };
        let is_of_kind = |trial: &&Trial| of_kind.iter().any(|known| known.cancels() == trial.cancels());
        let others = more.iter().filter(is_of_kind).filter(|trial| !of_kind.contains(trial));
        let closely: Vec<Trial> = of_kind.iter().chain(others).copied().collect();
        let tree = threes.refined(evidence, tree, &closely)?;
        if !orders.contains(&tree) {
            orders.push(tree);
        }
    }
    if orders.is_empty() || threes.is_hardly_told_with_c(evidence, &telling) {
        orders.extend(beside_c::orders(evidence, &beside_c, &halved)?);
    }
    orders.retain(|order| !order.is_flat());
    Ok(orders)
}

/// All trials, those in which two values cancel, and the others: where something is made of a value on its way to the sum
/// that it meets others in, one kind is led astray more often than the other.
fn kinds(trials: &[Trial]) -> [Vec<Trial>; 3] {
    let (cancelling, others) = trials.iter().partition(|trial| trial.cancels());
    [trials.to_vec(), cancelling, others]
}

/// So many of these values, at most, with what each of them tells: each tells something of which those before it tell little.
fn most_telling<T>(mut shown: Vec<(T, Vec<bool>)>, most: usize) -> Vec<T> {
    let mut told = vec![0usize; shown.first().map_or(0, |(_, tells)| tells.len())];
    let mut telling = Vec::new();
    while telling.len() < most {
        let gain = |tells: &[bool]| -> usize {
            tells.iter().zip(&told).filter(|(tells, _)| **tells).map(|(_, told)| 60 / (1 + told)).sum()
        };
        let best = (0..shown.len()).max_by_key(|&index| (gain(&shown[index].1), std::cmp::Reverse(index)));
        let Some(best) = best.filter(|&index| gain(&shown[index].1) > 0) else { break };
        let (value, tells) = shown.remove(best);
        told.iter_mut().zip(tells).for_each(|(told, tells)| *told += usize::from(tells));
        telling.push(value);
    }
    telling
}

/// Of a part of a tree, the summands of groups that are added in its last two sums, and one that stands for each larger part:
/// a chain hands what comes before these on alike.
fn near_the_end(part: &Skeleton) -> Vec<Summand> {
    fn below(part: &Skeleton, sums: usize, near: &mut Vec<Summand>) {
        let summands = part.summands();
        match part {
            _ if summands.len() <= OF_A_GROUP => near.extend(summands),
            Skeleton::Sum(children) if sums > 0 => {
                children.iter().for_each(|child| below(child, sums - 1, near));
            }
            _ => near.push(part.nearest()),
        }
    }
    let mut near = Vec::new();
    below(part, 2, &mut near);
    near
}

fn probe(dot_adds: Vec<DotAdd>) -> Probe {
    Probe { name: exchanging::NAME, question: exchanging::QUESTION, source: exchanging::SOURCE, dot_adds }
}

/// Threes of summands.
struct Threes {
    summands: Vec<Summand>,
    /// Of their indices.
    threes: Vec<[usize; 3]>,
}

impl Threes {
    fn of(summands: Vec<Summand>) -> Threes {
        Threes { threes: triples_of(summands.len(), MOST_SEEN), summands }
    }

    /// Some of them.
    fn looked_at(&self) -> Vec<[usize; 3]> {
        let (with_c, without): (Vec<[usize; 3]>, Vec<[usize; 3]>) =
            self.threes.iter().partition(|three| self.has_c(**three));
        [with_c, without].map(|threes| thinned(&threes, LOOKED_AT)).concat()
    }

    /// Tries some of them with all values: those that tell most.
    fn telling(
        &self,
        evidence: &mut Evidence,
        looked_at: &[[usize; 3]],
        trials: &[Trial],
    ) -> Result<Vec<Trial>, DeviceError> {
        evidence.ask_aside(vec![self.probe(evidence, looked_at, trials)])?;
        let most = (QUESTIONS / (6 * self.threes.len().min(MOST_THREES))).min(TELLING);
        let [_, cancelling, others] = kinds(trials);
        Ok([cancelling, others].map(|kind| self.most_telling(evidence, looked_at, &kind, most / 2)).concat())
    }

    /// Tries all with these values, or so many.
    fn ask(&mut self, evidence: &mut Evidence, telling: &[Trial]) -> Result<(), DeviceError> {
        self.threes.truncate(MOST_THREES);
        evidence.ask_aside(vec![self.probe(evidence, &self.threes, telling)])
    }

    fn has_c(&self, three: [usize; 3]) -> bool {
        three.iter().any(|&index| self.summands[index] == Summand::C)
    }

    /// These threes with these values, and each summand with each value alone.
    fn probe(&self, evidence: &Evidence, threes: &[[usize; 3]], trials: &[Trial]) -> Probe {
        let mut dot_adds = Vec::new();
        for &three in threes {
            for trial in trials {
                dot_adds.extend(self.questions(evidence, three, trial).into_iter().flatten());
                if trial.negative == 0 {
                    dot_adds.extend(self.alone(evidence, three, trial).into_iter().flatten().flatten());
                }
            }
        }
        probe(dot_adds)
    }

    fn questions(&self, evidence: &Evidence, three: [usize; 3], trial: &Trial) -> Questions {
        exchanging::questions(evidence.signature(), three.map(|index| self.summands[index]), trial)
    }

    /// Each of three with each of the values, and nothing else.
    fn alone(&self, evidence: &Evidence, three: [usize; 3], trial: &Trial) -> [[Option<DotAdd>; 3]; 3] {
        let signature = evidence.signature();
        [0, 1, 2]
            .map(|value| three.map(|index| exchanging::alone(signature, self.summands[index], trial, value)))
    }

    /// So many of these trials, at most: each says something of threes of which those before it say little.
    fn most_telling(
        &self,
        evidence: &Evidence,
        looked_at: &[[usize; 3]],
        trials: &[Trial],
        most: usize,
    ) -> Vec<Trial> {
        let says = |trial: &Trial| {
            looked_at.iter().map(|&three| self.first(evidence, three, trial).is_some()).collect()
        };
        most_telling(trials.iter().map(|trial| (*trial, says(trial))).collect(), most)
    }

    /// For each of three, whether the other two can be exchanged.
    fn exchangeable(&self, evidence: &Evidence, three: [usize; 3], trial: &Trial) -> [Option<bool>; 3] {
        let questions = self.questions(evidence, three, trial);
        let answers = questions.each_ref().map(|question| evidence.answer(question.as_ref()?));
        exchanging::exchangeable(&answers)
    }

    /// Whether three hand on the same of each value that is alone.
    fn is_handed_on(&self, evidence: &Evidence, three: [usize; 3], trial: &Trial) -> bool {
        let is_same = |questions: &[Option<DotAdd>; 3]| {
            let answers = questions.each_ref().map(|question| evidence.answer(question.as_ref()?));
            let mut known = answers.iter().flatten();
            known.next().is_none_or(|first| known.all(|other| other == first))
        };
        // Beside zeros of either sign, a zero comes out as they say.
        trial.negative != 0 || self.alone(evidence, three, trial).iter().all(is_same)
    }

    /// Which two of three meet first: the number of the one that is left, if these values show one.
    fn first(&self, evidence: &Evidence, three: [usize; 3], trial: &Trial) -> Option<usize> {
        let ways = self.exchangeable(evidence, three, trial);
        let mut alike = (0..3).filter(|&way| ways[way] == Some(true));
        let first = alike.next()?;
        (alike.next().is_none() && ways.contains(&Some(false))).then_some(first)
    }

    /// Which two of three meet first, if any, by the votes of these trials; `None` where nothing could be compared.
    fn vote(&self, evidence: &Evidence, three: [usize; 3], trials: &[Trial]) -> Option<Option<Triple>> {
        let mut votes = [0usize; 3];
        let mut is_told = false;
        for trial in trials {
            is_told |= self.exchangeable(evidence, three, trial).iter().flatten().count() > 1;
            if let Some(first) = self.first(evidence, three, trial) {
                votes[first] += if self.is_handed_on(evidence, three, trial) { HANDED_ON } else { 1 };
            }
        }
        let most = (0..3).max_by_key(|&way| votes[way])?;
        let is_first = 2 * votes[most] > votes.iter().sum();
        is_told.then(|| is_first.then(|| divided(three)[most]))
    }

    /// The tree that these trials show, if they show any.
    fn tree(&self, evidence: &Evidence, trials: &[Trial]) -> Option<Skeleton> {
        let mut asked = Vec::new();
        let mut rooted: Vec<Triple> = Vec::new();
        for &three in &self.threes {
            let Some(first) = self.vote(evidence, three, trials) else { continue };
            asked.push(three);
            rooted.extend(first);
        }
        if rooted.is_empty() {
            return None;
        }
        let all: Vec<usize> = (0..self.summands.len()).collect();
        let leaves: Vec<Skeleton> = self.summands.iter().copied().map(Skeleton::Leaf).collect();
        Some(as_skeleton(&triples::tree(&all, &asked, &rooted), &leaves, &Skeleton::Sum))
    }

    /// The tree that these trials show, if they show any. Where there are so many threes that not all have been asked
    /// about, those inside of its parts are, which say most about these.
    fn completed(
        &mut self,
        evidence: &mut Evidence,
        trials: &[Trial],
    ) -> Result<Option<Skeleton>, DeviceError> {
        let mut tree = self.tree(evidence, trials);
        if !self.are_some_of_all() {
            return Ok(tree);
        }
        // Those asked about for trials of another kind have not been with these.
        let mut asked: HashSet<[usize; 3]> = HashSet::new();
        for _ in 0..ROUNDS {
            let mut more = Vec::new();
            tree.iter().for_each(|tree| self.inside_of_parts(tree, &mut more));
            more.retain(|three| asked.insert(*three));
            if more.is_empty() {
                break;
            }
            evidence.ask_aside(vec![self.probe(evidence, &more, trials)])?;
            let known: HashSet<[usize; 3]> = self.threes.iter().copied().collect();
            self.threes.extend(more.into_iter().filter(|three| !known.contains(three)));
            tree = self.tree(evidence, trials);
        }
        Ok(tree)
    }

    /// Whether there are more threes than all can be asked about.
    fn are_some_of_all(&self) -> bool {
        let count = self.summands.len();
        count * count.saturating_sub(1) * count.saturating_sub(2) / 6 > MOST_THREES
    }

    /// All threes inside of each part of a tree that has no more summands than are asked about; of larger parts, all threes
    /// of [what is near its end](near_the_end), if that is not too much, and so on inside.
    fn inside_of_parts(&self, tree: &Skeleton, threes: &mut Vec<[usize; 3]>) {
        let Skeleton::Sum(children) = tree else { return };
        let all = tree.summands();
        let is_small = all.len() <= OF_A_PART;
        let near = if is_small { all } else { near_the_end(tree) };
        if near.len() <= OF_A_PART {
            let mut numbers: Vec<usize> = near.into_iter().map(|summand| self.number(summand)).collect();
            numbers.sort_unstable();
            let inside = triples_of(numbers.len(), usize::MAX).into_iter();
            threes.extend(inside.map(|three| three.map(|at| numbers[at])));
        }
        if !is_small {
            children.iter().for_each(|child| self.inside_of_parts(child, threes));
        }
    }

    /// Whether the formats hold next to no values that c could exchange with products.
    fn is_hardly_told_with_c(&self, evidence: &Evidence, telling: &[Trial]) -> bool {
        let with_c: Vec<[usize; 3]> =
            self.threes.iter().copied().filter(|&three| self.has_c(three)).collect();
        let is_told =
            |&&three: &&[usize; 3]| telling.iter().any(|trial| self.first(evidence, three, trial).is_some());
        2 * with_c.iter().filter(is_told).count() < with_c.len()
    }

    /// The tree with the orders inside of its sums that more values show.
    fn refined(
        &self,
        evidence: &mut Evidence,
        tree: Skeleton,
        trials: &[Trial],
    ) -> Result<Skeleton, DeviceError> {
        let mut tree = tree;
        for _ in 0..ROUNDS {
            let mut threes = Vec::new();
            self.looked_into(&tree, &mut threes);
            evidence.ask_aside(vec![self.probe(evidence, &threes, trials)])?;
            let refined = self.rebuilt(evidence, &tree, trials);
            if refined == tree {
                break;
            }
            tree = refined;
        }
        Ok(tree)
    }

    /// The number of a summand that stands for a sum.
    fn nearest(&self, skeleton: &Skeleton) -> usize {
        self.number(skeleton.nearest())
    }

    /// The number of a summand.
    fn number(&self, summand: Summand) -> usize {
        self.summands.iter().position(|other| *other == summand).expect("all summands have a number")
    }

    /// The threes of so many children of a sum that are asked about: where there are so many of all summands that not all
    /// have been, also those with the first child. How each two of the others meet it shows every sum that it is in.
    fn of_one_sum(&self, children: usize) -> Vec<[usize; 3]> {
        let mut threes = triples_of(children, OF_ONE_SUM);
        if self.are_some_of_all() {
            let first = (1..children.min(OF_A_PART)).flat_map(|x| (1..x).map(move |y| [0, y, x]));
            threes.extend(first.filter(|three| !threes.contains(three)).collect::<Vec<_>>());
        }
        threes
    }

    /// The threes to ask about the sums of a tree.
    fn looked_into(&self, tree: &Skeleton, threes: &mut Vec<[usize; 3]>) {
        let Skeleton::Sum(children) = tree else { return };
        let number = |index: usize| self.nearest(&children[index]);
        threes.extend(self.of_one_sum(children.len()).into_iter().map(|three| three.map(number)));
        children.iter().for_each(|child| self.looked_into(child, threes));
    }

    /// A tree with the orders inside of its sums that these trials show.
    fn rebuilt(&self, evidence: &Evidence, tree: &Skeleton, trials: &[Trial]) -> Skeleton {
        let Skeleton::Sum(children) = tree else { return tree.clone() };
        // Those that have been asked about.
        let numbers: Vec<usize> = children.iter().map(|child| self.nearest(child)).collect();
        let children: Vec<Skeleton> =
            children.iter().map(|child| self.rebuilt(evidence, child, trials)).collect();
        if children.len() < 3 {
            return Skeleton::Sum(children);
        }
        let mut asked = Vec::new();
        let mut rooted: Vec<Triple> = Vec::new();
        let place = |number: usize| numbers.iter().position(|other| *other == number);
        for three in self.of_one_sum(children.len()) {
            let Some(first) = self.vote(evidence, three.map(|index| numbers[index]), trials) else {
                continue;
            };
            asked.push(three);
            let placed = first.and_then(|([x, y], z)| Some(([place(x)?, place(y)?], place(z)?)));
            rooted.extend(placed);
        }
        let all: Vec<usize> = (0..children.len()).collect();
        as_skeleton(&triples::tree(&all, &asked, &rooted), &children, &Skeleton::Sum)
    }
}

#[cfg(test)]
mod tests {
    use mmaprobe_machines::{Unit, generate};

    use super::*;
    use crate::device::machine::MachineDevice;
    use crate::inference::asking;

    /// The orders that exchanged summands of a random machine show.
    fn shown(seed: u64, index: u64) -> Vec<String> {
        let device = MachineDevice::new("a machine", Unit::sound(generate::machine(seed, index)));
        let (_, outline) = asking::of_sound(&device, 1);
        outline.exchanged.iter().map(Skeleton::to_string).collect()
    }

    /// Sums that are exact and not normalised: where their order shows, it does in signs of zeros.
    #[test]
    fn orders_are_found_that_masks_do_not_show() {
        let pairwise = "((((c p0) (p1 p2)) ((p3 p4) (p5 p6))) ((p7 p8) (p9 p10)))";
        assert_eq!(shown(421, 78)[0], pairwise);
    }

    /// Products of four magnitudes, added to each other exactly before c: beside a large c, what is lost of one alone is not
    /// lost of both.
    #[test]
    fn groups_are_found_of_products_that_are_added_exactly() {
        let groups = "(c (p3 p6 p8 p12 p17 p18 p21 p22 p23 p24 p26 p27 p29 p30) (p5 p13) (p7 p16) (p9 p10) \
                      p0 p1 p2 p4 p11 p14 p15 p19 p20 p25 p28 p31)";
        let orders = shown(501, 90);
        assert_eq!(orders[0], groups);
        // The one that c meets before all others can be exchanged with none of them.
        let first = groups.replace("(c ", "((c p25) ").replace(" p25 p28", " p28");
        assert!(orders.contains(&first), "{orders:?}");
    }

    /// Of three levels, only the last is added before it comes to c.
    #[test]
    fn levels_differ_in_what_is_added_first() {
        let order = "(((c p0 p5 p6 p9) p2 p3 p4 p7 p10 p13 p15 p17 p18 p22 p23 p26 p28) \
                     (p1 p8 p11 p12 p14 p16 p19 p20 p21 p24 p25 p27))";
        let orders = shown(501, 91);
        assert!(orders.iter().any(|shown| shown == order), "{orders:?}");
    }

    /// The last of four sums keeps three bits more than d, to which it is rounded to nearest: beside c alone, products that
    /// differ in those bits show nothing.
    #[test]
    fn groups_are_found_where_sums_keep_more_than_d() {
        let order = "((c p0 p1 p2 p3 p4 p5 p8 p9 p10 p11 p12 p13) p6 p7 p14 p15)";
        let orders = shown(461, 9);
        assert!(orders.iter().any(|shown| shown == order), "{orders:?}");
    }

    /// Five sums after c's first, each with its own ways to align its first, its second and its other summands, so that hardly
    /// any two can be exchanged. Halves of the last bit that is kept of c make a whole one in each.
    #[test]
    fn products_are_rounded_together_that_cannot_be_exchanged() {
        let order = "((((((c p14) (p1 p26) (p4 p30) (p7 p31) (p12 p20) p9 p10 p13 p23 p28 p29) \
                     (p18 p21) p0 p6 p8 p11 p17) (p2 p22) (p25 p27) p3 p5 p16 p24) p15) p19)";
        let orders = shown(461, 32);
        assert!(orders.iter().any(|shown| shown == order), "{orders:?}");
    }

    /// Of so many summands, not all threes are asked about; those of neighbouring groups in the middle of the chain tell these
    /// apart.
    #[test]
    fn groups_in_the_middle_of_a_chain_are_found() {
        let order = "((((((((c (p1 p10 p19 p28)) (p4 p12 p25 p27)) (p7 p24 p26 p29)) (p9 p15 p17 p20)) \
                     (p6 p11 p18 p21)) (p2 p5 p8 p23)) (p0 p14 p16 p31)) (p3 p13 p22 p30))";
        assert_eq!(shown(704, 144)[0], order);
        let threes = "(((((((((((c p14 p23 p31) p25 p27 p29) p3 p6 p19) p4 p13 p28) p0 p1 p21) p12 p18 p26) \
                      p2 p10 p15) p5 p8 p30) p7 p17 p20) p9 p11 p22) p16 p24)";
        assert_eq!(shown(531, 65)[0], threes);
    }

    #[test]
    fn a_sum_of_all_summands_shows_no_order() {
        assert_eq!(shown(421, 18), Vec::<String>::new());
    }
}
