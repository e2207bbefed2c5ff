//! Reasoning over sum trees: how many carry bits a sum needs, which inputs tell two models apart, where a
//! larger summand makes the result smaller.

use crate::shapes;
use mmaprobe::catalog::Catalog;
use mmaprobe::device::Device;
use mmaprobe::device::sim::Sim;
use mmaprobe::model::algorithms::{Algorithm, Output, Types};
use mmaprobe::model::format::{BF16, FP16, FP32};
use mmaprobe::model::tree::{Added, Exponents};
use mmaprobe::model::{Model, Rounding};
use mmaprobe::probes::DotAdd;
use mmaprobe::reason::carries::{CarryBits, enough, summand_bits, with_carry_bits};
use mmaprobe::reason::symmetry::{permuted, same_function};
use mmaprobe::reason::{execute, monotony, pairs};

fn published(architecture: &str, instruction: &str) -> Model {
    let sim = Sim::open(architecture, &Catalog::embedded()).expect("it is in the catalogue");
    let instruction = sim.instruction(instruction).expect("it is listed");
    sim.model(&instruction).expect("it is published").clone()
}

fn volta() -> Model {
    published("volta", "mma.m8n8k4.f32.f16.f16.f32")
}

fn ampere() -> Model {
    published("ampere", "mma.m16n8k8.f32.f16.f16.f32")
}

/// The same sum where products are filed under the exponent of their leading one, as Valpey et al. have it.
fn normalised_products(mut model: Model) -> Model {
    for rule in &mut model.tree.rules {
        if let Added::Fused(fused) = &mut rule.added {
            fused.exponents = Exponents::Normalised;
        }
    }
    model
}

