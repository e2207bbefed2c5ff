//! Generated crates: they build, prove themselves, and compute what the sheet says, from Rust, from C and
//! as a device.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mmaprobe::device::sheet::simulate;
use mmaprobe::device::{Batch, Device};
use mmaprobe::generate::identifiers::CrateName;
use mmaprobe::generate::{Files, Source, generate, write};
use mmaprobe::sheet::schema::Absent;
use mmaprobe::sheet::{self, Entry, Status};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn source(path: &str) -> Source {
    let path = root().join(path);
    let name = path.file_stem().unwrap().to_str().unwrap().to_string();
    Source { name, sheet: sheet::load(&path).unwrap(), recorded: None }
}

/// A folder for a generated crate; what was built there in earlier runs is built no more.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated").join(name)
}

fn run(program: impl AsRef<OsStr>, arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    // Each crate builds as it would for anybody: in its own folder, under its own settings.
    for variable in ["CARGO_TARGET_DIR", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command.env("RUSTDOCFLAGS", "-D warnings").output().expect("the program can be started")
}

fn succeed(program: impl AsRef<OsStr>, arguments: &[&str], folder: &Path) -> String {
    let output = run(program, arguments, folder);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?} in {}:\n{stdout}\n{stderr}", folder.display());
    stdout.into_owned()
}

fn cargo(arguments: &str, folder: &Path) -> String {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    succeed(env!("CARGO"), &arguments, folder)
}

fn mmaprobe(arguments: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_mmaprobe"), arguments, root())
}

fn text<'f>(files: &'f Files, path: &str) -> &'f str {
    &files.iter().find(|(own, _)| own == path).unwrap_or_else(|| panic!("a file {path}")).1
}

const CPU: &str = "reports/measured/intel-xeon-6-207";

#[test]
fn the_sheet_of_a_cpu_becomes_a_crate_that_proves_itself() {
    let folder = folder("xeon-model");
    let path = folder.to_str().unwrap();
    let (sheet, recording) = (format!("{CPU}.yaml"), format!("{CPU}.rec"));
    let generated = mmaprobe(&["generate", &sheet, "--evidence", &recording, "-o", path, "--force"]);
    assert!(generated.status.success(), "{}", String::from_utf8_lossy(&generated.stderr));
    cargo("fmt --all --check", &folder);
    cargo("clippy --offline --locked --all-targets -- -D warnings", &folder);
    cargo("doc --offline --locked --no-deps", &folder);
    // Not optimised: compiling takes ten times as long as what is run then.
    let tested = cargo("test --offline --locked --config profile.dev.opt-level=0", &folder);
    for instruction in ["vdpbf16ps", "vfmadd231ph_rz", "vfmadd231pd"] {
        assert!(tested.contains(&format!("test {instruction} ... ok")), "{tested}");
    }
    // The crate is a device.
    let exec = format!("exec:{path}/target/debug/xeon-model");
    let device = format!("sheet:{sheet}");
    let compared = mmaprobe(&["validate", "--device", &device, "--against", &exec, "--sets", "2000"]);
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
    assert_eq!(String::from_utf8_lossy(&compared.stdout).matches(" equal").count(), 24);
    // Its tests notice another rounding.
    let module = folder.join("src/intel_xeon_6_207.rs");
    let honest = fs::read_to_string(&module).unwrap();
    fs::write(&module, honest.replace("Rounding::NearestTiesToEven", "Rounding::NearestTiesAway")).unwrap();
    let again = ["test", "--offline", "--config", "profile.dev.opt-level=0", "--test", "evidence"];
    let tested = run(env!("CARGO"), &again, &folder);
    assert!(String::from_utf8_lossy(&tested.stdout).contains("test vdpbf16ps ... FAILED"));
    fs::write(&module, honest).unwrap();
}

/// Bytes from xorshift64*, as `c/example.c` has them.
struct Pseudorandom(u64);

impl Pseudorandom {
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let next = |_| {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
        };
        (0..count).map(next).collect()
    }
}

/// What `c/example.c` has to print, computed by the tool.
fn checksums(sources: &[Source]) -> String {
    let mut random = Pseudorandom(1);
    let mut lines = String::new();
    for source in sources {
        let device = simulate(&source.sheet, source.name.clone()).unwrap();
        for instruction in device.instructions() {
            let bytes = instruction.bytes();
            let [a, b, c, sa, sb] =
                [bytes.a, bytes.b, bytes.c, bytes.sa, bytes.sb].map(|each| random.bytes(each));
            random.bytes(bytes.d);
            let d = device.run(instruction, &Batch { count: 1, a, b, c, sa, sb }).unwrap();
            let checksum = d.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
            lines += &format!("{}/{} {checksum:016x}\n", source.name, instruction.name);
        }
    }
    lines
}

