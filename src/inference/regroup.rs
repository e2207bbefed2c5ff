//! Trees that differ from a model's in one place.
//!
//! Some sums show in one answer of a thousand: those of formats with little range, those that are handed on
//! as they are, those of one summand. No question about the order shows them, but a model without them
//! explains nearly everything. So each sum of such a model is changed: its summands are summed in groups first, a
//! sum among them is dissolved or takes another of them in, what it adds last and what a sum among them adds change
//! places, its products are rounded before, or what it hands on is added to +0 by a sum of its own.

use mmaprobe_model::tree::{Added, Fused, Model, Node, NodeId, Normalised, Rule, Tree, ZeroSigns, ZeroTerms};

use super::knobs::{Knob, Turned};

mod chains;
mod hidden;
mod reordered;
mod summands;

use chains::{chained, dots_chained, exchanged};
pub use hidden::{hidden, hidden_exactly};
pub use reordered::reordered;
use summands::{added_after, dissolved, dissolved_apart, taken_in, taken_over};

/// A tree whose sums carry their rules.
#[derive(Clone, Debug, PartialEq)]
enum Term {
    Leaf(Node),
    Scaled(Box<Term>, usize),
    Sum(Vec<Term>, Rule),
}

/// Sizes of groups of summands that follow each other.
const SIZES: [usize; 5] = [2, 3, 4, 8, 16];
/// Numbers of interleaved groups.
const LANES: [usize; 2] = [2, 4];
/// Of up to so many summands, each two may be added first.
const PAIRED: usize = 6;

/// A tree, and in words what has been changed.
type Changed = (String, Term);

/// Every model whose tree differs in one place, or alike in all places that are alike, from this one's. Its new
/// sums follow one of its rules, or one of them without being normalised.
pub fn regrouped(model: &Model) -> Vec<Turned> {
    let own = term(model, model.tree.nodes.len() - 1);
    let mut trees = Vec::new();
    changed(&own, &mut trees, &|sum, rule| {
        let from = sum.first().map_or_else(String::new, first_leaf);
        let variants = variants(sum, rule, &model.tree.rules).into_iter();
        variants.map(|Variant { sum, change, tree }| (format!("{sum} from {from}{change}"), tree)).collect()
    });
    let canonical = model.canonical();
    let mut all: Vec<Turned> = Vec::new();
    for (choice, tree) in trees.into_iter().chain(changed_alike(&own, &model.tree.rules)) {
        let other = with_tree(model, &tree);
        let is_other = other.check().is_ok() && other.canonical() != canonical;
        if is_other && !all.iter().any(|turned| turned.model == other) {
            let knob = Knob { what: "tree of the sums".to_string(), rule: None };
            all.push(Turned { knob, choice, model: other });
        }
    }
    all
}

fn term(model: &Model, id: NodeId) -> Term {
    match &model.tree.nodes[id] {
        Node::Scaled { child, block } => Term::Scaled(Box::new(term(model, *child)), *block),
        Node::Sum { children, rule } => {
            let children = children.iter().map(|&child| term(model, child)).collect();
            Term::Sum(children, model.tree.rules[*rule].clone())
        }
        leaf => Term::Leaf(leaf.clone()),
    }
}

/// The model with this tree.
fn with_tree(model: &Model, term: &Term) -> Model {
    let mut tree = Tree { nodes: Vec::new().into(), rules: Vec::new() };
    build(term, &mut tree);
    Model { tree, ..model.clone() }
}

fn build(term: &Term, into: &mut Tree) -> NodeId {
    let node = match term {
        Term::Leaf(node) => node.clone(),
        Term::Scaled(child, block) => Node::Scaled { child: build(child, into), block: *block },
        Term::Sum(children, rule) => {
            let children = children.iter().map(|child| build(child, into)).collect();
            let known = into.rules.iter().position(|other| other == rule);
            let rule = known.unwrap_or_else(|| {
                into.rules.push(rule.clone());
                into.rules.len() - 1
            });
            Node::Sum { children, rule }
        }
    };
    into.nodes.push(node);
    into.nodes.len() - 1
}

/// Other trees in place of a sum, each with what is to be known of it.
type Variants<'a, T> = &'a dyn Fn(&[Term], &Rule) -> Vec<(T, Term)>;

