//! Parameter sheets: to YAML and back, what is wrong and where, and how they read.

use std::path::Path;

use crate::shapes;
use mmaprobe::device::Provenance;
use mmaprobe::model::{Model, format};
use mmaprobe::sheet::draw::draw;
use mmaprobe::sheet::ordered::Ordered;
use mmaprobe::sheet::schema::{
    Ambiguity, Cost, DeviceFacts, Distribution, Entry, Formats, NanPayloads, SCHEMA, ScaleFacts, Shape,
    Sheet, Statement, Status, Validation,
};
use mmaprobe::sheet::table::{show, show_tree};
use mmaprobe::sheet::words::describe;
use mmaprobe::sheet::{Arithmetic, parse, write};

fn entry(name: &str, model: &Model) -> Entry {
    Entry {
        name: name.into(),
        mode_of: None,
        shape: Shape { m: 16, n: 8, k: model.k },
        formats: Formats { a: model.a.format, b: model.b.format, c: model.c.format, d: model.d },
        scale: model.scale.map(ScaleFacts::from),
        status: Status::Characterized,
        algorithm: "unnamed".into(),
        summary: describe(model),
        arithmetic: Some(model.into()),
        modes: Vec::new(),
        evidence: Vec::new(),
        equivalent: Vec::new(),
        ambiguous: Vec::new(),
        disputed: Vec::new(),
        counterexample: None,
        validation: None,
        cost: None,
        notes: Vec::new(),
    }
}

fn sheet(instructions: Vec<Entry>) -> Sheet {
    Sheet {
        schema: SCHEMA.into(),
        tool: "mmaprobe 0.1.0".into(),
        device: DeviceFacts {
            name: "cpu".into(),
            description: "a CPU for tests".into(),
            properties: Ordered(vec![("microcode".into(), "0x2b000620".into())]),
        },
        provenance: Provenance::Measured,
        date: Some("2026-11-21".into()),
        absent: Vec::new(),
        instructions,
    }
}

/// Two instructions with everything that a section shows.
fn example() -> Sheet {
    let mut lanes = entry("tdpbf16ps", &shapes::lanes(32));
    lanes.evidence = vec![Statement {
        statement: "products of even and odd index are added apart".into(),
        probes: vec!["masks".into()],
        answers: 1056,
        rejected: vec!["one chain over all products".into()],
        source: None,
    }];
    lanes.validation = Some(Validation {
        dot_adds: 1_000_000,
        seed: 1,
        distributions: vec![Distribution { name: "uniform bits".into(), dot_adds: 1_000_000 }],
        mismatches: 0,
        nan_payloads: NanPayloads::Compared,
        bound: "With 95 % confidence fewer than 3 in 1,000,000 such inputs differ.".into(),
    });
    lanes.cost = Some(Cost { rounds: 9, dot_adds: 20_480 });
    let mut fused = entry("mma.m16n8k16.f32.bf16.bf16.f32", &shapes::flat(16));
    fused.status = Status::Ambiguous;
    fused.algorithm = "FDA".into();
    fused.ambiguous = vec![Ambiguity {
        statement: "floor of the largest exponent".into(),
        alternatives: vec!["-133".into(), "none".into()],
        tried: "4,096 searched inputs".into(),
    }];
    sheet(vec![lanes, fused])
}

#[test]
fn every_shape_survives_yaml() {
    for (name, model) in shapes::all() {
        model.check().unwrap();
        let text = write(&sheet(vec![entry(name, &model)]));
        let read =
            parse(&text, Path::new("x.yaml")).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        assert_eq!(write(&read), text, "{name}");
        assert_eq!(read.instructions[0].summary, describe(&model), "{name}");
        let back = Model::try_from(read.instructions[0].arithmetic.as_ref().unwrap()).unwrap();
        assert_eq!(back, model.canonical(), "{name}");
        assert_eq!(back.canonical(), back, "{name}");
    }
}

