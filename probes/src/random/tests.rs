use mmaprobe_model::exact::Term;
use mmaprobe_model::execute::Value;
use mmaprobe_model::format::{
    BF16, Decoded, E2M1, E3M2, E4M3, E4M3FNUZ, E5M2, FP16, FP32, FP64, Format, RoundTo, TF32, UE4M3, UE8M0,
};
use mmaprobe_model::tree::{Model, Node, Operand, Product, Rule, Scale, Tree};
use mmaprobe_model::{Executor, tree};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

fn signature(k: usize, ab: Format, d: Format, scale: Option<(Format, usize)>) -> Signature {
    let scale = scale.map(|(format, block)| Scale { format, block });
    Signature { k, a: ab, b: ab, c: d, d, scale }
}

fn signatures() -> Vec<Signature> {
    vec![
        signature(1, FP32, FP32, None),
        signature(1, FP64, FP64, None),
        signature(16, FP16, FP32, None),
        signature(16, FP16, FP16, None),
        signature(32, BF16, FP32, None),
        signature(8, TF32, FP32, None),
        signature(32, E4M3, FP32, None),
        signature(32, E5M2, FP16, None),
        signature(32, E4M3FNUZ, FP32, None),
        signature(64, E3M2, FP32, Some((UE8M0, 32))),
        signature(64, E2M1, FP32, Some((UE4M3, 16))),
    ]
}

/// The exact sum of everything, rounded to nearest even once.
fn correctly_rounded(signature: &Signature) -> Model {
    let mut nodes = Vec::new();
    let mut children = Vec::new();
    let (blocks, block) = signature.scale.map_or((1, signature.k), |s| (signature.scales(), s.block));
    let mut open = Rule::ieee(signature.d);
    open.normalised = tree::Normalised::No { exponent: None };
    for index in 0..blocks {
        let first = nodes.len();
        nodes.extend((index * block..(index + 1) * block).map(Node::Product));
        nodes.push(Node::Sum { children: (first..first + block).collect(), rule: 1 });
        if signature.scale.is_some() {
            nodes.push(Node::Scaled { child: nodes.len() - 1, block: index });
        }
        children.push(nodes.len() - 1);
    }
    nodes.push(Node::Accumulator);
    children.push(nodes.len() - 1);
    nodes.push(Node::Sum { children, rule: 0 });
    Model {
        k: signature.k,
        a: Operand::plain(signature.a),
        b: Operand::plain(signature.b),
        c: Operand::plain(signature.c),
        scale: signature.scale,
        product: Product::Exact,
        tree: Tree { nodes: nodes.into(), rules: vec![Rule::ieee(signature.d), open] },
        d: signature.d,
        nan: tree::NanRule::Unknown,
    }
}

/// Shares of D's elements, each in per cent.
#[derive(Debug, Default)]
struct Shares {
    nan: f64,
    infinite: f64,
    zero: f64,
    subnormal: f64,
    tie: f64,
    inexact: f64,
    cancelled: f64,
}

fn shares(distribution: Distribution, signature: &Signature) -> Shares {
    let model = correctly_rounded(signature);
    let mut open = model.clone();
    open.tree.rules[0].normalised = tree::Normalised::No { exponent: None };
    let mut executor = Executor::new(&model).unwrap();
    let (m, n, k) = if signature.k == 1 { (1, 1, 1) } else { (4, 3, signature.k) };
    let problems = 2400 / (m * n);
    let blocks = signature.scales();
    let mut generator = Generator::new(m, n, signature);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut out = Matrices::default();
    let mut shares = Shares::default();
    for _ in 0..problems {
        generator.fill(distribution, &mut rng, &mut out);
        for i in 0..m {
            for j in 0..n {
                let (a, b) = (&out.a[i * k..][..k], &out.b[j * k..][..k]);
                let (sa, sb) = (&out.sa[i * blocks..][..blocks], &out.sb[j * blocks..][..blocks]);
                let c = out.c[i * n + j];
                let one = 100.0 / (problems * m * n) as f64;
                match signature.d.decode(executor.dot_add(a, b, c, sa, sb)) {
                    Decoded::Nan { .. } => shares.nan += one,
                    Decoded::Infinite { .. } => shares.infinite += one,
                    Decoded::Finite { significand: 0, .. } => shares.zero += one,
                    Decoded::Finite { significand, .. } => {
                        shares.subnormal += f64::from(significand >> signature.d.fraction_bits == 0) * one;
                        let values = executor.evaluate(a, b, c, sa, sb);
                        // The summands of the root, which come before it.
                        let Node::Sum { children, .. } = model.tree.nodes.last().unwrap() else { panic!() };
                        let terms: Vec<Term> = children
                            .iter()
                            .map(|&child| match &values[child] {
                                Value::Finite(number) => number.term.clone(),
                                _ => panic!("a finite sum of something infinite"),
                            })
                            .collect();
                        let largest = values[..values.len() - 1]
                            .iter()
                            .filter_map(|value| match value {
                                Value::Finite(number) => number.term.leading_exponent(),
                                _ => None,
                            })
                            .max()
                            .unwrap();
                        let exact = Term::sum(&terms);
                        let Some(leading) = exact.leading_exponent() else { continue };
                        shares.cancelled += f64::from(leading <= largest - 8) * one;
                        let round = |rounding| {
                            RoundTo { rounding, ..RoundTo::nearest_even(signature.d) }.round(&exact)
                        };
                        use mmaprobe_model::Rounding::{
                            AwayFromZero, NearestTiesAway, NearestTiesToZero, TowardZero,
                        };
                        shares.inexact += f64::from(round(AwayFromZero) != round(TowardZero)) * one;
                        shares.tie += f64::from(round(NearestTiesAway) != round(NearestTiesToZero)) * one;
                    }
                }
            }
        }
    }
    shares
}

