//! Asking by values of summands, and what every experiment has to know first.

use crate::batch;
use crate::bits::Shown;
use crate::device::{Device, DeviceError, Instruction};
use crate::model::{Decoded, Format, Term};
use crate::probes::place::{self, Dyadic};
use crate::probes::precision::{LONGEST, pair_ladder, triple_ladder, unit};
use crate::probes::{DotAdd, Signature, Summand};

/// An input and what came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The input in values: `p0 = 1, c = -1+2^-24`; summands that are not named are zero.
    pub input: String,
    /// The input in bits.
    pub dot_add: DotAdd,
    /// The result's bits.
    pub answer: u64,
    /// The result as a value: `2^-23`.
    pub result: String,
}

/// An input before it is asked.
#[derive(Clone, Debug)]
pub(super) struct Question {
    input: String,
    dot_add: DotAdd,
}

/// A number as a person would write it: `1-2^-24`, `3`, `2^-14+2^-24`, or in hexadecimal.
pub fn shown(number: Dyadic) -> String {
    let Dyadic { negative, significand, exponent } = number;
    let sign = if negative { "-" } else { "" };
    if significand == 0 {
        return format!("{sign}0");
    }
    let zeros = significand.trailing_zeros();
    let (significand, exponent) = (significand >> zeros, exponent + zeros as i32);
    let power = |exponent: i32| match exponent {
        0..10 => (1u32 << exponent).to_string(),
        _ => format!("2^{exponent}"),
    };
    let bits = 64 - significand.leading_zeros() as i32;
    if (0..10).contains(&exponent) && bits + exponent <= 10 {
        return format!("{sign}{}", significand << exponent);
    }
    let other = if negative { "+" } else { "-" };
    let same = if negative { "-" } else { "+" };
    if significand.count_ones() as i32 == bits && bits > 1 {
        return format!("{sign}{}{other}{}", power(exponent + bits), power(exponent));
    }
    if significand.count_ones() <= 3 {
        let ones = (0..bits).rev().filter(|bit| significand >> bit & 1 == 1);
        let powers: Vec<String> = ones.map(|bit| power(exponent + bit)).collect();
        return format!("{sign}{}", powers.join(same));
    }
    let fraction = significand << (64 - bits) << 1;
    let fraction = format!("{fraction:016x}");
    format!("{sign}0x1.{}p{:+}", fraction.trim_end_matches('0'), exponent + bits - 1)
}

/// What experiments are made with: a device's instruction, asked by values.
#[derive(Clone, Copy)]
pub(super) struct Lab<'d> {
    device: &'d dyn Device,
    instruction: &'d Instruction,
    pub(super) signature: Signature,
    /// The exponent of what the papers call 1: 0 unless formats are too narrow for that.
    pub(super) unit: i32,
}

