//! How many carry bits a sum needs.
//!
//! Summands that are aligned to the largest exponent have a few integer bits; their sum has more, the
//! carry bits. ⌈log₂ n⌉ suffice for n summands. Whether they are needed, Fasi et al. (2021) could only show
//! up to two, and Valpey et al. (2025, Table 4) asked solvers: three bits for five summands took a minute
//! and more, four bits for Ampere's nine were not found in six hours.
//!
//! Over the tree it is arithmetic. The largest sum has all summands as large as their formats allow, at one
//! exponent: if that fits, everything does, and [`CarryBits::Enough`] has the bound. If it does not, that
//! input is tried on the model with so many carry bits and on the one with all.

use std::convert::Infallible;

use super::{differ, execute, signature};
use crate::model::tree::{Added, Beyond, Carry, Exponents, Fused, Node, NodeId, Normalised, Product};
use crate::model::{Decoded, Format, Model};
use crate::probes::{DotAdd, Signature, place};
use crate::shrink::shrink;

/// Whether a number of carry bits is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CarryBits {
    /// It is not: on this input, a sum that wraps around gives another result.
    TooFew(Witness),
    /// It is: no sum can be larger.
    Enough(Bound),
    /// Neither an input nor a bound was found.
    Open,
    /// The model has no sum that aligns its summands.
    NoFusedSum,
}

/// An input on which carry bits matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The input.
    pub input: DotAdd,
    /// d with so many carry bits.
    pub limited: u64,
    /// d with all of them.
    pub full: u64,
}

/// Why no sum needs more: the largest magnitude of a sum, in units of 2^−32 of its largest exponent's
/// power of two, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// That magnitude.
    pub most: u128,
    /// Integer bits that hold it: those of a summand, and the carry bits.
    pub integer_bits: u32,
    /// Summands of the sum.
    pub summands: usize,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Bound { most, integer_bits, summands } = self;
        let (whole, part) = (most >> UNIT, most & ((1 << UNIT) - 1));
        // Rounded up.
        let thousandths = (part * 1000).div_ceil(1 << UNIT);
        let (whole, thousandths) = (whole + thousandths / 1000, thousandths % 1000);
        write!(
            f,
            "no sum of the {summands} summands exceeds {whole}.{thousandths:03} × 2^e, e their largest \
             exponent, and {integer_bits} integer bits hold what is below {} × 2^e",
            1u128 << integer_bits
        )
    }
}

/// Bounds are kept in units of 2^−32.
const UNIT: u32 = 32;

/// The largest magnitude of a node's value, by the power of two of its nominal exponent, rounded up, in
/// units of 2^−32; `None` where the tree does not bound it.
fn bound(model: &Model, id: NodeId) -> Option<u128> {
    let of_format = |format: &Format| u128::from(format.max_significand()) << UNIT >> format.fraction_bits;
    Some(match &model.tree.nodes[id] {
        Node::Zero => 0,
        Node::Accumulator => of_format(&model.c.format) + 1,
        Node::Product(_) => match &model.product {
            Product::Rounded(round) => of_format(&round.format) + 1,
            _ => ((of_format(&model.a.format) + 1) * (of_format(&model.b.format) + 1)) >> UNIT,
        }
        .saturating_add(1),
        Node::Scaled { child, .. } => {
            let scale = of_format(&model.scale?.format) + 1;
            let once = |value: u128| Some((value.checked_mul(scale)? >> UNIT) + 1);
            once(once(bound(model, *child)?)?)?
        }
        Node::Sum { children, rule } => match &model.tree.rules[*rule].normalised {
            Normalised::To(round) => of_format(&round.format) + 1,
            // Filed under one exponent, whatever it is: what counts is how large it can be at all.
            Normalised::No { exponent: Some(exponent) } => scaled(largest(model, id)?, -exponent)?,
            Normalised::No { exponent: None } => match &model.tree.rules[*rule].added {
                Added::Exact => {
                    children.iter().try_fold(0u128, |sum, &child| Some(sum + bound(model, child)?))?
                }
                Added::Fused(fused) => sum_bound(model, fused, children)?,
            },
        },
    })
}

