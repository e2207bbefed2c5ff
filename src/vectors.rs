//! Recorded dot-adds of one instruction as text.
//!
//! Lines of comments say what follows, then each line is a dot-add: the elements of a, those of b, c
//! and the recorded d, all in hexadecimal.
//!
//! ```text
//! # gpu: V100
//! # arch: volta
//! # instruction: mma.m8n8k4.f32.f16.f16.f32
//! # a: fp16
//! # b: fp16
//! # c: fp32
//! # d: fp32
//! # k: 4
//! # columns: a[0..k) b[0..k) c d, …
//! 3bd5 3c3e b534 3df8 38ca b935 36bf 34ec 3f7f418c 3f9b7dec
//! ```
//!
//! `k` may be smaller than the instruction's: products past it were +0·+0.

pub mod compare;

use std::path::{Path, PathBuf};

use crate::device::{Device, Instruction};
use crate::model::Format;
use crate::probes::DotAdd;

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vectors {
    /// The GPU that was recorded.
    pub gpu: String,
    /// Its architecture.
    pub arch: String,
    /// The instruction.
    pub instruction: String,
    /// Formats of a, b, c and d.
    pub formats: [Format; 4],
    /// Products of each dot-add.
    pub k: usize,
    /// The dot-adds.
    pub vectors: Vec<Vector>,
    /// The lines of the header that say a, b, c, d and k.
    lines: [usize; 5],
}

/// A recorded dot-add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Its line in the file, from 1.
    pub line: usize,
    /// What was asked: [`Vectors::k`] products.
    pub question: DotAdd,
    /// What was answered.
    pub d: u64,
}

/// A file of vectors cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {problem}", .path.display(), .line.map_or(String::new(), |line| format!(":{line}")))]
pub struct VectorsError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1, where there is one to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a file of vectors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It cannot be read.
    #[error("{0}")]
    Read(String),
    /// The header lacks something.
    #[error("the header lacks a line '# {0}: …'")]
    Missing(&'static str),
    /// The header says something twice.
    #[error("the header says '{0}' a second time")]
    Twice(&'static str),
    /// A header line after dot-adds have begun.
    #[error("'# {0}: …' stands after the first dot-add")]
    Late(&'static str),
    /// A format that does not exist.
    #[error("there is no format '{found}'; there are {}", Format::ALL.map(|format| format.name).join(", "))]
    Format {
        /// What it says.
        found: String,
    },
    /// K is no number of products.
    #[error("'{0}' is no number of products")]
    Products(String),
    /// A line has too few or too many columns.
    #[error("expected {expected} columns (2·{k} products' factors, c and d), found {found}")]
    Columns {
        /// How many there should be.
        expected: usize,
        /// K.
        k: usize,
        /// How many there are.
        found: usize,
    },
    /// A column is no hexadecimal number.
    #[error("column {column}, '{found}', is no hexadecimal number")]
    Hexadecimal {
        /// The column, from 1.
        column: usize,
        /// What it says.
        found: String,
    },
    /// A pattern is wider than its format.
    #[error("column {column}, {found:#x}, has bits outside {format}")]
    Bits {
        /// The column, from 1.
        column: usize,
        /// What it says.
        found: u64,
        /// The format.
        format: &'static str,
    },
    /// It has no dot-adds.
    #[error("it holds no dot-adds")]
    Empty,
    /// The device has no such instruction.
    #[error("{device} has no instruction '{instruction}'; {others}")]
    NoInstruction {
        /// The device.
        device: String,
        /// The name in the file or on the command line.
        instruction: String,
        /// Which of its instructions take the same formats, in words.
        others: String,
    },
    /// The instruction has another format.
    #[error("{operand} is {found} here, and {expected} in {instruction}")]
    OtherFormat {
        /// a, b, c or d.
        operand: char,
        /// In the file.
        found: &'static str,
        /// In the instruction.
        expected: &'static str,
        /// The instruction.
        instruction: String,
    },
    /// There are more products than the instruction adds.
    #[error("k is {found}, and {instruction} adds {expected} products only")]
    TooLong {
        /// In the file.
        found: usize,
        /// In the instruction.
        expected: usize,
        /// The instruction.
        instruction: String,
    },
    /// Files of vectors hold no scales.
    #[error("{instruction} takes block scales, and files of vectors have none")]
    Scales {
        /// The instruction.
        instruction: String,
    },
}

/// What the header has to say.
const FIELDS: [&str; 8] = ["gpu", "arch", "instruction", "a", "b", "c", "d", "k"];

/// Reads a file.
///
/// # Errors
/// If it cannot be read, or makes no sense.
pub fn load(path: &Path) -> Result<Vectors, VectorsError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| (None, Problem::Read(error.to_string())))
        .and_then(|text| parse(&text));
    text.map_err(|(line, problem)| VectorsError { path: path.to_path_buf(), line, problem })
}

