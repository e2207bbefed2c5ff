//! What a parameter sheet holds, as plain data.

use mmaprobe_model::Format;
use mmaprobe_model::tree::Scale;
use serde::{Deserialize, Serialize};

use crate::device::{Instruction, Provenance};
use crate::sheet::amendment::Amendment;
use crate::sheet::arithmetic::Arithmetic;
use crate::sheet::ordered::Ordered;
use crate::sheet::spelling;

/// The version of the schema that this tool reads and writes.
pub const SCHEMA: &str = "mmaprobe-sheet/1";

/// A parameter sheet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    /// [`SCHEMA`].
    pub schema: String,
    /// The tool that wrote it, with its version.
    pub tool: String,
    /// Who answered.
    pub device: DeviceFacts,
    /// Where the answers come from.
    #[serde(with = "spelling::provenance")]
    pub provenance: Provenance,
    /// The date, if the caller gave one: the tool never looks at a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// What devices of this kind can have and this one lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Absent>,
    /// The instructions, in the device's order.
    pub instructions: Vec<Entry>,
}

/// Who answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceFacts {
    /// What was given as `--device`.
    pub name: String,
    /// One line for people: model, vendor.
    pub description: String,
    /// Further facts: driver, microcode.
    #[serde(default, skip_serializing_if = "Ordered::is_empty")]
    pub properties: Ordered<String>,
}

/// Something that a device lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Absent {
    /// What is absent.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// What is known about an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name; unique within the sheet.
    pub name: String,
    /// The instruction that this one is in another mode of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_of: Option<ModeOf>,
    /// Rows, columns and products.
    pub shape: Shape,
    /// The declared formats.
    pub formats: Formats,
    /// The declared block scales, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScaleFacts>,
    /// How far the answers led.
    pub status: Status,
    /// The published algorithm of that shape, or `unnamed`.
    pub algorithm: String,
    /// What it computes, in words: one paragraph.
    #[serde(with = "spelling::paragraph")]
    pub summary: String,
    /// What it computes, bit for bit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arithmetic: Option<Arithmetic>,
    /// Which modes of the machine it obeys or ignores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<ModeEffect>,
    /// What supports the arithmetic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Statement>,
    /// What could be said otherwise of the same function: no input that was tried tells these
    /// alternatives from what is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equivalent: Vec<Ambiguity>,
    /// What the answers left open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ambiguous: Vec<Ambiguity>,
    /// What publications disagree about; the arithmetic is the first side's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disputed: Vec<Dispute>,
    /// The simplest input that the arithmetic does not explain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<Counterexample>,
    /// The comparison with the device on fresh random inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// What was asked before validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Anything else a reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Sheet {
    /// The names of all disputes, in the order of their first use.
    pub fn disputes(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for dispute in self.instructions.iter().flat_map(|entry| &entry.disputed) {
            if !names.contains(&dispute.name.as_str()) {
                names.push(&dispute.name);
            }
        }
        names
    }

    /// The sheet with the alternative of a dispute as its arithmetic, wherever there is one.
    pub fn with_alternative(mut self, dispute: &str) -> Sheet {
        for entry in &mut self.instructions {
            let other = entry.disputed.iter().find(|other| other.name == dispute);
            if let (Some(other), Some(arithmetic)) = (other, &mut entry.arithmetic) {
                *arithmetic = other.amendment.apply(arithmetic);
            }
        }
        self
    }
}

impl Entry {
    /// The instruction as a device offers it.
    pub fn instruction(&self) -> Instruction {
        Instruction {
            name: self.name.clone(),
            m: self.shape.m,
            n: self.shape.n,
            k: self.shape.k,
            a: self.formats.a,
            b: self.formats.b,
            c: self.formats.c,
            d: self.formats.d,
            scale: self.scale.map(Scale::from),
            mode_of: self.mode_of.as_ref().map(|of| (of.instruction.clone(), of.mode.clone())),
        }
    }
}

/// An instruction in another mode of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModeOf {
    /// Its name in the default mode.
    pub instruction: String,
    /// The mode, in words.
    pub mode: String,
}

/// The shape of D = A·B + C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Rows of A and of D.
    pub m: usize,
    /// Columns of B and of D.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
}

/// The declared formats of an instruction's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Formats {
    /// Of A's elements.
    #[serde(with = "spelling::format")]
    pub a: Format,
    /// Of B's elements.
    #[serde(with = "spelling::format")]
    pub b: Format,
    /// Of C's elements.
    #[serde(with = "spelling::format")]
    pub c: Format,
    /// Of D's elements.
    #[serde(with = "spelling::format")]
    pub d: Format,
}

