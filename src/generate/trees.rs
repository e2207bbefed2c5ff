//! A model as a readable constant: [`constant::Model`](crate::model::constant::Model) in Rust.
//!
//! Everything that is in a model is spelled out; what a variant or field is called is what the model's
//! own source calls it.

use crate::generate::code::{Code, WIDTH};
use crate::model::format::{Overflow, RoundTo, Subnormals, Tininess};
use crate::model::tree::{
    Added, Alignment, Beyond, Carry, Exponents, Far, InputInfinities, InputSubnormals, NanRule, NanSource,
    Node, Normalised, Operand, Product, Propagation, Rule, Scale, ZeroSigns, ZeroTerms,
};
use crate::model::{Format, Model, Rounding};
use crate::sheet::Arithmetic;
use crate::sheet::program::runs;

/// The modules and names that these expressions can take for granted; see [`imports`].
const NAMES: [(&str, &[&str]); 4] = [
    ("constant", &["Added", "Model", "Rule", "Step", "Summand"]),
    ("format", &["self", "Overflow", "RoundTo", "Subnormals", "Tininess"]),
    ("rounding", &["Rounding"]),
    (
        "tree",
        &[
            "Alignment",
            "Beyond",
            "Carry",
            "Exponents",
            "Far",
            "InputInfinities",
            "InputSubnormals",
            "NanRule",
            "NanSource",
            "Normalised",
            "Operand",
            "Product",
            "Propagation",
            "Scale",
            "ZeroSigns",
            "ZeroTerms",
        ],
    ),
];

/// The `use` lines that this source needs for the expressions in it.
pub fn imports(source: &str) -> String {
    let mut lines = String::new();
    for (module, names) in NAMES {
        let name = |name: &str| if name == "self" { module.to_string() } else { name.to_string() };
        let used: Vec<&str> = names.iter().copied().filter(|own| uses(source, &name(own))).collect();
        let list = used.join(", ");
        let line = match &used[..] {
            [] => continue,
            ["self"] => format!("use crate::{module};\n"),
            [name] => format!("use crate::{module}::{name};\n"),
            _ if list.len() + module.len() + 18 <= WIDTH => format!("use crate::{module}::{{{list}}};\n"),
            _ => format!("use crate::{module}::{{\n{}\n}};\n", textwrap::indent(&filled(&list), "    ")),
        };
        lines += &line;
    }
    lines
}

/// Names in indented lines as long as rustfmt makes them: in `use` lines, it leaves the last
/// column free, and does not count the last comma.
fn filled(list: &str) -> String {
    textwrap::wrap(list, WIDTH - 5).join("\n") + ","
}

/// Whether a source has this name before `::` or ` {`, and not as the end of another.
fn uses(source: &str, name: &str) -> bool {
    source.match_indices(name).any(|(at, _)| {
        let behind = &source[at + name.len()..];
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        (behind.starts_with("::") || behind.starts_with(" {")) && !source[..at].ends_with(is_word)
    })
}

/// A model as a `constant::Model`, a comment above each rule and each step.
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn model(model: &Model) -> Code {
    // The words of a sheet are the comments.
    let Arithmetic { rules: named, steps: comments, .. } = Arithmetic::from(model);
    let model = model.canonical();
    let names = named.0.iter().map(|(name, _)| name.clone());
    Code::Struct(
        "Model".into(),
        vec![
            ("k", Code::atom(model.k)),
            ("a", operand(&model.a)),
            ("b", operand(&model.b)),
            ("c", operand(&model.c)),
            ("scale", Code::option(model.scale.as_ref().map(scale))),
            ("product", product(&model.product)),
            (
                "rules",
                Code::reference(Code::Commented(names.zip(model.tree.rules.iter().map(rule)).collect())),
            ),
            ("steps", Code::reference(Code::Commented(comments.into_iter().zip(steps(&model)).collect()))),
            ("d", format(&model.d)),
            ("nan", nan(&model.nan)),
        ],
    )
}

/// A format by the name of its constant.
pub fn format(format: &Format) -> Code {
    Code::atom(format_args!("format::{}", format.name.to_uppercase()))
}

/// Block scales.
pub fn scale(scale: &Scale) -> Code {
    Code::Struct("Scale".into(), vec![("format", format(&scale.format)), ("block", Code::atom(scale.block))])
}

