//! `simulate`: matrices of any size through one instruction, from NPY files to an NPY file.

use std::path::Path;

use crate::shapes;
use crate::sheets::{identity, instruction, mmaprobe, said, sheet};
use mmaprobe::device::simulated::Simulated;
use mmaprobe::gemm::{Gemm, Misfit, Operands};
use mmaprobe::matrix::Matrix;
use mmaprobe::model::format::{self, BF16, E2M1, FP16, FP32, FP64, TF32, UE4M3};
use mmaprobe::model::{Executor, Format, Model};
use mmaprobe::npy;

/// A matrix of patterns that look random, all of them finite numbers of moderate size.
fn random(format: Format, rows: usize, columns: usize, seed: u64) -> Matrix {
    let mut matrix = Matrix::zeros(format, rows, columns);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let one = 1u64 << (format.fraction_bits + format.ignored_low_bits);
    for row in 0..rows {
        for column in 0..columns {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Exponents from the bias to one above it.
            let magnitude = format.bias as u64 * one + (state >> 11) % (2 * one);
            let sign = if format.signed { state >> 63 } else { 0 };
            let sign = sign << (format.bits() + format.ignored_low_bits - 1);
            matrix.set(row, column, magnitude | sign);
        }
    }
    matrix
}

fn f32_at(matrix: &Matrix, row: usize, column: usize) -> f32 {
    f32::from_bits(matrix.get(row, column) as u32)
}

fn operands<'m>(a: &'m Matrix, b: &'m Matrix, c: Option<&'m Matrix>) -> Operands<'m> {
    Operands { a, b, c, sa: None, sb: None }
}

/// Runs a model as an instruction of this shape.
fn multiply(shape: (usize, usize), model: &Model, operands: Operands, pad_k: bool) -> Matrix {
    let instruction = instruction("x", shape, model);
    let device = Simulated::new(identity(), vec![(instruction.clone(), model.clone())]).unwrap();
    Gemm::new(&instruction, operands, pad_k).unwrap().run(&device, &|_| ()).unwrap()
}

/// What an element of D should be: the model's dot-add along K, step after step.
fn chained(model: &Model, operands: &Operands, row: usize, column: usize) -> u64 {
    let mut executor = Executor::new(model).unwrap();
    let k = model.k;
    let mut sum = operands.c.map_or(0, |c| c.get(row, column));
    for first in (0..operands.a.columns()).step_by(k) {
        let inside = |at: usize| at < operands.a.columns();
        let a: Vec<u64> =
            (first..first + k).map(|at| if inside(at) { operands.a.get(row, at) } else { 0 }).collect();
        let b: Vec<u64> =
            (first..first + k).map(|at| if inside(at) { operands.b.get(at, column) } else { 0 }).collect();
        let blocks = model.scale.map_or(0..0, |scale| first / scale.block..(first + k) / scale.block);
        let sa: Vec<u64> = blocks.clone().map(|at| operands.sa.unwrap().get(row, at)).collect();
        let sb: Vec<u64> = blocks.map(|at| operands.sb.unwrap().get(at, column)).collect();
        sum = executor.dot_add(&a, &b, sum, &sa, &sb);
    }
    sum
}

fn assert_chained(d: &Matrix, model: &Model, operands: &Operands) {
    assert_eq!((d.rows(), d.columns()), (operands.a.rows(), operands.b.columns()));
    for row in 0..d.rows() {
        for column in 0..d.columns() {
            assert_eq!(d.get(row, column), chained(model, operands, row, column), "d[{row}][{column}]");
        }
    }
}

