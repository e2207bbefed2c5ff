//! The same turn in every rule: the sums of one design mostly add alike.

use mmaprobe_model::Rounding;
use mmaprobe_model::tree::{Added, Alignment, Fused, Model, Normalised, Rule};
use mmaprobe_probes::Signature;

use super::rule::{MOST_FRACTION_BITS, aligned, turn_rule};
use super::{Knob, Shape, Turned};
use crate::inference::evidence::Class;

/// Models in which all rules change in the same way: how they add, how they round, or the signs of their
/// zeros. None where there is only one rule.
pub fn turn_everywhere(model: &Model, signature: &Signature, class: Class) -> Vec<Turned> {
    let rules = &model.tree.rules;
    let mut turned: Vec<Turned> = Vec::new();
    if rules.len() < 2 {
        return turned;
    }
    for (index, own) in rules.iter().enumerate() {
        let mut push = |what: &str, choice: String, changed: &Rule| {
            let mut other = model.clone();
            for rule in &mut other.tree.rules {
                follow(rule, own, changed);
            }
            if other == *model {
                return;
            }
            let knob = Knob { what: format!("{what} of all sums"), rule: None };
            turned.push(Turned { knob, choice, model: other });
        };
        for (what, choice, changed) in turn_rule(own, Shape::of(model, index), signature, class) {
            push(&what, choice, &changed);
        }
        let fused = aligned(&own.added);
        for fraction_bits in 0..=MOST_FRACTION_BITS {
            for rounding in Rounding::EVERY {
                let alignment = vec![Alignment { fraction_bits, rounding, far: None }];
                let added = Added::Fused(Fused { alignment: alignment.into(), ..fused.clone() });
                let choice = format!("F = {fraction_bits}, {rounding}");
                push("alignment as a whole", choice, &Rule { added, ..own.clone() });
            }
        }
    }
    turned
}

/// Changes a rule as `own` was changed.
fn follow(rule: &mut Rule, own: &Rule, changed: &Rule) {
    if changed.added != own.added {
        rule.added = changed.added.clone();
    }
    if changed.zero != own.zero {
        rule.zero = changed.zero;
    }
    let (Normalised::To(round), Normalised::To(before), Normalised::To(after)) =
        (&mut rule.normalised, &own.normalised, &changed.normalised)
    else {
        return;
    };
    if after.rounding != before.rounding {
        round.rounding = after.rounding;
    }
    if after.subnormals != before.subnormals {
        round.subnormals = after.subnormals;
    }
    if after.overflow != before.overflow {
        round.overflow = after.overflow;
    }
}
