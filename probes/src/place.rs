//! Putting a chosen value on a chosen summand.
//!
//! The papers' inputs are written as values of summands; here they become operands. A value of c is
//! one operand; the value of a product has to be split into two factors that their formats hold.

use mmaprobe_model::format::{Decoded, Format};

use crate::question::{DotAdd, Signature, Summand};

/// The number ±`significand` × 2^`exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dyadic {
    /// The sign.
    pub negative: bool,
    /// An integer; 0 is allowed.
    pub significand: u64,
    /// The exponent of its lowest bit.
    pub exponent: i32,
}

impl Dyadic {
    /// 2^`exponent`.
    pub const fn power(exponent: i32) -> Dyadic {
        Dyadic { negative: false, significand: 1, exponent }
    }

    /// `significand` × 2^`exponent`.
    pub const fn new(significand: u64, exponent: i32) -> Dyadic {
        Dyadic { negative: false, significand, exponent }
    }

    /// The exponent of the leading bit, or `None` for zero.
    pub const fn leading(self) -> Option<i32> {
        match self.significand {
            0 => None,
            significand => Some(self.exponent + 63 - significand.leading_zeros() as i32),
        }
    }
}

impl std::ops::Neg for Dyadic {
    type Output = Dyadic;

    fn neg(self) -> Dyadic {
        Dyadic { negative: !self.negative, ..self }
    }
}

/// The bit pattern of a number in a format, if the format holds it exactly.
pub fn exactly(format: &Format, number: Dyadic) -> Option<u64> {
    let Dyadic { negative, significand, exponent } = number;
    let fraction_bits = format.fraction_bits as i32;
    let held = match number.leading() {
        Some(leading) => {
            let last = exponent + significand.trailing_zeros() as i32;
            let is_out_of_reach = leading > format.max_exponent()
                || last < format.min_quantum()
                || leading - last > fraction_bits;
            if is_out_of_reach {
                return None;
            }
            // From here on no bit is lost: the last one is not below that of the format's significands there.
            let normal = leading.max(format.min_exponent());
            let shift = exponent - (normal - fraction_bits);
            let significand = if shift < 0 { significand >> -shift } else { significand << shift };
            Decoded::Finite { negative, significand, exponent: normal }
        }
        None => Decoded::Finite { negative, significand: 0, exponent: format.min_exponent() },
    };
    let bits = format.pack(held);
    // A format without −0 turns it into +0, a format without signs has none, a format without zero has no zero, and in
    // some what would be the largest numbers is NaN.
    (format.decode(bits) == held).then_some(bits)
}

/// A question in which every product is +0·+0 and c is +0; block scales are 1.
pub fn zeros(signature: &Signature) -> DotAdd {
    let zero = |format: &Format| exactly(format, Dyadic::new(0, 0)).unwrap_or(0);
    let one = |format: &Format| exactly(format, Dyadic::power(0)).unwrap_or(0);
    let scale = signature.scale.map_or(0, |scale| one(&scale.format));
    DotAdd {
        a: vec![zero(&signature.a); signature.k],
        b: vec![zero(&signature.b); signature.k],
        c: zero(&signature.c),
        sa: vec![scale; signature.scales()],
        sb: vec![scale; signature.scales()],
    }
}

/// A question in which every product is −0·+0 and c is −0; `None` if A or C has no negative zero.
pub fn negative_zeros(signature: &Signature) -> Option<DotAdd> {
    let minus = Dyadic { negative: true, significand: 0, exponent: 0 };
    let a = vec![exactly(&signature.a, minus)?; signature.k];
    Some(DotAdd { a, c: exactly(&signature.c, minus)?, ..zeros(signature) })
}

/// Gives a summand a value. Returns whether the formats can hold it; if not, nothing changes.
///
/// The significand goes to A, or to B where only B holds it; the exponent is split so that both
/// factors stay as far inside their normal range as they can.
pub fn set(question: &mut DotAdd, signature: &Signature, summand: Summand, value: Dyadic) -> bool {
    match summand {
        Summand::C => match exactly(&signature.c, value) {
            Some(bits) => {
                question.c = bits;
                true
            }
            None => false,
        },
        Summand::Product(k) => match factors(signature, value) {
            Some((a, b)) => {
                (question.a[k], question.b[k]) = (a, b);
                true
            }
            None => false,
        },
    }
}

