//! `hip[:N]`: an attached AMD GPU, asked through ROCm's HIP runtime.
//!
//! Each instruction is offered in every mode of the MODE register's rounding and denormal fields. What
//! asks it finds out which of them it obeys.

use mmaprobe_kernels::hip::Kind;

use crate::catalog::Architecture;

/// Whether kernels here run instructions of an architecture.
pub fn is_ours(architecture: &Architecture) -> bool {
    architecture.families.iter().any(|family| Kind::named(&family.kernel).is_some())
}

/// Why a build without the feature asks no AMD GPU, and what to do.
pub const NOT_BUILT: &str = "this build asks no AMD GPU. Where ROCm's HIP runtime is installed, build it \
                             with --features hip";

#[cfg(feature = "hip")]
pub use with_runtime::{Amd, Hip};

#[cfg(feature = "hip")]
mod with_runtime {
    use mmaprobe_kernels::hip::driver::{self, Driver, Gpu};
    use mmaprobe_kernels::hip::{Mode as ModeRegister, Program};
    use mmaprobe_kernels::instruction::Unsupported;

    use crate::catalog::{Architecture, Family};
    use crate::device::gpu::{Attached, Known, Mode, Vendor};

    /// An AMD GPU.
    pub type Hip = Attached<Amd>;

    /// AMD's GPUs.
    pub struct Amd;

    /// A mode as it is offered.
    const fn offered(mode: ModeRegister, parameters: &'static [u32]) -> Mode {
        Mode { suffix: mode.suffix(), words: mode.words(), parameters }
    }

    impl Vendor for Amd {
        type Runtime = Driver;

        const PREFIX: &'static str = "hip";
        const MODES: &'static [Mode] = &[
            offered(ModeRegister::Default, &[ModeRegister::Default.bits()]),
            offered(ModeRegister::Up, &[ModeRegister::Up.bits()]),
            offered(ModeRegister::Down, &[ModeRegister::Down.bits()]),
            offered(ModeRegister::TowardZero, &[ModeRegister::TowardZero.bits()]),
            offered(ModeRegister::FlushResults, &[ModeRegister::FlushResults.bits()]),
            offered(ModeRegister::FlushOperands, &[ModeRegister::FlushOperands.bits()]),
        ];

        fn known(gpu: &Gpu) -> Known {
            Known { ordinal: gpu.ordinal, name: gpu.name.clone(), target: gpu.target().to_string() }
        }

        fn is_target(gpu: &Gpu, target: &str) -> bool {
            target == gpu.target()
        }

        fn properties(gpu: &Gpu, _: &Architecture) -> Vec<(String, String)> {
            let default = ModeRegister::Default.bits();
            vec![
                ("compiled for".to_string(), gpu.architecture.clone()),
                (
                    "driver".to_string(),
                    driver::release().unwrap_or_else(|| "of the system's kernel".to_string()),
                ),
                ("HIP runtime".to_string(), gpu.runtime_version()),
                ("compute units".to_string(), gpu.compute_units.to_string()),
                ("MODE".to_string(), format!("{default:#04x} in bits 7:0 unless in a mode")),
                ("modifiers".to_string(), "CBSZ, ABID, BLGP and OPSEL 0, but for formats".to_string()),
            ]
        }

        fn is_ours(architecture: &Architecture) -> bool {
            super::is_ours(architecture)
        }

        fn program(family: &Family, (m, n): (usize, usize), _: &str) -> Option<Result<Program, Unsupported>> {
            family.hip_spec(m, n).map(|spec| Program::new(&spec))
        }
    }
}
