use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::device::{Fault, Identity, Provenance, simulated as virtual_device};
use crate::model::format::{BF16, E4M3, FP16, FP32, RoundTo, Subnormals, Tininess};
use crate::model::tree::{Added, Fused, InputSubnormals, Model, NanRule, Node, Rule};
use crate::model::{Executor, Rounding};
use crate::probes::boundaries::Boundaries;

/// A device that executes one model.
struct Simulated {
    identity: Identity,
    instructions: Vec<Instruction>,
    model: Model,
    /// Fails when it meets a c with these bits.
    fails_on: Option<u64>,
}

fn simulated(m: usize, n: usize, model: Model) -> Simulated {
    let instruction = Instruction {
        name: "test".into(),
        m,
        n,
        k: model.k,
        a: model.a.format,
        b: model.b.format,
        c: model.c.format,
        d: model.d,
        scale: model.scale,
        mode_of: None,
    };
    let identity = Identity {
        name: "sim:test".into(),
        description: String::new(),
        properties: vec![],
        provenance: Provenance::Simulated,
        absent: vec![],
    };
    Simulated { identity, instructions: vec![instruction], model, fails_on: None }
}

impl Device for Simulated {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        let mut executor = Executor::new(&self.model).unwrap();
        let mut answer = vec![0; batch.count * instruction.bytes().d];
        for index in 0..batch.count * instruction.m * instruction.n {
            let (problem, at) =
                (index / (instruction.m * instruction.n), index % (instruction.m * instruction.n));
            let q = batch::dot_add_at(instruction, batch, problem, at / instruction.n, at % instruction.n);
            if self.fails_on.is_some_and(|c| c == q.c) {
                let fault = Fault::Refused("no such c".into());
                return Err(DeviceError { device: self.identity.name.clone(), fault });
            }
            let d = executor.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb);
            crate::device::set_element(&mut answer, &instruction.d, index, d);
        }
        Ok(answer)
    }
}

fn plan(sets: u64) -> Plan {
    Plan { sets, seed: 7, distributions: Distribution::ALL.to_vec(), nans: Nans::Bits }
}

fn compare(x: &Simulated, y: &Simulated, plan: &Plan) -> Result<Outcome, ValidationError> {
    validate(x, &x.instructions[0], y, &y.instructions[0], plan, &|_| {})
}

