//! What each step keeps and loses, as a picture of aligned significands.
//!
//! A picture belongs to a rule of the model. Its columns are powers of two, counted from the largest
//! exponent among the summands, e_max; its rows are what the rule adds, the sum, and what is handed on.
//! Where a row stands is an example: a summand is drawn so far below the largest that alignment takes
//! something of it.

use std::fmt::Write;

use mmaprobe_model::Model;
use mmaprobe_model::tree::{Added, Alignment, Fused, Node, NodeId, Normalised, Product, Rule};

use crate::sheet::arithmetic::rule_names;
use crate::sheet::draw::label;
use crate::svg::escaped;

/// Columns that a picture has at most; further ones on the right are left out.
const COLUMNS: i32 = 112;

/// How far below the first the other summands of an exact sum are drawn that is not rounded.
const SOME: i32 = 6;

/// The picture of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The rule: its name in the steps, and what it does.
    pub title: String,
    /// The leftmost column: its power of two, relative to e_max.
    high: i32,
    /// The rightmost column.
    low: i32,
    /// Numbers of fraction bits after which something is cut.
    cuts: Vec<i32>,
    rows: Vec<Row>,
}

/// A significand.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    label: String,
    spans: Vec<Span>,
}

/// Neighbouring bits that share a fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    high: i32,
    low: i32,
    fate: Fate,
}

/// What becomes of a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Lost,
    /// It says whether anything was lost.
    Sticky,
}

/// A kind of summand.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kind {
    name: &'static str,
    /// Bits before the binary point.
    integer: i32,
    /// Bits behind it.
    fraction: i32,
    /// How it is aligned; `None` where sums are exact.
    alignment: Option<Alignment>,
}

/// A picture for each rule of a model, in the order of computation.
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn pictures(model: &Model) -> Vec<Picture> {
    let model = model.canonical();
    let names = rule_names(&model.tree.rules);
    (0..names.len())
        .filter_map(|wanted| {
            let (children, rule) = model.tree.nodes.iter().find_map(|node| match node {
                Node::Sum { children, rule } if *rule == wanted => Some((children, &model.tree.rules[*rule])),
                _ => None,
            })?;
            let title = format!("{}: {}", names[wanted], label(rule));
            Some(picture(title, rule, &kinds(&model, rule, children), children.len()))
        })
        .collect()
}

