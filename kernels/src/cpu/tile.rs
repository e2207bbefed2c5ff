//! AMX: tile products of 16×32 by 32×16 16-bit elements.
//!
//! A and C are tiles as they are: 16 rows of 64 bytes. B must be in the layout that Intel calls VNNI:
//! row p of the tile holds, column after column, the elements 2p and 2p + 1 of that column.

use std::arch::asm;

use super::Problems;
use super::repeat::Repeat;

/// Bytes of a tile row.
const ROW: usize = 64;
/// Rows of a tile.
const ROWS: usize = 16;
/// Bytes of a tile.
const TILE: usize = ROW * ROWS;
/// Problems whose B is repacked at a time: few enough for the first-level cache, enough to make the
/// cost of configuring the tiles vanish.
const CHUNK: usize = 8;

/// What ldtilecfg loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
struct Configuration([u8; 64]);

impl Configuration {
    /// Palette 1 with so many full-size tiles, at most 8; the others are unconfigured.
    const fn full_tiles(count: usize) -> Configuration {
        const PALETTE: usize = 0;
        const COLUMN_BYTES: usize = 16;
        const TILE_ROWS: usize = 48;
        let mut bytes = [0; 64];
        bytes[PALETTE] = 1;
        let mut tile = 0;
        while tile < count {
            bytes[COLUMN_BYTES + 2 * tile] = ROW as u8;
            bytes[TILE_ROWS + tile] = ROWS as u8;
            tile += 1;
        }
        Configuration(bytes)
    }
}

/// Repacks B from column by column to VNNI. With two elements taken as one 32-bit word, that is
/// transposing a 16×16 matrix.
fn to_vnni(columns: &[u8; TILE], tile: &mut [u8; TILE]) {
    const PAIR: usize = 4;
    for (p, row) in tile.as_chunks_mut::<ROW>().0.iter_mut().enumerate() {
        for (n, pair) in row.as_chunks_mut::<PAIR>().0.iter_mut().enumerate() {
            pair.copy_from_slice(&columns[n * ROW + p * PAIR..][..PAIR]);
        }
    }
}

/// Computes `count` problems, at least one, with B already repacked.
///
/// # Safety
/// The instruction must be present and the pointers good for `count` tiles.
type Block = unsafe fn(a: *const u8, b: *const u8, c: *const u8, d: *mut u8, count: usize, mxcsr: u32);

/// Defines a kernel for a tile product.
macro_rules! kernel {
    ($instruction:ident) => {
        #[doc = concat!("`", stringify!($instruction), "`.")]
        ///
        /// # Safety
        /// See [`Kernel`](super::Kernel).
        pub unsafe fn $instruction(problems: Problems<'_>, d: &mut [u8], mxcsr: u32) {
            unsafe fn block(
                a: *const u8,
                b: *const u8,
                c: *const u8,
                d: *mut u8,
                count: usize,
                mxcsr: u32,
            ) {
                // C and D, A, and B.
                let configuration = Configuration::full_tiles(3);
                let mut saved = 0u32;
                // SAFETY: reads and writes `count` tiles through each pointer, reads `configuration`
                // and `mxcsr`, writes `saved`. MXCSR is restored and the tiles are released; all
                // tile registers are declared clobbered by the System V convention.
                unsafe {
                    asm!(
                        "stmxcsr [{saved}]",
                        "ldmxcsr [{mxcsr}]",
                        "ldtilecfg [{configuration}]",
                        "2:",
                        "tileloadd tmm0, [r10 + {row}*1]",
                        "tileloadd tmm1, [r8 + {row}*1]",
                        "tileloadd tmm2, [r9 + {row}*1]",
                        concat!(stringify!($instruction), " tmm0, tmm1, tmm2"),
                        "tilestored [r11 + {row}*1], tmm0",
                        "add r8, {tile}",
                        "add r9, {tile}",
                        "add r10, {tile}",
                        "add r11, {tile}",
                        "dec rcx",
                        "jnz 2b",
                        "tilerelease",
                        "ldmxcsr [{saved}]",
                        row = in(reg) ROW,
                        saved = in(reg) &raw mut saved,
                        mxcsr = in(reg) &raw const mxcsr,
                        configuration = in(reg) &raw const configuration,
                        tile = const TILE,
                        inout("r8") a => _,
                        inout("r9") b => _,
                        inout("r10") c => _,
                        inout("r11") d => _,
                        inout("rcx") count => _,
                        clobber_abi("sysv64"),
                        options(nostack),
                    );
                }
            }
            // SAFETY: as for this function.
            unsafe { in_chunks(block, problems, d, mxcsr) }
        }
    };
}

kernel!(tdpbf16ps);
kernel!(tdpfp16ps);

/// Repacks B and runs the problems, a chunk at a time.
///
/// # Safety
/// The instruction must be present and all four arrays `problems.count` tiles long.
unsafe fn in_chunks(block: Block, problems: Problems<'_>, d: &mut [u8], mxcsr: u32) {
    let chunks = |array| <[u8]>::as_chunks::<TILE>(array).0.chunks(CHUNK);
    let mut packed = [[0; TILE]; CHUNK];
    let inputs = chunks(problems.a).zip(chunks(problems.b)).zip(chunks(problems.c));
    for (((a, b), c), d) in inputs.zip(d.as_chunks_mut::<TILE>().0.chunks_mut(CHUNK)) {
        for (columns, tile) in b.iter().zip(&mut packed) {
            to_vnni(columns, tile);
        }
        // SAFETY: A, C and D have as many tiles, at least one and at most as many as `packed`.
        unsafe {
            block(
                a.as_ptr().cast(),
                packed.as_ptr().cast(),
                c.as_ptr().cast(),
                d.as_mut_ptr().cast(),
                d.len(),
                mxcsr,
            );
        }
    }
}

