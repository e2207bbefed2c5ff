//! How deep in a tree the sums are that an answer depends on.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use mmaprobe_model::tree::{Model, Node, NodeId, RuleId};
use mmaprobe_model::{Decoded, Format};
use mmaprobe_probes::{DotAdd, Signature, place};
use rustc_hash::FxBuildHasher;

use super::evidence::{Answered, Evidence};

/// What became of summands that were the only ones that are not zero.
#[derive(Clone, Debug)]
pub struct Unchanged {
    /// The exponents of what is neither too large nor too small for any sum that lets ordinary numbers out at all.
    pub exponents: RangeInclusive<i32>,
    /// The exponents, ordinary ones or not, of what comes out of all sums as about what it was; all, if there are none.
    pub near: RangeInclusive<i32>,
    /// What of each product, and of c at last, comes out of all sums that it is in as it was.
    each: Vec<Passing>,
    /// Of each of them, the numbers, and what they came out as.
    outcomes: Vec<HashMap<u64, u64, FxBuildHasher>>,
}

impl Unchanged {
    /// What comes out of the sums that only the first of two summands is in as it was, where the other is a summand of the
    /// next: what is made of the first then is what is made of the other.
    fn up_to(&self, first: usize, other: usize) -> Passing {
        let mut alone = Alone::default();
        for (value, outcome) in &self.outcomes[first] {
            if let Some(of_other) = self.outcomes[other].get(value) {
                alone.add(Flow::exactly(f64::from_bits(*value)), outcome == of_other);
            }
        }
        alone.passing(&self.exponents, NONE, 0)
    }
}

/// Numbers that come out of sums as they were: positive ones, and negative ones.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Passing([OfSign; 2]);

/// Numbers of a sign.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OfSign {
    /// The exponents of all their bits.
    exponents: RangeInclusive<i32>,
    /// Bits after the leading one, at most.
    fraction_bits: u32,
}

impl Passing {
    fn has(&self, flow: Flow) -> bool {
        self.0[usize::from(flow.value < 0.0)].has(flow)
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|of_sign| of_sign.exponents.is_empty())
    }
}

impl OfSign {
    fn has(&self, flow: Flow) -> bool {
        flow.fraction_bits <= self.fraction_bits
            && flow.exponent().is_some_and(|leading| {
                let last = leading - flow.fraction_bits as i32;
                self.exponents.contains(&leading)
                    && (flow.fraction_bits == 0 || self.exponents.contains(&last))
            })
    }
}

/// What tells how deep in a tree the sums are that an answer depends on.
pub struct Depths<'m> {
    model: &'m Model,
    unchanged: Unchanged,
    /// For each sum, by the number of its node, and each summand below it, what it hands on of that as it is, though
    /// another sum above may not; several, each of which is enough.
    handed_on: HashMap<(NodeId, usize), Vec<Passing>, FxBuildHasher>,
    /// For each rule, the place of its sum in the order.
    places: Vec<usize>,
}

/// What comes out of a node, about: were its sums exact.
#[derive(Clone, Copy)]
struct Flow {
    /// Infinite or NaN for what is far from anything that is asked to learn a rule from.
    value: f64,
    /// How far below its leading bit its last one is: 0 for powers of two. Many where that is not known.
    fraction_bits: u32,
    /// The summand that it is, by its place among the products, c at last; none of a sum of several.
    source: Option<usize>,
    /// Whether it is a zero with an exponent of its own, as products of zero and another number are: sums may align other
    /// summands to it.
    is_written: bool,
    /// Whether it is a sum that has cancelled, which may have an exponent of its own, too.
    has_cancelled: bool,
}

/// As many fraction bits as no sum keeps.
const MANY: u32 = u32::MAX;

impl Flow {
    const ZERO: Flow =
        Flow { value: 0.0, fraction_bits: MANY, source: None, is_written: false, has_cancelled: false };
    const FAR: Flow = Flow { value: f64::INFINITY, ..Flow::ZERO };

    /// A number that f64 holds exactly.
    fn exactly(value: f64) -> Flow {
        let fraction = value.to_bits() & ((1 << F64_FRACTION_BITS) - 1);
        let fraction_bits = if fraction == 0 { 0 } else { F64_FRACTION_BITS - fraction.trailing_zeros() };
        Flow { value, fraction_bits: if value.is_normal() { fraction_bits } else { MANY }, ..Flow::ZERO }
    }

