//! What is special about a machine, for tables: a fixed list of features, each found in what the
//! machine *is*, not in how it was drawn.

use crate::format::Format;
use crate::machine::{
    Adder, Aligned, Beyond, Flush, Infinities, Machine, NanRule, Node, Output, Overflow, Product, Round,
    Rule, Subnormals, ZeroExponents, ZeroSigns,
};
use crate::rounding::Rounding;

/// The features of a machine, in the order of a table.
pub fn of(machine: &Machine) -> Vec<String> {
    let mut features = Vec::new();
    features.push(if machine.odd { "nobody would build it" } else { "plausible" }.to_string());
    let k = match machine.k {
        0..=4 => "K up to 4",
        5..=8 => "K from 5 to 8",
        9..=16 => "K from 9 to 16",
        _ => "K above 16",
    };
    features.push(k.to_string());
    features.push(format!("factors: {}", factors(machine)));
    features.push(format!("d: {}", machine.d));
    features.push(format!("tree: {}", machine.shape.kind));
    features.push(format!("order: {}", machine.shape.order));
    features.extend(TESTS.iter().filter(|(_, test)| test(machine)).map(|(name, _)| name.to_string()));
    features
}

/// The kind of factors.
fn factors(machine: &Machine) -> &'static str {
    let width = |format: &Format| 1 + format.exponent_bits + format.fraction_bits;
    match (&machine.scale, machine.a == machine.b, width(&machine.a).max(width(&machine.b))) {
        (Some(_), ..) => "with block scales",
        (None, false, _) => "mixed formats",
        (None, true, 0..=6) => "fp4 or fp6",
        (None, true, 7..=8) => "fp8",
        (None, true, 9..=16) => "fp16 or bf16",
        (None, true, 17..=19) => "tf32",
        (None, true, 20..=32) => "fp32",
        (None, true, _) => "fp64",
    }
}

type Test = fn(&Machine) -> bool;

const TESTS: [(&str, Test); 42] = [
    ("sums exact", |m| any_rule(m, |rule| rule.adder == Adder::Exact)),
    ("sums aligned", |m| any_adder(m, |_| true)),
    ("sums not normalised", |m| any_output(m, |output| matches!(output, Output::Open(_)))),
    ("filed under a fixed exponent", |m| any_output(m, |output| matches!(output, Output::Open(Some(_))))),
    ("several rules", |m| used(m).windows(2).any(|pair| pair[0] != pair[1])),
    ("F differs between summands", |m| {
        any_adder(m, |adder| adder.shifters.windows(2).any(|x| x[0].fraction_bits != x[1].fraction_bits))
    }),
    ("rounding differs between summands", |m| {
        any_adder(m, |adder| adder.shifters.windows(2).any(|x| x[0].rounding != x[1].rounding))
    }),
    ("alignment RZ", |m| any_shift(m, |rounding| rounding == Rounding::Zero)),
    ("alignment RD", |m| any_shift(m, |rounding| rounding == Rounding::Down)),
    ("alignment RU or RA", |m| any_shift(m, |rounding| matches!(rounding, Rounding::Up | Rounding::Away))),
    ("alignment to nearest", |m| {
        any_shift(m, |rounding| rounding as u8 >= Rounding::NearestUp as u8 && rounding != Rounding::Sticky)
    }),
    ("alignment with sticky bits", |m| any_shift(m, |rounding| rounding == Rounding::Sticky)),
    ("far summands rounded otherwise", |m| {
        any_adder(m, |adder| adder.shifters.iter().any(|shifter| shifter.far.is_some()))
    }),
    ("one sticky bit for a sum", |m| any_adder(m, |adder| adder.sticky)),
    ("normalised exponents", |m| any_adder(m, |adder| adder.normalised)),
    ("floor under the exponent", |m| any_adder(m, |adder| adder.floor.is_some())),
    ("zeros have exponents", |m| any_adder(m, |adder| adder.zeros != ZeroExponents::Ignored)),
    ("carry wraps", |m| any_carry(m, |beyond| beyond == Beyond::Wraps)),
    ("carry saturates", |m| any_carry(m, |beyond| beyond == Beyond::Saturates)),
    ("carry of the magnitude wraps", |m| any_carry(m, |beyond| beyond == Beyond::MagnitudeWraps)),
    ("products rounded", |m| matches!(m.product, Product::Rounded(_))),
    ("products overflow", |m| matches!(m.product, Product::OverflowsAt(_))),
    ("products flushed", |m| matches!(m.product, Product::FlushedBelow { .. })),
    ("another format between", |m| any_round(m, |round| round.format != m.d)),
    ("fewer fraction bits", |m| any_round(m, |round| round.fraction_bits < round.format.fraction_bits)),
    ("result RNE", |m| last_rounding(m) == Rounding::NearestEven),
    ("result RZ", |m| last_rounding(m) == Rounding::Zero),
    ("result RD, RU or RA", |m| matches!(last_rounding(m), Rounding::Down | Rounding::Up | Rounding::Away)),
    ("result to nearest, not RNE", |m| {
        let rounding = last_rounding(m);
        rounding as u8 >= Rounding::NearestUp as u8 && rounding != Rounding::NearestEven
    }),
    ("rounded twice", |m| any_output(m, |output| matches!(output, Output::RoundedTwice(..)))),
    ("overflow to the largest number", |m| any_round(m, |round| round.overflow != Overflow::Infinity)),
    ("subnormal factors flushed", |m| {
        m.read_a.subnormals != Flush::Never || m.read_b.subnormals != Flush::Never
    }),
    ("a and b flushed differently", |m| m.read_a.subnormals != m.read_b.subnormals),
    ("subnormal c flushed", |m| m.read_c.subnormals != Flush::Never),
    ("subnormal sums flushed", |m| any_round(m, |round| round.subnormals != Subnormals::Kept)),
    ("signs of zeros not IEEE's", |m| any_rule(m, |rule| rule.zeros != ZeroSigns::IEEE)),
    ("NaNs handed on", |m| matches!(m.nan, NanRule::HandedOn { .. })),
    ("NaNs ORed", |m| m.nan == NanRule::Ored),
    ("infinities not kept", infinities_changed),
    ("infinite operands first", |m| m.infinite_operands_first),
    ("low bits of tf32 count", |m| m.read_a.format != m.a),
    ("chain starts from +0", |m| has_zero(&m.tree)),
];