impl<'d> Lab<'d> {
    pub(super) fn new(device: &'d dyn Device, instruction: &'d Instruction) -> Lab<'d> {
        Lab { device, instruction, signature: instruction.signature(), unit: 0 }
    }

    /// The same, with a 1 from which the summands reach down to where bits are lost.
    pub(super) fn scaled_for(self, facts: &Facts) -> Lab<'d> {
        let Signature { a, b, d, .. } = &self.signature;
        // The last bit kept has to be one that the result can show.
        let by_result = facts.cut + 1 + d.min_quantum();
        let (_, high) = place::reach(&self.signature);
        // And the products have to reach below it.
        let by_products = facts.cut + 4 + a.min_quantum() + b.min_exponent();
        Lab { unit: by_products.max(by_result).clamp(0, (high - 4).max(0)), ..self }
    }

    pub(super) fn k(&self) -> usize {
        self.signature.k
    }

    /// ±`significand` × 2^`exponent`, counted from this lab's 1.
    pub(super) fn number(&self, significand: i64, exponent: i32) -> Dyadic {
        let (negative, significand) = (significand < 0, significand.unsigned_abs());
        Dyadic { negative, significand, exponent: exponent + self.unit }
    }

    /// An input in which these summands have these values and all others are zero; `None` if a format
    /// cannot hold one of them.
    pub(super) fn values(&self, values: &[(Summand, Dyadic)]) -> Option<Question> {
        let dot_add = place::question(&self.signature, values)?;
        let mut parts: Vec<String> = Vec::new();
        let mut rest = values;
        while let Some(&(summand, value)) = rest.first() {
            let alike = rest.iter().take_while(|(_, other)| *other == value).count();
            let name = match alike {
                1 => summand.to_string(),
                2 => format!("{summand} = {}", rest[1].0),
                _ => format!("{summand} … {}", rest[alike - 1].0),
            };
            parts.push(format!("{name} = {}", shown(value)));
            rest = &rest[alike..];
        }
        Some(Question { input: parts.join(", "), dot_add })
    }

    /// An input in which product 0 has these factors, other summands these values, and all else is zero.
    pub(super) fn factors(&self, a: Dyadic, b: Dyadic, others: &[(Summand, Dyadic)]) -> Option<Question> {
        let others = match others {
            [] => Question { input: String::new(), dot_add: place::zeros(&self.signature) },
            others => self.values(others)?,
        };
        let Question { input: rest, mut dot_add } = others;
        dot_add.a[0] = place::exactly(&self.signature.a, a)?;
        dot_add.b[0] = place::exactly(&self.signature.b, b)?;
        let separator = if rest.is_empty() { "" } else { ", " };
        let input = format!("a0 = {}, b0 = {}{separator}{rest}", shown(a), shown(b));
        Some(Question { input, dot_add })
    }

    /// Asks.
    pub(super) fn ask(&self, questions: Vec<Question>) -> Result<Vec<Case>, DeviceError> {
        let dot_adds: Vec<DotAdd> = questions.iter().map(|question| question.dot_add.clone()).collect();
        let results = self.answers(&dot_adds)?;
        let cases = questions.into_iter().zip(results).map(|(question, answer)| Case {
            input: question.input,
            dot_add: question.dot_add,
            answer,
            result: self.shown_result(answer),
        });
        Ok(cases.collect())
    }

    fn answers(&self, questions: &[DotAdd]) -> Result<Vec<u64>, DeviceError> {
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        batch::ask(self.device, self.instruction, questions)
    }

    fn shown_result(&self, bits: u64) -> String {
        let d = &self.signature.d;
        number_of(d, bits).map_or_else(|| Shown { format: d, bits }.to_string(), shown)
    }

    /// A result as a number; `None` for infinities and NaN.
    pub(super) fn result(&self, case: &Case) -> Option<Dyadic> {
        number_of(&self.signature.d, case.answer)
    }

    /// Whether a result is exactly this number; zeros are, whatever their sign.
    pub(super) fn is(&self, case: &Case, expected: Dyadic) -> bool {
        self.result(case).is_some_and(|result| difference(result, expected).is_zero())
    }

    /// Whether d's format holds a number exactly.
    pub(super) fn holds(&self, number: Dyadic) -> bool {
        place::exactly(&self.signature.d, number).is_some()
    }

    /// A result as a multiple of a power of two; `None` if it is none, or is huge.
    pub(super) fn multiple(&self, case: &Case, exponent: i32) -> Option<i64> {
        let Dyadic { negative, significand, exponent: lsb } = self.result(case)?;
        let shift = lsb - exponent;
        let magnitude = match shift {
            _ if significand == 0 => 0,
            0..63 if significand.leading_zeros() as i32 > shift + 1 => significand << shift,
            -63..0 if significand.trailing_zeros() as i32 >= -shift => significand >> -shift,
            _ => return None,
        };
        let magnitude = i64::try_from(magnitude).ok()?;
        Some(if negative { -magnitude } else { magnitude })
    }
}

/// A bit pattern as a number; `None` for infinities and NaN.
pub(super) fn number_of(format: &Format, bits: u64) -> Option<Dyadic> {
    match format.decode(bits) {
        Decoded::Finite { negative, significand, exponent } => {
            Some(Dyadic { negative, significand, exponent: exponent - format.fraction_bits as i32 })
        }
        Decoded::Infinite { .. } | Decoded::Nan { .. } => None,
    }
}

/// x − y.
pub(super) fn difference(x: Dyadic, y: Dyadic) -> Term {
    let term = |number: Dyadic| Term::new(number.negative, number.significand.into(), number.exponent, 0);
    Term::sum(&[term(x), term(-y)])
}

/// What later experiments need to know: which products are added at once, and to how many bits.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// Products that are aligned together, in one sum: at least one.
    pub(super) together: Vec<usize>,
    /// Whether c is aligned with them.
    pub(super) with_c: bool,
    /// Bits of a product that a sum keeps below its largest exponent; `None` if none were seen lost
    /// where larger summands cancel, as in sums of two.
    pub(super) product_bits: Option<i32>,
    /// The same of c.
    pub(super) c_bits: Option<i32>,
    /// `product_bits`, or the fraction bits of d where nothing is lost at alignment.
    pub(super) cut: i32,
    /// Fraction bits of the result that are used: those of d's format, or fewer where 1 + ε shows that.
    pub(super) result_bits: i32,
    /// What was asked to find `together`.
    pub(super) size_cases: Vec<Case>,
}

impl Facts {
    pub(super) fn find(lab: &Lab) -> Result<Facts, DeviceError> {
        let (together, with_c, size_cases) = together(lab)?;
        let product = |index: usize| Summand::Product(together[index]);
        let (mut product_bits, mut c_bits) = (None, None);
        if with_c && together.len() > 1 {
            product_bits = kept(lab, (Summand::C, product(0), product(1)))?;
            c_bits = kept(lab, (product(0), product(1), Summand::C))?;
        } else if together.len() > 2 {
            product_bits = kept(lab, (product(0), product(1), product(2)))?;
        }
        let fraction_bits = lab.signature.d.fraction_bits as i32;
        let cut = product_bits.unwrap_or(fraction_bits);
        let other = together.get(1).map_or(Summand::C, |&k| Summand::Product(k));
        let shown = last_shown(lab, product(0), other)?;
        let result_bits = shown.map_or(fraction_bits, |bits| bits.min(fraction_bits));
        Ok(Facts { together, with_c, product_bits, c_bits, cut, result_bits, size_cases })
    }