    /// A number of a format.
    fn of(format: &Format, bits: u64) -> Flow {
        match format.decode(bits) {
            Decoded::Finite { significand: 0, .. } => Flow::ZERO,
            Decoded::Finite { negative, significand, exponent } if exponent.abs() < FAR => {
                let magnitude = significand as f64 * power(exponent - format.fraction_bits as i32);
                Flow::exactly(if negative { -magnitude } else { magnitude })
            }
            _ => Flow::FAR,
        }
    }

    fn times(self, other: Flow) -> Flow {
        let value = self.value * other.value;
        let bits = self.fraction_bits.saturating_add(other.fraction_bits);
        let is_written = value == 0.0 && (self.value, other.value) != (0.0, 0.0);
        let product =
            if bits < F64_FRACTION_BITS { Flow::exactly(value) } else { Flow { value, ..Flow::ZERO } };
        Flow { source: self.source, is_written, ..product }
    }

    /// The same, of a scale.
    fn scaled(self, scale: Flow) -> Flow {
        Flow { is_written: self.is_written, ..self.times(scale) }
    }

    /// The exponent of a number that is not zero; `None` of what is far.
    fn exponent(self) -> Option<i32> {
        self.value.is_normal().then(|| (self.value.to_bits() >> 52 & 0x7ff) as i32 - 1023)
    }
}

/// Bits of the fraction of an f64.
const F64_FRACTION_BITS: u32 = 52;

/// Products of two numbers with smaller exponents than that, and two scales, are exact or nearly in f64.
const FAR: i32 = 300;

/// 2^`exponent`, of a normal f64.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

impl Depths<'_> {
    /// For a model whose rules belong to one sum each, which have this order, and hand on such numbers unchanged.
    pub fn new<'m>(model: &'m Model, order: &[RuleId], unchanged: Unchanged) -> Depths<'m> {
        let mut places = vec![0; model.tree.rules.len()];
        for (place, &rule) in order.iter().enumerate() {
            places[rule] = place;
        }
        let handed_on = handed_on(model, &unchanged);
        Depths { model, unchanged, handed_on, places }
    }

    /// Whether a sum hands a number on as it is, were it the only summand.
    fn passes(&self, sum: NodeId, flow: Flow) -> bool {
        let Some(source) = flow.source else { return false };
        let handed_on = self.handed_on.get(&(sum, source)).into_iter().flatten();
        std::iter::once(&self.unchanged.each[source]).chain(handed_on).any(|passing| passing.has(flow))
    }

    /// The last place in the order whose sum an answer depends on: where values meet, or one passes that
    /// may be changed. An answer of zero depends on all sums, each of which may decide its sign; and so does
    /// any to which some value is too large or too small for another sum than the root, whichever it is.
    pub fn of(&self, signature: &Signature, answered: &Answered) -> usize {
        if matches!(signature.d.decode(answered.answer), Decoded::Finite { significand: 0, .. }) {
            return usize::MAX;
        }
        self.at(signature, &answered.question).0
    }

    /// The same of any answer to a question, were there no signs of zeros: sums whose summands are all +0 hand that on. An
    /// answer to a question in which something meets what has cancelled inside depends on all sums: the zero may have an
    /// exponent.
    pub fn but_for_signs(&self, signature: &Signature, question: &DotAdd) -> usize {
        match self.at(signature, question) {
            (at, false) => at,
            (_, true) => usize::MAX,
        }
    }

    /// The last place in the order whose sum an answer that is not zero depends on, and whether something meets what has
    /// cancelled.
    fn at(&self, signature: &Signature, question: &DotAdd) -> (usize, bool) {
        let DotAdd { a, b, c, sa, sb } = question;
        let nodes = &self.model.tree.nodes;
        let mut flows: Vec<Flow> = Vec::with_capacity(nodes.len());
        let mut deepest = 0;
        let mut meets_cancelled = false;
        for (id, node) in nodes.iter().enumerate() {
            let flow = match node {
                Node::Product(k) => {
                    let product = Flow::of(&signature.a, a[*k]).times(Flow::of(&signature.b, b[*k]));
                    Flow { source: Some(*k), ..product }
                }
                Node::Accumulator => Flow { source: Some(signature.k), ..Flow::of(&signature.c, *c) },
                Node::Zero => Flow::ZERO,
                Node::Scaled { child, block } => match &signature.scale {
                    Some(scale) => [sa, sb]
                        .into_iter()
                        .fold(flows[*child], |flow, bits| flow.scaled(Flow::of(&scale.format, bits[*block]))),
                    None => flows[*child],
                },
                Node::Sum { children, rule } => {
                    let values =
                        || children.iter().map(|&child| flows[child]).filter(|flow| flow.value != 0.0);
                    let is_written = children.iter().any(|&child| flows[child].is_written);
                    let value = values().map(|flow| flow.value).sum();
                    let meets = children.iter().any(|&child| flows[child].has_cancelled);
                    let has_cancelled = value == 0.0 && (meets || values().next().is_some());
                    meets_cancelled |= meets && values().next().is_some();
                    let sum = Flow { value, is_written, has_cancelled, ..Flow::ZERO };
                    let is_near = |flow: Flow| {
                        flow.value == 0.0
                            || flow
                                .exponent()
                                .is_some_and(|exponent| self.unchanged.exponents.contains(&exponent))
                    };
                    if id + 1 < nodes.len() && !(values().all(is_near) && is_near(sum)) {
                        return (usize::MAX, meets_cancelled);
                    }
                    match (values().next(), values().count()) {
                        (None, _) if !is_written => Flow { has_cancelled, ..Flow::ZERO },
                        (Some(alone), 1) if !is_written && self.passes(id, alone) => alone,
                        _ => {
                            deepest = deepest.max(self.places[*rule]);
                            sum
                        }
                    }
                }
            };
            flows.push(flow);
        }
        (deepest, meets_cancelled)
    }
}

