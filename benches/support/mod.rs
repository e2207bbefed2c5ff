//! What benchmarks have in common: the problems that they solve.

use mmaprobe::batch;
use mmaprobe::device::{Batch, Instruction};
use mmaprobe::probes::random::{Distribution, Generator, Matrices};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Elements of D in a batch, about: what validation simulates at a time.
pub const BATCH: usize = 4096;

/// Problems in which all products count, and sums neither overflow nor are NaN.
pub fn random(instruction: &Instruction, problems: usize) -> Batch {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut generator = Generator::new(instruction.m, instruction.n, &instruction.signature());
    let mut matrices = Matrices::default();
    let mut batch = Batch::default();
    for _ in 0..problems {
        generator.fill(Distribution::NearExponents, &mut rng, &mut matrices);
        batch::push(&mut batch, instruction, &matrices);
    }
    batch
}
