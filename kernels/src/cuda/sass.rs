//! What a kernel became: the machine instructions in a disassembly.
//!
//! `nvdisasm` prints an instruction to a line, its address in a comment before it:
//!
//! ```text
//!         /*0170*/                   HMMA.16816.F32 R4, R4, R2, R8 ;
//! ```

use std::collections::BTreeMap;
use std::fmt;

/// What a Tensor Core instruction of PTX became: the machine instructions that compute, with how many
/// there are of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Those of a matrix unit. Volta and Turing issue some of them in steps, which count as one.
    pub matrix: Vec<(String, usize)>,
    /// Floating-point arithmetic and conversions of the ordinary units.
    pub arithmetic: Vec<(String, usize)>,
}

impl Machine {
    /// Reads a disassembly.
    pub fn read(disassembly: &str) -> Machine {
        let mut matrix: BTreeMap<String, usize> = BTreeMap::new();
        let mut arithmetic: BTreeMap<String, usize> = BTreeMap::new();
        for (mnemonic, operands) in disassembly.lines().filter_map(instruction) {
            if is_matrix(mnemonic) {
                match mnemonic.split_once(".STEP") {
                    Some((_, step)) if step != "0" => {}
                    Some((whole, _)) => *matrix.entry(whole.to_string()).or_default() += 1,
                    None => *matrix.entry(mnemonic.to_string()).or_default() += 1,
                }
            } else if is_arithmetic(mnemonic) && !is_constant(operands) {
                *arithmetic.entry(mnemonic.to_string()).or_default() += 1;
            }
        }
        Machine { matrix: matrix.into_iter().collect(), arithmetic: arithmetic.into_iter().collect() }
    }

    /// The machine instruction that it is, if it is one and nothing else.
    pub fn native(&self) -> Option<&str> {
        match (&self.matrix[..], &self.arithmetic[..]) {
            ([(name, 1)], []) => Some(name),
            _ => None,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.matrix.iter().chain(&self.arithmetic);
        let all: Vec<String> = all
            .map(|(name, count)| if *count == 1 { name.clone() } else { format!("{count} {name}") })
            .collect();
        f.write_str(&all.join(", "))
    }
}

/// Whether it is a machine instruction of a matrix unit: HMMA, IMMA, DMMA, QMMA, OMMA, HGMMA, QGMMA,
/// UTCHMMA, UTCQMMA, UTCOMMA and whatever will be called like them.
fn is_matrix(mnemonic: &str) -> bool {
    // HFMA2.MMA, on Ampere, is a multiply-add of two halves.
    mnemonic.split('.').next().is_some_and(|name| name.ends_with("MMA"))
}

/// Whether it computes with floating-point numbers or converts them.
fn is_arithmetic(mnemonic: &str) -> bool {
    const NAMES: [&str; 11] =
        ["FFMA", "FADD", "FMUL", "HFMA2", "HADD2", "HMUL2", "DFMA", "DADD", "DMUL", "F2F", "F2FP"];
    mnemonic.split('.').next().is_some_and(|name| NAMES.contains(&name))
}

/// Whether an instruction multiplies zero by zero: that is how constants get into registers.
fn is_constant(operands: &str) -> bool {
    operands.contains("-RZ, RZ,")
}

/// The mnemonic and the operands of a line with an instruction, without a guard before it.
fn instruction(line: &str) -> Option<(&str, &str)> {
    let (address, rest) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    if !address.chars().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('@') {
        Some(guarded) => guarded.split_once(' ')?.1.trim_start(),
        None => rest,
    };
    let (mnemonic, operands) = rest.split_once([' ', ';']).unwrap_or((rest, ""));
    mnemonic.starts_with(|c: char| c.is_ascii_uppercase()).then_some((mnemonic, operands))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_instruction_of_the_machine_is_native() {
        let machine = Machine::read(
            "\t.section .text
        /*0160*/                   LDG.E R6, [R2.64+0xc] ;
        /*0170*/               @P0 HMMA.16816.F32 R4, R4, R2, R8 ;
        /* 0x000fe200000018ff */
        /*0180*/                   HFMA2.MMA R5, -RZ, RZ, 0, 0 ;
        /*0190*/                   EXIT ;",
        );
        assert_eq!(machine.native(), Some("HMMA.16816.F32"));
        assert_eq!(machine.to_string(), "HMMA.16816.F32");
    }

    #[test]
    fn steps_are_one_instruction() {
        let lines: Vec<String> = (0..4)
            .map(|step| format!("/*00{step}0*/ HMMA.884.F32.F32.STEP{step} R8, R4.ROW, R6.COL, R8 ;"))
            .collect();
        assert_eq!(Machine::read(&lines.join("\n")).native(), Some("HMMA.884.F32.F32"));
    }

    #[test]
    fn expansions_are_counted() {
        let machine = Machine::read(
            "/*0010*/ F2FP.F16.E4M3.UNPACK_B R4, R4 ;
             /*0020*/ HMMA.16816.F32 R4, R4, R2, R8 ;
             /*0030*/ HMMA.16816.F32 R4, R4, R2, R8 ;",
        );
        assert_eq!(machine.native(), None);
        assert_eq!(machine.to_string(), "2 HMMA.16816.F32, F2FP.F16.E4M3.UNPACK_B");
        let software = Machine::read("/*0150*/ FFMA R11, R10, R11, RZ ;\n/*0160*/ FFMA R0, R0, R13, R11 ;");
        assert_eq!((software.native(), software.to_string().as_str()), (None, "2 FFMA"));
        assert_eq!(Machine::read("no instruction"), Machine::default());
    }
}
