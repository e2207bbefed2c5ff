//! The document's three tables, row by row, with expectations that were worked out by hand.
//!
//! Inputs are small integers, which every format holds exactly, so that an expectation is a matter of
//! places and of which operation it is; how sums are rounded is `arithmetic.rs`.

use mmaprobe_apple::alu::default_nan;
use mmaprobe_apple::operand::{Enable, EnableMode};
use mmaprobe_apple::{Instruction, Operand, Unit};
use mmaprobe_model::format::{FP16, FP32, FP64};

/// What an element is, in the words of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Width {
    F16,
    F16Even,
    F32,
    F64,
}
use Width::{F16, F16Even, F32, F64};

impl Width {
    /// Bytes of a lane.
    fn lane(self) -> usize {
        match self {
            F16 => 2,
            F16Even | F32 => 4,
            F64 => 8,
        }
    }

    /// The lane that holds an integer below 2048; what is in the odd half of an f16 lane is a NaN.
    fn encode(self, integer: u32) -> Vec<u8> {
        match self {
            F16 => half(integer).to_le_bytes().to_vec(),
            F16Even => [half(integer).to_le_bytes(), 0x7e01u16.to_le_bytes()].concat(),
            F32 => (integer as f32).to_le_bytes().to_vec(),
            F64 => f64::from(integer).to_le_bytes().to_vec(),
        }
    }
}

/// An integer below 2048 as f16: the leading one is hidden, the rest is the fraction.
fn half(integer: u32) -> u16 {
    if integer == 0 {
        return 0;
    }
    let exponent = integer.ilog2();
    ((exponent + 15) << 10 | (integer << (10 - exponent)) & 0x3ff) as u16
}

fn fill(file: &mut [u8], width: Width, integer: impl Fn(usize) -> u32) {
    for (lane, bytes) in file.chunks_mut(width.lane()).enumerate() {
        bytes.copy_from_slice(&width.encode(integer(lane)));
    }
}

const SKIP_X: u64 = 1 << 29;
const SKIP_Y: u64 = 1 << 28;
const SKIP_Z: u64 = 1 << 27;

#[test]
fn skip_bits() {
    // x = 3, y = 5, z = 7.
    let rows = [
        (0, 22),
        (SKIP_Z, 15),
        (SKIP_Y, 10),
        (SKIP_Y | SKIP_Z, 3),
        (SKIP_X, 12),
        (SKIP_X | SKIP_Z, 5),
        (SKIP_X | SKIP_Y, 7),
        (SKIP_X | SKIP_Y | SKIP_Z, 0),
    ];
    const VECTOR: u64 = 1 << 63;
    for (skip, expected) in rows {
        for (instruction, width) in
            [(Instruction::Fma16, F16), (Instruction::Fma32, F32), (Instruction::Fma64, F64)]
        {
            for mode in [0, VECTOR] {
                let mut unit = Unit::new();
                fill(&mut unit.x, width, |_| 3);
                fill(&mut unit.y, width, |_| 5);
                unit.z.iter_mut().for_each(|register| fill(register, width, |_| 7));
                unit.execute(instruction, mode | skip);
                let mut register = [0; 64];
                fill(&mut register, width, |_| expected);
                assert_eq!(unit.z[0], register, "{instruction} {:#x}", mode | skip);
            }
        }
    }
}

/// Both inputs 1 + 2^−12, and z = −1: the product 1 + 2^−11 + 2^−24 takes 25 bits, and is rounded only
/// where z does not come to it.
#[test]
fn a_product_is_rounded_only_where_it_is_the_result() {
    let x = 0x3f80_0800u32;
    let run = |operand: u64, z: u32| {
        let mut unit = Unit::new();
        unit.x[..4].copy_from_slice(&x.to_le_bytes());
        unit.y[..4].copy_from_slice(&x.to_le_bytes());
        unit.z[0][..4].copy_from_slice(&z.to_le_bytes());
        unit.execute(Instruction::Fma32, 1 << 63 | operand);
        u32::from_le_bytes(unit.z[0][..4].try_into().unwrap())
    };
    let minus_one = 0xbf80_0000;
    assert_eq!(run(0, minus_one), 0x3a00_0400, "2^-11 × (1 + 2^-13)");
    assert_eq!(run(SKIP_Z, minus_one), 0x3f80_1000, "1 + 2^-11, the tie going to even");
    // Without z there is no +0 to add to a product of −0.
    let zero = |operand| {
        let mut unit = Unit::new();
        unit.x[..4].copy_from_slice(&0x8000_0000u32.to_le_bytes());
        unit.y[..4].copy_from_slice(&1f32.to_le_bytes());
        unit.execute(Instruction::Fma32, 1 << 63 | operand);
        u32::from_le_bytes(unit.z[0][..4].try_into().unwrap())
    };
    assert_eq!((zero(0), zero(SKIP_Z), zero(SKIP_Y)), (0, 0x8000_0000, 0));
}

