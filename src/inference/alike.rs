//! Sums that all add alike.
//!
//! In most machines every adder is the same, and only what becomes of its sums differs: of the last, which is rounded
//! to d, and of those inside. With a wrong guess about the ones inside no single turn explains more, and rules that
//! are found for each sum alone have too many answers to choose from. So all ways to align summands are tried, the
//! same for every sum, with all that may become of the sums inside and of the last.

use mmaprobe_model::format::RoundTo;
use mmaprobe_model::tree::{Added, Exponents, Fused, Model, Node, Normalised, Rule, Tree, ZeroTerms};
use mmaprobe_model::{Format, Rounding};
use rayon::prelude::*;

use super::evidence::{Answered, Class, Evidence};
use super::{fit, grid, knobs};

/// Answers that contradict the model which every combination is tried on, and answers that do not.
const GLANCED: usize = 16;
/// Combinations that explain most of those, and answers of each kind that these are tried on.
const PROMISING: usize = 200;
const SAMPLED: usize = 200;
/// One of so many of these may contradict a model that is worth improving.
const TOLERATED: usize = 3;
/// Models that are handed on.
const BEST: usize = 6;
/// Of those, how many align alike.
const LIKE: usize = 2;
/// The rules: of the last sum, of those inside, and, where these have another, of those that only add sums and c.
const ROOT: usize = 0;
const INNER: usize = 1;
const OF_SUMS: usize = 2;

/// Models over the tree of one that explains less than everything, in which all sums add alike: those that the
/// fewest plain answers of a sample contradict, best first. None if the tree has one sum.
pub fn models(evidence: &Evidence, model: &Model) -> Vec<Model> {
    let Some(base) = with_shared_rules(model, Sharing::Inside) else { return Vec::new() };
    let mut plain: Vec<&Answered> = evidence
        .answers
        .iter()
        .filter(|answered| answered.class == Class::Plain && answered.summands > 1)
        .collect();
    fit::front_load(model, &mut plain);
    let contradicted = fit::contradicted(model, plain.iter().copied(), usize::MAX);
    let (wrong, right) = plain.split_at(contradicted.min(plain.len()));
    let sample = |number| [wrong, right].map(|some| fit::thinned(some, number)).concat();
    let (glanced, sampled) = (sample(GLANCED), sample(SAMPLED));
    let combinations = Combinations::new(evidence.signature().d, &base);
    let glance = |scratch: &mut Model, index: usize| {
        combinations.set(scratch, index);
        // What is worse than the model is about something is not about to explain everything.
        let limit = GLANCED;
        let contradicted = fit::contradicted(scratch, glanced.iter().copied(), limit);
        (contradicted < limit).then_some((contradicted, index))
    };
    let mut promising: Vec<(usize, usize)> =
        (0..combinations.len()).into_par_iter().map_init(|| base.clone(), glance).flatten().collect();
    promising.sort_unstable();
    promising.truncate(PROMISING);
    let with = |index: usize| {
        let mut model = base.clone();
        combinations.set(&mut model, index);
        model
    };
    let closer = |(_, index): (usize, usize)| {
        (fit::contradicted(&with(index), sampled.iter().copied(), usize::MAX), index)
    };
    let mut best: Vec<(usize, usize)> = promising.into_par_iter().map(closer).collect();
    best.sort_unstable();
    best.truncate(best.partition_point(|(contradicted, _)| contradicted * TOLERATED <= sampled.len()));
    let mut chosen: Vec<Model> = Vec::new();
    for model in best.into_iter().map(|(_, index)| with(index)) {
        let like = chosen.iter().filter(|other| rounding(other) == rounding(&model)).count();
        if chosen.len() < BEST && like < LIKE {
            chosen.push(model);
        }
    }
    chosen
}

/// How a model's sums align.
fn rounding(model: &Model) -> Option<Rounding> {
    match &model.tree.rules[ROOT].added {
        Added::Fused(fused) => Some(fused.alignment_of(0).rounding),
        Added::Exact => None,
    }
}

/// Which sums share a rule; the last one has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All others.
    Inside,
    /// Those that products are summands of, and those that only add sums and c.
    ByKind,
    /// Those within [groups] of so many products, and those that add groups and c.
    ByGroup(usize),
}

