//! Showing bit patterns and dot-adds to people.

use std::fmt;

use serde::Serialize;

use crate::model::format::{FP64, RoundTo, Specials};
use crate::model::{Decoded, Format, Term};
use crate::probes::{DotAdd, Signature};

/// A bit pattern as hexadecimal digits of the format's width.
pub fn hex(format: &Format, bits: u64) -> String {
    let digits = (format.bits() + format.ignored_low_bits).div_ceil(4) as usize;
    format!("0x{bits:0digits$x}")
}

/// A bit pattern of a format, as hexadecimal digits of the format's width and as a value: a power of
/// two, or an exact hexadecimal number with its decimal value to 15 digits; NaNs with their fraction.
///
/// ```
/// use mmaprobe::bits::Shown;
/// use mmaprobe::model::format::FP32;
///
/// let shown = |bits| Shown { format: &FP32, bits }.to_string();
/// assert_eq!(shown(0x3f80_0001), "0x3f800001 = 0x1.000002p+0 = 1.00000011920929");
/// assert_eq!(shown(1), "0x00000001 = 2^-149");
/// assert_eq!(shown(0xffc0_0001), "0xffc00001 = -NaN, quiet, fraction 0x400001");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shown<'f> {
    /// The format.
    pub format: &'f Format,
    /// The pattern, in the low bits.
    pub bits: u64,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { format, bits } = *self;
        write!(f, "{} = ", hex(format, bits))?;
        let sign = |negative| if negative { "-" } else { "" };
        match format.decode(bits) {
            Decoded::Nan { negative, fraction } => {
                // FNUZ formats have one NaN, whose pattern is that of −0 elsewhere: no sign.
                let signed = negative && format.specials != Specials::NegativeZeroNan;
                write!(f, "{}NaN", sign(signed))?;
                if format.specials == Specials::Ieee {
                    let quiet = fraction >> (format.fraction_bits - 1) == 1;
                    write!(f, ", {}, fraction {fraction:#x}", if quiet { "quiet" } else { "signalling" })?;
                }
                Ok(())
            }
            Decoded::Infinite { negative } => write!(f, "{}infinity", sign(negative)),
            Decoded::Finite { negative, significand: 0, .. } => write!(f, "{}0", sign(negative)),
            Decoded::Finite { negative, significand, exponent } => {
                let lsb = exponent - format.fraction_bits as i32;
                let term = Term::new(negative, significand.into(), lsb, exponent);
                write!(f, "{}", number(&term))?;
                if significand.is_power_of_two() {
                    return Ok(());
                }
                // Every finite number of every format is an fp64.
                write!(f, " = {}{}", sign(negative), decimal(value(&term).abs()))
            }
        }
    }
}

/// An exact number as a power of two or in hexadecimal: `-2^-24`, `0x1.8p+3`. Of more than 128 bits, the
/// leading ones are shown, with `…` after them.
pub fn number(term: &Term) -> String {
    let sign = if term.negative { "-" } else { "" };
    let reduced = term.reduced();
    let Some(exponent) = reduced.leading_exponent() else { return format!("{sign}0") };
    let fraction = reduced.magnitude << reduced.magnitude.leading_zeros() << 1;
    if fraction == 0 && !reduced.sticky {
        return match exponent {
            0..10 => format!("{sign}{}", 1 << exponent),
            _ => format!("{sign}2^{exponent}"),
        };
    }
    let digits = format!("{fraction:032x}");
    let more = if reduced.sticky { "…" } else { "" };
    format!("{sign}0x1.{}{more}p{exponent:+}", digits.trim_end_matches('0'))
}

/// The fp64 nearest to an exact number.
pub fn value(term: &Term) -> f64 {
    f64::from_bits(FP64.pack(RoundTo::nearest_even(FP64).round(term)))
}

