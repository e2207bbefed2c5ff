//! Executing a sum tree: the general executor, for any tree over any formats.

use alloc::vec::Vec;

use crate::exact::{Magnitude, Term};
use crate::format::{Decoded, Format, RoundTo};
use crate::rounding::Rounding;
use crate::tree::{
    Added, Beyond, Carry, Exponents, Fused, InputInfinities, InputSubnormals, Model, ModelError, NanRule,
    NanSource, Node, NodeId, Normalised, Operand, Product, Rule, ZeroTerms,
};

/// What a node of the tree evaluates to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Not a number.
    Nan(Nan),
    /// An infinity.
    Infinite {
        /// Its sign.
        negative: bool,
        /// Whether a product overflowed to it, as opposed to an operand being infinite.
        overflowed: bool,
    },
    /// A number.
    Finite(Number),
}

/// A finite value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// The number and its nominal exponent.
    pub term: Term,
    /// If it is zero: whether it is a sum that was not normalised.
    pub is_open_sum: bool,
    /// If it is zero: how far its exponent falls when operands that are zero have the exponent −126.
    pub lowered: i32,
}

/// A NaN on its way to the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nan {
    /// Its sign.
    pub negative: bool,
    /// Its fraction field, in the format of d.
    pub fraction: u64,
    /// The operand it came from; `None` if an operation generated it.
    pub source: Option<NanSource>,
    /// Whether products overflowed to infinities of both signs, and no operand had a part in it.
    pub overflowed: bool,
}

/// The exponent of a zero that was aligned to nothing: below every other.
pub(crate) const BELOW_ALL: i32 = i32::MIN / 4;

const GENERATED: Nan = Nan { negative: false, fraction: 0, source: None, overflowed: false };

/// Runs a [`Model`] on dot-adds.
///
/// It keeps scratch space between calls: make one and use it for many dot-adds.
#[derive(Clone, Debug)]
pub struct Executor<'m> {
    model: &'m Model,
    values: Vec<Value>,
    terms: Vec<Term>,
}

