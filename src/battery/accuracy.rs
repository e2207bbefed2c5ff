//! How exact products are, how many rounding errors a dot-add makes, and how many products it adds at
//! once.

use super::lab::{Facts, Lab, number_of};
use super::{Experiment, FASI_ACCURACY, Finding};
use crate::device::DeviceError;
use crate::model::Term;
use crate::model::format::RoundTo;
use crate::probes::Summand;
use crate::probes::place::Dyadic;

const EXACT: Experiment =
    Experiment::new("exact-products", "Are products exact, and all their bits added?", FASI_ACCURACY);
const RESIDUE: Experiment = Experiment::new(
    "product-residue",
    "What is left of a product when c is the nearest number below it?",
    FASI_ACCURACY,
);
const NARROW: Experiment = Experiment::new(
    "exact-products-narrow",
    "Are products exact where only their sum fits the narrowest format?",
    FASI_ACCURACY,
);
const ERRORS: Experiment = Experiment::new(
    "rounding-errors",
    "How many small summands does a large one swallow, wherever it stands?",
    FASI_ACCURACY,
);
const SIZE: Experiment = Experiment::new(
    "fma-size",
    "How many products are added at once?",
    "Khattak and Mikaitis, effective FMA size; Fasi et al. 2021",
);

pub(super) fn run(lab: &Lab, facts: &Facts, findings: &mut Vec<Finding>) -> Result<(), DeviceError> {
    findings.push(exact(lab)?);
    findings.push(residue(lab)?);
    findings.push(narrow(lab)?);
    findings.push(errors(lab, facts)?);
    findings.push(size(lab, facts));
    Ok(())
}

/// The largest number below 1 of the narrower of A and B: 1 − 2^−p.
fn below_one(lab: &Lab) -> (u64, i32) {
    let p = lab.signature.a.fraction_bits.min(lab.signature.b.fraction_bits) + 1;
    ((1 << p) - 1, p as i32)
}

/// Four products (or all there are) of (1 − 2^−p)².
fn exact(lab: &Lab) -> Result<Finding, DeviceError> {
    let (x, p) = below_one(lab);
    let count = lab.k().min(4);
    let square = u128::from(x) * u128::from(x);
    let total = square * count as u128;
    let (Ok(square), Ok(total)) = (u64::try_from(square), u64::try_from(total)) else {
        return Ok(EXACT.impossible(format!("{} has no room for a product's bits", lab.signature.d)));
    };
    let expected = Dyadic::new(total, -2 * p);
    if !lab.holds(expected) {
        return Ok(EXACT.impossible(format!("{} has no room for a product's bits", lab.signature.d)));
    }
    let values: Vec<_> = (0..count).map(|k| (Summand::Product(k), Dyadic::new(square, -2 * p))).collect();
    let cases = lab.ask(lab.values(&values).into_iter().collect())?;
    let Some(case) = cases.first() else {
        return Ok(EXACT.impossible("the formats hold no such factors"));
    };
    Ok(match lab.is(case, expected) {
        true => EXACT.finding(cases, "exact", "All bits of the products arrive in d: they are held exactly."),
        false => EXACT.finding(cases, "inexact", "Bits of the products are lost on the way to d."),
    })
}

/// (1 − 2^−p)² minus the nearest number that c's format has.
fn residue(lab: &Lab) -> Result<Finding, DeviceError> {
    let (x, p) = below_one(lab);
    let c = &lab.signature.c;
    let square = u128::from(x) * u128::from(x);
    let term = Term::new(false, square, -2 * p, 0);
    let rounded = c.pack(RoundTo::nearest_even(*c).round(&term));
    let Some(nearest) = number_of(c, rounded) else {
        return Ok(RESIDUE.impossible(format!("{c} does not reach 1")));
    };
    let left = Term::sum(&[term, Term::new(true, nearest.significand.into(), nearest.exponent, 0)]);
    let Some(leading) = left.leading_exponent() else {
        return Ok(RESIDUE.impossible(format!("{c} holds such products")));
    };
    // It is a power of two: (1 − 2^−p)² = 1 − 2^(1−p) + 2^−2p.
    let expected = Dyadic { negative: left.negative, ..Dyadic::power(leading) };
    if !lab.holds(expected) {
        return Ok(
            RESIDUE.impossible(format!("{} does not reach down to what would be left", lab.signature.d))
        );
    }
    let factor = Dyadic::new(x, -p);
    let cases = lab.ask(lab.factors(factor, factor, &[(Summand::C, -nearest)]).into_iter().collect())?;
    let Some(case) = cases.first() else {
        return Ok(RESIDUE.impossible("the formats hold no such values"));
    };
    Ok(if lab.is(case, expected) {
        RESIDUE.finding(cases, "all of it", "The product is not rounded before c is added: fused.")
    } else if lab.is(case, Dyadic::new(0, 0)) {
        RESIDUE.finding(cases, "nothing", "The product's low bits are lost before c is added, or beside it.")
    } else {
        RESIDUE.finding(cases, "another part", "The product's low bits come out changed.")
    })
}

