//! All there is to one rule, turned at once.
//!
//! Of a rule with many exceptions, each alone explains nothing: what is cut off at alignment does not show
//! while the result is rounded wrongly, nor the other way round. There are few enough combinations of how
//! summands are aligned and the sum is rounded for all to be tried, on few answers.

use mmaprobe_model::format::RoundTo;
use mmaprobe_model::tree::{Added, Alignment, Exponents, Far, Fused, Model, Normalised, Rule, RuleId};
use mmaprobe_model::{Format, Rounding};
use mmaprobe_probes::Signature;
use rayon::prelude::*;

use super::budget::Budget;
use super::evidence::Answered;
use super::fit::{self, Fitted};
use super::held::Held;
use super::knobs::{self, Scope};
use super::simplicity;

/// Answers that contradict the model which every combination is tried on first, and how many of them it has to
/// explain.
const DECISIVE: usize = 8;
const EXPLAINED: usize = 2;
/// Answers of each kind, explained and not, that those are tried on next.
const GLANCED: usize = 24;
/// Of those that were explained, the part that may no longer be: one of so many.
const BREAKABLE: usize = 3;
/// Answers of each kind that the best of those are tried on, and how many these are.
const SAMPLED: usize = 300;
const PROMISING: usize = 60;
/// Rules that are held against all answers.
const CLOSELY: usize = 6;
/// Times that all combinations are gone through.
const TIMES: usize = 3;
/// Fewer answers than that are not worth it.
const WORTH: usize = 3;

/// Variants of a kind of combinations, at most.
const VARIANTS: usize = 4;
/// Of a kind of combinations, the best that are not the best of all.
const OTHERS: usize = 2;

/// Models with other choices for a rule that few of these answers contradict, found by going through all
/// combinations of some of them, then of others, within a budget: the best first, and then those that may be
/// better with another thing turned. Deterministic for any number of threads.
pub fn improve(
    signature: &Signature,
    mut best: Fitted,
    rule: RuleId,
    answers: &[&Answered],
    budget: &Budget,
) -> Vec<Fitted> {
    let mut others: Vec<Fitted> = Vec::new();
    for _ in 0..TIMES {
        let before = best.contradicted;
        let kinds =
            [Combinations::formats, Combinations::rounded, Combinations::positions, Combinations::far];
        for combinations in kinds {
            for variant in 0..VARIANTS {
                if best.contradicted < WORTH || budget.is_spent() {
                    break;
                }
                if let Some(combinations) = combinations(signature, &best.model, rule, variant) {
                    let mut found = combinations.best(&best, rule, answers, budget).into_iter();
                    if let Some(better) = found.next() {
                        match better.contradicted < best.contradicted {
                            true => best = better,
                            false => others.push(better),
                        }
                    }
                    others.extend(found.take(OTHERS - 1));
                }
            }
        }
        if best.contradicted == before {
            break;
        }
    }
    // A stable sort: what was found first stays first among equals.
    others.sort_by_key(|other| other.contradicted);
    others.truncate(2 * OTHERS);
    std::iter::once(best).chain(others).collect()
}

/// Two lists of things about a rule, each of which can be had with each of the other.
struct Combinations {
    added: Vec<Added>,
    others: Vec<Other>,
}

/// What is combined with a way to add.
enum Other {
    /// What becomes of the sum.
    Normalised(Normalised),
    /// How all summands but the first are aligned.
    Rest(Alignment),
    /// How those far below are aligned.
    Far(Far),
}

