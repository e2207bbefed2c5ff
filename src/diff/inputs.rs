//! Inputs to try: crafted by what numerical analysis asks, by what the two trees say, and at random.
//!
//! The probes ask about every number format and shape alike. Where trees are known, they say where it is
//! worth asking: at the bits that a sum keeps, on summands that meet in it, at the floors and the limits of
//! its exponents.

use mmaprobe_model::Model;
use mmaprobe_model::tree::{Added, Node, NodeId, Normalised};
use mmaprobe_probes::random::{self, Distribution};
use mmaprobe_probes::{DotAdd, Dyadic, Signature, Summand, nesting, place, precision, rounding, sparse};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::inference::asking::crafted;

/// Random inputs with few summands.
const SPARSE: usize = 6000;
/// Random inputs from every distribution, together.
const DENSE: usize = 3000;

/// Numbers of fraction bits that units are known to keep (MMA-Sim paper, Tables III and IV; reports on
/// fp4), asked about where no tree says what to ask about.
const KNOWN_CUTS: [i32; 9] = [10, 13, 23, 24, 25, 31, 34, 35, 36];

/// Inputs for a pair of instructions, those that are likeliest to show a difference first.
pub fn pool(signature: &Signature, models: &[&Model], seed: u64) -> Vec<DotAdd> {
    let cuts = cuts(signature, models);
    let mut pool: Vec<DotAdd> = models.iter().flat_map(|model| at_nodes(signature, model, &cuts)).collect();
    pool.extend(beside_zeros(signature));
    pool.extend(alike(signature));
    let mut probes = crafted(signature);
    probes.extend(rounding::probe(signature, &cuts));
    probes.push(rounding::exponents(signature, &cuts));
    pool.extend(probes.into_iter().flat_map(|probe| probe.dot_adds));
    pool.extend(nested(signature, &cuts));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    pool.extend((0..SPARSE).map(|_| sparse::dot_add(signature, &mut rng)));
    pool.extend((0..DENSE).map(|index| {
        random::dot_add(Distribution::ALL[index % Distribution::ALL.len()], signature, &mut rng)
    }));
    pool
}

