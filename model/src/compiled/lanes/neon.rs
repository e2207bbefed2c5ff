//! Arm's Advanced SIMD: four lanes. It is part of every AArch64 target that Rust has with `std`.

use core::arch::aarch64::*;

use super::pair::Pair;
use super::{Float, Int, Lanes};

/// The token: AArch64 has it always.
#[derive(Clone, Copy)]
pub(super) struct Neon(());

/// Four integers of 32 bits.
#[derive(Clone, Copy)]
pub(super) struct W(int32x4_t);

/// Two integers of 64 bits.
#[derive(Clone, Copy)]
pub(super) struct H(int64x2_t);

/// Four numbers in fp32.
#[derive(Clone, Copy)]
pub(super) struct F(float32x4_t);

/// Two numbers in fp64.
#[derive(Clone, Copy)]
pub(super) struct G(float64x2_t);

impl Neon {
    /// The token.
    pub fn new() -> Neon {
        Neon(())
    }
}

/// Makes `Int` of a vector; `$u` and `$s` convert to unsigned lanes and back.
macro_rules! int {
    ($vector:ident, $u:ident, $s:ident: $add:ident, $sub:ident, $and:ident, $or:ident, $xor:ident,
     $eq:ident, $gt:ident, $shift:ident, $neg:ident, $below:ident, $splat_u:ident, $splat:ident,
     $width:literal) => {
        impl Int for $vector {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: AArch64 has Advanced SIMD.
                $vector(unsafe { $add(self.0, other.0) })
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                // SAFETY: as above.
                $vector(unsafe { $sub(self.0, other.0) })
            }
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                // SAFETY: as above.
                $vector(unsafe { $and(self.0, other.0) })
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                // SAFETY: as above.
                $vector(unsafe { $or(self.0, other.0) })
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                // SAFETY: as above.
                $vector(unsafe { $xor(self.0, other.0) })
            }
            #[inline(always)]
            fn eq(self, other: Self) -> Self {
                // SAFETY: as above.
                $vector(unsafe { $s($eq(self.0, other.0)) })
            }
            #[inline(always)]
            fn gt(self, other: Self) -> Self {
                // SAFETY: as above.
                $vector(unsafe { $s($gt(self.0, other.0)) })
            }
            #[inline(always)]
            fn srl(self, count: Self) -> Self {
                // SAFETY: as above. The instruction looks at the count's low byte alone, hence the mask.
                $vector(unsafe {
                    let valid = $s($below($u(count.0), $splat_u($width)));
                    $and($s($shift($u(self.0), $neg(count.0))), valid)
                })
            }
            #[inline(always)]
            fn sll(self, count: Self) -> Self {
                // SAFETY: as above.
                $vector(unsafe {
                    let valid = $s($below($u(count.0), $splat_u($width)));
                    $and($s($shift($u(self.0), count.0)), valid)
                })
            }
            #[inline(always)]
            fn negative(self) -> Self {
                // SAFETY: as above.
                $vector(unsafe { $s($gt($splat(0), self.0)) })
            }
        }
    };
}

int!(W, vreinterpretq_u32_s32, vreinterpretq_s32_u32: vaddq_s32, vsubq_s32, vandq_s32, vorrq_s32, veorq_s32,
     vceqq_s32, vcgtq_s32, vshlq_u32, vnegq_s32, vcltq_u32, vdupq_n_u32, vdupq_n_s32, 32);
int!(H, vreinterpretq_u64_s64, vreinterpretq_s64_u64: vaddq_s64, vsubq_s64, vandq_s64, vorrq_s64, veorq_s64,
     vceqq_s64, vcgtq_s64, vshlq_u64, vnegq_s64, vcltq_u64, vdupq_n_u64, vdupq_n_s64, 64);

/// Makes `Float` of a vector.
macro_rules! float {
    ($vector:ident: $add:ident, $mul:ident, $mul_add:ident) => {
        impl Float for $vector {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: AArch64 has Advanced SIMD.
                $vector(unsafe { $add(self.0, other.0) })
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                // SAFETY: as above.
                $vector(unsafe { $mul(self.0, other.0) })
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, summand: Self) -> Self {
                // SAFETY: as above.
                $vector(unsafe { $mul_add(summand.0, self.0, factor.0) })
            }
        }
    };
}

float!(F: vaddq_f32, vmulq_f32, vfmaq_f32);
float!(G: vaddq_f64, vmulq_f64, vfmaq_f64);

impl Lanes for Neon {
    const N: usize = 4;
    type W = W;
    type D = Pair<H>;
    type F = F;
    type G = Pair<G>;

