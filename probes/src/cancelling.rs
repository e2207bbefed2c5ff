//! Random questions in which two summands nearly cancel: where what is left is smaller than any product can be.
//!
//! A sum that rounds may become a zero though nothing in it is one. With products that are themselves cut off or rounded
//! at the same end of the range, that takes two of them which agree in all but their last bits.

use mmaprobe_model::{Decoded, Format};
use rand_core::Rng;

use crate::boundaries;
use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature};
use crate::sparse::{self, below};
use crate::vary::product;

/// A question with two summands, one of them a product, whose sum is about as large as a power of two with one of these
/// exponents, a few binades more or less. All others are zeros of one sign. As [`sparse::dot_add`] where the
/// formats do not hold that.
pub fn dot_add(signature: &Signature, left: &[i32], rng: &mut (impl Rng + ?Sized)) -> DotAdd {
    nearly(signature, left, rng).unwrap_or_else(|| sparse::dot_add(signature, rng))
}

fn nearly(signature: &Signature, left: &[i32], rng: &mut (impl Rng + ?Sized)) -> Option<DotAdd> {
    let &left = left.get(below(left.len().max(1) as u64, rng) as usize)?;
    let Signature { a, b, c, k, .. } = signature;
    // The last bit of one factor decides how much is left: half of it, and less.
    let exponent = left + b.fraction_bits as i32 + below(6, rng) as i32 - 1;
    let mut question = match below(2, rng) {
        0 => place::zeros(signature),
        _ => place::negative_zeros(signature).unwrap_or_else(|| place::zeros(signature)),
    };
    let (low, high) = place::reach_of_factors(signature);
    if let Some(scale) = signature.scale {
        let shift = exponent - exponent.clamp(low, high);
        let half = shift.div_euclid(2);
        question.sa.fill(place::exactly(&scale.format, Dyadic::power(half))?);
        question.sb.fill(place::exactly(&scale.format, Dyadic::power(shift - half))?);
    }
    let solved = below(*k as u64, rng) as usize;
    let other = below(*k as u64 + 1, rng) as usize;
    let scales = |question: &DotAdd, k: usize| boundaries::scales_of(signature, question, k);
    let value = if other == *k || other == solved {
        question.c = sparse::number(c, exponent, rng);
        decoded(c, question.c)?
    } else {
        let of_factors = exponent - scales(&question, other);
        let of_a = balanced(signature, of_factors, rng);
        question.a[other] = sparse::number(a, of_a, rng);
        question.b[other] = sparse::number(b, of_factors - of_a, rng);
        product(signature, &question, other)?
    };
    // −value = a·b for an a of some size and the b that comes nearest, or next to it.
    let leading = value.leading()? - scales(&question, solved);
    let of_a = balanced(signature, leading, rng);
    question.a[solved] = sparse::number(a, of_a, rng);
    let factor = decoded(a, question.a[solved])?;
    let target = Dyadic { exponent: value.exponent - scales(&question, solved), ..-value };
    question.b[solved] = quotient(b, target, factor, rng)?;
    Some(question)
}

/// About half of an exponent, as far as both factors hold their parts.
fn balanced(signature: &Signature, exponent: i32, rng: &mut (impl Rng + ?Sized)) -> i32 {
    let Signature { a, b, .. } = signature;
    let of_a = exponent.div_euclid(2) + below(9, rng) as i32 - 4;
    let (low, high) = (exponent - b.max_exponent(), exponent - b.min_exponent());
    of_a.clamp(low, high).clamp(a.min_exponent(), a.max_exponent())
}

/// The number that a bit pattern stands for, if it is finite and not zero.
fn decoded(format: &Format, bits: u64) -> Option<Dyadic> {
    match format.decode(bits) {
        Decoded::Finite { significand: 0, .. } => None,
        Decoded::Finite { negative, significand, exponent } => {
            Some(Dyadic { negative, significand, exponent: exponent - format.fraction_bits as i32 })
        }
        _ => None,
    }
}

