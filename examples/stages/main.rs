//! Where the inference fails on a random machine: which steps take how long, whether the machine's own tree is among
//! those that looks start from, or which of its sums are, and whether rules are found in it.
//!
//!     cargo run --release --example stages -- SEED INDEX [order|rules|sums|descent|shared|tree|models|all]
//!
//! `sums` looks for each sum's rule where those above are known and those below are not.
//! `descent` looks for them one after the other, from the last sum down, and asks about each; then for all else.
//! `shared` looks for rules that sums of the machine's own tree share, and `tree` then for a rule of each.
//! `models` says of every model that is come to which sums of the machine it lacks, which of its rules are other ones, and
//! whether what has been asked shows that.
//! `rules` looks for each rule of the machine from the right others, which may change on the way, and says which differences
//! of what is found show.
//!
//! For those who work on the inference. Unlike `selftest`, this knows the machine.

#[path = "../../tests/translation/mod.rs"]
mod translation;

mod differences;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Instant;

use differences::{print_unexplained, print_with, taken_over, unexplained, unexplained_with};
use mmaprobe::device::Device;
use mmaprobe::device::machine::MachineDevice;
use mmaprobe::inference::alike::{self, Sharing};
use mmaprobe::inference::evidence::{Class, Evidence, Stage};
use mmaprobe::inference::looking::Starts;
use mmaprobe::inference::nodewise::{self, Effort, Start};
use mmaprobe::inference::skeleton;
use mmaprobe::inference::{Options, Progress, asking, characterize_with, fit};
use mmaprobe::model::Model;
use mmaprobe::model::format::RoundTo;
use mmaprobe::model::tree::{Added, Normalised, Rule};
use mmaprobe_machines::{Unit, generate, words};
use mmaprobe_probes::Summand;

/// Random dot-adds that a model is validated on: as many as `selftest` takes by default.
const VALIDATED: u64 = 100_000;

/// Steps with the time at which each begins, on stderr.
struct Timed {
    began: Instant,
    /// The machine's own model, if every model that is come to is to be held beside it, on stdout.
    truth: Option<Model>,
}

impl Progress for Timed {
    fn step(&self, what: &str, _: Option<u64>) {
        eprintln!("{:7.1} s  {what}", self.began.elapsed().as_secs_f64());
    }

    fn advance(&self, _: u64) {}

    fn model(&self, what: &str, model: &Model, evidence: &Evidence) {
        let Some(truth) = &self.truth else { return };
        println!("{:7.1} s  {what}", self.began.elapsed().as_secs_f64());
        differences::print(model, truth, evidence);
    }
}

/// The tree of a model, with rules that say nothing: exact sums, the last rounded to d, those inside as they are rounded
/// or not.
fn unruled(truth: &Model) -> Model {
    let rounded = RoundTo::nearest_even(truth.d);
    let rule = |rule: &Rule| {
        let normalised = match rule.normalised {
            Normalised::To(_) => Normalised::To(rounded),
            Normalised::No { .. } => Normalised::No { exponent: None },
        };
        Rule { added: Added::Exact, normalised, ..rule.clone() }
    };
    let mut start = truth.clone();
    start.tree.rules = truth.tree.rules.iter().map(rule).collect();
    start
}

/// The summands of each sum of a model in which values meet.
fn sums(model: &Model) -> BTreeSet<BTreeSet<Summand>> {
    nodewise::sums(model).into_iter().map(|sum| sum.into_iter().flatten().collect()).collect()
}

/// Prints how many of the machine's sums any start has, and which start has the most of them and the fewest others.
fn print_nearest<'m>(truth: &Model, starts: impl Iterator<Item = &'m Model>) {
    let own = sums(truth);
    let starts: Vec<_> = starts.map(sums).collect();
    let anywhere = own.iter().filter(|sum| starts.iter().any(|start| start.contains(*sum))).count();
    let apart = starts.iter().map(|start| (own.difference(start).count(), start.difference(&own).count()));
    let nearest = apart.enumerate().min_by_key(|(_, (missing, wrong))| missing + wrong);
    if let Some((at, (missing, wrong))) = nearest {
        println!(
            "  {anywhere} of the machine's {} sums are in some start; number {at} lacks {missing} and has {wrong} others",
            own.len()
        );
    }
}

