//! Trying the inference on machines that nobody has seen.
//!
//! Each random machine (`mmaprobe-machines`: drawn from a seed, with arithmetic of its own) is a
//! [`Device`] like any other, characterised as `characterize` does it. The sheet that comes out, written
//! and read again, is then held against the machine on fresh inputs: what it claims holds or does not.
//! Units that are no function have to be named as such.

pub mod details;
pub mod report;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mmaprobe_machines::{Unit, defect, features, generate, words};

use crate::batch::ask;
use crate::bits::{Shown, ShownDotAdd};
use crate::characterize::{Named, accusation, characterize};
use crate::device::machine::MachineDevice;
use crate::device::{Device, Instruction, sheet};
use crate::inference::{Options, Silent, distrusted};
use crate::probes::DotAdd;
use crate::probes::boundaries::Boundaries;
use crate::probes::random::Distribution;
use crate::sheet::schema::{self, Counterexample, NanPayloads};
use crate::sheet::{Entry, Sheet, Status, yaml};
use crate::validation::{self, Nans, SparseMismatch, SparsePlan};

/// What to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Seed of the machines, and of the fresh inputs.
    pub seed: u64,
    /// Sound machines.
    pub machines: u64,
    /// Units that are no function.
    pub defective: u64,
    /// Sound machines that are asked nothing but whether they are functions.
    pub functions: u64,
    /// Fresh dot-adds to hold each model against, after [`CLAIMED`] times as many that characterisation validates it on.
    pub validate: u64,
}

/// A model is claimed after it has been validated on so many times the inputs that it is held against afterwards. What
/// differs on one of some ten thousands of inputs would otherwise pass the first and fail the second one time in four.
pub const CLAIMED: u64 = 5;

/// One of the units that a seed gives. The same for any number of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Which {
    /// A sound machine, by its index.
    Machine(u64),
    /// A unit that is no function, by its index.
    Defective(u64),
    /// A sound machine that is asked nothing but whether it is a function, by its index.
    Function(u64),
}

impl Which {
    /// Makes the unit.
    pub fn unit(self, seed: u64) -> Unit {
        match self {
            Which::Machine(index) | Which::Function(index) => Unit::sound(generate::machine(seed, index)),
            Which::Defective(index) => defect::unit(seed, index),
        }
    }
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Which::Machine(index) => write!(f, "{index}"),
            Which::Defective(index) => write!(f, "d{index}"),
            Which::Function(index) => write!(f, "f{index}"),
        }
    }
}

impl std::str::FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Which, String> {
        let of_kind = |kind: char| text.strip_prefix(kind);
        let (digits, which): (&str, fn(u64) -> Which) = match (of_kind('d'), of_kind('f')) {
            (Some(digits), _) => (digits, Which::Defective),
            (None, Some(digits)) => (digits, Which::Function),
            (None, None) => (text, Which::Machine),
        };
        let index = digits.parse().map_err(|_| "an index is expected, such as 17, d3 or f17".to_string())?;
        Ok(which(index))
    }
}

/// What came of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// One model, equal to the machine on every fresh input.
    Found,
    /// A model with alternatives that no input told apart, equal on every fresh input.
    AmbiguousButEqual,
    /// Nothing is claimed, and a counterexample is shown.
    Unexplained,
    /// A claim that does not hold: a model that differs on a fresh input, a machine called no function,
    /// a counterexample that is none, a unit that is no function given a model.
    WrongClaim,
    /// A unit that is no function, called that.
    Detected,
    /// A unit that is no function, called unexplained.
    NotDetected,
    /// A sound machine that answered every question in one way, where nothing else was asked.
    NotAccused,
    /// The tool failed.
    Failed,
}

impl Verdict {
    /// All.
    pub const ALL: [Verdict; 8] = [
        Verdict::Found,
        Verdict::AmbiguousButEqual,
        Verdict::Unexplained,
        Verdict::WrongClaim,
        Verdict::Detected,
        Verdict::NotDetected,
        Verdict::NotAccused,
        Verdict::Failed,
    ];

    /// The verdict of this name, if there is one.
    pub fn named(name: &str) -> Option<Verdict> {
        Verdict::ALL.into_iter().find(|verdict| verdict.name() == name)
    }

