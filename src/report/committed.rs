//! The pages that are kept in `reports/`: of the catalogue's sheets, and of what was measured.

use std::fs;
use std::io;
use std::path::Path;

use crate::catalog::{Catalog, published};
use crate::device::replay::Replay;
use crate::generate::{Files, Source, evidence};
use crate::report::report;
use crate::sheet;

/// The files of the pages, by their paths in `folder`, which is `reports/` of the sources: those of the
/// catalogue's sheets with an overview, and in `measured/` one of each sheet with its recording.
///
/// # Errors
/// If what was measured cannot be read, or makes no report.
pub fn pages(catalog: &Catalog, folder: &Path) -> io::Result<Files> {
    let sheets = catalog.architectures().iter().filter_map(published::sheet);
    let sources: Vec<Source> =
        sheets.map(|sheet| Source { name: sheet.device.name.clone(), sheet, recorded: None }).collect();
    let mut files = report(&sources, catalog).map_err(io::Error::other)?;
    let mut measured: Vec<_> =
        fs::read_dir(folder.join("measured"))?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    measured.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    measured.sort();
    for path in measured {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let sheet = sheet::load(&path).map_err(io::Error::other)?;
        let replay = Replay::open(path.with_extension("rec")).map_err(io::Error::other)?;
        let recorded = Some(evidence::recorded(&replay).map_err(io::Error::other)?);
        let pages = report(&[Source { name, sheet, recorded }], catalog).map_err(io::Error::other)?;
        files.extend(pages.into_iter().map(|(name, text)| (format!("measured/{name}"), text)));
    }
    Ok(files)
}