/// The sums, in the order of the canonical tree.
fn steps(model: &Model) -> Vec<Code> {
    // Every node as the summand by which later steps refer to it.
    let mut summands: Vec<Code> = Vec::with_capacity(model.tree.nodes.len());
    let mut steps = Vec::new();
    for node in &model.tree.nodes {
        summands.push(match node {
            Node::Product(k) => Code::call("Summand::Product", Code::atom(k)),
            Node::Accumulator => Code::atom("Summand::Accumulator"),
            Node::Zero => Code::atom("Summand::Zero"),
            Node::Scaled { child, block } => Code::Struct(
                "Summand::Scaled".into(),
                vec![("summand", Code::reference(summands[*child].clone())), ("block", Code::atom(block))],
            ),
            Node::Sum { children, rule } => {
                steps.push(Code::Struct(
                    "Step".into(),
                    vec![
                        ("rule", Code::atom(rule)),
                        ("summands", Code::reference(Code::List(listed(model, children, &summands)))),
                    ],
                ));
                Code::call("Summand::Step", Code::atom(steps.len() - 1))
            }
        });
    }
    steps
}

/// Summands of a sum, products that follow each other as ranges.
fn listed(model: &Model, children: &[usize], summands: &[Code]) -> Vec<Code> {
    let product = |&child: &usize| match model.tree.nodes[child] {
        Node::Product(k) => Some(k),
        _ => None,
    };
    let mut listed = Vec::new();
    let mut rest = children;
    while let Some(&first) = rest.first() {
        let products: Vec<usize> = rest.iter().map_while(product).collect();
        for run in runs(&products) {
            listed.push(match run.count {
                1 => Code::call("Summand::Product", Code::atom(run.first)),
                _ => Code::Struct(
                    "Summand::Products".into(),
                    vec![
                        ("first", Code::atom(run.first)),
                        ("last", Code::atom(run.last())),
                        ("stride", Code::atom(run.stride)),
                    ],
                ),
            });
        }
        if products.is_empty() {
            listed.push(summands[first].clone());
        }
        rest = &rest[products.len().max(1)..];
    }
    listed
}

fn operand(operand: &Operand) -> Code {
    let subnormals = match operand.subnormals {
        InputSubnormals::Kept => "Kept",
        InputSubnormals::FlushedToPositiveZero => "FlushedToPositiveZero",
        InputSubnormals::FlushedToSignedZero => "FlushedToSignedZero",
    };
    let fields = vec![
        ("format", format(&operand.format)),
        ("subnormals", Code::atom(format_args!("InputSubnormals::{subnormals}"))),
        (
            "infinities",
            Code::atom(match operand.infinities {
                InputInfinities::Kept => "InputInfinities::Kept",
                InputInfinities::Nan => "InputInfinities::Nan",
                InputInfinities::Largest => "InputInfinities::Largest",
            }),
        ),
    ];
    Code::Struct("Operand".into(), fields)
}

fn product(product: &Product) -> Code {
    match product {
        Product::Exact => Code::atom("Product::Exact"),
        Product::Rounded(round) => Code::call("Product::Rounded", round_to(round)),
        Product::OverflowsAt { exponent } => {
            Code::Struct("Product::OverflowsAt".into(), vec![("exponent", Code::atom(exponent))])
        }
        Product::FlushedBelow { exponent, sign_kept } => Code::Struct(
            "Product::FlushedBelow".into(),
            vec![("exponent", Code::atom(exponent)), ("sign_kept", Code::atom(sign_kept))],
        ),
    }
}

fn rule(rule: &Rule) -> Code {
    let Rule { added, zero, infinite_operands_first, normalised } = rule;
    let added = match added {
        Added::Exact => Code::atom("Added::Exact"),
        Added::Fused(fused) => Code::Struct(
            "Added::Fused".into(),
            vec![
                ("alignment", Code::reference(Code::List(fused.alignment.iter().map(alignment).collect()))),
                (
                    "exponents",
                    Code::atom(match fused.exponents {
                        Exponents::Raw => "Exponents::Raw",
                        Exponents::Normalised => "Exponents::Normalised",
                    }),
                ),
                ("floor", Code::option(fused.floor.map(Code::atom))),
                (
                    "zeros",
                    Code::atom(match fused.zeros {
                        ZeroTerms::Ignored => "ZeroTerms::Ignored",
                        ZeroTerms::SumsCounted => "ZeroTerms::SumsCounted",
                        ZeroTerms::Counted => "ZeroTerms::Counted",
                        ZeroTerms::CountedAsFp32 => "ZeroTerms::CountedAsFp32",
                    }),
                ),
                ("carry", Code::option(fused.carry.as_ref().map(carry))),
                ("sticky", Code::atom(fused.sticky)),
            ],
        ),
    };
    let normalised = match normalised {
        Normalised::To(round) => Code::call("Normalised::To", round_to(round)),
        Normalised::No { exponent } => {
            Code::Struct("Normalised::No".into(), vec![("exponent", Code::option(exponent.map(Code::atom)))])
        }
    };
    Code::Struct(
        "Rule".into(),
        vec![
            ("added", added),
            ("zero", zero_signs(zero)),
            ("infinite_operands_first", Code::atom(infinite_operands_first)),
            ("normalised", normalised),
        ],
    )
}

