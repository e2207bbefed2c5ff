//! What papers report of single instructions, one test a finding.
//!
//! Fasi et al. (2021) ran WMMA on a V100, a T4 and an A100 and left all but the first four products at
//! zero; Valpey et al. (2025) ran a Titan V, an RTX 2080 Ti and an RTX A6000.

use mmaprobe_model::algorithms::{Algorithm, Output, Types};
use mmaprobe_model::format::{BF16, Decoded, E4M3FNUZ, E5M2FNUZ, FP16, FP32, FP64, Format, RoundTo, TF32};
use mmaprobe_model::{Executor, Model};

/// An instruction: its first products have the factors that are given, further ones are zero.
struct Unit {
    name: &'static str,
    model: Model,
}

impl Unit {
    fn new(name: &'static str, algorithm: Algorithm, types: &Types) -> Unit {
        Unit { name, model: algorithm.model(types).unwrap() }
    }

    fn bits(&self, a: &[u64], b: &[u64], c: u64) -> u64 {
        let padded = |factors: &[u64]| {
            let mut factors = factors.to_vec();
            factors.resize(self.model.k, 0);
            factors
        };
        Executor::new(&self.model).unwrap().dot_add(&padded(a), &padded(b), c, &[], &[])
    }

    fn run(&self, a: &[f64], b: &[f64], c: f64) -> f64 {
        let encoded =
            |format: Format, xs: &[f64]| xs.iter().map(|&x| encode(format, x)).collect::<Vec<u64>>();
        let (a, b) = (encoded(self.model.a.format, a), encoded(self.model.b.format, b));
        value(self.model.d, self.bits(&a, &b, encode(self.model.c.format, c)))
    }

    /// The sum of c and products with 1.
    fn sum(&self, b: &[f64], c: f64) -> f64 {
        self.run(&vec![1.0; b.len()], b, c)
    }
}

/// A number that the format holds, and no other.
fn encode(format: Format, x: f64) -> u64 {
    let bits = RoundTo::nearest_even(format).convert(&FP64, x.to_bits());
    assert_eq!(value(format, bits), x, "{x:e} in {format}");
    bits
}

fn value(format: Format, bits: u64) -> f64 {
    assert!(matches!(format.decode(bits), Decoded::Finite { .. }), "{bits:#x}");
    f64::from_bits(RoundTo::nearest_even(FP64).convert(&format, bits))
}

/// 2^e.
fn two(e: i32) -> f64 {
    2f64.powi(e)
}

fn fda(name: &'static str, factors: Format, accumulator: Format, k: usize, fraction_bits: u32) -> Unit {
    let output = if accumulator == FP16 { Output::Rne10 } else { Output::Rz23 };
    Unit::new(name, Algorithm::Fda { fraction_bits, output }, &Types::plain(factors, accumulator, k))
}

fn v100(accumulator: Format) -> Unit {
    fda("V100", FP16, accumulator, 4, 23)
}

fn t4(accumulator: Format) -> Unit {
    fda("T4", FP16, accumulator, 4, 24)
}

fn a100(factors: Format, accumulator: Format) -> Unit {
    fda("A100", factors, accumulator, if factors == TF32 { 4 } else { 8 }, 24)
}

fn a100_fp64() -> Unit {
    Unit::new("A100", Algorithm::Sfma, &Types::plain(FP64, FP64, 4))
}

/// Those that accumulate fp16 products in this format.
fn fp16_units(accumulator: Format) -> [Unit; 3] {
    [v100(accumulator), t4(accumulator), a100(FP16, accumulator)]
}

/// "NVIDIA Ampere Tensor Cores": the three formats have "the same numerical behavior" as the T4.
fn with_an_extra_bit() -> [Unit; 4] {
    [t4(FP32), a100(FP16, FP32), a100(BF16, FP32), a100(TF32, FP32)]
}

/// Fasi et al. 2021, "Support for Subnormal Numbers", first question.
#[test]
fn fp16_subnormal_factors_are_not_flushed() {
    for accumulator in [FP16, FP32] {
        for unit in fp16_units(accumulator) {
            assert_eq!(unit.run(&[two(-24)], &[two(2)], 0.0), two(-22), "{}", unit.name);
        }
    }
}

