//! Reasoning over sum trees where solvers take hours: which bits can carry, which alignments can differ.
//!
//! A sum tree says where two models can part: at the bits that one keeps and the other drops, at ties,
//! where a sum outgrows its integer bits. Inputs that go there are few enough to try them all, and what
//! they show is verified by executing both models, so a mistake here can miss an input but never invent
//! one. [`carries`] answers how many carry bits a sum needs, with an input or a proof; [`pairs`] looks for
//! an input on which two models differ.

pub mod carries;
pub mod monotony;
pub mod pairs;
pub mod symmetry;

use crate::model::tree::NanRule;
use crate::model::{Executor, Model};
use crate::probes::{DotAdd, Signature};

/// The question's shape and formats, as a model reads them.
pub fn signature(model: &Model) -> Signature {
    Signature {
        k: model.k,
        a: model.a.format,
        b: model.b.format,
        c: model.c.format,
        d: model.d,
        scale: model.scale,
    }
}

/// Executes a model on one input.
///
/// # Panics
/// If the model does not pass [`Model::check`], or the input does not fit it.
pub fn execute(model: &Model, input: &DotAdd) -> u64 {
    let mut executor = Executor::new(model).expect("a checked model");
    executor.dot_add(&input.a, &input.b, input.c, &input.sa, &input.sb)
}

/// Whether two models' results differ: all NaNs are one where a model does not know which it is.
pub fn differ(one: &Model, other: &Model, results: [u64; 2]) -> bool {
    let is_nan = |bits: u64| matches!(one.d.decode(bits), crate::model::Decoded::Nan { .. });
    let unknown = one.nan == NanRule::Unknown || other.nan == NanRule::Unknown;
    results[0] != results[1] && !(unknown && is_nan(results[0]) && is_nan(results[1]))
}
