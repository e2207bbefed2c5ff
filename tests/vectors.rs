//! Recordings of real GPUs against the published algorithm of each instruction.
//!
//! The recordings are not part of the project: `../shared/vectors` holds them, where it exists.

use std::path::Path;

use mmaprobe::model::Executor;
use mmaprobe::model::algorithms::{Algorithm, Conventions, Output, Types};
use mmaprobe::model::tree::ZeroTerms;
use mmaprobe::vectors::{self, Vector, Vectors};

/// The K of an instruction, from its shape: the file may have recorded fewer products.
fn k_of(instruction: &str) -> usize {
    let shape = instruction.split('.').find(|part| part.starts_with('m') && part.contains('k'));
    shape.and_then(|shape| shape.rsplit('k').next()).and_then(|k| k.parse().ok()).expect("a shape with a K")
}

/// The MMA-Sim paper's Table III, for the instructions that were recorded.
fn algorithm(recording: &Vectors) -> Algorithm {
    let [a, _, _, d] = recording.formats;
    let eight_bits = a.bytes == 1;
    let (fraction_bits, chain) = match (recording.arch.as_str(), eight_bits) {
        ("volta", _) => (23, 1),
        ("ampere" | "ada", false) => (24, 2),
        ("ada", true) => (13, 2),
        ("hopper", true) => (13, 1),
        ("hopper" | "blackwell", false) => (25, 1),
        (arch, _) => panic!("no algorithm for {} of {arch}", recording.instruction),
    };
    let output = match d.name {
        "fp16" => Output::Rne10,
        _ if eight_bits => Output::Rz13,
        _ => Output::Rz23,
    };
    match chain {
        1 => Algorithm::Fda { fraction_bits, output },
        chain => Algorithm::CoFda { fraction_bits, chain, output },
    }
}

/// How many dot-adds come out otherwise than they were recorded.
fn mismatches(recording: &Vectors, algorithm: &Algorithm, conventions: &Conventions) -> usize {
    let ([a, b, c, d], k) = (recording.formats, k_of(&recording.instruction));
    let types = Types { a, b, c, d, k, scale: None };
    let model = algorithm.model_under(&types, conventions).expect("a model");
    let mut executor = Executor::new(&model).expect("an executable model");
    let padded = |factors: &[u64]| {
        let mut factors = factors.to_vec();
        factors.resize(k, 0);
        factors
    };
    let differs = |vector: &&Vector| {
        let question = &vector.question;
        executor.dot_add(&padded(&question.a), &padded(&question.b), question.c, &[], &[]) != vector.d
    };
    recording.vectors.iter().filter(differs).count()
}

fn recordings() -> Option<Vec<(String, Vectors)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/vectors");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("NOT RUN: there are no recordings in {}", folder.display());
        return None;
    };
    let mut recordings: Vec<(String, Vectors)> = entries
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|path| {
            let recording = vectors::load(&path).expect("a recording");
            (path.file_name().expect("a name").to_string_lossy().into_owned(), recording)
        })
        .collect();
    recordings.sort_by(|x, y| x.0.cmp(&y.0));
    assert!(!recordings.is_empty(), "no recordings in {}", folder.display());
    Some(recordings)
}

#[test]
fn recordings_of_gpus_agree_with_their_published_algorithms() {
    let Some(recordings) = recordings() else { return };
    for (file, recording) in &recordings {
        assert!(!recording.vectors.is_empty(), "{file}");
        let algorithm = algorithm(recording);
        let mismatches = mismatches(recording, &algorithm, &Conventions::DEFAULT);
        println!("{file}: {algorithm}, {} dot-adds, {mismatches} mismatches", recording.vectors.len());
        assert_eq!(mismatches, 0, "{file}: {algorithm}");
    }
}

/// The recordings would not agree with another F.
#[test]
fn recordings_tell_one_precision_from_the_next() {
    let Some(recordings) = recordings() else { return };
    for (file, recording) in &recordings {
        for change in [-1, 1] {
            let mut algorithm = algorithm(recording);
            let (Algorithm::Fda { fraction_bits, .. } | Algorithm::CoFda { fraction_bits, .. }) =
                &mut algorithm
            else {
                unreachable!("only FDA and CoFDA were recorded");
            };
            *fraction_bits = fraction_bits.strict_add_signed(change);
            // What is rounded to fp16 keeps no trace of bits so far below.
            if recording.formats[3].name == "fp16" && *fraction_bits > 20 {
                continue;
            }
            let mismatches = mismatches(recording, &algorithm, &Conventions::DEFAULT);
            assert!(mismatches > 0, "{file}: {algorithm} agrees as well");
        }
    }
}

/// The exponents of zeros, and a floor under the largest one: what the table in
/// [`mmaprobe::model::algorithms`] says has to be decided by other evidence.
#[test]
fn recordings_leave_the_conventions_open() {
    let Some(recordings) = recordings() else { return };
    for (file, recording) in &recordings {
        for zeros in [ZeroTerms::Ignored, ZeroTerms::SumsCounted, ZeroTerms::Counted] {
            for floor in [None, Some(-133), Some(-126), Some(-21), Some(-19), Some(-15)] {
                let conventions = Conventions { zeros, floor };
                let mismatches = mismatches(recording, &algorithm(recording), &conventions);
                assert_eq!(mismatches, 0, "{file}: {conventions:?}");
            }
        }
    }
}
