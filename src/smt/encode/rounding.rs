//! Leading ones, alignment, and rounding to a format.

use super::super::bv::{Bv, Cond, Scope};
use super::layout::{Lsb, Shape};
use super::{Encoder, body};
use crate::model::format::{Overflow, RoundTo, Specials, Subnormals, Tininess};
use crate::model::{Format, Rounding};

/// What rounding to a format gives.
pub struct Rounded {
    pub nan: Cond,
    pub infinite: Cond,
    pub negative: Cond,
    pub exponent: Bv,
    pub significand: Bv,
}

/// Whether a truncated magnitude is incremented: [`Rounding::increments`] as a condition.
pub fn increments(rounding: Rounding, negative: &Cond, odd: &Cond, half: &Cond, rest: &Cond) -> Cond {
    let inexact = half.or(rest);
    let tie = match rounding {
        Rounding::Up => return negative.not().and(&inexact),
        Rounding::Down => return negative.and(&inexact),
        Rounding::TowardZero => return Cond::no(),
        Rounding::AwayFromZero => return inexact,
        Rounding::ToOdd => return odd.not().and(&inexact),
        Rounding::NearestTiesUp => negative.not(),
        Rounding::NearestTiesDown => negative.clone(),
        Rounding::NearestTiesToZero => Cond::no(),
        Rounding::NearestTiesAway => Cond::yes(),
        Rounding::NearestTiesToEven => odd.clone(),
        Rounding::NearestTiesToOdd => odd.not(),
    };
    half.and(&rest.or(&tie))
}

