//! What a device has answered, until it is asked again.

use std::collections::HashMap;

use crate::probes::DotAdd;

/// A question that the first of two devices has answered in two ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The question.
    pub question: DotAdd,
    /// Its answers, the first one first.
    pub answers: (u64, u64),
}

/// Answers of the first of two devices.
#[derive(Default)]
pub(super) struct Heard(HashMap<DotAdd, u64>);

impl Heard {
    /// Keeps an answer, the last one to each question.
    pub fn keep(&mut self, question: &DotAdd, answer: u64) {
        self.0.insert(question.clone(), answer);
    }

    /// The question with both answers, if it was answered otherwise before.
    pub fn changed(&self, question: &DotAdd, again: u64) -> Option<Changed> {
        let before = *self.0.get(question).filter(|before| **before != again)?;
        Some(Changed { question: question.clone(), answers: (before, again) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_answer_to_the_same_question_is_a_change() {
        let question = |c| DotAdd { a: vec![1], b: vec![2], c, sa: Vec::new(), sb: Vec::new() };
        let mut heard = Heard::default();
        heard.keep(&question(0), 7);
        assert_eq!(heard.changed(&question(0), 7), None);
        assert_eq!(heard.changed(&question(1), 8), None);
        let changed = Changed { question: question(0), answers: (7, 8) };
        assert_eq!(heard.changed(&question(0), 8), Some(changed));
    }
}
