//! Onboarding: the draft of a catalogue file, what is wrong with it and missing around it, the first look
//! at a device, and the nearest of what is published.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::Fake;
use mmaprobe::catalog::Catalog;
use mmaprobe::device::{Device, Instruction};
use mmaprobe::model::format::{FP16, FP32};
use mmaprobe::model::{Executor, Model};
use mmaprobe::onboard::check::{CheckError, Offered, check, ready, undescribed};
use mmaprobe::onboard::draft::{Basis, draft};
use mmaprobe::onboard::nearest::nearest;
use mmaprobe::onboard::trial::oddities;
use mmaprobe::sheet::load;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn mmaprobe(arguments: &[&str]) -> (Option<i32>, String, String) {
    let run =
        Command::new(env!("CARGO_BIN_EXE_mmaprobe")).args(arguments).current_dir(ROOT).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (run.status.code(), text(run.stdout), text(run.stderr))
}

/// The lines of the README from behind one text to the end of the block.
fn block(behind: &str) -> String {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let (_, rest) = readme.split_once(behind).unwrap();
    rest.split_once("```").unwrap().0.to_string()
}

/// As a new user would, with the README alone.
#[test]
fn the_guide_leads_from_a_name_to_a_crate() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("cdna4");
    let path = folder.to_str().unwrap();
    let onboard = ["onboard", "cdna4", "--isa", "gfx950", "-o", path];
    let (code, out, err) = mmaprobe(&onboard);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("AMD CDNA4: 54 instructions described") && out.contains("a kernel `mfma`"), "{out}");

    let device = ["--device", "exec:python3 examples/standin.py", "--validate", "500"];
    let (code, out, err) = mmaprobe(&[&onboard[..], &device].concat());
    assert!(code == Some(2) && err.contains("offers none of the instructions"), "{err}");
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined(&out).contains("the file does not describe: v_mfma_f32_4x4x4_16b_f16"), "{out}");

    let catalog = folder.join("catalog.yaml");
    let text = fs::read_to_string(&catalog).unwrap() + &block("```yaml\n");
    fs::write(&catalog, &text).unwrap();
    let (code, out, err) = mmaprobe(&[&onboard[..], &device].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    // What examples/standin.py says of itself: 26 bits, toward zero, then to nearest even.
    let line = joined(&out);
    for (says, times) in [
        (": as expected", 3),
        (": characterized. Like FDA(F=26), but", 3),
        ("alignment: F=25, RZ → F=26, RZ", 3),
        ("result: fp32 RZ → fp32 RNE", 3),
        ("Nearest of what is published: NVIDIA Hopper", 1),
    ] {
        assert_eq!(line.matches(says).count(), times, "{says}: {out}");
    }
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    // What the README shows is what comes.
    let shown = block("Nearest of what is published:");
    assert!(shown.lines().count() >= 4 && out.contains(&shown), "{shown}{out}");
    for file in ["cdna4.rec", "cdna4.yaml", "report/cdna4.md", "report/cdna4.html", "cdna4-model/Cargo.toml"]
    {
        assert!(folder.join(file).exists(), "{file}");
    }
    // Recorded answers are behind the crate's tests and the report.
    assert!(folder.join("cdna4-model/tests/evidence").read_dir().unwrap().count() >= 3);
    let report = fs::read_to_string(folder.join("report/cdna4.md")).unwrap();
    assert!(report.contains("recorded answer") && report.contains("`v_mfma_f32_4x4x1_16b_f32`"));
    let sheet = folder.join("cdna4.yaml");
    assert_eq!(load(&sheet).unwrap().instructions.len(), 3);
    let (code, tree, _) = mmaprobe(&["show", sheet.to_str().unwrap(), "--tree"]);
    assert!(code == Some(0) && tree.contains("Σ fused F=26 RZ → fp32 RNE"), "{tree}");

    // Nothing is replaced unasked, and nothing is asked before that is said.
    let (code, out, err) = mmaprobe(&[&onboard[..], &device].concat());
    assert!(code == Some(2) && err.contains("--force") && !out.contains("Tried"), "{err}");
    assert_eq!(fs::read_to_string(&catalog).unwrap(), text);
}

