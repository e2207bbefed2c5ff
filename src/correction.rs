//! Single-precision products on a half-precision unit, with error correction: a case study.
//!
//! Markidis et al. (2018) split each fp32 factor into an fp16 number and an fp16 residual, and add the four
//! products in the unit, c with them. Ootomo and Yokota (2022) scale the residuals by 2¹¹ so that they do
//! not become subnormal, and add outside of the unit, in fp32 and to nearest, so that the unit's truncation
//! does no harm. Valpey et al. (2025, section 6 and Table 5) had a solver find an input on which the second
//! method is nevertheless the worse one: the unit keeps bits of a sum that it has not normalised yet, and
//! adding outside gives them up.
//!
//! Here both run on any device's instruction, and errors are taken against the exact result.

use std::fmt::{self, Display, Formatter};

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::batch;
use crate::device::{Device, DeviceError, Instruction};
use crate::model::format::{FP16, FP32, RoundTo};
use crate::model::{Decoded, Term};
use crate::probes::{DotAdd, place};

/// A method of error correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Markidis et al.: everything in the unit.
    Markidis,
    /// Ootomo and Yokota: residuals scaled, and added outside.
    OotomoYokota,
}

impl Display for Method {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Markidis => "Markidis et al.'s method",
            Method::OotomoYokota => "Ootomo and Yokota's method",
        })
    }
}

/// A dot product in single precision: Σ aₖ·bₖ + c, at most as many products as the instruction has.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Elements of A.
    pub a: Vec<f32>,
    /// Elements of B.
    pub b: Vec<f32>,
    /// What is added.
    pub c: f32,
}

/// The problem of Valpey et al.'s Table 5, on which Ootomo and Yokota's method is worse: 1 instead of
/// 1 + 2⁻²³. The table prints b₀'s exponent as −7; its text says that the largest product has the exponent
/// −1, which makes it 7, and only then is the true value near 1 + 2⁻²³.
pub fn table_5() -> Problem {
    let number = |significand: u16, exponent: i32| f32::from(significand) / 1024.0 * 2f32.powi(exponent);
    let small = number(1024, -12);
    Problem {
        a: vec![number(1025, -8), number(1358, -14), small, small],
        b: vec![number(2046, 7), number(1479, -7), small, small],
        c: number(1024, -24),
    }
}

/// What came of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The problem.
    pub problem: Problem,
    /// Markidis et al.'s result.
    pub markidis: f32,
    /// Ootomo and Yokota's result.
    pub ootomo_yokota: f32,
    /// The exact result.
    pub exact: Term,
}

impl Comparison {
    /// The magnitude of a result's error.
    fn error(&self, result: f32) -> Term {
        let difference = Term::sum([&term(result), &negated(&self.exact)]);
        Term { negative: false, ..difference }
    }

    /// Whether this method's error is the larger one.
    pub fn is_worse(&self, method: Method) -> bool {
        let (one, other) = (self.error(self.markidis), self.error(self.ootomo_yokota));
        let difference = match method {
            Method::Markidis => Term::sum([&one, &negated(&other)]),
            Method::OotomoYokota => Term::sum([&other, &negated(&one)]),
        };
        !difference.negative && !difference.is_zero()
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let shown = |x: f32| crate::battery::shown(dyadic(x));
        if self.is_worse(Method::OotomoYokota) {
            writeln!(f, "{} is worse on", Method::OotomoYokota)?;
        } else if self.is_worse(Method::Markidis) {
            writeln!(f, "{} is worse on", Method::Markidis)?;
        } else {
            writeln!(f, "both are as good on")?;
        }
        for (k, (&a, &b)) in self.problem.a.iter().zip(&self.problem.b).enumerate() {
            writeln!(f, "  a{k} = {}, b{k} = {}", shown(a), shown(b))?;
        }
        writeln!(f, "  c = {}", shown(self.problem.c))?;
        let ulps = |result: f32| value(&self.error(result)) / f64::from(f32::EPSILON);
        let exact = value(&self.exact);
        // In units in the last place of the exact result.
        let unit = exact.abs().log2().floor().exp2();
        for (name, result) in [("Markidis et al.", self.markidis), ("Ootomo and Yokota", self.ootomo_yokota)]
        {
            writeln!(f, "  {name:18} {:24} error {:.3} ulp", shown(result), ulps(result) / unit)?;
        }
        Ok(())
    }
}

