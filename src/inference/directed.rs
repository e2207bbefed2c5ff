//! Inputs on which two models of one tree differ, searched for where they differ inside.
//!
//! Two models that differ in one rule often disagree about an inner sum long before anything of it
//! shows in d: a bit far below what is rounded away later, an exponent that the next sum aligns to.
//! Such inputs are common. From each, the search goes on nearby: c or another product is set to about
//! what the inner sum is, so that it cancels, or comes to lie where the next rounding decides.

use mmaprobe_model::execute::{Number, Value};
use mmaprobe_model::format::{self, RoundTo};
use mmaprobe_model::scalar::{Inputs, Nodes, Scalar};
use mmaprobe_model::tree::{NanRule, Node, Normalised};
use mmaprobe_model::{Executor, Model, Rounding};
use mmaprobe_probes::place::{self, Dyadic};
use mmaprobe_probes::sparse::{self, below};
use mmaprobe_probes::{DotAdd, Signature, Summand, vary};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::held::{self, Neighbour};
use super::{evidence, fit, structure};

/// Inputs that differ inside and are varied.
const LATENT: usize = 60;
/// Inputs that are looked at.
const SCANNED: usize = 3000;
/// Inputs after which the search is given up if none of them differs inside.
const FRUITLESS: usize = 1000;
/// Variations of each.
const VARIATIONS: usize = 60;
/// Of those, one of so many in which what is large is cancelled.
const MIRRORED: u64 = 3;

/// Questions, each with its operands taken apart; no more than are looked at from the first.
pub fn decoded(signature: &Signature, questions: &[DotAdd]) -> Vec<(DotAdd, Inputs)> {
    let with_inputs = |question: &DotAdd| (question.clone(), evidence::inputs(signature, question));
    questions.iter().take(SCANNED).map(with_inputs).collect()
}

/// Whether inputs tell two models apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// On these, their results differ.
    Apart(Vec<DotAdd>),
    /// Values inside differed, but no result.
    InsideOnly,
    /// Nothing differed.
    Never,
}

impl Told {
    /// The first input that tells them apart.
    pub fn first(self) -> Option<DotAdd> {
        match self {
            Told::Apart(inputs) => inputs.into_iter().next(),
            Told::InsideOnly | Told::Never => None,
        }
    }
}

/// Searches for an input on which the two models give different results, starting from these inputs. Trees
/// that do not have the same nodes are not compared inside. NaNs are taken as one where the other model does not
/// know which it is. `kept` may hold the values that the model has for the inputs.
pub fn search(
    signature: &Signature,
    model: &Model,
    other: &Model,
    inputs: &[(DotAdd, Inputs)],
    kept: &[Option<Nodes>],
    seed: u64,
) -> Told {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    if structure::without_rules(model) != structure::without_rules(other) {
        return mirrored(signature, model, other, inputs, &mut rng);
    }
    let (wide_one, wide_other) = (widened(model, other), widened(other, model));
    let (Some(mut pair), Some(mut wide)) = (Pair::of(model, other), Pair::of(&wide_one, &wide_other)) else {
        return Told::InsideOnly;
    };
    let mut latent = 0;
    for (index, (input, decoded)) in inputs.iter().take(SCANNED).enumerate() {
        if index == FRUITLESS && latent == 0 {
            break;
        }
        let kept = kept.get(index).and_then(Option::as_ref);
        let inside = pair.inside(input, decoded, kept).or_else(|| wide.inside(input, decoded, None));
        let Some(inside) = inside else { continue };
        latent += 1;
        for _ in 0..VARIATIONS {
            let varied = varied(signature, input, &inside, &mut rng);
            if pair.differs(signature, &varied) {
                return Told::Apart(vec![varied]);
            }
        }
        if latent == LATENT {
            break;
        }
    }
    if latent > 0 { Told::InsideOnly } else { Told::Never }
}

