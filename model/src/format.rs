//! Number formats: one parametrised description, from fp64 down to e2m1 and the block scales.
//!
//! A bit pattern is held in the low bits of a `u64`. [`Format::decode`] and [`Format::pack`] are
//! exact inverses on the values a format has; rounding to a format is [`RoundTo::round`].
//!
//! ```
//! use mmaprobe_model::format::{self, Decoded};
//!
//! let half = format::FP16.decode(0x3800);
//! assert_eq!(half, Decoded::Finite { negative: false, significand: 1 << 10, exponent: -1 });
//! assert_eq!(format::FP16.pack(half), 0x3800);
//! ```

use crate::rounding::Rounding;

/// What the encodings outside the ordinary finite numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Specials {
    /// The largest exponent field means infinity (fraction 0) or NaN (IEEE 754).
    Ieee,
    /// Only the pattern of all ones is NaN, there is no infinity ("FN": OCP e4m3, ue4m3).
    AllOnesNan,
    /// The pattern of negative zero is the only NaN; no infinity, no negative zero ("FNUZ").
    NegativeZeroNan,
    /// Every pattern is a finite number (OCP e3m2, e2m3, e2m1).
    FiniteOnly,
    /// Bare powers of two, no zero; the pattern of all ones is NaN (OCP ue8m0).
    PowersOfTwo,
}

/// A binary floating-point format.
///
/// Sources: IEEE 754-2019 (fp64, fp32, fp16); MMA-Sim paper, appendix A (tf32, bf16, and which fp8
/// has which special values); OCP Microscaling Formats 1.0 (e5m2, e4m3, e3m2, e2m3, e2m1, ue8m0);
/// Noune et al. 2022 (the FNUZ formats).
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The name used by the device protocol, the sheets and the command line.
    pub name: &'static str,
    /// Whether the top bit is a sign.
    pub signed: bool,
    /// Width of the exponent field, in bits.
    pub exponent_bits: u32,
    /// Width of the fraction field, in bits.
    pub fraction_bits: u32,
    /// What is subtracted from the exponent field.
    pub bias: i32,
    /// The encodings that are no ordinary numbers.
    pub specials: Specials,
    /// Bits below the fraction that the format ignores: 13 for tf32, which sits in a 32-bit word.
    pub ignored_low_bits: u32,
    /// Bytes that an element takes in memory, little-endian (device protocol).
    pub bytes: usize,
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

const fn ieee(name: &'static str, exponent_bits: u32, fraction_bits: u32, bytes: usize) -> Format {
    Format {
        name,
        signed: true,
        exponent_bits,
        fraction_bits,
        bias: (1 << (exponent_bits - 1)) - 1,
        specials: Specials::Ieee,
        ignored_low_bits: 0,
        bytes,
    }
}

const fn small(name: &'static str, exponent_bits: u32, fraction_bits: u32, specials: Specials) -> Format {
    Format { specials, ..ieee(name, exponent_bits, fraction_bits, 1) }
}