impl Combinations {
    /// Every way to align summands, and none, with every rounding of the result to all bits of any format, or to as many
    /// as before, and with a result that is not normalised.
    fn formats(signature: &Signature, model: &Model, rule: RuleId, variant: usize) -> Option<Combinations> {
        let own = &model.tree.rules[rule];
        let formats = match is_root(model, rule) {
            true => vec![signature.d],
            false => knobs::intermediate(signature),
        };
        let as_before = match &own.normalised {
            Normalised::To(round) => round.fraction_bits,
            Normalised::No { .. } => u32::MAX,
        };
        let all_bits = formats.into_iter().flat_map(|format| {
            let fewer = (as_before < format.fraction_bits).then_some(as_before);
            let bits = std::iter::once(format.fraction_bits).chain(fewer);
            bits.flat_map(move |bits| to_bits(own, format, bits))
        });
        Some(Combinations {
            added: aligned(own, variant),
            others: all_bits.chain(open(model, rule)).collect(),
        })
    }

    /// The same, with every rounding of the result to any number of bits of its format.
    fn rounded(signature: &Signature, model: &Model, rule: RuleId, variant: usize) -> Option<Combinations> {
        let own = &model.tree.rules[rule];
        let format = match &own.normalised {
            Normalised::To(round) => round.format,
            Normalised::No { .. } => signature.d,
        };
        let fewer_bits = (0..=format.fraction_bits).flat_map(|bits| to_bits(own, format, bits));
        let others = fewer_bits.chain(open(model, rule)).collect();
        Some(Combinations { added: aligned(own, variant), others })
    }

    /// Every way to align the first summand, with every way to align the others; in the second variant with a
    /// sticky bit, or without.
    fn positions(_: &Signature, model: &Model, rule: RuleId, variant: usize) -> Option<Combinations> {
        let Added::Fused(fused) = &model.tree.rules[rule].added else { return None };
        if variant > 1 {
            return None;
        }
        let sticky = fused.sticky != (variant == 1);
        let first = |alignment| Added::Fused(Fused { alignment: vec![alignment], sticky, ..fused.clone() });
        Some(Combinations {
            added: alignments().map(first).collect(),
            others: alignments().map(Other::Rest).collect(),
        })
    }

    /// Every way to align summands, with every other way for those far below; there is one variant.
    fn far(_: &Signature, model: &Model, rule: RuleId, variant: usize) -> Option<Combinations> {
        if variant > 0 {
            return None;
        }
        let fused = knobs::aligned(&model.tree.rules[rule].added);
        let aligned = |alignment| Added::Fused(Fused { alignment: vec![alignment], ..fused.clone() });
        let far = |distance| Rounding::EVERY.map(|rounding| Other::Far(Far { distance, rounding }));
        Some(Combinations {
            added: alignments().map(aligned).collect(),
            others: (0..=knobs::MOST_DISTANCE).flat_map(far).collect(),
        })
    }

    fn len(&self) -> usize {
        self.added.len() * self.others.len()
    }

    /// The rule with one of the combinations.
    fn rule(&self, own: &Rule, index: usize) -> Rule {
        let mut added = self.added[index / self.others.len()].clone();
        let mut normalised = own.normalised;
        match (&self.others[index % self.others.len()], &mut added) {
            (Other::Normalised(other), _) => normalised = *other,
            (Other::Rest(rest), Added::Fused(fused)) => fused.alignment.push(*rest),
            (Other::Far(far), Added::Fused(fused)) => fused.alignment[0].far = Some(*far),
            (Other::Rest(_) | Other::Far(_), Added::Exact) => unreachable!("only aligned sums have those"),
        }
        Rule { added, normalised, ..own.clone() }
    }

