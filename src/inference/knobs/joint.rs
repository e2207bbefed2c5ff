//! Several things turned at once, where each alone may be contradicted.

use std::ops::RangeInclusive;

use mmaprobe_model::format::{self, RoundTo};
use mmaprobe_model::tree::{Added, Alignment, Exponents, Far, Fused, Model, Node, Normalised, Rule, RuleId};
use mmaprobe_model::{Rounding, Shared};
use mmaprobe_probes::Signature;

use super::rule::{MOST_DISTANCE, MOST_FRACTION_BITS, ZEROS, of_results};
use super::words::sum_words;
use super::{Knob, Scope, Shape, Turned};

/// Models that differ from this one in several things about one aligned sum at once: the fraction bits
/// and the rounding of all summands, the first, or the others, `closely` also with the other kind of
/// exponents; and, for F within two bits, which zeros count. Each alone may be contradicted where all
/// together are not.
pub fn turn_alignments(model: &Model, closely: bool, scope: Scope) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (rule, own) in rules(model, scope) {
        // An exact sum is like an aligned one of any width.
        let wide = Fused::uniform(MOST_FRACTION_BITS, Rounding::TowardZero);
        let (fused, was_exact) = match &own.added {
            Added::Fused(fused) => (fused, false),
            Added::Exact => (&wide, true),
        };
        let (first, rest) = (fused.alignment[0], *fused.alignment_of(1));
        let mut push = |alignment: Vec<Alignment>, exponents, zeros, choice: String| {
            let mut other = model.clone();
            other.tree.rules[rule].added =
                Added::Fused(Fused { alignment: alignment.into(), exponents, zeros, ..fused.clone() });
            let knob = Knob { what: "alignment as a whole".to_string(), rule: Some(rule) };
            turned.push(Turned { knob, choice, model: other });
        };
        for exponents in [Exponents::Raw, Exponents::Normalised] {
            let exponent_words = if exponents == Exponents::Raw { "raw" } else { "normalised" };
            if !closely && exponents != fused.exponents {
                continue;
            }
            for fraction_bits in 0..=MOST_FRACTION_BITS {
                for &rounding in if was_exact { &INSTEAD_OF_EXACT[..] } else { &Rounding::EVERY[..] } {
                    let changed = |alignment| Alignment { fraction_bits, rounding, ..alignment };
                    let words = |which: &str| {
                        format!("{which}F = {fraction_bits}, {rounding}, exponents {exponent_words}")
                    };
                    push(vec![changed(first)], exponents, fused.zeros, words(""));
                    if !was_exact && Shape::of(model, rule).arity >= 2 {
                        push(vec![changed(first), rest], exponents, fused.zeros, words("the first: "));
                        push(vec![first, changed(rest)], exponents, fused.zeros, words("the others: "));
                    }
                }
            }
            if was_exact {
                continue;
            }
            for difference in -2i32..=2 {
                for rounding in std::iter::once(None).chain(Rounding::EVERY.map(Some)) {
                    for (zeros, zero_words) in ZEROS {
                        let mut alignment = fused.alignment.to_vec();
                        for alignment in &mut alignment {
                            let bits = alignment.fraction_bits.saturating_add_signed(difference);
                            alignment.fraction_bits = bits.min(MOST_FRACTION_BITS);
                            alignment.rounding = rounding.unwrap_or(alignment.rounding);
                        }
                        let each =
                            alignment.iter().map(|a| format!("F = {}, {}", a.fraction_bits, a.rounding));
                        let all = each.collect::<Vec<_>>().join(" | ");
                        let choice = format!("{all}, exponents {exponent_words}, zeros {zero_words}");
                        push(alignment, exponents, zeros, choice);
                    }
                }
            }
        }
    }
    turned
}

/// Roundings of a sum that may be aligned where it seems exact: one that drops what is lost, one that makes as
/// much of it as any, and one between.
const INSTEAD_OF_EXACT: [Rounding; 3] =
    [Rounding::TowardZero, Rounding::AwayFromZero, Rounding::NearestTiesToEven];

