//! Random questions with few summands: where the width and the exponents of narrow sums show.
//!
//! Dense random inputs hide what a corner of the arithmetic does. Here one to four products and
//! sometimes c have significands of one or two bits, all ones, or random ones, at a chosen distance
//! below a common exponent, at either end of the range or in its middle; factors are subnormal now and
//! then, as small as they can be beside larger ones, or zero beside a factor of any size. Block scales
//! bring products where their factors alone do not reach.

use mmaprobe_model::{Decoded, Format};
use rand_core::Rng;

use crate::place;
use crate::question::{DotAdd, Signature};

/// A random question with few summands.
pub fn dot_add(signature: &Signature, rng: &mut (impl Rng + ?Sized)) -> DotAdd {
    let Signature { a, b, d, .. } = signature;
    let (smallest, largest) =
        signature.scale.map_or((0, 0), |scale| (scale.format.min_exponent(), scale.format.max_exponent()));
    let low = d.min_exponent().max(a.min_quantum() + b.min_quantum() + 2 * smallest) - 4;
    let high = d.max_exponent().min(a.max_exponent() + b.max_exponent() + 2 * largest);
    let top = match below(3, rng) {
        0 => low + below(12, rng) as i32,
        1 => (low + below((high - low).max(1) as u64, rng) as i32).min(high),
        _ => below(4, rng) as i32 - 2,
    };
    at(signature, top, rng)
}

/// The same with the largest summand near one of these exponents, where something ends inside; now and then with a
/// product as near to the power of two as factors come: where it matters whether it is rounded first.
pub fn near(signature: &Signature, ends: &[i32], rng: &mut (impl Rng + ?Sized)) -> DotAdd {
    let end = ends[below(ends.len() as u64, rng) as usize];
    let top = end + if below(2, rng) == 0 { 0 } else { below(12, rng) as i32 - 6 };
    if below(4, rng) > 0 {
        return at(signature, top, rng);
    }
    let Some((a, b)) = about(signature, top, rng) else { return at(signature, top, rng) };
    let mut question = match below(2, rng) {
        0 => at(signature, top, rng),
        _ => place::zeros(signature),
    };
    let k = below(signature.k as u64, rng) as usize;
    (question.a[k], question.b[k]) = (a, b);
    question
}

/// A random question with one of the largest products, one of the smallest, most often beside it, and mostly the opposite
/// of the large one: formats with little range hold hardly anything else that a wide sum inside rounds. As
/// [`dot_add`] for formats with more.
pub fn extremes(signature: &Signature, rng: &mut (impl Rng + ?Sized)) -> DotAdd {
    let Signature { a, b, k, .. } = signature;
    let span = |format: &Format| format.max_exponent() - format.min_quantum();
    if span(a) + span(b) > WIDE || *k < 2 {
        return dot_add(signature, rng);
    }
    let mut question = place::zeros(signature);
    let large = below(*k as u64, rng) as usize;
    let beside = match below(4, rng) {
        0 => below(*k as u64, rng) as usize,
        1 => (large + 1 + below(4, rng) as usize) % k,
        _ => (large ^ 1).min(k - 1),
    };
    let opposite = below(*k as u64, rng) as usize;
    let near = |end: i32, rng: &mut _| end - below(3, rng) as i32;
    question.a[large] = number(a, near(a.max_exponent(), rng), rng);
    question.b[large] = number(b, near(b.max_exponent(), rng), rng);
    if opposite != large && below(4, rng) > 0 {
        (question.a[opposite], question.b[opposite]) =
            (question.a[large], question.b[large] ^ place::sign_bit(b));
    }
    if beside != large {
        let small =
            |format: &Format, rng: &mut _| number(format, format.min_quantum() + below(4, rng) as i32, rng);
        (question.a[beside], question.b[beside]) = (small(a, rng), small(b, rng));
    }
    question
}

/// Binades of products past any sum's width.
const WIDE: i32 = 80;

/// Two factors whose product is about ±2^`exponent`; `None` where their formats do not reach it.
fn about(signature: &Signature, exponent: i32, rng: &mut (impl Rng + ?Sized)) -> Option<(u64, u64)> {
    let Signature { a, b, .. } = signature;
    let one = 1u64 << a.fraction_bits;
    let x = one | rng.next_u64() & (one - 1);
    let quotient = (1u128 << (a.fraction_bits + b.fraction_bits + 1)) / u128::from(x);
    let y = (quotient as u64 + below(2, rng)).min((2u64 << b.fraction_bits) - 1);
    // The quotient of the significands is 2.
    let of_a = (exponent - 1).div_euclid(2) + below(9, rng) as i32 - 4;
    let of_b = exponent - 1 - of_a;
    let mut packed = |format: &Format, significand: u64, exponent: i32| {
        let is_held = (format.min_exponent()..format.max_exponent()).contains(&exponent);
        let negative = below(2, rng) == 1 && format.signed;
        is_held.then(|| format.pack(Decoded::Finite { negative, significand, exponent }))
    };
    Some((packed(a, x, of_a)?, packed(b, y, of_b)?))
}

