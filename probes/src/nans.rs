//! Where do NaNs come from, and which NaN is it?
//!
//! Both origins of the MMA-Sim paper, section III.F (0·∞ and ∞ − ∞), and NaN operands with payloads
//! that tell which of them was handed on.

use mmaprobe_model::Format;
use mmaprobe_model::format::{Decoded, Specials};

use crate::place::{self, Dyadic, replaced};
use crate::question::{DotAdd, Probe, Signature, Summand};
use crate::subnormals::representatives;

/// All probes about NaNs.
pub fn probe(signature: &Signature) -> Vec<Probe> {
    let mut probes = vec![origins(signature), operands(signature), several(signature)];
    probes.extend(scales(signature));
    probes
}

fn infinity(format: &Format, negative: bool) -> Option<u64> {
    format.has_infinity().then(|| format.pack(Decoded::Infinite { negative }))
}

/// NaN patterns of a format: quiet and signalling, both signs, payloads that survive truncation to
/// the top and payloads that do not.
fn patterns(format: &Format, index: u64) -> Vec<u64> {
    if !format.has_nan() {
        return Vec::new();
    }
    if !matches!(format.specials, Specials::Ieee) {
        return vec![format.pack(Decoded::Nan { negative: false, fraction: 0 })];
    }
    let quiet = 1u64 << (format.fraction_bits - 1);
    let payload = (1 + index) & (quiet - 1).max(1);
    let top = (quiet >> 1).max(1);
    let mut fractions = vec![quiet, quiet | payload, payload, top | (payload >> 1), 2 * quiet - 1];
    fractions.retain(|&fraction| fraction != 0 && fraction < 2 * quiet);
    fractions.sort_unstable();
    fractions.dedup();
    let negative = fractions.iter().map(|&fraction| format.pack(Decoded::Nan { negative: true, fraction }));
    let positive = fractions.iter().map(|&fraction| format.pack(Decoded::Nan { negative: false, fraction }));
    positive.chain(negative).collect()
}

/// 0·∞ on a product, ∞ − ∞ on a pair of summands.
fn origins(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let zero_a = place::exactly(&signature.a, Dyadic::new(0, 0));
    let zero_b = place::exactly(&signature.b, Dyadic::new(0, 0));
    let one_b = place::exactly(&signature.b, Dyadic::power(0));
    for k in representatives(signature) {
        for negative in [false, true] {
            let pairs =
                [(infinity(&signature.a, negative), zero_b), (zero_a, infinity(&signature.b, negative))];
            for (a, b) in pairs {
                let (Some(a), Some(b)) = (a, b) else { continue };
                let mut question = place::zeros(signature);
                (question.a[k], question.b[k]) = (a, b);
                dot_adds.push(question.clone());
                if place::set(&mut question, signature, Summand::C, -Dyadic::power(0)) {
                    dot_adds.push(question);
                }
            }
            let (Some(a), Some(b)) = (infinity(&signature.a, negative), one_b) else { continue };
            let mut question = place::zeros(signature);
            (question.a[k], question.b[k]) = (a, b);
            if let Some(c) = infinity(&signature.c, !negative) {
                dot_adds.push(DotAdd { c, ..question.clone() });
            }
            for other in representatives(signature) {
                if other != k {
                    let mut question = question.clone();
                    let opposite = infinity(&signature.a, !negative).unwrap_or(a);
                    (question.a[other], question.b[other]) = (opposite, b);
                    dot_adds.push(question);
                }
            }
        }
    }
    Probe {
        name: "nans/origins",
        question: "do 0·∞ and ∞ − ∞ give NaN, and which?",
        source: "MMA-Sim paper, section III.F",
        dot_adds,
    }
}

/// One NaN operand.
fn operands(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let base = ones(signature);
    for k in representatives(signature) {
        for bits in patterns(&signature.a, k as u64) {
            dot_adds.push(DotAdd { a: replaced(&base.a, k, bits), ..base.clone() });
        }
        for bits in patterns(&signature.b, 8 + k as u64) {
            dot_adds.push(DotAdd { b: replaced(&base.b, k, bits), ..base.clone() });
        }
    }
    for bits in patterns(&signature.c, 16) {
        dot_adds.push(DotAdd { c: bits, ..base.clone() });
    }
    Probe {
        name: "nans/operands",
        question: "what becomes of a NaN operand's sign and payload?",
        source: "IEEE 754-2019, section 6.2",
        dot_adds,
    }
}

