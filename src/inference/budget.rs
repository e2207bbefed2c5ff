//! How much may be tried.
//!
//! A search that leads nowhere takes the longest: every knob of every rule is turned and none explains more. So
//! each gets a budget, counted in answers that models are held against; the same on any machine, whatever the
//! number of threads. All searches about one instruction share what may be tried in all: where that is
//! spent, each ends soon, and the instruction is unexplained.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mmaprobe_model::Model;

use super::evidence::Answered;
use super::fit;
use super::held::Held;

/// Making a model costs as much as holding it against so many answers.
const MODEL: u64 = 8;

/// Answers that models may be held against, all together.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    spent: AtomicU64,
    whole: Option<Arc<Budget>>,
}

impl Budget {
    /// So many answers.
    pub fn of(limit: u64) -> Budget {
        Budget { limit, spent: AtomicU64::new(0), whole: None }
    }

    /// So many answers, which are part of a larger budget.
    pub fn within(whole: &Arc<Budget>, limit: u64) -> Budget {
        Budget { whole: Some(Arc::clone(whole)), ..Budget::of(limit) }
    }

    /// Whether there is nothing left of it, or of the one that it is part of.
    pub fn is_spent(&self) -> bool {
        self.spent() > self.limit || self.whole.as_ref().is_some_and(|whole| whole.is_spent())
    }

    /// Answers that models have been held against.
    pub fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    fn spend(&self, answers: u64) {
        self.spent.fetch_add(answers, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.spend(answers);
        }
    }

    /// Counts the answers that contradict a model, as [`fit::contradicted`] does, and what that costs.
    pub fn contradicted(&self, model: &Model, answers: &[&Answered], limit: usize) -> usize {
        let (counted, seen) = fit::contradicted_of(model, answers.iter().copied(), limit);
        self.spend(MODEL + seen as u64);
        counted
    }

    /// The answers that contradict a model, in their order.
    pub fn contradicting<'a>(&self, model: &Model, answers: &[&'a Answered]) -> Vec<&'a Answered> {
        self.spend(MODEL + answers.len() as u64);
        let explained = fit::all_explained(model, answers).expect("a model of the grammar can be executed");
        answers
            .iter()
            .zip(explained)
            .filter(|(_, explained)| !explained)
            .map(|(answered, _)| *answered)
            .collect()
    }

    /// The same count, for a model's neighbours.
    pub fn contradicted_held(&self, model: &Model, held: &Held, limit: usize) -> usize {
        self.spend(MODEL);
        self.contradicted_in_passing(model, held, limit)
    }

    /// The same, for neighbours that are not made but changed in place.
    pub fn contradicted_in_passing(&self, model: &Model, held: &Held, limit: usize) -> usize {
        let (counted, seen) = held.contradicted_of(model, limit);
        self.spend(seen as u64);
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_spent_where_the_whole_is() {
        let whole = Arc::new(Budget::of(10));
        let [first, second] = [4, 100].map(|limit| Budget::within(&whole, limit));
        first.spend(5);
        assert!(first.is_spent());
        assert!(!second.is_spent());
        second.spend(6);
        assert_eq!([&first, &second, &whole].map(Budget::spent), [5, 6, 11]);
        assert!(second.is_spent());
        assert!(Budget::within(&whole, 100).is_spent());
    }
}
