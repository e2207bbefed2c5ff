//! Evidence: every question asked, and its answer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mmaprobe_model::Model;
use mmaprobe_model::format::{Decoded, Format};
use mmaprobe_model::scalar::{Inputs, Scalar};
use mmaprobe_probes::random::Distribution;
use mmaprobe_probes::{DotAdd, Edition, Probe, Signature, Summand};

use super::budget::Budget;
use super::fit;
use crate::batch;
use crate::device::{Device, DeviceError, Instruction};

/// What an answer is about. Simple arithmetic is settled first; a model that is still wrong about
/// NaNs can be right about everything before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Normal numbers in, a normal number out, overflow far away.
    Plain,
    /// The result is zero, and nothing subnormal is involved.
    Zero,
    /// Subnormal operands, products or results.
    Subnormal,
    /// Infinities, or sums that may overflow.
    Infinite,
    /// NaNs.
    Nan,
}

impl Class {
    /// All classes, simplest first.
    pub const ALL: [Class; 5] = [Class::Plain, Class::Zero, Class::Subnormal, Class::Infinite, Class::Nan];

    /// The class of a question and its answer.
    pub fn of(signature: &Signature, question: &DotAdd, answer: u64) -> Class {
        let d = &signature.d;
        let mut lowest = i32::MAX;
        let mut highest = i32::MIN;
        let mut class = match d.decode(answer) {
            Decoded::Nan { .. } => return Class::Nan,
            Decoded::Infinite { .. } => Class::Infinite,
            Decoded::Finite { significand: 0, .. } => Class::Zero,
            Decoded::Finite { significand, .. } if significand >> d.fraction_bits == 0 => Class::Subnormal,
            Decoded::Finite { .. } => Class::Plain,
        };
        let answer_is_zero = class == Class::Zero;
        // The leading exponent and the lowest bit's, raising the class where an operand does.
        let mut look = |format: &Format, bits: u64| match format.decode(bits) {
            Decoded::Nan { .. } => {
                class = Class::Nan;
                None
            }
            Decoded::Infinite { .. } => {
                class = class.max(Class::Infinite);
                None
            }
            Decoded::Finite { significand: 0, .. } => None,
            Decoded::Finite { significand, exponent, .. } => {
                if significand >> format.fraction_bits == 0 {
                    class = class.max(Class::Subnormal);
                }
                let lsb = exponent - format.fraction_bits as i32;
                let top = lsb + 63 - significand.leading_zeros() as i32;
                Some((top, lsb + significand.trailing_zeros() as i32))
            }
        };
        let mut summands = vec![look(&signature.c, question.c)];
        let scales: Vec<i32> = match &signature.scale {
            None => vec![0],
            Some(scale) => question
                .sa
                .iter()
                .zip(&question.sb)
                .map(|(&sa, &sb)| match (look(&scale.format, sa), look(&scale.format, sb)) {
                    (Some((x, _)), Some((y, _))) => x + y,
                    _ => 0,
                })
                .collect(),
        };
        let block = signature.scale.map_or(signature.k, |scale| scale.block);
        for (k, (&a, &b)) in question.a.iter().zip(&question.b).enumerate() {
            let (a, b) = (look(&signature.a, a), look(&signature.b, b));
            if let (Some((top_a, low_a)), Some((top_b, low_b))) = (a, b) {
                let scale = scales[k / block];
                summands.push(Some((top_a + top_b + 1 + scale, low_a + low_b + scale)));
            }
        }
        for (top, low) in summands.into_iter().flatten() {
            lowest = lowest.min(low);
            highest = highest.max(top);
            // An addend may be below the normal range although the result is not.
            if top - 1 < d.min_exponent() {
                class = class.max(Class::Subnormal);
            }
        }
        let headroom = usize::BITS as i32 - signature.k.leading_zeros() as i32 + 1;
        if highest > i32::MIN && highest + headroom >= d.max_exponent() {
            class = class.max(Class::Infinite);
        }
        // A zero that may have been a tiny sum.
        if answer_is_zero && lowest < d.min_exponent() {
            class = class.max(Class::Subnormal);
        }
        class
    }
}

/// Answers that are explained together: those of a class and of simpler ones, with few summands first.
///
/// A product alone shows how products are formed and results rounded, whatever is true of sums; two
/// summands show how they are aligned. Taken with everything else, such answers are drowned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The last class.
    pub class: Class,
    /// Most summands that are not zero.
    pub summands: usize,
}

