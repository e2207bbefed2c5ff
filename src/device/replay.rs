//! `replay:FILE`: recorded evidence as a device.
//!
//! A replay answers exactly the questions that were recorded, with what was answered then. It goes
//! by the identity of the device that was recorded, so that a sheet made from it is the sheet of
//! the run itself, byte for byte, but for one thing: measured answers are called
//! [recorded](Provenance::Recorded). Answers of a model stay simulated.
//!
//! Only an index is kept in memory. Answers are read from the file when they are asked for.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use flate2::bufread::GzDecoder;
use mmaprobe_probes::Edition;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::description;
use super::record::{ArrayBytes, BatchHeader, End, Header, MAX_BATCH, VERSION};
use super::{Batch, Device, DeviceError, Fault, Identity, Instruction, Provenance};

/// Longest first line of a recording that is believed.
const HEADER_LIMIT: u64 = 64 << 20;
/// Longest line before a batch that is believed.
const LINE_LIMIT: u64 = 64 << 10;
/// How each gzip member that [`Recorder`](super::record::Recorder) writes begins: deflate, no flags,
/// no time.
const MEMBER_START: [u8; 8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0];

/// SHA-256 of the instruction's name, the count and the arrays of a question.
type Key = [u8; 32];

/// A recording as a device.
pub struct Replay {
    path: PathBuf,
    identity: Identity,
    instructions: Vec<Instruction>,
    /// The version of the tool that made the recording.
    tool: String,
    edition: Edition,
    batches: usize,
    warnings: Vec<String>,
    evidence: Mutex<Evidence>,
}

struct Evidence {
    file: File,
    answers: HashMap<Key, Answers>,
}

/// The answers to one question, in the order in which they were recorded.
#[derive(Default)]
struct Answers {
    places: Vec<Place>,
    /// The answer that comes next.
    next: usize,
}

/// Where a gzip member lies in the file.
#[derive(Clone, Copy)]
struct Place {
    offset: u64,
    length: u64,
}

/// What is wrong with a recording that was whole when it was opened.
const CHANGED: &str = "it has changed since it was opened";

impl Evidence {
    /// The bytes of a gzip member.
    fn member(&mut self, place: Place) -> io::Result<Vec<u8>> {
        let mut compressed = vec![0; usize::try_from(place.length).map_err(io::Error::other)?];
        self.file.seek(SeekFrom::Start(place.offset))?;
        self.file.read_exact(&mut compressed)?;
        Ok(compressed)
    }
}

impl Replay {
    /// Opens a recording and indexes it. That reads and checks all of it.
    ///
    /// A recording without its end, as a run leaves it that was interrupted or whose device failed,
    /// is good as far as it goes; [`warnings`](Replay::warnings) says so.
    ///
    /// # Errors
    /// If the file cannot be read, is no recording, is one of another version, or is damaged.
    pub fn open(path: impl Into<PathBuf>) -> Result<Replay, DeviceError> {
        let path = path.into();
        index(&path).map_err(|problem| DeviceError {
            device: device(&path),
            fault: Fault::Recording(format!("`{}`: {problem}", path.display())),
        })
    }

    /// What somebody who uses the recording should know: that it ends early.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Hands over every recorded batch and its answer, in the order in which they were recorded.
    ///
    /// # Errors
    /// If the recording cannot be read any more.
    pub fn each(&self, visit: &mut dyn FnMut(&Instruction, Batch, &[u8])) -> Result<(), DeviceError> {
        let mut places: Vec<Place> = {
            let evidence = self.evidence.lock().expect("no panic while reading the recording");
            evidence.answers.values().flat_map(|answers| answers.places.iter().copied()).collect()
        };
        places.sort_by_key(|place| place.offset);
        for place in places {
            let (instruction, batch, answer) = self.batch_at(place).map_err(|problem| DeviceError {
                device: device(&self.path),
                fault: Fault::Recording(format!("`{}`: {problem}", self.path.display())),
            })?;
            visit(instruction, batch, &answer);
        }
        Ok(())
    }

    /// The batch in a gzip member, and its answer.
    fn batch_at(&self, place: Place) -> io::Result<(&Instruction, Batch, Vec<u8>)> {
        let mut evidence = self.evidence.lock().expect("no panic while reading the recording");
        let compressed = evidence.member(place)?;
        drop(evidence);
        let mut member = BufReader::new(GzDecoder::new(&compressed[..]));
        let BatchHeader { instruction, count, bytes } = line(&mut member, LINE_LIMIT)?;
        let changed = || io::Error::other(CHANGED);
        let instruction = self.instructions.iter().find(|own| own.name == instruction).ok_or_else(changed)?;
        let ArrayBytes { a, b, c, sa, sb, d } = bytes;
        let mut array = |length: usize| {
            let mut array = Vec::new();
            match member.by_ref().take(length as u64).read_to_end(&mut array)? {
                read if read == length => Ok(array),
                _ => Err(changed()),
            }
        };
        let batch = Batch { count, a: array(a)?, b: array(b)?, c: array(c)?, sa: array(sa)?, sb: array(sb)? };
        let answer = array(d)?;
        Ok((instruction, batch, answer))
    }

