//! Exact numbers: what products are, and what an exact sum of them is.
//!
//! fp64 products reach from 2^−2148 to 2^2048, so an exact sum may need 4,200 bits; nearly always
//! it needs few. Magnitudes of up to 128 bits are held in a `u128`; wider ones in limbs.

use alloc::vec;
use alloc::vec::Vec;

use crate::rounding::Rounding;

/// The exact number ±magnitude × 2^`lsb`, with the exponent under which hardware files it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The sign; a zero has one too.
    pub negative: bool,
    /// The magnitude as an integer.
    pub magnitude: Magnitude,
    /// Exponent of the magnitude's lowest bit.
    pub lsb: i32,
    /// The nominal exponent: where the binary point is thought to be. For a product it is the sum of
    /// its factors' raw exponents, so that 1.5 × 1.5 = 2.25 has nominal exponent 0; for the result of
    /// an unnormalised sum it is the exponent to which the summands were aligned. Only alignment
    /// looks at it, never the value.
    pub exponent: i32,
}

/// The magnitude of a [`Term`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Magnitude {
    /// At most 128 bits.
    Small(u128),
    /// More than 128 bits: limbs of 64 bits, lowest first, the last one not zero.
    Large(Vec<u64>),
}

/// The leading bits of a magnitude and whether anything follows them: all that rounding to 64 bits
/// or fewer needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduced {
    /// The leading bits. Where `sticky` is set there are at least 127 of them.
    pub magnitude: u128,
    /// Exponent of the magnitude's lowest bit.
    pub lsb: i32,
    /// Whether any bit below `lsb` is set.
    pub sticky: bool,
}

impl Reduced {
    /// Exponent of the leading one, or `None` for zero.
    #[inline]
    pub fn leading_exponent(&self) -> Option<i32> {
        (self.magnitude != 0).then(|| self.lsb + 127 - self.magnitude.leading_zeros() as i32)
    }

    /// Rounds to a multiple of 2^`quantum` and returns the multiple.
    ///
    /// # Panics
    /// In debug builds, if the multiple needs more than 128 bits.
    #[inline]
    pub fn to_multiple_of(&self, quantum: i32, negative: bool, rounding: Rounding) -> u128 {
        if quantum <= self.lsb {
            debug_assert!(!self.sticky || quantum == self.lsb);
            let shift = (self.lsb - quantum) as u32;
            debug_assert!(self.magnitude == 0 || shift <= self.magnitude.leading_zeros());
            return if self.magnitude == 0 { 0 } else { self.magnitude << shift };
        }
        rounding.shift_right(negative, self.magnitude, self.sticky, (quantum - self.lsb) as u32)
    }
}

impl Term {
    /// A zero of that sign, filed under `exponent`.
    pub const fn zero(negative: bool, exponent: i32) -> Term {
        Term { negative, magnitude: Magnitude::Small(0), lsb: exponent, exponent }
    }

    /// A number of at most 128 bits.
    #[inline]
    pub const fn new(negative: bool, magnitude: u128, lsb: i32, exponent: i32) -> Term {
        Term { negative, magnitude: Magnitude::Small(magnitude), lsb, exponent }
    }

    /// Whether the number is zero.
    #[inline]
    pub fn is_zero(&self) -> bool {
        // A large magnitude has a top limb that is not zero.
        matches!(self.magnitude, Magnitude::Small(0))
    }

    /// Exponent of the leading one, or `None` for zero.
    #[inline]
    pub fn leading_exponent(&self) -> Option<i32> {
        match &self.magnitude {
            Magnitude::Small(0) => None,
            Magnitude::Small(magnitude) => Some(self.lsb + 127 - magnitude.leading_zeros() as i32),
            Magnitude::Large(limbs) => {
                let top = limbs.last().expect("a large magnitude has limbs");
                Some(self.lsb + 64 * limbs.len() as i32 - 1 - top.leading_zeros() as i32)
            }
        }
    }

    /// Whether the number is a multiple of 2^`quantum`, so that aligning it there changes nothing.
    pub fn is_multiple_of(&self, quantum: i32) -> bool {
        let zeros = match &self.magnitude {
            Magnitude::Small(0) => return true,
            Magnitude::Small(magnitude) => magnitude.trailing_zeros(),
            Magnitude::Large(limbs) => {
                let empty = limbs.iter().take_while(|&&limb| limb == 0).count();
                64 * empty as u32 + limbs[empty].trailing_zeros()
            }
        };
        self.lsb + zeros as i32 >= quantum
    }

