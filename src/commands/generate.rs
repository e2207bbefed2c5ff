//! `mmaprobe generate`.

use std::path::Path;

use super::{Failure, Outcome};
use crate::cli::Generate;
use crate::device::Device;
use crate::device::replay::Replay;
use crate::generate::identifiers::CrateName;
use crate::generate::{Source, evidence, generate, write};
use crate::sheet;

pub fn run(arguments: &Generate) -> Result<Outcome, Failure> {
    let name = crate_name(&arguments.output)?;
    write::check(&arguments.output, arguments.force)?;
    let mut sources = Vec::new();
    for path in &arguments.sheets {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("sheet").to_string();
        sources.push(Source { name, sheet: sheet::load(path)?, recorded: None });
    }
    for path in &arguments.evidence {
        add_evidence(&mut sources, path)?;
    }
    let files = generate(&name, &sources)?;
    write::write(&arguments.output, &files, arguments.force)?;
    for source in &sources {
        let without = match source.recorded {
            Some(_) => "with its recorded answers as tests",
            None => "without recorded answers (--evidence): its tests only show agreement with this tool",
        };
        eprintln!("mmaprobe: {}: {without}", source.name);
    }
    eprintln!("mmaprobe: {} is a crate named {}", arguments.output.display(), name.package());
    Ok(Outcome::Held)
}

/// The crate is called as its folder is.
fn crate_name(folder: &Path) -> Result<CrateName, Failure> {
    let last = folder.file_name().and_then(|name| name.to_str()).map(str::to_string);
    // `.` and `..` have no last part of their own.
    let last = last.or_else(|| Some(folder.canonicalize().ok()?.file_name()?.to_str()?.to_string()));
    let last = last.unwrap_or_default();
    CrateName::new(&last)
        .map_err(|problem| Failure::Usage(format!("-o: no crate can be called '{last}': {problem}")))
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
