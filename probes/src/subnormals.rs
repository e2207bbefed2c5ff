//! What becomes of subnormal numbers: in a, b and c, out of products, out of sums?
//!
//! MMA-Sim paper, section III.F; Fasi et al. 2021, "Support for subnormal numbers". The paper asks
//! with 0.5·ε alone; here each subnormal also meets a partner that lifts the result back into the
//! normal range, so that flushing an operand and flushing the result are told apart.

use mmaprobe_model::Format;

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Probe, Signature, Summand};

const SOURCE: &str = "MMA-Sim paper, section III.F; Fasi et al. 2021, support for subnormal numbers";

/// Significands tried in subnormal operands: smallest, half of the smallest normal, largest.
fn patterns(format: &Format) -> Vec<Dyadic> {
    let quantum = format.min_quantum();
    let full = (1u64 << format.fraction_bits) - 1;
    let mut significands = vec![1, 1 << (format.fraction_bits - 1), full];
    significands.dedup();
    significands.into_iter().map(|significand| Dyadic::new(significand, quantum)).collect()
}

/// All probes about subnormal numbers.
pub fn probe(signature: &Signature) -> Vec<Probe> {
    vec![factors(signature), accumulator(signature), products(signature), sums(signature), floor(signature)]
}

/// A subnormal factor, times powers of two from small to large, with every other summand zero and
/// with a partner.
fn factors(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    for (format, other, is_a) in [(&signature.a, &signature.b, true), (&signature.b, &signature.a, false)] {
        if !format.has_subnormals() {
            continue;
        }
        for k in representatives(signature) {
            for value in patterns(format) {
                for negative in [false, true] {
                    let value = Dyadic { negative, ..value };
                    for exponent in [0, other.max_exponent() / 2, other.max_exponent(), other.min_exponent()]
                    {
                        let Some(factor) = place::exactly(other, Dyadic::power(exponent)) else { continue };
                        let Some(subnormal) = place::exactly(format, value) else { continue };
                        let mut question = place::zeros(signature);
                        (question.a[k], question.b[k]) =
                            if is_a { (subnormal, factor) } else { (factor, subnormal) };
                        dot_adds.push(question.clone());
                        dot_adds.extend(beside_negative_zeros(signature, &question, k));
                        if place::set(
                            &mut question,
                            signature,
                            Summand::C,
                            Dyadic::power(signature.c.min_exponent()),
                        ) {
                            dot_adds.push(question);
                        }
                    }
                }
            }
        }
    }
    Probe {
        name: "subnormals/factors",
        question: "are subnormal elements of A and B numbers, or zeros, and of which sign?",
        source: SOURCE,
        dot_adds,
    }
}

/// A subnormal c, alone and added to normal products of both signs.
fn accumulator(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let c = &signature.c;
    if c.has_subnormals() {
        for value in patterns(c) {
            for negative in [false, true] {
                let value = Dyadic { negative, ..value };
                dot_adds.extend(place::question(signature, &[(Summand::C, value)]));
                if let Some(zeros) = place::negative_zeros(signature) {
                    dot_adds.extend(place::exactly(c, value).map(|c| DotAdd { c, ..zeros }));
                }
                for k in representatives(signature) {
                    for above in 0..3 {
                        for partner_negative in [false, true] {
                            let partner = Dyadic {
                                negative: partner_negative,
                                ..Dyadic::power(c.min_exponent() + above)
                            };
                            dot_adds.extend(place::question(
                                signature,
                                &[(Summand::C, value), (Summand::Product(k), partner)],
                            ));
                        }
                    }
                }
            }
        }
    }
    Probe {
        name: "subnormals/accumulator",
        question: "is a subnormal c a number, or a zero, and of which sign?",
        source: SOURCE,
        dot_adds,
    }
}

/// Products of normal factors that fall below the normal range of d, alone and lifted by a partner.
fn products(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let smallest = signature.d.min_exponent();
    let depth = signature.d.fraction_bits as i32 + 3;
    for k in representatives(signature) {
        for below in (-1..=depth).chain([depth + 20]) {
            for significand in [1, 3, 7] {
                for negative in [false, true] {
                    let value = Dyadic { negative, significand, exponent: smallest - below };
                    let Some(mut question) = place::question(signature, &[(Summand::Product(k), value)])
                    else {
                        continue;
                    };
                    dot_adds.push(question.clone());
                    dot_adds.extend(beside_negative_zeros(signature, &question, k));
                    let lifted = Dyadic { negative: below % 2 == 0, ..Dyadic::power(smallest) };
                    if place::set(&mut question, signature, Summand::C, lifted) {
                        dot_adds.push(question);
                    }
                }
            }
        }
    }
    Probe {
        name: "subnormals/products",
        question: "are products below the smallest normal number kept, and rounded how?",
        source: SOURCE,
        dot_adds,
    }
}

