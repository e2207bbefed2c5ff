//! `mmaprobe completions`.

use clap::CommandFactory;

use super::{Failure, Outcome, print};
use crate::cli::{Cli, Completions};

pub fn run(arguments: &Completions) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "mmaprobe", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Held)
}
