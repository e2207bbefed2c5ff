//! Holding many models that are alike against the same answers.

use mmaprobe_model::Model;
use mmaprobe_model::execute::Value;
use mmaprobe_model::scalar::{Changes, Inputs, Nodes, Scalar};

use super::evidence::Answered;
use super::fit;

/// A model that is executed from the values of another, as far as they are alike.
pub struct Neighbour<'m> {
    executor: Scalar<'m>,
    /// What is different; `None` if all of it has to be executed.
    changes: Option<Changes>,
}

impl<'m> Neighbour<'m> {
    /// The neighbour `other` of a model; `None` if it cannot be executed.
    pub fn new(model: &Model, other: &'m Model) -> Option<Neighbour<'m>> {
        Some(Neighbour { executor: Scalar::new(other).ok()?, changes: Changes::between(model, other) })
    }

    /// Its d, where the model has these values for the inputs, if they fit.
    pub fn execute(&mut self, inputs: &Inputs, nodes: Option<&Nodes>) -> u64 {
        match (nodes, &self.changes) {
            (Some(nodes), Some(changes)) => self.executor.execute_from(inputs, nodes, changes),
            _ => self.executor.execute(inputs),
        }
    }

    /// The first node whose value differs, with the model's value of it and its own, if there is one. `None`
    /// where that cannot be said from the model's values.
    pub fn first_difference(&mut self, inputs: &Inputs, nodes: &Nodes) -> Option<Option<[Value; 2]>> {
        self.executor.first_difference(inputs, nodes, self.changes.as_ref()?)
    }
}

/// The values of every node, if they fit, and d.
pub fn evaluated(executor: &mut Scalar, inputs: &Inputs) -> (Option<Nodes>, u64) {
    let nodes = executor.nodes(inputs);
    let d = nodes.as_ref().map_or_else(|| executor.execute(inputs), Nodes::d);
    (nodes, d)
}

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
        let Some(mut neighbour) = Neighbour::new(self.model, other) else {
            return (limit, 0);
        };
        let mut count = 0;
        for (seen, (answered, nodes)) in self.answers.iter().enumerate() {
            let d = neighbour.execute(&answered.inputs, nodes.as_ref());
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
