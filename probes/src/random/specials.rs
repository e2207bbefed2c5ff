//! Infinities, NaNs, zeros and largest numbers, strewn over a problem.

use mmaprobe_model::format::Decoded;
use rand_core::Rng;

use super::dice::{Dice, Word};
use super::encoder::Encoder;
use super::{Generator, Matrices};

/// A special value: what the format lacks is replaced as [`Format::pack`] does.
fn special<R: Rng + ?Sized>(dice: &mut Dice<R>, encoder: &Encoder) -> u64 {
    let format = &encoder.format;
    let negative = dice.chance(1, 2);
    let quiet = 1u64 << format.fraction_bits >> 1;
    let nan = |fraction| format.pack(Decoded::Nan { negative, fraction });
    match dice.below(16) {
        0..4 => encoder.zero(negative),
        4..8 => format.pack(Decoded::Infinite { negative }),
        8..11 => format.pack(format.largest(negative)),
        11 => encoder.number(negative, encoder.quantum, 0),
        12 => nan(quiet),
        // The largest and the smallest payload: all ones, and signalling where there is room.
        13 => nan((1 << format.fraction_bits) - 1),
        14 => nan(1),
        _ => nan((dice.bits() & ((1 << format.fraction_bits) - 1)).max(1)),
    }
}

impl Generator {
    /// Puts special values at a few places of A, B and the scales, and into an eighth of C.
    pub(super) fn strew<R: Rng + ?Sized>(&self, dice: &mut Dice<R>, out: &mut Matrices) {
        let (m, n, k) = (self.m, self.n, self.k);
        // A special value in a row of A meets all of D's row: a third of the rows and columns at most.
        let sites = dice.below((m + n) as u32 / 3 + 2);
        for _ in 0..sites {
            let at = dice.below(k as u32) as usize;
            let (i, j) = (dice.below(m as u32) as usize, dice.below(n as u32) as usize);
            // Both factors at once in a quarter of the cases: 0·∞, NaN·NaN.
            let which = dice.below(8);
            if which < 5 {
                out.a[i * k + at] = special(dice, &self.a);
            }
            if which >= 3 {
                out.b[j * k + at] = special(dice, &self.b);
            }
        }
        let in_c = dice.pick(&[0, 1, 1, 4]);
        if in_c > 0 {
            for elements in out.c.chunks_mut(8) {
                let mut word = Word(dice.bits());
                for c in elements {
                    if word.below(8) < in_c {
                        *c = special(dice, &self.c);
                    }
                }
            }
        }
        if let Some((scale, _)) = &self.scale
            && dice.chance(1, 8)
        {
            let of_a = dice.chance(1, 2);
            let scales = if of_a { &mut out.sa } else { &mut out.sb };
            let at = dice.below(scales.len() as u32) as usize;
            scales[at] = special(dice, scale);
        }
    }

    /// Makes every summand a zero of random sign; a few of C stay.
    pub(super) fn make_zero<R: Rng + ?Sized>(&self, dice: &mut Dice<R>, out: &mut Matrices) {
        let of_a = dice.chance(1, 2);
        let (zeros, zero_format, others, other_format) = if of_a {
            (&mut out.a, &self.a, &mut out.b, &self.b)
        } else {
            (&mut out.b, &self.b, &mut out.a, &self.a)
        };
        // Of many random signs some differ: in half of the problems all products have the same.
        let alike = dice.chance(1, 2);
        let sign = dice.chance(1, 2);
        for zero in zeros.iter_mut() {
            *zero = zero_format.zero(if alike { sign } else { dice.chance(1, 2) });
        }
        if alike {
            for other in
                others.iter_mut().filter(|other| other_format.value(**other).is_some_and(|v| v < 0.0))
            {
                *other = other_format.negated(*other);
            }
        }
        for c in &mut out.c {
            if !dice.chance(1, 8) {
                *c = self.c.zero(dice.chance(1, 2));
            }
        }
    }
}
