//! What is asked: everything that is put to a device to find rules from.

use std::ops::ControlFlow;

use mmaprobe_model::Model;
use mmaprobe_model::scalar::Scalar;
use mmaprobe_probes::random::{self, Distribution};
use mmaprobe_probes::sums::{self, Significands};
use mmaprobe_probes::{
    DotAdd, Edition, Probe, Signature, infinities, nans, place, precision, rounding, subnormals, zeros,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::evidence::{Again, Answered, Evidence};
use super::order::Order;
use super::regular::Regular;
use super::skeleton::{self, Skeleton};
use super::structure::{self, Structure};
use super::trust::Distrust;
use super::{
    Progress, depth, exchanging, fit, grouping, handing, nesting, nodewise, order, overflowing, tracing,
};
#[cfg(test)]
use crate::device::Device;
use crate::device::DeviceError;

/// What the answers show before any rule is looked for.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The order of summation that masks show.
    pub order: Order,
    /// Answers that it was read from.
    pub order_answers: u64,
    /// Trees in which sums that masks show as flat have an order inside, if answers speak for one.
    pub nested: Vec<Skeleton>,
    /// Fraction bits at which something is lost, those of most ladders alone.
    pub cuts: Vec<i32>,
    /// How many different ones there are in all.
    pub all_cuts: usize,
    /// Other orders, from [a closer look](closer), and then what is combined of those.
    pub closer: Vec<Skeleton>,
    /// The orders that exchanged summands show, or [traces](tracing), which are meant with these from here on: the regular ones
    /// that are very much like these, or like what masks show, first; also where masks show the same.
    pub exchanged: Vec<Skeleton>,
    /// Whether the first of those is a regular one.
    pub is_regular: bool,
    /// The sums of sums that masks show, with parts as the first of those has them, if that is another order: what is
    /// aligned in a way of its own may look like an order of parts.
    pub parts: Option<Skeleton>,
    /// The first of those orders with c added last, if it is added before: where nothing is lost of what it is added
    /// to, it can be exchanged with summands that it does not meet. And [with a chain reversed](Skeleton::reversed_from_c) that
    /// it is added to.
    pub c_moved: Vec<Skeleton>,
    /// Those orders with [groups dissolved](Skeleton::dissolved).
    pub dissolved: Vec<Skeleton>,
    /// How many of the closer ones were not combined.
    found: usize,
    /// Whether a closer look has been asked for.
    pub is_close: bool,
    /// How often one rule for all sums has been tried in these orders.
    pub glances: usize,
}

/// Different fraction bits at which something is lost, if no fewer, that speak for rules which sums hardly share: one rule
/// mostly has one way to align its summands, or as many as these take turns in.
const MANY_CUTS: usize = 8;

impl Outline {
    /// Whether so much is lost in different ways that sums hardly share rules.
    pub fn hardly_shares_rules(&self) -> bool {
        self.all_cuts >= MANY_CUTS
    }
}

/// Asks random inputs. Of all that is asked, this says most about everything: asked before anything else, it
/// shows that a device was another one before it changed for good. A recording is asked in the order in which it was.
///
/// # Errors
/// If the device fails.
pub fn first(evidence: &mut Evidence, seed: u64) -> Result<(), DeviceError> {
    let edition = evidence.device().edition();
    evidence.ask(vec![random_probe(evidence.signature(), seed, edition)])
}

/// The names of probes that are about nothing but the order of summation.
const ABOUT_ORDER: [&str; 2] = [mmaprobe_probes::order::NAME, mmaprobe_probes::overflowing::NAME];

/// Of what was asked at first, about so many questions are asked once more.
const ONCE_MORE: usize = 240;

