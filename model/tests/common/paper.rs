//! The nine algorithms as the MMA-Sim paper's section IV states them, step by step, on fixed-point
//! integers and (where the paper says "standard operation") on the hardware's own arithmetic.
//!
//! Where the paper is silent: NVIDIA's zero sums are +0; AMD's are −0 if every product and c is −0. A
//! zero has the exponent of its raw representation, as Step 2 of FDA has it for subnormal numbers, and
//! takes part in the largest exponent. NaNs are canonical.

use super::inputs::DotAdd;
use super::spec::{Read, Spec};

/// s × 2^l with the exponent e; `neg` is the sign of a zero too.
#[derive(Clone, Copy)]
struct Fixed {
    neg: bool,
    s: i128,
    l: i32,
    e: i32,
}

#[derive(Clone, Copy)]
enum Value {
    Nan,
    Inf { neg: bool },
    Num(Fixed),
}

fn read(spec: &Spec, bits: u64) -> Value {
    match spec.read(bits) {
        Read::Nan => Value::Nan,
        Read::Inf { neg } => Value::Inf { neg },
        Read::Num { neg, s, l, e } => {
            Value::Num(Fixed { neg, s: if neg { -(s as i128) } else { s as i128 }, l, e })
        }
    }
}

/// Step 2 of FDA.
fn multiply(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Inf { neg: a }, Value::Inf { neg: b }) => Value::Inf { neg: a != b },
        (Value::Inf { neg }, Value::Num(x)) | (Value::Num(x), Value::Inf { neg }) => {
            if x.s == 0 {
                Value::Nan
            } else {
                Value::Inf { neg: neg != x.neg }
            }
        }
        (Value::Num(a), Value::Num(b)) => {
            Value::Num(Fixed { neg: a.neg != b.neg, s: a.s * b.s, l: a.l + b.l, e: a.e + b.e })
        }
    }
}

/// The result of checking special values: NaN if there is one or both infinities, or the only kind of
/// infinity, or nothing.
fn specials(values: &[Value]) -> Option<Value> {
    let has = |sign| values.iter().any(|value| matches!(value, Value::Inf { neg } if *neg == sign));
    let nan = values.iter().any(|value| matches!(value, Value::Nan));
    match (nan, has(false), has(true)) {
        (true, _, _) | (_, true, true) => Some(Value::Nan),
        (_, false, false) => None,
        (_, _, neg) => Some(Value::Inf { neg }),
    }
}

