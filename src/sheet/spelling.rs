//! How the model's parameters are spelled in a sheet: short phrases in the field's terms.
//!
//! Each type here displays as its phrase, parses it back, and appears in YAML as that string. A
//! phrase that does not parse gets an error that says what could have stood there.

use std::fmt::{self, Display, Formatter};
use std::marker::PhantomData;
use std::str::FromStr;

use mmaprobe_model::format::{Overflow, RoundTo, Subnormals, Tininess};
use mmaprobe_model::tree::{
    Alignment, Beyond, Carry, Exponents, Far, InputInfinities, InputSubnormals, NanSource, Operand, ZeroTerms,
};
use mmaprobe_model::{Format, Rounding};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::device::Provenance;

/// Exponents beyond this make no sense for any format, and sums of them must not overflow.
const MAX_EXPONENT: i32 = 100_000;

/// A value of the model that a sheet spells as a phrase.
pub trait Spelled: Sized {
    /// Writes the phrase.
    fn spell(&self, f: &mut Formatter<'_>) -> fmt::Result;

    /// Reads the phrase.
    ///
    /// # Errors
    /// A sentence that says what is expected.
    fn read(text: &str) -> Result<Self, String>;
}

/// A [`Spelled`] value, as serde and the standard traits see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phrase<T>(pub T);

impl<T: Spelled> Display for Phrase<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.spell(f)
    }
}

impl<T: Spelled> FromStr for Phrase<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Phrase<T>, String> {
        T::read(text).map(Phrase)
    }
}

impl<T: Spelled> Serialize for Phrase<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T: Spelled> Deserialize<'de> for Phrase<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Phrase<T>, D::Error> {
        // A visitor, not a String that is read afterwards: what fails in here has a position.
        struct Text<T>(PhantomData<T>);

        impl<T: Spelled> Visitor<'_> for Text<T> {
            type Value = Phrase<T>;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Phrase<T>, E> {
                T::read(text).map(Phrase).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text(PhantomData))
    }
}

/// Makes a module for `#[serde(with = "…")]` of a [`Spelled`] type.
macro_rules! with {
    ($(#[$doc:meta])* $module:ident: $type:ty) => {
        $(#[$doc])*
        pub mod $module {
            use super::*;

            /// Writes the phrase.
            pub fn serialize<S: Serializer>(value: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                Phrase(*value).serialize(serializer)
            }

            /// Reads the phrase.
            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                Phrase::deserialize(deserializer).map(|phrase| phrase.0)
            }
        }
    };
}

with!(
    /// Formats by name.
    format: Format
);
with!(
    /// Rounding modes by abbreviation.
    rounding: Rounding
);
with!(
    /// Provenance in one word.
    provenance: Provenance
);
with!(
    /// Operands: the format, and what becomes of subnormal and of infinite elements.
    operand: Operand
);
with!(
    /// What becomes of subnormal results.
    subnormals: Subnormals
);
with!(
    /// What becomes of results that are too large.
    overflow: Overflow
);
with!(
    /// Exponents of summands.
    exponents: Exponents
);
with!(
    /// Zeros in the largest exponent.
    zeros: ZeroTerms
);

/// Spells an enum without contents by a table of words.
macro_rules! words {
    (@list $first:literal $(, $more:literal)*) => { concat!($first $(, ", ", $more)*) };
    ($type:ty, $what:literal, $($variant:path => $word:literal),+ $(,)?) => {
        impl Spelled for $type {
            fn spell(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($variant => $word),+ })
            }

            fn read(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok($variant),)+
                    _ => Err(format!(concat!("unknown ", $what, " `{}`; expected one of: ", words!(@list $($word),+)), text)),
                }
            }
        }
    };
}