/// Block scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleFacts {
    /// Format of the scales.
    #[serde(with = "spelling::format")]
    pub format: Format,
    /// Consecutive elements along K that share a scale.
    pub block: usize,
}

impl From<Scale> for ScaleFacts {
    fn from(scale: Scale) -> ScaleFacts {
        ScaleFacts { format: scale.format, block: scale.block }
    }
}

impl From<ScaleFacts> for Scale {
    fn from(scale: ScaleFacts) -> Scale {
        Scale { format: scale.format, block: scale.block }
    }
}

/// How far the answers led.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// One function is left, and validation found no mismatch.
    Characterized,
    /// Several functions are left that no question told apart.
    Ambiguous,
    /// The mode changes nothing: the instruction computes what it does in the default mode.
    ModeWithoutEffect,
    /// Validation contradicted the arithmetic.
    Refuted,
    /// No arithmetic explains the answers.
    Unexplained,
    /// The same question got different answers.
    NotDeterministic,
    /// The answer depends on where in the matrix, or in the batch, the question was asked.
    NotUniform,
    /// A publication says so; nothing was asked.
    Published,
}

impl Status {
    /// The word used in sheets.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Characterized => "characterized",
            Status::Ambiguous => "ambiguous",
            Status::ModeWithoutEffect => "mode-without-effect",
            Status::Refuted => "refuted",
            Status::Unexplained => "unexplained",
            Status::NotDeterministic => "not-deterministic",
            Status::NotUniform => "not-uniform",
            Status::Published => "published",
        }
    }

    /// Whether the arithmetic that goes with it stands for the device.
    pub const fn is_executable(self) -> bool {
        matches!(
            self,
            Status::Characterized | Status::Ambiguous | Status::ModeWithoutEffect | Status::Published
        )
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What a mode of the machine does to an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModeEffect {
    /// The mode, in words.
    pub mode: String,
    /// Whether the instruction obeys or ignores it, in words.
    pub effect: String,
    /// What supports that.
    pub evidence: String,
}

/// A statement about an instruction, and what supports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The statement.
    pub statement: String,
    /// The probes that support it.
    pub probes: Vec<String>,
    /// Number of answers that bear on it.
    pub answers: u64,
    /// Alternatives that answers contradicted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<String>,
    /// Who states it, where it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Two statements of which at most one is right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dispute {
    /// Its name: `sim:ARCH+NAME` executes the alternative.
    pub name: String,
    /// What the arithmetic says.
    pub statement: String,
    /// Who states it.
    pub source: String,
    /// What is stated otherwise.
    pub alternative: String,
    /// Who states that.
    pub alternative_source: String,
    /// What is then different in the arithmetic.
    pub amendment: Amendment,
}

/// Something for which there are alternatives that no answer contradicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ambiguity {
    /// What it is about.
    pub statement: String,
    /// What it could be.
    pub alternatives: Vec<String>,
    /// What was tried to tell the alternatives apart.
    pub tried: String,
}

/// An input on which the device and the arithmetic differ, as bit patterns in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counterexample {
    /// A row of A.
    pub a: Vec<String>,
    /// A column of B.
    pub b: Vec<String>,
    /// The element of C.
    pub c: String,
    /// Scales of the row of A.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sa: Vec<String>,
    /// Scales of the column of B.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sb: Vec<String>,
    /// What the device answered.
    pub device: String,
    /// What the arithmetic gives, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What is odd about it.
    pub note: String,
}

/// A comparison with the device on fresh random inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Output elements compared.
    pub dot_adds: u64,
    /// Seed of the random inputs.
    pub seed: u64,
    /// How many of them came from which distribution.
    pub distributions: Vec<Distribution>,
    /// Output elements that differed.
    pub mismatches: u64,
    /// Whether NaNs had to agree bit for bit.
    pub nan_payloads: NanPayloads,
    /// What zero mismatches bound, as a sentence.
    pub bound: String,
}

/// Validation inputs from one distribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// Its name.
    pub name: String,
    /// Output elements compared.
    pub dot_adds: u64,
}

/// Whether NaNs had to agree bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NanPayloads {
    /// They had to.
    #[serde(rename = "compared")]
    Compared,
    /// Any NaN stood for any other.
    #[serde(rename = "not compared")]
    NotCompared,
}

/// What characterising an instruction took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Batches sent, one after another.
    pub rounds: u64,
    /// Output elements asked for.
    pub dot_adds: u64,
}
