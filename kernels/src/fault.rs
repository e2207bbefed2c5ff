//! What stands against asking a GPU: what a vendor's runtime answers, translated.

use std::time::Duration;

/// What a vendor's runtime, or the lack of one, has against a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A library that is needed is not there: which, and what to do.
    #[error("{0}")]
    Missing(&'static str),
    /// The runtime sees no GPU: who says so, and what to look at.
    #[error("{0}")]
    NoGpu(String),
    /// There are fewer GPUs.
    #[error("there is no GPU number {ordinal}: the driver sees {count}, counted from 0")]
    NoSuchGpu {
        /// The number asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The driver is older than what the kernel is written in.
    #[error("the driver is too old for {needs}: it supports {has}. Update it")]
    OldDriver {
        /// What the kernel is written in.
        needs: String,
        /// What the driver supports.
        has: String,
    },
    /// The compiler refuses the kernel: the GPU does not have the instruction.
    #[error("the compiler refuses the kernel for this GPU: {0}")]
    Refused(String),
    /// GPU or pinned host memory is exhausted.
    #[error(
        "out of memory for {0} MiB, on the GPU or pinned on the host. Another program may hold it: \
         nvidia-smi or rocm-smi shows which"
    )]
    OutOfMemory(usize),
    /// A launch faulted; the GPU accepts nothing more from this process.
    #[error(
        "the launch faulted ({0}). That is a bug in the kernel or broken hardware, not a property of the \
         instruction; what was answered before it stands. Start again, and see the kernel's log (dmesg)"
    )]
    Launch(String),
    /// A launch did not end.
    #[error("the launch did not end within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// Anything else.
    #[error("{call} failed: {code}")]
    Other {
        /// The runtime's function.
        call: &'static str,
        /// Its error code.
        code: String,
    },
}

impl Fault {
    /// The same fault, but for the lack of that many bytes where it is for the lack of memory.
    pub(crate) fn for_bytes(self, bytes: usize) -> Fault {
        match self {
            Fault::OutOfMemory(_) => Fault::OutOfMemory(bytes.div_ceil(1 << 20)),
            other => other,
        }
    }

    /// Whether nothing more can be run after it in this process.
    pub fn is_final(&self) -> bool {
        matches!(self, Fault::Launch(_) | Fault::TimedOut(_))
    }

    /// Whether it is the compiler's word that the GPU lacks an instruction, or that it is too old to know.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Fault::Refused(_) | Fault::OldDriver { .. })
    }
}
