//! Where the sums of a model lose bits, to ask what each loss is rounded to.

use mmaprobe_model::Model;
use mmaprobe_model::tree::{Added, Node, Normalised, Rule};
use mmaprobe_probes::sums;
use mmaprobe_probes::ties::Cut;

use super::nodewise::{self, Meeting};

/// For each sum of a model in which values meet, where it may lose bits: each of its summands, where it is aligned, and the
/// result, where that is rounded.
pub fn cuts(model: &Model) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let all = nodewise::sums(model);
    for Meeting { children, sum, rule, .. } in nodewise::meetings(model) {
        let beside = sums::beside(&sum, &all);
        let rule = &model.tree.rules[rule];
        let of_result = rounded_to(rule);
        let aligned = children.iter().enumerate().map(|(at, &(place, child))| {
            let fraction_bits = match &rule.added {
                Added::Fused(fused) => Some(fused.alignment_of(place).fraction_bits),
                Added::Exact => None,
            };
            let of_summand = match &model.tree.nodes[child] {
                Node::Sum { rule, .. } => rounded_to(&model.tree.rules[*rule]),
                _ => None,
            };
            let (sum, beside) = (sum.clone(), beside.clone());
            Cut { sum, beside, place: Some(at), fraction_bits, of_summand, of_result }
        });
        cuts.extend(aligned);
        if of_result.is_some() {
            let (fraction_bits, of_summand) = (of_result, None);
            cuts.push(Cut { sum, beside, place: None, fraction_bits, of_summand, of_result });
        }
    }
    cuts
}

/// Fraction bits that a result is rounded to, if it is.
fn rounded_to(rule: &Rule) -> Option<u32> {
    match &rule.normalised {
        Normalised::To(round) => Some(round.fraction_bits),
        Normalised::No { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32, RoundTo};
    use mmaprobe_model::tree::{Alignment, Fused};
    use mmaprobe_probes::Summand;
    use mmaprobe_probes::sums::Sum;

    use super::*;

    #[test]
    fn every_summand_may_lose_bits_but_zeros() {
        // (0 + p0 + p1) + c, the first sum aligned, the second exact and rounded.
        let mut model = Model::chain_of_fma(FP16, FP32, 2);
        let mut inner = model.tree.rules[0].clone();
        let alignment = [30, 24, 20].map(|fraction_bits| Alignment {
            fraction_bits,
            rounding: Rounding::Down,
            far: None,
        });
        let fused = Fused::uniform(0, Rounding::Down);
        inner.added = Added::Fused(Fused { alignment: alignment.into_iter().collect(), ..fused });
        inner.normalised = Normalised::No { exponent: None };
        let outer = Rule {
            added: Added::Exact,
            normalised: Normalised::To(RoundTo::nearest_even(FP32)),
            ..inner.clone()
        };
        model.tree.rules = vec![inner, outer];
        let leaves = [Node::Zero, Node::Product(0), Node::Product(1), Node::Accumulator];
        let sums =
            [Node::Sum { children: vec![0, 1, 2], rule: 0 }, Node::Sum { children: vec![4, 3], rule: 1 }];
        model.tree.nodes = leaves.into_iter().chain(sums).collect::<Vec<_>>().into();
        model.check().expect("it is a model");
        let [p0, p1] = [0, 1].map(Summand::Product);
        let inner = vec![vec![p0], vec![p1]];
        let outer = vec![vec![p0, p1], vec![Summand::C]];
        let cut = |sum: &Sum, place, fraction_bits, of_result| Cut {
            sum: sum.clone(),
            beside: if *sum == inner { vec![Summand::C] } else { Vec::new() },
            place,
            fraction_bits,
            of_summand: None,
            of_result,
        };
        let expected = [
            cut(&inner, Some(0), Some(24), None),
            cut(&inner, Some(1), Some(20), None),
            cut(&outer, Some(0), None, Some(23)),
            cut(&outer, Some(1), None, Some(23)),
            cut(&outer, None, Some(23), Some(23)),
        ];
        assert_eq!(cuts(&model), expected);
    }
}
