//! How many bits does a sum keep?
//!
//! 1 + ε, with ε halved again and again, shows what the result keeps; −1 + 1 + ε what a sum keeps
//! before it is normalised (MMA-Sim paper, section III.D; Fasi et al. 2021, "Accumulation").

use crate::place::{self, Dyadic};
use crate::question::{DotAdd, Probe, Signature, Summand};
use crate::subnormals::representatives;

/// The longest ladder, in halvings: past F = 64 and the carry bits above it.
pub const LONGEST: i32 = 72;

/// The 1 + ε ladder: `one` holds ±1 and `small` ±ε = 2^−t, for t = 0, 1, 2 …
pub fn pair_ladder(signature: &Signature, one: Summand, small: Summand, negative: bool) -> Vec<DotAdd> {
    ladder(signature, small, negative, &[(one, Dyadic { negative, ..Dyadic::power(0) })])
}

/// The −1 + 1 + ε ladder: `minus` holds −1, `plus` 1 and `small` ±ε = 2^−t, for t = 0, 1, 2 …
pub fn triple_ladder(
    signature: &Signature,
    (minus, plus, small): (Summand, Summand, Summand),
    negative: bool,
) -> Vec<DotAdd> {
    ladder(signature, small, negative, &[(minus, -Dyadic::power(0)), (plus, Dyadic::power(0))])
}

/// Steps of a ladder until the formats end. Where the small value runs out of range, the large ones
/// cannot help: 1 is chosen as high as all summands allow, but no higher than it must be.
fn ladder(signature: &Signature, small: Summand, negative: bool, large: &[(Summand, Dyadic)]) -> Vec<DotAdd> {
    let unit = unit(signature);
    (0..=LONGEST)
        .map_while(|t| {
            let mut values: Vec<(Summand, Dyadic)> =
                large.iter().map(|&(s, v)| (s, Dyadic { exponent: v.exponent + unit, ..v })).collect();
            values.push((small, Dyadic { negative, ..Dyadic::power(unit - t) }));
            place::question(signature, &values)
        })
        .collect()
}

/// The exponent of the ladders' "1": 0 where ε reaches down far enough from there, else higher.
pub fn unit(signature: &Signature) -> i32 {
    let (low, high) = place::reach_with_scales(signature);
    let low = low.max(signature.d.min_exponent());
    let high = high.min(signature.d.max_exponent() - 2);
    (low + LONGEST).clamp(0.min(high), high.max(0))
}

/// The 1 + ε ladders: ε on each summand and 1 on the next; for a few summands also 1 on one far away,
/// and negative.
pub fn pair_ladders(signature: &Signature) -> Vec<Vec<DotAdd>> {
    let summands: Vec<Summand> = signature.summands().collect();
    let count = summands.len();
    let few = few(signature);
    let mut ladders = Vec::new();
    for (index, &small) in summands.iter().enumerate() {
        let near = summands[(index + 1) % count];
        let far = summands[(index + count.div_ceil(2)) % count];
        ladders.push(pair_ladder(signature, near, small, index % 2 == 1));
        if few.contains(&small) && far != small {
            ladders.push(pair_ladder(signature, far, small, index % 2 == 0));
        }
    }
    ladders
}

/// The −1 + 1 + ε ladders: ε on each summand, −1 and 1 on the next two; for a few summands also on
/// the two after the next, with a negative ε.
pub fn triple_ladders(signature: &Signature) -> Vec<Vec<DotAdd>> {
    let summands: Vec<Summand> = signature.summands().collect();
    let count = summands.len();
    let few = few(signature);
    let mut ladders = Vec::new();
    for (index, &small) in summands.iter().enumerate() {
        for (step, negative) in [(1, index % 2 == 1), (2, index % 2 == 0)] {
            let minus = summands[(index + step) % count];
            let plus = summands[(index + step + 1) % count];
            let wanted = step == 1 || few.contains(&small);
            if wanted && minus != small && plus != small && minus != plus {
                ladders.push(triple_ladder(signature, (minus, plus, small), negative));
            }
        }
    }
    ladders
}

/// The summands that more is asked about: c and a few products.
fn few(signature: &Signature) -> Vec<Summand> {
    representatives(signature).into_iter().map(Summand::Product).chain([Summand::C]).collect()
}

/// The ladders as probes.
pub fn probe(signature: &Signature) -> Vec<Probe> {
    vec![
        Probe {
            name: "precision/pairs",
            question: "down to which ε is 1 + ε kept, with ε on each summand?",
            source: "MMA-Sim paper, section III.D",
            dot_adds: pair_ladders(signature).concat(),
        },
        Probe {
            name: "precision/triples",
            question: "down to which ε is −1 + 1 + ε kept, with ε on each summand?",
            source: "MMA-Sim paper, section III.D; Fasi et al. 2021, extra bits",
            dot_adds: triple_ladders(signature).concat(),
        },
    ]
}
