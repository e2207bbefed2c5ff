//! Findings as tables, as Markdown and as JSON.

use serde_json::{Value, json};

use super::{Case, Finding};
use crate::bits::hex;
use crate::probes::Signature;
use crate::table;

/// Inputs of one experiment that a table has room for.
const SHOWN: usize = 3;

/// An instruction's findings, with what a reader has to know of it.
#[derive(Clone, Debug)]
pub struct Column {
    /// The device's name.
    pub device: String,
    /// The instruction's name.
    pub instruction: String,
    /// Its formats.
    pub signature: Signature,
    /// What came of each experiment.
    pub findings: Vec<Finding>,
}

impl Column {
    fn title(&self) -> String {
        let Signature { k, a, b, c, d, .. } = &self.signature;
        format!("{}: {} ({a} × {b}, K = {k}, c {c}, d {d})", self.device, self.instruction)
    }
}

/// The cases that are shown, and how many are not.
fn shown(finding: &Finding) -> (&[Case], usize) {
    let count = finding.cases.len().min(SHOWN);
    (&finding.cases[..count], finding.cases.len() - count)
}

/// What was asked and what came back, a line each.
fn lines(finding: &Finding) -> Vec<String> {
    let (cases, more) = shown(finding);
    let mut lines: Vec<String> =
        cases.iter().map(|case| format!("{} → {}", case.input, case.result)).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// One instruction's findings for a terminal, at most `width` columns wide.
pub fn table(column: &Column, width: usize) -> String {
    // Borders take ten columns.
    let [name, asked, means] = [width * 2 / 10, width * 4 / 10 - 10, width * 4 / 10];
    let rows: Vec<[String; 3]> = column
        .findings
        .iter()
        .map(|finding| {
            let cases: Vec<String> = lines(finding).iter().map(|line| whole_words(line, asked)).collect();
            let meaning = format!("{}: {}", finding.verdict, finding.meaning);
            [wrapped(finding.experiment, name), cases.join("\n"), wrapped(&meaning, means)]
        })
        .collect();
    textwrap::fill(&column.title(), width)
        + "\n"
        + &table::plain(["experiment", "asked → came back", "means"], &rows, width)
}

/// Wraps a line of inputs; no number is taken apart at its signs.
fn whole_words(text: &str, width: usize) -> String {
    let options = textwrap::Options::new(width)
        .subsequent_indent("  ")
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options)
}

fn wrapped(text: &str, width: usize) -> String {
    textwrap::fill(text, width)
}

/// Columns of a comparison that fit beside each other.
const BESIDE: usize = 4;

/// The verdicts of several devices or instructions side by side, at most `width` columns wide.
pub fn compare(columns: &[Column], width: usize) -> String {
    let mut text = String::new();
    for (index, column) in columns.iter().enumerate() {
        text += &(textwrap::fill(&format!("[{}] {}", index + 1, column.title()), width) + "\n");
    }
    for (group, columns) in columns.chunks(BESIDE).enumerate() {
        let numbers = (0..columns.len()).map(|index| format!("[{}]", group * BESIDE + index + 1));
        let header: Vec<String> = std::iter::once("experiment".to_string()).chain(numbers).collect();
        // Experiments' names take what they need.
        let room = (width - 26) / columns.len() - 3;
        let rows: Vec<Vec<String>> = verdicts(columns)
            .into_iter()
            .map(|row| {
                row.iter()
                    .enumerate()
                    .map(|(i, cell)| if i == 0 { cell.clone() } else { wrapped(cell, room) })
                    .collect()
            })
            .collect();
        text += &table::grid(&header, &rows, width);
    }
    text
}

fn verdicts(columns: &[Column]) -> Vec<Vec<String>> {
    let experiments = columns.first().map_or(&[][..], |column| &column.findings);
    experiments
        .iter()
        .enumerate()
        .map(|(row, finding)| {
            let cells = columns.iter().map(|column| column.findings[row].verdict.clone());
            std::iter::once(finding.experiment.to_string()).chain(cells).collect()
        })
        .collect()
}

/// Everything as Markdown: a comparison where there are several columns, then each in full.
pub fn markdown(columns: &[Column]) -> String {
    let row = |cells: Vec<String>| {
        let cells: Vec<String> = cells.into_iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = "# Feature battery\n".to_string();
    if columns.len() > 1 {
        text += "\n";
        let titles = columns.iter().map(|column| format!("{}<br>`{}`", column.device, column.instruction));
        text += &row(std::iter::once("experiment".to_string()).chain(titles).collect());
        text += &row(vec!["---".to_string(); columns.len() + 1]);
        verdicts(columns).into_iter().for_each(|cells| text += &row(cells));
    }
    for column in columns {
        text += &format!("\n## {}\n\n", column.title());
        text += &row(["experiment", "asked → came back", "verdict", "means"].map(String::from).to_vec());
        text += &row(vec!["---".to_string(); 4]);
        for finding in &column.findings {
            let experiment =
                format!("**{}**<br>{}<br>*{}*", finding.experiment, finding.question, finding.source);
            let cells =
                [experiment, lines(finding).join("<br>"), finding.verdict.clone(), finding.meaning.clone()];
            text += &row(cells.to_vec());
        }
    }
    text
}

/// Everything as JSON, each input and result in bits too.
pub fn json(columns: &[Column]) -> String {
    let columns: Vec<Value> = columns.iter().map(column_json).collect();
    serde_json::to_string_pretty(&columns).expect("maps with string keys") + "\n"
}

fn column_json(column: &Column) -> Value {
    let Signature { k, a, b, c, d, scale } = &column.signature;
    let case = |case: &Case| {
        let elements =
            |format, bits: &[u64]| -> Vec<String> { bits.iter().map(|&bits| hex(format, bits)).collect() };
        let mut object = json!({
            "input": case.input,
            "result": case.result,
            "a": elements(a, &case.dot_add.a),
            "b": elements(b, &case.dot_add.b),
            "c": hex(c, case.dot_add.c),
            "d": hex(d, case.answer),
        });
        if let Some(scale) = scale {
            object["sa"] = elements(&scale.format, &case.dot_add.sa).into();
            object["sb"] = elements(&scale.format, &case.dot_add.sb).into();
        }
        object
    };
    let findings: Vec<Value> = column
        .findings
        .iter()
        .map(|finding| {
            json!({
                "experiment": finding.experiment,
                "question": finding.question,
                "source": finding.source,
                "cases": finding.cases.iter().map(case).collect::<Vec<_>>(),
                "verdict": finding.verdict,
                "meaning": finding.meaning,
            })
        })
        .collect();
    json!({
        "device": column.device,
        "instruction": column.instruction,
        "k": k,
        "a": a.name,
        "b": b.name,
        "c": c.name,
        "d": d.name,
        "findings": findings,
    })
}
