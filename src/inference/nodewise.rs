//! Rules found node by node, from the root down.
//!
//! Where every sum of a tree works in a way of its own, turning one knob of one rule explains hardly
//! any answer more: several rules are wrong about each. But the answer to a question with few summands
//! depends on few sums: those in which values meet, and those above them. So the root's rule is found
//! from questions whose values meet there alone; then, one at a time, the rule of each sum below, where
//! only that one is unknown. Each is first held against the rules that are known already: machines repeat
//! themselves.

pub mod descent;
mod merging;
mod one_sum;
mod small;

use std::collections::HashSet;
use std::ops::Range;

use mmaprobe_model::tree::{Added, Model, Node, NodeId, Normalised, Rule, RuleId};
use mmaprobe_probes::Summand;
use mmaprobe_probes::sums::Sum;
use rayon::prelude::*;

use super::depth::{self, Depths};
use super::evidence::{Answered, Class, Evidence};
use super::fit::{self, Fitted, Turn};
use super::knobs::Scope;
use super::remembered;
use super::search::Search;
use merging::{merged, with_shared_rules};
use one_sum::{OneSum, SUMMANDS};

/// Of the answers about a sum, the part that a rule may leave unexplained, one of so many: what passes a
/// sum below, whose rule is not known yet, may not come out unchanged.
const TOLERATED: usize = 3;

/// The same in a quick look.
const TOLERATED_QUICKLY: usize = 10;

/// For each node of a model's tree, the products and c that are in it.
fn summands_below(model: &Model) -> Vec<Vec<Summand>> {
    let nodes = &model.tree.nodes;
    let mut below: Vec<Vec<Summand>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let here = match node {
            Node::Product(k) => vec![Summand::Product(*k)],
            Node::Accumulator => vec![Summand::C],
            Node::Zero => Vec::new(),
            Node::Scaled { .. } | Node::Sum { .. } => {
                node.children().iter().flat_map(|&child| below[child].iter().copied()).collect()
            }
        };
        below.push(here);
    }
    below
}

/// A sum in which values meet.
pub struct Meeting {
    /// The children of its node in which there are products or c, with their places.
    pub children: Vec<(usize, NodeId)>,
    /// What is in each of these.
    pub sum: Sum,
    /// The rule that it follows.
    pub rule: RuleId,
    /// How many summands it has, zeros among them.
    pub number: usize,
}

/// The sums of a model's tree in which values meet.
pub fn meetings(model: &Model) -> Vec<Meeting> {
    let below = summands_below(model);
    let meeting = |node: &Node| {
        let Node::Sum { children, rule } = node else { return None };
        let number = children.len();
        let children = children.iter().copied().enumerate();
        let children: Vec<_> = children.filter(|(_, child)| !below[*child].is_empty()).collect();
        let sum = children.iter().map(|(_, child)| below[*child].clone()).collect();
        Some(Meeting { children, sum, rule: *rule, number })
    };
    model.tree.nodes.iter().filter_map(meeting).filter(|meeting| meeting.children.len() > 1).collect()
}

/// The same sums, to ask about each.
pub fn sums(model: &Model) -> Vec<Sum> {
    meetings(model).into_iter().map(|meeting| meeting.sum).collect()
}

/// Answers that models may be held against for one sum and one class of answers; as many again where few are left
/// unexplained.
const EACH: u64 = 20_000_000;
/// And in a quick look.
const EACH_QUICKLY: u64 = 6_000_000;
/// And in a race.
const EACH_IN_A_RACE: u64 = 2_000_000;
/// And at a glance, which so many answers get.
const EACH_AT_A_GLANCE: u64 = 200_000;
const AT_A_GLANCE: usize = 1500;
/// Where a glance leaves more than one of so many answers of a class, and of those before it, unexplained, it ends with these.
const GLANCED: usize = 1000;
/// And for all sums of a tree that is looked at closely.
const EVERY: u64 = 250_000_000;
/// Models that explain about as much as the best are taken along to the next sum: one of so many answers more may
/// contradict them.
const ABOUT: usize = 8;
/// When these are spent and more than one of so many answers about the sum is unexplained, the tree is given up:
/// it is wrong, or nothing below can be found either.
const HOPELESS: usize = 100;

/// What sums make of small results is decided anew where no more than one of so many plain answers is unexplained.
const NEARLY: usize = 200;

/// Few answers about a sum are unexplained: one of so many.
const FEW: usize = 50;

/// Where so few are that single turns lead on, though much has been spent.
const LED_ON: usize = 8;

