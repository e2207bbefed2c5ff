//! What is printed for programs, and for people who want no colours.

use std::path::Path;
use std::process::Command;

use crate::common::{json, mmaprobe, text};

#[test]
fn tables_come_as_json_too() {
    let devices = json(&["devices"], 0);
    let names: Vec<&str> =
        devices["devices"].as_array().unwrap().iter().map(|one| one["device"].as_str().unwrap()).collect();
    assert!(names.contains(&"sim:cdna3") && names.contains(&"exec:COMMAND"), "{names:?}");

    let listed = json(&["instructions", "--device", "sim:volta"], 0);
    assert_eq!(listed.as_array().unwrap().len(), 3);
    assert_eq!(
        (&listed[0]["k"], &listed[0]["a"], &listed[0]["d"]),
        (&4.into(), &"fp16".into(), &"fp32".into())
    );
    let hopper = json(&["instructions", "--arch", "hopper"], 0);
    assert_eq!(hopper["instructions"].as_array().unwrap().len(), 24);
    let expansions = hopper["expansions"].as_array().unwrap();
    assert!(expansions.iter().any(|one| one["into"].as_str().unwrap().contains("HMMA")));

    let sheet = json(&["show", "reports/volta.yaml"], 0);
    assert_eq!(sheet["instructions"][0]["algorithm"], "FDA(F=23)");

    let arguments = ["validate", "--device", "sim:volta", "--against", "sim:volta+zeros", "--sets", "2000"];
    let validated = json(&arguments, 1);
    let failed = validated.as_array().unwrap().iter().find(|one| !one["mismatch"].is_null()).unwrap();
    assert_ne!(failed["mismatch"]["device"], failed["mismatch"]["model"]);
    let equal = json(&["validate", "--device", "sim:volta", "--against", "sim:v100", "--sets", "100"], 0);
    assert!(equal.as_array().unwrap().iter().all(|one| one["mismatch"].is_null() && one["sets"] == 100));

    let layout = json(&["layout", "--instruction", "mma.m16n8k16.f32.f16.f16.f32", "--matrix", "A"], 0);
    let rows = layout["problems"][0].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0][1]), (16, &"0r0.16".into()));

    let operand = json(&["explain", "0x8000000000000000", "--instruction", "fma32"], 0);
    assert_eq!(operand["fields"][0]["field"], "mode");
    assert_eq!(operand["effects"].as_array().unwrap().len(), 1);

    let tried = json(&["selftest", "--machines", "0", "--defective", "1"], 0);
    assert_eq!(tried[0]["verdict"], "detected");

    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("new");
    let into = into.to_str().unwrap();
    for arguments in [
        &["characterize", "--device", "sim:volta"][..],
        &["show", "reports/volta.yaml", "--tree"],
        &["report", "reports/volta.yaml", "-o", into],
        &["onboard", "cdna4", "--isa", "gfx950", "-o", into],
        &["completions", "bash"],
        &["man", "-o", into],
    ] {
        let output = mmaprobe(&[arguments, &["--format", "json"]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("--format json"));
        assert!(output.stdout.is_empty() && !Path::new(into).exists(), "{arguments:?}");
    }
}

#[test]
fn no_color_means_no_colour() {
    let help = |no_color: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mmaprobe"));
        command.arg("--help").env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR");
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(help(None).contains('\x1b'), "colours are there to be left out");
    assert!(!help(Some("1")).contains('\x1b'));
}

#[test]
fn help_fits_a_terminal() {
    for command in ["diff", "explain", "bias", "report", "onboard", "completions", "man"] {
        assert!(text(&[command, "--help"], 0).contains("Example"));
    }
}
