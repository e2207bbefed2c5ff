//! What tells a model from the published one that it resembles, in words.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Kept, Sum, Tree, formed, runs};
use crate::format::{Overflow, RoundTo, Subnormals, Tininess};
use crate::tree::{Beyond, Carry, InputInfinities, InputSubnormals, Model, Normalised, Product};

/// What is different about a model and its tree from another, expected one, in words, nothing twice.
pub(super) fn between(found: (&Model, &Tree), expected: (&Model, &Tree)) -> Vec<String> {
    let mut differences = Differences::default();
    differences.order(found.1, expected.1);
    differences.trees(found.1, expected.1);
    differences.products(&formed(found.0), &formed(expected.0));
    differences.operands(found.0, expected.0);
    differences.0
}

/// What is different, in words, nothing twice.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn push(&mut self, difference: String) {
        if !self.0.contains(&difference) {
            self.0.push(difference);
        }
    }

    fn order(&mut self, found: &Tree, expected: &Tree) {
        if found.products() != expected.products() {
            let steps: Vec<String> = (found.spine().into_iter().flatten())
                .map(|link| {
                    let others = link.children.iter().filter(|child| !child.has_accumulator());
                    let sums: Vec<String> = others
                        .clone()
                        .filter(|child| !child.is_term())
                        .map(|sum| format!("({})", runs(&sum.products(), " + ")))
                        .collect();
                    let terms: Vec<usize> =
                        others.filter(|child| child.is_term()).flat_map(Tree::products).collect();
                    let terms = runs(&terms, ", ");
                    [terms, sums.join(", ")]
                        .into_iter()
                        .filter(|part| !part.is_empty())
                        .collect::<Vec<_>>()
                        .join(", ")
                })
                .collect();
            self.push(format!("products are added in the order {}", steps.join("; then ")));
        }
    }

    fn trees(&mut self, found: &Tree, expected: &Tree) {
        match (found, expected) {
            (Tree::Sum(found_sum), Tree::Sum(expected_sum)) => {
                let place = if found.has_accumulator() { "where c is added" } else { "in sums of products" };
                self.sums(place, found_sum, expected_sum);
                for (found, expected) in found_sum.children.iter().zip(&expected_sum.children) {
                    self.trees(found, expected);
                }
            }
            (Tree::Scaled(found, block), Tree::Scaled(expected, other)) => {
                if block != other {
                    self.push("scales belong to other products".to_string());
                }
                self.trees(found, expected);
            }
            _ => {}
        }
    }

    fn sums(&mut self, place: &str, found: &Sum, expected: &Sum) {
        match (&found.added, &expected.added) {
            (Kept::Exactly, Kept::Exactly) => {}
            (Kept::Exactly, Kept::Aligned { .. }) => self.push(format!("{place}, sums are exact")),
            (Kept::Aligned { .. }, Kept::Exactly) => {
                self.push(format!("{place}, summands are aligned and cut"))
            }
            (
                Kept::Aligned { alignment, exponents, carry, sticky },
                Kept::Aligned { alignment: a, exponents: e, carry: c, sticky: s },
            ) => {
                for ((child, alignment), expected) in found.children.iter().zip(alignment).zip(a) {
                    if alignment != expected {
                        let far = alignment.far.map_or(String::new(), |far| {
                            format!(" ({} where more than {} below)", far.rounding, far.distance)
                        });
                        self.push(format!(
                            "{place}, {} is kept to {} bits, {}{far}",
                            summand(child),
                            alignment.fraction_bits,
                            alignment.rounding
                        ));
                    }
                }
                if exponents != e {
                    self.push(format!("{place}, exponents are those of leading ones"));
                }
                if carry != c
                    && let Some(Carry { bits, beyond }) = carry
                {
                    let beyond = match beyond {
                        Beyond::Wraps => "wraps",
                        Beyond::MagnitudeWraps => "wraps, but for its sign",
                        Beyond::Saturates => "saturates",
                    };
                    self.push(format!("{place}, the integer part has {bits} bits and {beyond}"));
                }
                if sticky != s {
                    self.push(format!("{place}, a sticky bit says that something was lost"));
                }
            }
        }
        if found.infinite_operands_first != expected.infinite_operands_first {
            let when = if found.infinite_operands_first { "first" } else { "with overflowed products" };
            self.push(format!("{place}, infinite operands decide {when}"));
        }
        match (&found.normalised, &expected.normalised) {
            (Normalised::To(found), Normalised::To(expected)) => self.rounding(place, found, expected),
            (Normalised::To(round), Normalised::No { .. }) => {
                self.push(format!("{place}, sums are rounded to {} ({})", round.format, round.rounding));
            }
            (Normalised::No { .. }, Normalised::To(_)) => self.push(format!("{place}, sums are not rounded")),
            (Normalised::No { exponent }, Normalised::No { exponent: other }) => {
                if exponent != other {
                    let exponent = exponent.map_or("that of their summands".to_string(), |e| e.to_string());
                    self.push(format!("{place}, sums have the exponent {exponent}"));
                }
            }
        }
    }

    fn rounding(&mut self, place: &str, found: &RoundTo, expected: &RoundTo) {
        if (found.format, found.fraction_bits, found.rounding)
            != (expected.format, expected.fraction_bits, expected.rounding)
        {
            self.push(format!(
                "{place}, sums are rounded to {} fraction bits of {} ({})",
                found.fraction_bits, found.format, found.rounding
            ));
        }
        if found.subnormals != expected.subnormals {
            self.push(format!("{place}, subnormal sums are {}", subnormals(&found.subnormals)));
        }
        if found.overflow != expected.overflow {
            self.push(format!(
                "{place}, sums that overflow become {}",
                match found.overflow {
                    Overflow::Infinity => "infinite",
                    Overflow::Largest => "the largest number",
                    Overflow::ByRounding => "infinite or the largest number, by the rounding mode",
                }
            ));
        }
    }

    fn products(&mut self, found: &Product, expected: &Product) {
        if found == expected {
            return;
        }
        match found {
            Product::Exact => self.push("products are exact".to_string()),
            Product::OverflowsAt { exponent } => self.push(format!("products of 2^{exponent} are infinite")),
            Product::FlushedBelow { exponent, sign_kept } => {
                let to = if *sign_kept { "zeros of their sign" } else { "+0" };
                self.push(format!("products below 2^{exponent} are flushed to {to}"));
            }
            Product::Rounded(round) => self.push(format!(
                "products are rounded to {} ({}), subnormal ones {}",
                round.format,
                round.rounding,
                subnormals(&round.subnormals)
            )),
        }
    }

    fn operands(&mut self, found: &Model, expected: &Model) {
        let operands =
            [(&found.a, &expected.a, "A"), (&found.b, &expected.b, "B"), (&found.c, &expected.c, "c")];
        for (found, expected, what) in operands {
            if found.subnormals != expected.subnormals && found.format.has_subnormals() {
                self.push(format!(
                    "subnormal numbers of {what} are {}",
                    match found.subnormals {
                        InputSubnormals::Kept => "kept",
                        InputSubnormals::FlushedToPositiveZero => "flushed to +0",
                        InputSubnormals::FlushedToSignedZero => "flushed to zeros of their sign",
                    }
                ));
            }
            if found.infinities != expected.infinities && found.format.has_infinity() {
                self.push(format!(
                    "infinities of {what} are {}",
                    match found.infinities {
                        InputInfinities::Kept => "kept",
                        InputInfinities::Nan => "read as NaN",
                        InputInfinities::Largest => "read as the largest number",
                    }
                ));
            }
        }
    }
}

fn summand(tree: &Tree) -> &'static str {
    match tree {
        Tree::Accumulator => "c",
        Tree::Zero => "zero",
        Tree::Product(_) => "a product",
        Tree::Scaled(..) => "a scaled summand",
        Tree::Sum(_) if tree.has_accumulator() => "the sum so far",
        Tree::Sum(_) => "a sum of products",
    }
}

fn subnormals(subnormals: &Subnormals) -> String {
    match subnormals {
        Subnormals::Kept => "kept".to_string(),
        Subnormals::Flushed { tiny, sign_kept } => {
            let to = if *sign_kept { "zeros of their sign" } else { "+0" };
            let when = match tiny {
                Tininess::Delivered => "",
                Tininess::AfterRounding => ", tiny after rounding",
                Tininess::BeforeRounding => ", tiny before rounding",
            };
            format!("flushed to {to}{when}")
        }
    }
}
