//! How fast each instruction answers, its operands laid out and its results stored: dot-adds a second
//! on one core.

use std::time::{Duration, Instant};

use mmaprobe_kernels::cpu::{Mode, Problems, Processor};

/// Dot-adds in a call: what a batch of questions has, and little enough to stay in the cache.
const DOT_ADDS: usize = 1 << 14;
const ENOUGH: Duration = Duration::from_millis(300);

fn main() {
    let processor = Processor::detect();
    println!("{}", processor.brand);
    for unit in &processor.units {
        let shape = unit.shape();
        let count = DOT_ADDS / (shape.m * shape.n);
        // 1.5 or close to it in any format: neither subnormal nor special.
        let array = |elements: usize, bytes: usize| vec![0x3F; count * elements * bytes];
        let a = array(shape.m * shape.k, shape.a.bytes);
        let b = array(shape.k * shape.n, shape.b.bytes);
        let c = array(shape.m * shape.n, shape.accumulator.bytes);
        let mut d = vec![0; c.len()];
        let (start, mut calls) = (Instant::now(), 0);
        while start.elapsed() < ENOUGH {
            unit.run(Problems { count, a: &a, b: &b, c: &c }, &mut d, Mode::Default);
            calls += 1;
        }
        let rate = f64::from(calls) * DOT_ADDS as f64 / start.elapsed().as_secs_f64();
        println!("{:<12} {}  {rate:9.3e} dot-adds/s", shape.name, unit.registers());
    }
    for (name, reason) in &processor.absent {
        println!("{name:<12} absent: {reason}");
    }
}
