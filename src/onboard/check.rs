//! What is wrong with a catalogue file, and what is missing around it: a kernel, a layout, an instruction
//! that the device does not offer.

use std::path::{Path, PathBuf};

use mmaprobe_kernels::cuda::{Kind, layout};

use crate::catalog::{Architecture, CatalogError, Family, file};
use crate::device::{Instruction, apple};
use crate::onboard::draft::{BLANK, EXTERNAL};

/// A catalogue file that cannot be onboarded.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Somebody has to fill something in.
    #[error(
        "{}: fill in what is {BLANK} in {}, then run the same command again",
        .path.display(), numbered(.lines)
    )]
    Blank {
        /// The file.
        path: PathBuf,
        /// The lines, counted from 1.
        lines: Vec<usize>,
    },
    /// It is malformed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// It describes another architecture.
    #[error("{}: it describes the architecture `{found}`, and `{wanted}` is asked for", .path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// The architecture that it describes.
        found: String,
        /// The one that is asked for.
        wanted: String,
    },
    /// It does not have the target.
    #[error("{}: its targets are {}, and `{wanted}` is asked for", .path.display(), .found.join(", "))]
    Target {
        /// The file.
        path: PathBuf,
        /// Its targets.
        found: Vec<String>,
        /// The one that is asked for.
        wanted: String,
    },
}

fn numbered(lines: &[usize]) -> String {
    let numbers: Vec<String> = lines.iter().map(usize::to_string).collect();
    format!("line{} {}", if lines.len() == 1 { "" } else { "s" }, numbers.join(", "))
}

/// Checks the text of a catalogue file; `path` is for errors.
///
/// # Errors
/// If something is left to fill in, or it is malformed, or of another architecture.
pub fn check(text: &str, path: &Path, name: &str, isa: &str) -> Result<Architecture, CheckError> {
    let is_blank = |(_, line): &(usize, &str)| {
        // What stands in a comment is for people.
        line.split(" #").next().is_some_and(|line| !line.starts_with('#') && line.contains(BLANK))
    };
    let blank: Vec<usize> = (1..).zip(text.lines()).filter(is_blank).map(|(number, _)| number).collect();
    let path = path.to_path_buf();
    if !blank.is_empty() {
        return Err(CheckError::Blank { path, lines: blank });
    }
    let architecture = file::parse(text, &path)?;
    if architecture.name != name {
        return Err(CheckError::Name { path, found: architecture.name, wanted: name.to_string() });
    }
    if !architecture.targets.iter().any(|target| target == isa) {
        return Err(CheckError::Target { path, found: architecture.targets, wanted: isa.to_string() });
    }
    Ok(architecture)
}

/// An instruction of the file, and what there is of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Its name, in its smallest shape.
    pub name: String,
    /// What kind of kernel it needs.
    pub kernel: String,
    /// What is missing to run it here; nothing if a kernel does, and knows where elements are.
    pub missing: Option<String>,
    /// What the device says of it; `None` without a device.
    pub offered: Option<Offered>,
}

/// What a device says of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It offers it as the file describes it.
    Yes(Box<Instruction>),
    /// It does not.
    No,
    /// It offers one of that name that has other shapes or formats.
    Otherwise(String),
}

/// What there is of each instruction of an architecture. `offered` is what a device offers, if there is one.
pub fn ready(architecture: &Architecture, offered: Option<&[Instruction]>) -> Vec<Ready> {
    let families = architecture.families.iter();
    families
        .map(|family| {
            let (m, n) = family.smallest();
            Ready {
                name: family.name(m, n),
                kernel: family.kernel.clone(),
                missing: missing(family),
                offered: offered.map(|offered| of_device(family, offered)),
            }
        })
        .collect()
}

/// The instructions of a device that the file does not describe.
pub fn undescribed<'d>(architecture: &Architecture, offered: &'d [Instruction]) -> Vec<&'d Instruction> {
    let is_described =
        |own: &&Instruction| architecture.families.iter().any(|family| family.named(&own.name).is_some());
    offered.iter().filter(|own| !is_described(own)).collect()
}

/// What is missing to run an instruction on a device of this machine.
fn missing(family: &Family) -> Option<String> {
    if family.kernel == apple::KERNEL {
        return None;
    }
    let (m, n) = family.smallest();
    match (Kind::named(&family.kernel), family.cuda_spec(m, n)) {
        (Some(_), Some(spec)) => layout::fragments(&spec).err().map(|unsupported| unsupported.why),
        _ if family.kernel == EXTERNAL => Some("a kernel, and with it the layout".to_string()),
        _ => Some(format!("a kernel `{}`, and with it the layout", family.kernel)),
    }
}

fn of_device(family: &Family, offered: &[Instruction]) -> Offered {
    for own in offered {
        match family.named(&own.name) {
            None => {}
            Some(Err(no_such_shape)) => return Offered::Otherwise(no_such_shape.to_string()),
            // A mode is the machine's, and no catalogue describes it.
            Some(Ok(described)) if described == (Instruction { mode_of: None, ..own.clone() }) => {
                return Offered::Yes(Box::new(own.clone()));
            }
            Some(Ok(described)) => return Offered::Otherwise(difference(&described, own)),
        }
    }
    Offered::No
}

/// How what a device offers differs from what a file describes.
fn difference(described: &Instruction, offered: &Instruction) -> String {
    let words = |i: &Instruction| {
        let scale =
            i.scale.map_or(String::new(), |scale| format!(", {} scales of {}", scale.format, scale.block));
        format!("{}×{}×{} of {}·{} + {} → {}{scale}", i.m, i.n, i.k, i.a, i.b, i.c, i.d)
    };
    format!("the device has {}, the file {}", words(offered), words(described))
}
