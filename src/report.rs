//! From parameter sheets to reports that people read: Markdown for code hosts, and HTML pages that need
//! nothing beside themselves.
//!
//! [`report`] lays out each sheet as a [page], and several as an [overview], and writes both down as
//! [Markdown](markdown) and [HTML](html), in memory; the same sheets give the same bytes. What is drawn
//! follows from the sum trees alone: a [tree], and for each rule the [significands] that it aligns.

pub mod committed;
pub mod evidence;
pub mod html;
pub mod markdown;
pub mod overview;
pub mod page;
pub mod parameters;
pub mod significands;
pub mod special;
pub mod tree;

use std::collections::HashSet;

use crate::catalog::Catalog;
use crate::generate::{Files, GenerateError, Source};
use crate::sheet::ArithmeticError;
use overview::Overview;
use page::Page;

/// The name of the overview.
const OVERVIEW: &str = "index";

/// Why sheets make no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Two pages would have the same name.
    #[error("two pages would be called '{0}'; rename one of the sheets")]
    SameName(String),
    /// A sheet says what cannot be executed.
    #[error("{sheet}: instruction `{instruction}`: {error}")]
    Arithmetic {
        /// The sheet.
        sheet: String,
        /// The instruction.
        instruction: String,
        /// What is wrong.
        #[source]
        error: ArithmeticError,
    },
    /// A recording is of something else than the sheet.
    #[error(transparent)]
    Evidence(#[from] GenerateError),
}

/// The files of a report: for each sheet NAME.md and NAME.html, and for several index.md and index.html.
/// The catalogue tells in which order architectures came.
///
/// # Errors
/// If the sheets make no report; see [`ReportError`].
pub fn report(sources: &[Source], catalog: &Catalog) -> Result<Files, ReportError> {
    let several = sources.len() > 1;
    let mut names: HashSet<&str> = several.then_some(OVERVIEW).into_iter().collect();
    if let Some(twice) = sources.iter().find(|source| !names.insert(&source.name)) {
        return Err(ReportError::SameName(twice.name.clone()));
    }
    let mut files = Vec::new();
    for source in sources {
        let page = Page::new(source)?;
        let overview = |extension| several.then(|| format!("{OVERVIEW}.{extension}"));
        files.push((format!("{}.md", source.name), markdown::page(&page, overview("md").as_deref())));
        files.push((format!("{}.html", source.name), html::page(&page, overview("html").as_deref())));
    }
    if several {
        let overview = Overview::new(sources, catalog);
        files.push((format!("{OVERVIEW}.md"), markdown::overview(&overview)));
        files.push((format!("{OVERVIEW}.html"), html::overview(&overview)));
    }
    files.sort();
    Ok(files)
}

/// A file's name as part of an address.
fn address(name: &str) -> String {
    name.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => (byte as char).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}
