//! Holding many models that are alike against the same answers.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mmaprobe_model::execute::Value;
use mmaprobe_model::scalar::{
    Changes, Columns, Grafts, Inputs, Kind, Known, Nodes, Scalar, Scratch, Written,
};
use mmaprobe_model::tree::{Node, NodeId, Rule, RuleId};
use mmaprobe_model::{Level, Model};
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

/// How two models differ, as far as what one makes of a dot-add helps to execute the other.
#[derive(Clone)]
enum Difference {
    /// Over the same tree, in these nodes.
    OfNodes(Arc<Changes>),
    /// In their trees, but for what can be taken from the first.
    OfTrees(Arc<Grafts>),
    /// So much that all has to be executed.
    Whole,
}

impl Difference {
    fn between(model: &Model, other: &Model) -> Difference {
        if let Some(changes) = Changes::between(model, other) {
            return Difference::OfNodes(changes.into());
        }
        Grafts::between(model, other).map_or(Difference::Whole, |grafts| Difference::OfTrees(grafts.into()))
    }

    fn changes(&self) -> Option<&Changes> {
        match self {
            Difference::OfNodes(changes) => Some(changes),
            Difference::OfTrees(_) | Difference::Whole => None,
        }
    }
}

/// A model that is executed from the values of another, as far as they are alike.
pub struct Neighbour<'m, 'v> {
    executor: Scalar<'m>,
    difference: Difference,
    /// What the other model makes of some dot-adds.
    values: Option<&'v Values>,
    known: Known<'v>,
    /// Whether values did not fit, of some dot-add.
    has_gaps: bool,
}

impl<'m, 'v> Neighbour<'m, 'v> {
    /// The neighbour `other` of a model; `None` if it cannot be executed.
    pub fn new(model: &Model, other: &'m Model) -> Option<Neighbour<'m, 'v>> {
        Neighbour::with(Difference::between(model, other), other)
    }

    /// The same, where this is different.
    fn with(difference: Difference, other: &'m Model) -> Option<Neighbour<'m, 'v>> {
        let (executor, known) = (Scalar::new(other).ok()?, Known::default());
        Some(Neighbour { executor, difference, values: None, known, has_gaps: false })
    }

    /// The same, of a model that makes this of some dot-adds.
    pub fn among(model: &Model, other: &'m Model, values: &'v Values) -> Option<Neighbour<'m, 'v>> {
        Some(Neighbour::new(model, other)?.of(values))
    }

    /// The same, where the model makes this of some dot-adds.
    fn of(self, values: &'v Values) -> Neighbour<'m, 'v> {
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

/// What neighbours with other rules are executed with, one after the other.
struct Executing<'m> {
    executor: Scalar<'m>,
    /// The rules that others take the places of.
    places: Vec<RuleId>,
    /// What is different then.
    changes: Arc<Changes>,
    /// As in [`Known`].
    same: Vec<bool>,
}

/// The neighbour of a model that has these rules, which can be executed.
struct Following<'r, 'h, 'a, 'm> {
    held: &'h Held<'a, 'm>,
    rules: &'r [Rule],
    changes: Arc<Changes>,
    /// An executor that follows other rules yet, and room for what is known: mostly, columns tell all.
    idle: Option<(Scalar<'m>, Vec<bool>)>,
    /// One that follows these.
    ready: Option<Neighbour<'m, 'h>>,
}

/// One executor that follows another model, made when something has to be executed alone.
trait Ready<'m, 'v> {
    fn ready(&mut self) -> &mut Neighbour<'m, 'v>;
}

impl<'h, 'm> Ready<'m, 'h> for Following<'_, 'h, '_, 'm> {
    fn ready(&mut self) -> &mut Neighbour<'m, 'h> {
        if let Some((mut executor, mut same)) = self.idle.take() {
            executor.follow(self.rules).expect("its rules have been checked");
            let values = self.held.values();
            same.clear();
            same.resize(values.different, false);
            let known = Known { same, ..Known::default() };
            let difference = Difference::OfNodes(Arc::clone(&self.changes));
            let values = Some(values);
            self.ready = Some(Neighbour { executor, difference, values, known, has_gaps: false });
        }
        self.ready.as_mut().expect("what is not idle is ready")
    }
}

/// The neighbour of a model that is any other, which can be executed.
struct Other<'h, 'a, 'm, 'o> {
    held: &'h Held<'a, 'm>,
    other: &'o Model,
    difference: Difference,
    ready: Option<Neighbour<'o, 'h>>,
}

impl<'h, 'o> Ready<'o, 'h> for Other<'h, '_, '_, 'o> {
    fn ready(&mut self) -> &mut Neighbour<'o, 'h> {
        let make = || Neighbour::with(self.difference.clone(), self.other).expect("it has been checked");
        self.ready.get_or_insert_with(|| make().of(self.held.values()))
    }
}

/// A model, and what it makes of some questions, of which each has an answer: what its neighbours are held against.
pub struct Held<'a, 'm> {
    model: &'m Model,
    inputs: Vec<&'a Inputs>,
    answers: Vec<u64>,
    /// What is asked for where columns leave something open.
    values: OnceLock<Values>,
    /// `None` if the model cannot be executed.
    columns: Option<Columns>,
    /// One for each thread that holds a neighbour against them, at most.
    idle: Mutex<Vec<Executing<'m>>>,
    rooms: Mutex<Vec<Scratch>>,
}

impl<'a, 'm> Held<'a, 'm> {
    /// A model and answers.
    pub fn new(model: &'m Model, answers: &[&'a Answered]) -> Held<'a, 'm> {
        Held::of(model, answers.iter().map(|answered| (&answered.inputs, answered.answer)))
    }

