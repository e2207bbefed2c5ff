//! Between questions and the bytes that devices take.

use crate::device::{Batch, Device, DeviceError, Instruction, element, run_checked, set_element};
use crate::model::Format;
use crate::probes::DotAdd;
use crate::probes::random::Matrices;

/// A batch that asks independent dot-adds: min(m, n) in each problem, on its diagonal, and zeros
/// elsewhere. [`answers`] finds the results.
///
/// # Panics
/// If a dot-add is shorter than the instruction's K.
pub fn batch_of(instruction: &Instruction, questions: &[DotAdd]) -> Batch {
    let diagonal = instruction.m.min(instruction.n);
    let (m, n, k) = (instruction.m, instruction.n, instruction.k);
    let mut batch = Batch::zeros(instruction, questions.len().div_ceil(diagonal));
    let scales = instruction.signature().scales();
    let fill = |array: &mut [u8], format: &Format, first: usize, elements: &[u64]| {
        for (offset, &bits) in elements.iter().enumerate() {
            set_element(array, format, first + offset, bits);
        }
    };
    for (index, question) in questions.iter().enumerate() {
        let (problem, at) = (index / diagonal, index % diagonal);
        let (row, column) = (problem * m + at, problem * n + at);
        fill(&mut batch.a, &instruction.a, row * k, &question.a[..k]);
        fill(&mut batch.b, &instruction.b, column * k, &question.b[..k]);
        set_element(&mut batch.c, &instruction.c, row * n + at, question.c);
        if let Some(scale) = &instruction.scale {
            fill(&mut batch.sa, &scale.format, row * scales, &question.sa[..scales]);
            fill(&mut batch.sb, &scale.format, column * scales, &question.sb[..scales]);
        }
    }
    batch
}

/// The results of the `count` dot-adds of a [`batch_of`] them, from the device's answer.
///
/// # Panics
/// If the answer is too short.
pub fn answers(instruction: &Instruction, count: usize, answer: &[u8]) -> Vec<u64> {
    let diagonal = instruction.m.min(instruction.n);
    (0..count)
        .map(|index| {
            let (problem, at) = (index / diagonal, index % diagonal);
            element(answer, &instruction.d, (problem * instruction.m + at) * instruction.n + at)
        })
        .collect()
}

/// What a device answers to independent dot-adds, in one call.
///
/// # Errors
/// If the device fails, or answers with another number of bytes than D has.
///
/// # Panics
/// If a dot-add is shorter than the instruction's K.
pub fn ask(
    device: &dyn Device,
    instruction: &Instruction,
    questions: &[DotAdd],
) -> Result<Vec<u64>, DeviceError> {
    let answer = run_checked(device, instruction, &batch_of(instruction, questions))?;
    Ok(answers(instruction, questions.len(), &answer))
}

/// A batch in which each problem is one dot-add at every (i, j).
///
/// # Panics
/// If a dot-add is shorter than the instruction's K.
pub fn broadcast(instruction: &Instruction, questions: &[DotAdd]) -> Batch {
    let mut batch = Batch::default();
    for question in questions {
        push(
            &mut batch,
            instruction,
            &Matrices {
                a: question.a.repeat(instruction.m),
                b: question.b.repeat(instruction.n),
                c: vec![question.c; instruction.m * instruction.n],
                sa: question.sa.repeat(instruction.m),
                sb: question.sb.repeat(instruction.n),
            },
        );
    }
    batch
}

/// Appends a problem to a batch.
pub fn push(batch: &mut Batch, instruction: &Instruction, problem: &Matrices) {
    let scale = instruction.scale.map_or(instruction.c, |scale| scale.format);
    for (array, format, elements) in [
        (&mut batch.a, instruction.a, &problem.a),
        (&mut batch.b, instruction.b, &problem.b),
        (&mut batch.c, instruction.c, &problem.c),
        (&mut batch.sa, scale, &problem.sa),
        (&mut batch.sb, scale, &problem.sb),
    ] {
        let at = array.len();
        array.resize(at + elements.len() * format.bytes, 0);
        let array = &mut array[at..];
        match format.bytes {
            1 => array.iter_mut().zip(elements).for_each(|(to, &bits)| *to = bits as u8),
            2 => store(array, elements, |bits| (bits as u16).to_le_bytes()),
            4 => store(array, elements, |bits| (bits as u32).to_le_bytes()),
            _ => store(array, elements, u64::to_le_bytes),
        }
    }
    batch.count += 1;
}

