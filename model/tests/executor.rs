//! The executor on the trees of the nine published algorithms, against the paper's own steps.

mod common;

use common::inputs::{DotAdd, Operands};
use common::paper::{self, Fda, Mode};
use common::rational::{is_encoded, number, round};
use common::spec::{Read, Spec};
use common::{cases, on_two_threads};
use mmaprobe_model::Executor;
use mmaprobe_model::algorithms::{Algorithm, Conventions, Output, Types, chain_of_exact_sums};
use mmaprobe_model::execute::Value;
use mmaprobe_model::format::{self, Format, RoundTo};
use mmaprobe_model::tree::{
    InputInfinities, Model, ModelError, NanRule, NanSource, Node, Operand, Product, Propagation, Scale,
    ZeroTerms,
};
use num_traits::Zero;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The paper's steps make no exception for zeros.
const LITERAL: Conventions = Conventions { zeros: ZeroTerms::Counted, ..Conventions::DEFAULT };

/// What an instruction that does not say which NaN it delivers is compared by: a positive quiet one.
const NAN: u64 = 0x7fc0_0000;

fn model(algorithm: Algorithm, types: Types) -> Model {
    algorithm.model_under(&types, &LITERAL).unwrap()
}

/// Runs a model against a formulation of its own; each algorithm's count is shared by its models.
fn compare(model: &Model, count: u64, expected: impl Fn(&DotAdd) -> u64 + Sync) {
    let spec = |format: &Format| Spec::of(format.name);
    let operands = Operands {
        a: spec(&model.a.format),
        b: spec(&model.b.format),
        c: spec(&model.c.format),
        k: model.k,
        scales: model.scale.map(|scale| (spec(&scale.format), model.k / scale.block)),
    };
    on_two_threads(cases(count), model.k as u64, |cases, seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut executor = Executor::new(model).unwrap();
        let mut x = DotAdd::default();
        for case in 0..cases {
            operands.fill(&mut rng, &mut x);
            let got = executor.dot_add(&x.a, &x.b, x.c, &x.sa, &x.sb);
            let expected = expected(&x);
            assert_eq!(got, expected, "case {case}: {got:#x}, not {expected:#x}, for {x:#x?} in {model:#?}");
        }
    });
}

fn fp16(bits: u64) -> f32 {
    half::f16::from_bits(bits as u16).to_f32()
}

fn bf16(bits: u64) -> f32 {
    half::bf16::from_bits(bits as u16).to_f32()
}

/// 2^e, for the smallest normal numbers.
fn power(e: i32) -> f32 {
    2f32.powi(e)
}

const COUNT: u64 = 100_000;

#[test]
fn sfma() {
    let sfma = |factors, accumulator, k| model(Algorithm::Sfma, Types::plain(factors, accumulator, k));
    let fp64_nan = 0x7ff8_0000_0000_0000;
    for k in [1, 4] {
        compare(&sfma(format::FP64, format::FP64, k), COUNT, |x| paper::sfma_f64(x, fp64_nan));
        compare(&sfma(format::FP32, format::FP32, k), COUNT, |x| {
            paper::sfma_f32(|bits| f32::from_bits(bits as u32), x, NAN)
        });
    }
    compare(&sfma(format::BF16, format::FP32, 8), COUNT, |x| paper::sfma_f32(bf16, x, NAN));
}

#[test]
fn gps() {
    let gps = |factors, k, group| {
        model(Algorithm::Gps { group, flushed: true }, Types::plain(factors, format::FP32, k))
    };
    for (k, group) in [(4, 4), (8, 4), (16, 4), (4, 2), (8, 2)] {
        compare(&gps(format::FP16, k, group), COUNT / 5, |x| paper::gps(fp16, group, power(-14), x, NAN));
        compare(&gps(format::BF16, k, group), COUNT / 5, |x| paper::gps(bf16, group, power(-126), x, NAN));
    }
}

