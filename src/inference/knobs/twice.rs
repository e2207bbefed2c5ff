//! The result is rounded by way of another number.

use mmaprobe_model::Rounding;
use mmaprobe_model::format::RoundTo;
use mmaprobe_model::tree::{Model, Node, NodeId, Normalised, Rule, RuleId, ZeroSigns};
use mmaprobe_probes::Signature;

use super::rule::intermediate;
use super::words::{overflow_words, overflows};
use super::{Knob, Turned};

/// The model with its result rounded once more, which changes nothing, and those in which the first of the two
/// roundings is another one; and the same with what all sums that follow the root's rule hand on rounded so, where others
/// do. Nothing where the result is rounded twice already.
pub fn turn_twice(model: &Model, signature: &Signature) -> Vec<(Model, Vec<Turned>)> {
    let doubled = [doubled(model), everywhere_doubled(model)].into_iter().flatten();
    doubled
        .filter_map(|(doubled, first)| {
            let turned = turned(&doubled, first, signature)?;
            Some((doubled, turned))
        })
        .collect()
}

/// Models in which the result is first rounded as now, but in a format with more range, and then to all bits of d: of
/// ordinary results, only those that overflow in the second tell the two from one. Nothing where the result is rounded twice
/// already.
pub fn turn_range_twice(model: &Model, signature: &Signature) -> Vec<Turned> {
    let Some((doubled, first)) = doubled(model) else { return Vec::new() };
    let (Some(Node::Sum { rule: last, .. }), Normalised::To(before)) =
        (doubled.tree.nodes.last(), doubled.tree.rules[first].normalised)
    else {
        return Vec::new();
    };
    let wider = intermediate(signature).into_iter().filter(|format| {
        format.max_exponent() > signature.d.max_exponent() && format.fraction_bits >= before.fraction_bits
    });
    wider
        .flat_map(|format| overflows(&before).into_iter().map(move |overflow| (format, overflow)))
        .map(|(format, overflow)| {
            let mut model = doubled.clone();
            model.tree.rules[first].normalised = Normalised::To(RoundTo { format, ..before });
            let second = RoundTo { fraction_bits: signature.d.fraction_bits, overflow, ..before };
            model.tree.rules[*last].normalised = Normalised::To(second);
            let knob = Knob { what: "range of the rounding before the last".to_string(), rule: Some(first) };
            let choice = format!("that of {format}, then overflow {}", overflow_words(overflow));
            Turned { knob, choice, model }
        })
        .collect()
}

/// The model with its result rounded once more, and the rule of the first rounding.
fn doubled(model: &Model) -> Option<(Model, RuleId)> {
    let mut doubled = model.clone();
    round_twice(&mut doubled, true);
    if doubled == *model {
        return None;
    }
    // The first rounding gets a rule of its own.
    let root = model.tree.nodes.len() - 1;
    let Node::Sum { rule, .. } = &mut doubled.tree.nodes[root] else { return None };
    let (own, first) = (*rule, doubled.tree.rules.len());
    *rule = first;
    doubled.tree.rules.push(doubled.tree.rules[own].clone());
    Some((doubled, first))
}

/// The model with what each sum that follows the root's rule hands on rounded once more, if there is any but the root, and the
/// rule of the first rounding.
fn everywhere_doubled(model: &Model) -> Option<(Model, RuleId)> {
    let nodes = &model.tree.nodes;
    let Some(Node::Sum { rule: own, .. }) = nodes.last() else { return None };
    let is_own = |node: &&Node| matches!(node, Node::Sum { rule, .. } if rule == own);
    let Normalised::To(round) = model.tree.rules[*own].normalised else { return None };
    let is_twice = nodes.iter().filter(is_own).any(|node| node.children().len() == 1);
    if is_twice || nodes.iter().filter(is_own).count() < 2 {
        return None;
    }
    let mut doubled = model.clone();
    let again = doubled.tree.rules.len();
    let zero = ZeroSigns { negative_zeros_stay: true, ..model.tree.rules[*own].zero };
    doubled.tree.rules.push(Rule { normalised: Normalised::To(round), zero, ..Rule::ieee(model.d) });
    let mut places: Vec<NodeId> = Vec::with_capacity(nodes.len());
    let mut into: Vec<Node> = Vec::with_capacity(2 * nodes.len());
    for node in nodes.iter() {
        into.push(match node {
            Node::Sum { children, rule } => {
                Node::Sum { children: children.iter().map(|&child| places[child]).collect(), rule: *rule }
            }
            Node::Scaled { child, block } => Node::Scaled { child: places[*child], block: *block },
            leaf => leaf.clone(),
        });
        if is_own(&node) {
            into.push(Node::Sum { children: vec![into.len() - 1], rule: again });
        }
        places.push(into.len() - 1);
    }
    doubled.tree.nodes = into.into();
    Some((doubled, *own))
}

