//! Formats against their definitions and against the crates `half` and `float8`.

mod common;

use common::rational::{number, value};
use common::spec::{self, Kind, Read, Spec};
use mmaprobe_model::format::{self, Decoded, Format};
use num_rational::BigRational;

/// Every pattern of a narrow format; of a wide one, every exponent field with fractions of a single
/// bit and of all ones below a bit.
fn patterns(spec: &Spec) -> Vec<u64> {
    if spec.bits() <= 19 {
        return (0..1u64 << spec.bits()).map(|bits| bits << spec.ignored).collect();
    }
    let mut patterns = Vec::new();
    for neg in [false, true] {
        for field in 0..1 << spec.e {
            for bit in 0..=spec.m {
                let fraction = (1 << bit) % (1 << spec.m);
                let below = (1 << bit) - 1;
                patterns.extend([fraction, below].map(|f| spec.encode(neg, field, f)));
            }
        }
    }
    patterns
}

#[test]
fn the_table_has_every_format() {
    let names = Format::ALL.map(|format| format.name);
    assert_eq!(names, spec::ALL.map(|spec| spec.name));
    for format in Format::ALL {
        assert_eq!(Format::named(format.name), Some(format));
        assert_eq!(format.bits(), Spec::of(format.name).bits());
        assert!(format.bits() + format.ignored_low_bits <= 8 * format.bytes as u32);
    }
}

#[test]
fn every_value_decodes_by_definition_and_round_trips() {
    for format in Format::ALL {
        let spec = Spec::of(format.name);
        for bits in patterns(&spec) {
            let decoded = format.decode(bits);
            assert_eq!(format.pack(decoded), bits, "{format} {bits:#x} {decoded:?}");
            match (decoded, spec.read(bits)) {
                (Decoded::Nan { .. }, Read::Nan) => {}
                (Decoded::Infinite { negative }, Read::Inf { neg }) => assert_eq!(negative, neg),
                (Decoded::Finite { negative, significand, exponent }, Read::Num { neg, s, l, e }) => {
                    assert_eq!((negative, exponent), (neg, e), "{format} {bits:#x}");
                    let lsb = exponent - format.fraction_bits as i32;
                    assert_eq!(number(negative, significand, lsb), number(neg, s, l), "{format} {bits:#x}");
                }
                (decoded, read) => panic!("{format} {bits:#x}: {decoded:?}, not {read:?}"),
            }
        }
    }
}

/// The bits that a format does not look at change nothing.
#[test]
fn ignored_bits() {
    for format in Format::ALL {
        let spec = Spec::of(format.name);
        for bits in patterns(&spec).into_iter().step_by(7) {
            let ignored = !format.mask();
            assert_eq!(format.decode(bits | ignored), format.decode(bits), "{format} {bits:#x}");
        }
    }
    assert_eq!(format::TF32.mask(), 0xffff_e000);
    assert_eq!(format::UE4M3.mask(), 0x7f);
    // MMA-Sim paper, section IV.C: a NaN that becomes an infinity.
    assert_eq!(format::TF32.decode(0x7F80_0001), Decoded::Infinite { negative: false });
    assert_eq!(format::UE4M3.decode(0xb8), format::UE4M3.decode(0x38));
    assert_eq!(format::UE4M3.decode(0x38), Decoded::Finite { negative: false, significand: 8, exponent: 0 });
}

/// Among patterns of one sign, numbers rise with the pattern.
#[test]
fn numbers_are_ordered_as_their_patterns() {
    for format in Format::ALL {
        let spec = Spec::of(format.name);
        let mut last = None;
        let magnitudes = 1u64 << (spec.e + spec.m).min(19);
        for bits in 0..magnitudes {
            let Decoded::Finite { negative: false, significand, exponent } =
                format.decode(bits << spec.ignored)
            else {
                continue;
            };
            let this = number(false, significand, exponent - format.fraction_bits as i32);
            assert!(last.is_none_or(|last| last < this), "{format} {bits:#x}");
            last = Some(this);
        }
    }
}

#[test]
fn limits() {
    for format in Format::ALL {
        let spec = Spec::of(format.name);
        assert_eq!(format.min_exponent(), spec.emin());
        assert_eq!(format.min_quantum(), spec.emin() - spec.m as i32);
        let (s, l) = spec.max();
        assert_eq!(
            format.largest(true),
            Decoded::Finite { negative: true, significand: s, exponent: l + spec.m as i32 }
        );
        assert_eq!(format.max_significand(), s);
        assert_eq!(format.max_exponent(), l + spec.m as i32);
        if spec.bits() > 16 {
            continue;
        }
        // What the table says holds for the encodings.
        let all = patterns(&spec);
        assert_eq!(all.iter().filter_map(|&bits| value(&spec, bits)).max(), Some(number(false, s, l)));
        let reads: Vec<Read> = all.iter().map(|&bits| spec.read(bits)).collect();
        assert_eq!(format.has_nan(), reads.contains(&Read::Nan));
        assert_eq!(format.has_infinity(), reads.contains(&Read::Inf { neg: false }));
        let negative_zero = |read: &Read| matches!(read, Read::Num { neg: true, s: 0, .. });
        assert_eq!(format.has_negative_zero(), reads.iter().any(negative_zero));
        let subnormal = |read: &Read| matches!(*read, Read::Num { s, .. } if s > 0 && s >> spec.m == 0);
        assert_eq!(format.has_subnormals(), reads.iter().any(subnormal));
    }
}

