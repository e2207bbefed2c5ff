//! What becomes of small numbers before they are added, decided anew.
//!
//! Where several sums flush what is too small, each in a way of its own, products or operands that are flushed explain more
//! at first than any one of these sums: the largest step leads astray. So what sums make of small results is also looked for
//! with nothing flushed before them.

use mmaprobe_model::format::Subnormals;
use mmaprobe_model::tree::{InputSubnormals, Model, Product};

use crate::inference::evidence::{Answered, Class, Evidence};
use crate::inference::fit::{self, Fitted, Turn};

/// Models in which one sum after the other flushes small results in the way that explains most of these answers, with
/// products, operands, or neither, flushed before; none where this model flushes nothing there. Models may be held against so
/// many answers for each.
pub(super) fn decided_anew(
    evidence: &Evidence,
    known: &Model,
    answers: &[&Answered],
    each: u64,
) -> Vec<Fitted> {
    let anew = |model: Model| {
        let budget = evidence.budget(each);
        let start = Fitted { model, contradicted: usize::MAX };
        // What is flushed before the sums would be the largest step again.
        let found =
            fit::improve_on(evidence, start, answers, Class::Subnormal, &[Turn::SmallResults], &budget);
        let turns = Turn::ABOUT_SMALL_RESULTS;
        fit::improve_on(evidence, found, answers, Class::Subnormal, turns, &budget)
    };
    keeping(known).into_iter().map(anew).collect()
}