/// A positive number to 15 significant digits, without trailing zeros.
pub fn decimal(value: f64) -> String {
    let scientific = format!("{value:.14e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-5..15).contains(&exponent) {
        let places = (14 - exponent) as usize;
        let plain = format!("{value:.places$}");
        if plain.contains('.') { plain.trim_end_matches('0').trim_end_matches('.').to_owned() } else { plain }
    } else {
        format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A dot-add as JSON has it: bit patterns in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HexDotAdd {
    a: Vec<String>,
    b: Vec<String>,
    c: String,
    sa: Vec<String>,
    sb: Vec<String>,
}

impl HexDotAdd {
    /// The patterns of a dot-add.
    pub fn new(signature: &Signature, dot_add: &DotAdd) -> HexDotAdd {
        let all = |format: &Format, bits: &[u64]| bits.iter().map(|&bits| hex(format, bits)).collect();
        let scale = signature.scale.map_or(signature.c, |scale| scale.format);
        HexDotAdd {
            a: all(&signature.a, &dot_add.a),
            b: all(&signature.b, &dot_add.b),
            c: hex(&signature.c, dot_add.c),
            sa: all(&scale, &dot_add.sa),
            sb: all(&scale, &dot_add.sb),
        }
    }
}

/// A dot-add in full, in lines of at most 80 columns: c, then each product that is not +0·+0, and
/// the scales that are not 1.
#[derive(Clone, Copy, Debug)]
pub struct ShownDotAdd<'q> {
    /// Its shape and formats.
    pub signature: &'q Signature,
    /// The operands.
    pub dot_add: &'q DotAdd,
}

impl fmt::Display for ShownDotAdd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShownDotAdd { signature, dot_add } = *self;
        writeln!(f, "  {:7} {}", "c", Shown { format: &signature.c, bits: dot_add.c })?;
        let mut hidden = 0;
        for (k, (&a, &b)) in dot_add.a.iter().zip(&dot_add.b).enumerate() {
            if (a, b) == (0, 0) {
                hidden += 1;
                continue;
            }
            writeln!(f, "  {:7} {}", format!("a[{k}]"), Shown { format: &signature.a, bits: a })?;
            writeln!(f, "  {:7} {}", format!("b[{k}]"), Shown { format: &signature.b, bits: b })?;
        }
        match (hidden, signature.k) {
            (0, _) => {}
            (hidden, k) if hidden == k => writeln!(f, "  every product is +0 · +0")?,
            (1, _) => writeln!(f, "  the other product is +0 · +0")?,
            (hidden, _) => writeln!(f, "  the other {hidden} products are +0 · +0")?,
        }
        let Some(scale) = &signature.scale else { return Ok(()) };
        let one = scale.format.pack(Decoded::Finite {
            negative: false,
            significand: 1 << scale.format.fraction_bits,
            exponent: 0,
        });
        let mut hidden = 0;
        for (name, scales) in [("sa", &dot_add.sa), ("sb", &dot_add.sb)] {
            for (block, &bits) in scales.iter().enumerate() {
                if bits == one {
                    hidden += 1;
                } else {
                    writeln!(
                        f,
                        "  {:7} {}",
                        format!("{name}[{block}]"),
                        Shown { format: &scale.format, bits }
                    )?;
                }
            }
        }
        match hidden {
            0 => Ok(()),
            hidden if hidden == dot_add.sa.len() + dot_add.sb.len() => writeln!(f, "  every scale is 1"),
            _ => writeln!(f, "  all other scales are 1"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::format::{BF16, E2M1, E3M2, E4M3, E4M3FNUZ, FP16, FP32, TF32, UE8M0};

    #[test]
    fn patterns_are_shown_in_their_width_with_their_value() {
        for (format, bits, shown) in [
            (FP32, 0x8000_0000, "0x80000000 = -0"),
            (FP32, 0xc040_0000, "0xc0400000 = -0x1.8p+1 = -3"),
            (FP32, 0x7f7f_ffff, "0x7f7fffff = 0x1.fffffep+127 = 3.40282346638529e38"),
            (FP32, 0x7f80_0000, "0x7f800000 = infinity"),
            (FP32, 0x7f80_0001, "0x7f800001 = NaN, signalling, fraction 0x1"),
            (FP64, 3, "0x0000000000000003 = 0x1.8p-1073 = 1.48219693752374e-323"),
            (FP16, 0xfc00, "0xfc00 = -infinity"),
            (BF16, 0x4000, "0x4000 = 2"),
            (TF32, 0x3f80_0001, "0x3f800001 = 1"),
            (E4M3, 0xff, "0xff = -NaN"),
            (E4M3FNUZ, 0x80, "0x80 = NaN"),
            (E3M2, 0x3f, "0x3f = -0x1.cp+4 = -28"),
            (E2M1, 0x1, "0x1 = 2^-1"),
            (UE8M0, 0, "0x00 = 2^-127"),
        ] {
            assert_eq!(Shown { format: &format, bits }.to_string(), shown);
        }
    }

    #[test]
    fn no_pattern_needs_more_than_70_columns() {
        for format in Format::ALL {
            for bits in 0..=u16::MAX {
                let bits = u64::from(bits) << (format.bits() + format.ignored_low_bits).saturating_sub(16);
                for low in [0, 0x0007_ffff] {
                    let bits = (bits | low) & format.mask();
                    let shown = Shown { format: &format, bits }.to_string();
                    assert!(shown.len() <= 70, "{shown}");
                }
            }
        }
    }

    #[test]
    fn only_products_that_are_not_zero_are_listed() {
        let signature = Signature { k: 4, a: BF16, b: BF16, c: FP32, d: FP32, scale: None };
        let mut dot_add = DotAdd { a: vec![0; 4], b: vec![0; 4], c: 1, sa: vec![], sb: vec![] };
        let shown = |dot_add: &DotAdd| ShownDotAdd { signature: &signature, dot_add }.to_string();
        assert_eq!(shown(&dot_add), "  c       0x00000001 = 2^-149\n  every product is +0 · +0\n");
        dot_add.b[2] = 0x8000;
        assert_eq!(
            shown(&dot_add),
            "  c       0x00000001 = 2^-149\n  a[2]    0x0000 = 0\n  b[2]    0x8000 = -0\n  \
             the other 3 products are +0 · +0\n"
        );
    }
}
