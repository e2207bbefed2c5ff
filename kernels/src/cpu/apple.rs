//! Apple silicon's matrix unit: `fma16`, `fma32` and `fma64`, and what it takes around them.
//!
//! Apple does not document the unit. The instruction words and operands are those of the same public
//! description that [`mmaprobe_apple`] follows; of its other instructions, `ldx`, `ldy`, `ldz` and `stz`
//! move 64 bytes between memory and a register, `set` switches the unit on for a thread with all
//! registers zero, and `clr` off again.
//!
//! This is compiled for its platform, and has not run there.

use std::arch::asm;

use mmaprobe_apple::form::{self, Form, Machine};
use mmaprobe_apple::instruction::{Instruction, word};
use mmaprobe_apple::unit::REGISTER;

use super::repeat::{ROUNDS, Repeat};
use super::shape::APPLE;
use super::{Kernel, Problems, Processor, Unit};

const LDX: u32 = 0;
const LDY: u32 = 1;
const LDZ: u32 = 4;
const STZ: u32 = 5;
/// `set` and `clr`, which have 0 and 1 in place of a register.
const SET_CLR: u32 = 17;

/// Where the operands of loads and stores have the register's number; below it is the address.
const ROW: u32 = 56;

const FORMS: usize = Form::ALL.len();

/// Executes an instruction of the unit whose operand is in a register.
///
/// # Safety
/// The unit must be switched on, and the operand one that the instruction may have.
#[inline(always)]
unsafe fn issue<const OPCODE: u32>(operand: u64) {
    // SAFETY: as for this function. Loads and stores reach memory, so nothing about it is promised.
    unsafe { asm!(".inst {word}", word = const word(OPCODE, 0), in("x0") operand, options(nostack)) }
}

/// The unit, switched on for this thread.
pub struct SwitchedOn(());

impl SwitchedOn {
    /// Switches it on.
    ///
    /// # Safety
    /// The processor must have the unit, and it must be off in this thread.
    pub unsafe fn new() -> SwitchedOn {
        // SAFETY: as for this function. Apple's own code puts three nops before it, so this does too.
        unsafe { asm!("nop", "nop", "nop", ".inst {word}", word = const word(SET_CLR, 0), options(nostack)) }
        SwitchedOn(())
    }
}

impl Drop for SwitchedOn {
    fn drop(&mut self) {
        // SAFETY: it is on.
        unsafe { asm!("nop", "nop", "nop", ".inst {word}", word = const word(SET_CLR, 1), options(nostack)) }
    }
}

impl Machine for SwitchedOn {
    fn load_x(&mut self, bytes: &[u8; REGISTER]) {
        // SAFETY: it is on; reads 64 bytes.
        unsafe { issue::<LDX>(bytes.as_ptr().addr() as u64) }
    }

    fn load_y(&mut self, bytes: &[u8; REGISTER]) {
        // SAFETY: it is on; reads 64 bytes.
        unsafe { issue::<LDY>(bytes.as_ptr().addr() as u64) }
    }

    fn load_z(&mut self, row: usize, bytes: &[u8; REGISTER]) {
        // SAFETY: it is on; reads 64 bytes.
        unsafe { issue::<LDZ>((row as u64 % 64) << ROW | bytes.as_ptr().addr() as u64) }
    }

    fn store_z(&mut self, row: usize, bytes: &mut [u8; REGISTER]) {
        // SAFETY: it is on; writes 64 bytes.
        unsafe { issue::<STZ>((row as u64 % 64) << ROW | bytes.as_mut_ptr().addr() as u64) }
    }

    fn execute(&mut self, instruction: Instruction, operand: u64) {
        // SAFETY: it is on, and every operand is one.
        unsafe {
            match instruction {
                Instruction::Fma64 => issue::<{ Instruction::Fma64.opcode() }>(operand),
                Instruction::Fma32 => issue::<{ Instruction::Fma32.opcode() }>(operand),
                Instruction::Fma16 => issue::<{ Instruction::Fma16.opcode() }>(operand),
            }
        }
    }
}

