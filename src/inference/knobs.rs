//! The grammar of rules: every single thing that can be different about a model.
//!
//! A *knob* is one statement about a model ("final rounding of R0"); its *choices* are the values it
//! can have. The search turns knobs; a sheet's evidence says which choices the answers contradict.

mod cutoff;
mod ends;
mod everywhere;
mod filed;
mod joint;
mod lone;
mod nans;
mod places;
mod products;
mod rule;
mod scales;
mod starts;
mod twice;
mod words;

use mmaprobe_model::format::{self, Format};
use mmaprobe_model::tree::{InputInfinities, InputSubnormals, Model, NanRule, Node, Product, RuleId};
use mmaprobe_probes::Signature;

use super::evidence::{Class, Evidence};
pub use cutoff::turn_cutoff;
pub use ends::{turn_ends, turn_ends_of_each, turn_open_ends};
pub use everywhere::turn_everywhere;
pub use filed::turn_filed;
pub use joint::{
    aligned_at, alignment_of_each, split, turn_alignments, turn_alike, turn_each_alignment,
    turn_exact_but_far, turn_far, turn_kind, turn_near_far, turn_not_far, turn_positions, turn_zeros,
};
pub use lone::turn_lone;
pub use nans::nan_rules;
use nans::nan_words;
pub use places::{turn_own_places, turn_places};
use products::{product_words, products};
pub use products::{turn_product_exponents, turn_products};
use rule::turn_rule;
pub use rule::{
    MOST_CARRY_BITS, MOST_DISTANCE, MOST_FRACTION_BITS, ORDINARY_FLOORS, aligned, intermediate, of_results,
    open_exponents, zero_terms,
};
use scales::place_scales;
pub use starts::turn_starts;
use starts::{Pairs, add_pairs, start_sums, sum_lone_products, swapped_starts};
use twice::round_twice;
pub use twice::{turn_range_twice, turn_twice};

/// One thing that can be different about a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Knob {
    /// What it is, in words.
    pub what: String,
    /// The rule that it belongs to, if it belongs to one.
    pub rule: Option<RuleId>,
}

/// A model in which one knob has another choice.
#[derive(Clone, Debug)]
pub struct Turned {
    /// The knob.
    pub knob: Knob,
    /// The choice, in words.
    pub choice: String,
    /// The model with that choice.
    pub model: Model,
}

/// Which rules' knobs are turned. Those that belong to no rule always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All.
    All,
    /// One, and those that were added from this one on: the root's, where it is rounded twice.
    One {
        /// The rule.
        rule: RuleId,
        /// The first of the others.
        and_from: RuleId,
    },
}

impl Scope {
    fn has(self, rule: RuleId) -> bool {
        match self {
            Scope::All => true,
            Scope::One { rule: one, and_from } => rule == one || rule >= and_from,
        }
    }

    /// Whether the rules that are others in one model than in another, or none in that, are among them.
    pub fn has_all_that_differ(self, model: &Model, other: &Model) -> bool {
        let (own, others) = (&model.tree.rules, &other.tree.rules);
        let differs = |rule: RuleId| own.get(rule) != others.get(rule);
        self == Scope::All || (0..own.len().max(others.len())).all(|rule| self.has(rule) || !differs(rule))
    }

    /// Whether the root's rule is among them.
    pub fn has_root(self, model: &Model) -> bool {
        matches!(model.tree.nodes.last(), Some(Node::Sum { rule, .. }) if self.has(*rule))
    }
}

/// The knobs that answers up to this class can show anything about, each with all its choices
/// (the model's own among them).
pub fn turn_all(model: &Model, signature: &Signature, class: Class, evidence: &Evidence) -> Vec<Turned> {
    turn(model, signature, class, evidence, Scope::All)
}

