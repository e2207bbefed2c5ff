//! Looking for rules: quickly in every structure, then sum by sum, then widely.

use std::ops::ControlFlow;

use mmaprobe_model::Model;
use mmaprobe_model::tree::Node;
use rayon::prelude::*;

use super::asking::Outline;
use super::evidence::{Answered, Class, Evidence, Stage};
use super::fit::{self, Fitted};
use super::knobs::{Knob, Turned};
use super::order::{self, Skeleton};
use super::search::Search;
use super::structure::{self, Structure};
use super::{Progress, nodewise};

/// What there is to start from.
#[derive(Clone, Copy)]
pub struct Starts<'a, 'd> {
    /// The answers.
    pub evidence: &'a Evidence<'d>,
    /// What they show without any rule.
    pub outline: &'a Outline,
}

impl Starts<'_, '_> {
    /// Every structure of the order that was found, simplest first.
    fn structures(&self) -> impl Iterator<Item = (Structure, Model)> {
        let start = |skeleton: &Skeleton, s| (s, structure::start(self.evidence.signature(), skeleton, s));
        let flat = &self.outline.order.skeleton;
        let flat =
            Structure::candidates(self.evidence.signature(), flat).into_iter().map(move |s| start(flat, s));
        let nested = self.outline.nested.iter();
        let flat = flat.chain(nested.flat_map(move |tree| Structure::NESTED.map(|s| start(tree, s))));
        flat.chain(self.closer())
    }

    /// Structures of the orders that a closer look has shown, or that hardly differ from those found.
    fn closer(&self) -> impl Iterator<Item = (Structure, Model)> {
        let Outline { order, nested, closer, .. } = self.outline;
        let hoisted = nested.iter().chain(closer).chain([&order.skeleton]).filter_map(Skeleton::hoisted);
        let mut trees = closer.clone();
        for tree in hoisted {
            if !trees.contains(&tree) && !nested.contains(&tree) {
                trees.push(tree);
            }
        }
        trees.into_iter().flat_map(move |tree| {
            let all = Structure::closer(self.evidence.signature(), &tree);
            let start = |s| (s, structure::start(self.evidence.signature(), &tree, s));
            all.into_iter().map(start).collect::<Vec<_>>()
        })
    }

    /// What is tried when none of those is enough: aligned sums, and orders where the formats show none.
    fn others(&self) -> Vec<Model> {
        let signature = self.evidence.signature();
        let Outline { order, cuts, .. } = self.outline;
        let mut all = structure::aligned_starts(signature, &order.skeleton, cuts);
        if order.unreachable > 0 && self.outline.closer.is_empty() {
            let orders = order::likely(signature);
            all.extend(orders.iter().map(|order| structure::start(signature, order, Structure::Plain)));
        }
        all
    }
}

/// A model that was looked at, and what it was started from.
#[derive(Clone, Debug)]
pub struct Looked {
    /// The tree, with rules that are guesses.
    start: Model,
    /// With rules that were found.
    pub fitted: Fitted,
}

impl Looked {
    fn at(evidence: &Evidence, start: Model) -> Looked {
        Looked { fitted: improve_by_stage(evidence, start.clone(), HOPELESS), start }
    }

    /// Whether no answer contradicts it.
    fn is_explained(&self) -> bool {
        self.fitted.contradicted == 0
    }
}