    /// Summands that are aligned together.
    pub(super) fn terms(&self) -> usize {
        self.together.len() + usize::from(self.with_c)
    }

    /// Whether any three summands are aligned together, so that alignment can be told from rounding.
    pub(super) fn is_fused(&self) -> bool {
        self.product_bits.is_some()
    }

    /// X, −X and a small value on three summands that are aligned together, the small one on a product.
    pub(super) fn three(&self) -> Option<[Summand; 3]> {
        let product = |index: usize| self.together.get(index).map(|&k| Summand::Product(k));
        match (self.with_c, product(0), product(1), product(2)) {
            (true, Some(first), Some(second), _) => Some([Summand::C, first, second]),
            (false, Some(first), Some(second), Some(third)) => Some([first, second, third]),
            _ => None,
        }
    }
}

/// The last step of a −1 + 1 + ε ladder that is not zero, if one is.
fn kept(lab: &Lab, triple: (Summand, Summand, Summand)) -> Result<Option<i32>, DeviceError> {
    let ladder = triple_ladder(&lab.signature, triple, false);
    let results = lab.answers(&ladder)?;
    let is_lost =
        |&bits: &u64| number_of(&lab.signature.d, bits).is_some_and(|number| number.significand == 0);
    Ok(results.iter().position(is_lost).map(|lost| lost as i32 - 1))
}

/// The last ε = 2^−t with which 1 + ε is not 1, if there is a first one with which it is.
fn last_shown(lab: &Lab, one: Summand, small: Summand) -> Result<Option<i32>, DeviceError> {
    let ladder = pair_ladder(&lab.signature, one, small, false);
    let large = Dyadic::power(unit(&lab.signature));
    let results = lab.answers(&ladder)?;
    let is_lost = |&bits: &u64| {
        number_of(&lab.signature.d, bits).is_some_and(|number| difference(number, large).is_zero())
    };
    Ok(results.iter().position(is_lost).map(|lost| lost as i32 - 1))
}

/// Which products are aligned together with the first, and whether c is: generalised from Khattak and
/// Mikaitis's question for the size of the fused multiply-add.
///
/// Of three summands X, −X and a tiny ε, ε is lost wherever it stands only if all three are aligned
/// together; in a chain, there is a place where X and −X have cancelled before ε comes.
fn together(lab: &Lab) -> Result<(Vec<usize>, bool, Vec<Case>), DeviceError> {
    let (low, high) = place::reach(&lab.signature);
    let low = low.max(lab.signature.d.min_exponent());
    let high = high.min(lab.signature.d.max_exponent() - 2);
    // ε as far below X as formats allow, up to where nothing known keeps it.
    let large = high.min((low + LONGEST).max(0));
    let tiny = low.max(large - LONGEST);
    let k = lab.k();
    let mut best: (Vec<usize>, bool, Vec<Case>) = (vec![0], false, Vec::new());
    let seeds = [[Summand::C, Summand::Product(0)], [Summand::Product(0), Summand::Product(1)]];
    for [x, y] in seeds.into_iter().take(k.min(2)) {
        let others: Vec<Summand> = lab.signature.summands().filter(|&s| s != x && s != y).collect();
        let mut questions = Vec::new();
        for &z in &others {
            for (plus, minus, small) in [(x, y, z), (x, z, y), (y, z, x)] {
                let values = [
                    (plus, Dyadic::power(large)),
                    (minus, -Dyadic::power(large)),
                    (small, Dyadic::power(tiny)),
                ];
                questions.extend(lab.values(&values));
            }
        }
        if questions.len() < 3 * others.len() {
            // c's format may not hold ε: then only the places where it stands on products count.
            continue;
        }
        let cases = lab.ask(questions)?;
        let is_lost = |case: &Case| lab.result(case).is_some_and(|number| number.significand == 0);
        let members: Vec<Summand> = others
            .iter()
            .zip(cases.chunks(3))
            .filter(|(_, three)| three.iter().all(is_lost))
            .map(|(&z, _)| z)
            .collect();
        if members.is_empty() {
            if best.2.is_empty() {
                best.2 = cases.into_iter().take(3).collect();
            }
            continue;
        }
        let all = members.into_iter().chain([x, y]);
        let mut products: Vec<usize> = all
            .clone()
            .filter_map(|summand| match summand {
                Summand::Product(k) => Some(k),
                Summand::C => None,
            })
            .collect();
        products.sort_unstable();
        let with_c = all.clone().any(|summand| summand == Summand::C);
        if products.len() > best.0.len() {
            let shown = cases.into_iter().take(3).collect();
            best = (products, with_c, shown);
        }
    }
    Ok(best)
}
