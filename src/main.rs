//! The `mmaprobe` command.

use std::process::ExitCode;

use clap::Parser;
use mmaprobe::cli::Cli;

fn main() -> ExitCode {
    match mmaprobe::commands::run(Cli::parse()) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            // A closed pipe (`mmaprobe show … | head`) is no failure to tell of.
            if !failure.is_closed_pipe() {
                eprintln!("mmaprobe: {failure}");
            }
            failure.exit_code()
        }
    }
}