/// A quick look at the model so far, and then at every structure: those that the fewest answers contradict
/// first, at least one.
pub fn quickly(starts: &Starts, known: Option<Fitted>) -> Vec<Looked> {
    let evidence = starts.evidence;
    if let Some(known) = known {
        let start = known.model.clone();
        let improved = fit::settle_nans(evidence, fit::improve(evidence, known, Stage::LAST));
        if improved.contradicted == 0 {
            return vec![Looked { start, fitted: improved }];
        }
        // What is known of each sum is mostly right.
        let fitted = nodewise::fit(evidence, &improved.model);
        if fitted.contradicted == 0 {
            return vec![Looked { start, fitted }];
        }
    }
    // Simpler structures go first; where one explains everything, the others only have to be told from it.
    let mut looked: Vec<Looked> = Vec::new();
    for (_, model) in starts.structures() {
        looked.push(Looked::at(evidence, model));
        if looked.last().is_some_and(Looked::is_explained) {
            break;
        }
    }
    // A stable sort: simpler structures first among equals.
    looked.sort_by_key(|looked| looked.fitted.contradicted);
    looked
}

/// Other structures that no answer contradicts either, with the rules of a model that none does.
pub fn rivals(starts: &Starts, model: &Model) -> Vec<Turned> {
    starts
        .structures()
        .map(|(structure, other)| Turned {
            knob: Knob { what: "structure of the sums".to_string(), rule: None },
            choice: structure.to_string(),
            model: structure::with_rules_of(other, model),
        })
        .filter(|rival| {
            rival.model != *model && fit::contradicted(&rival.model, starts.evidence.all(), 1) == 0
        })
        .collect()
}

/// Trees, the best of all looks, whose rules are found sum by sum.
const CLOSELY: usize = 5;
/// Answers that models may be held against before rules are found sum by sum.
const TWO: u64 = nodewise::BUDGET;
/// Models that the wide search starts from.
const SEARCHED: usize = 8;

/// A look at the orders found since, where a quick look was not enough. The best first.
pub fn at_closer(starts: &Starts, mut looked: Vec<Looked>) -> Vec<Looked> {
    let evidence = starts.evidence;
    for (_, model) in starts.closer() {
        if looked.iter().any(|looked| looked.start == model) {
            continue;
        }
        looked.push(Looked::at(evidence, model));
        if looked.last().is_some_and(Looked::is_explained) {
            break;
        }
    }
    recounted(evidence, looked)
}

/// The same, with what contradicts each of all that has been asked since; the best first.
fn recounted(evidence: &Evidence, mut looked: Vec<Looked>) -> Vec<Looked> {
    for Looked { fitted, .. } in &mut looked {
        fitted.contradicted = fit::contradicted(&fitted.model, evidence.answers.iter(), usize::MAX);
    }
    // A stable sort: simpler structures first among equals.
    looked.sort_by_key(|looked| looked.fitted.contradicted);
    looked
}

/// Models that are looked at anew.
const ANEW: usize = 8;

/// A new look at the best since more was asked: from where they are, and where they started. The best first.
pub fn anew(evidence: &Evidence, looked: Vec<Looked>) -> Vec<Looked> {
    let mut looked = recounted(evidence, looked);
    for Looked { start, fitted } in looked.iter_mut().take(ANEW) {
        let improved = fit::improve(evidence, fitted.clone(), Stage::LAST);
        for better in
            [fit::settle_nans(evidence, improved), improve_by_stage(evidence, start.clone(), DISPUTED)]
        {
            let better = Fitted {
                contradicted: fit::contradicted(&better.model, evidence.answers.iter(), usize::MAX),
                ..better
            };
            if better.contradicted < fitted.contradicted {
                *fitted = better;
            }
        }
        if fitted.contradicted == 0 {
            break;
        }
    }
    recounted(evidence, looked)
}

