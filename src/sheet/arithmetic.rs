//! The arithmetic of an instruction as a sheet writes it: a readable mirror of [`Model`].
//!
//! Conversion is exact both ways: model → arithmetic → model gives the [canonical](Model::canonical) model, which
//! is the same function, and the same model if it was canonical.

use mmaprobe_model::format::{Overflow, RoundTo, Subnormals};
use mmaprobe_model::tree::{
    Added, Alignment, Carry, Exponents, Fused, ModelError, NanRule, NanSource, Node, NodeId, Normalised,
    Operand, Product, Propagation, Rule, Scale, Tree, ZeroSigns, ZeroTerms,
};
use mmaprobe_model::{Format, Model, Rounding};
use serde::{Deserialize, Serialize};

use crate::sheet::either::{OneOrMany, WordOr};
use crate::sheet::ordered::Ordered;
use crate::sheet::program::{self, Step, Summand, Value};
use crate::sheet::schema::ScaleFacts;
use crate::sheet::spelling::{self, Bits, Phrase, Spelled, bounded};

/// Steps that a program can have; no instruction comes near.
const MAX_STEPS: usize = 4 * program::MAX_PRODUCTS;

/// What an instruction computes for one output element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arithmetic {
    /// How elements of A are read.
    #[serde(with = "spelling::operand")]
    pub a: Operand,
    /// How elements of B are read.
    #[serde(with = "spelling::operand")]
    pub b: Operand,
    /// How elements of C are read.
    #[serde(with = "spelling::operand")]
    pub c: Operand,
    /// Block scales.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScaleFacts>,
    /// How products are formed.
    pub product: WordOr<ProductWord, RoundingRule>,
    /// The rules that steps refer to.
    pub rules: Ordered<SumRule>,
    /// The [program]: one sum each, the last one `d`.
    pub steps: Vec<String>,
    /// Format of the result.
    #[serde(with = "spelling::format")]
    pub d: Format,
    /// What a NaN result looks like.
    pub nan: WordOr<NanWord, NanOrder>,
}

/// How products are formed, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductWord {
    /// Exactly.
    Exact,
    /// Exactly, but infinity from that power of two on.
    OverflowsAt(i32),
    /// Exactly, but a zero below that power of two.
    FlushedBelow {
        /// The exponent.
        exponent: i32,
        /// Whether the zero keeps its sign.
        sign_kept: bool,
    },
}

/// `exact`, or `overflows at 2^128`, or `flushed to +0 below 2^-126`, or `flushed to signed zero below …`.
impl Spelled for ProductWord {
    fn spell(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProductWord::Exact => f.write_str("exact"),
            ProductWord::OverflowsAt(exponent) => write!(f, "overflows at 2^{exponent}"),
            ProductWord::FlushedBelow { exponent, sign_kept } => {
                write!(f, "{}{exponent}", if *sign_kept { FLUSHED_SIGNED } else { FLUSHED_POSITIVE })
            }
        }
    }

    fn read(text: &str) -> Result<ProductWord, String> {
        if text == "exact" {
            return Ok(ProductWord::Exact);
        }
        let after = |prefix| text.strip_prefix(prefix).and_then(|exponent| exponent.parse().ok());
        let flushed =
            |exponent, sign_kept| Ok(ProductWord::FlushedBelow { exponent: bounded(exponent)?, sign_kept });
        if let Some(exponent) = after("overflows at 2^") {
            bounded(exponent).map(ProductWord::OverflowsAt)
        } else if let Some(exponent) = after(FLUSHED_POSITIVE) {
            flushed(exponent, false)
        } else if let Some(exponent) = after(FLUSHED_SIGNED) {
            flushed(exponent, true)
        } else {
            Err(format!(
                "unknown product `{text}`; expected `exact`, `overflows at 2^128`, `{FLUSHED_POSITIVE}-126`, \
                 `{FLUSHED_SIGNED}-126` or a rounding"
            ))
        }
    }
}

/// What stands before the exponent below which products become +0.
const FLUSHED_POSITIVE: &str = "flushed to +0 below 2^";

/// What stands before the exponent below which products become zeros of their sign.
const FLUSHED_SIGNED: &str = "flushed to signed zero below 2^";

