//! How far answers are from the exact results on random inputs, and to which side: the error
//! distributions of MMA-Sim paper, section VI.C (b).
//!
//! Elements of A and B are drawn from a normal distribution and rounded to their formats, as those of C
//! are from another; block scales are 1. Errors are answers less exact results, and the exact results are
//! exact: the paper has fp64's.

pub mod plot;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;
use serde::Serialize;

use crate::batch;
use crate::bits;
use crate::device::{Batch, Device, DeviceError, Instruction, element, run_checked};
use crate::model::format::{Overflow, RoundTo};
use crate::model::{Decoded, Format, Term, format::FP64};
use crate::probes::place;
use crate::probes::random::Matrices;
use crate::steps::exact::{self, Exact};

/// What to ask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Output elements, at least; whole matrices are asked.
    pub count: u64,
    /// The seed.
    pub seed: u64,
    /// Standard deviation of the elements of A and B. What a format cannot hold is its largest number.
    pub factors: f64,
    /// Standard deviation of the elements of C.
    pub accumulators: f64,
}

/// The errors of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Errors {
    /// The errors that are numbers.
    pub count: usize,
    /// Answers or exact results that are no numbers.
    pub without: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// The standard error of the mean: the mean of errors without bias is within three of it of 0.
    pub standard_error: f64,
    /// The least, the median and the largest.
    pub least: f64,
    /// The one in the middle.
    pub median: f64,
    /// The largest.
    pub largest: f64,
    /// The part below 0.
    pub negative: f64,
    /// The part that is 0.
    pub zero: f64,
    /// The errors, sorted.
    #[serde(skip)]
    pub sorted: Vec<f64>,
}

impl Errors {
    /// The distribution of some errors.
    pub fn of(mut errors: Vec<f64>, without: usize) -> Errors {
        let count = errors.len();
        let number = count.max(1) as f64;
        let mean = errors.iter().sum::<f64>() / number;
        let squares: f64 = errors.iter().map(|error| (error - mean).powi(2)).sum();
        let deviation = (squares / (number - 1.0).max(1.0)).sqrt();
        errors.sort_by(f64::total_cmp);
        let part = |is: fn(&f64) -> bool| errors.iter().filter(|error| is(error)).count() as f64 / number;
        Errors {
            count,
            without,
            mean,
            deviation,
            standard_error: deviation / number.sqrt(),
            least: errors.first().copied().unwrap_or(0.0),
            median: errors.get(count / 2).copied().unwrap_or(0.0),
            largest: errors.last().copied().unwrap_or(0.0),
            negative: part(|error| *error < 0.0),
            zero: part(|error| *error == 0.0),
            sorted: errors,
        }
    }

    /// The error below which that part of them is.
    pub fn quantile(&self, part: f64) -> f64 {
        let at = (part * self.count.saturating_sub(1) as f64).round() as usize;
        self.sorted.get(at).copied().unwrap_or(0.0)
    }
}

/// Matrix sets in a batch: a few thousand output elements.
const BLOCK: usize = 4096;

