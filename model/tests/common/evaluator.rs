//! Sum trees over big rationals: what the documentation of `tree.rs` says, for any tree.
//!
//! Where it leaves a choice: a fused sum in which no summand counts is a zero, filed below every exponent; a
//! sum of non-zero summands that were cut to zero is a cancellation.

use mmaprobe_model::Rounding;
use mmaprobe_model::format::RoundTo;
use mmaprobe_model::tree::{
    Added, Beyond, Exponents, Fused, InputInfinities, InputSubnormals, Model, Node, Normalised, Operand,
    Product, Rule, ZeroTerms,
};
use num_bigint::BigInt;
use num_traits::{Signed, Zero};

use super::inputs::DotAdd;
use super::rational::{Rounded, leading, number, power, round, to_multiple};
use super::spec::{Kind, Read, Spec};

#[derive(Clone, Debug)]
pub enum Value {
    Nan { late: bool },
    Inf { neg: bool, late: bool },
    Num(Num),
}

#[derive(Clone, Debug)]
pub struct Num {
    pub x: BigInt,
    pub neg: bool,
    pub e: i32,
    /// The same, if operands that are zero have the exponent −126.
    pub as_fp32: i32,
    pub open: bool,
}

/// Below every exponent: that of [`Node::Zero`].
const NEVER: i32 = i32::MIN / 4;

/// NaN, or anything with its sign.
pub fn evaluate(model: &Model, dot_add: &DotAdd) -> Value {
    let mut values: Vec<Value> = Vec::new();
    for node in &model.tree.nodes {
        let value = match node {
            Node::Accumulator => read(&model.c, dot_add.c),
            Node::Zero => {
                Value::Num(Num { x: BigInt::zero(), neg: false, e: NEVER, as_fp32: NEVER, open: false })
            }
            Node::Product(k) => {
                let exact = multiply(&read(&model.a, dot_add.a[*k]), &read(&model.b, dot_add.b[*k]));
                match (&model.product, exact) {
                    (Product::Rounded(to), Value::Num(p)) => match rounded(&p.x, p.neg, to) {
                        Value::Inf { neg, .. } => Value::Inf { neg, late: true },
                        value => value,
                    },
                    (Product::OverflowsAt { exponent }, Value::Num(p)) if p.x.abs() >= power(*exponent) => {
                        Value::Inf { neg: p.neg, late: true }
                    }
                    (Product::FlushedBelow { exponent, sign_kept }, Value::Num(p))
                        if !p.x.is_zero() && p.x.abs() < power(*exponent) =>
                    {
                        Value::Num(Num { x: BigInt::zero(), neg: p.neg && *sign_kept, ..p })
                    }
                    (_, value) => value,
                }
            }
            Node::Scaled { child, block } => {
                let scale = Operand::plain(model.scale.unwrap().format);
                let mut scale =
                    multiply(&read(&scale, dot_add.sa[*block]), &read(&scale, dot_add.sb[*block]));
                // A scale is no operand: one that is zero keeps its exponent.
                if let Value::Num(scale) = &mut scale {
                    scale.as_fp32 = scale.e;
                }
                match (multiply(&values[*child], &scale), &values[*child]) {
                    (Value::Num(scaled), Value::Num(child)) => Value::Num(Num { open: child.open, ..scaled }),
                    (Value::Inf { neg, .. }, Value::Inf { late, .. }) => Value::Inf { neg, late: *late },
                    (Value::Nan { .. }, Value::Nan { late }) if !matches!(scale, Value::Nan { .. }) => {
                        Value::Nan { late: *late }
                    }
                    (value, _) => value,
                }
            }
            Node::Sum { children, rule } => {
                let summands: Vec<&Value> = children.iter().map(|&child| &values[child]).collect();
                sum(&model.tree.rules[*rule], &summands)
            }
        };
        values.push(value);
    }
    values.pop().expect("a tree has a root")
}