/// Fasi et al. 2021, "Support for Subnormal Numbers", second question: what zeros' exponents cannot be.
#[test]
fn a_subnormal_fp32_c_is_not_altered_by_zero_products() {
    for unit in fp16_units(FP32).into_iter().chain([a100(BF16, FP32), a100(TF32, FP32)]) {
        assert_eq!(unit.run(&[], &[], two(-149)), two(-149), "{}", unit.name);
    }
}

/// Fasi et al. 2021, "Support for Subnormal Numbers", third question.
#[test]
fn subnormal_results_come_from_normal_inputs() {
    for accumulator in [FP16, FP32] {
        for unit in fp16_units(accumulator) {
            assert_eq!(unit.run(&[two(-14)], &[two(-1)], 0.0), two(-15), "{}", unit.name);
            assert_eq!(unit.run(&[two(-14)], &[1.0], -two(-15)), two(-15), "{}", unit.name);
        }
    }
}

/// Fasi et al. 2021, "Support for Subnormal Numbers", last paragraph.
#[test]
fn a_subnormal_factor_is_truncated_not_rounded_to_nearest() {
    for unit in fp16_units(FP32) {
        assert_eq!(unit.run(&[1.0, 1.0], &[two(-23) + two(-24), 2.0], 0.0), 2.0, "{}", unit.name);
    }
}

/// Fasi et al. 2021, "Accuracy of the Dot Products".
#[test]
fn products_are_exact() {
    let x = 1.0 - two(-11);
    for unit in fp16_units(FP32).into_iter().chain([a100(TF32, FP32)]) {
        assert_eq!(unit.run(&[x; 4], &[x; 4], 0.0), 4.0 * (1.0 - two(-10) + two(-22)), "{}", unit.name);
    }
}

/// Fasi et al. 2021, "Accuracy of the Dot Products".
#[test]
fn products_are_exact_with_an_fp16_accumulator() {
    let x = 1.0 - two(-11);
    for unit in fp16_units(FP16) {
        assert_eq!(unit.run(&[x, x], &[x, two(-11)], 0.0), 1.0 - two(-10) + two(-11), "{}", unit.name);
    }
}

/// Five summands, of which the one at `place` is 1 and the others are `small`.
fn one_among(unit: &Unit, small: f64, place: usize) -> f64 {
    // 2^−25 is a product of fp16 numbers, not one of them.
    let (scale, mut b) = (0.5, [2.0 * small; 4]);
    if place < 4 {
        b[place] = 2.0;
    }
    unit.run(&[scale; 4], &b, if place == 4 { 1.0 } else { small })
}

/// Fasi et al. 2021, "Accuracy of the Dot Products": "All permutations return d11 = 1".
#[test]
fn small_summands_vanish_beside_one_wherever_they_stand() {
    for place in 0..5 {
        assert_eq!(one_among(&v100(FP32), two(-24), place), 1.0);
        // "NVIDIA Turing Tensor Cores": "the constant 2^−24 should be replaced by 2^−25".
        for unit in with_an_extra_bit() {
            assert_eq!(one_among(&unit, two(-25), place), 1.0, "{}", unit.name);
        }
    }
}

/// Fasi et al. 2021, "NVIDIA Turing Tensor Cores": "the operation 1 + 2^−24 + 2^−24, for example, can now
/// be performed exactly".
#[test]
fn turing_and_ampere_have_an_extra_alignment_bit() {
    assert_eq!(v100(FP32).sum(&[two(-24), two(-24)], 1.0), 1.0);
    for unit in with_an_extra_bit() {
        assert_eq!(unit.sum(&[two(-24), two(-24)], 1.0), 1.0 + two(-23), "{}", unit.name);
    }
}

/// Fasi et al. 2021, "Rounding Modes in Tensor Core Computations".
#[test]
fn additions_round_toward_zero() {
    for unit in with_an_extra_bit().into_iter().chain([v100(FP32)]) {
        let small = two(-23) + two(-24);
        assert_eq!(unit.sum(&[2.0, small], 0.0), 2.0, "{}", unit.name);
        assert_eq!(unit.sum(&[-2.0, -small], 0.0), -2.0, "{}", unit.name);
    }
}

