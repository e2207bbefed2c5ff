//! `mmaprobe smt`.

use std::path::Path;
use std::time::Duration;

use super::open::unknown;
use super::{Failure, Outcome, print, select};
use crate::bits::{Shown, ShownDotAdd};
use crate::catalog::Catalog;
use crate::cli::{Answerer, Smt, SmtCheck, SmtDistinguish, SmtEval, SmtModel, SolverName, Solving};
use crate::correction::{self, Method};
use crate::device::sim::Sim;
use crate::device::simulated::Simulated;
use crate::device::{Device, Instruction, sheet};
use crate::explain::Bits;
use crate::model::Model;
use crate::probes::{DotAdd, place};
use crate::reason::carries::{self, CarryBits, Witness};
use crate::reason::{execute, monotony, signature};
use crate::smt::properties::{Property, variants};
use crate::smt::query::{Answer, By, Found, Monotony, Plan, distinguish, evaluate, falling};
use crate::smt::script;
use crate::smt::solver::{Program, SolverError};

pub fn run(arguments: &Smt, catalog: &Catalog) -> Result<Outcome, Failure> {
    match arguments {
        Smt::Export(arguments) => export(arguments, catalog),
        Smt::Eval(arguments) => eval(arguments, catalog),
        Smt::Distinguish(arguments) => tell_apart(arguments, catalog),
        Smt::Check(arguments) => check(arguments, catalog),
    }
}

/// A device whose arithmetic is known.
enum Known {
    Sim(Box<Sim>),
    Sheet(Box<Simulated>),
}

impl Known {
    fn open(name: &str, catalog: &Catalog) -> Result<Known, Failure> {
        match name.split_once(':') {
            Some(("sim", name)) => Ok(Known::Sim(Box::new(Sim::open(name, catalog)?))),
            Some(("sheet", path)) => Ok(Known::Sheet(Box::new(sheet::open(Path::new(path))?.0))),
            Some(_) => Err(Failure::Usage(format!(
                "what {name} computes is not known beforehand; mmaprobe characterize --device {name} makes a sheet of it"
            ))),
            None if name == "cpu" || name == "cuda" || catalog.find(name).is_some() => {
                Err(Failure::Usage(format!(
                    "{name} is hardware, whose arithmetic is not known beforehand; mmaprobe characterize makes \
                     a sheet of it, and sheet:FILE and sim:NAME can be reasoned about"
                )))
            }
            None => Err(unknown(name, catalog)),
        }
    }

    fn device(&self) -> &dyn Device {
        match self {
            Known::Sim(sim) => sim.as_ref(),
            Known::Sheet(sheet) => sheet.as_ref(),
        }
    }

    fn model(&self, instruction: &str) -> Result<&Model, Failure> {
        let model = match self {
            Known::Sim(sim) => sim.model(&self.instruction(instruction)?),
            Known::Sheet(sheet) => sheet.model(instruction),
        };
        model.ok_or_else(|| Failure::Usage(format!("the arithmetic of {instruction} is not known")))
    }

    /// The instruction of that name.
    fn instruction(&self, name: &str) -> Result<Instruction, Failure> {
        self.device().instruction(name).map_err(Failure::Usage)
    }
}

fn plan(solving: &Solving) -> Plan {
    Plan {
        solver: solving.solver.map(|solver| match solver {
            SolverName::Bitwuzla => Program::Bitwuzla,
            SolverName::Cvc5 => Program::Cvc5,
            SolverName::Z3 => Program::Z3,
        }),
        limit: Duration::from_secs_f64(solving.time),
        by: match solving.by {
            Answerer::Both => By::Both,
            Answerer::Reasoning => By::Reasoning,
            Answerer::Solver => By::Solver,
        },
    }
}

fn solver_failed(error: SolverError) -> Failure {
    Failure::Query(error.into())
}

fn export(arguments: &SmtModel, catalog: &Catalog) -> Result<Outcome, Failure> {
    let known = Known::open(&arguments.device, catalog)?;
    let instruction = known.instruction(&arguments.instruction)?;
    let model = known.model(&instruction.name)?;
    let title = format!("{} of {}, by mmaprobe smt export", instruction.name, arguments.device);
    print(&script::export(model, &title))?;
    Ok(Outcome::Held)
}