/// (1 − 2^−p)² + (1 − 2^−p)·2^−p = 1 − 2^−p: the sum fits where the products do not.
fn narrow(lab: &Lab) -> Result<Finding, DeviceError> {
    let (x, p) = below_one(lab);
    if lab.k() < 2 {
        return Ok(NARROW.impossible("there is one product"));
    }
    let Ok(square) = u64::try_from(u128::from(x) * u128::from(x)) else {
        return Ok(NARROW.impossible(format!("{} has too many bits for this question", lab.signature.a)));
    };
    let values =
        [(Summand::Product(0), Dyadic::new(square, -2 * p)), (Summand::Product(1), Dyadic::new(x, -2 * p))];
    let expected = Dyadic::new(x, -p);
    if !lab.holds(expected) {
        return Ok(NARROW.impossible(format!("{} does not hold the sum", lab.signature.d)));
    }
    let cases = lab.ask(lab.values(&values).into_iter().collect())?;
    let Some(case) = cases.first() else {
        return Ok(NARROW.impossible("the formats hold no such factors"));
    };
    Ok(match lab.is(case, expected) {
        true => NARROW.finding(
            cases,
            "exact",
            "Products are held exactly until they are added, whatever d's format.",
        ),
        false => NARROW.finding(
            cases,
            "inexact",
            "Products are rounded before they are added, or cut off beside each other.",
        ),
    })
}

/// 1 on each summand in turn, and on all others half of the last bit kept beside it.
fn errors(lab: &Lab, facts: &Facts) -> Result<Finding, DeviceError> {
    let one = lab.number(1, 0);
    let small = lab.number(1, -facts.cut - 1);
    let c_holds_small = lab.values(&[(Summand::C, small)]).is_some();
    let places: Vec<Summand> = lab.signature.summands().collect();
    let smalls = |place: Summand| {
        places.iter().copied().filter(move |&s| s != place && (s != Summand::C || c_holds_small))
    };
    let questions: Vec<_> = places
        .iter()
        .filter_map(|&place| {
            let values: Vec<_> = smalls(place).map(|s| (s, small)).chain([(place, one)]).collect();
            lab.values(&values)
        })
        .collect();
    if questions.len() != places.len() {
        return Ok(ERRORS.impossible("a format does not reach from 1 down to the bits that are lost"));
    }
    let cases = lab.ask(questions)?;
    let swallowed = cases.iter().filter(|case| lab.is(case, one)).count();
    let count = places.len() - 1 - usize::from(!c_holds_small);
    Ok(if swallowed == cases.len() {
        let meaning = format!(
            "Wherever the largest summand stands, up to {count} smaller ones are lost beside it: all are \
             aligned to it before any addition, so there may be {count} rounding errors."
        );
        ERRORS.finding(cases, "from the largest", meaning)
    } else if swallowed == 0 {
        ERRORS.finding(
            cases,
            "none lost",
            "Wherever the largest summand stands, the small ones together count.",
        )
    } else {
        let meaning = format!(
            "It depends on the place: at {swallowed} of {} the large summand swallows all others. Additions \
             happen in a fixed order, or in several steps.",
            cases.len()
        );
        ERRORS.finding(cases, "by place", meaning)
    })
}

fn size(lab: &Lab, facts: &Facts) -> Finding {
    let count = facts.together.len();
    let cases = facts.size_cases.clone();
    if lab.k() == 1 {
        return SIZE.finding(cases, "1", "There is one product.");
    }
    if cases.is_empty() {
        return SIZE.impossible("no format reaches far enough down");
    }
    let c = if facts.with_c { "and c" } else { "without c" };
    let products = match (count, lab.k()) {
        (1, _) => {
            return SIZE.finding(
                cases,
                "1",
                "Each addition has two summands: no three are aligned together.",
            );
        }
        (count, k) if count == k => format!("All {k} products"),
        (count, k) => format!("{count} of {k} products"),
    };
    SIZE.finding(cases, format!("{count} {c}"), format!("{products} {c} are aligned together, in one sum."))
}
