//! Rules found sum by sum, from the last sum down, where more is asked about each before those in it are looked at.
//!
//! Where all rules are different, what is asked about all sums at once says too little about each: a rule that explains it may
//! be a wrong one, and everything about the sums below is then explained in wrong ways, too. So the loop is closed for each
//! sum alone: what tells its rule from others that explain as much is looked for among questions about that sum, and
//! asked, until nothing does. Where no rule explains what is asked then, one above is wrong in what shows only here.

mod telling;

use std::collections::HashSet;

use mmaprobe_model::Model;
use mmaprobe_model::tree::{Added, Node, Normalised, RuleId};
use mmaprobe_probes::{DotAdd, Probe};

use super::one_sum::{OneSum, SUMMANDS};
use super::{
    ByDepth, EACH_IN_A_RACE, EACH_QUICKLY, PLATEAU, TOLERATED_QUICKLY, individual, retain_best,
    with_known_rules,
};
use crate::device::DeviceError;
use crate::inference::Progress;
use crate::inference::evidence::{Answered, Class, Evidence};
use crate::inference::fit::{self, Fitted};
use crate::inference::knobs::Scope;
use crate::inference::search::Search;

/// The answers that are explained: that something is lost altogether shows in zeros.
const CLASS: Class = Class::Zero;

/// Times that a rule is looked for, and more is asked about it, at most.
const TIMES: u64 = 5;
/// Rules above that may be wrong in what shows only here.
const ABOVE: usize = 2;

