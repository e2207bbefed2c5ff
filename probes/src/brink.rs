//! Random questions with one number next to where something ends: as much below as what a result cuts off.
//!
//! Whether a number is tiny before it is rounded, after that, or as it is delivered, and whether it overflows, differs only
//! where all bits that a result keeps are ones and what follows decides, or where nothing but what follows is left.

use rand_core::Rng;

use crate::boundaries::{Boundaries, one_of, set_under_scales};
use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};
use crate::sparse::below;

/// Tries to find an end that the formats reach, and one of so many questions is about a product.
const TRIES: usize = 6;
const PRODUCT: u64 = 4;
/// One of so many has a small product beside.
const BESIDE: u64 = 3;

/// A question with c, or a product, just below a power of two with one of these exponents, just below the next, or just
/// above: about as many ones, or zeros, as results have fraction bits, and a few bits more. Now and then a product beside it
/// that is about as large as what is cut off. All others are zero; all are where the formats do not hold that.
pub fn dot_add(
    signature: &Signature,
    ends: &[i32],
    boundaries: &Boundaries,
    rng: &mut (impl Rng + ?Sized),
) -> DotAdd {
    let mut question = place::zeros(signature);
    for _ in 0..TRIES {
        let Some(&end) = ends.get(below(ends.len().max(1) as u64, rng) as usize) else { break };
        let bits = one_of(&boundaries.results, rng).unwrap_or(signature.d.fraction_bits);
        // One less than results have where they are subnormal, one more for the leading one.
        let same = (bits + below(4, rng) as u32).max(1) - 1;
        let more = 1 + below(4, rng) as u32;
        let rest = below(1 << more, rng);
        let is_below = below(4, rng) > 0;
        let (significand, width) = match is_below {
            true => (((1u64 << same) - 1) << more | rest, same + more),
            false => (1u64 << (same + more) | rest, same + more + 1),
        };
        let value = Dyadic { negative: below(2, rng) == 1, significand, exponent: 0 };
        let Some(leading) = value.leading() else { continue };
        let shift = if is_below { end - below(2, rng) as i32 } else { end };
        let value = Dyadic { exponent: shift - leading, ..value };
        let k = below(signature.k as u64, rng) as usize;
        let summand = if below(PRODUCT, rng) == 0 { Summand::Product(k) } else { Summand::C };
        if !set_under_scales(signature, &mut question, summand, value) {
            continue;
        }
        let beside = Summand::Product(below(signature.k as u64, rng) as usize);
        if beside != summand && below(BESIDE, rng) == 0 {
            let exponent = shift - width as i32 + below(6, rng) as i32 - 2;
            let small = Dyadic { negative: below(2, rng) == 1, significand: 1, exponent };
            set_under_scales(signature, &mut question, beside, small);
        }
        break;
    }
    question
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{FP16, FP32, Subnormals, Tininess};
    use mmaprobe_model::tree::Normalised;
    use mmaprobe_model::{Executor, Model, format};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn when_a_result_is_tiny_shows() {
        let flushed = |tiny| {
            let mut model = Model::chain_of_fma(FP16, FP32, 1);
            let nine = format::RoundTo {
                fraction_bits: 9,
                subnormals: Subnormals::Flushed { tiny, sign_kept: true },
                ..format::RoundTo::nearest_even(FP32)
            };
            model.tree.rules[0].normalised = Normalised::To(nine);
            model
        };
        let models = [Tininess::BeforeRounding, Tininess::AfterRounding, Tininess::Delivered].map(flushed);
        let mut executors = models.each_ref().map(|model| Executor::new(model).expect("it is a model"));
        let signature = Signature { k: 1, a: FP16, b: FP16, c: FP32, d: FP32, scale: None };
        let boundaries = Boundaries::of(&models[0]);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut told = [0; 2];
        for _ in 0..2000 {
            let DotAdd { a, b, c, sa, sb } = dot_add(&signature, &boundaries.ends, &boundaries, &mut rng);
            let [before, after, delivered] =
                executors.each_mut().map(|executor| executor.dot_add(&a, &b, c, &sa, &sb));
            told[0] += usize::from(before != after);
            told[1] += usize::from(after != delivered);
        }
        assert!(told.iter().all(|&told| told > 20), "{told:?} of 2000");
    }
}
