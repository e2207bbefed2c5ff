//! AMD GPUs as far as they can be tested without one: the layouts on the command line; and in a build with
//! the feature `hip` the installed runtime without a GPU, its compiler, and a stand-in for both
//! ([libamdhip64.c](devices/libamdhip64.c)).

use std::process::{Command, Output};

use mmaprobe::catalog::Catalog;
use mmaprobe::device::hip::is_ours;

#[path = "support/stand_in.rs"]
#[allow(dead_code)] // What is only for GPUs that are asked.
mod stand_in;

use stand_in::{stderr, stdout};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mmaprobe")).args(arguments).output().unwrap()
}

#[test]
fn every_layout_is_printed() {
    let catalog = Catalog::embedded();
    for architecture in catalog.architectures().iter().filter(|architecture| is_ours(architecture)) {
        for (index, family) in architecture.families.iter().enumerate() {
            let (m, n) = family.smallest();
            let name = family.name(m, n);
            // Of the many of CDNA4 one operand each is enough; all are held against AMD's formulas elsewhere.
            let operands = ["A", "B", "C", "D"];
            let operands = if architecture.name == "cdna4" { &operands[index % 4..][..1] } else { &operands };
            for operand in operands {
                let arguments = ["layout", "--instruction", &name, "--matrix", operand, "--arch"];
                let output = run(&[&arguments[..], &[architecture.name.as_str()]].concat());
                assert!(output.status.success(), "{name}: {}", stderr(&output));
                let text = stdout(&output);
                let legend = stand_in::words(&output);
                assert!(legend.contains(&name) && legend.contains("CBSZ, ABID and BLGP at 0"), "{text}");
                assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
                assert!(text.contains(&format!("\n{operand}[0] ")), "{text}");
            }
        }
    }
    let scales =
        run(&["layout", "--instruction", "v_mfma_scale_f32_16x16x128_f8f6f4.fp8.bf6", "--matrix", "sa"]);
    assert!(stdout(&scales).contains("SA[15] 15v0 31v0 47v0 63v0"), "{}", stdout(&scales));
    let named = run(&["layout", "--instruction", "v_mfma_f32_32x32x8_f16", "--matrix", "D"]);
    assert!(stdout(&named).starts_with("D of v_mfma_f32_32x32x8_f16, AMD CDNA3\n"), "{}", stdout(&named));
    let blocks = run(&["layout", "--instruction", "v_mfma_f64_4x4x4_4b_f64", "--matrix", "d"]);
    assert!(stdout(&blocks).contains("Problem 3 of the 4 that the wave computes"), "{}", stdout(&blocks));
}

