//! A sheet's statements as the documentation of an instruction, in Markdown.

use crate::device::Instruction;
use crate::model::Model;
use crate::sheet::schema::{Ambiguity, Counterexample, Dispute, Entry, Statement, Validation};
use crate::sheet::{Status, draw};

/// Columns that text takes at most.
const WIDTH: usize = 100;

/// Everything that a sheet says about an instruction, as lines of Markdown.
pub fn instruction(entry: &Entry, instruction: &Instruction, model: &Model) -> Vec<String> {
    let mut lines = Lines::default();
    lines.paragraph(&format!("{}: {}.", code(&entry.name), shape(instruction)));
    let algorithm = match entry.algorithm.as_str() {
        "unnamed" => "no published algorithm".to_string(),
        name => escaped(name),
    };
    lines.paragraph(&format!("**{}**, {algorithm}. {}", entry.status, escaped(&entry.summary)));
    if let Some(of) = &entry.mode_of {
        lines.paragraph(&escaped(&format!("This is `{}` where {}.", of.instruction, of.mode)));
    }
    lines.heading("Sum tree");
    lines.verbatim(&draw::draw(model, WIDTH - 4));
    lines.section("Validation", entry.validation.iter().map(validation));
    lines.section("Evidence", entry.evidence.iter().map(statement));
    lines.section("Ambiguous", entry.ambiguous.iter().map(ambiguity));
    lines.section("Equivalent", entry.equivalent.iter().map(ambiguity));
    lines.section("Disputed", entry.disputed.iter().map(dispute));
    lines.section(
        "Modes",
        entry.modes.iter().map(|mode| format!("{}: {} ({})", mode.mode, mode.effect, mode.evidence)),
    );
    lines.section("Notes", entry.notes.iter().cloned());
    lines.0
}

/// Shape, formats and scales: `16×16×16, A and B fp16, C and D fp32`.
pub fn shape(instruction: &Instruction) -> String {
    let Instruction { m, n, k, a, b, c, d, scale, .. } = instruction;
    let pair = |names: [&str; 2], formats: [&str; 2]| match formats[0] == formats[1] {
        true => format!("{} and {} {}", names[0], names[1], formats[0]),
        false => format!("{} {}, {} {}", names[0], formats[0], names[1], formats[1]),
    };
    let scales = scale.map_or(String::new(), |scale| {
        format!(", a {} scale for each {} elements", scale.format, scale.block)
    });
    format!(
        "{m}×{n}×{k}, {}, {}{scales}",
        pair(["A", "B"], [a.name, b.name]),
        pair(["C", "D"], [c.name, d.name])
    )
}

/// Why an instruction is not generated.
pub fn reason(entry: &Entry) -> String {
    let found = match entry.status {
        Status::Refuted => "refuted: fresh inputs contradict its arithmetic",
        Status::Unexplained => "unexplained: no sum tree that was tried gives all answers",
        Status::NotDeterministic => "no function: the same question has several answers",
        Status::NotUniform => "no function: the answer depends on the place",
        status if status.is_executable() => "the sheet knows no arithmetic of it",
        status => status.name(),
    };
    match &entry.counterexample {
        Some(Counterexample { device, note, .. }) => format!("{found} (answer {device}: {note})"),
        None => found.to_string(),
    }
}

fn statement(statement: &Statement) -> String {
    let mut text = statement.statement.clone();
    if let Some(source) = &statement.source {
        text += &format!(" ({source})");
    }
    if statement.answers > 0 {
        text += &format!("; {} answers to {}", statement.answers, statement.probes.join(", "));
    }
    if !statement.rejected.is_empty() {
        text += &format!("; contradicted: {}", statement.rejected.join(" · "));
    }
    text
}

fn ambiguity(ambiguity: &Ambiguity) -> String {
    let Ambiguity { statement, alternatives, tried } = ambiguity;
    format!("{statement}; it could be {}; {tried}", alternatives.join(" · "))
}

fn dispute(dispute: &Dispute) -> String {
    let Dispute { name, statement, source, alternative, alternative_source, amendment: _ } = dispute;
    format!("{name}: {statement} ({source}); otherwise: {alternative} ({alternative_source})")
}

fn validation(validation: &Validation) -> String {
    let Validation { dot_adds, seed, distributions, mismatches, bound, .. } = validation;
    let names: Vec<&str> = distributions.iter().map(|distribution| distribution.name.as_str()).collect();
    let names = names.join(", ");
    format!("{dot_adds} random dot-adds ({names}; seed {seed}), {mismatches} mismatches. {bound}")
}

