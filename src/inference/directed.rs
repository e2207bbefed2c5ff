//! Inputs on which two models of one tree differ, searched for where they differ inside.
//!
//! Two models that differ in one rule often disagree about an inner sum long before anything of it
//! shows in d: a bit far below what is rounded away later, an exponent that the next sum aligns to.
//! Such inputs are common. From each, the search goes on nearby: c or another product is set to about
//! what the inner sum is, so that it cancels, or comes to lie where the next rounding decides.

use mmaprobe_model::execute::{Number, Value};
use mmaprobe_model::format::{self, RoundTo};
use mmaprobe_model::scalar::Scalar;
use mmaprobe_model::tree::{NanRule, Node, Normalised};
use mmaprobe_model::{Executor, Model, Rounding};
use mmaprobe_probes::place::{self, Dyadic};
use mmaprobe_probes::{DotAdd, Signature, Summand, sparse};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::fit;

/// Inputs that differ inside and are varied.
const LATENT: usize = 60;
/// Inputs that are looked at.
const SCANNED: usize = 3000;
/// Variations of each.
const VARIATIONS: usize = 40;

/// Searches for an input on which the two models give different results, starting from these inputs.
///
/// `None` if none is found, or if the trees do not have the same nodes. NaNs are taken as one where the
/// other model does not know which it is.
pub fn search(
    signature: &Signature,
    model: &Model,
    other: &Model,
    inputs: &[DotAdd],
    seed: u64,
) -> Option<DotAdd> {
    if model.tree.nodes.len() != other.tree.nodes.len() {
        return None;
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (wide_one, wide_other) = (widened(model, other), widened(other, model));
    let mut inside = [Inside::of(model, other)?, Inside::of(&wide_one, &wide_other)?];
    let mut pair = Pair { one: Scalar::new(model).ok()?, other: Scalar::new(other).ok()? };
    let mut latent = 0;
    for input in inputs.iter().take(SCANNED) {
        let Some(inside) = inside.iter_mut().find_map(|inside| inside.differs(input)) else { continue };
        latent += 1;
        for _ in 0..VARIATIONS {
            let varied = varied(signature, input, &inside, &mut rng);
            if pair.differs(&varied) {
                return Some(varied);
            }
        }
        if latent == LATENT {
            break;
        }
    }
    None
}

/// The model with its root, and the sums whose rules differ from the other model's, rounded to more bits
/// than d has: what is kept before the rounding shows.
fn widened(model: &Model, other: &Model) -> Model {
    let mut wide = Model { d: format::FP64, nan: NanRule::Unknown, ..model.clone() };
    let root = match wide.tree.nodes.last() {
        Some(Node::Sum { rule, .. }) => *rule,
        _ => return wide,
    };
    for (index, rule) in wide.tree.rules.iter_mut().enumerate() {
        if index == root || other.tree.rules.get(index) != Some(&model.tree.rules[index]) {
            rule.normalised = Normalised::To(RoundTo {
                rounding: Rounding::TowardZero,
                ..RoundTo::nearest_even(format::FP64)
            });
        }
    }
    wide
}

/// Two models, ready to be asked for d.
struct Pair<'m> {
    one: Scalar<'m>,
    other: Scalar<'m>,
}

impl Pair<'_> {
    fn differs(&mut self, q: &DotAdd) -> bool {
        let x = self.one.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb);
        let y = self.other.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb);
        fit::differ(self.other.model(), x, y)
    }
}

/// Two models, ready to be asked for every inner value.
struct Inside<'m> {
    one: Executor<'m>,
    other: Executor<'m>,
}

impl<'m> Inside<'m> {
    fn of(one: &'m Model, other: &'m Model) -> Option<Inside<'m>> {
        Some(Inside { one: Executor::new(one).ok()?, other: Executor::new(other).ok()? })
    }

    /// The first finite inner value on which the models differ.
    fn differs(&mut self, q: &DotAdd) -> Option<Number> {
        let one = self.one.evaluate(&q.a, &q.b, q.c, &q.sa, &q.sb);
        let other = self.other.evaluate(&q.a, &q.b, q.c, &q.sa, &q.sb);
        one.iter().zip(other).find(|(x, y)| x != y).and_then(|(x, y)| match (x, y) {
            (Value::Finite(number), _) | (_, Value::Finite(number)) => Some(number.clone()),
            _ => None,
        })
    }
}

/// The input with one or two summands set near an inner value: of the other sign or the same, a power of
/// two, few bits, or many.
fn varied(signature: &Signature, input: &DotAdd, inside: &Number, rng: &mut impl Rng) -> DotAdd {
    let mut varied = input.clone();
    let top = inside.term.leading_exponent().unwrap_or(inside.term.exponent);
    let depth = 2 * (signature.d.fraction_bits as i32 + 4);
    for _ in 0..1 + below(rng, 2) {
        let distance = match below(rng, 3) {
            0 => below(rng, 3) as i32 - 1,
            1 => -(below(rng, depth as u64) as i32),
            _ => below(rng, 8) as i32 - 4,
        };
        let exponent = top + distance;
        let summand = match below(rng, 2) {
            0 => Summand::C,
            _ => Summand::Product(below(rng, signature.k as u64) as usize),
        };
        match summand {
            Summand::C => varied.c = sparse::number(&signature.c, exponent, rng),
            Summand::Product(k) if below(rng, 4) == 0 => {
                varied.a[k] ^= 1 << below(rng, u64::from(signature.a.bits()));
            }
            Summand::Product(_) => {
                let bits = below(rng, 4);
                let significand = 1 << bits | below(rng, 1 << bits);
                let negative = below(rng, 2) == 1;
                let value = Dyadic { negative, significand, exponent: exponent - bits as i32 };
                place::set(&mut varied, signature, summand, value);
            }
        }
    }
    varied
}

fn below(rng: &mut impl Rng, n: u64) -> u64 {
    rng.next_u64() % n
}