/// Prints what a rule that was found, in the place of one of the machine's, leaves unexplained where all else is right: which of
/// the differences show, and which would be found in one turn.
fn print_differences(evidence: &Evidence, truth: &Model, place: usize, found: &Rule) {
    let known = &truth.tree.rules[place];
    let contradicted = |changed: &Rule| unexplained_with(evidence, truth, place, changed);
    for (what, changed) in taken_over(found, known) {
        println!("    {} with the right {what}", contradicted(&changed));
    }
    for (what, changed) in taken_over(known, found) {
        println!("    {} where all but {what} is right", contradicted(&changed));
    }
}

/// Prints a rule that was found and the machine's, and what that leaves unexplained in its place.
fn print_beside(evidence: &Evidence, truth: &Model, place: usize, found: &Rule) {
    println!("  truth: {:?}", truth.tree.rules[place]);
    println!("  found: {found:?}");
    print_differences(evidence, truth, place, found);
}

/// Looks for each rule of the machine from the right others, and prints those that are not found.
fn rules_alone(evidence: &Evidence, truth: &Model, timed: &Timed) {
    let guesses = unruled(truth).tree.rules;
    let mut missed = 0;
    for (index, guess) in guesses.into_iter().enumerate() {
        let mut start = truth.clone();
        let known = std::mem::replace(&mut start.tree.rules[index], guess);
        let before = unexplained(evidence, &start);
        let found = nodewise::fit_shared(evidence, start, Start::Known, Effort::Usual);
        timed.step(
            &format!("rule {index} alone: {} of {before} answers unexplained", found.contradicted),
            None,
        );
        if found.contradicted > 0 {
            missed += 1;
            println!("  truth {index}: {known:?}");
            let Some(rule) = found.model.tree.rules.get(index) else { continue };
            println!("  found {index}: {rule:?}");
            println!(
                "  {} unexplained with the machine's other rules",
                unexplained_with(evidence, truth, index, rule)
            );
            print_differences(evidence, truth, index, rule);
        }
    }
    println!(
        "{missed} of {} rules leave answers unexplained when looked for from the right others",
        truth.tree.rules.len()
    );
}

/// Looks for the rule of each sum of the machine where the rules of the sums above are right and those below are guesses, and
/// prints what each leaves of the answers about it, and what the right one does.
fn sum_by_sum(evidence: &Evidence, truth: &Model) {
    let (truth, order) = nodewise::individual(truth);
    let guesses = unruled(&truth).tree.rules;
    let plain = fit::relevant(evidence, Stage { class: Class::Plain, ..Stage::LAST });
    let mut missed = 0;
    for (place, &rule) in order.iter().enumerate() {
        let mut start = truth.clone();
        for &below in &order[place..] {
            start.tree.rules[below] = guesses[below].clone();
        }
        let mut right = start.clone();
        right.tree.rules[rule] = truth.tree.rules[rule].clone();
        let began = Instant::now();
        let (found, left) = nodewise::fit_first(evidence, start, order.clone(), place..place + 1);
        let took = began.elapsed().as_secs_f64();
        let (_, of_right) = nodewise::fit_first(evidence, right, order.clone(), place..place + 1);
        // What it gets wrong about values that come of other sums shows where all else is right.
        let mut other = truth.clone();
        other.tree.rules[rule] = found.tree.rules[rule].clone();
        let shown = fit::contradicted(&other, plain.iter().copied(), usize::MAX);
        println!(
            "sum {place}, rule {rule}: {} of {} left in {took:.1} s, {} by the right one; {shown} of all plain where all else is right",
            left.contradicted, left.about, of_right.contradicted
        );
        if left.contradicted + shown > 0 {
            missed += 1;
            print_beside(evidence, &truth, rule, &found.tree.rules[rule]);
        }
    }
    println!("{missed} of {} sums are not explained", order.len());
}