/// The numbers of products in groups that a model's sums may be told apart by, the largest first: each product is in one sum of
/// so many, and some other than the last adds such sums. Groups of a few are what [`Sharing::ByKind`] tells apart where nothing
/// but they adds products.
pub fn groups(model: &Model) -> Vec<usize> {
    let below = products_below(model);
    let mut sizes: Vec<usize> = below.iter().copied().filter(|&size| 1 < size && size < model.k).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let tells_apart = |&size: &usize| {
        let number = (0..below.len()).filter(|&id| is_group(model, &below, id, size)).count();
        number * size == model.k && with_shared_rules(model, Sharing::ByGroup(size)).is_some()
    };
    sizes.into_iter().rev().filter(tells_apart).collect()
}

/// For each node of a model's tree, how many products are in it.
fn products_below(model: &Model) -> Vec<usize> {
    let mut below: Vec<usize> = Vec::with_capacity(model.tree.nodes.len());
    for node in &*model.tree.nodes {
        let here = match node {
            Node::Product(_) => 1,
            Node::Accumulator | Node::Zero => 0,
            Node::Scaled { .. } | Node::Sum { .. } => node.children().iter().map(|&child| below[child]).sum(),
        };
        below.push(here);
    }
    below
}

/// Whether a node has so many products, and none that it adds has as many.
fn is_group(model: &Model, below: &[usize], id: usize, size: usize) -> bool {
    below[id] == size && model.tree.nodes[id].children().iter().all(|&child| below[child] != size)
}

/// For each node of a model's tree, whether it is a group of so many products or within one.
fn within_groups(model: &Model, size: usize) -> Vec<bool> {
    let below = products_below(model);
    let mut within: Vec<bool> = (0..below.len()).map(|id| is_group(model, &below, id, size)).collect();
    for (id, node) in model.tree.nodes.iter().enumerate().rev() {
        if within[id] {
            node.children().iter().for_each(|&child| within[child] = true);
        }
    }
    within
}

/// The model with rules that sums share, all as that of the last sum, and without sums that hand on another alone; `None` if
/// it has no sums that share one in this way alone.
pub fn with_shared_rules(model: &Model, sharing: Sharing) -> Option<Model> {
    shared_rules(model, sharing).map(|(shared, _)| shared)
}

/// The same, and for each node the one that it comes from.
fn shared_rules(model: &Model, sharing: Sharing) -> Option<(Model, Vec<usize>)> {
    let mut shared = model.clone();
    let Node::Sum { rule, .. } = model.tree.nodes.last()? else { return None };
    let root = model.tree.rules[*rule].clone();
    let mut nodes: Vec<Node> = Vec::new();
    // Where each node stands now.
    let mut places: Vec<usize> = Vec::new();
    let mut origins: Vec<usize> = Vec::new();
    let within = match sharing {
        Sharing::ByGroup(size) => within_groups(model, size),
        Sharing::Inside | Sharing::ByKind => Vec::new(),
    };
    for (id, node) in model.tree.nodes.iter().enumerate() {
        let mut node = node.clone();
        match &mut node {
            Node::Scaled { child, .. } => *child = places[*child],
            Node::Sum { children, rule } => {
                children.iter_mut().for_each(|child| *child = places[*child]);
                *rule = match sharing {
                    Sharing::ByKind if !adds_products(&nodes, children) => OF_SUMS,
                    Sharing::ByGroup(_) if !within[id] => OF_SUMS,
                    Sharing::Inside | Sharing::ByKind | Sharing::ByGroup(_) => INNER,
                };
                if let [child] = children[..]
                    && matches!(nodes[child], Node::Sum { .. })
                {
                    places.push(child);
                    continue;
                }
            }
            Node::Product(_) | Node::Accumulator | Node::Zero => {}
        }
        places.push(nodes.len());
        origins.push(id);
        nodes.push(node);
    }
    if let Some(Node::Sum { rule, .. }) = nodes.last_mut() {
        *rule = ROOT;
    }
    let rules = if sharing == Sharing::Inside { INNER } else { OF_SUMS } + 1;
    let has =
        |which: usize| nodes.iter().any(|node| matches!(node, Node::Sum { rule, .. } if *rule == which));
    if !(0..rules).all(has) {
        return None;
    }
    shared.tree = Tree { nodes: nodes.into(), rules: vec![root; rules] };
    Some((shared, origins))
}

