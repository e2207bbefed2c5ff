//! Looking for rules: quickly in every structure, then sum by sum, then widely.

mod anew;
mod blaming;
mod chaining;
mod hidden;
mod nans;
mod regrouping;
mod sharing;
mod starts;
mod summing;

use std::ops::ControlFlow;

use mmaprobe_model::Model;
use mmaprobe_model::tree::Tree;
use rayon::prelude::*;

use super::budget::Budget;
use super::evidence::{Answered, Class, Evidence, Stage};
use super::fit::{self, Fitted, Turn};
use super::grid::{Kind, Trial};
use super::knobs::{Knob, Scope, Turned};
use super::nodewise::Effort;
use super::search::Search;
use super::structure::{self, Structure};
use super::{Progress, alike, grid, nodewise};
use anew::with_rules_decided_anew;
use blaming::with_blamed_rules_improved;
use hidden::with_hidden_sums;
use nans::explained_by_nans;
pub use regrouping::best_regrouped;
use regrouping::{REGROUPED, best_regrouped_if, explained_by_a_tree, placed, regrouped};
pub use sharing::{is_shared_first, shared, shared_at_once, shared_by_kind};
pub use starts::Starts;
use starts::distinct;
pub use summing::{
    AT_FIRST, AT_LAST, ONE, best_quick_trees, exchanged_sums, few_sums, finer_sums, first_exchanged,
    from_the_start, neighbouring_sums, open_sums, quick_sums, sums_explain_nearly, usual_sums,
};
use summing::{MORE_SUMS, closer_sum_by_sum, other_guesses, until_nearly_explained};

/// A model that was looked at, and what it was started from.
#[derive(Clone, Debug)]
pub struct Looked {
    /// The tree, with rules that are guesses.
    start: Model,
    /// With rules that were found.
    pub fitted: Fitted,
    /// Whether the look was cut short.
    is_cut: bool,
    /// How many answers there were when the rules were found sum by sum, and with what effort, if they were.
    summed: Option<(usize, Effort)>,
}

impl Looked {
    /// A look at a model, within a budget.
    fn at(evidence: &Evidence, start: Model, budget: u64) -> Looked {
        let budget = evidence.budget(budget);
        let fitted = improve_by_stage(evidence, start.clone(), HOPELESS, &budget);
        Looked { fitted, start, is_cut: budget.is_spent(), summed: None }
    }

    /// A look at rules that were found sum by sum.
    fn sum_by_sum(evidence: &Evidence, start: Model, effort: Effort) -> Looked {
        let fitted = nodewise::fit(evidence, &start, nodewise::Start::Guessed, effort);
        Looked::summed(evidence, start, fitted, effort)
    }

    fn summed(evidence: &Evidence, start: Model, fitted: Fitted, effort: Effort) -> Looked {
        Looked { fitted, start, is_cut: false, summed: Some((evidence.answers.len(), effort)) }
    }

    /// A look at rules that were found from the last sum down, in a tree, for plain answers.
    pub fn descended(evidence: &Evidence, start: Model, found: &Model) -> Looked {
        let fitted = nodewise::fit(evidence, found, nodewise::Start::Known, Effort::Quick);
        Looked::summed(evidence, start, fitted, Effort::Quick)
    }

    /// A look at rules that sums share, in a model with such rules over the tree of the start.
    fn sharing(
        evidence: &Evidence,
        start: &Model,
        model: Model,
        rules: nodewise::Start,
        effort: Effort,
    ) -> Looked {
        let fitted = nodewise::fit_shared(evidence, model, rules, effort);
        Looked { start: start.clone(), fitted, is_cut: false, summed: None }
    }

    /// A quick one from other guesses: sums below the last hand on what they add as it is.
    fn from_open_sums(evidence: &Evidence, start: Model) -> Looked {
        let looked = Looked::sum_by_sum(evidence, nodewise::opened(&start), Effort::Quick);
        Looked { start, ..looked }
    }

    /// A look at a model as it is.
    pub fn as_it_is(fitted: Fitted) -> Looked {
        Looked { start: fitted.model.clone(), fitted, is_cut: false, summed: None }
    }