/// The form of that index.
///
/// # Safety
/// See [`Kernel`]. There is no MXCSR.
unsafe fn kernel<const FORM: usize>(problems: Problems<'_>, d: &mut [u8], _mxcsr: u32) {
    let Problems { count, a, b, c } = problems;
    // SAFETY: the unit is there, and nothing else here switches it on.
    let mut unit = unsafe { SwitchedOn::new() };
    Form::ALL[FORM].run(&mut unit, form::Problems { count, a, b, c, d });
}

/// The form of that index, over and over.
///
/// # Safety
/// See [`Repeat::run`].
unsafe fn repeat<const FORM: usize>(accumulators: usize, passes: u64) {
    const NEXT_Z_ROW: u64 = 1 << 20;
    let form = &Form::ALL[FORM];
    // SAFETY: the unit is there, and nothing else here switches it on. Its registers are zero at first.
    let mut unit = unsafe { SwitchedOn::new() };
    for _ in 0..passes * ROUNDS {
        let mut operand = form.operand.encode();
        for _ in 0..accumulators {
            unit.execute(form.instruction, operand);
            operand += NEXT_Z_ROW;
        }
    }
}

/// What executes the form of that index.
const fn executes<const FORM: usize>() -> (Kernel, Repeat) {
    // As many as the document's tables have.
    const MOST: usize = 16;
    let form = &Form::ALL[FORM];
    let most = if form.accumulators() < MOST { form.accumulators() } else { MOST };
    (kernel::<FORM>, Repeat { most, problems: form.problems(), run: repeat::<FORM> })
}

const EXECUTES: [(Kernel, Repeat); FORMS] = [
    executes::<0>(),
    executes::<1>(),
    executes::<2>(),
    executes::<3>(),
    executes::<4>(),
    executes::<5>(),
    executes::<6>(),
    executes::<7>(),
    executes::<8>(),
    executes::<9>(),
    executes::<10>(),
    executes::<11>(),
    executes::<12>(),
];

/// The processor, with all forms if it has the unit.
pub fn detect() -> Processor {
    let (mut units, mut absent) = (Vec::new(), Vec::new());
    match has_unit() {
        Ok(()) => {
            let unit = |(shape, (kernel, repeat))| Unit { shape, registers: "X, Y and Z", kernel, repeat };
            units.extend(APPLE.iter().zip(EXECUTES).map(unit));
        }
        Err(reason) => absent.extend(APPLE.iter().map(|shape| (shape.name, reason.clone()))),
    }
    Processor { brand: brand(), properties: vec![("vendor", "Apple".to_owned())], units, absent }
}

/// Whether `set` is an instruction here. No flag says so, and where it is none it kills the process: so
/// a child tries.
fn has_unit() -> Result<(), String> {
    // SAFETY: the child calls nothing but _exit, so it does not matter in what state fork left locks.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: whatever this does, it does to a process that exists for it.
        unsafe {
            drop(SwitchedOn::new());
            libc::_exit(0);
        }
    }
    let mut status = 0;
    // SAFETY: writes `status`.
    if child < 0 || unsafe { libc::waitpid(child, &raw mut status, 0) } != child {
        return Err(format!("cannot try the unit in a child process: {}", std::io::Error::last_os_error()));
    }
    match status {
        0 => Ok(()),
        _ if libc::WIFSIGNALED(status) => {
            Err(format!("no matrix unit: its `set` ends in signal {}", libc::WTERMSIG(status)))
        }
        _ => Err(format!("no matrix unit: trying its `set` ends with status {status}")),
    }
}

/// What the operating system calls the processor: `Apple M1`.
fn brand() -> String {
    let mut buffer = [0u8; 128];
    let mut length = buffer.len();
    // SAFETY: writes at most `length` bytes to the buffer, and how many it wrote to `length`.
    let failed = unsafe {
        libc::sysctlbyname(
            c"machdep.cpu.brand_string".as_ptr(),
            buffer.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    let text = String::from_utf8_lossy(&buffer[..length.min(buffer.len())]);
    match text.trim_matches(['\0', ' ']) {
        "" => "Apple silicon".to_owned(),
        _ if failed != 0 => "Apple silicon".to_owned(),
        brand => brand.to_owned(),
    }
}
