//! From what is said after `--device` to a device.

use std::path::Path;
use std::time::Duration;

use mmaprobe_kernels::cuda::driver::Gpu;

use super::Failure;
use crate::catalog::{Architecture, Catalog};
use crate::cli::{Record, Timeout};
use crate::device::cpu::Cpu;
use crate::device::cuda::{self, Cuda};
use crate::device::exec::Exec;
use crate::device::record::Recorder;
use crate::device::replay::Replay;
use crate::device::sim::{Sim, did_you_mean};
use crate::device::trees::Trees;
use crate::device::{Device, DeviceError, Fault, sheet};

/// Opens a device.
///
/// # Errors
/// If there is no such device, or it cannot be opened.
pub fn open(name: &str, timeout: Timeout, catalog: &Catalog) -> Result<Box<dyn Device>, Failure> {
    let timeout = Duration::from_secs_f64(timeout.device_timeout);
    match name.split_once(':') {
        None if name == "cpu" => Ok(Box::new(Cpu::open()?)),
        Some(("exec", command)) => Ok(Box::new(Exec::start(command, timeout)?)),
        Some(("sheet", path)) => Ok(Box::new(sheet::open(Path::new(path))?.0)),
        Some(("sim", name)) => Ok(Box::new(Sim::open(name, catalog)?)),
        Some(("replay", path)) => {
            let replay = Replay::open(Path::new(path))?;
            for warning in replay.warnings() {
                eprintln!("mmaprobe: {warning}");
            }
            Ok(Box::new(replay))
        }
        None if name == "cuda" => Ok(Box::new(Cuda::open(name, 0, catalog, timeout)?)),
        Some(("cuda", ordinal)) => {
            let ordinal = ordinal.parse().map_err(|_| {
                Failure::Usage(format!(
                    "'{name}': after cuda: the number of a GPU is expected, counted from 0"
                ))
            })?;
            Ok(Box::new(Cuda::open(name, ordinal, catalog, timeout)?))
        }
        None if catalog.find(name).is_some() => gpu(name, catalog, timeout),
        _ => Err(unknown(name, catalog)),
    }
}

/// A sheet's file goes for the device that executes it.
pub fn device_name(name: &str) -> String {
    let is_sheet = name.ends_with(".yaml") && Path::new(name).is_file();
    if is_sheet { format!("sheet:{name}") } else { name.to_string() }
}

/// The trees behind a device, if it is one that executes trees.
///
/// # Errors
/// If there is no such device.
pub fn trees(name: &str, catalog: &Catalog) -> Result<Option<Trees>, Failure> {
    Ok(match name.split_once(':') {
        Some(("sheet", path)) => Some(Trees::Sheet(sheet::open(Path::new(path))?.0)),
        Some(("sim", name)) => Some(Trees::Sim(Box::new(Sim::open(name, catalog)?))),
        _ => None,
    })
}

/// Nothing is called so.
pub fn unknown(name: &str, catalog: &Catalog) -> Failure {
    Failure::Usage(format!(
        "there is no device '{name}'{} (cpu, cuda[:N], sim:NAME, sheet:FILE, replay:FILE and exec:COMMAND are known)",
        did_you_mean(&catalog.near(name))
    ))
}

/// Opens the first attached GPU that a name of the catalogue stands for.
fn gpu(name: &str, catalog: &Catalog, timeout: Duration) -> Result<Box<dyn Device>, Failure> {
    let Some(found) = catalog.find(name) else { return Err(not_attached(name, catalog, String::new())) };
    if !cuda::is_ours(found.architecture) {
        let why = match found.architecture.is_of_processors() {
            true => "on a machine with this processor it is --device cpu".to_string(),
            false => format!("this build asks no GPU of {}", found.architecture.vendor),
        };
        return Err(not_attached(name, catalog, why));
    }
    let attached = match cuda::attached(catalog) {
        Ok(attached) => attached,
        Err(fault) => return Err(not_attached(name, catalog, fault.to_string())),
    };
    let is_wanted = |gpu: &Gpu, architecture: Option<&Architecture>| match found.gpu {
        Some(known) => cuda::is_called(gpu, known),
        // A target, if the name is one: an architecture can have several.
        None if name.starts_with("sm_") => name.trim_end_matches('a') == gpu.target(),
        None => architecture.is_some_and(|architecture| architecture.name == found.architecture.name),
    };
    match attached.iter().find(|(gpu, architecture)| is_wanted(gpu, *architecture)) {
        Some((gpu, _)) => Ok(Box::new(Cuda::open(name, gpu.ordinal, catalog, timeout)?)),
        None => {
            let list: Vec<String> =
                attached.iter().map(|(gpu, _)| format!("cuda:{} is {}", gpu.ordinal, gpu.name)).collect();
            Err(not_attached(name, catalog, format!("no such GPU is attached; {}", list.join(", "))))
        }
    }
}

/// The catalogue knows the GPU, and there is none.
fn not_attached(name: &str, catalog: &Catalog, why: String) -> Failure {
    let found = catalog.find(name);
    let what = found.map_or_else(|| name.to_string(), |found| found.describe());
    let instead = match found.is_some_and(|found| found.architecture.has_sheet()) {
        true => format!("--device sim:{name} simulates it"),
        false => "What it computes has not been published, so there is no simulation of it".to_string(),
    };
    let why = why.trim_end_matches('.').to_string();
    DeviceError { device: name.to_string(), fault: Fault::NotAttached { what, why, instead } }.into()
}

/// Wraps a device in a recorder, if a recording was asked for. `sources` is what was said after
/// `--device` and `--against`.
///
/// This creates or empties a file, so it comes after everything that may be wrong with the arguments.
///
/// # Errors
/// If the recording cannot be started, or would overwrite what a device is made of.
pub fn recorded(
    device: Box<dyn Device>,
    sources: &[&str],
    record: &Record,
) -> Result<Box<dyn Device>, Failure> {
    let Some(path) = &record.record else { return Ok(device) };
    if let Ok(target) = path.canonicalize() {
        let is_target = |file: &str| Path::new(file).canonicalize().is_ok_and(|file| file == target);
        for source in sources {
            if let Some(("sheet" | "replay", file)) = source.split_once(':')
                && is_target(file)
            {
                return Err(Failure::Usage(format!("--record {} would overwrite {source}", path.display())));
            }
        }
    }
    Ok(Box::new(Recorder::create(device, path, record.force)?))
}
