//! How deep in a tree the sums are that an answer depends on.

use std::ops::RangeInclusive;

use mmaprobe_model::tree::{Model, Node, RuleId};
use mmaprobe_model::{Decoded, Format};
use mmaprobe_probes::{DotAdd, Signature, place};

use super::evidence::{Answered, Evidence};

/// The numbers that come out of all sums as they were, where they are the only ones that are not zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchanged {
    /// The exponents of all their bits.
    pub exponents: RangeInclusive<i32>,
    /// Bits after the leading one, at most.
    pub fraction_bits: u32,
}

impl Unchanged {
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
}

/// As many fraction bits as no sum keeps.
const MANY: u32 = u32::MAX;

impl Flow {
    const ZERO: Flow = Flow { value: 0.0, fraction_bits: MANY };
    const FAR: Flow = Flow { value: f64::INFINITY, fraction_bits: MANY };

    /// A number that f64 holds exactly.
    fn exactly(value: f64) -> Flow {
        let fraction = value.to_bits() & ((1 << F64_FRACTION_BITS) - 1);
        let fraction_bits = if fraction == 0 { 0 } else { F64_FRACTION_BITS - fraction.trailing_zeros() };
        Flow { value, fraction_bits: if value.is_normal() { fraction_bits } else { MANY } }
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
        if bits < F64_FRACTION_BITS { Flow::exactly(value) } else { Flow { value, fraction_bits: MANY } }
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
        let mut places = vec![0; order.len()];
        for (place, &rule) in order.iter().enumerate() {
            places[rule] = place;
        }
        Depths { model, unchanged, places }
    }

    /// The last place in the order whose sum an answer depends on: where values meet, or one passes that
    /// may be changed. An answer of zero depends on all sums, each of which may decide its sign; and so does
    /// any to which some value is too large or too small for another sum than the root, whichever it is.
    pub fn of(&self, signature: &Signature, answered: &Answered) -> usize {
        if matches!(signature.d.decode(answered.answer), Decoded::Finite { significand: 0, .. }) {
            return usize::MAX;
        }
        let DotAdd { a, b, c, sa, sb } = &answered.question;
        let nodes = &self.model.tree.nodes;
        let mut flows: Vec<Flow> = Vec::with_capacity(nodes.len());
        let mut deepest = 0;
        for (id, node) in nodes.iter().enumerate() {
            let flow = match node {
                Node::Product(k) => Flow::of(&signature.a, a[*k]).times(Flow::of(&signature.b, b[*k])),
                Node::Accumulator => Flow::of(&signature.c, *c),
                Node::Zero => Flow::ZERO,
                Node::Scaled { child, block } => match &signature.scale {
                    Some(scale) => [sa, sb]
                        .into_iter()
                        .fold(flows[*child], |flow, bits| flow.times(Flow::of(&scale.format, bits[*block]))),
                    None => flows[*child],
                },
                Node::Sum { children, rule } => {
                    let values =
                        || children.iter().map(|&child| flows[child]).filter(|flow| flow.value != 0.0);
                    let sum = Flow { value: values().map(|flow| flow.value).sum(), fraction_bits: MANY };
                    let is_near = |flow: Flow| {
                        flow.value == 0.0
                            || flow
                                .exponent()
                                .is_some_and(|exponent| self.unchanged.exponents.contains(&exponent))
                    };
                    if id + 1 < nodes.len() && !(values().all(is_near) && is_near(sum)) {
                        return usize::MAX;
                    }
                    match (values().next(), values().count()) {
                        (None, _) => Flow::ZERO,
                        (Some(alone), 1) if alone.fraction_bits == 0 || self.unchanged.has(alone) => alone,
                        _ => {
                            deepest = deepest.max(self.places[*rule]);
                            sum
                        }
                    }
                }
            };
            flows.push(flow);
        }
        deepest
    }
}

/// What comes out of all sums as it was, as far as products and c were [asked for alone](mmaprobe_probes::sums::range).
/// Of powers of two, the nearest to 2^0 that does, and all around it up to the first that comes out as something else, as
/// where a sum between is rounded to a format with less range. And as many bits after a leading 1 as none loses.
pub fn unchanged(evidence: &Evidence) -> Unchanged {
    let (mut same, mut other): (Vec<i32>, Vec<i32>) = (Vec::new(), Vec::new());
    let (mut kept, mut lost) = (0, MANY);
    for (value, is_same) in
        evidence.answers.iter().filter_map(|answered| alone(evidence.signature(), answered))
    {
        match (value.exponent(), value.fraction_bits) {
            (Some(exponent), 0) => if is_same { &mut same } else { &mut other }.push(exponent),
            (Some(0), bits) if is_same => kept = kept.max(bits),
            (Some(0), bits) => lost = lost.min(bits),
            _ => {}
        }
    }
    let middle = same.into_iter().min_by_key(|exponent| (exponent.abs(), *exponent)).unwrap_or(0);
    let lowest = other.iter().filter(|&&exponent| exponent < middle).max().map_or(i32::MIN, |e| e + 1);
    let highest = other.iter().filter(|&&exponent| exponent > middle).min().map_or(i32::MAX, |e| e - 1);
    Unchanged { exponents: lowest..=highest, fraction_bits: kept.min(lost - 1) }
}

/// The only summand that is not zero, if there is one, and whether that is the answer. What is made of subnormal operands
/// says nothing about sums.
fn alone(signature: &Signature, answered: &Answered) -> Option<(Flow, bool)> {
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
    let value = match (factors.next(), &signature.scale) {
        (Some((_, (&a, &b))), None) => normal(&signature.a, a)?.times(normal(&signature.b, b)?),
        (Some((k, (&a, &b))), Some(scale)) => [sa, sb]
            .into_iter()
            .try_fold(normal(&signature.a, a)?.times(normal(&signature.b, b)?), |value, bits| {
                Some(value.times(normal(&scale.format, bits[k / scale.block])?))
            })?,
        (None, _) => normal(&signature.c, *c)?,
    };
    Some((value, Flow::of(&signature.d, answered.answer).value == value.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::order::Skeleton;
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
        let depths = Depths::new(&model, &order, Unchanged { exponents: -14..=15, fraction_bits: 3 });
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
    }
}