/// Reads the text of a file.
///
/// # Errors
/// What is wrong, and in which line, counted from 1.
pub fn parse(text: &str) -> Result<Vectors, (Option<usize>, Problem)> {
    // Each with its line.
    let mut fields: [Option<(usize, &str)>; FIELDS.len()] = [None; FIELDS.len()];
    let mut vectors = Vec::new();
    let mut header = None;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if let Some(comment) = text.strip_prefix('#') {
            let Some((key, value)) = comment.split_once(':') else { continue };
            let Some(index) = FIELDS.iter().position(|field| *field == key.trim()) else { continue };
            if header.is_some() {
                return Err((Some(line), Problem::Late(FIELDS[index])));
            }
            if fields[index].replace((line, value.trim())).is_some() {
                return Err((Some(line), Problem::Twice(FIELDS[index])));
            }
        } else if !text.is_empty() {
            let header: &Vectors = match &header {
                Some(header) => header,
                None => header.insert(interpret(&fields)?),
            };
            vectors.push(header.vector(line, text).map_err(|problem| (Some(line), problem))?);
        }
    }
    match header {
        Some(header) => Ok(Vectors { vectors, ..header }),
        // What the header lacks is the better thing to say.
        None => interpret(&fields).and(Err((None, Problem::Empty))),
    }
}

/// The header alone.
fn interpret(fields: &[Option<(usize, &str)>; FIELDS.len()]) -> Result<Vectors, (Option<usize>, Problem)> {
    let field = |index: usize| fields[index].ok_or((None, Problem::Missing(FIELDS[index])));
    let format = |index| {
        let (line, name) = field(index)?;
        Format::named(name).ok_or_else(|| (Some(line), Problem::Format { found: name.to_string() }))
    };
    let (gpu, arch, instruction) = (field(0)?.1.into(), field(1)?.1.into(), field(2)?.1.into());
    let formats = [format(3)?, format(4)?, format(5)?, format(6)?];
    let (line, k) = field(7)?;
    let bad = || (Some(line), Problem::Products(k.to_string()));
    // More than any instruction adds, and few enough to count columns by.
    let products = k.parse().ok().filter(|k| (1..=1 << 16).contains(k)).ok_or_else(bad)?;
    let lines = [field(3)?.0, field(4)?.0, field(5)?.0, field(6)?.0, line];
    Ok(Vectors { gpu, arch, instruction, formats, k: products, vectors: Vec::new(), lines })
}

impl Vectors {
    fn vector(&self, line: usize, text: &str) -> Result<Vector, Problem> {
        let k = self.k;
        let found = text.split_whitespace().count();
        if found != 2 * k + 2 {
            return Err(Problem::Columns { expected: 2 * k + 2, k, found });
        }
        let mut numbers = Vec::with_capacity(found);
        for (index, column) in text.split_whitespace().enumerate() {
            let wrong = || Problem::Hexadecimal { column: index + 1, found: column.to_string() };
            // A sign, which from_str_radix takes, is no hexadecimal digit.
            let bits = Some(column)
                .filter(|column| column.bytes().all(|byte| byte.is_ascii_hexdigit()))
                .and_then(|column| u64::from_str_radix(column, 16).ok())
                .ok_or_else(wrong)?;
            let format = &self.formats[if index < 2 * k { index / k } else { index - 2 * k + 2 }];
            let width = format.bits() + format.ignored_low_bits;
            if width < u64::BITS && bits >> width != 0 {
                return Err(Problem::Bits { column: index + 1, found: bits, format: format.name });
            }
            numbers.push(bits);
        }
        let question = DotAdd {
            a: numbers[..k].to_vec(),
            b: numbers[k..2 * k].to_vec(),
            c: numbers[2 * k],
            sa: Vec::new(),
            sb: Vec::new(),
        };
        Ok(Vector { line, question, d: numbers[2 * k + 1] })
    }

    /// The instruction of a device that these vectors can be asked: the one of this name, or else of
    /// the name in the file, where another `n` in the shape is the same instruction (a dot-add is
    /// the same for every `n`).
    ///
    /// # Errors
    /// If there is none, or it does not take such dot-adds; with the line to blame.
    pub fn instruction_of<'d>(
        &self,
        device: &'d dyn Device,
        name: Option<&str>,
    ) -> Result<&'d Instruction, (Option<usize>, Problem)> {
        let all = device.instructions();
        let same = |own: &&Instruction| any_n(&own.name) == any_n(&self.instruction);
        let wanted = name.unwrap_or(&self.instruction);
        let found = all.iter().find(|own| own.name == wanted);
        let found = found.or_else(|| all.iter().find(same).filter(|_| name.is_none()));
        let instruction = found.ok_or_else(|| {
            let fitting: Vec<&str> =
                all.iter().filter(|own| self.fit(own).is_ok()).map(|own| own.name.as_str()).collect();
            let others = match fitting.is_empty() {
                true => "none that it has takes such dot-adds".to_string(),
                false => format!("--instruction can name another that takes them: {}", fitting.join(", ")),
            };
            let device = device.identity().name.clone();
            (None, Problem::NoInstruction { device, instruction: wanted.to_string(), others })
        })?;
        self.fit(instruction)?;
        Ok(instruction)
    }

    /// Checks that an instruction takes such dot-adds.
    fn fit(&self, instruction: &Instruction) -> Result<(), (Option<usize>, Problem)> {
        let name = || instruction.name.clone();
        let of_instruction = [instruction.a, instruction.b, instruction.c, instruction.d];
        for (index, operand) in ['a', 'b', 'c', 'd'].into_iter().enumerate() {
            let (found, expected) = (self.formats[index].name, of_instruction[index].name);
            if found != expected {
                let problem = Problem::OtherFormat { operand, found, expected, instruction: name() };
                return Err((Some(self.lines[index]), problem));
            }
        }
        if self.k > instruction.k {
            let problem = Problem::TooLong { found: self.k, expected: instruction.k, instruction: name() };
            return Err((Some(self.lines[4]), problem));
        }
        if instruction.scale.is_some() {
            return Err((None, Problem::Scales { instruction: name() }));
        }
        Ok(())
    }
}

