//! The first text of a catalogue file: as much as is known, and `???` where somebody has to say.

use std::fmt::Write;

use crate::catalog::{Architecture, Catalog};
use crate::device::Instruction;
use crate::model::tree::Scale;

/// What stands where something has to be filled in.
pub const BLANK: &str = "???";

/// The kind of kernel of what only a device runs.
pub const EXTERNAL: &str = "external";

/// What a draft was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The catalogue knows the target.
    Catalogue,
    /// A device lists its instructions.
    Device,
    /// Nothing is known but the target's name.
    Nothing,
}

/// Drafts the catalogue file of an architecture called `name` with this ISA target: from the catalogue,
/// if that knows the target; otherwise from what a device offers.
pub fn draft(name: &str, isa: &str, catalog: &Catalog, offered: &[Instruction]) -> (String, Basis) {
    let known = catalog.architectures().iter().find(|own| own.targets.iter().any(|target| target == isa));
    let text = known.and_then(Architecture::file);
    match (known.zip(text), offered) {
        (Some((known, text)), _) => {
            let own = format!("\narchitecture: {}\n", known.name);
            (text.replacen(&own, &format!("\narchitecture: {}\n", quoted(name)), 1), Basis::Catalogue)
        }
        (None, []) => (head(name, isa) + &example(isa), Basis::Nothing),
        (None, offered) => {
            let groups: String = offered.iter().map(group).collect();
            (head(name, isa) + "types: {}\ninstructions:\n" + &groups, Basis::Device)
        }
    }
}

/// What every file begins with.
fn head(name: &str, isa: &str) -> String {
    format!(
        "\
# What an architecture offers. Replace each {BLANK}, then run `mmaprobe onboard` again with the same
# options. `cargo doc` explains every field (catalog::file), and the files in catalog/ are examples.
schema: mmaprobe-catalog/1
architecture: {}
title: \"{BLANK}\"        # its name for people: AMD CDNA4
vendor: \"{BLANK}\"
targets: [{}]
source: \"{BLANK}\"       # where its instructions are described
gpus: []            # - {{name: MI350X, target: {isa}, aliases: [Instinct MI350X]}}
",
        quoted(name),
        quoted(isa)
    )
}

/// A group of instructions to fill in, of the kind that the target's name suggests.
fn example(isa: &str) -> String {
    let (types, kernel, name) = match isa {
        _ if isa.starts_with("gfx") => {
            ("{f64: fp64, f32: fp32, f16: fp16, fp8: e4m3, bf8: e5m2}", "mfma", "v_mfma_{d}_{m}x{n}x{k}_{a}")
        }
        _ if isa.starts_with("sm_") => {
            ("{f64: fp64, f32: fp32, f16: fp16}", "mma", "mma.m{m}n{n}k{k}.{d}.{a}.{b}.{c}")
        }
        _ => ("{}", EXTERNAL, BLANK),
    };
    format!(
        "\
types: {types}    # what the ISA calls formats, where the names differ
instructions:
  - kernel: {kernel}       # what runs it: mma, wgmma, tcgen05; any word where only a device does
    name: \"{name}\"
    operands: {{ab: [\"{BLANK}\"], d: \"{BLANK}\"}}    # or a: […], b: […], c: …
    # scale: {{format: ue8m0, block: 32}}
    shapes:
      - {{m: 16, n: 16, k: 16}}    # {BLANK} check m, n and k
"
    )
}

/// The group of one instruction that a device offers.
fn group(instruction: &Instruction) -> String {
    let Instruction { name, m, n, k, a, b, c, d, scale, mode_of: _ } = instruction;
    let mut text = format!(
        "  - kernel: {EXTERNAL}    # a device runs it, and nothing here\n    name: {}\n    \
         operands: {{a: [{a}], b: [{b}], c: {c}, d: {d}}}\n",
        quoted(name)
    );
    if let Some(Scale { format, block }) = scale {
        // A string is always written to.
        let _ = writeln!(text, "    scale: {{format: {format}, block: {block}}}");
    }
    text + &format!("    shapes:\n      - {{m: {m}, n: {n}, k: {k}}}\n")
}

/// A text as YAML has it: JSON's strings are YAML's.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_plain);
    if plain { text.to_string() } else { serde_json::Value::from(text).to_string() }
}
