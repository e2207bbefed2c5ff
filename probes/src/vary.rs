//! Questions varied at random: what else is answered as unexpectedly as one that was.

use mmaprobe_model::tree::{Added, Normalised, Rule};
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

/// Numbers of fraction bits at which something is rounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boundaries {
    /// Of results.
    pub results: Vec<u32>,
    /// That are kept of summands, below the largest.
    pub kept: Vec<u32>,
}

impl Boundaries {
    /// The fraction bits that results of sums are rounded to, where c holds more, and those that sums keep.
    #[must_use]
    pub fn of(rules: &[Rule], c: &Format) -> Boundaries {
        let result = |rule: &Rule| match &rule.normalised {
            Normalised::To(round) => Some(round.fraction_bits),
            Normalised::No { .. } => None,
        };
        let kept = |rule: &Rule| match &rule.added {
            Added::Fused(fused) => fused.alignment.iter().map(|alignment| alignment.fraction_bits).collect(),
            Added::Exact => Vec::new(),
        };
        let each = |mut all: Vec<u32>| {
            all.sort_unstable();
            all.dedup();
            all
        };
        let results = rules.iter().filter_map(result).filter(|&bits| bits < c.fraction_bits);
        Boundaries { results: each(results.collect()), kept: each(rules.iter().flat_map(kept).collect()) }
    }
}

/// A question in which c, or now and then the largest product, lies where results with so many fraction bits are rounded:
/// half way between two of them, just below one, or at one. What is cut off of a small summand beside it decides
/// there which way a sum is rounded, however few of its bits are kept. Every other time a product is one of which half of
/// the last bit that is kept is cut off, or a quarter, or three. As far as the formats hold that; where they do not, or
/// no result has boundaries, the question as it is. An exponent stays as it is where there is one.
pub fn at_boundary(
    signature: &Signature,
    question: &DotAdd,
    boundaries: &Boundaries,
    rng: &mut (impl Rng + ?Sized),
) -> DotAdd {
    let mut bounded = question.clone();
    let Some(bits) = one_of(&boundaries.results, rng) else { return bounded };
    let first = 1 << bits;
    let result = first | if below(2, rng) == 0 { 0 } else { rng.next_u64() & (first - 1) };
    let (significand, more) = match below(4, rng) {
        0 => (result, 0),
        1 => (result << 3 | 7, 3),
        _ => (result << 1 | 1, 1),
    };
    let products = (0..signature.k).filter_map(|k| Some((k, product(signature, question, k)?.leading()?)));
    let largest = products.max_by_key(|(_, leading)| *leading);
    let (summand, exponent) = match (largest, place::leading(&signature.c, question.c)) {
        (Some((k, leading)), _) if below(4, rng) == 0 => {
            // The factors make up what the scales do not.
            (Summand::Product(k), leading - scales_of(signature, question, k))
        }
        (_, Some(leading)) => (Summand::C, leading),
        (Some((_, leading)), None) => {
            let above = below(2 * u64::from(signature.d.fraction_bits), rng);
            (Summand::C, leading + above as i32)
        }
        (None, None) => return bounded,
    };
    let negative = below(2, rng) == 1;
    let value = Dyadic { negative, significand, exponent: exponent - bits as i32 - more };
    place::set(&mut bounded, signature, summand, value);
    if let Some(kept) = one_of(&boundaries.kept, rng).filter(|_| below(2, rng) == 0) {
        let k = match largest {
            Some((k, _)) if below(2, rng) == 0 => k,
            _ => below(signature.k as u64, rng) as usize,
        };
        // Half of the last bit that is kept, or less or more; above it nothing, or anything.
        let (cut, more) = [(1, 1), (1, 2), (3, 2)][below(3, rng) as usize];
        let above = if below(2, rng) == 0 { 0 } else { below(1 << below(11, rng), rng) };
        let value = Dyadic {
            negative: below(2, rng) == 1,
            significand: above << more | cut,
            exponent: exponent - kept as i32 - more - scales_of(signature, question, k),
        };
        place::set(&mut bounded, signature, Summand::Product(k), value);
    }
    bounded
}

/// One of these, if there are any.
fn one_of(all: &[u32], rng: &mut (impl Rng + ?Sized)) -> Option<u32> {
    (!all.is_empty()).then(|| all[below(all.len() as u64, rng) as usize])
}

/// The exponent of the scales of a product's block.
fn scales_of(signature: &Signature, question: &DotAdd, k: usize) -> i32 {
    place::scales_exponent(signature, question, signature.scale.map_or(0, |scale| k / scale.block))
}

/// The exact value of a product with its scales, if it is finite, not zero and not too wide.
fn product(signature: &Signature, question: &DotAdd, k: usize) -> Option<Dyadic> {
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
    fn c_comes_to_lie_half_way_between_two_results() {
        let half = format::FP16;
        let signature = Signature { k: 2, a: half, b: half, c: format::FP32, d: format::FP32, scale: None };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let values = [(Summand::C, Dyadic::new(5, 0)), (Summand::Product(1), Dyadic::power(-17))];
        let question = place::question(&signature, &values).expect("the formats hold these");
        let boundaries = Boundaries { results: vec![9], kept: vec![19] };
        let (mut ties, mut others, mut halves, mut quarters) = (0, 0, 0, 0);
        for _ in 0..1000 {
            let bounded = at_boundary(&signature, &question, &boundaries, &mut rng);
            let bits = bounded.c & 0x7f_ffff;
            assert_eq!(bounded.c >> 23 & 0xff, question.c >> 23, "the exponent stays");
            match bits & 0x3fff {
                0x2000 => ties += 1,
                _ => others += 1,
            }
            // c is 4 and more: the last bit that is kept is 2^-17.
            let last = |k| product(&signature, &bounded, k).map_or(0, |value| value.exponent);
            halves += usize::from(last(0) == -18 || last(1) == -18);
            quarters += usize::from(last(0) == -19 || last(1) == -19);
        }
        assert!(ties > 300 && others > 300, "{ties} and {others}");
        assert!(halves > 100 && quarters > 200, "{halves} and {quarters}");
        assert_eq!(at_boundary(&signature, &question, &Boundaries::default(), &mut rng), question);
    }

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
