//! What a model says, parameter by parameter, in a few characters each: for tables that stand models
//! beside each other.

use mmaprobe_model::Model;
use mmaprobe_model::format::{RoundTo, Subnormals};
use mmaprobe_model::tree::{Added, InputSubnormals, NanRule, NodeId, Normalised, Product, Rule};

use crate::sheet::arithmetic::rule_names;
use crate::sheet::outline::{Outline, Part};
use crate::sheet::spelling::{Bits, Phrase, short};
use crate::sheet::words;

/// A parameter of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// What it is: `alignment`, or `alignment of fused2` where a model has several rules.
    pub what: String,
    /// What it is set to: `F=24, RZ`.
    pub value: String,
}

/// A parameter in which two models differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it is.
    pub what: String,
    /// What the one has; nothing if it has no such parameter.
    pub one: Option<String>,
    /// What the other has.
    pub other: Option<String>,
}

/// Every parameter of a model but its formats.
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn parameters(model: &Model) -> Vec<Parameter> {
    let model = model.canonical();
    let outline = Outline::new(&model.tree);
    let mut all = Vec::new();
    let mut push = |what: String, value: String| all.push(Parameter { what, value });
    push("summation".to_string(), summation(&outline, outline.root()));
    push("products".to_string(), product(&model.product));
    let names = rule_names(&model.tree.rules);
    for (rule, name) in model.tree.rules.iter().zip(&names) {
        let several = names.len() > 1;
        for (what, value) in of_rule(rule) {
            push(if several { format!("{what} of {name}") } else { what.to_string() }, value);
        }
    }
    push("subnormal operands".to_string(), subnormal_operands(&model));
    if let Some(infinite) = words::infinite_operands(&model) {
        push("infinite operands".to_string(), infinite.trim_end_matches('.').to_string());
    }
    push("NaN results".to_string(), nan(&model.nan));
    all
}

/// The parameters in which two models differ, in the order of the first one's.
pub fn differences(one: &Model, other: &Model) -> Vec<Difference> {
    between(&parameters(one), &parameters(other))
}

/// The same of parameters.
pub fn between(one: &[Parameter], other: &[Parameter]) -> Vec<Difference> {
    let find = |all: &[Parameter], what: &str| {
        all.iter().find(|parameter| parameter.what == what).map(|parameter| parameter.value.clone())
    };
    let mut names: Vec<&String> = Vec::new();
    for Parameter { what, .. } in one.iter().chain(other) {
        if !names.contains(&what) {
            names.push(what);
        }
    }
    names
        .into_iter()
        .map(|what| Difference { what: what.clone(), one: find(one, what), other: find(other, what) })
        .filter(|difference| difference.one != difference.other)
        .collect()
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let none = "none".to_string();
        let (one, other) = (self.one.as_ref().unwrap_or(&none), self.other.as_ref().unwrap_or(&none));
        write!(f, "{}: {one} → {other}", self.what)
    }
}

/// The shape of a sum, whichever products it has: `chain of 2 × (8 products), from c`.
fn summation(outline: &Outline<'_>, id: NodeId) -> String {
    let parts = |ids: Vec<NodeId>| -> String {
        let parts = outline.parts(ids).into_iter().map(|part| match part {
            Part::Accumulator => "c".to_string(),
            Part::Zero => "+0".to_string(),
            Part::Products(products) if products.len() == 1 => "1 product".to_string(),
            Part::Products(products) => format!("{} products", products.len()),
            Part::Inner(group) => {
                let (inner, blocks) = outline.unscaled(group[0]);
                let scaled = if blocks.is_empty() { "" } else { "scaled " };
                let what = match outline.sum(inner) {
                    Some(_) => format!("{scaled}({})", summation(outline, inner)),
                    None => format!("{scaled}products"),
                };
                if group.len() == 1 { what } else { format!("{} × {what}", group.len()) }
            }
        });
        parts.collect::<Vec<_>>().join(" + ")
    };
    let Some((_, summands)) = outline.sum(id) else { return parts(vec![id]) };
    if let Some(levels) = outline.pairwise_levels(id) {
        return format!("pairs of pairs, {levels} levels");
    }
    match outline.chain(id) {
        None => parts(summands.to_vec()),
        Some(chain) => {
            let (_, first) = outline.sum(chain.links[0]).unwrap_or((0, &[]));
            let others = first.iter().enumerate().filter(|&(i, _)| i != chain.position);
            let added = parts(others.map(|(_, &id)| id).collect());
            format!("chain of {} × ({added}), from {}", chain.links.len(), parts(vec![chain.start]))
        }
    }
}

