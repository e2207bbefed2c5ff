//! Compiled forms against the general executor, which is another formulation of the same arithmetic (and
//! is itself held against rational numbers and recordings): bit for bit, at each instruction set.
//!
//! `cargo run --release --example fastcheck -- --count 100000000` compares as many as one has time for.

use mmaprobe::device::{Batch, Instruction};
use mmaprobe::model::algorithms::{Algorithm, Output, Types};
use mmaprobe::model::format::{
    E2M1, E2M3, E3M2, E4M3, E4M3FNUZ, E5M2, E5M2FNUZ, FP32, Overflow, Subnormals, Tininess,
};
use mmaprobe::model::tree::{
    Added, Alignment, Beyond, Carry, Exponents, InputSubnormals, NanRule, NanSource, Propagation, ZeroSigns,
    ZeroTerms,
};
use mmaprobe::model::{Compiled, Level, Model, Rounding};
use mmaprobe::probes::random::Distribution;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

#[path = "../benches/shapes/compare.rs"]
mod compare;
#[path = "../benches/shapes/mod.rs"]
mod shapes;

/// The forms of a model at each instruction set that this machine has.
fn forms(model: &Model) -> Vec<Compiled> {
    let levels = Level::ALL.into_iter().filter(|level| level.is_available());
    levels.map(|level| Compiled::at_level(model, level).expect("an executable model")).collect()
}

#[test]
fn every_shape_in_every_distribution() {
    for shape in shapes::all() {
        let forms = forms(&shape.model);
        assert_ne!(forms[0].kernel(), "scalar", "{}", shape.algorithm);
        for (seed, distribution) in (0..).zip(Distribution::ALL) {
            let problems = (1000 / (shape.instruction.m * shape.instruction.n)).max(1);
            let found = compare::mismatch(&shape.instruction, &forms, distribution, problems, seed);
            assert_eq!(found, None, "{} {distribution}", shape.algorithm);
        }
    }
}

/// Exact sums whose zeros have signs that the sum they are added in forgets, as they are found where that does not show.
#[test]
fn signs_that_are_forgotten_are_compiled() {
    let is_grouped = |model: &Model| {
        model.scale.is_some() && model.tree.rules.iter().any(|rule| rule.added == Added::Exact)
    };
    let grouped: Vec<shapes::Shape> =
        shapes::all().into_iter().filter(|shape| is_grouped(&shape.model)).collect();
    assert!(!grouped.is_empty(), "no shape adds exact sums");
    for shape in grouped {
        for bits in 1..8 {
            let signs = ZeroSigns {
                negative_zeros_stay: bits & 1 != 0,
                cancellation_is_negative: bits & 2 != 0,
                underflow_keeps_sign: bits & 4 != 0,
            };
            let mut model = shape.model.clone();
            let of_groups = model.tree.rules.iter_mut().filter(|rule| rule.added == Added::Exact);
            of_groups.for_each(|rule| rule.zero = signs);
            let forms = forms(&model);
            assert_ne!(forms[0].kernel(), "scalar", "{} {signs:?}", shape.algorithm);
            for (seed, distribution) in (0..).zip(Distribution::ALL) {
                let found = compare::mismatch(&shape.instruction, &forms, distribution, 1, seed);
                assert_eq!(found, None, "{} {distribution} {signs:?}", shape.algorithm);
            }
        }
    }
}

/// Every pair of two 8-bit patterns, with c zero, ordinary, and far below.
#[test]
fn every_product_of_8_bits() {
    let fda = Algorithm::Fda { fraction_bits: 25, output: Output::Rz23 };
    let narrow = Algorithm::Fda { fraction_bits: 3, output: Output::Rz13 };
    let of_8_bits = [(E4M3, E4M3), (E5M2, E5M2), (E4M3, E5M2), (E4M3FNUZ, E4M3FNUZ), (E5M2FNUZ, E4M3FNUZ)];
    for (a, b) in of_8_bits.into_iter().chain([(E3M2, E2M3), (E2M1, E2M1)]) {
        let fused = [fda, narrow]
            .map(|algorithm| algorithm.model(&Types { a, b, c: FP32, d: FP32, k: 1, scale: None }).unwrap());
        let mut chain = Model::chain_of_fma(a, FP32, 1);
        chain.b.format = b;
        let mut flushing = chain.clone();
        flushing.a.subnormals = InputSubnormals::FlushedToPositiveZero;
        flushing.b.subnormals = InputSubnormals::FlushedToSignedZero;
        for model in fused.into_iter().chain([chain, flushing]) {
            let forms = forms(&model);
            assert_ne!(forms[0].kernel(), "scalar", "{a} {b}");
            let name = format!("{} {a} {b}", forms[0].kernel());
            let instruction = Instruction {
                m: 256,
                n: 256,
                k: 1,
                a,
                b,
                c: FP32,
                d: FP32,
                scale: None,
                mode_of: None,
                name: name.clone(),
            };
            for c in [0.0_f32, -1.5, 1e-9] {
                let batch = Batch {
                    count: 1,
                    a: (0..=255).collect(),
                    b: (0..=255).collect(),
                    c: c.to_le_bytes().repeat(65536),
                    ..Batch::default()
                };
                assert_eq!(compare::mismatch_on(&instruction, &forms, &batch), None, "{name}");
            }
        }
    }
}

