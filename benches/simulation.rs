//! Products a second: `cargo bench`, or `cargo bench -- FDRDA` for some shapes only.
//!
//! For each shape, a batch of problems is simulated as a virtual device does it, matrices in memory to
//! matrices in memory, at each instruction set, by the scalar executor and by the general one. Beside them
//! the crate `matrixmultiply` multiplies fp32 matrices of the same shape. Last comes what drawing random
//! problems costs.
//!
//! Each figure is that of the fastest run of many, in several repetitions in turns with the others of its
//! row. A run takes less than a millisecond, so that programs that run beside it do not interrupt the
//! fastest. (They do slow it down, where cores share execution units.)

use std::hint::black_box;
use std::time::Instant;

use mmaprobe::batch;
use mmaprobe::device::{Batch, Instruction};
use mmaprobe::model::compiled::Problems;
use mmaprobe::model::scalar::{Inputs, Scalar};
use mmaprobe::model::{Compiled, Executor, Level};
use mmaprobe::probes::DotAdd;
use mmaprobe::probes::random::{Distribution, Generator, Matrices};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

mod shapes;
mod support;

use support::{BATCH, random};

const REPETITIONS: usize = 8;

/// Seconds of a repetition.
const REPETITION: f64 = 0.015;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    println!("10^9 products a second of one core; `x2`: two threads, as a multiple of one");
    println!(
        "{:33} {:>6} {:>4} {:>5} {:>5} {:>6} {:>6} {:>6}",
        "", "avx512", "x2", "avx2", "plain", "sgemm", "scalar", "exec."
    );
    for shape in shapes::all() {
        let algorithm = shape.algorithm.to_string();
        let name = format!("{} {}", algorithm.split('(').next().unwrap_or_default(), shape.instruction.name);
        if name.contains(&only) {
            row(&name, &shape);
        }
    }
    println!("Drawing problems, ns an element:");
    if let Some(shape) =
        shapes::all().iter().find(|shape| shape.instruction.name.contains("m16n8k16.fp32.bf16"))
    {
        generation(shape);
    }
}

fn row(name: &str, shape: &shapes::Shape) {
    let Instruction { m, n, k, .. } = shape.instruction;
    let problems = (BATCH / (m * n)).max(1);
    let batch = random(&shape.instruction, problems);
    let products = (problems * m * n * k) as f64;
    let compiled = [Level::Avx512, Level::Avx2, Level::Portable]
        .map(|level| Compiled::at_level(&shape.model, level).expect("an executable model"));
    let mut d = vec![0; problems * m * n * shape.instruction.d.bytes];
    let mut best = [0.0_f64; 7];
    for _ in 0..REPETITIONS {
        for (best, compiled) in best.iter_mut().zip(&compiled) {
            *best = best.max(products * rate(|| simulate(compiled, &batch, (m, n), &mut d)));
        }
        best[3] = best[3].max(products * rate(sgemm(problems, (m, n, k))));
        best[4] = best[4].max(k as f64 * 64.0 * rate(scalar(shape, &batch)));
        best[6] = best[6].max(k as f64 * 64.0 * rate(general(shape, &batch)));
        let both = std::thread::scope(|scope| {
            let run = || {
                let mut d = d.clone();
                rate(|| simulate(&compiled[0], &batch, (m, n), &mut d))
            };
            let other = scope.spawn(run);
            run() + other.join().expect("a thread that ends")
        });
        best[5] = best[5].max(products * both);
    }
    let [avx512, avx2, plain, sgemm, scalar, both, general] = best.map(|rate| rate / 1e9);
    let x2 = both / avx512;
    println!("{name:33} {avx512:6.2} {x2:4.2} {avx2:5.2} {plain:5.2} {sgemm:6.2} {scalar:6.3} {general:6.3}");
}