/// Asks for the order of summation, and the crafted probes; what was asked at first is asked once more among those, which
/// shows whether answers depend on the size of a batch.
///
/// # Errors
/// If the device fails.
pub fn outline(
    evidence: &mut Evidence,
    progress: &dyn Progress,
) -> Result<ControlFlow<Distrust, Outline>, DeviceError> {
    progress.step("order of summation, crafted probes", None);
    let first: Vec<&Answered> = evidence.all().collect();
    let first =
        fit::thinned(&first, ONCE_MORE).into_iter().map(|answered| answered.question.clone()).collect();
    evidence.ask_with_next(crafted(evidence.signature()), first);
    let mut order = order::find(evidence)?;
    // Where no order can be asked for, nothing has been asked yet.
    evidence.ask(Vec::new())?;
    if let Some(distrust) = first_again(evidence)? {
        return Ok(ControlFlow::Break(distrust));
    }
    let mut closer = Vec::new();
    if order.unreachable > 0
        && let Some(overflown) = overflowing::order(evidence)?
    {
        // Where masks show nothing, this is what there is.
        if order.skeleton.is_flat() {
            order.skeleton = overflown;
        } else if order.skeleton != overflown {
            closer.push(overflown);
        }
    }
    if let Some(beyond) = order::find_beyond(evidence)?
        && beyond != order.skeleton
        && !closer.contains(&beyond)
    {
        closer.push(beyond);
    }
    let is_about_order = |answered: &&Answered| ABOUT_ORDER.contains(&evidence.probes[answered.probe].name);
    let order_answers = evidence.all().filter(is_about_order).count() as u64;
    progress.step("more crafted probes", None);
    let (cuts, all_cuts) = ask_about_cuts(evidence, &order.skeleton)?;
    let nested = nesting::refine(evidence, &order.skeleton, &cuts)?;
    let found = closer.len();
    let outline = Outline {
        order,
        order_answers,
        nested,
        cuts,
        all_cuts,
        closer,
        exchanged: Vec::new(),
        is_regular: false,
        parts: None,
        c_moved: Vec::new(),
        dissolved: Vec::new(),
        found,
        is_close: false,
        glances: 0,
    };
    Ok(ControlFlow::Continue(outline))
}

/// What is not answered in a large batch as it was at first.
fn first_again(evidence: &mut Evidence) -> Result<Option<Distrust>, DeviceError> {
    let Some(Again { questions, answers, from }) = evidence.asked_again() else { return Ok(None) };
    let known = questions[from..].iter().map(|question| (question, evidence.answer(question)));
    let known = known.filter_map(|(question, answer)| Some((question, answer?)));
    let Some((index, question, two)) = changed(known, &answers[from..]) else { return Ok(None) };
    named(evidence, (&questions, &answers), from + index, (question, two)).map(Some)
}

/// Orders that are combined of what several ways of asking show, at most.
const COMBINED: usize = 8;

/// Traces are asked for where normal factors of products span fewer binades, whatever their scales: in a block, sums may lose
/// nothing of one product beside another.
const TRACED_WITHIN: i32 = 40;

