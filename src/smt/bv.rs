//! Bit-vector expressions as SMT-LIB 2 text, and the definitions that they are put into.
//!
//! An expression is text and a width. What is used more than once is [bound](Scope::bind) to a name
//! first, so that texts stay short and a definition reads like a program.

use std::fmt::{self, Display, Formatter};

/// A bit-vector expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bv {
    text: String,
    width: u32,
}

/// A condition: an expression of sort Bool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cond(String);

impl Display for Bv {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Display for Cond {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Bv {
    /// A name, or any other text, of that width.
    pub fn new(text: impl Into<String>, width: u32) -> Bv {
        debug_assert!(width > 0, "SMT-LIB has no bit vectors without bits");
        Bv { text: text.into(), width }
    }

    /// An unsigned constant.
    pub fn constant(value: u128, width: u32) -> Bv {
        debug_assert!(width >= 128 || value >> width == 0, "{value} has more than {width} bits");
        match width {
            1 => Bv::new(format!("#b{value}"), 1),
            _ => Bv::new(format!("(_ bv{value} {width})"), width),
        }
    }

    /// A signed constant in two's complement.
    pub fn signed(value: i32, width: u32) -> Bv {
        let magnitude = Bv::constant(value.unsigned_abs().into(), width);
        if value < 0 { magnitude.neg() } else { magnitude }
    }

    /// All zeros.
    pub fn zero(width: u32) -> Bv {
        Bv::constant(0, width)
    }

    /// Number of bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    fn unary(&self, operation: &str) -> Bv {
        Bv::new(format!("({operation} {self})"), self.width)
    }

    fn binary(&self, operation: &str, other: &Bv) -> Bv {
        debug_assert_eq!(self.width, other.width, "{operation} of {self} and {other}");
        Bv::new(format!("({operation} {self} {other})"), self.width)
    }

    fn compare(&self, operation: &str, other: &Bv) -> Cond {
        debug_assert_eq!(self.width, other.width, "{operation} of {self} and {other}");
        Cond(format!("({operation} {self} {other})"))
    }

    /// −x.
    pub fn neg(&self) -> Bv {
        self.unary("bvneg")
    }

    /// x + y.
    pub fn add(&self, other: &Bv) -> Bv {
        self.binary("bvadd", other)
    }

    /// x + a signed constant; x itself where that is 0.
    pub fn plus(&self, constant: i32) -> Bv {
        let by = Bv::constant(constant.unsigned_abs().into(), self.width);
        match constant {
            0 => self.clone(),
            1.. => self.add(&by),
            _ => self.sub(&by),
        }
    }

    /// x − y.
    pub fn sub(&self, other: &Bv) -> Bv {
        self.binary("bvsub", other)
    }

    /// x · y.
    pub fn mul(&self, other: &Bv) -> Bv {
        self.binary("bvmul", other)
    }

    /// Bitwise or.
    pub fn or(&self, other: &Bv) -> Bv {
        self.binary("bvor", other)
    }

    /// Bitwise exclusive or.
    pub fn xor(&self, other: &Bv) -> Bv {
        self.binary("bvxor", other)
    }

    /// Shifted left by a value of any width.
    pub fn shl(&self, by: &Bv) -> Bv {
        self.binary("bvshl", &by.resized_shift(self.width))
    }

    /// Shifted right by a value of any width, zeros coming in.
    pub fn lshr(&self, by: &Bv) -> Bv {
        self.binary("bvlshr", &by.resized_shift(self.width))
    }

    /// A shift in the width of what is shifted. The caller sees to it that no bit set is dropped.
    fn resized_shift(&self, width: u32) -> Bv {
        if self.width > width { self.low(width) } else { self.zero_extended(width) }
    }

    /// Bits `high` to `low`.
    pub fn extract(&self, high: u32, low: u32) -> Bv {
        debug_assert!(low <= high && high < self.width, "bits {high} to {low} of {self}");
        if high + 1 == self.width && low == 0 {
            return self.clone();
        }
        Bv::new(format!("((_ extract {high} {low}) {self})"), high - low + 1)
    }

    /// The lowest bits.
    pub fn low(&self, width: u32) -> Bv {
        self.extract(width - 1, 0)
    }

    /// The highest bits.
    pub fn high(&self, width: u32) -> Bv {
        self.extract(self.width - 1, self.width - width)
    }

    /// This on top of the other.
    pub fn concat(&self, low: &Bv) -> Bv {
        Bv::new(format!("(concat {self} {low})"), self.width + low.width)
    }

    /// With that many zeros appended at the bottom.
    pub fn scaled_up(&self, bits: u32) -> Bv {
        if bits == 0 { self.clone() } else { self.concat(&Bv::zero(bits)) }
    }

    /// With zeros in front, in that width.
    pub fn zero_extended(&self, width: u32) -> Bv {
        match width - self.width {
            0 => self.clone(),
            more => Bv::new(format!("((_ zero_extend {more}) {self})"), width),
        }
    }

    /// With copies of the sign in front, in that width.
    pub fn sign_extended(&self, width: u32) -> Bv {
        match width - self.width {
            0 => self.clone(),
            more => Bv::new(format!("((_ sign_extend {more}) {self})"), width),
        }
    }

    /// x = y.
    pub fn eq(&self, other: &Bv) -> Cond {
        self.compare("=", other)
    }

    /// x = 0.
    pub fn is_zero(&self) -> Cond {
        self.eq(&Bv::zero(self.width))
    }

    /// Whether this bit, counted from the lowest, is set.
    pub fn bit(&self, index: u32) -> Cond {
        self.extract(index, index).eq(&Bv::constant(1, 1))
    }

