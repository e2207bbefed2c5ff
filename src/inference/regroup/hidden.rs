//! Sums that an exact sum hides.
//!
//! What a sum inside an exact one loses of summands far below the largest shows in few answers. Until one is asked for, the
//! exact sum explains as much without it.

use mmaprobe_model::Rounding;
use mmaprobe_model::tree::{Added, Fused, Model, Normalised, Rule, RuleId, ZeroSigns};

use super::{Term, changed, grouped, groupings, term, with_tree};
use crate::inference::knobs::MOST_FRACTION_BITS;

/// Every model in which some summands of an exact sum are summed first, by the rule whose number comes with it: it loses
/// next to nothing of them, and hands on their sum as it is.
pub fn hidden(model: &Model) -> Vec<(Model, RuleId)> {
    let of_groups = Rule {
        added: Added::Fused(Fused::uniform(MOST_FRACTION_BITS, Rounding::TowardZero)),
        normalised: OPEN,
        zero: ZeroSigns::IEEE,
        infinite_operands_first: false,
    };
    let models = with_groups(model, &|_| of_groups.clone()).into_iter();
    let numbered = models.map(|other| {
        let rule = other.tree.rules.iter().position(|rule| *rule == of_groups).expect("a sum follows it");
        (other, rule)
    });
    numbered.collect()
}

/// Every model in which some summands of an exact sum are summed exactly first, and their sum is handed on as it is; in all
/// else as by the rule of that sum, so that no number shows it.
pub fn hidden_exactly(model: &Model) -> Vec<Model> {
    with_groups(model, &|rule| Rule { normalised: OPEN, ..rule.clone() })
}

/// What becomes of the sum of a group.
const OPEN: Normalised = Normalised::No { exponent: None };

/// Every model in which some summands of an exact sum are summed first, by what is made of that sum's rule.
fn with_groups(model: &Model, of_groups: &dyn Fn(&Rule) -> Rule) -> Vec<Model> {
    let mut trees = Vec::new();
    changed(&term(model, model.tree.nodes.len() - 1), &mut trees, &|sum, rule| {
        let groupings = if rule.added == Added::Exact { groupings(sum) } else { Vec::new() };
        let tree = |groups: Vec<Vec<usize>>| Term::Sum(grouped(sum, &groups, &of_groups(rule)), rule.clone());
        groupings.into_iter().map(|groups| (String::new(), tree(groups))).collect()
    });
    let mut all: Vec<Model> = Vec::new();
    for (_, tree) in trees {
        let other = with_tree(model, &tree);
        if other.check().is_ok() && !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use mmaprobe_probes::Summand;

    use super::super::tests::{drawn, model};
    use super::*;
    use crate::inference::skeleton::Skeleton;
    use crate::inference::{fit, testing};

    #[test]
    fn what_an_exact_sum_hides_loses_nothing_yet() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let flat = Skeleton::Sum([vec![Skeleton::Leaf(Summand::C)], (0..4).map(leaf).collect()].concat());
        let mut model = model(&flat, 4);
        assert!(hidden(&model).is_empty(), "it is aligned");
        model.tree.rules[0].added = Added::Exact;
        let all = hidden(&model);
        let drawn = |other: &Model| drawn(other, other.tree.nodes.len() - 1);
        let trees: Vec<String> = all.iter().map(|(other, _)| drawn(other)).collect();
        for expected in ["(c (p0 p1 p2 p3))", "(c (p0 p1) (p2 p3))", "(c (p0 p2) (p1 p3))"] {
            assert!(trees.iter().any(|tree| tree == expected), "{expected} is none of {trees:?}");
        }
        let answers = testing::sparse_answers(&testing::signature(4), &model, 500, 3);
        for (other, rule) in all {
            assert!(other.tree.rules[rule].added != Added::Exact, "it may lose bits");
            let wrong = fit::contradicted(&other, answers.iter(), usize::MAX);
            assert!(wrong * 20 < answers.len(), "{wrong} differ with {}", drawn(&other));
        }
    }
}
