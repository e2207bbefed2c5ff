//! Recognising a published algorithm in a sum tree.
//!
//! A name is a statement about structure, never about who made the hardware: a model gets the name of the
//! [algorithm](crate::algorithms) whose own model, with the parameters read off the tree, is the same but
//! for
//!
//! - the order of nodes and of the summands of one sum, which is not the order of additions;
//! - what published models of one algorithm disagree about, or the paper is silent on: the exponents of
//!   zeros, the floor of the alignment exponent, the signs of zeros, the encoding of NaNs;
//! - parameters that cannot matter, such as what becomes of products that overflow where none can.
//!
//! # Example: the order of additions makes a chain of FMAs SFMA, or not
//!
//! ```
//! use mmaprobe_model::naming::{Named, name};
//! use mmaprobe_model::tree::Node;
//! use mmaprobe_model::{Model, format};
//!
//! let mut model = Model::chain_of_fma(format::FP32, format::FP32, 2);
//! assert_eq!(name(&model).to_string(), "SFMA");
//!
//! for node in &mut model.tree.nodes {
//!     if let Node::Product(k) = node {
//!         *k = 1 - *k;
//!     }
//! }
//! let Named::Unnamed { description } = name(&model) else { panic!() };
//! assert_eq!(description, "Like SFMA, but products are added in the order p1; then p0.");
//! ```

mod differences;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::algorithms::{Algorithm, Conventions, Output, Types};
use crate::format::{Format, Overflow, RoundTo, Subnormals, Tininess};
use crate::rounding::Rounding;
use crate::tree::{
    Added, Alignment, Carry, Exponents, Far, InputSubnormals, Model, Node, NodeId, Normalised, Product,
};

/// What a model is called.
///
/// It displays as the algorithm does, or as `unnamed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// One of the nine algorithms of the MMA-Sim paper, section IV.
    Published(Algorithm),
    /// None of them.
    Unnamed {
        /// How it differs from the algorithm that it resembles, or what it is: a sentence.
        description: String,
    },
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Named::Published(algorithm) => algorithm.fmt(f),
            Named::Unnamed { .. } => f.write_str("unnamed"),
        }
    }
}

/// Names a model.
///
/// # Panics
/// If the model does not pass [`check`](Model::check).
pub fn name(model: &Model) -> Named {
    let tree = Tree::of(model);
    let Some((algorithm, expected)) = resembles(model, &tree) else {
        return Named::Unnamed { description: format!("No published algorithm adds like this: {tree}.") };
    };
    let differences = differences::between((model, &tree), (&expected, &Tree::of(&expected)));
    if differences.is_empty() {
        Named::Published(algorithm)
    } else {
        Named::Unnamed { description: format!("Like {algorithm}, but {}.", differences.join("; ")) }
    }
}

/// A subtree without what does not count, children in the order of their first leaf, c first.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tree {
    Accumulator,
    Zero,
    Product(usize),
    Scaled(Box<Tree>, usize),
    Sum(Sum),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sum {
    added: Kept,
    infinite_operands_first: bool,
    normalised: Normalised,
    children: Vec<Tree>,
}

/// How summands are added, with an alignment for each.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kept {
    Exactly,
    Aligned { alignment: Vec<Alignment>, exponents: Exponents, carry: Option<Carry>, sticky: bool },
}

impl Tree {
    fn of(model: &Model) -> Tree {
        Tree::at(model, model.tree.nodes.len() - 1)
    }

    fn at(model: &Model, node: NodeId) -> Tree {
        match &model.tree.nodes[node] {
            Node::Product(k) => Tree::Product(*k),
            Node::Accumulator => Tree::Accumulator,
            Node::Zero => Tree::Zero,
            Node::Scaled { child, block } => Tree::Scaled(Box::new(Tree::at(model, *child)), *block),
            Node::Sum { children, rule } => {
                let rule = &model.tree.rules[*rule];
                let mut children: Vec<(Tree, Option<Alignment>)> = children
                    .iter()
                    .enumerate()
                    .map(|(position, &child)| {
                        let alignment = match &rule.added {
                            Added::Exact => None,
                            Added::Fused(fused) => Some(without_idle_far(*fused.alignment_of(position))),
                        };
                        (Tree::at(model, child), alignment)
                    })
                    .collect();
                children.sort_by_key(|(child, _)| child.first_leaf());
                let (children, alignment): (Vec<Tree>, Vec<Option<Alignment>>) = children.into_iter().unzip();
                let added = match &rule.added {
                    Added::Exact => Kept::Exactly,
                    Added::Fused(fused) => Kept::Aligned {
                        alignment: alignment.into_iter().flatten().collect(),
                        exponents: fused.exponents,
                        // n summands below 4 · 2^e_max stay below 4n · 2^e_max.
                        carry: fused
                            .carry
                            .filter(|carry| carry.bits < children.len().next_power_of_two().ilog2() + 2),
                        sticky: fused.sticky,
                    },
                };
                let overflow_first = rule.infinite_operands_first && formed(model) != Product::Exact;
                let mut normalised = rule.normalised;
                if let Normalised::To(round) = &mut normalised {
                    without_idle_ends(model, &added, &children, round);
                }
                Tree::Sum(Sum { added, infinite_operands_first: overflow_first, normalised, children })
            }
        }
    }

