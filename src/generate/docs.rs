//! A sheet's statements as the documentation of an instruction, in Markdown.

use crate::device::Instruction;
use crate::markdown::{Lines, WIDTH, code, escaped};
use crate::model::Model;
use crate::sheet::schema::{Ambiguity, Counterexample, Dispute, Entry, Statement, Validation};
use crate::sheet::{Status, draw};

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
    lines.heading(1, "Sum tree");
    lines.verbatim(&draw::draw(model, WIDTH - 4));
    lines.section(1, "Validation", entry.validation.iter().map(validation));
    lines.section(1, "Evidence", entry.evidence.iter().map(statement));
    lines.section(1, "Ambiguous", entry.ambiguous.iter().map(ambiguity));
    lines.section(1, "Equivalent", entry.equivalent.iter().map(ambiguity));
    lines.section(1, "Disputed", entry.disputed.iter().map(dispute));
    lines.section(
        1,
        "Modes",
        entry.modes.iter().map(|mode| format!("{}: {} ({})", mode.mode, mode.effect, mode.evidence)),
    );
    lines.section(1, "Notes", entry.notes.iter().cloned());
    lines.finish()
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
