//! Inference on devices that are plain functions, written straight from a description and without
//! sum trees: vendor pseudo-code, or a few lines of integer arithmetic.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::Fake;
use mmaprobe::device::Device;
use mmaprobe::inference::evidence::Evidence;
use mmaprobe::inference::trust::Distrust;
use mmaprobe::inference::{self, Conclusion, Finding, Options, Silent};
use mmaprobe::model::format::{self, BF16, FP16, FP32, FP64};
use mmaprobe::model::tree::{Added, InputSubnormals, NanRule, Node};
use mmaprobe::model::{Decoded, Executor, Format, Model};

fn characterize(device: &dyn Device) -> Finding {
    let options = Options { validate: 60_000, seed: 11 };
    inference::characterize(device, &device.instructions()[0], &options, &Silent)
        .expect("the device does not fail")
}

/// The model found, which `characterize` has validated against the function.
fn found(device: &dyn Device) -> Model {
    let finding = characterize(device);
    match finding.conclusion {
        Conclusion::Characterized(model) => {
            let (_, outcome) = finding.validation.expect("a model is validated");
            assert!(outcome.mismatch.is_none() && outcome.dot_adds >= 60_000);
            model
        }
        other => panic!("no model was found: {other:?}"),
    }
}

fn bf16(bits: u64) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

