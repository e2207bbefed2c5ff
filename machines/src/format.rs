//! Number formats: what bit patterns mean.
//!
//! Sources: IEEE 754-2019; OCP Microscaling Formats 1.0 (e4m3, e5m2, e3m2, e2m3, e2m1, ue8m0);
//! Noune et al. 2022 (FNUZ); MMA-Sim paper, appendix A (tf32, ue4m3).

/// What the patterns beside the ordinary numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// Infinities and NaNs under the largest exponent field.
    Ieee,
    /// One NaN of each sign, all ones; no infinity.
    AllOnes,
    /// The pattern of −0 is the only NaN; no infinity.
    MinusZero,
    /// Numbers only.
    Nothing,
    /// Powers of two without sign and zero; all ones is NaN.
    PowersOfTwo,
}

/// A binary floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Its usual name, in small letters.
    pub name: &'static str,
    /// Whether the top bit is a sign.
    pub signed: bool,
    /// Width of the exponent field.
    pub exponent_bits: u32,
    /// Width of the fraction field.
    pub fraction_bits: u32,
    /// What the exponent field exceeds the exponent by.
    pub bias: i32,
    /// The other patterns.
    pub specials: Specials,
    /// Bits below the fraction without a meaning.
    pub padding: u32,
    /// Bytes of an element in memory.
    pub bytes: usize,
}

/// What a bit pattern stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datum {
    /// Not a number, with its sign and fraction field.
    Nan(bool, u64),
    /// An infinity, with its sign.
    Infinite(bool),
    /// ±`significand` × 2^(`exponent` − fraction bits); zeros and subnormal numbers have the format's
    /// smallest exponent.
    Number {
        /// The sign.
        negative: bool,
        /// The significand with its hidden bit.
        significand: u64,
        /// The exponent of the hidden bit's place.
        exponent: i32,
    },
}

const fn format(name: &'static str, exponent_bits: u32, fraction_bits: u32, specials: Specials) -> Format {
    let bits = 1 + exponent_bits + fraction_bits;
    let bytes = if bits <= 8 { 1 } else { bits as usize / 8 };
    let bias = (1 << (exponent_bits - 1)) - 1;
    Format { name, signed: true, exponent_bits, fraction_bits, bias, specials, padding: 0, bytes }
}

/// IEEE 754 binary64.
pub const FP64: Format = format("fp64", 11, 52, Specials::Ieee);
/// IEEE 754 binary32.
pub const FP32: Format = format("fp32", 8, 23, Specials::Ieee);
/// 19 bits at the top of a 32-bit word.
pub const TF32: Format = Format { padding: 13, bytes: 4, ..format("tf32", 8, 10, Specials::Ieee) };
/// IEEE 754 binary16.
pub const FP16: Format = format("fp16", 5, 10, Specials::Ieee);
/// The upper half of an fp32.
pub const BF16: Format = format("bf16", 8, 7, Specials::Ieee);
/// OCP fp8, wide range.
pub const E5M2: Format = format("e5m2", 5, 2, Specials::Ieee);
/// OCP fp8, more precision.
pub const E4M3: Format = format("e4m3", 4, 3, Specials::AllOnes);
/// FNUZ fp8, wide range.
pub const E5M2FNUZ: Format = Format { bias: 16, ..format("e5m2fnuz", 5, 2, Specials::MinusZero) };
/// FNUZ fp8, more precision.
pub const E4M3FNUZ: Format = Format { bias: 8, ..format("e4m3fnuz", 4, 3, Specials::MinusZero) };
/// OCP fp6, wide range.
pub const E3M2: Format = format("e3m2", 3, 2, Specials::Nothing);
/// OCP fp6, more precision.
pub const E2M3: Format = format("e2m3", 2, 3, Specials::Nothing);
/// OCP fp4.
pub const E2M1: Format = format("e2m1", 2, 1, Specials::Nothing);
/// OCP block scale.
pub const UE8M0: Format =
    Format { signed: false, bias: 127, bytes: 1, ..format("ue8m0", 8, 0, Specials::PowersOfTwo) };
