//! Units that are no function of their operands.

use std::sync::Mutex;

use crate::execute::Evaluator;
use crate::format::{FP32, Format};
use crate::generate::{self, Dice};
use crate::machine::{Machine, Node, Output, Product, Round};
use crate::rounding::Rounding;

/// A machine, and what is wrong with it.
#[derive(Debug)]
pub struct Unit {
    /// The machine.
    pub machine: Machine,
    /// Its defect, if it has one.
    pub defect: Option<Defect>,
    state: Mutex<State>,
}

/// What a unit with a memory remembers.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    calls: u64,
    elements: u64,
    /// Whether arithmetic is the other one for now.
    other: bool,
    /// The last result.
    last: u64,
}

/// How a unit fails to be a function.
#[derive(Clone, Debug)]
pub enum Defect {
    /// One answer of 1000, at random, differs in one bit, or by one unit in the last place.
    Noise {
        /// Seed of the noise.
        seed: u64,
        /// Whether any bit may be wrong; otherwise the lowest is.
        any_bit: bool,
    },
    /// Elsewhere another machine answers.
    Elsewhere {
        /// Where.
        place: Place,
        /// The other machine.
        other: Box<Machine>,
    },
    /// At times another machine answers.
    AtTimes {
        /// When.
        time: Time,
        /// The other machine.
        other: Box<Machine>,
    },
}

/// Places in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// One element (i, j) of each result.
    Element(usize, usize),
    /// One row.
    Row(usize),
    /// One column.
    Column(usize),
    /// Every problem of a batch whose index leaves this rest.
    EveryNth {
        /// The divisor.
        n: usize,
        /// The rest.
        rest: usize,
    },
    /// All problems of a batch but the first so many.
    From(usize),
    /// All problems of batches of so many and more.
    BatchesOf(usize),
    /// All problems of batches of an odd number of problems.
    OddBatches,
}

/// Times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Every other call.
    EveryOtherCall,
    /// After so many elements, for good.
    After(u64),
    /// In the problem after one that delivered a negative number.
    AfterNegative,
    /// From a NaN, an infinity or an overflow in one call on, until a call without.
    AfterSpecialCall,
    /// Where the element before had an odd significand: a carry that nobody cleared.
    AfterOddElement,
}

impl Defect {
    /// What kind of thing it is, of four: for tables.
    pub fn kind(&self) -> &'static str {
        match self {
            Defect::Noise { .. } => "noise",
            Defect::Elsewhere { place: Place::BatchesOf(_) | Place::OddBatches, .. } => {
                "depends on batch size"
            }
            Defect::Elsewhere { .. } => "depends on position",
            Defect::AtTimes { .. } => "carries state",
        }
    }

    /// It in words, without the other machine.
    pub fn describe(&self) -> String {
        match self {
            Defect::Noise { any_bit: true, .. } => "one answer of 1000 has one bit flipped".to_string(),
            Defect::Noise { any_bit: false, .. } => {
                "one answer of 1000 has its lowest bit flipped".to_string()
            }
            Defect::Elsewhere { place, .. } => format!("other arithmetic at {place:?}"),
            Defect::AtTimes { time, .. } => format!("other arithmetic at times: {time:?}"),
        }
    }
}

/// The operands of a batch of problems, as elements: A row by row, B column by column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// Number of problems.
    pub count: usize,
    /// m·k elements each.
    pub a: Vec<u64>,
    /// n·k elements each.
    pub b: Vec<u64>,
    /// m·n elements each.
    pub c: Vec<u64>,
    /// m·(k / block) elements each.
    pub sa: Vec<u64>,
    /// n·(k / block) elements each.
    pub sb: Vec<u64>,
}

impl Unit {
    /// A unit that computes what the machine does.
    pub fn sound(machine: Machine) -> Unit {
        Unit { machine, defect: None, state: Mutex::default() }
    }

    /// A unit with a defect.
    pub fn defective(machine: Machine, defect: Defect) -> Unit {
        Unit { defect: Some(defect), ..Unit::sound(machine) }
    }

