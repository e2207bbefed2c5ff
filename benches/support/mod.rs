//! What benchmarks have in common: the problems that they solve, and how time is taken.

use std::time::Instant;

use mmaprobe::batch;
use mmaprobe::device::{Batch, Instruction};
use mmaprobe::probes::random::{Distribution, Generator, Matrices};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Elements of D in a batch, about: what validation simulates at a time.
pub const BATCH: usize = 4096;

/// Seconds of a repetition.
const REPETITION: f64 = 0.015;

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

/// How often a second of processor time something can be done. Processor time is what Linux accounts to the
/// thread: programs that run beside it count for little.
pub fn rate(mut work: impl FnMut()) -> f64 {
    work();
    let (start, spent) = (Instant::now(), processor_seconds());
    let mut times = 0.0;
    while start.elapsed().as_secs_f64() < REPETITION {
        work();
        times += 1.0;
    }
    times / (processor_seconds() - spent)
}

/// Processor time of this thread.
fn processor_seconds() -> f64 {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux's accounts");
    spent.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("nanoseconds") * 1e-9
}