/// A subnormal becomes a zero of its sign.
fn flushed(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

/// One step of Intel's pseudo-code: DAZ, FTZ, to nearest even, tininess after rounding.
fn step(x: f32, y: f32, acc: f32) -> f32 {
    let (x, y, acc) = (flushed(x), flushed(y), flushed(acc));
    for operand in [x, y, acc] {
        if operand.is_nan() {
            return f32::from_bits(operand.to_bits() | 0x0040_0000);
        }
    }
    let d = x.mul_add(y, acc);
    if d.is_nan() {
        return f32::from_bits(0xFFC0_0000);
    }
    if d.abs() >= 2.0 * f32::MIN_POSITIVE {
        return d;
    }
    // Tiny after rounding as though the exponent had no lower end: scaled up, nothing is subnormal.
    // A result this small has no large addends, so that the scaled ones do not overflow.
    let (small, large) = if x.abs() < y.abs() { (x, y) } else { (y, x) };
    let scale = 2.0f32.powi(64);
    let scaled = (small * scale).mul_add(large, acc * scale);
    if scaled != 0.0 && scaled.abs() < f32::MIN_POSITIVE * scale { 0.0f32.copysign(scaled) } else { d }
}

/// `tdpbf16ps` as the Intel SDM's pseudo-code has it: even and odd products summed in two chains
/// from zero, the chains added, c added last.
#[test]
fn amx_pseudo_code() {
    let device = Fake::new([2, 2, 32], [BF16, BF16, FP32, FP32], |a, b, c, _| {
        let mut lanes = [0.0f32; 2];
        for k in 0..32 {
            lanes[k % 2] = step(bf16(a[k]), bf16(b[k]), lanes[k % 2]);
        }
        let both = step(1.0, lanes[0], lanes[1]);
        step(1.0, f32::from_bits(c as u32), both).to_bits().into()
    });
    let model = found(&device);
    assert_eq!(model.a.subnormals, InputSubnormals::FlushedToSignedZero);
    assert_eq!(model.c.subnormals, InputSubnormals::FlushedToSignedZero);
    // c and the sum of everything else meet at the root.
    let Some(Node::Sum { children, .. }) = model.tree.nodes.last() else { panic!("the root is a sum") };
    assert_eq!(children.len(), 2);
    assert!(children.iter().any(|&child| model.tree.nodes[child] == Node::Accumulator));
}

#[test]
fn chain_of_fp32_fma() {
    let device = Fake::new([2, 2, 4], [FP32; 4], |a, b, c, _| {
        let mut d = f32::from_bits(c as u32);
        for k in [2, 0, 1, 3] {
            d = f32::from_bits(a[k] as u32).mul_add(f32::from_bits(b[k] as u32), d);
        }
        canonical(d, 0x7FFF_FFFF).into()
    });
    let model = found(&device);
    assert_eq!(model.nan, NanRule::Canonical(0x7FFF_FFFF));
}

#[test]
fn fp64_fma_over_its_whole_range() {
    let device = Fake::new([1, 1, 1], [FP64; 4], |a, b, c, _| {
        let d = f64::from_bits(a[0]).mul_add(f64::from_bits(b[0]), f64::from_bits(c));
        if d.is_nan() { 0x7FF8_0000_0000_0000 } else { d.to_bits() }
    });
    found(&device);
}

fn canonical(d: f32, nan: u32) -> u32 {
    if d.is_nan() { nan } else { d.to_bits() }
}

/// A finite operand as an integer significand, the exponent of its lowest bit and its raw exponent.
fn parts(format: &Format, bits: u64) -> Option<(i128, i32, i32)> {
    match format.decode(bits) {
        Decoded::Finite { negative, significand, exponent } => {
            let signed = if negative { -i128::from(significand) } else { i128::from(significand) };
            Some((signed, exponent - format.fraction_bits as i32, exponent))
        }
        _ => None,
    }
}

/// NaN and infinity rules of the MMA-Sim paper, section IV.C, step 1.
fn special(a_format: &Format, c_format: &Format, a: &[u64], b: &[u64], c: u64) -> Option<f32> {
    let value = |format: &Format, bits: u64| match format.decode(bits) {
        Decoded::Nan { .. } => f32::NAN,
        Decoded::Infinite { negative } => {
            if negative {
                f32::NEG_INFINITY
            } else {
                f32::INFINITY
            }
        }
        Decoded::Finite { negative, significand, .. } => {
            let magnitude = if significand == 0 { 0.0 } else { 1.0 };
            if negative { -magnitude } else { magnitude }
        }
    };
    let mut sum = match value(c_format, c) {
        x if x.is_finite() => 0.0,
        x => x,
    };
    for (&a, &b) in a.iter().zip(b) {
        let product = value(a_format, a) * value(a_format, b);
        if !product.is_finite() {
            sum += product;
        }
    }
    (sum != 0.0).then_some(sum)
}

/// Fused dot-add: aligned to the largest raw exponent, F bits kept, truncated; the result truncated
/// to fp32 (MMA-Sim paper, section IV.C).
fn fused(a_format: Format, f: i32, a: &[u64], b: &[u64], c: u64) -> u64 {
    fused_each(a_format, |_| f, a, b, c)
}

/// The same with so many bits kept of each product, or of c.
fn fused_each(a_format: Format, f: impl Fn(Option<usize>) -> i32, a: &[u64], b: &[u64], c: u64) -> u64 {
    fused_below(a_format, f, 60, a, b, c)
}

/// The same, the sum in two's complement with so many bits above the largest exponent, the sign apart.
fn fused_below(
    a_format: Format,
    f: impl Fn(Option<usize>) -> i32,
    carry: i32,
    a: &[u64],
    b: &[u64],
    c: u64,
) -> u64 {
    if let Some(special) = special(&a_format, &FP32, a, b, c) {
        return canonical(special, 0x7FFF_FFFF).into();
    }
    let mut terms: Vec<(i128, i32, i32)> = vec![parts(&FP32, c).expect("specials are gone")];
    for (&a, &b) in a.iter().zip(b) {
        let (a, b) = (parts(&a_format, a).expect("finite"), parts(&a_format, b).expect("finite"));
        terms.push((a.0 * b.0, a.1 + b.1, a.2 + b.2));
    }
    let Some(largest) = terms.iter().filter(|t| t.0 != 0).map(|t| t.2).max() else {
        // All summands are zero: −0 only from negative zeros alone is not what this unit does.
        return 0;
    };
    // What is kept of each, in units of the last bit that is kept of any.
    let kept = |at: usize| f(at.checked_sub(1));
    let most = (0..terms.len()).map(kept).max().expect("c is one of them");
    let sum: i128 = terms
        .iter()
        .enumerate()
        .map(|(at, &(significand, lsb, _))| {
            let shift = lsb - (largest - kept(at));
            let own = match shift >= 0 {
                true => significand << shift.min(60),
                false => significand / (1i128 << (-shift).min(120)),
            };
            own << (most - kept(at))
        })
        .sum();
    let limit = 1i128 << (most + carry);
    truncated_to_fp32((sum + limit).rem_euclid(2 * limit) - limit, largest - most)
}

fn truncated_to_fp32(sum: i128, quantum: i32) -> u64 {
    let sign = if sum < 0 { 1u64 << 31 } else { 0 };
    let magnitude = sum.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let exponent = (127 - magnitude.leading_zeros() as i32 + quantum).max(-126);
    let shift = exponent - 23 - quantum;
    let significand = if shift >= 0 { magnitude >> shift.min(127) } else { magnitude << -shift } as u64;
    if exponent > 127 {
        return sign | 0x7F80_0000;
    }
    (sign | (((exponent + 126) as u64) << 23)) + significand
}

#[test]
fn fused_sum_of_fp16_products() {
    let device = Fake::new([4, 2, 4], [FP16, FP16, FP32, FP32], |a, b, c, _| fused(FP16, 24, a, b, c));
    found(&device);
}

/// Sums that overflow inside where all summands are large and have one sign, and nowhere else: what is cut off there is no
/// small error.
#[test]
fn a_sum_that_has_too_few_bits_for_carries() {
    for (format, k, carry) in [(format::E4M3, 32, 6), (FP16, 8, 5), (BF16, 2, 3)] {
        let wrapping = Fake::new([2, 2, k], [format, format, FP32, FP32], move |a, b, c, _| {
            fused_below(format, |_| 24, carry, a, b, c)
        });
        let model = found(&wrapping);
        let significand = (2 << format.fraction_bits) - 1;
        let large = vec![format.pack(Decoded::Finite { negative: false, significand, exponent: 0 }); k];
        // As near to 2 as there is.
        let c = 0x3fff_ffff;
        let [wrapped, exact] = [carry, 60].map(|carry| fused_below(format, |_| 24, carry, &large, &large, c));
        assert_ne!(wrapped, exact, "{k} products of {format} overflow");
        let executed =
            |model: &Model| Executor::new(model).expect("it is one").dot_add(&large, &large, c, &[], &[]);
        assert_eq!(executed(&model), wrapped);
        // A unit that has one bit more never lacks one, and is not said to be the same as one with fewer.
        let whole = Fake::new([2, 2, k], [format, format, FP32, FP32], move |a, b, c, _| {
            fused_below(format, |_| 24, carry + 1, a, b, c)
        });
        let finding = characterize(&whole);
        let Conclusion::Characterized(model) = &finding.conclusion else { panic!("no model was found") };
        assert_eq!(executed(model), exact);
        let fewer = finding.inseparable.iter().find(|other| {
            let is_carry = other.knob.what.contains("carry");
            is_carry && (0..=carry).any(|bits| other.choice.starts_with(&format!("{bits}, ")))
        });
        assert_eq!(fewer, None);
    }
}

#[test]
fn chain_of_two_fused_sums() {
    let device = Fake::new([2, 2, 8], [BF16, BF16, FP32, FP32], |a, b, c, _| {
        let half = fused(BF16, 25, &a[..4], &b[..4], c);
        fused(BF16, 25, &a[4..], &b[4..], half)
    });
    found(&device);
}

/// Three sums in a chain, each of a width that no other one has: what one keeps the next may lose.
#[test]
fn chain_of_sums_that_are_all_different() {
    const WIDTHS: [i32; 3] = [13, 30, 24];
    let device = Fake::new([2, 2, 3], [FP16, FP16, FP32, FP32], |a, b, c, _| {
        (0..3).fold(c, |sum, k| fused(FP16, WIDTHS[k], &a[k..=k], &b[k..=k], sum))
    });
    let model = found(&device);
    let mut widths: Vec<i32> = model.tree.nodes.iter().filter_map(|node| sum_width(&model, node)).collect();
    widths.sort_unstable();
    assert_eq!(widths, [13, 24, 30], "{model:?}");
}

/// One sum that keeps fewer bits of two products than of the others: three of its summands look as if two of them were
/// added first.
#[test]
fn a_sum_that_keeps_less_of_some_summands() {
    let device = Fake::new([2, 2, 5], [FP16, FP16, FP32, FP32], |a, b, c, _| {
        let kept = |summand| match summand {
            Some(1) => 16,
            Some(3) => 20,
            _ => 24,
        };
        fused_each(FP16, kept, a, b, c)
    });
    let model = found(&device);
    let sums = model.tree.nodes.iter().filter(|node| matches!(node, Node::Sum { .. }));
    assert_eq!(sums.count(), 1, "{model:?}");
    let Some(Node::Sum { children, rule }) = model.tree.nodes.last() else { panic!("the root is a sum") };
    let Added::Fused(fused) = &model.tree.rules[*rule].added else { panic!("{model:?}") };
    let kept = |k: usize| {
        let place = children.iter().position(|&child| model.tree.nodes[child] == Node::Product(k));
        fused.alignment_of(place.expect("each product is a summand")).fraction_bits
    };
    assert_eq!([0, 1, 2, 3, 4].map(kept), [24, 16, 24, 20, 24], "{model:?}");
}

/// Products of e2m1 are never far apart: no X can be put so far above y that y is lost. The order shows in
/// how c is rounded on its way.
#[test]
fn order_in_formats_with_little_range() {
    const ORDER: [usize; 4] = [0, 2, 1, 3];
    let e2m1 = format::E2M1;
    let device = Fake::new([2, 2, 4], [e2m1, e2m1, FP32, FP32], move |a, b, c, _| {
        let value = |bits: u64| {
            // Sign, two exponent bits of bias 1, one fraction bit.
            let magnitude = [0.0f32, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][(bits & 7) as usize];
            if bits & 8 == 0 { magnitude } else { -magnitude }
        };
        let sum = |sum: f32, k: usize| sum + value(a[k]) * value(b[k]);
        canonical(ORDER.into_iter().fold(f32::from_bits(c as u32), sum), 0x7FFF_FFFF).into()
    });
    let model = found(&device);
    let product = |node: &Node| if let Node::Product(k) = node { Some(*k) } else { None };
    let order: Vec<usize> = model.tree.nodes.iter().filter_map(product).collect();
    assert_eq!(order, ORDER, "{model:?}");
}

/// The fraction bits that a sum keeps of the summands beside the first.
fn sum_width(model: &Model, node: &Node) -> Option<i32> {
    let Node::Sum { rule, .. } = node else { return None };
    let Added::Fused(fused) = &model.tree.rules[*rule].added else { return None };
    Some(fused.alignment_of(1).fraction_bits as i32)
}

#[test]
fn fp8_that_keeps_few_bits() {
    let e4m3 = format::E4M3;
    let device = Fake::new([2, 2, 8], [e4m3, e4m3, FP32, FP32], move |a, b, c, _| {
        let d = fused(e4m3, 13, a, b, c);
        // The result keeps 13 fraction bits (MMA-Sim paper, section IV.C, step 5).
        match FP32.decode(d) {
            Decoded::Finite { .. } => d >> 10 << 10,
            _ => d,
        }
    });
    found(&device);
}

/// Noise in one answer of a few hundred.
#[test]
fn noise_is_called_noise() {
    let calls = AtomicU64::new(0);
    let device = Fake::new([2, 2, 4], [FP16, FP16, FP32, FP32], move |a, b, c, _| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        fused(FP16, 24, a, b, c) ^ u64::from(call % 311 == 310)
    });
    let finding = characterize(&device);
    assert!(matches!(finding.conclusion, Conclusion::Distrusted(_)), "{:?}", finding.conclusion);
}

