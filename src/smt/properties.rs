//! The questions of Valpey et al. (2025), as pairs of sum trees: an instruction's, and one that computes
//! otherwise in one respect. An input on which the two differ shows that the instruction does not compute
//! so; a proof that there is none, that nobody could tell.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use crate::model::Model;
use crate::model::format::RoundTo;
use crate::model::tree::{Added, Node, Normalised, Product, Rule, RuleId, Tree, ZeroSigns};
use crate::model::{Format, Rounding};
use crate::reason::symmetry::permuted;
use crate::sheet::words::toward;

/// A property to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// The paper's property 1: are sums of fp16 products kept in more than fp16?
    Accumulation,
    /// Property 2: how is the final result rounded?
    FinalRounding,
    /// Property 3: does the order of the products matter?
    Order,
    /// Property 4: are partial sums normalised?
    Normalisation,
    /// Property 5: is Ootomo and Yokota's error correction ever worse than Markidis et al.'s?
    ErrorCorrection,
    /// Does d never fall where c grows?
    Monotonicity,
    /// Are so many carry bits enough?
    CarryBits(u32),
}

impl Display for Property {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Property::Accumulation => f.write_str("1"),
            Property::FinalRounding => f.write_str("2"),
            Property::Order => f.write_str("order-independence"),
            Property::Normalisation => f.write_str("4"),
            Property::ErrorCorrection => f.write_str("5"),
            Property::Monotonicity => f.write_str("monotonicity"),
            Property::CarryBits(bits) => write!(f, "carry-bits={bits}"),
        }
    }
}

impl FromStr for Property {
    type Err = String;

    fn from_str(text: &str) -> Result<Property, String> {
        let bits = text.strip_prefix("carry-bits=").and_then(|bits| bits.parse().ok());
        Ok(match (text, bits) {
            ("1" | "accumulation", _) => Property::Accumulation,
            ("2" | "final-rounding", _) => Property::FinalRounding,
            ("3" | "order-independence", _) => Property::Order,
            ("4" | "normalisation", _) => Property::Normalisation,
            ("5" | "error-correction", _) => Property::ErrorCorrection,
            ("monotonicity", _) => Property::Monotonicity,
            (_, Some(bits @ 0..=32)) => Property::CarryBits(bits),
            _ => {
                return Err("expected 1 to 5, accumulation, final-rounding, order-independence, \
                            normalisation, error-correction, monotonicity or carry-bits=N, N at most 32"
                    .to_string());
            }
        })
    }
}

/// A model that computes otherwise in one respect.
#[derive(Clone, Debug)]
pub struct Variant {
    /// How it computes, as the end of "as if": `sums were kept in fp16, rounded toward zero (RZ)`.
    pub what: String,
    /// It.
    pub model: Model,
}

/// The variants that a property compares a model with: none for those that are no comparison.
pub fn variants(property: Property, model: &Model) -> Vec<Variant> {
    match property {
        Property::Accumulation => narrow_sums(model),
        Property::FinalRounding => other_roundings(model),
        Property::Order => other_orders(model),
        Property::Normalisation => vec![normalised_chain(model)],
        Property::ErrorCorrection | Property::Monotonicity | Property::CarryBits(_) => Vec::new(),
    }
}

/// Products in a chain of sums, each rounded, starting from c.
pub fn chain(model: &Model, order: &[usize], round: RoundTo, last: Option<RoundTo>) -> Model {
    let rule = |round: RoundTo| Rule {
        added: Added::Exact,
        zero: ZeroSigns::IEEE,
        infinite_operands_first: false,
        normalised: Normalised::To(round),
    };
    let mut nodes = vec![Node::Accumulator];
    let own = 0;
    let of_last: RuleId = usize::from(last.is_some());
    for (index, &k) in order.iter().enumerate() {
        let sum = nodes.len() - 1;
        nodes.push(Node::Product(k));
        let rule = if index + 1 == order.len() { of_last } else { own };
        nodes.push(Node::Sum { children: vec![sum, sum + 1], rule });
    }
    let rules = [round].into_iter().chain(last).map(rule).collect();
    Model { tree: Tree { nodes: nodes.into(), rules }, ..model.clone() }
}

fn rounding(format: Format, rounding: Rounding) -> RoundTo {
    RoundTo { rounding, ..RoundTo::nearest_even(format) }
}

/// Sums kept in A's format.
fn narrow_sums(model: &Model) -> Vec<Variant> {
    let order: Vec<usize> = (0..model.k).collect();
    [Rounding::NearestTiesToEven, Rounding::TowardZero]
        .into_iter()
        .map(|mode| {
            let narrow = rounding(model.a.format, mode);
            let last = (model.d != model.a.format).then(|| RoundTo::nearest_even(model.d));
            // The last sum is in A's format too; a final conversion to d then changes nothing.
            let last = last.map(|last| RoundTo {
                fraction_bits: narrow.fraction_bits.min(last.fraction_bits),
                rounding: mode,
                ..last
            });
            Variant {
                what: format!("sums were kept in {}, rounded {}", model.a.format, toward(mode)),
                model: chain(model, &order, narrow, last),
            }
        })
        .collect()
}

/// The root rounded in every other mode of IEEE 754.
fn other_roundings(model: &Model) -> Vec<Variant> {
    let Some(Node::Sum { rule, .. }) = model.tree.nodes.last() else { return Vec::new() };
    let modes = [Rounding::NearestTiesToEven, Rounding::TowardZero, Rounding::Up, Rounding::Down];
    modes
        .into_iter()
        .filter_map(|mode| {
            let mut other = model.clone();
            let mut own = other.tree.rules[*rule].clone();
            let round = own.round_to()?;
            if round.rounding == mode {
                return None;
            }
            round.rounding = mode;
            // A rule of its own: others may share the root's.
            other.tree.rules.push(own);
            let last = other.tree.rules.len() - 1;
            if let Some(Node::Sum { rule, .. }) = other.tree.nodes.last_mut() {
                *rule = last;
            }
            Some(Variant { what: format!("the result was rounded {}", toward(mode)), model: other })
        })
        .collect()
}

/// Two orders of the products from which every other follows: the first two exchanged, and all moved on
/// by one.
fn other_orders(model: &Model) -> Vec<Variant> {
    let k = model.k;
    let mut exchanged: Vec<usize> = (0..k).collect();
    if k > 1 {
        exchanged.swap(0, 1);
    }
    let moved: Vec<usize> = (0..k).map(|index| (index + 1) % k).collect();
    [("p0 and p1 were exchanged", exchanged), ("each product took the next one's place", moved)]
        .into_iter()
        .take(k - 1)
        .map(|(what, order)| Variant { what: what.into(), model: permuted(model, &order) })
        .collect()
}

/// The products added one by one to c, each partial sum normalised as the result is.
fn normalised_chain(model: &Model) -> Variant {
    let order: Vec<usize> = (0..model.k).collect();
    let root = match model.tree.nodes.last() {
        Some(Node::Sum { rule, .. }) => model.tree.rules[*rule].clone().round_to().copied(),
        _ => None,
    };
    let round = root.unwrap_or(RoundTo::nearest_even(model.d));
    Variant {
        what: format!("every partial sum was normalised and rounded {}", toward(round.rounding)),
        model: chain(model, &order, round, None),
    }
}

/// The model with products rounded to A's format in a mode.
pub fn rounded_products(model: &Model, mode: Rounding) -> Model {
    Model { product: Product::Rounded(rounding(model.a.format, mode)), ..model.clone() }
}
