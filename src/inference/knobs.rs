//! The grammar of rules: every single thing that can be different about a model.
//!
//! A *knob* is one statement about a model ("final rounding of R0"); its *choices* are the values it
//! can have. The search turns knobs; a sheet's evidence says which choices the answers contradict.

use mmaprobe_model::Rounding;
use mmaprobe_model::format::{self, Decoded, Format, Overflow, RoundTo, Specials, Subnormals, Tininess};
use mmaprobe_model::tree::{
    Added, Alignment, Beyond, Carry, Exponents, Far, Fused, InputInfinities, InputSubnormals, Model, NanRule,
    NanSource, Node, NodeId, Normalised, Product, Propagation, Rule, RuleId, ZeroSigns, ZeroTerms,
};
use mmaprobe_probes::Signature;

use super::evidence::{Class, Evidence};

/// One thing that can be different about a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Knob {
    /// What it is, in words.
    pub what: String,
    /// The rule that it belongs to, if it belongs to one.
    pub rule: Option<RuleId>,
}

/// A model in which one knob has another choice.
#[derive(Clone, Debug)]
pub struct Turned {
    /// The knob.
    pub knob: Knob,
    /// The choice, in words.
    pub choice: String,
    /// The model with that choice.
    pub model: Model,
}

/// The knobs that answers up to this class can show anything about, each with all its choices
/// (the model's own among them).
pub fn turn_all(model: &Model, signature: &Signature, class: Class, evidence: &Evidence) -> Vec<Turned> {
    let mut turned = Vec::new();
    let mut global = |knob: &str, choice: String, change: &dyn Fn(&mut Model)| {
        let mut model = model.clone();
        change(&mut model);
        turned.push(Turned { knob: Knob { what: knob.to_string(), rule: None }, choice, model });
    };
    for (name, declared) in [("A", signature.a), ("B", signature.b)] {
        if let Some(wider) = read_as(&declared) {
            for format in [declared, wider] {
                global(&format!("bits read of {name}"), format!("{format}"), &|m| {
                    let operand = if name == "A" { &mut m.a } else { &mut m.b };
                    operand.format = format;
                });
            }
        }
    }
    if class >= Class::Subnormal {
        for a in INPUTS {
            for b in INPUTS {
                let choice = if a == b {
                    input_words(a).to_string()
                } else {
                    format!("A: {}, B: {}", input_words(a), input_words(b))
                };
                global("subnormal elements of A and B", choice, &|m| {
                    (m.a.subnormals, m.b.subnormals) = (a, b);
                });
            }
        }
        for c in INPUTS {
            global("a subnormal c", input_words(c).to_string(), &|m| m.c.subnormals = c);
        }
    }
    if class >= Class::Infinite {
        for (name, read) in [("A", 0), ("B", 1), ("C", 2)] {
            for (infinities, choice) in [
                (InputInfinities::Kept, "are infinite"),
                (InputInfinities::Nan, "are NaNs"),
                (InputInfinities::Largest, "are the largest number"),
            ] {
                global(&format!("infinite elements of {name}"), choice.to_string(), &|m| {
                    [&mut m.a, &mut m.b, &mut m.c][read].infinities = infinities;
                });
            }
        }
    }
    for (knob, product) in products(model.product, signature, class) {
        global(knob, product_words(&product), &|m| m.product = product);
    }
    if class >= Class::Nan {
        // A rule that is not known contradicts nothing: it is no choice beside one that is.
        let known = nan_rules(model, signature, evidence).into_iter();
        for nan in known.chain((model.nan == NanRule::Unknown).then_some(NanRule::Unknown)) {
            global("NaN results", nan_words(&nan, &signature.d), &|m| m.nan = nan);
        }
    }
    for twice in [false, true] {
        let choice = if twice { "once more" } else { "once" };
        global("the result is rounded", choice.to_string(), &|m| round_twice(m, twice));
    }
    if class >= Class::Zero {
        for from_zero in [false, true] {
            let choice = if from_zero { "start from +0" } else { "start from a product" };
            global("sums of products alone", choice.to_string(), &|m| start_sums(m, from_zero));
        }
    }
    for rule in 0..model.tree.rules.len() {
        let shape = Shape::of(model, rule);
        for (knob, choice, changed) in turn_rule(&model.tree.rules[rule], shape, signature, class) {
            let mut model = model.clone();
            model.tree.rules[rule] = changed;
            turned.push(Turned { knob: Knob { what: knob, rule: Some(rule) }, choice, model });
        }
    }
    turned
}