/// The numbers of fraction bits at which something may be cut off.
fn cuts(signature: &Signature, models: &[&Model]) -> Vec<i32> {
    let mut cuts = vec![signature.d.fraction_bits as i32];
    for rule in models.iter().flat_map(|model| &model.tree.rules) {
        if let Added::Fused(fused) = &rule.added {
            for alignment in &fused.alignment {
                cuts.push(alignment.fraction_bits as i32);
                cuts.extend(alignment.far.map(|far| far.distance));
            }
        }
        if let Normalised::To(round) = &rule.normalised {
            cuts.push(round.fraction_bits as i32);
        }
    }
    if models.is_empty() {
        cuts.extend(KNOWN_CUTS);
    }
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// The least exponents that a model's sums align to.
fn floors(model: &Model) -> Vec<i32> {
    let rules = model.tree.rules.iter();
    let mut floors: Vec<i32> = rules
        .filter_map(|rule| match &rule.added {
            Added::Fused(fused) => fused.floor,
            Added::Exact => None,
        })
        .collect();
    floors.dedup();
    floors
}

/// Products, or c, through which a node's summands can be given values: of its first children, one in the
/// middle, and its last ones.
fn leaves(model: &Model, node: NodeId) -> Vec<Summand> {
    let children = model.tree.nodes[node].children();
    let last = children.len() - 1;
    let mut positions = vec![0, 1, last / 2, last.saturating_sub(1), last];
    positions.retain(|&position| position <= last);
    let mut leaves = Vec::new();
    for position in positions {
        let leaf = leaf(model, children[position], position == last);
        if let Some(leaf) = leaf.filter(|leaf| !leaves.contains(leaf)) {
            leaves.push(leaf);
        }
    }
    leaves
}

/// The first summand under a node, or the last one.
fn leaf(model: &Model, node: NodeId, last: bool) -> Option<Summand> {
    match &model.tree.nodes[node] {
        Node::Product(k) => Some(Summand::Product(*k)),
        Node::Accumulator => Some(Summand::C),
        Node::Zero => None,
        inner => {
            let children = inner.children().iter();
            let mut order: Vec<NodeId> = children.copied().collect();
            if last {
                order.reverse();
            }
            order.into_iter().find_map(|child| leaf(model, child, last))
        }
    }
}

/// At each sum of a tree, of those that add alike the first and the last: X on one summand and a little on
/// another, so far below that it is kept, cut off or just at the edge; with −X on a third, so that what is
/// left of it shows; twice, so that together they are more; at the ends of the exponents' range, and at
/// the floors of alignment.
fn at_nodes(signature: &Signature, model: &Model, cuts: &[i32]) -> Vec<DotAdd> {
    let mut nodes: Vec<NodeId> = Vec::new();
    for rule in 0..model.tree.rules.len() {
        let by_it =
            |id: &NodeId| matches!(&model.tree.nodes[*id], Node::Sum { rule: own, .. } if *own == rule);
        let mut by_it = (0..model.tree.nodes.len()).filter(by_it);
        nodes.extend(by_it.next());
        nodes.extend(by_it.next_back());
    }
    let mut distances: Vec<i32> = cuts.iter().flat_map(|cut| cut - 1..=cut + 2).collect();
    distances.sort_unstable();
    distances.dedup();
    let unit = precision::unit(signature);
    let (d_min, d_quantum) = (signature.d.min_exponent(), signature.d.min_quantum());
    let mut inputs = Vec::new();
    for node in nodes {
        let leaves = leaves(model, node);
        let mut pairs: Vec<(Summand, Summand)> = Vec::new();
        for &large in &leaves {
            pairs.extend(leaves.iter().filter(|&&small| small != large).map(|&small| (large, small)));
            // What another sum hands on.
            pairs.extend((large != Summand::C).then_some((large, Summand::C)));
            pairs.extend((large != Summand::C).then_some((Summand::C, large)));
        }
        pairs.dedup();
        for &(large, small) in &pairs {
            let third = leaves.iter().copied().chain([Summand::C, Summand::Product(signature.k - 1)]);
            let third = third.into_iter().find(|other| ![large, small].contains(other));
            let tops =
                [(unit, &distances[..]), (d_min, &distances[..]), (d_quantum - 1, &[1, 2, 18, 19, 20])];
            for (top, distances) in tops {
                for &distance in distances {
                    push_pair(&mut inputs, signature, (large, small, third), top, top - distance);
                }
            }
            for floor in floors(model) {
                for lowest in cuts.iter().flat_map(|cut| floor - cut - 2..=floor - cut + 1) {
                    for top in [floor, floor - 1, d_min, d_quantum, d_quantum - 1] {
                        push_pair(&mut inputs, signature, (large, small, third), top, lowest);
                    }
                }
            }
        }
    }
    inputs
}

/// ±2^`top` beside ±2^`lowest` and three times that, alone, with the large one taken away again, and with
/// the small one twice.
fn push_pair(
    inputs: &mut Vec<DotAdd>,
    signature: &Signature,
    (large, small, third): (Summand, Summand, Option<Summand>),
    top: i32,
    lowest: i32,
) {
    for significand in [1, 3] {
        for (large_sign, small_sign) in [(false, false), (false, true), (true, false), (true, true)] {
            let x = Dyadic { negative: large_sign, ..Dyadic::power(top) };
            let y = Dyadic { negative: small_sign, significand, exponent: lowest };
            let Some(pair) = place::question(signature, &[(large, x), (small, y)]) else { continue };
            for value in [-x, y] {
                let mut with_third = pair.clone();
                if third.is_some_and(|third| place::set(&mut with_third, signature, third, value)) {
                    inputs.push(with_third);
                }
            }
            inputs.push(pair);
        }
    }
}

/// Products that are zero, one factor of which is as large or as small as can be, beside c and beside
/// another product of every size: if a zero has an exponent, it pushes small summands out.
fn beside_zeros(signature: &Signature) -> Vec<DotAdd> {
    let Signature { k, a, b, c, .. } = *signature;
    let bits = |format, exponent| place::exactly(format, Dyadic::power(exponent));
    let zero = |format| place::exactly(format, Dyadic::new(0, 0));
    let factors = [
        (zero(&a), bits(&b, b.max_exponent())),
        (bits(&a, a.max_exponent()), zero(&b)),
        (zero(&a), bits(&b, b.min_exponent())),
    ];
    let mut places = vec![0, k - 1];
    places.dedup();
    let mut inputs = Vec::new();
    for at in places {
        for factors in &factors {
            let (Some(x), Some(y)) = factors else { continue };
            let other = (k > 1).then_some(Summand::Product((at + 1) % k));
            for small in [Some(Summand::C), other].into_iter().flatten() {
                for exponent in c.min_quantum().max(-200)..=8 {
                    for significand in [1, 3] {
                        let value = Dyadic::new(significand, exponent);
                        let Some(mut question) = place::question(signature, &[(small, value)]) else {
                            continue;
                        };
                        (question.a[at], question.b[at]) = (*x, *y);
                        inputs.push(question);
                    }
                }
            }
        }
    }
    inputs
}

/// Products that are all alike and as large as their significands let them be, so that sums carry: with c
/// of either sign, and with that what they come to is taken away again.
fn alike(signature: &Signature) -> Vec<DotAdd> {
    let Signature { k, a, b, .. } = *signature;
    let largest_fraction = |format: &mmaprobe_model::Format| {
        let significand = (2u64 << format.fraction_bits) - 1;
        place::exactly(format, Dyadic::new(significand, -(format.fraction_bits as i32)))
    };
    let (Some(x), Some(y)) = (largest_fraction(&a), largest_fraction(&b)) else { return Vec::new() };
    let Some(minus) =
        place::exactly(&a, -Dyadic::new((2u64 << a.fraction_bits) - 1, -(a.fraction_bits as i32)))
    else {
        return Vec::new();
    };
    let mut inputs = Vec::new();
    let mut live = 1;
    while live <= k {
        for sign in [x, minus] {
            for exponent in -2..=10 {
                for negative in [false, true] {
                    let c = Dyadic { negative, ..Dyadic::power(exponent) };
                    let Some(mut question) = place::question(signature, &[(Summand::C, c)]) else { continue };
                    question.a[..live].fill(sign);
                    question.b[..live].fill(y);
                    inputs.push(question);
                }
            }
        }
        live *= 2;
    }
    inputs
}

/// X on one of three neighbouring products, or of three that are far apart, and a little on the others.
fn nested(signature: &Signature, cuts: &[i32]) -> Vec<DotAdd> {
    let k = signature.k;
    if k < 3 {
        return Vec::new();
    }
    let mut triples = vec![[0, 1, 2], [0, 1, k / 2], [0, k / 2, k - 1], [0, 2, k - 1]];
    triples.retain(|[first, second, third]| first < second && second < third);
    let patterns = nesting::patterns(cuts);
    let all = triples.iter().flat_map(|&three| patterns.iter().map(move |&pattern| (three, pattern)));
    all.filter_map(|(three, pattern)| nesting::questions(signature, three, pattern)).flatten().collect()
}