/// Rounding to a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundingRule {
    /// The format.
    #[serde(with = "spelling::format")]
    pub format: Format,
    /// Fraction bits kept, where they are fewer than the format's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction_bits: Option<u32>,
    /// The rounding mode.
    #[serde(with = "spelling::rounding")]
    pub rounding: Rounding,
    /// What becomes of results below the smallest normal number.
    #[serde(with = "spelling::subnormals")]
    pub subnormals: Subnormals,
    /// What becomes of results above the largest number.
    #[serde(with = "spelling::overflow")]
    pub overflow: Overflow,
}

impl From<&RoundTo> for RoundingRule {
    fn from(round: &RoundTo) -> RoundingRule {
        let &RoundTo { format, fraction_bits, rounding, subnormals, overflow } = round;
        let fraction_bits = (fraction_bits != format.fraction_bits).then_some(fraction_bits);
        RoundingRule { format, fraction_bits, rounding, subnormals, overflow }
    }
}

impl TryFrom<&RoundingRule> for RoundTo {
    type Error = String;

    fn try_from(rule: &RoundingRule) -> Result<RoundTo, String> {
        let &RoundingRule { format, fraction_bits, rounding, subnormals, overflow } = rule;
        let fraction_bits = fraction_bits.unwrap_or(format.fraction_bits);
        if fraction_bits > format.fraction_bits {
            return Err(format!(
                "{format} has {} fraction bits, of which {fraction_bits} cannot be kept",
                format.fraction_bits
            ));
        }
        Ok(RoundTo { format, fraction_bits, rounding, subnormals, overflow })
    }
}

/// A [`Rule`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SumRule {
    /// The addition.
    pub added: WordOr<ExactWord, FusedRule>,
    /// The normalisation.
    pub normalised: WordOr<NotNormalised, RoundingRule>,
    /// The sign of a zero result.
    pub zero_signs: WordOr<IeeeWord, ZeroSignRule>,
    /// Whether infinite operands decide before products overflow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub infinite_operands_first: bool,
}

/// The word `exact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactWord;

impl Spelled for ExactWord {
    fn spell(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("exact")
    }

    fn read(text: &str) -> Result<ExactWord, String> {
        (text == "exact").then_some(ExactWord).ok_or_else(|| {
            format!("unknown addition `{text}`; expected `exact` or the fields of a fused sum")
        })
    }
}

/// A [`Fused`] sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FusedRule {
    /// How each summand is aligned; the last entry holds for all further ones.
    pub fused: OneOrMany<Alignment>,
    /// Whether exponents are taken raw or normalised.
    #[serde(with = "spelling::exponents")]
    pub exponents: Exponents,
    /// Which zeros take part in the largest exponent.
    #[serde(with = "spelling::zeros")]
    pub zeros: ZeroTerms,
    /// The least that the largest exponent can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<i32>,
    /// The width of the sum's integer part, where it is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry: Option<Phrase<Carry>>,
    /// Whether a bit below the sum says that alignment changed a summand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sticky: bool,
}

/// The phrase of a sum that is not normalised: `never`, or `never, exponent -5`. (A bare `no` would be
/// a boolean to readers of YAML 1.1.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotNormalised {
    /// The exponent under which it is filed; `None` for the one its summands were aligned to.
    pub exponent: Option<i32>,
}

impl Spelled for NotNormalised {
    fn spell(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.exponent {
            None => f.write_str("never"),
            Some(exponent) => write!(f, "never, exponent {exponent}"),
        }
    }

    fn read(text: &str) -> Result<NotNormalised, String> {
        if text == "never" {
            return Ok(NotNormalised { exponent: None });
        }
        let exponent = text.strip_prefix("never, exponent ").and_then(|exponent| exponent.parse().ok());
        let exponent = exponent.ok_or_else(|| {
            format!("unknown normalisation `{text}`; expected `never`, `never, exponent -5` or a rounding")
        })?;
        Ok(NotNormalised { exponent: Some(bounded(exponent)?) })
    }
}

/// The phrase `IEEE 754`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IeeeWord;

impl Spelled for IeeeWord {
    fn spell(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IEEE 754")
    }

    fn read(text: &str) -> Result<IeeeWord, String> {
        (text == "IEEE 754")
            .then_some(IeeeWord)
            .ok_or_else(|| format!("unknown signs of zero `{text}`; expected `IEEE 754` or three fields"))
    }
}

/// [`ZeroSigns`] that are not those of IEEE 754.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZeroSignRule {
    /// Negative zeros alone add up to −0.
    pub negative_zeros_stay: bool,
    /// Summands that cancel give −0.
    pub cancellation_is_negative: bool,
    /// A sum that rounds to zero keeps its sign.
    pub underflow_keeps_sign: bool,
}

