//! Each of the nine algorithms on the types of published instructions.

use mmaprobe_model::algorithms::{Algorithm, Output, Types};
use mmaprobe_model::format::{self, FP32};
use mmaprobe_model::tree::Scale;

pub fn fdrda(chain: usize) -> Algorithm {
    let (fraction_bits, dot_fraction_bits, c_fraction_bits) = (24, 31, 24);
    match chain {
        1 => Algorithm::Fdrda { fraction_bits, dot_fraction_bits, c_fraction_bits },
        chain => Algorithm::CoFdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, chain },
    }
}

pub fn gfdrda(chain: usize) -> Algorithm {
    let (fraction_bits, dot_fraction_bits, c_fraction_bits, c_rz_below) = (24, 31, 24, 25);
    match chain {
        1 => Algorithm::Gfdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, c_rz_below },
        chain => Algorithm::CoGfdrda { fraction_bits, dot_fraction_bits, c_fraction_bits, c_rz_below, chain },
    }
}

/// With the name that each should have.
pub fn published() -> Vec<(Algorithm, Types, &'static str)> {
    use Output::{Rne10, Rz13, Rz23};
    use format::{BF16, E2M1, E4M3, E4M3FNUZ, E5M2FNUZ, FP16, FP64, TF32, UE4M3, UE8M0};
    let fda = |fraction_bits, output| Algorithm::Fda { fraction_bits, output };
    let cofda = |fraction_bits, chain, output| Algorithm::CoFda { fraction_bits, chain, output };
    let gps = |group, flushed| Algorithm::Gps { group, flushed };
    let gdfs = Algorithm::Gdfs { group: 16, fraction_bits: 35, output: Rz23 };
    let scaled = |factors, k, format, block| Types {
        scale: Some(Scale { format, block }),
        ..Types::plain(factors, FP32, k)
    };
    vec![
        (Algorithm::Sfma, Types::plain(FP64, FP64, 4), "SFMA"),
        (Algorithm::Sfma, Types::plain(FP32, FP32, 1), "SFMA"),
        (gps(4, true), Types::plain(FP16, FP32, 16), "GPS(G=4)"),
        (gps(4, true), Types::plain(BF16, FP32, 4), "GPS(G=4)"),
        (gps(2, true), Types::plain(BF16, FP32, 8), "GPS(G=2)"),
        (gps(2, true), Types::plain(BF16, FP32, 2), "GPS(G=2)"),
        (gps(4, false), Types::plain(FP16, FP32, 8), "GPS(G=4, subnormals kept)"),
        (fda(23, Rz23), Types::plain(FP16, FP32, 4), "FDA(F=23)"),
        (fda(25, Rz23), Types::plain(TF32, FP32, 8), "FDA(F=25)"),
        (fda(24, Rne10), Types::plain(FP16, FP16, 8), "FDA(F=24)"),
        (fda(13, Rz13), Types::plain(E4M3, FP32, 32), "FDA(F=13)"),
        (fda(25, Rz23), scaled(E4M3, 32, UE8M0, 32), "FDA(F=25)"),
        (cofda(24, 2, Rz23), Types::plain(BF16, FP32, 16), "CoFDA(F=24, chain=2)"),
        (cofda(13, 2, Rne10), Types::plain(E4M3, FP16, 32), "CoFDA(F=13, chain=2)"),
        (cofda(24, 4, Rz23), Types::plain(FP16, FP32, 16), "CoFDA(F=24, chain=4)"),
        (gdfs, scaled(E2M1, 64, UE8M0, 32), "GDFS(G=16, F=35)"),
        (gdfs, scaled(E2M1, 64, UE4M3, 16), "GDFS(G=16, F=35)"),
        (fdrda(1), Types::plain(FP16, FP32, 8), "FDRDA(F=24, F_dot=31, F_c=24)"),
        (fdrda(1), Types::plain(TF32, FP32, 4), "FDRDA(F=24, F_dot=31, F_c=24)"),
        (fdrda(2), Types::plain(BF16, FP32, 16), "CoFDRDA(F=24, F_dot=31, F_c=24, chain=2)"),
        (
            gfdrda(1),
            Types { b: E5M2FNUZ, ..Types::plain(E4M3FNUZ, FP32, 16) },
            "GFDRDA(F=24, F_dot=31, F_c=24, c_rz_below=25)",
        ),
        (
            gfdrda(2),
            Types::plain(E4M3FNUZ, FP32, 32),
            "CoGFDRDA(F=24, F_dot=31, F_c=24, c_rz_below=25, chain=2)",
        ),
    ]
}
