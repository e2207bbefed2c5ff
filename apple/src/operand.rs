//! The 64-bit operand: what an instruction does, field by field.

use crate::instruction::Instruction;

/// The operand's fields, under the names that the document gives them.
///
/// [`encode`](Operand::encode) and [`decode`](Operand::decode) are inverse on all of them. The default is
/// all zeros: an outer product of everything, with every input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Bit 63: lane by lane (vector mode); otherwise an outer product (matrix mode).
    pub vector: bool,
    /// Bit 62: Z is f32; otherwise it has the instruction's width. Only `fma16` in matrix mode looks.
    pub z_is_f32: bool,
    /// Bit 61: X is f16, in even lanes; otherwise it has the instruction's width. Only `fma32` looks.
    pub x_is_f16: bool,
    /// Bit 60: Y is f16, in even lanes; otherwise it has the instruction's width. Only `fma32` looks.
    pub y_is_f16: bool,
    /// Bits 47 to 41: the lanes of X, which are the columns of Z.
    pub x_enable: Enable,
    /// Bits 38 to 32: the lanes of Y, which are the rows of Z. Ignored in vector mode.
    pub y_enable: Enable,
    /// Bit 29: X is left out.
    pub skip_x: bool,
    /// Bit 28: Y is left out.
    pub skip_y: bool,
    /// Bit 27: Z is left out.
    pub skip_z: bool,
    /// Bits 25 to 20, below 64: the row of Z; in matrix mode its high bits are ignored.
    pub z_row: u8,
    /// Bits 18 to 10, below 512: where in X the vector starts, in bytes.
    pub x_offset: u16,
    /// Bits 8 to 0, below 512: where in Y the vector starts, in bytes.
    pub y_offset: u16,
}

/// Which lanes take part: a mode and its value, below 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Enable {
    /// What the value means.
    pub mode: EnableMode,
    /// The value, N.
    pub value: u8,
}

/// What the value N of an [`Enable`] means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EnableMode {
    /// Mode 0: all lanes (N = 0), odd lanes only (1), even lanes only (2), or none (anything else).
    #[default]
    Pattern,
    /// Mode 1: lane N alone.
    Only,
    /// Mode 2: the first N lanes, or all when N is zero.
    First,
    /// Mode 3: the last N lanes, or all when N is zero.
    Last,
}

impl EnableMode {
    /// The modes in the order of their numbers.
    pub const ALL: [EnableMode; 4] =
        [EnableMode::Pattern, EnableMode::Only, EnableMode::First, EnableMode::Last];
}

impl Enable {
    /// Bits of the value.
    const VALUE_BITS: u32 = 5;

    /// Whether a lane takes part, of a register with so many.
    pub const fn lane(self, lane: usize, lanes: usize) -> bool {
        let n = self.value as usize;
        match self.mode {
            EnableMode::Pattern => match n {
                0 => true,
                1 => lane % 2 == 1,
                2 => lane.is_multiple_of(2),
                _ => false,
            },
            EnableMode::Only => lane == n,
            EnableMode::First => n == 0 || lane < n,
            EnableMode::Last => n == 0 || lane + n >= lanes,
        }
    }

    const fn encode(self) -> u64 {
        (self.mode as u64) << Enable::VALUE_BITS | self.value as u64 & 31
    }

    const fn decode(field: u64) -> Enable {
        Enable {
            mode: EnableMode::ALL[(field >> Enable::VALUE_BITS & 3) as usize],
            value: (field & 31) as u8,
        }
    }
}

/// The lowest bit of each field.
mod at {
    pub const VECTOR: u32 = 63;
    pub const Z_IS_F32: u32 = 62;
    pub const X_IS_F16: u32 = 61;
    pub const Y_IS_F16: u32 = 60;
    pub const X_ENABLE: u32 = 41;
    pub const Y_ENABLE: u32 = 32;
    pub const SKIP_X: u32 = 29;
    pub const SKIP_Y: u32 = 28;
    pub const SKIP_Z: u32 = 27;
    pub const Z_ROW: u32 = 20;
    pub const X_OFFSET: u32 = 10;
    pub const Y_OFFSET: u32 = 0;
}

/// A field's place among the 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// What it is about, as the document names it.
    pub name: &'static str,
    /// Its lowest bit.
    pub lowest: u32,
    /// How many bits it has.
    pub width: u32,
}

impl Field {
    const fn new(name: &'static str, lowest: u32, width: u32) -> Field {
        Field { name, lowest, width }
    }

    /// Its bits, in their places.
    pub const fn mask(self) -> u64 {
        ((1 << self.width) - 1) << self.lowest
    }

    /// Its value.
    pub const fn of(self, bits: u64) -> u64 {
        (bits & self.mask()) >> self.lowest
    }
}

