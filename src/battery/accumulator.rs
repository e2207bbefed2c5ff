//! The accumulator: bits below and above the result's, normalisation of partial sums, and monotonicity.

use super::lab::{Case, Facts, Lab, Question, difference};
use super::{Experiment, FASI_ACCUMULATOR, FASI_MONOTONICITY, Finding};
use crate::device::DeviceError;
use crate::model::{Rounding, Term};
use crate::probes::Summand;
use crate::probes::place::Dyadic;

const GUARD: Experiment = Experiment::new(
    "guard-digits",
    "What is left of 1 - (1 - 2^-p), the largest c below 1?",
    FASI_ACCUMULATOR,
);
const EXTRA: Experiment = Experiment::new(
    "extra-bits",
    "How many bits below the result's last one are kept when summands are aligned?",
    "Khattak and Mikaitis, extra alignment bits; Fasi et al. 2021",
);
const ADDITION: Experiment = Experiment::new(
    "normalised-addition",
    "Is a partial sum that reaches 1 normalised before the next summand comes?",
    FASI_ACCUMULATOR,
);
const SUBTRACTION: Experiment = Experiment::new(
    "normalised-subtraction",
    "Is a difference normalised before the next summand comes?",
    FASI_ACCUMULATOR,
);
const TWO_CARRIES: Experiment = Experiment::new(
    "carry-bits-2",
    "Do c's two lowest bits survive three 1s, and a carry into them, in any order?",
    FASI_ACCUMULATOR,
);
const THREE_CARRIES: Experiment = Experiment::new(
    "carry-bits-3",
    "Does the sum of five numbers below 2 reach 8 without overflow?",
    "Fasi et al. 2021, Features of the accumulator; Valpey et al. 2025, section 4.3",
);
const CARRIES: Experiment = Experiment::new(
    "carry-bits",
    "How many bits above those of the largest summand are there?",
    "Khattak and Mikaitis, carry bits; Valpey et al. 2025, section 4.3",
);
const MONOTONIC: Experiment =
    Experiment::new("monotonicity", "Can a larger summand make the result smaller?", FASI_MONOTONICITY);

pub(super) fn run(lab: &Lab, facts: &Facts, findings: &mut Vec<Finding>) -> Result<(), DeviceError> {
    findings.push(guard_digits(lab, facts)?);
    findings.push(extra_bits(lab, facts)?);
    findings.push(addition(lab, facts)?);
    findings.push(subtraction(lab, facts)?);
    findings.push(two_carries(lab, facts)?);
    findings.push(three_carries(lab, facts)?);
    findings.push(carries(lab, facts)?);
    findings.push(monotonicity(lab, facts)?);
    Ok(())
}

/// Bits of the largest c below 1: 1 − 2^−p.
fn c_precision(lab: &Lab) -> i32 {
    lab.signature.c.fraction_bits as i32 + 1
}

/// −(1 − 2^−p).
fn minus_below_one(lab: &Lab) -> Dyadic {
    let p = c_precision(lab);
    lab.number(1 - (1i64 << p), -p)
}

fn guard_digits(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let one = (Summand::Product(facts.together[0]), lab.number(1, 0));
    let cases = lab.ask(lab.values(&[one, (Summand::C, minus_below_one(lab))]).into_iter().collect())?;
    let Some(case) = cases.first() else {
        return Ok(GUARD.impossible("c's format does not reach 1"));
    };
    let exact = lab.number(1, -c_precision(lab));
    Ok(if lab.is(case, exact) {
        GUARD.finding(cases, "exact", "The bit shifted out at alignment is kept: at least one guard digit.")
    } else {
        let meaning = format!("The exact result is {}: there is no guard digit.", super::shown(exact));
        GUARD.finding(cases, "none", meaning)
    })
}

