//! The wide search: where turning one knob at a time gets stuck.
//!
//! A beam of models is kept instead of the single best one: the best overall, and the best turn of
//! each knob, so that what one turn makes worse a second can make good. Where a class of answers is
//! explained, every turn that keeps it explained stays in the beam: which of them is right shows only
//! in a later class.

use std::collections::HashMap;

use mmaprobe_model::Model;
use rayon::prelude::*;

use super::budget::Budget;
use super::evidence::{Answered, Class, Evidence, Stage};
use super::fit::{self, Fitted};
use super::held::Held;
use super::knobs::{self, Knob, Scope, Turned};
use super::simplicity;

/// Models that are expanded in each step of a search in all rules.
const WIDTH: usize = 20;
/// Models that are expanded in each step of a search in one rule.
const NARROW: usize = 6;
/// What breaks more of the answers that were explained than one of so many is no way forward.
const BREAKABLE: usize = 3;
/// Models of those that are expanded in every way: sums that share a rule get their own, and what
/// is different about an alignment changes together.
const CLOSELY: usize = 2;
/// Models that explain everything so far and are taken along to the next class.
const PLATEAU: usize = 40;
/// Steps without progress after which a class is given up.
const PATIENCE: usize = 3;
/// Answers of each kind, explained and not, that all candidates are tried on.
const GLANCED: usize = 50;
/// Answers of each kind that these are tried on.
const SAMPLED: usize = 400;
/// Answers of each kind that models with two knobs turned are tried on; and how many of those that the best
/// model does not explain have to show at once that something is better.
const PAIRED: usize = 30;
const DECISIVE: usize = 3;
/// So many models or more are held against answers as neighbours of the first.
const ALIKE: usize = 4;
/// Answers that candidates may be held against, all together, before the search is given up.
const BUDGET: u64 = 80_000_000;

/// A search over all stages of answers from several models to start from.
pub struct Search<'e, 'd> {
    evidence: &'e Evidence<'d>,
    /// The rules whose knobs are turned.
    pub scope: Scope,
    /// Models that are expanded in each step.
    width: usize,
    /// What models may be held against, all together.
    pub budget: Budget,
}

impl<'e, 'd> Search<'e, 'd> {
    /// A search over this evidence, in all rules.
    pub fn new(evidence: &'e Evidence<'d>) -> Search<'e, 'd> {
        Search { evidence, scope: Scope::All, width: WIDTH, budget: evidence.budget(BUDGET) }
    }

    /// The same, given up when models have been held against `budget` answers, all together.
    pub fn within(evidence: &'e Evidence<'d>, budget: u64) -> Search<'e, 'd> {
        Search { budget: evidence.budget(budget), ..Search::new(evidence) }
    }

    /// A search in one rule after the other: of one, fewer combinations have to be kept. It is given up
    /// when models have been held against `budget` answers, all together.
    pub fn narrow(evidence: &'e Evidence<'d>, budget: u64) -> Search<'e, 'd> {
        Search { width: NARROW, ..Search::within(evidence, budget) }
    }

    /// The models that the fewest answers contradict, best first; those that none does, if there are
    /// any, and then only those. Deterministic for any number of threads.
    pub fn run(&self, starts: Vec<Model>) -> Vec<Fitted> {
        let mut beam: Vec<Fitted> =
            starts.into_iter().map(|model| Fitted { model, contradicted: usize::MAX }).collect();
        for stage in Stage::all() {
            beam = self.settle(beam, &fit::relevant(self.evidence, stage), stage.class, PLATEAU);
            if beam[0].contradicted > 0 {
                // Whatever is wrong about simpler answers is wrong.
                return self.scored(beam, &fit::relevant(self.evidence, Stage::LAST));
            }
        }
        beam
    }

    /// Brings the beam to where it explains these answers, which are of this class or simpler ones, if it
    /// can; then up to `plateau` models that do are kept.
    pub fn settle(
        &self,
        beam: Vec<Fitted>,
        answers: &[&Answered],
        class: Class,
        plateau: usize,
    ) -> Vec<Fitted> {
        let mut beam = self.scored(beam, answers);
        let mut idle = 0;
        let mut expanded: Vec<Model> = Vec::new();
        while beam[0].contradicted > 0 && idle < PATIENCE && !self.budget.is_spent() {
            match self.step(&beam, answers, class, &mut expanded) {
                Some(next) => {
                    idle = if next[0].contradicted < beam[0].contradicted { 0 } else { idle + 1 };
                    beam = next;
                }
                None => idle = PATIENCE,
            }
            if idle == PATIENCE && beam[0].contradicted > 0 && !self.budget.is_spent() {
                let pairs = self.pairs(&beam[0], answers, class);
                let next = self.scored(pairs.into_iter().chain(beam.iter().cloned()).collect(), answers);
                if next[0].contradicted < beam[0].contradicted {
                    beam = next;
                    beam.truncate(4 * self.width);
                    idle = 0;
                }
            }
        }
        if beam[0].contradicted == 0 {
            beam.retain(|fitted| fitted.contradicted == 0);
            self.spread(&mut beam, answers, class, plateau);
        }
        beam
    }

