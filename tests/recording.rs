//! Recordings: what is recorded is replayed, and what is not there is not made up.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use mmaprobe::device::record::Recorder;
use mmaprobe::device::replay::Replay;
use mmaprobe::device::{Batch, Device, DeviceError, Fault, Identity, Instruction, Provenance};
use mmaprobe::inference::separate::Inseparable;
use mmaprobe::inference::{self, Conclusion, Options, Silent};
use mmaprobe::model::format::{E2M1, FP16, FP32, UE8M0};
use mmaprobe::model::tree::Scale;
use mmaprobe::probes::Edition;

/// Answers every run with the number of runs before it, in every byte.
struct Counter {
    identity: Identity,
    instructions: Vec<Instruction>,
    runs: AtomicU8,
}

impl Counter {
    fn new(provenance: Provenance) -> Counter {
        let dot = Instruction {
            name: "dot4".into(),
            m: 1,
            n: 1,
            k: 4,
            a: FP16,
            b: FP16,
            c: FP32,
            d: FP32,
            scale: None,
            mode_of: None,
        };
        let mode = Instruction {
            name: "dot4-rz".into(),
            mode_of: Some(("dot4".into(), "rounds toward zero".into())),
            ..dot.clone()
        };
        let scale = Some(Scale { format: UE8M0, block: 32 });
        let mx = Instruction { name: "mx".into(), m: 3, n: 2, k: 64, a: E2M1, b: E2M1, scale, ..dot.clone() };
        let identity = Identity {
            name: "counter".into(),
            description: "counts \"its\" runs".into(),
            properties: vec![("z".into(), "first".into()), ("a".into(), "second".into())],
            provenance,
            absent: vec![("amx".into(), "no such unit".into())],
        };
        Counter { identity, instructions: vec![dot, mode, mx], runs: AtomicU8::new(0) }
    }
}

impl Device for Counter {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        if batch.count == 13 {
            return Err(DeviceError { device: "counter".into(), fault: Fault::Refused("13".into()) });
        }
        let run = self.runs.fetch_add(1, Ordering::SeqCst);
        Ok(vec![run; batch.count * instruction.bytes().d])
    }
}

fn recorder(path: &Path) -> Recorder<Box<dyn Device>> {
    let device: Box<dyn Device> = Box::new(Counter::new(Provenance::Measured));
    Recorder::create(device, path, false).unwrap()
}

/// A batch whose arrays depend on the seed.
fn batch(instruction: &Instruction, count: usize, seed: u8) -> Batch {
    let mut batch = Batch::zeros(instruction, count);
    for array in [&mut batch.a, &mut batch.b, &mut batch.c, &mut batch.sa, &mut batch.sb] {
        array.iter_mut().enumerate().for_each(|(index, byte)| *byte = (index as u8).wrapping_mul(seed));
    }
    batch
}

fn first(answer: Result<Vec<u8>, DeviceError>) -> u8 {
    answer.unwrap()[0]
}

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("evidence.rec");
    (directory, path)
}

/// Offsets of the members of a recording that was written here.
fn members(bytes: &[u8]) -> Vec<usize> {
    let start = &bytes[..10];
    (0..bytes.len()).filter(|&offset| bytes[offset..].starts_with(start)).collect()
}

fn open_fails(path: &Path, texts: &[&str]) {
    let error = Replay::open(path).err().expect("it opens");
    assert_eq!(error.device, format!("replay:{}", path.display()));
    assert!(matches!(error.fault, Fault::Recording(_)), "{error}");
    for text in texts.iter().chain([&path.to_str().unwrap()]) {
        assert!(error.to_string().contains(text), "{error} lacks {text:?}");
    }
}

#[test]
fn round_trip() {
    let (_directory, path) = directory();
    let device = recorder(&path);
    assert_eq!(device.path(), path);
    let [dot, mode, mx] = device.instructions() else { panic!() };
    let questions = [(dot, 1, 1), (mx, 7, 3), (mode, 1, 1), (dot, 100_000, 5), (dot, 2, 1), (dot, 0, 1)];
    for (instruction, count, seed) in questions {
        device.run(instruction, &batch(instruction, count, seed)).unwrap();
    }
    device.run(dot, &batch(dot, 13, 1)).unwrap_err();
    device.finish().unwrap();

    let replay = Replay::open(&path).unwrap();
    assert!(replay.warnings().is_empty());
    assert_eq!(replay.instructions(), device.instructions());
    let recorded = Identity { provenance: Provenance::Recorded, ..device.identity().clone() };
    assert_eq!(*replay.identity(), recorded);
    for (index, (instruction, count, seed)) in questions.into_iter().enumerate().rev() {
        let answer = replay.run(instruction, &batch(instruction, count, seed)).unwrap();
        assert_eq!(answer, vec![index as u8; count * 4 * instruction.m * instruction.n]);
    }
    replay.finish().unwrap();
}

