//! Special values: what is said of them in words, and what comes out of inputs that have them.

use mmaprobe_model::format::{Decoded, Format, Specials};
use mmaprobe_model::tree::{NanRule, Normalised};
use mmaprobe_model::{Executor, Model};

use crate::bits::{Shown, ShownDotAdd};
use crate::device::Instruction;
use crate::probes::place::{Dyadic, exactly, negative_zeros, question, zeros};
use crate::probes::{DotAdd, Signature, Summand};
use crate::sheet::arithmetic::rule_names;
use crate::sheet::words;

/// An input with special values, and what comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What is special about it.
    pub what: &'static str,
    /// Its operands, a line each; those that are not listed are +0, or as said.
    pub inputs: Vec<String>,
    /// What comes out, as a bit pattern and as a value.
    pub answer: String,
}

/// What a model says of special values, in sentences; of each rule apart, where it has several.
pub fn statements(model: &Model) -> Vec<String> {
    let model = model.canonical();
    let mut all = vec![words::subnormal_operands(&model)];
    all.extend(words::infinite_operands(&model));
    let names = rule_names(&model.tree.rules);
    for (rule, name) in model.tree.rules.iter().zip(&names) {
        let mut clauses = Vec::new();
        if let Normalised::To(round) = &rule.normalised {
            clauses.extend([words::subnormal_results(round), words::overflow(round)]);
        }
        clauses.push(words::zero_signs(&rule.zero));
        if rule.infinite_operands_first {
            clauses.push("infinite operands decide before products that overflow".to_string());
        }
        match names.len() {
            1 => all.extend(clauses.iter().map(|clause| words::capitalised(clause) + ".")),
            _ => all.push(format!("Sums by `{name}`: {}.", clauses.join("; "))),
        }
    }
    all.push(words::nan(&model.nan));
    all
}

/// Inputs with special values and what the model makes of them.
///
/// # Panics
/// If the model does not pass [`Model::check`], or is not of the instruction.
pub fn cases(instruction: &Instruction, model: &Model) -> Vec<Case> {
    let signature = instruction.signature();
    let mut executor = Executor::new(model).expect("the sheet's model has been checked");
    questions(&signature)
        .into_iter()
        .map(|(what, question)| {
            let DotAdd { a, b, c, sa, sb } = &question;
            let bits = executor.dot_add(a, b, *c, sa, sb);
            let is_nan = matches!(model.d.decode(bits), Decoded::Nan { .. });
            let answer = match is_nan && model.nan == NanRule::Unknown {
                true => "a NaN; which one is not known".to_string(),
                false => Shown { format: &model.d, bits }.to_string(),
            };
            let mut inputs = inputs(&signature, &question);
            // What is not +0 is in the list, or said in words.
            inputs.retain(|line| !line.contains("+0 · +0") && !line.ends_with(" = 0"));
            if inputs.len() > 1 + question.sa.len() + 4 {
                inputs.clear();
            }
            Case { what, inputs, answer }
        })
        .collect()
}

/// The operands of a dot-add that are not zero, a line each.
pub fn inputs(signature: &Signature, dot_add: &DotAdd) -> Vec<String> {
    const MOST: usize = 16;
    let shown = ShownDotAdd { signature, dot_add }.to_string();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = shown.lines().map(words).collect();
    if lines.len() > MOST {
        let more = lines.len() + 1 - MOST;
        lines.truncate(MOST - 1);
        lines.push(format!("… and {more} more"));
    }
    lines
}

/// The inputs, as far as the formats have them.
fn questions(signature: &Signature) -> Vec<(&'static str, DotAdd)> {
    let Signature { a, b, c, .. } = signature;
    let first = Summand::Product(0);
    let one = Dyadic::power(0);
    let with = |change: &dyn Fn(&mut DotAdd) -> Option<()>| {
        let mut question = zeros(signature);
        change(&mut question).map(|()| question)
    };
    let infinite = |format: &Format, negative| {
        format.has_infinity().then(|| format.pack(Decoded::Infinite { negative }))
    };
    let smallest = |format: &Format| format.has_subnormals().then(|| 1 << format.ignored_low_bits);
    let largest = |format: &Format| format.pack(format.largest(false));
    let all = [
        ("−0 everywhere: each product is −0·+0", negative_zeros(signature)),
        ("1 and −1 cancel", question(signature, &[(first, one), (Summand::C, -one)])),
        (
            "smallest subnormal c",
            with(&|q| {
                q.c = smallest(c)?;
                Some(())
            }),
        ),
        (
            "smallest subnormal a, times 1",
            with(&|q| {
                (q.a[0], q.b[0]) = (smallest(a)?, exactly(b, one)?);
                Some(())
            }),
        ),
        (
            "smallest subnormal a, times smallest b",
            with(&|q| {
                (q.a[0], q.b[0]) = (smallest(a)?, smallest(b)?);
                Some(())
            }),
        ),
        (
            "largest a, times largest b",
            with(&|q| {
                (q.a[0], q.b[0]) = (largest(a), largest(b));
                Some(())
            }),
        ),
        (
            "largest c, and the largest product",
            with(&|q| {
                (q.a[0], q.b[0], q.c) = (largest(a), largest(b), largest(c));
                Some(())
            }),
        ),
        (
            "∞ · 1",
            with(&|q| {
                (q.a[0], q.b[0]) = (infinite(a, false)?, exactly(b, one)?);
                Some(())
            }),
        ),
        (
            "∞ · 0",
            with(&|q| {
                q.a[0] = infinite(a, false)?;
                Some(())
            }),
        ),
        (
            "∞ − ∞",
            with(&|q| {
                (q.a[0], q.b[0], q.c) = (infinite(a, false)?, exactly(b, one)?, infinite(c, true)?);
                Some(())
            }),
        ),
        (
            "a quiet NaN in A, with a payload",
            with(&|q| {
                (q.a[0], q.b[0]) = (nan(a, true)?, exactly(b, one)?);
                Some(())
            }),
        ),
        (
            "a signalling NaN as c, negative",
            with(&|q| {
                q.c = nan(c, false)?;
                Some(())
            }),
        ),
        (
            "a NaN for a scale",
            with(&|q| {
                let scale = signature.scale?.format;
                *q.sa.first_mut()? = scale.pack(Decoded::Nan { negative: false, fraction: 1 });
                Some(())
            }),
        ),
    ];
    all.into_iter().filter_map(|(what, question)| Some((what, question?))).collect()
}

/// A NaN with the lowest bit of its payload set, positive if quiet; of formats with one NaN, that.
fn nan(format: &Format, quiet: bool) -> Option<u64> {
    if !format.has_nan() {
        return None;
    }
    let fraction = match (format.specials, quiet) {
        (Specials::Ieee, true) if format.fraction_bits > 1 => 1 << (format.fraction_bits - 1) | 1,
        (Specials::Ieee, _) | (_, true) => 1,
        (_, false) => return None,
    };
    Some(format.pack(Decoded::Nan { negative: !quiet, fraction }))
}
