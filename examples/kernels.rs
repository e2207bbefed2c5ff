//! For maintainers: what NVIDIA's assembler makes of every kernel, written to `reports/kernels.md`.
//!
//! ```text
//! PTXAS=ptxas NVDISASM=nvdisasm cargo run --release --example kernels [-- --check]
//! ```
//!
//! Each instruction of each architecture is assembled for the targets of its GPUs, in its smallest and
//! its largest shape, and disassembled: it has to be the one machine instruction that the catalogue
//! names. Then the instructions of all other architectures are tried; what the assembler accepts
//! although there is no unit for it has to be in the catalogue as an expansion. All that a target accepts is
//! disassembled as one file: a disassembler takes half a second to begin. `NVDISASM_OLD` is for
//! targets that `NVDISASM` no longer reads. With `--check` the report is compared instead of written.
//! `kernels/cuda/check.sh` gets the programs and does all this.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use mmaprobe::catalog::{Architecture, Catalog, Family};
use mmaprobe_kernels::cuda::sass::Machine;
use mmaprobe_kernels::cuda::{ENTRY, Program, ptx};
use rayon::prelude::*;

/// Where the programs are.
struct Tools {
    ptxas: OsString,
    /// The disassembler, and one for what it does not read.
    disassemblers: Vec<OsString>,
    folder: tempfile::TempDir,
}

/// An instruction, by its family and shape, and a target.
type Case<'c> = (&'c Family, (usize, usize), &'c str);

/// What became of a kernel.
enum Assembled {
    /// The machine instructions.
    Accepted(Machine),
    /// The assembler's first complaint.
    Refused(String),
}

/// A kernel that the assembler accepts.
struct Kernel {
    ptx: String,
    /// The version of PTX that it needs.
    version: (u32, u32),
}

/// What became of kernels, by their targets and the names of their instructions.
struct Assembly(HashMap<(String, String), Assembled>);