/// A name with `N` in the place of the shape's n: `wgmma.m64n8k32.…` as `wgmma.m64nNk32.…`.
fn any_n(name: &str) -> String {
    let shape = |part: &str| {
        let (m, rest) = part.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (number(m) && (number(n) || n == "N") && number(k)).then(|| format!("m{m}nNk{k}"))
    };
    let parts: Vec<String> =
        name.split('.').map(|part| shape(part).unwrap_or_else(|| part.to_string())).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# gpu: V100\n# arch: volta\n# instruction: x\n# a: fp16\n# b: e2m1\n# c: fp32\n\
                        # d: fp32\n# k: 2\n# columns: …\n\n1 2 3 4 5 6\n# a remark\nffff 0 0 f 0 ffffffff\n";

    #[test]
    fn lines_are_taken_apart() {
        let vectors = parse(GOOD).unwrap();
        assert_eq!((&vectors.gpu[..], &vectors.arch[..], vectors.k), ("V100", "volta", 2));
        assert_eq!(vectors.formats.map(|format| format.name), ["fp16", "e2m1", "fp32", "fp32"]);
        let question = DotAdd { a: vec![1, 2], b: vec![3, 4], c: 5, sa: vec![], sb: vec![] };
        assert_eq!(vectors.vectors[0], Vector { line: 11, question, d: 6 });
        let last = &vectors.vectors[1];
        assert_eq!(
            (last.line, last.question.a[0], last.question.b[1], last.d),
            (13, 0xffff, 0xf, 0xffff_ffff)
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (from, to, line, message) in [
            ("# gpu: V100\n", "", None, "the header lacks a line '# gpu: …'"),
            ("# d: fp32\n", "", None, "the header lacks a line '# d: …'"),
            ("# b: e2m1", "# a: e2m1", Some(5), "the header says 'a' a second time"),
            ("# a remark", "# k: 3", Some(12), "'# k: …' stands after the first dot-add"),
            (
                "# c: fp32",
                "# c: float",
                Some(6),
                "there is no format 'float'; there are fp64, fp32, tf32, fp16, bf16, e5m2, e4m3, e5m2fnuz, \
                 e4m3fnuz, e3m2, e2m3, e2m1, ue8m0, ue4m3",
            ),
            ("# k: 2", "# k: two", Some(8), "'two' is no number of products"),
            ("# k: 2", "# k: 0", Some(8), "'0' is no number of products"),
            ("4 5 6", "4 5", Some(11), "expected 6 columns (2·2 products' factors, c and d), found 5"),
            ("4 5 6", "4 +5 6", Some(11), "column 5, '+5', is no hexadecimal number"),
            (
                "4 5 6",
                "4 10000000000000000 6",
                Some(11),
                "column 5, '10000000000000000', is no hexadecimal number",
            ),
            ("4 5 6", "10 5 6", Some(11), "column 4, 0x10, has bits outside e2m1"),
            ("ffff 0", "1ffff 0", Some(13), "column 1, 0x1ffff, has bits outside fp16"),
        ] {
            assert!(GOOD.contains(from));
            let (found, problem) = parse(&GOOD.replace(from, to)).unwrap_err();
            assert_eq!((found, problem.to_string().as_str()), (line, message));
        }
        let header = GOOD.split_once("\n\n").unwrap().0;
        assert_eq!(parse(header), Err((None, Problem::Empty)));
        assert_eq!(parse(""), Err((None, Problem::Missing("gpu"))));
    }

    #[test]
    fn any_n_is_the_same_instruction() {
        assert_eq!(any_n("wgmma.m64n8k32.f32.e4m3.e4m3"), "wgmma.m64nNk32.f32.e4m3.e4m3");
        assert_eq!(any_n("wgmma.m64nNk32.f32"), any_n("wgmma.m64n256k32.f32"));
        for other in ["v_mfma_f32_16x16x16_f16", "mma.mn8k4", "mma.m8nk4", ""] {
            assert_eq!(any_n(other), other);
        }
    }
}
