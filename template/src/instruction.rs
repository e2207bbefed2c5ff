//! Instructions, and executing them on bit patterns.
//!
//! A problem is D = A·B + C: A has m rows of k elements, B has n columns of k, C and D have m rows
//! of n. Everywhere in this crate A, C and D lie row by row, and B lies **column by column**, so that
//! the elements of one dot product are neighbours in A and in B. Block scales lie likewise: those of a
//! row of A, or of a column of B, are neighbours. Where arrays hold several problems, they hold them one
//! after another.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::Executor;
use crate::batch::Batch;
use crate::compiled::Compiled;
use crate::constant;
use crate::format::Format;
use crate::tree::{Model, Scale};

/// An instruction: its shape and formats, and what it computes.
///
/// Two are equal if they have the same name in the same sheet.
#[derive(Clone, Copy)]
pub struct Instruction(pub(crate) &'static Facts);

/// What is known about an [`Instruction`].
pub(crate) struct Facts {
    pub sheet: &'static str,
    pub name: &'static str,
    pub status: &'static str,
    pub algorithm: &'static str,
    pub m: usize,
    pub n: usize,
    pub a: Format,
    pub b: Format,
    pub c: Format,
    pub d: Format,
    pub scale: Option<Scale>,
    pub model: constant::Model,
}

impl Instruction {
    /// Its name in the sheet.
    pub const fn name(&self) -> &'static str {
        self.0.name
    }

    /// The name of the sheet that it is from.
    pub const fn sheet(&self) -> &'static str {
        self.0.sheet
    }

    /// How far the sheet's answers led: `characterized`, `ambiguous`, `mode-without-effect` or `published`.
    pub const fn status(&self) -> &'static str {
        self.0.status
    }

    /// The published algorithm that it computes, or `unnamed`.
    pub const fn algorithm(&self) -> &'static str {
        self.0.algorithm
    }

    /// Rows of A, C and D.
    pub const fn m(&self) -> usize {
        self.0.m
    }

    /// Columns of B, C and D.
    pub const fn n(&self) -> usize {
        self.0.n
    }

    /// Products in each element of D: columns of A, rows of B.
    pub const fn k(&self) -> usize {
        self.0.model.k
    }

    /// Declared format of A's elements.
    pub const fn a(&self) -> &'static Format {
        &self.0.a
    }

    /// Declared format of B's elements.
    pub const fn b(&self) -> &'static Format {
        &self.0.b
    }

    /// Declared format of C's elements.
    pub const fn c(&self) -> &'static Format {
        &self.0.c
    }

    /// Declared format of D's elements.
    pub const fn d(&self) -> &'static Format {
        &self.0.d
    }

    /// Declared block scales, if it has them.
    pub const fn scale(&self) -> Option<&'static Scale> {
        self.0.scale.as_ref()
    }

    /// Scales that each row of A and each column of B has: k / block, or 0 without scales.
    pub const fn scales(&self) -> usize {
        match &self.0.scale {
            Some(scale) => self.k() / scale.block,
            None => 0,
        }
    }

    /// What it computes, as a constant.
    pub const fn constant(&self) -> &'static constant::Model {
        &self.0.model
    }

    /// What it computes, for an [`Executor`].
    pub fn model(&self) -> Model {
        self.0.model.to_model()
    }

    /// Gets it ready to be executed many times.
    pub fn prepare(&self) -> Prepared {
        let compiled = Compiled::new(&self.model());
        Prepared { instruction: *self, compiled: compiled.expect(CHECKED) }
    }

    /// One problem D = A·B + C, on bit patterns.
    ///
    /// To execute many, [`prepare`](Instruction::prepare) once.
    ///
    /// # Errors
    /// If a slice has another length than the shape asks for, an element another width than its
    /// format, or the instruction needs block scales.
    pub fn execute<A: Bits, B: Bits, C: Bits, D: Bits>(
        &self,
        a: &[A],
        b: &[B],
        c: &[C],
        d: &mut [D],
    ) -> Result<(), InputError> {
        self.prepare().execute(a, b, c, d)
    }

    /// One problem with block scales: as [`execute`](Instruction::execute), `sa` holding m·(k / block)
    /// scales and `sb` n·(k / block).
    ///
    /// # Errors
    /// If a slice has another length than the shape asks for, an element another width than its
    /// format, or the instruction has no block scales.
    pub fn execute_scaled<A: Bits, B: Bits, C: Bits, S: Bits, D: Bits>(
        &self,
        a: &[A],
        b: &[B],
        c: &[C],
        scales: [&[S]; 2],
        d: &mut [D],
    ) -> Result<(), InputError> {
        self.prepare().execute_scaled(a, b, c, scales, d)
    }

    /// One element: c plus the products of `a` and `b`, k bit patterns each, in the low bits.
    ///
    /// # Errors
    /// If a slice is not k elements long, or the instruction needs block scales.
    pub fn dot_add(&self, a: &[u64], b: &[u64], c: u64) -> Result<u64, InputError> {
        self.prepare().dot_add(a, b, c)
    }

    /// One element with block scales: `sa` and `sb` hold k / block scales each.
    ///
    /// # Errors
    /// If a slice has another length, or the instruction has no block scales.
    pub fn dot_add_scaled(
        &self,
        a: &[u64],
        b: &[u64],
        c: u64,
        sa: &[u64],
        sb: &[u64],
    ) -> Result<u64, InputError> {
        self.prepare().dot_add_scaled(a, b, c, sa, sb)
    }
}

