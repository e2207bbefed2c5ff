//! The comparison of one instruction: what differs, and the smallest inputs found that show it.

use mmaprobe_model::Model;
use mmaprobe_model::scalar::Scalar;
use rayon::prelude::*;

use super::aspects::{self, Difference};
use super::{Side, inputs};
use crate::batch;
use crate::device::{DeviceError, Instruction, run_checked};
use crate::inference::directed;
use crate::probes::random::Distribution;
use crate::probes::{DotAdd, Signature};
use crate::shrink::{cost, shrink};
use crate::validation::{self, Nans, ValidationError, differ, validate};

/// How thoroughly to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Random output elements of each instruction that nothing else tells apart.
    pub random: u64,
    /// The seed of everything random.
    pub seed: u64,
    /// Whether all NaNs are the same.
    pub any_nan: bool,
}

/// What became of a pair of instructions.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The first device's instruction.
    pub first: Instruction,
    /// The second's.
    pub second: Instruction,
    /// Whether both sides execute trees that are the same; `None` where a side has none.
    pub same_tree: Option<bool>,
    /// What differs.
    pub differences: Vec<Shown>,
    /// Inputs on which both devices, or the trees that they execute, were compared.
    pub tried: u64,
    /// How NaNs were compared.
    pub nans: Nans,
}

/// A difference, and what shows it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What differs, in words.
    pub what: &'static str,
    /// What the first side has.
    pub first: String,
    /// What the second side has.
    pub second: String,
    /// The smallest input found that shows it, if any does.
    pub example: Option<Example>,
}

/// An input on which two devices differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The input.
    pub question: DotAdd,
    /// What the devices answer.
    pub answers: (u64, u64),
}

impl Comparison {
    /// Whether the devices were seen to differ.
    pub fn is_different(&self) -> bool {
        self.differences.iter().any(|shown| shown.example.is_some())
    }
}

/// Inputs that are shrunk for each difference, the simplest first.
const SHRUNK: usize = 4;
/// Questions in one batch.
const BATCH: usize = 2048;
/// Questions that models decide before a device is asked.
const FEW: usize = 64;
/// Inputs from which the search inside of trees starts.
const STARTS: usize = 4000;

/// The two instructions of a pair on their devices.
struct Duel<'d> {
    sides: [&'d Side<'d>; 2],
    instructions: [&'d Instruction; 2],
    signature: Signature,
    nans: Nans,
}

/// Answers of both sides to questions.
type Answers = Vec<(u64, u64)>;

impl Duel<'_> {
    /// What the devices answer.
    fn ask(&self, questions: &[DotAdd]) -> Result<Answers, DeviceError> {
        let mut answers = Vec::with_capacity(questions.len());
        for chunk in questions.chunks(BATCH) {
            let batch = batch::batch_of(self.instructions[0], chunk);
            let ask = |side: usize| {
                let instruction = self.instructions[side];
                let answer = run_checked(self.sides[side].device, instruction, &batch)?;
                Ok(batch::answers(instruction, chunk.len(), &answer))
            };
            answers.extend(ask(0)?.into_iter().zip(ask(1)?));
        }
        Ok(answers)
    }

    fn differ(&self, answers: (u64, u64)) -> bool {
        differ(&self.signature.d, self.nans, answers)
    }
}

/// Compares two instructions that take and give the same things.
///
/// Deterministic for a plan, whatever the number of threads.
///
/// # Errors
/// If a device fails.
pub fn compare(
    sides: [&Side; 2],
    instructions: (&Instruction, &Instruction),
    plan: &Plan,
) -> Result<Comparison, DeviceError> {
    let (first, second) = instructions;
    let mean_bits = sides[0].device.means_nan_bits(first) && sides[1].device.means_nan_bits(second);
    let nans = if plan.any_nan || !mean_bits { Nans::AsOne } else { Nans::Bits };
    let duel = Duel { sides, instructions: [first, second], signature: first.signature(), nans };
    let model = |side: &Side, instruction| side.trees.and_then(|trees| trees.model(instruction)).cloned();
    let either = [model(sides[0], first), model(sides[1], second)];
    // One side's tree says where to look as well.
    let trees: Vec<&Model> = either.iter().flatten().collect();
    let models = match &either {
        [Some(one), Some(other)] => Some((one, other)),
        _ => None,
    };
    let differences = models.map(|(one, other)| aspects::differences(one, other));
    let same_tree = differences.as_ref().map(Vec::is_empty);
    let mut comparison = Comparison {
        first: first.clone(),
        second: second.clone(),
        same_tree,
        differences: Vec::new(),
        tried: 0,
        nans,
    };
    // The same tree twice has no input that shows a difference: random ones are for the devices' sake.
    if same_tree != Some(true) {
        let pool = inputs::pool(&duel.signature, &trees, plan.seed);
        comparison.tried = pool.len() as u64;
        let answers = duel.ask(&pool)?;
        let differing: Vec<&DotAdd> =
            pool.iter().zip(&answers).filter(|(_, answers)| duel.differ(**answers)).map(|(q, _)| q).collect();
        let search = Search { duel: &duel, models, pool: &pool, differing, seed: plan.seed };
        comparison.differences = search.explain(differences.unwrap_or_default())?;
    }
    if !comparison.is_different() {
        let (sets, found) = random(&duel, plan)?;
        comparison.tried += sets;
        if let Some(question) = found {
            let none = Search { duel: &duel, models: None, pool: &[], differing: vec![&question], seed: 0 };
            comparison.differences.extend(none.explain(Vec::new())?);
        }
    }
    Ok(comparison)
}

