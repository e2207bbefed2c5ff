//! The commands: thin, from arguments to the library and from its results to stdout.

mod battery;
mod bias;
mod characterize;
mod completions;
mod devices;
mod diff;
mod explain;
mod generate;
mod instructions;
mod layout;
mod man;
mod onboard;
mod open;
mod pairs;
mod report;
mod selftest;
mod show;
mod simulate;
mod smt;
mod sources;
mod throughput;
mod validate;
mod vectors;

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use crate::catalog::{Catalog, CatalogError};
use crate::cli::{Cli, Command, Output, Threads};
use crate::device::sheet::OpenError;
use crate::device::sim::SimError;
use crate::device::{Device, DeviceError, Fault, Instruction, listing};
use crate::generate::{GenerateError, WriteError};
use crate::onboard::check::CheckError;
use crate::report::ReportError;
use crate::sheet::SheetError;
use crate::smt::query::QueryError;

/// How a command ended that did what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What was claimed held.
    Held,
    /// A comparison failed.
    Failed,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        match outcome {
            Outcome::Held => ExitCode::SUCCESS,
            Outcome::Failed => ExitCode::from(1),
        }
    }
}

/// Why a command could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The arguments make no sense together or with what is there.
    #[error("{0}")]
    Usage(String),
    /// A sheet cannot be used.
    #[error(transparent)]
    Sheet(#[from] SheetError),
    /// A catalogue file cannot be used.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Sheets make no crate.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// Sheets make no report.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A crate cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A solver could not be asked.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A catalogue file cannot be onboarded.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// Output could not be written.
    #[error("cannot write the output: {0}")]
    Output(std::io::Error),
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        match error {
            OpenError::Sheet(error) => error.into(),
            OpenError::Device(error) => error.into(),
        }
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        match error {
            SimError::Open(error) => error.into(),
            error => Failure::Usage(error.to_string()),
        }
    }
}

impl Failure {
    /// 2 for usage and bad input, 3 for devices.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_)
            | Failure::Sheet(_)
            | Failure::Catalog(_)
            | Failure::Generate(_)
            | Failure::Query(_)
            | Failure::Report(_)
            | Failure::Check(_)
            | Failure::Write(_) => ExitCode::from(2),
            // The file is to blame, not the device.
            Failure::Device(DeviceError { fault: Fault::Recording(_), .. }) => ExitCode::from(2),
            Failure::Device(_) => ExitCode::from(3),
            // Nobody reads any more: the command did what it could.
            Failure::Output(_) if self.is_closed_pipe() => ExitCode::SUCCESS,
            Failure::Output(_) => ExitCode::from(2),
        }
    }

    /// Whether the reader of stdout has gone.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

/// Runs a command.
///
/// # Errors
/// If it cannot do what it was asked; see [`Failure`].
pub fn run(cli: Cli) -> Result<Outcome, Failure> {
    let is_throughput = matches!(cli.command, Command::Throughput(_));
    if let Some(Threads { from, to }) = cli.threads
        && from != to
        && !is_throughput
    {
        return Err(Failure::Usage(format!("--threads {from}-{to}: only throughput takes several numbers")));
    }
    if let Some(Threads { from: threads, .. }) = cli.threads.filter(|_| !is_throughput) {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.into())
            .build_global()
            .map_err(|error| Failure::Usage(format!("cannot start {threads} threads: {error}")))?;
    }
    let mut catalog = Catalog::embedded();
    for path in &cli.catalog {
        catalog.add(path)?;
    }
    let output = cli.format;
    let prints_no_table = matches!(
        cli.command,
        Command::Characterize(_)
            | Command::Generate(_)
            | Command::Report(_)
            | Command::Onboard(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Simulate(_)
            | Command::Smt(_)
    );
    if output == Output::Markdown && !matches!(cli.command, Command::Battery(_)) {
        return Err(Failure::Usage("--format markdown: only battery prints Markdown".to_string()));
    }
    if output == Output::Json && prints_no_table {
        return Err(Failure::Usage("--format json: this command prints no table".to_string()));
    }
    match cli.command {
        Command::Devices => devices::run(output, &catalog),
        Command::Instructions(arguments) => instructions::run(&arguments, output, &catalog),
        Command::Characterize(arguments) => characterize::run(&arguments, &catalog),
        Command::Battery(arguments) => battery::run(&arguments, output, &catalog),
        Command::Smt(arguments) => smt::run(&arguments, &catalog),
        Command::Selftest(arguments) => selftest::run(&arguments, output),
        Command::Explain(arguments) => explain::run(&arguments, output, &catalog),
        Command::Bias(arguments) => bias::run(&arguments, output, &catalog),
        Command::Diff(arguments) => diff::run(&arguments, output, &catalog),
        Command::Layout(arguments) => layout::run(&arguments, output, &catalog),
        Command::Show(arguments) => show::run(&arguments, output),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Report(arguments) => report::run(&arguments, &catalog),
        Command::Onboard(arguments) => onboard::run(&arguments, &catalog),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments, &catalog),
        Command::Throughput(arguments) => throughput::run(&arguments, cli.threads, output, &catalog),
        Command::Validate(arguments) => match &arguments.vectors[..] {
            [] => validate::run(&arguments, output, &catalog),
            files => vectors::run(&arguments, files, output, &catalog),
        },
    }
}

/// Writes to stdout.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::Output)
}

/// Writes JSON to stdout.
fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(value).expect("strings, numbers and lists have a JSON form");
    print(&(json + "\n"))
}

/// The width that tables may take.
fn width() -> usize {
    console::Term::stdout().size_checked().map_or(80, |(_, columns)| usize::from(columns).clamp(60, 80))
}

/// The instructions of a device whose names match a glob; all listed ones without a glob. A name without
/// `*` and `?` can also be one that the device takes and does not list.
fn select(device: &dyn Device, glob: Option<&str>) -> Result<Vec<Instruction>, Failure> {
    if device.instructions().is_empty() {
        let name = &device.identity().name;
        return Err(Failure::Usage(format!("{name} offers no instruction: it knows the arithmetic of none")));
    }
    let Some(glob) = glob else {
        return Ok(device.instructions().to_vec());
    };
    let pattern = glob::Pattern::new(glob)
        .map_err(|error| Failure::Usage(format!("--instruction '{glob}' is no pattern: {error}")))?;
    let listed = device.instructions().iter();
    let selected: Vec<Instruction> = listed.filter(|i| pattern.matches(&i.name)).cloned().collect();
    if !selected.is_empty() {
        return Ok(selected);
    }
    if glob.contains(['*', '?', '[']) {
        return Err(Failure::Usage(format!("no instruction matches '{glob}'; {}", listing(device))));
    }
    device.instruction(glob).map(|instruction| vec![instruction]).map_err(Failure::Usage)
}

/// The names of instructions, for people.
fn names(instructions: &[Instruction]) -> String {
    let names: Vec<&str> = instructions.iter().map(|i| i.name.as_str()).collect();
    names.join(", ")
}