/// Formats and K, F and the output of FDA's instructions.
fn fda_instructions() -> Vec<(Types, u32, Output)> {
    use Output::{Rne10, Rz13, Rz23};
    use format::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, FP16, FP32, TF32};
    let types = |a, b, c, d, k| Types { a, b, c, d, k, scale: None };
    vec![
        (types(FP16, FP16, FP32, FP32, 4), 23, Rz23),
        (types(FP16, FP16, FP32, FP32, 16), 25, Rz23),
        (types(FP16, FP16, FP16, FP16, 8), 24, Rne10),
        (types(FP16, FP16, FP16, FP32, 4), 24, Rz23),
        (types(TF32, TF32, FP32, FP32, 4), 24, Rz23),
        (types(BF16, BF16, FP32, FP32, 16), 25, Rz23),
        (types(E4M3, E5M2, FP32, FP32, 32), 13, Rz13),
        (types(E5M2, E5M2, FP16, FP16, 16), 13, Rne10),
        (types(E3M2, E2M3, FP32, FP32, 32), 25, Rz23),
        (types(E2M1, E4M3, FP16, FP16, 32), 25, Rne10),
    ]
}

fn published(types: &Types, f: u32, output: Output) -> Fda {
    let (d_fraction_bits, d_mode, nan) = match output {
        Output::Rz23 => (23, Mode::Rz, 0x7fff_ffff),
        Output::Rz13 => (13, Mode::Rz, 0x7fff_ffff),
        Output::Rne10 => (10, Mode::Rne, 0x7fff),
        Output::Rne23 => (23, Mode::Rne, 0x7fff_ffff),
    };
    Fda {
        a: Spec::of(types.a.name),
        b: Spec::of(types.b.name),
        c: Spec::of(types.c.name),
        scale: types.scale.map(|scale| Spec::of(scale.format.name)),
        f: f as i32,
        d: Spec::of(types.d.name),
        d_fraction_bits,
        d_mode,
        nan,
    }
}

/// One UE8M0 scale for each 32 products.
fn scaled_types(factors: [Format; 2]) -> Types {
    let [a, b] = factors;
    let scale = Some(Scale { format: format::UE8M0, block: 32 });
    Types { a, b, scale, ..Types::plain(a, format::FP32, 32) }
}

#[test]
fn fda() {
    let check = |types: Types, fraction_bits, output, count| {
        let fda = published(&types, fraction_bits, output);
        let model = model(Algorithm::Fda { fraction_bits, output }, types);
        compare(&model, count, |x| fda.dot_add(x.c, x, 0..types.k));
    };
    for (types, fraction_bits, output) in fda_instructions() {
        check(types, fraction_bits, output, COUNT / 10);
    }
    check(scaled_types([format::E4M3, format::E2M1]), 25, Output::Rz23, COUNT / 5);
}

#[test]
fn cofda() {
    for (types, fraction_bits, output) in fda_instructions() {
        let fda = published(&types, fraction_bits, output);
        let model = model(Algorithm::CoFda { fraction_bits, chain: 2, output }, types);
        compare(&model, COUNT / 10, |x| fda.chain(x));
    }
}

#[test]
fn gdfs() {
    for (format, block) in [(format::UE8M0, 32), (format::UE4M3, 16), (format::UE8M0, 16)] {
        let scale = Some(Scale { format, block });
        let types = Types { scale, ..Types::plain(format::E2M1, format::FP32, 64) };
        let algorithm = Algorithm::Gdfs { group: 16, fraction_bits: 35, output: Output::Rz23 };
        let spec = Spec::of(format.name);
        compare(&model(algorithm, types), COUNT / 3, |x| paper::gdfs(&spec, block, x, 0x7fff_ffff));
    }
}

fn fdrda_and_chain(factors: [Format; 2], k: usize, grouped: bool, links: usize) {
    let [a, b] = factors.map(|format| Spec::of(format.name));
    let (fraction_bits, dot_fraction_bits, c_fraction_bits, c_rz_below) = (24, 31, 24, 25);
    let algorithm = match (grouped, links) {
        (false, 1) => Algorithm::Fdrda { fraction_bits, dot_fraction_bits, c_fraction_bits },
        (false, chain) => Algorithm::CoFdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, chain },
        (true, 1) => Algorithm::Gfdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, c_rz_below },
        (true, chain) => {
            Algorithm::CoGfdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, c_rz_below, chain }
        }
    };
    let types = Types { b: factors[1], ..Types::plain(factors[0], format::FP32, k) };
    compare(&model(algorithm, types), COUNT / 3, |x| match links {
        1 => paper::fdrda([&a, &b], grouped, x.c, x, 0..k, NAN),
        _ => paper::chain_of_fdrda([&a, &b], grouped, x, NAN),
    });
}

