//! Rounding: of summands that are aligned, of the result, and of results that become subnormal.

use super::lab::{Case, Facts, Lab};
use super::{Experiment, FASI_ROUNDING, Finding};
use crate::device::DeviceError;
use crate::model::Rounding;
use crate::probes::Summand;
use crate::probes::place::Dyadic;

const PAPER: Experiment = Experiment::new(
    "rounding-at-two",
    "What becomes of three quarters of the last bit beside 2, and beside -2?",
    FASI_ROUNDING,
);
const ALIGNED: Experiment = Experiment::new(
    "rounding-aligned",
    "How are summands rounded when they are aligned to a larger one?",
    FASI_ROUNDING,
);
const TRUNCATED: Experiment = Experiment::new(
    "truncation",
    "Is 2 minus a tiny number 2 (cut off before adding) or less (the sum, rounded)?",
    "Valpey et al. 2025, section 4.2 and Table 3, correcting Fasi et al.",
);
const RESULT: Experiment =
    Experiment::new("rounding-result", "How is the sum rounded to d's format?", FASI_ROUNDING);
const SUBNORMAL: Experiment = Experiment::new(
    "rounding-subnormal",
    "How is a sum below d's smallest number rounded (the papers' fp16 conversion)?",
    FASI_ROUNDING,
);

pub(super) fn run(lab: &Lab, facts: &Facts, findings: &mut Vec<Finding>) -> Result<(), DeviceError> {
    findings.push(at_two(lab, facts)?);
    findings.push(aligned(lab, facts)?);
    findings.push(truncated(lab, facts)?);
    findings.push(result(lab, facts)?);
    findings.push(subnormal(lab)?);
    Ok(())
}

/// The modes that give these results: `magnitude` in units of which `1 << shift` make one of the
/// result's, and the result.
fn consistent(observed: &[(bool, u64, u32, Option<i64>)]) -> Vec<Rounding> {
    let gives = |mode: &Rounding| {
        observed.iter().all(|&(negative, magnitude, shift, result)| {
            let multiple = mode.shift_right(negative, magnitude.into(), false, shift) as i64;
            result == Some(if negative { -multiple } else { multiple })
        })
    };
    Rounding::EVERY.into_iter().filter(gives).collect()
}

/// The modes as a verdict and a meaning.
fn told(experiment: Experiment, cases: Vec<Case>, modes: &[Rounding], what: &str) -> Finding {
    let names: Vec<&str> = modes.iter().map(|mode| mode.abbreviation()).collect();
    match modes {
        [] => experiment.finding(cases, "no known mode", format!("{what} by no known mode.")),
        [mode] => {
            let toward = crate::sheet::words::toward(*mode);
            experiment.finding(cases, names[0], format!("{what} {toward}."))
        }
        _ => experiment.finding(cases, names.join("|"), format!("{what} by one of {}.", names.join(", "))),
    }
}

/// Fasi et al.'s input: 2 + 3·2^(−F−1), on two products, at both signs.
fn at_two(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let second = match facts.together.get(1) {
        Some(&k) => Summand::Product(k),
        None if lab.k() > 1 => Summand::Product(1),
        None => Summand::C,
    };
    let first = Summand::Product(facts.together[0]);
    let question = |sign: i64| {
        let small = lab.number(3 * sign, -facts.cut - 1);
        lab.values(&[(first, lab.number(sign, 1)), (second, small)])
    };
    let cases = lab.ask([1, -1].into_iter().filter_map(question).collect())?;
    let [positive, negative] = &cases[..] else {
        return Ok(PAPER.impossible("the formats hold no such values"));
    };
    let stays = [lab.is(positive, lab.number(1, 1)), lab.is(negative, lab.number(-1, 1))];
    let (verdict, meaning) = match stays {
        [true, true] => ("toward zero", "Both are lost: toward zero, and not to nearest."),
        [true, false] => ("down", "Lost at the positive sign only: downward."),
        [false, true] => ("up", "Lost at the negative sign only: upward."),
        [false, false] => ("nearest or away", "Neither is lost: to nearest, or away from zero."),
    };
    Ok(PAPER.finding(cases, verdict, meaning))
}

/// Quarters of the last bit kept, beside a large summand that cancels: no other rounding shows.
fn aligned(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let (Some([minus, plus, small]), Some(bits)) = (facts.three(), facts.product_bits) else {
        return Ok(ALIGNED.impossible("no three summands are aligned together"));
    };
    let mut questions = Vec::new();
    let mut asked = Vec::new();
    for sign in [1, -1] {
        for quarters in [1, 2, 3, 5, 6, 7] {
            let values = [
                (minus, lab.number(-1, 0)),
                (plus, lab.number(1, 0)),
                (small, lab.number(sign * quarters, -bits - 2)),
            ];
            if let Some(question) = lab.values(&values) {
                questions.push(question);
                asked.push((sign < 0, quarters as u64));
            }
        }
    }
    if questions.len() < 6 {
        return Ok(ALIGNED.impossible("the formats hold no such values"));
    }
    let cases = lab.ask(questions)?;
    let observed: Vec<_> = asked
        .iter()
        .zip(&cases)
        .map(|(&(negative, quarters), case)| (negative, quarters, 2, lab.multiple(case, lab.unit - bits)))
        .collect();
    Ok(told(ALIGNED, cases, &consistent(&observed), "Summands are rounded when they are aligned,"))
}

