//! Asking and looking in turns, until a model explains every answer or nothing is left to try.

use super::asking::{self, Outline};
use super::evidence::Evidence;
use super::fit::{self, Fitted};
use super::looking::{self, Looked, Starts};
use super::trust::Distrust;
use super::{Progress, disputed, nodewise};
use crate::device::DeviceError;

/// How a search ended.
#[derive(Clone, Debug)]
pub enum Searched {
    /// With this model, which the fewest answers contradict.
    Best(Box<Fitted>),
    /// The device does not answer alike every time.
    Distrusted(Distrust),
}

/// Times that what is disputed is asked about.
const DISPUTES: u64 = 4;

/// Answers that contradict a model which explained everything, if fewer, are asked about once more; and again, if what is learned
/// of that leaves fewer.
const LEFT: usize = 100;

/// Times that one rule for all sums is tried in all orders, which takes long where none fits.
const GLANCES: usize = 2;

/// Sets the seeds of what is disputed apart, of one time from those of the next.
const TIME: u64 = 1000;

/// Says what is done next, and what the best model so far leaves unexplained.
fn say(progress: &dyn Progress, evidence: &Evidence, what: &str, best: &Fitted) {
    let (left, all) = (best.contradicted, evidence.answers.len());
    progress.model(what, &best.model, evidence);
    progress.step(&format!("{what} ({left} of {all} answers left)"), None);
}

/// A search from models that explained everything until more was asked, the last of them first, if there are any, and where
/// that leads to none that does, a search anew.
///
/// # Errors
/// If the device fails.
pub fn search(
    evidence: &mut Evidence,
    outline: &mut Outline,
    refuted: &[Fitted],
    seed: u64,
    progress: &dyn Progress,
) -> Result<Searched, DeviceError> {
    let known = match refuted.split_first() {
        Some((last, earlier)) => match again(evidence, outline, (last, earlier), seed, progress)? {
            Searched::Best(found) if found.contradicted > 0 => Some(*found),
            ended => return Ok(ended),
        },
        None => None,
    };
    anew(evidence, outline, known, seed, progress)
}

/// A search from the last model that explained everything until more was asked, and from earlier ones: what it fails at is
/// asked about.
fn again(
    evidence: &mut Evidence,
    outline: &mut Outline,
    (last, earlier): (&Fitted, &[Fitted]),
    seed: u64,
    progress: &dyn Progress,
) -> Result<Searched, DeviceError> {
    progress.step("search for rules", None);
    progress.model("refuted", &last.model, evidence);
    let mut known = last.clone();
    let mut improved = looking::improved(evidence, known.clone());
    // What explained an answer that contradicted an earlier one may have led astray.
    for earlier in earlier {
        if improved.contradicted == 0 {
            break;
        }
        let other = looking::improved(evidence, earlier.clone());
        if other.contradicted < improved.contradicted {
            (known, improved) = (earlier.clone(), other);
        }
    }
    if improved.contradicted == 0 {
        return Ok(Searched::Best(Box::new(improved)));
    }
    // Asking costs less than searching.
    if let Some(distrust) = asking::contradicting(evidence, &known.model)? {
        return Ok(Searched::Distrusted(distrust));
    }
    if !outline.is_close {
        let before = outline.closer.len();
        asking::closer(evidence, outline, seed)?;
        if outline.closer.len() > before {
            return Ok(Searched::Best(Box::new(improved)));
        }
    }
    let looked = vec![Looked::as_it_is(improved.clone())];
    // Where next to nothing is left, the order is hardly wrong: looking at all others takes minutes, and can wait.
    let is_all_but = looked[0].is_all_but_explained(evidence);
    if outline.glances == 0 && !is_all_but && !outline.hardly_shares_rules() {
        // What is shown, which the model fits or not, may be less than a regular order says.
        say(progress, evidence, "search for rules that all sums share", &improved);
        let mut looked = looking::shared_at_once(&Starts { evidence, outline }, looked);
        outline.glances += 1;
        if looked[0].is_explained() {
            return Ok(Searched::Best(Box::new(looked.swap_remove(0).fitted)));
        }
        // In the right order, it is asked to the end soon; a model that was repaired may never be.
        if let Some(other) = looked.into_iter().find(|looked| looked.fitted.model != improved.model) {
            let seed = seed.wrapping_add(9 * TIME * DISPUTES);
            let found = pursued(evidence, Pursuit::WhileItGains, other.fitted, seed, progress)?;
            if found.contradicted == 0 {
                return Ok(Searched::Best(Box::new(found)));
            }
        }
    }
    for (time, few) in [looking::FEW, LEFT, LEFT].into_iter().enumerate() {
        let before = improved.contradicted;
        let seed = seed.wrapping_add(4 * TIME * DISPUTES + TIME * time as u64);
        improved = told_more(evidence, improved, few, seed, progress)?;
        if improved.contradicted == 0 || time > 0 && improved.contradicted >= before {
            break;
        }
    }
    progress.model("improved", &improved.model, evidence);
    // Where rules are many, a longer look takes minutes, and asking costs less.
    let is_asked_first = looking::has_many_rules(&improved);
    let found = match is_asked_first {
        true => looking::with_few_of_many_rules_anew(evidence, improved),
        false => looking::known(evidence, known.clone(), improved),
    };
    progress.model("looked at", &found.model, evidence);
    let found = pursued(
        evidence,
        Pursuit::BesideAnother(outline),
        found,
        seed.wrapping_add(3 * TIME * DISPUTES),
        progress,
    )?;
    // Nothing may have been disputed; and where the refuted model was started from has not been looked at.
    let found = if is_asked_first { looking::known(evidence, known, found) } else { found };
    Ok(Searched::Best(Box::new(found)))
}

