//! Which summands are added to each other before they meet a large one?
//!
//! Two equal small values make exactly twice the value where they meet first, whatever the sum that they
//! meet in keeps: their answer is that of twice the value on one of them. Beside a large value they are
//! cut off or rounded one by one, and there is a distance at which that makes a difference. So X on one of
//! three summands, u on the other two, and 2u on either: where all answers are the same at every distance,
//! these two meet before the third. Unlike masks, this sees sums that are handed on without being
//! normalised, and sums whose children are aligned in different ways.

use crate::place::{self, Dyadic};
use crate::precision::LONGEST;
use crate::question::{DotAdd, Signature, Summand};

/// The probe's name.
pub const NAME: &str = "order/grouping";
/// The question in words.
pub const QUESTION: &str = "are two small summands added to each other before they meet X?";
/// Where the probe comes from.
pub const SOURCE: &str = "rooted triples, after MMA-Sim paper, section III.C";

/// How far the small values are below X, their sign, and whether −X on a fourth summand shows what is left
/// of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern {
    /// u is 1½·2^−`distance`·X.
    pub distance: i32,
    /// Whether u is negative.
    pub negative: bool,
    /// Whether a fourth summand holds −X.
    pub cancelled: bool,
}

impl Pattern {
    /// Every pattern.
    pub fn all() -> impl Iterator<Item = Pattern> {
        (1..=LONGEST).flat_map(|distance| {
            [(false, false), (true, false), (false, true), (true, true)]
                .map(|(negative, cancelled)| Pattern { distance, negative, cancelled })
        })
    }
}

/// The questions whether `pair` meet before `large`: u on both, 2u on the first, 2u on the second. `None` if
/// the formats do not hold the values, or the pattern calls for a fourth summand and there is none.
pub fn questions(
    signature: &Signature,
    pair: [Summand; 2],
    large: Summand,
    fourth: Option<Summand>,
    pattern: Pattern,
) -> Option<[DotAdd; 3]> {
    let top = top(signature, large, pattern.distance);
    let x = Dyadic::power(top);
    let small = |doubled: i32| Dyadic {
        negative: pattern.negative,
        significand: 3,
        exponent: top - pattern.distance - 1 + doubled,
    };
    let mut held = vec![(large, x)];
    if pattern.cancelled {
        held.push((fourth?, -x));
    }
    let with = |values: &[(Summand, Dyadic)]| place::question(signature, &[&held[..], values].concat());
    Some([
        with(&[(pair[0], small(0)), (pair[1], small(0))])?,
        with(&[(pair[0], small(1))])?,
        with(&[(pair[1], small(1))])?,
    ])
}

/// The exponent of X: high, so that nothing small runs out of range or under a floor, but no sum of a few
/// overflows. A large c lies above what products reach, where these would not reach so far below.
fn top(signature: &Signature, large: Summand, distance: i32) -> i32 {
    let (low, high) = place::reach_with_scales(signature);
    let high = match large {
        Summand::C => high.max(low + distance).min(signature.c.max_exponent()),
        Summand::Product(_) => high,
    };
    high.min(signature.d.max_exponent() - 2).min(HIGHEST)
}

/// Far enough up for every distance from there, and for a floor below that.
const HIGHEST: i32 = 96;

#[cfg(test)]
mod tests {
    use super::*;
    use mmaprobe_model::format;

    #[test]
    fn small_values_add_up_to_twice_one_of_them() {
        let signature = Signature {
            k: 4,
            a: format::BF16,
            b: format::BF16,
            c: format::FP32,
            d: format::FP32,
            scale: None,
        };
        let pair = [Summand::C, Summand::Product(2)];
        let (large, fourth) = (Summand::Product(0), Some(Summand::Product(3)));
        let mut asked = 0;
        for pattern in Pattern::all() {
            let Some(questions) = questions(&signature, pair, large, fourth, pattern) else { continue };
            asked += 1;
            let [both, first, second] = questions.map(|q| {
                // These inputs are exact in binary64, and so are these sums.
                let number = |format: &format::Format, bits| match format.decode(bits) {
                    mmaprobe_model::Decoded::Finite { negative, significand, exponent } => {
                        let magnitude =
                            significand as f64 * 2f64.powi(exponent - format.fraction_bits as i32);
                        if negative { -magnitude } else { magnitude }
                    }
                    other => panic!("{other:?} was asked"),
                };
                let products = |k: usize| number(&format::BF16, q.a[k]) * number(&format::BF16, q.b[k]);
                [products(0) + products(3), number(&format::FP32, q.c) + products(1) + products(2)]
            });
            assert_eq!(both, first);
            assert_eq!(both, second);
            assert_eq!(both[0] == 0.0, pattern.cancelled);
            assert_eq!(both[1] < 0.0, pattern.negative);
        }
        assert_eq!(asked, 4 * LONGEST);
    }

    /// Factors of e2m1 span 6 binades; scales bring small values further below X.
    #[test]
    fn block_scales_reach_below_what_sums_keep() {
        let scale = Some(mmaprobe_model::tree::Scale { format: format::UE4M3, block: 2 });
        let factors = format::E2M1;
        let signature = Signature { k: 6, a: factors, b: factors, c: format::FP32, d: format::FP32, scale };
        let pattern = Pattern { distance: 30, negative: false, cancelled: true };
        let [c, large, small, fourth] =
            [Summand::C, Summand::Product(0), Summand::Product(2), Summand::Product(4)];
        assert!(questions(&signature, [c, small], large, Some(fourth), pattern).is_some());
        let ladders = crate::precision::pair_ladders(&signature);
        assert!(ladders.iter().any(|ladder| ladder.len() > 30));
        // In one block, no scale helps.
        assert!(questions(&signature, [c, Summand::Product(1)], large, Some(fourth), pattern).is_none());
    }

    #[test]
    fn c_lies_as_far_above_products_as_is_asked_for() {
        let factors = format::E2M1;
        let signature =
            Signature { k: 4, a: factors, b: factors, c: format::FP32, d: format::FP32, scale: None };
        let [x, y, z] = [0, 1, 2].map(Summand::Product);
        let is_held = |pair, large| {
            let pattern = Pattern { distance: 30, negative: true, cancelled: false };
            questions(&signature, pair, large, None, pattern).is_some()
        };
        assert!(is_held([x, y], Summand::C));
        assert!(!is_held([x, y], z) && !is_held([x, Summand::C], z));
    }

    /// Products of e3m2 and e4m3 span 20 binades without subnormal factors, too few for a sum that keeps 23 bits.
    #[test]
    fn subnormal_factors_reach_further_inside_a_block() {
        let scale = Some(mmaprobe_model::tree::Scale { format: format::UE8M0, block: 4 });
        let (a, b) = (format::E3M2, format::E4M3);
        let signature = Signature { k: 8, a, b, c: format::FP32, d: format::FP32, scale };
        let [large, pair @ ..] = [0, 1, 2].map(Summand::Product);
        let is_held = |distance| {
            let pattern = Pattern { distance, negative: false, cancelled: false };
            questions(&signature, pair, large, None, pattern).is_some()
        };
        assert_eq!((1..=LONGEST).take_while(|&distance| is_held(distance)).last(), Some(24));
    }
}
