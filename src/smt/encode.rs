//! A model as SMT-LIB 2 definitions over bit vectors.
//!
//! Every node of the sum tree is one `define-fun` with the name that the sheet's program gives it: `p0`,
//! `s1`, `d`. Its value is a record of bits: whether it is NaN or infinite, its sign, its nominal exponent,
//! its magnitude as an integer, and what else the model's rules look at. What nodes have in common is
//! defined once, in front: how an element of A is read, how a product is formed, each rule of the sheet
//! (`fused`, `rounded1` …), each rounding.
//!
//! The encoding is written from the definition of the sum tree's meaning in
//! [`model::tree`](crate::model::tree) and [`model::execute`](crate::model::execute), but computes
//! otherwise: fixed widths found beforehand, all cases at once, and no number of more bits than can count.

mod layout;
mod operands;
mod rounding;
mod special;
mod sums;

use std::fmt::Write;

use super::bv::{Bv, Scope, sort};
use crate::model::tree::{Node, NodeId};
use crate::model::{Format, Model};
use crate::sheet::arithmetic::{Arithmetic, rule_names};
use crate::sheet::outline::Outline;
use layout::{Fields, Shape};

/// Bits of an element of a format, ignored ones included: those that a variable has.
pub fn element_width(format: &Format) -> u32 {
    format.bits() + format.ignored_low_bits
}

/// An operand's variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name: `a0`, `b15`, `c`, `sa1`.
    pub name: String,
    /// Its bits.
    pub width: u32,
}

/// The variables of a model's operands: all of A, all of B, c, then the scales of A and of B.
pub fn variables(model: &Model) -> Vec<Variable> {
    let many = |name: &str, format: &Format, count: usize| -> Vec<Variable> {
        let width = element_width(format);
        (0..count).map(|index| Variable { name: format!("{name}{index}"), width }).collect()
    };
    let mut all = many("a", &model.a.format, model.k);
    all.extend(many("b", &model.b.format, model.k));
    all.push(Variable { name: "c".into(), width: element_width(&model.c.format) });
    if let Some(scale) = &model.scale {
        let blocks = model.k / scale.block;
        all.extend(many("sa", &scale.format, blocks));
        all.extend(many("sb", &scale.format, blocks));
    }
    all
}

/// The definitions of a model.
#[derive(Clone, Debug)]
pub struct Definitions {
    /// SMT-LIB 2 text, without the declarations of the variables.
    pub text: String,
    /// The name of d's bit pattern.
    pub result: String,
    /// A condition: whether d is NaN.
    pub is_nan: String,
}

/// The declarations of a model's variables.
pub fn declarations(model: &Model) -> String {
    let declare =
        |variable: &Variable| format!("(declare-const {} {})\n", variable.name, sort(variable.width));
    variables(model).iter().map(declare).collect()
}

/// Encodes a model. Every name that it defines starts with `prefix`; the variables do not, and c's has
/// the name that is given.
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn encode(model: &Model, prefix: &str, c: &str) -> Definitions {
    let model = model.canonical();
    let mut encoder = Encoder::new(&model, prefix, c);
    let outline = Outline::new(&model.tree);
    let program: Vec<String> =
        Arithmetic::from(&model).steps.iter().map(|step| format!("; {step}\n")).collect();
    let mut nodes = String::new();
    let mut shapes: Vec<(String, Shape)> = Vec::new();
    for (id, node) in model.tree.nodes.iter().enumerate() {
        let (name, call, shape) = encoder.node(node, &shapes, &outline, id);
        let name = format!("{prefix}{name}");
        writeln!(nodes, "(define-fun {name} () {} {call})", shape.name).expect("a String takes all");
        shapes.push((name, shape));
    }
    let (root, shape) = shapes.last().expect("a checked model has a root");
    let result = format!("{prefix}d");
    let pack = encoder.packing(shape);
    writeln!(nodes, "(define-fun {result} () {} ({pack} {root}))", sort(element_width(&model.d)))
        .expect("a String takes all");
    let mut text = program.concat();
    text += "; what the nodes are made with\n";
    text += &encoder.text;
    text += "; the nodes of the sum tree\n";
    text += &nodes;
    let nan = encoder.bit_of(shape, root, layout::Flag::Nan);
    Definitions { text, result, is_nan: nan.to_string() }
}

