//! External devices: the example, and every way to misbehave.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use mmaprobe::device::exec::Exec;
use mmaprobe::device::{Batch, Device, DeviceError, Fault, Instruction, Provenance, element, set_element};

/// For devices that are not silent: far more than they need on a busy machine.
const PATIENT: Duration = Duration::from_secs(60);
/// For devices that are silent; enough for Python to start on a busy machine.
const BRIEF: Duration = Duration::from_secs(3);

fn path(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file).display().to_string()
}

fn command(mode: &str) -> String {
    format!("python3 '{}' {mode}", path("tests/devices/misbehave.py"))
}

fn start(mode: &str, timeout: Duration) -> Result<Exec, DeviceError> {
    Exec::start(&command(mode), timeout)
}

/// The error names the device, holds each of the texts, and came without waiting for the limit, or
/// soon after it.
#[track_caller]
fn check(error: &DeviceError, mode: &str, texts: &[&str]) {
    assert_eq!(error.device, format!("exec:{}", command(mode)));
    let message = error.to_string();
    assert!(message.contains(&error.device), "{message}");
    for text in texts {
        assert!(message.contains(text), "{mode}: {message:?} lacks {text:?}");
    }
    assert!(!message.contains('\x1b'), "{message:?}");
}

fn batch(instruction: &Instruction, count: usize) -> Batch {
    let mut batch = Batch::zeros(instruction, count);
    batch.c.iter_mut().enumerate().for_each(|(index, c)| *c = index as u8 % 16);
    batch
}

#[track_caller]
fn hello_fails(mode: &str, timeout: Duration, texts: &[&str]) -> Fault {
    let start_time = Instant::now();
    let error = start(mode, timeout).err().unwrap_or_else(|| panic!("{mode} starts"));
    assert!(start_time.elapsed() < if timeout == BRIEF { 3 * BRIEF } else { PATIENT / 2 }, "{mode} is slow");
    check(&error, mode, texts);
    error.fault
}

/// The fault of the first run, of `count` problems; a second run must repeat it at once.
#[track_caller]
fn run_fails(mode: &str, timeout: Duration, count: usize, texts: &[&str]) -> Fault {
    let device = start(mode, timeout).unwrap_or_else(|error| panic!("{error}"));
    let instruction = &device.instructions()[0];
    let start_time = Instant::now();
    let error = device.run(instruction, &batch(instruction, count)).expect_err(mode);
    assert!(start_time.elapsed() < if timeout == BRIEF { 2 * BRIEF } else { PATIENT / 2 }, "{mode} is slow");
    check(&error, mode, texts);
    let again = Instant::now();
    assert_eq!(device.run(instruction, &batch(instruction, 1)), Err(error.clone()));
    assert_eq!(device.finish(), Err(error.clone()));
    assert!(again.elapsed() < Duration::from_millis(500), "{mode} does not fail at once");
    error.fault
}

#[test]
fn commands_that_cannot_start() {
    for (command, text) in [
        ("", "no command"),
        ("   # only a comment", "no command"),
        ("'unclosed", "not closed"),
        ("no-such-command-anywhere --flag", "no such command: `no-such-command-anywhere`"),
        ("/", "ermission denied"),
    ] {
        let error = Exec::start(command, PATIENT).err().expect(command);
        assert_eq!(error.device, format!("exec:{command}"));
        assert!(matches!(&error.fault, Fault::Start(why) if why.contains(text)), "{error}");
    }
}

#[test]
fn death_and_silence_before_hello() {
    for (mode, texts) in [
        ("dies-at-once", &["hello, waiting for its reply", "exit status: 3"][..]),
        ("dies-before-hello", &["hello", "SIGKILL"]),
        ("dies-in-hello", &["hello, in the middle of its reply, after 14 bytes", "exit status: 0"]),
        ("closes-output", &["hello", "closed its output, but kept running"]),
    ] {
        let fault = hello_fails(mode, PATIENT, texts);
        assert!(matches!(fault, Fault::Died { .. }), "{fault:?}");
    }
    for (mode, text) in
        [("silent-at-hello", "waiting for its reply"), ("silent-in-hello", "in the middle of its reply")]
    {
        let fault = hello_fails(mode, BRIEF, &["hello", text, "3 s"]);
        assert!(matches!(fault, Fault::TimedOut { limit: BRIEF, .. }), "{fault:?}");
    }
}