#[test]
fn tiles_of_a_chain_of_fmas_are_a_long_chain_of_fmas() {
    let model = Model::chain_of_fma(FP32, FP32, 3);
    for (m, n, k) in [(2, 4, 3), (1, 1, 3), (2, 4, 12), (5, 9, 6), (70, 33, 9), (200, 101, 6)] {
        let (a, b) = (random(FP32, m, k, 1), random(FP32, k, n, 2));
        let c = random(FP32, m, n, 3);
        for c in [None, Some(&c)] {
            let d = multiply((2, 4), &model, operands(&a, &b, c), false);
            for i in 0..m {
                for j in 0..n {
                    let start = c.map_or(0.0, |c| f32_at(c, i, j));
                    let expected =
                        (0..k).fold(start, |sum, l| f32_at(&a, i, l).mul_add(f32_at(&b, l, j), sum));
                    assert_eq!(f32_at(&d, i, j).to_bits(), expected.to_bits());
                }
            }
        }
    }
}

#[test]
fn an_instruction_larger_than_the_matrices_computes_their_part() {
    let model = shapes::flat(8);
    let (a, b) = (random(BF16, 3, 8, 1), random(BF16, 8, 5, 2));
    let operands = operands(&a, &b, None);
    assert_chained(&multiply((64, 128), &model, operands, false), &model, &operands);
}

#[test]
fn steps_along_k_are_those_of_the_instruction() {
    // Fused sums of 8: not what one of 24 gives.
    let model = shapes::flat(8);
    let (a, b, c) = (random(BF16, 9, 24, 1), random(BF16, 24, 7, 2), random(FP32, 9, 7, 3));
    let operands = operands(&a, &b, Some(&c));
    let d = multiply((4, 2), &model, operands, false);
    assert_chained(&d, &model, &operands);
    assert_ne!(d, multiply((4, 2), &shapes::flat(24), operands, false));
}

#[test]
fn scales_go_with_their_blocks() {
    let model = shapes::scaled(32, 16);
    let (a, b) = (random(E2M1, 5, 96, 1), random(E2M1, 96, 7, 2));
    let (sa, sb) = (random(UE4M3, 5, 6, 3), random(UE4M3, 6, 7, 4));
    let operands = Operands { sa: Some(&sa), sb: Some(&sb), ..operands(&a, &b, None) };
    assert_chained(&multiply((2, 3), &model, operands, false), &model, &operands);
}

#[test]
fn k_is_padded_only_when_asked() {
    let model = shapes::flat(8);
    let (a, b) = (random(BF16, 3, 19, 1), random(BF16, 19, 3, 2));
    let operands = operands(&a, &b, None);
    let x = instruction("x", (2, 2), &model);
    let refused = Gemm::new(&x, operands, false).unwrap_err();
    assert_eq!(refused, Misfit::Remainder { k: 19, step: 8, instruction: "x".into() });
    assert_chained(&multiply((2, 2), &model, operands, true), &model, &operands);
    // Scales of blocks beyond K are 1, and a block may be cut.
    let model = shapes::scaled(32, 16);
    let (a, b) = (random(E2M1, 3, 40, 1), random(E2M1, 40, 3, 2));
    let (sa, sb) = (random(UE4M3, 3, 3, 3), random(UE4M3, 3, 3, 4));
    let d = multiply((2, 2), &model, Operands { a: &a, b: &b, c: None, sa: Some(&sa), sb: Some(&sb) }, true);
    let widened = |scales: &Matrix, wide: &mut Matrix| {
        for i in 0..3 {
            for j in 0..3 {
                wide.set(i, j, scales.get(i, j));
            }
        }
    };
    let (mut wide_a, mut wide_b) = (Matrix::zeros(UE4M3, 3, 4), Matrix::zeros(UE4M3, 4, 3));
    for i in 0..3 {
        wide_a.set(i, 3, 0x38);
        wide_b.set(3, i, 0x38);
    }
    widened(&sa, &mut wide_a);
    widened(&sb, &mut wide_b);
    let wide = Operands { a: &a, b: &b, c: None, sa: Some(&wide_a), sb: Some(&wide_b) };
    assert_chained(&d, &model, &wide);
}

