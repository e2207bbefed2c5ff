//! Questions in which what is large cancels, but for the last bits that a sum keeps of it.
//!
//! How a summand is rounded where half of its last bit is cut off shows in that bit. A result that keeps fewer bits shows it
//! only where the rest is gone: c is 2^x and (2 n + 1) · 2^(x − F − 1), a product is −2^x, and what is left is
//! n or n + 1.

use rand_core::Rng;

use crate::boundaries::{Boundaries, one_of, set_under_scales};
use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};
use crate::sparse::below;

/// Tries to find an exponent that the formats hold, and how far from 1 what is large is, in binades.
const TRIES: usize = 6;
const FAR: u64 = 40;
/// What is left has so many bits at most.
const LEFT: u64 = 9;
/// One of so many questions has a small product beside.
const BESIDE: u64 = 4;

/// A question with the scales of this one, a product of one or two bits, and c or another product that is its opposite but
/// for a few bits, the last of which are those that a sum keeps of it, and half of the next, or about that. As far as the
/// formats hold these; the question as it is where they do not, or no sum cuts anything off.
pub fn dot_add(
    signature: &Signature,
    question: &DotAdd,
    boundaries: &Boundaries,
    rng: &mut (impl Rng + ?Sized),
) -> DotAdd {
    if boundaries.kept.is_empty() {
        return question.clone();
    }
    let zeros = place::zeros(signature);
    let zeros = DotAdd { sa: question.sa.clone(), sb: question.sb.clone(), ..zeros };
    let any_product = |rng: &mut _| Summand::Product(below(signature.k as u64, rng) as usize);
    for _ in 0..TRIES {
        let Some(kept) = one_of(&boundaries.kept, rng) else { break };
        let mut left_over = zeros.clone();
        let one = any_product(rng);
        let other = if below(3, rng) == 0 { any_product(rng) } else { Summand::C };
        if one == other {
            continue;
        }
        // c holds what few factors do.
        let (simple, near) = if below(4, rng) == 0 { (other, one) } else { (one, other) };
        let exponent = below(2 * FAR, rng) as i32 - FAR as i32;
        let large = [1, 1, 3][below(3, rng) as usize];
        // Half of the last bit that is kept, or less or more; in units of a quarter of it.
        let cut = [2, 2, 2, 1, 3][below(5, rng) as usize];
        let rest = below(1 << below(LEFT, rng), rng) << 2 | cut;
        let shift = kept + 2;
        let Some(unit) = 1u64.checked_shl(shift).filter(|unit| *unit < 1 << 60) else { continue };
        let significand =
            if below(2, rng) == 0 { large * unit + rest } else { (large * unit).abs_diff(rest) };
        let negative = below(2, rng) == 1;
        let values = [
            (simple, Dyadic { negative, significand: large, exponent }),
            (near, Dyadic { negative: !negative, significand, exponent: exponent - shift as i32 }),
        ];
        let is_set = values
            .into_iter()
            .all(|(summand, value)| set_under_scales(signature, &mut left_over, summand, value));
        if !is_set {
            continue;
        }
        if below(BESIDE, rng) == 0 {
            let beside = any_product(rng);
            if beside != one && beside != other {
                let exponent = exponent - kept as i32 - below(4, rng) as i32 + 1;
                let value = Dyadic { negative: below(2, rng) == 1, significand: 1, exponent };
                place::set(&mut left_over, signature, beside, value);
            }
        }
        return left_over;
    }
    question.clone()
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format;
    use mmaprobe_model::format::RoundTo;
    use mmaprobe_model::tree::{Added, Alignment, Exponents, Fused, Node, Normalised, ZeroTerms};
    use mmaprobe_model::{Executor, Model, Rounding};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    /// d = c + p0 + p1, with 20 bits of each, rounded so; nine bits of the sum are kept.
    fn rounded(rounding: Rounding) -> Model {
        let mut model = Model::chain_of_fma(format::FP16, format::FP32, 2);
        model.tree.nodes = vec![
            Node::Accumulator,
            Node::Product(0),
            Node::Product(1),
            Node::Sum { children: vec![0, 1, 2], rule: 0 },
        ]
        .into();
        model.tree.rules[0].added = Added::Fused(Fused {
            alignment: [Alignment { fraction_bits: 20, rounding, far: None }].into_iter().collect(),
            exponents: Exponents::Normalised,
            floor: None,
            zeros: ZeroTerms::Ignored,
            carry: None,
            sticky: false,
        });
        let nine = RoundTo { fraction_bits: 9, ..RoundTo::nearest_even(format::FP32) };
        model.tree.rules[0].normalised = Normalised::To(nine);
        model
    }

    #[test]
    fn ties_of_what_is_kept_show_though_results_have_few_bits() {
        let half = format::FP16;
        let signature = Signature { k: 2, a: half, b: half, c: format::FP32, d: format::FP32, scale: None };
        let models = [Rounding::NearestTiesToEven, Rounding::NearestTiesToZero].map(rounded);
        let [mut one, mut other] =
            models.each_ref().map(|model| Executor::new(model).expect("it is a model"));
        let boundaries = Boundaries::of(&models[0]);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let question = place::zeros(&signature);
        let tells = |question: &DotAdd| {
            let DotAdd { a, b, c, sa, sb } = question;
            one.dot_add(a, b, *c, sa, sb) != other.dot_add(a, b, *c, sa, sb)
        };
        let told =
            (0..2000).map(|_| dot_add(&signature, &question, &boundaries, &mut rng)).filter(tells).count();
        assert!(told > 100, "{told} of 2000");
        assert_eq!(dot_add(&signature, &question, &Boundaries::default(), &mut rng), question);
    }
}
