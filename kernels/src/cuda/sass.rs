//! What a kernel became: the machine instructions in a disassembly.
//!
//! `nvdisasm` prints an instruction to a line, its address in a comment before it:
//!
//! ```text
//!         /*0170*/                   HMMA.16816.F32 R4, R4, R2, R8 ;
//! ```

use std::collections::BTreeMap;

/// What a Tensor Core instruction of PTX became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    /// Machine instructions of a matrix unit, with how many there are of each: one, where the machine
    /// has the instruction itself.
    Unit(Vec<(String, usize)>),
    /// None at all: arithmetic of the ordinary units, with how many there are of each.
    Arithmetic(Vec<(String, usize)>),
}

/// Whether it is a machine instruction of a matrix unit: HMMA, IMMA, DMMA, QMMA, OMMA, HGMMA, QGMMA,
/// UTCHMMA, UTCQMMA, UTCOMMA and whatever will be called like them.
fn is_matrix(mnemonic: &str) -> bool {
    let name = mnemonic.split('.').next().unwrap_or_default();
    // HFMA2.MMA is a multiply-add of two halves, on Ampere.
    name.ends_with("MMA")
}

/// Whether it computes with floating-point numbers or converts them.
fn is_arithmetic(mnemonic: &str) -> bool {
    let name = mnemonic.split('.').next().unwrap_or_default();
    [
        "FFMA", "FADD", "FMUL", "HFMA2", "HADD2", "HMUL2", "DFMA", "DADD", "DMUL", "F2F", "F2FP", "HSETP2",
        "FSEL",
    ]
    .contains(&name)
}

/// Reads a disassembly.
pub fn read(disassembly: &str) -> Became {
    let mut matrix: BTreeMap<String, usize> = BTreeMap::new();
    let mut arithmetic: BTreeMap<String, usize> = BTreeMap::new();
    for mnemonic in disassembly.lines().filter_map(mnemonic) {
        if is_matrix(mnemonic) {
            *matrix.entry(whole(mnemonic)).or_default() += 1;
        } else if is_arithmetic(mnemonic) {
            *arithmetic.entry(mnemonic.to_string()).or_default() += 1;
        }
    }
    match matrix.is_empty() {
        true => Became::Arithmetic(arithmetic.into_iter().collect()),
        false => Became::Unit(matrix.into_iter().collect()),
    }
}

/// The mnemonic of a line with an instruction, without a guard before it.
fn mnemonic(line: &str) -> Option<&str> {
    let (address, rest) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    if !address.chars().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let mut words = rest.split_whitespace().skip_while(|word| word.starts_with('@'));
    words
        .next()
        .map(|word| word.trim_end_matches(';'))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// A mnemonic without the suffix that numbers the steps of one operation: HMMA.884 is issued as STEP0
/// to STEP3.
fn whole(mnemonic: &str) -> String {
    match mnemonic.split_once(".STEP") {
        Some((name, _)) => format!("{name} in steps"),
        None => mnemonic.to_string(),
    }
}
