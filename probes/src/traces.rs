//! What has met a large product before the opposite of that cancelled it?
//!
//! X on one product and −X on another cancel where they meet. What was added to one of them before was rounded to what a sum
//! keeps beside X; and where a sum that is not zero hands on the exponent that its summands were aligned to, what is added to
//! it later is cut off as beside X. In formats with little range X is not so far above y that y is lost, as
//! [masks](super::order) need it. But X may have many bits, y as small a last bit as there is, and c bits far below X: what
//! has met leaves a *trace* in these, the answer is not that without X and −X.

use mmaprobe_model::format::Format;

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};
use crate::vary;

/// The question in words.
pub const QUESTION: &str = "what leaves a trace between X on one product and -X on another?";
/// Where the probe comes from.
pub const SOURCE: &str = "after MMA-Sim paper, section III.C; issue 4, formats with little range";
/// The probe's name.
pub const NAME: &str = "order/traces";

/// Two factors of a product, as bit patterns.
type Factors = (u64, u64);

/// What traces are looked for with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    /// X.
    large: Factors,
    /// y.
    small: Factors,
    /// c beside them.
    c: u64,
}

/// How far below X, in binades, c is.
const BELOW: [i32; 4] = [4, 8, 12, 16];

/// The largest exponent of fp16: sums on the way may have no more range than that.
const NEAR: i32 = 15;

/// All values to look for traces with: X of many bits or of one, no larger than sums in d's format hold, or in fp16's; y of
/// few bits or of many, and c of all bits, or zero, where c can hold y. None where A has no sign.
pub fn values(signature: &Signature) -> Vec<Values> {
    let Signature { a, b, c, d, .. } = signature;
    if !a.signed {
        return Vec::new();
    }
    let zero = place::zeros(signature).c;
    // X is below 4 times the power of two of these exponents, and less is added to it than as much again.
    let exponents = [d.max_exponent(), d.max_exponent().min(NEAR)].map(|top| {
        let of_a = a.max_exponent().min((top - ROOM) / 2);
        (of_a, b.max_exponent().min(top - ROOM - of_a))
    });
    let mut exponents = exponents.to_vec();
    exponents.dedup();
    let mut values: Vec<Values> = Vec::new();
    for (exponent_of_a, exponent_of_b) in exponents {
        let both = |factor: &dyn Fn(&Format, i32) -> Option<u64>| {
            Some((factor(a, exponent_of_a)?, factor(b, exponent_of_b)?))
        };
        let large = [both(&all_bits_at), both(&|format, e| place::exactly(format, Dyadic::power(e)))];
        let x = exponent_of_a + exponent_of_b;
        let of_all_bits = |exponent: i32, negative: bool| {
            let value = Dyadic { negative, ..Dyadic::new(all_bits(c), exponent - c.fraction_bits as i32) };
            place::exactly(c, value)
        };
        let below =
            BELOW.iter().flat_map(|below| [false, true].map(|negative| of_all_bits(x - below, negative)));
        let beside: Vec<u64> = below.flatten().collect();
        for large in large.into_iter().flatten() {
            for small in small(signature) {
                let zero = Some(zero).filter(|_| as_c(signature, small).is_some());
                values.extend(zero.into_iter().chain(beside.clone()).map(|c| Values { large, small, c }));
            }
        }
    }
    values
}

/// Binades that X stays below the largest number, for its significand of many bits and for what is added to it.
const ROOM: i32 = 3;

/// A significand of ones, as an integer with the hidden bit.
fn all_bits(format: &Format) -> u64 {
    (2u64 << format.fraction_bits) - 1
}

/// The largest number with this exponent.
fn all_bits_at(format: &Format, exponent: i32) -> Option<u64> {
    let significand =
        if exponent == format.max_exponent() { format.max_significand() } else { all_bits(format) };
    place::exactly(format, Dyadic::new(significand, exponent - format.fraction_bits as i32))
}

