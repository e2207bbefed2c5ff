//! Two independent executions of the same arithmetic: every random machine that a sum tree has words for
//! is translated into one, and both answer the same questions.

use mmaprobe::device::Device;
use mmaprobe::device::machine::MachineDevice;
use mmaprobe::model::format::{Format, Overflow, RoundTo, Subnormals, Tininess};
use mmaprobe::model::tree::{
    Added, Alignment, Carry, Exponents, Far, Fused, InputSubnormals, Model, NanRule, NanSource, Node,
    Normalised, Operand, Product, Propagation, Rule, Scale, Tree, ZeroSigns, ZeroTerms,
};
use mmaprobe::model::{Decoded, Executor, Rounding};
use mmaprobe::probes::random::{self, Distribution};
use mmaprobe::probes::sparse;
use mmaprobe_machines::machine as own;
use mmaprobe_machines::{Evaluator, Machine, Unit, features, generate, words};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

fn format(of: &mmaprobe_machines::format::Format) -> Format {
    Format::named(of.name).expect("a known format")
}

fn rounding(of: mmaprobe_machines::rounding::Rounding) -> Rounding {
    Rounding::from_abbreviation(of.abbreviation()).expect("a rounding of Tables I and II")
}

fn round(of: &own::Round) -> RoundTo {
    RoundTo {
        format: format(&of.format),
        fraction_bits: of.fraction_bits,
        rounding: rounding(of.rounding),
        subnormals: match of.subnormals {
            own::Subnormals::Kept => Subnormals::Kept,
            own::Subnormals::Flushed { tiny, signed } => Subnormals::Flushed {
                tiny: match tiny {
                    own::Tiny::Before => Tininess::BeforeRounding,
                    own::Tiny::After => Tininess::AfterRounding,
                    own::Tiny::Delivered => Tininess::Delivered,
                },
                sign_kept: signed,
            },
        },
        overflow: match of.overflow {
            own::Overflow::Infinity => Overflow::Infinity,
            own::Overflow::Largest => Overflow::Largest,
            own::Overflow::ByMode => Overflow::ByRounding,
        },
    }
}

fn rule(of: &own::Rule, infinite_operands_first: bool) -> Rule {
    let added = match &of.adder {
        own::Adder::Exact => Added::Exact,
        own::Adder::Aligned(adder) => Added::Fused(Fused {
            alignment: adder
                .shifters
                .iter()
                .map(|shifter| Alignment {
                    fraction_bits: shifter.fraction_bits,
                    rounding: rounding(shifter.rounding),
                    far: shifter.far.map(|(distance, mode)| Far { distance, rounding: rounding(mode) }),
                })
                .collect(),
            exponents: if adder.normalised { Exponents::Normalised } else { Exponents::Raw },
            floor: adder.floor,
            zeros: match adder.zeros {
                own::ZeroExponents::Ignored => ZeroTerms::Ignored,
                own::ZeroExponents::OpenSums => ZeroTerms::SumsCounted,
                own::ZeroExponents::All => ZeroTerms::Counted,
                own::ZeroExponents::AllAsFp32 => ZeroTerms::CountedAsFp32,
            },
            carry: adder.carry.map(|carry| Carry {
                bits: carry.bits,
                saturates: match carry.beyond {
                    own::Beyond::Wraps => false,
                    own::Beyond::Saturates => true,
                    own::Beyond::MagnitudeWraps => panic!("beyond sum trees"),
                },
            }),
        }),
    };
    Rule {
        added,
        zero: ZeroSigns {
            negative_zeros_stay: of.zeros.negative_stays,
            cancellation_is_negative: of.zeros.cancelled_negative,
            underflow_keeps_sign: of.zeros.underflow_signed,
        },
        infinite_operands_first,
        normalised: match &of.output {
            own::Output::Open(exponent) => Normalised::No { exponent: *exponent },
            own::Output::Rounded(to) => Normalised::To(round(to)),
            own::Output::RoundedTwice(..) => panic!("beyond sum trees"),
        },
    }
}