impl<'m> Executor<'m> {
    /// Prepares a model for execution.
    ///
    /// # Errors
    /// If the model [cannot be executed](Model::check).
    pub fn new(model: &'m Model) -> Result<Executor<'m>, ModelError> {
        model.check()?;
        Ok(Executor { model, values: Vec::new(), terms: Vec::new() })
    }

    /// The model that is executed.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// One dot-add d = f(c, a, b), on bit patterns.
    ///
    /// `a` and `b` hold K elements each, `sa` and `sb` K / block scales each (none where the
    /// instruction has no scales).
    ///
    /// # Panics
    /// If a slice is shorter than that.
    pub fn dot_add(&mut self, a: &[u64], b: &[u64], c: u64, sa: &[u64], sb: &[u64]) -> u64 {
        self.evaluate(a, b, c, sa, sb);
        pack(self.model, self.values.last().expect("a checked model has a root"))
    }

    /// Evaluates every node; the values are in the order of [`Tree::nodes`](crate::tree::Tree::nodes).
    pub fn evaluate(&mut self, a: &[u64], b: &[u64], c: u64, sa: &[u64], sb: &[u64]) -> &[Value] {
        let model = self.model;
        self.values.clear();
        for node in &model.tree.nodes {
            let value = match node {
                Node::Product(k) => product(model, element(&model.a, a[*k]), element(&model.b, b[*k])),
                Node::Accumulator => accumulator(model, element(&model.c, c)),
                Node::Zero => finite(Term::zero(false, i32::MIN / 4)),
                Node::Scaled { child, block } => {
                    let format = &model.scale.expect("a checked model with scaled nodes has scales").format;
                    let scaled_once = scaled(&self.values[*child], format.decode(sa[*block]), format);
                    scaled(&scaled_once, format.decode(sb[*block]), format)
                }
                Node::Sum { children, rule } => {
                    let values = &self.values;
                    let summands = children.iter().map(|&child| &values[child]);
                    sum(model, &model.tree.rules[*rule], summands, &mut self.terms)
                }
            };
            self.values.push(value);
        }
        &self.values
    }

    /// What the sum at a node is before it is normalised, in what was [evaluated](Executor::evaluate) last;
    /// `None` if the node is no sum, or nothing has been evaluated.
    pub fn unrounded(&mut self, node: NodeId) -> Option<Value> {
        let (Node::Sum { children, rule }, Some(_)) = (&self.model.tree.nodes[node], self.values.get(node))
        else {
            return None;
        };
        let rule =
            Rule { normalised: Normalised::No { exponent: None }, ..self.model.tree.rules[*rule].clone() };
        let summands = children.iter().map(|&child| &self.values[child]);
        Some(sum(self.model, &rule, summands, &mut self.terms))
    }
}

/// The bit pattern of d whose value is the root's.
pub(crate) fn pack(model: &Model, root: &Value) -> u64 {
    let d = &model.d;
    match root {
        Value::Nan(nan) => match &model.nan {
            NanRule::Canonical(bits) => *bits,
            NanRule::Propagated(_) | NanRule::Merged { .. } => {
                d.pack(Decoded::Nan { negative: nan.negative, fraction: nan.fraction })
            }
            NanRule::Unknown => d.pack(Decoded::Nan { negative: false, fraction: quiet_bit(d) }),
        },
        Value::Infinite { negative, .. } => d.pack(Decoded::Infinite { negative: *negative }),
        Value::Finite(Number { term, .. }) => {
            let Magnitude::Small(significand) = term.magnitude else {
                unreachable!("a checked model's root is rounded to the format of d");
            };
            let (negative, significand) = (term.negative, significand as u64);
            d.pack(Decoded::Finite { negative, significand, exponent: term.exponent })
        }
    }
}

/// The top bit of the fraction field, which says "quiet" in IEEE formats.
fn quiet_bit(format: &Format) -> u64 {
    if format.fraction_bits == 0 { 0 } else { 1 << (format.fraction_bits - 1) }
}

/// An element as the operand's rules have it read.
#[inline]
fn element(operand: &Operand, bits: u64) -> Decoded {
    conditioned(operand, operand.format.decode(bits))
}

/// What the operand's rules make of an element of its format.
#[inline]
pub(crate) fn conditioned(operand: &Operand, element: Decoded) -> Decoded {
    match element {
        Decoded::Finite { negative, significand, exponent }
            if operand.subnormals != InputSubnormals::Kept
                && significand >> operand.format.fraction_bits == 0
                && significand != 0 =>
        {
            let negative = negative && operand.subnormals == InputSubnormals::FlushedToSignedZero;
            Decoded::Finite { negative, significand: 0, exponent }
        }
        Decoded::Infinite { negative } => match operand.infinities {
            InputInfinities::Kept => Decoded::Infinite { negative },
            InputInfinities::Nan => Decoded::Nan { negative, fraction: quiet_bit(&operand.format) },
            InputInfinities::Largest => operand.format.largest(negative),
        },
        decoded => decoded,
    }
}

/// c, once its operand's rules have been applied.
pub(crate) fn accumulator(model: &Model, c: Decoded) -> Value {
    let format = &model.c.format;
    match c {
        Decoded::Nan { negative, fraction } => {
            Value::Nan(operand_nan(model, format, negative, fraction, NanSource::Accumulator))
        }
        Decoded::Infinite { negative } => Value::Infinite { negative, overflowed: false },
        Decoded::Finite { negative, significand, exponent } => {
            let lsb = exponent - format.fraction_bits as i32;
            let term = Term::new(negative, significand as u128, lsb, exponent);
            Value::Finite(Number { term, is_open_sum: false, lowered: lowered(significand, exponent) })
        }
    }
}

/// How far an operand's exponent falls when zeros have the exponent −126.
#[inline]
pub(crate) fn lowered(significand: u64, exponent: i32) -> i32 {
    if significand == 0 { exponent - ZeroTerms::FP32_EXPONENT } else { 0 }
}

fn operand_nan(model: &Model, format: &Format, negative: bool, fraction: u64, source: NanSource) -> Nan {
    let fraction = model.d.nan_fraction(format, fraction);
    Nan { negative, fraction, source: Some(source), overflowed: false }
}

/// The product of two factors, once their operands' rules have been applied.
pub(crate) fn product(model: &Model, a: Decoded, b: Decoded) -> Value {
    use Decoded::{Finite, Infinite, Nan};
    let formats = (&model.a.format, &model.b.format);
    let a_nan = |negative, fraction| operand_nan(model, formats.0, negative, fraction, NanSource::A);
    let b_nan = |negative, fraction| operand_nan(model, formats.1, negative, fraction, NanSource::B);
    match (a, b) {
        (
            Finite { negative: na, significand: x, exponent: ea },
            Finite { negative: nb, significand: y, exponent: eb },
        ) => {
            let lsb = ea + eb - (formats.0.fraction_bits + formats.1.fraction_bits) as i32;
            let mut value =
                form_product(&model.product, Term::new(na != nb, x as u128 * y as u128, lsb, ea + eb));
            // What is rounded is a number of the format, whatever its factors were.
            if let Value::Finite(number) = &mut value
                && !matches!(model.product, Product::Rounded(_))
            {
                number.lowered = lowered(x, ea) + lowered(y, eb);
            }
            value
        }
        (Nan { negative: na, fraction: x }, Nan { negative: nb, fraction: y }) => {
            Value::Nan(preferred(model, [a_nan(na, x), b_nan(nb, y)].into_iter()))
        }
        (Nan { negative, fraction }, _) => Value::Nan(a_nan(negative, fraction)),
        (_, Nan { negative, fraction }) => Value::Nan(b_nan(negative, fraction)),
        (Infinite { .. }, Finite { significand: 0, .. })
        | (Finite { significand: 0, .. }, Infinite { .. }) => Value::Nan(GENERATED),
        (Infinite { negative: a }, Infinite { negative: b } | Finite { negative: b, .. })
        | (Finite { negative: a, .. }, Infinite { negative: b }) => {
            Value::Infinite { negative: a != b, overflowed: false }
        }
    }
}

fn form_product(rule: &Product, exact: Term) -> Value {
    match rule {
        Product::Exact => finite(exact),
        Product::Rounded(round) => match rounded(round, &exact) {
            Value::Infinite { negative, .. } => Value::Infinite { negative, overflowed: true },
            value => value,
        },
        Product::OverflowsAt { exponent }
            if exact.leading_exponent().is_some_and(|leading| leading >= *exponent) =>
        {
            Value::Infinite { negative: exact.negative, overflowed: true }
        }
        Product::FlushedBelow { exponent, sign_kept }
            if exact.leading_exponent().is_some_and(|leading| leading < *exponent) =>
        {
            finite(Term::zero(exact.negative && *sign_kept, exact.exponent))
        }
        Product::OverflowsAt { .. } | Product::FlushedBelow { .. } => finite(exact),
    }
}

fn finite(term: Term) -> Value {
    Value::Finite(Number { term, is_open_sum: false, lowered: 0 })
}

/// Rounds to a format; the nominal exponent becomes the format's.
fn rounded(round: &RoundTo, term: &Term) -> Value {
    match round.round(term) {
        Decoded::Finite { negative, significand, exponent } => {
            let lsb = exponent - round.format.fraction_bits as i32;
            finite(Term::new(negative, significand as u128, lsb, exponent))
        }
        Decoded::Infinite { negative } => Value::Infinite { negative, overflowed: false },
        // What overflows in a format without infinity.
        Decoded::Nan { .. } => Value::Nan(GENERATED),
    }
}

/// A value times a scale.
pub(crate) fn scaled(value: &Value, scale: Decoded, format: &Format) -> Value {
    match (value, scale) {
        // A scale that is NaN makes the result NaN (MMA-Sim paper, section IV.C, "Scale factor").
        (_, Decoded::Nan { .. }) => Value::Nan(GENERATED),
        (Value::Nan(nan), _) => Value::Nan(*nan),
        (
            Value::Finite(Number { term, is_open_sum, lowered }),
            Decoded::Finite { negative, significand, exponent },
        ) => {
            let mut term = term.scaled(significand, exponent - format.fraction_bits as i32, exponent);
            term.negative ^= negative;
            Value::Finite(Number { term, is_open_sum: *is_open_sum, lowered: *lowered })
        }
        (Value::Infinite { .. }, Decoded::Finite { significand: 0, .. }) => Value::Nan(GENERATED),
        (
            Value::Infinite { negative: sign, overflowed },
            Decoded::Finite { negative, .. } | Decoded::Infinite { negative },
        ) => Value::Infinite { negative: sign ^ negative, overflowed: *overflowed },
        (Value::Finite(Number { term, .. }), Decoded::Infinite { negative }) => {
            if term.is_zero() {
                Value::Nan(GENERATED)
            } else {
                Value::Infinite { negative: term.negative ^ negative, overflowed: false }
            }
        }
    }
}

/// What NaNs that meet in an operation become: the one that goes first, or all of them in one.
fn preferred(model: &Model, nans: impl Iterator<Item = Nan>) -> Nan {
    let rule = match &model.nan {
        NanRule::Propagated(rule) => rule,
        NanRule::Merged { generated } => {
            let patterns = nans.map(|nan| with_pattern(nan, *generated, &model.d));
            let merged = patterns.reduce(|all, nan| Nan { fraction: all.fraction | nan.fraction, ..nan });
            // It has its pattern, even if what the operation generated was the last.
            let source = Some(NanSource::Accumulator);
            return merged.map_or(GENERATED, |nan| Nan { source, ..nan });
        }
        NanRule::Canonical(_) | NanRule::Unknown => return GENERATED,
    };
    let rank = |nan: &Nan| match nan.source {
        None if rule.generated_first => 0,
        None => 4,
        Some(source) => 1 + rule.order.iter().position(|&s| s == source).unwrap_or(3),
    };
    // `min_by_key` takes the first of equals.
    let chosen = if rule.later_first {
        let mut best: Option<Nan> = None;
        for nan in nans {
            if best.is_none_or(|b| rank(&nan) <= rank(&b)) {
                best = Some(nan);
            }
        }
        best
    } else {
        nans.min_by_key(rank)
    };
    chosen.unwrap_or(GENERATED)
}

/// A sum of values.
pub(crate) fn sum<'v>(
    model: &Model,
    rule: &Rule,
    summands: impl Iterator<Item = &'v Value> + Clone,
    terms: &mut Vec<Term>,
) -> Value {
    if summands.clone().any(|value| !matches!(value, Value::Finite(_))) {
        return special_sum(model, rule, summands);
    }
    let numbers = summands.map(|value| match value {
        Value::Finite(number) => number,
        _ => unreachable!("special values have been dealt with"),
    });
    let mut total = match &rule.added {
        Added::Exact => {
            let mut two = numbers.clone().map(|number| &number.term);
            match (two.next(), two.next(), two.next()) {
                (Some(x), Some(y), None) if matches!(rule.normalised, Normalised::To(_)) => {
                    Term::sum_for_rounding(x, y)
                }
                _ => Term::sum(numbers.clone().map(|number| &number.term)),
            }
        }
        Added::Fused(fused) => fused_sum(fused, numbers.clone(), terms),
    };
    if total.is_zero() {
        let all_zero = numbers.clone().all(|number| number.term.is_zero());
        let mut negative = numbers.map(|number| number.term.negative);
        total.negative = match (all_zero, negative.next()) {
            // All zeros have the sign of the first.
            (true, Some(first)) if negative.all(|other| other == first) => {
                first && rule.zero.negative_zeros_stay
            }
            _ => rule.zero.cancellation_is_negative,
        };
    }
    match &rule.normalised {
        Normalised::No { exponent } => {
            if let Some(exponent) = exponent {
                total.exponent = *exponent;
            }
            Value::Finite(Number { term: total, is_open_sum: true, lowered: 0 })
        }
        Normalised::To(round) => {
            let was_zero = total.is_zero();
            match rounded(round, &total) {
                Value::Finite(mut number) if number.term.is_zero() && !was_zero => {
                    number.term.negative &= rule.zero.underflow_keeps_sign;
                    Value::Finite(number)
                }
                value => value,
            }
        }
    }
}

