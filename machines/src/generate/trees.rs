//! Orders of summation. A sum's rule index is its *level* here: 0 within groups, 1 between groups, 2
//! where c comes in late; rules are drawn afterwards.

use super::Dice;
use crate::machine::{Node, Scale, Shape};

/// How values are joined.
#[derive(Clone, Copy)]
enum Join {
    Flat,
    Sequential,
    Pairwise,
}

const JOINS: [Join; 3] = [Join::Flat, Join::Sequential, Join::Pairwise];

/// A tree over K products and c.
pub(super) fn draw(dice: &mut Dice, k: usize, scale: Option<Scale>, odd: bool) -> (Node, Shape) {
    if let Some(scale) = scale
        && dice.percent(60)
    {
        return scaled_groups(dice, k, scale);
    }
    let (permutation, order) = permutation(dice, k);
    let product = |&k: &usize| match scale {
        Some(scale) => Node::Scaled(Box::new(Node::Product(k)), k / scale.block),
        None => Node::Product(k),
    };
    let products: Vec<Node> = permutation.iter().map(product).collect();
    let kinds: [(Kind, usize); 10] = [
        (flat, 22),
        (products_then_c, 10),
        (chain_from_c, 12),
        (chain_then_c, 7),
        (chained_groups, 15),
        (groups, 12),
        (lanes, 8),
        (pairwise, 7),
        (dot_and_c, 7),
        (any, if odd { 20 } else { 4 }),
    ];
    let (tree, kind) = dice.weighted(&kinds)(dice, products);
    (as_sum(tree), Shape { kind, order })
}