/// Rounds the result once more, by a rule of its own that first is as the root's, or no more.
fn round_twice(model: &mut Model, twice: bool) {
    let Some(Node::Sum { children, rule }) = model.tree.nodes.last().cloned() else { return };
    let is_twice = children.len() == 1 && matches!(model.tree.nodes[children[0]], Node::Sum { .. });
    if twice && !is_twice {
        let Normalised::To(round) = model.tree.rules[rule].normalised else { return };
        let root = model.tree.nodes.len() - 1;
        let again = Rule { normalised: Normalised::To(round), ..Rule::ieee(model.d) };
        model.tree.rules.push(again);
        model.tree.nodes.push(Node::Sum { children: vec![root], rule: model.tree.rules.len() - 1 });
    } else if !twice && is_twice {
        let single = matches!(model.tree.nodes[children[0]], Node::Sum { rule, .. }
            if matches!(model.tree.rules[rule].normalised, Normalised::To(round) if round.format == model.d));
        if single {
            model.tree.nodes.pop();
        }
    }
}

/// Puts a +0 among the summands of each sum of products alone, or takes it away: its only effect is on
/// the sign of a zero sum. It comes last, so that the summands keep their places.
fn start_sums(model: &mut Model, from_zero: bool) {
    let nodes = std::mem::take(&mut model.tree.nodes);
    let mut moved = Vec::with_capacity(nodes.len());
    let is_product = |id: NodeId| match &nodes[id] {
        Node::Product(_) => true,
        Node::Scaled { child, .. } => matches!(nodes[*child], Node::Product(_)),
        _ => false,
    };
    let is_zero = |id: NodeId| matches!(nodes[id], Node::Zero);
    let of_products = |children: &[NodeId]| {
        children.iter().all(|&id| is_product(id) || is_zero(id)) && children.iter().any(|&id| is_product(id))
    };
    for node in &nodes {
        let copied = match node {
            Node::Sum { children, rule } => {
                let starts_here = of_products(children) && children.len() > 1;
                let mut kept: Vec<NodeId> = children
                    .iter()
                    .filter(|&&id| !(starts_here && is_zero(id)))
                    .map(|&id| moved[id])
                    .collect();
                if starts_here && from_zero {
                    model.tree.nodes.push(Node::Zero);
                    kept.push(model.tree.nodes.len() - 1);
                }
                Node::Sum { children: kept, rule: *rule }
            }
            Node::Scaled { child, block } => Node::Scaled { child: moved[*child], block: *block },
            leaf => leaf.clone(),
        };
        // A zero that nothing starts from any more would be no part of the tree.
        let is_dropped = |id: usize| {
            nodes.iter().any(|node| matches!(node, Node::Sum { children, .. } if children.contains(&id) && of_products(children) && children.len() > 1))
        };
        if matches!(copied, Node::Zero) && is_dropped(moved.len()) {
            moved.push(NodeId::MAX);
            continue;
        }
        model.tree.nodes.push(copied);
        moved.push(model.tree.nodes.len() - 1);
    }
}

/// What matters about the sums that follow a rule.
#[derive(Clone, Copy)]
struct Shape {
    /// The largest number of children.
    arity: usize,
    /// Whether one of them is the root.
    is_root: bool,
    /// Whether products can become infinite that have no infinite factor.
    products_overflow: bool,
}

impl Shape {
    fn of(model: &Model, rule: RuleId) -> Shape {
        let arities = model.tree.nodes.iter().filter_map(|node| match node {
            Node::Sum { children, rule: r } if *r == rule => Some(children.len()),
            _ => None,
        });
        let is_root = matches!(model.tree.nodes.last(), Some(Node::Sum { rule: r, .. }) if *r == rule);
        let products_overflow = model.product != Product::Exact;
        Shape { arity: arities.max().unwrap_or(0), is_root, products_overflow }
    }
}

