//! From what is said after `--device` to a device.

use std::path::Path;
use std::time::Duration;

use super::Failure;
use crate::catalog::{Architecture, Catalog, Found};
use crate::cli::{Record, Timeout};
use crate::device::cpu::Cpu;
use crate::device::cuda::{self, Nvidia};
use crate::device::exec::Exec;
use crate::device::gpu::{self, Attached, GpuOf, Vendor};
use crate::device::hip;
#[cfg(feature = "hip")]
use crate::device::hip::Amd;
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
        None if name == "cuda" => numbered::<Nvidia>(name, "0", catalog, timeout),
        Some(("cuda", ordinal)) => numbered::<Nvidia>(name, ordinal, catalog, timeout),
        None if name == "hip" => numbered_hip(name, "0", catalog, timeout),
        Some(("hip", ordinal)) => numbered_hip(name, ordinal, catalog, timeout),
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
        "there is no device '{name}'{} (cpu, cuda[:N], hip[:N], sim:NAME, sheet:FILE, replay:FILE and exec:COMMAND are known)",
        did_you_mean(&catalog.near(name))
    ))
}

/// Opens the first attached GPU that a name of the catalogue stands for.
fn gpu(name: &str, catalog: &Catalog, timeout: Duration) -> Result<Box<dyn Device>, Failure> {
    let Some(found) = catalog.find(name) else { return Err(not_attached(name, catalog, String::new())) };
    if cuda::is_ours(found.architecture) {
        return gpu_of::<Nvidia>(name, &found, catalog, timeout);
    }
    #[cfg(feature = "hip")]
    if hip::is_ours(found.architecture) {
        return gpu_of::<Amd>(name, &found, catalog, timeout);
    }
    let why = match found.architecture.is_of_processors() {
        true => "on a machine with this processor it is --device cpu".to_string(),
        false if hip::is_ours(found.architecture) => hip::NOT_BUILT.to_string(),
        false => format!("there are no kernels for GPUs of {}", found.architecture.vendor),
    };
    Err(not_attached(name, catalog, why))
}

/// Opens the first attached GPU of a vendor that a name stands for.
fn gpu_of<V: Vendor + 'static>(
    name: &str,
    found: &Found,
    catalog: &Catalog,
    timeout: Duration,
) -> Result<Box<dyn Device>, Failure> {
    let attached = match gpu::attached::<V>(catalog) {
        Ok(attached) => attached,
        Err(fault) => return Err(not_attached(name, catalog, fault.to_string())),
    };
    let is_wanted = |gpu: &GpuOf<V>, architecture: Option<&Architecture>| match found.gpu {
        Some(known) => V::is_target(gpu, &known.target) && V::known(gpu).is_called(known),
        // A target, if the name is one: an architecture can have several.
        None if found.architecture.targets.iter().any(|target| target == name) => V::is_target(gpu, name),
        None => architecture.is_some_and(|architecture| architecture.name == found.architecture.name),
    };
    match attached.iter().find(|(gpu, architecture)| is_wanted(gpu, *architecture)) {
        Some((gpu, _)) => Ok(Box::new(Attached::<V>::open(name, V::known(gpu).ordinal, catalog, timeout)?)),
        None => {
            let describe = |(gpu, _): &(GpuOf<V>, _)| {
                let known = V::known(gpu);
                format!("{}:{} is {}", V::PREFIX, known.ordinal, known.name)
            };
            let list: Vec<String> = attached.iter().map(describe).collect();
            Err(not_attached(name, catalog, format!("no such GPU is attached; {}", list.join(", "))))
        }
    }
}

/// Opens the GPU of that number.
fn numbered<V: Vendor + 'static>(
    name: &str,
    ordinal: &str,
    catalog: &Catalog,
    timeout: Duration,
) -> Result<Box<dyn Device>, Failure> {
    let ordinal = ordinal.parse().map_err(|_| {
        Failure::Usage(format!(
            "'{name}': after {}: the number of a GPU is expected, counted from 0",
            V::PREFIX
        ))
    })?;
    Ok(Box::new(Attached::<V>::open(name, ordinal, catalog, timeout)?))
}

/// Opens the AMD GPU of that number.
#[cfg(feature = "hip")]
fn numbered_hip(
    name: &str,
    ordinal: &str,
    catalog: &Catalog,
    timeout: Duration,
) -> Result<Box<dyn Device>, Failure> {
    numbered::<Amd>(name, ordinal, catalog, timeout)
}

/// Says that a build without the feature has no such device.
#[cfg(not(feature = "hip"))]
fn numbered_hip(name: &str, _: &str, _: &Catalog, _: Duration) -> Result<Box<dyn Device>, Failure> {
    let fault = Fault::Start(hip::NOT_BUILT.to_string());
    Err(DeviceError { device: name.to_string(), fault }.into())
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