#[test]
fn position_dependence_is_called_that() {
    let device = Fake::new([2, 2, 4], [FP16, FP16, FP32, FP32], |a, b, c, (_, row, column)| {
        let f = if (row, column) == (1, 1) { 23 } else { 24 };
        fused(FP16, f, a, b, c)
    });
    let finding = characterize(&device);
    assert!(
        matches!(finding.conclusion, Conclusion::Distrusted(Distrust::NotUniform { .. })),
        "{:?}",
        finding.conclusion
    );
}

/// What is asked first in a small batch is asked once more in the first large one.
#[test]
fn what_large_batches_change_is_called_that() {
    let device = Fake::new([2, 2, 4], [FP16, FP16, FP32, FP32], |a, b, c, (problem, ..)| {
        fused(FP16, if problem < 1000 { 24 } else { 23 }, a, b, c)
    });
    let finding = characterize(&device);
    let Conclusion::Distrusted(distrust) = finding.conclusion else {
        panic!("claimed: {:?}", finding.conclusion)
    };
    assert!(
        matches!(distrust, Distrust::NotDeterministic { between: "batches of different sizes", .. }),
        "{distrust:?}"
    );
    assert!(finding.rounds <= 8, "{} rounds", finding.rounds);
}

/// Rounds cost a remote launch each, and devices may be slow.
#[test]
fn an_instruction_with_sixteen_products_costs_few_questions() {
    let device = Fake::new([16, 8, 16], [FP16, FP16, FP32, FP32], |a, b, c, _| fused(FP16, 25, a, b, c));
    let finding = characterize(&device);
    assert!(matches!(finding.conclusion, Conclusion::Characterized(_)), "{:?}", finding.conclusion);
    let (rounds, dot_adds) = (finding.rounds, finding.dot_adds);
    assert!(rounds <= 12 && dot_adds <= 20_000, "{rounds} rounds, {dot_adds} dot-adds");
}

/// Arithmetic outside the grammar must not be claimed to be understood.
#[test]
fn what_no_tree_explains_is_admitted() {
    let device = Fake::new([1, 1, 2], [FP32; 4], |a, b, c, _| {
        let x = |bits: u64| f32::from_bits(bits as u32);
        // The second product is squared.
        let p = x(a[1]) * x(b[1]);
        canonical(x(a[0]).mul_add(x(b[0]), x(c)) + p * p, 0x7FFF_FFFF).into()
    });
    // A sixtieth of what is searched otherwise, where nothing is found in any case.
    let mut evidence = Evidence::with_work(&device, &device.instructions()[0], 50_000_000);
    let options = Options { validate: 60_000, seed: 11 };
    let finding =
        inference::characterize_with(&mut evidence, &options, &Silent).expect("the device does not fail");
    let Conclusion::Unexplained(counterexample) = finding.conclusion else {
        panic!("claimed: {:?}", finding.conclusion)
    };
    assert!(evidence.work().is_spent());
    assert_ne!(counterexample.device, counterexample.model);
}
