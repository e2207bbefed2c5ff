//! The command line, from outside: what it prints, what it leaves behind, and how it ends.

use std::fs;
use std::io::pipe;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use mmaprobe::device::Device;
use mmaprobe::device::cpu::Cpu;
use mmaprobe::sheet::schema::{Entry, Sheet, Status};
use mmaprobe::sheet::yaml;
use textwrap::core::display_width;

const BINARY: &str = env!("CARGO_BIN_EXE_mmaprobe");

/// What became of a command.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    fn of(output: Output) -> Run {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        let run =
            Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
        // Nothing here is a terminal: no colours, no progress.
        assert!(!run.stdout.contains(['\x1b', '\r']), "{:?}", run.stdout);
        assert!(!run.stderr.contains(['\x1b', '\r']), "{:?}", run.stderr);
        run
    }

    #[track_caller]
    fn ends(self, code: i32) -> Run {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// stderr has each of these texts.
    #[track_caller]
    fn says(self, texts: &[&str]) -> Run {
        for text in texts {
            assert!(self.stderr.contains(text), "{:?} lacks {text:?}", self.stderr);
        }
        self
    }

    #[track_caller]
    fn sheet(&self) -> Sheet {
        parse(&self.stdout)
    }
}

#[track_caller]
fn parse(sheet: &str) -> Sheet {
    yaml::parse(sheet, Path::new("stdout")).unwrap_or_else(|error| panic!("{error}\n{sheet}"))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Run {
    Run::of(command(arguments).output().unwrap())
}

fn path(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file).display().to_string()
}

fn exec(script: &str, mode: &str) -> String {
    format!("exec:python3 '{}' {mode}", path(script))
}

fn misbehaving(mode: &str) -> String {
    exec("tests/devices/misbehave.py", mode)
}

fn variation(mode: &str) -> String {
    exec("tests/devices/variations.py", mode)
}

/// A file in a new directory that lives as long as the first value.
fn file(name: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name).display().to_string();
    (directory, path)
}

fn file_with(name: &str, content: &str) -> (tempfile::TempDir, String) {
    let (directory, path) = file(name);
    fs::write(&path, content).unwrap();
    (directory, path)
}

#[track_caller]
fn at_most_80_columns(text: &str) {
    for line in text.lines() {
        assert!(display_width(line) <= 80, "{} columns: {line}", display_width(line));
    }
}

/// The sheet of examples/device.py.
fn example() -> &'static str {
    static SHEET: OnceLock<String> = OnceLock::new();
    SHEET.get_or_init(|| {
        let device = exec("examples/device.py", "");
        let run = run(&["characterize", "--device", &device, "--validate", "2000"]).ends(0);
        run.says(&["dot4: characterized, 2000 dot-adds validated, 0 mismatches"]).stdout
    })
}

/// The sheet of this CPU; `None` and a message if it has nothing to probe.
fn cpu() -> Option<&'static str> {
    static SHEET: OnceLock<Option<String>> = OnceLock::new();
    let sheet = SHEET.get_or_init(|| {
        let characterize = run(&["characterize", "--device", "cpu", "--validate", "20000"]);
        match Cpu::open() {
            Ok(_) => Some(characterize.ends(0).stdout),
            Err(error) => {
                characterize.ends(3).says(&["none of the instructions", "vfmadd231ps: "]);
                eprintln!("NOT RUN: {error}");
                None
            }
        }
    });
    sheet.as_deref()
}

// What the tool is for.

