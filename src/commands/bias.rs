//! `mmaprobe bias`.

use serde::Serialize;

use super::pairs::{Opened, opened};
use super::{Failure, Outcome, print, print_json, width};
use crate::bias::plot::{Drawn, svg};
use crate::bias::{Errors, Plan, errors};
use crate::catalog::Catalog;
use crate::characterize::Named;
use crate::cli::{Bias, Output};
use crate::device::Device;
use crate::output;
use crate::progress::Display;
use crate::table;

/// The errors of both devices' instruction.
#[derive(Serialize)]
struct Row {
    instruction: String,
    first: Errors,
    second: Errors,
}

pub fn run(arguments: &Bias, format: Output, catalog: &Catalog) -> Result<Outcome, Failure> {
    if let Some(path) = &arguments.svg {
        output::check(path, arguments.force).map_err(|error| unwritable(path, &error))?;
    }
    let Opened { names, devices: [first, second], matched } = opened(&arguments.devices, catalog)?;
    if matched.pairs.is_empty() {
        return Err(Failure::Usage(format!("no instruction in common: {} and {}", names[0], names[1])));
    }
    let Bias { count, seed, factors, accumulators, .. } = *arguments;
    let plan = Plan { count, seed, factors, accumulators };
    let display = Display::new();
    let mut rows = Vec::new();
    for (one, other) in &matched.pairs {
        let progress = display.named(&one.name);
        progress.step("asking", Some(plan.count));
        let devices: [(&dyn Device, _); 2] = [(first.as_ref(), one), (second.as_ref(), other)];
        let [first, second] = errors(devices, &plan, &|asked| progress.advance(asked))?;
        rows.push(Row { instruction: one.name.clone(), first, second });
    }
    display.clear();
    first.finish()?;
    second.finish()?;
    match format {
        Output::Text | Output::Markdown => {
            print(&rows.iter().map(|row| text(row, &names)).collect::<Vec<_>>().join("\n"))?
        }
        Output::Json => print_json(&rows)?,
    }
    if let Some(path) = &arguments.svg {
        let both: Vec<(&str, [Errors; 2])> = rows
            .iter()
            .map(|row| (row.instruction.as_str(), [row.first.clone(), row.second.clone()]))
            .collect();
        let devices = [names[0].as_str(), names[1].as_str()];
        let drawn: Vec<Drawn> =
            both.iter().map(|(instruction, errors)| Drawn { devices, instruction, errors }).collect();
        output::write(path, svg(&drawn).as_bytes(), arguments.force)
            .map_err(|error| unwritable(path, &error))?;
    }
    Ok(Outcome::Held)
}

fn unwritable(path: &std::path::Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("--svg: {} cannot be written: {error}", path.display()))
}

/// The two distributions beside each other.
fn text(row: &Row, names: &[String; 2]) -> String {
    let percent = |part: f64| format!("{:.2} %", 100.0 * part);
    let number = |value: f64| format!("{value:.6}");
    type Figure<'f> = (&'f str, &'f dyn Fn(&Errors) -> String);
    let figures: [Figure; 10] = [
        ("mean error", &|errors| number(errors.mean)),
        ("its standard error", &|errors| number(errors.standard_error)),
        ("standard deviation", &|errors| number(errors.deviation)),
        ("least", &|errors| number(errors.least)),
        ("median", &|errors| number(errors.median)),
        ("largest", &|errors| number(errors.largest)),
        ("below 0", &|errors| percent(errors.negative)),
        ("0", &|errors| percent(errors.zero)),
        ("answers", &|errors| errors.count.to_string()),
        ("no numbers", &|errors| errors.without.to_string()),
    ];
    let rows: Vec<[String; 3]> =
        figures.iter().map(|(name, of)| [name.to_string(), of(&row.first), of(&row.second)]).collect();
    format!("{}\n{}", row.instruction, table::plain(["answer − exact", &names[0], &names[1]], &rows, width()))
}
