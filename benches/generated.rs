//! A generated crate beside the tool: `cargo bench --bench generated`, or `cargo bench --bench generated --
//! cdna1` for some instructions only.
//!
//! Generates a crate from all published sheets, builds it with its default features, and lets its C library
//! and the tool simulate the same batches, in turns: matrices in memory to matrices in memory. Of each, the
//! shortest time counts, so that programs that run beside it count for little. For each algorithm, the
//! table says how long the crate takes, as a multiple of what the tool takes. Results that differ end it.

use std::ffi::{CString, c_char, c_int, c_void};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use libloading::{Library, Symbol};
use mmaprobe::device::sheet::simulate;
use mmaprobe::device::{Batch, Device, Instruction};
use mmaprobe::generate::identifiers::CrateName;
use mmaprobe::generate::{Source, generate, write};
use mmaprobe::model::Compiled;
use mmaprobe::model::compiled::Problems;
use mmaprobe::sheet;

mod support;

use support::{BATCH, random};

/// How long an instruction is looked at, and how often at least.
const LOOKED_AT: Duration = Duration::from_millis(200);
const TURNS: usize = 50;

/// An instruction that takes so much longer is named.
const FAR: f64 = 1.1;

type Find = unsafe extern "C" fn(*const c_char) -> usize;
type Array = *const c_void;
type Execute = unsafe extern "C" fn(usize, usize, Array, Array, Array, Array, Array, *mut c_void) -> c_int;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let sources = sources();
    let library = built(&sources);
    // SAFETY: the header of the crate declares the functions with these types.
    let (find, execute): (Symbol<Find>, Symbol<Execute>) = unsafe {
        (
            library.get(b"mma_models_find").expect("the crate's header declares it"),
            library.get(b"mma_models_execute").expect("the crate's header declares it"),
        )
    };
    let mut ratios: Vec<(String, f64)> = Vec::new();
    for source in &sources {
        let device = simulate(&source.sheet, source.name.clone()).expect("published sheets can be executed");
        for instruction in device.instructions() {
            let name = format!("{}/{}", source.name, instruction.name);
            if !name.contains(&only) {
                continue;
            }
            let qualified = CString::new(name.as_str()).expect("names have no zero bytes");
            // SAFETY: the string ends, and lives until the function returns.
            let index = unsafe { find(qualified.as_ptr()) };
            let model = device.model(&instruction.name).expect("the device's own instruction");
            let compiled = Compiled::new(model).expect("an executable model");
            let ratio = compare(instruction, &compiled, |batch, d| {
                let [a, b, c, sa, sb] =
                    [&batch.a, &batch.b, &batch.c, &batch.sa, &batch.sb].map(|array| array.as_ptr().cast());
                // SAFETY: each array has the bytes that so many problems of the instruction take.
                let done = unsafe { execute(index, batch.count, a, b, c, sa, sb, d.as_mut_ptr().cast()) };
                assert_eq!(done, 0, "{name}");
            });
            let entry = source.sheet.instructions.iter().find(|entry| entry.name == instruction.name);
            let algorithm = entry.and_then(|entry| entry.algorithm.split('(').next()).unwrap_or_default();
            ratios.push((algorithm.to_string(), ratio));
            if ratio > FAR {
                println!("{ratio:.3} {name}");
            }
        }
    }
    table(&ratios);
}

/// Every published sheet.
fn sources() -> Vec<Source> {
    let mut sources: Vec<Source> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("reports"))
        .expect("reports/ is there")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| Source {
            name: path.file_stem().and_then(|stem| stem.to_str()).expect("plain names").to_string(),
            sheet: sheet::load(&path).expect("a valid sheet"),
            recorded: None,
        })
        .collect();
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    sources
}

/// The C library of the crate.
fn built(sources: &[Source]) -> Library {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("benchmark/mma-models");
    let name = CrateName::new("mma-models").expect("a name that a crate can have");
    let files = generate(&name, sources).expect("published sheets make a crate");
    write(&folder, &files, true).expect("target/ can be written");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--offline", "--locked"]).current_dir(&folder);
    cargo.env_remove("CARGO_TARGET_DIR");
    assert!(cargo.status().expect("Cargo can be started").success());
    let file = std::env::consts::DLL_PREFIX.to_string() + "mma_models_c" + std::env::consts::DLL_SUFFIX;
    // SAFETY: nothing runs when the library is loaded.
    unsafe { Library::new(folder.join("target/release").join(file)) }.expect("the library was just built")
}

/// How long the crate takes for a batch, as a multiple of what the tool takes.
fn compare(instruction: &Instruction, tool: &Compiled, generated: impl Fn(&Batch, &mut [u8])) -> f64 {
    let &Instruction { m, n, .. } = instruction;
    let batch = random(instruction, (BATCH / (m * n)).max(1));
    let Batch { count, a, b, c, sa, sb } = &batch;
    let mut expected = vec![0; count * instruction.bytes().d];
    let mut d = expected.clone();
    let mut least = [Duration::MAX; 2];
    let (start, mut turns) = (Instant::now(), 0);
    while turns < TURNS || start.elapsed() < LOOKED_AT {
        least[0] = least[0].min(time(|| {
            tool.run(&Problems { count: *count, m, n, a, b, c, sa, sb }, &mut expected);
        }));
        least[1] = least[1].min(time(|| generated(&batch, &mut d)));
        turns += 1;
    }
    assert!(d == expected, "{}: the crate computes something else", instruction.name);
    least[1].as_secs_f64() / least[0].as_secs_f64()
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn table(ratios: &[(String, f64)]) {
    let mut algorithms: Vec<&str> = ratios.iter().map(|(algorithm, _)| algorithm.as_str()).collect();
    algorithms.sort_unstable();
    algorithms.dedup();
    println!("time of the generated crate / time of the tool");
    println!("{:12} {:>12} {:>7} {:>7} {:>7}", "", "instructions", "best", "median", "worst");
    let row = |name: &str, mut own: Vec<f64>| {
        own.sort_by(f64::total_cmp);
        let (median, worst) = (own[own.len() / 2], own[own.len() - 1]);
        println!("{name:12} {:12} {:7.3} {median:7.3} {worst:7.3}", own.len(), own[0]);
    };
    for algorithm in algorithms {
        row(algorithm, ratios.iter().filter(|(own, _)| own == algorithm).map(|(_, ratio)| *ratio).collect());
    }
    row("all", ratios.iter().map(|(_, ratio)| *ratio).collect());
}
