//! Which sign has a zero, and does a zero have an exponent?
//!
//! MMA-Sim paper, section III.F ("−0.0 + Σ (+0.0)·(−0.0)"); IEEE 754-2019, section 6.3. The zero
//! product's exponent is an open question of the published models.

use crate::place::{self, Dyadic, replaced};
use crate::question::{DotAdd, Probe, Signature, Summand};
use crate::subnormals::{pairs, representatives};

/// All probes about zeros.
pub fn probe(signature: &Signature) -> Vec<Probe> {
    vec![signs(signature), cancellations(signature), exponents(signature)]
}

/// All summands zero, with every choice of signs among representatives.
fn signs(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let zero = |negative| Dyadic { negative, significand: 0, exponent: 0 };
    let negative_a = place::exactly(&signature.a, zero(true));
    let negative_b = place::exactly(&signature.b, zero(true));
    let negative_c = place::exactly(&signature.c, zero(true));
    let one_a = place::exactly(&signature.a, Dyadic::power(0));
    let mut all_negative = place::zeros(signature);
    if let Some(minus) = negative_a {
        all_negative.a.fill(minus);
    }
    for c in [Some(all_negative.c), negative_c].into_iter().flatten() {
        let plain = DotAdd { c, ..place::zeros(signature) };
        let minus = DotAdd { c, ..all_negative.clone() };
        for k in representatives(signature) {
            // One product of the other sign among equals.
            dot_adds.push(DotAdd { a: replaced(&plain.a, k, all_negative.a[k]), ..plain.clone() });
            dot_adds.push(DotAdd { a: replaced(&minus.a, k, plain.a[k]), ..minus.clone() });
            if let Some(minus_b) = negative_b {
                dot_adds.push(DotAdd { b: replaced(&minus.b, k, minus_b), ..minus.clone() });
                // −0 from a non-zero factor.
                if let Some(one) = one_a {
                    dot_adds.push(DotAdd {
                        a: replaced(&plain.a, k, one),
                        b: replaced(&plain.b, k, minus_b),
                        ..plain.clone()
                    });
                }
            }
        }
        dot_adds.extend([plain, minus]);
    }
    Probe {
        name: "zeros/signs",
        question: "which sign has the sum of zeros of these signs?",
        source: "MMA-Sim paper, section III.F; IEEE 754-2019, section 6.3",
        dot_adds,
    }
}

/// x − x on every pair, with zeros of both signs around it.
fn cancellations(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    for (i, j) in pairs(signature) {
        for exponent in [0, signature.d.min_exponent() + 2] {
            let value = Dyadic::new(3, exponent);
            let Some(question) = place::question(signature, &[(i, value), (j, -value)]) else { continue };
            dot_adds.push(question.clone());
            let mut signed = question;
            let minus = Dyadic { negative: true, significand: 0, exponent: 0 };
            let mut changed = false;
            for other in signature.summands().filter(|&s| s != i && s != j) {
                changed |= place::set(&mut signed, signature, other, minus);
            }
            if changed {
                dot_adds.push(signed);
            }
        }
    }
    Probe {
        name: "zeros/cancellation",
        question: "which sign has x − x?",
        source: "IEEE 754-2019, section 6.3",
        dot_adds,
    }
}

/// A product that is zero because one factor is, while the other is large, beside a small summand:
/// if the zero counts in the largest exponent, the small summand is lost.
fn exponents(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let summands: Vec<Summand> = signature.summands().collect();
    let low = signature.d.min_exponent().max(place::reach(signature).0);
    for k in representatives(signature) {
        for (zero_in_a, format, other) in
            [(true, &signature.b, &signature.a), (false, &signature.a, &signature.b)]
        {
            let Some(zero) = place::exactly(other, Dyadic::new(0, 0)) else { continue };
            let span = format.max_exponent() - format.min_exponent();
            for step in 0..=6 {
                let Some(large) =
                    place::exactly(format, Dyadic::power(format.min_exponent() + span * step / 6))
                else {
                    continue;
                };
                for &small in &[summands[(k + 1) % summands.len()], Summand::C] {
                    if small == Summand::Product(k) {
                        continue;
                    }
                    for value in [
                        Dyadic::power(low),
                        Dyadic::new(5, low),
                        -Dyadic::new(5, low - 1),
                        Dyadic::new(5, -2),
                    ] {
                        let Some(mut question) = place::question(signature, &[(small, value)]) else {
                            continue;
                        };
                        (question.a[k], question.b[k]) =
                            if zero_in_a { (zero, large) } else { (large, zero) };
                        dot_adds.push(question);
                    }
                }
            }
        }
    }
    Probe {
        name: "zeros/exponents",
        question: "does 0·2^e push small summands out of the sum?",
        source: "facts/catalog.yaml, open question: a zero product's exponent",
        dot_adds,
    }
}
