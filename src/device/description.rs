//! Instructions in JSON, as the device protocol and recordings spell them.

use std::collections::HashSet;

use mmaprobe_model::Format;
use mmaprobe_model::tree::Scale;
use serde::{Deserialize, Serialize};

use super::Instruction;

/// Elements of the largest matrix that is believed: a guard for memory, far above any real tile.
const MAX_ELEMENTS: usize = 1 << 20;

/// The protocol's description of one instruction.
#[derive(Serialize, Deserialize)]
pub(in crate::device) struct Description {
    name: String,
    m: usize,
    n: usize,
    k: usize,
    a: String,
    b: String,
    c: String,
    d: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scale: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<usize>,
}

impl Description {
    /// Describes an instruction; its mode, which the protocol does not know, is left out.
    pub fn of(instruction: &Instruction) -> Description {
        let Instruction { name, m, n, k, a, b, c, d, scale, mode_of: _ } = instruction;
        Description {
            name: name.clone(),
            m: *m,
            n: *n,
            k: *k,
            a: a.to_string(),
            b: b.to_string(),
            c: c.to_string(),
            d: d.to_string(),
            scale: scale.map(|scale| scale.format.to_string()),
            block: scale.map(|scale| scale.block),
        }
    }

    /// The instruction described, or what is wrong with it.
    pub fn instruction(self) -> Result<Instruction, String> {
        let Description { name, m, n, k, a, b, c, d, scale, block } = self;
        check_text("name", &name)?;
        let wrong = |problem: String| format!("`{name}`: {problem}");
        for (what, rows, columns) in [("m·k", m, k), ("k·n", k, n), ("m·n", m, n)] {
            match rows.checked_mul(columns) {
                Some(1..=MAX_ELEMENTS) => {}
                Some(0) => return Err(wrong("m, n and k must be at least 1".into())),
                _ => return Err(wrong(format!("{what} = {rows}·{columns} is above {MAX_ELEMENTS}"))),
            }
        }
        let operand = |matrix: &str, format: &str| {
            named(format, true).ok_or_else(|| wrong(format!("{matrix} has the unknown format {format:?}")))
        };
        let (a, b, c, d) = (operand("a", &a)?, operand("b", &b)?, operand("c", &c)?, operand("d", &d)?);
        let scale = match (scale, block) {
            (None, None) => None,
            (Some(format), Some(block)) => {
                let Some(scale_format) = named(&format, false) else {
                    return Err(wrong(format!("scale has the unknown format {format:?}")));
                };
                if block == 0 || !k.is_multiple_of(block) {
                    return Err(wrong(format!("block = {block} does not divide k = {k}")));
                }
                Some(Scale { format: scale_format, block })
            }
            (Some(_), None) => return Err(wrong("it has `scale` but no `block`".into())),
            (None, Some(_)) => return Err(wrong("it has `block` but no `scale`".into())),
        };
        Ok(Instruction { name, m, n, k, a, b, c, d, scale, mode_of: None })
    }
}

/// A format by its name; operands have a sign, block scales have none.
fn named(name: &str, signed: bool) -> Option<Format> {
    Format::named(name).filter(|format| format.signed == signed)
}

/// Checks text that will be printed: something, not too long, and nothing for a terminal to obey.
pub(crate) fn check_text(what: &str, text: &str) -> Result<(), String> {
    if text.is_empty() || text.len() > 256 || text.chars().any(char::is_control) {
        let start: String = text.chars().take(60).collect();
        return Err(format!("{what} {start:?} is empty, has control characters or more than 256 bytes"));
    }
    Ok(())
}

/// Checks that there are instructions and that each has its own name.
pub(super) fn check_names(instructions: &[Instruction]) -> Result<(), String> {
    if instructions.is_empty() {
        return Err("there are none".into());
    }
    let mut names = HashSet::new();
    match instructions.iter().find(|instruction| !names.insert(&instruction.name)) {
        Some(twice) => Err(format!("two have the name `{}`", twice.name)),
        None => Ok(()),
    }
}