impl PartialEq for Instruction {
    fn eq(&self, other: &Instruction) -> bool {
        (self.sheet(), self.name()) == (other.sheet(), other.name())
    }
}

impl Eq for Instruction {}

impl fmt::Debug for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instruction({}/{})", self.sheet(), self.name())
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An [`Instruction`] that is ready to be executed many times, from any number of threads.
#[derive(Clone, Debug)]
pub struct Prepared {
    instruction: Instruction,
    compiled: Compiled,
}

/// Why a model can be executed.
const CHECKED: &str = "the tool checked the model before it wrote it down";

impl Prepared {
    /// The instruction.
    pub const fn instruction(&self) -> Instruction {
        self.instruction
    }

    /// What it computes.
    pub fn model(&self) -> &Model {
        self.compiled.model()
    }

    /// See [`Instruction::execute`].
    ///
    /// # Errors
    /// As there.
    pub fn execute<A: Bits, B: Bits, C: Bits, D: Bits>(
        &self,
        a: &[A],
        b: &[B],
        c: &[C],
        d: &mut [D],
    ) -> Result<(), InputError> {
        self.without_scales()?;
        self.execute_typed(a, b, c, [&[] as &[u8]; 2], d)
    }

    /// See [`Instruction::execute_scaled`].
    ///
    /// # Errors
    /// As there.
    pub fn execute_scaled<A: Bits, B: Bits, C: Bits, S: Bits, D: Bits>(
        &self,
        a: &[A],
        b: &[B],
        c: &[C],
        scales: [&[S]; 2],
        d: &mut [D],
    ) -> Result<(), InputError> {
        self.with_scales()?;
        self.execute_typed(a, b, c, scales, d)
    }

    /// See [`Instruction::dot_add`].
    ///
    /// # Errors
    /// As there.
    pub fn dot_add(&self, a: &[u64], b: &[u64], c: u64) -> Result<u64, InputError> {
        self.without_scales()?;
        self.dot_add_checked(a, b, c, &[], &[])
    }

    /// See [`Instruction::dot_add_scaled`].
    ///
    /// # Errors
    /// As there.
    pub fn dot_add_scaled(
        &self,
        a: &[u64],
        b: &[u64],
        c: u64,
        sa: &[u64],
        sb: &[u64],
    ) -> Result<u64, InputError> {
        self.with_scales()?;
        self.dot_add_checked(a, b, c, sa, sb)
    }