/// Sums of two normal summands that come out subnormal or next to the smallest normal number:
/// 1.5ε − ε, and ε − 2^−t·ε, at which "tiny before rounding" and "tiny after rounding" differ.
fn sums(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let smallest = signature.d.min_exponent();
    let fraction_bits = signature.d.fraction_bits as i32;
    let summands: Vec<Summand> = signature.summands().collect();
    let pairs = pairs(signature);
    for &(i, j) in &pairs {
        for negative in [false, true] {
            let signed = |value: Dyadic| Dyadic { negative: value.negative != negative, ..value };
            // 1.5ε − ε
            dot_adds.extend(place::question(
                signature,
                &[(i, signed(Dyadic::new(3, smallest - 1))), (j, signed(-Dyadic::power(smallest)))],
            ));
            // ε − 2^−t·ε, with one bit and with two
            for t in (fraction_bits - 3).max(1)..=fraction_bits + 4 {
                for significand in [1, 3, 7] {
                    for minus in [false, true] {
                        let small = Dyadic { negative: minus, significand, exponent: smallest - t };
                        dot_adds.extend(place::question(
                            signature,
                            &[(i, signed(Dyadic::power(smallest))), (j, signed(small))],
                        ));
                    }
                }
            }
        }
    }
    // The same edge from three summands: a leading one that cancels leaves the tiny difference.
    if summands.len() > 2 {
        let few = representatives(signature).into_iter().chain([signature.k]);
        for index in few {
            let i = summands[index];
            let j = summands[(index + 1) % summands.len()];
            let k = summands[(index + 2) % summands.len()];
            for t in 1..=fraction_bits + 2 {
                for negative in [false, true] {
                    let small = Dyadic { negative, significand: 1, exponent: smallest - t };
                    dot_adds.extend(place::question(
                        signature,
                        &[(i, Dyadic::power(smallest)), (j, -Dyadic::new(3, smallest - 1)), (k, small)],
                    ));
                }
            }
        }
    }
    Probe {
        name: "subnormals/sums",
        question: "are sums below the smallest normal number kept, and when is one below it?",
        source: "MMA-Sim paper, section III.F; IEEE 754-2019, section 7.5",
        dot_adds,
    }
}

/// Products far below c's and d's range, several at once: do they add up, or does a floor under the
/// alignment exponent cut them off first?
fn floor(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let smallest = signature.d.min_exponent();
    let quantum = signature.d.min_quantum();
    for exponent in quantum - 12..=smallest + 2 {
        for significand in [1u64, 3] {
            for negative in [false, true] {
                let value = Dyadic { negative, significand, exponent };
                for count in [1, 2.min(signature.k), signature.k / 2, signature.k] {
                    let values: Vec<(Summand, Dyadic)> =
                        (0..count).map(|k| (Summand::Product(k), value)).collect();
                    if count > 0 {
                        dot_adds.extend(place::question(signature, &values));
                    }
                }
            }
        }
    }
    dot_adds.sort();
    dot_adds.dedup();
    Probe {
        name: "subnormals/floor",
        question: "do many products, each below the result's last bit, add up?",
        source: "facts/catalog.yaml, open question: a floor under e_max",
        dot_adds,
    }
}

/// The same product with −0 on every other summand: only there does the sign of a zero that it may
/// have become show.
fn beside_negative_zeros(signature: &Signature, question: &DotAdd, k: usize) -> Option<DotAdd> {
    let mut beside = place::negative_zeros(signature)?;
    (beside.a[k], beside.b[k]) = (question.a[k], question.b[k]);
    Some(beside)
}

/// A few products that stand for all: the first, the second, the middle and the last.
pub(crate) fn representatives(signature: &Signature) -> Vec<usize> {
    let mut indices = vec![0, 1, signature.k / 2, signature.k - 1];
    indices.retain(|&k| k < signature.k);
    indices.sort_unstable();
    indices.dedup();
    indices
}

/// A few ordered pairs of summands that stand for all.
pub(crate) fn pairs(signature: &Signature) -> Vec<(Summand, Summand)> {
    let mut members: Vec<Summand> = representatives(signature).into_iter().map(Summand::Product).collect();
    members.push(Summand::C);
    let mut pairs: Vec<(Summand, Summand)> = Vec::new();
    for &i in &members {
        for &j in &members {
            if i != j {
                pairs.push((i, j));
            }
        }
    }
    pairs
}
