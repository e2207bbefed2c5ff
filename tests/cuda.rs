//! NVIDIA GPUs as far as they can be tested without one: the command line with no driver and with a
//! stand-in for it ([libcuda.c](devices/libcuda.c)), and the kernels' text.

#[path = "support/stand_in.rs"]
mod stand_in;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mmaprobe::catalog::{Architecture, Catalog};
use mmaprobe::device::cuda::{Nvidia, is_ours};
use mmaprobe::device::gpu::Vendor;
use mmaprobe_kernels::cuda::driver::Gpu;
use mmaprobe_kernels::cuda::{Kind, Program, ptx};
use mmaprobe_kernels::fragment::Home;
use stand_in::{StandIn, stderr, stdout, words};

/// The stand-in; `None` and a message where there is no C compiler.
fn mock() -> Option<StandIn> {
    StandIn::new("libcuda.c", &[], &["libcuda.so"], "MOCK_CUDA")
}

/// Multiplies zero matrices of that many tiles of an instruction of Ampere's.
fn multiply(mock: &StandIn, mode: &str, environment: &[(&str, &str)], tiles: usize) -> Output {
    let instruction = ("mma.m16n8k16.f32.f16.f16.f32", [16, 8, 16]);
    mock.multiply("cuda", instruction, (mode, environment), tiles)
}

