//! Every instruction of virtual devices, seen only as devices: whether the model that is found is equal to the published
//! one on fresh inputs, and named as it is, as Markdown.
//!
//!     cargo run --release --example campaign -- 1000000 volta turing ampere
//!
//! The number is how many matrix sets of each instruction are compared; without architectures, all that have something
//! published are taken. The tables kept in `reports/campaign.md` took hours; a line on stderr tells of each instruction.

use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mmaprobe::catalog::{Catalog, published};
use mmaprobe::characterize::characterize;
use mmaprobe::device::sheet::simulate;
use mmaprobe::device::{Device, Instruction};
use mmaprobe::inference::{Options, Silent};
use mmaprobe::probes::random::Distribution;
use mmaprobe::sheet::{Entry, Sheet};
use mmaprobe::validation::{Nans, Outcome, Plan, validate};
use rayon::ThreadPoolBuilder;

/// Random dot-adds that a model is validated on before it is claimed.
const VALIDATED: u64 = 100_000;

/// Of the inputs that are asked.
const SEED: u64 = 1;

/// Of the matrix sets that found and published models are compared on.
const FRESH_SEED: u64 = 2;

/// What became of an instruction.
struct Row {
    found: Entry,
    published: Entry,
    /// None if no model was found.
    compared: Option<Outcome>,
}

impl Row {
    fn is_equal(&self) -> bool {
        self.compared.as_ref().is_some_and(|outcome| outcome.mismatch.is_none())
    }

    fn is_named(&self) -> bool {
        self.found.algorithm == self.published.algorithm
    }

    /// What the sheet says of it that is no plain name.
    fn remarks(&self) -> String {
        let found = &self.found;
        let left_open = found.equivalent.iter().chain(&found.ambiguous);
        let left_open =
            left_open.map(|open| format!("{}: {}", open.statement, open.alternatives.join(" or ")));
        found.notes.iter().cloned().chain(left_open).collect::<Vec<_>>().join("; ").replace('|', "\\|")
    }
}

fn row(device: &dyn Device, published: &Entry, instruction: &Instruction, sets: u64) -> Result<Row, String> {
    let started = Instant::now();
    let said = |what: &dyn ToString| format!("{}: {}", instruction.name, what.to_string());
    let options = Options { validate: VALIDATED, seed: SEED };
    let asked = std::slice::from_ref(instruction);
    let sheet = characterize(device, asked, &options, None, &Silent).map_err(|error| said(&error))?;
    let characterized = started.elapsed().as_secs_f64();
    let own = simulate(&sheet, "what was found".to_string()).map_err(|error| said(&error))?;
    let compared = match own.instructions() {
        [found] => {
            let bits = device.means_nan_bits(instruction) && own.means_nan_bits(found);
            let nans = if bits { Nans::Bits } else { Nans::AsOne };
            let plan = Plan { sets, seed: FRESH_SEED, distributions: Distribution::ALL.to_vec(), nans };
            let outcome = validate(device, instruction, &own, found, &plan, &|_| ());
            Some(outcome.map_err(|error| said(&error))?)
        }
        _ => None,
    };
    let Sheet { mut instructions, .. } = sheet;
    let row = Row { found: instructions.remove(0), published: published.clone(), compared };
    let Entry { name, status, algorithm, .. } = &row.found;
    let equal = if row.is_equal() { "equal" } else { "NOT EQUAL" };
    let all = started.elapsed().as_secs_f64();
    eprintln!("{name}: {status}, {algorithm}, {equal}; {characterized:.0} s, {:.0} s", all - characterized);
    Ok(row)
}

