//! Random questions: seven named distributions over whole matrix problems.
//!
//! Uniformly random bits seldom meet what tells two units apart: exponents are hundreds apart, so
//! that one summand is the whole sum. Each [`Distribution`] puts the operands where one kind of
//! mistake lives, for every element d\[i\]\[j\] of a problem, whose rows and columns are shared.
//! Exponents are therefore drawn for each k: what a column of A gains, the row of B loses.
//!
//! ```
//! use mmaprobe_probes::random::{self, Distribution};
//! use mmaprobe_probes::Signature;
//! use mmaprobe_model::format::{BF16, FP32};
//! use rand_core::SeedableRng;
//!
//! let signature = Signature { k: 4, a: BF16, b: BF16, c: FP32, d: FP32, scale: None };
//! let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(7);
//! let question = random::dot_add(Distribution::Ties, &signature, &mut rng);
//! assert_eq!(question.a.len(), 4);
//! ```

mod dice;
mod encoder;
mod exponents;
mod factors;
mod specials;

use rand_core::Rng;

use crate::{DotAdd, Edition, Signature};
use dice::{Dice, Word};
use encoder::Encoder;
use exponents::{Column, Exponents, Reach};
use factors::{FactorColumns, Fractions};

/// A way to draw a problem at random.
///
/// In each, a part of the problems is *sparse*: of every row of A, or of every column of B, all but
/// a few elements are zero, so that single summands decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Distribution {
    /// Every bit of every operand is random. In three problems of four, NaNs and infinities are
    /// replaced by the numbers with the top exponent bit cleared: with many products nearly every
    /// element of D would be NaN otherwise. A quarter is sparse.
    UniformBits,
    /// The exponents of all products and of c lie within a window of 0 to 60 binades (width and
    /// position are random, the latter over the range of d, half of the time near 2^0), as far as the
    /// formats reach; block scales add up to 8. Signs are random, and so are fractions, but for a
    /// quarter of the problems, where they are as in [`Ties`](Distribution::Ties). A quarter is sparse.
    NearExponents,
    /// Sums cancel but for a small rest. Products come in pairs along k, b = −b′ and a a few units in
    /// the last place from a′ (the factors of one possibly moved by opposite powers of two); or c is
    /// minus the dot product, truncated and nudged by a few units; or both. An eighth is sparse.
    Cancellation,
    /// Significands have 0 to 3 bits besides the leading one, or are all ones; exponents are equal or
    /// as far apart as a cut point lies (d's precision, widths known from hardware, or random) so
    /// that sums fall on the middle between two numbers or right beside it. Half is sparse.
    Ties,
    /// Around the smallest normal numbers: operands subnormal or nearly, products near or below the
    /// smallest normal number of d, c subnormal, zero, or a few units from the smallest normal number
    /// with products too small to be seen. Half is sparse.
    Subnormals,
    /// Infinities, NaNs (quiet, signalling, random payloads, both signs), zeros of both signs and
    /// largest numbers strewn among ordinary values and values near overflow, few enough that not all
    /// of D is NaN; or zeros of both signs only. A quarter is sparse.
    Specials,
    /// All products have one sign, and c mostly has it, too, with exponents that are the same or within four binades, so that
    /// sums are larger than any summand by as much as they can be: K products of significands below 2 add up to 4·K, less a
    /// little, which needs log2(K) + 2 bits above the largest exponent for carries. In half of the problems all significands
    /// are all ones, but for the last two bits in some; in the others they are random. An eighth is sparse.
    OneSign,
}

impl Distribution {
    /// Every distribution.
    pub const ALL: [Distribution; 7] = [
        Distribution::UniformBits,
        Distribution::NearExponents,
        Distribution::Cancellation,
        Distribution::Ties,
        Distribution::Subnormals,
        Distribution::Specials,
        Distribution::OneSign,
    ];