    /// Whether its rules were found sum by sum, with the same answers.
    pub fn is_summed_at_all(&self, evidence: &Evidence) -> bool {
        self.summed.is_some_and(|(answers, _)| answers == evidence.answers.len())
    }

    /// Whether they were with more than little effort.
    fn is_summed(&self, evidence: &Evidence) -> bool {
        self.is_summed_at_all(evidence) && self.summed.is_some_and(|(_, effort)| effort != Effort::Quick)
    }

    /// Whether they were, in a tree that adds the same.
    fn is_summed_in(&self, evidence: &Evidence, start: &Model) -> bool {
        self.is_summed(evidence) && self.start.tree.has_the_same_sums(&start.tree)
    }

    /// Whether they were, with whatever effort, in a tree that adds the same.
    fn is_known(&self, evidence: &Evidence, start: &Model) -> bool {
        self.is_summed_at_all(evidence) && self.start.tree.has_the_same_sums(&start.tree)
    }

    /// Whether its tree adds the same as another's.
    fn has_the_same_sums(&self, other: &Model) -> bool {
        self.fitted.model.tree.has_the_same_sums(&other.tree)
    }

    /// Whether no answer contradicts it.
    pub fn is_explained(&self) -> bool {
        self.fitted.contradicted == 0
    }

    /// Whether it is worth a longer look.
    pub fn is_mostly_explained(&self, evidence: &Evidence) -> bool {
        self.fitted.contradicted * MOSTLY <= evidence.answers.len()
    }

    /// Whether it explains so much that other trees like its own are tried.
    pub fn is_worth_regrouping(&self, evidence: &Evidence) -> bool {
        self.fitted.contradicted * REGROUPED <= evidence.answers.len()
    }

    /// Whether next to nothing is unexplained.
    pub fn is_all_but_explained(&self, evidence: &Evidence) -> bool {
        self.fitted.contradicted * ALL_BUT <= evidence.answers.len()
    }

    /// Whether the tree is right, and nearly all rules are.
    pub fn is_nearly_explained(&self, evidence: &Evidence) -> bool {
        self.fitted.contradicted * NEARLY <= evidence.answers.len()
    }
}

/// One of so many answers contradicts a model whose tree is right.
const NEARLY: usize = 200;
/// One of so many a model about which only more answers say more.
const ALL_BUT: usize = 1000;
/// And one of so many a model that is worth a longer look at once; and how many of those get one.
const MOSTLY: usize = 100;
const AT_ONCE: usize = 2;
/// Answers that models may be held against in a quick look: where the tree is right, few rules are wrong, and these
/// are found at once.
const QUICK: u64 = 2_000_000;
/// And in a long one.
const LONG: u64 = 20_000_000;
/// Looks that are made longer.
const LONGER: usize = 6;
/// Trees whose rules are found sum by sum: with a wrong one, that ends soon.
const EARLY: usize = 8;

/// Answers that contradict a model, if fewer, are explained by more than one thing.
pub const FEW: usize = 10;

/// A first look at a model that explained everything, or more than it does, until more was asked.
pub fn improved(evidence: &Evidence, known: Fitted) -> Fitted {
    let improved = improved_at_last(evidence, known.clone(), LONG);
    if improved.contradicted == 0 {
        return improved;
    }
    // Turns that explain NaNs may contradict numbers.
    let before = Some(&known).filter(|known| known.model != improved.model);
    let mut models = std::iter::once(&improved).chain(before).map(|found| &found.model);
    let by_nans = || models.find_map(|model| explained_by_nans(evidence, model));
    if let Some(explained) = explained_by_a_tree(evidence, &known.model).or_else(by_nans) {
        return explained;
    }
    match with_hidden_sums(evidence, &known) {
        Some(shown) => better_of(evidence, shown, improved),
        None => improved,
    }
}

/// Whether a model has so many rules that a longer look at it takes minutes.
pub fn has_many_rules(fitted: &Fitted) -> bool {
    fitted.model.tree.rules.len() > RULES
}