fn numbers(values: &[Value]) -> Vec<Fixed> {
    values
        .iter()
        .map(|value| match value {
            Value::Num(x) => *x,
            _ => unreachable!("special values have been checked"),
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Truncated,
    RoundedDown,
}

/// A significand shifted right by e_max − e with F fractional bits: a multiple of 2^(e_max − F).
fn align(x: &Fixed, e_max: i32, f: i32, cut: Cut) -> i128 {
    let shift = x.l - (e_max - f);
    if shift >= 0 {
        return x.s * (1 << shift);
    }
    let unit = 1i128 << (-shift).min(120);
    match cut {
        // The division of Rust truncates.
        Cut::Truncated => x.s / unit,
        Cut::RoundedDown => x.s.div_euclid(unit),
    }
}

fn largest(numbers: &[Fixed]) -> i32 {
    numbers.iter().map(|x| x.e).max().expect("a summand")
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Rz,
    Rne,
}

/// sum × 2^unit in a format: at most `f` fractional bits, infinity beyond the range.
fn normalise(sum: i128, unit: i32, negative_zero: bool, spec: &Spec, f: u32, mode: Mode) -> u64 {
    if sum == 0 {
        return spec.encode(negative_zero, 0, 0);
    }
    let (neg, magnitude) = (sum < 0, sum.unsigned_abs());
    let e = unit + magnitude.ilog2() as i32;
    let mut quantum = e.max(spec.emin()) - f as i32;
    let mut n = if quantum <= unit {
        magnitude << (unit - quantum)
    } else if quantum - unit > 120 {
        0
    } else {
        let divisor = 1u128 << (quantum - unit);
        let (n, rest) = (magnitude / divisor, magnitude % divisor);
        let up = mode == Mode::Rne && (2 * rest > divisor || 2 * rest == divisor && n % 2 == 1);
        n + up as u128
    };
    if n == 2 << f {
        n /= 2;
        quantum += 1;
    }
    let field = if n < 1 << f { 0 } else { quantum + f as i32 + spec.bias };
    if field >= (1 << spec.e) - 1 {
        return spec.infinity(neg);
    }
    let fraction = (n % (1 << f)) as u64;
    spec.encode(neg, field as u64, fraction << (spec.m - f))
}

fn deliver(special: Value, spec: &Spec, nan: u64) -> u64 {
    match special {
        Value::Nan => nan,
        Value::Inf { neg } => spec.infinity(neg),
        Value::Num(_) => unreachable!("a special value"),
    }
}

/// Algorithm 1, in fp32.
pub fn sfma_f32(widen: impl Fn(u64) -> f32, x: &DotAdd, nan: u64) -> u64 {
    let mut d = f32::from_bits(x.c as u32);
    for (&a, &b) in x.a.iter().zip(&x.b) {
        d = widen(a).mul_add(widen(b), d);
    }
    if d.is_nan() { nan } else { d.to_bits().into() }
}

/// Algorithm 1, in fp64.
pub fn sfma_f64(x: &DotAdd, nan: u64) -> u64 {
    let mut d = f64::from_bits(x.c);
    for (&a, &b) in x.a.iter().zip(&x.b) {
        d = f64::from_bits(a).mul_add(f64::from_bits(b), d);
    }
    if d.is_nan() { nan } else { d.to_bits() }
}

/// Algorithms 2 and 3.
pub fn gps(widen: impl Fn(u64) -> f32, group: usize, smallest_input: f32, x: &DotAdd, nan: u64) -> u64 {
    fn flush(x: f32) -> f32 {
        if x.abs() < f32::MIN_POSITIVE { x * 0.0 } else { x }
    }
    fn pairwise_sum(p: &[f32]) -> f32 {
        if let [p] = p {
            return *p;
        }
        let (low, high) = p.split_at(p.len() / 2);
        flush(pairwise_sum(low) + pairwise_sum(high))
    }
    // Step 1 of the text: a number that is subnormal in its own format. Algorithm 3 prints |x| < 2^−126
    // for all of them, which would keep fp16's subnormal numbers, and would turn −0 into +0.
    let input = |x: f32, smallest: f32| if x != 0.0 && x.abs() < smallest { 0.0 } else { x };
    let products: Vec<f32> = (x.a.iter().zip(&x.b))
        .map(|(&a, &b)| flush(input(widen(a), smallest_input) * input(widen(b), smallest_input)))
        .collect();
    let mut d = input(f32::from_bits(x.c as u32), f32::MIN_POSITIVE);
    for products in products.chunks(group) {
        d = flush(d + pairwise_sum(products));
    }
    if d.is_nan() { nan } else { d.to_bits().into() }
}

/// The parameters of an FDA operation.
#[derive(Clone, Copy)]
pub struct Fda {
    pub a: Spec,
    pub b: Spec,
    pub c: Spec,
    /// Of the scales, one for 32 products.
    pub scale: Option<Spec>,
    pub f: i32,
    pub d: Spec,
    pub d_fraction_bits: u32,
    pub d_mode: Mode,
    pub nan: u64,
}

impl Fda {
    /// Section IV.C.
    pub fn dot_add(&self, c: u64, x: &DotAdd, products: std::ops::Range<usize>) -> u64 {
        // Steps 1 and 2.
        let mut values = vec![read(&self.c, c)];
        for k in products {
            let mut p = multiply(read(&self.a, x.a[k]), read(&self.b, x.b[k]));
            if let Some(scale) = &self.scale {
                p = multiply(p, multiply(read(scale, x.sa[k / 32]), read(scale, x.sb[k / 32])));
            }
            values.push(p);
        }
        if let Some(special) = specials(&values) {
            return deliver(special, &self.d, self.nan);
        }
        // Steps 3 to 5.
        let numbers = numbers(&values);
        let e_max = largest(&numbers);
        let sum = numbers.iter().map(|x| align(x, e_max, self.f, Cut::Truncated)).sum();
        normalise(sum, e_max - self.f, false, &self.d, self.d_fraction_bits, self.d_mode)
    }

    /// Section IV.D, equation 6.
    pub fn chain(&self, x: &DotAdd) -> u64 {
        let k = x.a.len();
        let half = self.dot_add(x.c, x, 0..k / 2);
        // The intermediate result is an operand of the second operation, in the format of d.
        Fda { c: self.d, ..*self }.dot_add(half, x, k / 2..k)
    }
}

/// Section IV.E.
pub fn gdfs(scale: &Spec, block: usize, x: &DotAdd, nan: u64) -> u64 {
    let (e2m1, fp32) = (Spec::of("e2m1"), Spec::of("fp32"));
    // Step 1.
    let c = read(&fp32, x.c);
    let scales: Vec<Value> = x.sa.iter().chain(&x.sb).map(|&bits| read(scale, bits)).collect();
    if let Some(special) = specials(&scales).or_else(|| specials(&[c])) {
        return deliver(special, &fp32, nan);
    }
    let mut summands = numbers(&[c]);
    for group in 0..4 {
        // Steps 2 and 3: FP4 products are multiples of 2^−2.
        let sigma = (16 * group..16 * (group + 1))
            .map(|k| match multiply(read(&e2m1, x.a[k]), read(&e2m1, x.b[k])) {
                Value::Num(p) => p.s << (p.l + 2),
                _ => unreachable!("FP4 numbers are finite"),
            })
            .sum();
        // Step 4.
        let sigma = Value::Num(Fixed { neg: false, s: sigma, l: -2, e: 0 });
        let index = 16 * group / block;
        let scale = multiply(read(scale, x.sa[index]), read(scale, x.sb[index]));
        summands.extend(numbers(&[multiply(sigma, scale)]));
    }
    // Steps 5 to 7.
    let e_max = largest(&summands);
    let sum = summands.iter().map(|x| align(x, e_max, 35, Cut::Truncated)).sum();
    normalise(sum, e_max - 35, false, &fp32, 23, Mode::Rz)
}

/// Sections IV.F and (`grouped`) IV.H.
pub fn fdrda(
    factors: [&Spec; 2],
    grouped: bool,
    c: u64,
    x: &DotAdd,
    products: std::ops::Range<usize>,
    nan: u64,
) -> u64 {
    let fp32 = Spec::of("fp32");
    // Step 1.
    let c = read(&fp32, c);
    let mut values: Vec<Value> =
        products.map(|k| multiply(read(factors[0], x.a[k]), read(factors[1], x.b[k]))).collect();
    values.push(c);
    if let Some(special) = specials(&values) {
        return deliver(special, &fp32, nan);
    }
    values.pop();
    // Steps 2 and 3.
    for value in &mut values {
        if let Value::Num(p) = *value
            && p.s != 0
            && p.l + p.s.unsigned_abs().ilog2() as i32 >= 128
        {
            *value = Value::Inf { neg: p.neg };
        }
    }
    if let Some(special) = specials(&values) {
        return deliver(special, &fp32, nan);
    }
    let (products, c) = (numbers(&values), numbers(&[c])[0]);
    // The sign of a zero, where the paper is silent.
    let negative_zero = products.iter().all(|p| p.s == 0 && p.neg) && c.s == 0 && c.neg;
    // FDRDA, steps 4 and 5; GFDRDA, steps 4 to 7.
    let dot = |products: &[Fixed]| {
        let e = largest(products);
        let s = products.iter().map(|x| align(x, e, 24, Cut::Truncated)).sum();
        Fixed { neg: false, s, l: e - 24, e }
    };
    let dot = if grouped {
        let even = dot(&products.iter().copied().step_by(2).collect::<Vec<_>>());
        let odd = dot(&products.iter().copied().skip(1).step_by(2).collect::<Vec<_>>());
        let e = even.e.max(odd.e);
        let s = align(&even, e, 24, Cut::RoundedDown) + align(&odd, e, 24, Cut::RoundedDown);
        Fixed { neg: false, s, l: e - 24, e }
    } else {
        dot(&products)
    };
    // FDRDA, steps 6 to 8; GFDRDA, steps 8 to 10. Units of 2^(e_max − 31).
    let e_max = dot.e.max(c.e);
    let cut_c = if grouped && c.e < e_max - 25 { Cut::Truncated } else { Cut::RoundedDown };
    let sum = align(&dot, e_max, 31, Cut::RoundedDown) + (align(&c, e_max, 24, cut_c) << 7);
    normalise(sum, e_max - 31, negative_zero, &fp32, 23, Mode::Rne)
}

/// Sections IV.G and IV.I.
pub fn chain_of_fdrda(factors: [&Spec; 2], grouped: bool, x: &DotAdd, nan: u64) -> u64 {
    let k = x.a.len();
    let half = fdrda(factors, grouped, x.c, x, 0..k / 2, nan);
    fdrda(factors, grouped, half, x, k / 2..k, nan)
}
