//! The trees that looks start from.

use mmaprobe_model::Model;

use crate::inference::asking::Outline;
use crate::inference::evidence::Evidence;
use crate::inference::regular::{self, Regular};
use crate::inference::skeleton::Skeleton;
use crate::inference::structure::{self, Structure};

/// The first of these models that add otherwise than all before, so many at most.
pub(super) fn distinct(mut models: impl Iterator<Item = Model>, most: usize) -> Vec<Model> {
    let mut chosen: Vec<Model> = Vec::new();
    while chosen.len() < most
        && let Some(model) = models.next()
    {
        if !chosen.iter().any(|known| known.tree.has_the_same_sums(&model.tree)) {
            chosen.push(model);
        }
    }
    chosen
}

/// So many times more is alike than not between orders that are like each other.
const ALIKE: i64 = 2;

/// What there is to start from.
#[derive(Clone, Copy)]
pub struct Starts<'a, 'd> {
    /// The answers.
    pub evidence: &'a Evidence<'d>,
    /// What they show without any rule.
    pub outline: &'a Outline,
}

impl Starts<'_, '_> {
    /// Every structure of the order that was found, simplest first.
    pub fn structures(&self) -> impl Iterator<Item = (Structure, Model)> {
        let start = |skeleton: &Skeleton, s| (s, structure::start(self.evidence.signature(), skeleton, s));
        let nested = self.outline.nested.iter();
        let nested = nested.flat_map(move |tree| Structure::NESTED.map(|s| start(tree, s)));
        self.masked().chain(nested).chain(self.closer())
    }

    /// Whether products have so little range that masks do not reach all summands: then wrong orders explain most answers.
    pub(super) fn has_little_range(&self) -> bool {
        self.outline.order.unreachable > 0
    }

    /// Every structure of the order that masks show.
    fn masked(&self) -> impl Iterator<Item = (Structure, Model)> {
        let (signature, order) = (self.evidence.signature(), &self.outline.order.skeleton);
        let start = move |s| (s, structure::start(signature, order, s));
        Structure::candidates(signature, order).into_iter().map(start)
    }

    /// What masks show with blocks that are summed and then scaled, what else is scaled as a whole, what masks show, and the
    /// first of so many structures that a closer look shows: these come before what happens to fit best with few rules.
    pub(super) fn shown(&self, closer: usize) -> impl Iterator<Item = Model> {
        let is_scaled = |structure: &Structure| match (structure, self.evidence.signature().scale) {
            (Structure::ExactGroups { size }, Some(scale)) => *size == scale.block,
            (Structure::ScaledTrees, _) => true,
            _ => false,
        };
        let summed = self.masked().filter(|(structure, _)| matches!(structure, Structure::ScaledSums { .. }));
        let scaled = self.structures().filter(move |(structure, _)| is_scaled(structure));
        let others = self.structures().take(1).chain(self.closer().take(closer));
        summed.chain(scaled).chain(others).map(|(_, start)| start)
    }

    /// The trees that exchanged summands show.
    pub(super) fn exchanged(&self) -> impl Iterator<Item = Model> {
        self.outline.exchanged.iter().flat_map(|order| self.started(order))
    }

    /// The likeliest tree of each order that exchanged summands show.
    pub(super) fn of_exchanged_orders(&self) -> impl Iterator<Item = Model> {
        self.outline.exchanged.iter().filter_map(|order| self.started(order).next())
    }

    /// The orders that exchanged summands show, and behind the first of these the one that masks do.
    fn shown_orders(&self) -> impl Iterator<Item = &Skeleton> {
        let mut exchanged = self.outline.exchanged.iter();
        exchanged.next().into_iter().chain([&self.outline.order.skeleton]).chain(exchanged)
    }

    /// The likeliest tree of each of those orders.
    pub(super) fn of_shown_orders(&self) -> impl Iterator<Item = Model> {
        self.shown_orders().filter_map(|order| self.started(order).next())
    }

    /// The likeliest tree of the first of those orders, if it is a regular one.
    pub(super) fn of_regular_order(&self) -> Option<Model> {
        self.of_exchanged_orders().next().filter(|_| self.outline.is_regular)
    }

    /// The tree that masks show, with parts as in the first of those, if that is another.
    pub(super) fn parts(&self) -> impl Iterator<Item = Model> {
        self.outline.parts.iter().flat_map(|order| self.started(order))
    }

    /// c added to the sum of all products, if masks show most summands in one sum.
    pub(super) fn accumulator_late(&self) -> Option<Model> {
        let [late, _] = self.outline.order.skeleton.is_mostly_flat().then(|| self.flat())?;
        Some(late)
    }

    /// All products in one sum, to which c is added, and all summands in one sum, whatever masks show: summands that are aligned
    /// in ways of their own may look like an order.
    pub(super) fn flat(&self) -> [Model; 2] {
        let flat = self.outline.order.skeleton.flattened();
        [Structure::AccumulatorLate, Structure::Plain]
            .map(|structure| structure::start(self.evidence.signature(), &flat, structure))
    }