/// The tree with each of its sums replaced by each of its variants, one at a time.
fn changed<T>(tree: &Term, into: &mut Vec<(T, Term)>, variants: Variants<T>) {
    match tree {
        Term::Leaf(_) => {}
        Term::Scaled(child, block) => {
            let mut inside = Vec::new();
            changed(child, &mut inside, variants);
            let scaled = |(known, child)| (known, Term::Scaled(Box::new(child), *block));
            into.extend(inside.into_iter().map(scaled));
        }
        Term::Sum(children, rule) => {
            into.extend(variants(children, rule));
            for (at, child) in children.iter().enumerate() {
                let mut inside = Vec::new();
                changed(child, &mut inside, variants);
                into.extend(inside.into_iter().map(|(known, child)| {
                    let mut children = children.clone();
                    children[at] = child;
                    (known, Term::Sum(children, rule.clone()))
                }));
            }
        }
    }
}

/// The tree with all sums of as many summands that follow the same rule changed alike.
fn changed_alike(tree: &Term, rules: &[Rule]) -> Vec<Changed> {
    let mut kinds: Vec<(usize, Rule)> = Vec::new();
    each_sum(tree, &mut |children, rule| kinds.push((children.len(), rule.clone())));
    let mut seen: Vec<(usize, Rule)> = Vec::new();
    let mut all = Vec::new();
    for kind in &kinds {
        if seen.contains(kind) || kinds.iter().filter(|other| *other == kind).count() < 2 {
            continue;
        }
        seen.push(kind.clone());
        let mut named: Vec<Name> = Vec::new();
        each_sum(tree, &mut |children, rule| {
            if (children.len(), rule) == (kind.0, &kind.1) {
                let new = named_variants(children, rule, rules).into_iter().map(|(name, _)| name);
                for name in new {
                    if !named.contains(&name) {
                        named.push(name);
                    }
                }
            }
        });
        let changed = |name: Name| {
            (format!("{}{}, in all such sums", name.0, name.1), each_changed(tree, kind, &name, rules))
        };
        all.extend(named.into_iter().map(changed));
    }
    all
}

/// Another tree in place of a sum.
struct Variant {
    /// What the sum is, in words, but for where it is.
    sum: String,
    /// What has been changed about it, in words that follow.
    change: String,
    tree: Term,
}

/// What a variant is called, and its number among those of its sum that are called so.
type Name = (String, String, usize);

/// The variants of a sum by their names, which those of another sum have, too.
fn named_variants(children: &[Term], rule: &Rule, rules: &[Rule]) -> Vec<(Name, Term)> {
    let mut named: Vec<(Name, Term)> = Vec::new();
    for Variant { sum, change, tree } in variants(children, rule, rules) {
        let number =
            named.iter().filter(|((known, changed, _), _)| (known, changed) == (&sum, &change)).count();
        named.push(((sum, change, number), tree));
    }
    named
}

fn each_sum(tree: &Term, visit: &mut dyn FnMut(&[Term], &Rule)) {
    match tree {
        Term::Leaf(_) => {}
        Term::Scaled(child, _) => each_sum(child, visit),
        Term::Sum(children, rule) => {
            visit(children, rule);
            children.iter().for_each(|child| each_sum(child, visit));
        }
    }
}

/// The tree with each sum of a kind replaced by this variant, where it has it, from the leaves up.
fn each_changed(tree: &Term, kind: &(usize, Rule), variant: &Name, rules: &[Rule]) -> Term {
    match tree {
        Term::Leaf(_) => tree.clone(),
        Term::Scaled(child, block) => {
            Term::Scaled(Box::new(each_changed(child, kind, variant, rules)), *block)
        }
        Term::Sum(children, rule) => {
            let inside: Vec<Term> =
                children.iter().map(|child| each_changed(child, kind, variant, rules)).collect();
            let is_of_kind = (children.len(), rule) == (kind.0, &kind.1);
            let named = if is_of_kind { named_variants(&inside, rule, rules) } else { Vec::new() };
            let changed = named.into_iter().find(|(name, _)| name == variant).map(|(_, tree)| tree);
            changed.unwrap_or_else(|| Term::Sum(inside, rule.clone()))
        }
    }
}