    /// Scores models and sorts them, best first.
    pub fn scored(&self, mut beam: Vec<Fitted>, answers: &[&Answered]) -> Vec<Fitted> {
        let first = beam.first().map(|fitted| fitted.model.clone());
        // What they have in common is executed once.
        let held = first.as_ref().filter(|_| beam.len() >= ALIKE).map(|first| Held::new(first, answers));
        beam.par_iter_mut().for_each(|fitted| {
            fitted.contradicted = match &held {
                Some(held) => self.budget.contradicted_held(&fitted.model, held, usize::MAX),
                None => self.budget.contradicted(&fitted.model, answers, usize::MAX),
            }
        });
        sort(&mut beam);
        beam
    }

    /// One step: every model of the beam with every knob turned. `None` if all have been tried.
    fn step(
        &self,
        beam: &[Fitted],
        answers: &[&Answered],
        class: Class,
        expanded: &mut Vec<Model>,
    ) -> Option<Vec<Fitted>> {
        let fresh: Vec<&Fitted> =
            beam.iter().filter(|fitted| !expanded.contains(&fitted.model)).take(self.width).collect();
        if fresh.is_empty() {
            return None;
        }
        expanded.extend(fresh.iter().map(|fitted| fitted.model.clone()));
        let mut ordered = answers.to_vec();
        fit::front_load(&beam[0].model, &mut ordered);
        let mut bases: Vec<Model> = Vec::new();
        let mut candidates: Vec<Candidate> = Vec::new();
        for (index, fitted) in fresh.into_iter().enumerate() {
            let mut turned = self.turns(&fitted.model, class);
            let mut splits = Vec::new();
            if index < CLOSELY {
                turned.extend(knobs::turn_alignments(&fitted.model, false, self.scope));
                turned.extend(knobs::turn_each_alignment(&fitted.model, self.scope));
                turned.extend(knobs::turn_far(&fitted.model, self.scope));
                turned.extend(knobs::turn_zeros(&fitted.model, self.scope));
                turned.extend(knobs::turn_filed(&fitted.model, self.scope));
                let signature = self.evidence.signature();
                turned.extend(knobs::turn_products(&fitted.model, signature, class));
                turned.extend(knobs::turn_kind(&fitted.model, signature, self.scope));
                if class >= Class::Infinite && self.scope.has_root(&fitted.model) {
                    turned.extend(knobs::turn_range_twice(&fitted.model, signature));
                }
                if self.scope == Scope::All {
                    turned.extend(knobs::turn_everywhere(&fitted.model, signature, class));
                    splits = knobs::split(&fitted.model);
                }
            }
            let mut add = |base: Model, turned: Vec<Turned>| {
                candidates.extend(turned.into_iter().map(|turned| Candidate { base: bases.len(), turned }));
                bases.push(base);
            };
            add(fitted.model.clone(), turned);
            for split in splits {
                let turned = self.turns(&split, class);
                add(split, turned);
            }
            if index < CLOSELY && self.scope.has_root(&fitted.model) {
                for (doubled, turned) in knobs::turn_twice(&fitted.model, self.evidence.signature()) {
                    add(doubled, turned);
                }
            }
        }
        let wrong = beam[0].contradicted;
        let all: Vec<usize> = (0..candidates.len()).collect();
        let [glance, sample] = [GLANCED, SAMPLED].map(|of_each| sample(&ordered, wrong, of_each));
        let promising = self.best(&bases, &candidates, all, glance, 10 * self.width, 8);
        let chosen = self.best(&bases, &candidates, promising, sample, self.width, 2);
        let mut fresh: Vec<Fitted> = Vec::new();
        for index in chosen {
            let model = &candidates[index].turned.model;
            if !beam.iter().chain(&fresh).any(|fitted| fitted.model == *model) {
                fresh.push(Fitted { model: model.clone(), contradicted: usize::MAX });
            }
        }
        // The beam has been held against these answers.
        let mut next = beam.to_vec();
        next.extend(self.scored(fresh, answers));
        sort(&mut next);
        next.truncate(4 * self.width);
        Some(next)
    }

