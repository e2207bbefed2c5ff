//! The instructions as matrix products: D = A·B + C with a single product for each element, K = 1.
//!
//! A [`Form`] is a row of the document's second table: an instruction, a mode, and the formats of X, Y
//! and Z. In matrix mode A is Y, a column whose lanes are the rows of D; B is X, a row whose lanes are the
//! columns. In vector mode each lane is a problem of its own, with m = n = 1.
//!
//! [`Form::run`] puts operands into registers and takes the result out of them again, on whatever has
//! such registers: the [`Unit`], or Apple silicon. So what the simulation shows of it holds there.

use mmaprobe_model::Format;
use mmaprobe_model::format::{FP16, FP32, FP64};

use crate::instruction::Instruction;
use crate::operand::Operand;
use crate::unit::{Place, REGISTER, Unit, Widths};

/// An instruction in one of its modes and widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Instruction, mode, and the formats of X, Y and Z: `fma32.matrix.f16.f32.f32`.
    pub name: &'static str,
    /// The instruction.
    pub instruction: Instruction,
    /// Its operand: every lane, every input, offsets and Z row zero.
    pub operand: Operand,
}

/// Independent problems D = A·B + C: each array holds all of them one after another, A, C and D row by
/// row, B column by column, elements little-endian.
#[derive(Debug)]
pub struct Problems<'a> {
    /// Number of problems.
    pub count: usize,
    /// A of all problems, in the format of Y.
    pub a: &'a [u8],
    /// B of all problems, in the format of X.
    pub b: &'a [u8],
    /// C of all problems, in the format of Z.
    pub c: &'a [u8],
    /// D of all problems, in the format of Z.
    pub d: &'a mut [u8],
}

/// What has the registers and executes the instructions.
pub trait Machine {
    /// Loads the first register of X.
    fn load_x(&mut self, bytes: &[u8; REGISTER]);
    /// Loads the first register of Y.
    fn load_y(&mut self, bytes: &[u8; REGISTER]);
    /// Loads a register of Z; `row` is below 64.
    fn load_z(&mut self, row: usize, bytes: &[u8; REGISTER]);
    /// Stores a register of Z; `row` is below 64.
    fn store_z(&mut self, row: usize, bytes: &mut [u8; REGISTER]);
    /// Executes an instruction with an operand.
    fn execute(&mut self, instruction: Instruction, operand: u64);
}

impl Machine for Unit {
    fn load_x(&mut self, bytes: &[u8; REGISTER]) {
        self.x[..REGISTER].copy_from_slice(bytes);
    }

    fn load_y(&mut self, bytes: &[u8; REGISTER]) {
        self.y[..REGISTER].copy_from_slice(bytes);
    }

    fn load_z(&mut self, row: usize, bytes: &[u8; REGISTER]) {
        self.z[row] = *bytes;
    }

    fn store_z(&mut self, row: usize, bytes: &mut [u8; REGISTER]) {
        *bytes = self.z[row];
    }

    fn execute(&mut self, instruction: Instruction, operand: u64) {
        Unit::execute(self, instruction, operand);
    }
}

/// A form; `formats` are those of X, Y and Z.
const fn form(name: &'static str, instruction: Instruction, vector: bool, formats: [Format; 3]) -> Form {
    let [x, y, z] = formats;
    let fma32 = matches!(instruction, Instruction::Fma32);
    let fma16 = matches!(instruction, Instruction::Fma16);
    let none = Operand::decode(0);
    let operand = Operand {
        vector,
        z_is_f32: fma16 && z.bytes == FP32.bytes,
        x_is_f16: fma32 && x.bytes == FP16.bytes,
        y_is_f16: fma32 && y.bytes == FP16.bytes,
        ..none
    };
    Form { name, instruction, operand }
}

