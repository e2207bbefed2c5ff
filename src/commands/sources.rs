//! Sheets with the recordings that belong to them, as crates and reports are made of.

use std::path::{Path, PathBuf};

use super::Failure;
use crate::device::Device;
use crate::device::replay::Replay;
use crate::generate::{Source, evidence};
use crate::sheet;

/// Loads sheets, each called by the name of its file, and gives each recording to the sheet of its device.
pub fn load(sheets: &[PathBuf], recordings: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for path in sheets {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("sheet").to_string();
        sources.push(Source { name, sheet: sheet::load(path)?, recorded: None });
    }
    for path in recordings {
        add_evidence(&mut sources, path)?;
    }
    Ok(sources)
}

/// Gives a recording to the sheet of the same device.
fn add_evidence(sources: &mut [Source], path: &Path) -> Result<(), Failure> {
    let replay = Replay::open(path)?;
    for warning in replay.warnings() {
        eprintln!("mmaprobe: {warning}");
    }
    let identity = replay.identity();
    let source = sources.iter_mut().find(|Source { sheet, recorded, .. }| {
        let device = &sheet.device;
        recorded.is_none()
            && (&device.name, &device.description) == (&identity.name, &identity.description)
            && device.properties.0 == identity.properties
    });
    let Some(source) = source else {
        return Err(Failure::Usage(format!(
            "--evidence {}: it is a recording of {} ({}), and none of the sheets is of that device",
            path.display(),
            identity.name,
            identity.description
        )));
    };
    source.recorded = Some(evidence::recorded(&replay)?);
    Ok(())
}
