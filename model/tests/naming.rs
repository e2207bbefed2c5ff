//! Names of trees: each algorithm's own, however it is written down; and what is not one of them.

mod published;

use mmaprobe_model::Rounding;
use mmaprobe_model::algorithms::{Algorithm, Conventions, Output, Types, chain_of_exact_sums};
use mmaprobe_model::format::{self, FP32, Format, Overflow, Subnormals, Tininess};
use mmaprobe_model::naming::{Named, name};
use mmaprobe_model::tree::{
    Added, Beyond, Carry, Exponents, InputInfinities, InputSubnormals, Model, NanRule, Node, Product,
    ZeroSigns, ZeroTerms,
};
use published::{fdrda, published};

fn check_published(change: impl Fn(&mut Model)) {
    for (algorithm, types, expected) in published() {
        let mut model = algorithm.model(&types).unwrap();
        change(&mut model);
        assert_eq!(name(&model), Named::Published(algorithm), "{types:?}");
        assert_eq!(name(&model.canonical()), Named::Published(algorithm), "canonical, {types:?}");
        assert_eq!(name(&model).to_string(), expected);
    }
}

#[test]
fn every_constructor_is_named_with_its_parameters() {
    check_published(|_| {});
}

/// Summands of one sum in another order, alignments with them; the sums stay where they are.
#[test]
fn the_order_of_summands_is_no_part_of_a_name() {
    check_published(|model| {
        let mut arity = vec![0; model.tree.rules.len()];
        for node in &mut model.tree.nodes {
            if let Node::Sum { children, rule } = node {
                children.reverse();
                arity[*rule] = children.len();
            }
        }
        for (rule, arity) in model.tree.rules.iter_mut().zip(arity) {
            if let Added::Fused(fused) = &mut rule.added {
                fused.alignment = (0..arity).rev().map(|position| *fused.alignment_of(position)).collect();
            }
        }
    });
}

#[test]
fn what_the_paper_leaves_open_is_no_part_of_a_name() {
    check_published(|model| {
        model.nan = NanRule::Canonical(0x7f);
        for rule in &mut model.tree.rules {
            rule.zero = ZeroSigns {
                negative_zeros_stay: true,
                cancellation_is_negative: true,
                underflow_keeps_sign: false,
            };
            if let Added::Fused(fused) = &mut rule.added {
                (fused.zeros, fused.floor) = (ZeroTerms::Counted, Some(-133));
            }
        }
    });
    let conventions = Conventions { zeros: ZeroTerms::SumsCounted, floor: Some(-126) };
    for (algorithm, types, _) in published() {
        assert_eq!(name(&algorithm.model_under(&types, &conventions).unwrap()), Named::Published(algorithm));
    }
}

#[test]
fn parameters_that_cannot_matter_are_no_part_of_a_name() {
    let check = |algorithm: Algorithm, factors: Format, k, change: &dyn Fn(&mut Model)| {
        let mut model = algorithm.model(&Types::plain(factors, FP32, k)).unwrap();
        change(&mut model);
        assert_eq!(name(&model), Named::Published(algorithm));
    };
    // fp16's products do not reach 2^128, and fp32 holds them.
    check(fdrda(2), format::FP16, 16, &|model| model.product = Product::Exact);
    check(fdrda(1), format::FP16, 8, &|model| {
        model.tree.rules.iter_mut().for_each(|rule| rule.infinite_operands_first = false);
    });
    check(Algorithm::Gps { group: 4, flushed: true }, format::FP16, 8, &|model| {
        model.product = Product::Exact
    });
    // Sums of fp32 numbers are exact where they are subnormal.
    check(Algorithm::Gps { group: 2, flushed: true }, format::BF16, 8, &|model| {
        let subnormals = Subnormals::Flushed { tiny: Tininess::BeforeRounding, sign_kept: true };
        model.tree.rules[0].round_to().unwrap().subnormals = subnormals;
    });
    check(Algorithm::Gps { group: 4, flushed: true }, format::FP16, 8, &|model| {
        model.tree.rules[0].round_to().unwrap().subnormals = Subnormals::Kept;
    });
    check(Algorithm::Gps { group: 2, flushed: true }, format::BF16, 8, &|model| {
        let Product::Rounded(round) = &mut model.product else { panic!("rounded products") };
        round.subnormals = Subnormals::Flushed { tiny: Tininess::AfterRounding, sign_kept: true };
    });
    // To nearest, IEEE 754 overflows to infinity.
    check(Algorithm::Sfma, FP32, 2, &|model| {
        model.tree.rules[0].round_to().unwrap().overflow = Overflow::ByRounding;
    });
    let fda = Algorithm::Fda { fraction_bits: 24, output: Output::Rz23 };
    // Beside a c near 2^128, products of fp16 numbers vanish.
    check(fda, format::FP16, 8, &|model| {
        model.tree.rules[0].round_to().unwrap().overflow = Overflow::Largest
    });
    // Nine summands below 4 need six bits.
    check(fda, format::BF16, 8, &|model| {
        fused(model, 0).carry = Some(Carry { bits: 6, beyond: Beyond::Wraps });
    });
}

fn fused(model: &mut Model, rule: usize) -> &mut mmaprobe_model::tree::Fused {
    let Added::Fused(fused) = &mut model.tree.rules[rule].added else { panic!("a fused sum") };
    fused
}

