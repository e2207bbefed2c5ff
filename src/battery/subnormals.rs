//! Subnormal operands, and subnormal results.

use super::lab::{Facts, Lab};
use super::{Experiment, FASI_SUBNORMALS, Finding};
use crate::device::DeviceError;
use crate::model::Format;
use crate::probes::Summand;
use crate::probes::place::Dyadic;

const A: Experiment =
    Experiment::new("subnormal-a", "Is a subnormal element of A used as it is?", FASI_SUBNORMALS);
const B: Experiment =
    Experiment::new("subnormal-b", "Is a subnormal element of B used as it is?", FASI_SUBNORMALS);
const C: Experiment =
    Experiment::new("subnormal-c", "Does a subnormal c arrive in d unaltered?", FASI_SUBNORMALS);
const PRODUCT: Experiment =
    Experiment::new("subnormal-product", "Can normal factors give a subnormal result?", FASI_SUBNORMALS);
const SUM: Experiment =
    Experiment::new("subnormal-sum", "Can a difference of normal numbers be subnormal?", FASI_SUBNORMALS);
const ROUNDED: Experiment = Experiment::new(
    "subnormal-rounding",
    "Is a subnormal factor's product rounded as that of normal factors is?",
    FASI_SUBNORMALS,
);

pub(super) fn run(lab: &Lab, facts: &Facts, findings: &mut Vec<Finding>) -> Result<(), DeviceError> {
    findings.push(operand(lab, A, true)?);
    findings.push(operand(lab, B, false)?);
    findings.push(accumulator(lab)?);
    findings.push(product(lab)?);
    findings.push(sum(lab)?);
    findings.push(rounded(lab, facts)?);
    Ok(())
}

/// The smallest subnormal number times a power of two: 2² as in the paper, and one that makes the
/// product normal in d's format, so that nothing but the operand can be flushed.
fn operand(lab: &Lab, experiment: Experiment, is_a: bool) -> Result<Finding, DeviceError> {
    let (own, other) = match is_a {
        true => (&lab.signature.a, &lab.signature.b),
        false => (&lab.signature.b, &lab.signature.a),
    };
    if !own.has_subnormals() {
        return Ok(experiment.impossible(format!("{own} has no subnormal numbers")));
    }
    let smallest = Dyadic::power(own.min_quantum());
    let lifted = (lab.signature.d.min_exponent() - own.min_quantum()).clamp(0, other.max_exponent());
    let mut factors = vec![Dyadic::power(lifted)];
    if lifted != 2 && lab.holds(Dyadic::power(own.min_quantum() + 2)) {
        factors.push(Dyadic::power(2));
    }
    let questions = factors.iter().filter_map(|&factor| match is_a {
        true => lab.factors(smallest, factor, &[]),
        false => lab.factors(factor, smallest, &[]),
    });
    let cases = lab.ask(questions.collect())?;
    let Some(first) = cases.first() else {
        return Ok(
            experiment.impossible(format!("{other} has no factor that lifts it into {}", lab.signature.d))
        );
    };
    let expected = Dyadic::power(own.min_quantum() + lifted);
    Ok(if lab.is(first, expected) {
        experiment.finding(cases, "used", format!("Subnormal {own} factors are numbers like all others."))
    } else if lab.is(first, Dyadic::new(0, 0)) {
        experiment.finding(cases, "flushed", format!("Subnormal {own} factors are read as zeros."))
    } else {
        experiment.finding(cases, "altered", "The product is neither itself nor zero.")
    })
}

fn accumulator(lab: &Lab) -> Result<Finding, DeviceError> {
    let (c, d) = (&lab.signature.c, &lab.signature.d);
    let smallest = Dyadic::power(c.min_quantum());
    if !c.has_subnormals() || !lab.holds(smallest) {
        return Ok(C.impossible(format!("{d} does not hold subnormal numbers of {c}")));
    }
    // Beside the smallest normal number of d, c makes no subnormal result: where c alone gives zero,
    // this tells whether it was lost on the way in or on the way out.
    let normal = Dyadic::power(d.min_exponent());
    let beside = lab.values(&[(Summand::C, smallest), (Summand::Product(0), normal)]);
    let mut questions: Vec<_> = lab.values(&[(Summand::C, smallest)]).into_iter().collect();
    questions.extend(beside.filter(|_| c.min_quantum() == d.min_quantum()));
    let cases = lab.ask(questions)?;
    let Some(alone) = cases.first() else {
        return Ok(C.impossible(format!("{c} has no such number")));
    };
    let survives_beside = cases.get(1).is_some_and(|case| !lab.is(case, normal));
    Ok(if lab.is(alone, smallest) {
        C.finding(cases, "kept", format!("A subnormal c of {c} is not altered."))
    } else if survives_beside {
        C.finding(cases, "flushed in d", "A subnormal c is used, and a subnormal result becomes zero.")
    } else if lab.is(alone, Dyadic::new(0, 0)) {
        C.finding(cases, "flushed", format!("A subnormal c of {c} gives zero."))
    } else {
        C.finding(cases, "altered", "The result is neither c nor zero.")
    })
}

