//! Odd features.

use super::{Dice, rules};
use crate::format::{FP32, FP64, TF32};
use crate::machine::{
    Adder, Aligned, Flush, Infinities, Machine, NanRule, Node, Output, Overflow, Product, Round, Subnormals,
    ZeroExponents,
};
use crate::rounding::Rounding;

type Twist = fn(&mut Dice, &mut Machine) -> bool;

/// Every odd feature, and how often it is tried. A twist says whether there was something to twist.
const TWISTS: [(Twist, usize); 24] = [
    (one_sticky_bit, 3),
    (jamming, 3),
    (other_shifters, 8),
    (far_summands, 3),
    (other_alignment, 6),
    (other_exponents, 5),
    (raised_floor, 5),
    (other_zero_exponents, 5),
    (limited_carry, 6),
    (rounded_products, 8),
    (overflowing_products, 4),
    (flushed_products, 3),
    (narrow_between, 5),
    (fewer_fraction_bits, 5),
    (other_rounding, 6),
    (rounded_twice, 3),
    (other_overflow, 4),
    (flushed_factors, 8),
    (flushed_c, 6),
    (flushed_results, 6),
    (other_zero_signs, 5),
    (nans_handed_on, 8),
    (other_infinities, 2),
    (low_bits_count, 2),
];

/// Twists one feature of a machine.
pub(super) fn twist(dice: &mut Dice, machine: &mut Machine) {
    // Some feature always applies: the final rounding does.
    while !dice.weighted(&TWISTS)(dice, machine) {}
}

/// Applies a change to the aligned adders of one rule, or of all.
fn adders(dice: &mut Dice, machine: &mut Machine, change: &mut dyn FnMut(&mut Aligned)) -> bool {
    let only = dice.percent(50).then(|| dice.below(machine.rules.len()));
    let mut changed = false;
    for (index, rule) in machine.rules.iter_mut().enumerate() {
        if let Adder::Aligned(aligned) = &mut rule.adder
            && only.is_none_or(|only| only == index)
        {
            change(aligned);
            changed = true;
        }
    }
    changed
}

/// Applies a change to the roundings of one rule, or of all.
fn roundings(dice: &mut Dice, machine: &mut Machine, change: &mut dyn FnMut(&mut Round)) -> bool {
    let only = dice.percent(50).then(|| dice.below(machine.rules.len()));
    let mut changed = false;
    for (index, rule) in machine.rules.iter_mut().enumerate() {
        if only.is_none_or(|only| only == index) {
            match &mut rule.output {
                Output::Open(_) => continue,
                Output::Rounded(round) => change(round),
                Output::RoundedTwice(first, second) => {
                    change(first);
                    change(second);
                }
            }
            changed = true;
        }
    }
    changed
}

fn one_sticky_bit(dice: &mut Dice, machine: &mut Machine) -> bool {
    adders(dice, machine, &mut |aligned| aligned.sticky = true)
}

fn jamming(dice: &mut Dice, machine: &mut Machine) -> bool {
    adders(dice, machine, &mut |aligned| {
        aligned.shifters.iter_mut().for_each(|shifter| shifter.rounding = Rounding::Sticky);
    })
}

/// A width, or a rounding, of its own for the first summand; or for the first few.
fn other_shifters(dice: &mut Dice, machine: &mut Machine) -> bool {
    let both = dice.percent(30);
    let width = dice.percent(50);
    let count = dice.pick(&[1, 1, 1, 2, 3]);
    let drawn: Vec<_> = (0..count).map(|_| rules::shifter(dice)).collect();
    adders(dice, machine, &mut |aligned| {
        let usual = aligned.shifters[0];
        let own = drawn.iter().map(|drawn| {
            let mut shifter = usual;
            if both || width {
                // Near the others, where it can be built.
                shifter.fraction_bits =
                    (usual.fraction_bits + drawn.fraction_bits % 16).saturating_sub(6).min(64);
            }
            if both || !width {
                shifter.rounding = drawn.rounding;
            }
            shifter
        });
        aligned.shifters = own.chain([usual]).collect();
    })
}