/// The values of y: the smallest, and two of many bits, as small as normal numbers are and larger.
fn small(signature: &Signature) -> Vec<Factors> {
    let both = |factor: &dyn Fn(&Format) -> Option<u64>| Some((factor(&signature.a)?, factor(&signature.b)?));
    let odd = |format: &Format, exponent: i32| {
        let fraction_bits = format.fraction_bits;
        place::exactly(format, Dyadic::new((1 << fraction_bits) + 1, exponent - fraction_bits as i32))
    };
    let all = [
        both(&|format| place::exactly(format, Dyadic::power(format.min_quantum()))),
        both(&|format| odd(format, format.min_exponent())),
        both(&|format| odd(format, (format.min_exponent() + format.max_exponent()) / 2)),
    ];
    all.into_iter().flatten().collect()
}

/// X on a product, −X on another, and y on one more; of c, what it is beside them, or, where that is zero, y. And the same
/// without X and −X. `None` if c does not hold y.
pub fn questions(
    signature: &Signature,
    values: &Values,
    (x, opposite): (usize, usize),
    summand: Summand,
) -> Option<[DotAdd; 2]> {
    let zeros = place::zeros(signature);
    let is_zero = values.c == zeros.c;
    let mut alone = DotAdd { c: values.c, ..zeros };
    match summand {
        Summand::Product(k) => (alone.a[k], alone.b[k]) = values.small,
        Summand::C if is_zero => alone.c = as_c(signature, values.small)?,
        Summand::C => {}
    }
    let mut beside = alone.clone();
    (beside.a[x], beside.b[x]) = values.large;
    (beside.a[opposite], beside.b[opposite]) =
        (values.large.0 ^ place::sign_bit(&signature.a), values.large.1);
    Some([beside, alone])
}

/// A product as a value of c, if c holds it.
fn as_c(signature: &Signature, (a, b): Factors) -> Option<u64> {
    let product = vary::product(signature, &place::with_factors(signature, 0, a, b), 0)?;
    place::exactly(&signature.c, product)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{Decoded, E2M3, E4M3, FP16};

    use super::*;

    #[test]
    fn x_cancels_and_has_many_bits_and_y_a_small_last_one() {
        let signature = Signature { k: 4, a: E2M3, b: E2M3, c: FP16, d: FP16, scale: None };
        let all = values(&signature);
        let value = |format: &Format, bits: u64| match format.decode(bits) {
            Decoded::Finite { negative, significand, exponent } => {
                let magnitude = significand as f64 * f64::from(exponent - format.fraction_bits as i32).exp2();
                if negative { -magnitude } else { magnitude }
            }
            _ => f64::NAN,
        };
        let products: Vec<[f64; 4]> = all
            .iter()
            .filter_map(|values| questions(&signature, values, (0, 2), Summand::Product(3)))
            .map(|[beside, _]| [0, 1, 2, 3].map(|k| value(&E2M3, beside.a[k]) * value(&E2M3, beside.b[k])))
            .collect();
        assert!(products.iter().all(|[x, none, opposite, _]| *x == -opposite && *none == 0.0));
        // 7.5², and the smallest subnormal number squared.
        assert!(products.contains(&[56.25, 0.0, -56.25, 2f64.powi(-6)]), "{products:?}");
        let with_c = all.iter().filter_map(|values| questions(&signature, values, (0, 1), Summand::C));
        let c: Vec<f64> = with_c.map(|[_, alone]| value(&FP16, alone.c)).collect();
        assert!(c.contains(&2f64.powi(-6)) && c.contains(&(2.0 - 2f64.powi(-10))), "{c:?}");
    }

    #[test]
    fn no_x_is_more_than_sums_hold() {
        let signature = Signature { k: 4, a: E4M3, b: E4M3, c: FP16, d: FP16, scale: None };
        let all = values(&signature);
        assert!(!all.is_empty());
        for values in all {
            let (a, b) = values.large;
            let large = vary::product(&signature, &place::with_factors(&signature, 0, a, b), 0);
            let leading = large.and_then(|large| large.leading()).expect("it is finite");
            assert!((8..15).contains(&leading), "2^{leading}");
        }
        let unsigned = Format::named("ue4m3").expect("a known format");
        assert!(values(&Signature { a: unsigned, ..signature }).is_empty());
    }
}
