//! Plain loops over eight lanes, which compilers turn into whatever vectors there are.

use core::array::from_fn;

use super::{Float, Int, Lanes};
use crate::exact::Term;
use crate::format::{Decoded, FP64, RoundTo};

/// The token: every machine has this.
#[derive(Clone, Copy)]
pub(super) struct Portable;

const N: usize = 8;

/// Eight numbers.
#[derive(Clone, Copy)]
pub(super) struct Array<T>([T; N]);

impl<T: Copy> Array<T> {
    #[inline(always)]
    fn zip<U, V: Copy>(self, other: Array<V>, f: impl Fn(T, V) -> U) -> Array<U> {
        Array(from_fn(|lane| f(self.0[lane], other.0[lane])))
    }

    #[inline(always)]
    fn map<U>(self, f: impl Fn(T) -> U) -> Array<U> {
        Array(from_fn(|lane| f(self.0[lane])))
    }
}

macro_rules! int {
    ($signed:ty, $unsigned:ty) => {
        impl Int for Array<$signed> {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.zip(other, <$signed>::wrapping_add)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.zip(other, <$signed>::wrapping_sub)
            }
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self.zip(other, |x, y| x & y)
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self.zip(other, |x, y| x | y)
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self.zip(other, |x, y| x ^ y)
            }
            #[inline(always)]
            fn eq(self, other: Self) -> Self {
                self.zip(other, |x, y| -<$signed>::from(x == y))
            }
            #[inline(always)]
            fn gt(self, other: Self) -> Self {
                self.zip(other, |x, y| -<$signed>::from(x > y))
            }
            #[inline(always)]
            fn srl(self, count: Self) -> Self {
                self.zip(count, |x, n| {
                    if n as $unsigned >= <$unsigned>::BITS as $unsigned {
                        0
                    } else {
                        (x as $unsigned >> n) as $signed
                    }
                })
            }
            #[inline(always)]
            fn sll(self, count: Self) -> Self {
                self.zip(
                    count,
                    |x, n| if n as $unsigned >= <$unsigned>::BITS as $unsigned { 0 } else { x << n },
                )
            }
            #[inline(always)]
            fn negative(self) -> Self {
                self.map(|x| x >> (<$unsigned>::BITS - 1))
            }
        }
    };
}

int!(i32, u32);
int!(i64, u64);

impl Float for Array<f32> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |x, y| x + y)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |x, y| x * y)
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, summand: Self) -> Self {
        let product = self.zip(factor, |x, y| f64::from(x) * f64::from(y));
        product.zip(summand, |product, summand| fused(product, f64::from(summand)))
    }
}

impl Float for Array<f64> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |x, y| x + y)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |x, y| x * y)
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, summand: Self) -> Self {
        Array(from_fn(|lane| fused_wide(self.0[lane], factor.0[lane], summand.0[lane])))
    }
}

/// The sum of an exact product and a summand, rounded once, to fp32. The sum is rounded to odd in fp64
/// first, which has more than twice the bits (Boldo and Melquiond 2008, "Emulation of FMA and correctly
/// rounded sums: proved algorithms using rounding to odd").
#[inline(always)]
fn fused(product: f64, summand: f64) -> f32 {
    let sum = product + summand;
    // Knuth's error-free transformation.
    let virtual_summand = sum - product;
    let error = (product - (sum - virtual_summand)) + (summand - virtual_summand);
    let bits = sum.to_bits();
    // The other neighbour is odd: the next in the direction of the error.
    let away = (error > 0.0) == (sum > 0.0);
    let odd = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let inexact = error != 0.0 && !error.is_nan() && bits & 1 == 0;
    f64::from_bits(if inexact { odd } else { bits }) as f32
}

/// `x` · `y` + `z`, rounded once: there is no such operation in `core`.
#[cold]
fn fused_wide(x: f64, y: f64, z: f64) -> f64 {
    let exact = [x, y, z].map(|number| match FP64.decode(number.to_bits()) {
        Decoded::Finite { negative, significand, exponent } => Some((negative, significand, exponent - 52)),
        _ => None,
    });
    let [Some(x_), Some(y_), z_] = exact else { return x * y + z };
    // A product that overflows must not meet an infinity; one with a zero needs no rounding.
    let Some(z_) = z_ else { return z };
    if x == 0.0 || y == 0.0 {
        return x * y + z;
    }
    let product = Term::new(x_.0 != y_.0, u128::from(x_.1) * u128::from(y_.1), x_.2 + y_.2, 0);
    let sum = Term::sum_for_rounding(&product, &Term::new(z_.0, z_.1.into(), z_.2, 0));
    f64::from_bits(FP64.pack(RoundTo::nearest_even(FP64).round(&sum)))
}