/// The model with subnormal products kept, with subnormal operands kept, and with both; those of them that are other models.
fn keeping(model: &Model) -> Vec<Model> {
    let product = match model.product {
        Product::Rounded(mut round) => {
            round.subnormals = Subnormals::Kept;
            Product::Rounded(round)
        }
        Product::FlushedBelow { .. } => Product::Exact,
        other => other,
    };
    let with_products = |model: &Model| Model { product, ..model.clone() };
    let with_operands = |model: &Model| {
        let mut model = model.clone();
        for operand in [&mut model.a, &mut model.b, &mut model.c] {
            operand.subnormals = InputSubnormals::Kept;
        }
        model
    };
    let mut all: Vec<Model> = Vec::new();
    for other in [with_products(model), with_operands(model), with_operands(&with_products(model))] {
        if other != *model && !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::format::{BF16, FP16, FP32, RoundTo, Tininess};
    use mmaprobe_model::scalar::Scalar;
    use mmaprobe_model::tree::{Node, Normalised, Rule};
    use mmaprobe_probes::{DotAdd, Signature};

    use super::*;
    use crate::device::Device;
    use crate::inference::testing;

    const SIGNATURE: Signature = Signature { k: 4, a: BF16, b: BF16, c: FP32, d: FP32, scale: None };

    /// Two pairs of products, then c; small sums of the first pair become +0, those of the second a zero of their sign.
    fn flushing_pairs() -> Model {
        let mut model = Model::chain_of_fma(BF16, FP32, 4);
        let sum = |children: Vec<usize>, rule| Node::Sum { children, rule };
        let leaves = (0..4).map(Node::Product).chain([Node::Accumulator]);
        let sums = [sum(vec![0, 1], 0), sum(vec![2, 3], 1), sum(vec![5, 6, 4], 2)];
        model.tree.nodes = leaves.chain(sums).collect::<Vec<_>>().into();
        let rounded = |subnormals| RoundTo { subnormals, ..RoundTo::nearest_even(FP32) };
        let flushed = |sign_kept| Subnormals::Flushed { tiny: Tininess::AfterRounding, sign_kept };
        let rule = |subnormals| Rule {
            normalised: Normalised::To(rounded(subnormals)),
            ..model.tree.rules[0].clone()
        };
        model.tree.rules = [flushed(false), flushed(true), Subnormals::Kept].map(rule).into();
        model.product = Product::Exact;
        model
    }

    /// Bits of a power of two in bf16, or of its negative.
    fn power(exponent: i32, is_negative: bool) -> u64 {
        ((exponent + 127) << 7) as u64 | (u64::from(is_negative) << 15)
    }

    /// What becomes of lone small products, of two that make a normal number, and of zeros, beside products of −0 and c of −0.
    fn answers(model: &Model) -> Vec<Answered> {
        let mut executor = Scalar::new(model).expect("it can be executed");
        let mut answered = |products: &[(usize, u64, u64)]| {
            let [mut a, mut b] = [vec![1 << 15; 4], vec![power(0, false); 4]];
            for &(k, of_a, of_b) in products {
                (a[k], b[k]) = (of_a, of_b);
            }
            let question = DotAdd { a, b, c: 1 << 31, sa: Vec::new(), sb: Vec::new() };
            testing::answered(&SIGNATURE, &mut executor, question)
        };
        let mut all = Vec::new();
        for k in 0..4 {
            for exponent in 64..69 {
                for is_negative in [false, true] {
                    all.push(answered(&[(k, power(-64, false), power(-exponent, is_negative))]));
                }
                // Zeros of both signs.
                all.extend([0, 1 << 15].map(|zero| answered(&[(k, zero, power(-exponent, false))])));
            }
        }
        let half = |k| (k, power(-63, false), power(-64, false));
        all.extend([[0, 1], [2, 3]].map(|pair| answered(&pair.map(half))));
        all
    }

    #[test]
    fn what_sums_flush_is_found_where_flushed_products_explained_more_at_first() {
        let truth = flushing_pairs();
        let answers = answers(&truth);
        let answers: Vec<&Answered> = answers.iter().collect();
        let device = testing::device(&SIGNATURE, truth.clone(), (1, 1));
        let evidence = Evidence::new(&device, &device.instructions()[0]);
        // Products are flushed, and no sum is.
        let subnormals = Subnormals::Flushed { tiny: Tininess::AfterRounding, sign_kept: true };
        let mut known = truth.clone();
        known.product = Product::Rounded(RoundTo { subnormals, ..RoundTo::nearest_even(FP32) });
        let kept = Normalised::To(RoundTo::nearest_even(FP32));
        known.tree.rules.iter_mut().for_each(|rule| rule.normalised = kept);
        let contradicted = |model: &Model| fit::contradicted(model, answers.iter().copied(), usize::MAX);
        let mut flushing_nothing = known.clone();
        flushing_nothing.product = Product::Exact;
        assert!(
            contradicted(&known) < contradicted(&flushing_nothing),
            "the largest step is to flush products"
        );
        let each = 1_000_000;
        let start = Fitted { model: known.clone(), contradicted: usize::MAX };
        let turns = Turn::ABOUT_SMALL_RESULTS;
        let budget = evidence.budget(each);
        let stuck = fit::improve_on(&evidence, start, &answers, Class::Subnormal, turns, &budget);
        assert!(stuck.contradicted > 0, "from there, no sum explains more");
        let anew = decided_anew(&evidence, &known, &answers, each);
        assert_eq!(anew.iter().map(|found| found.contradicted).min(), Some(0));
    }

    #[test]
    fn what_is_flushed_before_the_sums_is_kept_each_alone_and_together() {
        let plain = Model::chain_of_fma(FP16, FP32, 2);
        assert!(keeping(&plain).is_empty(), "nothing is flushed");
        let subnormals = Subnormals::Flushed { tiny: Tininess::AfterRounding, sign_kept: true };
        let kept = Product::Rounded(RoundTo::nearest_even(FP32));
        let flushed = Product::Rounded(RoundTo { subnormals, ..RoundTo::nearest_even(FP32) });
        let products = Model { product: flushed, ..plain.clone() };
        assert_eq!(keeping(&products), [Model { product: kept, ..plain.clone() }]);
        let mut both = products.clone();
        both.b.subnormals = InputSubnormals::FlushedToPositiveZero;
        let mut operands = both.clone();
        operands.product = kept;
        assert_eq!(keeping(&both), [operands, products, Model { product: kept, ..plain }]);
    }
}
