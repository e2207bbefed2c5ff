//! Taking bit patterns apart.

use alloc::vec::Vec;

use crate::format::{Decoded, Format, Specials};

const NOTHING: Decoded = Decoded::Infinite { negative: false };

/// A [`Format`], with what its specials look like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decoder {
    format: Format,
    mask: u64,
    fraction_mask: u64,
    field_mask: u64,
    /// Where the sign is, behind the ignored bits; beyond the pattern, if there is none.
    sign: u32,
    /// What has these bits equal to this value is decoded by the format itself.
    special: (u64, u64),
}

impl Decoder {
    pub fn new(format: Format) -> Decoder {
        let fields = format.exponent_bits + format.fraction_bits;
        let magnitude = (1 << fields) - 1;
        let fraction_mask = (1 << format.fraction_bits) - 1;
        Decoder {
            mask: format.mask(),
            fraction_mask,
            field_mask: (1 << format.exponent_bits) - 1,
            sign: if format.signed { fields } else { 63 },
            special: match format.specials {
                Specials::Ieee => (magnitude - fraction_mask, magnitude - fraction_mask),
                Specials::AllOnesNan => (magnitude, magnitude),
                Specials::NegativeZeroNan => (magnitude | 1 << fields, 1 << fields),
                // No pattern without bits is 1; all are 0.
                Specials::FiniteOnly => (0, 1),
                Specials::PowersOfTwo => (0, 0),
            },
            format,
        }
    }

    /// As [`Format::decode`].
    pub fn decode(&self, bits: u64) -> Decoded {
        let mut decoded = NOTHING;
        self.decode_into(bits, &mut decoded);
        decoded
    }

    /// Takes elements apart.
    pub fn decode_all(&self, elements: &[u64], into: &mut Vec<Decoded>) {
        into.resize(elements.len(), NOTHING);
        for (&bits, decoded) in elements.iter().zip(into) {
            self.decode_into(bits, decoded);
        }
    }

    #[inline]
    fn decode_into(&self, bits: u64, decoded: &mut Decoded) {
        let x = (bits & self.mask) >> self.format.ignored_low_bits;
        if x & self.special.0 == self.special.1 {
            *decoded = self.format.decode(bits);
            return;
        }
        let field = x >> self.format.fraction_bits & self.field_mask;
        let normal = u64::from(field != 0);
        // In place: what is put together elsewhere and moved is waited for.
        *decoded = Decoded::Finite {
            negative: x >> self.sign & 1 == 1,
            significand: x & self.fraction_mask | normal << self.format.fraction_bits,
            exponent: field as i32 + 1 - normal as i32 - self.format.bias,
        };
    }
}