/// Asks for orders of summation that masks do not show.
///
/// # Errors
/// If the device fails.
pub fn closer(evidence: &mut Evidence, outline: &mut Outline, seed: u64) -> Result<(), DeviceError> {
    let signature = *evidence.signature();
    let masked = &outline.order.skeleton;
    let mut sums = grouping::Sums::of(evidence, masked);
    let first = sums.first_probe(evidence);
    evidence.ask_aside(vec![first])?;
    let second = sums.second_probe(evidence);
    evidence.ask_aside(vec![second])?;
    outline.is_close = true;
    outline.closer.truncate(outline.found);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ PRODUCTS);
    let products = mmaprobe_probes::products::probe(&signature, &mut rng);
    // What passes all sums is what values are made of.
    evidence.ask(vec![mmaprobe_probes::sums::range(&signature), products])?;
    let exchanged = exchanging::orders(evidence, &outline.cuts, seed)?;
    let (low, high) = place::reach_of_factors(&signature);
    let traced = if high - low < TRACED_WITHIN { tracing::orders(evidence)? } else { Vec::new() };
    // Where exchanged summands show an order, traces may show less of it.
    let (exchanged, traced) = if exchanged.is_empty() { (traced, Vec::new()) } else { (exchanged, traced) };
    let (like_exchanged, like_masked) = very_regular(&signature, &exchanged, masked);
    // What masks show, made whole, says nothing that exchanged summands do.
    let first = like_exchanged.iter().chain(&exchanged).chain(&like_masked).next().cloned();
    outline.is_regular = !like_exchanged.is_empty() || like_masked.is_some();
    let shown = like_exchanged.into_iter().chain(like_masked).chain(exchanged).chain(traced);
    outline.exchanged = skeleton::distinct(shown, usize::MAX);
    let dissolved = outline.exchanged.iter().filter_map(Skeleton::dissolved);
    let is_shown = |order: &Skeleton| outline.exchanged.iter().any(|shown| shown.has_the_same_sums(order));
    outline.dissolved = skeleton::distinct(dissolved.filter(|order| !is_shown(order)), usize::MAX);
    let parts = first.as_ref().map(|exchanged| masked.with_parts_of(exchanged));
    let is_known = |parts: &Skeleton| is_shown(parts) || masked.has_the_same_sums(parts);
    outline.parts = parts.filter(|parts| !parts.is_flat() && !is_known(parts));
    let moved = |first: &Skeleton| first.with_c_last().into_iter().chain(first.reversed_from_c());
    outline.c_moved = first.iter().flat_map(moved).collect();
    let handed = handing::orders(evidence, &outline.cuts, seed)?;
    let grouped = sums.orders(evidence, masked);
    let likely: Vec<Skeleton> = outline.parts.iter().chain(&outline.c_moved).cloned().collect();
    let dissolved = outline.dissolved.clone();
    for order in
        outline.exchanged.clone().into_iter().chain(likely).chain(handed).chain(grouped).chain(dissolved)
    {
        if order != *masked && !outline.closer.contains(&order) {
            outline.closer.push(order);
        }
    }
    outline.found = outline.closer.len();
    // What each of them shows beside the others: all together, then in pairs.
    let others: Vec<&Skeleton> = outline.nested.iter().chain(&outline.closer).collect();
    let with = |order: &Skeleton, other: &&Skeleton| order::combined(&signature, order, other);
    let all = others.iter().fold(masked.clone(), |all, other| with(&all, other));
    let first = others.iter().map(|other| with(masked, other));
    let pairs = others.iter().flat_map(|one| others.iter().map(|other| with(one, other)));
    // Sums are compared as if all were shown by masks.
    let plain = |order: &Skeleton| order::combined(&signature, order, order);
    let mut known: Vec<Skeleton> = std::iter::once(masked).chain(others.iter().copied()).map(plain).collect();
    let mut combined: Vec<Skeleton> = Vec::new();
    for order in std::iter::once(all).chain(first).chain(pairs) {
        if !known.contains(&order) {
            known.push(order.clone());
            combined.push(order);
        }
        if combined.len() == COMBINED {
            break;
        }
    }
    outline.closer.extend(combined);
    Ok(())
}

/// So many times more is alike than not between orders that are very much alike.
const VERY_ALIKE: i64 = 5;

/// The regular orders that those which exchanged summands show are very much like, and the one that what masks show is, if
/// that is another.
fn very_regular(
    signature: &Signature,
    exchanged: &[Skeleton],
    masked: &Skeleton,
) -> (Vec<Skeleton>, Option<Skeleton>) {
    if masked.is_flat() && exchanged.is_empty() {
        return (Vec::new(), None);
    }
    let regular = Regular::of(signature);
    let like_exchanged = exchanged.iter().filter_map(|order| regular.nearest(order, VERY_ALIKE));
    let like_masked = regular.mostly_told(masked, VERY_ALIKE);
    (like_exchanged.collect(), like_masked.filter(|like| !like.has_the_same_sums(masked)))
}

/// Random questions of each distribution among the first evidence.
const RANDOM_EACH: usize = 120;