    /// Those that devices are asked from in an edition of the questions, in order.
    pub fn asked_in(edition: Edition) -> &'static [Distribution] {
        let first = if edition >= Edition::Third { 7 } else { 6 };
        &Self::ALL.as_slice()[..first]
    }

    /// The name used on the command line and in sheets.
    pub const fn name(self) -> &'static str {
        match self {
            Distribution::UniformBits => "uniform-bits",
            Distribution::NearExponents => "near-exponents",
            Distribution::Cancellation => "cancellation",
            Distribution::Ties => "ties",
            Distribution::Subnormals => "subnormals",
            Distribution::Specials => "specials",
            Distribution::OneSign => "one-sign",
        }
    }

    /// The distribution of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Distribution> {
        Distribution::ALL.into_iter().find(|distribution| distribution.name() == name)
    }
}

impl std::fmt::Display for Distribution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The operands of one problem as bit patterns, in the order of the device protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrices {
    /// m·k elements, row by row.
    pub a: Vec<u64>,
    /// k·n elements, column by column: each column's k elements together.
    pub b: Vec<u64>,
    /// m·n elements, row by row.
    pub c: Vec<u64>,
    /// m·(k/block) scales, row by row.
    pub sa: Vec<u64>,
    /// n·(k/block) scales, column by column.
    pub sb: Vec<u64>,
}

/// One random question: an m = n = 1 problem.
pub fn dot_add(distribution: Distribution, signature: &Signature, rng: &mut (impl Rng + ?Sized)) -> DotAdd {
    let mut matrices = Matrices::default();
    Generator::new(1, 1, signature).fill(distribution, rng, &mut matrices);
    DotAdd { a: matrices.a, b: matrices.b, c: matrices.c[0], sa: matrices.sa, sb: matrices.sb }
}

/// Draws problems of one shape.
///
/// It keeps scratch space between calls. What it draws depends on the shape, the distribution and
/// the random numbers alone.
#[derive(Clone, Debug)]
pub struct Generator {
    m: usize,
    n: usize,
    k: usize,
    a: Encoder,
    b: Encoder,
    c: Encoder,
    d: Encoder,
    scale: Option<(Encoder, usize)>,
    columns: Vec<Column>,
    a_values: Vec<f64>,
    b_values: Vec<f64>,
    words: Vec<u64>,
}

impl Generator {
    /// A generator of m×n problems.
    pub fn new(m: usize, n: usize, signature: &Signature) -> Generator {
        Generator {
            m,
            n,
            k: signature.k,
            a: Encoder::new(signature.a),
            b: Encoder::new(signature.b),
            c: Encoder::new(signature.c),
            d: Encoder::new(signature.d),
            scale: signature.scale.map(|scale| (Encoder::new(scale.format), signature.scales())),
            columns: Vec::new(),
            a_values: Vec::new(),
            b_values: Vec::new(),
            words: Vec::new(),
        }
    }

    /// Draws one problem into `out`, whose contents are replaced.
    pub fn fill(&mut self, distribution: Distribution, rng: &mut (impl Rng + ?Sized), out: &mut Matrices) {
        for array in [&mut out.a, &mut out.b, &mut out.c, &mut out.sa, &mut out.sb] {
            array.clear();
        }
        let dice = &mut Dice(rng);
        match distribution {
            Distribution::UniformBits => self.uniform_bits(dice, out),
            Distribution::NearExponents => self.near_exponents(dice, out),
            Distribution::Cancellation => self.cancellation(dice, out),
            Distribution::Ties => self.ties(dice, out),
            Distribution::Subnormals => self.subnormals(dice, out),
            Distribution::Specials => self.specials(dice, out),
            Distribution::OneSign => self.one_sign(dice, out),
        }
        if distribution != Distribution::UniformBits {
            self.fill_ignored(dice, out);
        }
    }

