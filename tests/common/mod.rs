//! Running the command.

pub mod readme;

use std::process::{Command, Output};

use serde_json::Value;
use textwrap::core::display_width;

/// Runs the command.
pub fn mmaprobe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mmaprobe")).args(arguments).output().unwrap()
}

/// What a command prints that ends like that, in lines of at most 80 columns.
#[track_caller]
pub fn text(arguments: &[&str], code: i32) -> String {
    let output = mmaprobe(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    for line in stdout.lines() {
        assert!(display_width(line) <= 80, "{arguments:?}: {line}");
    }
    stdout
}

/// The same as JSON.
#[track_caller]
pub fn json(arguments: &[&str], code: i32) -> Value {
    let output = mmaprobe(&[arguments, &["--format", "json"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
}
