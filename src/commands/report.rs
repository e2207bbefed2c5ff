//! `mmaprobe report`.

use std::fs;
use std::path::Path;

use super::{Failure, Outcome, sources};
use crate::catalog::Catalog;
use crate::cli::Report;
use crate::generate::Files;
use crate::output;
use crate::report::report;

pub fn run(arguments: &Report, catalog: &Catalog) -> Result<Outcome, Failure> {
    let sources = sources::load(&arguments.sheets, &arguments.evidence)?;
    let files = report(&sources, catalog)?;
    write(&arguments.output, &files, arguments.force)?;
    for (name, _) in &files {
        eprintln!("mmaprobe: wrote {}", arguments.output.join(name).display());
    }
    Ok(Outcome::Held)
}

/// Writes files into a folder, which may have others; each appears whole, and none if one is in the way.
pub fn write(folder: &Path, files: &Files, force: bool) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Usage(format!("cannot write {}: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (name, _) in files {
        let path = folder.join(name);
        output::check(&path, force).map_err(|error| failed(&path, error))?;
    }
    for (name, contents) in files {
        let path = folder.join(name);
        output::write(&path, contents.as_bytes(), force).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}