#[test]
fn hellos_that_are_none() {
    for (mode, text) in [
        ("hello-no-json", "no JSON object: \"Welcome to the accelerator!\""),
        ("hello-array", "no JSON object"),
        ("hello-empty", "no JSON object"),
        ("hello-no-utf8", "not UTF-8"),
        ("hello-cut", "not the JSON it should be"),
        ("hello-long", "left over, \"more\""),
        ("floods", "no line end within"),
    ] {
        let fault = hello_fails(mode, PATIENT, &["hello", text]);
        assert!(matches!(fault, Fault::Reply { .. }), "{fault:?}");
    }
    let fault = hello_fails("hello-error", PATIENT, &["hello", "the board is", "busy"]);
    assert!(matches!(fault, Fault::Reported { .. }), "{fault:?}");
    for (mode, version) in [("version-2", "2"), ("version-text", "\\\"1\\\"")] {
        let fault = hello_fails(mode, PATIENT, &["speaks protocol version"]);
        assert_eq!(fault, Fault::Version { found: version.into() });
    }
}

#[test]
fn descriptions_that_make_no_sense() {
    for (mode, text) in [
        ("hello-without-protocol", "lacks `protocol`"),
        ("hello-without-name", "lacks `name`"),
        ("hello-terminal-name", "control characters"),
        ("hello-without-instructions", "lacks `instructions`"),
        ("hello-no-instructions", "none"),
        ("hello-without-k", "missing field `k`"),
        ("hello-without-d", "missing field `d`"),
        ("hello-instruction-number", "instruction 1, 7: invalid type"),
        ("format-unknown", "b has the unknown format \"posit8\""),
        ("format-scale", "c has the unknown format \"ue8m0\""),
        ("scale-unknown", "scale has the unknown format \"fp32\""),
        ("scale-no-block", "no `block`"),
        ("block-no-scale", "no `scale`"),
        ("block-zero", "block = 0 does not divide"),
        ("block-uneven", "block = 32 does not divide k = 48"),
        ("m-zero", "at least 1"),
        ("k-negative", "-4"),
        ("k-fraction", "1.5"),
        ("m-large", "`dot1`: m·k = 2097152·1 is above 1048576"),
        ("mk-overflows", "is above 1048576"),
        ("k-huge", "instruction 1"),
        ("names-twice", "two have the name `dot1`"),
        ("name-empty", "empty"),
    ] {
        let fault = hello_fails(mode, PATIENT, &[text]);
        assert!(matches!(fault, Fault::Description(_)), "{fault:?}");
    }
}

#[test]
fn death_in_a_run() {
    for (mode, texts) in [
        ("dies-in-run", &["waiting for its reply", "SIGKILL"][..]),
        ("dies-before-reply", &["waiting for its reply", "exit status: 7"]),
        ("dies-in-reply", &["in the middle of its reply, after 6 bytes", "exit status: 7"]),
        ("dies-in-payload", &["after 119 of 120 bytes of D", "SIGKILL"]),
    ] {
        let fault = run_fails(mode, PATIENT, 120, texts);
        assert!(
            matches!(&fault, Fault::Died { during, .. } if during.starts_with("run of `dot1`, 120 problems"))
        );
    }
    // More than the pipe holds: the device dies while it is being written to.
    let fault = run_fails("dies-in-run", PATIENT, 1 << 20, &["SIGKILL"]);
    assert!(matches!(fault, Fault::Died { .. }), "{fault:?}");
}

#[test]
fn silence_in_a_run() {
    let cases = [
        ("silent", 120, "run of `dot1`, 120 problems, waiting for its reply"),
        ("silent-in-reply", 1, "run of `dot1`, 1 problem, in the middle of its reply"),
        ("short-payload", 120, "run of `dot1`, 120 problems, after 119 of 120 bytes of D"),
        ("never-reads", 1 << 20, "bytes of the request not read"),
        ("closes-input", 120, "run of `dot1`, 120 problems, waiting for its reply"),
    ];
    std::thread::scope(|scope| {
        for (mode, count, text) in cases {
            scope.spawn(move || {
                let fault = run_fails(mode, BRIEF, count, &[text, "3 s"]);
                assert!(matches!(fault, Fault::TimedOut { limit: BRIEF, .. }), "{fault:?}");
            });
        }
    });
    let texts = ["run of `dot1`", "exit status: 5, though a process it started keeps its output open"];
    let fault = run_fails("orphan-holds-output", BRIEF, 120, &texts);
    assert!(matches!(fault, Fault::Died { .. }), "{fault:?}");
}

