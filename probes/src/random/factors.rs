//! Encoding the rows of a factor from random words, in the vectors that the machine has.

use multiversion::multiversion;

use super::encoder::Encoder;

/// The fractions of a problem's operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fractions {
    /// All bits random.
    Random,
    /// 0 to 3 bits, or all ones.
    Few,
}

impl Fractions {
    /// A fraction of so many bits, aligned at the top of the word; of few bits, it leaves the lowest nine of
    /// `random` alone.
    #[inline(always)]
    pub fn from(self, random: u64, fraction_bits: u32) -> u64 {
        match self {
            Fractions::Random => random,
            Fractions::Few => few(random, fraction_bits.max(1).into()),
        }
    }
}

/// Without branches: nobody could foresee them, and vectors have none.
#[inline(always)]
fn few(random: u64, width: u64) -> u64 {
    let kind = random >> 61;
    let below = |n: u64, skipped: u32| ((random >> (9 + 8 * skipped) & 0xff) * n) >> 8;
    let bit = |least: u64, position: u64| u64::from(kind >= least) << (63 - position);
    let bits = bit(4, below(width, 0)) | bit(5, below(width, 1)) | bit(6, below(width, 2));
    // All ones, or all but the lowest.
    let ones = u64::MAX << (64 - width) << u64::from(below(3, 0) == 2);
    if kind == 7 { ones } else { bits }
}

/// What the elements of each column of a factor share.
pub(super) struct FactorColumns {
    exponents: Vec<i64>,
    /// The bits of fractions that are random.
    random: Vec<u64>,
    /// Fractions that are not.
    fixed: Vec<u64>,
    spread: i32,
    fractions: Fractions,
}

impl FactorColumns {
    /// Columns from their exponents before jitter, and their fractions where these are not random.
    pub fn new(
        columns: impl Iterator<Item = (i32, Option<u64>)> + Clone,
        spread: i32,
        fractions: Fractions,
    ) -> FactorColumns {
        FactorColumns {
            exponents: columns.clone().map(|(exponent, _)| exponent.into()).collect(),
            random: columns.clone().map(|(_, fixed)| if fixed.is_some() { 0 } else { u64::MAX }).collect(),
            fixed: columns.map(|(_, fixed)| fixed.unwrap_or(0)).collect(),
            spread,
            fractions,
        }
    }

    /// Appends rows of elements, of which each is drawn from one word: the sign from its lowest bit, jitter
    /// of the exponent from the next eight, the fraction from the top. (Formats have at most 52 fraction
    /// bits.)
    pub fn encode(&self, encoder: &Encoder, words: &[u64], out: &mut Vec<u64>) {
        let first = out.len();
        out.resize(first + words.len(), 0);
        match self.fractions {
            Fractions::Random => encode_random(self, encoder, words, &mut out[first..]),
            Fractions::Few => encode_few(self, encoder, words, &mut out[first..]),
        }
    }

    #[inline(always)]
    fn encode_rows(&self, encoder: &Encoder, fractions: Fractions, words: &[u64], out: &mut [u64]) {
        let (encoder, range) = (*encoder, i64::from(self.spread) + 1);
        let k = self.exponents.len();
        let (exponents, random, fixed) = (&self.exponents[..k], &self.random[..k], &self.fixed[..k]);
        for (words, out) in words.chunks_exact(k).zip(out.chunks_exact_mut(k)) {
            // By index, which compilers turn into vectors.
            for column in 0..k {
                let word = words[column];
                let jitter = ((word >> 1 & 0xff) as i64 * range) >> 8;
                let fraction = fractions.from(word, encoder.format.fraction_bits);
                let fraction = fraction & random[column] | fixed[column];
                out[column] = encoder.number_64(word & 1, exponents[column] + jitter, fraction);
            }
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn encode_random(columns: &FactorColumns, encoder: &Encoder, words: &[u64], out: &mut [u64]) {
    columns.encode_rows(encoder, Fractions::Random, words, out);
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn encode_few(columns: &FactorColumns, encoder: &Encoder, words: &[u64], out: &mut [u64]) {
    columns.encode_rows(encoder, Fractions::Few, words, out);
}
