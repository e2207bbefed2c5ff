//! Whole scripts: an instruction's function, two of them side by side, and values for their operands.

use std::fmt::Write;

use super::bv::{Bv, sort};
use super::encode::{self, Definitions, declarations, element_width, variables};
use crate::model::Model;
use crate::model::tree::NanRule;
use crate::probes::DotAdd;
use crate::sheet::words::describe;

/// Columns of a comment.
const WIDTH: usize = 78;

/// A comment, each line behind `; `.
pub fn comment(text: &str) -> String {
    textwrap::wrap(text, WIDTH - 2).into_iter().map(|line| format!("; {line}\n")).collect()
}

/// An instruction's function as a script that any solver reads: its variables, its definitions, and no
/// question. d's bit pattern is `d`.
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn export(model: &Model, title: &str) -> String {
    let Definitions { text, .. } = encode::encode(model, "", "c");
    let mut script = comment(title);
    script += &comment(&describe(model));
    script += "; The variables are bit patterns: a0, b0 … of the products, c; d is the result's.\n";
    script += "(set-logic QF_BV)\n";
    script += &declarations(model);
    script += &text;
    script
}

/// The variables of an input and their values, in the order of [`variables`].
pub fn assignment(model: &Model, input: &DotAdd) -> Vec<(String, Bv)> {
    let values = input.a.iter().chain(&input.b).chain([&input.c]).chain(&input.sa).chain(&input.sb);
    let pair = |(variable, &bits): (encode::Variable, &u64)| {
        // Bits outside the format mean nothing.
        let bits = u128::from(bits) & (u128::MAX >> (128 - variable.width));
        (variable.name, Bv::constant(bits, variable.width))
    };
    variables(model).into_iter().zip(values).map(pair).collect()
}

/// Commands that give the variables an input's values.
pub fn assertions(model: &Model, input: &DotAdd) -> String {
    let mut text = String::new();
    for (name, value) in assignment(model, input) {
        writeln!(text, "(assert (= {name} {value}))").expect("a String takes all");
    }
    text
}

/// An input from the variables' values, in the order of [`variables`].
pub fn input(model: &Model, values: &[u64]) -> DotAdd {
    let blocks = model.scale.map_or(0, |scale| model.k / scale.block);
    let mut values = values.iter().copied();
    let mut take = |count: usize| values.by_ref().take(count).collect::<Vec<u64>>();
    let (a, b, c) = (take(model.k), take(model.k), take(1)[0]);
    DotAdd { a, b, c, sa: take(blocks), sb: take(blocks) }
}

/// Models over the same operands, and the assertions that the first one's result differs from each of the
/// others'.
///
/// # Panics
/// If a model does not pass [`Model::check`].
pub fn difference(one: &Model, others: &[&Model]) -> String {
    let first = encode::encode(one, "one.", "c");
    let mut script = declarations(one) + &first.text;
    for (index, other) in others.iter().enumerate() {
        let prefix = if others.len() == 1 { "other.".to_string() } else { format!("other{index}.") };
        let second = encode::encode(other, &prefix, "c");
        script += &second.text;
        writeln!(script, "(assert (not (= {} {})))", first.result, second.result)
            .expect("a String takes all");
        if one.nan == NanRule::Unknown || other.nan == NanRule::Unknown {
            writeln!(script, "(assert (not (and {} {})))", first.is_nan, second.is_nan)
                .expect("a String takes all");
        }
    }
    script
}

/// A model twice, with the same products and scales, c ≤ c′ and d > d′; none of them NaN.
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn falling(model: &Model) -> String {
    const LARGER: &str = "larger-c";
    let lower = encode::encode(model, "lower.", "c");
    let upper = encode::encode(model, "upper.", LARGER);
    let width = element_width(&model.c.format);
    let mut script = declarations(model) + &format!("(declare-const {LARGER} {})\n", sort(width));
    script += &lower.text;
    script += &upper.text;
    script += &ordered_key("key-c", width);
    script += &ordered_key("key-d", element_width(&model.d));
    script += "(assert (bvule (key-c c) (key-c larger-c)))\n";
    writeln!(script, "(assert (bvugt (key-d {}) (key-d {})))", lower.result, upper.result)
        .expect("a String takes all");
    for nan in [lower.is_nan, upper.is_nan] {
        writeln!(script, "(assert (not {nan}))").expect("a String takes all");
    }
    script
}

/// A function that maps a format's bit patterns to unsigned numbers in the order of their values, both
/// zeros to one.
fn ordered_key(name: &str, width: u32) -> String {
    let (word, top) = (sort(width), width - 1);
    let half = Bv::constant(1 << top, width);
    format!(
        "(define-fun {name} ((x {word})) {word}\n  (ite (= ((_ extract {top} {top}) x) #b1) (bvneg x) (bvor x {half})))\n"
    )
}
