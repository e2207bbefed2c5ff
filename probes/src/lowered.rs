//! Questions in which products of subnormal factors stand above all others, and something small is half an ulp away.
//!
//! A subnormal factor has the exponent of the smallest normal number, however small it is: the raw exponent of a product of
//! two, to which others are aligned, lies up to twice the factors' precision above its leading bit. Whether a sum goes by raw
//! exponents or by normalised ones, or aligns at all, then shows in numbers so far below the result that they decide no more
//! than its last bit.

use mmaprobe_model::Format;
use rand_core::Rng;

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};
use crate::sparse::below;

/// Halves of the result's last bit that the small number is near, at most.
const HALVES: u64 = 7;
/// Units in its last place that it is beside that.
const BESIDE: [i64; 8] = [-1, 1, -1, 1, 0, -2, 2, 3];
/// Bits of a significand that has few.
const FEW: u64 = 5;

/// A question with one product of a subnormal factor, or of two, and another summand near half of the last bit of their sum:
/// a few units in its own last place away, or with few bits. As far as the formats hold these; otherwise without.
pub fn dot_add(signature: &Signature, rng: &mut (impl Rng + ?Sized)) -> DotAdd {
    let mut question = place::zeros(signature);
    let k = below(signature.k as u64, rng) as usize;
    let both = below(2, rng) == 0;
    let of_a = below(2, rng) == 0;
    let mut factor = |format: &Format, is_small: bool| {
        let number = if is_small && format.fraction_bits > 0 {
            let width = 1 + below(format.fraction_bits.into(), rng);
            (1 + below((1 << width) - 1, rng), format.min_quantum())
        } else {
            let range = (format.max_exponent() - format.min_exponent()).max(0) as u64 + 1;
            (1, format.min_exponent() + below(range, rng) as i32)
        };
        let (significand, exponent) = number;
        let number = Dyadic { negative: below(2, rng) == 1, significand, exponent };
        let leading = exponent + significand.ilog2() as i32;
        place::exactly(format, number).map(|bits| (bits, leading))
    };
    let factors = (factor(&signature.a, both || of_a), factor(&signature.b, both || !of_a));
    let (Some((a, of_a)), Some((b, of_b))) = factors else { return question };
    (question.a[k], question.b[k]) = (a, b);
    let exponent = of_a + of_b;
    let last_bit = exponent - signature.d.fraction_bits as i32;
    let other = match below(3, rng) {
        0 if signature.k > 1 => {
            Summand::Product((k + 1 + below(signature.k as u64 - 1, rng) as usize) % signature.k)
        }
        _ => Summand::C,
    };
    let negative = below(2, rng) == 1;
    let width = match below(2, rng) {
        0 => FEW,
        // As many as c has, to be as near as it can be.
        _ => u64::from(signature.c.fraction_bits).min(40),
    };
    let halves = 1 + below(HALVES, rng);
    let beside = BESIDE[below(BESIDE.len() as u64, rng) as usize];
    // In units of that many bits below the half.
    let fine = width.saturating_sub(u64::from(halves.ilog2()));
    let significand = ((halves << fine) as i64 + beside).unsigned_abs();
    let value = Dyadic { negative, significand, exponent: last_bit - 1 - fine as i32 };
    place::set(&mut question, signature, other, value);
    question
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{E4M3, FP16, FP32};
    use mmaprobe_model::tree::{Added, Exponents, Fused, Node};
    use mmaprobe_model::{Executor, Model, Rounding};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn wide_sums_by_raw_exponents_are_told_from_exact_ones() {
        let signature = Signature { k: 2, a: FP16, b: FP16, c: FP32, d: FP32, scale: None };
        let exact = {
            let mut model = Model::chain_of_fma(FP16, FP32, 2);
            let leaves = [Node::Accumulator, Node::Product(0), Node::Product(1)];
            let sum = Node::Sum { children: vec![0, 1, 2], rule: 0 };
            model.tree.nodes = leaves.into_iter().chain([sum]).collect::<Vec<_>>().into();
            model.tree.rules[0].added = Added::Exact;
            model
        };
        for (fraction_bits, rounding) in [
            (46, Rounding::AwayFromZero),
            (51, Rounding::AwayFromZero),
            (51, Rounding::TowardZero),
            (64, Rounding::AwayFromZero),
        ] {
            let mut aligned = exact.clone();
            let fused = Fused { exponents: Exponents::Raw, ..Fused::uniform(fraction_bits, rounding) };
            aligned.tree.rules[0].added = Added::Fused(fused);
            let mut executors = [&exact, &aligned].map(|model| Executor::new(model).expect("it is a model"));
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
            let told = (0..2000)
                .filter(|_| {
                    let q = dot_add(&signature, &mut rng);
                    let [x, y] =
                        executors.each_mut().map(|executor| executor.dot_add(&q.a, &q.b, q.c, &[], &[]));
                    x != y
                })
                .count();
            assert!(told > 0, "{fraction_bits} bits, {rounding:?}");
            println!("{fraction_bits} bits, {rounding:?}: {told} of 2000");
        }
    }

    #[test]
    fn formats_that_hold_little_are_asked_what_they_hold() {
        let signature = Signature { k: 4, a: E4M3, b: E4M3, c: FP32, d: FP32, scale: None };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let lone = (0..500).filter(|_| {
            let question = dot_add(&signature, &mut rng);
            assert!(question.a.iter().chain(&question.b).all(|&bits| bits < 256));
            question.c == 0
        });
        let lone = lone.count();
        assert!((50..450).contains(&lone), "{lone} of 500 have no c");
    }
}
