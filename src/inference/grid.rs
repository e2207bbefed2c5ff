//! All there is to one rule, turned at once.
//!
//! Of a rule with many exceptions, each alone explains nothing: what is cut off at alignment does not show
//! while the result is rounded wrongly, nor the other way round. There are few enough combinations of how
//! summands are aligned and the sum is rounded for all to be tried, on few answers.

use mmaprobe_model::format::{self, RoundTo};
use mmaprobe_model::tree::{
    Added, Alignment, Beyond, Carry, Exponents, Far, Fused, Model, Normalised, Rule, RuleId,
};
use mmaprobe_model::{Format, Rounding};
use mmaprobe_probes::Signature;
use rayon::prelude::*;

use super::budget::Budget;
use super::evidence::{Answered, Class, Evidence};
use super::fit::{self, Fitted, Turn};
use super::held::Held;
use super::knobs::{self, Scope};
use super::{apart, simplicity};

/// Answers that contradict the model which every combination is tried on first, and how many of them it has to
/// explain.
const DECISIVE: usize = 8;
const EXPLAINED: usize = 2;
/// Answers of each kind, explained and not, that those are tried on next.
const GLANCED: usize = 24;
/// Of those that were explained, the part that may no longer be: one of so many.
const BREAKABLE: usize = 3;
/// The best of those, and those that are kept, at least, where half of them are left out.
const PROMISING: usize = 30_000;
const KEPT: usize = 1000;
/// Rules that are held against all answers, one after the other; and answers that contradict one, which all others are
/// tried on before the next.
const CLOSELY: usize = 16;
const TELLING: usize = 10;
/// Times that all combinations are gone through.
const TIMES: usize = 3;
/// Variants of a kind of combinations, at most.
const VARIANTS: usize = 4;
/// The variant in which sums are handed on under fixed exponents.
const OPEN: usize = 3;
/// Of a kind of combinations, the best that are not the best of all.
const OTHERS: usize = 2;

/// What combinations are tried for, and on.
#[derive(Clone, Copy)]
pub struct Trial<'a> {
    /// The rule that is to have them.
    pub rule: RuleId,
    /// The rules that single turns may change with it.
    pub scope: Scope,
    /// The answers that it is to explain.
    pub answers: &'a [&'a Answered],
    /// How much may be tried.
    pub budget: &'a Budget,
}

/// Models with other choices for a rule that few of these answers contradict, found by going through all
/// combinations of some of them, then of others, within a budget; what explains more is improved by these turns at
/// once. The answers are of this class or simpler ones. The best first, and then those that may be better with another
/// thing turned. Deterministic for any number of threads.
pub fn improve(
    evidence: &Evidence,
    mut best: Fitted,
    trial: Trial,
    kinds: &[Kind],
    class: Class,
    turns: &[Turn],
) -> Vec<Fitted> {
    let Trial { scope, answers, budget, .. } = trial;
    let mut others: Vec<Fitted> = Vec::new();
    let is_done = |best: &Fitted| best.contradicted == 0 || budget.is_spent();
    for _ in 0..TIMES {
        let before = best.contradicted;
        for &kind in kinds {
            let known = best.contradicted;
            for variant in 0..VARIANTS {
                if is_done(&best) {
                    break;
                }
                let mut found = kind.best(evidence.signature(), &best, variant, trial).into_iter();
                if let Some(better) = found.next() {
                    match better.contradicted < best.contradicted {
                        true => best = better,
                        false => others.push(better),
                    }
                }
                others.extend(found.take(OTHERS - 1));
            }
            if best.contradicted < known {
                best = fit::improve_some(evidence, best, scope, answers, class, turns, budget);
            }
        }
        if best.contradicted == before || is_done(&best) {
            break;
        }
    }
    // A stable sort: what was found first stays first among equals.
    others.sort_by_key(|other| other.contradicted);
    others.truncate(2 * OTHERS);
    std::iter::once(best).chain(others).collect()
}

