//! Candidate trees for a summation order.
//!
//! Masks show which sums exist, not how each works inside: a flat sum may add c after the products,
//! or sum groups of products first; a chain may start from zero. Each possibility is a structure to
//! start the search from.

use mmaprobe_model::tree::{
    Added, Exponents, Fused, Model, NanRule, Node, NodeId, Normalised, Operand, Product, Rule, RuleId, Tree,
    ZeroTerms,
};
use mmaprobe_model::{Rounding, tree};
use mmaprobe_probes::{Signature, Summand};

use super::skeleton::Skeleton;

/// How the sums of a skeleton are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Structure {
    /// Each sum adds all its children at once.
    Plain,
    /// As plain, but the sums below the root are handed to it without being normalised.
    Open {
        /// Whether they are exact; otherwise they are aligned.
        exact: bool,
    },
    /// As plain, but a pair of products is a chain that starts from +0.
    FromZero {
        /// Whether the later product of a pair comes first.
        later_first: bool,
    },
    /// A sum of several products, or of the only one, and an accumulator adds the products first, unnormalised,
    /// and the accumulator to their sum.
    AccumulatorLate,
    /// As before, but the products are summed in interleaved groups, whose sums are added first.
    Interleaved {
        /// Number of groups; 2 for even and odd products.
        groups: usize,
    },
    /// As plain, but where a sum is of products alone, those of each block are added first, and their sum is scaled.
    ScaledSums {
        /// Whether those beside other summands are, too.
        beside: bool,
    },
    /// As plain, but the largest sums of products of one block are scaled as a whole, however they are nested.
    ScaledTrees,
    /// As plain, but each product that is the only one beside other summands is a sum of its own.
    LoneSums,
    /// The products beside an accumulator are summed exactly in groups of this many consecutive ones; then the group
    /// sums and the accumulator are added at once. Where groups are the blocks that are scaled, so are products alone.
    ExactGroups {
        /// Products in a group.
        size: usize,
    },
}

impl Structure {
    /// The structures for a skeleton in which sums are nested that masks do not show.
    pub const NESTED: [Structure; 2] = [Structure::Open { exact: false }, Structure::Open { exact: true }];

    /// The structures for a skeleton that was found by a closer look.
    pub fn closer(signature: &Signature, skeleton: &Skeleton) -> Vec<Structure> {
        let mut candidates = match skeleton.has_inner() {
            true => Structure::NESTED.to_vec(),
            false => vec![Structure::Plain],
        };
        candidates.extend(scaled_sums(signature, skeleton));
        candidates
    }

    /// The structures that make a difference for a skeleton, simplest first.
    pub fn candidates(signature: &Signature, skeleton: &Skeleton) -> Vec<Structure> {
        let mut candidates = vec![Structure::Plain];
        let widest = widest(skeleton);
        candidates.extend(scaled_sums(signature, skeleton));
        if has_inner_sum(skeleton) {
            candidates.push(Structure::Open { exact: true });
            candidates.push(Structure::Open { exact: false });
        }
        if has_product_pair(skeleton) {
            candidates.push(Structure::FromZero { later_first: false });
            candidates.push(Structure::FromZero { later_first: true });
        }
        if lone_products(skeleton) > 1 {
            candidates.push(Structure::LoneSums);
        }
        // A lone product may lose bits on its way to c.
        if widest >= signature.k.min(2) {
            candidates.push(Structure::AccumulatorLate);
        }
        if widest >= 4 {
            candidates.push(Structure::Interleaved { groups: 2 });
        }
        // The sum of all is a group where it is scaled, and all of a group are scaled alike.
        let block = signature.scale.map(|scale| scale.block);
        let powers = [16, 8, 4, 2].into_iter().filter(|&size| {
            widest >= 4
                && widest > size
                && block.is_none_or(|block| block > size && block.is_multiple_of(size))
        });
        for size in block.into_iter().filter(|&block| block > 1).chain(powers) {
            if widest >= size && widest.is_multiple_of(size) {
                candidates.push(Structure::ExactGroups { size });
            }
        }
        candidates
    }
}

