//! `mmaprobe devices`.

use std::time::Duration;

use serde::Serialize;

use super::{Failure, Outcome, print, print_json, width};
use crate::catalog::Catalog;
use crate::cli::Output;
use crate::device::Device;
use crate::device::cpu::Cpu;
use crate::device::cuda::Nvidia;
use crate::device::gpu::{self, Attached, Vendor};
#[cfg(feature = "hip")]
use crate::device::hip::Amd;
use crate::table;

/// What can be asked.
#[derive(Serialize)]
struct Offered {
    device: String,
    answers: String,
}

/// What cannot.
#[derive(Serialize)]
struct Lacking {
    unit: String,
    why: String,
}

#[derive(Serialize)]
struct Document {
    devices: Vec<Offered>,
    absent: Vec<Lacking>,
}

pub fn run(output: Output, catalog: &Catalog) -> Result<Outcome, Failure> {
    let mut rows = Vec::new();
    let mut absent = Vec::new();
    match Cpu::open() {
        Ok(cpu) => {
            let identity = cpu.identity();
            let base: Vec<&str> =
                cpu.instructions().iter().filter(|i| i.mode_of.is_none()).map(|i| i.name.as_str()).collect();
            rows.push(["cpu".to_string(), format!("{}: {}", identity.description, base.join(", "))]);
            absent.clone_from(&identity.absent);
        }
        Err(error) => absent.push(("cpu".to_string(), error.fault.to_string())),
    }
    gpus_of::<Nvidia>(catalog, &mut rows, &mut absent);
    #[cfg(feature = "hip")]
    gpus_of::<Amd>(catalog, &mut rows, &mut absent);
    #[cfg(not(feature = "hip"))]
    absent.push(("hip".to_string(), crate::device::hip::NOT_BUILT.to_string()));
    for architecture in catalog.architectures().iter().filter(|architecture| architecture.has_sheet()) {
        let gpus: Vec<&str> = architecture.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        let answers = format!("{}, simulated: {}", architecture.title, shortened(&gpus));
        rows.push([format!("sim:{}", architecture.name), answers]);
    }
    for (device, answers) in [
        ("sim:GPU, sim:TARGET", "the same by a GPU's name or ISA target: sim:mi300x, sim:sm_89"),
        ("exec:COMMAND", "any program that speaks the device protocol (see examples/device.py)"),
        ("sheet:FILE", "a virtual device executing a parameter sheet"),
        ("replay:FILE", "a recording made with --record, answering what was recorded"),
    ] {
        rows.push([device.to_string(), answers.to_string()]);
    }
    if output == Output::Json {
        let offered = rows.into_iter().map(|[device, answers]| Offered { device, answers });
        let lacking = absent.into_iter().map(|(unit, why)| Lacking { unit, why });
        print_json(&Document { devices: offered.collect(), absent: lacking.collect() })?;
        return Ok(Outcome::Held);
    }
    let mut text = table::plain(["--device", "what answers"], &rows, width());
    if !absent.is_empty() {
        text.push_str("\nNot here:\n");
        let absent: Vec<[String; 2]> = absent.into_iter().map(|(name, reason)| [name, reason]).collect();
        text.push_str(&table::plain(["unit", "why"], &absent, width()));
    }
    print(&text)?;
    Ok(Outcome::Held)
}

/// How long a GPU may take for anything; listing runs nothing on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The GPUs of a vendor, or why there are none.
fn gpus_of<V: Vendor>(catalog: &Catalog, rows: &mut Vec<[String; 2]>, absent: &mut Vec<(String, String)>) {
    let gpus = match gpu::attached::<V>(catalog) {
        Ok(gpus) => gpus,
        Err(fault) => return absent.push((V::PREFIX.to_string(), fault.to_string())),
    };
    for (gpu, _) in gpus {
        let known = V::known(&gpu);
        let device = format!("{}:{}", V::PREFIX, known.ordinal);
        match Attached::<V>::open(&device, known.ordinal, catalog, PATIENCE) {
            Ok(gpu) => {
                rows.push([device, of_gpu(&gpu)]);
                absent.extend(gpu.identity().absent.iter().cloned());
            }
            Err(error) => absent.push((device, format!("{}: {}", known.name, error.fault))),
        }
    }
}

/// A GPU in words: what it is called, its facts, and how many instructions it accepts.
fn of_gpu<V: Vendor>(gpu: &Attached<V>) -> String {
    let identity = gpu.identity();
    let facts: Vec<String> =
        identity.properties.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let (here, all) = (gpu.accepted(), gpu.accepted() + identity.absent.len());
    format!("{} ({}): accepts {here} of {all} instructions", identity.description, facts.join(", "))
}

/// The first few of a list.
fn shortened(names: &[&str]) -> String {
    const SHOWN: usize = 4;
    let more = if names.len() > SHOWN { ", …" } else { "" };
    names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ") + more
}
