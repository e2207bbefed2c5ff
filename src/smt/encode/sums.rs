//! Sums: exact ones and fused ones.

use super::super::bv::{Bv, Cond, Scope};
use super::layout::{Lsb, Shape, Value};
use super::{Encoder, body};
use crate::model::tree::{Added, Beyond, Carry, Exponents, Fused, Normalised, Rule, RuleId, ZeroTerms};

/// A sum of numbers, before it is normalised.
struct Total {
    negative: Cond,
    magnitude: Bv,
    exponent: Bv,
    lsb: Bv,
    /// What is known of it if it is not normalised.
    shape: Shape,
}

impl Encoder<'_> {
    /// The function that adds values of these shapes by a rule, and what it returns.
    pub fn sum(&mut self, rule: RuleId, children: &[Shape]) -> (String, Shape) {
        let keys: Vec<String> = children.iter().map(Shape::key).collect();
        let key = format!("sum {rule} {}", keys.join(" "));
        if let Some(known) = self.known(&key) {
            return known;
        }
        let rule_name = self.rule_names[rule].clone();
        let model = self.model;
        let rule = &model.tree.rules[rule];
        let names: Vec<String> = (0..children.len()).map(|index| format!("x{index}")).collect();
        let mut scope = Scope::default();
        let values: Vec<Value> =
            names.iter().zip(children).map(|(name, shape)| self.unpack(&mut scope, name, shape)).collect();
        let total = match &rule.added {
            Added::Exact => match (&rule.normalised, children) {
                (Normalised::To(round), [_, _]) => {
                    self.sum_of_two(&mut scope, &values, children, round.fraction_bits)
                }
                _ => self.exact_sum(&mut scope, &values, children),
            },
            Added::Fused(fused) => self.fused_sum(&mut scope, fused, &values, children),
        };
        let (finite, shape) = self.normalised(&mut scope, rule, total, &values);
        let shape = self.named_sort(Shape { name: format!("Sum-{rule_name}"), ..shape });
        let value = self.with_specials(&mut scope, rule, &values, finite);
        let record = self.pack(&value, &shape);
        let name = self.fresh(&rule_name);
        let text = body(scope, &record);
        let parameters: Vec<(&str, u32)> =
            names.iter().zip(children).map(|(name, shape)| (name.as_str(), self.width(shape))).collect();
        self.define(&name, &parameters, record.width(), &text);
        self.known.push((key, name.clone(), shape.clone()));
        (name, shape)
    }

    /// The exact sum of two, as far as a rounding to so many fraction bits can tell: where one lies far
    /// below the other's last bit, any number of its sign there does as well.
    fn sum_of_two(&self, scope: &mut Scope, values: &[Value], shapes: &[Shape], kept: u32) -> Total {
        let bits = self.fields.exponent;
        let width = shapes[0].width.max(shapes[1].width);
        let most = width + kept + 4;
        let total_width = width + most + 2;
        let wide = |scope: &mut Scope, index: usize| {
            scope.bind(&format!("x{index}.wide"), values[index].magnitude.zero_extended(width))
        };
        let (x, y) = (wide(scope, 0), wide(scope, 1));
        let x_zero = scope.bind_cond("x0.zero", x.is_zero());
        let y_zero = scope.bind_cond("x1.zero", y.is_zero());
        let x_lies_higher = values[1].lsb.sle(&values[0].lsb);
        let first = scope.bind_cond("x0.is-high", y_zero.or(&x_zero.not().and(&x_lies_higher)));
        let high = scope.bind("high", first.choose(&x, &y));
        let low = scope.bind("low", first.choose(&y, &x));
        let high_lsb = scope.bind("high.lsb", first.choose(&values[0].lsb, &values[1].lsb));
        let low_lsb = scope.bind("low.lsb", first.choose(&values[1].lsb, &values[0].lsb));
        let low_zero = scope.bind_cond("low.zero", low.is_zero());
        let apart = low_zero.choose(&Bv::zero(bits), &high_lsb.sub(&low_lsb));
        let apart = scope.bind("apart", apart);
        let limit = Bv::constant(most.into(), bits);
        let far = scope.bind_cond("far", limit.slt(&apart));
        let shift = scope.bind("shift", far.choose(&limit, &apart));
        let stand_in = low_zero.not().as_bits(width);
        let low = far.choose(&stand_in, &low).zero_extended(total_width);
        let high = high.zero_extended(total_width).shl(&shift);
        let signed = |magnitude: Bv, negative: &Cond| negative.choose(&magnitude.neg(), &magnitude);
        let high = scope.bind("high.aligned", high);
        let low = scope.bind("low.aligned", low);
        let high_negative = first.either(&values[0].negative, &values[1].negative);
        let low_negative = first.either(&values[1].negative, &values[0].negative);
        let total = signed(high, &high_negative).add(&signed(low, &low_negative));
        let (negative, magnitude) = self.magnitude_of(scope, total);
        let lsb = scope.bind("total.lsb", high_lsb.sub(&shift));
        // It is going to be rounded: nobody will ask for its exponent.
        let shape = self.rounded_shape("", &self.model.d);
        Total { negative, magnitude, exponent: self.exponent(0), lsb, shape }
    }

    /// A two's complement number as sign and magnitude.
    fn magnitude_of(&self, scope: &mut Scope, total: Bv) -> (Cond, Bv) {
        let total = scope.bind("total", total);
        let negative = scope.bind_cond("total.negative", total.bit(total.width() - 1));
        let magnitude = scope.bind("total.magnitude", negative.choose(&total.neg(), &total));
        (negative, magnitude)
    }

    /// The exact sum of any number, in fixed point.
    fn exact_sum(&self, scope: &mut Scope, values: &[Value], shapes: &[Shape]) -> Total {
        let lowest = shapes.iter().filter_map(|shape| shape.lsbs).map(|(low, _)| low).min().unwrap_or(0);
        let tops =
            shapes.iter().filter_map(|shape| shape.lsbs.map(|(_, high)| high - lowest + shape.width as i32));
        let width = tops.max().unwrap_or(4) as u32 + bits_for(values.len()) + 1;
        let at = self.exponent(lowest);
        let terms: Vec<Bv> = values
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let shift = value.lsb.sub(&at);
                let fixed = value.magnitude.zero_extended(width).shl(&shift);
                let fixed = scope.bind(&format!("x{index}.fixed"), fixed);
                value.negative.choose(&fixed.neg(), &fixed)
            })
            .collect();
        let total = terms.into_iter().reduce(|sum, term| sum.add(&term)).expect("a sum has summands");
        let (negative, magnitude) = self.magnitude_of(scope, total);
        let exponents: Vec<&Bv> = values.iter().map(|value| &value.exponent).collect();
        let exponent = largest_of(scope, "largest", exponents[0].clone(), &exponents[1..]);
        let ranges = shapes.iter().filter_map(|shape| shape.exponents);
        let range = ranges.reduce(|x, y| (x.0.min(y.0), x.1.max(y.1))).unwrap_or((0, 0));
        let shape = Shape {
            name: String::new(),
            width,
            lsb: Lsb::Constant(lowest),
            exponents: Some(range),
            lsbs: Some((lowest, lowest)),
            above: lowest - range.0,
        };
        Total { negative, magnitude, exponent, lsb: at, shape }
    }

    fn fused_sum(&mut self, scope: &mut Scope, fused: &Fused, values: &[Value], shapes: &[Shape]) -> Total {
        let bits = self.fields.exponent;
        let mut exponents = Vec::new();
        let mut counted = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let zero = scope.bind_cond(&format!("x{index}.zero"), value.magnitude.is_zero());
            let mut exponent = value.exponent.clone();
            if fused.exponents == Exponents::Normalised {
                let (leading, nonzero) = self.leading(scope, &value.magnitude, &value.lsb);
                exponent = nonzero.choose(&leading, &exponent);
            }
            if fused.zeros == ZeroTerms::CountedAsFp32 {
                let lowered = value.lowered.as_ref().expect("values carry it where a rule asks");
                exponent = zero.choose(&value.exponent.sub(lowered), &exponent);
            }
            let exponent = scope.bind(&format!("x{index}.filed"), exponent);
            let counts = match fused.zeros {
                ZeroTerms::Counted | ZeroTerms::CountedAsFp32 => Cond::yes(),
                ZeroTerms::SumsCounted => zero.not().or(&value.open),
                ZeroTerms::Ignored => zero.not(),
            };
            let none = self.exponent(self.fields.below_all);
            counted.push(scope.bind(&format!("x{index}.counted"), counts.choose(&exponent, &none)));
            exponents.push(exponent);
        }
        let start = self.exponent(fused.floor.unwrap_or(self.fields.below_all));
        let counted: Vec<&Bv> = counted.iter().collect();
        let largest = largest_of(scope, "largest", start, &counted);
        let finest =
            (0..values.len()).map(|index| fused.alignment_of(index).fraction_bits).max().unwrap_or(0);
        let mut terms: Vec<(Bv, Cond)> = Vec::new();
        let mut lost = Vec::new();
        for (index, (value, shape)) in values.iter().zip(shapes).enumerate() {
            if shape.exponents.is_none() {
                continue;
            }
            let alignment = fused.alignment_of(index);
            let kept = alignment.fraction_bits as i32;
            // How far up from the largest exponent's grid a magnitude's lowest bit can lie.
            let above = match fused.exponents {
                Exponents::Raw => shape.above,
                Exponents::Normalised => 0,
            };
            let room = (above + kept).max(0);
            let prepared = scope.bind(&format!("x{index}.wide"), value.magnitude.scaled_up(room as u32));
            let shift = largest.sub(&value.lsb).plus(room - kept);
            let shift = scope.bind(&format!("x{index}.shift"), shift);
            let mut aligned = self.aligned(scope, index, alignment.rounding, value, &prepared, &shift);
            if let Some(far) = alignment.far {
                let other = self.aligned(scope, index, far.rounding, value, &prepared, &shift);
                let width = aligned.width().max(other.width());
                let is_far = exponents[index].slt(&largest.plus(-far.distance));
                let is_far = scope.bind_cond(&format!("x{index}.far"), is_far);
                aligned = is_far.choose(&other.zero_extended(width), &aligned.zero_extended(width));
                aligned = scope.bind(&format!("x{index}.aligned"), aligned);
            }
            if fused.sticky {
                let limit = Bv::constant(u128::from(prepared.width() + 1), bits);
                let by = scope.bind(&format!("x{index}.dropped"), shift.smin(&limit));
                lost.push(prepared.lshr(&by).shl(&by).eq(&prepared).not());
            }
            terms.push((aligned.scaled_up(finest - alignment.fraction_bits), value.negative.clone()));
        }
        let range = self.largest_range(fused, shapes);
        let width = terms.iter().map(|(term, _)| term.width()).max().unwrap_or(4);
        let width = width + bits_for(terms.len().max(1)) + 1;
        let signed = terms.iter().map(|(term, negative)| {
            let term = term.zero_extended(width);
            negative.choose(&term.neg(), &term)
        });
        let total = signed.reduce(|sum, term| sum.add(&term)).unwrap_or_else(|| Bv::zero(width));
        let total = scope.bind("sum", total);
        let (mut negative, mut magnitude) = match fused.carry {
            Some(carry) => self.limited(scope, total, carry, finest),
            None => self.magnitude_of(scope, total),
        };
        let mut below = finest as i32;
        if fused.sticky {
            let lost = scope.bind_cond("lost", Cond::any(lost));
            let jammed = lost.and(&magnitude.is_zero().not()).as_bit();
            magnitude = scope.bind("jammed", magnitude.concat(&jammed));
            below += 1;
            negative = scope.bind_cond("jammed.negative", negative);
        }
        let shape = Shape {
            name: String::new(),
            width: magnitude.width(),
            lsb: Lsb::Below(below),
            exponents: Some(range),
            lsbs: Some((range.0 - below, range.1 - below)),
            above: -below,
        };
        let lsb = scope.bind("total.lsb", largest.plus(-below));
        Total { negative, magnitude, exponent: largest, lsb, shape }
    }

    /// The least and the largest exponent that a fused sum which is not zero can be aligned to.
    fn largest_range(&self, fused: &Fused, shapes: &[Shape]) -> (i32, i32) {
        let ranges = shapes.iter().filter_map(|shape| {
            let (low, high) = shape.exponents?;
            Some(match fused.exponents {
                Exponents::Raw => (low, high),
                Exponents::Normalised => {
                    let (lsb_low, lsb_high) = shape.lsbs.unwrap_or((low, high));
                    (lsb_low, lsb_high + shape.width as i32 - 1)
                }
            })
        });
        let (low, high) = ranges.reduce(|x, y| (x.0.min(y.0), x.1.max(y.1))).unwrap_or((0, 0));
        let floor = fused.floor.unwrap_or(low);
        (low.max(floor), high.max(floor))
    }

    /// A prepared magnitude, aligned.
    fn aligned(
        &mut self,
        scope: &mut Scope,
        index: usize,
        rounding: crate::model::Rounding,
        value: &Value,
        prepared: &Bv,
        shift: &Bv,
    ) -> Bv {
        let (function, width) = self.aligner(rounding, prepared.width());
        let call = format!("({function} {} {prepared} {shift})", value.negative.as_bit());
        scope.bind(&format!("x{index}.aligned"), Bv::new(call, width))
    }

    /// Limits the integer part of a sum that has `fraction_bits` bits below it.
    fn limited(&self, scope: &mut Scope, total: Bv, carry: Carry, fraction_bits: u32) -> (Cond, Bv) {
        let width = total.width();
        let limit = carry.bits + fraction_bits;
        // −2^limit … 2^limit − 1 are held.
        if limit + 1 >= width {
            return self.magnitude_of(scope, total);
        }
        let held = scope.bind("held", total.low(limit + 1).sign_extended(width));
        let fits = scope.bind_cond("fits", held.eq(&total));
        match carry.beyond {
            Beyond::Wraps => self.magnitude_of(scope, held),
            Beyond::Saturates => {
                let end = Bv::constant(1, width).shl(&Bv::constant(limit.into(), width));
                let end = scope.bind("end", end);
                let negative = total.bit(width - 1);
                let at_end = negative.choose(&end.neg(), &end.plus(-1));
                self.magnitude_of(scope, fits.choose(&total, &at_end))
            }
            Beyond::MagnitudeWraps => {
                let (negative, magnitude) = self.magnitude_of(scope, total);
                let wrapped = magnitude.low(limit).zero_extended(width);
                let magnitude = scope.bind("wrapped", fits.choose(&magnitude, &wrapped));
                (negative, magnitude)
            }
        }
    }

    /// What becomes of a sum of numbers: the sign of a zero, and normalisation.
    fn normalised(
        &mut self,
        scope: &mut Scope,
        rule: &Rule,
        total: Total,
        values: &[Value],
    ) -> (Value, Shape) {
        let Total { negative, magnitude, exponent, lsb, shape } = total;
        let was_zero = scope.bind_cond("total.zero", magnitude.is_zero());
        let all_zero = Cond::all(values.iter().map(|value| value.magnitude.is_zero()));
        let all_negative = Cond::all(values.iter().map(|value| value.negative.clone()));
        let any_negative = Cond::any(values.iter().map(|value| value.negative.clone()));
        let alike = all_negative.or(&any_negative.not());
        // All zeros have the sign of the first, if that is kept; what cancels has the rule's.
        let of_zeros = all_negative.and(&Cond::of(rule.zero.negative_zeros_stay));
        let cancelled = Cond::of(rule.zero.cancellation_is_negative);
        let zero_negative = all_zero.and(&alike).either(&of_zeros, &cancelled);
        let negative = scope.bind_cond("sum.negative", was_zero.either(&zero_negative, &negative));
        let value = |negative: Cond, exponent: Bv, lsb: Bv, magnitude: Bv, open: bool| Value {
            nan: Cond::no(),
            infinite: Cond::no(),
            negative,
            overflowed: Cond::no(),
            open: Cond::of(open),
            payload: self.generated(),
            lowered: None,
            exponent,
            lsb,
            magnitude,
        };
        match &rule.normalised {
            Normalised::No { exponent: None } => (value(negative, exponent, lsb, magnitude, true), shape),
            Normalised::No { exponent: Some(filed) } => {
                let above = shape.lsbs.map_or(0, |(_, high)| high) - filed;
                let shape = Shape { lsb: Lsb::Field, exponents: Some((*filed, *filed)), above, ..shape };
                (value(negative, self.exponent(*filed), lsb, magnitude, true), shape)
            }
            Normalised::To(round) => {
                let template =
                    value(Cond::no(), self.exponent(0), self.exponent(0), magnitude.clone(), false);
                let rounded = self.rounded(scope, round, &negative, &magnitude, &lsb);
                // What rounds to zero without being zero may lose its sign.
                let vanished = rounded.significand.is_zero().and(&was_zero.not());
                let sign =
                    rounded.negative.and(&vanished.not().or(&Cond::of(rule.zero.underflow_keeps_sign)));
                let value = Value {
                    negative: sign.and(&rounded.nan.not()),
                    nan: rounded.nan,
                    infinite: rounded.infinite,
                    exponent: rounded.exponent,
                    magnitude: rounded.significand,
                    ..template
                };
                (value, self.rounded_shape("", &round.format))
            }
        }
    }
}

/// Bits by which a sum of that many can exceed its largest summand.
fn bits_for(count: usize) -> u32 {
    usize::BITS - (count - 1).leading_zeros()
}

/// The largest of these, each step bound to a name.
fn largest_of(scope: &mut Scope, name: &str, start: Bv, others: &[&Bv]) -> Bv {
    others.iter().fold(start, |largest, other| {
        let larger = largest.smax(other);
        scope.bind(name, larger)
    })
}