impl Form {
    /// The rows of the table.
    pub const ALL: [Form; 13] = {
        use Instruction::{Fma16, Fma32, Fma64};
        [
            form("fma16.matrix.f16.f16.f16", Fma16, false, [FP16, FP16, FP16]),
            form("fma16.matrix.f16.f16.f32", Fma16, false, [FP16, FP16, FP32]),
            form("fma32.matrix.f32.f32.f32", Fma32, false, [FP32, FP32, FP32]),
            form("fma32.matrix.f32.f16.f32", Fma32, false, [FP32, FP16, FP32]),
            form("fma32.matrix.f16.f32.f32", Fma32, false, [FP16, FP32, FP32]),
            form("fma32.matrix.f16.f16.f32", Fma32, false, [FP16, FP16, FP32]),
            form("fma64.matrix.f64.f64.f64", Fma64, false, [FP64, FP64, FP64]),
            form("fma16.vector.f16.f16.f16", Fma16, true, [FP16, FP16, FP16]),
            form("fma32.vector.f32.f32.f32", Fma32, true, [FP32, FP32, FP32]),
            form("fma32.vector.f32.f16.f32", Fma32, true, [FP32, FP16, FP32]),
            form("fma32.vector.f16.f32.f32", Fma32, true, [FP16, FP32, FP32]),
            form("fma32.vector.f16.f16.f32", Fma32, true, [FP16, FP16, FP32]),
            form("fma64.vector.f64.f64.f64", Fma64, true, [FP64, FP64, FP64]),
        ]
    };

    /// The form of that name.
    pub fn named(name: &str) -> Option<&'static Form> {
        const { &Form::ALL }.iter().find(|form| form.name == name)
    }

    /// The formats of X, Y and Z.
    pub const fn widths(&self) -> Widths {
        Widths::of(self.instruction, &self.operand)
    }

    /// Rows of D, and as many columns: 1 in vector mode.
    pub const fn size(&self) -> usize {
        if self.operand.vector { 1 } else { self.instruction.lanes() }
    }

    /// Problems that one execution computes: 1 in matrix mode.
    pub const fn problems(&self) -> usize {
        if self.operand.vector { self.instruction.lanes() } else { 1 }
    }

    /// Accumulators that Z holds beside each other, each under its own Z row.
    pub const fn accumulators(&self) -> usize {
        if self.operand.vector { 64 } else { self.operand.z_stride(self.instruction) }
    }

    /// Where in Z an element of D is: problem `p` of an execution, row `j`, column `i`.
    const fn place(&self, p: usize, j: usize, i: usize) -> Place {
        if self.operand.vector {
            return Place { row: 0, byte: p * self.instruction.lane_bytes() };
        }
        Place::of(self.instruction, &self.operand, i, j)
    }

    /// Computes all problems, with as few executions as that takes. Lanes without a problem compute with
    /// zeros.
    ///
    /// # Panics
    /// If an array's length is not that of `count` problems.
    pub fn run(&self, machine: &mut impl Machine, problems: Problems<'_>) {
        let Problems { count, a, b, c, d } = problems;
        let Widths { x, y, z } = self.widths();
        let size = self.size();
        let elements = size * size;
        for (length, bytes) in [
            (a.len(), size * y.bytes),
            (b.len(), size * x.bytes),
            (c.len(), elements * z.bytes),
            (d.len(), elements * z.bytes),
        ] {
            assert_eq!(Some(length), count.checked_mul(bytes), "array length");
        }
        let operand = self.operand.encode();
        let at_once = self.problems();
        let lane = self.instruction.lane_bytes();
        // The lanes of an input, from its elements.
        let spread = |array: &[u8], format: Format| {
            let mut register = [0; REGISTER];
            for (lane, element) in register.chunks_mut(lane).zip(array.chunks(format.bytes)) {
                lane[..format.bytes].copy_from_slice(element);
            }
            register
        };
        let inputs = a.chunks(at_once * size * y.bytes).zip(b.chunks(at_once * size * x.bytes));
        let accumulators =
            c.chunks(at_once * elements * z.bytes).zip(d.chunks_mut(at_once * elements * z.bytes));
        let mut rows = [[0; REGISTER]; 64];
        for ((a, b), (c, d)) in inputs.zip(accumulators) {
            // Each element's place in Z and in the arrays.
            let present = c.len() / (elements * z.bytes);
            let places = (0..present).flat_map(|p| {
                (0..elements).map(move |element| {
                    let start = (p * elements + element) * z.bytes;
                    (self.place(p, element / size, element % size), start..start + z.bytes)
                })
            });
            let mut used = [false; 64];
            for (Place { row, byte }, range) in places.clone() {
                used[row] = true;
                rows[row][byte..][..z.bytes].copy_from_slice(&c[range]);
            }
            let used = || (0..rows.len()).filter(|&row| used[row]);
            machine.load_x(&spread(b, x));
            machine.load_y(&spread(a, y));
            used().for_each(|row| machine.load_z(row, &rows[row]));
            machine.execute(self.instruction, operand);
            used().for_each(|row| machine.store_z(row, &mut rows[row]));
            for (Place { row, byte }, range) in places {
                d[range].copy_from_slice(&rows[row][byte..][..z.bytes]);
            }
        }
    }
}