    /// D of all problems, row by row.
    ///
    /// # Panics
    /// If an operand is too short.
    pub fn run(&self, problems: &Problems) -> Vec<u64> {
        // A unit with a memory answers one call after another.
        let mut state = match &self.defect {
            Some(Defect::AtTimes { .. } | Defect::Noise { .. }) => {
                Some(self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
            }
            _ => None,
        };
        let mut own = State::default();
        let state = state.as_deref_mut().unwrap_or(&mut own);
        let machine = &self.machine;
        let other = match &self.defect {
            Some(Defect::Elsewhere { other, .. } | Defect::AtTimes { other, .. }) => other,
            _ => machine,
        };
        let mut evaluators = [Evaluator::new(machine), Evaluator::new(other)];
        let mut results = Vec::with_capacity(problems.count * machine.m * machine.n);
        let mut special = false;
        for problem in 0..problems.count {
            let mut negative = false;
            for i in 0..machine.m {
                for j in 0..machine.n {
                    let use_other = self.uses_other(problems.count, problem, (i, j), state);
                    let result =
                        element(machine, &mut evaluators[usize::from(use_other)], problems, problem, (i, j));
                    let result = self.disturbed(result, state);
                    state.elements += 1;
                    state.last = result;
                    let sign = 8 * machine.d.bytes - 1;
                    negative |= result >> sign & 1 == 1;
                    let field = result >> machine.d.fraction_bits & ((1 << machine.d.exponent_bits) - 1);
                    special |= field + 1 == 1 << machine.d.exponent_bits;
                    results.push(result);
                }
            }
            if let Some(Defect::AtTimes { time: Time::AfterNegative, .. }) = self.defect {
                state.other = negative;
            }
        }
        if let Some(Defect::AtTimes { time: Time::AfterSpecialCall, .. }) = self.defect {
            state.other = special;
        }
        state.calls += 1;
        results
    }

    fn uses_other(&self, count: usize, problem: usize, (i, j): (usize, usize), state: &State) -> bool {
        match &self.defect {
            None | Some(Defect::Noise { .. }) => false,
            Some(Defect::Elsewhere { place, .. }) => match *place {
                Place::Element(row, column) => (i, j) == (row, column),
                Place::Row(row) => i == row,
                Place::Column(column) => j == column,
                Place::EveryNth { n, rest } => problem % n == rest,
                Place::From(first) => problem >= first,
                Place::BatchesOf(least) => count >= least,
                Place::OddBatches => count % 2 == 1,
            },
            Some(Defect::AtTimes { time, .. }) => match *time {
                Time::EveryOtherCall => state.calls % 2 == 1,
                Time::After(elements) => state.elements >= elements,
                Time::AfterNegative | Time::AfterSpecialCall => state.other,
                Time::AfterOddElement => state.last & 1 == 1,
            },
        }
    }

    fn disturbed(&self, result: u64, state: &State) -> u64 {
        let Some(Defect::Noise { seed, any_bit }) = self.defect else { return result };
        let mut dice = Dice::new(seed, state.elements, NOISE);
        if dice.below(1000) != 0 {
            return result;
        }
        let bit = if any_bit { dice.below(8 * self.machine.d.bytes) } else { 0 };
        result ^ 1 << bit
    }
}

/// One element of D.
fn element(
    machine: &Machine,
    evaluator: &mut Evaluator,
    problems: &Problems,
    problem: usize,
    (i, j): (usize, usize),
) -> u64 {
    let Machine { m, n, k, .. } = *machine;
    let (row, column) = (problem * m + i, problem * n + j);
    let blocks = machine.scale.map_or(0, |scale| k / scale.block);
    evaluator.dot_add(
        &problems.a[row * k..][..k],
        &problems.b[column * k..][..k],
        problems.c[row * n + j],
        &problems.sa[row * blocks..][..blocks],
        &problems.sb[column * blocks..][..blocks],
    )
}

/// Streams of random numbers.
const DEFECTS: u64 = 2;
const NOISE: u64 = 3;
const OCCASIONS: u64 = 4;

/// Defective unit `index` of a seed.
///
/// The kinds go in turn: noise, position, state, batch size. The other machine of a defect differs in
/// one thing that shows: of 2000 random dot-adds near 1, at least 20 come out differently. So many are odd where
/// something happens after odd results, and come out differently before a change for good.
pub fn unit(seed: u64, index: u64) -> Unit {
    let mut dice = Dice::new(seed, index, DEFECTS);
    loop {
        let machine = generate::draw(&mut dice);
        let defect = match index % 4 {
            0 => Some(Defect::Noise { seed: dice.bits(), any_bit: dice.percent(50) }),
            kind => variant(&mut dice, &machine).map(|other| {
                let other = Box::new(other);
                match kind {
                    1 => Defect::Elsewhere { place: place(&mut dice, &machine), other },
                    2 => Defect::AtTimes { time: time(&mut dice), other },
                    _ => Defect::Elsewhere { place: batch_size(&mut dice), other },
                }
            }),
        };
        let mut own = Dice::new(seed, index, OCCASIONS);
        if let Some(defect) = defect.filter(|defect| has_occasions(&mut own, &machine, defect)) {
            return Unit::defective(machine, defect);
        }
    }
}

fn place(dice: &mut Dice, machine: &Machine) -> Place {
    let (i, j) = (dice.below(machine.m), dice.below(machine.n));
    let n = dice.pick(&[2, 3, 4, 8, 16, 32]);
    let rest = dice.below(n);
    let from = dice.pick(&[1, 2, 8, 32, 64, 100, 200]);
    dice.pick(&[
        Place::Element(i, j),
        Place::Row(i),
        Place::Column(j),
        Place::EveryNth { n, rest },
        Place::From(from),
    ])
}

fn batch_size(dice: &mut Dice) -> Place {
    let least = dice.pick(&[2, 8, 32, 64, 100, 128, 200]);
    dice.weighted(&[(Place::BatchesOf(least), 75), (Place::OddBatches, 25)])
}

fn time(dice: &mut Dice) -> Time {
    let elements = dice.pick(&[50, 200, 1000, 10_000]);
    dice.pick(&[
        Time::EveryOtherCall,
        Time::After(elements),
        Time::AfterNegative,
        Time::AfterSpecialCall,
        Time::AfterOddElement,
    ])
}

/// The machine with one thing changed that shows, if one was found.
fn variant(dice: &mut Dice, machine: &Machine) -> Option<Machine> {
    for _ in 0..8 {
        let mut other = machine.clone();
        match dice.below(3) {
            0 => {
                let Node::Sum(_, root) = other.tree else { return None };
                let rounding =
                    dice.pick(&[Rounding::Zero, Rounding::NearestEven, Rounding::Up, Rounding::Away]);
                if let Output::Rounded(round) | Output::RoundedTwice(_, round) = &mut other.rules[root].output
                {
                    round.rounding = rounding;
                }
            }
            1 => {
                other.product = match other.product {
                    Product::Exact => Product::Rounded(Round { fraction_bits: 2, ..Round::ieee(FP32) }),
                    _ => Product::Exact,
                }
            }
            _ => {
                let Node::Sum(_, root) = other.tree else { return None };
                if let Output::Rounded(round) | Output::RoundedTwice(_, round) = &mut other.rules[root].output
                {
                    round.fraction_bits = (round.fraction_bits - dice.below(3).min(1) as u32).max(1);
                }
            }
        }
        if shows(dice, machine, &other) {
            return Some(other);
        }
    }
    None
}

/// Whether two machines differ on 1 % of random dot-adds near 1.
fn shows(dice: &mut Dice, machine: &Machine, other: &Machine) -> bool {
    let (mut one, mut two) = (Evaluator::new(machine), Evaluator::new(other));
    let differ = (0..2000).filter(|_| {
        let (a, b, c, scales) = near_one(dice, machine);
        one.dot_add(&a, &b, c, &scales, &scales) != two.dot_add(&a, &b, c, &scales, &scales)
    });
    differ.count() >= 20
}

/// Whether a defect of a machine has occasions to show: of random dot-adds near 1, 1 % have a result with an odd
/// significand, if it takes such; and before a change for good at least 20 are another one's.
fn has_occasions(dice: &mut Dice, machine: &Machine, defect: &Defect) -> bool {
    let (number, is_occasion): (u64, &dyn Fn(u64, u64) -> bool) = match defect {
        Defect::AtTimes { time: Time::AfterOddElement, .. } => (2000, &|own, _| own & 1 == 1),
        Defect::AtTimes { time: Time::After(elements), .. } => (*elements, &|own, other| own != other),
        _ => return true,
    };
    let Defect::AtTimes { other, .. } = defect else { return true };
    let (mut one, mut two) = (Evaluator::new(machine), Evaluator::new(other));
    let occasions = (0..number).filter(|_| {
        let (a, b, c, scales) = near_one(dice, machine);
        let [own, other] = [&mut one, &mut two].map(|one| one.dot_add(&a, &b, c, &scales, &scales));
        is_occasion(own, other)
    });
    occasions.count() >= 20
}

/// Random operands near 1: a, b, c, and scales that are 1.
fn near_one(dice: &mut Dice, machine: &Machine) -> (Vec<u64>, Vec<u64>, u64, Vec<u64>) {
    let blocks = machine.scale.map_or(0, |scale| machine.k / scale.block);
    let scale = machine.scale.map(|scale| (scale.format.bias as u64) << scale.format.fraction_bits);
    let number = |format: &Format, dice: &mut Dice| {
        let fraction = dice.bits() & ((1 << format.fraction_bits) - 1);
        let exponent = (dice.below(3) as i32 - 1).clamp(format.min_exponent(), format.max_exponent() - 1);
        let field = (exponent + format.bias) as u64;
        let sign = dice.bits() & 1;
        (sign << format.exponent_bits | field) << format.fraction_bits << format.padding
            | fraction << format.padding
    };
    let a = (0..machine.k).map(|_| number(&machine.a, dice)).collect();
    let b = (0..machine.k).map(|_| number(&machine.b, dice)).collect();
    (a, b, number(&machine.c, dice), vec![scale.unwrap_or(0); blocks])
}
