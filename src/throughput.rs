//! How fast a processor executes an instruction when nothing has to be brought to it: no loads, no stores,
//! one to several independent accumulators, one to several threads.
//!
//! One run of an instruction, a *sample*, takes a few milliseconds, and is followed in each thread by
//! dependent additions that count the processor's cycles. The samples of all instructions, accumulators and
//! threads are interleaved, round after round, so that whatever the machine does meanwhile meets all of
//! them. A sample during which something else had the processor is taken again, a few times.

pub mod peak;
pub mod plot;
pub mod report;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mmaprobe_kernels::cpu::Unit;
use mmaprobe_kernels::cpu::repeat::{dependent_adds, thread_time};
use serde::Serialize;

use peak::Peak;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Samples of each figure.
    pub repetitions: usize,
    /// Cores that threads share between them.
    pub cores: usize,
}

/// One run: all threads together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Executions a second.
    pub rate: f64,
    /// Cycles a second, of a core.
    pub hertz: f64,
    /// Of the time from the first thread's start to the last one's end, the part that the thread worst
    /// off really had a processor.
    pub undisturbed: f64,
}

impl Sample {
    /// Whether something else had the processor meanwhile.
    pub fn is_disturbed(&self) -> bool {
        self.undisturbed < 0.97
    }
}

/// A figure: many samples of one thing. Disturbed ones are left out unless there are no others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Executions a second, the median.
    pub rate: f64,
    /// Half the distance between the quartiles, as a part of the median.
    pub spread: f64,
    /// Cycles a second, the median.
    pub hertz: f64,
    /// Executions a cycle, the median over the samples, whose clocks can differ.
    pub per_cycle: f64,
    /// Samples that something disturbed.
    pub disturbed: usize,
}

impl Figure {
    /// The figure of some samples.
    ///
    /// # Panics
    /// If there are none.
    pub fn of(samples: &[Sample]) -> Figure {
        let disturbed = samples.iter().filter(|sample| sample.is_disturbed()).count();
        let counts = |sample: &&Sample| disturbed == samples.len() || !sample.is_disturbed();
        let sorted = |value: fn(&Sample) -> f64| {
            let mut values: Vec<f64> = samples.iter().filter(counts).map(value).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let rates = sorted(|sample| sample.rate);
        let rate = quantile(&rates, 0.5);
        Figure {
            rate,
            spread: (quantile(&rates, 0.75) - quantile(&rates, 0.25)) / 2.0 / rate,
            hertz: quantile(&sorted(|sample| sample.hertz), 0.5),
            per_cycle: quantile(&sorted(|sample| sample.rate / sample.hertz), 0.5),
            disturbed,
        }
    }
}

/// The value below which that part of sorted values is, between neighbours in proportion.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

/// What was measured of an instruction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Throughput {
    /// The instruction.
    pub name: String,
    /// The registers that it was executed on.
    pub registers: String,
    /// Floating-point operations of one execution, a multiply-add being two.
    pub operations: u64,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Cores that they share.
    pub cores: usize,
    /// For 1, 2 … accumulators a figure for each number of threads.
    pub figures: Vec<Vec<Figure>>,
    /// Samples behind each figure.
    pub repetitions: usize,
    /// What the unit could do, where that is published.
    pub peak: Option<Peak>,
}

impl Throughput {
    /// Floating-point operations a second.
    pub fn flops(&self, figure: &Figure) -> f64 {
        figure.rate * self.operations as f64
    }

    /// The part of the peak that a figure for so many threads is.
    pub fn share(&self, figure: &Figure, threads: usize) -> Option<f64> {
        let peak = self.peak?;
        Some(figure.per_cycle / (peak.per_cycle * threads.min(self.cores) as f64))
    }

    /// Cycles a second, the median over all figures.
    pub fn hertz(&self) -> f64 {
        let mut all: Vec<f64> = self.figures.iter().flatten().map(|figure| figure.hertz).collect();
        all.sort_by(f64::total_cmp);
        quantile(&all, 0.5)
    }
}