/// For each sum and each summand below it, what it hands on as it is: that of which the sums above make the same as of
/// one of their own summands.
fn handed_on(model: &Model, unchanged: &Unchanged) -> HashMap<(NodeId, usize), Vec<Passing>, FxBuildHasher> {
    let nodes = &model.tree.nodes;
    let summand = |node: NodeId| match &nodes[node] {
        Node::Product(k) => Some(*k),
        Node::Accumulator => Some(model.k),
        _ => None,
    };
    let mut parents: Vec<Option<NodeId>> = vec![None; nodes.len()];
    for (id, node) in nodes.iter().enumerate() {
        node.children().iter().for_each(|&child| parents[child] = Some(id));
    }
    let mut handed_on: HashMap<(NodeId, usize), Vec<Passing>, FxBuildHasher> = HashMap::default();
    for leaf in 0..nodes.len() {
        let Some(source) = summand(leaf) else { continue };
        let path: Vec<NodeId> = std::iter::successors(parents[leaf], |&node| parents[node]).collect();
        // From the root down: what passes up to a sum passes all those before it.
        let mut known: Vec<Passing> = Vec::new();
        for pair in path.windows(2).rev() {
            let [sum, above] = [pair[0], pair[1]];
            for other in nodes[above].children().iter().filter_map(|&child| summand(child)) {
                let passing = unchanged.up_to(source, other);
                if !passing.is_empty() && !known.contains(&passing) {
                    known.push(passing);
                }
            }
            if !known.is_empty() {
                handed_on.insert((sum, source), known.clone());
            }
        }
    }
    handed_on
}

/// What became of products and of c where they were [asked for alone](mmaprobe_probes::sums::range).
pub fn unchanged(evidence: &Evidence) -> Unchanged {
    let signature = evidence.signature();
    let [mut all, mut near] = [0; 2].map(|_| Alone::default());
    let [mut each, mut near_of_each] = [0; 2].map(|_| vec![Alone::default(); signature.k + 1]);
    let mut outcomes = vec![HashMap::default(); signature.k + 1];
    for (value, outcome) in evidence.answers.iter().filter_map(|answered| alone(signature, answered)) {
        let source = value.source.expect("what is alone is a summand");
        let is_same = value.value == outcome;
        all.add(value, is_same);
        let is_near = Flow::exactly(outcome)
            .exponent()
            .zip(value.exponent())
            .is_some_and(|(x, y)| x.abs_diff(y) <= NEAR);
        let magnitude = Flow { value: value.value.abs(), ..value };
        near.add(magnitude, is_near);
        near_of_each[source].add(magnitude, is_near);
        each[source].add(value, is_same);
        outcomes[source].insert(value.value.to_bits(), outcome.to_bits());
    }
    let near = near.0[0].exponents().filter(|near| *near != NONE).unwrap_or(i32::MIN..=i32::MAX);
    let exponents = near_to_all(&near_of_each);
    // Where a summand that was asked for lets nothing out, those that were not may not, either.
    let is_closed = |own: &Alone| own.0.iter().any(|own| own.exponents() == Some(NONE));
    let unknown = if each.iter().any(is_closed) { NONE } else { exponents.clone() };
    let passing = |own: &Alone| own.passing(&exponents, unknown.clone(), all.fraction_bits());
    Unchanged { each: each.iter().map(passing).collect(), exponents, near, outcomes }
}

