//! What can be said to the commands that compare devices: `diff`, `bias` and `explain`.

use std::path::PathBuf;

use clap::Args;

use super::{MOST, Timeout};
use crate::explain::Bits;

pub const DIFF_HELP: &str = "\
Instructions are compared if both sides have them by the same name, or else in the
same shape and formats. For each parameter that differs, an input is searched for
that shows it by itself, and shrunk; explain shows its steps again.

Exit codes: 0 equal; 1 different, or one side lacks an instruction; 2 and 3 as ever.

Examples:
  mmaprobe diff sim:hopper sim:ada
  mmaprobe diff sim:volta sim:volta+floor --save found
  mmaprobe diff cpu reports/measured/intel-xeon-6-207.yaml --instruction vdpbf16ps";

/// Which two devices, and which of their instructions.
#[derive(Debug, Args)]
pub struct TwoDevices {
    /// A device, as for the other commands, or a parameter sheet
    #[arg(value_name = "D1")]
    pub first: String,
    /// The other one
    #[arg(value_name = "D2")]
    pub second: String,
    /// Only instructions whose name matches, with * and ?
    #[arg(long, value_name = "GLOB")]
    pub instruction: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub timeout: Timeout,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub devices: TwoDevices,
    /// Random output elements to compare of each instruction that nothing crafted tells apart
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(..=MOST))]
    pub random: u64,
    /// Seed of everything random
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Take all NaNs for the same
    #[arg(long)]
    pub any_nan: bool,
    /// Write each input that shows a difference to a file in this folder, for explain
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Replace existing files
    #[arg(long, requires = "save")]
    pub force: bool,
}

pub const BIAS_HELP: &str = "\
A and B are drawn from the normal distribution of deviation --factors, C from that
of --accumulators, and rounded to their formats; errors are answers less exact
results. The defaults are those of Figure 2 of the MMA-Sim paper.

Examples:
  mmaprobe bias sim:cdna3 sim:cdna3+rz --instruction v_mfma_f32_32x32x8_f16 \\
    --svg figure2.svg
  mmaprobe bias sim:hopper sim:blackwell --instruction 'mma*f16*' --count 20000";

/// `bias`.
#[derive(Debug, Args)]
pub struct Bias {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub devices: TwoDevices,
    /// Output elements of each instruction, at least
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=MOST))]
    pub count: u64,
    /// Seed of the random matrices
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Standard deviation of the elements of A and B
    #[arg(long, value_name = "X", default_value_t = 1000.0, value_parser = positive)]
    pub factors: f64,
    /// Standard deviation of the elements of C
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive)]
    pub accumulators: f64,
    /// Draw the distributions in this file
    #[arg(long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,
    /// Replace an existing drawing
    #[arg(long, requires = "svg")]
    pub force: bool,
}

pub const EXPLAIN_HELP: &str = "\
A number is bits (0x3c00, 0b11), hexadecimal (0x1.8p-3) or decimal (-1.5e-3), in
which case it is rounded to the nearest that the format has. What is left out is
+0, and 1 for scales; 3:1.5 is element 3.

Examples:
  mmaprobe explain --device sim:mi300x --instruction v_mfma_f32_32x32x8_f16 \\
    --a 2048,2048 --b 2048,-2048 --c -0.000001
  mmaprobe explain --device sim:h100 --device sim:a100 \\
    --instruction mma.m16n8k8.f32.f16.f16.f32 --a 1,0x1p-12 --b 1,0x1.8p-13
  mmaprobe explain --counterexample found/1.yaml
  mmaprobe explain 0x0000860000500000 --instruction fma32";

/// `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The 64 bits of an operand of Apple's matrix unit, as 0x…, 0b… or in decimal
    #[arg(value_name = "OPERAND", allow_negative_numbers = true, conflicts_with_all = ["devices", "counterexample"])]
    pub operand: Option<Bits>,
    /// A device, as for the other commands; several are put beside each other
    #[arg(long = "device", value_name = "D")]
    pub devices: Vec<String>,
    /// The instruction, or one for each device; of an operand: fma16, fma32, fma64 or a 32-bit word
    #[arg(long, value_name = "I")]
    pub instruction: Vec<String>,
    /// The row of A, from its first element on
    #[arg(long, value_name = "A,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub a: Vec<String>,
    /// The column of B
    #[arg(long, value_name = "B,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub b: Vec<String>,
    /// The element of C
    #[arg(long, value_name = "C", value_delimiter = ',', allow_hyphen_values = true)]
    pub c: Vec<String>,
    /// The scales of the row of A
    #[arg(long, value_name = "SA,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub sa: Vec<String>,
    /// The scales of the column of B
    #[arg(long, value_name = "SB,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub sb: Vec<String>,
    /// A file that diff --save wrote, or a sheet with a counterexample, instead of an input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["a", "b", "c", "sa", "sb"])]
    pub counterexample: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub timeout: Timeout,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 1e30 => Ok(number),
        _ => Err("a number above 0 is expected".to_string()),
    }
}
