//! The queries of Valpey et al.'s (2025) Table 4.
//!
//! Each is a pair of sum trees, or several, and an input on which they differ; every input that is found is
//! executed on all of them. Where the paper's terms are single products, c is there too: an instruction's
//! function has no less.

use std::time::Instant;

use super::properties::chain;
use super::query::{Answer, By, Plan, QueryError, distinguish_all};
use crate::model::algorithms::{Algorithm, AlgorithmError, Output, Types};
use crate::model::format::{FP16, FP32, RoundTo};
use crate::model::tree::{Added, Exponents, NanRule, Node, Normalised, Operand, Product, Rule, Tree};
use crate::model::{Format, Model, Rounding};
use crate::reason::carries::{CarryBits, enough, with_carry_bits};

const MODES: [Rounding; 4] =
    [Rounding::NearestTiesToEven, Rounding::TowardZero, Rounding::Up, Rounding::Down];

/// A model and others, from each of which it has to differ on one input.
#[derive(Clone, Debug)]
pub struct Part {
    /// The model.
    pub one: Model,
    /// The others.
    pub others: Vec<Model>,
}

/// A row of the table.
#[derive(Clone, Debug)]
pub struct Query {
    /// Its name in the paper.
    pub name: &'static str,
    /// Seconds of Z3 4.8.9 and cvc5 1.0.2 in the paper.
    pub published: [&'static str; 2],
    /// What is asked, one after the other.
    pub parts: Vec<Part>,
    /// For carry bits: the model whose bits are counted, and how many too few.
    pub carries: Option<(Model, u32)>,
}

fn round(format: Format, rounding: Rounding) -> RoundTo {
    RoundTo { rounding, ..RoundTo::nearest_even(format) }
}

/// A fused sum of fp16 products, of which the paper files each under the exponent of its leading one.
fn fused(k: usize, fraction_bits: u32) -> Result<Model, AlgorithmError> {
    let algorithm = Algorithm::Fda { fraction_bits, output: Output::Rz23 };
    let mut model = algorithm.model(&Types::plain(FP16, FP32, k))?;
    if let Added::Fused(fused) = &mut model.tree.rules[0].added {
        fused.exponents = Exponents::Normalised;
    }
    Ok(model)
}

/// (p0 + p1) + p2 or p0 + (p1 + p2), then c, each sum rounded to fp32 toward zero.
fn ordered(left: bool) -> Model {
    let rule = Rule { normalised: Normalised::To(round(FP32, Rounding::TowardZero)), ..Rule::ieee(FP32) };
    let leaves = [Node::Product(0), Node::Product(1), Node::Product(2), Node::Accumulator];
    let pair = if left { vec![0, 1] } else { vec![1, 2] };
    let triple = if left { vec![4, 2] } else { vec![0, 4] };
    let sums = [pair, triple, vec![5, 3]].map(|children| Node::Sum { children, rule: 0 });
    let nodes = leaves.into_iter().chain(sums).collect();
    Model { k: 3, tree: Tree { nodes, rules: vec![rule] }, ..Model::chain_of_fma(FP16, FP32, 3) }
}

/// The eight queries.
///
/// # Errors
/// If a model cannot be made, which would be a mistake here.
pub fn queries() -> Result<Vec<Query>, AlgorithmError> {
    let exact = |k: usize| -> Model {
        Model { nan: NanRule::Canonical(0x7fff_ffff), ..Model::chain_of_fma(FP16, FP32, k) }
    };
    let order = |k: usize| -> Vec<usize> { (0..k).collect() };
    let rounded_product = |mode| Model { product: Product::Rounded(round(FP16, mode)), ..exact(1) };
    // Property 1: c and d in fp16; products and sums in fp32, or all in fp16, toward zero.
    let to_half = |product, sums: RoundTo| -> Model {
        let types = Types { c: FP16, d: FP16, ..Types::plain(FP16, FP32, 2) };
        let base = Model { c: Operand::plain(FP16), d: types.d, product, ..exact(2) };
        let last = round(FP16, Rounding::TowardZero);
        let nan = NanRule::Canonical(0x7fff);
        Model { nan, ..chain(&base, &order(2), sums, Some(last)) }
    };
    let zero = Rounding::TowardZero;
    // Property 2: one product, converted to fp16.
    let converted = |mode| -> Model {
        let base = Model { d: FP16, nan: NanRule::Canonical(0x7fff), ..exact(1) };
        chain(&base, &order(1), round(FP16, mode), None)
    };
    let volta = |k| fused(k, 23);
    let limited = |model: &Model, carry_bits| with_carry_bits(model, carry_bits, 1);
    let part = |one: Model, others: Vec<Model>| Part { one, others };
    let pairs = |one: &Model, others: Vec<Model>| -> Vec<Part> {
        others.into_iter().map(|other| part(one.clone(), vec![other])).collect()
    };
    let (five, nine) = (volta(4)?, fused(8, 24)?);
    Ok(vec![
        Query {
            name: "Exact multiplication",
            published: ["0.55", "0.027"],
            parts: vec![part(exact(1), MODES.map(rounded_product).to_vec())],
            carries: None,
        },
        Query {
            name: "Exact addition in fp16",
            published: ["27.59", "0.12"],
            parts: vec![part(
                to_half(Product::Exact, round(FP32, zero)),
                vec![to_half(Product::Rounded(round(FP16, zero)), round(FP16, zero))],
            )],
            carries: None,
        },
        Query {
            name: "Rounding of final result",
            published: ["0.52", "0.008"],
            parts: pairs(&converted(MODES[0]), MODES[1..].iter().map(|&mode| converted(mode)).collect()),
            carries: None,
        },
        Query {
            name: "Rounding of accumulator",
            published: ["0.34", "0.017"],
            parts: pairs(
                &volta(1)?,
                MODES
                    .iter()
                    .map(|&mode| chain(&volta(1).expect("as before"), &order(1), round(FP32, mode), None))
                    .collect(),
            ),
            carries: None,
        },
        Query {
            name: "Accumulation order",
            published: ["9.87", "0.25"],
            parts: vec![part(ordered(true), vec![ordered(false)])],
            carries: None,
        },
        Query {
            name: "Normalisation",
            published: ["9.63", "0.25"],
            parts: vec![part(volta(2)?, vec![chain(&volta(2)?, &order(2), round(FP32, zero), None)])],
            carries: None,
        },
        Query {
            name: "3 carry bits (Volta, Turing)",
            published: ["410.25", "72.793"],
            parts: vec![part(limited(&five, 3), vec![limited(&five, 2)])],
            carries: Some((five, 2)),
        },
        Query {
            name: "4 carry bits (Ampere)",
            published: ["> 21600", "> 21600"],
            parts: vec![part(limited(&nine, 4), vec![limited(&nine, 3)])],
            carries: Some((nine, 3)),
        },
    ])
}

/// How a query was answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// With inputs, or an input and a proof, in so many seconds.
    In(f64),
    /// Not at all, for this reason.
    Not(String),
}