/// The exponents of what comes out of sums as about what it was, of any summand for which those end at 2^0 or above, as
/// long as any are left; all, where there is no such summand, as where sums have no room for a lone leading bit: what then
/// comes out only below a floor says nothing about what is too large.
fn near_to_all(near: &[Alone]) -> RangeInclusive<i32> {
    let of_each = near.iter().filter_map(|own| own.0[0].exponents());
    of_each.filter(|own| *own.end() >= 0).fold(i32::MIN..=i32::MAX, |all, own| {
        let both = within(&own, &all);
        if both.is_empty() { all } else { both }
    })
}

fn within(own: &RangeInclusive<i32>, all: &RangeInclusive<i32>) -> RangeInclusive<i32> {
    *own.start().max(all.start())..=*own.end().min(all.end())
}

/// What became of numbers that were the only ones that are not zero: of positive ones, and of negative ones.
#[derive(Clone, Debug, Default)]
struct Alone([AloneOfSign; 2]);

/// What became of numbers of a sign.
#[derive(Clone, Debug)]
struct AloneOfSign {
    /// Exponents of powers of two that came out as they were, and of those that did not.
    same: Vec<i32>,
    other: Vec<i32>,
    /// The most bits after a leading 1 that came out, and the fewest that did not.
    kept: u32,
    lost: u32,
}

impl Default for AloneOfSign {
    fn default() -> AloneOfSign {
        AloneOfSign { same: Vec::new(), other: Vec::new(), kept: 0, lost: MANY }
    }
}

impl Alone {
    fn add(&mut self, value: Flow, is_same: bool) {
        self.0[usize::from(value.value < 0.0)].add(value, is_same);
    }

    /// What passes, of such exponents; these where nothing is known, and so many bits after the first.
    fn passing(
        &self,
        exponents: &RangeInclusive<i32>,
        unknown: RangeInclusive<i32>,
        unknown_bits: u32,
    ) -> Passing {
        Passing(self.0.each_ref().map(|own| OfSign {
            exponents: own.exponents().map_or_else(|| unknown.clone(), |own| within(&own, exponents)),
            fraction_bits: if own.has_bits() { own.fraction_bits() } else { unknown_bits },
        }))
    }

    /// Bits after a leading one that nothing loses.
    fn fraction_bits(&self) -> u32 {
        self.0.iter().map(AloneOfSign::fraction_bits).min().unwrap_or(0)
    }
}

impl AloneOfSign {
    fn add(&mut self, value: Flow, is_same: bool) {
        match (value.exponent(), value.fraction_bits) {
            (Some(exponent), 0) => if is_same { &mut self.same } else { &mut self.other }.push(exponent),
            (Some(0), bits) if is_same => self.kept = self.kept.max(bits),
            (Some(0), bits) => self.lost = self.lost.min(bits),
            _ => {}
        }
    }

    /// Of powers of two, the nearest to 2^0 that comes out, and all around it up to the first that comes out as something
    /// else, as where a sum between is rounded to a format with less range. None do where none is known to, but of
    /// others; `None` where nothing is known.
    fn exponents(&self) -> Option<RangeInclusive<i32>> {
        // Of one summand, it may come out as it was, and of others not.
        let same = self.same.iter().filter(|exponent| !self.other.contains(exponent));
        let Some(&middle) = same.min_by_key(|exponent| (exponent.abs(), **exponent)) else {
            let is_any_other = !self.other.is_empty();
            return is_any_other.then_some(NONE);
        };
        let lowest = self.other.iter().filter(|&&exponent| exponent < middle).max();
        let highest = self.other.iter().filter(|&&exponent| exponent > middle).min();
        Some(lowest.map_or(i32::MIN, |e| e + 1)..=highest.map_or(i32::MAX, |e| e - 1))
    }

