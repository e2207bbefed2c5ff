//! Sums that another sum hides.
//!
//! What a sum inside an exact one, or one that keeps many bits, loses of summands far below the largest shows in few answers.
//! Until one is asked for, the other explains as much without it.

use mmaprobe_model::Rounding;
use mmaprobe_model::tree::{Added, Fused, Model, Normalised, Rule, RuleId, ZeroSigns};

use super::{Term, changed, grouped, groupings, term, with_tree};
use crate::inference::knobs::MOST_FRACTION_BITS;

/// Every model in which some summands of a sum are summed first, by the rule whose number comes with it: it loses next to
/// nothing of them, and hands on their sum as it is. Of a sum that aligns its summands in ways of their own, some are also
/// summed first by a rule that aligns them as they were: what a sum inside loses may have looked like that.
pub fn hidden(model: &Model) -> Vec<(Model, RuleId)> {
    let added = Added::Fused(Fused::uniform(MOST_FRACTION_BITS, Rounding::TowardZero));
    let whole = Rule { added, normalised: OPEN, zero: ZeroSigns::IEEE, infinite_operands_first: false };
    let same = |_: &Rule, _: &[usize]| Some(whole.clone());
    let models = [with_groups(model, &same), with_groups(model, &as_they_were)].concat();
    let numbered = models.into_iter().map(|(other, inside)| {
        let number = other.tree.rules.iter().position(|rule| *rule == inside).expect("a sum follows it");
        (other, number)
    });
    numbered.collect()
}

/// The rule of some summands of one that aligns its own each in a way of its own, with the alignments of those, by their
/// places.
fn as_they_were(rule: &Rule, members: &[usize]) -> Option<Rule> {
    let Added::Fused(fused) = &rule.added else { return None };
    let is_apart = fused.alignment.len() > 1;
    let alignment = members.iter().map(|&place| *fused.alignment_of(place)).collect();
    let added = Added::Fused(Fused { alignment, ..fused.clone() });
    is_apart.then(|| Rule { added, normalised: OPEN, ..rule.clone() })
}

/// Every model in which some summands of an exact sum are summed exactly first, and their sum is handed on as it is; in all
/// else as by the rule of that sum, so that no number shows it.
pub fn hidden_exactly(model: &Model) -> Vec<Model> {
    let exactly = |rule: &Rule, _: &[usize]| {
        (rule.added == Added::Exact).then(|| Rule { normalised: OPEN, ..rule.clone() })
    };
    with_groups(model, &exactly).into_iter().map(|(other, _)| other).collect()
}

/// What becomes of the sum of a group.
const OPEN: Normalised = Normalised::No { exponent: None };

/// What is made of the rule of a sum for those of its summands, by their places, that are summed first; nothing, if they are
/// not.
type OfGroup<'a> = &'a dyn Fn(&Rule, &[usize]) -> Option<Rule>;

/// Every model in which some summands of a sum are summed first, by what is made of that sum's rule, which comes with it; with
/// several groups, of their first. That sum loses as little of the sum of a group as of any of its summands.
fn with_groups(model: &Model, of_group: OfGroup) -> Vec<(Model, Rule)> {
    let mut trees = Vec::new();
    changed(&term(model, model.tree.nodes.len() - 1), &mut trees, &|sum, rule| {
        let groupings = groupings(sum).into_iter();
        let tree = |groups: Vec<Vec<usize>>| {
            let first = groups.iter().find(|group| group.len() > 1)?;
            let inside = of_group(rule, first)?;
            let tree = Term::Sum(grouped(sum, &groups, &inside), around(rule, &groups, sum.len()));
            Some((inside, tree))
        };
        groupings.filter_map(tree).collect()
    });
    let mut all: Vec<(Model, Rule)> = Vec::new();
    for (inside, tree) in trees {
        let other = with_tree(model, &tree);
        if other.check().is_ok() && !all.iter().any(|(known, _)| *known == other) {
            all.push((other, inside));
        }
    }
    all
}

/// The rule of a sum of so many summands once these groups of them are summed first: where it aligns its summands in ways of
/// their own, it keeps as many bits of the sum of a group as of the summand of which it keeps most.
fn around(rule: &Rule, groups: &[Vec<usize>], count: usize) -> Rule {
    let Added::Fused(fused) = &rule.added else { return rule.clone() };
    if fused.alignment.len() == 1 {
        return rule.clone();
    }
    let widest = fused.alignment.iter().max_by_key(|alignment| alignment.fraction_bits);
    let widest = *widest.expect("a fused sum has an alignment");
    let place = |at: usize| match groups.iter().find(|group| group.contains(&at)) {
        Some(group) if group.len() > 1 => (group[0] == at).then_some(widest),
        _ => Some(*fused.alignment_of(at)),
    };
    let alignment = (0..count).filter_map(place).collect();
    Rule { added: Added::Fused(Fused { alignment, ..fused.clone() }), ..rule.clone() }
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::tree::Alignment;
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

    #[test]
    fn what_looks_like_own_alignments_may_be_those_of_a_sum_inside() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let flat = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), leaf(0), leaf(1)]);
        let mut model = model(&flat, 2);
        let aligned = |fraction_bits| Alignment { fraction_bits, rounding: Rounding::ToOdd, far: None };
        let fused = |bits: &[u32]| Fused {
            alignment: bits.iter().copied().map(aligned).collect(),
            ..Fused::uniform(0, Rounding::TowardZero)
        };
        model.tree.rules[0].added = Added::Fused(fused(&[48, 36, 34]));
        let [inside, outside] = [fused(&[36, 34]), fused(&[48, 48])].map(Added::Fused);
        let is_expected = |(other, number): &&(Model, RuleId)| {
            let rules = &other.tree.rules;
            drawn(other, other.tree.nodes.len() - 1) == "(c (p0 p1))"
                && rules[*number].added == inside
                && rules[1 - *number].added == outside
        };
        assert!(hidden(&model).iter().any(|other| is_expected(&other)));
    }
}