#[test]
fn distributions_are_what_they_claim_to_be() {
    for signature in signatures() {
        let reaches_subnormals = signature.a.min_quantum() + signature.b.min_quantum()
            < signature.d.min_exponent()
            || signature.scale.is_some_and(|scale| scale.format == UE8M0);
        for distribution in Distribution::ALL {
            let found = shares(distribution, &signature);
            let about =
                format!("{distribution} {}x{} to {}: {found:.1?}", signature.k, signature.a, signature.d);
            println!("{about}");
            assert!(found.inexact > 10.0 || distribution == Distribution::UniformBits, "{about}");
            match distribution {
                Distribution::UniformBits => assert!(found.nan < 25.0, "{about}"),
                Distribution::NearExponents => {
                    assert!(found.nan == 0.0 && found.infinite < 15.0 && found.inexact > 40.0, "{about}");
                }
                Distribution::Cancellation => {
                    assert!(found.nan == 0.0 && found.cancelled > 35.0 && found.zero < 35.0, "{about}");
                }
                Distribution::Ties => assert!(found.nan == 0.0 && found.tie > 6.0, "{about}"),
                Distribution::Subnormals => {
                    assert!(found.nan == 0.0 && (!reaches_subnormals || found.subnormal > 40.0), "{about}");
                }
                Distribution::Specials => {
                    assert!((2.0..40.0).contains(&found.nan) && found.infinite > 2.0, "{about}");
                    assert!(found.zero > 4.0, "{about}");
                }
                Distribution::OneSign => {
                    assert!(found.nan == 0.0 && found.infinite < 15.0 && found.zero < 15.0, "{about}");
                }
            }
        }
    }
}

#[test]
fn problems_have_the_right_size_and_fit_their_formats() {
    for signature in signatures() {
        let (m, n) = (5, 3);
        let mut generator = Generator::new(m, n, &signature);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut out = Matrices::default();
        for round in 0..600 {
            generator.fill(Distribution::ALL[round % 6], &mut rng, &mut out);
            let scale = signature.scale.map_or(signature.a, |scale| scale.format);
            for (array, count, format) in [
                (&out.a, m * signature.k, signature.a),
                (&out.b, n * signature.k, signature.b),
                (&out.c, m * n, signature.c),
                (&out.sa, m * signature.scales(), scale),
                (&out.sb, n * signature.scales(), scale),
            ] {
                assert_eq!(array.len(), count);
                let width = format.bits() + format.ignored_low_bits;
                assert!(array.iter().all(|bits| width == 64 || bits >> width == 0), "{format}");
            }
        }
    }
}

#[test]
fn every_number_of_products_and_mixed_formats_work() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for k in [1, 2, 3, 5, 31, 1024] {
        for (a, b, c, d) in [(E4M3, E5M2, FP32, FP32), (FP64, FP64, FP64, FP64), (E2M1, E3M2, FP16, FP32)] {
            for distribution in Distribution::ALL {
                let signature = Signature { k, a, b, c, d, scale: None };
                for _ in 0..20 {
                    assert_eq!(dot_add(distribution, &signature, &mut rng).b.len(), k);
                }
            }
        }
    }
}