/// A model whose sums share rules, with a rule of their own, as before, for those of each kind; `None` if there are no two
/// kinds beside the last sum.
pub fn split_by_kind(model: &Model) -> Option<Model> {
    let (mut split, origins) = shared_rules(model, Sharing::ByKind)?;
    let last = split.tree.rules[ROOT].normalised;
    for (node, &origin) in split.tree.nodes.iter().zip(&origins) {
        if let (Node::Sum { rule, .. }, Node::Sum { rule: before, .. }) = (node, &model.tree.nodes[origin]) {
            split.tree.rules[*rule] = model.tree.rules[*before].clone();
        }
    }
    // Of a result that is rounded twice, the last rounding stays.
    split.tree.rules[ROOT].normalised = last;
    Some(split)
}

/// Whether one of these children is a product, scaled or not.
fn adds_products(nodes: &[Node], children: &[usize]) -> bool {
    children.iter().any(|&child| match &nodes[child] {
        Node::Product(_) => true,
        Node::Scaled { child, .. } => matches!(nodes[*child], Node::Product(_)),
        Node::Accumulator | Node::Zero | Node::Sum { .. } => false,
    })
}

/// Ways to add, what becomes of the sums inside, and how the last one is rounded: each with each; and with a sticky bit
/// for what is cut off, where sums inside are left as they are or rounded as the last is.
struct Combinations {
    added: Vec<Added>,
    inside: Vec<Normalised>,
    last: Vec<Normalised>,
    /// Ways to add with a sticky bit.
    sticky: Vec<Added>,
}

impl Combinations {
    /// All of them, for a result in format `d`.
    fn new(d: Format, base: &Model) -> Combinations {
        let fused = knobs::aligned(&base.tree.rules[ROOT].added);
        let aligned = |sticky: bool| {
            let exponents = [Exponents::Raw, Exponents::Normalised];
            let zeros = [ZeroTerms::Ignored, ZeroTerms::Counted];
            let kinds = exponents.into_iter().flat_map(move |one| zeros.map(|other| (one, other)));
            let fused = fused.clone();
            kinds.flat_map(move |(exponents, zeros)| {
                let fused = Fused { exponents, zeros, sticky, carry: None, floor: None, ..fused.clone() };
                grid::alignments().map(move |alignment| {
                    Added::Fused(Fused { alignment: vec![alignment].into(), ..fused.clone() })
                })
            })
        };
        let rounded =
            Rounding::EVERY.map(|rounding| Normalised::To(RoundTo { rounding, ..RoundTo::nearest_even(d) }));
        let open = Normalised::No { exponent: None };
        Combinations {
            added: std::iter::once(Added::Exact).chain(aligned(false)).collect(),
            inside: std::iter::once(open).chain(rounded).collect(),
            last: rounded.to_vec(),
            sticky: aligned(true).collect(),
        }
    }

    fn len(&self) -> usize {
        self.without_sticky() + self.sticky.len() * 2 * self.last.len()
    }

    fn without_sticky(&self) -> usize {
        self.added.len() * self.inside.len() * self.last.len()
    }

