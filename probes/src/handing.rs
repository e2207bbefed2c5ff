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

/// Random values to try; distances between c and the products are often near one of the `cuts`, at which something is known
/// to be lost.
pub fn trials(
    signature: &Signature,
    count: usize,
    cuts: &[i32],
    rng: &mut (impl Rng + ?Sized),
) -> Vec<Trial> {
    let (low, high) = place::reach_with_scales(signature);
    let (low, high) = (low.max(-20), high.min(20).max(low.max(-20)));
    let bits = signature.c.fraction_bits.min(signature.d.fraction_bits) as i32;
    let small = |exponent: i32, rng: &mut _| {
        // Factors of few bits may hold no other significands.
        let significand = [1, 1, 3, 5][below(4, rng) as usize];
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
            let top = exponent + distance;
            let top = top.min(signature.c.max_exponent() - 2).min(signature.d.max_exponent() - 2);
            let significand = 1 << bits | rng.next_u64() & ((1 << bits) - 1);
            Trial {
                c: Dyadic { negative: below(2, rng) == 1, significand, exponent: top - bits },
                first: small(exponent, rng),
                second: small(other, rng),
            }
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