/// Compares the devices on random matrices; returns how many elements agreed, and one that does not.
fn random(duel: &Duel, plan: &Plan) -> Result<(u64, Option<DotAdd>), DeviceError> {
    let [first, second] = duel.instructions;
    let sets = plan.random.div_ceil((first.m * first.n) as u64);
    if sets == 0 {
        return Ok((0, None));
    }
    let edition = duel.sides[0].device.edition().min(duel.sides[1].device.edition());
    let distributions = Distribution::asked_in(edition).to_vec();
    let plan = validation::Plan { sets, seed: plan.seed, distributions, nans: duel.nans };
    let outcome = validate(duel.sides[0].device, first, duel.sides[1].device, second, &plan, &|_| {});
    match outcome {
        Ok(outcome) => Ok((outcome.dot_adds, outcome.mismatch.map(|mismatch| mismatch.shrunk))),
        Err(ValidationError::Device(error)) => Err(error),
        Err(error) => unreachable!("the instructions have been compared before: {error}"),
    }
}

/// The search for inputs that show differences.
struct Search<'s> {
    duel: &'s Duel<'s>,
    models: Option<(&'s Model, &'s Model)>,
    pool: &'s [DotAdd],
    /// The inputs of the pool on which the devices differ.
    differing: Vec<&'s DotAdd>,
    seed: u64,
}