/// What the rules are that a search starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Guesses.
    Guessed,
    /// Known from a search before, and mostly right.
    Known,
}

/// How much may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Least: whether few rules explain plain answers.
    Glance,
    /// As little as shows which of many trees may be right: it ends where the rule of one sum leaves any plain answer about it
    /// unexplained.
    Race,
    /// Little: what is wrong about the tree mostly shows in its last sums.
    Quick,
    /// As much for each sum of any tree.
    Usual,
    /// More for each sum where there are few.
    Close,
}

impl Effort {
    /// Answers that models may be held against for each of so many sums and one class of answers.
    fn each(self, sums: usize) -> u64 {
        match self {
            Effort::Glance => EACH_AT_A_GLANCE,
            Effort::Race => EACH_IN_A_RACE,
            Effort::Quick => EACH_QUICKLY,
            Effort::Usual => EACH,
            Effort::Close => EACH.max(EVERY / sums.max(1) as u64),
        }
    }

    /// Whether a close look at so many sums is closer than the usual one.
    pub fn is_closer(sums: usize) -> bool {
        Effort::Close.each(sums) > Effort::Usual.each(sums)
    }
}

/// Answers, and for each how deep the sums are that it depends on.
struct ByDepth<'e>(Vec<(&'e Answered, usize)>);

impl<'e> ByDepth<'e> {
    /// These answers, with how deep the sums are that each depends on, in a model whose sums follow rules in this order.
    fn new(evidence: &Evidence, (model, order): (&Model, &[RuleId]), answers: Vec<&'e Answered>) -> Self {
        let depths = Depths::new(model, order, depth::unchanged(evidence));
        ByDepth::by(answers, |answered| depths.of(evidence.signature(), answered))
    }

    /// The same, were there no signs of zeros.
    fn but_for_signs(
        evidence: &Evidence,
        (model, order): (&Model, &[RuleId]),
        answers: Vec<&'e Answered>,
    ) -> Self {
        let depths = Depths::new(model, order, depth::unchanged(evidence));
        ByDepth::by(answers, |answered| depths.but_for_signs(evidence.signature(), &answered.question))
    }

    fn by(answers: Vec<&'e Answered>, depth_of: impl Fn(&Answered) -> usize + Sync) -> Self {
        ByDepth(answers.into_par_iter().map(|answered| (answered, depth_of(answered))).collect())
    }

    /// Those of these classes that depend on no deeper sum, with so many summands at most.
    fn answers(&self, class: Class, depth: usize, summands: usize) -> Vec<&'e Answered> {
        let is_of =
            |answered: &Answered, at| answered.class <= class && at <= depth && answered.summands <= summands;
        self.0.iter().filter(|(answered, at)| is_of(answered, *at)).map(|(answered, _)| *answered).collect()
    }

    /// All of these classes, also those that may depend on any sum.
    fn all(&self, class: Class) -> Vec<&'e Answered> {
        self.answers(class, usize::MAX, usize::MAX)
    }
}

/// Answers that the rules of some sums leave unexplained.
#[derive(Default)]
struct Left(HashSet<*const Answered>);

impl Left {
    /// Adds those of these answers that no model of a beam explains, if they are few.
    fn extend(&mut self, beam: &[Fitted], about: &[&Answered]) {
        if !is_few(&beam[0], about.len()) {
            return;
        }
        let mut unexplained = about.to_vec();
        for fitted in beam {
            let explained = fit::all_explained(&fitted.model, &unexplained);
            let mut explained = explained.expect("a fitted model can be executed").into_iter();
            unexplained.retain(|_| explained.next() == Some(false));
        }
        self.0.extend(unexplained.into_iter().map(std::ptr::from_ref));
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The answers without these.
    fn out_of<'e>(&self, mut answers: Vec<&'e Answered>) -> Vec<&'e Answered> {
        answers.retain(|answered| !self.0.contains(&std::ptr::from_ref::<Answered>(answered)));
        answers
    }
}

/// Finds a rule for each sum of a tree; the rules that it comes with are where the search starts. Deterministic for any
/// number of threads.
pub fn fit(evidence: &Evidence, start: &Model, rules: Start, effort: Effort) -> Fitted {
    fit_in_order(evidence, individual(start), rules, effort, None)
}

/// What rules that were found for some sums leave unexplained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexplained {
    /// Answers that contradict them, also those about the sums above.
    pub contradicted: usize,
    /// Answers that are about these sums.
    pub about: usize,
}

