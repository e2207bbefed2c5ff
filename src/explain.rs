//! What an operand of Apple's matrix unit says, field by field.

use std::str::FromStr;

use mmaprobe_apple::operand::{Enable, EnableMode, FIELDS, Field};
use mmaprobe_apple::unit::Widths;
use mmaprobe_apple::{Instruction, Operand, Word};
use mmaprobe_model::Format;
use serde::Serialize;

use crate::table;

/// An operand's 64 bits as typed: hexadecimal (`0x`), binary (`0b`) or decimal, `_` between digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits(pub(crate) u64);

impl FromStr for Bits {
    type Err = String;

    fn from_str(text: &str) -> Result<Bits, String> {
        let plain = text.replace('_', "");
        let (digits, radix, what) = match plain.get(..2) {
            Some("0x" | "0X") => (&plain[2..], 16, "hexadecimal"),
            Some("0b" | "0B") => (&plain[2..], 2, "binary"),
            _ => (plain.as_str(), 10, "decimal"),
        };
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            return Err(format!("it is no {what} number; write the 64 bits as 0x…, 0b… or in decimal"));
        }
        u64::from_str_radix(digits, radix).map(Bits).map_err(|_| "it has more than 64 bits".to_string())
    }
}

/// An instruction by its name, or by its 32-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// `fma32`.
    Name(Instruction),
    /// `0x00201187`.
    Word(Word),
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Named, String> {
        if let Some(instruction) = Instruction::named(text) {
            return Ok(Named::Name(instruction));
        }
        let unknown = || "expected fma16, fma32, fma64 or an instruction word such as 0x00201187".to_string();
        let Bits(bits) = text.parse().map_err(|_| unknown())?;
        let word = u32::try_from(bits).map_err(|_| "an instruction word has 32 bits".to_string())?;
        Word::decode(word).map(Named::Word).map_err(|error| error.to_string())
    }
}

/// An operand as tables at most `width` columns wide: its fields, and what they make of the instruction,
/// or of each if none is named.
pub fn explain(Bits(bits): Bits, instruction: Option<Named>, width: usize) -> String {
    let of = match instruction {
        None => String::new(),
        Some(Named::Name(instruction)) => format!(" of {instruction}"),
        Some(Named::Word(word)) => {
            let Word { instruction, register } = word;
            format!(" of {instruction} x{register} ({:#010x})", word.encode())
        }
    };
    let instructions = named(instruction);
    let title = format!("operand {bits:#018x}{of}\n");
    let fields = table::plain(["bits", "field", "value", "meaning"], &fields(bits, &instructions), width);
    let header = ["", "computes", "lanes of X", "lanes of Y", "Z", "registers"];
    title + &fields + &table::plain(header, &effects(bits, &instructions), width)
}

/// The instruction that is named, or all.
fn named(instruction: Option<Named>) -> Vec<Instruction> {
    match instruction {
        None => Instruction::ALL.to_vec(),
        Some(Named::Name(instruction) | Named::Word(Word { instruction, .. })) => vec![instruction],
    }
}

