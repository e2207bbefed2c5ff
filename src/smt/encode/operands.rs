//! Reading operands, forming products, and multiplying by block scales.

use super::super::bv::{Bv, Cond, Scope};
use super::layout::{Lsb, Shape, Value, source};
use super::{Encoder, body, element_width};
use crate::model::Format;
use crate::model::format::Specials;
use crate::model::tree::{InputInfinities, InputSubnormals, NanRule, NanSource, Operand, Product, ZeroTerms};

/// An element of an operand, read.
pub struct Element {
    pub nan: Cond,
    pub infinite: Cond,
    pub negative: Cond,
    /// The fraction field of a NaN.
    pub fraction: Bv,
    /// The raw exponent.
    pub exponent: Bv,
    /// The significand with its hidden bit.
    pub significand: Bv,
}

/// The top bit of the fraction field.
pub fn quiet_bit(format: &Format) -> u64 {
    if format.fraction_bits == 0 { 0 } else { 1 << (format.fraction_bits - 1) }
}

impl Encoder<'_> {
    /// Reads an element of that operand from a variable.
    fn element(&self, scope: &mut Scope, name: &str, operand: &Operand) -> Element {
        let format = &operand.format;
        let bits = Bv::new(name, element_width(format));
        let fields = format.exponent_bits + format.fraction_bits;
        let low = format.ignored_low_bits;
        let negative = match format.signed {
            true => scope.bind_cond(&format!("{name}.negative"), bits.bit(low + fields)),
            false => Cond::no(),
        };
        let fraction_bits = format.fraction_bits;
        let field = scope.bind(&format!("{name}.field"), bits.extract(low + fields - 1, low + fraction_bits));
        // Formats without a fraction have no NaN that is told by one.
        let fraction = (fraction_bits > 0)
            .then(|| scope.bind(&format!("{name}.fraction"), bits.extract(low + fraction_bits - 1, low)));
        let fraction_is_zero = fraction.as_ref().map_or(Cond::yes(), Bv::is_zero);
        let top = scope.bind_cond(&format!("{name}.top"), field.is_all_ones());
        let (nan, infinite) = match format.specials {
            Specials::Ieee => (top.and(&fraction_is_zero.not()), top.and(&fraction_is_zero)),
            Specials::AllOnesNan => {
                let ones = fraction.as_ref().map_or(Cond::yes(), Bv::is_all_ones);
                (top.and(&ones), Cond::no())
            }
            Specials::NegativeZeroNan => {
                (Cond::all([negative.clone(), field.is_zero(), fraction_is_zero]), Cond::no())
            }
            Specials::PowersOfTwo => (top, Cond::no()),
            Specials::FiniteOnly => (Cond::no(), Cond::no()),
        };
        let nan = scope.bind_cond(&format!("{name}.nan"), nan);
        let infinite = scope.bind_cond(&format!("{name}.infinite"), infinite);
        let raw = field.zero_extended(self.fields.exponent).plus(-format.bias);
        let no_fraction = || Bv::zero(1);
        if format.specials == Specials::PowersOfTwo {
            let exponent = scope.bind(&format!("{name}.exponent"), raw);
            let significand = Bv::constant(1, 1);
            return Element { nan, infinite, negative, fraction: no_fraction(), exponent, significand };
        }
        let subnormal = scope.bind_cond(&format!("{name}.subnormal"), field.is_zero());
        let lowest = self.exponent(format.min_exponent());
        let exponent = scope.bind(&format!("{name}.exponent"), subnormal.choose(&lowest, &raw));
        let hidden = subnormal.not().as_bit();
        let mut significand = fraction.as_ref().map_or(hidden.clone(), |fraction| hidden.concat(fraction));
        let mut negative = negative;
        if operand.subnormals != InputSubnormals::Kept {
            significand = subnormal.choose(&Bv::zero(significand.width()), &significand);
        }
        if operand.subnormals == InputSubnormals::FlushedToPositiveZero {
            // Zeros keep their sign: only what is flushed becomes +0.
            let is_flushed = subnormal.and(&fraction.as_ref().map_or(Cond::no(), |f| f.is_zero().not()));
            negative = scope.bind_cond(&format!("{name}.negative"), negative.and(&is_flushed.not()));
        }
        let significand = scope.bind(&format!("{name}.significand"), significand);
        let fraction = fraction.unwrap_or_else(no_fraction);
        let element = Element { nan, infinite, negative, fraction, exponent, significand };
        self.without_infinities(scope, name, operand, element)
    }

    /// What the operand's rules make of an infinity.
    fn without_infinities(
        &self,
        scope: &mut Scope,
        name: &str,
        operand: &Operand,
        element: Element,
    ) -> Element {
        let format = &operand.format;
        match operand.infinities {
            _ if !format.has_infinity() => element,
            InputInfinities::Kept => element,
            InputInfinities::Nan => {
                let quiet = Bv::constant(quiet_bit(format).into(), element.fraction.width());
                Element {
                    nan: scope.bind_cond(&format!("{name}.nan"), element.nan.or(&element.infinite)),
                    fraction: element.infinite.choose(&quiet, &element.fraction),
                    infinite: Cond::no(),
                    ..element
                }
            }
            InputInfinities::Largest => {
                let largest = Bv::constant(format.max_significand().into(), element.significand.width());
                Element {
                    exponent: element
                        .infinite
                        .choose(&self.exponent(format.max_exponent()), &element.exponent),
                    significand: element.infinite.choose(&largest, &element.significand),
                    infinite: Cond::no(),
                    ..element
                }
            }
        }
    }

    /// The fraction that a NaN of a format has in d's.
    pub fn nan_fraction(&self, from: &Format, fraction: &Bv) -> Bv {
        let bits = self.fields.payload.unwrap_or(1);
        let d = &self.model.d;
        if d.fraction_bits == 0 {
            return Bv::zero(bits);
        }
        // A format that has no fraction field has the field that all its NaNs have: none set.
        let moved = match (from.fraction_bits, d.fraction_bits) {
            (0, _) => Bv::zero(bits),
            (own, wide) if wide >= own => fraction.scaled_up(wide - own),
            (own, narrow) => fraction.extract(own - 1, own - narrow),
        };
        let quiet = Bv::constant(quiet_bit(d).into(), bits);
        moved.is_zero().choose(&quiet, &moved)
    }

    /// How far an operand's exponent falls when zeros have the exponent −126.
    fn lowered(&self, element: &Element) -> Bv {
        let zero = element.significand.is_zero();
        zero.choose(&element.exponent.plus(-ZeroTerms::FP32_EXPONENT), &self.exponent(0))
    }

    /// The function that reads c, and what it returns.
    pub fn accumulator(&mut self) -> (String, Shape) {
        if let Some(known) = self.known("accumulator") {
            return known;
        }
        let format = self.model.c.format;
        let fraction_bits = format.fraction_bits as i32;
        let range = (format.min_exponent(), format.max_exponent());
        let shape = self.named_sort(Shape {
            name: "Accumulator".into(),
            width: format.fraction_bits + 1,
            lsb: Lsb::Below(fraction_bits),
            exponents: Some(range),
            lsbs: Some((range.0 - fraction_bits, range.1 - fraction_bits)),
            above: -fraction_bits,
        });
        let mut scope = Scope::default();
        let c = self.element(&mut scope, "x", &self.model.c);
        let payload = self
            .fields
            .payload
            .map(|_| (source(Some(NanSource::Accumulator)), self.nan_fraction(&format, &c.fraction)));
        let value = Value {
            lowered: self.fields.lowered.then(|| self.lowered(&c)),
            lsb: self.exponent(0),
            nan: c.nan,
            infinite: c.infinite,
            negative: c.negative,
            overflowed: Cond::no(),
            open: Cond::no(),
            payload,
            exponent: c.exponent,
            magnitude: c.significand,
        };
        let record = self.pack(&value, &shape);
        let name = self.fresh("read-c");
        let text = body(scope, &record);
        self.define(&name, &[("x", element_width(&format))], record.width(), &text);
        self.known.push(("accumulator".into(), name.clone(), shape.clone()));
        (name, shape)
    }

    /// The function that forms a product, and what it returns.
    pub fn product(&mut self) -> (String, Shape) {
        if let Some(known) = self.known("product") {
            return known;
        }
        let model = self.model;
        let (fa, fb) = (model.a.format, model.b.format);
        let width = (fa.fraction_bits + fb.fraction_bits + 2).max(4);
        let below = (fa.fraction_bits + fb.fraction_bits) as i32;
        let range = (fa.min_exponent() + fb.min_exponent(), fa.max_exponent() + fb.max_exponent());
        let exact = Shape {
            name: "Product".into(),
            width,
            lsb: Lsb::Below(below),
            exponents: Some(range),
            lsbs: Some((range.0 - below, range.1 - below)),
            above: -below,
        };
        let mut scope = Scope::default();
        let a = self.element(&mut scope, "a", &model.a);
        let b = self.element(&mut scope, "b", &model.b);
        let negative = scope.bind_cond("negative", Cond::new(format!("(xor {} {})", a.negative, b.negative)));
        let wide = |element: &Element| element.significand.zero_extended(width);
        let magnitude = scope.bind("magnitude", wide(&a).mul(&wide(&b)));
        let exponent = scope.bind("exponent", a.exponent.add(&b.exponent));
        let finite = scope.bind_cond(
            "finite",
            Cond::any([a.nan.clone(), b.nan.clone(), a.infinite.clone(), b.infinite.clone()]).not(),
        );
        // 0 · ∞
        let zero_times_infinity = a
            .infinite
            .and(&b.infinite.not())
            .and(&b.significand.is_zero())
            .or(&b.infinite.and(&a.infinite.not()).and(&a.significand.is_zero()));
        let any_nan = scope.bind_cond("any-nan", a.nan.or(&b.nan));
        let generated = scope.bind_cond("generated", any_nan.not().and(&zero_times_infinity));
        let infinite = scope
            .bind_cond("infinite", Cond::all([any_nan.not(), generated.not(), a.infinite.or(&b.infinite)]));
        let lowered = self.fields.lowered.then(|| {
            let sum = self.lowered(&a).add(&self.lowered(&b));
            scope.bind("lowered", sum)
        });
        let nan = any_nan.or(&generated);
        let (nan_negative, payload) = self.product_nan(&mut scope, &a, &b, &any_nan);
        let exact_value = Value {
            nan: nan.clone(),
            infinite: infinite.clone(),
            negative: nan.either(&nan_negative, &negative),
            overflowed: Cond::no(),
            open: Cond::no(),
            payload,
            lowered,
            lsb: self.exponent(0),
            exponent: exponent.clone(),
            magnitude: magnitude.clone(),
        };
        let lsb = exponent.plus(-below);
        let (value, shape) = match &model.product {
            Product::Exact => (exact_value, exact),
            Product::Rounded(round) => {
                let rounded = self.rounded(&mut scope, round, &negative, &magnitude, &lsb);
                let shape = self.rounded_shape("Product", &round.format);
                let overflowed = finite.and(&rounded.infinite);
                let generated = finite.and(&rounded.nan);
                let value = Value {
                    nan: exact_value.nan.or(&generated),
                    infinite: infinite.or(&overflowed),
                    // What is generated has no sign of its own.
                    negative: finite.either(&rounded.negative.and(&generated.not()), &exact_value.negative),
                    overflowed,
                    lowered: None,
                    exponent: rounded.exponent,
                    magnitude: rounded.significand,
                    ..exact_value
                };
                (value, shape)
            }
            Product::OverflowsAt { exponent: limit } => {
                let (leading, nonzero) = self.leading(&mut scope, &magnitude, &lsb);
                let overflowed = scope.bind_cond(
                    "overflowed",
                    Cond::all([finite, nonzero, self.exponent(*limit).sle(&leading)]),
                );
                let value = Value { infinite: infinite.or(&overflowed), overflowed, ..exact_value };
                (value, exact)
            }
            Product::FlushedBelow { exponent: limit, sign_kept } => {
                let (leading, nonzero) = self.leading(&mut scope, &magnitude, &lsb);
                let flushed = scope
                    .bind_cond("flushed", Cond::all([finite, nonzero, leading.slt(&self.exponent(*limit))]));
                let value = Value {
                    magnitude: flushed.choose(&Bv::zero(width), &magnitude),
                    negative: flushed
                        .either(&exact_value.negative.and(&Cond::of(*sign_kept)), &exact_value.negative),
                    ..exact_value
                };
                (value, exact)
            }
        };
        let shape = self.named_sort(shape);
        let record = self.pack(&value, &shape);
        let name = self.fresh("product");
        let text = body(scope, &record);
        let parameters = [("a", element_width(&fa)), ("b", element_width(&fb))];
        self.define(&name, &parameters, record.width(), &text);
        self.known.push(("product".into(), name.clone(), shape.clone()));
        (name, shape)
    }

    /// The sign and the payload of a product that is NaN.
    fn product_nan(
        &self,
        scope: &mut Scope,
        a: &Element,
        b: &Element,
        any_nan: &Cond,
    ) -> (Cond, Option<(Bv, Bv)>) {
        let Some((none, zero)) = self.generated() else {
            return (Cond::no(), None);
        };
        let model = self.model;
        let fraction_a = scope.bind("a.nan-fraction", self.nan_fraction(&model.a.format, &a.fraction));
        let fraction_b = scope.bind("b.nan-fraction", self.nan_fraction(&model.b.format, &b.fraction));
        let both = a.nan.and(&b.nan);
        let (code_a, code_b) = (source(Some(NanSource::A)), source(Some(NanSource::B)));
        let (negative, code, fraction) = match &model.nan {
            NanRule::Merged { .. } => {
                // Where both are NaN, the fractions are ORed, and B's sign stays.
                let code =
                    both.choose(&source(Some(NanSource::Accumulator)), &a.nan.choose(&code_a, &code_b));
                let single = a.nan.choose(&fraction_a, &fraction_b);
                let negative = b.nan.either(&b.negative, &a.negative);
                (negative, code, both.choose(&fraction_a.or(&fraction_b), &single))
            }
            NanRule::Propagated(rule) => {
                let rank = |of: NanSource| rule.order.iter().position(|&s| s == of).unwrap_or(3);
                let (rank_a, rank_b) = (rank(NanSource::A), rank(NanSource::B));
                let b_goes_first = rank_b < rank_a || (rank_b == rank_a && rule.later_first);
                let takes_b = b.nan.and(&a.nan.not().or(&Cond::of(b_goes_first)));
                let takes_b = scope.bind_cond("takes-b", takes_b);
                (
                    takes_b.either(&b.negative, &a.negative),
                    takes_b.choose(&code_b, &code_a),
                    takes_b.choose(&fraction_b, &fraction_a),
                )
            }
            NanRule::Canonical(_) | NanRule::Unknown => (Cond::no(), none.clone(), zero.clone()),
        };
        let payload = (any_nan.choose(&code, &none), any_nan.choose(&fraction, &zero));
        (any_nan.and(&negative), Some(payload))
    }

    /// The function that multiplies a value by both scales of a block, and what it returns.
    pub fn scaled(&mut self, child: &Shape) -> (String, Shape) {
        let key = format!("scaled {}", child.key());
        if let Some(known) = self.known(&key) {
            return known;
        }
        let format = self.model.scale.expect("scaled nodes stand in models with scales").format;
        let operand = Operand::plain(format);
        let mut scope = Scope::default();
        let mut value = self.unpack(&mut scope, "x", child);
        let mut shape = child.clone();
        for name in ["sa", "sb"] {
            let scale = self.element(&mut scope, name, &operand);
            (value, shape) = self.scaled_once(&mut scope, name, value, &shape, &scale, &format);
        }
        let shape =
            self.named_sort(Shape { name: format!("{}-scaled", self.unprefixed(&child.name)), ..shape });
        let record = self.pack(&value, &shape);
        let name = self.fresh("scale");
        let text = body(scope, &record);
        let width = element_width(&format);
        self.define(&name, &[("x", self.width(child)), ("sa", width), ("sb", width)], record.width(), &text);
        self.known.push((key, name.clone(), shape.clone()));
        (name, shape)
    }

    /// A name without this encoder's prefix.
    fn unprefixed(&self, name: &str) -> String {
        name.strip_prefix(&self.prefix).unwrap_or(name).to_string()
    }

    fn scaled_once(
        &self,
        scope: &mut Scope,
        name: &str,
        value: Value,
        shape: &Shape,
        scale: &Element,
        format: &Format,
    ) -> (Value, Shape) {
        let width = shape.width + format.fraction_bits + 1;
        let fraction_bits = format.fraction_bits as i32;
        let product = value.magnitude.zero_extended(width).mul(&scale.significand.zero_extended(width));
        let is_zero = value.magnitude.is_zero();
        let scale_is_zero = scope.bind_cond(&format!("{name}.zero"), scale.significand.is_zero());
        // A scale that is NaN makes a NaN, and so do ∞ · 0 and 0 · ∞.
        let finite = value.nan.not().and(&value.infinite.not());
        let generated = Cond::any([
            scale.nan.clone(),
            value.nan.not().and(&value.infinite).and(&scale.infinite.not()).and(&scale_is_zero),
            Cond::all([finite.clone(), scale.infinite.clone(), is_zero]),
        ]);
        let generated = scope.bind_cond(&format!("{name}.generated"), generated);
        let nan = scope.bind_cond(&format!("{name}.nan-out"), generated.or(&value.nan));
        let infinite = nan.not().and(&value.infinite.or(&scale.infinite));
        let flipped = Cond::new(format!("(xor {} {})", value.negative, scale.negative));
        // A NaN that is handed on keeps its sign; one that is generated has none.
        let negative = nan.either(&value.negative.and(&generated.not()), &flipped);
        let payload = value.payload.map(|(code, fraction)| {
            let (none, zero) = self.generated().expect("there are payloads");
            (generated.choose(&none, &code), generated.choose(&zero, &fraction))
        });
        // A number that an infinite scale makes infinite has not overflowed; a NaN generated neither.
        let overflowed = value.overflowed.and(&generated.not());
        let exponent = scope.bind(&format!("{name}.sum"), value.exponent.add(&scale.exponent));
        let lsb = match shape.lsb {
            Lsb::Below(below) => Lsb::Below(below + fraction_bits),
            Lsb::Constant(_) | Lsb::Field => Lsb::Field,
        };
        let lsb_value =
            scope.bind(&format!("{name}.lsb-sum"), value.lsb.add(&scale.exponent).plus(-fraction_bits));
        let range = (format.min_exponent(), format.max_exponent());
        let moved =
            |bounds: Option<(i32, i32)>, by: i32| bounds.map(|(l, h)| (l + range.0 - by, h + range.1 - by));
        let shape = Shape {
            name: shape.name.clone(),
            width,
            lsb,
            exponents: moved(shape.exponents, 0),
            lsbs: moved(shape.lsbs, fraction_bits),
            above: shape.above - fraction_bits,
        };
        let value = Value {
            nan,
            infinite: scope.bind_cond(&format!("{name}.infinite-out"), infinite),
            negative: scope.bind_cond(&format!("{name}.negative-out"), negative),
            overflowed,
            payload,
            exponent,
            lsb: lsb_value,
            magnitude: scope.bind(&format!("{name}.product"), product),
            ..value
        };
        (value, shape)
    }
}
