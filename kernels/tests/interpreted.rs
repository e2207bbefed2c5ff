//! The kernels, executed: an interpreter for the PTX that they are made of runs whole launches, with
//! several warps, CTAs and more groups than fit at a time, on packed problems.
//!
//! It knows PTX, not the generators: addresses, predicates, loops, barriers; shared memory through the
//! fields of the descriptors, tensor memory by lane and column. Only which element of a matrix a
//! register holds it takes from the layouts, which [layouts.rs](layouts.rs) holds against the manual.
//! Data are small integers, so that the products and sums are exact in any order.

#[path = "support/numbers.rs"]
mod numbers;

use std::collections::HashMap;

use mmaprobe_kernels::cuda::{Kind, Program, Spec};
use mmaprobe_kernels::fragment::{Fragment, Matrix};
use mmaprobe_model::format::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, FP16, FP32, FP64, TF32, UE4M3, UE8M0};
use mmaprobe_model::tree::Scale;
use mmaprobe_model::{Format, format};
use numbers::{decode, encode};

/// Where the arrays are in the interpreter's global memory: an address is `array << 32 | offset`.
type Global = Vec<Vec<u8>>;

/// One thread: its registers and where it is.
#[derive(Clone, Default)]
struct Thread {
    registers: HashMap<String, u64>,
    line: usize,
    done: bool,
}

/// The CTA: shared memory by symbol, tensor memory by lane and column.
struct Cta {
    shared: Vec<u8>,
    symbols: HashMap<String, u64>,
    tensor: Vec<[u32; 128]>,
}

const TENSOR_BASE: u64 = 64;

struct Machine<'a> {
    spec: &'a Spec,
    program: &'a Program,
    lines: Vec<&'a str>,
    labels: HashMap<&'a str, usize>,
    global: Global,
    groups: u64,
    ctas: u64,
}

fn operands(text: &str) -> Vec<String> {
    let (mut all, mut one, mut depth) = (Vec::new(), String::new(), 0);
    for c in text.trim_end_matches(';').chars() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                all.push(one.trim().to_string());
                one.clear();
                continue;
            }
            _ => {}
        }
        one.push(c);
    }
    all.push(one.trim().to_string());
    all
}

fn list(text: &str) -> Vec<&str> {
    text.trim_matches(['{', '}']).split(',').map(str::trim).collect()
}