/// The exponent of a number's leading bit; `None` for zero and for what is no number.
pub fn leading(format: &Format, bits: u64) -> Option<i32> {
    match format.decode(bits) {
        Decoded::Finite { significand, exponent, .. } => {
            Dyadic::new(significand, exponent - format.fraction_bits as i32).leading()
        }
        _ => None,
    }
}

/// The same of a block scale; 0 for what is no number.
pub(crate) fn scale_exponent(format: &Format, bits: u64) -> i32 {
    leading(format, bits).unwrap_or(0)
}

/// The same of both scales of a block together; 0 without scales.
pub fn scales_exponent(signature: &Signature, question: &DotAdd, block: usize) -> i32 {
    signature.scale.map_or(0, |scale| {
        [question.sa[block], question.sb[block]].map(|bits| scale_exponent(&scale.format, bits)).iter().sum()
    })
}

/// A question in which these summands have these values and all others are zero. Block scales are 1
/// where the formats of the factors hold the values.
pub fn question(signature: &Signature, values: &[(Summand, Dyadic)]) -> Option<DotAdd> {
    let mut question = zeros(signature);
    let all_set = values.iter().all(|&(summand, value)| set(&mut question, signature, summand, value));
    if all_set { Some(question) } else { with_scales(signature, values) }
}

/// The sign bit of a format; no bit where it has none.
pub(crate) fn sign_bit(format: &Format) -> u64 {
    u64::from(format.signed) << (format.ignored_low_bits + format.bits() - 1)
}

/// The same with scales that bring the values of each block within reach of its factors; `None` if
/// values of one block are too far apart.
fn with_scales(signature: &Signature, values: &[(Summand, Dyadic)]) -> Option<DotAdd> {
    let scale = signature.scale?;
    let (low, high) = reach_of_factors(signature);
    let lowest = low - (signature.a.fraction_bits + signature.b.fraction_bits) as i32;
    let mut question = zeros(signature);
    for block in 0..signature.scales() {
        let inside = |(summand, _): &&(Summand, Dyadic)| matches!(summand, Summand::Product(k) if k / scale.block == block);
        let leading = || values.iter().filter(inside).filter_map(|(_, value)| value.leading());
        let (Some(smallest), Some(largest)) = (leading().min(), leading().max()) else { continue };
        // From the scale nearest to 1, those with which all factors are normal first.
        let mut shifts: Vec<i32> = (largest - high..=smallest - lowest).collect();
        shifts.sort_by_key(|&shift| (shift > smallest - low, shift.abs()));
        let fits = shifts.into_iter().find_map(|shift| {
            let half = shift.div_euclid(2);
            let sa = exactly(&scale.format, Dyadic::power(half))?;
            let sb = exactly(&scale.format, Dyadic::power(shift - half))?;
            let mut scaled = question.clone();
            (scaled.sa[block], scaled.sb[block]) = (sa, sb);
            let down = |value: Dyadic| Dyadic { exponent: value.exponent - shift, ..value };
            values
                .iter()
                .filter(inside)
                .all(|&(summand, value)| set(&mut scaled, signature, summand, down(value)))
                .then_some(scaled)
        });
        question = fits?;
    }
    values
        .iter()
        .filter(|(summand, _)| *summand == Summand::C)
        .all(|&(summand, value)| set(&mut question, signature, summand, value))
        .then_some(question)
}

/// A question in which this product's factors are these bit patterns and all else is zero.
pub(crate) fn with_factors(signature: &Signature, k: usize, a: u64, b: u64) -> DotAdd {
    let mut question = zeros(signature);
    (question.a[k], question.b[k]) = (a, b);
    question
}

/// Elements of which one is replaced.
pub(crate) fn replaced(elements: &[u64], k: usize, with: u64) -> Vec<u64> {
    let mut elements = elements.to_vec();
    elements[k] = with;
    elements
}

/// Odd divisors up to this one are tried when a significand has to be split between A and B.
const LARGEST_DIVISOR: u64 = 2049;

