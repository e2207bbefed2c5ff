//! Instructions executed over and over on registers alone, and what their speed is compared with.
//!
//! Loops of a unit have no loads and no stores. With one accumulator each execution waits for the one
//! before; with several, executions are independent in as many chains.

use std::arch::asm;
use std::time::Duration;

/// A unit's loops.
#[derive(Clone, Copy, Debug)]
pub struct Repeat {
    /// The most accumulators that a loop has.
    pub most: usize,
    /// Problems that one execution computes.
    pub problems: usize,
    /// Executes the instruction on so many accumulators, at least one and at most `most`, one after
    /// another, [`ROUNDS`] times a pass, in so many passes, at least one.
    ///
    /// # Safety
    /// The instruction must be present.
    pub run: unsafe fn(accumulators: usize, passes: u64),
}

/// Executions on each accumulator in one pass of a loop: enough to hide the loop's own two instructions.
pub const ROUNDS: u64 = 4;

/// Additions in a pass of [`dependent_adds`].
const ADDS: u64 = 16;

/// Executes integer additions of which each waits for the one before: a clock of the processor's cycles,
/// as each takes one. Returns how many there were: `count`, rounded up to a whole pass.
///
/// Registers are added, not constants: some processors do away with the latter before they execute.
pub fn dependent_adds(count: u64) -> u64 {
    let passes = count.div_ceil(ADDS).max(1);
    // SAFETY: adds in registers.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "2:",
            "add {sum}, {one}", "add {sum}, {one}", "add {sum}, {one}", "add {sum}, {one}",
            "add {sum}, {one}", "add {sum}, {one}", "add {sum}, {one}", "add {sum}, {one}",
            "add {sum}, {one}", "add {sum}, {one}", "add {sum}, {one}", "add {sum}, {one}",
            "add {sum}, {one}", "add {sum}, {one}", "add {sum}, {one}", "add {sum}, {one}",
            "dec {passes}",
            "jnz 2b",
            sum = inout(reg) 0u64 => _,
            one = in(reg) 1u64,
            passes = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
    // SAFETY: adds in registers.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "2:",
            "add {sum}, {sum}, {one}", "add {sum}, {sum}, {one}", "add {sum}, {sum}, {one}", "add {sum}, {sum}, {one}",
            "add {sum}, {sum}, {one}", "add {sum}, {sum}, {one}", "add {sum}, {sum}, {one}", "add {sum}, {sum}, {one}",
            "add {sum}, {sum}, {one}", "add {sum}, {sum}, {one}", "add {sum}, {sum}, {one}", "add {sum}, {sum}, {one}",
            "add {sum}, {sum}, {one}", "add {sum}, {sum}, {one}", "add {sum}, {sum}, {one}", "add {sum}, {sum}, {one}",
            "subs {passes}, {passes}, #1",
            "b.ne 2b",
            sum = inout(reg) 0u64 => _,
            one = in(reg) 1u64,
            passes = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
    passes * ADDS
}

/// How long this thread has been executing, as the operating system counts; `None` where it is not asked.
/// Less than what has gone by means that something else had the processor.
pub fn thread_time() -> Option<Duration> {
    #[cfg(any(
        all(target_arch = "x86_64", target_os = "linux"),
        all(target_arch = "aarch64", target_os = "macos")
    ))]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes `time`.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } != 0;
        let nanoseconds = u32::try_from(time.tv_nsec).ok();
        u64::try_from(time.tv_sec).ok().zip(nanoseconds).filter(|_| !failed).map(|(s, n)| Duration::new(s, n))
    }
    #[cfg(not(any(
        all(target_arch = "x86_64", target_os = "linux"),
        all(target_arch = "aarch64", target_os = "macos")
    )))]
    None
}