impl Machine<'_> {
    fn value(&self, thread: &Thread, cta: &Cta, operand: &str) -> u64 {
        if let Some(value) = thread.registers.get(operand) {
            return *value;
        }
        if let Some(symbol) = cta.symbols.get(operand) {
            return *symbol;
        }
        let number =
            operand.strip_prefix("0x").map_or_else(|| operand.parse(), |hex| u64::from_str_radix(hex, 16));
        number.unwrap_or_else(|_| panic!("operand {operand}"))
    }

    /// `[%base+offset]`.
    fn address(&self, thread: &Thread, cta: &Cta, operand: &str) -> u64 {
        let inner = operand.trim_matches(['[', ']']);
        match inner.split_once('+') {
            Some((base, offset)) => self.value(thread, cta, base) + self.value(thread, cta, offset),
            None => self.value(thread, cta, inner),
        }
    }

    /// Executes one instruction of one thread; `false` if it has to wait for others there.
    fn step(&mut self, thread: &mut Thread, cta: &mut Cta) -> bool {
        let line = self.lines[thread.line];
        let (guard, line) = match line.strip_prefix('@') {
            Some(rest) => rest.split_once(' ').map(|(guard, rest)| (Some(guard), rest)).unwrap(),
            None => (None, line),
        };
        let (opcode, rest) = line.split_once(' ').unwrap_or((line, ""));
        if guard.is_none()
            && (opcode == "bar.sync" || opcode.starts_with("mma.") || opcode.starts_with("wgmma.mma"))
        {
            return false;
        }
        thread.line += 1;
        if let Some(guard) = guard {
            let (wanted, name) = guard.strip_prefix('!').map_or((1, guard), |name| (0, name));
            if thread.registers[name] != wanted {
                return true;
            }
        }
        let o = operands(rest);
        let get = |thread: &Thread, index: usize| self.value(thread, cta, &o[index]);
        let low = |value: u64| value & 0xFFFF_FFFF;
        let set = |thread: &mut Thread, value: u64| thread.registers.insert(o[0].clone(), value);
        match opcode.trim_end_matches(';') {
            "ret" => thread.done = true,
            "bra" => thread.line = self.labels[o[0].as_str()],
            "ld.param.u64" => {
                let array = o[1].trim_matches(['[', ']']).strip_prefix("param_").unwrap();
                let index = ["a", "b", "c", "sa", "sb", "d"].iter().position(|name| *name == array).unwrap();
                set(thread, (index as u64) << 32);
            }
            "ld.param.u32" => {
                set(thread, self.groups);
            }
            "cvta.to.global.u64" | "mov.u32" | "mov.b32" | "mov.b64" | "cvt.u64.u32" => {
                let value = get(thread, 1);
                set(thread, value);
            }
            op @ ("and.b32" | "or.b64" | "xor.b32" | "shr.u32" | "shl.b32" | "add.u32" | "mul.lo.u32") => {
                let (x, y) = (get(thread, 1), get(thread, 2));
                let value = match &op[..2] {
                    "an" => x & y,
                    "or" => x | y,
                    "xo" => x ^ y,
                    "ad" => x + y,
                    "mu" => x * y,
                    _ if op.starts_with("shr") => x >> y,
                    _ => x << y,
                };
                set(thread, if op.ends_with("64") { value } else { low(value) });
            }
            op @ ("mad.lo.u32" | "mad.wide.u32") => {
                let value = get(thread, 1) * get(thread, 2) + get(thread, 3);
                set(thread, if op.contains("wide") { value } else { low(value) });
            }
            op if op.starts_with("setp.") => {
                let (x, y) = (get(thread, 1), get(thread, 2));
                let value = match &op[5..7] {
                    "eq" => x == y,
                    "lt" => x < y,
                    "ge" => x >= y,
                    other => panic!("setp.{other}"),
                };
                set(thread, value.into());
            }
            op if op.starts_with("ld.") => {
                let address = self.address(thread, cta, &o[1]);
                let width = if op.ends_with("64") { 8 } else { 4 };
                let memory = self.memory(cta, op, address);
                let offset = (address & 0xFFFF_FFFF) as usize;
                assert!(offset.is_multiple_of(width * list(&o[0]).len()), "aligned: {line}");
                let read: Vec<u64> = (0..list(&o[0]).len())
                    .map(|index| {
                        let bytes = &memory[offset + index * width..][..width];
                        bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
                    })
                    .collect();
                for (name, value) in list(&o[0]).iter().zip(read) {
                    thread.registers.insert(name.to_string(), value);
                }
            }
            op if op.starts_with("st.") => {
                let address = self.address(thread, cta, &o[0]);
                let width = if op.ends_with("64") { 8 } else { 4 };
                let values: Vec<u64> = list(&o[1]).iter().map(|name| thread.registers[*name]).collect();
                let offset = (address & 0xFFFF_FFFF) as usize;
                let memory = match op.contains("shared") {
                    true => &mut cta.shared,
                    false => &mut self.global[(address >> 32) as usize],
                };
                for (index, value) in values.iter().enumerate() {
                    memory[offset + index * width..][..width].copy_from_slice(&value.to_le_bytes()[..width]);
                }
            }
            "mbarrier.try_wait.parity.shared::cta.b64" => {
                set(thread, 1);
            }
            op if op.starts_with("tcgen05.alloc") => {
                let slot = self.address(thread, cta, &o[0]) as usize;
                assert!(get(thread, 1).is_power_of_two() && get(thread, 1) >= 32);
                cta.shared[slot..slot + 4].copy_from_slice(&(TENSOR_BASE as u32).to_le_bytes());
            }
            op if op.starts_with("tcgen05.st") || op.starts_with("tcgen05.ld") => {
                let store = op.starts_with("tcgen05.st");
                let (at, registers) = if store { (&o[0], &o[1]) } else { (&o[1], &o[0]) };
                let address = self.address(thread, cta, at);
                // A warp reaches the lanes of its own quarter, from the one in the address on.
                let lane = (address >> 16) as usize + thread.registers["%tid.x"] as usize % 32;
                assert_eq!((address >> 16) as usize, thread.registers["%tid.x"] as usize / 32 * 32);
                for (index, name) in list(registers).into_iter().enumerate() {
                    let cell = &mut cta.tensor[(address & 0xFFFF) as usize + index][lane];
                    match store {
                        true => *cell = thread.registers[name] as u32,
                        false => {
                            thread.registers.insert(name.to_string(), (*cell).into());
                        }
                    }
                }
            }
            op if op.starts_with("tcgen05.mma") => self.tensor_core(thread, cta, &o),
            op => {
                let ordering = [
                    "fence.",
                    "wgmma.fence",
                    "wgmma.commit",
                    "wgmma.wait",
                    "bar.warp",
                    "mbarrier.init",
                    "tcgen05.fence",
                    "tcgen05.wait",
                    "tcgen05.commit",
                    "tcgen05.relinquish",
                    "tcgen05.dealloc",
                    ".reg",
                    ".shared",
                ];
                let label = op.ends_with(':');
                assert!(label || ordering.iter().any(|known| op.starts_with(known)), "unknown: {line}");
            }
        }
        true
    }

    fn memory<'m>(&'m self, cta: &'m Cta, op: &str, address: u64) -> &'m [u8] {
        if op.contains("shared") { &cta.shared } else { &self.global[(address >> 32) as usize] }
    }

    /// The element of a factor that a shared memory descriptor describes: K-major, no swizzling.
    fn factor(&self, cta: &Cta, descriptor: u64, format: &Format, outer: usize, inner: usize) -> f64 {
        let field = |low: u32| ((descriptor >> low & 0x3FFF) << 4) as usize;
        let (start, leading, stride) = (field(0), field(16), field(32));
        let small = format.bytes == 1 && format.exponent_bits + format.fraction_bits < 7;
        let bits =
            if small { 1 + format.exponent_bits + format.fraction_bits } else { 8 * format.bytes as u32 }
                as usize;
        let each = if self.spec.k == 64 {
            32
        } else if small {
            16
        } else {
            16 / format.bytes
        };
        let at = start + outer / 8 * stride + inner / each * leading + outer % 8 * 16;
        let word =
            cta.shared[at..at + 16].iter().rev().fold(0u128, |value, &byte| value << 8 | u128::from(byte));
        decode(format, (word >> (inner % each * bits)) as u64 & (u64::MAX >> (64 - bits)))
    }

    /// `tcgen05.mma`: M and N from the instruction descriptor, everything else where it points.
    fn tensor_core(&self, thread: &Thread, cta: &mut Cta, o: &[String]) {
        let value = |index: usize| self.value(thread, cta, &o[index]);
        let (a, b, code) = (value(1), value(2), value(3));
        assert_eq!((a >> 46 & 7, b >> 46 & 7), (1, 1));
        let (m, n) = ((code >> 24 & 31) as usize * 16, (code >> 17 & 63) as usize * 8);
        assert_eq!((m, n), (self.spec.m, self.spec.n));
        let d = self.address(thread, cta, &o[0]) as usize;
        let block = self.spec.scale.map_or(usize::MAX, |scale| scale.block);
        let mut results = Vec::new();
        for i in 0..m {
            let lane = if m == 64 { i / 16 * 32 + i % 16 } else { i };
            for j in 0..n {
                let scale = |operand: usize, outer: usize, l: usize| -> f64 {
                    let Some(scale) = &self.spec.scale else { return 1.0 };
                    let column = self.address(thread, cta, &o[operand]) as usize + outer / 32;
                    // Each quarter of the lanes has to hold a copy.
                    let copies: Vec<u32> = (0..4).map(|q| cta.tensor[column][32 * q + outer % 32]).collect();
                    assert!(copies.iter().all(|copy| *copy == copies[0]));
                    decode(&scale.format, u64::from(copies[0]) >> (8 * (l / block)) & 0xFF)
                };
                let sum: f64 = (0..self.spec.k)
                    .map(|l| {
                        self.factor(cta, a, &self.spec.a, i, l)
                            * self.factor(cta, b, &self.spec.b, j, l)
                            * scale(4, i, l)
                            * scale(5, j, l)
                    })
                    .sum();
                let c = u64::from(cta.tensor[d + j][lane]);
                results.push((d + j, lane, encode(&self.spec.d, sum + decode(&self.spec.c, c)) as u32));
            }
        }
        for (column, lane, result) in results {
            cta.tensor[column][lane] = result;
        }
    }

    /// `mma.sync` of a warp, or `wgmma` of all: the registers of the lanes at a place of a fragment.
    fn collective(&self, threads: &mut [&mut Thread], cta: &Cta, name: &str) {
        let Spec { m, n, k, .. } = *self.spec;
        let fragments = &self.program.fragments;
        let wgmma = name.starts_with("wgmma");
        let read =
            |threads: &[&mut Thread], array: &str, fragment: &Fragment, format: &Format, at: [usize; 3]| {
                let place = fragment.place(at[0], at[1], at[2]);
                let register = threads[place.lane].registers[&format!("%{array}{}", place.register)];
                decode(format, register >> place.bit & (u64::MAX >> (64 - fragment.bits)))
            };
        let mut results = Vec::new();
        for block in 0..fragments.d.blocks {
            for i in 0..m {
                for j in 0..n {
                    let mut sum = read(
                        threads,
                        if wgmma { "d" } else { "c" },
                        &fragments.c,
                        &self.spec.c,
                        [block, i, j],
                    );
                    for l in 0..k {
                        let (a, b) = match wgmma {
                            true => {
                                let of = |name: &str| threads[0].registers[name];
                                let a = self.factor(cta, of("%descriptor_a"), &self.spec.a, i, l);
                                (a, self.factor(cta, of("%descriptor_b"), &self.spec.b, j, l))
                            }
                            false => {
                                let a = read(threads, "a", &fragments.a, &self.spec.a, [block, i, l]);
                                (a, read(threads, "b", &fragments.b, &self.spec.b, [block, j, l]))
                            }
                        };
                        let scale = self.spec.scale.map_or(1.0, |scale| {
                            let of = |array, matrix, outer| {
                                let fragment = fragments.of(matrix).unwrap();
                                read(threads, array, fragment, &scale.format, [0, outer, l / scale.block])
                            };
                            of("sa", Matrix::ScaleA, i) * of("sb", Matrix::ScaleB, j)
                        });
                        sum += a * b * scale;
                    }
                    results.push((fragments.d.place(block, i, j), encode(&self.spec.d, sum)));
                }
            }
        }
        for (place, result) in results {
            let register = threads[place.lane].registers.entry(format!("%d{}", place.register)).or_insert(0);
            *register &= !((u64::MAX >> (64 - fragments.d.bits)) << place.bit);
            *register |= result << place.bit;
        }
    }

    fn run(&mut self) {
        for cta_id in 0..self.ctas {
            let mut cta =
                Cta { shared: Vec::new(), symbols: HashMap::new(), tensor: vec![[0xBAD; 128]; 640] };
            for line in self.lines.iter().filter(|line| line.starts_with(".shared")) {
                let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
                let (name, size) = words[4].split_once('[').map_or((words[4], 8), |(name, size)| {
                    (name, size.trim_end_matches(']').parse().unwrap())
                });
                cta.symbols.insert(name.to_string(), cta.shared.len() as u64);
                cta.shared.resize((cta.shared.len() + size).next_multiple_of(128), 0xEE);
            }
            let mut threads: Vec<Thread> = (0..128u64)
                .map(|index| {
                    let special = [("%tid.x", index), ("%ctaid.x", cta_id), ("%nctaid.x", self.ctas)];
                    let registers = special.map(|(name, value)| (name.to_string(), value)).into();
                    Thread { registers, ..Thread::default() }
                })
                .collect();
            while threads.iter().any(|thread| !thread.done) {
                for thread in &mut threads {
                    while !thread.done && self.step(thread, &mut cta) {}
                }
                // Everybody waits somewhere: warps for their instruction, the CTA for its barrier.
                let mut moved = false;
                for width in [32, 128] {
                    for team in threads.chunks_mut(width) {
                        let line = team[0].line;
                        if team.iter().any(|thread| thread.done || thread.line != line) {
                            continue;
                        }
                        let name = self.lines[line].split(' ').next().unwrap_or_default();
                        let needs = match name {
                            "bar.sync" => 128,
                            name if name.starts_with("wgmma.mma") => 128,
                            name if name.starts_with("mma.") => 32,
                            // Just moved on from one of these.
                            _ => continue,
                        };
                        if needs != width {
                            continue;
                        }
                        let mut team: Vec<&mut Thread> = team.iter_mut().collect();
                        if name != "bar.sync" {
                            self.collective(&mut team, &cta, name);
                        }
                        team.into_iter().for_each(|thread| thread.line += 1);
                        moved = true;
                    }
                }
                assert!(moved || threads.iter().all(|thread| thread.done), "threads wait for each other");
            }
        }
    }
}

