//! Sums that nothing shows but NaNs.
//!
//! What is summed first in an exact sum, and handed on as it is, makes no difference to numbers, signs of zeros mostly
//! among them. But each sum decides anew which of its NaNs goes first, and takes one that another sum hands it for another
//! kind of operand than a factor's. And of NaNs of one kind the one goes first that stands first, or last, which is all that the
//! order of a sum's summands changes.

use mmaprobe_model::Model;
use rayon::prelude::*;

use crate::inference::evidence::{Answered, Class, Evidence};
use crate::inference::fit::{self, Fitted};
use crate::inference::knobs;
use crate::inference::regroup;

/// Sums that are shown, one after the other.
const SUMS: usize = 4;
/// Answers that models may be held against, all together.
const TOLD: u64 = 50_000_000;

/// A model that explains every answer where only NaNs contradict this one: with another rule for NaNs, in a tree with more
/// sums [hidden](regroup::hidden_exactly) in exact ones, or with summands in [another order](regroup::reordered), if there is
/// one. Deterministic for any number of threads.
pub(super) fn explained_by_nans(evidence: &Evidence, known: &Model) -> Option<Fitted> {
    let mut answers: Vec<&Answered> = evidence.answers.iter().collect();
    // What is about NaNs tells models apart that say the same about numbers: a stable sort.
    answers.sort_by_key(|answered| answered.class != Class::Nan);
    let wrong = fit::front_load(known, &mut answers);
    if answers[..wrong].iter().any(|answered| answered.class != Class::Nan) {
        return None;
    }
    let budget = evidence.budget(TOLD);
    let mut best = Fitted { model: known.clone(), contradicted: wrong };
    for _ in 0..=SUMS {
        // The tree as it is goes first, and is the best among equals.
        let own = best.model.clone();
        let others = regroup::reordered(&own).into_iter().chain(regroup::hidden_exactly(&own));
        let trees = std::iter::once(own).chain(others);
        let before = best.contradicted;
        for tree in trees {
            if best.contradicted == 0 || budget.is_spent() {
                break;
            }
            let rules = knobs::nan_rules(&tree, evidence.signature(), evidence);
            let counted = rules.into_par_iter().enumerate().map(|(place, nan)| {
                let model = Model { nan, ..tree.clone() };
                (budget.contradicted(&model, &answers, best.contradicted), place, model)
            });
            let least = counted.min_by_key(|(contradicted, place, _)| (*contradicted, *place));
            if let Some((contradicted, _, model)) = least.filter(|least| least.0 < best.contradicted) {
                best = Fitted { model, contradicted };
            }
        }
        if best.contradicted == 0 || best.contradicted == before {
            break;
        }
        fit::front_load(&best.model, &mut answers);
    }
    Some(best).filter(|best| best.contradicted == 0)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32};
    use mmaprobe_model::scalar::Scalar;
    use mmaprobe_model::tree::{Added, Fused, NanRule, NanSource, Node, Normalised, Propagation, Rule};
    use mmaprobe_probes::{DotAdd, Signature};

    use super::*;
    use crate::device::Device;
    use crate::inference::testing;

    /// Four products and c in one exact sum, or the last two products in one of their own.
    fn model(is_nested: bool) -> Model {
        let mut model = Model::chain_of_fma(FP16, FP32, 4);
        let sum = |children: Vec<usize>, rule| Node::Sum { children, rule };
        let leaves = (0..4).map(Node::Product).chain([Node::Accumulator]);
        let sums = match is_nested {
            true => vec![sum(vec![2, 3], 1), sum(vec![0, 1, 5, 4], 0)],
            false => vec![sum(vec![0, 1, 2, 3, 4], 0)],
        };
        model.tree.nodes = leaves.chain(sums).collect::<Vec<_>>().into();
        if is_nested {
            let normalised = Normalised::No { exponent: None };
            model.tree.rules.push(Rule { normalised, ..model.tree.rules[0].clone() });
        }
        model.nan = NanRule::Propagated(Propagation {
            generated: 0x7fc0_0000,
            order: [NanSource::Accumulator, NanSource::A, NanSource::B],
            later_first: false,
            quieted: true,
            generated_first: false,
        });
        model
    }

    /// Answers of a model to two NaNs, of other payloads, in every two places, c's among them; and to one that no operand brings.
    fn about_nans(signature: &Signature, model: &Model) -> Vec<Answered> {
        let mut executor = Scalar::new(model).expect("it can be executed");
        let [one, half, infinity] = [0x3c00, 0x3800, 0x7c00];
        let mut ask = |a: Vec<u64>, b: Vec<u64>, c| {
            let question = DotAdd { a, b, c, sa: Vec::new(), sb: Vec::new() };
            testing::answered(signature, &mut executor, question)
        };
        let mut answers = Vec::new();
        for first in 0..8 {
            for second in first + 1..9 {
                let mut operands = [half; 9];
                (operands[first], operands[second]) = (0x7e01, 0x7e02);
                let c = if second == 8 { 0x7fc0_0003 } else { 0x3f80_0000 };
                answers.push(ask(operands[..4].to_vec(), operands[4..8].to_vec(), c));
            }
        }
        answers.push(ask(vec![infinity, infinity, one, one], vec![one, 0xbc00, one, one], 0));
        answers
    }

    #[test]
    fn nans_show_whether_c_or_a_sum_comes_first() {
        // (p0 + p1) + (p2 + p3) + c, or c first: numbers are the same.
        let ordered = |root: Vec<usize>| {
            let mut model = model(false);
            let leaves = (0..4).map(Node::Product).chain([Node::Accumulator]);
            let pair = |children: Vec<usize>| Node::Sum { children, rule: 1 };
            let sums = [pair(vec![0, 1]), pair(vec![2, 3]), Node::Sum { children: root, rule: 0 }];
            model.tree.nodes = leaves.chain(sums).collect::<Vec<_>>().into();
            let normalised = Normalised::No { exponent: None };
            model.tree.rules.push(Rule { normalised, ..model.tree.rules[0].clone() });
            model
        };
        let [first, last] = [vec![4, 5, 6], vec![5, 6, 4]].map(ordered);
        assert_eq!([first.check(), last.check()], [Ok(()), Ok(())]);
        let signature = testing::signature(4);
        let device = testing::device(&signature, last.clone(), (1, 1));
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        evidence.answers = testing::sparse_answers(&signature, &last, 2000, 5);
        let contradicted =
            |evidence: &Evidence, model: &Model| fit::contradicted(model, evidence.all(), usize::MAX);
        assert_eq!(contradicted(&evidence, &first), 0, "numbers show nothing");
        evidence.answers.extend(about_nans(&signature, &last));
        let rules = knobs::nan_rules(&first, &signature, &evidence);
        assert!(rules.len() > 24, "there are rules to choose from");
        let explains = |nan| contradicted(&evidence, &Model { nan, ..first.clone() }) == 0;
        assert!(!rules.into_iter().any(explains), "no rule makes up for the order");
        assert!(explained_by_nans(&evidence, &first).is_some());
    }

    #[test]
    fn nans_show_a_sum_that_numbers_do_not() {
        let [flat, nested] = [false, true].map(model);
        assert_eq!([flat.check(), nested.check()], [Ok(()), Ok(())]);
        let signature = testing::signature(4);
        let device = testing::device(&signature, nested.clone(), (1, 1));
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        evidence.answers = testing::sparse_answers(&signature, &nested, 2000, 5);
        let contradicted = |evidence: &Evidence, model| fit::contradicted(model, evidence.all(), usize::MAX);
        assert_eq!(contradicted(&evidence, &flat), 0, "numbers show nothing");
        evidence.answers.extend(about_nans(&signature, &nested));
        assert!(contradicted(&evidence, &flat) > 0, "NaNs show it");
        let found = explained_by_nans(&evidence, &flat).expect("they tell which");
        assert!(found.model.tree.has_the_same_sums(&nested.tree), "{:?}", found.model.tree);
        // What numbers contradict, NaNs do not explain.
        let mut wrong = flat.clone();
        wrong.tree.rules[0].added = Added::Fused(Fused::uniform(3, Rounding::TowardZero));
        assert!(explained_by_nans(&evidence, &wrong).is_none());
    }
}
