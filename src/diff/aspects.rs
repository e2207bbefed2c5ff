//! What differs between two models, one thing at a time.
//!
//! Each thing comes with the first model in which it alone is as in the second: inputs on which that one
//! and the first model differ are inputs that show this thing.

use mmaprobe_model::Model;
use mmaprobe_model::tree::{Added, Alignment, Fused, Node, Normalised, Rule};

use crate::sheet::spelling::Phrase;
use crate::sheet::words;

/// Something in which two models differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// What it is, in words.
    pub what: &'static str,
    /// What the first model says, in words.
    pub first: String,
    /// What the second one says.
    pub second: String,
    /// The first model with what the second says of this alone; `None` where that is no model.
    pub alone: Option<Model>,
}

/// One thing that a rule says.
struct RuleAspect {
    what: &'static str,
    /// What a rule says of it; `None` if it says nothing. Rules that say the same are alike in it.
    says: fn(&Rule) -> Option<String>,
    /// Makes a rule say what another does.
    take: fn(&mut Rule, &Rule),
}

/// One thing that a model says beside its tree.
struct ModelAspect {
    what: &'static str,
    says: fn(&Model) -> String,
    take: fn(&mut Model, &Model),
}

fn fused(rule: &Rule) -> Option<&Fused> {
    match &rule.added {
        Added::Fused(fused) => Some(fused),
        Added::Exact => None,
    }
}

/// Changes a fused sum by another one.
fn change(rule: &mut Rule, other: &Rule, change: impl FnOnce(&mut Fused, &Fused)) {
    if let (Added::Fused(own), Added::Fused(other)) = (&mut rule.added, &other.added) {
        change(own, other);
    }
}

/// What is said of each summand's alignment; what holds for all that follow is said once.
fn of_alignments(rule: &Rule, says: impl Fn(&Alignment) -> String) -> Option<String> {
    let mut said: Vec<String> = fused(rule)?.alignment.iter().map(says).collect();
    while said.len() > 1 && said[said.len() - 1] == said[said.len() - 2] {
        said.pop();
    }
    Some(said.join(" | "))
}

fn change_alignments(rule: &mut Rule, other: &Rule, set: impl Fn(&mut Alignment, &Alignment)) {
    change(rule, other, |own, other| {
        let count = own.alignment.len().max(other.alignment.len());
        own.alignment = (0..count)
            .map(|position| {
                let mut alignment = *own.alignment_of(position);
                set(&mut alignment, other.alignment_of(position));
                alignment
            })
            .collect();
    });
}

fn is_rounded(rule: &Rule) -> bool {
    matches!(rule.normalised, Normalised::To(_))
}

macro_rules! of_rounding {
    ($what:literal, $field:ident, $says:expr) => {
        RuleAspect {
            what: $what,
            says: |rule| match &rule.normalised {
                Normalised::To(round) => Some($says(round.$field)),
                Normalised::No { .. } => None,
            },
            take: |rule, other| {
                if let (Normalised::To(own), Normalised::To(other)) =
                    (&mut rule.normalised, &other.normalised)
                {
                    own.$field = other.$field;
                }
            },
        }
    };
}

fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_string()
}

