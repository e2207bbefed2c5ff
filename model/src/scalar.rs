//! The scalar executor: any tree, one dot-add after the other, without big numbers where none are needed.
//!
//! [`Scalar`] computes what the general [`Executor`] does, bit for bit, several times as fast. Significands
//! are integers of 128 bits, or of 64 where that is enough, and nothing is allocated. What does not fit is
//! left to the general executor: the odd node, with infinities, NaNs and other rare cases, or the whole
//! dot-add, where an exact inner sum is wider than that.
//!
//! Making one costs about as much as checking the model. Where many models with the same formats are held
//! against the same questions, as inference does, decode these once, as [`Inputs`].
//!
//! ```
//! use mmaprobe_model::scalar::{Inputs, Scalar};
//! use mmaprobe_model::{Model, format};
//!
//! let model = Model::chain_of_fma(format::FP32, format::FP32, 1);
//! let (a, b, c) = (3.0f32.to_bits(), 0.5f32.to_bits(), 1.0f32.to_bits());
//! let inputs = Inputs::new(&model, &[a.into()], &[b.into()], c.into(), &[], &[]);
//! let d = Scalar::new(&model).unwrap().execute(&inputs);
//! assert_eq!(f32::from_bits(d as u32), 2.5);
//! ```

mod add;
mod cell;
mod columns;
mod decode;
mod grafts;
mod neighbours;
mod round;

use alloc::vec;
use alloc::vec::Vec;

use crate::exact::Term;
use crate::execute::{self, Executor, Value};
use crate::format::{Decoded, Format};
use crate::tree::{
    Added, InputInfinities, InputSubnormals, Model, ModelError, Node, Normalised, Operand, Product, Rule,
};
use cell::{Cell, Sum};
pub use columns::{Columns, Differing, Lockstep, Scratch, Steps};
use decode::Decoder;
pub use grafts::Grafts;
pub use neighbours::{Changes, Kind, Known, Nodes, Written};
use round::Rounder;

/// Runs a [`Model`] on dot-adds. See the [module](self).
///
/// It keeps scratch space between calls: make one and use it for many dot-adds.
#[derive(Clone, Debug)]
pub struct Scalar<'m> {
    model: &'m Model,
    executor: Executor<'m>,
    /// The rules of sums: the model's, or others in their places.
    rules: Vec<Rule>,
    /// Whether they are the model's.
    follows_model: bool,
    /// For each rule, how it rounds.
    rounders: Vec<Option<Rounder>>,
    /// How products are rounded.
    of_products: Option<Rounder>,
    /// Fraction bits of both factors.
    product_fraction_bits: i32,
    /// Whether operands are what their formats say: A, B, C.
    plain: [bool; 3],
    /// For each node, its value.
    cells: Vec<Cell>,
    /// For each node whose cell says so, its value.
    specials: Vec<Value>,
    /// For each node, whether its value differs from another model's. What is not evaluated does not.
    differs: Vec<bool>,
    /// The children of a sum that is left to the general executor.
    values: Vec<Value>,
    terms: Vec<Term>,
    decoders: Decoders,
    formats: [u64; 4],
    elements: Elements,
}

/// A dot-add's operands, taken apart once, for any number of models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The patterns: those of A, of B, c alone, the scales of A, of B.
    bits: [Vec<u64>; 5],
    /// Identifies the formats of A, B, C and the scales.
    formats: [u64; 4],
    elements: Elements,
    /// The products of A's elements and B's.
    products: Vec<Exact>,
    /// The products of the scales of A and of B, of each block.
    scales: Vec<Exact>,
}

/// The exact product of two factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exact {
    /// Its magnitude as an integer.
    magnitude: u64,
    /// The sum of the factors' exponents.
    exponent: i32,
    /// See [`Number::lowered`](crate::execute::Number::lowered).
    lowered: i32,
    negative: bool,
    /// Whether it is a number, whose magnitude fits.
    is_known: bool,
}