fn check(spec: &Spec, target: &str, problems: usize, ctas: u64) {
    let program = Program::new(spec, target).unwrap();
    let mut state = 1u64;
    let mut next = |choices: &[f64]| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        choices[(state >> 33) as usize % choices.len()]
    };
    let fragments = &program.fragments;
    let scale = spec.scale.map_or(FP32, |scale| scale.format);
    let operands = [
        (Some(&fragments.a), spec.a, &[-1.0, 0.0, 1.0, 2.0][..]),
        (Some(&fragments.b), spec.b, &[-2.0, -1.0, 1.0, 4.0][..]),
        (Some(&fragments.c), spec.c, &[-3.0, 0.0, 5.0, 16.0][..]),
        (fragments.sa.as_ref(), scale, &[1.0, 2.0, 4.0][..]),
        (fragments.sb.as_ref(), scale, &[1.0, 2.0][..]),
    ];
    let (mut values, mut global): (Vec<Vec<f64>>, Global) = (Vec::new(), Vec::new());
    let groups = problems.div_ceil(spec.blocks);
    for (fragment, format, choices) in operands {
        let Some(fragment) = fragment else {
            values.push(Vec::new());
            global.push(Vec::new());
            continue;
        };
        let one: Vec<f64> = (0..problems * fragment.outer * fragment.inner).map(|_| next(choices)).collect();
        let bytes: Vec<u8> =
            one.iter().flat_map(|&x| encode(&format, x).to_le_bytes()[..format.bytes].to_vec()).collect();
        let mut packed = vec![0; groups * fragment.bytes()];
        fragment.pack(&bytes, &mut packed);
        values.push(one);
        global.push(packed);
    }
    global.push(vec![0xCC; groups * fragments.d.bytes()]);
    let body = program.ptx.split_once("{\n").unwrap().1;
    let lines: Vec<&str> = body.lines().map(str::trim).collect();
    let labels =
        lines.iter().enumerate().filter_map(|(at, line)| Some((line.strip_suffix(':')?, at))).collect();
    let mut machine = Machine { spec, program: &program, lines, labels, global, groups: groups as u64, ctas };
    machine.run();
    let mut d = vec![0; problems * spec.m * spec.n * spec.d.bytes];
    fragments.d.unpack(&machine.global[5], &mut d);
    let Spec { m, n, k, .. } = *spec;
    let block = spec.scale.map_or(k, |scale| scale.block);
    let blocks = k / block;
    for p in 0..problems {
        for i in 0..m {
            for j in 0..n {
                let scales = |l: usize| match spec.scale {
                    Some(_) => {
                        values[3][(p * m + i) * blocks + l / block]
                            * values[4][(p * n + j) * blocks + l / block]
                    }
                    None => 1.0,
                };
                let products = (0..k)
                    .map(|l| values[0][(p * m + i) * k + l] * values[1][(p * n + j) * k + l] * scales(l));
                let expected = encode(&spec.d, values[2][(p * m + i) * n + j] + products.sum::<f64>());
                let at = ((p * m + i) * n + j) * spec.d.bytes;
                let found =
                    d[at..at + spec.d.bytes].iter().rev().fold(0, |x, &byte| x << 8 | u64::from(byte));
                assert_eq!(
                    found, expected,
                    "{} for {target}: D[{i}][{j}] of problem {p}",
                    program.instruction
                );
            }
        }
    }
}

