//! What the answers say for each statement about a model.

use std::collections::BTreeMap;

use mmaprobe_model::Model;
use rayon::prelude::*;

use super::evidence::{Answered, Class, Evidence};
use super::held::Held;
use super::knobs::{self, Knob};
use super::standing::PORTION;

/// One statement and its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The knob.
    pub knob: Knob,
    /// Its choice.
    pub choice: String,
    /// The probes with answers that contradict another choice, most of them first.
    pub probes: Vec<String>,
    /// Number of answers that contradict at least one other choice; of each choice, the first
    /// [`COUNTED`] are counted.
    pub answers: u64,
    /// The choices that are contradicted.
    pub rejected: Vec<String>,
}

/// Answers that are counted against one choice, at most.
pub const COUNTED: usize = 100;

/// The evidence for every knob of a model.
pub fn about(model: &Model, evidence: &Evidence) -> Vec<Statement> {
    let turned = knobs::turn_all(model, evidence.signature(), Class::Nan, evidence);
    let answers: Vec<&Answered> = evidence.all().collect();
    // For each choice, which answers contradict it.
    let mut contradictions: Vec<Vec<usize>> = vec![Vec::new(); turned.len()];
    for (portion, some) in answers.chunks(PORTION).enumerate() {
        let held = Held::new(model, some);
        let others = turned.par_iter().zip(&mut contradictions);
        let others = others.filter(|(turned, indices)| turned.model != *model && indices.len() < COUNTED);
        others.for_each(|(turned, indices)| {
            let left = COUNTED - indices.len();
            let contradicting = held.contradicting(&turned.model, left).unwrap_or_default();
            indices.extend(contradicting.into_iter().map(|index| portion * PORTION + index));
        });
    }
    let mut order: Vec<&Knob> = Vec::new();
    for turned in &turned {
        if !order.contains(&&turned.knob) {
            order.push(&turned.knob);
        }
    }
    order
        .into_iter()
        .filter_map(|knob| {
            let choices = || turned.iter().zip(&contradictions).filter(|(turned, _)| turned.knob == *knob);
            let own = choices().find(|(turned, _)| turned.model == *model)?;
            let mut rejected: Vec<String> = Vec::new();
            let mut all: Vec<usize> = Vec::new();
            for (turned, indices) in choices() {
                if !indices.is_empty() && !rejected.contains(&turned.choice) {
                    rejected.push(turned.choice.clone());
                    all.extend(indices);
                }
            }
            all.sort_unstable();
            all.dedup();
            let mut by_probe: BTreeMap<&str, usize> = BTreeMap::new();
            for &index in &all {
                *by_probe.entry(evidence.probes[answers[index].probe].name).or_default() += 1;
            }
            let mut probes: Vec<(&str, usize)> = by_probe.into_iter().collect();
            probes.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
            (!rejected.is_empty()).then(|| Statement {
                knob: knob.clone(),
                choice: own.0.choice.clone(),
                probes: probes.into_iter().map(|(name, _)| name.to_string()).collect(),
                answers: all.len() as u64,
                rejected,
            })
        })
        .collect()
}
