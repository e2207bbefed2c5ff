//! What is covered, as a Markdown table.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::catalog::Catalog;
use crate::catalog::arithmetic::{Checked, Stated};

/// A table of the architectures: their GPUs, how many instructions, by which algorithms, and whether
/// recordings agree.
pub fn markdown(catalog: &Catalog) -> String {
    let mut text = String::from(
        "| architecture | `sim:` | ISA targets | instructions | algorithms | in families with agreeing recordings | disputed |\n\
         |---|---|---|--:|---|--:|--:|\n",
    );
    let [mut instructions, mut recordings, mut disputes] = [0; 3];
    for architecture in catalog.architectures() {
        let published = || architecture.families.iter().filter_map(|family| family.published.as_ref());
        let algorithms: BTreeSet<String> = published()
            .map(|published| match &published.algorithm {
                Stated::Algorithm(algorithm) => short(&algorithm.to_string()),
                exact @ Stated::ExactSums { .. } => exact.to_string(),
            })
            .collect();
        let algorithms: Vec<String> = algorithms.into_iter().collect();
        let recorded = published().filter(|published| published.checked == Checked::Recorded).count();
        let disputed = published().filter(|published| !published.disputes.is_empty()).count();
        let simulated =
            if architecture.has_sheet() { format!("`sim:{}`", architecture.name) } else { "–".into() };
        let algorithms =
            if algorithms.is_empty() { "not published".to_string() } else { algorithms.join(", ") };
        let count = architecture.families.len();
        // A string is always written to.
        let _ = writeln!(
            text,
            "| {} | {simulated} | {} | {count} | {algorithms} | {recorded} | {disputed} |",
            architecture.title,
            architecture.targets.join(", "),
        );
        instructions += count;
        recordings += recorded;
        disputes += disputed;
    }
    let _ = writeln!(text, "| **all** | | | {instructions} | | {recordings} | {disputes} |");
    text
}

/// An algorithm's name with F and G alone: the chain follows from the name, the rest from the vendor.
fn short(algorithm: &str) -> String {
    let Some((name, parameters)) = algorithm.trim_end_matches(')').split_once('(') else {
        return algorithm.to_string();
    };
    let shown: Vec<&str> = parameters
        .split(", ")
        .filter(|parameter| !parameter.contains("_") && !parameter.starts_with("chain"))
        .collect();
    format!("{name}({})", shown.join(", "))
}