#[test]
fn what_does_not_fit_is_said() {
    let model = shapes::flat(8);
    let x = instruction("x", (2, 2), &model);
    let zeros = Matrix::zeros;
    let (a, b) = (zeros(BF16, 3, 16), zeros(BF16, 16, 5));
    let misfit = |operands: Operands| Gemm::new(&x, operands, false).unwrap_err().to_string();
    assert_eq!(
        misfit(operands(&a, &a, None)),
        "A has 16 columns and B 3 rows; both should be K (A is M×K, B is K×N)"
    );
    assert_eq!(misfit(operands(&a, &b, Some(&zeros(FP32, 5, 3)))), "C should be M×N = 3×5, and is 5×3");
    assert_eq!(misfit(operands(&zeros(FP16, 3, 16), &b, None)), "A should hold bf16, and holds fp16");
    assert_eq!(misfit(operands(&zeros(BF16, 0, 16), &b, None)), "A is empty (0×16)");
    let scales = zeros(UE4M3, 3, 1);
    assert_eq!(
        misfit(Operands { sb: Some(&scales), ..operands(&a, &b, None) }),
        "SB has no use: x takes no block scales"
    );
    let halves = mmaprobe::device::Instruction { c: FP16, ..x.clone() };
    assert_eq!(
        Gemm::new(&halves, operands(&a, &b, None), false).unwrap_err().to_string(),
        "K = 16 takes several steps of x, whose K is 8, but its D (fp32) cannot be the next step's C (fp16); \
         use matrices with K ≤ 8"
    );
    let scaled = instruction("s", (2, 2), &shapes::scaled(32, 16));
    let (a, b) = (zeros(E2M1, 3, 64), zeros(E2M1, 64, 5));
    let misfit = |operands: Operands| Gemm::new(&scaled, operands, false).unwrap_err().to_string();
    assert_eq!(misfit(operands(&a, &b, None)), "SA is missing: s takes a ue4m3 scale for each 16 products");
    let (sa, sb) = (zeros(UE4M3, 3, 4), zeros(UE4M3, 5, 4));
    assert_eq!(
        misfit(Operands { sa: Some(&sa), sb: Some(&sb), ..operands(&a, &b, None) }),
        "SB should be (K / 16)×N = 4×5, and is 5×4"
    );
}

/// A folder with a sheet of one instruction `x`, and A and B of 6×8 by 8×5 in its formats.
fn folder(model: &Model) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    sheet(folder.path(), &[(instruction("x", (4, 2), model), model.clone())]);
    save(folder.path(), "a.npy", &random(model.a.format, 6, 8, 1));
    save(folder.path(), "b.npy", &random(model.b.format, 8, 5, 2));
    folder
}

fn save(folder: &Path, name: &str, matrix: &Matrix) {
    std::fs::write(folder.join(name), npy::write(matrix)).unwrap();
}

fn simulate(folder: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let common =
        ["simulate", "--device", "sheet:sheet.yaml", "--instruction", "x", "--a", "a.npy", "--b", "b.npy"];
    said(&mmaprobe(folder, &[&common, more].concat()))
}

#[test]
fn every_format_goes_from_file_to_file() {
    for (factors, sums, dtype) in [
        (FP64, FP64, "'<f8'"),
        (FP32, FP32, "'<f4'"),
        (TF32, FP32, "'<f4'"),
        (FP16, FP16, "'<f2'"),
        (BF16, FP32, "'<f4'"),
        (BF16, BF16, "'<u2'"),
        (format::E4M3, FP32, "'<f4'"),
        (format::E5M2, FP16, "'<f2'"),
        (format::E4M3FNUZ, FP32, "'<f4'"),
        (format::E3M2, FP32, "'<f4'"),
        (E2M1, FP32, "'<f4'"),
    ] {
        let model = Model::chain_of_fma(factors, sums, 4);
        let folder = folder(&model);
        let c = random(sums, 6, 5, 3);
        save(folder.path(), "c.npy", &c);
        let (code, out, err) = simulate(folder.path(), &["--c", "c.npy", "-o", "d.npy"]);
        assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
        assert!(err.contains(&format!("d.npy: 6×5 {}; 2×3 tiles, 2 × x each", sums.name)), "{err}");
        let file = std::fs::read(folder.path().join("d.npy")).unwrap();
        assert!(String::from_utf8_lossy(&file[..64]).contains(dtype));
        let d = npy::Array::parse(&file).unwrap().into_matrix(&sums).unwrap();
        let (a, b) = (random(factors, 6, 8, 1), random(factors, 8, 5, 2));
        assert_chained(&d, &model, &operands(&a, &b, Some(&c)));
    }
}

