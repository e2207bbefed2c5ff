//! Shrinking what two devices answer differently, and whether the first one answers alike every time meanwhile.

use std::collections::HashMap;

use crate::device::DeviceError;
use crate::probes::{DotAdd, Signature};
use crate::shrink::shrink;

/// A question that the first of two devices has answered in two ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The question.
    pub question: DotAdd,
    /// Its answers, the first one first.
    pub answers: (u64, u64),
}

impl Changed {
    /// If these answers are two.
    pub(super) fn of(question: &DotAdd, (before, again): (u64, u64)) -> Option<Changed> {
        (before != again).then(|| Changed { question: question.clone(), answers: (before, again) })
    }
}

/// What is left of a question after shrinking.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shrunk {
    /// The simplest one found on which the devices differed.
    pub question: DotAdd,
    /// What both answer when it is asked once more.
    pub answers: (u64, u64),
    /// If these do not differ any more, what the first device answered in two ways.
    pub changed: Option<Changed>,
}

/// What both devices answer to questions.
type Ask<'a> = dyn Fn(&[DotAdd]) -> Result<Vec<(u64, u64)>, DeviceError> + 'a;

/// Shrinks a question to which two devices answer differently, the first one so, and asks what is left once more.
///
/// # Errors
/// If a device fails.
pub(super) fn shrunk(
    (question, answer): (&DotAdd, u64),
    signature: &Signature,
    ask: &Ask,
    is_other: &dyn Fn((u64, u64)) -> bool,
) -> Result<Shrunk, DeviceError> {
    let mut heard = HashMap::from([(question.clone(), answer)]);
    let question = shrink(question, signature, &mut |candidates| {
        let answers = ask(candidates)?;
        heard.extend(candidates.iter().cloned().zip(answers.iter().map(|answers| answers.0)));
        Ok::<_, DeviceError>(answers.into_iter().map(is_other).collect())
    })?;
    let answers = ask(std::slice::from_ref(&question))?[0];
    let changed = Changed::of(&question, (heard[&question], answers.0)).filter(|_| !is_other(answers));
    Ok(Shrunk { question, answers, changed })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use mmaprobe_model::format::{FP16, FP32};

    use super::*;

    #[test]
    fn only_what_no_longer_differs_has_changed() {
        let signature = Signature { k: 1, a: FP16, b: FP16, c: FP32, d: FP32, scale: None };
        let question = DotAdd { a: vec![1], b: vec![2], c: 0, sa: Vec::new(), sb: Vec::new() };
        // The first device says 7 so many times, and then 8, as the second one does.
        let after = |calls: usize| {
            let left = Cell::new(calls);
            let ask = |questions: &[DotAdd]| {
                let first = if left.get() > 0 { 7 } else { 8 };
                left.set(left.get().saturating_sub(1));
                Ok(vec![(first, 8); questions.len()])
            };
            shrunk((&question, 7), &signature, &ask, &|(one, other)| one != other).expect("it answers")
        };
        let at_once = after(0);
        assert_eq!(at_once.question, question, "nothing differs any more");
        assert_eq!(at_once.changed, Some(Changed { question: question.clone(), answers: (7, 8) }));
        let later = after(1);
        assert_ne!(later.question, question);
        assert_eq!(later.changed, Some(Changed { question: later.question, answers: (7, 8) }));
        let never = after(usize::MAX);
        assert_eq!((never.answers, never.changed), ((7, 8), None));
    }
}
