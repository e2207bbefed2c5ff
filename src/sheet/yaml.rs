//! Reading and writing sheets as YAML: the only module that knows which library does it.

use std::fmt;
use std::path::{Path, PathBuf};

use mmaprobe_model::Model;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::device::simulated::{Misfit, check_fit};
use crate::sheet::arithmetic::ArithmeticError;
use crate::sheet::schema::{Entry, SCHEMA, Sheet, Status};

/// A sheet cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {problem}", .path.display(), .position.map(|at| at.to_string()).unwrap_or_default())]
pub struct SheetError {
    /// The file.
    pub path: PathBuf,
    /// Where in the file, if it is anywhere in particular.
    pub position: Option<Position>,
    /// What is wrong.
    pub problem: Box<SheetProblem>,
}

/// A position in a file; both numbers count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ":{}:{}", self.line, self.column)
    }
}

/// What is wrong with a sheet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SheetProblem {
    /// It cannot be opened or read.
    #[error("cannot be read: {0}")]
    File(String),
    /// It is no YAML, or not of the sheet's shape.
    #[error("{0}")]
    Malformed(String),
    /// It has another schema.
    #[error("the schema is `{found}`, and this tool reads `{SCHEMA}`")]
    Schema {
        /// The schema it names.
        found: String,
    },
    /// Two instructions have the same name.
    #[error("two instructions are named `{0}`")]
    NameTaken(String),
    /// An instruction is a mode of one that does not exist, or of one that is itself a mode.
    #[error(
        "instruction `{instruction}` is a mode of `{of}`, which is no instruction of this sheet in its default mode"
    )]
    ModeOfNothing {
        /// The instruction.
        instruction: String,
        /// What it claims to be a mode of.
        of: String,
    },
    /// The arithmetic of an instruction makes no sense.
    #[error("instruction `{instruction}`: {error}")]
    Arithmetic {
        /// The instruction.
        instruction: String,
        /// What is wrong.
        error: ArithmeticError,
    },
    /// An instruction is said to be understood, and how is not said.
    #[error("instruction `{instruction}` is `{status}`, and its `arithmetic` is missing")]
    NoArithmetic {
        /// The instruction.
        instruction: String,
        /// Its status.
        status: Status,
    },
    /// An instruction is said to be understood, though its validation says that it is not.
    #[error(
        "instruction `{instruction}` is `{status}`, and {mismatches} dot-adds of its validation mismatched"
    )]
    Mismatched {
        /// The instruction.
        instruction: String,
        /// Its status.
        status: Status,
        /// Output elements that differed.
        mismatches: u64,
    },
    /// The arithmetic of an instruction belongs to another shape, or the shape makes no sense.
    #[error("instruction `{instruction}`: {misfit}")]
    Misfit {
        /// The instruction.
        instruction: String,
        /// What does not fit.
        misfit: Misfit,
    },
}

/// Reads a sheet from a file.
///
/// # Errors
/// If the file cannot be read, or [`parse`] fails.
pub fn load(path: &Path) -> Result<Sheet, SheetError> {
    let text = std::fs::read_to_string(path).map_err(|error| SheetError {
        path: path.into(),
        position: None,
        problem: Box::new(SheetProblem::File(error.to_string())),
    })?;
    parse(&text, path)
}

/// Reads a sheet, and checks that the arithmetic it contains can be executed; `path` is for errors.
///
/// # Errors
/// If the text is no sheet of this schema; with the position, where there is one.
pub fn parse(text: &str, path: &Path) -> Result<Sheet, SheetError> {
    let error = |position, problem| SheetError { path: path.into(), position, problem: Box::new(problem) };
    let malformed = |found: serde_yaml::Error| {
        error(position_of(&found), SheetProblem::Malformed(without_position(&found)))
    };
    // The version first: another schema's fields would be reported as unknown.
    let head: Head = serde_yaml::from_str(text).map_err(malformed)?;
    if head.schema != SCHEMA {
        let position = locate(text, &[At::Key("schema")]);
        return Err(error(position, SheetProblem::Schema { found: head.schema }));
    }
    let sheet: Sheet = serde_yaml::from_str(text).map_err(malformed)?;
    for (index, entry) in sheet.instructions.iter().enumerate() {
        check(&sheet, index, entry).map_err(|(within, problem)| {
            let mut way = vec![At::Key("instructions"), At::Index(index)];
            way.extend(within);
            let position = locate(text, &way);
            error(position, problem)
        })?;
    }
    Ok(sheet)
}

/// Writes a sheet. The same sheet gives the same bytes.
pub fn write(sheet: &Sheet) -> String {
    // Plain data with string keys has no way to fail, and neither has a String as the target.
    serde_yaml::to_string(sheet).expect("a sheet can be written as YAML")
}

/// The part of a sheet that every version has.
#[derive(Deserialize)]
#[serde(expecting = "a parameter sheet")]
struct Head {
    schema: String,
}