/// Other trees of the same summands in place of a sum.
fn variants(children: &[Term], rule: &Rule, rules: &[Rule]) -> Vec<Variant> {
    let mut all = Vec::new();
    let inner = inner_rules(rule, rules);
    let new: Vec<Rule> = {
        let differs = |other: &&Rule| !is_handed_on_as_it_is(other, rule);
        inner.iter().filter(differs).cloned().chain(signed(rule)).collect()
    };
    let number = children.len();
    let mut push = |change: String, tree: Term| {
        all.push(Variant { sum: format!("of {number} summands"), change, tree });
    };
    for groups in groupings(children) {
        let sizes: Vec<String> = groups.iter().map(|group| group.len().to_string()).collect();
        let is_interleaved = groups.iter().any(|group| group.len() > 1 && group[1] != group[0] + 1);
        let how = if is_interleaved { "interleaved" } else { "neighbours" };
        for of_groups in &new {
            let change = format!(", {} {how} are summed first", sizes.join(" + "));
            push(change, Term::Sum(grouped(children, &groups, of_groups), rule.clone()));
        }
    }
    // Whether sums that are zero count shows in no sum of leaves.
    let is_of_leaves = !children.iter().any(|child| matches!(child, Term::Sum(..)));
    for of_links in &new {
        let chains = chained(children, rule, of_links);
        let otherwise = match (is_of_leaves, with_other_zeros(rule), with_other_zeros(of_links)) {
            (true, Some(rule), Some(of_links)) => chained(children, &rule, &of_links),
            _ => Vec::new(),
        };
        let otherwise = otherwise
            .into_iter()
            .map(|(change, tree)| (format!("{change}, with other sums of zero that count"), tree));
        let dots = dots_chained(children, rule, of_links);
        for (change, tree) in chains.into_iter().chain(otherwise).chain(dots) {
            push(change, tree);
        }
    }
    for alone in inner.iter().filter(|alone| matches!(alone.normalised, Normalised::To(_))) {
        if children.iter().any(is_product) {
            let summands = children.iter().map(|child| match is_product(child) {
                true => Term::Sum(vec![child.clone()], alone.clone()),
                false => child.clone(),
            });
            let tree = Term::Sum(summands.collect(), rule.clone());
            push(", each of its products rounded by a sum of its own".to_string(), tree);
        }
    }
    for (change, summands) in exchanged(children) {
        push(change, Term::Sum(summands, rule.clone()));
    }
    for children in dissolved(children) {
        let change = format!(", sums dissolved into {}", children.len());
        let summands: Vec<Term> =
            children.iter().filter(|child| **child != Term::Leaf(Node::Zero)).cloned().collect();
        if (2..children.len()).contains(&summands.len()) {
            push(format!("{change}, but for +0"), in_order(summands, rule));
        }
        push(change, in_order(children, rule));
    }
    for summands in taken_in(children) {
        push(", one of them taken into a sum among them".to_string(), Term::Sum(summands, rule.clone()));
    }
    for tree in dissolved_apart(children, rule) {
        push(", a sum among them dissolved behind the others, each aligned as before".to_string(), tree);
    }
    for tree in added_after(children, rule) {
        push(", one that a sum among them adds added after it".to_string(), tree);
    }
    for (summands, other) in taken_over(children) {
        push(", dissolved into a sum among them".to_string(), in_order(summands, other));
    }
    all.extend(handed_on(children, rule, &inner).into_iter().map(|tree| Variant {
        sum: format!("a sum of {number}"),
        change: " by a rule of its own, and handed on by another".to_string(),
        tree,
    }));
    all
}

/// The rule, with sums that are zero taking part in the largest exponent where they do not, and the other way round.
fn with_other_zeros(rule: &Rule) -> Option<Rule> {
    let Added::Fused(fused) = &rule.added else { return None };
    let zeros = match fused.zeros {
        ZeroTerms::SumsCounted => ZeroTerms::Ignored,
        ZeroTerms::Ignored => ZeroTerms::SumsCounted,
        _ => return None,
    };
    Some(Rule { added: Added::Fused(Fused { zeros, ..fused.clone() }), ..rule.clone() })
}

/// Whether what a sum of one rule hands on is what it was handed, so that its own summands might as well be those of
/// the sum that it is in: of two exact sums, the one that is not rounded.
fn is_handed_on_as_it_is(inside: &Rule, outside: &Rule) -> bool {
    let is_open = inside.normalised == Normalised::No { exponent: None };
    is_open && inside.added == Added::Exact && outside.added == Added::Exact
}

