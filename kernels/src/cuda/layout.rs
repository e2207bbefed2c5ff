//! Where each element of a matrix is while an instruction runs.
//!
//! Sources: PTX ISA 8.7, "Matrix Fragments for mma.m8n8k4 … m16n8k64", "Block Scaling for mma.sync",
//! "Register Fragments and Shared Memory Matrix Layouts" of wgmma, and for tcgen05 "Data Path Layout
//! Organization" (layouts D and F), "Packing formats" and "Scale Factor A / B ID".
//!
//! All fragments of `mma.sync` but those of the first, `m8n8k4` on fp16, follow one rule: a quad of
//! lanes holds a row (a column, for B), consecutive elements of it lie in one register, then in the
//! next lane of the quad, then in the next register.

use mmaprobe_model::Format;
use mmaprobe_model::format::{E2M1, FP16, FP64};

use super::{Kind, Spec};
use crate::fragment::{Fragment, Fragments, Home, Place, is_sub_byte, stored_bits};
use crate::instruction::Unsupported;

/// The layouts of an instruction's matrices.
///
/// # Errors
/// If the instruction has a shape or types that none of the layouts has.
pub fn fragments(spec: &Spec) -> Result<Fragments, Unsupported> {
    match spec.kind {
        Kind::Mma if spec.blocks == 4 => quad_pairs(spec),
        _ if spec.blocks != 1 => Err(spec.unsupported("it computes several problems at once")),
        Kind::Mma | Kind::MmaBlockScale => quads(spec),
        Kind::Wgmma => warpgroup(spec),
        Kind::Tcgen05 | Kind::Tcgen05BlockScale => tensor_memory(spec),
    }
}

/// The `m8n8k4` of Volta and Turing: four problems in a warp, each on eight lanes.
fn quad_pairs(spec: &Spec) -> Result<Fragments, Unsupported> {
    if (spec.m, spec.n, spec.k) != (8, 8, 4) || spec.a != FP16 || spec.b != FP16 || spec.scale.is_some() {
        return Err(spec.unsupported("four problems at once are m8n8k4 of fp16"));
    }
    // Problem q is computed by lanes 4q to 4q+3 and 4q+16 to 4q+19: its threads 0 to 7.
    let lane = |problem: usize, thread: usize| 4 * problem + thread % 4 + thread / 4 * 16;
    let home = |registers| Home::Registers { lanes: 32, registers, width: 32 };
    let halves = |registers: usize, inner: usize| {
        Fragment::new(home(registers), &FP16, [4, 8, inner], move |problem, outer, inner| Place {
            lane: lane(problem, outer),
            register: inner / 2,
            bit: inner % 2 * 16,
        })
    };
    let accumulator = |format: &Format| match *format == FP16 {
        true => halves(4, 8),
        false => Fragment::new(home(8), format, [4, 8, 8], |problem, i, j| Place {
            lane: lane(problem, (i & 1) | (j & 2) | (i & 4)),
            register: (j & 4) | (i & 2) | (j & 1),
            bit: 0,
        }),
    };
    let (c, d) = (accumulator(&spec.c), accumulator(&spec.d));
    Ok(Fragments { a: halves(2, 4), b: halves(2, 4), c, d, sa: None, sb: None })
}

/// Every other `mma.sync`.
fn quads(spec: &Spec) -> Result<Fragments, Unsupported> {
    let Spec { m, n, k, .. } = *spec;
    if !matches!(m, 8 | 16) || n != 8 {
        return Err(spec.unsupported("mma.sync has m = 8 or 16 and n = 8"));
    }
    // Two elements of e2m1 share a byte where the kind is for fp4 alone; elsewhere a format below 8
    // bits has a byte for each element, and e2m1 the middle of it.
    let packed = k == 64;
    let factor = |format: &Format, outer: usize| -> Result<Fragment, Unsupported> {
        let width = if *format == FP64 { 64 } else { 32 };
        let slot = if packed { 4 } else { 8 * format.bytes };
        let low = if *format == E2M1 && !packed { 2 } else { 0 };
        let each = width / slot;
        let (halves, chunk) = (outer.div_ceil(8), 4 * each);
        if !k.is_multiple_of(chunk) || (packed && *format != E2M1) {
            return Err(spec.unsupported(format!("K is no multiple of {chunk} {format}")));
        }
        let home = Home::Registers { lanes: 32, registers: halves * (k / chunk), width };
        Ok(Fragment::new(home, format, [1, outer, k], |_, outer, inner| Place {
            lane: 4 * (outer % 8) + inner % chunk / each,
            register: outer / 8 + halves * (inner / chunk),
            bit: inner % each * slot + low,
        }))
    };
    let accumulator = |format: &Format| {
        let width = if *format == FP64 { 64 } else { 32 };
        let each = width / (8 * format.bytes);
        let home = Home::Registers { lanes: 32, registers: m / 4 / each, width };
        Fragment::new(home, format, [1, m, 8], |_, i, j| {
            let index = 2 * (i / 8) + j % 2;
            Place { lane: 4 * (i % 8) + j / 2, register: index / each, bit: index % each * 8 * format.bytes }
        })
    };
    let mut fragments = Fragments {
        a: factor(&spec.a, m)?,
        b: factor(&spec.b, n)?,
        c: accumulator(&spec.c),
        d: accumulator(&spec.d),
        sa: None,
        sb: None,
    };
    if let Some(scale) = &spec.scale {
        // With thread-id and byte-id 0: the first two lanes of a quad hold the scales of rows g and
        // g + 8, the first one those of column g, from the lowest byte on.
        let home = Home::Registers { lanes: 32, registers: 1, width: 32 };
        let blocks = scale_blocks(spec, scale.block)?;
        let scales = |outer: usize| {
            Fragment::new(home, &scale.format, [1, outer, blocks], |_, outer, block| Place {
                lane: 4 * (outer % 8) + outer / 8,
                register: 0,
                bit: 8 * block,
            })
        };
        (fragments.sa, fragments.sb) = (Some(scales(m)), Some(scales(n)));
    }
    Ok(fragments)
}