/// What is combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Summands aligned as before, or not, with every rounding of the result to any number of bits of any format. These are few.
    Results,
    /// Every way to align summands, and none, with every rounding of the result to all bits of any format, or to as
    /// many as before, and with a result that is not normalised.
    Formats,
    /// Every way to align summands, with every number of bits that carries have room for.
    Carries,
    /// Every way to align each summand, with every rounding of the result to all bits of any format, or to as many as
    /// before, and with a result that is not normalised; as far as answers tell in which two summands
    /// meet there.
    Apart,
    /// The same with a sticky bit where there was none, or without one.
    ApartSticky,
    /// Every way to align one summand after the other.
    OneByOne,
    /// Every way to align summands, and none, with every rounding of the result to any number of bits of its format.
    Rounded,
    /// Every way to align summands, with every other way for those far below.
    Far,
    /// The same, of the ways that keep about as many bits of a summand as it does already.
    FarNearby,
    /// Every way to align the first summand, with every way to align the others.
    Positions,
    /// Every way to align summands, with everything that says to what, and with every fixed exponent that a sum is
    /// handed on under.
    Exponents,
    /// Every way to align the first summand, or the others, with everything that says to what.
    ExponentsApart,
}

impl Kind {
    /// All, the cheapest first.
    pub const ALL: [Kind; 9] = [
        Kind::Formats,
        Kind::Apart,
        Kind::Carries,
        Kind::ApartSticky,
        Kind::Exponents,
        Kind::OneByOne,
        Kind::Rounded,
        Kind::Far,
        Kind::Positions,
    ];
    /// For a rule beside right ones, so that all that is unexplained is about it.
    pub const ALONE: [Kind; 11] = [
        Kind::Results,
        Kind::Formats,
        Kind::Apart,
        Kind::Carries,
        Kind::ApartSticky,
        Kind::Exponents,
        Kind::OneByOne,
        Kind::Rounded,
        Kind::FarNearby,
        Kind::Far,
        Kind::Positions,
    ];
    /// For answers with one summand: it is aligned to nothing but zeros.
    pub const ONE_SUMMAND: [Kind; 2] = [Kind::Formats, Kind::Rounded];
    /// For a rule that explains nearly everything: what shows in few answers first.
    pub const FEW_ANSWERS: [Kind; 9] = [
        Kind::Carries,
        Kind::Exponents,
        Kind::OneByOne,
        Kind::FarNearby,
        Kind::Far,
        Kind::Formats,
        Kind::Apart,
        Kind::Rounded,
        Kind::Positions,
    ];
    /// For a rule that is known but for what is made of small numbers.
    pub const NEAR_ZERO: [Kind; 3] = [Kind::Exponents, Kind::ExponentsApart, Kind::FarNearby];
    /// For a rule that explains nearly all plain answers, but not others.
    pub const NOT_PLAIN: [Kind; 7] = [
        Kind::Exponents,
        Kind::ExponentsApart,
        Kind::Carries,
        Kind::OneByOne,
        Kind::FarNearby,
        Kind::Formats,
        Kind::Rounded,
    ];
    /// For a rule that is known but for what hardly any answer shows.
    pub const NEARBY: [Kind; 2] = [Kind::FarNearby, Kind::Exponents];