fn eval(arguments: &SmtEval, catalog: &Catalog) -> Result<Outcome, Failure> {
    let known = Known::open(&arguments.model.device, catalog)?;
    let instruction = known.instruction(&arguments.model.instruction)?;
    let model = known.model(&instruction.name)?;
    let mut input = place::zeros(&signature(model));
    for (name, elements, given) in [
        ("--a", &mut input.a, &arguments.a),
        ("--b", &mut input.b, &arguments.b),
        ("--sa", &mut input.sa, &arguments.sa),
        ("--sb", &mut input.sb, &arguments.sb),
    ] {
        if given.len() > elements.len() {
            let most = elements.len();
            return Err(Failure::Usage(format!("{name} has {} elements, and there are {most}", given.len())));
        }
        elements.iter_mut().zip(given).for_each(|(element, &Bits(bits))| *element = bits);
    }
    if let Some(Bits(bits)) = arguments.c {
        input.c = bits;
    }
    let plan = plan(&arguments.solving);
    let solved = evaluate(model, std::slice::from_ref(&input), &plan).map_err(solver_failed)?[0];
    let executed = execute(model, &input);
    let shown = |bits| Shown { format: &model.d, bits };
    let mut text = ShownDotAdd { signature: &signature(model), dot_add: &input }.to_string();
    text += &format!("solver    d = {}\nexecuted  d = {}\n", shown(solved), shown(executed));
    print(&text)?;
    Ok(if solved == executed { Outcome::Held } else { Outcome::Failed })
}

fn tell_apart(arguments: &SmtDistinguish, catalog: &Catalog) -> Result<Outcome, Failure> {
    let (first, second) = (Known::open(&arguments.first, catalog)?, Known::open(&arguments.second, catalog)?);
    let selected = select(first.device(), arguments.instruction.as_deref())?;
    if arguments.against.is_some() && selected.len() != 1 {
        return Err(Failure::Usage("--against goes with one instruction of the first device".into()));
    }
    let mut text = String::new();
    let mut undecided = false;
    let mut compared = 0;
    for instruction in selected {
        let other = arguments.against.as_deref().unwrap_or(&instruction.name);
        let Ok(other) = second.instruction(other) else { continue };
        let (one, two) = (first.model(&instruction.name)?, second.model(&other.name)?);
        let answer = distinguish(one, two, &plan(&arguments.solving))?;
        compared += 1;
        undecided |= matches!(answer, Answer::Unknown { .. });
        text +=
            &format!("{}: {}", instruction.name, told(one, &answer, [&arguments.first, &arguments.second]));
    }
    if compared == 0 {
        return Err(Failure::Usage(format!(
            "{} and {} have no such instruction in common; --against names the second one's",
            arguments.first, arguments.second
        )));
    }
    print(&text)?;
    Ok(if undecided { Outcome::Failed } else { Outcome::Held })
}

/// An answer as text; `names` are those of the two sides.
fn told(model: &Model, answer: &Answer, names: [&str; 2]) -> String {
    match answer {
        Answer::Equal { by } => format!("never differ ({by})\n"),
        Answer::Unknown { tried } => format!("not decided: {tried}\n"),
        Answer::Differ(Found { input, results, by, .. }) => {
            let width = names.map(|name| name.chars().count()).into_iter().max().unwrap_or(0);
            let mut text = format!("differ ({by}), executed on\n");
            text += &ShownDotAdd { signature: &signature(model), dot_add: input }.to_string();
            for (name, &bits) in names.iter().zip(results) {
                text += &format!("  {name:width$}  d = {}\n", Shown { format: &model.d, bits });
            }
            text
        }
    }
}

fn check(arguments: &SmtCheck, catalog: &Catalog) -> Result<Outcome, Failure> {
    let known = Known::open(&arguments.model.device, catalog)?;
    let instruction = known.instruction(&arguments.model.instruction)?;
    let model = known.model(&instruction.name)?;
    let plan = plan(&arguments.solving);
    match arguments.property {
        Property::CarryBits(bits) => carry_bits(model, bits),
        Property::Monotonicity => monotonicity(model, &plan),
        Property::ErrorCorrection => error_correction(known.device(), &instruction),
        property => comparisons(model, property, &plan),
    }
}