/// The format that the same bits have if the ignored ones count.
fn read_as(format: &Format) -> Option<Format> {
    match format.name {
        "tf32" => Some(format::FP32),
        _ => None,
    }
}

const INPUTS: [InputSubnormals; 3] =
    [InputSubnormals::Kept, InputSubnormals::FlushedToSignedZero, InputSubnormals::FlushedToPositiveZero];

fn input_words(input: InputSubnormals) -> &'static str {
    match input {
        InputSubnormals::Kept => "kept",
        InputSubnormals::FlushedToSignedZero => "flushed to a zero of their sign",
        InputSubnormals::FlushedToPositiveZero => "flushed to +0",
    }
}

/// What can become of results below the normal range.
fn all_subnormals() -> Vec<Subnormals> {
    let mut all = vec![Subnormals::Kept];
    for tiny in [Tininess::AfterRounding, Tininess::BeforeRounding, Tininess::Delivered] {
        for sign_kept in [true, false] {
            all.push(Subnormals::Flushed { tiny, sign_kept });
        }
    }
    all
}

fn subnormal_words(subnormals: Subnormals) -> String {
    match subnormals {
        Subnormals::Kept => "kept".to_string(),
        Subnormals::Flushed { tiny, sign_kept } => {
            let when = match tiny {
                Tininess::BeforeRounding => "tiny before rounding",
                Tininess::AfterRounding => "tiny after rounding",
                Tininess::Delivered => "subnormal once rounded",
            };
            let zero = if sign_kept { "a zero of its sign" } else { "+0" };
            format!("flushed to {zero} if {when}")
        }
    }
}

fn overflow_words(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::Infinity => "to infinity",
        Overflow::Largest => "to the largest number",
        Overflow::ByRounding => "as the rounding mode says",
    }
}

/// Ways to form products: exactly; rounded in each way to each format that products do not always fit;
/// and, where they are rounded now, with one thing about it changed.
fn products(current: Product, signature: &Signature, class: Class) -> Vec<(&'static str, Product)> {
    let mut all = vec![("products", Product::Exact)];
    let mut formats = vec![signature.d, signature.c, format::FP64, format::FP32, format::FP16, format::BF16];
    formats.retain(|format| !holds_every_product(format, signature));
    for (index, &format) in formats.iter().enumerate() {
        if formats[..index].contains(&format) {
            continue;
        }
        // The rounding at once: where products fit but for their range, no other answer leads to it.
        for rounding in Rounding::EVERY {
            all.push(("products", Product::Rounded(RoundTo { rounding, ..RoundTo::nearest_even(format) })));
        }
        if class >= Class::Infinite {
            all.push(("products", Product::OverflowsAt { exponent: format.max_exponent() + 1 }));
        }
    }
    if class >= Class::Subnormal {
        let mut lowest: Vec<i32> = formats.iter().map(|format| format.min_exponent()).collect();
        lowest.extend([signature.d, format::FP32, format::FP16].map(|format| format.min_exponent()));
        lowest.sort_unstable();
        lowest.dedup();
        for exponent in lowest {
            for sign_kept in [true, false] {
                all.push(("products", Product::FlushedBelow { exponent, sign_kept }));
            }
        }
    }
    let Product::Rounded(round) = current else {
        return all;
    };
    let mut push = |knob, round| all.push((knob, Product::Rounded(round)));
    for rounding in Rounding::EVERY {
        push("rounding of products", RoundTo { rounding, ..round });
    }
    for fraction_bits in 0..=round.format.fraction_bits {
        push("fraction bits of products", RoundTo { fraction_bits, ..round });
    }
    if class >= Class::Subnormal {
        for subnormals in all_subnormals() {
            push("subnormal products", RoundTo { subnormals, ..round });
        }
    }
    if class >= Class::Infinite {
        for overflow in overflows(&round) {
            push("overflow of products", RoundTo { overflow, ..round });
        }
    }
    all
}

/// What can become of results that are too large, if it makes a difference.
fn overflows(round: &RoundTo) -> Vec<Overflow> {
    // Rounding to nearest, or away from zero, always leads to infinity; RZ never does.
    let leads_back = matches!(round.rounding, Rounding::Up | Rounding::Down);
    let mut all = vec![Overflow::Infinity, Overflow::Largest];
    if leads_back || round.overflow == Overflow::ByRounding {
        all.push(Overflow::ByRounding);
    }
    all
}

