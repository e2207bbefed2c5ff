//! A tree from rooted triples, some of which may be wrong.
//!
//! From enough statements "x and y meet before z does" a tree follows (Aho, Sagiv, Szymanski and Ullman
//! 1981, "Inferring a tree from lowest common ancestors"). Answers that are rounded in odd ways make some of
//! them wrong, so that they are weighed here: the two trees whose leaves the most triples join are joined
//! first, as in average-linkage clustering; then every node is dissolved that most triples across it do not
//! speak for.

use std::collections::HashMap;

/// A tree over leaves that are numbered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// One leaf.
    Leaf(usize),
    /// At least two trees, those with several leaves first.
    Node(Vec<Tree>),
}

/// Two leaves, and one that they meet before.
pub type Triple = ([usize; 2], usize);

/// The part of the triples across a node, less those that contradict it, that has to speak for it.
const SUPPORT: f64 = 0.5;

/// The tree of these leaves that agrees with these triples best; flat where they contradict each other, or
/// say nothing. `asked` are the triples of leaves that could have said something.
pub fn tree(leaves: &[usize], asked: &[[usize; 3]], rooted: &[Triple]) -> Tree {
    let weights = Weights::new(asked, rooted);
    let mut trees: Vec<Tree> = leaves.iter().map(|&leaf| Tree::Leaf(leaf)).collect();
    while trees.len() > 2 {
        let mut best: Option<(Told, usize, usize)> = None;
        for i in 0..trees.len() {
            for j in i + 1..trees.len() {
                let others = trees.iter().enumerate().filter(|(at, _)| *at != i && *at != j);
                let outside: Vec<usize> = others.flat_map(|(_, tree)| tree.leaves()).collect();
                let told = weights.of(&trees[i].leaves(), &trees[j].leaves(), &outside);
                let Some(told) = told.filter(|told| told.mean > 0.0) else { continue };
                if best.is_none_or(|(most, ..)| told > most) {
                    best = Some((told, i, j));
                }
            }
        }
        let Some((_, i, j)) = best else { break };
        let later = trees.remove(j);
        let joined = Tree::Node(vec![trees[i].clone(), later]);
        trees[i] = joined;
    }
    let tree = if trees.len() == 1 { trees.remove(0) } else { Tree::Node(trees) };
    weights.supported(tree)
}

impl Tree {
    fn leaves(&self) -> Vec<usize> {
        match self {
            Tree::Leaf(leaf) => vec![*leaf],
            Tree::Node(children) => children.iter().flat_map(Tree::leaves).collect(),
        }
    }
}

/// What triples say of two trees, in the order of how much they speak for joining these, and of equals, of how many say so:
/// where few are asked about, all that are may speak for two trees of different groups.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Told {
    /// The mean of what each says: 1 for joining them, −1 for joining one of them with another first.
    mean: f64,
    /// How many were asked.
    count: u32,
}

fn sorted(mut three: [usize; 3]) -> [usize; 3] {
    three.sort_unstable();
    three
}

/// What is known of triples of leaves, by their sorted numbers.
struct Weights(HashMap<[usize; 3], Option<usize>>);

impl Weights {
    fn new(asked: &[[usize; 3]], rooted: &[Triple]) -> Weights {
        let mut known: HashMap<[usize; 3], Option<usize>> =
            asked.iter().map(|&three| (sorted(three), None)).collect();
        known.extend(rooted.iter().map(|&([x, y], z)| (sorted([x, y, z]), Some(z))));
        Weights(known)
    }

    /// How many of the triples of x, y and another leaf say that x and y meet first, less those that say
    /// that one of them meets the other leaf first, for the leaves of two trees, if any was asked.
    fn of(&self, xs: &[usize], ys: &[usize], others: &[usize]) -> Option<Told> {
        let (mut sum, mut count) = (0i64, 0u32);
        for &x in xs {
            for &y in ys {
                for &z in others {
                    let Some(odd) = self.0.get(&sorted([x, y, z])) else { continue };
                    count += 1;
                    sum += odd.map_or(0, |odd| if odd == z { 1 } else { -1 });
                }
            }
        }
        (count > 0).then(|| Told { mean: sum as f64 / f64::from(count), count })
    }

    /// The tree without the nodes that most triples across them do not speak for.
    fn supported(&self, tree: Tree) -> Tree {
        let Tree::Node(mut children) = tree else { return tree };
        while let Some(at) = (0..children.len()).find(|&at| !self.supports(&children, at)) {
            if let Tree::Node(inside) = children.remove(at) {
                children.splice(at..at, inside);
            }
        }
        let mut children: Vec<Tree> = children.into_iter().map(|child| self.supported(child)).collect();
        children.sort_by_key(|child| child.leaves().into_iter().min());
        children.sort_by_key(|child| matches!(child, Tree::Leaf(_)));
        Tree::Node(children)
    }

