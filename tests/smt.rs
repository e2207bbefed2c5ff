//! Models as formulas: the exported text, evaluated by a reader of its own, equals the executor bit for
//! bit; a solver, where there is one, gives the same values and the proofs.

use std::path::Path;
use std::time::Duration;

use crate::shapes;
use crate::smtlib::Script;
use mmaprobe::model::algorithms::{Algorithm, Output, Types};
use mmaprobe::model::format::{BF16, E2M1, E4M3, FP16, FP32, FP64, UE4M3};
use mmaprobe::model::tree::Scale;
use mmaprobe::model::{Executor, Model};
use mmaprobe::probes::random::{self, Distribution};
use mmaprobe::probes::{DotAdd, Signature, infinities, nans, precision, rounding, sparse, subnormals, zeros};
use mmaprobe::reason::{execute, signature};
use mmaprobe::sheet;
use mmaprobe::smt::properties::{Property, variants};
use mmaprobe::smt::query::{Answer, By, Plan, distinguish, evaluate};
use mmaprobe::smt::script;
use mmaprobe::smt::solver::Program;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// Inputs for each model.
const INPUTS: usize = 10_000;

/// Edge cases from the probes, then random inputs of every distribution, until there are enough.
fn inputs(signature: &Signature, count: usize, seed: u64) -> Vec<DotAdd> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let probes = [
        precision::probe(signature),
        subnormals::probe(signature),
        zeros::probe(signature),
        infinities::probe(signature),
        nans::probe(signature),
        rounding::probe(signature, &[13, 23, 24]),
    ];
    let edges: Vec<DotAdd> = probes.into_iter().flatten().flat_map(|probe| probe.dot_adds).collect();
    // Each kind of probe has its share.
    let step = edges.len().div_ceil(count / 3).max(1);
    let mut inputs: Vec<DotAdd> = edges.into_iter().step_by(step).collect();
    while inputs.len() < count {
        let index = inputs.len();
        inputs.push(match index % 3 {
            0 => sparse::dot_add(signature, &mut rng),
            _ => random::dot_add(Distribution::ALL[index % Distribution::ALL.len()], signature, &mut rng),
        });
    }
    inputs
}

/// Compares the exported text with the executor.
#[track_caller]
fn same(name: &str, model: &Model, count: usize) {
    let text = Script::new(&script::export(model, name));
    let mut executor = Executor::new(model).expect("a checked model");
    for input in inputs(&signature(model), count, 7) {
        let values: Vec<u64> = [&input.a[..], &input.b, &[input.c], &input.sa, &input.sb].concat();
        assert_eq!(values.len(), text.variables().len());
        let executed = executor.dot_add(&input.a, &input.b, input.c, &input.sa, &input.sb);
        let encoded = text.value("d", &values);
        assert_eq!(encoded, executed, "{name}: {encoded:#x} instead of {executed:#x} on {input:x?}");
    }
}

/// The nine algorithms, with at most eight products.
fn algorithms() -> Vec<(&'static str, Algorithm, Types)> {
    let rz = Output::Rz23;
    let fdrda = (24, 31, 24);
    let scaled = Types { scale: Some(Scale { format: UE4M3, block: 4 }), ..Types::plain(E2M1, FP32, 8) };
    let to_fp16 = Types { c: FP16, d: FP16, ..Types::plain(FP16, FP32, 8) };
    let (fraction_bits, dot_fraction_bits, c_fraction_bits) = fdrda;
    vec![
        ("SFMA", Algorithm::Sfma, Types::plain(FP32, FP32, 4)),
        ("SFMA fp64", Algorithm::Sfma, Types::plain(FP64, FP64, 4)),
        ("GPS", Algorithm::Gps { group: 4, flushed: true }, Types::plain(FP16, FP32, 8)),
        ("GPS kept", Algorithm::Gps { group: 2, flushed: false }, Types::plain(BF16, FP32, 4)),
        ("FDA", Algorithm::Fda { fraction_bits: 24, output: rz }, Types::plain(FP16, FP32, 8)),
        ("FDA to fp16", Algorithm::Fda { fraction_bits: 23, output: Output::Rne10 }, to_fp16),
        (
            "FDA of fp8",
            Algorithm::Fda { fraction_bits: 13, output: Output::Rz13 },
            Types::plain(E4M3, FP32, 8),
        ),
        ("CoFDA", Algorithm::CoFda { fraction_bits: 24, chain: 2, output: rz }, Types::plain(BF16, FP32, 8)),
        ("GDFS", Algorithm::Gdfs { group: 4, fraction_bits: 35, output: rz }, scaled),
        (
            "FDRDA",
            Algorithm::Fdrda { fraction_bits, dot_fraction_bits, c_fraction_bits },
            Types::plain(FP16, FP32, 8),
        ),
        (
            "CoFDRDA",
            Algorithm::CoFdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, chain: 2 },
            Types::plain(BF16, FP32, 8),
        ),
        (
            "GFDRDA",
            Algorithm::Gfdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, c_rz_below: 25 },
            Types::plain(E4M3, FP32, 8),
        ),
        (
            "CoGFDRDA",
            Algorithm::CoGfdrda {
                fraction_bits,
                dot_fraction_bits,
                c_fraction_bits,
                c_rz_below: 25,
                chain: 2,
            },
            Types::plain(E4M3, FP32, 8),
        ),
    ]
}

