//! Products a second: `cargo bench`, or `cargo bench -- FDRDA` for some shapes only.
//!
//! For each shape, a batch of problems is simulated as a virtual device does it, matrices in memory to
//! matrices in memory, at each instruction set and by the general executor. Beside them the crate
//! `matrixmultiply` multiplies fp32 matrices of the same shape. Last come whole tasks.
//!
//! Each figure is the best of several repetitions, in turns with the others of its row. Time is processor
//! time of the thread, as Linux accounts for it, so that programs that run beside it count for little.

use std::hint::black_box;
use std::time::Instant;

use mmaprobe::batch;
use mmaprobe::device::{Batch, Instruction};
use mmaprobe::model::compiled::Problems;
use mmaprobe::model::{Compiled, Executor, Level};
use mmaprobe::probes::DotAdd;

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
        "{:39} {:>6} {:>4} {:>6} {:>6} {:>6} {:>6}",
        "", "avx512", "x2", "avx2", "plain", "sgemm", "exec."
    );
    for shape in shapes::all() {
        let algorithm = shape.algorithm.to_string();
        let name = format!("{} {}", algorithm.split('(').next().unwrap_or_default(), shape.instruction.name);
        if name.contains(&only) {
            row(&name, &shape);
        }
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
    let mut best = [0.0_f64; 6];
    for _ in 0..REPETITIONS {
        for (best, compiled) in best.iter_mut().zip(&compiled) {
            *best = best.max(products * rate(|| simulate(compiled, &batch, (m, n), &mut d)));
        }
        best[3] = best[3].max(products * rate(sgemm(problems, (m, n, k))));
        best[4] = best[4].max(k as f64 * 64.0 * rate(general(shape, &batch)));
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
    let [avx512, avx2, plain, sgemm, general, both] = best.map(|rate| rate / 1e9);
    println!("{name:39} {avx512:6.2} {:4.2} {avx2:6.2} {plain:6.2} {sgemm:6.2} {general:6.3}", both / avx512);
}

/// How often a second of processor time something can be done.
fn rate(mut work: impl FnMut()) -> f64 {
    work();
    let (start, spent) = (Instant::now(), processor_seconds());
    let mut times = 0.0;
    while start.elapsed().as_secs_f64() < REPETITION {
        work();
        times += 1.0;
    }
    times / (processor_seconds() - spent)
}

fn simulate(compiled: &Compiled, batch: &Batch, (m, n): (usize, usize), d: &mut [u8]) {
    let Batch { a, b, c, sa, sb, count } = batch;
    compiled.run(&Problems { count: *count, m, n, a, b, c, sa, sb }, d);
    black_box(d);
}

/// The general executor on 64 dot-adds.
fn general<'s>(shape: &'s shapes::Shape, batch: &Batch) -> impl FnMut() + use<'s> {
    let Instruction { m, n, .. } = shape.instruction;
    let questions: Vec<DotAdd> = (0..64.min(batch.count * m * n))
        .cycle()
        .take(64)
        .map(|at| batch::dot_add_at(&shape.instruction, batch, at / (m * n), at % (m * n) / n, at % n))
        .collect();
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

/// Processor time of this thread.
fn processor_seconds() -> f64 {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux's accounts");
    spent.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("nanoseconds") * 1e-9
}
