//! Random machines written down as sum trees: two executors that share no code agree bit for bit.
//!
//! What a machine of `mmaprobe-machines` can do and a [`Model`] cannot say would show here first: the
//! translation has no case that it leaves out.

use crate::translation::model;
use mmaprobe::model::{Executor, Format, Model};
use mmaprobe_machines::Evaluator;
use mmaprobe_machines::generate::{self, Dice};

/// A dot-add's operands.
#[derive(Debug, Default)]
struct DotAdd {
    a: Vec<u64>,
    b: Vec<u64>,
    c: u64,
    sa: Vec<u64>,
    sb: Vec<u64>,
}

/// ±0, infinities, NaNs, and both ends of each class of numbers.
fn special(format: &Format, dice: &mut Dice) -> u64 {
    let fraction = (1 << format.fraction_bits) - 1;
    let top = ((1u64 << format.exponent_bits) - 1) << format.fraction_bits;
    let smallest_normal = 1 << format.fraction_bits;
    let magnitudes = [0, 0, 1, fraction, smallest_normal, top - 1, top, top | fraction, top | (fraction / 3)];
    let sign = u64::from(format.signed && dice.percent(50)) << (format.bits() - 1);
    (sign | dice.pick(&magnitudes)) << format.ignored_low_bits
}

/// An ordinary number of about this exponent.
fn near(format: &Format, exponent: i32, dice: &mut Dice) -> u64 {
    let field = (exponent + format.bias).clamp(0, (1 << format.exponent_bits) - 2) as u64;
    // Few bits make ties and cancellation.
    let bits = dice.bits();
    let fraction =
        if bits >> 63 == 0 { bits } else { 3u64 << (bits % (u64::from(format.fraction_bits) + 1)) };
    let fraction = fraction & ((1 << format.fraction_bits) - 1);
    let sign = u64::from(format.signed && dice.percent(50)) << (format.bits() - 1);
    let ignored = dice.bits() & ((1 << format.ignored_low_bits) - 1);
    (sign | field << format.fraction_bits | fraction) << format.ignored_low_bits | ignored
}

fn between(dice: &mut Dice, low: i32, high: i32) -> i32 {
    low + dice.below((high - low + 1) as usize) as i32
}

/// Operands of some distribution: near the ends of d's range or anywhere, with few special values or
/// many, with products that nearly cancel or not.
fn draw(model: &Model, dice: &mut Dice) -> DotAdd {
    let [a, b, c] = [&model.a.format, &model.b.format, &model.c.format];
    let style = dice.below(5);
    let (ea, eb) = {
        let target = match style {
            0 => model.d.min_exponent() + between(dice, -4, 4),
            1 => model.d.max_exponent() + between(dice, -3, 3),
            2 => 0,
            _ => between(dice, a.min_exponent(), a.max_exponent()),
        };
        (target / 2, target - target / 2)
    };
    let spread = dice.pick(&[0, 1, 4, 12, 40]);
    let rate = dice.pick(&[0, 0, 5, 30]);
    let mut element = |format: &Format, exponent: i32| {
        if dice.percent(rate) {
            special(format, dice)
        } else if style == 4 {
            dice.bits() >> (64 - format.bits() - format.ignored_low_bits)
        } else {
            near(format, exponent + between(dice, -spread, spread), dice)
        }
    };
    let mut x = DotAdd {
        a: (0..model.k).map(|_| element(a, ea)).collect(),
        b: (0..model.k).map(|_| element(b, eb)).collect(),
        c: element(c, ea + eb),
        ..DotAdd::default()
    };
    if let Some(scale) = model.scale {
        for scales in [&mut x.sa, &mut x.sb] {
            scales.extend((0..model.k / scale.block).map(|_| element(&scale.format, 0)));
        }
    }
    if dice.percent(30) {
        for k in 0..model.k / 2 {
            let other = model.k - 1 - k;
            x.a[other] = x.a[k] ^ 1 << (a.bits() + a.ignored_low_bits - 1);
            x.b[other] = x.b[k] ^ u64::from(dice.percent(20)) << b.ignored_low_bits;
        }
    }
    x
}

#[test]
fn machines_are_models() {
    const DOT_ADDS: usize = 60;
    /// The generator has streams of its own for what it draws; this is none of them.
    const STREAM: u64 = 0x6d6f_6465_6c73;
    // As in the tests of the model.
    let scale = std::env::var("MMAPROBE_TEST_SCALE").map_or(1.0, |scale| scale.parse::<f64>().unwrap());
    for index in 0..(5_000.0 * scale).ceil() as u64 {
        let machine = generate::machine(2026, index);
        let model = model(&machine);
        let mut evaluator = Evaluator::new(&machine);
        let mut executor = Executor::new(&model).unwrap();
        let mut dice = Dice::new(2026, index, STREAM);
        for _ in 0..DOT_ADDS {
            let x = draw(&model, &mut dice);
            let expected = evaluator.dot_add(&x.a, &x.b, x.c, &x.sa, &x.sb);
            let got = executor.dot_add(&x.a, &x.b, x.c, &x.sa, &x.sb);
            assert_eq!(
                got, expected,
                "machine {index}: {got:#x}, not {expected:#x}, for {x:x?} in {machine:#?}"
            );
        }
    }
}