fn spec(kind: Kind, [m, n, k]: [usize; 3], [a, b, c, d]: [Format; 4]) -> Spec {
    Spec { kind, m, n, k, a, b, c, d, scale: None, blocks: 1 }
}

fn scaled(kind: Kind, shape: [usize; 3], ab: Format, format: Format, block: usize) -> Spec {
    Spec { scale: Some(Scale { format, block }), ..spec(kind, shape, [ab, ab, FP32, FP32]) }
}

#[test]
fn mma_computes_every_problem() {
    let mma = |shape, formats| spec(Kind::Mma, shape, formats);
    for (spec, target) in [
        (mma([8, 8, 4], [FP64; 4]), "sm_80"),
        (mma([16, 8, 16], [FP64; 4]), "sm_90a"),
        (mma([16, 8, 16], [FP16, FP16, FP32, FP32]), "sm_80"),
        (mma([16, 8, 8], [FP16; 4]), "sm_75"),
        (mma([16, 8, 8], [BF16, BF16, FP32, FP32]), "sm_80"),
        (mma([16, 8, 8], [TF32, TF32, FP32, FP32]), "sm_80"),
        (mma([16, 8, 32], [E4M3, E5M2, FP32, FP32]), "sm_89"),
        (mma([16, 8, 32], [E2M1, E3M2, FP16, FP16]), "sm_120a"),
        (scaled(Kind::MmaBlockScale, [16, 8, 32], E2M3, UE8M0, 32), "sm_120a"),
        (scaled(Kind::MmaBlockScale, [16, 8, 64], E2M1, UE4M3, 16), "sm_120a"),
        (scaled(Kind::MmaBlockScale, [16, 8, 64], E2M1, UE8M0, 32), "sm_120a"),
    ] {
        // Two CTAs of four warps: the loop comes round, and not for all of them alike.
        check(&spec, target, 19, 2);
    }
    for (c, d) in [(FP32, FP32), (FP16, FP32), (FP16, FP16)] {
        // Four problems to a warp, the last warp's incomplete.
        check(&Spec { blocks: 4, ..mma([8, 8, 4], [FP16, FP16, c, d]) }, "sm_70", 4 * 9 + 3, 2);
    }
}

