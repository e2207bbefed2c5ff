//! What the inference waits for: models held against answers. `cargo bench --bench holding`, or with `-- FDRDA` behind it for
//! some shapes only.
//!
//! For each shape, 1,024 random dot-adds in every distribution. `alone` is the scalar executor on one after the other;
//! `lockstep` executes as many at once as vectors have lanes; `rule` holds a neighbour with another rounding of the result
//! against what the model makes of them, and `sums` one whose sums are all aligned otherwise. `open` is the part of
//! these dot-adds that lanes leave to the scalar executor.
//!
//! Each figure is that of the fastest run of many.

use std::hint::black_box;
use std::time::Instant;

use mmaprobe::inference::held::Held;
use mmaprobe::model::scalar::{Changes, Columns, Inputs, Lockstep, Scalar, Scratch, Steps};
use mmaprobe::model::tree::{Added, Fused, Normalised};
use mmaprobe::model::{Level, Model, Rounding};
use mmaprobe::probes::random::{self, Distribution};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

mod shapes;

const DOT_ADDS: usize = 1024;

/// Seconds of a measurement.
const MEASURED: f64 = 0.2;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    println!("nanoseconds a dot-add, {} at best", Level::best());
    println!("{:34} {:>6} {:>8} {:>6} {:>6} {:>6}", "", "alone", "lockstep", "rule", "sums", "open");
    for shape in shapes::all() {
        let algorithm = shape.algorithm.to_string();
        let name = format!("{} {}", algorithm.split('(').next().unwrap_or_default(), shape.instruction.name);
        if name.contains(&only) {
            row(&name, &shape);
        }
    }
}

fn row(name: &str, shape: &shapes::Shape) {
    let model = &shape.model;
    let signature = shape.instruction.signature();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let draw = |index: usize| {
        let distribution = Distribution::ALL[index % Distribution::ALL.len()];
        let q = random::dot_add(distribution, &signature, &mut rng);
        Inputs::new(model, &q.a, &q.b, q.c, &q.sa, &q.sb)
    };
    let inputs: Vec<Inputs> = (0..DOT_ADDS).map(draw).collect();
    let asked: Vec<&Inputs> = inputs.iter().collect();
    let mut alone = Scalar::new(model).expect("an executable model");
    let answers: Vec<u64> = inputs.iter().map(|inputs| alone.execute(inputs)).collect();
    let mut lockstep = Lockstep::new(model).expect("an executable model");
    let held = Held::of(model, asked.iter().copied().zip(answers.iter().copied()));
    let (rounded, aligned) = (rounded_otherwise(model), aligned_otherwise(model));
    let mut found = Vec::with_capacity(DOT_ADDS);
    let times = [
        nanoseconds(|| {
            for inputs in &asked {
                black_box(alone.execute(inputs));
            }
        }),
        nanoseconds(|| {
            found.clear();
            lockstep.execute(&asked, &mut found);
            black_box(&found);
        }),
        nanoseconds(|| {
            black_box(held.contradicted(&rounded, usize::MAX));
        }),
        nanoseconds(|| {
            black_box(held.contradicted(&aligned, usize::MAX));
        }),
    ];
    let open = open(model, &aligned, &asked, &answers);
    let [alone, lockstep, rule, sums] = times;
    println!("{name:34} {alone:6.0} {lockstep:8.0} {rule:6.1} {sums:6.1} {:5.1}%", 100.0 * open);
}

/// The model with its last sum rounded another way.
fn rounded_otherwise(model: &Model) -> Model {
    let mut other = model.clone();
    let last = other.tree.rules.len() - 1;
    if let Normalised::To(round) = &mut other.tree.rules[last].normalised {
        let is_zero = round.rounding == Rounding::TowardZero;
        round.rounding = if is_zero { Rounding::NearestTiesToEven } else { Rounding::TowardZero };
    }
    other
}

/// The model with all its sums aligned another way.
fn aligned_otherwise(model: &Model) -> Model {
    let mut other = model.clone();
    for rule in &mut other.tree.rules {
        rule.added = Added::Fused(Fused::uniform(22, Rounding::Down));
    }
    other
}

/// The part of dot-adds that lanes leave open.
fn open(model: &Model, other: &Model, inputs: &[&Inputs], answers: &[u64]) -> f64 {
    let asked = inputs.iter().copied().zip(answers.iter().copied());
    let columns = Columns::new(model, asked, |x, y| x != y).expect("an executable model");
    let changes = Changes::between(model, other).expect("only rules are others");
    let mut room = Scratch::new(Level::best());
    let (mut from, mut open) = (0, 0);
    while from < inputs.len() {
        let told = columns.differing(other, Steps::Changed(&changes), from, &mut room);
        open += told.is_open.count_ones();
        from += told.number;
    }
    f64::from(open) / inputs.len() as f64
}

/// What something takes for each dot-add, judged by the fastest of many times.
fn nanoseconds(mut work: impl FnMut()) -> f64 {
    work();
    let start = Instant::now();
    let mut fastest = f64::MAX;
    while start.elapsed().as_secs_f64() < MEASURED {
        let begin = Instant::now();
        work();
        fastest = fastest.min(begin.elapsed().as_secs_f64());
    }
    fastest * 1e9 / DOT_ADDS as f64
}
