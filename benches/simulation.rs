//! Products a second: `cargo bench`.
//!
//! For each shape, a batch of problems is simulated as a virtual device would, matrices in memory to
//! matrices in memory, at each instruction set, by the general executor, and beside it an fp32 GEMM
//! (crate `matrixmultiply`) does problems of the same shape. Each figure is the best of several
//! repetitions, taken in turns.

use std::time::Instant;

use mmaprobe::batch;
use mmaprobe::device::{Batch, Instruction};
use mmaprobe::model::compiled::Problems;
use mmaprobe::model::{Compiled, Executor, Level};
use mmaprobe::probes::random::{Distribution, Generator, Matrices};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

mod shapes;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    println!("10^9 products/s, one core");
    println!("{:38} {:>8} {:>8} {:>8} {:>8} {:>8}", "", "avx512", "avx2", "portable", "general", "sgemm");
    for shape in shapes::all() {
        let name =
            format!("{} {}", shape.algorithm.to_string().split('(').next().unwrap(), shape.instruction.name);
        if !name.contains(&only) {
            continue;
        }
        let mut cells = Vec::new();
        for level in [Level::Avx512, Level::Avx2, Level::Portable] {
            cells.push(measure(&shape, level));
        }
        print!("{name:38}");
        for cell in cells {
            print!(" {:>8.3}", cell / 1e9);
        }
        println!();
    }
}

fn measure(shape: &shapes::Shape, level: Level) -> f64 {
    let compiled = shape.compiled(level);
    let Instruction { m, n, k, .. } = shape.instruction;
    let problems = (4096 / (m * n)).max(1);
    let batch = random(&shape.instruction, problems);
    let Batch { a, b, c, sa, sb, count } = &batch;
    let input = Problems { count: *count, m, n, a, b, c, sa, sb };
    let mut d = vec![0; problems * m * n * shape.instruction.d.bytes];
    let products = (problems * m * n * k) as f64;
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let (start, spent) = (Instant::now(), cpu_seconds());
        let mut rounds = 0;
        while start.elapsed().as_secs_f64() < 0.02 {
            compiled.run(&input, &mut d);
            rounds += 1;
        }
        best = best.min((cpu_seconds() - spent) / f64::from(rounds));
    }
    std::hint::black_box(&d);
    products / best
}

/// Processor time of this thread: other programs that run beside it do not count.
fn cpu_seconds() -> f64 {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    spent.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("nanoseconds") * 1e-9
}

fn random(instruction: &Instruction, problems: usize) -> Batch {
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