/// A close look where nothing else was enough: rules found sum by sum; then other starts, and a wide search
/// from the best of all. The best model.
pub fn closely(starts: &Starts, mut looked: Vec<Looked>, progress: &dyn Progress) -> Fitted {
    let evidence = starts.evidence;
    if looked[0].is_explained() {
        return looked.swap_remove(0).fitted;
    }
    progress.step("search for rules, two at a time", None);
    let simple: Vec<Model> = looked.iter().take(1).map(|looked| looked.fitted.model.clone()).collect();
    let masked = starts.structures().take(1).map(|(_, start)| start);
    let found = Search::within(evidence, TWO).run(masked.chain(simple).collect()).swap_remove(0);
    if found.contradicted == 0 {
        return fit::settle_nans(evidence, found);
    }
    progress.step("search for rules, sum by sum", None);
    let mut trees: Vec<Vec<Node>> = Vec::new();
    let mut found: Vec<Fitted> = Vec::new();
    // What masks show, and what a closer look does, come before what happens to fit best with few rules.
    let shown = starts.structures().take(1).chain(starts.closer().take(2)).map(|(_, start)| start);
    for start in shown.chain(looked.iter().map(|looked| looked.start.clone())) {
        let tree = without_rules(&start);
        if trees.len() == CLOSELY || trees.contains(&tree) {
            continue;
        }
        trees.push(tree);
        let fitted = nodewise::fit(evidence, &start);
        if fitted.contradicted == 0 {
            return fitted;
        }
        found.push(fitted);
    }
    progress.step("search for rules, widely", None);
    found.extend(looked.into_iter().map(|looked| looked.fitted));
    found.extend(further(starts));
    found.sort_by_key(|fitted| fitted.contradicted);
    found.truncate(SEARCHED);
    let mut found = Search::new(evidence).run(found.into_iter().map(|fitted| fitted.model).collect());
    fit::settle_nans(evidence, found.swap_remove(0))
}

/// A model's tree alone.
fn without_rules(model: &Model) -> Vec<Node> {
    let mut nodes = model.tree.nodes.clone();
    for node in &mut nodes {
        if let Node::Sum { rule, .. } = node {
            *rule = 0;
        }
    }
    nodes
}

/// The best of the other starts, by what a glimpse of plain answers with few summands makes of them.
fn further(starts: &Starts) -> Vec<Fitted> {
    let evidence = starts.evidence;
    let plain = |summands| Stage { class: Class::Plain, summands };
    let answers: Vec<&Answered> =
        evidence.answers.iter().filter(|answered| plain(usize::MAX).has(answered)).collect();
    let mut glimpsed: Vec<Fitted> = starts
        .others()
        .into_par_iter()
        .map(|model| {
            let start = Fitted { model, contradicted: usize::MAX };
            let fitted =
                [1, 2, 3].iter().fold(start, |fitted, &most| fit::improve(evidence, fitted, plain(most)));
            let contradicted = fit::contradicted(&fitted.model, answers.iter().copied(), usize::MAX);
            Fitted { contradicted, ..fitted }
        })
        .collect();
    glimpsed.sort_by_key(|fitted| fitted.contradicted);
    glimpsed.truncate(SEARCHED);
    glimpsed.into_iter().map(|fitted| improve_by_stage(evidence, fitted.model, HOPELESS)).collect()
}

/// Settles one stage of answers after the other; gives up where one of so many plain answers remains unexplained,
/// as with a wrong order of summation.
fn improve_by_stage(evidence: &Evidence, start: Model, hopeless: usize) -> Fitted {
    let mut fitted = Fitted { model: start, contradicted: usize::MAX };
    for stage in Stage::all() {
        let tolerated = |answers: usize| match stage.class {
            Class::Plain => TOLERATED + answers / hopeless,
            _ => answers,
        };
        match fit::improve_within(evidence, fitted, stage, tolerated) {
            ControlFlow::Continue(improved) => fitted = improved,
            ControlFlow::Break(hopeless) => {
                fitted = hopeless;
                break;
            }
        }
    }
    fitted.contradicted = fit::contradicted(&fitted.model, evidence.answers.iter(), usize::MAX);
    fit::settle_nans(evidence, fitted)
}

/// Of plain answers, the part that may be unexplained, one of so many; where many were asked because models fail
/// there; and so many more, where there are few.
const HOPELESS: usize = 30;
const DISPUTED: usize = 10;
const TOLERATED: usize = 20;
