//! How many bits of a product count, and how is it rounded?
//!
//! Numbers with few bits, which show all else best, show nothing of products that are rounded: those of two factors with as
//! many bits as their formats hold do, alone as far as the result holds them, and of what is below that after c took the
//! bits before away. (After MMA-Sim paper, section III.D, with a significand instead of ε.)

use rand_core::Rng;

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Probe, Signature, Summand};
use crate::sparse::below;

/// Products that are asked about, evenly spread, and how often each.
const PRODUCTS: usize = 4;
const EACH: usize = 24;

/// Products of factors with as many random bits as formats hold, alone and with c taking most of them away.
pub fn probe(signature: &Signature, rng: &mut (impl Rng + ?Sized)) -> Probe {
    let products = (0..signature.k).step_by(signature.k.div_ceil(PRODUCTS));
    let asked = products.flat_map(|k| std::iter::repeat_n(k, EACH));
    Probe {
        name: "products",
        question: "what is left of the last bits of a product?",
        source: "after MMA-Sim paper, section III.D",
        dot_adds: asked.filter_map(|k| dot_add(signature, k, rng)).collect(),
    }
}

/// One such product; `None` if c holds nothing that takes its first bits away.
fn dot_add(signature: &Signature, k: usize, rng: &mut (impl Rng + ?Sized)) -> Option<DotAdd> {
    let mut question = place::zeros(signature);
    let mut factor = |bits: u32| {
        let significand = 1 << bits | rng.next_u64() & ((1 << bits) - 1) | 1;
        Dyadic { negative: below(2, rng) == 1, significand, exponent: -(bits as i32) }
    };
    let (a, b) = (factor(signature.a.fraction_bits), factor(signature.b.fraction_bits));
    question.a[k] = place::exactly(&signature.a, a)?;
    question.b[k] = place::exactly(&signature.b, b)?;
    if below(2, rng) == 0 {
        return Some(question);
    }
    let product = u128::from(a.significand) * u128::from(b.significand);
    let bits = u128::BITS - product.leading_zeros();
    let lost = bits.saturating_sub(signature.c.fraction_bits + 1);
    // Of the two numbers that c holds next to it, either.
    let significand = (product >> lost) as u64 + if lost > 0 { below(2, rng) } else { 0 };
    let exponent = a.exponent + b.exponent + lost as i32;
    let back = Dyadic { negative: a.negative == b.negative, significand, exponent };
    place::set(&mut question, signature, Summand::C, back).then_some(question)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{E4M3, FP16, FP32, FP64, RoundTo};
    use mmaprobe_model::tree::Product;
    use mmaprobe_model::{Executor, Format, Model, Rounding};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    fn asked(factor: Format, result: Format) -> (Signature, Vec<DotAdd>) {
        let signature = Signature { k: 8, a: factor, b: factor, c: result, d: result, scale: None };
        let asked = probe(&signature, &mut Xoshiro256PlusPlus::seed_from_u64(1)).dot_adds;
        (signature, asked)
    }

    #[test]
    fn products_that_are_rounded_answer_otherwise_than_exact_ones() {
        for (factor, result, narrower) in [(FP64, FP64, FP32), (FP32, FP32, FP32), (FP16, FP32, FP16)] {
            let (signature, asked) = asked(factor, result);
            assert!(asked.len() >= PRODUCTS * EACH / 2, "{} questions", asked.len());
            let mut model = Model::chain_of_fma(factor, result, signature.k);
            let answers = |model: &Model| -> Vec<u64> {
                let mut executor = Executor::new(model).expect("it can be executed");
                asked.iter().map(|q| executor.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb)).collect()
            };
            let exact = answers(&model);
            let mut seen = vec![exact];
            for rounding in [Rounding::NearestTiesToEven, Rounding::TowardZero, Rounding::Up] {
                let round = RoundTo { rounding, ..RoundTo::nearest_even(narrower) };
                model.product = Product::Rounded(round);
                seen.push(answers(&model));
            }
            for (at, answers) in seen.iter().enumerate() {
                for other in &seen[..at] {
                    let otherwise = answers.iter().zip(other).filter(|(one, other)| one != other).count();
                    assert!(otherwise * 8 > asked.len(), "{factor}: {otherwise} of {}", asked.len());
                }
            }
        }
    }

    #[test]
    fn factors_have_all_their_bits_and_one_product_is_asked_about_at_a_time() {
        let (signature, asked) = asked(E4M3, FP32);
        let zero = place::zeros(&signature);
        for question in &asked {
            let at: Vec<usize> = (0..8).filter(|&k| question.a[k] != zero.a[k]).collect();
            assert_eq!(at.len(), 1);
            assert_eq!((question.a[at[0]] & 1, question.b[at[0]] & 1), (1, 1));
        }
        let alone = asked.iter().filter(|question| question.c == zero.c).count();
        assert!(alone > 0 && alone < asked.len());
    }
}
