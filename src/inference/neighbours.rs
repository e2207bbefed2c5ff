//! Orders that differ in one place from that of a model which explains what is asked about its last sums.
//!
//! Rules that are found [sum by sum](super::nodewise), from the root down, explain every answer about the sums above the
//! first whose summands are not those of the device: there, some of its summands meet each other in a sum of their
//! own, or what meets there is in no such sum. So only that sum is changed. Which summands are likely to be in a sum of
//! their own, answers tell: those in which they meet are left unexplained, and others are not, or the other way round.
//! Sums of one summand, and what is added to zero, are left out, and have to be found again.

use mmaprobe_model::Model;
use mmaprobe_model::scalar::Scalar;
use mmaprobe_model::tree::{Added, Fused, Node, NodeId, Normalised, Rule, RuleId};

use super::depth::{self, Depths};
use super::evidence::{self, Class, Evidence};
use super::nodewise::Unexplained;
use super::skeleton::Skeleton;
use super::structure::{self, Structure};
use super::{fit, knobs, nodewise};

mod orders;

use orders::{Order, Summands};

/// One of so many answers about a sum may be unexplained for other reasons than what it adds.
const UNEXPLAINED: usize = 50;

/// Summands of an answer that says where they meet, at most.
const MEETING: usize = 3;

/// Orders that differ in one sum, for which its rule is looked for.
const LOOKED_FOR: usize = 24;

/// An order that differs from that of a model in one sum.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// With rules that were found for that sum, for those that it is in, and for a new one in it; all others are as in the
    /// model, or guesses.
    pub model: Model,
    /// What those of that sum and the new one leave unexplained.
    pub unexplained: Unexplained,
}

impl Neighbour {
    /// Whether they explain nearly all.
    pub fn is_likely(&self) -> bool {
        let Unexplained { contradicted, about } = self.unexplained;
        about > 0 && contradicted * UNEXPLAINED <= about
    }

    /// The part that they leave unexplained.
    fn part(&self) -> f64 {
        self.unexplained.contradicted as f64 / self.unexplained.about.max(1) as f64
    }
}

/// Those that differ in one sum: the first from the root down about which many answers contradict a model, or where that
/// adds only two summands, the one around it. The likeliest first; none if there is no such sum.
pub fn of(evidence: &Evidence, model: &Model) -> Vec<Neighbour> {
    let (model, order) = nodewise::individual(model);
    let Some(Wrong { sum, told }) = first_wrong(evidence, &model, &order) else { return Vec::new() };
    let Some(whole) = Skeleton::of(&model, model.tree.nodes.len() - 1) else { return Vec::new() };
    let is_product = |child: &NodeId| matches!(model.tree.nodes[*child], Node::Product(_));
    let scaled = model.tree.nodes.iter().filter(|node| matches!(node, Node::Scaled { .. }));
    if !scaled.flat_map(Node::children).all(is_product) {
        // Which sums are scaled would not be known.
        return Vec::new();
    }
    let around = orders::around(&whole, &sum);
    let changing = std::iter::once(sum).chain(around).map(|sum| (orders::differing(&whole, &sum), sum));
    let Some((differing, sum)) = changing.into_iter().find(|(differing, _)| !differing.is_empty()) else {
        return Vec::new();
    };
    let likely = |order: Order| (order.new.as_ref().map_or(1.0, |new| difference(&told, new)), order);
    let mut changed: Vec<(f64, Order)> = differing.into_iter().map(likely).collect();
    // A stable sort.
    changed.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    changed.truncate(LOOKED_FOR);
    let mut found: Vec<Neighbour> = Vec::new();
    for (_, order) in &changed {
        if evidence.work().is_spent() {
            break;
        }
        found.push(ruled(evidence, &model, &sum, order));
    }
    found.sort_by(|one, other| one.part().total_cmp(&other.part()));
    found
}

/// A sum about which many answers contradict a model.
struct Wrong {
    sum: Summands,
    /// What these and other answers about it tell.
    told: Vec<Told>,
}

