//! The command line: what can be said, and the help for it.

mod compare;
mod proofs;

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use compare::{Bias, Diff, Explain, TwoDevices};

use crate::selftest::Which;
use proofs::BATTERY_HELP;
pub use proofs::{Answerer, Battery, Smt, SmtCheck, SmtDistinguish, SmtEval, SmtModel, SolverName, Solving};

/// Finds out what a matrix unit actually computes, bit for bit.
#[derive(Debug, Parser)]
#[command(name = "mmaprobe", version, about, after_help = EXIT_CODES, max_term_width = 80)]
pub struct Cli {
    /// Threads to use; all cores by default. Results do not depend on it; throughput, whose figures
    /// do, takes several numbers, 1-6
    #[arg(long, global = true, display_order = 100, value_name = "N")]
    pub threads: Option<Threads>,
    /// Add the architecture that this catalogue file describes
    #[arg(long, global = true, value_name = "FILE")]
    pub catalog: Vec<PathBuf>,
    /// How results are printed
    #[arg(long, global = true, display_order = 101, value_name = "FORMAT", default_value = "text")]
    pub format: Output,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// As tables for people.
    Text,
    /// As JSON.
    Json,
    /// As Markdown; `battery` alone prints it.
    Markdown,
}

const EXIT_CODES: &str = "\
Exit codes: 0 what was claimed held; 1 a comparison failed (mismatch, refuted,
unexplained, no function; ambiguous with --strict); 2 usage or bad input; 3 the
device failed. Data goes to stdout, everything for people to stderr.";

/// A number of threads, `4`, or several, `1-6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// The least, at least 1.
    pub from: u16,
    /// The most, at most 1024.
    pub to: u16,
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Threads, String> {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        match (from.parse(), to.parse()) {
            (Ok(from), Ok(to)) if (1..=1024).contains(&from) && (from..=1024).contains(&to) => {
                Ok(Threads { from, to })
            }
            _ => Err("a number from 1 to 1024 is expected, or two with - between them".to_string()),
        }
    }
}

/// Far more than anybody waits for, and few enough to count without overflow.
const MOST: u64 = 1_000_000_000_000;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List what can be probed here
    Devices,
    /// List the instructions of a device, or of an architecture
    #[command(after_help = "\
Examples:
  mmaprobe instructions --device cpu
  mmaprobe instructions --arch cdna3
  mmaprobe instructions --arch mine --catalog mine.yaml")]
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
    /// Compare two devices bit for bit on random matrices, or a device with recordings
    #[command(after_help = "\
Examples:
  mmaprobe validate --device cpu --against sheet:cpu.yaml --seed 7
  mmaprobe validate --device cpu --against sheet:cpu.yaml \\
      --instruction 'vfma*' --sets 100000000
  mmaprobe validate --device sheet:volta.yaml \\
      --vectors v100-fp16-fp16.txt v100-fp16-fp32.txt")]
    Validate(Validate),
    /// Say what two devices or sheets compute differently, with the smallest inputs that show it
    #[command(after_help = compare::DIFF_HELP)]
    Diff(Diff),
    /// Print how far two devices' answers are from the exact results, and to which side
    #[command(after_help = compare::BIAS_HELP)]
    Bias(Bias),
    /// Make a crate, for Rust and C, that computes what sheets say
    #[command(after_help = "\