/// A model with rules that are found, quickly, for the first sums in an order, which begins with the last sum, each before
/// those in it, and what the rules of those of these places leave unexplained of plain answers. Each sum has a rule of its
/// own.
pub fn fit_first(
    evidence: &Evidence,
    model: Model,
    order: Vec<RuleId>,
    places: Range<usize>,
) -> (Model, Unexplained) {
    let Fitted { model, .. } =
        fit_in_order(evidence, (model, order.clone()), Start::Known, Effort::Quick, Some(places.end));
    let plain = evidence.answers.iter().filter(|answered| answered.class == Class::Plain).collect();
    let ByDepth(mut at) = ByDepth::new(evidence, (&model, &order), plain);
    at.retain(|(_, at)| *at < places.end);
    let contradicted = fit::contradicted(&model, at.iter().map(|(answered, _)| *answered), usize::MAX);
    let about = at.iter().filter(|(_, at)| places.contains(at)).count();
    (model, Unexplained { contradicted, about })
}

/// A model with a rule for each sum, of which all but the root's hand on what they add as it is, not normalised.
pub fn opened(model: &Model) -> Model {
    let (mut opened, order) = individual(model);
    for &rule in order.iter().skip(1) {
        let exact = Added::Exact;
        let normalised = Normalised::No { exponent: None };
        opened.tree.rules[rule] = Rule { added: exact, normalised, ..opened.tree.rules[rule].clone() };
    }
    opened
}

/// The same, for rules that sums share: those of a model, of which the root's is no other sum's.
pub fn fit_shared(evidence: &Evidence, start: Model, rules: Start, effort: Effort) -> Fitted {
    let mut order: Vec<RuleId> = Vec::new();
    for rule in by_level(&start) {
        if !order.contains(&rule) {
            order.push(rule);
        }
    }
    fit_in_order(evidence, (start, order), rules, effort, None)
}

/// A model in which the rule of one sum is found, from what is known of it; single turns of others may go with it. Each sum has a
/// rule of its own. Deterministic for any number of threads.
pub fn fit_one(evidence: &Evidence, start: Model, rule: RuleId) -> Fitted {
    let order = by_level(&start);
    let place = order.iter().position(|&other| other == rule).expect("a sum follows it");
    let by_depth = ByDepth::new(evidence, (&start, &order), evidence.answers.iter().collect());
    let mut search = Search::narrow(evidence, EACH);
    let and_from = if place == 0 { start.tree.rules.len() } else { usize::MAX };
    search.scope = Scope::One { rule, and_from };
    let mut beam = vec![Fitted { model: start, contradicted: usize::MAX }];
    for class in Class::ALL {
        let about = by_depth.answers(class, place, usize::MAX);
        search.budget = evidence.budget(EACH);
        beam = search.scored(beam, &about);
        if beam[0].contradicted > 0 {
            let by_summands = SUMMANDS.map(|summands| by_depth.answers(class, place, summands));
            let sum = OneSum {
                class,
                rule,
                is_root: place == 0,
                leaves_any: false,
                is_alone: false,
                by_summands,
                about,
            };
            beam = sum.ruled(evidence, &mut search, beam, EACH, TOLERATED);
        }
        retain_best(&mut beam);
    }
    // What explains about as much of one sum may explain less of all.
    let found = beam.into_iter().map(|fitted| fit::scored(evidence, fitted.model));
    let best = found.min_by_key(|fitted| fitted.contradicted).expect("one is left");
    fit::settle_nans(evidence, best)
}