/// Looks for the rules of the machine's own tree from the last sum down, asking about each.
fn descent(evidence: &mut Evidence, truth: &Model, seed: u64, timed: &Timed) {
    let start = unruled(truth);
    timed.step("rules for the machine's tree, asking about each", None);
    let (truth, order) = nodewise::individual(truth);
    let found = nodewise::descent::descend(evidence, &start, seed, timed).expect("a machine answers");
    let Some(found) = found else { return println!("given up") };
    timed.step(&format!("{} of {} answers left", found.contradicted, evidence.answers.len()), None);
    let plain = fit::relevant(evidence, Stage { class: Class::Plain, ..Stage::LAST });
    for (place, &rule) in order.iter().enumerate() {
        let mut other = truth.clone();
        other.tree.rules[rule] = found.model.tree.rules[rule].clone();
        let shown = fit::contradicted(&other, plain.iter().copied(), usize::MAX);
        println!("sum {place}, rule {rule}: {shown} of all plain where all else is right");
        if shown > 0 {
            print_beside(evidence, &truth, rule, &found.model.tree.rules[rule]);
        }
    }
    for effort in [Effort::Quick, Effort::Usual] {
        let fitted = nodewise::fit(evidence, &found.model, Start::Known, effort);
        timed.step(&format!("{effort:?}: {} left", fitted.contradicted), None);
        print_unexplained(evidence, &fitted.model);
        if fitted.contradicted == 0 {
            break;
        }
    }
    println!("{} rounds, {} dot-adds", evidence.rounds, evidence.dot_adds);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: stages SEED INDEX [order|rules|sums|descent|shared|tree|models|all]";
    let [seed, index] = [0, 1].map(|at| arguments.get(at).and_then(|text| text.parse().ok()).expect(usage));
    let what = arguments.get(2).map_or("all", String::as_str);
    let machine = generate::machine(seed, index);
    println!("{}", words::describe(&machine));
    let truth = translation::model(&machine);
    let device = MachineDevice::new(&format!("machine {index} of seed {seed}"), Unit::sound(machine));
    let instruction = &device.instructions()[0];
    let options = Options { validate: VALIDATED, seed: 1 };
    let began = Instant::now();
    let timed = Timed { began, truth: (what == "models").then(|| truth.clone()) };
    if ["all", "models"].contains(&what) {
        let mut evidence = Evidence::new(&device, instruction);
        let finding = characterize_with(&mut evidence, &options, &timed).expect("a machine answers");
        timed.step("the end", None);
        println!("{} rounds, {} dot-adds", finding.rounds, finding.dot_adds);
        println!("{} million answers held against models", evidence.work().spent() / 1_000_000);
        let contradicted = unexplained(&evidence, &truth);
        println!("the machine's own model is contradicted by {contradicted}: {:?}", finding.conclusion);
        return;
    }
    let mut evidence = Evidence::new(&device, instruction);
    let answers = &mut evidence;
    asking::first(answers, options.seed).expect("a machine answers");
    let ControlFlow::Continue(mut outline) = asking::outline(answers, &timed).expect("a machine answers")
    else {
        panic!("a sound machine is distrusted");
    };
    let report = |stage: &str, evidence: &Evidence, outline: &asking::Outline| {
        let starts = Starts { evidence, outline };
        let all: Vec<_> = starts.structures().collect();
        let at = all.iter().position(|(_, start)| start.tree.has_the_same_sums(&truth.tree));
        println!(
            "{stage}: {} starts; the machine's tree is {}",
            all.len(),
            at.map_or("not among them".to_string(), |at| format!("number {at}, {}", all[at].0))
        );
        print_nearest(&truth, all.iter().map(|(_, start)| start));
        println!("  masks: {}", outline.order.skeleton);
        outline.exchanged.iter().for_each(|order| println!("  exchanged: {order}"));
        let regular = mmaprobe::inference::regular::Regular::of(evidence.signature());
        outline
            .exchanged
            .iter()
            .filter_map(|order| regular.nearest(order, 5))
            .for_each(|order| println!("  regular: {order}"));
        let finer = outline.exchanged.iter().flat_map(|order| regular.finer(order));
        let finer = skeleton::distinct(finer, usize::MAX);
        finer.iter().for_each(|order| println!("  finer: {order}"));
        outline.closer.iter().for_each(|order| println!("  closer: {order}"));
        println!("  {} rounds, {} dot-adds", evidence.rounds, evidence.dot_adds);
    };
    report("masks", answers, &outline);
    timed.step("a closer look", None);
    asking::closer(answers, &mut outline, options.seed).expect("a machine answers");
    asking::each_sum(answers, &outline, options.seed).expect("a machine answers");
    report("a closer look", answers, &outline);
    if what == "order" {
        return;
    }
    println!("{} answers; {} rules in the machine's tree", answers.answers.len(), truth.tree.rules.len());
    if what == "rules" {
        return rules_alone(answers, &truth, &timed);
    }
    if what == "sums" {
        return sum_by_sum(answers, &truth);
    }
    if what == "descent" {
        return descent(answers, &truth, options.seed, &timed);
    }
    let is_shared = nodewise::individual(&truth).1.len() > truth.tree.rules.len();
    for sharing in [Sharing::Inside, Sharing::ByKind].into_iter().filter(|_| is_shared) {
        let Some(start) = alike::with_shared_rules(&unruled(&truth), sharing) else { continue };
        for effort in [Effort::Quick, Effort::Usual] {
            timed
                .step(&format!("rules that sums of the machine's tree share, {sharing:?}, {effort:?}"), None);
            let found = nodewise::fit_shared(answers, start.clone(), Start::Guessed, effort);
            println!("{sharing:?}, {effort:?}: {} answers unexplained", found.contradicted);
            if found.contradicted == 0 {
                break;
            }
            if what == "shared" {
                print_rules(&found.model, &truth);
            }
        }
    }
    if what == "shared" {
        return;
    }
    for effort in [Effort::Quick, Effort::Usual] {
        timed.step(&format!("rules for the machine's tree, {effort:?}"), None);
        let found = nodewise::fit(answers, &unruled(&truth), Start::Guessed, effort);
        println!("{effort:?}: {} answers unexplained", found.contradicted);
        if found.contradicted == 0 {
            break;
        }
        print_unexplained(answers, &found.model);
        let improved = fit::improve(answers, found, Stage::LAST, &answers.budget(20_000_000));
        println!("  {} after turns of all rules", improved.contradicted);
        print_unexplained(answers, &improved.model);
        for node in improved.model.tree.nodes.iter().enumerate() {
            println!("  {node:?}");
        }
        print_rules(&improved.model, &truth);
        print_to_blame(answers, &improved.model, &truth);
    }
    timed.step("the end", None);
}

