//! The command line: what can be said, and the help for it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Finds out what a matrix unit actually computes, bit for bit.
#[derive(Debug, Parser)]
#[command(name = "mmaprobe", version, about, after_help = EXIT_CODES, max_term_width = 80)]
pub struct Cli {
    /// Threads to use; all cores by default. Results do not depend on it.
    #[arg(long, global = true, display_order = 100, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 what was claimed held; 1 a comparison failed (mismatch, refuted,
unexplained, no function; ambiguous with --strict); 2 usage or bad input; 3 the
device failed. Data goes to stdout, everything for people to stderr.";

/// Far more than anybody waits for, and few enough to count without overflow.
const MOST: u64 = 1_000_000_000_000;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List what can be probed here
    Devices,
    /// List the instructions of a device
    #[command(after_help = "Example: mmaprobe instructions --device cpu")]
    Instructions(Instructions),
    /// Find out what a device's instructions compute; the sheet goes to stdout
    #[command(after_help = "\
Examples:
  mmaprobe characterize --device cpu > cpu.yaml
  mmaprobe characterize --device \"exec:python3 examples/device.py\" > dot4.yaml

Record every answer; with the same options, the recording gives the same sheet:
  mmaprobe characterize --device cpu --record cpu.rec > cpu.yaml
  mmaprobe characterize --device replay:cpu.rec > again.yaml")]
    Characterize(Characterize),
    /// Print a parameter sheet as tables
    #[command(after_help = "Example: mmaprobe show cpu.yaml --tree")]
    Show(Show),
    /// Compare two devices bit for bit on random matrices
    #[command(after_help = "\
Examples:
  mmaprobe validate --device cpu --against sheet:cpu.yaml --seed 7
  mmaprobe validate --device cpu --against sheet:cpu.yaml \\
      --instruction 'vfma*' --sets 100000000")]
    Validate(Validate),
}

/// `instructions`.
#[derive(Debug, Args)]
pub struct Instructions {
    /// The device
    #[command(flatten)]
    pub device: DeviceArgument,
}

/// Which device, and how patiently.
#[derive(Debug, Args)]
pub struct DeviceArgument {
    /// cpu, exec:COMMAND, sheet:FILE or replay:FILE
    #[arg(long, value_name = "D")]
    pub device: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub timeout: Timeout,
}

/// How long an external device may say nothing.
#[derive(Clone, Copy, Debug, Args)]
pub struct Timeout {
    /// Seconds that an external device may say nothing
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    pub device_timeout: f64,
}

/// `characterize`.
#[derive(Debug, Args)]
pub struct Characterize {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub device: DeviceArgument,
    /// Only instructions whose name matches, with * and ?
    #[arg(long, value_name = "GLOB")]
    pub instruction: Option<String>,
    /// Random dot-adds to validate each instruction on; 0 for none
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(..=MOST))]
    pub validate: u64,
    /// Seed of everything random
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Date to write into the sheet
    #[arg(long, value_name = "DATE")]
    pub date: Option<String>,
    /// Exit with 1 if anything stays ambiguous
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub record: Record,
}

/// `--record`.
#[derive(Debug, Args)]
pub struct Record {
    /// Record every question and answer in this file
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Overwrite an existing recording
    #[arg(long, requires = "record")]
    pub force: bool,
}

/// `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The parameter sheet
    pub sheet: PathBuf,
    /// Draw the summation trees
    #[arg(long)]
    pub tree: bool,
}

/// `validate`.
#[derive(Debug, Args)]
pub struct Validate {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub device: DeviceArgument,
    /// The other device
    #[arg(long, value_name = "D2")]
    pub against: String,
    /// Only instructions whose name matches, with * and ?
    #[arg(long, value_name = "GLOB")]
    pub instruction: Option<String>,
    /// Random matrix sets for each instruction
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=MOST))]
    pub sets: u64,
    /// Seed of the random matrices
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Take all NaNs for the same
    #[arg(long)]
    pub any_nan: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub record: Record,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("a number of seconds above 0 is expected".to_string()),
    }
}
