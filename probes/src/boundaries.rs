//! Questions where results are rounded: what decides there shows nowhere else.
//!
//! A result that keeps few bits hides what sums make of small summands, but where something large lies half way between
//! two results, or next to that.

use mmaprobe_model::tree::{Added, Fused, Node, Normalised, Product, Rule};
use mmaprobe_model::{Format, Model};
use rand_core::Rng;

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};
use crate::sparse::below;
use crate::vary::product;

/// Numbers of fraction bits at which something is rounded, what meets there, and exponents at which something ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boundaries {
    /// Of results.
    pub results: Vec<u32>,
    /// That are kept of summands, below the largest.
    pub kept: Vec<u32>,
    /// For each sum of two or more, of each of its summands one of c and the products in it that reaches it by way of the
    /// fewest other sums.
    pub meeting: Vec<Vec<Summand>>,
    /// Exponents, at which something ends: see [`ends`].
    pub ends: Vec<i32>,
}

impl Boundaries {
    /// The fraction bits that results of a model's sums are rounded to, those that its sums keep, what meets in them, and
    /// where its formats end.
    #[must_use]
    pub fn of(model: &Model) -> Boundaries {
        let rules = &model.tree.rules;
        let result = |rule: &Rule| match &rule.normalised {
            Normalised::To(round) => Some(round.fraction_bits),
            Normalised::No { .. } => None,
        };
        let kept = |rule: &Rule| match &rule.added {
            Added::Fused(fused) => fused.alignment.iter().map(|alignment| alignment.fraction_bits).collect(),
            Added::Exact => Vec::new(),
        };
        let each = |mut all: Vec<u32>| {
            all.sort_unstable();
            all.dedup();
            all
        };
        Boundaries {
            results: each(rules.iter().filter_map(result).collect()),
            kept: each(rules.iter().flat_map(kept).collect()),
            meeting: meeting(model),
            ends: ends(model),
        }
    }
}

