//! What a value's bits mean: the record that stands for a node's value.

use super::super::bv::{Bv, Cond, Scope, sort};
use super::Encoder;
use crate::model::tree::{Added, NanRule, NanSource, Normalised, Product, ZeroTerms};
use crate::model::{Format, Model};

/// Fields that all values of a model have.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// Bits of an exponent, in two's complement.
    pub exponent: u32,
    /// The exponent of a zero that was aligned to nothing: below all others.
    pub below_all: i32,
    /// Bits of a NaN's fraction, where it matters which NaN comes out.
    pub payload: Option<u32>,
    /// Whether values carry how far a zero's exponent falls under [`ZeroTerms::CountedAsFp32`].
    pub lowered: bool,
}

impl Fields {
    pub fn of(model: &Model) -> Fields {
        let reach = |format: &Format| format.max_exponent().abs().max(format.min_quantum().abs());
        let mut most =
            reach(&model.a.format) + reach(&model.b.format) + reach(&model.c.format) + reach(&model.d);
        if let Some(scale) = &model.scale {
            // Scales may stand above scales.
            let nested = model.tree.nodes.len().min(8) as i32;
            most += 2 * reach(&scale.format) * nested;
        }
        match &model.product {
            Product::Exact => {}
            Product::Rounded(round) => most += reach(&round.format),
            Product::OverflowsAt { exponent } | Product::FlushedBelow { exponent, .. } => {
                most += exponent.abs()
            }
        }
        let mut lowered = false;
        for rule in &model.tree.rules {
            if let Added::Fused(fused) = &rule.added {
                most += fused.floor.unwrap_or(0).abs();
                lowered |= fused.zeros == ZeroTerms::CountedAsFp32;
                for alignment in &fused.alignment {
                    most +=
                        alignment.fraction_bits as i32 + alignment.far.map_or(0, |far| far.distance.abs());
                }
                most += fused.carry.map_or(0, |carry| carry.bits as i32);
            }
            match &rule.normalised {
                Normalised::To(round) => most += reach(&round.format),
                Normalised::No { exponent } => most += exponent.unwrap_or(0).abs(),
            }
        }
        // Widths of sums, which shifts are counted in; and room for differences.
        most = 4 * (most + 256 + model.k as i32);
        let bits = 32 - most.leading_zeros();
        let payload = match &model.nan {
            NanRule::Propagated(_) | NanRule::Merged { .. } => Some(model.d.fraction_bits.max(1)),
            NanRule::Canonical(_) | NanRule::Unknown => None,
        };
        Fields { exponent: bits + 2, below_all: -(1 << bits), payload, lowered }
    }
}

/// Where a magnitude's lowest bit lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lsb {
    /// That many bits below the nominal exponent.
    Below(i32),
    /// Always at this exponent.
    Constant(i32),
    /// The value says.
    Field,
}

/// What is known of a value before it is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The name of its sort.
    pub name: String,
    /// Bits of its magnitude.
    pub width: u32,
    /// Where the magnitude's lowest bit lies.
    pub lsb: Lsb,
    /// The least and the largest nominal exponent of a non-zero number; `None` if it is always zero.
    pub exponents: Option<(i32, i32)>,
    /// The same of the exponent of the magnitude's lowest bit.
    pub lsbs: Option<(i32, i32)>,
    /// The most that the lowest bit's exponent can be above the nominal one, in a non-zero number.
    pub above: i32,
}

impl Shape {
    /// What a shape is known by.
    pub fn key(&self) -> String {
        format!(
            "{}/{}/{:?}/{:?}/{:?}/{}",
            self.name, self.width, self.lsb, self.exponents, self.lsbs, self.above
        )
    }
}

/// One-bit fields, from the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    Nan,
    Infinite,
    Negative,
    /// An infinity to which a product overflowed, or a NaN of two such.
    Overflowed,
    /// A sum that was not normalised.
    Open,
}

const FLAGS: u32 = 5;
/// Bits of a NaN's source.
pub const SOURCE: u32 = 2;

/// Where a NaN comes from, in two bits.
pub fn source(source: Option<NanSource>) -> Bv {
    let code = match source {
        Some(NanSource::A) => 0,
        Some(NanSource::B) => 1,
        Some(NanSource::Accumulator) => 2,
        None => 3,
    };
    Bv::constant(code, SOURCE)
}

/// A value taken apart.
#[derive(Clone, Debug)]
pub struct Value {
    pub nan: Cond,
    pub infinite: Cond,
    pub negative: Cond,
    pub overflowed: Cond,
    pub open: Cond,
    /// A NaN's source and fraction, where they matter.
    pub payload: Option<(Bv, Bv)>,
    pub lowered: Option<Bv>,
    pub exponent: Bv,
    pub lsb: Bv,
    pub magnitude: Bv,
}

