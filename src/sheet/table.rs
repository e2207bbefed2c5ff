//! A sheet in the terminal.

use mmaprobe_model::Model;

use crate::sheet::draw::draw;
use crate::sheet::schema::{Counterexample, Dispute, Entry, Formats, NanPayloads, Sheet, Status};
use crate::sheet::spelling::Phrase;
use crate::table::plain;

/// Columns that names and states take at most, so that the table fits 80.
const NAME_WIDTH: usize = 20;
const STATUS_WIDTH: usize = 16;
/// Probes named for each statement; the sheet names them all.
const SHOWN_PROBES: usize = 3;

/// The sheet as text: its head, a table of all instructions, and a section for each.
pub fn show(sheet: &Sheet, width: usize) -> String {
    let mut page = Page::new(width);
    page.head(sheet);
    page.lines.push(String::new());
    page.lines.extend(overview(sheet, width).lines().map(String::from));
    for entry in sheet.instructions.iter().filter(|entry| is_listed(entry)) {
        page.lines.push(String::new());
        page.section(entry);
    }
    page.finish()
}

/// Whether an entry is worth a line of its own: a mode without effect is told with its instruction.
fn is_listed(entry: &Entry) -> bool {
    entry.status != Status::ModeWithoutEffect
}

/// The summation tree of every instruction.
pub fn show_tree(sheet: &Sheet, width: usize) -> String {
    let mut page = Page::new(width);
    for (index, entry) in sheet.instructions.iter().filter(|entry| is_listed(entry)).enumerate() {
        if index > 0 {
            page.lines.push(String::new());
        }
        page.text(&title(entry), "", "  ");
        match entry.arithmetic.as_ref().map(Model::try_from) {
            Some(Ok(model)) => page.lines.extend(draw(&model, width)),
            Some(Err(error)) => page.text(&format!("no tree: {error}"), "  ", "  "),
            None => page.text(&without_tree(entry), "  ", "  "),
        }
    }
    page.finish()
}

/// Why an entry has no tree of its own.
fn without_tree(entry: &Entry) -> String {
    match &entry.mode_of {
        Some(of) if entry.status == Status::ModeWithoutEffect => format!("as {}", of.instruction),
        _ => format!("no tree: {}", entry.status),
    }
}

/// Lines that fit a width.
struct Page {
    width: usize,
    lines: Vec<String>,
}

impl Page {
    fn new(width: usize) -> Page {
        Page { width, lines: Vec::new() }
    }

    /// Wraps a text; its lines begin with `first`, then with `rest`.
    fn text(&mut self, text: &str, first: &str, rest: &str) {
        let options = textwrap::Options::new(self.width).initial_indent(first).subsequent_indent(rest);
        self.lines.extend(textwrap::wrap(text, options).into_iter().map(|line| line.trim_end().to_string()));
    }

    /// A labelled text.
    fn field(&mut self, label: &str, text: &str) {
        self.text(text, &format!("  {label:<11} "), "              ");
    }

    fn head(&mut self, sheet: &Sheet) {
        let mut facts = vec![
            ("device", format!("{} ({})", sheet.device.name, sheet.device.description)),
            ("provenance", Phrase(sheet.provenance).to_string()),
            ("tool", sheet.tool.clone()),
        ];
        facts.extend(sheet.date.iter().map(|date| ("date", date.clone())));
        facts.extend(sheet.device.properties.0.iter().map(|(name, value)| (name.as_str(), value.clone())));
        for (label, text) in facts {
            self.text(&text, &format!("{label:<11} "), "            ");
        }
        for absent in &sheet.absent {
            self.text(&format!("{}: {}", absent.name, absent.reason), "absent      ", "            ");
        }
    }

