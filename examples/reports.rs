//! For maintainers: writes `reports/` anew from `catalog/` and from what was measured, and the table for
//! the README.
//!
//! ```text
//! cargo run --example reports
//! ```

use std::fs;
use std::path::Path;

use mmaprobe::catalog::{Catalog, coverage, published};
use mmaprobe::report::committed;
use mmaprobe::sheet;

fn main() -> std::io::Result<()> {
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    let catalog = Catalog::embedded();
    for architecture in catalog.architectures() {
        if let Some(sheet) = published::sheet(architecture) {
            fs::write(reports.join(format!("{}.yaml", architecture.name)), sheet::write(&sheet))?;
        }
    }
    for (path, text) in committed::pages(&catalog, &reports)? {
        fs::write(reports.join(path), text)?;
    }
    fs::write(reports.join("coverage.md"), coverage::markdown(&catalog))
}
