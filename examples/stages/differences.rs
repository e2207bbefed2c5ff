//! What tells a model that was found from that of the machine.

use std::collections::BTreeSet;

use mmaprobe::inference::evidence::{Class, Evidence};
use mmaprobe::inference::fit;
use mmaprobe::inference::nodewise::{self, Meeting};
use mmaprobe::model::Model;
use mmaprobe::model::format::{Format, RoundTo};
use mmaprobe::model::scalar::Scalar;
use mmaprobe::model::tree::{Added, Fused, Normalised, Rule};
use mmaprobe_probes::{DotAdd, Summand};

/// Unexplained answers that are printed.
const SHOWN: usize = 30;

/// What is different about a rule, each alone: what it is, and the rule with that as in another.
pub fn taken_over(rule: &Rule, other: &Rule) -> Vec<(&'static str, Rule)> {
    let with_added = |what, added| (what, Rule { added, ..rule.clone() });
    let with_normalised = |what, normalised| (what, Rule { normalised, ..rule.clone() });
    let mut all = vec![
        with_added("addition", other.added.clone()),
        with_normalised("result", other.normalised),
        ("signs of zeros", Rule { zero: other.zero, ..rule.clone() }),
        ("infinities", Rule { infinite_operands_first: other.infinite_operands_first, ..rule.clone() }),
    ];
    if let (Added::Fused(own), Added::Fused(other)) = (&rule.added, &other.added) {
        let each = [
            ("alignment", Fused { alignment: other.alignment.clone(), ..own.clone() }),
            ("exponents", Fused { exponents: other.exponents, ..own.clone() }),
            ("floor", Fused { floor: other.floor, ..own.clone() }),
            ("zeros' exponents", Fused { zeros: other.zeros, ..own.clone() }),
            ("carry", Fused { carry: other.carry, ..own.clone() }),
            ("sticky bit", Fused { sticky: other.sticky, ..own.clone() }),
        ];
        all.extend(each.map(|(what, fused)| with_added(what, Added::Fused(fused))));
    }
    if let (Normalised::To(own), Normalised::To(other)) = (rule.normalised, other.normalised) {
        let bits = RoundTo { format: other.format, fraction_bits: other.fraction_bits, ..own };
        let each = [
            ("result's format and bits", bits),
            ("result's rounding", RoundTo { rounding: other.rounding, ..own }),
            ("subnormal results", RoundTo { subnormals: other.subnormals, ..own }),
            ("overflow", RoundTo { overflow: other.overflow, ..own }),
        ];
        all.extend(each.map(|(what, round)| with_normalised(what, Normalised::To(round))));
    }
    all.retain(|(_, changed)| changed != rule);
    all
}

/// How many answers contradict a model.
pub fn unexplained(evidence: &Evidence, model: &Model) -> usize {
    fit::contradicted(model, evidence.answers.iter(), usize::MAX)
}

/// How many answers contradict a model with another rule in the place of one.
pub fn unexplained_with(evidence: &Evidence, model: &Model, place: usize, rule: &Rule) -> usize {
    let mut other = model.clone();
    other.tree.rules[place] = rule.clone();
    unexplained(evidence, &other)
}

/// Prints how many answers contradict a model with a rule of the machine, by its number, in the place of one, and with one
/// thing about it.
pub fn print_with(evidence: &Evidence, model: &Model, place: usize, (number, own): (usize, &Rule)) {
    println!("  {} with the machine's rule {number}", unexplained_with(evidence, model, place, own));
    for (what, changed) in taken_over(&model.tree.rules[place], own) {
        println!("    {} with its {what}", unexplained_with(evidence, model, place, &changed));
    }
}

