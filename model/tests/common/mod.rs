//! The referee: formats, rounding and algorithms written a second time, straight from the standards
//! and the papers. Of the model it uses type definitions and bit patterns only, never its arithmetic.
#![allow(dead_code, reason = "each test crate uses a part")]

pub mod evaluator;
pub mod inputs;
pub mod paper;
pub mod rational;
pub mod spec;
pub mod trees;

/// A number of cases, times the environment's MMAPROBE_TEST_SCALE.
pub fn cases(count: u64) -> u64 {
    let scale = std::env::var("MMAPROBE_TEST_SCALE")
        .map_or(1.0, |scale| scale.parse::<f64>().expect("MMAPROBE_TEST_SCALE is a number"));
    (count as f64 * scale).ceil() as u64
}

/// Runs independent halves of a test on two threads.
pub fn on_two_threads(cases: u64, seed: u64, run: impl Fn(u64, u64) + Sync) {
    std::thread::scope(|scope| {
        scope.spawn(|| run(cases / 2, 2 * seed));
        run(cases - cases / 2, 2 * seed + 1);
    });
}
