//! A comparison for people, and as JSON.

use std::fmt::Write;

use serde::Serialize;

use super::{Comparison, Example, Matched, Shown, Side};
use crate::bits::{HexDotAdd, hex};
use crate::device::Instruction;
use crate::probes::place;
use crate::steps::exact::{self, error_in_ulps};
use crate::steps::text::{self, Column};
use crate::steps::{Steps, steps};
use crate::table;
use crate::validation::Nans;

/// Everything for stdout: a table of all instructions, what only one side has, and each difference with
/// its input and the steps of both sides.
pub fn text(sides: [&Side; 2], matched: &Matched, comparisons: &[Comparison], width: usize) -> String {
    let rows: Vec<[String; 2]> =
        comparisons.iter().map(|comparison| [name(comparison), verdict(comparison)]).collect();
    let mut text = String::new();
    if !rows.is_empty() {
        text += &table::plain(["instruction", "result"], &rows, width);
    }
    for (side, only) in [(0, &matched.only_first), (1, &matched.only_second)] {
        if !only.is_empty() {
            let names: Vec<&str> = only.iter().map(|instruction| instruction.name.as_str()).collect();
            let line = format!("Only in {}: {}", sides[side].name, names.join(", "));
            text += &(textwrap::fill(&line, wrapped(width)) + "\n");
        }
    }
    for (_, problem) in &matched.unlike {
        text += &(textwrap::fill(&format!("Not compared: {problem}"), wrapped(width)) + "\n");
    }
    for comparison in comparisons.iter().filter(|comparison| !comparison.differences.is_empty()) {
        text += &details(sides, comparison, width);
    }
    text
}

fn wrapped(width: usize) -> textwrap::Options<'static> {
    textwrap::Options::new(width).subsequent_indent("  ")
}

/// The instruction, by both its names where there are two.
fn name(comparison: &Comparison) -> String {
    let (first, second) = (&comparison.first.name, &comparison.second.name);
    if first == second { first.clone() } else { format!("{first} {second}") }
}

fn verdict(comparison: &Comparison) -> String {
    let any_nan = if comparison.nans == Nans::AsOne { ", any NaN for any other" } else { "" };
    let shown = comparison.differences.iter().filter(|shown| shown.example.is_some()).count();
    let unshown = comparison.differences.len() - shown;
    let equal = match comparison.same_tree {
        Some(true) => format!("equal: the same tree, and {} inputs{any_nan}", comparison.tried),
        _ => format!("equal on {} inputs{any_nan}", comparison.tried),
    };
    match (shown, unshown) {
        (0, 0) => equal,
        (0, _) => format!("{equal}, though the trees differ"),
        _ => {
            let what: Vec<&str> = comparison.differences.iter().map(|shown| shown.what).collect();
            format!("DIFFERENT: {}", what.join("; "))
        }
    }
}

/// The differences of an instruction: a table, then each with its input.
fn details(sides: [&Side; 2], comparison: &Comparison, width: usize) -> String {
    let mut text = format!("\n{}\n", textwrap::fill(&name(comparison), width));
    let rows: Vec<[String; 3]> = comparison
        .differences
        .iter()
        .filter(|shown| !(shown.first.is_empty() && shown.second.is_empty()))
        .map(|shown| [shown.what.to_string(), shown.first.clone(), shown.second.clone()])
        .collect();
    if !rows.is_empty() {
        text += &table::plain(["what differs", sides[0].name, sides[1].name], &rows, width);
    }
    for Shown { what, example, .. } in &comparison.differences {
        match example {
            None => {
                let line = format!(
                    "No input shows by itself: {what} ({} were tried). Other differences may hide it, or it \
                     may make none.",
                    comparison.tried
                );
                text += &(textwrap::fill(&line, wrapped(width)) + "\n");
            }
            Some(example) => {
                text += &format!("Smallest input found for: {what}\n");
                text += &explained(sides, comparison, example, width);
            }
        }
    }
    text
}

/// The steps of both sides on an input.
fn both_steps(sides: [&Side; 2], comparison: &Comparison, example: &Example) -> [Option<Steps>; 2] {
    let of = |side: &Side, instruction: &Instruction| {
        let model = side.trees.and_then(|trees| trees.model(instruction))?;
        Some(steps(model, &example.question))
    };
    [of(sides[0], &comparison.first), of(sides[1], &comparison.second)]
}

fn explained(sides: [&Side; 2], comparison: &Comparison, example: &Example, width: usize) -> String {
    let signature = comparison.first.signature();
    let exact = exact::result(&signature, &example.question);
    let both = both_steps(sides, comparison, example);
    let columns = [0, 1].map(|side| Column {
        device: sides[side].name,
        instruction: "",
        steps: both[side].as_ref(),
        answer: if side == 0 { example.answers.0 } else { example.answers.1 },
    });
    text::operands(&signature, &example.question, &exact)
        + &text::columns(&columns, &signature.d, &exact, width)
        + &command([sides[0].name, sides[1].name], comparison, example, width)
}