impl std::fmt::Display for Structure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Structure::Plain => f.write_str("all summands of a sum at once"),
            Structure::Open { exact: true } => f.write_str("exact sums below the root"),
            Structure::Open { exact: false } => f.write_str("aligned sums below the root, not normalised"),
            Structure::FromZero { later_first: false } => {
                f.write_str("chains from +0, earlier product first")
            }
            Structure::FromZero { later_first: true } => f.write_str("chains from +0, later product first"),
            Structure::AccumulatorLate => f.write_str("products first, then the accumulator"),
            Structure::Interleaved { groups } => {
                write!(f, "products in {groups} interleaved groups, then the accumulator")
            }
            Structure::ScaledSums { beside: false } => {
                f.write_str("the products of each block summed, then scaled")
            }
            Structure::ScaledSums { beside: true } => {
                f.write_str("the products of each block summed, then scaled, also beside other summands")
            }
            Structure::ScaledTrees => f.write_str("sums of the products of one block scaled as a whole"),
            Structure::LoneSums => f.write_str("lone products as sums of their own"),
            Structure::ExactGroups { size } => write!(f, "exact sums of {size} products first"),
        }
    }
}

/// The structures in which the products of each block are summed and scaled, where these make a difference.
fn scaled_sums(signature: &Signature, skeleton: &Skeleton) -> Vec<Structure> {
    let Some(scale) = signature.scale else { return Vec::new() };
    let mut all = Vec::new();
    if has_sum_of_products(skeleton) {
        all.push(Structure::ScaledSums { beside: false });
    }
    if scale.block > 1 && widest(skeleton) > 1 {
        all.push(Structure::ScaledSums { beside: true });
    }
    if has_nested_sum_of_a_block(skeleton, scale.block) {
        all.push(Structure::ScaledTrees);
    }
    all
}

/// The block of products of which all leaves of a sum are, if they are all of one.
fn block_of(skeleton: &Skeleton, block: usize) -> Option<usize> {
    match skeleton {
        Skeleton::Leaf(Summand::C) => None,
        Skeleton::Leaf(Summand::Product(k)) => Some(k / block),
        Skeleton::Sum(children) | Skeleton::Inner(children) => {
            let first = block_of(children.first()?, block)?;
            children.iter().all(|child| block_of(child, block) == Some(first)).then_some(first)
        }
    }
}

/// Whether sums are nested in a sum of products of one block.
fn has_nested_sum_of_a_block(skeleton: &Skeleton, block: usize) -> bool {
    let (Skeleton::Sum(children) | Skeleton::Inner(children)) = skeleton else { return false };
    let is_nested = children.iter().any(|child| !matches!(child, Skeleton::Leaf(_)));
    is_nested && block_of(skeleton, block).is_some()
        || children.iter().any(|child| has_nested_sum_of_a_block(child, block))
}

/// Most products directly under one sum that also has an accumulator.
fn widest(skeleton: &Skeleton) -> usize {
    match skeleton {
        Skeleton::Leaf(_) => 0,
        Skeleton::Sum(children) | Skeleton::Inner(children) => {
            let products = products(children).count();
            let here = if products < children.len() { products } else { 0 };
            children.iter().map(widest).max().unwrap_or(0).max(here)
        }
    }
}

/// The products that are summands of a sum themselves.
fn products(children: &[Skeleton]) -> impl Iterator<Item = usize> {
    children.iter().filter_map(|child| match child {
        Skeleton::Leaf(Summand::Product(k)) => Some(*k),
        _ => None,
    })
}

/// The number of products that are the only ones beside other summands.
fn lone_products(skeleton: &Skeleton) -> usize {
    match skeleton {
        Skeleton::Leaf(_) => 0,
        Skeleton::Sum(children) | Skeleton::Inner(children) => {
            let here = products(children).count() == 1 && children.len() > 1;
            usize::from(here) + children.iter().map(lone_products).sum::<usize>()
        }
    }
}

fn has_inner_sum(skeleton: &Skeleton) -> bool {
    matches!(skeleton, Skeleton::Sum(children) if children.iter().any(|c| !matches!(c, Skeleton::Leaf(_))))
}

/// Whether some sum is of several products and nothing else.
fn has_sum_of_products(skeleton: &Skeleton) -> bool {
    match skeleton {
        Skeleton::Leaf(_) => false,
        Skeleton::Sum(children) | Skeleton::Inner(children) => {
            products_alone(children).is_some() || children.iter().any(has_sum_of_products)
        }
    }
}

/// The products that are all children of a sum, if there are several and nothing else.
fn products_alone(children: &[Skeleton]) -> Option<Vec<usize>> {
    let products: Vec<usize> = products(children).collect();
    (products.len() > 1 && products.len() == children.len()).then_some(products)
}

