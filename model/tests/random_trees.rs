//! The executors on random trees with random rules: the general one against a tree evaluator over big
//! rationals, the scalar one against the general one.

mod common;

use common::evaluator::{Value, evaluate};
use common::inputs::{DotAdd, Operands};
use common::rational::{Rounded, is_encoded};
use common::spec::Spec;
use common::{cases, on_two_threads, trees};
use mmaprobe_model::scalar::{Changes, Columns, Grafts, Inputs, Known, Lockstep, Scalar, Scratch, Steps};
use mmaprobe_model::tree::NanRule;
use mmaprobe_model::{Executor, Level, Model, format};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

#[test]
fn random_trees() {
    const DOT_ADDS: u64 = 20;
    on_two_threads(cases(50_000), 11, |trees, seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut x = DotAdd::default();
        for tree in 0..trees {
            let model = trees::model(&mut rng);
            let d = Spec::of(model.d.name);
            let mut executor = Executor::new(&model).unwrap();
            let operands = Operands::of(&model);
            for _ in 0..DOT_ADDS {
                operands.fill(&mut rng, &mut x);
                let got = executor.dot_add(&x.a, &x.b, x.c, &x.sa, &x.sb);
                let expected = evaluate(&model, &x);
                let agrees = match &expected {
                    Value::Nan { .. } => matches!(d.read(got), common::spec::Read::Nan) || !model.d.has_nan(),
                    Value::Inf { neg, .. } => is_encoded(&d, got, &Rounded::Infinite { neg: *neg }),
                    Value::Num(n) => is_encoded(&d, got, &Rounded::Number { neg: n.neg, x: n.x.clone() }),
                };
                assert!(agrees, "tree {tree}: {got:#x}, not {expected:?}, for {x:x?} in {model:#?}");
            }
        }
    });
}

/// The patterns of NaNs included, which the rationals know nothing of.
#[test]
fn the_scalar_executor_gives_what_the_general_one_gives() {
    const DOT_ADDS: u64 = 20;
    on_two_threads(cases(50_000), 12, |trees, seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut x = DotAdd::default();
        for tree in 0..trees {
            let mut model = trees::model(&mut rng);
            model.nan = trees::nan_rule(&model.d, &mut rng);
            let operands = Operands::of(&model);
            let mut executor = Executor::new(&model).unwrap();
            let mut scalar = Scalar::new(&model).unwrap();
            // Another model's view of the operands: they are taken apart again.
            let other = trees::model(&mut rng);
            for _ in 0..DOT_ADDS {
                operands.fill(&mut rng, &mut x);
                let expected = executor.dot_add(&x.a, &x.b, x.c, &x.sa, &x.sb);
                let bits = scalar.dot_add(&x.a, &x.b, x.c, &x.sa, &x.sb);
                assert_eq!(bits, expected, "tree {tree}: {x:x?} in {model:#?}");
                for decoded_for in [&model, &other] {
                    let inputs = Inputs::new(decoded_for, &x.a, &x.b, x.c, &x.sa, &x.sb);
                    assert_eq!(scalar.execute(&inputs), expected, "tree {tree}: {x:x?} in {model:#?}");
                }
            }
        }
    });
}