/// The fields from the highest bit to the lowest; all other bits are always ignored.
pub const FIELDS: [Field; 14] = [
    Field::new("mode", at::VECTOR, 1),
    Field::new("Z width", at::Z_IS_F32, 1),
    Field::new("X width", at::X_IS_F16, 1),
    Field::new("Y width", at::Y_IS_F16, 1),
    Field::new("X enable mode", at::X_ENABLE + Enable::VALUE_BITS, 2),
    Field::new("X enable value", at::X_ENABLE, Enable::VALUE_BITS),
    Field::new("Y enable mode", at::Y_ENABLE + Enable::VALUE_BITS, 2),
    Field::new("Y enable value", at::Y_ENABLE, Enable::VALUE_BITS),
    Field::new("skip X", at::SKIP_X, 1),
    Field::new("skip Y", at::SKIP_Y, 1),
    Field::new("skip Z", at::SKIP_Z, 1),
    Field::new("Z row", at::Z_ROW, 6),
    Field::new("X offset", at::X_OFFSET, 9),
    Field::new("Y offset", at::Y_OFFSET, 9),
];

/// Bits of an enable field, mode and value together.
const ENABLE: u64 = 0x7f;
const Z_ROW: u64 = 63;
const OFFSET: u64 = 511;

impl Operand {
    /// The 64 bits; those that every instruction ignores are zero. Of a number that is too large for its
    /// field, the low bits count.
    pub const fn encode(&self) -> u64 {
        (self.vector as u64) << at::VECTOR
            | (self.z_is_f32 as u64) << at::Z_IS_F32
            | (self.x_is_f16 as u64) << at::X_IS_F16
            | (self.y_is_f16 as u64) << at::Y_IS_F16
            | self.x_enable.encode() << at::X_ENABLE
            | self.y_enable.encode() << at::Y_ENABLE
            | (self.skip_x as u64) << at::SKIP_X
            | (self.skip_y as u64) << at::SKIP_Y
            | (self.skip_z as u64) << at::SKIP_Z
            | (self.z_row as u64 & Z_ROW) << at::Z_ROW
            | (self.x_offset as u64 & OFFSET) << at::X_OFFSET
            | (self.y_offset as u64 & OFFSET) << at::Y_OFFSET
    }

    /// Takes 64 bits apart. Every pattern is an operand.
    pub const fn decode(bits: u64) -> Operand {
        const fn flag(bits: u64, at: u32) -> bool {
            bits >> at & 1 == 1
        }
        Operand {
            vector: flag(bits, at::VECTOR),
            z_is_f32: flag(bits, at::Z_IS_F32),
            x_is_f16: flag(bits, at::X_IS_F16),
            y_is_f16: flag(bits, at::Y_IS_F16),
            x_enable: Enable::decode(bits >> at::X_ENABLE),
            y_enable: Enable::decode(bits >> at::Y_ENABLE),
            skip_x: flag(bits, at::SKIP_X),
            skip_y: flag(bits, at::SKIP_Y),
            skip_z: flag(bits, at::SKIP_Z),
            z_row: (bits >> at::Z_ROW & Z_ROW) as u8,
            x_offset: (bits >> at::X_OFFSET & OFFSET) as u16,
            y_offset: (bits >> at::Y_OFFSET & OFFSET) as u16,
        }
    }

    /// Distance between the registers of Z that rows of the accumulator are in: 2 for an f16 Z, 4 for f32,
    /// 8 for f64, where all others are left alone; 1 in vector mode, and where `fma16` fills them all.
    pub const fn z_stride(&self, instruction: Instruction) -> usize {
        if self.vector || self.has_wide_z(instruction) { 1 } else { instruction.lane_bytes() }
    }

    /// Whether this is the `fma16` whose accumulator is f32\[32\]\[32\].
    pub const fn has_wide_z(&self, instruction: Instruction) -> bool {
        matches!(instruction, Instruction::Fma16) && !self.vector && self.z_is_f32
    }

    /// A mask of the bits that an instruction looks at, given whether this is vector mode and whether Z is
    /// f32.
    pub const fn meaningful_bits(&self, instruction: Instruction) -> u64 {
        let always = 1 << at::VECTOR
            | ENABLE << at::X_ENABLE
            | 1 << at::SKIP_X
            | 1 << at::SKIP_Y
            | 1 << at::SKIP_Z
            | OFFSET << at::X_OFFSET
            | OFFSET << at::Y_OFFSET;
        let widths = match instruction {
            Instruction::Fma64 => 0,
            Instruction::Fma32 => 1 << at::X_IS_F16 | 1 << at::Y_IS_F16,
            Instruction::Fma16 => (!self.vector as u64) << at::Z_IS_F32,
        };
        let rows = if self.vector { Z_ROW } else { self.z_stride(instruction) as u64 - 1 };
        let y_enable = if self.vector { 0 } else { ENABLE };
        always | widths | rows << at::Z_ROW | y_enable << at::Y_ENABLE
    }
}