/// An operand as JSON has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Document {
    operand: String,
    fields: Vec<FieldDocument>,
    effects: Vec<EffectDocument>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct FieldDocument {
    bits: String,
    field: String,
    value: String,
    meaning: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct EffectDocument {
    instruction: String,
    computes: String,
    lanes_of_x: String,
    lanes_of_y: String,
    z: String,
    registers: String,
}

/// The same as [`explain`], for programs.
pub fn document(Bits(bits): Bits, instruction: Option<Named>) -> Document {
    let instructions = named(instruction);
    let field = |[bits, field, value, meaning]: [String; 4]| FieldDocument { bits, field, value, meaning };
    let effect = |[instruction, computes, lanes_of_x, lanes_of_y, z, registers]: [String; 6]| {
        EffectDocument { instruction, computes, lanes_of_x, lanes_of_y, z, registers }
    };
    Document {
        operand: format!("{bits:#018x}"),
        fields: fields(bits, &instructions).into_iter().map(field).collect(),
        effects: effects(bits, &instructions).into_iter().map(effect).collect(),
    }
}

/// A row for each field, and for what is set elsewhere.
fn fields(bits: u64, instructions: &[Instruction]) -> Vec<[String; 4]> {
    let operand = Operand::decode(bits);
    let mut rows: Vec<[String; 4]> = FIELDS
        .iter()
        .map(|field| {
            let Field { name, lowest, width } = *field;
            let range = match width {
                1 => lowest.to_string(),
                _ => format!("{}–{lowest}", lowest + width - 1),
            };
            let looks = |i: &&Instruction| operand.meaningful_bits(**i) & field.mask() != 0;
            let looking: Vec<&str> = instructions.iter().filter(looks).map(|i| i.name()).collect();
            let meaning = match looking.len() {
                0 => "ignored".to_string(),
                looking if looking == instructions.len() => meaning(field, &operand),
                looking_on => {
                    let look = if looking_on == 1 { "looks" } else { "look" };
                    format!("{}; only {} {look}", meaning(field, &operand), looking.join(" and "))
                }
            };
            [range, name.to_string(), field.of(bits).to_string(), meaning]
        })
        .collect();
    let elsewhere = FIELDS.iter().fold(bits, |left, field| left & !field.mask());
    if elsewhere != 0 {
        rows.push(["others".to_string(), String::new(), format!("{elsewhere:#x}"), "ignored".to_string()]);
    }
    rows
}

fn meaning(field: &Field, operand: &Operand) -> String {
    let either = |set: bool, yes: &str, no: &str| if set { yes.to_string() } else { no.to_string() };
    match field.name {
        "mode" => either(operand.vector, "vector: z[_][i] += x[i] · y[i]", "matrix: z[j][i] += x[i] · y[j]"),
        "Z width" => either(operand.z_is_f32, "Z is f32", "Z has the instruction's width"),
        "X width" => either(operand.x_is_f16, "X is f16, in even lanes", "X has the instruction's width"),
        "Y width" => either(operand.y_is_f16, "Y is f16, in even lanes", "Y has the instruction's width"),
        "X enable mode" => mode(operand.x_enable).to_string(),
        "X enable value" => enabled(operand.x_enable),
        "Y enable mode" => mode(operand.y_enable).to_string(),
        "Y enable value" => enabled(operand.y_enable),
        "skip X" => either(operand.skip_x, "X is left out", "X is used"),
        "skip Y" => either(operand.skip_y, "Y is left out", "Y is used"),
        "skip Z" => either(operand.skip_z, "Z is left out", "Z is used"),
        "Z row" => either(operand.vector, "the register of Z", "which rows of Z: see below"),
        "X offset" => format!("X starts at byte {}", operand.x_offset),
        _ => format!("Y starts at byte {}", operand.y_offset),
    }
}

fn mode(enable: Enable) -> &'static str {
    match enable.mode {
        EnableMode::Pattern => "N = 0 all lanes, 1 odd, 2 even, else none",
        EnableMode::Only => "lane N alone",
        EnableMode::First => "the first N lanes, all when N = 0",
        EnableMode::Last => "the last N lanes, all when N = 0",
    }
}

fn enabled(enable: Enable) -> String {
    match (enable.mode, enable.value) {
        (EnableMode::Pattern, 1) => "odd lanes".to_string(),
        (EnableMode::Pattern, 2) => "even lanes".to_string(),
        (EnableMode::Pattern, 3..) => "no lane".to_string(),
        (EnableMode::Only, n) => format!("lane {n} alone"),
        (_, 0) => "all lanes".to_string(),
        (EnableMode::First, n) => format!("the first {n} lanes"),
        (_, n) => format!("the last {n} lanes"),
    }
}

