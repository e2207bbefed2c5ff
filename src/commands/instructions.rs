//! `mmaprobe instructions`.

use serde::Serialize;

use super::open;
use super::{Failure, Outcome, print, print_json, width};
use crate::catalog::{Architecture, Catalog, Expansion, Family};
use crate::cli::{Instructions, Output};
use crate::device::sim::did_you_mean;
use crate::device::{Device, Instruction};
use crate::sheet::schema::{ModeOf, ScaleFacts};
use crate::table;

pub fn run(arguments: &Instructions, output: Output, catalog: &Catalog) -> Result<Outcome, Failure> {
    match (&arguments.arch, &arguments.device) {
        (Some(name), _) => {
            let found = catalog.find(name).ok_or_else(|| {
                let near = did_you_mean(&catalog.near(name));
                Failure::Usage(format!("the catalogue has no architecture, GPU or ISA target '{name}'{near}"))
            })?;
            match output {
                Output::Text | Output::Markdown => print(&of_architecture(found.architecture))?,
                Output::Json => print_json(&Published::of(found.architecture))?,
            }
        }
        (None, Some(device)) => {
            let device = open::open(device, arguments.timeout, catalog)?;
            match output {
                Output::Text | Output::Markdown => print(&of_device(&device))?,
                Output::Json => {
                    print_json(&device.instructions().iter().map(Offered::of).collect::<Vec<_>>())?
                }
            }
            device.finish()?;
        }
        (None, None) => return Err(Failure::Usage("say --device D or --arch A".to_string())),
    }
    Ok(Outcome::Held)
}

/// An instruction of a device.
#[derive(Serialize)]
struct Offered {
    instruction: String,
    m: usize,
    n: usize,
    k: usize,
    a: &'static str,
    b: &'static str,
    c: &'static str,
    d: &'static str,
    scale: Option<ScaleFacts>,
    mode_of: Option<ModeOf>,
}

impl Offered {
    fn of(instruction: &Instruction) -> Offered {
        let Instruction { name, m, n, k, a, b, c, d, scale, mode_of } = instruction.clone();
        Offered {
            instruction: name,
            m,
            n,
            k,
            a: a.name,
            b: b.name,
            c: c.name,
            d: d.name,
            scale: scale.map(ScaleFacts::from),
            mode_of: mode_of.map(|(instruction, mode)| ModeOf { instruction, mode }),
        }
    }
}

/// What the catalogue says of an architecture.
#[derive(Serialize)]
struct Published<'c> {
    architecture: &'c str,
    title: &'c str,
    instructions: Vec<OfFamily<'c>>,
    /// What its assembler accepts and expands.
    expansions: Vec<&'c Expansion>,
}

/// An instruction of the catalogue, in its smallest shape.
#[derive(Serialize)]
struct OfFamily<'c> {
    #[serde(flatten)]
    smallest: Offered,
    /// Its name, with `{m}` and `{n}` where they are free.
    pattern: &'c str,
    isa: &'c str,
    shapes: String,
    kernel: &'c str,
    algorithm: Option<String>,
}

impl Published<'_> {
    fn of(architecture: &Architecture) -> Published<'_> {
        fn of_family(family: &Family) -> OfFamily<'_> {
            let (m, n) = family.smallest();
            OfFamily {
                smallest: Offered::of(&family.instruction(m, n)),
                pattern: &family.pattern,
                isa: &family.isa,
                shapes: family.shapes(),
                kernel: &family.kernel,
                algorithm: family.published.as_ref().map(|published| published.algorithm.to_string()),
            }
        }
        Published {
            architecture: &architecture.name,
            title: &architecture.title,
            instructions: architecture.families.iter().map(of_family).collect(),
            expansions: architecture.assembled.iter().flat_map(|assembled| &assembled.expansions).collect(),
        }
    }
}

fn of_device(device: &dyn Device) -> String {
    let rows: Vec<[String; 4]> = device
        .instructions()
        .iter()
        .map(|i| {
            let scale = i.scale.map_or(String::new(), |s| format!(", {} scales of {}", s.format, s.block));
            [
                i.name.clone(),
                format!("{}×{}×{}", i.m, i.n, i.k),
                format!("{}·{} + {} → {}{scale}", i.a, i.b, i.c, i.d),
                i.mode_of.as_ref().map_or(String::new(), |(base, mode)| format!("{base} where {mode}")),
            ]
        })
        .collect();
    table::plain(["instruction", "m×n×k", "formats", "mode"], &rows, width())
}

/// What the catalogue says about each instruction. m and n stand for themselves where they are free.
fn of_architecture(architecture: &Architecture) -> String {
    let mut notes: Vec<String> = Vec::new();
    let rows: Vec<[String; 3]> = architecture
        .families
        .iter()
        .map(|family| {
            let algorithm = match &family.published {
                Some(published) => published.algorithm.to_string(),
                None => "not published".to_string(),
            };
            let name = family.pattern.replace("{m}", "M").replace("{n}", "N");
            let isa = family.isa.replace("{m}", "M").replace("{n}", "N");
            if family.pattern.contains('{') {
                let kind: String = family.pattern.split('.').next().unwrap_or_default().to_string();
                let blocks =
                    family.scale_block().map_or(String::new(), |block| format!(" with block{block}"));
                let note = format!("{kind}{blocks}: {}", family.shapes());
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            // The machine's name in a line of its own where it is another one.
            let name = if isa == name { name } else { format!("{name}\n  {isa}") };
            [name, family.kernel.clone(), algorithm]
        })
        .collect();
    let mut text = table::plain(["instruction", "kernel", "algorithm"], &rows, width());
    for note in notes {
        text.push_str(&textwrap::fill(&note, textwrap::Options::new(width()).subsequent_indent("  ")));
        text.push('\n');
    }
    let expansions = architecture.assembled.iter().flat_map(|assembled| &assembled.expansions);
    let rows: Vec<[String; 2]> =
        expansions.map(|expansion| [expansion.names.join("\n"), expansion.into.clone()]).collect();
    if !rows.is_empty() {
        let by = architecture.assembled.as_ref().map_or("", |assembled| &assembled.by);
        text += &format!("\nNo unit for these; {by} accepts and expands them:\n");
        text += &table::plain(["instruction", "becomes"], &rows, width());
    }
    text + &format!("{} instructions of {}\n", architecture.families.len(), architecture.title)
}