/// Fasi et al. 2021, "Rounding Modes in Tensor Core Computations", binary16 mode.
#[test]
fn fp16_results_are_rounded_to_nearest() {
    for unit in fp16_units(FP16) {
        assert_eq!(unit.run(&[two(-24); 2], &[two(-1), two(-2)], 0.0), two(-24), "{}", unit.name);
    }
}

/// Fasi et al. 2021, "Extra bits in the alignment of significands".
#[test]
fn volta_has_no_guard_digit() {
    assert_eq!(v100(FP32).sum(&[1.0], -1.0 + two(-24)), two(-23));
    for unit in with_an_extra_bit() {
        assert_eq!(unit.sum(&[1.0], -1.0 + two(-24)), two(-24), "{}", unit.name);
    }
}

/// Fasi et al. 2021, "Normalization in addition" (the value is in "Monotonicity of dot product").
#[test]
fn partial_sums_are_not_normalised_in_addition() {
    for unit in with_an_extra_bit().into_iter().chain([v100(FP32)]) {
        assert_eq!(unit.sum(&[two(-24); 4], 1.0 - two(-24)), 1.0 + two(-23), "{}", unit.name);
    }
}

/// Fasi et al. 2021, "Normalization in subtraction": 2^−23, not 0, and not 2^−24.
#[test]
fn partial_sums_are_not_normalised_in_subtraction() {
    assert_eq!(v100(FP32).sum(&[1.0, -two(-24)], -1.0 + two(-24)), two(-23));
}

/// Fasi et al. 2021, "Extra bits for carry out", first test: 4 + 2^−21 in each of the four orders.
#[test]
fn two_extra_bits_hold_carries() {
    for unit in with_an_extra_bit().into_iter().chain([v100(FP32)]) {
        for place in 0..4 {
            let mut b = [1.0; 4];
            b[place] = two(-23);
            assert_eq!(unit.sum(&b, 1.0 + two(-22) + two(-23)), 4.0 + two(-21), "{}", unit.name);
        }
    }
}

/// Fasi et al. 2021, "Extra bits for carry out", last test.
#[test]
fn a_third_bit_holds_carries() {
    for unit in with_an_extra_bit().into_iter().chain([v100(FP32)]) {
        assert_eq!(unit.sum(&[1.0, 1.5, 1.75, 1.875], 1.875), 8.0, "{}", unit.name);
    }
}

/// Fasi et al. 2021, "Extra bits for carry out": "by replacing one of the 2^−23 by 1" the final rounding
/// is seen to be toward zero; to nearest, 5 + 2^−21 would come out.
#[test]
fn the_final_rounding_is_toward_zero() {
    for unit in with_an_extra_bit().into_iter().chain([v100(FP32)]) {
        assert_eq!(unit.sum(&[1.0; 4], 1.0 + two(-22) + two(-23)), 5.0, "{}", unit.name);
    }
}

/// Fasi et al. 2021, "Monotonicity of dot product".
#[test]
fn a_larger_c_gives_a_smaller_sum() {
    let unit = v100(FP32);
    assert_eq!(unit.sum(&[two(-24); 4], 1.0 - two(-24)), 1.0 + two(-23));
    assert_eq!(unit.sum(&[two(-24); 4], 1.0), 1.0);
}

/// Fasi et al. 2021, "NVIDIA Ampere Tensor Cores", bfloat16 mode.
#[test]
fn bf16_products_of_normal_numbers_can_be_subnormal_in_fp32() {
    let unit = a100(BF16, FP32);
    assert_eq!(unit.run(&[two(-126)], &[two(-1)], 0.0), two(-127));
    // "full support for bfloat16 subnormal input": the smallest one of Table 3.
    assert_eq!(unit.run(&[two(-133)], &[1.0], 0.0), two(-133));
}

/// Fasi et al. 2021, "NVIDIA Ampere Tensor Cores", TensorFloat-32 mode: the smallest number of Table 3.
#[test]
fn tf32_subnormal_numbers_are_not_flushed() {
    assert_eq!(a100(TF32, FP32).run(&[two(-136)], &[1.0], 0.0), two(-136));
}