/// Asks the crafted probes that depend on what others have shown.
///
/// Returns the fraction bits at which something was lost, and how many different ones there are.
fn ask_about_cuts(evidence: &mut Evidence, skeleton: &Skeleton) -> Result<(Vec<i32>, usize), DeviceError> {
    let signature = *evidence.signature();
    let (cuts, all) = cuts(evidence);
    let mut probes = rounding::probe(&signature, &cuts);
    probes.push(rounding::exponents(&signature, &cuts));
    probes.push(nesting::first_probe(evidence, skeleton, &cuts));
    evidence.ask(probes)?;
    Ok((cuts, all))
}

/// The crafted probes of the paper's sections III.D to III.F that depend on no answer.
pub fn crafted(signature: &Signature) -> Vec<Probe> {
    let mut probes = precision::probe(signature);
    probes.push(rounding::sticky(signature));
    probes.extend(subnormals::probe(signature));
    probes.extend(zeros::probe(signature));
    probes.extend(infinities::probe(signature));
    probes.extend(nans::probe(signature));
    probes
}

/// Random dot-adds of every distribution.
fn random_probe(signature: &Signature, seed: u64, edition: Edition) -> Probe {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut dot_adds: Vec<DotAdd> = Distribution::asked_in(edition)
        .iter()
        .flat_map(|&distribution| std::iter::repeat_n(distribution, RANDOM_EACH))
        .map(|distribution| random::dot_add(distribution, signature, &mut rng))
        .collect();
    if edition >= Edition::Second {
        // Bits are drawn first.
        dot_adds.rotate_left(RANDOM_EACH);
    }
    Probe {
        name: "random",
        question: "what is the answer to random inputs?",
        source: "MMA-Sim paper, section V",
        dot_adds,
    }
}

/// Where ladders end: the fraction bits at which something was lost, of most ladders, the format's own among them, and how many
/// different ones there are of all.
fn cuts(evidence: &Evidence) -> (Vec<i32>, usize) {
    let signature = evidence.signature();
    let mut counted: Vec<(i32, usize)> = Vec::new();
    for ladder in precision::pair_ladders(signature).iter().chain(&precision::triple_ladders(signature)) {
        let answers: Vec<Option<u64>> = ladder.iter().map(|question| evidence.answer(question)).collect();
        let Some(last) = answers.last() else { continue };
        // The last rung whose answer is not the one that all later rungs share.
        if let Some(cut) = answers.iter().rposition(|answer| answer != last)
            && cut + 2 < answers.len()
        {
            match counted.iter_mut().find(|(c, _)| *c == cut as i32) {
                Some((_, count)) => *count += 1,
                None => counted.push((cut as i32, 1)),
            }
        }
    }
    counted.sort_by_key(|&(cut, count)| (std::cmp::Reverse(count), cut));
    let all = counted.len();
    counted.truncate(4);
    let mut cuts: Vec<i32> = counted.into_iter().map(|(cut, _)| cut).collect();
    cuts.push(signature.d.fraction_bits as i32);
    cuts.sort_unstable();
    cuts.dedup();
    (cuts, all)
}

/// Questions about each sum of a tree, all together.
const ABOUT_SUMS: usize = 7000;

/// Trees whose sums are asked about.
const TREES_ABOUT_SUMS: usize = 2;

/// Asks about each sum of the likeliest trees that were found: what a closer look shows, or else masks.
///
/// # Errors
/// If the device fails.
pub fn each_sum(evidence: &mut Evidence, outline: &Outline, seed: u64) -> Result<(), DeviceError> {
    let signature = *evidence.signature();
    let masked = &outline.order.skeleton;
    let trees = outline
        .exchanged
        .iter()
        .take(1)
        .chain(Some(masked).filter(|masked| !masked.is_flat()))
        .chain(&outline.exchanged)
        .chain(&outline.closer)
        .chain(&outline.nested)
        .chain([masked]);
    let starts = skeleton::distinct(trees.cloned(), TREES_ABOUT_SUMS);
    let starts = starts.into_iter().map(|tree| structure::start(&signature, &tree, Structure::Plain));
    evidence.ask(vec![sums::range(&signature)])?;
    about_sums(evidence, starts, Significands::Short, seed ^ SUMS)
}