#[test]
fn a_gpu_is_listed_with_what_it_accepts() {
    let Some(mock) = mock() else { return };
    let output = mock.run("", &[], &["devices"]);
    let text = words(&output);
    for part in ["cuda:0 NVIDIA A100-SXM4-40GB", "compute capability 8.0", "target sm_80", "accepts 9 of 9"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let picky = stdout(&mock.run("picky", &[], &["devices"]));
    assert!(picky.replace('\n', " ").contains("mma.m16n8k8.f32.f16.f16.f32"), "{picky}");
    let listed = stdout(&mock.run("picky", &[], &["instructions", "--device", "a100"]));
    assert!(listed.contains("mma.m16n8k16.f32.f16.f16.f32") && !listed.contains("m16n8k8"), "{listed}");
}

#[test]
fn batches_go_through_in_parts_and_come_back_in_order() {
    let Some(mock) = mock() else { return };
    let output = multiply(&mock, "", &[], 1000);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(mock.launches().iter().flatten().sum::<u32>(), 1000);
    // Little memory: parts of a few groups, alternating between two slots. A group takes 1792 bytes.
    let output = multiply(&mock, "", &[("MOCK_CUDA_FREE", "150000")], 1000);
    assert!(output.status.success(), "{}", stderr(&output));
    let launches = mock.launches();
    assert_eq!(launches.iter().flatten().sum::<u32>(), 1000);
    assert!(launches.len() >= 1000 / 20, "{launches:?}");
}

#[test]
fn what_goes_wrong_is_translated_and_ends_with_3() {
    let Some(mock) = mock() else { return };
    for (mode, problem) in [
        ("fault", "the launch faulted (CUDA_ERROR_LAUNCH_FAILED)"),
        ("hang", "said nothing for 0.3 s; raise --device-timeout"),
        ("memory", "out of memory for 1 MiB"),
        ("old", "too old for PTX 7.0: it supports CUDA 13.0"),
        ("none", "NVIDIA's driver sees no GPU"),
    ] {
        let output = multiply(&mock, mode, &[], 1);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{mode}: {text}");
        assert!(text.contains(problem), "{mode}: {text}");
    }
}

#[test]
fn gpus_have_names() {
    let Some(mock) = mock() else { return };
    for (device, code, says) in [
        ("a100", 0, "mma.m16n8k16"),
        ("ampere", 0, "mma.m16n8k16"),
        ("sm_80", 0, "mma.m16n8k16"),
        ("cuda:0", 0, "mma.m16n8k16"),
        ("a30", 3, "no such GPU is attached; cuda:0 is NVIDIA A100-SXM4-40GB"),
        ("sm_86", 3, "no such GPU is attached"),
        ("h100", 3, "--device sim:h100 simulates it"),
        ("mi300x", 3, "--device sim:mi300x simulates it"),
        ("cuda:1", 3, "there is no GPU number 1: the driver sees 1"),
        ("cuda:x", 2, "the number of a GPU is expected"),
    ] {
        let output = mock.run("", &[], &["instructions", "--device", device]);
        let text = stdout(&output) + &stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{device}: {text}");
        assert!(text.contains(says), "{device}: {text}");
    }
}

#[test]
fn without_a_driver_that_is_said_and_ends_with_3() {
    let run =
        |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_mmaprobe")).args(arguments).output().unwrap();
    let devices = run(&["devices"]);
    assert!(devices.status.success());
    if !stdout(&devices).contains("there is no NVIDIA driver") {
        eprintln!("NOT RUN: there is a driver here");
        return;
    }
    for device in ["cuda", "cuda:3", "h100"] {
        let output = run(&["characterize", "--device", device]);
        assert_eq!(output.status.code(), Some(3), "{device}");
        assert!(stderr(&output).contains("there is no NVIDIA driver"), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn marketing_names_are_matched_by_their_words() {
    let catalog = Catalog::embedded();
    let known = |name: &str| catalog.find(name).unwrap().gpu.unwrap().clone();
    let gpu = |name: &str, capability| Gpu {
        ordinal: 0,
        name: name.to_string(),
        capability,
        multiprocessors: 1,
        memory: 1,
        cuda: 13000,
    };
    let is_called = |gpu: &Gpu, known: &mmaprobe::catalog::Gpu| {
        Nvidia::is_target(gpu, &known.target) && Nvidia::known(gpu).is_called(known)
    };
    assert!(is_called(&gpu("NVIDIA H100 80GB HBM3", (9, 0)), &known("h100")));
    assert!(!is_called(&gpu("NVIDIA H200", (9, 0)), &known("h100")));
    assert!(is_called(&gpu("NVIDIA GeForce RTX 3080 Ti", (8, 6)), &known("rtx3080ti")));
    assert!(!is_called(&gpu("NVIDIA GeForce RTX 3070", (8, 6)), &known("rtx3080")));
    assert!(is_called(&gpu("Tesla V100-SXM2-16GB", (7, 0)), &known("v100")));
    // Another target is another GPU, whatever it is called.
    assert!(!is_called(&gpu("NVIDIA A100", (8, 6)), &known("a100")));
}

/// Programs for every instruction of every architecture of NVIDIA's, and its first target.
fn programs() -> Vec<(String, Kind, Program, String)> {
    let catalog = Catalog::embedded();
    let ours: Vec<&Architecture> = catalog.architectures().iter().filter(|a| is_ours(a)).collect();
    assert_eq!(ours.len(), 7);
    let mut programs = Vec::new();
    for architecture in ours {
        for family in &architecture.families {
            let (m, n) = family.smallest();
            let spec = family.cuda_spec(m, n).expect("a kernel for each");
            let target = &architecture.targets[0];
            let program = Program::new(&spec, target).unwrap_or_else(|error| panic!("{error}"));
            let (major, minor) = ptx::version(&spec, target);
            assert!(program.ptx.starts_with(&format!(".version {major}.{minor}\n.target {target}\n")));
            programs.push((family.name(m, n), spec.kind, program, target.clone()));
        }
    }
    programs
}

#[test]
fn every_instruction_has_a_kernel_that_holds_it_once() {
    let programs = programs();
    assert_eq!(programs.len(), 251);
    for (name, kind, program, _) in programs {
        let text = &program.ptx;
        assert_eq!(text.matches(&format!("{} ", program.instruction)).count(), 1, "{name}");
        assert_eq!(
            text.matches("mma.sync").count()
                + text.matches("mma_async").count()
                + text.matches("tcgen05.mma").count(),
            1,
            "{name}"
        );
        // Operands: as many registers as the fragments have.
        let line = text.lines().find(|line| line.contains(&program.instruction)).unwrap();
        let lists: Vec<usize> =
            line.split('{').skip(1).map(|list| list.split('}').next().unwrap().split(',').count()).collect();
        let fragments = &program.fragments;
        let expected: Vec<usize> = match kind {
            Kind::Mma => {
                [&fragments.d, &fragments.a, &fragments.b, &fragments.c].map(|f| f.registers()).to_vec()
            }
            Kind::MmaBlockScale => {
                let operands = [&fragments.d, &fragments.a, &fragments.b, &fragments.c];
                operands.map(|f| f.registers()).into_iter().chain([2, 2]).collect()
            }
            Kind::Wgmma => vec![fragments.d.registers()],
            Kind::Tcgen05 | Kind::Tcgen05BlockScale => Vec::new(),
        };
        assert_eq!(lists, expected, "{name}: {line}");
        // Every label that is jumped to exists, once.
        for target in text.lines().filter_map(|line| line.split_once(" bra ")).map(|(_, label)| label) {
            let label = format!("{}:", target.trim_end_matches(';'));
            assert_eq!(text.lines().filter(|line| *line == label).count(), 1, "{name}: {label}");
        }
        // Asynchronous instructions are fenced before and waited for after.
        let order: &[&str] = match kind {
            Kind::Mma | Kind::MmaBlockScale => &["ld.global", "mma.sync", "st.global"],
            Kind::Wgmma => &[
                "st.shared",
                "fence.proxy.async",
                "bar.sync",
                "wgmma.fence",
                "wgmma.mma_async",
                "wgmma.commit_group",
                "wgmma.wait_group",
                "st.global",
                "bar.sync",
            ],
            Kind::Tcgen05 | Kind::Tcgen05BlockScale => &[
                "mbarrier.init",
                "tcgen05.alloc",
                "bar.sync",
                "tcgen05.st",
                "tcgen05.wait::st",
                "fence.proxy.async",
                "tcgen05.fence::before",
                "bar.sync",
                "tcgen05.fence::after",
                "tcgen05.mma",
                "tcgen05.commit",
                "mbarrier.try_wait",
                "tcgen05.fence::after",
                "tcgen05.ld",
                "tcgen05.wait::ld",
                "st.global",
                "bar.sync",
                "tcgen05.dealloc",
                "ret",
            ],
        };
        let mut rest = text.as_str();
        for step in order {
            let at = rest.find(step).unwrap_or_else(|| panic!("{name}: no {step} where it belongs"));
            rest = &rest[at + step.len()..];
        }
    }
}

#[test]
fn shared_memory_is_as_large_as_the_factors() {
    for (name, _, program, _) in programs() {
        for (array, fragment) in [("a", &program.fragments.a), ("b", &program.fragments.b)] {
            if let Home::Shared { bytes } = fragment.home {
                let declaration = format!(".shared .align 128 .b8 {array}_image[{bytes}];");
                assert!(program.ptx.contains(&declaration), "{name}: {declaration}");
            }
        }
    }
}

/// A few kernels of each kind through the assembler itself, where there is one; all of them, and what
/// they become, is what `kernels/cuda/check.sh` looks at.
#[test]
fn the_assembler_takes_the_kernels() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("target/cuda-tools/nvidia-cuda-nvcc-cu12-12.9.86/nvidia/cuda_nvcc/bin/ptxas");
    let ptxas = std::env::var_os("PTXAS").map(PathBuf::from).or_else(|| kept.exists().then_some(kept));
    let Some(ptxas) = ptxas else {
        eprintln!("NOT RUN: no ptxas (PTXAS says where it is; kernels/cuda/check.sh gets it)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, _, program, target) in programs().iter().step_by(12) {
        let source = folder.path().join("kernel.ptx");
        std::fs::write(&source, &program.ptx).unwrap();
        let mut command = Command::new(&ptxas);
        let output = command.args(["-arch", target, "-o", "/dev/null"]).arg(&source).output().unwrap();
        assert!(output.status.success(), "{name} for {target}: {}", stderr(&output));
    }
}
