//! Shrinking a question to its essence.
//!
//! Greedy descent: of all simpler variants of a question that still show the effect, the simplest is
//! taken, until none is left. Each round asks all variants in one batch, since devices may be far
//! away. "Simpler" is a total order that every step descends in, so that shrinking ends.

use crate::model::{Decoded, Format};
use crate::probes::{DotAdd, Signature};

/// Rounds at most: the descent ends by itself long before, on all but the largest K.
const ROUNDS: usize = 2000;

/// Products whose elements are simplified in one batch.
const FEW: usize = 32;

/// Says for each of several questions whether it still shows the effect, or fails.
pub type Shows<'f, E> = dyn FnMut(&[DotAdd]) -> Result<Vec<bool>, E> + 'f;

/// Shrinks a question that shows an effect: to few summands, bare powers of two, exponents near zero
/// and positive signs; NaNs and infinities to the plain ones where that suffices.
///
/// The result is a local minimum: no single further step is possible. It depends on nothing but the
/// answers.
///
/// # Errors
/// Whatever `shows` fails with.
pub fn shrink<E>(question: &DotAdd, signature: &Signature, shows: &mut Shows<E>) -> Result<DotAdd, E> {
    let mut best = question.clone();
    for _ in 0..ROUNDS {
        match simpler(&best, signature, shows)? {
            Some(found) => best = found,
            None => break,
        }
    }
    Ok(best)
}

/// The simplest variant that still shows the effect, from the first stage that has one.
fn simpler<E>(best: &DotAdd, signature: &Signature, shows: &mut Shows<E>) -> Result<Option<DotAdd>, E> {
    let best_cost = cost(signature, best);
    let live: Vec<usize> = (0..best.a.len()).filter(|&k| (best.a[k], best.b[k]) != (0, 0)).collect();
    // With few summands everything fits in one batch; with many, what drops most goes first.
    let stages = if live.len() <= FEW { 1 } else { 1 + live.len().div_ceil(FEW) };
    for stage in 0..=stages {
        let mut variants = Variants { signature, question: best, made: Vec::new() };
        if stage == 0 {
            variants.fewer_summands(&live);
            variants.simpler_everywhere();
            variants.moved_together(&live);
        }
        let products = if stage == stages {
            variants.anew(&live);
            &[]
        } else if stages == 1 {
            &live[..]
        } else if stage == 0 {
            &[]
        } else {
            &live[(stage - 1) * FEW..live.len().min(stage * FEW)]
        };
        if stage + 1 == stages {
            variants.simpler_element(Place::C);
            for block in 0..best.sa.len() {
                variants.simpler_element(Place::Sa(block));
                variants.simpler_element(Place::Sb(block));
            }
        }
        for &k in products {
            variants.simpler_element(Place::A(k));
            variants.simpler_element(Place::B(k));
            variants.simpler_product(k);
        }
        let mut candidates: Vec<(Cost, DotAdd)> = variants
            .made
            .into_iter()
            .map(|variant| (cost(signature, &variant), variant))
            .filter(|(cost, _)| *cost < best_cost)
            .collect();
        // A stable sort: of equally simple variants the first one made goes first.
        candidates.sort_by_key(|(cost, _)| *cost);
        candidates.dedup();
        let mut questions: Vec<DotAdd> = candidates.into_iter().map(|(_, variant)| variant).collect();
        if questions.is_empty() {
            continue;
        }
        if let Some(found) = shows(&questions)?.iter().position(|&shown| shown) {
            return Ok(Some(questions.swap_remove(found)));
        }
    }
    Ok(None)
}

/// How complicated a question is, most important first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Summands that are not +0 and +0·+0.
    summands: u32,
    /// NaNs.
    nans: u32,
    /// Infinities.
    infinities: u32,
    /// NaNs other than the plain one.
    odd_nans: u32,
    /// Bits set in significands.
    bits: u32,
    /// Distances of exponents from zero.
    exponents: u32,
    /// Negative signs, and low bits that the format ignores.
    signs: u32,
}

