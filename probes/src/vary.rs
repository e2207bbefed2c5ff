//! Questions varied at random: what else is answered as unexpectedly as one that was.

use mmaprobe_model::{Decoded, Format};
use rand_core::Rng;

use crate::place;
use crate::question::{DotAdd, Signature};
use crate::sparse::below;

/// A question with one to three things changed: a bit or the exponent of an operand or of a scale, a significand
/// made simple, a product left out, or two exchanged.
pub fn varied(signature: &Signature, question: &DotAdd, rng: &mut (impl Rng + ?Sized)) -> DotAdd {
    let zeros = place::zeros(signature);
    let mut varied = question.clone();
    for _ in 0..1 + below(3, rng) {
        if let Some(scale) = signature.scale.filter(|_| below(10, rng) == 0) {
            let scales = if below(2, rng) == 0 { &mut varied.sa } else { &mut varied.sb };
            let block = below(scales.len() as u64, rng) as usize;
            scales[block] = changed(&scale.format, scales[block], rng);
            continue;
        }
        let live: Vec<usize> =
            (0..signature.k).filter(|&k| (varied.a[k], varied.b[k]) != (zeros.a[k], zeros.b[k])).collect();
        let k = match live.len() {
            0 => below(signature.k as u64, rng) as usize,
            live_products => live[below(live_products as u64, rng) as usize],
        };
        match below(10, rng) {
            0 => (varied.a[k], varied.b[k]) = (zeros.a[k], zeros.b[k]),
            1 => {
                let other = below(signature.k as u64, rng) as usize;
                varied.a.swap(k, other);
                varied.b.swap(k, other);
            }
            2..=4 => varied.c = changed(&signature.c, varied.c, rng),
            5..=7 => varied.a[k] = changed(&signature.a, varied.a[k], rng),
            _ => varied.b[k] = changed(&signature.b, varied.b[k], rng),
        }
    }
    varied
}

/// An operand with one thing changed, as far as it stays finite.
fn changed(format: &Format, bits: u64, rng: &mut (impl Rng + ?Sized)) -> u64 {
    let shift = format.ignored_low_bits;
    let one = 1u64 << (shift + format.fraction_bits);
    let fraction = (one - 1) >> shift << shift;
    let other = match below(6, rng) {
        0 | 1 => bits ^ 1 << (u64::from(shift) + below(u64::from(format.bits()), rng)),
        2 | 3 => {
            let binades = one << below(3, rng);
            if below(2, rng) == 0 { bits.wrapping_add(binades) } else { bits.wrapping_sub(binades) }
        }
        4 => bits & !fraction,
        _ => bits | fraction,
    };
    let other = other & (!0 >> (64 - format.bits() - shift));
    let is_finite = |bits| matches!(format.decode(bits), Decoded::Finite { .. });
    if is_finite(other) || !is_finite(bits) { other } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse;
    use mmaprobe_model::format;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn what_is_finite_stays_finite_and_in_its_format() {
        for factors in Format::ALL {
            let signature =
                Signature { k: 5, a: factors, b: factors, c: format::FP32, d: format::FP32, scale: None };
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
            let mut others = 0;
            for _ in 0..500 {
                let question = sparse::dot_add(&signature, &mut rng);
                let varied = varied(&signature, &question, &mut rng);
                others += usize::from(varied != question);
                for &bits in varied.a.iter().chain(&varied.b) {
                    assert!(matches!(factors.decode(bits), Decoded::Finite { .. }), "{factors}: {bits:#x}");
                    let read = factors.ignored_low_bits + factors.bits();
                    assert_eq!(bits.checked_shr(read).unwrap_or(0), 0, "{factors}: {bits:#x}");
                }
            }
            assert!(others > 400, "{factors}: {others} of 500 are others");
        }
    }
}