/// From the values of a model that differs in one thing: what is not evaluated again is the same.
#[test]
fn the_scalar_executor_gives_the_same_from_the_values_of_a_neighbour() {
    const NEIGHBOURS: u64 = 4;
    const DOT_ADDS: u64 = 10;
    on_two_threads(cases(25_000), 13, |trees, seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut x = DotAdd::default();
        let mut taken_over = 0;
        for tree in 0..trees {
            let mut model = trees::model(&mut rng);
            model.nan = trees::nan_rule(&model.d, &mut rng);
            let operands = Operands::of(&model);
            let mut scalar = Scalar::new(&model).unwrap();
            for _ in 0..NEIGHBOURS {
                let other = trees::neighbour(&model, &mut rng);
                let changes =
                    Changes::between(&model, &other).expect("the trees and the formats are the same");
                let mut executor = Executor::new(&other).unwrap();
                let mut from = Scalar::new(&other).unwrap();
                let mut known = Known::default();
                for _ in 0..DOT_ADDS {
                    operands.fill(&mut rng, &mut x);
                    let inputs = Inputs::new(&model, &x.a, &x.b, x.c, &x.sa, &x.sb);
                    let Some(nodes) = scalar.nodes(&inputs) else { continue };
                    taken_over += 1;
                    let expected = executor.dot_add(&x.a, &x.b, x.c, &x.sa, &x.sb);
                    let bits = from.execute_from(&inputs, &nodes, &changes, &mut known);
                    let bits = bits.unwrap_or_else(|| from.execute(&inputs));
                    assert_eq!(
                        bits, expected,
                        "tree {tree}: {x:x?} in {other:#?}, a neighbour of {model:#?}"
                    );
                    // Values that are no numbers, and what is left of other inputs, make no difference.
                    match from.first_difference(&inputs, &nodes, &changes, &mut known) {
                        Some(Some([before, now])) => {
                            assert_ne!(before, now, "tree {tree}: {x:x?} in {other:#?}")
                        }
                        Some(None) => assert_eq!(bits, nodes.d(), "tree {tree}: {x:x?} in {other:#?}"),
                        None => {}
                    }
                }
            }
        }
        // Few values are too wide to be kept.
        assert!(taken_over > trees * NEIGHBOURS * DOT_ADDS * 3 / 4, "{taken_over} of {trees} trees");
    });
}

/// One executor after another set of rules: nothing is left of those that it followed before.
#[test]
fn the_scalar_executor_follows_other_rules() {
    const CHANGES: u64 = 6;
    const DOT_ADDS: u64 = 5;
    on_two_threads(cases(10_000), 14, |trees, seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut x = DotAdd::default();
        for tree in 0..trees {
            let model = trees::model(&mut rng);
            let operands = Operands::of(&model);
            let mut own = Scalar::new(&model).unwrap();
            let mut scalar = Scalar::new(&model).unwrap();
            let mut known = Known::default();
            for _ in 0..CHANGES {
                let mut other = model.clone();
                other.tree.rules = trees::neighbour(&model, &mut rng).tree.rules;
                let is_other = |&rule: &usize| other.tree.rules[rule] != model.tree.rules[rule];
                let places: Vec<usize> = (0..model.tree.rules.len()).filter(is_other).collect();
                let changes = Changes::of_rules(&model, &places);
                scalar.follow(&other.tree.rules).expect("the other can be executed");
                let mut executor = Executor::new(&other).unwrap();
                for _ in 0..DOT_ADDS {
                    operands.fill(&mut rng, &mut x);
                    let expected = executor.dot_add(&x.a, &x.b, x.c, &x.sa, &x.sb);
                    let inputs = Inputs::new(&model, &x.a, &x.b, x.c, &x.sa, &x.sb);
                    // All nodes are evaluated afterwards: what was left of other inputs would be gone.
                    let bits = own.nodes(&inputs).and_then(|nodes| {
                        known.same.clear();
                        scalar.execute_from(&inputs, &nodes, &changes, &mut known)
                    });
                    assert!(bits.is_none_or(|bits| bits == expected), "tree {tree}: {x:x?} in {other:#?}");
                    if rng.random() {
                        assert_eq!(scalar.execute(&inputs), expected, "tree {tree}: {x:x?} in {other:#?}");
                    }
                }
            }
        }
    });
}

