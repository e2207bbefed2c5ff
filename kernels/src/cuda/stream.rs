//! Keeping a GPU busy: while it computes one part of a batch, the next one is packed and sent.
//!
//! A slot is a stream with its buffers, in pinned memory on the host and on the GPU. The parts of a
//! batch take turns on two of them.

use std::ffi::c_void;
use std::ptr;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUresult};

use super::driver::{Fault, Kernel, Session, check};
use super::{Program, THREADS};

/// Slots that take turns.
const SLOTS: usize = 2;
/// Bytes of a part, unless a single group takes more: large enough that a transfer is worth its
/// start, small enough that packing and computing overlap.
const PART: usize = 32 << 20;
/// CTAs for each multiprocessor: more than fit at a time, so that none idles at the end.
const CTAS: u32 = 32;
/// Where arrays begin in a buffer.
const ALIGNMENT: usize = 256;

/// A stream and its buffers.
#[derive(Debug)]
pub(super) struct Slot {
    stream: sys::CUstream,
    finished: sys::CUevent,
    input: Buffer,
    output: Buffer,
    /// The groups that it is computing: the first, and how many.
    busy: Option<(usize, usize)>,
}

/// Memory on the host and on the GPU, of the same size.
#[derive(Debug)]
struct Buffer {
    host: *mut c_void,
    device: sys::CUdeviceptr,
    size: usize,
}

impl Buffer {
    const NONE: Buffer = Buffer { host: ptr::null_mut(), device: 0, size: 0 };

    /// Makes it at least that large; what it holds is lost.
    fn grow(&mut self, size: usize) -> Result<(), Fault> {
        if self.size >= size {
            return Ok(());
        }
        self.free();
        let full = |call, result| match check(call, result) {
            Err(Fault::OutOfMemory(_)) => Err(Fault::OutOfMemory(size.div_ceil(1 << 20))),
            other => other,
        };
        // SAFETY: each writes one pointer, which `free` frees. A part that is left when the other
        // fails is freed then, too.
        unsafe {
            full("cuMemHostAlloc", sys::cuMemHostAlloc(&raw mut self.host, size, 0))?;
            full("cuMemAlloc", sys::cuMemAlloc_v2(&raw mut self.device, size))?;
        }
        // Pinned memory comes with whatever it held.
        // SAFETY: it is `size` bytes long.
        unsafe { ptr::write_bytes(self.host.cast::<u8>(), 0, size) };
        self.size = size;
        Ok(())
    }

    fn free(&mut self) {
        // SAFETY: both are what `grow` got, and nothing is under way on them.
        unsafe {
            if !self.host.is_null() {
                let _ = sys::cuMemFreeHost(self.host);
            }
            if self.device != 0 {
                let _ = sys::cuMemFree_v2(self.device);
            }
        }
        *self = Buffer::NONE;
    }

    /// The host's memory from `offset` on.
    ///
    /// # Safety
    /// Nothing else may use these bytes meanwhile: no transfer is under way, no other slice is alive.
    unsafe fn bytes<'a>(&mut self, offset: usize, length: usize) -> &'a mut [u8] {
        assert!(offset + length <= self.size, "bytes of the buffer");
        // SAFETY: within the allocation, initialised by `grow`; the caller sees to the rest.
        unsafe { std::slice::from_raw_parts_mut(self.host.cast::<u8>().add(offset), length) }
    }
}

impl Slot {
    fn new() -> Result<Slot, Fault> {
        let (mut stream, mut finished) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: each writes one handle, destroyed when the slot is dropped.
        unsafe {
            let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
            check("cuStreamCreate", sys::cuStreamCreate(&raw mut stream, flags))?;
            let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
            check("cuEventCreate", sys::cuEventCreate(&raw mut finished, flags))?;
        }
        Ok(Slot { stream, finished, input: Buffer::NONE, output: Buffer::NONE, busy: None })
    }