words!(Provenance, "provenance",
    Provenance::Measured => "measured",
    Provenance::Recorded => "recorded",
    Provenance::Simulated => "simulated",
    Provenance::Published => "published",
);
words!(Overflow, "overflow",
    Overflow::Infinity => "infinity",
    Overflow::Largest => "largest",
    Overflow::ByRounding => "by-rounding",
);
words!(Exponents, "kind of exponents",
    Exponents::Raw => "raw",
    Exponents::Normalised => "normalised",
);
words!(ZeroTerms, "treatment of zeros",
    ZeroTerms::Ignored => "ignored",
    ZeroTerms::SumsCounted => "sums-counted",
    ZeroTerms::Counted => "counted",
    ZeroTerms::CountedAsFp32 => "counted-as-fp32",
);
words!(Tininess, "tininess",
    Tininess::BeforeRounding => "tiny before rounding",
    Tininess::AfterRounding => "tiny after rounding",
    Tininess::Delivered => "tiny as delivered",
);
words!(InputSubnormals, "treatment of subnormals",
    InputSubnormals::Kept => "subnormals kept",
    InputSubnormals::FlushedToPositiveZero => "subnormals to +0",
    InputSubnormals::FlushedToSignedZero => "subnormals to signed zero",
);
words!(InputInfinities, "treatment of infinities",
    InputInfinities::Kept => "infinities kept",
    InputInfinities::Nan => "infinities to NaN",
    InputInfinities::Largest => "infinities to largest",
);
words!(Beyond, "overflow of a carry",
    Beyond::Wraps => "wraps",
    Beyond::MagnitudeWraps => "magnitude wraps",
    Beyond::Saturates => "saturates",
);
words!(NanSource, "source of a NaN",
    NanSource::A => "a",
    NanSource::B => "b",
    NanSource::Accumulator => "accumulator",
);

impl Spelled for Format {
    fn spell(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }

    fn read(text: &str) -> Result<Format, String> {
        Format::named(text).ok_or_else(|| {
            let names: Vec<&str> = Format::ALL.iter().map(|format| format.name).collect();
            format!("unknown format `{text}`; expected one of: {}", names.join(", "))
        })
    }
}

impl Spelled for Rounding {
    fn spell(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.abbreviation())
    }

    fn read(text: &str) -> Result<Rounding, String> {
        Rounding::from_abbreviation(text).ok_or_else(|| {
            let names: Vec<&str> = Rounding::EVERY.iter().map(|mode| mode.abbreviation()).collect();
            format!("unknown rounding mode `{text}`; expected one of: {}", names.join(", "))
        })
    }
}

/// `bf16`, or `bf16, subnormals to signed zero, infinities to NaN`, or either part of that.
impl Spelled for Operand {
    fn spell(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.format.name)?;
        if self.subnormals != InputSubnormals::Kept {
            write!(f, ", {}", Phrase(self.subnormals))?;
        }
        if self.infinities != InputInfinities::Kept {
            write!(f, ", {}", Phrase(self.infinities))?;
        }
        Ok(())
    }

    fn read(text: &str) -> Result<Operand, String> {
        let mut parts = text.split(", ");
        let mut operand = Operand::plain(Format::read(parts.next().unwrap_or_default())?);
        let mut next = parts.next();
        if let Some(infinities) = next
            && infinities.starts_with("infinities ")
        {
            operand.infinities = InputInfinities::read(infinities)?;
            next = parts.next();
        } else if let Some(subnormals) = next {
            operand.subnormals = InputSubnormals::read(subnormals)?;
            next = parts.next();
            if let Some(infinities) = next {
                operand.infinities = InputInfinities::read(infinities)?;
                next = parts.next();
            }
        }
        match next {
            None => Ok(operand),
            Some(part) => Err(format!(
                "`{part}` is too much in `{text}`; expected a format, then what becomes of subnormals, \
                 then what becomes of infinities"
            )),
        }
    }
}

/// `kept`, or `flushed to +0, tiny before rounding`, or `flushed to signed zero, tiny …`.
impl Spelled for Subnormals {
    fn spell(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Subnormals::Kept => f.write_str("kept"),
            Subnormals::Flushed { tiny, sign_kept } => {
                let zero = if *sign_kept { "signed zero" } else { "+0" };
                write!(f, "flushed to {zero}, {}", Phrase(*tiny))
            }
        }
    }

    fn read(text: &str) -> Result<Subnormals, String> {
        if text == "kept" {
            return Ok(Subnormals::Kept);
        }
        let expected = || {
            format!(
                "unknown treatment of subnormals `{text}`; expected `kept`, `flushed to +0, tiny before rounding` \
                 or `flushed to signed zero, tiny before rounding` (or `after rounding`, or `as delivered`)"
            )
        };
        let (zero, tiny) =
            text.strip_prefix("flushed to ").and_then(|text| text.split_once(", ")).ok_or_else(expected)?;
        let sign_kept = match zero {
            "signed zero" => true,
            "+0" => false,
            _ => return Err(expected()),
        };
        Ok(Subnormals::Flushed { tiny: Tininess::read(tiny)?, sign_kept })
    }
}

