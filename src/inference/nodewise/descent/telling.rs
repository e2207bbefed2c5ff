//! Questions that tell the rule of one sum from others that explain as much.

use std::ops::RangeInclusive;

use mmaprobe_model::Rounding;
use mmaprobe_model::format::RoundTo;
use mmaprobe_model::scalar::Inputs;
use mmaprobe_model::tree::{Added, Model, Normalised, RuleId};
use mmaprobe_probes::sums::Significands;
use mmaprobe_probes::{DotAdd, Signature, losses, sums, ties, vary};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use rayon::prelude::*;

use super::super::{meetings, sums as sums_of};
use super::{CLASS, Descent};
use crate::inference::depth::{self, Depths};
use crate::inference::evidence::{Answered, Class, Evidence};
use crate::inference::fit;
use crate::inference::knobs::{self, Knob, Scope, Turned};
use crate::inference::pool::{self, Pool};
use crate::inference::standing::{self, Candidate};
use crate::inference::ties as cuts;

/// Random questions about a sum that are tried, and such about what it loses of two summands.
const TRIED: usize = 4000;
const TRIED_LOSSES: usize = 1200;
/// Of those, as many as are asked whatever they tell.
const ANY: usize = 60;
/// Questions for each model that they tell from the best.
const EACH: usize = 2;
/// Answers that the best model does not explain that are varied, and variations of each.
const VARIED: usize = 16;
const VARIATIONS: usize = 20;

/// Questions about the sum at a place, and those above, that tell the best model from the others that explain as much, and
/// from those with one thing turned about its rule, or another result; and about what it leaves unexplained. None if nothing is
/// left to tell.
pub(super) fn questions(evidence: &Evidence, descent: &Descent, place: usize, seed: u64) -> Vec<DotAdd> {
    let signature = evidence.signature();
    let (best, rule) = (descent.best(), descent.order[place]);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let unchanged = depth::unchanged(evidence);
    let within = unchanged.exponents.clone();
    let depths = Depths::new(best, &descent.order, unchanged);
    let is_about = |question: &DotAdd, answer: u64| {
        Class::of(signature, question, answer) <= CLASS && depths.but_for_signs(signature, question) <= place
    };
    let about_it = |questions: Vec<DotAdd>| -> Vec<(DotAdd, Inputs)> {
        let asked = pool::with_inputs(signature, questions);
        let answers = pool::answers(best, &asked);
        let all = asked.into_iter().zip(answers);
        all.filter(|((question, _), d)| is_about(question, *d)).map(|(asked, _)| asked).collect()
    };
    let Some(tried) = tried(signature, best, rule, &within, &mut rng) else { return Vec::new() };
    let tried = about_it(tried);
    let mut answers = descent.by_depth(evidence).answers(CLASS, place, usize::MAX);
    let contradicted = fit::front_load(best, &mut answers);
    let (wrong, right) = answers.split_at(contradicted);
    let others = others(evidence, descent, (rule, descent.scope(place)), right);
    let pool = Pool::new(best, &tried);
    let told: Vec<Vec<DotAdd>> = others.par_iter().map(|other| pool.differing(other, EACH)).collect();
    if wrong.is_empty() && told.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let varied = fit::thinned(wrong, VARIED)
        .into_iter()
        .flat_map(|answered| std::iter::repeat_n(&answered.question, VARIATIONS))
        .map(|question| vary::varied(signature, question, &mut rng));
    let varied = about_it(varied.collect()).into_iter().map(|(question, _)| question);
    let any = tried.iter().take(ANY).map(|(question, _)| question.clone());
    varied.chain(any).chain(told.into_iter().flatten()).collect()
}

/// Random questions about the sum that follows a rule: about few of its summands, and what it loses of each, or of two. None
/// where no values meet in it.
fn tried(
    signature: &Signature,
    model: &Model,
    rule: RuleId,
    within: &RangeInclusive<i32>,
    rng: &mut Xoshiro256PlusPlus,
) -> Option<Vec<DotAdd>> {
    let sum = meetings(model).into_iter().find(|meeting| meeting.rule == rule)?.sum;
    let all = sums_of(model);
    let mut tried = sums::about(signature, (&sum, &all), TRIED, (within, Significands::Long), rng);
    let cuts: Vec<ties::Cut> = cuts::cuts(model).into_iter().filter(|cut| cut.sum == sum).collect();
    tried.extend(ties::dot_adds(signature, &cuts, ties::CLOSELY, within, rng));
    let of_result = match &model.tree.rules[rule].normalised {
        Normalised::To(round) => Some(round.fraction_bits),
        Normalised::No { .. } => None,
    };
    let beside = sums::beside(&sum, &all);
    tried.extend(losses::dot_adds(signature, (&sum, &beside, of_result), TRIED_LOSSES, within, rng));
    Some(tried)
}

/// The other models that explain as much, and those with one thing turned about a rule, or another result, that none of these
/// answers contradicts.
fn others(
    evidence: &Evidence,
    descent: &Descent,
    (rule, scope): (RuleId, Scope),
    right: &[&Answered],
) -> Vec<Model> {
    let (signature, best) = (evidence.signature(), descent.best());
    let mut turned = knobs::turn(best, signature, CLASS, evidence, scope);
    turned.extend(knobs::turn_kind(best, signature, scope));
    turned.extend(knobs::turn_zeros(best, scope));
    turned.extend(knobs::turn_filed(best, scope));
    turned.extend(knobs::turn_alignments(best, false, scope));
    turned.extend(knobs::turn_far(best, scope));
    let is_root = scope.has_root(best);
    let results = other_results(signature, best, (rule, is_root)).into_iter().map(|model| {
        let knob = Knob { what: "result of a sum".to_string(), rule: Some(rule) };
        Turned { knob, choice: String::new(), model }
    });
    let candidates = turned.into_iter().chain(results).filter(|turned| turned.model != *best);
    let standing = standing::standing(candidates.map(Candidate::new).collect(), best, right);
    let as_much = descent.beam[1..].iter().map(|fitted| fitted.model.clone());
    as_much.chain(standing.into_iter().map(|candidate| candidate.turned.model)).collect()
}

/// A model whose sum that follows a rule aligns its summands as before, or not, with every rounding of the result to all bits of
/// any format, and with a result that is not normalised.
fn other_results(signature: &Signature, model: &Model, (rule, is_root): (RuleId, bool)) -> Vec<Model> {
    let own = &model.tree.rules[rule];
    let formats = knobs::of_results(signature, is_root);
    let rounded = formats.into_iter().flat_map(|format| {
        let to = move |rounding| Normalised::To(RoundTo { rounding, ..RoundTo::nearest_even(format) });
        Rounding::EVERY.into_iter().map(to)
    });
    let open = (!is_root).then_some(Normalised::No { exponent: None });
    let results: Vec<Normalised> = [own.normalised].into_iter().chain(open).chain(rounded).collect();
    let mut others = Vec::new();
    for added in [own.added.clone(), Added::Exact] {
        for &normalised in &results {
            let mut other = model.clone();
            let changed = &mut other.tree.rules[rule];
            (changed.added, changed.normalised) = (added.clone(), normalised);
            others.push(other);
        }
    }
    others
}
