//! The summation tree as text: box-drawing characters, repetition folded.
//!
//! ```text
//! d = Σ exact → fp32 RNE
//! ├─ ⋮ 14 more like it: p1 … p14
//! │  └─ Σ exact → fp32 RNE
//! │     ├─ c
//! │     └─ p0
//! └─ p15
//! ```

use mmaprobe_model::Model;
use mmaprobe_model::tree::{Added, Fused, Normalised, Rule};

use crate::sheet::folded::{Row, rows};
use crate::sheet::outline::Outline;
use crate::sheet::spelling::short;

/// The least width that leaves room for labels beside the branches.
const MIN_WIDTH: usize = 40;

/// Columns that a level takes.
const INDENT: usize = 3;

/// Draws the sum tree of a model in lines of at most `width` columns (and at least 40).
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn draw(model: &Model, width: usize) -> Vec<String> {
    let model = model.canonical();
    let outline = Outline::new(&model.tree);
    let width = width.max(MIN_WIDTH);
    let mut lines = Vec::new();
    for row in rows(&outline, width / 2 / INDENT) {
        let (first, rest) = branches(&row.path);
        let options = textwrap::Options::new(width).initial_indent(&first).subsequent_indent(&rest);
        let text = text(&row, &model.tree.rules);
        lines.extend(textwrap::wrap(&text, options).into_iter().map(|line| line.trim_end().to_string()));
    }
    lines
}

/// What a row says, its rule included.
pub fn text(row: &Row, rules: &[Rule]) -> String {
    match row.rule() {
        None => row.text.clone(),
        Some(rule) => {
            let (name, scales) = row.around_rule();
            format!("{name}Σ {}{scales}", label(&rules[rule]))
        }
    }
}

/// What stands before the first line of a row, and before further ones.
fn branches(path: &[bool]) -> (String, String) {
    let Some((own, ancestors)) = path.split_last() else { return (String::new(), String::new()) };
    let beside: String = ancestors.iter().map(|last| if *last { "   " } else { "│  " }).collect();
    let (fork, line) = if *own { ("└─ ", "   ") } else { ("├─ ", "│  ") };
    (format!("{beside}{fork}"), format!("{beside}{line}"))
}

/// A rule in a few characters: `fused F=24 RZ → fp32 RZ`.
pub fn label(rule: &Rule) -> String {
    let added = match &rule.added {
        Added::Exact => "exact".into(),
        Added::Fused(Fused { alignment, sticky, .. }) => {
            let alignments: Vec<String> = alignment
                .iter()
                .map(|alignment| format!("F={} {}", alignment.fraction_bits, alignment.rounding))
                .collect();
            format!("fused {}{}", alignments.join(" | "), if *sticky { ", sticky" } else { "" })
        }
    };
    match &rule.normalised {
        Normalised::To(round) => format!("{added} → {}", short(round)),
        Normalised::No { .. } => format!("{added}, unnormalised"),
    }
}
