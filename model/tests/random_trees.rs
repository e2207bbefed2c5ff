//! The executors on random trees with random rules: the general one against a tree evaluator over big
//! rationals, the scalar one against the general one.

mod common;

use common::evaluator::{Value, evaluate};
use common::inputs::{DotAdd, Operands};
use common::rational::{Rounded, is_encoded};
use common::spec::Spec;
use common::{cases, on_two_threads, trees};
use mmaprobe_model::Executor;
use mmaprobe_model::scalar::{Inputs, Scalar};
use rand::SeedableRng;
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
