//! Devices: whatever can be asked to compute D = A·B + C.
//!
//! Everything above sees a device through [`Device::run`] alone: bit patterns in, bit patterns out,
//! or a typed error.

pub mod apple;
pub mod cpu;
pub mod cuda;
pub mod exec;
pub mod gpu;
pub mod hip;
pub mod machine;
pub mod record;
pub mod replay;
pub mod sheet;
pub mod sim;
pub mod simulated;
pub mod trees;

pub(crate) mod description;

use std::time::Duration;

use mmaprobe_model::Format;
use mmaprobe_model::tree::Scale;
use mmaprobe_probes::{Edition, Signature};
use serde::{Deserialize, Serialize};

/// A matrix unit, real or virtual.
pub trait Device: Sync {
    /// Who answers. For people and for the head of a sheet; inference never looks at it.
    fn identity(&self) -> &Identity;

    /// The instructions that the device offers.
    fn instructions(&self) -> &[Instruction];

    /// An instruction by name: one of those [listed](Device::instructions), or one that differs from
    /// them in m and n alone, where a device takes many.
    ///
    /// # Errors
    /// Why there is none, as a sentence.
    fn instruction(&self, name: &str) -> Result<Instruction, String> {
        let listed = self.instructions().iter().find(|instruction| instruction.name == name);
        listed
            .cloned()
            .ok_or_else(|| format!("{} has no instruction '{name}'; {}", self.identity().name, listing(self)))
    }

    /// Computes D = A·B + C for each problem of the batch and returns D, row by row, one problem
    /// after another, each element little-endian in its format's bytes.
    ///
    /// Calls may come from several threads at once.
    ///
    /// # Errors
    /// If the device fails, or gives no answer that could be one.
    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError>;

    /// Whether a NaN answer of this instruction is meant bit for bit. A model whose NaN rule is
    /// unknown only says that there is a NaN.
    fn means_nan_bits(&self, _instruction: &Instruction) -> bool {
        true
    }

    /// The edition of the first questions that it can answer: of those that were asked when its answers were recorded, if
    /// they were.
    fn edition(&self) -> Edition {
        Edition::LATEST
    }

    /// Ends the session. Answers count as evidence only after this: some misbehaviour, such as a
    /// last payload that is too long, shows nowhere else.
    ///
    /// # Errors
    /// If the device turns out to have failed after all.
    fn finish(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn identity(&self) -> &Identity {
        (**self).identity()
    }

    fn instructions(&self) -> &[Instruction] {
        (**self).instructions()
    }

    fn instruction(&self, name: &str) -> Result<Instruction, String> {
        (**self).instruction(name)
    }

    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        (**self).run(instruction, batch)
    }

    fn means_nan_bits(&self, instruction: &Instruction) -> bool {
        (**self).means_nan_bits(instruction)
    }

    fn edition(&self) -> Edition {
        (**self).edition()
    }

    fn finish(&self) -> Result<(), DeviceError> {
        (**self).finish()
    }
}

/// Runs a batch, and checks that the answer has the length that the batch calls for.
///
/// # Errors
/// If the device fails, or the answer has another length.
pub fn run_checked(
    device: &dyn Device,
    instruction: &Instruction,
    batch: &Batch,
) -> Result<Vec<u8>, DeviceError> {
    let answer = device.run(instruction, batch)?;
    let expected = batch.count * instruction.bytes().d;
    if answer.len() == expected {
        return Ok(answer);
    }
    Err(DeviceError {
        device: device.identity().name.clone(),
        fault: Fault::Reply {
            during: format!("running {}", instruction.name),
            problem: format!("D has {} bytes, not {expected}", answer.len()),
        },
    })
}

/// The instructions of a device as the end of a sentence.
pub fn listing<D: Device + ?Sized>(device: &D) -> String {
    const SHOWN: usize = 20;
    let all = device.instructions();
    let names: Vec<&str> = all.iter().map(|i| i.name.as_str()).take(SHOWN).collect();
    match all.len() - names.len() {
        0 => format!("there are: {}", names.join(", ")),
        more => format!("there are: {} and {more} more", names.join(", ")),
    }
}

/// Who a device is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// What was given as `--device`, or a name in its place.
    pub name: String,
    /// One line for people: model, vendor.
    pub description: String,
    /// Further facts in the order to print them: driver, microcode, MXCSR.
    pub properties: Vec<(String, String)>,
    /// What a sheet made from its answers may call them.
    pub provenance: Provenance,
    /// What devices of this kind can have and this one lacks, with the reason.
    pub absent: Vec<(String, String)>,
}

/// Where answers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// Real hardware, or an external device, answering now.
    Measured,
    /// A recording of such answers.
    Recorded,
    /// A model, executed by this tool.
    Simulated,
    /// A publication; nothing has been asked.
    Published,
}

/// An instruction that a device offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its name; unique within the device.
    pub name: String,
    /// Rows of A and of D.
    pub m: usize,
    /// Columns of B and of D.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Format of A's elements.
    pub a: Format,
    /// Format of B's elements.
    pub b: Format,
    /// Format of C's elements.
    pub c: Format,
    /// Format of D's elements.
    pub d: Format,
    /// Block scales along K, if the instruction has them.
    pub scale: Option<Scale>,
    /// The instruction that this one is in another mode of the machine, and the mode in words:
    /// `("vfmadd231ps", "MXCSR rounds toward zero")`.
    pub mode_of: Option<(String, String)>,
}

impl Instruction {
    /// What it takes for one output element.
    pub fn signature(&self) -> Signature {
        Signature { k: self.k, a: self.a, b: self.b, c: self.c, d: self.d, scale: self.scale }
    }

