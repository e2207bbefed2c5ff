//! The order of summation from what overflows, in formats whose masks show none.
//!
//! [The overflow probe](mmaprobe_probes::overflowing) says of three summands which two meet before the third in
//! a sum that is rounded; from enough of such [triples] the tree follows.

use mmaprobe_probes::{DotAdd, Probe, Summand, overflowing};

use super::evidence::Evidence;
use super::grouping::{as_skeleton, divided, triples_of};
use super::skeleton::Skeleton;
use super::triples::{self, Triple};
use crate::device::DeviceError;

/// The most triples that are asked: all where K is 32.
const MOST_TRIPLES: usize = 5500;

/// The order of summation that overflows show, if they show one.
///
/// # Errors
/// If the device fails.
pub fn order(evidence: &mut Evidence) -> Result<Option<Skeleton>, DeviceError> {
    let signature = *evidence.signature();
    let summands: Vec<Summand> = signature.summands().collect();
    let triples = triples_of(summands.len(), MOST_TRIPLES);
    let question = |(pair, last): ([usize; 2], usize)| {
        overflowing::question(&signature, pair.map(|index| summands[index]), summands[last])
    };
    let dot_adds: Vec<DotAdd> =
        triples.iter().flat_map(|&three| divided(three)).filter_map(question).collect();
    let Some(unharmed) = overflowing::unharmed(&signature).filter(|_| !dot_adds.is_empty()) else {
        return Ok(None);
    };
    evidence.ask_mostly_aside(vec![Probe {
        name: overflowing::NAME,
        question: overflowing::QUESTION,
        source: overflowing::SOURCE,
        dot_adds,
    }])?;
    let rooted = |&three: &[usize; 3]| -> Option<Triple> {
        let mut first = divided(three).into_iter().filter(|&division| {
            let answer = question(division).and_then(|question| evidence.answer(&question));
            answer.is_some_and(|answer| answer != unharmed)
        });
        first.next().filter(|_| first.next().is_none())
    };
    let rooted: Vec<Triple> = triples.iter().filter_map(rooted).collect();
    if rooted.is_empty() {
        return Ok(None);
    }
    let all: Vec<usize> = (0..summands.len()).collect();
    let tree = triples::tree(&all, &triples, &rooted);
    let leaves: Vec<Skeleton> = summands.into_iter().map(Skeleton::Leaf).collect();
    let order = as_skeleton(&tree, &leaves, &Skeleton::Sum);
    Ok((!order.is_flat()).then_some(order))
}
