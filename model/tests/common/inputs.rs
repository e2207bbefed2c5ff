//! Random dot-adds, in the distributions where mistakes live.

use mmaprobe_model::{Format, Model};
use rand::{Rng, RngExt};

use super::spec::Spec;

/// One dot-add's operands.
#[derive(Clone, Debug, Default)]
pub struct DotAdd {
    pub a: Vec<u64>,
    pub b: Vec<u64>,
    pub c: u64,
    pub sa: Vec<u64>,
    pub sb: Vec<u64>,
}

/// The formats and the size of an instruction's operands.
#[derive(Clone, Copy, Debug)]
pub struct Operands {
    pub a: Spec,
    pub b: Spec,
    pub c: Spec,
    pub k: usize,
    /// Format and number of the scales of A, and of B.
    pub scales: Option<(Spec, usize)>,
}

fn bits(spec: &Spec, rng: &mut impl Rng) -> u64 {
    rng.random::<u64>() >> (64 - spec.bits() - spec.ignored)
}

/// A number with about this exponent.
fn with_exponent(spec: &Spec, e: i32, rng: &mut impl Rng) -> u64 {
    let field = (e + spec.bias).clamp(0, (1 << spec.e) - 2).max(0) as u64;
    // Few significand bits make ties and exact cancellation.
    let fraction = match rng.random_range(0..4) {
        0 => 0,
        1 => 1 << rng.random_range(0..spec.m.max(1)),
        _ => rng.random(),
    };
    spec.encode(rng.random(), field, fraction & ((1 << spec.m) - 1))
}

/// ±0, the smallest and largest of each class, 1, infinity and NaN where there are any.
fn special(spec: &Spec, rng: &mut impl Rng) -> u64 {
    let ones = (1 << spec.m) - 1;
    let top = (1 << spec.e) - 1;
    let (field, fraction) = match rng.random_range(0..9) {
        0 | 1 => (0, 0),
        2 => (0, 1 & ones),
        3 => (0, ones),
        4 => (1, 0),
        5 => (spec.bias as u64 & top, 0),
        6 => (top - 1, ones),
        7 => (top, 0),
        _ => (top, ones),
    };
    spec.encode(rng.random(), field, fraction)
}

impl Operands {
    /// Those of a model.
    pub fn of(model: &Model) -> Operands {
        let spec = |format: &Format| Spec::of(format.name);
        Operands {
            a: spec(&model.a.format),
            b: spec(&model.b.format),
            c: spec(&model.c.format),
            k: model.k,
            scales: model.scale.map(|scale| (spec(&scale.format), model.k.div_ceil(scale.block))),
        }
    }

    /// The next dot-add, of a distribution drawn at random.
    pub fn fill(&self, rng: &mut impl Rng, into: &mut DotAdd) {
        let Operands { a, b, c, k, scales } = self;
        into.a.clear();
        into.b.clear();
        let middle = |spec: &Spec, rng: &mut dyn Rng| {
            let fields = (1i64 << spec.e) as i32;
            rng.random_range(0..fields) - spec.bias
        };
        let distribution = rng.random_range(0..7);
        let (mut ea, mut eb) = (middle(a, rng), middle(b, rng));
        match distribution {
            // Uniform bits.
            0 => {
                into.a.extend((0..*k).map(|_| bits(a, rng)));
                into.b.extend((0..*k).map(|_| bits(b, rng)));
                into.c = bits(c, rng);
            }
            // Special values among ordinary ones, rarely enough that not everything is NaN.
            1 => {
                let rate = 1.0 / rng.random_range(1..=2 * *k) as f64;
                for (spec, e, elements) in [(a, ea, &mut into.a), (b, eb, &mut into.b)] {
                    elements.extend((0..*k).map(|_| {
                        if rng.random_bool(rate) { special(spec, rng) } else { with_exponent(spec, e, rng) }
                    }));
                }
                into.c = if rng.random() { special(c, rng) } else { bits(c, rng) };
            }
            // Exponents near each other: products within a spread, c beside them. At either end of the
            // range too, where sums are subnormal or overflow.
            _ => {
                match distribution {
                    2 => (ea, eb) = (a.emin(), rng.random_range(-3..4)),
                    3 => {
                        // Products near the top or the bottom of c.
                        let target = if rng.random() { c.bias } else { c.emin() - 2 };
                        ea = target / 2;
                        eb = target - ea;
                    }
                    _ => {}
                }
                let spread = [0, 1, 3, 8, 14][rng.random_range(0..5)];
                let zeros = [0.0, 0.0, 0.3][rng.random_range(0..3)];
                for (spec, e, elements) in [(a, ea, &mut into.a), (b, eb, &mut into.b)] {
                    for _ in 0..*k {
                        let e = e + rng.random_range(-spread..=spread);
                        elements.push(if rng.random_bool(zeros) {
                            spec.encode(rng.random(), 0, 0)
                        } else {
                            with_exponent(spec, e, rng)
                        });
                    }
                }
                // Cancellation: products that are the negatives of others, some with a bit changed.
                if distribution >= 5 && a.sign {
                    for pair in 0..*k / 2 {
                        let (i, j) = (pair, k - 1 - pair);
                        into.a[j] = into.a[i] ^ a.encode(true, 0, 0);
                        into.b[j] = into.b[i];
                        if rng.random_bool(0.2) {
                            into.b[j] ^= (1 << rng.random_range(0..b.m.max(1))) << b.ignored;
                        }
                    }
                }
                let distance = [0, 2, 20, 36][rng.random_range(0..4)];
                into.c = if rng.random_bool(zeros) {
                    c.encode(rng.random(), 0, 0)
                } else {
                    with_exponent(c, ea + eb + rng.random_range(-distance..=distance), rng)
                };
            }
        }
        if let Some((spec, count)) = scales {
            let rate = if distribution == 1 { 0.1 } else { 0.0 };
            let e = middle(spec, rng);
            let uniform = distribution == 0 && rng.random();
            for scales in [&mut into.sa, &mut into.sb] {
                scales.clear();
                scales.extend((0..*count).map(|_| match () {
                    () if rng.random_bool(rate) => special(spec, rng),
                    () if uniform => bits(spec, rng),
                    () => with_exponent(spec, e + rng.random_range(-2..=2), rng),
                }));
            }
            // Scales that cancel each other's exponent keep the products near c.
            if spec.m == 0 && !uniform && rng.random() {
                for (sa, sb) in into.sa.iter().zip(&mut into.sb) {
                    *sb = (254 - (*sa).min(254) + rng.random_range(0..3)).min(254);
                }
            }
        }
    }
}
