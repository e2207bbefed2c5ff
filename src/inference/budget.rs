//! How much may be tried.
//!
//! A search that leads nowhere takes the longest: every knob of every rule is turned and none explains more. So
//! each gets a budget, counted in answers that models are held against; the same on any machine, whatever the
//! number of threads.

use std::sync::atomic::{AtomicU64, Ordering};

use mmaprobe_model::Model;
use mmaprobe_model::scalar::Scalar;

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
}

impl Budget {
    /// So many answers.
    pub fn of(limit: u64) -> Budget {
        Budget { limit, spent: AtomicU64::new(0) }
    }

    /// Whether there is nothing left of it.
    pub fn is_spent(&self) -> bool {
        self.spent.load(Ordering::Relaxed) > self.limit
    }

    /// Counts the answers that contradict a model, as [`fit::contradicted`] does, and what that costs.
    pub fn contradicted(&self, model: &Model, answers: &[&Answered], limit: usize) -> usize {
        let mut seen = MODEL;
        let counted = fit::contradicted(model, answers.iter().copied().inspect(|_| seen += 1), limit);
        self.spent.fetch_add(seen, Ordering::Relaxed);
        counted
    }

    /// The answers that contradict a model, in their order.
    pub fn contradicting<'a>(&self, model: &Model, answers: &[&'a Answered]) -> Vec<&'a Answered> {
        self.spent.fetch_add(MODEL + answers.len() as u64, Ordering::Relaxed);
        let mut executor = Scalar::new(model).expect("a model of the grammar can be executed");
        answers.iter().copied().filter(|answered| !fit::explains(&mut executor, answered)).collect()
    }

    /// The same count, for a model's neighbours.
    pub fn contradicted_held(&self, model: &Model, held: &Held, limit: usize) -> usize {
        self.spent.fetch_add(MODEL, Ordering::Relaxed);
        self.contradicted_in_passing(model, held, limit)
    }

    /// The same, for neighbours that are not made but changed in place.
    pub fn contradicted_in_passing(&self, model: &Model, held: &Held, limit: usize) -> usize {
        let (counted, seen) = held.contradicted_of(model, limit);
        self.spent.fetch_add(seen as u64, Ordering::Relaxed);
        counted
    }
}
