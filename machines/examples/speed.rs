//! How fast machines answer: nanoseconds per dot-add, in the mean over random machines with K = 16.
//!
//! `cargo run --release -p mmaprobe-machines --example speed`

use std::time::Instant;

use mmaprobe_machines::{Evaluator, generate, generate::Dice};

fn main() {
    let mut dice = Dice::new(1, 0, 100);
    let mut times: Vec<(f64, u64)> = Vec::new();
    for index in (0..400).filter(|&index| generate::machine(1, index).k == 16) {
        let machine = generate::machine(1, index);
        let mut evaluator = Evaluator::new(&machine);
        let blocks = machine.scale.map_or(0, |scale| machine.k / scale.block);
        let mut any = |count: usize, bytes: usize| -> Vec<u64> {
            // Without the topmost exponents: otherwise most answers are NaN.
            let mask = !(1 << (8 * bytes - 2));
            (0..count).map(|_| dice.bits() >> (64 - 8 * bytes) & mask).collect()
        };
        let questions: Vec<[Vec<u64>; 5]> = (0..500)
            .map(|_| {
                let (a, b) = (any(16, machine.a.bytes), any(16, machine.b.bytes));
                [a, b, any(1, machine.c.bytes), any(blocks, 1), any(blocks, 1)]
            })
            .collect();
        let start = Instant::now();
        let mut check = 0;
        for [a, b, c, sa, sb] in &questions {
            check ^= evaluator.dot_add(a, b, c[0], sa, sb);
        }
        std::hint::black_box(check);
        times.push((start.elapsed().as_nanos() as f64 / questions.len() as f64, index));
    }
    times.sort_by(|x, y| x.0.total_cmp(&y.0));
    let mean = times.iter().map(|(time, _)| time).sum::<f64>() / times.len() as f64;
    let median = times[times.len() / 2].0;
    println!("{} machines: mean {mean:.0} ns, median {median:.0} ns per dot-add", times.len());
    for (time, index) in times.iter().rev().take(5) {
        println!("  machine {index} of seed 1: {time:.0} ns");
    }
}
