//! The rule of one sum, where those of the sums above are known.

use mmaprobe_model::tree::RuleId;

use super::{EACH_QUICKLY, FEW, LED_ON, PLATEAU, retain_best};
use crate::inference::budget::Budget;
use crate::inference::evidence::{Answered, Class, Evidence};
use crate::inference::fit::{self, Fitted, Turn};
use crate::inference::grid::{self, Kind, Trial};
use crate::inference::knobs::Scope;
use crate::inference::search::Search;

/// Numbers of summands that are not zero, up to which answers are explained, one after another.
pub(super) const SUMMANDS: [usize; 4] = [1, 2, 3, usize::MAX];

/// Of the answers about a sum, the part, one of so many, that is no reason for a search: what comes out of one sum
/// may be too small for another.
const TRIFLE: usize = 400;

/// Things that are turned at once.
#[derive(Clone, Copy)]
struct Combined<'b> {
    /// Which; those that are likely, if not said.
    kinds: Option<&'b [Kind]>,
    budget: &'b Budget,
}

/// A sum whose rule is looked for.
#[derive(Clone)]
pub(super) struct OneSum<'e> {
    pub(super) class: Class,
    pub(super) rule: RuleId,
    pub(super) is_root: bool,
    /// Whether a sum above has left something unexplained.
    pub(super) leaves_any: bool,
    /// Whether the rules of the sums above are right, so that all that is unexplained is about this one's.
    pub(super) is_alone: bool,
    /// The answers about it with so many [summands](SUMMANDS) at most, and all.
    pub(super) by_summands: [Vec<&'e Answered>; SUMMANDS.len()],
    pub(super) about: Vec<&'e Answered>,
}