/// Says whether a result below d's normal numbers comes out, from the last case.
fn delivered(
    lab: &Lab,
    experiment: Experiment,
    questions: Vec<(super::lab::Question, Dyadic)>,
) -> Result<Finding, DeviceError> {
    let d = lab.signature.d;
    let (questions, expected): (Vec<_>, Vec<Dyadic>) = questions.into_iter().unzip();
    let cases = lab.ask(questions)?;
    let (Some(case), Some(&value)) = (cases.last(), expected.last()) else {
        return Ok(experiment
            .impossible(format!("{} and {} do not reach that far down", lab.signature.a, lab.signature.b)));
    };
    let is_subnormal = is_subnormal(&d, value);
    Ok(match (lab.is(case, value), lab.is(case, Dyadic::new(0, 0)), is_subnormal) {
        (true, _, true) => experiment.finding(cases, "delivered", format!("Subnormal {d} results are delivered.")),
        (true, _, false) => experiment.finding(
            cases,
            "delivered",
            format!("A number below the normal range of A's format comes out, which is normal in {d}; operands do not reach {d}'s subnormal numbers."),
        ),
        (false, true, _) => experiment.finding(cases, "flushed", format!("Subnormal {d} results become zero.")),
        _ => experiment.finding(cases, "altered", "The result is neither the number nor zero."),
    })
}

fn is_subnormal(format: &Format, value: Dyadic) -> bool {
    value.leading().is_some_and(|leading| leading < format.min_exponent())
}

fn product(lab: &Lab) -> Result<Finding, DeviceError> {
    let (a, b, d) = (&lab.signature.a, &lab.signature.b, &lab.signature.d);
    let smallest = a.min_exponent();
    let mut questions = Vec::new();
    // Half the smallest normal number of A; and half that of d, where normal factors get there.
    for target in [smallest - 1, d.min_exponent() - 1] {
        let other = target - smallest;
        if (b.min_exponent()..=b.max_exponent()).contains(&other) && lab.holds(Dyadic::power(target)) {
            let question = lab.factors(Dyadic::power(smallest), Dyadic::power(other), &[]);
            questions.extend(question.map(|question| (question, Dyadic::power(target))));
        }
    }
    questions.dedup_by_key(|(_, value)| value.exponent);
    delivered(lab, PRODUCT, questions)
}

fn sum(lab: &Lab) -> Result<Finding, DeviceError> {
    let (a, d) = (&lab.signature.a, &lab.signature.d);
    let mut questions = Vec::new();
    for lowest in [a.min_exponent(), d.min_exponent()] {
        // 2·x − 1.5·x with x the smallest normal number; both summands are normal.
        let values =
            [(Summand::Product(0), Dyadic::power(lowest + 1)), (Summand::C, -Dyadic::new(3, lowest - 1))];
        let value = Dyadic::power(lowest - 1);
        if lowest >= lab.signature.c.min_exponent() && lab.holds(value) {
            questions.extend(lab.values(&values).map(|question| (question, value)));
        }
    }
    questions.dedup_by_key(|(_, value)| value.exponent);
    delivered(lab, SUM, questions)
}

/// Three quarters of the last bit kept, beside a large summand: from a subnormal factor, and from
/// normal ones.
fn rounded(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    if lab.k() < 2 || !facts.is_fused() {
        return Ok(ROUNDED.impossible("no two products are aligned together"));
    }
    let b = &lab.signature.b;
    let subnormal = Dyadic::new(3, b.min_quantum());
    let large = Dyadic::power(facts.cut + 2 + b.min_quantum());
    let other = Summand::Product(facts.together.iter().copied().find(|&k| k != 0).unwrap_or(1));
    let one = Dyadic::power(0);
    let lift = b.fraction_bits as i32;
    let questions = [
        lab.factors(one, subnormal, &[(other, large)]),
        // The same product of factors that are normal.
        lab.factors(
            Dyadic::power(-lift),
            Dyadic { exponent: b.min_quantum() + lift, ..subnormal },
            &[(other, large)],
        ),
        lab.factors(one, subnormal, &[]),
    ];
    if b.fraction_bits < 2 || questions.iter().any(Option::is_none) {
        return Ok(ROUNDED.impossible("the formats hold no such values"));
    }
    let cases = lab.ask(questions.into_iter().flatten().collect())?;
    let alike = cases[0].answer == cases[1].answer;
    Ok(match alike {
        true => ROUNDED.finding(
            cases,
            "alike",
            "The unit itself takes subnormal factors: they are rounded as normal ones are.",
        ),
        false => ROUNDED.finding(cases, "otherwise", "Products of subnormal factors are rounded otherwise."),
    })
}