    /// The best models in which two knobs of one rule are turned at once, each of which alone may make things
    /// worse.
    fn pairs(&self, best: &Fitted, answers: &[&Answered], class: Class) -> Vec<Fitted> {
        let mut ordered = answers.to_vec();
        fit::front_load(&best.model, &mut ordered);
        let [wrong, right] = sample(&ordered, best.contradicted, PAIRED);
        let (decisive, wrong) = wrong.split_at(DECISIVE.min(wrong.len()));
        let [decisive, wrong, right] = [decisive, wrong, &right].map(|some| Held::new(&best.model, some));
        let mut first = self.turns(&best.model, class);
        first.retain(|turned| turned.knob.rule.is_some() && turned.model != best.model);
        // Of two knobs, the one that comes first is turned first.
        let mut places: HashMap<&Knob, usize> = HashMap::new();
        for turned in &first {
            let next = places.len();
            places.entry(&turned.knob).or_insert(next);
        }
        let mut tried: Vec<(usize, u32, Model)> = first
            .par_iter()
            .flat_map_iter(|once| {
                let place = places[&once.knob];
                let twice = self.turns(&once.model, class);
                let mut kept: Vec<(usize, u32, Model)> = Vec::new();
                for twice in twice {
                    let is_later = places.get(&twice.knob).is_none_or(|&other| other > place);
                    if twice.knob.rule != once.knob.rule || !is_later {
                        continue;
                    }
                    let model = twice.model;
                    let missed = self.budget.contradicted_held(&model, &decisive, DECISIVE);
                    if missed >= decisive.number_of_answers() {
                        continue;
                    }
                    let broken = self.budget.contradicted_held(
                        &model,
                        &right,
                        right.number_of_answers() / BREAKABLE + 1,
                    );
                    let contradicted =
                        missed + self.budget.contradicted_held(&model, &wrong, usize::MAX) + broken;
                    if contradicted < decisive.number_of_answers() + wrong.number_of_answers() {
                        kept.push((contradicted, simplicity::exceptions(&model), model));
                    }
                }
                kept.sort_by_key(|(contradicted, exceptions, _)| (*contradicted, *exceptions));
                kept.truncate(self.width);
                kept
            })
            .collect();
        tried.sort_by_key(|(contradicted, exceptions, _)| (*contradicted, *exceptions));
        tried.truncate(2 * self.width);
        tried.into_iter().map(|(_, _, model)| Fitted { model, contradicted: usize::MAX }).collect()
    }

    /// The candidates that the fewest answers of a sample contradict: so many overall, and so many of
    /// each knob.
    fn best(
        &self,
        bases: &[Model],
        candidates: &[Candidate],
        of: Vec<usize>,
        sample: [Vec<&Answered>; 2],
        overall: usize,
        of_each: usize,
    ) -> Vec<usize> {
        let hold = |base| sample.each_ref().map(|answers| Held::new(base, answers));
        let held: Vec<[Held; 2]> = bases.par_iter().map(hold).collect();
        let mut tried: Vec<(usize, u32, usize)> = of
            .into_par_iter()
            .filter_map(|index| {
                let Candidate { base, turned: Turned { model, .. } } = &candidates[index];
                let [wrong, right] = &held[*base];
                let limit = right.number_of_answers() / BREAKABLE + 1;
                let broken = self.budget.contradicted_held(model, right, limit);
                let count = || broken + self.budget.contradicted_held(model, wrong, usize::MAX);
                (broken < limit).then(|| (count(), simplicity::exceptions(model), index))
            })
            .collect();
        tried.sort_unstable();
        let mut chosen: Vec<usize> = Vec::new();
        let mut counts: HashMap<&Knob, usize> = HashMap::new();
        for (_, _, index) in tried {
            let count = counts.entry(&candidates[index].turned.knob).or_default();
            if chosen.len() < overall || *count < of_each {
                *count += 1;
                chosen.push(index);
            }
        }
        chosen
    }

    /// Every single turn of a model.
    fn turns(&self, model: &Model, class: Class) -> Vec<Turned> {
        knobs::turn(model, self.evidence.signature(), class, self.evidence, self.scope)
    }

    /// Adds the turns that keep everything explained.
    fn spread(&self, beam: &mut Vec<Fitted>, answers: &[&Answered], class: Class, plateau: usize) {
        let mut from = 0;
        while from < beam.len() && beam.len() < plateau && !self.budget.is_spent() {
            let held = Held::new(&beam[from].model, answers);
            let mut kept: Vec<Model> = self
                .turns(&beam[from].model, class)
                .into_par_iter()
                .filter(|turned| self.budget.contradicted_held(&turned.model, &held, 1) == 0)
                .map(|turned| turned.model)
                .collect();
            kept.sort_by_cached_key(simplicity::exceptions);
            for model in kept {
                if beam.len() < plateau && !beam.iter().any(|fitted| fitted.model == model) {
                    beam.push(Fitted { model, contradicted: 0 });
                }
            }
            from += 1;
        }
        beam.sort_by_cached_key(|fitted| simplicity::exceptions(&fitted.model));
    }
}

/// A model with a turn, and the one that it was turned from.
struct Candidate {
    /// Its number.
    base: usize,
    turned: Turned,
}

/// The best first. A stable sort: what came first stays first among equals.
fn sort(beam: &mut [Fitted]) {
    beam.sort_by_cached_key(|fitted| (fitted.contradicted, simplicity::exceptions(&fitted.model)));
}

/// Some answers that contradict the best model, which stand in front, and some of the others.
fn sample<'a>(answers: &[&'a Answered], contradicted: usize, of_each: usize) -> [Vec<&'a Answered>; 2] {
    let (wrong, right) = answers.split_at(contradicted.min(answers.len()));
    [wrong, right].map(|answers| fit::thinned(answers, of_each))
}