/// A random question with few summands, the largest near 2^`top`.
fn at(signature: &Signature, top: i32, rng: &mut (impl Rng + ?Sized)) -> DotAdd {
    let Signature { a, b, c, d, .. } = signature;
    let mut question = place::zeros(signature);
    // Twice the bits of d: past any F that can matter beside them.
    let depth = 2 * (u64::from(d.fraction_bits) + 4);
    let distance = |rng: &mut _| if below(2, rng) == 0 { 0 } else { below(depth, rng) as i32 };
    let mut scaled = Vec::new();
    for _ in 0..1 + below(4, rng) {
        let k = below(signature.k as u64, rng) as usize;
        let exponent = top - distance(rng);
        let exponent = exponent - scale(signature, &mut question, k, exponent, &mut scaled, rng);
        let of_a = exponent.div_euclid(2) + below(9, rng) as i32 - 4;
        let of_a = of_a.clamp(a.min_quantum(), a.max_exponent());
        question.a[k] = number(a, of_a, rng);
        question.b[k] = number(b, exponent - of_a, rng);
        // A zero factor beside one of any size: does the product have an exponent?
        let zeros = place::zeros(signature);
        let any = |format: &Format, rng: &mut _| {
            let span = (format.max_exponent() - format.min_exponent() + 1) as u64;
            // Such an exponent shows in what it shifts out of others: often only if it is near the largest.
            let distance = if below(2, rng) == 0 { below(4, rng) % span } else { below(span, rng) };
            let exponent = format.max_exponent() - distance as i32;
            number(format, exponent, rng)
        };
        match below(8, rng) {
            0 => (question.a[k], question.b[k]) = (zeros.a[k], any(b, rng)),
            1 => (question.a[k], question.b[k]) = (any(a, rng), zeros.b[k]),
            // One of the smallest numbers beside a larger one: a product with a larger exponent than it has bits, also where
            // it becomes a zero.
            2 => {
                let tiny = |format: &Format, rng: &mut _| format.min_quantum() + below(4, rng) as i32;
                let is_a = below(2, rng) == 0;
                let of_a = if is_a { tiny(a, rng) } else { exponent - tiny(b, rng) };
                question.a[k] = number(a, of_a, rng);
                question.b[k] = number(b, exponent - of_a, rng);
            }
            _ => {}
        }
    }
    if below(2, rng) == 0 {
        question.c = number(c, top - distance(rng), rng);
    }
    question
}

/// The exponent of the scales of a product's block, both together: 0 without scales. The first time, three of four blocks
/// get scales that bring products of 2^`exponent` within reach of their factors, as near as scales come to that.
/// `scaled` are the blocks that are not asked about for the first time.
fn scale(
    signature: &Signature,
    question: &mut DotAdd,
    k: usize,
    exponent: i32,
    scaled: &mut Vec<usize>,
    rng: &mut (impl Rng + ?Sized),
) -> i32 {
    let Some(scale) = signature.scale else { return 0 };
    let block = k / scale.block;
    if !scaled.contains(&block) {
        scaled.push(block);
        if below(4, rng) > 0 {
            let (low, high) = place::reach_of_factors(signature);
            let inside = low + below((high - low).max(0) as u64 + 1, rng) as i32;
            let shift = exponent - inside;
            let of_a = shift.div_euclid(2) + below(9, rng) as i32 - 4;
            question.sa[block] = normal(&scale.format, of_a, rng);
            let left = shift - place::scale_exponent(&scale.format, question.sa[block]);
            question.sb[block] = normal(&scale.format, left, rng);
        }
    }
    place::scales_exponent(signature, question, block)
}

/// A positive normal number near 2^`exponent`, as far as the format reaches: a power of two, or any significand.
fn normal(format: &Format, exponent: i32, rng: &mut (impl Rng + ?Sized)) -> u64 {
    let one = 1u64 << format.fraction_bits;
    let significand = if below(2, rng) == 0 { one } else { one | rng.next_u64() & (one - 1) };
    let exponent = exponent.clamp(format.min_exponent(), format.max_exponent());
    let most = if exponent == format.max_exponent() { format.max_significand() } else { 2 * one - 1 };
    format.pack(Decoded::Finite { negative: false, significand: significand.min(most), exponent })
}

/// A random number near ±2^`exponent`, as far as the format reaches: a power of two, with a second bit,
/// all ones, or any significand.
pub fn number(format: &Format, exponent: i32, rng: &mut (impl Rng + ?Sized)) -> u64 {
    let one = 1u64 << format.fraction_bits;
    let mut significand = match below(4, rng) {
        0 => one,
        1 => one | 1 << below(u64::from(format.fraction_bits) + 1, rng),
        2 => 2 * one - 1 - below(2, rng),
        _ => one | rng.next_u64() & (one - 1),
    };
    let lowest = format.min_exponent();
    if exponent < lowest {
        significand = significand.checked_shr(lowest.abs_diff(exponent)).unwrap_or(0);
    }
    let exponent = exponent.clamp(lowest, format.max_exponent());
    if exponent == format.max_exponent() {
        significand = significand.min(format.max_significand());
    }
    format.pack(Decoded::Finite { negative: below(2, rng) == 1 && format.signed, significand, exponent })
}

