//! Holding many models that are alike against the same answers.

use mmaprobe_model::Model;
use mmaprobe_model::scalar::{Changes, Nodes, Scalar};

use super::evidence::Answered;
use super::fit;

/// A model, and what it makes of some answers' questions: what its neighbours are held against.
pub struct Held<'a, 'm> {
    model: &'m Model,
    answers: Vec<(&'a Answered, Option<Nodes>)>,
}

impl<'a, 'm> Held<'a, 'm> {
    /// A model and answers.
    pub fn new(model: &'m Model, answers: &[&'a Answered]) -> Held<'a, 'm> {
        let mut executor = Scalar::new(model).ok();
        let mut nodes = |answered: &Answered| executor.as_mut()?.nodes(&answered.inputs);
        Held { model, answers: answers.iter().map(|&answered| (answered, nodes(answered))).collect() }
    }

    /// The number of answers.
    pub fn number_of_answers(&self) -> usize {
        self.answers.len()
    }

    /// Counts the answers that contradict another model, as [`fit::contradicted`] does; stops at `limit`.
    pub fn contradicted(&self, other: &Model, limit: usize) -> usize {
        self.contradicted_of(other, limit).0
    }

    /// The same, and how many answers it was held against.
    pub fn contradicted_of(&self, other: &Model, limit: usize) -> (usize, usize) {
        let Ok(mut executor) = Scalar::new(other) else {
            return (limit, 0);
        };
        let changes = Changes::between(self.model, other);
        let mut count = 0;
        for (seen, (answered, nodes)) in self.answers.iter().enumerate() {
            let d = match (nodes, &changes) {
                (Some(nodes), Some(changes)) => executor.execute_from(&answered.inputs, nodes, changes),
                _ => executor.execute(&answered.inputs),
            };
            if fit::differ(other, d, answered.answer) {
                count += 1;
                if count >= limit {
                    return (count, seen + 1);
                }
            }
        }
        (count, self.answers.len())
    }
}
