//! The feature battery on virtual V100, T4 and A100: a test for each finding that Fasi et al. (2021)
//! report, and for Valpey et al.'s (2025) corrections to them; and on machines that compute otherwise, so
//! that no finding is what the battery would say of anything.

use crate::support::Fake;
use mmaprobe::battery::{self, Column, Finding};
use mmaprobe::catalog::Catalog;
use mmaprobe::device::Device;
use mmaprobe::device::sim::Sim;
use mmaprobe::model::format::{FP16, FP32};

/// The instructions of the three GPUs, by the formats that the paper calls their modes by.
const V100: (&str, &str) = ("v100", "mma.m8n8k4.f32.f16.f16.f32");
const V100_FP16: (&str, &str) = ("v100", "mma.m8n8k4.f16.f16.f16.f16");
const T4: (&str, &str) = ("t4", "mma.m8n8k4.f32.f16.f16.f32");
const T4_K8: (&str, &str) = ("t4", "mma.m16n8k8.f32.f16.f16.f32");
const T4_FP16: (&str, &str) = ("t4", "mma.m8n8k4.f16.f16.f16.f16");
const A100: (&str, &str) = ("a100", "mma.m16n8k8.f32.f16.f16.f32");
const A100_FP16: (&str, &str) = ("a100", "mma.m16n8k8.f16.f16.f16.f16");
const A100_BF16: (&str, &str) = ("a100", "mma.m16n8k8.f32.bf16.bf16.f32");
const A100_TF32: (&str, &str) = ("a100", "mma.m16n8k4.f32.tf32.tf32.f32");
const A100_FP64: (&str, &str) = ("a100", "mma.m8n8k4.f64.f64.f64.f64");

/// Modes that add in fp32, of which the paper says the same but for constants.
const FUSED: [(&str, &str); 6] = [V100, T4, T4_K8, A100, A100_BF16, A100_TF32];

fn of(device: &dyn Device, instruction: &str) -> Vec<Finding> {
    let instruction = device.instruction(instruction).expect("the device has it");
    battery::run(device, &instruction).expect("a simulation answers")
}

#[track_caller]
fn findings((gpu, instruction): (&str, &str)) -> Vec<Finding> {
    of(&Sim::open(gpu, &Catalog::embedded()).expect("a GPU of the catalogue"), instruction)
}

#[track_caller]
fn find<'f>(findings: &'f [Finding], experiment: &str) -> &'f Finding {
    findings.iter().find(|finding| finding.experiment == experiment).expect("an experiment of that name")
}

/// An experiment's verdict on each of these.
#[track_caller]
fn says(experiment: &str, instructions: &[(&str, &str)], verdict: &str) {
    for &instruction in instructions {
        let findings = findings(instruction);
        let finding = find(&findings, experiment);
        assert_eq!(finding.verdict, verdict, "{instruction:?}: {finding:#?}");
    }
}

/// An experiment's inputs and results, as pairs.
#[track_caller]
fn cases(experiment: &str, instruction: (&str, &str)) -> Vec<(String, String)> {
    let findings = findings(instruction);
    find(&findings, experiment).cases.iter().map(|case| (case.input.clone(), case.result.clone())).collect()
}

#[track_caller]
fn has_case(experiment: &str, instruction: (&str, &str), input: &str, result: &str) {
    let cases = cases(experiment, instruction);
    assert!(cases.contains(&(input.into(), result.into())), "{instruction:?}: {cases:#?}");
}

#[test]
fn subnormal_factors_are_used() {
    for experiment in ["subnormal-a", "subnormal-b"] {
        says(experiment, &FUSED, "used");
        says(experiment, &[V100_FP16, T4_FP16, A100_FP16, A100_FP64], "used");
    }
    // The paper's input, in both modes.
    has_case("subnormal-a", V100, "a0 = 2^-24, b0 = 4", "2^-22");
    has_case("subnormal-a", V100_FP16, "a0 = 2^-24, b0 = 4", "2^-22");
}

