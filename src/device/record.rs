//! Recording: every question and answer, written down as they happen.
//!
//! # The format, version 1
//! A recording is a series of gzip members, so that `zcat` reads it, each is checksummed, and what
//! was complete when the tool was interrupted stays readable. The first member is one line of JSON:
//!
//! ```text
//! {"mmaprobe-recording":1,"tool":VERSION,"questions":EDITION,"identity":{…},"instructions":[…]}
//! ```
//!
//! with instructions as the device protocol describes them, and `mode_of` where there is one. Without
//! `questions`, the [edition](Edition) of what was asked is the first. Every further member is a batch:
//! one line of JSON, and the arrays as the device protocol has them.
//!
//! ```text
//! {"instruction":NAME,"count":N,"bytes":{"a":…,"b":…,"c":…,"sa":…,"sb":…,"d":…}}
//! A B C SA SB D
//! ```
//!
//! The last member of a run that was neither interrupted nor failed says how many batches there are:
//!
//! ```text
//! {"end":BATCHES}
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use flate2::Compression;
use flate2::write::GzEncoder;
use mmaprobe_probes::Edition;
use serde::{Deserialize, Serialize};

use super::description::Description;
use super::{Batch, Device, DeviceError, Fault, Identity, Instruction};

/// The version of recordings that this tool writes and reads.
pub const VERSION: u64 = 1;

/// Bytes of the largest batch in a recording: a guard for the memory of whoever reads it.
pub(super) const MAX_BATCH: usize = 1 << 30;

/// The first line of a recording.
#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    #[serde(rename = "mmaprobe-recording")]
    pub version: u64,
    pub tool: String,
    /// The number of an [`Edition`].
    #[serde(default = "first_edition")]
    pub questions: u64,
    pub identity: Identity,
    pub instructions: Vec<RecordedInstruction>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct RecordedInstruction {
    #[serde(flatten)]
    pub description: Description,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_of: Option<(String, String)>,
}

/// Recordings that do not say the edition of their questions are older than the second.
fn first_edition() -> u64 {
    Edition::First.number()
}

/// The line that ends a recording.
#[derive(Serialize, Deserialize)]
pub(super) struct End {
    /// The number of batches.
    pub end: usize,
}

/// The line before the arrays of a batch.
#[derive(Serialize, Deserialize)]
pub(super) struct BatchHeader {
    pub instruction: String,
    pub count: usize,
    pub bytes: ArrayBytes,
}

/// Bytes of each array of a batch.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct ArrayBytes {
    pub a: usize,
    pub b: usize,
    pub c: usize,
    pub sa: usize,
    pub sb: usize,
    pub d: usize,
}

/// A device whose questions and answers are recorded.
///
/// A batch is in the file before its answer is passed on, so nothing is ever concluded from
/// evidence that is not there. Runs that fail are not recorded.
pub struct Recorder<D> {
    device: D,
    path: PathBuf,
    sink: Mutex<Sink>,
}

struct Sink {
    file: File,
    /// Length of the complete members.
    length: u64,
    /// Batches among them.
    batches: usize,
    failed: Option<DeviceError>,
}

