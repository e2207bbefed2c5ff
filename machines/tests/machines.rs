//! Machines against the CPU's fused multiply-add, and against cases worked out by hand.
#![allow(missing_docs)]

use mmaprobe_machines::format::{BF16, FP16, FP32, FP64, Format};
use mmaprobe_machines::generate::Dice;
use mmaprobe_machines::machine::{
    Adder, Aligned, Beyond, Carry, Flush, Infinities, Machine, NanRule, Node, Output, Overflow, Product,
    Reading, Round, Rule, Shifter, Subnormals, Tiny, ZeroExponents, ZeroSigns,
};
use mmaprobe_machines::rounding::Rounding;
use mmaprobe_machines::{Evaluator, generate, words};

/// d = c + the products, in one sum, rounded by `round`.
fn flat(k: usize, factors: Format, adder: Adder, round: Round) -> Machine {
    let read = Reading { format: factors, subnormals: Flush::Never, infinities: Infinities::Kept };
    let summands = [Node::C].into_iter().chain((0..k).map(Node::Product));
    Machine {
        a: factors,
        b: factors,
        read_a: read,
        read_b: read,
        rules: vec![Rule { adder, zeros: ZeroSigns::IEEE, output: Output::Rounded(round) }],
        tree: Node::Sum(summands.collect(), 0),
        ..Machine::chain_of_fma(round.format, k)
    }
}

fn aligned(fraction_bits: u32, rounding: Rounding) -> Aligned {
    Aligned {
        shifters: vec![Shifter { fraction_bits, rounding, far: None }],
        normalised: false,
        floor: None,
        zeros: ZeroExponents::Ignored,
        carry: None,
        sticky: false,
    }
}

fn bits(values: &[f32]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits().into()).collect()
}

/// An fp32 machine's answer.
fn answer(machine: &Machine, a: &[f32], b: &[f32], c: f32) -> f32 {
    f32::from_bits(Evaluator::new(machine).dot_add(&bits(a), &bits(b), c.to_bits().into(), &[], &[]) as u32)
}

#[test]
fn an_exact_sum_rounded_once_is_the_cpus_fma() {
    let mut dice = Dice::new(5, 0, 100);
    let single = flat(1, FP32, Adder::Exact, Round::ieee(FP32));
    let double = flat(1, FP64, Adder::Exact, Round::ieee(FP64));
    let (mut single, mut double) = (Evaluator::new(&single), Evaluator::new(&double));
    for round in 0..200_000 {
        let [mut a, mut b, mut c] = [dice.bits(), dice.bits(), dice.bits()];
        if round % 2 == 0 {
            // Exponents near that of the product.
            let near =
                |bits: u64, spread: u64| bits & !(0x7ff << 52) | (1023 - spread / 2 + bits % spread) << 52;
            (a, b, c) = (near(a, 8), near(b, 8), near(c, 120));
        }
        let d = double.dot_add(&[a], &[b], c, &[], &[]);
        let expected = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
        assert!(
            f64::from_bits(d).is_nan() && expected.is_nan() || d == expected.to_bits(),
            "{a:x} {b:x} {c:x}"
        );
        let [a, b, c] =
            [a, b, c].map(|x| if round % 2 == 0 { (f64::from_bits(x) as f32).to_bits() } else { x as u32 });
        let d = single.dot_add(&[a.into()], &[b.into()], c.into(), &[], &[]) as u32;
        let expected = f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c));
        assert!(
            f32::from_bits(d).is_nan() && expected.is_nan() || d == expected.to_bits(),
            "{a:x} {b:x} {c:x}"
        );
    }
}