/// How complicated a question is.
pub fn cost(signature: &Signature, question: &DotAdd) -> Cost {
    let mut total = Cost::default();
    let products = question.a.iter().zip(&question.b).filter(|product| *product != (&0, &0)).count();
    total.summands = products as u32 + u32::from(question.c != 0);
    for (format, elements) in [
        (signature.a, &question.a[..]),
        (signature.b, &question.b[..]),
        (signature.c, std::slice::from_ref(&question.c)),
    ] {
        elements.iter().for_each(|&bits| add_cost(&mut total, &format, bits));
    }
    if let Some(scale) = &signature.scale {
        question.sa.iter().chain(&question.sb).for_each(|&bits| add_cost(&mut total, &scale.format, bits));
    }
    total
}

fn add_cost(total: &mut Cost, format: &Format, bits: u64) {
    total.signs += (bits & !format.mask()).count_ones();
    match format.decode(bits) {
        Decoded::Nan { negative, .. } => {
            total.nans += 1;
            total.odd_nans += u32::from(bits != plain_nan(format));
            total.signs += u32::from(negative);
        }
        Decoded::Infinite { negative } => {
            total.infinities += 1;
            total.signs += u32::from(negative);
        }
        Decoded::Finite { negative, significand, exponent } => {
            total.bits += significand.count_ones();
            total.signs += u32::from(negative);
            if significand != 0 {
                let leading = exponent - format.fraction_bits as i32 + significand.ilog2() as i32;
                total.exponents += leading.unsigned_abs();
            }
        }
    }
}

/// The positive quiet NaN with an empty payload, or the nearest thing that the format has.
fn plain_nan(format: &Format) -> u64 {
    format.pack(Decoded::Nan { negative: false, fraction: 1 << format.fraction_bits >> 1 })
}

/// A finite, non-zero number ±significand × 2^lsb whose significand is odd.
#[derive(Clone, Copy)]
struct Number {
    negative: bool,
    significand: u64,
    lsb: i32,
}

impl Number {
    fn of(format: &Format, bits: u64) -> Option<Number> {
        match format.decode(bits) {
            Decoded::Finite { negative, significand, exponent } if significand != 0 => {
                let zeros = significand.trailing_zeros();
                let lsb = exponent - format.fraction_bits as i32 + zeros as i32;
                Some(Number { negative, significand: significand >> zeros, lsb })
            }
            _ => None,
        }
    }

    fn leading(&self) -> i32 {
        self.lsb + self.significand.ilog2() as i32
    }

    /// The bit pattern, if the format has the number.
    fn packed(&self, format: &Format) -> Option<u64> {
        if self.significand == 0 || self.negative && !format.signed {
            return None;
        }
        let exponent = self.leading().max(format.min_exponent());
        let shift = self.lsb - (exponent - format.fraction_bits as i32);
        if shift < 0 || exponent > format.max_exponent() {
            return None;
        }
        let significand = self.significand << shift;
        let too_large = exponent == format.max_exponent() && significand > format.max_significand();
        (!too_large).then(|| format.pack(Decoded::Finite { negative: self.negative, significand, exponent }))
    }

    /// Times 2^`power`, if the format has that.
    fn moved(&self, format: &Format, power: i32) -> Option<u64> {
        Number { lsb: self.lsb + power, ..*self }.packed(format)
    }
}

/// Steps from an exponent toward zero: all of the way, half, and one.
fn steps(exponent: i32) -> impl Iterator<Item = i32> {
    [-exponent, -exponent / 2, -exponent.signum()].into_iter().filter(|&step| step != 0)
}

/// The places of a question where bits stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    A(usize),
    B(usize),
    C,
    Sa(usize),
    Sb(usize),
}