    /// Whether all bits are set.
    pub fn is_all_ones(&self) -> Cond {
        self.eq(&Bv::zero(self.width).unary("bvnot"))
    }

    /// x < y, unsigned.
    pub fn ult(&self, other: &Bv) -> Cond {
        self.compare("bvult", other)
    }

    /// x < y, signed.
    pub fn slt(&self, other: &Bv) -> Cond {
        self.compare("bvslt", other)
    }

    /// x ≤ y, signed.
    pub fn sle(&self, other: &Bv) -> Cond {
        self.compare("bvsle", other)
    }

    /// The larger of two signed values; both should be names or constants.
    pub fn smax(&self, other: &Bv) -> Bv {
        self.slt(other).choose(other, self)
    }

    /// The smaller of two signed values; both should be names or constants.
    pub fn smin(&self, other: &Bv) -> Bv {
        self.slt(other).choose(self, other)
    }
}

impl Cond {
    /// A name, or any other text.
    pub fn new(text: impl Into<String>) -> Cond {
        Cond(text.into())
    }

    /// True.
    pub fn yes() -> Cond {
        Cond("true".into())
    }

    /// False.
    pub fn no() -> Cond {
        Cond("false".into())
    }

    /// One or the other.
    pub fn of(value: bool) -> Cond {
        if value { Cond::yes() } else { Cond::no() }
    }

    fn is(&self, value: bool) -> bool {
        self.0 == if value { "true" } else { "false" }
    }

    /// Not this.
    #[allow(clippy::should_implement_trait)]
    pub fn not(&self) -> Cond {
        match () {
            () if self.is(true) => Cond::no(),
            () if self.is(false) => Cond::yes(),
            () => Cond(format!("(not {self})")),
        }
    }

    /// Both.
    pub fn and(&self, other: &Cond) -> Cond {
        Cond::all([self.clone(), other.clone()])
    }

    /// Either.
    pub fn or(&self, other: &Cond) -> Cond {
        Cond::any([self.clone(), other.clone()])
    }

    /// All of them; true of none.
    pub fn all(conditions: impl IntoIterator<Item = Cond>) -> Cond {
        Cond::joined("and", conditions, true)
    }

    /// Any of them; false of none.
    pub fn any(conditions: impl IntoIterator<Item = Cond>) -> Cond {
        Cond::joined("or", conditions, false)
    }

    fn joined(operation: &str, conditions: impl IntoIterator<Item = Cond>, neutral: bool) -> Cond {
        let mut kept: Vec<String> = Vec::new();
        for condition in conditions {
            if condition.is(!neutral) {
                return Cond::of(!neutral);
            }
            if !condition.is(neutral) {
                kept.push(condition.0);
            }
        }
        match &mut kept[..] {
            [] => Cond::of(neutral),
            [one] => Cond(std::mem::take(one)),
            _ => Cond(format!("({operation} {})", kept.join(" "))),
        }
    }

    /// One of two bit vectors.
    pub fn choose(&self, yes: &Bv, no: &Bv) -> Bv {
        debug_assert_eq!(yes.width, no.width, "{self} ? {yes} : {no}");
        match () {
            () if self.is(true) || yes == no => yes.clone(),
            () if self.is(false) => no.clone(),
            () => Bv::new(format!("(ite {self} {yes} {no})"), yes.width),
        }
    }

    /// One of two conditions.
    pub fn either(&self, yes: &Cond, no: &Cond) -> Cond {
        match () {
            () if self.is(true) || yes == no => yes.clone(),
            () if self.is(false) => no.clone(),
            () => self.and(yes).or(&self.not().and(no)),
        }
    }

    /// As one bit.
    pub fn as_bit(&self) -> Bv {
        self.choose(&Bv::constant(1, 1), &Bv::constant(0, 1))
    }

    /// As one bit in that width.
    pub fn as_bits(&self, width: u32) -> Bv {
        self.choose(&Bv::constant(1, width), &Bv::zero(width))
    }
}

/// The names that a definition's body binds, one after another.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    bindings: Vec<(String, String)>,
}

impl Scope {
    /// Binds an expression to a name; names that are in use get a number appended.
    pub fn bind(&mut self, name: &str, value: Bv) -> Bv {
        if is_simple(&value.text) {
            return value;
        }
        let width = value.width;
        Bv::new(self.bound(name, value.text), width)
    }

    /// Binds a condition to a name.
    pub fn bind_cond(&mut self, name: &str, value: Cond) -> Cond {
        if is_simple(&value.0) {
            return value;
        }
        Cond(self.bound(name, value.0))
    }

    fn bound(&mut self, name: &str, text: String) -> String {
        // The same expression under the same name is the same.
        let numbered =
            |number: usize| if number == 0 { name.to_string() } else { format!("{name}.{number}") };
        let mut number = 0;
        while let Some((_, other)) = self.bindings.iter().find(|(known, _)| *known == numbered(number)) {
            if *other == text {
                return numbered(number);
            }
            number += 1;
        }
        self.bindings.push((numbered(number), text));
        numbered(number)
    }

    /// The body: every binding on a line, then the result.
    pub fn finish(self, result: &impl Display) -> String {
        let mut text = String::new();
        for (name, value) in &self.bindings {
            text += &format!("  (let (({name} {value}))\n");
        }
        text + &format!("  {result}{}", ")".repeat(self.bindings.len()))
    }
}

/// A name or a literal: nothing to share.
fn is_simple(text: &str) -> bool {
    !text.starts_with('(') || text.starts_with("(_ bv")
}

/// The name of a sort.
pub fn sort(width: u32) -> String {
    format!("(_ BitVec {width})")
}
