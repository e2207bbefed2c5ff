//! `mmaprobe simulate`.

use std::path::Path;

use super::open;
use super::{Failure, Outcome};
use crate::catalog::Catalog;
use crate::characterize::Named;
use crate::cli::Simulate;
use crate::device::{Device, Instruction};
use crate::gemm::{Gemm, Misfit, Operands};
use crate::matrix::Matrix;
use crate::model::Format;
use crate::npy::{self, Array};
use crate::output;
use crate::progress::Display;

pub fn run(arguments: &Simulate, catalog: &Catalog) -> Result<Outcome, Failure> {
    let path = &arguments.output;
    let unwritable = |error| Failure::Usage(format!("cannot write {}: {error}", path.display()));
    output::check(path, arguments.force).map_err(unwritable)?;
    let device = open::open(&arguments.device.device, arguments.device.timeout, catalog)?;
    let instruction = find(device.as_ref(), &arguments.instruction)?;
    let a = read("A", &arguments.a, &instruction.a)?;
    let b = read("B", &arguments.b, &instruction.b)?;
    let c = arguments.c.as_deref().map(|path| read("C", path, &instruction.c)).transpose()?;
    let scales = |matrix, path: Option<&Path>| match (path, instruction.scale) {
        (None, _) => Ok(None),
        (Some(path), Some(scale)) => read(matrix, path, &scale.format).map(Some),
        (Some(_), None) => Err(misfit(Misfit::Scales { matrix, instruction: instruction.name.clone() })),
    };
    let sa = scales("SA", arguments.sa.as_deref())?;
    let sb = scales("SB", arguments.sb.as_deref())?;
    let operands = Operands { a: &a, b: &b, c: c.as_ref(), sa: sa.as_ref(), sb: sb.as_ref() };
    let gemm = Gemm::new(instruction, operands, arguments.pad_k).map_err(misfit)?;
    let (rows, columns) = gemm.tiles();
    let display = Display::new();
    let progress = display.named(&instruction.name);
    progress.step("multiplying", Some((rows * columns * gemm.steps()) as u64));
    let d = gemm.run(device.as_ref(), &|steps| progress.advance(steps));
    display.clear();
    let d = d?;
    device.finish()?;
    output::write(path, &npy::write(&d), arguments.force).map_err(unwritable)?;
    eprintln!(
        "{}: {}×{} {}; {rows}×{columns} tiles, {} × {} each",
        path.display(),
        d.rows(),
        d.columns(),
        d.format(),
        gemm.steps(),
        instruction.name
    );
    Ok(Outcome::Held)
}

fn misfit(misfit: Misfit) -> Failure {
    Failure::Usage(misfit.to_string())
}

fn find<'d>(device: &'d dyn Device, name: &str) -> Result<&'d Instruction, Failure> {
    device.instructions().iter().find(|instruction| instruction.name == name).ok_or_else(|| {
        let device = &device.identity().name;
        Failure::Usage(format!(
            "{device} has no instruction '{name}'; `mmaprobe instructions --device '{device}'` lists those it has"
        ))
    })
}

/// Reads the matrix that the command line calls `name`.
fn read(name: &str, path: &Path, format: &Format) -> Result<Matrix, Failure> {
    let failed = |problem: String| Failure::Usage(format!("{name}, {}: {problem}", path.display()));
    let file = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let matrix = Array::parse(&file).and_then(|array| array.into_matrix(format));
    matrix.map_err(|error| failed(error.to_string()))
}