#[test]
fn same_evidence_same_bytes() {
    let bytes = || {
        let (_directory, path) = directory();
        let device = recorder(&path);
        let dot = &device.instructions()[0];
        device.run(dot, &batch(dot, 3, 1)).unwrap();
        fs::read(&path).unwrap()
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn zcat_reads_it() {
    let (_directory, path) = directory();
    let device = recorder(&path);
    let dot = &device.instructions()[0];
    device.run(dot, &batch(dot, 3, 1)).unwrap();
    let output = Command::new("gzip").arg("-dc").stdin(fs::File::open(&path).unwrap()).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("{\"mmaprobe-recording\":1,"), "{text}");
    assert!(text.contains("{\"instruction\":\"dot4\",\"count\":3,\"bytes\":{\"a\":24,"), "{text}");
}

#[test]
fn repeats_come_in_order() {
    let (_directory, path) = directory();
    let device = recorder(&path);
    let dot = &device.instructions()[0];
    for seed in [1, 2, 1, 1, 2] {
        device.run(dot, &batch(dot, 3, seed)).unwrap();
    }
    let replay = Replay::open(&path).unwrap();
    let answers = |seeds: &[u8]| -> Vec<u8> {
        seeds.iter().map(|&seed| first(replay.run(dot, &batch(dot, 3, seed)))).collect()
    };
    assert_eq!(answers(&[2, 1, 1, 1, 1, 1, 2, 2, 2]), [1, 0, 2, 3, 3, 3, 4, 4, 4]);
}

#[test]
fn unknown_questions() {
    let (_directory, path) = directory();
    let device = recorder(&path);
    let [dot, mode, _] = device.instructions() else { panic!() };
    device.run(dot, &batch(dot, 3, 1)).unwrap();
    let replay = Replay::open(&path).unwrap();
    let mut other = batch(dot, 3, 1);
    *other.c.last_mut().unwrap() ^= 0x80;
    // Other bytes, another count, the same bytes for another instruction.
    for (instruction, question) in [(dot, other), (dot, batch(dot, 2, 1)), (mode, batch(mode, 3, 1))] {
        let error = replay.run(instruction, &question).unwrap_err();
        assert_eq!(error.device, format!("replay:{}", path.display()));
        let Fault::NotRecorded(message) = &error.fault else { panic!("{error}") };
        assert!(message.contains(&format!("`{}`", instruction.name)), "{message}");
    }
    assert_eq!(first(replay.run(dot, &batch(dot, 3, 1))), 0);
}

#[test]
fn provenance() {
    for (live, replayed) in [
        (Provenance::Measured, Provenance::Recorded),
        (Provenance::Recorded, Provenance::Recorded),
        (Provenance::Simulated, Provenance::Simulated),
    ] {
        let (_directory, path) = directory();
        Recorder::create(Counter::new(live), &path, false).unwrap();
        assert_eq!(Replay::open(&path).unwrap().identity().provenance, replayed);
    }
}

#[test]
fn nothing_is_overwritten_unasked() {
    let (_directory, path) = directory();
    fs::write(&path, "precious").unwrap();
    let counter = || Counter::new(Provenance::Measured);
    let error = Recorder::create(counter(), &path, false).err().unwrap();
    let text = error.to_string();
    assert!(matches!(error.fault, Fault::Recording(_)));
    assert!(
        text.contains("counter") && text.contains("exists already") && text.contains("evidence.rec"),
        "{text}"
    );
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    Recorder::create(counter(), &path, true).unwrap();
    Replay::open(&path).unwrap();
    let nowhere = path.join("x");
    let error = Recorder::create(counter(), &nowhere, false).err().unwrap();
    assert!(matches!(error.fault, Fault::Recording(_)), "{error}");
}

/// Cut off at every byte: all complete batches are there, and a warning says where it ends.
#[test]
fn truncated_anywhere() {
    let (_directory, path) = directory();
    let device = recorder(&path);
    let dot = &device.instructions()[0];
    for seed in [1, 2, 3] {
        device.run(dot, &batch(dot, 50, seed)).unwrap();
    }
    device.finish().unwrap();
    let whole = fs::read(&path).unwrap();
    assert!(Replay::open(&path).unwrap().warnings().is_empty());
    let starts = members(&whole);
    assert_eq!(starts.len(), 5);
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        if length < starts[1] {
            open_fails(&path, &["nothing was recorded"]);
            continue;
        }
        let replay = Replay::open(&path).unwrap();
        let complete = starts[2..].iter().filter(|&&start| start <= length).count();
        let between = starts.contains(&length);
        let place =
            if between { format!("after batch {complete}") } else { format!("of batch {}", complete + 1) };
        assert!(replay.warnings()[0].contains(&place), "{length}: {:?}", replay.warnings());
        for seed in [1, 2, 3] {
            let answer = replay.run(dot, &batch(dot, 50, seed));
            if usize::from(seed) <= complete {
                assert_eq!(first(answer), seed - 1);
            } else {
                let error = answer.unwrap_err();
                assert!(matches!(error.fault, Fault::NotRecorded(_)));
                assert!(error.to_string().contains("ends early"), "{error}");
            }
        }
    }
}

