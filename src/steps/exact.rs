//! What a dot-add is exactly, and how far an answer is from that.

use std::fmt;

use mmaprobe_model::execute::Value;
use mmaprobe_model::{Decoded, Format, Term};

use crate::bits;
use crate::probes::{DotAdd, Signature};

/// The exact value of an expression of operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exact {
    /// There is none: an operand is NaN, or ∞ − ∞ or 0·∞ is asked for.
    Nan,
    /// An infinity.
    Infinite {
        /// Its sign.
        negative: bool,
    },
    /// A number.
    Finite(Term),
}

impl Exact {
    /// The value of a bit pattern.
    pub fn of(format: &Format, bits: u64) -> Exact {
        match format.decode(bits) {
            Decoded::Nan { .. } => Exact::Nan,
            Decoded::Infinite { negative } => Exact::Infinite { negative },
            Decoded::Finite { negative, significand, exponent } => {
                let lsb = exponent - format.fraction_bits as i32;
                Exact::Finite(Term::new(negative, significand.into(), lsb, exponent))
            }
        }
    }

    /// Whether a model's value is this one; zeros of both signs are.
    pub fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Exact::Nan, Value::Nan(_)) => true,
            (Exact::Infinite { negative }, Value::Infinite { negative: other, .. }) => negative == other,
            (Exact::Finite(term), Value::Finite(number)) => difference(term, &number.term).is_zero(),
            _ => false,
        }
    }

    fn times(self, factor: Exact) -> Exact {
        let sign = |value: &Exact| match value {
            Exact::Nan => false,
            Exact::Infinite { negative } => *negative,
            Exact::Finite(term) => term.negative,
        };
        let negative = sign(&self) != sign(&factor);
        match (self, factor) {
            (Exact::Finite(x), Exact::Finite(y)) => {
                let reduced = y.reduced();
                let significand = reduced.magnitude as u64;
                let product = x.scaled(significand, reduced.lsb, y.exponent);
                Exact::Finite(Term { negative, ..product })
            }
            (Exact::Nan, _) | (_, Exact::Nan) => Exact::Nan,
            (Exact::Finite(x), Exact::Infinite { .. }) | (Exact::Infinite { .. }, Exact::Finite(x))
                if x.is_zero() =>
            {
                Exact::Nan
            }
            _ => Exact::Infinite { negative },
        }
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exact::Nan => f.write_str("NaN"),
            Exact::Infinite { negative } => f.write_str(if *negative { "-infinity" } else { "infinity" }),
            Exact::Finite(term) => f.write_str(&bits::number(term)),
        }
    }
}

/// The product of two bit patterns.
pub fn product(a_format: &Format, a: u64, b_format: &Format, b: u64) -> Exact {
    Exact::of(a_format, a).times(Exact::of(b_format, b))
}

/// The first number less the second.
pub fn difference(x: &Term, y: &Term) -> Term {
    Term::sum([x, &Term { negative: !y.negative, ..y.clone() }])
}

/// The exact result of a dot-add, as its declared formats have its operands.
pub fn result(signature: &Signature, question: &DotAdd) -> Exact {
    let mut summands = vec![Exact::of(&signature.c, question.c)];
    for (k, (&a, &b)) in question.a.iter().zip(&question.b).enumerate() {
        let mut summand = product(&signature.a, a, &signature.b, b);
        if let Some(scale) = &signature.scale {
            let block = k / scale.block;
            summand = summand.times(Exact::of(&scale.format, question.sa[block]));
            summand = summand.times(Exact::of(&scale.format, question.sb[block]));
        }
        summands.push(summand);
    }
    let mut infinite = [false; 2];
    let mut terms = Vec::new();
    for summand in summands {
        match summand {
            Exact::Nan => return Exact::Nan,
            Exact::Infinite { negative } => infinite[usize::from(negative)] = true,
            Exact::Finite(term) => terms.push(term),
        }
    }
    match infinite {
        [true, true] => Exact::Nan,
        [false, false] => Exact::Finite(Term::sum(&terms)),
        [_, negative] => Exact::Infinite { negative },
    }
}

/// How far an answer is from the exact result, in units in the last place: the distance of the format's
/// numbers where the exact result is. `None` if either is no number.
pub fn error_in_ulps(exact: &Exact, d: &Format, answer: u64) -> Option<f64> {
    let (Exact::Finite(exact), Exact::Finite(answer)) = (exact, Exact::of(d, answer)) else { return None };
    let exponent = exact.leading_exponent().unwrap_or(i32::MIN).clamp(d.min_exponent(), d.max_exponent());
    let error = difference(&answer, exact);
    let unit = exponent - d.fraction_bits as i32;
    Some(bits::value(&Term { lsb: error.lsb - unit, ..error }))
}

