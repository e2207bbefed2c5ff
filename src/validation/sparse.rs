//! Comparing a device and a virtual one on random dot-adds of which most have few summands.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::changed::{Changed, Shrunk, shrunk};
use super::{Nans, differ};
use crate::batch;
use crate::device::simulated::Simulated;
use crate::device::{Device, DeviceError, Instruction};
use crate::probes::boundaries::{self, Boundaries};
use crate::probes::{DotAdd, brink, cancelling, crowding, leftover, sparse, vary};

/// What to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparsePlan {
    /// Number of dot-adds.
    pub dot_adds: u64,
    /// The seed.
    pub seed: u64,
    /// How NaNs are compared.
    pub nans: Nans,
    /// Where the device is thought to round, and where something ends in it.
    pub boundaries: Boundaries,
}

/// A question with few summands to which a device and a virtual one answer differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseMismatch {
    /// The smallest one found.
    pub question: DotAdd,
    /// Both answers to it, asked alone. If it was answered differently only among others, these may be the same.
    pub answers: (u64, u64),
    /// Then, what the device answered in two ways.
    pub changed: Option<Changed>,
}

/// Dot-adds with few summands in one batch.
const SPARSE: u64 = 1000;
/// One of so many has what is large in it cancelled: what a narrow d hides of a wide sum is then left over. One is near
/// where d ends, where it matters when what is tiny is flushed; one has the largest products beside the smallest;
/// two have c where results that keep fewer bits than c are rounded, if any do; in one what is left of two summands is
/// about as small as d can be, or less, where products reach that; in one the last bits that a sum keeps are left over;
/// in one all summands are near where something ends, and in one a number is next to that.
const TURNS: u64 = 10;

/// Compares a device and a virtual one on random dot-adds with few summands: what sums that meet nothing else keep shows
/// there, and is drowned among many.
///
/// # Errors
/// If a device fails.
pub fn sparse_mismatch(
    (device, instruction): (&dyn Device, &Instruction),
    (simulated, listed): (&Simulated, &Instruction),
    plan: &SparsePlan,
) -> Result<Option<SparseMismatch>, DeviceError> {
    let signature = instruction.signature();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(plan.seed);
    // What a device computes off the diagonal is not asked for, and need not be simulated.
    let single = Instruction { m: 1, n: 1, ..listed.clone() };
    let both = |questions: &[DotAdd]| {
        let ours = simulated.run_as(&listed.name, &single, &batch::batch_of(&single, questions))?;
        let ours = batch::answers(&single, questions.len(), &ours);
        let answers = batch::ask(device, instruction, questions)?.into_iter().zip(ours);
        Ok::<_, DeviceError>(answers.collect::<Vec<(u64, u64)>>())
    };
    let is_other = |answers| differ(&signature.d, plan.nans, answers);
    let ends = [signature.d.min_exponent(), signature.d.max_exponent()];
    let smallest = cancelling::smallest(&signature.d, signature.d.fraction_bits);
    let all_ends: Vec<i32> = ends.iter().chain(&smallest).chain(&plan.boundaries.ends).copied().collect();
    let mut left = plan.dot_adds;
    while left > 0 {
        let count = left.min(SPARSE);
        left -= count;
        let questions: Vec<DotAdd> = (0..count)
            .map(|index| match index % TURNS {
                0 => {
                    let question = sparse::dot_add(&signature, &mut rng);
                    vary::mirrored(&signature, &question, &mut rng)
                }
                1 => sparse::near(&signature, &ends, &mut rng),
                2 => sparse::extremes(&signature, &mut rng),
                3 | 5 => {
                    let question = sparse::dot_add(&signature, &mut rng);
                    boundaries::at_boundary(&signature, &question, &plan.boundaries, &mut rng)
                }
                4 => cancelling::dot_add(&signature, &smallest, &mut rng),
                6 => {
                    let question = sparse::dot_add(&signature, &mut rng);
                    leftover::dot_add(&signature, &question, &plan.boundaries, &mut rng)
                }
                7 => crowding::dot_add(&signature, &all_ends, &mut rng),
                8 => brink::dot_add(&signature, &all_ends, &plan.boundaries, &mut rng),
                _ => sparse::dot_add(&signature, &mut rng),
            })
            .collect();
        let among = both(&questions)?;
        let Some(at) = among.iter().copied().position(is_other) else { continue };
        let first = (&questions[at], among[at].0);
        let Shrunk { question, answers, changed } = shrunk(first, &signature, &both, &is_other)?;
        return Ok(Some(SparseMismatch { question, answers, changed }));
    }
    Ok(None)
}
