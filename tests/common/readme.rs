//! The README, and the commands in it.

use std::fs;
use std::path::Path;

/// The README, in the section of findings, whose every command shows something, and the rest of it.
pub struct Readme {
    /// All of it but the findings.
    pub rest: String,
    /// The findings.
    pub findings: String,
}

impl Readme {
    /// Reads it.
    pub fn read() -> Readme {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
        let (before, rest) = text.split_once("\n## Findings\n").expect("a section of findings");
        let (findings, after) = rest.split_once("\n## ").expect("a section after it");
        Readme { rest: format!("{before}\n## {after}"), findings: findings.to_string() }
    }
}

/// The commands of the indented blocks, continued lines joined.
pub fn commands(text: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut is_continued = false;
    for line in text.lines() {
        let Some(text) = line.strip_prefix("    ") else {
            assert!(!is_continued, "{line}");
            continue;
        };
        let text = text.trim_start();
        let begins = ["mmaprobe ", "cargo ", "cd ", "MMAPROBE_"].iter().any(|word| text.starts_with(word));
        match commands.last_mut() {
            Some(last) if is_continued => {
                *last = format!("{} {text}", last.trim_end_matches('\\').trim_end())
            }
            _ if begins => commands.push(text.to_string()),
            _ => continue,
        }
        is_continued = text.ends_with('\\');
    }
    // What follows several spaces says in words what a command does.
    commands
        .iter()
        .map(|command| command.split("    ").next().unwrap_or_default().trim_end().to_string())
        .collect()
}