/// A NaN that leaves a sum. Whoever brought it there, to what follows it is an earlier sum, with the
/// pattern that it has.
fn handed_on(model: &Model, nan: Nan) -> Nan {
    let (generated, quieted) = match &model.nan {
        NanRule::Propagated(rule) => (rule.generated, rule.quieted && nan.source.is_some()),
        NanRule::Merged { generated } => (*generated, false),
        NanRule::Canonical(_) | NanRule::Unknown => return Nan { overflowed: false, ..nan },
    };
    let mut nan = with_pattern(nan, generated, &model.d);
    if quieted {
        nan.fraction |= quiet_bit(&model.d);
    }
    Nan { source: Some(NanSource::Accumulator), overflowed: false, ..nan }
}

/// A NaN with sign and fraction: where no operand brought it along, those of the pattern `generated`.
fn with_pattern(nan: Nan, generated: u64, d: &Format) -> Nan {
    let (negative, fraction) = match (nan.source, d.decode(generated)) {
        (Some(_), _) => (nan.negative, nan.fraction),
        (None, Decoded::Nan { negative, fraction }) => (negative, fraction),
        (None, _) => (false, quiet_bit(d)),
    };
    Nan { negative, fraction, ..nan }
}

/// The sum where a summand is NaN or infinite.
fn special_sum<'v>(model: &Model, rule: &Rule, summands: impl Iterator<Item = &'v Value> + Clone) -> Value {
    let mut any_nan = false;
    let mut overflowed_nan = false;
    // Signs seen among infinite operands, and among overflowed products.
    let mut operands = [false; 2];
    let mut products = [false; 2];
    for value in summands.clone() {
        match value {
            Value::Nan(nan) if nan.overflowed && rule.infinite_operands_first => overflowed_nan = true,
            Value::Nan(_) => any_nan = true,
            Value::Infinite { negative, overflowed: true } => products[*negative as usize] = true,
            Value::Infinite { negative, overflowed: false } => operands[*negative as usize] = true,
            Value::Finite(_) => {}
        }
    }
    let no_operand = operands == [false; 2];
    let deciding = if no_operand {
        if overflowed_nan { [true; 2] } else { products }
    } else if rule.infinite_operands_first {
        operands
    } else {
        [operands[0] || products[0], operands[1] || products[1]]
    };
    if any_nan {
        let generated = (deciding == [true; 2]).then_some(GENERATED);
        let nans = summands.filter_map(|value| match value {
            Value::Nan(nan) => Some(*nan),
            _ => None,
        });
        let nan = handed_on(model, preferred(model, nans.chain(generated)));
        return Value::Nan(nan);
    }
    // What is rounded is an operand of whatever follows.
    let overflowed = no_operand && matches!(rule.normalised, Normalised::No { .. });
    match deciding {
        [true, true] => Value::Nan(Nan { overflowed, ..handed_on(model, GENERATED) }),
        [_, negative] => Value::Infinite { negative, overflowed },
    }
}

