//! Exponents that outlive what cancels.
//!
//! A sum that is not normalised hands on the exponent that its summands were aligned to, also where they cancel: the zero
//! that is left cuts off what is small in a sum above, if zeros count there. Two rules have to be right for it to show, or
//! three where another sum is between them; as long as one is wrong, turning any other explains nothing. But that
//! a sum is handed on as it is mostly contradicts nothing, where no rounding shows.

use mmaprobe_model::tree::{Added, Fused, Model, Node, Normalised, Rule, RuleId};

use super::budget::Budget;
use super::evidence::{Answered, Class, Evidence};
use super::fit::{self, Fitted, Turn};
use super::grid::{self, Kind, Trial};
use super::knobs::{self, Scope};

/// Times that all sums are gone through.
const TIMES: usize = 2;
/// Where no more than one of so many answers is unexplained, twice as much is tried.
const NEARLY: usize = 200;
/// Times that exponents which are handed on, and what is cut off by them, are looked for, one after the other.
const ROUNDS: usize = 2;

/// A model in which exponents are [handed on](handed_on), and then these rules cut off otherwise what is small beside them,
/// which explains more of these answers, if there is one. Models may be held against so many answers for one of them, and
/// against as many for all, or twice as many.
pub fn improve(
    evidence: &Evidence,
    start: Fitted,
    (class, rules): (Class, &[RuleId]),
    answers: &[&Answered],
    each: u64,
) -> Fitted {
    let mut best = start;
    for _ in 0..ROUNDS {
        let before = best.contradicted;
        best = handed_on(best, answers, &evidence.budget(each));
        if best.contradicted > 0 {
            best = near_zero(evidence, best, (class, rules), answers, each);
        }
        if best.contradicted == 0 || best.contradicted == before {
            break;
        }
    }
    best
}

/// A model whose sums inside hand on exponents wherever no answer contradicts that, and count zeros where that explains more
/// of these answers; the model as it was if none explains more. Each sum has a rule of its own.
pub fn handed_on(start: Fitted, answers: &[&Answered], budget: &Budget) -> Fitted {
    let mut best = start.clone();
    let mut ordered = answers.to_vec();
    fit::front_load(&best.model, &mut ordered);
    for _ in 0..TIMES {
        let before = best.model.clone();
        for (child, parent) in inside(&best.model) {
            let own = best.model.tree.rules[child].clone();
            let open = Rule { normalised: Normalised::No { exponent: None }, ..own.clone() };
            // What is handed on already may still not be counted.
            let results = if own == open { vec![own] } else { vec![open.clone(), own] };
            for result in results {
                for added in counting(&best.model.tree.rules[parent].added) {
                    let mut model = best.model.clone();
                    model.tree.rules[child] = result.clone();
                    model.tree.rules[parent].added = added;
                    if model == best.model || budget.is_spent() {
                        continue;
                    }
                    let contradicted = budget.contradicted(&model, &ordered, best.contradicted + 1);
                    let opens = result == open && best.model.tree.rules[child] != open;
                    if contradicted < best.contradicted || opens && contradicted == best.contradicted {
                        best = Fitted { model, contradicted };
                    }
                }
            }
        }
        if best.model == before || best.contradicted == 0 {
            break;
        }
    }
    if best.contradicted < start.contradicted { best } else { start }
}

/// A model in which one of these rules aligns to another exponent, or otherwise what is far below, which explains more of
/// these answers, if there is one. Where zeros have large exponents, small numbers are cut off that are rounded nowhere
/// else: what is cut and where is one thing there. And where large numbers cancel, what is far below them is all that is
/// left, or nothing is.
pub fn near_zero(
    evidence: &Evidence,
    start: Fitted,
    (class, rules): (Class, &[RuleId]),
    answers: &[&Answered],
    each: u64,
) -> Fitted {
    let most = if start.contradicted * NEARLY <= answers.len() { 2 * each } else { each };
    let mut best = start;
    let mut spent = 0;
    for &rule in rules {
        let budget = evidence.budget(each);
        let trial = Trial { rule, scope: Scope::All, answers, budget: &budget };
        let turns = [Turn::Once, Turn::Jointly];
        let found = grid::improve(evidence, best.clone(), trial, &Kind::NEAR_ZERO, class, &turns);
        best = found.into_iter().fold(best, |best, other| match other.contradicted < best.contradicted {
            true => other,
            false => best,
        });
        spent += budget.spent();
        if best.contradicted == 0 || spent > most {
            break;
        }
    }
    best
}

/// The rules of each sum that is in another, and of that, the deepest first.
fn inside(model: &Model) -> Vec<(RuleId, RuleId)> {
    let nodes = &model.tree.nodes;
    let rule_of = |node: &Node| match node {
        Node::Sum { rule, .. } => Some(*rule),
        _ => None,
    };
    // A sum comes after those in it.
    let pairs = nodes.iter().filter_map(|node| Some((rule_of(node)?, node.children()))).flat_map(
        |(parent, children)| {
            let rules = children.iter().filter_map(|&child| rule_of(&nodes[child]));
            rules.map(move |child| (child, parent)).collect::<Vec<_>>()
        },
    );
    pairs.filter(|(child, parent)| child != parent).collect()
}

/// A way to add as it is, then with the other choices of what zeros count and of exponents. An exact sum becomes one that
/// loses next to nothing.
fn counting(added: &Added) -> Vec<Added> {
    let fused = match added {
        Added::Exact => Fused { alignment: vec![grid::WHOLE].into(), ..knobs::aligned(added) },
        Added::Fused(fused) => fused.clone(),
    };
    std::iter::once(added.clone()).chain(grid::counted(fused).map(Added::Fused)).collect()
}

#[cfg(test)]
mod tests {
    use mmaprobe_machines::{Unit, generate};

    use crate::device::machine::MachineDevice;
    use crate::inference::asking;
    use crate::inference::looking::Starts;
    use crate::inference::nodewise::{self, Effort, Start};

    /// Of two products that cancel, machine 6 of seed 491 hands on the exponent, under which it then cuts off c: as long as
    /// neither that nor how c is cut off is known, no turn of one rule explains more.
    #[test]
    fn what_cancels_cuts_off_what_is_small_beside_it() {
        let device = MachineDevice::new("a machine", Unit::sound(generate::machine(491, 6)));
        let (mut evidence, outline) = asking::of_sound(&device, 1);
        asking::each_sum(&mut evidence, &outline, 1).expect("it answers");
        let starts = Starts { evidence: &evidence, outline: &outline };
        // (p0 p1), then c.
        let nested = |node: &mmaprobe_model::tree::Node| node.children().len() == 2;
        let (_, start) = starts
            .structures()
            .find(|(_, start)| start.tree.nodes.iter().filter(|node| nested(node)).count() == 2)
            .expect("c is added last in one of them");
        let found = nodewise::fit(&evidence, &start, Start::Guessed, Effort::Quick);
        assert_eq!(found.contradicted, 0);
    }
}