    /// `count` problems in little-endian bytes, as the device protocol has them: each array holds all
    /// problems one after another, each element in its format's bytes. `sa` and `sb` are empty where
    /// there are no scales.
    ///
    /// # Errors
    /// If an array has another length than `count` problems take.
    pub fn execute_bytes(&self, batch: &Batch<'_>, d: &mut [u8]) -> Result<(), InputError> {
        let lengths = self.instruction.bytes();
        let arrays = [batch.a, batch.b, batch.c, batch.sa, batch.sb, &*d];
        for ((operand, each), array) in Operand::ALL.into_iter().zip(lengths).zip(arrays) {
            let expected = each.saturating_mul(batch.count);
            check_length(operand, expected, array.len())?;
        }
        self.compiled.run(&batch.problems(&self.instruction), d);
        Ok(())
    }

    fn execute_typed<A: Bits, B: Bits, C: Bits, S: Bits, D: Bits>(
        &self,
        a: &[A],
        b: &[B],
        c: &[C],
        [sa, sb]: [&[S]; 2],
        d: &mut [D],
    ) -> Result<(), InputError> {
        let i = &self.instruction;
        let mn = i.m() * i.n();
        let scale = i.scale().map_or(i.a(), |scale| &scale.format);
        let a = to_bytes(Operand::A, i.a(), i.m() * i.k(), a)?;
        let b = to_bytes(Operand::B, i.b(), i.n() * i.k(), b)?;
        let c = to_bytes(Operand::C, i.c(), mn, c)?;
        let (sa, sb) = if i.scales() == 0 {
            (Vec::new(), Vec::new())
        } else {
            let sa = to_bytes(Operand::ScalesOfA, scale, i.m() * i.scales(), sa)?;
            (sa, to_bytes(Operand::ScalesOfB, scale, i.n() * i.scales(), sb)?)
        };
        check_width::<D>(Operand::D, i.d())?;
        check_length(Operand::D, mn, d.len())?;
        let mut results = vec![0; mn * i.d().bytes];
        let batch = Batch { count: 1, a: &a, b: &b, c: &c, sa: &sa, sb: &sb };
        self.compiled.run(&batch.problems(i), &mut results);
        for (element, bytes) in d.iter_mut().zip(results.chunks_exact(i.d().bytes)) {
            *element = D::from_bytes(bytes);
        }
        Ok(())
    }

    fn dot_add_checked(
        &self,
        a: &[u64],
        b: &[u64],
        c: u64,
        sa: &[u64],
        sb: &[u64],
    ) -> Result<u64, InputError> {
        let (k, scales) = (self.instruction.k(), self.instruction.scales());
        check_length(Operand::A, k, a.len())?;
        check_length(Operand::B, k, b.len())?;
        check_length(Operand::ScalesOfA, scales, sa.len())?;
        check_length(Operand::ScalesOfB, scales, sb.len())?;
        Ok(Executor::new(self.model()).expect(CHECKED).dot_add(a, b, c, sa, sb))
    }

    fn without_scales(&self) -> Result<(), InputError> {
        match self.instruction.scale() {
            None => Ok(()),
            Some(_) => Err(InputError::ScalesMissing),
        }
    }

    fn with_scales(&self) -> Result<(), InputError> {
        match self.instruction.scale() {
            None => Err(InputError::NoScales),
            Some(_) => Ok(()),
        }
    }
}

impl Instruction {
    /// Bytes that one problem takes in each array: A, B, C, the scales of A and of B, D.
    pub const fn bytes(&self) -> [usize; 6] {
        let Facts { m, n, .. } = *self.0;
        let k = self.k();
        let scale_bytes = match &self.0.scale {
            Some(scale) => scale.format.bytes * self.scales(),
            None => 0,
        };
        [
            m * k * self.0.a.bytes,
            n * k * self.0.b.bytes,
            m * n * self.0.c.bytes,
            m * scale_bytes,
            n * scale_bytes,
            m * n * self.0.d.bytes,
        ]
    }
}