/// A NaN rule in a phrase: `unknown`, or `canonical 0x7fffffff`, or `merged, generated 0x7fc00000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NanWord {
    /// Which NaN it is, is not known.
    Unknown,
    /// Always this pattern.
    Canonical(u64),
    /// The fractions of NaNs that meet are ORed; this is the pattern of one that no operand brought along.
    Merged(u64),
}

impl Spelled for NanWord {
    fn spell(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NanWord::Unknown => f.write_str("unknown"),
            NanWord::Canonical(bits) => write!(f, "canonical {}", Phrase(Bits(*bits))),
            NanWord::Merged(bits) => write!(f, "merged, generated {}", Phrase(Bits(*bits))),
        }
    }

    fn read(text: &str) -> Result<NanWord, String> {
        if text == "unknown" {
            Ok(NanWord::Unknown)
        } else if let Some(bits) = text.strip_prefix("canonical ") {
            Bits::read(bits).map(|bits| NanWord::Canonical(bits.0))
        } else if let Some(bits) = text.strip_prefix("merged, generated ") {
            Bits::read(bits).map(|bits| NanWord::Merged(bits.0))
        } else {
            Err(format!(
                "unknown NaN rule `{text}`; expected `unknown`, `canonical 0x7fffffff`, \
                 `merged, generated 0x7fc00000` or the fields of a propagation"
            ))
        }
    }
}

/// A [`Propagation`] of NaN operands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NanOrder {
    /// The pattern of a NaN that no operand brought along.
    pub generated: Phrase<Bits>,
    /// Who goes first when several operands of one operation are NaN.
    pub order: [Phrase<NanSource>; 3],
    /// Whether the summand further right goes first among equals.
    pub later_first: bool,
    /// Whether the quiet bit is set in a NaN that is handed on.
    pub quieted: bool,
    /// Whether a generated NaN goes before those handed on.
    pub generated_first: bool,
}

/// Why an [`Arithmetic`] is no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArithmeticError {
    /// A step is wrong.
    #[error("step `{text}`: {problem}")]
    Step {
        /// Its position.
        step: usize,
        /// Its text.
        text: String,
        /// What is wrong.
        problem: StepProblem,
    },
    /// A rule is wrong.
    #[error("rule `{rule}`: {problem}")]
    Rule {
        /// Its name.
        rule: String,
        /// What is wrong.
        problem: String,
    },
    /// The product rule is wrong.
    #[error("product: {0}")]
    Product(String),
    /// The block scales do not fit the products.
    #[error("{k} products do not divide into blocks of {block}")]
    Blocks {
        /// Number of products.
        k: usize,
        /// Products that share a scale.
        block: usize,
    },
    /// There are more steps than any instruction has.
    #[error("{0} steps are too many")]
    TooManySteps(usize),
    /// The steps do not use a leaf that they have to.
    #[error("the steps never add {0}")]
    Missing(String),
    /// There is something wrong with the tree as a whole.
    #[error("{0}")]
    Model(#[from] ModelError),
}

/// What is wrong with a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepProblem {
    /// It cannot be read.
    #[error("{0}")]
    Syntax(String),
    /// Its rule does not exist.
    #[error("there is no rule `{0}`")]
    NoSuchRule(String),
    /// It refers to a step that does not stand before it.
    #[error("no step before it is named `{0}`")]
    NoSuchStep(String),
    /// Its name is taken.
    #[error("a step before it is named `{0}` too")]
    NameTaken(String),
    /// Something is added a second time.
    #[error("`{0}` has been added before")]
    AddedTwice(String),
    /// It names a scale that does not exist.
    #[error("there is no scale[{0}]")]
    NoSuchScale(usize),
    /// Its value is never used.
    #[error("its value is never added, and only the last step is the result")]
    Unused,
    /// It is the last one, and not named `d`.
    #[error("the last step has to be named `d`")]
    NotNamedD,
    /// It is the last one, and its rule does not deliver the format of d.
    #[error("the last step has to be rounded to the format of d")]
    NotRoundedToD,
}