/// Properties that compare the instruction with variants of it.
fn comparisons(model: &Model, property: Property, plan: &Plan) -> Result<Outcome, Failure> {
    let mut text = String::new();
    let mut outcome = Outcome::Held;
    for variant in variants(property, model) {
        let answer = distinguish(model, &variant.model, plan)?;
        let claimed_equal = property == Property::Order;
        if matches!(answer, Answer::Unknown { .. }) || claimed_equal && matches!(answer, Answer::Differ(_)) {
            outcome = Outcome::Failed;
        }
        text += &format!("as if {}: {}", variant.what, told(model, &answer, ["instruction", "as if"]));
    }
    if property == Property::Order {
        text += match outcome {
            Outcome::Held => "The order of the products never matters: every order follows from these two.\n",
            Outcome::Failed => "It is not shown that the order of the products never matters.\n",
        };
    }
    print(&text)?;
    Ok(outcome)
}

fn carry_bits(model: &Model, bits: u32) -> Result<Outcome, Failure> {
    let (text, outcome) = match carries::enough(model, bits) {
        CarryBits::Enough(bound) => (format!("{bits} carry bits suffice: {bound}.\n"), Outcome::Held),
        CarryBits::TooFew(Witness { input, limited, full }) => {
            let mut text = format!("{bits} carry bits are too few, executed on\n");
            text += &ShownDotAdd { signature: &signature(model), dot_add: &input }.to_string();
            for (name, bits) in [("with so many", limited), ("with all     ", full)] {
                text += &format!("  {name}  d = {}\n", Shown { format: &model.d, bits });
            }
            (text, Outcome::Failed)
        }
        CarryBits::Open => (
            format!("not decided: neither an input nor a bound shows whether {bits} carry bits suffice\n"),
            Outcome::Failed,
        ),
        CarryBits::NoFusedSum => {
            ("Every sum is exact: there are no carry bits to count.\n".to_string(), Outcome::Held)
        }
    };
    print(&text)?;
    Ok(outcome)
}

fn monotonicity(model: &Model, plan: &Plan) -> Result<Outcome, Failure> {
    let falls = |lower: &DotAdd, upper: &DotAdd, by: &str| {
        let mut text = format!("not monotonic ({by}): c grows and d falls, executed on\n");
        for input in [lower, upper] {
            text += &ShownDotAdd { signature: &signature(model), dot_add: input }.to_string();
            text += &format!("  {:7} {}\n", "d", Shown { format: &model.d, bits: execute(model, input) });
        }
        text
    };
    if plan.by != By::Solver
        && let Some((lower, upper)) = monotony::falling(model)
    {
        print(&falls(&lower, &upper, "structured search"))?;
        return Ok(Outcome::Failed);
    }
    if plan.by == By::Reasoning {
        print("not decided: structured search found no input\n")?;
        return Ok(Outcome::Failed);
    }
    let (text, outcome) = match falling(model, plan).map_err(solver_failed)? {
        Monotony::Never { by } => (format!("monotonic in c ({by})\n"), Outcome::Held),
        Monotony::Unknown { by } => (format!("not decided: {by}: it gave up\n"), Outcome::Failed),
        Monotony::Falls { lower, larger_c, by } => {
            let upper = DotAdd { c: larger_c, ..lower.clone() };
            let text = match monotony::falls(model, &lower, &upper) {
                true => falls(&lower, &upper, &by),
                false => format!(
                    "not decided: {by}: its solution, executed, shows no fall: this is a mistake in the encoding\n"
                ),
            };
            (text, Outcome::Failed)
        }
    };
    print(&text)?;
    Ok(outcome)
}

/// Inputs on which either method of error correction is the worse one.
fn error_correction(device: &dyn Device, instruction: &Instruction) -> Result<Outcome, Failure> {
    let unit = correction::Unit::new(device, instruction).ok_or_else(|| {
        Failure::Usage("error correction splits fp32 into fp16 factors of an fp32 sum".into())
    })?;
    let mut text = String::new();
    let mut outcome = Outcome::Held;
    for worse in [Method::OotomoYokota, Method::Markidis] {
        match unit.find_worse(worse, 1)? {
            Some(found) => text += &found.to_string(),
            None => {
                outcome = Outcome::Failed;
                text += &format!("no input was found on which {worse} is worse\n");
            }
        }
    }
    print(&text)?;
    Ok(outcome)
}