    fn uniform_bits<R: Rng + ?Sized>(&mut self, dice: &mut Dice<R>, out: &mut Matrices) {
        let finite = dice.chance(3, 4);
        let blocks = self.scale.map_or(0, |(_, blocks)| blocks);
        let scale = self.scale.map_or(self.c, |(scale, _)| scale);
        for (array, count, encoder) in [
            (&mut out.a, self.m * self.k, &self.a),
            (&mut out.b, self.n * self.k, &self.b),
            (&mut out.c, self.m * self.n, &self.c),
            (&mut out.sa, self.m * blocks, &scale),
            (&mut out.sb, self.n * blocks, &scale),
        ] {
            let width = encoder.format.bits() + encoder.format.ignored_low_bits;
            let per_word = (64 / width).max(1) as usize;
            let mut word = 0;
            array.extend((0..count).map(|index| {
                word = if index % per_word == 0 { dice.bits() } else { word >> width };
                let bits = encoder.pattern(word);
                if finite { encoder.made_finite(bits) } else { bits }
            }));
        }
        if dice.chance(1, 4) {
            self.make_sparse(dice, out);
        }
    }

    fn near_exponents<R: Rng + ?Sized>(&mut self, dice: &mut Dice<R>, out: &mut Matrices) {
        let widest = dice.pick(&[2, 8, 30, 60]);
        let window = dice.between(0, widest);
        let target = self.ordinary_target(dice, window);
        let fractions = if dice.chance(1, 4) { Fractions::Few } else { Fractions::Random };
        let exponents = self.exponents(dice, target, Reach::NORMAL, window / 2);
        self.fill_factors(dice, out, &exponents, fractions);
        if dice.chance(1, 4) {
            self.make_sparse(dice, out);
        }
        let top = exponents.sum;
        self.fill_c(dice, out, |generator, dice| {
            let (mut word, fraction) = generator.fraction(dice, fractions, &generator.c);
            let negative = word.coin();
            generator.c.number(negative, word.between(top, top + window), fraction)
        });
    }

    fn cancellation<R: Rng + ?Sized>(&mut self, dice: &mut Dice<R>, out: &mut Matrices) {
        let widest = dice.pick(&[4, 12, 30]);
        let window = dice.between(0, widest);
        let target = self.ordinary_target(dice, window);
        let mut exponents = self.exponents(dice, target, Reach::NORMAL, window / 2);
        exponents.scales_alike = dice.chance(3, 4);
        self.fill_factors(dice, out, &exponents, Fractions::Random);
        let paired = self.k > 1 && dice.chance(2, 3);
        if paired {
            self.cancel_pairs(dice, out);
        }
        if dice.chance(1, 8) {
            self.make_sparse(dice, out);
        }
        if !paired || dice.chance(1, 2) {
            self.cancel_with_c(dice, out, exponents.sum);
        } else {
            // As large as what the pairs leave.
            let rest = exponents.sum - self.a.format.fraction_bits as i32;
            self.fill_c(dice, out, |generator, dice| {
                let random = dice.bits();
                let mut word = Word(random);
                let negative = word.coin();
                if word.below(8) == 0 {
                    generator.c.zero(negative)
                } else {
                    generator.c.number(negative, word.between(rest - 4, rest + window + 4), random)
                }
            });
        }
    }

    /// Makes products cancel in pairs: b′ = −b, a′ ≈ a.
    fn cancel_pairs<R: Rng + ?Sized>(&mut self, dice: &mut Dice<R>, out: &mut Matrices) {
        // Partners are next to each other, half of K apart, or some power of two between.
        let half = self.k / 2;
        let power_of_two = 1 << dice.below(half.ilog2() + 1);
        let distance = dice.pick(&[1, half, power_of_two]);
        let farthest_nudge = i64::from(dice.pick(&[1u32, 1, 3, 8]));
        let moved = dice.chance(1, 4);
        for first in
            (0..self.k).filter(|first| (first / distance).is_multiple_of(2) && first + distance < self.k)
        {
            let second = first + distance;
            let power = if moved { dice.between(-2, 2) } else { 0 };
            for row in out.a.chunks_exact_mut(self.k) {
                let steps = i64::from(dice.below(2 * farthest_nudge as u32 + 1)) - farthest_nudge;
                let nudged = self.a.nudged(row[first], steps);
                row[second] = if moved { self.a.scaled(nudged, power) } else { nudged };
            }
            for column in out.b.chunks_exact_mut(self.k) {
                let negated = self.b.negated(column[first]);
                column[second] = if moved { self.b.scaled(negated, -power) } else { negated };
            }
        }
    }