/// A model with a rule for each sum of this one's tree, found from the last sum down from answers that are [plain](Class::Plain)
/// or zero; more is asked about each. `None` where the rule of a sum leaves too much about it unexplained: the tree is wrong.
/// Deterministic for any number of threads.
///
/// # Errors
/// If the device fails.
pub fn descend(
    evidence: &mut Evidence,
    start: &Model,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Option<Fitted>, DeviceError> {
    let mut descent = Descent::of(start);
    progress.step("search for rules, from the last sum down", Some(descent.order.len() as u64));
    for place in 0..descent.order.len() {
        let unruled = descent.beam.clone();
        let mut before = usize::MAX;
        for time in 0..TIMES {
            if !descent.rule(evidence, place, &unruled, time) {
                return Ok(None);
            }
            let left = descent.beam[0].contradicted;
            // More of the same leads no further.
            let is_stuck = time > 0 && left > 0 && left >= before;
            if is_stuck || time + 1 == TIMES || evidence.work().is_spent() {
                break;
            }
            before = left.max(1);
            let seed = seed.wrapping_add(TIMES * place as u64 + time);
            let asked = telling::questions(evidence, &descent, place, seed);
            if asked.is_empty() {
                break;
            }
            evidence.ask(vec![probe(asked)])?;
        }
        descent.leave(evidence, place);
        progress.advance(1);
    }
    let best = descent.beam.swap_remove(0).model;
    progress.model("descended", &best, evidence);
    Ok(Some(fit::scored(evidence, best)))
}

fn probe(dot_adds: Vec<DotAdd>) -> Probe {
    Probe {
        name: "sums/apart",
        question: "which of the rules that explain as much about a sum is its own?",
        source: "design, inference step 5",
        dot_adds,
    }
}

/// Rules that are known from the last sum down to some.
struct Descent {
    /// The rules of all sums, the last sum's first, and each before those of the sums in it.
    order: Vec<RuleId>,
    /// How many rules there are before any is found.
    own_rules: usize,
    /// Models, the best first, that explain most of what is asked about the sums so far.
    beam: Vec<Fitted>,
    /// What no rule of a sum explains, and is not what those below are looked for.
    left: HashSet<DotAdd>,
}

impl Descent {
    fn of(start: &Model) -> Descent {
        let (model, order) = individual(start);
        let own_rules = model.tree.rules.len();
        let beam = vec![Fitted { model, contradicted: usize::MAX }];
        Descent { order, own_rules, beam, left: HashSet::new() }
    }

    /// The best model so far.
    fn best(&self) -> &Model {
        &self.beam[0].model
    }

    /// The rules that may be turned where that at a place is looked for.
    fn scope(&self, place: usize) -> Scope {
        // Where the last sum is rounded twice, that is a rule more.
        let and_from = if place == 0 { self.own_rules } else { usize::MAX };
        Scope::One { rule: self.order[place], and_from }
    }

    /// The answers that are to be explained, with how deep the sums are that each depends on.
    fn by_depth<'e>(&self, evidence: &'e Evidence) -> ByDepth<'e> {
        // Zeros alone show signs, of which any sum may decide.
        let is_open = |answered: &&Answered| {
            answered.class <= CLASS && answered.summands > 0 && !self.left.contains(&answered.question)
        };
        let answers = evidence.answers.iter().filter(is_open).collect();
        ByDepth::but_for_signs(evidence, (self.best(), &self.order), answers)
    }

    /// Finds the rule at a place, from what is known of it, and where that leads no further together with one above, or from these
    /// models, which were the best before it was looked for. Whether the tree may be right.
    fn rule(&mut self, evidence: &Evidence, place: usize, unruled: &[Fitted], time: u64) -> bool {
        let by_depth = self.by_depth(evidence);
        let about = by_depth.answers(CLASS, place, usize::MAX);
        let mut search = Search::narrow(evidence, EACH_QUICKLY);
        search.scope = self.scope(place);
        let rule = self.order[place];
        let mut beam = search.scored(std::mem::take(&mut self.beam), &about);
        if beam[0].contradicted > 0 && time == 0 {
            beam = search.scored(with_known_rules(beam, &self.order[..place], rule), &about);
            beam.truncate(PLATEAU);
        }
        if beam[0].contradicted > 0 {
            let by_summands = SUMMANDS.map(|summands| by_depth.answers(CLASS, place, summands));
            let sum = OneSum {
                class: CLASS,
                rule,
                is_root: place == 0,
                leaves_any: false,
                is_alone: true,
                by_summands,
                about: about.clone(),
            };
            beam = sum.ruled(evidence, &mut search, beam, EACH_IN_A_RACE, TOLERATED_QUICKLY);
            if beam[0].contradicted > 0 && time > 0 {
                beam = self.with_a_rule_above(evidence, &mut search, beam, &sum);
            }
            if beam[0].contradicted > 0 && time > 0 {
                search.scope = self.scope(place);
                // What simpler answers led to may lead astray.
                let others =
                    sum.ruled(evidence, &mut search, unruled.to_vec(), EACH_QUICKLY, TOLERATED_QUICKLY);
                beam = search.scored(beam.into_iter().chain(others).collect(), &about);
            }
        }
        match beam[0].contradicted {
            0 => beam.retain(|fitted| fitted.contradicted == 0),
            _ => retain_best(&mut beam),
        }
        self.beam = beam;
        self.beam[0].contradicted * TOLERATED_QUICKLY <= about.len()
    }

    /// The same models, or one with another rule of one of the nearest sums above, too, if that explains everything that is
    /// asked about a sum.
    fn with_a_rule_above<'e>(
        &self,
        evidence: &'e Evidence,
        search: &mut Search<'e, '_>,
        beam: Vec<Fitted>,
        sum: &OneSum<'e>,
    ) -> Vec<Fitted> {
        let below = sum.rule;
        let mut opened = beam[0].model.clone();
        let own = &mut opened.tree.rules[below];
        (own.added, own.normalised) = (Added::Exact, Normalised::No { exponent: None });
        for above in above(&beam[0].model, below).into_iter().take(ABOVE) {
            // Of a last sum that is rounded twice, the rules go together.
            let place = self.order.iter().position(|&other| other == above).unwrap_or(0);
            let sum = OneSum { rule: self.order[place], is_root: place == 0, ..sum.clone() };
            search.scope = self.scope(place);
            for model in [&beam[0].model, &opened] {
                let start = vec![Fitted { model: model.clone(), contradicted: usize::MAX }];
                let found = sum.ruled(evidence, search, start, EACH_IN_A_RACE, TOLERATED_QUICKLY);
                let found = search.scored(found, &sum.about);
                if found[0].contradicted == 0 {
                    return found;
                }
            }
        }
        beam
    }

    /// Leaves what is unexplained about the sum at a place to others.
    fn leave(&mut self, evidence: &Evidence, place: usize) {
        let mut about = self.by_depth(evidence).answers(CLASS, place, usize::MAX);
        let wrong = fit::front_load(self.best(), &mut about);
        self.left.extend(about[..wrong].iter().map(|answered| answered.question.clone()));
    }
}