/// The command that shows the same again, in lines of at most `width` columns.
fn command(names: [&str; 2], comparison: &Comparison, example: &Example, width: usize) -> String {
    let quoted =
        |text: &str| shlex::try_quote(text).map_or_else(|_| text.to_string(), |text| text.into_owned());
    let mut words = vec!["mmaprobe explain".to_string()];
    words.extend(names.map(|name| format!("--device {}", quoted(name))));
    let instructions = [&comparison.first, &comparison.second];
    let alike = instructions[0].name == instructions[1].name;
    let named = instructions.iter().take(if alike { 1 } else { 2 });
    words.extend(named.map(|instruction| format!("--instruction {}", quoted(&instruction.name))));
    let question = &example.question;
    let left_out = place::zeros(&comparison.first.signature());
    let scale = comparison.first.scale.map_or(comparison.first.c, |scale| scale.format);
    let c = (std::slice::from_ref(&question.c), std::slice::from_ref(&left_out.c));
    for (option, format, (elements, default)) in [
        ("--a", &comparison.first.a, (&question.a[..], &left_out.a[..])),
        ("--b", &comparison.first.b, (&question.b, &left_out.b)),
        ("--c", &comparison.first.c, c),
        ("--sa", &scale, (&question.sa, &left_out.sa)),
        ("--sb", &scale, (&question.sb, &left_out.sb)),
    ] {
        let elements = elements.iter().zip(default).enumerate().filter(|(_, (own, default))| own != default);
        let spelled: Vec<String> = elements
            .map(|(place, (&bits, _))| match (option, place) {
                ("--c", _) | (_, 0) => hex(format, bits),
                (_, place) => format!("{place}:{}", hex(format, bits)),
            })
            .collect();
        // Few at a time, so that lines stay short.
        words.extend(spelled.chunks(4).map(|few| format!("{option} {}", few.join(","))));
    }
    let mut lines = vec![words[0].clone()];
    for word in &words[1..] {
        let last = lines.len() - 1;
        if lines[last].chars().count() + word.chars().count() + 3 <= width {
            let _ = write!(lines[last], " {word}");
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines.join(" \\\n") + "\n"
}

/// A comparison as JSON.
#[derive(Serialize)]
pub struct Document {
    first: String,
    second: String,
    comparisons: Vec<ComparisonDocument>,
    only_in_first: Vec<String>,
    only_in_second: Vec<String>,
    not_compared: Vec<String>,
}

#[derive(Serialize)]
struct ComparisonDocument {
    first: String,
    second: String,
    different: bool,
    same_tree: Option<bool>,
    inputs_tried: u64,
    nan_payloads_compared: bool,
    differences: Vec<DifferenceDocument>,
}

#[derive(Serialize)]
struct DifferenceDocument {
    what: &'static str,
    first: String,
    second: String,
    example: Option<ExampleDocument>,
}

#[derive(Serialize)]
struct ExampleDocument {
    #[serde(flatten)]
    operands: HexDotAdd,
    exact: String,
    answers: [String; 2],
    errors_in_ulps: [Option<f64>; 2],
    steps: [Option<Steps>; 2],
}

/// The comparison as JSON has it.
pub fn document(sides: [&Side; 2], matched: &Matched, comparisons: &[Comparison]) -> Document {
    let names = |only: &[Instruction]| only.iter().map(|instruction| instruction.name.clone()).collect();
    Document {
        first: sides[0].name.to_string(),
        second: sides[1].name.to_string(),
        comparisons: comparisons.iter().map(|comparison| document_of(sides, comparison)).collect(),
        only_in_first: names(&matched.only_first),
        only_in_second: names(&matched.only_second),
        not_compared: matched.unlike.iter().map(|(_, problem)| problem.clone()).collect(),
    }
}

fn document_of(sides: [&Side; 2], comparison: &Comparison) -> ComparisonDocument {
    let difference = |shown: &Shown| DifferenceDocument {
        what: shown.what,
        first: shown.first.clone(),
        second: shown.second.clone(),
        example: shown.example.as_ref().map(|example| example_document(sides, comparison, example)),
    };
    ComparisonDocument {
        first: comparison.first.name.clone(),
        second: comparison.second.name.clone(),
        different: comparison.is_different(),
        same_tree: comparison.same_tree,
        inputs_tried: comparison.tried,
        nan_payloads_compared: comparison.nans == Nans::Bits,
        differences: comparison.differences.iter().map(difference).collect(),
    }
}

fn example_document(sides: [&Side; 2], comparison: &Comparison, example: &Example) -> ExampleDocument {
    let instruction = &comparison.first;
    let exact = exact::result(&instruction.signature(), &example.question);
    let answers = [example.answers.0, example.answers.1];
    ExampleDocument {
        operands: HexDotAdd::new(&instruction.signature(), &example.question),
        answers: answers.map(|answer| hex(&instruction.d, answer)),
        errors_in_ulps: answers.map(|answer| error_in_ulps(&exact, &instruction.d, answer)),
        exact: exact.to_string(),
        steps: both_steps(sides, comparison, example),
    }
}