    /// Makes c cancel the dot product; where that is zero or no number, c is near 2^`top`.
    fn cancel_with_c<R: Rng + ?Sized>(&mut self, dice: &mut Dice<R>, out: &mut Matrices, top: i32) {
        // Precise enough for all but fp64, where the dot product's own rounding errors are the rest.
        values(&self.a, self.scale.as_ref(), self.k, &out.a, &out.sa, &mut self.a_values);
        values(&self.b, self.scale.as_ref(), self.k, &out.b, &out.sb, &mut self.b_values);
        // In a third of the problems only the leading bits cancel.
        let bits_cancelled = if dice.chance(1, 3) { dice.below(40) + 1 } else { 64 };
        let mask = u64::MAX << (64 - bits_cancelled);
        let nudged = dice.chance(3, 4);
        for row in self.a_values.chunks_exact(self.k) {
            for column in self.b_values.chunks_exact(self.k) {
                // Four sums side by side, as one would wait for each of its additions.
                let mut sums = [0.0; 4];
                let ((a, a_rest), (b, b_rest)) = (row.as_chunks::<4>(), column.as_chunks::<4>());
                for (a, b) in a.iter().zip(b) {
                    for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                        *sum += a * b;
                    }
                }
                for (sum, (a, b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
                    *sum += a * b;
                }
                let dot: f64 = (sums[0] + sums[1]) + (sums[2] + sums[3]);
                let random = dice.bits();
                let mut word = Word(random);
                let c = match self.c.truncated(-dot, mask) {
                    Some(c) if nudged => self.c.nudged(c, i64::from(word.below(7)) - 3),
                    Some(c) => c,
                    None => self.c.number(word.coin(), top, random),
                };
                out.c.push(c);
            }
        }
    }

    fn ties<R: Rng + ?Sized>(&mut self, dice: &mut Dice<R>, out: &mut Matrices) {
        // Where sums are cut: d's precision, or a width that hardware is known to have (MMA-Sim paper,
        // Table VII; facts on later architectures), or anything.
        let cut = match dice.below(8) {
            0..4 => self.d.format.fraction_bits as i32,
            4..7 => dice.pick(&[10, 13, 23, 24, 25, 31, 35]),
            _ => dice.between(0, 60),
        };
        let target = self.ordinary_target(dice, 1);
        let mut exponents = self.exponents(dice, target, Reach::NORMAL, 0);
        exponents.scales_alike = dice.chance(3, 4);
        exponents.scales_plain = dice.chance(1, 2);
        // Who stands highest: anyone; c alone; one product alone. Summands below one that stands alone
        // are bare powers of two, which sum up to a tie in about half of the cases.
        let highest = dice.below(4);
        let alone = dice.below(self.k as u32) as usize;
        for (k, column) in self.columns.iter_mut().enumerate() {
            let below = highest == 1 || highest == 2 && k != alone;
            let offset = if below {
                cut + 1 - dice.pick(&[0, 0, 1])
            } else {
                offset_of_tie(&mut Word(dice.bits()), cut)
            };
            column.lower(dice, if highest == 2 && k == alone { 0 } else { offset }, &self.a, &self.b);
            // (1 + 2^−x)(1 + 2^−y) has its lowest bit at the cut.
            let x = dice.between(1, self.a.format.fraction_bits as i32);
            let y = cut + 1 - x;
            let is_tie = (1..=self.b.format.fraction_bits as i32).contains(&y);
            column.fractions = match () {
                () if below => Some((0, 0)),
                () if is_tie && dice.chance(1, 2) => Some((bit(x), bit(y))),
                () => None,
            };
        }
        self.fill_factors(dice, out, &exponents, Fractions::Few);
        if dice.chance(1, 2) {
            self.make_sparse(dice, out);
        }
        let top = exponents.sum;
        self.fill_c(dice, out, |generator, dice| {
            let mut word = Word(dice.bits());
            let negative = word.coin();
            if highest == 2 {
                return generator.c.number(negative, top - cut - 1, 0);
            }
            let odd = word.coin();
            let exponent = if highest == 1 { top } else { top - offset_of_tie(&mut word, cut) };
            let (_, mut fraction) = generator.fraction(dice, Fractions::Few, &generator.c);
            if odd {
                // An odd significand: ties to even and to odd differ from those toward or from zero.
                fraction ^= bit(generator.c.format.fraction_bits as i32);
            }
            generator.c.number(negative, exponent, fraction)
        });
    }

