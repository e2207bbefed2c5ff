//! What can be said to `battery` and `smt`.

use clap::{Args, Subcommand, ValueEnum};

use super::{Timeout, seconds};
use crate::explain::Bits;
use crate::smt::properties::Property;

pub(super) const BATTERY_HELP: &str = "\
The experiments are those of Fasi et al. (2021), Valpey et al. (2025), and three
generalised ones after Khattak and Mikaitis; their constants come from the formats
and from the alignment bits found first. With several devices, one column each.

Examples:
  mmaprobe battery --device cpu --instruction vdpbf16ps
  mmaprobe battery --device sim:v100 --device sim:t4 --instruction 'mma.m8n8k4.f32.*.f32'
  mmaprobe battery --device sim:a100 --format markdown";

/// `battery`.
#[derive(Debug, Args)]
pub struct Battery {
    /// A device as for the other commands; give it again to compare several
    #[arg(long, value_name = "D", required = true)]
    pub device: Vec<String>,
    /// Only instructions whose name matches, with * and ?
    #[arg(long, value_name = "GLOB")]
    pub instruction: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub timeout: Timeout,
}

/// `smt`.
#[derive(Debug, Subcommand)]
pub enum Smt {
    /// Print an instruction's function as SMT-LIB 2 (QF_BV)
    #[command(after_help = "\
Example: mmaprobe smt export sim:volta --instruction mma.m8n8k4.f32.f16.f16.f32")]
    Export(SmtModel),
    /// A solver's value of d for given operands, beside the executed one
    #[command(after_help = "\
Example: mmaprobe smt eval sim:ada --instruction mma.m16n8k8.f32.f16.f16.f32 \\
  --a 0x3c00,0x3c00 --b 0x3c00,0x1400 --c 0xbf800000

Elements that are left out are zero, scales 1.")]
    Eval(SmtEval),
    /// An input on which two instructions differ, or a proof that there is none
    #[command(after_help = "\
Examples:
  mmaprobe smt distinguish sim:volta sim:volta+floor --instruction '*.f32.f16.f16.f32'
  mmaprobe smt distinguish sim:volta sim:turing --instruction mma.m8n8k4.f32.f16.f16.f32")]
    Distinguish(SmtDistinguish),
    /// Check a property of an instruction, for all inputs
    #[command(after_help = CHECK_HELP)]
    Check(SmtCheck),
}

const CHECK_HELP: &str = "\
Properties (1 to 5 are those of Valpey et al. 2025):
  1, accumulation       are sums kept in more than the factors' format?
  2, final-rounding     does another rounding of the result ever give another one?
  3, order-independence does the order of the products never matter?
  4, normalisation      does normalising every partial sum ever give another result?
  5, error-correction   inputs on which Ootomo and Yokota's correction is worse than
                        Markidis et al.'s, and the other way round
  monotonicity          does d never fall where c grows?
  carry-bits=N          do N carry bits suffice?

Exit code 1 if a property that is claimed for all inputs (3, monotonicity,
carry-bits) does not hold, or if nothing could be decided.

Examples:
  mmaprobe smt check sim:ampere --instruction mma.m16n8k8.f32.f16.f16.f32 --property carry-bits=4
  mmaprobe smt check sim:volta --instruction mma.m8n8k4.f32.f16.f16.f32 --property 4";

/// An instruction whose arithmetic is known.
#[derive(Debug, Args)]
pub struct SmtModel {
    /// A device whose arithmetic is known: sim:NAME or sheet:FILE
    #[arg(value_name = "D")]
    pub device: String,
    /// The instruction
    #[arg(long, value_name = "I")]
    pub instruction: String,
}

/// How a solver is asked.
#[derive(Clone, Debug, Args)]
pub struct Solving {
    /// Seconds that a solver may think about one question
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    pub time: f64,
    /// The solver; by default the first of bitwuzla, cvc5 and z3 that is on the PATH
    #[arg(long, value_name = "SOLVER")]
    pub solver: Option<SolverName>,
    /// Who may answer
    #[arg(long, value_name = "WHO", default_value = "both")]
    pub by: Answerer,
}

/// A solver's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum SolverName {
    Bitwuzla,
    Cvc5,
    Z3,
}

/// Who may answer a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Answerer {
    /// Reasoning over the sum trees, then a solver
    Both,
    /// Reasoning over the sum trees alone
    Reasoning,
    /// A solver alone
    Solver,
}

/// `smt eval`.
#[derive(Debug, Args)]
pub struct SmtEval {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub model: SmtModel,
    /// Bit patterns of the row of A, as 0x…, 0b… or in decimal
    #[arg(long, value_name = "X,…", value_delimiter = ',')]
    pub a: Vec<Bits>,
    /// Bit patterns of the column of B
    #[arg(long, value_name = "X,…", value_delimiter = ',')]
    pub b: Vec<Bits>,
    /// The bit pattern of c
    #[arg(long, value_name = "X")]
    pub c: Option<Bits>,
    /// Bit patterns of the scales of A's blocks
    #[arg(long, value_name = "X,…", value_delimiter = ',')]
    pub sa: Vec<Bits>,
    /// Bit patterns of the scales of B's blocks
    #[arg(long, value_name = "X,…", value_delimiter = ',')]
    pub sb: Vec<Bits>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub solving: Solving,
}

/// `smt distinguish`.
#[derive(Debug, Args)]
pub struct SmtDistinguish {
    /// A device whose arithmetic is known: sim:NAME or sheet:FILE
    #[arg(value_name = "D1")]
    pub first: String,
    /// Another
    #[arg(value_name = "D2")]
    pub second: String,
    /// Only instructions whose name matches, with * and ?
    #[arg(long, value_name = "GLOB")]
    pub instruction: Option<String>,
    /// The second device's instruction, where its name is another
    #[arg(long, value_name = "I", requires = "instruction")]
    pub against: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub solving: Solving,
}

/// `smt check`.
#[derive(Debug, Args)]
pub struct SmtCheck {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub model: SmtModel,
    /// The property; see below
    #[arg(long, value_name = "P")]
    pub property: Property,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub solving: Solving,
}