/// The last value that survives X and −X, and the first that does not: on a product, and on c.
fn extra_bits(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let (Some([minus, plus, small]), Some(bits)) = (facts.three(), facts.product_bits) else {
        return Ok(EXTRA.impossible(
            "no three summands are aligned together, or nothing that formats can express is lost",
        ));
    };
    let triple = |[minus, plus, small]: [Summand; 3], bits: i32| {
        lab.values(&[(minus, lab.number(-1, 0)), (plus, lab.number(1, 0)), (small, lab.number(1, -bits))])
    };
    let mut questions = vec![triple([minus, plus, small], bits), triple([minus, plus, small], bits + 1)];
    if let Some(c_bits) = facts.c_bits {
        questions.push(triple([plus, small, Summand::C], c_bits));
        questions.push(triple([plus, small, Summand::C], c_bits + 1));
    }
    let cases = lab.ask(questions.into_iter().flatten().collect())?;
    let extra = bits - lab.signature.d.fraction_bits as i32;
    let of_c = facts.c_bits.filter(|&c_bits| c_bits != bits).map(|c_bits| format!("; {c_bits} bits of c"));
    let meaning = format!(
        "{bits} bits of a product are kept below the largest exponent{}; d has {}.",
        of_c.unwrap_or_default(),
        lab.signature.d.fraction_bits
    );
    Ok(EXTRA.finding(cases, extra.to_string(), meaning))
}

/// What a sequence of additions gives if each partial sum is normalised, and if none is; everything in
/// units of 2^`lsb`.
struct Predictions {
    /// No partial sum is normalised; rounded to d toward zero, and to nearest.
    open: [i64; 2],
    /// Each is: truncated to the alignment's bits, truncated to d's, rounded to d's to nearest.
    normalised: [i64; 3],
}

/// Rounds an integer to `bits` fraction bits below its leading one.
fn normalise(value: i64, bits: i32, rounding: Rounding) -> i64 {
    let leading = 63 - value.leading_zeros() as i32;
    let shift = (leading - bits).max(0) as u32;
    (rounding.shift_right(false, value as u128, false, shift) << shift) as i64
}

impl Predictions {
    /// `count` times `small` added to `start`, where `fraction_bits` are kept at alignment and `d` in
    /// the result.
    fn of(start: i64, small: i64, count: usize, fraction_bits: i32, d: i32) -> Predictions {
        let total = start + small * count as i64;
        let (truncated, nearest) = (Rounding::TowardZero, Rounding::NearestTiesToEven);
        let chain = |bits: i32, rounding: Rounding| {
            (0..count).fold(start, |sum, _| {
                // Toward zero, a summand is cut off where the larger one's bits end.
                let quantum = (63 - sum.leading_zeros() as i32 - fraction_bits).max(0);
                let small = if rounding == truncated { small >> quantum << quantum } else { small };
                normalise(sum + small, bits, rounding)
            })
        };
        Predictions {
            open: [normalise(total, d, truncated), normalise(total, d, nearest)],
            normalised: [
                normalise(chain(fraction_bits, truncated), d, truncated),
                chain(d, truncated),
                chain(d, nearest),
            ],
        }
    }
}