impl Search<'_> {
    /// Each difference with the smallest input that shows it; and where none shows one, the smallest on
    /// which the devices differ at all.
    fn explain(&self, differences: Vec<Difference>) -> Result<Vec<Shown>, DeviceError> {
        let mut all = Vec::new();
        for difference in differences {
            let example = match &difference.alone {
                Some(alone) => self.example(Some(alone))?,
                None => None,
            };
            let Difference { what, first, second, .. } = difference;
            all.push(Shown { what, first, second, example });
        }
        if all.iter().all(|shown| shown.example.is_none())
            && let Some(example) = self.example(None)?
        {
            let what = if all.is_empty() { "answers" } else { "all of that together" };
            all.push(Shown { what, first: String::new(), second: String::new(), example: Some(example) });
        }
        Ok(all)
    }

    /// The smallest input found on which the devices differ, and the first model from this one as well: if
    /// there is one, an input on which this one gives what the second does, so that nothing else is needed
    /// to account for the difference.
    fn example(&self, alone: Option<&Model>) -> Result<Option<Example>, DeviceError> {
        let Some(alone) = alone else { return self.smallest(Wanted::Any) };
        match self.smallest(Wanted::All(alone))? {
            Some(example) => Ok(Some(example)),
            None => self.smallest(Wanted::Part(alone)),
        }
    }

    fn smallest(&self, wanted: Wanted) -> Result<Option<Example>, DeviceError> {
        let signature = &self.duel.signature;
        let mut told = self.told(wanted);
        let mut starts: Vec<&DotAdd> =
            self.differing.iter().copied().filter(|question| told.show(question)).collect();
        starts.sort_by_cached_key(|question| (cost(signature, question), (*question).clone()));
        starts.dedup();
        let mut starts: Vec<DotAdd> = starts.into_iter().take(SHRUNK).cloned().collect();
        if let (true, Some((first, _)), Wanted::Part(alone)) = (starts.is_empty(), self.models, wanted) {
            // At its end the pool holds random inputs, which are what this search begins with.
            let from = self.pool.len().saturating_sub(STARTS);
            let pool = directed::decoded(signature, &self.pool[from..]);
            let how = (directed::Search::Thorough, self.seed);
            let others = directed::Others { models: &[alone], searched: &[0] };
            let found = directed::search(signature, first, &others, &pool, directed::Kept::default(), how);
            starts.extend(found.into_iter().filter_map(directed::Told::first));
        }
        let found: Vec<Option<DotAdd>> =
            starts.par_iter().map(|start| self.shrunk(start, wanted)).collect::<Result<_, DeviceError>>()?;
        let smallest = found.into_iter().flatten().min_by_key(|q| (cost(signature, q), q.clone()));
        let Some(question) = smallest else { return Ok(None) };
        let answers = self.duel.ask(std::slice::from_ref(&question))?[0];
        Ok(Some(Example { question, answers }))
    }

    /// The input shrunk, if it shows what it is to show.
    fn shrunk(&self, start: &DotAdd, wanted: Wanted) -> Result<Option<DotAdd>, DeviceError> {
        let mut shows = |questions: &[DotAdd]| self.show(questions, wanted);
        if !shows(std::slice::from_ref(start))?[0] {
            return Ok(None);
        }
        let shrunk = shrink(start, &self.duel.signature, &mut shows)?;
        self.moved_forward(shrunk, wanted).map(Some)
    }

    /// The same on products as far in front as still shows it: all of them moved together, then each.
    fn moved_forward(&self, mut question: DotAdd, wanted: Wanted) -> Result<DotAdd, DeviceError> {
        let is_live = |question: &DotAdd, k: usize| (question.a[k], question.b[k]) != (0, 0);
        let k = question.a.len();
        let before = (0..k).take_while(|&at| !is_live(&question, at)).count();
        if before == k {
            return Ok(question);
        }
        let together = (1..=before).rev().map(|by| {
            let mut moved = question.clone();
            moved.a.rotate_left(by);
            moved.b.rotate_left(by);
            moved
        });
        question = self.first_shown(together.collect(), wanted)?.unwrap_or(question);
        for from in 0..k {
            if !is_live(&question, from) {
                continue;
            }
            let each = (0..from).filter(|&to| !is_live(&question, to)).map(|to| {
                let mut moved = question.clone();
                moved.a.swap(from, to);
                moved.b.swap(from, to);
                moved
            });
            question = self.first_shown(each.collect(), wanted)?.unwrap_or(question);
        }
        Ok(question)
    }

    /// The first of some questions that shows it.
    fn first_shown(&self, mut questions: Vec<DotAdd>, wanted: Wanted) -> Result<Option<DotAdd>, DeviceError> {
        let first = self.show(&questions, wanted)?.iter().position(|&shows| shows);
        Ok(first.map(|first| questions.swap_remove(first)))
    }

    fn told<'m>(&'m self, wanted: Wanted<'m>) -> Told<'m> {
        let scalar = |model: &'m Model| Scalar::new(model).expect("a model that has been checked");
        let alone = match wanted {
            Wanted::Any => None,
            Wanted::Part(alone) | Wanted::All(alone) => Some(scalar(alone)),
        };
        Told {
            first: self.models.map(|(first, _)| scalar(first)),
            second: self.models.map(|(_, second)| scalar(second)),
            alone,
            accounts: matches!(wanted, Wanted::All(_)),
            nans: self.duel.nans,
        }
    }

    /// Which questions show it; after the first that does, the rest is not looked at. The devices are asked
    /// only where the models differ, which costs less.
    fn show(&self, questions: &[DotAdd], wanted: Wanted) -> Result<Vec<bool>, DeviceError> {
        let mut show = vec![false; questions.len()];
        let mut told = self.told(wanted);
        // A device that is far away is asked once; models decide few at a time.
        let step = if self.models.is_none() { questions.len().max(1) } else { FEW };
        for from in (0..questions.len()).step_by(step) {
            let here = from..(from + step).min(questions.len());
            let chosen: Vec<usize> = here.filter(|&index| told.show(&questions[index])).collect();
            let asked: Vec<DotAdd> = chosen.iter().map(|&index| questions[index].clone()).collect();
            let answers = self.duel.ask(&asked)?;
            let shown = chosen.iter().zip(&answers).find(|(_, answers)| self.duel.differ(**answers));
            if let Some((&index, _)) = shown {
                show[index] = true;
                break;
            }
        }
        Ok(show)
    }
}

/// What an input is to show.
#[derive(Clone, Copy)]
enum Wanted<'m> {
    /// That the devices differ.
    Any,
    /// And that the first model, with something of the second, gives another result.
    Part(&'m Model),
    /// And that this is the second one's.
    All(&'m Model),
}

/// The models that decide whether an input is worth asking.
struct Told<'m> {
    /// The first, the second, and the first with something of the second.
    first: Option<Scalar<'m>>,
    second: Option<Scalar<'m>>,
    alone: Option<Scalar<'m>>,
    accounts: bool,
    nans: Nans,
}

impl Told<'_> {
    /// Whether an input shows what is wanted, as far as models can tell.
    fn show(&mut self, q: &DotAdd) -> bool {
        let (Some(first), Some(second)) = (&mut self.first, &mut self.second) else { return true };
        let format = first.model().d;
        let result = |executor: &mut Scalar| executor.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb);
        let (x, y) = (result(first), result(second));
        if !differ(&format, self.nans, (x, y)) {
            return false;
        }
        let Some(alone) = &mut self.alone else { return true };
        let z = result(alone);
        differ(&format, self.nans, (x, z)) && !(self.accounts && differ(&format, self.nans, (y, z)))
    }
}