    /// Orders siblings: c is 0, the product of index k is k + 2.
    fn first_leaf(&self) -> usize {
        match self {
            Tree::Accumulator => 0,
            Tree::Zero => 1,
            Tree::Product(k) => k + 2,
            Tree::Scaled(child, _) => child.first_leaf(),
            Tree::Sum(sum) => sum.children.iter().map(Tree::first_leaf).min().unwrap_or(0),
        }
    }

    fn has_accumulator(&self) -> bool {
        match self {
            Tree::Accumulator => true,
            Tree::Zero | Tree::Product(_) => false,
            Tree::Scaled(child, _) => child.has_accumulator(),
            Tree::Sum(sum) => sum.children.iter().any(Tree::has_accumulator),
        }
    }

    /// The products' indices, from left to right.
    fn products(&self) -> Vec<usize> {
        match self {
            Tree::Accumulator | Tree::Zero => Vec::new(),
            Tree::Product(k) => Vec::from([*k]),
            Tree::Scaled(child, _) => child.products(),
            Tree::Sum(sum) => sum.children.iter().flat_map(Tree::products).collect(),
        }
    }

    /// The sums from c to the root, in the order of computation; `None` if there is something else
    /// between them.
    fn spine(&self) -> Option<Vec<&Sum>> {
        let mut links = Vec::new();
        let mut at = self;
        while let Tree::Sum(sum) = at {
            links.push(sum);
            at = sum.children.iter().find(|child| child.has_accumulator())?;
        }
        links.reverse();
        matches!(at, Tree::Accumulator).then_some(links)
    }

    fn is_product(&self) -> bool {
        matches!(self, Tree::Product(_))
    }

    /// The product, scaled or not.
    fn is_term(&self) -> bool {
        self.is_product() || matches!(self, Tree::Scaled(child, _) if child.is_product())
    }

    fn sum(&self) -> Option<&Sum> {
        if let Tree::Sum(sum) = self { Some(sum) } else { None }
    }

    /// Whether this is a tree of two-term exact sums.
    fn is_pairwise(&self) -> bool {
        match self {
            Tree::Product(_) => true,
            Tree::Sum(sum) => {
                sum.children.len() == 2
                    && sum.added == Kept::Exactly
                    && sum.children.iter().all(Tree::is_pairwise)
            }
            _ => false,
        }
    }
}

/// (c + p0…p3) + p4…p7, cut where it gets long.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text, true);
        const ENOUGH: usize = 200;
        match text.char_indices().nth(ENOUGH) {
            Some((end, _)) => write!(f, "{}…", &text[..end]),
            None => f.write_str(&text),
        }
    }
}

impl Tree {
    fn write(&self, into: &mut String, outermost: bool) {
        match self {
            Tree::Accumulator => into.push('c'),
            Tree::Zero => into.push('0'),
            Tree::Product(k) => into.push_str(&format!("p{k}")),
            Tree::Scaled(child, block) => {
                child.write(into, false);
                into.push_str(&format!("·scale{block}"));
            }
            Tree::Sum(sum) => {
                if !outermost {
                    into.push('(');
                }
                let mut rest = sum.children.as_slice();
                while let [first, ..] = rest {
                    if rest.len() < sum.children.len() {
                        into.push_str(" + ");
                    }
                    let plain = rest.iter().take_while(|child| child.is_product()).count();
                    if plain > 0 {
                        let indices: Vec<usize> = rest[..plain].iter().flat_map(Tree::products).collect();
                        into.push_str(&runs(&indices, " + "));
                        rest = &rest[plain..];
                    } else {
                        first.write(into, false);
                        rest = &rest[1..];
                    }
                }
                if !outermost {
                    into.push(')');
                }
            }
        }
    }
}

/// p0…p3, p5: products by index, runs of three and more shortened.
fn runs(indices: &[usize], separator: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = indices;
    while let [first, ..] = rest {
        let along = |step: isize| {
            (1..rest.len()).take_while(|&n| rest[n] as isize == *first as isize + n as isize * step).count()
                + 1
        };
        let length = along(1).max(along(-1));
        if length > 2 {
            parts.push(format!("p{first}…p{}", rest[length - 1]));
            rest = &rest[length..];
        } else {
            parts.push(format!("p{first}"));
            rest = &rest[1..];
        }
    }
    parts.join(separator)
}

