//! Vector instructions: each lane is a problem of its own.
//!
//! A lane takes equally many bytes of A, B, C and D, so the arrays are vectors as they are, and only
//! the last one needs padding.

use std::arch::asm;

use super::Problems;

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
