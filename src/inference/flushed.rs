//! Which factors a device takes for zero when they are subnormal.
//!
//! Small values in formats with little range are made of subnormal factors. Where a device takes these for zero, answers
//! to such questions show nothing about sums.

use mmaprobe_model::format::{Decoded, Format};
use mmaprobe_probes::place;
use mmaprobe_probes::{DotAdd, Signature};

use super::evidence::{Answered, Class, Evidence};

/// Whether a subnormal a, or b, seems to be taken for zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    a: bool,
    b: bool,
}

impl Flushed {
    /// What answers to lone products show, as far as any do: that a result is zero which is none, and is not too small.
    pub fn of(evidence: &Evidence) -> Flushed {
        Flushed::shown(evidence.signature(), &evidence.answers)
    }

    fn shown(signature: &Signature, answers: &[Answered]) -> Flushed {
        let lone = answers.iter().filter(|answered| answered.summands == 1);
        let zeros = lone.filter(|answered| is_zero(&signature.d, answered.answer));
        zeros.fold(Flushed::default(), |flushed, answered| match subnormal_factors(signature, answered) {
            Some([true, false]) => Flushed { a: true, ..flushed },
            Some([false, true]) => Flushed { b: true, ..flushed },
            _ => flushed,
        })
    }

    /// Whether a factor of a question is one of those.
    pub fn has(self, signature: &Signature, question: &DotAdd) -> bool {
        let is_in = |format: &Format, bits: &[u64]| bits.iter().any(|&bits| is_subnormal(format, bits));
        self.a && is_in(&signature.a, &question.a) || self.b && is_in(&signature.b, &question.b)
    }
}

/// Of the only product of a question without c, which factors are subnormal; `None` where d does not hold it as a normal
/// number.
fn subnormal_factors(signature: &Signature, answered: &Answered) -> Option<[bool; 2]> {
    let question = &answered.question;
    let product = |k: usize| {
        let (a, b) =
            (place::leading(&signature.a, question.a[k])?, place::leading(&signature.b, question.b[k])?);
        let block = signature.scale.map_or(0, |scale| k / scale.block);
        Some((k, a + b + place::scales_exponent(signature, question, block)))
    };
    let (k, exponent) = (0..signature.k).find_map(product)?;
    let is_held = exponent >= signature.d.min_exponent() && answered.class <= Class::Subnormal;
    is_held.then(|| [is_subnormal(&signature.a, question.a[k]), is_subnormal(&signature.b, question.b[k])])
}

fn is_zero(format: &Format, bits: u64) -> bool {
    matches!(format.decode(bits), Decoded::Finite { significand: 0, .. })
}

fn is_subnormal(format: &Format, bits: u64) -> bool {
    let first = 1 << format.fraction_bits;
    matches!(format.decode(bits), Decoded::Finite { significand, .. } if significand > 0 && significand < first)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Model;
    use mmaprobe_model::format::{E4M3, FP32};
    use mmaprobe_model::scalar::Scalar;
    use mmaprobe_model::tree::InputSubnormals;
    use mmaprobe_probes::place::Dyadic;
    use mmaprobe_probes::{Summand, subnormals};

    use super::*;
    use crate::inference::skeleton::Skeleton;
    use crate::inference::structure::{self, Structure};

    const SIGNATURE: Signature = Signature { k: 4, a: E4M3, b: E4M3, c: FP32, d: FP32, scale: None };

    /// What the probe about subnormals shows of a device.
    fn seen(change: impl Fn(&mut Model)) -> Flushed {
        let flat = Skeleton::Sum(SIGNATURE.summands().map(Skeleton::Leaf).collect());
        let mut model = structure::start(&SIGNATURE, &flat, Structure::Plain);
        change(&mut model);
        let mut executor = Scalar::new(&model).expect("it can be executed");
        let asked = subnormals::probe(&SIGNATURE).into_iter().flat_map(|probe| probe.dot_adds);
        let answers: Vec<Answered> = asked
            .map(|q| {
                let answer = executor.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb);
                Answered::new(&SIGNATURE, 0, q, answer)
            })
            .collect();
        Flushed::shown(&SIGNATURE, &answers)
    }

    #[test]
    fn each_factor_is_seen() {
        assert_eq!(seen(|_| ()), Flushed { a: false, b: false });
        assert_eq!(
            seen(|model| model.a.subnormals = InputSubnormals::FlushedToPositiveZero),
            Flushed { a: true, b: false }
        );
        assert_eq!(
            seen(|model| model.b.subnormals = InputSubnormals::FlushedToSignedZero),
            Flushed { a: false, b: true }
        );
    }

    #[test]
    fn what_has_such_a_factor_is_told() {
        let question = |exponent| {
            let values = [(Summand::Product(1), Dyadic::power(exponent))];
            place::question(&SIGNATURE, &values).expect("e4m3 holds the factors")
        };
        let both = Flushed { a: true, b: true };
        assert!(both.has(&SIGNATURE, &question(-15)) && !both.has(&SIGNATURE, &question(-12)));
        assert!(!Flushed::default().has(&SIGNATURE, &question(-15)));
    }
}
