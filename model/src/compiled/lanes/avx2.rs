//! AVX2 and FMA: eight lanes.

use core::arch::x86_64::*;

use super::pair::Pair;
use super::x86::{float, int};
use super::{Float, Int, Job, Lanes};

/// The token: this machine has AVX2 and FMA.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Eight integers of 32 bits.
#[derive(Clone, Copy)]
pub(super) struct W(__m256i);

/// Four integers of 64 bits.
#[derive(Clone, Copy)]
pub(super) struct H(__m256i);

/// Eight numbers in fp32.
#[derive(Clone, Copy)]
pub(super) struct F(__m256);

/// Four numbers in fp64.
#[derive(Clone, Copy)]
pub(super) struct G(__m256d);

impl Avx2 {
    /// The token, if this machine has what it stands for.
    pub fn new() -> Option<Avx2> {
        let there = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
        there.then_some(Avx2(()))
    }

    /// Runs a job compiled for these features.
    pub fn run<J: Job>(self, job: J) -> J::Output {
        #[target_feature(enable = "avx2,fma")]
        fn inner<J: Job>(lanes: Avx2, job: J) -> J::Output {
            job.run(lanes)
        }
        // SAFETY: the token says that both are there.
        unsafe { inner(self, job) }
    }
}

int!(W: add _mm256_add_epi32, sub _mm256_sub_epi32, and _mm256_and_si256, or _mm256_or_si256,
     xor _mm256_xor_si256, srl _mm256_srlv_epi32, sll _mm256_sllv_epi32 {
    #[inline(always)]
    fn eq(self, other: Self) -> Self {
        // SAFETY: vectors are made with the token alone, which says that the features are there.
        W(unsafe { _mm256_cmpeq_epi32(self.0, other.0) })
    }
    #[inline(always)]
    fn gt(self, other: Self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm256_cmpgt_epi32(self.0, other.0) })
    }
    #[inline(always)]
    fn negative(self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm256_srai_epi32::<31>(self.0) })
    }
    #[inline(always)]
    fn sra(self, count: Self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm256_srav_epi32(self.0, count.0) })
    }
    #[inline(always)]
    fn truncated(self, count: Self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm256_sign_epi32(_mm256_srlv_epi32(_mm256_abs_epi32(self.0), count.0), self.0) })
    }
    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm256_abs_epi32(self.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm256_max_epi32(self.0, other.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: as above.
        W(unsafe { _mm256_min_epi32(self.0, other.0) })
    }
});

int!(H: add _mm256_add_epi64, sub _mm256_sub_epi64, and _mm256_and_si256, or _mm256_or_si256,
     xor _mm256_xor_si256, srl _mm256_srlv_epi64, sll _mm256_sllv_epi64 {
    #[inline(always)]
    fn eq(self, other: Self) -> Self {
        // SAFETY: vectors are made with the token alone, which says that the features are there.
        H(unsafe { _mm256_cmpeq_epi64(self.0, other.0) })
    }
    #[inline(always)]
    fn gt(self, other: Self) -> Self {
        // SAFETY: as above.
        H(unsafe { _mm256_cmpgt_epi64(self.0, other.0) })
    }
    #[inline(always)]
    fn negative(self) -> Self {
        // SAFETY: as above.
        H(unsafe { _mm256_cmpgt_epi64(_mm256_setzero_si256(), self.0) })
    }
});

float!(F: _mm256_add_ps, _mm256_mul_ps, _mm256_fmadd_ps);
float!(G: _mm256_add_pd, _mm256_mul_pd, _mm256_fmadd_pd);

impl Avx2 {
    /// Zeros above the leading one, from the exponent of the number in fp64.
    #[inline(always)]
    fn leading_zeros_of(self, H(x): H) -> H {
        // SAFETY: the token says that the features are there.
        unsafe {
            // With the bit after the leading one cleared, the conversion cannot round up to a power of two.
            let x = _mm256_andnot_si256(_mm256_srli_epi64::<1>(x), x);
            // 2^84 + high · 2^32 and 2^52 + low, put together as bits; then the powers are taken off.
            let high = _mm256_or_si256(_mm256_srli_epi64::<32>(x), _mm256_set1_epi64x(0x4530_0000_0000_0000));
            let low = _mm256_blend_epi32::<0b1010_1010>(x, _mm256_set1_epi64x(0x4330_0000_0000_0000));
            let offset = _mm256_castsi256_pd(_mm256_set1_epi64x(0x4530_0000_0010_0000)); // 2^84 + 2^52
            let value =
                _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), offset), _mm256_castsi256_pd(low));
            let field = _mm256_srli_epi64::<52>(_mm256_castpd_si256(value));
            let zeros = _mm256_sub_epi64(_mm256_set1_epi64x(1023 + 63), field);
            let none = _mm256_cmpeq_epi64(x, _mm256_setzero_si256());
            H(_mm256_blendv_epi8(zeros, _mm256_set1_epi64x(64), none))
        }
    }
}

impl Lanes for Avx2 {
    const N: usize = 8;
    type W = W;
    type D = Pair<H>;
    type F = F;
    type G = Pair<G>;

