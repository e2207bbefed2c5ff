//! The tests of a generated crate: a function for each instruction, and a file of dot-adds beside it.

use std::fmt::Write;

use crate::generate::code::Code;
use crate::generate::identifiers::Identifiers;
use crate::generate::{Chapter, Files, GenerateError, evidence};

/// Answers of hardware.
const EVIDENCE: &str = "evidence";
/// Answers of the tool itself.
const AGREEMENT: &str = "agreement";

/// What the tests of a sheet show, in words.
pub fn words(chapter: &Chapter) -> &'static str {
    match (chapter.recorded, chapter.included.is_empty()) {
        (_, true) => "No instruction, and so no test.",
        (Some(_), _) => {
            "Its tests are answers recorded when it was characterized: those that contradict the alternatives to \
             each statement, some to validated random sets, and a sample of the others."
        }
        (None, _) => {
            "It came without recorded answers. Its tests show that this crate computes what the tool does; they are \
             no evidence about hardware."
        }
    }
}

/// The files in `tests/`.
///
/// # Errors
/// If a recording contradicts its sheet.
pub fn files(chapters: &[Chapter]) -> Result<Files, GenerateError> {
    let mut files = Files::new();
    let mut tests = [(EVIDENCE, String::new()), (AGREEMENT, String::new())];
    for chapter in chapters {
        let kind = usize::from(chapter.recorded.is_none());
        let (folder, source) = &mut tests[kind];
        // In a crate of several sheets, a module for each.
        let (indent, path) = match chapters {
            [_] => ("", String::new()),
            _ => ("    ", format!("{}/", chapter.module)),
        };
        if chapter.included.is_empty() {
            continue;
        }
        if !path.is_empty() {
            write!(source, "\nmod {} {{\n    use super::support;\n", chapter.module).expect(ANY);
        }
        let mut functions = Identifiers::default();
        for (own, constant) in chapter.included.iter().zip(&chapter.constants.names) {
            let function = functions.small(constant);
            let text = match chapter.recorded {
                None => evidence::unrecorded(&own.instruction, own.model, &chapter.sheet.tool),
                Some(recorded) => {
                    let answers = recorded.get(&own.entry.name).map_or(&[][..], |answers| answers);
                    let device = &chapter.sheet.device.description;
                    evidence::of_recording(&own.instruction, own.entry, own.model, answers, device)?
                }
            };
            let file = format!("{folder}/{path}{function}.txt");
            let name = format!("{}/{}", chapter.name, own.entry.name);
            let answers = Code::Arguments("include_str!", vec![Code::string(&file)])
                .assigned(&format!("{indent}    let answers"));
            let call = Code::Arguments("support::check", vec![Code::string(&name), Code::atom("answers")]);
            let mut body = String::new();
            call.write(&mut body, indent.len() + 4, indent.len() + 4, 1);
            write!(
                source,
                "\n{indent}#[test]\n{indent}fn {function}() {{\n{answers}\n{indent}    {body};\n{indent}}}\n"
            )
            .expect(ANY);
            files.push((format!("tests/{file}"), text));
        }
        if !path.is_empty() {
            source.push_str("}\n");
        }
    }
    for (kind, source) in tests {
        if !source.is_empty() {
            let title = match kind {
                EVIDENCE => "What hardware answered, as it was recorded.",
                _ => "What mmaprobe itself computes: agreement with the tool, no evidence about hardware.",
            };
            files.push((format!("tests/{kind}.rs"), format!("//! {title}\n\nmod support;\n{source}")));
        }
    }
    Ok(files)
}

const ANY: &str = "strings take any text";