const OF_RULES: [RuleAspect; 17] = [
    RuleAspect {
        what: "how sums add",
        says: |rule| Some(if fused(rule).is_some() { "fused" } else { "exactly" }.to_string()),
        take: |rule, other| {
            if fused(rule).is_some() != fused(other).is_some() {
                rule.added = other.added.clone();
            }
        },
    },
    RuleAspect {
        what: "bits kept at alignment (F)",
        says: |rule| of_alignments(rule, |alignment| alignment.fraction_bits.to_string()),
        take: |rule, other| {
            change_alignments(rule, other, |own, other| own.fraction_bits = other.fraction_bits);
        },
    },
    RuleAspect {
        what: "rounding at alignment",
        says: |rule| of_alignments(rule, |alignment| alignment.rounding.to_string()),
        take: |rule, other| change_alignments(rule, other, |own, other| own.rounding = other.rounding),
    },
    RuleAspect {
        what: "rounding of summands far below",
        says: |rule| {
            of_alignments(rule, |alignment| match alignment.far {
                None => "like any other".to_string(),
                Some(far) => format!("{} if e < e_max - {}", far.rounding, far.distance),
            })
        },
        take: |rule, other| change_alignments(rule, other, |own, other| own.far = other.far),
    },
    RuleAspect {
        what: "exponents that sums align by",
        says: |rule| fused(rule).map(|fused| Phrase(fused.exponents).to_string()),
        take: |rule, other| change(rule, other, |own, other| own.exponents = other.exponents),
    },
    RuleAspect {
        what: "least exponent to align to",
        says: |rule| {
            fused(rule).map(|fused| fused.floor.map_or("none".to_string(), |floor| floor.to_string()))
        },
        take: |rule, other| change(rule, other, |own, other| own.floor = other.floor),
    },
    RuleAspect {
        what: "zeros in the largest exponent",
        says: |rule| fused(rule).map(|fused| Phrase(fused.zeros).to_string()),
        take: |rule, other| change(rule, other, |own, other| own.zeros = other.zeros),
    },
    RuleAspect {
        what: "limit of a sum's integer part",
        says: |rule| {
            fused(rule).map(|fused| fused.carry.map_or("none".to_string(), |carry| Phrase(carry).to_string()))
        },
        take: |rule, other| change(rule, other, |own, other| own.carry = other.carry),
    },
    RuleAspect {
        what: "a sticky bit below the sum",
        says: |rule| fused(rule).map(|fused| yes_or_no(fused.sticky)),
        take: |rule, other| change(rule, other, |own, other| own.sticky = other.sticky),
    },
    RuleAspect {
        what: "signs of zero sums",
        says: |rule| Some(words::zero_signs(&rule.zero)),
        take: |rule, other| rule.zero = other.zero,
    },
    RuleAspect {
        what: "infinite operands before products that overflow",
        says: |rule| Some(yes_or_no(rule.infinite_operands_first)),
        take: |rule, other| rule.infinite_operands_first = other.infinite_operands_first,
    },
    RuleAspect {
        what: "what becomes of a sum",
        says: |rule| {
            Some(match &rule.normalised {
                Normalised::To(_) => "it is rounded".to_string(),
                Normalised::No { exponent: None } => "handed on as it is".to_string(),
                Normalised::No { exponent: Some(exponent) } => format!("handed on under exponent {exponent}"),
            })
        },
        take: |rule, other| {
            if !is_rounded(rule) || !is_rounded(other) {
                rule.normalised = other.normalised;
            }
        },
    },
    of_rounding!("format of sums", format, |format: mmaprobe_model::Format| format.to_string()),
    of_rounding!("fraction bits of sums", fraction_bits, |bits: u32| bits.to_string()),
    of_rounding!("rounding of sums", rounding, |rounding: mmaprobe_model::Rounding| rounding.to_string()),
    of_rounding!("subnormal sums", subnormals, |subnormals| Phrase(subnormals).to_string()),
    of_rounding!("sums beyond the largest number", overflow, |overflow| Phrase(overflow).to_string()),
];

const OF_MODELS: [ModelAspect; 5] = [
    ModelAspect { what: "how A is read", says: |model| Phrase(model.a).to_string(), take: |m, o| m.a = o.a },
    ModelAspect { what: "how B is read", says: |model| Phrase(model.b).to_string(), take: |m, o| m.b = o.b },
    ModelAspect { what: "how C is read", says: |model| Phrase(model.c).to_string(), take: |m, o| m.c = o.c },
    ModelAspect {
        what: "products",
        says: |model| words::products(&model.product),
        take: |m, o| m.product = o.product,
    },
    ModelAspect { what: "NaN results", says: |model| words::nan(&model.nan), take: |m, o| m.nan = o.nan },
];

