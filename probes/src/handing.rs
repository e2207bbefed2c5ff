//! Is c handed from one product to the next?
//!
//! Where a sum takes c first and is rounded to c's own format, its result can be given back as c: a product
//! p that comes before q on c's way to the result leaves the same answer whether both are asked at once, or
//! p first and q of what came out. That asks for no X that is far above everything else, which formats with
//! little range do not hold.

use mmaprobe_model::Decoded;
use rand_core::Rng;

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};
use crate::sparse::below;

/// The probe's name.
pub const NAME: &str = "order/handing";
/// The question in words.
pub const QUESTION: &str = "is c handed through one product's sum before it comes to another's?";
/// Where the probe comes from.
pub const SOURCE: &str = "composition of the device with itself, after FPRev (Xie et al. 2025)";

/// A value of c and two of products, so near each other that sums of them are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// c.
    pub c: Dyadic,
    /// The product asked first.
    pub first: Dyadic,
    /// The product asked second.
    pub second: Dyadic,
}

/// The exponents that products are given.
fn reach(signature: &Signature) -> (i32, i32) {
    let (low, high) = place::reach_with_scales(signature);
    let low = low.max(-20);
    (low, high.min(20).max(low))
}

/// Fraction bits of c that d has, too.
fn kept_bits(signature: &Signature) -> i32 {
    signature.c.fraction_bits.min(signature.d.fraction_bits) as i32
}

/// The exponent that c is given for one that may be too large for c or d.
fn below_the_largest(signature: &Signature, top: i32) -> i32 {
    top.min(signature.c.max_exponent() - 2).min(signature.d.max_exponent() - 2)
}

/// Random values to try; distances between c and the products are often near one of the `cuts`, at which something is known
/// to be lost.
pub fn trials(
    signature: &Signature,
    count: usize,
    cuts: &[i32],
    rng: &mut (impl Rng + ?Sized),
) -> Vec<Trial> {
    let (low, high) = reach(signature);
    let bits = kept_bits(signature);
    let small = |exponent: i32, rng: &mut _| {
        // Factors of few bits may hold no other significands.
        let significand: u64 = [1, 1, 3, 5][below(4, rng) as usize];
        Dyadic { negative: below(2, rng) == 1, significand, exponent }
    };
    (0..count)
        .map(|_| {
            let exponent = low + below((high - low + 1) as u64, rng) as i32;
            let other = (exponent + below(5, rng) as i32 - 2).clamp(low, high);
            let distance = match below(2, rng) {
                0 if !cuts.is_empty() => {
                    cuts[below(cuts.len() as u64, rng) as usize] + below(5, rng) as i32 - 2
                }
                _ => below(bits as u64 + 4, rng) as i32,
            };
            let top = below_the_largest(signature, exponent + distance);
            let significand = 1 << bits | rng.next_u64() & ((1 << bits) - 1);
            Trial {
                c: Dyadic { negative: below(2, rng) == 1, significand, exponent: top - bits },
                first: small(exponent, rng),
                second: small(other, rng),
            }
        })
        .collect()
}

/// A trial, and a product that makes a half of the last bit that a result keeps of c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halved {
    /// The trial; both products are smaller than the half.
    pub trial: Trial,
    /// The half.
    pub half: Dyadic,
}

/// Binades below a half, in one of which both products of every second trial are: most sums keep few bits more than their
/// results.
const NEAR: i32 = 4;

/// Values with which a sum that is rounded to nearest is rounded up or down as the products say, however small they are:
/// c ends at one of the `cuts`, and the half is as far below c.
pub fn halved(
    signature: &Signature,
    count: usize,
    cuts: &[i32],
    rng: &mut (impl Rng + ?Sized),
) -> Vec<Halved> {
    let (low, high) = reach(signature);
    let bits = kept_bits(signature);
    let kept: Vec<i32> = cuts.iter().copied().filter(|cut| (1..bits).contains(cut)).chain([bits]).collect();
    (0..count)
        .map(|_| {
            let kept = kept[below(kept.len() as u64, rng) as usize];
            let exponent = high - below((high - low) as u64 / 2 + 1, rng) as i32;
            let top = below_the_largest(signature, exponent + kept + 1);
            let significand = 1 << kept | rng.next_u64() & ((1 << kept) - 1);
            let sign = |rng: &mut _| below(2, rng) == 1;
            let c = Dyadic { negative: sign(rng), significand, exponent: top - kept };
            let half = Dyadic { negative: sign(rng), significand: 1, exponent: top - kept - 1 };
            let is_near = below(2, rng) == 0;
            let binades = (half.exponent - low - 1).max(0);
            let far = below(if is_near { binades.min(NEAR - 1) } else { binades } as u64 + 1, rng) as i32;
            let small = |rng: &mut _| {
                let significand: u64 = [1, 1, 3, 5][below(4, rng) as usize];
                let exponent = half.exponent - 1 - significand.ilog2() as i32 - far;
                Dyadic { negative: sign(rng), significand, exponent }
            };
            Halved { trial: Trial { c, first: small(rng), second: small(rng) }, half }
        })
        .collect()
}

/// A question with c and these values of products.
pub fn question(signature: &Signature, c: Dyadic, products: &[(usize, Dyadic)]) -> Option<DotAdd> {
    let products = products.iter().map(|&(k, value)| (Summand::Product(k), value));
    let values: Vec<(Summand, Dyadic)> = products.chain([(Summand::C, c)]).collect();
    place::question(signature, &values)
}

/// What came out, as a value of c; `None` if it is no number, or C's format lacks it.
pub fn handed(signature: &Signature, answer: u64) -> Option<Dyadic> {
    let Decoded::Finite { negative, significand, exponent } = signature.d.decode(answer) else { return None };
    let value = Dyadic { negative, significand, exponent: exponent - signature.d.fraction_bits as i32 };
    place::exactly(&signature.c, value).map(|_| value)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{E2M3, E3M2, FP32};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    /// As exact integers, in units of the smallest of all values.
    #[test]
    fn a_half_is_half_of_the_last_bit_that_is_kept_of_c_and_all_else_is_smaller() {
        let signature = Signature { k: 4, a: E2M3, b: E3M2, c: FP32, d: FP32, scale: None };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut held = 0;
        for Halved { trial: Trial { c, first, second }, half } in halved(&signature, 200, &[10, 40], &mut rng)
        {
            let exponents = [c, first, second, half].map(|value| value.exponent);
            let least = exponents.into_iter().min().expect("there are four");
            let magnitude = |value: Dyadic| u128::from(value.significand) << (value.exponent - least);
            let kept = c.significand.ilog2();
            assert!([10, 23].contains(&kept), "{kept} bits");
            assert_eq!(magnitude(c) / (2 * magnitude(half)), u128::from(c.significand));
            assert_eq!(magnitude(c) % (2 * magnitude(half)), 0);
            assert!([first, second].into_iter().all(|small| magnitude(small) < magnitude(half)));
            let products = [(0, half), (1, first), (2, second)];
            held += usize::from(question(&signature, c, &products).is_some());
        }
        assert!(held > 100, "{held} are held");
    }
}