/// What the operand makes of each instruction: formats, lanes, the operation, and registers of Z.
fn effects(bits: u64, instructions: &[Instruction]) -> Vec<[String; 6]> {
    let operand = Operand::decode(bits);
    instructions
        .iter()
        .map(|&instruction| {
            let Widths { x, y, z } = Widths::of(instruction, &operand);
            let lanes = instruction.lanes();
            let input = |format, enable: Enable| {
                let count = (0..lanes).filter(|&lane| enable.lane(lane, lanes)).count();
                format!("{count} of {lanes} {}", name(format))
            };
            let y_enable = if operand.vector { operand.x_enable } else { operand.y_enable };
            let shape = if operand.vector { format!("[{lanes}]") } else { format!("[{lanes}][{lanes}]") };
            let stride = operand.z_stride(instruction);
            let row = usize::from(operand.z_row);
            let registers = match stride {
                _ if operand.vector => row.to_string(),
                1 => "all".to_string(),
                _ => {
                    let first = row % stride;
                    format!("{first}, {}, … {}", first + stride, first + stride * (lanes - 1))
                }
            };
            [
                instruction.to_string(),
                operation(&operand).to_string(),
                input(x, operand.x_enable),
                input(y, y_enable),
                format!("{}{shape}", name(z)),
                registers,
            ]
        })
        .collect()
}

/// A format as the document calls it.
fn name(format: Format) -> String {
    format.name.replace("fp", "f")
}

/// What is computed, of the inputs that are not left out.
fn operation(operand: &Operand) -> &'static str {
    match (operand.skip_x, operand.skip_y, operand.skip_z) {
        (false, false, false) => "x·y + z",
        (false, false, true) => "x·y",
        (false, true, false) => "x + z",
        (false, true, true) => "x",
        (true, false, false) => "y + z",
        (true, false, true) => "y",
        (true, true, false) => "z",
        (true, true, true) => "0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_read_in_three_bases() {
        for (text, bits) in [
            ("0x8000_0000_0000_0000", 1 << 63),
            ("0X1F", 31),
            ("0b101", 5),
            ("18446744073709551615", u64::MAX),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(Bits(bits)), "{text}");
        }
        for (text, problem) in [
            ("", "no decimal number"),
            ("0x", "no hexadecimal number"),
            ("-1", "no decimal number"),
            ("+1", "no decimal number"),
            ("0b12", "no binary number"),
            ("ff", "no decimal number"),
            ("é", "no decimal number"),
            ("0x10000000000000000", "more than 64 bits"),
        ] {
            let error = text.parse::<Bits>().unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn instructions_are_read_by_name_and_word() {
        assert_eq!("fma16".parse(), Ok(Named::Name(Instruction::Fma16)));
        let word = Word { instruction: Instruction::Fma32, register: 7 };
        assert_eq!("0x00201187".parse(), Ok(Named::Word(word)));
        for (text, problem) in [
            ("fma8", "expected fma16"),
            ("0x0020_1220", "instruction 17"),
            ("0xd503201f", "no instruction of the matrix unit"),
            ("0x100201187", "32 bits"),
        ] {
            let error = text.parse::<Named>().unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    /// The first three lanes of X with the odd ones of Y, from f16s, over Z rows 2, 6, 10 …
    #[test]
    fn every_field_is_told() {
        let bits = 1 << 61 | (0b10 << 5 | 3) << 41 | 1 << 32 | 1 << 27 | 6 << 20 | 64 << 10 | 509 | 1 << 9;
        let text = explain(Bits(bits), Some(Named::Name(Instruction::Fma32)), 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for says in [
            "matrix: z[j][i] += x[i] · y[j]",
            "X is f16, in even lanes",
            "the first 3 lanes",
            "odd lanes",
            "Z is left out",
            "X starts at byte 64",
            "Y starts at byte 509",
            "0x200",
            "3 of 16 f16",
            "8 of 16 f32",
            "2, 6, … 62",
            "f32[16][16]",
        ] {
            assert!(text.contains(says), "{says}: {text}");
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.windows(4).any(|w| w == ["│", "62", "│", "Z"]) && text.contains("ignored"), "{text}");
        // Without an instruction, it is said who looks at a field that not all look at.
        let all = explain(Bits(bits), None, 120);
        assert!(all.contains("only fma32 looks") && all.contains("only fma16 looks"), "{all}");
    }
}