/// `F=24, RZ`, or `F=24, RD; RZ if e < e_max - 25`.
impl Spelled for Alignment {
    fn spell(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "F={}, {}", self.fraction_bits, self.rounding)?;
        match self.far {
            None => Ok(()),
            Some(far) => write!(f, "; {} if e < e_max - {}", far.rounding, far.distance),
        }
    }

    fn read(text: &str) -> Result<Alignment, String> {
        let (near, far) = match text.split_once("; ") {
            None => (text, None),
            Some((near, far)) => (near, Some(far)),
        };
        let expected =
            || format!("`{text}` is no alignment; expected `F=24, RZ` or `F=24, RD; RZ if e < e_max - 25`");
        let (fraction_bits, rounding) =
            near.strip_prefix("F=").and_then(|near| near.split_once(", ")).ok_or_else(expected)?;
        let far = far
            .map(|far| {
                let (rounding, distance) = far.split_once(" if e < e_max - ").ok_or_else(expected)?;
                let distance = distance.parse().map_err(|_| expected())?;
                Ok::<_, String>(Far { distance: bounded(distance)?, rounding: Rounding::read(rounding)? })
            })
            .transpose()?;
        Ok(Alignment {
            fraction_bits: fraction_bits.parse().map_err(|_| expected())?,
            rounding: Rounding::read(rounding)?,
            far,
        })
    }
}

/// `3 bits, wraps`, or `3 bits, magnitude wraps`, or `3 bits, saturates`.
impl Spelled for Carry {
    fn spell(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} bits, {}", self.bits, Phrase(self.beyond))
    }

    fn read(text: &str) -> Result<Carry, String> {
        let expected = || {
            format!(
                "`{text}` is no carry; expected `3 bits, wraps`, `3 bits, magnitude wraps` or `3 bits, saturates`"
            )
        };
        let (bits, beyond) = text.split_once(" bits, ").ok_or_else(expected)?;
        let beyond = Beyond::read(beyond).map_err(|_| expected())?;
        match bits.parse() {
            Ok(bits) if bits <= 64 => Ok(Carry { bits, beyond }),
            Ok(bits) => Err(format!("{bits} carry bits are more than the 64 that can be executed")),
            Err(_) => Err(expected()),
        }
    }
}

/// A bit pattern in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits(pub u64);

impl Spelled for Bits {
    fn spell(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }

    fn read(text: &str) -> Result<Bits, String> {
        text.strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .map(Bits)
            .ok_or_else(|| format!("`{text}` is no bit pattern; expected hexadecimal digits after `0x`"))
    }
}

/// Checks that an exponent is one that can be computed with.
///
/// # Errors
/// A sentence that says so.
pub fn bounded(exponent: i32) -> Result<i32, String> {
    if exponent.abs() <= MAX_EXPONENT {
        Ok(exponent)
    } else {
        Err(format!("exponent {exponent} is outside ±{MAX_EXPONENT}"))
    }
}

/// Columns of a paragraph in a sheet.
const PARAGRAPH_WIDTH: usize = 96;

/// Text as a paragraph of several lines; what is read back is one line again.
pub mod paragraph {
    use super::*;

    /// Writes the lines.
    pub fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        // Words stay whole: a line break is a space to the reader.
        let options = textwrap::Options::new(PARAGRAPH_WIDTH)
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
            .word_separator(textwrap::WordSeparator::AsciiSpace);
        serializer.serialize_str(&textwrap::fill(&one_line(text), options))
    }

    /// Reads the lines.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        String::deserialize(deserializer).map(|text| one_line(&text))
    }

    fn one_line(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A short name of a rounding to a format, for labels: `fp32 RZ`, `fp32 (13 bits) RZ`.
pub fn short(round: &RoundTo) -> String {
    if round.fraction_bits == round.format.fraction_bits {
        format!("{} {}", round.format, round.rounding)
    } else {
        format!("{} ({} bits) {}", round.format, round.fraction_bits, round.rounding)
    }
}