    /// Whether anything is known of numbers with more than one bit.
    fn has_bits(&self) -> bool {
        (self.kept, self.lost) != (0, MANY)
    }

    fn fraction_bits(&self) -> u32 {
        self.kept.min(self.lost - 1)
    }
}

/// What becomes another number whose exponent differs by so much at most is neither too large nor too small for any sum.
const NEAR: u32 = 1;

/// No exponent.
const NONE: RangeInclusive<i32> = RangeInclusive::new(1, 0);

/// The only summand that is not zero, if there is one, and the answer. What is made of subnormal operands says nothing
/// about sums.
fn alone(signature: &Signature, answered: &Answered) -> Option<(Flow, f64)> {
    let zeros = place::zeros(signature);
    let DotAdd { a, b, c, sa, sb } = &answered.question;
    if answered.summands != 1 {
        return None;
    }
    let normal = |format: &Format, bits: u64| {
        let decoded = format.decode(bits);
        let is_normal = matches!(decoded, Decoded::Finite { significand, .. } if significand >> format.fraction_bits != 0);
        is_normal.then(|| Flow::of(format, bits))
    };
    let mut factors = a.iter().zip(b).enumerate().filter(|&(_, (&a, &b))| (a, b) != (zeros.a[0], zeros.b[0]));
    let factor = factors.next();
    // Nor is a summand alone beside zeros with exponents of their own.
    if factors.next().is_some() || factor.is_some() && *c != zeros.c {
        return None;
    }
    let source = Some(factor.map_or(signature.k, |(k, _)| k));
    let value = match (factor, &signature.scale) {
        (Some((_, (&a, &b))), None) => normal(&signature.a, a)?.times(normal(&signature.b, b)?),
        (Some((k, (&a, &b))), Some(scale)) => [sa, sb]
            .into_iter()
            .try_fold(normal(&signature.a, a)?.times(normal(&signature.b, b)?), |value, bits| {
                Some(value.times(normal(&scale.format, bits[k / scale.block])?))
            })?,
        (None, _) => normal(&signature.c, *c)?,
    };
    Some((Flow { source, ..value }, Flow::of(&signature.d, answered.answer).value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::skeleton::Skeleton;
    use crate::inference::structure::{self, Structure};
    use mmaprobe_model::format::FP32;
    use mmaprobe_probes::{Dyadic, Summand};

    #[test]
    fn an_answer_reaches_as_deep_as_values_meet() {
        let signature = Signature { k: 3, a: FP32, b: FP32, c: FP32, d: FP32, scale: None };
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let pair = Skeleton::Sum(vec![leaf(0), leaf(1)]);
        let tree = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), pair, leaf(2)]);
        let mut model = structure::start(&signature, &tree, Structure::Plain);
        let mut sums = 0;
        for node in &mut model.tree.nodes {
            if let Node::Sum { rule, .. } = node {
                *rule = sums;
                sums += 1;
            }
        }
        model.tree.rules = vec![model.tree.rules[0].clone(); sums];
        // The root is the last sum.
        let order: Vec<RuleId> = (0..sums).rev().collect();
        let of_sign = OfSign { exponents: -14..=15, fraction_bits: 3 };
        let each = vec![Passing([of_sign.clone(), of_sign]); 4];
        let outcomes = vec![HashMap::default(); 4];
        let depths =
            Depths::new(&model, &order, Unchanged { exponents: -14..=15, near: -14..=15, each, outcomes });
        let (p0, p1, p2) = (Summand::Product(0), Summand::Product(1), Summand::Product(2));
        let depth = |values: &[(Summand, Dyadic)], answer: u64| {
            let question = place::question(&signature, values).expect("fp32 holds these");
            depths.of(&signature, &Answered::new(&signature, 0, question, answer))
        };
        let one = u64::from(1.0f32.to_bits());
        let power = Dyadic::power;
        assert_eq!(depth(&[(Summand::C, power(3)), (p2, Dyadic::new(5, 0))], one), 0);
        assert_eq!(depth(&[(Summand::C, power(90)), (p0, power(3))], one), 0, "a power of two passes");
        assert_eq!(depth(&[(p0, Dyadic::new(9, 0)), (p2, power(0))], one), 0, "and what has few bits");
        assert_eq!(depth(&[(p0, Dyadic::new(17, 0)), (p2, power(0))], one), 1, "what has more may not");
        let low = Dyadic::new(9, -15);
        assert_eq!(depth(&[(p0, low), (p2, power(0))], one), 1, "nor where the last bit is too small");
        assert_eq!(depth(&[(p0, power(0)), (p1, power(-9))], one), 1);
        assert_eq!(depth(&[(p2, power(20))], one), 0, "the root's range is d's");
        assert_eq!(depth(&[(p0, power(20)), (p2, power(20))], one), usize::MAX, "too large for the pair");
        let canceled = [(p0, power(-10)), (p1, Dyadic { negative: true, ..Dyadic::new(255, -18) })];
        assert_eq!(depth(&canceled, one), usize::MAX, "what the pair hands on is too small");
        assert_eq!(depth(&[(p2, power(0))], 0), usize::MAX, "any sum may decide the sign of zero");
        let mut question = place::question(&signature, &[(Summand::C, power(0))]).expect("fp32 holds it");
        question.a[0] = u64::from(8f32.to_bits());
        let beside = Answered::new(&signature, 0, question, one);
        assert_eq!(depths.of(&signature, &beside), 1, "the pair may hand on a zero with that exponent");
    }

    #[test]
    fn a_sum_hands_on_what_those_above_make_the_same_of() {
        let signature = Signature { k: 2, a: FP32, b: FP32, c: FP32, d: FP32, scale: None };
        let [c, p0, p1] = [Summand::C, Summand::Product(0), Summand::Product(1)];
        let pair = Skeleton::Sum(vec![Skeleton::Leaf(p0), Skeleton::Leaf(p1)]);
        let tree = Skeleton::Sum(vec![Skeleton::Leaf(c), pair]);
        let (model, order) =
            crate::inference::nodewise::individual(&structure::start(&signature, &tree, Structure::Plain));
        // The root makes −1 of 1, and the pair 2 of p1 = 1.
        let outcomes = |one: f64| HashMap::from_iter([(1f64.to_bits(), one.to_bits())]);
        let every = OfSign { exponents: -100..=100, fraction_bits: 23 };
        let none = OfSign { exponents: NONE, ..every.clone() };
        let unchanged = Unchanged {
            exponents: -100..=100,
            near: -100..=100,
            each: vec![Passing([none, every]); 3],
            outcomes: vec![outcomes(-1.0), outcomes(-2.0), outcomes(-1.0)],
        };
        let depths = Depths::new(&model, &order, unchanged);
        let depth = |product: Summand, negative: bool| {
            let value = Dyadic { negative, ..Dyadic::power(0) };
            let question = place::question(&signature, &[(product, value), (c, Dyadic::power(3))]);
            let answer = u64::from(7f32.to_bits());
            depths.of(&signature, &Answered::new(&signature, 0, question.expect("fp32 holds these"), answer))
        };
        assert_eq!(depth(p0, false), 0, "as 1 for c comes out");
        assert_eq!(depth(p1, false), 1, "not as 1 for c comes out");
        assert_eq!([p0, p1].map(|product| depth(product, true)), [0; 2], "as they were");
    }

    #[test]
    fn what_sums_without_room_for_a_leading_bit_make_of_lone_numbers_says_nothing_about_what_is_too_large() {
        let powers = |same: RangeInclusive<i32>| {
            let mut own = Alone::default();
            for exponent in -140..=20 {
                own.add(Flow::exactly(power(exponent)), same.contains(&exponent));
            }
            own
        };
        // Below a floor of -28.
        let [small, ordinary] = [powers(-139..=-29), powers(-24..=15)];
        assert_eq!(near_to_all(&[small.clone(), small.clone()]), i32::MIN..=i32::MAX);
        assert_eq!(near_to_all(&[ordinary.clone(), small]), -24..=15, "others say what is");
        assert_eq!(near_to_all(&[powers(-30..=4), ordinary.clone()]), -24..=4);
        assert_eq!(near_to_all(&[ordinary, powers(17..=20)]), -24..=15, "some are left");
    }
}
