//! The descriptors that tell an instruction where its matrices are and what they hold.
//!
//! Sources: PTX ISA 8.7, "Matrix Descriptor Format" (wgmma), "Shared memory descriptor" and
//! "Instruction descriptor" (tcgen05, tables 42 to 44 of version 8.8).

use mmaprobe_model::Format;
use mmaprobe_model::format::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, FP16, FP32, TF32, UE8M0};

use super::layout::CORE_MATRIX;
use super::{Kind, Spec};
use crate::instruction::Unsupported;

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

#[cfg(test)]
mod tests {
    use super::*;
    use mmaprobe_model::format::UE4M3;
    use mmaprobe_model::tree::Scale;

    /// Bits `low` to `high` of a value.
    fn bits(value: u64, low: u32, high: u32) -> u64 {
        value >> low & ((1 << (high - low + 1)) - 1)
    }

    #[test]
    fn shared_memory_descriptors_have_the_fields_of_the_manual() {
        let hopper = wgmma_shared();
        assert_eq!(bits(hopper, 0, 13), 0);
        assert_eq!(bits(hopper, 16, 29) << 4, 128);
        assert_eq!(bits(hopper, 32, 45) << 4, 256);
        assert_eq!(bits(hopper, 46, 63), 0);
        let blackwell = tcgen05_shared();
        assert_eq!(bits(blackwell, 0, 45), bits(hopper, 0, 45));
        assert_eq!(bits(blackwell, 46, 48), 0b001);
        assert_eq!(bits(blackwell, 49, 63), 0);
    }

    fn spec(kind: Kind, [m, n, k]: [usize; 3], ab: [Format; 2], d: Format) -> Spec {
        Spec { kind, m, n, k, a: ab[0], b: ab[1], c: d, d, scale: None, blocks: 1 }
    }

    #[test]
    fn instruction_descriptors_have_the_fields_of_the_manual() {
        // Table 42; N is given without its lowest 3 bits, M without its lowest 4.
        for (ab, d, dtype, atype, btype) in [
            ([TF32, TF32], FP32, 1, 2, 2),
            ([FP16, FP16], FP16, 0, 0, 0),
            ([BF16, BF16], FP32, 1, 1, 1),
            ([E4M3, E5M2], FP32, 1, 0, 1),
            ([E2M3, E3M2], FP16, 0, 3, 4),
            ([E2M1, E4M3], FP32, 1, 5, 0),
        ] {
            let code = instruction(&spec(Kind::Tcgen05, [128, 240, 32 / ab[0].bytes], ab, d)).unwrap().into();
            assert_eq!([bits(code, 0, 3), bits(code, 4, 5), bits(code, 6, 6)], [0, dtype, 0]);
            assert_eq!([bits(code, 7, 9), bits(code, 10, 12), bits(code, 13, 16)], [atype, btype, 0]);
            assert_eq!([bits(code, 17, 22), bits(code, 23, 23)], [240 / 8, 0]);
            assert_eq!([bits(code, 24, 28), bits(code, 29, 31)], [128 / 16, 0]);
        }
        // A value that is in use elsewhere: bf16 into fp32, 128×256.
        let known = instruction(&spec(Kind::Tcgen05, [128, 256, 16], [BF16, BF16], FP32)).unwrap();
        assert_eq!(known, 1 << 4 | 1 << 7 | 1 << 10 | (256 >> 3) << 17 | (128 >> 4) << 24);
    }

    #[test]
    fn instruction_descriptors_with_scales_have_the_fields_of_the_manual() {
        // Tables 43 and 44: e2m1 is 5 where other formats are possible, and 1 where it is alone.
        for (k, format, block, atype) in
            [(32, UE8M0, 32, 5), (64, UE8M0, 32, 1), (64, UE8M0, 16, 1), (64, UE4M3, 16, 1)]
        {
            let mut spec = spec(Kind::Tcgen05BlockScale, [128, 8, k], [E2M1, E2M1], FP32);
            spec.scale = Some(Scale { format, block });
            let code = instruction(&spec).unwrap().into();
            assert_eq!([bits(code, 0, 6), bits(code, 7, 9), bits(code, 10, 12)], [0, atype, atype]);
            assert_eq!([bits(code, 13, 16), bits(code, 17, 22)], [0, 1]);
            assert_eq!(bits(code, 23, 23), u64::from(format == UE8M0), "scale matrix type");
            assert_eq!([bits(code, 24, 26), bits(code, 27, 28), bits(code, 29, 31)], [0, 128 >> 7, 0]);
        }
    }

    #[test]
    fn what_has_no_code_is_refused() {
        assert!(instruction(&spec(Kind::Tcgen05, [64, 8, 16], [FP32, FP32], FP32)).is_err());
        assert!(instruction(&spec(Kind::Tcgen05, [64, 8, 16], [FP16, FP16], BF16)).is_err());
    }
}
