//! The sum tree as a straight-line program: one step for each sum.
//!
//! ```text
//! s0 = fused(p0..p15, c)
//! s1 = exact(p16..p30 step 2)
//! d = rounded(s0, s1*scale[0], zero)
//! ```
//!
//! `p3` is the product a₃·b₃, `c` the accumulator's initial value, `zero` a positive zero, a step's
//! name its value, and `*scale[2]` multiplies by both scales of block 2. A range stands for its
//! products in order; the order of summands is part of the arithmetic.

use std::fmt::Write;

/// A step: a sum and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The name of its value.
    pub name: String,
    /// The rule by which it is added.
    pub rule: String,
    /// The summands, in order.
    pub summands: Vec<Summand>,
}

/// A summand, and the blocks by whose scales it is multiplied, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summand {
    /// What is added.
    pub value: Value,
    /// The blocks.
    pub blocks: Vec<usize>,
}

/// What a step can add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A product.
    Product(usize),
    /// The accumulator's initial value.
    Accumulator,
    /// A positive zero.
    Zero,
    /// The value of an earlier step.
    Step(String),
}

/// Products that a sheet can name; no instruction comes near.
pub const MAX_PRODUCTS: usize = 1024;

/// Indices in arithmetic progression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first index.
    pub first: usize,
    /// The difference between neighbours.
    pub stride: usize,
    /// How many there are.
    pub count: usize,
}

impl Run {
    /// The last index.
    pub fn last(&self) -> usize {
        self.first + self.stride * (self.count - 1)
    }
}

/// Cuts a list of indices into ascending runs of three or more, and single indices.
pub fn runs(indices: &[usize]) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut rest = indices;
    while let Some(&first) = rest.first() {
        let stride = rest.get(1).and_then(|next| next.checked_sub(first)).filter(|&stride| stride > 0);
        let run = stride.map_or(1, |stride| {
            rest.iter().enumerate().take_while(|&(i, &index)| index == first + i * stride).count()
        });
        let count = if run < 3 { 1 } else { run };
        runs.push(Run { first, stride: stride.unwrap_or(1), count });
        rest = &rest[count..];
    }
    runs
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut summands = Vec::new();
        let mut rest = &self.summands[..];
        while let Some(summand) = rest.first() {
            let products: Vec<usize> = rest.iter().map_while(bare_product).collect();
            for run in runs(&products) {
                let mut text = format!("p{}", run.first);
                if run.count > 1 {
                    write!(text, "..p{}", run.last())?;
                    if run.stride > 1 {
                        write!(text, " step {}", run.stride)?;
                    }
                }
                summands.push(text);
            }
            if products.is_empty() {
                summands.push(summand.to_string());
            }
            rest = &rest[products.len().max(1)..];
        }
        write!(f, "{} = {}({})", self.name, self.rule, summands.join(", "))
    }
}

impl std::fmt::Display for Summand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Value::Product(k) => write!(f, "p{k}")?,
            Value::Accumulator => f.write_str("c")?,
            Value::Zero => f.write_str("zero")?,
            Value::Step(name) => f.write_str(name)?,
        }
        self.blocks.iter().try_for_each(|block| write!(f, "*scale[{block}]"))
    }
}

fn bare_product(summand: &Summand) -> Option<usize> {
    match summand.value {
        Value::Product(k) if summand.blocks.is_empty() => Some(k),
        _ => None,
    }
}

/// Reads a step.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn parse(text: &str) -> Result<Step, String> {
    let (name, sum) = text.split_once('=').ok_or("expected `name = rule(summand, …)`")?;
    let (rule, summands) = sum
        .trim()
        .strip_suffix(')')
        .and_then(|sum| sum.split_once('('))
        .ok_or("expected `rule(summand, …)` after `=`")?;
    let name = identifier(name.trim())?;
    if matches!(name, "c" | "zero") || index_of_product(name).is_some() {
        return Err(format!("`{name}` cannot name a step"));
    }
    let mut step = Step { name: name.into(), rule: identifier(rule.trim())?.into(), summands: Vec::new() };
    if summands.trim().is_empty() {
        return Ok(step);
    }
    for summand in summands.split(',') {
        read_summands(summand.trim(), &mut step.summands)?;
    }
    Ok(step)
}

