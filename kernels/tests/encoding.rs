//! The instructions that are really in the executable: the check that also holds where the processor
//! lacks them.
#![cfg(target_arch = "x86_64")]

use std::process::Command;

use mmaprobe_kernels::cpu::Processor;

/// objdump's listing of this test's own executable, or `None` and a message.
fn listing() -> Option<String> {
    // Detection refers to every kernel; without it, the linker would leave them out.
    std::hint::black_box(Processor::detect());
    let executable = std::env::current_exe().expect("a running executable has a path");
    let output = match Command::new("objdump").args(["-d", "-M", "intel"]).arg(executable).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("NOT RUN: objdump: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "objdump: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// An instruction's bytes and its text, as objdump separates them.
fn instructions(listing: &str) -> impl Iterator<Item = (Vec<u8>, &str)> {
    listing.lines().filter_map(|line| {
        let mut fields = line.split('\t').skip(1);
        let bytes = fields.next()?.split_whitespace().map(|byte| u8::from_str_radix(byte, 16));
        Some((bytes.collect::<Result<_, _>>().ok()?, fields.next().unwrap_or_default().trim()))
    })
}

/// VEX.128.`prefix`.0F38.W0 5C 11:rrr:bbb with rrr = C and D, bbb = A (the first source is in ModRM.rm)
/// and VEX.vvvv = B, from the SDM's description of the fields.
fn tile_product(prefix: u8, [destination, first, second]: [u8; 3]) -> [u8; 5] {
    let inverted_rxb = 0b111 << 5;
    let map_0f38 = 0b00010;
    let (w, l) = (0, 0);
    let inverted_vvvv = !second & 0xF;
    let modrm = 0b11 << 6 | destination << 3 | first;
    [0xC4, inverted_rxb | map_0f38, w << 7 | inverted_vvvv << 3 | l << 2 | prefix, 0x5C, modrm]
}

#[test]
fn tile_products_are_encoded_with_a_first_and_b_second() {
    const F3: u8 = 0b10;
    const F2: u8 = 0b11;
    assert_eq!(tile_product(F3, [0, 1, 2]), [0xC4, 0xE2, 0x6A, 0x5C, 0xC1]);
    let Some(listing) = listing() else { return };
    for (name, prefix) in [("tdpbf16ps", F3), ("tdpfp16ps", F2)] {
        // The kernel's, and those of the loops on up to four accumulators.
        let operands = [[0, 1, 2], [0, 4, 5], [1, 4, 5], [2, 4, 5], [3, 4, 5]];
        for tiles in operands {
            let expected = tile_product(prefix, tiles);
            let texts: Vec<&str> = instructions(&listing)
                .filter(|(bytes, _)| *bytes == expected)
                .map(|(_, text)| text)
                .collect();
            assert!(!texts.is_empty(), "{name}: {expected:02X?} is not in the executable");
            for text in texts {
                if text.contains("(bad)") {
                    eprintln!("NOT RUN: this objdump does not know {name}; its bytes are there");
                } else {
                    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    let [d, a, b] = tiles;
                    assert_eq!(text, format!("{name} tmm{d},tmm{a},tmm{b}"));
                }
            }
        }
        let ours = operands.map(|tiles| tile_product(prefix, tiles));
        let strays = instructions(&listing)
            .filter(|(bytes, text)| text.starts_with(name) && !ours.iter().any(|ours| *bytes == ours))
            .count();
        assert_eq!(strays, 0, "{name} with other operands");
    }
}

/// The kernel's registers: r8 to r11 point to A, B, C and D; tmm0 to tmm2 hold C and D, A, B.
#[test]
fn tiles_are_configured_loaded_stored_and_released_around_each_product() {
    let Some(listing) = listing() else { return };
    let steps: Vec<String> = instructions(&listing)
        .filter_map(|(_, text)| {
            let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
            // The stride is in a register of the compiler's choice.
            let operands = operands.trim().split('+').next().unwrap_or_default();
            match name {
                "stmxcsr" | "ldmxcsr" | "ldtilecfg" => Some(name.to_owned()),
                "tilestored" => Some(format!("{name} {operands} {}", text.rsplit(',').next()?)),
                _ if name.starts_with("tile") || name.starts_with("tdp") => {
                    Some(format!("{name} {operands}").trim().to_owned())
                }
                _ => None,
            }
        })
        .collect();
    for name in ["tdpbf16ps", "tdpfp16ps"] {
        let product = format!("{name} tmm0,tmm1,tmm2");
        let expected = [
            "stmxcsr",
            "ldmxcsr",
            "ldtilecfg",
            "tileloadd tmm0,[r10",
            "tileloadd tmm1,[r8",
            "tileloadd tmm2,[r9",
            &product,
            "tilestored [r11 tmm0",
            "tilerelease",
            "ldmxcsr",
        ];
        if !steps.contains(&product) {
            eprintln!("NOT RUN: this objdump does not know {name}");
            continue;
        }
        assert!(
            steps.windows(expected.len()).any(|window| window == expected),
            "{name} is not surrounded as it should be: {steps:#?}"
        );
    }
}

/// Loop n of an instruction has it four times on each of n accumulators, and nothing else in between.
#[test]
fn loops_hold_their_instruction_alone() {
    let Some(listing) = listing() else { return };
    let texts: Vec<String> = instructions(&listing)
        .map(|(_, text)| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for (name, registers, factors, most) in [
        ("vdpbf16ps", "zmm", "zmm14,zmm15", 12),
        ("vfmadd231ps", "zmm", "zmm14,zmm15", 12),
        ("vfmadd231ps", "ymm", "ymm14,ymm15", 12),
        ("vfmadd231pd", "zmm", "zmm14,zmm15", 12),
        ("vfmadd231pd", "ymm", "ymm14,ymm15", 12),
        ("vfmadd231ph", "zmm", "zmm14,zmm15", 12),
        ("tdpbf16ps", "tmm", "tmm4,tmm5", 4),
        ("tdpfp16ps", "tmm", "tmm4,tmm5", 4),
    ] {
        let on = |accumulator: usize| format!("{name} {registers}{accumulator},{factors}");
        if !texts.contains(&on(0)) {
            eprintln!("NOT RUN: this objdump does not know {name}");
            continue;
        }
        for accumulators in 1..=most {
            let mut body: Vec<String> = (0..4 * accumulators).map(|i| on(i % accumulators)).collect();
            body.push("dec rcx".to_owned());
            let found = texts.windows(body.len() + 2).filter(|window| {
                // What comes before is no part of the body, and then it starts again.
                !window[0].starts_with(name)
                    && window[1..=body.len()] == body
                    && window[body.len() + 1].starts_with("jne")
            });
            assert_eq!(found.count(), 1, "{name} on {accumulators} {registers}");
        }
    }
}
