//! Small draws from a random number generator, value-stable: every draw takes one `u64`.

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