/// Checks an entry; an error comes with its place within the entry.
fn check(sheet: &Sheet, index: usize, entry: &Entry) -> Result<(), (Vec<At>, SheetProblem)> {
    if sheet.instructions[..index].iter().any(|other| other.name == entry.name) {
        return Err((vec![At::Key("name")], SheetProblem::NameTaken(entry.name.clone())));
    }
    if let Some(mode_of) = &entry.mode_of {
        let base = sheet.instructions.iter().find(|other| other.name == mode_of.instruction);
        if base.is_none_or(|base| base.mode_of.is_some()) {
            let (instruction, of) = (entry.name.clone(), mode_of.instruction.clone());
            return Err((vec![At::Key("mode_of")], SheetProblem::ModeOfNothing { instruction, of }));
        }
    }
    let mismatches = entry.validation.as_ref().map_or(0, |validation| validation.mismatches);
    if entry.status.is_executable() && mismatches > 0 {
        let (instruction, status) = (entry.name.clone(), entry.status);
        let place = vec![At::Key("validation"), At::Key("mismatches")];
        return Err((place, SheetProblem::Mismatched { instruction, status, mismatches }));
    }
    let needs_arithmetic = entry.status.is_executable() && entry.status != Status::ModeWithoutEffect;
    let model = match &entry.arithmetic {
        None if needs_arithmetic => {
            let (instruction, status) = (entry.name.clone(), entry.status);
            return Err((vec![At::Key("status")], SheetProblem::NoArithmetic { instruction, status }));
        }
        None => None,
        Some(arithmetic) => Some(Model::try_from(arithmetic).map_err(|error| {
            let mut place = vec![At::Key("arithmetic")];
            place.extend(place_of(&error));
            (place, SheetProblem::Arithmetic { instruction: entry.name.clone(), error })
        })?),
    };
    check_fit(&entry.instruction(), model.as_ref())
        .map_err(|misfit| (Vec::new(), SheetProblem::Misfit { instruction: entry.name.clone(), misfit }))?;
    for (index, dispute) in entry.disputed.iter().enumerate() {
        let amended = entry.arithmetic.as_ref().map(|arithmetic| dispute.amendment.apply(arithmetic));
        if let Some(Err(error)) = amended.as_ref().map(Model::try_from) {
            let place = vec![At::Key("disputed"), At::Index(index), At::Key("amendment")];
            return Err((place, SheetProblem::Arithmetic { instruction: entry.name.clone(), error }));
        }
    }
    Ok(())
}

/// Where in an arithmetic an error is.
fn place_of(error: &ArithmeticError) -> Vec<At> {
    match error {
        ArithmeticError::Step { step, .. } => vec![At::Key("steps"), At::Index(*step)],
        ArithmeticError::Rule { rule, .. } => vec![At::Key("rules"), At::Name(rule.clone())],
        ArithmeticError::Product(_) => vec![At::Key("product")],
        ArithmeticError::Blocks { .. } => vec![At::Key("scale")],
        ArithmeticError::TooManySteps(_) | ArithmeticError::Missing(_) | ArithmeticError::Model(_) => {
            vec![At::Key("steps")]
        }
    }
}

pub(crate) fn position_of(error: &serde_yaml::Error) -> Option<Position> {
    error.location().map(|at| Position { line: at.line(), column: at.column() })
}

/// The library's message without the position, which comes before it.
pub(crate) fn without_position(error: &serde_yaml::Error) -> String {
    let message = error.to_string();
    match position_of(error) {
        Some(Position { line, column }) => message.replace(&format!(" at line {line} column {column}"), ""),
        None => message,
    }
}

/// One step on the way to a value in a YAML document.
#[derive(Clone, Debug)]
pub(crate) enum At {
    /// Into a field.
    Key(&'static str),
    /// Into an entry of a mapping.
    Name(String),
    /// Into an element of a list.
    Index(usize),
}

/// Finds where a value stands.
///
/// The library has no positions of values, only of errors. So the document is read once more by a
/// reader that walks to the value and refuses it.
pub(crate) fn locate(text: &str, way: &[At]) -> Option<Position> {
    let refusal = Walk(way).deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
    position_of(&refusal)
}

/// Walks to a value and refuses it.
struct Walk<'w>(&'w [At]);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0 {
            [] => deserializer.deserialize_any(Refuse),
            [_, ..] => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (wanted, rest) = match self.0 {
            [At::Key(key), rest @ ..] => (*key, rest),
            [At::Name(name), rest @ ..] => (name.as_str(), rest),
            _ => ("", self.0),
        };
        while let Some(key) = map.next_key::<String>()? {
            if key == wanted {
                map.next_value_seed(Walk(rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if let [At::Index(index), rest @ ..] = self.0 {
            for _ in 0..*index {
                list.next_element::<IgnoredAny>()?;
            }
            list.next_element_seed(Walk(rest))?;
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Accepts no value: serde's defaults refuse every type.
struct Refuse;

impl Visitor<'_> for Refuse {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing")
    }
}
