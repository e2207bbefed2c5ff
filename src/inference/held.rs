//! Holding many models that are alike against the same answers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use mmaprobe_model::Model;
use mmaprobe_model::execute::Value;
use mmaprobe_model::scalar::{Changes, Grafts, Inputs, Kind, Known, Nodes, Scalar, Written};
use mmaprobe_model::tree::{Node, NodeId, Rule, RuleId};
use rustc_hash::FxBuildHasher;

use super::evidence::Answered;
use super::fit;

/// The values of every node, if they fit, and d.
pub fn evaluated(executor: &mut Scalar, inputs: &Inputs) -> (Option<Nodes>, u64) {
    let nodes = executor.nodes(inputs);
    let d = nodes.as_ref().map_or_else(|| executor.execute(inputs), Nodes::d);
    (nodes, d)
}

/// What a model makes of some dot-adds, for its neighbours.
///
/// Most sums of most questions are those of another question, too: of zeros, or of one summand; and so are products.
/// Each different one is held against a neighbour once.
pub struct Values {
    /// For each dot-add, the values of every node, if they fit.
    pub nodes: Vec<Option<Nodes>>,
    number_of_nodes: usize,
    /// How many numbers there are.
    different: usize,
    /// For each dot-add and each node, the number that equal ones share.
    numbers: Vec<u32>,
    /// For each kind of nodes, their numbers.
    of_kind: Vec<Lists>,
}

impl Values {
    /// What a model makes of dot-adds: of each, its inputs and the values of every node, if they fit.
    pub fn new<'i>(model: &Model, dot_adds: impl IntoIterator<Item = (&'i Inputs, Option<Nodes>)>) -> Values {
        let mut values = Values {
            nodes: Vec::new(),
            number_of_nodes: model.tree.nodes.len(),
            different: 0,
            numbers: Vec::new(),
            of_kind: vec![Lists::default(); FIRST_RULE + model.tree.rules.len()],
        };
        let mut numbering = Numbering::default();
        for (inputs, nodes) in dot_adds {
            numbering.number(model, inputs, nodes.as_ref(), &mut values);
            values.of_kind.iter_mut().for_each(Lists::end);
            values.nodes.push(nodes);
        }
        values.different = numbering.numbers as usize;
        values
    }

    /// What a model makes of dot-adds with these inputs.
    pub fn of<'i>(model: &Model, inputs: impl IntoIterator<Item = &'i Inputs>) -> Values {
        let mut executor = Scalar::new(model).ok();
        let mut nodes = |inputs| executor.as_mut()?.nodes(inputs);
        Values::new(model, inputs.into_iter().map(|inputs| (inputs, nodes(inputs))))
    }

    /// For each node of a dot-add, its number.
    fn numbers_of(&self, dot_add: usize) -> &[u32] {
        let first = dot_add * self.number_of_nodes;
        &self.numbers[first..first + self.number_of_nodes]
    }
}

/// Of the lists of numbers, the first of a rule: those of products and of c come before it.
const FIRST_RULE: usize = 2;

/// Which of the lists holds the numbers of this kind.
fn list_of(kind: Kind) -> usize {
    match kind {
        Kind::Product => 0,
        Kind::Accumulator => 1,
        Kind::Sum(rule) => FIRST_RULE + rule,
    }
}

/// For each dot-add, the numbers of some of its nodes, each once.
#[derive(Clone, Default)]
struct Lists {
    numbers: Vec<u32>,
    /// Where each dot-add's end.
    ends: Vec<usize>,
}

impl Lists {
    fn of(&self, dot_add: usize) -> &[u32] {
        let first = if dot_add == 0 { 0 } else { self.ends[dot_add - 1] };
        &self.numbers[first..self.ends[dot_add]]
    }

    /// Adds a number to the last list.
    fn add(&mut self, number: u32) {
        let first = self.ends.last().copied().unwrap_or(0);
        if !self.numbers[first..].contains(&number) {
            self.numbers.push(number);
        }
    }

    fn end(&mut self) {
        self.ends.push(self.numbers.len());
    }
}

/// Gives equal nodes the same number.
#[derive(Default)]
struct Numbering {
    /// How many there are so far.
    numbers: u32,
    products: HashMap<[u64; 2], u32, FxBuildHasher>,
    accumulators: HashMap<u64, u32, FxBuildHasher>,
    /// By what the last summand has led to.
    sums: HashMap<u32, u32, FxBuildHasher>,
    /// What a rule or the summands so far become by one more.
    longer: HashMap<(u32, u32), u32, FxBuildHasher>,
    number_of_steps: u32,
    values: HashMap<Written, u32, FxBuildHasher>,
    number_of_values: u32,
    /// For each node of a dot-add, which value it has.
    of_node: Vec<u32>,
}