/// An error as [`error_in_ulps`] counts it, for people: `-0.25 ulp`, `exact`.
pub fn ulps(error: Option<f64>) -> String {
    match error {
        None => "–".to_string(),
        Some(0.0) => "0, exact".to_string(),
        Some(error) => {
            let sign = if error < 0.0 { "-" } else { "+" };
            let magnitude = error.abs();
            // Six significant digits; whatever lies below or above is no size to read off.
            let digits = match magnitude {
                1e-4..1e6 => {
                    let places = (5 - magnitude.log10().floor() as i32).clamp(0, 10) as usize;
                    let plain = format!("{magnitude:.places$}");
                    match plain.contains('.') {
                        true => plain.trim_end_matches('0').trim_end_matches('.').to_string(),
                        false => plain,
                    }
                }
                _ => format!("{magnitude:.3e}"),
            };
            format!("{sign}{digits} ulp")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::format::{BF16, E2M1, FP16, FP32, FP64, UE8M0};
    use crate::model::tree::Scale;

    fn fp32(value: f32) -> u64 {
        value.to_bits().into()
    }

    /// Against fp64, where that is exact.
    #[test]
    fn results_are_those_of_exact_floats() {
        let signature = Signature { k: 2, a: BF16, b: BF16, c: FP32, d: FP32, scale: None };
        let bf16 = |value: f32| fp32(value) >> 16;
        for (a, b, c) in [([1.5, -3.0], [2.5, 0.125], -7.25), ([1e10, -2.0], [3e-10, 0.5], 1e-20)] {
            let [a0, a1] = a.map(bf16);
            let [b0, b1] = b.map(bf16);
            let question = DotAdd { a: vec![a0, a1], b: vec![b0, b1], c: fp32(c), sa: vec![], sb: vec![] };
            let read = |bits: u64| f64::from(f32::from_bits((bits << 16) as u32));
            let Exact::Finite(exact) = result(&signature, &question) else { panic!() };
            let float = read(a0) * read(b0) + read(a1) * read(b1) + f64::from(c);
            let error = (bits::value(&exact) - float).abs();
            assert!(error <= 1e-15 * float.abs(), "{exact:?} {float}");
        }
        // 1 + 2^-200: no float has it.
        let signature = Signature { k: 1, a: FP64, b: FP64, c: FP64, d: FP64, scale: None };
        let two = |e: i32| 2f64.powi(e).to_bits();
        let question = DotAdd { a: vec![two(-100)], b: vec![two(-100)], c: two(0), sa: vec![], sb: vec![] };
        let exact = result(&signature, &question);
        assert_eq!(exact.to_string(), "0x1.…p+0");
        let error = error_in_ulps(&exact, &FP64, two(0)).unwrap();
        assert_eq!(error, -(2f64.powi(52 - 200)));
    }

    #[test]
    fn scales_and_special_values() {
        let scale = Some(Scale { format: UE8M0, block: 2 });
        let signature = Signature { k: 4, a: E2M1, b: E2M1, c: FP32, d: FP32, scale };
        // 1.5 · −0.5 · 2^10 · 2^−3 + 6.
        let question = DotAdd {
            a: vec![0, 0, 0, 3],
            b: vec![0, 0, 0, 9],
            c: fp32(6.0),
            sa: vec![0, 137],
            sb: vec![0, 124],
        };
        assert_eq!(result(&signature, &question).to_string(), "-0x1.68p+6");
        let nan = DotAdd { sa: vec![255, 127], ..question };
        assert_eq!(result(&signature, &nan), Exact::Nan);
        let signature = Signature { k: 1, a: FP16, b: FP16, c: FP32, d: FP32, scale: None };
        let ask = |a, b, c| {
            result(&signature, &DotAdd { a: vec![a], b: vec![b], c, sa: vec![], sb: vec![] }).to_string()
        };
        assert_eq!(ask(0x7c00, 0xbc00, 0), "-infinity");
        assert_eq!(ask(0x7c00, 0, 0), "NaN");
        assert_eq!(ask(0x7c00, 0xbc00, fp32(f32::INFINITY)), "NaN");
        assert_eq!(ask(0x0001, 0x8001, 0), "-2^-48");
    }

    #[test]
    fn errors_are_counted_where_the_exact_result_is() {
        let exact = |value: f64| Exact::of(&FP64, value.to_bits());
        // Three quarters of the way from 1 to its successor.
        let near_one = 1.0 + 0.75 * f64::from(f32::EPSILON);
        assert_eq!(error_in_ulps(&exact(near_one), &FP32, fp32(1.0)), Some(-0.75));
        // Below the normal numbers their distance stays the same.
        assert_eq!(error_in_ulps(&exact(1.5 * 2f64.powi(-149)), &FP32, 1), Some(-0.5));
        assert_eq!(error_in_ulps(&exact(0.0), &FP32, 3), Some(3.0));
        assert_eq!(error_in_ulps(&exact(1.0), &FP32, fp32(f32::NAN)), None);
        for (error, text) in [
            (Some(0.0), "0, exact"),
            (Some(-0.75), "-0.75 ulp"),
            (Some(1.0 / 3.0), "+0.333333 ulp"),
            (Some(1234567.0), "+1.235e6 ulp"),
            (Some(100.0), "+100 ulp"),
            (None, "–"),
        ] {
            assert_eq!(ulps(error), text);
        }
    }
}