fn of_rule(rule: &Rule) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    match &rule.added {
        Added::Exact => all.push(("alignment", "exact".to_string())),
        Added::Fused(fused) => {
            let alignment: Vec<String> = fused.alignment.iter().map(|one| Phrase(*one).to_string()).collect();
            all.push(("alignment", alignment.join(" | ")));
            all.push(("exponents", Phrase(fused.exponents).to_string()));
            all.push(("zeros in the largest exponent", Phrase(fused.zeros).to_string()));
            if let Some(floor) = fused.floor {
                all.push(("least largest exponent", floor.to_string()));
            }
            if let Some(carry) = fused.carry {
                all.push(("integer part", Phrase(carry).to_string()));
            }
            if fused.sticky {
                all.push(("sticky bit", "below the sum".to_string()));
            }
        }
    }
    match &rule.normalised {
        Normalised::No { exponent: None } => all.push(("result", "passed on unnormalised".to_string())),
        Normalised::No { exponent: Some(exponent) } => {
            all.push(("result", format!("passed on unnormalised, under exponent {exponent}")));
        }
        Normalised::To(round) => {
            all.push(("result", short(round)));
            all.push(("subnormal results", Phrase(round.subnormals).to_string()));
            all.push(("overflow", Phrase(round.overflow).to_string()));
        }
    }
    all.push(("zeros", words::zero_signs(&rule.zero)));
    if rule.infinite_operands_first {
        all.push(("infinite operands", "before products that overflow".to_string()));
    }
    all
}

fn product(product: &Product) -> String {
    match product {
        Product::Exact => "exact".to_string(),
        Product::OverflowsAt { exponent } => format!("exact, infinite from 2^{exponent} on"),
        Product::FlushedBelow { exponent, sign_kept } => {
            format!("exact, {} below 2^{exponent}", if *sign_kept { "zeros of their sign" } else { "+0" })
        }
        Product::Rounded(round) => {
            format!("rounded to {}, subnormals {}", short(round), Phrase(round.subnormals))
        }
    }
}

fn read(subnormals: InputSubnormals) -> &'static str {
    match subnormals {
        InputSubnormals::Kept => "kept",
        InputSubnormals::FlushedToPositiveZero => "read as +0",
        InputSubnormals::FlushedToSignedZero => "read as signed zero",
    }
}

fn subnormal_operands(model: &Model) -> String {
    let [a, b, c] = [model.a, model.b, model.c].map(|operand| read(operand.subnormals));
    if a == b && b == c { a.to_string() } else { format!("A {a}, B {b}, c {c}") }
}

fn nan(rule: &NanRule) -> String {
    match rule {
        NanRule::Canonical(bits) => Phrase(Bits(*bits)).to_string(),
        NanRule::Unknown => "unknown".to_string(),
        NanRule::Merged { generated } => format!("merged, else {}", Phrase(Bits(*generated))),
        NanRule::Propagated(rule) => {
            let order: Vec<String> = rule.order.iter().map(|&source| Phrase(source).to_string()).collect();
            format!(
                "an operand's{} ({}{}), else {}{}",
                if rule.quieted { ", quieted" } else { "" },
                order.join(" before "),
                if rule.later_first { ", the last first" } else { "" },
                Phrase(Bits(rule.generated)),
                if rule.generated_first { ", which goes first" } else { "" }
            )
        }
    }
}

/// The columns of a summary table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Fraction bits kept at alignment, F, of each rule in the order of computation.
    pub fraction_bits: String,
    /// How summands are cut, and how results are rounded.
    pub rounding: String,
    /// What becomes of subnormal operands and results.
    pub subnormals: String,
    /// What a NaN result is.
    pub nan: String,
}

/// The summary of a model.
pub fn columns(model: &Model) -> Columns {
    let model = model.canonical();
    let rules = &model.tree.rules;
    let fraction_bits = rules.iter().map(|rule| match &rule.added {
        Added::Exact => "exact".to_string(),
        Added::Fused(fused) => {
            let bits: Vec<String> = fused.alignment.iter().map(|a| a.fraction_bits.to_string()).collect();
            bits.join(" | ")
        }
    });
    let rounding = rules.iter().map(|rule| {
        let cut = match &rule.added {
            Added::Exact => String::new(),
            Added::Fused(fused) => {
                let each = fused.alignment.iter().map(|one| one.rounding.to_string());
                once_each(each).join(" | ")
            }
        };
        let result = match &rule.normalised {
            Normalised::To(round) => short(round),
            Normalised::No { .. } => "passed on".to_string(),
        };
        if cut.is_empty() { result } else { format!("{cut} → {result}") }
    });
    let results = rules.iter().filter_map(|rule| match &rule.normalised {
        Normalised::To(RoundTo { subnormals, .. }) => Some(match subnormals {
            Subnormals::Kept => "kept",
            Subnormals::Flushed { sign_kept: true, .. } => "flushed to signed zero",
            Subnormals::Flushed { sign_kept: false, .. } => "flushed to +0",
        }),
        Normalised::No { .. } => None,
    });
    let results = once_each(results.map(str::to_string)).join(", ");
    let operands = subnormal_operands(&model);
    let subnormals = if operands == results { operands } else { format!("in: {operands}; out: {results}") };
    Columns {
        fraction_bits: once_each(fraction_bits).join("; "),
        rounding: once_each(rounding).join("; "),
        subnormals,
        nan: nan(&model.nan),
    }
}

/// The texts without those that were there before.
pub fn once_each(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}