/// Sets rules apart from what they become.
const RULES: u32 = 1 << 31;

impl Numbering {
    /// Adds a dot-add's numbers.
    fn number(&mut self, model: &Model, inputs: &Inputs, nodes: Option<&Nodes>, into: &mut Values) {
        let Some(nodes) = nodes else {
            into.numbers.resize(into.numbers.len() + into.number_of_nodes, 0);
            return;
        };
        self.of_node.clear();
        for (id, node) in model.tree.nodes.iter().enumerate() {
            let fresh = self.numbers;
            let (kind, number) = match node {
                Node::Product(k) => {
                    (Some(Kind::Product), *self.products.entry(inputs.factors(*k)).or_insert(fresh))
                }
                Node::Accumulator => {
                    let number = *self.accumulators.entry(inputs.accumulator()).or_insert(fresh);
                    (Some(Kind::Accumulator), number)
                }
                Node::Sum { children, rule } => {
                    let last = self.last_step(children, *rule as u32);
                    (Some(Kind::Sum(*rule)), *self.sums.entry(last).or_insert(fresh))
                }
                Node::Zero | Node::Scaled { .. } => (None, 0),
            };
            if let Some(kind) = kind {
                self.numbers += u32::from(number == fresh);
                into.of_kind[list_of(kind)].add(number);
            }
            into.numbers.push(number);
            let fresh = self.number_of_values;
            let value = match nodes.written(id) {
                Some(written) => *self.values.entry(written).or_insert(fresh),
                // Infinities and NaNs: equal to no other.
                None => fresh,
            };
            self.number_of_values += u32::from(value == fresh);
            self.of_node.push(value);
        }
    }

    /// What the summands of a sum lead to: the same for those that have the same values and follow the same rule.
    fn last_step(&mut self, children: &[NodeId], rule: u32) -> u32 {
        let mut step = RULES | rule;
        for &child in children {
            let fresh = self.number_of_steps;
            step = *self.longer.entry((step, self.of_node[child])).or_insert(fresh);
            self.number_of_steps += u32::from(step == fresh);
        }
        step
    }
}

/// A model that is executed from the values of another, as far as they are alike.
pub struct Neighbour<'m, 'v> {
    executor: Scalar<'m>,
    /// What is different; `None` if that cannot be said from the trees.
    changes: Option<Changes>,
    /// If not, what is the same; `None` if all of it has to be executed.
    grafts: Option<Grafts>,
    /// What the other model makes of some dot-adds.
    values: Option<&'v Values>,
    known: Known<'v>,
    /// Whether values did not fit, of some dot-add.
    has_gaps: bool,
}

impl<'m, 'v> Neighbour<'m, 'v> {
    /// The neighbour `other` of a model; `None` if it cannot be executed.
    pub fn new(model: &Model, other: &'m Model) -> Option<Neighbour<'m, 'v>> {
        let (executor, changes) = (Scalar::new(other).ok()?, Changes::between(model, other));
        let grafts = if changes.is_none() { Grafts::between(model, other) } else { None };
        Some(Neighbour { executor, changes, grafts, values: None, known: Known::default(), has_gaps: false })
    }

    /// The same, of a model that makes this of some dot-adds.
    pub fn among(model: &Model, other: &'m Model, values: &'v Values) -> Option<Neighbour<'m, 'v>> {
        let neighbour = Neighbour::new(model, other)?;
        let known = Known { same: vec![false; values.different], ..Known::default() };
        Some(Neighbour { values: Some(values), known, ..neighbour })
    }

    /// A number for all values of nodes that are others than the model's, in the dot-adds so far; `None` where some of
    /// them cannot be said.
    pub fn fingerprint(&self) -> Option<u64> {
        (self.changes.is_some() && !self.has_gaps).then_some(self.known.fingerprint)
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
        match (nodes, &self.changes) {
            (Some(nodes), Some(changes)) => {
                let d = self.executor.execute_from(inputs, nodes, changes, &mut self.known);
                d.unwrap_or_else(|| {
                    self.has_gaps = true;
                    self.executor.execute(inputs)
                })
            }
            _ => {
                self.has_gaps = true;
                let grafted = nodes.zip(self.grafts.as_ref());
                let d =
                    grafted.and_then(|(nodes, grafts)| self.executor.execute_grafted(inputs, nodes, grafts));
                d.unwrap_or_else(|| self.executor.execute(inputs))
            }
        }
    }

