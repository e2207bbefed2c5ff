//! The Matrix Core instructions of AMD GPUs, from CDNA1 to CDNA4.
//!
//! A [`Spec`] says which instruction, in the catalogue's terms. [`Program::new`] makes a HIP kernel of
//! it that computes many independent problems in one launch, and with it the [layout] of each matrix.
//! There is one kernel, `kernels/hip/mfma.hip`, which lines before it instantiate: the compiler's
//! builtin for the instruction, the types and numbers of its registers, and whether it takes block
//! scales. An instruction of several blocks has a problem in each of them.
//!
//! The modifiers that rearrange operands (CBSZ, ABID and BLGP) are 0, as layouts have it; the scaled
//! instructions of CDNA4 have formats in CBSZ and BLGP, and take the lowest byte of a register for a
//! scale (OPSEL is 0).
//!
//! Each kernel sets the rounding and denormal [modes](Mode) of the MODE register before it loads
//! anything. What an instruction obeys of them is for those to find out who ask it.
//!
//! The installed ROCm compiles the text (`driver`, with the feature `hip`); building this crate without
//! that feature takes nothing of AMD's.
//!
//! ```
//! use mmaprobe_kernels::hip::{Kind, Program, Spec};
//! use mmaprobe_model::format::{FP16, FP32};
//!
//! # fn main() -> Result<(), mmaprobe_kernels::instruction::Unsupported> {
//! let spec = Spec {
//!     kind: Kind::Mfma,
//!     m: 32, n: 32, k: 8,
//!     a: FP16, b: FP16, c: FP32, d: FP32,
//!     scale: None,
//!     blocks: 1,
//! };
//! let program = Program::new(&spec)?;
//! assert_eq!(program.builtin, "__builtin_amdgcn_mfma_f32_32x32x8f16");
//! // A[5][6] is the lower half of the second register of lane 37.
//! let place = program.fragments.a.place(0, 5, 6);
//! assert_eq!((place.lane, place.register, place.bit), (37, 1, 0));
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "hip")]
pub mod compiler;
#[cfg(feature = "hip")]
pub mod driver;
pub mod layout;
pub mod machine;

use mmaprobe_model::Format;
use mmaprobe_model::format::{E2M1, E2M3, E3M2, E4M3, E4M3FNUZ, E5M2, FP64};

use crate::fragment::{Fragment, Fragments};
use crate::instruction::Unsupported;
use crate::stream::Launch;

/// Name of the entry function of every kernel.
pub const ENTRY: &str = "mmaprobe";

/// Threads of a block in every kernel: four waves.
pub const THREADS: u32 = 256;

/// Lanes of a wave.
pub const LANES: usize = 64;

/// The kernel, but for the lines before it.
const KERNEL: &str = include_str!("../hip/mfma.hip");

/// What kind of kernel runs an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `v_mfma_…`.
    Mfma,
    /// `v_mfma_scale_…`, with a scale for each 32 elements along K.
    MfmaScale,
}

impl Kind {
    /// The kind that a catalogue file calls that; `None` if it is none of AMD's.
    pub fn named(name: &str) -> Option<Kind> {
        Some(match name {
            "mfma" => Kind::Mfma,
            "mfma-scale" => Kind::MfmaScale,
            _ => return None,
        })
    }
}

/// An instruction of AMD's, as the catalogue describes it.
pub type Spec = crate::instruction::Spec<Kind>;

/// A setting of the MODE register: how to round, and what becomes of subnormals.
///
/// Both fields of each (for single precision, and for half and double) are set alike.
///
/// Source: "CDNA3 Instruction Set Architecture", "MODE Register Fields"; the same from CDNA1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Round to nearest even, keep subnormals: what compilers set.
    Default,
    /// Round toward +infinity.
    Up,
    /// Round toward −infinity.
    Down,
    /// Round toward zero.
    TowardZero,
    /// Flush subnormal results.
    FlushResults,
    /// Flush subnormal operands.
    FlushOperands,
}

impl Mode {
    /// All of them, the default first.
    pub const ALL: [Mode; 6] =
        [Mode::Default, Mode::Up, Mode::Down, Mode::TowardZero, Mode::FlushResults, Mode::FlushOperands];