/// Models in which one summand of an aligned sum, by its position, keeps another number of fraction bits
/// than it does or is rounded otherwise.
pub fn turn_each_alignment(model: &Model, scope: Scope) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (rule, own) in rules(model, scope) {
        let Added::Fused(fused) = &own.added else { continue };
        let arity = Shape::of(model, rule).arity;
        for position in 0..arity {
            let mut push = |alignment: Alignment, choice: String| {
                let mut other = model.clone();
                other.tree.rules[rule].added = Added::Fused(aligned_at(fused, arity, position, alignment));
                let knob = Knob { what: format!("alignment of summand {position}"), rule: Some(rule) };
                turned.push(Turned { knob, choice, model: other });
            };
            let own = *fused.alignment_of(position);
            for fraction_bits in 0..=MOST_FRACTION_BITS {
                push(Alignment { fraction_bits, ..own }, format!("F = {fraction_bits}"));
            }
            for rounding in Rounding::EVERY {
                push(Alignment { rounding, ..own }, rounding.to_string());
            }
        }
    }
    turned
}

/// How each summand is aligned, the first ones first, as a sum says it: its last alignment is that of all that follow.
pub fn alignment_of_each(mut each: Vec<Alignment>) -> Shared<Alignment> {
    while each.len() > 1 && each[each.len() - 1] == each[each.len() - 2] {
        each.pop();
    }
    each.into()
}

/// The sum of so many summands with the one at this position aligned so, and all others as they are.
pub fn aligned_at(fused: &Fused, arity: usize, position: usize, alignment: Alignment) -> Fused {
    let mut changed = fused.clone();
    let last = *fused.alignment_of(position.max(fused.alignment.len()));
    changed.alignment.resize((position + 2).min(arity).max(fused.alignment.len()), last);
    changed.alignment[position] = alignment;
    changed
}

/// Models in which several things about one aligned sum are different that mostly show together: which zeros have an
/// exponent, of which kind the exponents are, and a sticky bit. What is cut off below a zero that has an exponent
/// shows only by its sticky bit.
pub fn turn_zeros(model: &Model, scope: Scope) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (rule, own) in rules(model, scope) {
        let Added::Fused(fused) = &own.added else { continue };
        for exponents in [Exponents::Raw, Exponents::Normalised] {
            for sticky in [false, true] {
                for (zeros, zero_words) in ZEROS {
                    let changed = Fused { exponents, sticky, zeros, ..fused.clone() };
                    let differing = usize::from(exponents != fused.exponents)
                        + usize::from(sticky != fused.sticky)
                        + usize::from(zeros != fused.zeros);
                    if differing < 2 {
                        continue;
                    }
                    let mut other = model.clone();
                    other.tree.rules[rule].added = Added::Fused(changed);
                    let exponents = if exponents == Exponents::Raw { "raw" } else { "normalised" };
                    let sticky = if sticky { "a" } else { "no" };
                    let choice = format!("{exponents}, zeros {zero_words}, {sticky} sticky bit");
                    let knob = Knob { what: "exponents as a whole".to_string(), rule: Some(rule) };
                    turned.push(Turned { knob, choice, model: other });
                }
            }
        }
    }
    turned
}

/// Summands of a sum that may each be aligned in a way of its own, from the first.
const POSITIONS: usize = 4;

/// Models in which one of the first summands of an aligned sum, by its position, keeps another number of
/// fraction bits and is rounded otherwise, both at once.
pub fn turn_positions(model: &Model) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (rule, own) in rules(model, Scope::All) {
        let Added::Fused(fused) = &own.added else { continue };
        let arity = Shape::of(model, rule).arity;
        for position in 0..arity.min(POSITIONS) {
            let own = *fused.alignment_of(position);
            for fraction_bits in 0..=MOST_FRACTION_BITS {
                for rounding in Rounding::EVERY {
                    let alignment = Alignment { fraction_bits, rounding, ..own };
                    let mut other = model.clone();
                    other.tree.rules[rule].added =
                        Added::Fused(aligned_at(fused, arity, position, alignment));
                    let knob = Knob { what: format!("alignment of summand {position}"), rule: Some(rule) };
                    let choice = format!("F = {fraction_bits}, {rounding}");
                    turned.push(Turned { knob, choice, model: other });
                }
            }
        }
    }
    turned
}