/// The largest magnitude that a sum of products can have, in units of 2^−32, rounded up; `None` where that
/// is beyond counting.
fn largest(model: &Model, id: NodeId) -> Option<u128> {
    match &model.tree.nodes[id] {
        Node::Zero => Some(0),
        Node::Product(_) => {
            let (a, b) = (&model.a.format, &model.b.format);
            let product = u128::from(a.max_significand()) * u128::from(b.max_significand());
            let lsb = a.max_exponent() + b.max_exponent() - (a.fraction_bits + b.fraction_bits) as i32;
            scaled(product, lsb + UNIT as i32)
        }
        Node::Sum { children, rule } if model.tree.rules[*rule].added == Added::Exact => {
            children.iter().try_fold(0u128, |sum, &child| sum.checked_add(largest(model, child)?))
        }
        _ => None,
    }
}

/// Times a power of two, rounded up.
fn scaled(value: u128, exponent: i32) -> Option<u128> {
    let bits = 128 - value.leading_zeros() as i32;
    match exponent {
        0.. => (bits + exponent < 120).then(|| value << exponent),
        _ if -exponent < 128 => Some((value >> -exponent) + 1),
        _ => Some(1),
    }
}

/// The same as [`bound`] of a fused sum.
fn sum_bound(model: &Model, fused: &Fused, children: &[NodeId]) -> Option<u128> {
    children.iter().enumerate().try_fold(0u128, |sum, (position, &child)| {
        let own = match fused.exponents {
            // The leading one is at the exponent: below 2.
            Exponents::Normalised => 2 << UNIT,
            Exponents::Raw => bound(model, child)?,
        };
        // Rounding away from zero may add a unit of the last bit kept.
        let kept = fused.alignment_of(position).fraction_bits;
        let up = match fused.alignment_of(position).rounding {
            crate::model::Rounding::TowardZero => 0,
            _ => 1u128.checked_shl(UNIT.saturating_sub(kept)).unwrap_or(1),
        };
        sum.checked_add(own)?.checked_add(up)
    })
}

/// The fused sums of a model, with their rules and summands.
fn fused_sums(model: &Model) -> Vec<(NodeId, &Fused, &[NodeId])> {
    let nodes = model.tree.nodes.iter().enumerate();
    nodes
        .filter_map(|(id, node)| match node {
            Node::Sum { children, rule } => match &model.tree.rules[*rule].added {
                Added::Fused(fused) => Some((id, fused, &children[..])),
                Added::Exact => None,
            },
            _ => None,
        })
        .collect()
}

/// Integer bits of the widest summand of any fused sum: 1 where all are below 2, 2 where products of
/// significands are filed under the sum of their exponents. `None` if there is no fused sum, or the tree
/// does not bound its summands.
pub fn summand_bits(model: &Model) -> Option<u32> {
    let mut widest = None;
    for (_, fused, children) in fused_sums(model) {
        for &child in children {
            let bits = match fused.exponents {
                Exponents::Normalised => 1,
                // A bound rounds up: what is below a power of two may just reach it.
                Exponents::Raw => 128 - (bound(model, child)?.saturating_sub(16) >> UNIT).leading_zeros(),
            };
            widest = widest.max(Some(bits));
        }
    }
    widest
}

/// The model with so many carry bits in each fused sum, beside the integer bits of its widest summand; a
/// sum that outgrows them wraps around, as a two's complement number does.
pub fn with_carry_bits(model: &Model, carry_bits: u32, summand_bits: u32) -> Model {
    with_carry(model, Some(Carry { bits: summand_bits + carry_bits, beyond: Beyond::Wraps }))
}

