//! How does a sum round, and to where?
//!
//! The four inputs of Table I tell the five families of modes apart, the four of Table II what
//! round-to-nearest does with ties; both at both signs. The ulp u is not known beforehand: the
//! tables are asked at every cut that a ladder has shown, and at the format's own
//! (MMA-Sim paper, section III.E, Tables I and II).

use crate::place::{self, Dyadic};
use crate::precision;
use crate::question::{DotAdd, Probe, Signature, Summand};
use crate::subnormals::pairs;

/// The numerators over 4 of the inputs ±(1 + x·u): Table I (0.75, 0.25), Table II (0.5, 1.5).
const QUARTERS: [u64; 4] = [3, 1, 2, 6];

/// Tables I and II where 1 sits on `one` and x·u on `small`, u = 2^−`cut`.
pub fn tables(signature: &Signature, one: Summand, small: Summand, cut: i32) -> Vec<DotAdd> {
    asked(signature, &[(one, Dyadic::power(0))], small, cut)
}

/// The same with −1 added on a third summand: what is left is what the small summand was rounded to
/// when it was aligned.
pub fn cancelled_tables(
    signature: &Signature,
    (minus, plus, small): (Summand, Summand, Summand),
    cut: i32,
) -> Vec<DotAdd> {
    asked(signature, &[(minus, -Dyadic::power(0)), (plus, Dyadic::power(0))], small, cut)
}

fn asked(signature: &Signature, large: &[(Summand, Dyadic)], small: Summand, cut: i32) -> Vec<DotAdd> {
    let unit = precision::unit(signature);
    let mut questions = Vec::new();
    for quarters in QUARTERS {
        for negative in [false, true] {
            for opposed in [false, true] {
                let mut values: Vec<(Summand, Dyadic)> = large
                    .iter()
                    .map(|&(s, v)| {
                        (
                            s,
                            Dyadic {
                                negative: v.negative != (negative != opposed),
                                exponent: v.exponent + unit,
                                ..v
                            },
                        )
                    })
                    .collect();
                values.push((small, Dyadic { negative, significand: quarters, exponent: unit - cut - 2 }));
                questions.extend(place::question(signature, &values));
            }
        }
    }
    questions
}

/// Both tables on every summand at every cut.
pub fn probe(signature: &Signature, cuts: &[i32]) -> Vec<Probe> {
    let summands: Vec<Summand> = signature.summands().collect();
    let count = summands.len();
    let mut plain = Vec::new();
    let mut cancelled = Vec::new();
    for &cut in cuts {
        for index in 0..count {
            let small = summands[index];
            let one = summands[(index + 1) % count];
            plain.extend(tables(signature, one, small, cut));
            if count > 2 {
                let minus = summands[(index + 2) % count];
                cancelled.extend(cancelled_tables(signature, (minus, one, small), cut));
            }
        }
    }
    vec![
        Probe {
            name: "rounding/tables",
            question: "to which neighbour are ±(1 + x·u) rounded, x = 0.25, 0.5, 0.75, 1.5?",
            source: "MMA-Sim paper, section III.E, Tables I and II",
            dot_adds: plain,
        },
        Probe {
            name: "rounding/alignment",
            question: "what is left of x·u after ±(1 − 1) + x·u, x = 0.25, 0.5, 0.75, 1.5?",
            source: "MMA-Sim paper, sections III.D and III.E combined",
            dot_adds: cancelled,
        },
    ]
}

/// Ties with something small beside them: a product halfway between two neighbours of the result,
/// and on another summand ±2^−t, for t from just below the tie to far beyond any F.
///
/// An exact sum, and one with a sticky bit, sees the small summand at any distance; a sum that keeps
/// F bits does not (MMA-Sim paper, section III.E, Table II, with a fourth term).
pub fn sticky(signature: &Signature) -> Probe {
    let unit = precision::unit(signature);
    let fraction_bits = signature.d.fraction_bits as i32;
    let tie = 1u64 << (fraction_bits + 1);
    let mut dot_adds = Vec::new();
    for (i, j) in pairs(signature) {
        // The first odd significands above 2^(fraction bits + 1) that the summand can hold: ties next
        // to an even and next to an odd neighbour.
        let ties = [1u64, 3].into_iter().filter_map(|residue| {
            (0..64).map(|step| tie + residue + 4 * step).find(|&significand| {
                let value = Dyadic::new(significand, unit - fraction_bits - 1);
                place::question(signature, &[(i, value)]).is_some()
            })
        });
        for significand in ties {
            for t in (2..=precision::LONGEST).step_by(2) {
                for negative in [false, true] {
                    let small = Dyadic { negative, ..Dyadic::power(unit - fraction_bits - t) };
                    let large = Dyadic::new(significand, unit - fraction_bits - 1);
                    dot_adds.extend(place::question(signature, &[(i, large), (j, small)]));
                }
            }
        }
    }
    Probe {
        name: "rounding/sticky",
        question: "does a tiny summand decide a tie, however far below it is?",
        source: "MMA-Sim paper, section III.E, Table II; Fasi et al. 2021, extra bits",
        dot_adds,
    }
}

/// Products whose significands are 2 or more, where a raw and a normalised exponent differ:
/// 1.5·1.5 = 2.25 against 1.125·2 (MMA-Sim paper, section IV.C, step 2).
pub fn exponents(signature: &Signature, cuts: &[i32]) -> Probe {
    let unit = precision::unit(signature);
    let summands: Vec<Summand> = signature.summands().collect();
    let count = summands.len();
    let mut dot_adds = Vec::new();
    let half =
        |format: &mmaprobe_model::Format, exponent| place::exactly(format, Dyadic::new(3, exponent - 1));
    for k in 0..signature.k {
        let small = summands[(k + 1) % count];
        for &cut in cuts {
            for below in -1..=1 {
                for negative in [false, true] {
                    let value = Dyadic { negative, significand: 3, exponent: unit - cut - 1 + below };
                    let Some(mut question) = place::question(signature, &[(small, value)]) else { continue };
                    let (at_a, at_b) = (unit / 2, unit - unit / 2);
                    if let (Some(a), Some(b)) = (half(&signature.a, at_a), half(&signature.b, at_b)) {
                        (question.a[k], question.b[k]) = (a, b);
                        dot_adds.push(question.clone());
                        // The product taken away again leaves what became of the small summand.
                        let third = summands[(k + 2) % count];
                        let removed = Dyadic { negative: true, significand: 9, exponent: unit - 2 };
                        if count > 2 && place::set(&mut question, signature, third, removed) {
                            dot_adds.push(question);
                        }
                    }
                }
            }
        }
    }
    Probe {
        name: "rounding/exponents",
        question: "is 1.5·1.5 aligned as 2.25·2^0 or as 1.125·2^1?",
        source: "MMA-Sim paper, section IV.C, step 2",
        dot_adds,
    }
}
