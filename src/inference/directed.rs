//! Inputs on which models differ, searched for where those of one tree differ inside.
//!
//! Two models that differ in one rule often disagree about an inner sum long before anything of it
//! shows in d: a bit far below what is rounded away later, an exponent that the next sum aligns to.
//! Such inputs are common. From each, the search goes on nearby: c or another product is set to about
//! what the inner sum is, so that it cancels, or comes to lie where the next rounding decides.

use std::collections::BTreeMap;

use mmaprobe_model::execute::{Number, Value};
use mmaprobe_model::format::{self, RoundTo};
use mmaprobe_model::scalar::{Inputs, Nodes, Scalar};
use mmaprobe_model::tree::{NanRule, Node, Normalised, RuleId};
use mmaprobe_model::{Executor, Model, Rounding};
use mmaprobe_probes::boundaries::{self, Boundaries};
use mmaprobe_probes::place::{self, Dyadic};
use mmaprobe_probes::sparse::{self, below};
use mmaprobe_probes::{DotAdd, Signature, Summand, leftover, vary};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use rayon::prelude::*;

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
/// Inputs whose variations are tried together: what tells models apart is tried on all others before the next.
const AT_ONCE: usize = 24;
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
    /// Whether no input has told them apart yet, and one may.
    fn is_open(&self) -> bool {
        *self == Told::InsideOnly
    }

    /// The first input that tells them apart.
    pub fn first(self) -> Option<DotAdd> {
        match self {
            Told::Apart(inputs) => inputs.into_iter().next(),
            Told::InsideOnly | Told::Never => None,
        }
    }
}

/// What is known of a model, for the search of inputs that tell others from it. What is not there is made.
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
        let values = Values::of(&model, inputs.iter().take(SCANNED).map(|(_, inputs)| inputs));
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

/// Searches for inputs on which other models give other results than a model, starting from these inputs. What tells one of
/// them apart is tried on all. Where all trees add the same, the others differ from the model in the same rules. Trees that do
/// not have the same nodes as the model's are not compared inside. NaNs are taken as one where the other model does
/// not know which it is.
pub fn search(
    signature: &Signature,
    model: &Model,
    others: &Others,
    inputs: &[(DotAdd, Inputs)],
    kept: Kept,
    (how, seed): (Search, u64),
) -> Vec<Told> {
    let inputs = &inputs[..inputs.len().min(SCANNED)];
    let Some(first) = others.models.first() else { return Vec::new() };
    if others.models.iter().any(|other| !model.tree.adds_the_same(&other.tree)) {
        return mirrored(signature, model, others.models, inputs, seed);
    }
    let own_values =
        kept.values.is_none().then(|| Values::of(model, inputs.iter().map(|(_, inputs)| inputs)));
    let own_wide = kept.wide.is_none().then(|| Wide::new(model, &Wide::rules(model, first), inputs));
    let (Some(values), Some(wide)) = (kept.values.or(own_values.as_ref()), kept.wide.or(own_wide.as_ref()))
    else {
        unreachable!("what is not kept has been made");
    };
    let latent_of = |&index: &usize| latent(model, others.models[index], inputs, (values, wide), how);
    let found: Vec<Vec<(usize, Number)>> = others.searched.par_iter().map(latent_of).collect();
    let mut told = vec![Told::InsideOnly; others.models.len()];
    for (&other, found) in others.searched.iter().zip(&found) {
        if found.is_empty() {
            told[other] = Told::Never;
        }
    }
    let latent = together(others.searched.iter().copied().zip(found));
    let boundaries = Boundaries::of(model);
    for (number, some) in latent.chunks(AT_ONCE).enumerate() {
        let is_open = |latent: &&Latent| latent.others.iter().any(|&other| told[other].is_open());
        let some: Vec<(usize, &Latent)> =
            some.iter().enumerate().filter(|(_, latent)| is_open(latent)).collect();
        let vary = |(index, latent): (usize, &Latent)| {
            let seed = seed ^ ((number * AT_ONCE + index) as u64).wrapping_mul(LATENT_SEED);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let input = &inputs[latent.index].0;
            let vary = |_| varied(signature, input, (&latent.inside, &boundaries), &mut rng);
            (0..VARIATIONS).map(vary).collect::<Vec<DotAdd>>()
        };
        let questions: Vec<DotAdd> = some.par_iter().copied().flat_map_iter(vary).collect();
        tell_apart(signature, model, others.models, &questions, &some, &mut told);
    }
    told
}