/// A number near an exact one.
fn value(term: &Term) -> f64 {
    let reduced = term.reduced();
    let magnitude = reduced.magnitude as f64 * 2f64.powi(reduced.lsb);
    if term.negative { -magnitude } else { magnitude }
}

fn term(x: f32) -> Term {
    match FP32.decode(x.to_bits().into()) {
        Decoded::Finite { negative, significand, exponent } => {
            Term::new(negative, significand.into(), exponent - FP32.fraction_bits as i32, exponent)
        }
        // Callers see to it that everything is finite.
        _ => Term::zero(false, 0),
    }
}

fn dyadic(x: f32) -> place::Dyadic {
    match FP32.decode(x.to_bits().into()) {
        Decoded::Finite { negative, significand, exponent } => {
            place::Dyadic { negative, significand, exponent: exponent - FP32.fraction_bits as i32 }
        }
        _ => place::Dyadic::new(0, 0),
    }
}

fn negated(term: &Term) -> Term {
    Term { negative: !term.negative, ..term.clone() }
}

/// The nearest fp16 number, as its bits and as an fp32 number.
fn half(x: f32) -> (u64, f32) {
    let bits = RoundTo::nearest_even(FP16).convert(&FP32, x.to_bits().into());
    let back = RoundTo::nearest_even(FP32).convert(&FP16, bits);
    (bits, f32::from_bits(back as u32))
}

/// By what Ootomo and Yokota scale residuals.
const SCALE: f32 = 2048.0;

/// An instruction on which the methods run.
pub struct Unit<'d> {
    device: &'d dyn Device,
    instruction: &'d Instruction,
}

/// Problems that are tried in a search, at most.
const TRIED: usize = 200_000;
/// Problems of one batch.
const BATCH: usize = 2_000;