    #[inline(always)]
    fn splat(self, value: i32) -> W {
        // SAFETY: the token says that the features are there.
        W(unsafe { _mm256_set1_epi32(value) })
    }
    #[inline(always)]
    fn splat_wide(self, value: i64) -> Pair<H> {
        // SAFETY: the token says that the features are there.
        let half = H(unsafe { _mm256_set1_epi64x(value) });
        Pair(half, half)
    }
    #[inline(always)]
    fn load(self, from: &[i32]) -> W {
        let from = &from[..8];
        // SAFETY: the features are there, and so are eight elements.
        W(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn load_wide(self, from: &[i64]) -> Pair<H> {
        let from = &from[..8];
        // SAFETY: the features are there, and so are eight elements.
        unsafe {
            Pair(
                H(_mm256_loadu_si256(from.as_ptr().cast())),
                H(_mm256_loadu_si256(from.as_ptr().add(4).cast())),
            )
        }
    }
    #[inline(always)]
    fn store(self, vector: W, to: &mut [i32]) {
        let to = &mut to[..8];
        // SAFETY: the features are there, and so are eight elements.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), vector.0) }
    }
    #[inline(always)]
    fn store_wide(self, vector: Pair<H>, to: &mut [i64]) {
        let to = &mut to[..8];
        // SAFETY: the features are there, and so are eight elements.
        unsafe {
            _mm256_storeu_si256(to.as_mut_ptr().cast(), vector.0.0);
            _mm256_storeu_si256(to.as_mut_ptr().add(4).cast(), vector.1.0);
        }
    }
    #[inline(always)]
    fn load_bytes(self, from: &[u8]) -> W {
        let from = &from[..32];
        // SAFETY: the features are there, and so are as many bytes; x86 is little-endian.
        W(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn load_wide_bytes(self, from: &[u8]) -> Pair<H> {
        let from = &from[..64];
        // SAFETY: the features are there, and so are as many bytes; x86 is little-endian.
        unsafe {
            Pair(
                H(_mm256_loadu_si256(from.as_ptr().cast())),
                H(_mm256_loadu_si256(from.as_ptr().add(32).cast())),
            )
        }
    }
    #[inline(always)]
    fn store_bytes(self, vector: W, to: &mut [u8]) {
        let to = &mut to[..32];
        // SAFETY: the features are there, and so are as many bytes; x86 is little-endian.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), vector.0) }
    }
    #[inline(always)]
    fn store_wide_bytes(self, vector: Pair<H>, to: &mut [u8]) {
        let to = &mut to[..64];
        // SAFETY: the features are there, and so are as many bytes; x86 is little-endian.
        unsafe {
            _mm256_storeu_si256(to.as_mut_ptr().cast(), vector.0.0);
            _mm256_storeu_si256(to.as_mut_ptr().add(32).cast(), vector.1.0);
        }
    }
    #[inline(always)]
    fn widen(self, vector: W) -> Pair<H> {
        // SAFETY: the token says that the features are there.
        unsafe {
            Pair(
                H(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(vector.0))),
                H(_mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(vector.0))),
            )
        }
    }
    #[inline(always)]
    fn narrow(self, vector: Pair<H>) -> W {
        // SAFETY: the token says that the features are there.
        W(unsafe {
            // Even elements of both, in pairs; then the middle pairs change places.
            let (low, high) = (_mm256_castsi256_ps(vector.0.0), _mm256_castsi256_ps(vector.1.0));
            let even = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(low, high));
            _mm256_permute4x64_epi64::<0b11_01_10_00>(even)
        })
    }
    #[inline(always)]
    fn leading_zeros(self, vector: Pair<H>) -> Pair<H> {
        Pair(self.leading_zeros_of(vector.0), self.leading_zeros_of(vector.1))
    }
    #[inline(always)]
    fn leading_zeros_narrow(self, W(x): W) -> W {
        // SAFETY: the token says that the features are there.
        unsafe {
            // As for 64 bits. A negative number, which has no zeros, has the sign of the float in its field.
            let x = _mm256_andnot_si256(_mm256_srli_epi32::<1>(x), x);
            let field = _mm256_srli_epi32::<23>(_mm256_castps_si256(_mm256_cvtepi32_ps(x)));
            let zeros = _mm256_sub_epi32(_mm256_set1_epi32(127 + 31), field);
            let zeros = _mm256_max_epi32(zeros, _mm256_setzero_si256());
            W(_mm256_min_epi32(zeros, _mm256_set1_epi32(32)))
        }
    }
    #[inline(always)]
    fn mul16(self, x: W, y: W) -> W {
        // SAFETY: the token says that the features are there.
        W(unsafe { _mm256_madd_epi16(x.0, y.0) })
    }
    #[inline(always)]
    fn mul(self, x: W, y: W) -> W {
        // SAFETY: the token says that the features are there.
        W(unsafe { _mm256_mullo_epi32(x.0, y.0) })
    }
    #[inline(always)]
    fn any(self, vector: W) -> bool {
        // SAFETY: the token says that the features are there.
        unsafe { _mm256_testz_si256(vector.0, vector.0) == 0 }
    }
    #[inline(always)]
    fn floats(self, bits: W) -> F {
        // SAFETY: the token says that the features are there.
        F(unsafe { _mm256_castsi256_ps(bits.0) })
    }
    #[inline(always)]
    fn float_bits(self, floats: F) -> W {
        // SAFETY: the token says that the features are there.
        W(unsafe { _mm256_castps_si256(floats.0) })
    }
    #[inline(always)]
    fn doubles(self, bits: Pair<H>) -> Pair<G> {
        // SAFETY: the token says that the features are there.
        unsafe { Pair(G(_mm256_castsi256_pd(bits.0.0)), G(_mm256_castsi256_pd(bits.1.0))) }
    }
    #[inline(always)]
    fn double_bits(self, doubles: Pair<G>) -> Pair<H> {
        // SAFETY: the token says that the features are there.
        unsafe { Pair(H(_mm256_castpd_si256(doubles.0.0)), H(_mm256_castpd_si256(doubles.1.0))) }
    }
}
