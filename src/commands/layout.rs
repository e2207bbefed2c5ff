//! `mmaprobe layout`: where each element of a matrix is while an instruction runs.

use mmaprobe_kernels::fragment::{Fragment, Fragments, Home, Matrix, Place};

use serde::Serialize;

use super::{Failure, Outcome, print, print_json, width};
use crate::catalog::{Architecture, Catalog};
use crate::cli::{Layout, Operand, Output};
use crate::device::sim::did_you_mean;
use crate::device::{Instruction, cuda, hip};

pub fn run(arguments: &Layout, output: Output, catalog: &Catalog) -> Result<Outcome, Failure> {
    let (architecture, instruction, fragments) = find(arguments, catalog)?;
    let (matrix, name) = match arguments.matrix {
        Operand::A => (Matrix::A, "A"),
        Operand::B => (Matrix::B, "B"),
        Operand::C => (Matrix::C, "C"),
        Operand::D => (Matrix::D, "D"),
        Operand::SA => (Matrix::ScaleA, "SA"),
        Operand::SB => (Matrix::ScaleB, "SB"),
    };
    let Some(fragment) = fragments.of(matrix) else {
        return Err(Failure::Usage(format!("{} has no scales, so there is no {name}", instruction.name)));
    };
    let title = format!("{} of {}, {}", name, instruction.name, architecture.title);
    match output {
        Output::Text | Output::Markdown => print(&render(&title, name, matrix, fragment, width()))?,
        Output::Json => print_json(&document(&instruction.name, &architecture.name, name, matrix, fragment))?,
    }
    Ok(Outcome::Held)
}

/// A layout as JSON has it.
#[derive(Serialize)]
struct Document<'d> {
    instruction: &'d str,
    architecture: &'d str,
    matrix: &'d str,
    /// How to read the places.
    legend: String,
    /// For each problem that is computed at once, for each row, where its elements are.
    problems: Vec<Vec<Vec<String>>>,
}

fn document<'d>(
    instruction: &'d str,
    architecture: &'d str,
    name: &'d str,
    matrix: Matrix,
    fragment: &Fragment,
) -> Document<'d> {
    let (rows, columns) = size(matrix, fragment);
    let row = |block, row| (0..columns).map(|column| cell(matrix, fragment, block, row, column)).collect();
    let problem = |block| (0..rows).map(|index| row(block, index)).collect();
    let problems = (0..fragment.blocks).map(problem).collect();
    Document { instruction, architecture, matrix: name, legend: legend(fragment), problems }
}

/// Whether rows and columns change places: B and its scales are counted by column first.
fn is_transposed(matrix: Matrix) -> bool {
    matches!(matrix, Matrix::B | Matrix::ScaleB)
}

/// Rows and columns.
fn size(matrix: Matrix, fragment: &Fragment) -> (usize, usize) {
    match is_transposed(matrix) {
        true => (fragment.inner, fragment.outer),
        false => (fragment.outer, fragment.inner),
    }
}

/// Where an element is.
fn cell(matrix: Matrix, fragment: &Fragment, block: usize, row: usize, column: usize) -> String {
    let (outer, inner) = if is_transposed(matrix) { (column, row) } else { (row, column) };
    spell(fragment, fragment.place(block, outer, inner))
}

/// The instruction, in the newest architecture that has it unless one is named.
fn find<'c>(
    arguments: &Layout,
    catalog: &'c Catalog,
) -> Result<(&'c Architecture, Instruction, Fragments), Failure> {
    let usage = |text: String| Failure::Usage(text);
    let all: Vec<&Architecture> = match &arguments.arch {
        Some(name) => {
            let found = catalog.find(name).ok_or_else(|| {
                let near = did_you_mean(&catalog.near(name));
                usage(format!("the catalogue has no architecture, GPU or ISA target '{name}'{near}"))
            })?;
            vec![found.architecture]
        }
        None => catalog.architectures().iter().rev().collect(),
    };
    let wanted = &arguments.instruction;
    for architecture in &all {
        let Some((family, instruction)) = architecture
            .families
            .iter()
            .find_map(|family| family.named(wanted).map(|instruction| (family, instruction)))
        else {
            continue;
        };
        let instruction = instruction.map_err(|no_such_shape| usage(no_such_shape.to_string()))?;
        let (m, n) = (instruction.m, instruction.n);
        let fragments = match (family.cuda_spec(m, n), family.hip_spec(m, n)) {
            (Some(spec), _) => mmaprobe_kernels::cuda::layout::fragments(&spec),
            (None, Some(spec)) => mmaprobe_kernels::hip::layout::fragments(&spec),
            (None, None) => {
                return Err(usage(format!(
                    "{wanted} is an instruction of {}, whose layouts are not known",
                    architecture.title
                )));
            }
        };
        let fragments = fragments.map_err(|unsupported| usage(unsupported.to_string()))?;
        return Ok((architecture, instruction, fragments));
    }
    let known = all.iter().filter(|architecture| cuda::is_ours(architecture) || hip::is_ours(architecture));
    let names: Vec<&str> = known.map(|architecture| architecture.name.as_str()).collect();
    Err(usage(match &arguments.arch {
        Some(name) => {
            format!("{name} has no instruction '{wanted}' (mmaprobe instructions --arch {name} lists them)")
        }
        None => format!(
            "no architecture has an instruction '{wanted}' (mmaprobe instructions --arch A lists those of \
             {})",
            names.join(", ")
        ),
    }))
}