impl<D: Device> Recorder<D> {
    /// Records the device into a new file; into one that exists, losing what it holds, only if
    /// `force` says so.
    ///
    /// # Errors
    /// If the file exists and `force` is not given, or if it cannot be written.
    pub fn create(device: D, path: impl Into<PathBuf>, force: bool) -> Result<Recorder<D>, DeviceError> {
        let path = path.into();
        let mut options = OpenOptions::new();
        options.write(true);
        if force {
            options.create(true).truncate(true)
        } else {
            options.create_new(true)
        };
        let file = options.open(&path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                fault(&device, &path, "exists already; it is overwritten only with --force")
            }
            _ => fault(&device, &path, error),
        })?;
        let header = Header {
            version: VERSION,
            tool: env!("CARGO_PKG_VERSION").into(),
            questions: device.edition().number(),
            identity: device.identity().clone(),
            instructions: device
                .instructions()
                .iter()
                .map(|instruction| RecordedInstruction {
                    description: Description::of(instruction),
                    mode_of: instruction.mode_of.clone(),
                })
                .collect(),
        };
        let mut sink = Sink { file, length: 0, batches: 0, failed: None };
        member(&header, &[])
            .and_then(|member| sink.append(&member))
            .map_err(|error| fault(&device, &path, error))?;
        Ok(Recorder { device, path, sink: Mutex::new(sink) })
    }

    /// Where the recording is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes to the file unless that has failed before; the first failure is final, because a
    /// recording with a gap would look complete.
    fn write(&self, action: impl FnOnce(&mut Sink) -> io::Result<()>) -> Result<(), DeviceError> {
        let mut sink = self.sink.lock().expect("no panic while writing the recording");
        if let Some(error) = &sink.failed {
            return Err(error.clone());
        }
        action(&mut sink).map_err(|error| {
            let problem = format!("{error}; what was recorded before is kept");
            let error = fault(&self.device, &self.path, problem);
            sink.failed = Some(error.clone());
            error
        })
    }
}

impl<D: Device> Device for Recorder<D> {
    fn identity(&self) -> &Identity {
        self.device.identity()
    }

    fn instructions(&self) -> &[Instruction] {
        self.device.instructions()
    }

    fn means_nan_bits(&self, instruction: &Instruction) -> bool {
        self.device.means_nan_bits(instruction)
    }

    fn edition(&self) -> Edition {
        self.device.edition()
    }

    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        // Before the question: once writing has failed, answers would be lost.
        self.write(|_| Ok(()))?;
        let d = self.device.run(instruction, batch)?;
        let header = BatchHeader {
            instruction: instruction.name.clone(),
            count: batch.count,
            bytes: ArrayBytes {
                a: batch.a.len(),
                b: batch.b.len(),
                c: batch.c.len(),
                sa: batch.sa.len(),
                sb: batch.sb.len(),
                d: d.len(),
            },
        };
        // Compressed outside the lock: threads need not wait for each other here.
        let [a, b, c, sa, sb] = batch.arrays();
        let member = member(&header, &[a, b, c, sa, sb, &d]);
        self.write(|sink| {
            sink.append(&member?)?;
            sink.batches += 1;
            Ok(())
        })?;
        Ok(d)
    }

    /// Finishes the device, ends the recording if that went well, and brings it to the disk in any
    /// case.
    fn finish(&self) -> Result<(), DeviceError> {
        let finished = self.device.finish();
        let written = self.write(|sink| {
            if finished.is_ok() {
                let end = End { end: sink.batches };
                sink.append(&member(&end, &[])?)?;
            }
            match sink.file.sync_all() {
                // Pipes and the like have no disk behind them.
                Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
                result => result,
            }
        });
        finished.and(written)
    }
}

impl Sink {
    /// Appends a member, or leaves the file as it was.
    fn append(&mut self, member: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(member) {
            // A truncated member is no loss, only less tidy: that this may fail, too, does not matter.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += member.len() as u64;
        Ok(())
    }
}

/// A gzip member of a line of JSON and arrays. Without a time stamp: the same evidence gives the
/// same bytes.
fn member(header: &impl Serialize, arrays: &[&[u8]]) -> io::Result<Vec<u8>> {
    if arrays.iter().map(|array| array.len()).sum::<usize>() > MAX_BATCH {
        return Err(io::Error::other(format!("a batch of more than {MAX_BATCH} bytes is not recorded")));
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut encoder, header)?;
    encoder.write_all(b"\n")?;
    for array in arrays {
        encoder.write_all(array)?;
    }
    encoder.finish()
}

fn fault(device: &impl Device, path: &Path, problem: impl std::fmt::Display) -> DeviceError {
    DeviceError {
        device: device.identity().name.clone(),
        fault: Fault::Recording(format!("`{}`: {problem}", path.display())),
    }
}