/// An unsigned integer that holds the bit pattern of one element.
pub trait Bits: Copy + sealed::Sealed {
    /// Its width in bytes.
    const BYTES: usize;
    /// Appends its little-endian bytes.
    fn append_to(self, bytes: &mut Vec<u8>);
    /// Reads its little-endian bytes.
    ///
    /// # Panics
    /// If there are not [`BYTES`](Bits::BYTES) of them.
    fn from_bytes(bytes: &[u8]) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! bits {
    ($($integer:ty),*) => {$(
        impl sealed::Sealed for $integer {}

        impl Bits for $integer {
            const BYTES: usize = size_of::<$integer>();

            fn append_to(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn from_bytes(bytes: &[u8]) -> $integer {
                <$integer>::from_le_bytes(bytes.try_into().expect("bytes of one element"))
            }
        }
    )*};
}

bits!(u8, u16, u32, u64);

/// An array of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A, m rows of k elements.
    A,
    /// B, n columns of k elements.
    B,
    /// C, m rows of n elements.
    C,
    /// The scales of A, m rows of k / block.
    ScalesOfA,
    /// The scales of B, n columns of k / block.
    ScalesOfB,
    /// D, m rows of n elements.
    D,
}

impl Operand {
    const ALL: [Operand; 6] =
        [Operand::A, Operand::B, Operand::C, Operand::ScalesOfA, Operand::ScalesOfB, Operand::D];
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operand::A => "A",
            Operand::B => "B",
            Operand::C => "C",
            Operand::ScalesOfA => "the scales of A",
            Operand::ScalesOfB => "the scales of B",
            Operand::D => "D",
        })
    }
}

/// Why a problem is none of an instruction's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputError {
    /// An array has the wrong length.
    Length {
        /// The array.
        operand: Operand,
        /// Elements, or bytes where bytes were given, that it should have.
        expected: usize,
        /// What it has.
        found: usize,
    },
    /// Elements have another width than the format.
    Width {
        /// The array.
        operand: Operand,
        /// The format's name.
        format: &'static str,
        /// Bytes of an element of the format.
        expected: usize,
        /// Bytes of an element that was given.
        found: usize,
    },
    /// The instruction has block scales, and none were given.
    ScalesMissing,
    /// The instruction has no block scales, and some were given.
    NoScales,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputError::Length { operand, expected, found } => {
                write!(f, "the length of {operand} is {found}, and the instruction takes {expected}")
            }
            InputError::Width { operand, format, expected, found } => {
                write!(f, "an element of {operand} is {format} and takes {expected} bytes, not {found}")
            }
            InputError::ScalesMissing => {
                f.write_str("the instruction has block scales: use the function whose name ends in _scaled")
            }
            InputError::NoScales => f.write_str("the instruction has no block scales"),
        }
    }
}

impl core::error::Error for InputError {}

fn check_length(operand: Operand, expected: usize, found: usize) -> Result<(), InputError> {
    if expected == found { Ok(()) } else { Err(InputError::Length { operand, expected, found }) }
}

fn check_width<T: Bits>(operand: Operand, format: &Format) -> Result<(), InputError> {
    if T::BYTES == format.bytes {
        return Ok(());
    }
    Err(InputError::Width { operand, format: format.name, expected: format.bytes, found: T::BYTES })
}

/// The little-endian bytes of elements, once their number and width are known to be right.
fn to_bytes<T: Bits>(
    operand: Operand,
    format: &Format,
    count: usize,
    elements: &[T],
) -> Result<Vec<u8>, InputError> {
    check_width::<T>(operand, format)?;
    check_length(operand, count, elements.len())?;
    let mut bytes = Vec::with_capacity(count * T::BYTES);
    elements.iter().for_each(|element| element.append_to(&mut bytes));
    Ok(bytes)
}