/// The rules of exact sums in an exact sum, which hand on what they were handed but for the signs of zeros.
fn signed(rule: &Rule) -> Vec<Rule> {
    if rule.added != Added::Exact {
        return Vec::new();
    }
    let both = [true, false];
    let signs = both.into_iter().flat_map(|stay| both.map(|cancelled| (stay, cancelled)));
    let signed = |(negative_zeros_stay, cancellation_is_negative)| {
        let zero = ZeroSigns { negative_zeros_stay, cancellation_is_negative, ..rule.zero };
        Rule { zero, normalised: Normalised::No { exponent: None }, ..rule.clone() }
    };
    // Zeros of which all have to be negative for a negative sum are the same in any order.
    let all_alike = |zero: &ZeroSigns| zero.negative_zeros_stay && !zero.cancellation_is_negative;
    signs.map(signed).filter(|of_groups| !(all_alike(&of_groups.zero) && all_alike(&rule.zero))).collect()
}

/// The first leaf of a tree, in words.
fn first_leaf(tree: &Term) -> String {
    match tree {
        Term::Leaf(Node::Product(k)) => format!("p{k}"),
        Term::Leaf(Node::Accumulator) => "c".to_string(),
        Term::Leaf(_) => "+0".to_string(),
        Term::Scaled(child, _) => first_leaf(child),
        Term::Sum(children, _) => children.first().map_or_else(String::new, first_leaf),
    }
}

/// The most rules that a new sum may follow.
const INNER: usize = 6;

/// The rules that a new sum may follow beside one of this rule.
fn inner_rules(rule: &Rule, rules: &[Rule]) -> Vec<Rule> {
    let open = Normalised::No { exponent: None };
    let mut all = vec![
        rule.clone(),
        Rule { normalised: open, ..rule.clone() },
        Rule { added: Added::Exact, normalised: open, ..rule.clone() },
    ];
    all.extend(rules.iter().cloned());
    let mut each: Vec<Rule> = Vec::new();
    for rule in all {
        if !each.contains(&rule) {
            each.push(rule);
        }
    }
    each.truncate(INNER);
    each
}

/// Ways to sum some of so many summands first, each as groups of their positions.
fn groupings(children: &[Term]) -> Vec<Vec<Vec<usize>>> {
    let all: Vec<usize> = (0..children.len()).collect();
    let is_other = |at: &usize| !has_accumulator(&children[*at]) && children[*at] != Term::Leaf(Node::Zero);
    let others: Vec<usize> = all.iter().copied().filter(is_other).collect();
    let count = others.len();
    let mut groupings: Vec<Vec<Vec<usize>>> = Vec::new();
    if count < children.len() && count > 1 {
        groupings.push(vec![others.clone()]);
    }
    for lanes in LANES {
        let lane = |first: usize| others.iter().copied().skip(first).step_by(lanes).collect();
        groupings.push((0..lanes).map(lane).collect());
    }
    for size in SIZES.into_iter().chain([count.div_ceil(2)]) {
        groupings.push(others.chunks(size.max(1)).map(<[usize]>::to_vec).collect());
    }
    if children.len() <= PAIRED {
        for first in 0..all.len() {
            groupings.extend((first + 1..all.len()).map(|second| vec![vec![first, second]]));
        }
    }
    groupings.retain(|groups| {
        let is_all = groups.iter().any(|group| group.len() == children.len());
        groups.iter().any(|group| group.len() > 1) && !is_all
    });
    groupings
}

fn is_product(tree: &Term) -> bool {
    match tree {
        Term::Leaf(node) => matches!(node, Node::Product(_)),
        Term::Scaled(child, _) => is_product(child),
        Term::Sum(..) => false,
    }
}

fn has_accumulator(tree: &Term) -> bool {
    match tree {
        Term::Leaf(node) => *node == Node::Accumulator,
        Term::Scaled(child, _) => has_accumulator(child),
        Term::Sum(children, _) => children.iter().any(has_accumulator),
    }
}

/// The summands with the sum of each group where its first member was; a summand alone stays as it is.
fn grouped(children: &[Term], groups: &[Vec<usize>], rule: &Rule) -> Vec<Term> {
    let place = |at: usize| match groups.iter().find(|group| group.contains(&at)) {
        Some(group) if group.len() > 1 => (group[0] == at).then(|| {
            let members: Vec<Term> = group.iter().map(|&member| children[member].clone()).collect();
            Term::Sum(members, rule.clone())
        }),
        _ => Some(children[at].clone()),
    };
    (0..children.len()).filter_map(place).collect()
}