#[test]
fn an_unknown_target_begins_with_an_example() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x").to_str().unwrap().to_string();
    let onboard = ["onboard", "nova", "--isa", "nv-1", "-o", &path];
    let (code, out, err) = mmaprobe(&onboard);
    assert!(
        code == Some(0) && out.is_empty() && err.contains("fill in what is ??? in lines 5, 6, 8"),
        "{err}"
    );
    let catalog = place.path().join("x/catalog.yaml");
    let drafted = fs::read_to_string(&catalog).unwrap();
    let (code, _, err) = mmaprobe(&onboard);
    assert!(code == Some(2) && err.contains("fill in what is ???"), "{err}");
    // Step by step, as somebody fills it in.
    let filled = drafted.replace("name: \"???\"", "name: \"dot{k}\"").replace("[\"???\"]", "[fp16]");
    fs::write(&catalog, filled.replace("d: \"???\"", "d: fp33").replace("\"???\"", "mine")).unwrap();
    let (code, _, err) = mmaprobe(&onboard);
    assert!(code == Some(2) && err.contains("catalog.yaml:14:") && err.contains("no type `fp33`"), "{err}");
    fs::write(&catalog, filled.replace("d: \"???\"", "d: fp32").replace("\"???\"", "mine")).unwrap();
    let (code, out, err) = mmaprobe(&onboard);
    assert!(code == Some(0) && out.contains("mine: 1 instruction described\n  dot16\n"), "{out}{err}");
    for (arguments, problem) in [
        (["onboard", "other", "--isa", "nv-1", "-o", &path], "it describes the architecture `nova`"),
        (["onboard", "nova", "--isa", "nv-2", "-o", &path], "its targets are nv-1"),
        (["onboard", "No Name", "--isa", "nv-1", "-o", &path], "no crate can be called"),
    ] {
        let (code, _, err) = mmaprobe(&arguments);
        assert!(code == Some(2) && err.contains(problem), "{err}");
    }
}

fn instruction(name: &str, k: usize) -> Instruction {
    let [a, c] = [FP16, FP32];
    Instruction { name: name.to_string(), m: 2, n: 3, k, a, b: a, c, d: c, scale: None, mode_of: None }
}

#[test]
fn drafts_describe_what_a_device_offers() {
    let catalog = Catalog::embedded();
    // A name that is no plain word to YAML.
    let offered = [instruction("dot: #4", 4), instruction("true", 8)];
    let (text, basis) = draft("mine", "x1", &catalog, &offered);
    assert_eq!(basis, Basis::Device);
    let path = Path::new("catalog.yaml");
    let lines = match check(&text, path, "mine", "x1") {
        Err(CheckError::Blank { lines, .. }) => lines,
        other => panic!("{other:?}"),
    };
    let blank: Vec<usize> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.contains("\"???\""))
        .map(|(number, _)| number)
        .collect();
    assert_eq!(lines, blank);
    let architecture = check(&text.replace("\"???\"", "me"), path, "mine", "x1").unwrap();
    let found = ready(&architecture, Some(&offered));
    assert!(found.iter().all(|own| matches!(own.offered, Some(Offered::Yes(_))) && own.missing.is_some()));
    assert_eq!(undescribed(&architecture, &[offered[0].clone(), instruction("else", 4)])[0].name, "else");
    let other = Instruction { c: FP16, ..offered[0].clone() };
    let Some(Offered::Otherwise(how)) = &ready(&architecture, Some(&[other]))[0].offered else { panic!() };
    assert!(how.contains("fp16·fp16 + fp16 → fp32") && how.contains("fp16·fp16 + fp32 → fp32"), "{how}");

    // What the catalogue knows is taken from there, kernels and layouts are known for NVIDIA's.
    let (text, basis) = draft("hopper-two", "sm_90a", &catalog, &[]);
    assert_eq!(basis, Basis::Catalogue);
    let architecture = check(&text, path, "hopper-two", "sm_90a").unwrap();
    assert!(ready(&architecture, None).iter().all(|own| own.missing.is_none() && own.offered.is_none()));
}

