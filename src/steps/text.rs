//! The steps of a dot-add for people: what goes in, then a column for each device.

use std::collections::BTreeMap;
use std::fmt::Write;

use mmaprobe_model::Format;

use super::exact::{Exact, error_in_ulps, product, ulps};
use super::{Aligned, Steps, Sum};
use crate::bits::{Shown, ShownDotAdd, decimal, value};
use crate::probes::{DotAdd, Signature};
use crate::table;

/// What a device makes of a dot-add.
#[derive(Clone, Copy, Debug)]
pub struct Column<'s> {
    /// The device's name.
    pub device: &'s str,
    /// The instruction, where devices call it differently.
    pub instruction: &'s str,
    /// Its steps, if its arithmetic is known.
    pub steps: Option<&'s Steps>,
    /// Its answer.
    pub answer: u64,
}

/// The operands, the products and the exact result, in lines of at most 80 columns.
pub fn operands(signature: &Signature, question: &DotAdd, exact: &Exact) -> String {
    let mut text = ShownDotAdd { signature, dot_add: question }.to_string();
    for (k, (&a, &b)) in question.a.iter().zip(&question.b).enumerate() {
        if (a, b) == (0, 0) {
            continue;
        }
        let product = product(&signature.a, a, &signature.b, b);
        // What sums align by: where the significands' product is 2 or more, the number's own is one higher.
        let exponent = match &product {
            Exact::Finite(term) if !term.is_zero() => format!(", exponent {}", term.exponent),
            _ => String::new(),
        };
        // A string is always written to.
        let _ = writeln!(text, "  {:7} {product}{exponent}", format!("p{k}"));
    }
    let rounded = match exact {
        Exact::Finite(term) if !term.is_zero() => {
            let sign = if term.negative { "-" } else { "" };
            let shown = decimal(value(term).abs());
            format!("  {:7} {exact}\n          ≈ {sign}{shown}\n", "exact")
        }
        _ => format!("  {:7} {exact}\n", "exact"),
    };
    text + &rounded
}

/// The devices' steps and answers as tables of at most `width` columns: two beside each other, more of
/// them one below the other.
pub fn columns(columns: &[Column], d: &Format, exact: &Exact, width: usize) -> String {
    match columns {
        [_, _, _, ..] => columns.iter().map(|column| grid(&[*column], d, exact, width)).collect(),
        few => grid(few, d, exact, width),
    }
}

/// Where a row stands: its sum, its place among the sum's rows, and the summand.
type Place = (usize, Kind, (u8, usize), String);

/// The rows of a sum, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Title,
    Exponent,
    Summand,
    Total,
    Rounded,
}

/// The sum that is the result comes after all others, and the answer after that.
const ROOT: usize = usize::MAX - 2;
const ANSWER: usize = usize::MAX - 1;
const ERROR: usize = usize::MAX;

fn grid(columns: &[Column], d: &Format, exact: &Exact, width: usize) -> String {
    let mut rows: BTreeMap<Place, (String, Vec<String>)> = BTreeMap::new();
    for (index, column) in columns.iter().enumerate() {
        let mut set = |place: Place, label: String, text: String| {
            let (_, cells) = rows.entry(place).or_insert_with(|| (label, vec![String::new(); columns.len()]));
            cells[index] = text;
        };
        let plain = |at: usize| (at, Kind::Title, (0, 0), String::new());
        match column.steps {
            Some(steps) => {
                for changed in &steps.operands {
                    let place = (0, Kind::Summand, rank(&changed.name), changed.name.clone());
                    set(place, changed.name.clone(), format!("read as {}", changed.read));
                }
                for sum in &steps.sums {
                    rows_of(sum, &mut set);
                }
            }
            None => set(plain(0), "steps".to_string(), "not known: it only answers".to_string()),
        }
        let mut answer = Shown { format: d, bits: column.answer }.to_string();
        if let Some(steps) = column.steps.filter(|steps| steps.d != column.answer) {
            let expected = Shown { format: d, bits: steps.d };
            let _ = write!(answer, ", where these steps give {expected}");
        }
        set(plain(ANSWER), "d".to_string(), answer);
        set(plain(ERROR), "error".to_string(), ulps(error_in_ulps(exact, d, column.answer)));
    }
    let mut header = vec!["step".to_string()];
    header.extend(columns.iter().map(|column| match column.instruction {
        "" => column.device.to_string(),
        instruction => format!("{} {instruction}", column.device),
    }));
    let rows: Vec<Vec<String>> =
        rows.into_values().map(|(label, cells)| std::iter::once(label).chain(cells).collect()).collect();
    table::grid(&header, &rows, width)
}

/// The order of names: c, the products, the sums.
fn rank(name: &str) -> (u8, usize) {
    let number = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok());
    match name.split_at_checked(1) {
        Some(("p", rest)) => (1, number(rest).unwrap_or(0)),
        Some(("s", rest)) => (2, number(rest).unwrap_or(0)),
        _ => (0, 0),
    }
}

fn rows_of(sum: &Sum, set: &mut impl FnMut(Place, String, String)) {
    let at = if sum.name == "d" { ROOT } else { 1 + rank(&sum.name).1 };
    let plain = |kind| (at, kind, (0, 0), String::new());
    set(plain(Kind::Title), format!("{} = Σ", sum.name), format!("{} sum", sum.added));
    if let Some(exponent) = sum.aligned_to {
        let because = sum.because.map_or(String::new(), |because| format!(", {because}"));
        set(plain(Kind::Exponent), "  e_max".to_string(), format!("{exponent}{because}"));
    }
    for summand in &sum.summands {
        let text = match &summand.aligned {
            None => summand.value.clone(),
            Some(Aligned { lowest, rounding, kept, lost }) => {
                format!("{} → {kept}, {rounding} at 2^{lowest}, loses {lost}", summand.value)
            }
        };
        let place = (at, Kind::Summand, rank(&summand.name), summand.name.clone());
        set(place, format!("  {}", summand.name), text);
    }
    set(plain(Kind::Total), "  sum".to_string(), sum.sum.clone());
    let rounded = match (&sum.rounded_to, &sum.lost) {
        (Some(to), Some(lost)) => format!("{to}: {}, loses {lost}", sum.result),
        (Some(to), None) => format!("{to}: {}", sum.result),
        (None, _) => "handed on as it is".to_string(),
    };
    set(plain(Kind::Rounded), "  rounded".to_string(), rounded);
}