/// IEEE 754 binary64.
pub const FP64: Format = ieee("fp64", 11, 52, 8);
/// IEEE 754 binary32.
pub const FP32: Format = ieee("fp32", 8, 23, 4);
/// TensorFloat-32: fp32's exponent, fp16's fraction, in a 32-bit word whose 13 lowest bits are ignored.
pub const TF32: Format = Format { ignored_low_bits: 13, ..ieee("tf32", 8, 10, 4) };
/// IEEE 754 binary16.
pub const FP16: Format = ieee("fp16", 5, 10, 2);
/// bfloat16: the upper half of an fp32.
pub const BF16: Format = ieee("bf16", 8, 7, 2);
/// OCP fp8 with 5 exponent bits: IEEE-like.
pub const E5M2: Format = ieee("e5m2", 5, 2, 1);
/// OCP fp8 with 4 exponent bits: NaN but no infinity.
pub const E4M3: Format = small("e4m3", 4, 3, Specials::AllOnesNan);
/// AMD's bf8 on CDNA3: no infinity, one NaN, bias 16.
pub const E5M2FNUZ: Format = Format { bias: 16, ..small("e5m2fnuz", 5, 2, Specials::NegativeZeroNan) };
/// AMD's fp8 on CDNA3: no infinity, one NaN, bias 8.
pub const E4M3FNUZ: Format = Format { bias: 8, ..small("e4m3fnuz", 4, 3, Specials::NegativeZeroNan) };
/// OCP fp6 with 3 exponent bits: finite numbers only.
pub const E3M2: Format = small("e3m2", 3, 2, Specials::FiniteOnly);
/// OCP fp6 with 2 exponent bits: finite numbers only.
pub const E2M3: Format = small("e2m3", 2, 3, Specials::FiniteOnly);
/// OCP fp4: finite numbers only.
pub const E2M1: Format = small("e2m1", 2, 1, Specials::FiniteOnly);
/// OCP block scale: a power of two.
pub const UE8M0: Format = Format { signed: false, bias: 127, ..small("ue8m0", 8, 0, Specials::PowersOfTwo) };
/// NVFP4's block scale: an e4m3 whose top bit is ignored.
pub const UE4M3: Format = Format { signed: false, ..small("ue4m3", 4, 3, Specials::AllOnesNan) };

/// A bit pattern taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// Not a number; `fraction` is the fraction field, its top bit saying "quiet" in IEEE formats.
    Nan {
        /// The sign bit.
        negative: bool,
        /// The fraction field.
        fraction: u64,
    },
    /// An infinity.
    Infinite {
        /// The sign bit.
        negative: bool,
    },
    /// The number ±`significand` × 2^(`exponent` − fraction bits). The exponent is the raw one: for
    /// subnormal numbers and zeros it is the format's [smallest](Format::min_exponent), and the
    /// significand is then below 2^(fraction bits).
    Finite {
        /// The sign bit.
        negative: bool,
        /// The significand as an integer, hidden bit included.
        significand: u64,
        /// The exponent of the significand's hidden bit.
        exponent: i32,
    },
}

impl Format {
    /// Every format, operands first, then the block scales.
    pub const ALL: [Format; 14] =
        [FP64, FP32, TF32, FP16, BF16, E5M2, E4M3, E5M2FNUZ, E4M3FNUZ, E3M2, E2M3, E2M1, UE8M0, UE4M3];