/// 2 − 2^−40, and further down where more bits are kept than that shows.
fn truncated(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let low = (-40).min(-facts.cut - 17);
    let (large, small) = (Summand::Product(facts.together[0]), lab.number(-1, low));
    let mut places = vec![Summand::C];
    places.extend((0..lab.k()).map(Summand::Product).filter(|&s| s != large));
    // As far down as the formats hold.
    let question = (low..=-facts.cut - 2).find_map(|exponent| {
        let small = Dyadic { exponent: exponent + lab.unit, ..small };
        places.iter().find_map(|&place| lab.values(&[(large, lab.number(1, 1)), (place, small)]))
    });
    let cases = lab.ask(question.into_iter().collect())?;
    let Some(case) = cases.first() else {
        return Ok(TRUNCATED.impossible("the formats hold no number that is small enough"));
    };
    Ok(match lab.is(case, lab.number(1, 1)) {
        true => TRUNCATED.finding(
            cases,
            "2",
            "The small summand is lost before the addition, or the sum is rounded to nearest or upward: \
             rounded toward zero, the sum would be below 2.",
        ),
        false => {
            TRUNCATED.finding(cases, "below 2", "What is far below still counts when the sum is rounded.")
        }
    })
}

/// 1 + j/4 units in the last place of d, held to that precision inside.
fn result(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let d = facts.result_bits;
    let c_holds_ulps = lab.signature.c.fraction_bits as i32 >= d;
    // Held inside either because sums keep two bits more than d, or because three 1s make the exact sum
    // 4 + j, of which d keeps every fourth unit.
    let wide = facts.product_bits.is_none_or(|bits| bits >= d + 2);
    let product = |index: usize| Summand::Product(facts.together[index]);
    let mut questions = Vec::new();
    let mut asked = Vec::new();
    let (shift, place) = if wide { (2, -d - 2) } else { (2, -d) };
    for sign in [1i64, -1] {
        for quarters in [1i64, 2, 3, 5, 6, 7] {
            let values: Vec<(Summand, Dyadic)> = if wide {
                let (one, small) = match facts.together.len() {
                    1 => (Summand::C, product(0)),
                    _ => (product(0), product(1)),
                };
                vec![(one, lab.number(sign, 0)), (small, lab.number(sign * quarters, place))]
            } else if facts.with_c && c_holds_ulps && facts.together.len() >= 3 {
                let ones = (0..3).map(|index| (product(index), lab.number(sign, 0)));
                let c = lab.number(sign * ((1i64 << d) + quarters), -d);
                ones.chain([(Summand::C, c)]).collect()
            } else {
                continue;
            };
            let magnitude = (1u64 << (d + 2)) + quarters as u64;
            if let Some(question) = lab.values(&values) {
                questions.push(question);
                asked.push((sign < 0, magnitude, shift));
            }
        }
    }
    if questions.len() < 6 {
        return Ok(RESULT.impossible(format!("no sum has more bits than {} keeps", lab.signature.d)));
    }
    let cases = lab.ask(questions)?;
    let is_exact = |(&(negative, magnitude, _), case): (&(bool, u64, u32), &Case)| {
        let exact = if negative { -(magnitude as i64) } else { magnitude as i64 };
        lab.multiple(case, lab.unit + place) == Some(exact)
    };
    if asked.iter().zip(&cases).all(is_exact) {
        return Ok(RESULT.finding(
            cases,
            "not rounded",
            "All bits of these sums arrive in d: no rounding shows.",
        ));
    }
    let observed: Vec<_> = asked
        .iter()
        .zip(&cases)
        .map(|(&(negative, magnitude, shift), case)| {
            (negative, magnitude, shift, lab.multiple(case, lab.unit + place + 2))
        })
        .collect();
    Ok(told(RESULT, cases, &consistent(&observed), "The sum is rounded to d's format,"))
}

/// Three quarters of d's smallest number, of two products, at both signs.
fn subnormal(lab: &Lab) -> Result<Finding, DeviceError> {
    let d = &lab.signature.d;
    let quantum = d.min_quantum();
    let question = |negative: bool| {
        let part = |quarters: u64, product: usize| {
            (Summand::Product(product), Dyadic { negative, ..Dyadic::new(quarters, quantum - 2) })
        };
        match lab.k() {
            1 => lab.values(&[part(3, 0)]),
            _ => lab.values(&[part(2, 0), part(1, 1)]),
        }
    };
    // The smallest number itself: where it does not come out, results are flushed and not rounded.
    let smallest = lab.values(&[(Summand::Product(0), Dyadic::power(quantum))]);
    let questions = [false, true].into_iter().filter_map(question).chain(smallest);
    let cases = lab.ask(questions.collect())?;
    if cases.len() != 3 {
        return Ok(SUBNORMAL.impossible(format!("products do not reach below {d}'s smallest number")));
    }
    if !lab.is(&cases[2], Dyadic::power(quantum)) {
        return Ok(SUBNORMAL.finding(cases, "flushed", "Not even the smallest number comes out."));
    }
    let observed: Vec<_> = cases
        .iter()
        .zip([false, true])
        .map(|(case, negative)| (negative, 3, 2, lab.multiple(case, quantum)))
        .collect();
    let modes = consistent(&observed);
    let nearest = modes.contains(&Rounding::NearestTiesToEven);
    Ok(match (nearest, &modes[..]) {
        (true, _) => SUBNORMAL.finding(
            cases,
            "nearest or away",
            "The final conversion is not toward zero: it delivers the nearest number.",
        ),
        (false, []) => SUBNORMAL.finding(cases, "no known mode", "No rounding mode gives these results."),
        (false, modes) => {
            let modes = modes.to_vec();
            told(SUBNORMAL, cases, &modes, "Results below the smallest number are rounded")
        }
    })
}
