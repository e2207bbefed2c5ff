//! Which rule of a model is to blame for the few answers that contradict it.
//!
//! Where a model explained everything until more was asked, mostly one of its rules is wrong, but in more than one thing:
//! no single turn explains all that is left. Yet each of these answers comes out right with some turn of that rule, one
//! with this and one with another, and hardly with turns of rules whose sums it does not depend on.

use mmaprobe_model::Model;
use mmaprobe_model::tree::RuleId;
use rayon::prelude::*;

use super::evidence::{Answered, Class, Evidence};
use super::fit;
use super::held::Held;
use super::knobs::{self, Scope};

/// Answers that contradict a model, and others, which rules are judged by.
const JUDGED_BY: usize = 60;
/// A turn that contradicts more than one of so many answers that the model explains says nothing.
const BREAKABLE: usize = 4;

/// The rules of a model with which some of these answers come out right that contradict it, when one thing about the rule
/// is turned, each answer in its own way: those with which most do first. The answers are of this class or simpler ones.
/// Deterministic for any number of threads.
pub fn ranked(evidence: &Evidence, model: &Model, answers: &[&Answered], class: Class) -> Vec<RuleId> {
    let mut ordered = answers.to_vec();
    let wrong = fit::front_load(model, &mut ordered);
    let (wrong, right) = ordered.split_at(wrong);
    let [wrong, right] = [wrong, right].map(|some| fit::thinned(some, JUDGED_BY));
    let [held_wrong, held_right] = [&wrong, &right].map(|some| Held::new(model, some));
    let breakable = right.len() / BREAKABLE + 1;
    let turned = knobs::turn_all(model, evidence.signature(), class, evidence).into_iter();
    let turned = turned.chain(knobs::turn_kind(model, evidence.signature(), Scope::All));
    let of_rules: Vec<(RuleId, Model)> =
        turned.filter_map(|turned| Some((turned.knob.rule?, turned.model))).collect();
    // Of each turn, the places of those that come out right with it.
    let explained: Vec<(RuleId, Vec<usize>)> = of_rules
        .par_iter()
        .filter(|(_, other)| held_right.contradicted(other, breakable) < breakable)
        .filter_map(|(rule, other)| {
            let contradicting = held_wrong.contradicting(other, usize::MAX)?;
            Some((*rule, (0..wrong.len()).filter(|index| !contradicting.contains(index)).collect()))
        })
        .collect();
    let explained_by = |rule: RuleId| {
        let of_rule = || explained.iter().filter(|(other, _)| *other == rule);
        (0..wrong.len()).filter(|index| of_rule().any(|(_, explained)| explained.contains(index))).count()
    };
    let rules = (0..model.tree.rules.len()).map(|rule| (explained_by(rule), rule));
    let mut rules: Vec<(usize, RuleId)> = rules.filter(|(explained, _)| *explained > 0).collect();
    // A stable sort: the first among equals.
    rules.sort_by_key(|(explained, _)| std::cmp::Reverse(*explained));
    rules.into_iter().map(|(_, rule)| rule).collect()
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32, RoundTo};
    use mmaprobe_model::tree::{Node, Normalised};

    use super::*;
    use crate::device::Device;
    use crate::inference::testing;

    /// Pairs of eight products, these in pairs, both of those, and c, each sum by a rule of its own: rules 0 to 3 are those
    /// of products, 4 and 5 of these sums, 6 and 7 of those that follow.
    fn model() -> Model {
        let mut model = Model::chain_of_fma(FP16, FP32, 8);
        let pair = |first: usize, rule| Node::Sum { children: vec![first, first + 1], rule };
        let products = (0..8).map(Node::Product);
        let pairs = (0..4).map(|rule| pair(2 * rule, rule));
        let sums = [pair(8, 4), pair(10, 5), pair(12, 6), Node::Accumulator, pair(14, 7)];
        model.tree.nodes = products.chain(pairs).chain(sums).collect::<Vec<Node>>().into();
        model.tree.rules = vec![model.tree.rules[0].clone(); 8];
        model
    }

    #[test]
    fn the_rule_that_is_wrong_is_among_the_first_and_none_beside_it() {
        let model = model();
        assert_eq!(model.check(), Ok(()));
        let signature = testing::signature(8);
        // Each with those of the sums that it is in.
        for (wrong, above) in [(3, [5, 6, 7]), (1, [4, 6, 7])] {
            let mut truth = model.clone();
            let to_few =
                RoundTo { rounding: Rounding::Down, fraction_bits: 5, ..RoundTo::nearest_even(FP32) };
            truth.tree.rules[wrong].normalised = Normalised::To(to_few);
            let answers = testing::sparse_answers(&signature, &truth, 3000, 3);
            let answers: Vec<&Answered> = answers.iter().collect();
            let device = testing::device(&signature, truth, (1, 1));
            let evidence = Evidence::new(&device, &device.instructions()[0]);
            let ranked = ranked(&evidence, &model, &answers, Class::Nan);
            let is_on_the_way = |rule: &RuleId| *rule == wrong || above.contains(rule);
            assert!(ranked.iter().take(3).any(|&rule| rule == wrong), "{ranked:?}");
            assert!(ranked.iter().take(3).all(is_on_the_way), "{ranked:?}");
        }
    }
}
