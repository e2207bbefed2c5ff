//! Several sheets beside each other: what each computes for the same formats, and what changed from one
//! to the next.

use std::collections::BTreeSet;

use crate::catalog::Catalog;
use crate::generate::Source;
use crate::markdown::printable;
use crate::model::Model;
use crate::report::page::listed;
use crate::report::parameters::{differences, once_each};
use crate::sheet::schema::Entry;
use crate::sheet::table::formats;

/// Several sheets.
pub struct Overview {
    /// Those that are compared with each other.
    pub lines: Vec<Lineage>,
}

/// Sheets of one vendor's architectures, or those of which that is not known.
pub struct Lineage {
    /// The vendor, if it is known.
    pub vendor: Option<String>,
    /// The sheets, in the order of the columns.
    pub sheets: Vec<Heading>,
    /// What they compute for the same formats.
    pub rows: Vec<Row>,
    /// What changed between neighbours that can be compared.
    pub changes: Vec<Change>,
}

/// A sheet.
pub struct Heading {
    /// The name of its page.
    pub name: String,
    /// Whose instructions these are.
    pub title: String,
    /// How many instructions it has.
    pub instructions: usize,
}

/// What sheets say for certain formats.
pub struct Row {
    /// The formats; several where all sheets say the same of them.
    pub formats: Vec<String>,
    /// For each sheet the algorithms, each with its K.
    pub cells: Vec<Vec<String>>,
}

impl Row {
    /// All formats but the first.
    pub fn others(&self) -> &[String] {
        &self.formats[1..]
    }
}

/// What changed from one sheet to another.
pub struct Change {
    /// The title of the earlier one.
    pub from: String,
    /// The title of the later one.
    pub to: String,
    /// Formats that came, and formats that went.
    pub came: Vec<String>,
    /// Formats that only the earlier one has.
    pub went: Vec<String>,
    /// Formats with the parameters that differ, in words.
    pub changed: Vec<(Vec<String>, Vec<String>)>,
    /// Formats of which the same is said.
    pub same: Vec<String>,
}

impl Change {
    /// Formats whose instructions did not change, came or went, by what became of them.
    pub fn others(&self) -> [(&'static str, &[String]); 3] {
        [("Unchanged", &self.same), ("New", &self.came), ("Gone", &self.went)]
    }
}

impl Overview {
    /// Compares sheets. Those of architectures of the catalogue come in its order, vendor by vendor; all
    /// others behind them, in the order given.
    pub fn new(sources: &[Source], catalog: &Catalog) -> Overview {
        let architectures = catalog.architectures();
        let known = |source: &Source| {
            architectures.iter().position(|architecture| architecture.name == source.sheet.device.name)
        };
        let mut sorted: Vec<&Source> = sources.iter().collect();
        sorted.sort_by_key(|source| known(source).unwrap_or(usize::MAX));
        let mut lines: Vec<(Option<&String>, Vec<&Source>)> = Vec::new();
        for source in sorted {
            let vendor = known(source).map(|index| &architectures[index].vendor);
            match lines.iter_mut().find(|(other, _)| *other == vendor) {
                Some((_, own)) => own.push(source),
                None => lines.push((vendor, vec![source])),
            }
        }
        let lines = lines.iter().map(|(vendor, own)| Lineage::new(vendor.cloned(), own));
        Overview { lines: lines.collect() }
    }
}

impl Lineage {
    fn new(vendor: Option<String>, sources: &[&Source]) -> Lineage {
        let mut rows: Vec<Row> = Vec::new();
        for key in once_each(sources.iter().flat_map(|source| listed(&source.sheet)).map(key)) {
            let cells: Vec<Vec<String>> = sources.iter().map(|source| cell(source, &key)).collect();
            match rows.iter_mut().find(|row| row.cells == cells) {
                Some(row) => row.formats.push(key),
                None => rows.push(Row { formats: vec![key], cells }),
            }
        }
        let sheets = sources.iter().map(|source| Heading {
            name: source.name.clone(),
            title: title(source),
            instructions: listed(&source.sheet).count(),
        });
        let changes = sources.windows(2).map(|pair| change(pair[0], pair[1]));
        Lineage { vendor, sheets: sheets.collect(), rows, changes: changes.collect() }
    }

    /// What it is called.
    pub fn title(&self) -> &str {
        self.vendor.as_deref().unwrap_or("Other sheets")
    }
}

fn title(source: &Source) -> String {
    printable(&source.sheet.device.description)
}

/// By this, instructions of different sheets are compared: formats and scales.
fn key(entry: &Entry) -> String {
    let scale =
        entry.scale.map_or(String::new(), |scale| format!(", {} scales of {}", scale.format, scale.block));
    formats(&entry.formats).replace('\n', " ") + &scale
}

/// The algorithms of a sheet for certain formats.
fn cell(source: &Source, wanted: &str) -> Vec<String> {
    let mut found: Vec<(&str, BTreeSet<usize>)> = Vec::new();
    for entry in listed(&source.sheet).filter(|entry| key(entry) == wanted) {
        // An instruction without a model has no algorithm to be told of.
        let algorithm = match &entry.arithmetic {
            Some(_) => entry.algorithm.as_str(),
            None => entry.status.name(),
        };
        match found.iter_mut().find(|(other, _)| *other == algorithm) {
            Some((_, all)) => _ = all.insert(entry.shape.k),
            None => found.push((algorithm, BTreeSet::from([entry.shape.k]))),
        }
    }
    let numbers = |all: BTreeSet<usize>| all.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    found
        .into_iter()
        .map(|(algorithm, all)| format!("{}, K\u{a0}=\u{a0}{}", printable(algorithm), numbers(all)))
        .collect()
}

/// The instruction of a sheet for certain formats that has most products, and its model.
fn largest(source: &Source, wanted: &str) -> Option<(String, Model)> {
    let entries = listed(&source.sheet).filter(|entry| key(entry) == wanted && entry.status.is_executable());
    // Of equally large ones the last, which is the newest where sheets follow the manuals.
    let entry = entries.filter(|entry| entry.arithmetic.is_some()).max_by_key(|entry| entry.shape.k)?;
    let model = Model::try_from(entry.arithmetic.as_ref()?).ok()?;
    Some((printable(&entry.algorithm), model))
}

fn change(earlier: &Source, later: &Source) -> Change {
    let keys = |source: &Source| once_each(listed(&source.sheet).map(key));
    let (before, after) = (keys(earlier), keys(later));
    let mut changed: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    let mut same = Vec::new();
    for key in before.iter().filter(|key| after.contains(key)) {
        let (Some((name, one)), Some((other_name, other))) = (largest(earlier, key), largest(later, key))
        else {
            continue;
        };
        let mut texts: Vec<String> = Vec::new();
        if name != other_name {
            texts.push(format!("algorithm: {name} → {other_name}"));
        }
        texts.extend(differences(&one, &other).iter().map(ToString::to_string));
        match changed.iter_mut().find(|(_, known)| *known == texts) {
            _ if texts.is_empty() => same.push(key.clone()),
            Some((keys, _)) => keys.push(key.clone()),
            None => changed.push((vec![key.clone()], texts)),
        }
    }
    let only = |those: &[String], these: &[String]| {
        those.iter().filter(|key| !these.contains(key)).cloned().collect()
    };
    Change {
        from: title(earlier),
        to: title(later),
        came: only(&after, &before),
        went: only(&before, &after),
        changed,
        same,
    }
}