    fn section(&mut self, entry: &Entry) {
        self.text(&title(entry), "", "  ");
        self.text(&entry.summary, "  ", "  ");
        if let Some(of) = &entry.mode_of {
            self.field("mode", &format!("{} with {}", of.instruction, of.mode));
        }
        self.modes(entry);
        for (label, ambiguities) in [("ambiguous", &entry.ambiguous), ("alternative", &entry.equivalent)] {
            for ambiguity in ambiguities {
                let alternatives = ambiguity.alternatives.join(" | ");
                self.field(label, &format!("{}: {alternatives} ({})", ambiguity.statement, ambiguity.tried));
            }
        }
        for dispute in &entry.disputed {
            let Dispute { name, statement, source, alternative, alternative_source, amendment: _ } = dispute;
            let text = format!("{name}: {statement} [{source}] | {alternative} [{alternative_source}]");
            self.field("disputed", &text);
        }
        if let Some(counterexample) = &entry.counterexample {
            self.counterexample(counterexample);
        }
        for statement in &entry.evidence {
            let probes: Vec<&str> = statement.probes.iter().take(SHOWN_PROBES).map(String::as_str).collect();
            let more = if statement.probes.len() > SHOWN_PROBES { ", …" } else { "" };
            let support = match &statement.source {
                Some(source) => source.clone(),
                None => format!("{}: {}{more}", counted(statement.answers, "answer"), probes.join(", ")),
            };
            let text = format!("{} [{support}]", statement.statement);
            self.field("evidence", &text);
        }
        if let Some(validation) = &entry.validation {
            let payloads = match validation.nan_payloads {
                NanPayloads::Compared => "NaNs compared bit for bit",
                NanPayloads::NotCompared => "all NaNs taken as one",
            };
            self.field(
                "validation",
                &format!(
                    "{}, {}, seed {}, {payloads}. {}",
                    counted(validation.dot_adds, "dot-add"),
                    counted(validation.mismatches, "mismatch"),
                    validation.seed,
                    validation.bound
                ),
            );
        }
        if let Some(cost) = &entry.cost {
            self.field(
                "cost",
                &format!("{} in {}", counted(cost.dot_adds, "dot-add"), counted(cost.rounds, "round")),
            );
        }
        for note in &entry.notes {
            self.field("note", note);
        }
    }

    /// The modes of the machine, those with the same effect and evidence together.
    fn modes(&mut self, entry: &Entry) {
        let mut told: Vec<(&str, &str, Vec<&str>)> = Vec::new();
        for mode in &entry.modes {
            match told
                .iter_mut()
                .find(|(effect, evidence, _)| *effect == mode.effect && *evidence == mode.evidence)
            {
                Some((_, _, modes)) => modes.push(&mode.mode),
                None => told.push((&mode.effect, &mode.evidence, vec![&mode.mode])),
            }
        }
        for (effect, evidence, modes) in told {
            self.field("modes", &format!("{}: {effect} ({evidence})", modes.join("; ")));
        }
    }

    fn counterexample(&mut self, example: &Counterexample) {
        let mut text =
            format!("{}: a = {}, b = {}, ", example.note, example.a.join(" "), example.b.join(" "));
        for (name, scales) in [("sa", &example.sa), ("sb", &example.sb)] {
            if !scales.is_empty() {
                text += &format!("{name} = {}, ", scales.join(" "));
            }
        }
        text += &format!("c = {}: the device gives {}", example.c, example.device);
        if let Some(model) = &example.model {
            text += &format!(", the arithmetic {model}");
        }
        self.field("unexplained", &text);
    }

    fn finish(self) -> String {
        self.lines.join("\n") + "\n"
    }
}

/// The headline of an instruction's section.
fn title(entry: &Entry) -> String {
    format!("{} — {}, {}", entry.name, entry.status, entry.algorithm)
}

/// The table of all instructions.
fn overview(sheet: &Sheet, width: usize) -> String {
    let rows: Vec<[String; 5]> = sheet
        .instructions
        .iter()
        .filter(|entry| is_listed(entry))
        .map(|entry| {
            let named = if entry.algorithm == "unnamed" { "" } else { &entry.algorithm };
            [
                cut(&entry.name, NAME_WIDTH),
                format!("{}×{}×{}", entry.shape.m, entry.shape.n, entry.shape.k),
                formats(&entry.formats),
                format!("{}\n{named}", cut(entry.status.name(), STATUS_WIDTH)).trim_end().to_string(),
                entry.validation.as_ref().map_or("–".into(), |validation| match validation.mismatches {
                    0 => grouped(validation.dot_adds),
                    wrong => format!("{} wrong", grouped(wrong)),
                }),
            ]
        })
        .collect();
    plain(["instruction", "m×n×k", "formats", "status", "validated"], &rows, width)
}

/// Formats as a formula: `fp16·fp16 + fp32 → fp16`; in two lines where they are long.
pub fn formats(formats: &Formats) -> String {
    let Formats { a, b, c, d } = formats;
    let factors = format!("{a}·{b}");
    // The accumulator apart where both would take more than their column.
    let gap = if factors.chars().count() > 10 { "\n" } else { " " };
    if c == d { format!("{factors}{gap}+ {c}") } else { format!("{factors}{gap}+ {c} → {d}") }
}

/// A text in lines of at most `width` columns, cut after separators.
fn cut(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for piece in text.split_inclusive(['.', '_', '-', ' ']) {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + piece.trim_end().len() > width {
            lines.push(piece.into());
        } else {
            lines[last].push_str(piece);
        }
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// A number with its digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 answer`, `2,000 answers`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = match (number, noun.ends_with("ch")) {
        (1, _) => "",
        (_, true) => "es",
        _ => "s",
    };
    format!("{} {noun}{plural}", grouped(number))
}
