//! `mmaprobe generate`.

use std::path::Path;

use super::{Failure, Outcome, sources};
use crate::cli::Generate;
use crate::generate::identifiers::CrateName;
use crate::generate::{generate, not_understood, write};

pub fn run(arguments: &Generate) -> Result<Outcome, Failure> {
    let name = crate_name(&arguments.output)?;
    write::check(&arguments.output, arguments.force)?;
    let sources = sources::load(&arguments.sheets, &arguments.evidence)?;
    let files = generate(&name, &sources)?;
    write::write(&arguments.output, &files, arguments.force)?;
    for source in &sources {
        let without = match source.recorded {
            Some(_) => "with its recorded answers as tests",
            None => "without recorded answers (--evidence): its tests only show agreement with this tool",
        };
        eprintln!("mmaprobe: {}: {without}", source.name);
        for (instruction, reason) in not_understood(&source.sheet) {
            eprintln!("mmaprobe: {}: left out: {instruction} is {reason}", source.name);
        }
    }
    eprintln!("mmaprobe: {} is a crate named {}", arguments.output.display(), name.package());
    Ok(Outcome::Held)
}

/// The crate is called as its folder is.
fn crate_name(folder: &Path) -> Result<CrateName, Failure> {
    let last = folder.file_name().and_then(|name| name.to_str()).map(str::to_string);
    // `.` and `..` have no last part of their own.
    let last = last.or_else(|| Some(folder.canonicalize().ok()?.file_name()?.to_str()?.to_string()));
    let last = last.unwrap_or_default();
    CrateName::new(&last)
        .map_err(|problem| Failure::Usage(format!("-o: no crate can be called '{last}': {problem}")))
}
