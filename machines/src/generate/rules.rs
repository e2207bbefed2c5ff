//! Rules of sums.

use super::{Dice, each_sum};
use crate::format::{BF16, FP16, FP32, FP64, Format, TF32};
use crate::machine::{
    Adder, Aligned, Beyond, Carry, Node, Output, Overflow, Round, Rule, Shifter, Subnormals, Tiny,
    ZeroExponents, ZeroSigns,
};
use crate::rounding::Rounding;

/// Draws the rules of a tree, whose sums have levels in the places of rules.
pub(super) fn draw(dice: &mut Dice, tree: &mut Node, d: &Format, odd: bool) -> Vec<Rule> {
    let mut rules = Vec::new();
    if odd {
        // A rule for each node, or for each level and the root.
        let each = dice.percent(33);
        let mut of_level = [None; 3];
        each_sum(tree, true, &mut |_, level, is_root| {
            let known = if each || is_root { None } else { of_level[*level] };
            let rule = known.unwrap_or_else(|| {
                rules.push(any(dice, d, is_root));
                rules.len() - 1
            });
            if !is_root {
                of_level[*level] = Some(rule);
            }
            *level = rule;
        });
        return rules;
    }
    // One design: the levels differ in what leaves them, and rarely in how they add.
    let style = Style::draw(dice, d);
    let mut of_level: [Option<usize>; 3] = [None; 3];
    // One rule everywhere.
    if dice.percent(45) {
        each_sum(tree, true, &mut |_, level, _| *level = 0);
        return vec![style.rule(dice, d, true)];
    }
    let others = [false; 3].map(|_| dice.percent(20));
    each_sum(tree, true, &mut |_, level, is_root| {
        let known = if is_root { None } else { of_level[*level] };
        let rule = known.unwrap_or_else(|| {
            let style = if others[*level] { &Style::draw(dice, d) } else { &style };
            rules.push(style.rule(dice, d, is_root));
            rules.len() - 1
        });
        if !is_root {
            of_level[*level] = Some(rule);
        }
        *level = rule;
    });
    rules
}

/// What one design has in common.
struct Style {
    aligned: Option<Aligned>,
    round: Round,
    zeros: ZeroSigns,
    /// Sums between are not normalised.
    open: bool,
}

impl Style {
    fn draw(dice: &mut Dice, d: &Format) -> Style {
        let aligned = dice.percent(65).then(|| {
            let precision = d.fraction_bits as usize;
            let fraction_bits = match dice.below(100) {
                0..50 => precision + dice.below(4),
                50..70 => precision + dice.below(14),
                70..85 => precision.saturating_sub(dice.below(12)),
                _ => dice.below(40),
            };
            let rounding = dice.weighted(&[
                (Rounding::Zero, 62),
                (Rounding::Down, 18),
                (Rounding::NearestEven, 9),
                (Rounding::Up, 4),
                (Rounding::NearestAway, 4),
                (Rounding::Sticky, 3),
            ]);
            Aligned {
                shifters: vec![Shifter { fraction_bits: fraction_bits.min(64) as u32, rounding, far: None }],
                normalised: dice.percent(25),
                floor: None,
                zeros: dice.weighted(&[
                    (ZeroExponents::Ignored, 70),
                    (ZeroExponents::OpenSums, 10),
                    (ZeroExponents::All, 20),
                ]),
                carry: None,
                sticky: dice.percent(4),
            }
        });
        let rounding = dice.weighted(&[
            (Rounding::NearestEven, if aligned.is_some() { 40 } else { 75 }),
            (Rounding::Zero, if aligned.is_some() { 40 } else { 10 }),
            (Rounding::Down, 5),
            (Rounding::Up, 5),
            (Rounding::NearestAway, 5),
        ]);
        let subnormals = if dice.percent(70) { Subnormals::Kept } else { flushed(dice) };
        let overflow =
            dice.weighted(&[(Overflow::Infinity, 80), (Overflow::ByMode, 15), (Overflow::Largest, 5)]);
        Style {
            open: dice.percent(if aligned.is_some() { 50 } else { 20 }),
            aligned,
            round: Round { rounding, subnormals, overflow, ..Round::ieee(*d) },
            zeros: if dice.percent(70) { ZeroSigns::IEEE } else { zero_signs(dice) },
        }
    }