#[test]
fn a_subnormal_c_is_not_altered() {
    says("subnormal-c", &FUSED, "kept");
    says("subnormal-c", &[V100_FP16, A100_FP64], "kept");
    has_case("subnormal-c", V100, "c = 2^-149", "2^-149");
}

#[test]
fn normal_operands_give_subnormal_results() {
    for experiment in ["subnormal-product", "subnormal-sum"] {
        says(experiment, &[V100, V100_FP16, T4, T4_FP16, A100, A100_BF16, A100_TF32, A100_FP64], "delivered");
    }
    has_case("subnormal-product", V100_FP16, "a0 = 2^-14, b0 = 2^-1", "2^-15");
    has_case("subnormal-product", V100, "a0 = 2^-14, b0 = 2^-1", "2^-15");
    // What only bf16 and tf32 can show (section "NVIDIA Ampere tensor cores").
    has_case("subnormal-product", A100_BF16, "a0 = 2^-126, b0 = 2^-1", "2^-127");
}

#[test]
fn subnormal_factors_are_rounded_by_the_unit_itself() {
    says("subnormal-rounding", &[V100, T4, A100], "alike");
    // 2^-23 + 2^-24 beside 2: the unit truncates it, where CUDA cores would round up.
    let first = &cases("subnormal-rounding", V100)[0];
    assert_eq!(first, &("a0 = 1, b0 = 2^-22-2^-24, p1 = 2".into(), "2".into()));
}

#[test]
fn products_are_exact_in_both_modes() {
    says("exact-products", &FUSED, "exact");
    says("exact-products-narrow", &FUSED, "exact");
    says("exact-products-narrow", &[V100_FP16, T4_FP16, A100_FP16], "exact");
    has_case("exact-products-narrow", V100_FP16, "p0 = 0x1.ff8008p-1, p1 = 2^-11-2^-22", "1-2^-11");
    // fp64 products have no room in fp64; that they are fused shows in what c leaves of one.
    says("exact-products", &[A100_FP64], "–");
    says("product-residue", &[A100_FP64], "all of it");
}

#[test]
fn additions_start_from_the_largest_summand() {
    says("rounding-errors", &FUSED, "from the largest");
    // Five cases on a V100, with 2^-24; the next bit to the right on a T4.
    let five = cases("rounding-errors", V100);
    assert_eq!(five.len(), 5);
    assert!(five.iter().all(|(input, result)| input.contains("= 2^-24") && result == "1"), "{five:?}");
    has_case("rounding-errors", T4, "p1 … c = 2^-25, p0 = 1", "1");
    // "the additions are not always performed starting from the largest addend, as was the case with the
    // other modes"
    says("rounding-errors", &[A100_FP64], "by place");
}

#[test]
fn accumulation_rounds_toward_zero() {
    says("rounding-at-two", &FUSED, "toward zero");
    says("rounding-aligned", &FUSED, "RZ");
    says("rounding-aligned", &[V100_FP16, T4_FP16, A100_FP16], "RZ");
    says("rounding-result", &FUSED, "RZ");
    has_case("rounding-at-two", V100, "p0 = 2, p1 = 2^-22-2^-24", "2");
    has_case("rounding-at-two", V100, "p0 = -2, p1 = -2^-22+2^-24", "-2");
}

#[test]
fn fp16_results_are_rounded_to_nearest() {
    says("rounding-subnormal", &[V100_FP16, T4_FP16, A100_FP16], "nearest or away");
    has_case("rounding-subnormal", V100_FP16, "p0 = 2^-25, p1 = 2^-26", "2^-24");
    has_case("rounding-subnormal", V100_FP16, "p0 = -2^-25, p1 = -2^-26", "-2^-24");
    // And which of the nearest, which the paper leaves open.
    says("rounding-result", &[V100_FP16, T4_FP16, A100_FP16], "RNE");
}

