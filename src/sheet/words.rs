//! What an instruction computes, in words.

use std::fmt::Write;

use mmaprobe_model::format::{Overflow, RoundTo, Subnormals, Tininess};
use mmaprobe_model::tree::{
    Added, Beyond, Exponents, Fused, InputInfinities, InputSubnormals, NanRule, NodeId, Normalised, Product,
    Propagation, Rule, RuleId, ZeroSigns, ZeroTerms,
};
use mmaprobe_model::{Model, Rounding};

use crate::sheet::arithmetic::rule_names;
use crate::sheet::outline::{Outline, Part, abbreviated, list};
use crate::sheet::spelling::{Bits, Phrase};

/// Describes a model: its sum tree, rounding, subnormals, signed zeros, overflow and NaNs.
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn describe(model: &Model) -> String {
    let model = model.canonical();
    let outline = Outline::new(&model.tree);
    let mut words = Words::new(&outline, &model.tree.rules);
    words.structure("d", &[outline.root()], false);
    let mut sentences = vec![products(&model.product)];
    sentences.extend(std::mem::take(&mut words.sentences));
    for (rule, content) in model.tree.rules.iter().enumerate() {
        sentences.push(format!("{} {}.", words.subject(rule), how(content)));
    }
    sentences.push(subnormal_operands(&model));
    sentences.extend(infinite_operands(&model));
    let rounds: Vec<(RuleId, &RoundTo)> = model
        .tree
        .rules
        .iter()
        .enumerate()
        .filter_map(|(id, rule)| match &rule.normalised {
            Normalised::To(round) => Some((id, round)),
            Normalised::No { .. } => None,
        })
        .collect();
    sentences.extend(words.grouped(rounds.iter().map(|(id, round)| (*id, subnormal_results(round)))));
    sentences.extend(words.grouped(rounds.iter().map(|(id, round)| (*id, overflow(round)))));
    let zeros = model.tree.rules.iter().enumerate().map(|(id, rule)| (id, zero_signs(&rule.zero)));
    sentences.extend(words.grouped(zeros));
    if model.tree.rules.iter().any(|rule| rule.infinite_operands_first) {
        sentences.push("Infinite operands decide before products that overflow.".into());
    }
    sentences.push(nan(&model.nan));
    sentences.join(" ")
}

/// Says which summands meet in which sums, and nothing of how they are added.
///
/// # Panics
/// If the model does not pass [`Model::check`].
pub fn structure(model: &Model) -> String {
    let model = model.canonical();
    let outline = Outline::new(&model.tree);
    let mut words = Words::new(&outline, &model.tree.rules);
    words.structure("d", &[outline.root()], false);
    words.sentences.join(" ")
}

/// Letters for intermediate sums.
const LETTERS: [&str; 10] = ["s", "t", "u", "v", "w", "x", "y", "z", "q", "r"];

struct Words<'o> {
    outline: &'o Outline<'o>,
    rules: &'o [Rule],
    names: Vec<String>,
    sentences: Vec<String>,
    /// What the sums of each rule have been called.
    nouns: Vec<Vec<&'static str>>,
    letters: usize,
}