/// The first from the root down, in a model whose sums have rules of their own, in this order.
fn first_wrong(evidence: &Evidence, model: &Model, order: &[RuleId]) -> Option<Wrong> {
    let depths = Depths::new(model, order, depth::unchanged(evidence));
    let mut executor = Scalar::new(model).expect("a fitted model can be executed");
    let signature = evidence.signature();
    let mut about: Vec<Vec<Told>> = order.iter().map(|_| Vec::new()).collect();
    let plain = evidence.answers.iter().filter(|answered| answered.class == Class::Plain);
    for answered in plain.filter(|answered| (2..=MEETING).contains(&answered.summands)) {
        if let Some(of_sum) = about.get_mut(depths.of(signature, answered)) {
            let summands = evidence::summands(signature, &answered.question).collect();
            of_sum.push(Told { summands, is_explained: fit::explains(&mut executor, answered) });
        }
    }
    let is_wrong = |told: &[Told]| {
        let unexplained = told.iter().filter(|told| !told.is_explained).count();
        unexplained * UNEXPLAINED > told.len()
    };
    let (mut told, rule) = about.into_iter().zip(order).find(|(told, _)| is_wrong(told))?;
    let adds = |node: &Node| matches!(node, Node::Sum { rule: of, .. } if of == rule);
    let node = model.tree.nodes.iter().position(adds)?;
    let sum = orders::summands(&Skeleton::of(model, node)?);
    // What is beside the sum does not meet in it.
    told.iter_mut().for_each(|told| told.summands.retain(|summand| sum.contains(summand)));
    Some(Wrong { sum, told })
}

/// An order with rules that are looked for, for the sum that is changed, the sums that it is in and the new one in it; all else
/// is known from a model.
fn ruled(evidence: &Evidence, model: &Model, wrong: &Summands, changed: &Order) -> Neighbour {
    let plain = structure::start(evidence.signature(), &changed.order, Structure::Plain);
    let (start, order) = nodewise::individual(&plain);
    let [known, own] = [model, &start].map(sums);
    let mut next = Model { tree: start.tree.clone(), ..model.clone() };
    let mut first: Vec<RuleId> = Vec::new();
    // How many of the first are sums that the changed one is in.
    let mut above = 0;
    for &rule in &order {
        let Some(sum) = own.iter().find(|sum| sum.rule == rule) else { continue };
        let is_new = Some(&sum.summands) == changed.new.as_ref();
        let is_changed = sum.summands == *wrong;
        let is_above = !is_changed && wrong.is_subset(&sum.summands);
        if is_above || is_changed || is_new {
            first.push(rule);
        }
        above += usize::from(is_above);
        let is_same = |other: &&Sum| (&other.summands, other.children) == (&sum.summands, sum.children);
        if let Some(same) = known.iter().find(is_same)
            && !is_changed
            && !is_new
        {
            let known = &model.tree.rules[same.rule];
            // A sum that is alone in the last one need not round as that does.
            let rounds_to_d = matches!(known.normalised, Normalised::To(round) if round.format == model.d);
            if rule != order[0] || rounds_to_d {
                next.tree.rules[rule] = in_the_places_of(sum, known, same);
            }
        }
    }
    let places = above..first.len();
    let others: Vec<RuleId> = order.into_iter().filter(|rule| !first.contains(rule)).collect();
    let (model, unexplained) = nodewise::fit_first(evidence, next, [first, others].concat(), places);
    Neighbour { model, unexplained }
}

/// A sum in which summands meet.
struct Sum {
    /// What is in each of its children in which there is any, with their places.
    parts: Vec<(usize, Summands)>,
    /// All of them.
    summands: Summands,
    /// How many children it has, zeros among them.
    children: usize,
    rule: RuleId,
}

/// The sums of a model in which summands meet.
fn sums(model: &Model) -> Vec<Sum> {
    nodewise::meetings(model)
        .into_iter()
        .map(|meeting| Sum {
            summands: meeting.sum.concat().into_iter().collect(),
            parts: (meeting.children.iter().zip(&meeting.sum))
                .map(|((place, _), part)| (*place, part.iter().copied().collect()))
                .collect(),
            children: meeting.number,
            rule: meeting.rule,
        })
        .collect()
}