/// Finds these rules of a model, one after the other, or so many of the first, from plain answers alone, and all stay
/// where they are.
fn fit_in_order(
    evidence: &Evidence,
    (model, order): (Model, Vec<RuleId>),
    rules: Start,
    effort: Effort,
    first: Option<usize>,
) -> Fitted {
    let all: Vec<&Answered> = evidence.answers.iter().collect();
    let answers = if effort == Effort::Glance { fit::thinned(&all, AT_A_GLANCE) } else { all };
    let by_depth = ByDepth::new(evidence, (&model, &order), answers);
    let own_rules = model.tree.rules.len();
    let each_has_its_own = individual(&model).1.len() == own_rules;
    let each = effort.each(order.len());
    let mut search = Search::narrow(evidence, each);
    let mut is_hopeless = false;
    let mut has_lengthened = false;
    let mut beam = vec![Fitted { model, contradicted: usize::MAX }];
    let mut shared: Option<Fitted> = None;
    for class in Class::ALL {
        if class == Class::Zero && rules == Start::Guessed && effort != Effort::Glance {
            // What is too large or too small for some sum shows with rules that are shared.
            let plain = by_depth.answers(Class::Plain, order.len(), usize::MAX);
            beam = search.scored(beam, &plain);
            if beam[0].contradicted * MOSTLY <= plain.len() {
                let fewer = merged(&plain, &beam[0].model);
                let found = with_shared_rules(evidence, fewer);
                if found.contradicted == 0 {
                    return found;
                }
                shared = Some(found);
            }
        }
        let all = by_depth.all(class);
        beam = search.scored(beam, &all);
        if each_has_its_own && class > Class::Plain && !is_hopeless && is_few(&beam[0], all.len()) {
            // Turns of one rule at a time lead astray where exponents outlive what cancels.
            beam.push(remembered::handed_on(beam[0].clone(), &all, &evidence.budget(each)));
            beam = search.scored(beam, &all);
        }
        if beam[0].contradicted == 0 && first.is_some() {
            return beam.swap_remove(0);
        }
        if beam[0].contradicted == 0 {
            beam.retain(|fitted| fitted.contradicted == 0);
            continue;
        }
        retain_best(&mut beam);
        if is_hopeless {
            break;
        }
        // What explains more about each sum may explain less in all.
        let before = beam[0].clone();
        // What no rule of a sum above explains is not what the next is looked for.
        let mut left = Left::default();
        // Whether a sum above has left something unexplained.
        let mut leaves_any = false;
        for (depth, &rule) in order.iter().enumerate().take(first.unwrap_or(usize::MAX)) {
            search.budget = evidence.budget(each);
            let about = left.out_of(by_depth.answers(class, depth, usize::MAX));
            beam = search.scored(beam, &about);
            if class == Class::Plain && beam[0].contradicted > 0 {
                beam = search.scored(with_known_rules(beam, &order[..depth], rule), &about);
                beam.truncate(PLATEAU);
            }
            if beam[0].contradicted == 0 {
                beam.retain(|fitted| fitted.contradicted == 0);
                continue;
            }
            // What simpler answers left unexplained, these do not explain.
            let of_class = about.iter().copied().filter(|answered| answered.class == class);
            if class > Class::Plain && fit::contradicted(&beam[0].model, of_class, 1) == 0 {
                continue;
            }
            search.scope = Scope::One { rule, and_from: if depth == 0 { own_rules } else { usize::MAX } };
            let by_summands = SUMMANDS.map(|summands| left.out_of(by_depth.answers(class, depth, summands)));
            let sum =
                OneSum { class, rule, is_root: depth == 0, leaves_any, is_alone: false, by_summands, about };
            let is_quick = matches!(effort, Effort::Glance | Effort::Race | Effort::Quick);
            let tolerated = if is_quick { TOLERATED_QUICKLY } else { TOLERATED };
            let about = &sum.about;
            let is_far = |beam: &[Fitted], part: usize| beam[0].contradicted * part > about.len();
            // All others depend on the last sum's rule, which few answers are about.
            let is_whole = each_has_its_own && first.is_none();
            let is_last = is_whole && sum.is_root && class == Class::Plain && effort == Effort::Quick;
            let unruled = is_last.then(|| beam.clone());
            beam = sum.ruled(evidence, &mut search, beam, each, tolerated);
            // What explains everything of the sums above is hardly wrong about the tree.
            let is_promising = depth > 0 && !leaves_any && class == Class::Plain && !is_far(&beam, LED_ON);
            if effort == Effort::Quick && is_promising && !has_lengthened && is_far(&beam, HOPELESS) {
                has_lengthened = true;
                beam = sum.ruled(evidence, &mut search, beam, EACH, tolerated);
            }
            if let Some(unruled) = unruled
                && beam[0].contradicted > 0
                && search.budget.is_spent()
                && !is_far(&beam, HOPELESS)
            {
                beam.extend(sum.ruled(evidence, &mut search, unruled, EACH, tolerated));
                beam = search.scored(beam, about);
                retain_best(&mut beam);
            }
            let is_lost = effort == Effort::Race && beam[0].contradicted > 0;
            if class == Class::Plain && (is_lost || is_far(&beam, tolerated)) {
                return fit::scored(evidence, beam.swap_remove(0).model);
            }
            left.extend(&beam, about);
            leaves_any = beam[0].contradicted > 0 || !left.is_empty();
            let has_tried = search.budget.is_spent() || is_quick;
            is_hopeless = has_tried && is_far(&beam, HOPELESS);
            if is_hopeless {
                break;
            }
        }
        if first.is_some() {
            return beam.swap_remove(0);
        }
        search.scope = Scope::All;
        beam.push(before);
        // Some depend on all sums.
        beam = search.scored(beam, &all);
        if effort == Effort::Glance && beam[0].contradicted * GLANCED > all.len() {
            return fit::scored(evidence, beam.swap_remove(0).model);
        }
        if beam[0].contradicted > 0 && !is_hopeless {
            let (best, budget) = (beam[0].clone(), evidence.budget(each));
            let turns = if class < Class::Subnormal { &[Turn::Once] } else { Turn::ABOUT_SMALL_RESULTS };
            beam.push(fit::improve_on(evidence, best, &all, class, turns, &budget));
            beam = search.scored(beam, &all);
        }
        if class == Class::Subnormal && each_has_its_own && beam[0].contradicted > 0 && !is_hopeless {
            let plain = by_depth.all(Class::Plain);
            let few = plain.len() / NEARLY;
            if fit::contradicted(&beam[0].model, plain.into_iter(), few + 1) <= few {
                beam.extend(small::decided_anew(evidence, &beam[0].model, &all, each));
                beam = search.scored(beam, &all);
            }
        }
        if is_few(&beam[0], all.len()) {
            let before = beam[0].contradicted;
            let shows_exponents = [Class::Zero, Class::Subnormal].contains(&class) && !is_hopeless;
            let (best, rules) = (beam[0].clone(), (class, &order[..]));
            beam.extend(match (shows_exponents, each_has_its_own) {
                (true, true) => Some(remembered::improve(evidence, best, rules, &all, each)),
                (true, false) => Some(remembered::near_zero(evidence, best, rules, &all, each)),
                (false, true) => Some(remembered::handed_on(best, &all, &evidence.budget(each))),
                (false, false) => None,
            });
            beam = search.scored(beam, &all);
            is_hopeless &= beam[0].contradicted == before;
        }
        if beam[0].contradicted == 0 {
            beam.retain(|fitted| fitted.contradicted == 0);
        }
    }
    let found = fit::scored(evidence, beam.swap_remove(0).model);
    let found = fit::settle_nans(evidence, found);
    let found = match shared {
        Some(shared) if found.contradicted > 0 && shared.contradicted <= found.contradicted => shared,
        _ => found,
    };
    let all: Vec<&Answered> = evidence.answers.iter().collect();
    // Rules that sums share would no longer be shared.
    let leads_on = each_has_its_own && is_few(&found, all.len());
    let found = if leads_on { with_exponents(evidence, found, &all, each) } else { found };
    match found.contradicted {
        0 => Fitted { model: merged(&all, &found.model), ..found },
        _ => found,
    }
}