/// Whether a format holds every product as a normal number, so that rounding to it changes nothing.
fn holds_every_product(format: &Format, signature: &Signature) -> bool {
    let (a, b) = (&signature.a, &signature.b);
    a.fraction_bits + b.fraction_bits < format.fraction_bits
        && a.min_quantum() + b.min_quantum() >= format.min_exponent()
        && a.max_exponent() + b.max_exponent() < format.max_exponent()
}

fn product_words(product: &Product) -> String {
    match product {
        Product::Exact => "exact".to_string(),
        Product::OverflowsAt { exponent } => format!("exact, infinite from 2^{exponent} on"),
        Product::FlushedBelow { exponent, sign_kept } => {
            format!("exact, {} below 2^{exponent}", if *sign_kept { "zeros of their sign" } else { "+0" })
        }
        Product::Rounded(round) => format!(
            "rounded {} to {}{}, subnormals {}, overflow {}",
            round.rounding,
            round.format,
            if round.fraction_bits < round.format.fraction_bits {
                format!(" with {} fraction bits", round.fraction_bits)
            } else {
                String::new()
            },
            subnormal_words(round.subnormals),
            overflow_words(round.overflow)
        ),
    }
}

fn turn_rule(rule: &Rule, shape: Shape, signature: &Signature, class: Class) -> Vec<(String, String, Rule)> {
    let mut turned: Vec<(String, String, Rule)> = Vec::new();
    let mut push =
        |knob: &str, choice: String, changed: Rule| turned.push((knob.to_string(), choice, changed));
    turn_addition(rule, shape, signature, class, &mut push);
    match rule.normalised {
        Normalised::To(round) => {
            for changed in turn_rounding(round, shape, signature, class) {
                push(&changed.0, changed.1, Rule { normalised: Normalised::To(changed.2), ..rule.clone() });
            }
        }
        Normalised::No { exponent } => {
            for other in [None, Some(0)] {
                let choice = match other {
                    None => "the one it was aligned to".to_string(),
                    Some(exponent) => format!("{exponent}"),
                };
                if exponent.is_some() || other.is_none() {
                    let normalised = Normalised::No { exponent: other };
                    push("exponent of the unnormalised sum", choice, Rule { normalised, ..rule.clone() });
                }
            }
        }
    }
    if !shape.is_root {
        for (choice, normalised) in [
            ("no", Normalised::No { exponent: None }),
            ("yes, rounded to nearest even", Normalised::To(RoundTo::nearest_even(signature.d))),
        ] {
            push("normalisation", choice.to_string(), Rule { normalised, ..rule.clone() });
        }
    }
    if class >= Class::Zero {
        for negative_zeros_stay in [true, false] {
            for cancellation_is_negative in [false, true] {
                for underflow_keeps_sign in [true, false] {
                    if class < Class::Subnormal && underflow_keeps_sign != rule.zero.underflow_keeps_sign {
                        continue;
                    }
                    let zero =
                        ZeroSigns { negative_zeros_stay, cancellation_is_negative, underflow_keeps_sign };
                    let choice = format!(
                        "{}; x − x is {}; underflow {}",
                        if negative_zeros_stay { "−0 − 0 is −0" } else { "−0 − 0 is +0" },
                        if cancellation_is_negative { "−0" } else { "+0" },
                        if underflow_keeps_sign { "keeps its sign" } else { "gives +0" },
                    );
                    push("signs of zero", choice, Rule { zero, ..rule.clone() });
                }
            }
        }
    }
    // Without products that overflow there is nothing that could come second.
    if class >= Class::Infinite && shape.products_overflow {
        for first in [false, true] {
            let choice = if first {
                "infinite operands decide before products overflow"
            } else {
                "all infinities are equal"
            };
            push("infinities", choice.to_string(), Rule { infinite_operands_first: first, ..rule.clone() });
        }
    }
    turned
}

