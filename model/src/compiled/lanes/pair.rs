//! Two vectors as one of twice as many lanes.

use super::{Float, Int};

/// The first lanes and the others.
#[derive(Clone, Copy)]
pub(super) struct Pair<V>(pub V, pub V);

impl<V: Int> Int for Pair<V> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Pair(self.0.add(other.0), self.1.add(other.1))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Pair(self.0.sub(other.0), self.1.sub(other.1))
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Pair(self.0.and(other.0), self.1.and(other.1))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Pair(self.0.or(other.0), self.1.or(other.1))
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Pair(self.0.xor(other.0), self.1.xor(other.1))
    }
    #[inline(always)]
    fn eq(self, other: Self) -> Self {
        Pair(self.0.eq(other.0), self.1.eq(other.1))
    }
    #[inline(always)]
    fn gt(self, other: Self) -> Self {
        Pair(self.0.gt(other.0), self.1.gt(other.1))
    }
    #[inline(always)]
    fn srl(self, count: Self) -> Self {
        Pair(self.0.srl(count.0), self.1.srl(count.1))
    }
    #[inline(always)]
    fn sll(self, count: Self) -> Self {
        Pair(self.0.sll(count.0), self.1.sll(count.1))
    }
    #[inline(always)]
    fn negative(self) -> Self {
        Pair(self.0.negative(), self.1.negative())
    }
    #[inline(always)]
    fn sra(self, count: Self) -> Self {
        Pair(self.0.sra(count.0), self.1.sra(count.1))
    }
    #[inline(always)]
    fn truncated(self, count: Self) -> Self {
        Pair(self.0.truncated(count.0), self.1.truncated(count.1))
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Pair(self.0.abs(), self.1.abs())
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Pair(self.0.max(other.0), self.1.max(other.1))
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Pair(self.0.min(other.0), self.1.min(other.1))
    }
}

impl<V: Float> Float for Pair<V> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Pair(self.0.add(other.0), self.1.add(other.1))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Pair(self.0.mul(other.0), self.1.mul(other.1))
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, summand: Self) -> Self {
        Pair(self.0.mul_add(factor.0, summand.0), self.1.mul_add(factor.1, summand.1))
    }
}
