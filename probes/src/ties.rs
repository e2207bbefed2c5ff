//! How does a sum round what each of its summands loses, and what it adds up to?
//!
//! Where the number of bits that a sum keeps is known, or guessed, a summand can be put so that it loses a quarter, half or
//! three quarters of an ulp: random values hardly ever lie there, and no others tell all roundings to nearest apart. What is
//! larger in the sum is cancelled by a third summand, so that what is left shows what the small one was rounded to; or it is
//! a midpoint of two results itself, so that the small one says to which of them it is rounded.
//! (MMA-Sim paper, section III.E, Tables I and II, asked of each place of each sum.)

use std::ops::RangeInclusive;

use rand_core::Rng;

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Signature, Summand};
use crate::sparse::below;
use crate::sums::{self, Sum, any_of};

/// Where a sum loses bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The sum. It has two summands or more, each with a product or c in it.
    pub sum: Sum,
    /// What the sum is [added to next](sums::beside).
    pub beside: Vec<Summand>,
    /// Which of its summands loses them where it is aligned; none where the result does.
    pub place: Option<usize>,
    /// Fraction bits that are kept, below the largest summand's exponent, or the result's; none where nothing seems to be
    /// lost, so that any may be. An exponent that a sum is aligned to whatever its summands are is not known here.
    pub fraction_bits: Option<u32>,
    /// Fraction bits that the summand itself has been rounded to, if it is a sum that was.
    pub of_summand: Option<u32>,
    /// Fraction bits that the result is rounded to, if it is.
    pub of_result: Option<u32>,
}

/// So many questions about a cut tell all roundings apart.
pub const EACH: usize = 32;
/// And so many from which distance on summands are rounded otherwise, of sums that keep no more bits than most do.
pub const CLOSELY: usize = 4 * EACH;

/// A step of two ulps, in quarters of one: so many more are lost in the same way.
const TWO_ULPS: u64 = 8;
/// Steps that are tried: few long significands are products of two factors.
const STEPS: u64 = 16;
/// Fraction bits that a sum keeps at most (design, "The one idea").
const MOST: u32 = 64;
/// A leading bit above the quarters is one of 2^`FEW` quarters at least.
const FEW: u32 = 4;
/// So many times more questions are tried than asked: not all can be.
const TRIED: usize = 4;

/// How a loss is made to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// What is larger is a power of two, which is cancelled.
    Beside,
    /// What is lost is of the largest summand itself, whose leading bit is cancelled.
    Own,
    /// What is larger is a result, or a midpoint of two.
    Deciding,
    /// What is larger is a power of two, which is cancelled, and so is what is kept of the small one, or nearly all of it:
    /// however many bits that has, no other sum rounds the rest away.
    Both,
}

/// Random questions about what is lost at each of these cuts, so many each. The values lie `within` these exponents as far as
/// they can.
pub fn dot_adds(
    signature: &Signature,
    cuts: &[Cut],
    each: usize,
    within: &RangeInclusive<i32>,
    rng: &mut (impl Rng + ?Sized),
) -> Vec<DotAdd> {
    let mut asked = Vec::new();
    for cut in cuts {
        // Where few are asked, not always the same.
        let first = below(EACH as u64, rng) as usize;
        let questions = (first..first + TRIED * each)
            .filter_map(|turn| place::question(signature, &values(signature, cut, (within, turn), rng)?));
        asked.extend(questions.take(each));
    }
    asked
}

/// The summands that have values.
struct Chosen {
    /// The one that loses bits.
    small: Summand,
    /// Another of the same sum.
    large: Summand,
    /// A third of the same sum, if it has one, and one outside.
    inside: Option<Summand>,
    outside: Option<Summand>,
    /// Two others, as near as there are.
    others: Option<[Summand; 2]>,
}

/// One of so many questions does not prefer what the sum is added to next.
const ANYWHERE: u64 = 4;

impl Chosen {
    /// Any for a cut, if the sum has enough.
    fn any(
        signature: &Signature,
        Cut { sum, beside, place, .. }: &Cut,
        rng: &mut (impl Rng + ?Sized),
    ) -> Option<Chosen> {
        let mut children: Vec<usize> = (0..sum.len()).collect();
        let mut next = |children: &mut Vec<usize>| {
            (!children.is_empty()).then(|| children.swap_remove(below(children.len() as u64, rng) as usize))
        };
        let small = match *place {
            Some(place) => children.swap_remove(place),
            None => next(&mut children)?,
        };
        let large = next(&mut children)?;
        let third = next(&mut children);
        let (small, large) = (any_of(&sum[small], rng)?, any_of(&sum[large], rng)?);
        let inside = third.and_then(|third| any_of(&sum[third], rng));
        let outside: Vec<Summand> =
            signature.summands().filter(|summand| !sums::is_in(sum, summand)).collect();
        let near = if beside.is_empty() { &outside } else { beside };
        let mut nearest: Vec<Summand> = inside.into_iter().collect();
        for _ in 0..2 {
            let left = |from: &[Summand]| -> Vec<Summand> {
                from.iter().copied().filter(|summand| !nearest.contains(summand)).collect()
            };
            let (near, outside) = (left(near), left(&outside));
            nearest.extend(any_of(if near.is_empty() { &outside } else { &near }, rng));
        }
        let others = nearest.first_chunk().copied();
        let from = if below(ANYWHERE, rng) == 0 { &outside } else { near };
        let outside = any_of(from, rng);
        Some(Chosen { small, large, inside, outside, others })
    }