/// Models in which a sum that loses bits loses them otherwise: exact, and rounded to a format, or normalised, where it was
/// aligned; aligned, and not normalised, where it was rounded. Nearly all answers are the same, but for those
/// at the ends of the range.
pub fn turn_kind(model: &Model, signature: &Signature, scope: Scope) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (rule, own) in rules(model, scope) {
        let mut push = |added: Added, normalised: Normalised, choice: String| {
            let mut other = model.clone();
            other.tree.rules[rule] = Rule { added, normalised, ..own.clone() };
            let knob = Knob { what: "rounded or aligned".to_string(), rule: Some(rule) };
            turned.push(Turned { knob, choice, model: other });
        };
        let is_root = Shape::of(model, rule).is_root;
        if let Added::Fused(fused) = &own.added {
            let kept = fused.alignment_of(1).fraction_bits;
            for format in of_results(signature, is_root) {
                let mut bits = vec![format.fraction_bits, kept.min(format.fraction_bits)];
                bits.dedup();
                for (fraction_bits, rounding) in
                    bits.into_iter().flat_map(|bits| Rounding::EVERY.map(|rounding| (bits, rounding)))
                {
                    let round = RoundTo { fraction_bits, rounding, ..RoundTo::nearest_even(format) };
                    let choice = format!("exact, rounded {rounding} to {fraction_bits} bits of {format}");
                    push(Added::Exact, Normalised::To(round), choice);
                }
            }
            // Nothing may be lost by that, and still the next sum aligns to another exponent.
            if matches!(own.normalised, Normalised::No { .. }) && !is_root {
                let all = RoundTo::nearest_even(format::FP64);
                push(own.added.clone(), Normalised::To(all), "normalised, to fp64".to_string());
            }
        }
        let Normalised::To(round) = &own.normalised else { continue };
        let (bits, rounding) = (round.fraction_bits, round.rounding);
        let fused = Fused::uniform(bits, rounding);
        if !is_root {
            let choice = format!("aligned, F = {bits}, {rounding}, not normalised");
            push(Added::Fused(fused.clone()), Normalised::No { exponent: None }, choice);
        }
        if bits < round.format.fraction_bits {
            for exponents in [Exponents::Raw, Exponents::Normalised] {
                for last in [Rounding::NearestTiesToEven, Rounding::TowardZero] {
                    let kind = if exponents == Exponents::Raw { "raw" } else { "normalised" };
                    let choice =
                        format!("aligned, F = {bits}, {rounding}, {kind} exponents, then rounded {last}");
                    let fraction_bits = round.format.fraction_bits;
                    let all = RoundTo { fraction_bits, rounding: last, ..*round };
                    push(Added::Fused(Fused { exponents, ..fused.clone() }), Normalised::To(all), choice);
                }
            }
        }
    }
    turned
}

/// Models in which summands that are far below the largest are rounded otherwise: the first summand, the
/// others or all, from every distance on, in every way; and as those nearer are.
pub fn turn_far(model: &Model, scope: Scope) -> Vec<Turned> {
    turn_at_distances(model, scope, Side::Far, |_| 0..=MOST_DISTANCE)
}

/// Models in which summands that are no more than a distance below the largest are rounded otherwise, in the same ways.
pub fn turn_not_far(model: &Model) -> Vec<Turned> {
    turn_at_distances(model, Scope::All, Side::NotFar, |_| 0..=MOST_DISTANCE)
}

/// Distances that differ by so much from a rule's own are near it.
const NEAR: i32 = 2;

/// As [`turn_far`] and [`turn_not_far`], of rules that round summands far below otherwise, at about the distance of the first
/// that they do.
pub fn turn_near_far(model: &Model) -> Vec<Turned> {
    let near = |fused: &Fused| match fused.alignment.iter().find_map(|alignment| alignment.far) {
        Some(far) => (far.distance - NEAR).max(0)..=(far.distance + NEAR).min(MOST_DISTANCE),
        None => RangeInclusive::new(1, 0),
    };
    let turned = [Side::Far, Side::NotFar].map(|side| turn_at_distances(model, Scope::All, side, near));
    turned.into_iter().flatten().collect()
}

/// On which side of a distance summands are rounded otherwise.
#[derive(Clone, Copy)]
enum Side {
    Far,
    NotFar,
}

impl Side {
    /// A summand that is rounded so on this side of a distance, and as before on the other. What is rounded in the same
    /// way on both has no distance.
    fn rounded(self, own: Alignment, distance: i32, rounding: Rounding) -> Alignment {
        let (near, far) = match self {
            Side::Far => (own.rounding, rounding),
            Side::NotFar => (rounding, own.far.map_or(own.rounding, |far| far.rounding)),
        };
        let beyond = (near != far).then_some(Far { distance, rounding: far });
        Alignment { rounding: near, far: beyond, ..own }
    }

