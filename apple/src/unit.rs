//! The unit: its registers, and the instructions on them.

use mmaprobe_model::Format;
use mmaprobe_model::format::{FP16, FP32, FP64};

use crate::alu::{Element, operate};
use crate::instruction::Instruction;
use crate::operand::Operand;

/// Bytes of a register.
pub const REGISTER: usize = 64;

/// The register files: 5 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// X: eight registers, one after another. An operand's vector can start at any byte and wraps.
    pub x: [u8; 8 * REGISTER],
    /// Y, as X.
    pub y: [u8; 8 * REGISTER],
    /// Z: the registers that are accumulated in.
    pub z: [[u8; REGISTER]; 64],
}

impl Default for Unit {
    fn default() -> Unit {
        Unit::new()
    }
}

/// The formats of an instruction's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Format of X.
    pub x: Format,
    /// Format of Y.
    pub y: Format,
    /// Format of Z.
    pub z: Format,
}

impl Widths {
    /// Those of an instruction with this operand (the document's second table).
    pub const fn of(instruction: Instruction, operand: &Operand) -> Widths {
        match instruction {
            Instruction::Fma64 => Widths { x: FP64, y: FP64, z: FP64 },
            Instruction::Fma32 => Widths {
                x: if operand.x_is_f16 { FP16 } else { FP32 },
                y: if operand.y_is_f16 { FP16 } else { FP32 },
                z: FP32,
            },
            Instruction::Fma16 => {
                Widths { x: FP16, y: FP16, z: if operand.has_wide_z(instruction) { FP32 } else { FP16 } }
            }
        }
    }
}

impl Unit {
    /// A unit whose registers are zero.
    pub const fn new() -> Unit {
        Unit { x: [0; 8 * REGISTER], y: [0; 8 * REGISTER], z: [[0; REGISTER]; 64] }
    }

    /// Executes an instruction whose general-purpose register holds `operand`.
    pub fn execute(&mut self, instruction: Instruction, operand: u64) {
        let operand = &Operand::decode(operand);
        let widths = Widths::of(instruction, operand);
        let lanes = instruction.lanes();
        let input = |file: &[u8; 8 * REGISTER], offset: u16, format, lane: usize| {
            // A narrower element is in the even half of the lane.
            let start = usize::from(offset) + lane * instruction.lane_bytes();
            element(format, |byte| file[(start + byte) % file.len()])
        };
        for i in (0..lanes).filter(|&i| operand.x_enable.lane(i, lanes)) {
            let x = input(&self.x, operand.x_offset, widths.x, i);
            if operand.vector {
                let y = input(&self.y, operand.y_offset, widths.y, i);
                let place = Place { row: operand.z_row.into(), byte: i * instruction.lane_bytes() };
                self.accumulate(operand, x, y, place, widths.z);
                continue;
            }
            for j in (0..lanes).filter(|&j| operand.y_enable.lane(j, lanes)) {
                let y = input(&self.y, operand.y_offset, widths.y, j);
                let place = Place::of(instruction, operand, i, j);
                self.accumulate(operand, x, y, place, widths.z);
            }
        }
    }

    fn accumulate(&mut self, operand: &Operand, x: Element, y: Element, place: Place, format: Format) {
        let target = &mut self.z[place.row][place.byte..][..format.bytes];
        let z = element(format, |byte| target[byte]);
        let result = operate(operand, x, y, z);
        target.copy_from_slice(&result.to_le_bytes()[..format.bytes]);
    }
}

/// Where in Z an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The register.
    pub row: usize,
    /// The first byte in it.
    pub byte: usize,
}

impl Place {
    /// The element for lane `i` of X and lane `j` of Y, in matrix mode.
    pub const fn of(instruction: Instruction, operand: &Operand, i: usize, j: usize) -> Place {
        if operand.has_wide_z(instruction) {
            // A row of 32 f32 takes two registers: even lanes of X in the even one, odd lanes in the odd.
            return Place { row: 2 * j + i % 2, byte: i / 2 * FP32.bytes };
        }
        let stride = operand.z_stride(instruction);
        Place { row: j * stride + operand.z_row as usize % stride, byte: i * instruction.lane_bytes() }
    }
}

/// An element from its bytes, the lowest first.
fn element(format: Format, byte: impl Fn(usize) -> u8) -> Element {
    let bits = (0..format.bytes).fold(0, |bits, index| bits | u64::from(byte(index)) << (8 * index));
    Element { format, bits }
}
