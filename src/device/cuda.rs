//! `cuda[:N]`: an attached NVIDIA GPU, asked through its driver.

use mmaprobe_kernels::cuda::driver::{self, Driver, Gpu};
use mmaprobe_kernels::cuda::{Kind, Program};
use mmaprobe_kernels::instruction::Unsupported;

use super::gpu::{Attached, Known, Mode, Vendor};
use crate::catalog::{Architecture, Family};

/// An NVIDIA GPU.
pub type Cuda = Attached<Nvidia>;

/// NVIDIA's GPUs.
pub struct Nvidia;

impl Vendor for Nvidia {
    type Runtime = Driver;

    const PREFIX: &'static str = "cuda";
    const MODES: &'static [Mode] = &[Mode { suffix: None, words: "", parameters: &[] }];

    fn known(gpu: &Gpu) -> Known {
        Known { ordinal: gpu.ordinal, name: gpu.name.clone(), target: gpu.target() }
    }

    fn is_target(gpu: &Gpu, target: &str) -> bool {
        target.trim_end_matches('a') == gpu.target()
    }

    fn properties(gpu: &Gpu, architecture: &Architecture) -> Vec<(String, String)> {
        let mut properties = vec![
            ("compute capability".to_string(), format!("{}.{}", gpu.capability.0, gpu.capability.1)),
            ("driver".to_string(), driver::release().unwrap_or_else(|| "unknown release".to_string())),
            ("CUDA of the driver".to_string(), gpu.cuda_version()),
            ("multiprocessors".to_string(), gpu.multiprocessors.to_string()),
        ];
        if let Some(assembled) = &architecture.assembled {
            let fact = format!("one instruction each, as {} assembles them", assembled.by);
            properties.push(("machine code".to_string(), fact));
        }
        properties
    }

    fn is_ours(architecture: &Architecture) -> bool {
        is_ours(architecture)
    }

    fn program(
        family: &Family,
        (m, n): (usize, usize),
        target: &str,
    ) -> Option<Result<Program, Unsupported>> {
        family.cuda_spec(m, n).map(|spec| Program::new(&spec, target))
    }
}

/// Whether kernels here run instructions of an architecture.
pub fn is_ours(architecture: &Architecture) -> bool {
    architecture.families.iter().any(|family| Kind::named(&family.kernel).is_some())
}