/// `of` / `by` in a format, rounded either way; `None` if that is no normal number of it.
fn quotient(format: &Format, of: Dyadic, by: Dyadic, rng: &mut (impl Rng + ?Sized)) -> Option<u64> {
    let width = |significand: u64| 64 - significand.leading_zeros();
    // One bit more than the format holds, or two.
    let wanted = format.fraction_bits + 2;
    let shift = (wanted + width(by.significand)).saturating_sub(width(of.significand));
    let exact = (u128::from(of.significand) << shift) / u128::from(by.significand);
    let exact = u64::try_from(exact).ok()?;
    let dropped = width(exact).checked_sub(format.fraction_bits + 1)?;
    let mut significand = (exact >> dropped) + below(2, rng);
    let mut exponent = of.exponent - by.exponent - shift as i32 + (dropped + format.fraction_bits) as i32;
    if significand >> (format.fraction_bits + 1) != 0 {
        (significand, exponent) = (significand >> 1, exponent + 1);
    }
    let negative = of.negative != by.negative;
    let is_held = (format.min_exponent()..=format.max_exponent()).contains(&exponent)
        && (exponent < format.max_exponent() || significand <= format.max_significand())
        && (format.signed || !negative);
    is_held.then(|| format.pack(Decoded::Finite { negative, significand, exponent }))
}

/// The exponents of the smallest normal number and of the smallest number of so many bits of a format: where what is left
/// of a sum is flushed, and where it becomes a zero.
#[must_use]
pub fn smallest(format: &Format, fraction_bits: u32) -> [i32; 2] {
    [format.min_exponent(), format.min_exponent() - fraction_bits as i32]
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Term;
    use mmaprobe_model::format::{self, FP32};
    use mmaprobe_model::tree::Scale;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;
    use crate::question::Summand;

    /// The summands of a question that are not zero.
    fn live(signature: &Signature, question: &DotAdd) -> Vec<(Summand, Dyadic)> {
        let products =
            (0..signature.k).filter_map(|k| Some((Summand::Product(k), product(signature, question, k)?)));
        let c = decoded(&signature.c, question.c).map(|value| (Summand::C, value));
        products.chain(c).collect()
    }

    /// The exponent of what is left of the summands of a question, if anything is.
    fn left(summands: &[(Summand, Dyadic)]) -> Option<i32> {
        let term = |value: &Dyadic| Term::new(value.negative, value.significand.into(), value.exponent, 0);
        Term::sum(&summands.iter().map(|(_, value)| term(value)).collect::<Vec<_>>()).leading_exponent()
    }

    #[test]
    fn less_is_left_than_a_result_can_be() {
        let bf16 = format::BF16;
        let scale = Some(Scale { format: format::UE8M0, block: 2 });
        for (factors, d, scale) in [(bf16, bf16, None), (FP32, FP32, None), (format::E4M3, FP32, scale)] {
            let signature = Signature { k: 4, a: factors, b: factors, c: d, d, scale };
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
            let (mut of_two, mut vanishing, mut from_products) = (0, 0, 0);
            for _ in 0..1000 {
                let question = dot_add(&signature, &smallest(&d, d.fraction_bits), &mut rng);
                let live = live(&signature, &question);
                of_two += usize::from(live.len() == 2);
                let Some(left) = left(&live).filter(|_| live.len() == 2) else { continue };
                let is_vanishing = left < d.min_quantum();
                vanishing += usize::from(is_vanishing);
                let are_large = live.iter().all(|(_, value)| value.leading() >= Some(d.min_exponent()));
                from_products += usize::from(is_vanishing && are_large);
            }
            assert!(of_two > 500, "{factors}: {of_two}");
            assert!(vanishing > 40, "{factors}: {vanishing}");
            // With few bits, what is left is not so much smaller.
            assert!(from_products > 10 || factors.fraction_bits < 7, "{factors}: {from_products}");
        }
    }
}
