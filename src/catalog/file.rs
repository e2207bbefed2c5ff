//! Catalogue files.
//!
//! ```yaml
//! schema: mmaprobe-catalog/1
//! architecture: example            # its short name
//! title: Example E1                # its name for people
//! vendor: Example
//! targets: [gfx0000]               # ISA targets; the first is compiled for
//! source: where this was published
//! gpus:
//!   - {name: E100, target: gfx0000, aliases: [Example E100]}
//! types: {f32: fp32, fp8: e4m3}    # what the ISA calls formats, where the names differ
//! disputes: {}                     # see catalog/hopper.yaml
//! variants: {}                     # what no hardware is said to be; see catalog/cdna3.yaml
//! assembled: {by: ptxas 12.9.86, expansions: []}   # optional; see catalog/hopper.yaml
//! instructions:
//!   - kernel: mfma                 # what kind of kernel runs it
//!     name: v_mfma_{d}_{m}x{n}x{k}_{a}_{b}
//!     operands: {a: [fp8], b: [fp8], d: f32}   # every a with every b; c is as d
//!     scale: {format: ue8m0, block: 32}        # optional
//!     algorithm: {name: FDA, F: 25, out: rz23} # optional: without, there is no sheet
//!     nans: default                # optional: each NaN result is Arm's default NaN
//!     shapes:
//!       - {m: 16, n: 16, k: 32}
//!       - {m: 64, n: {from: 8, to: 256, step: 8}, k: 32}
//! ```
//!
//! `operands: {ab: [f16, bf16], …}` is for a and b of one type. Braces in `name` and in a shape's `isa`
//! (what the machine calls it; the name where it is left out) stand for `m`, `n`, `k`, `blocks`, the
//! types `a`, `b`, `c`, `d` (`A` … `D` in capitals), and `scale` and `block`.

use std::path::{Path, PathBuf};

use mmaprobe_model::Format;
use mmaprobe_model::algorithms::{Conventions, Types};
use mmaprobe_model::tree::Scale;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::catalog::arithmetic::{
    Alternative, Checked, DisputeText, Disputed, Nans, Parameters, Published, Stated, Variant, VariantText,
};
use crate::catalog::family::{Family, Range, Tile};
use crate::catalog::{Architecture, Assembled, Gpu, name};
use crate::device::simulated::check_fit;
use crate::sheet::ordered::Ordered;
use crate::sheet::schema::ScaleFacts;
use crate::sheet::spelling::Phrase;
use crate::sheet::yaml::{At, Position, locate, position_of, without_position};

/// The version of the schema that this tool reads.
pub const SCHEMA: &str = "mmaprobe-catalog/1";

/// A catalogue file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {problem}", .path.display(), .position.map(|at| at.to_string()).unwrap_or_default())]
pub struct CatalogError {
    /// The file.
    pub path: PathBuf,
    /// Where in the file, if it is anywhere in particular.
    pub position: Option<Position>,
    /// What is wrong.
    pub problem: CatalogProblem,
}

/// What is wrong with a catalogue file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogProblem {
    /// It cannot be opened or read.
    #[error("cannot be read: {0}")]
    File(String),
    /// It is no YAML, or not of a catalogue file's shape.
    #[error("{0}")]
    Malformed(String),
    /// It has another schema.
    #[error("the schema is `{0}`, and this tool reads `{SCHEMA}`")]
    Schema(String),
    /// A type that stands for no format.
    #[error("there is no type `{0}`; name it under `types`, or use a format's own name")]
    Type(String),
    /// Neither `ab`, nor both `a` and `b`.
    #[error("operands have either `ab`, or `a` and `b`")]
    Operands,
    /// A shape that makes no sense.
    #[error("{0}")]
    Shape(String),
    /// A name that cannot be filled in.
    #[error("{0}")]
    Name(String),
    /// Two instructions have the same name.
    #[error("two instructions are named `{0}`")]
    NameTaken(String),
    /// A dispute that is not described.
    #[error("there is no dispute `{0}`")]
    Dispute(String),
    /// A variant that is not described.
    #[error("there is no variant `{0}`")]
    Variant(String),
    /// An algorithm that does not exist, or not with these parameters, or not for these types.
    #[error("{0}")]
    Algorithm(String),
    /// Nothing is in it.
    #[error("there are no {0}")]
    Empty(&'static str),
}