/// Everything in which two models of one instruction differ; nothing if they are the same function by
/// the same steps.
///
/// # Panics
/// If a model does not pass [`Model::check`].
pub fn differences(first: &Model, second: &Model) -> Vec<Difference> {
    let structures = [first, second].map(words::structure);
    let (first, second) = (unshared(first), unshared(second));
    let mut found = Vec::new();
    for ModelAspect { what, says, take } in &OF_MODELS {
        if says(&first) != says(&second) {
            let mut alone = first.clone();
            take(&mut alone, &second);
            found.push(difference(what, says(&first), says(&second), alone));
        }
    }
    if shape(&first) == shape(&second) {
        found.extend(OF_RULES.iter().filter_map(|aspect| between_rules(aspect, &first, &second)));
    } else {
        let [one, other] = structures;
        found.push(difference("which summands meet", one, other, with_tree_of(&first, &second)));
        found.extend(OF_RULES.iter().filter_map(|aspect| between_trees(aspect, &first, &second)));
    }
    if found.is_empty() && first != second {
        // Nothing above should leave anything out; if it does, the models are still not the same.
        found.push(difference("other details", String::new(), String::new(), second));
    }
    found
}

fn difference(what: &'static str, first: String, second: String, alone: Model) -> Difference {
    let alone = alone.check().is_ok().then_some(alone);
    Difference { what, first, second, alone }
}

/// The canonical model with a rule for each sum.
fn unshared(model: &Model) -> Model {
    let mut model = model.canonical();
    let mut rules = Vec::new();
    for node in &mut model.tree.nodes {
        if let Node::Sum { rule, .. } = node {
            rules.push(model.tree.rules[*rule].clone());
            *rule = rules.len() - 1;
        }
    }
    model.tree.rules = rules;
    model
}

/// The tree without its rules, and where scales are multiplied in.
fn shape(model: &Model) -> (&[Node], bool) {
    (&model.tree.nodes, model.scale.is_some())
}

/// What one aspect of the rules of two trees of one shape differs in.
fn between_rules(aspect: &RuleAspect, first: &Model, second: &Model) -> Option<Difference> {
    let RuleAspect { what, says, take } = aspect;
    let mut alone = first.clone();
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for (own, theirs) in alone.tree.rules.iter_mut().zip(&second.tree.rules) {
        let (Some(says_own), Some(says_theirs)) = (says(own), says(theirs)) else { continue };
        if says_own != says_theirs {
            add(&mut one, says_own);
            add(&mut other, says_theirs);
            take(own, theirs);
        }
    }
    (!one.is_empty()).then(|| difference(what, one.join("; "), other.join("; "), alone))
}

/// The same for trees of different shapes, if all sums of each agree about it.
fn between_trees(aspect: &RuleAspect, first: &Model, second: &Model) -> Option<Difference> {
    let (one, _) = agreed(aspect, first)?;
    let (other, theirs) = agreed(aspect, second)?;
    if one == other {
        return None;
    }
    let mut alone = first.clone();
    alone.tree.rules.iter_mut().for_each(|rule| (aspect.take)(rule, theirs));
    Some(difference(aspect.what, one, other, alone))
}

/// What all sums of a tree say about an aspect that say anything, and one of their rules.
fn agreed<'m>(aspect: &RuleAspect, model: &'m Model) -> Option<(String, &'m Rule)> {
    let mut said = Vec::new();
    let mut speaker = None;
    for rule in &model.tree.rules {
        if let Some(says) = (aspect.says)(rule) {
            add(&mut said, says);
            speaker = Some(rule);
        }
    }
    if said.len() == 1 { said.pop().zip(speaker) } else { None }
}

/// The first model with the second one's tree, whose sums say what all of the first's agree about.
fn with_tree_of(first: &Model, second: &Model) -> Model {
    let mut model = Model { tree: second.tree.clone(), scale: second.scale, ..first.clone() };
    for aspect in &OF_RULES {
        if let Some((_, theirs)) = agreed(aspect, first) {
            model.tree.rules.iter_mut().for_each(|rule| (aspect.take)(rule, theirs));
        }
    }
    model
}

fn add(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}