    fn subnormals<R: Rng + ?Sized>(&mut self, dice: &mut Dice<R>, out: &mut Matrices) {
        let (d_min, d_quantum) = (self.d.min, self.d.quantum);
        let edge = dice.between(d_quantum - 3, d_min + 2);
        // Whether c stands at the smallest normal number and the products are too small to be seen.
        let mut c_at_edge = false;
        let (target, reach) = match dice.below(5) {
            0 => (edge, Reach::NORMAL),
            1 => (edge, Reach { a_subnormal: true, b_subnormal: false }),
            2 => (edge, Reach { a_subnormal: false, b_subnormal: true }),
            3 => (d_min - 2048, Reach { a_subnormal: true, b_subnormal: true }),
            _ => {
                c_at_edge = true;
                (dice.between(d_quantum - 6, d_quantum + 1), Reach::NORMAL)
            }
        };
        let spread = dice.between(0, 4);
        let fractions = if dice.chance(1, 2) { Fractions::Few } else { Fractions::Random };
        let exponents = self.exponents(dice, target, reach, spread);
        self.fill_factors(dice, out, &exponents, fractions);
        if dice.chance(1, 2) {
            self.make_sparse(dice, out);
        }
        let top = exponents.sum;
        self.fill_c(dice, out, |generator, dice| {
            let c = &generator.c;
            let (mut word, fraction) = generator.fraction(dice, fractions, c);
            let negative = word.coin();
            match word.0 & 3 {
                _ if c_at_edge => c.nudged(c.number(negative, c.min, 0), i64::from(word.below(5)) - 2),
                0 => c.zero(negative),
                kind => {
                    word.0 >>= 2;
                    match kind {
                        1 => c.number(negative, word.between(c.quantum, c.min - 1), fraction),
                        2 => c.number(negative, word.between(top, top + 2 * spread), fraction),
                        _ => c.nudged(c.number(negative, c.min, 0), i64::from(word.below(9)) - 4),
                    }
                }
            }
        });
    }

    fn specials<R: Rng + ?Sized>(&mut self, dice: &mut Dice<R>, out: &mut Matrices) {
        let near_overflow = dice.chance(1, 2);
        let target =
            if near_overflow { dice.between(self.d.max - 4, self.d.max + 1) } else { dice.between(-4, 4) };
        let exponents = self.exponents(dice, target, Reach::NORMAL, 1);
        let fractions = if dice.chance(1, 2) { Fractions::Few } else { Fractions::Random };
        self.fill_factors(dice, out, &exponents, fractions);
        if dice.chance(1, 4) {
            self.make_sparse(dice, out);
        }
        let top = exponents.sum;
        self.fill_c(dice, out, |generator, dice| {
            let (mut word, fraction) = generator.fraction(dice, fractions, &generator.c);
            let negative = word.coin();
            generator.c.number(negative, word.between(top - 1, top + 2), fraction)
        });
        if dice.chance(1, 8) {
            self.make_zero(dice, out);
        } else {
            self.strew(dice, out);
        }
    }

