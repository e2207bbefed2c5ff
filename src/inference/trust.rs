//! Trust nothing yet: is the device a function, and the same one everywhere?
//!
//! MMA-Sim paper, section III.B: the same dot-add at every (i, j). Beyond it: the same batch twice,
//! the problems in reverse, problems alone, and one problem at many positions of a batch.

use mmaprobe_probes::DotAdd;
use mmaprobe_probes::random::{self, Distribution};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::batch;
use crate::device::{Batch, Device, DeviceError, Instruction, element};

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

/// Elements in each batch of the check, at least: more than any vector has lanes.
const ELEMENTS: usize = 67;
/// Elements of the largest batch of the check: no less than validation asks for at once.
const LARGE: usize = 4200;
/// Problems in each batch of the check, at least: one from each distribution.
const FEWEST_PROBLEMS: usize = Distribution::ALL.len();

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
    let elements = instruction.m * instruction.n;
    let problems = ELEMENTS.div_ceil(elements).max(FEWEST_PROBLEMS);
    let questions: Vec<DotAdd> = (0..problems)
        .map(|index| {
            random::dot_add(Distribution::ALL[index % Distribution::ALL.len()], &signature, &mut rng)
        })
        .collect();
    let mut spent = Spent::default();
    let mut run = |batch: &Batch| {
        spent.rounds += 1;
        spent.dot_adds += (batch.count * instruction.m * instruction.n) as u64;
        device.run(instruction, batch)
    };
    // Every problem is one question at every (i, j).
    let everywhere = batch::broadcast(instruction, &questions);
    let size = instruction.bytes().d;
    let first = run(&everywhere)?;
    let at = |d: &[u8], problem: usize, index: usize| element(&d[problem * size..], &instruction.d, index);
    for (problem, question) in questions.iter().enumerate() {
        for index in 1..elements {
            let answers = (at(&first, problem, 0), at(&first, problem, index));
            if answers.0 != answers.1 {
                // Noise looks like position: only an answer that comes again is one.
                let again = run(&everywhere)?;
                let question = question.clone();
                let distrust = if (at(&again, problem, 0), at(&again, problem, index)) == answers {
                    let (i, j) = (index / instruction.n, index % instruction.n);
                    Distrust::NotUniform {
                        question,
                        answers,
                        places: ("(0, 0)".into(), format!("({i}, {j})")),
                    }
                } else {
                    Distrust::NotDeterministic { question, answers, between: "elements of one result" }
                };
                return Ok((Some(distrust), spent));
            }
        }
    }
    let changed = |other: &dyn Fn(usize, usize) -> u64| {
        (0..problems).find_map(|problem| {
            (0..elements).find_map(|index| {
                let answers = (at(&first, problem, index), other(problem, index));
                (answers.0 != answers.1).then(|| (questions[problem].clone(), answers))
            })
        })
    };
    let verdict = |found: Option<(DotAdd, (u64, u64))>, between| {
        found.map(|(question, answers)| Distrust::NotDeterministic { question, answers, between })
    };
    let second = run(&everywhere)?;
    if let Some(distrust) = verdict(changed(&|p, i| at(&second, p, i)), "two runs of the same batch") {
        return Ok((Some(distrust), spent));
    }
    let backward: Vec<DotAdd> = questions.iter().rev().cloned().collect();
    let reversed = run(&batch::broadcast(instruction, &backward))?;
    let found = changed(&|p, i| at(&reversed, problems - 1 - p, i));
    if let Some(distrust) = verdict(found, "a batch and the same problems in reverse") {
        return Ok((Some(distrust), spent));
    }
    for problem in [0, problems - 1] {
        let alone = run(&batch::broadcast(instruction, &questions[problem..=problem]))?;
        let found = (0..elements).find_map(|index| {
            let answers = (at(&first, problem, index), at(&alone, 0, index));
            (answers.0 != answers.1).then(|| (questions[problem].clone(), answers))
        });
        if let Some(distrust) = verdict(found, "a problem in a batch and alone") {
            return Ok((Some(distrust), spent));
        }
    }
    // The same problems at the head of a batch as large as those to come.
    let count = LARGE.div_ceil(elements).max(problems);
    let many: Vec<DotAdd> = questions.iter().cycle().take(count).cloned().collect();
    let large = run(&batch::broadcast(instruction, &many))?;
    if let Some(distrust) = verdict(changed(&|p, i| at(&large, p, i)), "a small batch and a large one") {
        return Ok((Some(distrust), spent));
    }
    // One question at every position of a batch.
    for question in questions.iter().skip(1).take(2) {
        let same = batch::broadcast(instruction, &vec![question.clone(); problems]);
        let d = run(&same)?;
        for problem in 1..problems {
            let answers = (at(&d, 0, 0), at(&d, problem, 0));
            if answers.0 != answers.1 {
                // Noise looks like position here, too.
                let again = run(&same)?;
                let question = question.clone();
                let distrust = if (at(&again, 0, 0), at(&again, problem, 0)) == answers {
                    let places = ("problem 0".into(), format!("problem {problem} of a batch"));
                    Distrust::NotUniform { question, answers, places }
                } else {
                    Distrust::NotDeterministic { question, answers, between: "problems of a batch" }
                };
                return Ok((Some(distrust), spent));
            }
        }
    }
    Ok((None, spent))
}