/// What comes of a first look, or a better model, where that has many rules. Of few rules, all there is to each is turned at
/// once in a longer look.
pub fn with_few_of_many_rules_anew(evidence: &Evidence, improved: Fitted) -> Fitted {
    match improved.contradicted > 0 && has_many_rules(&improved) {
        true => with_rules_decided_anew(evidence, improved),
        false => improved,
    }
}

/// A longer look at such a model, and what the first one made of it.
pub fn known(evidence: &Evidence, known: Fitted, improved: Fitted) -> Fitted {
    let improved = with_few_of_many_rules_anew(evidence, improved);
    if improved.contradicted == 0 {
        return improved;
    }
    let improved = better_of(evidence, improved, placed(evidence, known.clone()));
    if improved.contradicted == 0 {
        return improved;
    }
    // What explains only more of the few answers that contradict a model mostly does so in a wrong way.
    let plain = Stage { class: Class::Plain, ..Stage::LAST };
    let contradicted =
        |model: &Model| fit::contradicted(model, fit::relevant(evidence, plain).into_iter(), usize::MAX);
    // Few enough can be explained in many ways.
    let kinds = if contradicted(&improved.model) < FEW { &Kind::NEARBY[..1] } else { &Kind::NEARBY };
    let found = rule_by_rule(evidence, improved.clone(), plain, kinds);
    let improved = match contradicted(&found.model) {
        // Which may contradict others.
        0 => better_of(evidence, improved, improved_at_last(evidence, found, LONG)),
        _ => improved,
    };
    if improved.contradicted == 0 {
        return improved;
    }
    let improved = with_blamed_rules_improved(evidence, improved);
    if improved.contradicted == 0 {
        return improved;
    }
    let mut improved = with_own_rules_improved(evidence, improved);
    if improved.contradicted == 0 {
        return improved;
    }
    // Rules that are wrong, but explain a few answers more, hide which tree does.
    let before = Some(known).filter(|known| known.model != improved.model);
    for start in std::iter::once(improved.clone()).chain(before) {
        improved = better_of(evidence, improved, regrouped(evidence, start, REGROUPED));
        if improved.contradicted == 0 {
            return improved;
        }
    }
    // What is known of each sum is mostly right.
    let again = nodewise::fit(evidence, &improved.model, nodewise::Start::Known, Effort::Usual);
    better_of(evidence, improved, again)
}

/// The same, or the better model that comes of a rule for each sum: what only few answers kept apart may have got one.
fn with_own_rules_improved(evidence: &Evidence, fitted: Fitted) -> Fitted {
    let (model, rules) = nodewise::individual(&fitted.model);
    if rules.len() == fitted.model.tree.rules.len() {
        return fitted;
    }
    let own = Fitted { model, contradicted: fitted.contradicted };
    let own = fit::improve(evidence, own, Stage::LAST, &evidence.budget(LONG));
    better_of(evidence, fitted, fit::settle_nans(evidence, own))
}

/// Rules of which all there is to one is turned at once, and answers that models may be held against for each.
const RULES: usize = 5;
const EACH_RULE: u64 = 30_000_000;

/// A model that explains most answers of a stage, with all there is to one of its rules turned at once, one rule after
/// the other, in combinations of these kinds. Deterministic for any number of threads.
fn rule_by_rule(evidence: &Evidence, fitted: Fitted, stage: Stage, kinds: &[Kind]) -> Fitted {
    let rules = fitted.model.tree.rules.len();
    if rules > RULES {
        return fitted;
    }
    let answers = fit::relevant(evidence, stage);
    let scored = |model: Model| {
        let contradicted = fit::contradicted(&model, answers.iter().copied(), usize::MAX);
        Fitted { model, contradicted }
    };
    let mut best = scored(fitted.model);
    for rule in 0..rules {
        if best.contradicted == 0 || best.contradicted * REGROUPED > answers.len() {
            break;
        }
        let budget = evidence.budget(EACH_RULE);
        let trial = Trial { rule, scope: Scope::All, answers: &answers, budget: &budget };
        let turns = [Turn::Once, Turn::Jointly];
        let found = grid::improve(evidence, best.clone(), trial, kinds, stage.class, &turns);
        best = found
            .into_iter()
            .fold(best, |best, other| if other.contradicted < best.contradicted { other } else { best });
    }
    fit::settle_nans(evidence, fit::scored(evidence, best.model))
}