#[test]
fn what_is_far_below_is_cut_off_before_the_addition() {
    // Valpey et al., Table 3: rounding toward zero would give 2 − 2^-23.
    has_case("truncation", V100, "p0 = 2, c = -2^-40", "2");
    has_case("truncation", T4, "p0 = 2, c = -2^-41", "2");
    says("truncation", &FUSED, "2");
}

#[test]
fn rounding_toward_zero_proper_is_told_from_truncation() {
    // An FMA in fp64, rounded to fp32 toward zero: what tensor cores were thought to do.
    let fake = Fake::new([1, 1, 1], [FP16, FP16, FP32, FP32], |a, b, c, _| {
        let half = |bits: u64| {
            let magnitude = match bits >> 10 & 31 {
                0 => (bits & 0x3ff) as f64 * 2f64.powi(-24),
                field => (1024 + (bits & 0x3ff)) as f64 * 2f64.powi(field as i32 - 25),
            };
            if bits >> 15 == 1 { -magnitude } else { magnitude }
        };
        let sum = half(a[0]) * half(b[0]) + f64::from(f32::from_bits(c as u32));
        let nearest = sum as f32;
        let is_away = f64::from(nearest).abs() > sum.abs();
        u64::from(if is_away { nearest.to_bits() - 1 } else { nearest.to_bits() })
    });
    let findings = of(&fake, "fake");
    assert_eq!(find(&findings, "truncation").verdict, "below 2", "{findings:#?}");
    assert_eq!(find(&findings, "truncation").cases[0].result, "2-2^-23");
    assert_eq!(find(&findings, "rounding-result").verdict, "RZ");
    assert_eq!(find(&findings, "guard-digits").verdict, "exact");
    assert_eq!(find(&findings, "fma-size").verdict, "1");
}

#[test]
fn a_v100_has_no_guard_digit_and_a_t4_has_one_bit_more() {
    has_case("guard-digits", V100, "p0 = 1, c = -1+2^-24", "2^-23");
    says("guard-digits", &[V100], "none");
    says("guard-digits", &[T4, T4_K8, A100, A100_BF16, A100_TF32], "exact");
    says("extra-bits", &[V100], "0");
    says("extra-bits", &[T4, T4_K8, A100, A100_BF16, A100_TF32], "1");
}

#[test]
fn only_the_final_sum_is_normalised() {
    for experiment in ["normalised-addition", "normalised-subtraction"] {
        says(experiment, &FUSED, "not normalised");
        says(experiment, &[A100_FP64], "normalised");
    }
    has_case("normalised-addition", V100, "p0 … p3 = 2^-24, c = 1-2^-24", "1+2^-23");
    has_case("normalised-subtraction", V100, "p0 = 1, p1 = -2^-24, c = -1+2^-24", "2^-23");
}

#[test]
fn partial_sums_have_carry_bits() {
    says("carry-bits-2", &FUSED, "at least 2");
    let orders = cases("carry-bits-2", V100);
    assert_eq!(orders.len(), 4);
    assert!(orders.iter().all(|(_, result)| result == "4+2^-21"), "{orders:?}");
    has_case("carry-bits-3", V100, "p0 = 1, p1 = 2-2^-1, p2 = 2-2^-2, p3 = c = 2-2^-3", "8");
    says("carry-bits-3", &FUSED, "at least 3");
    // Valpey et al.: three for five summands; and Ampere's nine need four.
    says("carry-bits", &[V100, T4, A100_TF32], "3");
    says("carry-bits", &[T4_K8, A100, A100_BF16], "4");
}