/// Which zeros have an exponent. The last two are the same in formats with fp32's exponents.
const ZEROS: [(ZeroTerms, &str); 4] = [
    (ZeroTerms::Ignored, "have none"),
    (ZeroTerms::SumsCounted, "have one if they are sums"),
    (ZeroTerms::Counted, "have one"),
    (ZeroTerms::CountedAsFp32, "have one, a zero operand fp32's smallest"),
];

/// F of a fused sum reaches from 0 to 64 (design, "The one idea"; issue 4).
const MOST_FRACTION_BITS: u32 = 64;

/// Most bits before the binary point of a limited sum: more than the carries of 64 products take.
const MOST_CARRY_BITS: u32 = 8;

/// Ways to add: exactly, or aligned with every choice that an aligned sum has.
fn turn_addition(
    rule: &Rule,
    shape: Shape,
    signature: &Signature,
    class: Class,
    push: &mut dyn FnMut(&str, String, Rule),
) {
    let with = |added: Added| Rule { added, ..rule.clone() };
    push("addition", "exact".to_string(), with(Added::Exact));
    let current = match &rule.added {
        Added::Fused(fused) => fused.clone(),
        Added::Exact => Fused::uniform(0, Rounding::TowardZero),
    };
    let common = current.alignment[0].rounding;
    for fraction_bits in 0..=MOST_FRACTION_BITS {
        let fused = Fused {
            alignment: vec![Alignment { fraction_bits, rounding: common, far: None }],
            ..current.clone()
        };
        push("addition", format!("aligned, F = {fraction_bits}"), with(Added::Fused(fused)));
    }
    let Added::Fused(fused) = &rule.added else {
        return;
    };
    for rounding in Rounding::EVERY {
        let mut changed = fused.clone();
        for alignment in &mut changed.alignment {
            alignment.rounding = rounding;
        }
        push("rounding at alignment", rounding.to_string(), with(Added::Fused(changed)));
    }
    for sticky in [false, true] {
        let choice = if sticky { "says that something was cut off" } else { "none" };
        push("sticky bit", choice.to_string(), with(Added::Fused(Fused { sticky, ..fused.clone() })));
    }
    for exponents in [Exponents::Raw, Exponents::Normalised] {
        let choice = match exponents {
            Exponents::Raw => "raw",
            Exponents::Normalised => "normalised",
        };
        push("exponents", choice.to_string(), with(Added::Fused(Fused { exponents, ..fused.clone() })));
    }
    // The first child, an accumulator where there is one, aligned otherwise than the rest.
    let first = fused.alignment[0];
    let rest = *fused.alignment_of(1);
    if shape.arity >= 2 {
        let pair = |first, rest| {
            with(Added::Fused(Fused {
                alignment: if first == rest { vec![first] } else { vec![first, rest] },
                ..fused.clone()
            }))
        };
        for fraction_bits in 0..=MOST_FRACTION_BITS {
            let choice = format!("F = {fraction_bits}");
            push(
                "alignment of the first summand",
                choice.clone(),
                pair(Alignment { fraction_bits, ..first }, rest),
            );
            push("alignment of the other summands", choice, pair(first, Alignment { fraction_bits, ..rest }));
        }
        for rounding in Rounding::EVERY {
            let choice = rounding.to_string();
            push(
                "rounding of the first summand",
                choice.clone(),
                pair(Alignment { rounding, ..first }, rest),
            );
            push("rounding of the other summands", choice, pair(first, Alignment { rounding, ..rest }));
        }
        push("far summands", "like all others".to_string(), pair(Alignment { far: None, ..first }, rest));
        // Rounded RZ anyway, nothing would change.
        let distances = if first.rounding == Rounding::TowardZero { 0..0 } else { 16..41 };
        for distance in distances {
            let far = Some(Far { distance, rounding: Rounding::TowardZero });
            let choice = format!("the first, rounded RZ more than {distance} below");
            push("far summands", choice, pair(Alignment { far, ..first }, rest));
        }
    }
    if shape.arity >= 2 {
        push(
            "carry bits",
            "unlimited".to_string(),
            with(Added::Fused(Fused { carry: None, ..fused.clone() })),
        );
        for bits in 0..=MOST_CARRY_BITS {
            for (beyond, words) in [
                (Beyond::Wraps, "wraps"),
                (Beyond::Saturates, "saturates"),
                (Beyond::MagnitudeWraps, "wraps and keeps its sign"),
            ] {
                let choice = format!("{bits}, then the sum {words}");
                let carry = Some(Carry { bits, beyond });
                push("carry bits", choice, with(Added::Fused(Fused { carry, ..fused.clone() })));
            }
        }
    }
    for (zeros, choice) in ZEROS {
        push("exponents of zeros", choice.to_string(), with(Added::Fused(Fused { zeros, ..fused.clone() })));
    }
    if class >= Class::Subnormal {
        let floor = |floor| with(Added::Fused(Fused { floor, ..fused.clone() }));
        push("floor of the largest exponent", "none".to_string(), floor(None));
        let lowest = signature.d.min_exponent();
        for exponent in lowest - 30..=lowest + 2 {
            push("floor of the largest exponent", format!("{exponent}"), floor(Some(exponent)));
        }
    }
}