/// The models in which the first of two roundings, by this rule, is another one.
fn turned(doubled: &Model, first: RuleId, signature: &Signature) -> Option<Vec<Turned>> {
    let Normalised::To(before) = doubled.tree.rules[first].normalised else { return None };
    let mut turned = Vec::new();
    for format in intermediate(signature) {
        for fraction_bits in 0..=format.fraction_bits {
            for rounding in Rounding::EVERY {
                let round = RoundTo { format, fraction_bits, rounding, ..before };
                // What has less range than d shows its end in ordinary numbers.
                let has_less_range = format.max_exponent() < signature.d.max_exponent();
                for overflow in if has_less_range { overflows(&round) } else { vec![round.overflow] } {
                    let mut other = doubled.clone();
                    other.tree.rules[first].normalised = Normalised::To(RoundTo { overflow, ..round });
                    let knob = Knob { what: "rounding before the last".to_string(), rule: Some(first) };
                    let overflow = overflow_words(overflow);
                    let choice =
                        format!("{rounding} to {fraction_bits} bits of {format}, overflow {overflow}");
                    turned.push(Turned { knob, choice, model: other });
                }
            }
        }
    }
    Some(turned)
}

/// Rounds the result once more, by a rule of its own that first is as the root's, or no more.
pub(super) fn round_twice(model: &mut Model, twice: bool) {
    let Some(Node::Sum { children, rule }) = model.tree.nodes.last().cloned() else { return };
    let is_twice = children.len() == 1 && matches!(model.tree.nodes[children[0]], Node::Sum { .. });
    if twice && !is_twice {
        let Normalised::To(round) = model.tree.rules[rule].normalised else { return };
        let root = model.tree.nodes.len() - 1;
        let again = Rule { normalised: Normalised::To(round), ..Rule::ieee(model.d) };
        model.tree.rules.push(again);
        model.tree.nodes.push(Node::Sum { children: vec![root], rule: model.tree.rules.len() - 1 });
    } else if !twice && is_twice {
        let single = matches!(model.tree.nodes[children[0]], Node::Sum { rule, .. }
            if matches!(model.tree.rules[rule].normalised, Normalised::To(round) if round.format == model.d));
        if single {
            model.tree.nodes.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Executor;
    use mmaprobe_model::format::{FP16, FP32};
    use mmaprobe_probes::{DotAdd, sparse};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;
    use crate::inference::testing;

    /// Rounded to 9 bits of fp32 first, 65504 + 8 becomes 65536, and that, in fp16 with the largest number where it overflows,
    /// 65504. In one rounding to 9 bits it is infinite or 65472.
    #[test]
    fn what_overflows_only_in_the_second_rounding_is_among_the_turns() {
        let signature = Signature { d: FP16, c: FP16, ..testing::signature(1) };
        let mut single = Model::chain_of_fma(FP16, FP16, 1);
        single.tree.rules[0].normalised = Normalised::To(RoundTo {
            fraction_bits: 9,
            rounding: Rounding::NearestTiesToOdd,
            ..RoundTo::nearest_even(FP16)
        });
        let [one, eight, largest] = [0x3c00, 0x4800, 0x7bff];
        let answer = |model: &Model| {
            Executor::new(model).expect("a model").dot_add(&[eight], &[one], largest, &[], &[])
        };
        assert_eq!(answer(&single), 0x7c00);
        let mut to_largest = single.clone();
        if let Normalised::To(round) = &mut to_largest.tree.rules[0].normalised {
            round.overflow = mmaprobe_model::format::Overflow::Largest;
        }
        assert_eq!(answer(&to_largest), 0x7bfe);
        let turned = turn_range_twice(&single, &signature);
        assert!(turned.iter().any(|turned| answer(&turned.model) == largest));
    }

    #[test]
    fn rounding_everything_once_more_changes_nothing() {
        let signature = testing::signature(3);
        let mut model = Model::chain_of_fma(FP16, FP32, 3);
        model.tree.rules[0].normalised =
            Normalised::To(RoundTo { rounding: Rounding::Up, ..RoundTo::nearest_even(FP32) });
        let (doubled, first) = everywhere_doubled(&model).expect("three sums share a rule");
        assert_eq!(doubled.check(), Ok(()));
        assert_eq!(doubled.tree.nodes.len(), model.tree.nodes.len() + 3);
        let mut toward_zero = doubled.clone();
        toward_zero.tree.rules[first].normalised =
            Normalised::To(RoundTo { rounding: Rounding::TowardZero, ..RoundTo::nearest_even(FP32) });
        let mut executors =
            [&model, &doubled, &toward_zero].map(|model| Executor::new(model).expect("a model"));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(22);
        let mut differing = 0;
        for _ in 0..2000 {
            let DotAdd { a, b, c, sa, sb } = sparse::dot_add(&signature, &mut rng);
            let [plain, same, other] =
                executors.each_mut().map(|executor| executor.dot_add(&a, &b, c, &sa, &sb));
            assert_eq!(plain, same);
            differing += usize::from(plain != other);
        }
        assert!(differing > 50, "{differing} of 2000");
        assert!(everywhere_doubled(&doubled).is_none(), "no more than twice");
    }
}