impl<'d> Unit<'d> {
    /// An instruction of a device; `None` if it does not multiply fp16 and add in fp32.
    pub fn new(device: &'d dyn Device, instruction: &'d Instruction) -> Option<Unit<'d>> {
        let fits = instruction.a == FP16
            && instruction.b == FP16
            && instruction.c == FP32
            && instruction.d == FP32
            && instruction.scale.is_none();
        fits.then_some(Unit { device, instruction })
    }

    /// Runs Σ aₖ·bₖ + c on the unit for each of several fp16 problems.
    fn run(&self, problems: &[(Vec<u64>, Vec<u64>, f32)]) -> Result<Vec<f32>, DeviceError> {
        let k = self.instruction.k;
        let padded = |elements: &[u64]| {
            let mut elements = elements.to_vec();
            elements.resize(k, 0);
            elements
        };
        let questions: Vec<DotAdd> = problems
            .iter()
            .map(|(a, b, c)| DotAdd {
                a: padded(a),
                b: padded(b),
                c: c.to_bits().into(),
                sa: Vec::new(),
                sb: Vec::new(),
            })
            .collect();
        let results = batch::ask(self.device, self.instruction, &questions)?;
        Ok(results.into_iter().map(|bits| f32::from_bits(bits as u32)).collect())
    }

    /// Both methods on several problems.
    ///
    /// # Errors
    /// If the device fails.
    ///
    /// # Panics
    /// If a problem has more products than the instruction.
    pub fn compare(&self, problems: &[Problem]) -> Result<Vec<Comparison>, DeviceError> {
        let split = |scale: f32| {
            move |elements: &[f32]| -> Two {
                elements
                    .iter()
                    .map(|&x| {
                        let (bits, rounded) = half(x);
                        // The difference of neighbours is exact.
                        (bits, half((x - rounded) * scale).0)
                    })
                    .unzip()
            }
        };
        let parts = |scale: f32| -> Vec<_> {
            problems.iter().map(|problem| (split(scale)(&problem.a), split(scale)(&problem.b))).collect()
        };
        // Markidis et al.: c is the first accumulator, and each sum goes on in the unit.
        let plain = parts(1.0);
        let mut sums: Vec<f32> = problems.iter().map(|problem| problem.c).collect();
        for step in 0..4 {
            let batch: Vec<_> = plain
                .iter()
                .zip(&sums)
                .map(|((a, b), &sum)| {
                    let (x, y) = match step {
                        0 => (&a.1, &b.1),
                        1 => (&a.0, &b.1),
                        2 => (&a.1, &b.0),
                        _ => (&a.0, &b.0),
                    };
                    (x.clone(), y.clone(), sum)
                })
                .collect();
            sums = self.run(&batch)?;
        }
        let markidis = sums;
        // Ootomo and Yokota: each product of matrices from zero; their sum outside, to nearest.
        let scaled = parts(SCALE);
        let from_zero = |choose: &dyn Fn(&Parts) -> Two| {
            let batch: Vec<_> = scaled
                .iter()
                .map(|parts| {
                    let (x, y) = choose(parts);
                    (x, y, 0.0)
                })
                .collect();
            self.run(&batch)
        };
        let residuals = from_zero(&|(a, b)| (a.1.clone(), b.1.clone()))?;
        let left = from_zero(&|(a, b)| (a.0.clone(), b.1.clone()))?;
        let right = from_zero(&|(a, b)| (a.1.clone(), b.0.clone()))?;
        let main = from_zero(&|(a, b)| (a.0.clone(), b.0.clone()))?;
        let compared = problems.iter().enumerate().map(|(index, problem)| {
            let correction = residuals[index] / (SCALE * SCALE) + (left[index] + right[index]) / SCALE;
            let ootomo_yokota = (correction + main[index]) + problem.c;
            let products: Vec<Term> = problem
                .a
                .iter()
                .zip(&problem.b)
                .map(|(&a, &b)| product(a, b))
                .chain([term(problem.c)])
                .collect();
            Comparison {
                problem: problem.clone(),
                markidis: markidis[index],
                ootomo_yokota,
                exact: Term::sum(&products),
            }
        });
        Ok(compared.collect())
    }

    /// Searches for a problem on which that method is the worse one; the same for a seed.
    ///
    /// # Errors
    /// If the device fails.
    pub fn find_worse(&self, method: Method, seed: u64) -> Result<Option<Comparison>, DeviceError> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let k = self.instruction.k;
        for batch in 0..TRIED / BATCH {
            // Few products and many, and both kinds of problem, the likelier one first.
            let count = if batch % 4 < 2 { k.min(4) } else { k };
            let near = (batch % 2 == 0) == (method == Method::OotomoYokota);
            let problems: Vec<Problem> = (0..BATCH)
                .map(
                    |_| if near { near_a_power(count, &mut rng) } else { of_full_precision(count, &mut rng) },
                )
                .collect();
            if let Some(found) = self.compare(&problems)?.into_iter().find(|found| found.is_worse(method)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// fp16 numbers and fp16 residuals, or the factors of A and of B.
type Two = (Vec<u64>, Vec<u64>);
/// The fp16 parts and the residuals of A and of B.
type Parts = (Two, Two);

fn product(a: f32, b: f32) -> Term {
    let (x, y) = (term(a), term(b));
    let (crate::model::exact::Magnitude::Small(m), crate::model::exact::Magnitude::Small(n)) =
        (&x.magnitude, &y.magnitude)
    else {
        unreachable!("fp32 has 24 bits");
    };
    Term::new(x.negative != y.negative, m * n, x.lsb + y.lsb, 0)
}

/// fp16 factors whose products end just below a power of two, with small ones and a small c that carry
/// the sum over it: where a sum that is not normalised yet holds more than its result.
fn near_a_power(count: usize, rng: &mut Xoshiro256PlusPlus) -> Problem {
    let mut draw = |n: u64| rng.next_u64() % n;
    let (mut a, mut b) = (vec![0.0; count], vec![0.0; count]);
    // (1 + i·2^−10)·(2 − i·2^−9)·2^−1 = 1 − i²·2^−20.
    let i = 1 + draw(3) as i32;
    a[0] = 1.0 + i as f32 / 1024.0;
    b[0] = 1.0 - i as f32 / 1024.0;
    for k in 1..count {
        // Small products, down to the last bit that such a sum keeps.
        a[k] = (1024 + draw(1024)) as f32 / 1024.0 * 2f32.powi(-12);
        b[k] = (1024 + draw(1024)) as f32 / 1024.0 * 2f32.powi(-(7 + draw(8) as i32));
    }
    let c = 2f32.powi(-24) * (1 + draw(3)) as f32;
    Problem { a, b, c }
}

/// Factors of 24 bits, of about one size.
fn of_full_precision(count: usize, rng: &mut Xoshiro256PlusPlus) -> Problem {
    let mut draw = || {
        let fraction = (rng.next_u64() >> 41) as f32 / (1 << 23) as f32;
        let x = (1.0 + fraction) * 2f32.powi((rng.next_u64() % 4) as i32 - 2);
        if rng.next_u64().is_multiple_of(2) { -x } else { x }
    };
    let a = (0..count).map(|_| draw()).collect();
    let b = (0..count).map(|_| draw()).collect();
    Problem { a, b, c: draw() }
}