/// Factors a·b of a value, in the formats of A and B.
fn factors(signature: &Signature, value: Dyadic) -> Option<(u64, u64)> {
    let (a, b) = (&signature.a, &signature.b);
    if value.significand == 0 {
        let zero = exactly(a, Dyadic { negative: value.negative, significand: 0, exponent: 0 });
        return Some((zero?, exactly(b, Dyadic::power(0))?));
    }
    let trailing = value.significand.trailing_zeros();
    let value = Dyadic {
        significand: value.significand >> trailing,
        exponent: value.exponent + trailing as i32,
        ..value
    };
    // Neither factor is larger than the significands of the formats; the smaller one is not above the square root.
    let largest = (2u64 << a.fraction_bits.max(b.fraction_bits)) - 1;
    let least = value.significand.div_ceil(largest);
    let most = value.significand.isqrt().min(LARGEST_DIVISOR);
    for divisor in (least | 1..=most).step_by(2) {
        if !value.significand.is_multiple_of(divisor) {
            continue;
        }
        let quotient = value.significand / divisor;
        for (x, y) in [(quotient, divisor), (divisor, quotient)] {
            if let Some(pair) = split(a, b, x, y, value) {
                return Some(pair);
            }
        }
    }
    None
}

/// The most balanced a = ±x·2^i and b = y·2^j with i + j = the value's exponent: both normal if
/// possible, then one subnormal, then both.
fn split(a: &Format, b: &Format, x: u64, y: u64, value: Dyadic) -> Option<(u64, u64)> {
    let width = |significand: u64| 63 - significand.leading_zeros() as i32;
    let normal = |format: &Format, significand: u64| {
        (format.min_exponent() - width(significand), format.max_exponent() - width(significand))
    };
    let (low_a, high_a) = normal(a, x);
    let (low_b, high_b) = normal(b, y);
    let total = value.exponent;
    // Exponents of a for which both factors are normal.
    let (low, high) = (low_a.max(total - high_b), high_a.min(total - low_b));
    let middle = (low_a + high_a) / 2 + (total - (low_a + high_a) / 2 - (low_b + high_b) / 2) / 2;
    let normal_choice = (low <= high).then(|| middle.clamp(low, high));
    // Below the normal range, one factor is the smallest normal number and the other subnormal; below that, the last bit
    // of one is that of the smallest subnormal number.
    let last_bit = a.min_exponent() - a.fraction_bits as i32;
    let others = [total - low_b, low_a, total - high_b, high_a, last_bit];
    normal_choice.into_iter().chain(others).find_map(|i| {
        let factor_a = exactly(a, Dyadic { negative: value.negative, significand: x, exponent: i })?;
        let factor_b = exactly(b, Dyadic::new(y, total - i))?;
        Some((factor_a, factor_b))
    })
}

/// The exponents of the powers of two that every summand can hold, with all factors normal:
/// the smallest and the largest.
pub fn reach(signature: &Signature) -> (i32, i32) {
    let (low, high) = reach_of_factors(signature);
    (low.max(signature.c.min_exponent()), high.min(signature.c.max_exponent()))
}

/// The same with block scales: of summands in different blocks.
pub fn reach_with_scales(signature: &Signature) -> (i32, i32) {
    let (mut low, mut high) = reach_of_factors(signature);
    if let Some(scale) = signature.scale {
        low += 2 * scale.format.min_exponent();
        high += 2 * scale.format.max_exponent();
    }
    (low.max(signature.c.min_exponent()), high.min(signature.c.max_exponent()))
}

