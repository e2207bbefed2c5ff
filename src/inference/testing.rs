//! What tests of the inference share.

use mmaprobe_model::format::{FP16, FP32};
use mmaprobe_model::scalar::Scalar;
use mmaprobe_model::tree::Model;
use mmaprobe_probes::{DotAdd, Signature, sparse};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::evidence::{self, Answered};
use crate::device::simulated::Simulated;
use crate::device::{Identity, Instruction, Provenance};

/// Dot-adds of so many products of fp16, with c and d in fp32.
pub(super) const fn signature(k: usize) -> Signature {
    Signature { k, a: FP16, b: FP16, c: FP32, d: FP32, scale: None }
}

/// What a model answers to so many random dot-adds with few summands.
pub(super) fn sparse_answers(
    signature: &Signature,
    model: &Model,
    number: usize,
    seed: u64,
) -> Vec<Answered> {
    let mut executor = Scalar::new(model).expect("it can be executed");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut next = || answered(signature, &mut executor, sparse::dot_add(signature, &mut rng));
    (0..number).map(|_| next()).collect()
}

/// What a model answers to a question.
pub(super) fn answered(signature: &Signature, executor: &mut Scalar, question: DotAdd) -> Answered {
    let answer = executor.execute(&evidence::inputs(signature, &question));
    Answered::new(signature, 0, question, answer)
}

/// A device whose only instruction computes a model, in tiles of m by n.
pub(super) fn device(signature: &Signature, model: Model, (m, n): (usize, usize)) -> Simulated {
    let Signature { k, a, b, c, d, scale } = *signature;
    let instruction = Instruction { name: "mma".to_string(), m, n, k, a, b, c, d, scale, mode_of: None };
    let identity = Identity {
        name: "test".to_string(),
        description: String::new(),
        properties: Vec::new(),
        provenance: Provenance::Simulated,
        absent: Vec::new(),
    };
    Simulated::new(identity, vec![(instruction, model)]).expect("it can be executed")
}