    /// The format of this name, if there is one.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name == name)
    }

    /// Number of bits that carry meaning, ignored low bits not counted.
    pub const fn bits(&self) -> u32 {
        self.signed as u32 + self.exponent_bits + self.fraction_bits
    }

    /// Whether the format has subnormal numbers.
    pub const fn has_subnormals(&self) -> bool {
        self.fraction_bits > 0
    }

    /// Exponent of the smallest normal number, which subnormal numbers share.
    pub const fn min_exponent(&self) -> i32 {
        match self.specials {
            Specials::PowersOfTwo => -self.bias,
            _ => 1 - self.bias,
        }
    }

    /// Exponent of the largest finite number.
    pub const fn max_exponent(&self) -> i32 {
        let top_field = (1 << self.exponent_bits) - 1;
        match self.specials {
            // The top binade has at least one number that is not NaN.
            Specials::AllOnesNan | Specials::NegativeZeroNan | Specials::FiniteOnly => top_field - self.bias,
            Specials::Ieee | Specials::PowersOfTwo => top_field - 1 - self.bias,
        }
    }

    /// Significand of the largest finite number, as an integer with the hidden bit.
    pub const fn max_significand(&self) -> u64 {
        let all_ones = (2 << self.fraction_bits) - 1;
        match self.specials {
            Specials::AllOnesNan => all_ones - 1,
            _ => all_ones,
        }
    }

    /// Exponent of the lowest bit of the smallest subnormal number (or of the smallest number).
    pub const fn min_quantum(&self) -> i32 {
        self.min_exponent() - self.fraction_bits as i32
    }

    /// Whether the format can hold an infinity.
    pub const fn has_infinity(&self) -> bool {
        matches!(self.specials, Specials::Ieee)
    }

    /// Whether the format can hold a NaN.
    pub const fn has_nan(&self) -> bool {
        !matches!(self.specials, Specials::FiniteOnly)
    }

    /// Whether the format tells −0 from +0.
    pub const fn has_negative_zero(&self) -> bool {
        self.signed && !matches!(self.specials, Specials::NegativeZeroNan)
    }

    /// A mask of the bits that [`decode`](Format::decode) looks at.
    pub const fn mask(&self) -> u64 {
        (u64::MAX >> (64 - self.bits())) << self.ignored_low_bits
    }

    /// Takes a bit pattern apart. Bits outside the format are ignored.
    #[inline]
    pub const fn decode(&self, bits: u64) -> Decoded {
        let bits = (bits & self.mask()) >> self.ignored_low_bits;
        let negative = self.signed && bits >> (self.exponent_bits + self.fraction_bits) & 1 == 1;
        let fraction = bits & ((1 << self.fraction_bits) - 1);
        let top_field = (1 << self.exponent_bits) - 1;
        let field = bits >> self.fraction_bits & top_field;
        match self.specials {
            Specials::Ieee if field == top_field => {
                return if fraction == 0 {
                    Decoded::Infinite { negative }
                } else {
                    Decoded::Nan { negative, fraction }
                };
            }
            Specials::AllOnesNan if field == top_field && fraction == (1 << self.fraction_bits) - 1 => {
                return Decoded::Nan { negative, fraction };
            }
            Specials::NegativeZeroNan if negative && field == 0 && fraction == 0 => {
                return Decoded::Nan { negative, fraction };
            }
            Specials::PowersOfTwo if field == top_field => return Decoded::Nan { negative, fraction },
            Specials::PowersOfTwo => {
                return Decoded::Finite { negative, significand: 1, exponent: field as i32 - self.bias };
            }
            _ => {}
        }
        if field == 0 {
            Decoded::Finite { negative, significand: fraction, exponent: self.min_exponent() }
        } else {
            Decoded::Finite {
                negative,
                significand: fraction | 1 << self.fraction_bits,
                exponent: field as i32 - self.bias,
            }
        }
    }

    /// The bit pattern of a value that the format holds exactly.
    ///
    /// What it cannot hold is replaced: an infinity by NaN where there is one, else by the largest
    /// number; a NaN by the largest number in formats without; −0 by +0 in formats without.
    ///
    /// # Panics
    /// In debug builds, if the significand or the exponent is outside the format: round first.
    #[inline]
    pub const fn pack(&self, value: Decoded) -> u64 {
        let (negative, field, fraction) = match value {
            Decoded::Nan { negative, fraction } => match self.specials {
                Specials::Ieee => (negative, (1 << self.exponent_bits) - 1, fraction),
                Specials::NegativeZeroNan => (true, 0, 0),
                Specials::AllOnesNan | Specials::PowersOfTwo => {
                    (negative, (1 << self.exponent_bits) - 1, (1 << self.fraction_bits) - 1)
                }
                Specials::FiniteOnly => return self.pack(self.largest(negative)),
            },
            Decoded::Infinite { negative } => match self.specials {
                Specials::Ieee => (negative, (1 << self.exponent_bits) - 1, 0),
                Specials::FiniteOnly => return self.pack(self.largest(negative)),
                _ => return self.pack(Decoded::Nan { negative, fraction: 0 }),
            },
            Decoded::Finite { negative, significand, exponent } => {
                debug_assert!(significand >> self.fraction_bits <= 1);
                debug_assert!(exponent >= self.min_exponent() && exponent <= self.max_exponent());
                if matches!(self.specials, Specials::PowersOfTwo) {
                    (false, (exponent + self.bias) as u64, 0)
                } else if significand >> self.fraction_bits == 0 {
                    (negative && (significand != 0 || self.has_negative_zero()), 0, significand)
                } else {
                    (negative, (exponent + self.bias) as u64, significand & ((1 << self.fraction_bits) - 1))
                }
            }
        };
        let sign =
            if self.signed { (negative as u64) << (self.exponent_bits + self.fraction_bits) } else { 0 };
        (sign | field << self.fraction_bits | fraction) << self.ignored_low_bits
    }

    /// The fraction field that a NaN of another format has here: aligned at the top, cut off at the
    /// bottom, and the quiet bit alone if nothing remains.
    pub const fn nan_fraction(&self, from: &Format, fraction: u64) -> u64 {
        if self.fraction_bits == 0 {
            return 0;
        }
        let moved = if self.fraction_bits >= from.fraction_bits {
            fraction << (self.fraction_bits - from.fraction_bits)
        } else {
            fraction >> (from.fraction_bits - self.fraction_bits)
        };
        if moved == 0 { 1 << (self.fraction_bits - 1) } else { moved }
    }

    /// The largest finite number of that sign.
    pub const fn largest(&self, negative: bool) -> Decoded {
        Decoded::Finite { negative, significand: self.max_significand(), exponent: self.max_exponent() }
    }
}