fn read(operand: &Operand, bits: u64) -> Value {
    let spec = Spec::of(operand.format.name);
    match spec.read(bits) {
        Read::Nan => Value::Nan { late: false },
        Read::Inf { neg } => match operand.infinities {
            InputInfinities::Kept => Value::Inf { neg, late: false },
            InputInfinities::Nan => Value::Nan { late: false },
            InputInfinities::Largest => {
                let (s, l) = spec.max();
                let e = l + spec.m as i32;
                Value::Num(Num { x: number(neg, s, l), neg, e, as_fp32: e, open: false })
            }
        },
        Read::Num { neg, s, l, e } => {
            let subnormal = spec.kind != Kind::Power && s > 0 && s < 1 << spec.m;
            let (s, neg) = match operand.subnormals {
                InputSubnormals::FlushedToPositiveZero if subnormal => (0, false),
                InputSubnormals::FlushedToSignedZero if subnormal => (0, neg),
                _ => (s, neg),
            };
            let as_fp32 = if s == 0 { -126 } else { e };
            Value::Num(Num { x: number(neg, s, l), neg, e, as_fp32, open: false })
        }
    }
}

fn multiply(a: &Value, b: &Value) -> Value {
    match (a, b) {
        (Value::Nan { .. }, _) | (_, Value::Nan { .. }) => Value::Nan { late: false },
        (Value::Inf { neg: a, .. }, Value::Inf { neg: b, .. }) => Value::Inf { neg: a != b, late: false },
        (Value::Inf { neg, .. }, Value::Num(x)) | (Value::Num(x), Value::Inf { neg, .. }) => {
            if x.x.is_zero() {
                Value::Nan { late: false }
            } else {
                Value::Inf { neg: *neg != x.neg, late: false }
            }
        }
        (Value::Num(a), Value::Num(b)) => {
            let product: BigInt = &a.x * &b.x;
            let x: BigInt = &product >> super::rational::D as usize;
            assert_eq!(&x << super::rational::D as usize, product, "the denominator is large enough");
            let (e, as_fp32) = (a.e + b.e, a.as_fp32 + b.as_fp32);
            Value::Num(Num { x, neg: a.neg != b.neg, e, as_fp32, open: false })
        }
    }
}

/// What a number of the format is: its raw exponent, an infinity or NaN where there is none.
fn rounded(x: &BigInt, neg: bool, to: &RoundTo) -> Value {
    let spec = Spec::of(to.format.name);
    match round(x, neg, to) {
        Rounded::Number { neg, x } => {
            let e = if x.is_zero() { spec.emin() } else { leading(&x).max(spec.emin()) };
            Value::Num(Num { x, neg, e, as_fp32: e, open: false })
        }
        Rounded::Infinite { neg } => match spec.kind {
            Kind::Ieee => Value::Inf { neg, late: false },
            Kind::Finite => {
                let (s, l) = spec.max();
                let e = l + spec.m as i32;
                Value::Num(Num { x: number(neg, s, l), neg, e, as_fp32: e, open: false })
            }
            _ => Value::Nan { late: false },
        },
    }
}

