//! How products are formed.

use mmaprobe_model::Rounding;
use mmaprobe_model::format::{self, Format, RoundTo};
use mmaprobe_model::tree::{Added, Exponents, Model, Product};
use mmaprobe_probes::Signature;

use super::rule::intermediate;
use super::words::{all_subnormals, overflow_words, overflows, subnormal_words};
use super::{Knob, Turned};
use crate::inference::evidence::Class;

/// Ways to form products: exactly; rounded in each way to each format that products do not always fit;
/// and, where they are rounded now, with one thing about it changed.
pub(super) fn products(
    current: Product,
    signature: &Signature,
    class: Class,
) -> Vec<(&'static str, Product)> {
    let mut all = vec![("products", Product::Exact)];
    let formats = formats(signature);
    for &format in &formats {
        // The rounding at once: where products fit but for their range, no other answer leads to it.
        for rounding in Rounding::EVERY {
            all.push(("products", Product::Rounded(RoundTo { rounding, ..RoundTo::nearest_even(format) })));
        }
        if class >= Class::Infinite {
            all.push(("products", Product::OverflowsAt { exponent: format.max_exponent() + 1 }));
        }
    }
    if class >= Class::Subnormal {
        let mut lowest: Vec<i32> = formats.iter().map(|format| format.min_exponent()).collect();
        lowest.extend([format::FP32, format::FP16].map(|format| format.min_exponent()));
        let of_results = signature.d.min_exponent();
        lowest.extend(of_results - 40..=of_results + 2);
        lowest.sort_unstable();
        lowest.dedup();
        for exponent in lowest {
            for sign_kept in [true, false] {
                all.push(("products", Product::FlushedBelow { exponent, sign_kept }));
            }
        }
    }
    let Product::Rounded(round) = current else {
        return all;
    };
    let mut push = |knob, round| all.push((knob, Product::Rounded(round)));
    for rounding in Rounding::EVERY {
        push("rounding of products", RoundTo { rounding, ..round });
    }
    for fraction_bits in 0..=round.format.fraction_bits {
        push("fraction bits of products", RoundTo { fraction_bits, ..round });
    }
    if class >= Class::Subnormal {
        for subnormals in all_subnormals() {
            push("subnormal products", RoundTo { subnormals, ..round });
        }
    }
    if class >= Class::Infinite {
        for overflow in overflows(&round) {
            push("overflow of products", RoundTo { overflow, ..round });
        }
    }
    all
}

/// Models in which several things about the rounding of products are different at once: the format, the
/// rounding, and the fraction bits; or, where range matters, what becomes of results at either end of it.
pub fn turn_products(model: &Model, signature: &Signature, class: Class) -> Vec<Turned> {
    let mut turned = Vec::new();
    let mut push = |round: RoundTo| {
        let product = Product::Rounded(round);
        let knob = Knob { what: "products as a whole".to_string(), rule: None };
        let choice = product_words(&product);
        turned.push(Turned { knob, choice, model: Model { product, ..model.clone() } });
    };
    let exact_bits = signature.a.fraction_bits + signature.b.fraction_bits + 1;
    for format in intermediate(signature) {
        let is_current = matches!(model.product, Product::Rounded(round) if round.format == format);
        let holds_all = holds_every_product(&format, signature);
        let is_rounded = matches!(model.product, Product::Rounded(_));
        if class >= Class::Subnormal && holds_all && !is_rounded {
            continue;
        }
        // With fewer bits than products have, any format rounds them.
        let most = if holds_all { exact_bits.min(format.fraction_bits) } else { format.fraction_bits };
        for rounding in Rounding::EVERY {
            let plain = RoundTo { rounding, ..RoundTo::nearest_even(format) };
            if class < Class::Subnormal {
                for fraction_bits in 0..=most {
                    push(RoundTo { fraction_bits, ..plain });
                }
                continue;
            }
            // As many bits as before: what other answers show of them is the same in a format with another range.
            let before = match model.product {
                Product::Rounded(round) => round.fraction_bits.min(format.fraction_bits),
                _ => format.fraction_bits,
            };
            let all_bits =
                if is_current || before == format.fraction_bits { None } else { Some(format.fraction_bits) };
            for fraction_bits in std::iter::once(before).chain(all_bits) {
                for subnormals in all_subnormals() {
                    let last =
                        if class >= Class::Infinite { overflows(&plain) } else { vec![plain.overflow] };
                    for overflow in last {
                        push(RoundTo { fraction_bits, subnormals, overflow, ..plain });
                    }
                }
            }
        }
    }
    turned
}

/// Models in which products have the exponents of normalised numbers, as if they were rounded to a format that holds
/// them, and all other summands their own; where those of all summands are normalised now. Answers from subnormal
/// operands tell the one from the other.
pub fn turn_product_exponents(model: &Model, signature: &Signature) -> Vec<Turned> {
    let is_normalised =
        |added: &Added| matches!(added, Added::Fused(fused) if fused.exponents == Exponents::Normalised);
    if model.product != Product::Exact || !model.tree.rules.iter().any(|rule| is_normalised(&rule.added)) {
        return Vec::new();
    }
    let mut raw = model.clone();
    for rule in &mut raw.tree.rules {
        if let Added::Fused(fused) = &mut rule.added {
            fused.exponents = Exponents::Raw;
        }
    }
    let product_bits = signature.a.fraction_bits + signature.b.fraction_bits + 1;
    let formats = intermediate(signature).into_iter().filter(|format| format.fraction_bits >= product_bits);
    formats
        .map(|format| {
            let product = Product::Rounded(RoundTo::nearest_even(format));
            let knob = Knob { what: "exponents of products".to_string(), rule: None };
            let choice = format!("{}, exponents of other summands raw", product_words(&product));
            Turned { knob, choice, model: Model { product, ..raw.clone() } }
        })
        .collect()
}

/// Formats that products do not always fit, each once.
fn formats(signature: &Signature) -> Vec<Format> {
    let mut formats = intermediate(signature);
    formats.retain(|format| !holds_every_product(format, signature));
    formats
}

/// Whether a format holds every product as a normal number, so that rounding to it changes nothing.
fn holds_every_product(format: &Format, signature: &Signature) -> bool {
    let (a, b) = (&signature.a, &signature.b);
    a.fraction_bits + b.fraction_bits < format.fraction_bits
        && a.min_quantum() + b.min_quantum() >= format.min_exponent()
        && a.max_exponent() + b.max_exponent() < format.max_exponent()
}

/// A way to form products in words.
pub(super) fn product_words(product: &Product) -> String {
    match product {
        Product::Exact => "exact".to_string(),
        Product::OverflowsAt { exponent } => format!("exact, infinite from 2^{exponent} on"),
        Product::FlushedBelow { exponent, sign_kept } => {
            format!("exact, {} below 2^{exponent}", if *sign_kept { "zeros of their sign" } else { "+0" })
        }
        Product::Rounded(round) => format!(
            "rounded {} to {}{}, subnormals {}, overflow {}",
            round.rounding,
            round.format,
            if round.fraction_bits < round.format.fraction_bits {
                format!(" with {} fraction bits", round.fraction_bits)
            } else {
                String::new()
            },
            subnormal_words(round.subnormals),
            overflow_words(round.overflow)
        ),
    }
}