    /// The best models of a variant of this kind, the best first; none if there is no such variant.
    fn best(self, signature: &Signature, best: &Fitted, variant: usize, trial: Trial) -> Vec<Fitted> {
        let rule = trial.rule;
        // What is added to nothing is not aligned.
        let is_lone = knobs::arity(&best.model, rule) < 2;
        let combinations = match self {
            Kind::Formats | Kind::Rounded if is_lone && variant > 0 => None,
            Kind::Results if variant > 0 => None,
            Kind::Results => Some(Combinations::results(signature, &best.model, rule)),
            Kind::Carries | Kind::Far | Kind::FarNearby | Kind::Positions | Kind::ExponentsApart
                if is_lone =>
            {
                None
            }
            Kind::Exponents if is_lone && variant < OPEN => None,
            Kind::Formats => Combinations::formats(signature, &best.model, rule, variant),
            Kind::Carries => Combinations::carries(&best.model, rule, variant),
            Kind::Apart | Kind::ApartSticky if variant >= 2 => return Vec::new(),
            Kind::Apart | Kind::ApartSticky => {
                let sticky = if self == Kind::ApartSticky { 2 } else { 0 };
                let base = variant_of(&best.model.tree.rules[rule], sticky + variant);
                let results: Vec<Normalised> = results(signature, &best.model, rule).collect();
                return apart::models(signature, best, &base, &results, trial);
            }
            Kind::OneByOne => return one_by_one(best, variant, trial),
            Kind::Rounded => Combinations::rounded(signature, &best.model, rule, variant),
            Kind::Far => Combinations::far(&best.model, rule, variant, u32::MAX),
            Kind::FarNearby => Combinations::far(&best.model, rule, variant, NEARBY),
            Kind::Exponents => Combinations::exponents(&best.model, rule, variant),
            Kind::ExponentsApart => Combinations::exponents_apart(&best.model, rule, variant),
            Kind::Positions => Combinations::positions(&best.model, rule, variant),
        };
        let Some(mut combinations) = combinations else { return Vec::new() };
        if is_lone {
            combinations.added = vec![Added::Exact];
        }
        combinations.best(best, trial)
    }
}

/// Models in which a sum of this rule, that loses next to nothing and hands on what it adds as it is, loses more: every way
/// to align summands, and every rounding of an exact sum to any number of bits of any format. The best of each first.
pub fn lossy(signature: &Signature, best: &Fitted, trial: Trial) -> Vec<Fitted> {
    let own = &best.model.tree.rules[trial.rule];
    let fused = knobs::aligned(&own.added);
    let with = |alignment| Fused { alignment: vec![alignment].into(), ..fused.clone() };
    let aligned = alignments().flat_map(|alignment| other_exponents(with(alignment))).map(Added::Fused);
    let rounded = knobs::intermediate(signature).into_iter().flat_map(|format| {
        (0..=format.fraction_bits).flat_map(move |fraction_bits| to_bits(own, format, fraction_bits))
    });
    let both = [
        Combinations { added: aligned.collect(), others: as_before(own) },
        Combinations { added: vec![Added::Exact], others: rounded.map(Other::Normalised).collect() },
    ];
    both.iter().flat_map(|combinations| combinations.best(best, trial)).collect()
}

/// The same of a sum that keeps a few bits more, or fewer, of the first summand than of the others, with a sticky bit and
/// without. The best first.
pub fn lossy_apart(best: &Fitted, trial: Trial) -> Vec<Fitted> {
    let fused = knobs::aligned(&best.model.tree.rules[trial.rule].added);
    let with = |alignment: Vec<Alignment>| Fused { alignment: alignment.into(), ..fused.clone() };
    let both = alignments().flat_map(|first| {
        let most = (first.fraction_bits + NEARBY).min(knobs::MOST_FRACTION_BITS);
        let rest = first.fraction_bits.saturating_sub(NEARBY)..=most;
        rest.map(move |fraction_bits| vec![first, Alignment { fraction_bits, ..first }])
    });
    let both = both.flat_map(|both| other_exponents(with(both)));
    let added =
        both.flat_map(|fused| [false, true].map(|sticky| Added::Fused(Fused { sticky, ..fused.clone() })));
    let others = as_before(&best.model.tree.rules[trial.rule]);
    Combinations { added: added.collect(), others }.best(best, trial)
}

/// Summands of a sum that are aligned one after the other, at most.
pub const POSITIONS: usize = 40;

