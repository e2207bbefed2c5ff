//! What a NaN result looks like.

use mmaprobe_model::Format;
use mmaprobe_model::format::{Decoded, Specials};
use mmaprobe_model::tree::{Model, NanRule, NanSource, Node, Propagation};
use mmaprobe_probes::Signature;

use crate::inference::evidence::Evidence;

/// Rules for NaN results, canonical ones first. The patterns themselves are taken from answers: the one that all NaN
/// answers share, and those that came from no NaN operand.
pub fn nan_rules(model: &Model, signature: &Signature, evidence: &Evidence) -> Vec<NanRule> {
    let is_nan = |format: &Format, bits: u64| matches!(format.decode(bits), Decoded::Nan { .. });
    let mut generated = Vec::new();
    let mut all = Vec::new();
    for answered in evidence.answers.iter().filter(|answered| is_nan(&signature.d, answered.answer)) {
        let question = &answered.question;
        let from_operand = is_nan(&signature.c, question.c)
            || question.a.iter().any(|&bits| is_nan(&signature.a, bits))
            || question.b.iter().any(|&bits| is_nan(&signature.b, bits));
        if !from_operand && !generated.contains(&answered.answer) && generated.len() < 4 {
            generated.push(answered.answer);
        }
        if !all.contains(&answered.answer) && all.len() < 4 {
            all.push(answered.answer);
        }
    }
    let mut rules: Vec<NanRule> = all.iter().map(|&bits| NanRule::Canonical(bits)).collect();
    if !matches!(signature.d.specials, Specials::Ieee) {
        return rules;
    }
    let [a, b, c] = [NanSource::A, NanSource::B, NanSource::Accumulator];
    // Only where a sum has several products, or several other summands, are there equals.
    let has_equals = model.tree.nodes.iter().any(|node| {
        let products =
            node.children().iter().filter(|&&id| matches!(model.tree.nodes[id], Node::Product(_))).count();
        products > 1 || node.children().len() - products > 1
    });
    let later = if has_equals { &[false, true][..] } else { &[false] };
    rules.extend(generated.iter().map(|&generated| NanRule::Merged { generated }));
    for generated in generated {
        for order in [[a, b, c], [b, a, c], [a, c, b], [b, c, a], [c, a, b], [c, b, a]] {
            for &later_first in later {
                for quieted in [true, false] {
                    for generated_first in [false, true] {
                        rules.push(NanRule::Propagated(Propagation {
                            generated,
                            order,
                            later_first,
                            quieted,
                            generated_first,
                        }));
                    }
                }
            }
        }
    }
    rules
}

/// A rule for NaNs in words.
pub(super) fn nan_words(rule: &NanRule, d: &Format) -> String {
    let width = 2 * d.bytes;
    match rule {
        NanRule::Unknown => "no rule known".to_string(),
        NanRule::Merged { generated } => format!("all ORed, else 0x{generated:0width$x}"),
        NanRule::Canonical(bits) => format!("always 0x{bits:0width$x}"),
        NanRule::Propagated(rule) => {
            let source = |source| match source {
                NanSource::A => "a",
                NanSource::B => "b",
                NanSource::Accumulator => "sum or c",
            };
            format!(
                "the operand's, {} before {} before {}{}{}, else 0x{:0width$x}{}",
                source(rule.order[0]),
                source(rule.order[1]),
                source(rule.order[2]),
                if rule.later_first { ", the later summand first" } else { "" },
                if rule.quieted { ", quieted" } else { "" },
                rule.generated,
                if rule.generated_first { ", which goes before operands" } else { "" },
            )
        }
    }
}