/// Fasi et al. 2021, "NVIDIA Ampere Tensor Cores", binary64 mode: "round-to-nearest with ties to even is
/// used, and … the normalization is performed after each addition".
#[test]
fn fp64_sums_are_rounded_to_nearest_one_by_one() {
    let unit = a100_fp64();
    assert_eq!(unit.sum(&[two(-53); 4], 1.0), 1.0);
    assert_eq!(unit.sum(&[two(-53)], 1.0 + two(-52)), 1.0 + two(-51));
    assert_eq!(unit.sum(&[two(-53) + two(-60)], 1.0), 1.0 + two(-52));
    assert_eq!(unit.sum(&[-two(-53) - two(-60)], -1.0), -1.0 - two(-52));
}

/// Fasi et al. 2021, "NVIDIA Ampere Tensor Cores", binary64 mode: "the additions in (2) are not always
/// performed starting from the largest addend", and "the monotonicity issue … does not occur".
#[test]
fn fp64_sums_do_not_start_from_the_largest_summand() {
    let unit = a100_fp64();
    assert_eq!(unit.sum(&[two(-53), two(-53), two(-53), 1.0], two(-53)), 1.0 + two(-51));
    assert!(unit.sum(&[two(-53); 4], 1.0 - two(-53)) <= unit.sum(&[two(-53); 4], 1.0));
}

/// Volta, Turing and Ampere, as Valpey et al. have them.
fn valpeys_units() -> [Unit; 3] {
    [
        fda("Titan V", FP16, FP32, 4, 23),
        fda("RTX 2080 Ti", FP16, FP32, 4, 24),
        fda("RTX A6000", FP16, FP32, 8, 24),
    ]
}

/// Valpey et al. 2025, Table 1.
///
/// The table prints the subnormal numbers of fp16 as though they had a hidden one: a and the result in
/// half precision stand for 0.2587890625 · 2^−14 and 0.1767578125 · 2^−14. With them the products are
/// those of the table.
#[test]
fn multiplications_are_performed_with_full_precision() {
    let (a, b) = (0.2587890625 * two(-14), 1.3681640625 * two(-1));
    let exact = 1.416_263_580_322_265_6 * two(-17);
    assert_eq!(a * b, exact);
    for unit in valpeys_units() {
        assert_eq!(unit.run(&[a], &[b], 0.0), exact, "{}", unit.name);
    }
    for unit in fp16_units(FP16) {
        assert_eq!(unit.run(&[a], &[b], 0.0), 0.1767578125 * two(-14), "{}", unit.name);
    }
}

/// Valpey et al. 2025, Table 3: rounded toward zero properly, it would be 2 − 2^−23.
#[test]
fn what_is_shifted_out_is_lost_even_to_the_rounding() {
    for unit in valpeys_units() {
        assert_eq!(unit.run(&[2.0], &[1.0], -two(-40)), 2.0, "{}", unit.name);
    }
}

/// Valpey et al. 2025, Table 5, row M: c goes through the tensor core, and all residuals are zero.
///
/// The walk through the example has the largest exponent −1 and a₁b₁ + a₂b₂ = 1 − 2^−24, so that b₁ is
/// 1.998046875 · 2^7; the table as printed has 2^−7.
#[test]
fn markidis_keeps_what_ootomo_and_yokota_lose() {
    let a = [1.0009765625 * two(-8), 1.326171875 * two(-14), two(-12), two(-12)];
    let b = [1.998046875 * two(7), 1.4443359375 * two(-7), two(-12), two(-12)];
    for unit in valpeys_units() {
        assert_eq!(unit.run(&a, &b, two(-24)), 1.0 + two(-23), "{}", unit.name);
        // Row O-Y: c is added outside, after normalisation.
        assert_eq!(unit.run(&a, &b, 0.0), 1.0, "{}", unit.name);
    }
}

fn cdna3_fp16() -> Unit {
    let algorithm = Algorithm::Fdrda { fraction_bits: 24, dot_fraction_bits: 31, c_fraction_bits: 24 };
    Unit::new("v_mfma_f32_32x32x8_f16", algorithm, &Types::plain(FP16, FP32, 8))
}

fn cdna3_fp8(factors: Format) -> Unit {
    let algorithm =
        Algorithm::Gfdrda { fraction_bits: 24, dot_fraction_bits: 31, c_fraction_bits: 24, c_rz_below: 25 };
    Unit::new("v_mfma_f32_32x32x16_fp8_fp8", algorithm, &Types::plain(factors, FP32, 16))
}

