//! `mmaprobe show`.

use super::{Failure, Outcome, print, print_json, width};
use crate::cli::{Output, Show};
use crate::sheet;

pub fn run(arguments: &Show, output: Output) -> Result<Outcome, Failure> {
    let sheet = sheet::yaml::load(&arguments.sheet)?;
    match (output, arguments.tree) {
        (Output::Text | Output::Markdown, true) => print(&sheet::table::show_tree(&sheet, width()))?,
        (Output::Text | Output::Markdown, false) => print(&sheet::table::show(&sheet, width()))?,
        (Output::Json, false) => print_json(&sheet)?,
        (Output::Json, true) => {
            let problem =
                "--format json: a drawing is text; without --tree, the steps of each tree are there";
            return Err(Failure::Usage(problem.to_string()));
        }
    }
    Ok(Outcome::Held)
}