#[test]
fn the_file_is_the_same_for_any_number_of_threads() {
    let model = shapes::flat(8);
    let folder = folder(&model);
    save(folder.path(), "a.npy", &random(BF16, 150, 16, 1));
    save(folder.path(), "b.npy", &random(BF16, 16, 90, 2));
    for threads in ["1", "2", "3"] {
        assert_eq!(simulate(folder.path(), &["--threads", threads, "-o", threads]).0, Some(0));
    }
    let read = |name| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("1") == read("2") && read("2") == read("3"));
}

#[test]
fn an_existing_file_is_replaced_only_by_force() {
    let folder = folder(&shapes::flat(8));
    let d = folder.path().join("d.npy");
    std::fs::write(&d, "precious").unwrap();
    let (code, _, err) = simulate(folder.path(), &["-o", "d.npy"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("cannot write d.npy: it exists already; --force replaces it"), "{err}");
    assert_eq!(std::fs::read(&d).unwrap(), b"precious");
    assert_eq!(simulate(folder.path(), &["-o", "d.npy", "--force"]).0, Some(0));
    assert!(std::fs::read(&d).unwrap().starts_with(b"\x93NUMPY"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&d), mode(&folder.path().join("a.npy")));
        // A device file is written to, not replaced.
        assert_eq!(simulate(folder.path(), &["-o", "/dev/null", "--force"]).0, Some(0));
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }
    let (code, _, err) = simulate(folder.path(), &["-o", "nowhere/d.npy"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("cannot write nowhere/d.npy: No such file"), "{err}");
}

#[test]
fn bad_input_is_refused_and_leaves_no_file() {
    let model = shapes::flat(8);
    let folder = folder(&model);
    save(folder.path(), "wide.npy", &Matrix::zeros(FP32, 8, 5));
    save(folder.path(), "tall.npy", &Matrix::zeros(BF16, 9, 5));
    save(folder.path(), "a9.npy", &Matrix::zeros(BF16, 6, 9));
    std::fs::write(folder.path().join("text.npy"), "1 2 3").unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let before = files();
    for (more, message) in [
        (
            &["--b", "wide.npy"][..],
            "B, wide.npy: expected ml_dtypes.bfloat16 (or uint16 bit patterns) for bf16, found float32",
        ),
        (&["--b", "tall.npy"], "A has 8 columns and B 9 rows"),
        (&["--b", "text.npy"], "B, text.npy: not an NPY file"),
        (&["--b", "none.npy"], "B, none.npy: No such file"),
        (&["--c", "wide.npy"], "C should be M×N = 6×5, and is 8×5"),
        (&["--a", "a9.npy", "--b", "tall.npy"], "K = 9 is no multiple of 8, the K of x"),
        (&["--sa", "a.npy"], "SA has no use"),
        (&["--instruction", "y"], "sheet:sheet.yaml has no instruction 'y'"),
    ] {
        // Given twice, an option is refused: leave out what the case replaces.
        let common = [("--a", "a.npy"), ("--b", "b.npy"), ("--instruction", "x")];
        let common = common.iter().filter(|(name, _)| !more.contains(name)).flat_map(|&(x, y)| [x, y]);
        let arguments: Vec<&str> = ["simulate", "--device", "sheet:sheet.yaml", "-o", "d.npy"]
            .into_iter()
            .chain(common)
            .chain(more.iter().copied())
            .collect();
        let (code, out, err) = said(&mmaprobe(folder.path(), &arguments));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.contains(message), "{err}");
    }
    assert_eq!(files(), before);
}

