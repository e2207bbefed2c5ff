//! What came of each unit, in a file of JSON lines that grows as units end: a run that was stopped goes on from there.
//!
//! Each line says what was tried, and by which build. A run of another plan or by another build is not mixed with it.
//! Once all units have ended, they stand in the order of the plan.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::report::Line;
use super::{Plan, Tried, Verdict, Which};
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
    /// Another run is writing it.
    #[error("another run is writing {path}: wait for it, or name another file")]
    Busy {
        /// The file.
        path: PathBuf,
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
    /// `None` if it is no file that can be written twice, a pipe, say, or if writing has failed.
    file: Mutex<Option<File>>,
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
        let metadata = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unusable(error)),
        };
        let is_file = metadata.as_ref().is_none_or(fs::Metadata::is_file);
        let is_resumed = existing == Existing::Resumed && metadata.is_some() && is_file;
        output::check(path, existing != Existing::Kept).map_err(unusable)?;
        if !is_resumed && is_file {
            output::write(path, b"", existing != Existing::Kept).map_err(unusable)?;
        }
        let (mut file, mut known) = (None, Vec::new());
        if is_file {
            let own = OpenOptions::new().append(true).open(path).map_err(unusable)?;
            own.try_lock().map_err(|error| match error {
                TryLockError::WouldBlock => DetailsError::Busy { path: path.to_path_buf() },
                TryLockError::Error(error) => unusable(error),
            })?;
            if is_resumed {
                let (units, whole) = read(path, &run)?;
                known = units;
                // What was cut short goes.
                own.set_len(whole as u64).map_err(unusable)?;
            }
            file = Some(own);
        }
        let path = path.to_path_buf();
        Ok((Details { path, run, file: Mutex::new(file) }, known))
    }

    /// Keeps what came of a unit, at once. Once that fails, [`finish`](Details::finish) alone keeps the rest.
    pub fn keep(&self, tried: &Tried) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // After a part of a line no other must follow.
        *file = file.take().filter(|mut file| file.write_all(line(&self.run, tried).as_bytes()).is_ok());
    }

    /// Writes all units, in their order.
    ///
    /// # Errors
    /// If the file cannot be written. What had been kept until then stays.
    pub fn finish(self, all: &[Tried]) -> Result<(), DetailsError> {
        output::write(&self.path, contents(&self.run, all).as_bytes(), true)
            .map_err(|error| DetailsError::File { path: self.path, error })
    }
}

fn line(run: &Run, tried: &Tried) -> String {
    let kept = Kept { run: run.clone(), unit: Line::of(tried) };
    serde_json::to_string(&kept).expect("strings and numbers have a JSON form") + "\n"
}

fn contents(run: &Run, all: &[Tried]) -> String {
    all.iter().map(|tried| line(run, tried)).collect()
}

/// The units that a file tells of, which this run has begun, and the length of the lines that are whole. A last line that was
/// cut short tells of none. What the tool failed at is tried again.
fn read(path: &Path, run: &Run) -> Result<(Vec<Tried>, usize), DetailsError> {
    let own = || path.to_path_buf();
    let mut text = fs::read(path).map_err(|error| DetailsError::File { path: own(), error })?;
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    text.truncate(whole);
    let mut units: BTreeMap<Which, Tried> = BTreeMap::new();
    for (index, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let unreadable = |problem| DetailsError::Line { path: own(), line: index + 1, problem };
        let Kept { run: Run { seed, validate, build }, unit } =
            serde_json::from_slice(line).map_err(|error| unreadable(error.to_string()))?;
        if (seed, validate) != (run.seed, run.validate) {
            return Err(DetailsError::OtherPlan { path: own(), seed, validate });
        }
        if build != run.build {
            return Err(DetailsError::OtherBuild { path: own(), build });
        }
        let tried = Tried::try_from(unit).map_err(unreadable)?;
        units.insert(tried.which, tried);
    }
    let ended = units.into_values().filter(|tried| tried.verdict != Verdict::Failed);
    Ok((ended.collect(), whole))
}

#[cfg(test)]
mod tests {
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
        file.write_all("{\"index\":\"1\",\"reason\":\"−".as_bytes().split_last().expect("bytes").1)
            .expect("there is room");
        drop(file);
        let (details, mut known) = begin(&path, &PLAN, Existing::Resumed).expect("it can be gone on with");
        let which: Vec<Which> = known.iter().map(|tried| tried.which).collect();
        assert_eq!(which, [Which::Machine(0), Which::Machine(2)]);
        // Two runs at once would lose what one of them finds.
        let busy = begin(&path, &PLAN, Existing::Resumed).expect_err("it is being written").to_string();
        assert!(busy.contains("another run is writing"), "{busy}");
        let last = tried(1, Verdict::AmbiguousButEqual);
        details.keep(&last);
        known.push(last);
        known.sort_by_key(|tried| tried.which);
        details.finish(&known).expect("there is room");
        let (details, again) = begin(&path, &PLAN, Existing::Resumed).expect("it can be read");
        details.keep(&tried(1, Verdict::Failed));
        assert_eq!(contents(&Run::of(&PLAN), &again), contents(&Run::of(&PLAN), &known));
        assert_eq!(again.iter().map(|tried| tried.k).collect::<Vec<_>>(), [4; 3]);
        drop(details);
        // What the tool failed at is tried again.
        let (_, again) = begin(&path, &PLAN, Existing::Resumed).expect("it can be read");
        assert_eq!(again.len(), 2);
    }

    #[test]
    fn another_plan_another_build_or_another_file_is_not_gone_on_with() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("details.jsonl");
        let (details, _) = begin(&path, &PLAN, Existing::Kept).expect("it can be begun");
        details.keep(&tried(1, Verdict::Found));
        drop(details);
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
