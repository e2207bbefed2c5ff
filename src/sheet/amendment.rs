//! What a disputed statement changes in an arithmetic, if the other side is right.

use serde::{Deserialize, Serialize};

use crate::sheet::arithmetic::{Arithmetic, ProductWord, RoundingRule, SumRule};
use crate::sheet::either::WordOr;
use crate::sheet::ordered::Ordered;

/// The parts of an [`Arithmetic`] that are different; the rest stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amendment {
    /// How products are formed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<WordOr<ProductWord, RoundingRule>>,
    /// Rules by name, in place of those of that name.
    #[serde(default, skip_serializing_if = "Ordered::is_empty")]
    pub rules: Ordered<SumRule>,
    /// All steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<String>>,
}

impl Amendment {
    /// What leads from one arithmetic to another on the same operands.
    pub fn between(from: &Arithmetic, to: &Arithmetic) -> Amendment {
        let changed = |(name, rule): &&(String, SumRule)| {
            from.rules.position(name).is_none_or(|index| from.rules.0[index].1 != *rule)
        };
        Amendment {
            product: (from.product != to.product).then_some(to.product),
            rules: Ordered(to.rules.0.iter().filter(changed).cloned().collect()),
            steps: (from.steps != to.steps).then(|| to.steps.clone()),
        }
    }

    /// The arithmetic with these parts in place of its own.
    pub fn apply(&self, arithmetic: &Arithmetic) -> Arithmetic {
        let mut amended = arithmetic.clone();
        if let Some(product) = self.product {
            amended.product = product;
        }
        for (name, rule) in &self.rules.0 {
            match amended.rules.position(name) {
                Some(index) => amended.rules.0[index].1 = rule.clone(),
                None => amended.rules.0.push((name.clone(), rule.clone())),
            }
        }
        if let Some(steps) = &self.steps {
            amended.steps = steps.clone();
        }
        amended
    }
}