    /// The first node whose value differs, with the model's value of it and its own, if there is one. `None`
    /// where that cannot be said from the model's values.
    pub fn first_difference(&mut self, inputs: &Inputs, nodes: &Nodes) -> Option<Option<[Value; 2]>> {
        self.known.numbers = &[];
        self.executor.first_difference(inputs, nodes, self.changes.as_ref()?, &mut self.known)
    }

    /// The same, for one of the dot-adds, which has these inputs.
    pub fn first_difference_of_one(&mut self, dot_add: usize, inputs: &Inputs) -> Option<Option<[Value; 2]>> {
        let nodes = self.look_up(dot_add)?;
        if self.is_same(dot_add) {
            return Some(None);
        }
        self.executor.first_difference(inputs, nodes, self.changes.as_ref()?, &mut self.known)
    }

    /// Whether all that might have another value in one of the dot-adds is known to have the same.
    fn is_same(&self, dot_add: usize) -> bool {
        let (Some(values), Some(changes)) = (self.values, &self.changes) else { return false };
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

/// What neighbours with other rules are executed with, one after the other.
struct Executing<'m> {
    executor: Scalar<'m>,
    /// The rules that others take the places of.
    places: Vec<RuleId>,
    /// What is different then.
    changes: Changes,
    /// As in [`Known`].
    same: Vec<bool>,
}

/// A model, and what it makes of some answers' questions: what its neighbours are held against.
pub struct Held<'a, 'm> {
    model: &'m Model,
    answers: Vec<&'a Answered>,
    values: Values,
    /// One for each thread that holds a neighbour against them, at most.
    idle: Mutex<Vec<Executing<'m>>>,
}

impl<'a, 'm> Held<'a, 'm> {
    /// A model and answers.
    pub fn new(model: &'m Model, answers: &[&'a Answered]) -> Held<'a, 'm> {
        let values = Values::of(model, answers.iter().map(|answered| &answered.inputs));
        Held { model, answers: answers.to_vec(), values, idle: Mutex::default() }
    }

    /// The number of answers.
    pub fn number_of_answers(&self) -> usize {
        self.answers.len()
    }

    /// Counts the answers that contradict another model, as [`fit::contradicted`] does; stops at `limit`.
    pub fn contradicted(&self, other: &Model, limit: usize) -> usize {
        self.contradicted_of(other, limit).0
    }

    /// Whether any answer contradicts another model, and if none does, its [fingerprint](Neighbour::fingerprint).
    pub fn first_contradiction(&self, other: &Model) -> (bool, Option<u64>) {
        let held = |neighbour: &mut Neighbour| {
            let (count, _) = self.count(other, neighbour, 1);
            (count > 0, neighbour.fingerprint())
        };
        if let Some(replaced) = self.replaced_in(other) {
            return self
                .with_rules(&other.tree.rules, replaced, |neighbour| neighbour.map_or((true, None), held));
        }
        Neighbour::among(self.model, other, &self.values)
            .map_or((true, None), |mut neighbour| held(&mut neighbour))
    }

    /// The same as [`contradicted`](Held::contradicted), and how many answers it was held against.
    pub fn contradicted_of(&self, other: &Model, limit: usize) -> (usize, usize) {
        if let Some(replaced) = self.replaced_in(other) {
            return self.with_rules(&other.tree.rules, replaced, |neighbour| match neighbour {
                Some(neighbour) => self.count(other, neighbour, limit),
                None => (limit, 0),
            });
        }
        match Neighbour::among(self.model, other, &self.values) {
            Some(mut neighbour) => self.count(other, &mut neighbour, limit),
            None => (limit, 0),
        }
    }

    fn count(&self, other: &Model, neighbour: &mut Neighbour, limit: usize) -> (usize, usize) {
        let mut count = 0;
        for (index, answered) in self.answers.iter().enumerate() {
            let d = neighbour.execute_one_of(index, &answered.inputs);
            if fit::differ(other, d, answered.answer) {
                count += 1;
                if count >= limit {
                    return (count, index + 1);
                }
            }
        }
        (count, self.answers.len())
    }

