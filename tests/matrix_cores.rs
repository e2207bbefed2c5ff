//! The layouts of AMD's Matrix Core instructions, for each of the catalogue: bijections, packing and
//! unpacking, and a second derivation of them; and the kernel, executed on the host lane by lane.

#[path = "support/matrix_cores.rs"]
mod cores;
#[path = "../kernels/tests/support/numbers.rs"]
mod numbers;

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use cores::{Operand, Shape, element};
use mmaprobe::catalog::Catalog;
use mmaprobe::device::hip::is_ours;
use mmaprobe::model::Format;
use mmaprobe::model::format::{E4M3, E5M2, FP64};
use mmaprobe_kernels::fragment::{Fragment, Matrix, Place};
use mmaprobe_kernels::hip::{Kind, LANES, Mode, Program, Spec, THREADS};
use numbers::{decode, encode};

/// Every instruction of AMD's in the catalogue, with its architecture.
fn all() -> Vec<(String, Spec)> {
    let catalog = Catalog::embedded();
    let ours = catalog.architectures().iter().filter(|architecture| is_ours(architecture));
    let all: Vec<(String, Spec)> = ours
        .flat_map(|architecture| {
            architecture.families.iter().map(|family| {
                let (m, n) = family.smallest();
                let spec = family.hip_spec(m, n).expect("a kernel for each");
                (format!("{} of {}", family.name(m, n), architecture.name), spec)
            })
        })
        .collect();
    assert_eq!(all.len(), 15 + 22 + 27 + 54);
    all
}

/// The programs of all of them.
fn programs() -> Vec<(String, Spec, Program)> {
    let program = |(name, spec): (String, Spec)| {
        let program = Program::new(&spec).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, spec, program)
    };
    all().into_iter().map(program).collect()
}

/// What the second derivation has to know of a fragment.
fn described(spec: &Spec, matrix: Matrix, fragment: &Fragment) -> (Operand, Shape) {
    let operand = match matrix {
        Matrix::A | Matrix::B => Operand::Factor,
        Matrix::C | Matrix::D => Operand::Accumulator,
        Matrix::ScaleA | Matrix::ScaleB => Operand::Scales,
    };
    let format = if matrix == Matrix::B { spec.b } else { spec.a };
    let shape = Shape {
        m: spec.m,
        blocks: spec.blocks,
        each: fragment.places().len() / LANES,
        double: spec.d == FP64,
        scaled_bytes: spec.kind == Kind::MfmaScale && [E4M3, E5M2].contains(&format),
        k: spec.k,
    };
    (operand, shape)
}