    /// A model, and what is asked with the answer to each.
    pub fn of(model: &'m Model, asked: impl Iterator<Item = (&'a Inputs, u64)>) -> Held<'a, 'm> {
        let (inputs, answers): (Vec<&Inputs>, Vec<u64>) = asked.unzip();
        let asked = inputs.iter().copied().zip(answers.iter().copied());
        let columns = Columns::new(model, asked, |x, y| fit::differ(model, x, y)).ok();
        let values = OnceLock::new();
        Held { model, inputs, answers, values, columns, idle: Mutex::default(), rooms: Mutex::default() }
    }

    /// What the model makes of the questions.
    pub fn values(&self) -> &Values {
        self.values.get_or_init(|| Values::of(self.model, self.inputs.iter().copied()))
    }

    /// The number of answers.
    pub fn number_of_answers(&self) -> usize {
        self.answers.len()
    }

    /// Counts the answers that contradict another model, as [`fit::contradicted`] does; stops at `limit`.
    pub fn contradicted(&self, other: &Model, limit: usize) -> usize {
        self.contradicted_of(other, limit).0
    }

    /// The same, and how many answers it was held against.
    pub fn contradicted_of(&self, other: &Model, limit: usize) -> (usize, usize) {
        if let Some(replaced) = self.replaced_in(other) {
            return self.with_rules(&other.tree.rules, replaced, |following| {
                let Some(following) = following else { return (limit, 0) };
                let difference = Difference::OfNodes(Arc::clone(&following.changes));
                self.count(other, &difference, following, limit)
            });
        }
        let Some(mut neighbour) = self.other(other) else { return (limit, 0) };
        let difference = neighbour.difference.clone();
        self.count(other, &difference, &mut neighbour, limit)
    }

    /// The places of the first answers, so many at most, that contradict another model, and if none does, its
    /// [fingerprint](Neighbour::fingerprint); `None` if it cannot be executed.
    pub fn seen(&self, other: &Model, most: usize) -> Option<(Vec<usize>, Option<u64>)> {
        if let Some(replaced) = self.replaced_in(other) {
            return self.with_rules(&other.tree.rules, replaced, |following| {
                let following = following?;
                let difference = Difference::OfNodes(Arc::clone(&following.changes));
                Some(self.see(other, &difference, following, most))
            });
        }
        let mut neighbour = self.other(other)?;
        let difference = neighbour.difference.clone();
        Some(self.see(other, &difference, &mut neighbour, most))
    }

    /// The places of the first answers, so many at most, that contradict another model; `None` if it cannot be executed.
    pub fn contradicting(&self, other: &Model, most: usize) -> Option<Vec<usize>> {
        let mut neighbour = self.other(other)?;
        let difference = neighbour.difference.clone();
        let (mut places, mut alone) = (Vec::new(), Alone { held: self, other, neighbour: &mut neighbour });
        self.tell(&difference, &mut alone, |place, _| {
            places.extend(place);
            places.len() < most
        });
        places.truncate(most);
        Some(places)
    }

    /// A neighbour to be executed alone; `None` if it cannot be executed.
    fn other<'h, 'o>(&'h self, other: &'o Model) -> Option<Other<'h, 'a, 'm, 'o>> {
        other.check().ok()?;
        Some(Other { held: self, other, difference: Difference::between(self.model, other), ready: None })
    }

    fn count<'x, 'h>(
        &'h self,
        other: &Model,
        difference: &Difference,
        neighbour: &mut impl Ready<'x, 'h>,
        limit: usize,
    ) -> (usize, usize) {
        let (mut count, mut seen) = (0, self.answers.len());
        self.tell(difference, &mut Alone { held: self, other, neighbour }, |place, _| {
            if let Some(place) = place {
                count += 1;
                seen = if count >= limit { place + 1 } else { seen };
            }
            count == 0 || count < limit
        });
        (count, seen)
    }