    /// The rules that others take the places of in another model, if nothing else is different about it.
    fn replaced_in(&self, other: &Model) -> Option<Vec<RuleId>> {
        let Model { k, a, b, c, scale, product, tree, d, nan } = other;
        let own = self.model;
        let is_alike = tree.nodes.is_shared_with(&own.tree.nodes)
            && tree.rules.len() == own.tree.rules.len()
            && (k, scale, product, d, nan) == (&own.k, &own.scale, &own.product, &own.d, &own.nan)
            && (a, b, c) == (&own.a, &own.b, &own.c);
        let is_other = |&rule: &RuleId| tree.rules[rule] != own.tree.rules[rule];
        is_alike.then(|| (0..tree.rules.len()).filter(is_other).collect())
    }

    /// What is made of the neighbour that has these rules, others in these places; `None` if it cannot be executed.
    fn with_rules<R>(
        &self,
        rules: &[Rule],
        replaced: Vec<RuleId>,
        make: impl FnOnce(Option<&mut Neighbour>) -> R,
    ) -> R {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(Executing { mut executor, places, changes, mut same }) = idle.or_else(|| self.executing())
        else {
            return make(None);
        };
        let can_be_executed = executor.follow(rules).is_ok();
        let changes = if places == replaced { changes } else { Changes::of_rules(self.model, &replaced) };
        same.clear();
        same.resize(self.values.different, false);
        let known = Known { same, ..Known::default() };
        let (changes, values) = (Some(changes), Some(&self.values));
        let mut neighbour = Neighbour { executor, changes, grafts: None, values, known, has_gaps: false };
        let made = make(can_be_executed.then_some(&mut neighbour));
        let Neighbour { executor, changes, known, .. } = neighbour;
        if let Some(changes) = changes {
            let executing = Executing { executor, places: replaced, changes, same: known.same };
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(executing);
        }
        made
    }