/// Names for rules: what kind of sum they are, numbered where there are several of a kind.
pub fn rule_names(rules: &[Rule]) -> Vec<String> {
    let kind = |rule: &Rule| match (&rule.added, &rule.normalised) {
        (Added::Exact, Normalised::To(_)) => "rounded",
        (Added::Exact, Normalised::No { .. }) => "exact",
        (Added::Fused(_), Normalised::To(_)) => "fused",
        (Added::Fused(_), Normalised::No { .. }) => "unnormalised",
    };
    let kinds: Vec<&str> = rules.iter().map(kind).collect();
    let number = |index: usize| kinds[..index].iter().filter(|&&kind| kind == kinds[index]).count();
    (0..rules.len())
        .map(|index| match kinds.iter().filter(|&&kind| kind == kinds[index]).count() {
            1 => kinds[index].to_string(),
            _ => format!("{}{}", kinds[index], number(index) + 1),
        })
        .collect()
}

impl From<&Model> for Arithmetic {
    /// Writes a model down.
    ///
    /// # Panics
    /// If the model does not pass [`Model::check`].
    fn from(model: &Model) -> Arithmetic {
        let model = model.canonical();
        let names = rule_names(&model.tree.rules);
        Arithmetic {
            a: model.a,
            b: model.b,
            c: model.c,
            scale: model.scale.map(ScaleFacts::from),
            product: match &model.product {
                Product::Exact => WordOr::Word(ProductWord::Exact),
                Product::OverflowsAt { exponent } => WordOr::Word(ProductWord::OverflowsAt(*exponent)),
                Product::FlushedBelow { exponent, sign_kept } => {
                    WordOr::Word(ProductWord::FlushedBelow { exponent: *exponent, sign_kept: *sign_kept })
                }
                Product::Rounded(round) => WordOr::Map(round.into()),
            },
            steps: steps(&model.tree, &names),
            rules: Ordered(names.into_iter().zip(model.tree.rules.iter().map(SumRule::from)).collect()),
            d: model.d,
            nan: match model.nan {
                NanRule::Canonical(bits) => WordOr::Word(NanWord::Canonical(bits)),
                NanRule::Unknown => WordOr::Word(NanWord::Unknown),
                NanRule::Merged { generated } => WordOr::Word(NanWord::Merged(generated)),
                NanRule::Propagated(Propagation {
                    generated,
                    order,
                    later_first,
                    quieted,
                    generated_first,
                }) => WordOr::Map(NanOrder {
                    generated: Phrase(Bits(generated)),
                    order: order.map(Phrase),
                    later_first,
                    quieted,
                    generated_first,
                }),
            },
        }
    }
}

impl From<&Rule> for SumRule {
    fn from(rule: &Rule) -> SumRule {
        let &ZeroSigns { negative_zeros_stay, cancellation_is_negative, underflow_keeps_sign } = &rule.zero;
        SumRule {
            added: match &rule.added {
                Added::Exact => WordOr::Word(ExactWord),
                Added::Fused(fused) => WordOr::Map(FusedRule {
                    fused: OneOrMany(fused.alignment.to_vec()),
                    exponents: fused.exponents,
                    zeros: fused.zeros,
                    floor: fused.floor,
                    carry: fused.carry.map(Phrase),
                    sticky: fused.sticky,
                }),
            },
            normalised: match &rule.normalised {
                Normalised::To(round) => WordOr::Map(round.into()),
                Normalised::No { exponent } => WordOr::Word(NotNormalised { exponent: *exponent }),
            },
            zero_signs: if rule.zero == ZeroSigns::IEEE {
                WordOr::Word(IeeeWord)
            } else {
                WordOr::Map(ZeroSignRule {
                    negative_zeros_stay,
                    cancellation_is_negative,
                    underflow_keeps_sign,
                })
            },
            infinite_operands_first: rule.infinite_operands_first,
        }
    }
}

impl TryFrom<&SumRule> for Rule {
    type Error = String;

    fn try_from(rule: &SumRule) -> Result<Rule, String> {
        Ok(Rule {
            added: match &rule.added {
                WordOr::Word(ExactWord) => Added::Exact,
                WordOr::Map(FusedRule { fused, exponents, zeros, floor, carry, sticky }) => {
                    Added::Fused(Fused {
                        alignment: fused.0.clone().into(),
                        exponents: *exponents,
                        floor: floor.map(bounded).transpose()?,
                        zeros: *zeros,
                        carry: carry.map(|Phrase(carry)| carry),
                        sticky: *sticky,
                    })
                }
            },
            zero: match rule.zero_signs {
                WordOr::Word(IeeeWord) => ZeroSigns::IEEE,
                WordOr::Map(ZeroSignRule {
                    negative_zeros_stay,
                    cancellation_is_negative,
                    underflow_keeps_sign,
                }) => ZeroSigns { negative_zeros_stay, cancellation_is_negative, underflow_keeps_sign },
            },
            infinite_operands_first: rule.infinite_operands_first,
            normalised: match &rule.normalised {
                WordOr::Word(NotNormalised { exponent }) => Normalised::No { exponent: *exponent },
                WordOr::Map(round) => Normalised::To(round.try_into()?),
            },
        })
    }
}

