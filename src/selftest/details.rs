//! What came of each unit, in a file of JSON lines that grows as units end: a run that was stopped goes on from there.
//!
//! Each line says what was tried, and by which build. A run of another plan or by another build is not mixed with it.
//! Once all units have ended, they stand in the order of the plan.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::report::Line;
use super::{Plan, Tried};
use crate::output;

/// Names the sources of this build.
const BUILD: &str = env!("MMAPROBE_SOURCES");

/// What all units of a run have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    seed: u64,
    validate: u64,
    build: String,
}

impl Run {
    fn of(plan: &Plan) -> Run {
        Run { seed: plan.seed, validate: plan.validate, build: BUILD.to_string() }
    }
}

/// A line.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    run: Run,
    #[serde(flatten)]
    unit: Line,
}

/// Why details cannot be kept, or gone on with.
#[derive(Debug, thiserror::Error)]
pub enum DetailsError {
    /// The file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        error: io::Error,
    },
    /// What it holds is no such file.
    #[error("{path}, line {line}: {problem}; --force begins it anew")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
    /// It was begun with another seed or another number of fresh inputs.
    #[error(
        "{path} was begun with --seed {seed} --validate {validate}; go on with these, or begin anew with --force"
    )]
    OtherPlan {
        /// The file.
        path: PathBuf,
        /// Its seed.
        seed: u64,
        /// Its number of fresh inputs.
        validate: u64,
    },
    /// It was begun by another build.
    #[error(
        "{path} was begun by the build {build}, and this one is {BUILD}: what they find cannot be told as one; go on \
         with that build, or begin anew with --force"
    )]
    OtherBuild {
        /// The file.
        path: PathBuf,
        /// Its build.
        build: String,
    },
}

/// What is done with a file that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is kept, which is an error.
    Kept,
    /// It is begun anew.
    Replaced,
    /// It is gone on with.
    Resumed,
}

/// A file of details that is being written.
#[derive(Debug)]
pub struct Details {
    path: PathBuf,
    run: Run,
    /// `None` if it is no file that can be written twice: a pipe, say.
    file: Mutex<Option<File>>,
    /// The first thing that went wrong.
    failed: Mutex<Option<io::Error>>,
}

impl Details {
    /// Begins a file, or goes on with one; with the units that have ended already.
    ///
    /// # Errors
    /// If it exists and is to be kept, cannot be read or written, or was begun by another plan or another build.
    pub fn begin(
        path: &Path,
        plan: &Plan,
        existing: Existing,
    ) -> Result<(Details, Vec<Tried>), DetailsError> {
        let unusable = |error| DetailsError::File { path: path.to_path_buf(), error };
        let run = Run::of(plan);
        let known = match existing {
            Existing::Resumed if path.exists() => read(path, &run)?,
            _ => Vec::new(),
        };
        output::check(path, existing != Existing::Kept).map_err(unusable)?;
        let is_whole = path.exists() && !path.is_file();
        let file = if is_whole {
            None
        } else {
            // What was cut short goes.
            output::write(path, contents(&run, &known).as_bytes(), existing != Existing::Kept)
                .map_err(unusable)?;
            Some(OpenOptions::new().append(true).open(path).map_err(unusable)?)
        };
        let path = path.to_path_buf();
        Ok((Details { path, run, file: Mutex::new(file), failed: Mutex::default() }, known))
    }

    /// Keeps what came of a unit, at once.
    pub fn keep(&self, tried: &Tried) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.as_mut().map_or(Ok(()), |file| file.write_all(line(&self.run, tried).as_bytes()));
        if let Err(error) = written {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Puts all units into their order.
    ///
    /// # Errors
    /// If the file could not be written, now or before.
    pub fn finish(self, all: &[Tried]) -> Result<(), DetailsError> {
        let failed = self.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let written = failed.map_or(Ok(()), Err);
        let written =
            written.and_then(|()| output::write(&self.path, contents(&self.run, all).as_bytes(), true));
        written.map_err(|error| DetailsError::File { path: self.path, error })
    }
}

fn line(run: &Run, tried: &Tried) -> String {
    let kept = Kept { run: run.clone(), unit: Line::of(tried) };
    serde_json::to_string(&kept).expect("strings and numbers have a JSON form") + "\n"
}

fn contents(run: &Run, all: &[Tried]) -> String {
    all.iter().map(|tried| line(run, tried)).collect()
}

/// The units that a file tells of, which this run has begun. A last line that was cut short tells of none.
fn read(path: &Path, run: &Run) -> Result<Vec<Tried>, DetailsError> {
    let own = || path.to_path_buf();
    let text = fs::read_to_string(path).map_err(|error| DetailsError::File { path: own(), error })?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let unit = |(index, text): (usize, &str)| {
        let unreadable = |problem| DetailsError::Line { path: own(), line: index + 1, problem };
        let Kept { run: Run { seed, validate, build }, unit } =
            serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        if (seed, validate) != (run.seed, run.validate) {
            return Err(DetailsError::OtherPlan { path: own(), seed, validate });
        }
        if build != run.build {
            return Err(DetailsError::OtherBuild { path: own(), build });
        }
        Tried::try_from(unit).map_err(unreadable)
    };
    whole.lines().enumerate().map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Verdict, Which};
    use super::*;