fn far_summands(dice: &mut Dice, machine: &mut Machine) -> bool {
    let distance = dice.below(24) as i32;
    let rounding = dice.pick(&[Rounding::Zero, Rounding::Zero, Rounding::Down, Rounding::Sticky]);
    adders(dice, machine, &mut |aligned| {
        let shifter = &mut aligned.shifters[0];
        shifter.far = Some((shifter.fraction_bits as i32 - 4 + distance, rounding));
    })
}

fn other_alignment(dice: &mut Dice, machine: &mut Machine) -> bool {
    let rounding = dice.pick(&Rounding::TABLES);
    adders(dice, machine, &mut |aligned| {
        aligned.shifters.iter_mut().for_each(|shifter| shifter.rounding = rounding);
    })
}

fn other_exponents(dice: &mut Dice, machine: &mut Machine) -> bool {
    adders(dice, machine, &mut |aligned| aligned.normalised = !aligned.normalised)
}

fn raised_floor(dice: &mut Dice, machine: &mut Machine) -> bool {
    let floor = rules::floor(dice, &machine.d);
    adders(dice, machine, &mut |aligned| aligned.floor = Some(floor))
}

fn other_zero_exponents(dice: &mut Dice, machine: &mut Machine) -> bool {
    let zeros = dice.pick(&[
        ZeroExponents::Ignored,
        ZeroExponents::OpenSums,
        ZeroExponents::All,
        ZeroExponents::AllAsFp32,
    ]);
    adders(dice, machine, &mut |aligned| aligned.zeros = zeros)
}

fn limited_carry(dice: &mut Dice, machine: &mut Machine) -> bool {
    let carry = rules::carry(dice);
    adders(dice, machine, &mut |aligned| aligned.carry = Some(carry))
}

fn rounded_products(dice: &mut Dice, machine: &mut Machine) -> bool {
    let format = dice.pick(&[machine.d, machine.d, FP32, FP64]);
    let fewer = if dice.percent(70) { 0 } else { dice.below(format.fraction_bits as usize / 2 + 1) as u32 };
    let any = dice.pick(&Rounding::TABLES);
    let rounding = dice.weighted(&[(Rounding::NearestEven, 60), (Rounding::Zero, 25), (any, 15)]);
    let subnormals = if dice.percent(60) { Subnormals::Kept } else { rules::flushed(dice) };
    let overflow =
        dice.weighted(&[(Overflow::Infinity, 80), (Overflow::Largest, 10), (Overflow::ByMode, 10)]);
    machine.product = Product::Rounded(Round {
        format,
        fraction_bits: format.fraction_bits - fewer,
        rounding,
        subnormals,
        overflow,
    });
    true
}

fn overflowing_products(dice: &mut Dice, machine: &mut Machine) -> bool {
    machine.product = Product::OverflowsAt(machine.d.max_exponent() + 1);
    machine.infinite_operands_first = dice.percent(30);
    true
}

fn flushed_products(dice: &mut Dice, machine: &mut Machine) -> bool {
    let exponent = machine.d.min_exponent() - if dice.percent(70) { 0 } else { dice.below(20) as i32 };
    machine.product = Product::FlushedBelow { exponent, signed: dice.percent(60) };
    true
}

fn narrow_between(dice: &mut Dice, machine: &mut Machine) -> bool {
    let d = machine.d;
    let root = root(machine);
    let mut changed = false;
    for (index, rule) in machine.rules.iter_mut().enumerate() {
        if index != root {
            let round = match &rule.output {
                Output::Rounded(round) => *round,
                _ => Round::ieee(d),
            };
            rule.output = Output::Rounded(rules::between(dice, &d, round));
            changed = true;
        }
    }
    changed
}