    /// The leading bits, and whether more follow.
    #[inline]
    pub fn reduced(&self) -> Reduced {
        match &self.magnitude {
            Magnitude::Small(magnitude) => Reduced { magnitude: *magnitude, lsb: self.lsb, sticky: false },
            Magnitude::Large(limbs) => {
                let bits = 64 * limbs.len() - limbs[limbs.len() - 1].leading_zeros() as usize;
                let dropped = bits - 128;
                let (limb, bit) = (dropped / 64, dropped % 64);
                let at = |index: usize| limbs.get(index).copied().unwrap_or(0) as u128;
                let low = at(limb) >> bit | at(limb + 1) << (64 - bit) & u64::MAX as u128;
                let high = at(limb + 1) >> bit | at(limb + 2) << (64 - bit) & u64::MAX as u128;
                let sticky = limbs[..limb].iter().any(|&l| l != 0) || at(limb) & ((1 << bit) - 1) != 0;
                Reduced { magnitude: high << 64 | low, lsb: self.lsb + dropped as i32, sticky }
            }
        }
    }

    /// The product with a small integer times a power of two; the nominal exponent moves by
    /// `exponent` alone.
    pub fn scaled(&self, significand: u64, lsb: i32, exponent: i32) -> Term {
        let magnitude = match &self.magnitude {
            Magnitude::Small(m) if m.leading_zeros() + significand.leading_zeros() >= 64 => {
                Magnitude::Small(m * significand as u128)
            }
            Magnitude::Small(m) => multiply(&[*m as u64, (*m >> 64) as u64], significand),
            Magnitude::Large(limbs) => multiply(limbs, significand),
        };
        Term { negative: self.negative, magnitude, lsb: self.lsb + lsb, exponent: self.exponent + exponent }
    }

    /// The number rounded to a multiple of 2^`quantum`, filed under `exponent`: what aligning a
    /// summand does to it. A number that is such a multiple already is unchanged.
    #[inline]
    pub fn aligned(&self, quantum: i32, rounding: Rounding, exponent: i32) -> Term {
        if self.lsb >= quantum {
            return Term { exponent, ..self.clone() };
        }
        let shift = (quantum - self.lsb) as u32;
        let magnitude = match &self.magnitude {
            Magnitude::Small(magnitude) => {
                Magnitude::Small(rounding.shift_right(self.negative, *magnitude, false, shift))
            }
            Magnitude::Large(limbs) => shift_right_large(limbs, shift as usize, self.negative, rounding),
        };
        Term { negative: self.negative, magnitude, lsb: quantum, exponent }
    }

    /// The number [aligned](Term::aligned), as a signed multiple of 2^`unit`, if that has at most 120 bits.
    /// `unit` is at most `quantum`.
    #[inline]
    pub fn fixed(&self, quantum: i32, rounding: Rounding, unit: i32) -> Option<i128> {
        let Magnitude::Small(magnitude) = self.magnitude else {
            return None;
        };
        let (multiple, lsb) = if self.lsb >= quantum {
            (magnitude, self.lsb)
        } else {
            let shift = (quantum - self.lsb) as u32;
            (rounding.shift_right(self.negative, magnitude, false, shift), quantum)
        };
        let shift = (lsb - unit) as u32;
        if multiple == 0 {
            return Some(0);
        }
        if shift + (128 - multiple.leading_zeros()) > 120 {
            return None;
        }
        let multiple = (multiple << shift) as i128;
        Some(if self.negative { -multiple } else { multiple })
    }

    /// The exact sum. Its nominal exponent is the largest among the summands'; a sum of zero is +0.
    ///
    /// An empty sum is +0 with nominal exponent 0.
    pub fn sum<'t>(terms: impl IntoIterator<Item = &'t Term, IntoIter: Clone>) -> Term {
        let terms = terms.into_iter();
        let mut exponent = None;
        let mut lowest = i32::MAX;
        let mut highest = i32::MIN;
        let mut count = 0usize;
        for term in terms.clone() {
            count += 1;
            exponent = exponent.max(Some(term.exponent));
            if let Some(leading) = term.leading_exponent() {
                lowest = lowest.min(term.lsb);
                highest = highest.max(leading);
            }
        }
        let exponent = exponent.unwrap_or(0);
        if highest == i32::MIN {
            return Term::zero(false, exponent);
        }
        // Carries: n summands need at most log2(n) more bits, and the sign one.
        let bits = highest - lowest + 2 + (usize::BITS - count.leading_zeros()) as i32;
        if bits < 128 {
            let mut total = 0i128;
            for term in terms {
                if let Magnitude::Small(magnitude) = term.magnitude
                    && magnitude != 0
                {
                    let aligned = (magnitude << (term.lsb - lowest)) as i128;
                    total += if term.negative { -aligned } else { aligned };
                } else if let Magnitude::Large(_) = term.magnitude {
                    unreachable!("a magnitude of over 128 bits in a sum of under 128");
                }
            }
            Term::new(total < 0, total.unsigned_abs(), lowest, exponent)
        } else {
            wide_sum(terms, lowest, bits as usize, exponent)
        }
    }

    /// The exact sum of two numbers, or a number that every [`RoundTo`](crate::format::RoundTo)
    /// rounds the same way: where one summand is so small that it lies beyond every bit a rounding
    /// can look at, any other number of its sign beyond them does as well, and needs fewer bits.
    pub fn sum_for_rounding(x: &Term, y: &Term) -> Term {
        let (large, small) = match (x.leading_exponent(), y.leading_exponent()) {
            (Some(ex), Some(ey)) if ex >= ey => (x, y),
            (Some(_), Some(_)) => (y, x),
            _ => return Term::sum([x, y]),
        };
        let (Magnitude::Small(_), Some(leading)) = (&large.magnitude, large.leading_exponent()) else {
            return Term::sum([x, y]);
        };
        // A rounding looks at 64 fraction bits and the one after: multiples of 2^(leading − 67),
        // one binade lower after a cancellation of the leading bit.
        let beyond = large.lsb.min(leading - 70) - 4;
        match small.leading_exponent() {
            Some(e) if e < beyond => {
                let stand_in = Term::new(small.negative, 1, beyond, small.exponent);
                Term::sum([large, &stand_in])
            }
            _ => Term::sum([large, small]),
        }
    }
}