    /// Gives a model with two rules those of a combination.
    fn set(&self, model: &mut Model, index: usize) {
        let (added, inside, last) = match index.checked_sub(self.without_sticky()) {
            Some(index) => {
                let (index, last) = (index / self.last.len(), index % self.last.len());
                // The first is that they are left as they are; then come the same roundings as of the last.
                (&self.sticky[index / 2], if index.is_multiple_of(2) { 0 } else { last + 1 }, last)
            }
            None => {
                let (index, last) = (index / self.last.len(), index % self.last.len());
                (&self.added[index / self.inside.len()], index % self.inside.len(), last)
            }
        };
        for (rule, normalised) in [(ROOT, self.last[last]), (INNER, self.inside[inside])] {
            let own = &mut model.tree.rules[rule];
            *own = Rule { added: added.clone(), normalised, ..own.clone() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::nodewise;
    use crate::inference::skeleton::Skeleton;
    use crate::inference::structure::{self, Structure};
    use crate::inference::testing;
    use mmaprobe_model::format::FP32;
    use mmaprobe_probes::{Signature, Summand};

    const SIGNATURE: Signature = testing::signature(4);

    fn start(tree: &Skeleton) -> Model {
        structure::start(&SIGNATURE, tree, Structure::Plain)
    }

    fn product(k: usize) -> Skeleton {
        Skeleton::Leaf(Summand::Product(k))
    }

    #[test]
    fn sums_that_hand_on_another_alone_are_left_out() {
        let pairs = || [0, 2].map(|k| Skeleton::Sum(vec![product(k), product(k + 1)])).to_vec();
        let alone = |sum| Skeleton::Sum(vec![sum]);
        let c = Skeleton::Leaf(Summand::C);
        let handed_on = Skeleton::Sum([vec![c.clone()], pairs().into_iter().map(alone).collect()].concat());
        let plain = start(&Skeleton::Sum([vec![c], pairs()].concat()));
        let two =
            with_shared_rules(&start(&alone(handed_on)), Sharing::Inside).expect("there are sums inside");
        assert!(two.tree.adds_the_same(&plain.tree), "{two:#?}");
        assert_eq!(two.check(), Ok(()));
        assert_eq!(two.tree.rules.len(), 2);
        assert!(two.tree.nodes.iter().enumerate().all(|(id, node)| match node {
            Node::Sum { rule, .. } => (*rule == ROOT) == (id + 1 == two.tree.nodes.len()),
            _ => true,
        }));
    }

    #[test]
    fn one_sum_alone_has_no_others_to_be_like() {
        let flat = Skeleton::Sum((0..4).map(product).chain([Skeleton::Leaf(Summand::C)]).collect());
        assert_eq!(with_shared_rules(&start(&flat), Sharing::Inside), None);
    }

    #[test]
    fn sums_of_products_and_sums_of_sums_are_two_kinds() {
        let pair = |k| Skeleton::Sum(vec![product(k), product(k + 1)]);
        let late = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), Skeleton::Sum(vec![pair(0), pair(2)])]);
        let two = with_shared_rules(&start(&late), Sharing::Inside).expect("there are sums inside");
        let mut three = with_shared_rules(&start(&late), Sharing::ByKind).expect("they are of two kinds");
        let rules = |model: &Model| -> Vec<usize> {
            let rule = |node: &Node| if let Node::Sum { rule, .. } = node { Some(*rule) } else { None };
            model.tree.nodes.iter().filter_map(rule).collect()
        };
        assert_eq!(rules(&two), [INNER, INNER, INNER, ROOT]);
        assert_eq!(rules(&three), [INNER, INNER, OF_SUMS, ROOT]);
        assert_eq!(three.check(), Ok(()));
        // What is known of each kind stays with it, wherever its rule stood.
        three.tree.rules[OF_SUMS].infinite_operands_first = true;
        let split = split_by_kind(&three.canonical()).expect("they are of two kinds");
        assert_eq!(rules(&split), [INNER, INNER, OF_SUMS, ROOT]);
        let first = |rule: usize| split.tree.rules[rule].infinite_operands_first;
        assert_eq!([ROOT, INNER, OF_SUMS].map(first), [false, false, true]);
        // Products that are added to other sums make one kind of all.
        let chain =
            (0..4).map(product).fold(Skeleton::Leaf(Summand::C), |sum, k| Skeleton::Sum(vec![sum, k]));
        assert!(with_shared_rules(&start(&chain), Sharing::Inside).is_some());
        assert_eq!(with_shared_rules(&start(&chain), Sharing::ByKind), None);
    }