#[test]
fn an_input_alone_is_moved_and_a_nan_from_arithmetic_is_the_default_one() {
    assert_eq!([FP16, FP32, FP64].map(default_nan), [0x7e00, 0x7fc0_0000, 0x7ff8_0000_0000_0000]);
    let signalling = 0xff80_0123u32;
    let run = |instruction, operand: u64, x: u32| {
        let mut unit = Unit::new();
        unit.x[..4].copy_from_slice(&x.to_le_bytes());
        unit.execute(instruction, 1 << 63 | operand);
        u32::from_le_bytes(unit.z[0][..4].try_into().unwrap())
    };
    assert_eq!(run(Instruction::Fma32, SKIP_Y | SKIP_Z, signalling), signalling);
    assert_eq!(run(Instruction::Fma32, SKIP_Y, signalling), 0x7fc0_0000);
    assert_eq!(run(Instruction::Fma32, 0, signalling), 0x7fc0_0000);
    // f16 into f32: 2^-24 and a NaN.
    let x_is_f16 = 1 << 61;
    assert_eq!(run(Instruction::Fma32, x_is_f16 | SKIP_Y | SKIP_Z, 0x0001), 0x3380_0000);
    assert_eq!(run(Instruction::Fma32, x_is_f16 | SKIP_Y | SKIP_Z, 0xfc01), 0x7fc0_0000);
}

#[test]
fn widths() {
    // Operand bits 63 to 60; X, Y, Z; Z's rows are one from each so many, 0 for a vector and 1 for
    // interleaved pairs. Then one element by hand: register, byte and bits.
    //
    // With x_i = i + 1, y_j = j + 2 and element l of register r of Z = (7r + l) mod 50, for i = 2 and
    // j = 3 (in a vector, i = j = 2), in row 5: three products are 15, those of vectors 12.
    type Row = (Instruction, u64, [Width; 3], usize, (usize, usize, u64));
    let rows: [Row; 15] = [
        (Instruction::Fma16, 0b0000, [F16, F16, F16], 2, (7, 4, 0x4c00)),
        (Instruction::Fma16, 0b0100, [F16, F16, F32], 1, (6, 4, 0x4268_0000)),
        (Instruction::Fma32, 0b0000, [F32, F32, F32], 4, (13, 8, 0x4268_0000)),
        (Instruction::Fma32, 0b0001, [F32, F16Even, F32], 4, (13, 8, 0x4268_0000)),
        (Instruction::Fma32, 0b0010, [F16Even, F32, F32], 4, (13, 8, 0x4268_0000)),
        (Instruction::Fma32, 0b0011, [F16Even, F16Even, F32], 4, (13, 8, 0x4268_0000)),
        (Instruction::Fma64, 0b0000, [F64, F64, F64], 8, (29, 16, 0x4034_0000_0000_0000)),
        (Instruction::Fma16, 0b1000, [F16, F16, F16], 0, (5, 4, 0x5220)),
        (Instruction::Fma32, 0b1000, [F32, F32, F32], 0, (5, 8, 0x4244_0000)),
        (Instruction::Fma32, 0b1001, [F32, F16Even, F32], 0, (5, 8, 0x4244_0000)),
        (Instruction::Fma32, 0b1010, [F16Even, F32, F32], 0, (5, 8, 0x4244_0000)),
        (Instruction::Fma32, 0b1011, [F16Even, F16Even, F32], 0, (5, 8, 0x4244_0000)),
        (Instruction::Fma64, 0b1000, [F64, F64, F64], 0, (5, 16, 0x4048_8000_0000_0000)),
        // Where the table has no entry, the bit is ignored: no f32 Z for vectors, no f16 for fma64.
        (Instruction::Fma16, 0b1111, [F16, F16, F16], 0, (5, 4, 0x5220)),
        (Instruction::Fma64, 0b0111, [F64, F64, F64], 8, (29, 16, 0x4034_0000_0000_0000)),
    ];
    const ROW: usize = 5;
    for (instruction, modes, [x, y, z], step, (register, byte, bits)) in rows {
        let mut unit = Unit::new();
        let (x_at, y_at) = (|i: usize| i as u32 + 1, |j: usize| j as u32 + 2);
        fill(&mut unit.x, x, x_at);
        fill(&mut unit.y, y, y_at);
        let z_at = |register: usize, lane: usize| ((7 * register + lane) % 50) as u32;
        for (register, bytes) in unit.z.iter_mut().enumerate() {
            fill(bytes, z, |lane| z_at(register, lane));
        }
        let mut expected = unit.z;
        let mut set = |register: usize, lane: usize, product: u32| {
            let bytes = z.encode(z_at(register, lane) + product);
            expected[register][lane * z.lane()..][..z.lane()].copy_from_slice(&bytes);
        };
        let lanes = 64 / x.lane();
        for i in 0..lanes {
            match step {
                0 => set(ROW, i, x_at(i) * y_at(i)),
                1 => (0..lanes).for_each(|j| set(2 * j + i % 2, i / 2, x_at(i) * y_at(j))),
                _ => (0..lanes).for_each(|j| set(step * j + ROW % step, i, x_at(i) * y_at(j))),
            }
        }
        unit.execute(instruction, modes << 60 | (ROW as u64) << 20);
        assert_eq!(unit.z, expected, "{instruction} {modes:#06b}");
        let lane = &unit.z[register][byte..][..z.lane()];
        assert_eq!(lane, &bits.to_le_bytes()[..z.lane()], "{instruction} {modes:#06b}, by hand");
    }
}