/// The errors of two devices on the same random inputs. Runs on all threads of the current rayon pool, and
/// gives the same for any number of them.
///
/// # Errors
/// If a device fails.
///
/// # Panics
/// If the instructions do not take the same things.
pub fn errors(
    devices: [(&dyn Device, &Instruction); 2],
    plan: &Plan,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<[Errors; 2], DeviceError> {
    let instruction = devices[0].1;
    let per_set = instruction.m * instruction.n;
    let sets = plan.count.div_ceil(per_set as u64);
    let per_block = BLOCK.div_ceil(per_set) as u64;
    let blocks: Vec<[Vec<Option<f64>>; 2]> = (0..sets.div_ceil(per_block))
        .into_par_iter()
        .map(|block| {
            let count = per_block.min(sets - block * per_block);
            let found = of_block(devices, plan, block, count as usize)?;
            progress(count * per_set as u64);
            Ok(found)
        })
        .collect::<Result<_, DeviceError>>()?;
    Ok([0, 1].map(|side| {
        let all = || blocks.iter().flat_map(|block| &block[side]);
        let errors: Vec<f64> = all().flatten().copied().collect();
        let without = all().count() - errors.len();
        Errors::of(errors, without)
    }))
}

/// The errors of both devices on one block of matrix sets.
fn of_block(
    devices: [(&dyn Device, &Instruction); 2],
    plan: &Plan,
    block: u64,
    count: usize,
) -> Result<[Vec<Option<f64>>; 2], DeviceError> {
    let instruction = devices[0].1;
    let Instruction { m, n, .. } = *instruction;
    // Seeding spreads both over the generator's state by SplitMix64.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(plan.seed ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let batch = batch_of(instruction, plan, count, &mut rng);
    let answers =
        [run_checked(devices[0].0, devices[0].1, &batch)?, run_checked(devices[1].0, devices[1].1, &batch)?];
    let signature = instruction.signature();
    let mut errors = [Vec::new(), Vec::new()];
    for problem in 0..count {
        for at in 0..m * n {
            let question = batch::dot_add_at(instruction, &batch, problem, at / n, at % n);
            let exact = exact::result(&signature, &question);
            for (errors, answer) in errors.iter_mut().zip(&answers) {
                let answer = element(answer, &instruction.d, problem * m * n + at);
                errors.push(error(&exact, &instruction.d, answer));
            }
        }
    }
    Ok(errors)
}

/// An answer less the exact result, if both are numbers.
fn error(exact: &Exact, d: &Format, answer: u64) -> Option<f64> {
    let (Exact::Finite(exact), Exact::Finite(answer)) = (exact, Exact::of(d, answer)) else { return None };
    Some(bits::value(&exact::difference(&answer, exact)))
}

/// Random matrix sets.
fn batch_of(instruction: &Instruction, plan: &Plan, count: usize, rng: &mut impl Rng) -> Batch {
    let Instruction { m, n, k, .. } = *instruction;
    let ones = place::zeros(&instruction.signature());
    let mut normal = Normal { rng, kept: None };
    let mut batch = Batch::default();
    for _ in 0..count {
        let mut draw = |count: usize, format: &Format, deviation: f64| -> Vec<u64> {
            (0..count).map(|_| rounded(format, deviation * normal.next())).collect()
        };
        let matrices = Matrices {
            a: draw(m * k, &instruction.a, plan.factors),
            b: draw(n * k, &instruction.b, plan.factors),
            c: draw(m * n, &instruction.c, plan.accumulators),
            sa: ones.sa.repeat(m),
            sb: ones.sb.repeat(n),
        };
        batch::push(&mut batch, instruction, &matrices);
    }
    batch
}

/// The nearest number that a format has.
fn rounded(format: &Format, value: f64) -> u64 {
    let Decoded::Finite { negative, significand, exponent } = FP64.decode(value.to_bits()) else { return 0 };
    let lsb = exponent - FP64.fraction_bits as i32;
    let to = RoundTo { overflow: Overflow::Largest, ..RoundTo::nearest_even(*format) };
    format.pack(to.round(&Term::new(negative, significand.into(), lsb, exponent)))
}

/// Numbers from the standard normal distribution, by the polar method (Marsaglia and Bray 1964).
struct Normal<'r, R> {
    rng: &'r mut R,
    kept: Option<f64>,
}

impl<R: Rng> Normal<'_, R> {
    fn next(&mut self) -> f64 {
        if let Some(kept) = self.kept.take() {
            return kept;
        }
        let mut uniform = || (self.rng.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        loop {
            let (x, y) = (uniform(), uniform());
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.kept = Some(y * factor);
                return x * factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moments, and how many lie within one, two and three deviations.
    #[test]
    fn normal_numbers_are_normal() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut normal = Normal { rng: &mut rng, kept: None };
        let values: Vec<f64> = (0..200_000).map(|_| normal.next()).collect();
        let moment =
            |power: i32| values.iter().map(|value| value.powi(power)).sum::<f64>() / values.len() as f64;
        for (power, expected, within) in [(1, 0.0, 0.01), (2, 1.0, 0.02), (3, 0.0, 0.05), (4, 3.0, 0.1)] {
            assert!((moment(power) - expected).abs() < within, "moment {power}: {}", moment(power));
        }
        for (deviations, expected) in [(1.0, 0.682_69), (2.0, 0.954_50), (3.0, 0.997_30)] {
            let within = values.iter().filter(|value| value.abs() < deviations).count();
            let part = within as f64 / values.len() as f64;
            assert!((part - expected).abs() < 0.005, "{deviations}: {part}");
        }
    }

    #[test]
    fn errors_are_summarised() {
        let errors = Errors::of(vec![3.0, -1.0, 0.0, -2.0, 0.0], 2);
        assert_eq!((errors.count, errors.without, errors.mean), (5, 2, 0.0));
        assert_eq!((errors.least, errors.median, errors.largest), (-2.0, 0.0, 3.0));
        assert_eq!((errors.negative, errors.zero), (0.4, 0.4));
        assert!((errors.deviation - 3.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(errors.quantile(1.0), 3.0);
        assert_eq!(Errors::of(Vec::new(), 0).mean, 0.0);
    }
}
