//! Inputs on which two models of one tree differ, searched for where they differ inside.
//!
//! Two models that differ in one rule often disagree about an inner sum long before anything of it
//! shows in d: a bit far below what is rounded away later, an exponent that the next sum aligns to.
//! Such inputs are common. From each, the search goes on nearby: c or another product is set to about
//! what the inner sum is, so that it cancels, or comes to lie where the next rounding decides.

use mmaprobe_model::execute::{Number, Value};
use mmaprobe_model::format::{self, RoundTo};
use mmaprobe_model::scalar::{Inputs, Scalar};
use mmaprobe_model::tree::{NanRule, Node, Normalised, RuleId};
use mmaprobe_model::{Executor, Model, Rounding};
use mmaprobe_probes::boundaries::{self, Boundaries};
use mmaprobe_probes::place::{self, Dyadic};
use mmaprobe_probes::sparse::{self, below};
use mmaprobe_probes::{DotAdd, Signature, Summand, leftover, vary};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::held::{self, Neighbour, Values};
use super::{evidence, fit};

/// Inputs that differ inside and are varied, in a search that is soon done.
const FEW_LATENT: usize = 15;
/// And in a thorough one.
const LATENT: usize = 60;
/// Inputs that are looked at.
const SCANNED: usize = 3000;
/// Inputs after which the search is given up if none of them differs inside.
const FRUITLESS: usize = 1000;
/// Variations of each.
const VARIATIONS: usize = 60;
/// Of those, one of so many in which what is large is cancelled.
const MIRRORED: u64 = 3;
/// And one of so many in which something lies where a result that keeps fewer bits than c is rounded, if any does.
const BOUNDED: u64 = 4;
/// And one of so many in which the last bits that a sum keeps are left over.
const LEFT_OVER: u64 = 8;

/// Questions, each with its operands taken apart; no more than are looked at from the first.
pub fn decoded(signature: &Signature, questions: &[DotAdd]) -> Vec<(DotAdd, Inputs)> {
    let with_inputs = |question: &DotAdd| (question.clone(), evidence::inputs(signature, question));
    questions.iter().take(SCANNED).map(with_inputs).collect()
}

/// How thoroughly inputs are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// For a model that may well be contradicted by the first of them.
    Soon,
    /// Until hardly one is left to be found.
    Thorough,
}

impl Search {
    /// Inputs that differ inside and are varied.
    fn latent(self) -> usize {
        match self {
            Search::Soon => FEW_LATENT,
            Search::Thorough => LATENT,
        }
    }
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

/// What is known of a model, for the search of inputs that tell others from it.
#[derive(Clone, Copy, Default)]
pub struct Kept<'v> {
    /// What it makes of the inputs.
    pub values: Option<&'v Values>,
    /// What it makes of them where rules that differ keep more bits.
    pub wide: Option<&'v Wide>,
}

/// A model with what some of its rules round made visible, and what it makes of some inputs.
pub struct Wide {
    model: Model,
    values: Values,
}

impl Wide {
    /// The rules of a model that another one does not have: those that keep more bits.
    pub fn rules(model: &Model, other: &Model) -> Vec<RuleId> {
        let is_other = |rule: &RuleId| other.tree.rules.get(*rule) != Some(&model.tree.rules[*rule]);
        (0..model.tree.rules.len()).filter(is_other).collect()
    }

    /// What a model makes of the inputs that are looked at where these rules keep more bits.
    pub fn new(model: &Model, rules: &[RuleId], inputs: &[(DotAdd, Inputs)]) -> Wide {
        let model = widened(model, rules);
        let mut executor = Scalar::new(&model).ok();
        let mut nodes = |inputs| executor.as_mut()?.nodes(inputs);
        let inputs = inputs.iter().take(SCANNED).map(|(_, inputs)| (inputs, nodes(inputs)));
        let values = Values::new(&model, inputs);
        Wide { model, values }
    }

    /// A number for what differs inside where these rules keep more bits in another model, too; `None` where that
    /// cannot be said.
    pub fn fingerprint(&self, model: &Model, other: &Model, inputs: &[(DotAdd, Inputs)]) -> Option<u64> {
        let other = widened(other, &Wide::rules(other, model));
        let mut neighbour = Neighbour::among(&self.model, &other, &self.values)?;
        for (index, (_, inputs)) in inputs.iter().take(SCANNED).enumerate() {
            neighbour.execute_one_of(index, inputs);
        }
        neighbour.fingerprint()
    }
}

