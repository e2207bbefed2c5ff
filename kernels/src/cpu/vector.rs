//! Vector instructions: each lane is a problem of its own.
//!
//! A lane takes equally many bytes of A, B, C and D, so the arrays are vectors as they are, and only
//! the last one needs padding.

use std::arch::asm;

use super::Problems;
use super::repeat::Repeat;

/// Bytes of the widest vector register.
const ZMM: usize = 64;
const YMM: usize = 32;

/// Computes `bytes` bytes of each array, a positive multiple of the register's size.
///
/// # Safety
/// The instruction must be present and the pointers good for `bytes` bytes.
type Block = unsafe fn(a: *const u8, b: *const u8, c: *const u8, d: *mut u8, bytes: usize, mxcsr: u32);

/// Defines a kernel for a three-operand instruction whose destination is C and D, with A and B the
/// second and third operand.
macro_rules! kernel {
    ($kernel:ident: $instruction:literal on $register:literal of $width:ident) => {
        #[doc = concat!("`", $instruction, "` on `", $register, "` registers.")]
        ///
        /// # Safety
        /// See [`Kernel`](super::Kernel).
        pub unsafe fn $kernel(problems: Problems<'_>, d: &mut [u8], mxcsr: u32) {
            unsafe fn block(
                a: *const u8,
                b: *const u8,
                c: *const u8,
                d: *mut u8,
                bytes: usize,
                mxcsr: u32,
            ) {
                let mut saved = 0u32;
                // SAFETY: reads and writes `bytes` bytes through each pointer, and `saved` and
                // `mxcsr`. MXCSR is restored. All vector registers are declared clobbered by the
                // System V convention, as vzeroupper touches them all.
                unsafe {
                    asm!(
                        "stmxcsr [{saved}]",
                        "ldmxcsr [{mxcsr}]",
                        "2:",
                        concat!("vmovups ", $register, "0, [{c} + rax]"),
                        concat!("vmovups ", $register, "1, [{a} + rax]"),
                        concat!("vmovups ", $register, "2, [{b} + rax]"),
                        concat!($instruction, " ", $register, "0, ", $register, "1, ", $register, "2"),
                        concat!("vmovups [{d} + rax], ", $register, "0"),
                        "add rax, {width}",
                        "cmp rax, {bytes}",
                        "jb 2b",
                        "ldmxcsr [{saved}]",
                        "vzeroupper",
                        a = in(reg) a,
                        b = in(reg) b,
                        c = in(reg) c,
                        d = in(reg) d,
                        bytes = in(reg) bytes,
                        saved = in(reg) &raw mut saved,
                        mxcsr = in(reg) &raw const mxcsr,
                        width = const $width,
                        inout("rax") 0usize => _,
                        clobber_abi("sysv64"),
                        options(nostack),
                    );
                }
            }
            // SAFETY: as for this function.
            unsafe { in_blocks::<$width>(block, problems, d, mxcsr) }
        }
    };
}

kernel!(vdpbf16ps_zmm: "vdpbf16ps" on "zmm" of ZMM);
kernel!(vfmadd231ps_zmm: "vfmadd231ps" on "zmm" of ZMM);
kernel!(vfmadd231ps_ymm: "vfmadd231ps" on "ymm" of YMM);
kernel!(vfmadd231pd_zmm: "vfmadd231pd" on "zmm" of ZMM);
kernel!(vfmadd231pd_ymm: "vfmadd231pd" on "ymm" of YMM);
kernel!(vfmadd231ph_zmm: "vfmadd231ph" on "zmm" of ZMM);

/// Runs the whole vectors where they lie, and the rest in a vector padded with zeros.
///
/// # Safety
/// The instruction must be present and all four arrays equally long.
unsafe fn in_blocks<const WIDTH: usize>(block: Block, problems: Problems<'_>, d: &mut [u8], mxcsr: u32) {
    let (a, a_rest) = problems.a.as_chunks::<WIDTH>();
    let (b, b_rest) = problems.b.as_chunks::<WIDTH>();
    let (c, c_rest) = problems.c.as_chunks::<WIDTH>();
    let (d, d_rest) = d.as_chunks_mut::<WIDTH>();
    let run = |a: &[[u8; WIDTH]], b: &[[u8; WIDTH]], c: &[[u8; WIDTH]], d: &mut [[u8; WIDTH]]| {
        let [a, b, c] = [a, b, c].map(|vectors| vectors.as_ptr().cast());
        // SAFETY: the arrays are equally long, and not empty.
        unsafe { block(a, b, c, d.as_mut_ptr().cast(), size_of_val(d), mxcsr) }
    };
    if !d.is_empty() {
        run(a, b, c, d);
    }
    if !d_rest.is_empty() {
        let [a, b, c] = [a_rest, b_rest, c_rest].map(|rest| {
            let mut padded = [0; WIDTH];
            padded[..rest.len()].copy_from_slice(rest);
            padded
        });
        let mut padded = [0; WIDTH];
        run(&[a], &[b], &[c], std::slice::from_mut(&mut padded));
        d_rest.copy_from_slice(&padded[..d_rest.len()]);
    }
}

