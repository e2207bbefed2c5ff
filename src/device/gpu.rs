//! Attached GPUs, whoever made them: what is common to [`cuda`](super::cuda) and [`hip`](super::hip).
//!
//! What a GPU offers is tried, not assumed: each instruction that the catalogue has for its architecture
//! is compiled when the device is opened, and those that are refused are listed as absent, with the
//! compiler's word.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use mmaprobe_kernels::fault::Fault as RuntimeFault;
use mmaprobe_kernels::fragment::Fragment;
use mmaprobe_kernels::instruction::Unsupported;
use mmaprobe_kernels::stream::{Launch, Runtime, Session};

use super::{Batch, Device, DeviceError, Fault, Identity, Instruction, Provenance};
use crate::catalog::{Architecture, Catalog, Family};

/// Bytes below which it is not worth it to start a thread.
const BYTES_PER_THREAD: usize = 1 << 20;

/// Who makes a kind of GPU: what is asked of their kernels and runtime.
pub trait Vendor {
    /// Their runtime.
    type Runtime: Runtime;

    /// What comes before the number of a GPU, after `--device`.
    const PREFIX: &'static str;
    /// The modes in which each instruction is offered, the default first.
    const MODES: &'static [Mode];

    /// What is said of a GPU everywhere.
    fn known(gpu: &GpuOf<Self>) -> Known;
    /// Whether a target of the catalogue is that of a GPU.
    fn is_target(gpu: &GpuOf<Self>, target: &str) -> bool;
    /// Facts about a GPU, but for its architecture and target, for the head of a sheet.
    fn properties(gpu: &GpuOf<Self>, architecture: &Architecture) -> Vec<(String, String)>;
    /// Whether kernels here run instructions of an architecture.
    fn is_ours(architecture: &Architecture) -> bool;
    /// The kernel for an instruction of that shape; `None` if none is of its kind.
    fn program(
        family: &Family,
        shape: (usize, usize),
        target: &str,
    ) -> Option<Result<ProgramOf<Self>, Unsupported>>;
}

/// A GPU, as a vendor's runtime describes it.
pub type GpuOf<V> = <<V as Vendor>::Runtime as Runtime>::Gpu;
/// A vendor's kernel.
pub type ProgramOf<V> = <<V as Vendor>::Runtime as Runtime>::Program;
/// A loaded kernel.
type KernelOf<V> = <<V as Vendor>::Runtime as Runtime>::Kernel;

/// A setting of a GPU in which instructions are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// What follows an instruction's name in this mode; nothing in the default.
    pub suffix: Option<&'static str>,
    /// The mode in words.
    pub words: &'static str,
    /// What the kernel takes for it, after the number of groups.
    pub parameters: &'static [u32],
}

impl Mode {
    /// An instruction in this mode, as the device offers it.
    fn of(&self, base: &Instruction) -> Instruction {
        let Some(suffix) = self.suffix else { return base.clone() };
        Instruction {
            name: format!("{}.{suffix}", base.name),
            mode_of: Some((base.name.clone(), self.words.to_string())),
            ..base.clone()
        }
    }
}

/// What is said of a GPU everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its number.
    pub ordinal: usize,
    /// Its marketing name.
    pub name: String,
    /// Its ISA target, without any suffix.
    pub target: String,
}

impl Known {
    /// Whether it is the one of that name in the catalogue: all words of it are in the name that the
    /// runtime gives. Whether the target is the same is [asked](Vendor::is_target) apart.
    pub fn is_called(&self, known: &crate::catalog::Gpu) -> bool {
        let words = |text: &str| -> Vec<String> {
            text.split([' ', '-', '_']).map(str::to_lowercase).filter(|word| !word.is_empty()).collect()
        };
        let attached = words(&self.name);
        known.names().any(|name| words(name).iter().all(|word| attached.contains(word)))
    }
}

/// A GPU, and its architecture if the catalogue has it.
pub type InCatalog<'c, V> = (GpuOf<V>, Option<&'c Architecture>);

/// The attached GPUs of a vendor, each with the catalogue's architecture.
///
/// # Errors
/// If there are none, with the reason.
pub fn attached<V: Vendor>(catalog: &Catalog) -> Result<Vec<InCatalog<'_, V>>, RuntimeFault> {
    let gpus = V::Runtime::gpus()?;
    Ok(gpus
        .into_iter()
        .map(|gpu| {
            let architecture = architecture::<V>(catalog, &gpu).map(|(architecture, _)| architecture);
            (gpu, architecture)
        })
        .collect())
}

/// The architecture of a GPU, and the target to compile for.
fn architecture<'c, V: Vendor>(catalog: &'c Catalog, gpu: &GpuOf<V>) -> Option<(&'c Architecture, String)> {
    catalog.architectures().iter().filter(|architecture| V::is_ours(architecture)).find_map(|architecture| {
        // A target with its architecture's own features comes first in the catalogue.
        let target = architecture.targets.iter().find(|target| V::is_target(gpu, target))?;
        Some((architecture, target.clone()))
    })
}

/// An attached GPU.
pub struct Attached<V: Vendor> {
    identity: Identity,
    instructions: Vec<Instruction>,
    /// The families of the instructions that the GPU accepts.
    families: Vec<Family>,
    target: String,
    timeout: Duration,
    state: Mutex<State<V>>,
}

