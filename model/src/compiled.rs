//! Compiled forms: models prepared for many dot-adds, in the vectors that the machine has.
//!
//! [`Compiled`] looks at the shape of a sum tree, never at a name, and chooses a kernel:
//!
//! | shape of the tree | of the nine | kernel |
//! |---|---|---|
//! | fused sums, with c or with c late, one or a chain, of one or more dot products | FDA, CoFDA, FDRDA, CoFDRDA, GFDRDA, CoGFDRDA | `fused`: integers of 32 bits |
//! | rounded sums of two, in fp32 or fp64 | SFMA, GPS | `floats`: the machine's own arithmetic |
//! | any other | | `scalar`: the [scalar executor](crate::scalar), one output after the other |
//!
//! A kernel decodes each matrix once and computes one output in each lane. What is rare (infinities,
//! NaNs, the signs of zeros) it notices, and such outputs are settled one by one. The results are those
//! of the general [`Executor`](crate::Executor), bit for bit.
//!
//! Kernels are written once, for vectors of any instruction set; the feature `simd` brings those of
//! AVX-512, AVX2 and Arm's Advanced SIMD, of which the best is chosen at run time. It needs `std`, and is
//! the only place where this crate has `unsafe` code.

mod floats;
mod fused;
pub(crate) mod lanes;
mod operand;
mod place;
mod rounding;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::format::Format;
use crate::scalar::Scalar;
use crate::tree::{Model, ModelError};
use floats::{FloatJob, FloatPlan};
use fused::{FusedJob, FusedPlan};
pub use lanes::Level;

/// Problems D = A·B + C of one shape, one after another, as a device takes them.
///
/// Elements are little-endian in their format's [bytes](Format::bytes).
#[derive(Clone, Copy, Debug)]
pub struct Problems<'p> {
    /// Number of problems.
    pub count: usize,
    /// Rows of A and of D.
    pub m: usize,
    /// Columns of B and of D.
    pub n: usize,
    /// m·K elements each, row by row.
    pub a: &'p [u8],
    /// K·n elements each, column by column.
    pub b: &'p [u8],
    /// m·n elements each, row by row.
    pub c: &'p [u8],
    /// m·(K / block) scales each, row by row; empty without scales.
    pub sa: &'p [u8],
    /// n·(K / block) scales each, column by column; empty without scales.
    pub sb: &'p [u8],
}

/// A model, prepared for execution.
#[derive(Clone, Debug)]
pub struct Compiled {
    model: Model,
    level: Level,
    plan: Plan,
}

/// How a model is executed.
#[derive(Clone, Debug)]
enum Plan {
    Fused(Box<FusedPlan>),
    Floats(Box<FloatPlan>),
    Scalar,
}

impl Compiled {
    /// Prepares a model for the best instruction set that this machine has.
    ///
    /// # Errors
    /// If the model [cannot be executed](Model::check).
    pub fn new(model: &Model) -> Result<Compiled, ModelError> {
        Compiled::at_level(model, Level::best())
    }

    /// Prepares a model for an instruction set; where the machine lacks it, the portable form is used.
    ///
    /// # Errors
    /// If the model [cannot be executed](Model::check).
    pub fn at_level(model: &Model, level: Level) -> Result<Compiled, ModelError> {
        model.check()?;
        let plan = FusedPlan::new(model)
            .map(|plan| Plan::Fused(Box::new(plan)))
            .or_else(|| FloatPlan::new(model).map(|plan| Plan::Floats(Box::new(plan))))
            .unwrap_or(Plan::Scalar);
        Ok(Compiled { model: model.clone(), level, plan })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The instruction set in whose vectors it is executed.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The kernel that was chosen: `fused`, `floats` or `scalar`.
    pub fn kernel(&self) -> &'static str {
        match self.plan {
            Plan::Fused(_) => "fused",
            Plan::Floats(_) => "floats",
            Plan::Scalar => "scalar",
        }
    }

    /// Computes every element of D of every problem.
    ///
    /// # Panics
    /// If an array does not have the length that the problems call for.
    pub fn run(&self, problems: &Problems, d: &mut [u8]) {
        self.check_lengths(problems, d);
        let Problems { m, n, .. } = *problems;
        let left = match &self.plan {
            Plan::Fused(plan) => lanes::run(self.level.for_shape(m, n), FusedJob { plan, problems, d }),
            Plan::Floats(plan) => {
                // Numbers in fp64 are read and written fast along rows of D only.
                let level = self.level.for_shape(if plan.is_double() { n } else { m }, n);
                lanes::run(level, FloatJob { plan, problems, d })
            }
            Plan::Scalar => {
                return self.run_scalar(problems, d, 0..problems.count * problems.m * problems.n);
            }
        };
        if !left.is_empty() {
            self.run_scalar(problems, d, left.into_iter());
        }
    }

    /// Computes some elements of D with the scalar executor.
    fn run_scalar(&self, problems: &Problems, d: &mut [u8], places: impl Iterator<Item = usize>) {
        let model = &self.model;
        let mut executor = Scalar::new(model).expect("the model has been checked");
        let Problems { m, n, .. } = *problems;
        let scale = model.scale.map_or((model.a.format, 0), |scale| (scale.format, model.k / scale.block));
        let mut read = [const { Vec::<u64>::new() }; 4];
        let mut last = [usize::MAX; 2];
        for place in places {
            let (row, column) = (place / n, place / (m * n) * n + place % n);
            if last[0] != row {
                unpack(&mut read[0], problems.a, &model.a.format, row, model.k);
                unpack(&mut read[2], problems.sa, &scale.0, row, scale.1);
            }
            if last[1] != column {
                unpack(&mut read[1], problems.b, &model.b.format, column, model.k);
                unpack(&mut read[3], problems.sb, &scale.0, column, scale.1);
            }
            last = [row, column];
            let c = element(problems.c, &model.c.format, place);
            let [a, b, sa, sb] = &read;
            let bits = executor.dot_add(a, b, c, sa, sb);
            let bytes = model.d.bytes;
            d[place * bytes..][..bytes].copy_from_slice(&bits.to_le_bytes()[..bytes]);
        }
    }

    fn check_lengths(&self, problems: &Problems, d: &[u8]) {
        let model = &self.model;
        let Problems { count, m, n, .. } = *problems;
        let (scale, blocks) = model.scale.map_or((0, 0), |scale| (scale.format.bytes, model.k / scale.block));
        for (name, array, elements, bytes) in [
            ("A", problems.a, m * model.k, model.a.format.bytes),
            ("B", problems.b, n * model.k, model.b.format.bytes),
            ("C", problems.c, m * n, model.c.format.bytes),
            ("SA", problems.sa, m * blocks, scale),
            ("SB", problems.sb, n * blocks, scale),
            ("D", d, m * n, model.d.bytes),
        ] {
            assert_eq!(array.len(), count * elements * bytes, "bytes of {name} in {count} problems");
        }
    }
}

/// Reads a row of elements.
fn unpack(out: &mut Vec<u64>, array: &[u8], format: &Format, row: usize, count: usize) {
    out.clear();
    out.extend((row * count..(row + 1) * count).map(|index| element(array, format, index)));
}

/// Reads an element.
fn element(array: &[u8], format: &Format, index: usize) -> u64 {
    let mut bits = [0; 8];
    bits[..format.bytes].copy_from_slice(&array[index * format.bytes..][..format.bytes]);
    u64::from_le_bytes(bits)
}
