//! `mmaprobe explain`.

use super::{Failure, Outcome, print, width};
use crate::cli::Explain;
use crate::explain::explain;

pub fn run(arguments: &Explain) -> Result<Outcome, Failure> {
    print(&explain(arguments.operand, arguments.instruction, width()))?;
    Ok(Outcome::Held)
}