/// Structures that get a quick look where sums hardly share rules: from one rule for all nothing is learned then.
const UNSHARED: usize = 2;

/// A quick look at every structure, or at the first ones: those that the fewest answers contradict first, at least one.
pub fn quickly(starts: &Starts) -> Vec<Looked> {
    let evidence = starts.evidence;
    let mut looked: Vec<Looked> = Vec::new();
    let most = if starts.outline.hardly_shares_rules() { UNSHARED } else { usize::MAX };
    // Simpler structures go first; where one explains everything, the others only have to be told from it.
    for (_, model) in starts.structures().take(most) {
        looked.push(Looked::at(evidence, model, QUICK));
        if looked.last().is_some_and(Looked::is_explained) {
            break;
        }
    }
    // A stable sort: simpler structures first among equals.
    looked.sort_by_key(|looked| looked.fitted.contradicted);
    looked
}

/// A longer look at those of them that explain most, where none explains everything, and at trees like the best one's.
/// The best first.
pub fn at_the_best(evidence: &Evidence, mut looked: Vec<Looked>) -> Vec<Looked> {
    // What explains most was not cut short for being wrong.
    let most = looked.iter().take(AT_ONCE).take_while(|looked| looked.is_mostly_explained(evidence)).count();
    if most > 0 {
        lengthened(evidence, &mut looked[..most], most);
        looked = recounted(evidence, looked);
    }
    if looked[0].is_all_but_explained(evidence) {
        // Mostly, nothing but the tree is wrong.
        looked = best_regrouped(evidence, looked);
    }
    if !looked[0].is_explained() {
        looked = single_closer(evidence, looked);
    }
    best_regrouped(evidence, looked)
}

/// A closer look at the best of those with one rule: what that leaves unexplained, other trees may explain, too, each in
/// its own way. The best first.
fn single_closer(evidence: &Evidence, mut looked: Vec<Looked>) -> Vec<Looked> {
    let is_single =
        |looked: &&Looked| looked.fitted.model.tree.rules.len() == 1 && looked.is_worth_regrouping(evidence);
    let Some(single) = looked.iter().find(is_single) else { return looked };
    let plain = Stage { class: Class::Plain, ..Stage::LAST };
    let found = rule_by_rule(evidence, single.fitted.clone(), plain, &Kind::FEW_ANSWERS);
    if found.contradicted < single.fitted.contradicted {
        let found = fit::improve(evidence, found, Stage::LAST, &evidence.budget(LONG));
        looked.push(Looked::as_it_is(fit::settle_nans(evidence, found)));
    }
    recounted(evidence, looked)
}

/// Other structures that no answer contradicts either, with the rules of a model that none does.
pub fn rivals(starts: &Starts, model: &Model) -> Vec<Turned> {
    // A sum of one product that loses nothing says nothing.
    let is_lone = |structure: &Structure| model.k == 1 && *structure == Structure::AccumulatorLate;
    starts
        .structures()
        .filter(|(structure, _)| !is_lone(structure))
        .map(|(structure, other)| Turned {
            knob: Knob { what: "structure of the sums".to_string(), rule: None },
            choice: structure.to_string(),
            model: structure::with_rules_of(other, model),
        })
        .filter(|rival| {
            rival.model != *model && fit::contradicted(&rival.model, starts.evidence.all(), 1) == 0
        })
        .collect()
}

/// A model with more rules than the one that was found, as a rival.
pub fn with_own_rules(model: Model) -> Turned {
    let choice = format!("{} rules, with sums that are added in ways of their own", model.tree.rules.len());
    Turned { knob: Knob { what: "rules of the sums".to_string(), rule: None }, choice, model }
}

