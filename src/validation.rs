//! Comparing two devices bit for bit on random problems.
//!
//! Problems are drawn in blocks, each from its own generator seeded by (seed, shape and formats,
//! block), so that a plan means the same questions for any number of threads, and the outcome is the
//! same too: the mismatch that is reported is the one with the lowest position.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::batch;
use crate::bits;
use crate::device::{Batch, Device, DeviceError, Instruction, element, run_checked};
use crate::model::{Decoded, Format};
use crate::probes::random::{Distribution, Generator, Matrices};
use crate::probes::{DotAdd, Signature};

mod sparse;

mod changed;
pub use changed::Changed;
use changed::{Shrunk, shrunk};
pub use sparse::{SparseMismatch, SparsePlan, sparse_mismatch};

/// What to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of random matrix sets, each m·n dot-adds.
    pub sets: u64,
    /// The seed.
    pub seed: u64,
    /// The distributions, taken in turn from set to set.
    pub distributions: Vec<Distribution>,
    /// How NaNs are compared.
    pub nans: Nans,
}

/// How NaNs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nans {
    /// As bit patterns, like everything else.
    Bits,
    /// All NaNs are the same: for a model whose NaN encodings are not known.
    AsOne,
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Sets compared; with a mismatch, those up to it, its own included.
    pub sets: u64,
    /// Output elements of these sets.
    pub dot_adds: u64,
    /// How many of the sets came from each distribution.
    pub per_distribution: Vec<(Distribution, u64)>,
    /// How NaNs were compared.
    pub nans: Nans,
    /// The first mismatch.
    pub mismatch: Option<Mismatch>,
}

/// An element of D on which two devices differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The distribution that the set was drawn from.
    pub distribution: Distribution,
    /// Index of the set.
    pub set: u64,
    /// Row of D.
    pub i: usize,
    /// Column of D.
    pub j: usize,
    /// Its operands.
    pub question: DotAdd,
    /// What the two devices answered.
    pub answers: (u64, u64),
    /// Whether the devices also differ when the dot-add is asked alone, at (0, 0) and with zeros
    /// around it, and so does what it was shrunk to when that is asked once more. If not, an element depends on more than
    /// its row and column, on its position, on what was asked before, or on chance, and nothing was shrunk.
    pub reproduced_alone: bool,
    /// If not, what the first device answered in two ways; `None` where that was the second one.
    pub changed: Option<Changed>,
    /// The simplest operands found on which they differ.
    pub shrunk: DotAdd,
    /// What they answer to that.
    pub shrunk_answers: (u64, u64),
    /// The failure that ended the shrinking: the mismatch stands, however it went on.
    pub failure: Option<DeviceError>,
}

/// Why two devices could not be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidationError {
    /// The instructions take or give different things.
    #[error("{first} and {second} cannot be compared: their {what} differ")]
    Different {
        /// The first instruction's name.
        first: String,
        /// The second instruction's name.
        second: String,
        /// What differs.
        what: &'static str,
    },
    /// There is nothing to draw from.
    #[error("no distribution to draw questions from")]
    NoDistribution,
    /// A device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// An instruction of a device: one side of a comparison.
#[derive(Clone, Copy)]
struct Side<'d> {
    device: &'d dyn Device,
    instruction: &'d Instruction,
}

impl Side<'_> {
    fn run(&self, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        run_checked(self.device, self.instruction, batch)
    }
}

/// A comparison under way.
struct Comparison<'p> {
    first: Side<'p>,
    second: Side<'p>,
    plan: &'p Plan,
    sets_per_block: u64,
}

/// The first thing in a block that ends the comparison.
enum Stop {
    Mismatch(Box<Mismatch>),
    Failure(DeviceError),
}