    /// The word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Found => "found",
            Verdict::AmbiguousButEqual => "ambiguous but equal",
            Verdict::Unexplained => "unexplained",
            Verdict::WrongClaim => "WRONG CLAIM",
            Verdict::Detected => "detected",
            Verdict::NotDetected => "not detected",
            Verdict::NotAccused => "not accused",
            Verdict::Failed => "FAILED",
        }
    }

    /// Whether the tool did not keep what it promises.
    pub const fn is_failure(self) -> bool {
        matches!(self, Verdict::WrongClaim | Verdict::NotDetected | Verdict::Failed)
    }
}

/// A unit that was tried.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Which.
    pub which: Which,
    /// K.
    pub k: usize,
    /// The kind of its defect.
    pub defect: Option<String>,
    /// What is special about it.
    pub features: Vec<String>,
    /// It in words.
    pub description: String,
    /// What came of it.
    pub verdict: Verdict,
    /// Why, where that takes words: what was claimed, and what the unit does.
    pub reason: String,
    /// What its sheet says of it, in a word.
    pub status: Option<String>,
    /// What characterising it took.
    pub cost: Option<schema::Cost>,
    /// The sheet, if there is one.
    pub sheet: Option<Sheet>,
    /// How long it took. Not to be printed where output has to be the same every time.
    pub time: Duration,
}

