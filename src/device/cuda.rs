//! `cuda[:N]`: an attached NVIDIA GPU, asked through its driver.
//!
//! What it offers is tried, not assumed: each instruction that the catalogue has for its architecture
//! is assembled by the driver's compiler when the device is opened, and those that are refused are
//! listed as absent, with the compiler's word.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use mmaprobe_kernels::cuda::driver::{self, Fault as DriverFault, Gpu, Kernel, Session};
use mmaprobe_kernels::cuda::layout::Fragment;
use mmaprobe_kernels::cuda::{Kind, Program};

use super::{Batch, Device, DeviceError, Fault, Identity, Instruction, Provenance};
use crate::catalog::{Architecture, Catalog, Family};

/// Bytes below which it is not worth it to start a thread.
const BYTES_PER_THREAD: usize = 1 << 20;

/// An NVIDIA GPU.
pub struct Cuda {
    identity: Identity,
    instructions: Vec<Instruction>,
    /// The families of the instructions that the GPU accepts.
    families: Vec<Family>,
    target: String,
    timeout: Duration,
    state: Mutex<State>,
}

struct State {
    session: Session,
    /// Kernels by instruction.
    loaded: HashMap<String, (Program, Kernel)>,
}

impl Cuda {
    /// Opens the GPU of that number; `name` is what it was asked for by. A launch may take `timeout`.
    ///
    /// # Errors
    /// If there is no driver or no such GPU, or its architecture is not in the catalogue, or it accepts
    /// none of the instructions.
    pub fn open(
        name: &str,
        ordinal: usize,
        catalog: &Catalog,
        timeout: Duration,
    ) -> Result<Cuda, DeviceError> {
        let error = |fault| DeviceError { device: name.to_string(), fault };
        let session = Session::open(ordinal).map_err(|fault| error(start(fault)))?;
        let gpu = session.gpu().clone();
        let Some((architecture, target)) = architecture(catalog, &gpu) else {
            return Err(error(Fault::Start(format!(
                "{} has the target {}, which no architecture of the catalogue has; describe it in a file \
                 for --catalog",
                gpu.name,
                gpu.target()
            ))));
        };
        let mut identity = identity(name, &gpu, architecture, &target);
        let mut state = State { session, loaded: HashMap::new() };
        let (mut instructions, mut families) = (Vec::new(), Vec::new());
        for family in &architecture.families {
            let (m, n) = family.smallest();
            let instruction = family.instruction(m, n);
            match load(&mut state, family, &instruction, &target) {
                Ok(()) => {
                    instructions.push(instruction);
                    families.push(family.clone());
                }
                Err(LoadError::Absent(reason)) => identity.absent.push((instruction.name, reason)),
                Err(LoadError::Fault(fault)) => return Err(error(fault)),
            }
        }
        if instructions.is_empty() {
            let reasons: Vec<String> =
                identity.absent.iter().map(|(name, reason)| format!("\n  {name}: {reason}")).collect();
            let problem = format!("{} accepts none of the instructions:{}", gpu.name, reasons.concat());
            return Err(error(Fault::Start(problem)));
        }
        Ok(Cuda { identity, instructions, families, target, timeout, state: Mutex::new(state) })
    }

    fn error(&self, fault: Fault) -> DeviceError {
        DeviceError { device: self.identity.name.clone(), fault }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while asking the GPU")
    }

    /// The family of an instruction that the GPU accepts.
    fn family(&self, instruction: &Instruction) -> Option<&Family> {
        let is_it = |family: &&Family| {
            family.has_shape(instruction.m, instruction.n)
                && family.instruction(instruction.m, instruction.n) == *instruction
        };
        self.families.iter().find(is_it)
    }
}