/// Asks more about each sum of the first two of these models, with long significands, too.
///
/// # Errors
/// If the device fails.
pub fn each_sum_closely(evidence: &mut Evidence, starts: &[Model], seed: u64) -> Result<(), DeviceError> {
    let starts = starts.iter().take(TREES_ABOUT_SUMS).cloned();
    about_sums(evidence, starts, Significands::Long, seed ^ SUMS_CLOSELY)
}

/// Asks about each sum of these models.
fn about_sums(
    evidence: &mut Evidence,
    starts: impl Iterator<Item = Model>,
    significands: Significands,
    seed: u64,
) -> Result<(), DeviceError> {
    let signature = *evidence.signature();
    let mut all: Vec<sums::Sum> = Vec::new();
    for start in starts {
        for mut sum in nodewise::sums(&start) {
            sum.iter_mut().for_each(|summands| summands.sort_unstable());
            sum.sort_unstable();
            if !all.contains(&sum) {
                all.push(sum);
            }
        }
    }
    let each = ABOUT_SUMS / all.len().max(1);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let within = depth::unchanged(evidence).exponents;
    evidence.ask(vec![sums::probe(&signature, &all, each, (&within, significands), &mut rng)])
}

/// Sets the seeds of questions about sums apart from others.
const SUMS: u64 = 0x73_756d_7300;
const SUMS_CLOSELY: u64 = 0x73_756d_7301;
/// And of those about products.
const PRODUCTS: u64 = 0x70_726f_6400;

/// Sizes of small batches, in problems, and how many of each are asked.
const SMALL: [(usize, usize); 5] = [(1, 32), (2, 4), (3, 4), (7, 4), (31, 8)];

/// Asks everything once more, once more in reverse and so at other places, and some of it in batches of other
/// sizes: what no model explains may be no function.
///
/// # Errors
/// If the device fails.
pub fn again(evidence: &mut Evidence) -> Result<Option<Distrust>, DeviceError> {
    let questions: Vec<DotAdd> = evidence.all().map(|answered| answered.question.clone()).collect();
    let again = evidence.run(&questions)?;
    if let Some((_, question, answers)) = changed(evidence.all().map(asked_and_answered), &again) {
        return Ok(Some(Distrust::NotDeterministic { question, answers, between: between(false) }));
    }
    let backward: Vec<DotAdd> = questions.iter().rev().cloned().collect();
    let mut reversed = evidence.run(&backward)?;
    reversed.reverse();
    if let Some((index, question, answers)) = changed(evidence.all().map(asked_and_answered), &reversed) {
        let place = |index: usize| in_batch(index, questions.len());
        let places = (place(index), place(questions.len() - 1 - index));
        return Ok(Some(Distrust::NotUniform { question, answers, places }));
    }
    in_small_batches(evidence)
}

/// Problems of a large batch: more than most batches have that are asked late.
const LARGE: usize = 220;
/// Answers that contradict a model, of which no more are asked once more.
const CONTRADICTING: usize = 100;

/// Asks what contradicts a model once more, among so much else that the batch is large: an answer to one of few questions
/// may come of that.
///
/// # Errors
/// If the device fails.
pub fn contradicting(evidence: &mut Evidence, model: &Model) -> Result<Option<Distrust>, DeviceError> {
    let each = evidence.instruction().m.min(evidence.instruction().n);
    let mut executor = Scalar::new(model).expect("a fitted model can be executed");
    let (right, wrong): (Vec<&Answered>, Vec<&Answered>) =
        evidence.answers.iter().partition(|answered| fit::explains(&mut executor, answered));
    let some = fit::thinned(&wrong, CONTRADICTING).into_iter().chain(fit::thinned(&right, LARGE * each));
    let known: Vec<(DotAdd, u64)> = some.map(|a| (a.question.clone(), a.answer)).collect();
    let asked: Vec<DotAdd> = known.iter().map(|(question, _)| question.clone()).collect();
    let again = evidence.run(&asked)?;
    let known = known.iter().map(|(question, answer)| (question, *answer));
    let Some((place, question, answers)) = changed(known, &again) else { return Ok(None) };
    named(evidence, (&asked, &again), place, (question, answers)).map(Some)
}