/// Any byte of a batch in the middle damaged: either an error that names the batch, or – in bytes of
/// the gzip header that mean nothing – no change of any answer.
#[test]
fn damaged_anywhere() {
    let (_directory, path) = directory();
    let device = recorder(&path);
    let dot = &device.instructions()[0];
    for seed in [1, 2, 3] {
        device.run(dot, &batch(dot, 50, seed)).unwrap();
    }
    device.finish().unwrap();
    let whole = fs::read(&path).unwrap();
    let starts = members(&whole);
    let mut harmless = 0;
    for offset in starts[2]..starts[3] {
        let mut damaged = whole.clone();
        damaged[offset] ^= 0x41;
        fs::write(&path, &damaged).unwrap();
        match Replay::open(&path) {
            Err(error) => {
                assert!(matches!(error.fault, Fault::Recording(_)));
                let text = error.to_string();
                assert!(text.contains(&format!("batch 2, at byte {}, is damaged", starts[2])), "{text}");
            }
            Ok(replay) => {
                harmless += 1;
                assert!(replay.warnings().is_empty(), "{offset}: {:?}", replay.warnings());
                for seed in [1, 2, 3] {
                    assert_eq!(first(replay.run(dot, &batch(dot, 50, seed))), seed - 1);
                }
            }
        }
    }
    assert!(harmless <= 7, "time stamp, flags and system make 7 bytes, not {harmless}");

    // The checksum of the very last batch of a run that was interrupted: damaged, not cut off.
    let without_end = &whole[..starts[4]];
    let mut damaged = without_end.to_vec();
    damaged[without_end.len() - 6] ^= 1;
    fs::write(&path, &damaged).unwrap();
    open_fails(&path, &["batch 3, at byte", "checksum"]);
    // Something else behind it.
    fs::write(&path, [without_end, b"and so on, and so on"].concat()).unwrap();
    open_fails(&path, &["batch 4, at byte", "damaged"]);
    // Something behind the end.
    fs::write(&path, [&whole[..], &whole[starts[2]..starts[3]]].concat()).unwrap();
    open_fails(&path, &["goes on behind its end"]);
    // A batch taken out.
    fs::write(&path, [&whole[..starts[2]], &whole[starts[3]..]].concat()).unwrap();
    open_fails(&path, &["its end speaks of 3 batches, but there are 2"]);
}

#[test]
fn changed_after_opening() {
    let (_directory, path) = directory();
    let device = recorder(&path);
    let dot = &device.instructions()[0];
    device.run(dot, &batch(dot, 50, 1)).unwrap();
    let replay = Replay::open(&path).unwrap();
    fs::write(&path, b"").unwrap();
    let error = replay.run(dot, &batch(dot, 50, 1)).unwrap_err();
    assert!(matches!(error.fault, Fault::Recording(_)), "{error}");
}