/// The same model, or what becomes of it after more was asked, where fewer answers than so many contradict it: few can be
/// explained in many ways, and more that are like them tell which is right.
fn told_more(
    evidence: &mut Evidence,
    improved: Fitted,
    few: usize,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Fitted, DeviceError> {
    let improved = fit::scored(evidence, improved.model);
    if !(1..few).contains(&improved.contradicted) || evidence.work().is_spent() {
        return Ok(improved);
    }
    disputed::around(evidence, &improved.model, seed)?;
    let improved = fit::scored(evidence, improved.model);
    say(progress, evidence, "search for rules, after asking what is left", &improved);
    let found = looking::improved(evidence, improved.clone());
    Ok(if found.contradicted <= improved.contradicted { found } else { improved })
}

/// How long a model is pursued.
#[derive(Clone, Copy, Debug)]
enum Pursuit<'o> {
    /// As long as more may be tried.
    ToTheEnd,
    /// As long as each time that is asked leaves less unexplained than the one before: of what leaves more each time, the tree is
    /// wrong, and other models wait.
    WhileItGains,
    /// The same; and once, another model is looked for in the trees of an outline, from no rules: turns that are wrong, but
    /// explain a few answers more, lead on to others. What is asked then tells the two apart.
    BesideAnother(&'o Outline),
}

/// Asks where a model that explains nearly everything fails, and looks at it again, as long as it does not explain
/// everything.
fn pursued(
    evidence: &mut Evidence,
    pursuit: Pursuit,
    found: Fitted,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Fitted, DeviceError> {
    let mut models = vec![found];
    let mut before = usize::MAX;
    for time in 0..DISPUTES {
        let seed = seed.wrapping_add(TIME * time);
        let all: Vec<&Fitted> = models.iter().collect();
        if models[0].contradicted == 0 || evidence.work().is_spent() || !disputed::ask(evidence, &all, seed)?
        {
            break;
        }
        models = looking::scored(evidence, models);
        let left = models[0].contradicted;
        if !matches!(pursuit, Pursuit::ToTheEnd) && left >= before {
            break;
        }
        before = left;
        say(progress, evidence, "search for rules, after asking what is disputed", &models[0]);
        let improved = looking::improved(evidence, models[0].clone());
        models[0] = looking::known(evidence, models[0].clone(), improved);
        if let Pursuit::BesideAnother(outline) = pursuit
            && time == 0
            && models[0].contradicted > 0
        {
            models.extend(looking::from_the_start(&Starts { evidence, outline }));
            models = looking::scored(evidence, models);
        }
    }
    Ok(models.swap_remove(0))
}

/// These, and before them what becomes of the best of them when it is [pursued].
fn with_the_best_pursued(
    evidence: &mut Evidence,
    pursuit: Pursuit,
    mut looked: Vec<Looked>,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Vec<Looked>, DeviceError> {
    let found = pursued(evidence, pursuit, looked[0].fitted.clone(), seed, progress)?;
    looked.insert(0, Looked::as_it_is(found));
    Ok(looked)
}

/// The same of the best of them after more was [told](told_more) about it, if fewer answers than so many contradict it. The
/// first seed is that of what tells more.
fn with_the_best_told_more(
    evidence: &mut Evidence,
    few: usize,
    pursuit: Pursuit,
    mut looked: Vec<Looked>,
    (told, asked): (u64, u64),
    progress: &dyn Progress,
) -> Result<Vec<Looked>, DeviceError> {
    let found = told_more(evidence, looked[0].fitted.clone(), few, told, progress)?;
    let found = pursued(evidence, pursuit, found, asked, progress)?;
    looked.insert(0, Looked::as_it_is(found));
    Ok(looked)
}

/// A search in every structure of the orders that were found, and where that is not enough of those that a
/// closer look finds. A model that explains less than everything may be known already.
fn anew(
    evidence: &mut Evidence,
    outline: &mut Outline,
    known: Option<Fitted>,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Searched, DeviceError> {
    progress.step("search for rules", None);
    let mut looked = looking::quickly(&Starts { evidence, outline });
    if looked[0].is_explained() {
        return Ok(Searched::Best(Box::new(looked.swap_remove(0).fitted)));
    }
    // Asking costs less than searching, and asking a few things than asking all.
    if looked[0].is_worth_regrouping(evidence)
        && let Some(distrust) = asking::contradicting(evidence, &looked[0].fitted.model)?
    {
        return Ok(Searched::Distrusted(distrust));
    }
    // Where next to nothing is unexplained, the tree is right or hardly wrong.
    let is_soon = looked[0].is_all_but_explained(evidence);
    if is_soon {
        looked = looking::at_the_best(evidence, looked);
        if looked[0].is_explained() {
            return Ok(Searched::Best(Box::new(looked.swap_remove(0).fitted)));
        }
    }
    if let Some(distrust) = asking::again(evidence)? {
        return Ok(Searched::Distrusted(distrust));
    }
    asking::closer(evidence, outline, seed)?;
    asking::each_sum(evidence, outline, seed)?;
    let starts = &Starts { evidence, outline };
    looked.extend(known.map(Looked::as_it_is));
    // What shares no rules is found sum by sum alone.
    let is_shared = !outline.hardly_shares_rules();
    looked = match is_shared {
        true => looking::at_closer(starts, looked),
        false => descended(evidence, outline, looked, seed.wrapping_add(11 * TIME * DISPUTES), progress)?,
    };
    // Where next to nothing is left, the order is hardly wrong, and asking costs less than looking at others.
    if !looked[0].is_explained() && looked[0].is_all_but_explained(evidence) {
        let told = seed.wrapping_add(10 * TIME * DISPUTES);
        let seeds = (told, told.wrapping_add(TIME));
        looked = with_the_best_told_more(evidence, LEFT, Pursuit::WhileItGains, looked, seeds, progress)?;
        if looked[0].is_explained() {
            return Ok(Searched::Best(Box::new(looked.swap_remove(0).fitted)));
        }
    }
    if is_shared {
        looked = shared_first(evidence, outline, looked, seed, progress)?;
    }
    if !looked[0].is_explained() {
        say(progress, evidence, "search for rules, sum by sum", &looked[0].fitted);
        looked = sums_at_once(evidence, outline, looked, seed)?;
    }
    if !is_shared && !looked[0].is_explained() && !looking::sums_explain_nearly(evidence, &looked) {
        looked = looking::at_closer(&Starts { evidence, outline }, looked);
        looked = shared_first(evidence, outline, looked, seed, progress)?;
    }
    // Where rules of each sum explain nearly everything, the tree is hardly wrong, and asking costs less than looking at others.
    let is_nearly_right = !looked[0].is_explained() && looking::sums_explain_nearly(evidence, &looked);
    if is_nearly_right {
        let seeds = [7, 6].map(|of| seed.wrapping_add(of * TIME * DISPUTES)).into();
        let pursuit = Pursuit::BesideAnother(outline);
        looked = with_the_best_told_more(evidence, looking::FEW, pursuit, looked, seeds, progress)?;
        if looked[0].is_explained() {
            return Ok(Searched::Best(Box::new(looked.swap_remove(0).fitted)));
        }
    }
    let starts = &Starts { evidence, outline };
    // What is shown is part of the order, where formats hold no X far enough above y.
    if outline.order.unreachable > 0 && !looked[0].is_nearly_explained(evidence) {
        say(progress, evidence, "search for rules, sum by sum, in regular orders", &looked[0].fitted);
        looked = looking::finer_sums(starts, looked);
    }
    let summed = looked.iter().filter(|looked| looked.is_summed_at_all(evidence));
    // Where a rule for each sum explains most answers, sums hardly share any.
    let is_summed = is_nearly_right || summed.clone().any(|looked| looked.is_mostly_explained(evidence));
    let is_nearly_summed =
        is_nearly_right || summed.clone().any(|looked| looked.is_nearly_explained(evidence));
    if !looked[0].is_explained() && !is_summed {
        say(progress, evidence, "search for rules that sums share", &looked[0].fitted);
        looked = looking::shared(starts, looked);
        if !is_soon && looked[0].is_nearly_explained(evidence) {
            // What explains nearly everything in more sums than there are hides the tree.
            looked = looking::quick_sums(starts, looked, looking::ONE);
            looked = looking::best_regrouped(evidence, looked);
        }
    }
    if !looked[0].is_nearly_explained(evidence) {
        say(progress, evidence, "search for rules, sum by sum", &looked[0].fitted);
        looked = looking::quick_sums(starts, looked, looking::AT_FIRST);
    }
    if !is_soon && !looked[0].is_explained() {
        say(progress, evidence, "search for rules", &looked[0].fitted);
        looked = looking::at_the_best(evidence, looked);
    }
    if is_soon && looked[0].is_mostly_explained(evidence) {
        looked = looking::best_regrouped(evidence, looked);
    }
    let mut changed = Vec::new();
    if !looked[0].is_nearly_explained(evidence) {
        say(progress, evidence, "search for rules, sum by sum, in other orders", &looked[0].fitted);
        looked = looking::neighbouring_sums(evidence, looked, &mut changed);
    }
    if !looking::has_many_sums(starts) && !looked[0].is_all_but_explained(evidence) {
        say(progress, evidence, "search for rules, the same in all sums", &looked[0].fitted);
        looked = looking::regular(starts, looked);
    }
    if !looked[0].is_all_but_explained(evidence) {
        say(progress, evidence, "search for rules, sum by sum", &looked[0].fitted);
        looked = looking::few_sums(starts, looked);
    }
    if !looked[0].is_all_but_explained(evidence) {
        say(progress, evidence, "search for rules, the same in all sums", &looked[0].fitted);
        looked = looking::alike(starts, looked);
    }
    if !looked[0].is_all_but_explained(evidence) {
        say(progress, evidence, "search for rules, sum by sum", &looked[0].fitted);
        looked = looking::quick_sums(starts, looked, looking::AT_LAST);
    }
    if is_summed && !is_nearly_summed && !looked[0].is_all_but_explained(evidence) {
        say(progress, evidence, "search for rules that sums share", &looked[0].fitted);
        looked = looking::shared(starts, looked);
    }
    if !looked[0].is_explained() {
        say(progress, evidence, "search for rules, sum by sum", &looked[0].fitted);
        looked = looking::longer(starts, looked);
        looked = looking::best_regrouped(evidence, looked);
    }
    if !looked[0].is_nearly_explained(evidence) {
        say(progress, evidence, "search for rules, sum by sum, in other orders", &looked[0].fitted);
        looked = looking::neighbouring_sums(evidence, looked, &mut changed);
        looked = looking::best_regrouped(evidence, looked);
    }
    if looked[0].is_explained() {
        return Ok(Searched::Best(Box::new(looked.swap_remove(0).fitted)));
    }
    if looked[0].is_nearly_explained(evidence) {
        // From the start once is enough.
        let pursuit = if is_nearly_right { Pursuit::WhileItGains } else { Pursuit::BesideAnother(outline) };
        looked = with_the_best_pursued(evidence, pursuit, looked, seed, progress)?;
    }
    looked = disputes(evidence, looked, seed.wrapping_add(TIME * DISPUTES), progress)?;
    let found = looking::closely(&Starts { evidence, outline }, looked, progress);
    if found.contradicted == 0 {
        return Ok(Searched::Best(Box::new(found)));
    }
    let found =
        pursued(evidence, Pursuit::ToTheEnd, found, seed.wrapping_add(2 * TIME * DISPUTES), progress)?;
    Ok(Searched::Best(Box::new(found)))
}

/// Looks for a rule of each sum of the first tree that exchanged summands show, from the last one down, and asks about each:
/// no rule is found where one above is wrong.
fn descended(
    evidence: &mut Evidence,
    outline: &Outline,
    mut looked: Vec<Looked>,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Vec<Looked>, DeviceError> {
    for start in looking::first_exchanged(&Starts { evidence, outline }) {
        if let Some(found) = nodewise::descent::descend(evidence, &start, seed, progress)? {
            looked.push(Looked::descended(evidence, start, &found.model));
        }
    }
    Ok(looking::recounted(evidence, looked))
}

/// Looks for rules that sums share, before each gets a rule of its own: where they do, that takes minutes.
fn shared_first(
    evidence: &mut Evidence,
    outline: &mut Outline,
    mut looked: Vec<Looked>,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Vec<Looked>, DeviceError> {
    // What takes long sum by sum.
    let starts = &Starts { evidence, outline };
    if looking::has_many_sums(starts) && !looked[0].is_explained() {
        say(progress, evidence, "search for rules, the same in all sums", &looked[0].fitted);
        looked = looking::regular(starts, looked);
    }
    if !looked[0].is_explained() && outline.glances < GLANCES {
        say(progress, evidence, "search for rules that all sums share", &looked[0].fitted);
        let before = looked[0].fitted.contradicted;
        looked = looking::shared_at_once(starts, looked);
        outline.glances += 1;
        // One rule for all hardly explains nearly everything in a wrong order, and asking costs less than looking at others.
        if looked[0].fitted.contradicted < before && !looked[0].is_explained() {
            let seed = seed.wrapping_add(5 * TIME * DISPUTES);
            looked = with_the_best_pursued(evidence, Pursuit::WhileItGains, looked, seed, progress)?;
        }
    }
    if looking::is_shared_first(&Starts { evidence, outline }, &looked) {
        say(progress, evidence, "search for rules that sums share", &looked[0].fitted);
        looked = looking::shared_by_kind(&Starts { evidence, outline }, looked);
        if looked[0].is_nearly_explained(evidence) && !looked[0].is_explained() {
            let seed = seed.wrapping_add(8 * TIME * DISPUTES);
            looked = with_the_best_pursued(evidence, Pursuit::WhileItGains, looked, seed, progress)?;
        }
    }
    Ok(looked)
}

/// Looks, sum by sum, at trees that exchanged summands show, if they show any; where quick ones do not explain nearly
/// everything, more is asked about each sum of the best, for quick ones from other guesses.
fn sums_at_once(
    evidence: &mut Evidence,
    outline: &Outline,
    mut looked: Vec<Looked>,
    seed: u64,
) -> Result<Vec<Looked>, DeviceError> {
    let before = looked.len();
    looked = looking::exchanged_sums(&Starts { evidence, outline }, looked);
    if looked.len() == before {
        return Ok(looked);
    }
    if !looking::sums_explain_nearly(evidence, &looked) {
        let trees = looking::best_quick_trees(&looked);
        asking::each_sum_closely(evidence, &trees, seed)?;
        looked = looking::open_sums(evidence, looked, trees);
    }
    if !looking::sums_explain_nearly(evidence, &looked) {
        looked = looking::usual_sums(&Starts { evidence, outline }, looked);
    }
    if looked[0].is_nearly_explained(evidence) {
        looked = looking::best_regrouped(evidence, looked);
    }
    Ok(looked)
}

/// Asks where models that explain nearly everything fail or disagree, and then looks at them anew, as long as
/// none explains everything, more may be tried, and each time leaves less unexplained than the one before.
fn disputes(
    evidence: &mut Evidence,
    mut looked: Vec<Looked>,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Vec<Looked>, DeviceError> {
    let mut before = usize::MAX;
    for time in 0..DISPUTES {
        let models: Vec<&Fitted> = looked.iter().map(|looked| &looked.fitted).collect();
        let seed = seed.wrapping_add(TIME * time);
        if looked[0].is_explained() || evidence.work().is_spent() || !disputed::ask(evidence, &models, seed)?
        {
            break;
        }
        looked = looking::recounted(evidence, looked);
        let left = looked[0].fitted.contradicted;
        if left >= before {
            break;
        }
        before = left;
        say(progress, evidence, "search for rules, after asking what is disputed", &looked[0].fitted);
        looked = looking::anew(evidence, looked);
    }
    Ok(looked)
}
