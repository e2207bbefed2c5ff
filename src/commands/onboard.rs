//! `mmaprobe onboard`.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Failure, Outcome, open, print, report, width};
use crate::catalog::{Architecture, Catalog};
use crate::characterize::{Unfinished, characterize};
use crate::cli::Onboard;
use crate::device::record::Recorder;
use crate::device::replay::Replay;
use crate::device::{Device, Instruction};
use crate::generate::identifiers::CrateName;
use crate::generate::{GenerateError, Source, evidence, generate, write};
use crate::inference::Options;
use crate::onboard::check::{CheckError, Offered, Ready, check, ready, undescribed};
use crate::onboard::draft::{Basis, draft};
use crate::onboard::nearest::{Nearest, Relative, nearest};
use crate::onboard::trial::oddities;
use crate::output;
use crate::progress::Display;
use crate::report::report as pages;
use crate::sheet::table::counted;
use crate::sheet::{Sheet, yaml};

pub fn run(arguments: &Onboard, catalog: &Catalog) -> Result<Outcome, Failure> {
    let files = Files::new(arguments)?;
    let device =
        arguments.device.as_deref().map(|name| open::open(name, arguments.timeout, catalog)).transpose()?;
    let offered = device.as_ref().map(|device| device.instructions());
    let drafted = drafted(arguments, &files, catalog, offered.unwrap_or_default())?;
    let architecture = match described(arguments, &files) {
        // Nobody has had a chance to fill it in.
        Err(Failure::Check(blank @ CheckError::Blank { .. })) if drafted => {
            eprintln!("mmaprobe: {blank}");
            return Ok(Outcome::Held);
        }
        described => described?,
    };
    let ready = ready(&architecture, offered);
    print(&readiness(&architecture, &ready, offered))?;
    let Some(device) = device else {
        eprintln!("mmaprobe: next: the same command with --device D, to ask a device that offers them");
        return Ok(Outcome::Held);
    };
    let instructions: Vec<Instruction> = ready
        .into_iter()
        .filter_map(|own| match own.offered {
            Some(Offered::Yes(instruction)) => Some(*instruction),
            _ => None,
        })
        .collect();
    if instructions.is_empty() {
        return Err(Failure::Usage(format!(
            "{} offers none of the instructions that {} describes",
            device.identity().name,
            files.catalog.display()
        )));
    }
    files.check_results(arguments.force)?;
    print(&tried(device.as_ref(), &instructions)?)?;
    let sheet = found(arguments, &files, device, &instructions)?;
    leave(arguments, &files, sheet, catalog)
}

/// Where everything goes.
struct Files {
    catalog: PathBuf,
    recording: PathBuf,
    sheet: PathBuf,
    report: PathBuf,
    model: PathBuf,
    crate_name: CrateName,
}

impl Files {
    fn new(arguments: &Onboard) -> Result<Files, Failure> {
        let name = &arguments.name;
        let model = format!("{name}-model");
        let crate_name = CrateName::new(&model)
            .map_err(|problem| Failure::Usage(format!("no crate can be called '{model}': {problem}")))?;
        let folder = arguments.output.clone().unwrap_or_else(|| PathBuf::from(name));
        Ok(Files {
            catalog: folder.join("catalog.yaml"),
            recording: folder.join(format!("{name}.rec")),
            sheet: folder.join(format!("{name}.yaml")),
            report: folder.join("report"),
            model: folder.join(model),
            crate_name,
        })
    }

    /// Says before anything is asked that something is in the way of what is to be left.
    fn check_results(&self, force: bool) -> Result<(), Failure> {
        for path in [&self.recording, &self.sheet] {
            output::check(path, force).map_err(|error| cannot_write(path, &error))?;
        }
        write::check(&self.model, force)?;
        Ok(())
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("cannot write {}: {error}", path.display()))
}

/// Writes the catalogue file where there is none. Returns whether it did.
fn drafted(
    arguments: &Onboard,
    files: &Files,
    catalog: &Catalog,
    offered: &[Instruction],
) -> Result<bool, Failure> {
    let path = &files.catalog;
    if path.exists() {
        return Ok(false);
    }
    let (text, basis) = draft(&arguments.name, &arguments.isa, catalog, offered);
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    output::write(path, text.as_bytes(), false).map_err(|error| cannot_write(path, &error))?;
    let from = match basis {
        Basis::Catalogue => format!("with what the catalogue knows of {}", arguments.isa),
        Basis::Device => "with what the device offers".to_string(),
        Basis::Nothing => "with an example, as nothing is known of its instructions".to_string(),
    };
    eprintln!("mmaprobe: wrote {}, {from}", path.display());
    Ok(true)
}

/// The architecture as the catalogue file describes it.
fn described(arguments: &Onboard, files: &Files) -> Result<Architecture, Failure> {
    let path = &files.catalog;
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
    Ok(check(&text, path, &arguments.name, &arguments.isa)?)
}