/// Another rounding of far summands that is the same one.
fn without_idle_far(alignment: Alignment) -> Alignment {
    Alignment { far: alignment.far.filter(|far| far.rounding != alignment.rounding), ..alignment }
}

/// Exponent of the leading bit of the largest product.
fn largest_product(model: &Model) -> i32 {
    let largest = |format: &Format| format.max_exponent() + 1;
    // Two factors below 2^x and 2^y have a product below 2^(x + y).
    largest(&model.a.format) + largest(&model.b.format) - 1
}

/// Exponent of the last bit that products can have.
fn finest_product(model: &Model) -> i32 {
    model.a.format.min_quantum() + model.b.format.min_quantum()
}

/// How products are formed, as far as it makes a difference.
fn formed(model: &Model) -> Product {
    match model.product {
        Product::OverflowsAt { exponent } if largest_product(model) < exponent => Product::Exact,
        Product::FlushedBelow { exponent, .. } if finest_product(model) >= exponent => Product::Exact,
        // A product that its format holds; that has another nominal exponent is nothing to exact sums.
        Product::Rounded(round)
            if largest_product(model) <= round.format.max_exponent()
                && finest_product(model) >= round.format.min_exponent()
                && model.a.format.fraction_bits + model.b.format.fraction_bits + 2
                    <= round.fraction_bits + 1
                && model.tree.rules.iter().all(|rule| rule.added == Added::Exact) =>
        {
            Product::Exact
        }
        Product::Rounded(mut round) => {
            overflow_of_nearest(&mut round);
            // A product of so few bits is a subnormal number, or not, before rounding as after.
            if let Subnormals::Flushed { tiny, .. } = &mut round.subnormals
                && model.a.format.fraction_bits + model.b.format.fraction_bits + 2 <= round.fraction_bits
            {
                *tiny = Tininess::Delivered;
            }
            Product::Rounded(round)
        }
        product => product,
    }
}

fn overflow_of_nearest(round: &mut RoundTo) {
    let directed = matches!(
        round.rounding,
        Rounding::Up | Rounding::Down | Rounding::TowardZero | Rounding::AwayFromZero
    );
    if round.overflow == Overflow::ByRounding && !directed {
        round.overflow = Overflow::Infinity;
    }
}

/// Sets what cannot matter at the ends of the exponent range to what the algorithms have.
fn without_idle_ends(model: &Model, added: &Kept, children: &[Tree], round: &mut RoundTo) {
    overflow_of_nearest(round);
    let (format, finest) = (round.format, round.format.min_quantum());
    match added {
        // The sum of two numbers of a format is exact where it is subnormal: nothing is rounded, and
        // when something counts as tiny is no question.
        Kept::Exactly => {
            let on_grid = |child: &Tree| match child {
                Tree::Accumulator => model.c.format.min_quantum() >= finest,
                Tree::Zero => true,
                Tree::Product(_) => match model.product {
                    Product::Rounded(product) => product.format.min_quantum() >= finest,
                    _ => finest_product(model) >= finest,
                },
                Tree::Scaled(..) => false,
                Tree::Sum(sum) => {
                    matches!(sum.normalised, Normalised::To(to) if to.format.min_quantum() >= finest)
                }
            };
            if never_subnormal(model, round) {
                round.subnormals = Subnormals::Kept;
            } else if let Subnormals::Flushed { tiny, .. } = &mut round.subnormals
                && children.iter().all(on_grid)
            {
                *tiny = Tininess::Delivered;
            }
        }
        // Products that vanish beside the largest c cannot carry it over the end.
        Kept::Aligned { alignment, carry: None, sticky: false, .. } => {
            let bits = alignment.iter().map(|alignment| alignment.fraction_bits as i32).max().unwrap_or(0);
            let truncated = alignment.iter().all(|a| a.far.is_none() && a.rounding == Rounding::TowardZero);
            // A sum so far is no larger than c can be.
            let plain = children.iter().all(|child| child.is_product() || child.has_accumulator());
            if truncated
                && plain
                && round.rounding == Rounding::TowardZero
                && model.c.format.max_exponent() <= format.max_exponent()
                && largest_product(model) < format.max_exponent() - bits
            {
                round.overflow = Overflow::Infinity;
            }
        }
        Kept::Aligned { .. } => {}
    }
}