fn turn_rounding(
    round: RoundTo,
    shape: Shape,
    signature: &Signature,
    class: Class,
) -> Vec<(String, String, RoundTo)> {
    let mut turned = Vec::new();
    let mut push =
        |knob: &str, choice: String, round: RoundTo| turned.push((knob.to_string(), choice, round));
    for rounding in Rounding::EVERY {
        push("final rounding", rounding.to_string(), RoundTo { rounding, ..round });
    }
    for fraction_bits in 0..=round.format.fraction_bits {
        push("fraction bits of the result", format!("{fraction_bits}"), RoundTo { fraction_bits, ..round });
    }
    // Both at once: fewer bits look like an aligned sum as long as the rounding is wrong.
    for rounding in Rounding::EVERY {
        for fraction_bits in 0..round.format.fraction_bits {
            let choice = format!("{rounding} to {fraction_bits} bits");
            push("rounding and bits of the result", choice, RoundTo { rounding, fraction_bits, ..round });
        }
    }
    if !shape.is_root {
        let mut formats =
            vec![signature.d, signature.c, format::FP64, format::FP32, format::FP16, format::BF16];
        formats.dedup();
        for format in formats {
            push(
                "format of the intermediate sum",
                format.to_string(),
                RoundTo { format, fraction_bits: format.fraction_bits, ..round },
            );
            // The range of one format with as many bits as now: tf32 is such.
            if round.fraction_bits < format.fraction_bits {
                push(
                    "format of the intermediate sum",
                    format!("{format} with {} fraction bits", round.fraction_bits),
                    RoundTo { format, ..round },
                );
            }
        }
    }
    if class >= Class::Subnormal {
        for subnormals in all_subnormals() {
            push("subnormal results", subnormal_words(subnormals), RoundTo { subnormals, ..round });
        }
    }
    if class >= Class::Infinite {
        for overflow in overflows(&round) {
            push("overflow", overflow_words(overflow).to_string(), RoundTo { overflow, ..round });
        }
    }
    turned
}

/// Rules for NaN results, canonical ones first. The patterns themselves are taken from answers: the one that all NaN
/// answers share, and those that came from no NaN operand.
pub fn nan_rules(model: &Model, signature: &Signature, evidence: &Evidence) -> Vec<NanRule> {
    let is_nan = |format: &Format, bits: u64| matches!(format.decode(bits), Decoded::Nan { .. });
    let mut generated = Vec::new();
    let mut all = Vec::new();
    for answered in evidence.answers.iter().filter(|answered| is_nan(&signature.d, answered.answer)) {
        let question = &answered.question;
        let from_operand = is_nan(&signature.c, question.c)
            || question.a.iter().any(|&bits| is_nan(&signature.a, bits))
            || question.b.iter().any(|&bits| is_nan(&signature.b, bits));
        if !from_operand && !generated.contains(&answered.answer) && generated.len() < 4 {
            generated.push(answered.answer);
        }
        if !all.contains(&answered.answer) && all.len() < 4 {
            all.push(answered.answer);
        }
    }
    let mut rules: Vec<NanRule> = all.iter().map(|&bits| NanRule::Canonical(bits)).collect();
    if !matches!(signature.d.specials, Specials::Ieee) {
        return rules;
    }
    let [a, b, c] = [NanSource::A, NanSource::B, NanSource::Accumulator];
    // Only where a sum has several products, or several other summands, are there equals.
    let has_equals = model.tree.nodes.iter().any(|node| {
        let products =
            node.children().iter().filter(|&&id| matches!(model.tree.nodes[id], Node::Product(_))).count();
        products > 1 || node.children().len() - products > 1
    });
    let later = if has_equals { &[false, true][..] } else { &[false] };
    rules.extend(generated.iter().map(|&generated| NanRule::Merged { generated }));
    for generated in generated {
        for order in [[a, b, c], [b, a, c], [a, c, b], [b, c, a], [c, a, b], [c, b, a]] {
            for &later_first in later {
                for quieted in [true, false] {
                    for generated_first in [false, true] {
                        rules.push(NanRule::Propagated(Propagation {
                            generated,
                            order,
                            later_first,
                            quieted,
                            generated_first,
                        }));
                    }
                }
            }
        }
    }
    rules
}

