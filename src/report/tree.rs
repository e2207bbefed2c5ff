//! The summation tree as a drawing: a row for each sum and each run of summands, and under it which of
//! the products it covers.
//!
//! Its size is fixed and fits a phone, whatever K is: what repeats is folded.

use std::fmt::Write;

use mmaprobe_model::Model;

use crate::sheet::draw::text;
use crate::sheet::folded::{Kind, rows};
use crate::sheet::outline::Outline;
use crate::sheet::program::runs;
use crate::svg::escaped;

/// Width of the drawing, in px.
const WIDTH: usize = 336;
/// What a level is further right.
const INDENT: usize = 14;
/// Levels that are drawn in place.
const DEEPEST: usize = 6;
/// Width of a character, and height of a line of text.
const CHARACTER: f64 = 7.3;
const LINE: usize = 16;
/// Height of the strip of products.
const STRIP: usize = 9;
/// Room around text, and between rows.
const PADDING: usize = 5;
const GAP: usize = 7;
/// Colours for rules; further ones begin again.
const COLOURS: usize = 4;

/// Draws the sum tree of a model as an SVG element for a page.
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn svg(model: &Model) -> String {
    let model = model.canonical();
    let outline = Outline::new(&model.tree);
    let mut body = String::new();
    let mut y = 1;
    // Where the line to the children of the last node drawn on each level begins.
    let mut anchors: Vec<usize> = Vec::new();
    for row in rows(&outline, DEEPEST) {
        let level = row.path.len();
        let x = level * INDENT;
        let width = WIDTH - x;
        let characters = ((width - 2 * PADDING) as f64 / CHARACTER) as usize;
        let label = text(&row, &model.tree.rules);
        let lines = textwrap::wrap(&label, characters);
        let has_strip = !row.products.is_empty();
        let height = 2 * PADDING + LINE * lines.len() + if has_strip { STRIP + 2 } else { 0 };
        let class = match row.kind {
            Kind::Sum { rule, .. } => format!("sum r{}", rule % COLOURS),
            Kind::Leaves => "leaf".to_string(),
            Kind::More => "more".to_string(),
        };
        if level > 0 {
            let (trunk, middle) = (x - INDENT / 2, y + PADDING + LINE / 2);
            let from = anchors.get(level - 1).copied().unwrap_or(y);
            let _ = writeln!(body, "<path class=\"edge\" d=\"M{trunk} {from}V{middle}H{x}\"/>");
        }
        let _ = writeln!(
            body,
            "<rect class=\"{class}\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{height}\" rx=\"4\"/>",
            x as f64 + 0.5,
            width - 1
        );
        for (index, line) in lines.iter().enumerate() {
            let baseline = y + PADDING + LINE * index + 12;
            let _ = writeln!(body, "<text x=\"{}\" y=\"{baseline}\">{}</text>", x + PADDING, escaped(line));
        }
        if has_strip {
            let top = y + PADDING + LINE * lines.len();
            body += &strip(x + PADDING, top, width - 2 * PADDING, model.k, &row.products);
        }
        anchors.truncate(level);
        anchors.push(y + height);
        y += height + GAP;
    }
    let height = y - GAP + 1;
    format!(
        "<svg class=\"tree\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"summation tree\">\n{body}</svg>"
    )
}

/// All products in a row, those that are covered filled.
fn strip(x: usize, y: usize, room: usize, k: usize, products: &[usize]) -> String {
    let cell = (room as f64 / k as f64).min(12.0);
    let mut filled = products.to_vec();
    filled.sort_unstable();
    let mut path = String::new();
    for run in runs(&filled) {
        let (each, width, step) = match run.stride {
            1 => (1, cell * run.count as f64, 0.0),
            stride => (run.count, cell, cell * stride as f64),
        };
        for index in 0..each {
            let from = x as f64 + cell * run.first as f64 + step * index as f64;
            // Neighbouring cells stay apart where there is room.
            let width = if cell >= 3.0 { width - 1.0 } else { width };
            let _ = write!(path, "M{from:.1} {y}h{width:.1}v{STRIP}h-{width:.1}z");
        }
    }
    format!(
        "<rect class=\"all\" x=\"{x}\" y=\"{y}\" width=\"{:.1}\" height=\"{STRIP}\"/>\n\
         <path class=\"covered\" d=\"{path}\"/>\n",
        cell * k as f64
    )
}