    /// Whether triples speak for one of these children: leaves of different children of it meet before those
    /// of the others.
    fn supports(&self, children: &[Tree], at: usize) -> bool {
        let Tree::Node(inside) = &children[at] else { return true };
        let others = children.iter().enumerate().filter(|(other, _)| *other != at);
        let outside: Vec<usize> = others.flat_map(|(_, tree)| tree.leaves()).collect();
        let mut weights = Vec::new();
        for (index, x) in inside.iter().enumerate() {
            for y in &inside[index + 1..] {
                weights.extend(self.of(&x.leaves(), &y.leaves(), &outside).map(|told| told.mean));
            }
        }
        // What was not asked speaks for nothing.
        !weights.is_empty() && weights.iter().sum::<f64>() >= SUPPORT * weights.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All triples that hold in a tree.
    fn triples(tree: &Tree) -> Vec<Triple> {
        let Tree::Node(children) = tree else { return Vec::new() };
        let mut all: Vec<Triple> = children.iter().flat_map(triples).collect();
        for (index, child) in children.iter().enumerate() {
            let others = children.iter().enumerate().filter(|(other, _)| *other != index);
            let outside: Vec<usize> = others.flat_map(|(_, tree)| tree.leaves()).collect();
            let inside = child.leaves();
            for (at, &x) in inside.iter().enumerate() {
                for &y in &inside[at + 1..] {
                    all.extend(outside.iter().map(|&z| ([x, y], z)));
                }
            }
        }
        all
    }

    fn every_three(count: usize) -> Vec<[usize; 3]> {
        let mut all = Vec::new();
        for i in 0..count {
            for j in i + 1..count {
                all.extend((j + 1..count).map(|k| [i, j, k]));
            }
        }
        all
    }

    fn trees() -> Vec<Tree> {
        let leaf = Tree::Leaf;
        let chain = (1..6).fold(leaf(0), |sum, next| Tree::Node(vec![sum, leaf(next)]));
        let pairs = Tree::Node((0..3).map(|x| Tree::Node(vec![leaf(2 * x), leaf(2 * x + 1)])).collect());
        let flat = Tree::Node((0..6).map(leaf).collect());
        let four = Tree::Node((0..4).map(leaf).collect());
        let groups = Tree::Node(vec![four, leaf(4), leaf(5)]);
        vec![chain, pairs, flat, groups]
    }

    #[test]
    fn a_tree_is_found_from_its_triples() {
        for expected in trees() {
            let found = tree(&[0, 1, 2, 3, 4, 5], &every_three(6), &triples(&expected));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_wrong_triple_does_not_change_the_tree() {
        for expected in trees() {
            let mut rooted = triples(&expected);
            rooted.retain(|&([x, y], z)| [x.min(y).min(z), x.max(y).max(z)] != [0, 5] || x + y + z != 7);
            rooted.push(([0, 5], 2));
            assert_eq!(tree(&[0, 1, 2, 3, 4, 5], &every_three(6), &rooted), expected);
        }
    }

    /// Products of formats with little range are seen beside a large c alone.
    #[test]
    fn what_no_triple_tells_apart_is_flat() {
        let leaf = Tree::Leaf;
        let expected = Tree::Node(vec![
            Tree::Node(vec![leaf(1), leaf(3), leaf(5)]),
            Tree::Node(vec![leaf(2), leaf(4)]),
            leaf(0),
        ]);
        let with_c = |three: &[usize; 3]| three.contains(&0);
        let asked: Vec<[usize; 3]> = every_three(6).into_iter().filter(with_c).collect();
        let rooted: Vec<Triple> = triples(&expected).into_iter().filter(|&(_, beside)| beside == 0).collect();
        assert_eq!(tree(&[0, 1, 2, 3, 4, 5], &asked, &rooted), expected);
    }

    /// Of 0 and 1, which are in different pairs, nothing is known but that they meet before 4.
    #[test]
    fn what_more_triples_say_comes_first() {
        let pair = |x, y| Tree::Node(vec![Tree::Leaf(x), Tree::Leaf(y)]);
        let expected = Tree::Node(vec![Tree::Node(vec![pair(0, 2), pair(1, 3)]), Tree::Leaf(4)]);
        let asked = [[0, 1, 4], [0, 2, 4], [0, 2, 3], [1, 3, 4], [1, 2, 3], [2, 3, 4]];
        let is_asked = |&([x, y], z): &Triple| asked.contains(&sorted([x, y, z]));
        let rooted: Vec<Triple> = triples(&expected).into_iter().filter(is_asked).collect();
        assert_eq!(tree(&[0, 1, 2, 3, 4], &asked, &rooted), expected);
    }

    #[test]
    fn contradictory_triples_leave_a_flat_tree() {
        let flat = Tree::Node((0..3).map(Tree::Leaf).collect());
        assert_eq!(tree(&[0, 1, 2], &[[0, 1, 2]], &[]), flat);
    }
}
