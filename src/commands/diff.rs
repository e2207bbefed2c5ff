//! `mmaprobe diff`.

use std::path::Path;

use rayon::prelude::*;

use super::pairs::{Opened, opened};
use super::{Failure, Outcome, open, print, print_json, width};
use crate::catalog::Catalog;
use crate::characterize::{Named, counterexample};
use crate::cli::{Diff, Output};
use crate::counterexample::{File, SCHEMA};
use crate::device::DeviceError;
use crate::diff::text::{document, text};
use crate::diff::{Comparison, Plan, Side, compare};
use crate::output;
use crate::progress::Display;

pub fn run(arguments: &Diff, format: Output, catalog: &Catalog) -> Result<Outcome, Failure> {
    let Opened { names, devices: [first, second], matched } = opened(&arguments.devices, catalog)?;
    let (first_trees, second_trees) = (open::trees(&names[0], catalog)?, open::trees(&names[1], catalog)?);
    let first_side = Side { name: &names[0], device: first.as_ref(), trees: first_trees.as_ref() };
    let second_side = Side { name: &names[1], device: second.as_ref(), trees: second_trees.as_ref() };
    let sides = [&first_side, &second_side];
    let plan = Plan { random: arguments.random, seed: arguments.seed, any_nan: arguments.any_nan };
    let display = Display::new();
    let progress = display.named("diff");
    progress.step("comparing", Some(matched.pairs.len() as u64));
    let comparisons: Result<Vec<Comparison>, DeviceError> = matched
        .pairs
        .par_iter()
        .map(|(one, other)| {
            let comparison = compare(sides, (one, other), &plan)?;
            progress.advance(1);
            Ok(comparison)
        })
        .collect();
    drop(progress);
    display.clear();
    let comparisons = comparisons?;
    first.finish()?;
    second.finish()?;
    match format {
        Output::Text | Output::Markdown => print(&text(sides, &matched, &comparisons, width()))?,
        Output::Json => print_json(&document(sides, &matched, &comparisons))?,
    }
    if let Some(folder) = &arguments.save {
        save(folder, &names, &comparisons, arguments.force)?;
    }
    let missing = [&matched.only_first, &matched.only_second].iter().any(|only| !only.is_empty());
    let different = missing || !matched.unlike.is_empty() || comparisons.iter().any(Comparison::is_different);
    Ok(if different { Outcome::Failed } else { Outcome::Held })
}

/// Writes a file for each example.
fn save(folder: &Path, names: &[String; 2], comparisons: &[Comparison], force: bool) -> Result<(), Failure> {
    let unwritable = |path: &Path, error: std::io::Error| {
        Failure::Usage(format!("--save: {} cannot be written: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    for comparison in comparisons {
        let examples =
            comparison.differences.iter().filter_map(|shown| Some((shown, shown.example.as_ref()?)));
        for (number, (shown, example)) in (1..).zip(examples) {
            let (first, second) = example.answers;
            let file = File {
                schema: SCHEMA.to_string(),
                devices: names.to_vec(),
                instructions: vec![comparison.first.name.clone(), comparison.second.name.clone()],
                counterexample: counterexample(
                    &comparison.first,
                    &example.question,
                    first,
                    Some(second),
                    format!("the smallest input found for: {}", shown.what),
                ),
            };
            // Names of external devices' instructions can be anything.
            let name: String = comparison
                .first
                .name
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() || "._-+".contains(c) { c } else { '_' })
                .collect();
            let path = folder.join(format!("{name}-{number}.yaml"));
            output::write(&path, file.write().as_bytes(), force).map_err(|error| unwritable(&path, error))?;
            eprintln!("mmaprobe: wrote {}", path.display());
        }
    }
    Ok(())
}