/// Block scale of NVFP4; the top bit of its byte is ignored.
pub const UE4M3: Format = Format { signed: false, ..format("ue4m3", 4, 3, Specials::AllOnes) };

impl Format {
    /// The smallest exponent of a number.
    pub const fn min_exponent(&self) -> i32 {
        if matches!(self.specials, Specials::PowersOfTwo) { -self.bias } else { 1 - self.bias }
    }

    /// The largest exponent of a number.
    pub const fn max_exponent(&self) -> i32 {
        let top = (1 << self.exponent_bits) - 1 - self.bias;
        match self.specials {
            Specials::Ieee | Specials::PowersOfTwo => top - 1,
            _ => top,
        }
    }

    /// The largest significand under the largest exponent.
    pub const fn top_significand(&self) -> u64 {
        let ones = (2 << self.fraction_bits) - 1;
        if matches!(self.specials, Specials::AllOnes) { ones - 1 } else { ones }
    }

    /// Whether some pattern is an infinity.
    pub const fn has_infinity(&self) -> bool {
        matches!(self.specials, Specials::Ieee)
    }

    /// What a bit pattern stands for; padding, and bits above the format, are ignored.
    #[inline]
    pub fn decode(&self, bits: u64) -> Datum {
        let bits = bits >> self.padding;
        let fraction = bits & ((1 << self.fraction_bits) - 1);
        let top = (1u64 << self.exponent_bits) - 1;
        let field = bits >> self.fraction_bits & top;
        let negative = self.signed && bits >> (self.fraction_bits + self.exponent_bits) & 1 != 0;
        match self.specials {
            Specials::Ieee if field == top && fraction == 0 => return Datum::Infinite(negative),
            Specials::Ieee if field == top => return Datum::Nan(negative, fraction),
            Specials::AllOnes if field == top && fraction + 1 == 1 << self.fraction_bits => {
                return Datum::Nan(negative, fraction);
            }
            Specials::MinusZero if negative && field == 0 && fraction == 0 => return Datum::Nan(true, 0),
            Specials::PowersOfTwo if field == top => return Datum::Nan(false, 0),
            Specials::PowersOfTwo => {
                return Datum::Number { negative, significand: 1, exponent: field as i32 - self.bias };
            }
            _ => {}
        }
        let hidden = u64::from(field != 0);
        let exponent = field.max(1) as i32 - self.bias;
        Datum::Number { negative, significand: hidden << self.fraction_bits | fraction, exponent }
    }

    /// The pattern of a number of an IEEE format. `significand` has its hidden bit, unless it is
    /// subnormal: then `exponent` is the smallest.
    pub fn encode(&self, negative: bool, significand: u64, exponent: i32) -> u64 {
        debug_assert!(significand >> self.fraction_bits <= 1 && exponent <= self.max_exponent());
        let hidden = significand >> self.fraction_bits;
        let field = if hidden == 0 { 0 } else { (exponent + self.bias) as u64 };
        self.assemble(negative, field, significand & ((1 << self.fraction_bits) - 1))
    }

    /// The pattern of an infinity of an IEEE format.
    pub fn infinity(&self, negative: bool) -> u64 {
        debug_assert!(self.has_infinity());
        self.assemble(negative, (1 << self.exponent_bits) - 1, 0)
    }

    /// The pattern of a NaN of an IEEE format.
    pub fn nan(&self, negative: bool, fraction: u64) -> u64 {
        debug_assert!(self.has_infinity() && fraction != 0 && fraction >> self.fraction_bits == 0);
        self.assemble(negative, (1 << self.exponent_bits) - 1, fraction)
    }

    fn assemble(&self, negative: bool, field: u64, fraction: u64) -> u64 {
        let sign = u64::from(negative) << (self.exponent_bits + self.fraction_bits);
        (sign | field << self.fraction_bits | fraction) << self.padding
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