/// How often a second something can be done, judged by the fastest of many times.
fn rate(mut work: impl FnMut()) -> f64 {
    work();
    let start = Instant::now();
    let mut fastest = f64::MAX;
    while start.elapsed().as_secs_f64() < REPETITION {
        let begin = Instant::now();
        work();
        fastest = fastest.min(begin.elapsed().as_secs_f64());
    }
    1.0 / fastest
}

/// What drawing problems costs, in nanoseconds for each element of A, B and C.
fn generation(shape: &shapes::Shape) {
    let Instruction { m, n, k, .. } = shape.instruction;
    let mut generator = Generator::new(m, n, &shape.instruction.signature());
    let mut matrices = Matrices::default();
    for distribution in Distribution::ALL {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let sets = 50;
        let mut draw = || (0..sets).for_each(|_| generator.fill(distribution, &mut rng, &mut matrices));
        let fastest = (0..REPETITIONS).map(|_| rate(&mut draw)).fold(0.0, f64::max);
        let elements = (sets * (m * k + n * k + m * n)) as f64;
        println!(
            "{:24} {:16} {:5.2}",
            shape.instruction.name,
            distribution.name(),
            1e9 / (fastest * elements)
        );
    }
}

fn simulate(compiled: &Compiled, batch: &Batch, (m, n): (usize, usize), d: &mut [u8]) {
    let Batch { a, b, c, sa, sb, count } = batch;
    compiled.run(&Problems { count: *count, m, n, a, b, c, sa, sb }, d);
    black_box(d);
}

/// 64 dot-adds.
fn questions(shape: &shapes::Shape, batch: &Batch) -> Vec<DotAdd> {
    let Instruction { m, n, .. } = shape.instruction;
    (0..64.min(batch.count * m * n))
        .cycle()
        .take(64)
        .map(|at| batch::dot_add_at(&shape.instruction, batch, at / (m * n), at % (m * n) / n, at % n))
        .collect()
}

/// The scalar executor on 64 dot-adds that have been taken apart.
fn scalar<'s>(shape: &'s shapes::Shape, batch: &Batch) -> impl FnMut() + use<'s> {
    let questions = questions(shape, batch);
    let inputs = |q: &DotAdd| Inputs::new(&shape.model, &q.a, &q.b, q.c, &q.sa, &q.sb);
    let inputs: Vec<Inputs> = questions.iter().map(inputs).collect();
    let mut executor = Scalar::new(&shape.model).expect("an executable model");
    move || {
        for inputs in &inputs {
            black_box(executor.execute(inputs));
        }
    }
}

/// The general executor on 64 dot-adds.
fn general<'s>(shape: &'s shapes::Shape, batch: &Batch) -> impl FnMut() + use<'s> {
    let questions = questions(shape, batch);
    let mut executor = Executor::new(&shape.model).expect("an executable model");
    move || {
        for q in &questions {
            black_box(executor.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb));
        }
    }
}

/// The yardstick: C ← A·B + C in fp32, for so many problems.
fn sgemm(problems: usize, (m, n, k): (usize, usize, usize)) -> impl FnMut() {
    let (a, b) = (vec![1.0_f32; problems * m * k], vec![1.0_f32; problems * k * n]);
    let mut c = vec![0.0_f32; problems * m * n];
    move || {
        for problem in 0..problems {
            let (a, b) = (&a[problem * m * k..][..m * k], &b[problem * k * n..][..k * n]);
            let c = &mut c[problem * m * n..][..m * n];
            // SAFETY: the pointers are to m·k, k·n and m·n elements, which the strides stay within.
            unsafe {
                matrixmultiply::sgemm(
                    m,
                    k,
                    n,
                    1.0,
                    a.as_ptr(),
                    k as isize,
                    1,
                    b.as_ptr(),
                    1,
                    k as isize,
                    0.5,
                    c.as_mut_ptr(),
                    n as isize,
                    1,
                );
            }
        }
        black_box(&c);
    }
}