#[test]
fn this_cpu() {
    let Some(text) = cpu() else { return };
    let sheet = parse(text);
    let device = Cpu::open().unwrap();
    let names = |entries: &[Entry]| entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>();
    let offered: Vec<String> = device.instructions().iter().map(|i| i.name.clone()).collect();
    assert_eq!(names(&sheet.instructions), offered);
    let listed = run(&["instructions", "--device", "cpu"]).ends(0).stdout;
    for entry in &sheet.instructions {
        assert!(listed.contains(&format!("│ {} ", entry.name)), "{listed}");
        let validation = entry.validation.as_ref().unwrap();
        assert!(validation.dot_adds >= 20_000 && validation.mismatches == 0, "{}", entry.name);
        assert_eq!(validation.distributions.len(), 7, "{}", entry.name);
        match entry.status {
            Status::Characterized => assert!(entry.arithmetic.is_some()),
            Status::ModeWithoutEffect => assert!(entry.mode_of.is_some()),
            other => panic!("{}: {other}", entry.name),
        }
    }
    // Present, or absent for a reason.
    for unit in ["tdpbf16ps", "tdpfp16ps", "vdpbf16ps", "vfmadd231ps", "vfmadd231pd", "vfmadd231ph"] {
        let absent = sheet.absent.iter().find(|absent| absent.name == unit);
        assert_eq!(offered.iter().any(|name| name == unit), absent.is_none(), "{unit}");
        assert!(absent.is_none_or(|absent| !absent.reason.is_empty()));
    }
    // Linux lists a flag only if CPUID does.
    if let Ok(facts) = fs::read_to_string("/proc/cpuinfo") {
        for (flag, unit) in [("fma", "vfmadd231ps"), ("avx512_bf16", "vdpbf16ps"), ("amx_bf16", "tdpbf16ps")]
        {
            let present = facts.split_whitespace().any(|word| word == flag);
            let absent = sheet.absent.iter().any(|absent| absent.name == unit);
            assert!(present || absent, "{unit} without {flag}");
        }
    }

    let (_directory, path) = file_with("cpu.yaml", text);
    let against = format!("sheet:{path}");
    let arguments = ["validate", "--device", "cpu", "--against", &against, "--seed", "7", "--sets", "20000"];
    let run = run(&arguments).ends(0);
    assert_eq!(run.stdout.matches(" equal").count(), offered.len(), "{}", run.stdout);
    assert_eq!(run.stderr, "");
}

#[test]
fn the_example_device() {
    let sheet = parse(example());
    let [entry] = &sheet.instructions[..] else { panic!() };
    assert_eq!((entry.status, entry.name.as_str()), (Status::Characterized, "dot4"));
    assert!(
        entry.summary.replace('\n', " ").contains("add exactly and round once, to fp32, toward zero (RZ)"),
        "{}",
        entry.summary
    );
    let (_directory, path) = file_with("dot4.yaml", example());
    let tree = run(&["show", "--tree", &path]).ends(0).stdout;
    assert!(tree.contains("Σ exact → fp32 RZ"), "{tree}");
    let (device, against) = (exec("examples/device.py", ""), format!("sheet:{path}"));
    run(&["validate", "--device", &device, "--against", &against, "--sets", "500"]).ends(0);
}

// Recordings.

#[test]
fn replays_give_the_same_sheet() {
    if cpu().is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let options = ["characterize", "--instruction", "vfmadd231ps*", "--validate", "5000", "--seed", "3"];
    let characterize = |device: &str, threads: &str, more: &[&str]| {
        let run = run(&[&options[..], &["--device", device, "--threads", threads], more].concat()).ends(0);
        assert!(!run.stderr.contains("mmaprobe:"), "{}", run.stderr);
        run.stdout
    };
    let mut sheets = Vec::new();
    for threads in ["1", "2"] {
        let path = directory.path().join(threads).display().to_string();
        let live = characterize("cpu", threads, &["--record", &path]);
        // All that tells a replay from the run itself.
        sheets.push(live.replacen("provenance: measured\n", "provenance: recorded\n", 1));
        for threads in ["1", "2"] {
            sheets.push(characterize(&format!("replay:{path}"), threads, &[]));
        }
    }
    assert!(sheets.iter().all(|sheet| *sheet == sheets[0]), "{sheets:#?}");
}

#[test]
fn recordings_answer_nothing_else() {
    let (_directory, path) = file("dot4.rec");
    let device = exec("examples/device.py", "");
    let replay = format!("replay:{path}");
    run(&["characterize", "--device", &device, "--validate", "0", "--record", &path]).ends(0);
    let run = run(&["characterize", "--device", &replay, "--validate", "0", "--seed", "2"]).ends(3);
    run.says(&[&replay, "use the same options"]);
}