/// The same for two trees that do not have the same nodes: with what is large in the inputs cancelled.
fn mirrored(
    signature: &Signature,
    model: &Model,
    other: &Model,
    inputs: &[(DotAdd, Inputs)],
    rng: &mut impl Rng,
) -> Told {
    let Some(mut pair) = Pair::of(model, other) else { return Told::InsideOnly };
    let mut varied = inputs.iter().take(SCANNED).map(|(input, _)| vary::mirrored(signature, input, rng));
    match varied.find(|varied| pair.differs(signature, varied)) {
        Some(found) => Told::Apart(vec![found]),
        None => Told::InsideOnly,
    }
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

/// Two models, ready to be asked for d and for every inner value.
struct Pair<'m> {
    one: Scalar<'m>,
    other: Neighbour<'m>,
    /// For values that are too wide.
    general: (Executor<'m>, Executor<'m>),
}

impl<'m> Pair<'m> {
    fn of(one: &'m Model, other: &'m Model) -> Option<Pair<'m>> {
        let general = (Executor::new(one).ok()?, Executor::new(other).ok()?);
        Some(Pair { one: Scalar::new(one).ok()?, other: Neighbour::new(one, other)?, general })
    }

    /// Whether d differs.
    fn differs(&mut self, signature: &Signature, question: &DotAdd) -> bool {
        let inputs = evidence::inputs(signature, question);
        let (nodes, x) = held::evaluated(&mut self.one, &inputs);
        fit::differ(self.general.1.model(), x, self.other.execute(&inputs, nodes.as_ref()))
    }

    /// The first inner value on which the models differ, if it is finite in one of them. `kept` may hold the
    /// first one's values.
    fn inside(&mut self, q: &DotAdd, decoded: &Inputs, kept: Option<&Nodes>) -> Option<Number> {
        let finite = |one: Value, other: Value| match (one, other) {
            (Value::Finite(number), _) | (_, Value::Finite(number)) => Some(number),
            _ => None,
        };
        let Pair { one, other, general } = self;
        let own = if kept.is_some() { None } else { one.nodes(decoded) };
        let nodes = kept.or(own.as_ref());
        if let Some(found) = nodes.and_then(|nodes| other.first_difference(decoded, nodes)) {
            let [one, other] = found?;
            return finite(one, other);
        }
        let one = general.0.evaluate(&q.a, &q.b, q.c, &q.sa, &q.sb);
        let other = general.1.evaluate(&q.a, &q.b, q.c, &q.sa, &q.sb);
        let (x, y) = one.iter().zip(other).find(|(x, y)| x != y)?;
        finite(x.clone(), y.clone())
    }
}

/// The input with one or two summands set near an inner value: of the other sign or the same, a power of
/// two, few bits, or many; or with what is large in it cancelled.
fn varied(signature: &Signature, input: &DotAdd, inside: &Number, rng: &mut impl Rng) -> DotAdd {
    if below(MIRRORED, rng) == 0 {
        return vary::mirrored(signature, input, rng);
    }
    let mut varied = input.clone();
    let top = inside.term.leading_exponent().unwrap_or(inside.term.exponent);
    let depth = 2 * (signature.d.fraction_bits as i32 + 4);
    for _ in 0..1 + below(2, rng) {
        let distance = match below(3, rng) {
            0 => below(3, rng) as i32 - 1,
            1 => -(below(depth as u64, rng) as i32),
            _ => below(8, rng) as i32 - 4,
        };
        let exponent = top + distance;
        let summand = match below(2, rng) {
            0 => Summand::C,
            _ => Summand::Product(below(signature.k as u64, rng) as usize),
        };
        match summand {
            Summand::C => varied.c = sparse::number(&signature.c, exponent, rng),
            Summand::Product(k) if below(4, rng) == 0 => {
                varied.a[k] ^= 1 << below(u64::from(signature.a.bits()), rng);
            }
            Summand::Product(_) => {
                let bits = below(4, rng);
                let significand = 1 << bits | below(1 << bits, rng);
                let negative = below(2, rng) == 1;
                let value = Dyadic { negative, significand, exponent: exponent - bits as i32 };
                place::set(&mut varied, signature, summand, value);
            }
        }
    }
    varied
}