fn store<const N: usize>(array: &mut [u8], elements: &[u64], bytes: impl Fn(u64) -> [u8; N]) {
    for (to, &bits) in array.as_chunks_mut::<N>().0.iter_mut().zip(elements) {
        *to = bytes(bits);
    }
}

/// Empties a batch and keeps its memory.
pub fn clear(batch: &mut Batch) {
    batch.count = 0;
    for array in [&mut batch.a, &mut batch.b, &mut batch.c, &mut batch.sa, &mut batch.sb] {
        array.clear();
    }
}

/// The dot-add that computes element (i, j) of a problem of a batch.
///
/// # Panics
/// If the batch has no such element.
pub fn dot_add_at(instruction: &Instruction, batch: &Batch, problem: usize, i: usize, j: usize) -> DotAdd {
    let (m, n, k) = (instruction.m, instruction.n, instruction.k);
    let (row, column) = (problem * m + i, problem * n + j);
    let read = |array: &[u8], format: &Format, first: usize, count: usize| {
        (first..first + count).map(|index| element(array, format, index)).collect()
    };
    let scales = |array: &[u8], line: usize| match &instruction.scale {
        None => Vec::new(),
        Some(scale) => read(array, &scale.format, line * (k / scale.block), k / scale.block),
    };
    DotAdd {
        a: read(&batch.a, &instruction.a, row * k, k),
        b: read(&batch.b, &instruction.b, column * k, k),
        c: element(&batch.c, &instruction.c, row * n + j),
        sa: scales(&batch.sa, row),
        sb: scales(&batch.sb, column),
    }
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::model::format::{E2M1, FP32, UE4M3};
    use crate::model::tree::Scale;
    use crate::probes::random::{self, Distribution, Generator};

    fn instruction() -> Instruction {
        Instruction {
            name: "test".into(),
            m: 3,
            n: 2,
            k: 32,
            a: E2M1,
            b: E2M1,
            c: FP32,
            d: FP32,
            scale: Some(Scale { format: UE4M3, block: 16 }),
            mode_of: None,
        }
    }

    #[test]
    fn dot_adds_stand_on_the_diagonal() {
        let instruction = instruction();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let questions: Vec<DotAdd> = (0..5)
            .map(|_| random::dot_add(Distribution::NearExponents, &instruction.signature(), &mut rng))
            .collect();
        let batch = batch_of(&instruction, &questions);
        assert_eq!(batch.count, 3);
        for (index, question) in questions.iter().enumerate() {
            assert_eq!(&dot_add_at(&instruction, &batch, index / 2, index % 2, index % 2), question);
        }
        // C in the place of D: the answers are the c.
        let c: Vec<u64> = questions.iter().map(|question| question.c).collect();
        assert_eq!(answers(&instruction, 5, &batch.c), c);
    }

    #[test]
    fn pushed_problems_are_found_again() {
        let instruction = instruction();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut generator = Generator::new(3, 2, &instruction.signature());
        let mut batch = Batch::default();
        let mut problem = Matrices::default();
        for index in 0..4 {
            generator.fill(Distribution::UniformBits, &mut rng, &mut problem);
            push(&mut batch, &instruction, &problem);
            let found = dot_add_at(&instruction, &batch, index, 2, 1);
            assert_eq!(found.a, problem.a[2 * 32..]);
            assert_eq!(found.b, problem.b[32..]);
            assert_eq!(found.c, problem.c[2 * 2 + 1]);
            assert_eq!((&found.sa[..], &found.sb[..]), (&problem.sa[4..], &problem.sb[2..]));
        }
        assert_eq!(batch.arrays().map(<[u8]>::len), Batch::zeros(&instruction, 4).arrays().map(<[u8]>::len));
        clear(&mut batch);
        assert_eq!(batch, Batch::default());
    }
}