/// Exponents at which something ends: the ranges of d and of formats between, and what products are cut off at.
#[must_use]
pub fn ends(model: &Model) -> Vec<i32> {
    let range = |format: &Format| [format.min_exponent(), format.max_exponent()];
    let mut ends = range(&model.d).to_vec();
    match &model.product {
        Product::Rounded(round) => ends.extend(range(&round.format)),
        Product::OverflowsAt { exponent } | Product::FlushedBelow { exponent, .. } => ends.push(*exponent),
        Product::Exact => {}
    }
    for rule in &model.tree.rules {
        if let Normalised::To(round) = &rule.normalised {
            ends.extend(range(&round.format));
        }
    }
    let floors = model.tree.rules.iter().filter_map(|rule| match &rule.added {
        Added::Fused(fused) => fused.floor,
        Added::Exact => None,
    });
    ends.extend(floors);
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// Exponents of the last bits that count of small products: where those below are flushed, and those that sums keep above
/// a floor.
#[must_use]
pub fn last_bits(model: &Model) -> Vec<i32> {
    let mut last_bits = Vec::new();
    if let Product::FlushedBelow { exponent, .. } = &model.product {
        last_bits.push(*exponent);
    }
    for rule in &model.tree.rules {
        if let Added::Fused(Fused { floor: Some(floor), alignment, .. }) = &rule.added {
            last_bits.extend(alignment.iter().map(|alignment| floor - alignment.fraction_bits as i32));
        }
    }
    last_bits.sort_unstable();
    last_bits.dedup();
    last_bits
}

/// See [`Boundaries::meeting`].
fn meeting(model: &Model) -> Vec<Vec<Summand>> {
    let mut nearest: Vec<Option<(usize, Summand)>> = Vec::with_capacity(model.tree.nodes.len());
    let mut meeting = Vec::new();
    for node in &model.tree.nodes {
        let below = || node.children().iter().filter_map(|&child| nearest[child]);
        let here = match node {
            Node::Product(k) => Some((0, Summand::Product(*k))),
            Node::Accumulator => Some((0, Summand::C)),
            Node::Zero => None,
            Node::Scaled { .. } => below().next(),
            Node::Sum { .. } => {
                let summands: Vec<Summand> = below().map(|(_, summand)| summand).collect();
                if summands.len() > 1 {
                    meeting.push(summands);
                }
                below().min_by_key(|(depth, _)| *depth).map(|(depth, summand)| (depth + 1, summand))
            }
        };
        nearest.push(here);
    }
    meeting
}

/// A question in which c, or now and then the largest product, lies where results with so many fraction bits are rounded:
/// half way between two of them, just below one, or at one. What is cut off of a small summand beside it decides
/// there which way a sum is rounded, however few of its bits are kept. Every other time a product is one of which half of
/// the last bit that is kept is cut off, or a quarter, or three. Every other question has nothing but two summands that
/// meet in one sum. As far as the formats hold that; where they do not, or
/// no result has boundaries, the question as it is. An exponent stays as it is where there is one.
pub fn at_boundary(
    signature: &Signature,
    question: &DotAdd,
    boundaries: &Boundaries,
    rng: &mut (impl Rng + ?Sized),
) -> DotAdd {
    let mut bounded = question.clone();
    let Some(bits) = one_of(&boundaries.results, rng) else { return bounded };
    // What is rounded to as many bits as c and products hold lies nowhere between two results.
    let most = signature.c.fraction_bits.max(signature.a.fraction_bits + signature.b.fraction_bits + 1);
    let is_alone = !boundaries.meeting.is_empty() && (bits >= most || below(ALONE, rng) == 0);
    if is_alone {
        return alone(signature, question, boundaries, bits, rng);
    }
    let (significand, more) = at(bits, rng);
    let products = (0..signature.k).filter_map(|k| Some((k, product(signature, question, k)?.leading()?)));
    let largest = products.max_by_key(|(_, leading)| *leading);
    let (summand, exponent) = match (largest, place::leading(&signature.c, question.c)) {
        (Some((k, leading)), _) if below(4, rng) == 0 => {
            // The factors make up what the scales do not.
            (Summand::Product(k), leading - scales_of(signature, question, k))
        }
        (_, Some(leading)) => (Summand::C, leading),
        (Some((_, leading)), None) => {
            let above = below(2 * u64::from(signature.d.fraction_bits), rng);
            (Summand::C, leading + above as i32)
        }
        (None, None) => return bounded,
    };
    let negative = below(2, rng) == 1;
    let value = Dyadic { negative, significand, exponent: exponent - bits as i32 - more };
    place::set(&mut bounded, signature, summand, value);
    if let Some(kept) = one_of(&boundaries.kept, rng).filter(|_| below(2, rng) == 0) {
        let k = match largest {
            Some((k, _)) if below(2, rng) == 0 => k,
            _ => below(signature.k as u64, rng) as usize,
        };
        // Half of the last bit that is kept, or less or more; above it nothing, or anything.
        let (cut, more) = [(1, 1), (1, 2), (3, 2)][below(3, rng) as usize];
        let above = if below(2, rng) == 0 { 0 } else { below(1 << below(11, rng), rng) };
        let value = Dyadic {
            negative: below(2, rng) == 1,
            significand: above << more | cut,
            exponent: exponent - kept as i32 - more - scales_of(signature, question, k),
        };
        place::set(&mut bounded, signature, Summand::Product(k), value);
    }
    bounded
}

/// One of so many questions at a boundary has nothing but two summands.
const ALONE: u64 = 2;

/// A significand where results with so many fraction bits are rounded, and how many more bits it has.
fn at(bits: u32, rng: &mut (impl Rng + ?Sized)) -> (u64, i32) {
    let first = 1 << bits;
    let result = first | if below(2, rng) == 0 { 0 } else { rng.next_u64() & (first - 1) };
    match below(4, rng) {
        0 => (result, 0),
        1 => (result << 3 | 7, 3),
        _ => (result << 1 | 1, 1),
    }
}

/// Tries to find exponents that the formats hold, and how far from 1 the large summand is, and below it the small one,
/// at most, in binades.
const TRIES: usize = 8;
const FAR: u64 = 32;
const BELOW: u64 = 72;

/// A question with the scales of this one and two summands that meet in one sum, the larger where results with so many
/// fraction bits are rounded, and the smaller anywhere below; all others are zero. As far as the formats hold that.
fn alone(
    signature: &Signature,
    question: &DotAdd,
    boundaries: &Boundaries,
    bits: u32,
    rng: &mut (impl Rng + ?Sized),
) -> DotAdd {
    let scales = |zeros: DotAdd| DotAdd { sa: question.sa.clone(), sb: question.sb.clone(), ..zeros };
    let mut alone = scales(place::zeros(signature));
    let summands = &boundaries.meeting[below(boundaries.meeting.len() as u64, rng) as usize];
    let first = below(summands.len() as u64, rng) as usize;
    let other = (first + 1 + below(summands.len() as u64 - 1, rng) as usize) % summands.len();
    for _ in 0..TRIES {
        let exponent = below(2 * FAR, rng) as i32 - FAR as i32;
        let (significand, more) = at(bits, rng);
        let large =
            Dyadic { negative: below(2, rng) == 1, significand, exponent: exponent - bits as i32 - more };
        let negative = below(2, rng) == 1;
        let is_close = below(2, rng) == 0;
        let distance = match is_close {
            // About half of the last bit of the result.
            true => bits as i32 + below(4, rng) as i32,
            false => 1 + below(BELOW, rng) as i32,
        };
        let small = Dyadic { negative, significand: 1 + below(4, rng), exponent: exponent - distance };
        let set = [(summands[first], large), (summands[other], small)]
            .map(|(summand, value)| set_under_scales(signature, &mut alone, summand, value));
        if set == [true; 2] {
            if is_close && below(2, rng) == 0 {
                just_less(signature, &mut alone, summands[other], small);
            }
            break;
        }
    }
    alone
}

/// Sets a summand to a little less than a power of two: as many ones as the formats hold. What is rounded up of it
/// carries through all of them.
fn just_less(signature: &Signature, question: &mut DotAdd, summand: Summand, near: Dyadic) {
    let Some(leading) = near.leading() else { return };
    match summand {
        Summand::C => {
            let bits = signature.c.fraction_bits + 1;
            let ones = Dyadic { significand: (1 << bits) - 1, exponent: leading - bits as i32, ..near };
            place::set(question, signature, summand, ones);
        }
        Summand::Product(k) => {
            // (2^m - 1)(2^m + 1) has 2m ones.
            let m = signature.a.fraction_bits.min(signature.b.fraction_bits);
            let exponent = leading - 2 * m as i32 - scales_of(signature, question, k);
            let of_a = exponent / 2;
            let a = Dyadic { negative: near.negative, significand: (1 << m) - 1, exponent: of_a };
            let b = Dyadic { negative: false, significand: (1 << m) + 1, exponent: exponent - of_a };
            let factors = (place::exactly(&signature.a, a), place::exactly(&signature.b, b));
            if let (Some(a), Some(b)) = factors {
                (question.a[k], question.b[k]) = (a, b);
            }
        }
    }
}

/// One of these, if there are any.
pub(crate) fn one_of(all: &[u32], rng: &mut (impl Rng + ?Sized)) -> Option<u32> {
    (!all.is_empty()).then(|| all[below(all.len() as u64, rng) as usize])
}

/// Gives a summand a value, scales included: the factors make up what those of its block do not. Whether the formats can
/// hold that; if not, nothing changes.
pub(crate) fn set_under_scales(
    signature: &Signature,
    question: &mut DotAdd,
    summand: Summand,
    value: Dyadic,
) -> bool {
    let scales = match summand {
        Summand::Product(k) => scales_of(signature, question, k),
        Summand::C => 0,
    };
    let value = Dyadic { exponent: value.exponent - scales, ..value };
    place::set(question, signature, summand, value)
}

/// The exponent of the scales of a product's block.
pub(crate) fn scales_of(signature: &Signature, question: &DotAdd, k: usize) -> i32 {
    place::scales_exponent(signature, question, signature.scale.map_or(0, |scale| k / scale.block))
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format;
    use mmaprobe_model::format::RoundTo;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn c_comes_to_lie_half_way_between_two_results() {
        let half = format::FP16;
        let signature = Signature { k: 2, a: half, b: half, c: format::FP32, d: format::FP32, scale: None };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let values = [(Summand::C, Dyadic::new(5, 0)), (Summand::Product(1), Dyadic::power(-17))];
        let question = place::question(&signature, &values).expect("the formats hold these");
        let boundaries = Boundaries { results: vec![9], kept: vec![19], ..Boundaries::default() };
        let (mut ties, mut others, mut halves, mut quarters) = (0, 0, 0, 0);
        for _ in 0..1000 {
            let bounded = at_boundary(&signature, &question, &boundaries, &mut rng);
            let bits = bounded.c & 0x7f_ffff;
            assert_eq!(bounded.c >> 23 & 0xff, question.c >> 23, "the exponent stays");
            match bits & 0x3fff {
                0x2000 => ties += 1,
                _ => others += 1,
            }
            // c is 4 and more: the last bit that is kept is 2^-17.
            let last = |k| product(&signature, &bounded, k).map_or(0, |value| value.exponent);
            halves += usize::from(last(0) == -18 || last(1) == -18);
            quarters += usize::from(last(0) == -19 || last(1) == -19);
        }
        assert!(ties > 300 && others > 300, "{ties} and {others}");
        assert!(halves > 100 && quarters > 200, "{halves} and {quarters}");
        assert_eq!(at_boundary(&signature, &question, &Boundaries::default(), &mut rng), question);
    }

    #[test]
    fn small_summands_are_put_beside_large_ones_that_they_meet() {
        let mut model = Model::chain_of_fma(format::FP16, format::FP16, 3);
        model.tree.rules[0].normalised =
            Normalised::To(RoundTo { fraction_bits: 5, ..RoundTo::nearest_even(format::FP16) });
        let boundaries = Boundaries::of(&model);
        assert_eq!(boundaries.results, [5]);
        let product = Summand::Product;
        let meeting = [[Summand::C, product(0)], [Summand::C, product(1)], [product(1), product(2)]];
        assert_eq!(boundaries.meeting, meeting);
        let half = format::FP16;
        let signature = Signature { k: 3, a: half, b: half, c: half, d: half, scale: None };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let question = place::zeros(&signature);
        // c half way between two results, and nothing but p0 far below it, which takes from it.
        let takes_from_c = |bounded: &DotAdd| {
            let values: Vec<Option<Dyadic>> =
                (0..3).map(|k| super::product(&signature, bounded, k)).collect();
            let [Some(small), None, None] = values[..] else { return false };
            let Some(leading) = small.leading() else { return false };
            let far = place::leading(&half, bounded.c).is_some_and(|c| c - leading > 30);
            bounded.c & 0x1f == 0x10 && far && small.negative != (bounded.c >> 15 == 1)
        };
        let times =
            (0..3000).filter(|_| takes_from_c(&at_boundary(&signature, &question, &boundaries, &mut rng)));
        let times = times.count();
        assert!(times > 5, "{times} of 3000");
        // Twenty ones, half of the last bit of a result below something large.
        let is_just_less = |bounded: &DotAdd| {
            let ones =
                |k| super::product(&signature, bounded, k).is_some_and(|p| p.significand == (1 << 20) - 1);
            (0..3).any(ones)
        };
        let times = (0..3000)
            .filter(|_| is_just_less(&at_boundary(&signature, &question, &boundaries, &mut rng)))
            .count();
        assert!(times > 100, "{times} of 3000");
    }
}
