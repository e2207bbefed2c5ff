//! Operands and instruction words: fields, ignored bits, and that nothing at all makes the unit panic.

use mmaprobe_apple::instruction::WordError;
use mmaprobe_apple::operand::{Enable, EnableMode, FIELDS};
use mmaprobe_apple::{Instruction, Operand, Unit, Word};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The bits that the document calls ignored, whatever the instruction: 59 to 48, 40 to 39, 31 to 30, 26,
/// 19 and 9.
const IGNORED: u64 = 0x0fff_0180_c408_0200;

#[test]
fn each_field_has_its_bits() {
    let none = Operand::default();
    let enable = |number: usize, value| Enable { mode: EnableMode::ALL[number], value };
    let fields = [
        (none, 0),
        (Operand { vector: true, ..none }, 1 << 63),
        (Operand { z_is_f32: true, ..none }, 1 << 62),
        (Operand { x_is_f16: true, ..none }, 1 << 61),
        (Operand { y_is_f16: true, ..none }, 1 << 60),
        (Operand { x_enable: enable(3, 0), ..none }, 3 << 46),
        (Operand { x_enable: enable(0, 31), ..none }, 31 << 41),
        (Operand { y_enable: enable(2, 0), ..none }, 2 << 37),
        (Operand { y_enable: enable(1, 31), ..none }, 1 << 37 | 31 << 32),
        (Operand { skip_x: true, ..none }, 1 << 29),
        (Operand { skip_y: true, ..none }, 1 << 28),
        (Operand { skip_z: true, ..none }, 1 << 27),
        (Operand { z_row: 63, ..none }, 63 << 20),
        (Operand { x_offset: 511, ..none }, 511 << 10),
        (Operand { y_offset: 511, ..none }, 511),
    ];
    for (operand, bits) in fields {
        assert_eq!(operand.encode(), bits, "{operand:?}");
        assert_eq!(Operand::decode(bits), operand, "{bits:#x}");
    }
}

#[test]
fn all_other_bits_are_ignored_and_no_two_fields_share_one() {
    let mut all = 0;
    for field in FIELDS {
        assert_eq!(all & field.mask(), 0, "{}", field.name);
        assert_eq!(field.of(!0) << field.lowest, field.mask());
        all |= field.mask();
    }
    assert_eq!(all, !IGNORED);
}

#[test]
fn decoding_and_encoding_are_inverse_on_all_but_ignored_bits() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for bits in (0..64).map(|bit| 1 << bit).chain((0..100_000).map(|_| rng.next_u64())) {
        let operand = Operand::decode(bits);
        assert_eq!(operand.encode(), bits & !IGNORED, "{bits:#x}");
        assert_eq!(Operand::decode(operand.encode()), operand);
    }
}

#[test]
fn words() {
    // fma64 x0, fma32 x7, fma16 x31.
    for (instruction, register, word) in [
        (Instruction::Fma64, 0, 0x0020_1140),
        (Instruction::Fma32, 7, 0x0020_1187),
        (Instruction::Fma16, 31, 0x0020_11ff),
    ] {
        assert_eq!(Word { instruction, register }.encode(), word);
        assert_eq!(Word::decode(word), Ok(Word { instruction, register }));
    }
    assert_eq!(Word::decode(0x0020_1160), Err(WordError::Opcode(11)));
    assert_eq!(Word::decode(0x0020_1540), Err(WordError::NotOfTheUnit(0x0020_1540)));
    let known = (0..=u32::MAX).step_by(0x20).filter(|&word| Word::decode(word).is_ok()).count();
    assert_eq!(known, 3, "of all words that name register 0");
}

fn random_unit(rng: &mut impl Rng) -> Unit {
    let mut unit = Unit::new();
    rng.fill_bytes(&mut unit.x);
    rng.fill_bytes(&mut unit.y);
    unit.z.iter_mut().for_each(|register| rng.fill_bytes(register));
    unit
}

/// The bits of an operand that an instruction ignores, from the document: those always ignored, the width
/// bits of the others, the Y enable of vectors, and the high bits of a matrix's Z row.
fn ignored(instruction: Instruction, operand: u64) -> u64 {
    let vector = operand >> 63 == 1;
    let wide = instruction == Instruction::Fma16 && !vector && operand >> 62 & 1 == 1;
    let widths: u64 = match instruction {
        Instruction::Fma64 => 0b111 << 60,
        Instruction::Fma32 => 0b100 << 60,
        Instruction::Fma16 if vector => 0b111 << 60,
        Instruction::Fma16 => 0b011 << 60,
    };
    let row: u64 = match instruction {
        _ if vector => 0,
        Instruction::Fma64 => 0b11_1000,
        Instruction::Fma32 => 0b11_1100,
        Instruction::Fma16 if wide => 0b11_1111,
        Instruction::Fma16 => 0b11_1110,
    };
    IGNORED | widths | row << 20 | if vector { 0x7f << 32 } else { 0 }
}

/// Any registers and any operand, and the same again with other bits where they are ignored.
#[test]
fn nothing_panics_and_ignored_bits_are_ignored() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut unit = random_unit(&mut rng);
    for round in 0..4_000 {
        if round % 16 == 0 {
            unit = random_unit(&mut rng);
        }
        let instruction = Instruction::ALL[rng.random_range(0..3)];
        let operand = rng.next_u64();
        let ignored = ignored(instruction, operand);
        assert_eq!(!ignored, Operand::decode(operand).meaningful_bits(instruction), "{operand:#x}");
        let mut other = unit.clone();
        unit.execute(instruction, operand);
        other.execute(instruction, operand ^ rng.next_u64() & ignored);
        assert!(unit == other, "{instruction} {operand:#018x}");
    }
}

/// And those that are not ignored are not: on random registers, each can change what comes out.
#[test]
fn every_other_bit_matters() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for instruction in Instruction::ALL {
        for modes in 0..16u64 {
            let ignored = ignored(instruction, modes << 60);
            for bit in (0..64).filter(|bit| ignored >> bit & 1 == 0) {
                let matters = (0..200).any(|_| {
                    // All lanes or a few: a value under a mode that takes none shows nothing.
                    let base = rng.next_u64() >> 4 & 0x0fff_ffff_c7ff_ffff;
                    let operand = modes << 60 | base;
                    let (mut one, mut other) = (random_unit(&mut rng), Unit::new());
                    other.clone_from(&one);
                    one.execute(instruction, operand);
                    other.execute(instruction, operand ^ 1 << bit);
                    one != other
                });
                assert!(matters, "{instruction}, modes {modes:#06b}: bit {bit}");
            }
        }
    }
}