/// What is the matter where a question in a batch, which got these answers, is answered otherwise than before: the question,
/// and both its answers.
fn named(
    evidence: &mut Evidence,
    (asked, answers): (&[DotAdd], &[u64]),
    place: usize,
    (question, two): (DotAdd, (u64, u64)),
) -> Result<Distrust, DeviceError> {
    let comes_again = evidence.run(asked)? == answers;
    if comes_again {
        let each = evidence.instruction().m.min(evidence.instruction().n);
        // The batch is another one, and so is the place in it: which of them is it?
        for moved in 1..=each {
            let mut rotated = asked.to_vec();
            rotated.rotate_right(moved);
            let there = (place + moved) % asked.len();
            let two = (two.1, evidence.run(&rotated)?[there]);
            if two.0 != two.1 {
                let places = (in_batch(place, asked.len()), in_batch(there, asked.len()));
                return Ok(Distrust::NotUniform { question, answers: two, places });
            }
        }
    }
    Ok(Distrust::NotDeterministic { question, answers: two, between: between(comes_again) })
}

/// A question with its answer.
fn asked_and_answered(answered: &Answered) -> (&DotAdd, u64) {
    (&answered.question, answered.answer)
}

/// The first answer that is another one than is known: its index, its question, and both.
fn changed<'k>(
    known: impl Iterator<Item = (&'k DotAdd, u64)>,
    again: &[u64],
) -> Option<(usize, DotAdd, (u64, u64))> {
    let pairs = known.zip(again.iter().copied());
    let first = pairs.enumerate().find(|(_, ((_, answer), again))| answer != again);
    first.map(|(index, ((question, answer), again))| (index, question.clone(), (answer, again)))
}

/// Between what an answer changed, which comes again with the same batch or not.
fn between(comes_again: bool) -> &'static str {
    match comes_again {
        true => "batches of different sizes",
        // What does not come again is noise.
        false => "two times of asking",
    }
}

/// A place in a batch, in words.
fn in_batch(index: usize, questions: usize) -> String {
    format!("place {index} of a batch of {questions}")
}

/// Asks some of what was asked in small batches: questions with as many summands as any, which show more of the
/// arithmetic than most.
fn in_small_batches(evidence: &mut Evidence) -> Result<Option<Distrust>, DeviceError> {
    let each = evidence.instruction().m.min(evidence.instruction().n);
    let number: usize = SMALL.iter().map(|(size, batches)| size * batches * each).sum();
    let mut most: Vec<&Answered> = evidence.all().collect();
    // A stable sort: what was asked first, at random, stays first among equals.
    most.sort_by_key(|answered| std::cmp::Reverse(answered.summands));
    let known: Vec<(DotAdd, u64)> =
        most.iter().take(number).map(|a| (a.question.clone(), a.answer)).collect();
    // Of few, some come again.
    let mut next = known.iter().cycle();
    for (size, batches) in SMALL {
        for _ in 0..batches {
            let some: Vec<&(DotAdd, u64)> = next.by_ref().take(size * each).collect();
            let asked: Vec<DotAdd> = some.iter().map(|(question, _)| question.clone()).collect();
            let again = evidence.run(&asked)?;
            let some = some.into_iter().map(|(question, answer)| (question, *answer));
            if let Some((_, question, answers)) = changed(some, &again) {
                let between = between(evidence.run(&asked)? == again);
                return Ok(Some(Distrust::NotDeterministic { question, answers, between }));
            }
        }
    }
    Ok(None)
}

/// Adds a counterexample and inputs around it to the evidence: single bits flipped, signs changed,
/// summands left out.
///
/// # Errors
/// If the device fails.
pub fn around<'a>(
    evidence: &mut Evidence,
    questions: impl IntoIterator<Item = &'a DotAdd>,
) -> Result<(), DeviceError> {
    let signature = *evidence.signature();
    let dot_adds = questions.into_iter().flat_map(|question| each_around(&signature, question)).collect();
    evidence.ask(vec![Probe {
        name: "counterexample",
        question: "what is the answer to a counterexample, and around it?",
        source: "design, inference step 5",
        dot_adds,
    }])
}

