//! Executing a machine.

use crate::dyadic::Dyadic;
use crate::format::{Datum, Format};
use crate::machine::{
    Adder, Aligned, Beyond, Carry, Flush, Infinities, Machine, NanRule, Node, Output, Overflow, Product,
    Reading, Round, Rule, Shifter, Subnormals, Tiny, ZeroExponents,
};
use crate::rounding::Rounding;

/// Computes dot-adds as a machine does. It keeps memory between them: make one and use it often.
#[derive(Clone, Debug)]
pub struct Evaluator<'m> {
    machine: &'m Machine,
    steps: Vec<Step>,
    stack: Vec<Value>,
}

/// One step of a machine's program, which works on a stack.
#[derive(Clone, Copy, Debug)]
enum Step {
    Product(usize),
    C,
    Zero,
    /// Scales the topmost value with a block's scales.
    Scale(usize),
    /// Sums up that many values by a rule.
    Sum(usize, usize),
}

#[derive(Clone, Debug)]
enum Value {
    Number(Number),
    Infinite {
        negative: bool,
        /// It comes from a product that overflowed.
        overflowed: bool,
    },
    Nan(Nan),
}

#[derive(Clone, Debug)]
struct Number {
    value: Dyadic,
    /// Of a zero.
    negative_zero: bool,
    /// The exponent that it comes with.
    exponent: i32,
    /// The same if zero operands have exponent −126.
    exponent_as_fp32: i32,
    /// It is a sum that was not normalised.
    open: bool,
}

impl Number {
    fn is_negative(&self) -> bool {
        if self.value.is_zero() { self.negative_zero } else { self.value.is_negative() }
    }
}

/// A NaN; its fraction is in the place of D's.
#[derive(Clone, Copy, Debug)]
struct Nan {
    negative: bool,
    fraction: u64,
    source: Source,
    /// Infinities that products overflowed to met, and nothing else.
    overflowed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    A,
    B,
    /// c, or an earlier sum.
    Earlier,
    /// Nobody brought it along.
    Generated,
}

/// Below every exponent, and far from overflow.
const NO_EXPONENT: i32 = i32::MIN / 8;
const FP32_MIN_EXPONENT: i32 = -126;

