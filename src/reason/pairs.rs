//! Inputs on which two models differ.
//!
//! Two trees can only part where one of them decides: at the last bit that an alignment or a rounding
//! keeps, at ties, where a sum outgrows its integer bits, at the ends of a format, at zeros and special
//! values. Candidates put summands exactly there, at the distances that the two trees' own parameters name,
//! and let the large ones cancel so that what is left shows. They are executed on both models; then inputs
//! from the random distributions are, and those on which the models differ inside are varied
//! ([`directed`](crate::inference)).

use std::collections::BTreeSet;
use std::convert::Infallible;

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::{carries, differ, signature};
use crate::inference::directed;
use crate::model::tree::{Added, Fused, Normalised};
use crate::model::{Executor, Format, Model};
use crate::probes::place::{self, Dyadic};
use crate::probes::random::{self, Distribution};
use crate::probes::{DotAdd, Signature, Summand, sparse};
use crate::shrink::shrink;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The input, shrunk to its essence.
    pub input: DotAdd,
    /// All results: the first model's, then the others'.
    pub results: Vec<u64>,
    /// Inputs that were executed before it was found.
    pub tried: u64,
}

/// Structured candidates, at most.
const STRUCTURED: usize = 40_000;
/// Inputs with few summands, and as many from the random distributions.
const RANDOM: usize = 6_000;

/// Searches for an input on which two models differ; both take the same operands.
///
/// The result is the same for a seed. `None` proves nothing.
///
/// # Panics
/// If the models do not pass [`Model::check`], or do not take the same operands.
pub fn difference(one: &Model, other: &Model, seed: u64) -> Option<Difference> {
    difference_from_all(one, &[other], seed)
}

/// Searches for an input on which a model differs from each of several others.
///
/// # Panics
/// As [`difference`].
pub fn difference_from_all(one: &Model, others: &[&Model], seed: u64) -> Option<Difference> {
    let signature = signature(one);
    let mut models = Models::new(one, others);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let distances = distances(&models.models);
    let mut tried = 0;
    // The largest sums there are, where a model's integer bits are limited.
    for model in [&[one], others].concat().into_iter().filter(|model| has_limited_carry(model)) {
        for input in carries::candidates(model, &signature) {
            tried += 1;
            if models.differ(&input) {
                return Some(models.shrunk(&input, tried));
            }
        }
    }
    for index in 0..STRUCTURED {
        let Some(input) = structured(&signature, &distances, index, &mut rng) else { continue };
        tried += 1;
        if models.differ(&input) {
            return Some(models.shrunk(&input, tried));
        }
    }
    let mut pool: Vec<DotAdd> = (0..RANDOM).map(|_| sparse::dot_add(&signature, &mut rng)).collect();
    pool.extend((0..RANDOM).map(|index| {
        random::dot_add(Distribution::ALL[index % Distribution::ALL.len()], &signature, &mut rng)
    }));
    for input in &pool {
        tried += 1;
        if models.differ(input) {
            return Some(models.shrunk(input, tried));
        }
    }
    let [other] = others else { return None };
    let pool = directed::decoded(&signature, &pool);
    let how = (directed::Search::Thorough, seed);
    let others = directed::Others { models: &[other], searched: &[0] };
    let found = directed::search(&signature, one, &others, &pool, directed::Kept::default(), how);
    let found = found.into_iter().next()?.first()?;
    // The search compares in its own way; what counts is this.
    models.differ(&found).then(|| models.shrunk(&found, tried))
}

/// Whether a sum of the model has a limited integer part.
fn has_limited_carry(model: &Model) -> bool {
    let is_limited = |added: &Added| matches!(added, Added::Fused(Fused { carry: Some(_), .. }));
    model.tree.rules.iter().any(|rule| is_limited(&rule.added))
}

/// A model and others, ready to be executed.
struct Models<'m> {
    models: Vec<&'m Model>,
    executors: Vec<Executor<'m>>,
}

impl<'m> Models<'m> {
    fn new(one: &'m Model, others: &[&'m Model]) -> Models<'m> {
        let models: Vec<&Model> = [one].into_iter().chain(others.iter().copied()).collect();
        let executors = models.iter().map(|model| Executor::new(model).expect("a checked model")).collect();
        Models { models, executors }
    }

    fn results(&mut self, input: &DotAdd) -> Vec<u64> {
        let DotAdd { a, b, c, sa, sb } = input;
        self.executors.iter_mut().map(|executor| executor.dot_add(a, b, *c, sa, sb)).collect()
    }

    /// Whether the first differs from every other.
    fn differ(&mut self, input: &DotAdd) -> bool {
        let results = self.results(input);
        let others = self.models[1..].iter().zip(&results[1..]);
        others.into_iter().all(|(other, &result)| differ(self.models[0], other, [results[0], result]))
    }

    fn shrunk(&mut self, input: &DotAdd, tried: u64) -> Difference {
        let signature = signature(self.models[0]);
        let mut shows =
            |inputs: &[DotAdd]| Ok::<_, Infallible>(inputs.iter().map(|input| self.differ(input)).collect());
        let Ok(input) = shrink(input, &signature, &mut shows);
        Difference { results: self.results(&input), input, tried }
    }
}