fn check_unnamed(model: &Model, expected: &str) {
    for model in [model, &model.canonical()] {
        let named = name(model);
        assert_eq!(named.to_string(), "unnamed");
        assert_eq!(named, Named::Unnamed { description: expected.to_string() });
    }
}

/// Renumbers the products.
fn reorder(model: &mut Model, order: impl Fn(usize) -> usize) {
    for node in &mut model.tree.nodes {
        if let Node::Product(k) = node {
            *k = order(*k);
        }
    }
}

#[test]
fn a_chain_in_another_order_is_not_sfma() {
    let mut model = Model::chain_of_fma(FP32, FP32, 4);
    reorder(&mut model, |k| 3 - k);
    check_unnamed(&model, "Like SFMA, but products are added in the order p3; then p2; then p1; then p0.");

    // Intel's AMX with bf16: odd elements first, subnormal numbers flushed everywhere.
    let mut model = Model::chain_of_fma(format::BF16, FP32, 2);
    reorder(&mut model, |k| 1 - k);
    for operand in [&mut model.a, &mut model.b, &mut model.c] {
        operand.subnormals = InputSubnormals::FlushedToSignedZero;
    }
    model.tree.rules[0].round_to().unwrap().subnormals =
        Subnormals::Flushed { tiny: Tininess::Delivered, sign_kept: true };
    check_unnamed(
        &model,
        "Like SFMA, but products are added in the order p1; then p0; where c is added, subnormal sums are \
         flushed to zeros of their sign; subnormal numbers of A are flushed to zeros of their sign; subnormal \
         numbers of B are flushed to zeros of their sign; subnormal numbers of c are flushed to zeros of their \
         sign.",
    );
}

#[test]
fn products_of_another_half_are_not_cofda() {
    let algorithm = Algorithm::CoFda { fraction_bits: 24, chain: 2, output: Output::Rz23 };
    let mut model = algorithm.model(&Types::plain(format::FP16, FP32, 8)).unwrap();
    reorder(&mut model, |k| k % 4 * 2 + k / 4);
    check_unnamed(
        &model,
        "Like CoFDA(F=24, chain=2), but products are added in the order p0, p2, p4, p6; then p1, p3, p5, p7.",
    );
}

#[test]
fn deviations_from_fda_are_said() {
    let fda = Algorithm::Fda { fraction_bits: 24, output: Output::Rz23 };
    let check = |change: &dyn Fn(&mut Model), expected: &str| {
        let mut model = fda.model(&Types::plain(format::BF16, FP32, 4)).unwrap();
        change(&mut model);
        check_unnamed(&model, &format!("Like FDA(F=24), but {expected}."));
    };
    check(
        &|model| fused(model, 0).exponents = Exponents::Normalised,
        "where c is added, exponents are those of leading ones",
    );
    check(
        &|model| fused(model, 0).carry = Some(Carry { bits: 3, beyond: Beyond::Saturates }),
        "where c is added, the integer part has 3 bits and saturates",
    );
    check(
        &|model| {
            let mut c = fused(model, 0).alignment[0];
            c.fraction_bits = 30;
            fused(model, 0).alignment.insert(0, c);
        },
        "where c is added, c is kept to 30 bits, RZ",
    );
    check(
        &|model| fused(model, 0).alignment[0].rounding = Rounding::Down,
        "where c is added, c is kept to 24 bits, RD; where c is added, a product is kept to 24 bits, RD",
    );
    check(
        &|model| model.tree.rules[0].round_to().unwrap().rounding = Rounding::NearestTiesToEven,
        "where c is added, sums are rounded to 23 fraction bits of fp32 (RNE)",
    );
    check(&|model| model.product = Product::OverflowsAt { exponent: 128 }, "products of 2^128 are infinite");
    check(
        &|model| model.a.subnormals = InputSubnormals::FlushedToPositiveZero,
        "subnormal numbers of A are flushed to +0",
    );
    check(&|model| model.c.infinities = InputInfinities::Nan, "infinities of c are read as NaN");
    check(
        &|model| model.product = Product::FlushedBelow { exponent: -126, sign_kept: false },
        "products below 2^-126 are flushed to +0",
    );
    check(
        &|model| fused(model, 0).sticky = true,
        "where c is added, a sticky bit says that something was lost",
    );
}

#[test]
fn a_tree_of_another_shape_is_drawn() {
    let types = Types::plain(format::FP16, FP32, 8);
    check_unnamed(
        &chain_of_exact_sums(&types, 4).unwrap(),
        "No published algorithm adds like this: (c + p0…p3) + p4…p7.",
    );
    // c added last to a chain that starts from zero.
    let mut model = Model::chain_of_fma(FP32, FP32, 2);
    model.tree.nodes = vec![
        Node::Zero,
        Node::Product(0),
        Node::Sum { children: vec![0, 1], rule: 0 },
        Node::Product(1),
        Node::Sum { children: vec![2, 3], rule: 0 },
        Node::Accumulator,
        Node::Sum { children: vec![4, 5], rule: 0 },
    ]
    .into();
    check_unnamed(&model, "No published algorithm adds like this: c + ((0 + p0) + p1).");
}
