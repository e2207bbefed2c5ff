//! Apple's matrix unit as a machine: three register files, and the instructions that multiply and add
//! them.
//!
//! Apple calls none of this by a name in public. The source is the community's description of the
//! instructions `fma16`, `fma32` and `fma64` ("fma.md" of the project that documents them on M1 and
//! later), called *the document* below. An instruction is a [word](instruction) that names a
//! general-purpose register, and the 64 bits in that register, the [operand], say everything else:
//! outer product or lane by lane, which lanes, which rows, which inputs. The [unit](mod@unit) holds the registers
//! and executes; what happens to one element is in [alu], on the arithmetic of `mmaprobe-model`. A
//! [form] is an instruction seen as a matrix product.
//!
//! It is a crate of its own because both sides of the tool need it: `mmaprobe-kernels` to make the words
//! that Apple silicon executes, the tool to simulate the unit. Neither can be asked of the other, and
//! `mmaprobe-model` is no place for a vendor's registers: generated crates carry all of its source.
//!
//! # Where the document is silent
//!
//! | question | here | because |
//! |---|---|---|
//! | "only enable lane #N" with N beyond the last lane | no lane is enabled | there is no such lane |
//! | lanes of an f16 operand of `fma32` | enabled as the 32-bit lanes that they are the even halves of | the enable value counts lanes of the instruction, as in the document's sample for `fma64` |
//! | NaN results | the positive quiet NaN with an empty payload | the document's emulation has the DN bit of FPCR set; Arm Architecture Reference Manual, "Default NaN" |
//! | `x` alone, `y` alone or `z` alone | the bits as they are, signalling NaNs too | the document's sample returns them untouched |
//! | `x` or `y` alone as f16 into an f32 Z | converted, a NaN to the default NaN | a conversion is an operation under DN |
//! | subnormal numbers | kept | the document's sample sets no FZ |
//!
//! # Example: one column of an outer product
//!
//! ```
//! use mmaprobe_apple::{Instruction, Operand, Unit, operand::{Enable, EnableMode}};
//!
//! let mut unit = Unit::new();
//! unit.x[..4].copy_from_slice(&3f32.to_le_bytes());
//! unit.y[4..8].copy_from_slice(&5f32.to_le_bytes());
//! let operand = Operand { x_enable: Enable { mode: EnableMode::Only, value: 0 }, ..Operand::default() };
//! unit.execute(Instruction::Fma32, operand.encode());
//! // Row 1 of the f32[16][16] accumulator is register 4 of Z.
//! assert_eq!(unit.z[4][..4], 15f32.to_le_bytes());
//! ```
#![no_std]
#![forbid(unsafe_code)]

pub mod alu;
pub mod form;
pub mod instruction;
pub mod operand;
pub mod unit;

pub use form::Form;
pub use instruction::{Instruction, Word};
pub use operand::Operand;
pub use unit::Unit;