/// Reads what stands between two commas: a summand, or a range of products.
fn read_summands(text: &str, summands: &mut Vec<Summand>) -> Result<(), String> {
    if let Some((first, rest)) = text.split_once("..") {
        let (last, stride) = match rest.split_once(" step ") {
            None => (rest, 1),
            Some((last, stride)) => (last, stride.trim().parse().unwrap_or(0)),
        };
        let (Some(first), Some(last)) = (index_of_product(first.trim()), index_of_product(last.trim()))
        else {
            return Err(format!("`{text}` is no range of products; expected `p0..p7` or `p0..p14 step 2`"));
        };
        if stride == 0 || last < first || !(last - first).is_multiple_of(stride) {
            return Err(format!("the range `{text}` does not lead from its first to its last product"));
        }
        for k in (product(first)?..=product(last)?).step_by(stride) {
            summands.push(Summand { value: Value::Product(k), blocks: Vec::new() });
        }
        return Ok(());
    }
    let mut factors = text.split('*').map(str::trim);
    let value = match factors.next().unwrap_or_default() {
        "c" => Value::Accumulator,
        "zero" => Value::Zero,
        name => match index_of_product(name) {
            Some(k) => Value::Product(product(k)?),
            None => Value::Step(identifier(name)?.into()),
        },
    };
    let blocks = factors
        .map(|factor| {
            factor
                .strip_prefix("scale[")
                .and_then(|factor| factor.strip_suffix(']'))
                .and_then(|block| block.trim().parse().ok())
                .ok_or_else(|| format!("`{factor}` is no factor; expected `scale[0]`"))
        })
        .collect::<Result<Vec<usize>, String>>()?;
    summands.push(Summand { value, blocks });
    Ok(())
}

/// The index in the name of a product; `usize::MAX` where it is beyond all bounds.
fn index_of_product(name: &str) -> Option<usize> {
    let digits = name.strip_prefix('p')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().unwrap_or(usize::MAX))
}

fn product(k: usize) -> Result<usize, String> {
    if k < MAX_PRODUCTS {
        Ok(k)
    } else {
        Err(format!("products are numbered from p0 to p{} at most", MAX_PRODUCTS - 1))
    }
}

fn identifier(name: &str) -> Result<&str, String> {
    let mut bytes = name.bytes();
    if bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        Ok(name)
    } else {
        Err(format!("`{name}` is no name; expected a letter, then letters, digits and `_`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_written_as_they_are_read() {
        for text in [
            "d = fused(p0..p15, c)",
            "s0 = rounded(zero, p0..p30 step 2)",
            "s1 = exact(p3, p1, s0*scale[0]*scale[1], c, p4*scale[2], p7)",
            "d = rounded(p0, p1, p4, p5, p8)",
            "d = rounded(p3, p2, p1, p0)",
            "d = rounded()",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_step_is_explained() {
        for (text, problem) in [
            ("fused(p0)", "expected `name = rule(summand, …)`"),
            ("d = fused", "expected `rule(summand, …)` after `=`"),
            ("p3 = fused(c)", "`p3` cannot name a step"),
            ("d = fused(p0..c)", "`p0..c` is no range of products; expected `p0..p7` or `p0..p14 step 2`"),
            (
                "d = fused(p0..p3 step 2)",
                "the range `p0..p3 step 2` does not lead from its first to its last product",
            ),
            ("d = fused(p3..p0)", "the range `p3..p0` does not lead from its first to its last product"),
            ("d = fused(p0*2)", "`2` is no factor; expected `scale[0]`"),
            ("d = fused(p0,, c)", "`` is no name; expected a letter, then letters, digits and `_`"),
            ("d = fused(p99999999999999999999999)", "products are numbered from p0 to p1023 at most"),
        ] {
            assert_eq!(parse(text).unwrap_err(), problem);
        }
    }
}
