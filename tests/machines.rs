//! Random machines written down as sum trees: two executors that share no code agree bit for bit.
//!
//! What a machine of `mmaprobe-machines` can do and a [`Model`] cannot say would show here first: the
//! translation has no case that it leaves out.

use mmaprobe::model::format::{Overflow, RoundTo, Subnormals, Tininess};
use mmaprobe::model::tree::{
    Added, Alignment, Beyond, Carry, Exponents, Far, Fused, InputInfinities, InputSubnormals, NanRule,
    NanSource, Node, NodeId, Normalised, Operand, Product, Propagation, Rule, RuleId, Scale, Tree, ZeroSigns,
    ZeroTerms,
};
use mmaprobe::model::{Executor, Format, Model, Rounding};
use mmaprobe_machines::generate::{self, Dice};
use mmaprobe_machines::machine as hw;
use mmaprobe_machines::rounding::Rounding as HwRounding;
use mmaprobe_machines::{Evaluator, Machine};

/// The sum tree of a machine.
fn model(machine: &Machine) -> Model {
    let mut builder = Builder { machine, nodes: Vec::new(), rules: Vec::new() };
    let root = builder.node(&machine.tree);
    assert_eq!(root + 1, builder.nodes.len());
    Model {
        k: machine.k,
        a: operand(&machine.read_a),
        b: operand(&machine.read_b),
        c: operand(&machine.read_c),
        scale: machine.scale.map(|scale| Scale { format: format(&scale.format), block: scale.block }),
        product: match &machine.product {
            hw::Product::Exact => Product::Exact,
            hw::Product::Rounded(round) => Product::Rounded(round_to(round)),
            hw::Product::OverflowsAt(exponent) => Product::OverflowsAt { exponent: *exponent },
            hw::Product::FlushedBelow { exponent, signed } => {
                Product::FlushedBelow { exponent: *exponent, sign_kept: *signed }
            }
        },
        tree: Tree { nodes: builder.nodes.into(), rules: builder.rules },
        d: format(&machine.d),
        nan: nan(machine),
    }
}

struct Builder<'m> {
    machine: &'m Machine,
    nodes: Vec<Node>,
    rules: Vec<Rule>,
}

impl Builder<'_> {
    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn rule(&mut self, rule: Rule) -> RuleId {
        self.rules.iter().position(|known| *known == rule).unwrap_or_else(|| {
            self.rules.push(rule);
            self.rules.len() - 1
        })
    }

    fn node(&mut self, node: &hw::Node) -> NodeId {
        match node {
            hw::Node::Product(k) => self.push(Node::Product(*k)),
            hw::Node::C => self.push(Node::Accumulator),
            hw::Node::Zero => self.push(Node::Zero),
            hw::Node::Scaled(child, block) => {
                let child = self.node(child);
                self.push(Node::Scaled { child, block: *block })
            }
            hw::Node::Sum(children, rule) => {
                let children = children.iter().map(|child| self.node(child)).collect();
                let hw::Rule { adder, zeros, output } = &self.machine.rules[*rule];
                let rule = Rule {
                    added: added(adder),
                    zero: ZeroSigns {
                        negative_zeros_stay: zeros.negative_stays,
                        cancellation_is_negative: zeros.cancelled_negative,
                        underflow_keeps_sign: zeros.underflow_signed,
                    },
                    infinite_operands_first: self.machine.infinite_operands_first,
                    normalised: match output {
                        hw::Output::Open(exponent) => Normalised::No { exponent: *exponent },
                        hw::Output::Rounded(round) | hw::Output::RoundedTwice(round, _) => {
                            Normalised::To(round_to(round))
                        }
                    },
                };
                let zero = rule.zero;
                let rule = self.rule(rule);
                let sum = self.push(Node::Sum { children, rule });
                match output {
                    // A sum of one summand, whose zeros keep their sign, rounds and does nothing else.
                    hw::Output::RoundedTwice(_, second) => {
                        let again = self.rule(Rule {
                            added: Added::Exact,
                            zero: ZeroSigns { negative_zeros_stay: true, ..zero },
                            infinite_operands_first: self.machine.infinite_operands_first,
                            normalised: Normalised::To(round_to(second)),
                        });
                        self.push(Node::Sum { children: vec![sum], rule: again })
                    }
                    _ => sum,
                }
            }
        }
    }
}

fn format(format: &mmaprobe_machines::format::Format) -> Format {
    Format::named(format.name).unwrap()
}