    /// What comes before "than so many below".
    fn words(self) -> &'static str {
        match self {
            Side::Far => "more",
            Side::NotFar => "no more",
        }
    }
}

fn turn_at_distances(
    model: &Model,
    scope: Scope,
    side: Side,
    distances: impl Fn(&Fused) -> RangeInclusive<i32>,
) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (rule, own) in rules(model, scope) {
        let Added::Fused(fused) = &own.added else { continue };
        let mut own = fused.alignment.to_vec();
        if own.len() == 1 {
            own.push(own[0]);
        }
        let places = own.len();
        let mut targets = vec![
            ("the first".to_string(), 0..1),
            ("the others".to_string(), 1..places),
            ("all".to_string(), 0..places),
        ];
        if places > 2 {
            targets.extend((1..places).map(|place| (format!("summand {place}"), place..place + 1)));
        }
        for (what, targets) in targets {
            for distance in distances(fused) {
                for rounding in Rounding::EVERY {
                    let mut alignment = own.clone();
                    for own in &mut alignment[targets.clone()] {
                        *own = side.rounded(*own, distance, rounding);
                    }
                    // What is said of the last holds for all after it.
                    while let [.., x, y] = alignment[..]
                        && x == y
                    {
                        alignment.pop();
                    }
                    let mut other = model.clone();
                    other.tree.rules[rule].added =
                        Added::Fused(Fused { alignment: alignment.into(), ..fused.clone() });
                    let knob = Knob { what: "far summands as a whole".to_string(), rule: Some(rule) };
                    let than = side.words();
                    let choice = format!("{what}, rounded {rounding} {than} than {distance} below");
                    turned.push(Turned { knob, choice, model: other });
                }
            }
        }
    }
    turned
}

/// Models in which the sums of one rule are added as those of another in everything.
pub fn turn_alike(model: &Model) -> Vec<Turned> {
    let rules = &model.tree.rules;
    let pairs = (0..rules.len()).flat_map(|one| (0..rules.len()).map(move |other| (one, other)));
    pairs
        .filter(|&(one, other)| rules[one] != rules[other])
        .map(|(one, other)| {
            let mut changed = model.clone();
            changed.tree.rules[one] = rules[other].clone();
            let knob = Knob { what: "everything".to_string(), rule: Some(one) };
            let choice = format!("as {} is added", sum_words(model, other));
            Turned { knob, choice, model: changed }
        })
        // Only the root has to be rounded.
        .filter(|turned| turned.model.check().is_ok())
        .collect()
}

/// Rules that are few.
const FEW: usize = 3;

/// Models in which a sum that was exact is aligned to any number of bits, but for summands far below, of which
/// it is kept that they are not zero. None where there are many rules.
pub fn turn_exact_but_far(model: &Model) -> Vec<Turned> {
    let mut turned = Vec::new();
    if model.tree.rules.len() > FEW {
        return turned;
    }
    for (rule, own) in rules(model, Scope::All) {
        if own.added != Added::Exact {
            continue;
        }
        for fraction_bits in 0..=MOST_FRACTION_BITS {
            for rounding in INSTEAD_OF_EXACT {
                for distance in 0..=fraction_bits as i32 {
                    let far = Some(Far { distance, rounding: Rounding::ToOdd });
                    let alignment = vec![Alignment { fraction_bits, rounding, far }];
                    let mut other = model.clone();
                    other.tree.rules[rule].added = Added::Fused(Fused {
                        alignment: alignment.into(),
                        ..Fused::uniform(fraction_bits, rounding)
                    });
                    let knob = Knob { what: "alignment as a whole".to_string(), rule: Some(rule) };
                    let choice = format!("F = {fraction_bits}, {rounding}, RO more than {distance} below");
                    turned.push(Turned { knob, choice, model: other });
                }
            }
        }
    }
    turned
}

/// The rules of a model that may be turned.
pub(super) fn rules(model: &Model, scope: Scope) -> impl Iterator<Item = (RuleId, &Rule)> {
    model.tree.rules.iter().enumerate().filter(move |(rule, _)| scope.has(*rule))
}