#[test]
fn slowness_is_no_silence() {
    let device = start("dribbles", BRIEF).unwrap();
    let instruction = &device.instructions()[0];
    let batch = batch(instruction, 40);
    let start_time = Instant::now();
    assert_eq!(device.run(instruction, &batch).unwrap(), batch.c);
    assert!(start_time.elapsed() > BRIEF);
}

#[test]
fn replies_that_are_none() {
    for (mode, text) in [
        ("reply-no-json", "no JSON object: \"Segmentation fault\""),
        ("reply-no-utf8", "not UTF-8"),
        ("reply-endless", "no line end within 65536 bytes: \"aaaa"),
        ("reply-not-ok", "neither ok nor error"),
        ("reply-both", "neither ok nor error"),
        ("outside-format", "0x1f at row 0, column 0 of D, problem 119 of the request, has bits outside e2m1"),
    ] {
        let fault = run_fails(mode, PATIENT, 120, &[text]);
        assert!(matches!(&fault, Fault::Reply { during, .. } if during == "run of `dot1`, 120 problems"));
    }
    let fault = run_fails(
        "replies-unread",
        PATIENT,
        1 << 20,
        &["run of `dot1`", "without reading the whole request"],
    );
    assert!(matches!(fault, Fault::Reply { .. }), "{fault:?}");
    for (mode, text) in
        [("reply-error", "it reports: the array is [31m on fire"), ("reply-error-object", "12")]
    {
        let fault = run_fails(mode, PATIENT, 120, &["run of `dot1`, 120 problems", text]);
        assert!(matches!(fault, Fault::Reported { .. }), "{fault:?}");
    }
}

#[test]
fn payloads_that_are_too_long() {
    // At once, before the next request or, at the latest, at the end.
    let device = start("long-payload", PATIENT).unwrap();
    let instruction = &device.instructions()[0];
    let error = match device.run(instruction, &batch(instruction, 120)) {
        Ok(_) => device.finish().unwrap_err(),
        Err(error) => error,
    };
    check(&error, "long-payload", &["run of `dot1`, 120 problems", "too long", "left over, \"\\x00\""]);
    assert!(matches!(error.fault, Fault::Reply { .. }));

    for (mode, count) in [("late-long-payload", 120), ("late-space", 16)] {
        let device = start(mode, PATIENT).unwrap();
        let instruction = &device.instructions()[0];
        device.run(instruction, &batch(instruction, count)).unwrap();
        let error = device.run(instruction, &batch(instruction, 7)).unwrap_err();
        let before =
            format!("perhaps its reply before, to the run of `dot1`, {count} problems, was too long");
        check(&error, mode, &["run of `dot1`, 7 problems", "no JSON object", &before]);
    }
}

#[test]
fn the_end() {
    let device = start("well", PATIENT).unwrap();
    let instruction = &device.instructions()[0];
    assert_eq!(device.finish(), Ok(()));
    assert_eq!(device.finish(), Ok(()));
    let error = device.run(instruction, &batch(instruction, 1)).unwrap_err();
    assert!(matches!(error.fault, Fault::Refused(_)), "{error}");

    let device = start("leftover-at-bye", PATIENT).unwrap();
    device.run(instruction, &batch(instruction, 5)).unwrap();
    let error = device.finish().unwrap_err();
    check(&error, "leftover-at-bye", &["run of `dot1`, 5 problems", "left over, \"!\""]);
    assert!(matches!(error.fault, Fault::Reply { .. }));

    let device = start("stays-at-bye", BRIEF).unwrap();
    let error = device.finish().unwrap_err();
    check(&error, "stays-at-bye", &["bye"]);
    assert!(matches!(error.fault, Fault::TimedOut { .. }));

    // Left without a word, it must not be waited for.
    let device = start("stays-at-bye", PATIENT).unwrap();
    let start_time = Instant::now();
    drop(device);
    assert!(start_time.elapsed() < PATIENT / 2);
}