fn places(question: &DotAdd) -> impl Iterator<Item = Place> {
    let products = 0..question.a.len();
    let scales = 0..question.sa.len();
    std::iter::once(Place::C)
        .chain(products.flat_map(|k| [Place::A(k), Place::B(k)]))
        .chain(scales.flat_map(|block| [Place::Sa(block), Place::Sb(block)]))
}

fn at(question: &mut DotAdd, place: Place) -> &mut u64 {
    match place {
        Place::A(k) => &mut question.a[k],
        Place::B(k) => &mut question.b[k],
        Place::C => &mut question.c,
        Place::Sa(block) => &mut question.sa[block],
        Place::Sb(block) => &mut question.sb[block],
    }
}

fn read(question: &DotAdd, place: Place) -> u64 {
    match place {
        Place::A(k) => question.a[k],
        Place::B(k) => question.b[k],
        Place::C => question.c,
        Place::Sa(block) => question.sa[block],
        Place::Sb(block) => question.sb[block],
    }
}

/// Makes variants of a question, each a single step away, that may be simpler.
struct Variants<'q> {
    signature: &'q Signature,
    question: &'q DotAdd,
    made: Vec<DotAdd>,
}

impl Variants<'_> {
    fn format(&self, place: Place) -> Format {
        match place {
            Place::A(_) => self.signature.a,
            Place::B(_) => self.signature.b,
            Place::C => self.signature.c,
            Place::Sa(_) | Place::Sb(_) => {
                self.signature.scale.map_or(self.signature.c, |scale| scale.format)
            }
        }
    }

    /// The question with some elements replaced.
    fn with(&mut self, changes: &[(Place, u64)]) {
        let mut variant = self.question.clone();
        for &(place, bits) in changes {
            *at(&mut variant, place) = bits;
        }
        self.made.push(variant);
    }

    /// Runs of summands dropped, the longest first (delta debugging; Zeller and Hildebrandt 2002),
    /// with and without c.
    fn fewer_summands(&mut self, live: &[usize]) {
        self.with(&[(Place::C, 0)]);
        let mut length = live.len();
        while length > 0 {
            for dropped in live.chunks(length) {
                let mut variant = self.question.clone();
                for &k in dropped {
                    (variant.a[k], variant.b[k]) = (0, 0);
                }
                self.made.push(DotAdd { c: 0, ..variant.clone() });
                self.made.push(variant);
            }
            length /= 2;
        }
    }

    /// The same simplification of all elements: fractions dropped, signs dropped.
    fn simpler_everywhere(&mut self) {
        let mut powers = self.question.clone();
        let mut positive = self.question.clone();
        let mut canonical = self.question.clone();
        for place in places(self.question) {
            let format = self.format(place);
            let bits = read(self.question, place);
            *at(&mut canonical, place) &= format.mask();
            if let Some(number) = Number::of(&format, bits) {
                let power = Number { negative: number.negative, significand: 1, lsb: number.leading() };
                *at(&mut powers, place) = power.packed(&format).unwrap_or(bits);
                let magnitude = Number { negative: false, ..number };
                *at(&mut positive, place) = magnitude.packed(&format).unwrap_or(bits);
            }
        }
        self.made.extend([powers, positive, canonical]);
        // All signs of products, by A's, and of c.
        let negate = |variants: &mut Self, of_b: bool, of_c: bool| {
            let mut negated = variants.question.clone();
            let (factors, format) = if of_b {
                (&mut negated.b, variants.signature.b)
            } else {
                (&mut negated.a, variants.signature.a)
            };
            factors.iter_mut().for_each(|bits| *bits = opposite(&format, *bits));
            if of_c {
                negated.c = opposite(&variants.signature.c, negated.c);
            }
            variants.made.push(negated);
        };
        negate(self, false, true);
        negate(self, true, true);
        negate(self, false, false);
        negate(self, true, false);
    }

    /// Simpler values of one element.
    fn simpler_element(&mut self, place: Place) {
        let format = self.format(place);
        let bits = read(self.question, place);
        let one = Number { negative: false, significand: 1, lsb: 0 };
        if bits != 0 {
            let is_scale = matches!(place, Place::Sa(_) | Place::Sb(_));
            if !is_scale {
                self.with(&[(place, 0)]);
            }
            if let Some(one) = one.packed(&format) {
                self.with(&[(place, one)]);
            }
            self.with(&[(place, bits & format.mask())]);
            self.with(&[(place, opposite(&format, bits))]);
        }
        match format.decode(bits) {
            Decoded::Nan { .. } => {
                let infinity = format.pack(Decoded::Infinite { negative: false });
                self.with(&[(place, infinity)]);
                self.with(&[(place, plain_nan(&format))]);
            }
            Decoded::Infinite { .. } => {
                let largest = format.pack(format.largest(false));
                self.with(&[(place, largest)]);
            }
            Decoded::Finite { .. } => {}
        }
        let Some(number) = Number::of(&format, bits) else { return };
        let mut offer = |number: Number| {
            if let Some(bits) = number.packed(&format) {
                self.with(&[(place, bits)]);
            }
        };
        let top = number.significand.ilog2();
        // A bare power of two, this one or the next; only the upper half of the bits; all but one.
        offer(Number { significand: 1, lsb: number.leading(), ..number });
        offer(Number { significand: 1, lsb: number.leading() + 1, ..number });
        offer(Number { significand: number.significand >> (top / 2 + 1) << (top / 2 + 1), ..number });
        for bit in (0..top).filter(|bit| number.significand >> bit & 1 == 1) {
            offer(Number { significand: number.significand & !(1 << bit), ..number });
        }
        if top > 1 {
            offer(Number { significand: 1 << top | 1, ..number });
        }
        for step in steps(number.leading()) {
            offer(Number { lsb: number.lsb + step, ..number });
        }
    }

    /// All summands moved by the same power of two: products by A, by B, or by every other factor,
    /// and c along with them.
    fn moved_together(&mut self, live: &[usize]) {
        let first = live.iter().find_map(|&k| {
            let a = Number::of(&self.signature.a, self.question.a[k])?;
            let b = Number::of(&self.signature.b, self.question.b[k])?;
            Some(a.leading() + b.leading())
        });
        let c = Number::of(&self.signature.c, self.question.c).map(|c| c.leading());
        for from in [c, first].into_iter().flatten() {
            for step in steps(from).chain([-1, 1]) {
                for of_a in [true, false] {
                    for with_c in [true, false] {
                        self.moved_by(live, step, of_a, with_c);
                    }
                }
            }
        }
        // The factors of all products moved against each other.
        if let Some(&k) = live.first() {
            let a = Number::of(&self.signature.a, self.question.a[k]).map_or(0, |a| a.leading());
            let b = Number::of(&self.signature.b, self.question.b[k]).map_or(0, |b| b.leading());
            for step in steps(a).chain(steps(-b)) {
                let mut changes = Vec::new();
                for &k in live {
                    changes.extend(self.moved_factor(Place::A(k), step));
                    changes.extend(self.moved_factor(Place::B(k), -step));
                }
                if changes.len() == 2 * live.len() {
                    self.with(&changes);
                }
            }
        }
    }

    /// c and one product alone, both short and at every distance: where single steps get stuck on a
    /// long number, a difference is often to be had anew, on a short one.
    fn anew(&mut self, live: &[usize]) {
        let Signature { a: a_format, b: b_format, c: c_format, d: d_format, .. } = *self.signature;
        let own = self.number(Place::C).map(|c| c.leading());
        let reach = 2 * d_format.fraction_bits as i32 + 16;
        let one = |negative, exponent| Number { negative, significand: 1, lsb: exponent };
        // 1 and 1 + ulp.
        let short = |number: Number, format: &Format| {
            let width = format.fraction_bits;
            let odd = Number { significand: 1 << width | 1, lsb: number.lsb - width as i32, ..number };
            [number, odd]
        };
        for &k in live.iter().take(4) {
            let mut bare = self.question.clone();
            bare.a.fill(0);
            bare.b.fill(0);
            for base in std::iter::once(0).chain(own).chain([d_format.min_exponent()]) {
                for (distance, negative) in (-reach..=reach).flat_map(|d| [(d, false), (d, true)]) {
                    let exponent = base + distance;
                    let (half, rest) = (exponent / 2, exponent - exponent / 2);
                    let Some(b) = one(false, rest).packed(&b_format) else { continue };
                    let a = short(one(negative, half), &a_format).map(|a| a.packed(&a_format));
                    let c = short(one(false, base), &c_format).map(|c| c.packed(&c_format));
                    for (a, c) in a.iter().flat_map(|a| c.iter().map(move |c| (*a, *c))) {
                        let (Some(a), Some(c)) = (a, c) else { continue };
                        (bare.a[k], bare.b[k], bare.c) = (a, b, c);
                        self.made.push(bare.clone());
                    }
                }
            }
        }
    }

    fn moved_by(&mut self, live: &[usize], step: i32, of_a: bool, with_c: bool) {
        let mut changes = Vec::new();
        for &k in live {
            let (first, second) = if of_a { (Place::A(k), Place::B(k)) } else { (Place::B(k), Place::A(k)) };
            match self.moved_factor(first, step).or_else(|| self.moved_factor(second, step)) {
                Some(change) => changes.push(change),
                // Products that are zero or infinite stay so.
                None if self.number(first).and(self.number(second)).is_none() => {}
                None => return,
            }
        }
        if with_c && self.number(Place::C).is_some() {
            match self.moved_factor(Place::C, step) {
                Some(change) => changes.push(change),
                None => return,
            }
        }
        self.with(&changes);
    }

    fn number(&self, place: Place) -> Option<Number> {
        Number::of(&self.format(place), read(self.question, place))
    }

    fn moved_factor(&self, place: Place, step: i32) -> Option<(Place, u64)> {
        Some((place, self.number(place)?.moved(&self.format(place), step)?))
    }

    /// Simpler forms of one product.
    fn simpler_product(&mut self, k: usize) {
        let (a_format, b_format) = (self.signature.a, self.signature.b);
        let (a, b) = (self.question.a[k], self.question.b[k]);
        let (negative_a, negative_b) = (opposite(&a_format, a), opposite(&b_format, b));
        self.with(&[(Place::A(k), negative_a), (Place::B(k), negative_b)]);
        let (Some(x), Some(y)) = (Number::of(&a_format, a), Number::of(&b_format, b)) else { return };
        // The same product, or its power of two, with one factor 1; and factors nearer to each other.
        let negative = x.negative != y.negative;
        let product = u128::from(x.significand) * u128::from(y.significand);
        let one = Number { negative: false, significand: 1, lsb: 0 };
        let power = Number { negative, significand: 1, lsb: x.lsb + y.lsb + product.ilog2() as i32 };
        let exact = u64::try_from(product).ok().map(|significand| Number {
            negative,
            significand,
            lsb: x.lsb + y.lsb,
        });
        for number in exact.into_iter().chain([power]) {
            let pairs = [
                (number.packed(&a_format), one.packed(&b_format)),
                (one.packed(&a_format), number.packed(&b_format)),
            ];
            for pair in pairs {
                if let (Some(a), Some(b)) = pair {
                    self.with(&[(Place::A(k), a), (Place::B(k), b)]);
                }
            }
        }
        for step in steps(x.leading()).chain(steps(-y.leading())) {
            if let (Some(a), Some(b)) = (x.moved(&a_format, step), y.moved(&b_format, -step)) {
                self.with(&[(Place::A(k), a), (Place::B(k), b)]);
            }
        }
    }
}