/// c just below 1, and summands that count below 1 and are (partly) lost beside it.
fn addition(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let (p, bits, d) = (c_precision(lab), facts.cut, lab.signature.d.fraction_bits as i32);
    let count = if facts.with_c { facts.together.len() } else { lab.k() };
    let lsb = -bits - 1;
    if count < 2 {
        return Ok(ADDITION.impossible("there is one product"));
    }
    let chosen = (p <= bits + 1 && bits < 60)
        .then(|| {
            let start = (1i64 << -lsb) - (1i64 << (-lsb - p));
            (1..16).find_map(|small| {
                let predicted = Predictions::of(start, small, count, bits, d);
                let disjoint = predicted.open.iter().all(|value| !predicted.normalised.contains(value));
                disjoint.then_some((start, small, predicted))
            })
        })
        .flatten();
    let Some((start, small, predicted)) = chosen else {
        return Ok(ADDITION.impossible(format!("{} shows too few bits of the sum", lab.signature.d)));
    };
    let products: Vec<usize> = if facts.with_c { facts.together.clone() } else { (0..lab.k()).collect() };
    let mut values: Vec<_> =
        products.iter().map(|&k| (Summand::Product(k), lab.number(small, lsb))).collect();
    values.push((Summand::C, lab.number(start, lsb)));
    let cases = lab.ask(lab.values(&values).into_iter().collect())?;
    let Some(case) = cases.first() else {
        return Ok(ADDITION.impossible("the formats hold no such values"));
    };
    let result = lab.multiple(case, lsb + lab.unit);
    Ok(if predicted.open.iter().any(|&value| Some(value) == result) {
        ADDITION.finding(
            cases,
            "not normalised",
            "Only the final sum is normalised: all summands count in full.",
        )
    } else if predicted.normalised.iter().any(|&value| Some(value) == result) {
        ADDITION.finding(
            cases,
            "normalised",
            "Partial sums are normalised: once 1 is reached, what is too small beside it is lost.",
        )
    } else {
        ADDITION.finding(
            cases,
            "neither",
            "Neither normalising each partial sum nor normalising none gives this result.",
        )
    })
}

/// 1 − (1 − 2^−p) − ε, ε the first bit that is lost beside 1.
fn subtraction(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let (p, bits) = (c_precision(lab), facts.cut);
    let one = Summand::Product(facts.together[0]);
    let second = facts.together.get(1).copied().or((lab.k() > 1).then_some(1)).map(Summand::Product);
    let Some(second) = second.filter(|_| bits < 60) else {
        return Ok(SUBTRACTION.impossible("there is one product"));
    };
    let values =
        [(one, lab.number(1, 0)), (second, lab.number(-1, -bits - 1)), (Summand::C, minus_below_one(lab))];
    let cases = lab.ask(lab.values(&values).into_iter().collect())?;
    let Some(case) = cases.first() else {
        return Ok(SUBTRACTION.impossible("the formats hold no such values"));
    };
    // In units of 2^(−F − 1) or 2^−p, whichever is smaller.
    let lsb = -(bits + 1).max(p);
    let unit = |exponent: i32| 1i64 << (exponent - lsb);
    let kept = unit(0) - (unit(0) - unit(-p)) / unit(-bits) * unit(-bits);
    let normalised = kept - unit(-bits - 1);
    let exact = unit(-p) - unit(-bits - 1);
    let result = lab.multiple(case, lsb + lab.unit);
    Ok(if result == Some(kept) && kept != exact {
        SUBTRACTION.finding(cases, "not normalised", "The last summand is lost beside a 1 that has already been cancelled: the difference is not normalised.")
    } else if result == Some(exact) || result == Some(normalised) {
        SUBTRACTION.finding(
            cases,
            "normalised",
            "The last summand counts: the difference is normalised before, or the sum is exact.",
        )
    } else {
        SUBTRACTION.finding(
            cases,
            "neither",
            "Neither normalising the difference nor leaving it as it is gives this result.",
        )
    })
}

/// The exponent of the last bit that the result of a sum near 1 and its summands both have.
fn ulp(facts: &Facts) -> i32 {
    -facts.result_bits.min(facts.cut)
}

/// 1 + 3u in c, and 1, 1, 1, u on the products in each order: 4 + 4u.
fn two_carries(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let Some(&[p0, p1, p2, p3]) = facts.together.first_chunk::<4>().filter(|_| facts.with_c) else {
        return Ok(TWO_CARRIES.impossible("fewer than four products are aligned together with c"));
    };
    let u = ulp(facts);
    let products = [p0, p1, p2, p3];
    let question = |place: usize| {
        let mut values: Vec<_> = products
            .iter()
            .map(|&k| (Summand::Product(k), if k == place { lab.number(1, u) } else { lab.number(1, 0) }))
            .collect();
        values.push((Summand::C, lab.number((1i64 << -u) + 3, u)));
        lab.values(&values)
    };
    let cases = lab.ask(products.into_iter().filter_map(question).collect())?;
    if cases.len() < 4 {
        return Ok(TWO_CARRIES.impossible("the formats hold no such values"));
    }
    let expected = lab.number((1i64 << -u) + 1, u + 2);
    Ok(match cases.iter().all(|case| lab.is(case, expected)) {
        true => TWO_CARRIES.finding(cases, "at least 2", "No order loses a bit: partial sums have two bits more at the top."),
        false => TWO_CARRIES.finding(cases, "not shown", "In some order low bits are lost: partial sums are cut off as they grow, or summands before that."),
    })
}

