//! `mmaprobe man`.

use std::fs;
use std::io;
use std::path::Path;

use clap::CommandFactory;

use super::{Failure, Outcome, report};
use crate::cli::{Cli, Man};
use crate::generate::Files;

pub fn run(arguments: &Man) -> Result<Outcome, Failure> {
    let scratch = tempfile::tempdir().map_err(Failure::Output)?;
    clap_mangen::generate_to(Cli::command(), scratch.path()).map_err(Failure::Output)?;
    report::write(&arguments.output, &read(scratch.path()).map_err(Failure::Output)?, arguments.force)?;
    Ok(Outcome::Held)
}

/// The pages, in the order of their names.
fn read(folder: &Path) -> io::Result<Files> {
    let mut pages = Files::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        pages.push((entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path())?));
    }
    pages.sort();
    Ok(pages)
}