/// Compares instruction `i1` of device `d1` with instruction `i2` of device `d2`.
///
/// Runs on all threads of the current rayon pool; `progress` is told how many more sets have been
/// compared, from any of them. Stops at the first mismatch.
///
/// # Errors
/// If the instructions' shapes or formats differ, the plan has no distribution, or a device fails
/// before a mismatch is found.
pub fn validate(
    d1: &dyn Device,
    i1: &Instruction,
    d2: &dyn Device,
    i2: &Instruction,
    plan: &Plan,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Outcome, ValidationError> {
    check_comparable(i1, i2)?;
    if plan.distributions.is_empty() {
        return Err(ValidationError::NoDistribution);
    }
    let sets_per_block = sets_per_block(i1);
    let comparison = Comparison {
        first: Side { device: d1, instruction: i1 },
        second: Side { device: d2, instruction: i2 },
        plan,
        sets_per_block,
    };
    let stop = comparison.run(progress);
    let mismatch = match stop {
        Some(Stop::Failure(error)) => return Err(error.into()),
        Some(Stop::Mismatch(mut mismatch)) => {
            mismatch.failure = comparison.explain(&mut mismatch).err();
            Some(*mismatch)
        }
        None => None,
    };
    let sets = mismatch.as_ref().map_or(plan.sets, |mismatch| mismatch.set + 1);
    let turns = plan.distributions.len() as u64;
    let per_distribution = plan.distributions.iter().zip(0..);
    Ok(Outcome {
        sets,
        dot_adds: sets * (i1.m * i1.n) as u64,
        per_distribution: per_distribution
            .map(|(&distribution, turn)| (distribution, (sets + turns - 1 - turn) / turns))
            .collect(),
        nans: plan.nans,
        mismatch,
    })
}

/// Whether two instructions take and give the same things.
///
/// # Errors
/// If they do not.
pub fn check_comparable(first: &Instruction, second: &Instruction) -> Result<(), ValidationError> {
    let what = if (first.m, first.n, first.k) != (second.m, second.n, second.k) {
        "shapes"
    } else if (first.a, first.b, first.c, first.d) != (second.a, second.b, second.c, second.d) {
        "formats"
    } else if first.scale != second.scale {
        "block scales"
    } else {
        return Ok(());
    };
    Err(ValidationError::Different { first: first.name.clone(), second: second.name.clone(), what })
}

impl Comparison<'_> {
    /// Works through the blocks; returns what stopped it in the lowest block that stopped.
    fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Option<Stop> {
        let blocks = self.plan.sets.div_ceil(self.sets_per_block);
        let next = AtomicU64::new(0);
        // Blocks from here on need no comparing. Blocks are handed out in order, so that those below
        // have been begun, and each is finished by the thread that began it.
        let end = AtomicU64::new(blocks);
        let lowest: Mutex<Option<(u64, Stop)>> = Mutex::new(None);
        rayon::broadcast(|_| {
            let mut scratch = Scratch::new(self.first.instruction);
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= end.load(Ordering::Relaxed) {
                    break;
                }
                let sets = self.sets_of(block);
                match self.compare(block, sets.clone(), &mut scratch) {
                    None => progress(sets.end - sets.start),
                    Some(stop) => {
                        end.fetch_min(block, Ordering::Relaxed);
                        let mut lowest = lowest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        if lowest.as_ref().is_none_or(|(other, _)| block < *other) {
                            *lowest = Some((block, stop));
                        }
                    }
                }
            }
        });
        lowest.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map(|(_, stop)| stop)
    }

    fn sets_of(&self, block: u64) -> std::ops::Range<u64> {
        let first = block * self.sets_per_block;
        first..(first + self.sets_per_block).min(self.plan.sets)
    }

    /// Compares a block.
    fn compare(&self, block: u64, sets: std::ops::Range<u64>, scratch: &mut Scratch) -> Option<Stop> {
        let instruction = self.first.instruction;
        scratch.fill(instruction, self.plan, block, sets.clone());
        let answers = self.first.run(&scratch.batch).and_then(|x| Ok((x, self.second.run(&scratch.batch)?)));
        let (x, y) = match answers {
            Ok(answers) => answers,
            Err(error) => return Some(Stop::Failure(error)),
        };
        if x == y {
            return None;
        }
        let per_problem = instruction.m * instruction.n;
        let answers = |index| (element(&x, &instruction.d, index), element(&y, &instruction.d, index));
        let index = (0..scratch.batch.count * per_problem).find(|&index| self.differ(answers(index)))?;
        let (problem, at) = (index / per_problem, index % per_problem);
        let (i, j) = (at / instruction.n, at % instruction.n);
        let set = sets.start + problem as u64;
        let question = batch::dot_add_at(instruction, &scratch.batch, problem, i, j);
        Some(Stop::Mismatch(Box::new(Mismatch {
            distribution: self.plan.distribution(set),
            set,
            i,
            j,
            shrunk: question.clone(),
            question,
            answers: answers(index),
            reproduced_alone: false,
            changed: None,
            shrunk_answers: answers(index),
            failure: None,
        })))
    }

    fn differ(&self, answers: (u64, u64)) -> bool {
        differ(&self.first.instruction.d, self.plan.nans, answers)
    }

    /// What both devices answer to single dot-adds.
    fn ask(&self, questions: &[DotAdd]) -> Result<Vec<(u64, u64)>, DeviceError> {
        let batch = batch::batch_of(self.first.instruction, questions);
        let ask = |side: &Side| {
            side.run(&batch).map(|answer| batch::answers(side.instruction, questions.len(), &answer))
        };
        let (first, second) = (ask(&self.first)?, ask(&self.second)?);
        Ok(first.into_iter().zip(second).collect())
    }

    /// Asks a mismatch alone and shrinks it.
    fn explain(&self, mismatch: &mut Mismatch) -> Result<(), DeviceError> {
        let alone = self.ask(std::slice::from_ref(&mismatch.question))?[0];
        if !self.differ(alone) {
            mismatch.changed = Changed::of(&mismatch.question, (mismatch.answers.0, alone.0));
            return Ok(());
        }
        mismatch.reproduced_alone = true;
        let first = (&mismatch.question, alone.0);
        let signature = self.first.instruction.signature();
        let Shrunk { question, answers, changed } =
            shrunk(first, &signature, &|questions| self.ask(questions), &|answers| self.differ(answers))?;
        // What does not come again each time it is asked depends on what was asked before, or on chance.
        mismatch.reproduced_alone = self.differ(answers);
        mismatch.changed = changed;
        if mismatch.reproduced_alone {
            (mismatch.shrunk, mismatch.shrunk_answers) = (question, answers);
        }
        Ok(())
    }
}

