//! Every command of the README, run as it stands there: in its order, by a shell, in a folder that looks
//! like the sources. Where that would take minutes, less is asked of the same command; the list below says
//! what, and nothing is left out without a test that runs it elsewhere. The findings' commands run in
//! tests/findings.rs, which knows what each has to show.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::readme::{Readme, commands};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// What is asked instead, to be done in seconds.
const LESS: [(&str, &str); 9] = [
    // What is shown below the command comes from the virtual one, which another command has characterized before.
    ("mmaprobe characterize --device mi300x > cdna3.yaml", "cp found.yaml cdna3.yaml"),
    ("cargo run --release -- ", "mmaprobe "),
    ("--device cpu > cpu.yaml", "--device cpu --instruction vfmadd231ps --validate 500 > cpu.yaml"),
    ("--validate 20000", "--validate 200"),
    ("'*16x16x16_bf16' > found.yaml", "'*16x16x16_bf16' --validate 2000 > found.yaml"),
    (
        "--device sim:m1 > found.yaml",
        "--device sim:m1 --instruction fma32.vector.f32.f32.f32 --validate 200 > found.yaml",
    ),
    ("--sets 20000", "--sets 20"),
    ("--threads 1-2 --report", "--threads 1-2 --instruction vfmadd231ps --repetitions 1 --report"),
    ("-o cdna3-model && cd cdna3-model && cargo test", "-o cdna3-model"),
];

/// Commands that other tests run, and which.
const ELSEWHERE: [(&str, &str); 9] = [
    ("cargo test --workspace", "this is one of these tests"),
    ("MMAPROBE_TEST_SCALE=100 cargo test", "they are among these tests, on fewer inputs"),
    ("mmaprobe selftest", "tests/selftest.rs"),
    (
        "mmaprobe onboard cdna4 --isa gfx950 --device",
        "tests/onboard.rs, the_guide_leads_from_a_name_to_a_crate",
    ),
    ("cargo build --release --features hip", ".ci/run, which tests what it builds"),
    ("cargo run --release --example table4", "tests/proofs_command.rs asks the same queries"),
    ("cargo run --release --example error_correction", "tests/correction.rs"),
    ("mmaprobe show cdna4/", "the same"),
    ("cd cdna4/cdna4-model", "tests/generate.rs builds and tests crates"),
];

/// Devices that a machine may lack: then the command ends with 3, and says so.
const HARDWARE: [&str; 4] = ["--device cpu", "--device cuda", "--device hip", "throughput"];

/// Comparisons that find differences, and end with 1.
const DIFFERENT: [&str; 1] = ["mmaprobe diff sim:h100 sheet:reports/measured/"];

/// A folder with what the README's commands expect beside them.
fn workplace(place: &Path) -> PathBuf {
    let folder = place.join("mmaprobe");
    fs::create_dir(&folder).unwrap();
    let root = Path::new(ROOT);
    #[cfg(unix)]
    for name in ["examples", "reports", "catalog"] {
        std::os::unix::fs::symlink(root.join(name), folder.join(name)).unwrap();
    }
    #[cfg(unix)]
    if let Ok(shared) = root.join("../shared").canonicalize() {
        std::os::unix::fs::symlink(shared, place.join("shared")).unwrap();
    }
    // Two matrices of fp16, 16×16, as numpy writes them.
    for name in ["A.npy", "B.npy"] {
        let header = format!("{:<117}\n", "{'descr': '<f2', 'fortran_order': False, 'shape': (16, 16), }");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend((0..256u16).flat_map(|index| (0x3c00 + index).to_le_bytes()));
        fs::write(folder.join(name), bytes).unwrap();
    }
    folder
}

#[test]
#[cfg(unix)]
fn every_command_runs() {
    let place = tempfile::tempdir().unwrap();
    let folder = workplace(place.path());
    let binary = Path::new(env!("CARGO_BIN_EXE_mmaprobe")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let all = commands(&Readme::read().rest);
    assert!(all.len() >= 20, "{all:#?}");
    let mut used = Vec::new();
    let mut failed: Vec<String> = Vec::new();
    for command in &all {
        if let Some((beginning, _)) = ELSEWHERE.iter().find(|(beginning, _)| command.starts_with(beginning)) {
            used.push(*beginning);
            continue;
        }
        if command.contains("../shared/") && !place.path().join("shared").exists() {
            eprintln!("NOT RUN: {command}: there are no recordings beside the sources");
            continue;
        }
        let mut shorter = command.clone();
        for (much, less) in LESS {
            if shorter.contains(much) {
                used.push(much);
                shorter = shorter.replace(much, less);
            }
        }
        let mut shell = Command::new("bash");
        let run = shell.args(["-c", &shorter]).current_dir(&folder).env("PATH", &path).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        let is_absent =
            run.status.code() == Some(3) && HARDWARE.iter().any(|device| command.contains(device));
        let expected = i32::from(DIFFERENT.iter().any(|beginning| command.starts_with(beginning)));
        if run.status.code() != Some(expected) && !is_absent {
            failed.push(format!("{shorter}: {}\n{said}", run.status));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // The lists say nothing about commands that are gone.
    for text in LESS.iter().map(|(much, _)| much).chain(ELSEWHERE.iter().map(|(beginning, _)| beginning)) {
        assert!(used.contains(text), "no command of the README has: {text}");
    }
}

#[test]
fn the_table_of_commands_is_the_help() {
    let help = Command::new(env!("CARGO_BIN_EXE_mmaprobe")).arg("--help").output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    let (_, listed) = help.split_once("Commands:\n").unwrap();
    let listed = listed.lines().take_while(|line| !line.is_empty());
    let listed = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let readme = Readme::read().rest;
    let (_, table) = readme.split_once("## Commands\n").unwrap();
    let (table, _) = table.split_once("\n`mmaprobe").unwrap();
    for command in listed.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        let words = || table.lines().flat_map(|line| line.split([' ', ',']));
        assert!(words().any(|word| word == command), "the README's table lacks {command}");
    }
}