#[test]
fn wgmma_computes_every_problem() {
    for (n, k, formats) in [
        (8, 16, [FP16, FP16, FP32, FP32]),
        (40, 16, [FP16; 4]),
        (8, 8, [TF32, TF32, FP32, FP32]),
        (24, 32, [E5M2, E4M3, FP16, FP16]),
        (136, 16, [BF16, BF16, FP32, FP32]),
    ] {
        check(&spec(Kind::Wgmma, [64, n, k], formats), "sm_90a", 3, 2);
    }
}

#[test]
fn tcgen05_computes_every_problem() {
    for (m, n, k, formats) in [
        (64, 8, 16, [FP16; 4]),
        (128, 16, 8, [TF32, TF32, FP32, FP32]),
        (64, 24, 32, [E2M1, E3M2, FP32, FP32]),
        (128, 8, 32, [E4M3, E2M3, FP16, FP16]),
    ] {
        check(&spec(Kind::Tcgen05, [m, n, k], formats), "sm_100a", 3, 2);
    }
    for (n, k, ab, format, block) in [
        (8, 32, E5M2, UE8M0, 32),
        (40, 64, E2M1, UE8M0, 32),
        (72, 64, E2M1, UE4M3, 16),
        (8, 64, E2M1, UE8M0, 16),
    ] {
        check(&scaled(Kind::Tcgen05BlockScale, [128, n, k], ab, format, block), "sm_100a", 3, 2);
    }
}

#[test]
fn small_integers_are_what_they_are_taken_for() {
    for format in format::Format::ALL.iter().filter(|format| format.signed) {
        for value in [-1.0, 1.0, 2.0] {
            assert_eq!(decode(format, encode(format, value)), value, "{format}");
        }
    }
}
