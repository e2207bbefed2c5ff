//! From parameter sheets to a crate that computes what they say.
//!
//! [`generate`] turns sheets into the files of a crate, in memory; [`write`](write()) brings them to the
//! disk, all or none. A generated crate consists of
//!
//! - the very source of `model`, [carried] along, and the handwritten part that all generated crates share
//!   (the folder `template`): the typed API, the device protocol, the C interface;
//! - each instruction as a constant, [its tree](trees) in [readable Rust](code), the sheet's statements as its
//!   [documentation](docs);
//! - [tests made of recorded answers](evidence);
//! - a [C header](header) and [manifests](manifest).
//!
//! The same sheets give the same bytes.

pub mod carried;
pub mod code;
pub mod docs;
pub mod evidence;
pub mod header;
pub mod identifiers;
pub mod manifest;
pub mod root;
pub mod sheet_module;
pub mod tests;
pub mod trees;
pub mod write;

use std::collections::HashSet;

use crate::bits::{ShownDotAdd, hex};
use crate::device::description::check_text;
use crate::device::sheet::simulate;
use crate::device::simulated::Simulated;
use crate::device::{DeviceError, Instruction};
use crate::model::Model;
use crate::probes::DotAdd;
use crate::sheet::{Entry, Sheet};
use evidence::Recorded;
use identifiers::CrateName;
use sheet_module::Constants;

pub use write::{WriteError, write};

/// A sheet to generate from.
pub struct Source {
    /// What the sheet is called in the crate.
    pub name: String,
    /// The sheet.
    pub sheet: Sheet,
    /// What was recorded when it was made, if that is there.
    pub recorded: Option<Recorded>,
}

/// Why sheets make no crate.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// Two sheets would be one.
    #[error("two sheets are called '{0}'; rename one of the files")]
    SameName(String),
    /// No sheet has an instruction whose arithmetic is known.
    #[error("there is nothing to generate: {0}")]
    Nothing(String),
    /// A crate that has an instruction of this name would be no device.
    #[error("an instruction cannot be generated: its {0}")]
    Name(String),
    /// A sheet cannot be executed.
    #[error(transparent)]
    Sheet(#[from] DeviceError),
    /// A recording is of something else than the sheet.
    #[error(
        "{instruction}: the recording has an answer that the sheet contradicts, so they do not belong together:\n\
         {question}  answer {answer}"
    )]
    Contradicted {
        /// The instruction.
        instruction: String,
        /// The question, for people.
        question: String,
        /// What was recorded.
        answer: String,
    },
}

impl GenerateError {
    fn contradicted(instruction: &Instruction, question: &DotAdd, answer: u64) -> GenerateError {
        let signature = instruction.signature();
        GenerateError::Contradicted {
            instruction: instruction.name.clone(),
            question: ShownDotAdd { signature: &signature, dot_add: question }.to_string(),
            answer: hex(&instruction.d, answer),
        }
    }
}

/// The files of a crate: paths, with `/`, and contents.
pub type Files = Vec<(String, String)>;

/// What a crate says about one sheet.
pub struct Chapter<'s> {
    /// What the sheet is called.
    pub name: String,
    /// The name of its module.
    pub module: String,
    /// The sheet.
    pub sheet: &'s Sheet,
    /// The instructions that are generated.
    pub included: Vec<Included<'s>>,
    /// Their constants.
    pub constants: Constants,
    /// The names of those that are not, and why not.
    pub left_out: Vec<(String, String)>,
    /// What was recorded.
    pub recorded: Option<&'s Recorded>,
}

/// An instruction that is generated.
pub struct Included<'s> {
    /// What the sheet says.
    pub entry: &'s Entry,
    /// Its shape and formats.
    pub instruction: Instruction,
    /// What it computes.
    pub model: &'s Model,
}

/// Generates a crate.
///
/// # Errors
/// If the sheets make no crate; see [`GenerateError`].
pub fn generate(name: &CrateName, sources: &[Source]) -> Result<Files, GenerateError> {
    let devices = sources
        .iter()
        .map(|source| simulate(&source.sheet, source.name.clone()))
        .collect::<Result<Vec<Simulated>, DeviceError>>()?;
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    let mut known = HashSet::new();
    if let Some(twice) = names.iter().find(|name| !known.insert(**name)) {
        return Err(GenerateError::SameName(twice.to_string()));
    }
    let modules = root::module_names(&names);
    let chapters = (sources.iter().zip(&devices).zip(modules))
        .map(|((source, device), module)| chapter(source, device, module))
        .collect::<Result<Vec<Chapter>, GenerateError>>()?;
    if chapters.iter().all(|chapter| chapter.included.is_empty()) {
        let reasons = chapters.iter().flat_map(|chapter| &chapter.left_out);
        let reasons: Vec<String> = reasons.map(|(name, reason)| format!("{name} is {reason}")).collect();
        return Err(GenerateError::Nothing(match reasons.is_empty() {
            true => "no sheet has an instruction".to_string(),
            false => reasons.join("; "),
        }));
    }
    let mut files = carried::files(name);
    let single = chapters.len() == 1;
    for Chapter { name, module, sheet, included, constants, .. } in &chapters {
        let title = format!("{name}: {}", sheet.device.description);
        let source = sheet_module::source(name, &title, included, constants, single);
        files.push((format!("src/{module}.rs"), source));
    }
    files.extend(tests::files(&chapters)?);
    files.extend([
        ("src/lib.rs".to_string(), root::library(name, &chapters)),
        ("src/sheets.rs".to_string(), root::sheets(&chapters)),
        ("Cargo.toml".to_string(), manifest::root_manifest(name, &chapters)),
        ("Cargo.lock".to_string(), manifest::lock(name)),
        ("README.md".to_string(), manifest::readme(name, &chapters)),
        (".gitignore".to_string(), "/target\n".to_string()),
        ("c/Cargo.toml".to_string(), manifest::c_manifest(name)),
        (format!("c/include/{}.h", name.library()), header::header(name, &chapters)),
    ]);
    files.sort();
    Ok(files)
}

/// The instructions of a sheet that are not understood, so that nothing of them is generated, and why not.
pub fn not_understood(sheet: &Sheet) -> Vec<(&str, String)> {
    let entries = sheet.instructions.iter().filter(|entry| !entry.status.is_executable());
    entries.map(|entry| (entry.name.as_str(), docs::reason(entry))).collect()
}

/// Sorts the instructions of a sheet into those that are generated and those that are not.
fn chapter<'s>(
    source: &'s Source,
    device: &'s Simulated,
    module: String,
) -> Result<Chapter<'s>, GenerateError> {
    let mut included = Vec::new();
    let mut left_out = Vec::new();
    for entry in &source.sheet.instructions {
        match device.model(&entry.name) {
            Some(model) => {
                let qualified = format!("{}/{}", source.name, entry.name);
                check_text("name", &qualified).map_err(GenerateError::Name)?;
                included.push(Included { entry, instruction: entry.instruction(), model });
            }
            None => left_out.push((entry.name.clone(), docs::reason(entry))),
        }
    }
    let absent = source.sheet.absent.iter().map(|absent| (absent.name.clone(), absent.reason.clone()));
    left_out.extend(absent);
    let constants = Constants::of(&included);
    let (name, recorded) = (source.name.clone(), source.recorded.as_ref());
    Ok(Chapter { name, module, sheet: &source.sheet, included, constants, left_out, recorded })
}
