//! Holding a model against the device on fresh random inputs.

use mmaprobe_model::Model;
use mmaprobe_model::tree::NanRule;
use mmaprobe_probes::DotAdd;
use mmaprobe_probes::boundaries::Boundaries;
use mmaprobe_probes::random::{self, Distribution};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::evidence::Evidence;
use super::trust::{self, Distrust};
use super::{Counterexample, Options, Progress, Silent, asking};
use crate::device::simulated::Simulated;
use crate::device::{Device, DeviceError, Identity, Instruction, Provenance};
use crate::validation::{
    self, Changed, Mismatch, Nans, Outcome, Plan, SparseMismatch, SparsePlan, ValidationError,
};

/// What fresh inputs say of a model.
pub enum Verdict {
    /// None contradicts it: the validation, if there was one.
    Holds(Option<(Plan, Outcome)>),
    /// One contradicts it.
    Contradicted {
        /// The shrunk input.
        counterexample: Counterexample,
        /// The validation up to it.
        validation: (Plan, Outcome),
    },
    /// The device answers the same question in two ways.
    Noise(Distrust),
}

/// How many inputs a model is validated on.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// From every distribution; 0 for no validation.
    dot_adds: u64,
    /// With few summands. They cost little, and a rule that is wrong where few summands meet may show in one of ten
    /// thousands.
    sparse: u64,
    /// Whether some are asked in batches of one problem, and in large ones.
    in_other_batches: bool,
}

/// Of the inputs that a model is validated on, one of so many as are tried before it is told from others.
const SCREENED: u64 = 5;
/// Rules of a model that are many: it takes long to tell from others and is often wrong where few inputs show it, so that
/// `MUCH` times as many inputs are tried before as after, and as many with few summands; but no more than `MOST_SCREENED`,
/// if these are not fewer than are tried of others.
const MANY_RULES: usize = 4;
const MUCH: u64 = 4;
const MOST_SCREENED: u64 = 400_000;
/// Further counterexamples that are looked for where one has been found.
const FURTHER: u64 = 3;
/// Sets the seeds of those apart from others.
const FURTHER_SEED: u64 = 0x94d0_49bb_1331_11eb;

/// Inputs with few summands, at first: so many times the others, up to this number; and always so many times at least.
const MORE_SPARSE: u64 = 10;
const MANY_SPARSE: u64 = 400_000;
const AT_LEAST: u64 = 2;
/// Times that the numbers are doubled, at most.
const MOST_DOUBLED: u32 = 3;

impl Number {
    /// As many as the caller chooses.
    pub fn of(options: &Options) -> Number {
        let times = |times: u64| options.validate.saturating_mul(times);
        let sparse = times(MORE_SPARSE).min(MANY_SPARSE).max(times(AT_LEAST));
        Number { dot_adds: options.validate, sparse, in_other_batches: true }
    }

    /// After validation has refuted so many models: what replaces them is wrong more rarely, and may still be.
    pub fn doubled(self, refuted: u32) -> Number {
        let times = 1 << refuted.min(MOST_DOUBLED);
        let [dot_adds, sparse] = [self.dot_adds, self.sparse].map(|number| number.saturating_mul(times));
        Number { dot_adds, sparse, ..self }
    }

    /// For a first look at a model.
    pub fn screen(self, model: &Model) -> Number {
        let many = model.tree.rules.len() > MANY_RULES;
        let screened = |number: u64, times: u64| {
            let much = number.saturating_mul(times).min(MOST_SCREENED);
            (number / SCREENED).max(if many { much } else { 0 })
        };
        let (dot_adds, sparse) = (screened(self.dot_adds, MUCH), screened(self.sparse, 1));
        Number { dot_adds, sparse, in_other_batches: false }
    }
}