#[test]
fn several_sheets_make_one_crate_for_rust_c_and_targets_without_std() {
    let sources = [source("reports/volta.yaml"), source("reports/turing.yaml"), scaled(), wild()];
    let folder = folder("mma-models");
    let files = generate(&CrateName::new("mma-models").unwrap(), &sources).unwrap();
    write(&folder, &files, true).unwrap();
    cargo("fmt --all --check", &folder);
    cargo("clippy --offline --locked --all-targets -- -D warnings", &folder);
    cargo("build --offline --locked", &folder);
    cargo("doc --offline --locked --no-deps", &folder);
    cargo("test --offline --locked --doc", &folder);
    cargo("test --offline --locked --test agreement", &folder);
    // C, linked both ways.
    let compile = |library: &[&str], output: &str| {
        let example = ["-Wall", "-Wextra", "-Werror", "-std=c99", "c/example.c", "-Ic/include", "-o", output];
        succeed("cc", &[&example[..], library].concat(), &folder);
        succeed(folder.join(output), &[], &folder)
    };
    let expected = checksums(&sources);
    let archive = "target/debug/libmma_models_c.a";
    assert_eq!(compile(&[archive, "-lpthread", "-ldl", "-lm"], "target/example-static"), expected);
    let run_path = format!("-Wl,-rpath,{}", folder.join("target/debug").display());
    let shared = ["-Ltarget/debug", "-lmma_models_c", &run_path];
    assert_eq!(compile(&shared, "target/example-shared"), expected);
    // The binary: one sheet by its own names, or all by qualified ones.
    let binary = folder.join("target/debug/mma-models");
    let compare = |device: &str, arguments: &str| {
        let exec = format!("exec:{}{arguments}", binary.display());
        mmaprobe(&["validate", "--device", device, "--against", &exec, "--sets", "200"])
    };
    let compared = compare("sim:volta", " volta");
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
    let refused = String::from_utf8_lossy(&compare("sim:volta", "").stderr).into_owned();
    assert!(refused.contains("no instruction in common") && refused.contains("turing/mma."), "{refused}");
    without_std(&folder);
}

/// What would be code, a comment's end, a doctest or a table's end if it were not taken for text.
const WILD: &str = "*/ \"; } \\ `a` | [b] <c> {d}\u{202e}\n}\ncompile_error!();\n*\\\n/\n\n    panic!(\"1\")\n\
                    ```rust\npanic!(\"2\")\n``` - x\n1. y \"#";

/// A sheet of which every text is wild, and whose names are keywords and alike.
fn wild() -> Source {
    let mut source = source("reports/volta.yaml");
    let visible: String = WILD.chars().filter(|c| !c.is_control()).collect();
    source.name = format!("loop {visible}");
    let sheet = &mut source.sheet;
    (sheet.device.name, sheet.device.description, sheet.tool) = (WILD.into(), WILD.into(), WILD.into());
    sheet.absent = vec![Absent { name: WILD.to_string(), reason: WILD.to_string() }];
    for (entry, name) in sheet.instructions.iter_mut().zip(["fn", "Fn", &visible]) {
        entry.name = name.to_string();
        (entry.algorithm, entry.summary) = (WILD.to_string(), WILD.repeat(9));
        entry.notes = vec![WILD.to_string(), WILD.repeat(9)];
        entry.evidence.iter_mut().for_each(|statement| statement.statement = WILD.to_string());
    }
    let left_out = Entry { name: WILD.to_string(), status: Status::Refuted, ..sheet.instructions[0].clone() };
    sheet.instructions.push(left_out);
    source
}

/// One instruction with block scales.
fn scaled() -> Source {
    let mut source = source("reports/rtx_blackwell.yaml");
    source.sheet.instructions.retain(|entry| entry.name == "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3");
    assert_eq!(source.sheet.instructions.len(), 1);
    source
}

