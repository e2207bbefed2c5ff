//! Operands decoded once: significands and exponents as integer arrays, laid out for lanes.

use alloc::vec::Vec;

use super::lanes::{Int, Lanes};
use crate::format::{Decoded, Format, Specials};
use crate::tree::{InputInfinities, InputSubnormals, Operand, ZeroTerms};

/// The exponent of what has no say in the largest exponent. Two of them still fit, with any real one
/// added; and a summand that stands that far down is shifted out.
pub(super) const NOWHERE: i32 = -(1 << 20);

/// Reads the elements of an operand of at most 32 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    bytes: usize,
    ignored: u32,
    fraction_bits: u32,
    fraction_mask: i32,
    exponent_mask: i32,
    sign_shift: u32,
    bias: i32,
    /// What tells infinities and NaNs: these bits have this value.
    special_mask: i32,
    special_value: i32,
    /// Whether there are infinities among them, where the fraction is zero.
    has_infinity: bool,
    flushed: bool,
    flushed_sign_kept: bool,
    /// The exponent of zeros.
    zero_exponent: i32,
    /// How far significands are shifted to the left.
    shift: u32,
    /// Which bits of a signed significand are kept: all, or the lower half.
    mask: i32,
    /// Whether significands are shifted by their exponents above the smallest: all bits or none.
    fixed: i32,
    min_exponent: i32,
}

/// What an element is, where that decides about infinities, NaNs and the sign of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub negative: bool,
    pub kind: Kind,
}

/// See [`Class`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Zero,
    /// A number: its significand as an integer, and the exponent of the significand's lowest bit.
    Number {
        significand: u64,
        lsb: i32,
    },
    Infinite,
    Nan,
}

impl Reader {
    /// A reader, if the operand's format is one of those that it can read.
    pub fn new(operand: &Operand, zeros: ZeroTerms) -> Option<Reader> {
        let format = &operand.format;
        if !format.signed
            || format.bits() + format.ignored_low_bits > 32
            || format.fraction_bits > 23
            || operand.infinities != InputInfinities::Kept
        {
            return None;
        }
        let fields = format.exponent_bits + format.fraction_bits;
        let exponent_mask = (1 << format.exponent_bits) - 1;
        let magnitude = ((1u64 << fields) - 1) as i32;
        let (special_mask, special_value) = match format.specials {
            Specials::Ieee => (exponent_mask << format.fraction_bits, exponent_mask << format.fraction_bits),
            Specials::AllOnesNan => (magnitude, magnitude),
            Specials::NegativeZeroNan => (magnitude | 1 << fields, 1 << fields),
            // No pattern without bits is 1.
            Specials::FiniteOnly => (0, 1),
            Specials::PowersOfTwo => return None,
        };
        Some(Reader {
            bytes: format.bytes,
            ignored: format.ignored_low_bits,
            fraction_bits: format.fraction_bits,
            fraction_mask: (1 << format.fraction_bits) - 1,
            exponent_mask,
            sign_shift: 31 - fields,
            bias: format.bias,
            special_mask,
            special_value,
            has_infinity: format.has_infinity(),
            flushed: operand.subnormals != InputSubnormals::Kept,
            flushed_sign_kept: operand.subnormals == InputSubnormals::FlushedToSignedZero,
            zero_exponent: match zeros {
                ZeroTerms::Ignored | ZeroTerms::SumsCounted => NOWHERE,
                ZeroTerms::Counted => format.min_exponent(),
                ZeroTerms::CountedAsFp32 => ZeroTerms::FP32_EXPONENT,
            },
            shift: 0,
            mask: -1,
            fixed: 0,
            min_exponent: format.min_exponent(),
        })
    }

    /// The same with significands shifted to the left.
    pub fn shifted(self, shift: u32) -> Reader {
        Reader { shift, ..self }
    }

    /// The same with zeros in the upper halves of significands, as [`Lanes::mul16`] wants one factor.
    pub fn halved(self) -> Reader {
        Reader { mask: 0xffff, ..self }
    }

    /// The same with fixed-point numbers for significands, in units of the smallest subnormal number.
    pub fn fixed(self) -> Reader {
        Reader { fixed: -1, ..self }
    }

    /// Fraction bits of its significands, before the shift.
    pub fn fraction_bits(&self) -> u32 {
        self.fraction_bits
    }