    const PLAN: Plan = Plan { seed: 7, machines: 3, defective: 0, functions: 0, validate: 10 };

    fn tried(index: u64, verdict: Verdict) -> Tried {
        Tried {
            which: Which::Machine(index),
            k: 4,
            defect: None,
            features: vec!["plausible".to_string()],
            description: "d = R0(c p0)\n".to_string(),
            verdict,
            reason: "a \"reason\"\n".to_string(),
            status: Some("characterized".to_string()),
            cost: Some(crate::sheet::schema::Cost { rounds: 5, dot_adds: 100 }),
            sheet: None,
            time: std::time::Duration::ZERO,
        }
    }

    fn begin(path: &Path, plan: &Plan, existing: Existing) -> Result<(Details, Vec<Tried>), DetailsError> {
        Details::begin(path, plan, existing)
    }

    #[test]
    fn a_run_that_was_stopped_goes_on_and_ends_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("details.jsonl");
        let (details, known) = begin(&path, &PLAN, Existing::Resumed).expect("it can be begun");
        assert!(known.is_empty());
        details.keep(&tried(2, Verdict::Unexplained));
        details.keep(&tried(0, Verdict::Found));
        drop(details);
        // The power fails while a line is written.
        let mut file = OpenOptions::new().append(true).open(&path).expect("it exists");
        file.write_all(b"{\"index\":\"1\",\"verd").expect("there is room");
        let (details, mut known) = begin(&path, &PLAN, Existing::Resumed).expect("it can be gone on with");
        let which: Vec<Which> = known.iter().map(|tried| tried.which).collect();
        assert_eq!(which, [Which::Machine(2), Which::Machine(0)]);
        let last = tried(1, Verdict::AmbiguousButEqual);
        details.keep(&last);
        known.push(last);
        known.sort_by_key(|tried| tried.which);
        details.finish(&known).expect("there is room");
        let (_, again) = begin(&path, &PLAN, Existing::Resumed).expect("it can be read");
        assert_eq!(contents(&Run::of(&PLAN), &again), contents(&Run::of(&PLAN), &known));
        assert_eq!(again.iter().map(|tried| tried.k).collect::<Vec<_>>(), [4; 3]);
    }

    #[test]
    fn another_plan_another_build_or_another_file_is_not_gone_on_with() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("details.jsonl");
        let (details, _) = begin(&path, &PLAN, Existing::Kept).expect("it can be begun");
        details.keep(&tried(1, Verdict::Found));
        let problem =
            |plan: &Plan, existing| begin(&path, plan, existing).expect_err("it is another").to_string();
        assert!(problem(&PLAN, Existing::Kept).contains("it exists already"));
        let other = Plan { seed: 8, ..PLAN };
        assert!(problem(&other, Existing::Resumed).contains("--seed 7 --validate 10"));
        // More of the same is no other plan.
        assert!(begin(&path, &Plan { machines: 500, ..PLAN }, Existing::Resumed).is_ok());
        let other = Run { build: "0".to_string(), ..Run::of(&PLAN) };
        fs::write(&path, line(&other, &tried(0, Verdict::Found))).expect("there is room");
        assert!(problem(&PLAN, Existing::Resumed).contains("begun by the build 0"));
        let good = line(&Run::of(&PLAN), &tried(0, Verdict::Found));
        for bad in
            ["{\"index\":\"1\"}\n".to_string(), good.replace("found", "fond"), good.replace("\"0\"", "\"x\"")]
        {
            fs::write(&path, good.clone() + &bad).expect("there is room");
            assert!(problem(&PLAN, Existing::Resumed).contains("line 2"), "{bad}");
        }
        assert!(begin(&path, &PLAN, Existing::Replaced).is_ok());
    }
}