    /// Waits until its work has ended, and says which that was.
    fn wait(&mut self, timeout: Duration) -> Result<Option<(usize, usize)>, Fault> {
        let Some(groups) = self.busy else { return Ok(None) };
        let started = Instant::now();
        loop {
            // SAFETY: the event was recorded.
            match unsafe { sys::cuEventQuery(self.finished) } {
                CUresult::CUDA_ERROR_NOT_READY if started.elapsed() < timeout => {
                    // Short launches are polled for, long ones slept through.
                    match started.elapsed() < Duration::from_millis(1) {
                        true => std::hint::spin_loop(),
                        false => std::thread::sleep(Duration::from_micros(200)),
                    }
                }
                CUresult::CUDA_ERROR_NOT_READY => return Err(Fault::TimedOut(timeout)),
                result => {
                    check("cuEventQuery", result)?;
                    self.busy = None;
                    return Ok(Some(groups));
                }
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: created by `new`, and destroyed once. Buffers are freed only after the stream's work
        // has ended.
        unsafe {
            let _ = sys::cuStreamSynchronize(self.stream);
            let _ = sys::cuEventDestroy_v2(self.finished);
            let _ = sys::cuStreamDestroy_v2(self.stream);
        }
        self.input.free();
        self.output.free();
    }
}

/// Where the arrays of a part lie in its input buffer, and how much there is of everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where A, B, C, SA and SB begin.
    pub offsets: [usize; 5],
    /// Bytes of each.
    pub lengths: [usize; 5],
    /// Bytes of all of them.
    pub input: usize,
    /// Bytes of D.
    pub output: usize,
}

impl Part {
    /// That many groups of a program.
    pub fn of(program: &Program, groups: usize) -> Part {
        let fragments = &program.fragments;
        let scales = |fragment: &Option<_>| fragment.as_ref().map_or(0, super::layout::Fragment::bytes);
        let each = [
            fragments.a.bytes(),
            fragments.b.bytes(),
            fragments.c.bytes(),
            scales(&fragments.sa),
            scales(&fragments.sb),
        ];
        let lengths = each.map(|bytes| bytes * groups);
        let mut input = 0;
        let offsets = lengths.map(|length| {
            let offset = input;
            input += length.next_multiple_of(ALIGNMENT);
            offset
        });
        Part { offsets, lengths, input, output: fragments.d.bytes() * groups }
    }
}

/// How many groups a part has: what 32 MiB hold, or all if they are few, but not more than leave room for
/// two parts in a quarter of the free memory; at least one.
pub fn groups_at_once(program: &Program, groups: usize, free: usize) -> usize {
    let one = Part::of(program, 1);
    let each = one.lengths.iter().sum::<usize>() + one.output;
    let room = (free / 4 / SLOTS).min(PART);
    (room / each).clamp(1, groups.max(1))
}

impl Session {
    /// Runs a kernel on `groups` groups. `pack` fills the arrays A, B, C, SA and SB of so many groups
    /// from a given one on; `unpack` takes D of these groups. Each part of the batch has `timeout` to
    /// end.
    ///
    /// # Errors
    /// If memory does not suffice, a launch faults or does not end.
    pub fn run(
        &mut self,
        kernel: Kernel,
        program: &Program,
        groups: usize,
        timeout: Duration,
        mut pack: impl FnMut(usize, usize, [&mut [u8]; 5]),
        mut unpack: impl FnMut(usize, usize, &[u8]),
    ) -> Result<(), Fault> {
        self.enter()?;
        while self.slots.len() < SLOTS {
            self.slots.push(Slot::new()?);
        }
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two integers.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) })?;
        // What the slots hold already is as good as free.
        let held: usize = self.slots.iter().map(|slot| slot.input.size + slot.output.size).sum();
        let at_once = groups_at_once(program, groups, free + held);
        let multiprocessors = self.gpu().multiprocessors;
        let result = (|slots: &mut [Slot]| {
            let starts = (0..groups).step_by(at_once);
            for (turn, first) in starts.enumerate() {
                let slot = &mut slots[turn % SLOTS];
                collect(slot, program, timeout, &mut unpack)?;
                let count = at_once.min(groups - first);
                let part = Part::of(program, count);
                slot.input.grow(part.input)?;
                slot.output.grow(part.output)?;
                let arrays = std::array::from_fn(|index| {
                    // SAFETY: the slot is idle, and the arrays do not overlap.
                    unsafe { slot.input.bytes(part.offsets[index], part.lengths[index]) }
                });
                pack(first, count, arrays);
                launch(slot, kernel, program, &part, count, multiprocessors)?;
                slot.busy = Some((first, count));
            }
            // In the order of their parts: the slot whose turn would be next has the older one.
            let turns = groups.div_ceil(at_once);
            for turn in turns..turns + SLOTS {
                collect(&mut slots[turn % SLOTS], program, timeout, &mut unpack)?;
            }
            Ok(())
        })(&mut self.slots);
        if result.as_ref().is_err_and(|fault: &Fault| !fault.is_final()) {
            // What is still under way belongs to a batch that nobody waits for any more.
            self.slots.clear();
        }
        self.note(result)
    }
}