/// Prints what is left unexplained where a rule that was found, or one thing about it, is the machine's own.
fn print_to_blame(evidence: &Evidence, found: &Model, truth: &Model) {
    let found = nodewise::individual(found).0;
    let truth = nodewise::individual(truth).0;
    // Rules, and alignments in them, go by place.
    if found.tree.nodes != truth.tree.nodes {
        return println!("  other sums than the machine's, or in another order");
    }
    for (index, own) in truth.tree.rules.iter().enumerate() {
        print_with(evidence, &found, index, (index, own));
    }
    // One after the other, the last sum's first.
    let mut model = found.clone();
    for index in (0..truth.tree.rules.len()).rev() {
        model.tree.rules[index] = truth.tree.rules[index].clone();
        println!("  {} with the machine's rules from {index} on", unexplained(evidence, &model));
    }
}

/// Prints what a model that was found does before it adds, its rules, and the machine's.
fn print_rules(found: &Model, truth: &Model) {
    for (what, model) in [("found", found), ("truth", truth)] {
        let operands = [&model.a, &model.b, &model.c];
        println!(
            "  {what}: {:?}, {:?}, {:?}",
            operands.map(|read| read.subnormals),
            model.product,
            model.nan
        );
        for (index, rule) in model.tree.rules.iter().enumerate() {
            println!("  {what} {index}: {rule:?}");
        }
    }
}