/// The same of products alone.
pub fn reach_of_factors(signature: &Signature) -> (i32, i32) {
    let (a, b) = (&signature.a, &signature.b);
    (a.min_exponent() + b.min_exponent(), a.max_exponent() + b.max_exponent())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmaprobe_model::format::{self, RoundTo};
    use mmaprobe_model::{Rounding, Term};
    use rand_core::Rng;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use crate::sparse::below;

    /// The same by rounding: a number is held if nothing is left of it.
    fn rounded_to_itself(format: &Format, number: Dyadic) -> Option<u64> {
        let term = Term::new(number.negative, number.significand.into(), number.exponent, number.exponent);
        let rounded =
            RoundTo { rounding: Rounding::TowardZero, ..RoundTo::nearest_even(*format) }.round(&term);
        let Decoded::Finite { negative, significand, exponent } = rounded else { return None };
        let back = Term::new(negative, significand.into(), exponent - format.fraction_bits as i32, exponent);
        let left = Term::sum(&[Term { negative: !term.negative, ..term }, back]);
        let bits = format.pack(rounded);
        (left.is_zero() && format.decode(bits) == rounded && negative == number.negative).then_some(bits)
    }

    #[test]
    fn what_is_held_is_what_rounding_leaves_as_it_is() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for format in Format::ALL {
            let (mut held, mut refused) = (0, 0);
            for _ in 0..4000 {
                let significand = match below(16, &mut rng) {
                    0 => 0,
                    _ => rng.next_u64() >> below(64, &mut rng) << below(4, &mut rng),
                };
                let bits = 64 - significand.leading_zeros() as i32;
                let (low, high) = (format.min_quantum() - 3, format.max_exponent() + 3);
                let leading = low + below((high - low + 1) as u64, &mut rng) as i32;
                let negative = below(2, &mut rng) == 1;
                let number = Dyadic { negative, significand, exponent: leading - bits };
                let bits = exactly(&format, number);
                assert_eq!(bits, rounded_to_itself(&format, number), "{format}: {number:?}");
                *(if bits.is_some() { &mut held } else { &mut refused }) += 1;
            }
            assert!(held > 50 && refused > 50, "{format}: {held} and {refused}");
        }
    }

    #[test]
    fn any_split_that_formats_hold_is_found() {
        for format in [format::E4M3, format::FP16, format::BF16] {
            let signature =
                Signature { k: 1, a: format, b: format, c: format::FP64, d: format::FP64, scale: None };
            let largest = 2u64 << format.fraction_bits;
            let mut split = 0;
            for significand in (1..40_000).step_by(2) {
                let can_be = (1..largest.min(LARGEST_DIVISOR + 1))
                    .any(|divisor| significand % divisor == 0 && significand / divisor < largest);
                let is = factors(&signature, Dyadic::new(significand, -8)).is_some();
                assert_eq!(is, can_be, "{format}: {significand}");
                split += usize::from(is);
            }
            assert!((30..20_000).contains(&split), "{format}: {split}");
        }
    }

    #[test]
    fn values_arrive_as_asked() {
        for factor in Format::ALL.into_iter().filter(|format| format.signed) {
            let signature =
                Signature { k: 2, a: factor, b: factor, c: format::FP64, d: format::FP64, scale: None };
            let mut placed = 0;
            for significand in [1u64, 3, 5, 7, 9, 15] {
                for exponent in -400..400 {
                    let value = -Dyadic::new(significand, exponent);
                    let Some(question) = question(&signature, &[(Summand::Product(1), value)]) else {
                        continue;
                    };
                    let (
                        Decoded::Finite { significand: x, exponent: i, negative },
                        Decoded::Finite { significand: y, exponent: j, .. },
                    ) = (factor.decode(question.a[1]), factor.decode(question.b[1]))
                    else {
                        panic!("{factor}: factors of {value:?} are not finite")
                    };
                    let product = Term::new(
                        !negative,
                        u128::from(x) * u128::from(y),
                        i + j - 2 * factor.fraction_bits as i32,
                        0,
                    );
                    let expected =
                        Term::new(value.negative, u128::from(value.significand), value.exponent, 0);
                    assert!(Term::sum(&[product, expected]).is_zero(), "{factor}: {value:?}");
                    placed += 1;
                }
            }
            assert!(placed >= 12, "{factor}: only {placed} values could be placed");
        }
    }

    #[test]
    fn what_a_format_lacks_is_refused() {
        assert_eq!(exactly(&format::E4M3FNUZ, -Dyadic::new(0, 0)), None);
        assert_eq!(exactly(&format::E2M1, Dyadic::new(5, 0)), None);
        assert_eq!(exactly(&format::UE8M0, Dyadic::new(0, 0)), None);
        assert_eq!(exactly(&format::E4M3, Dyadic::new(15, 5)), None);
        assert_eq!(exactly(&format::E4M3, Dyadic::new(14, 5)), Some(0x7E));
    }
}