/// Characterises a device that is slow and interrupts that.
#[cfg(unix)]
#[test]
fn an_interrupted_recording_is_readable() {
    use std::os::unix::process::ExitStatusExt;

    let (_directory, path) = file("slow.rec");
    // Whoever runs the tests in the background may ignore interrupts, and have them ignored here.
    let default = "import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])";
    let device = variation("slow");
    let child = Command::new("python3")
        .args(["-c", default, BINARY, "characterize", "--device", &device, "--record", &path])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while fs::metadata(&path).map_or(0, |facts| facts.len()) < 20_000 {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is recorded");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty());

    let replay = format!("replay:{path}");
    let warning = format!("mmaprobe: the recording `{path}` ends early");
    let listed = run(&["instructions", "--device", &replay]).ends(0).says(&[&warning]);
    assert!(listed.stdout.contains("dot4"));
    let run = run(&["characterize", "--device", &replay]).ends(3).says(&[&warning, "not among the"]);
    assert_eq!(run.stdout, "");
}

#[test]
fn recordings_overwrite_only_what_they_may() {
    let (directory, path) = file_with("precious.rec", "precious");
    let device = misbehaving("normal");
    let characterize = |more: &[&str]| {
        run(&[&["characterize", "--device", &device, "--validate", "0", "--record"], more].concat())
    };
    characterize(&[&path]).ends(2).says(&[&path, "exists already", "--force"]);
    // A mistake in other arguments costs nothing.
    let other = directory.path().join("other.rec").display().to_string();
    characterize(&[&path, "--force", "--instruction", "x"]).ends(2);
    characterize(&[&other, "--instruction", "x"]).ends(2);
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    assert!(!Path::new(&other).exists());

    characterize(&[&path, "--force"]).ends(0);
    let evidence = fs::read(&path).unwrap();
    let replay = format!("replay:{path}");
    let overwriting = ["--record", &path, "--force"];
    let same = run(&[&["characterize", "--device", &replay], &overwriting[..]].concat());
    same.ends(2).says(&["would overwrite replay:"]);
    let same = run(&[&["validate", "--device", &device, "--against", &replay], &overwriting[..]].concat());
    same.ends(2).says(&["would overwrite replay:"]);
    assert_eq!(fs::read(&path).unwrap(), evidence);
    let nowhere = format!("{path}/x");
    characterize(&[&nowhere]).ends(2).says(&[&nowhere]);
}

// External devices that misbehave.

/// The device fails with these texts; what was recorded until then can be read.
fn device_fails(device: &str, timeout: &str, texts: &[&str]) {
    let (_directory, path) = file("evidence.rec");
    let characterize = ["characterize", "--device", device, "--validate", "100"];
    let run_it = run(&[&characterize[..], &["--record", &path, "--device-timeout", timeout]].concat());
    let failed = run_it.ends(3).says(&[&format!("mmaprobe: device {device}: ")]).says(texts);
    assert_eq!(failed.stdout, "");
    // Devices that did not introduce themselves have no answers to record.
    assert_eq!(
        Path::new(&path).exists(),
        failed.stderr.contains(&format!("the answers so far are in {path}"))
    );
    if Path::new(&path).exists() {
        let replay = run(&["instructions", "--device", &format!("replay:{path}")]).ends(0);
        assert!(replay.says(&["ends early"]).stdout.contains("dot1"));
    } else {
        assert!(!failed.stderr.contains("run of"), "{}", failed.stderr);
    }
}

#[test]
fn misbehaving_devices() {
    device_fails("exec:no-such-command", "60", &["no such command: `no-such-command`"]);
    for (mode, texts) in [
        ("dies-before-hello", &["hello", "SIGKILL"][..]),
        ("dies-in-run", &["run of `dot1`, 661 problems", "SIGKILL"]),
        ("dies-in-reply", &["run of `dot1`", "in the middle of its reply", "exit status: 7"]),
        ("dies-in-payload", &["run of `dot1`", "after 660 of 661 bytes", "SIGKILL"]),
        ("format-unknown", &["unknown format \"posit8\""]),
        ("version-2", &["speaks protocol version 2"]),
        ("long-payload", &["run of `dot1`", "too long"]),
        ("late-long-payload", &["run of `dot1`", "too long"]),
        ("hello-no-json", &["hello", "no JSON"]),
        ("reply-no-json", &["run of `dot1`", "no JSON", "Segmentation fault"]),
        ("reply-error", &["run of `dot1`", "it reports: the array is", "on fire"]),
        ("outside-format", &["run of `dot1`", "outside e2m1"]),
    ] {
        device_fails(&misbehaving(mode), "60", texts);
    }
}

#[test]
fn silent_devices() {
    thread::scope(|scope| {
        for (mode, text) in [
            ("silent-at-hello", "hello, waiting for its reply"),
            ("silent", "run of `dot1`, 661 problems"),
            ("silent-in-reply", "in the middle of its reply"),
            ("short-payload", "after 660 of 661 bytes"),
        ] {
            scope.spawn(move || {
                let start = Instant::now();
                // Enough for Python to start on a busy machine.
                device_fails(&misbehaving(mode), "3", &[text, "nothing for 3 s", "--device-timeout"]);
                assert!((3..30).contains(&start.elapsed().as_secs()), "{mode}: {:?}", start.elapsed());
            });
        }
    });
    let start = Instant::now();
    let device = misbehaving("silent-at-hello");
    run(&["instructions", "--device", &device, "--device-timeout", "0.5"]).ends(3).says(&["for 0.5 s"]);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn what_was_finished_before_a_failure_is_kept() {
    let (_directory, path) = file("evidence.rec");
    let device = variation("second-fails");
    let characterize = |device: &str, more: &[&str]| {
        run(&[&["characterize", "--device", device, "--validate", "500"], more].concat()).ends(3)
    };
    let live = characterize(&device, &["--record", &path]);
    let live =
        live.says(&[&format!("device {device}: run of `dot5`"), &path, "1 instruction finished before"]);
    let sheet = live.sheet();
    assert_eq!(sheet.instructions.len(), 1);
    assert!(sheet.instructions[0].arithmetic.is_some());
    let replay = characterize(&format!("replay:{path}"), &[]).says(&["ends early", "not among the"]);
    assert_eq!(replay.stdout, live.stdout.replacen("provenance: measured", "provenance: recorded", 1));
    // It is the device's failure, whoever reads.
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let output = command(&["characterize", "--device", &device, "--validate", "0"]).stdout(writer).output();
    Run::of(output.unwrap()).ends(3).says(&["dot5"]);

    let other = variation("second-fails 2");
    let validate = run(&["validate", "--device", &device, "--against", &other, "--sets", "50"]).ends(3);
    assert!(
        validate.stdout.contains("│ dot4        │ 50          │ 200      │ equal  │"),
        "{}",
        validate.stdout
    );
    validate.says(&["dot5"]);
}

#[test]
fn no_function_gets_no_arithmetic() {
    let check = |device: String, expected: &[Status]| {
        let run = run(&["characterize", "--device", &device, "--validate", "2000"]).ends(1);
        let sheet = run.sheet();
        let [entry] = &sheet.instructions[..] else { panic!() };
        assert!(expected.contains(&entry.status), "{device}: {}", entry.status);
        assert!(entry.arithmetic.is_none(), "{device}");
        assert!(entry.counterexample.is_some(), "{device}");
        run.says(&[&format!("{}: {}", entry.name, entry.status)]);
    };
    check(misbehaving("counts"), &[Status::NotDeterministic]);
    check(variation("chance"), &[Status::NotDeterministic]);
    check(variation("place"), &[Status::NotUniform]);
    // Rare: whichever check meets it first says what it saw.
    for seed in 0..2 {
        check(variation(&format!("noise {seed}")), &[Status::NotDeterministic, Status::NotUniform]);
    }
    check(variation("place-of-subnormals"), &[Status::NotUniform, Status::Unexplained]);
}

// Comparisons.

#[test]
fn mismatches_are_shrunk_and_printed() {
    let (_directory, path) = file_with("dot4.yaml", example());
    let (_directory, wrong) = file_with("wrong.yaml", &example().replace("rounding: RZ", "rounding: RNE"));
    let (device, against) = (format!("sheet:{path}"), format!("sheet:{wrong}"));
    let compare = |device: &str, against: &str, threads: &str| {
        let sets = ["--sets", "1000", "--threads", threads];
        run(&[&["validate", "--device", device, "--against", against], &sets[..]].concat())
    };
    compare(&device, &device, "2").ends(0);
    let run = compare(&device, &against, "1").ends(1);
    assert_eq!(run.stderr, "");
    at_most_80_columns(&run.stdout);
    for text in ["MISMATCH", "dot4: ", "differ", "element d[0][0]", "Shrunk:", "  a[0]  ", " answers"] {
        assert!(run.stdout.contains(text), "{} lacks {text}", run.stdout);
    }
    assert_eq!(run.stdout, compare(&device, &against, "2").stdout);
    // The whole of long names is told once.
    let long = format!("{} {}", exec("examples/device.py", ""), "x".repeat(100));
    let run = compare(&long, &against, "1").ends(1);
    at_most_80_columns(&run.stdout);
    assert!(run.stdout.contains("--device answers"), "{}", run.stdout);
}

#[test]
fn devices_that_cannot_be_compared() {
    let plain = variation("plain");
    for (mode, texts) in [
        ("other-name", &["no instruction in common", "has dot4;", "has dot4-of-another"]),
        ("other-formats", &["cannot be compared", "formats differ", "dot4"]),
    ] {
        let other = variation(mode);
        let run = run(&["validate", "--device", &plain, "--against", &other]).ends(2);
        assert_eq!(run.says(texts).says(&[&other]).stdout, "");
    }
}

// Usage.

#[test]
fn usage_errors() {
    let (_directory, sheet) = file_with("dot4.yaml", example());
    let (_directory, cut) = file_with("cut.yaml", example().split_once("    c: fp32").unwrap().0);
    let (_directory, misspelt) = file_with("misspelt.yaml", &example().replace("RZ", "RX"));
    let (_directory, empty) = file_with("empty", "");
    let (_directory, nothing) = file_with("nothing.yaml", &{
        let (head, _) = example().split_once("instructions:").unwrap();
        format!("{head}instructions: []\n")
    });
    let device = |kind: &str, path: &str| format!("{kind}:{path}");
    let good = device("sheet", &sheet);
    let characterize = |device: &str| vec!["characterize".to_string(), "--device".into(), device.into()];
    let show = |path: &str| vec!["show".to_string(), path.into()];
    let validate = |against: &str, more: &[&str]| {
        let mut arguments = vec!["validate", "--device", &good, "--against", against];
        arguments.extend(more);
        arguments.into_iter().map(String::from).collect::<Vec<_>>()
    };
    let glob = |glob: &str| [characterize(&good), vec!["--instruction".into(), glob.into()]].concat();
    for (arguments, texts) in [
        (vec![], &["Usage:", "characterize"][..]),
        (vec!["charaterize".into()], &["charaterize", "characterize"]),
        (vec!["characterize".into()], &["--device"]),
        (
            characterize("gpu"),
            &["'gpu'", "cpu, cuda[:N], hip[:N], sim:NAME, sheet:FILE, replay:FILE and exec:COMMAND"],
        ),
        (characterize("CPU"), &["'CPU'"]),
        (characterize(""), &["no device ''"]),
        (characterize("sheet:/no/such"), &["/no/such", "No such file"]),
        (characterize("replay:/no/such"), &["/no/such", "No such file"]),
        (characterize(&device("replay", &sheet)), &[sheet.as_str(), "no recording"]),
        (characterize(&device("replay", &empty)), &[empty.as_str(), "nothing was recorded"]),
        (characterize(&device("sheet", &nothing)), &["offers no instruction"]),
        (show("/no/such"), &["/no/such", "No such file"]),
        (show("/"), &["/: ", "directory"]),
        (show(&empty), &[empty.as_str(), "schema"]),
        (show(&cut), &[cut.as_str(), "missing field `c`"]),
        (show(&misspelt), &[misspelt.as_str(), "`RX`", "RZ"]),
        (show(&path("Cargo.toml")), &["Cargo.toml:1:1", "parameter sheet"]),
        (glob("x*"), &["'x*'", "there are: dot4"]),
        (glob("[a"), &["'[a'", "no pattern"]),
        (validate(&good, &["--sets", "0"]), &["--sets", "0 is not in 1.."]),
        (validate(&good, &["--sets", "-1"]), &["-1"]),
        (validate(&device("sheet", &nothing), &[]), &["has dot4", "none"]),
        (validate(&good, &["--force"]), &["--record"]),
        (validate(&good, &["--device-timeout", "0"]), &["--device-timeout", "above 0"]),
        (validate(&good, &["--threads", "0"]), &["--threads"]),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let run = run(&arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}{}", run.stdout, run.stderr);
        assert_eq!(run.says(texts).stdout, "");
    }
}

#[test]
fn a_mode_alone_makes_a_sheet() {
    if cpu().is_none() {
        return;
    }
    let characterize =
        run(&["characterize", "--device", "cpu", "--instruction", "vfmadd231ps.rz", "--validate", "500"]);
    let sheet = characterize.ends(0).sheet();
    let note = "vfmadd231ps where MXCSR rounds toward zero";
    assert!(sheet.instructions[0].notes.iter().any(|text| text.contains(note)), "{sheet:?}");
}

// What is printed, and where.

#[test]
fn tables_and_help_fit_a_terminal() {
    let mut files = vec![file_with("dot4.yaml", example())];
    files.extend(cpu().map(|sheet| file_with("cpu.yaml", sheet)));
    let mut commands: Vec<Vec<&str>> = vec![vec!["devices"], vec!["--help"], vec!["-h"], vec!["--version"]];
    for command in ["devices", "instructions", "characterize", "show", "validate"] {
        commands.push(vec![command, "--help"]);
    }
    for (_, path) in &files {
        commands.extend([vec!["show", path], vec!["show", path, "--tree"]]);
    }
    if cpu().is_some() {
        commands.push(vec!["instructions", "--device", "cpu"]);
    }
    for arguments in commands {
        let run = run(&arguments).ends(0);
        assert!(!run.stdout.is_empty(), "{arguments:?}");
        assert_eq!(run.stderr, "", "{arguments:?}");
        at_most_80_columns(&run.stdout);
    }
}

#[test]
fn nobody_reads() {
    let (_directory, path) = file_with("dot4.yaml", example());
    let device = format!("sheet:{path}");
    for arguments in [
        &["show", path.as_str()][..],
        &["show", "--tree", &path],
        &["devices"],
        &["--help"],
        &["instructions", "--device", &device],
        &["validate", "--device", &device, "--against", &device, "--sets", "10"],
    ] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let run = Run::of(command(arguments).stdout(writer).output().unwrap()).ends(0);
        assert_eq!(run.stderr, "", "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let (_directory, path) = file_with("dot4.yaml", example());
    let device = format!("sheet:{path}");
    for arguments in [
        &["show", path.as_str()][..],
        &["devices"],
        &["characterize", "--device", &device, "--validate", "0"],
        &["validate", "--device", &device, "--against", &device, "--sets", "10"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let run = Run::of(command(arguments).stdout(full).output().unwrap()).ends(2);
        run.says(&["cannot write the output", "No space left on device"]);
    }
    // The same for a recording.
    let record = ["--validate", "0", "--record", "/dev/full", "--force"];
    let run = run(&[&["characterize", "--device", &device], &record[..]].concat()).ends(2);
    run.says(&["/dev/full", "No space left on device"]);
}

// Throughput.

#[test]
fn throughput_is_measured_and_reported() {
    let Some((_folder, report)) = Cpu::open().ok().map(|_| file("speed.md")) else {
        eprintln!("NOT RUN: this processor has nothing to measure");
        return;
    };
    let arguments =
        ["throughput", "--device", "cpu", "--repetitions", "1", "--threads", "1-3", "--report", &report];
    let measured = run(&arguments).ends(0);
    at_most_80_columns(&measured.stdout);
    let markdown = fs::read_to_string(&report).unwrap();
    let svg = fs::read_to_string(report.replace(".md", ".svg")).unwrap();
    for unit in mmaprobe_kernels::cpu::Processor::detect().units {
        let title = format!("{} on {}", unit.shape().name, unit.registers());
        assert!(measured.stdout.contains(&title) && svg.contains(&title), "{}", measured.stdout);
        assert!(
            markdown.contains(&format!("## {title}\n\n| accumulators | 1 thread | 2 threads |")),
            "{markdown}"
        );
    }
    assert!(markdown.contains("(speed.svg)"));
    run(&arguments).ends(2).says(&["speed.md", "--force replaces it"]);
}

#[test]
fn what_has_no_throughput_is_refused() {
    for (arguments, says) in [
        (&["--device", "sim:m1"][..], "no hardware"),
        (&["--device", "exec:true"], "slower than any unit"),
        (&["--device", "cuda:0"], "GPUs are not timed yet"),
        (&["--device", "h100"], "GPUs are not timed yet"),
        (&["--device", "cpv"], "there is no device 'cpv'"),
        (&["--device", "cpu", "--threads", "3-2"], "a number from 1 to 1024"),
        (&["--device", "cpu", "--threads", "0"], "a number from 1 to 1024"),
    ] {
        run(&[&["throughput"], arguments].concat()).ends(2).says(&[says]);
    }
    run(&["devices", "--threads", "1-2"]).ends(2).says(&["only throughput takes several numbers"]);
    if Cpu::open().is_ok() {
        let refused = |more: &[&str]| run(&[&["throughput", "--device", "cpu"], more].concat()).ends(2);
        refused(&["--instruction", "fmul"]).says(&["no instruction here matches 'fmul'", "there are: "]);
        refused(&["--report", "speed.txt"]).says(&["must end in .md"]);
    }
}