/// The rules that sums refer to, in the order of the tree.
fn used(machine: &Machine) -> Vec<usize> {
    fn visit(node: &Node, rules: &mut Vec<usize>) {
        match node {
            Node::Product(_) | Node::C | Node::Zero => {}
            Node::Scaled(child, _) => visit(child, rules),
            Node::Sum(children, rule) => {
                rules.push(*rule);
                children.iter().for_each(|child| visit(child, rules));
            }
        }
    }
    let mut rules = Vec::new();
    visit(&machine.tree, &mut rules);
    rules
}

fn any_rule(machine: &Machine, test: impl Fn(&Rule) -> bool) -> bool {
    used(machine).into_iter().any(|rule| test(&machine.rules[rule]))
}

fn any_adder(machine: &Machine, test: impl Fn(&Aligned) -> bool) -> bool {
    any_rule(machine, |rule| matches!(&rule.adder, Adder::Aligned(aligned) if test(aligned)))
}

fn any_shift(machine: &Machine, test: impl Fn(Rounding) -> bool) -> bool {
    any_adder(machine, |adder| adder.shifters.iter().any(|shifter| test(shifter.rounding)))
}

fn any_carry(machine: &Machine, test: impl Fn(Beyond) -> bool) -> bool {
    any_adder(machine, |adder| adder.carry.is_some_and(|carry| test(carry.beyond)))
}

fn any_output(machine: &Machine, test: impl Fn(&Output) -> bool) -> bool {
    any_rule(machine, |rule| test(&rule.output))
}

fn any_round(machine: &Machine, test: impl Fn(&Round) -> bool) -> bool {
    any_output(machine, |output| match output {
        Output::Open(_) => false,
        Output::Rounded(round) => test(round),
        Output::RoundedTwice(first, second) => test(first) || test(second),
    })
}

fn last_rounding(machine: &Machine) -> Rounding {
    match &machine.rules[used(machine)[0]].output {
        Output::Rounded(round) | Output::RoundedTwice(_, round) => round.rounding,
        Output::Open(_) => unreachable!("the root of a machine is rounded"),
    }
}

fn infinities_changed(machine: &Machine) -> bool {
    let readings = [&machine.read_a, &machine.read_b, &machine.read_c];
    readings.iter().any(|reading| reading.infinities != Infinities::Kept)
}

fn has_zero(node: &Node) -> bool {
    match node {
        Node::Zero => true,
        Node::Product(_) | Node::C => false,
        Node::Scaled(child, _) => has_zero(child),
        Node::Sum(children, _) => children.iter().any(has_zero),
    }
}
