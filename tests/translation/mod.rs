//! Random machines written down as sum trees, for tests and for `examples/stages`. The inference never sees this.

use mmaprobe::model::format::{Overflow, RoundTo, Subnormals, Tininess};
use mmaprobe::model::tree::{
    Added, Alignment, Beyond, Carry, Exponents, Far, Fused, InputInfinities, InputSubnormals, NanRule,
    NanSource, Node, NodeId, Normalised, Operand, Product, Propagation, Rule, RuleId, Scale, Tree, ZeroSigns,
    ZeroTerms,
};
use mmaprobe::model::{Format, Model, Rounding};
use mmaprobe_machines::Machine;
use mmaprobe_machines::machine as hw;
use mmaprobe_machines::rounding::Rounding as HwRounding;

/// The sum tree of a machine.
pub fn model(machine: &Machine) -> Model {
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