impl Exact {
    /// The product of two factors that are read as they are.
    fn of(a: &Decoded, b: &Decoded) -> Exact {
        let none = Exact { magnitude: 0, exponent: 0, lowered: 0, negative: false, is_known: false };
        let (
            &Decoded::Finite { negative: na, significand: x, exponent: ea },
            &Decoded::Finite { negative: nb, significand: y, exponent: eb },
        ) = (a, b)
        else {
            return none;
        };
        x.checked_mul(y).map_or(none, |magnitude| Exact {
            magnitude,
            exponent: ea + eb,
            lowered: execute::lowered(x, ea) + execute::lowered(y, eb),
            negative: na != nb,
            is_known: true,
        })
    }
}

/// A dot-add's operands, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Elements {
    a: Vec<Decoded>,
    b: Vec<Decoded>,
    c: Option<Decoded>,
    sa: Vec<Decoded>,
    sb: Vec<Decoded>,
}

/// What takes a model's operands apart.
#[derive(Clone, Debug)]
struct Decoders {
    a: Decoder,
    b: Decoder,
    c: Decoder,
    scale: Option<Decoder>,
}

impl Decoders {
    fn new(model: &Model) -> Decoders {
        Decoders {
            a: Decoder::new(model.a.format),
            b: Decoder::new(model.b.format),
            c: Decoder::new(model.c.format),
            scale: model.scale.map(|scale| Decoder::new(scale.format)),
        }
    }

    fn decode(&self, a: &[u64], b: &[u64], c: u64, sa: &[u64], sb: &[u64], into: &mut Elements) {
        self.a.decode_all(a, &mut into.a);
        self.b.decode_all(b, &mut into.b);
        into.c = Some(self.c.decode(c));
        if let Some(scale) = &self.scale {
            scale.decode_all(sa, &mut into.sa);
            scale.decode_all(sb, &mut into.sb);
        }
    }
}

/// The formats in which a model reads its operands.
fn formats(model: &Model) -> [u64; 4] {
    [Some(model.a.format), Some(model.b.format), Some(model.c.format), model.scale.map(|scale| scale.format)]
        .map(|format| format.map_or(0, |format| key(&format)))
}

/// A number that formats share if they decode alike.
fn key(format: &Format) -> u64 {
    let fields = [
        format.exponent_bits,
        format.fraction_bits,
        format.ignored_low_bits,
        format.signed.into(),
        format.specials as u32,
    ];
    let fields = fields.into_iter().fold(1, |key, field| key << 6 | u64::from(field));
    fields << 32 | u64::from(format.bias as u32)
}

impl Inputs {
    /// Takes a dot-add's operands apart as a model reads them: K elements of A and of B, c, and the scales
    /// of A and of B (none where the instruction has no scales).
    pub fn new(model: &Model, a: &[u64], b: &[u64], c: u64, sa: &[u64], sb: &[u64]) -> Inputs {
        let scale = model.scale.map(|scale| scale.format);
        Inputs::in_formats([model.a.format, model.b.format, model.c.format], scale, a, b, c, sa, sb)
    }

    /// The same for every model that reads A, B, C and the scales in these formats.
    pub fn in_formats(
        [of_a, of_b, of_c]: [Format; 3],
        of_scales: Option<Format>,
        a: &[u64],
        b: &[u64],
        c: u64,
        sa: &[u64],
        sb: &[u64],
    ) -> Inputs {
        let mut elements = Elements::default();
        let decoders = Decoders {
            a: Decoder::new(of_a),
            b: Decoder::new(of_b),
            c: Decoder::new(of_c),
            scale: of_scales.map(Decoder::new),
        };
        decoders.decode(a, b, c, sa, sb, &mut elements);
        let formats =
            [Some(of_a), Some(of_b), Some(of_c), of_scales].map(|format| format.map_or(0, |f| key(&f)));
        let products = elements.a.iter().zip(&elements.b).map(|(a, b)| Exact::of(a, b)).collect();
        let scales = elements.sa.iter().zip(&elements.sb).map(|(a, b)| Exact::of(a, b)).collect();
        Inputs { bits: [a, b, &[c], sa, sb].map(<[u64]>::to_vec), formats, elements, products, scales }
    }

    /// The bit patterns of an element of A and of its element of B.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn factors(&self, k: usize) -> [u64; 2] {
        [self.bits[0][k], self.bits[1][k]]
    }

    /// The bit pattern of c.
    pub fn accumulator(&self) -> u64 {
        self.bits[2][0]
    }
}

