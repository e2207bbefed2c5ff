//! Solvers: programs on the PATH that read SMT-LIB 2 on their standard input, spoken to through easy-smt.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use easy_smt::{Context, ContextBuilder, Response, SExpr};

/// A solver that this tool knows how to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Bitwuzla.
    Bitwuzla,
    /// cvc5.
    Cvc5,
    /// Z3.
    Z3,
}

impl Program {
    /// Every solver, in the order in which they are looked for.
    pub const ALL: [Program; 3] = [Program::Bitwuzla, Program::Cvc5, Program::Z3];

    /// The program's name.
    pub const fn name(self) -> &'static str {
        match self {
            Program::Bitwuzla => "bitwuzla",
            Program::Cvc5 => "cvc5",
            Program::Z3 => "z3",
        }
    }

    /// Options that make it read commands, and give up on a question after that time.
    fn arguments(self, limit: Duration, questions: Questions) -> Vec<String> {
        let milliseconds = limit.as_millis().max(1);
        match self {
            Program::Bitwuzla => {
                vec!["--lang=smt2".into(), format!("--time-limit-per={milliseconds}")]
            }
            Program::Cvc5 => {
                let limit = format!("--tlimit-per={milliseconds}");
                // Bit-blasting all at once is several times as fast on these formulas, and answers once.
                let how = match questions {
                    Questions::One => "--bitblast=eager",
                    Questions::Many => "--incremental",
                };
                vec!["--quiet".into(), "--lang=smt2".into(), how.into(), limit]
            }
            Program::Z3 => vec!["-smt2".into(), "-in".into(), format!("-t:{milliseconds}")],
        }
    }

    /// Where it is on the PATH, if it is.
    pub fn path(self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(self.name())).find(|file| file.is_file())
    }

    /// What it says of its version, in one line.
    pub fn version(self) -> Option<String> {
        let output = Command::new(self.path()?).arg("--version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let digits = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        Some(format!("{} {digits}", self.name()))
    }

    /// The first solver that is there.
    pub fn first() -> Option<Program> {
        Program::ALL.into_iter().find(|program| program.path().is_some())
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many questions a solver will be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Questions {
    /// One, which may be hard.
    One,
    /// Several, with other assertions each.
    Many,
}

/// A solver could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum SolverError {
    /// None is there.
    #[error(
        "no SMT solver is on the PATH; install z3 or cvc5 (Debian: apt-get install z3 cvc5) or bitwuzla; \
         `mmaprobe smt export` works without one"
    )]
    Absent,
    /// The one that was asked for is not there.
    #[error("{0} is not on the PATH; leave --solver out to take one that is")]
    NotThere(Program),
    /// It does not understand, or has died.
    #[error("{program}, on {during}: {problem}")]
    Failed {
        /// The solver.
        program: Program,
        /// What it was told.
        during: String,
        /// What it said.
        problem: String,
    },
}

/// What a solver says to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is a solution.
    Satisfiable,
    /// There is none.
    Unsatisfiable,
    /// It gave up.
    Unknown,
}

/// A solver that is running.
pub struct Solver {
    program: Program,
    context: Context,
}

impl Solver {
    /// Starts a solver: that one, or the first that is there.
    ///
    /// # Errors
    /// If there is none, or it does not start.
    pub fn start(
        preferred: Option<Program>,
        limit: Duration,
        questions: Questions,
    ) -> Result<Solver, SolverError> {
        let program = match preferred {
            Some(program) if program.path().is_none() => return Err(SolverError::NotThere(program)),
            Some(program) => program,
            None => Program::first().ok_or(SolverError::Absent)?,
        };
        let built = ContextBuilder::new()
            .solver(program.name())
            .solver_args(program.arguments(limit, questions))
            .build();
        let context = built.map_err(|error| failed(program, "its start", error))?;
        let mut solver = Solver { program, context };
        solver.tell("(set-logic QF_BV)")?;
        Ok(solver)
    }

    /// Which solver it is.
    pub fn program(&self) -> Program {
        self.program
    }

    /// Sends commands that answer nothing but success.
    ///
    /// # Errors
    /// If the solver does not accept one of them.
    pub fn tell(&mut self, commands: &str) -> Result<(), SolverError> {
        for command in super::text::commands(commands) {
            let fault = |problem: String| SolverError::Failed {
                program: self.program,
                during: shortened(command),
                problem,
            };
            let sent = self.context.atom(command);
            self.context.raw_send(sent).map_err(|error| fault(error.to_string()))?;
            let reply = self.context.raw_recv().map_err(|error| fault(error.to_string()))?;
            let reply = self.context.display(reply).to_string();
            if reply != "success" {
                return Err(fault(reply));
            }
        }
        Ok(())
    }

    /// Asks whether what was asserted has a solution.
    ///
    /// # Errors
    /// If the solver dies.
    pub fn check(&mut self) -> Result<Verdict, SolverError> {
        let response = self.context.check().map_err(|error| failed(self.program, "check-sat", error))?;
        Ok(match response {
            Response::Sat => Verdict::Satisfiable,
            Response::Unsat => Verdict::Unsatisfiable,
            Response::Unknown => Verdict::Unknown,
        })
    }

    /// The values of bit vectors of at most 64 bits in the solution.
    ///
    /// # Errors
    /// If there is none, or the solver's answer cannot be read.
    pub fn values<S: AsRef<str>>(&mut self, names: &[S]) -> Result<Vec<u64>, SolverError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let asked: Vec<SExpr> = names.iter().map(|name| self.context.atom(name.as_ref())).collect();
        let program = self.program;
        let answer = self.context.get_value(asked).map_err(|error| failed(program, "get-value", error))?;
        let read = |(_, value): &(SExpr, SExpr)| {
            let text = self.context.display(*value).to_string();
            super::text::bits(&text).ok_or_else(|| SolverError::Failed {
                program,
                during: "get-value".into(),
                problem: format!("{text} is no bit vector"),
            })
        };
        answer.iter().map(read).collect()
    }
}

fn failed(program: Program, during: &str, error: std::io::Error) -> SolverError {
    SolverError::Failed { program, during: during.into(), problem: error.to_string() }
}

/// The beginning of a command.
fn shortened(command: &str) -> String {
    const LONGEST: usize = 60;
    let line = command.lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_string(),
    }
}
