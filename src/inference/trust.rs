//! Trust nothing yet: is the device a function, and the same one everywhere?
//!
//! MMA-Sim paper, section III.B: the same dot-add at every (i, j). Beyond it: the same problems in
//! reverse, and one alone; what a large batch changes shows where the first large one is
//! [asked](super::asking::outline). Three calls show that something is wrong; only then is more asked, to say what.

use std::collections::HashMap;

use mmaprobe_probes::DotAdd;
use mmaprobe_probes::random::{self, Distribution};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::batch;
use crate::device::{Device, DeviceError, Instruction, element};

/// Why a device cannot be given a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// It answers the same question differently.
    NotDeterministic {
        /// The question.
        question: DotAdd,
        /// Two of its answers.
        answers: (u64, u64),
        /// Between what they changed.
        between: &'static str,
    },
    /// It answers the same question differently at different places.
    NotUniform {
        /// The question.
        question: DotAdd,
        /// Two of its answers.
        answers: (u64, u64),
        /// Where they stood.
        places: (String, String),
    },
}

/// How many dot-adds the check asked, in how many rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Calls of the device.
    pub rounds: u64,
    /// Output elements asked for.
    pub dot_adds: u64,
}

/// Problems that are asked of each distribution, at least and at most, and elements that they are to have: problems with
/// many say as much with fewer of them.
const LEAST_EACH: usize = 1;
const MOST_EACH: usize = 4;
const ELEMENTS: usize = 1500;

/// Checks determinism and uniformity. `None`: nothing was found against the device.
///
/// # Errors
/// If the device fails.
pub fn check(
    device: &dyn Device,
    instruction: &Instruction,
    seed: u64,
) -> Result<(Option<Distrust>, Spent), DeviceError> {
    let signature = instruction.signature();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let distributions = Distribution::asked_in(device.edition());
    let count = distributions.len();
    let problems = ELEMENTS.div_ceil(instruction.m * instruction.n);
    let problems = problems.clamp(LEAST_EACH * count, MOST_EACH * count);
    let questions: Vec<DotAdd> = (0..problems)
        .map(|index| random::dot_add(distributions[index % count], &signature, &mut rng))
        .collect();
    check_on(device, instruction, &questions, 0)
}

/// The same check on chosen questions, also in a batch of so many problems, if that is more than are chosen.
///
/// # Errors
/// If the device fails.
pub fn check_on(
    device: &dyn Device,
    instruction: &Instruction,
    questions: &[DotAdd],
    problems: usize,
) -> Result<(Option<Distrust>, Spent), DeviceError> {
    let mut spent = Spent::default();
    let calls = calls(questions.len(), problems);
    let mut ask = || -> Result<Vec<Answers>, DeviceError> {
        calls
            .iter()
            .map(|call| {
                let problems: Vec<DotAdd> = call.iter().map(|&index| questions[index].clone()).collect();
                spent.rounds += 1;
                spent.dot_adds += (problems.len() * instruction.m * instruction.n) as u64;
                let d = device.run(instruction, &batch::broadcast(instruction, &problems))?;
                let elements = problems.len() * instruction.m * instruction.n;
                Ok((0..elements).map(|index| element(&d, &instruction.d, index)).collect())
            })
            .collect()
    };
    let first = ask()?;
    if contradiction(instruction, &calls, &first).is_none() {
        return Ok((None, spent));
    }
    // Noise looks like position: only an answer that comes again is one.
    let again = ask()?;
    for ((call, once), twice) in calls.iter().zip(&first).zip(&again) {
        if let Some(index) = once.iter().zip(twice).position(|(x, y)| x != y) {
            let question = questions[call[index / (instruction.m * instruction.n)]].clone();
            let answers = (once[index], twice[index]);
            let between = "two runs of the same batch";
            return Ok((Some(Distrust::NotDeterministic { question, answers, between }), spent));
        }
    }
    let found = contradiction(instruction, &calls, &again).expect("the same answers as before");
    let Contradiction { question, answers, places } = found;
    Ok((Some(Distrust::NotUniform { question: questions[question].clone(), answers, places }), spent))
}

/// What a call answers, element by element.
type Answers = Vec<u64>;

/// The problems of each call, as indices of questions: all, all in reverse, many if these are more, one alone.
fn calls(questions: usize, problems: usize) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..questions).collect();
    let mut calls = vec![all.clone(), all.iter().rev().copied().collect()];
    if problems > questions {
        calls.push(all.into_iter().cycle().take(problems).collect());
    }
    calls.push(vec![1.min(questions - 1)]);
    calls
}

/// A question with two answers.
struct Contradiction {
    /// Its index.
    question: usize,
    answers: (u64, u64),
    /// Where these stood, in words.
    places: (String, String),
}

/// The first question with two answers: in one problem, in one batch, or anywhere.
fn contradiction(
    instruction: &Instruction,
    calls: &[Vec<usize>],
    of_calls: &[Answers],
) -> Option<Contradiction> {
    let elements = instruction.m * instruction.n;
    let at = |call: usize, problem: usize, element: usize| of_calls[call][problem * elements + element];
    let position = |element: usize| format!("({}, {})", element / instruction.n, element % instruction.n);
    for (call, problems) in calls.iter().enumerate() {
        for (problem, &question) in problems.iter().enumerate() {
            let differing = (1..elements).find(|&e| at(call, problem, e) != at(call, problem, 0));
            if let Some(element) = differing {
                let answers = (at(call, problem, 0), at(call, problem, element));
                let places = (position(0), position(element));
                return Some(Contradiction { question, answers, places });
            }
        }
    }
    // Within a problem all elements agree; the first one stands for them.
    let mut seen: HashMap<usize, (usize, usize)> = HashMap::new();
    for (call, problems) in calls.iter().enumerate() {
        for (problem, &question) in problems.iter().enumerate() {
            let &mut (other_call, other) = seen.entry(question).or_insert((call, problem));
            let answers = (at(other_call, other, 0), at(call, problem, 0));
            if answers.0 != answers.1 {
                let place = |call: usize, problem: usize| {
                    format!("problem {problem} of batch {call}, of {} problems", calls[call].len())
                };
                let places = (place(other_call, other), place(call, problem));
                return Some(Contradiction { question, answers, places });
            }
        }
    }
    None
}
