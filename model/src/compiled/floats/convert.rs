//! Operands as numbers in fp32 or fp64.

use crate::compiled::lanes::{Float, Int, Lanes};
use crate::format::{FP32, FP64, Specials};
use crate::tree::{InputInfinities, InputSubnormals, Operand};

/// Converts the elements of an operand, exactly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Converter {
    pub bytes: usize,
    ignored: u32,
    exponent_bits: u32,
    fraction_bits: u32,
    bias: i32,
    specials: Specials,
    flushed: bool,
    flushed_sign_kept: bool,
    /// Whether elements stay as they are.
    pub is_plain: bool,
    /// Whether fp32 has the same exponents: then only fraction bits are missing.
    same_exponents: bool,
}

impl Converter {
    /// A converter, if the operand's numbers are numbers in fp32 (for fp64: if they are fp64).
    pub fn new(operand: &Operand, is_double: bool) -> Option<Converter> {
        let format = &operand.format;
        let fits = if is_double {
            *format == FP64
        } else {
            format.signed && format.exponent_bits <= 8 && format.fraction_bits <= 23 && format.bits() <= 32
        };
        let fits = fits && operand.infinities == InputInfinities::Kept;
        let same_exponents = format.exponent_bits == 8 || is_double;
        (fits && (!same_exponents || format.specials == Specials::Ieee)).then_some(Converter {
            bytes: format.bytes,
            ignored: format.ignored_low_bits,
            exponent_bits: format.exponent_bits,
            fraction_bits: format.fraction_bits,
            bias: format.bias,
            specials: format.specials,
            flushed: operand.subnormals != InputSubnormals::Kept,
            flushed_sign_kept: operand.subnormals == InputSubnormals::FlushedToSignedZero,
            is_plain: operand.subnormals == InputSubnormals::Kept && (*format == FP32 || *format == FP64),
            same_exponents,
        })
    }

    /// An element as the bits of an fp32.
    #[inline(always)]
    pub fn single(&self, bits: i32) -> i32 {
        let x = bits as u32 >> self.ignored;
        if self.same_exponents {
            let bits = x << (23 - self.fraction_bits);
            let subnormal = self.flushed && bits & 0x7f80_0000 == 0;
            // A zero keeps its sign; what is flushed may lose it.
            let sign = if self.flushed_sign_kept || bits << 1 == 0 { bits & 1 << 31 } else { 0 };
            return if subnormal { sign as i32 } else { bits as i32 };
        }
        let fraction = x & ((1 << self.fraction_bits) - 1);
        let top = (1 << self.exponent_bits) - 1;
        let field = x >> self.fraction_bits & top;
        let magnitude = x & ((1 << (self.exponent_bits + self.fraction_bits)) - 1);
        let sign = (x >> (self.exponent_bits + self.fraction_bits) & 1) << 31;
        let special = match self.specials {
            Specials::Ieee => field == top,
            Specials::AllOnesNan => magnitude == (1 << (self.exponent_bits + self.fraction_bits)) - 1,
            Specials::NegativeZeroNan => magnitude == 0 && sign != 0,
            Specials::FiniteOnly | Specials::PowersOfTwo => false,
        };
        let infinite = self.specials == Specials::Ieee && fraction == 0;
        let significand = fraction | u32::from(field != 0) << self.fraction_bits;
        let lsb = field.max(1) as i32 - self.bias - self.fraction_bits as i32;
        // Exponents of five bits and fewer are far from fp32's ends: the power of two is normal.
        let number = significand as f32 * f32::from_bits(((lsb + 127) as u32) << 23);
        let flushed = self.flushed && field == 0 && fraction != 0;
        let sign = if flushed && !self.flushed_sign_kept { 0 } else { sign };
        let number = if flushed { 0 } else { number.to_bits() };
        let special_bits = if infinite { 0x7f80_0000 } else { 0x7fc0_0000 };
        (sign | if special { special_bits } else { number }) as i32
    }

    /// An element as the bits of an fp64, which it is.
    #[inline(always)]
    pub fn double(&self, bits: i64) -> i64 {
        let subnormal = self.flushed && bits & 0x7ff0_0000_0000_0000 == 0;
        let sign = if self.flushed_sign_kept || bits << 1 == 0 { bits & i64::MIN } else { 0 };
        if subnormal { sign } else { bits }
    }

    /// What [`single`](Converter::single) does, in lanes.
    #[inline(always)]
    pub fn singles<L: Lanes>(&self, lanes: L, bits: L::W) -> L::W {
        const SIGN: i32 = i32::MIN;
        let splat = |value| lanes.splat(value);
        let zero = splat(0);
        let fraction_bits = self.fraction_bits as i32;
        let x = bits.srl(splat(self.ignored as i32));
        if self.same_exponents {
            let bits = x.sll(splat(23 - fraction_bits));
            let magnitude = bits.and(splat(!SIGN));
            let sign = bits.and(splat(SIGN));
            let sign =
                if self.flushed_sign_kept { sign } else { L::W::select(magnitude.eq(zero), sign, zero) };
            let subnormal = splat(1 << 23).gt(magnitude);
            return if self.flushed { L::W::select(subnormal, sign, bits) } else { bits };
        }
        let fields = self.exponent_bits as i32 + fraction_bits;
        let magnitude = x.and(splat((1 << fields) - 1));
        let mut sign = x.sll(splat(31 - fields)).and(splat(SIGN));
        let shifted = magnitude.sll(splat(23 - fraction_bits));
        let rebias = 127 - self.bias;
        let normal = shifted.add(splat(rebias << 23));
        let subnormal = splat(1 << fraction_bits).gt(magnitude);
        // With a hidden bit that it does not have, and then without.
        let smallest = (rebias + 1) << 23;
        let with_bit = lanes.floats(shifted.add(splat(smallest)));
        let small = lanes.float_bits(with_bit.add(lanes.floats(splat(smallest | SIGN))));
        let small = if self.flushed { zero } else { small };
        if self.flushed && !self.flushed_sign_kept {
            sign = L::W::select(subnormal.and(zero.eq(magnitude).eq(zero)), zero, sign);
        }
        let number = L::W::select(subnormal, small, normal);
        let nan = splat(0x7fc0_0000);
        let number = match self.specials {
            Specials::Ieee => {
                let infinity = splat(((1 << self.exponent_bits) - 1) << fraction_bits);
                let number = L::W::select(magnitude.eq(infinity), splat(0x7f80_0000), number);
                L::W::select(magnitude.gt(infinity), nan, number)
            }
            Specials::AllOnesNan => L::W::select(magnitude.eq(splat((1 << fields) - 1)), nan, number),
            Specials::NegativeZeroNan => L::W::select(magnitude.eq(zero).and(sign.negative()), nan, number),
            Specials::FiniteOnly | Specials::PowersOfTwo => number,
        };
        number.or(sign)
    }

    /// What [`double`](Converter::double) does, in lanes.
    #[inline(always)]
    pub fn doubles<L: Lanes>(&self, lanes: L, bits: L::D) -> L::D {
        let magnitude = bits.and(lanes.splat_wide(i64::MAX));
        let zero = lanes.splat_wide(0);
        let sign = bits.and(lanes.splat_wide(i64::MIN));
        let sign = if self.flushed_sign_kept { sign } else { L::D::select(magnitude.eq(zero), sign, zero) };
        let subnormal = lanes.splat_wide(1 << 52).gt(magnitude);
        if self.flushed { L::D::select(subnormal, sign, bits) } else { bits }
    }
}