    /// Where the next answer to the question lies, if it was recorded. After the last answer to a
    /// question that was asked repeatedly, the last remains.
    fn answer(&self, key: &Key, d_bytes: usize) -> io::Result<Option<Vec<u8>>> {
        let mut evidence = self.evidence.lock().expect("no panic while reading the recording");
        let Some(answers) = evidence.answers.get_mut(key) else { return Ok(None) };
        let place = answers.places[answers.next];
        answers.next = (answers.next + 1).min(answers.places.len() - 1);
        let compressed = evidence.member(place)?;
        // Others may read while this one is decompressed.
        drop(evidence);
        let mut member = BufReader::new(GzDecoder::new(&compressed[..]));
        let header: BatchHeader = line(&mut member, LINE_LIMIT)?;
        let ArrayBytes { a, b, c, sa, sb, d } = header.bytes;
        let question = (a + b + c + sa + sb) as u64;
        let skipped = io::copy(&mut member.by_ref().take(question), &mut io::sink())?;
        let mut answer = Vec::with_capacity(d_bytes);
        member.take(d_bytes as u64 + 1).read_to_end(&mut answer)?;
        if skipped != question || d != d_bytes || answer.len() != d_bytes {
            return Err(io::Error::other(CHANGED));
        }
        Ok(Some(answer))
    }
}

impl Device for Replay {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    fn edition(&self) -> Edition {
        self.edition
    }

    /// Answers to the same question come in the recorded order; asked from several threads at once,
    /// in the order in which they happen to ask.
    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        let error = |fault| DeviceError { device: device(&self.path), fault };
        let key = Question::new(&instruction.name, batch.count).of(batch);
        match self.answer(&key, batch.count * instruction.bytes().d) {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => {
                let mut message = format!(
                    "these {} problems for `{}` are not among the {} recorded batches; a recording answers only \
                     what was asked when it was made, so use the same options",
                    batch.count, instruction.name, self.batches
                );
                if self.tool != env!("CARGO_PKG_VERSION") {
                    message += &format!(" and the same tool, version {}", self.tool);
                }
                for warning in &self.warnings {
                    message += &format!("; {warning}");
                }
                Err(error(Fault::NotRecorded(message)))
            }
            Err(problem) => Err(error(Fault::Recording(format!("`{}`: {problem}", self.path.display())))),
        }
    }
}

/// The key of a question in the making.
struct Question(Sha256);

impl Question {
    fn new(instruction: &str, count: usize) -> Question {
        let mut hash = Sha256::new();
        // Lengths in front, so that no two questions give the same bytes. Those of the arrays follow
        // from the instruction and the count.
        hash.update((instruction.len() as u64).to_le_bytes());
        hash.update(instruction);
        hash.update((count as u64).to_le_bytes());
        Question(hash)
    }

    fn of(mut self, batch: &Batch) -> Key {
        batch.arrays().into_iter().for_each(|array| self.0.update(array));
        self.key()
    }

    fn key(self) -> Key {
        self.0.finalize().into()
    }
}

impl Write for Question {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn device(path: &Path) -> String {
    format!("replay:{}", path.display())
}

/// Reads and checks a recording from end to end.
fn index(path: &Path) -> Result<Replay, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (header, instructions) = read_header(&mut reader)?;
    let mut answers: HashMap<Key, Answers> = HashMap::new();
    let mut batches = 0;
    let mut ended = false;
    let mut warnings = Vec::new();
    let mut ends_early = |place: &str, batch| {
        warnings.push(format!(
            "the recording `{}` ends early, {place} batch {batch}: the run was interrupted or failed",
            path.display()
        ));
    };
    loop {
        let offset = reader.stream_position().map_err(|error| error.to_string())?;
        if reader.fill_buf().map_err(|error| error.to_string())?.is_empty() {
            if !ended {
                ends_early("after", batches);
            }
            break;
        }
        if ended {
            return Err(format!("it goes on behind its end, at byte {offset}"));
        }
        match read_member(&mut reader, &instructions) {
            Ok(Member::End(count)) if count == batches => ended = true,
            Ok(Member::End(count)) => {
                return Err(format!("its end speaks of {count} batches, but there are {batches}"));
            }
            Ok(Member::Batch(key)) => {
                let end = reader.stream_position().map_err(|error| error.to_string())?;
                answers.entry(key).or_default().places.push(Place { offset, length: end - offset });
                batches += 1;
            }
            Err(error) => {
                let cut_off = error.kind() == ErrorKind::UnexpectedEof;
                if !cut_off
                    || another_member_follows(&mut reader, offset).map_err(|error| error.to_string())?
                {
                    return Err(format!("batch {}, at byte {offset}, is damaged: {error}", batches + 1));
                }
                ends_early("in the middle of", batches + 1);
                break;
            }
        }
    }
    let edition = Edition::numbered(header.questions).ok_or_else(|| {
        let (questions, latest) = (header.questions, Edition::LATEST.number());
        format!("its questions are of edition {questions}; this tool knows editions 1 to {latest}")
    })?;
    let mut identity = header.identity;
    if identity.provenance == Provenance::Measured {
        identity.provenance = Provenance::Recorded;
    }
    let evidence = Mutex::new(Evidence { file: reader.into_inner(), answers });
    let tool = header.tool;
    Ok(Replay { path: path.into(), identity, instructions, tool, edition, batches, warnings, evidence })
}