/// What the factors of a loop are filled with: positive normal numbers in every format.
static FACTORS: [u32; 1] = [0x3F3F_3F3F];

/// A loop on accumulators that start as zeros, with the registers 14 and 15 as factors.
macro_rules! register_loop {
    ($instruction:literal on $register:literal: $($accumulator:literal)+) => {{
        unsafe fn repeat(passes: u64) {
            // SAFETY: reads `FACTORS`. All vector registers are declared clobbered by the System V
            // convention, as vzeroall and vzeroupper touch them all.
            unsafe {
                asm!(
                    "vzeroall",
                    concat!("vbroadcastss ", $register, "14, dword ptr [{factors}]"),
                    concat!("vbroadcastss ", $register, "15, dword ptr [{factors}]"),
                    "2:",
                    $(concat!($instruction, " ", $register, $accumulator, ", ", $register, "14, ", $register, "15"),)+
                    $(concat!($instruction, " ", $register, $accumulator, ", ", $register, "14, ", $register, "15"),)+
                    $(concat!($instruction, " ", $register, $accumulator, ", ", $register, "14, ", $register, "15"),)+
                    $(concat!($instruction, " ", $register, $accumulator, ", ", $register, "14, ", $register, "15"),)+
                    "dec rcx",
                    "jnz 2b",
                    "vzeroupper",
                    factors = in(reg) FACTORS.as_ptr(),
                    inout("rcx") passes => _,
                    clobber_abi("sysv64"),
                    options(readonly, nostack),
                );
            }
        }
        repeat as unsafe fn(u64)
    }};
}

/// Defines an instruction's loops on 1 to 12 accumulators.
macro_rules! loops {
    ($loops:ident: $instruction:literal on $register:literal of $width:ident, $element:literal bytes each) => {
        #[doc = concat!("`", $instruction, "` on `", $register, "` registers.")]
        pub const $loops: Repeat = {
            unsafe fn run(accumulators: usize, passes: u64) {
                static LOOPS: [unsafe fn(u64); 12] = [
            register_loop!($instruction on $register: 0),
            register_loop!($instruction on $register: 0 1),
            register_loop!($instruction on $register: 0 1 2),
            register_loop!($instruction on $register: 0 1 2 3),
            register_loop!($instruction on $register: 0 1 2 3 4),
            register_loop!($instruction on $register: 0 1 2 3 4 5),
            register_loop!($instruction on $register: 0 1 2 3 4 5 6),
            register_loop!($instruction on $register: 0 1 2 3 4 5 6 7),
            register_loop!($instruction on $register: 0 1 2 3 4 5 6 7 8),
            register_loop!($instruction on $register: 0 1 2 3 4 5 6 7 8 9),
            register_loop!($instruction on $register: 0 1 2 3 4 5 6 7 8 9 10),
            register_loop!($instruction on $register: 0 1 2 3 4 5 6 7 8 9 10 11),
                ];
                // SAFETY: as for this function.
                unsafe { LOOPS[accumulators - 1](passes) }
            }
            Repeat { most: 12, problems: $width / $element, run }
        };
    };
}

loops!(VDPBF16PS_ZMM: "vdpbf16ps" on "zmm" of ZMM, 4 bytes each);
loops!(VFMADD231PS_ZMM: "vfmadd231ps" on "zmm" of ZMM, 4 bytes each);
loops!(VFMADD231PS_YMM: "vfmadd231ps" on "ymm" of YMM, 4 bytes each);
loops!(VFMADD231PD_ZMM: "vfmadd231pd" on "zmm" of ZMM, 8 bytes each);
loops!(VFMADD231PD_YMM: "vfmadd231pd" on "ymm" of YMM, 8 bytes each);
loops!(VFMADD231PH_ZMM: "vfmadd231ph" on "zmm" of ZMM, 2 bytes each);
