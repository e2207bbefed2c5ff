//! The processor's own instructions, where it has them. A test whose instruction is absent says so.
#![cfg(target_arch = "x86_64")]

use std::arch::asm;

use half::{bf16, f16};
use mmaprobe_kernels::cpu::repeat::dependent_adds;
use mmaprobe_kernels::cpu::{Mode, Problems, Processor, Unit};
use mmaprobe_model::{Executor, Model, Rounding, format};

/// The instruction, or `None` and a message.
fn unit(name: &str) -> Option<Unit> {
    let processor = Processor::detect();
    let unit = processor.unit(name).copied();
    if unit.is_none() {
        let reason = processor.absent.iter().find(|(absent, _)| *absent == name);
        eprintln!("NOT RUN: {name}: {}", reason.expect("present or absent").1);
    }
    unit
}

/// Elements that can be laid out as the arrays of [`Problems`].
trait Element: Copy + Default {
    fn bytes(self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($type:ty),*) => {$(
        impl Element for $type {
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )*};
}
elements!(u16, f16, bf16, f32, f64);

fn laid_out<T: Element>(elements: &[T]) -> Vec<u8> {
    elements.iter().flat_map(|element| element.bytes()).collect()
}

fn run<F: Element, A: Element>(unit: &Unit, a: &[F], b: &[F], c: &[A], mode: Mode) -> Vec<A> {
    let count = c.len() / (unit.shape().m * unit.shape().n);
    let (a, b, c) = (laid_out(a), laid_out(b), laid_out(c));
    let mut d = vec![0xAA; c.len()];
    unit.run(Problems { count, a: &a, b: &b, c: &c }, &mut d, mode);
    d.chunks_exact(size_of::<A>()).map(A::from_bytes).collect()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// Any finite number, its exponent often in the middle so that products and sums stay finite.
    fn finite_f32(&mut self) -> f32 {
        loop {
            let bits = self.next() as u32;
            let near = bits & 0x807F_FFFF | (0x60 + (bits >> 23 & 0x3F)) << 23;
            let number = f32::from_bits(if self.next().is_multiple_of(4) { bits } else { near });
            if number.is_finite() {
                return number;
            }
        }
    }

    fn finite_f64(&mut self) -> f64 {
        loop {
            let bits = self.next();
            let near = bits & 0x800F_FFFF_FFFF_FFFF | (0x3C0 + (bits >> 52 & 0x7F)) << 52;
            let number = f64::from_bits(if self.next().is_multiple_of(4) { bits } else { near });
            if number.is_finite() {
                return number;
            }
        }
    }

    fn many<T>(&mut self, count: usize, mut draw: impl FnMut(&mut Random) -> T) -> Vec<T> {
        (0..count).map(|_| draw(self)).collect()
    }
}

const MANY: usize = 200_003;

#[test]
fn vfmadd231ps_is_the_fused_multiply_add() {
    let Some(unit) = unit("vfmadd231ps") else { return };
    let mut random = Random(1);
    let [a, b, c] = [(); 3].map(|()| random.many(MANY, Random::finite_f32));
    for (i, d) in run(&unit, &a, &b, &c, Mode::Default).into_iter().enumerate() {
        let expected = a[i].mul_add(b[i], c[i]);
        assert!(
            d.to_bits() == expected.to_bits() || d.is_nan() && expected.is_nan(),
            "{:?} * {:?} + {:?}: {d:?} instead of {expected:?}",
            a[i],
            b[i],
            c[i]
        );
    }
}

#[test]
fn vfmadd231pd_is_the_fused_multiply_add() {
    let Some(unit) = unit("vfmadd231pd") else { return };
    let mut random = Random(2);
    let [a, b, c] = [(); 3].map(|()| random.many(MANY, Random::finite_f64));
    for (i, d) in run(&unit, &a, &b, &c, Mode::Default).into_iter().enumerate() {
        let expected = a[i].mul_add(b[i], c[i]);
        assert!(
            d.to_bits() == expected.to_bits() || d.is_nan() && expected.is_nan(),
            "{:?} * {:?} + {:?}: {d:?} instead of {expected:?}",
            a[i],
            b[i],
            c[i]
        );
    }
}

#[test]
fn operands_have_their_roles() {
    let Some(unit) = unit("vfmadd231ps") else { return };
    // C is what is added; and of two NaN factors A comes first, as src2 does in the SDM's rules.
    assert_eq!(run(&unit, &[2.0f32], &[3.0], &[100.0f32], Mode::Default), [106.0]);
    let [first, second] = [0x7FC0_0001, 0x7FC0_0002].map(f32::from_bits);
    let d = run(&unit, &[first], &[second], &[1.0f32], Mode::Default);
    assert_eq!(d[0].to_bits(), first.to_bits());
}

#[test]
fn rounding_control_brackets_the_exact_result() {
    let Some(unit) = unit("vfmadd231ps") else { return };
    let mut random = Random(3);
    let [a, b, c] = [(); 3].map(|()| random.many(MANY, Random::finite_f32));
    let [nearest, down, up, zero] = [Mode::Default, Mode::RoundDown, Mode::RoundUp, Mode::RoundTowardZero]
        .map(|mode| run(&unit, &a, &b, &c, mode));
    let mut inexact = 0;
    for i in 0..MANY {
        if !nearest[i].is_finite() || !down[i].is_finite() || !up[i].is_finite() {
            continue;
        }
        // An exact zero sum is −0 when rounding down; == takes both zeros for equal.
        if down[i] == up[i] {
            assert!(nearest[i] == up[i] && zero[i] == up[i]);
        } else {
            inexact += 1;
            assert_eq!(down[i].next_up(), up[i]);
            assert!(nearest[i] == down[i] || nearest[i] == up[i]);
            assert_eq!(zero[i], if up[i] > 0.0 { down[i] } else { up[i] });
        }
    }
    assert!(inexact > MANY / 4, "only {inexact} inexact sums");
}

#[test]
fn ftz_flushes_results_and_daz_operands() {
    let Some(unit) = unit("vfmadd231ps") else { return };
    let tiny = f32::MIN_POSITIVE;
    let subnormal = f32::from_bits(12345);
    // A normal product that is subnormal; a subnormal addend with a normal result; a subnormal factor.
    let (a, b, c) = ([tiny, 1.0, subnormal], [0.5, tiny, 1.0e20], [0.0, subnormal, 1.0e-30]);
    let exact = [tiny / 2.0, tiny + subnormal, subnormal.mul_add(1.0e20, 1.0e-30)];
    assert_eq!(run(&unit, &a, &b, &c, Mode::Default), exact);
    assert_eq!(run(&unit, &a, &b, &c, Mode::FlushToZero), [0.0, exact[1], exact[2]]);
    assert_eq!(run(&unit, &a, &b, &c, Mode::DenormalsAreZero), [exact[0], tiny, 1.0e-30]);
}

#[test]
fn vfmadd231ph_is_the_fused_multiply_add() {
    let Some(unit) = unit("vfmadd231ph") else { return };
    let mut random = Random(4);
    let finite = |random: &mut Random| loop {
        let number = f16::from_bits(random.next() as u16);
        if number.is_finite() {
            return number;
        }
    };
    let [a, b, c] = [(); 3].map(|()| random.many(MANY, finite));
    let model = Model::chain_of_fma(format::FP16, format::FP16, 1);
    let mut executor = Executor::new(&model).unwrap();
    let mut compared = 0;
    for (i, d) in run(&unit, &a, &b, &c, Mode::Default).into_iter().enumerate() {
        // The product is exact in fp64. Where the sum is exact in fp32, the conversion to fp16 is the
        // only rounding (`half` goes through fp32 on some machines).
        let product = a[i].to_f64() * b[i].to_f64();
        let sum = product + c[i].to_f64();
        let exact = sum - product == c[i].to_f64() && sum - c[i].to_f64() == product;
        if exact && f64::from(sum as f32) == sum {
            compared += 1;
            let expected = f16::from_f32(sum as f32);
            assert_eq!(d.to_bits(), expected.to_bits(), "{} * {} + {}: {d}", a[i], b[i], c[i]);
        }
        let bits = [a[i], b[i], c[i]].map(|operand| operand.to_bits().into());
        let modelled = executor.dot_add(&bits[..1], &bits[1..2], bits[2], &[], &[]);
        assert_eq!(u64::from(d.to_bits()), modelled, "{} * {} + {}: {d}", a[i], b[i], c[i]);
    }
    assert!(compared > MANY / 4, "only {compared} exact sums");
}

#[test]
fn vfmadd231ph_obeys_rounding_control_like_the_model() {
    let Some(unit) = unit("vfmadd231ph") else { return };
    let mut random = Random(5);
    let normal = |random: &mut Random| {
        let bits = random.next();
        f16::from_bits((bits & 0x83FF | (11 + (bits >> 10) % 8) << 10) as u16)
    };
    let [a, b, c] = [(); 3].map(|()| random.many(MANY, normal));
    for (mode, rounding) in [
        (Mode::RoundDown, Rounding::Down),
        (Mode::RoundUp, Rounding::Up),
        (Mode::RoundTowardZero, Rounding::TowardZero),
    ] {
        let mut model = Model::chain_of_fma(format::FP16, format::FP16, 1);
        model.tree.rules[0].round_to().unwrap().rounding = rounding;
        let mut executor = Executor::new(&model).unwrap();
        for (i, d) in run(&unit, &a, &b, &c, mode).into_iter().enumerate() {
            let bits = [a[i], b[i], c[i]].map(|operand| operand.to_bits().into());
            let modelled = executor.dot_add(&bits[..1], &bits[1..2], bits[2], &[], &[]) as u16;
            let both_zero = (u16::from_le_bytes(d.to_le_bytes()) | modelled) & 0x7FFF == 0;
            assert!(d.to_bits() == modelled || both_zero, "{mode:?}: {} * {} + {}: {d}", a[i], b[i], c[i]);
        }
    }
}

#[test]
fn vdpbf16ps_sums_two_products_and_c() {
    let Some(unit) = unit("vdpbf16ps") else { return };
    let numbers = |numbers: [f32; 4]| numbers.map(bf16::from_f32);
    let (a, b) = (numbers([2.0, 3.0, -1.5, 0.25]), numbers([5.0, 7.0, 4.0, 8.0]));
    assert_eq!(run(&unit, &a, &b, &[100.0f32, 0.5], Mode::Default), [131.0, -3.5]);
}

#[test]
fn the_tail_is_computed_and_nothing_else_is_touched() {
    let processor = Processor::detect();
    for unit in &processor.units {
        let shape = unit.shape();
        let elements = |count: usize, per_problem: usize, bytes: usize, seed: u64| -> Vec<u8> {
            let mut random = Random(seed);
            (0..count * per_problem * bytes).map(|_| random.next() as u8).collect()
        };
        let (m, n, k) = (shape.m, shape.n, shape.k);
        let [factor, accumulator] = [shape.a.bytes, shape.accumulator.bytes];
        for count in [0, 1, 15, 16, 17, 1000] {
            let a = elements(count, m * k, factor, 1);
            let b = elements(count, k * n, factor, 2);
            let c = elements(count, m * n, accumulator, 3);
            let mut together = vec![0; c.len()];
            unit.run(Problems { count, a: &a, b: &b, c: &c }, &mut together, Mode::Default);
            let mut apart = vec![0; c.len()];
            for i in 0..count {
                let part = |array: &[u8]| array[array.len() / count * i..][..array.len() / count].to_vec();
                let (a, b, c) = (part(&a), part(&b), part(&c));
                let d = &mut apart[c.len() * i..][..c.len()];
                unit.run(Problems { count: 1, a: &a, b: &b, c: &c }, d, Mode::Default);
            }
            assert!(together == apart, "{} of {count}", shape.name);
        }
    }
}

#[test]
fn loops_execute_at_least_as_often_as_asked() {
    for unit in &Processor::detect().units {
        assert_eq!(unit.operations() % (2 * unit.shape().k as u64), 0);
        for accumulators in 1..=unit.accumulators() {
            for executions in [0, 1, 1000] {
                let executed = unit.repeat(accumulators, executions);
                let pass = 4 * accumulators as u64;
                assert!(executed >= executions && executed < executions.max(1) + pass, "{executed}");
                assert_eq!(executed % pass, 0);
            }
        }
        let beyond = std::panic::catch_unwind(|| unit.repeat(unit.accumulators() + 1, 1));
        assert!(beyond.is_err() && std::panic::catch_unwind(|| unit.repeat(0, 1)).is_err());
    }
    assert_eq!(dependent_adds(100), 112);
}

fn mxcsr() -> u32 {
    let mut value = 0u32;
    // SAFETY: stores four bytes into `value`.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
    value
}

#[test]
fn mxcsr_is_restored_with_its_sticky_flags() {
    let processor = Processor::detect();
    for unit in &processor.units {
        let shape = unit.shape();
        // All ones are NaNs, and 0x0101… is inexact or subnormal: flags would be raised.
        for fill in [0x01, 0x3F, 0x7F, 0xFF] {
            let a = vec![fill; 3 * shape.m * shape.k * shape.a.bytes];
            let b = vec![fill; 3 * shape.k * shape.n * shape.b.bytes];
            let c = vec![fill; 3 * shape.m * shape.n * shape.accumulator.bytes];
            for mode in Mode::ALL {
                let before = mxcsr();
                unit.run(Problems { count: 3, a: &a, b: &b, c: &c }, &mut vec![0; c.len()], mode);
                assert_eq!(mxcsr(), before, "{} {mode:?}", shape.name);
            }
        }
    }
}

#[test]
fn threads_do_not_disturb_each_other() {
    let Some(unit) = unit("vfmadd231ps") else { return };
    let mut random = Random(6);
    let [a, b, c] = [(); 3].map(|()| random.many(1000, Random::finite_f32));
    let bits = |mode| run(&unit, &a, &b, &c, mode).into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let expected = Mode::ALL.map(bits);
    std::thread::scope(|scope| {
        for (mode, expected) in Mode::ALL.into_iter().zip(&expected) {
            scope.spawn(move || {
                for _ in 0..200 {
                    assert_eq!(bits(mode), *expected, "{mode:?}");
                }
            });
        }
    });
}

/// Integers are exact whatever the order of summation, so the whole path to the tiles and back can
/// be judged without knowing how the instruction rounds.
fn tile_product_of_integers<F: Element>(name: &str, from: impl Fn(f32) -> F) {
    let Some(unit) = unit(name) else { return };
    let mut random = Random(7);
    const COUNT: usize = 37;
    let mut integers = |count| random.many(count, |random| (random.next() % 33) as f32 - 16.0);
    let (a, b, c) = (integers(COUNT * 512), integers(COUNT * 512), integers(COUNT * 256));
    let convert = |numbers: &[f32]| numbers.iter().map(|&number| from(number)).collect::<Vec<F>>();
    let d = run(&unit, &convert(&a), &convert(&b), &c, Mode::Default);
    for problem in 0..COUNT {
        for (m, n) in (0..256).map(|i| (i / 16, i % 16)) {
            let row = &a[problem * 512 + m * 32..][..32];
            let column = &b[problem * 512 + n * 32..][..32];
            let i = problem * 256 + m * 16 + n;
            let expected = row.iter().zip(column).map(|(a, b)| a * b).sum::<f32>() + c[i];
            assert_eq!(d[i], expected, "{name}: problem {problem}, row {m}, column {n}");
        }
    }
}

#[test]
fn tdpbf16ps_is_a_matrix_product() {
    tile_product_of_integers("tdpbf16ps", bf16::from_f32);
}

#[test]
fn tdpfp16ps_is_a_matrix_product() {
    tile_product_of_integers("tdpfp16ps", f16::from_f32);
}