    /// What another model shows: see [`seen`](Held::seen).
    fn see<'x, 'h>(
        &'h self,
        other: &Model,
        difference: &Difference,
        neighbour: &mut impl Ready<'x, 'h>,
        most: usize,
    ) -> (Vec<usize>, Option<u64>) {
        let (mut places, mut inside) = (Vec::new(), Vec::new());
        self.tell(difference, &mut Alone { held: self, other, neighbour }, |place, differing| {
            places.extend(place);
            inside.extend(differing);
            places.len() < most
        });
        places.truncate(most);
        if !places.is_empty() || difference.changes().is_none() {
            return (places, None);
        }
        // Elsewhere nothing differs.
        let has_gaps = self.values().nodes.iter().any(Option::is_none);
        let neighbour = neighbour.ready();
        for place in inside.into_iter().flatten() {
            neighbour.execute_one_of(place, self.inputs[place]);
        }
        (places, neighbour.fingerprint().filter(|_| !has_gaps))
    }

    /// Tells of each answer that contradicts another model, which differs in this from the model, as long as `next` says so:
    /// first of the answers of a vector where anything inside may differ, and then of each contradiction among them. Many
    /// are told at once, where columns do; what they leave open is executed alone.
    fn tell<'x, 'h, R: Ready<'x, 'h>>(
        &'h self,
        difference: &Difference,
        alone: &mut Alone<'_, 'h, 'a, 'm, R>,
        mut next: impl FnMut(Option<usize>, Option<Range<usize>>) -> bool,
    ) {
        let number = self.answers.len();
        let columns = self.columns.as_ref();
        let at_once = columns.filter(|_| match difference {
            Difference::OfNodes(changes) => changes.are_of_sums(),
            Difference::OfTrees(_) => true,
            Difference::Whole => false,
        });
        let Some(columns) = at_once else {
            next(None, Some(0..number));
            (0..number).find(|&place| alone.contradicts(place) && !next(Some(place), None));
            return;
        };
        let room = self.rooms.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut room = room.unwrap_or_else(|| Scratch::new(Level::best()));
        let (mut from, mut is_over) = (0, false);
        while from < number && !is_over {
            let told = match difference {
                Difference::OfTrees(grafts) => {
                    columns.differing_grafted(alone.other, grafts, from, &mut room)
                }
                _ => {
                    let changes = difference.changes().expect("only sums are others");
                    columns.differing(alone.other, changes, from, &mut room)
                }
            };
            let places = from..from + told.number;
            if told.differs_inside {
                next(None, Some(places.clone()));
            }
            let mut lanes = told.differs | told.is_open;
            while lanes != 0 && !is_over {
                let lane = lanes.trailing_zeros();
                lanes &= lanes - 1;
                let place = from + lane as usize;
                let contradicts = told.differs >> lane & 1 == 1 || alone.contradicts(place);
                is_over = contradicts && !next(Some(place), None);
            }
            from = places.end;
        }
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner).push(room);
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
    fn with_rules<'h, 'r, R>(
        &'h self,
        rules: &'r [Rule],
        replaced: Vec<RuleId>,
        make: impl FnOnce(Option<&mut Following<'r, 'h, 'a, 'm>>) -> R,
    ) -> R {
        if replaced.iter().any(|&rule| self.model.check_rule(rule, &rules[rule]).is_err()) {
            return make(None);
        }
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(Executing { executor, places, changes, same }) = idle.or_else(|| self.executing()) else {
            return make(None);
        };
        let is_known = places == replaced;
        let changes = if is_known { changes } else { Changes::of_rules(self.model, &replaced).into() };
        let idle = Some((executor, same));
        let mut following = Following { held: self, rules, changes, idle, ready: None };
        let made = make(Some(&mut following));
        let Following { changes, idle, ready, .. } = following;
        let ready = ready.map(|neighbour| (neighbour.executor, neighbour.known.same));
        let (executor, same) = idle.or(ready).expect("what is not idle is ready");
        let executing = Executing { executor, places: replaced, changes, same };
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(executing);
        made
    }

    /// The model itself; `None` if it cannot be executed.
    fn executing(&self) -> Option<Executing<'m>> {
        let executor = Scalar::new(self.model).ok()?;
        let changes = Changes::of_rules(self.model, &[]).into();
        Some(Executing { executor, places: Vec::new(), changes, same: Vec::new() })
    }
}

/// Another model, executed for one question after the other.
struct Alone<'n, 'h, 'a, 'm, R> {
    held: &'h Held<'a, 'm>,
    other: &'n Model,
    neighbour: &'n mut R,
}

impl<'x, 'h, R: Ready<'x, 'h>> Alone<'_, 'h, '_, '_, R> {
    /// Whether the answer of this place contradicts the model.
    fn contradicts(&mut self, place: usize) -> bool {
        let d = self.neighbour.ready().execute_one_of(place, self.held.inputs[place]);
        fit::differ(self.other, d, self.held.answers[place])
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
                assert!(matches!(neighbour.difference, Difference::OfTrees(_)));
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
