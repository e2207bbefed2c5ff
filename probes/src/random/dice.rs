//! Small draws from a random number generator, value-stable. A draw from the [`Dice`] takes one `u64`; where
//! each element of a matrix needs several small draws, they share a [`Word`].

use rand_core::Rng;

/// A generator with the few kinds of draws that the distributions are made of.
pub(super) struct Dice<'r, R: ?Sized>(pub &'r mut R);

impl<R: Rng + ?Sized> Dice<'_, R> {
    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `n`. The bias, of at most n / 2^32, is of no consequence here.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(n)) >> 32) as u32
    }

    /// A number from `low` to `high`, both included; `low` if there is none.
    #[inline]
    pub fn between(&mut self, low: i32, high: i32) -> i32 {
        low + self.below((high - low).max(0) as u32 + 1) as i32
    }

    /// True in `part` of `whole` cases.
    #[inline]
    pub fn chance(&mut self, part: u32, whole: u32) -> bool {
        self.below(whole) < part
    }

    /// One of the entries of a table.
    #[inline]
    pub fn pick<T: Copy>(&mut self, table: &[T]) -> T {
        table[self.below(table.len() as u32) as usize]
    }
}

/// 64 random bits, spent from the low end: a coin or a number takes a part of them. The top is for a
/// fraction, which may overlap what coins and numbers took where a format has very many fraction bits.
#[derive(Clone, Copy)]
pub(super) struct Word(pub u64);

impl Word {
    /// One bit.
    #[inline]
    pub fn coin(&mut self) -> bool {
        let bit = self.0 & 1 == 1;
        self.0 >>= 1;
        bit
    }

    /// A number below `n`, which is at most 256, from eight bits. The bias, of at most n / 2^8, is of no
    /// consequence here.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        let number = ((self.0 as u32 & 0xff) * n) >> 8;
        self.0 >>= 8;
        number
    }

    /// A number from `low` to `high`, both included; `low` if there is none.
    #[inline]
    pub fn between(&mut self, low: i32, high: i32) -> i32 {
        low + self.below((high - low).max(0) as u32 + 1) as i32
    }

    /// One of the entries of a table.
    #[inline]
    pub fn pick<T: Copy>(&mut self, table: &[T]) -> T {
        table[self.below(table.len() as u32) as usize]
    }
}
