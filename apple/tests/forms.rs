//! Matrix products through the registers, against products of integers.
//!
//! Each element of D is told from every other by its value, so a lane or a row that went astray shows.

use mmaprobe_apple::form::{Form, Machine, Problems};
use mmaprobe_apple::unit::{REGISTER, Widths};
use mmaprobe_apple::{Instruction, Unit};
use mmaprobe_model::Format;

/// An integer below 2048 in a format: the leading one is hidden, the rest is the fraction.
fn encode(format: Format, integer: u64) -> Vec<u8> {
    let bias = (1 << (format.exponent_bits - 1)) - 1;
    let bits = integer.checked_ilog2().map_or(0, |exponent| {
        let fraction = integer << (format.fraction_bits - exponent);
        u64::from(exponent + bias) << format.fraction_bits | fraction & ((1 << format.fraction_bits) - 1)
    });
    bits.to_le_bytes()[..format.bytes].to_vec()
}

/// A unit that counts what is done with it, and whose registers hold something else at first.
struct Watched {
    unit: Unit,
    executed: usize,
    loaded: Vec<usize>,
    stored: Vec<usize>,
}

impl Machine for Watched {
    fn load_x(&mut self, bytes: &[u8; REGISTER]) {
        self.unit.load_x(bytes);
    }

    fn load_y(&mut self, bytes: &[u8; REGISTER]) {
        self.unit.load_y(bytes);
    }

    fn load_z(&mut self, row: usize, bytes: &[u8; REGISTER]) {
        self.loaded.push(row);
        self.unit.load_z(row, bytes);
    }

    fn store_z(&mut self, row: usize, bytes: &mut [u8; REGISTER]) {
        self.stored.push(row);
        self.unit.store_z(row, bytes);
    }

    fn execute(&mut self, instruction: Instruction, operand: u64) {
        self.executed += 1;
        self.unit.execute(instruction, operand);
    }
}

#[test]
fn each_form_is_a_matrix_product() {
    for form in &Form::ALL {
        let Widths { x, y, z } = form.widths();
        let (size, at_once) = (form.size(), form.problems());
        let (a_at, b_at) = (|p: usize, j: usize| (p + j) % 37, |p: usize, i: usize| (2 * p + i) % 41 + 1);
        let c_at = |p: usize, j: usize, i: usize| (5 * p + 7 * j + 3 * i) % 101;
        for count in [0, 1, at_once + 1, 3] {
            let mut arrays = [const { Vec::new() }; 4];
            for p in 0..count {
                for j in 0..size {
                    arrays[0].extend(encode(y, a_at(p, j) as u64));
                    arrays[1].extend(encode(x, b_at(p, j) as u64));
                    for i in 0..size {
                        let (product, c) = (a_at(p, j) * b_at(p, i), c_at(p, j, i));
                        arrays[2].extend(encode(z, c as u64));
                        arrays[3].extend(encode(z, (product + c) as u64));
                    }
                }
            }
            let [a, b, c, expected] = arrays;
            let mut d = vec![0xaa; c.len()];
            let mut unit = Unit::new();
            unit.z.as_flattened_mut().fill(0x3c);
            let mut watched = Watched { unit, executed: 0, loaded: Vec::new(), stored: Vec::new() };
            form.run(&mut watched, Problems { count, a: &a, b: &b, c: &c, d: &mut d });
            assert_eq!(d, expected, "{} of {count}", form.name);
            assert_eq!(watched.executed, count.div_ceil(at_once), "{} of {count}", form.name);
            assert_eq!(watched.loaded, watched.stored);
        }
    }
}

#[test]
fn accumulators_beside_each_other_share_no_row() {
    // The performance tables of the document go up to so many: 2 for f16, 1 where it is f32, 4 and 8.
    for (name, accumulators) in [
        ("fma16.matrix.f16.f16.f16", 2),
        ("fma16.matrix.f16.f16.f32", 1),
        ("fma32.matrix.f16.f32.f32", 4),
        ("fma64.matrix.f64.f64.f64", 8),
        ("fma32.vector.f32.f32.f32", 64),
    ] {
        let form = Form::named(name).unwrap();
        assert_eq!(form.accumulators(), accumulators);
        let mut touched = [0; 64];
        for z_row in 0..accumulators as u8 {
            let mut unit = Unit::new();
            unit.x.fill(0x3c);
            unit.y.fill(0x3c);
            unit.execute(form.instruction, mmaprobe_apple::Operand { z_row, ..form.operand }.encode());
            for (row, touched) in unit.z.iter().zip(&mut touched) {
                *touched += i32::from(row != &[0; REGISTER]);
            }
        }
        assert_eq!(touched, [1; 64], "{name}");
    }
    assert_eq!(Form::named("fma16.matrix.f32.f32.f32"), None);
}

#[test]
#[should_panic(expected = "array length")]
fn arrays_of_other_lengths_are_refused() {
    let form = Form::named("fma32.vector.f32.f32.f32").unwrap();
    form.run(&mut Unit::new(), Problems { count: 2, a: &[0; 8], b: &[0; 4], c: &[0; 8], d: &mut [0; 8] });
}