/// The rule of the root.
fn root(machine: &Machine) -> usize {
    match &machine.tree {
        Node::Sum(_, rule) => *rule,
        _ => unreachable!("the root of a machine is a sum"),
    }
}

fn fewer_fraction_bits(dice: &mut Dice, machine: &mut Machine) -> bool {
    let fewer = 1 + dice.below(machine.d.fraction_bits as usize * 2 / 3) as u32;
    roundings(dice, machine, &mut |round| {
        round.fraction_bits = round.fraction_bits.saturating_sub(fewer).max(1)
    })
}

fn other_rounding(dice: &mut Dice, machine: &mut Machine) -> bool {
    let rounding = dice.pick(&Rounding::TABLES);
    roundings(dice, machine, &mut |round| round.rounding = rounding)
}

/// The result goes through another format first.
fn rounded_twice(dice: &mut Dice, machine: &mut Machine) -> bool {
    let d = machine.d;
    let root = root(machine);
    let Output::Rounded(second) = machine.rules[root].output else { return false };
    let first = if d == FP64 {
        Round { fraction_bits: 40 + dice.below(12) as u32, ..second }
    } else {
        let rounding = dice.pick(&Rounding::TABLES);
        rules::between(dice, &FP32, Round { rounding, ..second })
    };
    machine.rules[root].output = Output::RoundedTwice(first, second);
    true
}

fn other_overflow(dice: &mut Dice, machine: &mut Machine) -> bool {
    let overflow = dice.pick(&[Overflow::Infinity, Overflow::Largest, Overflow::ByMode]);
    roundings(dice, machine, &mut |round| round.overflow = overflow)
}

fn flush(dice: &mut Dice) -> Flush {
    dice.pick(&[Flush::ToPlusZero, Flush::ToSignedZero])
}

fn flushed_factors(dice: &mut Dice, machine: &mut Machine) -> bool {
    let flush = flush(dice);
    match dice.below(10) {
        0 => machine.read_a.subnormals = flush,
        1 => machine.read_b.subnormals = flush,
        _ => (machine.read_a.subnormals, machine.read_b.subnormals) = (flush, flush),
    }
    true
}

fn flushed_c(dice: &mut Dice, machine: &mut Machine) -> bool {
    machine.read_c.subnormals = flush(dice);
    true
}

fn flushed_results(dice: &mut Dice, machine: &mut Machine) -> bool {
    let subnormals = rules::flushed(dice);
    roundings(dice, machine, &mut |round| round.subnormals = subnormals)
}

fn other_zero_signs(dice: &mut Dice, machine: &mut Machine) -> bool {
    let rule = dice.below(machine.rules.len());
    let zeros = rules::zero_signs(dice);
    if dice.percent(60) {
        machine.rules.iter_mut().for_each(|rule| rule.zeros = zeros);
    } else {
        machine.rules[rule].zeros = zeros;
    }
    true
}

fn nans_handed_on(dice: &mut Dice, machine: &mut Machine) -> bool {
    let mut ranks = [1, 2, 3];
    dice.shuffle(&mut ranks);
    machine.nan = match dice.percent(85) {
        true => NanRule::HandedOn {
            ranks,
            last: dice.percent(30),
            quieted: dice.percent(75),
            generated_negative: dice.percent(50),
            generated_first: dice.percent(30),
        },
        false => NanRule::Ored,
    };
    true
}

fn other_infinities(dice: &mut Dice, machine: &mut Machine) -> bool {
    let infinities = dice.pick(&[Infinities::Nan, Infinities::Largest]);
    for reading in [&mut machine.read_a, &mut machine.read_b, &mut machine.read_c] {
        if reading.format.has_infinity() {
            reading.infinities = infinities;
        }
    }
    true
}

fn low_bits_count(_: &mut Dice, machine: &mut Machine) -> bool {
    for reading in [&mut machine.read_a, &mut machine.read_b] {
        if reading.format == TF32 {
            reading.format = FP32;
        }
    }
    machine.read_a.format != machine.a
}