    /// Bytes of an element.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The signed significand, shifted, and the exponent. Infinities and NaNs are zeros here.
    #[inline(always)]
    fn read(&self, bits: i32) -> (i32, i32) {
        let x = ((bits as u32) >> self.ignored) as i32;
        let fraction = x & self.fraction_mask;
        let field = (x >> self.fraction_bits) & self.exponent_mask;
        let normal = i32::from(field != 0);
        let significand = fraction | normal << self.fraction_bits;
        let special = x & self.special_mask == self.special_value;
        let zero = special || significand == 0 || self.flushed && field == 0;
        let exponent = field + 1 - normal - self.bias;
        let shift = self.shift as i32 + ((exponent - self.min_exponent) & self.fixed);
        let significand = if zero { 0 } else { significand << shift };
        let exponent = if zero { self.zero_exponent } else { exponent };
        let sign = (x << self.sign_shift) >> 31;
        (((significand ^ sign) - sign) & self.mask, exponent)
    }

    /// Whether it is an infinity or a NaN.
    #[inline(always)]
    fn is_special(&self, bits: i32) -> bool {
        ((bits as u32) >> self.ignored) as i32 & self.special_mask == self.special_value
    }

    /// Which elements of a vector are NaN, which infinite, and which have a sign.
    #[inline(always)]
    pub fn specials<L: Lanes>(&self, lanes: L, bits: L::W) -> SpecialLanes<L::W> {
        let x = bits.srl(lanes.splat(self.ignored as i32));
        let special = x.and(lanes.splat(self.special_mask)).eq(lanes.splat(self.special_value));
        let infinite = match self.has_infinity {
            true => special.and(x.and(lanes.splat(self.fraction_mask)).eq(lanes.splat(0))),
            false => lanes.splat(0),
        };
        let negative = x.sll(lanes.splat(self.sign_shift as i32)).negative();
        SpecialLanes { nan: special.xor(infinite), infinite, negative }
    }

    /// What an element is.
    pub fn class(&self, bits: i32) -> Class {
        let x = ((bits as u32) >> self.ignored) as i32;
        let fraction = x & self.fraction_mask;
        let field = (x >> self.fraction_bits) & self.exponent_mask;
        let negative = (x << self.sign_shift) < 0;
        if self.is_special(bits) {
            let kind = if self.has_infinity && fraction == 0 { Kind::Infinite } else { Kind::Nan };
            return Class { negative, kind };
        }
        if field == 0 && self.flushed {
            let negative = negative && (self.flushed_sign_kept || fraction == 0);
            return Class { negative, kind: Kind::Zero };
        }
        let significand = (fraction | i32::from(field != 0) << self.fraction_bits) as u64;
        let lsb = field.max(1) - self.bias - self.fraction_bits as i32;
        let kind = if significand == 0 { Kind::Zero } else { Kind::Number { significand, lsb } };
        Class { negative, kind }
    }
}

/// See [`Reader::specials`]: −1 for yes, 0 for no, in each lane.
#[derive(Clone, Copy)]
pub(super) struct SpecialLanes<W> {
    pub nan: W,
    pub infinite: W,
    pub negative: W,
}

/// How a vector of accumulators is taken apart: an IEEE format of at most 32 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unpacker {
    /// The format.
    pub format: Format,
    flushed: bool,
    zero_exponent: i32,
}

/// A vector of accumulators taken apart.
#[derive(Clone, Copy)]
pub(super) struct Unpacked<W> {
    /// Signed significands.
    pub significand: W,
    /// Exponents.
    pub exponent: W,
    /// Whether it is an infinity or a NaN.
    pub special: W,
}

impl Unpacker {
    /// An unpacker, if the format is one of those that it can take apart.
    pub fn new(operand: &Operand, zeros: ZeroTerms) -> Option<Unpacker> {
        let format = operand.format;
        let reader = Reader::new(operand, zeros)?;
        (format.specials == Specials::Ieee && format.ignored_low_bits == 0).then_some(Unpacker {
            format,
            flushed: reader.flushed,
            zero_exponent: reader.zero_exponent,
        })
    }

