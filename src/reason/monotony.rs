//! Larger summands that make a result smaller.
//!
//! Where partial sums are not normalised, small summands count beside a c just below a power of two and are
//! lost beside that power itself (Fasi et al. 2021, "Monotonicity of dot product").

use std::collections::BTreeSet;

use super::{execute, signature};
use crate::model::tree::{Added, Normalised};
use crate::model::{Decoded, Model};
use crate::probes::place::{self, Dyadic};
use crate::probes::{DotAdd, Summand};

/// An input and a larger c with which the model's result is smaller, if one is found.
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn falling(model: &Model) -> Option<(DotAdd, DotAdd)> {
    let signature = signature(model);
    let c = &signature.c;
    let precision = c.fraction_bits as i32 + 1;
    let mut cuts = BTreeSet::new();
    for rule in &model.tree.rules {
        if let Added::Fused(fused) = &rule.added {
            cuts.extend(fused.alignment.iter().map(|alignment| alignment.fraction_bits as i32));
        }
        if let Normalised::To(round) = &rule.normalised {
            cuts.insert(round.fraction_bits as i32);
        }
    }
    let (low, high) = place::reach(&signature);
    let just_below = |exponent: i32| Dyadic::new((1 << precision) - 1, exponent - precision);
    for exponent in [0, 4, 8, (low + 40).min(high)] {
        for &cut in &cuts {
            for (significand, last) in (1..8).flat_map(|small| (1..16).map(move |last| (small, last))) {
                let input = |c: Dyadic| {
                    let products = (0..model.k).map(|k| {
                        let significand = if k + 1 == model.k { last } else { significand };
                        (Summand::Product(k), Dyadic::new(significand, exponent - cut - 1))
                    });
                    place::question(&signature, &products.chain([(Summand::C, c)]).collect::<Vec<_>>())
                };
                let pair = input(just_below(exponent)).zip(input(Dyadic::power(exponent)));
                if let Some((lower, upper)) = pair
                    && falls(model, &lower, &upper)
                {
                    return Some((lower, upper));
                }
            }
        }
    }
    None
}

/// Whether the second input's result is smaller than the first's.
pub fn falls(model: &Model, lower: &DotAdd, upper: &DotAdd) -> bool {
    let value = |input: &DotAdd| match model.d.decode(execute(model, input)) {
        Decoded::Finite { negative, significand, exponent } => {
            // In the order of the values: exponents first, for normal and subnormal numbers alike.
            let magnitude = (i128::from(exponent - model.d.min_exponent()) << 64) + i128::from(significand);
            let magnitude = if significand == 0 { 0 } else { magnitude };
            Some(if negative { -magnitude } else { magnitude })
        }
        Decoded::Infinite { negative } => Some(if negative { i128::MIN } else { i128::MAX }),
        Decoded::Nan { .. } => None,
    };
    matches!((value(lower), value(upper)), (Some(lower), Some(upper)) if upper < lower)
}
