//! Which two of three summands meet first, where formats hold no X far above y?
//!
//! M is a power of two that d holds, and 2·M is none. M + M − M is M, unless the two M meet before −M does, in
//! a sum that is rounded to d's range: then it has overflown. Block scales bring products of any format there.

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};

/// The question in words.
pub const QUESTION: &str = "does M + M overflow before −M is added?";
/// Where the probe comes from.
pub const SOURCE: &str = "issue 4, formats with little range";
/// The probe's name.
pub const NAME: &str = "order/overflow";

/// M on two summands and −M on a third; `None` if the formats do not hold them.
pub fn question(signature: &Signature, pair: [Summand; 2], last: Summand) -> Option<DotAdd> {
    let large = Dyadic::power(signature.d.max_exponent());
    place::question(signature, &[(pair[0], large), (pair[1], large), (last, -large)])
}

/// The pattern of M, which comes out where nothing overflows.
pub fn unharmed(signature: &Signature) -> Option<u64> {
    place::exactly(&signature.d, Dyadic::power(signature.d.max_exponent()))
}