#[test]
fn a_device_that_fails_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    // It describes itself, and ends at the first question.
    let device = "import sys; sys.stdin.buffer.readline(); print('{\"protocol\":1,\"name\":\"x\",\"instructions\":[{\"name\":\"x\",\"m\":1,\"n\":1,\"k\":1,\"a\":\"fp32\",\"b\":\"fp32\",\"c\":\"fp32\",\"d\":\"fp32\"}]}', flush=True); sys.stdin.buffer.readline()";
    std::fs::write(folder.path().join("device.py"), device).unwrap();
    save(folder.path(), "a.npy", &Matrix::zeros(FP32, 1, 1));
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    let (code, _, err) = said(&mmaprobe(
        folder.path(),
        &[
            "simulate",
            "--device",
            "exec:python3 device.py",
            "--instruction",
            "x",
            "--a",
            "a.npy",
            "--b",
            "a.npy",
            "-o",
            "d.npy",
        ],
    ));
    assert_eq!(code, Some(3), "{err}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before);
}

/// What numpy and ml_dtypes write and compute themselves, with small integers, whose sums are exact
/// in any order.
const NUMPY: &str = r#"
import subprocess, sys
import numpy as np
import ml_dtypes as ml

tool, instructions = sys.argv[1], sys.argv[2].split()
rng = np.random.default_rng(7)
for name in instructions:
    dtype = np.dtype(getattr(ml, name, None) or name)
    a = rng.integers(-2, 3, (7, 8)).astype(np.float32).astype(dtype)
    b = rng.integers(-2, 3, (8, 9)).astype(np.float32).astype(dtype)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.save("b.npy", np.asfortranarray(b))
    unsigned = f"u{dtype.itemsize}"
    forms = [a, a.view(unsigned), np.asfortranarray(a)]
    if dtype.kind == "f" and dtype.itemsize > 1:
        forms.append(a.astype(dtype.newbyteorder(">")))
    for form in forms:
        np.save("a.npy", form)
        subprocess.run([tool, "simulate", "--device", "sheet:sheet.yaml", "--instruction", name, "--a", "a.npy",
                        "--b", "b.npy", "-o", "d.npy", "--force"], check=True, stderr=subprocess.DEVNULL)
        d = np.load("d.npy")
        assert d.dtype == np.float32, d.dtype
        assert (d == exact).all(), (name, form.dtype, d, exact)
"#;

#[test]
fn numpy_and_ml_dtypes_agree() {
    // MMAPROBE_PYTHON names a Python that has numpy and ml_dtypes, where python3 has not.
    let python = std::env::var("MMAPROBE_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = std::process::Command::new(&python).args(["-c", "import numpy, ml_dtypes"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        eprintln!("not run: {python} has no numpy and ml_dtypes (MMAPROBE_PYTHON can name one that has)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let formats = [
        ("float32", FP32),
        ("float16", FP16),
        ("bfloat16", BF16),
        ("float8_e5m2", format::E5M2),
        ("float8_e4m3fn", format::E4M3),
        ("float8_e5m2fnuz", format::E5M2FNUZ),
        ("float8_e4m3fnuz", format::E4M3FNUZ),
        ("float6_e3m2fn", format::E3M2),
        ("float6_e2m3fn", format::E2M3),
        ("float4_e2m1fn", E2M1),
    ];
    let instructions: Vec<_> = formats
        .map(|(name, format)| {
            let model = Model::chain_of_fma(format, FP32, 4);
            (instruction(name, (4, 4), &model), model)
        })
        .into();
    sheet(folder.path(), &instructions);
    let output = std::process::Command::new(python)
        .args(["-c", NUMPY, env!("CARGO_BIN_EXE_mmaprobe"), &formats.map(|(name, _)| name).join(" ")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
