//! Keeping a GPU busy: while it computes one part of a batch, the next one is packed and sent.
//!
//! A slot is a stream with its buffers, in pinned memory on the host and on the GPU. The parts of a
//! batch take turns on two of them. What a GPU is asked for on the way is a vendor's [`Runtime`].

use std::ffi::c_void;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ptr;
use std::time::{Duration, Instant};

use crate::fault::Fault;
use crate::fragment::{Fragment, Fragments};

/// Slots that take turns.
const SLOTS: usize = 2;
/// Bytes of a part, unless a single group takes more: large enough that a transfer is worth its
/// start, small enough that packing and computing overlap.
const PART: usize = 32 << 20;
/// Blocks of threads for each multiprocessor: more than fit at a time, so that none idles at the end.
const BLOCKS: u32 = 32;
/// Where arrays begin in a buffer.
const ALIGNMENT: usize = 256;

/// What a kernel is launched with.
pub trait Launch {
    /// Where the matrices of a group are.
    fn fragments(&self) -> &Fragments;
    /// Groups that a block of threads works on at a time.
    fn groups_per_block(&self) -> u32;
}

/// A vendor's runtime, for one GPU: its memory, streams, events and launches, all asynchronous.
///
/// But for [`gpus`](Runtime::gpus), [`open`](Runtime::open) and [`enter`](Runtime::enter), every function
/// is called in a thread that has entered.
pub trait Runtime: Sized {
    /// A GPU in words.
    type Gpu: Clone;
    /// A kernel as text.
    type Program: Launch + Send;
    /// A kernel on the GPU; it lives as long as the process, as there are few.
    type Kernel: Copy + Send;
    /// A queue of work.
    type Stream: Copy + Debug;
    /// A mark in a stream.
    type Event: Copy + Debug;

    /// The GPUs that it sees.
    ///
    /// # Errors
    /// If there is no driver, or it sees none.
    fn gpus() -> Result<Vec<Self::Gpu>, Fault>;
    /// Opens one of them.
    ///
    /// # Errors
    /// If it cannot be used.
    fn open(gpu: Self::Gpu) -> Result<Self, Fault>;
    /// The GPU.
    fn gpu(&self) -> &Self::Gpu;
    /// Its multiprocessors, or what corresponds to them.
    fn multiprocessors(&self) -> u32;
    /// Makes the GPU this thread's.
    fn enter(&self) -> Result<(), Fault>;
    /// Leaves the GPU, once nothing of it is used any more.
    fn leave(&mut self);
    /// Has a program compiled.
    fn load(&self, program: &Self::Program) -> Result<Self::Kernel, Fault>;
    /// Bytes of the GPU's memory that are free.
    fn free_bytes() -> Result<usize, Fault>;

    /// Pinned memory of the host.
    fn allocate_host(bytes: usize) -> Result<*mut c_void, Fault>;
    /// Frees what [`allocate_host`](Runtime::allocate_host) gave.
    ///
    /// # Safety
    /// Once, and nothing is under way on it.
    unsafe fn free_host(memory: *mut c_void);
    /// Memory of the GPU, by its address.
    fn allocate(bytes: usize) -> Result<u64, Fault>;
    /// Frees what [`allocate`](Runtime::allocate) gave.
    ///
    /// # Safety
    /// Once, and nothing is under way on it.
    unsafe fn free(memory: u64);

    /// A stream that waits for no other.
    fn stream() -> Result<Self::Stream, Fault>;
    /// Waits for a stream's work, and ends it.
    ///
    /// # Safety
    /// Once, and it is not used any more.
    unsafe fn end_stream(stream: Self::Stream);
    /// An event.
    fn event() -> Result<Self::Event, Fault>;
    /// Ends an event.
    ///
    /// # Safety
    /// Once, and it is not used any more.
    unsafe fn end_event(event: Self::Event);
    /// Marks the end of what is in a stream by now.
    ///
    /// # Safety
    /// Neither has been ended.
    unsafe fn record(event: Self::Event, stream: Self::Stream) -> Result<(), Fault>;
    /// Whether the work before the mark has ended.
    ///
    /// # Safety
    /// The event was recorded, and has not been ended.
    unsafe fn is_over(event: Self::Event) -> Result<bool, Fault>;