fn has_product_pair(skeleton: &Skeleton) -> bool {
    match skeleton {
        Skeleton::Leaf(_) => false,
        Skeleton::Sum(children) | Skeleton::Inner(children) => {
            children.len() == 2 && children.iter().all(|c| matches!(c, Skeleton::Leaf(Summand::Product(_))))
                || children.iter().any(has_product_pair)
        }
    }
}

/// The rule of sums that are rounded, before anything is known: IEEE 754's.
const ROUNDED: RuleId = 0;
/// The rule of sums inside a sum.
const INNER: RuleId = 1;
/// The rule of groups inside a sum inside a sum.
const GROUP: RuleId = 2;

/// Models to start from in which each sum of the skeleton is aligned, with these numbers of fraction
/// bits, in the ways that hardware aligns: what is lost there looks like a result with fewer bits to a
/// search that starts from exact sums.
pub fn aligned_starts(signature: &Signature, skeleton: &Skeleton, cuts: &[i32]) -> Vec<Model> {
    let exact = start(signature, skeleton, Structure::Plain);
    let roundings =
        [Rounding::TowardZero, Rounding::Down, Rounding::NearestTiesToEven, Rounding::AwayFromZero];
    cuts.iter()
        .flat_map(|&cut| roundings.map(|rounding| (cut.clamp(0, 64) as u32, rounding)))
        .map(|(fraction_bits, rounding)| {
            let mut model = exact.clone();
            for rule in &mut model.tree.rules {
                rule.added = Added::Fused(Fused::uniform(fraction_bits, rounding));
                if let Normalised::To(round) = &mut rule.normalised {
                    round.rounding = Rounding::TowardZero;
                }
            }
            model
        })
        .collect()
}

/// A model to start from: the structure, with rules that are guesses.
pub fn start(signature: &Signature, skeleton: &Skeleton, structure: Structure) -> Model {
    let mut builder = Builder { nodes: Vec::new(), structure, signature, has_inner: false };
    builder.add(skeleton);
    let open = |rounding| Rule {
        added: Added::Fused(Fused { zeros: ZeroTerms::SumsCounted, ..Fused::uniform(24, rounding) }),
        zero: tree::ZeroSigns { negative_zeros_stay: true, ..tree::ZeroSigns::IEEE },
        infinite_operands_first: false,
        normalised: Normalised::No { exponent: None },
    };
    let exact_group = Rule {
        added: Added::Exact,
        zero: tree::ZeroSigns::IEEE,
        infinite_operands_first: false,
        normalised: Normalised::No { exponent: Some(0) },
    };
    let mut rules = vec![Rule::ieee(signature.d)];
    match structure {
        Structure::Plain
        | Structure::ScaledSums { .. }
        | Structure::ScaledTrees
        | Structure::FromZero { .. } => {}
        Structure::Open { exact: true } => {
            rules.push(Rule { normalised: Normalised::No { exponent: None }, ..exact_group });
        }
        Structure::Open { exact: false } | Structure::AccumulatorLate => {
            rules.push(open(Rounding::TowardZero));
        }
        Structure::Interleaved { .. } => {
            rules.push(open(Rounding::Down));
            rules.push(open(Rounding::TowardZero));
        }
        Structure::LoneSums => rules.push(rules[ROUNDED].clone()),
        Structure::ExactGroups { .. } => rules.push(exact_group),
    }
    if rules.len() == 1 && builder.has_inner {
        rules.push(rules[0].clone());
    }
    if let Structure::Open { .. } = structure
        && !builder.has_inner
    {
        let root = builder.nodes.len() - 1;
        for node in &mut builder.nodes[..root] {
            if let Node::Sum { rule, .. } = node {
                *rule = INNER;
            }
        }
    } else if rules.len() > 1 && !matches!(structure, Structure::Open { .. } | Structure::LoneSums) {
        // The accumulator may be aligned in another way than the sum it is added to.
        let fused = Fused {
            alignment: [24, 31]
                .into_iter()
                .map(|fraction_bits| tree::Alignment { fraction_bits, rounding: Rounding::Down, far: None })
                .collect(),
            exponents: Exponents::Raw,
            zeros: ZeroTerms::SumsCounted,
            ..Fused::uniform(24, Rounding::Down)
        };
        rules[ROUNDED].added = Added::Fused(fused);
    }
    Model {
        k: signature.k,
        a: Operand::plain(signature.a),
        b: Operand::plain(signature.b),
        c: Operand::plain(signature.c),
        scale: signature.scale,
        product: Product::Exact,
        tree: Tree { nodes: builder.nodes.into(), rules },
        d: signature.d,
        nan: NanRule::Unknown,
    }
}

