//! A machine in words, for whoever looks into what an inference made of it.

use std::fmt::Write;

use crate::machine::{
    Adder, Aligned, Beyond, Flush, Infinities, Machine, NanRule, Node, Output, Overflow, Product, Reading,
    Round, Subnormals, Tiny, ZeroExponents, ZeroSigns,
};

/// All of a machine, in lines.
pub fn describe(machine: &Machine) -> String {
    let Machine { m, n, k, a, b, c, d, .. } = machine;
    let mut text = format!("m{m} n{n} k{k}, d {d} = a {a} * b {b} + c {c}");
    if let Some(scale) = &machine.scale {
        let _ = write!(text, ", scales {} per {}", scale.format, scale.block);
    }
    let odd = if machine.odd { ", nobody would build it" } else { "" };
    let _ = writeln!(text, "\n{}, products {}{odd}", machine.shape.kind, machine.shape.order);
    let _ = writeln!(text, "d = {}", tree(&machine.tree));
    for (index, rule) in machine.rules.iter().enumerate() {
        let _ = writeln!(
            text,
            "R{index}: {} -> {}{}",
            adder(&rule.adder),
            output(&rule.output),
            zeros(&rule.zeros)
        );
    }
    let _ = writeln!(text, "products: {}", product(&machine.product));
    for (name, read, declared) in
        [("a", &machine.read_a, a), ("b", &machine.read_b, b), ("c", &machine.read_c, c)]
    {
        if let Some(words) = reading(read, declared) {
            let _ = writeln!(text, "{name}: {words}");
        }
    }
    if machine.infinite_operands_first {
        text += "infinite operands decide before products that overflow\n";
    }
    let _ = writeln!(text, "NaN: {}", nan(&machine.nan));
    text
}

fn tree(node: &Node) -> String {
    match node {
        Node::Product(k) => format!("p{k}"),
        Node::C => "c".to_string(),
        Node::Zero => "+0".to_string(),
        Node::Scaled(child, block) => format!("s{block}*{}", tree(child)),
        Node::Sum(children, rule) => {
            let children: Vec<String> = children.iter().map(tree).collect();
            format!("R{rule}({})", children.join(" "))
        }
    }
}

fn adder(adder: &Adder) -> String {
    let Adder::Aligned(Aligned { shifters, normalised, floor, zeros, carry, sticky }) = adder else {
        return "exact".to_string();
    };
    let shifters: Vec<String> = shifters
        .iter()
        .map(|shifter| {
            let far = |(distance, rounding)| format!(" ({rounding} beyond {distance})");
            format!(
                "F={} {}{}",
                shifter.fraction_bits,
                shifter.rounding,
                shifter.far.map_or(String::new(), far)
            )
        })
        .collect();
    let mut text = format!("aligned {}", shifters.join(" | "));
    text += if *normalised { ", normalised exponents" } else { ", raw exponents" };
    if let Some(floor) = floor {
        let _ = write!(text, ", floor {floor}");
    }
    text += match zeros {
        ZeroExponents::Ignored => "",
        ZeroExponents::OpenSums => ", zero sums count",
        ZeroExponents::All => ", zeros count",
        ZeroExponents::AllAsFp32 => ", zeros count as 2^-126",
    };
    if let Some(carry) = carry {
        let beyond = match carry.beyond {
            Beyond::Wraps => "wraps",
            Beyond::MagnitudeWraps => "magnitude wraps",
            Beyond::Saturates => "saturates",
        };
        let _ = write!(text, ", {} carry bits, {beyond}", carry.bits);
    }
    if *sticky {
        text += ", one sticky bit";
    }
    text
}

fn output(output: &Output) -> String {
    match output {
        Output::Open(None) => "not normalised".to_string(),
        Output::Open(Some(exponent)) => format!("not normalised, filed under {exponent}"),
        Output::Rounded(only) => round(only),
        Output::RoundedTwice(first, second) => format!("{}, then {}", round(first), round(second)),
    }
}

fn round(round: &Round) -> String {
    let Round { format, fraction_bits, rounding, subnormals, overflow } = round;
    let mut text = format!("{format} {rounding}");
    if *fraction_bits != format.fraction_bits {
        let _ = write!(text, " to {fraction_bits} fraction bits");
    }
    if let Subnormals::Flushed { tiny, signed } = subnormals {
        let tiny = match tiny {
            Tiny::Before => "before rounding",
            Tiny::After => "after rounding",
            Tiny::Delivered => "as delivered",
        };
        let _ = write!(text, ", subnormal ({tiny}) to {}0", if *signed { "signed " } else { "+" });
    }
    text += match overflow {
        Overflow::Infinity => "",
        Overflow::Largest => ", overflow to largest",
        Overflow::ByMode => ", overflow by mode",
    };
    text
}

fn zeros(zeros: &ZeroSigns) -> String {
    if *zeros == ZeroSigns::IEEE {
        return String::new();
    }
    let sign = |negative| if negative { "-0" } else { "+0" };
    format!(
        "; negative zeros: {}, cancelled: {}, underflow {}",
        sign(zeros.negative_stays),
        sign(zeros.cancelled_negative),
        if zeros.underflow_signed { "signed" } else { "+0" }
    )
}

fn product(product: &Product) -> String {
    match product {
        Product::Exact => "exact".to_string(),
        Product::Rounded(rounding) => round(rounding),
        Product::OverflowsAt(exponent) => format!("exact, infinite from 2^{exponent}"),
        Product::FlushedBelow { exponent, signed } => {
            format!("exact, below 2^{exponent} a {}0", if *signed { "signed " } else { "+" })
        }
    }
}

fn reading(reading: &Reading, declared: &crate::format::Format) -> Option<String> {
    let mut words = Vec::new();
    if reading.format != *declared {
        words.push(format!("read as {}", reading.format));
    }
    match reading.subnormals {
        Flush::Never => {}
        Flush::ToPlusZero => words.push("subnormal to +0".to_string()),
        Flush::ToSignedZero => words.push("subnormal to signed 0".to_string()),
    }
    match reading.infinities {
        Infinities::Kept => {}
        Infinities::Nan => words.push("infinities are NaN".to_string()),
        Infinities::Largest => words.push("infinities are the largest number".to_string()),
    }
    (!words.is_empty()).then(|| words.join(", "))
}

fn nan(rule: &NanRule) -> String {
    match rule {
        NanRule::Canonical(bits) => format!("{bits:#x}"),
        NanRule::Ored => "fractions ORed".to_string(),
        NanRule::HandedOn { ranks: [a, b, c], last, quieted, generated_negative, generated_first } => {
            format!(
                "handed on, ranks a {a} b {b} sums {c}, {} of equals{}; generated {}{}",
                if *last { "last" } else { "first" },
                if *quieted { ", quieted" } else { "" },
                if *generated_negative { "negative" } else { "positive" },
                if *generated_first { ", first" } else { "" },
            )
        }
    }
}