#[test]
fn layouts_are_those_of_the_vendor() {
    let mut compared = 0;
    for (name, spec, program) in programs() {
        for matrix in Matrix::ALL {
            let Some(fragment) = program.fragments.of(matrix) else { continue };
            let (operand, shape) = described(&spec, matrix, fragment);
            for lane in 0..LANES {
                for e in 0..shape.each {
                    let [block, outer, inner] = element(shape, operand, lane, e);
                    let low = e * fragment.bits;
                    let expected = Place { lane, register: low / 32, bit: low % 32 };
                    let place = fragment.place(block, outer, inner);
                    assert_eq!(place, expected, "{matrix:?}[{outer}][{inner}] of block {block}, {name}");
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 417_152);
}

#[test]
fn no_two_elements_share_a_bit_and_all_are_inside() {
    for (name, spec, program) in programs() {
        for matrix in Matrix::ALL {
            let Some(fragment) = program.fragments.of(matrix) else { continue };
            let (lanes, registers, _) = fragment.home.size();
            assert_eq!(lanes, LANES);
            let mut taken = HashSet::new();
            for &place in fragment.places() {
                assert!(place.lane < lanes && place.register < registers && place.bit < 32, "{name}");
                let first = fragment.offset(place);
                // The bits of a lane's registers follow one another, and no element reaches into the next
                // lane's.
                assert_eq!(first / (32 * registers), place.lane, "{name}");
                assert_eq!((first + fragment.bits - 1) / (32 * registers), place.lane, "{name}");
                assert!((first..first + fragment.bits).all(|bit| taken.insert(bit)), "{name} {matrix:?}");
            }
            // All bits of factors and accumulators are some element's.
            let all = 8 * fragment.bytes();
            match matrix {
                Matrix::ScaleA | Matrix::ScaleB => assert_eq!(taken.len(), 8 * spec.m * spec.k / 32),
                _ => assert_eq!(taken.len(), all, "{name} {matrix:?}"),
            }
        }
    }
}

/// A sequence of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize
    }
}

#[test]
fn unpacking_what_was_packed_gives_the_problems_back() {
    let mut numbers = Numbers(1);
    for (name, spec, program) in programs() {
        for matrix in Matrix::ALL {
            let Some(fragment) = program.fragments.of(matrix) else { continue };
            // Not whole groups, where a group is several problems.
            for problems in [1, spec.blocks + 1] {
                let bytes = problems * fragment.problem_bytes();
                let mask = if fragment.bits < 8 { (1 << fragment.bits) - 1 } else { 0xFF };
                let elements: Vec<u8> = (0..bytes).map(|_| numbers.next() as u8 & mask).collect();
                let mut groups = vec![0xAA; problems.div_ceil(spec.blocks) * fragment.bytes()];
                fragment.pack(&elements, &mut groups);
                let mut again = vec![0x55; elements.len()];
                fragment.unpack(&groups, &mut again);
                assert_eq!(elements, again, "{matrix:?} of {name}, {problems} problems");
            }
        }
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The bits of element `e` of a lane's registers.
fn read(registers: &[u8], bits: usize, e: usize) -> u64 {
    let low = e * bits;
    (0..bits).fold(0, |value, bit| {
        let at = low + bit;
        value | u64::from(registers[at / 8] >> (at % 8) & 1) << bit
    })
}

/// The kernel on the host: every thread of a launch, one after another.
struct Host {
    program: std::path::PathBuf,
}

impl Host {
    /// `None` and a message where there is no C compiler.
    fn compile(folder: &Path, source: &str) -> Option<Host> {
        let program = folder.join("kernel");
        let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/devices/wave.c");
        std::fs::write(folder.join("kernel.h"), source).unwrap();
        // Vectors wider than the machine's are no problem between functions of one file.
        let arguments = ["-std=gnu11", "-O1", "-w", "-I"];
        match Command::new("cc").args(arguments).arg(folder).arg("-o").arg(&program).arg(shim).output() {
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                Some(Host { program })
            }
            Err(error) => {
                eprintln!("NOT RUN: cc: {error}");
                None
            }
        }
    }

    /// Launches so many blocks on arrays. `answers` are the registers that each execution of the
    /// instruction gives, in the order of threads; without them it tells what each is asked.
    fn launch(&self, blocks: usize, groups: usize, arrays: &[Vec<u8>; 6], answers: Option<&[u8]>) -> Vec<u8> {
        let mut input = Vec::new();
        let numbers = [blocks, groups, Mode::Up.bits() as usize, answers.map_or(0, <[u8]>::len)];
        let lengths = arrays.iter().map(Vec::len);
        for number in numbers.into_iter().chain(lengths) {
            input.extend((number as u32).to_le_bytes());
        }
        arrays.iter().for_each(|array| input.extend(array));
        input.extend(answers.unwrap_or_default());
        let mut child = Command::new(&self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program that was just compiled");
        let mut stdin = child.stdin.take().expect("piped");
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().expect("it reads everything");
        assert!(output.status.success(), "{:?}", output.status);
        output.stdout
    }
}

/// What a thread asks of the instruction: who it is, and its registers.
struct Asked {
    block: usize,
    thread: usize,
    mode: u32,
    /// A, B, C, and the two scales.
    registers: [Vec<u8>; 5],
}

fn asked(program: &Program, bytes: &[u8]) -> Vec<Asked> {
    let f = &program.fragments;
    let scale = if f.sa.is_some() { 4 } else { 0 };
    let lengths = [4 * f.a.registers(), 4 * f.b.registers(), 4 * f.c.registers(), scale, scale];
    let record = 12 + lengths.iter().sum::<usize>();
    assert!(bytes.len().is_multiple_of(record));
    bytes
        .chunks(record)
        .map(|bytes| {
            let word = |index: usize| little_endian(&bytes[4 * index..][..4]) as usize;
            let mut rest = &bytes[12..];
            let registers = lengths.map(|length| {
                let (registers, after) = rest.split_at(length);
                rest = after;
                registers.to_vec()
            });
            Asked { block: word(0), thread: word(1), mode: word(2) as u32, registers }
        })
        .collect()
}

/// What the instruction gives a wave: the registers of D of each lane, by the second derivation of the
/// layouts.
fn execute(spec: &Spec, program: &Program, wave: &[&Asked]) -> Vec<Vec<u8>> {
    let Spec { m, n, k, blocks, .. } = *spec;
    let f = &program.fragments;
    let matrix = |index: usize, matrix: Matrix, fragment: &Fragment, format: &Format| {
        let (operand, shape) = described(spec, matrix, fragment);
        let mut values = BTreeMap::new();
        for (lane, asked) in wave.iter().enumerate() {
            for e in 0..shape.each {
                let bits = read(&asked.registers[index], fragment.bits, e);
                values.insert(element(shape, operand, lane, e), decode(format, bits));
            }
        }
        values
    };
    let (a, b) = (matrix(0, Matrix::A, &f.a, &spec.a), matrix(1, Matrix::B, &f.b, &spec.b));
    let c = matrix(2, Matrix::C, &f.c, &spec.c);
    let scales = spec.scale.map(|scale| {
        let of = |index, which, fragment: &Option<Fragment>| {
            matrix(index, which, fragment.as_ref().unwrap(), &scale.format)
        };
        (of(3, Matrix::ScaleA, &f.sa), of(4, Matrix::ScaleB, &f.sb))
    });
    let mut d = BTreeMap::new();
    for (block, i, j) in
        (0..blocks).flat_map(|block| (0..m).flat_map(move |i| (0..n).map(move |j| (block, i, j))))
    {
        let products = (0..k).map(|l| {
            let scale = scales.as_ref().map_or(1.0, |(a, b)| a[&[0, i, l / 32]] * b[&[0, j, l / 32]]);
            a[&[block, i, l]] * b[&[block, j, l]] * scale
        });
        d.insert([block, i, j], c[&[block, i, j]] + products.sum::<f64>());
    }
    let (operand, shape) = described(spec, Matrix::D, &f.d);
    (0..LANES)
        .map(|lane| {
            let elements = (0..shape.each).map(|e| encode(&spec.d, d[&element(shape, operand, lane, e)]));
            elements.flat_map(|bits| bits.to_le_bytes()[..spec.d.bytes].to_vec()).collect()
        })
        .collect()
}

/// Problems of small integers for an instruction, packed; and what D is, exactly.
fn problems(spec: &Spec, program: &Program, count: usize) -> ([Vec<u8>; 6], Vec<u64>) {
    let mut numbers = Numbers(count as u64);
    let f = &program.fragments;
    let Spec { m, n, k, .. } = *spec;
    let scale = spec.scale.map_or(spec.d, |scale| scale.format);
    let operands = [
        (Some(&f.a), spec.a, &[-1.0, 0.0, 1.0, 2.0][..]),
        (Some(&f.b), spec.b, &[-2.0, -1.0, 1.0, 4.0][..]),
        (Some(&f.c), spec.c, &[-3.0, 0.0, 5.0, 16.0][..]),
        (f.sa.as_ref(), scale, &[1.0, 2.0, 4.0][..]),
        (f.sb.as_ref(), scale, &[1.0, 2.0][..]),
    ];
    let mut arrays: [Vec<u8>; 6] = Default::default();
    let mut values: Vec<Vec<f64>> = Vec::new();
    for ((fragment, format, choices), array) in operands.into_iter().zip(&mut arrays) {
        let Some(fragment) = fragment else { continue };
        let one: Vec<f64> = (0..count * fragment.outer * fragment.inner)
            .map(|_| choices[numbers.next() % choices.len()])
            .collect();
        let elements: Vec<u8> = one
            .iter()
            .flat_map(|&value| encode(&format, value).to_le_bytes()[..format.bytes].to_vec())
            .collect();
        array.resize(count.div_ceil(spec.blocks) * fragment.bytes(), 0);
        fragment.pack(&elements, array);
        values.push(one);
    }
    arrays[5] = vec![0xCC; count.div_ceil(spec.blocks) * f.d.bytes()];
    let mut d = Vec::new();
    for (p, i, j) in (0..count).flat_map(|p| (0..m).flat_map(move |i| (0..n).map(move |j| (p, i, j)))) {
        let at = |which: usize, outer: usize, length: usize, l: usize| values[which][outer * length + l];
        let products = (0..k).map(|l| {
            let product = at(0, p * m + i, k, l) * at(1, p * n + j, k, l);
            let scale = if spec.scale.is_none() {
                1.0
            } else {
                at(3, p * m + i, k / 32, l / 32) * at(4, p * n + j, k / 32, l / 32)
            };
            product * scale
        });
        d.push(encode(&spec.d, at(2, p * m + i, n, j) + products.sum::<f64>()));
    }
    (arrays, d)
}

/// Two launches: one tells what each thread asks of the instruction, the other gives what the
/// instruction answers. D then has to be what exact arithmetic makes of the problems.
#[test]
fn the_kernel_computes_every_problem() {
    // One of each text: many instructions differ in the formats alone that their registers hold.
    let mut texts = HashSet::new();
    let folder = tempfile::tempdir().unwrap();
    for (name, spec, program) in programs() {
        let formats_apart = program.source.replace(&program.builtin, "");
        let selectors = formats_apart.find("__attribute__((global").unwrap_or(0);
        let head: Vec<&str> =
            formats_apart[..selectors].lines().filter(|line| !line.contains("define EXECUTE")).collect();
        // Each scaled instruction has its own registers for formats of 8, 6 and 4 bits.
        if !texts.insert(format!("{head:?} {} {} {}", spec.m, spec.k, spec.blocks)) {
            continue;
        }
        let source = format!(
            "#define BUILTIN {}\n{}",
            program.builtin,
            program.source.replace(&program.builtin, "ANSWER")
        );
        let Some(host) = Host::compile(folder.path(), &source) else { return };
        // Two blocks of four waves: the loop comes round, and not for all of them alike; the last group
        // is incomplete where it is several problems.
        let (blocks, groups) = (2, 11);
        let count = groups * spec.blocks - spec.blocks / 2;
        let (mut arrays, expected) = problems(&spec, &program, count);
        let asked = asked(&program, &host.launch(blocks, groups, &arrays, None));
        assert_eq!(asked.len(), groups * LANES, "{name}");
        assert!(asked.iter().all(|asked| asked.mode == Mode::Up.bits()), "{name}: the mode is set");
        // Waves, and the turns of each: threads run one after another, each all of its turns.
        let mut turns: BTreeMap<[usize; 3], Vec<(usize, &Asked)>> = BTreeMap::new();
        let mut turn = 0;
        for (at, one) in asked.iter().enumerate() {
            let same = at > 0 && (asked[at - 1].block, asked[at - 1].thread) == (one.block, one.thread);
            turn = if same { turn + 1 } else { 0 };
            turns.entry([one.block, one.thread / LANES, turn]).or_default().push((at, one));
        }
        assert_eq!(turns.len(), groups, "{name}");
        let length = 4 * program.fragments.d.registers();
        let mut answers = vec![0; asked.len() * length];
        for wave in turns.values() {
            assert!(wave.iter().enumerate().all(|(lane, (_, one))| one.thread % LANES == lane), "{name}");
            let lanes: Vec<&Asked> = wave.iter().map(|(_, one)| *one).collect();
            for ((at, _), registers) in wave.iter().zip(execute(&spec, &program, &lanes)) {
                answers[at * length..][..length].copy_from_slice(&registers);
            }
        }
        arrays[5] = host.launch(blocks, groups, &arrays, Some(&answers));
        let mut d = vec![0; count * spec.m * spec.n * spec.d.bytes];
        program.fragments.d.unpack(&arrays[5], &mut d);
        let d: Vec<u64> = d.chunks(spec.d.bytes).map(little_endian).collect();
        assert!(d == expected, "{name}");
    }
    eprintln!("{} texts, {THREADS} threads a block", texts.len());
    assert!(texts.len() > 30);
}