    /// The one that cancels what is larger or above: inside, it leaves what was aligned, and outside what the sum was
    /// rounded to.
    fn cancelling(&self, is_inside: bool) -> Option<Summand> {
        self.inside.filter(|_| is_inside).or(self.outside)
    }
}

/// Values of two to four summands that show what is lost at a cut: in turn, in each way, midpoints next to an even and an
/// odd number of ulps, three quarters and one, of either sign.
fn values(
    signature: &Signature,
    cut: &Cut,
    (within, turn): (&RangeInclusive<i32>, usize),
    rng: &mut (impl Rng + ?Sized),
) -> Option<Vec<(Summand, Dyadic)>> {
    let Cut { place, fraction_bits, of_summand, of_result, .. } = cut;
    let fraction_bits = fraction_bits.unwrap_or_else(|| {
        let least = of_result.unwrap_or(0).min(MOST);
        least + below(u64::from(MOST - least) + 1, rng) as u32
    });
    let chosen = Chosen::any(signature, cut, rng)?;
    let unit = sums::unit(signature, within);
    // Quarters of the last bit that is kept are so far below the largest summand.
    let depth = fraction_bits + 2;
    let lower = (unit - depth as i32).saturating_sub(*within.start()).clamp(0, 7) as u64;
    let top = unit - if below(2, rng) == 0 { 0 } else { below(lower + 1, rng) as i32 };
    let power = Dyadic { negative: below(2, rng) == 1, ..Dyadic::power(top) };
    let most = sums::significand_bits(signature, chosen.small).min(of_summand.unwrap_or(u32::MAX));
    // A result rounded to fewer bits than the summand keeps hides what that loses, but for midpoints.
    let midpoint = of_result.filter(|bits| place.is_some() && *bits < fraction_bits);
    let is_cancelled = chosen.cancelling(place.is_some()).is_some();
    let ways: Vec<Way> = [
        (Way::Beside, is_cancelled || midpoint.is_none()),
        (Way::Own, place.is_some() && depth <= most),
        (Way::Deciding, place.is_some()),
        (Way::Both, place.is_some() && chosen.others.is_some() && most.min(fraction_bits + 1) >= FEW),
    ]
    .into_iter()
    .filter_map(|(way, is_possible)| is_possible.then_some(way))
    .collect();
    let way = ways[turn % ways.len()];
    let turn = turn / ways.len();
    // With a leading bit above the quarters the summand is not far below the largest: it may be rounded in another way there.
    let highest = most.min(fraction_bits + 1).min(match way {
        Way::Beside => of_result.unwrap_or(u32::MAX).saturating_add(2),
        Way::Own | Way::Deciding | Way::Both => u32::MAX,
    });
    // Every distance, one after the other, if enough is asked: with more than half of an ulp, and with less.
    let distances = highest.saturating_sub(FEW) as usize + 1;
    let (quarters, negative) = match way {
        Way::Both => ([3, 1][(turn % distances + turn / distances) % 2], below(2, rng) == 1),
        _ => ([2, 6, 3, 1][turn % 4], turn / 4 % 2 == 1),
    };
    let above = match (way, below(3, rng)) {
        (Way::Own, _) => Some(depth),
        (Way::Both, _) => Some(FEW + (turn % distances) as u32),
        _ if highest < FEW || way == Way::Deciding && !is_cancelled => None,
        (_, 0) => None,
        (_, 1) => Some(highest),
        _ => Some(FEW + below(u64::from(highest - FEW) + 1, rng) as u32),
    };
    let leading = above.map_or(Some(0), |above| 1u64.checked_shl(above))?;
    let lost = (0..STEPS)
        .map(|step| Dyadic {
            negative,
            significand: leading + quarters + TWO_ULPS * step,
            exponent: top - depth as i32,
        })
        .find(|&lost| place::question(signature, &[(chosen.small, lost)]).is_some())?;
    let (larger, third) = match way {
        Way::Own => (Dyadic { negative: !negative, ..power }, None),
        Way::Beside => (power, chosen.cancelling(place.is_some()).map(|summand| (summand, -power))),
        Way::Both => (power, chosen.others.map(|[other, _]| (other, -power))),
        Way::Deciding => {
            // Where results are rounded in one direction, what is next to one of them decides.
            let larger = match midpoint.filter(|_| !is_cancelled || below(2, rng) == 0) {
                Some(bits) => {
                    let significand = 2u64.checked_shl(bits)? | 1;
                    Dyadic { significand, exponent: top - bits as i32 - 1, ..power }
                }
                None => power,
            };
            let third = match leading {
                0 => chosen.outside.filter(|_| below(2, rng) == 0).map(|summand| (summand, -power)),
                _ => {
                    chosen.cancelling(true).map(|summand| (summand, -Dyadic { significand: leading, ..lost }))
                }
            };
            (larger, third)
        }
    };
    let fourth = chosen.others.filter(|_| way == Way::Both).map(|[_, other]| {
        let kept = Dyadic { significand: leading, ..lost };
        (other, -kept)
    });
    Some([(chosen.large, larger), (chosen.small, lost)].into_iter().chain(third).chain(fourth).collect())
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{FP16, FP32, RoundTo};
    use mmaprobe_model::tree::{Added, Alignment, Far, Fused, Node, Normalised};
    use mmaprobe_model::{Executor, Model, Rounding};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    const SIGNATURE: Signature = Signature { k: 4, a: FP16, b: FP16, c: FP32, d: FP32, scale: None };
    const BITS: u32 = 18;
    const OF_RESULT: u32 = 14;

    /// p3 + (c + p0 + p1 + p2), these aligned so, and their sum rounded so to fewer bits.
    fn model(alignment: [Alignment; 4], result: Rounding) -> Model {
        let mut model = Model::chain_of_fma(FP16, FP32, 4);
        let mut nodes = vec![Node::Accumulator];
        nodes.extend((0..4).map(Node::Product));
        nodes.push(Node::Sum { children: (0..4).collect(), rule: 0 });
        nodes.push(Node::Sum { children: vec![4, 5], rule: 1 });
        let inner = &mut model.tree.rules[0];
        let fused = Fused::uniform(0, Rounding::TowardZero);
        inner.added = Added::Fused(Fused { alignment: alignment.into_iter().collect(), ..fused });
        let fewer = RoundTo { fraction_bits: OF_RESULT, rounding: result, ..RoundTo::nearest_even(FP32) };
        inner.normalised = Normalised::To(fewer);
        let mut outer = inner.clone();
        outer.added = Added::Exact;
        outer.normalised = Normalised::To(RoundTo::nearest_even(FP32));
        model.tree.rules.push(outer);
        model.tree.nodes = nodes.into();
        model
    }

    fn rounded(rounding: Rounding) -> Alignment {
        Alignment { fraction_bits: BITS, rounding, far: None }
    }

    fn cut(place: Option<usize>, fraction_bits: u32) -> Cut {
        let summands = [Summand::C, Summand::Product(0), Summand::Product(1), Summand::Product(2)];
        let sum = summands.map(|summand| vec![summand]).to_vec();
        let (of_summand, of_result) = (None, Some(OF_RESULT));
        Cut { sum, beside: Vec::new(), place, fraction_bits: Some(fraction_bits), of_summand, of_result }
    }

    /// So many questions about a cut.
    fn questions(cut: Cut, each: usize) -> Vec<DotAdd> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
        dot_adds(&SIGNATURE, &[cut], each, &(i32::MIN..=i32::MAX), &mut rng)
    }

    fn answers(model: &Model, questions: &[DotAdd]) -> Vec<u64> {
        let mut executor = Executor::new(model).expect("it is a model");
        let mut answer = |DotAdd { a, b, c, sa, sb }: &DotAdd| executor.dot_add(a, b, *c, sa, sb);
        questions.iter().map(&mut answer).collect()
    }

    /// That models which differ in one rounding alone all answer otherwise.
    fn are_told_apart(questions: &[DotAdd], model: impl Fn(Rounding) -> Model) {
        let all: Vec<Vec<u64>> =
            Rounding::EVERY.iter().map(|&rounding| answers(&model(rounding), questions)).collect();
        for (index, one) in all.iter().enumerate() {
            for (later, other) in all[index + 1..].iter().enumerate() {
                let pair = [index, index + 1 + later].map(|index| Rounding::EVERY[index]);
                assert_ne!(one, other, "{pair:?} are alike to {} questions", questions.len());
            }
        }
    }

    #[test]
    fn what_each_summand_loses_tells_every_rounding_from_every_other() {
        for place in 0..4 {
            are_told_apart(&questions(cut(Some(place), BITS), EACH), |rounding| {
                let mut alignment = [rounded(Rounding::TowardZero); 4];
                alignment[place] = rounded(rounding);
                model(alignment, Rounding::NearestTiesToEven)
            });
        }
    }

    #[test]
    fn so_does_what_the_result_loses() {
        are_told_apart(&questions(cut(None, OF_RESULT), EACH), |rounding| {
            model([rounded(Rounding::TowardZero); 4], rounding)
        });
    }

    #[test]
    fn what_is_not_far_below_is_asked_about_too() {
        for place in 0..4 {
            are_told_apart(&questions(cut(Some(place), BITS), 2 * EACH), |rounding| {
                let mut alignment = [rounded(Rounding::TowardZero); 4];
                let far = Some(Far { distance: 9, rounding: Rounding::Down });
                alignment[place] = Alignment { far, ..rounded(rounding) };
                model(alignment, Rounding::NearestTiesToEven)
            });
        }
    }

    /// ((p0 + p1) + c + p2) + p3, where the first sum is aligned so, and the others are rounded to few bits.
    fn rounded_above(alignment: Alignment) -> Model {
        let mut model = Model::chain_of_fma(FP16, FP32, 4);
        let sum = |children: Vec<usize>, rule| Node::Sum { children, rule };
        let leaves = (0..4).map(Node::Product).chain([Node::Accumulator]);
        let sums = [sum(vec![0, 1], 1), sum(vec![5, 4, 2], 0), sum(vec![6, 3], 0)];
        model.tree.nodes = leaves.chain(sums).collect::<Vec<_>>().into();
        let few = RoundTo { fraction_bits: 5, ..RoundTo::nearest_even(FP32) };
        model.tree.rules[0].normalised = Normalised::To(few);
        let mut inner = model.tree.rules[0].clone();
        let fused = Fused::uniform(0, Rounding::TowardZero);
        inner.added = Added::Fused(Fused { alignment: vec![alignment].into(), ..fused });
        inner.normalised = Normalised::No { exponent: None };
        model.tree.rules.push(inner);
        assert_eq!(model.check(), Ok(()));
        model
    }

    /// From which distance on a summand is rounded otherwise, where the sums above keep hardly any bits.
    #[test]
    fn what_a_summand_with_many_bits_loses_shows_where_few_are_kept_above() {
        // An even and an odd number of distances.
        for bits in [BITS, BITS + 1] {
            let sum = vec![vec![Summand::Product(0)], vec![Summand::Product(1)]];
            let beside = vec![Summand::C, Summand::Product(2)];
            let questions = questions(Cut { sum, beside, of_result: None, ..cut(Some(1), bits) }, CLOSELY);
            let far = |distance| {
                let far = Some(Far { distance, rounding: Rounding::TowardZero });
                let rounding = Rounding::NearestTiesToZero;
                answers(&rounded_above(Alignment { fraction_bits: bits, rounding, far }), &questions)
            };
            for distance in 6..16 {
                assert_ne!(far(distance), far(distance + 1), "{bits} bits, from {distance} on");
            }
        }
    }

    #[test]
    fn two_summands_that_nothing_cancels_are_asked_about_too() {
        let signature = Signature { k: 1, ..SIGNATURE };
        let cut = Cut {
            sum: vec![vec![Summand::C], vec![Summand::Product(0)]],
            of_result: Some(23),
            ..cut(Some(1), BITS)
        };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let questions = dot_adds(&signature, &[cut], EACH, &(i32::MIN..=i32::MAX), &mut rng);
        are_told_apart(&questions, |rounding| {
            let mut model = Model::chain_of_fma(FP16, FP32, 1);
            let alignment = [rounded(Rounding::TowardZero), rounded(rounding)];
            let fused = Fused::uniform(0, Rounding::TowardZero);
            model.tree.rules[0].added =
                Added::Fused(Fused { alignment: alignment.into_iter().collect(), ..fused });
            model
        });
    }

    #[test]
    fn of_a_sum_that_seems_exact_many_numbers_of_bits_are_tried() {
        let signature = Signature { k: 2, a: FP32, b: FP32, c: FP32, d: FP32, scale: None };
        let cut = Cut {
            sum: vec![vec![Summand::Product(0)], vec![Summand::Product(1)]],
            fraction_bits: None,
            ..cut(Some(1), 0)
        };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let questions = dot_adds(&signature, &[cut], EACH, &(i32::MIN..=i32::MAX), &mut rng);
        // The exponents of the last bits of the summand that may lose some, below the other's.
        let exponent = |bits: u64| place::leading(&FP32, bits);
        let mut below: Vec<i32> = questions
            .iter()
            .map(|DotAdd { a, b, .. }| [0, 1].map(|k| exponent(a[k]).zip(exponent(b[k]))))
            .filter_map(|[one, other]| one.zip(other).map(|((a, b), (c, d))| a + b - c - d))
            .collect();
        below.sort_unstable();
        below.dedup();
        assert!(below.len() > EACH / 2, "{below:?}");
    }
}