impl core::fmt::Display for Format {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name)
    }
}

/// What happens to a result below the smallest normal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subnormals {
    /// It is rounded to a subnormal number.
    Kept,
    /// It becomes a zero.
    Flushed {
        /// How "below the smallest normal number" is decided.
        tiny: Tininess,
        /// Whether the zero keeps the sign of what was flushed; otherwise it is +0.
        sign_kept: bool,
    },
}

/// When a result counts as below the smallest normal number (IEEE 754-2019, section 7.5, has the
/// first two).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tininess {
    /// If it is so before rounding.
    BeforeRounding,
    /// If it is so after rounding as though the exponent had no lower end.
    AfterRounding,
    /// If the number delivered, rounded to the subnormal grid, is subnormal.
    Delivered,
}

/// What happens to a result above the largest finite number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// It becomes infinity, whatever the rounding mode.
    Infinity,
    /// It becomes the largest finite number of its sign.
    Largest,
    /// As IEEE 754-2019, section 7.4: infinity, unless the rounding mode leads back to the largest
    /// finite number (RZ; RU when negative; RD when positive).
    ByRounding,
}

/// Rounding to a format: the grid, the mode, and both ends of the exponent range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTo {
    /// The format whose exponent range and encodings apply.
    pub format: Format,
    /// Fraction bits kept, at most the format's own: 13 in fp32 for FP8 on Hopper.
    pub fraction_bits: u32,
    /// The rounding mode.
    pub rounding: Rounding,
    /// The lower end.
    pub subnormals: Subnormals,
    /// The upper end.
    pub overflow: Overflow,
}

impl RoundTo {
    /// IEEE 754 rounding to nearest, ties to even, with subnormal numbers and infinities.
    pub const fn nearest_even(format: Format) -> RoundTo {
        RoundTo {
            format,
            fraction_bits: format.fraction_bits,
            rounding: Rounding::NearestTiesToEven,
            subnormals: Subnormals::Kept,
            overflow: Overflow::Infinity,
        }
    }

    /// Converts a bit pattern of another format.
    ///
    /// A NaN keeps its sign and as much of its fraction as fits, aligned at the top; if nothing of
    /// it does, the fraction becomes the quiet bit alone.
    pub fn convert(&self, from: &Format, bits: u64) -> u64 {
        let decoded = match from.decode(bits) {
            Decoded::Finite { negative, significand, exponent } => {
                let lsb = exponent - from.fraction_bits as i32;
                self.round(&crate::exact::Term::new(negative, significand as u128, lsb, exponent))
            }
            Decoded::Infinite { negative } => Decoded::Infinite { negative },
            Decoded::Nan { negative, fraction } => {
                Decoded::Nan { negative, fraction: self.format.nan_fraction(from, fraction) }
            }
        };
        self.format.pack(decoded)
    }