/// The best model in which each summand of the sum is aligned in a way of its own: of none is anything lost at first,
/// then of one after the other, in the best way. In the second variant with the other kind of exponents; in the third
/// all are aligned as they were at first, and in the fourth as the third has left them.
fn one_by_one(best: &Fitted, variant: usize, trial: Trial) -> Vec<Fitted> {
    let Trial { rule, answers, budget, .. } = trial;
    let arity = knobs::arity(&best.model, rule);
    if !(2..=POSITIONS).contains(&arity) {
        return Vec::new();
    }
    let mut found = best.clone();
    if variant < 2 {
        let fused = variant_of(&best.model.tree.rules[rule], variant);
        found.model.tree.rules[rule].added = Added::Fused(Fused { alignment: vec![WHOLE].into(), ..fused });
        found.contradicted = budget.contradicted(&found.model, answers, usize::MAX);
    }
    for position in 0..arity {
        if found.contradicted == 0 || budget.is_spent() {
            break;
        }
        let combinations = Combinations::position(&found.model, rule, position, arity);
        let better = combinations.best(&found, trial).into_iter().next();
        found = better.filter(|better| better.contradicted < found.contradicted).unwrap_or(found);
    }
    vec![found]
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
    /// How many carries the sum has room for.
    Carry(Carry),
    /// The least exponent that summands are aligned to.
    Floor(i32),
    /// How all summands but the first are aligned.
    Rest(Alignment),
    /// How those far below are aligned, of the first summands or the others.
    Far(usize, Far),
}

