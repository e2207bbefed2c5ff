//! Everything that can be different about one rule.

use mmaprobe_model::Rounding;
use mmaprobe_model::format::{self, Format, Overflow, RoundTo};
use mmaprobe_model::tree::{
    Added, Alignment, Beyond, Carry, Exponents, Far, Fused, Normalised, Rule, ZeroSigns, ZeroTerms,
};
use mmaprobe_probes::Signature;

use super::Shape;
use super::words::{all_subnormals, overflow_words, overflows, sign_words, subnormal_words};
use crate::inference::evidence::Class;

/// The knobs of a rule, each with all its choices: the knob, the choice, the rule.
pub(super) fn turn_rule(
    rule: &Rule,
    shape: Shape,
    signature: &Signature,
    class: Class,
) -> Vec<(String, String, Rule)> {
    let mut turned: Vec<(String, String, Rule)> = Vec::new();
    let mut push =
        |knob: &str, choice: String, changed: Rule| turned.push((knob.to_string(), choice, changed));
    turn_addition(rule, shape, signature, class, &mut push);
    match rule.normalised {
        Normalised::To(round) => {
            for changed in turn_rounding(round, shape, signature, class) {
                push(&changed.0, changed.1, Rule { normalised: Normalised::To(changed.2), ..rule.clone() });
            }
        }
        Normalised::No { .. } => {
            for other in std::iter::once(None).chain((-MOST_OPEN_EXPONENT..=MOST_OPEN_EXPONENT).map(Some)) {
                let choice = match other {
                    None => "the one it was aligned to".to_string(),
                    Some(exponent) => format!("{exponent}"),
                };
                let normalised = Normalised::No { exponent: other };
                push("exponent of the unnormalised sum", choice, Rule { normalised, ..rule.clone() });
            }
        }
    }
    if !shape.is_root {
        for (choice, normalised) in [
            ("no", Normalised::No { exponent: None }),
            ("yes, rounded to nearest even", Normalised::To(RoundTo::nearest_even(signature.d))),
        ] {
            push("normalisation", choice.to_string(), Rule { normalised, ..rule.clone() });
        }
    }
    if class >= Class::Zero {
        for zero in all_signs() {
            if class < Class::Subnormal && zero.underflow_keeps_sign != rule.zero.underflow_keeps_sign {
                continue;
            }
            push("signs of zero", sign_words(zero), Rule { zero, ..rule.clone() });
        }
    }
    // Without products that overflow there is nothing that could come second.
    if class >= Class::Infinite && shape.products_overflow {
        for first in [false, true] {
            let choice = if first {
                "infinite operands decide before products overflow"
            } else {
                "all infinities are equal"
            };
            push("infinities", choice.to_string(), Rule { infinite_operands_first: first, ..rule.clone() });
        }
    }
    turned
}

/// Which zeros have an exponent. The last two are the same in formats with fp32's exponents.
pub(super) const ZEROS: [(ZeroTerms, &str); 4] = [
    (ZeroTerms::Ignored, "have none"),
    (ZeroTerms::SumsCounted, "have one if they are sums"),
    (ZeroTerms::Counted, "have one"),
    (ZeroTerms::CountedAsFp32, "have one, a zero operand fp32's smallest"),
];

/// Which zeros may have an exponent.
pub fn zero_terms() -> impl Iterator<Item = ZeroTerms> {
    ZEROS.into_iter().map(|(zeros, _)| zeros)
}

/// F of a fused sum reaches from 0 to 64 (design, "The one idea"; issue 4).
pub const MOST_FRACTION_BITS: u32 = 64;

/// Most bits before the binary point of a limited sum: more than the carries of 64 products take.
pub const MOST_CARRY_BITS: u32 = 8;

/// A summand is never further below the largest than that: what is kept of it, and the carries above.
pub const MOST_DISTANCE: i32 = 72;

/// Exponents, of either sign, under which a sum that is not normalised may be handed on.
pub(super) const MOST_OPEN_EXPONENT: i32 = 32;

/// The fixed exponents under which a sum that is not normalised may be handed on.
pub fn open_exponents() -> std::ops::RangeInclusive<i32> {
    -MOST_OPEN_EXPONENT..=MOST_OPEN_EXPONENT
}

/// Exponents above the range of subnormals that may be the least to which a sum aligns: those of
/// ordinary numbers.
pub const ORDINARY_FLOORS: std::ops::RangeInclusive<i32> = -40..=14;

/// How a sum is aligned; where it is exact, what an aligned one is turned from.
pub fn aligned(added: &Added) -> Fused {
    match added {
        Added::Fused(fused) => fused.clone(),
        Added::Exact => Fused::uniform(0, Rounding::TowardZero),
    }
}

/// Every choice of the signs of zeros.
pub(super) fn all_signs() -> impl Iterator<Item = ZeroSigns> {
    (0..8).map(|bits| ZeroSigns {
        negative_zeros_stay: bits & 4 == 0,
        cancellation_is_negative: bits & 2 != 0,
        underflow_keeps_sign: bits & 1 == 0,
    })
}

