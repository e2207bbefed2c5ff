//! AVX-512: sixteen lanes.

use core::arch::x86_64::*;

use super::pair::Pair;
use super::x86::{float, int};
use super::{Float, Int, Job, Lanes};

/// The token: this machine has AVX-512 F, BW, CD, DQ and VL.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

/// Sixteen integers of 32 bits.
#[derive(Clone, Copy)]
pub(super) struct W(__m512i);

/// Eight integers of 64 bits.
#[derive(Clone, Copy)]
pub(super) struct H(__m512i);

/// Sixteen numbers in fp32.
#[derive(Clone, Copy)]
pub(super) struct F(__m512);

/// Eight numbers in fp64.
#[derive(Clone, Copy)]
pub(super) struct G(__m512d);

impl Avx512 {
    /// The token, if this machine has what it stands for.
    pub fn new() -> Option<Avx512> {
        let there = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512cd")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("fma");
        there.then_some(Avx512(()))
    }

    /// Runs a job compiled for these features.
    pub fn run<J: Job>(self, job: J) -> J::Output {
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt"
        )]
        fn inner<J: Job>(lanes: Avx512, job: J) -> J::Output {
            job.run(lanes)
        }
        // SAFETY: the token says that AVX-512 is there; every CPU with it has the others, too.
        unsafe { inner(self, job) }
    }
}

int!(W: add _mm512_add_epi32, sub _mm512_sub_epi32, and _mm512_and_si512, or _mm512_or_si512,
     xor _mm512_xor_si512, srl _mm512_srlv_epi32, sll _mm512_sllv_epi32 {
    #[inline(always)]
    fn eq(self, other: Self) -> Self {
        // SAFETY: vectors are made with the token alone, which says that the features are there.
        W(unsafe { _mm512_movm_epi32(_mm512_cmpeq_epi32_mask(self.0, other.0)) })
    }
    #[inline(always)]
    fn gt(self, other: Self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm512_movm_epi32(_mm512_cmpgt_epi32_mask(self.0, other.0)) })
    }
    #[inline(always)]
    fn negative(self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm512_srai_epi32::<31>(self.0) })
    }
    #[inline(always)]
    fn sra(self, count: Self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm512_srav_epi32(self.0, count.0) })
    }
    #[inline(always)]
    fn truncated(self, count: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            let negative = _mm512_movepi32_mask(self.0);
            let shifted = _mm512_srlv_epi32(_mm512_abs_epi32(self.0), count.0);
            W(_mm512_mask_sub_epi32(shifted, negative, _mm512_setzero_si512(), shifted))
        }
    }
    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm512_abs_epi32(self.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm512_max_epi32(self.0, other.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm512_min_epi32(self.0, other.0) })
    }
});