/// Recordings say which questions were asked; those that do not are as old as the first edition.
#[test]
fn a_recording_keeps_the_edition_of_its_questions() {
    let (directory, path) = directory();
    let edition = |path: &Path| Replay::open(path).unwrap().edition();
    recorder(&path).finish().unwrap();
    assert_eq!(edition(&path), Edition::LATEST);
    let mut header = String::new();
    GzDecoder::new(&fs::read(&path).unwrap()[..]).read_to_string(&mut header).unwrap();
    let said = format!("\"questions\":{},", Edition::LATEST.number());
    assert_eq!(header.matches(&said).count(), 1, "{header}");

    fs::write(&path, gzip(&header.replace(&said, ""))).unwrap();
    assert_eq!(edition(&path), Edition::First);
    let again = directory.path().join("again.rec");
    let recorder = Recorder::create(Replay::open(&path).unwrap(), &again, false).unwrap();
    assert_eq!(recorder.edition(), Edition::First);
    recorder.finish().unwrap();
    assert_eq!(edition(&again), Edition::First);

    let next = Edition::LATEST.number() + 1;
    fs::write(&path, gzip(&header.replace(&said, &format!("\"questions\":{next},")))).unwrap();
    open_fails(&path, &[&format!("questions are of edition {next}"), "editions 1 to"]);
}

/// A recording that says of its questions what is not so.
struct Mistaken(Replay);

impl Device for Mistaken {
    fn identity(&self) -> &Identity {
        self.0.identity()
    }

    fn instructions(&self) -> &[Instruction] {
        self.0.instructions()
    }

    fn edition(&self) -> Edition {
        Edition::LATEST
    }

    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        self.0.run(instruction, batch)
    }
}

/// What a real GPU was asked in the first edition can be asked again, and only so; and recorded again.
#[test]
fn a_recording_of_the_first_edition_is_asked_as_it_was() {
    let h100 =
        || Replay::open(concat!(env!("CARGO_MANIFEST_DIR"), "/reports/measured/nvidia-h100-80gb-hbm3.rec"));
    assert_eq!(h100().unwrap().edition(), Edition::First);
    let characterize = |device: &dyn Device| {
        let instruction = device.instruction("mma.m16n8k8.f16.f16.f16.f16").unwrap();
        let options = Options { validate: 0, seed: 1 };
        inference::characterize(device, &instruction, &options, &Silent).map(|finding| finding.conclusion)
    };
    let Conclusion::Characterized(found) = characterize(&h100().unwrap()).unwrap() else {
        panic!("it is not characterized");
    };
    let error = characterize(&Mistaken(h100().unwrap())).unwrap_err();
    assert!(matches!(error.fault, Fault::NotRecorded(_)), "{error}");

    let (_directory, path) = directory();
    let recorder = Recorder::create(h100().unwrap(), &path, false).unwrap();
    characterize(&recorder).unwrap();
    recorder.finish().unwrap();
    let again = characterize(&Replay::open(&path).unwrap()).unwrap();
    assert!(matches!(again, Conclusion::Characterized(model) if model == found));
}