/// Distances between exponents at which one of the models decides something.
fn distances(models: &[&Model]) -> Vec<i32> {
    let mut all = BTreeSet::from([0, 1, 2]);
    let mut near = |bits: u32| all.extend((-1..=3).map(|by| bits as i32 + by));
    for model in models {
        near(model.d.fraction_bits);
        near(model.a.format.fraction_bits + model.b.format.fraction_bits);
        for rule in &model.tree.rules {
            if let Added::Fused(Fused { alignment, .. }) = &rule.added {
                for alignment in alignment {
                    near(alignment.fraction_bits);
                    near(alignment.far.map_or(0, |far| far.distance.unsigned_abs()));
                }
            }
            if let Normalised::To(round) = &rule.normalised {
                near(round.fraction_bits);
            }
        }
    }
    all.into_iter().filter(|&distance| distance >= 0).collect()
}

/// An input that goes where models part: up to five summands at such distances, the largest cancelled in
/// half of them; or operands at the ends of their formats. `None` if the formats hold no such values.
fn structured(
    signature: &Signature,
    distances: &[i32],
    index: usize,
    rng: &mut Xoshiro256PlusPlus,
) -> Option<DotAdd> {
    let below = |rng: &mut Xoshiro256PlusPlus, n: usize| (rng.next_u64() % n as u64) as usize;
    if index % 16 == 15 {
        return Some(at_the_ends(signature, rng));
    }
    let mut summands: Vec<Summand> = signature.summands().collect();
    for place in (1..summands.len()).rev() {
        summands.swap(place, below(rng, place + 1));
    }
    // The accumulator's place is worth more than one among many products.
    if index.is_multiple_of(2) {
        let place = summands.iter().position(|&s| s == Summand::C)?;
        summands.swap(0, place);
    }
    let (low, high) = place::reach(signature);
    let base = match index % 4 {
        0 | 1 => 0.clamp(low, high),
        2 => high - below(rng, 4) as i32,
        _ => low + below(rng, (high - low).max(1) as usize) as i32,
    };
    let count = 2 + below(rng, 4).min(summands.len() - 2);
    let value = |rng: &mut Xoshiro256PlusPlus, leading: i32, negative: bool| {
        let bits = below(rng, signature.a.fraction_bits as usize + 2);
        let significand = match below(rng, 4) {
            0 => 1,
            1 => 3,
            2 => (1 << bits) | 1,
            _ => (2 << bits) - 1,
        };
        let width = 63 - u64::leading_zeros(significand) as i32;
        Dyadic { negative, significand, exponent: leading - width }
    };
    let sign = below(rng, 2) == 1;
    let mut values = vec![(summands[0], value(rng, base, sign))];
    if count > 2 && below(rng, 2) == 0 {
        values.push((summands[1], -values[0].1));
    }
    while values.len() < count {
        let distance = distances[below(rng, distances.len())];
        let sign = below(rng, 2) == 1;
        values.push((summands[values.len()], value(rng, base - distance, sign)));
    }
    place::question(signature, &values)
}

/// Operands of special values, of the ends of the formats' ranges, and in between.
fn at_the_ends(signature: &Signature, rng: &mut Xoshiro256PlusPlus) -> DotAdd {
    let mut pick = |format: &Format| -> u64 {
        let sign = if format.signed { 1u64 << (format.bits() - 1) } else { 0 };
        let field_top = ((1u64 << format.exponent_bits) - 1) << format.fraction_bits;
        let one = format.fraction_bits.min(1).into();
        let patterns = [0, one, 1u64 << format.fraction_bits, field_top - 1, field_top, field_top | one];
        let choice = (rng.next_u64() % 8) as usize;
        let bits = patterns.get(choice).copied().unwrap_or_else(|| rng.next_u64());
        let signed = if rng.next_u64().is_multiple_of(2) { bits ^ sign } else { bits };
        (signed << format.ignored_low_bits) & format.mask()
    };
    let mut input = place::zeros(signature);
    let live = signature.k.min(3);
    for k in 0..live {
        (input.a[k], input.b[k]) = (pick(&signature.a), pick(&signature.b));
    }
    input.c = pick(&signature.c);
    input
}