/// Draws from a table.
fn pick<T: Copy>(rng: &mut impl Rng, table: &[T]) -> T {
    table[(rng.next_u64() % table.len() as u64) as usize]
}

/// Changes a model into one that no hardware may have.
fn change(model: &mut Model, rng: &mut impl Rng) {
    let inputs =
        [InputSubnormals::Kept, InputSubnormals::FlushedToPositiveZero, InputSubnormals::FlushedToSignedZero];
    for operand in [&mut model.a, &mut model.b, &mut model.c] {
        if rng.next_u64().is_multiple_of(4) {
            operand.subnormals = pick(rng, &inputs);
        }
    }
    let propagation = Propagation {
        generated: 0xffc0_0000,
        order: [NanSource::B, NanSource::Accumulator, NanSource::A],
        later_first: true,
        quieted: true,
        generated_first: false,
    };
    let rules = [NanRule::Unknown, NanRule::Propagated(propagation), model.nan];
    model.nan = pick(rng, &rules);
    let same_zeros = pick(rng, &[true, true, false]);
    let all_zeros =
        [ZeroTerms::Ignored, ZeroTerms::SumsCounted, ZeroTerms::Counted, ZeroTerms::CountedAsFp32];
    let zeros = pick(rng, &all_zeros);
    let signs = ZeroSigns {
        negative_zeros_stay: pick(rng, &[true, false]),
        cancellation_is_negative: pick(rng, &[true, false, false]),
        underflow_keeps_sign: pick(rng, &[true, false]),
    };
    let one_sign = pick(rng, &[true, true, false]);
    for rule in &mut model.tree.rules {
        if one_sign || rng.next_u64().is_multiple_of(2) {
            rule.zero = signs;
        }
        if let Added::Fused(fused) = &mut rule.added {
            fused.zeros = if same_zeros { zeros } else { pick(rng, &all_zeros) };
            fused.floor = pick(rng, &[None, None, Some(-133), Some(0), Some(20)]);
            fused.exponents =
                pick(rng, &[Exponents::Raw, Exponents::Raw, Exponents::Raw, Exponents::Normalised]);
            let carries = [None, None, None, Some(Carry { bits: 2, beyond: Beyond::Saturates })];
            fused.carry = pick(rng, &carries);
            if rng.next_u64().is_multiple_of(3) {
                let alignment = Alignment {
                    fraction_bits: pick(rng, &[0, 3, 11, 22, 27, 31, 40]),
                    rounding: pick(rng, &[Rounding::TowardZero, Rounding::Down, Rounding::NearestTiesToEven]),
                    far: None,
                };
                let at = rng.next_u64() as usize % fused.alignment.len();
                fused.alignment[at] = alignment;
            }
        }
        if rng.next_u64().is_multiple_of(2)
            && let Some(round) = rule.round_to()
        {
            round.rounding = pick(rng, &Rounding::ALL);
            round.overflow = pick(rng, &[Overflow::Infinity, Overflow::Largest, Overflow::ByRounding]);
            let flushed = Subnormals::Flushed { tiny: Tininess::AfterRounding, sign_kept: true };
            round.subnormals = pick(rng, &[Subnormals::Kept, Subnormals::Kept, flushed]);
            round.fraction_bits -= pick(rng, &[0, 0, 3]);
        }
    }
}

#[test]
fn models_that_no_hardware_has() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut scalar = 0;
    let mut all = 0;
    for shape in shapes::all() {
        for _ in 0..40 {
            let mut model = shape.model.clone();
            change(&mut model, &mut rng);
            let forms = forms(&model);
            all += 1;
            if forms[0].kernel() == "scalar" {
                scalar += 1;
            }
            let distribution = pick(&mut rng, &Distribution::ALL);
            let problems = (200 / (shape.instruction.m * shape.instruction.n)).max(1);
            let instruction = Instruction { m: shape.instruction.m.min(17), ..shape.instruction.clone() };
            let found = compare::mismatch(&instruction, &forms, distribution, problems, rng.next_u64());
            assert_eq!(found, None, "{model:?}");
        }
    }
    assert!(
        scalar < all * 9 / 10,
        "hardly any of the changed models was compiled: {scalar} of {all} were not"
    );
}

#[test]
fn levels_are_found_by_name() {
    for level in Level::ALL {
        assert_eq!(Level::named(level.name()), Some(level));
    }
    assert!(Level::best().is_available());
}