/// Scales of a row of A: they fit a register, a byte each.
fn scale_blocks(spec: &Spec, block: usize) -> Result<usize, Unsupported> {
    match spec.k / block {
        blocks @ (1 | 2 | 4) if blocks * block == spec.k => Ok(blocks),
        blocks => Err(spec.unsupported(format!("there are layouts for 1, 2 and 4 scales, not {blocks}"))),
    }
}

/// `wgmma`: A and B in shared memory, C and D in the registers of four warps.
fn warpgroup(spec: &Spec) -> Result<Fragments, Unsupported> {
    let Spec { m, n, .. } = *spec;
    if m != 64 || !(8..=256).contains(&n) || !n.is_multiple_of(8) {
        return Err(spec.unsupported("wgmma has m = 64 and n a multiple of 8 up to 256"));
    }
    let accumulator = |format: &Format| {
        let each = 4 / format.bytes;
        let home = Home::Registers { lanes: 128, registers: n / 2 / each, width: 32 };
        Fragment::new(home, format, [1, 64, n], |_, i, j| {
            let index = 4 * (j / 8) + 2 * (i % 16 / 8) + j % 2;
            Place {
                lane: 32 * (i / 16) + 4 * (i % 8) + j % 8 / 2,
                register: index / each,
                bit: index % each * 8 * format.bytes,
            }
        })
    };
    with_shared_factors(spec, accumulator)
}

/// `tcgen05.mma` of one CTA: A and B in shared memory, the rest in tensor memory.
fn tensor_memory(spec: &Spec) -> Result<Fragments, Unsupported> {
    let Spec { m, n, .. } = *spec;
    if m == 256 {
        return Err(spec.unsupported("m = 256 takes the tensor memory of two CTAs, and it uses one's"));
    }
    if !matches!(m, 64 | 128) || !(8..=256).contains(&n) || !n.is_multiple_of(8) {
        return Err(spec.unsupported("tcgen05.mma has m = 64 or 128 and n a multiple of 8 up to 256"));
    }
    // Row i is in lane i; with m = 64 in the first half of each quarter of the lanes. A column of 32
    // bits holds one element, whatever its width.
    let quarter = m / 4;
    let accumulator = |format: &Format| {
        let home = Home::TensorMemory { lanes: 128, columns: n };
        Fragment::new(home, format, [1, m, n], |_, i, j| Place {
            lane: 32 * (i / quarter) + i % quarter,
            register: j,
            bit: 0,
        })
    };
    let mut fragments = with_shared_factors(spec, accumulator)?;
    if let Some(scale) = &spec.scale {
        if m != 128 {
            return Err(spec.unsupported("block scales take m = 128"));
        }
        let blocks = scale_blocks(spec, scale.block)?;
        // 32 rows to a column, the scales of a row from the lowest byte on.
        let scales = |outer: usize| {
            let home = Home::TensorMemory { lanes: 32, columns: outer.div_ceil(32) };
            Fragment::new(home, &scale.format, [1, outer, blocks], |_, outer, block| Place {
                lane: outer % 32,
                register: outer / 32,
                bit: 8 * block,
            })
        };
        (fragments.sa, fragments.sb) = (Some(scales(m)), Some(scales(n)));
    }
    Ok(fragments)
}

/// Factors in shared memory, no scales, and accumulators as they are where the instruction has them.
fn with_shared_factors(
    spec: &Spec,
    accumulator: impl Fn(&Format) -> Fragment,
) -> Result<Fragments, Unsupported> {
    let (a, b) = (shared(spec, &spec.a, spec.m)?, shared(spec, &spec.b, spec.n)?);
    Ok(Fragments { a, b, c: accumulator(&spec.c), d: accumulator(&spec.d), sa: None, sb: None })
}

/// Bytes of a core matrix: 8 rows of 16 bytes.
pub const CORE_MATRIX: usize = 128;

/// A factor in shared memory, K-major and without swizzling, as [descriptors](super::descriptor) of
/// this crate describe it: each row is 32 bytes, two core matrices side by side; below them the next
/// 8 rows.
fn shared(spec: &Spec, format: &Format, outer: usize) -> Result<Fragment, Unsupported> {
    // 16 bytes hold 16 elements of any format of at most 8 bits, packed from the lowest bit on with
    // the rest left empty; 32 of e2m1 where the kind is for fp4 alone.
    let packed = spec.k == 64;
    let (each, step) = match (packed, is_sub_byte(format)) {
        (true, true) if *format == E2M1 => (32, 4),
        (false, true) => (16, stored_bits(format)),
        (false, false) => (16 / format.bytes, 8 * format.bytes),
        _ => return Err(spec.unsupported("K = 64 is for e2m1")),
    };
    if spec.k != 2 * each {
        return Err(spec.unsupported(format!("K is {} for {format}", 2 * each)));
    }
    Ok(Fragment::new(Home::Shared { bytes: outer * 32 }, format, [1, outer, spec.k], |_, outer, inner| {
        let bit = inner % each * step;
        Place {
            lane: 0,
            register: (outer / 8 * 2 + inner / each) * CORE_MATRIX + outer % 8 * 16 + bit / 8,
            bit: bit % 8,
        }
    }))
}