/// Finds the difference between two models and returns how many summands it takes.
fn summands_of_difference(m: usize, n: usize, x: &Model, y: &Model) -> usize {
    let (x, y) = (simulated(m, n, x.clone()), simulated(m, n, y.clone()));
    let outcome = compare(&x, &y, &plan(60_000)).unwrap();
    let mismatch = outcome.mismatch.expect("the models differ");
    let signature = x.instructions[0].signature();
    let text = mismatch.describe(&signature, ("sim:one", "sim:other"));
    println!("{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(mismatch.reproduced_alone);
    assert_ne!(mismatch.shrunk_answers.0, mismatch.shrunk_answers.1);
    let shrunk = &mismatch.shrunk;
    let products = shrunk.a.iter().zip(&shrunk.b).filter(|product| *product != (&0, &0)).count();
    products + usize::from(shrunk.c != 0)
}

fn with_rounding(mut model: Model, change: impl Fn(&mut RoundTo)) -> Model {
    for rule in &mut model.tree.rules {
        change(rule.round_to().unwrap());
    }
    model
}

/// All products and c fused, as tensor cores do.
fn fused(k: usize, fraction_bits: u32) -> Model {
    let mut model = Model::chain_of_fma(FP16, FP32, k);
    let mut nodes: Vec<Node> = (0..k).map(Node::Product).collect();
    nodes.push(Node::Accumulator);
    nodes.push(Node::Sum { children: (0..=k).collect(), rule: 0 });
    let mut rule = Rule::ieee(FP32);
    rule.added = Added::Fused(Fused::uniform(fraction_bits, Rounding::TowardZero));
    rule.round_to().unwrap().rounding = Rounding::TowardZero;
    model.tree.nodes = nodes.into();
    model.tree.rules = vec![rule];
    model
}

#[test]
fn ties_to_even_and_away_differ_in_two_summands() {
    for (m, n, ab, k) in [(1, 1, FP32, 1), (4, 3, BF16, 8)] {
        let even = Model::chain_of_fma(ab, FP32, k);
        let away = with_rounding(even.clone(), |round| round.rounding = Rounding::NearestTiesAway);
        assert!(summands_of_difference(m, n, &even, &away) <= 2);
    }
}

#[test]
fn flushing_before_or_after_rounding_differs_in_two_summands() {
    let flushed = |tiny| {
        with_rounding(Model::chain_of_fma(FP32, FP32, 1), |round| {
            round.subnormals = Subnormals::Flushed { tiny, sign_kept: true };
        })
    };
    let before = flushed(Tininess::BeforeRounding);
    let after = flushed(Tininess::AfterRounding);
    assert!(summands_of_difference(1, 1, &before, &after) <= 2);
    assert!(summands_of_difference(1, 1, &after, &flushed(Tininess::Delivered)) <= 2);
}

#[test]
fn signs_of_zero_and_of_flushed_operands_are_found() {
    let plain = Model::chain_of_fma(BF16, FP32, 4);
    let mut no_negative_zero = plain.clone();
    no_negative_zero.tree.rules[0].zero.negative_zeros_stay = false;
    // −0 needs every one of the summands to be −0.
    assert!(summands_of_difference(2, 2, &plain, &no_negative_zero) <= 5);
    let mut flushed = plain.clone();
    flushed.c.subnormals = InputSubnormals::FlushedToPositiveZero;
    assert!(summands_of_difference(2, 2, &plain, &flushed) <= 2);
    let mut signed = plain;
    signed.c.subnormals = InputSubnormals::FlushedToSignedZero;
    assert!(summands_of_difference(2, 2, &flushed, &signed) <= 5);
}

#[test]
fn one_bit_of_alignment_and_its_rounding_are_found() {
    assert!(summands_of_difference(4, 4, &fused(16, 24), &fused(16, 25)) <= 3);
    let mut floor = fused(16, 25);
    let Added::Fused(rule) = &mut floor.tree.rules[0].added else { panic!() };
    rule.alignment[0].rounding = Rounding::Down;
    assert!(summands_of_difference(4, 4, &fused(16, 25), &floor) <= 2);
    let mut carry = fused(16, 25);
    let Added::Fused(rule) = &mut carry.tree.rules[0].added else { panic!() };
    rule.exponents = crate::model::tree::Exponents::Normalised;
    assert!(summands_of_difference(4, 4, &fused(16, 25), &carry) <= 3);
}

/// What is cut off of a product is hidden by a result that keeps fewer bits, but where c is a tie between two of those.
#[test]
fn what_few_bits_of_results_hide_is_found_where_c_is_a_tie() {
    let rounding_sum = |rounding| {
        let mut model = with_rounding(fused(16, 19), |round| {
            (round.fraction_bits, round.rounding) = (9, Rounding::NearestTiesToEven);
        });
        let [rule] = &model.tree.rules[..] else { panic!() };
        let (of_products, mut last) = (rule.clone(), rule.clone());
        let Added::Fused(fused) = &mut last.added else { panic!() };
        fused.alignment = vec![fused.alignment[0]; 2].into();
        fused.alignment[0].rounding = rounding;
        model.tree.nodes[17] = Node::Sum { children: (0..16).collect(), rule: 0 };
        model.tree.nodes.push(Node::Sum { children: vec![17, 16], rule: 1 });
        model.tree.rules = vec![of_products, last];
        simulated(2, 3, model)
    };
    let (x, y) = (rounding_sum(Rounding::TowardZero), rounding_sum(Rounding::NearestTiesToZero));
    let [same, other] = [&x, &y].map(|device| {
        let instructions = vec![(device.instructions[0].clone(), device.model.clone())];
        virtual_device::Simulated::new(device.identity.clone(), instructions).expect("it can be executed")
    });
    let times_found_of = |found: &virtual_device::Simulated, boundaries: &Boundaries| {
        let is_found = |seed: &u64| {
            let boundaries = boundaries.clone();
            let plan = SparsePlan { dot_adds: 3000, seed: *seed, nans: Nans::Bits, boundaries };
            let found = (found, &found.instructions()[0]);
            sparse_mismatch((&x, &x.instructions[0]), found, &plan).unwrap().is_some()
        };
        (0..20).filter(is_found).count()
    };
    let times_found = |boundaries: &Boundaries| times_found_of(&other, boundaries);
    let boundaries = Boundaries::of(&x.model);
    assert_eq!((&boundaries.results[..], &boundaries.kept[..]), (&[9][..], &[19][..]));
    let (seldom, often) = (times_found(&Boundaries::default()), times_found(&boundaries));
    assert!(seldom < 5 && often > 15, "{seldom} and {often} of 20");
    assert_eq!(times_found_of(&same, &boundaries), 0);
}

#[test]
fn the_order_of_a_chain_is_found() {
    let chain = Model::chain_of_fma(BF16, FP32, 8);
    let mut reversed = chain.clone();
    for node in &mut reversed.tree.nodes {
        if let Node::Product(k) = node {
            *k = 7 - *k;
        }
    }
    assert!(summands_of_difference(4, 4, &chain, &reversed) <= 3);
}

#[test]
fn equal_devices_do_not_differ() {
    let device = simulated(4, 4, fused(16, 25));
    let outcome = compare(&device, &device, &plan(1002)).unwrap();
    assert_eq!((outcome.sets, outcome.dot_adds), (1002, 16_032));
    assert_eq!(
        outcome.per_distribution.iter().map(|(_, sets)| *sets).collect::<Vec<_>>(),
        [144, 143, 143, 143, 143, 143, 143]
    );
    assert_eq!(outcome.mismatch, None);
    assert_eq!(compare(&device, &device, &plan(0)).unwrap().sets, 0);
}

#[test]
fn nan_encodings_count_unless_told_otherwise() {
    let mut model = Model::chain_of_fma(FP32, FP32, 1);
    model.nan = NanRule::Canonical(0x7fff_ffff);
    let (x, mut y) = (simulated(1, 1, model.clone()), simulated(1, 1, model));
    y.model.nan = NanRule::Canonical(0x7fc0_0000);
    let mismatch = compare(&x, &y, &plan(10_000)).unwrap().mismatch.unwrap();
    assert_eq!(mismatch.shrunk_answers, (0x7fff_ffff, 0x7fc0_0000));
    let as_one = Plan { nans: Nans::AsOne, ..plan(10_000) };
    let outcome = compare(&x, &y, &as_one).unwrap();
    assert_eq!((outcome.mismatch, outcome.nans), (None, Nans::AsOne));
}

#[test]
fn the_outcome_is_the_same_for_any_number_of_threads() {
    let x = simulated(2, 2, Model::chain_of_fma(BF16, FP32, 4));
    let mut y = simulated(2, 2, x.model.clone());
    // Rare: found only after several blocks.
    y.model.tree.rules[0].zero.negative_zeros_stay = false;
    let rare =
        Plan { distributions: vec![Distribution::Cancellation, Distribution::Subnormals], ..plan(60_000) };
    let outcome = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let told = AtomicU64::new(0);
        let progress = |sets| {
            told.fetch_add(sets, Ordering::Relaxed);
        };
        let (i1, i2) = (&x.instructions[0], &y.instructions[0]);
        let different = pool.install(|| validate(&x, i1, &y, i2, &rare, &|_| {})).unwrap();
        let equal = pool.install(|| validate(&x, i1, &x, i1, &plan(5000), &progress)).unwrap();
        assert_eq!(told.into_inner(), 5000);
        (different, equal)
    };
    let one = outcome(1);
    assert!(one.0.mismatch.as_ref().unwrap().set > 0);
    assert_eq!(one, outcome(2));
    assert_eq!(one, outcome(4));
}

