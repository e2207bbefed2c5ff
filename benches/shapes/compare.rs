//! Compiled forms against the general executor, bit for bit.

use mmaprobe::batch;
use mmaprobe::bits::{ShownDotAdd, hex};
use mmaprobe::device::{Batch, Instruction, element};
use mmaprobe::model::compiled::Problems;
use mmaprobe::model::{Compiled, Executor};
use mmaprobe::probes::random::{Distribution, Generator, Matrices};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The first element of random problems on which one of the forms of a model differs from the executor.
pub fn mismatch(
    instruction: &Instruction,
    forms: &[Compiled],
    distribution: Distribution,
    problems: usize,
    seed: u64,
) -> Option<String> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut generator = Generator::new(instruction.m, instruction.n, &instruction.signature());
    let mut matrices = Matrices::default();
    let mut batch = Batch::default();
    for _ in 0..problems {
        generator.fill(distribution, &mut rng, &mut matrices);
        batch::push(&mut batch, instruction, &matrices);
    }
    mismatch_on(instruction, forms, &batch)
}

/// The first element of a batch on which one of the forms of a model differs from the executor.
pub fn mismatch_on(instruction: &Instruction, forms: &[Compiled], batch: &Batch) -> Option<String> {
    let Instruction { m, n, .. } = *instruction;
    let question = |place: usize| {
        let (problem, at) = (place / (m * n), place % (m * n));
        batch::dot_add_at(instruction, batch, problem, at / n, at % n)
    };
    let mut executor = Executor::new(forms[0].model()).expect("an executable model");
    let expected: Vec<u64> = (0..batch.count * m * n)
        .map(|place| {
            let q = question(place);
            executor.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb)
        })
        .collect();
    let Batch { a, b, c, sa, sb, count } = batch;
    forms.iter().find_map(|form| {
        let mut d = vec![0; expected.len() * instruction.d.bytes];
        form.run(&Problems { count: *count, m, n, a, b, c, sa, sb }, &mut d);
        let found = |place| element(&d, &instruction.d, place);
        let place = (0..expected.len()).find(|&place| found(place) != expected[place])?;
        let (signature, dot_add) = (instruction.signature(), question(place));
        Some(format!(
            "{} of {} at {}: {} instead of {} in element {place}\n{}",
            form.kernel(),
            instruction.name,
            form.level(),
            hex(&instruction.d, found(place)),
            hex(&instruction.d, expected[place]),
            ShownDotAdd { signature: &signature, dot_add: &dot_add }
        ))
    })
}