    #[inline(always)]
    fn splat(self, value: i32) -> W {
        // SAFETY: AArch64 has Advanced SIMD.
        W(unsafe { vdupq_n_s32(value) })
    }
    #[inline(always)]
    fn splat_wide(self, value: i64) -> Pair<H> {
        // SAFETY: AArch64 has Advanced SIMD.
        let half = H(unsafe { vdupq_n_s64(value) });
        Pair(half, half)
    }
    #[inline(always)]
    fn load(self, from: &[i32]) -> W {
        let from = &from[..4];
        // SAFETY: there are four elements.
        W(unsafe { vld1q_s32(from.as_ptr()) })
    }
    #[inline(always)]
    fn load_wide(self, from: &[i64]) -> Pair<H> {
        let from = &from[..4];
        // SAFETY: there are four elements.
        unsafe { Pair(H(vld1q_s64(from.as_ptr())), H(vld1q_s64(from.as_ptr().add(2)))) }
    }
    #[inline(always)]
    fn store(self, vector: W, to: &mut [i32]) {
        let to = &mut to[..4];
        // SAFETY: there are four elements.
        unsafe { vst1q_s32(to.as_mut_ptr(), vector.0) }
    }
    #[inline(always)]
    fn store_wide(self, vector: Pair<H>, to: &mut [i64]) {
        let to = &mut to[..4];
        // SAFETY: there are four elements.
        unsafe {
            vst1q_s64(to.as_mut_ptr(), vector.0.0);
            vst1q_s64(to.as_mut_ptr().add(2), vector.1.0);
        }
    }
    #[inline(always)]
    fn load_bytes(self, from: &[u8]) -> W {
        let mut lanes = [0; 4];
        for (lane, bytes) in lanes.iter_mut().zip(from.as_chunks().0) {
            *lane = i32::from_le_bytes(*bytes);
        }
        self.load(&lanes)
    }
    #[inline(always)]
    fn load_wide_bytes(self, from: &[u8]) -> Pair<H> {
        let mut lanes = [0; 4];
        for (lane, bytes) in lanes.iter_mut().zip(from.as_chunks().0) {
            *lane = i64::from_le_bytes(*bytes);
        }
        self.load_wide(&lanes)
    }
    #[inline(always)]
    fn store_bytes(self, vector: W, to: &mut [u8]) {
        let mut lanes = [0; 4];
        self.store(vector, &mut lanes);
        for (bytes, lane) in to.as_chunks_mut().0.iter_mut().zip(lanes) {
            *bytes = lane.to_le_bytes();
        }
    }
    #[inline(always)]
    fn store_wide_bytes(self, vector: Pair<H>, to: &mut [u8]) {
        let mut lanes = [0; 4];
        self.store_wide(vector, &mut lanes);
        for (bytes, lane) in to.as_chunks_mut().0.iter_mut().zip(lanes) {
            *bytes = lane.to_le_bytes();
        }
    }
    #[inline(always)]
    fn widen(self, vector: W) -> Pair<H> {
        // SAFETY: AArch64 has Advanced SIMD.
        unsafe { Pair(H(vmovl_s32(vget_low_s32(vector.0))), H(vmovl_high_s32(vector.0))) }
    }
    #[inline(always)]
    fn narrow(self, vector: Pair<H>) -> W {
        // SAFETY: AArch64 has Advanced SIMD.
        W(unsafe { vmovn_high_s64(vmovn_s64(vector.0.0), vector.1.0) })
    }
    #[inline(always)]
    fn leading_zeros(self, vector: Pair<H>) -> Pair<H> {
        let count = |H(half): H| {
            let mut lanes = [0i64; 2];
            // SAFETY: there are two elements.
            unsafe { vst1q_s64(lanes.as_mut_ptr(), half) };
            let counts = lanes.map(|lane| i64::from(lane.leading_zeros()));
            // SAFETY: there are two elements.
            H(unsafe { vld1q_s64(counts.as_ptr()) })
        };
        Pair(count(vector.0), count(vector.1))
    }
    #[inline(always)]
    fn leading_zeros_narrow(self, vector: W) -> W {
        // SAFETY: AArch64 has Advanced SIMD.
        W(unsafe { vclzq_s32(vector.0) })
    }
    #[inline(always)]
    fn mul16(self, x: W, y: W) -> W {
        // SAFETY: AArch64 has Advanced SIMD.
        W(unsafe {
            let extended = |low| vshrq_n_s32::<16>(vshlq_n_s32::<16>(low));
            vmulq_s32(extended(x.0), extended(y.0))
        })
    }
    #[inline(always)]
    fn mul(self, x: W, y: W) -> W {
        // SAFETY: AArch64 has Advanced SIMD.
        W(unsafe { vmulq_s32(x.0, y.0) })
    }
    #[inline(always)]
    fn any(self, vector: W) -> bool {
        // SAFETY: AArch64 has Advanced SIMD.
        unsafe { vmaxvq_u32(vreinterpretq_u32_s32(vector.0)) != 0 }
    }
    #[inline(always)]
    fn floats(self, bits: W) -> F {
        // SAFETY: AArch64 has Advanced SIMD.
        F(unsafe { vreinterpretq_f32_s32(bits.0) })
    }
    #[inline(always)]
    fn float_bits(self, floats: F) -> W {
        // SAFETY: AArch64 has Advanced SIMD.
        W(unsafe { vreinterpretq_s32_f32(floats.0) })
    }
    #[inline(always)]
    fn doubles(self, bits: Pair<H>) -> Pair<G> {
        // SAFETY: AArch64 has Advanced SIMD.
        unsafe { Pair(G(vreinterpretq_f64_s64(bits.0.0)), G(vreinterpretq_f64_s64(bits.1.0))) }
    }
    #[inline(always)]
    fn double_bits(self, doubles: Pair<G>) -> Pair<H> {
        // SAFETY: AArch64 has Advanced SIMD.
        unsafe { Pair(H(vreinterpretq_s64_f64(doubles.0.0)), H(vreinterpretq_s64_f64(doubles.1.0))) }
    }
}