fn nan_words(rule: &NanRule, d: &Format) -> String {
    let width = 2 * d.bytes;
    match rule {
        NanRule::Unknown => "no rule known".to_string(),
        NanRule::Merged { generated } => format!("all ORed, else 0x{generated:0width$x}"),
        NanRule::Canonical(bits) => format!("always 0x{bits:0width$x}"),
        NanRule::Propagated(rule) => {
            let source = |source| match source {
                NanSource::A => "a",
                NanSource::B => "b",
                NanSource::Accumulator => "sum or c",
            };
            format!(
                "the operand's, {} before {} before {}{}{}, else 0x{:0width$x}{}",
                source(rule.order[0]),
                source(rule.order[1]),
                source(rule.order[2]),
                if rule.later_first { ", the later summand first" } else { "" },
                if rule.quieted { ", quieted" } else { "" },
                rule.generated,
                if rule.generated_first { ", which goes before operands" } else { "" },
            )
        }
    }
}

/// Models that differ from this one in several things about one aligned sum at once: the fraction bits
/// and the rounding of all summands, the first, or the others, `closely` also with the other kind of
/// exponents; and, for F within two bits, which zeros count. Each alone may be contradicted where all
/// together are not.
pub fn turn_alignments(model: &Model, closely: bool) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (rule, own) in model.tree.rules.iter().enumerate() {
        // An exact sum is like an aligned one of any width.
        let wide = Fused::uniform(MOST_FRACTION_BITS, Rounding::TowardZero);
        let (fused, was_exact) = match &own.added {
            Added::Fused(fused) => (fused, false),
            Added::Exact => (&wide, true),
        };
        let (first, rest) = (fused.alignment[0], *fused.alignment_of(1));
        let mut push = |alignment: Vec<Alignment>, exponents, zeros, choice: String| {
            let mut other = model.clone();
            other.tree.rules[rule].added =
                Added::Fused(Fused { alignment, exponents, zeros, ..fused.clone() });
            let knob = Knob { what: "alignment as a whole".to_string(), rule: Some(rule) };
            turned.push(Turned { knob, choice, model: other });
        };
        for exponents in [Exponents::Raw, Exponents::Normalised] {
            let exponent_words = if exponents == Exponents::Raw { "raw" } else { "normalised" };
            if !closely && exponents != fused.exponents {
                continue;
            }
            for fraction_bits in 0..=MOST_FRACTION_BITS {
                for rounding in Rounding::EVERY {
                    let changed = |alignment| Alignment { fraction_bits, rounding, ..alignment };
                    let words = |which: &str| {
                        format!("{which}F = {fraction_bits}, {rounding}, exponents {exponent_words}")
                    };
                    push(vec![changed(first)], exponents, fused.zeros, words(""));
                    if !was_exact && Shape::of(model, rule).arity >= 2 {
                        push(vec![changed(first), rest], exponents, fused.zeros, words("the first: "));
                        push(vec![first, changed(rest)], exponents, fused.zeros, words("the others: "));
                    }
                }
            }
            if was_exact {
                continue;
            }
            for difference in -2i32..=2 {
                for rounding in std::iter::once(None).chain(Rounding::EVERY.map(Some)) {
                    for (zeros, zero_words) in ZEROS {
                        let mut alignment = fused.alignment.clone();
                        for alignment in &mut alignment {
                            let bits = alignment.fraction_bits.saturating_add_signed(difference);
                            alignment.fraction_bits = bits.min(MOST_FRACTION_BITS);
                            alignment.rounding = rounding.unwrap_or(alignment.rounding);
                        }
                        let choice = format!(
                            "F = {}, {}, exponents {exponent_words}, zeros {zero_words}",
                            alignment[0].fraction_bits, alignment[0].rounding,
                        );
                        push(alignment, exponents, zeros, choice);
                    }
                }
            }
        }
    }
    turned
}