/// Models in which some of the sums that share a rule have one of their own, equal to it: the root,
/// the sums at each height, those with c.
pub fn split(model: &Model) -> Vec<Model> {
    let nodes = &model.tree.nodes;
    let mut heights = vec![0usize; nodes.len()];
    let mut has_c = vec![false; nodes.len()];
    for (id, node) in nodes.iter().enumerate() {
        match node {
            Node::Accumulator => has_c[id] = true,
            Node::Scaled { child, .. } => heights[id] = heights[*child],
            Node::Sum { children, .. } => {
                heights[id] = 1 + children.iter().map(|&child| heights[child]).max().unwrap_or(0);
                has_c[id] = children.iter().any(|&child| matches!(nodes[child], Node::Accumulator));
            }
            _ => {}
        }
    }
    let sums: Vec<(usize, RuleId)> = nodes
        .iter()
        .enumerate()
        .filter_map(|(id, node)| match node {
            Node::Sum { rule, .. } => Some((id, *rule)),
            _ => None,
        })
        .collect();
    let mut selections: Vec<Vec<usize>> = Vec::new();
    for rule in 0..model.tree.rules.len() {
        let members: Vec<usize> = sums.iter().filter(|(_, r)| *r == rule).map(|(id, _)| *id).collect();
        let mut select = |chosen: Vec<usize>| {
            if !chosen.is_empty() && chosen.len() < members.len() && !selections.contains(&chosen) {
                selections.push(chosen);
            }
        };
        select(members.iter().copied().filter(|&id| id == nodes.len() - 1).collect());
        select(members.iter().copied().filter(|&id| has_c[id]).collect());
        let highest = members.iter().map(|&id| heights[id]).max().unwrap_or(0);
        for height in (1..=highest).take(6) {
            select(members.iter().copied().filter(|&id| heights[id] == height).collect());
        }
    }
    selections
        .into_iter()
        .map(|chosen| {
            let mut model = model.clone();
            let own = model.tree.rules.len();
            let mut copied = None;
            for id in chosen {
                if let Node::Sum { rule, .. } = &mut model.tree.nodes[id] {
                    copied = Some(*rule);
                    *rule = own;
                }
            }
            if let Some(rule) = copied {
                let rule = model.tree.rules[rule].clone();
                model.tree.rules.push(rule);
            }
            model
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(alignment: Alignment) -> Model {
        let mut model = Model::chain_of_fma(format::FP16, format::FP32, 1);
        let fused = Fused::uniform(0, Rounding::TowardZero);
        model.tree.rules[0].added = Added::Fused(Fused { alignment: vec![alignment].into(), ..fused });
        model
    }

    fn has(turned: &[Turned], alignment: Alignment) -> bool {
        turned.iter().any(|turned| turned.model == aligned(alignment))
    }

    const NEARBY: Rounding = Rounding::ToOdd;
    const FAR: Rounding = Rounding::Down;

    fn at(distance: i32, rounding: Rounding, far: Rounding) -> Alignment {
        Alignment { fraction_bits: 28, rounding, far: Some(Far { distance, rounding: far }) }
    }

    #[test]
    fn summands_are_rounded_otherwise_on_either_side_of_a_distance() {
        let same = |rounding| Alignment { fraction_bits: 28, rounding, far: None };
        let both = at(25, NEARBY, FAR);
        assert!(has(&turn_far(&aligned(same(NEARBY)), Scope::All), both));
        assert!(!has(&turn_far(&aligned(same(FAR)), Scope::All), both));
        // Where what is far below was found first.
        assert!(has(&turn_not_far(&aligned(same(FAR))), both));
        assert!(has(&turn_not_far(&aligned(at(24, Rounding::Up, FAR))), both));
    }

    #[test]
    fn a_distance_may_be_wrong_or_none() {
        let model = aligned(at(25, NEARBY, FAR));
        let turned = turn_near_far(&model);
        for other in [at(26, NEARBY, FAR), at(24, NEARBY, Rounding::Up), at(25, Rounding::Up, FAR)] {
            assert!(has(&turned, other), "{other:?}");
        }
        for rounding in [NEARBY, FAR] {
            assert!(has(&turned, Alignment { fraction_bits: 28, rounding, far: None }), "{rounding}");
        }
    }
}