/// Those of all instructions, in their order. Each is on one thread: what waits for others in a common pool would begin
/// with the next instruction, and keep the evidence of many.
fn rows(device: &(dyn Device + Sync), published: &[Entry], sets: u64) -> Result<Vec<Row>, Box<dyn Error>> {
    let next = AtomicUsize::new(0);
    let rows: Mutex<Vec<(usize, Result<Row, String>)>> = Mutex::new(Vec::new());
    let pools = (0..rayon::current_num_threads()).map(|_| ThreadPoolBuilder::new().num_threads(1).build());
    let pools = pools.collect::<Result<Vec<_>, _>>()?;
    let (next, all) = (&next, &rows);
    std::thread::scope(|scope| {
        for pool in &pools {
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((published, instruction)) = published.get(at).zip(device.instructions().get(at))
                    else {
                        break;
                    };
                    let row = pool.install(|| row(device, published, instruction, sets));
                    all.lock().expect("no thread panics with the lock").push((at, row));
                }
            });
        }
    });
    let mut rows = rows.into_inner()?;
    rows.sort_by_key(|(at, _)| *at);
    Ok(rows.into_iter().map(|(_, row)| row).collect::<Result<_, _>>()?)
}

/// The mean of what stands in the middle.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { u64::midpoint(values[half - 1], values[half]) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let sets = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    // An architecture, and what names of its instructions contain.
    let asked: Vec<(String, String)> = arguments
        .map(|text| {
            let (name, part) = text.split_once(':').unwrap_or((&text, ""));
            (name.to_string(), part.to_string())
        })
        .collect();
    let catalog = Catalog::embedded();
    let sheets = catalog.architectures().iter().filter_map(|architecture| {
        let parts: Vec<&str> = match asked.is_empty() {
            true => vec![""],
            false => {
                let of_it = asked.iter().filter(|(name, _)| *name == architecture.name);
                of_it.map(|(_, part)| part.as_str()).collect()
            }
        };
        let mut sheet = published::sheet(architecture)?;
        sheet.instructions.retain(|entry| parts.iter().any(|part| entry.name.contains(part)));
        (!sheet.instructions.is_empty()).then(|| (architecture.name.clone(), sheet))
    });
    let sheets: Vec<_> = sheets.collect();
    let is_known = |name: &str, part: &str| {
        let of_it = sheets.iter().filter(|(known, _)| known == name);
        of_it.flat_map(|(_, sheet)| &sheet.instructions).any(|entry| entry.name.contains(part))
    };
    if let Some((unknown, part)) = asked.iter().find(|(name, part)| !is_known(name, part)) {
        return Err(format!("no instruction '{part}' of an architecture '{unknown}' is published").into());
    }
    println!(
        "| architecture | instructions | equal on {sets} matrix sets | dot-adds | named as published | rounds | questions |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    let mut otherwise = Vec::new();
    for (name, sheet) in sheets {
        let device = simulate(&sheet, format!("sim:{name}"))?;
        let rows = rows(&device, &sheet.instructions, sets)?;
        let costs = rows.iter().filter_map(|row| row.found.cost.as_ref());
        let (rounds, questions): (Vec<_>, Vec<_>) = costs.map(|cost| (cost.rounds, cost.dot_adds)).unzip();
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} |",
            rows.len(),
            rows.iter().filter(|row| row.is_equal()).count(),
            rows.iter().filter_map(|row| row.compared.as_ref()).map(|outcome| outcome.dot_adds).sum::<u64>(),
            rows.iter().filter(|row| row.is_named()).count(),
            median(rounds),
            median(questions),
        );
        otherwise.extend(
            rows.into_iter().filter(|row| !row.is_named() || !row.is_equal()).map(|row| (name.clone(), row)),
        );
    }
    println!("\nRounds and questions (dot-adds): medians. Otherwise than published, or not equal:\n");
    println!(
        "| | instruction | found | published | equal | what the sheet says |\n|---|---|---|---|---|---|"
    );
    for (architecture, row) in otherwise {
        let Row { found, published, .. } = &row;
        let equal = if row.is_equal() { "yes" } else { "**no**" };
        let names = format!("{} | {}", found.algorithm, published.algorithm);
        println!("| {architecture} | {} | {names} | {equal} | {} |", found.name, row.remarks());
    }
    Ok(())
}
