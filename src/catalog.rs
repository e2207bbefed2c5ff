//! The catalogue: architectures, the GPUs and processors that have them, and their matrix instructions.
//!
//! It is data: a file for each architecture in `catalog/`, embedded in the tool, in the form that
//! [`file`](mod@file) describes. A user adds an architecture with a file of the same form. Where the file says
//! which published algorithm an instruction follows, [published] makes a parameter sheet of it; the
//! sheets in `reports/` are made so, and are what [virtual devices](crate::device::sim) execute.

pub mod arithmetic;
pub mod coverage;
pub mod family;
pub mod file;
pub mod name;
pub mod published;

use std::path::Path;

pub use family::Family;
pub use file::CatalogError;

use serde::{Deserialize, Serialize};

use crate::device::apple;
use crate::sheet::{self, Sheet, SheetError};

/// The architectures that the tool knows.
#[derive(Clone, Debug)]
pub struct Catalog {
    architectures: Vec<Architecture>,
}

/// An architecture of GPUs, or of processors with a matrix unit.
#[derive(Clone, Debug)]
pub struct Architecture {
    /// Its short name: `cdna3`.
    pub name: String,
    /// Its name for people: `AMD CDNA3`.
    pub title: String,
    /// Who makes it.
    pub vendor: String,
    /// The ISA targets that name it; the first one is compiled for.
    pub targets: Vec<String>,
    /// The GPUs or processors that have it.
    pub gpus: Vec<Gpu>,
    /// Its instructions.
    pub families: Vec<Family>,
    /// What the vendor's assembler makes of instructions, if that has been looked at.
    pub assembled: Option<Assembled>,
    /// Its catalogue file, if the architecture is an embedded one.
    file: Option<&'static str>,
    /// The committed sheet, if the architecture is an embedded one.
    report: Option<&'static str>,
}

/// What an assembler makes of instructions: each of the architecture's is one machine instruction, the
/// family's [`isa`](Family::isa). Instructions of other architectures that it accepts as well, though
/// this one has no unit for them, are here.
///
/// Found with the script `kernels/cuda/check.sh`, which keeps it true.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assembled {
    /// The assembler and its version.
    pub by: String,
    /// What becomes a sequence of other instructions.
    #[serde(default)]
    pub expansions: Vec<Expansion>,
}

/// Instructions that an assembler expands.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Expansion {
    /// The machine instructions that compute, with how many there are of each.
    pub into: String,
    /// The instructions.
    pub names: Vec<String>,
}

/// A GPU, or a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its marketing name: `MI300X`.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// Its ISA target: `gfx942`.
    pub target: String,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub struct Found<'c> {
    /// The architecture.
    pub architecture: &'c Architecture,
    /// The GPU, if the name is one's.
    pub gpu: Option<&'c Gpu>,
}

macro_rules! embedded {
    ($($name:literal),+; without a sheet: $($bare:literal),+) => {
        [
            $((
                concat!("catalog/", $name, ".yaml"),
                include_str!(concat!("../catalog/", $name, ".yaml")),
                Some(include_str!(concat!("../reports/", $name, ".yaml"))),
            ),)+
            $((
                concat!("catalog/", $bare, ".yaml"),
                include_str!(concat!("../catalog/", $bare, ".yaml")),
                None,
            ),)+
        ]
    };
}

/// Path, catalogue file and sheet of each embedded architecture.
const EMBEDDED: [(&str, &str, Option<&str>); 12] = embedded!(
    "volta", "turing", "ampere", "ada", "hopper", "blackwell", "rtx_blackwell", "cdna1", "cdna2", "cdna3", "m1";
    without a sheet: "cdna4"
);

impl Catalog {
    /// The embedded architectures, in the order in which they came to market, by vendor.
    ///
    /// # Panics
    /// If an embedded file is malformed, which the tests rule out.
    pub fn embedded() -> Catalog {
        let architectures = EMBEDDED
            .iter()
            .map(|(path, text, report)| {
                let architecture = file::parse(text, Path::new(path));
                let architecture = architecture.unwrap_or_else(|error| panic!("embedded {error}"));
                Architecture { file: Some(text), report: *report, ..architecture }
            })
            .collect();
        Catalog { architectures }
    }