/// Builds the core where there is no std: in a crate that brings a panic handler and an allocator of its
/// own, which std would not tolerate; and for a microcontroller, if that target is installed.
fn without_std(folder: &Path) {
    let user = folder.with_file_name("user-without-std");
    fs::create_dir_all(user.join("src")).unwrap();
    let manifest = "[workspace]\n\n[package]\nname = \"user\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
                    [lib]\ncrate-type = [\"staticlib\"]\n\n[profile.dev]\npanic = \"abort\"\n\n[dependencies]\n\
                    mma-models = { path = \"../mma-models\", default-features = false }\n";
    fs::write(user.join("Cargo.toml"), manifest).unwrap();
    let library = r#"
#![no_std]
use core::alloc::{GlobalAlloc, Layout};

struct None;

unsafe impl GlobalAlloc for None {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: None = None;

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

#[unsafe(no_mangle)]
pub extern "C" fn d(c: u64) -> u64 {
    mma_models::volta::INSTRUCTIONS[0].dot_add(&[0; 4], &[0; 4], c).unwrap_or(0)
}
"#;
    fs::write(user.join("src/lib.rs"), library).unwrap();
    cargo("build --offline", &user);
    let target = "thumbv7em-none-eabi";
    let sysroot = succeed("rustc", &["--print", "sysroot"], folder);
    if Path::new(sysroot.trim()).join("lib/rustlib").join(target).exists() {
        cargo(
            &format!("build --offline --no-default-features --lib -p mma-models --target {target}"),
            folder,
        );
    } else {
        eprintln!("{target} is not installed (rustup target add {target}): not built for it");
    }
}

#[test]
fn every_sheet_gives_the_same_well_formed_source_each_time() {
    let name = CrateName::new("all-models").unwrap();
    let mut sources: Vec<Source> = fs::read_dir(root().join("reports"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| source(path.to_str().unwrap()))
        .collect();
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(sources.len() >= 10);
    let files = generate(&name, &sources).unwrap();
    let hopper = sources.iter().position(|source| source.name == "hopper").unwrap();
    let again = generate(&name, &sources[hopper..=hopper]).unwrap();
    assert!(again == generate(&name, &sources[hopper..=hopper]).unwrap(), "the same sheet, other bytes");
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("all-models");
    write(&folder, &files, false).unwrap();
    succeed("rustfmt", &["--check", "--edition", "2024", "src/lib.rs", "tests/agreement.rs"], &folder);
    let instructions: usize = sources.iter().map(|source| source.sheet.instructions.len()).sum();
    assert_eq!(files.iter().filter(|(path, _)| path.starts_with("tests/agreement/")).count(), instructions);
}

#[test]
fn what_the_sheet_does_not_stand_for_is_left_out_and_named() {
    let mut volta = source("reports/volta.yaml");
    let [refuted, ambiguous, _] = &mut volta.sheet.instructions[..] else { panic!("three instructions") };
    refuted.status = Status::Refuted;
    ambiguous.status = Status::Ambiguous;
    ambiguous.ambiguous.push(mmaprobe::sheet::schema::Ambiguity {
        statement: "rounding of `fused`".to_string(),
        alternatives: vec!["RZ".to_string(), "RD".to_string()],
        tried: "no input tells".to_string(),
    });
    let (refuted, ambiguous) = (refuted.name.clone(), ambiguous.name.clone());
    let name = CrateName::new("volta-model").unwrap();
    let files = generate(&name, &[volta]).unwrap();
    let module = text(&files, "src/volta.rs");
    assert!(!module.contains(&refuted) && module.contains(&ambiguous));
    assert!(module.contains("/// - rounding of `fused`; it could be RZ · RD; no input tells"));
    let reason = "refuted: fresh inputs contradict its arithmetic";
    assert!(text(&files, "src/lib.rs").contains(&format!("`{refuted}`, {reason}")));
    assert!(text(&files, "README.md").contains(&format!("`{refuted}`: {reason}")));
    assert!(text(&files, "src/sheets.rs").contains(&format!("({refuted:?}, {reason:?})")));
    // Nothing is left where nothing is known.
    let mut volta = source("reports/volta.yaml");
    volta.sheet.instructions.iter_mut().for_each(|entry| entry.status = Status::Unexplained);
    let problem = generate(&name, &[volta]).unwrap_err().to_string();
    assert!(problem.starts_with("there is nothing to generate: mma.m8n8k4"), "{problem}");
}

#[test]
fn recordings_of_something_else_are_refused() {
    // The sheet of the CPU, with another order of additions.
    let place = tempfile::tempdir().unwrap();
    let altered = place.path().join("altered.yaml");
    let honest = fs::read_to_string(root().join(format!("{CPU}.yaml"))).unwrap();
    fs::write(&altered, honest.replacen("rounding: RNE", "rounding: RZ", 1)).unwrap();
    let output = place.path().join("some-model");
    let generate = |sheet: &str| {
        let (recording, output) = (format!("{CPU}.rec"), output.to_str().unwrap().to_string());
        let run = mmaprobe(&["generate", sheet, "--evidence", &recording, "-o", &output]);
        assert_eq!(run.status.code(), Some(2));
        String::from_utf8_lossy(&run.stderr).into_owned()
    };
    let problem = generate(altered.to_str().unwrap());
    assert!(
        problem.contains("vdpbf16ps: the recording has an answer that the sheet contradicts"),
        "{problem}"
    );
    let problem = generate("reports/volta.yaml");
    assert!(problem.contains("none of the sheets is of that device"), "{problem}");
    assert!(!output.exists());
}

#[test]
fn what_is_not_understood_is_left_out_and_named() {
    let place = tempfile::tempdir().unwrap();
    let honest = fs::read_to_string(root().join("reports/volta.yaml")).unwrap();
    let sheet = place.path().join("mixed.yaml");
    fs::write(&sheet, honest.replacen("status: published", "status: unexplained", 1)).unwrap();
    let output = place.path().join("mixed-model");
    let run = mmaprobe(&["generate", sheet.to_str().unwrap(), "-o", output.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    let named: Vec<&str> = said.lines().filter(|line| line.contains("left out: mma.m8n8k4.")).collect();
    assert!(named.len() == 1 && named[0].contains(" is unexplained: "), "{said}");
}

#[test]
fn what_makes_no_crate_is_named_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let honest = fs::read_to_string(root().join("reports/volta.yaml")).unwrap();
    let sheet = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let output = place.path().join("some-model");
    let refused = |sheets: &[&str], output: &str, problem: &str| {
        let run = mmaprobe(&[&["generate", "-o", output], sheets].concat());
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.code() == Some(2) && said.contains(problem), "{problem}: {said}");
    };
    let some = output.to_str().unwrap();
    refused(&["reports/volta.yaml", "reports/volta.yaml"], some, "two sheets are called 'volta'");
    refused(&[&sheet("empty.yaml", "")], some, "empty.yaml");
    let none = &honest[..honest.find("instructions:").unwrap()];
    refused(
        &[&sheet("none.yaml", &format!("{none}instructions: []\n"))],
        some,
        "no sheet has an instruction",
    );
    let cyclic = honest.replacen("d = fused(c, p0..p3)", "d = fused(c, d)", 1);
    refused(&[&sheet("cyclic.yaml", &cyclic)], some, "cyclic.yaml:");
    let twice = honest.replacen("mma.m8n8k4.f16.f16.f16.f16", "mma.m8n8k4.f32.f16.f16.f32", 1);
    refused(&[&sheet("twice.yaml", &twice)], some, "mma.m8n8k4.f32.f16.f16.f32");
    let name = honest.replacen("name: mma.m8n8k4.f32.f16.f16.f32", "name: \"a\\nb\"", 1);
    refused(&[&sheet("name.yaml", &name)], some, "control characters");
    refused(&["reports/volta.yaml"], "/dev/null/some-model", "cannot write /dev/null/some-model");
    assert!(
        fs::read_dir(place.path())
            .unwrap()
            .all(|entry| { entry.unwrap().path().extension().is_some_and(|extension| extension == "yaml") })
    );
}

#[test]
fn folders_are_not_overwritten() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("crate-of-mine");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("Cargo.toml"), "[package]\nname = \"mine\"\n").unwrap();
    let generate = |more: &[&str]| {
        let path = folder.to_str().unwrap();
        let run = mmaprobe(&[&["generate", "reports/volta.yaml", "-o", path], more].concat());
        (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
    };
    let (code, problem) = generate(&[]);
    assert!(code == Some(2) && problem.contains("exists already"), "{problem}");
    let (code, problem) = generate(&["--force"]);
    assert!(code == Some(2) && problem.contains("no crate that was generated"), "{problem}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    let run = mmaprobe(&["generate", "reports/volta.yaml", "-o", "/tmp/No Name"]);
    assert!(
        run.status.code() == Some(2)
            && String::from_utf8_lossy(&run.stderr).contains("no crate can be called")
    );
}
