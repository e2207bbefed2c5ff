//! For maintainers: what clang makes of the HIP kernel for each Matrix Core instruction.
//!
//! ```text
//! CLANG=clang-19 OBJDUMP=llvm-objdump-19 cargo run --example hip_kernels -- gfx908 gfx90a gfx942
//! ```
//!
//! Each instruction of the architectures with these targets is compiled and disassembled: the mnemonic
//! that the catalogue names has to be there, once, and no other of a matrix core, after the MODE
//! register has been set; and nothing of the kernel may be in memory of its own. `kernels/hip/check.sh`
//! gets the programs.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use mmaprobe::catalog::{Architecture, Catalog, Family};
use mmaprobe_kernels::hip::{Program, machine};
use rayon::prelude::*;

/// How a kernel is compiled and read again.
struct Tools {
    /// The compiler and its first arguments.
    clang: Vec<String>,
    objdump: OsString,
    folder: tempfile::TempDir,
}

fn main() -> ExitCode {
    let targets: Vec<String> = std::env::args().skip(1).collect();
    let problems = match Tools::find() {
        Ok(tools) => check(&tools, &targets),
        Err(problem) => vec![problem],
    };
    for problem in &problems {
        eprintln!("hip_kernels: {problem}");
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Everything that is wrong.
fn check(tools: &Tools, targets: &[String]) -> Vec<String> {
    let catalog = Catalog::embedded();
    let mut problems = Vec::new();
    for target in targets {
        let has_target = |architecture: &&Architecture| architecture.targets.contains(target);
        let Some(architecture) = catalog.architectures().iter().find(has_target) else {
            problems.push(format!("no architecture of the catalogue has the target {target}"));
            continue;
        };
        let families = &architecture.families;
        let wrong: Vec<String> =
            families.par_iter().filter_map(|family| tools.check(family, target).err()).collect();
        println!(
            "{target}: {} of {} instructions are what the catalogue calls them",
            families.len() - wrong.len(),
            families.len()
        );
        problems.extend(wrong);
    }
    problems
}

impl Tools {
    fn find() -> Result<Tools, String> {
        let tool = |name: &str| {
            std::env::var(name).map_err(|_| format!("{name} says where the program is; see check.sh"))
        };
        Ok(Tools {
            clang: tool("CLANG")?.split_whitespace().map(str::to_string).collect(),
            objdump: tool("OBJDUMP")?.into(),
            folder: tempfile::tempdir().map_err(|error| error.to_string())?,
        })
    }

    fn check(&self, family: &Family, target: &str) -> Result<(), String> {
        let (m, n) = family.smallest();
        let name = family.name(m, n);
        let wrong = |problem: String| format!("{name} for {target}: {problem}");
        let spec = family.hip_spec(m, n).ok_or_else(|| wrong("no kernel is of its kind".to_string()))?;
        let program = Program::new(&spec).map_err(|unsupported| wrong(unsupported.to_string()))?;
        let path = |suffix: &str| self.folder.path().join(format!("{name}.{target}.{suffix}"));
        let (source, assembly, object) = (path("hip"), path("s"), path("o"));
        std::fs::write(&source, &program.source).map_err(|error| wrong(error.to_string()))?;
        let machine = format!("-mcpu={target}");
        // As hiprtc does, but for its headers, which the kernel does not need.
        let compile = ["-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-O3", "-S", "-o"];
        let offload = format!("--offload-arch={target}");
        self.clang(&compile, &assembly, &[offload.as_str()], &source).map_err(wrong)?;
        let assemble = ["--target=amdgcn-amd-amdhsa", "-c", "-o"];
        self.clang(&assemble, &object, &[machine.as_str()], &assembly).map_err(wrong)?;
        let mut command = Command::new(&self.objdump);
        let disassembly =
            output(command.args(["-d", &format!("--mcpu={target}")]).arg(&object)).map_err(wrong)?;
        machine::check(&disassembly, &family.isa(m, n)).map_err(wrong)?;
        let text = std::fs::read_to_string(&assembly).map_err(|error| wrong(error.to_string()))?;
        match text.contains(".private_segment_fixed_size: 0\n") {
            true => Ok(()),
            false => Err(wrong("registers are kept in memory".to_string())),
        }
    }

    fn clang(&self, first: &[&str], to: &Path, last: &[&str], from: &Path) -> Result<(), String> {
        let mut command = Command::new(&self.clang[0]);
        output(command.args(&self.clang[1..]).args(first).arg(to).args(last).arg(from)).map(|_| ())
    }
}

/// Runs a program; what it prints, or the first line of what it complains about.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = complaint.lines().find(|line| line.contains("error")).or(complaint.lines().next());
    Err(line.unwrap_or("the compiler fails without a word").to_string())
}
