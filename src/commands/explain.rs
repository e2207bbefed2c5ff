//! `mmaprobe explain`.

use serde::Serialize;

use super::{Failure, Outcome, open, print, print_json, width};
use crate::batch;
use crate::bits::{HexDotAdd, hex};
use crate::catalog::Catalog;
use crate::cli::{Explain, Output};
use crate::counterexample::File;
use crate::device::{Device, Instruction};
use crate::explain;
use crate::literal;
use crate::probes::{DotAdd, place};
use crate::steps::exact::{self, error_in_ulps};
use crate::steps::text::{self, Column};
use crate::steps::{Steps, steps};
use crate::validation::check_comparable;

pub fn run(arguments: &Explain, output: Output, catalog: &Catalog) -> Result<Outcome, Failure> {
    let Some(operand) = arguments.operand else { return dot_add(arguments, output, catalog) };
    let instruction = match &arguments.instruction[..] {
        [] => None,
        [one] => {
            Some(one.parse().map_err(|problem| Failure::Usage(format!("--instruction {one}: {problem}")))?)
        }
        _ => return Err(Failure::Usage("an operand is one instruction's".to_string())),
    };
    match output {
        Output::Text | Output::Markdown => print(&explain::explain(operand, instruction, width()))?,
        Output::Json => print_json(&explain::document(operand, instruction))?,
    }
    Ok(Outcome::Held)
}

/// A device, its instruction, and what it makes of the input.
#[derive(Serialize)]
struct Explained {
    device: String,
    instruction: String,
    answer: String,
    /// `None` if either is no number.
    error_in_ulps: Option<f64>,
    /// `None` if nobody knows them.
    steps: Option<Steps>,
    #[serde(skip)]
    bits: u64,
}

/// Everything, as JSON.
#[derive(Serialize)]
struct Document<'e> {
    #[serde(flatten)]
    operands: HexDotAdd,
    exact: String,
    devices: &'e [Explained],
}

fn dot_add(arguments: &Explain, output: Output, catalog: &Catalog) -> Result<Outcome, Failure> {
    let usage = |problem: &str| Failure::Usage(problem.to_string());
    let file = match &arguments.counterexample {
        Some(path) => {
            let instruction = arguments.instruction.first().map(String::as_str);
            Some(File::load(path, instruction).map_err(|error| Failure::Usage(error.to_string()))?)
        }
        None => None,
    };
    let given = |own: &[String], of_file: fn(&File) -> &[String]| match (own, &file) {
        ([], Some(file)) => of_file(file).to_vec(),
        (own, _) => own.to_vec(),
    };
    let devices = given(&arguments.devices, |file| &file.devices);
    let names = given(&arguments.instruction, |file| &file.instructions);
    if devices.is_empty() {
        return Err(usage(
            "--device says whose steps to explain (or give an operand of Apple's matrix unit)",
        ));
    }
    let names: Vec<&String> = match &names[..] {
        [] => return Err(usage("--instruction says which instruction to explain")),
        [one] => vec![one; devices.len()],
        several if several.len() == devices.len() => several.iter().collect(),
        _ => return Err(usage("--instruction is given once, or once for each --device")),
    };
    let mut opened: Vec<(&String, Box<dyn Device>, Instruction)> = Vec::new();
    for (device, name) in devices.iter().zip(&names) {
        let unit = open::open(device, arguments.timeout, catalog)?;
        let instruction = unit.instruction(name).map_err(Failure::Usage)?;
        opened.push((device, unit, instruction));
    }
    let first = &opened[0].2;
    for (_, _, other) in &opened[1..] {
        // m and n say nothing about one element.
        let alike = Instruction { m: first.m, n: first.n, ..other.clone() };
        check_comparable(first, &alike).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let question = match &file {
        Some(file) => file.question(first).map_err(Failure::Usage)?,
        None => read(arguments, first)?,
    };
    let exact = exact::result(&first.signature(), &question);
    let mut explained = Vec::new();
    for (name, unit, instruction) in &opened {
        let bits = batch::ask(unit.as_ref(), instruction, std::slice::from_ref(&question))?[0];
        unit.finish()?;
        let trees = open::trees(name, catalog)?;
        let model = trees.as_ref().and_then(|trees| trees.model(instruction));
        explained.push(Explained {
            device: name.to_string(),
            instruction: instruction.name.clone(),
            answer: hex(&instruction.d, bits),
            error_in_ulps: error_in_ulps(&exact, &instruction.d, bits),
            steps: model.map(|model| steps(model, &question)),
            bits,
        });
    }
    if output == Output::Json {
        let operands = HexDotAdd::new(&first.signature(), &question);
        print_json(&Document { operands, exact: exact.to_string(), devices: &explained })?;
        return Ok(Outcome::Held);
    }
    let alike = names.iter().all(|name| *name == names[0]);
    let columns: Vec<Column> = explained
        .iter()
        .map(|one| Column {
            device: &one.device,
            instruction: if alike { "" } else { &one.instruction },
            steps: one.steps.as_ref(),
            answer: one.bits,
        })
        .collect();
    let title = if alike { &first.name } else { "One output element" };
    print(&format!(
        "{title}\n{}{}",
        text::operands(&first.signature(), &question, &exact),
        text::columns(&columns, &first.d, &exact, width())
    ))?;
    Ok(Outcome::Held)
}

/// The input that the arguments say: what they leave out is +0, and 1 for scales.
fn read(arguments: &Explain, instruction: &Instruction) -> Result<DotAdd, Failure> {
    let mut question = place::zeros(&instruction.signature());
    let scale = instruction.scale.map(|scale| scale.format);
    for (name, texts, format, elements) in [
        ("--a", &arguments.a, Some(instruction.a), &mut question.a[..]),
        ("--b", &arguments.b, Some(instruction.b), &mut question.b),
        ("--c", &arguments.c, Some(instruction.c), std::slice::from_mut(&mut question.c)),
        ("--sa", &arguments.sa, scale, &mut question.sa),
        ("--sb", &arguments.sb, scale, &mut question.sb),
    ] {
        let wrong = |problem: String| Failure::Usage(format!("{name}: {problem}"));
        if texts.is_empty() {
            continue;
        }
        let Some(format) = format else {
            return Err(wrong(format!("{} takes no block scales", instruction.name)));
        };
        let count = elements.len();
        for (position, text) in texts.iter().enumerate() {
            let (place, text) = match text.split_once(':') {
                None => (position, text.as_str()),
                Some((place, text)) => match place.trim().parse() {
                    Ok(place) => (place, text),
                    Err(_) => return Err(wrong(format!("'{place}' is no place; write 3:1.5 for element 3"))),
                },
            };
            let bits = literal::read(text.trim(), &format).map_err(wrong)?;
            let element = elements.get_mut(place);
            *element.ok_or_else(|| {
                wrong(format!("there is no element {place}: {} takes {count}", instruction.name))
            })? = bits;
        }
    }
    Ok(question)
}