    /// Bits 7:0 of the MODE register.
    pub const fn bits(self) -> u32 {
        let (round, denormals) = match self {
            Mode::Default => (0, 3),
            Mode::Up => (1, 3),
            Mode::Down => (2, 3),
            Mode::TowardZero => (3, 3),
            Mode::FlushResults => (0, 1),
            Mode::FlushOperands => (0, 2),
        };
        // A field of two bits for single precision, then one for half and double.
        (denormals << 2 | denormals) << 4 | round << 2 | round
    }

    /// What follows an instruction's name in this mode; nothing in the default.
    pub const fn suffix(self) -> Option<&'static str> {
        match self {
            Mode::Default => None,
            Mode::Up => Some("ru"),
            Mode::Down => Some("rd"),
            Mode::TowardZero => Some("rz"),
            Mode::FlushResults => Some("ftz"),
            Mode::FlushOperands => Some("daz"),
        }
    }

    /// The mode in words.
    pub const fn words(self) -> &'static str {
        match self {
            Mode::Default => "MODE rounds to nearest even and keeps subnormals",
            Mode::Up => "MODE rounds up",
            Mode::Down => "MODE rounds down",
            Mode::TowardZero => "MODE rounds toward zero",
            Mode::FlushResults => "MODE flushes subnormal results",
            Mode::FlushOperands => "MODE flushes subnormal operands",
        }
    }
}

/// A kernel and the layouts that go with it.
///
/// Its parameters are six addresses in global memory, of A, B, C, SA, SB and D, the number of groups and
/// the low bits of the MODE register, 32 bits each; a group is [`Spec::blocks`](Spec) problems. Each
/// array holds its fragment of one group after another, [`Fragment::bytes`] each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The kernel, as text.
    pub source: String,
    /// The compiler's builtin for the instruction under test.
    pub builtin: String,
    /// Where the matrices are.
    pub fragments: Fragments,
    /// Problems in a group.
    pub blocks: usize,
}

impl Program {
    /// The kernel for an instruction.
    ///
    /// # Errors
    /// If the instruction has a shape or types that no kernel here has.
    pub fn new(spec: &Spec) -> Result<Program, Unsupported> {
        let fragments = layout::fragments(spec)?;
        let builtin = builtin(spec, &fragments)?;
        let source = format!("{}{KERNEL}", head(spec, &fragments, &builtin)?);
        Ok(Program { source, builtin, fragments, blocks: spec.blocks })
    }
}

impl Launch for Program {
    fn fragments(&self) -> &Fragments {
        &self.fragments
    }

    fn groups_per_block(&self) -> u32 {
        THREADS / LANES as u32
    }
}

/// The lines that instantiate the kernel.
fn head(spec: &Spec, fragments: &Fragments, builtin: &str) -> Result<String, Unsupported> {
    let mut text = format!("#define THREADS {THREADS}\n");
    for (name, format, fragment) in
        [("a", &spec.a, &fragments.a), ("b", &spec.b, &fragments.b), ("d", &spec.d, &fragments.d)]
    {
        text.push_str(&format!("#define {}_REGISTERS {}\n", name.to_uppercase(), fragment.registers()));
        let (ty, bytes) = operand(spec, format, fragment)?;
        text.push_str(&match element_bytes(ty) == bytes {
            true => format!("typedef {ty} operand_{name};\n"),
            false => format!("typedef {ty} operand_{name} __attribute__((vector_size({bytes})));\n"),
        });
    }
    let arguments = match spec.kind {
        Kind::Mfma => "a, b, c, 0, 0, 0".to_string(),
        Kind::MfmaScale => {
            text.push_str("#define SCALES\n");
            let (a, b) = (selector(spec, &spec.a)?, selector(spec, &spec.b)?);
            format!("a, b, c, {a}, {b}, 0, scale_a, 0, scale_b")
        }
    };
    text.push_str(&format!("#define EXECUTE(a, b, c, scale_a, scale_b) {builtin}({arguments})\n"));
    Ok(text)
}