/// Several NaNs at once, each with its own payload, and NaN operands beside 0·∞ and ∞ − ∞.
fn several(signature: &Signature) -> Probe {
    let mut dot_adds = Vec::new();
    let base = ones(signature);
    let pick = |format: &Format, index: u64, which: usize| {
        let all = patterns(format, index);
        if all.is_empty() { None } else { Some(all[which % all.len()]) }
    };
    for which in 0..4 {
        for k in representatives(signature) {
            let a = pick(&signature.a, 1, which);
            let b = pick(&signature.b, 2, which + 5);
            let c = pick(&signature.c, 3, which + 2);
            for mask in 1..8u32 {
                let mut question = base.clone();
                if let (1, Some(a)) = (mask & 1, a) {
                    question.a[k] = a;
                }
                if let (2, Some(b)) = (mask & 2, b) {
                    question.b[k] = b;
                }
                if let (4, Some(c)) = (mask & 4, c) {
                    question.c = c;
                }
                dot_adds.push(question.clone());
                for other in representatives(signature) {
                    if other == k {
                        continue;
                    }
                    if let Some(a) = pick(&signature.a, 4 + other as u64, which + 1) {
                        dot_adds.push(DotAdd { a: replaced(&question.a, other, a), ..question.clone() });
                    }
                    let (Some(a), Some(b)) =
                        (infinity(&signature.a, false), place::exactly(&signature.b, Dyadic::new(0, 0)))
                    else {
                        continue;
                    };
                    let (a, b) = (replaced(&question.a, other, a), replaced(&question.b, other, b));
                    dot_adds.push(DotAdd { a, b, ..question.clone() });
                }
            }
            // NaN in c beside 0·∞ in the same product.
            if let (Some(a), Some(b)) =
                (infinity(&signature.a, false), place::exactly(&signature.b, Dyadic::new(0, 0)))
            {
                let (a, b) = (replaced(&base.a, k, a), replaced(&base.b, k, b));
                dot_adds.push(DotAdd { a, b, c: c.unwrap_or(base.c), ..base.clone() });
            }
        }
    }
    dot_adds.sort();
    dot_adds.dedup();
    Probe {
        name: "nans/several",
        question: "which of several NaNs is handed on?",
        source: "IEEE 754-2019, section 6.2.3; Intel SDM, volume 1, table 4-7",
        dot_adds,
    }
}

/// NaN scales, alone, with each other and beside NaNs in c and in products. `None` if no scale is a NaN.
fn scales(signature: &Signature) -> Option<Probe> {
    let scale = signature.scale?;
    let nan = *patterns(&scale.format, 0).first()?;
    let base = ones(signature);
    let mut blocks: Vec<usize> = representatives(signature).into_iter().map(|k| k / scale.block).collect();
    blocks.dedup();
    let mut dot_adds = Vec::new();
    for &block in &blocks {
        for is_of_b in [false, true] {
            let mut question = base.clone();
            let scales = if is_of_b { &mut question.sb } else { &mut question.sa };
            scales[block] = nan;
            dot_adds.push(question.clone());
            let of_c = patterns(&signature.c, 3).into_iter().map(|c| DotAdd { c, ..question.clone() });
            dot_adds.extend(of_c);
            for k in representatives(signature) {
                let of_a = patterns(&signature.a, 4 + k as u64).into_iter().take(1);
                dot_adds.extend(of_a.map(|a| DotAdd { a: replaced(&base.a, k, a), ..question.clone() }));
                let of_b = patterns(&signature.b, 5 + k as u64).into_iter().take(1);
                dot_adds.extend(of_b.map(|b| DotAdd { b: replaced(&base.b, k, b), ..question.clone() }));
            }
            for &other in &blocks {
                dot_adds.push(DotAdd { sa: replaced(&question.sa, other, nan), ..question.clone() });
            }
        }
    }
    dot_adds.sort();
    dot_adds.dedup();
    Some(Probe {
        name: "nans/scales",
        question: "is what a NaN scale makes handed on before other NaNs?",
        source: "OCP Microscaling Formats 1.0; IEEE 754-2019, section 6.2.3",
        dot_adds,
    })
}

/// All factors 1 and c = 1, so that no zero meets an infinity by accident.
fn ones(signature: &Signature) -> DotAdd {
    let mut question = place::zeros(signature);
    for summand in signature.summands() {
        place::set(&mut question, signature, summand, Dyadic::power(0));
    }
    question
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{E2M1, FP32, UE8M0};
    use mmaprobe_model::tree::Scale;

    use super::*;

    #[test]
    fn nan_scales_meet_a_nan_in_c() {
        let scale = Some(Scale { format: UE8M0, block: 4 });
        let signature = Signature { k: 16, a: E2M1, b: E2M1, c: FP32, d: FP32, scale };
        let asked = scales(&signature).expect("ue8m0 has a NaN").dot_adds;
        for block in [0, 2, 3] {
            let of_block =
                |question: &&DotAdd| question.sb[block] == 0xff && f32::from_bits(question.c as u32).is_nan();
            let payloads: std::collections::BTreeSet<u64> =
                asked.iter().filter(of_block).map(|question| question.c).collect();
            assert!(payloads.len() > 5, "block {block}: {payloads:x?}");
        }
        let unscaled = Signature { scale: None, ..signature };
        assert!(scales(&unscaled).is_none());
    }
}