impl Device for Cuda {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    fn instruction(&self, name: &str) -> Result<Instruction, String> {
        match self.families.iter().find_map(|family| family.named(name)) {
            Some(result) => result.map_err(|no_such_shape| no_such_shape.to_string()),
            None => {
                let absent = self.identity.absent.iter().find(|(absent, _)| absent == name);
                Err(match absent {
                    Some((_, reason)) => format!("{} lacks '{name}': {reason}", self.identity.name),
                    None => format!(
                        "{} has no instruction '{name}'; {}",
                        self.identity.name,
                        super::listing(self)
                    ),
                })
            }
        }
    }

    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        let Some(family) = self.family(instruction) else {
            let problem = format!("there is no instruction {} here", instruction.name);
            return Err(self.error(Fault::Refused(problem)));
        };
        if !batch.fits(instruction) {
            let problem =
                format!("{}: the arrays are not those of {} problems", instruction.name, batch.count);
            return Err(self.error(Fault::Refused(problem)));
        }
        let mut d = vec![0; batch.count * instruction.bytes().d];
        if batch.count == 0 {
            return Ok(d);
        }
        let mut state = self.state();
        load(&mut state, family, instruction, &self.target).map_err(|problem| {
            self.error(match problem {
                LoadError::Absent(reason) => Fault::Refused(format!("{}: {reason}", instruction.name)),
                LoadError::Fault(fault) => fault,
            })
        })?;
        let State { session, loaded } = &mut *state;
        let (program, kernel) = &loaded[&instruction.name];
        let fragments = &program.fragments;
        let result = session.run(
            *kernel,
            program,
            batch.count.div_ceil(program.blocks),
            self.timeout,
            |first, groups, arrays| {
                let sources = batch.arrays();
                let each = [
                    Some(&fragments.a),
                    Some(&fragments.b),
                    Some(&fragments.c),
                    fragments.sa.as_ref(),
                    fragments.sb.as_ref(),
                ];
                for ((source, fragment), array) in sources.into_iter().zip(each).zip(arrays) {
                    if let Some(fragment) = fragment {
                        let range = problems(fragment, source.len(), first, groups);
                        pack(fragment, &source[range], array);
                    }
                }
            },
            |first, groups, array| {
                let range = problems(&fragments.d, d.len(), first, groups);
                unpack(&fragments.d, array, &mut d[range]);
            },
        );
        result.map_err(|fault| self.error(running(&instruction.name, fault)))?;
        Ok(d)
    }
}

/// The bytes of the problems of these groups in an array of a batch; the last group may be short.
fn problems(fragment: &Fragment, length: usize, first: usize, groups: usize) -> std::ops::Range<usize> {
    let group = fragment.problem_bytes() * fragment.blocks;
    first * group..length.min((first + groups) * group)
}

/// Packs on several threads: while the GPU computes, packing is what takes time.
fn pack(fragment: &Fragment, elements: &[u8], groups: &mut [u8]) {
    let (elements_each, groups_each) = shares(fragment, groups.len());
    thread::scope(|scope| {
        let mut pieces = elements.chunks(elements_each).zip(groups.chunks_mut(groups_each));
        let own = pieces.next();
        for (elements, groups) in pieces {
            scope.spawn(|| fragment.pack(elements, groups));
        }
        if let Some((elements, groups)) = own {
            fragment.pack(elements, groups);
        }
    });
}

/// Unpacks on several threads.
fn unpack(fragment: &Fragment, groups: &[u8], elements: &mut [u8]) {
    let (elements_each, groups_each) = shares(fragment, groups.len());
    thread::scope(|scope| {
        let mut pieces = elements.chunks_mut(elements_each).zip(groups.chunks(groups_each));
        let own = pieces.next();
        for (elements, groups) in pieces {
            scope.spawn(|| fragment.unpack(groups, elements));
        }
        if let Some((elements, groups)) = own {
            fragment.unpack(groups, elements);
        }
    });
}

/// Bytes of elements and of fragments that a thread packs or unpacks, of so many bytes of fragments.
///
/// These are threads of their own, not rayon's: whoever waits for rayon's threads takes up other work
/// meanwhile, which may ask this very GPU, and would wait for itself.
fn shares(fragment: &Fragment, bytes: usize) -> (usize, usize) {
    let groups = bytes / fragment.bytes();
    let each = groups.div_ceil(rayon::current_num_threads()).max(BYTES_PER_THREAD / fragment.bytes()).max(1);
    (each * fragment.problem_bytes() * fragment.blocks, each * fragment.bytes())
}

/// Why an instruction is not loaded.
enum LoadError {
    /// The GPU does not have it.
    Absent(String),
    /// Something is wrong with the GPU.
    Fault(Fault),
}

