//! Holds the compiled forms against the general executor, bit for bit:
//!
//!     cargo run --release --example fastcheck -- --count 100000000
//!
//! compares that many dot-adds of each shape in each distribution, on all threads, at each instruction
//! set that this machine has. The executor computes a few million a second and core.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;
use mmaprobe::batch;
use mmaprobe::device::{Batch, Instruction};
use mmaprobe::model::compiled::Problems;
use mmaprobe::model::{Compiled, Executor, Level};
use mmaprobe::probes::random::{Distribution, Generator, Matrices};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

#[path = "../benches/shapes/mod.rs"]
mod shapes;

/// What to compare.
#[derive(Parser)]
struct Arguments {
    /// Dot-adds of each shape in each distribution
    #[arg(long, default_value_t = 1_000_000)]
    count: u64,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only shapes whose description contains this
    #[arg(long, default_value = "")]
    only: String,
}

/// Elements of D in a block, at least.
const BLOCK: usize = 4096;

fn main() {
    let arguments = Arguments::parse();
    let mut failed = false;
    for shape in shapes::all() {
        let levels: Vec<Compiled> = Level::ALL
            .into_iter()
            .filter(|level| level.is_available())
            .map(|level| shape.compiled(level))
            .collect();
        let name = format!("{} {}", shape.algorithm, shape.instruction.name);
        if !name.contains(&arguments.only) {
            continue;
        }
        for distribution in Distribution::ALL {
            let per_problem = (shape.instruction.m * shape.instruction.n) as u64;
            let problems = (BLOCK as u64).div_ceil(per_problem);
            let blocks = arguments.count.div_ceil(problems * per_problem);
            let next = AtomicU64::new(0);
            let mismatches = AtomicU64::new(0);
            rayon::broadcast(|_| {
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    if block >= blocks {
                        break;
                    }
                    let seed = arguments.seed ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let found = compare(&shape, &levels, distribution, problems as usize, seed);
                    mismatches.fetch_add(found, Ordering::Relaxed);
                }
            });
            let mismatches = mismatches.into_inner();
            failed |= mismatches > 0;
            println!(
                "{name:60} {:8} {:15} {:>12} dot-adds, {mismatches} mismatches",
                levels[0].kernel(),
                distribution.name(),
                blocks * problems * per_problem
            );
        }
    }
    if failed {
        std::process::exit(1);
    }
}

/// Counts mismatches in a block, and prints the first.
fn compare(
    shape: &shapes::Shape,
    levels: &[Compiled],
    distribution: Distribution,
    problems: usize,
    seed: u64,
) -> u64 {
    let instruction = &shape.instruction;
    let Instruction { m, n, .. } = *instruction;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut generator = Generator::new(m, n, &instruction.signature());
    let mut matrices = Matrices::default();
    let mut batch = Batch::default();
    for _ in 0..problems {
        generator.fill(distribution, &mut rng, &mut matrices);
        batch::push(&mut batch, instruction, &matrices);
    }
    let mut executor = Executor::new(&shape.model).expect("an executable model");
    let expected: Vec<u64> = (0..problems * m * n)
        .map(|place| {
            let (problem, at) = (place / (m * n), place % (m * n));
            let question = batch::dot_add_at(instruction, &batch, problem, at / n, at % n);
            executor.dot_add(&question.a, &question.b, question.c, &question.sa, &question.sb)
        })
        .collect();
    let Batch { a, b, c, sa, sb, count } = &batch;
    let input = Problems { count: *count, m, n, a, b, c, sa, sb };
    let mut mismatches = 0;
    for compiled in levels {
        let mut d = vec![0; expected.len() * instruction.d.bytes];
        compiled.run(&input, &mut d);
        for (place, &expected) in expected.iter().enumerate() {
            let found = mmaprobe::device::element(&d, &instruction.d, place);
            if found != expected {
                if mismatches == 0 {
                    let (problem, at) = (place / (m * n), place % (m * n));
                    let question = batch::dot_add_at(instruction, &batch, problem, at / n, at % n);
                    let signature = instruction.signature();
                    println!(
                        "{}: {found:#x} instead of {expected:#x} at ({}, {})\n{}",
                        compiled.level(),
                        at / n,
                        at % n,
                        mmaprobe::bits::ShownDotAdd { signature: &signature, dot_add: &question }
                    );
                }
                mismatches += 1;
            }
        }
    }
    mismatches
}
