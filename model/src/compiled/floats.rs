//! Correctly rounded sums of two numbers in fp32 or fp64, of any order: what the machine itself computes
//! (SFMA, GPS, and other binary trees).
//!
//! Products are either rounded themselves, or go exactly into a fused multiply-add. IEEE 754 leaves open
//! only which NaN comes out, so NaNs are noticed and replaced. The kernel relies on the floating-point
//! environment that Rust relies on: rounding to nearest, subnormal numbers kept.

mod convert;
mod kernel;

use alloc::vec::Vec;

use crate::format::{Decoded, FP32, FP64, Overflow, RoundTo, Subnormals, Tininess};
use crate::rounding::Rounding;
use crate::tree::{Added, Model, NanRule, Node, NodeId, Normalised, Product, Rule, ZeroSigns};
use convert::Converter;

pub(super) use kernel::FloatJob;

/// A tree that machine arithmetic can compute.
#[derive(Clone, Debug)]
pub(super) struct FloatPlan {
    a: Converter,
    b: Converter,
    c: Converter,
    /// Products' indices, in the order of their operations.
    order: Vec<usize>,
    operations: Vec<Operation>,
    /// Whether the operations are c and multiply-adds alone.
    is_chain: bool,
    /// Whether subnormal results are zeros.
    flushed: bool,
    /// fp64, or else fp32.
    is_double: bool,
    /// The NaN that replaces all others.
    nan: u64,
    nan_is_known: bool,
}

/// An operation on a stack of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// Puts c on the stack.
    Accumulator,
    /// Puts +0 on the stack.
    Zero,
    /// Puts the rounded product of the next factors on the stack.
    Multiply,
    /// Adds the exact product of the next factors to the top of the stack.
    MultiplyAdd,
    /// Replaces the two numbers at the top by their sum.
    Add,
}

/// Numbers that the kernel can hold at once.
const MAX_DEPTH: usize = 12;

impl FloatPlan {
    /// A plan for this model, if machine arithmetic computes it.
    pub fn new(model: &Model) -> Option<FloatPlan> {
        let is_double = model.d == FP64;
        if !is_double && model.d != FP32 || model.scale.is_some() || model.c.format != model.d {
            return None;
        }
        let Node::Sum { rule, .. } = model.tree.nodes.last()? else { return None };
        let rule = &model.tree.rules[*rule];
        let flushed = subnormals(rule, model)?;
        match &model.product {
            Product::Exact => {}
            Product::Rounded(round) if Normalised::To(*round) == rule.normalised => {}
            _ => return None,
        }
        let mut plan = FloatPlan {
            a: Converter::new(&model.a, is_double)?,
            b: Converter::new(&model.b, is_double)?,
            c: Converter::new(&model.c, is_double)?,
            order: Vec::new(),
            operations: Vec::new(),
            is_chain: true,
            flushed,
            is_double,
            nan: match model.nan {
                NanRule::Canonical(bits) => bits,
                _ => {
                    model.d.pack(Decoded::Nan { negative: false, fraction: 1 << (model.d.fraction_bits - 1) })
                }
            },
            nan_is_known: !matches!(model.nan, NanRule::Propagated(_) | NanRule::Merged { .. }),
        };
        plan.add(model, rule, model.tree.nodes.len() - 1, 1)?;
        plan.is_chain = plan.operations[0] == Operation::Accumulator
            && plan.operations[1..].iter().all(|&operation| operation == Operation::MultiplyAdd)
            && !flushed;
        Some(plan)
    }

    /// Whether its numbers are in fp64.
    pub fn is_double(&self) -> bool {
        self.is_double
    }

    /// Appends the operations of a node, which leave its value on a stack that is then `depth` high.
    fn add(&mut self, model: &Model, rule: &Rule, node: NodeId, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match &model.tree.nodes[node] {
            Node::Accumulator => self.operations.push(Operation::Accumulator),
            Node::Zero => self.operations.push(Operation::Zero),
            Node::Product(k) => {
                // An exact product has no place of its own.
                if model.product == Product::Exact {
                    return None;
                }
                self.order.push(*k);
                self.operations.push(Operation::Multiply);
            }
            Node::Scaled { .. } => return None,
            Node::Sum { children, rule: own } => {
                if &model.tree.rules[*own] != rule {
                    return None;
                }
                let &[first, second] = &children[..] else { return None };
                let product = |node: NodeId| match model.tree.nodes[node] {
                    Node::Product(k) if model.product == Product::Exact => Some(k),
                    _ => None,
                };
                match (product(first), product(second)) {
                    (Some(k), None) => {
                        self.add(model, rule, second, depth)?;
                        self.multiply_add(k);
                    }
                    (None, Some(k)) => {
                        self.add(model, rule, first, depth)?;
                        self.multiply_add(k);
                    }
                    (None, None) => {
                        self.add(model, rule, first, depth)?;
                        self.add(model, rule, second, depth + 1)?;
                        self.operations.push(Operation::Add);
                    }
                    (Some(_), Some(_)) => return None,
                }
            }
        }
        Some(())
    }

    fn multiply_add(&mut self, k: usize) {
        self.order.push(k);
        self.operations.push(Operation::MultiplyAdd);
    }
}

/// Whether a rule is IEEE 754's to nearest, ties to even, and flushes subnormal results.
fn subnormals(rule: &Rule, model: &Model) -> Option<bool> {
    let Normalised::To(round) = &rule.normalised else { return None };
    let nearest = RoundTo { subnormals: round.subnormals, ..RoundTo::nearest_even(model.d) };
    let is_ieee = rule.added == Added::Exact
        && rule.zero == ZeroSigns::IEEE
        && !rule.infinite_operands_first
        && *round == nearest
        && round.rounding == Rounding::NearestTiesToEven
        && round.overflow == Overflow::Infinity;
    match round.subnormals {
        _ if !is_ieee => None,
        Subnormals::Kept => Some(false),
        Subnormals::Flushed { tiny: Tininess::Delivered, sign_kept: true } => Some(true),
        Subnormals::Flushed { .. } => None,
    }
}