/// Waits for a slot's work, if there is any, and unpacks it.
fn collect(
    slot: &mut Slot,
    program: &Program,
    timeout: Duration,
    unpack: &mut impl FnMut(usize, usize, &[u8]),
) -> Result<(), Fault> {
    if let Some((first, count)) = slot.wait(timeout)? {
        let length = Part::of(program, count).output;
        // SAFETY: the slot's work has ended.
        unpack(first, count, unsafe { slot.output.bytes(0, length) });
    }
    Ok(())
}

/// Sends a part, computes it, and fetches the result, all in the slot's stream.
fn launch(
    slot: &mut Slot,
    kernel: Kernel,
    program: &Program,
    part: &Part,
    groups: usize,
    multiprocessors: u32,
) -> Result<(), Fault> {
    let count = u32::try_from(groups).expect("a part has few groups");
    let ctas = count.div_ceil(program.groups_per_cta).min(multiprocessors.max(1) * CTAS);
    let mut arrays = part.offsets.map(|offset| slot.input.device + offset as u64);
    let mut output = slot.output.device;
    let mut number = count;
    let [a, b, c, sa, sb] = &mut arrays;
    let mut parameters: [*mut c_void; 7] = [
        (&raw mut *a).cast(),
        (&raw mut *b).cast(),
        (&raw mut *c).cast(),
        (&raw mut *sa).cast(),
        (&raw mut *sb).cast(),
        (&raw mut output).cast(),
        (&raw mut number).cast(),
    ];
    // SAFETY: the buffers are as large as the part, on both sides; the kernel takes these seven
    // parameters, which are copied before the call returns; it reads and writes within the arrays of
    // `groups` groups. The host's memory stays untouched until the event has been reached.
    unsafe {
        let sent = sys::cuMemcpyHtoDAsync_v2(slot.input.device, slot.input.host, part.input, slot.stream);
        check("cuMemcpyHtoDAsync", sent)?;
        let launched = sys::cuLaunchKernel(
            kernel.function,
            ctas,
            1,
            1,
            THREADS,
            1,
            1,
            0,
            slot.stream,
            parameters.as_mut_ptr(),
            ptr::null_mut(),
        );
        check("cuLaunchKernel", launched)?;
        let fetched =
            sys::cuMemcpyDtoHAsync_v2(slot.output.host, slot.output.device, part.output, slot.stream);
        check("cuMemcpyDtoHAsync", fetched)?;
        check("cuEventRecord", sys::cuEventRecord(slot.finished, slot.stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{Kind, Spec};
    use mmaprobe_model::format::{E2M1, FP32, UE4M3};
    use mmaprobe_model::tree::Scale;

    fn program() -> Program {
        let spec = Spec {
            kind: Kind::MmaBlockScale,
            m: 16,
            n: 8,
            k: 64,
            a: E2M1,
            b: E2M1,
            c: FP32,
            d: FP32,
            scale: Some(Scale { format: UE4M3, block: 16 }),
            blocks: 1,
        };
        Program::new(&spec, "sm_120a").unwrap()
    }

    #[test]
    fn arrays_of_a_part_follow_each_other_and_are_aligned() {
        let part = Part::of(&program(), 3);
        assert_eq!(part.lengths, [512, 256, 512, 128, 128].map(|each| 3 * each));
        assert_eq!(part.output, 3 * 512);
        for (index, &offset) in part.offsets.iter().enumerate() {
            let end = part.offsets.get(index + 1).copied().unwrap_or(part.input);
            assert!(
                offset.is_multiple_of(ALIGNMENT)
                    && (part.lengths[index]..part.lengths[index] + ALIGNMENT).contains(&(end - offset))
            );
        }
    }

    #[test]
    fn parts_fit_the_memory_and_the_batch() {
        let each = 512 + 256 + 512 + 128 + 128 + 512;
        let program = program();
        assert_eq!(groups_at_once(&program, 1 << 30, usize::MAX), PART / each);
        assert_eq!(groups_at_once(&program, 7, usize::MAX), 7);
        // Two slots in a quarter of what is free.
        assert_eq!(groups_at_once(&program, 1 << 30, 8 * 10 * each), 10);
        assert_eq!(groups_at_once(&program, 1 << 30, 0), 1);
        assert_eq!(groups_at_once(&program, 0, 0), 1);
    }
}
