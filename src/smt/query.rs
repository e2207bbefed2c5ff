//! Do two models ever differ? By reasoning over the trees first, then by a solver.

use std::time::{Duration, Instant};

use super::script;
use super::solver::{Program, Questions, Solver, SolverError, Verdict};
use crate::model::Model;
use crate::probes::DotAdd;
use crate::reason::symmetry::same_function;
use crate::reason::{differ, execute, pairs};

/// How a question is answered.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Which solver; the first one on the PATH otherwise.
    pub solver: Option<Program>,
    /// How long a solver may think about one question.
    pub limit: Duration,
    /// What may answer.
    pub by: By,
}

/// Who may answer a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Reasoning over the trees, then a solver if there is one.
    Both,
    /// Reasoning alone.
    Reasoning,
    /// A solver alone.
    Solver,
}

/// Whether two models differ.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// They do, on this input; both have been executed on it.
    Differ(Found),
    /// They never do.
    Equal {
        /// Why.
        by: String,
    },
    /// Nobody knows.
    Unknown {
        /// What was tried.
        tried: String,
    },
}

/// An input on which models differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The input.
    pub input: DotAdd,
    /// All results, executed: the first model's, then the others'.
    pub results: Vec<u64>,
    /// Who found it.
    pub by: String,
    /// How long that took, the solver's start and reading included.
    pub seconds: f64,
}

/// A question could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The models take other operands.
    #[error("their operands differ: {0}; only functions of the same operands can be told apart")]
    Operands(String),
    /// The solver failed.
    #[error(transparent)]
    Solver(#[from] SolverError),
    /// A solver's solution is none: the encoding and the executor disagree.
    #[error(
        "{program} says that they differ on c = {c:#x}, a = {a:x?}, b = {b:x?}, and executed they do not: this is a \
         mistake in the encoding; please report it"
    )]
    NotConfirmed {
        /// The solver.
        program: Program,
        /// c of its solution.
        c: u64,
        /// A of its solution.
        a: Vec<u64>,
        /// B of its solution.
        b: Vec<u64>,
    },
}

/// A seed: what is found is the same each time.
const SEED: u64 = 1;

/// Whether there is an input on which two models differ.
///
/// # Errors
/// If they take different operands, or the solver fails.
///
/// # Panics
/// If a model does not pass [`Model::check`].
pub fn distinguish(one: &Model, other: &Model, plan: &Plan) -> Result<Answer, QueryError> {
    distinguish_all(one, &[other], plan)
}

/// Whether there is an input on which a model differs from each of several others; what
/// [`distinguish`] says of one other.
///
/// # Errors
/// As [`distinguish`].
///
/// # Panics
/// If a model does not pass [`Model::check`], or there are no others.
pub fn distinguish_all(one: &Model, others: &[&Model], plan: &Plan) -> Result<Answer, QueryError> {
    for other in others {
        comparable(one, other)?;
        if same_function(one, other) {
            let by = "both are the same sum tree, but for the order of summands that addition does not see";
            return Ok(Answer::Equal { by: by.into() });
        }
    }
    let mut tried = Vec::new();
    if plan.by != By::Solver {
        let start = Instant::now();
        if let Some(found) = pairs::difference_from_all(one, others, SEED) {
            let seconds = start.elapsed().as_secs_f64();
            let by = format!("structured search, {} inputs, {seconds:.3} s", found.tried);
            return Ok(Answer::Differ(Found { input: found.input, results: found.results, by, seconds }));
        }
        tried.push("structured search found no input".to_string());
    }
    if plan.by == By::Reasoning {
        return Ok(Answer::Unknown { tried: tried.join("; ") });
    }
    let start = Instant::now();
    let mut solver = match Solver::start(plan.solver, plan.limit, Questions::One) {
        Err(SolverError::Absent) if plan.by == By::Both => {
            tried.push(SolverError::Absent.to_string());
            return Ok(Answer::Unknown { tried: tried.join("; ") });
        }
        other => other?,
    };
    solver.tell(&script::difference(one, others))?;
    let verdict = solver.check()?;
    let seconds = start.elapsed().as_secs_f64();
    let by = format!("{}, {seconds:.3} s", solver.program());
    Ok(match verdict {
        Verdict::Unsatisfiable => Answer::Equal { by },
        Verdict::Satisfiable => {
            let input = solution(&mut solver, one)?;
            let results: Vec<u64> =
                [one].into_iter().chain(others.iter().copied()).map(|model| execute(model, &input)).collect();
            let confirmed = |(other, &result): (&&Model, &u64)| differ(one, other, [results[0], result]);
            if !others.iter().zip(&results[1..]).all(confirmed) {
                let (program, DotAdd { a, b, c, .. }) = (solver.program(), input);
                return Err(QueryError::NotConfirmed { program, c, a, b });
            }
            Answer::Differ(Found { input, results, by, seconds })
        }
        Verdict::Unknown => {
            tried.push(format!("{by}: it gave up"));
            Answer::Unknown { tried: tried.join("; ") }
        }
    })
}