/// As [`turn_all`], with only some of the rules.
pub fn turn(
    model: &Model,
    signature: &Signature,
    class: Class,
    evidence: &Evidence,
    scope: Scope,
) -> Vec<Turned> {
    let mut turned = Vec::new();
    let mut global = |knob: &str, choice: String, change: &dyn Fn(&mut Model)| {
        let mut model = model.clone();
        change(&mut model);
        turned.push(Turned { knob: Knob { what: knob.to_string(), rule: None }, choice, model });
    };
    for (name, declared) in [("A", signature.a), ("B", signature.b)] {
        if let Some(wider) = read_as(&declared) {
            for format in [declared, wider] {
                global(&format!("bits read of {name}"), format!("{format}"), &|m| {
                    let operand = if name == "A" { &mut m.a } else { &mut m.b };
                    operand.format = format;
                });
            }
        }
    }
    if class >= Class::Subnormal {
        for a in INPUTS {
            for b in INPUTS {
                let choice = if a == b {
                    input_words(a).to_string()
                } else {
                    format!("A: {}, B: {}", input_words(a), input_words(b))
                };
                global("subnormal elements of A and B", choice, &|m| {
                    (m.a.subnormals, m.b.subnormals) = (a, b);
                });
            }
        }
        for c in INPUTS {
            global("a subnormal c", input_words(c).to_string(), &|m| m.c.subnormals = c);
        }
    }
    if class >= Class::Infinite {
        for (name, read) in [("A", 0), ("B", 1), ("C", 2)] {
            for (infinities, choice) in [
                (InputInfinities::Kept, "are infinite"),
                (InputInfinities::Nan, "are NaNs"),
                (InputInfinities::Largest, "are the largest number"),
            ] {
                global(&format!("infinite elements of {name}"), choice.to_string(), &|m| {
                    [&mut m.a, &mut m.b, &mut m.c][read].infinities = infinities;
                });
            }
        }
    }
    for (knob, product) in products(model.product, signature, class) {
        global(knob, product_words(&product), &|m| m.product = product);
    }
    if class >= Class::Nan {
        // A rule that is not known contradicts nothing: it is no choice beside one that is.
        let known = nan_rules(model, signature, evidence).into_iter();
        for nan in known.chain((model.nan == NanRule::Unknown).then_some(NanRule::Unknown)) {
            global("NaN results", nan_words(&nan, &signature.d), &|m| m.nan = nan);
        }
    }
    if signature.scale.is_some() {
        for (sums, choice) in
            [(0, "products"), (1, "sums of products of one block"), (usize::MAX, "all sums of one block")]
        {
            let change = |m: &mut Model| place_scales(m, sums);
            global("block scales", format!("applied to {choice}"), &unless_equal(model, &change));
        }
    }
    for (how, choice) in [
        (Pairs::AtOnce, "are added at once"),
        (Pairs::EarlierFirst, "are added to +0, the earlier first"),
        (Pairs::LaterFirst, "are added to +0, the later first"),
    ] {
        let change = |m: &mut Model| add_pairs(m, how);
        global("two products of one sum", choice.to_string(), &unless_equal(model, &change));
    }
    for (index, swapped) in swapped_starts(model).into_iter().enumerate() {
        let choice = format!("chain {index} starts with its second product");
        global("two products of one chain", choice, &|m| m.tree.nodes.clone_from(&swapped.tree.nodes));
    }
    for twice in [false, true] {
        let choice = if twice { "once more" } else { "once" };
        global("the result is rounded", choice.to_string(), &|m| round_twice(m, twice));
    }
    if class >= Class::Zero {
        for from_zero in [false, true] {
            let choice = if from_zero { "start from +0" } else { "start from a product" };
            global("sums of products alone", choice.to_string(), &|m| start_sums(m, from_zero));
        }
    }
    for (summed, choice) in [(false, "as they are"), (true, "as sums of their own")] {
        if let Some(model) = sum_lone_products(model, summed) {
            let knob = Knob { what: "products beside sums of others".to_string(), rule: None };
            turned.push(Turned { knob, choice: choice.to_string(), model });
        }
    }
    for rule in (0..model.tree.rules.len()).filter(|&rule| scope.has(rule)) {
        let shape = Shape::of(model, rule);
        for (knob, choice, changed) in turn_rule(&model.tree.rules[rule], shape, signature, class) {
            let mut model = model.clone();
            model.tree.rules[rule] = changed;
            turned.push(Turned { knob: Knob { what: knob, rule: Some(rule) }, choice, model });
        }
    }
    turned
}

/// A change of a model's tree, but for one that only puts its nodes in another order.
fn unless_equal<'a>(model: &'a Model, change: &'a dyn Fn(&mut Model)) -> impl Fn(&mut Model) + 'a {
    |changed| {
        change(changed);
        if *changed != *model && changed.canonical() == model.canonical() {
            changed.clone_from(model);
        }
    }
}

/// What matters about the sums that follow a rule.
#[derive(Clone, Copy)]
struct Shape {
    /// The largest number of children.
    arity: usize,
    /// Whether one of them is the root.
    is_root: bool,
    /// Whether products can become infinite that have no infinite factor.
    products_overflow: bool,
}

impl Shape {
    fn of(model: &Model, rule: RuleId) -> Shape {
        let arities = model.tree.nodes.iter().filter_map(|node| match node {
            Node::Sum { children, rule: r } if *r == rule => Some(children.len()),
            _ => None,
        });
        let is_root = matches!(model.tree.nodes.last(), Some(Node::Sum { rule: r, .. }) if *r == rule);
        let products_overflow = model.product != Product::Exact;
        Shape { arity: arities.max().unwrap_or(0), is_root, products_overflow }
    }
}

/// The largest number of summands of a sum that follows a rule.
pub fn arity(model: &Model, rule: RuleId) -> usize {
    Shape::of(model, rule).arity
}

/// The format that the same bits have if the ignored ones count.
fn read_as(format: &Format) -> Option<Format> {
    match format.name {
        "tf32" => Some(format::FP32),
        _ => None,
    }
}

const INPUTS: [InputSubnormals; 3] =
    [InputSubnormals::Kept, InputSubnormals::FlushedToSignedZero, InputSubnormals::FlushedToPositiveZero];

fn input_words(input: InputSubnormals) -> &'static str {
    match input {
        InputSubnormals::Kept => "kept",
        InputSubnormals::FlushedToSignedZero => "flushed to a zero of their sign",
        InputSubnormals::FlushedToPositiveZero => "flushed to +0",
    }
}