/// What there is of the instructions, and what is missing: those alike together.
fn readiness(architecture: &Architecture, ready: &[Ready], offered: Option<&[Instruction]>) -> String {
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for own in ready {
        let here = match &own.missing {
            Some(missing) => format!("missing to ask a machine itself: {missing}"),
            None => "kernel and layout are here".to_string(),
        };
        let kind = match &own.offered {
            None => here,
            Some(Offered::Yes(_)) => format!("the device offers it; {here}"),
            Some(Offered::No) => format!("the device lacks it; {here}"),
            Some(Offered::Otherwise(how)) => format!("{how}; {here}"),
        };
        match kinds.iter_mut().find(|(other, _)| *other == kind) {
            Some((_, names)) => names.push(&own.name),
            None => kinds.push((kind, vec![&own.name])),
        }
    }
    let mut text =
        format!("{}: {} described\n", architecture.title, counted(ready.len() as u64, "instruction"));
    for (kind, names) in kinds {
        text += &indented(&several(&names), "  ");
        text += &indented(&kind, "    ");
    }
    let more = undescribed(architecture, offered.unwrap_or_default());
    if !more.is_empty() {
        let names: Vec<&str> = more.iter().map(|own| own.name.as_str()).collect();
        let text_of_more =
            format!("The device also offers, and the file does not describe: {}", several(&names));
        text += &indented(&text_of_more, "");
    }
    text
}

/// Names in a line, many cut short.
fn several(names: &[&str]) -> String {
    const SHOWN: usize = 3;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len() {
        ..=SHOWN => shown,
        many => format!("{shown} and {} more", many - SHOWN),
    }
}

/// A paragraph in lines that fit, further ones a little further right.
fn indented(text: &str, indent: &str) -> String {
    let further = format!("{indent}  ");
    let options = textwrap::Options::new(width())
        .initial_indent(indent)
        .subsequent_indent(&further)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options) + "\n"
}

/// What a first look at the instructions showed.
fn tried(device: &dyn Device, instructions: &[Instruction]) -> Result<String, Failure> {
    let mut text = "\nTried with ones and single products:\n".to_string();
    for instruction in instructions {
        let odd = oddities(device, instruction)?;
        let found = if odd.is_empty() { "as expected".to_string() } else { odd.join("; ") };
        text += &indented(&format!("{}: {found}", instruction.name), "  ");
    }
    Ok(text)
}

/// Characterises the instructions, and keeps every answer.
fn found(
    arguments: &Onboard,
    files: &Files,
    device: Box<dyn Device>,
    instructions: &[Instruction],
) -> Result<Sheet, Failure> {
    let device = Recorder::create(device, &files.recording, arguments.force)?;
    let options = Options { validate: arguments.thoroughness.validate, seed: arguments.thoroughness.seed };
    let display = Display::new();
    let result = characterize(&device, instructions, &options, arguments.thoroughness.date.clone(), &display)
        .map_err(|Unfinished { error, .. }| error)
        .and_then(|sheet| device.finish().map(|()| sheet));
    display.clear();
    result.map_err(|error| {
        eprintln!("mmaprobe: the answers so far are in {}", files.recording.display());
        error.into()
    })
}

/// Writes the sheet, the report and the crate, and tells of the nearest architecture.
fn leave(arguments: &Onboard, files: &Files, sheet: Sheet, catalog: &Catalog) -> Result<Outcome, Failure> {
    let text = yaml::write(&sheet);
    output::write(&files.sheet, text.as_bytes(), arguments.force)
        .map_err(|error| cannot_write(&files.sheet, &error))?;
    print(&comparison(nearest(&sheet, catalog)?, &sheet))?;
    let failed = super::characterize::summarize(&sheet, false);
    let recorded = evidence::recorded(&Replay::open(&files.recording)?)?;
    let sources = [Source { name: arguments.name.clone(), sheet, recorded: Some(recorded) }];
    report::write(&files.report, &pages(&sources, catalog)?, arguments.force)?;
    match generate(&files.crate_name, &sources) {
        Ok(crate_files) => {
            write(&files.model, &crate_files, arguments.force)?;
            eprintln!("mmaprobe: {} is a crate that computes what the sheet says", files.model.display());
        }
        // The sheet and its report say why.
        Err(nothing @ GenerateError::Nothing(_)) => eprintln!("mmaprobe: no crate: {nothing}"),
        Err(error) => return Err(error.into()),
    }
    for path in [&files.recording, &files.sheet, &files.report] {
        eprintln!("mmaprobe: left {}", path.display());
    }
    Ok(if failed { Outcome::Failed } else { Outcome::Held })
}

/// What was found, beside what is published of the nearest architecture.
fn comparison(nearest: Option<Nearest>, sheet: &Sheet) -> String {
    let mut text = "\nFound:\n".to_string();
    for entry in &sheet.instructions {
        // Of an algorithm without a name, the first note says what it is like.
        let algorithm = match (entry.algorithm.as_str(), entry.notes.first()) {
            ("unnamed", Some(note)) => note,
            (name, _) => name,
        };
        text += &indented(&format!("{}: {}. {algorithm}", entry.name, entry.status), "  ");
    }
    let Some(Nearest { architecture, relatives }) = nearest else {
        return text + "\nNothing of it can be compared with what is published.\n";
    };
    text += &format!("\nNearest of what is published: {architecture}\n");
    for Relative { instruction, nearest, algorithm, differences, nearer } in relatives {
        let but = if differences.is_empty() { ": the same" } else { ", but for (there → here)" };
        text += &indented(&format!("{instruction} is like {nearest}, {algorithm}{but}"), "  ");
        for difference in differences {
            text += &indented(&difference.to_string(), "    ");
        }
        if let Some((name, architecture)) = nearer {
            text += &indented(&format!("{name} of {architecture} is nearer still"), "    ");
        }
    }
    text
}
