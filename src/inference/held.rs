//! Holding many models that are alike against the same answers.

mod neighbour;
mod values;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mmaprobe_model::scalar::{Changes, Columns, Inputs, Known, Scalar, Scratch};
use mmaprobe_model::tree::{Rule, RuleId};
use mmaprobe_model::{Level, Model};

use super::evidence::Answered;
use super::fit;
use neighbour::Difference;
pub use neighbour::Neighbour;
pub use values::{Values, evaluated};

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
        let mut neighbour = self.other(other)?;
        let difference = neighbour.difference.clone();
        let (mut places, mut inside) = (Vec::new(), Vec::new());
        self.tell(&difference, &mut Alone { held: self, other, neighbour: &mut neighbour }, |shown| {
            match shown {
                Shown::Contradiction(place) => places.push(place),
                Shown::Inside(place) => inside.push(place),
            }
            places.len() < most
        });
        places.truncate(most);
        if !places.is_empty() || difference.changes().is_none() {
            return Some((places, None));
        }
        let has_gaps = self.values().nodes.iter().any(Option::is_none);
        let neighbour = neighbour.ready();
        if difference.steps().is_some() {
            // What has been executed alone would count twice; elsewhere nothing differs.
            neighbour.known.fingerprint = 0;
            for place in inside {
                neighbour.execute_one_of(place, self.inputs[place]);
            }
        }
        Some((places, neighbour.fingerprint().filter(|_| !has_gaps)))
    }

    /// The places of the first answers, so many at most, that contradict another model; `None` if it cannot be executed.
    pub fn contradicting(&self, other: &Model, most: usize) -> Option<Vec<usize>> {
        let mut neighbour = self.other(other)?;
        let difference = neighbour.difference.clone();
        let (mut places, mut alone) = (Vec::new(), Alone { held: self, other, neighbour: &mut neighbour });
        self.tell(&difference, &mut alone, |shown| {
            if let Shown::Contradiction(place) = shown {
                places.push(place);
            }
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
        self.tell(difference, &mut Alone { held: self, other, neighbour }, |shown| {
            if let Shown::Contradiction(place) = shown {
                count += 1;
                seen = if count >= limit { place + 1 } else { seen };
            }
            count == 0 || count < limit
        });
        (count, seen)
    }

    /// Tells what answers show of another model, which differs in this from the model, as long as `next` says so. Many are
    /// told at once, where columns do; what they leave open is executed alone. Where columns tell nothing, all are, and
    /// nothing is told of what is inside.
    fn tell<'x, 'h, R: Ready<'x, 'h>>(
        &'h self,
        difference: &Difference,
        alone: &mut Alone<'_, 'h, 'a, 'm, R>,
        mut next: impl FnMut(Shown) -> bool,
    ) {
        let number = self.answers.len();
        let Some((columns, steps)) = self.columns.as_ref().zip(difference.steps()) else {
            (0..number).find(|&place| alone.contradicts(place) && !next(Shown::Contradiction(place)));
            return;
        };
        let room = self.rooms.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut room = room.unwrap_or_else(|| Scratch::new(Level::best()));
        let (mut from, mut is_over) = (0, false);
        while from < number && !is_over {
            let told = columns.differing(alone.other, steps, from, &mut room);
            for lane in lanes(told.differs_inside) {
                next(Shown::Inside(from + lane));
            }
            for lane in lanes(told.differs | told.is_open) {
                let place = from + lane;
                let contradicts = told.differs >> lane & 1 == 1 || alone.contradicts(place);
                if contradicts && !next(Shown::Contradiction(place)) {
                    is_over = true;
                    break;
                }
            }
            from += told.number;
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

/// What an answer shows of another model.
#[derive(Clone, Copy)]
enum Shown {
    /// The answer of this place contradicts it.
    Contradiction(usize),
    /// At this place, values inside may differ.
    Inside(usize),
}

/// The lanes of which a bit is set, the first first.
fn lanes(bits: u32) -> impl Iterator<Item = usize> {
    let rest = std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)));
    rest.take_while(|bits| *bits != 0).map(|bits| bits.trailing_zeros() as usize)
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
    use crate::inference::testing;
    use mmaprobe_model::Rounding;
    use mmaprobe_model::scalar::Nodes;
    use mmaprobe_model::tree::{Added, Fused, Rule};
    use mmaprobe_probes::random::{self, Distribution};
    use mmaprobe_probes::{DotAdd, Signature, Summand, sparse};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    fn signature() -> Signature {
        testing::signature(6)
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
    fn answers_told_at_once_are_those_told_alone() {
        let questions = questions();
        let model = chained_pairs(|rule| rule.added = Added::Fused(Fused::uniform(24, Rounding::Down)));
        let leaf = |k| Skeleton::Leaf(Summand::Product(k));
        let pair = Skeleton::Sum(vec![Skeleton::Leaf(Summand::C), leaf(0), leaf(1), leaf(2)]);
        let tree = Skeleton::Sum(vec![pair, leaf(3), leaf(4), leaf(5)]);
        let mut others: Vec<Model> = knobs::split(&model);
        others.extend(knobs::turn_alignments(&model, true, knobs::Scope::All).into_iter().map(|t| t.model));
        others.extend(knobs::turn_kind(&model, &signature(), knobs::Scope::All).into_iter().map(|t| t.model));
        others.extend(knobs::turn_product_exponents(&model, &signature()).into_iter().map(|t| t.model));
        others.push(structure::start(&signature(), &tree, Structure::Plain));
        // What one of the others says, but here and there.
        let mut answering = Scalar::new(&others[0]).expect("it can be executed");
        let answers = questions
            .iter()
            .enumerate()
            .map(|(index, (_, inputs))| answering.execute(inputs) ^ u64::from(index % 7 == 3));
        let answers: Vec<u64> = answers.collect();
        let asked = questions.iter().map(|(_, inputs)| inputs).zip(answers.iter().copied());
        let held = Held::of(&model, asked);
        let mut cannot_be_executed = others[0].clone();
        cannot_be_executed.tree.rules.clear();
        assert_eq!(held.contradicted_of(&cannot_be_executed, 5), (5, 0));
        let values = values(&model, &questions);
        let mut some_are_explained = 0;
        for other in others.iter().filter(|other| other.check().is_ok()) {
            let mut alone = Scalar::new(other).expect("it can be executed");
            let is_contradicting =
                |place: &usize| fit::differ(other, alone.execute(&questions[*place].1), answers[*place]);
            let expected: Vec<usize> = (0..answers.len()).filter(is_contradicting).collect();
            some_are_explained += usize::from(expected.len() < answers.len() / 2);
            assert_eq!(held.contradicting(other, usize::MAX).as_ref(), Some(&expected), "{other:#?}");
            for limit in [1, 3, 20, usize::MAX] {
                let told = match expected.get(limit.saturating_sub(1)) {
                    Some(last) => (limit, last + 1),
                    None => (expected.len(), answers.len()),
                };
                assert_eq!(held.contradicted_of(other, limit), told, "{limit} in {other:#?}");
                let (places, _) = held.seen(other, limit).expect("it can be executed");
                assert_eq!(places, expected[..limit.min(expected.len())], "{limit} in {other:#?}");
            }
            // Where no answer contradicts, what differs inside is told as by one after the other.
            let own = questions.iter().map(|(_, inputs)| (inputs, alone.execute(inputs)));
            let (places, fingerprint) = Held::of(&model, own).seen(other, 1).expect("it can be executed");
            let mut neighbour = Neighbour::among(&model, other, &values).expect("it can be executed");
            for (index, (_, inputs)) in questions.iter().enumerate() {
                neighbour.execute_one_of(index, inputs);
            }
            assert_eq!((places, fingerprint), (Vec::new(), neighbour.fingerprint()), "{other:#?}");
        }
        assert!(others.len() > 10 && some_are_explained > 1, "{some_are_explained} of {}", others.len());
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
