//! `sheet:FILE`: a virtual device that executes a parameter sheet.

use std::path::Path;

use mmaprobe_model::Model;

use crate::device::simulated::Simulated;
use crate::device::{DeviceError, Identity, Instruction, Provenance};
use crate::sheet::schema::{Entry, Sheet, Status};
use crate::sheet::yaml::{SheetError, load};

/// A sheet cannot be made a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error(transparent)]
    Sheet(#[from] SheetError),
    /// What it says cannot be executed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Opens a sheet as a device named `sheet:FILE`, and returns the sheet too.
///
/// # Errors
/// If the sheet cannot be read or executed.
pub fn open(path: &Path) -> Result<(Simulated, Sheet), OpenError> {
    let sheet = load(path)?;
    let device = simulate(&sheet, format!("sheet:{}", path.display()))?;
    Ok((device, sheet))
}

/// A device of that name which offers the instructions whose arithmetic the sheet knows, in its order.
///
/// # Errors
/// If an arithmetic makes no sense, which [loading](load) a sheet has ruled out.
pub fn simulate(sheet: &Sheet, name: String) -> Result<Simulated, DeviceError> {
    let mut instructions: Vec<(Instruction, Model)> = Vec::new();
    for entry in &sheet.instructions {
        if let Some(model) = model_of(sheet, entry).map_err(|problem| DeviceError {
            device: name.clone(),
            fault: crate::device::Fault::Description(format!("instruction `{}`: {problem}", entry.name)),
        })? {
            instructions.push((entry.instruction(), model));
        }
    }
    let identity = Identity {
        name,
        description: format!("simulation of {}", sheet.device.description),
        properties: sheet.device.properties.0.clone(),
        provenance: Provenance::Simulated,
        absent: sheet.absent.iter().map(|absent| (absent.name.clone(), absent.reason.clone())).collect(),
    };
    Simulated::new(identity, instructions)
}

/// The model that stands for an entry: `None` if the sheet knows none.
fn model_of(sheet: &Sheet, entry: &Entry) -> Result<Option<Model>, crate::sheet::ArithmeticError> {
    if !entry.status.is_executable() {
        return Ok(None);
    }
    let base = entry
        .mode_of
        .as_ref()
        .filter(|_| entry.status == Status::ModeWithoutEffect)
        .and_then(|of| sheet.instructions.iter().find(|base| base.name == of.instruction))
        .filter(|base| base.status.is_executable());
    let arithmetic = entry.arithmetic.as_ref().or_else(|| base?.arithmetic.as_ref());
    arithmetic.map(Model::try_from).transpose()
}