/// Trees, the best of all looks, whose rules are found sum by sum.
const CLOSELY: usize = 5;
/// Answers that models may be held against before rules are found sum by sum.
const TWO: u64 = 30_000_000;
/// Models that the wide search starts from.
const SEARCHED: usize = 8;

/// A look at the orders found since, where a quick look was not enough. The best first.
pub fn at_closer(starts: &Starts, mut looked: Vec<Looked>) -> Vec<Looked> {
    let evidence = starts.evidence;
    for (_, model) in starts.closer() {
        if looked.iter().any(|looked| looked.start == model) {
            continue;
        }
        looked.push(Looked::at(evidence, model, QUICK));
        if looked.last().is_some_and(Looked::is_explained) {
            break;
        }
    }
    recounted(evidence, looked)
}

/// Trees in which all sums are made to add alike, and answers that models may be held against for each start.
const ALIKE: usize = 4;
const EACH_ALIKE: u64 = 5_000_000;
/// Where no more than one of so many answers contradicts the best of these, other trees are tried: what errors of each
/// sum add up to in a chain shows in more answers where a few sums are wrong.
const REGROUPED_ALIKE: usize = 5;

/// A look at sums that all add alike, in the regular tree that the first which a closer look shows is most like. The best
/// first.
pub fn regular(starts: &Starts, looked: Vec<Looked>) -> Vec<Looked> {
    all_alike(starts.evidence, looked, starts.regular().into_iter().collect())
}

/// Whether the regular tree that the first which a closer look shows is most like has so many sums that finding rules for
/// each takes long.
pub fn has_many_sums(starts: &Starts) -> bool {
    starts.regular().is_some_and(|start| nodewise::individual(&start).1.len() > MORE_SUMS)
}

/// A look at sums that all add alike, in the tree in which a quick look explained most, in the first that a closer look
/// shows, and in the next best. The best first.
pub fn alike(starts: &Starts, looked: Vec<Looked>) -> Vec<Looked> {
    let evidence = starts.evidence;
    // With rules that are far from right, a tree that is explains no more than others.
    let shown = starts.closer().next().map(|(_, start)| start);
    let of_shown = looked.iter().filter(|looked| Some(&looked.start) == shown.as_ref());
    let mut trees: Vec<&Looked> = Vec::new();
    for other in looked.iter().take(1).chain(of_shown).chain(&looked) {
        if trees.len() < ALIKE
            && !trees.iter().any(|known| known.start.tree.has_the_same_sums(&other.start.tree))
        {
            trees.push(other);
        }
    }
    let fitted = trees.into_iter().map(|looked| looked.fitted.model.clone()).collect();
    let looked = all_alike(evidence, looked, fitted);
    best_regrouped_if(evidence, looked, REGROUPED_ALIKE)
}

/// The same in the trees of these models.
fn all_alike(evidence: &Evidence, mut looked: Vec<Looked>, trees: Vec<Model>) -> Vec<Looked> {
    for model in trees {
        for start in alike::models(evidence, &model) {
            let found = improved_at_last(evidence, fit::scored(evidence, start), EACH_ALIKE);
            looked.push(Looked::as_it_is(found));
            if looked.last().is_some_and(Looked::is_explained) {
                return recounted(evidence, looked);
            }
        }
    }
    recounted(evidence, looked)
}

/// A model improved on all plain answers, which show most about how summands are aligned, and then on all, within a
/// budget.
fn improved_at_last(evidence: &Evidence, start: Fitted, budget: u64) -> Fitted {
    let budget = evidence.budget(budget);
    let plain = Stage { class: Class::Plain, ..Stage::LAST };
    let stages = [plain, Stage::LAST].into_iter();
    let found = stages.fold(start, |found, stage| fit::improve(evidence, found, stage, &budget));
    fit::settle_nans(evidence, found)
}