/// Prints some of the answers that a model does not explain: the summands that are not zero, d, and what the model makes
/// of them.
pub fn print_unexplained(evidence: &Evidence, model: &Model) {
    let mut executor = Scalar::new(model).expect("a fitted model can be executed");
    let fp64 = RoundTo::nearest_even(Format::named("fp64").expect("a known format"));
    let value = |format: &Format, bits: u64| f64::from_bits(fp64.convert(format, bits));
    let signature = evidence.signature();
    let unexplained = evidence.answers.iter().filter(|answered| !fit::explains(&mut executor, answered));
    for answered in unexplained.take(SHOWN) {
        let DotAdd { a, b, c, sa, sb } = &answered.question;
        let products = a.iter().zip(b).enumerate().filter_map(|(k, (&a, &b))| {
            let [a, b] = [value(&signature.a, a), value(&signature.b, b)];
            (a != 0.0 && b != 0.0).then(|| format!("p{k} {a:e}*{b:e}"))
        });
        let summands: Vec<String> = products.chain([format!("c {:e}", value(&signature.c, *c))]).collect();
        let shown = |bits: u64| match value(&signature.d, bits) {
            nan if nan.is_nan() => format!("NaN {bits:#x}"),
            number => format!("{number:e}"),
        };
        let modelled = Scalar::new(model).expect("a fitted model can be executed").execute(&answered.inputs);
        let (class, d, modelled) = (answered.class, shown(answered.answer), shown(modelled));
        println!("  {class:?}: {}: d {d}, modelled {modelled}", summands.join(", "));
        if class == Class::Nan {
            println!("    a {a:x?}, b {b:x?}, c {c:x}, scales {sa:x?}, {sb:x?}");
        }
    }
}

/// The summands of a sum.
fn summands(meeting: &Meeting) -> BTreeSet<Summand> {
    meeting.sum.iter().flatten().copied().collect()
}

/// Prints what a model leaves unexplained, the sums that it lacks or has beside those of the machine, and where one of its
/// rules is not the machine's, what is left with that, or with one thing about it. Alignments go by place.
pub fn print(model: &Model, truth: &Model, evidence: &Evidence) {
    let [model, truth] = [model, truth].map(|model| nodewise::individual(model).0);
    println!("{} of {} answers unexplained", unexplained(evidence, &model), evidence.answers.len());
    print_unexplained(evidence, &model);
    let operands = |model: &Model| [&model.a, &model.b, &model.c].map(|read| read.subnormals);
    if (operands(&model), &model.product) != (operands(&truth), &truth.product) {
        println!("  found: {:?}, {:?}", operands(&model), model.product);
        println!("  truth: {:?}, {:?}", operands(&truth), truth.product);
    }
    if model.nan != truth.nan {
        println!("  found: {:?}", model.nan);
        println!("  truth: {:?}", truth.nan);
    }
    let [found, own] = [&model, &truth].map(nodewise::meetings);
    let mut others: Vec<(usize, (usize, &Rule))> = Vec::new();
    for meeting in &own {
        let Some(same) = found.iter().find(|other| summands(other) == summands(meeting)) else {
            println!("  no sum of {:?}, rule {}", meeting.sum, meeting.rule);
            continue;
        };
        let [rule, of_truth] = [&model.tree.rules[same.rule], &truth.tree.rules[meeting.rule]];
        if rule != of_truth {
            others.push((same.rule, (meeting.rule, of_truth)));
            print_with(evidence, &model, same.rule, (meeting.rule, of_truth));
            println!("    found: {rule:?}");
            println!("    truth: {of_truth:?}");
        }
    }
    for other in found.iter().filter(|other| !own.iter().any(|meeting| summands(meeting) == summands(other)))
    {
        println!("  a sum of {:?}, which the machine lacks", other.sum);
    }
    print_taken_over(evidence, model.clone(), others);
}

/// Prints what a model leaves unexplained as rules of the machine take the places of its own, those first with which least is
/// left, as long as each leaves less; two at once where one leaves no less.
fn print_taken_over(evidence: &Evidence, mut model: Model, mut others: Vec<(usize, (usize, &Rule))>) {
    let mut left = unexplained(evidence, &model);
    while left > 0 {
        let with = |chosen: &[usize]| {
            let mut other = model.clone();
            for &index in chosen {
                let (place, (_, rule)) = others[index];
                other.tree.rules[place] = rule.clone();
            }
            (unexplained(evidence, &other), chosen.to_vec(), other)
        };
        let least = |chosen: Vec<Vec<usize>>| {
            let tried = chosen.iter().map(|chosen| with(chosen));
            tried.min_by_key(|(unexplained, ..)| *unexplained).filter(|(unexplained, ..)| *unexplained < left)
        };
        let all = 0..others.len();
        let pairs = || all.clone().flat_map(|second| (0..second).map(move |first| vec![first, second]));
        let best = least(all.clone().map(|one| vec![one]).collect()).or_else(|| least(pairs().collect()));
        let Some((unexplained, chosen, next)) = best else { break };
        let numbers: Vec<usize> = chosen.iter().rev().map(|&index| others.remove(index).1.0).collect();
        println!("  {unexplained} with the machine's rules {numbers:?} taken over");
        (left, model) = (unexplained, next);
    }
}
