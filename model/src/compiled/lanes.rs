//! Many outputs at once: the few vector operations that the compiled forms are written in.
//!
//! A kernel is written once, over [`Lanes`], and [`run`] makes one version of it for each instruction
//! set. A value that implements [`Lanes`] is a token: it exists only where its instruction set has
//! been found, and so do the vectors made with it. That is what makes their operations safe.

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod avx2;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod avx512;
#[cfg(all(feature = "simd", target_arch = "aarch64"))]
mod neon;
#[cfg(all(feature = "simd", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod pair;
mod portable;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod x86;

/// A vector of signed integers. Where an operation says whether something is so, it says −1 for yes
/// and 0 for no, in each lane.
pub(crate) trait Int: Copy {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn eq(self, other: Self) -> Self;
    fn gt(self, other: Self) -> Self;
    /// Shifts in zeros. Counts are unsigned, and those beyond the width leave zero.
    fn srl(self, count: Self) -> Self;
    /// Shifts in zeros. Counts are unsigned, and those beyond the width leave zero.
    fn sll(self, count: Self) -> Self;
    /// Whether it is negative.
    fn negative(self) -> Self;

    /// Shifts in copies of the sign.
    #[inline(always)]
    fn sra(self, count: Self) -> Self {
        let sign = self.negative();
        self.xor(sign).srl(count).xor(sign)
    }

    /// Shifts a magnitude and gives it back its sign: truncation.
    #[inline(always)]
    fn truncated(self, count: Self) -> Self {
        let sign = self.negative();
        self.xor(sign).sub(sign).srl(count).xor(sign).sub(sign)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        let sign = self.negative();
        self.xor(sign).sub(sign)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self::select(self.gt(other), self, other)
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self::select(self.gt(other), other, self)
    }

    /// `yes` where the mask is −1, `no` where it is 0.
    #[inline(always)]
    fn select(mask: Self, yes: Self, no: Self) -> Self {
        yes.xor(no).and(mask).xor(no)
    }
}

/// A vector of floating-point numbers, whose operations round to nearest even.
pub(crate) trait Float: Copy {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// `self` · `factor` + `summand`, rounded once.
    fn mul_add(self, factor: Self, summand: Self) -> Self;
}

/// An instruction set, as a token that it is there.
pub(crate) trait Lanes: Copy {
    /// Number of lanes.
    const N: usize;
    /// N integers of 32 bits.
    type W: Int;
    /// N integers of 64 bits.
    type D: Int;
    /// N numbers in fp32.
    type F: Float;
    /// N numbers in fp64.
    type G: Float;

    fn splat(self, value: i32) -> Self::W;
    fn splat_wide(self, value: i64) -> Self::D;
    /// The first N elements.
    fn load(self, from: &[i32]) -> Self::W;
    /// The first N elements.
    fn load_wide(self, from: &[i64]) -> Self::D;
    fn store(self, vector: Self::W, to: &mut [i32]);
    fn store_wide(self, vector: Self::D, to: &mut [i64]);
    /// The first N elements, of four bytes each.
    fn load_bytes(self, from: &[u8]) -> Self::W;
    /// The first N elements, of eight bytes each.
    fn load_wide_bytes(self, from: &[u8]) -> Self::D;
    fn store_bytes(self, vector: Self::W, to: &mut [u8]);
    /// N elements of four bytes, of which each is `stride` elements after the one before.
    #[inline(always)]
    fn gather(self, from: &[u8], stride: usize) -> Self::W {
        let mut lanes = [0; 16];
        for (lane, element) in lanes[..Self::N].iter_mut().enumerate() {
            let bytes = from[4 * lane * stride..].first_chunk().expect("as many elements as lanes");
            *element = i32::from_le_bytes(*bytes);
        }
        self.load(&lanes)
    }
    /// Writes elements to where [`gather`](Lanes::gather) reads them.
    #[inline(always)]
    fn scatter(self, vector: Self::W, to: &mut [u8], stride: usize) {
        let mut lanes = [0; 16];
        self.store(vector, &mut lanes);
        for (lane, element) in lanes[..Self::N].iter().enumerate() {
            to[4 * lane * stride..][..4].copy_from_slice(&element.to_le_bytes());
        }
    }
    fn store_wide_bytes(self, vector: Self::D, to: &mut [u8]);
    fn widen(self, vector: Self::W) -> Self::D;
    /// The low halves.
    fn narrow(self, vector: Self::D) -> Self::W;
    /// Zeros above the leading one; 64 where there is none.
    fn leading_zeros(self, vector: Self::D) -> Self::D;
    /// Zeros above the leading one; 32 where there is none.
    fn leading_zeros_narrow(self, vector: Self::W) -> Self::W;
    /// The product of signed numbers of 16 bits in the low halves. One of the vectors has zeros above
    /// them.
    fn mul16(self, x: Self::W, y: Self::W) -> Self::W;
    /// The low half of the product.
    fn mul(self, x: Self::W, y: Self::W) -> Self::W;
    /// Whether any lane is not zero.
    fn any(self, vector: Self::W) -> bool;