/// In lanes, at every level that this machine has: what is said of a dot-add is right, and little is left open.
#[test]
fn columns_tell_what_the_general_executor_gives() {
    const CHANGES: u64 = 4;
    const DOT_ADDS: usize = 37;
    on_two_threads(cases(20_000), 15, |trees, seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut x = DotAdd::default();
        let (mut all, mut open) = (0, 0);
        let mut rooms: Vec<Scratch> =
            Level::ALL.into_iter().filter(|level| level.is_available()).map(Scratch::new).collect();
        for tree in 0..trees {
            let model = trees::model(&mut rng);
            let operands = Operands::of(&model);
            let mut scalar = Scalar::new(&model).unwrap();
            for _ in 0..CHANGES {
                let mut other = model.clone();
                for _ in 0..rng.random_range(1..3) {
                    other.tree.rules = trees::neighbour(&other, &mut rng).tree.rules;
                }
                let changes = Changes::between(&model, &other).expect("only rules are others");
                assert!(changes.are_of_sums());
                let mut executor = Executor::new(&other).unwrap();
                let mut asked: Vec<(Inputs, u64)> = Vec::new();
                let mut expected: Vec<u64> = Vec::new();
                for _ in 0..DOT_ADDS {
                    operands.fill(&mut rng, &mut x);
                    let d = executor.dot_add(&x.a, &x.b, x.c, &x.sa, &x.sb);
                    let inputs = Inputs::new(&model, &x.a, &x.b, x.c, &x.sa, &x.sb);
                    let before = scalar.execute(&inputs);
                    let wanted = match rng.random_range(0..4) {
                        0 => before,
                        1 => d ^ 1 << rng.random_range(0..model.d.bits()),
                        _ => d,
                    };
                    asked.push((inputs, wanted));
                    expected.push(d);
                }
                let mut found = Vec::new();
                let inputs: Vec<&Inputs> = asked.iter().map(|(inputs, _)| inputs).collect();
                Lockstep::new(&other).unwrap().execute(&inputs, &mut found);
                assert_eq!(found, expected, "tree {tree}: {inputs:x?} by {other:#?}");
                let held = asked.iter().map(|(inputs, wanted)| (inputs, *wanted));
                let columns = Columns::new(&model, held, |x, y| x != y).unwrap();
                let grafts = Grafts::between(&model, &other).expect("only rules are others");
                // What is told of a dot-add does not depend on those beside it.
                let mut tell = |room: &mut Scratch| {
                    let mut all: Vec<[bool; 3]> = Vec::new();
                    while all.len() < DOT_ADDS {
                        let told = columns.differing(&other, Steps::Changed(&changes), all.len(), room);
                        let each = [told.differs, told.is_open, told.differs_inside];
                        all.extend((0..told.number).map(|lane| each.map(|bits| bits >> lane & 1 == 1)));
                    }
                    all
                };
                let at_each_level: Vec<_> = rooms.iter_mut().map(&mut tell).collect();
                assert!(at_each_level.windows(2).all(|levels| levels[0] == levels[1]), "{other:#?}");
                for room in &mut rooms {
                    let mut from = 0;
                    while from < DOT_ADDS {
                        let steps =
                            trees::one_of(&[Steps::Changed(&changes), Steps::Grafted(&grafts)], &mut rng);
                        let told = columns.differing(&other, steps, from, room);
                        for lane in 0..told.number {
                            all += 1;
                            let place = from + lane;
                            if told.is_open >> lane & 1 == 1 {
                                open += 1;
                                continue;
                            }
                            assert_eq!(
                                told.differs >> lane & 1 == 1,
                                expected[place] != asked[place].1,
                                "tree {tree}, {room:?}: {:x?} in {other:#?}, a neighbour of {model:#?}",
                                asked[place]
                            );
                        }
                        from += told.number;
                    }
                    assert_eq!(from, DOT_ADDS);
                }
            }
        }
        // A third of these operands are infinite, or no numbers, or far apart.
        assert!(open < all / 2, "{open} of {all}");
    });
}

#[test]
fn models_over_other_trees_or_formats_are_not_neighbours() {
    let model = Model::chain_of_fma(format::FP32, format::FP32, 2);
    assert!(Changes::between(&model, &model).is_some());
    let longer = Model::chain_of_fma(format::FP32, format::FP32, 3);
    let narrower = Model::chain_of_fma(format::FP16, format::FP32, 2);
    let other_nan = Model { nan: NanRule::Canonical(0x7fff_ffff), ..model.clone() };
    for other in [&longer, &narrower, &other_nan] {
        assert!(Changes::between(&model, other).is_none());
    }
}
