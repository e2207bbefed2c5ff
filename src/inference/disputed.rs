//! What is asked where models explain nearly everything.
//!
//! One answer in a thousand that nothing explains shows little: turning a knob that is wrong makes hardly any
//! answer right, and many knobs were set by chance, for want of answers that they show in. So more is asked:
//! what is like the questions whose answers contradict the best model, what the models that were
//! looked at, and the neighbours of the best one, disagree about, and to which neighbour each sum of the best one
//! rounds what each of its summands [loses](ties).

use mmaprobe_model::Model;
use mmaprobe_model::scalar::Scalar;
use mmaprobe_probes::{DotAdd, Probe, Signature, Summand, pairs, place, vary};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use rayon::prelude::*;

use super::evidence::{self, Answered, Evidence};
use super::fit::{self, Fitted};
use super::pool::{self, Pool};
use super::separate;
use super::standing::{self, Candidate};
use super::{depth, nodewise, ties};
use crate::device::DeviceError;

/// Contradictions that are varied.
const VARIED: usize = 16;
/// Variations of each.
const VARIATIONS: usize = 40;
/// Neighbours of the best model that are told from it.
const NEIGHBOURS: usize = 400;
/// Questions for each of them.
const EACH_NEIGHBOUR: usize = 2;
/// Questions for each of the other models.
const EACH_OTHER: usize = 30;

/// Questions about what is lost at all cuts together, at most.
const ALL_TIES: usize = 2000;
/// And where that is asked closely: from which distance on summands are rounded otherwise shows in few.
const MORE_TIES: usize = 6000;
/// Questions about what may be summed first in a sum, at most.
const ALL_PAIRS: usize = 4000;

/// A model explains nearly everything that no more than one answer of so many contradicts.
const NEARLY: usize = 30;

/// The name of the probe that these questions make.
const DISPUTED: &str = "disputed";
/// And of those about what is lost.
const TIES: &str = "rounding/each";

/// Asks about what these models, the best first, do not explain or disagree about. Whether anything was asked:
/// not if even the best is far from the answers.
///
/// # Errors
/// If the device fails.
pub fn ask(evidence: &mut Evidence, models: &[&Fitted], seed: u64) -> Result<bool, DeviceError> {
    // What was asked because it is disputed says nothing about how much is.
    let is_disputed = |a: &&Answered| [DISPUTED, TIES, pairs::NAME].contains(&evidence.probes[a.probe].name);
    let others = || evidence.answers.iter().filter(|answered| !is_disputed(answered));
    let tolerated = others().count() / NEARLY;
    let is_near = |model: &&Model| fit::contradicted(model, others(), tolerated + 1) <= tolerated;
    let near: Vec<&Model> = models.iter().map(|fitted| &fitted.model).take_while(is_near).collect();
    let Some((&best, others)) = near.split_first() else { return Ok(false) };
    let signature = *evidence.signature();
    let seed = seed ^ SEED;
    let mut dot_adds = like_contradictions(evidence, best, seed);
    let questions = pool::questions(&signature, evidence.edition(), best, &[], seed.wrapping_add(1));
    let pool = Pool::new(best, &questions);
    let neighbours = standing_neighbours(evidence, best);
    let neighbours = fit::thinned(&neighbours.iter().collect::<Vec<_>>(), NEIGHBOURS);
    let told: Vec<Vec<DotAdd>> =
        neighbours.par_iter().map(|other| pool.differing(other, EACH_NEIGHBOUR)).collect();
    dot_adds.extend(told.into_iter().flatten());
    let told: Vec<Vec<DotAdd>> = others.par_iter().map(|other| pool.differing(other, EACH_OTHER)).collect();
    dot_adds.extend(told.into_iter().flatten());
    let before = evidence.answers.len();
    let ties = about_ties(evidence, best, (ALL_TIES, mmaprobe_probes::ties::EACH), seed.wrapping_add(2));
    evidence.ask(vec![probe(dot_adds), ties])?;
    Ok(evidence.answers.len() > before)
}

