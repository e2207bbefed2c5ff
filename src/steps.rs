//! Every step of one dot-add: what is aligned to what, which bits fall off, what is rounded, and how far
//! the answer is from the exact result.
//!
//! A device only answers; the steps are those of a [`Model`] that is said to be its arithmetic. Whoever
//! shows them beside an answer says so where the two differ.

pub mod exact;
pub mod text;

use mmaprobe_model::execute::{Number, Value, cut, largest_exponent};
use mmaprobe_model::tree::{Added, Fused, Node, NodeId, Normalised};
use mmaprobe_model::{Executor, Model};
use serde::Serialize;

use crate::bits::number;
use crate::probes::DotAdd;
use crate::sheet::outline::Outline;
use crate::sheet::spelling::short;
use exact::{difference, product};

/// The steps of one dot-add, in the order in which they are computed. Numbers are exact, spelled as
/// [`number`] does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Steps {
    /// Products that are not what the exact ones are: rounded, flushed, overflowed, or of a flushed
    /// operand; an accumulator that is flushed.
    pub operands: Vec<Changed>,
    /// The sums in which something happens: those that hand a single summand on as it is are left out.
    pub sums: Vec<Sum>,
    /// The result, a bit pattern.
    pub d: u64,
}

/// An operand, or a product, and what it is read as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// `p3`, or `c`.
    pub name: String,
    /// What it would be exactly.
    pub exact: String,
    /// What is added.
    pub read: String,
}

/// A sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// Its name, as in a sheet's steps: `s0`, `d`.
    pub name: String,
    /// How it adds: `exact`, or `fused`.
    pub added: &'static str,
    /// The exponent that summands are aligned to.
    pub aligned_to: Option<i32>,
    /// Why it is that one, where no summand that is shown has it.
    pub because: Option<&'static str>,
    /// The summands that are not zero.
    pub summands: Vec<Summand>,
    /// The summands that are zero.
    pub zeros: usize,
    /// The sum of what was kept.
    pub sum: String,
    /// What it is rounded to, and how: `fp32 RZ`; nothing if it is handed on as it is.
    pub rounded_to: Option<String>,
    /// What comes out.
    pub result: String,
    /// What rounding took away, where that is a number.
    pub lost: Option<String>,
}

/// A summand, and what alignment leaves of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summand {
    /// `c`, `p3`, or the name of a sum; with the scales that it is multiplied by.
    pub name: String,
    /// Its value.
    pub value: String,
    /// What is kept of it, if that is something else, and what falls off: the value less what is kept.
    pub aligned: Option<Aligned>,
}

/// A summand that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Aligned {
    /// The exponent of the lowest bit that is kept.
    pub lowest: i32,
    /// The rounding of what lies below.
    pub rounding: String,
    /// What is kept.
    pub kept: String,
    /// What falls off.
    pub lost: String,
}

/// The steps of a dot-add.
///
/// # Panics
/// If the model does not pass [`Model::check`], or the question has fewer elements than it takes.
pub fn steps(model: &Model, question: &DotAdd) -> Steps {
    let model = model.canonical();
    let outline = Outline::new(&model.tree);
    let mut executor = Executor::new(&model).expect("a model that has been checked");
    let DotAdd { a, b, c, sa, sb } = question;
    let values = executor.evaluate(a, b, *c, sa, sb).to_vec();
    let mut tracer = Tracer { model: &model, outline: &outline, values: &values, names: Vec::new() };
    let mut sums = Vec::new();
    for id in 0..model.tree.nodes.len() {
        let (name, sum) = match &model.tree.nodes[id] {
            Node::Product(k) => (format!("p{k}"), None),
            Node::Accumulator => ("c".to_string(), None),
            Node::Zero => ("+0".to_string(), None),
            Node::Scaled { child, block } => (format!("{}·scale[{block}]", tracer.names[*child]), None),
            Node::Sum { .. } => tracer.sum(id, executor.unrounded(id).as_ref()),
        };
        tracer.names.push(name);
        sums.extend(sum);
    }
    Steps { operands: changed(&model, &values, question), sums, d: executor.dot_add(a, b, *c, sa, sb) }
}

/// The products, and c, that are added as something else than what the operands' bits say.
fn changed(model: &Model, values: &[Value], question: &DotAdd) -> Vec<Changed> {
    let nodes = model.tree.nodes.iter().zip(values);
    let mut changed: Vec<Changed> = nodes
        .filter_map(|(node, value)| {
            let (name, exact) = match node {
                Node::Product(k) => {
                    let (a, b) = (question.a[*k], question.b[*k]);
                    (format!("p{k}"), product(&model.a.format, a, &model.b.format, b))
                }
                Node::Accumulator => ("c".to_string(), exact::Exact::of(&model.c.format, question.c)),
                _ => return None,
            };
            (!exact.is(value)).then(|| Changed { name, exact: exact.to_string(), read: spelled(value) })
        })
        .collect();
    changed.sort_by_key(|changed| (changed.name.len(), changed.name.clone()));
    changed
}