#[test]
fn different_instructions_cannot_be_compared() {
    let x = simulated(2, 2, Model::chain_of_fma(BF16, FP32, 4));
    let y = simulated(2, 2, Model::chain_of_fma(E4M3, FP32, 4));
    let z = simulated(2, 1, Model::chain_of_fma(BF16, FP32, 4));
    let message = |result: Result<Outcome, ValidationError>| result.unwrap_err().to_string();
    assert_eq!(message(compare(&x, &y, &plan(1))), "test and test cannot be compared: their formats differ");
    assert_eq!(message(compare(&x, &z, &plan(1))), "test and test cannot be compared: their shapes differ");
    let nothing = Plan { distributions: vec![], ..plan(1) };
    assert_eq!(compare(&x, &x, &nothing).unwrap_err(), ValidationError::NoDistribution);
}

#[test]
fn a_failing_device_is_reported() {
    let x = simulated(1, 1, Model::chain_of_fma(FP32, FP32, 1));
    let mut y = simulated(1, 1, x.model.clone());
    y.fails_on = Some(0x8000_0000);
    let error = compare(&x, &y, &plan(100_000)).unwrap_err();
    assert_eq!(error.to_string(), "device sim:test: no such c");
    // While a mismatch is looked into, zeros come up: what was found stays.
    y.fails_on = Some(0);
    y.model.tree.rules[0].round_to().unwrap().rounding = Rounding::TowardZero;
    let near = Plan { distributions: vec![Distribution::NearExponents], ..plan(1) };
    let outcome = (0..200).find_map(|seed| {
        compare(&x, &y, &Plan { seed, ..near.clone() }).ok().filter(|outcome| outcome.mismatch.is_some())
    });
    let mismatch = outcome.unwrap().mismatch.unwrap();
    assert!(mismatch.failure.is_some() && mismatch.reproduced_alone);
    assert_eq!(mismatch.shrunk, mismatch.question);
}