impl Combinations {
    /// Every way to align summands, and none, with every rounding of the result to all bits of any format, or to as many
    /// as before, and with a result that is not normalised.
    fn formats(signature: &Signature, model: &Model, rule: RuleId, variant: usize) -> Option<Combinations> {
        let own = &model.tree.rules[rule];
        Some(Combinations {
            added: aligned(own, variant).chain(aligned_apart(own, variant)).collect(),
            others: results(signature, model, rule).map(Other::Normalised).collect(),
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
        let others = fewer_bits.chain(open(model, rule)).map(Other::Normalised).collect();
        Some(Combinations { added: aligned(own, variant).collect(), others })
    }

    /// Summands aligned as before, or not, with every rounding of the result to any number of bits of any format.
    fn results(signature: &Signature, model: &Model, rule: RuleId) -> Combinations {
        let own = &model.tree.rules[rule];
        let formats = knobs::of_results(signature, is_root(model, rule)).into_iter();
        let others = formats.flat_map(|format| {
            (0..=format.fraction_bits).flat_map(move |fraction_bits| to_bits(own, format, fraction_bits))
        });
        let mut added = vec![own.added.clone()];
        added.extend((own.added != Added::Exact).then_some(Added::Exact));
        Combinations { added, others: others.map(Other::Normalised).collect() }
    }

    /// Every way to align summands, with every number of bits that carries have room for.
    fn carries(model: &Model, rule: RuleId, variant: usize) -> Option<Combinations> {
        let carry = |bits| Beyond::EVERY.map(|beyond| Other::Carry(Carry { bits, beyond }));
        let others = (0..=knobs::MOST_CARRY_BITS).flat_map(carry).collect();
        let added = aligned(&model.tree.rules[rule], variant).filter(|added| *added != Added::Exact);
        Some(Combinations { added: added.collect(), others })
    }

    /// Every way to align the first summand, with every way to align the others; in the second variant with a
    /// sticky bit, or without.
    fn positions(model: &Model, rule: RuleId, variant: usize) -> Option<Combinations> {
        let Added::Fused(fused) = &model.tree.rules[rule].added else { return None };
        if variant > 1 {
            return None;
        }
        let sticky = fused.sticky != (variant == 1);
        let first =
            |alignment| Added::Fused(Fused { alignment: vec![alignment].into(), sticky, ..fused.clone() });
        Some(Combinations {
            added: alignments().map(first).collect(),
            others: alignments().map(Other::Rest).collect(),
        })
    }

    /// Every way to align summands, with every other way for those far below: all summands, in the second variant the
    /// first alone, in the third all but the first. Only with so many fraction bits more or fewer than before.
    fn far(model: &Model, rule: RuleId, variant: usize, nearby: u32) -> Option<Combinations> {
        let fused = knobs::aligned(&model.tree.rules[rule].added);
        let (first, rest) = (fused.alignment[0], *fused.alignment_of(1));
        let aligned = |alignment| match variant {
            0 => vec![alignment],
            1 => vec![alignment, rest],
            _ => vec![first, alignment],
        };
        let position = variant / 2;
        let far = |distance| Rounding::EVERY.map(|rounding| Other::Far(position, Far { distance, rounding }));
        let with = |alignment| Added::Fused(Fused { alignment: aligned(alignment).into(), ..fused.clone() });
        let before = if variant == 2 { rest } else { first }.fraction_bits;
        (variant <= 2).then(|| Combinations {
            added: alignments_near(before, nearby).map(with).collect(),
            others: (0..=knobs::MOST_DISTANCE).flat_map(far).collect(),
        })
    }

    /// Every way to align summands, with the exponents that they are aligned to, and with more or fewer bits than
    /// before, but not many, also with every number of bits that carries have room for; with every floor under the
    /// exponent; and, in the variant [`OPEN`], with every fixed exponent that the sum may be handed on under.
    fn exponents(model: &Model, rule: RuleId, variant: usize) -> Option<Combinations> {
        let own = &model.tree.rules[rule];
        let fused = knobs::aligned(&own.added);
        let with = |alignment| Fused { alignment: vec![alignment].into(), ..fused.clone() };
        let nearby = || alignments_near(fused.alignment[0].fraction_bits, NEARBY);
        let carry = |bits| Beyond::EVERY.map(|beyond| Other::Carry(Carry { bits, beyond }));
        let (added, others): (Vec<Fused>, Vec<Other>) = match variant {
            0 => (alignments().flat_map(|alignment| measured(with(alignment))).collect(), as_before(own)),
            1 => (
                nearby().flat_map(|alignment| measured(with(alignment))).collect(),
                (0..=knobs::MOST_CARRY_BITS).flat_map(carry).collect(),
            ),
            2 => (alignments().map(with).collect(), knobs::ORDINARY_FLOORS.map(Other::Floor).collect()),
            OPEN if !is_root(model, rule) => {
                let filed = |exponent| Other::Normalised(Normalised::No { exponent: Some(exponent) });
                let added = alignments().flat_map(|alignment| other_exponents(with(alignment)));
                (added.collect(), knobs::open_exponents().map(filed).collect())
            }
            _ => return None,
        };
        Some(Combinations { added: added.into_iter().map(Added::Fused).collect(), others })
    }

    /// Every way to align the first summand, in the second variant all others, with the exponents that they are aligned
    /// to. Of what has not been aligned, nothing is lost.
    fn exponents_apart(model: &Model, rule: RuleId, variant: usize) -> Option<Combinations> {
        let own = &model.tree.rules[rule];
        let fused = knobs::aligned(&own.added);
        let (first, rest) = match own.added {
            Added::Exact => (WHOLE, WHOLE),
            Added::Fused(_) => (fused.alignment[0], *fused.alignment_of(1)),
        };
        let both = |alignment| match variant {
            0 => [alignment, rest],
            _ => [first, alignment],
        };
        let with = |alignment| Fused { alignment: both(alignment).into_iter().collect(), ..fused.clone() };
        (variant <= 1).then(|| Combinations {
            added: alignments().map(with).flat_map(measured).map(Added::Fused).collect(),
            others: as_before(own),
        })
    }

    /// Every way to align one summand, by its position.
    fn position(model: &Model, rule: RuleId, position: usize, arity: usize) -> Combinations {
        let own = &model.tree.rules[rule];
        let fused = knobs::aligned(&own.added);
        let added =
            alignments().map(|alignment| Added::Fused(knobs::aligned_at(&fused, arity, position, alignment)));
        Combinations { added: added.collect(), others: as_before(own) }
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
            (Other::Carry(carry), Added::Fused(fused)) => fused.carry = Some(*carry),
            (Other::Floor(floor), Added::Fused(fused)) => fused.floor = Some(*floor),
            (Other::Rest(rest), Added::Fused(fused)) => fused.alignment.push(*rest),
            (Other::Far(position, far), Added::Fused(fused)) => fused.alignment[*position].far = Some(*far),
            (Other::Carry(_) | Other::Floor(_) | Other::Rest(_) | Other::Far(..), Added::Exact) => {
                unreachable!("only aligned sums have those")
            }
        }
        Rule { added, normalised, ..own.clone() }
    }

    /// The best of all, best first; among equals the simplest, then the first.
    fn best(&self, best: &Fitted, trial: Trial) -> Vec<Fitted> {
        let Trial { rule, answers, budget, .. } = trial;
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
        promising.sort_unstable();
        promising.truncate(PROMISING);
        let with = |index: usize| {
            let mut model = best.model.clone();
            model.tree.rules[rule] = self.rule(own, index);
            model
        };
        let mut found: Vec<(usize, u32, usize)> = Vec::new();
        for _ in 0..CLOSELY {
            if promising.is_empty() {
                break;
            }
            // What explains most of what has been asked of all of them is held against all answers.
            let (_, index) = promising.remove(0);
            let model = with(index);
            let failed = budget.contradicting(&model, answers);
            found.push((failed.len(), simplicity::exceptions(&model), index));
            if failed.is_empty() {
                break;
            }
            // Where it fails, others like it do.
            let telling = Held::new(&best.model, &fit::thinned(&failed, TELLING));
            let count = |scratch: &mut Model, (known, index): (usize, usize)| {
                scratch.tree.rules[rule] = self.rule(own, index);
                (known + budget.contradicted_in_passing(scratch, &telling, usize::MAX), index)
            };
            promising = promising.into_par_iter().map_init(|| best.model.clone(), count).collect::<Vec<_>>();
            promising.sort_unstable();
            promising.truncate((promising.len() / 2).max(KEPT));
        }
        found.sort_unstable();
        found
            .into_iter()
            .map(|(contradicted, _, index)| Fitted { model: with(index), contradicted })
            .collect()
    }
}

/// What becomes of the sum, as it was.
fn as_before(own: &Rule) -> Vec<Other> {
    vec![Other::Normalised(own.normalised)]
}

/// An aligned sum with either kind of exponents.
fn other_exponents(fused: Fused) -> impl Iterator<Item = Fused> {
    [Exponents::Raw, Exponents::Normalised].map(|exponents| Fused { exponents, ..fused.clone() }).into_iter()
}

/// An aligned sum with either kind of exponents, and every choice of the zeros that have one.
pub fn counted(fused: Fused) -> impl Iterator<Item = Fused> {
    let with_zeros = |fused: Fused| knobs::zero_terms().map(move |zeros| Fused { zeros, ..fused.clone() });
    other_exponents(fused).flat_map(with_zeros)
}

/// The same, with a sticky bit and without.
fn measured(fused: Fused) -> impl Iterator<Item = Fused> {
    let with_sticky = |fused: Fused| [false, true].map(|sticky| Fused { sticky, ..fused.clone() });
    counted(fused).flat_map(with_sticky)
}

/// Whether a rule is that of the last sum.
fn is_root(model: &Model, rule: RuleId) -> bool {
    Scope::One { rule, and_from: RuleId::MAX }.has_root(model)
}

/// Every rounding of the result of a rule to all bits of any format, or to as many as before, and a result that is not
/// normalised.
fn results(signature: &Signature, model: &Model, rule: RuleId) -> impl Iterator<Item = Normalised> {
    let own = &model.tree.rules[rule];
    let formats = knobs::of_results(signature, is_root(model, rule));
    let as_before = match &own.normalised {
        Normalised::To(round) => round.fraction_bits,
        Normalised::No { .. } => u32::MAX,
    };
    let all_bits = formats.into_iter().flat_map(move |format| {
        let fewer = (as_before < format.fraction_bits).then_some(as_before);
        // tf32 has fp32's exponents.
        let tf32 = (format == format::FP32).then_some(format::TF32.fraction_bits);
        let bits = std::iter::once(format.fraction_bits).chain(tf32).chain(fewer);
        bits.flat_map(move |bits| to_bits(own, format, bits))
    });
    all_bits.chain(open(model, rule))
}

/// Every rounding of a result to so many bits of a format; in everything else as it was.
fn to_bits(own: &Rule, format: Format, fraction_bits: u32) -> impl Iterator<Item = Normalised> + use<> {
    let base = match &own.normalised {
        Normalised::To(round) => *round,
        Normalised::No { .. } => RoundTo::nearest_even(format),
    };
    let round = move |rounding| RoundTo { format, fraction_bits, rounding, ..base };
    Rounding::EVERY.into_iter().map(move |rounding| Normalised::To(round(rounding)))
}

/// A result that is not normalised, where there may be one.
fn open(model: &Model, rule: RuleId) -> Option<Normalised> {
    (!is_root(model, rule)).then_some(Normalised::No { exponent: None })
}

/// Every width and rounding of an aligned sum, and an exact one; in some variants with the other kind of exponents,
/// or with a sticky bit where there was none, or without one.
fn aligned(own: &Rule, variant: usize) -> impl Iterator<Item = Added> {
    let fused = variant_of(own, variant);
    let with = move |alignment| Added::Fused(Fused { alignment: vec![alignment].into(), ..fused.clone() });
    std::iter::once(Added::Exact).chain(alignments().map(with))
}

/// The same, with something lost of the first summand alone, or of all but the first.
fn aligned_apart(own: &Rule, variant: usize) -> impl Iterator<Item = Added> {
    let fused = variant_of(own, variant);
    let some = alignments().flat_map(|alignment| [[alignment, WHOLE], [WHOLE, alignment]]);
    some.map(move |alignment| {
        Added::Fused(Fused { alignment: alignment.into_iter().collect(), ..fused.clone() })
    })
}

fn variant_of(own: &Rule, variant: usize) -> Fused {
    let mut fused = knobs::aligned(&own.added);
    fused.sticky ^= variant / 2 == 1;
    if variant % 2 == 1 {
        fused.exponents = match fused.exponents {
            Exponents::Raw => Exponents::Normalised,
            Exponents::Normalised => Exponents::Raw,
        };
    }
    fused
}

/// The alignment of a summand of which next to nothing is lost.
pub const WHOLE: Alignment =
    Alignment { fraction_bits: knobs::MOST_FRACTION_BITS, rounding: Rounding::TowardZero, far: None };

/// Fraction bits that a way to align keeps more or fewer than one that is nearly right.
const NEARBY: u32 = 4;

/// Those of all ways to align that keep so many fraction bits, or so many more or fewer.
fn alignments_near(fraction_bits: u32, nearby: u32) -> impl Iterator<Item = Alignment> {
    alignments().filter(move |alignment| alignment.fraction_bits.abs_diff(fraction_bits) <= nearby)
}

/// Every way to align summands, but for those far below.
pub fn alignments() -> impl Iterator<Item = Alignment> {
    (0..=knobs::MOST_FRACTION_BITS).flat_map(|fraction_bits| {
        Rounding::EVERY.map(|rounding| Alignment { fraction_bits, rounding, far: None })
    })
}