/// A value in a word.
fn spelled(value: &Value) -> String {
    match value {
        Value::Nan(_) => "NaN".to_string(),
        Value::Infinite { negative: false, .. } => "infinity".to_string(),
        Value::Infinite { negative: true, .. } => "-infinity".to_string(),
        Value::Finite(Number { term, .. }) => number(term),
    }
}

fn finite(value: &Value) -> Option<&Number> {
    match value {
        Value::Finite(number) => Some(number),
        _ => None,
    }
}

fn is_zero(value: &Value) -> bool {
    finite(value).is_some_and(|number| number.term.is_zero())
}

/// What has been evaluated, and what its nodes are called.
struct Tracer<'t> {
    model: &'t Model,
    outline: &'t Outline<'t>,
    values: &'t [Value],
    names: Vec<String>,
}

impl Tracer<'_> {
    /// The name of a sum, and its step if anything happens in it: a sum that hands its only summand on as
    /// it is goes by that one's name.
    fn sum(&self, id: NodeId, unrounded: Option<&Value>) -> (String, Option<Sum>) {
        let Some((rule, children)) = self.outline.sum(id) else { return (String::new(), None) };
        let rule = &self.model.tree.rules[rule];
        let result = &self.values[id];
        let live: Vec<usize> =
            (0..children.len()).filter(|&position| !is_zero(&self.values[children[position]])).collect();
        if id != self.outline.root() {
            match live[..] {
                [] if is_zero(result) => return ("+0".to_string(), None),
                [only] if spelled(&self.values[children[only]]) == spelled(result) => {
                    return (self.names[children[only]].clone(), None);
                }
                _ => {}
            }
        }
        let name = self.outline.step_name(id);
        let fused = match &rule.added {
            Added::Exact => None,
            Added::Fused(fused) => Some(fused),
        };
        let numbers: Option<Vec<&Number>> =
            children.iter().map(|&child| finite(&self.values[child])).collect();
        let alignment = fused.zip(numbers).and_then(|(fused, numbers)| {
            let largest = largest_exponent(fused, numbers.iter().copied())?;
            Some((fused, numbers, largest))
        });
        let summands = live.iter().map(|&position| Summand {
            name: self.names[children[position]].clone(),
            value: spelled(&self.values[children[position]]),
            aligned: alignment
                .as_ref()
                .and_then(|(fused, numbers, largest)| aligned(fused, position, numbers[position], *largest)),
        });
        let before = unrounded.unwrap_or(result);
        let sum = Sum {
            added: if fused.is_some() { "fused" } else { "exact" },
            aligned_to: alignment.as_ref().map(|(_, _, largest)| *largest),
            because: alignment
                .as_ref()
                .and_then(|(fused, numbers, largest)| because(fused, numbers, *largest)),
            summands: summands.collect(),
            zeros: children.len() - live.len(),
            sum: spelled(before),
            rounded_to: match &rule.normalised {
                Normalised::To(round) => Some(short(round)),
                Normalised::No { .. } => None,
            },
            result: spelled(result),
            lost: match (finite(before), finite(result)) {
                (Some(before), Some(after)) => Some(difference(&before.term, &after.term)),
                _ => None,
            }
            .filter(|lost| !lost.is_zero())
            .map(|lost| number(&lost)),
            name: name.clone(),
        };
        (name, Some(sum))
    }
}

/// What alignment does to a summand, if it changes it.
fn aligned(fused: &Fused, position: usize, summand: &Number, largest: i32) -> Option<Aligned> {
    let (lowest, rounding) = cut(fused, position, summand, largest);
    let mut kept = summand.term.aligned(lowest, rounding, largest);
    let lost = difference(&summand.term, &kept);
    // An integer has one zero.
    kept.negative &= !kept.is_zero();
    (!lost.is_zero()).then(|| Aligned {
        lowest,
        rounding: rounding.to_string(),
        kept: number(&kept),
        lost: number(&lost),
    })
}

/// Why the largest exponent is what it is, if no summand that is not zero has it.
fn because(fused: &Fused, numbers: &[&Number], largest: i32) -> Option<&'static str> {
    let live = numbers.iter().copied().filter(|number| !number.term.is_zero());
    let without_floor = Fused { floor: None, ..fused.clone() };
    if largest_exponent(&without_floor, live) == Some(largest) {
        return None;
    }
    match largest_exponent(&without_floor, numbers.iter().copied()) {
        Some(of_all) if of_all == largest => Some("of a summand that is zero"),
        _ => Some("the least that it can be"),
    }
}