/// The program of a canonical tree.
fn steps(tree: &Tree, rule_names: &[String]) -> Vec<String> {
    // Every node as the summand by which later steps refer to it.
    let mut summands: Vec<Summand> = Vec::with_capacity(tree.nodes.len());
    let mut steps = Vec::new();
    for (id, node) in tree.nodes.iter().enumerate() {
        let value = match node {
            Node::Product(k) => Value::Product(*k),
            Node::Accumulator => Value::Accumulator,
            Node::Zero => Value::Zero,
            Node::Scaled { child, block } => {
                let mut scaled = summands[*child].clone();
                scaled.blocks.push(*block);
                summands.push(scaled);
                continue;
            }
            Node::Sum { children, rule } => {
                let last = id + 1 == tree.nodes.len();
                let name = if last { "d".to_string() } else { format!("s{}", steps.len()) };
                steps.push(
                    Step {
                        name: name.clone(),
                        rule: rule_names[*rule].clone(),
                        summands: children.iter().map(|&child| summands[child].clone()).collect(),
                    }
                    .to_string(),
                );
                Value::Step(name)
            }
        };
        summands.push(Summand { value, blocks: Vec::new() });
    }
    steps
}

impl TryFrom<&Arithmetic> for Model {
    type Error = ArithmeticError;

    fn try_from(arithmetic: &Arithmetic) -> Result<Model, ArithmeticError> {
        if arithmetic.steps.len() > MAX_STEPS {
            return Err(ArithmeticError::TooManySteps(arithmetic.steps.len()));
        }
        let product = match &arithmetic.product {
            WordOr::Word(ProductWord::Exact) => Product::Exact,
            WordOr::Word(ProductWord::OverflowsAt(exponent)) => Product::OverflowsAt { exponent: *exponent },
            WordOr::Word(ProductWord::FlushedBelow { exponent, sign_kept }) => {
                Product::FlushedBelow { exponent: *exponent, sign_kept: *sign_kept }
            }
            WordOr::Map(round) => Product::Rounded(round.try_into().map_err(ArithmeticError::Product)?),
        };
        let rules = arithmetic
            .rules
            .0
            .iter()
            .map(|(name, rule)| {
                Rule::try_from(rule).map_err(|problem| ArithmeticError::Rule { rule: name.clone(), problem })
            })
            .collect::<Result<Vec<Rule>, ArithmeticError>>()?;
        let mut builder = Builder::new(arithmetic);
        for step in 0..arithmetic.steps.len() {
            builder.step(step).map_err(|problem| at_step(arithmetic, step, problem))?;
        }
        let Builder { nodes, products, defined, rule_used, .. } = builder;
        if let Some(unused) = rule_used.iter().position(|used| !used) {
            let rule = arithmetic.rules.0[unused].0.clone();
            return Err(ArithmeticError::Rule { rule, problem: "no step uses it".into() });
        }
        let model = Model {
            k: products.len(),
            a: arithmetic.a,
            b: arithmetic.b,
            c: arithmetic.c,
            scale: arithmetic.scale.map(Scale::from),
            product,
            tree: Tree { nodes: nodes.into(), rules },
            d: arithmetic.d,
            nan: match &arithmetic.nan {
                WordOr::Word(NanWord::Unknown) => NanRule::Unknown,
                WordOr::Word(NanWord::Canonical(bits)) => NanRule::Canonical(*bits),
                WordOr::Word(NanWord::Merged(generated)) => NanRule::Merged { generated: *generated },
                WordOr::Map(NanOrder { generated, order, later_first, quieted, generated_first }) => {
                    NanRule::Propagated(Propagation {
                        generated: generated.0.0,
                        order: order.map(|Phrase(source)| source),
                        later_first: *later_first,
                        quieted: *quieted,
                        generated_first: *generated_first,
                    })
                }
            },
        };
        if let Some(missing) = products.iter().position(|added| !added) {
            return Err(ArithmeticError::Missing(format!("p{missing}")));
        }
        if !model.tree.nodes.contains(&Node::Accumulator) {
            return Err(ArithmeticError::Missing("c".into()));
        }
        if let Some(Scale { block, .. }) = model.scale
            && (block == 0 || !model.k.is_multiple_of(block))
        {
            return Err(ArithmeticError::Blocks { k: model.k, block });
        }
        if let Some(last) = defined.len().checked_sub(1) {
            if let Some(unused) = defined[..last].iter().position(|defined| !defined.used) {
                return Err(at_step(arithmetic, unused, StepProblem::Unused));
            }
            if defined[last].name != "d" {
                return Err(at_step(arithmetic, last, StepProblem::NotNamedD));
            }
        }
        model.check().map_err(|error| match error {
            ModelError::NoSuchProduct { node } => {
                let step = defined.iter().position(|defined| defined.node > node).unwrap_or(0);
                let Node::Scaled { block, .. } = model.tree.nodes[node] else { return error.into() };
                at_step(arithmetic, step, StepProblem::NoSuchScale(block))
            }
            ModelError::RootNotRounded => {
                at_step(arithmetic, arithmetic.steps.len() - 1, StepProblem::NotRoundedToD)
            }
            ModelError::FractionBits { rule } => ArithmeticError::Rule {
                rule: arithmetic.rules.0[rule].0.clone(),
                problem: "a fused sum needs an alignment, of at most 64 fraction bits".into(),
            },
            error => error.into(),
        })?;
        Ok(model.canonical())
    }
}