    fn one_sign<R: Rng + ?Sized>(&mut self, dice: &mut Dice<R>, out: &mut Matrices) {
        let window = if dice.chance(1, 4) { dice.between(1, 4) } else { 0 };
        let target = self.ordinary_target(dice, window);
        let mut exponents = self.exponents(dice, target, Reach::NORMAL, window / 2);
        exponents.scales_alike = dice.chance(3, 4);
        self.fill_factors(dice, out, &exponents, Fractions::Random);
        let is_full = dice.chance(1, 2);
        // The last bits that may be zero in a significand that is all ones otherwise.
        let last_bits = if dice.chance(1, 2) { 0b11 } else { 0 };
        let signs = [dice.chance(1, 2), dice.chance(1, 2)];
        for (array, encoder, negative) in [(&mut out.a, &self.a, signs[0]), (&mut out.b, &self.b, signs[1])] {
            for element in &mut *array {
                if is_full {
                    *element = encoder.full(*element, dice.bits() & last_bits);
                }
                *element = encoder.with_sign(*element, negative);
            }
        }
        if dice.chance(1, 8) {
            self.make_sparse(dice, out);
        }
        let top = exponents.sum;
        let negative = signs[0] != signs[1];
        self.fill_c(dice, out, |generator, dice| {
            let mut word = Word(dice.bits());
            let negative = negative != (word.below(8) == 0);
            let exponent = if word.coin() { top } else { word.between(top - 2, top + 2 + window) };
            let c = generator.c.number(negative, exponent, dice.bits());
            if is_full { generator.c.full(c, dice.bits() & last_bits) } else { c }
        });
    }

    /// A target for the exponents of products: wherever d and the factors reach, or near 2^0; far enough
    /// from overflow for sums to stay finite when exponents are raised by up to `window`.
    fn ordinary_target<R: Rng + ?Sized>(&self, dice: &mut Dice<R>, window: i32) -> i32 {
        let headroom = 3 + self.k.ilog2() as i32 + window;
        let (scale_min, scale_max) = self.scale.map_or((0, 0), |(scale, _)| (scale.min, scale.max));
        let low = self.d.min.max(self.a.min + self.b.min + 2 * scale_min);
        let high = (self.d.max - headroom).min(self.a.max + self.b.max + 2 * scale_max).max(low);
        if dice.chance(1, 2) { dice.between(-8, 8).clamp(low, high) } else { dice.between(low, high) }
    }

    /// Draws A, B and the scales.
    fn fill_factors<R: Rng + ?Sized>(
        &mut self,
        dice: &mut Dice<R>,
        out: &mut Matrices,
        exponents: &Exponents,
        fractions: Fractions,
    ) {
        let Generator { words, .. } = self;
        for (array, rows, encoder, of_a) in
            [(&mut out.a, self.m, &self.a, true), (&mut out.b, self.n, &self.b, false)]
        {
            words.clear();
            words.extend((0..rows * self.k).map(|_| dice.bits()));
            let columns = self.columns.iter().map(|column| match (of_a, column.fractions) {
                (true, fractions) => (column.a, fractions.map(|pair| pair.0)),
                (false, fractions) => (column.b, fractions.map(|pair| pair.1)),
            });
            let columns = FactorColumns::new(columns, exponents.spread, fractions);
            columns.encode(encoder, words, array);
        }
        let Some((scale, blocks)) = &self.scale else { return };
        for (array, rows, exponent) in
            [(&mut out.sa, self.m, exponents.sa), (&mut out.sb, self.n, exponents.sb)]
        {
            for _ in 0..rows {
                let mut draw = || {
                    let fraction = if exponents.scales_plain { 0 } else { dice.bits() };
                    scale.number(false, exponent + dice.between(0, exponents.spread.min(4)), fraction)
                };
                let first = draw();
                array.push(first);
                array.extend((1..*blocks).map(|_| if exponents.scales_alike { first } else { draw() }));
            }
        }
    }