/// This GPU was never asked for sums of one sign. Significands below 2 and c add up to less than 4·K + 2 times the largest
/// power of two, which is beyond 2^5 with K = 8 and beyond 2^6 with K = 16: no more bits for carries than that are told apart
/// from any number by an input, and more are by none.
#[test]
fn what_a_recording_was_never_asked_is_left_open() {
    let h100 = concat!(env!("CARGO_MANIFEST_DIR"), "/reports/measured/nvidia-h100-80gb-hbm3.rec");
    let h100 = Replay::open(h100).unwrap();
    for (name, most) in [("mma.m16n8k8.f32.f16.f16.f32", 5), ("mma.m16n8k16.f32.f16.f16.f32", 6)] {
        let instruction = h100.instruction(name).unwrap();
        let options = Options { validate: 0, seed: 1 };
        let finding = inference::characterize(&h100, &instruction, &options, &Silent).unwrap();
        let carries = |choices: &[Inseparable]| -> Vec<u32> {
            let carries = choices.iter().filter(|other| other.knob.what == "carry bits");
            let bits = carries.filter_map(|other| other.choice.split_once(", then the sum wraps"));
            bits.filter(|(_, how)| how.is_empty()).map(|(bits, _)| bits.parse().unwrap()).collect()
        };
        let [open, alike] = [&finding.unasked, &finding.inseparable].map(|choices| carries(choices));
        assert_eq!(open.iter().max(), Some(&most), "{name}: {open:?}");
        assert_eq!(alike.iter().min(), Some(&(most + 1)), "{name}: {alike:?}");
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn files_that_are_no_recordings() {
    let (directory, path) = directory();
    open_fails(&path, &["No such file"]);
    open_fails(directory.path(), &[]);
    for (bytes, text) in [
        (b"name: a sheet\n".to_vec(), "no recording"),
        (gzip("hello\n"), "no recording"),
        (gzip("{\"a\":1}\n"), "no recording"),
        (gzip("[1]\n"), "no recording"),
        (gzip("{\"mmaprobe-recording\":1}"), "no recording"),
        (
            gzip("{\"mmaprobe-recording\":2,\"new\":[]}\n"),
            "recording of version 2; this tool reads version 1",
        ),
        (gzip("{\"mmaprobe-recording\":1}\n"), "missing field"),
    ] {
        fs::write(&path, bytes).unwrap();
        open_fails(&path, &[text]);
    }
}

#[test]
fn absurd_batches() {
    let (_directory, path) = directory();
    recorder(&path);
    let header = fs::read(&path).unwrap();
    let huge = usize::MAX / 8;
    for (batch, text) in [
        ("{\"instruction\":\"dot4\",\"count\":1}\n".to_owned(), "missing field"),
        ("{\"instruction\":\"dot9\",\"count\":0,\"bytes\":{\"a\":0,\"b\":0,\"c\":0,\"sa\":0,\"sb\":0,\"d\":0}}\n".to_owned(), "dot9"),
        ("{\"instruction\":\"dot4\",\"count\":1,\"bytes\":{\"a\":8,\"b\":8,\"c\":4,\"sa\":0,\"sb\":0,\"d\":8}}\n".to_owned(), "other lengths"),
        ("{\"instruction\":\"dot4\",\"count\":1,\"bytes\":{\"a\":8,\"b\":8,\"c\":4,\"sa\":0,\"sb\":0,\"d\":4}}\n123".to_owned(), "shorter"),
        ("{\"instruction\":\"dot4\",\"count\":0,\"bytes\":{\"a\":0,\"b\":0,\"c\":0,\"sa\":0,\"sb\":0,\"d\":0}}\nmore".to_owned(), "goes on"),
        (format!("{{\"instruction\":\"dot4\",\"count\":{huge},\"bytes\":{{\"a\":{huge},\"b\":0,\"c\":0,\"sa\":0,\"sb\":0,\"d\":0}}}}\n"), "other lengths"),
        ("x".repeat(1 << 20), "does not end"),
    ] {
        fs::write(&path, [header.clone(), gzip(&batch)].concat()).unwrap();
        open_fails(&path, &["batch 1, at byte", text]);
    }
}

/// A disk that is full: a limit on the size of files, which takes a process of its own.
#[cfg(unix)]
#[test]
fn full_disk() {
    if let Some(path) = std::env::var_os("MMAPROBE_TEST_FULL_DISK") {
        let path = PathBuf::from(path);
        let device = recorder(&path);
        let dot = &device.instructions()[0];
        // Noise, which does not compress: about 2 KiB a batch.
        let mut state = 1u32;
        let mut noise = |batch: &mut Batch| {
            batch.a.iter_mut().for_each(|byte| {
                state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                *byte = (state >> 24) as u8;
            });
        };
        let mut kept = Vec::new();
        let error = loop {
            let mut question = batch(dot, 250, 1);
            noise(&mut question);
            match device.run(dot, &question) {
                Ok(answer) => kept.push((question, answer)),
                Err(error) => break error,
            }
        };
        let Fault::Recording(message) = &error.fault else { panic!("{error}") };
        assert!(message.contains("evidence.rec") && message.contains("kept"), "{message}");
        // Stopped for good, even for what would fit.
        assert_eq!(device.run(dot, &batch(dot, 1, 1)), Err(error.clone()));
        assert_eq!(device.finish(), Err(error));
        let replay = Replay::open(&path).unwrap();
        let place = format!("after batch {}", kept.len());
        assert!(
            replay.warnings()[0].contains(&place),
            "the cut-off batch is taken back: {:?}",
            replay.warnings()
        );
        assert!(kept.len() > 3);
        for (question, answer) in kept {
            assert_eq!(replay.run(dot, &question).unwrap(), answer);
        }
        return;
    }
    let (_directory, path) = directory();
    let status = Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" --exact recording::full_disk --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env("MMAPROBE_TEST_FULL_DISK", &path)
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    assert!(fs::metadata(&path).unwrap().len() > 1 << 12);
}
