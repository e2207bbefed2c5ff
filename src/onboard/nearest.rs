//! Which published architecture computes most alike.
//!
//! Models are compared parameter by parameter, after inference and apart from it: it is told nothing of
//! this.

use crate::catalog::Catalog;
use crate::model::Model;
use crate::report::parameters::{Difference, Parameter, between, parameters};
use crate::sheet::{Entry, Sheet, SheetError};

/// The published architecture that a sheet is nearest to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The architecture, for people.
    pub architecture: String,
    /// Each instruction of the sheet that has a model, with its nearest relative there.
    pub relatives: Vec<Relative>,
}

/// The instruction of the architecture that computes most like one of the sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relative {
    /// The sheet's.
    pub instruction: String,
    /// The architecture's.
    pub nearest: String,
    /// Its algorithm.
    pub algorithm: String,
    /// What differs: the sheet's value second.
    pub differences: Vec<Difference>,
    /// An instruction of another architecture that is nearer still, with that architecture.
    pub nearer: Option<(String, String)>,
}

/// A published instruction.
struct Published {
    architecture: usize,
    entry: Entry,
    parameters: Vec<Parameter>,
}

/// Compares a sheet with all that is published; `None` if nothing of it can be compared.
///
/// # Errors
/// If a published sheet is malformed, which the tests rule out.
pub fn nearest(sheet: &Sheet, catalog: &Catalog) -> Result<Option<Nearest>, SheetError> {
    let architectures = catalog.architectures();
    let mut published = Vec::new();
    for (architecture, own) in architectures.iter().enumerate() {
        for entry in own.sheet()?.into_iter().flat_map(|sheet| sheet.instructions) {
            if let Some(model) = model(&entry) {
                published.push(Published { architecture, entry, parameters: parameters(&model) });
            }
        }
    }
    let found: Vec<(&Entry, Vec<Parameter>)> =
        sheet.instructions.iter().filter_map(|entry| Some((entry, parameters(&model(entry)?)))).collect();
    if found.is_empty() {
        return Ok(None);
    }
    // The nearest of each architecture to each instruction: its distance, and which it is.
    let best = |entry: &Entry, found: &[Parameter], architecture: usize| {
        let of_it = published.iter().filter(|own| own.architecture == architecture);
        of_it.map(|own| (distance(entry, found, own), own)).min_by_key(|(distance, _)| *distance)
    };
    let total = |architecture: usize| -> Option<usize> {
        found.iter().map(|(entry, own)| best(entry, own, architecture).map(|(distance, _)| distance)).sum()
    };
    let Some(nearest) = (0..architectures.len())
        .filter_map(|architecture| Some((total(architecture)?, architecture)))
        .min()
        .map(|(_, architecture)| architecture)
    else {
        return Ok(None);
    };
    let relatives = found.iter().filter_map(|(entry, found)| {
        let (own, relative) = best(entry, found, nearest)?;
        let others = (0..architectures.len()).filter_map(|architecture| best(entry, found, architecture));
        let nearer = others.min_by_key(|(distance, _)| *distance).filter(|(distance, _)| *distance < own);
        Some(Relative {
            instruction: entry.name.clone(),
            nearest: relative.entry.name.clone(),
            algorithm: relative.entry.algorithm.clone(),
            differences: told(between(&relative.parameters, found)),
            nearer: nearer.map(|(_, other)| {
                (other.entry.name.clone(), architectures[other.architecture].title.clone())
            }),
        })
    });
    let relatives = relatives.collect();
    Ok(Some(Nearest { architecture: architectures[nearest].title.clone(), relatives }))
}

/// The model of an entry, if that stands for something.
fn model(entry: &Entry) -> Option<Model> {
    let arithmetic = entry.arithmetic.as_ref().filter(|_| entry.status.is_executable())?;
    Model::try_from(arithmetic).ok()
}

/// What differences weigh: in what is added when, in alignment, in anything else, in formats.
const ORDER: usize = 80;
const ALIGNMENT: usize = 20;
const OTHER: usize = 10;
const FORMAT: usize = 1;

/// How much differs: what is added when counts most, then alignment, then all else; formats least.
fn distance(entry: &Entry, found: &[Parameter], published: &Published) -> usize {
    let differences = told(between(&published.parameters, found));
    let parameters: usize = differences
        .iter()
        .map(|difference| match difference.what.split(' ').next() {
            Some("summation") => ORDER,
            Some("alignment") => {
                ALIGNMENT + fraction_bits(&difference.one).abs_diff(fraction_bits(&difference.other))
            }
            _ => OTHER,
        })
        .sum();
    let (own, other) = (&entry.formats, &published.entry.formats);
    let pairs = [(own.a, other.a), (own.b, other.b), (own.c, other.c), (own.d, other.d)];
    parameters + FORMAT * pairs.into_iter().filter(|(one, other)| one != other).count()
}

/// The fraction bits that an alignment keeps of the first summand.
fn fraction_bits(alignment: &Option<String>) -> usize {
    let text = alignment.as_deref().and_then(|text| text.strip_prefix("F=")).unwrap_or_default();
    text.split(',').next().and_then(|bits| bits.parse().ok()).unwrap_or_default()
}

/// Differences without those that say nothing: sums of the same shape over more or fewer products, and
/// NaNs that are not known.
fn told(differences: Vec<Difference>) -> Vec<Difference> {
    let without_numbers = |text: &Option<String>| -> String {
        let text = text.as_deref().unwrap_or_default();
        text.chars().filter(|c| !c.is_ascii_digit()).collect()
    };
    differences
        .into_iter()
        .filter(|Difference { what, one, other }| match what.as_str() {
            "summation" => without_numbers(one) != without_numbers(other),
            "NaN results" => ![one, other].into_iter().any(|value| value.as_deref() == Some("unknown")),
            _ => true,
        })
        .collect()
}