/// A device whose answers are spoilt: the bytes of D of a batch, of so many problems.
struct Spoilt<F> {
    device: Simulated,
    spoil: F,
}

impl<F: Fn(&mut Vec<u8>, usize) + Sync> Device for Spoilt<F> {
    fn identity(&self) -> &Identity {
        &self.device.identity
    }

    fn instructions(&self) -> &[Instruction] {
        &self.device.instructions
    }

    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        let mut answer = self.device.run(instruction, batch)?;
        (self.spoil)(&mut answer, batch.count);
        Ok(answer)
    }
}

#[test]
fn what_depends_on_the_position_is_not_reproduced_alone() {
    let x = simulated(2, 2, Model::chain_of_fma(BF16, FP32, 4));
    let instruction = &x.instructions[0];
    let d = instruction.bytes().d;
    let first_mismatch = |cuts_short| {
        // The last element is wrong, whatever the operands; single problems may be answered a byte too short.
        let spoil = move |answer: &mut Vec<u8>, problems: usize| {
            answer.chunks_exact_mut(d).for_each(|problem| problem[d - 4] ^= 1);
            answer.truncate(answer.len() - usize::from(cuts_short && problems == 1));
        };
        let corner = Spoilt { device: simulated(2, 2, x.model.clone()), spoil };
        let outcome = validate(&x, instruction, &corner, instruction, &plan(100), &|_| {}).unwrap();
        assert_eq!(outcome.sets, 1);
        outcome.mismatch.unwrap()
    };
    let mismatch = first_mismatch(false);
    assert_eq!((mismatch.set, mismatch.i, mismatch.j), (0, 1, 1));
    assert_eq!((mismatch.reproduced_alone, &mismatch.failure), (false, &None));
    assert_eq!(mismatch.shrunk, mismatch.question);
    let text = mismatch.describe(&instruction.signature(), ("one", "other"));
    assert!(text.contains("Asked alone") && !text.contains("Shrunk"), "{text}");

    let mismatch = first_mismatch(true);
    assert!(mismatch.failure.clone().unwrap().to_string().contains("D has 15 bytes, not 16"));
    let text = mismatch.describe(&instruction.signature(), ("one", "other"));
    assert!(text.contains("It could not be looked into further"), "{text}");
}

#[test]
fn what_does_not_come_again_while_it_is_shrunk_is_not_reproduced_alone() {
    let x = simulated(2, 2, Model::chain_of_fma(BF16, FP32, 4));
    let instruction = &x.instructions[0];
    for (calls, reproduced) in [(1, false), (2, false), (usize::MAX, true)] {
        // Everything is wrong in the first calls.
        let left = AtomicUsize::new(calls);
        let spoil = |answer: &mut Vec<u8>, _| {
            let one_less = |left: usize| left.checked_sub(1);
            if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
                answer.iter_mut().for_each(|byte| *byte ^= 1);
            }
        };
        let waking = Spoilt { device: simulated(2, 2, x.model.clone()), spoil };
        let outcome = validate(&x, instruction, &waking, instruction, &plan(1), &|_| {}).unwrap();
        let mismatch = outcome.mismatch.unwrap();
        assert_eq!(mismatch.reproduced_alone, reproduced, "wrong in {calls} calls");
        assert_ne!(mismatch.shrunk_answers.0, mismatch.shrunk_answers.1);
        assert_eq!(mismatch.shrunk == mismatch.question, !reproduced);
        assert_eq!(mismatch.changed, None, "the first device answers alike every time");

        left.store(calls, Ordering::Relaxed);
        let outcome = validate(&waking, instruction, &x, instruction, &plan(1), &|_| {}).unwrap();
        let mismatch = outcome.mismatch.unwrap();
        assert_eq!(mismatch.changed.is_some(), !reproduced, "wrong in {calls} calls");
        // Both answers are the device's own; the second one is right.
        if let Some(Changed { question, answers }) = mismatch.changed {
            let right = batch::ask(&x, instruction, std::slice::from_ref(&question)).unwrap()[0];
            assert_eq!(answers, (right ^ 0x0101_0101, right));
        }
    }
}