/// Ways to add: exactly, or aligned with every choice that an aligned sum has.
fn turn_addition(
    rule: &Rule,
    shape: Shape,
    signature: &Signature,
    class: Class,
    push: &mut dyn FnMut(&str, String, Rule),
) {
    let with = |added: Added| Rule { added, ..rule.clone() };
    push("addition", "exact".to_string(), with(Added::Exact));
    let current = aligned(&rule.added);
    let common = current.alignment[0].rounding;
    let uniform = |fraction_bits| Fused {
        alignment: vec![Alignment { fraction_bits, rounding: common, far: None }].into(),
        ..current.clone()
    };
    for fraction_bits in 0..=MOST_FRACTION_BITS {
        let fused = uniform(fraction_bits);
        push("addition", format!("aligned, F = {fraction_bits}"), with(Added::Fused(fused)));
    }
    if rule.added == Added::Exact {
        // Where all that is cut off is remembered, the sum is the exact one but for what is next to half way.
        for fraction_bits in 0..=MOST_FRACTION_BITS {
            let fused = Fused { sticky: true, ..uniform(fraction_bits) };
            let choice = format!("aligned with a sticky bit, F = {fraction_bits}");
            push("addition", choice, with(Added::Fused(fused)));
        }
    }
    let Added::Fused(fused) = &rule.added else {
        return;
    };
    for rounding in Rounding::EVERY {
        let mut changed = fused.clone();
        for alignment in &mut changed.alignment {
            alignment.rounding = rounding;
        }
        push("rounding at alignment", rounding.to_string(), with(Added::Fused(changed)));
    }
    for sticky in [false, true] {
        let choice = if sticky { "says that something was cut off" } else { "none" };
        push("sticky bit", choice.to_string(), with(Added::Fused(Fused { sticky, ..fused.clone() })));
    }
    for exponents in [Exponents::Raw, Exponents::Normalised] {
        let choice = match exponents {
            Exponents::Raw => "raw",
            Exponents::Normalised => "normalised",
        };
        push("exponents", choice.to_string(), with(Added::Fused(Fused { exponents, ..fused.clone() })));
    }
    // The first child, an accumulator where there is one, aligned otherwise than the rest.
    let first = fused.alignment[0];
    let rest = *fused.alignment_of(1);
    if shape.arity >= 2 {
        let pair = |first, rest| {
            with(Added::Fused(Fused {
                alignment: if first == rest { vec![first] } else { vec![first, rest] }.into(),
                ..fused.clone()
            }))
        };
        for fraction_bits in 0..=MOST_FRACTION_BITS {
            let choice = format!("F = {fraction_bits}");
            push(
                "alignment of the first summand",
                choice.clone(),
                pair(Alignment { fraction_bits, ..first }, rest),
            );
            push("alignment of the other summands", choice, pair(first, Alignment { fraction_bits, ..rest }));
        }
        for rounding in Rounding::EVERY {
            let choice = rounding.to_string();
            push(
                "rounding of the first summand",
                choice.clone(),
                pair(Alignment { rounding, ..first }, rest),
            );
            push("rounding of the other summands", choice, pair(first, Alignment { rounding, ..rest }));
        }
        push("far summands", "like all others".to_string(), pair(Alignment { far: None, ..first }, rest));
        // Rounded RZ anyway, nothing would change.
        let most = if first.rounding == Rounding::TowardZero { -1 } else { MOST_DISTANCE };
        for distance in 0..=most {
            let far = Some(Far { distance, rounding: Rounding::TowardZero });
            let choice = format!("the first, rounded RZ more than {distance} below");
            push("far summands", choice, pair(Alignment { far, ..first }, rest));
        }
    }
    if shape.arity >= 2 {
        push(
            "carry bits",
            "unlimited".to_string(),
            with(Added::Fused(Fused { carry: None, ..fused.clone() })),
        );
        for bits in 0..=MOST_CARRY_BITS {
            for (beyond, words) in [
                (Beyond::Wraps, "wraps"),
                (Beyond::Saturates, "saturates"),
                (Beyond::MagnitudeWraps, "wraps and keeps its sign"),
            ] {
                let choice = format!("{bits}, then the sum {words}");
                let carry = Some(Carry { bits, beyond });
                push("carry bits", choice, with(Added::Fused(Fused { carry, ..fused.clone() })));
            }
        }
    }
    for (zeros, choice) in ZEROS {
        push("exponents of zeros", choice.to_string(), with(Added::Fused(Fused { zeros, ..fused.clone() })));
    }
    let floor = |floor| with(Added::Fused(Fused { floor, ..fused.clone() }));
    push("floor of the largest exponent", "none".to_string(), floor(None));
    let lowest = signature.d.min_exponent();
    let tiny = (lowest - 40..=lowest + 2).filter(|_| class >= Class::Subnormal);
    for exponent in tiny.chain(ORDINARY_FLOORS.filter(|&exponent| exponent > lowest + 2)) {
        push("floor of the largest exponent", format!("{exponent}"), floor(Some(exponent)));
    }
}

