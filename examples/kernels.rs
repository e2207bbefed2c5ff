//! For maintainers: what NVIDIA's assembler makes of every kernel, written to `reports/kernels.md`.
//!
//! ```text
//! PTXAS=ptxas NVDISASM=nvdisasm cargo run --release --example kernels [-- --check]
//! ```
//!
//! Each instruction of each architecture is assembled for the targets of its GPUs, in its smallest and
//! its largest shape, and disassembled: it has to be the one machine instruction that the catalogue
//! names. Then the instructions of all other architectures are tried; what the assembler accepts
//! although there is no unit for it has to be in the catalogue as an expansion. `NVDISASM_OLD` is for
//! targets that `NVDISASM` no longer reads. With `--check` the report is compared instead of written.
//! `kernels/cuda/check.sh` gets the programs and does all this.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use mmaprobe::catalog::{Architecture, Catalog, Family};
use mmaprobe_kernels::cuda::Program;
use mmaprobe_kernels::cuda::sass::Machine;
use rayon::prelude::*;

/// Where the programs are.
struct Tools {
    ptxas: OsString,
    /// The disassembler, and one for what it does not read.
    disassemblers: Vec<OsString>,
    folder: tempfile::TempDir,
}

/// What became of a kernel.
enum Assembled {
    /// The machine instructions.
    Accepted(Machine),
    /// The assembler's first complaint.
    Refused(String),
}

fn main() -> ExitCode {
    let check = std::env::args().any(|argument| argument == "--check");
    match report(check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problems) => {
            for problem in problems {
                eprintln!("kernels: {problem}");
            }
            ExitCode::FAILURE
        }
    }
}