#[test]
fn an_aligned_sum_loses_what_is_below_its_width() {
    // 1 + 2^-10 − 2^-11: with F = 10, the last summand is lost by RZ, and by RD becomes −2^-10.
    let a = [1.0, 1.0 / 1024.0, -1.0 / 2048.0];
    for (rounding, expected) in [
        (Rounding::Zero, 1.0 + 1.0 / 1024.0),
        (Rounding::Down, 1.0),
        (Rounding::Up, 1.0 + 1.0 / 1024.0),
        (Rounding::Away, 1.0),
        // A tie: 0 is even, −1 is odd.
        (Rounding::NearestEven, 1.0 + 1.0 / 1024.0),
        (Rounding::NearestOdd, 1.0),
        (Rounding::Sticky, 1.0),
    ] {
        let machine = flat(3, FP32, Adder::Aligned(aligned(10, rounding)), Round::ieee(FP32));
        assert_eq!(answer(&machine, &a, &[1.0; 3], 0.0), expected, "{rounding}");
    }
}

#[test]
fn exponents_are_raw_or_normalised() {
    // 1.5 · 1.5 = 2.25 = 2 + 2^-2; beside it 2^-10. Aligned to 2^0 with F = 10 it stays; to 2^1, not.
    let (a, b) = ([1.5, 1.0 / 1024.0], [1.5, 1.0]);
    let mut adder = aligned(10, Rounding::Zero);
    let machine = flat(2, FP32, Adder::Aligned(adder.clone()), Round::ieee(FP32));
    assert_eq!(answer(&machine, &a, &b, 0.0), 2.25 + 1.0 / 1024.0);
    adder.normalised = true;
    let machine = flat(2, FP32, Adder::Aligned(adder), Round::ieee(FP32));
    assert_eq!(answer(&machine, &a, &b, 0.0), 2.25);
}

#[test]
fn floors_and_zeros_raise_the_exponent() {
    // A floor of 0 and F = 4 leave multiples of 1/16.
    let adder = Aligned { floor: Some(0), ..aligned(4, Rounding::Zero) };
    let machine = flat(1, FP32, Adder::Aligned(adder), Round::ieee(FP32));
    assert_eq!(answer(&machine, &[0.09], &[1.0], 0.0), 0.0625);
    // 2^10 · 0 has the exponent 10 − 126: nothing to something of 2^-100. As a zero of 2^-126, neither.
    let adder = Aligned { zeros: ZeroExponents::All, ..aligned(4, Rounding::Zero) };
    let machine = flat(2, FP32, Adder::Aligned(adder), Round::ieee(FP32));
    let tiny = 2f32.powi(-125);
    assert_eq!(answer(&machine, &[1024.0, tiny], &[0.0, 1.0], 0.0), 0.0);
    assert_eq!(answer(&machine, &[1.0, tiny], &[0.0, 1.0], 0.0), tiny);
}

#[test]
fn carries_wrap_or_saturate() {
    // One bit above the point: sums in [−2, 2) × 2^0. 1.5 · 1 + 1.5 · 1 = 3.
    let run = |beyond, a: [f32; 2]| {
        let adder = Aligned { carry: Some(Carry { bits: 1, beyond }), ..aligned(8, Rounding::Zero) };
        let machine = flat(2, FP32, Adder::Aligned(adder), Round::ieee(FP32));
        answer(&machine, &a, &[1.0; 2], 0.0)
    };
    assert_eq!(run(Beyond::Wraps, [1.5, 1.5]), -1.0);
    assert_eq!(run(Beyond::Wraps, [-1.5, -1.5]), 1.0);
    assert_eq!(run(Beyond::MagnitudeWraps, [1.5, 1.5]), 1.0);
    assert_eq!(run(Beyond::MagnitudeWraps, [-1.5, -1.5]), -1.0);
    assert_eq!(run(Beyond::Saturates, [1.5, 1.5]), 2.0 - 1.0 / 256.0);
    assert_eq!(run(Beyond::Saturates, [-1.5, -1.5]), -2.0);
    assert_eq!(run(Beyond::Wraps, [-1.0, -1.0]), -2.0);
}