/// Measures instructions. `done` is called after each round of samples.
pub fn measure(units: &[(Unit, Option<Peak>)], plan: &Plan, done: impl Fn()) -> Vec<Throughput> {
    let mut samples: Vec<Vec<Vec<Vec<Sample>>>> = units
        .iter()
        .map(|(unit, _)| vec![vec![Vec::new(); plan.threads.len()]; unit.accumulators()])
        .collect();
    let executions: Vec<Vec<u64>> = units
        .iter()
        .map(|(unit, _)| (1..=unit.accumulators()).map(|n| calibrate(unit, n)).collect())
        .collect();
    for _ in 0..plan.repetitions {
        for ((unit, _), (samples, executions)) in units.iter().zip(samples.iter_mut().zip(&executions)) {
            for (index, samples) in samples.iter_mut().enumerate() {
                for (&threads, samples) in plan.threads.iter().zip(samples) {
                    samples.push(best_of_a_few(threads <= plan.cores, || {
                        sample(unit, index + 1, threads, executions[index])
                    }));
                }
            }
        }
        done();
    }
    let figures = samples.iter().map(|samples| {
        samples.iter().map(|samples| samples.iter().map(|samples| Figure::of(samples)).collect()).collect()
    });
    let of = |((unit, peak), figures): (&(Unit, Option<Peak>), _)| Throughput {
        name: unit.shape().name.to_string(),
        registers: unit.registers().to_string(),
        operations: unit.operations(),
        threads: plan.threads.clone(),
        cores: plan.cores,
        figures,
        repetitions: plan.repetitions,
        peak: *peak,
    };
    units.iter().zip(figures).map(of).collect()
}

/// How long a sample is to take: less than the time slices in which a processor is shared.
const SAMPLE: Duration = Duration::from_millis(2);
/// Additions that count cycles after each sample, about half a millisecond of them.
const ADDITIONS: u64 = 1_500_000;
/// How often a disturbed sample is taken before it has to do.
const ATTEMPTS: usize = 20;

/// Executions that take about as long as a sample is to take.
fn calibrate(unit: &Unit, accumulators: usize) -> u64 {
    let mut executions = 1000;
    loop {
        let start = Instant::now();
        let executed = unit.repeat(accumulators, executions);
        let elapsed = start.elapsed();
        if elapsed * 4 > SAMPLE {
            return (executed as f64 * SAMPLE.as_secs_f64() / elapsed.as_secs_f64()).ceil() as u64;
        }
        executions = executed * 2;
    }
}

/// A sample that nothing disturbed; or if there is none, or it `has_a_core` for each thread to itself,
/// the one that was disturbed least.
fn best_of_a_few(has_a_core: bool, mut sample: impl FnMut() -> Sample) -> Sample {
    let mut best = sample();
    for _ in 1..ATTEMPTS {
        if !has_a_core || !best.is_disturbed() {
            break;
        }
        let again = sample();
        if again.undisturbed > best.undisturbed {
            best = again;
        }
    }
    best
}

/// Runs an instruction once on each of some threads that start together.
fn sample(unit: &Unit, accumulators: usize, threads: usize, executions: u64) -> Sample {
    struct Run {
        start: Instant,
        end: Instant,
        executed: u64,
        hertz: f64,
        had: Option<Duration>,
    }
    let ready = AtomicUsize::new(0);
    let run = || {
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < threads {
            // There may be fewer processors than threads.
            std::thread::yield_now();
        }
        let (before, start) = (thread_time(), Instant::now());
        let executed = unit.repeat(accumulators, executions);
        let (end, after) = (Instant::now(), thread_time());
        let had = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        // The time that this thread had, where that can be told: a pause in between does not matter.
        let (before, added) = (thread_time(), Instant::now());
        let additions = dependent_adds(ADDITIONS);
        let taken = thread_time()
            .zip(before)
            .map_or_else(|| added.elapsed(), |(after, before)| after.saturating_sub(before));
        let hertz = additions as f64 / taken.as_secs_f64();
        Run { start, end, executed, hertz, had }
    };
    let runs: Vec<Run> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a loop on registers does not panic")).collect()
    });
    let start = runs.iter().map(|run| run.start).min();
    let end = runs.iter().map(|run| run.end).max();
    let elapsed = start.zip(end).map_or(0.0, |(start, end)| (end - start).as_secs_f64());
    Sample {
        rate: runs.iter().map(|run| run.executed as f64).sum::<f64>() / elapsed,
        hertz: runs.iter().map(|run| run.hertz).sum::<f64>() / runs.len() as f64,
        undisturbed: runs
            .iter()
            .filter_map(|run| run.had)
            .map(|had| had.as_secs_f64() / elapsed)
            .fold(1.0, f64::min),
    }
}