/// The exponent by which a fused sum aligns a summand.
fn exponent_of(fused: &Fused, number: &Number) -> i32 {
    match fused.exponents {
        _ if fused.zeros == ZeroTerms::CountedAsFp32 && number.term.is_zero() => {
            number.term.exponent - number.lowered
        }
        Exponents::Raw => number.term.exponent,
        Exponents::Normalised => number.term.leading_exponent().unwrap_or(number.term.exponent),
    }
}

/// The exponent that a fused sum aligns its summands to; `None` if none of them counts, and there is no
/// floor.
pub fn largest_exponent<'v>(fused: &Fused, numbers: impl Iterator<Item = &'v Number>) -> Option<i32> {
    let counts = |number: &&Number| match fused.zeros {
        ZeroTerms::Counted | ZeroTerms::CountedAsFp32 => true,
        ZeroTerms::SumsCounted => !number.term.is_zero() || number.is_open_sum,
        ZeroTerms::Ignored => !number.term.is_zero(),
    };
    numbers.filter(counts).map(|number| exponent_of(fused, number)).max().max(fused.floor)
}

/// What a fused sum keeps of the summand at this position when it aligns to an exponent: multiples of
/// two to the first result, rounded by the second.
pub fn cut(fused: &Fused, position: usize, number: &Number, largest: i32) -> (i32, Rounding) {
    let alignment = fused.alignment_of(position);
    let rounding = match alignment.far {
        Some(far) if exponent_of(fused, number) < largest - far.distance => far.rounding,
        _ => alignment.rounding,
    };
    (largest - alignment.fraction_bits as i32, rounding)
}