Examples:
  mmaprobe generate cdna3.yaml -o cdna3-model && cd cdna3-model && cargo test
  mmaprobe generate reports/*.yaml -o mma-models
  mmaprobe generate cpu.yaml --evidence cpu.rec -o cpu-model")]
    Generate(Generate),
    /// Write reports that people read: Markdown, and HTML pages that need nothing beside themselves
    #[command(after_help = "\
Examples:
  mmaprobe report cpu.yaml --evidence cpu.rec -o report
  mmaprobe report reports/*.yaml -o pages")]
    Report(Report),
    /// Bring in a new architecture: catalogue file, sheet, report and model crate
    #[command(after_help = ONBOARD_HELP)]
    Onboard(Onboard),
    /// Print a script that completes commands in a shell
    #[command(after_help = "\
Examples:
  mmaprobe completions bash > ~/.local/share/bash-completion/completions/mmaprobe
  mmaprobe completions zsh > ~/.zfunc/_mmaprobe
  mmaprobe completions fish > ~/.config/fish/completions/mmaprobe.fish")]
    Completions(Completions),
    /// Write manual pages
    #[command(after_help = "Example: mmaprobe man -o ~/.local/share/man/man1")]
    Man(Man),
    /// Multiply matrices of any size with one instruction of a device: D = A·B + C
    #[command(after_help = SIMULATE_HELP)]
    Simulate(Simulate),
    /// Put the literature's feature experiments to a device's instructions
    #[command(after_help = BATTERY_HELP)]
    Battery(Battery),
    /// Instructions as formulas: export them, and have a solver prove things of them
    #[command(subcommand)]
    Smt(Smt),
    /// Measure how fast instructions are, on registers alone
    #[command(after_help = THROUGHPUT_HELP)]
    Throughput(Throughput),
    /// Characterize random machines that nobody has seen, and check every claim
    #[command(after_help = SELFTEST_HELP)]
    Selftest(Selftest),
    /// Print where each element of a matrix is, in registers or memory, while an instruction runs
    #[command(after_help = "\
Examples:
  mmaprobe layout --instruction mma.m16n8k16.f32.f16.f16.f32 --matrix A
  mmaprobe layout --instruction wgmma.m64n8k16.f32.f16.f16 --matrix D --arch h100")]
    Layout(Layout),
    /// Print every step of one output element, on one device or on several beside each other; or what
    /// an operand of Apple's matrix unit says
    #[command(after_help = compare::EXPLAIN_HELP)]
    Explain(Explain),
}

/// `instructions`.
#[derive(Debug, Args)]
pub struct Instructions {
    /// The device, as for the other commands
    #[arg(long, value_name = "D", required_unless_present = "arch", conflicts_with = "arch")]
    pub device: Option<String>,
    /// An architecture, GPU or ISA target of the catalogue: cdna3, h100, sm_89
    #[arg(long, value_name = "A")]
    pub arch: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub timeout: Timeout,
}

/// Which device, and how patiently.
#[derive(Debug, Args)]
pub struct DeviceArgument {
    /// cpu, cuda, cuda:N, hip, hip:N, a GPU's name, sim:NAME, sheet:FILE, replay:FILE or exec:COMMAND
    #[arg(long, value_name = "D")]
    pub device: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub timeout: Timeout,
}

/// How long an external device may say nothing.
#[derive(Clone, Copy, Debug, Args)]
pub struct Timeout {
    /// Seconds that an external device may say nothing, and that a GPU may compute a part
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    pub device_timeout: f64,
}

/// `layout`.
#[derive(Debug, Args)]
pub struct Layout {
    /// The instruction, by its name in the catalogue
    #[arg(long, value_name = "I")]
    pub instruction: String,
    /// The matrix; SA and SB are the block scales of A and B
    #[arg(long, value_name = "MATRIX", ignore_case = true)]
    pub matrix: Operand,
    /// The architecture, GPU or ISA target, where several have the instruction
    #[arg(long, value_name = "A")]
    pub arch: Option<String>,
}

/// A matrix of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
#[allow(missing_docs)]
pub enum Operand {
    A,
    B,
    C,
    D,
    SA,
    SB,
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
    #[command(flatten)]
    #[allow(missing_docs)]
    pub thoroughness: Thoroughness,
    /// Exit with 1 if anything stays ambiguous
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub record: Record,
}

/// How much is asked, and what the sheet says of when.
#[derive(Debug, Args)]
pub struct Thoroughness {
    /// Random dot-adds to validate each instruction on; 0 for none
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(..=MOST))]
    pub validate: u64,
    /// Seed of everything random
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Date to write into the sheet
    #[arg(long, value_name = "DATE")]
    pub date: Option<String>,
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

/// `generate`.
#[derive(Debug, Args)]
pub struct Generate {
    /// The parameter sheets; each is called by the name of its file
    #[arg(required = true, value_name = "SHEET")]
    pub sheets: Vec<PathBuf>,
    /// The crate's folder; its last part becomes the crate's name
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// What `characterize --record` kept of a sheet's device: it becomes the crate's tests
    #[arg(long, value_name = "FILE")]
    pub evidence: Vec<PathBuf>,
    /// Replace a crate that was generated before
    #[arg(long)]
    pub force: bool,
}

/// `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The parameter sheets; each page is called by the name of its file, and the one about all of
    /// several index
    #[arg(required = true, value_name = "SHEET")]
    pub sheets: Vec<PathBuf>,
    /// The folder for NAME.md, NAME.html, index.md and index.html
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// What `characterize --record` kept of a sheet's device: questions and answers are shown from it
    #[arg(long, value_name = "FILE")]
    pub evidence: Vec<PathBuf>,
    /// Replace pages that exist
    #[arg(long)]
    pub force: bool,
}

const ONBOARD_HELP: &str = "\
The first run writes DIR/catalog.yaml: with what the catalogue knows of the
ISA target, with what the device offers, or with an example. Fill in what is
???, and run the same command again. It says what is missing, and with --device
asks for the instructions that file and device share, and leaves in DIR a
recording, a sheet, a report and a crate. --force replaces these; the catalogue
file is yours.

Examples:
  mmaprobe onboard cdna4 --isa gfx950
  mmaprobe onboard cdna4 --isa gfx950 \\
    --device \"exec:python3 examples/standin.py\"";

/// `onboard`.
#[derive(Debug, Args)]
pub struct Onboard {
    /// The architecture's short name, in small letters: cdna4
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Its ISA target: gfx950, sm_103a
    #[arg(long, value_name = "TARGET")]
    pub isa: String,
    /// The device to ask; without one, only the catalogue file is written and checked
    #[arg(long, value_name = "D")]
    pub device: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub timeout: Timeout,
    /// Where everything goes; a folder called NAME without it
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub thoroughness: Thoroughness,
    /// Replace what an earlier run left, but for the catalogue file
    #[arg(long)]
    pub force: bool,
}

/// `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The folder for mmaprobe.1 and a page for each command
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace pages that exist
    #[arg(long)]
    pub force: bool,
}

/// `validate`.
#[derive(Debug, Args)]
pub struct Validate {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub device: DeviceArgument,
    /// The other device
    #[arg(long, value_name = "D2", required_unless_present = "vectors", conflicts_with = "vectors")]
    pub against: Option<String>,
    /// Files of recorded dot-adds to compare with instead of a device
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["sets", "seed"])]
    pub vectors: Vec<PathBuf>,
    /// Only instructions whose name matches, with * and ?; with --vectors, the name of the one
    /// to ask instead of the one that the files name
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

const SIMULATE_HELP: &str = "\
D is what a plain loop of the instruction along K leaves in its accumulator.
Elements are bit patterns and nothing is rounded: float64, float32 and float16
for fp64, fp32 (and tf32) and fp16, ml_dtypes for narrower formats, or unsigned
integers of bit patterns for any. D is float64, float32 or float16, or unsigned
integers: numpy.load('D.npy').view(ml_dtypes.bfloat16).

Examples:
  mmaprobe simulate --device cpu --instruction vdpbf16ps --a A.npy --b B.npy -o D.npy
  mmaprobe simulate --device sheet:cdna3.yaml --instruction v_mfma_f32_16x16x16_f16 \\
    --a A.npy --b B.npy --c C.npy -o D.npy --force";

/// `simulate`.
#[derive(Debug, Args)]
pub struct Simulate {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub device: DeviceArgument,
    /// The instruction
    #[arg(long, value_name = "I")]
    pub instruction: String,
    /// A, M×K
    #[arg(long, value_name = "A.npy")]
    pub a: PathBuf,
    /// B, K×N
    #[arg(long, value_name = "B.npy")]
    pub b: PathBuf,
    /// C, M×N; zeros without it
    #[arg(long, value_name = "C.npy")]
    pub c: Option<PathBuf>,
    /// Scales of A's blocks, M×(K / block)
    #[arg(long, value_name = "SA.npy")]
    pub sa: Option<PathBuf>,
    /// Scales of B's blocks, (K / block)×N
    #[arg(long, value_name = "SB.npy")]
    pub sb: Option<PathBuf>,
    /// Where D goes, M×N
    #[arg(short, long, value_name = "D.npy")]
    pub output: PathBuf,
    /// Replace an existing D.npy
    #[arg(long)]
    pub force: bool,
    /// Append products +0·+0 where K is no multiple of the instruction's; this can change results
    #[arg(long)]
    pub pad_k: bool,
}

const THROUGHPUT_HELP: &str = "\
Each instruction is executed over and over without loads and stores, on 1 and more
independent accumulators in each of --threads threads. Figures are medians of
interleaved samples; the clock is measured, and the peak is what the unit's maker
says of a cycle, at that clock.

Examples:
  mmaprobe throughput --device cpu --instruction 'vdp*' --threads 1-2
  mmaprobe throughput --device cpu --report cpu-throughput.md";

/// `throughput`.
#[derive(Debug, Args)]
pub struct Throughput {
    /// The device; so far only cpu can be measured
    #[arg(long, value_name = "D")]
    pub device: String,
    /// Only instructions whose name matches, with * and ?
    #[arg(long, value_name = "GLOB")]
    pub instruction: Option<String>,
    /// Samples of each figure
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub repetitions: u16,
    /// Write a report to this file, which ends in .md, and its plot beside it as .svg
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Replace an existing report
    #[arg(long, requires = "report")]
    pub force: bool,
}

const SELFTEST_HELP: &str = "\
Each machine is drawn from the seed and its index, executes arithmetic of its own
(it shares no code with the inference), and is seen only as a device. The model
found is held against it on fresh inputs. Exit code 1 if any claim is wrong, or a
unit that is no function was not detected.

Examples:
  mmaprobe selftest --machines 500 --seed 1
  mmaprobe selftest --machines 0 --defective 100
  mmaprobe selftest --machines 0 --functions 500     is a sound machine called no function?
  mmaprobe selftest --seed 1 --only 17      what became of machine 17, in full
  mmaprobe selftest --seed 1 --only d3      the same of defective unit 3";

/// `selftest`.
#[derive(Debug, Args)]
pub struct Selftest {
    /// Random machines
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub machines: u64,
    /// Random units that are no function: noise, position, state, batch size
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub defective: u64,
    /// Sound random machines that are only asked whether they are functions
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub functions: u64,
    /// Seed of the machines
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Fresh dot-adds to check each model on, after five times as many that characterising takes
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=MOST))]
    pub validate: u64,
    /// Only this machine (17, or f17), or this defective unit (d3), in full
    #[arg(long, value_name = "I", conflicts_with = "details")]
    pub only: Option<Which>,
    /// Write a line of JSON for each machine to this file, as it ends
    #[arg(long, value_name = "FILE")]
    pub details: Option<PathBuf>,
    /// Go on with an existing file of details: what it tells of is not tried again
    #[arg(long, requires = "details", conflicts_with = "force")]
    pub resume: bool,
    /// Replace an existing file of details
    #[arg(long, requires = "details")]
    pub force: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("a number of seconds above 0 is expected".to_string()),
    }
}