#[cfg(target_os = "linux")]
#[test]
fn failed_devices_are_killed_and_reaped() {
    let children = || {
        let tasks = std::fs::read_dir("/proc").unwrap();
        tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok())
            .filter(|stat| {
                let rest = stat.rsplit(") ").next().unwrap_or("");
                rest.split(' ').nth(1) == Some(&std::process::id().to_string())
            })
            .filter_map(|stat| stat.split(' ').next()?.parse::<u32>().ok())
            .filter_map(|id| std::fs::read_to_string(format!("/proc/{id}/cmdline")).ok())
            .filter(|command| command.contains("--reaped"))
            .count()
    };
    let device = Exec::start(&command("silent --reaped"), BRIEF).unwrap();
    let instruction = &device.instructions()[0];
    assert_eq!(children(), 1);
    device.run(instruction, &batch(instruction, 1)).unwrap_err();
    assert_eq!(children(), 0);
}

#[test]
fn batches_are_split_and_joined() {
    let device = start("well", PATIENT).unwrap();
    assert_eq!(device.identity().description, "misbehaving");
    assert_eq!(device.identity().provenance, Provenance::Measured);
    let instruction = &device.instructions()[0];
    for count in [0, 1, 2, (4 << 20) / 3, (4 << 20) / 3 + 1, 5_000_000] {
        let batch = batch(instruction, count);
        assert!(device.run(instruction, &batch).unwrap() == batch.c, "{count}");
    }
    device.finish().unwrap();
    let fault = run_fails(
        "dies-in-payload",
        PATIENT,
        3_000_000,
        &["run of `dot1`, problems 0 to 1398100 of 3000000"],
    );
    assert!(matches!(fault, Fault::Died { .. }));
}

#[test]
fn threads_share_a_device() {
    let device = start("well", PATIENT).unwrap();
    let instruction = &device.instructions()[0];
    std::thread::scope(|scope| {
        for count in 1..9 {
            let device = &device;
            scope.spawn(move || {
                let batch = batch(instruction, 1000 * count);
                assert_eq!(device.run(instruction, &batch).unwrap(), batch.c);
            });
        }
    });
    device.finish().unwrap();
}

fn example() -> Exec {
    Exec::start(&format!("python3 '{}'", path("examples/device.py")), PATIENT).unwrap()
}

#[test]
fn example_is_short() {
    let text = std::fs::read_to_string(path("examples/device.py")).unwrap();
    assert!(text.lines().count() <= 80);
}

#[test]
fn example_edges() {
    let device = example();
    let instruction = &device.instructions()[0];
    assert_eq!((instruction.name.as_str(), instruction.k, instruction.scale), ("dot4", 4, None));
    let (one, inf, nan) = (0x3C00, 0x7C00, 0x7E00);
    let zero4 = [0; 4];
    let ones = [one; 4];
    let cases: [([u64; 4], [u64; 4], u64, u64); 18] = [
        (ones, ones, 0x3F80_0000, 0x40A0_0000),                    // 1 + 4
        (ones, ones, 0x7F7F_FFFF, 0x7F7F_FFFF),                    // truncated
        ([one, 0, 0, 0], ones, 0x3380_0000, 0x3F80_0000),          // 1 + 2^-24, truncated
        ([one | 0x8000, 0, 0, 0], ones, 0xB380_0000, 0xBF80_0000), // the same, negative
        ([one, 0, 0, 0], ones, 0xB300_0000, 0x3F7F_FFFF),          // 1 - 2^-25
        ([inf, 0, 0, 0], ones, 0, 0x7F80_0000),
        ([inf | 0x8000, 0, 0, 0], ones, 0x3F80_0000, 0xFF80_0000),
        ([inf, inf | 0x8000, 0, 0], ones, 0, 0x7FFF_FFFF),
        ([inf, 0, 0, 0], zero4, 0, 0x7FFF_FFFF), // inf · 0
        ([nan, 0, 0, 0], ones, 0, 0x7FFF_FFFF),
        (zero4, ones, 0xFFC0_0001, 0x7FFF_FFFF), // NaN in c
        (zero4, ones, 0xFF80_0000, 0xFF80_0000), // infinite c
        (zero4, zero4, 0, 0),
        (zero4, zero4, 0x8000_0000, 0),
        ([0x8000; 4], ones, 0x8000_0000, 0x8000_0000), // all summands -0
        ([one, one | 0x8000, 0, 0], ones, 0, 0),       // cancellation
        (zero4, zero4, 0x8000_0001, 0x8000_0001),      // smallest subnormal c
        ([1, 0, 0, 0], [1, 0, 0, 0], 0x0000_0001, 0x2780_0000), // subnormal factors: 2^-48 + 2^-149
    ];
    let mut batch = Batch::zeros(instruction, cases.len());
    for (index, (a, b, c, _)) in cases.iter().enumerate() {
        for k in 0..4 {
            set_element(&mut batch.a, &instruction.a, 4 * index + k, a[k]);
            set_element(&mut batch.b, &instruction.b, 4 * index + k, b[k]);
        }
        set_element(&mut batch.c, &instruction.c, index, *c);
    }
    let d = device.run(instruction, &batch).unwrap();
    for (index, (a, b, c, expected)) in cases.iter().enumerate() {
        let found = element(&d, &instruction.d, index);
        assert_eq!(found, *expected, "{a:x?} {b:x?} {c:x}: {found:x}");
    }
    device.finish().unwrap();
}

