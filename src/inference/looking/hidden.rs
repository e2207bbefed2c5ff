//! Looks at sums that other sums of a model hide.

use std::cmp::Reverse;

use mmaprobe_model::Model;
use mmaprobe_model::tree::RuleId;
use mmaprobe_probes::Summand;
use mmaprobe_probes::sums::Sum;

use super::regrouping::{CHANGED, best_improved};
use crate::inference::budget::Budget;
use crate::inference::evidence::{self, Answered, Evidence};
use crate::inference::fit::{self, Fitted};
use crate::inference::grid::{self, Trial};
use crate::inference::knobs::Scope;
use crate::inference::{nodewise, regroup};

/// Answers that models may be held against before no other hidden sum is tried, and for each of the few that explain most.
const HIDDEN: u64 = 100_000_000;
const EACH_SHOWN: u64 = 10_000_000;
/// A sum that was hidden explains one of so many of the answers that contradict a model without it: others may be hidden, too.
const EXPLAINED: usize = 6;

/// Sums that are shown, one after the other.
const SUMS: usize = 4;

/// A model with more sums, each [hidden](regroup::hidden) in one of this model's, that explain much of what contradicts it, if
/// there is one. Deterministic for any number of threads.
pub(super) fn with_hidden_sums(evidence: &Evidence, known: &Fitted) -> Option<Fitted> {
    let budget = evidence.budget(HIDDEN);
    let mut shown: Option<Fitted> = None;
    for _ in 0..SUMS {
        let Some(next) = with_a_hidden_sum(evidence, shown.as_ref().unwrap_or(known), &budget) else { break };
        shown = Some(next);
    }
    shown
}

/// The same, with one more sum; none where nothing contradicts the model.
fn with_a_hidden_sum(evidence: &Evidence, known: &Fitted, budget: &Budget) -> Option<Fitted> {
    let signature = evidence.signature();
    let mut answers: Vec<&Answered> = evidence.answers.iter().collect();
    let wrong = fit::front_load(&known.model, &mut answers);
    if wrong == 0 || budget.is_spent() {
        return None;
    }
    let most = wrong - wrong.div_ceil(EXPLAINED);
    let some = fit::thinned(&answers[..wrong], JUDGED_BY);
    let live = |answered: &&Answered| evidence::summands(signature, &answered.question).collect();
    let live: Vec<Vec<Summand>> = some.iter().map(live).collect();
    let mut hidden: Vec<(usize, Model, RuleId)> = regroup::hidden(&known.model)
        .into_iter()
        .map(|(model, rule)| (meeting_in(&model, rule, &live), model, rule))
        .filter(|(meeting, ..)| meeting * EXPLAINED >= live.len())
        .collect();
    // A stable sort: what changes less comes first among equals.
    hidden.sort_by_key(|(meeting, ..)| Reverse(*meeting));
    let mut shown: Vec<Fitted> = Vec::new();
    for (place, (_, model, rule)) in hidden.into_iter().enumerate() {
        if budget.is_spent() || shown.iter().any(|shown| shown.contradicted == 0) {
            break;
        }
        let start = fit::scored(evidence, model);
        if start.contradicted > 0 {
            let trial = Trial { rule, scope: Scope::All, answers: &answers, budget };
            let mut found = grid::lossy(signature, &start, trial);
            if place < APART {
                found.extend(grid::lossy_apart(&start, trial));
            }
            shown.extend(found.into_iter().min_by_key(|found| found.contradicted));
        }
        shown.push(start);
    }
    shown.retain(|found| found.contradicted < wrong);
    shown.sort_by_key(|found| found.contradicted);
    shown.truncate(CHANGED);
    let best = best_improved(evidence, shown, EACH_SHOWN, wrong);
    best.filter(|best| best.contradicted <= most)
}

/// Hidden sums that are tried with two alignments: those in which summands of most answers that contradict a model meet.
const APART: usize = 8;

/// Answers that contradict a model, about so many, which say in what hidden sums summands may meet.
const JUDGED_BY: usize = 100;