struct State<V: Vendor> {
    session: Session<V::Runtime>,
    /// Kernels by instruction, without its mode.
    loaded: HashMap<String, (ProgramOf<V>, KernelOf<V>)>,
}

impl<V: Vendor> Attached<V> {
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
    ) -> Result<Attached<V>, DeviceError> {
        let error = |fault| DeviceError { device: name.to_string(), fault };
        let session = Session::<V::Runtime>::open(ordinal).map_err(|fault| error(start(&fault)))?;
        let gpu = session.gpu().clone();
        let known = V::known(&gpu);
        let Some((architecture, target)) = architecture::<V>(catalog, &gpu) else {
            return Err(error(Fault::Start(format!(
                "{} has the target {}, which no architecture of the catalogue has; describe it in a file \
                 for --catalog",
                known.name, known.target
            ))));
        };
        let mut properties = vec![
            ("architecture".to_string(), architecture.title.clone()),
            ("target".to_string(), target.clone()),
        ];
        properties.extend(V::properties(&gpu, architecture));
        let mut identity = Identity {
            name: name.to_string(),
            description: known.name.clone(),
            properties,
            provenance: Provenance::Measured,
            absent: Vec::new(),
        };
        let mut state = State { session, loaded: HashMap::new() };
        let (mut instructions, mut families) = (Vec::new(), Vec::new());
        for family in &architecture.families {
            let (m, n) = family.smallest();
            let instruction = family.instruction(m, n);
            match load::<V>(&mut state, family, &instruction, &target) {
                Ok(()) => {
                    instructions.extend(V::MODES.iter().map(|mode| mode.of(&instruction)));
                    families.push(family.clone());
                }
                Err(LoadError::Absent(reason)) => identity.absent.push((instruction.name, reason)),
                Err(LoadError::Fault(fault)) => return Err(error(fault)),
            }
        }
        if instructions.is_empty() {
            let reasons: Vec<String> =
                identity.absent.iter().map(|(name, reason)| format!("\n  {name}: {reason}")).collect();
            let problem = format!("{} accepts none of the instructions:{}", known.name, reasons.concat());
            return Err(error(Fault::Start(problem)));
        }
        Ok(Attached { identity, instructions, families, target, timeout, state: Mutex::new(state) })
    }

    /// How many instructions the GPU accepts, modes not counted.
    pub fn accepted(&self) -> usize {
        self.families.len()
    }

    fn error(&self, fault: Fault) -> DeviceError {
        DeviceError { device: self.identity.name.clone(), fault }
    }

    fn state(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().expect("no panic while asking the GPU")
    }

    /// The family of an instruction that the GPU accepts, the instruction without its mode, and that.
    fn executed_by(&self, instruction: &Instruction) -> Option<(&Family, Instruction, &'static Mode)> {
        self.families.iter().filter(|family| family.has_shape(instruction.m, instruction.n)).find_map(
            |family| {
                let base = family.instruction(instruction.m, instruction.n);
                let mode = V::MODES.iter().find(|mode| mode.of(&base) == *instruction)?;
                Some((family, base, mode))
            },
        )
    }
}

impl<V: Vendor> Device for Attached<V> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    fn instruction(&self, name: &str) -> Result<Instruction, String> {
        if let Some(listed) = self.instructions.iter().find(|instruction| instruction.name == name) {
            return Ok(listed.clone());
        }
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
        let Some((family, base, mode)) = self.executed_by(instruction) else {
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
        load::<V>(&mut state, family, &base, &self.target).map_err(|problem| {
            self.error(match problem {
                LoadError::Absent(reason) => Fault::Refused(format!("{}: {reason}", instruction.name)),
                LoadError::Fault(fault) => fault,
            })
        })?;
        let State { session, loaded } = &mut *state;
        let (program, kernel) = &loaded[&base.name];
        let fragments = program.fragments();
        let result = session.run(
            *kernel,
            program,
            mode.parameters,
            batch.count.div_ceil(fragments.d.blocks),
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
        result.map_err(|fault| self.error(running(&instruction.name, &fault)))?;
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
fn load<V: Vendor>(
    state: &mut State<V>,
    family: &Family,
    instruction: &Instruction,
    target: &str,
) -> Result<(), LoadError> {
    if state.loaded.contains_key(&instruction.name) {
        return Ok(());
    }
    let absent = |reason: String| LoadError::Absent(reason);
    let program = V::program(family, (instruction.m, instruction.n), target);
    let program =
        program.ok_or_else(|| absent(format!("there is no kernel of the kind {}", family.kernel)))?;
    let program = program.map_err(|unsupported| absent(unsupported.to_string()))?;
    let kernel = state.session.load(&program).map_err(|fault| match fault.is_refusal() {
        true => absent(fault.to_string()),
        false => LoadError::Fault(start(&fault)),
    })?;
    state.loaded.insert(instruction.name.clone(), (program, kernel));
    Ok(())
}

/// A fault before anything has run.
fn start(fault: &RuntimeFault) -> Fault {
    Fault::Start(fault.to_string())
}

/// A fault while an instruction ran.
fn running(instruction: &str, fault: &RuntimeFault) -> Fault {
    let during = format!("running {instruction}");
    match fault {
        RuntimeFault::TimedOut(limit) => Fault::TimedOut { during, limit: *limit },
        fault => Fault::Reported { during, message: fault.to_string() },
    }
}
