//! How deep in a tree the sums are that an answer depends on.

use std::ops::RangeInclusive;

use mmaprobe_model::tree::{Model, Node, RuleId};
use mmaprobe_model::{Decoded, Format};
use mmaprobe_probes::{DotAdd, Signature, place};

use super::evidence::{Answered, Evidence};

/// What tells how deep in a tree the sums are that an answer depends on.
pub struct Depths<'m> {
    model: &'m Model,
    /// The exponents of powers of two that come through unchanged.
    unchanged: RangeInclusive<i32>,
    /// For each rule, the place of its sum in the order.
    places: Vec<usize>,
}

/// What comes out of a node, about: were its sums exact.
#[derive(Clone, Copy)]
struct Flow {
    /// Infinite or NaN for what is far from anything that is asked to learn a rule from.
    value: f64,
    /// Whether that is a power of two, which no sum changes that it passes alone.
    is_power: bool,
}

impl Flow {
    const ZERO: Flow = Flow { value: 0.0, is_power: false };
    const FAR: Flow = Flow { value: f64::INFINITY, is_power: false };

    /// A number of a format.
    fn of(format: &Format, bits: u64) -> Flow {
        match format.decode(bits) {
            Decoded::Finite { significand: 0, .. } => Flow::ZERO,
            Decoded::Finite { negative, significand, exponent } if exponent.abs() < FAR => {
                let magnitude = significand as f64 * power(exponent - format.fraction_bits as i32);
                let value = if negative { -magnitude } else { magnitude };
                Flow { value, is_power: significand.is_power_of_two() }
            }
            _ => Flow::FAR,
        }
    }

    fn times(self, other: Flow) -> Flow {
        Flow { value: self.value * other.value, is_power: self.is_power && other.is_power }
    }

    /// The exponent of a number that is not zero; `None` of what is far.
    fn exponent(self) -> Option<i32> {
        self.value.is_normal().then(|| (self.value.to_bits() >> 52 & 0x7ff) as i32 - 1023)
    }
}

/// Products of two numbers with smaller exponents than that, and two scales, are exact or nearly in f64.
const FAR: i32 = 300;

/// 2^`exponent`, of a normal f64.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

impl Depths<'_> {
    /// For a model whose rules belong to one sum each, which have this order; of powers of two, its sums hand
    /// those with these exponents on unchanged.
    pub fn new<'m>(model: &'m Model, order: &[RuleId], unchanged: RangeInclusive<i32>) -> Depths<'m> {
        let mut places = vec![0; order.len()];
        for (place, &rule) in order.iter().enumerate() {
            places[rule] = place;
        }
        Depths { model, unchanged, places }
    }

    /// The last place in the order whose sum an answer depends on: where values meet, or one passes that
    /// is no power of two. An answer of zero depends on all sums, each of which may decide its sign; and so does
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
                    let sum = Flow { value: values().map(|flow| flow.value).sum(), is_power: false };
                    let is_near = |flow: Flow| {
                        flow.value == 0.0
                            || flow.exponent().is_some_and(|exponent| self.unchanged.contains(&exponent))
                    };
                    if id + 1 < nodes.len() && !(values().all(is_near) && is_near(sum)) {
                        return usize::MAX;
                    }
                    match (values().next(), values().count()) {
                        (None, _) => Flow::ZERO,
                        (Some(alone), 1) if alone.is_power => alone,
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

/// The exponents of the powers of two that come out of all sums as they were, as far as products were [asked for
/// alone](mmaprobe_probes::sums::range): the nearest to 2^0 that does, and all around it up to the first that comes
/// out as something else, as where a sum between is rounded to a format with less range.
pub fn unchanged(evidence: &Evidence) -> RangeInclusive<i32> {
    let signature = evidence.signature();
    let zeros = place::zeros(signature);
    let is_normal = |format: &Format, bits: u64| matches!(format.decode(bits), Decoded::Finite { significand, .. } if significand >> format.fraction_bits != 0);
    let (mut same, mut other): (Vec<i32>, Vec<i32>) = (Vec::new(), Vec::new());
    for answered in evidence.answers.iter().filter(|answered| answered.summands == 1) {
        let DotAdd { a, b, sa, sb, .. } = &answered.question;
        // What is made of subnormal operands or of scales says nothing about sums.
        if (sa, sb) != (&zeros.sa, &zeros.sb) {
            continue;
        }
        let factors = || a.iter().zip(b).filter(|&(&a, &b)| (a, b) != (zeros.a[0], zeros.b[0]));
        let Some((&a, &b)) = factors().next() else { continue };
        if !is_normal(&signature.a, a) || !is_normal(&signature.b, b) {
            continue;
        }
        let alone = Flow::of(&signature.a, a).times(Flow::of(&signature.b, b));
        let Some(exponent) = alone.exponent().filter(|_| alone.is_power) else { continue };
        let is_same = Flow::of(&signature.d, answered.answer).value == alone.value;
        if is_same { &mut same } else { &mut other }.push(exponent);
    }
    let middle = same.into_iter().min_by_key(|exponent| (exponent.abs(), *exponent)).unwrap_or(0);
    let lowest = other.iter().filter(|&&exponent| exponent < middle).max().map_or(i32::MIN, |e| e + 1);
    let highest = other.iter().filter(|&&exponent| exponent > middle).min().map_or(i32::MAX, |e| e - 1);
    lowest..=highest
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
        let depths = Depths::new(&model, &order, -14..=15);
        let (p0, p1, p2) = (Summand::Product(0), Summand::Product(1), Summand::Product(2));
        let depth = |values: &[(Summand, Dyadic)], answer: u64| {
            let question = place::question(&signature, values).expect("fp32 holds these");
            depths.of(&signature, &Answered::new(&signature, 0, question, answer))
        };
        let one = u64::from(1.0f32.to_bits());
        let power = Dyadic::power;
        assert_eq!(depth(&[(Summand::C, power(3)), (p2, Dyadic::new(5, 0))], one), 0);
        assert_eq!(depth(&[(Summand::C, power(90)), (p0, power(3))], one), 0, "a power of two passes");
        assert_eq!(depth(&[(p0, Dyadic::new(3, 0)), (p2, power(0))], one), 1, "what is no power does not");
        assert_eq!(depth(&[(p0, power(0)), (p1, power(-9))], one), 1);
        assert_eq!(depth(&[(p2, power(20))], one), 0, "the root's range is d's");
        assert_eq!(depth(&[(p0, power(20)), (p2, power(20))], one), usize::MAX, "too large for the pair");
        let canceled = [(p0, power(-10)), (p1, Dyadic { negative: true, ..Dyadic::new(255, -18) })];
        assert_eq!(depth(&canceled, one), usize::MAX, "what the pair hands on is too small");
        assert_eq!(depth(&[(p2, power(0))], 0), usize::MAX, "any sum may decide the sign of zero");
    }
}