    /// Copies to the GPU.
    ///
    /// # Safety
    /// Both have so many bytes, and stay untouched until the stream has come to its end.
    unsafe fn send(to: u64, from: *const c_void, bytes: usize, stream: Self::Stream) -> Result<(), Fault>;
    /// Copies from the GPU.
    ///
    /// # Safety
    /// As for [`send`](Runtime::send).
    unsafe fn fetch(to: *mut c_void, from: u64, bytes: usize, stream: Self::Stream) -> Result<(), Fault>;
    /// Launches so many blocks of a kernel's threads.
    ///
    /// # Safety
    /// The parameters are those that the kernel takes, and it stays within the memory that they name.
    unsafe fn launch(
        kernel: Self::Kernel,
        blocks: u32,
        parameters: &mut [*mut c_void],
        stream: Self::Stream,
    ) -> Result<(), Fault>;
}

/// A GPU in use: what is needed to keep it busy.
#[derive(Debug)]
pub struct Session<R: Runtime> {
    runtime: R,
    slots: Vec<Slot<R>>,
    /// Set once the GPU accepts nothing more: nothing is freed then, because freeing could wait for
    /// ever.
    broken: Option<Fault>,
}

// SAFETY: a runtime's handles may be used from any thread that has entered, which every method does
// first; `&mut self` keeps threads apart.
unsafe impl<R: Runtime> Send for Session<R> {}

/// A stream and its buffers.
#[derive(Debug)]
struct Slot<R: Runtime> {
    stream: R::Stream,
    finished: R::Event,
    input: Buffer<R>,
    output: Buffer<R>,
    /// The groups that it is computing: the first, and how many.
    busy: Option<(usize, usize)>,
}

/// Memory on the host and on the GPU, of the same size.
#[derive(Debug)]
struct Buffer<R> {
    host: *mut c_void,
    device: u64,
    size: usize,
    runtime: PhantomData<R>,
}

impl<R: Runtime> Buffer<R> {
    const NONE: Buffer<R> = Buffer { host: ptr::null_mut(), device: 0, size: 0, runtime: PhantomData };

