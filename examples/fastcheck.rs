//! Holds the compiled forms against the general executor, bit for bit:
//!
//!     cargo run --release --example fastcheck -- --count 100000000
//!
//! compares that many dot-adds of each shape in each distribution, on all threads, at each instruction
//! set that this machine has. The executor computes a few million a second and core.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;
use mmaprobe::model::{Compiled, Level};
use mmaprobe::probes::random::Distribution;

#[path = "../benches/shapes/compare.rs"]
mod compare;
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
            .map(|level| Compiled::at_level(&shape.model, level).expect("an executable model"))
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
                    let instruction = &shape.instruction;
                    let found =
                        compare::mismatch(instruction, &levels, distribution, problems as usize, seed);
                    if let Some(found) = found
                        && mismatches.fetch_add(1, Ordering::Relaxed) == 0
                    {
                        println!("{found}");
                    }
                }
            });
            let mismatches = mismatches.into_inner();
            failed |= mismatches > 0;
            println!(
                "{name:60} {:8} {:15} {:>12} dot-adds, {mismatches} blocks differ",
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