fn operand(reading: &hw::Reading) -> Operand {
    Operand {
        format: format(&reading.format),
        subnormals: match reading.subnormals {
            hw::Flush::Never => InputSubnormals::Kept,
            hw::Flush::ToPlusZero => InputSubnormals::FlushedToPositiveZero,
            hw::Flush::ToSignedZero => InputSubnormals::FlushedToSignedZero,
        },
        infinities: match reading.infinities {
            hw::Infinities::Kept => InputInfinities::Kept,
            hw::Infinities::Nan => InputInfinities::Nan,
            hw::Infinities::Largest => InputInfinities::Largest,
        },
    }
}

fn added(adder: &hw::Adder) -> Added {
    let hw::Adder::Aligned(aligned) = adder else { return Added::Exact };
    let alignment = |shifter: &hw::Shifter| Alignment {
        fraction_bits: shifter.fraction_bits,
        rounding: rounding(shifter.rounding),
        far: shifter.far.map(|(distance, mode)| Far { distance, rounding: rounding(mode) }),
    };
    Added::Fused(Fused {
        alignment: aligned.shifters.iter().map(alignment).collect(),
        exponents: if aligned.normalised { Exponents::Normalised } else { Exponents::Raw },
        floor: aligned.floor,
        zeros: match aligned.zeros {
            hw::ZeroExponents::Ignored => ZeroTerms::Ignored,
            hw::ZeroExponents::OpenSums => ZeroTerms::SumsCounted,
            hw::ZeroExponents::All => ZeroTerms::Counted,
            hw::ZeroExponents::AllAsFp32 => ZeroTerms::CountedAsFp32,
        },
        carry: aligned.carry.map(|carry| Carry {
            bits: carry.bits,
            beyond: match carry.beyond {
                hw::Beyond::Wraps => Beyond::Wraps,
                hw::Beyond::MagnitudeWraps => Beyond::MagnitudeWraps,
                hw::Beyond::Saturates => Beyond::Saturates,
            },
        }),
        sticky: aligned.sticky,
    })
}

fn rounding(rounding: HwRounding) -> Rounding {
    match rounding {
        HwRounding::Up => Rounding::Up,
        HwRounding::Down => Rounding::Down,
        HwRounding::Zero => Rounding::TowardZero,
        HwRounding::Away => Rounding::AwayFromZero,
        HwRounding::NearestUp => Rounding::NearestTiesUp,
        HwRounding::NearestDown => Rounding::NearestTiesDown,
        HwRounding::NearestZero => Rounding::NearestTiesToZero,
        HwRounding::NearestAway => Rounding::NearestTiesAway,
        HwRounding::NearestEven => Rounding::NearestTiesToEven,
        HwRounding::NearestOdd => Rounding::NearestTiesToOdd,
        HwRounding::Sticky => Rounding::ToOdd,
    }
}

fn round_to(round: &hw::Round) -> RoundTo {
    RoundTo {
        format: format(&round.format),
        fraction_bits: round.fraction_bits,
        rounding: rounding(round.rounding),
        subnormals: match round.subnormals {
            hw::Subnormals::Kept => Subnormals::Kept,
            hw::Subnormals::Flushed { tiny, signed } => Subnormals::Flushed {
                tiny: match tiny {
                    hw::Tiny::Before => Tininess::BeforeRounding,
                    hw::Tiny::After => Tininess::AfterRounding,
                    hw::Tiny::Delivered => Tininess::Delivered,
                },
                sign_kept: signed,
            },
        },
        overflow: match round.overflow {
            hw::Overflow::Infinity => Overflow::Infinity,
            hw::Overflow::Largest => Overflow::Largest,
            hw::Overflow::ByMode => Overflow::ByRounding,
        },
    }
}

fn nan(machine: &Machine) -> NanRule {
    let quiet = |negative| machine.d.nan(negative, 1 << (machine.d.fraction_bits - 1));
    match machine.nan {
        hw::NanRule::Canonical(bits) => NanRule::Canonical(bits),
        hw::NanRule::HandedOn { ranks, last, quieted, generated_negative, generated_first } => {
            let mut order = [(0, NanSource::A), (1, NanSource::B), (2, NanSource::Accumulator)];
            order.sort_by_key(|&(operand, _)| ranks[operand]);
            NanRule::Propagated(Propagation {
                generated: quiet(generated_negative),
                order: order.map(|(_, source)| source),
                later_first: last,
                quieted,
                generated_first,
            })
        }
        hw::NanRule::Ored => NanRule::Merged { generated: quiet(false) },
    }
}

/// A dot-add's operands.
#[derive(Debug, Default)]
struct DotAdd {
    a: Vec<u64>,
    b: Vec<u64>,
    c: u64,
    sa: Vec<u64>,
    sb: Vec<u64>,
}