/// The sum as an integer multiple of 2^-48, c being one, against the device's fractions.
#[test]
fn example_values() {
    let device = example();
    let instruction = &device.instructions()[0];
    let count = 3000;
    let mut batch = Batch::zeros(instruction, count);
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 32
    };
    // Finite numbers only, and c between 2^-25 and 2^39.
    let half = |bits: u64| if bits & 0x7C00 == 0x7C00 { bits & 0x83FF } else { bits & 0xFFFF };
    for index in 0..4 * count {
        set_element(&mut batch.a, &instruction.a, index, half(random()));
        set_element(&mut batch.b, &instruction.b, index, half(random()));
    }
    for index in 0..count {
        let c = (102 + random() % 64) << 23 | random() & 0x807F_FFFF;
        set_element(&mut batch.c, &instruction.c, index, c);
    }
    let d = device.run(instruction, &batch).unwrap();
    // An fp16 number is an integer multiple of 2^-24.
    let integer = |bits: u64| {
        let (field, fraction) = (bits >> 10 & 31, (bits & 0x3FF) as i128);
        let magnitude = if field == 0 { fraction } else { (fraction | 0x400) << (field - 1) };
        if bits & 0x8000 == 0 { magnitude } else { -magnitude }
    };
    for index in 0..count {
        let c = element(&batch.c, &instruction.c, index);
        let magnitude = ((c & 0x7F_FFFF | 0x80_0000) as i128) << ((c >> 23 & 0xFF) - 102);
        let mut sum = if c >> 31 == 0 { magnitude } else { -magnitude };
        for k in 4 * index..4 * index + 4 {
            sum +=
                integer(element(&batch.a, &instruction.a, k)) * integer(element(&batch.b, &instruction.b, k));
        }
        let (sign, magnitude) = ((sum < 0) as u64, sum.unsigned_abs());
        let leading = magnitude.ilog2();
        let significand =
            if leading > 23 { magnitude >> (leading - 23) } else { magnitude << (23 - leading) };
        let expected = sign << 31 | (u64::from(leading) + 127 - 48) << 23 | significand as u64 & 0x7F_FFFF;
        let found = element(&d, &instruction.d, index);
        assert_eq!(found, expected, "problem {index}: {found:x}, not {expected:x}");
    }
}

#[test]
fn example_refuses_unknown_instructions_and_ends() {
    let device = example();
    let unknown = Instruction { name: "dot5".into(), ..device.instructions()[0].clone() };
    let error = device.run(&unknown, &Batch::zeros(&unknown, 3)).unwrap_err();
    assert!(matches!(&error.fault, Fault::Reported { message, .. } if message.contains("dot5")), "{error}");
    let status =
        Command::new("python3").arg(path("examples/device.py")).stdin(std::process::Stdio::null()).status();
    assert!(status.unwrap().success());
}