/// Without a GPU, whatever the build: `devices` says why there is none, and asking one fails.
#[test]
fn where_there_is_no_gpu_that_is_said() {
    let devices = run(&["devices"]);
    assert!(devices.status.success(), "{}", stderr(&devices));
    let why = match cfg!(feature = "hip") {
        true => "AMD's HIP runtime sees no GPU",
        false => "this build asks no AMD GPU",
    };
    let text = stand_in::words(&devices);
    if text.contains(" hip:0 ") {
        eprintln!("NOT RUN: there is an AMD GPU here");
        return;
    }
    assert!(text.contains(why), "{text}");
    for device in ["hip", "hip:0", "mi300x", "gfx90a", "cdna1"] {
        let output = run(&["characterize", "--device", device]);
        assert_eq!(output.status.code(), Some(3), "{device}: {}", stderr(&output));
        assert!(stderr(&output).contains(why), "{device}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
    let named = stderr(&run(&["characterize", "--device", "mi300x"]));
    assert!(named.contains("--device sim:mi300x simulates it"), "{named}");
}

#[cfg(feature = "hip")]
mod with_runtime {
    use super::*;
    use mmaprobe_kernels::fault::Fault;
    use mmaprobe_kernels::hip::compiler::Compiler;
    use mmaprobe_kernels::hip::driver;
    use mmaprobe_kernels::hip::{Mode, Program, machine};
    use stand_in::{StandIn, words};

    #[test]
    fn errors_of_the_runtime_are_translated() {
        let of = |result| driver::fault_of("hipSomething", result);
        assert_eq!(of(0), None);
        assert!(matches!(of(100), Some(Fault::NoGpu(text)) if text.contains("HIP runtime sees no GPU")));
        assert_eq!(of(2), Some(Fault::OutOfMemory(0)));
        for result in [700, 719] {
            let fault = of(result).unwrap();
            assert!(matches!(fault, Fault::Launch(_)) && fault.is_final(), "{fault}");
        }
        let other = of(1).unwrap();
        assert_eq!(other.to_string(), "hipSomething failed: hipErrorInvalidValue");
        assert!(!other.is_final());
        // A code that no version of the bindings has.
        assert!(of(123_456).unwrap().to_string().starts_with("hipSomething failed: "));
    }

    /// The stand-in, by whatever version of the runtime's name the tool was linked with.
    fn mock(options: &[&str]) -> Option<StandIn> {
        let names: Vec<String> = (5..=8)
            .flat_map(|major| ["amdhip64", "hiprtc"].map(|name| format!("lib{name}.so.{major}")))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        StandIn::new("libamdhip64.c", options, &names, "MOCK_HIP")
    }

    const INSTRUCTION: (&str, [usize; 3]) = ("v_mfma_f32_16x16x16f16", [16, 16, 16]);

    #[test]
    fn a_gpu_is_listed_with_what_it_accepts() {
        for options in [&[][..], &["-DOLD_PROPERTIES"]] {
            let Some(mock) = mock(options) else { return };
            let text = words(&mock.run("", &[], &["devices"]));
            for part in [
                "hip:0 AMD Instinct MI250X / MI250",
                "AMD CDNA2, target gfx90a",
                "compiled for gfx90a:sramecc+:xnack-",
                "HIP runtime 6.4.43484",
                "compute units 104",
                "accepts 22 of 22",
            ] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }

    #[test]
    fn what_the_compiler_refuses_is_absent() {
        let Some(mock) = mock(&[]) else { return };
        let devices = words(&mock.run("picky", &[], &["devices"]));
        assert!(devices.contains("accepts 2 of 22"), "{devices}");
        assert!(devices.contains("error: needs target feature x"), "{devices}");
        let listed = stdout(&mock.run("picky", &[], &["instructions", "--device", "mi250x"]));
        assert!(listed.contains("v_mfma_f32_16x16x16f") && !listed.contains("32x32x8f1"), "{listed}");
    }

    #[test]
    fn batches_go_through_in_parts_and_in_their_mode() {
        let Some(mock) = mock(&[]) else { return };
        let output = mock.multiply("hip", INSTRUCTION, ("", &[]), 1000);
        assert!(output.status.success(), "{}", stderr(&output));
        let launches = mock.launches();
        assert_eq!(launches.iter().map(|launch| launch[0]).sum::<u32>(), 1000);
        assert!(launches.iter().all(|launch| launch[1] == Mode::Default.bits()), "{launches:?}");
        // Little memory: parts of a few groups, alternating between two slots.
        let little = ("", &[("MOCK_HIP_FREE", "150000")][..]);
        let toward_zero = ("v_mfma_f32_16x16x16f16.rz", INSTRUCTION.1);
        let output = mock.multiply("hip:0", toward_zero, little, 1000);
        assert!(output.status.success(), "{}", stderr(&output));
        let launches = mock.launches();
        assert_eq!(launches.iter().map(|launch| launch[0]).sum::<u32>(), 1000);
        assert!(launches.len() >= 100, "{launches:?}");
        assert!(launches.iter().all(|launch| launch[1] == Mode::TowardZero.bits()), "{launches:?}");
    }

    #[test]
    fn problems_share_a_group_where_the_instruction_has_blocks() {
        let Some(mock) = mock(&[]) else { return };
        let four = ("v_mfma_f32_16x16x4f16", [16, 16, 4]);
        let output = mock.multiply("gfx90a", four, ("", &[]), 10);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(mock.launches().iter().map(|launch| launch[0]).sum::<u32>(), 3);
    }

    #[test]
    fn what_goes_wrong_is_translated_and_ends_with_3() {
        let Some(mock) = mock(&[]) else { return };
        for (mode, problem) in [
            ("fault", "the launch faulted (hipErrorLaunchFailure)"),
            ("hang", "said nothing for 0.3 s; raise --device-timeout"),
            ("memory", "out of memory for 1 MiB"),
            ("none", "AMD's HIP runtime sees no GPU"),
            ("unheard", "hipGetDeviceCount failed: hipErrorUnknown"),
        ] {
            let output = mock.multiply("hip", INSTRUCTION, (mode, &[]), 1);
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(3), "{mode}: {text}");
            assert!(text.contains(problem), "{mode}: {text}");
        }
    }

    #[test]
    fn gpus_have_names() {
        let Some(mock) = mock(&[]) else { return };
        for (device, code, says) in [
            ("mi250x", 0, "v_mfma_f32_16x16x16f"),
            ("cdna2", 0, "v_mfma_f64_4x4x4f64"),
            ("gfx90a", 0, "MODE rounds"),
            ("mi210", 3, "no such GPU is attached; hip:0 is AMD Instinct MI250X / MI250"),
            ("gfx942", 3, "no such GPU is attached"),
            ("mi300x", 3, "--device sim:mi300x simulates it"),
            ("hip:1", 3, "there is no GPU number 1: the driver sees 1"),
            ("hip:x", 2, "after hip: the number of a GPU is expected"),
        ] {
            let output = mock.run("", &[], &["instructions", "--device", device]);
            let text = stdout(&output) + &stderr(&output);
            assert_eq!(output.status.code(), Some(code), "{device}: {text}");
            assert!(text.contains(says), "{device}: {text}");
        }
    }

    #[test]
    fn the_script_for_recordings_knows_the_gpu() {
        let Some(mock) = mock(&[]) else { return };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/record.sh");
        let out = tempfile::tempdir().unwrap();
        let environment = [
            ("MMAPROBE", env!("CARGO_BIN_EXE_mmaprobe")),
            ("DEVICE", "hip:0"),
            ("OUT", out.path().to_str().unwrap()),
        ];
        let output = mock.run_program(script, "", &environment, &["devices"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let text = stderr(&output);
        assert!(text.contains("hip:0 is instinct-mi250x-mi250 (gfx90a)"), "{text}");
    }

    /// The major version of the runtime that this test is linked with.
    fn runtime_major() -> u32 {
        driver::runtime().expect("it answers without a GPU") / 10_000_000
    }

    /// The installed ROCm's own compiler, through the code that uses it, for the targets that every
    /// release of it knows; what it makes of the kernels is read with LLVM's disassembler.
    #[test]
    fn the_installed_compiler_takes_the_kernels() {
        let compiler = match Compiler::load(runtime_major()) {
            Ok(compiler) => compiler,
            Err(fault) => return eprintln!("NOT RUN: {fault}"),
        };
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::embedded();
        let mut read = 0;
        for (name, target) in [("cdna1", "gfx908"), ("cdna2", "gfx90a")] {
            for family in &catalog.find(name).unwrap().architecture.families {
                let (m, n) = family.smallest();
                let program = Program::new(&family.hip_spec(m, n).unwrap()).unwrap();
                let code =
                    compiler.compile(&program.source, target).unwrap_or_else(|fault| panic!("{fault}"));
                let path = folder.path().join("code.o");
                std::fs::write(&path, code).unwrap();
                let disassembly = Command::new("llvm-objdump-19").arg("-d").arg(&path).output();
                let Ok(disassembly) = disassembly else { continue };
                machine::check(&stdout(&disassembly), &family.isa(m, n))
                    .unwrap_or_else(|wrong| panic!("{wrong}"));
                read += 1;
            }
        }
        if read == 0 {
            eprintln!("NOT RUN: no llvm-objdump-19 to look at what was compiled");
        }
        let spec = catalog.find("cdna1").unwrap().architecture.families[0].hip_spec(32, 32).unwrap();
        let program = Program::new(&spec).unwrap();
        let unheard = program.source.replace(&program.builtin, "__builtin_amdgcn_mfma_f32_1x1x1f32");
        let refused = compiler.compile(&unheard, "gfx908").unwrap_err();
        assert!(matches!(&refused, Fault::Refused(line) if line.contains("error")), "{refused}");
    }
}