/// The pattern with the opposite sign, where the format has one.
fn opposite(format: &Format, bits: u64) -> u64 {
    let magnitude = bits & (format.mask() >> 1);
    if !format.signed || magnitude == 0 && !format.has_negative_zero() {
        bits
    } else {
        bits ^ 1 << (format.bits() + format.ignored_low_bits - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::format::{BF16, E2M1, FP32, UE4M3};
    use crate::model::tree::Scale;
    use crate::probes::random::{self, Distribution};
    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn shrunk(question: &DotAdd, signature: &Signature, shows: impl Fn(&DotAdd) -> bool) -> DotAdd {
        let result = shrink(question, signature, &mut |candidates| {
            Ok::<_, std::convert::Infallible>(candidates.iter().map(&shows).collect())
        });
        result.unwrap()
    }

    #[test]
    fn what_does_not_matter_goes_away() {
        let scale = Some(Scale { format: UE4M3, block: 16 });
        for signature in [
            Signature { k: 32, a: BF16, b: BF16, c: FP32, d: FP32, scale: None },
            Signature { k: 64, a: E2M1, b: E2M1, c: FP32, d: FP32, scale },
            Signature { k: 1024, a: BF16, b: BF16, c: FP32, d: FP32, scale: None },
        ] {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
            for distribution in Distribution::ALL {
                let question = random::dot_add(distribution, &signature, &mut rng);
                let zeros = vec![0; signature.k];
                let all_gone = shrunk(&question, &signature, |_| true);
                assert_eq!((&all_gone.a, &all_gone.b, all_gone.c), (&zeros, &zeros, 0));
                if question.a[17] == 0 {
                    continue;
                }
                let one_left = shrunk(&question, &signature, |q| q.a[17] & 0x7fff != 0);
                let one = Number { negative: false, significand: 1, lsb: 0 }.packed(&signature.a).unwrap();
                if question.a[17] & 0x7fff != 0 {
                    assert_eq!((one_left.a[17], &one_left.b, one_left.c), (one, &zeros, 0));
                }
            }
        }
    }

    #[test]
    fn exponents_move_together() {
        let signature = Signature { k: 2, a: FP32, b: FP32, c: FP32, d: FP32, scale: None };
        let bits = |x: f32| u64::from(x.to_bits());
        let value = |x: u64| f32::from_bits(x as u32);
        let question = DotAdd {
            a: vec![bits(1.5e-20), bits(-3.25e7)],
            b: vec![bits(1.2e10), bits(0.0)],
            c: bits(-3.1e-3),
            sa: vec![],
            sb: vec![],
        };
        // The product is at least 10 binades below c, and not zero.
        let result = shrunk(&question, &signature, |q| {
            let product = (value(q.a[0]) * value(q.b[0])).abs();
            product > 0.0 && product * 1024.0 <= value(q.c).abs()
        });
        let product = value(result.a[0]) * value(result.b[0]);
        assert_eq!((result.a[1], result.b[1]), (0, 0));
        assert_eq!(value(result.c) / product, 1024.0, "{result:?}");
        assert!(value(result.c) > 0.0 && product > 0.0);
    }

    #[test]
    fn special_values_become_plain_ones() {
        let signature = Signature { k: 1, a: FP32, b: FP32, c: FP32, d: FP32, scale: None };
        let question =
            DotAdd { a: vec![0xff81_2345], b: vec![0x8000_0000], c: 0xff80_0000, sa: vec![], sb: vec![] };
        let is_nan = |bits: u64| f32::from_bits(bits as u32).is_nan();
        let result = shrunk(&question, &signature, |q| is_nan(q.a[0]));
        assert_eq!(result, DotAdd { a: vec![0x7fc0_0000], b: vec![0], c: 0, sa: vec![], sb: vec![] });
    }

    #[test]
    fn an_error_ends_it() {
        let signature = Signature { k: 1, a: FP32, b: FP32, c: FP32, d: FP32, scale: None };
        let question = DotAdd { a: vec![1], b: vec![1], c: 1, sa: vec![], sb: vec![] };
        assert_eq!(shrink(&question, &signature, &mut |_| Err("gone")), Err("gone"));
    }
}