/// Models in which one summand of an aligned sum, by its position, keeps another number of fraction bits
/// than it does or is rounded otherwise.
pub fn turn_each_alignment(model: &Model) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (rule, own) in model.tree.rules.iter().enumerate() {
        let Added::Fused(fused) = &own.added else { continue };
        let arity = Shape::of(model, rule).arity;
        for position in 0..arity {
            let mut push = |alignment: Alignment, choice: String| {
                let mut changed = fused.clone();
                let last = *fused.alignment_of(position.max(fused.alignment.len()));
                changed.alignment.resize((position + 2).min(arity).max(fused.alignment.len()), last);
                changed.alignment[position] = alignment;
                let mut other = model.clone();
                other.tree.rules[rule].added = Added::Fused(changed);
                let knob = Knob { what: format!("alignment of summand {position}"), rule: Some(rule) };
                turned.push(Turned { knob, choice, model: other });
            };
            let own = *fused.alignment_of(position);
            for fraction_bits in 0..=MOST_FRACTION_BITS {
                push(Alignment { fraction_bits, ..own }, format!("F = {fraction_bits}"));
            }
            for rounding in Rounding::EVERY {
                push(Alignment { rounding, ..own }, rounding.to_string());
            }
        }
    }
    turned
}

/// Models in which some of the sums that share a rule have one of their own, equal to it: the root,
/// the sums at each height, those with c.
pub fn split(model: &Model) -> Vec<Model> {
    let nodes = &model.tree.nodes;
    let mut heights = vec![0usize; nodes.len()];
    let mut has_c = vec![false; nodes.len()];
    for (id, node) in nodes.iter().enumerate() {
        match node {
            Node::Accumulator => has_c[id] = true,
            Node::Scaled { child, .. } => heights[id] = heights[*child],
            Node::Sum { children, .. } => {
                heights[id] = 1 + children.iter().map(|&child| heights[child]).max().unwrap_or(0);
                has_c[id] = children.iter().any(|&child| matches!(nodes[child], Node::Accumulator));
            }
            _ => {}
        }
    }
    let sums: Vec<(usize, RuleId)> = nodes
        .iter()
        .enumerate()
        .filter_map(|(id, node)| match node {
            Node::Sum { rule, .. } => Some((id, *rule)),
            _ => None,
        })
        .collect();
    let mut selections: Vec<Vec<usize>> = Vec::new();
    for rule in 0..model.tree.rules.len() {
        let members: Vec<usize> = sums.iter().filter(|(_, r)| *r == rule).map(|(id, _)| *id).collect();
        let mut select = |chosen: Vec<usize>| {
            if !chosen.is_empty() && chosen.len() < members.len() && !selections.contains(&chosen) {
                selections.push(chosen);
            }
        };
        select(members.iter().copied().filter(|&id| id == nodes.len() - 1).collect());
        select(members.iter().copied().filter(|&id| has_c[id]).collect());
        let highest = members.iter().map(|&id| heights[id]).max().unwrap_or(0);
        for height in (1..=highest).take(6) {
            select(members.iter().copied().filter(|&id| heights[id] == height).collect());
        }
    }
    selections
        .into_iter()
        .map(|chosen| {
            let mut model = model.clone();
            let own = model.tree.rules.len();
            let mut copied = None;
            for id in chosen {
                if let Node::Sum { rule, .. } = &mut model.tree.nodes[id] {
                    copied = Some(*rule);
                    *rule = own;
                }
            }
            if let Some(rule) = copied {
                let rule = model.tree.rules[rule].clone();
                model.tree.rules.push(rule);
            }
            model
        })
        .collect()
}
