//! Random questions in which all summands are about where something ends: each sum of some of them vanishes or overflows,
//! and so may all at once.
//!
//! What a sum of zeros is, when each of them was a small number before it was rounded, and what overflowing sums make
//! together shows nowhere else: where one summand is larger, it hides the zeros, and where one is smaller, nothing overflows.

use rand_core::Rng;

use crate::boundaries::set_under_scales;
use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};
use crate::sparse::below;

/// Binades around an end in which the last bits of summands are: so many, the last of them above it.
const AROUND: u64 = 6;

/// A question with summands near one of these exponents, most of them or few, most often all of the same sign, and zeros
/// among them, of either sign where A and C have both. What the formats do not hold is a zero.
pub fn dot_add(signature: &Signature, ends: &[i32], rng: &mut (impl Rng + ?Sized)) -> DotAdd {
    let mut question = place::zeros(signature);
    let Some(&end) = ends.get(below(ends.len().max(1) as u64, rng) as usize) else { return question };
    if let Some(scale) = signature.scale {
        let (low, high) = place::reach_of_factors(signature);
        let shift = end - end.clamp(low, high);
        let shifts = [shift.div_euclid(2), shift - shift.div_euclid(2)];
        let [of_a, of_b] = shifts.map(|exponent| {
            place::exactly(
                &scale.format,
                Dyadic::power(exponent.clamp(scale.format.min_exponent(), scale.format.max_exponent())),
            )
        });
        if let (Some(of_a), Some(of_b)) = (of_a, of_b) {
            question.sa.fill(of_a);
            question.sb.fill(of_b);
        }
    }
    // Of four summands, so many are zeros.
    let zeros = [0, 0, 1, 3][below(4, rng) as usize];
    let are_alike = below(4, rng) > 0;
    let sign = below(2, rng) == 1;
    let zero_sign = below(2, rng) == 1;
    let spread = [1, 3, AROUND][below(3, rng) as usize];
    let highest = below(AROUND, rng) as i32;
    let minus = Dyadic { negative: true, significand: 0, exponent: 0 };
    let [of_a, of_c] = [&signature.a, &signature.c].map(|format| place::exactly(format, minus));
    let summands = (0..signature.k).map(Summand::Product).chain([Summand::C]);
    for summand in summands {
        let negative = if are_alike && below(8, rng) > 0 { sign } else { below(2, rng) == 1 };
        let is_zero = below(4, rng) < zeros || summand == Summand::C && below(2, rng) == 0;
        let significand = [1, 1, 1, 3][below(4, rng) as usize];
        let exponent = end + 1 - (highest + below(spread, rng) as i32) % AROUND as i32;
        let value = Dyadic { negative, significand, exponent };
        if !is_zero && set_under_scales(signature, &mut question, summand, value) {
            continue;
        }
        let is_negative = if are_alike { zero_sign } else { below(2, rng) == 1 };
        match summand {
            Summand::Product(k) if is_negative => question.a[k] = of_a.unwrap_or(question.a[k]),
            Summand::C if is_negative => question.c = of_c.unwrap_or(question.c),
            _ => {}
        }
    }
    question
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{self, FP16, FP32};
    use mmaprobe_model::tree::Scale;
    use mmaprobe_model::{Executor, Model};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn all_sums_vanish_and_all_overflow() {
        let signature = Signature { k: 4, a: FP32, b: FP32, c: FP32, d: FP32, scale: None };
        let model = Model::chain_of_fma(FP32, FP32, 4);
        let mut executor = Executor::new(&model).expect("it can be executed");
        let ends = [FP32.min_exponent() - 23, FP32.max_exponent()];
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let (mut vanished, mut overflowed) = (0, 0);
        for _ in 0..2000 {
            let DotAdd { a, b, c, sa, sb } = dot_add(&signature, &ends, &mut rng);
            let d = executor.dot_add(&a, &b, c, &sa, &sb);
            let are_numbers = a.iter().zip(&b).all(|(a, b)| a << 1 != 0 && b << 1 != 0);
            vanished += usize::from(are_numbers && d << 33 == 0);
            overflowed += usize::from(d << 33 == 0x7f80_0000 << 33);
        }
        assert!(vanished > 50 && overflowed > 50, "{vanished} and {overflowed} of 2000");
    }

    #[test]
    fn scales_bring_summands_where_factors_do_not_reach() {
        let scale = Some(Scale { format: format::UE8M0, block: 2 });
        let signature = Signature { k: 4, a: format::E2M1, b: format::E2M1, c: FP32, d: FP32, scale };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let reaches = |question: &DotAdd| question.a[0] & 7 != 0 && question.sa[0] < 70;
        let reached = (0..200).filter(|_| reaches(&dot_add(&signature, &[-126], &mut rng))).count();
        assert!(reached > 80, "{reached} of 200");
        // Nothing of these formats is so small: zeros, of either sign.
        let signature = Signature { k: 4, a: FP16, b: FP16, c: FP16, d: FP32, scale: None };
        let question = dot_add(&signature, &[-126], &mut rng);
        assert!(question.a.iter().all(|bits| bits & 0x7fff == 0), "{question:?}");
    }
}