#[test]
fn enable_modes() {
    use EnableMode::{First, Last, Only, Pattern};
    // For eight, sixteen and 32 lanes, lane 0 the lowest bit.
    let rows: [(EnableMode, u8, [u32; 3]); 19] = [
        (Pattern, 0, [0xff, 0xffff, 0xffff_ffff]),
        (Pattern, 1, [0xaa, 0xaaaa, 0xaaaa_aaaa]),
        (Pattern, 2, [0x55, 0x5555, 0x5555_5555]),
        (Pattern, 3, [0, 0, 0]),
        (Pattern, 31, [0, 0, 0]),
        (Only, 0, [0x01, 0x0001, 0x0000_0001]),
        (Only, 5, [0x20, 0x0020, 0x0000_0020]),
        (Only, 7, [0x80, 0x0080, 0x0000_0080]),
        (Only, 15, [0, 0x8000, 0x0000_8000]),
        (Only, 31, [0, 0, 0x8000_0000]),
        (First, 0, [0xff, 0xffff, 0xffff_ffff]),
        (First, 1, [0x01, 0x0001, 0x0000_0001]),
        (First, 3, [0x07, 0x0007, 0x0000_0007]),
        (First, 17, [0xff, 0xffff, 0x0001_ffff]),
        (First, 31, [0xff, 0xffff, 0x7fff_ffff]),
        (Last, 0, [0xff, 0xffff, 0xffff_ffff]),
        (Last, 1, [0x80, 0x8000, 0x8000_0000]),
        (Last, 3, [0xe0, 0xe000, 0xe000_0000]),
        (Last, 17, [0xff, 0xffff, 0xffff_8000]),
    ];
    let instructions = [(Instruction::Fma64, F64), (Instruction::Fma32, F32), (Instruction::Fma16, F16)];
    for (mode, value, masks) in rows {
        for ((instruction, width), mask) in instructions.into_iter().zip(masks) {
            let field = (mode as u64) << 5 | u64::from(value);
            let lanes = 64 / width.lane();
            let step = width.lane();
            // 1 times 1 is written to the enabled elements of a Z of zeros.
            let run = |operand: u64| {
                let mut unit = Unit::new();
                fill(&mut unit.x, width, |_| 1);
                fill(&mut unit.y, width, |_| 1);
                unit.execute(instruction, operand);
                unit.z
            };
            let marked = |register: &[u8; 64]| -> u32 {
                let one = width.encode(1);
                register.chunks(width.lane()).enumerate().map(|(i, lane)| u32::from(lane == one) << i).sum()
            };
            let case = format!("{instruction} {mode:?} {value}");
            let [x, y, vector] = [run(field << 41), run(field << 32), run(1 << 63 | field << 41)];
            let all = u32::MAX >> (32 - lanes);
            for j in 0..lanes {
                assert_eq!(marked(&x[j * step]), mask, "{case}: X");
                let row = if mask >> j & 1 == 1 { all } else { 0 };
                assert_eq!(marked(&y[j * step]), row, "{case}: Y, row {j}");
            }
            assert_eq!(marked(&vector[0]), mask, "{case}: X of a vector");
            // Vectors have no Y enable.
            assert_eq!(marked(&run(1 << 63 | field << 32)[0]), all, "{case}: Y of a vector");
        }
    }
}

#[test]
fn offsets_are_in_bytes_and_wrap() {
    let mut unit = Unit::new();
    // An f64 3 at bytes 509 to 516 of X, which are 509 to 511 and 0 to 4; a 2 at byte 1 of Y.
    for (index, byte) in 3f64.to_le_bytes().into_iter().enumerate() {
        unit.x[(509 + index) % 512] = byte;
    }
    unit.y[1..9].copy_from_slice(&2f64.to_le_bytes());
    let first = Enable { mode: EnableMode::First, value: 1 };
    let operand =
        Operand { x_offset: 509, y_offset: 1, x_enable: first, y_enable: first, ..Operand::default() };
    unit.execute(Instruction::Fma64, operand.encode());
    assert_eq!(unit.z[0][..8], 6f64.to_le_bytes());
}