#[test]
fn fdrda() {
    for (format, k) in [(format::TF32, 4), (format::FP16, 8), (format::BF16, 8)] {
        fdrda_and_chain([format; 2], k, false, 1);
    }
}

#[test]
fn cofdrda() {
    for (format, k) in [(format::TF32, 8), (format::FP16, 16), (format::BF16, 16)] {
        fdrda_and_chain([format; 2], k, false, 2);
    }
}

/// The published FP8 products are far from overflow; with BF16 factors the early and late checks of
/// special values meet in groups too.
#[test]
fn gfdrda() {
    fdrda_and_chain([format::E4M3FNUZ, format::E5M2FNUZ], 16, true, 1);
    fdrda_and_chain([format::E5M2FNUZ; 2], 16, true, 1);
    fdrda_and_chain([format::BF16; 2], 16, true, 1);
}

#[test]
fn cogfdrda() {
    fdrda_and_chain([format::E4M3FNUZ, format::E5M2FNUZ], 32, true, 2);
    fdrda_and_chain([format::E4M3FNUZ; 2], 32, true, 2);
    fdrda_and_chain([format::BF16; 2], 32, true, 2);
}

/// One node, all K + 1 summands exact, over the full exponent range of fp64.
#[test]
fn exact_sums_of_fp64_products() {
    let fp64 = Spec::of("fp64");
    let to = RoundTo::nearest_even(format::FP64);
    let model = chain_of_exact_sums(&Types::plain(format::FP64, format::FP64, 5), 5).unwrap();
    let operands = Operands { a: fp64, b: fp64, c: fp64, k: 5, scales: None };
    on_two_threads(cases(COUNT), 5, |cases, seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut executor = Executor::new(&model).unwrap();
        let mut x = DotAdd::default();
        for _ in 0..cases {
            operands.fill(&mut rng, &mut x);
            let got = executor.dot_add(&x.a, &x.b, x.c, &[], &[]);
            let mut summands = vec![];
            for (&a, &b) in x.a.iter().zip(&x.b).chain([(&x.c, &1f64.to_bits())]) {
                let (Read::Num { neg: na, s: sa, l: la, .. }, Read::Num { neg: nb, s: sb, l: lb, .. }) =
                    (fp64.read(a), fp64.read(b))
                else {
                    break;
                };
                summands.push((na != nb, number(na != nb, sa as u128 * sb as u128, la + lb)));
            }
            if summands.len() < 6 {
                // Infinities and NaN: doubles get those right whatever the magnitudes.
                let widened: Vec<f64> = x.a.iter().zip(&x.b).map(|(&a, &b)| classes(a, b)).collect();
                let c = classes(x.c, 1f64.to_bits());
                let expected: f64 = widened.iter().sum::<f64>() + c;
                assert!(
                    got == expected.to_bits() || expected.is_nan() && got == 0x7ff8_0000_0000_0000,
                    "{got:#x} {expected} {x:x?}"
                );
                continue;
            }
            let sum = summands.iter().map(|(_, x)| x).sum();
            let all_negative_zeros = summands.iter().all(|(neg, x)| *neg && x.is_zero());
            let expected = round(&sum, all_negative_zeros, &to);
            assert!(is_encoded(&fp64, got, &expected), "{got:#x} {expected:?} {x:x?}");
        }
    });
}

/// A product with every finite factor that is not zero replaced by one: what matters to infinities.
fn classes(a: u64, b: u64) -> f64 {
    let class = |bits| {
        let x = f64::from_bits(bits);
        if x.is_finite() && x != 0.0 { x.signum() } else { x }
    };
    class(a) * class(b)
}

