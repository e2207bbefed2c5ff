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

/// The rules of a model, those first with which most of these answers come out right that contradict it when one thing
/// about the rule is turned, each answer in its own way. The answers are of this class or simpler ones. Deterministic for
/// any number of threads.
pub fn ranked(evidence: &Evidence, model: &Model, answers: &[&Answered], class: Class) -> Vec<RuleId> {
    let mut ordered = answers.to_vec();
    let wrong = fit::front_load(model, &mut ordered);
    let (wrong, right) = ordered.split_at(wrong);
    let [wrong, right] = [wrong, right].map(|some| fit::thinned(some, JUDGED_BY));
    let [held, held_right] = [&wrong, &right].map(|some| Held::new(model, some));
    let explained_by = |rule: RuleId| {
        let scope = Scope::One { rule, and_from: usize::MAX };
        let turned = knobs::turn(model, evidence.signature(), class, evidence, scope);
        let of_rule = turned.into_iter().filter(|turned| turned.knob.rule == Some(rule));
        let all: Vec<_> = of_rule.chain(knobs::turn_kind(model, evidence.signature(), scope)).collect();
        let explained: Vec<Vec<bool>> = all
            .par_iter()
            .filter_map(|turned| {
                let mut explained = vec![true; wrong.len()];
                held.contradicting(&turned.model)?.for_each(|index| explained[index] = false);
                let breakable = right.len() / BREAKABLE + 1;
                let says_something = explained.contains(&true)
                    && held_right.contradicted(&turned.model, breakable) < breakable;
                says_something.then_some(explained)
            })
            .collect();
        (0..wrong.len()).filter(|&index| explained.iter().any(|explained| explained[index])).count()
    };
    let mut rules: Vec<(usize, RuleId)> =
        (0..model.tree.rules.len()).map(|rule| (explained_by(rule), rule)).collect();
    // A stable sort: those of sums that are added earlier first among equals.
    rules.sort_by_key(|(explained, _)| std::cmp::Reverse(*explained));
    rules.into_iter().map(|(_, rule)| rule).collect()
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32, RoundTo};
    use mmaprobe_model::scalar::Scalar;
    use mmaprobe_model::tree::{Node, Normalised};
    use mmaprobe_probes::{Signature, sparse};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;
    use crate::device::simulated::Simulated;
    use crate::device::{Device, Identity, Instruction, Provenance};
    use crate::inference::evidence;

    /// c + ((p0 + p1) + (p2 + p3)), each sum by a rule of its own.
    fn model() -> Model {
        let mut model = Model::chain_of_fma(FP16, FP32, 4);
        let product = Node::Product;
        let sum = |children: Vec<usize>, rule| Node::Sum { children, rule };
        let (pairs, last) = ([sum(vec![0, 1], 0), sum(vec![2, 3], 1)], sum(vec![7, 6], 3));
        let nodes = (0..4).map(product).chain(pairs).chain([Node::Accumulator, sum(vec![4, 5], 2), last]);
        model.tree.nodes = nodes.collect::<Vec<Node>>().into();
        model.tree.rules = vec![model.tree.rules[0].clone(); 4];
        model
    }

    #[test]
    fn the_rule_that_is_wrong_comes_before_one_beside_it() {
        let model = model();
        let signature = Signature { k: 4, a: FP16, b: FP16, c: FP32, d: FP32, scale: None };
        for (wrong, beside) in [(0, 1), (1, 0)] {
            let mut truth = model.clone();
            let rounding =
                RoundTo { rounding: Rounding::Down, fraction_bits: 5, ..RoundTo::nearest_even(FP32) };
            truth.tree.rules[wrong].normalised = Normalised::To(rounding);
            let mut executor = Scalar::new(&truth).expect("it can be executed");
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
            let answers: Vec<Answered> = (0..1000)
                .map(|_| {
                    let question = sparse::dot_add(&signature, &mut rng);
                    let answer = executor.execute(&evidence::inputs(&signature, &question));
                    Answered::new(&signature, 0, question, answer)
                })
                .collect();
            let answers: Vec<&Answered> = answers.iter().collect();
            let device = device(&truth, &signature);
            let evidence = Evidence::new(&device, &device.instructions()[0]);
            let ranked = ranked(&evidence, &model, &answers, Class::Nan);
            let at = |rule| ranked.iter().position(|&ranked| ranked == rule);
            assert_eq!(ranked.len(), 4);
            assert!(at(wrong) < at(beside), "{ranked:?}");
        }
    }

    fn device(model: &Model, signature: &Signature) -> Simulated {
        let Signature { k, a, b, c, d, scale } = *signature;
        let name = "mma".to_string();
        let instruction = Instruction { name, m: 1, n: 1, k, a, b, c, d, scale, mode_of: None };
        let identity = Identity {
            name: "test".to_string(),
            description: String::new(),
            properties: Vec::new(),
            provenance: Provenance::Simulated,
            absent: Vec::new(),
        };
        Simulated::new(identity, vec![(instruction, model.clone())]).expect("the model can be executed")
    }
}