/// A model with a rule for each sum that explains more, because of exponents that are handed on; or the same model.
fn with_exponents(evidence: &Evidence, found: Fitted, answers: &[&Answered], each: u64) -> Fitted {
    let (model, order) = individual(&found.model);
    let start = Fitted { model, contradicted: found.contradicted };
    let better = remembered::improve(evidence, start, (Class::Nan, &order), answers, each);
    if better.contradicted < found.contradicted { better } else { found }
}

/// Whether something is unexplained, but little of so many answers.
fn is_few(fitted: &Fitted, answers: usize) -> bool {
    (1..=answers / FEW).contains(&fitted.contradicted)
}

/// Models that explain everything so far and are taken along.
const PLATEAU: usize = 12;

/// Leaves out what explains less than the best, but for a few answers. It may be simpler, and would come first where
/// only answers are looked at that do not show it.
fn retain_best(beam: &mut Vec<Fitted>) {
    let least = beam[0].contradicted;
    beam.retain(|fitted| fitted.contradicted <= least + least / ABOUT + 1);
}

/// The model with a rule for each sum, and these rules, the root's first, and each before those of the
/// sums in it.
pub fn individual(model: &Model) -> (Model, Vec<RuleId>) {
    let mut model = model.clone();
    let rules = std::mem::take(&mut model.tree.rules);
    for node in model.tree.nodes.iter_mut() {
        if let Node::Sum { rule, .. } = node {
            model.tree.rules.push(rules[*rule].clone());
            *rule = model.tree.rules.len() - 1;
        }
    }
    let order = by_level(&model);
    (model, order)
}

