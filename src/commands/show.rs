//! `mmaprobe show`.

use super::{Failure, Outcome, print, width};
use crate::cli::Show;
use crate::sheet;

pub fn run(arguments: &Show) -> Result<Outcome, Failure> {
    let sheet = sheet::yaml::load(&arguments.sheet)?;
    let text = match arguments.tree {
        true => sheet::table::show_tree(&sheet, width()),
        false => sheet::table::show(&sheet, width()),
    };
    print(&text)?;
    Ok(Outcome::Held)
}