/// The rules of the sums that a rule's sum is in, the nearest first.
fn above(model: &Model, rule: RuleId) -> Vec<RuleId> {
    let nodes = &model.tree.nodes;
    let follows = |node: &Node| matches!(node, Node::Sum { rule: own, .. } if *own == rule);
    let mut at = nodes.iter().position(follows);
    let mut above = Vec::new();
    while let Some(node) = at {
        at = nodes.iter().position(|other| other.children().contains(&node));
        if let Some(Node::Sum { rule, .. }) = at.map(|at| &nodes[at]) {
            above.push(*rule);
        }
    }
    above
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32, RoundTo};
    use mmaprobe_model::tree::Fused;
    use mmaprobe_probes::sums::{self, Significands};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;
    use crate::device::Device;
    use crate::inference::depth;
    use crate::inference::nodewise::{fit_first, sums as sums_of};
    use crate::inference::{Silent, testing};

    /// A chain of sums that all lose other bits, in other ways.
    fn chain() -> Model {
        let (mut model, order) = individual(&Model::chain_of_fma(FP16, FP32, 6));
        let fused = |bits, rounding| Added::Fused(Fused::uniform(bits, rounding));
        let to = |fraction_bits, rounding| {
            Normalised::To(RoundTo { fraction_bits, rounding, ..RoundTo::nearest_even(FP32) })
        };
        let open = Normalised::No { exponent: None };
        let rules = [
            (Added::Exact, to(23, Rounding::TowardZero)),
            (fused(20, Rounding::NearestTiesToEven), open),
            (Added::Exact, to(16, Rounding::NearestTiesAway)),
            (fused(14, Rounding::Down), to(23, Rounding::NearestTiesToEven)),
            (fused(18, Rounding::TowardZero), open),
            (Added::Exact, to(12, Rounding::Up)),
        ];
        for (rule, (added, normalised)) in order.into_iter().zip(rules) {
            let own = &mut model.tree.rules[rule];
            (own.added, own.normalised) = (added, normalised);
        }
        model
    }

    #[test]
    fn what_is_asked_about_each_sum_tells_its_rule() {
        let (truth, signature) = (chain(), testing::signature(6));
        let device = testing::device(&signature, truth.clone(), (1, 1));
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        evidence.ask(vec![sums::range(&signature)]).expect("it answers");
        let within = depth::unchanged(&evidence).exponents;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let how = (&within, Significands::Short);
        evidence
            .ask(vec![sums::probe(&signature, &sums_of(&truth), 100, how, &mut rng)])
            .expect("it answers");
        let start = Model::chain_of_fma(FP16, FP32, 6);
        let fresh = testing::sparse_answers(&signature, &truth, 6000, 2);
        let wrong = |model: &Model| {
            fit::contradicted(model, fresh.iter().filter(|answered| answered.class <= CLASS), usize::MAX)
        };
        // What was asked about all of them says too little.
        let (model, order) = individual(&start);
        let places = 0..order.len();
        let (found, unexplained) = fit_first(&evidence, model, order, places);
        assert_eq!(unexplained.contradicted, 0);
        assert!(wrong(&found) > 0);
        let found =
            descend(&mut evidence, &start, 1, &Silent).expect("it answers").expect("the tree is right");
        assert_eq!(wrong(&found.model), 0);
    }

    #[test]
    fn the_sums_that_a_sum_is_in_come_nearest_first() {
        let (model, order) = individual(&Model::chain_of_fma(FP16, FP32, 4));
        let [root, second, third, deepest] = order[..] else { panic!("there are four sums") };
        assert_eq!(above(&model, deepest), [third, second, root]);
        assert!(above(&model, root).is_empty());
    }
}
