//! The README's findings: every command of that section runs, and shows what the text says.

use std::process::Command;

use crate::common::readme::{Readme, commands};

/// What each command has to print, and how it ends.
const SHOWN: [(&str, i32, &[&str]); 11] = [
    (
        "diff sim:h100 sim:b200",
        1,
        &[
            "│ bits kept at alignment (F) │ 13       │ 25       │",
            "│ fraction bits of sums      │ 13       │ 23       │",
        ],
    ),
    ("diff sim:rtx4090 sim:rtx5090", 1, &["│ bits kept at alignment (F) │ 13          │ 25          │"]),
    (
        "diff sim:b200 sim:b200+fp4-34",
        1,
        &["│ bits kept at alignment (F) │ 35       │ 34", "Smallest input found for"],
    ),
    ("explain --device sim:h100", 0, &["1.99999988079071", "0x3ffffc00 = 0x1.fff8p+0", "1.9998779296875"]),
    ("explain --device sim:mi250x", 0, &["read as 0", "0x00000000 = 0", "0x33800000 = 2^-24"]),
    ("instructions --arch hopper", 0, &["mma.m16n8k32.f32.e4m3.e4m3.f32", "2 HMMA.16816.F32", "4 FADD"]),
    (
        "explain --device sim:mi300x --instruction v_mfma_f32_32x32x8_bf16",
        0,
        &["0x7f800000 = infinity", "0x7f000000 = 2^127"],
    ),
    (
        "explain --device sim:mi300x --instruction v_mfma_f32_32x32x8_f16",
        0,
        &["0xbe800000 = -2^-2", "RD at 2^-2"],
    ),
    ("explain --device sim:mi300x --instruction v_mfma_f32_32x32x16_fp8_fp8", 0, &["RZ at 2^-10", "= 0 "]),
    ("bias sim:cdna3 sim:cdna3+rz", 0, &["mean error", "its standard error"]),
    (
        "diff sim:hopper sim:ada",
        1,
        &["mma.m16n8k16.f32.f16.f16.f32", "which summands meet", "equal: the same tree"],
    ),
];

#[test]
fn every_finding_is_shown_by_its_command() {
    let section = Readme::read().findings;
    let folder = tempfile::tempdir().unwrap();
    let mut used = [false; SHOWN.len()];
    for command in commands(&section) {
        let words = shlex::split(&command).unwrap();
        assert_eq!(words[0], "mmaprobe", "{command}");
        let arguments = words[1..].join(" ");
        let index = SHOWN
            .iter()
            .position(|(begins, ..)| arguments.starts_with(begins))
            .unwrap_or_else(|| panic!("nothing is said of what this shows: {command}"));
        assert!(!used[index], "two commands begin alike: {command}");
        used[index] = true;
        let (_, code, shows) = SHOWN[index];
        let output = Command::new(env!("CARGO_BIN_EXE_mmaprobe"))
            .args(&words[1..])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{command}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        for text in shows {
            assert!(stdout.contains(text), "{command}: {text:?} is not in\n{stdout}");
        }
        if arguments.starts_with("bias") {
            told_figures(&section, &stdout);
            let drawn = std::fs::read_to_string(folder.path().join("figure2.svg")).unwrap();
            assert_eq!(titles(&drawn), titles(include_str!("../reports/figure2.svg")));
        }
    }
    assert!(used.iter().all(|used| *used), "some expectation is no command's: {used:?}");
}

/// The figures that the text has are those that the command prints, rounded.
fn told_figures(section: &str, stdout: &str) {
    for row in ["mean error", "standard deviation"] {
        let line = stdout.lines().find(|line| line.contains(&format!("│ {row} "))).expect("a row");
        for figure in line.split('│').skip(2).map(str::trim).filter(|text| !text.is_empty()) {
            let figure: f64 = figure.parse().unwrap();
            let told = format!("{figure:.3}").replace('-', "−");
            let told = if told == "−0.000" { "0.000" } else { &told };
            assert!(section.contains(told), "{row} {told} is not in the README");
        }
    }
}

/// What is written in a drawing: bars may differ by a logarithm's last bit from machine to machine.
fn titles(svg: &str) -> Vec<&str> {
    let texts = svg.lines().filter(|line| line.starts_with("<text"));
    let titles: Vec<&str> = texts.filter_map(|line| line.split(['>', '<']).nth(2)).collect();
    assert!(titles.len() > 10, "{titles:?}");
    titles
}
