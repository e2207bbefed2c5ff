//! The descriptors that tell an instruction where its matrices are and what they hold.
//!
//! Sources: PTX ISA 8.7, "Matrix Descriptor Format" (wgmma), "Shared memory descriptor" and
//! "Instruction descriptor" (tcgen05, tables 42 to 44 of version 8.8).

use mmaprobe_model::Format;
use mmaprobe_model::format::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, FP16, FP32, TF32, UE8M0};

use super::layout::CORE_MATRIX;
use super::{Kind, Spec, Unsupported};

/// Bytes from a core matrix to the next one along K (the leading dimension, for K-major matrices
/// without swizzling).
const LEADING: u64 = CORE_MATRIX as u64;
/// Bytes from 8 rows to the next 8.
const STRIDE: u64 = 2 * CORE_MATRIX as u64;

/// The upper part of a shared memory descriptor for `wgmma`: all but the address, whose bits 4 to 17
/// become bits 0 to 13.
///
/// Bits 16–29 are the leading dimension's byte offset, 32–45 the stride dimension's, both without
/// their lowest 4 bits; 49–51 the base offset, 0; 62–63 the swizzling, 0 for none.
pub const fn wgmma_shared() -> u64 {
    (LEADING >> 4) << 16 | (STRIDE >> 4) << 32
}

/// The same for `tcgen05.mma`, which moreover has the constant 0b001 in bits 46–48, and its
/// swizzling in bits 61–63, 0 for none.
pub const fn tcgen05_shared() -> u64 {
    wgmma_shared() | 1 << 46
}

/// The instruction descriptor of a `tcgen05.mma`: dense, nothing negated, both factors K-major,
/// scales from byte 0 on.
///
/// # Errors
/// If the instruction has types that the descriptor has no code for.
pub fn instruction(spec: &Spec) -> Result<u32, Unsupported> {
    let code = |codes: &[(Format, u32)], format: &Format| {
        let found = codes.iter().find(|(known, _)| known == format);
        found.map(|(_, code)| *code).ok_or_else(|| spec.unsupported(format!("no code for {format}")))
    };
    const SMALL: [(Format, u32); 5] = [(E4M3, 0), (E5M2, 1), (E2M3, 3), (E3M2, 4), (E2M1, 5)];
    const LARGE: [(Format, u32); 3] = [(FP16, 0), (BF16, 1), (TF32, 2)];
    // Kinds for fp4 alone count their formats anew.
    const FP4: [(Format, u32); 1] = [(E2M1, 1)];
    let codes: &[(Format, u32)] = match (spec.k, spec.a.bytes) {
        (64, _) => &FP4,
        (_, 1) => &SMALL,
        _ => &LARGE,
    };
    let shape = (spec.n as u32 >> 3) << 17 | (spec.m as u32 >> 4) << 24;
    let factors = code(codes, &spec.a)? << 7 | code(codes, &spec.b)? << 10;
    let rest = match (spec.kind, &spec.scale) {
        (Kind::Tcgen05BlockScale, Some(scale)) => u32::from(scale.format == UE8M0) << 23,
        _ => code(&[(FP16, 0), (FP32, 1)], &spec.d)? << 4,
    };
    Ok(shape | factors | rest)
}