/// The type of a builtin's operand: of its elements, and how many bytes it has.
fn operand(spec: &Spec, format: &Format, fragment: &Fragment) -> Result<(&'static str, usize), Unsupported> {
    let bytes = 4 * fragment.registers();
    Ok(match format.name {
        "fp64" => ("double", bytes),
        "fp32" | "tf32" => ("float", bytes),
        "fp16" => ("_Float16", bytes),
        // Builtins had no type for it until CDNA4's.
        "bf16" if bytes == 16 => ("__bf16", bytes),
        "bf16" => ("short", bytes),
        "e4m3fnuz" | "e5m2fnuz" => ("long", bytes),
        // Whatever the format takes of them.
        "e4m3" | "e5m2" | "e3m2" | "e2m3" | "e2m1" if spec.kind == Kind::MfmaScale => ("int", 32),
        _ => return Err(spec.unsupported(format!("builtins have no type for {format}"))),
    })
}

fn element_bytes(ty: &str) -> usize {
    match ty {
        "double" | "long" => 8,
        "float" | "int" => 4,
        _ => 2,
    }
}

/// The number of a format in CBSZ (for A) and BLGP (for B) of a scaled instruction.
///
/// Source: "AMD Instinct CDNA4 Instruction Set Architecture", V_MFMA_SCALE_F32_16X16X128_F8F6F4.
fn selector(spec: &Spec, format: &Format) -> Result<usize, Unsupported> {
    let position = [E4M3, E5M2, E2M3, E3M2, E2M1].iter().position(|known| known == format);
    position.ok_or_else(|| spec.unsupported(format!("scaled instructions take no {format}")))
}

/// The compiler's builtin. Its name is that of the instruction as CDNA1 and CDNA2 spell it; what came
/// later (eight elements a lane, fp8, xf32) is spelled as CDNA3 does.
fn builtin(spec: &Spec, fragments: &Fragments) -> Result<String, Unsupported> {
    let Spec { m, n, k, .. } = spec;
    let out = if spec.d == FP64 { "f64" } else { "f32" };
    if spec.kind == Kind::MfmaScale {
        return Ok(format!("__builtin_amdgcn_mfma_scale_{out}_{m}x{n}x{k}_f8f6f4"));
    }
    if spec.a != spec.b && spec.a.bytes != 1 {
        return Err(spec.unsupported("A and B have different formats"));
    }
    // Elements of a lane.
    let each = 32 * fragments.a.registers() / fragments.a.bits;
    let fp8 = |format: &Format| if *format == E4M3FNUZ { "fp8" } else { "bf8" };
    let types = match spec.a.name {
        "fp64" => "f64".to_string(),
        "fp32" => "f32".to_string(),
        "fp16" if each == 8 => "_f16".to_string(),
        "fp16" => "f16".to_string(),
        "bf16" if each == 8 => "_bf16".to_string(),
        "bf16" if each == 4 => "bf16_1k".to_string(),
        "bf16" => "bf16".to_string(),
        "tf32" => "_xf32".to_string(),
        "e4m3fnuz" | "e5m2fnuz" => format!("_{}_{}", fp8(&spec.a), fp8(&spec.b)),
        _ => return Err(spec.unsupported("there is no such instruction")),
    };
    Ok(format!("__builtin_amdgcn_mfma_{out}_{m}x{n}x{k}{types}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmaprobe_model::format::{BF16, FP16, FP32};

    #[test]
    fn modes_are_those_of_the_manual() {
        let bits: Vec<u32> = Mode::ALL.iter().map(|mode| mode.bits()).collect();
        assert_eq!(bits, [0xF0, 0xF5, 0xFA, 0xFF, 0x50, 0xA0]);
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        let spec = |a, b| Spec {
            kind: Kind::Mfma,
            m: 16,
            n: 16,
            k: 16,
            a,
            b,
            c: FP32,
            d: FP32,
            scale: None,
            blocks: 1,
        };
        for (spec, why) in [
            (spec(FP16, BF16), "different formats"),
            (spec(E4M3, E4M3), "no such instruction"),
            (Spec { m: 8, ..spec(FP16, FP16) }, "4, 16 or 32 rows"),
            (Spec { k: 3, ..spec(FP16, FP16) }, "K"),
            (Spec { kind: Kind::MfmaScale, ..spec(E4M3, E4M3) }, "scale"),
        ] {
            let error = Program::new(&spec).unwrap_err();
            assert!(error.why.contains(why), "{error}");
        }
    }
}