fn sum(rule: &Rule, summands: &[&Value]) -> Value {
    let passes = matches!(rule.normalised, Normalised::No { .. });
    let early = !rule.infinite_operands_first;
    // Who is there before products are formed; without the rule, everyone is.
    let any = |test: &dyn Fn(&Value) -> bool| summands.iter().any(|value| test(value));
    let inf = |sign: bool, when: Option<bool>| {
        any(
            &|value| matches!(value, Value::Inf { neg, late } if *neg == sign && when.is_none_or(|when| when == *late)),
        )
    };
    if any(&|value| matches!(value, Value::Nan { late } if early || !late)) {
        return Value::Nan { late: false };
    }
    let operands = inf(false, Some(false)) || inf(true, Some(false));
    if !early && operands {
        return match (inf(false, Some(false)), inf(true, Some(false))) {
            (true, true) => Value::Nan { late: false },
            (_, neg) => Value::Inf { neg, late: false },
        };
    }
    let late = passes && !operands;
    if any(&|value| matches!(value, Value::Nan { .. })) {
        return Value::Nan { late };
    }
    match (inf(false, None), inf(true, None)) {
        (true, true) => return Value::Nan { late },
        (false, false) => {}
        (_, neg) => return Value::Inf { neg, late },
    }
    let numbers: Vec<&Num> = summands
        .iter()
        .map(|value| match value {
            Value::Num(number) => number,
            _ => unreachable!(),
        })
        .collect();
    let (x, mut e) = match &rule.added {
        Added::Exact => {
            (numbers.iter().map(|n| &n.x).sum::<BigInt>(), numbers.iter().map(|n| n.e).max().unwrap())
        }
        Added::Fused(fused) => fused_sum(fused, &numbers),
    };
    let zeros = numbers.iter().all(|n| n.x.is_zero());
    let neg = if !x.is_zero() {
        x.is_negative()
    } else if zeros && numbers.iter().all(|n| n.neg) {
        rule.zero.negative_zeros_stay
    } else if zeros && numbers.iter().all(|n| !n.neg) {
        false
    } else {
        rule.zero.cancellation_is_negative
    };
    match &rule.normalised {
        Normalised::No { exponent } => {
            e = exponent.unwrap_or(e);
            Value::Num(Num { x, neg, e, as_fp32: e, open: true })
        }
        Normalised::To(to) => match rounded(&x, neg, to) {
            Value::Num(mut n) if n.x.is_zero() && !x.is_zero() => {
                n.neg &= rule.zero.underflow_keeps_sign;
                Value::Num(n)
            }
            value => value,
        },
    }
}

fn fused_sum(fused: &Fused, numbers: &[&Num]) -> (BigInt, i32) {
    let exponent = |n: &Num| match fused.exponents {
        _ if n.x.is_zero() && fused.zeros == ZeroTerms::CountedAsFp32 => n.as_fp32,
        Exponents::Normalised if !n.x.is_zero() => leading(&n.x),
        _ => n.e,
    };
    let counted = numbers.iter().filter(|n| match fused.zeros {
        ZeroTerms::Counted | ZeroTerms::CountedAsFp32 => true,
        ZeroTerms::SumsCounted => n.open || !n.x.is_zero(),
        ZeroTerms::Ignored => !n.x.is_zero(),
    });
    let Some(largest) = counted.map(|n| exponent(n)).chain(fused.floor).max() else {
        return (BigInt::zero(), NEVER);
    };
    let alignment = |i: usize| fused.alignment[i.min(fused.alignment.len() - 1)];
    let finest = (0..numbers.len()).map(|i| alignment(i).fraction_bits as i32).max().unwrap();
    let mut sum = BigInt::zero();
    let mut lossless = true;
    for (i, n) in numbers.iter().enumerate() {
        let alignment = alignment(i);
        let rounding = match alignment.far {
            Some(far) if exponent(n) < largest - far.distance => far.rounding,
            _ => alignment.rounding,
        };
        let quantum = largest - alignment.fraction_bits as i32;
        sum += to_multiple(&n.x, quantum, rounding);
        let (down, up) = (Rounding::Down, Rounding::Up);
        lossless &= to_multiple(&n.x, quantum, down) == to_multiple(&n.x, quantum, up);
    }
    if let Some(carry) = fused.carry
        && !sum.is_zero()
    {
        let limit = power(largest + carry.bits as i32);
        match carry.beyond {
            Beyond::Saturates => sum = sum.clamp(-&limit, &limit - power(largest - finest)),
            Beyond::Wraps => {
                let period: BigInt = &limit * 2;
                let offset: BigInt = &sum + &limit;
                // The remainder takes the sign of the dividend.
                let rest = ((offset % &period) + &period) % &period;
                sum = rest - limit;
            }
            Beyond::MagnitudeWraps if sum >= -&limit && sum < limit => {}
            Beyond::MagnitudeWraps => sum %= limit,
        }
    }
    if fused.sticky && !lossless {
        // The sign is that of the sum, and that of zero is 0.
        sum += sum.signum() * power(largest - finest - 1);
    }
    (sum, largest)
}