impl Encoder<'_> {
    /// The function that shifts a magnitude of that width left until its top bit is set, and returns by how
    /// much, above the magnitude.
    fn normaliser(&mut self, width: u32) -> String {
        let key = format!("normalise {width}");
        if let Some((name, _)) = self.known(&key) {
            return name;
        }
        let mut scope = Scope::default();
        let mut magnitude = Bv::new("x", width);
        let mut count = Bv::zero(self.fields.exponent);
        let mut step = (width - 1).checked_ilog2().map_or(0, |log| 1u32 << log);
        while step > 0 {
            let empty = scope.bind_cond(&format!("empty{step}"), magnitude.high(step).is_zero());
            let moved = magnitude.low(width - step).scaled_up(step);
            magnitude = scope.bind(&format!("moved{step}"), empty.choose(&moved, &magnitude));
            let by = Bv::constant(step.into(), count.width());
            count = scope.bind(&format!("count{step}"), empty.choose(&count.add(&by), &count));
            step /= 2;
        }
        let name = self.fresh(&format!("normalise-{width}"));
        let result = count.concat(&magnitude);
        let text = body(scope, &result);
        self.define(&name, &[("x", width)], result.width(), &text);
        self.known.push((key, name.clone(), self.nothing()));
        name
    }

    /// A shape for functions whose results are no values.
    fn nothing(&self) -> Shape {
        Shape { name: String::new(), width: 1, lsb: Lsb::Field, exponents: None, lsbs: None, above: 0 }
    }

    /// The exponent of the leading one, which means nothing for zero; and whether there is one.
    pub fn leading(&mut self, scope: &mut Scope, magnitude: &Bv, lsb: &Bv) -> (Bv, Cond) {
        let width = magnitude.width();
        let function = self.normaliser(width);
        let bits = self.fields.exponent;
        let name = format!("{magnitude}.normalised");
        let both = scope.bind(&name, Bv::new(format!("({function} {magnitude})"), bits + width));
        let leading = lsb.plus(width as i32 - 1).sub(&both.high(bits));
        let nonzero = scope.bind_cond(&format!("{magnitude}.nonzero"), magnitude.is_zero().not());
        (scope.bind(&format!("{magnitude}.leading"), leading), nonzero)
    }

    /// What a value rounded to a format looks like.
    pub fn rounded_shape(&self, name: &str, format: &Format) -> Shape {
        let fraction_bits = format.fraction_bits as i32;
        let range = (format.min_exponent(), format.max_exponent());
        Shape {
            name: name.into(),
            width: format.fraction_bits + 1,
            lsb: Lsb::Below(fraction_bits),
            exponents: Some(range),
            lsbs: Some((range.0 - fraction_bits, range.1 - fraction_bits)),
            above: -fraction_bits,
        }
    }

    /// Rounds ±magnitude × 2^lsb to a format, by a function of its own.
    pub fn rounded(
        &mut self,
        scope: &mut Scope,
        round: &RoundTo,
        negative: &Cond,
        magnitude: &Bv,
        lsb: &Bv,
    ) -> Rounded {
        let function = self.rounder(round, magnitude.width());
        let bits = self.fields.exponent;
        let significand = round.format.fraction_bits + 1;
        let width = 3 + bits + significand;
        let call = format!("({function} {} {magnitude} {lsb})", negative.as_bit());
        let record = scope.bind("rounded", Bv::new(call, width));
        Rounded {
            nan: scope.bind_cond("rounded.nan", record.bit(width - 1)),
            infinite: scope.bind_cond("rounded.infinite", record.bit(width - 2)),
            negative: scope.bind_cond("rounded.negative", record.bit(width - 3)),
            exponent: scope.bind("rounded.exponent", record.extract(significand + bits - 1, significand)),
            significand: scope.bind("rounded.significand", record.low(significand)),
        }
    }

    /// The function that rounds a magnitude of that width to a format: see [`RoundTo::round`].
    fn rounder(&mut self, round: &RoundTo, width: u32) -> String {
        let key = format!("round {round:?} {width}");
        if let Some((name, _)) = self.known(&key) {
            return name;
        }
        let format = &round.format;
        let kept_bits = round.fraction_bits + 1;
        // The bits kept, the first one dropped, and at least one for the rest.
        let wide = width.max(kept_bits + 2);
        let normalise = self.normaliser(wide);
        let bits = self.fields.exponent;
        let mut scope = Scope::default();
        let negative = scope.bind_cond("negative", Bv::new("sign", 1).bit(0));
        let magnitude = scope.bind("wide", Bv::new("x", width).scaled_up(wide - width));
        let nonzero = scope.bind_cond("nonzero", magnitude.is_zero().not());
        let both = scope.bind("normalised", Bv::new(format!("({normalise} {magnitude})"), bits + wide));
        let lowest = width as i32 - wide as i32;
        let leading = Bv::new("lsb", bits).plus(lowest + wide as i32 - 1).sub(&both.high(bits));
        let leading = scope.bind("leading", leading);
        let normalised = both.low(wide);
        let top = scope.bind(
            "top",
            match wide - kept_bits - 1 {
                1 => normalised,
                rest => {
                    let sticky = normalised.low(rest).is_zero().not().as_bit();
                    normalised.high(kept_bits + 1).concat(&sticky)
                }
            },
        );
        let min = self.exponent(format.min_exponent());
        let below = scope.bind_cond("below-normal", leading.slt(&min));
        // Below the normal range, the grid stays where it is.
        let limit = Bv::constant(u128::from(kept_bits + 2), bits);
        let distance = scope.bind("distance", min.sub(&leading));
        let shift = scope.bind("shift", below.choose(&distance.smin(&limit), &Bv::zero(bits)));
        let shifted = scope.bind("shifted", top.lshr(&shift));
        let lost = scope.bind_cond("lost", shifted.shl(&shift).eq(&top).not());
        let rounded_up = |scope: &mut Scope, name: &str, from: &Bv, lost: &Cond| {
            let (odd, half) = (from.bit(2), from.bit(1));
            let rest = from.bit(0).or(lost);
            let increment = increments(round.rounding, &negative, &odd, &half, &rest).as_bits(kept_bits + 1);
            let kept = from.high(kept_bits).zero_extended(kept_bits + 1);
            scope.bind(name, kept.add(&increment))
        };
        let rounded = rounded_up(&mut scope, "rounded", &shifted, &lost);
        let carry = scope.bind_cond("carry", rounded.bit(kept_bits));
        let kept = carry.choose(&rounded.high(kept_bits), &rounded.low(kept_bits));
        let kept = scope.bind("kept", kept);
        let significand =
            scope.bind("significand", kept.scaled_up(format.fraction_bits - round.fraction_bits));
        let base = scope.bind("base", below.choose(&min, &leading));
        let exponent = scope.bind("exponent", carry.choose(&base.plus(1), &base));
        let tiny = match round.subnormals {
            Subnormals::Kept => Cond::no(),
            Subnormals::Flushed { tiny: Tininess::BeforeRounding, .. } => below.clone(),
            Subnormals::Flushed { tiny: Tininess::AfterRounding, .. } => {
                let unlimited = rounded_up(&mut scope, "unlimited", &top, &Cond::no());
                let just_below = leading.eq(&self.exponent(format.min_exponent() - 1));
                below.and(&just_below.not().or(&unlimited.bit(kept_bits).not()))
            }
            Subnormals::Flushed { tiny: Tininess::Delivered, .. } => below.and(&rounded.high(2).is_zero()),
        };
        let unsigned = Cond::of(!format.signed).and(&negative);
        let tiny = scope.bind_cond("tiny", nonzero.and(&tiny.or(&unsigned)));
        let max = self.exponent(format.max_exponent());
        let most = Bv::constant(format.max_significand().into(), significand.width());
        let beyond = Cond::any([
            max.slt(&leading),
            max.slt(&exponent),
            exponent.eq(&max).and(&most.ult(&significand)),
        ]);
        let overflow = scope.bind_cond("overflow", Cond::all([nonzero.clone(), tiny.not(), beyond]));
        let result = self.delivered(
            &mut scope,
            round,
            Delivered {
                negative,
                is_zero: tiny.or(&significand.is_zero()),
                tiny,
                overflow,
                exponent,
                significand,
            },
        );
        let name = self.fresh(&format!("round-{}-{}-{width}", format.name, round.rounding.abbreviation()));
        let text = body(scope, &result);
        self.define(&name, &[("sign", 1), ("x", width), ("lsb", bits)], result.width(), &text);
        self.known.push((key, name.clone(), self.nothing()));
        name
    }

    /// The result of a rounding function: overflow and zero as the format has them.
    fn delivered(&self, scope: &mut Scope, round: &RoundTo, made: Delivered) -> Bv {
        let Delivered { negative, is_zero, tiny, overflow, exponent, significand } = made;
        let format = &round.format;
        let back = match (round.overflow, round.rounding) {
            (Overflow::Infinity, _) => Cond::no(),
            (Overflow::Largest, _) | (Overflow::ByRounding, Rounding::TowardZero) => Cond::yes(),
            (Overflow::ByRounding, Rounding::Up) => negative.clone(),
            (Overflow::ByRounding, Rounding::Down) => negative.not(),
            (Overflow::ByRounding, _) => Cond::no(),
        };
        let (nan, infinite, largest) = match format.specials {
            Specials::Ieee => (Cond::no(), overflow.and(&back.not()), overflow.and(&back)),
            Specials::FiniteOnly => (Cond::no(), Cond::no(), overflow.clone()),
            _ => (overflow.and(&back.not()), Cond::no(), overflow.and(&back)),
        };
        // Back at the largest number of the grid; an overflow in a format of finite numbers alone is the
        // format's largest.
        let dropped = format.fraction_bits - round.fraction_bits;
        let all = format.max_significand();
        let on_grid = Bv::constant((all >> dropped << dropped).into(), significand.width());
        let of_format = Bv::constant(all.into(), significand.width());
        let most = back.choose(&on_grid, &of_format);
        let (min, max) = (self.exponent(format.min_exponent()), self.exponent(format.max_exponent()));
        let nothing = match format.specials {
            Specials::PowersOfTwo => Bv::constant(1, significand.width()),
            _ => Bv::zero(significand.width()),
        };
        let is_zero = scope.bind_cond("is-zero", is_zero.and(&overflow.not()));
        let sign_kept = match round.subnormals {
            Subnormals::Flushed { sign_kept, .. } => tiny.not().or(&Cond::of(sign_kept)),
            Subnormals::Kept => Cond::yes(),
        };
        let zero_sign = Cond::all([Cond::of(format.has_negative_zero()), sign_kept, negative.clone()]);
        let parts = [
            nan.as_bit(),
            infinite.as_bit(),
            is_zero.either(&zero_sign, &negative).as_bit(),
            largest.choose(&max, &is_zero.choose(&min, &exponent)),
            largest.choose(&most, &is_zero.choose(&nothing, &significand)),
        ];
        parts.into_iter().reduce(|record, part| record.concat(&part)).expect("there are parts")
    }

    /// The function that shifts a magnitude right and rounds it: one bit wider, unless it is truncated.
    pub fn aligner(&mut self, rounding: Rounding, width: u32) -> (String, u32) {
        let result_width = if rounding == Rounding::TowardZero { width } else { width + 1 };
        let key = format!("align {rounding:?} {width}");
        if let Some((name, _)) = self.known(&key) {
            return (name, result_width);
        }
        let bits = self.fields.exponent;
        let mut scope = Scope::default();
        let limit = Bv::constant(u128::from(width + 1), bits);
        let shift = scope.bind("by", Bv::new("shift", bits).smin(&limit));
        let x = Bv::new("x", width);
        let result = if rounding == Rounding::TowardZero {
            x.lshr(&shift)
        } else {
            let negative = scope.bind_cond("negative", Bv::new("sign", 1).bit(0));
            let shifted = scope.bind("shifted", x.scaled_up(width + 1).lshr(&shift));
            let kept = shifted.high(width);
            let half = scope.bind_cond("half", shifted.bit(width));
            let rest = scope.bind_cond("rest", shifted.low(width).is_zero().not());
            let increment = increments(rounding, &negative, &kept.bit(0), &half, &rest);
            kept.zero_extended(width + 1).add(&increment.as_bits(width + 1))
        };
        let name = self.fresh(&format!("align-{}-{width}", rounding.abbreviation()));
        let text = body(scope, &result);
        self.define(&name, &[("sign", 1), ("x", width), ("shift", bits)], result.width(), &text);
        self.known.push((key, name.clone(), self.nothing()));
        (name, result_width)
    }
}

/// What a rounding function has found before overflow and zero are dealt with.
struct Delivered {
    negative: Cond,
    is_zero: Cond,
    /// Flushed, or a negative number in a format without a sign.
    tiny: Cond,
    overflow: Cond,
    exponent: Bv,
    significand: Bv,
}
