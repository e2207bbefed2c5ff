//! What two rules make of zeros and of small results, turned at once: what one hands on, the other may hide.

use mmaprobe_model::format::{RoundTo, Subnormals};
use mmaprobe_model::tree::{Model, Normalised, Rule, RuleId};
use mmaprobe_probes::Signature;

use super::rule::{all_signs, intermediate};
use super::words::{all_subnormals, sign_words, subnormal_words};
use super::{Knob, Turned};
use crate::inference::evidence::Class;

/// Rules of which all pairs are turned; where there are more, most are alike.
const RULES: usize = 5;

/// Models in which two rules give other signs to zeros, or do otherwise with subnormal results. None where there
/// is only one rule.
pub fn turn_ends(model: &Model, class: Class) -> Vec<Turned> {
    let mut turned = Vec::new();
    if class < Class::Zero || model.tree.rules.len() > RULES {
        return turned;
    }
    for other in 1..model.tree.rules.len() {
        for one in 0..other {
            turn_signs(model, class, [one, other], &mut turned);
            if class >= Class::Subnormal {
                turn_subnormals(model, [one, other], &mut turned);
            }
        }
    }
    turned
}

/// Models in which one rule gives other signs to zeros and does otherwise with subnormal results, both at once: where
/// what is small is flushed to +0, it hardly shows that it would be rounded to +0 anyway.
pub fn turn_ends_of_each(model: &Model) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (rule, own) in model.tree.rules.iter().enumerate() {
        let Normalised::To(round) = own.normalised else { continue };
        for subnormals in all_subnormals() {
            for zero in all_signs() {
                let mut changed = model.clone();
                let normalised = Normalised::To(RoundTo { subnormals, ..round });
                changed.tree.rules[rule] = Rule { zero, normalised, ..own.clone() };
                let knob = Knob { what: "small results and zeros".to_string(), rule: Some(rule) };
                let choice =
                    format!("subnormal results {}, {}", subnormal_words(subnormals), sign_words(zero));
                turned.push(Turned { knob, choice, model: changed });
            }
        }
    }
    turned
}

/// Models in which one rule of sums that are handed on as they are rounds them instead, to all bits of some format, and flushes
/// subnormal results: that it rounds need not show in any other.
pub fn turn_open_ends(model: &Model, signature: &Signature) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (rule, own) in model.tree.rules.iter().enumerate() {
        if own.normalised != (Normalised::No { exponent: None }) {
            continue;
        }
        for format in intermediate(signature) {
            let flushes = all_subnormals().into_iter().filter(|subnormals| *subnormals != Subnormals::Kept);
            for subnormals in flushes {
                let mut changed = model.clone();
                let round = RoundTo { subnormals, ..RoundTo::nearest_even(format) };
                changed.tree.rules[rule].normalised = Normalised::To(round);
                let knob = Knob { what: "small results of sums handed on".to_string(), rule: Some(rule) };
                let choice =
                    format!("rounded to {format}, subnormal results {}", subnormal_words(subnormals));
                turned.push(Turned { knob, choice, model: changed });
            }
        }
    }
    turned
}

fn turn_signs(model: &Model, class: Class, pair: [RuleId; 2], turned: &mut Vec<Turned>) {
    for signs in all_signs() {
        for others in all_signs() {
            let both = [signs, others];
            let keeps = |index: usize| {
                both[index].underflow_keeps_sign == model.tree.rules[pair[index]].zero.underflow_keeps_sign
            };
            if class < Class::Subnormal && !(keeps(0) && keeps(1)) {
                continue;
            }
            let mut changed = model.clone();
            for (rule, zero) in pair.into_iter().zip(both) {
                changed.tree.rules[rule].zero = zero;
            }
            let knob = Knob { what: format!("signs of zero of R{} and R{}", pair[0], pair[1]), rule: None };
            turned.push(Turned {
                knob,
                choice: format!("{} and {}", sign_words(signs), sign_words(others)),
                model: changed,
            });
        }
    }
}

fn turn_subnormals(model: &Model, pair: [RuleId; 2], turned: &mut Vec<Turned>) {
    let is_rounded = |rule: RuleId| matches!(model.tree.rules[rule].normalised, Normalised::To(_));
    if !pair.into_iter().all(is_rounded) {
        return;
    }
    for subnormals in all_subnormals() {
        for others in all_subnormals() {
            let mut changed = model.clone();
            for (rule, subnormals) in pair.into_iter().zip([subnormals, others]) {
                if let Normalised::To(round) = &mut changed.tree.rules[rule].normalised {
                    round.subnormals = subnormals;
                }
            }
            let knob =
                Knob { what: format!("subnormal results of R{} and R{}", pair[0], pair[1]), rule: None };
            let choice = format!("{} and {}", subnormal_words(subnormals), subnormal_words(others));
            turned.push(Turned { knob, choice, model: changed });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmaprobe_model::format::{FP16, FP32, Tininess};

    #[test]
    fn a_sum_that_is_handed_on_may_flush_what_is_small_in_every_format() {
        let signature = Signature { k: 2, a: FP16, b: FP16, c: FP32, d: FP32, scale: None };
        let mut model = Model::chain_of_fma(FP16, FP32, 2);
        assert!(turn_open_ends(&model, &signature).is_empty(), "it is rounded");
        model.tree.rules[0].normalised = Normalised::No { exponent: None };
        let subnormals = Subnormals::Flushed { tiny: Tininess::BeforeRounding, sign_kept: true };
        let turned = turn_open_ends(&model, &signature);
        for format in intermediate(&signature) {
            let round = RoundTo { subnormals, ..RoundTo::nearest_even(format) };
            let has =
                turned.iter().any(|turned| turned.model.tree.rules[0].normalised == Normalised::To(round));
            assert!(has, "{format}");
        }
        let kept = |turned: &Turned| {
            let normalised = turned.model.tree.rules[0].normalised;
            matches!(normalised, Normalised::To(RoundTo { subnormals: Subnormals::Kept, .. }))
        };
        assert!(!turned.iter().any(kept), "one that flushes nothing is another turn");
    }
}