/// The rules of all sums of a model, the root's first, and each before those of the sums in it.
fn by_level(model: &Model) -> Vec<RuleId> {
    let nodes = &model.tree.nodes;
    let mut levels = vec![0usize; nodes.len()];
    for (id, node) in nodes.iter().enumerate().rev() {
        for &child in node.children() {
            levels[child] = levels[id] + 1;
        }
    }
    // A stable sort, from the last sum, which is the root.
    let sums = nodes.iter().zip(levels).rev();
    let mut order: Vec<(usize, RuleId)> = sums
        .filter_map(|(node, level)| match node {
            Node::Sum { rule, .. } => Some((level, *rule)),
            _ => None,
        })
        .collect();
    order.sort_by_key(|&(level, _)| level);
    order.into_iter().map(|(_, rule)| rule).collect()
}

/// The models, and the same with rules that are known for the next one.
fn with_known_rules(beam: Vec<Fitted>, known: &[RuleId], next: RuleId) -> Vec<Fitted> {
    let mut all = beam.clone();
    for fitted in beam {
        for &rule in known {
            let mut model = fitted.model.clone();
            model.tree.rules[next] = model.tree.rules[rule].clone();
            if !all.iter().any(|other| other.model == model) {
                all.push(Fitted { model, contradicted: usize::MAX });
            }
        }
    }
    all
}

/// Where no more than one of so many plain answers is unexplained, the rules found are mostly right.
const MOSTLY: usize = 50;

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32};
    use mmaprobe_model::tree::Fused;

    use super::*;
    use crate::device::Device;
    use crate::inference::alike::{self, Sharing};
    use crate::inference::testing;

    /// Pairs of products that are added to c one after the other; each pair is truncated, and each other sum rounded to fp32.
    fn chained_pairs(pairs: [[usize; 2]; 3]) -> Model {
        let mut model = Model::chain_of_fma(FP16, FP32, 6);
        let last = model.tree.rules[0].clone();
        let added = Added::Fused(Fused::uniform(7, Rounding::TowardZero));
        let normalised = Normalised::No { exponent: None };
        model.tree.rules.extend([Rule { added, normalised, ..last.clone() }, last]);
        let mut nodes = vec![Node::Accumulator];
        for (at, [one, other]) in pairs.into_iter().enumerate() {
            let before = nodes.len() - 1;
            nodes.extend([Node::Product(one), Node::Product(other)]);
            nodes.push(Node::Sum { children: vec![before + 1, before + 2], rule: 1 });
            let rule = if at + 1 < pairs.len() { 2 } else { 0 };
            nodes.push(Node::Sum { children: vec![before, before + 3], rule });
        }
        model.tree.nodes = nodes.into();
        model
    }

    #[test]
    fn a_race_ends_early_in_trees_that_are_wrong() {
        let truth = chained_pairs([[0, 1], [2, 3], [4, 5]]);
        assert_eq!(truth.check(), Ok(()));
        let signature = testing::signature(6);
        let device = testing::device(&signature, truth.clone(), (1, 1));
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        evidence.answers = testing::sparse_answers(&signature, &truth, 4000, 6);
        let raced = |tree: &Model| {
            let start = alike::with_shared_rules(tree, Sharing::ByKind).expect("sums share rules");
            let before = evidence.work().spent();
            let found = fit_shared(&evidence, start, Start::Guessed, Effort::Race);
            (found.contradicted, evidence.work().spent() - before)
        };
        let (left, _) = raced(&truth);
        assert_eq!(left, 0);
        let (left, spent) = raced(&chained_pairs([[0, 3], [2, 5], [4, 1]]));
        assert!(left > 0);
        assert!(spent < 10 * EACH_IN_A_RACE, "{spent}");
    }

    #[test]
    fn open_sums_hand_on_what_they_add_and_the_last_rounds_as_before() {
        let model = Model::chain_of_fma(FP16, FP32, 3);
        let opened = opened(&model);
        assert_eq!(opened.check(), Ok(()));
        assert!(opened.tree.has_the_same_sums(&model.tree));
        let (_, order) = individual(&model);
        let [root, inside @ ..] = &order[..] else { panic!("there are sums") };
        assert_eq!(opened.tree.rules[*root], model.tree.rules[0]);
        assert_eq!(inside.len(), 2);
        for &rule in inside {
            assert_eq!(opened.tree.rules[rule].added, Added::Exact);
            assert_eq!(opened.tree.rules[rule].normalised, Normalised::No { exponent: None });
        }
    }
}