/// The algorithm that a tree has the shape of, and the algorithm's own model; products may stand elsewhere.
fn resembles(model: &Model, tree: &Tree) -> Option<(Algorithm, Model)> {
    let links = tree.spine()?;
    let chain = links.len();
    let first = links.first()?;
    let others = |sum: &'_ Sum| -> Vec<Tree> {
        sum.children.iter().filter(|child| !child.has_accumulator()).cloned().collect()
    };
    let (of_c, of_others) = bits_kept(first);
    let single = |link: &&Sum| link.children.len() == 2;
    let all = |predicate: &dyn Fn(&Tree) -> bool| links.iter().all(|link| others(link).iter().all(predicate));
    let exact = first.added == Kept::Exactly;
    let dot = others(first).into_iter().next()?;
    let algorithm = if exact && links.iter().all(single) && all(&Tree::is_product) {
        Algorithm::Sfma
    } else if exact && links.iter().all(single) && all(&Tree::is_pairwise) {
        let flushed = model.c.subnormals != InputSubnormals::Kept;
        Algorithm::Gps { group: dot.products().len(), flushed }
    } else if !exact && all(&Tree::is_term) {
        let (fraction_bits, output) = (of_others?, output(first));
        match chain {
            1 => Algorithm::Fda { fraction_bits, output },
            chain => Algorithm::CoFda { fraction_bits, chain, output },
        }
    } else if !exact
        && chain == 1
        && all(&|other| matches!(other, Tree::Scaled(child, _) if child.sum().is_some()))
    {
        Algorithm::Gdfs { group: dot.products().len(), fraction_bits: of_others?, output: output(first) }
    } else if !exact && links.iter().all(single) {
        let dot = dot.sum()?;
        let (dot_fraction_bits, c_fraction_bits) = (of_others?, of_c?);
        let fraction_bits = bits_kept(dot).1?;
        if dot.children.iter().all(Tree::is_product) {
            match chain {
                1 => Algorithm::Fdrda { fraction_bits, dot_fraction_bits, c_fraction_bits },
                chain => Algorithm::CoFdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, chain },
            }
        } else {
            let c_rz_below = far(first).map_or(25, |far| far.distance);
            match chain {
                1 => Algorithm::Gfdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, c_rz_below },
                chain => Algorithm::CoGfdrda {
                    fraction_bits,
                    dot_fraction_bits,
                    c_fraction_bits,
                    c_rz_below,
                    chain,
                },
            }
        }
    } else {
        return None;
    };
    let types = Types {
        a: model.a.format,
        b: model.b.format,
        c: model.c.format,
        d: model.d,
        k: model.k,
        scale: model.scale,
    };
    let expected = algorithm.model_under(&types, &Conventions::DEFAULT).ok()?;
    same_shape(tree, &Tree::of(&expected)).then_some((algorithm, expected))
}

/// Fraction bits kept of c or the sum so far, and of the first other summand.
fn bits_kept(sum: &Sum) -> (Option<u32>, Option<u32>) {
    let Kept::Aligned { alignment, .. } = &sum.added else { return (None, None) };
    let of = |wanted: bool| {
        let position = sum.children.iter().position(|child| child.has_accumulator() == wanted)?;
        Some(alignment.get(position)?.fraction_bits)
    };
    (of(true), of(false))
}

/// How c is rounded where it is far below.
fn far(sum: &Sum) -> Option<Far> {
    let Kept::Aligned { alignment, .. } = &sum.added else { return None };
    alignment.iter().find_map(|alignment| alignment.far)
}

/// The output that is closest to how a sum is delivered, of those that the paper has for tensor cores:
/// a name does not mention the output, so that another would be taken for one of them.
fn output(sum: &Sum) -> Output {
    let Normalised::To(round) = sum.normalised else { return Output::Rz23 };
    let of_format = || {
        let published = [Output::Rz23, Output::Rz13, Output::Rne10];
        published.into_iter().filter(|output| output.round_to().format == round.format)
    };
    let same = |output: &Output| {
        let other = output.round_to();
        (other.fraction_bits, other.rounding) == (round.fraction_bits, round.rounding)
    };
    of_format().find(same).or_else(|| of_format().next()).unwrap_or(Output::Rz23)
}

/// Whether correctly rounded sums of these products and c are never subnormal: c is not, products are
/// multiples of 2^q, and a sum of both, unless it is zero, is no smaller than 2^(q − 1 − fraction bits).
fn never_subnormal(model: &Model, round: &RoundTo) -> bool {
    model.tree.rules.iter().all(|rule| rule.added == Added::Exact)
        && model.scale.is_none()
        && model.c.subnormals != InputSubnormals::Kept
        && model.c.format == round.format
        && finest_product(model) - 1 - round.format.fraction_bits as i32 >= round.format.min_exponent()
}

fn same_shape(found: &Tree, expected: &Tree) -> bool {
    match (found, expected) {
        (Tree::Sum(found), Tree::Sum(expected)) => {
            found.children.len() == expected.children.len()
                && found
                    .children
                    .iter()
                    .zip(&expected.children)
                    .all(|(found, expected)| same_shape(found, expected))
        }
        (Tree::Scaled(found, _), Tree::Scaled(expected, _)) => same_shape(found, expected),
        (Tree::Product(_), Tree::Product(_)) => true,
        (found, expected) => found == expected,
    }
}