impl<'m> Evaluator<'m> {
    /// Prepares a machine.
    pub fn new(machine: &'m Machine) -> Evaluator<'m> {
        let mut steps = Vec::new();
        compile(&machine.tree, &mut steps);
        Evaluator { machine, steps, stack: Vec::new() }
    }

    /// d = f(c, a, b), on bit patterns: K elements of a row of A and of a column of B, an element of C,
    /// and K / block scales each (none without scales).
    ///
    /// # Panics
    /// If a slice is too short.
    pub fn dot_add(&mut self, a: &[u64], b: &[u64], c: u64, sa: &[u64], sb: &[u64]) -> u64 {
        let machine = self.machine;
        let stack = &mut self.stack;
        stack.clear();
        for step in &self.steps {
            let value = match *step {
                Step::Product(k) => product(machine, a[k], b[k]),
                Step::C => accumulator(machine, c),
                Step::Zero => Value::Number(Number {
                    value: Dyadic::ZERO,
                    negative_zero: false,
                    exponent: NO_EXPONENT,
                    exponent_as_fp32: NO_EXPONENT,
                    open: false,
                }),
                Step::Scale(block) => {
                    let format = machine.scale.expect("a machine that scales has scales").format;
                    let value = stack.pop().expect("a value to scale");
                    let value = scaled(machine, value, &format, format.decode(sa[block]));
                    scaled(machine, value, &format, format.decode(sb[block]))
                }
                Step::Sum(rule, count) => {
                    let first = stack.len() - count;
                    let value = sum(machine, &machine.rules[rule], &stack[first..]);
                    stack.truncate(first);
                    value
                }
            };
            stack.push(value);
        }
        let result = stack.pop().expect("a machine has a result");
        self.deliver(&result)
    }

    fn deliver(&self, result: &Value) -> u64 {
        let d = &self.machine.d;
        match result {
            Value::Number(number) => {
                let negative = number.is_negative();
                let Some(leading) = number.value.leading() else {
                    return d.encode(negative, 0, d.min_exponent());
                };
                let exponent = leading.max(d.min_exponent());
                let quantum = exponent - d.fraction_bits as i32;
                let significand =
                    number.value.short(quantum).expect("a result was rounded to the format of d");
                d.encode(negative, significand.unsigned_abs() as u64, exponent)
            }
            Value::Infinite { negative, .. } => d.infinity(*negative),
            Value::Nan(nan) => match self.machine.nan {
                NanRule::Canonical(pattern) => pattern,
                _ => d.nan(nan.negative, nan.fraction),
            },
        }
    }
}

fn compile(node: &Node, steps: &mut Vec<Step>) {
    let step = match node {
        Node::Product(k) => Step::Product(*k),
        Node::C => Step::C,
        Node::Zero => Step::Zero,
        Node::Scaled(child, block) => {
            compile(child, steps);
            Step::Scale(*block)
        }
        Node::Sum(children, rule) => {
            children.iter().for_each(|child| compile(child, steps));
            Step::Sum(*rule, children.len())
        }
    };
    steps.push(step);
}

fn read(reading: &Reading, bits: u64) -> Datum {
    let format = &reading.format;
    match format.decode(bits) {
        Datum::Number { negative, significand, exponent }
            if significand != 0
                && significand >> format.fraction_bits == 0
                && reading.subnormals != Flush::Never =>
        {
            let negative = negative && reading.subnormals == Flush::ToSignedZero;
            Datum::Number { negative, significand: 0, exponent }
        }
        Datum::Infinite(negative) => match reading.infinities {
            Infinities::Kept => Datum::Infinite(negative),
            Infinities::Nan => Datum::Nan(negative, 1 << (format.fraction_bits - 1)),
            Infinities::Largest => Datum::Number {
                negative,
                significand: format.top_significand(),
                exponent: format.max_exponent(),
            },
        },
        datum => datum,
    }
}

fn signed(negative: bool, magnitude: u128) -> i128 {
    if negative { -(magnitude as i128) } else { magnitude as i128 }
}

fn accumulator(machine: &Machine, bits: u64) -> Value {
    let format = &machine.read_c.format;
    match read(&machine.read_c, bits) {
        Datum::Nan(negative, fraction) => {
            Value::Nan(operand_nan(machine, format, negative, fraction, Source::Earlier))
        }
        Datum::Infinite(negative) => Value::Infinite { negative, overflowed: false },
        Datum::Number { negative, significand, exponent } => Value::Number(Number {
            value: Dyadic::new(signed(negative, significand.into()), exponent - format.fraction_bits as i32),
            negative_zero: negative,
            exponent,
            exponent_as_fp32: if significand == 0 { FP32_MIN_EXPONENT } else { exponent },
            open: false,
        }),
    }
}

/// An operand's NaN, its fraction moved to the top of D's.
fn operand_nan(machine: &Machine, format: &Format, negative: bool, fraction: u64, source: Source) -> Nan {
    let (from, to) = (format.fraction_bits, machine.d.fraction_bits);
    let moved = if to >= from { fraction << (to - from) } else { fraction >> (from - to) };
    // A NaN has some fraction.
    let fraction = if moved == 0 { 1 << (to - 1) } else { moved };
    Nan { negative, fraction, source, overflowed: false }
}

/// What nobody brought along.
fn generated(machine: &Machine) -> Nan {
    let negative = matches!(machine.nan, NanRule::HandedOn { generated_negative: true, .. });
    let fraction = 1 << (machine.d.fraction_bits - 1);
    Nan { negative, fraction, source: Source::Generated, overflowed: false }
}

fn product(machine: &Machine, a: u64, b: u64) -> Value {
    let (fa, fb) = (&machine.read_a.format, &machine.read_b.format);
    let (x, y) = (read(&machine.read_a, a), read(&machine.read_b, b));
    let (na, nb) = match (x, y) {
        (Datum::Nan(..), _) | (_, Datum::Nan(..)) => {
            let of = |datum, format, source| match datum {
                Datum::Nan(negative, fraction) => {
                    Some(operand_nan(machine, format, negative, fraction, source))
                }
                _ => None,
            };
            let nans = [of(x, fa, Source::A), of(y, fb, Source::B)];
            return Value::Nan(chosen(machine, nans.into_iter().flatten()));
        }
        (Datum::Infinite(_), Datum::Number { significand: 0, .. })
        | (Datum::Number { significand: 0, .. }, Datum::Infinite(_)) => {
            return Value::Nan(generated(machine));
        }
        (
            Datum::Infinite(na) | Datum::Number { negative: na, .. },
            Datum::Infinite(nb) | Datum::Number { negative: nb, .. },
        ) => (na, nb),
    };
    let negative = na != nb;
    let (
        Datum::Number { significand: sa, exponent: ea, .. },
        Datum::Number { significand: sb, exponent: eb, .. },
    ) = (x, y)
    else {
        return Value::Infinite { negative, overflowed: false };
    };
    let unit = ea + eb - (fa.fraction_bits + fb.fraction_bits) as i32;
    let or_fp32 = |significand, exponent| if significand == 0 { FP32_MIN_EXPONENT } else { exponent };
    let exact = Number {
        value: Dyadic::new(signed(negative, u128::from(sa) * u128::from(sb)), unit),
        negative_zero: negative,
        exponent: ea + eb,
        exponent_as_fp32: or_fp32(sa, ea) + or_fp32(sb, eb),
        open: false,
    };
    match &machine.product {
        Product::Exact => Value::Number(exact),
        Product::Rounded(round) => match rounded(round, &exact, true) {
            Value::Infinite { negative, .. } => Value::Infinite { negative, overflowed: true },
            value => value,
        },
        Product::OverflowsAt(exponent)
            if exact.value.leading().is_some_and(|leading| leading >= *exponent) =>
        {
            Value::Infinite { negative, overflowed: true }
        }
        Product::FlushedBelow { exponent, signed }
            if exact.value.leading().is_some_and(|leading| leading < *exponent) =>
        {
            Value::Number(Number { value: Dyadic::ZERO, negative_zero: negative && *signed, ..exact })
        }
        Product::OverflowsAt(_) | Product::FlushedBelow { .. } => Value::Number(exact),
    }
}

/// Rounds to a format, and files the result under the exponent that it has there. `underflow_signed`
/// says whether what becomes zero keeps its sign.
fn rounded(round: &Round, number: &Number, underflow_signed: bool) -> Value {
    let format = &round.format;
    let fraction_bits = round.fraction_bits as i32;
    let negative = number.is_negative();
    let lowest = format.min_exponent();
    let filed = |value: Dyadic, negative_zero| {
        let exponent = value.leading().map_or(lowest, |leading| leading.max(lowest));
        Value::Number(Number { value, negative_zero, exponent, exponent_as_fp32: exponent, open: false })
    };
    let Some(leading) = number.value.leading() else {
        return filed(Dyadic::ZERO, number.negative_zero);
    };
    let to = |exponent: i32| number.value.rounded(exponent - fraction_bits, round.rounding);
    // A zero, or a number, is below the smallest normal number.
    let below = |value: &Dyadic| value.leading().is_none_or(|leading| leading < lowest);
    let delivered = to(leading.max(lowest));
    if let Subnormals::Flushed { tiny, signed } = round.subnormals {
        let is_tiny = match tiny {
            Tiny::Before => leading < lowest,
            Tiny::After => below(&to(leading)),
            Tiny::Delivered => below(&delivered),
        };
        if is_tiny {
            return filed(Dyadic::ZERO, negative && signed && underflow_signed);
        }
    }
    let Some(leading) = delivered.leading() else {
        return filed(Dyadic::ZERO, negative && underflow_signed);
    };
    if leading <= format.max_exponent() {
        return filed(delivered, false);
    }
    let back = match round.overflow {
        Overflow::Infinity => false,
        Overflow::Largest => true,
        Overflow::ByMode => match round.rounding {
            Rounding::Zero => true,
            Rounding::Up => negative,
            Rounding::Down => !negative,
            _ => false,
        },
    };
    if !back {
        return Value::Infinite { negative, overflowed: false };
    }
    let ones = (2i128 << fraction_bits) - 1;
    filed(Dyadic::new(if negative { -ones } else { ones }, format.max_exponent() - fraction_bits), false)
}

fn scaled(machine: &Machine, value: Value, format: &Format, scale: Datum) -> Value {
    match (value, scale) {
        (_, Datum::Nan(..)) => Value::Nan(Nan {
            negative: false,
            fraction: 1 << (machine.d.fraction_bits - 1),
            source: Source::Generated,
            overflowed: false,
        }),
        (Value::Number(number), Datum::Number { significand, exponent, .. }) => Value::Number(Number {
            // A zero without a sign of its own keeps the one that it has.
            negative_zero: number.is_negative(),
            value: number.value.times(significand as u32, exponent - format.fraction_bits as i32),
            exponent: number.exponent + exponent,
            exponent_as_fp32: number.exponent_as_fp32 + exponent,
            open: number.open,
        }),
        (Value::Infinite { .. }, Datum::Number { significand: 0, .. }) => Value::Nan(Nan {
            negative: false,
            fraction: 1 << (machine.d.fraction_bits - 1),
            source: Source::Generated,
            overflowed: false,
        }),
        (other, _) => other,
    }
}

/// The NaN that goes first.
fn chosen(machine: &Machine, nans: impl Iterator<Item = Nan> + Clone) -> Nan {
    match machine.nan {
        NanRule::Canonical(_) => generated(machine),
        NanRule::Ored => {
            let fraction = nans.clone().fold(0, |fraction, nan| fraction | nan.fraction);
            let last = nans.last().expect("a NaN to choose");
            Nan { fraction, ..last }
        }
        NanRule::HandedOn { ranks, last, generated_first, .. } => {
            let rank = |nan: &Nan| match nan.source {
                Source::A => ranks[0],
                Source::B => ranks[1],
                Source::Earlier => ranks[2],
                Source::Generated if generated_first => 0,
                Source::Generated => u8::MAX,
            };
            let best = nans.clone().map(|nan| rank(&nan)).min();
            let mut equals = nans.filter(|nan| Some(rank(nan)) == best);
            let nan = if last { equals.last() } else { equals.next() };
            nan.expect("a NaN to choose")
        }
    }
}

fn sum(machine: &Machine, rule: &Rule, summands: &[Value]) -> Value {
    if summands.iter().any(|summand| !matches!(summand, Value::Number(_))) {
        return sum_of_specials(machine, rule, summands);
    }
    let numbers = summands.iter().map(|summand| match summand {
        Value::Number(number) => number,
        _ => unreachable!("no special values here"),
    });
    let (value, exponent) = match &rule.adder {
        Adder::Exact => {
            let exponent = numbers.clone().map(|number| number.exponent).max().unwrap_or(NO_EXPONENT);
            let mut values = numbers.clone().map(|number| &number.value);
            let value = match (summands.len(), &rule.output) {
                (2, Output::Rounded(_) | Output::RoundedTwice(..)) => {
                    let mut next = || values.next().expect("two summands");
                    Dyadic::sum_to_round(next(), next())
                }
                _ => Dyadic::sum(values),
            };
            (value, exponent)
        }
        Adder::Aligned(aligned) => aligned_sum(aligned, numbers.clone()),
    };
    let mut negatives = numbers.map(|number| (number.value.is_zero(), number.is_negative()));
    let negative_zero = if negatives.clone().all(|summand| summand == (true, true)) {
        rule.zeros.negative_stays
    } else if negatives.all(|summand| summand == (true, false)) {
        false
    } else {
        rule.zeros.cancelled_negative
    };
    let total = Number { value, negative_zero, exponent, exponent_as_fp32: exponent, open: true };
    let underflow_signed = rule.zeros.underflow_signed;
    match &rule.output {
        Output::Open(None) => Value::Number(total),
        Output::Open(Some(exponent)) => {
            Value::Number(Number { exponent: *exponent, exponent_as_fp32: *exponent, ..total })
        }
        Output::Rounded(round) => rounded(round, &total, underflow_signed),
        Output::RoundedTwice(first, second) => match rounded(first, &total, underflow_signed) {
            Value::Number(number) => rounded(second, &number, underflow_signed),
            special => special,
        },
    }
}

/// The sum and the exponent it was aligned to.
fn aligned_sum<'v>(adder: &Aligned, numbers: impl Iterator<Item = &'v Number> + Clone) -> (Dyadic, i32) {
    let exponent_of = |number: &Number| match number.value.leading() {
        Some(leading) if adder.normalised => leading,
        None if adder.zeros == ZeroExponents::AllAsFp32 => number.exponent_as_fp32,
        _ => number.exponent,
    };
    let counts = |number: &&Number| {
        !number.value.is_zero()
            || match adder.zeros {
                ZeroExponents::Ignored => false,
                ZeroExponents::OpenSums => number.open,
                ZeroExponents::All | ZeroExponents::AllAsFp32 => true,
            }
    };
    let largest = numbers.clone().filter(counts).map(exponent_of).max().max(adder.floor);
    let Some(largest) = largest else {
        return (Dyadic::ZERO, NO_EXPONENT);
    };
    let last = adder.shifters.len() - 1;
    let shifters = || adder.shifters.iter().chain(std::iter::repeat(&adder.shifters[last]));
    let finest = numbers.clone().zip(shifters()).map(|(_, shifter)| shifter.fraction_bits).max();
    let unit = largest - finest.unwrap_or(0) as i32;
    let shifted = |(number, shifter): (&Number, &Shifter)| {
        let quantum = largest - shifter.fraction_bits as i32;
        let rounding = match shifter.far {
            Some((distance, rounding)) if exponent_of(number) < largest - distance => rounding,
            _ => shifter.rounding,
        };
        number.value.rounded(quantum, rounding)
    };
    let is_cut = |(number, shifter): (&Number, &Shifter)| {
        !number.value.is_multiple_of(largest - shifter.fraction_bits as i32)
    };
    let lost = adder.sticky && numbers.clone().zip(shifters()).any(is_cut);
    let mut short = Some(0i128);
    for summand in numbers.clone().zip(shifters()) {
        // 64 summands of up to 118 bits.
        let next = shifted(summand).short(unit).filter(|summand| summand.unsigned_abs() >> 118 == 0);
        short = short.zip(next).and_then(|(sum, next)| sum.checked_add(next));
        if short.is_none() {
            break;
        }
    }
    let mut total = match short {
        Some(sum) if sum.unsigned_abs() >> 124 == 0 => Dyadic::new(sum, unit),
        _ => {
            let long: Vec<Dyadic> = numbers.zip(shifters()).map(shifted).collect();
            Dyadic::sum(long.iter())
        }
    };
    if let Some(carry) = adder.carry {
        total = carried(total, carry, largest, unit);
    }
    if lost && !total.is_zero() {
        // One more bit at the low end of the magnitude.
        let bit = Dyadic::power(unit - 1);
        let bit = if total.is_negative() { bit.negated() } else { bit };
        total = Dyadic::sum([&total, &bit].into_iter());
    }
    (total, largest)
}