/// The kinds among the summands of a sum, each once.
fn kinds(model: &Model, rule: &Rule, children: &[NodeId]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for (position, &child) in children.iter().enumerate() {
        let Some((name, integer, fraction)) = width(model, child) else { continue };
        let alignment = match &rule.added {
            Added::Exact => None,
            Added::Fused(fused) => Some(*fused.alignment_of(position)),
        };
        let kind = Kind { name, integer, fraction, alignment };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// What a node is called, and how many bits its significand has before and behind the binary point;
/// nothing for +0.
fn width(model: &Model, id: NodeId) -> Option<(&'static str, i32, i32)> {
    let of_format = |bits: u32| bits as i32;
    Some(match &model.tree.nodes[id] {
        Node::Product(_) => match &model.product {
            Product::Rounded(round) => ("product", 1, of_format(round.fraction_bits)),
            // Two significands in [1, 2) have a product in [1, 4).
            _ => ("product", 2, of_format(model.a.format.fraction_bits + model.b.format.fraction_bits)),
        },
        Node::Accumulator => ("c", 1, of_format(model.c.format.fraction_bits)),
        Node::Zero => return None,
        Node::Scaled { child, .. } => {
            let (name, integer, fraction) = width(model, *child)?;
            let bits = model.scale.map_or(0, |scale| of_format(scale.format.fraction_bits));
            let name = if name == "product" { "scaled product" } else { "scaled sum" };
            (name, integer + if bits > 0 { 2 } else { 0 }, fraction + 2 * bits)
        }
        Node::Sum { children, rule } => {
            match (&model.tree.rules[*rule].normalised, &model.tree.rules[*rule].added) {
                (Normalised::To(round), _) => ("inner sum", 1, of_format(round.fraction_bits)),
                (Normalised::No { .. }, Added::Fused(fused)) => {
                    ("inner sum", 2 + carries(children.len()), most_fraction_bits(fused))
                }
                (Normalised::No { .. }, Added::Exact) => {
                    let widths = children.iter().filter_map(|&child| width(model, child));
                    let fraction = widths.map(|(_, _, fraction)| fraction).max().unwrap_or(0);
                    ("exact sum", 2 + carries(children.len()), fraction + SOME)
                }
            }
        }
    })
}

/// Bits that a sum of so many summands can grow by.
fn carries(summands: usize) -> i32 {
    summands.next_power_of_two().ilog2() as i32
}

fn most_fraction_bits(fused: &Fused) -> i32 {
    fused.alignment.iter().map(|alignment| alignment.fraction_bits as i32).max().unwrap_or(0)
}

fn picture(title: String, rule: &Rule, kinds: &[Kind], summands: usize) -> Picture {
    let mut rows: Vec<Row> = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        match &kind.alignment {
            None => {
                let below = match (index, &rule.normalised) {
                    (0, _) => 0,
                    (_, Normalised::No { .. }) => SOME,
                    (_, Normalised::To(round)) => (round.fraction_bits as i32 - kind.fraction / 2).max(1),
                };
                let place = if below == 0 { String::new() } else { format!(", {below} below") };
                rows.push(summand(kind, below, place, None));
            }
            Some(alignment) => {
                if index == 0 {
                    rows.push(summand(
                        kind,
                        0,
                        " at e_max".to_string(),
                        Some((alignment.fraction_bits, alignment.rounding)),
                    ));
                }
                let bits = alignment.fraction_bits as i32;
                let below = (bits - kind.fraction / 2).max(1);
                let near = alignment.far.is_none_or(|far| below <= far.distance);
                let place = |below: i32| format!(", {below} below e_max");
                if near {
                    rows.push(summand(
                        kind,
                        below,
                        place(below),
                        Some((alignment.fraction_bits, alignment.rounding)),
                    ));
                }
                if let Some(far) = alignment.far {
                    let below = far.distance + 1;
                    rows.push(summand(
                        kind,
                        below,
                        place(below),
                        Some((alignment.fraction_bits, far.rounding)),
                    ));
                }
            }
        }
    }
    let lowest = rows.iter().flat_map(|row| &row.spans).map(|span| span.low).min().unwrap_or(0);
    let highest = 1 + carries(summands);
    let (sum_low, cuts) = match &rule.added {
        Added::Exact => (lowest, Vec::new()),
        Added::Fused(fused) => {
            let mut cuts: Vec<i32> = fused.alignment.iter().map(|a| a.fraction_bits as i32).collect();
            cuts.sort_unstable();
            cuts.dedup();
            (-most_fraction_bits(fused), cuts)
        }
    };
    let high = rows.iter().flat_map(|row| &row.spans).map(|span| span.high).max().unwrap_or(0).max(highest);
    rows.push(sum(rule, highest, sum_low));
    rows.push(result(rule, highest, sum_low));
    let low = rows.iter().flat_map(|row| &row.spans).map(|span| span.low).min().unwrap_or(0);
    Picture { title, high, low: low.max(high + 1 - COLUMNS), cuts, rows }
}

/// A summand so far below the largest exponent; cut after so many bits by that rounding.
fn summand(kind: &Kind, below: i32, place: String, cut: Option<(u32, mmaprobe_model::Rounding)>) -> Row {
    let (high, low) = (kind.integer - 1 - below, -kind.fraction - below);
    let last = cut.map_or(i32::MIN, |(bits, _)| -(bits as i32));
    let spans = split(high, low, last);
    let lost: i32 =
        spans.iter().filter(|span| span.fate == Fate::Lost).map(|span| span.high - span.low + 1).sum();
    let what = match (cut, lost) {
        (None, _) | (_, 0) => format!("{} bits", high - low + 1),
        (Some((_, rounding)), lost) => format!("loses {lost} of {} bits, {rounding}", high - low + 1),
    };
    Row { label: format!("{}{place}: {what}", kind.name), spans }
}

/// The bits from `high` to `low`, of which those below `last` are lost.
fn split(high: i32, low: i32, last: i32) -> Vec<Span> {
    let mut spans = Vec::new();
    if high >= last {
        spans.push(Span { high, low: low.max(last), fate: Fate::Kept });
    }
    if low < last {
        spans.push(Span { high: high.min(last - 1), low, fate: Fate::Lost });
    }
    spans
}

fn sum(rule: &Rule, high: i32, low: i32) -> Row {
    let Added::Fused(fused) = &rule.added else {
        let spans = vec![Span { high, low, fate: Fate::Kept }];
        return Row { label: "sum: exact, as wide as it takes".to_string(), spans };
    };
    let mut spans = Vec::new();
    let mut label = format!("sum: {} fraction bits", -low);
    let top = fused.carry.map_or(high, |carry| (carry.bits as i32 - 1).min(high));
    if top < high {
        spans.push(Span { high, low: top + 1, fate: Fate::Lost });
        let _ = write!(label, ", {} integer bits", top + 1);
    }
    spans.push(Span { high: top, low, fate: Fate::Kept });
    if fused.sticky {
        spans.push(Span { high: low - 1, low: low - 1, fate: Fate::Sticky });
        label += ", sticky bit";
    }
    Row { label, spans }
}

fn result(rule: &Rule, high: i32, low: i32) -> Row {
    match &rule.normalised {
        Normalised::No { .. } => {
            let spans = vec![Span { high, low, fate: Fate::Kept }];
            Row { label: "passed on as it is, not normalised".to_string(), spans }
        }
        Normalised::To(round) => {
            let bits = round.fraction_bits as i32;
            let spans = split(0, low, -bits);
            let kept = bits.min(-low);
            let label =
                format!("→ {} {}, leading one at e_max: 1 + {kept} bits", round.format, round.rounding);
            Row { label, spans }
        }
    }
}

impl Picture {
    fn columns(&self) -> i32 {
        self.high - self.low + 1
    }

    /// The picture in characters: `█` for a bit that is kept, `░` for one that is lost, `s` for a sticky
    /// bit, `|` where bits are cut. Where there are many columns, a character stands for two.
    pub fn text(&self) -> Vec<String> {
        const WIDEST: i32 = 72;
        let per = (self.columns() + WIDEST - 1) / WIDEST;
        let place = |column: i32| ((self.high - column) / per) as usize;
        let blank = || vec![' '; place(self.low) + 1];
        let mut axis = blank();
        axis[place(0)] = 'e';
        for cut in &self.cuts {
            if let Some(at) = axis.get_mut(place(-cut)) {
                *at = '|';
            }
        }
        let mut lines = vec![axis.iter().collect::<String>().trim_end().to_string()];
        for row in &self.rows {
            let mut line = blank();
            for span in &row.spans {
                let mark = match span.fate {
                    Fate::Kept => '█',
                    Fate::Lost => '░',
                    Fate::Sticky => 's',
                };
                let from = place(span.high.min(self.high));
                let to = place(span.low.max(self.low));
                line[from..=to].fill(mark);
            }
            lines.push(row.label.clone());
            lines.push(line.iter().collect::<String>().trim_end().to_string());
        }
        let twice = if per > 1 { format!("; a character stands for {per} bits") } else { String::new() };
        lines.push(format!("(e: 2^e_max; |: last bit kept at alignment; █ kept, ░ lost{twice})"));
        lines
    }

    /// The picture as an element for a page, as wide as there is room: places are percentages, so that
    /// text keeps its size. `group` and `number` tell it from others on the page.
    pub fn svg(&self, group: &str, number: &usize) -> String {
        let id = format!("{group}-{number}");
        const TOP: i32 = 20;
        const ROW: i32 = 36;
        let columns = f64::from(self.columns());
        let at = |column: i32| 100.0 * f64::from(self.high - column) / columns;
        let height = TOP + ROW * self.rows.len() as i32 + 2;
        let step = 100.0 / columns;
        let summary: Vec<&str> = self.rows.iter().map(|row| row.label.as_str()).collect();
        let mut svg = format!(
            "<svg class=\"bits\" width=\"100%\" height=\"{height}\" role=\"img\" aria-label=\"{}\">\n\
             <defs><pattern id=\"{id}\" width=\"{step:.4}%\" height=\"100%\" patternUnits=\"userSpaceOnUse\">\
             <rect class=\"gap\" width=\"1\" height=\"100%\"/></pattern></defs>\n",
            escaped(&format!("{}; {}", self.title, summary.join("; ")))
        );
        let mut line = |text: String| svg.push_str(&(text + "\n"));
        // Left of the column of e_max; right of the last that is kept.
        let mut marks = vec![(at(0), "2^e_max".to_string())];
        marks.extend(self.cuts.iter().map(|&cut| (at(-cut - 1), format!("F={cut}"))));
        for (x, text) in &marks {
            let anchor = if *x < 15.0 {
                "start"
            } else if *x > 85.0 {
                "end"
            } else {
                "middle"
            };
            line(format!(
                "<text class=\"mark\" x=\"{x:.2}%\" y=\"12\" text-anchor=\"{anchor}\">{}</text>",
                escaped(text)
            ));
        }
        for (index, row) in self.rows.iter().enumerate() {
            let y = TOP + ROW * index as i32;
            line(format!("<text x=\"0\" y=\"{}\">{}</text>", y + 12, escaped(&row.label)));
            for (x, _) in &marks {
                // Between the texts.
                let (from, to) = (y + 15, y + ROW - 3);
                line(format!(
                    "<line class=\"cut\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{from}\" y2=\"{to}\"/>"
                ));
            }
            for span in &row.spans {
                let (x, end) = (at(span.high), at(span.low.max(self.low) - 1));
                let class = match span.fate {
                    Fate::Kept => "kept",
                    Fate::Lost => "lost",
                    Fate::Sticky => "sticky",
                };
                for fill in [format!("class=\"{class}\""), format!("fill=\"url(#{id})\"")] {
                    line(format!(
                        "<rect {fill} x=\"{x:.2}%\" y=\"{}\" width=\"{:.2}%\" height=\"12\"/>",
                        y + 18,
                        end - x
                    ));
                }
            }
        }
        svg + "</svg>"
    }
}