#[test]
fn canonical_models_are_the_same_function() {
    for (name, model) in shapes::all() {
        let canonical = model.canonical();
        canonical.check().unwrap();
        let mut executors = [&model, &canonical].map(|model| mmaprobe::model::Executor::new(model).unwrap());
        let mut state = 7u64;
        let mut next = move |format: &mmaprobe::model::Format| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) & format.mask()
        };
        for _ in 0..200 {
            let a: Vec<u64> = (0..model.k).map(|_| next(&model.a.format)).collect();
            let b: Vec<u64> = (0..model.k).map(|_| next(&model.b.format)).collect();
            let c = next(&model.c.format);
            let blocks = model.scale.map_or(0, |scale| model.k / scale.block);
            let scale = model.scale.map_or(format::FP32, |scale| scale.format);
            let sa: Vec<u64> = (0..blocks).map(|_| next(&scale)).collect();
            let sb: Vec<u64> = (0..blocks).map(|_| next(&scale)).collect();
            let [one, other] = &mut executors;
            assert_eq!(one.dot_add(&a, &b, c, &sa, &sb), other.dot_add(&a, &b, c, &sa, &sb), "{name}");
        }
    }
}

/// The error of the example with a piece of its text replaced.
fn error_with(old: &str, new: &str) -> String {
    let text = write(&example());
    assert!(text.contains(old), "{old}");
    let position = 1 + text[..text.find(old).unwrap()].matches('\n').count();
    let error = parse(&text.replacen(old, new, 1), Path::new("x.yaml")).unwrap_err();
    let line = error.position.unwrap().line;
    assert_eq!(error.path, Path::new("x.yaml"));
    // Counted from the line at which the replaced text begins.
    format!("{:+}: {}", line as i64 - position as i64, error.problem)
}