/// Lines of Markdown in the making.
#[derive(Default)]
struct Lines(Vec<String>);

impl Lines {
    fn gap(&mut self) {
        if !self.0.is_empty() {
            self.0.push(String::new());
        }
    }

    fn paragraph(&mut self, text: &str) {
        self.gap();
        self.wrap(text, "", "");
    }

    fn heading(&mut self, text: &str) {
        self.gap();
        self.0.push(format!("# {text}"));
    }

    fn verbatim(&mut self, lines: &[String]) {
        self.gap();
        self.0.push("```text".to_string());
        self.0.extend(lines.iter().cloned());
        self.0.push("```".to_string());
    }

    /// A heading and a list, if there is anything to list.
    fn section(&mut self, title: &str, items: impl Iterator<Item = String>) {
        let mut items = items.peekable();
        if items.peek().is_none() {
            return;
        }
        self.heading(title);
        for item in items {
            self.wrap(&escaped(&item), "- ", "  ");
        }
    }

    fn wrap(&mut self, text: &str, first: &str, further: &str) {
        let options = textwrap::Options::new(WIDTH)
            .initial_indent(first)
            .subsequent_indent(further)
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        for (index, line) in textwrap::wrap(text, options).into_iter().enumerate() {
            // A first line may begin with the marker that it was given.
            let marker = if index == 0 { first } else { further };
            self.0.push(format!("{marker}{}", continued(&line[marker.len()..])));
        }
    }
}

/// Text in which nothing is Markdown but code in backticks.
pub fn escaped(text: &str) -> String {
    let text = printable(text);
    let mut escaped = String::with_capacity(text.len());
    let mut is_code = false;
    // A backtick without its other half is no code, and several in a row might begin a block of it.
    let is_paired = text.matches('`').count().is_multiple_of(2) && !text.contains("``");
    for character in text.chars() {
        match character {
            '`' if is_paired => is_code = !is_code,
            '\\' | '`' | '[' | ']' | '<' | '>' | '*' | '_' | '|' | '#' | '~' | '&' if !is_code => {
                escaped.push('\\')
            }
            _ => {}
        }
        escaped.push(character);
    }
    escaped.replace("://", ":\u{200b}//")
}

/// A name as code in Markdown, in tables too.
pub fn code(name: &str) -> String {
    format!("`{}`", printable(name).replace(['`', '|'], "'"))
}

/// Text on one line that shows all that it says: single spaces for whatever is invisible.
pub fn printable(text: &str) -> String {
    // What stands for itself in a string literal, or only has to be escaped there.
    let is_visible = |c: char| matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1;
    let visible: String = text.chars().map(|c| if is_visible(c) { c } else { ' ' }).collect();
    visible.split(' ').filter(|word| !word.is_empty()).collect::<Vec<&str>>().join(" ")
}

/// A line that is no item of a list by chance, because text was wrapped there.
fn continued(line: &str) -> String {
    let text = line.trim_start();
    let (indent, word) = (&line[..line.len() - text.len()], text.split(' ').next().unwrap_or_default());
    let digits = word.trim_end_matches(['.', ')']);
    let is_number = digits.len() < word.len() && digits.bytes().all(|c| c.is_ascii_digit());
    let is_marker = word.starts_with(['-', '+', '=']);
    match (is_marker, is_number) {
        (true, _) => format!("{indent}\\{text}"),
        (_, true) => format!("{indent}{digits}\\{}", &text[digits.len()..]),
        _ => line.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_and_code_is_code() {
        for (text, markdown) in [
            ("a_b `c_d` <e>", "a\\_b `c_d` \\<e\\>"),
            ("one ` alone_", "one \\` alone\\_"),
            ("```rust panic!() ```", "\\`\\`\\`rust panic!() \\`\\`\\`"),
            ("    indented\n\n    more", "indented more"),
            ("left\u{202e}right\u{0}", "left right"),
            ("http://x", "http:\u{200b}//x"),
        ] {
            assert_eq!(escaped(text), markdown);
        }
        assert_eq!(code("a`b|c\nd"), "`a'b'c d`");
    }

    #[test]
    fn wrapping_begins_no_lists() {
        let mut lines = Lines::default();
        let word = "w".repeat(WIDTH - 1);
        lines.paragraph(&format!("- a {word} + b {word} 12. c {word} 1.5 d {word} -1 e"));
        assert_eq!(
            lines.0.iter().filter(|line| !line.starts_with('w')).collect::<Vec<_>>(),
            ["\\- a", "\\+ b", "12\\. c", "1.5 d", "\\-1 e"]
        );
    }
}