/// Collects the definitions in front of the nodes.
struct Encoder<'m> {
    model: &'m Model,
    prefix: String,
    /// The variable of c.
    c: String,
    fields: Fields,
    rule_names: Vec<String>,
    text: String,
    /// Functions by what they compute: a key, their name, and what they return.
    known: Vec<(String, String, Shape)>,
}

impl<'m> Encoder<'m> {
    fn new(model: &'m Model, prefix: &str, c: &str) -> Encoder<'m> {
        Encoder {
            model,
            prefix: prefix.to_string(),
            c: c.to_string(),
            fields: Fields::of(model),
            rule_names: rule_names(&model.tree.rules),
            text: String::new(),
            known: Vec::new(),
        }
    }

    /// A node's name, the call that computes it, and what that returns.
    fn node(
        &mut self,
        node: &Node,
        done: &[(String, Shape)],
        outline: &Outline,
        id: NodeId,
    ) -> (String, String, Shape) {
        match node {
            Node::Product(k) => {
                let (function, shape) = self.product();
                (format!("p{k}"), format!("({function} a{k} b{k})"), shape)
            }
            Node::Accumulator => {
                let (function, shape) = self.accumulator();
                ("c.value".into(), format!("({function} {})", self.c), shape)
            }
            Node::Zero => {
                let shape = self.always_zero();
                let value = self.zero(&shape);
                (format!("zero{id}"), value.to_string(), shape)
            }
            Node::Scaled { child, block } => {
                let (name, shape) = &done[*child];
                let (function, shape) = self.scaled(&shape.clone());
                let own = name.strip_prefix(&self.prefix).unwrap_or(name);
                (format!("{own}.scaled"), format!("({function} {name} sa{block} sb{block})"), shape)
            }
            Node::Sum { children, rule } => {
                let shapes: Vec<Shape> = children.iter().map(|&child| done[child].1.clone()).collect();
                let (function, shape) = self.sum(*rule, &shapes);
                let names: Vec<&str> = children.iter().map(|&child| done[child].0.as_str()).collect();
                let name = outline.step_name(id);
                let name = if id == outline.root() { format!("{name}.value") } else { name };
                (name, format!("({function} {})", names.join(" ")), shape)
            }
        }
    }

    /// Writes a function down.
    fn define(&mut self, name: &str, parameters: &[(&str, u32)], result: u32, body: &str) {
        let parameters: Vec<String> =
            parameters.iter().map(|(name, width)| format!("({name} {})", sort(*width))).collect();
        writeln!(self.text, "(define-fun {name} ({}) {}\n{body})", parameters.join(" "), sort(result))
            .expect("a String takes all");
    }

    /// A function that has been defined for this key.
    fn known(&self, key: &str) -> Option<(String, Shape)> {
        self.known
            .iter()
            .find(|(known, ..)| known == key)
            .map(|(_, name, shape)| (name.clone(), shape.clone()))
    }

    /// A name that no definition has yet: with the prefix, and a number if need be.
    fn fresh(&self, name: &str) -> String {
        let taken = |name: &str| self.known.iter().any(|(_, known, _)| known == name);
        let name = format!("{}{name}", self.prefix);
        let mut fresh = name.clone();
        let mut number = 2;
        while taken(&fresh) {
            fresh = format!("{name}-{number}");
            number += 1;
        }
        fresh
    }

    /// An exponent.
    fn exponent(&self, value: i32) -> Bv {
        Bv::signed(value, self.fields.exponent)
    }
}

/// A function's body is made in a scope of its own.
fn body(scope: Scope, result: &Bv) -> String {
    scope.finish(result)
}