/// Answers a query. By reasoning, the bits that are too few are shown by an input and the ones that suffice
/// by a bound.
///
/// # Errors
/// If a solver fails.
pub fn answer(query: &Query, plan: &Plan) -> Result<Answered, QueryError> {
    let start = Instant::now();
    if let (Some((model, too_few)), By::Reasoning) = (&query.carries, plan.by) {
        let needed = matches!(enough(model, *too_few), CarryBits::TooFew(_));
        let suffice = matches!(enough(model, too_few + 1), CarryBits::Enough(_));
        return Ok(match (needed, suffice) {
            (true, true) => Answered::In(start.elapsed().as_secs_f64()),
            _ => Answered::Not("not answered".into()),
        });
    }
    for Part { one, others } in &query.parts {
        let others: Vec<&Model> = others.iter().collect();
        match distinguish_all(one, &others, plan)? {
            Answer::Differ(_) => {}
            Answer::Equal { by } => return Ok(Answered::Not(format!("never differ ({by})"))),
            Answer::Unknown { .. } if plan.by == By::Reasoning => {
                return Ok(Answered::Not("not found".into()));
            }
            Answer::Unknown { .. } => return Ok(Answered::Not(format!("> {}", plan.limit.as_secs()))),
        }
    }
    Ok(Answered::In(start.elapsed().as_secs_f64()))
}
