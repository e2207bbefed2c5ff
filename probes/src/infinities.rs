//! When does a result become infinite?
//!
//! Overflow of products, of intermediate sums, and the six threshold conditions of the MMA-Sim
//! paper, section III.F; infinite operands, alone and against each other.

use mmaprobe_model::format::Decoded;

use crate::place::{self, Dyadic, with_factors};
use crate::question::{Probe, Signature, Summand};
use crate::subnormals::{pairs, representatives};

const SOURCE: &str = "MMA-Sim paper, section III.F";

/// All probes about infinities and overflow.
pub fn probe(signature: &Signature) -> Vec<Probe> {
    vec![operands(signature), products(signature), sums(signature), thresholds(signature)]
}

/// Infinite operands times numbers and infinities, and against infinite partners.
fn operands(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let infinity = |format: &mmaprobe_model::Format, negative| {
        format.has_infinity().then(|| format.pack(Decoded::Infinite { negative }))
    };
    for negative in [false, true] {
        if let Some(c) = infinity(&signature.c, negative) {
            let mut question = place::zeros(signature);
            question.c = c;
            dot_adds.push(question);
        }
        for k in representatives(signature) {
            let one_b = place::exactly(&signature.b, -Dyadic::power(0));
            let one_a = place::exactly(&signature.a, Dyadic::power(0));
            let infinite_a = infinity(&signature.a, negative);
            let infinite_b = infinity(&signature.b, true);
            for (a, b) in [(infinite_a, one_b), (one_a, infinite_b), (infinite_a, infinite_b)] {
                let (Some(a), Some(b)) = (a, b) else { continue };
                let question = with_factors(signature, k, a, b);
                dot_adds.push(question.clone());
                for c_negative in [false, true] {
                    if let Some(c) = infinity(&signature.c, c_negative) {
                        let mut question = question.clone();
                        question.c = c;
                        dot_adds.push(question);
                    }
                }
                for other in representatives(signature) {
                    if other != k {
                        let mut question = question.clone();
                        (question.a[other], question.b[other]) = (a, b);
                        dot_adds.push(question);
                    }
                }
            }
        }
    }
    Probe {
        name: "infinities/operands",
        question: "what do infinite operands make of the result?",
        source: SOURCE,
        dot_adds,
    }
}

/// Products at and beyond the largest number of d, taken back by c or by another product.
fn products(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let largest_product = signature.a.max_exponent() + signature.b.max_exponent();
    let mut exponents = vec![largest_product, largest_product - 1];
    for format in [&signature.c, &signature.d, &mmaprobe_model::format::FP32, &mmaprobe_model::format::FP16] {
        exponents.extend(format.max_exponent() - 1..=format.max_exponent() + 2);
    }
    exponents.retain(|&e| e <= largest_product);
    exponents.sort_unstable();
    exponents.dedup();
    for k in representatives(signature) {
        for &exponent in &exponents {
            for significand in [1, 3] {
                for negative in [false, true] {
                    let value =
                        Dyadic { negative, significand, exponent: exponent + 1 - significand as i32 / 2 - 1 };
                    let Some(question) = place::question(signature, &[(Summand::Product(k), value)]) else {
                        continue;
                    };
                    dot_adds.push(question.clone());
                    for partner in signature.summands().filter(|&s| s != Summand::Product(k)) {
                        let is_representative = match partner {
                            Summand::Product(other) => representatives(signature).contains(&other),
                            Summand::C => true,
                        };
                        if !is_representative {
                            continue;
                        }
                        let largest =
                            Dyadic { exponent: value.exponent.min(signature.c.max_exponent() - 1), ..-value };
                        for back in [-value, largest] {
                            let mut question = question.clone();
                            if place::set(&mut question, signature, partner, back) {
                                dot_adds.push(question);
                            }
                        }
                    }
                    // An infinite c against an overflowed product.
                    if signature.c.has_infinity() {
                        let mut question = question;
                        question.c = signature.c.pack(Decoded::Infinite { negative: !negative });
                        dot_adds.push(question);
                    }
                }
            }
        }
    }
    Probe {
        name: "infinities/products",
        question: "can a product overflow before the sum does?",
        source: SOURCE,
        dot_adds,
    }
}

/// 2^E + 2^E − 2^E: does the intermediate sum overflow?
fn sums(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let summands: Vec<Summand> = signature.summands().collect();
    let count = summands.len();
    for format in [&signature.d, &signature.c] {
        let value = Dyadic::power(format.max_exponent());
        for (i, j) in pairs(signature) {
            for negative in [false, true] {
                let signed = Dyadic { negative, ..value };
                dot_adds.extend(place::question(signature, &[(i, signed), (j, signed)]));
                for step in 1..count.min(5) {
                    let third = summands[(j.index(signature.k) + step) % count];
                    if third != i && third != j {
                        dot_adds.extend(place::question(
                            signature,
                            &[(i, signed), (j, signed), (third, -signed)],
                        ));
                    }
                }
            }
        }
    }
    Probe {
        name: "infinities/sums",
        question: "can an intermediate sum overflow: 2^E + 2^E − 2^E?",
        source: SOURCE,
        dot_adds,
    }
}

/// ±((2 − u)·2^E + x·u·2^E), x = 0.25, 0.5, 0.75 and nearby: where exactly overflow begins.
fn thresholds(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let d = &signature.d;
    for (i, j) in pairs(signature) {
        for negative in [false, true] {
            let signed = |value: Dyadic| Dyadic { negative, ..value };
            let lsb = d.max_exponent() - d.fraction_bits as i32;
            // The largest number on one summand, or the largest power of two and the rest on others.
            let largest = Dyadic::new(d.max_significand(), lsb);
            for numerator in 1..=9u64 {
                let step = Dyadic::new(numerator, lsb - 2);
                dot_adds.extend(place::question(signature, &[(i, signed(largest)), (j, signed(step))]));
                let beyond = Dyadic::new(numerator, lsb - 3);
                dot_adds.extend(place::question(
                    signature,
                    &[(i, signed(Dyadic::power(d.max_exponent() + 1))), (j, -signed(beyond))],
                ));
            }
        }
    }
    Probe {
        name: "infinities/thresholds",
        question: "from where on is a sum infinite: (2 − u)·2^E + x·u·2^E?",
        source: "MMA-Sim paper, section III.F, six threshold conditions",
        dot_adds,
    }
}
