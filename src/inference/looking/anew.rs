//! Rules of a model that are to blame for what contradicts it, decided anew.
//!
//! A rule that was found from few answers may be wrong in more things than can be turned at once, though it explains all but a
//! few. Where the others are mostly right, it is found as rules are [node by node](nodewise), with nothing known of how its sum
//! is added: that takes no longer than to combine a few of the things about it.

use mmaprobe_model::tree::{Added, Model};

use super::better_of;
use crate::inference::blame;
use crate::inference::evidence::{Answered, Class, Evidence};
use crate::inference::fit::{self, Fitted};
use crate::inference::nodewise;

/// Rules that are decided anew, one after the other, the first of which most is to be blamed on; and times that they are
/// ranked, as long as each leaves no more than one of so many of what the one before did.
const BLAMED: usize = 8;
const TIMES: usize = 4;
const LEFT: usize = 2;
/// Answers that models may be held against before no other rule is.
const ALL: u64 = 150_000_000;

/// The same, or the better model in which one rule after the other, of those to [blame](blame), is found anew, each sum's on
/// its own. Deterministic for any number of threads.
pub(super) fn with_rules_decided_anew(evidence: &Evidence, fitted: Fitted) -> Fitted {
    let most = evidence.work().spent() + ALL;
    let answers: Vec<&Answered> = evidence.answers.iter().collect();
    let individual = |model: &Model| fit::scored(evidence, nodewise::individual(model).0);
    let mut best = individual(&fitted.model);
    for _ in 0..TIMES {
        let start = best.clone();
        for rule in blame::ranked(evidence, &start.model, &answers, Class::Nan).into_iter().take(BLAMED) {
            if best.contradicted == 0 || evidence.work().spent() > most {
                break;
            }
            let found = nodewise::fit_one(evidence, without(&best.model, rule), rule);
            if found.contradicted < best.contradicted {
                best = individual(&found.model);
            }
            // Rules go by place, and sums may have come or gone.
            if best.model.tree.nodes != start.model.tree.nodes {
                break;
            }
        }
        if best.contradicted * LEFT > start.contradicted || best.contradicted == 0 {
            break;
        }
    }
    better_of(evidence, fitted, best)
}

/// A model of which nothing is known about how the sums of a rule are added.
fn without(model: &Model, rule: usize) -> Model {
    let mut model = model.clone();
    model.tree.rules[rule].added = Added::Exact;
    model
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32, RoundTo};
    use mmaprobe_model::tree::{Alignment, Exponents, Far, Fused, Node, Normalised, Rule};

    use super::*;
    use crate::device::Device;
    use crate::inference::{disputed, testing};

    /// (p0 + p1) + (p2 + p3) + c, each sum by a rule of its own, of which that of the first pair is this one.
    fn model(first: &Added) -> Model {
        let mut model = Model::chain_of_fma(FP16, FP32, 4);
        let sum = |children: Vec<usize>, rule| Node::Sum { children, rule };
        let leaves = (0..4).map(Node::Product).chain([Node::Accumulator]);
        let sums = [sum(vec![0, 1], 1), sum(vec![2, 3], 2), sum(vec![5, 6, 4], 0)];
        model.tree.nodes = leaves.chain(sums).collect::<Vec<_>>().into();
        let last = model.tree.rules[0].clone();
        let inside = |added: &Added, fraction_bits| Rule {
            added: added.clone(),
            normalised: Normalised::To(RoundTo { fraction_bits, ..RoundTo::nearest_even(FP32) }),
            ..last.clone()
        };
        model.tree.rules.extend([inside(first, 12), inside(&Added::Exact, 16)]);
        assert_eq!(model.check(), Ok(()));
        model
    }

    #[test]
    fn a_rule_that_is_wrong_in_four_things_is_found_anew() {
        let aligned = |fraction_bits, rounding, far| Fused {
            alignment: vec![Alignment { fraction_bits, rounding, far }].into(),
            ..Fused::uniform(0, Rounding::TowardZero)
        };
        let far = Some(Far { distance: 14, rounding: Rounding::TowardZero });
        let own = Fused { exponents: Exponents::Normalised, ..aligned(18, Rounding::AwayFromZero, far) };
        let truth = model(&Added::Fused(own));
        let other = Fused { sticky: true, ..aligned(17, Rounding::TowardZero, None) };
        let wrong = model(&Added::Fused(other));
        let signature = testing::signature(4);
        let device = testing::device(&signature, truth.clone(), (1, 1));
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        evidence.answers = testing::sparse_answers(&signature, &truth, 3000, 3);
        disputed::hidden_and_lost(&mut evidence, &truth, 1).expect("it answers");
        let wrong = fit::scored(&evidence, wrong);
        assert!(wrong.contradicted > 20, "{}", wrong.contradicted);
        let found = with_rules_decided_anew(&evidence, wrong);
        assert_eq!(found.contradicted, 0, "{:?}", found.model.tree.rules);
    }
}
