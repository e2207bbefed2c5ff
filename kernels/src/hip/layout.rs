//! Where each element of a matrix is while an MFMA instruction runs: lane, VGPR and bits.
//!
//! Sources: for CDNA1 to CDNA3 the formulas and examples that AMD's matrix instruction calculator prints
//! (the CDNA3 instruction set manual has a section on these layouts, which was not at hand); for the
//! scaled instructions of CDNA4 the register mappings in AMD's Composable
//! Kernel (`test/mx_mfma_op`). All hold with CBSZ, ABID and BLGP at 0 (where these select formats: with
//! OPSEL at 0).

use mmaprobe_model::Format;
use mmaprobe_model::format::{E4M3, E5M2, FP64};

use super::{Kind, LANES, Spec};
use crate::fragment::{Fragment, Fragments, Home, Place, stored_bits};
use crate::instruction::Unsupported;

/// Elements along K that share a scale.
const SCALE_BLOCK: usize = 32;

/// The layouts of an instruction's matrices.
///
/// # Errors
/// If the instruction has a shape or types that none of the layouts has.
pub fn fragments(spec: &Spec) -> Result<Fragments, Unsupported> {
    let Spec { m, n, k, blocks, .. } = *spec;
    if m != n || !matches!(m, 4 | 16 | 32) {
        return Err(spec.unsupported("there are as many columns, and 4, 16 or 32 rows"));
    }
    let wide = (spec.c == FP64) as usize + (spec.d == FP64) as usize + (spec.a == FP64) as usize;
    if spec.c != spec.d || !matches!(wide, 0 | 3) || spec.d.bytes < 4 {
        return Err(spec.unsupported("C and D are both fp32, or everything is fp64"));
    }
    if !(m * k * blocks).is_multiple_of(LANES) || !(m * n * blocks).is_multiple_of(LANES) {
        return Err(spec.unsupported(format!("K = {k} does not fill {LANES} lanes")));
    }
    let mut fragments = Fragments {
        a: factor(spec, &spec.a)?,
        b: factor(spec, &spec.b)?,
        c: accumulator(spec),
        d: accumulator(spec),
        sa: None,
        sb: None,
    };
    match (&spec.scale, spec.kind) {
        (None, Kind::Mfma) => {}
        (Some(scale), Kind::MfmaScale) if scale.block == SCALE_BLOCK && blocks == 1 => {
            // Row i's scale of block s, in the lowest byte of the lane that is as far along as if the
            // lanes held 32 elements each one after another.
            let scales = Fragment::new(
                Home::Vgprs { registers: 1 },
                &scale.format,
                [1, m, k / SCALE_BLOCK],
                |_, outer, block| Place { lane: outer + m * block, register: 0, bit: 0 },
            );
            (fragments.sa, fragments.sb) = (Some(scales.clone()), Some(scales));
        }
        _ => return Err(spec.unsupported("a scale for each 32 elements is for one kind of instruction")),
    }
    Ok(fragments)
}

/// A factor: A by row, B by column, which are treated alike.
fn factor(spec: &Spec, format: &Format) -> Result<Fragment, Unsupported> {
    let Spec { m: outer, k, blocks, .. } = *spec;
    let bits = stored_bits(format);
    // Elements of a lane, of one row.
    let each = k * outer * blocks / LANES;
    if !(each * bits).is_multiple_of(32) {
        return Err(spec.unsupported(format!("K = {k} does not fill the registers with {format}")));
    }
    // They are consecutive; but the scaled instructions take 16 bytes of a row from each lane, and then
    // 16 more.
    let run = match spec.kind == Kind::MfmaScale && [E4M3, E5M2].contains(format) {
        true => 16.min(each),
        false => each,
    };
    // Lanes side by side: the rows of all blocks; and then those runs that are in other lanes.
    let across = k / each;
    let home = Home::Vgprs { registers: each * bits / 32 };
    Ok(Fragment::new(home, format, [blocks, outer, k], |block, row, l| {
        let (chunk, within) = (l / run, l % run);
        let low = (chunk / across * run + within) * bits;
        Place { lane: row + outer * (block + blocks * (chunk % across)), register: low / 32, bit: low % 32 }
    }))
}

/// C or D. Lanes hold columns; rows are dealt to the lanes in turn, four at a time (one at a time, of
/// fp64), and blocks lie in lanes side by side as long as there are lanes, then in further registers.
fn accumulator(spec: &Spec) -> Fragment {
    let Spec { m, n, blocks, ref d, .. } = *spec;
    let (dealt, registers) = if *d == FP64 { (1, 2) } else { (4, 1) };
    // Lanes that share a column of a block, and blocks side by side.
    let shares = (LANES / n).min(m / dealt);
    let beside = LANES / (n * shares);
    // Elements of a block in a lane.
    let each = m / shares;
    let home = Home::Vgprs { registers: m * n * blocks / LANES * registers };
    Fragment::new(home, d, [blocks, m, n], |block, i, j| {
        let (turn, within) = (i / dealt, i % dealt);
        let index = block / beside * each + turn / shares * dealt + within;
        Place {
            lane: j + n * (block % beside + beside * (turn % shares)),
            register: index * registers,
            bit: 0,
        }
    })
}