fn with_carry(model: &Model, carry: Option<Carry>) -> Model {
    let mut model = model.clone();
    for rule in &mut model.tree.rules {
        if let Added::Fused(fused) = &mut rule.added {
            fused.carry = carry;
        }
    }
    model
}

/// Whether so many carry bits are enough for every fused sum of a model whose sums are otherwise
/// unlimited.
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn enough(model: &Model, carry_bits: u32) -> CarryBits {
    let full = with_carry(model, None);
    if fused_sums(&full).is_empty() {
        return CarryBits::NoFusedSum;
    }
    let Some(summand_bits) = summand_bits(&full) else { return CarryBits::Open };
    let integer_bits = summand_bits + carry_bits;
    let bounds: Option<Vec<(u128, usize)>> = fused_sums(&full)
        .into_iter()
        .map(|(_, fused, children)| Some((sum_bound(&full, fused, children)?, children.len())))
        .collect();
    let largest = bounds.and_then(|bounds| bounds.into_iter().max());
    if let Some((most, summands)) = largest.filter(|(most, _)| *most < 1 << (UNIT + integer_bits)) {
        return CarryBits::Enough(Bound { most, integer_bits, summands });
    }
    let limited = with_carry_bits(model, carry_bits, summand_bits);
    let signature = signature(model);
    let shows = |input: &DotAdd| differ(&limited, &full, [execute(&limited, input), execute(&full, input)]);
    let Some(found) = candidates(&full, &signature).into_iter().find(shows) else { return CarryBits::Open };
    let mut each = |inputs: &[DotAdd]| Ok::<_, Infallible>(inputs.iter().map(shows).collect());
    let Ok(input) = shrink(&found, &signature, &mut each);
    CarryBits::TooFew(Witness { limited: execute(&limited, &input), full: execute(&full, &input), input })
}

/// Inputs whose sums are as large as they can be: for each fused sum, its products at their largest
/// significands and one exponent, and c at its largest, at that exponent and near it.
pub(super) fn candidates(model: &Model, signature: &Signature) -> Vec<DotAdd> {
    let mut all = Vec::new();
    let sums = fused_sums(model);
    let mut products: Vec<Vec<usize>> = sums
        .iter()
        .map(|(_, _, children)| {
            let direct = children.iter().filter_map(|&child| match &model.tree.nodes[child] {
                Node::Product(k) => Some(*k),
                _ => None,
            });
            direct.collect()
        })
        .collect();
    products.push((0..model.k).collect());
    products.sort();
    products.dedup();
    let (a, b, c) = (&signature.a, &signature.b, &signature.c);
    for exponent in [0, 2, -4, 8] {
        for exponents_apart in [None, Some(0), Some(1), Some(-1), Some(2), Some(3), Some(4), Some(5)] {
            for products in products.iter().filter(|products| !products.is_empty()) {
                for significands in [[1u64, 1], [1, 0]] {
                    let factor = |format: &Format, largest: u64, exponent: i32| {
                        let hidden = 1 << format.fraction_bits;
                        let significand = if largest == 1 { format.max_significand() } else { hidden };
                        in_range(format, exponent)
                            .then(|| format.pack(Decoded::Finite { negative: false, significand, exponent }))
                    };
                    let pair = factor(a, significands[0], exponent).zip(factor(b, significands[1], 0));
                    let filed = exponents_apart.map(|apart| factor(c, 1, exponent + apart));
                    let (Some((x, y)), None | Some(Some(_))) = (pair, filed) else { continue };
                    let mut input = place::zeros(signature);
                    for &k in products {
                        (input.a[k], input.b[k]) = (x, y);
                    }
                    if let Some(Some(c)) = filed {
                        input.c = c;
                    }
                    all.push(input);
                }
            }
        }
    }
    all
}

/// Whether a format has normal numbers of that exponent whose significand can be its largest.
fn in_range(format: &Format, exponent: i32) -> bool {
    (format.min_exponent()..=format.max_exponent()).contains(&exponent)
}