type Kind = fn(&mut Dice, Vec<Node>) -> (Node, &'static str);

/// The root is a sum, which rounds.
fn as_sum(tree: Node) -> Node {
    match tree {
        Node::Sum(..) => tree,
        other => Node::Sum(vec![other], 2),
    }
}

fn permutation(dice: &mut Dice, k: usize) -> (Vec<usize>, &'static str) {
    let mut order: Vec<usize> = (0..k).collect();
    let name = dice.weighted(&[
        ("forward", 50),
        ("reversed", 15),
        ("strided", 13),
        ("interleaved", 12),
        ("shuffled", 10),
    ]);
    match name {
        "reversed" => order.reverse(),
        // 0 2 4 … 1 3 5 …
        "strided" => {
            let stride = dice.pick(&[2, 2, 4]);
            order = (0..stride).flat_map(|first| (first..k).step_by(stride)).collect();
        }
        // 0 8 1 9 …
        "interleaved" => {
            let half = k.div_ceil(2);
            order = (0..half).flat_map(|x| [x, x + half]).filter(|&x| x < k).collect();
        }
        "shuffled" => dice.shuffle(&mut order),
        _ => {}
    }
    (order, name)
}

fn join(mut values: Vec<Node>, how: Join, level: usize) -> Node {
    if values.len() == 1 {
        return values.remove(0);
    }
    match how {
        Join::Flat => Node::Sum(values, level),
        Join::Sequential => {
            let chain = values.into_iter().reduce(|sum, next| Node::Sum(vec![sum, next], level));
            chain.expect("values to join")
        }
        Join::Pairwise => {
            while values.len() > 1 {
                let pairs = values.chunks(2).map(|pair| match pair {
                    [x, y] => Node::Sum(vec![x.clone(), y.clone()], level),
                    other => other[0].clone(),
                });
                values = pairs.collect();
            }
            values.remove(0)
        }
    }
}

/// c and a sum of products, in either order.
fn with_c(dice: &mut Dice, sum: Node) -> Node {
    let both = if dice.percent(50) { vec![Node::C, sum] } else { vec![sum, Node::C] };
    Node::Sum(both, 2)
}

fn flat(dice: &mut Dice, mut products: Vec<Node>) -> (Node, &'static str) {
    let at = if dice.percent(60) { 0 } else { products.len() };
    products.insert(at, Node::C);
    (Node::Sum(products, 2), "flat")
}

fn products_then_c(dice: &mut Dice, products: Vec<Node>) -> (Node, &'static str) {
    let sum = Node::Sum(products, 0);
    (with_c(dice, sum), "flat, then c")
}

fn chain_from_c(_: &mut Dice, mut products: Vec<Node>) -> (Node, &'static str) {
    products.insert(0, Node::C);
    (join(products, Join::Sequential, 0), "chain from c")
}

fn chain_then_c(dice: &mut Dice, mut products: Vec<Node>) -> (Node, &'static str) {
    if dice.percent(50) {
        products.insert(0, Node::Zero);
    }
    let sum = join(products, Join::Sequential, 0);
    (with_c(dice, sum), "chain, then c")
}

fn pairwise(dice: &mut Dice, mut products: Vec<Node>) -> (Node, &'static str) {
    if dice.percent(30) {
        // c is one of the leaves.
        let at = if dice.percent(50) { 0 } else { products.len() };
        products.insert(at, Node::C);
        return (join(products, Join::Pairwise, 0), "pairwise");
    }
    let sum = join(products, Join::Pairwise, 0);
    (with_c(dice, sum), "pairwise")
}

/// Groups that each start from the sum of the earlier ones.
fn chained_groups(dice: &mut Dice, products: Vec<Node>) -> (Node, &'static str) {
    let size = dice.pick(&[2, 3, 4, 4, 8, 8]);
    let from_c = dice.percent(75);
    let nested = dice.percent(25);
    let mut sum = if from_c { Node::C } else { Node::Zero };
    for group in products.chunks(size) {
        let mut summands = vec![sum];
        if nested && group.len() > 1 {
            summands.push(Node::Sum(group.to_vec(), 0));
        } else {
            summands.extend_from_slice(group);
        }
        sum = Node::Sum(summands, 1);
    }
    if from_c {
        return (sum, "chained groups");
    }
    (with_c(dice, sum), "chained groups, then c")
}

/// Groups on their own, joined.
fn groups(dice: &mut Dice, products: Vec<Node>) -> (Node, &'static str) {
    let size = dice.pick(&[2, 2, 4, 4, 8]);
    let (inner, outer) = (dice.pick(&JOINS), dice.pick(&JOINS));
    let mut sums: Vec<Node> = products.chunks(size).map(|group| join(group.to_vec(), inner, 0)).collect();
    if dice.percent(50) {
        let sum = join(sums, outer, 1);
        return (with_c(dice, sum), "groups, then c");
    }
    sums.insert(0, Node::C);
    (join(sums, outer, 1), "groups with c")
}

/// Parallel chains, joined later.
fn lanes(dice: &mut Dice, products: Vec<Node>) -> (Node, &'static str) {
    let lanes = dice.pick(&[2, 2, 4]).min(products.len());
    let from = dice.below(3);
    let how = dice.pick(&JOINS);
    let sums: Vec<Node> = (0..lanes)
        .map(|lane| {
            let mut chain: Vec<Node> = products.iter().skip(lane).step_by(lanes).cloned().collect();
            match from {
                0 => chain.insert(0, Node::Zero),
                1 if lane == 0 => chain.insert(0, Node::C),
                _ => {}
            }
            join(chain, Join::Sequential, 0)
        })
        .collect();
    let sum = join(sums, how, 1);
    if from == 1 {
        return (sum, "lanes");
    }
    (with_c(dice, sum), "lanes, then c")
}

/// Halves chained from c, each a dot product of its own or of its even and odd part.
fn dot_and_c(dice: &mut Dice, products: Vec<Node>) -> (Node, &'static str) {
    let parts = dice.pick(&[1, 2, 2, 4]);
    let split = dice.percent(50);
    let mut sum = Node::C;
    for part in products.chunks(products.len().div_ceil(parts)) {
        let dot = if split && part.len() > 1 {
            let lane = |first| Node::Sum(part.iter().skip(first).step_by(2).cloned().collect(), 0);
            Node::Sum(vec![lane(0), lane(1)], 1)
        } else {
            Node::Sum(part.to_vec(), 0)
        };
        sum = Node::Sum(vec![sum, dot], 2);
    }
    (sum, "dots chained from c")
}

/// Any tree.
fn any(dice: &mut Dice, mut products: Vec<Node>) -> (Node, &'static str) {
    products.push(Node::C);
    while products.len() > 1 {
        let size = if dice.percent(60) { 2 } else { 2 + dice.below(products.len() - 1) };
        let mut children = Vec::new();
        for _ in 0..size.min(products.len()) {
            children.push(products.swap_remove(dice.below(products.len())));
        }
        products.push(Node::Sum(children, dice.below(3)));
    }
    (products.remove(0), "any tree")
}

/// Block scales applied to the sums of their blocks, or of parts of them.
fn scaled_groups(dice: &mut Dice, k: usize, scale: Scale) -> (Node, Shape) {
    let size = match dice.pick(&[1, 1, 2]) {
        parts if scale.block.is_multiple_of(parts) => scale.block / parts,
        _ => scale.block,
    };
    let inner = dice.weighted(&[(Join::Flat, 70), (Join::Sequential, 15), (Join::Pairwise, 15)]);
    let products: Vec<Node> = (0..k).map(Node::Product).collect();
    let mut sums: Vec<Node> = products
        .chunks(size)
        .enumerate()
        .map(|(index, group)| {
            Node::Scaled(Box::new(join(group.to_vec(), inner, 0)), index * size / scale.block)
        })
        .collect();
    let outer = dice.weighted(&[(Join::Flat, 60), (Join::Sequential, 25), (Join::Pairwise, 15)]);
    let tree = if dice.percent(60) {
        sums.insert(0, Node::C);
        join(sums, outer, 1)
    } else {
        let sum = join(sums, outer, 1);
        with_c(dice, sum)
    };
    (as_sum(tree), Shape { kind: "scaled groups", order: "forward" })
}