/// Cores that this process may use, hyperthreads of one core counted once where Linux tells them apart.
pub fn cores() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut cores: Vec<String> = Vec::new();
    let Ok(entries) = std::fs::read_dir("/sys/devices/system/cpu") else { return processors };
    for entry in entries.flatten() {
        if let Ok(siblings) = std::fs::read_to_string(entry.path().join("topology/thread_siblings_list")) {
            cores.push(siblings);
        }
    }
    cores.sort();
    cores.dedup();
    if cores.is_empty() { processors } else { processors.min(cores.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rates: &[f64], hertz: f64) -> Vec<Sample> {
        rates.iter().map(|&rate| Sample { rate, hertz, undisturbed: 1.0 }).collect()
    }

    #[test]
    fn a_figure_is_the_median_and_the_quartiles_around_it() {
        let mut five = samples(&[40.0, 10.0, 30.0, 1000.0, 20.0], 10.0);
        five[3].undisturbed = 0.5;
        let figure = Figure::of(&five);
        // Of 10, 20, 30 and 40; the quartiles are 17.5 and 32.5.
        assert_eq!((figure.rate, figure.hertz, figure.per_cycle), (25.0, 10.0, 2.5));
        assert_eq!((figure.spread, figure.disturbed), (7.5 / 25.0, 1));
        // Where all are disturbed, all count.
        five.iter_mut().for_each(|sample| sample.undisturbed = 0.5);
        let figure = Figure::of(&five);
        assert_eq!((figure.rate, figure.spread, figure.disturbed), (30.0, 10.0 / 30.0, 5));
        // Between two values half way.
        assert_eq!(Figure::of(&samples(&[1.0, 2.0], 1.0)).rate, 1.5);
        assert_eq!(Figure::of(&samples(&[7.0], 1.0)).spread, 0.0);
    }

    #[test]
    fn executions_a_cycle_are_taken_by_sample() {
        let slower = [samples(&[10.0], 10.0), samples(&[20.0], 20.0), samples(&[60.0], 20.0)].concat();
        assert_eq!(Figure::of(&slower).per_cycle, 1.0);
    }

    #[test]
    fn the_share_counts_no_more_cores_than_there_are() {
        let figure = Figure::of(&samples(&[4.0], 1.0));
        let throughput = Throughput {
            name: String::new(),
            registers: String::new(),
            operations: 32,
            threads: vec![1, 2, 3],
            cores: 2,
            figures: vec![vec![figure; 3]],
            repetitions: 1,
            peak: Some(Peak { per_cycle: 2.0, because: "" }),
        };
        assert_eq!([1, 2, 3].map(|threads| throughput.share(&figure, threads).unwrap()), [2.0, 1.0, 1.0]);
        assert_eq!(throughput.flops(&figure), 128.0);
        assert_eq!(throughput.share(&figure, 1).map(|_| throughput.hertz()), Some(1.0));
    }

    #[test]
    fn a_disturbed_sample_is_taken_again_but_not_for_ever() {
        let taken = |undisturbed: &[f64], has_a_core| {
            let mut next = 0;
            let best = best_of_a_few(has_a_core, || {
                next += 1;
                Sample { rate: 1.0, hertz: 1.0, undisturbed: undisturbed[next - 1] }
            });
            (next, best.undisturbed)
        };
        assert_eq!(taken(&[0.5, 0.99, 0.1], true), (2, 0.99));
        let never = [[0.5, 0.2, 0.6].as_slice(), &[0.1; ATTEMPTS]].concat();
        assert_eq!(taken(&never, true), (ATTEMPTS, 0.6));
        assert_eq!(taken(&[0.5, 0.99], false), (1, 0.5));
    }

    #[test]
    fn this_processor_is_measured() {
        let units = mmaprobe_kernels::cpu::Processor::detect().units;
        let Some(unit) = units.last() else {
            eprintln!("NOT RUN: this processor has nothing to measure");
            return;
        };
        let plan = Plan { threads: vec![1, 2], repetitions: 1, cores: cores() };
        let rounds = AtomicUsize::new(0);
        let measured = measure(&[(*unit, None)], &plan, || _ = rounds.fetch_add(1, Ordering::Relaxed));
        assert_eq!(rounds.into_inner(), 1);
        let [throughput] = &measured[..] else { panic!("{measured:?}") };
        assert_eq!(throughput.figures.len(), unit.accumulators());
        for figure in throughput.figures.iter().flatten() {
            // No processor is slower than a million a second, nor as fast as a million million.
            assert!((1e6..1e12).contains(&figure.rate) && (1e6..1e12).contains(&figure.hertz), "{figure:?}");
            assert_eq!(throughput.share(figure, 1), None);
        }
    }
}