/// A structure with the rules of another model of the same instruction: its sums are added as the
/// other's root is, those inside a sum without being normalised.
pub fn with_rules_of(structure: Model, other: &Model) -> Model {
    let mut rules = structure.tree.rules;
    let root = match other.tree.nodes.last() {
        Some(Node::Sum { rule, .. }) => &other.tree.rules[*rule],
        _ => return Model { tree: Tree { rules, ..structure.tree }, ..structure },
    };
    for rule in &mut rules {
        let exact = rule.added == Added::Exact && matches!(rule.normalised, Normalised::No { .. });
        let added = if exact { Added::Exact } else { root.added.clone() };
        let normalised = match rule.normalised {
            Normalised::To(_) => root.normalised,
            open => open,
        };
        *rule = Rule { added, normalised, ..root.clone() };
    }
    Model { tree: Tree { nodes: structure.tree.nodes, rules }, ..other.clone() }
}

struct Builder<'s> {
    nodes: Vec<Node>,
    structure: Structure,
    signature: &'s Signature,
    /// Whether there are sums that masks do not show.
    has_inner: bool,
}

impl Builder<'_> {
    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn sum(&mut self, children: Vec<NodeId>, rule: RuleId) -> NodeId {
        self.push(Node::Sum { children, rule })
    }

    fn add(&mut self, skeleton: &Skeleton) -> NodeId {
        if let (Structure::ScaledTrees, Some(scale), Skeleton::Sum(_) | Skeleton::Inner(_)) =
            (self.structure, self.signature.scale, skeleton)
            && let Some(block) = block_of(skeleton, scale.block)
        {
            self.has_inner = true;
            let child = self.unscaled(skeleton);
            return self.push(Node::Scaled { child, block });
        }
        match skeleton {
            Skeleton::Leaf(Summand::C) => self.push(Node::Accumulator),
            Skeleton::Leaf(Summand::Product(k)) => self.product(*k),
            Skeleton::Sum(children) => self.add_sum(children, ROUNDED),
            Skeleton::Inner(children) if matches!(self.structure, Structure::ScaledSums { .. }) => {
                self.has_inner = true;
                self.add_sum(children, INNER)
            }
            Skeleton::Inner(children) => {
                self.has_inner = true;
                let children: Vec<NodeId> = children.iter().map(|child| self.add(child)).collect();
                self.sum(children, INNER)
            }
        }
    }

    /// A sum that is scaled as a whole, without its scales.
    fn unscaled(&mut self, skeleton: &Skeleton) -> NodeId {
        match skeleton {
            Skeleton::Leaf(Summand::C) => self.push(Node::Accumulator),
            Skeleton::Leaf(Summand::Product(k)) => self.push(Node::Product(*k)),
            Skeleton::Sum(children) | Skeleton::Inner(children) => {
                let children: Vec<NodeId> = children.iter().map(|child| self.unscaled(child)).collect();
                self.sum(children, INNER)
            }
        }
    }

    /// A product, scaled by its block's scales.
    fn product(&mut self, k: usize) -> NodeId {
        let product = self.push(Node::Product(k));
        self.scaled(product, k)
    }

    /// A product or a sum of products, of which this is one, scaled by their block's scales.
    fn scaled(&mut self, child: NodeId, k: usize) -> NodeId {
        match self.signature.scale {
            Some(scale) => self.push(Node::Scaled { child, block: k / scale.block }),
            None => child,
        }
    }

    /// A sum of products, scaled where all of them are scaled alike; otherwise each is.
    fn group(&mut self, products: &[usize]) -> NodeId {
        let block_of = |k: usize| self.signature.scale.map_or(0, |scale| k / scale.block);
        let is_one_block = products.iter().all(|&k| block_of(k) == block_of(products[0]));
        let members: Vec<NodeId> = match is_one_block {
            true => products.iter().map(|&k| self.push(Node::Product(k))).collect(),
            false => products.iter().map(|&k| self.product(k)).collect(),
        };
        let sum = self.sum(members, INNER);
        if is_one_block { self.scaled(sum, products[0]) } else { sum }
    }

    /// The sums of the products of each block, scaled.
    fn scaled_sums(&mut self, products: &[usize], block: usize, rule: RuleId) -> Vec<NodeId> {
        let mut products = products.to_vec();
        products.sort_unstable();
        let groups = products.chunk_by(|x, y| x / block == y / block);
        groups
            .map(|group| {
                let members: Vec<NodeId> = group.iter().map(|&k| self.push(Node::Product(k))).collect();
                let child = match members[..] {
                    [only] => only,
                    _ => self.sum(members, rule),
                };
                self.push(Node::Scaled { child, block: group[0] / block })
            })
            .collect()
    }

    fn add_sum(&mut self, children: &[Skeleton], rule: RuleId) -> NodeId {
        if let (Structure::ScaledSums { .. }, Some(scale), Some(products)) =
            (self.structure, self.signature.scale, products_alone(children))
        {
            let scaled = self.scaled_sums(&products, scale.block, rule);
            return match scaled[..] {
                [only] => only,
                _ => self.sum(scaled, rule),
            };
        }
        let products: Vec<usize> = products(children).collect();
        let has_accumulator = products.len() < children.len();
        match self.structure {
            Structure::FromZero { later_first } if children.len() == 2 && products.len() == 2 => {
                let (first, second) = if later_first { (1, 0) } else { (0, 1) };
                let zero = self.push(Node::Zero);
                let first = self.product(products[first]);
                let started = self.sum(vec![zero, first], ROUNDED);
                let second = self.product(products[second]);
                self.sum(vec![started, second], ROUNDED)
            }
            Structure::AccumulatorLate if has_accumulator && products.len() >= self.signature.k.min(2) => {
                let mut outer = self.add_others(children);
                let inner: Vec<NodeId> = products.iter().map(|&k| self.product(k)).collect();
                outer.push(self.sum(inner, INNER));
                self.sum(outer, ROUNDED)
            }
            Structure::Interleaved { groups } if has_accumulator && products.len() >= 2 * groups => {
                let mut outer = self.add_others(children);
                let sums: Vec<NodeId> = (0..groups)
                    .map(|group| {
                        let members: Vec<NodeId> =
                            products.iter().skip(group).step_by(groups).map(|&k| self.product(k)).collect();
                        self.sum(members, GROUP)
                    })
                    .collect();
                outer.push(self.sum(sums, INNER));
                self.sum(outer, ROUNDED)
            }
            Structure::ExactGroups { size }
                if has_accumulator && products.len() >= size || self.is_of_blocks(size, &products) =>
            {
                let mut outer = self.add_others(children);
                for group in products.chunks(size) {
                    outer.push(self.group(group));
                }
                self.sum(outer, ROUNDED)
            }
            Structure::ScaledSums { beside: true } if has_accumulator && products.len() > 1 => {
                let block = self.signature.scale.map_or(1, |scale| scale.block);
                let mut outer = self.add_others(children);
                outer.extend(self.scaled_sums(&products, block, rule));
                self.sum(outer, rule)
            }
            Structure::LoneSums if has_accumulator && products.len() == 1 => {
                let each = |child: &Skeleton| {
                    let added = self.add(child);
                    match child {
                        Skeleton::Leaf(Summand::Product(_)) => self.sum(vec![added], INNER),
                        _ => added,
                    }
                };
                let children: Vec<NodeId> = children.iter().map(each).collect();
                self.sum(children, rule)
            }
            _ => {
                let children: Vec<NodeId> = children.iter().map(|child| self.add(child)).collect();
                self.sum(children, rule)
            }
        }
    }

    /// Whether groups of this size are the blocks that are scaled, and these products are those of several.
    fn is_of_blocks(&self, size: usize, products: &[usize]) -> bool {
        self.signature.scale.is_some_and(|scale| scale.block == size) && products.len() > size
    }

    fn add_others(&mut self, children: &[Skeleton]) -> Vec<NodeId> {
        children
            .iter()
            .filter(|child| !matches!(child, Skeleton::Leaf(Summand::Product(_))))
            .map(|child| self.add(child))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{E2M1, FP32, UE8M0};
    use mmaprobe_model::tree::Scale;

    use super::*;

    /// Under how many scales each product is, from the root.
    fn scales_above(model: &Model) -> Vec<usize> {
        let mut above = vec![0; model.tree.nodes.len()];
        let mut of_products = vec![0; model.k];
        for (id, node) in model.tree.nodes.iter().enumerate().rev() {
            let own = above[id];
            match node {
                Node::Product(k) => of_products[*k] = own,
                Node::Scaled { child, .. } => above[*child] = own + 1,
                node => node.children().iter().for_each(|&child| above[child] = own),
            }
        }
        of_products
    }

    #[test]
    fn the_only_product_may_be_a_sum_of_its_own() {
        let skeleton = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), Skeleton::Leaf(Summand::Product(0))]);
        let signature = Signature { k: 1, a: E2M1, b: E2M1, c: FP32, d: FP32, scale: None };
        let sums = |structure| {
            let nodes = start(&signature, &skeleton, structure).tree.nodes;
            nodes.iter().filter(|node| matches!(node, Node::Sum { .. })).count()
        };
        let all = Structure::candidates(&signature, &skeleton).into_iter().map(sums);
        assert_eq!(all.collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn every_product_is_scaled_once_in_every_structure() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let c = || Skeleton::Leaf(Summand::C);
        let sum = |from: Skeleton, products: std::ops::Range<usize>| {
            Skeleton::Sum(std::iter::once(from).chain(products.map(leaf)).collect())
        };
        let apart = Skeleton::Sum(vec![c(), Skeleton::Sum((0..16).map(leaf).collect())]);
        let skeletons = [sum(c(), 0..16), sum(sum(c(), 0..12), 12..16), sum(sum(c(), 0..3), 3..16), apart];
        let mut groups = 0;
        for block in [1, 2, 4, 16] {
            let scale = Some(Scale { format: UE8M0, block });
            let signature = Signature { k: 16, a: E2M1, b: E2M1, c: FP32, d: FP32, scale };
            for skeleton in &skeletons {
                for structure in Structure::candidates(&signature, skeleton) {
                    let model = start(&signature, skeleton, structure);
                    assert_eq!(scales_above(&model), [1; 16], "{structure} of {skeleton:?}");
                    groups += usize::from(matches!(structure, Structure::ExactGroups { .. }));
                }
            }
        }
        assert!(groups > 3, "{groups}");
    }

    #[test]
    fn a_chain_of_products_of_one_block_is_scaled_as_a_whole() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let chain = |products: std::ops::Range<usize>| {
            products.map(leaf).reduce(|sum, product| Skeleton::Sum(vec![sum, product])).unwrap()
        };
        let skeleton = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), chain(0..4), chain(4..8)]);
        for (block, scaled) in [(8, 2), (4, 2), (2, 6)] {
            let signature = Signature {
                k: 8,
                a: E2M1,
                b: E2M1,
                c: FP32,
                d: FP32,
                scale: Some(Scale { format: UE8M0, block }),
            };
            assert!(
                Structure::closer(&signature, &skeleton).contains(&Structure::ScaledTrees) == (block > 2)
            );
            let model = start(&signature, &skeleton, Structure::ScaledTrees);
            let scales = model.tree.nodes.iter().filter(|node| matches!(node, Node::Scaled { .. })).count();
            assert_eq!((scales, scales_above(&model)), (scaled, vec![1; 8]), "{:#?}", model.tree);
        }
    }

    #[test]
    fn blocks_of_a_sum_without_an_accumulator_are_scaled_as_a_whole_too() {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let first =
            Skeleton::Sum(std::iter::once(Skeleton::Leaf(Summand::C)).chain((0..4).map(leaf)).collect());
        let inside = Skeleton::Sum(vec![first, Skeleton::Sum((4..12).map(leaf).collect())]);
        let skeleton = Skeleton::Sum(std::iter::once(inside).chain((12..16).map(leaf)).collect());
        let scale = Some(Scale { format: UE8M0, block: 4 });
        let signature = Signature { k: 16, a: E2M1, b: E2M1, c: FP32, d: FP32, scale };
        for structure in [Structure::ExactGroups { size: 4 }, Structure::ScaledSums { beside: true }] {
            let model = start(&signature, &skeleton, structure);
            let scaled = model.tree.nodes.iter().filter(|node| matches!(node, Node::Scaled { .. })).count();
            assert_eq!(scaled, 4, "{:#?}", model.tree);
            assert_eq!(scales_above(&model), [1; 16]);
        }
    }
}