impl Stage {
    /// Everything.
    pub const LAST: Stage = Stage { class: Class::Nan, summands: usize::MAX };

    /// All stages, simplest first.
    pub fn all() -> impl Iterator<Item = Stage> {
        let numbers = [1, 2, 3, usize::MAX];
        Class::ALL.into_iter().flat_map(move |class| numbers.map(|summands| Stage { class, summands }))
    }

    /// Whether an answer is one of this stage.
    pub fn has(self, answered: &Answered) -> bool {
        answered.class <= self.class && answered.summands <= self.summands
    }
}

/// The summands of a question that are not zero: products, and c.
pub fn summands<'q>(
    signature: &'q Signature,
    question: &'q DotAdd,
) -> impl Iterator<Item = Summand> + use<'q> {
    let is_zero =
        |format: &Format, bits: u64| matches!(format.decode(bits), Decoded::Finite { significand: 0, .. });
    let factors = question.a.iter().zip(&question.b).enumerate();
    let products = factors
        .filter(move |&(_, (&a, &b))| !is_zero(&signature.a, a) && !is_zero(&signature.b, b))
        .map(|(k, _)| Summand::Product(k));
    let c = (!is_zero(&signature.c, question.c)).then_some(Summand::C);
    products.chain(c)
}

/// A question and its answer.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Index into [`Evidence::probes`].
    pub probe: usize,
    /// The question.
    pub question: DotAdd,
    /// The bit pattern of d.
    pub answer: u64,
    /// What it is about.
    pub class: Class,
    /// Summands that are not zero: products, and c.
    pub summands: usize,
    /// The question, decoded: models by the hundred thousand are held against it.
    pub inputs: Inputs,
}

/// A question's operands, taken apart once.
pub fn inputs(signature: &Signature, question: &DotAdd) -> Inputs {
    let DotAdd { a, b, c, sa, sb } = question;
    let scale = signature.scale.map(|scale| scale.format);
    Inputs::in_formats([signature.a, signature.b, signature.c], scale, a, b, *c, sa, sb)
}

impl Answered {
    /// An answer to a question of a probe, with what it is about.
    pub fn new(signature: &Signature, probe: usize, question: DotAdd, answer: u64) -> Answered {
        let class = Class::of(signature, &question, answer);
        let summands = summands(signature, &question).count();
        let inputs = inputs(signature, &question);
        Answered { probe, question, answer, class, summands, inputs }
    }
}

/// The name, the question and the source of a probe that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its name.
    pub name: &'static str,
    /// Its question in words.
    pub question: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// Answers that models may be held against in all searches about one instruction: so many that only a search which leads
/// nowhere comes to its end, after a quarter of an hour or more of one core. No machine is known that is found with more.
const WORK: u64 = 3_000_000_000;

/// Answers to a probe that are not kept aside where most are.
const KEPT: usize = 1200;
/// Answers that are moved at once from those aside.
const MOVED: usize = 200;

/// What is asked along with the next round.
#[derive(Default)]
struct Waiting {
    probes: Vec<Probe>,
    /// Questions that have been asked before.
    again: Vec<DotAdd>,
}

/// A round in which questions were asked that had been asked before.
pub struct Again {
    /// All questions of the round.
    pub questions: Vec<DotAdd>,
    /// The answers.
    pub answers: Vec<u64>,
    /// The place of the first that had been asked before; all behind it had been, too.
    pub from: usize,
}

/// Everything that a device has answered about one instruction.
pub struct Evidence<'d> {
    device: &'d dyn Device,
    instruction: &'d Instruction,
    signature: Signature,
    /// The probes that were asked.
    pub probes: Vec<Asked>,
    /// The answers, in the order of asking.
    pub answers: Vec<Answered>,
    aside: Vec<Answered>,
    known: HashMap<DotAdd, u64>,
    waiting: Waiting,
    again: Option<Again>,
    work: Arc<Budget>,
    /// Calls of the device so far.
    pub rounds: u64,
    /// Dot-adds asked so far.
    pub dot_adds: u64,
}

