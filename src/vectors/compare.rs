//! Asking a device what was recorded elsewhere.

use rayon::prelude::*;

use crate::batch;
use crate::bits;
use crate::device::{Device, DeviceError, Instruction};
use crate::probes::{DotAdd, Signature};
use crate::validation::{Nans, differ};
use crate::vectors::{Vector, Vectors};

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Dot-adds compared.
    pub vectors: usize,
    /// How many the device answered otherwise.
    pub mismatches: usize,
    /// The first of them.
    pub first: Option<Mismatch>,
}

/// A dot-add that a device answers otherwise than was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Its line in the file.
    pub line: usize,
    /// The dot-add as it was asked, with all of the instruction's products.
    pub question: DotAdd,
    /// What was recorded.
    pub recorded: u64,
    /// What the device answers.
    pub answered: u64,
}

/// Dot-adds in a batch: enough to outweigh what a call costs, few enough for every thread to get some.
const BATCH: usize = 256;

/// Asks an instruction every dot-add of a file, on all threads of the current rayon pool; the
/// outcome does not depend on how many there are. `progress` is told how many more have been asked.
///
/// # Errors
/// If the device fails.
///
/// # Panics
/// If the instruction is not one that [takes](Vectors::instruction_of) these dot-adds.
pub fn compare(
    device: &dyn Device,
    instruction: &Instruction,
    vectors: &Vectors,
    nans: Nans,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Outcome, DeviceError> {
    let ask = |chunk: &[Vector]| {
        let questions: Vec<DotAdd> =
            chunk.iter().map(|vector| padded(&vector.question, instruction.k)).collect();
        let answers = batch::ask(device, instruction, &questions)?;
        progress(chunk.len() as u64);
        let all = chunk.iter().zip(questions).zip(answers);
        let mut mismatches = all
            .filter(|((vector, _), answered)| differ(&instruction.d, nans, (vector.d, *answered)))
            .map(|((vector, question), answered)| Mismatch {
                line: vector.line,
                question,
                recorded: vector.d,
                answered,
            });
        let first = mismatches.next();
        Ok((usize::from(first.is_some()) + mismatches.count(), first))
    };
    let found: Vec<(usize, Option<Mismatch>)> =
        vectors.vectors.par_chunks(BATCH).map(ask).collect::<Result<_, _>>()?;
    Ok(Outcome {
        vectors: vectors.vectors.len(),
        mismatches: found.iter().map(|(count, _)| count).sum(),
        first: found.into_iter().find_map(|(_, first)| first),
    })
}

/// The same dot-add with products +0·+0 up to K.
fn padded(question: &DotAdd, k: usize) -> DotAdd {
    let mut question = question.clone();
    question.a.resize(k, 0);
    question.b.resize(k, 0);
    question
}

impl Mismatch {
    /// The mismatch in full, for people, in lines of at most 80 columns.
    pub fn describe(&self, signature: &Signature, gpu: &str, device: &str) -> String {
        let shown = |bits| bits::Shown { format: &signature.d, bits };
        format!(
            "{}  {gpu:.60} answered\n    {}\n  {device:.60} answers\n    {}\n",
            bits::ShownDotAdd { signature, dot_add: &self.question },
            shown(self.recorded),
            shown(self.answered)
        )
    }
}