/// 1.875 + 1 + 1.5 + 1.75 + 1.875 = 8.
fn three_carries(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let Some(&products) = facts.together.first_chunk::<4>().filter(|_| facts.with_c) else {
        return Ok(THREE_CARRIES.impossible("fewer than four products are aligned together with c"));
    };
    let eighths = [8, 12, 14, 15];
    let mut values: Vec<_> =
        products.iter().zip(eighths).map(|(&k, e)| (Summand::Product(k), lab.number(e, -3))).collect();
    values.push((Summand::C, lab.number(15, -3)));
    let cases = lab.ask(lab.values(&values).into_iter().collect())?;
    let Some(case) = cases.first() else {
        return Ok(THREE_CARRIES.impossible("the formats hold no such values"));
    };
    Ok(match lab.is(case, lab.number(8, 0)) {
        true => THREE_CARRIES.finding(
            cases,
            "at least 3",
            "The sum, 8, arrives: it does not overflow two carry bits.",
        ),
        false => THREE_CARRIES.finding(cases, "overflow", "The sum is 8, and does not arrive."),
    })
}

/// The largest summands below 2, as many as it takes to need 1, 2 … carry bits; and all summands as large
/// as they can be.
fn carries(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let terms = facts.terms();
    if terms < 3 {
        return Ok(CARRIES.impossible("no three summands are aligned together"));
    }
    let most = usize::BITS - (terms - 1).leading_zeros();
    let a = &lab.signature.a;
    let below_two = lab.number((2i64 << a.fraction_bits) - 1, -(a.fraction_bits as i32));
    let c = &lab.signature.c;
    let c_below_two = Dyadic::new((2 << c.fraction_bits) - 1, lab.unit - c.fraction_bits as i32);
    let question = |count: usize, value: Dyadic| -> Option<Question> {
        let mut values: Vec<_> =
            facts.together.iter().take(count).map(|&k| (Summand::Product(k), value)).collect();
        if count > facts.together.len() {
            values.push((Summand::C, c_below_two));
        }
        lab.values(&values)
    };
    // A sum of 2^n or more needs n carry bits: as few summands as reach it, each cut off at alignment.
    let aligned = |value: Dyadic| {
        let term = Term::new(false, value.significand.into(), value.exponent, 0);
        term.aligned(lab.unit - facts.cut, Rounding::TowardZero, 0)
    };
    let reaches_with = |count: usize, bits: u32| {
        let products = vec![aligned(below_two); count.min(facts.together.len())];
        let c = (count > facts.together.len()).then(|| aligned(c_below_two));
        let sum = Term::sum(products.iter().chain(&c));
        sum.leading_exponent() >= Some(lab.unit + bits as i32)
    };
    let mut asked = Vec::new();
    let mut questions = Vec::new();
    let mut needed = 0;
    for bits in 1..=most {
        let Some(count) = (2..=terms).find(|&count| reaches_with(count, bits)) else { continue };
        needed = bits;
        let Some(question) = question(count, below_two) else { continue };
        if !lab.holds(lab.number(1, bits as i32)) {
            continue;
        }
        questions.push(question);
        asked.push((lab.number(1, bits as i32), bits));
    }
    let Some(&(_, most)) = asked.last() else {
        return Ok(CARRIES.impossible("the formats hold no such values"));
    };
    let below_two_only = questions.len();
    // Products of two such factors are below 4: unless they are normalised first, the sum needs a bit more.
    let b = &lab.signature.b;
    let pair = (u128::from((2u64 << a.fraction_bits) - 1)) * u128::from((2u64 << b.fraction_bits) - 1);
    if let Ok(pair) = u64::try_from(pair) {
        let value = Dyadic::new(pair, lab.unit - (a.fraction_bits + b.fraction_bits) as i32);
        let products = Term::new(false, u128::from(pair) * facts.together.len() as u128, value.exponent, 0);
        let c = Term::new(false, c_below_two.significand.into(), c_below_two.exponent, 0);
        let sum = if facts.with_c { Term::sum([&products, &c]) } else { products };
        let leading = sum.leading_exponent().unwrap_or(0);
        if let Some(question) = question(terms, value).filter(|_| lab.holds(Dyadic::power(leading))) {
            questions.push(question);
            asked.push((Dyadic::power(leading), most));
        }
    }
    let cases = lab.ask(questions)?;
    let reaches = |case: &Case, least: Dyadic| {
        lab.result(case).is_some_and(|result| !difference(result, least).negative)
    };
    let held = cases.iter().zip(&asked).take_while(|&(case, &(least, _))| reaches(case, least)).count();
    Ok(if held == cases.len() && most < needed {
        let d = lab.signature.d;
        let meaning = format!(
            "No sum overflows as far as {d} reaches: {most} bits, where {terms} summands can need {needed}."
        );
        CARRIES.finding(cases, format!("at least {most}"), meaning)
    } else if held == cases.len() {
        let meaning = format!("No sum overflows: {most} bits, and {terms} summands need no more.");
        CARRIES.finding(cases, most.to_string(), meaning)
    } else if held >= below_two_only {
        let meaning = format!(
            "{most} bits hold sums of {terms} summands below 2; products between 2 and 4 need one more, and \
             overflow."
        );
        CARRIES.finding(cases, format!("{most} below 2 only"), meaning)
    } else {
        let meaning = format!("The sum of case {} does not arrive.", held + 1);
        CARRIES.finding(cases, format!("fewer than {}", asked[held].1), meaning)
    })
}