    fn rule(&self, dice: &mut Dice, d: &Format, is_root: bool) -> Rule {
        let output = match is_root {
            true => Output::Rounded(self.round),
            false if self.open => Output::Open(None),
            false if dice.percent(80) => Output::Rounded(self.round),
            false => Output::Rounded(between(dice, d, self.round)),
        };
        let adder = match &self.aligned {
            Some(aligned) => Adder::Aligned(aligned.clone()),
            None => Adder::Exact,
        };
        Rule { adder, zeros: self.zeros, output }
    }
}

/// A rounding to some format between.
pub(super) fn between(dice: &mut Dice, d: &Format, round: Round) -> Round {
    let format = dice.pick(&[*d, FP32, FP64, FP16, BF16, TF32]);
    let fewer = if dice.percent(60) { 0 } else { dice.below(format.fraction_bits as usize / 2 + 1) };
    Round { format, fraction_bits: format.fraction_bits - fewer as u32, ..round }
}

/// A flush of results.
pub(super) fn flushed(dice: &mut Dice) -> Subnormals {
    Subnormals::Flushed {
        tiny: dice.pick(&[Tiny::Before, Tiny::After, Tiny::Delivered]),
        signed: dice.percent(60),
    }
}

/// Signs of zeros, mostly not IEEE's.
pub(super) fn zero_signs(dice: &mut Dice) -> ZeroSigns {
    ZeroSigns {
        negative_stays: dice.percent(50),
        cancelled_negative: dice.percent(25),
        underflow_signed: dice.percent(50),
    }
}

/// A carry of limited width.
pub(super) fn carry(dice: &mut Dice) -> Carry {
    let bits = dice.below(7) as u32;
    Carry { bits, beyond: dice.pick(&[Beyond::Wraps, Beyond::Saturates, Beyond::MagnitudeWraps]) }
}

/// A shifter of any width.
pub(super) fn shifter(dice: &mut Dice) -> Shifter {
    let rounding = if dice.percent(15) { Rounding::Sticky } else { dice.pick(&Rounding::TABLES) };
    let fraction_bits = if dice.percent(60) { 8 + dice.below(33) } else { dice.below(65) };
    let far = dice.percent(15).then(|| (dice.below(50) as i32, dice.pick(&Rounding::TABLES)));
    Shifter { fraction_bits: fraction_bits as u32, rounding, far }
}

/// A floor under the largest exponent.
pub(super) fn floor(dice: &mut Dice, d: &Format) -> i32 {
    let below = dice.below(40) as i32;
    dice.weighted(&[(d.min_exponent() - below, 60), (d.min_exponent(), 20), (below - 30, 20)])
}

/// Any rule.
fn any(dice: &mut Dice, d: &Format, is_root: bool) -> Rule {
    let adder = if dice.percent(30) {
        Adder::Exact
    } else {
        let shifters = match dice.below(10) {
            0..=6 => vec![shifter(dice)],
            _ => (0..2 + dice.below(3)).map(|_| shifter(dice)).collect(),
        };
        Adder::Aligned(Aligned {
            shifters,
            normalised: dice.percent(40),
            floor: dice.percent(20).then(|| floor(dice, d)),
            zeros: dice.pick(&[
                ZeroExponents::Ignored,
                ZeroExponents::OpenSums,
                ZeroExponents::All,
                ZeroExponents::AllAsFp32,
            ]),
            carry: dice.percent(15).then(|| carry(dice)),
            sticky: dice.percent(10),
        })
    };
    let overflow = dice.pick(&[Overflow::Infinity, Overflow::Largest, Overflow::ByMode]);
    let subnormals = if dice.percent(50) { Subnormals::Kept } else { flushed(dice) };
    let round = Round { rounding: dice.pick(&Rounding::TABLES), subnormals, overflow, ..Round::ieee(*d) };
    let output = if is_root {
        let fewer = if dice.percent(75) { 0 } else { dice.below(d.fraction_bits as usize / 2 + 1) as u32 };
        Output::Rounded(Round { fraction_bits: d.fraction_bits - fewer, ..round })
    } else if dice.percent(35) {
        let fixed = dice.percent(10).then(|| dice.below(60) as i32 - 30);
        Output::Open(fixed)
    } else {
        Output::Rounded(between(dice, d, round))
    };
    Rule { adder, zeros: if dice.percent(50) { ZeroSigns::IEEE } else { zero_signs(dice) }, output }
}