    /// The likeliest trees of the first of those orders with c elsewhere; others may show the same.
    pub(super) fn c_moved(&self) -> impl Iterator<Item = Model> {
        self.outline.c_moved.iter().filter_map(|order| self.started(order).next())
    }

    /// The likeliest tree of each of those orders with groups dissolved.
    pub(super) fn dissolved(&self) -> impl Iterator<Item = Model> {
        self.outline.dissolved.iter().filter_map(|order| self.started(order).next())
    }

    /// An order that a closer look has shown, in every structure.
    fn started(&self, order: &Skeleton) -> impl Iterator<Item = Model> {
        let signature = self.evidence.signature();
        Structure::closer(signature, order).into_iter().map(move |s| structure::start(signature, order, s))
    }

    /// Structures of the orders that a closer look has shown, or that hardly differ from those found.
    pub(super) fn closer(&self) -> impl Iterator<Item = (Structure, Model)> {
        let Outline { order, nested, closer, .. } = self.outline;
        let hoisted = nested.iter().chain(closer).chain([&order.skeleton]).filter_map(Skeleton::hoisted);
        let mut trees = closer.clone();
        for tree in hoisted {
            if !trees.contains(&tree) && !nested.contains(&tree) {
                trees.push(tree);
            }
        }
        trees.into_iter().flat_map(move |tree| {
            let all = Structure::closer(self.evidence.signature(), &tree);
            let start = |s| (s, structure::start(self.evidence.signature(), &tree, s));
            all.into_iter().map(start).collect::<Vec<_>>()
        })
    }

    /// The regular order that the first of those is most like.
    pub(super) fn regular(&self) -> Option<Model> {
        let first = self.outline.closer.first()?;
        self.like_regular(&Regular::of(self.evidence.signature()), first)
    }

    /// The regular orders that those are most like, each once.
    pub(super) fn regulars(&self) -> Vec<Model> {
        let orders = self.outline.closer.iter();
        if orders.len() == 0 {
            return Vec::new();
        }
        let regular = Regular::of(self.evidence.signature());
        distinct(orders.filter_map(|order| self.like_regular(&regular, order)), usize::MAX)
    }

    /// Regular orders that say more than those which exchanged summands show, those of the first order first, each once.
    pub(super) fn finer(&self) -> Vec<Model> {
        if self.outline.exchanged.is_empty() {
            return Vec::new();
        }
        distinct(self.finer_of(&Regular::of(self.evidence.signature())), usize::MAX)
    }

    /// The same of these, and some more than once, each made when it is asked for.
    pub(super) fn finer_of(&self, regular: &Regular) -> impl Iterator<Item = Model> {
        self.plain(self.outline.exchanged.iter().flat_map(|order| regular.finer(order)))
    }

    fn like_regular(&self, regular: &Regular, order: &Skeleton) -> Option<Model> {
        let regular = regular.nearest(order, ALIKE)?;
        Some(structure::start(self.evidence.signature(), &regular, Structure::Plain))
    }

    /// The orders that exchanged summands and masks show, with the products beside other summands added first.
    pub(super) fn gathered(&self) -> impl Iterator<Item = Model> {
        let orders = self.outline.exchanged.iter().chain([&self.outline.order.skeleton]);
        self.plain(orders.filter_map(Skeleton::gathered))
    }

    /// The orders that exchanged summands show, with all products of a group added at once.
    pub(super) fn coarsened(&self) -> impl Iterator<Item = Model> {
        self.plain(self.outline.exchanged.iter().filter_map(Skeleton::coarsened))
    }

    /// The orders that exchanged summands and masks show, each followed by the same with groups taken otherwise.
    pub(super) fn grouped_otherwise(&self, regular: &Regular) -> impl Iterator<Item = Model> {
        let each = |order: &Skeleton| {
            let others = [order.gathered(), order.coarsened()];
            let nearest = others.iter().flatten().filter_map(|other| regular.nearest(other, ALIKE));
            let nearest: Vec<Skeleton> = nearest.collect();
            [Some(order.clone())].into_iter().chain(others).flatten().chain(nearest).collect::<Vec<_>>()
        };
        self.plain(self.shown_orders().flat_map(each))
    }

    /// These orders, in which each sum adds all its summands at once.
    fn plain(&self, orders: impl Iterator<Item = Skeleton>) -> impl Iterator<Item = Model> {
        let signature = self.evidence.signature();
        orders.map(|order| structure::start(signature, &order, Structure::Plain))
    }

    /// What is tried when none of those is enough: aligned sums, and orders where the formats show none.
    pub(super) fn others(&self) -> Vec<Model> {
        let signature = self.evidence.signature();
        let Outline { order, cuts, .. } = self.outline;
        let mut all = structure::aligned_starts(signature, &order.skeleton, cuts);
        if order.unreachable > 0 && self.outline.closer.is_empty() {
            let orders = regular::likely(signature);
            all.extend(orders.iter().map(|order| structure::start(signature, order, Structure::Plain)));
        }
        all
    }
}