/// The rule of another sum of the same summands, whose children may be in other places, for this one.
fn in_the_places_of(sum: &Sum, rule: &Rule, other: &Sum) -> Rule {
    let Added::Fused(fused) = &rule.added else { return rule.clone() };
    let part_at = |place: usize| sum.parts.iter().find(|(at, _)| *at == place).map(|(_, part)| part);
    let alignment = |place: usize| {
        let part = part_at(place);
        let same = other.parts.iter().find(|(_, other)| Some(other) == part);
        *fused.alignment_of(same.map_or(place, |(there, _)| *there))
    };
    let alignment = knobs::alignment_of_each((0..sum.children).map(alignment).collect());
    let added = Added::Fused(Fused { alignment, ..fused.clone() });
    Rule { added, ..rule.clone() }
}

/// What an answer about a sum tells.
struct Told {
    /// The summands that meet.
    summands: Summands,
    /// Whether the model explains it.
    is_explained: bool,
}

/// How much the part of answers that are explained differs between those in which only these summands meet and those in
/// which others do, too.
fn difference(told: &[Told], summed: &Summands) -> f64 {
    let (inside, outside): (Vec<&Told>, Vec<&Told>) =
        told.iter().partition(|told| told.summands.is_subset(summed));
    let explained = |some: &[&Told]| {
        let explained = some.iter().filter(|told| told.is_explained).count();
        (!some.is_empty()).then(|| explained as f64 / some.len() as f64)
    };
    match (explained(&inside), explained(&outside)) {
        (Some(inside), Some(outside)) => (inside - outside).abs(),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use mmaprobe_machines::{Unit, generate};
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::FP32;
    use mmaprobe_probes::Summand;

    use super::*;
    use crate::device::machine::MachineDevice;
    use crate::inference::asking;
    use crate::inference::nodewise::{Effort, Start};

    /// Of machine 134 of seed 521, no question about the order shows that (p1 p3) and (p5 p7) have a sum of their own: one
    /// that cuts its summands off in four ways.
    #[test]
    fn the_order_of_a_sum_is_found_with_its_rule() {
        let device = MachineDevice::new("a machine", Unit::sound(generate::machine(521, 134)));
        let (mut evidence, outline) = asking::of_sound(&device, 1);
        asking::each_sum(&mut evidence, &outline, 1).expect("it answers");
        let shown = &outline.exchanged[0];
        assert_eq!(shown.to_string(), "(c ((((p0 p2) (p4 p6)) (p1 p3)) (p5 p7)))");
        let start = structure::start(evidence.signature(), shown, Structure::Plain);
        let found = nodewise::fit(&evidence, &start, Start::Guessed, Effort::Quick);
        assert!(found.contradicted * 10 > evidence.answers.len(), "{}", found.contradicted);
        let [first, others @ ..] = &of(&evidence, &found.model)[..] else { panic!("there are other orders") };
        let order = Skeleton::of(&first.model, first.model.tree.nodes.len() - 1).expect("it has summands");
        assert_eq!(order.to_string(), "(c (((p1 p3) (p5 p7)) ((p0 p2) (p4 p6))))");
        // What rules for the last sums leave unexplained tells it from all others.
        assert!(first.is_likely(), "{:?}", first.unexplained);
        assert!(
            others.len() > 3 && others.iter().all(|other| other.part() > 10.0 * first.part()),
            "{others:?}"
        );
    }

    #[test]
    fn summands_are_aligned_as_before_wherever_they_stand() {
        let c = || Summands::from([Summand::C]);
        let products = || Summands::from([0, 1].map(Summand::Product));
        let sum = |parts: [Summands; 2]| Sum {
            summands: parts.iter().flatten().copied().collect(),
            parts: parts.into_iter().enumerate().collect(),
            children: 2,
            rule: 0,
        };
        let [one, other] = [sum([c(), products()]), sum([products(), c()])];
        let fused = |fraction_bits: &[u32]| {
            let of = |&bits: &u32| *Fused::uniform(bits, Rounding::TowardZero).alignment_of(0);
            let alignment = fraction_bits.iter().map(of).collect();
            Added::Fused(Fused { alignment, ..Fused::uniform(0, Rounding::TowardZero) })
        };
        let rule = |added| Rule { added, ..Rule::ieee(FP32) };
        let own = rule(fused(&[13, 24]));
        assert_eq!(in_the_places_of(&one, &own, &one), own);
        assert_eq!(in_the_places_of(&other, &own, &one), rule(fused(&[24, 13])));
        let alike = rule(fused(&[24]));
        assert_eq!(in_the_places_of(&other, &alike, &one), alike);
    }
}