fn half(bits: u64) -> f64 {
    let magnitude = match bits >> 10 & 31 {
        0 => (bits & 0x3ff) as f64 * 2f64.powi(-24),
        field => (1024 + (bits & 0x3ff)) as f64 * 2f64.powi(field as i32 - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// The exact sum, which doubles hold for summands of about one size.
fn exact(input: &DotAdd) -> f64 {
    let products: f64 = input.a.iter().zip(&input.b).map(|(&a, &b)| half(a) * half(b)).sum();
    products + f64::from(f32::from_bits(input.c as u32))
}

#[track_caller]
fn needs(model: &Model, carry_bits: u32) {
    let CarryBits::TooFew(witness) = enough(model, carry_bits - 1) else {
        panic!("{} carry bits should be too few", carry_bits - 1)
    };
    // The full sum is the exact one, cut off; what wraps around is far from it.
    let (full, limited) = (f32::from_bits(witness.full as u32), f32::from_bits(witness.limited as u32));
    let sum = exact(&witness.input);
    assert!((f64::from(full) - sum).abs() < sum.abs() * 1e-5, "{full} for {sum}: {witness:x?}");
    assert!((f64::from(limited) - sum).abs() > sum.abs() * 0.5, "{limited} for {sum}: {witness:x?}");
    assert_eq!(witness.full, execute(model, &witness.input));
    let bound = enough(model, carry_bits);
    assert!(matches!(bound, CarryBits::Enough(_)), "{carry_bits} carry bits should be enough: {bound:?}");
}

#[test]
fn volta_and_turing_need_three_carry_bits() {
    for model in [volta(), published("turing", "mma.m8n8k4.f32.f16.f16.f32")] {
        assert_eq!(summand_bits(&model), Some(2));
        needs(&model, 3);
        let model = normalised_products(model);
        assert_eq!(summand_bits(&model), Some(1));
        needs(&model, 3);
    }
}

#[test]
fn amperes_nine_summands_need_four_carry_bits() {
    // What Z3 and cvc5 did not answer in six hours (Valpey et al., Table 4).
    needs(&ampere(), 4);
    needs(&normalised_products(ampere()), 4);
}

#[test]
fn a_bound_says_what_it_bounds() {
    let CarryBits::Enough(bound) = enough(&ampere(), 4) else { panic!("4 carry bits are enough") };
    assert_eq!((bound.integer_bits, bound.summands), (6, 9));
    // 8 · (2 − 2^−10)² + 2 − 2^−23, rounded up.
    let most = 8.0 * (2.0 - 2f64.powi(-10)).powi(2) + 2.0 - 2f64.powi(-23);
    let stated = bound.most as f64 / 2f64.powi(32);
    assert!(stated >= most && stated < most + 1e-6, "{stated} for {most}");
}

#[test]
fn sums_that_are_exact_have_no_carry_bits_and_every_sheet_has_an_answer() {
    assert_eq!(enough(&Model::chain_of_fma(FP32, FP32, 4), 0), CarryBits::NoFusedSum);
    for architecture in ["volta", "ampere", "hopper", "cdna3", "blackwell"] {
        let sim = Sim::open(architecture, &Catalog::embedded()).expect("it is in the catalogue");
        for instruction in sim.instructions() {
            let model = sim.model(instruction).expect("it is published");
            let answer = enough(model, 8);
            let settled = matches!(answer, CarryBits::Enough(_) | CarryBits::NoFusedSum);
            assert!(settled, "{}: {answer:?}", instruction.name);
        }
    }
}

#[test]
fn neighbouring_models_are_told_apart() {
    let types = Types::plain(FP16, FP32, 8);
    let fda = |fraction_bits, output| {
        Algorithm::Fda { fraction_bits, output }.model(&types).expect("it goes with the types")
    };
    for fraction_bits in 10..28 {
        let (one, other) = (fda(fraction_bits, Output::Rz23), fda(fraction_bits + 1, Output::Rz23));
        let found = pairs::difference(&one, &other, 1)
            .unwrap_or_else(|| panic!("F = {fraction_bits} and one more differ"));
        assert_ne!(execute(&one, &found.input), execute(&other, &found.input), "{found:x?}");
    }
    let base = fda(24, Output::Rz23);
    let mut others = vec![fda(24, Output::Rne23), fda(24, Output::Rz13), with_carry_bits(&base, 3, 2)];
    for mode in Rounding::EVERY {
        let mut other = base.clone();
        if let Added::Fused(fused) = &mut other.tree.rules[0].added {
            fused.alignment[0].rounding = mode;
        }
        others.push(other);
    }
    for other in others.iter().filter(|other| **other != base) {
        let found = pairs::difference(&base, other, 1);
        assert!(found.is_some(), "{:?}", other.tree.rules);
    }
}

#[test]
fn what_never_differs_is_not_told_apart() {
    // bf16 factors of one product: F = 70 and F = 64 both hold all that fp32 can show of two summands.
    let types = Types::plain(BF16, FP32, 1);
    let fda = |fraction_bits| {
        let algorithm = Algorithm::Fda { fraction_bits, output: Output::Rz23 };
        algorithm.model(&types).expect("it goes with the types")
    };
    assert_eq!(pairs::difference(&fda(60), &fda(60), 1), None);
}

#[test]
fn the_order_of_alike_summands_is_not_part_of_the_function() {
    let model = volta();
    assert!(same_function(&model, &permuted(&model, &[3, 0, 2, 1])));
    // In a chain it is; and p0 and p1 are not alike where c is added between them.
    let chain = Model::chain_of_fma(FP16, FP32, 4);
    assert!(!same_function(&chain, &permuted(&chain, &[1, 0, 2, 3])));
    for (name, model) in shapes::all() {
        assert!(same_function(&model, &model.canonical()), "{name}");
    }
}

#[test]
fn sums_that_are_not_normalised_are_not_monotonic() {
    for model in [volta(), published("turing", "mma.m8n8k4.f32.f16.f16.f32"), ampere()] {
        let (lower, upper) = monotony::falling(&model).expect("Fasi et al. found one");
        let c = |input: &DotAdd| f32::from_bits(input.c as u32);
        let d = |input: &DotAdd| f32::from_bits(execute(&model, input) as u32);
        assert!(c(&lower) < c(&upper) && (&lower.a, &lower.b) == (&upper.a, &upper.b));
        assert!(d(&lower) > d(&upper));
    }
    assert_eq!(monotony::falling(&Model::chain_of_fma(FP32, FP32, 2)), None);
}
