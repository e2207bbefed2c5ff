//! What has met a large product before the opposite of that cancelled it?
//!
//! X on one product and −X on another cancel where they meet. What was added to one of them before was rounded to what a sum
//! keeps beside X; and where a sum that is not zero hands on the exponent that its summands were aligned to, what is added to
//! it later is cut off as beside X. In formats with little range X is not so far above y that y is lost, as
//! [masks](super::order) need it. But X may have many bits, y as small a last bit as there is, and c bits far below X: what
//! has met leaves a *trace* in these, the answer is not that without X and −X.

use mmaprobe_model::format::{Decoded, Format};

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};

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

/// All values to look for traces with: X of many bits or of one, y of few bits or of many, and c of all bits, or zero. None
/// where a product has no sign.
pub fn values(signature: &Signature) -> Vec<Values> {
    let Signature { a, b, c, .. } = signature;
    if !a.signed {
        return Vec::new();
    }
    let both = |factor: &dyn Fn(&Format) -> Option<u64>| Some((factor(a)?, factor(b)?));
    let largest = both(&|format| Some(format.pack(format.largest(false))));
    let large = [largest, both(&|format| place::exactly(format, Dyadic::power(format.max_exponent())))];
    let odd = |format: &Format, exponent: i32| {
        let fraction_bits = format.fraction_bits;
        place::exactly(format, Dyadic::new((1 << fraction_bits) + 1, exponent - fraction_bits as i32))
    };
    let small = [
        both(&|format| place::exactly(format, Dyadic::power(format.min_quantum()))),
        both(&|format| odd(format, format.min_exponent())),
        both(&|format| odd(format, (format.min_exponent() + format.max_exponent()) / 2)),
    ];
    let x = a.max_exponent() + b.max_exponent();
    let all_bits = (2u64 << c.fraction_bits) - 1;
    let of_all_bits = |exponent: i32, negative: bool| {
        let value = Dyadic { negative, ..Dyadic::new(all_bits, exponent - c.fraction_bits as i32) };
        place::exactly(c, value)
    };
    let all_bits =
        BELOW.iter().flat_map(|below| [false, true].map(|negative| of_all_bits(x - below, negative)));
    let zero = place::zeros(signature).c;
    let c: Vec<u64> = [zero].into_iter().chain(all_bits.flatten()).collect();
    let mut values = Vec::new();
    for large in large.into_iter().flatten() {
        for small in small.into_iter().flatten() {
            values.extend(c.iter().map(|&c| Values { large, small, c }));
        }
    }
    values
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
    let mut alone = DotAdd { c: values.c, ..zeros };
    match summand {
        Summand::Product(k) => (alone.a[k], alone.b[k]) = values.small,
        Summand::C if values.c == zeros_of_c(signature) => alone.c = as_c(signature, values.small)?,
        Summand::C => {}
    }
    let mut beside = alone.clone();
    (beside.a[x], beside.b[x]) = values.large;
    (beside.a[opposite], beside.b[opposite]) =
        (values.large.0 ^ place::sign_bit(&signature.a), values.large.1);
    Some([beside, alone])
}

fn zeros_of_c(signature: &Signature) -> u64 {
    place::zeros(signature).c
}

/// A product as a value of c, if c holds it.
fn as_c(signature: &Signature, (a, b): Factors) -> Option<u64> {
    let dyadic = |format: &Format, bits: u64| match format.decode(bits) {
        Decoded::Finite { significand, exponent, .. } => {
            Some(Dyadic::new(significand, exponent - format.fraction_bits as i32))
        }
        _ => None,
    };
    let (a, b) = (dyadic(&signature.a, a)?, dyadic(&signature.b, b)?);
    let product = Dyadic::new(a.significand.checked_mul(b.significand)?, a.exponent + b.exponent);
    place::exactly(&signature.c, product)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{E2M3, FP16};

    use super::*;

    #[test]
    fn what_cancels_is_not_small_and_of_many_bits() {
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
}
