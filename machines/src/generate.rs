//! Drawing machines at random.
//!
//! # The distribution
//! Three machines of four are *plausible*: one design, with zero to three odd features (a quarter has
//! none, a third has one). The design is drawn as hardware is made: a format pairing of real
//! instructions; K mostly a power of two and mostly 4 to 16; one of a dozen shapes of sums
//! with products in order (half of the machines), reversed, strided, interleaved or shuffled; adders
//! all exact or all aligned, with one width F near the precision of d; and one final rounding (half
//! RNE, a third RZ, else RD, RU or RNA).
//! Every fourth machine nobody would build: each level of the tree, and in a third of them each single
//! node, has its own rule, drawn from all there are, with F anywhere from 0 to 64, and three to eight
//! odd features come on top.
//!
//! The odd features are those of `generate/twists.rs`: sticky bits, widths and roundings that differ
//! between summands, floors, limited carries, products that round, overflow or flush, narrower
//! intermediate formats, unusual roundings, flushes at each place and with either sign, signs of zero,
//! NaNs that are handed on, and some more.
//!
//! A machine depends on the seed and its index alone.

mod dice;
mod rules;
mod trees;
mod twists;

use crate::format::{
    BF16, E2M1, E2M3, E3M2, E4M3, E4M3FNUZ, E5M2, E5M2FNUZ, FP16, FP32, FP64, Format, TF32, UE4M3, UE8M0,
};
use crate::machine::{Flush, Infinities, Machine, NanRule, Node, Product, Reading, Scale};
pub use dice::Dice;

/// What machines are drawn for: the streams of random numbers that one seed gives.
const MACHINES: u64 = 1;

/// Machine `index` of a seed.
pub fn machine(seed: u64, index: u64) -> Machine {
    draw(&mut Dice::new(seed, index, MACHINES))
}

/// Draws a machine.
pub fn draw(dice: &mut Dice) -> Machine {
    let odd = dice.percent(25);
    let ([a, b, c, d], scale_format) = formats(dice);
    let k = terms(dice);
    let scale = scale_format.map(|format| {
        // At most as many blocks as divide K.
        let blocks: Vec<usize> = (1..=k).filter(|block| k.is_multiple_of(*block) && k <= 8 * block).collect();
        Scale { format, block: dice.pick(&blocks) }
    });
    let (m, n) = dice.pick(&[(4, 4), (4, 4), (4, 4), (4, 8), (8, 4), (2, 2), (3, 5), (8, 8), (16, 8)]);
    let (mut tree, shape) = trees::draw(dice, k, scale, odd);
    let rules = rules::draw(dice, &mut tree, &d, odd);
    let plain = |format| Reading { format, subnormals: Flush::Never, infinities: Infinities::Kept };
    let mut machine = Machine {
        m,
        n,
        k,
        a,
        b,
        c,
        d,
        scale,
        read_a: plain(a),
        read_b: plain(b),
        read_c: plain(c),
        product: Product::Exact,
        rules,
        tree,
        infinite_operands_first: false,
        nan: canonical_nan(dice, &d),
        shape,
        odd,
    };
    let twists = if odd { 3 + dice.below(6) } else { dice.weighted(&[(0, 25), (1, 35), (2, 30), (3, 10)]) };
    for _ in 0..twists {
        twists::twist(dice, &mut machine);
    }
    machine
}

/// A, B, C and D, and the format of block scales.
fn formats(dice: &mut Dice) -> ([Format; 4], Option<Format>) {
    let d = dice.weighted(&[(FP32, 80), (FP16, 20)]);
    let small = dice.pick(&[E4M3, E5M2, E3M2, E2M3, E2M1]);
    let other = dice.pick(&[E4M3, E5M2, E3M2, E2M3, E2M1]);
    let wide = |factors: Format| [factors, factors, FP32, FP32];
    dice.weighted(&[
        ((wide(FP16), None), 13),
        (([FP16, FP16, FP16, FP16], None), 7),
        (([FP16, FP16, FP16, FP32], None), 2),
        (([FP16, FP16, FP32, FP16], None), 2),
        ((wide(BF16), None), 13),
        (([BF16, BF16, BF16, BF16], None), 2),
        ((wide(TF32), None), 8),
        ((wide(FP32), None), 7),
        (([FP64, FP64, FP64, FP64], None), 6),
        (([E4M3, E4M3, d, d], None), 6),
        (([E5M2, E5M2, d, d], None), 5),
        (([E4M3, E5M2, d, d], None), 2),
        (([E5M2, E4M3, d, d], None), 2),
        (([E4M3FNUZ, E4M3FNUZ, FP32, FP32], None), 2),
        (([E5M2FNUZ, E4M3FNUZ, FP32, FP32], None), 1),
        (([E3M2, E3M2, d, d], None), 2),
        (([E2M3, E2M3, d, d], None), 2),
        (([E2M1, E2M1, d, d], None), 2),
        (([small, other, d, d], None), 4),
        (([small, other, FP32, FP32], Some(UE8M0)), 7),
        ((wide(E2M1), Some(UE4M3)), 3),
    ])
}

/// K.
fn terms(dice: &mut Dice) -> usize {
    match dice.below(20) {
        0..=14 => dice.weighted(&[(1, 3), (2, 6), (4, 16), (8, 30), (16, 38), (32, 7)]),
        15..=18 => 1 + dice.below(16),
        _ => 17 + dice.below(16),
    }
}

/// A pattern for every NaN.
fn canonical_nan(dice: &mut Dice, d: &Format) -> NanRule {
    let quiet = 1 << (d.fraction_bits - 1);
    let ones = (1 << d.fraction_bits) - 1;
    let fraction = dice.weighted(&[(quiet, 50), (ones, 40), (1, 5), (quiet | 1, 5)]);
    NanRule::Canonical(d.nan(dice.percent(30), fraction))
}

/// Every sum of a tree, with whether it is the root.
fn each_sum(node: &mut Node, is_root: bool, visit: &mut dyn FnMut(&mut Vec<Node>, &mut usize, bool)) {
    match node {
        Node::Product(_) | Node::C | Node::Zero => {}
        Node::Scaled(child, _) => each_sum(child, false, visit),
        Node::Sum(children, rule) => {
            children.iter_mut().for_each(|child| each_sum(child, false, visit));
            visit(children, rule, is_root);
        }
    }
}