    /// Rounds an exact number to a value that the format has.
    ///
    /// A non-zero number that rounds to zero keeps its sign if the format has that zero. An overflow to
    /// infinity is NaN in formats without infinity, and the largest number in those without NaN too.
    pub fn round(&self, term: &crate::exact::Term) -> Decoded {
        let format = &self.format;
        let negative = term.negative;
        let reduced = term.reduced();
        let Some(leading) = reduced.leading_exponent() else {
            return self.zero(negative);
        };
        if !format.signed && negative {
            return self.zero(false);
        }
        let fraction_bits = self.fraction_bits as i32;
        let min_exponent = format.min_exponent();
        if let Subnormals::Flushed { tiny, sign_kept } = self.subnormals {
            let is_tiny = match tiny {
                Tininess::BeforeRounding => leading < min_exponent,
                Tininess::AfterRounding => {
                    let rounded = reduced.to_multiple_of(leading - fraction_bits, negative, self.rounding);
                    leading < min_exponent - 1
                        || leading == min_exponent - 1 && rounded >> (fraction_bits + 1) == 0
                }
                Tininess::Delivered => {
                    leading < min_exponent && {
                        let delivered =
                            reduced.to_multiple_of(min_exponent - fraction_bits, negative, self.rounding);
                        delivered >> fraction_bits == 0
                    }
                }
            };
            if is_tiny {
                return self.zero(negative && sign_kept);
            }
        }
        let mut exponent = leading.max(min_exponent);
        if leading > format.max_exponent() {
            return self.overflowed(negative);
        }
        let mut significand = reduced.to_multiple_of(exponent - fraction_bits, negative, self.rounding);
        if significand >> (fraction_bits + 1) != 0 {
            significand >>= 1;
            exponent += 1;
        }
        let significand = (significand as u64) << (format.fraction_bits - self.fraction_bits);
        if exponent > format.max_exponent()
            || exponent == format.max_exponent() && significand > format.max_significand()
        {
            return self.overflowed(negative);
        }
        if significand == 0 {
            return self.zero(negative);
        }
        Decoded::Finite { negative, significand, exponent }
    }

    /// Whether an overflow of this sign leads back to the largest finite number, whatever the format has beyond it.
    pub(crate) fn overflows_to_largest(&self, negative: bool) -> bool {
        match self.overflow {
            Overflow::Infinity => false,
            Overflow::Largest => true,
            Overflow::ByRounding => match self.rounding {
                Rounding::TowardZero => true,
                Rounding::Up => negative,
                Rounding::Down => !negative,
                _ => false,
            },
        }
    }

    /// What an overflow delivers.
    fn overflowed(&self, negative: bool) -> Decoded {
        if self.overflows_to_largest(negative) {
            return self.largest(negative);
        }
        match self.format.specials {
            Specials::Ieee => Decoded::Infinite { negative },
            Specials::FiniteOnly => self.format.largest(negative),
            _ => Decoded::Nan { negative, fraction: 0 },
        }
    }

    /// The largest finite number on the grid.
    fn largest(&self, negative: bool) -> Decoded {
        let dropped = self.format.fraction_bits - self.fraction_bits;
        Decoded::Finite {
            negative,
            significand: self.format.max_significand() >> dropped << dropped,
            exponent: self.format.max_exponent(),
        }
    }

    /// Zero, or what the format has in its place.
    fn zero(&self, negative: bool) -> Decoded {
        let significand = matches!(self.format.specials, Specials::PowersOfTwo) as u64;
        let negative = negative && self.format.has_negative_zero();
        Decoded::Finite { negative, significand, exponent: self.format.min_exponent() }
    }
}