    #[test]
    fn sums_within_groups_and_sums_of_groups_are_told_apart() {
        // ((c + four) + (four + four)) + four, four being two pairs.
        let pair = |k| Skeleton::Sum(vec![product(k), product(k + 1)]);
        let four = |k| Skeleton::Sum(vec![pair(k), pair(k + 2)]);
        let first = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), four(0)]);
        let inside = Skeleton::Sum(vec![first, Skeleton::Sum(vec![four(4), four(8)])]);
        let tree = Skeleton::Sum(vec![inside, four(12)]);
        let model = structure::start(&testing::signature(16), &tree, Structure::Plain);
        assert_eq!(groups(&model), [4, 2]);
        let rules_of = |sharing| {
            let shared = with_shared_rules(&model, sharing).expect("there are sums of each kind");
            assert_eq!(shared.check(), Ok(()));
            nodewise::meetings(&shared)
                .into_iter()
                .map(|meeting| (meeting.sum, meeting.rule))
                .collect::<Vec<_>>()
        };
        for (size, sums_of_groups) in [(4, 3), (2, 7)] {
            for (sum, rule) in rules_of(Sharing::ByGroup(size)) {
                let products = |summands: &[Summand]| {
                    summands.iter().filter(|summand| matches!(summand, Summand::Product(_))).count()
                };
                let all: Vec<Summand> = sum.iter().flatten().copied().collect();
                let expected = match products(&all) {
                    16 => ROOT,
                    some if some <= size && some == all.len() => INNER,
                    _ => OF_SUMS,
                };
                assert_eq!(rule, expected, "groups of {size}: {sum:?}");
            }
            let of_sums =
                rules_of(Sharing::ByGroup(size)).iter().filter(|(_, rule)| *rule == OF_SUMS).count();
            assert_eq!(of_sums, sums_of_groups);
        }
        // A chain has no groups, and of lanes no sum but the last adds two.
        let chain =
            (0..4).map(product).fold(Skeleton::Leaf(Summand::C), |sum, k| Skeleton::Sum(vec![sum, k]));
        assert!(groups(&start(&chain)).is_empty());
        let lanes = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), pair(0), pair(2)]);
        assert!(groups(&start(&lanes)).is_empty());
    }

    #[test]
    fn what_is_known_of_a_kind_stays_with_it_where_the_result_is_rounded_twice() {
        let pair = |k| Skeleton::Sum(vec![product(k), product(k + 1)]);
        let late = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), Skeleton::Sum(vec![pair(0), pair(2)])]);
        let mut twice = start(&Skeleton::Sum(vec![late]));
        let rounded = twice.tree.rules[0].clone();
        let open = Rule { normalised: Normalised::No { exponent: None }, ..rounded.clone() };
        let first = Rule { infinite_operands_first: true, ..rounded.clone() };
        twice.tree.rules = vec![rounded.clone(), open.clone(), first];
        let count = twice.tree.nodes.len();
        for (id, node) in twice.tree.nodes.iter_mut().enumerate() {
            if let Node::Sum { rule, .. } = node {
                *rule = if id + 1 == count {
                    0
                } else if id + 2 == count {
                    2
                } else {
                    1
                };
            }
        }
        assert_eq!(twice.check(), Ok(()));
        let split = split_by_kind(&twice).expect("they are of two kinds");
        assert_eq!(split.check(), Ok(()));
        assert_eq!(split.tree.rules[INNER], open);
        assert_eq!(split.tree.rules[OF_SUMS], open);
        assert_eq!(split.tree.rules[ROOT].normalised, rounded.normalised);
        assert!(split.tree.rules[ROOT].infinite_operands_first, "as the sum that is rounded");
    }

    #[test]
    fn every_combination_gives_both_sums_the_same_way_to_add() {
        let tree =
            Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), Skeleton::Sum((0..4).map(product).collect())]);
        let mut model = with_shared_rules(&start(&tree), Sharing::Inside).expect("there is a sum inside");
        let combinations = Combinations::new(FP32, &model);
        let mut seen = std::collections::HashSet::new();
        for index in (0..combinations.len()).step_by(97) {
            combinations.set(&mut model, index);
            assert_eq!(model.tree.rules[ROOT].added, model.tree.rules[INNER].added);
            assert_eq!(model.check(), Ok(()));
            assert!(seen.insert(format!("{:?}", model.tree.rules)), "combination {index} comes twice");
        }
    }
}