/// Asks, closely, what sums of a model hide and lose, in one round: which of their summands may be summed first, by sums that
/// lose next to nothing, what each summand loses, and what the sums do.
///
/// # Errors
/// If the device fails.
pub fn hidden_and_lost(evidence: &mut Evidence, model: &Model, seed: u64) -> Result<(), DeviceError> {
    let within = depth::unchanged(evidence).exponents;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ PAIRS);
    let pairs = pairs::probe(evidence.signature(), &nodewise::sums(model), ALL_PAIRS, &within, &mut rng);
    let ties = about_ties(evidence, model, (MORE_TIES, mmaprobe_probes::ties::CLOSELY), seed ^ SEED);
    evidence.ask(vec![pairs, ties])
}

/// What each summand of each sum of a model loses, and what the sums do: so many questions at most, and so many about each.
fn about_ties(evidence: &Evidence, model: &Model, (all, each): (usize, usize), seed: u64) -> Probe {
    let cuts = ties::cuts(model);
    let each = (all / cuts.len().max(1)).clamp(1, each);
    let within = depth::unchanged(evidence).exponents;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    Probe {
        name: TIES,
        question: "to which neighbour is what a summand loses at alignment rounded, and what the sum does?",
        source: "MMA-Sim paper, section III.E, Tables I and II",
        dot_adds: mmaprobe_probes::ties::dot_adds(evidence.signature(), &cuts, each, &within, &mut rng),
    }
}

fn probe(dot_adds: Vec<DotAdd>) -> Probe {
    Probe {
        name: DISPUTED,
        question: "what is the answer where models that explain nearly everything fail or disagree?",
        source: "design, inference step 5",
        dot_adds,
    }
}

/// Asks what is like the questions whose answers contradict a model that explained everything until more was asked, and those
/// with fewer summands: of the turns that explain these few, the right one explains those, too.
///
/// # Errors
/// If the device fails.
pub fn around(evidence: &mut Evidence, model: &Model, seed: u64) -> Result<(), DeviceError> {
    without_summands(evidence, model)?;
    let dot_adds = like_contradictions(evidence, model, seed ^ SEED);
    evidence.ask(vec![probe(dot_adds)])
}

/// Contradictions with many summands that are asked about without some of these; and how many are few.
const REDUCED: usize = 8;
const FEW_SUMMANDS: usize = 3;
/// Sums that are few: answers with many summands say as much about each.
const FEW_SUMS: usize = 4;
/// Times that summands are left out, at most, and questions before none are any more.
const TIMES: usize = 16;
const REDUCED_ASKED: usize = 2000;

/// Asks the questions whose answers contradict a model without one of their summands, and without several, as long as what is
/// left contradicts it, too: with many summands, an answer says little about which of many sums is to blame.
fn without_summands(evidence: &mut Evidence, model: &Model) -> Result<(), DeviceError> {
    if nodewise::sums(model).len() <= FEW_SUMS {
        return Ok(());
    }
    let signature = *evidence.signature();
    let mut wrong = contradicting(evidence, model);
    wrong.retain(|answered| answered.summands > FEW_SUMMANDS);
    let mut open: Vec<DotAdd> =
        fit::thinned(&wrong, REDUCED).into_iter().map(|answered| answered.question.clone()).collect();
    let mut executor = Scalar::new(model).expect("a fitted model can be executed");
    let mut asked = 0;
    for _ in 0..TIMES {
        let variants: Vec<Vec<DotAdd>> =
            open.iter().map(|question| with_fewer(&signature, question)).collect();
        if asked >= REDUCED_ASKED || variants.iter().all(Vec::is_empty) {
            break;
        }
        asked += variants.iter().map(Vec::len).sum::<usize>();
        evidence.ask(vec![probe(variants.concat())])?;
        let mut is_wrong = |q: &&DotAdd| {
            let d = executor.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb);
            evidence.answer(q).is_some_and(|answer| fit::differ(model, d, answer))
        };
        // Those with the fewest summands come first.
        open = variants.iter().filter_map(|fewer| fewer.iter().find(&mut is_wrong).cloned()).collect();
    }
    Ok(())
}