impl<'d> Evidence<'d> {
    /// No evidence yet.
    pub fn new(device: &'d dyn Device, instruction: &'d Instruction) -> Evidence<'d> {
        Evidence::with_work(device, instruction, WORK)
    }

    /// No evidence yet, and another limit for all searches: so many answers that models may be held against. A search that
    /// leads nowhere ends sooner with less.
    pub fn with_work(device: &'d dyn Device, instruction: &'d Instruction, work: u64) -> Evidence<'d> {
        Evidence {
            device,
            instruction,
            signature: instruction.signature(),
            probes: Vec::new(),
            answers: Vec::new(),
            aside: Vec::new(),
            known: HashMap::new(),
            waiting: Waiting::default(),
            again: None,
            work: Arc::new(Budget::of(work)),
            rounds: 0,
            dot_adds: 0,
        }
    }

    /// The same answers for one search: in all of it, models may be held against so many of them, or what is left for all
    /// searches, if that is less. Nothing is lost with it: what is asked, is asked by the whole.
    pub fn part(&self, work: u64) -> Evidence<'d> {
        Evidence {
            probes: self.probes.clone(),
            answers: self.answers.clone(),
            aside: self.aside.clone(),
            known: self.known.clone(),
            waiting: Waiting::default(),
            again: None,
            work: Arc::new(self.budget(work)),
            ..*self
        }
    }

    /// What models may be held against in one search: so many answers, or what is left for all searches, if that is less.
    pub fn budget(&self, answers: u64) -> Budget {
        Budget::within(&self.work, answers)
    }

    /// What models may be held against in all searches.
    pub fn work(&self) -> &Budget {
        &self.work
    }

    /// What the instruction takes.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The distributions that random questions are drawn from: a recording answers those of its edition alone.
    pub fn asked_from(&self) -> &'static [Distribution] {
        Distribution::asked_in(self.edition())
    }

    /// The edition of the questions that the device is asked.
    pub fn edition(&self) -> Edition {
        self.device.edition()
    }

    /// The instruction.
    pub fn instruction(&self) -> &'d Instruction {
        self.instruction
    }

    /// The device, for what is no single dot-add.
    pub fn device(&self) -> &'d dyn Device {
        self.device
    }

    /// Asks all questions of these probes that have not been asked yet, in one round, and keeps the
    /// answers.
    ///
    /// # Errors
    /// If the device fails.
    pub fn ask(&mut self, probes: Vec<Probe>) -> Result<(), DeviceError> {
        let answers = self.answered(probes)?;
        self.answers.extend(answers);
        Ok(())
    }

    /// Has probes asked along with the next round, and behind them these questions, which have been asked before: a round
    /// costs more than its questions. What comes of the latter is told by [`asked_again`](Evidence::asked_again). A next
    /// round that has no questions of its own is one, too.
    pub fn ask_with_next(&mut self, probes: Vec<Probe>, again: Vec<DotAdd>) {
        self.waiting.probes.extend(probes);
        self.waiting.again.extend(again);
    }

    /// The last round in which something was asked that had been asked before, once.
    pub fn asked_again(&mut self) -> Option<Again> {
        self.again.take()
    }

    /// The same as [`ask`](Evidence::ask), but keeps the answers aside: there are many, and they say little about rules.
    /// Models are [checked](Evidence::move_contradictions) against them once they explain the others.
    ///
    /// # Errors
    /// If the device fails.
    pub fn ask_aside(&mut self, probes: Vec<Probe>) -> Result<(), DeviceError> {
        let answers = self.answered(probes)?;
        self.aside.extend(answers);
        Ok(())
    }

    /// The same, but keeps some of the answers to each probe, evenly spread, with the others: of its very many
    /// questions, few say something about rules that the rest do not.
    ///
    /// # Errors
    /// If the device fails.
    pub fn ask_mostly_aside(&mut self, probes: Vec<Probe>) -> Result<(), DeviceError> {
        let answers = self.answered(probes)?;
        let mut counts = vec![0usize; self.probes.len()];
        answers.iter().for_each(|answered| counts[answered.probe] += 1);
        let mut seen = vec![0usize; self.probes.len()];
        for answered in answers {
            let probe = answered.probe;
            seen[probe] += 1;
            let is_kept = seen[probe].is_multiple_of(counts[probe].div_ceil(KEPT));
            if is_kept { &mut self.answers } else { &mut self.aside }.push(answered);
        }
        Ok(())
    }

    /// Every answer, those aside last.
    pub fn all(&self) -> impl Iterator<Item = &Answered> {
        self.answers.iter().chain(&self.aside)
    }

    /// The answers that are kept aside.
    pub fn aside(&self) -> impl Iterator<Item = &Answered> {
        self.aside.iter()
    }

    /// Moves answers that contradict a model, some of them if there are many, from those aside to the others.
    /// Whether there were any.
    pub fn move_contradictions(&mut self, model: &Model) -> bool {
        let Ok(mut executor) = Scalar::new(model) else { return false };
        let (kept, moved): (Vec<Answered>, Vec<Answered>) = std::mem::take(&mut self.aside)
            .into_iter()
            .partition(|answered| fit::explains(&mut executor, answered));
        let any = !moved.is_empty();
        let step = moved.len().div_ceil(MOVED).max(1);
        self.aside = kept;
        for (index, answered) in moved.into_iter().enumerate() {
            if index % step == 0 {
                self.answers.push(answered);
            } else {
                self.aside.push(answered);
            }
        }
        any
    }

    /// The answers to all questions of these probes that have not been asked yet, in one round with what waits for it.
    fn answered(&mut self, probes: Vec<Probe>) -> Result<Vec<Answered>, DeviceError> {
        let Waiting { probes: waiting, again } = std::mem::take(&mut self.waiting);
        let mut seen = HashSet::new();
        let own = self.unasked(probes, &mut seen);
        let number = own.len();
        let all: Vec<(usize, DotAdd)> = own.into_iter().chain(self.unasked(waiting, &mut seen)).collect();
        let from = all.len();
        let questions: Vec<DotAdd> =
            all.iter().map(|(_, question)| question).chain(&again).cloned().collect();
        let answers = self.run(&questions)?;
        let keep = |((probe, question), &answer): ((usize, DotAdd), &u64)| {
            self.known.insert(question.clone(), answer);
            Answered::new(&self.signature, probe, question, answer)
        };
        let mut answered: Vec<Answered> = all.into_iter().zip(&answers).map(keep).collect();
        self.answers.extend(answered.split_off(number));
        if !again.is_empty() {
            self.again = Some(Again { questions, answers, from });
        }
        Ok(answered)
    }

    /// The questions of these probes that have not been asked yet, nor seen, each with the number of its probe.
    fn unasked(&mut self, probes: Vec<Probe>, seen: &mut HashSet<DotAdd>) -> Vec<(usize, DotAdd)> {
        let mut fresh = Vec::new();
        for probe in probes {
            let asked = Asked { name: probe.name, question: probe.question, source: probe.source };
            let index = self.probes.iter().position(|known| *known == asked).unwrap_or_else(|| {
                self.probes.push(asked);
                self.probes.len() - 1
            });
            for question in probe.dot_adds {
                if !self.known.contains_key(&question) && seen.insert(question.clone()) {
                    fresh.push((index, question));
                }
            }
        }
        fresh
    }

    /// Asks questions in one round, without keeping the answers.
    ///
    /// # Errors
    /// If the device fails.
    pub fn run(&mut self, questions: &[DotAdd]) -> Result<Vec<u64>, DeviceError> {
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        self.rounds += 1;
        self.dot_adds += questions.len() as u64;
        let batch = batch::batch_of(self.instruction, questions);
        let d = self.device.run(self.instruction, &batch)?;
        Ok(batch::answers(self.instruction, questions.len(), &d))
    }

    /// The answer to a question that has been asked.
    pub fn answer(&self, question: &DotAdd) -> Option<u64> {
        self.known.get(question).copied()
    }
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{FP16, FP32};

    use super::*;
    use crate::inference::{asking, testing};

    #[test]
    fn what_a_part_holds_models_against_counts_for_the_whole() {
        let signature = testing::signature(2);
        let model = Model::chain_of_fma(FP16, FP32, 2);
        let device = testing::device(&signature, model.clone(), (1, 1));
        let mut whole = Evidence::with_work(&device, &device.instructions()[0], 1_000_000);
        asking::first(&mut whole, 1).expect("it answers");
        let part = whole.part(20);
        assert!(
            part.all().map(|answered| &answered.question).eq(whole.all().map(|answered| &answered.question))
        );
        let answers: Vec<&Answered> = part.answers.iter().collect();
        assert_eq!(part.work().contradicted(&model, &answers, 1), 0);
        assert!(part.work().is_spent() && part.budget(1_000_000).is_spent());
        assert!(whole.work().spent() == part.work().spent() && !whole.work().is_spent());
    }
}