fn as_f64(format: &Format, bits: u64) -> f64 {
    match format.decode(bits) {
        Decoded::Finite { negative, significand, exponent } => {
            let magnitude = significand as f64 * 2f64.powi(exponent - format.fraction_bits as i32);
            if negative { -magnitude } else { magnitude }
        }
        Decoded::Infinite { negative } => {
            if negative {
                -f64::INFINITY
            } else {
                f64::INFINITY
            }
        }
        Decoded::Nan { .. } => f64::NAN,
    }
}

#[test]
fn published_values() {
    let cases = [
        (format::E4M3, 0x7e, 448.0),
        (format::E4M3, 0xfe, -448.0),
        (format::E4M3, 0x01, 2f64.powi(-9)),
        (format::E4M3, 0x7f, f64::NAN),
        (format::E4M3, 0xff, f64::NAN),
        (format::E5M2, 0x7b, 57344.0),
        (format::E5M2, 0x7c, f64::INFINITY),
        (format::E5M2, 0x01, 2f64.powi(-16)),
        (format::E4M3FNUZ, 0x7f, 240.0),
        (format::E4M3FNUZ, 0x80, f64::NAN),
        (format::E4M3FNUZ, 0x01, 2f64.powi(-10)),
        (format::E4M3FNUZ, 0x40, 1.0),
        (format::E5M2FNUZ, 0x7f, 57344.0),
        (format::E5M2FNUZ, 0x80, f64::NAN),
        (format::E5M2FNUZ, 0x01, 2f64.powi(-17)),
        (format::E5M2FNUZ, 0x40, 1.0),
        (format::E3M2, 0x1f, 28.0),
        (format::E3M2, 0x01, 0.0625),
        (format::E2M3, 0x1f, 7.5),
        (format::E2M3, 0x01, 0.125),
        (format::E2M1, 0x7, 6.0),
        (format::E2M1, 0x1, 0.5),
        (format::E2M1, 0xf, -6.0),
        (format::UE8M0, 0x00, 2f64.powi(-127)),
        (format::UE8M0, 0xfe, 2f64.powi(127)),
        (format::UE8M0, 0xff, f64::NAN),
        (format::UE4M3, 0x7e, 448.0),
        (format::UE4M3, 0xff, f64::NAN),
    ];
    for (format, bits, expected) in cases {
        let got = as_f64(&format, bits);
        assert!(got == expected || got.is_nan() && expected.is_nan(), "{format} {bits:#x}: {got}");
    }
}

/// `half` and `float8` agree on every pattern.
#[test]
fn other_crates() {
    let same = |format: &Format, bits: u64, theirs: f64| {
        let ours = as_f64(format, bits);
        assert!(
            ours == theirs && ours.is_sign_negative() == theirs.is_sign_negative()
                || ours.is_nan() && theirs.is_nan(),
            "{format} {bits:#x}: {ours}, {theirs}"
        );
    };
    for bits in 0..=u16::MAX {
        same(&format::FP16, bits.into(), half::f16::from_bits(bits).to_f64());
        same(&format::BF16, bits.into(), half::bf16::from_bits(bits).to_f64());
    }
    for bits in 0..=u8::MAX {
        same(&format::E4M3, bits.into(), float8::F8E4M3::from_bits(bits).to_f64());
        same(&format::E5M2, bits.into(), float8::F8E5M2::from_bits(bits).to_f64());
    }
}

/// The rationals of this referee are what they claim: checked once with real fractions.
#[test]
fn the_referee_reads_fractions() {
    for spec in spec::ALL.iter().filter(|spec| spec.bits() <= 8) {
        for bits in 0..1u64 << spec.bits() {
            let Read::Num { neg, s, l, e } = spec.read(bits) else { continue };
            let one = BigRational::from_integer(1.into());
            let two = BigRational::from_integer(2.into());
            // IEEE 754-2019, 3.4: (−1)^S × 2^(E − bias) × (1 + 2^(1 − p) × T), or 2^emin × (0 + …).
            let field = bits >> spec.m & ((1 << spec.e) - 1);
            let fraction = BigRational::new((bits & ((1 << spec.m) - 1)).into(), (1u64 << spec.m).into());
            let expected = if spec.kind == Kind::Power {
                two.pow(field as i32 - 127)
            } else if field == 0 {
                two.pow(1 - spec.bias) * fraction
            } else {
                two.pow(field as i32 - spec.bias) * (&one + fraction)
            };
            let got = BigRational::from_integer(s.into()) * two.pow(l);
            assert_eq!(got, expected, "{} {bits:#x} {neg} {e}", spec.name);
        }
    }
}
