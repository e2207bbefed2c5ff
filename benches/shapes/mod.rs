//! The nine algorithms on each class of formats, as instructions of realistic shapes.

use mmaprobe::device::Instruction;
use mmaprobe::model::Model;
use mmaprobe::model::algorithms::{Algorithm, Output, Types};
use mmaprobe::model::format::{
    BF16, E2M1, E3M2, E4M3, E4M3FNUZ, E5M2, E5M2FNUZ, FP16, FP32, FP64, Format, TF32, UE4M3, UE8M0,
};
use mmaprobe::model::tree::Scale;

/// An algorithm on an instruction.
pub struct Shape {
    pub algorithm: Algorithm,
    pub instruction: Instruction,
    pub model: Model,
}

type Of = (Algorithm, [Format; 4], Option<(Format, usize)>, [usize; 3]);

/// Every shape.
pub fn all() -> Vec<Shape> {
    let fda = |fraction_bits, output| Algorithm::Fda { fraction_bits, output };
    let gdfs = Algorithm::Gdfs { group: 16, fraction_bits: 35, output: Output::Rz23 };
    let gps = |group, flushed| Algorithm::Gps { group, flushed };
    let fdrda = Algorithm::Fdrda { fraction_bits: 24, dot_fraction_bits: 31, c_fraction_bits: 24 };
    let co_fdrda =
        Algorithm::CoFdrda { fraction_bits: 24, dot_fraction_bits: 31, c_fraction_bits: 24, chain: 2 };
    let gfdrda =
        Algorithm::Gfdrda { fraction_bits: 24, dot_fraction_bits: 31, c_fraction_bits: 24, c_rz_below: 25 };
    let co_gfdrda = Algorithm::CoGfdrda {
        fraction_bits: 24,
        dot_fraction_bits: 31,
        c_fraction_bits: 24,
        c_rz_below: 25,
        chain: 2,
    };
    let co_fda = Algorithm::CoFda { fraction_bits: 24, chain: 2, output: Output::Rz23 };
    let to_fp32 = |factors| [factors, factors, FP32, FP32];
    let shapes: Vec<Of> = vec![
        (Algorithm::Sfma, [FP32; 4], None, [32, 32, 2]),
        (Algorithm::Sfma, [FP32; 4], None, [16, 16, 4]),
        (Algorithm::Sfma, [FP32; 4], None, [32, 32, 16]),
        (Algorithm::Sfma, [FP64; 4], None, [16, 16, 4]),
        (Algorithm::Sfma, [FP64; 4], None, [16, 8, 16]),
        (Algorithm::Sfma, [FP64; 4], None, [8, 8, 4]),
        (Algorithm::Sfma, [FP32; 4], None, [1, 1, 1]),
        (gps(4, true), to_fp32(FP16), None, [32, 32, 8]),
        (gps(2, true), to_fp32(BF16), None, [16, 16, 16]),
        (gps(4, false), to_fp32(FP16), None, [16, 16, 16]),
        (fda(23, Output::Rz23), to_fp32(FP16), None, [8, 8, 4]),
        (fda(25, Output::Rz23), to_fp32(FP16), None, [16, 8, 16]),
        (fda(25, Output::Rz23), to_fp32(BF16), None, [16, 8, 16]),
        (fda(25, Output::Rz23), to_fp32(BF16), None, [64, 256, 16]),
        (fda(25, Output::Rz23), to_fp32(TF32), None, [16, 8, 8]),
        (fda(25, Output::Rne10), [FP16; 4], None, [16, 8, 16]),
        (fda(13, Output::Rz13), to_fp32(E4M3), None, [16, 8, 32]),
        (fda(13, Output::Rz13), to_fp32(E5M2), None, [16, 8, 32]),
        (fda(25, Output::Rz23), to_fp32(E4M3), None, [16, 8, 32]),
        (fda(25, Output::Rz23), [E5M2, E3M2, FP32, FP32], Some((UE8M0, 32)), [16, 8, 32]),
        (co_fda, to_fp32(FP16), None, [16, 8, 16]),
        (co_fda, to_fp32(BF16), None, [16, 8, 16]),
        (gdfs, to_fp32(E2M1), Some((UE4M3, 16)), [16, 8, 64]),
        (gdfs, to_fp32(E2M1), Some((UE8M0, 32)), [16, 8, 64]),
        (fdrda, to_fp32(FP16), None, [32, 32, 8]),
        (fdrda, to_fp32(BF16), None, [32, 32, 8]),
        (co_fdrda, to_fp32(FP16), None, [16, 16, 16]),
        (co_fdrda, to_fp32(BF16), None, [16, 16, 16]),
        (gfdrda, to_fp32(E4M3FNUZ), None, [32, 32, 16]),
        (gfdrda, to_fp32(E5M2FNUZ), None, [32, 32, 16]),
        (co_gfdrda, to_fp32(E4M3FNUZ), None, [16, 16, 32]),
        (co_gfdrda, [E5M2FNUZ, E4M3FNUZ, FP32, FP32], None, [4, 4, 32]),
    ];
    shapes.into_iter().map(shape).collect()
}

fn shape((algorithm, [a, b, c, d], scale, [m, n, k]): Of) -> Shape {
    let scale = scale.map(|(format, block)| Scale { format, block });
    let model = algorithm.model(&Types { a, b, c, d, k, scale }).expect("types that go with the algorithm");
    let scales = scale.map_or(String::new(), |scale| format!(".{}", scale.format));
    let name = format!("m{m}n{n}k{k}.{d}.{a}.{b}{scales}");
    Shape { algorithm, instruction: Instruction { name, m, n, k, a, b, c, d, scale, mode_of: None }, model }
}