/// Rules found sum by sum in the trees that masks show, in the regular one that is most like what a closer look shows, in
/// that, and in those in which a quick look explained most; then longer looks where quick ones were cut short. The best first.
pub fn longer(starts: &Starts, looked: Vec<Looked>) -> Vec<Looked> {
    let evidence = starts.evidence;
    let best = looked.iter().map(|looked| looked.start.clone());
    let shown =
        starts.exchanged().take(1).chain(starts.shown(0)).chain(starts.regular()).chain(starts.shown(1));
    let chosen = shown.chain(best);
    let chosen = distinct(chosen, EARLY);
    if looked[0].is_nearly_explained(evidence) {
        return looked;
    }
    let is_new = |start: &Model| !looked.iter().any(|looked| looked.is_summed_in(evidence, start));
    let chosen: Vec<Model> = chosen.into_iter().filter(is_new).collect();
    let looked = until_nearly_explained(evidence, looked, chosen, Effort::Usual);
    if looked[0].is_nearly_explained(evidence) {
        return looked;
    }
    let looked = other_guesses(starts, looked);
    if looked[0].is_nearly_explained(evidence) {
        return looked;
    }
    let mut looked = closer_sum_by_sum(evidence, looked);
    if looked[0].is_nearly_explained(evidence) {
        return looked;
    }
    lengthened(evidence, &mut looked, LONGER);
    recounted(evidence, looked)
}

/// These models with what contradicts each of all that has been asked, the best first.
pub fn scored(evidence: &Evidence, models: Vec<Fitted>) -> Vec<Fitted> {
    let mut models: Vec<Fitted> =
        models.into_iter().map(|fitted| fit::scored(evidence, fitted.model)).collect();
    // A stable sort: the first among equals.
    models.sort_by_key(|fitted| fitted.contradicted);
    models
}

/// Makes so many of the looks that were cut short longer, until one explains everything.
fn lengthened(evidence: &Evidence, looked: &mut [Looked], most: usize) {
    for cut in looked.iter_mut().filter(|looked| looked.is_cut).take(most) {
        let Looked { fitted, .. } = Looked::at(evidence, cut.start.clone(), LONG);
        cut.fitted = better_of(evidence, cut.fitted.clone(), fitted);
        cut.is_cut = false;
        if cut.is_explained() {
            break;
        }
    }
}

/// The same, with what contradicts each of all that has been asked since; the best first.
pub fn recounted(evidence: &Evidence, mut looked: Vec<Looked>) -> Vec<Looked> {
    for Looked { fitted, .. } in &mut looked {
        fitted.contradicted = fit::contradicted(&fitted.model, evidence.answers.iter(), usize::MAX);
    }
    // A stable sort: simpler structures first among equals.
    looked.sort_by_key(|looked| looked.fitted.contradicted);
    looked
}

/// Of two models, the one that fewer answers contradict; the first among equals.
fn better_of(evidence: &Evidence, first: Fitted, second: Fitted) -> Fitted {
    let [first, second] = [first, second].map(|fitted| fit::scored(evidence, fitted.model));
    if second.contradicted < first.contradicted { second } else { first }
}

/// Models that are looked at anew, and answers that models may be held against for each.
const ANEW: usize = 4;
const EACH_ANEW: u64 = 5_000_000;

/// A new look at the best since more was asked, [counted again](recounted): from where they are, and where they started. The
/// best first.
pub fn anew(evidence: &Evidence, mut looked: Vec<Looked>) -> Vec<Looked> {
    for Looked { start, fitted, .. } in looked.iter_mut().take(ANEW) {
        let improved = fit::improve(evidence, fitted.clone(), Stage::LAST, &evidence.budget(EACH_ANEW));
        let again = &evidence.budget(EACH_ANEW);
        let restarted = improve_by_stage(evidence, start.clone(), DISPUTED, again);
        for better in [fit::settle_nans(evidence, improved), restarted] {
            *fitted = better_of(evidence, fitted.clone(), better);
        }
        if fitted.contradicted == 0 {
            break;
        }
    }
    recounted(evidence, looked)
}

