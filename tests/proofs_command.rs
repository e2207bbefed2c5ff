//! `mmaprobe battery` and `mmaprobe smt` from outside, as the README has them; the kept report of this
//! project's CPU; and Table 4.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use mmaprobe::smt::query::{By, Plan};
use mmaprobe::smt::solver::Program;
use mmaprobe::smt::table4::{Answered, answer, queries};

/// Runs the program in this project's folder; `path` replaces the PATH, where given.
fn run(arguments: &[&str], path: Option<&str>) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mmaprobe"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    (status.code(), text(stdout), text(stderr))
}

/// Its standard output, if it ends like that.
#[track_caller]
fn ends(code: i32, arguments: &[&str]) -> String {
    let (found, stdout, stderr) = run(arguments, None);
    assert_eq!(found, Some(code), "{stdout}\n{stderr}");
    stdout
}

const VOLTA: [&str; 3] = ["sim:volta", "--instruction", "mma.m8n8k4.f32.f16.f16.f32"];
const AMPERE: [&str; 3] = ["sim:ampere", "--instruction", "mma.m16n8k8.f32.f16.f16.f32"];

#[test]
fn the_battery_compares_three_gpus() {
    let mut arguments = vec!["battery"];
    for device in ["sim:v100", "sim:t4", "sim:a100"] {
        arguments.extend(["--device", device]);
    }
    let text = ends(0, &[&arguments[..], &["--instruction", "mma.*.f32.f16.f16.f32"]].concat());
    let row = |name: &str| text.lines().find(|line| line.contains(name)).expect("a row").to_string();
    assert!(row("extra-bits").contains("│ 0 ") && row("extra-bits").contains("│ 1 "), "{text}");
    assert!(row("fma-size").contains("4 and c"), "{text}");
    let json = ends(0, &["battery", "--device", "sim:v100", "--format", "json"]);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&json).expect("it is JSON").as_array().map(Vec::len),
        Some(3)
    );
    let (code, _, stderr) = run(&["battery", "--device", "sim:v100", "--instruction", "nothing*"], None);
    assert!(code == Some(2) && stderr.contains("no instruction matches"), "{stderr}");
}

/// What hardware answered once, against the sheet that was inferred from other answers of it.
#[test]
fn the_kept_battery_of_this_cpu_is_what_its_sheet_says() {
    let name = "reports/measured/battery-intel-xeon-6-207.md";
    let kept = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("it is kept");
    let sheet = "sheet:reports/measured/intel-xeon-6-207.yaml";
    let said = ends(0, &["battery", "--device", sheet, "--instruction", "*p[sdh]", "--format", "markdown"]);
    assert_eq!(kept.replace("cpu", sheet), said);
}

#[test]
fn instructions_are_exported_and_told_apart() {
    let text = ends(0, &[&["smt", "export"][..], &VOLTA].concat());
    assert!(text.contains("(set-logic QF_BV)") && text.contains("(define-fun d () (_ BitVec 32)"), "{text}");
    let text = ends(0, &[&["smt", "distinguish", "sim:volta", "sim:turing"][..], &VOLTA[1..]].concat());
    assert!(text.contains("differ (structured search") && text.contains("sim:turing  d = "), "{text}");
    let text = ends(0, &[&["smt", "distinguish", "sim:volta", "sim:volta"][..], &VOLTA[1..]].concat());
    assert!(text.contains("never differ (both are the same sum tree"), "{text}");
    let (code, _, stderr) = run(&["smt", "distinguish", "sim:volta", "sim:cdna3", "--by", "reasoning"], None);
    assert!(code == Some(2) && stderr.contains("no such instruction in common"), "{stderr}");
    let (code, _, stderr) = run(&[&["smt", "export", "cpu"][..], &VOLTA[1..]].concat(), None);
    assert!(code == Some(2) && stderr.contains("mmaprobe characterize makes a sheet of it"), "{stderr}");
}

#[test]
fn properties_are_checked() {
    let check = |model: &[&str], property: &str, code: i32| {
        let by = ["--property", property, "--by", "reasoning"];
        ends(code, &[&["smt", "check"][..], model, &by].concat())
    };
    assert!(check(&AMPERE, "carry-bits=4", 0).contains("4 carry bits suffice: no sum of the 9 summands"));
    assert!(check(&AMPERE, "carry-bits=3", 1).contains("3 carry bits are too few, executed on"));
    assert!(check(&VOLTA, "carry-bits=3", 0).contains("no sum of the 5 summands exceeds 17.985"));
    assert!(check(&VOLTA, "order-independence", 0).contains("never matters"));
    let chain = ["sim:a100", "--instruction", "mma.m8n8k4.f64.f64.f64.f64"];
    assert!(check(&chain, "3", 1).contains("as if p0 and p1 were exchanged: differ"));
    assert!(check(&VOLTA, "monotonicity", 1).contains("c grows and d falls, executed on"));
    for property in ["1", "2", "4"] {
        assert!(check(&VOLTA, property, 0).contains("differ (structured search"));
    }
    let text = check(&VOLTA, "5", 0);
    assert!(text.contains("Ootomo and Yokota's method is worse on"), "{text}");
    assert!(text.contains("Markidis et al.'s method is worse on"), "{text}");
    let (code, _, stderr) = run(&[&["smt", "check"][..], &VOLTA, &["--property", "6"]].concat(), None);
    assert!(code == Some(2) && stderr.contains("expected 1 to 5"), "{stderr}");
}

#[test]
fn without_a_solver_the_rest_says_what_to_install() {
    let empty = tempfile::tempdir().expect("a folder");
    let path = empty.path().to_str().expect("a name");
    let eval = [&["smt", "eval"][..], &VOLTA, &["--a", "0x3c00", "--b", "0x3c00"]].concat();
    let (code, _, stderr) = run(&eval, Some(path));
    assert!(code == Some(2) && stderr.contains("apt-get install z3 cvc5"), "{stderr}");
    let (code, stdout, _) = run(&[&["smt", "export"][..], &VOLTA].concat(), Some(path));
    assert!(code == Some(0) && stdout.contains("define-fun"));
    let (code, stdout, _) =
        run(&[&["smt", "check"][..], &AMPERE, &["--property", "carry-bits=4"]].concat(), Some(path));
    assert!(code == Some(0) && stdout.contains("suffice"), "{stdout}");
}

#[test]
fn a_solver_evaluates_what_the_executor_does() {
    if Program::first().is_none() {
        println!("NOT RUN: a_solver_evaluates_what_the_executor_does: no SMT solver is on the PATH");
        return;
    }
    let operands = ["--a", "0x3c00,0x3c00", "--b", "0x3c00,0x1400", "--c", "0xbf800000"];
    let text = ends(0, &[&["smt", "eval"][..], &VOLTA, &operands].concat());
    // 1·1 + 1·2^-10 − 1.
    assert!(text.contains("solver    d = 0x3a800000 = 2^-10\nexecuted  d = 0x3a800000"), "{text}");
}

#[test]
fn every_query_of_table_4_is_answered_by_reasoning() {
    let plan = Plan { solver: None, limit: Duration::from_secs(1), by: By::Reasoning };
    let queries = queries().expect("the models can be made");
    assert_eq!(queries.len(), 8);
    for query in queries {
        let answered = answer(&query, &plan).expect("no solver takes part");
        assert!(matches!(answered, Answered::In(_)), "{}: {answered:?}", query.name);
    }
}