/// A device of 2×3 results; `change` is what it does wrong.
fn device(
    change: impl Fn(&[u64], &[u64], u64, (usize, usize, usize)) -> Option<u64> + Sync + 'static,
) -> Fake {
    let model = Model::chain_of_fma(FP16, FP32, 4);
    Fake::new([2, 3, 4], [FP16, FP16, FP32, FP32], move |a, b, c, place| {
        let right = || Executor::new(&model).unwrap().dot_add(a, b, c, &[], &[]);
        change(a, b, c, place).unwrap_or_else(right)
    })
}

#[test]
fn a_first_look_shows_what_is_odd() {
    let odd = |device: Fake| oddities(&device, &device.instructions()[0]).unwrap();
    assert_eq!(odd(device(|_, _, _, _| None)), Vec::<String>::new());
    // All D is one element, as where every place of the matrix gets the same.
    let same = odd(device(|_, _, _, _| Some(0x4080_0000)));
    assert!(
        same.len() == 4 && same[0].contains("A[0][0] = B[0][2] = 1, else zeros: D[0][0] is 0x40800000 = 4"),
        "{same:?}"
    );
    let short = odd(device(|_, b, _, _| (b[3] != 0).then_some(0x4040_0000)));
    assert!(short.len() == 1 && short[0].contains("D has 0x40400000 = 0x1.8p+1 = 3, not 4"), "{short:?}");
    let without_c = odd(device(|_, _, c, _| (c != 0).then_some(0)));
    assert!(without_c.len() == 2 && without_c[0].starts_with("C[0][2] = 1"), "{without_c:?}");
}

#[test]
fn each_architecture_is_nearest_to_itself() {
    let catalog = Catalog::embedded();
    for architecture in catalog.architectures() {
        let Some(sheet) = architecture.sheet().unwrap() else { continue };
        let found = nearest(&sheet, &catalog).unwrap().unwrap();
        assert_eq!(found.relatives.len(), sheet.instructions.len());
        for relative in &found.relatives {
            assert!(relative.differences.is_empty() && relative.nearer.is_none(), "{relative:?}");
        }
        // Of several that compute the same, the first is named; what it has is no less.
        assert!(
            found.architecture == architecture.title || architecture.name == "rtx_blackwell",
            "{found:?}"
        );
    }
    let mut nothing = load(&Path::new(ROOT).join("reports/volta.yaml")).unwrap();
    nothing.instructions.clear();
    assert_eq!(nearest(&nothing, &catalog).unwrap(), None);
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().to_str().unwrap();
    let (code, out, err) = mmaprobe(&["man", "-o", path]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    let help = mmaprobe(&["--help"]).1;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let commands: Vec<&str> = commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() >= 15 && commands.contains(&"onboard"), "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, _) = mmaprobe(&["completions", shell]);
        assert_eq!(code, Some(0));
        for command in &commands {
            assert!(script.contains(command), "{shell} lacks {command}");
        }
    }
    for command in &commands {
        let page = fs::read_to_string(place.path().join(format!("mmaprobe-{command}.1"))).unwrap();
        assert!(page.starts_with(".ie") && page.contains(".SH SYNOPSIS"), "{command}");
    }
    assert!(fs::read_to_string(place.path().join("mmaprobe.1")).unwrap().contains("onboard"));
    assert_eq!(mmaprobe(&["man", "-o", path]).0, Some(2), "pages that exist are not replaced");
    // bash takes the script.
    let script = mmaprobe(&["completions", "bash"]).1;
    let file = place.path().join("completions.bash");
    fs::write(&file, script).unwrap();
    assert!(Command::new("bash").arg("-n").arg(&file).status().unwrap().success());
}