    fn floats(self, bits: Self::W) -> Self::F;
    fn float_bits(self, floats: Self::F) -> Self::W;
    fn doubles(self, bits: Self::D) -> Self::G;
    fn double_bits(self, doubles: Self::G) -> Self::D;
}

/// Something to run in the lanes of an instruction set.
pub(crate) trait Job {
    type Output;
    /// Has to be `#[inline(always)]`, to be compiled for the instruction set.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// An instruction set that the compiled forms can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Whatever the compiler makes of plain loops.
    Portable,
    /// Arm's Advanced SIMD.
    Neon,
    /// x86's AVX2 with FMA.
    Avx2,
    /// x86's AVX-512 (F, BW, CD, DQ, VL).
    Avx512,
}

impl Level {
    /// Every level, the best last.
    pub const ALL: [Level; 4] = [Level::Portable, Level::Neon, Level::Avx2, Level::Avx512];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Neon => "neon",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// The level of this name, if there is one.
    pub fn named(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Whether this machine has it. Without the feature `simd` there is only the portable one.
    pub fn is_available(self) -> bool {
        match self {
            Level::Portable => true,
            Level::Neon => cfg!(all(feature = "simd", target_arch = "aarch64")),
            #[cfg(all(feature = "simd", target_arch = "x86_64"))]
            Level::Avx2 => avx2::Avx2::new().is_some(),
            #[cfg(all(feature = "simd", target_arch = "x86_64"))]
            Level::Avx512 => avx512::Avx512::new().is_some(),
            #[cfg(not(all(feature = "simd", target_arch = "x86_64")))]
            Level::Avx2 | Level::Avx512 => false,
        }
    }

    /// The level for D of this shape: narrower vectors, where half of the wide ones would be empty.
    pub(super) fn for_shape(self, m: usize, n: usize) -> Level {
        let half_empty = |size: usize| (size + 15) % 16 < 8;
        // Very small ones are gathered into full vectors.
        let narrower = (4..=24).contains(&m.max(n)) && half_empty(m) && half_empty(n);
        if self == Level::Avx512 && narrower && Level::Avx2.is_available() { Level::Avx2 } else { self }
    }

    /// The best that this machine has.
    pub fn best() -> Level {
        Level::ALL.into_iter().rev().find(|level| level.is_available()).unwrap_or(Level::Portable)
    }
}

impl core::fmt::Display for Level {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// Runs a job at a level, or portably where this machine lacks it.
pub(crate) fn run<J: Job>(level: Level, job: J) -> J::Output {
    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    {
        if level == Level::Avx512
            && let Some(lanes) = avx512::Avx512::new()
        {
            return lanes.run(job);
        }
        if level == Level::Avx2
            && let Some(lanes) = avx2::Avx2::new()
        {
            return lanes.run(job);
        }
    }
    #[cfg(all(feature = "simd", target_arch = "aarch64"))]
    if level == Level::Neon {
        return job.run(neon::Neon::new());
    }
    let _ = level;
    job.run(portable::Portable)
}