fn fused_sum<'v>(
    fused: &Fused,
    numbers: impl Iterator<Item = &'v Number> + Clone,
    terms: &mut Vec<Term>,
) -> Term {
    let Some(largest) = largest_exponent(fused, numbers.clone()) else {
        return Term::zero(false, BELOW_ALL);
    };
    let finest =
        numbers.clone().enumerate().map(|(position, _)| fused.alignment_of(position).fraction_bits).max();
    let unit = largest - finest.unwrap_or(0) as i32;
    let aligned = numbers.enumerate().map(|(position, number)| {
        let (quantum, rounding) = cut(fused, position, number, largest);
        (&number.term, quantum, rounding)
    });
    let lost = fused.sticky && aligned.clone().any(|(term, quantum, _)| !term.is_multiple_of(quantum));
    // Nearly always a fixed-point sum of 128 bits is enough. (2^7 summands of 120 bits fit.)
    let fixed = aligned.clone().try_fold((0i128, 0), |(sum, count), (term, quantum, rounding)| {
        (count < 128).then_some((sum + term.fixed(quantum, rounding, unit)?, count + 1))
    });
    let total = if let Some((sum, _)) = fixed {
        Term::new(sum < 0, sum.unsigned_abs(), unit, largest)
    } else {
        terms.clear();
        terms.extend(aligned.map(|(term, quantum, rounding)| term.aligned(quantum, rounding, largest)));
        Term::sum(&*terms)
    };
    let total = match fused.carry {
        Some(carry) => limited(total, carry, largest, unit),
        None => total,
    };
    if lost && !total.is_zero() {
        let bit = Term::new(total.negative, 1, unit - 1, largest);
        return Term { exponent: largest, ..Term::sum([&total, &bit]) };
    }
    Term { exponent: largest, ..total }
}