/// A random number below `n`.
pub fn below(n: u64, rng: &mut (impl Rng + ?Sized)) -> u64 {
    rng.next_u64() % n
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmaprobe_model::format;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn two_factors_come_near_to_a_power_of_two() {
        let factors = format::FP16;
        let signature =
            Signature { k: 1, a: factors, b: factors, c: format::FP32, d: format::FP32, scale: None };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let (mut below, mut above) = (0, 0);
        for _ in 0..1000 {
            let Some((a, b)) = about(&signature, -9, &mut rng) else { continue };
            let number = |bits| match factors.decode(bits) {
                Decoded::Finite { significand, exponent, .. } => {
                    significand as f64 * 2f64.powi(exponent - factors.fraction_bits as i32)
                }
                other => panic!("{other:?}"),
            };
            let ratio = number(a) * number(b) * 2f64.powi(9);
            assert!((ratio - 1.0).abs() < 2f64.powi(-9), "{ratio}");
            below += usize::from(ratio < 1.0);
            above += usize::from(ratio > 1.0);
        }
        assert!(below > 100 && above > 100, "{below} below, {above} above");
    }

    #[test]
    fn a_small_product_stands_beside_a_large_one_that_cancels() {
        let (a, b) = (format::E4M3, format::E3M2);
        let signature = Signature { k: 16, a, b, c: format::FP32, d: format::FP32, scale: None };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let value = |a_bits, b_bits| match (a.decode(a_bits), b.decode(b_bits)) {
            (
                Decoded::Finite { negative: x, significand: m, exponent: e },
                Decoded::Finite { negative: y, significand: n, exponent: f },
            ) => {
                let magnitude =
                    (m * n) as f64 * 2f64.powi(e + f - (a.fraction_bits + b.fraction_bits) as i32);
                if x == y { magnitude } else { -magnitude }
            }
            other => panic!("{other:?}"),
        };
        let mut pairs = 0;
        for _ in 0..1000 {
            let question = extremes(&signature, &mut rng);
            let values: Vec<f64> = question.a.iter().zip(&question.b).map(|(&a, &b)| value(a, b)).collect();
            let large = values.iter().copied().fold(0.0, |most: f64, value| most.max(value.abs()));
            let cancels = values.iter().sum::<f64>().abs() < large;
            let distant = |x: &f64| *x != 0.0 && large / x.abs() > 2f64.powi(20);
            pairs += usize::from(cancels && values.iter().any(distant));
        }
        assert!(pairs > 50, "{pairs}");
    }

    #[test]
    fn scales_bring_products_to_where_c_is() {
        for (scale, lowest) in [(format::UE8M0, -126), (format::UE4M3, -16)] {
            let signature = Signature {
                k: 8,
                a: format::E2M1,
                b: format::E2M3,
                c: format::FP32,
                d: format::FP32,
                scale: Some(mmaprobe_model::tree::Scale { format: scale, block: 4 }),
            };
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
            let mut lowest_products = 0;
            for _ in 0..4000 {
                let question = dot_add(&signature, &mut rng);
                for k in 0..8 {
                    let factor = |format: &Format, bits| match format.decode(bits) {
                        Decoded::Finite { significand: 0, .. } => None,
                        _ => Some(place::scale_exponent(format, bits)),
                    };
                    let factors =
                        factor(&signature.a, question.a[k]).zip(factor(&signature.b, question.b[k]));
                    let Some((a, b)) = factors else { continue };
                    let exponent = a + b + place::scales_exponent(&signature, &question, k / 4);
                    lowest_products += usize::from((lowest - 8..=lowest + 8).contains(&exponent));
                }
            }
            // A third of all questions are about there.
            assert!(lowest_products > 400, "{}: {lowest_products}", scale.name);
        }
    }

    #[test]
    fn few_finite_summands_some_of_them_subnormal() {
        for factors in Format::ALL.into_iter().filter(|format| format.signed) {
            let signature =
                Signature { k: 8, a: factors, b: factors, c: format::FP32, d: format::FP32, scale: None };
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
            let mut subnormal = 0;
            for _ in 0..4000 {
                let question = dot_add(&signature, &mut rng);
                let mut others_than_zero = 0;
                for &bits in &question.a {
                    let Decoded::Finite { significand, .. } = factors.decode(bits) else {
                        panic!("{factors}: {bits:#x} is not finite")
                    };
                    let is_subnormal = significand != 0 && significand >> factors.fraction_bits == 0;
                    subnormal += u32::from(is_subnormal);
                    others_than_zero += u32::from(significand != 0);
                }
                assert!(others_than_zero <= 4);
            }
            // Half of the smallest exponent of d is where factors meet; wider formats have no subnormals there.
            let reaches = factors.min_exponent() > -63;
            assert!(!reaches || subnormal > 0, "{factors}: no subnormal factor");
        }
    }
}