/// Which NaN operand becomes the result, along a chain of two operations.
#[test]
fn nans_are_handed_on() {
    use NanSource::{A, Accumulator, B};
    const QUIET: u64 = 0x40_0000;
    const GENERATED: u64 = 0xffc0_0000;
    let [one, zero, infinity] = [1.0f32, 0.0, f32::INFINITY].map(|x| u64::from(x.to_bits()));
    let nan = |payload: u64| 0x7f80_0000 | payload;
    let run = |rule: Propagation, a: [u64; 2], b: [u64; 2], c: u64| {
        let chain = Model::chain_of_fma(format::FP32, format::FP32, 2);
        let model = Model { nan: NanRule::Propagated(rule), ..chain };
        Executor::new(&model).unwrap().dot_add(&a, &b, c, &[], &[])
    };
    let factors_first = Propagation {
        generated: GENERATED,
        order: [A, B, Accumulator],
        later_first: false,
        quieted: true,
        generated_first: false,
    };
    let sum_first = Propagation { order: [Accumulator, B, A], ..factors_first };
    let raw = Propagation { quieted: false, ..factors_first };

    assert_eq!(run(factors_first, [one; 2], [one; 2], nan(1)), nan(1) | QUIET);
    assert_eq!(run(raw, [one; 2], [one; 2], nan(1)), nan(1));
    assert_eq!(run(factors_first, [nan(2), one], [nan(3), one], nan(1)), nan(2) | QUIET);
    assert_eq!(run(sum_first, [nan(2), one], [nan(3), one], nan(1)), nan(1) | QUIET);
    assert_eq!(run(sum_first, [nan(2), one], [nan(3), one], one), nan(3) | QUIET);
    // What the first operation hands on is the accumulator of the second.
    assert_eq!(run(factors_first, [nan(2), one], [one, nan(3)], one), nan(3) | QUIET);
    assert_eq!(run(sum_first, [nan(2), one], [one, nan(3)], one), nan(2) | QUIET);
    // So is a NaN that it generated.
    assert_eq!(run(factors_first, [zero, one], [infinity, one], one), GENERATED);
    assert_eq!(run(factors_first, [zero, one], [infinity, nan(3)], one), nan(3) | QUIET);
    assert_eq!(run(sum_first, [zero, one], [infinity, nan(3)], one), GENERATED);
    assert_eq!(run(sum_first, [infinity, one], [one, nan(3)], infinity | 1 << 31), GENERATED);
    // Within an operation, a generated NaN has a place of its own.
    assert_eq!(run(sum_first, [zero, one], [infinity, one], nan(1)), nan(1) | QUIET);
    let generated_first = Propagation { generated_first: true, ..sum_first };
    assert_eq!(run(generated_first, [zero, one], [infinity, one], nan(1)), GENERATED);
}

/// Where NaNs meet, their fractions are ORed, and the last one's sign stays.
#[test]
fn nans_are_merged() {
    const GENERATED: u64 = 0xffc0_0000;
    const NEGATIVE: u64 = 1 << 31;
    let [one, zero, infinity] = [1.0f32, 0.0, f32::INFINITY].map(|x| u64::from(x.to_bits()));
    let nan = |payload: u64| 0x7f80_0000 | payload;
    let run = |a: [u64; 2], b: [u64; 2], c: u64| {
        let chain = Model::chain_of_fma(format::FP32, format::FP32, 2);
        let model = Model { nan: NanRule::Merged { generated: GENERATED }, ..chain };
        Executor::new(&model).unwrap().dot_add(&a, &b, c, &[], &[])
    };
    // Quiet or not, as they are; factors first, then summands.
    assert_eq!(run([one; 2], [one; 2], nan(1)), nan(1));
    assert_eq!(run([nan(2), one], [nan(4) | NEGATIVE, one], one), nan(6) | NEGATIVE);
    assert_eq!(run([nan(2) | NEGATIVE, one], [nan(4), one], one), nan(6));
    assert_eq!(run([nan(2), nan(8)], [nan(4), one], nan(1) | NEGATIVE), nan(15));
    assert_eq!(run([nan(2), one], [one, nan(8) | NEGATIVE], one), nan(10) | NEGATIVE);
    // One that an operation generates is among them: as a product in its place, as a sum the last.
    assert_eq!(run([zero, one], [infinity, one], one), GENERATED);
    assert_eq!(run([zero, one], [infinity, one], nan(1)), GENERATED | 1);
    assert_eq!(run([zero, nan(2)], [infinity, one], one), nan(0x40_0002));
    assert_eq!(run([infinity, nan(2)], [one, one], infinity | NEGATIVE), nan(0x40_0002));
}