fn alignment(alignment: &Alignment) -> Code {
    let far = alignment.far.map(|Far { distance, rounding: mode }| {
        Code::Struct("Far".into(), vec![("distance", Code::atom(distance)), ("rounding", rounding(mode))])
    });
    Code::Struct(
        "Alignment".into(),
        vec![
            ("fraction_bits", Code::atom(alignment.fraction_bits)),
            ("rounding", rounding(alignment.rounding)),
            ("far", Code::option(far)),
        ],
    )
}

fn carry(&Carry { bits, beyond }: &Carry) -> Code {
    let beyond = match beyond {
        Beyond::Wraps => "Beyond::Wraps",
        Beyond::MagnitudeWraps => "Beyond::MagnitudeWraps",
        Beyond::Saturates => "Beyond::Saturates",
    };
    Code::Struct("Carry".into(), vec![("bits", Code::atom(bits)), ("beyond", Code::atom(beyond))])
}

fn zero_signs(signs: &ZeroSigns) -> Code {
    if *signs == ZeroSigns::IEEE {
        return Code::atom("ZeroSigns::IEEE");
    }
    let &ZeroSigns { negative_zeros_stay, cancellation_is_negative, underflow_keeps_sign } = signs;
    Code::Struct(
        "ZeroSigns".into(),
        vec![
            ("negative_zeros_stay", Code::atom(negative_zeros_stay)),
            ("cancellation_is_negative", Code::atom(cancellation_is_negative)),
            ("underflow_keeps_sign", Code::atom(underflow_keeps_sign)),
        ],
    )
}

fn round_to(round: &RoundTo) -> Code {
    let subnormals = match round.subnormals {
        Subnormals::Kept => Code::atom("Subnormals::Kept"),
        Subnormals::Flushed { tiny, sign_kept } => Code::Struct(
            "Subnormals::Flushed".into(),
            vec![
                (
                    "tiny",
                    Code::atom(match tiny {
                        Tininess::BeforeRounding => "Tininess::BeforeRounding",
                        Tininess::AfterRounding => "Tininess::AfterRounding",
                        Tininess::Delivered => "Tininess::Delivered",
                    }),
                ),
                ("sign_kept", Code::atom(sign_kept)),
            ],
        ),
    };
    Code::Struct(
        "RoundTo".into(),
        vec![
            ("format", format(&round.format)),
            ("fraction_bits", Code::atom(round.fraction_bits)),
            ("rounding", rounding(round.rounding)),
            ("subnormals", subnormals),
            (
                "overflow",
                Code::atom(match round.overflow {
                    Overflow::Infinity => "Overflow::Infinity",
                    Overflow::Largest => "Overflow::Largest",
                    Overflow::ByRounding => "Overflow::ByRounding",
                }),
            ),
        ],
    )
}

fn rounding(rounding: Rounding) -> Code {
    Code::atom(match rounding {
        Rounding::Up => "Rounding::Up",
        Rounding::Down => "Rounding::Down",
        Rounding::TowardZero => "Rounding::TowardZero",
        Rounding::AwayFromZero => "Rounding::AwayFromZero",
        Rounding::NearestTiesUp => "Rounding::NearestTiesUp",
        Rounding::NearestTiesDown => "Rounding::NearestTiesDown",
        Rounding::NearestTiesToZero => "Rounding::NearestTiesToZero",
        Rounding::NearestTiesAway => "Rounding::NearestTiesAway",
        Rounding::NearestTiesToEven => "Rounding::NearestTiesToEven",
        Rounding::NearestTiesToOdd => "Rounding::NearestTiesToOdd",
        Rounding::ToOdd => "Rounding::ToOdd",
    })
}

fn nan(rule: &NanRule) -> Code {
    match rule {
        NanRule::Unknown => Code::atom("NanRule::Unknown"),
        NanRule::Merged { generated } => Code::Struct(
            "NanRule::Merged".into(),
            vec![("generated", Code::atom(format_args!("{generated:#x}")))],
        ),
        NanRule::Canonical(bits) => Code::call("NanRule::Canonical", Code::atom(format_args!("{bits:#x}"))),
        NanRule::Propagated(Propagation { generated, order, later_first, quieted, generated_first }) => {
            let source = |source: &NanSource| {
                Code::atom(match source {
                    NanSource::A => "NanSource::A",
                    NanSource::B => "NanSource::B",
                    NanSource::Accumulator => "NanSource::Accumulator",
                })
            };
            let fields = vec![
                ("generated", Code::atom(format_args!("{generated:#x}"))),
                ("order", Code::List(order.iter().map(source).collect())),
                ("later_first", Code::atom(later_first)),
                ("quieted", Code::atom(quieted)),
                ("generated_first", Code::atom(generated_first)),
            ];
            Code::call("NanRule::Propagated", Code::Struct("Propagation".into(), fields))
        }
    }
}