    /// Draws C, element by element.
    fn fill_c<R: Rng + ?Sized>(
        &self,
        dice: &mut Dice<R>,
        out: &mut Matrices,
        mut draw: impl FnMut(&Generator, &mut Dice<R>) -> u64,
    ) {
        out.c.extend((0..self.m * self.n).map(|_| draw(self, dice)));
    }

    /// Sets all but a few elements of every row of A, or of every column of B, to zero, and half of C
    /// where it has been drawn already.
    fn make_sparse<R: Rng + ?Sized>(&self, dice: &mut Dice<R>, out: &mut Matrices) {
        let signed = dice.chance(1, 2);
        let live = 1 + dice.below(3.min(self.k as u32));
        let of_a = dice.chance(1, 2);
        let (array, encoder) = if of_a { (&mut out.a, &self.a) } else { (&mut out.b, &self.b) };
        let zeros = [encoder.zero(false), encoder.zero(signed)];
        // One word for three elements: 20 bits decide about each, one is its sign.
        let threshold = ((live << 20) / (self.k as u32 + 1)).into();
        for elements in array.chunks_mut(3) {
            let mut random = dice.bits();
            for element in elements {
                let zero = zeros[(random & 1) as usize];
                *element = if (random >> 1 & 0xf_ffff) < threshold { *element } else { zero };
                random >>= 21;
            }
        }
        let zeros = [self.c.zero(false), self.c.zero(signed)];
        for elements in out.c.chunks_mut(32) {
            let mut random = dice.bits();
            for element in elements {
                let zero = zeros[(random & 1) as usize];
                *element = if random & 2 == 0 { *element } else { zero };
                random >>= 2;
            }
        }
    }

    /// In a quarter of the problems, draws the low bits that a format is said to ignore.
    fn fill_ignored<R: Rng + ?Sized>(&self, dice: &mut Dice<R>, out: &mut Matrices) {
        for (array, encoder) in [(&mut out.a, &self.a), (&mut out.b, &self.b), (&mut out.c, &self.c)] {
            if encoder.ignored() != 0 && dice.chance(1, 4) {
                for element in array {
                    *element |= dice.bits() & encoder.ignored();
                }
            }
        }
    }

    /// A fraction, and random bits besides.
    #[inline]
    fn fraction<R: Rng + ?Sized>(
        &self,
        dice: &mut Dice<R>,
        fractions: Fractions,
        encoder: &Encoder,
    ) -> (Word, u64) {
        let random = dice.bits();
        match fractions {
            Fractions::Random => (Word(random), random),
            Fractions::Few => (Word(dice.bits()), fractions.from(random, encoder.format.fraction_bits)),
        }
    }
}

/// How far below the largest exponent a summand stands: level with it, or where it makes a tie.
fn offset_of_tie(word: &mut Word, cut: i32) -> i32 {
    match word.below(20) {
        0..8 => 0,
        8..14 => cut + 1,
        14..16 => cut,
        16 => cut + 2,
        _ => word.between(0, cut + 3),
    }
}

/// The fraction bit of weight 2^−`position`, from 1.
fn bit(position: i32) -> u64 {
    if position > 0 { 1 << (64 - position) } else { 0 }
}

/// The values of factors times their scales; what is no number counts as zero.
fn values(
    encoder: &Encoder,
    scale: Option<&(Encoder, usize)>,
    k: usize,
    array: &[u64],
    scales: &[u64],
    out: &mut Vec<f64>,
) {
    out.clear();
    out.extend(array.iter().enumerate().map(|(index, &bits)| {
        let value = encoder.value(bits).unwrap_or(0.0);
        match scale {
            None => value,
            Some((format, blocks)) => {
                let block = index % k / (k / blocks);
                value * format.value(scales[index / k * blocks + block]).unwrap_or(0.0)
            }
        }
    }));
}

#[cfg(test)]
mod tests;