/// Sets the seeds of inputs that are varied apart.
const LATENT_SEED: u64 = 0x9fb2_1c65_1e98_df25;

/// Models that are told from one, and those of them for which inputs are searched.
#[derive(Clone, Copy, Debug)]
pub struct Others<'m> {
    /// All.
    pub models: &'m [&'m Model],
    /// The indices of some.
    pub searched: &'m [usize],
}

/// An input for which a value inside is another one in some other models.
struct Latent {
    /// Its index.
    index: usize,
    /// That value, in the first model, or in another if it is finite there only.
    inside: Number,
    /// The indices of those models.
    others: Vec<usize>,
}

/// The inputs of all models, each with the models that have the same value there: in the order of the inputs.
fn together(found: impl Iterator<Item = (usize, Vec<(usize, Number)>)>) -> Vec<Latent> {
    let mut of_input: BTreeMap<usize, Vec<Latent>> = BTreeMap::new();
    for (other, found) in found {
        for (index, inside) in found {
            let known = of_input.entry(index).or_default();
            match known.iter_mut().find(|latent| latent.inside == inside) {
                Some(latent) => latent.others.push(other),
                None => known.push(Latent { index, inside, others: vec![other] }),
            }
        }
    }
    of_input.into_values().flatten().collect()
}

/// Holds models against variations of inputs, so many of each: each model against those of its own first, and then against
/// what tells others apart.
fn tell_apart(
    signature: &Signature,
    model: &Model,
    others: &[&Model],
    questions: &[DotAdd],
    some: &[(usize, &Latent)],
    told: &mut [Told],
) {
    let Ok(executor) = Scalar::new(model) else { return };
    let evaluated = |executor: &mut Scalar, question: &DotAdd| {
        let inputs = evidence::inputs(signature, question);
        let (nodes, d) = held::evaluated(executor, &inputs);
        (inputs, nodes, d)
    };
    let evaluated: Vec<(Inputs, Option<Nodes>, u64)> =
        questions.par_iter().map_with(executor, evaluated).collect();
    let (mut inputs, mut nodes, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for (of_inputs, of_nodes, d) in evaluated {
        inputs.push(of_inputs);
        nodes.push(of_nodes);
        results.push(d);
    }
    let values = Values::new(model, inputs.iter().zip(nodes));
    let first_of = |other: usize, indices: &[usize]| {
        let mut neighbour = Neighbour::among(model, others[other], &values)?;
        let mut differs = |index: usize| {
            fit::differ(others[other], neighbour.execute_one_of(index, &inputs[index]), results[index])
        };
        indices.iter().copied().find(|&index| differs(index))
    };
    let own = |other: usize| {
        let has = |(_, (_, latent)): &(usize, &(usize, &Latent))| latent.others.contains(&other);
        let variations = |(place, _)| place * VARIATIONS..(place + 1) * VARIATIONS;
        first_of(other, &some.iter().enumerate().filter(has).flat_map(variations).collect::<Vec<usize>>())
    };
    let open =
        |told: &[Told]| (0..others.len()).filter(|&other| told[other].is_open()).collect::<Vec<usize>>();
    let mut telling: Vec<usize> = Vec::new();
    let found: Vec<(usize, Option<usize>)> =
        open(told).into_par_iter().map(|other| (other, own(other))).collect();
    for (other, found) in found {
        if let Some(index) = found {
            told[other] = Told::Apart(vec![questions[index].clone()]);
            telling.push(index);
        }
    }
    telling.sort_unstable();
    telling.dedup();
    if telling.is_empty() {
        return;
    }
    let any = |other: usize| (other, first_of(other, &telling));
    let found: Vec<(usize, Option<usize>)> = open(told).into_par_iter().map(any).collect();
    for (other, found) in found {
        if let Some(index) = found {
            told[other] = Told::Apart(vec![questions[index].clone()]);
        }
    }
}

/// The same for trees that do not have the same nodes: with what is large in the inputs cancelled.
fn mirrored(
    signature: &Signature,
    model: &Model,
    others: &[&Model],
    inputs: &[(DotAdd, Inputs)],
    seed: u64,
) -> Vec<Told> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mirrored: Vec<DotAdd> =
        inputs.iter().map(|(input, _)| vary::mirrored(signature, input, &mut rng)).collect();
    let mirrored = decoded(signature, &mirrored);
    let Ok(mut executor) = Scalar::new(model) else { return vec![Told::InsideOnly; others.len()] };
    let results: Vec<u64> = mirrored.iter().map(|(_, inputs)| executor.execute(inputs)).collect();
    let tell = |other: &&Model| {
        let mut executor = Scalar::new(other).ok()?;
        let differs =
            |((_, inputs), d): &(&(DotAdd, Inputs), &u64)| fit::differ(other, executor.execute(inputs), **d);
        let ((question, _), _) = mirrored.iter().zip(&results).find(differs)?;
        Some(question.clone())
    };
    let told =
        |question: Option<DotAdd>| question.map_or(Told::InsideOnly, |question| Told::Apart(vec![question]));
    others.par_iter().map(tell).map(told).collect()
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

/// The inputs, so many at most, for which values inside are others in another model, or would be if rules that differ kept
/// more bits, and the first of these values that is finite in one of the models.
fn latent(
    model: &Model,
    other: &Model,
    inputs: &[(DotAdd, Inputs)],
    (values, wide): (&Values, &Wide),
    how: Search,
) -> Vec<(usize, Number)> {
    let wide_other = widened(other, &Wide::rules(other, model));
    let pair = Pair::of(model, other, values).zip(Pair::of(&wide.model, &wide_other, &wide.values));
    let Some((mut pair, mut wide)) = pair else { return Vec::new() };
    let mut latent = Vec::new();
    for (index, (input, decoded)) in inputs.iter().enumerate() {
        if latent.len() == how.latent() || index == FRUITLESS && latent.is_empty() {
            break;
        }
        let inside = pair.inside(index, input, decoded).or_else(|| wide.inside(index, input, decoded));
        latent.extend(inside.map(|inside| (index, inside)));
    }
    latent
}

/// Two models, ready to be asked for every inner value.
struct Pair<'m, 'v> {
    other: Neighbour<'m, 'v>,
    /// For values that are too wide.
    general: (Executor<'m>, Executor<'m>),
}

impl<'m, 'v> Pair<'m, 'v> {
    /// Two models; `values` are those that the first one has for the inputs.
    fn of(one: &'m Model, other: &'m Model, values: &'v Values) -> Option<Pair<'m, 'v>> {
        let general = (Executor::new(one).ok()?, Executor::new(other).ok()?);
        Some(Pair { other: Neighbour::among(one, other, values)?, general })
    }

    /// The first inner value on which the models differ for one of the inputs, if it is finite in one of them.
    fn inside(&mut self, index: usize, q: &DotAdd, decoded: &Inputs) -> Option<Number> {
        let finite = |one: Value, other: Value| match (one, other) {
            (Value::Finite(number), _) | (_, Value::Finite(number)) => Some(number),
            _ => None,
        };
        let Pair { other, general } = self;
        if let Some(found) = other.first_difference_of_one(index, decoded) {
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
/// the other sign or the same, a power of two, few bits, or many; or with what is large in it cancelled, something where
/// results are rounded, or the last bits that a sum keeps left over.
fn varied(
    signature: &Signature,
    input: &DotAdd,
    (inside, boundaries): (&Number, &Boundaries),
    rng: &mut impl Rng,
) -> DotAdd {
    if below(LEFT_OVER, rng) == 0 {
        return leftover::dot_add(signature, input, boundaries, rng);
    }
    if !boundaries.results.is_empty() && below(BOUNDED, rng) == 0 {
        return boundaries::at_boundary(signature, input, boundaries, rng);
    }
    if below(MIRRORED, rng) == 0 {
        return vary::mirrored(signature, input, rng);
    }
    let (mut varied, kept) = (input.clone(), &boundaries.kept);
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
