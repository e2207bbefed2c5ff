//! Questions in which what is too small to count alone adds up.
//!
//! Below the smallest results, a sum may cut off its summands at a fixed bit, that of a floor under the largest
//! exponent; or products may be zeros below some magnitude; or all their bits may count. Alone a product so small shows
//! nothing. Several add up to a last bit of that kind or do not, and that shows where a larger one lies half way
//! between two results, or at one, but for so much.

use rand_core::Rng;

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};
use crate::sparse::below;

/// Trifles at most, and fewest.
const MOST: u64 = 5;
const FEWEST: u64 = 2;
/// Their bits below the last one that counts, and significands of about so many bits.
const BELOW: u64 = 3;
const WIDTH: u64 = 4;
/// Where nothing is known to be cut off, so many binades below the smallest result at most.
const DEEP: u64 = 48;

/// A question of a few products with bits below 2^e, for one of these exponents or near it, one that takes back what they
/// make in whole units of that, and one at a result or half way between two: the smallest there are, so that no large
/// exponent decides. As far as the formats hold these; without those that they do not.
pub fn dot_add(signature: &Signature, last_bits: &[i32], rng: &mut (impl Rng + ?Sized)) -> DotAdd {
    let mut question = place::zeros(signature);
    let smallest = signature.d.min_quantum();
    let last_bit = match last_bits.get(below(last_bits.len().max(1) as u64, rng) as usize) {
        Some(bit) if below(4, rng) > 0 => bit + below(3, rng) as i32 - 1,
        _ => smallest - below(DEEP, rng) as i32,
    };
    let mut free: Vec<usize> = (0..signature.k).collect();
    let mut any = |rng: &mut _| {
        (!free.is_empty()).then(|| Summand::Product(free.swap_remove(below(free.len() as u64, rng) as usize)))
    };
    // At a result, or half way between two.
    let negative = below(2, rng) == 1;
    let halves = [1, 1, 1, 2, 2, 3][below(6, rng) as usize];
    let Some(at) = any(rng) else { return question };
    place::set(
        &mut question,
        signature,
        at,
        Dyadic { negative, significand: halves, exponent: smallest - 1 },
    );
    // What they are in units of the last bit: all of it, and what is left when each loses the rest.
    let (mut all, mut cut) = (0i64, 0i64);
    let one_sign = below(2, rng) == 0;
    let parts = BELOW as i64;
    for _ in 0..FEWEST + below(MOST - FEWEST + 1, rng) {
        let significand = 1 + below(1 << (1 + below(WIDTH, rng)), rng);
        let negative = if one_sign { negative } else { below(2, rng) == 1 };
        let value = Dyadic { negative, significand, exponent: last_bit - BELOW as i32 };
        let Some(product) = any(rng) else { break };
        if place::set(&mut question, signature, product, value) {
            let signed = if negative { -(significand as i64) } else { significand as i64 };
            all += signed;
            cut += signed / (1 << parts);
        }
    }
    let whole = [cut, cut, all >> parts, (all >> parts) + 1][below(4, rng) as usize];
    if let Some(product) = any(rng).filter(|_| whole != 0) {
        let back = Dyadic { negative: whole > 0, significand: whole.unsigned_abs(), exponent: last_bit };
        place::set(&mut question, signature, product, back);
    }
    question
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{BF16, FP16, FP32, RoundTo};
    use mmaprobe_model::tree::{Added, Fused, Node, Normalised, Product};
    use mmaprobe_model::{Executor, Format, Model, Rounding};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    /// d = c + p0 + … + p7, of which 25 bits are kept.
    fn flat(factors: Format, d: Format, rounding: Rounding) -> Model {
        let mut model = Model::chain_of_fma(factors, d, 8);
        let products = (0..8).map(Node::Product);
        let sum = Node::Sum { children: (0..9).collect(), rule: 0 };
        model.tree.nodes =
            [Node::Accumulator].into_iter().chain(products).chain([sum]).collect::<Vec<_>>().into();
        model.tree.rules[0].added = Added::Fused(Fused::uniform(25, Rounding::TowardZero));
        model.tree.rules[0].normalised = Normalised::To(RoundTo { rounding, ..RoundTo::nearest_even(d) });
        model
    }

    #[test]
    fn floors_and_flushed_products_are_told_apart() {
        for (factors, d, rounding, last_bit) in
            [(FP16, FP16, Rounding::NearestTiesToEven, -46), (BF16, FP32, Rounding::TowardZero, -158)]
        {
            let plain = flat(factors, d, rounding);
            let with_floor = |floor| {
                let mut model = plain.clone();
                let Added::Fused(fused) = &mut model.tree.rules[0].added else { unreachable!("it is fused") };
                fused.floor = Some(floor);
                model
            };
            let floored = with_floor(last_bit + 25);
            let higher = with_floor(last_bit + 26);
            let product = Product::FlushedBelow { exponent: last_bit, sign_kept: true };
            let flushed = Model { product, ..plain.clone() };
            let models = [plain, floored, higher, flushed];
            let mut executors = models.each_ref().map(|model| Executor::new(model).expect("it is a model"));
            let signature = Signature { k: 8, a: factors, b: factors, c: d, d, scale: None };
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
            let mut told = [[0; 4]; 4];
            for _ in 0..1000 {
                let DotAdd { a, b, c, sa, sb } = dot_add(&signature, &[last_bit], &mut rng);
                let answers = executors.each_mut().map(|executor| executor.dot_add(&a, &b, c, &sa, &sb));
                for (one, other) in (0..4).flat_map(|one| (0..one).map(move |other| (one, other))) {
                    told[one][other] += usize::from(answers[one] != answers[other]);
                }
            }
            for (one, other) in (0..4).flat_map(|one| (0..one).map(move |other| (one, other))) {
                assert!(told[one][other] > 5, "{one} and {other}, {d}: {told:?} of 1000");
            }
        }
    }
}
