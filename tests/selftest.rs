//! The command on a few machines: its outcome, its exit code, and the same bytes for any number of
//! threads.

use std::process::{Command, Output};

/// A machine of the seed that is soon found: four products and c, exactly, rounded down.
const FOUND: &str = "11";

fn selftest(arguments: &[&str]) -> Output {
    selftest_of("1", arguments)
}

fn selftest_of(seed: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mmaprobe"))
        .args(["selftest", "--seed", seed, "--validate", "2000"])
        .args(arguments)
        .output()
        .expect("the binary can be run")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("text")
}

#[test]
fn one_machine_is_told_in_full() {
    let output = selftest(&["--only", FOUND]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with(&format!("Machine {FOUND}: ")), "{text}");
    // The machine in words, and the sheet.
    assert!(text.contains("\n  d = R") && text.contains("\nschema: mmaprobe-sheet/1\n"), "{text}");
}

/// Machines of which no part of a rule explains anything alone: groups that are rounded to 3 bits of fp16, which overflow to
/// its largest number, and summands of one sum that are each aligned in a way of their own, with room for few carries.
const TOGETHER: (&str, &str) = ("141", "53");
const TOGETHER_SLOWLY: (&str, &str) = ("141", "63");

#[test]
fn what_shows_only_together_is_found() {
    assert_found(TOGETHER.0, TOGETHER.1);
}

#[test]
#[ignore = "takes minutes: cargo test --test all selftest:: -- --ignored"]
fn what_shows_only_together_is_found_slowly() {
    assert_found(TOGETHER_SLOWLY.0, TOGETHER_SLOWLY.1);
}

/// Pairs of fp16 products that are rounded to fp64, and then summed exactly and rounded to fp16: nothing is lost beside
/// what fp16 holds.
const BEYOND: (&str, &str) = ("151", "38");

#[test]
fn sums_with_more_range_than_the_result_are_found() {
    assert_found(BEYOND.0, BEYOND.1);
}

/// Eight sums with rules of their own; the last aligns to an exponent that zeros have, too, and nothing but small numbers
/// beside them shows how many bits it keeps.
const BESIDE_ZEROS: (&str, &str) = ("161", "42");

#[test]
fn what_only_zeros_cut_off_is_found() {
    assert_found(BESIDE_ZEROS.0, BESIDE_ZEROS.1);
}

/// A chain of scaled products of e3m2 and e4m3, interleaved, that keeps 23 bits: inside a block only subnormal factors
/// reach so far below others.
const WITH_LITTLE_RANGE: (&str, &str) = ("181", "97");

#[test]
fn an_order_that_subnormal_factors_show_is_found() {
    assert_found(WITH_LITTLE_RANGE.0, WITH_LITTLE_RANGE.1);
}

/// Four sums with rules of their own, open and rounded, one in the other, in the order that masks show.
const SUM_BY_SUM: (&str, &str) = ("251", "42");

#[test]
fn rules_of_their_own_are_found_sum_by_sum() {
    assert_found(SUM_BY_SUM.0, SUM_BY_SUM.1);
}

/// Lanes of exact sums that all round twice: to 44 bits, away from zero, and then up, to fp32.
const ALL_ROUND_TWICE: (&str, &str) = ("401", "22");

#[test]
fn sums_that_all_round_twice_are_found() {
    assert_found(ALL_ROUND_TWICE.0, ALL_ROUND_TWICE.1);
}

/// A machine of a seed is characterized, and no claim about it is wrong.
fn assert_found(seed: &str, machine: &str) {
    let output = selftest_of(seed, &["--only", machine]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let is_found = ["found", "ambiguous but equal"]
        .iter()
        .any(|verdict| text.starts_with(&format!("Machine {machine}: {verdict}")));
    assert!(is_found, "{text}");
}

#[test]
fn noise_is_detected_whatever_the_threads() {
    let arguments = ["--machines", "0", "--defective", "1"];
    let [one, two] = ["1", "2"].map(|threads| selftest(&[&arguments[..], &["--threads", threads]].concat()));
    assert_eq!(one.status.code(), Some(0), "{}", stdout(&one));
    assert_eq!(stdout(&one), stdout(&two));
    assert!(stdout(&one).contains("noise"));
    assert!(stdout(&one).lines().all(|line| line.chars().count() <= 80));
}

/// A unit with 128 elements that computes otherwise in batches of 200 problems and more.
#[test]
fn other_arithmetic_in_large_batches_is_detected() {
    let output = selftest_of("17", &["--only", "d55"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("Machine d55: detected"), "{text}");
}

/// A unit that computes otherwise in batches of 8 problems and more: all that is asked but for the few questions that
/// separate candidates.
#[test]
fn other_arithmetic_in_all_but_the_smallest_batches_is_detected() {
    let output = selftest_of("17", &["--only", "d99"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("Machine d99: detected"), "{text}");
}

#[test]
fn sound_machines_are_not_called_no_function() {
    let output = selftest(&["--machines", "0", "--functions", "20"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let row = text.lines().rev().nth(1).unwrap_or("").replace('│', "");
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["20", "20", "0", "0"], "{text}");
    let output = selftest(&["--only", "f3"]);
    assert!(stdout(&output).starts_with("Machine f3: not accused"), "{}", stdout(&output));
}

#[test]
fn details_are_lines_of_json() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("details.jsonl");
    let file = path.to_str().expect("a path in UTF-8");
    let arguments = ["--machines", "0", "--defective", "1", "--details", file];
    let first = selftest(&arguments);
    assert_eq!(first.status.code(), Some(0));
    let text = std::fs::read_to_string(&path).expect("the details");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["index"], "d0");
    assert_eq!(lines[0]["verdict"], "detected");
    // It is there now, and stays without --force.
    assert_eq!(selftest(&arguments).status.code(), Some(2));
    // What it tells of is told again, and not tried.
    let resumed = selftest(&[&arguments[..], &["--resume"]].concat());
    assert_eq!(resumed.status.code(), Some(0), "{}", stdout(&resumed));
    assert_eq!(stdout(&resumed), stdout(&first));
    assert!(String::from_utf8_lossy(&resumed.stderr).contains("0 units in"), "it is not tried");
    assert_eq!(std::fs::read_to_string(&path).expect("the details"), text);
    // Other inputs would be another run.
    let other = selftest_of("2", &[&arguments[..], &["--resume"]].concat());
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&other.stderr).contains("--seed 1 --validate 2000"));
}