/// Compares the model with the device on fresh random inputs.
///
/// # Errors
/// If the device fails.
pub fn validate(
    evidence: &mut Evidence,
    model: &Model,
    number: Number,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Verdict, DeviceError> {
    let (device, instruction) = (evidence.device(), evidence.instruction());
    if number.dot_adds == 0 {
        return Ok(Verdict::Holds(None));
    }
    let elements = (instruction.m * instruction.n) as u64;
    let nans =
        if model.nan == NanRule::Unknown && instruction.d.has_nan() { Nans::AsOne } else { Nans::Bits };
    let plan = Plan {
        sets: number.dot_adds.div_ceil(elements),
        seed,
        distributions: evidence.asked_from().to_vec(),
        nans,
    };
    let identity = Identity {
        name: "model".to_string(),
        description: "the model found".to_string(),
        properties: Vec::new(),
        provenance: Provenance::Simulated,
        absent: Vec::new(),
    };
    let simulated = Simulated::new(identity, vec![(instruction.clone(), model.clone())])
        .expect("a fitted model can be executed");
    progress.step("validating", Some(plan.sets * elements));
    let advance = |sets: u64| progress.advance(sets * elements);
    let outcome = compared(evidence, &simulated, &plan, &advance)?;
    let Some(mismatch) = outcome.mismatch.clone() else {
        if number.in_other_batches {
            if let Some(verdict) = alone(evidence, &simulated, &plan)? {
                return Ok(verdict);
            }
            if let Some(verdict) = crowded(evidence, &simulated, &plan)? {
                return Ok(verdict);
            }
        }
        let sparse = SparsePlan {
            dot_adds: number.sparse,
            seed: plan.seed.wrapping_mul(SPARSE),
            nans: plan.nans,
            boundaries: Boundaries::of(model),
        };
        let modelled = (&simulated, &simulated.instructions()[0]);
        return match validation::sparse_mismatch((device, instruction), modelled, &sparse)? {
            None => Ok(Verdict::Holds(Some((plan, outcome)))),
            Some(SparseMismatch { changed: Some(changed), .. }) => noise(evidence, changed, sparse.seed),
            Some(SparseMismatch { question, answers: (device, model), .. }) => {
                let counterexample = Counterexample { question, device, model };
                Ok(Verdict::Contradicted { counterexample, validation: (plan, outcome) })
            }
        };
    };
    contradicted(evidence, mismatch, (plan, outcome))
}

/// What a mismatch says: that the model is wrong, or that the device has answered a question in two ways.
fn contradicted(
    evidence: &mut Evidence,
    mismatch: Mismatch,
    validation: (Plan, Outcome),
) -> Result<Verdict, DeviceError> {
    let Mismatch { shrunk, shrunk_answers, reproduced_alone, changed, failure, .. } = mismatch;
    if let Some(changed) = changed {
        return noise(evidence, changed, validation.0.seed);
    }
    // A device that failed before it answered alone has answered in one way.
    if let Some(failure) = failure.filter(|_| !reproduced_alone) {
        return Err(failure);
    }
    let counterexample =
        Counterexample { question: shrunk, device: shrunk_answers.0, model: shrunk_answers.1 };
    Ok(Verdict::Contradicted { counterexample, validation })
}

/// Asks the counterexample of a refuted model, others like it, and around them: what is wrong in one way may be so in
/// several. `Some` if the device answers one of them otherwise than before.
///
/// # Errors
/// If the device fails.
pub fn learn(
    evidence: &mut Evidence,
    model: &Model,
    counterexample: Counterexample,
    number: Number,
    seed: u64,
) -> Result<Option<Distrust>, DeviceError> {
    let mut all = vec![counterexample];
    for further in 1..=FURTHER {
        let seed = seed.wrapping_add(further).wrapping_mul(FURTHER_SEED);
        match validate(evidence, model, Number { in_other_batches: false, ..number }, seed, &Silent)? {
            Verdict::Contradicted { counterexample, .. } => all.push(counterexample),
            Verdict::Holds(_) => break,
            Verdict::Noise(distrust) => return Ok(Some(distrust)),
        }
    }
    asking::around(evidence, all.iter().map(|counterexample| &counterexample.question))?;
    Ok(all.iter().find_map(|counterexample| answered_otherwise(evidence, counterexample)))
}

/// A device that has answered the question of a counterexample otherwise when it was asked for the evidence: then nothing
/// there need contradict the model.
fn answered_otherwise(evidence: &Evidence, counterexample: &Counterexample) -> Option<Distrust> {
    let Counterexample { question, device, .. } = counterexample;
    let other = evidence.answer(question).filter(|other| other != device)?;
    let (question, answers) = (question.clone(), (*device, other));
    Some(Distrust::NotDeterministic { question, answers, between: "two times of asking" })
}

/// Sets the seeds of questions with few summands apart from others.
const SPARSE: u64 = 0xd1b5_4a32_d192_ed03;

/// Names a device that has answered a question in two ways: what an answer depends on shows where it comes again.
fn noise(evidence: &mut Evidence, changed: Changed, seed: u64) -> Result<Verdict, DeviceError> {
    let Changed { question, answers } = changed;
    let (device, instruction) = (evidence.device(), evidence.instruction());
    let like = like(&question, instruction, evidence.asked_from(), seed);
    let questions = [vec![question.clone()], like].concat();
    let problems = validation::sets_per_block(instruction) as usize;
    let (distrust, spent) = trust::check_on(device, instruction, &questions, problems)?;
    evidence.rounds += spent.rounds;
    evidence.dot_adds += spent.dot_adds;
    let between = "an element among others and alone";
    let unknown = Distrust::NotDeterministic { question, answers, between };
    Ok(Verdict::Noise(distrust.unwrap_or(unknown)))
}

/// Compares the device with a model of its instruction.
fn compared(
    evidence: &Evidence,
    simulated: &Simulated,
    plan: &Plan,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Outcome, DeviceError> {
    let (device, instruction) = (evidence.device(), evidence.instruction());
    match validation::validate(device, instruction, simulated, instruction, plan, progress) {
        Ok(outcome) => Ok(outcome),
        Err(ValidationError::Device(error)) => Err(error),
        Err(error) => unreachable!("the model is that of the instruction: {error}"),
    }
}

/// Compares a model that holds in the batches of a plan with the device in one as large as any, where the plan has none:
/// a device may compute otherwise in those.
fn crowded(
    evidence: &mut Evidence,
    simulated: &Simulated,
    plan: &Plan,
) -> Result<Option<Verdict>, DeviceError> {
    let sets = validation::sets_per_block(evidence.instruction());
    if plan.sets >= sets {
        return Ok(None);
    }
    let crowd = Plan { sets, seed: plan.seed.wrapping_mul(CROWDED), ..plan.clone() };
    let outcome = compared(evidence, simulated, &crowd, &|_| {})?;
    let Some(mismatch) = outcome.mismatch.clone() else { return Ok(None) };
    contradicted(evidence, mismatch, (crowd, outcome)).map(Some)
}

/// Sets the seeds of large batches apart from others.
const CROWDED: u64 = 0xa076_1d64_78bd_642f;

/// Problems that are asked in batches of one.
const ALONE: u64 = 64;
/// Problems of a batch that shows what is answered among others: an even number.
const AMONG: usize = 300;

/// Compares a model that holds in large batches with the device in batches of a single problem. What differs
/// is asked again among others: a device that then answers as the model does is not the same everywhere.
fn alone(
    evidence: &mut Evidence,
    simulated: &Simulated,
    plan: &Plan,
) -> Result<Option<Verdict>, DeviceError> {
    let instruction = evidence.instruction();
    for index in 0..ALONE {
        let distribution = plan.distributions[index as usize % plan.distributions.len()];
        let seed = plan.seed.wrapping_add(index).wrapping_mul(SINGLE);
        let single = Plan { sets: 1, seed, distributions: vec![distribution], ..plan.clone() };
        let outcome = compared(evidence, simulated, &single, &|_| {})?;
        let Some(mismatch) = outcome.mismatch.clone() else { continue };
        let Mismatch { question, answers, .. } = &mismatch;
        let problems = vec![question.clone(); AMONG * instruction.m * instruction.n];
        let among = evidence.run(&problems)?;
        if let Some(&other) = among.iter().find(|&&answer| answer != answers.0) {
            let (answers, between) = ((answers.0, other), "a problem alone and among others");
            let question = question.clone();
            return Ok(Some(Verdict::Noise(Distrust::NotDeterministic { question, answers, between })));
        }
        return contradicted(evidence, mismatch, (single, outcome)).map(Some);
    }
    Ok(None)
}

/// Sets the seeds of single problems apart from others.
const SINGLE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Random questions to ask beside one that had two answers.
fn like(
    question: &DotAdd,
    instruction: &Instruction,
    distributions: &[Distribution],
    seed: u64,
) -> Vec<DotAdd> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let signature = instruction.signature();
    let others = distributions.iter().map(|&each| random::dot_add(each, &signature, &mut rng));
    // The one in question stands at several places.
    others.flat_map(|other| [other, question.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use mmaprobe_machines::{Machine, Unit};
    use mmaprobe_model::format;

    use super::*;
    use crate::device::machine::MachineDevice;
    use crate::device::{Batch, Fault};

    /// A sound device that fails in one of its calls.
    struct Failing {
        sound: MachineDevice,
        calls_left: AtomicUsize,
    }

    impl Device for Failing {
        fn identity(&self) -> &Identity {
            self.sound.identity()
        }

        fn instructions(&self) -> &[Instruction] {
            self.sound.instructions()
        }

        fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
            if self.calls_left.fetch_sub(1, Ordering::Relaxed) == 0 {
                let fault = Fault::Refused("once".to_string());
                return Err(DeviceError { device: self.identity().name.clone(), fault });
            }
            self.sound.run(instruction, batch)
        }
    }

    /// A wrong model and a device that fails while it is asked alone: nothing that is said of the device.
    #[test]
    fn a_device_that_fails_once_is_not_called_no_function() {
        let machine = Machine::chain_of_fma(mmaprobe_machines::format::FP16, 2);
        let mut wrong = Model::chain_of_fma(format::FP16, format::FP16, 2);
        let round = wrong.tree.rules[0].round_to().expect("it is rounded");
        round.rounding = mmaprobe_model::Rounding::Up;
        let number = Number { dot_adds: 100, sparse: 100, in_other_batches: true };
        let verdict = |calls_left| {
            let sound = MachineDevice::new("machine", Unit::sound(machine.clone()));
            let device = Failing { sound, calls_left: AtomicUsize::new(calls_left) };
            let mut evidence = Evidence::new(&device, &device.instructions()[0]);
            validate(&mut evidence, &wrong, number, 1, &Silent)
        };
        // The first call shows the mismatch; the second one asks it alone.
        let error = verdict(1).err().expect("it fails");
        assert!(error.to_string().contains("once"), "{error}");
        for calls in 2..20 {
            assert!(!matches!(verdict(calls), Ok(Verdict::Noise(_))), "it fails in call {calls}");
        }
        assert!(matches!(verdict(usize::MAX), Ok(Verdict::Contradicted { .. })));
    }

    #[test]
    fn models_of_many_rules_stand_more_before_they_are_told_apart() {
        let few = Model::chain_of_fma(format::FP16, format::FP32, 4);
        let mut many = few.clone();
        many.tree.rules = vec![few.tree.rules[0].clone(); MANY_RULES + 1];
        let screened = |validate: u64, model: &Model| {
            let Number { dot_adds, sparse, .. } = Number::of(&Options { validate, seed: 1 }).screen(model);
            (dot_adds, sparse)
        };
        assert_eq!(screened(25_000, &few), (5_000, 50_000));
        assert_eq!(screened(25_000, &many), (100_000, 250_000));
        assert_eq!(screened(1_000_000, &few), (200_000, 400_000));
        assert_eq!(screened(1_000_000, &many), (MOST_SCREENED, MOST_SCREENED));
        assert_eq!(screened(10_000_000, &many), screened(10_000_000, &few));
        assert_eq!(screened(0, &many), (0, 0), "no validation");
    }
}
