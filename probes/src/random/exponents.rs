//! Placing exponents: products near a target, whatever the formats of the factors reach.

use rand_core::Rng;

use super::Generator;
use super::dice::Dice;
use super::encoder::Encoder;

/// Which factors are drawn from the subnormal numbers.
#[derive(Clone, Copy)]
pub(super) struct Reach {
    /// Elements of A.
    pub a_subnormal: bool,
    /// Elements of B.
    pub b_subnormal: bool,
}

impl Reach {
    /// None: factors are normal numbers, before jitter and clamping.
    pub const NORMAL: Reach = Reach { a_subnormal: false, b_subnormal: false };
}

/// What all elements of a problem share.
pub(super) struct Exponents {
    /// Exponent of products with their scales, before jitter.
    pub sum: i32,
    /// Exponent of A's scales.
    pub sa: i32,
    /// Exponent of B's scales.
    pub sb: i32,
    /// Each factor's exponent is raised by up to this much.
    pub spread: i32,
    /// Whether all blocks of a row or column have the same scale.
    pub scales_alike: bool,
    /// Whether scales are powers of two even where their format has fractions.
    pub scales_plain: bool,
}

/// What the k-th elements of all rows of A and columns of B share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// Exponent of A's elements, before jitter.
    pub a: i32,
    /// Exponent of B's elements, before jitter.
    pub b: i32,
    /// The fractions of A's and B's elements, where they are not random.
    pub fractions: Option<(u64, u64)>,
}

impl Column {
    /// Lowers the product by `offset` binades, taken from a random factor first, then from the other.
    pub fn lower<R: Rng + ?Sized>(&mut self, dice: &mut Dice<R>, offset: i32, a: &Encoder, b: &Encoder) {
        let room_a = (self.a - a.min).max(0);
        let room_b = (self.b - b.min).max(0);
        let from_a = if dice.chance(1, 2) { offset.min(room_a) } else { (offset - room_b).max(0) };
        self.a -= from_a;
        self.b -= offset - from_a;
    }
}

type Range = (i32, i32);

/// A number of `range` that is in `wish` if possible, else as near to it as can be.
fn within<R: Rng + ?Sized>(dice: &mut Dice<R>, range: Range, wish: Range) -> i32 {
    let (low, high) = (range.0.max(wish.0), range.1.min(wish.1));
    if low <= high {
        dice.between(low, high)
    } else if wish.0 > range.1 {
        range.1
    } else {
        range.0
    }
}

impl Generator {
    /// Places products at 2^`target`, or as near as the formats reach, in a random split over A, B and
    /// their scales that differs for each k.
    pub(super) fn exponents<R: Rng + ?Sized>(
        &mut self,
        dice: &mut Dice<R>,
        target: i32,
        reach: Reach,
        spread: i32,
    ) -> Exponents {
        let range = |encoder: &Encoder, subnormal| {
            if subnormal { (encoder.quantum, encoder.min - 1) } else { (encoder.min, encoder.max) }
        };
        let a = range(&self.a, reach.a_subnormal);
        let b = range(&self.b, reach.b_subnormal);
        let products = (a.0 + b.0, a.1 + b.1);
        let (product, sa, sb) = match &self.scale {
            None => (target.clamp(products.0, products.1), 0, 0),
            Some((scale, _)) => {
                let product = within(dice, products, (target - 2 * scale.max, target - 2 * scale.min));
                let scales = target - product;
                let range = (scale.min, scale.max);
                let sa = within(dice, range, (scales - scale.max, scales - scale.min));
                (product, sa, (scales - sa).clamp(scale.min, scale.max))
            }
        };
        self.columns.clear();
        for _ in 0..self.k {
            let ea = within(dice, a, (product - b.1, product - b.0));
            self.columns.push(Column { a: ea, b: product - ea, fractions: None });
        }
        Exponents { sum: product + sa + sb, sa, sb, spread, scales_alike: false, scales_plain: false }
    }
}