#[test]
fn the_nine_algorithms_are_encoded_as_they_are_executed() {
    for (name, algorithm, types) in algorithms() {
        let model = algorithm.model(&types).expect("the algorithm goes with the types");
        same(name, &model, INPUTS);
    }
}

#[test]
fn what_this_cpu_was_found_to_compute_is_encoded_as_it_is_executed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/measured/intel-xeon-6-207.yaml");
    let sheet = sheet::load(&path).expect("the sheet is valid");
    let mut seen: Vec<Model> = Vec::new();
    for entry in &sheet.instructions {
        let Some(arithmetic) = &entry.arithmetic else { continue };
        let model = Model::try_from(arithmetic).expect("the arithmetic is executable");
        if !seen.contains(&model) {
            same(&entry.name, &model, INPUTS);
            seen.push(model);
        }
    }
    assert!(seen.len() > 10, "only {} functions", seen.len());
}

#[test]
fn every_kind_of_rule_is_encoded_as_it_is_executed() {
    for (name, model) in shapes::all() {
        same(name, &model, 300);
    }
}

#[test]
fn a_model_that_differs_in_one_rule_is_told_from_the_encoding() {
    let types = Types::plain(FP16, FP32, 4);
    let of = |fraction_bits| Algorithm::Fda { fraction_bits, output: Output::Rz23 }.model(&types);
    let (model, other) = (of(24).expect("it goes with the types"), of(23).expect("it goes with the types"));
    let text = Script::new(&script::export(&model, "F=24"));
    let differs = |input: &DotAdd| {
        let values: Vec<u64> = [&input.a[..], &input.b, &[input.c]].concat();
        text.value("d", &values) != execute(&other, input)
    };
    assert!(inputs(&signature(&model), 2000, 3).iter().any(differs));
}

#[test]
fn exports_name_the_nodes_as_the_sheet_does() {
    let model = Algorithm::CoFda { fraction_bits: 24, chain: 2, output: Output::Rz23 }
        .model(&Types::plain(FP16, FP32, 4))
        .expect("it goes with the types");
    let text = script::export(&model, "a title");
    assert!(text.starts_with("; a title\n; Products are exact."), "{text}");
    for line in [
        "; s0 = fused(c, p0, p1)",
        "(define-fun p3 () Product (product a3 b3))",
        "(define-fun s0 () Sum-fused (fused c.value p0 p1))",
        "(define-fun d.value () Sum-fused (fused-2 s0 p2 p3))",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
    }
}

/// The solvers that are here; without any, the tests that need one say so.
fn solvers(test: &str) -> Vec<Program> {
    let found: Vec<Program> = Program::ALL.into_iter().filter(|program| program.path().is_some()).collect();
    if found.is_empty() {
        println!("NOT RUN: {test}: no SMT solver is on the PATH (apt-get install z3 cvc5)");
    }
    found
}

fn plan(solver: Program) -> Plan {
    Plan { solver: Some(solver), limit: Duration::from_secs(60), by: By::Solver }
}

#[test]
fn solvers_compute_what_the_executor_does() {
    for solver in solvers("solvers_compute_what_the_executor_does") {
        for (name, algorithm, types) in algorithms() {
            // What is slow in a debug build of nothing: one of each algorithm is enough here.
            if name.contains(' ') {
                continue;
            }
            let model = algorithm.model(&types).expect("the algorithm goes with the types");
            let inputs = inputs(&signature(&model), 12, 11);
            let solved = evaluate(&model, &inputs, &plan(solver)).expect("the solver answers");
            for (input, solved) in inputs.iter().zip(solved) {
                assert_eq!(solved, execute(&model, input), "{solver}, {name}: {input:x?}");
            }
        }
    }
}

#[test]
fn solvers_find_differences_and_prove_that_there_are_none() {
    let types = Types { c: E4M3, d: FP32, ..Types::plain(E2M1, FP32, 1) };
    let of = |fraction_bits| {
        let algorithm = Algorithm::Fda { fraction_bits, output: Output::Rz23 };
        algorithm.model(&types).expect("it goes with the types")
    };
    for solver in solvers("solvers_find_differences_and_prove_that_there_are_none") {
        // e2m1 products and an e4m3 c lie within 20 bits of each other.
        let answer = distinguish(&of(30), &of(40), &plan(solver)).expect("the solver answers");
        assert!(matches!(answer, Answer::Equal { .. }), "{solver}: {answer:?}");
        let answer = distinguish(&of(4), &of(40), &plan(solver)).expect("the solver answers");
        // What is found has been executed on both.
        assert!(matches!(answer, Answer::Differ(_)), "{solver}: {answer:?}");
        for variant in variants(Property::FinalRounding, &of(4)) {
            let answer = distinguish(&of(4), &variant.model, &plan(solver)).expect("the solver answers");
            let exact_in_fp32 = matches!(answer, Answer::Equal { .. });
            assert!(exact_in_fp32, "{solver}, {}: {answer:?}", variant.what);
        }
    }
}