/// Whether two results differ.
pub(crate) fn differ(format: &Format, nans: Nans, (x, y): (u64, u64)) -> bool {
    let is_nan = |bits| matches!(format.decode(bits), Decoded::Nan { .. });
    x != y && !(nans == Nans::AsOne && is_nan(x) && is_nan(y))
}

/// What a thread keeps from block to block.
struct Scratch {
    generator: Generator,
    matrices: Matrices,
    batch: Batch,
}

impl Scratch {
    fn new(instruction: &Instruction) -> Scratch {
        Scratch {
            generator: Generator::new(instruction.m, instruction.n, &instruction.signature()),
            matrices: Matrices::default(),
            batch: Batch::default(),
        }
    }

    /// Makes the batch hold the random sets of a block.
    fn fill(&mut self, instruction: &Instruction, plan: &Plan, block: u64, sets: std::ops::Range<u64>) {
        let mut rng = generator_of(plan.seed, instruction, block);
        batch::clear(&mut self.batch);
        for set in sets {
            self.generator.fill(plan.distribution(set), &mut rng, &mut self.matrices);
            batch::push(&mut self.batch, instruction, &self.matrices);
        }
    }
}

/// Sets in a block: a few thousand elements of D, enough to outweigh what a call costs, few enough for
/// caches; or so many that a device shows which computes otherwise far into a batch, if these are not too large.
pub(crate) fn sets_per_block(instruction: &Instruction) -> u64 {
    let elements = (instruction.m * instruction.n) as u64;
    (4096 / elements).max(PROBLEMS.min(LARGE / elements)).max(1)
}

/// Problems of a block, at least, and elements of D of one with so many, at most.
const PROBLEMS: u64 = 256;
const LARGE: u64 = 65_536;

impl Plan {
    fn distribution(&self, set: u64) -> Distribution {
        self.distributions[(set % self.distributions.len() as u64) as usize]
    }

    /// Element (0, 0) of each of the sets that this plan compares first, a block at most, with the
    /// distribution that it is from.
    pub fn first_dot_adds(&self, instruction: &Instruction) -> Vec<(Distribution, DotAdd)> {
        let sets = self.sets.min(sets_per_block(instruction));
        let mut scratch = Scratch::new(instruction);
        scratch.fill(instruction, self, 0, 0..sets);
        let dot_add = |set| batch::dot_add_at(instruction, &scratch.batch, set as usize, 0, 0);
        (0..sets).map(|set| (self.distribution(set), dot_add(set))).collect()
    }
}

/// The random numbers of a block: they depend on the seed, the shape, the formats and the block.
fn generator_of(seed: u64, instruction: &Instruction, block: u64) -> Xoshiro256PlusPlus {
    // FNV-1a, 64 bits; seeding spreads it over the generator's state by SplitMix64.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    add(&seed.to_le_bytes());
    for length in [instruction.m, instruction.n, instruction.k] {
        add(&(length as u64).to_le_bytes());
    }
    for format in [instruction.a, instruction.b, instruction.c, instruction.d] {
        add(format.name.as_bytes());
        add(b" ");
    }
    if let Some(scale) = &instruction.scale {
        add(scale.format.name.as_bytes());
        add(&(scale.block as u64).to_le_bytes());
    }
    add(&block.to_le_bytes());
    Xoshiro256PlusPlus::seed_from_u64(hash)
}

impl Mismatch {
    /// The mismatch in full, for people, in lines of at most 80 columns. `names` are the devices'.
    pub fn describe(&self, signature: &Signature, names: (&str, &str)) -> String {
        let answers = |(x, y): (u64, u64)| {
            let one = |name: &str, bits| {
                let shown = bits::Shown { format: &signature.d, bits }.to_string();
                let gap = if name.len() + shown.len() > 69 { "\n    " } else { " " };
                format!("  {name:.60} answers{gap}{shown}\n")
            };
            one(names.0, x) + &one(names.1, y)
        };
        let mut text = format!(
            "Set {} ({}), element d[{}][{}]:\n{}",
            self.set,
            self.distribution,
            self.i,
            self.j,
            bits::ShownDotAdd { signature, dot_add: &self.question }
        );
        text += &answers(self.answers);
        if let Some(failure) = &self.failure {
            text += &format!("It could not be looked into further: {failure}\n");
        } else if !self.reproduced_alone {
            text += "Asked alone, with zeros around it, both give the same: the element depends on\n\
                     its neighbours, on its position, or on chance. It could not be shrunk.\n";
        } else if self.shrunk != self.question {
            text += &format!("Shrunk:\n{}", bits::ShownDotAdd { signature, dot_add: &self.shrunk });
            text += &answers(self.shrunk_answers);
        }
        text
    }
}

#[cfg(test)]
mod tests;