int!(H: add _mm512_add_epi64, sub _mm512_sub_epi64, and _mm512_and_si512, or _mm512_or_si512,
     xor _mm512_xor_si512, srl _mm512_srlv_epi64, sll _mm512_sllv_epi64 {
    #[inline(always)]
    fn eq(self, other: Self) -> Self {
        // SAFETY: vectors are made with the token alone, which says that the features are there.
        H(unsafe { _mm512_movm_epi64(_mm512_cmpeq_epi64_mask(self.0, other.0)) })
    }
    #[inline(always)]
    fn gt(self, other: Self) -> Self {
        // SAFETY: as above.
        H(unsafe { _mm512_movm_epi64(_mm512_cmpgt_epi64_mask(self.0, other.0)) })
    }
    #[inline(always)]
    fn negative(self) -> Self {
        // SAFETY: as above.
        H(unsafe { _mm512_srai_epi64::<63>(self.0) })
    }
    #[inline(always)]
    fn sra(self, count: Self) -> Self {
        // SAFETY: as above.
        H(unsafe { _mm512_srav_epi64(self.0, count.0) })
    }
    #[inline(always)]
    fn truncated(self, count: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            let negative = _mm512_movepi64_mask(self.0);
            let shifted = _mm512_srlv_epi64(_mm512_abs_epi64(self.0), count.0);
            H(_mm512_mask_sub_epi64(shifted, negative, _mm512_setzero_si512(), shifted))
        }
    }
    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: as above.
        H(unsafe { _mm512_abs_epi64(self.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // SAFETY: as above.
        H(unsafe { _mm512_max_epi64(self.0, other.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: as above.
        H(unsafe { _mm512_min_epi64(self.0, other.0) })
    }
});

float!(F: _mm512_add_ps, _mm512_mul_ps, _mm512_fmadd_ps);
float!(G: _mm512_add_pd, _mm512_mul_pd, _mm512_fmadd_pd);

const LANES: [i32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The stride, once it is sure that sixteen elements of four bytes that far apart lie in so many bytes.
#[inline(always)]
fn strides(bytes: usize, stride: usize) -> i32 {
    assert!(stride < 1 << 24 && bytes >= 4 * (15 * stride + 1), "as many elements as lanes");
    stride as i32
}

impl Lanes for Avx512 {
    const N: usize = 16;
    type W = W;
    type D = Pair<H>;
    type F = F;
    type G = Pair<G>;

    #[inline(always)]
    fn splat(self, value: i32) -> W {
        // SAFETY: the token says that the features are there.
        W(unsafe { _mm512_set1_epi32(value) })
    }
    #[inline(always)]
    fn splat_wide(self, value: i64) -> Pair<H> {
        // SAFETY: the token says that the features are there.
        let half = H(unsafe { _mm512_set1_epi64(value) });
        Pair(half, half)
    }
    #[inline(always)]
    fn load(self, from: &[i32]) -> W {
        let from = &from[..16];
        // SAFETY: the features are there, and so are sixteen elements.
        W(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn load_wide(self, from: &[i64]) -> Pair<H> {
        let from = &from[..16];
        // SAFETY: the features are there, and so are sixteen elements.
        unsafe {
            Pair(
                H(_mm512_loadu_si512(from.as_ptr().cast())),
                H(_mm512_loadu_si512(from.as_ptr().add(8).cast())),
            )
        }
    }
    #[inline(always)]
    fn store(self, vector: W, to: &mut [i32]) {
        let to = &mut to[..16];
        // SAFETY: the features are there, and so are sixteen elements.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector.0) }
    }
    #[inline(always)]
    fn store_wide(self, vector: Pair<H>, to: &mut [i64]) {
        let to = &mut to[..16];
        // SAFETY: the features are there, and so are sixteen elements.
        unsafe {
            _mm512_storeu_si512(to.as_mut_ptr().cast(), vector.0.0);
            _mm512_storeu_si512(to.as_mut_ptr().add(8).cast(), vector.1.0);
        }
    }
    #[inline(always)]
    fn load_bytes(self, from: &[u8]) -> W {
        let from = &from[..64];
        // SAFETY: the features are there, and so are as many bytes; x86 is little-endian.
        W(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn load_wide_bytes(self, from: &[u8]) -> Pair<H> {
        let from = &from[..128];
        // SAFETY: the features are there, and so are as many bytes; x86 is little-endian.
        unsafe {
            Pair(
                H(_mm512_loadu_si512(from.as_ptr().cast())),
                H(_mm512_loadu_si512(from.as_ptr().add(64).cast())),
            )
        }
    }
    #[inline(always)]
    fn store_bytes(self, vector: W, to: &mut [u8]) {
        let to = &mut to[..64];
        // SAFETY: the features are there, and so are as many bytes; x86 is little-endian.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector.0) }
    }
    #[inline(always)]
    fn store_wide_bytes(self, vector: Pair<H>, to: &mut [u8]) {
        let to = &mut to[..128];
        // SAFETY: the features are there, and so are as many bytes; x86 is little-endian.
        unsafe {
            _mm512_storeu_si512(to.as_mut_ptr().cast(), vector.0.0);
            _mm512_storeu_si512(to.as_mut_ptr().add(64).cast(), vector.1.0);
        }
    }
    #[inline(always)]
    fn gather(self, from: &[u8], stride: usize) -> W {
        let strides = strides(from.len(), stride);
        // SAFETY: the features are there, and so are sixteen elements this far apart.
        unsafe {
            let index =
                _mm512_mullo_epi32(_mm512_set1_epi32(strides), _mm512_loadu_si512(LANES.as_ptr().cast()));
            W(_mm512_i32gather_epi32::<4>(index, from.as_ptr().cast()))
        }
    }
    #[inline(always)]
    fn scatter(self, vector: W, to: &mut [u8], stride: usize) {
        let strides = strides(to.len(), stride);
        // SAFETY: the features are there, and so are sixteen elements this far apart.
        unsafe {
            let index =
                _mm512_mullo_epi32(_mm512_set1_epi32(strides), _mm512_loadu_si512(LANES.as_ptr().cast()));
            _mm512_i32scatter_epi32::<4>(to.as_mut_ptr().cast(), index, vector.0);
        }
    }
    #[inline(always)]
    fn widen(self, vector: W) -> Pair<H> {
        // SAFETY: the token says that the features are there.
        unsafe {
            Pair(
                H(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(vector.0))),
                H(_mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64::<1>(vector.0))),
            )
        }
    }
    #[inline(always)]
    fn narrow(self, vector: Pair<H>) -> W {
        // SAFETY: the token says that the features are there.
        W(unsafe {
            let low = _mm512_castsi256_si512(_mm512_cvtepi64_epi32(vector.0.0));
            _mm512_inserti64x4::<1>(low, _mm512_cvtepi64_epi32(vector.1.0))
        })
    }
    #[inline(always)]
    fn leading_zeros(self, vector: Pair<H>) -> Pair<H> {
        // SAFETY: the token says that the features are there.
        unsafe { Pair(H(_mm512_lzcnt_epi64(vector.0.0)), H(_mm512_lzcnt_epi64(vector.1.0))) }
    }
    #[inline(always)]
    fn leading_zeros_narrow(self, vector: W) -> W {
        // SAFETY: the token says that the features are there.
        W(unsafe { _mm512_lzcnt_epi32(vector.0) })
    }
    #[inline(always)]
    fn mul16(self, x: W, y: W) -> W {
        // SAFETY: the token says that the features are there.
        W(unsafe { _mm512_madd_epi16(x.0, y.0) })
    }
    #[inline(always)]
    fn mul(self, x: W, y: W) -> W {
        // SAFETY: the token says that the features are there.
        W(unsafe { _mm512_mullo_epi32(x.0, y.0) })
    }
    #[inline(always)]
    fn any(self, vector: W) -> bool {
        // SAFETY: the token says that the features are there.
        unsafe { _mm512_test_epi32_mask(vector.0, vector.0) != 0 }
    }
    #[inline(always)]
    fn floats(self, bits: W) -> F {
        // SAFETY: the token says that the features are there.
        F(unsafe { _mm512_castsi512_ps(bits.0) })
    }
    #[inline(always)]
    fn float_bits(self, floats: F) -> W {
        // SAFETY: the token says that the features are there.
        W(unsafe { _mm512_castps_si512(floats.0) })
    }
    #[inline(always)]
    fn doubles(self, bits: Pair<H>) -> Pair<G> {
        // SAFETY: the token says that the features are there.
        unsafe { Pair(G(_mm512_castsi512_pd(bits.0.0)), G(_mm512_castsi512_pd(bits.1.0))) }
    }
    #[inline(always)]
    fn double_bits(self, doubles: Pair<G>) -> Pair<H> {
        // SAFETY: the token says that the features are there.
        unsafe { Pair(H(_mm512_castpd_si512(doubles.0.0)), H(_mm512_castpd_si512(doubles.1.0))) }
    }
}
