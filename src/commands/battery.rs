//! `mmaprobe battery`.

use super::{Failure, Outcome, open, print, select, width};
use crate::battery::{self, Column};
use crate::catalog::Catalog;
use crate::cli::{Battery, Output};

pub fn run(arguments: &Battery, output: Output, catalog: &Catalog) -> Result<Outcome, Failure> {
    let mut columns = Vec::new();
    for name in &arguments.device {
        let device = open::open(name, arguments.timeout, catalog)?;
        for instruction in select(device.as_ref(), arguments.instruction.as_deref())? {
            columns.push(Column {
                device: name.clone(),
                signature: instruction.signature(),
                findings: battery::run(device.as_ref(), &instruction)?,
                instruction: instruction.name,
            });
        }
        device.finish()?;
    }
    let text = match output {
        Output::Markdown => battery::markdown(&columns),
        Output::Json => battery::json(&columns),
        Output::Text if arguments.device.len() > 1 => battery::compare(&columns, width()),
        Output::Text => {
            let tables: Vec<String> = columns.iter().map(|column| battery::table(column, width())).collect();
            tables.join("\n")
        }
    };
    print(&text)?;
    Ok(Outcome::Held)
}