/// Loads an instruction's kernel, unless it is there.
fn load(
    state: &mut State,
    family: &Family,
    instruction: &Instruction,
    target: &str,
) -> Result<(), LoadError> {
    if state.loaded.contains_key(&instruction.name) {
        return Ok(());
    }
    let absent = |reason: String| LoadError::Absent(reason);
    let spec = family.cuda_spec(instruction.m, instruction.n);
    let spec = spec.ok_or_else(|| absent(format!("there is no kernel of the kind {}", family.kernel)))?;
    let program = Program::new(&spec, target).map_err(|unsupported| absent(unsupported.to_string()))?;
    let kernel = state.session.load(&program).map_err(|fault| match fault {
        DriverFault::Refused(_) | DriverFault::OldDriver { .. } => absent(fault.to_string()),
        fault => LoadError::Fault(start(fault)),
    })?;
    state.loaded.insert(instruction.name.clone(), (program, kernel));
    Ok(())
}

/// A fault before anything has run.
fn start(fault: DriverFault) -> Fault {
    Fault::Start(fault.to_string())
}

/// A fault while an instruction ran.
fn running(instruction: &str, fault: DriverFault) -> Fault {
    let during = format!("running {instruction}");
    match fault {
        DriverFault::TimedOut(limit) => Fault::TimedOut { during, limit },
        fault => Fault::Reported { during, message: fault.to_string() },
    }
}

/// The architecture of a GPU, and the target to compile for.
fn architecture<'c>(catalog: &'c Catalog, gpu: &Gpu) -> Option<(&'c Architecture, String)> {
    let plain = gpu.target();
    catalog.architectures().iter().filter(|architecture| is_ours(architecture)).find_map(|architecture| {
        // A target with its architecture's own features comes first in the catalogue.
        let target = architecture.targets.iter().find(|target| target.trim_end_matches('a') == plain)?;
        Some((architecture, target.clone()))
    })
}

/// Whether kernels here run instructions of an architecture.
pub fn is_ours(architecture: &Architecture) -> bool {
    architecture.families.iter().any(|family| Kind::named(&family.kernel).is_some())
}

/// The attached GPUs, each with the catalogue's architecture.
///
/// # Errors
/// If there are none, with the reason.
pub fn attached(catalog: &Catalog) -> Result<Vec<(Gpu, Option<&Architecture>)>, DriverFault> {
    let gpus = driver::gpus()?;
    Ok(gpus
        .into_iter()
        .map(|gpu| {
            let architecture = architecture(catalog, &gpu).map(|(architecture, _)| architecture);
            (gpu, architecture)
        })
        .collect())
}

/// Whether an attached GPU is the one of that name in the catalogue: all words of it are in the name
/// that the driver gives, and its target is the GPU's.
pub fn is_called(gpu: &Gpu, known: &crate::catalog::Gpu) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split([' ', '-', '_']).map(str::to_lowercase).filter(|word| !word.is_empty()).collect()
    };
    let attached = words(&gpu.name);
    known.target.trim_end_matches('a') == gpu.target()
        && known.names().any(|name| words(name).iter().all(|word| attached.contains(word)))
}

fn identity(name: &str, gpu: &Gpu, architecture: &Architecture, target: &str) -> Identity {
    let mut properties = vec![
        ("architecture".to_string(), architecture.title.clone()),
        ("compute capability".to_string(), format!("{}.{}", gpu.capability.0, gpu.capability.1)),
        ("target".to_string(), target.to_string()),
        ("driver".to_string(), driver::release().unwrap_or_else(|| "unknown release".to_string())),
        ("CUDA of the driver".to_string(), gpu.cuda_version()),
        ("multiprocessors".to_string(), gpu.multiprocessors.to_string()),
    ];
    if let Some(assembled) = &architecture.assembled {
        let fact = format!("one instruction each, as {} assembles them", assembled.by);
        properties.push(("machine code".to_string(), fact));
    }
    Identity {
        name: name.to_string(),
        description: gpu.name.clone(),
        properties,
        provenance: Provenance::Measured,
        absent: Vec::new(),
    }
}
