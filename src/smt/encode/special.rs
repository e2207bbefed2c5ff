//! Sums in which a summand is NaN or infinite, and the bit pattern of d.

use super::super::bv::{Bv, Cond, Scope};
use super::layout::{SOURCE, Shape, Value, source};
use super::operands::quiet_bit;
use super::{Encoder, body, element_width};
use crate::model::Decoded;
use crate::model::format::Specials;
use crate::model::tree::{NanRule, NanSource, Normalised, Rule};

/// A NaN that may take part: whether it does, its sign, its source and its fraction.
struct Candidate {
    present: Cond,
    negative: Cond,
    source: Bv,
    fraction: Bv,
}

impl Encoder<'_> {
    /// The value of a sum: what the summands' NaNs and infinities make of it, or else that number.
    pub fn with_specials(&self, scope: &mut Scope, rule: &Rule, values: &[Value], finite: Value) -> Value {
        let special = Cond::any(values.iter().map(|value| value.nan.or(&value.infinite)));
        let special = scope.bind_cond("special", special);
        // NaNs of overflowed products come too late where infinite operands decide before.
        let late = |value: &Value| match rule.infinite_operands_first {
            true => value.nan.and(&value.overflowed),
            false => Cond::no(),
        };
        let any_nan = Cond::any(values.iter().map(|value| value.nan.and(&late(value).not())));
        let any_nan = scope.bind_cond("any-nan", any_nan);
        let overflowed_nan = scope.bind_cond("late-nan", Cond::any(values.iter().map(late)));
        let seen = |scope: &mut Scope, name: &str, overflowed: bool, negative: bool| {
            let one = |value: &Value| {
                let sign = if negative { value.negative.clone() } else { value.negative.not() };
                let kind = if overflowed { value.overflowed.clone() } else { value.overflowed.not() };
                Cond::all([value.nan.not(), value.infinite.clone(), kind, sign])
            };
            scope.bind_cond(name, Cond::any(values.iter().map(one)))
        };
        let operands = [seen(scope, "plus-operand", false, false), seen(scope, "minus-operand", false, true)];
        let products = [seen(scope, "plus-overflow", true, false), seen(scope, "minus-overflow", true, true)];
        let no_operand = scope.bind_cond("no-operand", operands[0].or(&operands[1]).not());
        let deciding = [0, 1].map(|sign: usize| {
            let without = overflowed_nan.or(&products[sign]);
            let with = match rule.infinite_operands_first {
                true => operands[sign].clone(),
                false => operands[sign].or(&products[sign]),
            };
            let name = ["plus-decides", "minus-decides"][sign];
            scope.bind_cond(name, no_operand.either(&without, &with))
        });
        let clash = scope.bind_cond("clash", deciding[0].and(&deciding[1]));
        let is_nan = scope.bind_cond("special.nan", special.and(&any_nan.or(&clash)));
        let open = matches!(rule.normalised, Normalised::No { .. });
        let overflowed = Cond::all([special.clone(), any_nan.not(), no_operand, Cond::of(open)]);
        let (nan_negative, payload) = self.chosen_nan(scope, values, &any_nan, &clash);
        let special_negative = is_nan.either(&nan_negative, &deciding[1]);
        let generated_payload = finite.payload.clone();
        Value {
            nan: special.either(&is_nan, &finite.nan),
            infinite: special.either(&is_nan.not(), &finite.infinite),
            negative: scope.bind_cond("negative", special.either(&special_negative, &finite.negative)),
            overflowed: scope.bind_cond("overflowed", overflowed),
            payload: payload.zip(generated_payload).map(
                |((code, fraction), (other_code, other_fraction))| {
                    (special.choose(&code, &other_code), special.choose(&fraction, &other_fraction))
                },
            ),
            ..finite
        }
    }

    /// The sign and the payload of the NaN that leaves a sum.
    fn chosen_nan(
        &self,
        scope: &mut Scope,
        values: &[Value],
        any_nan: &Cond,
        clash: &Cond,
    ) -> (Cond, Option<(Bv, Bv)>) {
        let Some(bits) = self.fields.payload else { return (Cond::no(), None) };
        let generated = Candidate {
            present: clash.clone(),
            negative: Cond::no(),
            source: source(None),
            fraction: Bv::zero(bits),
        };
        // Where no summand is NaN, the one that is generated is alone.
        let candidates = values
            .iter()
            .map(|value| {
                let (code, fraction) = value.payload.clone().expect("a payload where the model has them");
                let (present, negative) = (value.nan.clone(), value.negative.clone());
                Candidate { present: present.and(any_nan), negative, source: code, fraction }
            })
            .chain([generated]);
        let (negative, code, fraction, quieted) = match &self.model.nan {
            NanRule::Merged { generated } => {
                let (negative, fraction) = self.merged(scope, candidates, *generated);
                (negative, source(Some(NanSource::Accumulator)), fraction, false)
            }
            NanRule::Propagated(rule) => {
                let (negative, code, fraction) = self.preferred(scope, candidates, rule);
                let (negative, fraction) = self.with_pattern(rule.generated, (&code, negative, fraction));
                (negative, code, fraction, rule.quieted)
            }
            NanRule::Canonical(_) | NanRule::Unknown => return (Cond::no(), self.generated()),
        };
        let fraction = if quieted {
            let quiet = Bv::constant(quiet_bit(&self.model.d).into(), bits);
            let brought = code.eq(&source(None)).not();
            brought.choose(&fraction.or(&quiet), &fraction)
        } else {
            fraction
        };
        let fraction = scope.bind("nan.fraction", fraction);
        (scope.bind_cond("nan.negative", negative), Some((source(Some(NanSource::Accumulator)), fraction)))
    }

    /// Sign and fraction of a NaN; of one that no operand brought along, those of the pattern.
    fn with_pattern(&self, pattern: u64, (code, negative, fraction): (&Bv, Cond, Bv)) -> (Cond, Bv) {
        let d = &self.model.d;
        let (own_negative, own_fraction) = match d.decode(pattern) {
            Decoded::Nan { negative, fraction } => (negative, fraction),
            _ => (false, quiet_bit(d)),
        };
        let generated = code.eq(&source(None));
        let own_fraction = Bv::constant(own_fraction.into(), fraction.width());
        (generated.either(&Cond::of(own_negative), &negative), generated.choose(&own_fraction, &fraction))
    }

    /// All NaNs in one: fractions ORed, the sign of the last.
    fn merged(
        &self,
        scope: &mut Scope,
        candidates: impl Iterator<Item = Candidate>,
        generated: u64,
    ) -> (Cond, Bv) {
        let bits = self.fields.payload.unwrap_or(1);
        let mut negative = Cond::no();
        let mut fraction = Bv::zero(bits);
        for candidate in candidates {
            let own = (&candidate.source, candidate.negative, candidate.fraction);
            let (own_negative, own_fraction) = self.with_pattern(generated, own);
            let next = candidate.present.either(&own_negative, &negative);
            negative = scope.bind_cond("merged.negative", next);
            let next = fraction.or(&candidate.present.choose(&own_fraction, &Bv::zero(bits)));
            fraction = scope.bind("merged.fraction", next);
        }
        (negative, fraction)
    }

    /// The NaN that goes first.
    fn preferred(
        &self,
        scope: &mut Scope,
        candidates: impl Iterator<Item = Candidate>,
        rule: &crate::model::tree::Propagation,
    ) -> (Cond, Bv, Bv) {
        const RANK: u32 = 3;
        let rank_of = |of: Option<NanSource>| match of {
            None if rule.generated_first => 0,
            None => 4,
            Some(source) => 1 + rule.order.iter().position(|&s| s == source).unwrap_or(3) as u128,
        };
        let constant = |rank: u128| Bv::constant(rank, RANK);
        let rank = |candidate: &Candidate| {
            let ranked = [NanSource::A, NanSource::B, NanSource::Accumulator].into_iter().fold(
                constant(rank_of(None)),
                |other, of| {
                    let is = candidate.source.eq(&source(Some(of)));
                    is.choose(&constant(rank_of(Some(of))), &other)
                },
            );
            candidate.present.choose(&ranked, &constant(7))
        };
        let mut best: Option<(Bv, Candidate)> = None;
        for candidate in candidates {
            let own_rank = scope.bind("rank", rank(&candidate));
            let Some((best_rank, other)) = best else {
                best = Some((own_rank, candidate));
                continue;
            };
            let goes_first = match rule.later_first {
                true => best_rank.ult(&own_rank).not(),
                false => own_rank.ult(&best_rank),
            };
            let takes = scope.bind_cond("takes", goes_first);
            let chosen = Candidate {
                present: Cond::yes(),
                negative: scope
                    .bind_cond("best.negative", takes.either(&candidate.negative, &other.negative)),
                source: scope.bind("best.source", takes.choose(&candidate.source, &other.source)),
                fraction: scope.bind("best.fraction", takes.choose(&candidate.fraction, &other.fraction)),
            };
            best = Some((scope.bind("best.rank", takes.choose(&own_rank, &best_rank)), chosen));
        }
        let (_, best) = best.expect("there is always the one that is generated");
        debug_assert_eq!(best.source.width(), SOURCE);
        (best.negative, best.source, best.fraction)
    }

    /// The function that makes d's bit pattern of the root's value.
    pub fn packing(&mut self, shape: &Shape) -> String {
        let d = self.model.d;
        let (fraction_bits, exponent_bits) = (d.fraction_bits, d.exponent_bits);
        let mut scope = Scope::default();
        let value = self.unpack(&mut scope, "x", shape);
        let pattern = |decoded: Decoded| Bv::constant(u128::from(d.pack(decoded)), element_width(&d));
        let signed = |scope: &mut Scope, name: &str, make: &dyn Fn(bool) -> Decoded| {
            let chosen = value.negative.choose(&pattern(make(true)), &pattern(make(false)));
            scope.bind(name, chosen)
        };
        let quiet = quiet_bit(&d);
        let nan = match &self.model.nan {
            NanRule::Canonical(bits) => {
                let all = u64::MAX >> (64 - element_width(&d));
                Bv::constant((bits & all).into(), element_width(&d))
            }
            NanRule::Unknown => pattern(Decoded::Nan { negative: false, fraction: quiet }),
            NanRule::Propagated(_) | NanRule::Merged { .. } if d.specials == Specials::Ieee => {
                let (_, fraction) = value.payload.clone().expect("a payload where the model has them");
                let top = Bv::constant((1 << exponent_bits) - 1, exponent_bits);
                let bits = value.negative.as_bit().concat(&top).concat(&fraction);
                bits.scaled_up(d.ignored_low_bits)
            }
            NanRule::Propagated(_) | NanRule::Merged { .. } => {
                signed(&mut scope, "nan", &|negative| Decoded::Nan { negative, fraction: 0 })
            }
        };
        let infinite = signed(&mut scope, "infinity", &|negative| Decoded::Infinite { negative });
        let significand = &value.magnitude;
        let is_normal = scope.bind_cond("normal", significand.bit(fraction_bits));
        let biased = value.exponent.plus(d.bias).low(exponent_bits);
        let field = match d.specials {
            Specials::PowersOfTwo => biased,
            _ => is_normal.choose(&biased, &Bv::zero(exponent_bits)),
        };
        let mut bits = field;
        if fraction_bits > 0 {
            bits = bits.concat(&significand.low(fraction_bits));
        }
        if d.signed {
            let negative = match d.has_negative_zero() {
                true => value.negative.clone(),
                false => value.negative.and(&significand.is_zero().not()),
            };
            bits = negative.as_bit().concat(&bits);
        }
        let finite = scope.bind("finite", bits.scaled_up(d.ignored_low_bits));
        let result = value.nan.choose(&nan, &value.infinite.choose(&infinite, &finite));
        let name = self.fresh(&format!("pack-{}", d.name));
        let text = body(scope, &result);
        self.define(&name, &[("x", self.width(shape))], result.width(), &text);
        self.known.push((format!("pack {}", shape.key()), name.clone(), shape.clone()));
        name
    }
}