impl OneSum<'_> {
    /// Models, the best first, in which its rule explains most, each class of questions within this budget; what it leaves
    /// unexplained of too many plain answers, one of so many, is not looked at any further.
    pub(super) fn ruled(
        &self,
        evidence: &Evidence,
        search: &mut Search,
        mut beam: Vec<Fitted>,
        each: u64,
        tolerated: usize,
    ) -> Vec<Fitted> {
        let OneSum { class, rule, about, .. } = self;
        // Formats with little range show some distances with subnormal operands alone.
        let is_about_alignment = self.is_alone || [Class::Plain, Class::Subnormal].contains(class);
        let before = beam[0].clone();
        search.budget = evidence.budget(each);
        let [few, mut combining] = [each / 2, each].map(|limit| evidence.budget(limit));
        for (summands, answers) in SUMMANDS.into_iter().zip(&self.by_summands) {
            // What leaves few unexplained of answers with fewer summands leads on, though much has been spent: what more of
            // them show may need as many combinations again.
            let leads_on = beam[0].contradicted * FEW <= answers.len();
            if search.budget.is_spent() && leads_on {
                search.budget = evidence.budget(each);
            }
            if combining.is_spent() && leads_on {
                combining = evidence.budget(each);
            }
            // One summand is aligned to nothing.
            let (kinds, combining) = match summands {
                1 => (Some(&Kind::ONE_SUMMAND[..]), &few),
                _ => (None, &combining),
            };
            let combined = is_about_alignment.then_some(Combined { kinds, budget: combining });
            beam = self.improved(evidence, search, beam, combined, answers);
        }
        if (self.is_alone || *class == Class::Plain) && beam[0].contradicted * tolerated > about.len() {
            return beam;
        }
        // Answers with few summands may have led astray.
        beam.push(before);
        beam = search.scored(beam, about);
        retain_best(&mut beam);
        let is_first = beam[0].contradicted > 0 && !self.leaves_any && !search.budget.is_spent();
        if is_about_alignment && is_first && self.is_trifle(&beam[0], about.len()) {
            let found = last_resort(evidence, beam[0].clone(), (*class, *rule), about, each);
            beam.insert(0, found);
            beam = search.scored(beam, about);
            retain_best(&mut beam);
        }
        let is_worth_it = !self.is_root && (1..=about.len() / FEW).contains(&beam[0].contradicted)
            || search.budget.is_spent() && (1..=about.len() / LED_ON).contains(&beam[0].contradicted);
        if is_about_alignment && is_worth_it {
            // What a sum above makes of small numbers shows only here; and what explains most was mostly found late.
            let (best, budget) = (beam[0].clone(), evidence.budget(each));
            let (scope, turns) = (self.scope(search), self.turns());
            beam.push(fit::improve_some(evidence, best, scope, about, *class, turns, &budget));
            beam = search.scored(beam, about);
            retain_best(&mut beam);
        }
        beam
    }

    /// The rules that single turns may change with its own.
    fn scope(&self, search: &Search) -> Scope {
        if self.is_alone { search.scope } else { Scope::All }
    }

    /// Turns that lead on.
    fn turns(&self) -> &'static [Turn] {
        Turn::of(if self.is_alone { Class::Plain } else { self.class })
    }

    /// Whether so little is unexplained of so many answers that it may have other reasons.
    fn is_trifle(&self, fitted: &Fitted, answers: usize) -> bool {
        !self.is_alone && fitted.contradicted * TRIFLE <= answers
    }

    /// Models, the best first, in which its rule explains more of these answers, within the budget of the search; also with
    /// several things turned at once, where they are to be combined.
    fn improved(
        &self,
        evidence: &Evidence,
        search: &Search,
        beam: Vec<Fitted>,
        combined: Option<Combined>,
        answers: &[&Answered],
    ) -> Vec<Fitted> {
        let (budget, scope) = (&search.budget, self.scope(search));
        let OneSum { class, rule, .. } = *self;
        let is_trifle = |fitted: &Fitted| self.is_trifle(fitted, answers.len());
        let mut beam = search.scored(beam, answers);
        let mut better = beam[0].clone();
        if better.contradicted > 0 && !budget.is_spent() {
            // Powers of two do not show everything about the sums above.
            let turns = if is_trifle(&better) { &[Turn::Once] } else { self.turns() };
            better = fit::improve_some(evidence, better, scope, answers, class, turns, budget);
        }
        if let Some(Combined { kinds, budget }) = combined
            && !is_trifle(&better)
            && !budget.is_spent()
        {
            // Single turns may have led astray.
            let trial = Trial { rule, scope, answers, budget };
            let turns = [Turn::Once, Turn::Jointly];
            let at_first: &[Kind] =
                if self.is_alone { &[Kind::Results, Kind::Apart] } else { &[Kind::Apart] };
            let first = grid::improve(evidence, beam[0].clone(), trial, at_first, class, &turns);
            let first = first.into_iter().next().filter(|first| first.contradicted < better.contradicted);
            better = first.unwrap_or(better);
            let (start, likely) = match better.contradicted * FEW <= answers.len() {
                _ if self.is_alone => (&beam[0], &Kind::ALONE[..]),
                true => (&better, &Kind::FEW_ANSWERS[..]),
                false => (&beam[0], &Kind::ALL[..]),
            };
            let kinds = kinds.unwrap_or(likely);
            for start in grid::improve(evidence, start.clone(), trial, kinds, class, &turns) {
                let other = fit::improve_some(evidence, start, scope, answers, class, self.turns(), budget);
                better = if other.contradicted < better.contradicted { other } else { better };
                if better.contradicted == 0 {
                    break;
                }
            }
        }
        if better.contradicted < beam[0].contradicted {
            beam.insert(0, better);
        }
        // A few depend on more than they seem to.
        if beam[0].contradicted > 0 && is_trifle(&beam[0]) {
            return beam;
        }
        search.settle(beam, answers, class, PLATEAU)
    }
}

/// Answers that models may be held against where one rule leaves next to nothing unexplained.
const TRIFLING: u64 = 10_000_000;

/// A model in which one rule explains more of these answers, of which few are unexplained, found among what shows in
/// few answers.
fn last_resort(
    evidence: &Evidence,
    start: Fitted,
    (class, rule): (Class, RuleId),
    about: &[&Answered],
    each: u64,
) -> Fitted {
    let budget = evidence.budget(if each < EACH_QUICKLY { each } else { TRIFLING });
    let trial = Trial { rule, scope: Scope::All, answers: about, budget: &budget };
    grid::improve(evidence, start, trial, &Kind::FEW_ANSWERS, class, &[Turn::Once]).swap_remove(0)
}