/// What each row of a loop's factors is filled with: positive normal numbers in every format.
static FACTORS: [u8; ROW] = [0x3F; ROW];

/// A loop on tiles that start as zeros, with the tiles 4 and 5 as factors.
macro_rules! tile_loop {
    ($instruction:literal: $($accumulator:literal)+) => {{
        unsafe fn repeat(passes: u64) {
            let configuration = Configuration::full_tiles(6);
            // SAFETY: reads `configuration` and `FACTORS`, the same row for each of a tile's. The tiles
            // are released; all tile registers are declared clobbered by the System V convention.
            unsafe {
                asm!(
                    "ldtilecfg [{configuration}]",
                    $(concat!("tilezero tmm", $accumulator),)+
                    "tileloadd tmm4, [{factors} + {stride}*1]",
                    "tileloadd tmm5, [{factors} + {stride}*1]",
                    "2:",
                    $(concat!($instruction, " tmm", $accumulator, ", tmm4, tmm5"),)+
                    $(concat!($instruction, " tmm", $accumulator, ", tmm4, tmm5"),)+
                    $(concat!($instruction, " tmm", $accumulator, ", tmm4, tmm5"),)+
                    $(concat!($instruction, " tmm", $accumulator, ", tmm4, tmm5"),)+
                    "dec rcx",
                    "jnz 2b",
                    "tilerelease",
                    configuration = in(reg) &raw const configuration,
                    factors = in(reg) FACTORS.as_ptr(),
                    stride = in(reg) 0u64,
                    inout("rcx") passes => _,
                    clobber_abi("sysv64"),
                    options(readonly, nostack),
                );
            }
        }
        repeat as unsafe fn(u64)
    }};
}

/// Defines an instruction's loops on 1 to 4 accumulators.
macro_rules! loops {
    ($loops:ident: $instruction:literal) => {
        #[doc = concat!("`", $instruction, "`.")]
        pub const $loops: Repeat = {
            unsafe fn run(accumulators: usize, passes: u64) {
                static LOOPS: [unsafe fn(u64); 4] = [
            tile_loop!($instruction: 0),
            tile_loop!($instruction: 0 1),
            tile_loop!($instruction: 0 1 2),
            tile_loop!($instruction: 0 1 2 3),
                ];
                // SAFETY: as for this function.
                unsafe { LOOPS[accumulators - 1](passes) }
            }
            Repeat { most: 4, problems: 1, run }
        };
    };
}

loops!(TDPBF16PS: "tdpbf16ps");
loops!(TDPFP16PS: "tdpfp16ps");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vnni_rows_interleave_pairs_of_each_column() {
        const K: usize = 32;
        // Each element names its place: row k and column n of B.
        let element = |k: usize, n: usize| [k as u8, n as u8];
        let mut columns = [0; TILE];
        for n in 0..16 {
            for k in 0..K {
                columns[(n * K + k) * 2..][..2].copy_from_slice(&element(k, n));
            }
        }
        let mut tile = [0; TILE];
        to_vnni(&columns, &mut tile);
        for p in 0..K / 2 {
            for n in 0..16 {
                let pair = &tile[p * ROW + n * 4..][..4];
                assert_eq!(pair, [element(2 * p, n), element(2 * p + 1, n)].concat(), "row {p}, column {n}");
            }
        }
    }

    /// The tile product's index arithmetic as in the SDM's pseudo-code, on integers in place of bf16,
    /// gives A·B from the row-by-row A and the repacked B.
    #[test]
    fn the_tile_product_of_repacked_operands_is_the_matrix_product() {
        let small = |i: usize| (i * i % 11 + i % 7) as i16;
        let words =
            |tile: &[u8; TILE]| tile.as_chunks::<2>().0.iter().map(|&w| i16::from_le_bytes(w)).collect();
        let a: Vec<i16> = (0..512).map(small).collect();
        let b_columns: Vec<i16> = (0..512).map(|i| small(i + 1000)).collect();
        let bytes: Vec<u8> = b_columns.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut tile = [0; TILE];
        to_vnni(bytes.as_slice().try_into().unwrap(), &mut tile);
        let b: Vec<i16> = words(&tile);
        for m in 0..16 {
            for n in 0..16 {
                let tiles: i16 = (0..16)
                    .map(|k| {
                        a[m * 32 + 2 * k] * b[k * 32 + 2 * n] + a[m * 32 + 2 * k + 1] * b[k * 32 + 2 * n + 1]
                    })
                    .sum();
                let matrices: i16 = (0..32).map(|k| a[m * 32 + k] * b_columns[n * 32 + k]).sum();
                assert_eq!(tiles, matrices, "row {m}, column {n}");
            }
        }
    }

    #[test]
    fn the_configuration_has_three_full_tiles() {
        // SDM volume 2A, LDTILECFG: palette, start row, 14 reserved bytes, a 16-bit colsb for each of
        // 8 tiles, 16 reserved bytes, an 8-bit row count for each of 8 tiles, 8 reserved bytes.
        let mut expected = [0; 64];
        expected[0] = 1;
        for tile in 0..3 {
            expected[16 + 2 * tile..][..2].copy_from_slice(&64u16.to_le_bytes());
            expected[48 + tile] = 16;
        }
        assert_eq!(Configuration::full_tiles(3).0, expected);
        assert_eq!(align_of::<Configuration>(), 64);
    }
}
