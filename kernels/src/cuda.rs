//! The Tensor Core instructions of NVIDIA GPUs, from Volta to Blackwell.
//!
//! A [`Spec`] says which instruction, in the catalogue's terms. [`Program::new`] makes a PTX kernel of
//! it that computes many independent problems in one launch, and with it the [layout] of each
//! matrix. The kernels are few and generic: one for `mma.sync`, plain or block-scaled ([`mma`]), one
//! for `wgmma` ([`wgmma`]), one for `tcgen05.mma`, plain or block-scaled ([`tcgen05`]).
//!
//! The kernels know nothing about matrices: each lane loads its registers, or each thread its piece of
//! shared memory, from where they lie in global memory in the same order. Where an element goes is
//! said in one place, by the layouts; the host [packs](crate::pack) and unpacks by them.
//!
//! The driver's own compiler assembles the PTX ([`driver`]); no CUDA is needed to build or to run
//! this. What an instruction really becomes is read from a disassembly ([`sass`]).
//!
//! ```
//! use mmaprobe_kernels::cuda::{Kind, Program, Spec};
//! use mmaprobe_model::format::{FP16, FP32};
//!
//! # fn main() -> Result<(), mmaprobe_kernels::instruction::Unsupported> {
//! let spec = Spec {
//!     kind: Kind::Mma,
//!     m: 16, n: 8, k: 16,
//!     a: FP16, b: FP16, c: FP32, d: FP32,
//!     scale: None,
//!     blocks: 1,
//! };
//! let program = Program::new(&spec, "sm_80")?;
//! assert!(program.ptx.contains("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"));
//! // A[8][9] is the upper half of lane 0's fourth register.
//! let place = program.fragments.a.place(0, 8, 9);
//! assert_eq!((place.lane, place.register, place.bit), (0, 3, 16));
//! # Ok(())
//! # }
//! ```

pub mod descriptor;
pub mod driver;
pub mod layout;
pub mod mma;
pub mod ptx;
pub mod sass;
pub mod tcgen05;
pub mod wgmma;

use mmaprobe_model::Format;
use mmaprobe_model::format::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, FP16, FP32, FP64, TF32};

use crate::fragment::Fragments;
use crate::instruction::Unsupported;
use crate::stream::Launch;

/// Name of the entry function of every kernel.
pub const ENTRY: &str = "mmaprobe";

/// Threads of a CTA in every kernel: a warpgroup.
pub const THREADS: u32 = 128;

/// What kind of kernel runs an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `mma.sync`, by a warp.
    Mma,
    /// `mma.sync` with block scales.
    MmaBlockScale,
    /// `wgmma.mma_async`, by a warpgroup; A and B in shared memory.
    Wgmma,
    /// `tcgen05.mma`; A and B in shared memory, the accumulator in tensor memory.
    Tcgen05,
    /// `tcgen05.mma` with block scales, which are in tensor memory.
    Tcgen05BlockScale,
}

impl Kind {
    /// The kind that a catalogue file calls that; `None` if it is none of NVIDIA's.
    pub fn named(name: &str) -> Option<Kind> {
        Some(match name {
            "mma" => Kind::Mma,
            "mma-block-scale" => Kind::MmaBlockScale,
            "wgmma" => Kind::Wgmma,
            "tcgen05" => Kind::Tcgen05,
            "tcgen05-block-scale" => Kind::Tcgen05BlockScale,
            _ => return None,
        })
    }

    /// Independent groups of problems that a CTA works on at a time.
    pub fn groups_per_cta(self) -> u32 {
        match self {
            Kind::Mma | Kind::MmaBlockScale => THREADS / 32,
            Kind::Wgmma | Kind::Tcgen05 | Kind::Tcgen05BlockScale => 1,
        }
    }
}

/// An instruction of NVIDIA's, as the catalogue describes it.
pub type Spec = crate::instruction::Spec<Kind>;

/// A kernel and the layouts that go with it.
///
/// Its parameters are six addresses in global memory, of A, B, C, SA, SB and D, and the number of
/// groups, 32 bits; a group is [`Spec::blocks`] problems. Each array holds its fragment of one group
/// after another, [`Fragment::bytes`](crate::fragment::Fragment::bytes) each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The kernel, as text.
    pub ptx: String,
    /// The instruction under test, as it stands in the text.
    pub instruction: String,
    /// Where the matrices are.
    pub fragments: Fragments,
    /// Problems in a group.
    pub blocks: usize,
    /// Groups that a CTA works on at a time.
    pub groups_per_cta: u32,
}

impl Program {
    /// The kernel for an instruction, for an ISA target such as `sm_90a`.
    ///
    /// # Errors
    /// If the instruction has a shape or types that no kernel here has.
    pub fn new(spec: &Spec, target: &str) -> Result<Program, Unsupported> {
        let fragments = layout::fragments(spec)?;
        let (ptx, instruction) = match spec.kind {
            Kind::Mma | Kind::MmaBlockScale => mma::kernel(spec, &fragments, target)?,
            Kind::Wgmma => wgmma::kernel(spec, &fragments, target)?,
            Kind::Tcgen05 | Kind::Tcgen05BlockScale => tcgen05::kernel(spec, &fragments, target)?,
        };
        let groups_per_cta = spec.kind.groups_per_cta();
        Ok(Program { ptx, instruction, fragments, blocks: spec.blocks, groups_per_cta })
    }
}

impl Spec {
    /// What PTX calls a format of this instruction.
    pub(crate) fn ptx_type(&self, format: &Format) -> Result<&'static str, Unsupported> {
        let names = [
            (FP64, "f64"),
            (FP32, "f32"),
            (TF32, "tf32"),
            (FP16, "f16"),
            (BF16, "bf16"),
            (E4M3, "e4m3"),
            (E5M2, "e5m2"),
            (E3M2, "e3m2"),
            (E2M3, "e2m3"),
            (E2M1, "e2m1"),
        ];
        let found = names.into_iter().find(|(known, _)| known == format);
        found.map(|(_, name)| name).ok_or_else(|| self.unsupported(format!("PTX has no type for {format}")))
    }
}

impl Launch for Program {
    fn fragments(&self) -> &Fragments {
        &self.fragments
    }

    fn groups_per_block(&self) -> u32 {
        self.groups_per_cta
    }
}