    /// Takes a vector apart.
    #[inline(always)]
    pub fn unpack<L: Lanes>(&self, lanes: L, bits: L::W) -> Unpacked<L::W> {
        let format = &self.format;
        let fraction_bits = format.fraction_bits as i32;
        let top = (1 << format.exponent_bits) - 1;
        let zero = lanes.splat(0);
        let fields = lanes.splat(top << fraction_bits);
        let field_bits = bits.and(fields);
        let special = field_bits.eq(fields);
        let subnormal = field_bits.eq(zero);
        let fraction = bits.and(lanes.splat((1 << fraction_bits) - 1));
        let hidden = L::W::select(subnormal, zero, lanes.splat(1 << fraction_bits));
        let magnitude = fraction.or(hidden);
        let is_zero = if self.flushed { subnormal } else { magnitude.eq(zero) };
        let magnitude = L::W::select(is_zero, zero, magnitude);
        let field = field_bits.srl(lanes.splat(fraction_bits)).sub(subnormal);
        let exponent = field.sub(lanes.splat(format.bias));
        let exponent = L::W::select(is_zero, lanes.splat(self.zero_exponent), exponent);
        let to_sign = 31 - (format.exponent_bits + format.fraction_bits) as i32;
        let sign = bits.sll(lanes.splat(to_sign)).negative();
        Unpacked { significand: magnitude.xor(sign).sub(sign), exponent, special }
    }
}

/// Rows of an operand, decoded.
///
/// In lanes, each group of N rows has the k-th elements of all of them side by side; else, each row has
/// its elements one after the other. In both cases elements come in the order that the plan says.
#[derive(Clone, Debug, Default)]
pub(super) struct Panel {
    /// The bit patterns.
    pub bits: Vec<i32>,
    /// Signed significands.
    pub significands: Vec<i32>,
    /// Exponents.
    pub exponents: Vec<i32>,
    /// For each row, whether it has an infinity or a NaN: −1 or 0.
    pub special: Vec<i32>,
    /// Exponents of the rows' block scales, in the same layout as elements.
    pub scales: Vec<i32>,
    /// Their significands.
    pub scale_significands: Vec<i32>,
}

/// The exponent that [`scale_parts`] gives a NaN.
pub(super) const NAN_SCALE: i32 = 128;

/// The significand and the exponent of a block scale.
#[inline(always)]
fn scale_parts(format: &Format, bits: u8) -> (i32, i32) {
    match format.decode(bits.into()) {
        Decoded::Finite { significand, exponent, .. } => (significand as i32, exponent),
        _ => (0, NAN_SCALE),
    }
}

/// Reads an element of 1, 2 or 4 bytes.
#[inline(always)]
pub(super) fn element<const BYTES: usize>(array: &[u8], index: usize) -> i32 {
    let bytes: &[u8; BYTES] =
        array[index * BYTES..].first_chunk().expect("as many elements as are asked for");
    match *bytes.as_slice() {
        [x] => x.into(),
        [x, y] => u16::from_le_bytes([x, y]).into(),
        [x, y, z, w, ..] => i32::from_le_bytes([x, y, z, w]),
        _ => 0,
    }
}

impl Panel {
    /// Decodes rows into lanes: `rows` has the index of each row's first element, in groups of N.
    #[inline(always)]
    pub fn fill_lanes(
        &mut self,
        reader: &Reader,
        array: &[u8],
        rows: &[Option<usize>],
        order: &[usize],
        n: usize,
    ) {
        gather_lanes(&mut self.bits, reader.bytes, array, rows, order, n);
        self.decode(reader);
        self.special.clear();
        self.special.resize(rows.len(), 0);
        if self.any_special(reader) {
            for (group, special) in
                self.bits.chunks_exact(n * order.len()).zip(self.special.chunks_exact_mut(n))
            {
                for slot in group.chunks_exact(n) {
                    for (special, &bits) in special.iter_mut().zip(slot) {
                        *special |= -i32::from(reader.is_special(bits));
                    }
                }
            }
        }
    }

    /// Decodes rows one after the other: `rows` of them, whose elements lie so, too.
    #[inline(always)]
    pub fn fill_rows(&mut self, reader: &Reader, array: &[u8], rows: usize, order: &[usize]) {
        let k = order.len();
        self.bits.clear();
        match reader.bytes {
            1 => gather_rows::<1>(&mut self.bits, array, rows, order),
            2 => gather_rows::<2>(&mut self.bits, array, rows, order),
            _ => gather_rows::<4>(&mut self.bits, array, rows, order),
        }
        self.decode(reader);
        self.special.clear();
        self.special.resize(rows, 0);
        if self.any_special(reader) {
            for (special, row) in self.special.iter_mut().zip(self.bits.chunks_exact(k)) {
                *special = -i32::from(row.iter().any(|&bits| reader.is_special(bits)));
            }
        }
    }