/// c just below a power of two, then that power, beside summands that only count below it.
fn monotonicity(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let p = c_precision(lab);
    let mut questions = Vec::new();
    // All products alike but for the last one, so that what is lost of them adds up to what shows.
    for (small, last) in (1..8).flat_map(|small| (1..16).map(move |last| (small, last))) {
        let products = |k: usize| {
            let significand = if k + 1 == lab.k() { last } else { small };
            (Summand::Product(k), lab.number(significand, -facts.cut - 1))
        };
        let question = |c: Dyadic| {
            let products = (0..lab.k()).map(products);
            lab.values(&products.chain([(Summand::C, c)]).collect::<Vec<_>>())
        };
        let pair = question(lab.number((1i64 << p) - 1, -p)).zip(question(lab.number(1, 0)));
        questions.extend(pair.into_iter().flat_map(|(lower, upper)| [lower, upper]));
    }
    let cases = lab.ask(questions)?;
    let falls = |pair: &&[Case]| match (lab.result(&pair[0]), lab.result(&pair[1])) {
        (Some(lower), Some(upper)) => difference(upper, lower).negative,
        _ => false,
    };
    let tried = cases.len() / 2;
    if tried == 0 {
        return Ok(MONOTONIC.impossible("the formats hold no such values"));
    }
    Ok(match cases.chunks(2).find(falls) {
        Some(pair) => MONOTONIC.finding(
            pair.to_vec(),
            "not monotonic",
            "c grows, all else stays, and d becomes smaller.",
        ),
        None => {
            let meaning = format!(
                "In {tried} pairs of inputs d never became smaller; this proves nothing beyond them."
            );
            MONOTONIC.finding(cases.into_iter().take(2).collect(), "no violation seen", meaning)
        }
    })
}