    /// Adds the architecture that a file describes, in place of one of the same name.
    ///
    /// # Errors
    /// If the file cannot be read or is malformed.
    pub fn add(&mut self, path: &Path) -> Result<(), CatalogError> {
        let architecture = file::load(path)?;
        self.architectures.retain(|other| other.name != architecture.name);
        // What the user adds goes before what is embedded.
        self.architectures.insert(0, architecture);
        Ok(())
    }

    /// The architectures.
    pub fn architectures(&self) -> &[Architecture] {
        &self.architectures
    }

    /// What a name stands for: an architecture, a GPU or an ISA target. Case, spaces, `-` and `_` do
    /// not matter.
    pub fn find(&self, name: &str) -> Option<Found<'_>> {
        let wanted = plain(name);
        let is = |other: &str| plain(other) == wanted;
        let by_name = self.architectures.iter().find(|architecture| is(&architecture.name));
        by_name.map(|architecture| Found { architecture, gpu: None }).or_else(|| {
            let mut gpus = self
                .architectures
                .iter()
                .flat_map(|architecture| architecture.gpus.iter().map(move |gpu| (architecture, gpu)));
            gpus.find(|(_, gpu)| gpu.names().any(is))
                .map(|(architecture, gpu)| Found { architecture, gpu: Some(gpu) })
                .or_else(|| {
                    let targets = |architecture: &&Architecture| architecture.targets.iter().any(|t| is(t));
                    let architecture = self.architectures.iter().find(targets)?;
                    Some(Found { architecture, gpu: None })
                })
        })
    }

    /// Names like one that is not known, the likest first.
    pub fn near(&self, name: &str) -> Vec<String> {
        let wanted = plain(name);
        let mut near: Vec<(f64, String)> = self
            .architectures
            .iter()
            .flat_map(|architecture| {
                let gpus = architecture.gpus.iter().flat_map(|gpu| gpu.names().map(plain));
                gpus.chain([architecture.name.clone()]).chain(architecture.targets.iter().cloned())
            })
            .map(|other| (strsim::jaro_winkler(&wanted, &plain(&other)), other))
            .filter(|(likeness, _)| *likeness > 0.8)
            .collect();
        near.sort_by(|(x, _), (y, _)| y.total_cmp(x));
        near.into_iter().map(|(_, name)| name).take(3).collect()
    }
}

impl Architecture {
    /// The parameter sheet: the committed one, or for a user's architecture the one that follows from
    /// its catalogue file; `None` if the file does not say what its instructions compute.
    ///
    /// # Errors
    /// If the committed sheet is malformed, which the tests rule out.
    pub fn sheet(&self) -> Result<Option<Sheet>, SheetError> {
        match self.report {
            Some(report) => {
                let path = format!("reports/{}.yaml", self.name);
                sheet::parse(report, Path::new(&path)).map(Some)
            }
            None => Ok(published::sheet(self)),
        }
    }

    /// The text of its catalogue file, if it is an embedded one.
    pub fn file(&self) -> Option<&'static str> {
        self.file
    }

    /// The names of its hypothetical variants, in the order of their first use.
    pub fn variants(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let published = self.families.iter().filter_map(|family| family.published.as_ref());
        for variant in published.flat_map(|published| &published.variants) {
            if !names.contains(&variant.name.as_str()) {
                names.push(&variant.name);
            }
        }
        names
    }

    /// Whether it is one of processors, whose unit the device `cpu` asks, and not of GPUs.
    pub fn is_of_processors(&self) -> bool {
        self.families.iter().any(|family| family.kernel == apple::KERNEL)
    }

    /// Whether there is a [sheet](Architecture::sheet).
    pub fn has_sheet(&self) -> bool {
        self.report.is_some() || self.families.iter().any(|family| family.published.is_some())
    }
}

impl Gpu {
    /// All its names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.aliases).map(String::as_str)
    }
}

impl Found<'_> {
    /// The GPU and its architecture, in words: `MI300X (AMD CDNA3, gfx942)`.
    pub fn describe(&self) -> String {
        let architecture = self.architecture;
        match self.gpu {
            Some(gpu) => format!("{} ({}, {})", gpu.name, architecture.title, gpu.target),
            None => format!("{} ({})", architecture.title, architecture.targets.join(", ")),
        }
    }
}

/// A name without what does not matter in it.
fn plain(name: &str) -> String {
    let matters = |c: &char| !matches!(c, ' ' | '-' | '_');
    name.chars().filter(matters).flat_map(char::to_lowercase).collect()
}