/// Formats that an intermediate sum, or a product, may be rounded to, each once.
pub fn intermediate(signature: &Signature) -> Vec<Format> {
    let mut formats: Vec<Format> = Vec::new();
    for format in [signature.d, signature.c, format::FP64, format::FP32, format::FP16, format::BF16] {
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    formats
}

/// Formats that the result of a sum may be rounded to: that of the last one is the device's own.
pub fn of_results(signature: &Signature, is_root: bool) -> Vec<Format> {
    if is_root { vec![signature.d] } else { intermediate(signature) }
}

fn turn_rounding(
    round: RoundTo,
    shape: Shape,
    signature: &Signature,
    class: Class,
) -> Vec<(String, String, RoundTo)> {
    let mut turned = Vec::new();
    let mut push =
        |knob: &str, choice: String, round: RoundTo| turned.push((knob.to_string(), choice, round));
    for rounding in Rounding::EVERY {
        push("final rounding", rounding.to_string(), RoundTo { rounding, ..round });
    }
    for fraction_bits in 0..=round.format.fraction_bits {
        push("fraction bits of the result", format!("{fraction_bits}"), RoundTo { fraction_bits, ..round });
    }
    // Both at once: fewer bits look like an aligned sum as long as the rounding is wrong.
    for rounding in Rounding::EVERY {
        for fraction_bits in 0..round.format.fraction_bits {
            let choice = format!("{rounding} to {fraction_bits} bits");
            push("rounding and bits of the result", choice, RoundTo { rounding, fraction_bits, ..round });
        }
    }
    if !shape.is_root {
        for format in intermediate(signature) {
            push(
                "format of the intermediate sum",
                format.to_string(),
                RoundTo { format, fraction_bits: format.fraction_bits, ..round },
            );
            // The range of one format with as many bits as now: tf32 is such.
            if round.fraction_bits < format.fraction_bits {
                push(
                    "format of the intermediate sum",
                    format!("{format} with {} fraction bits", round.fraction_bits),
                    RoundTo { format, ..round },
                );
            }
            // With the wrong ends, a format with less range explains no more than one with all of it.
            let has_less_range = format.max_exponent() < signature.d.max_exponent();
            if has_less_range {
                let fraction_bits = round.fraction_bits.min(format.fraction_bits);
                let to_format = RoundTo { format, fraction_bits, ..round };
                for overflow in overflows(&to_format) {
                    for subnormals in all_subnormals() {
                        let choice = format!(
                            "{format} with {fraction_bits} fraction bits, overflow {}, subnormals {}",
                            overflow_words(overflow),
                            subnormal_words(subnormals)
                        );
                        push(
                            "format of the intermediate sum",
                            choice,
                            RoundTo { overflow, subnormals, ..to_format },
                        );
                    }
                }
            }
        }
    }
    // What has less range than d shows its ends in ordinary numbers.
    if class >= Class::Subnormal || round.format.min_exponent() > signature.d.min_exponent() {
        for subnormals in all_subnormals() {
            push("subnormal results", subnormal_words(subnormals), RoundTo { subnormals, ..round });
        }
    }
    if class >= Class::Infinite || round.format.max_exponent() < signature.d.max_exponent() {
        for overflow in overflows(&round) {
            push("overflow", overflow_words(overflow).to_string(), RoundTo { overflow, ..round });
        }
        // A sum that is aligned to fewer bits than its result has may show these by the largest number alone.
        let ends = [
            (round.rounding, Overflow::Largest),
            (Rounding::Up, Overflow::ByRounding),
            (Rounding::Down, Overflow::ByRounding),
        ];
        for (rounding, overflow) in ends {
            for fraction_bits in 0..round.format.fraction_bits {
                let choice = format!("{rounding} to {fraction_bits} bits, {}", overflow_words(overflow));
                push(
                    "overflow and bits of the result",
                    choice,
                    RoundTo { rounding, fraction_bits, overflow, ..round },
                );
            }
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_of_fewer_bits_is_a_choice_of_its_own() {
        let signature = Signature {
            k: 1,
            a: format::FP64,
            b: format::FP64,
            c: format::FP64,
            d: format::FP64,
            scale: None,
        };
        let shape = Shape { arity: 2, is_root: true, products_overflow: false };
        let round = RoundTo::nearest_even(format::FP64);
        // A sum of 2^1024 that is rounded to 41 bits, as machine 77 of seed 211 does.
        let largest = RoundTo { fraction_bits: 41, overflow: Overflow::Largest, ..round };
        let has =
            |class| turn_rounding(round, shape, &signature, class).iter().any(|turned| turned.2 == largest);
        assert!(has(Class::Infinite));
        assert!(!has(Class::Plain), "a format with the range of d shows its end in no ordinary number");
    }
}