#[test]
fn one_sticky_bit_breaks_ties() {
    // 1 + 2^-24 is a tie in fp32. 2^-40 more is lost at F = 30, and seen by the sticky bit alone.
    let a = [1.0, 2f32.powi(-24), 2f32.powi(-40)];
    let with = |sticky| {
        let adder = Aligned { sticky, ..aligned(30, Rounding::Zero) };
        answer(&flat(3, FP32, Adder::Aligned(adder), Round::ieee(FP32)), &a, &[1.0; 3], 0.0)
    };
    assert_eq!(with(false), 1.0);
    assert_eq!(with(true), 1.0 + 2f32.powi(-23));
}

#[test]
fn summands_have_shifters_of_their_own() {
    // c keeps 4 bits, products 8.
    let mut adder = aligned(4, Rounding::Zero);
    adder.shifters.push(Shifter {
        fraction_bits: 8,
        rounding: Rounding::Zero,
        far: Some((6, Rounding::Away)),
    });
    let machine = flat(2, FP32, Adder::Aligned(adder), Round::ieee(FP32));
    assert_eq!(answer(&machine, &[1.0, 1.0 / 64.0], &[1.0; 2], 1.0 / 32.0), 1.0 + 1.0 / 64.0);
    // Further than 6 away it is rounded away from zero.
    assert_eq!(answer(&machine, &[1.0, 2f32.powi(-12)], &[1.0; 2], 0.0), 1.0 + 1.0 / 256.0);
}

#[test]
fn products_round_overflow_and_are_flushed() {
    let with = |product, a: f32, b: f32| {
        let machine = Machine { product, ..flat(1, FP32, Adder::Exact, Round::ieee(FP32)) };
        answer(&machine, &[a], &[b], 0.0)
    };
    let two_bits = Round { fraction_bits: 1, ..Round::ieee(FP32) };
    assert_eq!(with(Product::Rounded(two_bits), 1.75, 1.0), 2.0);
    assert_eq!(with(Product::OverflowsAt(3), 2.0, 4.0), f32::INFINITY);
    assert_eq!(with(Product::OverflowsAt(3), 2.0, 3.9), 7.8);
    let flushed = Product::FlushedBelow { exponent: -2, signed: true };
    assert_eq!(with(flushed.clone(), -0.125, 1.0).to_bits(), 0);
    assert_eq!(with(flushed.clone(), 0.25, 1.0), 0.25);
    // c is −0, too: the sign shows.
    let machine = Machine { product: flushed, ..flat(1, FP32, Adder::Exact, Round::ieee(FP32)) };
    assert_eq!(answer(&machine, &[-0.125], &[1.0], -0.0).to_bits(), 1 << 31);
}

#[test]
fn results_overflow_and_are_flushed() {
    let with = |round, a: f32, b: f32| answer(&flat(1, FP32, Adder::Exact, round), &[a], &[b], 0.0);
    let largest = Round { overflow: Overflow::Largest, ..Round::ieee(FP32) };
    assert_eq!(with(largest, f32::MAX, -2.0), -f32::MAX);
    let by_mode = Round { overflow: Overflow::ByMode, rounding: Rounding::Up, ..Round::ieee(FP32) };
    assert_eq!(with(by_mode, f32::MAX, 2.0), f32::INFINITY);
    assert_eq!(with(by_mode, f32::MAX, -2.0), -f32::MAX);
    // The largest number below the smallest normal one that rounds to it: 2^-126 (1 − 2^-25).
    let (a, b) = (2f32.powi(-126), 1.0 - 2f32.powi(-24));
    let tiny = |tiny| Round { subnormals: Subnormals::Flushed { tiny, signed: true }, ..Round::ieee(FP32) };
    let machine = |round| flat(2, FP32, Adder::Exact, round);
    let sum = |round| answer(&machine(round), &[a, a], &[b, 2f32.powi(-25)], 0.0);
    assert_eq!(sum(tiny(Tiny::Before)), 0.0);
    // 1 − 2^-25 is a tie between 1 − 2^-24 and 1; ties to even: 1. Either way of looking after rounding.
    assert_eq!(sum(tiny(Tiny::After)), a);
    assert_eq!(sum(tiny(Tiny::Delivered)), a);
    // 1 − 2^-24 is a number with unlimited exponents, and a tie on the subnormal grid.
    let once = |round| answer(&machine(round), &[a, 0.0], &[b, 0.0], 0.0);
    assert_eq!(once(tiny(Tiny::After)), 0.0);
    assert_eq!(once(tiny(Tiny::Delivered)), a);
}