#[test]
fn a_sum_that_overflows_its_carry_bits_is_found() {
    use mmaprobe::device::simulated::Simulated;
    use mmaprobe::reason::carries::with_carry_bits;
    let volta = Sim::open("volta", &Catalog::embedded()).expect("it is in the catalogue");
    let instruction = volta.instruction(V100.1).expect("it is listed");
    let model = volta.model(&instruction).expect("it is known");
    for (carry_bits, three, all) in [
        (3, "at least 3", "3"),
        (2, "at least 3", "3 below 2 only"),
        (1, "overflow", "fewer than 3"),
        (0, "overflow", "fewer than 2"),
    ] {
        // Products are below 4: two integer bits before the carry bits.
        let narrow = with_carry_bits(model, carry_bits, 2);
        let device = Simulated::new(volta.identity().clone(), vec![(instruction.clone(), narrow)])
            .expect("it fits the instruction");
        let findings = of(&device, V100.1);
        assert_eq!(find(&findings, "carry-bits-3").verdict, three, "{carry_bits}");
        assert_eq!(find(&findings, "carry-bits").verdict, all, "{findings:#?}");
    }
}

#[test]
fn dot_products_are_not_monotonic() {
    says("monotonicity", &FUSED, "not monotonic");
    let findings = findings(V100);
    let results: Vec<&str> =
        find(&findings, "monotonicity").cases.iter().map(|case| case.result.as_str()).collect();
    assert_eq!(results, ["1+2^-23", "1"]);
    says("monotonicity", &[A100_FP64], "no violation seen");
}

#[test]
fn fp64_is_a_chain_of_ieee_additions() {
    says("rounding-result", &[A100_FP64], "RNE");
    says("fma-size", &[A100_FP64], "1");
    says("carry-bits", &[A100_FP64], "–");
}

#[test]
fn products_that_are_added_at_once_are_counted() {
    says("fma-size", &[V100, T4, A100_TF32], "4 and c");
    says("fma-size", &[A100, A100_BF16, ("a100", "mma.m16n8k16.f32.f16.f16.f32")], "8 and c");
    says("fma-size", &[("h100", "mma.m16n8k16.f32.f16.f16.f32")], "16 and c");
    says("extra-bits", &[("h100", "mma.m16n8k16.f32.f16.f16.f32")], "2");
}

#[test]
fn units_that_flush_round_down_or_leave_c_out_are_told() {
    let cdna2 = ("cdna2", "v_mfma_f32_16x16x16f16");
    says("subnormal-a", &[cdna2], "flushed");
    says("subnormal-c", &[cdna2], "flushed");
    let cdna3 = ("cdna3", "v_mfma_f32_16x16x16_f16");
    says("subnormal-a", &[cdna3], "used");
    says("rounding-result", &[cdna3], "RNE");
}

#[test]
fn findings_come_as_tables_markdown_and_json() {
    let device = Sim::open("v100", &Catalog::embedded()).expect("it is in the catalogue");
    let columns: Vec<Column> = device
        .instructions()
        .iter()
        .map(|instruction| Column {
            device: "sim:v100".into(),
            instruction: instruction.name.clone(),
            signature: instruction.signature(),
            findings: battery::run(&device, instruction).expect("a simulation answers"),
        })
        .collect();
    for text in [battery::table(&columns[0], 80), battery::compare(&columns, 80)] {
        let widest = text.lines().map(textwrap::core::display_width).max();
        assert!(widest <= Some(80), "{widest:?}\n{text}");
        assert!(text.contains("monotonicity") && text.contains("not monotonic"), "{text}");
    }
    let markdown = battery::markdown(&columns);
    assert!(markdown.contains("| carry-bits-3 | at least 3 | at least 3 |"), "{markdown}");
    let json: serde_json::Value = serde_json::from_str(&battery::json(&columns)).expect("it is JSON");
    let findings = json[0]["findings"].as_array().expect("a list");
    let guard = findings.iter().find(|finding| finding["experiment"] == "guard-digits").expect("it is there");
    assert_eq!(guard["cases"][0]["c"], "0xbf7fffff");
    assert_eq!(guard["cases"][0]["d"], "0x34000000");
}