/// In how many questions with these summands, all others of which are zero, two meet in a sum of this rule.
fn meeting_in(model: &Model, rule: RuleId, questions: &[Vec<Summand>]) -> usize {
    let of_rule = nodewise::meetings(model).into_iter().filter(|meeting| meeting.rule == rule);
    let sums: Vec<Sum> = of_rule.map(|meeting| meeting.sum).collect();
    let meet = |live: &&Vec<Summand>| {
        let is_live = |child: &&Vec<Summand>| child.iter().any(|summand| live.contains(summand));
        sums.iter().any(|sum| sum.iter().filter(is_live).count() > 1)
    };
    questions.iter().filter(meet).count()
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32};
    use mmaprobe_model::tree::{Added, Alignment, Fused, Node, Normalised, Rule};

    use super::*;
    use crate::device::Device;
    use crate::inference::{disputed, testing};

    /// p0, p1, p2 and c in one exact sum, or the last two products first, by this rule.
    fn three_and_c(first: Option<Rule>) -> Model {
        let mut model = Model::chain_of_fma(FP16, FP32, 3);
        let sum = |children: Vec<usize>, rule| Node::Sum { children, rule };
        let leaves = (0..3).map(Node::Product).chain([Node::Accumulator]);
        let sums = match first {
            Some(_) => vec![sum(vec![1, 2], 1), sum(vec![0, 4, 3], 0)],
            None => vec![sum(vec![0, 1, 2, 3], 0)],
        };
        model.tree.nodes = leaves.chain(sums).collect::<Vec<_>>().into();
        model.tree.rules.extend(first);
        assert_eq!(model.check(), Ok(()));
        model
    }

    /// Of two summands it keeps other numbers of bits, and remembers that it has lost some: no uniform sum is like it.
    #[test]
    fn a_sum_may_be_hidden_that_aligns_two_summands_apart() {
        let exact = three_and_c(None);
        let aligned =
            |fraction_bits| Alignment { fraction_bits, rounding: Rounding::NearestTiesToOdd, far: None };
        let alignment = vec![aligned(34), aligned(32)].into();
        let fused = Fused { alignment, sticky: true, ..Fused::uniform(0, Rounding::TowardZero) };
        let normalised = Normalised::No { exponent: None };
        let added = Added::Fused(fused);
        let truth =
            three_and_c(Some(Rule { added: added.clone(), normalised, ..exact.tree.rules[0].clone() }));
        let signature = testing::signature(3);
        let device = testing::device(&signature, truth.clone(), (1, 1));
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        evidence.answers = testing::sparse_answers(&signature, &truth, 1000, 3);
        disputed::hidden_and_lost(&mut evidence, &exact, 1).expect("it answers");
        let known = fit::scored(&evidence, exact);
        assert!(known.contradicted > 10, "{}", known.contradicted);
        let found = with_hidden_sums(&evidence, &known).expect("it shows");
        assert_eq!(found.contradicted, 0);
        assert!(found.model.tree.has_the_same_sums(&truth.tree));
        let keeps = |rule: &Rule| match &rule.added {
            Added::Fused(fused) => {
                fused.sticky && [0, 1].map(|at| fused.alignment_of(at).fraction_bits) == [34, 32]
            }
            Added::Exact => false,
        };
        assert!(found.model.tree.rules.iter().any(keeps), "{:?}", found.model.tree);
    }

    #[test]
    fn a_sum_that_an_exact_one_hides_is_shown_by_what_it_loses() {
        let mut exact = Model::chain_of_fma(FP16, FP32, 4);
        let products = (0..4).map(Node::Product);
        let sum = |children: Vec<usize>, rule| Node::Sum { children, rule };
        exact.tree.nodes = products
            .clone()
            .chain([Node::Accumulator, sum(vec![4, 0, 1, 2, 3], 0)])
            .collect::<Vec<_>>()
            .into();
        let mut truth = exact.clone();
        let inside = [sum(vec![0, 1, 2, 3], 1), Node::Accumulator, sum(vec![5, 4], 0)];
        truth.tree.nodes = products.chain(inside).collect::<Vec<_>>().into();
        let lossy = Added::Fused(Fused::uniform(12, Rounding::Down));
        let normalised = Normalised::No { exponent: None };
        truth.tree.rules.push(Rule { added: lossy.clone(), normalised, ..truth.tree.rules[0].clone() });
        assert_eq!([exact.check(), truth.check()], [Ok(()), Ok(())]);
        let signature = testing::signature(4);
        let device = testing::device(&signature, truth.clone(), (1, 1));
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        evidence.answers = testing::sparse_answers(&signature, &truth, 3000, 3);
        let known = Fitted { model: exact.clone(), contradicted: 0 };
        let found = with_hidden_sums(&evidence, &known).expect("it shows");
        assert_eq!(found.contradicted, 0);
        assert!(found.model.tree.has_the_same_sums(&truth.tree));
        assert!(found.model.tree.rules.iter().any(|rule| rule.added == lossy), "{:?}", found.model.tree);
    }
}