fn push(of: &own::Node, nodes: &mut Vec<Node>) -> usize {
    let node = match of {
        own::Node::Product(k) => Node::Product(*k),
        own::Node::C => Node::Accumulator,
        own::Node::Zero => Node::Zero,
        own::Node::Scaled(child, block) => Node::Scaled { child: push(child, nodes), block: *block },
        own::Node::Sum(children, rule) => {
            let children = children.iter().map(|child| push(child, nodes)).collect();
            Node::Sum { children, rule: *rule }
        }
    };
    nodes.push(node);
    nodes.len() - 1
}

fn operand(of: &own::Reading) -> Operand {
    Operand {
        format: format(&of.format),
        subnormals: match of.subnormals {
            own::Flush::Never => InputSubnormals::Kept,
            own::Flush::ToPlusZero => InputSubnormals::FlushedToPositiveZero,
            own::Flush::ToSignedZero => InputSubnormals::FlushedToSignedZero,
        },
    }
}

fn nan(machine: &Machine) -> NanRule {
    match machine.nan {
        own::NanRule::Canonical(bits) => NanRule::Canonical(bits),
        own::NanRule::Ored => panic!("beyond sum trees"),
        own::NanRule::HandedOn { ranks, last, quieted, generated_negative, generated_first } => {
            let mut order =
                [(ranks[0], NanSource::A), (ranks[1], NanSource::B), (ranks[2], NanSource::Accumulator)];
            order.sort_by_key(|(rank, _)| *rank);
            let quiet = 1 << (machine.d.fraction_bits - 1);
            NanRule::Propagated(Propagation {
                generated: format(&machine.d)
                    .pack(Decoded::Nan { negative: generated_negative, fraction: quiet }),
                order: order.map(|(_, source)| source),
                later_first: last,
                quieted,
                generated_first,
            })
        }
    }
}

/// The same arithmetic as a sum tree.
fn translated(machine: &Machine) -> Model {
    let mut nodes = Vec::new();
    push(&machine.tree, &mut nodes);
    let rules = machine.rules.iter().map(|of| rule(of, machine.infinite_operands_first)).collect();
    Model {
        k: machine.k,
        a: operand(&machine.read_a),
        b: operand(&machine.read_b),
        c: operand(&machine.read_c),
        scale: machine.scale.map(|scale| Scale { format: format(&scale.format), block: scale.block }),
        product: match &machine.product {
            own::Product::Exact => Product::Exact,
            own::Product::Rounded(to) => Product::Rounded(round(to)),
            own::Product::OverflowsAt(exponent) => Product::OverflowsAt { exponent: *exponent },
            own::Product::FlushedBelow { .. } => panic!("beyond sum trees"),
        },
        tree: Tree { nodes, rules },
        d: format(&machine.d),
        nan: nan(machine),
    }
}

#[test]
fn machines_answer_as_their_sum_trees_do() {
    let mut within = 0;
    for index in 0..400 {
        let machine = generate::machine(21, index);
        if features::beyond_trees(&machine) {
            continue;
        }
        within += 1;
        let model = translated(&machine);
        let mut executor =
            Executor::new(&model).unwrap_or_else(|e| panic!("{e}: {}", words::describe(&machine)));
        let mut evaluator = Evaluator::new(&machine);
        let device = MachineDevice::new("machine", Unit::sound(machine.clone()));
        let signature = device.instructions()[0].signature();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(index);
        for round in 0..350 {
            let question = match round % 7 {
                6 => sparse::dot_add(&signature, &mut rng),
                distribution => random::dot_add(Distribution::ALL[distribution], &signature, &mut rng),
            };
            let q = &question;
            let (x, y) = (
                evaluator.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb),
                executor.dot_add(&q.a, &q.b, q.c, &q.sa, &q.sb),
            );
            assert_eq!(x, y, "machine {index}: {x:#x}, model: {y:#x}: {q:x?}\n{}", words::describe(&machine));
        }
    }
    assert!(within > 200, "{within} of 400 machines are within sum trees");
}