#[test]
fn the_same_seed_draws_the_same_questions_for_ever() {
    let signature = signature(16, FP16, FP32, None);
    let mut generator = Generator::new(4, 4, &signature);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let mut out = Matrices::default();
    let mut hash = 0u64;
    for round in 0..60 {
        generator.fill(Distribution::asked_in(Edition::First)[round % 6], &mut rng, &mut out);
        for bits in out.a.iter().chain(&out.b).chain(&out.c) {
            hash = (hash ^ bits).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
        }
    }
    assert_eq!(hash, 14_645_413_866_874_837_248, "seeds in published sheets name these very questions");
}

/// How many times the power of two of the largest summand's exponent a sum is, at most, among so many questions.
fn largest_sum(distribution: Distribution, signature: &Signature, questions: usize) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
    let number = |format: &Format, bits: u64| match format.decode(bits) {
        Decoded::Finite { negative, significand, exponent } => {
            let magnitude = significand as f64 / 2f64.powi(format.fraction_bits as i32);
            (if negative { -magnitude } else { magnitude }, exponent)
        }
        _ => (0.0, i32::MIN / 4),
    };
    let sum = |question: DotAdd| {
        let product = |(&a, &b)| {
            let ((x, ex), (y, ey)) = (number(&signature.a, a), number(&signature.b, b));
            (x * y, ex + ey)
        };
        let products = question.a.iter().zip(&question.b).map(product);
        let terms: Vec<(f64, i32)> = products.chain([number(&signature.c, question.c)]).collect();
        let top = terms.iter().filter(|(x, _)| *x != 0.0).map(|(_, exponent)| *exponent).max();
        let scaled = |top: i32| terms.iter().map(|(x, exponent)| x * 2f64.powi(exponent - top)).sum::<f64>();
        top.map_or(0.0, scaled).abs()
    };
    (0..questions).map(|_| sum(dot_add(distribution, signature, &mut rng))).fold(0.0, f64::max)
}

#[test]
fn sums_of_one_sign_are_as_large_as_sums_can_be() {
    // The power of two that significands carry beyond, if they are all nearly 2 (1.875 and 1.75 in FP8) and c is, too.
    for (k, format, beyond) in [
        (2, BF16, 8.0),
        (4, FP16, 16.0),
        (8, BF16, 32.0),
        (8, TF32, 32.0),
        (16, FP16, 64.0),
        (16, E4M3, 32.0),
        (32, E4M3, 64.0),
        (32, E5M2, 64.0),
    ] {
        let signature = signature(k, format, FP32, None);
        let largest = largest_sum(Distribution::OneSign, &signature, 1000);
        assert!(largest > beyond, "{k} products of {}: {largest}", format.name);
        assert!(largest < 4.0 * k as f64 + 2.0, "{k} products of {}: {largest}", format.name);
    }
    // Which is what signs that are drawn one by one do not come to.
    let signature = signature(32, E4M3, FP32, None);
    for &distribution in Distribution::asked_in(Edition::Second) {
        assert!(largest_sum(distribution, &signature, 1000) < 64.0, "{distribution}");
    }
}

#[test]
fn names_are_found_again() {
    for distribution in Distribution::ALL {
        assert_eq!(Distribution::from_name(distribution.name()), Some(distribution));
    }
    assert_eq!(Distribution::from_name("normal"), None);
}

/// Nanoseconds that this thread has run: other programs that run beside it do not count.
fn processor_time() -> f64 {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    spent.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok()).expect("nanoseconds")
}

/// `cargo test --release -p mmaprobe-probes generator_cost -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn generator_cost() {
    for (m, n, signature) in [
        (1, 1, signature(1, FP32, FP32, None)),
        (16, 8, signature(16, FP16, FP32, None)),
        (16, 16, signature(32, BF16, FP32, None)),
    ] {
        for distribution in Distribution::ALL {
            let mut generator = Generator::new(m, n, &signature);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
            let mut out = Matrices::default();
            let problems = 2_000_000 / (m * n);
            let start = processor_time();
            for _ in 0..problems {
                generator.fill(distribution, &mut rng, &mut out);
                std::hint::black_box(&out);
            }
            let elements = problems * (out.a.len() + out.b.len() + out.c.len());
            let each = (processor_time() - start) / elements as f64;
            println!("{m}x{n}x{} {} {distribution:15} {each:6.2} ns an element", signature.k, signature.a);
        }
    }
}