/// A question with a quarter of its summands left out, another quarter, and so on, and with each left out; none if they are few.
fn with_fewer(signature: &Signature, question: &DotAdd) -> Vec<DotAdd> {
    let live: Vec<Summand> = evidence::summands(signature, question).collect();
    if live.len() <= FEW_SUMMANDS {
        return Vec::new();
    }
    let zeros = place::zeros(signature);
    let without = |left_out: &[Summand]| {
        let mut fewer = question.clone();
        for summand in left_out {
            match *summand {
                Summand::Product(k) => (fewer.a[k], fewer.b[k]) = (zeros.a[k], zeros.b[k]),
                Summand::C => fewer.c = zeros.c,
            }
        }
        fewer
    };
    let quarter = live.len().div_ceil(4);
    let several = live.chunks(quarter).filter(|_| quarter > 1);
    several.chain(live.chunks(1)).map(without).collect()
}

/// The answers that contradict a model, the simplest classes first, and in each those with the fewest summands.
fn contradicting<'e>(evidence: &'e Evidence, model: &Model) -> Vec<&'e Answered> {
    let mut wrong: Vec<&Answered> = evidence.answers.iter().collect();
    let contradicted = fit::front_load(model, &mut wrong);
    wrong.truncate(contradicted);
    // A stable sort: what was asked first stays first among equals.
    wrong.sort_by_key(|answered| (answered.class, answered.summands));
    wrong
}

/// Sets the seeds of disputed questions apart from others.
const SEED: u64 = 0x6469_7370_7574_6564;
/// And those about what is summed first.
const PAIRS: u64 = 0x73_756d_7302;

/// Variations of the questions whose answers contradict a model, those with the fewest summands first.
fn like_contradictions(evidence: &Evidence, model: &Model, seed: u64) -> Vec<DotAdd> {
    let signature: &Signature = evidence.signature();
    let wrong = contradicting(evidence, model);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    fit::thinned(&wrong, VARIED)
        .into_iter()
        .flat_map(|answered| std::iter::repeat_n(&answered.question, VARIATIONS))
        .map(|question| vary::varied(signature, question, &mut rng))
        .collect()
}

/// Answers that neighbours are held against, the last and some of all others: what these do not tell from the model is asked
/// about, and so are few others that more of them might have told.
const HELD_AGAINST: usize = 5000;

/// The neighbours of a model that contradict none of these answers which it explains.
fn standing_neighbours(evidence: &Evidence, model: &Model) -> Vec<Model> {
    let mut executor = Scalar::new(model).expect("a fitted model can be executed");
    let explained: Vec<&Answered> =
        evidence.answers.iter().filter(|answered| fit::explains(&mut executor, answered)).collect();
    let neighbours = separate::neighbours(evidence, model).into_iter().map(Candidate::new).collect();
    let some = standing::mostly_last(&explained, HELD_AGAINST);
    standing::standing(neighbours, model, &some).into_iter().map(|candidate| candidate.turned.model).collect()
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32};
    use mmaprobe_model::tree::{Added, Fused};
    use mmaprobe_probes::random::{self, Distribution};

    use super::*;
    use crate::device::Device;
    use crate::inference::testing;

    #[test]
    fn what_contradicts_a_model_with_many_summands_is_asked_with_few() {
        let signature = testing::signature(12);
        let wrong = Model::chain_of_fma(FP16, FP32, 12);
        let mut truth = wrong.clone();
        truth.tree.rules[0].added = Added::Fused(Fused::uniform(26, Rounding::TowardZero));
        let device = testing::device(&signature, truth, (1, 1));
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let dense = (0..40).map(|_| random::dot_add(Distribution::NearExponents, &signature, &mut rng));
        evidence.ask(vec![probe(dense.collect())]).expect("it answers");
        let fewest = |evidence: &Evidence| {
            contradicting(evidence, &wrong)
                .iter()
                .map(|answered| answered.summands)
                .min()
                .expect("it is wrong")
        };
        assert!(fewest(&evidence) > FEW_SUMMANDS, "{}", fewest(&evidence));
        without_summands(&mut evidence, &wrong).expect("it answers");
        assert!(fewest(&evidence) <= FEW_SUMMANDS, "{}", fewest(&evidence));
        // Those are not asked with fewer.
        let few =
            contradicting(&evidence, &wrong).into_iter().find(|answered| answered.summands <= FEW_SUMMANDS);
        assert!(with_fewer(&signature, &few.expect("there is one").question).is_empty());
    }
}