/// The fp32 nearest to the paper's c.
const TINY: f64 = -0.000001f32 as f64;

/// MMA-Sim paper, section VI.C (a).
#[test]
fn cdna3_rounds_a_tiny_c_down() {
    assert_eq!(cdna3_fp16().run(&[2048.0, 2048.0], &[2048.0, -2048.0], TINY), -0.25);
}

/// MMA-Sim paper, section VI.C (a): "using other instructions with RZ or RNE … results in 0.0".
#[test]
fn others_lose_a_tiny_c() {
    for unit in valpeys_units() {
        assert_eq!(unit.run(&[2048.0, 2048.0], &[2048.0, -2048.0], TINY), 0.0, "{}", unit.name);
    }
}

/// MMA-Sim paper, section VI.C (a), turned around: where no product counts, c is what comes out, however
/// small (Fasi et al. 2021 have it for tensor cores).
#[test]
fn zero_products_do_not_touch_a_subnormal_c() {
    for unit in [cdna3_fp16(), cdna3_fp8(E4M3FNUZ)] {
        assert_eq!(unit.run(&[], &[], -two(-149)), -two(-149), "{}", unit.name);
    }
}

/// MMA-Sim paper, section VI.C: the check in GFDRDA's step 8 "avoids the cases above". e5m2fnuz has 2048;
/// e4m3fnuz has numbers up to 240, of which 128 does the same, to fp16 too.
#[test]
fn cdna3_fp8_rounds_a_tiny_c_to_zero() {
    assert_eq!(cdna3_fp8(E5M2FNUZ).run(&[2048.0, 2048.0], &[2048.0, -2048.0], TINY), 0.0);
    assert_eq!(cdna3_fp8(E4M3FNUZ).run(&[128.0, 128.0], &[128.0, -128.0], TINY), 0.0);
    assert_eq!(cdna3_fp16().run(&[128.0, 128.0], &[128.0, -128.0], TINY), -two(-10));
}

/// MMA-Sim paper, section IV.H, step 8: within a distance of 25, c is rounded down there too.
#[test]
fn cdna3_fp8_rounds_a_small_c_down() {
    let unit = cdna3_fp8(E4M3FNUZ);
    assert_eq!(unit.run(&[128.0, 128.0], &[128.0, -128.0], -two(-11)), -two(-10));
    assert_eq!(unit.run(&[128.0, 128.0], &[128.0, -128.0], -two(-12)), 0.0);
}

/// MMA-Sim paper, section IV.C, "TF32 truncation (Step 0) and unexpected implication", and IV.F, step 0.
#[test]
fn a_tf32_nan_of_low_bits_alone_becomes_infinity() {
    let algorithm = Algorithm::Fdrda { fraction_bits: 24, dot_fraction_bits: 31, c_fraction_bits: 24 };
    let cdna3 = Unit::new("v_mfma_f32_32x32x4_xf32", algorithm, &Types::plain(TF32, FP32, 4));
    let one = u64::from(1f32.to_bits());
    for unit in [a100(TF32, FP32), fda("H100", TF32, FP32, 8, 25), cdna3] {
        assert_eq!(unit.bits(&[0x7f80_0001], &[one], 0), 0x7f80_0000, "{}", unit.name);
        assert_eq!(unit.bits(&[0xff80_0001], &[one], 0), 0xff80_0000, "{}", unit.name);
    }
}

/// MMA-Sim paper, section IV.C, step 1.
#[test]
fn nan_results_of_tensor_cores_are_canonical() {
    let (one, infinity, nan) = (0x3c00, 0x7c00, 0xfe01);
    for (accumulator, canonical) in [(FP32, 0x7fff_ffff), (FP16, 0x7fff)] {
        for unit in fp16_units(accumulator) {
            assert_eq!(unit.bits(&[nan], &[one], 0), canonical, "{}", unit.name);
            assert_eq!(unit.bits(&[infinity], &[0], 0), canonical, "{}", unit.name);
            assert_eq!(unit.bits(&[infinity, infinity], &[one, one | 0x8000], 0), canonical, "{}", unit.name);
            let minus_infinity = accumulator.pack(Decoded::Infinite { negative: true });
            assert_eq!(unit.bits(&[infinity], &[one], minus_infinity), canonical, "{}", unit.name);
        }
    }
}