/// Reads the first member.
fn read_header(reader: &mut BufReader<File>) -> Result<(Header, Vec<Instruction>), String> {
    let mut member = BufReader::new(GzDecoder::new(reader));
    let unread = |error: io::Error| match error.kind() {
        ErrorKind::UnexpectedEof => "it ends before its first line does; nothing was recorded".to_owned(),
        _ => format!("this is no recording of mmaprobe ({error})"),
    };
    let header: Value = line(&mut member, HEADER_LIMIT).map_err(unread)?;
    at_end(&mut member).map_err(unread)?;
    match header.get("mmaprobe-recording").map(|version| (version, version.as_u64())) {
        Some((_, Some(VERSION))) => {}
        Some((version, _)) => {
            return Err(format!("it is a recording of version {version}; this tool reads version {VERSION}"));
        }
        None => return Err("this is no recording of mmaprobe".into()),
    }
    let wrong = |problem: String| format!("its first line makes no sense: {problem}");
    let mut header: Header = serde_json::from_value(header).map_err(|error| wrong(error.to_string()))?;
    let mut instructions = Vec::new();
    for recorded in header.instructions.drain(..) {
        let instruction = recorded.description.instruction().map_err(wrong)?;
        instructions.push(Instruction { mode_of: recorded.mode_of, ..instruction });
    }
    description::check_names(&instructions).map_err(|problem| wrong(format!("instructions: {problem}")))?;
    Ok((header, instructions))
}

/// What follows the first member.
enum Member {
    /// A batch, with the key of its question.
    Batch(Key),
    /// The end, with the number of batches before it.
    End(usize),
}

/// Reads a member, to its checksum.
fn read_member(reader: &mut BufReader<File>, instructions: &[Instruction]) -> io::Result<Member> {
    let mut member = BufReader::new(GzDecoder::new(reader));
    let header: Value = line(&mut member, LINE_LIMIT)?;
    if header.get("end").is_some() {
        let End { end } = serde_json::from_value(header)?;
        at_end(&mut member)?;
        return Ok(Member::End(end));
    }
    let BatchHeader { instruction, count, bytes } = serde_json::from_value(header)?;
    let Some(known) = instructions.iter().find(|known| known.name == instruction) else {
        return Err(io::Error::other(format!("the instruction {instruction:?} is none of the device's")));
    };
    let each = known.bytes();
    let total = |bytes: usize| bytes.checked_mul(count);
    let sizes = [each.a, each.b, each.c, each.sa, each.sb, each.d].map(total);
    let ArrayBytes { a, b, c, sa, sb, d } = bytes;
    if sizes != [a, b, c, sa, sb, d].map(Some) || sizes.into_iter().flatten().any(|size| size > MAX_BATCH) {
        return Err(io::Error::other("the arrays have other lengths than their problems take"));
    }
    let asked = (a + b + c + sa + sb) as u64;
    let mut question = Question::new(&instruction, count);
    let read = io::copy(&mut member.by_ref().take(asked), &mut question)?
        + io::copy(&mut member.by_ref().take(d as u64), &mut io::sink())?;
    if read != asked + d as u64 {
        return Err(io::Error::other("the arrays are shorter than their problems take"));
    }
    at_end(&mut member)?;
    Ok(Member::Batch(question.key()))
}

/// Reads a line of JSON, of limited length.
fn line<T: DeserializeOwned>(member: &mut impl BufRead, limit: u64) -> io::Result<T> {
    let mut line = Vec::new();
    member.take(limit).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(io::Error::other("its first line does not end"));
    }
    serde_json::from_slice(&line).map_err(io::Error::other)
}

/// Makes sure that a member ends here; reading its end is what checks its checksum.
fn at_end(member: &mut impl BufRead) -> io::Result<()> {
    if member.fill_buf()?.is_empty() { Ok(()) } else { Err(io::Error::other("it goes on behind its end")) }
}

/// Whether another member begins somewhere behind the start of that one: then a member that seems to
/// end early was damaged, and not cut off.
fn another_member_follows(reader: &mut BufReader<File>, offset: u64) -> io::Result<bool> {
    reader.seek(SeekFrom::Start(offset + 1))?;
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest)?;
    Ok(rest.windows(MEMBER_START.len()).any(|window| window == MEMBER_START))
}