/// The layout as a table: rows of the matrix down, columns across, as many beside each other as fit.
fn render(title: &str, name: &str, matrix: Matrix, fragment: &Fragment, width: usize) -> String {
    let (rows, columns) = size(matrix, fragment);
    let mut text = format!("{title}\n{}\n", textwrap::fill(&legend(fragment), width));
    for block in 0..fragment.blocks {
        if fragment.blocks > 1 {
            text.push_str(&format!(
                "\nProblem {block} of the {} that {} computes:\n",
                fragment.blocks,
                team(fragment)
            ));
        }
        let cell = |row: usize, column: usize| cell(matrix, fragment, block, row, column);
        let widest = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let wide = widest.map(|(row, column)| cell(row, column).len()).max().unwrap_or(0);
        let wide = wide.max(columns.to_string().len());
        let margin = format!("{name}[{}]", rows - 1).len();
        let beside = ((width - margin) / (wide + 1)).clamp(1, columns);
        for first in (0..columns).step_by(beside) {
            let range = first..(first + beside).min(columns);
            let head: Vec<String> = range.clone().map(|column| format!(" {column:>wide$}")).collect();
            text.push_str(&format!("\n{:margin$}{}\n", "", head.concat()));
            for row in 0..rows {
                let cells: Vec<String> =
                    range.clone().map(|column| format!(" {:>wide$}", cell(row, column))).collect();
                text.push_str(&format!("{:<margin$}{}\n", format!("{name}[{row}]"), cells.concat()));
            }
        }
    }
    text
}

/// How to read the cells.
fn legend(fragment: &Fragment) -> String {
    let bits = match fragment.bits {
        1 => "1 bit".to_string(),
        bits => format!("{bits} bits"),
    };
    match fragment.home {
        Home::Registers { lanes, registers, width } => format!(
            "LrR.B: lane L of {lanes}, register R of {registers} with {width} bits, lowest bit B; an element \
             has {bits}"
        ),
        Home::Vgprs { registers } => {
            let rest = match fragment.bits {
                64 => ", the upper 32 in the next VGPR",
                // Where they are no divisor of 32, an element can begin in one and end in the next.
                6 => ", the last of them in the next VGPR where B is above 26",
                _ => "",
            };
            format!(
                "LvV.B: lane L of 64, VGPR V of {registers} with 32 bits, lowest bit B; an element has \
                 {bits}{rest}. This is with CBSZ, ABID and BLGP at 0; where they select formats, with OPSEL \
                 at 0"
            )
        }
        Home::Shared { bytes } => {
            format!("O.B: byte offset O of {bytes} in shared memory, lowest bit B; an element has {bits}")
        }
        Home::TensorMemory { lanes, columns } => {
            let copies = if lanes == 32 { ", repeated in each 32 lanes" } else { "" };
            format!(
                "LcC.B: lane L of {lanes}{copies}, column C of {columns} with 32 bits, lowest bit B; an \
                 element has {bits}"
            )
        }
    }
}

/// Who computes the problems of a fragment together.
fn team(fragment: &Fragment) -> &'static str {
    match fragment.home {
        Home::Vgprs { .. } => "the wave",
        _ => "the warp",
    }
}

fn spell(fragment: &Fragment, place: Place) -> String {
    let Place { lane, register, bit } = place;
    let bit = if bit == 0 { String::new() } else { format!(".{bit}") };
    match fragment.home {
        Home::Registers { .. } => format!("{lane}r{register}{bit}"),
        Home::Vgprs { .. } => format!("{lane}v{register}{bit}"),
        Home::Shared { .. } => format!("{register}{bit}"),
        Home::TensorMemory { .. } => format!("{lane}c{register}{bit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(instruction: &str, arch: Option<&str>, matrix: Operand) -> Result<String, String> {
        let arguments =
            Layout { instruction: instruction.to_string(), arch: arch.map(str::to_string), matrix };
        let catalog = Catalog::embedded();
        let (_, _, fragments) = find(&arguments, &catalog).map_err(|failure| failure.to_string())?;
        let matrix = if matrix == Operand::B { Matrix::B } else { Matrix::A };
        Ok(render("", "X", matrix, fragments.of(matrix).unwrap(), 80))
    }

    #[test]
    fn a_table_fits_the_terminal_and_shows_every_element_once() {
        let table = text("mma.m16n8k16.f32.f16.f16.f32", None, Operand::A).unwrap();
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        // The figure of the PTX manual: a0 and a1 of thread 0, then those of thread 1.
        assert!(table.contains("X[0]      0r0  0r0.16     1r0  1r0.16     2r0"), "{table}");
        let places = table.split_whitespace().filter(|word| word.contains('r') && !word.contains(':'));
        let places: std::collections::HashSet<&str> =
            places.filter(|w| w.as_bytes()[0].is_ascii_digit()).collect();
        assert_eq!(places.len(), 16 * 16);
    }

    #[test]
    fn b_is_shown_with_k_down() {
        let table = text("mma.m8n8k4.f64.f64.f64.f64", Some("sm_80"), Operand::B).unwrap();
        assert!(table.contains("X[1]  1r0  5r0  9r0 13r0"), "{table}");
    }

    #[test]
    fn what_has_no_layout_says_so() {
        for (instruction, arch, problem) in [
            ("mma.m16n8k16.f32.f16.f16.f32", Some("volta"), "volta has no instruction"),
            ("mma.m1n1k1", None, "no architecture has an instruction"),
            ("fma32.matrix.f32.f32.f32", Some("m1"), "layouts are not known"),
            ("wgmma.m64n12k16.f32.f16.f16", None, "n = 12"),
            ("tcgen05.m256n16k16.f32.f16.f16", None, "two CTAs"),
        ] {
            let error = text(instruction, arch, Operand::A).unwrap_err();
            assert!(error.contains(problem), "{instruction}: {error}");
        }
    }
}
