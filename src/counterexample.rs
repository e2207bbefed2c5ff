//! Files that hold one input on which two devices differ, to look at again.
//!
//! ```yaml
//! schema: mmaprobe-counterexample/1
//! devices: [sim:volta, sim:volta+floor]
//! instructions: [mma.m8n8k4.f32.f16.f16.f32, mma.m8n8k4.f32.f16.f16.f32]
//! counterexample: {a: ['0x0001', …], b: […], c: '0x00000001', device: …, model: …, note: …}
//! ```
//!
//! The input is spelled as in a parameter sheet, whose own counterexamples can be looked at as well;
//! `device` is the first device's answer, and `model` the second's.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::device::Instruction;
use crate::probes::DotAdd;
use crate::selftest::question_of;
use crate::sheet;
use crate::sheet::schema::{self, Counterexample};

/// The version of the schema.
pub const SCHEMA: &str = "mmaprobe-counterexample/1";

/// A file with an input on which two devices differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// [`SCHEMA`].
    pub schema: String,
    /// The devices, as given on the command line.
    pub devices: Vec<String>,
    /// What each calls the instruction.
    pub instructions: Vec<String>,
    /// The input and the answers.
    pub counterexample: Counterexample,
}

/// A file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", .path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: String,
}

#[derive(Deserialize)]
struct Head {
    schema: String,
}

impl File {
    /// Reads a file, or takes a sheet's counterexample to what it says of an instruction.
    ///
    /// # Errors
    /// If it cannot be read, is neither, or the sheet has no counterexample.
    pub fn load(path: &Path, instruction: Option<&str>) -> Result<File, FileError> {
        let wrong = |problem: String| FileError { path: path.to_path_buf(), problem };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let head: Head = serde_yaml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        match head.schema.as_str() {
            SCHEMA => serde_yaml::from_str(&text).map_err(|error| wrong(error.to_string())),
            schema::SCHEMA => {
                let sheet = sheet::parse(&text, path).map_err(|error| wrong(error.problem.to_string()))?;
                File::of_sheet(sheet, instruction).map_err(wrong)
            }
            other => Err(wrong(format!(
                "the schema is `{other}`; expected `{SCHEMA}`, or a sheet's, `{}`",
                schema::SCHEMA
            ))),
        }
    }

    fn of_sheet(sheet: sheet::Sheet, instruction: Option<&str>) -> Result<File, String> {
        let all = sheet.instructions.into_iter();
        let mut with: Vec<(String, Counterexample)> =
            all.filter_map(|entry| Some((entry.name, entry.counterexample?))).collect();
        if let Some(instruction) = instruction {
            with.retain(|(name, _)| name == instruction);
        }
        match &with[..] {
            [(name, counterexample)] => Ok(File {
                schema: SCHEMA.to_string(),
                devices: vec![sheet.device.name],
                instructions: vec![name.clone()],
                counterexample: counterexample.clone(),
            }),
            [] => Err("the sheet has no counterexample".to_string()),
            several => {
                let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
                Err(format!(
                    "the sheet has several counterexamples; --instruction says whose: {}",
                    names.join(", ")
                ))
            }
        }
    }

    /// The text of the file.
    ///
    /// # Panics
    /// Never: strings have a YAML form.
    pub fn write(&self) -> String {
        serde_yaml::to_string(self).expect("strings have a YAML form")
    }

    /// The input, for an instruction that takes it.
    ///
    /// # Errors
    /// A sentence that says what does not fit.
    pub fn question(&self, instruction: &Instruction) -> Result<DotAdd, String> {
        let question = question_of(&self.counterexample)?;
        let scales = instruction.signature().scales();
        let lengths = [question.a.len(), question.b.len(), question.sa.len(), question.sb.len()];
        if lengths != [instruction.k, instruction.k, scales, scales] {
            return Err(format!(
                "it has {} elements of a and {} of b, and {} adds {} products",
                lengths[0], lengths[1], instruction.name, instruction.k
            ));
        }
        Ok(question)
    }
}