#[test]
fn a_result_rounded_twice_can_differ() {
    // 1 + 2^-11 + 2^-24: to fp32 a tie, to even; to fp16 then a tie, to even. At once: up.
    let mut machine = flat(3, BF16, Adder::Exact, Round::ieee(FP16));
    machine.rules[0].output = Output::RoundedTwice(Round::ieee(FP32), Round::ieee(FP16));
    let of = |exponent: i32| ((127 + exponent) << 7) as u64;
    let a = [of(0), of(-11), of(-24)];
    let b = [of(0); 3];
    let twice = Evaluator::new(&machine).dot_add(&a, &b, 0, &[], &[]);
    machine.rules[0].output = Output::Rounded(Round::ieee(FP16));
    let once = Evaluator::new(&machine).dot_add(&a, &b, 0, &[], &[]);
    assert_eq!((twice, once), (0x3c00, 0x3c01));
}

#[test]
fn nans_are_handed_on_by_rank() {
    let mut machine = flat(2, FP32, Adder::Exact, Round::ieee(FP32));
    let handed_on = |ranks, last| NanRule::HandedOn {
        ranks,
        last,
        quieted: true,
        generated_negative: true,
        generated_first: false,
    };
    let nan = |payload: u64| 0x7f80_0000 | payload;
    let one = 0x3f80_0000;
    let ask =
        |machine: &Machine, a: [u64; 2], b: [u64; 2], c| Evaluator::new(machine).dot_add(&a, &b, c, &[], &[]);
    machine.nan = handed_on([1, 2, 3], false);
    assert_eq!(ask(&machine, [one, nan(1)], [one, nan(2)], nan(3)), 0x7fc0_0001);
    machine.nan = handed_on([3, 2, 1], false);
    assert_eq!(ask(&machine, [one, nan(1)], [one, nan(2)], nan(3)), 0x7fc0_0003);
    assert_eq!(ask(&machine, [nan(4), nan(1)], [one, nan(2)], one), 0x7fc0_0002);
    machine.nan = handed_on([1, 2, 3], true);
    assert_eq!(ask(&machine, [nan(4), nan(1)], [one, nan(2)], one), 0x7fc0_0001);
    // Nobody brought this one along.
    assert_eq!(ask(&machine, [0x7f80_0000, one], [0, one], one), 0xffc0_0000);
    machine.nan = NanRule::Ored;
    assert_eq!(ask(&machine, [nan(4), nan(1)], [one, nan(2)], one), 0x7f80_0007);
}

#[test]
fn a_machine_depends_on_seed_and_index_alone() {
    for index in 0..200 {
        let machine = generate::machine(9, index);
        assert_eq!(machine, generate::machine(9, index));
        assert_ne!(words::describe(&machine), words::describe(&generate::machine(10, index)));
    }
}

#[test]
fn machines_answer_whatever_they_are_asked() {
    for index in 0..1000 {
        let machine = generate::machine(11, index);
        let mut evaluator = Evaluator::new(&machine);
        let mut dice = Dice::new(11, index, 100);
        let blocks = machine.scale.map_or(0, |scale| machine.k / scale.block);
        let any = |count: usize, dice: &mut Dice| (0..count).map(|_| dice.bits()).collect::<Vec<u64>>();
        for _ in 0..20 {
            let (a, b) = (any(machine.k, &mut dice), any(machine.k, &mut dice));
            let (sa, sb) = (any(blocks, &mut dice), any(blocks, &mut dice));
            let d = evaluator.dot_add(&a, &b, dice.bits(), &sa, &sb);
            assert_eq!(d >> (8 * machine.d.bytes - 1) >> 1, 0, "{}", words::describe(&machine));
        }
    }
}