#[test]
fn errors_say_what_and_where() {
    for (old, new, expected) in [
        (
            "mmaprobe-sheet/1",
            "mmaprobe-sheet/9",
            "+0: the schema is `mmaprobe-sheet/9`, and this tool reads `mmaprobe-sheet/1`",
        ),
        (
            "mismatches: 0",
            "mismatches: 5",
            "+0: instruction `tdpbf16ps` is `characterized`, and 5 dot-adds of its validation mismatched",
        ),
        (
            "s3 = rounded(s2, p6)",
            "s3 = rounded(s2 p6)",
            "+0: instruction `tdpbf16ps`: step `s3 = rounded(s2 p6)`: `s2 p6` is no name; expected a letter, \
             then letters, digits and `_`",
        ),
        (
            "s3 = rounded(s2, p6)",
            "s3 = rounded(s2, p4)",
            "+0: instruction `tdpbf16ps`: step `s3 = rounded(s2, p4)`: `p4` has been added before",
        ),
        (
            "s3 = rounded(s2, p6)",
            "s3 = fused(s2, p6)",
            "+0: instruction `tdpbf16ps`: step `s3 = fused(s2, p6)`: there is no rule `fused`",
        ),
        (
            "s3 = rounded(s2, p6)",
            "s3 = rounded(s2, p6*scale[0])",
            "+0: instruction `tdpbf16ps`: step `s3 = rounded(s2, p6*scale[0])`: there is no scale[0]",
        ),
        (
            "d = rounded(c, s32)",
            "s33 = rounded(c, s32)",
            "+0: instruction `tdpbf16ps`: step `s33 = rounded(c, s32)`: the last step has to be named `d`",
        ),
        ("\n    - d = rounded(c, s32)", "", "-32: instruction `tdpbf16ps`: the steps never add c"),
        (
            "fused(p0..p15, c)",
            "fused(p0..p13, c)",
            "-36: instruction `mma.m16n8k16.f32.bf16.bf16.f32`: its arithmetic adds 14 products, and its shape says 16",
        ),
        (
            "F=24, RZ",
            "F=24 RZ",
            "+0: instructions[1].arithmetic.rules.fused.added.fused: `F=24 RZ` is no alignment; expected `F=24, RZ` or \
             `F=24, RD; RZ if e < e_max - 25`",
        ),
        (
            "F=24, RZ",
            "F=240, RZ",
            "-1: instruction `mma.m16n8k16.f32.bf16.bf16.f32`: rule `fused`: a fused sum needs an alignment, of \
             at most 64 fraction bits",
        ),
        (
            "provenance: measured",
            "provenance: rumoured",
            "+0: provenance: unknown provenance `rumoured`; expected one of: measured, recorded, simulated, \
             published",
        ),
        (
            "status: ambiguous",
            "mood: ambiguous",
            "+0: instructions[1]: unknown field `mood`, expected one of",
        ),
        (
            "F=24, RZ\n          exponents: raw",
            "F=24, RZ\n          exponents: cooked",
            "+1: instructions[1].arithmetic.rules.fused.added.exponents: unknown kind of exponents `cooked`; \
             expected one of: raw, normalised",
        ),
        (
            "a: bf16\n",
            "a: bf61\n",
            "+0: instructions[0].formats.a: unknown format `bf61`; expected one of: fp64, fp32, tf32, fp16, bf16, \
             e5m2, e4m3, e5m2fnuz, e4m3fnuz, e3m2, e2m3, e2m1, ue8m0, ue4m3",
        ),
    ] {
        let found = error_with(old, new);
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn malformed_sheets_have_an_error_with_a_line() {
    let text = write(&example());
    for (old, new) in [
        ("provenance: measured", "provenance: rumoured"),
        ("  status: characterized", "  status: fine"),
        ("  status: characterized", "  status: characterized\n  mood: fine"),
        ("  status: characterized", "  status: [characterized"),
        ("  status: characterized", "\tstatus: characterized"),
        ("    nan: unknown", "    nan:\n      generated: 7"),
        ("      rounded:\n", "      rounded:\n        added: roughly\n"),
        ("name: mma.m16n8k16.f32.bf16.bf16.f32", "name: tdpbf16ps"),
        ("  status: ambiguous", "  status: ambiguous\n  mode_of:\n    instruction: x\n    mode: y"),
        ("    m: 16", "    m: 0"),
        ("    m: 16", "    m: 99999999999"),
    ] {
        assert!(text.contains(old), "{old}");
        let error = parse(&text.replacen(old, new, 1), Path::new("x.yaml")).unwrap_err();
        assert!(error.position.is_some(), "{error}");
    }
    for text in ["", "schema: 1", "- a", "schema: mmaprobe-sheet/1"] {
        assert!(parse(text, Path::new("x.yaml")).is_err());
    }
}

#[test]
fn what_does_not_exist_cannot_be_read() {
    let error = mmaprobe::sheet::load(Path::new("no/such.yaml")).unwrap_err().to_string();
    assert!(error.starts_with("no/such.yaml: cannot be read: "), "{error}");
}

#[test]
fn yaml_stays_as_it_is() {
    let arithmetic = r"
  arithmetic:
    a: fp16
    b: fp16
    c: fp32
    product: overflows at 2^128
    rules:
      unnormalised:
        added:
          fused: F=24, RZ
          exponents: raw
          zeros: ignored
        normalised: never
        zero_signs: IEEE 754
      fused:
        added:
          fused:
          - F=31, RD
          - F=24, RD
          exponents: normalised
          zeros: ignored
        normalised:
          format: fp32
          rounding: RNE
          subnormals: kept
          overflow: infinity
        zero_signs: IEEE 754
    steps:
    - s0 = unnormalised(p0..p7)
    - d = fused(s0, c)
    d: fp32
    nan:
      generated: '0xffc00000'
      order:
      - accumulator
      - a
      - b
      later_first: true
      quieted: true
      generated_first: false
";
    let text = write(&sheet(vec![entry("x", &shapes::two_precisions(8))]));
    assert!(text.ends_with(arithmetic), "{text}");
}

#[test]
fn steps_are_legible() {
    let steps = |model: &Model| Arithmetic::from(model).steps;
    assert_eq!(
        steps(&shapes::scaled(32, 16)),
        ["s0 = exact(p0..p15)", "s1 = exact(p16..p31)", "d = fused(s0*scale[0], s1*scale[1], c)"]
    );
    assert_eq!(
        steps(&shapes::even_and_odd_dots(32)),
        [
            "s0 = unnormalised1(p0..p14 step 2)",
            "s1 = unnormalised1(p1..p15 step 2)",
            "s2 = unnormalised2(s0, s1)",
            "s3 = fused(s2, c)",
            "s4 = unnormalised1(p16..p30 step 2)",
            "s5 = unnormalised1(p17..p31 step 2)",
            "s6 = unnormalised2(s4, s5)",
            "d = fused(s6, s3)",
        ]
    );
}

#[test]
fn words() {
    assert_eq!(
        describe(&shapes::lanes(32)),
        "Products are exact. d is the rounded sum of c and s. s is the rounded sum of t₁ and t₂. Each t is a \
         chain of 16 fused multiply-adds over 16 products each (p0, p2, … p30; p1, p3, … p31), starting from +0. \
         Rounded sums and fused multiply-adds add exactly and round once, to fp32, to nearest, ties to even (RNE). \
         Subnormal operands are read as zeros of their sign. Subnormal results become zeros of their sign (tiny \
         before rounding). Overflow gives infinity. As in IEEE 754, negative zeros add up to −0, cancellation \
         gives +0. Which NaN a NaN result is, is not known."
    );
    assert_eq!(
        describe(&Model::chain_of_fma(format::FP32, format::FP32, 16)).split(". ").nth(1).unwrap(),
        "d is a chain of 16 fused multiply-adds over p0 … p15, starting from c"
    );
    assert!(describe(&shapes::even_and_odd_dots(32)).starts_with(
        "Products are exact. d is a chain of 2 fused sums, each adding its own s to the one before, starting from \
         c. Each s is the unnormalised fused sum (unnormalised2) of its own t₁ and t₂. Each t is the unnormalised \
         fused sum (unnormalised1) of 8 products each (p0, p2, … p14; p1, p3, … p15; p16, p18, … p30; p17, p19, … p31)."
    ));
    assert!(describe(&shapes::two_precisions(16)).contains(
        "Fused sums align their summands to the largest normalised exponent and keep 31 fraction bits of the \
         first, rounding toward −∞ (RD), and 24 of the others, rounding toward −∞ (RD); the sum is rounded to \
         fp32, to nearest, ties to even (RNE)."
    ));
}

#[test]
fn words_of_what_is_rare() {
    let text = describe(&shapes::many_rules());
    for words in [
        "Products are exact, but magnitudes below 2^-126 become zeros of their sign.",
        "rounding to odd (RO)",
        "the integer part has 3 bits and wraps around, but for its sign;",
        "; a sticky bit below the sum says whether alignment changed a summand",
        "Infinite a is read as NaN, infinite b is read as the largest number of its sign.",
        "The fractions of NaNs that meet are ORed, and the sign is that of the last; a NaN that no operand \
         brought along is 0x7fc00000.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn phrases_of_what_is_rare() {
    let text = write(&sheet(vec![entry("x", &shapes::many_rules())]));
    for (phrase, wrong, problem) in [
        (
            "a: tf32, infinities to NaN",
            "a: tf32, infinities to nothing",
            "unknown treatment of infinities `infinities to nothing`; expected one of: infinities kept, \
             infinities to NaN, infinities to largest",
        ),
        (
            "b: tf32, subnormals to +0, infinities to largest",
            "b: tf32, infinities to largest, subnormals to +0",
            "`subnormals to +0` is too much in `tf32, infinities to largest, subnormals to +0`; expected a \
             format, then what becomes of subnormals, then what becomes of infinities",
        ),
        (
            "product: flushed to signed zero below 2^-126",
            "product: flushed to zero below 2^-126",
            "unknown product `flushed to zero below 2^-126`; expected `exact`, `overflows at 2^128`, `flushed \
             to +0 below 2^-126`, `flushed to signed zero below 2^-126` or a rounding",
        ),
        (
            "carry: 3 bits, magnitude wraps",
            "carry: 3 bits, sign wraps",
            "`3 bits, sign wraps` is no carry; expected `3 bits, wraps`, `3 bits, magnitude wraps` or `3 bits, \
             saturates`",
        ),
        (
            "nan: merged, generated 0x7fc00000",
            "nan: merged, generated 7fc00000",
            "`7fc00000` is no bit pattern",
        ),
        ("rounding: RO\n", "rounding: RX\n", "unknown rounding mode `RX`; expected one of: RU, RD,"),
        ("sticky: true\n", "sticky: maybe\n", "invalid type"),
    ] {
        assert!(text.contains(phrase), "{phrase}: {text}");
        let error = parse(&text.replacen(phrase, wrong, 1), Path::new("x.yaml")).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[test]
fn drawings() {
    assert_eq!(
        draw(&shapes::lanes(64), 80),
        [
            "d = Σ exact → fp32 RNE",
            "├─ c",
            "└─ Σ exact → fp32 RNE",
            "   ├─ Σ exact → fp32 RNE",
            "   │  ├─ ⋮ 30 more like it: p2, p4, … p60",
            "   │  │  └─ Σ exact → fp32 RNE",
            "   │  │     ├─ +0",
            "   │  │     └─ p0",
            "   │  └─ p62",
            "   └─ ⋮ 1 more like it: p1, p3, … p63",
        ]
    );
    assert_eq!(
        draw(&shapes::scaled(64, 16), 80),
        [
            "d = Σ fused F=35 RZ → fp32 RZ",
            "├─ Σ exact, unnormalised × scale[0]",
            "│  └─ p0 … p15",
            "├─ ⋮ 3 more like it: p16 … p31 × scale[1]; p32 … p47 × scale[2]; p48 … p63 ×",
            "│  scale[3]",
            "└─ c",
        ]
    );
    assert_eq!(
        draw(&shapes::pairwise(64, 4), 80),
        [
            "d = Σ exact → fp32 RNE",
            "├─ ⋮ 14 more like it: p4 … p59",
            "│  └─ Σ exact → fp32 RNE",
            "│     ├─ c",
            "│     └─ as above: p0 … p3",
            "└─ Σ exact → fp32 RNE",
            "   ├─ Σ exact → fp32 RNE",
            "   │  └─ p60, p61",
            "   └─ ⋮ 1 more like it: p62, p63",
        ]
    );
}

#[test]
fn deep_trees_go_on_below() {
    let lines = draw(&shapes::many_rules(), 40);
    assert!(lines.iter().any(|line| line.ends_with("└─ s3 (below)")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("s3 = Σ fused F=23 RA, sticky")), "{lines:#?}");
}

fn assert_fits(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{line}");
    }
}

#[test]
fn everything_fits_80_columns() {
    for (name, model) in shapes::all() {
        assert_fits(&draw(&model, 80).join("\n"), 80);
        let lines = draw(&model, 80).len();
        assert!(lines <= 24, "{name} takes {lines} lines");
    }
    let long = "v_mfma_f32_32x32x16_fp8_fp8";
    let named = |name, status, algorithm: &str| Entry {
        status,
        algorithm: algorithm.into(),
        shape: Shape { m: 128, n: 256, k: 64 },
        validation: Some(Validation {
            dot_adds: 1_000_000_000,
            seed: u64::MAX,
            distributions: Vec::new(),
            mismatches: 123_456,
            nan_payloads: NanPayloads::NotCompared,
            bound: String::new(),
        }),
        ..entry(name, &shapes::even_and_odd_dots(64))
    };
    let sheet = sheet(vec![
        named(long, Status::ModeWithoutEffect, "CoGFDRDA"),
        named("mma.m16n8k16.f32.bf16.bf16.f32", Status::NotDeterministic, "CoGFDRDA (F = 31, 24)"),
        named("avx512bf16_vdpbf16ps_zmm", Status::Characterized, "unnamed"),
    ]);
    assert_fits(&show(&sheet, 80), 80);
    assert_fits(&show_tree(&sheet, 80), 80);
}

#[test]
fn the_table() {
    let shown = show(&example(), 80);
    let table: Vec<&str> = shown.lines().skip(6).take(7).collect();
    assert_eq!(
        table,
        [
            "╭───────────────────┬─────────┬──────────────────┬───────────────┬───────────╮",
            "│ instruction       │ m×n×k   │ formats          │ status        │ validated │",
            "├───────────────────┼─────────┼──────────────────┼───────────────┼───────────┤",
            "│ tdpbf16ps         │ 16×8×32 │ bf16·bf16 + fp32 │ characterized │ 1,000,000 │",
            "│ mma.m16n8k16.f32. │ 16×8×16 │ bf16·bf16 + fp32 │ ambiguous     │ –         │",
            "│ bf16.bf16.f32     │         │                  │ FDA           │           │",
            "╰───────────────────┴─────────┴──────────────────┴───────────────┴───────────╯",
        ]
    );
}