/// A close look where nothing else was enough: two knobs at a time; rules found sum by sum; then other starts, and a wide search
/// from the best of all. The best model.
pub fn closely(starts: &Starts, mut looked: Vec<Looked>, progress: &dyn Progress) -> Fitted {
    let evidence = starts.evidence;
    if looked[0].is_explained() {
        return looked.swap_remove(0).fitted;
    }
    progress.step("search for rules, two at a time", None);
    let simple: Vec<Model> = looked.iter().take(1).map(|looked| looked.fitted.model.clone()).collect();
    let masked = starts.structures().take(1).map(|(_, start)| start);
    let found = Search::within(evidence, TWO).run(masked.chain(simple).collect()).swap_remove(0);
    if found.contradicted == 0 {
        return fit::settle_nans(evidence, found);
    }
    progress.step("search for rules, sum by sum", None);
    // Not where that was done already, with the same answers.
    let summed = looked.iter().filter(|looked| looked.is_summed(evidence));
    let mut trees: Vec<Tree> = summed.map(|looked| looked.start.tree.clone()).collect();
    let most = trees.len() + CLOSELY;
    let mut found: Vec<Fitted> = Vec::new();
    for start in starts.shown(2).chain(looked.iter().map(|looked| looked.start.clone())) {
        if trees.len() == most || trees.iter().any(|tree| tree.has_the_same_sums(&start.tree)) {
            continue;
        }
        trees.push(start.tree.clone());
        let Looked { fitted, .. } = Looked::sum_by_sum(evidence, start, Effort::Usual);
        if fitted.contradicted == 0 {
            return fitted;
        }
        found.push(fitted);
    }
    progress.step("search for rules, widely", None);
    found.extend(looked.into_iter().map(|looked| looked.fitted));
    found.extend(further(starts));
    found.sort_by_key(|fitted| fitted.contradicted);
    found.truncate(SEARCHED);
    let mut found = Search::new(evidence).run(found.into_iter().map(|fitted| fitted.model).collect());
    fit::settle_nans(evidence, found.swap_remove(0))
}

/// The best of the other starts, by what a glimpse of plain answers with few summands makes of them.
fn further(starts: &Starts) -> Vec<Fitted> {
    let evidence = starts.evidence;
    let plain = |summands| Stage { class: Class::Plain, summands };
    let answers: Vec<&Answered> =
        evidence.answers.iter().filter(|answered| plain(usize::MAX).has(answered)).collect();
    let mut glimpsed: Vec<Fitted> = starts
        .others()
        .into_par_iter()
        .map(|model| {
            let start = Fitted { model, contradicted: usize::MAX };
            // Part of no larger budget: how much of that is spent when this is tried depends on the threads.
            let budget = Budget::of(QUICK);
            let fitted = [1, 2, 3]
                .iter()
                .fold(start, |found, &most| fit::improve(evidence, found, plain(most), &budget));
            let contradicted = fit::contradicted(&fitted.model, answers.iter().copied(), usize::MAX);
            Fitted { contradicted, ..fitted }
        })
        .collect();
    glimpsed.sort_by_key(|fitted| fitted.contradicted);
    glimpsed.truncate(SEARCHED);
    glimpsed
        .into_iter()
        .map(|fitted| improve_by_stage(evidence, fitted.model, HOPELESS, &evidence.budget(QUICK)))
        .collect()
}

/// Settles one stage of answers after the other; gives up where one of so many plain answers remains unexplained,
/// as with a wrong order of summation.
fn improve_by_stage(evidence: &Evidence, start: Model, hopeless: usize, budget: &Budget) -> Fitted {
    let mut fitted = Fitted { model: start, contradicted: usize::MAX };
    for stage in Stage::all() {
        let tolerated = |answers: usize| match stage.class {
            Class::Plain => TOLERATED + answers / hopeless,
            _ => answers,
        };
        match fit::improve_within(evidence, fitted, stage, budget, tolerated) {
            ControlFlow::Continue(improved) => fitted = improved,
            ControlFlow::Break(hopeless) => {
                fitted = hopeless;
                break;
            }
        }
    }
    fit::settle_nans(evidence, fit::scored(evidence, fitted.model))
}

/// Of plain answers, the part that may be unexplained, one of so many; where many were asked because models fail
/// there; and so many more, where there are few.
const HOPELESS: usize = 30;
const DISPUTED: usize = 10;
const TOLERATED: usize = 20;