#[derive(Deserialize)]
#[serde(expecting = "a catalogue file")]
struct Head {
    schema: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "schema")]
    _schema: String,
    architecture: String,
    title: String,
    vendor: String,
    targets: Vec<String>,
    source: String,
    #[serde(default)]
    gpus: Vec<GpuText>,
    #[serde(default)]
    types: Ordered<Phrase<Format>>,
    #[serde(default)]
    disputes: Ordered<DisputeText>,
    #[serde(default)]
    variants: Ordered<VariantText>,
    instructions: Vec<Group>,
    #[serde(default)]
    assembled: Option<Assembled>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GpuText {
    name: String,
    target: String,
    #[serde(default)]
    aliases: Vec<String>,
}

/// Instructions that differ in types and shapes alone.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    kernel: String,
    name: String,
    operands: Operands,
    #[serde(default)]
    scale: Option<ScaleFacts>,
    #[serde(default)]
    algorithm: Option<Parameters>,
    #[serde(default)]
    nans: Nans,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    checked: Checked,
    #[serde(default)]
    disputed: Vec<String>,
    #[serde(default)]
    variants: Vec<String>,
    shapes: Vec<Shape>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operands {
    #[serde(default)]
    ab: Vec<String>,
    #[serde(default)]
    a: Vec<String>,
    #[serde(default)]
    b: Vec<String>,
    #[serde(default)]
    c: Option<String>,
    d: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    #[serde(default)]
    m: Option<usize>,
    #[serde(default)]
    n: Option<Numbers>,
    k: usize,
    #[serde(default)]
    tiles: Vec<TileText>,
    #[serde(default)]
    blocks: Option<usize>,
    #[serde(default)]
    isa: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TileText {
    m: Vec<usize>,
    n: Numbers,
    cta_group: Option<u32>,
}

/// A number, or a range of them.
#[derive(Clone, Copy)]
struct Numbers(Range);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Numbers, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            from: usize,
            to: usize,
            step: usize,
        }

        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Numbers;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number, or from, to and step")
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Numbers, E> {
                let number = usize::try_from(number).map_err(E::custom)?;
                Ok(Numbers(Range { from: number, to: number, step: 1 }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Numbers, A::Error> {
                let Fields { from, to, step } = Fields::deserialize(MapAccessDeserializer::new(map))?;
                if step == 0 || from > to {
                    return Err(serde::de::Error::custom(format_args!(
                        "from {from} to {to} in steps of {step} is no range"
                    )));
                }
                Ok(Numbers(Range { from, to, step }))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// Reads a catalogue file.
///
/// # Errors
/// If the file cannot be read, or [`parse`] fails.
pub fn load(path: &Path) -> Result<Architecture, CatalogError> {
    let text = std::fs::read_to_string(path).map_err(|error| CatalogError {
        path: path.into(),
        position: None,
        problem: CatalogProblem::File(error.to_string()),
    })?;
    parse(&text, path)
}

/// Reads the text of a catalogue file; `path` is for errors.
///
/// # Errors
/// If the text is no catalogue file of this schema; with the position, where there is one.
pub fn parse(text: &str, path: &Path) -> Result<Architecture, CatalogError> {
    let error = |position, problem| CatalogError { path: path.into(), position, problem };
    let malformed = |found: serde_yaml::Error| {
        error(position_of(&found), CatalogProblem::Malformed(without_position(&found)))
    };
    let head: Head = serde_yaml::from_str(text).map_err(malformed)?;
    if head.schema != SCHEMA {
        return Err(error(locate(text, &[At::Key("schema")]), CatalogProblem::Schema(head.schema)));
    }
    let document: Document = serde_yaml::from_str(text).map_err(malformed)?;
    expand(document).map_err(|(way, problem)| error(locate(text, &way), problem))
}

/// A problem and the way to its place.
type Misplaced = (Vec<At>, CatalogProblem);

fn expand(document: Document) -> Result<Architecture, Misplaced> {
    let mut families: Vec<Family> = Vec::new();
    if document.targets.is_empty() {
        return Err((vec![At::Key("targets")], CatalogProblem::Empty("targets")));
    }
    for (index, group) in document.instructions.iter().enumerate() {
        let here = |within: Vec<At>| {
            let mut way = vec![At::Key("instructions"), At::Index(index)];
            way.extend(within);
            way
        };
        for (place, shape) in group.shapes.iter().enumerate() {
            let expanded =
                expand_shape(&document, group, shape).map_err(|(within, problem)| match within {
                    Within::Shape => (here(vec![At::Key("shapes"), At::Index(place)]), problem),
                    Within::Group(key) => (here(vec![At::Key(key)]), problem),
                })?;
            for family in expanded {
                let (m, n) = family.smallest();
                let name = family.name(m, n);
                if families.iter().any(|other| other.named(&name).is_some()) {
                    return Err((here(vec![At::Key("name")]), CatalogProblem::NameTaken(name)));
                }
                families.push(family);
            }
        }
    }
    if families.is_empty() {
        return Err((vec![At::Key("instructions")], CatalogProblem::Empty("instructions")));
    }
    let Document { architecture, title, vendor, targets, gpus, assembled, .. } = document;
    let gpus = gpus.into_iter().map(|GpuText { name, target, aliases }| Gpu { name, aliases, target });
    Ok(Architecture {
        name: architecture,
        title,
        vendor,
        targets,
        gpus: gpus.collect(),
        families,
        assembled,
        file: None,
        report: None,
    })
}

/// Where in a group a problem is.
enum Within {
    /// In the shape at hand.
    Shape,
    /// In a field of the group.
    Group(&'static str),
}

fn expand_shape(
    document: &Document,
    group: &Group,
    shape: &Shape,
) -> Result<Vec<Family>, (Within, CatalogProblem)> {
    let operands = |problem| (Within::Group("operands"), problem);
    let Operands { ab, a, b, c, d } = &group.operands;
    let pairs: Vec<(&str, &str)> = match (&ab[..], &a[..], &b[..]) {
        ([_, ..], [], []) => ab.iter().map(|ab| (ab.as_str(), ab.as_str())).collect(),
        ([], [_, ..], [_, ..]) => {
            a.iter().flat_map(|a| b.iter().map(move |b| (a.as_str(), b.as_str()))).collect()
        }
        _ => return Err(operands(CatalogProblem::Operands)),
    };
    let c = c.as_ref().unwrap_or(d);
    let format = |name: &str| {
        let named = document.types.position(name).map(|index| document.types.0[index].1.0);
        named
            .or_else(|| Format::named(name))
            .filter(|format| format.signed)
            .ok_or_else(|| operands(CatalogProblem::Type(name.to_string())))
    };
    let tiles = tiles(shape).map_err(|problem| (Within::Shape, CatalogProblem::Shape(problem)))?;
    let (m, n) = (fixed(tiles.iter().flat_map(|tile| tile.m.iter().copied())), fixed_n(&tiles));
    let blocks = shape.blocks.unwrap_or(1);
    pairs
        .into_iter()
        .map(|(a, b)| {
            let value = |word: &str| {
                let number = |number: Option<usize>, word: &str| {
                    Some(number.map_or_else(|| format!("{{{word}}}"), |number| number.to_string()))
                };
                match word {
                    "m" => number(m, "m"),
                    "n" => number(n, "n"),
                    "k" => Some(shape.k.to_string()),
                    "blocks" => Some(blocks.to_string()),
                    "a" => Some(a.to_string()),
                    "b" => Some(b.to_string()),
                    "c" => Some(c.clone()),
                    "d" => Some(d.clone()),
                    "A" => Some(a.to_uppercase()),
                    "B" => Some(b.to_uppercase()),
                    "C" => Some(c.to_uppercase()),
                    "D" => Some(d.to_uppercase()),
                    "scale" => group.scale.map(|scale| scale.format.to_string()),
                    "block" => group.scale.map(|scale| scale.block.to_string()),
                    _ => None,
                }
            };
            let pattern = name::fill(&group.name, value)
                .map_err(|problem| (Within::Group("name"), CatalogProblem::Name(problem)))?;
            let isa = shape.isa.as_ref().map_or_else(|| Ok(pattern.clone()), |isa| name::fill(isa, value));
            let isa = isa.map_err(|problem| (Within::Shape, CatalogProblem::Name(problem)))?;
            let types = Types {
                a: format(a)?,
                b: format(b)?,
                c: format(c)?,
                d: format(d)?,
                k: shape.k,
                scale: group.scale.map(Scale::from),
            };
            let published = published(document, group, &types)?;
            let family = Family {
                kernel: group.kernel.clone(),
                pattern,
                isa,
                types,
                tiles: tiles.clone(),
                blocks,
                published,
            };
            check_shapes(&family)?;
            Ok(family)
        })
        .collect()
}

/// Checks that names tell shapes apart, and that each shape makes sense.
fn check_shapes(family: &Family) -> Result<(), (Within, CatalogProblem)> {
    for (free, word) in [
        (fixed(family.tiles.iter().flat_map(|tile| tile.m.iter().copied())).is_none(), "{m}"),
        (fixed_n(&family.tiles).is_none(), "{n}"),
    ] {
        if free && !family.pattern.contains(word) {
            let problem = format!("`{}` says nothing about {word}, which can be several", family.pattern);
            return Err((Within::Group("name"), CatalogProblem::Name(problem)));
        }
    }
    let shapes =
        family.tiles.iter().flat_map(|tile| tile.m.iter().flat_map(|&m| [(m, tile.n.from), (m, tile.n.to)]));
    for (m, n) in shapes {
        check_fit(&family.instruction(m, n), None)
            .map_err(|misfit| (Within::Shape, CatalogProblem::Shape(misfit.to_string())))?;
    }
    Ok(())
}

fn published(
    document: &Document,
    group: &Group,
    types: &Types,
) -> Result<Option<Published>, (Within, CatalogProblem)> {
    let wrong = |problem: String| (Within::Group("algorithm"), CatalogProblem::Algorithm(problem));
    let Some(parameters) = &group.algorithm else {
        return match group.disputed.is_empty() {
            true => Ok(None),
            false => Err((
                Within::Group("disputed"),
                CatalogProblem::Algorithm("without an algorithm there is nothing to dispute".to_string()),
            )),
        };
    };
    let algorithm = Stated::try_from(parameters).map_err(wrong)?;
    algorithm.model(types, &Conventions::DEFAULT).map_err(|error| wrong(error.to_string()))?;
    let disputes = group.disputed.iter().map(|key| {
        let unknown = || (Within::Group("disputed"), CatalogProblem::Dispute(key.clone()));
        let (_, dispute) = &document.disputes.0[document.disputes.position(key).ok_or_else(unknown)?];
        let in_dispute = |problem: String| {
            (Within::Group("disputed"), CatalogProblem::Algorithm(format!("dispute `{key}`: {problem}")))
        };
        let alternative = Alternative::of(algorithm, &dispute.change).map_err(in_dispute)?;
        alternative.model(types).map_err(|error| in_dispute(error.to_string()))?;
        let name = dispute.name.as_ref().unwrap_or(key).clone();
        Ok(Disputed { name, dispute: dispute.clone(), alternative })
    });
    let variants = group.variants.iter().map(|key| {
        let at = Within::Group("variants");
        let Some(index) = document.variants.position(key) else {
            return Err((at, CatalogProblem::Variant(key.clone())));
        };
        let VariantText { statement, source, change } = document.variants.0[index].1.clone();
        let wrong = |problem: String| CatalogProblem::Algorithm(format!("variant `{key}`: {problem}"));
        let alternative = Alternative::of(algorithm, &change).and_then(|alternative| {
            alternative.model(types).map(|_| alternative).map_err(|error| error.to_string())
        });
        let alternative = alternative.map_err(|problem| (at, wrong(problem)))?;
        Ok(Variant { name: key.clone(), statement, source, alternative })
    });
    Ok(Some(Published {
        algorithm,
        nans: group.nans,
        source: group.source.as_ref().unwrap_or(&document.source).clone(),
        checked: group.checked,
        disputes: disputes.collect::<Result<_, _>>()?,
        variants: variants.collect::<Result<_, _>>()?,
    }))
}

/// The shapes, in either of the two ways to write them.
fn tiles(shape: &Shape) -> Result<Vec<Tile>, String> {
    match (shape.m, shape.n, &shape.tiles[..]) {
        (Some(m), Some(n), []) => Ok(vec![Tile { m: vec![m], n: n.0, cta_group: None }]),
        (None, None, [_, ..]) => {
            let tile = |tile: &TileText| match tile.m.is_empty() {
                true => Err("a tile has no m".to_string()),
                false => Ok(Tile { m: tile.m.clone(), n: tile.n.0, cta_group: tile.cta_group }),
            };
            shape.tiles.iter().map(tile).collect()
        }
        _ => Err("a shape has either `m` and `n`, or `tiles`".to_string()),
    }
}

/// The number, if all are the same.
fn fixed(mut numbers: impl Iterator<Item = usize>) -> Option<usize> {
    let first = numbers.next()?;
    numbers.all(|other| other == first).then_some(first)
}

fn fixed_n(tiles: &[Tile]) -> Option<usize> {
    fixed(tiles.iter().flat_map(|tile| [tile.n.from, tile.n.to]))
}