/// A sum in units of 2^`unit`, as it leaves an adder of limited width.
fn carried(total: Dyadic, carry: Carry, largest: i32, unit: i32) -> Dyadic {
    let end = Dyadic::power(largest + carry.bits as i32);
    let plus = |x: &Dyadic, y: Dyadic| Dyadic::sum([x, &y].into_iter());
    let above = !plus(&total, end.clone().negated()).is_negative();
    let below = plus(&total, end.clone()).is_negative();
    if !above && !below {
        return total;
    }
    let modulo = |x: &Dyadic, power: i32| plus(x, x.rounded(power, Rounding::Down).negated());
    match carry.beyond {
        Beyond::Saturates if below => end.negated(),
        Beyond::Saturates => plus(&end, Dyadic::power(unit).negated()),
        Beyond::Wraps => {
            let width = largest + carry.bits as i32;
            let from_zero = modulo(&plus(&total, end.clone()), width + 1);
            plus(&from_zero, end.negated())
        }
        Beyond::MagnitudeWraps => {
            let width = largest + carry.bits as i32;
            if below { modulo(&total.negated(), width).negated() } else { modulo(&total, width) }
        }
    }
}

/// The sum where a summand is infinite or NaN.
fn sum_of_specials(machine: &Machine, rule: &Rule, summands: &[Value]) -> Value {
    let first = machine.infinite_operands_first;
    // Whether infinities of each sign are there: operands and earlier results, and overflowed products.
    let mut from_operands = [false; 2];
    let mut from_products = [false; 2];
    let mut nan_from_products = false;
    let mut is_nan = false;
    for summand in summands {
        match summand {
            Value::Number(_) => {}
            Value::Infinite { negative, overflowed: false } => from_operands[usize::from(*negative)] = true,
            Value::Infinite { negative, overflowed: true } => from_products[usize::from(*negative)] = true,
            Value::Nan(nan) if nan.overflowed && first => nan_from_products = true,
            Value::Nan(_) => is_nan = true,
        }
    }
    let no_operand = !from_operands[0] && !from_operands[1];
    let signs = if first && !no_operand {
        from_operands
    } else if nan_from_products && no_operand {
        [true; 2]
    } else {
        [from_operands[0] || from_products[0], from_operands[1] || from_products[1]]
    };
    let both = signs == [true; 2];
    if !is_nan && !both {
        let overflowed = no_operand && matches!(rule.output, Output::Open(_));
        return Value::Infinite { negative: signs[1], overflowed };
    }
    if !is_nan {
        let overflowed = no_operand && matches!(rule.output, Output::Open(_));
        return Value::Nan(Nan { overflowed, ..handed_on(machine, generated(machine)) });
    }
    let nans = summands.iter().filter_map(|summand| match summand {
        Value::Nan(nan) => Some(*nan),
        _ => None,
    });
    let nan = chosen(machine, nans.chain(both.then(|| generated(machine))));
    Value::Nan(Nan { overflowed: false, ..handed_on(machine, nan) })
}

/// A NaN as it leaves a sum: to what follows it is an earlier result.
fn handed_on(machine: &Machine, nan: Nan) -> Nan {
    let quiet = 1 << (machine.d.fraction_bits - 1);
    let fraction = match (machine.nan, nan.source) {
        (NanRule::Ored, _) => nan.fraction,
        (_, Source::Generated) => generated(machine).fraction,
        (NanRule::HandedOn { quieted: true, .. }, _) => nan.fraction | quiet,
        _ => nan.fraction,
    };
    let negative = match nan.source {
        Source::Generated => generated(machine).negative,
        _ => nan.negative,
    };
    Nan { negative, fraction, source: Source::Earlier, ..nan }
}
