//! The formats, from their definitions.

/// Which encodings are no ordinary finite numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// IEEE 754-2019, section 3.4.
    Ieee,
    /// OCP Microscaling 1.0, section 5.3.1: E4M3 has S.1111.111 as NaN and no infinities.
    Fn,
    /// Noune et al. 2022: 0x80 is NaN; no infinities, no −0.
    Fnuz,
    /// OCP Microscaling 1.0, sections 5.3.2 and 5.3.3: numbers only.
    Finite,
    /// OCP Microscaling 1.0, section 5.4: 2^(field − 127), 0xff is NaN.
    Power,
}

#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub name: &'static str,
    pub sign: bool,
    pub e: u32,
    pub m: u32,
    pub bias: i32,
    pub kind: Kind,
    pub ignored: u32,
}

const fn spec(name: &'static str, sign: bool, e: u32, m: u32, bias: i32, kind: Kind) -> Spec {
    Spec { name, sign, e, m, bias, kind, ignored: 0 }
}

pub const ALL: [Spec; 14] = [
    spec("fp64", true, 11, 52, 1023, Kind::Ieee),
    spec("fp32", true, 8, 23, 127, Kind::Ieee),
    Spec { ignored: 13, ..spec("tf32", true, 8, 10, 127, Kind::Ieee) },
    spec("fp16", true, 5, 10, 15, Kind::Ieee),
    spec("bf16", true, 8, 7, 127, Kind::Ieee),
    spec("e5m2", true, 5, 2, 15, Kind::Ieee),
    spec("e4m3", true, 4, 3, 7, Kind::Fn),
    spec("e5m2fnuz", true, 5, 2, 16, Kind::Fnuz),
    spec("e4m3fnuz", true, 4, 3, 8, Kind::Fnuz),
    spec("e3m2", true, 3, 2, 3, Kind::Finite),
    spec("e2m3", true, 2, 3, 1, Kind::Finite),
    spec("e2m1", true, 2, 1, 1, Kind::Finite),
    spec("ue8m0", false, 8, 0, 127, Kind::Power),
    spec("ue4m3", false, 4, 3, 7, Kind::Fn),
];

/// What a bit pattern stands for. A number is ±`s` × 2^`l`; `e` is the exponent that the raw
/// representation states (that of subnormal numbers and zeros is the smallest normal one).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    Nan,
    Inf { neg: bool },
    Num { neg: bool, s: u64, l: i32, e: i32 },
}

impl Spec {
    pub fn of(name: &str) -> Spec {
        *ALL.iter().find(|spec| spec.name == name).expect("a format of the table")
    }

    /// Bits that count.
    pub fn bits(&self) -> u32 {
        self.sign as u32 + self.e + self.m
    }

    /// Exponent of the smallest normal number.
    pub fn emin(&self) -> i32 {
        if self.kind == Kind::Power { -127 } else { 1 - self.bias }
    }

    pub fn read(&self, bits: u64) -> Read {
        let bits = bits as u128 >> self.ignored;
        let fraction = (bits % (1 << self.m)) as u64;
        let field = (bits >> self.m) % (1 << self.e);
        let neg = self.sign && (bits >> (self.m + self.e)) % 2 == 1;
        let ones = (1 << self.e) - 1;
        match self.kind {
            Kind::Ieee if field == ones && fraction == 0 => return Read::Inf { neg },
            Kind::Ieee if field == ones => return Read::Nan,
            Kind::Fn if field == ones && fraction == (1 << self.m) - 1 => return Read::Nan,
            Kind::Fnuz if neg && field == 0 && fraction == 0 => return Read::Nan,
            Kind::Power if field == ones => return Read::Nan,
            Kind::Power => {
                return Read::Num { neg, s: 1, l: field as i32 - 127, e: field as i32 - 127 };
            }
            _ => {}
        }
        let e = if field == 0 { 1 - self.bias } else { field as i32 - self.bias };
        let hidden = if field == 0 { 0 } else { 1 << self.m };
        Read::Num { neg, s: hidden + fraction, l: e - self.m as i32, e }
    }

    /// Significand and exponent of its lowest bit of the largest finite number.
    pub fn max(&self) -> (u64, i32) {
        let top = match self.kind {
            Kind::Ieee | Kind::Power => (1 << self.e) - 2,
            _ => (1 << self.e) - 1,
        };
        let all_ones = (2 << self.m) - 1;
        let s = if self.kind == Kind::Fn { all_ones - 1 } else { all_ones };
        (s, top - self.bias - self.m as i32)
    }

    /// Puts sign, exponent field and fraction together.
    pub fn encode(&self, neg: bool, field: u64, fraction: u64) -> u64 {
        let sign = if self.sign { (neg as u64) << (self.e + self.m) } else { 0 };
        (sign | field << self.m | fraction) << self.ignored
    }

    pub fn infinity(&self, neg: bool) -> u64 {
        assert_eq!(self.kind, Kind::Ieee);
        self.encode(neg, (1 << self.e) - 1, 0)
    }
}