/// What infinite elements are read as.
#[test]
fn infinities_are_read_as_something_else() {
    let [one, infinity] = [1.0f32, f32::INFINITY].map(|x| u64::from(x.to_bits()));
    const NEGATIVE: u64 = 1 << 31;
    let run = |infinities, a: u64, c: u64| {
        let plain = Model::chain_of_fma(format::FP32, format::FP32, 1);
        let operand = Operand { infinities, ..plain.a };
        let model = Model { a: operand, c: operand, nan: NanRule::Merged { generated: 0 }, ..plain };
        Executor::new(&model).unwrap().dot_add(&[a], &[one], c, &[], &[])
    };
    const QUIET: u64 = 0x7fc0_0000;
    let largest = u64::from(f32::MAX.to_bits());
    assert_eq!(run(InputInfinities::Kept, infinity, 0), infinity);
    assert_eq!(run(InputInfinities::Nan, infinity | NEGATIVE, one), QUIET | NEGATIVE);
    assert_eq!(run(InputInfinities::Nan, one, infinity), QUIET);
    assert_eq!(run(InputInfinities::Largest, infinity | NEGATIVE, 0), largest | NEGATIVE);
    assert_eq!(run(InputInfinities::Largest, infinity, infinity | NEGATIVE), 0);
}

#[test]
fn models_that_cannot_be_executed() {
    let check = |change: fn(&mut Model)| {
        let mut model = Model::chain_of_fma(format::FP32, format::FP32, 2);
        change(&mut model);
        model.check()
    };
    assert_eq!(check(|_| {}), Ok(()));
    assert_eq!(check(|model| model.tree.nodes.clear()), Err(ModelError::Empty));
    assert_eq!(check(|model| model.k = 1), Err(ModelError::NoSuchProduct { node: 3 }));
    assert_eq!(check(|model| model.k = 3), Err(ModelError::NotATree));
    assert_eq!(check(|model| model.tree.rules.clear()), Err(ModelError::NoSuchRule { node: 2 }));
    assert_eq!(check(|model| model.d = format::FP16), Err(ModelError::RootNotRounded));
    assert_eq!(
        check(|model| model.tree.nodes[2] = Node::Sum { children: vec![0, 2], rule: 0 }),
        Err(ModelError::Order { node: 2 })
    );
    assert_eq!(
        check(|model| model.tree.nodes[2] = Node::Sum { children: vec![], rule: 0 }),
        Err(ModelError::EmptySum { node: 2 })
    );
    assert_eq!(
        check(|model| model.tree.rules[0].round_to().unwrap().fraction_bits = 24),
        Err(ModelError::FractionBits { rule: 0 })
    );
    assert_eq!(
        check(|model| {
            let round = RoundTo { fraction_bits: 11, ..RoundTo::nearest_even(format::FP16) };
            model.product = Product::Rounded(round);
        }),
        Err(ModelError::ProductFractionBits)
    );
}

/// Evaluating keeps the value of every node, a scaled node's child too.
#[test]
fn every_node_has_its_value() {
    let algorithm = Algorithm::Fda { fraction_bits: 25, output: Output::Rz23 };
    let model = model(algorithm, scaled_types([format::E4M3; 2]));
    let mut executor = Executor::new(&model).unwrap();
    let ones = [0x38; 32];
    let values = executor.evaluate(&ones, &ones, 0, &[127], &[128]);
    for (node, value) in model.tree.nodes.iter().zip(values) {
        let Value::Finite(number) = value else { panic!("{node:?}: {value:?}") };
        let expected = match node {
            Node::Product(_) => 0,
            Node::Scaled { .. } => 1,
            Node::Sum { .. } => 6,
            _ => continue,
        };
        assert_eq!(number.term.leading_exponent(), Some(expected), "{node:?}");
    }
}