/// How a rule rounds, if it does.
fn rounder(rule: &Rule) -> Option<Rounder> {
    match &rule.normalised {
        Normalised::To(round) => Some(Rounder::new(*round)),
        Normalised::No { .. } => None,
    }
}

impl<'m> Scalar<'m> {
    /// Prepares a model for execution.
    ///
    /// # Errors
    /// If the model [cannot be executed](Model::check).
    pub fn new(model: &'m Model) -> Result<Scalar<'m>, ModelError> {
        let plain = |operand: &Operand| {
            operand.subnormals == InputSubnormals::Kept && operand.infinities == InputInfinities::Kept
        };
        Ok(Scalar {
            executor: Executor::new(model)?,
            rules: model.tree.rules.clone(),
            follows_model: true,
            rounders: model.tree.rules.iter().map(rounder).collect(),
            of_products: match model.product {
                Product::Rounded(round) => Some(Rounder::new(round)),
                _ => None,
            },
            plain: [plain(&model.a), plain(&model.b), plain(&model.c)],
            model,
            product_fraction_bits: (model.a.format.fraction_bits + model.b.format.fraction_bits) as i32,
            cells: vec![Cell::zero(false, 0); model.tree.nodes.len()],
            specials: vec![Cell::zero(false, 0).value(); model.tree.nodes.len()],
            differs: vec![false; model.tree.nodes.len()],
            values: Vec::new(),
            terms: Vec::new(),
            decoders: Decoders::new(model),
            formats: formats(model),
            elements: Elements::default(),
        })
    }

    /// The model that is executed, or the one whose rules [others](Scalar::follow) are followed instead of.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Follows these rules from now on, in the place of the model's: what is executed is the model with these. It costs
    /// little where few of them are others than those followed before.
    ///
    /// # Errors
    /// If the model [cannot be executed](Model::check) with one of them. Those before it are followed then.
    ///
    /// # Panics
    /// If there are not as many as the model has.
    pub fn follow(&mut self, rules: &[Rule]) -> Result<(), ModelError> {
        assert_eq!(rules.len(), self.rules.len(), "each takes the place of another");
        self.follows_model = false;
        self.differs.fill(false);
        for (index, rule) in rules.iter().enumerate() {
            if self.rules[index] != *rule {
                self.model.check_rule(index, rule)?;
                self.rules[index].clone_from(rule);
                self.rounders[index] = rounder(rule);
            }
        }
        Ok(())
    }

    /// What the general executor makes of a dot-add.
    #[cold]
    fn general(&mut self, a: &[u64], b: &[u64], c: u64, sa: &[u64], sb: &[u64]) -> u64 {
        if self.follows_model {
            return self.executor.dot_add(a, b, c, sa, sb);
        }
        let mut model = self.model.clone();
        model.tree.rules.clone_from(&self.rules);
        Executor::new(&model).expect("its rules have been checked").dot_add(a, b, c, sa, sb)
    }

    /// One dot-add d = f(c, a, b), on bit patterns, as [`Executor::dot_add`].
    ///
    /// # Panics
    /// If a slice is shorter than the model calls for.
    pub fn dot_add(&mut self, a: &[u64], b: &[u64], c: u64, sa: &[u64], sb: &[u64]) -> u64 {
        let mut elements = core::mem::take(&mut self.elements);
        self.decoders.decode(a, b, c, sa, sb, &mut elements);
        let d = self.evaluate(&elements, &[]);
        self.elements = elements;
        d.unwrap_or_else(|| self.general(a, b, c, sa, sb))
    }

    /// One dot-add on operands that have been taken apart.
    ///
    /// # Panics
    /// If there are fewer of them than the model calls for.
    pub fn execute(&mut self, inputs: &Inputs) -> u64 {
        let [a, b, c, sa, sb] = &inputs.bits;
        if inputs.formats != self.formats {
            return self.dot_add(a, b, c[0], sa, sb);
        }
        self.evaluate(&inputs.elements, &inputs.products).unwrap_or_else(|| self.general(a, b, c[0], sa, sb))
    }

    /// The value of a node, as it was evaluated last.
    fn value(&self, node: usize) -> Value {
        let cell = &self.cells[node];
        if cell.is_special { self.specials[node].clone() } else { cell.value() }
    }

    /// Evaluates every node; `None` if an inner value does not fit a cell. Products need not be known.
    fn evaluate(&mut self, elements: &Elements, products: &[Exact]) -> Option<u64> {
        for node in 0..self.model.tree.nodes.len() {
            self.node(node, elements, products)?;
        }
        self.packed()
    }

    /// Evaluates a node whose children have their values. Products need not be known.
    #[inline]
    fn node(&mut self, node: usize, elements: &Elements, products: &[Exact]) -> Option<()> {
        let model = self.model;
        match &model.tree.nodes[node] {
            Node::Product(k) => self.product(node, *k, elements, products),
            Node::Accumulator => self.accumulator(node, elements.c?),
            Node::Zero => {
                self.cells[node] = Cell::zero(false, i32::MIN / 4);
                Some(())
            }
            Node::Scaled { child, block } => {
                self.scaled(node, *child, [elements.sa[*block], elements.sb[*block]])
            }
            Node::Sum { children, rule } => self.sum(node, children, *rule),
        }
    }

    /// The bit pattern of d, of the root's value.
    fn packed(&self) -> Option<u64> {
        let (model, root) = (self.model, self.cells.last()?);
        if root.is_special {
            return Some(execute::pack(model, self.specials.last()?));
        }
        let (negative, significand) = (root.negative, root.halves[0]);
        Some(model.d.pack(Decoded::Finite { negative, significand, exponent: root.exponent }))
    }

    #[inline]
    fn product(
        &mut self,
        node: usize,
        k: usize,
        Elements { a, b, .. }: &Elements,
        products: &[Exact],
    ) -> Option<()> {
        let cell = &mut self.cells[node];
        let lsb_below = self.product_fraction_bits;
        match products.get(k) {
            Some(known) if known.is_known && self.plain[0] && self.plain[1] => {
                let &Exact { magnitude, exponent, lowered, negative, .. } = known;
                cell.halves = [magnitude, 0];
                (cell.exponent, cell.lowered, cell.negative) = (exponent, lowered, negative);
            }
            _ => {
                let read = |is_plain, operand, element| match is_plain {
                    true => element,
                    false => execute::conditioned(operand, element),
                };
                let a = read(self.plain[0], &self.model.a, a[k]);
                let b = read(self.plain[1], &self.model.b, b[k]);
                let (
                    Decoded::Finite { negative: na, significand: x, exponent: ea },
                    Decoded::Finite { negative: nb, significand: y, exponent: eb },
                ) = (a, b)
                else {
                    return self.keep(node, execute::product(self.model, a, b));
                };
                let magnitude = u128::from(x) * u128::from(y);
                cell.halves = [magnitude as u64, (magnitude >> 64) as u64];
                cell.exponent = ea + eb;
                cell.lowered = execute::lowered(x, ea) + execute::lowered(y, eb);
                cell.negative = na != nb;
            }
        }
        cell.lsb = cell.exponent - lsb_below;
        // The factors' significands are below 2.
        cell.top = cell.exponent + 1;
        cell.is_open_sum = false;
        cell.is_special = false;
        let is_usual = match &self.model.product {
            Product::Exact => true,
            Product::OverflowsAt { exponent } => cell.is_zero() || cell.leading_exponent() < *exponent,
            Product::FlushedBelow { exponent, .. } => cell.is_zero() || cell.leading_exponent() >= *exponent,
            Product::Rounded(_) => false,
        };
        if is_usual {
            return Some(());
        }
        if let Some(rounder) = &self.of_products {
            let (negative, magnitude) = (cell.negative, cell.magnitude());
            let exact = Sum { negative, magnitude, lsb: cell.lsb, exponent: cell.exponent };
            if let Some(rounded) = rounder.round(&exact) {
                cell.round_to(rounder.fraction_bits(), &rounded);
                return Some(());
            }
        }
        let a = execute::conditioned(&self.model.a, a[k]);
        let b = execute::conditioned(&self.model.b, b[k]);
        self.keep(node, execute::product(self.model, a, b))
    }

    fn accumulator(&mut self, node: usize, c: Decoded) -> Option<()> {
        let c = if self.plain[2] { c } else { execute::conditioned(&self.model.c, c) };
        let Decoded::Finite { negative, significand, exponent } = c else {
            return self.keep(node, execute::accumulator(self.model, c));
        };
        self.cells[node] = Cell {
            halves: [significand, 0],
            lsb: exponent - self.model.c.format.fraction_bits as i32,
            lowered: execute::lowered(significand, exponent),
            ..Cell::zero(negative, exponent)
        };
        Some(())
    }

    /// A node's value times the scales of a block.
    fn scaled(&mut self, node: usize, child: usize, scales: [Decoded; 2]) -> Option<()> {
        let format = self.model.scale.expect("a checked model with scaled nodes has scales").format;
        let cell = &self.cells[child];
        if let [
            Decoded::Finite { negative: na, significand: x, exponent: ea },
            Decoded::Finite { negative: nb, significand: y, exponent: eb },
        ] = scales
            && !cell.is_special
            && cell.magnitude().leading_zeros() >= 2 * (format.fraction_bits + 1)
        {
            let magnitude = cell.magnitude() * (u128::from(x) * u128::from(y));
            let lsb = cell.lsb + ea + eb - 2 * format.fraction_bits as i32;
            let (lowered, is_open_sum) = (cell.lowered, cell.is_open_sum);
            let scaled =
                Sum { negative: cell.negative ^ na ^ nb, magnitude, lsb, exponent: cell.exponent + ea + eb };
            let cell = &mut self.cells[node];
            cell.set(&scaled);
            (cell.lowered, cell.is_open_sum) = (lowered, is_open_sum);
            return Some(());
        }
        let once = execute::scaled(&self.value(child), scales[0], &format);
        self.keep(node, execute::scaled(&once, scales[1], &format))
    }

    fn sum(&mut self, node: usize, children: &[usize], rule: usize) -> Option<()> {
        let (number, rule) = (rule, &self.rules[rule]);
        let cells = &self.cells;
        let added = match &rule.added {
            Added::Exact => add::exact(cells, children, matches!(rule.normalised, Normalised::To(_))),
            Added::Fused(fused) => add::fused(fused, cells, children),
        };
        let Some(mut total) = added else { return self.general_sum(node, children, number) };
        if total.magnitude == 0 {
            let first = cells[children[0]].negative;
            let all_zeros_alike =
                children.iter().all(|&child| cells[child].is_zero() && cells[child].negative == first);
            total.negative = if all_zeros_alike {
                first && rule.zero.negative_zeros_stay
            } else {
                rule.zero.cancellation_is_negative
            };
        }
        let cell = &mut self.cells[node];
        match (&rule.normalised, &self.rounders[number]) {
            (Normalised::No { exponent }, _) => {
                total.exponent = exponent.unwrap_or(total.exponent);
                cell.set(&total);
                cell.is_open_sum = true;
            }
            (Normalised::To(_), Some(rounder)) => {
                let Some(mut rounded) = rounder.round(&total) else {
                    return self.general_sum(node, children, number);
                };
                if rounded.significand == 0 && total.magnitude != 0 {
                    rounded.negative &= rule.zero.underflow_keeps_sign;
                }
                cell.round_to(rounder.fraction_bits(), &rounded);
            }
            (Normalised::To(_), None) => unreachable!("there is a rounder for each rule that rounds"),
        }
        Some(())
    }

    /// A sum that is left to the general executor.
    #[cold]
    fn general_sum(&mut self, node: usize, children: &[usize], rule: usize) -> Option<()> {
        self.values.clear();
        for &child in children {
            let value = self.value(child);
            self.values.push(value);
        }
        let value = execute::sum(self.model, &self.rules[rule], self.values.iter(), &mut self.terms);
        self.keep(node, value)
    }

    /// Sets a node's value; `None` if it does not fit.
    #[cold]
    fn keep(&mut self, node: usize, value: Value) -> Option<()> {
        match value {
            Value::Finite(number) => self.cells[node] = Cell::of(&number)?,
            value => {
                // Whole: what stood here before must not tell two equal values apart.
                self.cells[node] = Cell { is_special: true, ..Cell::zero(false, 0) };
                self.specials[node] = value;
            }
        }
        Some(())
    }
}
