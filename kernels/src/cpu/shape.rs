//! What the instructions are called, and what they compute with.

use mmaprobe_apple::Form;
use mmaprobe_model::Format;
use mmaprobe_model::format::{BF16, FP16, FP32, FP64};

/// What an instruction computes with: D (m×n) = A (m×k) · B (k×n) + C (m×n).
///
/// Lanes of a vector instruction are independent problems with m = n = 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The instruction's mnemonic; on Apple silicon with its mode and formats, see
    /// [`Form`](mmaprobe_apple::Form).
    pub name: &'static str,
    /// Rows of A and of D.
    pub m: usize,
    /// Columns of B and of D.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Format of A.
    pub a: Format,
    /// Format of B.
    pub b: Format,
    /// Format of C and of D.
    pub accumulator: Format,
}

/// AMX-BF16.
pub static TDPBF16PS: Shape = tile("tdpbf16ps", BF16);
/// AMX-FP16.
pub static TDPFP16PS: Shape = tile("tdpfp16ps", FP16);
/// AVX512-BF16.
pub static VDPBF16PS: Shape = lane("vdpbf16ps", 2, BF16, FP32);
/// FMA or AVX512F.
pub static VFMADD231PS: Shape = lane("vfmadd231ps", 1, FP32, FP32);
/// FMA or AVX512F.
pub static VFMADD231PD: Shape = lane("vfmadd231pd", 1, FP64, FP64);
/// AVX512-FP16.
pub static VFMADD231PH: Shape = lane("vfmadd231ph", 1, FP16, FP16);

const fn tile(name: &'static str, factors: Format) -> Shape {
    Shape { name, m: 16, n: 16, k: 32, a: factors, b: factors, accumulator: FP32 }
}

const fn lane(name: &'static str, k: usize, factors: Format, accumulator: Format) -> Shape {
    Shape { name, m: 1, n: 1, k, a: factors, b: factors, accumulator }
}

impl Shape {
    /// Every instruction that a processor of this architecture can have here, matrix units first.
    pub fn all() -> Vec<&'static Shape> {
        if cfg!(all(target_os = "macos", target_arch = "aarch64")) {
            return APPLE.iter().collect();
        }
        vec![&TDPBF16PS, &TDPFP16PS, &VDPBF16PS, &VFMADD231PS, &VFMADD231PD, &VFMADD231PH]
    }
}

/// Apple's forms, in their order.
pub static APPLE: [Shape; Form::ALL.len()] = {
    let mut shapes = [form(&Form::ALL[0]); Form::ALL.len()];
    let mut index = 1;
    while index < shapes.len() {
        shapes[index] = form(&Form::ALL[index]);
        index += 1;
    }
    shapes
};

const fn form(form: &Form) -> Shape {
    let (size, widths) = (form.size(), form.widths());
    Shape { name: form.name, m: size, n: size, k: 1, a: widths.y, b: widths.x, accumulator: widths.z }
}