impl Encoder<'_> {
    /// Bits of a record.
    pub fn width(&self, shape: &Shape) -> u32 {
        let Fields { exponent, payload, lowered, .. } = self.fields;
        let own_lsb = if shape.lsb == Lsb::Field { exponent } else { 0 };
        let lowered = if lowered { exponent } else { 0 };
        FLAGS + payload.map_or(0, |bits| SOURCE + bits) + lowered + exponent + own_lsb + shape.width
    }

    /// A one-bit field of a record.
    pub fn bit_of(&self, shape: &Shape, record: &str, flag: Flag) -> Cond {
        Bv::new(record, self.width(shape)).bit(self.width(shape) - 1 - flag as u32)
    }

    /// Names a sort for records of that shape, once.
    pub fn named_sort(&mut self, mut shape: Shape) -> Shape {
        let key = format!("sort {}", shape.key());
        if let Some((_, known)) = self.known(&key) {
            return known;
        }
        shape.name = self.fresh(&shape.name);
        let width = self.width(&shape);
        self.text += &format!("(define-sort {} () {})\n", shape.name, sort(width));
        self.known.push((key, shape.name.clone(), shape.clone()));
        shape
    }

    /// Takes a record apart; its fields are bound as `name.field`.
    pub fn unpack(&self, scope: &mut Scope, name: &str, shape: &Shape) -> Value {
        let Fields { exponent: bits, payload, lowered, .. } = self.fields;
        let record = Bv::new(name, self.width(shape));
        let mut low = 0;
        let mut field = |scope: &mut Scope, field: &str, width: u32| {
            low += width;
            scope.bind(&format!("{name}.{field}"), record.extract(low - 1, low - width))
        };
        let magnitude = field(scope, "magnitude", shape.width);
        let own_lsb = (shape.lsb == Lsb::Field).then(|| field(scope, "lsb", bits));
        let exponent = field(scope, "exponent", bits);
        let lsb = match (shape.lsb, own_lsb) {
            (Lsb::Below(below), _) => scope.bind(&format!("{name}.lsb"), exponent.plus(-below)),
            (Lsb::Constant(at), _) => self.exponent(at),
            (Lsb::Field, own) => own.expect("a field of its own"),
        };
        let lowered = lowered.then(|| field(scope, "lowered", bits));
        let payload = payload.map(|bits| {
            let fraction = field(scope, "fraction", bits);
            (field(scope, "source", SOURCE), fraction)
        });
        let flag = |scope: &mut Scope, name_of: &str, flag: Flag| {
            scope.bind_cond(&format!("{name}.{name_of}"), self.bit_of(shape, name, flag))
        };
        Value {
            nan: flag(scope, "nan", Flag::Nan),
            infinite: flag(scope, "infinite", Flag::Infinite),
            negative: flag(scope, "negative", Flag::Negative),
            overflowed: flag(scope, "overflowed", Flag::Overflowed),
            open: flag(scope, "open", Flag::Open),
            payload,
            lowered,
            exponent,
            lsb,
            magnitude,
        }
    }

    /// Puts a value together.
    pub fn pack(&self, value: &Value, shape: &Shape) -> Bv {
        let flags = [&value.nan, &value.infinite, &value.negative, &value.overflowed, &value.open];
        let mut parts: Vec<Bv> = flags.iter().map(|flag| flag.as_bit()).collect();
        if self.fields.payload.is_some() {
            let (source, fraction) = value.payload.clone().expect("a payload where the model has them");
            parts.extend([source, fraction]);
        }
        if self.fields.lowered {
            parts.push(value.lowered.clone().unwrap_or_else(|| self.exponent(0)));
        }
        parts.push(value.exponent.clone());
        if shape.lsb == Lsb::Field {
            parts.push(value.lsb.clone());
        }
        parts.push(value.magnitude.clone());
        debug_assert_eq!(value.magnitude.width(), shape.width);
        let first = parts.remove(0);
        let record = parts.iter().fold(first, |record, part| record.concat(part));
        debug_assert_eq!(self.width(shape), record.width());
        record
    }

    /// The payload of a NaN that an operation generates.
    pub fn generated(&self) -> Option<(Bv, Bv)> {
        self.fields.payload.map(|bits| (source(None), Bv::zero(bits)))
    }

    /// What a zero that stands for nothing looks like.
    pub fn always_zero(&mut self) -> Shape {
        let shape = Shape {
            name: "Zero".into(),
            width: 4,
            lsb: Lsb::Below(0),
            exponents: None,
            lsbs: None,
            above: 0,
        };
        self.named_sort(shape)
    }

    /// A positive zero, filed below all exponents.
    pub fn zero(&self, shape: &Shape) -> Bv {
        let value = Value {
            nan: Cond::no(),
            infinite: Cond::no(),
            negative: Cond::no(),
            overflowed: Cond::no(),
            open: Cond::no(),
            payload: self.generated(),
            lowered: None,
            exponent: self.exponent(self.fields.below_all),
            lsb: self.exponent(0),
            magnitude: Bv::zero(shape.width),
        };
        self.pack(&value, shape)
    }
}
