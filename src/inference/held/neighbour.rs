//! A model that is executed from the values of another.

use std::sync::Arc;

use mmaprobe_model::Model;
use mmaprobe_model::execute::Value;
use mmaprobe_model::scalar::{Changes, Grafts, Inputs, Kind, Known, Nodes, Scalar, Steps};

use super::values::{Values, list_of};

/// How two models differ, as far as what one makes of a dot-add helps to execute the other.
#[derive(Clone)]
pub(super) enum Difference {
    /// Over the same tree, in these nodes.
    OfNodes(Arc<Changes>),
    /// In their trees, but for what can be taken from the first.
    OfTrees(Arc<Grafts>),
    /// So much that all has to be executed.
    Whole,
}

impl Difference {
    pub(super) fn between(model: &Model, other: &Model) -> Difference {
        if let Some(changes) = Changes::between(model, other) {
            return Difference::OfNodes(changes.into());
        }
        Grafts::between(model, other).map_or(Difference::Whole, |grafts| Difference::OfTrees(grafts.into()))
    }

    /// What columns evaluate; `None` if they cannot.
    pub(super) fn steps(&self) -> Option<Steps<'_>> {
        match self {
            Difference::OfNodes(changes) => changes.are_of_sums().then_some(Steps::Changed(changes)),
            Difference::OfTrees(grafts) => Some(Steps::Grafted(grafts)),
            Difference::Whole => None,
        }
    }

    pub(super) fn changes(&self) -> Option<&Changes> {
        match self {
            Difference::OfNodes(changes) => Some(changes),
            Difference::OfTrees(_) | Difference::Whole => None,
        }
    }
}

/// A model that is executed from the values of another, as far as they are alike.
pub struct Neighbour<'m, 'v> {
    pub(super) executor: Scalar<'m>,
    pub(super) difference: Difference,
    /// What the other model makes of some dot-adds.
    pub(super) values: Option<&'v Values>,
    pub(super) known: Known<'v>,
    /// Whether values did not fit, of some dot-add.
    pub(super) has_gaps: bool,
}

impl<'m, 'v> Neighbour<'m, 'v> {
    /// The neighbour `other` of a model; `None` if it cannot be executed.
    pub fn new(model: &Model, other: &'m Model) -> Option<Neighbour<'m, 'v>> {
        Neighbour::with(Difference::between(model, other), other)
    }

    /// The same, where this is different.
    pub(super) fn with(difference: Difference, other: &'m Model) -> Option<Neighbour<'m, 'v>> {
        let (executor, known) = (Scalar::new(other).ok()?, Known::default());
        Some(Neighbour { executor, difference, values: None, known, has_gaps: false })
    }

    /// The same, of a model that makes this of some dot-adds.
    pub fn among(model: &Model, other: &'m Model, values: &'v Values) -> Option<Neighbour<'m, 'v>> {
        Some(Neighbour::new(model, other)?.of(values))
    }

    /// The same, where the model makes this of some dot-adds.
    pub(super) fn of(self, values: &'v Values) -> Neighbour<'m, 'v> {
        let known = Known { same: vec![false; values.different], ..Known::default() };
        Neighbour { values: Some(values), known, ..self }
    }

    /// A number for all values of nodes that are others than the model's, in the dot-adds so far; `None` where some of
    /// them cannot be said.
    pub fn fingerprint(&self) -> Option<u64> {
        (self.difference.changes().is_some() && !self.has_gaps).then_some(self.known.fingerprint)
    }

    /// Its d, where the model has these values for the inputs, if they fit.
    pub fn execute(&mut self, inputs: &Inputs, nodes: Option<&Nodes>) -> u64 {
        self.known.numbers = &[];
        self.execute_with_known(inputs, nodes)
    }

    /// Its d of one of the dot-adds, which has these inputs.
    pub fn execute_one_of(&mut self, dot_add: usize, inputs: &Inputs) -> u64 {
        match self.look_up(dot_add) {
            Some(nodes) if self.is_same(dot_add) => nodes.d(),
            nodes => self.execute_with_known(inputs, nodes),
        }
    }

    fn execute_with_known(&mut self, inputs: &Inputs, nodes: Option<&Nodes>) -> u64 {
        let executor = &mut self.executor;
        let d = nodes.and_then(|nodes| match &self.difference {
            Difference::OfNodes(changes) => executor.execute_from(inputs, nodes, changes, &mut self.known),
            Difference::OfTrees(grafts) => executor.execute_grafted(inputs, nodes, grafts),
            Difference::Whole => None,
        });
        self.has_gaps |= d.is_none() || self.difference.changes().is_none();
        d.unwrap_or_else(|| self.executor.execute(inputs))
    }

    /// The first node whose value differs, with the model's value of it and its own, if there is one. `None`
    /// where that cannot be said from the model's values.
    pub fn first_difference(&mut self, inputs: &Inputs, nodes: &Nodes) -> Option<Option<[Value; 2]>> {
        self.known.numbers = &[];
        self.executor.first_difference(inputs, nodes, self.difference.changes()?, &mut self.known)
    }

    /// The same, for one of the dot-adds, which has these inputs.
    pub fn first_difference_of_one(&mut self, dot_add: usize, inputs: &Inputs) -> Option<Option<[Value; 2]>> {
        let nodes = self.look_up(dot_add)?;
        if self.is_same(dot_add) {
            return Some(None);
        }
        self.executor.first_difference(inputs, nodes, self.difference.changes()?, &mut self.known)
    }

    /// Whether all that might have another value in one of the dot-adds is known to have the same.
    fn is_same(&self, dot_add: usize) -> bool {
        let (Some(values), Some(changes)) = (self.values, self.difference.changes()) else { return false };
        let is_known = |&number: &u32| self.known.same[number as usize];
        let are_known = |kind: &Kind| values.of_kind[list_of(*kind)].of(dot_add).iter().all(is_known);
        changes.kinds().is_some_and(|kinds| kinds.iter().all(are_known))
    }

    /// The model's values for one of the dot-adds, if there are any and they fit.
    fn look_up(&mut self, dot_add: usize) -> Option<&'v Nodes> {
        let values = self.values?;
        (self.known.dot_add, self.known.numbers) = (dot_add, values.numbers_of(dot_add));
        values.nodes.get(dot_add)?.as_ref()
    }
}
