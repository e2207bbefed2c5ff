//! The 32-bit instruction word: which instruction, and which general-purpose register has its operand.
//!
//! | bits | meaning |
//! |---|---|
//! | 31 to 10 | reserved in A64: 0x201000 >> 10 |
//! | 9 to 5 | the instruction: 10, 12 or 15 |
//! | 4 to 0 | the register |

use core::fmt;

/// What all of the unit's instruction words have in common.
const RESERVED: u32 = 0x0020_1000;

/// The word of an instruction of the unit, this crate's or another: its number, and the number of a
/// register or what it has in the register's place. Of both, the low five bits count.
pub const fn word(opcode: u32, operand: u32) -> u32 {
    RESERVED | (opcode & 31) << 5 | operand & 31
}

/// A fused multiply-add of the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// `fma64`.
    Fma64,
    /// `fma32`.
    Fma32,
    /// `fma16`.
    Fma16,
}

impl Instruction {
    /// All three.
    pub const ALL: [Instruction; 3] = [Instruction::Fma64, Instruction::Fma32, Instruction::Fma16];

    /// Its number in bits 9 to 5 of the word.
    pub const fn opcode(self) -> u32 {
        match self {
            Instruction::Fma64 => 10,
            Instruction::Fma32 => 12,
            Instruction::Fma16 => 15,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Instruction::Fma64 => "fma64",
            Instruction::Fma32 => "fma32",
            Instruction::Fma16 => "fma16",
        }
    }

    /// The instruction of that name.
    pub fn named(name: &str) -> Option<Instruction> {
        Instruction::ALL.into_iter().find(|instruction| instruction.name() == name)
    }

    /// Bytes of a lane.
    pub const fn lane_bytes(self) -> usize {
        match self {
            Instruction::Fma64 => 8,
            Instruction::Fma32 => 4,
            Instruction::Fma16 => 2,
        }
    }

    /// Lanes of a register: 8, 16 or 32.
    pub const fn lanes(self) -> usize {
        64 / self.lane_bytes()
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An instruction word taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// The instruction.
    pub instruction: Instruction,
    /// The general-purpose register that holds the operand, below 32.
    pub register: u8,
}

/// A word that is none of the three instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordError {
    /// Bits 31 to 10 are not those of the unit's instructions.
    NotOfTheUnit(u32),
    /// It is an instruction of the unit, and another one.
    Opcode(u32),
}

impl fmt::Display for WordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WordError::NotOfTheUnit(word) => write!(
                f,
                "{word:#010x} is no instruction of the matrix unit; those are 0x00201000 to 0x002013ff"
            ),
            WordError::Opcode(opcode) => write!(
                f,
                "instruction {opcode} of the matrix unit is not modelled; expected 10 (fma64), 12 (fma32) or \
                 15 (fma16)"
            ),
        }
    }
}

impl core::error::Error for WordError {}

impl Word {
    /// The 32 bits; of the register's number, the low five bits count.
    pub const fn encode(self) -> u32 {
        word(self.instruction.opcode(), self.register as u32)
    }

    /// Takes a word apart.
    ///
    /// # Errors
    /// If it is none of the three instructions.
    pub fn decode(word: u32) -> Result<Word, WordError> {
        if word >> 10 != RESERVED >> 10 {
            return Err(WordError::NotOfTheUnit(word));
        }
        let opcode = word >> 5 & 31;
        let instruction = Instruction::ALL.into_iter().find(|instruction| instruction.opcode() == opcode);
        let instruction = instruction.ok_or(WordError::Opcode(opcode))?;
        Ok(Word { instruction, register: (word & 31) as u8 })
    }
}