/// A sum of these by this rule. Where that adds all alike, products stand in the order of their numbers, each in the place
/// of one: which of them comes first matters once one is aligned otherwise.
fn in_order(mut summands: Vec<Term>, rule: &Rule) -> Term {
    let is_alike = match &rule.added {
        Added::Fused(fused) => fused.alignment.len() == 1,
        Added::Exact => true,
    };
    if is_alike {
        let number = |summand: &Term| match summand {
            Term::Leaf(Node::Product(k)) => Some(*k),
            _ => None,
        };
        let places: Vec<usize> = (0..summands.len()).filter(|&at| number(&summands[at]).is_some()).collect();
        let mut products: Vec<Term> = places.iter().map(|&at| summands[at].clone()).collect();
        products.sort_by_key(number);
        for (at, product) in places.into_iter().zip(products) {
            summands[at] = product;
        }
    }
    Term::Sum(summands, rule.clone())
}

/// The sum as the only summand of another, and as the only one beside +0: the one is added as the sum was and the
/// sum itself exactly, or the sum as before and the one by another rule.
fn handed_on(children: &[Term], rule: &Rule, inner: &[Rule]) -> Vec<Term> {
    let mut all = Vec::new();
    let zero = || Term::Leaf(Node::Zero);
    // The other way round: without a sum that only hands another one on.
    let mut others = children.iter().filter(|child| **child != zero());
    if let (Some(only @ Term::Sum(..)), None) = (others.next(), others.next()) {
        all.push(only.clone());
    }
    for other in inner.iter().filter(|other| *other != rule) {
        for (inside, outside) in [(other, rule), (rule, other)] {
            let is_open = outside.normalised == Normalised::No { exponent: None };
            if is_open && outside.added == Added::Exact || is_handed_on_as_it_is(inside, outside) {
                continue;
            }
            let sum = || Term::Sum(children.to_vec(), inside.clone());
            all.push(Term::Sum(vec![sum()], outside.clone()));
            all.push(Term::Sum(vec![zero(), sum()], outside.clone()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::tree::Alignment;
    use mmaprobe_probes::Summand;

    use super::*;
    use crate::inference::skeleton::Skeleton;
    use crate::inference::structure::{self, Structure};
    use crate::inference::testing;

    pub(super) fn model(skeleton: &Skeleton, k: usize) -> Model {
        let mut model = structure::start(&testing::signature(k), skeleton, Structure::Plain);
        model.tree.rules[0].added = Added::Fused(Fused::uniform(25, Rounding::TowardZero));
        model
    }

    pub(super) fn drawn(model: &Model, id: NodeId) -> String {
        match &model.tree.nodes[id] {
            Node::Product(k) => format!("p{k}"),
            Node::Accumulator => "c".to_string(),
            Node::Zero => "0".to_string(),
            Node::Scaled { child, .. } => drawn(model, *child),
            Node::Sum { children, .. } => {
                let children: Vec<String> = children.iter().map(|&child| drawn(model, child)).collect();
                format!("({})", children.join(" "))
            }
        }
    }

    fn trees(model: &Model) -> Vec<String> {
        let drawn = |other: &Model| drawn(other, other.tree.nodes.len() - 1);
        regrouped(model).iter().map(|turned| drawn(&turned.model)).collect()
    }

    #[test]
    fn summands_are_summed_in_groups_first() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let flat = Skeleton::Sum([vec![Skeleton::Leaf(Summand::C)], (0..4).map(leaf).collect()].concat());
        let trees = trees(&model(&flat, 4));
        for expected in [
            "(c (p0 p1 p2 p3))",
            "(c (p0 p2) (p1 p3))",
            "(c (p0 p1) (p2 p3))",
            "((c p0 p1) p2 p3)",
            "((((c p0) p1) p2) p3)",
            "((c p3 p2) p1 p0)",
            "((((c p0) p2) p1) p3)",
        ] {
            assert!(trees.iter().any(|tree| tree == expected), "{expected} is none of {trees:?}");
        }
    }

    #[test]
    fn groups_are_summed_and_added_to_c_one_after_the_other() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let all = Skeleton::Sum((0..6).map(leaf).collect());
        let trees = trees(&model(&Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), all]), 6));
        for expected in ["((c (p0 p1 p2)) (p3 p4 p5))", "(((c (p4 p5)) (p2 p3)) (p0 p1))"] {
            assert!(trees.iter().any(|tree| tree == expected), "{expected} is none of {trees:?}");
        }
    }

    #[test]
    fn summands_of_a_chain_change_places() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let pair = |k| Skeleton::Sum(vec![leaf(k), leaf(k + 1)]);
        let first = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), pair(0)]);
        let chain = [2, 4].map(pair).into_iter().fold(first, |sum, pair| Skeleton::Sum(vec![sum, pair]));
        let found = trees(&model(&chain, 6));
        for expected in [
            "(((c (p0 p1)) (p4 p5)) (p2 p3))",
            "(((c (p4 p5)) (p2 p3)) (p0 p1))",
            "(((c (p2 p3)) (p0 p1)) (p4 p5))",
        ] {
            assert!(found.iter().any(|tree| tree == expected), "{expected} is none of {found:?}");
        }
        let products = (1..4).map(leaf).fold(leaf(0), |sum, next| Skeleton::Sum(vec![sum, next]));
        let found = trees(&model(&Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), products]), 4));
        for expected in ["(c (((p0 p1) p3) p2))", "(c (((p0 p3) p2) p1))", "(c (((p3 p1) p2) p0))"] {
            assert!(found.iter().any(|tree| tree == expected), "{expected} is none of {found:?}");
        }
    }

    #[test]
    fn a_summand_is_taken_into_a_sum_beside_it() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let three = Skeleton::Sum((0..3).map(leaf).collect());
        let skeleton = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), three, leaf(3)]);
        let found = trees(&model(&skeleton, 4));
        assert!(found.iter().any(|tree| tree == "(c (p0 p1 p2 p3))"), "{found:?}");
        // In the place of its number, where nothing else tells which comes first.
        let later = Skeleton::Sum((1..4).map(leaf).collect());
        let skeleton = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), later, leaf(0)]);
        let mut model = model(&skeleton, 4);
        let found = trees(&model);
        assert!(found.iter().any(|tree| tree == "(c (p0 p1 p2 p3))"), "{found:?}");
        let Added::Fused(fused) = &mut model.tree.rules[0].added else { panic!() };
        let first = fused.alignment[0];
        fused.alignment.push(first);
        let found = trees(&model);
        assert!(found.iter().any(|tree| tree == "(c (p1 p2 p3 p0))"), "{found:?}");
    }

    #[test]
    fn a_product_of_a_sum_is_added_after_what_follows() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let first = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), leaf(0), leaf(1)]);
        let then = Skeleton::Sum(vec![first, leaf(2)]);
        let found = trees(&model(&Skeleton::Sum(vec![then, leaf(3)]), 4));
        assert!(found.iter().any(|tree| tree == "((((c p0) p2) p1) p3)"), "{found:?}");
        // Those that stay are aligned as before.
        let first = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), leaf(0), leaf(1)]);
        let mut model = model(&Skeleton::Sum(vec![Skeleton::Sum(vec![first, leaf(2)]), leaf(3)]), 4);
        let mut own = model.tree.rules[0].clone();
        let Added::Fused(fused) = &mut own.added else { panic!() };
        let aligned = |fraction_bits| Alignment { fraction_bits, ..*fused.alignment_of(0) };
        fused.alignment = [20, 21, 22].map(aligned).to_vec().into();
        model.tree.rules.push(own);
        let inside = model.tree.nodes.iter_mut().find(|node| matches!(node, Node::Sum { .. }));
        let Some(Node::Sum { rule, .. }) = inside else { panic!() };
        *rule = 1;
        let after = regrouped(&model).into_iter().find(|turned| {
            drawn(&turned.model, turned.model.tree.nodes.len() - 1) == "((((c p1) p2) p0) p3)"
        });
        let bits = |rule: &Rule| match &rule.added {
            Added::Fused(fused) => fused.alignment.iter().map(|one| one.fraction_bits).collect(),
            Added::Exact => Vec::new(),
        };
        let rules: Vec<Vec<u32>> =
            after.expect("it is added after").model.tree.rules.iter().map(bits).collect();
        assert!(rules.contains(&vec![20, 22]) && rules.contains(&vec![20, 21, 22]), "{rules:?}");
    }

    #[test]
    fn summands_in_front_of_those_of_a_dissolved_sum_are_aligned_as_before() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let inside = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), leaf(0), leaf(1)]);
        let mut model = model(&Skeleton::Sum(vec![inside, leaf(2)]), 3);
        let mut last = model.tree.rules[0].clone();
        last.added = Added::Fused(Fused::uniform(18, Rounding::Up));
        model.tree.rules.push(last);
        if let Some(Node::Sum { rule, .. }) = model.tree.nodes.last_mut() {
            *rule = 1;
        }
        let all = regrouped(&model);
        let apart = all.iter().find(|turned| turned.choice.contains("behind the others"));
        let apart = &apart.expect("a sum is dissolved").model;
        assert_eq!(drawn(apart, apart.tree.nodes.len() - 1), "(p2 c p0 p1)");
        let Added::Fused(fused) = &apart.tree.rules[0].added else { panic!() };
        let kept: Vec<u32> = (0..4).map(|at| fused.alignment_of(at).fraction_bits).collect();
        assert_eq!(kept, [18, 25, 25, 25]);
    }

    #[test]
    fn products_are_rounded_by_sums_of_their_own() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let pair = Skeleton::Sum(vec![leaf(1), leaf(2)]);
        let trees = trees(&model(&Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), leaf(0), pair]), 3));
        for expected in ["(c p0 ((p1) (p2)))", "(c (p0) (p1 p2))"] {
            assert!(trees.iter().any(|tree| tree == expected), "{expected} is none of {trees:?}");
        }
    }

    #[test]
    fn sums_are_dissolved_and_handed_on() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let pair = |k| Skeleton::Sum(vec![leaf(k), leaf(k + 1)]);
        let skeleton = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), pair(0), pair(2)]);
        let trees = trees(&model(&skeleton, 4));
        for expected in [
            "(c p0 p1 (p2 p3))",
            "(c p0 p1 p2 p3)",
            "(c (0 (p0 p1)) (p2 p3))",
            "(c (0 (p0 p1)) (0 (p2 p3)))",
            "(0 (c (p0 p1) (p2 p3)))",
            "(c ((p0 p1) (p2 p3)))",
        ] {
            assert!(trees.iter().any(|tree| tree == expected), "{expected} is none of {trees:?}");
        }
    }

    #[test]
    fn chains_from_zero_are_dissolved_with_and_without_it() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let mut model = model(&Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), leaf(0), leaf(1)]), 2);
        let rule = model.tree.rules[0].clone();
        let product = |k| Term::Leaf(Node::Product(k));
        let first = Term::Sum(vec![Term::Leaf(Node::Zero), product(0)], rule.clone());
        let chain = Term::Sum(vec![first, product(1)], rule.clone());
        model.tree.nodes.clear();
        build(&Term::Sum(vec![Term::Leaf(Node::Accumulator), chain], rule), &mut model.tree);
        let found = trees(&model);
        for expected in ["(c (0 p0 p1))", "(c (p0 p1))"] {
            assert!(found.iter().any(|tree| tree == expected), "{expected} is none of {found:?}");
        }
    }

    #[test]
    fn exact_sums_in_an_exact_sum_differ_in_the_signs_of_zeros() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let flat = Skeleton::Sum([vec![Skeleton::Leaf(Summand::C)], (0..4).map(leaf).collect()].concat());
        let mut model = model(&flat, 4);
        let signs = |model: &Model| {
            let others = regrouped(model).into_iter();
            let pairs = others.filter(|turned| {
                drawn(&turned.model, turned.model.tree.nodes.len() - 1) == "(c (p0 p2) (p1 p3))"
            });
            let open = |rule: &Rule| rule.normalised == Normalised::No { exponent: None };
            let mut signs: Vec<(bool, bool)> = pairs
                .flat_map(|turned| turned.model.tree.rules)
                .filter(open)
                .map(|rule| (rule.zero.negative_zeros_stay, rule.zero.cancellation_is_negative))
                .collect();
            signs.sort_unstable();
            signs
        };
        model.tree.rules[0].added = Added::Exact;
        assert_eq!(signs(&model), [(false, false), (false, true), (true, true)]);
        model.tree.rules[0].zero.cancellation_is_negative = true;
        assert_eq!(signs(&model), [(false, false), (false, true), (true, false), (true, true)]);
    }
}
