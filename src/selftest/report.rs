//! What came of it, as tables of at most 80 columns and as JSON lines.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Tried, Verdict, Which};
use crate::sheet::schema::Cost;
use crate::table;

/// Unexplained machines shown in full.
const SHOWN: usize = 20;

/// Everything for stdout.
pub fn text(all: &[Tried], width: usize) -> String {
    let (defective, sound): (Vec<&Tried>, Vec<&Tried>) = all.iter().partition(|tried| tried.defect.is_some());
    let is_function = |tried: &&Tried| matches!(tried.which, Which::Function(_));
    let (functions, sound): (Vec<&Tried>, Vec<&Tried>) = sound.into_iter().partition(is_function);
    let mut text = String::new();
    if !sound.is_empty() {
        text += &outcomes(&sound, width);
        text += &costs(&sound, width);
        text += &features(&sound, width);
    }
    if !defective.is_empty() {
        text += &defects(&defective, width);
    }
    if !functions.is_empty() {
        let numbers = [Verdict::NotAccused, Verdict::WrongClaim, Verdict::Failed]
            .map(|verdict| count(&functions, verdict).to_string());
        let header = ["functions", "not accused", "called no function", "failed"];
        let [not_accused, accused, failed] = numbers;
        text += &table::plain(header, &[[functions.len().to_string(), not_accused, accused, failed]], width);
    }
    let failures: Vec<&Tried> = all.iter().filter(|tried| tried.verdict.is_failure()).collect();
    text += &failures.iter().map(|tried| in_full(tried)).collect::<String>();
    let unexplained: Vec<&Tried> = all.iter().filter(|tried| tried.verdict == Verdict::Unexplained).collect();
    text += &unexplained.iter().take(SHOWN).map(|tried| in_full(tried)).collect::<String>();
    if unexplained.len() > SHOWN {
        let more = unexplained.len() - SHOWN;
        text += &format!("\n… and {more} more unexplained machines; --details FILE has them all.\n");
    }
    text
}

fn count(all: &[&Tried], verdict: Verdict) -> usize {
    all.iter().filter(|tried| tried.verdict == verdict).count()
}

