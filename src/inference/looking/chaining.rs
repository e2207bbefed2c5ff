//! Chains of which only part of the order shows.
//!
//! A chain from c adds one product after the other. Where products have little range, or share a scale, some of them look as if
//! they were added at once. Their number of orders is large, but a chain's sums mostly share a rule, which the others
//! show; and with it, what comes first can be told for one product at a time.

use mmaprobe_model::Model;
use mmaprobe_model::tree::Tree;
use rayon::prelude::*;

use super::Looked;
use super::starts::Starts;
use crate::inference::alike::{self, Sharing};
use crate::inference::evidence::{Answered, Evidence};
use crate::inference::fit;
use crate::inference::nodewise::{Effort, Start};
use crate::inference::skeleton::Skeleton;
use crate::inference::structure::{self, Structure};

/// Chains of which the order is looked for, and answers that it is told by, about.
const CHAINS: usize = 4;
const TOLD_BY: usize = 8000;

/// The chains that a closer look shows, with one product after the other, in the order with which a rule that all sums share, found
/// before, explains most. Not those that mostly add several products at once.
pub(super) fn apart(starts: &Starts) -> Vec<Model> {
    let is_partly_shown = |links: &Vec<Vec<Skeleton>>| {
        let several = links.iter().filter(|link| link.len() > 1).count();
        several > 0 && links.len() >= 2 * several
    };
    let chains = starts.outline.closer.iter().filter_map(Skeleton::links).filter(is_partly_shown);
    chains.take(CHAINS).filter_map(|links| ordered(starts.evidence, links)).collect()
}

/// A chain with these links, one product after the other.
fn ordered(evidence: &Evidence, mut links: Vec<Vec<Skeleton>>) -> Option<Model> {
    let shared = |links: &[Vec<Skeleton>]| {
        let chain = Skeleton::chain_of(links);
        let start = structure::start(evidence.signature(), &chain, Structure::Plain);
        Some((alike::with_shared_rules(&start, Sharing::Inside)?, start))
    };
    let (model, start) = shared(&links)?;
    let Looked { fitted, .. } = Looked::sharing(evidence, &start, model, Start::Guessed, Effort::Glance);
    let all: Vec<&Answered> = evidence.answers.iter().collect();
    let answers = fit::thinned(&all, TOLD_BY);
    let contradicted = |links: &[Vec<Skeleton>]| {
        let (other, _) = shared(links)?;
        // What is rounded twice has more rules.
        let rules = Some(&fitted.model.tree.rules).filter(|rules| rules.len() == other.tree.rules.len())?;
        let tree = Tree { nodes: other.tree.nodes, rules: rules.clone() };
        let model = Model { tree, ..fitted.model.clone() };
        Some(fit::contradicted(&model, answers.iter().copied(), usize::MAX))
    };
    let mut at = 0;
    while at < links.len() {
        let link = links[at].clone();
        let with_first = |first: usize| {
            let mut rest = link.clone();
            let first = rest.remove(first);
            let parts = [vec![first], rest].into_iter().filter(|part| !part.is_empty());
            let mut links = links.clone();
            links.splice(at..=at, parts);
            Some((contradicted(&links)?, links))
        };
        let all: Vec<_> = (0..link.len()).into_par_iter().filter_map(with_first).collect();
        // The first among equals.
        (_, links) = all.into_iter().min_by_key(|(contradicted, _)| *contradicted)?;
        at += 1;
    }
    Some(shared(&links)?.1)
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::{FP16, FP32};
    use mmaprobe_model::tree::{Added, Fused, Node, Normalised};
    use mmaprobe_probes::Summand;

    use super::*;
    use crate::device::Device;
    use crate::inference::testing;

    /// A chain from c that adds products in this order, in sums that are aligned and truncated, of which none but the last is
    /// normalised.
    fn chain(order: &[usize]) -> Model {
        let mut model = Model::chain_of_fma(FP16, FP32, order.len());
        let last = &mut model.tree.rules[0];
        last.added = Added::Fused(Fused::uniform(9, Rounding::TowardZero));
        let mut inside = last.clone();
        inside.normalised = Normalised::No { exponent: None };
        model.tree.rules.push(inside);
        let mut nodes = vec![Node::Accumulator];
        for (at, &product) in order.iter().enumerate() {
            let before = nodes.len() - 1;
            nodes.push(Node::Product(product));
            let rule = usize::from(at + 1 < order.len());
            nodes.push(Node::Sum { children: vec![before, before + 1], rule });
        }
        model.tree.nodes = nodes.into();
        model
    }

    #[test]
    fn the_order_of_a_chain_that_shows_in_part_is_told_by_a_rule_that_all_sums_share() {
        let order = [3, 0, 5, 2, 4, 1];
        let truth = chain(&order);
        assert_eq!(truth.check(), Ok(()));
        let signature = testing::signature(order.len());
        let device = testing::device(&signature, truth.clone(), (1, 1));
        let mut evidence = Evidence::new(&device, &device.instructions()[0]);
        evidence.answers = testing::sparse_answers(&signature, &truth, 6000, 4);
        let leaves =
            |products: &[usize]| products.iter().map(|&k| Skeleton::Leaf(Summand::Product(k))).collect();
        // Of the third to the fifth, nothing shows which comes first.
        let links: Vec<Vec<Skeleton>> = vec![leaves(&[3]), leaves(&[0]), leaves(&[2, 4, 5]), leaves(&[1])];
        let unordered = structure::start(&signature, &Skeleton::chain_of(&links), Structure::Plain);
        assert!(!unordered.tree.has_the_same_sums(&truth.tree));
        let found = ordered(&evidence, links).expect("a rule is found");
        assert!(found.tree.has_the_same_sums(&truth.tree), "{:?}", found.tree.nodes);
    }
}