impl Assembly {
    fn of(&self, (family, (m, n), target): Case) -> &Assembled {
        &self.0[&(target.to_string(), family.name(m, n))]
    }
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
    let mut cases: Vec<Case> = Vec::new();
    for architecture in &ours {
        let own = architecture.families.iter();
        let own = own.flat_map(|family| shapes(family).into_iter().map(move |shape| (family, shape)));
        let foreign = foreign(architecture, &ours).into_iter().map(|family| (family, family.smallest()));
        let targets = targets(architecture);
        for (family, shape) in own.chain(foreign) {
            cases.extend(targets.iter().map(|target| (family, shape, *target)));
        }
    }
    let assembly = tools.assemble_all(cases).map_err(|problem| vec![problem])?;
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
        let targets = targets(architecture);
        let _ = write!(text, "\n## {} ({})\n\n", architecture.title, targets.join(", "));
        text.push_str("| instruction | machine instruction |\n|---|---|\n");
        for family in &architecture.families {
            let (name, isa) = native(&assembly, family, &targets).unwrap_or_else(|mut wrong| {
                problems.append(&mut wrong);
                (family.pattern.clone(), "see the errors".to_string())
            });
            let _ = writeln!(text, "| `{name}` | `{isa}` |");
        }
        let mut expansions = expansions(&assembly, architecture, &ours, targets[0]);
        for target in &targets[1..] {
            let others = self::expansions(&assembly, architecture, &ours, target);
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

/// The targets of an architecture's GPUs, each once.
fn targets(architecture: &Architecture) -> Vec<&str> {
    let mut targets: Vec<&str> = architecture.gpus.iter().map(|gpu| gpu.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// The smallest and the largest shape of a family, which may be one.
fn shapes(family: &Family) -> Vec<(usize, usize)> {
    let tile = family.tiles.iter().find(|tile| tile.cta_group != Some(2));
    let largest = tile.and_then(|tile| Some((*tile.m.iter().max()?, tile.n.to)));
    let mut shapes = vec![family.smallest()];
    shapes.extend(largest.filter(|largest| *largest != family.smallest()));
    shapes
}

/// The families of other architectures that one does not have, each pattern once.
fn foreign<'c>(architecture: &Architecture, all: &[&'c Architecture]) -> Vec<&'c Family> {
    let foreign: BTreeMap<&str, &Family> = all
        .iter()
        .flat_map(|other| &other.families)
        .filter(|family| architecture.families.iter().all(|own| own.pattern != family.pattern))
        .map(|family| (family.pattern.as_str(), family))
        .collect();
    foreign.into_values().collect()
}

/// The name of a family and what it becomes, on each target and in its smallest and largest shape.
fn native(assembly: &Assembly, family: &Family, targets: &[&str]) -> Result<(String, String), Vec<String>> {
    let mut wrong = Vec::new();
    for (m, n) in shapes(family) {
        let (name, expected) = (family.name(m, n), family.isa(m, n));
        for &target in targets {
            match assembly.of((family, (m, n), target)) {
                Assembled::Accepted(machine) if machine.native() == Some(&expected) => {}
                Assembled::Accepted(machine) => {
                    wrong.push(format!("{name} for {target} becomes {machine}, not {expected}"));
                }
                Assembled::Refused(why) => wrong.push(format!("{name} for {target} is refused: {why}")),
            }
        }
    }
    let open = |pattern: &str| pattern.replace("{m}", "M").replace("{n}", "N");
    if wrong.is_empty() { Ok((open(&family.pattern), open(&family.isa))) } else { Err(wrong) }
}

/// What a target accepts of the instructions of other architectures, and what becomes of it.
fn expansions(
    assembly: &Assembly,
    architecture: &Architecture,
    all: &[&Architecture],
    target: &str,
) -> BTreeMap<String, String> {
    let expansion = |family: &Family| {
        let (m, n) = family.smallest();
        match assembly.of((family, (m, n), target)) {
            Assembled::Accepted(machine) => Some((family.name(m, n), machine.to_string())),
            Assembled::Refused(_) => None,
        }
    };
    foreign(architecture, all).into_iter().filter_map(expansion).collect()
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

    /// Assembles each kernel alone, and disassembles what each target accepts.
    fn assemble_all(&self, cases: Vec<Case>) -> Result<Assembly, String> {
        let mut of_targets: BTreeMap<&str, BTreeMap<String, Case>> = BTreeMap::new();
        for case in cases {
            let (family, (m, n), target) = case;
            of_targets.entry(target).or_default().insert(family.name(m, n), case);
        }
        let mut assembled = HashMap::new();
        for (target, cases) in of_targets {
            let tried = cases.into_par_iter().map(|(name, case)| Ok((name, self.assemble(case)?)));
            let mut kernels: Vec<(String, Kernel)> = Vec::new();
            for (name, tried) in tried.collect::<Result<Vec<_>, String>>()? {
                match tried {
                    Ok(kernel) => kernels.push((name, kernel)),
                    Err(complaint) => {
                        assembled.insert((target.to_string(), name), Assembled::Refused(complaint));
                    }
                }
            }
            let (names, kernels): (Vec<String>, Vec<Kernel>) = kernels.into_iter().unzip();
            for (name, machine) in names.into_iter().zip(self.disassemble(target, &kernels)?) {
                assembled.insert((target.to_string(), name), Assembled::Accepted(machine));
            }
        }
        Ok(Assembly(assembled))
    }

    /// A kernel that the assembler accepts, or its first complaint.
    fn assemble(&self, (family, (m, n), target): Case) -> Result<Result<Kernel, String>, String> {
        let name = family.name(m, n);
        let spec = family.cuda_spec(m, n).ok_or_else(|| format!("{name}: no kernel is of its kind"))?;
        let program = match Program::new(&spec, target) {
            Ok(program) => program,
            Err(unsupported) => return Ok(Err(unsupported.to_string())),
        };
        let binary = self.cubin(&format!("{name}.{target}"), target, &program.ptx)?;
        Ok(binary.map(|binary| {
            // Many kernels pass through: keep the folder small.
            let _ = std::fs::remove_file(binary);
            Kernel { ptx: program.ptx, version: ptx::version(&spec, target) }
        }))
    }

    /// The machine code of a text, as a path, or the assembler's first complaint.
    fn cubin(&self, name: &str, target: &str, ptx: &str) -> Result<Result<PathBuf, String>, String> {
        let source = self.folder.path().join(format!("{name}.ptx"));
        let binary = self.folder.path().join(format!("{name}.cubin"));
        std::fs::write(&source, ptx).map_err(|error| format!("{}: {error}", source.display()))?;
        let mut command = Command::new(&self.ptxas);
        let output = command.args(["-arch", target, "-o"]).arg(&binary).arg(&source).output();
        let output = output.map_err(|error| format!("{}: {error}", self.ptxas.display()))?;
        let _ = std::fs::remove_file(&source);
        if output.status.success() {
            return Ok(Ok(binary));
        }
        let complaints = String::from_utf8_lossy(&output.stderr);
        Ok(Err(complaints.lines().next().unwrap_or_default().to_string()))
    }

    /// What each of these kernels becomes, which the assembler accepts for this target: all as one module.
    fn disassemble(&self, target: &str, kernels: &[Kernel]) -> Result<Vec<Machine>, String> {
        let binary = self.cubin(target, target, &module(kernels)?)?;
        let binary = binary.map_err(|why| format!("{target}: kernels are refused together: {why}"))?;
        let mut complaint = String::new();
        for disassembler in &self.disassemblers {
            let output = Command::new(disassembler).arg("-c").arg(&binary).output();
            let output = output.map_err(|error| format!("{}: {error}", disassembler.display()))?;
            if output.status.success() {
                let functions = functions(&String::from_utf8_lossy(&output.stdout));
                let machine = |index| {
                    let own =
                        functions.get(&index).ok_or_else(|| format!("{target}: kernel {index} is missing"));
                    own.map(|text| Machine::read(text))
                };
                return (0..kernels.len()).map(machine).collect();
            }
            complaint = String::from_utf8_lossy(&output.stderr).trim().to_string();
        }
        Err(format!("kernels for {target} cannot be disassembled: {complaint}"))
    }
}

/// One module of several kernels, each with its number behind its name, in the newest version that one of them needs.
fn module(kernels: &[Kernel]) -> Result<String, String> {
    let (major, minor) = kernels.iter().map(|kernel| kernel.version).max().unwrap_or_default();
    let mut head = "";
    let mut bodies = String::new();
    for (index, Kernel { ptx, .. }) in kernels.iter().enumerate() {
        let unlike = || format!("this is no kernel of ours:\n{ptx}");
        let (own_head, body) = ptx.split_once(".visible").ok_or_else(unlike)?;
        // What follows the version is the same for all of a target.
        head = own_head.split_once('\n').ok_or_else(unlike)?.1;
        let own_name = format!(".entry {ENTRY}_{index}(");
        let _ = write!(bodies, ".visible{}", body.replacen(&format!(".entry {ENTRY}("), &own_name, 1));
    }
    Ok(format!(".version {major}.{minor}\n{head}{bodies}"))
}

/// The functions of a disassembled module, by the numbers behind their names.
fn functions(disassembly: &str) -> HashMap<usize, String> {
    let mut functions: HashMap<usize, String> = HashMap::new();
    let mut of = None;
    for line in disassembly.lines() {
        // What is between functions is no instruction.
        if let Some(name) = line.strip_prefix(".text.").and_then(|rest| rest.strip_suffix(':')) {
            of = name.strip_prefix(ENTRY).and_then(|rest| rest.strip_prefix('_')?.parse().ok());
        }
        if let Some(index) = of {
            let _ = writeln!(functions.entry(index).or_default(), "{line}");
        }
    }
    functions
}
