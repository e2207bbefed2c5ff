//! What is too small to count.
//!
//! A floor under the largest exponent cuts off what lies more than F bits below it; products that are flushed below
//! some magnitude are cut off there too. Only bits of several small products that add up tell the one from the
//! other, and few answers show any.

use mmaprobe_model::tree::{Added, Fused, Model, Product};

use super::products::product_words;
use super::{Knob, Turned};

/// How far from where one cuts off the other is tried, in binades.
const NEAR: std::ops::RangeInclusive<i32> = -1..=1;

/// Models in which floors under the largest exponent cut off about what products are flushed below now, or the other
/// way round.
pub fn turn_cutoff(model: &Model) -> Vec<Turned> {
    let knob = || Knob { what: "what is cut off of small summands".to_string(), rule: None };
    if let Product::FlushedBelow { exponent, .. } = model.product {
        return NEAR
            .map(|more| {
                let mut other = Model { product: Product::Exact, ..model.clone() };
                for fused in fused_sums(&mut other) {
                    fused.floor = Some(exponent + more + fused.alignment_of(0).fraction_bits as i32);
                }
                let choice = format!("products exact, floors where 2^{} is the last bit", exponent + more);
                Turned { knob: knob(), choice, model: other }
            })
            .filter(|turned| turned.model != Model { product: Product::Exact, ..model.clone() })
            .collect();
    }
    if model.product != Product::Exact {
        return Vec::new();
    }
    let mut without = model.clone();
    let mut lowest: Vec<i32> = fused_sums(&mut without)
        .filter_map(|fused| {
            let last_bit = fused.floor? - fused.alignment_of(0).fraction_bits as i32;
            fused.floor = None;
            Some(last_bit)
        })
        .collect();
    lowest.sort_unstable();
    lowest.dedup();
    let mut turned = Vec::new();
    for exponent in lowest.into_iter().flat_map(|last_bit| NEAR.map(move |more| last_bit + more)) {
        for sign_kept in [true, false] {
            let product = Product::FlushedBelow { exponent, sign_kept };
            let choice = format!("products {}, no floors", product_words(&product));
            turned.push(Turned { knob: knob(), choice, model: Model { product, ..without.clone() } });
        }
    }
    turned
}

/// The ways in which sums align their summands.
fn fused_sums(model: &mut Model) -> impl Iterator<Item = &mut Fused> {
    model.tree.rules.iter_mut().filter_map(|rule| match &mut rule.added {
        Added::Fused(fused) => Some(fused),
        Added::Exact => None,
    })
}

#[cfg(test)]
mod tests {
    use mmaprobe_model::Rounding;
    use mmaprobe_model::format::FP16;

    use super::*;

    fn model(floor: Option<i32>, product: Product) -> Model {
        let mut model = Model::chain_of_fma(FP16, FP16, 4);
        model.product = product;
        model.tree.rules[0].added = Added::Fused(Fused { floor, ..Fused::uniform(25, Rounding::TowardZero) });
        model
    }

    #[test]
    fn floors_and_flushed_products_lead_to_each_other() {
        let flushed = model(None, Product::FlushedBelow { exponent: -46, sign_kept: true });
        let floored = model(Some(-21), Product::Exact);
        let leads_to =
            |one: &Model, other: &Model| turn_cutoff(one).iter().any(|turned| turned.model == *other);
        assert!(leads_to(&flushed, &floored) && leads_to(&floored, &flushed));
        // One more and one less as well, and the sign of what is flushed.
        assert_eq!((turn_cutoff(&flushed).len(), turn_cutoff(&floored).len()), (3, 6));
    }

    #[test]
    fn where_nothing_is_cut_off_there_is_nothing_to_turn() {
        assert!(turn_cutoff(&model(None, Product::Exact)).is_empty());
        let exact = Model::chain_of_fma(FP16, FP16, 4);
        let product = Product::FlushedBelow { exponent: -46, sign_kept: true };
        assert!(turn_cutoff(&Model { product, ..exact }).is_empty(), "exact sums have no floor");
    }
}