/// Applies a limit to the integer part of a fused sum, which counts in units of 2^`quantum`.
fn limited(total: Term, carry: Carry, largest: i32, quantum: i32) -> Term {
    let limit = largest + carry.bits as i32;
    let fits = |term: &Term| match term.leading_exponent() {
        None => true,
        Some(leading) if leading < limit => true,
        // −2^bits itself is in range.
        Some(leading) => {
            leading == limit
                && term.negative
                && Term::sum([term, &Term::new(false, 1, limit, limit)]).is_zero()
        }
    };
    if fits(&total) {
        return total;
    }
    let end = Term::new(total.negative, 1, limit, largest);
    // What is subtracted to bring the sum into the range.
    let mut excess = match carry.beyond {
        Beyond::Saturates if total.negative => return end,
        Beyond::Saturates => {
            let unit = Term::new(true, 1, quantum, largest);
            return Term { exponent: largest, ..Term::sum([&end, &unit]) };
        }
        // The multiple of 2^(bits + 1) below the sum and half of that.
        Beyond::Wraps => {
            let half = Term::new(false, 1, limit, largest);
            Term::sum([&total, &half]).aligned(limit + 1, Rounding::Down, largest)
        }
        Beyond::MagnitudeWraps => total.aligned(limit, Rounding::TowardZero, largest),
    };
    excess.negative = !excess.negative;
    Term { exponent: largest, ..Term::sum([&total, &excess]) }
}