fn share(part: usize, whole: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn outcomes(sound: &[&Tried], width: usize) -> String {
    let mut rows = Vec::new();
    for (verdict, meaning) in [
        (Verdict::Found, "one model, equal on every fresh input"),
        (Verdict::AmbiguousButEqual, "alternatives are named; equal on every fresh input"),
        (Verdict::Unexplained, "admitted, with a counterexample each"),
        (Verdict::WrongClaim, "what is claimed does not hold"),
        (Verdict::Failed, "the tool failed"),
    ] {
        let number = count(sound, verdict);
        if number > 0 || verdict != Verdict::Failed {
            let meaning = meaning.to_string();
            rows.push([verdict.name().to_string(), number.to_string(), share(number, sound.len()), meaning]);
        }
    }
    table::plain(["random machines", &sound.len().to_string(), "share", ""], &rows, width)
}

/// Rounds and questions: the median, and what nine of ten stay within.
fn costs(sound: &[&Tried], width: usize) -> String {
    let row = |name: &str, of: &[&Tried]| {
        let costs: Vec<_> = of.iter().filter_map(|tried| tried.cost).collect();
        let quantile = |mut values: Vec<u64>, percent: usize| {
            values.sort_unstable();
            let at = (values.len() * percent).div_ceil(100).max(1) - 1;
            values.get(at).map_or("–".to_string(), u64::to_string)
        };
        let rounds: Vec<u64> = costs.iter().map(|cost| cost.rounds).collect();
        let dot_adds: Vec<u64> = costs.iter().map(|cost| cost.dot_adds).collect();
        [
            name.to_string(),
            costs.len().to_string(),
            quantile(rounds.clone(), 50),
            quantile(rounds, 90),
            quantile(dot_adds.clone(), 50),
            quantile(dot_adds, 90),
        ]
    };
    let claimed = |tried: &&Tried| matches!(tried.verdict, Verdict::Found | Verdict::AmbiguousButEqual);
    let found: Vec<&Tried> = sound.iter().copied().filter(claimed).collect();
    let of_16: Vec<&Tried> = sound.iter().copied().filter(|tried| tried.k == 16).collect();
    let rows = [row("all", sound), row("found", &found), row("K = 16", &of_16)];
    let header = ["cost of", "machines", "rounds, median", "90 %", "dot-adds, median", "90 %"];
    table::plain(header, &rows, width)
}

fn features(sound: &[&Tried], width: usize) -> String {
    // Features keep the order in which they are listed for machines.
    let mut order: Vec<&str> = Vec::new();
    let mut of: BTreeMap<&str, Vec<&Tried>> = BTreeMap::new();
    for tried in sound {
        for feature in &tried.features {
            if !of.contains_key(feature.as_str()) {
                order.push(feature);
            }
            of.entry(feature).or_default().push(tried);
        }
    }
    let class = |feature: &str| feature.split_once(": ").map_or("", |(class, _)| class).to_string();
    // What belongs together stands together.
    let mut sorted: Vec<&str> = Vec::new();
    for feature in &order {
        let key = class(feature);
        if key.is_empty() {
            if !sorted.contains(feature) {
                sorted.push(feature);
            }
        } else {
            let mut group: Vec<&str> = order.iter().copied().filter(|other| class(other) == key).collect();
            group.sort_unstable();
            group.retain(|other| !sorted.contains(other));
            sorted.extend(group);
        }
    }
    let rows: Vec<[String; 6]> = sorted
        .iter()
        .map(|feature| {
            let all = &of[feature];
            let wrong = all.iter().filter(|tried| tried.verdict.is_failure()).count();
            let unexplained = count(all, Verdict::Unexplained);
            let good = all.len() - unexplained - wrong;
            [
                feature.to_string(),
                all.len().to_string(),
                good.to_string(),
                share(good, all.len()),
                unexplained.to_string(),
                wrong.to_string(),
            ]
        })
        .collect();
    table::plain(["feature", "machines", "found or equal", "share", "unexplained", "wrong"], &rows, width)
}

fn defects(defective: &[&Tried], width: usize) -> String {
    let mut kinds: BTreeMap<&str, Vec<&Tried>> = BTreeMap::new();
    for tried in defective {
        kinds.entry(tried.defect.as_deref().unwrap_or("")).or_default().push(tried);
    }
    let row = |name: &str, of: &[&Tried]| {
        let numbers = [Verdict::Detected, Verdict::NotDetected, Verdict::WrongClaim, Verdict::Failed]
            .map(|verdict| count(of, verdict).to_string());
        let [detected, missed, given, failed] = numbers;
        [name.to_string(), of.len().to_string(), detected, missed, given, failed]
    };
    let mut rows: Vec<[String; 6]> = kinds.iter().map(|(kind, of)| row(kind, of)).collect();
    rows.push(row("all", defective));
    table::plain(["no functions", "units", "detected", "unexplained", "given a tree", "failed"], &rows, width)
}

/// One unit in full.
pub fn in_full(tried: &Tried) -> String {
    let Tried { which, verdict, description, reason, .. } = tried;
    let reason = if reason.is_empty() { "" } else { &format!("{}\n", reason.trim_end()) };
    format!("\nMachine {which}: {}\n{reason}which is\n{}", verdict.name(), indented(description))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// A unit, as JSON has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    index: String,
    k: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    defect: Option<String>,
    verdict: String,
    status: Option<String>,
    rounds: Option<u64>,
    dot_adds: Option<u64>,
    features: Vec<String>,
    description: String,
    reason: String,
}

impl Line {
    /// What became of a unit.
    pub fn of(tried: &Tried) -> Line {
        Line {
            index: tried.which.to_string(),
            k: tried.k,
            defect: tried.defect.clone(),
            verdict: tried.verdict.name().to_string(),
            status: tried.status.clone(),
            rounds: tried.cost.map(|cost| cost.rounds),
            dot_adds: tried.cost.map(|cost| cost.dot_adds),
            features: tried.features.clone(),
            description: tried.description.clone(),
            reason: tried.reason.clone(),
        }
    }
}

impl TryFrom<Line> for Tried {
    type Error = String;

    /// The unit, without its sheet and how long it took.
    fn try_from(line: Line) -> Result<Tried, String> {
        let Line { index, k, defect, verdict, status, rounds, dot_adds, features, description, reason } =
            line;
        let verdict = Verdict::named(&verdict).ok_or_else(|| format!("{verdict:?} is no verdict"))?;
        let cost = rounds.zip(dot_adds).map(|(rounds, dot_adds)| Cost { rounds, dot_adds });
        Ok(Tried {
            which: index.parse()?,
            k,
            defect,
            features,
            description,
            verdict,
            reason,
            status,
            cost,
            sheet: None,
            time: Duration::ZERO,
        })
    }
}
