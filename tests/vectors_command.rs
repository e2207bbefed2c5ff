//! `validate --vectors`: recordings held against a device.

use std::fmt::Write;
use std::path::Path;

use crate::sheets::{identity, instruction, mmaprobe, said, sheet};
use mmaprobe::device::simulated::Simulated;
use mmaprobe::model::{Executor, Model, format};
use mmaprobe::validation::Nans;
use mmaprobe::vectors::compare::compare;
use mmaprobe::vectors::{load, parse};

const NAME: &str = "mma.m16n8k4.f32.f16.f16.f32";

fn model() -> Model {
    Model::chain_of_fma(format::FP16, format::FP32, 4)
}

fn header(instruction: &str, k: usize) -> String {
    format!(
        "# gpu: T1\n# arch: test\n# instruction: {instruction}\n# a: fp16\n# b: fp16\n# c: fp32\n# d: fp32\n# k: {k}\n"
    )
}

/// Dot-adds of 3 products, answered by a chain of 4.
fn recording(count: u64) -> String {
    let model = model();
    let mut executor = Executor::new(&model).unwrap();
    let mut text = header(NAME, 3);
    for index in 0..count {
        let element = |place: u64| 0x3000 + (index * 2654435761 + place * 40503) % 0x0c00;
        let a: Vec<u64> = (0..3).map(element).collect();
        let b: Vec<u64> = (3..6).map(element).collect();
        let c = 0x3f80_0000 + index;
        let pad = |x: &[u64]| [x, &[0]].concat();
        let d = executor.dot_add(&pad(&a), &pad(&b), c, &[], &[]);
        for x in a.iter().chain(&b) {
            write!(text, "{x:04x} ").unwrap();
        }
        writeln!(text, "{c:08x} {d:08x}").unwrap();
    }
    text
}

/// A folder with a sheet and a recording of 600 dot-adds in `good.txt`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    sheet(folder.path(), &[(instruction(NAME, (16, 8), &model()), model())]);
    std::fs::write(folder.path().join("good.txt"), recording(600)).unwrap();
    folder
}

fn validate(folder: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    said(&mmaprobe(folder, &[&["validate", "--device", "sheet:sheet.yaml"], more].concat()))
}

#[test]
fn what_was_recorded_is_found_again() {
    let folder = folder();
    // Another n is the same instruction.
    std::fs::write(folder.path().join("n.txt"), recording(3).replace("m16n8k4", "m16n64k4")).unwrap();
    let (code, out, err) = validate(folder.path(), &["--vectors", "good.txt", "n.txt"]);
    assert_eq!(code, Some(0), "{err}");
    for word in ["good.txt", "n.txt", NAME, " 600 ", " 3 "] {
        assert!(out.contains(word), "{out}");
    }
}

#[test]
fn mismatches_are_counted_and_the_first_is_shown_for_any_number_of_threads() {
    let folder = folder();
    let mut lines: Vec<String> = recording(600).lines().map(str::to_string).collect();
    for wrong in [400, 300, 599] {
        let cut = lines[wrong].len() - 8;
        lines[wrong].replace_range(cut.., "40490fdb");
    }
    std::fs::write(folder.path().join("bad.txt"), lines.join("\n")).unwrap();
    let run = |threads| validate(folder.path(), &["--threads", threads, "--vectors", "good.txt", "bad.txt"]);
    let (code, out, _) = run("1");
    assert_eq!(code, Some(1));
    assert!(out.contains("\nbad.txt:301: the first of 3 mismatches\n  c       0x"), "{out}");
    assert!(out.contains("the other product is +0 · +0\n  T1 answered\n    0x40490fdb = "), "{out}");
    assert!(out.contains("sheet:sheet.yaml answers\n    0x"), "{out}");
    assert_eq!(run("2").1, out);
}

#[test]
fn nans_whose_bits_the_model_leaves_open_are_one() {
    let device = Simulated::new(identity(), vec![(instruction(NAME, (2, 2), &model()), model())]).unwrap();
    let vectors = parse(&(header(NAME, 1) + "7e00 3c00 0 7fffffff\n")).unwrap();
    let instruction = vectors.instruction_of(&device, None).unwrap();
    let mismatches = |nans| compare(&device, instruction, &vectors, nans, &|_| ()).unwrap().mismatches;
    assert_eq!(mismatches(Nans::AsOne), 0);
    assert_eq!(mismatches(Nans::Bits), 1);
}

#[test]
fn what_cannot_be_asked_is_refused_with_its_line() {
    let folder = folder();
    let good = recording(2);
    for (from, to, message) in [
        (NAME, "mma.x", "bad.txt: sheet:sheet.yaml has no instruction 'mma.x'"),
        ("# b: fp16", "# b: bf16", "bad.txt:5: b is bf16 here, and fp16 in mma.m16n8k4.f32.f16.f16.f32"),
        ("# d: fp32", "# d: fp23", "bad.txt:7: there is no format 'fp23'"),
        ("# k: 3", "# k: 5", "bad.txt:9: expected 12 columns (2·5 products' factors, c and d), found 8"),
        ("# gpu: T1\n", "", "bad.txt: the header lacks a line '# gpu: …'"),
    ] {
        std::fs::write(folder.path().join("bad.txt"), good.replace(from, to)).unwrap();
        let (code, out, err) = validate(folder.path(), &["--vectors", "good.txt", "bad.txt"]);
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert!(err.contains(message), "{err}");
    }
    let long = header(NAME, 5) + &"0 ".repeat(12) + "\n";
    std::fs::write(folder.path().join("bad.txt"), long).unwrap();
    let (code, _, err) = validate(folder.path(), &["--vectors", "bad.txt"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("bad.txt:8: k is 5, and mma.m16n8k4.f32.f16.f16.f32 adds 4 products only"), "{err}");
    let (code, _, err) = validate(folder.path(), &["--vectors", "none.txt"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("none.txt: No such file"), "{err}");
}

#[test]
fn another_instruction_can_be_named() {
    let folder = folder();
    std::fs::write(folder.path().join("x.txt"), recording(2).replace(NAME, "mma.x")).unwrap();
    let (code, _, err) = validate(folder.path(), &["--vectors", "x.txt"]);
    assert_eq!(code, Some(2));
    assert!(err.contains(&format!("--instruction can name another that takes them: {NAME}")), "{err}");
    assert_eq!(validate(folder.path(), &["--vectors", "x.txt", "--instruction", NAME]).0, Some(0));
    let (code, _, err) = validate(folder.path(), &["--vectors", "x.txt", "--instruction", "mma.y"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("no instruction 'mma.y'"), "{err}");
}

#[test]
fn one_thing_to_compare_with_is_needed_and_no_more() {
    let folder = folder();
    for more in [
        &[][..],
        &["--vectors"],
        &["--vectors", "good.txt", "--against", "cpu"],
        &["--vectors", "good.txt", "--sets", "5"],
    ] {
        assert_eq!(validate(folder.path(), more).0, Some(2), "{more:?}");
    }
    assert_eq!(validate(folder.path(), &["--against", "sheet:sheet.yaml", "--sets", "5"]).0, Some(0));
}

/// The recordings of real GPUs that the project was given are read as they are.
#[test]
fn recordings_of_gpus_are_read() {
    let folder = Path::new("/work/shared/vectors");
    let Ok(files) = std::fs::read_dir(folder) else {
        eprintln!("not run: {} is not here", folder.display());
        return;
    };
    let files: Vec<_> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    assert!(!files.is_empty());
    for path in files {
        assert!(load(&path).unwrap().vectors.len() > 1000);
    }
}