    /// Bytes that each array takes for one problem: A, B, C, SA, SB and D.
    pub fn bytes(&self) -> ProblemBytes {
        let (blocks, scale_bytes) =
            self.scale.map_or((0, 0), |scale| (self.k / scale.block, scale.format.bytes));
        ProblemBytes {
            a: self.m * self.k * self.a.bytes,
            b: self.n * self.k * self.b.bytes,
            c: self.m * self.n * self.c.bytes,
            sa: self.m * blocks * scale_bytes,
            sb: self.n * blocks * scale_bytes,
            d: self.m * self.n * self.d.bytes,
        }
    }
}

/// Bytes of one problem in each array; see [`Instruction::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemBytes {
    /// m·k elements.
    pub a: usize,
    /// k·n elements.
    pub b: usize,
    /// m·n elements.
    pub c: usize,
    /// m·(k/block) scales.
    pub sa: usize,
    /// n·(k/block) scales.
    pub sb: usize,
    /// m·n elements.
    pub d: usize,
}

/// Independent problems for one instruction, laid out as the device protocol does: each array holds
/// all problems one after another; A row by row, B column by column, C row by row, elements
/// little-endian.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Number of problems.
    pub count: usize,
    /// A of all problems.
    pub a: Vec<u8>,
    /// B of all problems.
    pub b: Vec<u8>,
    /// C of all problems.
    pub c: Vec<u8>,
    /// Scales of A of all problems; empty without scales.
    pub sa: Vec<u8>,
    /// Scales of B of all problems; empty without scales.
    pub sb: Vec<u8>,
}

impl Batch {
    /// A batch of zeros for `count` problems.
    pub fn zeros(instruction: &Instruction, count: usize) -> Batch {
        let bytes = instruction.bytes();
        Batch {
            count,
            a: vec![0; count * bytes.a],
            b: vec![0; count * bytes.b],
            c: vec![0; count * bytes.c],
            sa: vec![0; count * bytes.sa],
            sb: vec![0; count * bytes.sb],
        }
    }

    /// Whether the arrays have the lengths that `count` problems of the instruction take.
    pub fn fits(&self, instruction: &Instruction) -> bool {
        let bytes = instruction.bytes();
        let each = [bytes.a, bytes.b, bytes.c, bytes.sa, bytes.sb];
        self.arrays().iter().zip(each).all(|(array, each)| Some(array.len()) == each.checked_mul(self.count))
    }

    /// The five arrays in the order in which they are sent.
    pub fn arrays(&self) -> [&[u8]; 5] {
        [&self.a, &self.b, &self.c, &self.sa, &self.sb]
    }
}

/// Reads element `index` of an array of elements of that format.
///
/// # Panics
/// If the array is too short.
#[inline]
pub fn element(array: &[u8], format: &Format, index: usize) -> u64 {
    let bytes = &array[index * format.bytes..][..format.bytes];
    match *bytes {
        [x] => x.into(),
        [x, y] => u16::from_le_bytes([x, y]).into(),
        [x, y, z, w] => u32::from_le_bytes([x, y, z, w]).into(),
        _ => u64::from_le_bytes(bytes.try_into().expect("elements have 1, 2, 4 or 8 bytes")),
    }
}

/// Writes element `index` of an array of elements of that format.
///
/// # Panics
/// If the array is too short.
#[inline]
pub fn set_element(array: &mut [u8], format: &Format, index: usize, bits: u64) {
    array[index * format.bytes..][..format.bytes].copy_from_slice(&bits.to_le_bytes()[..format.bytes]);
}

/// A device failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("device {device}: {fault}")]
pub struct DeviceError {
    /// The device's name, as given on the command line.
    pub device: String,
    /// What happened.
    pub fault: Fault,
}

/// What a device did wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It could not be started or opened.
    #[error("cannot be started: {0}")]
    Start(String),
    /// The hardware is known, and not there.
    #[error("{what}: {why}. {instead}")]
    NotAttached {
        /// The GPU or architecture.
        what: String,
        /// What is attached, or why that cannot be told.
        why: String,
        /// What to do instead.
        instead: String,
    },
    /// It speaks another version of the protocol.
    #[error("speaks protocol version {found}, this tool speaks version 1; update the device or the tool")]
    Version {
        /// The version it announced.
        found: String,
    },
    /// It describes itself in a way that makes no sense.
    #[error("describes its instructions wrongly: {0}")]
    Description(String),
    /// A reply is not what the protocol asks for.
    #[error("{during}: {problem}")]
    Reply {
        /// What was going on.
        during: String,
        /// What is wrong with the reply.
        problem: String,
    },
    /// It reported an error of its own.
    #[error("{during}: it reports: {message}")]
    Reported {
        /// What was going on.
        during: String,
        /// Its message.
        message: String,
    },
    /// It ended.
    #[error("{during}: it ended ({status}); see its standard error above")]
    Died {
        /// What was going on.
        during: String,
        /// Its exit status or signal.
        status: String,
    },
    /// It said nothing for too long.
    #[error("{during}: it said nothing for {} s; raise --device-timeout if it is only slow", .limit.as_secs_f64())]
    TimedOut {
        /// What was going on.
        during: String,
        /// The time limit.
        limit: Duration,
    },
    /// A recording cannot be written or read.
    #[error("recording {0}")]
    Recording(String),
    /// A recording has no answer to this question.
    #[error("{0}")]
    NotRecorded(String),
    /// The machine refuses something that the device needs.
    #[error("{0}")]
    Refused(String),
}