impl<'o> Words<'o> {
    fn new(outline: &'o Outline<'o>, rules: &'o [Rule]) -> Words<'o> {
        let nouns = vec![Vec::new(); rules.len()];
        Words { outline, rules, names: rule_names(rules), sentences: Vec::new(), nouns, letters: 0 }
    }

    /// A fresh name for intermediate sums.
    fn letter(&mut self) -> String {
        let (round, index) = (self.letters / LETTERS.len(), self.letters % LETTERS.len());
        self.letters += 1;
        LETTERS[index].to_string() + &"′".repeat(round)
    }

    /// Says what alike sums are; then, in further sentences, what they are made of.
    fn structure(&mut self, subject: &str, alike: &[NodeId], each: bool) {
        let Some((rule, summands)) = self.outline.sum(alike[0]) else { return };
        let subject = if each { format!("Each {subject}") } else { subject.to_string() };
        let mut later = Vec::new();
        let predicate = if let Some(levels) = self.outline.pairwise_levels(alike[0]) {
            let lists: Vec<Vec<usize>> = alike.iter().map(|&id| self.outline.products(id)).collect();
            format!(
                "the pairwise sum, in a balanced binary tree of {levels} levels of {}, of {}",
                self.noun(rule, false, true),
                these_products(&lists)
            )
        } else if let Some(chain) = self.outline.chain(alike[0]) {
            let chains: Vec<_> = alike.iter().filter_map(|&id| self.outline.chain(id)).collect();
            let count = chain.links.len();
            let others = |link: NodeId| -> Vec<NodeId> {
                let (_, summands) = self.outline.sum(link).unwrap_or((0, &[]));
                let others = summands.iter().enumerate().filter(|&(i, _)| i != chain.position);
                others.map(|(_, &id)| id).collect()
            };
            let links: Vec<Vec<NodeId>> =
                chains.iter().flat_map(|chain| chain.links.iter().map(|&link| others(link))).collect();
            let starts: Vec<Vec<NodeId>> = chains.iter().map(|chain| vec![chain.start]).collect();
            let single = links[0].len() == 1 && self.outline.products(links[0][0]).len() == 1;
            let single = single && matches!(self.outline.parts(links[0].clone())[..], [Part::Products(_)]);
            let noun = self.noun(rule, single, true);
            if single {
                let lists: Vec<Vec<usize>> = chains
                    .iter()
                    .map(|chain| chain.links.iter().flat_map(|&link| others(link)).collect::<Vec<_>>())
                    .map(|ids| ids.into_iter().flat_map(|id| self.outline.products(id)).collect())
                    .collect();
                let start = self.summands(&starts, &mut later);
                format!("a chain of {count} {noun} over {}, starting from {start}", these_products(&lists))
            } else {
                let added = self.summands(&links, &mut later);
                let start = self.summands(&starts, &mut later);
                format!(
                    "a chain of {count} {noun}, each adding {added} to the one before, starting from {start}"
                )
            }
        } else {
            let instances: Vec<Vec<NodeId>> = alike
                .iter()
                .map(|&id| self.outline.sum(id).map_or(Vec::new(), |(_, summands)| summands.to_vec()))
                .collect();
            let parts = self.outline.parts(summands.iter().copied());
            let is_fma = summands.len() == 2
                && parts.iter().any(|part| matches!(part, Part::Products(products) if products.len() == 1));
            let noun = self.noun(rule, is_fma, false);
            format!("the {noun} of {}", self.summands(&instances, &mut later))
        };
        self.sentences.push(capitalised(&format!("{subject} is {predicate}.")));
        for (subject, alike, each) in later {
            self.structure(&subject, &alike, each);
        }
    }

    /// The summands of alike sums in a phrase; sums among them get a name and go to `later`.
    fn summands(
        &mut self,
        instances: &[Vec<NodeId>],
        later: &mut Vec<(String, Vec<NodeId>, bool)>,
    ) -> String {
        let all: Vec<Vec<Part>> =
            instances.iter().map(|ids| self.outline.parts(ids.iter().copied())).collect();
        let several = instances.len() > 1;
        let mut phrases = Vec::new();
        for (position, part) in all[0].iter().enumerate() {
            phrases.push(match part {
                Part::Accumulator => "c".to_string(),
                Part::Zero => "+0".to_string(),
                Part::Products(_) => {
                    let lists: Vec<Vec<usize>> = all
                        .iter()
                        .filter_map(|parts| match parts.get(position) {
                            Some(Part::Products(products)) => Some(products.clone()),
                            _ => None,
                        })
                        .collect();
                    these_products(&lists)
                }
                Part::Inner(group) => {
                    let ids = all.iter().filter_map(|parts| match parts.get(position) {
                        Some(Part::Inner(group)) => Some(group.clone()),
                        _ => None,
                    });
                    let ids: Vec<NodeId> = ids.flatten().collect();
                    self.inner(&ids, group.len(), several, later)
                }
            });
        }
        match &phrases[..] {
            [] => "nothing".into(),
            [one] => one.clone(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        }
    }

    /// Alike sums, or scaled values, `count` of them in each place.
    fn inner(
        &mut self,
        ids: &[NodeId],
        count: usize,
        several: bool,
        later: &mut Vec<(String, Vec<NodeId>, bool)>,
    ) -> String {
        let unscaled: Vec<(NodeId, Vec<usize>)> = ids.iter().map(|&id| self.outline.unscaled(id)).collect();
        let inner: Vec<NodeId> = unscaled.iter().map(|(id, _)| *id).collect();
        let blocks = &unscaled[0].1;
        let phrase = if self.outline.sum(inner[0]).is_none() {
            match self.outline.parts(inner.iter().copied()).first() {
                Some(Part::Accumulator) => "c".into(),
                Some(Part::Zero) => "+0".into(),
                _ => list(&inner.iter().flat_map(|&id| self.outline.products(id)).collect::<Vec<_>>()),
            }
        } else {
            let letter = self.letter();
            let sums = match count {
                1 => letter.clone(),
                2 => format!("{letter}₁ and {letter}₂"),
                _ => format!("{letter}₁ to {letter}{}", subscript(count)),
            };
            let phrase = if several { format!("its own {sums}") } else { sums };
            later.push((letter, inner.clone(), several || count > 1));
            phrase
        };
        match (&blocks[..], ids.len()) {
            ([], _) => phrase,
            ([block], 1) => format!("{phrase} times both scales of block {block}"),
            (_, _) => format!("{phrase} (each times both scales of its block)"),
        }
    }

    /// What a sum by this rule is called.
    fn noun(&mut self, rule: RuleId, adds_one_product: bool, plural: bool) -> String {
        let noun = match (&self.rules[rule].added, &self.rules[rule].normalised) {
            (Added::Exact, Normalised::To(_)) if adds_one_product => "fused multiply-add",
            (Added::Exact, Normalised::To(_)) => "rounded sum",
            (Added::Exact, Normalised::No { .. }) => "exact sum",
            (Added::Fused(_), Normalised::To(_)) => "fused sum",
            (Added::Fused(_), Normalised::No { .. }) => "unnormalised fused sum",
        };
        if !self.nouns[rule].contains(&noun) {
            self.nouns[rule].push(noun);
        }
        let plural = if plural { "s" } else { "" };
        format!("{noun}{plural}{}", self.number(rule))
    }

    /// What tells a rule from others of its kind.
    fn number(&self, rule: RuleId) -> String {
        match self.names[rule].trim_start_matches(|c: char| !c.is_ascii_digit()) {
            "" => String::new(),
            _ => format!(" ({})", self.names[rule]),
        }
    }

    /// The sums by a rule, to begin a sentence with.
    fn subject(&self, rule: RuleId) -> String {
        let nouns: Vec<String> = self.nouns[rule].iter().map(|noun| format!("{noun}s")).collect();
        capitalised(&(nouns.join(" and ") + &self.number(rule)))
    }

    /// A sentence for each group of rules of which the same holds.
    fn grouped(&self, statements: impl Iterator<Item = (RuleId, String)>) -> Vec<String> {
        let mut groups: Vec<(String, Vec<RuleId>)> = Vec::new();
        for (rule, statement) in statements {
            match groups.iter_mut().find(|(other, _)| *other == statement) {
                Some((_, rules)) => rules.push(rule),
                None => groups.push((statement, vec![rule])),
            }
        }
        if let [(statement, _)] = &groups[..] {
            return vec![capitalised(&format!("{statement}."))];
        }
        let sentence = |(statement, rules): (String, Vec<RuleId>)| {
            let subjects: Vec<String> = rules.iter().map(|&rule| self.subject(rule)).collect();
            capitalised(&format!("{}: {statement}.", subjects.join(", ").to_lowercase()))
        };
        groups.into_iter().map(sentence).collect()
    }
}

/// The text with a capital at the beginning, unless it begins with a variable.
pub fn capitalised(text: &str) -> String {
    // `d` is a variable.
    if text.starts_with("d is") {
        return text.into();
    }
    let mut characters = text.chars();
    match characters.next() {
        // So are the letters of intermediate sums.
        Some(first) if !characters.as_str().starts_with([' ', '′']) => {
            first.to_uppercase().collect::<String>() + characters.as_str()
        }
        _ => text.into(),
    }
}

fn subscript(number: usize) -> String {
    let digit = |c: char| char::from_u32('₀' as u32 + c as u32 - '0' as u32).unwrap_or(c);
    number.to_string().chars().map(digit).collect()
}

/// The products of alike sums.
fn these_products(lists: &[Vec<usize>]) -> String {
    match lists {
        [one] => list(one),
        several if several[0].len() == 1 => format!("a product ({})", list(&several.concat())),
        several => {
            let each: Vec<String> = several.iter().map(|products| list(products)).collect();
            format!("{} products each ({})", several[0].len(), abbreviated(&each))
        }
    }
}

/// How products are formed: a sentence.
pub fn products(product: &Product) -> String {
    match product {
        Product::Exact => "Products are exact.".into(),
        Product::OverflowsAt { exponent } => {
            format!("Products are exact, but magnitudes from 2^{exponent} on become infinite.")
        }
        Product::FlushedBelow { exponent, sign_kept } => {
            let zero = if *sign_kept { "zeros of their sign" } else { "+0" };
            format!("Products are exact, but magnitudes below 2^{exponent} become {zero}.")
        }
        Product::Rounded(round) => {
            format!(
                "Products are rounded {}; {}; {}.",
                to_format(round),
                subnormal_results(round),
                overflow(round)
            )
        }
    }
}

/// What the sums of a rule do, to follow their name.
fn how(rule: &Rule) -> String {
    let mut text = match &rule.added {
        Added::Exact => "add exactly".to_string(),
        Added::Fused(fused) => how_fused(fused),
    };
    match (&rule.normalised, &rule.added) {
        (Normalised::To(round), Added::Exact) => {
            let _ = write!(text, " and round once, {}", to_format(round));
        }
        (Normalised::To(round), Added::Fused(_)) => {
            let _ = write!(text, "; the sum is rounded {}", to_format(round));
        }
        (Normalised::No { exponent }, added) => {
            let join = if matches!(added, Added::Exact) { " and pass" } else { "; they pass" };
            let _ = write!(text, "{join} the result on without normalising or rounding it");
            if let Some(exponent) = exponent {
                let _ = write!(text, ", under exponent {exponent}");
            }
        }
    }
    text
}

fn how_fused(fused: &Fused) -> String {
    let exponents = match fused.exponents {
        Exponents::Raw => "raw",
        Exponents::Normalised => "normalised",
    };
    let mut text = format!("align their summands to the largest {exponents} exponent");
    if let Some(floor) = fused.floor {
        let _ = write!(text, " (at least {floor})");
    }
    let last = fused.alignment.len() - 1;
    for (index, alignment) in fused.alignment.iter().enumerate() {
        let (verb, summand) = match index {
            0 if last == 0 => (" and keep", String::new()),
            0 => (" and keep", " of the first".to_string()),
            _ if index == last => (", and", " of the others".to_string()),
            _ => (",", format!(" of summand {}", index + 1)),
        };
        let bits = if index == 0 { " fraction bits" } else { "" };
        let _ = write!(
            text,
            "{verb} {}{bits}{summand}, rounding {}",
            alignment.fraction_bits,
            toward(alignment.rounding)
        );
        if let Some(far) = alignment.far {
            let _ = write!(text, " or, more than {} below, {}", far.distance, toward(far.rounding));
        }
    }
    match fused.zeros {
        ZeroTerms::Ignored => {}
        ZeroTerms::SumsCounted => text.push_str("; sums that are zero count in the largest exponent"),
        ZeroTerms::Counted => text.push_str("; zeros count in the largest exponent"),
        ZeroTerms::CountedAsFp32 => {
            text.push_str("; zeros count in the largest exponent, zero operands with −126");
        }
    }
    if let Some(carry) = fused.carry {
        let does = match carry.beyond {
            Beyond::Wraps => "wraps around",
            Beyond::MagnitudeWraps => "wraps around, but for its sign",
            Beyond::Saturates => "saturates",
        };
        let _ = write!(text, "; the integer part has {} bits and {does}", carry.bits);
    }
    if fused.sticky {
        text.push_str("; a sticky bit below the sum says whether alignment changed a summand");
    }
    text
}

/// A rounding mode in words, with its abbreviation.
pub fn toward(rounding: Rounding) -> String {
    let words = match rounding {
        Rounding::Up => "toward +∞",
        Rounding::Down => "toward −∞",
        Rounding::TowardZero => "toward zero",
        Rounding::AwayFromZero => "away from zero",
        Rounding::NearestTiesUp => "to nearest, ties toward +∞",
        Rounding::NearestTiesDown => "to nearest, ties toward −∞",
        Rounding::NearestTiesToZero => "to nearest, ties toward zero",
        Rounding::NearestTiesAway => "to nearest, ties away from zero",
        Rounding::NearestTiesToEven => "to nearest, ties to even",
        Rounding::NearestTiesToOdd => "to nearest, ties to odd",
        Rounding::ToOdd => "to odd",
    };
    format!("{words} ({rounding})")
}

fn to_format(round: &RoundTo) -> String {
    let kept = if round.fraction_bits == round.format.fraction_bits {
        String::new()
    } else {
        format!(" with {} of its {} fraction bits", round.fraction_bits, round.format.fraction_bits)
    };
    format!("to {}{kept}, {}", round.format, toward(round.rounding))
}

/// How subnormal operands are read: a sentence.
pub fn subnormal_operands(model: &Model) -> String {
    let words = |subnormals| match subnormals {
        InputSubnormals::Kept => "are kept",
        InputSubnormals::FlushedToPositiveZero => "are read as +0",
        InputSubnormals::FlushedToSignedZero => "are read as zeros of their sign",
    };
    let [a, b, c] = [model.a, model.b, model.c].map(|operand| words(operand.subnormals));
    match (a == b, b == c, a == c) {
        (true, true, _) => format!("Subnormal operands {a}."),
        (true, false, _) => format!("Subnormal a and b {a}, subnormal c {c}."),
        (false, true, _) => format!("Subnormal a {a}, subnormal b and c {b}."),
        (false, false, true) => format!("Subnormal a and c {a}, subnormal b {b}."),
        (false, false, false) => format!("Subnormal a {a}, subnormal b {b}, subnormal c {c}."),
    }
}

/// How infinite operands are read: a sentence, or nothing if infinities are what they are to every format.
pub fn infinite_operands(model: &Model) -> Option<String> {
    let operands = [("a", &model.a), ("b", &model.b), ("c", &model.c)];
    let read: Vec<String> = operands
        .into_iter()
        .filter_map(|(name, operand)| match operand.infinities {
            InputInfinities::Kept => None,
            InputInfinities::Nan => Some(format!("infinite {name} is read as NaN")),
            InputInfinities::Largest => {
                Some(format!("infinite {name} is read as the largest number of its sign"))
            }
        })
        .collect();
    (!read.is_empty()).then(|| capitalised(&format!("{}.", read.join(", "))))
}

/// What becomes of subnormal results: a clause.
pub fn subnormal_results(round: &RoundTo) -> String {
    match round.subnormals {
        Subnormals::Kept => "subnormal results are kept".into(),
        Subnormals::Flushed { tiny, sign_kept } => {
            let zero = if sign_kept { "zeros of their sign" } else { "+0" };
            let when = match tiny {
                Tininess::BeforeRounding => "tiny before rounding",
                Tininess::AfterRounding => "tiny after rounding",
                Tininess::Delivered => "tiny as delivered",
            };
            format!("subnormal results become {zero} ({when})")
        }
    }
}

/// What becomes of results that are too large: a clause.
pub fn overflow(round: &RoundTo) -> String {
    match round.overflow {
        Overflow::Infinity => "overflow gives infinity".into(),
        Overflow::Largest => "overflow gives the largest finite number".into(),
        Overflow::ByRounding => {
            "overflow gives infinity or the largest finite number, as the rounding mode says".into()
        }
    }
}

/// The signs of zero results: a clause.
pub fn zero_signs(zero: &ZeroSigns) -> String {
    let sign = |negative| if negative { "−0" } else { "+0" };
    let standard = if *zero == ZeroSigns::IEEE { "as in IEEE 754, " } else { "" };
    let mut text = format!(
        "{standard}negative zeros add up to {}, cancellation gives {}",
        sign(zero.negative_zeros_stay),
        sign(zero.cancellation_is_negative)
    );
    if !zero.underflow_keeps_sign {
        text.push_str(", and underflow +0");
    }
    text
}

/// What a NaN result looks like: a sentence.
pub fn nan(rule: &NanRule) -> String {
    match rule {
        NanRule::Canonical(bits) => format!("Every NaN result is {}.", Phrase(Bits(*bits))),
        NanRule::Merged { generated } => format!(
            "The fractions of NaNs that meet are ORed, and the sign is that of the last; a NaN that no operand \
             brought along is {}.",
            Phrase(Bits(*generated))
        ),
        NanRule::Unknown => "Which NaN a NaN result is, is not known.".into(),
        NanRule::Propagated(Propagation { generated, order, later_first, quieted, generated_first }) => {
            let order: Vec<String> = order.iter().map(|&source| Phrase(source).to_string()).collect();
            format!(
                "A NaN operand is handed on{}; of several, by origin in the order {}, {} first among equals; \
                 a NaN that no operand brought along is {}{}.",
                if *quieted { " with its quiet bit set" } else { " as it is" },
                order.join(", "),
                if *later_first { "the rightmost" } else { "the leftmost" },
                Phrase(Bits(*generated)),
                if *generated_first { " and goes before all" } else { "" }
            )
        }
    }
}