/// The operands of a solver's solution.
fn solution(solver: &mut Solver, model: &Model) -> Result<DotAdd, SolverError> {
    let names: Vec<String> =
        super::encode::variables(model).into_iter().map(|variable| variable.name).collect();
    Ok(script::input(model, &solver.values(&names)?))
}

/// Whether two models take the same operands.
fn comparable(one: &Model, other: &Model) -> Result<(), QueryError> {
    let operands = |model: &Model| {
        let scale = model.scale.map(|scale| format!(", {} scales for {}", scale.format, scale.block));
        let width = |format: &crate::model::Format| super::encode::element_width(format);
        let (a, b, c) = (model.a.format, model.b.format, model.c.format);
        let text = format!("{a} × {b}, K = {}, c {c}, d {}{}", model.k, model.d, scale.unwrap_or_default());
        ((model.k, width(&a), width(&b), width(&c), width(&model.d), model.scale), text)
    };
    let (first, second) = (operands(one), operands(other));
    match first.0 == second.0 {
        true => Ok(()),
        false => Err(QueryError::Operands(format!("{}; and {}", first.1, second.1))),
    }
}

/// A solver's value of d for an input.
///
/// # Errors
/// If there is no solver, or it fails.
///
/// # Panics
/// If the model does not pass [`Model::check`], or the input does not fit it.
pub fn evaluate(model: &Model, inputs: &[DotAdd], plan: &Plan) -> Result<Vec<u64>, SolverError> {
    let mut solver = Solver::start(plan.solver, plan.limit, Questions::Many)?;
    solver.tell(&script::export(model, "").replacen("(set-logic QF_BV)\n", "", 1))?;
    let mut results = Vec::with_capacity(inputs.len());
    for input in inputs {
        solver.tell("(push 1)")?;
        solver.tell(&script::assertions(model, input))?;
        solver.check()?;
        results.extend(solver.values(&["d"])?);
        solver.tell("(pop 1)")?;
    }
    Ok(results)
}

/// An input and a larger c with which the result is smaller, by a solver.
///
/// # Errors
/// If there is no solver, or it fails.
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn falling(model: &Model, plan: &Plan) -> Result<Monotony, SolverError> {
    let start = Instant::now();
    let mut solver = Solver::start(plan.solver, plan.limit, Questions::One)?;
    solver.tell(&script::falling(model))?;
    let verdict = solver.check()?;
    let by = format!("{}, {:.3} s", solver.program(), start.elapsed().as_secs_f64());
    Ok(match verdict {
        Verdict::Unsatisfiable => Monotony::Never { by },
        Verdict::Unknown => Monotony::Unknown { by },
        Verdict::Satisfiable => {
            let lower = solution(&mut solver, model)?;
            Monotony::Falls { lower, larger_c: solver.values(&["larger-c"])?[0], by }
        }
    })
}

/// Whether d can fall where c grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Monotony {
    /// It does, from this input to the same with a larger c.
    Falls {
        /// The input with the smaller c.
        lower: DotAdd,
        /// The larger c.
        larger_c: u64,
        /// Who found it.
        by: String,
    },
    /// It never does.
    Never {
        /// Who says so.
        by: String,
    },
    /// The solver gave up.
    Unknown {
        /// Which.
        by: String,
    },
}