    /// Makes it at least that large; what it holds is lost.
    fn grow(&mut self, size: usize) -> Result<(), Fault> {
        if self.size >= size {
            return Ok(());
        }
        self.free();
        // A part that is left when the other fails is freed by the next `free`.
        self.host = R::allocate_host(size).map_err(|fault| fault.for_bytes(size))?;
        self.device = R::allocate(size).map_err(|fault| fault.for_bytes(size))?;
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
                R::free_host(self.host);
            }
            if self.device != 0 {
                R::free(self.device);
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

impl<R: Runtime> Slot<R> {
    fn new() -> Result<Slot<R>, Fault> {
        let stream = R::stream()?;
        Ok(Slot { stream, finished: R::event()?, input: Buffer::NONE, output: Buffer::NONE, busy: None })
    }

    /// Waits until its work has ended, and says which that was.
    fn wait(&mut self, timeout: Duration) -> Result<Option<(usize, usize)>, Fault> {
        let Some(groups) = self.busy else { return Ok(None) };
        let started = Instant::now();
        // SAFETY: the event is this slot's, and was recorded when it became busy.
        while !unsafe { R::is_over(self.finished) }? {
            if started.elapsed() >= timeout {
                return Err(Fault::TimedOut(timeout));
            }
            // Short launches are polled for, long ones slept through.
            match started.elapsed() < Duration::from_millis(1) {
                true => std::hint::spin_loop(),
                false => std::thread::sleep(Duration::from_micros(200)),
            }
        }
        self.busy = None;
        Ok(Some(groups))
    }
}

impl<R: Runtime> Drop for Slot<R> {
    fn drop(&mut self) {
        // SAFETY: created by `new`, and ended once. Buffers are freed only after the stream's work has
        // ended.
        unsafe {
            R::end_stream(self.stream);
            R::end_event(self.finished);
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
    pub fn of(program: &impl Launch, groups: usize) -> Part {
        let fragments = program.fragments();
        let scales = |fragment: &Option<_>| fragment.as_ref().map_or(0, Fragment::bytes);
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
pub fn groups_at_once(program: &impl Launch, groups: usize, free: usize) -> usize {
    let one = Part::of(program, 1);
    let each = one.lengths.iter().sum::<usize>() + one.output;
    let room = (free / 4 / SLOTS).min(PART);
    (room / each).clamp(1, groups.max(1))
}

impl<R: Runtime> Session<R> {
    /// Opens the GPU of that number.
    ///
    /// # Errors
    /// If there is no driver or no such GPU, or it cannot be used.
    pub fn open(ordinal: usize) -> Result<Session<R>, Fault> {
        let gpus = R::gpus()?;
        let count = gpus.len();
        let gpu = gpus.into_iter().nth(ordinal).ok_or(Fault::NoSuchGpu { ordinal, count })?;
        Ok(Session { runtime: R::open(gpu)?, slots: Vec::new(), broken: None })
    }

    /// The GPU.
    pub fn gpu(&self) -> &R::Gpu {
        self.runtime.gpu()
    }

    /// Makes the GPU this thread's, unless it is past use.
    fn enter(&self) -> Result<(), Fault> {
        match &self.broken {
            Some(fault) => Err(fault.clone()),
            None => self.runtime.enter(),
        }
    }

    /// Remembers a fault after which nothing can be run.
    fn note<T>(&mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        if let Err(fault) = &result
            && fault.is_final()
        {
            self.broken = Some(fault.clone());
        }
        result
    }

    /// Has a program compiled for the GPU.
    ///
    /// # Errors
    /// If the compiler refuses: it is too old, or the GPU lacks the instruction.
    pub fn load(&mut self, program: &R::Program) -> Result<R::Kernel, Fault> {
        self.enter()?;
        let result = self.runtime.load(program);
        self.note(result)
    }

    /// Runs a kernel on `groups` groups. `pack` fills the arrays A, B, C, SA and SB of so many groups
    /// from a given one on; `unpack` takes D of these groups. The kernel's parameters are the addresses
    /// of A, B, C, SA, SB and D, the number of groups, and `more`. Each part of the batch has `timeout`
    /// to end.
    ///
    /// # Errors
    /// If memory does not suffice, a launch faults or does not end.
    #[allow(clippy::too_many_arguments)]
    pub fn run(
        &mut self,
        kernel: R::Kernel,
        program: &R::Program,
        more: &[u32],
        groups: usize,
        timeout: Duration,
        mut pack: impl FnMut(usize, usize, [&mut [u8]; 5]),
        mut unpack: impl FnMut(usize, usize, &[u8]),
    ) -> Result<(), Fault> {
        self.enter()?;
        while self.slots.len() < SLOTS {
            self.slots.push(Slot::new()?);
        }
        // What the slots hold already is as good as free.
        let held: usize = self.slots.iter().map(|slot| slot.input.size + slot.output.size).sum();
        let at_once = groups_at_once(program, groups, R::free_bytes()? + held);
        let most = self.runtime.multiprocessors().max(1) * BLOCKS;
        let result = (|slots: &mut [Slot<R>]| {
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
                let number = u32::try_from(count).expect("a part has few groups");
                let blocks = number.div_ceil(program.groups_per_block()).min(most);
                launch(slot, kernel, &part, blocks, number, more)?;
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

impl<R: Runtime> Drop for Session<R> {
    fn drop(&mut self) {
        if self.enter().is_err() {
            // Waiting for a GPU that does not answer helps nobody; the system cleans up after the
            // process.
            self.slots.drain(..).for_each(std::mem::forget);
            return;
        }
        self.slots.clear();
        self.runtime.leave();
    }
}

/// Waits for a slot's work, if there is any, and unpacks it.
fn collect<R: Runtime>(
    slot: &mut Slot<R>,
    program: &R::Program,
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
fn launch<R: Runtime>(
    slot: &mut Slot<R>,
    kernel: R::Kernel,
    part: &Part,
    blocks: u32,
    groups: u32,
    more: &[u32],
) -> Result<(), Fault> {
    let mut addresses: Vec<u64> =
        part.offsets.iter().map(|&offset| slot.input.device + offset as u64).collect();
    addresses.push(slot.output.device);
    let mut numbers: Vec<u32> = std::iter::once(groups).chain(more.iter().copied()).collect();
    let mut parameters: Vec<*mut c_void> =
        addresses.iter_mut().map(|address| (&raw mut *address).cast()).collect();
    parameters.extend(numbers.iter_mut().map(|number| (&raw mut *number).cast::<c_void>()));
    // SAFETY: the buffers are as large as the part, on both sides; the kernel takes these parameters,
    // which are copied before the call returns; it reads and writes within the arrays of `groups`
    // groups. The host's memory stays untouched until the event has been reached.
    unsafe {
        R::send(slot.input.device, slot.input.host, part.input, slot.stream)?;
        R::launch(kernel, blocks, &mut parameters, slot.stream)?;
        R::fetch(slot.output.host, slot.output.device, part.output, slot.stream)?;
        R::record(slot.finished, slot.stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{Kind, Program, Spec};
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