impl Lanes for Portable {
    const N: usize = N;
    type W = Array<i32>;
    type D = Array<i64>;
    type F = Array<f32>;
    type G = Array<f64>;

    #[inline(always)]
    fn splat(self, value: i32) -> Array<i32> {
        Array([value; N])
    }
    #[inline(always)]
    fn splat_wide(self, value: i64) -> Array<i64> {
        Array([value; N])
    }
    #[inline(always)]
    fn load(self, from: &[i32]) -> Array<i32> {
        Array(from_fn(|lane| from[lane]))
    }
    #[inline(always)]
    fn load_wide(self, from: &[i64]) -> Array<i64> {
        Array(from_fn(|lane| from[lane]))
    }
    #[inline(always)]
    fn store(self, vector: Array<i32>, to: &mut [i32]) {
        to[..N].copy_from_slice(&vector.0);
    }
    #[inline(always)]
    fn store_wide(self, vector: Array<i64>, to: &mut [i64]) {
        to[..N].copy_from_slice(&vector.0);
    }
    #[inline(always)]
    fn load_bytes(self, from: &[u8]) -> Array<i32> {
        let mut lanes = [0; N];
        for (lane, bytes) in lanes.iter_mut().zip(from.as_chunks().0) {
            *lane = i32::from_le_bytes(*bytes);
        }
        self.load(&lanes)
    }
    #[inline(always)]
    fn load_wide_bytes(self, from: &[u8]) -> Array<i64> {
        let mut lanes = [0; N];
        for (lane, bytes) in lanes.iter_mut().zip(from.as_chunks().0) {
            *lane = i64::from_le_bytes(*bytes);
        }
        self.load_wide(&lanes)
    }
    #[inline(always)]
    fn store_bytes(self, vector: Array<i32>, to: &mut [u8]) {
        let mut lanes = [0; N];
        self.store(vector, &mut lanes);
        for (bytes, lane) in to.as_chunks_mut().0.iter_mut().zip(lanes) {
            *bytes = lane.to_le_bytes();
        }
    }
    #[inline(always)]
    fn store_wide_bytes(self, vector: Array<i64>, to: &mut [u8]) {
        let mut lanes = [0; N];
        self.store_wide(vector, &mut lanes);
        for (bytes, lane) in to.as_chunks_mut().0.iter_mut().zip(lanes) {
            *bytes = lane.to_le_bytes();
        }
    }
    #[inline(always)]
    fn widen(self, vector: Array<i32>) -> Array<i64> {
        vector.map(i64::from)
    }
    #[inline(always)]
    fn narrow(self, vector: Array<i64>) -> Array<i32> {
        vector.map(|x| x as i32)
    }
    #[inline(always)]
    fn leading_zeros(self, vector: Array<i64>) -> Array<i64> {
        vector.map(|x| x.leading_zeros().into())
    }
    #[inline(always)]
    fn mul16(self, x: Array<i32>, y: Array<i32>) -> Array<i32> {
        x.zip(y, |x, y| i32::from(x as i16) * i32::from(y as i16))
    }
    #[inline(always)]
    fn mul(self, x: Array<i32>, y: Array<i32>) -> Array<i32> {
        x.zip(y, i32::wrapping_mul)
    }
    #[inline(always)]
    fn any(self, vector: Array<i32>) -> bool {
        vector.0.iter().fold(0, |any, x| any | x) != 0
    }
    #[inline(always)]
    fn floats(self, bits: Array<i32>) -> Array<f32> {
        bits.map(|x| f32::from_bits(x as u32))
    }
    #[inline(always)]
    fn float_bits(self, floats: Array<f32>) -> Array<i32> {
        floats.map(|x| x.to_bits() as i32)
    }
    #[inline(always)]
    fn doubles(self, bits: Array<i64>) -> Array<f64> {
        bits.map(|x| f64::from_bits(x as u64))
    }
    #[inline(always)]
    fn double_bits(self, doubles: Array<f64>) -> Array<i64> {
        doubles.map(|x| x.to_bits() as i64)
    }
}
