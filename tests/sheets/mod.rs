//! Sheets and runs of the tool, for tests of the command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mmaprobe::device::{Identity, Instruction, Provenance};
use mmaprobe::model::Model;
use mmaprobe::sheet::Arithmetic;
use mmaprobe::sheet::schema::{Formats, SCHEMA, ScaleFacts, Shape, Status};
use serde_json::json;

/// An instruction that computes what a model says.
pub fn instruction(name: &str, (m, n): (usize, usize), model: &Model) -> Instruction {
    Instruction {
        name: name.into(),
        m,
        n,
        k: model.k,
        a: model.a.format,
        b: model.b.format,
        c: model.c.format,
        d: model.d,
        scale: model.scale,
        mode_of: None,
    }
}

/// A name for devices.
pub fn identity() -> Identity {
    Identity {
        name: "test".into(),
        description: "models for tests".into(),
        properties: Vec::new(),
        provenance: Provenance::Simulated,
        absent: Vec::new(),
    }
}

/// Writes a sheet of these instructions into a folder.
pub fn sheet(folder: &Path, instructions: &[(Instruction, Model)]) -> PathBuf {
    let entries: Vec<_> = instructions
        .iter()
        .map(|(instruction, model)| {
            let &Instruction { m, n, k, a, b, c, d, scale, .. } = instruction;
            let mut entry = json!({
                "name": instruction.name,
                "shape": Shape { m, n, k },
                "formats": Formats { a, b, c, d },
                "status": Status::Characterized,
                "algorithm": "unnamed",
                "summary": "",
                "arithmetic": Arithmetic::from(model),
            });
            if let Some(scale) = scale {
                entry["scale"] = json!(ScaleFacts::from(scale));
            }
            entry
        })
        .collect();
    let sheet = json!({
        "schema": SCHEMA,
        "tool": "tests",
        "device": { "name": "test", "description": "models for tests" },
        "provenance": "published",
        "instructions": entries,
    });
    let path = folder.join("sheet.yaml");
    // YAML holds JSON.
    std::fs::write(&path, sheet.to_string()).unwrap();
    path
}

/// Runs the tool in a folder.
pub fn mmaprobe(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mmaprobe")).args(arguments).current_dir(folder).output().unwrap()
}

/// Exit code, stdout and stderr.
pub fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