/// Tries all units of a plan but those that are `known`, on as many threads as the current rayon pool has; `done` is told
/// of each as it ends. The outcome, what is known included, is in the order of the plan, sound machines first.
pub fn run(plan: &Plan, known: Vec<Tried>, done: &(dyn Fn(&Tried) + Sync)) -> Vec<Tried> {
    let units = (0..plan.machines).map(Which::Machine).chain((0..plan.defective).map(Which::Defective));
    let units = units.chain((0..plan.functions).map(Which::Function));
    let units: Vec<Which> = units.filter(|which| !known.iter().any(|tried| tried.which == *which)).collect();
    let next = AtomicU64::new(0);
    let all: Mutex<Vec<Tried>> = Mutex::new(known);
    std::thread::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(units.len()) {
            scope.spawn(|| {
                while let Some(&which) = units.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    let tried = attempt(plan, which, &Silent);
                    done(&tried);
                    all.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(tried);
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    all.sort_by_key(|tried| tried.which);
    all
}

/// Tries one unit; what is done with one that is characterised is shown as it goes.
///
/// It is asked from one thread: what a unit with a memory answers must not depend on how threads take
/// turns.
pub fn attempt(plan: &Plan, which: Which, shown: &(dyn Named + Sync)) -> Tried {
    let start = Instant::now();
    let unit = which.unit(plan.seed);
    let mut description = words::describe(&unit.machine);
    if let Some(defect) = &unit.defect {
        description = format!("{description}defect: {}\n", defect.describe());
    }
    let mut tried = Tried {
        which,
        k: unit.machine.k,
        defect: unit.defect.as_ref().map(|defect| defect.kind().to_string()),
        features: features::of(&unit.machine),
        description,
        verdict: Verdict::Failed,
        reason: String::new(),
        status: None,
        cost: None,
        sheet: None,
        time: Duration::ZERO,
    };
    let device = MachineDevice::new(&format!("machine {which} of seed {}", plan.seed), unit);
    let judged = rayon::ThreadPoolBuilder::new().num_threads(1).build().map(|pool| {
        let judge = || {
            pool.install(|| match which {
                Which::Function(_) => accused(&device).map(|(verdict, reason)| (None, verdict, reason)),
                _ => judge(&device, plan, which, shown)
                    .map(|(sheet, verdict, reason)| (Some(sheet), verdict, reason)),
            })
        };
        catch_unwind(AssertUnwindSafe(judge))
    });
    match judged {
        Ok(Ok(Ok((sheet, verdict, reason)))) => {
            let entry = sheet.as_ref().and_then(|sheet| sheet.instructions.first());
            tried.status = entry.map(|entry| entry.status.name().to_string());
            tried.cost = entry.and_then(|entry| entry.cost);
            tried.sheet = sheet;
            tried.verdict = verdict;
            tried.reason = reason;
        }
        Ok(Ok(Err(problem))) => tried.reason = problem,
        Ok(Err(panic)) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("");
            tried.reason = format!("it panicked: {text}");
        }
        Err(error) => tried.reason = format!("no thread could be started: {error}"),
    }
    tried.time = start.elapsed();
    tried
}

/// Whether a sound machine is called no function, and why. `Err` if the tool failed.
fn accused(device: &MachineDevice) -> Result<(Verdict, String), String> {
    let instruction = &device.instructions()[0];
    let found = distrusted(device, instruction, SEED).map_err(|error| error.to_string())?;
    Ok(match found {
        None => (Verdict::NotAccused, String::new()),
        Some(distrust) => {
            let (status, found) = accusation(instruction, &distrust);
            (Verdict::WrongClaim, called(instruction, status, Some(&found))?)
        }
    })
}

/// That a sound machine is called no function, with the question that it is said to have answered in two ways.
fn called(
    instruction: &Instruction,
    status: Status,
    found: Option<&Counterexample>,
) -> Result<String, String> {
    let mut text = format!("a sound machine is called {status}");
    if let Some(found) = found {
        let signature = instruction.signature();
        let question = question_of(found)?;
        let question = ShownDotAdd { signature: &signature, dot_add: &question };
        text += &format!(":\n{question}  first answer {}; {}\n", found.device, found.note);
    }
    Ok(text)
}

/// The sheet, whether what it says holds, and why not. `Err` if the tool failed.
fn judge(
    device: &MachineDevice,
    plan: &Plan,
    which: Which,
    shown: &dyn Named,
) -> Result<(Sheet, Verdict, String), String> {
    let instructions = device.instructions();
    let options = Options { validate: plan.validate.saturating_mul(CLAIMED), seed: SEED };
    let sheet =
        characterize(device, instructions, &options, None, shown).map_err(|error| error.to_string())?;
    let sheet = yaml::parse(&yaml::write(&sheet), Path::new("the sheet"))
        .map_err(|error| format!("the sheet cannot be read again: {error}"))?;
    let [entry] = &sheet.instructions[..] else {
        return Err(format!("the sheet has {} instructions, not 1", sheet.instructions.len()));
    };
    let is_defective = matches!(which, Which::Defective(_));
    let (verdict, reason) = match entry.status {
        Status::NotDeterministic | Status::NotUniform if is_defective => {
            (Verdict::Detected, entry.status.name().to_string())
        }
        Status::NotDeterministic | Status::NotUniform => {
            let found = entry.counterexample.as_ref();
            (Verdict::WrongClaim, called(&instructions[0], entry.status, found)?)
        }
        Status::Refuted | Status::Unexplained if is_defective => {
            (Verdict::NotDetected, format!("it is called {}", entry.status))
        }
        Status::Refuted | Status::Unexplained => admitted(device, entry)?,
        _ if is_defective => (Verdict::WrongClaim, "a unit that is no function got a sum tree".to_string()),
        Status::Characterized | Status::Ambiguous | Status::ModeWithoutEffect | Status::Published => {
            let seed = plan.seed.rotate_left(17) ^ plan.validate ^ FRESH;
            shown.named(&entry.name).step("fresh inputs", None);
            match mismatch(device, &sheet, plan.validate, seed)? {
                Some(counterexample) => (Verdict::WrongClaim, counterexample),
                None if is_ambiguous(entry) => (Verdict::AmbiguousButEqual, String::new()),
                None => (Verdict::Found, String::new()),
            }
        }
    };
    Ok((sheet, verdict, reason))
}

/// The seed of what is asked.
const SEED: u64 = 1;

/// Sets the seeds of fresh inputs apart from those that characterisation draws from.
const FRESH: u64 = 0x5e1f_7e57_f4e5_4000;

/// Whether a sheet names alternatives, or leaves NaNs open.
fn is_ambiguous(entry: &Entry) -> bool {
    let nans_open = entry.validation.as_ref().is_some_and(|v| v.nan_payloads == NanPayloads::NotCompared);
    entry.status == Status::Ambiguous
        || !entry.equivalent.is_empty()
        || !entry.ambiguous.is_empty()
        || nans_open
}

/// What is admitted needs a counterexample that is one: the machine answers as it says, and, where there
/// is a model, otherwise than that.
fn admitted(device: &MachineDevice, entry: &Entry) -> Result<(Verdict, String), String> {
    let instruction = &device.instructions()[0];
    let Some(found) = &entry.counterexample else {
        return Ok((Verdict::WrongClaim, format!("{} without a counterexample", entry.status)));
    };
    let question = question_of(found)?;
    let said = bits_of(&found.device)?;
    let answer =
        ask(device, instruction, std::slice::from_ref(&question)).map_err(|error| error.to_string())?[0];
    let signature = instruction.signature();
    let shown = |bits| Shown { format: &signature.d, bits };
    let mut text = format!("{}", ShownDotAdd { signature: &signature, dot_add: &question });
    text += &format!("  machine  {}\n", shown(answer));
    if answer != said {
        text += &format!("  claimed  {}\n", shown(said));
        return Ok((Verdict::WrongClaim, format!("its counterexample is none:\n{text}")));
    }
    if let Some(model) = &found.model {
        let model = bits_of(model)?;
        text += &format!("  best fit {}\n", shown(model));
        if model == answer {
            return Ok((Verdict::WrongClaim, format!("its counterexample is none:\n{text}")));
        }
    }
    Ok((Verdict::Unexplained, text))
}

fn bits_of(hex: &str) -> Result<u64, String> {
    let digits = hex.trim_start_matches("0x");
    u64::from_str_radix(digits, 16).map_err(|_| format!("{hex:?} in a sheet is no bit pattern"))
}

pub(crate) fn question_of(found: &Counterexample) -> Result<DotAdd, String> {
    let all = |texts: &[String]| texts.iter().map(|text| bits_of(text)).collect::<Result<Vec<u64>, String>>();
    let Counterexample { a, b, c, sa, sb, .. } = found;
    Ok(DotAdd { a: all(a)?, b: all(b)?, c: bits_of(c)?, sa: all(sa)?, sb: all(sb)? })
}

/// Questions with few summands that a sheet is held against, for each of the others.
const SPARSE: u64 = 2;

/// A fresh input on which the sheet and the machine differ, in words: so many from every distribution, and
/// [`SPARSE`] times as many with few summands.
fn mismatch(
    device: &MachineDevice,
    sheet: &Sheet,
    dot_adds: u64,
    seed: u64,
) -> Result<Option<String>, String> {
    let instruction = &device.instructions()[0];
    let found = sheet::simulate(sheet, "the sheet".to_string()).map_err(|error| error.to_string())?;
    let claimed = &found.instructions()[0];
    let nans = if found.means_nan_bits(claimed) { Nans::Bits } else { Nans::AsOne };
    let sets = dot_adds.div_ceil((instruction.m * instruction.n) as u64);
    let plan = validation::Plan { sets, seed, distributions: Distribution::ALL.to_vec(), nans };
    let outcome = validation::validate(device, instruction, &found, claimed, &plan, &|_| {})
        .map_err(|error| error.to_string())?;
    if let Some(mismatch) = outcome.mismatch {
        return Ok(Some(mismatch.describe(&instruction.signature(), ("machine", "sheet"))));
    }
    let boundaries = found.model(&claimed.name).map(Boundaries::of);
    let plan = SparsePlan {
        dot_adds: dot_adds.saturating_mul(SPARSE),
        seed,
        nans,
        boundaries: boundaries.unwrap_or_default(),
    };
    let sparse = validation::sparse_mismatch((device, instruction), (&found, claimed), &plan);
    Ok(sparse.map_err(|error| error.to_string())?.map(
        |SparseMismatch { question, answers: (machine, sheet), .. }| {
            let signature = instruction.signature();
            let shown = |bits| Shown { format: &signature.d, bits };
            let question = ShownDotAdd { signature: &signature, dot_add: &question };
            let (machine, sheet) = (shown(machine), shown(sheet));
            format!("few summands:\n{question}  machine answers {machine}\n  sheet answers   {sheet}\n")
        },
    ))
}

#[cfg(test)]
mod tests {
    use mmaprobe_machines::Machine;
    use mmaprobe_machines::format::FP16;
    use mmaprobe_machines::machine::Output;
    use mmaprobe_machines::rounding::Rounding;

    use super::*;

    fn device(change: impl Fn(&mut Machine)) -> MachineDevice {
        let mut machine = Machine::chain_of_fma(FP16, 1);
        change(&mut machine);
        MachineDevice::new("machine", Unit::sound(machine))
    }

    fn sheet_of(device: &MachineDevice) -> Sheet {
        let options = Options { validate: 500, seed: 1 };
        characterize(device, device.instructions(), &options, None, &Silent).expect("machines do not fail")
    }

    #[test]
    fn a_sheet_of_another_machine_is_a_wrong_claim() {
        let sound = device(|_| {});
        let sheet = sheet_of(&sound);
        assert_eq!(mismatch(&sound, &sheet, 4000, 3), Ok(None));
        let rounds_up = device(|machine| {
            if let Output::Rounded(round) = &mut machine.rules[0].output {
                round.rounding = Rounding::Up;
            }
        });
        let found = mismatch(&rounds_up, &sheet, 4000, 3).expect("machines do not fail");
        assert!(found.is_some_and(|text| text.contains("sheet")));
        // Only where few summands show it.
        let flushes = device(|machine| {
            machine.product =
                mmaprobe_machines::machine::Product::FlushedBelow { exponent: -20, signed: true };
        });
        let claimed = sheet::simulate(&sheet, "sheet".to_string()).expect("the sheet can be executed");
        let (i1, i2) = (&flushes.instructions()[0], &claimed.instructions()[0]);
        let plan =
            SparsePlan { dot_adds: 4000, seed: 3, nans: Nans::Bits, boundaries: Boundaries::default() };
        let found = validation::sparse_mismatch((&flushes, i1), (&claimed, i2), &plan);
        assert!(found.expect("machines do not fail").is_some());
    }

    #[test]
    fn what_is_no_function_is_seen_without_a_search() {
        let noise = defect::Defect::Noise { seed: 1, any_bit: true };
        let noisy = Unit::defective(Machine::chain_of_fma(FP16, 1), noise);
        let (verdict, reason) = accused(&MachineDevice::new("noise", noisy)).expect("machines do not fail");
        assert_eq!(verdict, Verdict::WrongClaim, "a sound machine would not be called that");
        assert!(reason.contains("the answer changed between"), "{reason}");
        assert_eq!(accused(&device(|_| {})), Ok((Verdict::NotAccused, String::new())));
    }

    #[test]
    fn a_counterexample_has_to_be_one() {
        let sound = device(|_| {});
        let mut entry = sheet_of(&sound).instructions.remove(0);
        entry.status = Status::Unexplained;
        let verdict = |entry: &Entry| admitted(&sound, entry).expect("machines do not fail").0;
        assert_eq!(verdict(&entry), Verdict::WrongClaim);
        // 1 · 1 + 0 = 1.
        let hex = |bits: &str| bits.to_string();
        let mut found = Counterexample {
            a: vec![hex("0x3c00")],
            b: vec![hex("0x3c00")],
            c: hex("0x0000"),
            sa: Vec::new(),
            sb: Vec::new(),
            device: hex("0x3c00"),
            model: Some(hex("0x3c01")),
            note: String::new(),
        };
        entry.counterexample = Some(found.clone());
        assert_eq!(verdict(&entry), Verdict::Unexplained);
        found.model = Some(hex("0x3c00"));
        entry.counterexample = Some(found.clone());
        assert_eq!(verdict(&entry), Verdict::WrongClaim);
        found.device = hex("0x3c01");
        found.model = None;
        entry.counterexample = Some(found);
        assert_eq!(verdict(&entry), Verdict::WrongClaim);
    }

    #[test]
    fn units_are_named_by_kind_and_index() {
        let all = [("17", Which::Machine(17)), ("d3", Which::Defective(3)), ("f17", Which::Function(17))];
        for (text, which) in all {
            assert_eq!(text.parse(), Ok(which));
            assert_eq!(which.to_string(), text);
        }
        ["x", "f", "df3"].into_iter().for_each(|text| assert!(text.parse::<Which>().is_err(), "{text}"));
    }
}
