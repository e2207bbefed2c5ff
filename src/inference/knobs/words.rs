//! What becomes of results at either end of a format's range, and how that is said.

use mmaprobe_model::Rounding;
use mmaprobe_model::format::{Overflow, RoundTo, Subnormals, Tininess};

/// What can become of results below the normal range.
pub(super) fn all_subnormals() -> Vec<Subnormals> {
    let mut all = vec![Subnormals::Kept];
    for tiny in [Tininess::AfterRounding, Tininess::BeforeRounding, Tininess::Delivered] {
        for sign_kept in [true, false] {
            all.push(Subnormals::Flushed { tiny, sign_kept });
        }
    }
    all
}

/// A flush, or none, in words.
pub(super) fn subnormal_words(subnormals: Subnormals) -> String {
    match subnormals {
        Subnormals::Kept => "kept".to_string(),
        Subnormals::Flushed { tiny, sign_kept } => {
            let when = match tiny {
                Tininess::BeforeRounding => "tiny before rounding",
                Tininess::AfterRounding => "tiny after rounding",
                Tininess::Delivered => "subnormal once rounded",
            };
            let zero = if sign_kept { "a zero of its sign" } else { "+0" };
            format!("flushed to {zero} if {when}")
        }
    }
}

/// An overflow in words.
pub(super) fn overflow_words(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::Infinity => "to infinity",
        Overflow::Largest => "to the largest number",
        Overflow::ByRounding => "as the rounding mode says",
    }
}

/// What can become of results that are too large, if it makes a difference.
pub(super) fn overflows(round: &RoundTo) -> Vec<Overflow> {
    // Rounding to nearest, or away from zero, always leads to infinity; RZ never does.
    let leads_back = matches!(round.rounding, Rounding::Up | Rounding::Down);
    let mut all = vec![Overflow::Infinity, Overflow::Largest];
    if leads_back || round.overflow == Overflow::ByRounding {
        all.push(Overflow::ByRounding);
    }
    all
}