    /// Decodes block scales into lanes, like [`fill_lanes`](Panel::fill_lanes).
    #[inline(always)]
    pub fn fill_scales_in_lanes(
        &mut self,
        format: &Format,
        array: &[u8],
        rows: &[Option<usize>],
        blocks: usize,
        n: usize,
    ) {
        self.scales.resize(rows.len() * blocks, 0);
        self.scale_significands.resize(rows.len() * blocks, 0);
        for (group, rows) in rows.chunks_exact(n).enumerate() {
            for block in 0..blocks {
                for (lane, row) in rows.iter().enumerate() {
                    // A row that is not there has no say.
                    let (significand, exponent) =
                        row.map_or((0, 0), |first| scale_parts(format, array[first + block]));
                    let at = (group * blocks + block) * n + lane;
                    self.scales[at] = exponent;
                    self.scale_significands[at] = significand;
                    self.special[group * n + lane] |= -i32::from(exponent == NAN_SCALE);
                }
            }
        }
    }

    /// Decodes block scales, like [`fill_rows`](Panel::fill_rows).
    #[inline(always)]
    pub fn fill_scales(&mut self, format: &Format, array: &[u8], blocks: usize) {
        self.scales.clear();
        self.scales.extend(array.iter().map(|&bits| scale_parts(format, bits).1));
        self.scale_significands.clear();
        self.scale_significands.extend(array.iter().map(|&bits| scale_parts(format, bits).0));
        for (special, row) in self.special.iter_mut().zip(self.scales.chunks_exact(blocks)) {
            *special |= -i32::from(row.contains(&NAN_SCALE));
        }
    }

    #[inline(always)]
    fn decode(&mut self, reader: &Reader) {
        let count = self.bits.len();
        self.significands.resize(count, 0);
        self.exponents.resize(count, 0);
        let reader = *reader;
        let out = self.significands.iter_mut().zip(&mut self.exponents);
        for (&bits, (significand, exponent)) in self.bits.iter().zip(out) {
            (*significand, *exponent) = reader.read(bits);
        }
    }

    #[inline(always)]
    fn any_special(&self, reader: &Reader) -> bool {
        let reader = *reader;
        self.bits.iter().fold(false, |any, &bits| any | reader.is_special(bits))
    }
}

/// The elements of rows, in lanes; those of rows that are not there are zero bits.
#[inline(always)]
pub(super) fn gather_lanes(
    out: &mut Vec<i32>,
    bytes: usize,
    array: &[u8],
    rows: &[Option<usize>],
    order: &[usize],
    n: usize,
) {
    match bytes {
        1 => gather::<1>(out, array, rows, order, n),
        2 => gather::<2>(out, array, rows, order, n),
        _ => gather::<4>(out, array, rows, order, n),
    }
}

#[inline(always)]
fn gather<const BYTES: usize>(
    out: &mut Vec<i32>,
    array: &[u8],
    rows: &[Option<usize>],
    order: &[usize],
    n: usize,
) {
    let in_order = order.iter().copied().eq(0..order.len());
    // What is left from another problem is overwritten, all of it.
    out.resize(rows.len() * order.len(), 0);
    for (group, rows) in out.chunks_exact_mut(n * order.len()).zip(rows.chunks_exact(n)) {
        for (lane, row) in rows.iter().enumerate() {
            let Some(first) = *row else {
                group.iter_mut().skip(lane).step_by(n).for_each(|element| *element = 0);
                continue;
            };
            let row = &array[first * BYTES..][..order.len() * BYTES];
            let slots = group.chunks_exact_mut(n);
            if in_order {
                for (slot, bytes) in slots.zip(row.as_chunks::<BYTES>().0) {
                    slot[lane] = element::<BYTES>(bytes, 0);
                }
            } else {
                for (slot, &k) in slots.zip(order) {
                    slot[lane] = element::<BYTES>(row, k);
                }
            }
        }
    }
}

#[inline(always)]
fn gather_rows<const BYTES: usize>(out: &mut Vec<i32>, array: &[u8], rows: usize, order: &[usize]) {
    let k = order.len();
    out.resize(rows * k, 0);
    if order.iter().copied().eq(0..k) {
        for (out, bytes) in out.iter_mut().zip(array.as_chunks::<BYTES>().0) {
            *out = element::<BYTES>(bytes, 0);
        }
        return;
    }
    for (out, row) in out.chunks_exact_mut(k).zip(array.chunks_exact(k * BYTES)) {
        for (out, &k) in out.iter_mut().zip(order) {
            *out = element::<BYTES>(row, k);
        }
    }
}