/// A magnitude from limbs, in its smallest form.
fn from_limbs(mut limbs: Vec<u64>) -> Magnitude {
    while limbs.last() == Some(&0) {
        limbs.pop();
    }
    match limbs[..] {
        [] => Magnitude::Small(0),
        [low] => Magnitude::Small(low as u128),
        [low, high] => Magnitude::Small(low as u128 | (high as u128) << 64),
        _ => Magnitude::Large(limbs),
    }
}

fn multiply(limbs: &[u64], factor: u64) -> Magnitude {
    let mut carry = 0;
    let mut product: Vec<u64> = limbs
        .iter()
        .map(|&limb| {
            let wide = limb as u128 * factor as u128 + carry;
            carry = wide >> 64;
            wide as u64
        })
        .collect();
    product.push(carry as u64);
    from_limbs(product)
}

/// Rounds to a multiple of 2^`shift` and divides by it.
fn shift_right_large(limbs: &[u64], shift: usize, negative: bool, rounding: Rounding) -> Magnitude {
    let bit = |index: usize| limbs.get(index / 64).is_some_and(|limb| limb >> (index % 64) & 1 == 1);
    let half = bit(shift - 1);
    let rest = (0..(shift - 1).min(64 * limbs.len())).any(bit);
    let mut kept: Vec<u64> = (0..limbs.len().saturating_sub(shift / 64) + 1)
        .map(|index| {
            let at = |i: usize| limbs.get(i).copied().unwrap_or(0);
            let low = at(index + shift / 64) >> (shift % 64);
            let high = at(index + shift / 64 + 1) << 1 << (63 - shift % 64);
            low | high
        })
        .collect();
    let mut carry = rounding.increments(negative, kept[0] & 1 == 1, half, rest);
    for limb in &mut kept {
        (*limb, carry) = limb.overflowing_add(carry as u64);
    }
    from_limbs(kept)
}

/// The exact sum in two's complement limbs.
fn wide_sum<'t>(terms: impl Iterator<Item = &'t Term>, lowest: i32, bits: usize, exponent: i32) -> Term {
    let mut total = vec![0u64; bits / 64 + 2];
    for term in terms {
        let small;
        let limbs = match &term.magnitude {
            Magnitude::Small(0) => continue,
            Magnitude::Small(magnitude) => {
                small = [*magnitude as u64, (*magnitude >> 64) as u64];
                &small[..]
            }
            Magnitude::Large(limbs) => limbs,
        };
        let shift = (term.lsb - lowest) as usize;
        let bit = shift % 64;
        let mut carry = false;
        let mut spill = 0u64;
        let aligned = limbs.iter().copied().chain(core::iter::repeat(0));
        for (partial, limb) in total[shift / 64..].iter_mut().zip(aligned) {
            let aligned = limb << bit | spill;
            spill = limb >> 1 >> (63 - bit);
            let (one, two);
            if term.negative {
                (*partial, one) = partial.overflowing_sub(aligned);
                (*partial, two) = partial.overflowing_sub(carry as u64);
            } else {
                (*partial, one) = partial.overflowing_add(aligned);
                (*partial, two) = partial.overflowing_add(carry as u64);
            }
            carry = one || two;
        }
    }
    let negative = total[total.len() - 1] >> 63 == 1;
    if negative {
        let mut carry = true;
        for limb in &mut total {
            (*limb, carry) = (!*limb).overflowing_add(carry as u64);
        }
    }
    Term { negative, magnitude: from_limbs(total), lsb: lowest, exponent }
}