    /// The model itself; `None` if it cannot be executed.
    fn executing(&self) -> Option<Executing<'m>> {
        let executor = Scalar::new(self.model).ok()?;
        let changes = Changes::of_rules(self.model, &[]);
        Some(Executing { executor, places: Vec::new(), changes, same: Vec::new() })
    }

    /// The places of the answers that contradict another model; `None` if it cannot be executed.
    pub fn contradicting(&self, other: &Model) -> Option<impl Iterator<Item = usize>> {
        let mut neighbour = Neighbour::among(self.model, other, &self.values)?;
        Some(self.answers.iter().enumerate().filter_map(move |(index, answered)| {
            let d = neighbour.execute_one_of(index, &answered.inputs);
            fit::differ(other, d, answered.answer).then_some(index)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::evidence;
    use crate::inference::knobs;
    use crate::inference::skeleton::Skeleton;
    use crate::inference::structure::{self, Structure};
    use mmaprobe_model::format::{FP16, FP32};
    use mmaprobe_model::tree::Rule;
    use mmaprobe_probes::random::{self, Distribution};
    use mmaprobe_probes::{DotAdd, Signature, Summand, sparse};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    fn signature() -> Signature {
        Signature { k: 6, a: FP16, b: FP16, c: FP32, d: FP32, scale: None }
    }

    /// Three pairs added in turn to c; `rules` for the pairs and for the sums with c.
    fn chained_pairs(change: impl Fn(&mut Rule)) -> Model {
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let pair = |k| Skeleton::Sum(vec![leaf(k), leaf(k + 1)]);
        let first = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), pair(0)]);
        let tree = Skeleton::Sum(vec![Skeleton::Sum(vec![first, pair(2)]), pair(4)]);
        let mut model = structure::start(&signature(), &tree, Structure::Plain);
        change(&mut model.tree.rules[0]);
        model
    }

    fn questions() -> Vec<(DotAdd, Inputs)> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let sparse = (0..400).map(|_| sparse::dot_add(&signature(), &mut rng)).collect::<Vec<_>>();
        let of_all = |index: usize| Distribution::ALL[index % Distribution::ALL.len()];
        let dense = (0..400).map(|index| random::dot_add(of_all(index), &signature(), &mut rng));
        let all = sparse.into_iter().chain(dense);
        all.map(|question| (question.clone(), evidence::inputs(&signature(), &question))).collect()
    }

    fn values(model: &Model, questions: &[(DotAdd, Inputs)]) -> Values {
        assert!(Scalar::new(model).is_ok(), "it can be executed");
        Values::of(model, questions.iter().map(|(_, inputs)| inputs))
    }

    #[test]
    fn what_is_known_of_like_nodes_is_what_a_model_makes_of_each() {
        let questions = questions();
        for model in [chained_pairs(|_| ()), chained_pairs(|rule| rule.zero.negative_zeros_stay ^= true)] {
            let values = values(&model, &questions);
            let mut others: Vec<Model> = knobs::split(&model);
            others
                .extend(knobs::turn_alignments(&model, true, knobs::Scope::All).into_iter().map(|t| t.model));
            others.extend(
                knobs::turn_kind(&model, &signature(), knobs::Scope::All).into_iter().map(|t| t.model),
            );
            others.extend(knobs::turn_product_exponents(&model, &signature()).into_iter().map(|t| t.model));
            let mut differing = 0;
            for other in others.iter().filter(|other| other.check().is_ok()) {
                let mut neighbour = Neighbour::among(&model, other, &values).expect("it can be executed");
                let mut alone = Scalar::new(other).expect("it can be executed");
                for (index, (question, inputs)) in questions.iter().enumerate() {
                    let (d, expected) = (neighbour.execute_one_of(index, inputs), alone.execute(inputs));
                    assert_eq!(d, expected, "{question:x?} in {other:#?}");
                    differing += usize::from(Some(d) != values.nodes[index].as_ref().map(Nodes::d));
                }
            }
            assert!(others.len() > 10 && differing > 1000, "{differing} in {} models", others.len());
        }
    }

    #[test]
    fn what_trees_have_in_common_is_what_a_model_makes_of_each() {
        let questions = questions();
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let trees = [
            // One pair moved, the last pair first, two pairs in one sum, and the pairs of other summands.
            Skeleton::Sum(vec![
                Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), Skeleton::Sum(vec![leaf(0), leaf(1)])]),
                Skeleton::Sum(vec![leaf(2), leaf(3)]),
                Skeleton::Sum(vec![leaf(4), leaf(5)]),
            ]),
            Skeleton::Sum(vec![
                Skeleton::Sum(vec![leaf(4), leaf(5)]),
                Skeleton::Sum(vec![leaf(0), leaf(1), leaf(2), leaf(3)]),
                Skeleton::Leaf(Summand::C),
            ]),
            Skeleton::Sum(vec![
                leaf(1),
                leaf(0),
                Skeleton::Leaf(Summand::C),
                leaf(5),
                leaf(4),
                leaf(2),
                leaf(3),
            ]),
        ];
        let model = chained_pairs(|_| ());
        let values = values(&model, &questions);
        let mut differing = 0;
        for tree in &trees {
            let mut other = structure::start(&signature(), tree, Structure::Plain);
            for change in [|_: &mut Rule| (), |rule: &mut Rule| rule.zero.negative_zeros_stay ^= true] {
                other.tree.rules.iter_mut().for_each(change);
                assert!(!model.tree.adds_the_same(&other.tree));
                let mut neighbour = Neighbour::among(&model, &other, &values).expect("it can be executed");
                assert!(neighbour.grafts.is_some());
                let mut alone = Scalar::new(&other).expect("it can be executed");
                for (index, (question, inputs)) in questions.iter().enumerate() {
                    let (d, expected) = (neighbour.execute_one_of(index, inputs), alone.execute(inputs));
                    assert_eq!(d, expected, "{question:x?} in {other:#?}");
                    differing += usize::from(Some(d) != values.nodes[index].as_ref().map(Nodes::d));
                }
            }
        }
        assert!(differing > 100, "{differing}");
    }

    #[test]
    fn a_fingerprint_tells_what_differs_inside() {
        let questions = questions();
        let model = chained_pairs(|_| ());
        let values = values(&model, &questions);
        let print = |other: &Model| {
            let mut neighbour = Neighbour::among(&model, other, &values).expect("it can be executed");
            for (index, (_, inputs)) in questions.iter().enumerate() {
                neighbour.execute_one_of(index, inputs);
            }
            neighbour.fingerprint()
        };
        let signs = |change: fn(&mut Rule)| chained_pairs(change);
        let negative = signs(|rule| rule.zero.cancellation_is_negative ^= true);
        let stay = signs(|rule| rule.zero.negative_zeros_stay ^= true);
        assert_eq!(print(&model), Some(0));
        assert_ne!(print(&negative), Some(0));
        assert_ne!(print(&stay), print(&negative));
        assert_eq!(print(&stay), print(&stay.clone()));
    }
}