/// Searches for an input on which the two models give different results, starting from these inputs. Trees
/// that do not have the same nodes are not compared inside. NaNs are taken as one where the other model does not
/// know which it is.
pub fn search(
    signature: &Signature,
    model: &Model,
    other: &Model,
    inputs: &[(DotAdd, Inputs)],
    kept: Kept,
    (how, seed): (Search, u64),
) -> Told {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    if !model.tree.adds_the_same(&other.tree) {
        return mirrored(signature, model, other, inputs, &mut rng);
    }
    let wide_one = match kept.wide {
        Some(_) => None,
        None => Some(widened(model, &Wide::rules(model, other))),
    };
    let wide_one = kept.wide.map(|wide| &wide.model).or(wide_one.as_ref()).expect("one of them is there");
    let wide_other = widened(other, &Wide::rules(other, model));
    let wide_values = kept.wide.map(|wide| &wide.values);
    let pair = Pair::of(model, other, kept.values);
    let (Some(mut pair), Some(mut wide)) = (pair, Pair::of(wide_one, &wide_other, wide_values)) else {
        return Told::InsideOnly;
    };
    let boundaries = Boundaries::of(model);
    let mut latent = 0;
    for (index, (input, decoded)) in inputs.iter().take(SCANNED).enumerate() {
        if index == FRUITLESS && latent == 0 {
            break;
        }
        let inside = pair.inside(index, input, decoded).or_else(|| wide.inside(index, input, decoded));
        let Some(inside) = inside else { continue };
        latent += 1;
        for _ in 0..VARIATIONS {
            let varied = if below(LEFT_OVER, &mut rng) == 0 {
                leftover::dot_add(signature, input, &boundaries, &mut rng)
            } else if !boundaries.results.is_empty() && below(BOUNDED, &mut rng) == 0 {
                boundaries::at_boundary(signature, input, &boundaries, &mut rng)
            } else {
                varied(signature, input, (&inside, &boundaries.kept), &mut rng)
            };
            if pair.differs(signature, &varied) {
                return Told::Apart(vec![varied]);
            }
        }
        if latent == how.latent() {
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
    let Some(mut pair) = Pair::of(model, other, None) else { return Told::InsideOnly };
    let mut varied = inputs.iter().take(SCANNED).map(|(input, _)| vary::mirrored(signature, input, rng));
    match varied.find(|varied| pair.differs(signature, varied)) {
        Some(found) => Told::Apart(vec![found]),
        None => Told::InsideOnly,
    }
}

/// The model with its root, and the sums that follow these rules, rounded to more bits than d has: what is kept
/// before the rounding shows.
fn widened(model: &Model, rules: &[RuleId]) -> Model {
    let mut wide = Model { d: format::FP64, nan: NanRule::Unknown, ..model.clone() };
    let root = match wide.tree.nodes.last() {
        Some(Node::Sum { rule, .. }) => *rule,
        _ => return wide,
    };
    for (index, rule) in wide.tree.rules.iter_mut().enumerate() {
        if index == root || rules.contains(&index) {
            rule.normalised = Normalised::To(RoundTo {
                rounding: Rounding::TowardZero,
                ..RoundTo::nearest_even(format::FP64)
            });
        }
    }
    wide
}

/// Two models, ready to be asked for d and for every inner value.
struct Pair<'m, 'v> {
    one: Scalar<'m>,
    other: Neighbour<'m, 'v>,
    /// For values that are too wide.
    general: (Executor<'m>, Executor<'m>),
    /// Whether the first one's values for the inputs are known.
    has_values: bool,
}

impl<'m, 'v> Pair<'m, 'v> {
    /// Two models; `values` are those that the first one has for the inputs, if they are known.
    fn of(one: &'m Model, other: &'m Model, values: Option<&'v Values>) -> Option<Pair<'m, 'v>> {
        let general = (Executor::new(one).ok()?, Executor::new(other).ok()?);
        let has_values = values.is_some();
        let other = match values {
            Some(values) => Neighbour::among(one, other, values)?,
            None => Neighbour::new(one, other)?,
        };
        Some(Pair { one: Scalar::new(one).ok()?, other, general, has_values })
    }

    /// Whether d differs.
    fn differs(&mut self, signature: &Signature, question: &DotAdd) -> bool {
        let inputs = evidence::inputs(signature, question);
        let (nodes, x) = held::evaluated(&mut self.one, &inputs);
        fit::differ(self.general.1.model(), x, self.other.execute(&inputs, nodes.as_ref()))
    }

    /// The first inner value on which the models differ for one of the inputs, if it is finite in one of them.
    fn inside(&mut self, index: usize, q: &DotAdd, decoded: &Inputs) -> Option<Number> {
        let finite = |one: Value, other: Value| match (one, other) {
            (Value::Finite(number), _) | (_, Value::Finite(number)) => Some(number),
            _ => None,
        };
        let Pair { one, other, general, has_values } = self;
        let found = if *has_values {
            other.first_difference_of_one(index, decoded)
        } else {
            one.nodes(decoded).and_then(|nodes| other.first_difference(decoded, &nodes))
        };
        if let Some(found) = found {
            let [one, other] = found?;
            return finite(one, other);
        }
        let one = general.0.evaluate(&q.a, &q.b, q.c, &q.sa, &q.sb);
        let other = general.1.evaluate(&q.a, &q.b, q.c, &q.sa, &q.sb);
        let (x, y) = one.iter().zip(other).find(|(x, y)| x != y)?;
        finite(x.clone(), y.clone())
    }
}

/// The input with one or two summands set near an inner value, or where sums that keep so many bits below it cut off: of
/// the other sign or the same, a power of two, few bits, or many; or with what is large in it cancelled.
fn varied(
    signature: &Signature,
    input: &DotAdd,
    (inside, kept): (&Number, &[u32]),
    rng: &mut impl Rng,
) -> DotAdd {
    if below(MIRRORED, rng) == 0 {
        return vary::mirrored(signature, input, rng);
    }
    let mut varied = input.clone();
    let top = inside.term.leading_exponent().unwrap_or(inside.term.exponent);
    let depth = 2 * (signature.d.fraction_bits as i32 + 4);
    for _ in 0..1 + below(2, rng) {
        let distance = match below(4, rng) {
            0 => below(3, rng) as i32 - 1,
            1 => -(below(depth as u64, rng) as i32),
            2 if !kept.is_empty() => {
                let kept = kept[below(kept.len() as u64, rng) as usize];
                below(4, rng) as i32 - 2 - kept as i32
            }
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
            Summand::Product(k) => {
                let bits = below(4, rng);
                let significand = 1 << bits | below(1 << bits, rng);
                let negative = below(2, rng) == 1;
                // The factors make up what the scales do not.
                let block = signature.scale.map_or(0, |scale| k / scale.block);
                let exponent = exponent - place::scales_exponent(signature, &varied, block);
                let value = Dyadic { negative, significand, exponent: exponent - bits as i32 };
                place::set(&mut varied, signature, summand, value);
            }
        }
    }
    varied
}