    /// The best of all, best first; among equals the simplest, then the first.
    fn best(&self, best: &Fitted, rule: RuleId, answers: &[&Answered], budget: &Budget) -> Vec<Fitted> {
        let mut ordered = answers.to_vec();
        fit::front_load(&best.model, &mut ordered);
        let (wrong, right) = ordered.split_at(best.contradicted);
        let own = &best.model.tree.rules[rule];
        let glanced = fit::thinned(wrong, GLANCED + DECISIVE);
        let (decisive, glanced) = glanced.split_at(DECISIVE.min(glanced.len()));
        let [decisive, glanced, unbroken] =
            [decisive, glanced, &fit::thinned(right, GLANCED)].map(|some| Held::new(&best.model, some));
        let decided = decisive.number_of_answers().saturating_sub(EXPLAINED) + 1;
        let breakable = unbroken.number_of_answers() / BREAKABLE + 1;
        let glance = |scratch: &mut Model, index: usize| {
            scratch.tree.rules[rule] = self.rule(own, index);
            let missed = budget.contradicted_in_passing(scratch, &decisive, decided);
            if missed == decided {
                return None;
            }
            let broken = budget.contradicted_in_passing(scratch, &unbroken, breakable);
            let others = || budget.contradicted_in_passing(scratch, &glanced, usize::MAX);
            (broken < breakable).then(|| (missed + broken + others(), index))
        };
        let mut promising: Vec<(usize, usize)> =
            (0..self.len()).into_par_iter().map_init(|| best.model.clone(), glance).flatten().collect();
        let with = |index: usize| {
            let mut model = best.model.clone();
            model.tree.rules[rule] = self.rule(own, index);
            model
        };
        promising.sort_unstable();
        promising.truncate(PROMISING);
        let sample: Vec<&Answered> =
            [wrong, right].into_iter().flat_map(|some| fit::thinned(some, SAMPLED)).collect();
        let held = Held::new(&best.model, &sample);
        let mut sampled: Vec<(usize, u32, usize)> = promising
            .into_par_iter()
            .map(|(_, index)| {
                let model = with(index);
                (budget.contradicted_held(&model, &held, usize::MAX), simplicity::exceptions(&model), index)
            })
            .collect();
        sampled.sort_unstable();
        sampled.truncate(CLOSELY);
        let mut found: Vec<(usize, u32, usize)> = sampled
            .into_par_iter()
            .map(|(_, exceptions, index)| {
                (budget.contradicted(&with(index), answers, usize::MAX), exceptions, index)
            })
            .collect();
        found.sort_unstable();
        found
            .into_iter()
            .map(|(contradicted, _, index)| Fitted { model: with(index), contradicted })
            .collect()
    }
}

/// Whether a rule is that of the last sum.
fn is_root(model: &Model, rule: RuleId) -> bool {
    Scope::One { rule, and_from: RuleId::MAX }.has_root(model)
}

/// Every rounding of a result to so many bits of a format; in everything else as it was.
fn to_bits(own: &Rule, format: Format, fraction_bits: u32) -> impl Iterator<Item = Other> {
    let base = match &own.normalised {
        Normalised::To(round) => *round,
        Normalised::No { .. } => RoundTo::nearest_even(format),
    };
    let round = move |rounding| RoundTo { format, fraction_bits, rounding, ..base };
    Rounding::EVERY.into_iter().map(move |rounding| Other::Normalised(Normalised::To(round(rounding))))
}

/// A result that is not normalised, where there may be one.
fn open(model: &Model, rule: RuleId) -> Option<Other> {
    (!is_root(model, rule)).then_some(Other::Normalised(Normalised::No { exponent: None }))
}

/// Every width and rounding of an aligned sum, and an exact one; in some variants with the other kind of exponents,
/// or with a sticky bit where there was none, or without one.
fn aligned(own: &Rule, variant: usize) -> Vec<Added> {
    let mut fused = knobs::aligned(&own.added);
    fused.sticky ^= variant / 2 == 1;
    if variant % 2 == 1 {
        fused.exponents = match fused.exponents {
            Exponents::Raw => Exponents::Normalised,
            Exponents::Normalised => Exponents::Raw,
        };
    }
    let with = |alignment| Added::Fused(Fused { alignment: vec![alignment], ..fused.clone() });
    std::iter::once(Added::Exact).chain(alignments().map(with)).collect()
}

/// Every way to align summands, but for those far below.
pub fn alignments() -> impl Iterator<Item = Alignment> {
    (0..=knobs::MOST_FRACTION_BITS).flat_map(|fraction_bits| {
        Rounding::EVERY.map(|rounding| Alignment { fraction_bits, rounding, far: None })
    })
}