fn at_step(arithmetic: &Arithmetic, step: usize, problem: StepProblem) -> ArithmeticError {
    ArithmeticError::Step { step, text: arithmetic.steps[step].clone(), problem }
}

/// Turns steps into nodes.
struct Builder<'s> {
    arithmetic: &'s Arithmetic,
    nodes: Vec<Node>,
    /// Which products have been added.
    products: Vec<bool>,
    accumulator_added: bool,
    defined: Vec<Defined>,
    rule_used: Vec<bool>,
}

/// A step that has been read.
struct Defined {
    name: String,
    node: NodeId,
    used: bool,
}

impl<'s> Builder<'s> {
    fn new(arithmetic: &'s Arithmetic) -> Builder<'s> {
        Builder {
            arithmetic,
            nodes: Vec::new(),
            products: Vec::new(),
            accumulator_added: false,
            defined: Vec::new(),
            rule_used: vec![false; arithmetic.rules.0.len()],
        }
    }

    fn step(&mut self, step: usize) -> Result<(), StepProblem> {
        let step = program::parse(&self.arithmetic.steps[step]).map_err(StepProblem::Syntax)?;
        let rule = self.arithmetic.rules.position(&step.rule).ok_or(StepProblem::NoSuchRule(step.rule))?;
        self.rule_used[rule] = true;
        let children = step.summands.iter().map(|summand| self.summand(summand)).collect::<Result<_, _>>()?;
        if self.defined.iter().any(|defined| defined.name == step.name) {
            return Err(StepProblem::NameTaken(step.name));
        }
        let node = self.push(Node::Sum { children, rule });
        self.defined.push(Defined { name: step.name, node, used: false });
        Ok(())
    }

    fn summand(&mut self, summand: &Summand) -> Result<NodeId, StepProblem> {
        let mut node = match &summand.value {
            Value::Product(k) => {
                if self.products.len() <= *k {
                    self.products.resize(k + 1, false);
                }
                if std::mem::replace(&mut self.products[*k], true) {
                    return Err(StepProblem::AddedTwice(format!("p{k}")));
                }
                self.push(Node::Product(*k))
            }
            Value::Accumulator => {
                if std::mem::replace(&mut self.accumulator_added, true) {
                    return Err(StepProblem::AddedTwice("c".into()));
                }
                self.push(Node::Accumulator)
            }
            Value::Zero => self.push(Node::Zero),
            Value::Step(name) => {
                let defined = self
                    .defined
                    .iter_mut()
                    .find(|defined| &defined.name == name)
                    .ok_or_else(|| StepProblem::NoSuchStep(name.clone()))?;
                if std::mem::replace(&mut defined.used, true) {
                    return Err(StepProblem::AddedTwice(name.clone()));
                }
                defined.node
            }
        };
        for &block in &summand.blocks {
            // Bounded here; that K divides into blocks is checked when K is known.
            if self.arithmetic.scale.is_none() || block >= program::MAX_PRODUCTS {
                return Err(StepProblem::NoSuchScale(block));
            }
            node = self.push(Node::Scaled { child: node, block });
        }
        Ok(node)
    }

    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }
}