fn report(check: bool) -> Result<(), Vec<String>> {
    let tools = Tools::find().map_err(|problem| vec![problem])?;
    let catalog = Catalog::embedded();
    let ours: Vec<&Architecture> =
        catalog.architectures().iter().filter(|a| mmaprobe::device::cuda::is_ours(a)).collect();
    let version = tools.version().map_err(|problem| vec![problem])?;
    let mut problems = Vec::new();
    let mut text = format!(
        "# What {version} makes of each kernel\n\n\
         Made by `kernels/cuda/check.sh`; no GPU is involved. An instruction is native where its kernel\n\
         has exactly one machine instruction of a matrix unit and no other floating-point arithmetic.\n"
    );
    for architecture in &ours {
        if architecture.assembled.as_ref().is_none_or(|assembled| assembled.by != version) {
            problems.push(format!("catalog/{}.yaml: `assembled` is not by {version}", architecture.name));
        }
        let mut targets: Vec<&str> = architecture.gpus.iter().map(|gpu| gpu.target.as_str()).collect();
        targets.sort_unstable();
        targets.dedup();
        let _ = write!(text, "\n## {} ({})\n\n", architecture.title, targets.join(", "));
        text.push_str("| instruction | machine instruction |\n|---|---|\n");
        for family in &architecture.families {
            let (name, isa) = native(&tools, family, &targets).unwrap_or_else(|mut wrong| {
                problems.append(&mut wrong);
                (family.pattern.clone(), "see the errors".to_string())
            });
            let _ = writeln!(text, "| `{name}` | `{isa}` |");
        }
        let mut expansions = expansions(&tools, architecture, &ours, targets[0]).map_err(|p| vec![p])?;
        for target in &targets[1..] {
            let others = self::expansions(&tools, architecture, &ours, target).map_err(|p| vec![p])?;
            if others != expansions {
                problems.push(format!("{target} and {} expand instructions differently", targets[0]));
                expansions.extend(others);
            }
        }
        if !expansions.is_empty() {
            text.push_str("\nAccepted although there is no unit for it, and expanded:\n\n");
            text.push_str("| instruction | becomes |\n|---|---|\n");
        }
        let stated = architecture.assembled.iter().flat_map(|assembled| &assembled.expansions);
        let stated: BTreeMap<String, String> = stated
            .flat_map(|expansion| expansion.names.iter().map(|name| (name.clone(), expansion.into.clone())))
            .collect();
        for (name, machine) in &expansions {
            let _ = writeln!(text, "| `{name}` | {machine} |");
            if stated.get(name) != Some(machine) {
                problems.push(format!("catalog/{}.yaml: `{name}` expands to: {machine}", architecture.name));
            }
        }
        for name in stated.keys().filter(|name| !expansions.contains_key(*name)) {
            problems.push(format!("catalog/{}.yaml: `{name}` does not expand", architecture.name));
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/kernels.md");
    if !check {
        std::fs::write(&path, &text).map_err(|error| vec![format!("{}: {error}", path.display())])?;
    } else if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
        problems.push(format!("{} is not up to date: run kernels/cuda/check.sh --write", path.display()));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The name of a family and what it becomes, on each target and in its smallest and largest shape.
fn native(tools: &Tools, family: &Family, targets: &[&str]) -> Result<(String, String), Vec<String>> {
    let tile = family.tiles.iter().find(|tile| tile.cta_group != Some(2));
    let largest = tile.and_then(|tile| Some((*tile.m.iter().max()?, tile.n.to)));
    let mut shapes = vec![family.smallest()];
    shapes.extend(largest.filter(|largest| *largest != family.smallest()));
    let cases: Vec<((usize, usize), &str)> =
        shapes.iter().flat_map(|&shape| targets.iter().map(move |&target| (shape, target))).collect();
    let wrong: Vec<String> = cases
        .par_iter()
        .filter_map(|&((m, n), target)| {
            let (name, expected) = (family.name(m, n), family.isa(m, n));
            match tools.assemble(family, (m, n), target) {
                Ok(Assembled::Accepted(machine)) if machine.native() == Some(&expected) => None,
                Ok(Assembled::Accepted(machine)) => {
                    Some(format!("{name} for {target} becomes {machine}, not {expected}"))
                }
                Ok(Assembled::Refused(why)) => Some(format!("{name} for {target} is refused: {why}")),
                Err(problem) => Some(problem),
            }
        })
        .collect();
    let open = |pattern: &str| pattern.replace("{m}", "M").replace("{n}", "N");
    if wrong.is_empty() { Ok((open(&family.pattern), open(&family.isa))) } else { Err(wrong) }
}

/// What a target accepts of the instructions of other architectures, and what becomes of it.
fn expansions(
    tools: &Tools,
    architecture: &Architecture,
    all: &[&Architecture],
    target: &str,
) -> Result<BTreeMap<String, String>, String> {
    let foreign: BTreeMap<&str, &Family> = all
        .iter()
        .flat_map(|other| &other.families)
        .filter(|family| architecture.families.iter().all(|own| own.pattern != family.pattern))
        .map(|family| (family.pattern.as_str(), family))
        .collect();
    let foreign: Vec<&Family> = foreign.into_values().collect();
    let accepted: Result<Vec<Option<(String, String)>>, String> = foreign
        .par_iter()
        .map(|family| {
            let (m, n) = family.smallest();
            Ok(match tools.assemble(family, (m, n), target)? {
                Assembled::Accepted(machine) => Some((family.name(m, n), machine.to_string())),
                Assembled::Refused(_) => None,
            })
        })
        .collect();
    Ok(accepted?.into_iter().flatten().collect())
}

impl Tools {
    fn find() -> Result<Tools, String> {
        let tool = |name: &str| {
            std::env::var_os(name).ok_or_else(|| format!("{name} says where the program is; see check.sh"))
        };
        let disassemblers = std::env::var_os("NVDISASM_OLD").into_iter();
        Ok(Tools {
            ptxas: tool("PTXAS")?,
            disassemblers: std::iter::once(tool("NVDISASM")?).chain(disassemblers).collect(),
            folder: tempfile::tempdir().map_err(|error| error.to_string())?,
        })
    }

    /// `ptxas` and its version.
    fn version(&self) -> Result<String, String> {
        let output = Command::new(&self.ptxas).arg("--version").output();
        let output = output.map_err(|error| format!("{}: {error}", self.ptxas.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        // Cuda compilation tools, release 12.9, V12.9.86
        let version = text.lines().find_map(|line| line.split_once(", V")).map(|(_, version)| version.trim());
        version.map(|version| format!("ptxas {version}")).ok_or_else(|| format!("no version in: {text}"))
    }

    fn assemble(&self, family: &Family, (m, n): (usize, usize), target: &str) -> Result<Assembled, String> {
        let name = family.name(m, n);
        let spec = family.cuda_spec(m, n).ok_or_else(|| format!("{name}: no kernel is of its kind"))?;
        let program = match Program::new(&spec, target) {
            Ok(program) => program,
            Err(unsupported) => return Ok(Assembled::Refused(unsupported.to_string())),
        };
        let source: PathBuf = self.folder.path().join(format!("{name}.{target}.ptx"));
        let binary = source.with_extension("cubin");
        std::fs::write(&source, &program.ptx).map_err(|error| format!("{}: {error}", source.display()))?;
        let mut command = Command::new(&self.ptxas);
        let output = command.args(["-arch", target, "-o"]).arg(&binary).arg(&source).output();
        let output = output.map_err(|error| format!("{}: {error}", self.ptxas.display()))?;
        if !output.status.success() {
            let complaints = String::from_utf8_lossy(&output.stderr);
            return Ok(Assembled::Refused(complaints.lines().next().unwrap_or_default().to_string()));
        }
        let mut complaint = String::new();
        for disassembler in &self.disassemblers {
            let output = Command::new(disassembler).arg("-c").arg(&binary).output();
            let output = output.map_err(|error| format!("{}: {error}", disassembler.display()))?;
            if output.status.success() {
                let machine = Machine::read(&String::from_utf8_lossy(&output.stdout));
                // Many kernels pass through: keep the folder small.
                let _ = std::fs::remove_file(&binary).and_then(|()| std::fs::remove_file(&source));
                return Ok(Assembled::Accepted(machine));
            }
            complaint = String::from_utf8_lossy(&output.stderr).trim().to_string();
        }
        Err(format!("{name} for {target} cannot be disassembled: {complaint}"))
    }
}
