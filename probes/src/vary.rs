//! Questions varied at random: what else is answered as unexpectedly as one that was.

use mmaprobe_model::{Decoded, Format};
use rand_core::Rng;

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};
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

/// A question in which the largest product, or another, has its opposite on another summand, and most summands beside
/// the two are zero: what a sum has kept of the small ones beside the large one is then left over. As far as the
/// formats hold that; where they do not, the question as it is.
pub fn mirrored(signature: &Signature, question: &DotAdd, rng: &mut (impl Rng + ?Sized)) -> DotAdd {
    let zeros = place::zeros(signature);
    let mut mirrored = question.clone();
    let values: Vec<(usize, Dyadic)> =
        (0..signature.k).filter_map(|k| Some((k, product(signature, question, k)?))).collect();
    let Some(&largest) = values.iter().max_by_key(|(_, value)| value.leading()) else { return mirrored };
    let (of, value) = match below(4, rng) {
        0 => values[below(values.len() as u64, rng) as usize],
        _ => largest,
    };
    let onto = match below(4, rng) {
        0 => Summand::C,
        _ => Summand::Product(below(signature.k as u64, rng) as usize),
    };
    if onto == Summand::Product(of) {
        return mirrored;
    }
    // Otherwise all stay as they are.
    if below(4, rng) > 0 {
        let others: Vec<usize> =
            values.iter().map(|(k, _)| *k).filter(|&k| k != of && onto != Summand::Product(k)).collect();
        let kept: Vec<usize> = match others.len() as u64 {
            0 => Vec::new(),
            number => (0..2).map(|_| others[below(number, rng) as usize]).collect(),
        };
        for k in (0..signature.k).filter(|k| *k != of && !kept.contains(k)) {
            (mirrored.a[k], mirrored.b[k]) = (zeros.a[k], zeros.b[k]);
        }
        if below(4, rng) > 0 {
            mirrored.c = zeros.c;
        }
    }
    match onto {
        Summand::C => {
            if let Some(bits) = place::exactly(&signature.c, -value) {
                mirrored.c = bits;
            }
        }
        Summand::Product(k) => {
            let sign = place::sign_bit(&signature.b);
            (mirrored.a[k], mirrored.b[k]) = (mirrored.a[of], mirrored.b[of] ^ sign);
            if let Some(scale) = signature.scale {
                let (from, to) = (of / scale.block, k / scale.block);
                (mirrored.sa[to], mirrored.sb[to]) = (mirrored.sa[from], mirrored.sb[from]);
            }
        }
    }
    mirrored
}

/// The exact value of a product with its scales, if it is finite, not zero and not too wide.
pub fn product(signature: &Signature, question: &DotAdd, k: usize) -> Option<Dyadic> {
    let mut factors = vec![(signature.a, question.a[k]), (signature.b, question.b[k])];
    if let Some(scale) = signature.scale {
        let block = k / scale.block;
        factors.extend([(scale.format, question.sa[block]), (scale.format, question.sb[block])]);
    }
    let mut value = Dyadic::power(0);
    for (format, bits) in factors {
        let Decoded::Finite { negative, significand, exponent } = format.decode(bits) else { return None };
        let zeros = significand.checked_ilog2().map(|_| significand.trailing_zeros())?;
        value.negative ^= negative;
        value.significand = value.significand.checked_mul(significand >> zeros)?;
        value.exponent += exponent - format.fraction_bits as i32 + zeros as i32;
    }
    Some(value)
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
    fn of_a_small_product_beside_a_large_one_the_small_one_is_left() {
        let signature = Signature {
            k: 4,
            a: format::FP16,
            b: format::FP16,
            c: format::FP32,
            d: format::FP32,
            scale: None,
        };
        let (large, small) = (Dyadic::new(5, 9), Dyadic::new(3, -11));
        let values = [(Summand::Product(0), large), (Summand::Product(2), small)];
        let question = place::question(&signature, &values).expect("fp16 holds these");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let sum = |question: &DotAdd| {
            let number = |value: Dyadic| {
                let magnitude = value.significand as f64 * 2f64.powi(value.exponent);
                if value.negative { -magnitude } else { magnitude }
            };
            let products = (0..4).filter_map(|k| product(&signature, question, k)).map(number);
            products.sum::<f64>() + f64::from(f32::from_bits(question.c as u32))
        };
        let left: Vec<f64> = (0..100).map(|_| sum(&mirrored(&signature, &question, &mut rng))).collect();
        let expected = 3.0 * 2f64.powi(-11);
        assert!(left.iter().filter(|&&left| left == expected).count() > 30, "{left:?}");
    }

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