/// A question, and questions near it.
fn each_around(signature: &Signature, question: &DotAdd) -> Vec<DotAdd> {
    let mut around = vec![question.clone()];
    let zeros = mmaprobe_probes::place::zeros(signature);
    let bits = |format: &mmaprobe_model::Format| {
        (format.ignored_low_bits..format.ignored_low_bits + format.bits()).map(|bit| 1u64 << bit)
    };
    for flipped in bits(&signature.c) {
        around.push(DotAdd { c: question.c ^ flipped, ..question.clone() });
    }
    let mut varied = 0;
    for k in 0..signature.k {
        if (question.a[k], question.b[k]) == (zeros.a[k], zeros.b[k]) || varied == 4 {
            continue;
        }
        varied += 1;
        let mut without = question.clone();
        (without.a[k], without.b[k]) = (zeros.a[k], zeros.b[k]);
        around.push(without);
        for flipped in bits(&signature.a) {
            let mut near = question.clone();
            near.a[k] ^= flipped;
            around.push(near);
        }
        for flipped in bits(&signature.b) {
            let mut near = question.clone();
            near.b[k] ^= flipped;
            around.push(near);
        }
    }
    around
}

/// What a device whose answers can be trusted shows about its first instruction before models are looked for: the answers,
/// and the outline of its sums.
#[cfg(test)]
pub fn of_sound(device: &dyn Device, seed: u64) -> (Evidence<'_>, Outline) {
    let mut evidence = Evidence::new(device, &device.instructions()[0]);
    first(&mut evidence, seed).expect("it answers");
    let ControlFlow::Continue(mut outline) = outline(&mut evidence, &super::Silent).expect("it answers")
    else {
        panic!("a sound device is distrusted");
    };
    closer(&mut evidence, &mut outline, seed).expect("it answers");
    (evidence, outline)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32};
    use mmaprobe_model::tree::{Added, Fused};

    use super::*;
    use crate::inference::testing;

    #[test]
    fn editions_ask_random_questions_with_bits_first_or_last() {
        let signature = testing::signature(4);
        let [first, second, third] =
            Edition::ALL.map(|edition| random_probe(&signature, 7, edition).dot_adds);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut drawn = |distribution| {
            [(); RANDOM_EACH].iter().map(|()| random::dot_add(distribution, &signature, &mut rng)).collect()
        };
        let bits: Vec<DotAdd> = drawn(Distribution::UniformBits);
        let near: Vec<DotAdd> = drawn(Distribution::NearExponents);
        assert_eq!(first[..RANDOM_EACH], bits);
        assert_eq!(first[RANDOM_EACH..2 * RANDOM_EACH], near);
        assert_eq!(second[..RANDOM_EACH], near);
        assert_eq!(second[second.len() - RANDOM_EACH..], bits);
        // The third asks more, and bits last, too.
        assert_eq!(third[..second.len() - RANDOM_EACH], second[..second.len() - RANDOM_EACH]);
        assert_eq!(third[second.len()..], bits);
    }

    #[test]
    fn sums_that_each_lose_other_bits_hardly_share_rules() {
        let signature = testing::signature(10);
        let hardly_shares = |fraction_bits: &dyn Fn(usize) -> u32| {
            let (mut model, rules) = nodewise::individual(&Model::chain_of_fma(FP16, FP32, 10));
            for rule in rules {
                let fused = Fused::uniform(fraction_bits(rule), Rounding::TowardZero);
                model.tree.rules[rule].added = Added::Fused(fused);
            }
            let device = testing::device(&signature, model, (1, 1));
            of_sound(&device, 1).1.hardly_shares_rules()
        };
        assert!(hardly_shares(&|rule| 8 + rule as u32));
        assert!(!hardly_shares(&|_| 12), "all are alike");
        assert!(!hardly_shares(&|rule| 10 + 3 * (rule as u32 % 3)), "they are of three kinds");
    }
}