/// ±0, infinities, NaNs, and both ends of each class of numbers.
fn special(format: &Format, dice: &mut Dice) -> u64 {
    let fraction = (1 << format.fraction_bits) - 1;
    let top = ((1u64 << format.exponent_bits) - 1) << format.fraction_bits;
    let smallest_normal = 1 << format.fraction_bits;
    let magnitudes = [0, 0, 1, fraction, smallest_normal, top - 1, top, top | fraction, top | (fraction / 3)];
    let sign = u64::from(format.signed && dice.percent(50)) << (format.bits() - 1);
    (sign | dice.pick(&magnitudes)) << format.ignored_low_bits
}

/// An ordinary number of about this exponent.
fn near(format: &Format, exponent: i32, dice: &mut Dice) -> u64 {
    let field = (exponent + format.bias).clamp(0, (1 << format.exponent_bits) - 2) as u64;
    // Few bits make ties and cancellation.
    let bits = dice.bits();
    let fraction =
        if bits >> 63 == 0 { bits } else { 3u64 << (bits % (u64::from(format.fraction_bits) + 1)) };
    let fraction = fraction & ((1 << format.fraction_bits) - 1);
    let sign = u64::from(format.signed && dice.percent(50)) << (format.bits() - 1);
    let ignored = dice.bits() & ((1 << format.ignored_low_bits) - 1);
    (sign | field << format.fraction_bits | fraction) << format.ignored_low_bits | ignored
}

fn between(dice: &mut Dice, low: i32, high: i32) -> i32 {
    low + dice.below((high - low + 1) as usize) as i32
}

/// Operands of some distribution: near the ends of d's range or anywhere, with few special values or
/// many, with products that nearly cancel or not.
fn draw(model: &Model, dice: &mut Dice) -> DotAdd {
    let [a, b, c] = [&model.a.format, &model.b.format, &model.c.format];
    let style = dice.below(5);
    let (ea, eb) = {
        let target = match style {
            0 => model.d.min_exponent() + between(dice, -4, 4),
            1 => model.d.max_exponent() + between(dice, -3, 3),
            2 => 0,
            _ => between(dice, a.min_exponent(), a.max_exponent()),
        };
        (target / 2, target - target / 2)
    };
    let spread = dice.pick(&[0, 1, 4, 12, 40]);
    let rate = dice.pick(&[0, 0, 5, 30]);
    let mut element = |format: &Format, exponent: i32| {
        if dice.percent(rate) {
            special(format, dice)
        } else if style == 4 {
            dice.bits() >> (64 - format.bits() - format.ignored_low_bits)
        } else {
            near(format, exponent + between(dice, -spread, spread), dice)
        }
    };
    let mut x = DotAdd {
        a: (0..model.k).map(|_| element(a, ea)).collect(),
        b: (0..model.k).map(|_| element(b, eb)).collect(),
        c: element(c, ea + eb),
        ..DotAdd::default()
    };
    if let Some(scale) = model.scale {
        for scales in [&mut x.sa, &mut x.sb] {
            scales.extend((0..model.k / scale.block).map(|_| element(&scale.format, 0)));
        }
    }
    if dice.percent(30) {
        for k in 0..model.k / 2 {
            let other = model.k - 1 - k;
            x.a[other] = x.a[k] ^ 1 << (a.bits() + a.ignored_low_bits - 1);
            x.b[other] = x.b[k] ^ u64::from(dice.percent(20)) << b.ignored_low_bits;
        }
    }
    x
}

#[test]
fn machines_are_models() {
    const DOT_ADDS: usize = 60;
    /// The generator has streams of its own for what it draws; this is none of them.
    const STREAM: u64 = 0x6d6f_6465_6c73;
    // As in the tests of the model.
    let scale = std::env::var("MMAPROBE_TEST_SCALE").map_or(1.0, |scale| scale.parse::<f64>().unwrap());
    for index in 0..(5_000.0 * scale).ceil() as u64 {
        let machine = generate::machine(2026, index);
        let model = model(&machine);
        let mut evaluator = Evaluator::new(&machine);
        let mut executor = Executor::new(&model).unwrap();
        let mut dice = Dice::new(2026, index, STREAM);
        for _ in 0..DOT_ADDS {
            let x = draw(&model, &mut dice);
            let expected = evaluator.dot_add(&x.a, &x.b, x.c, &x.sa, &x.sb);
            let got = executor.dot_add(&x.a, &x.b, x.c, &x.sa, &x.sb);
            assert_eq!(
                got, expected,
                "machine {index}: {got:#x}, not {expected:#x}, for {x:x?} in {machine:#?}"
            );
        }
    }
}
