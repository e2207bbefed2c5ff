//! The matrix and fused multiply-add instructions of x86-64 processors and of Apple silicon.
//!
//! A [`Unit`] is one such instruction, executed as itself by inline assembly. It exists only if the
//! processor has it and the operating system lets it be used; [`Processor::detect`] says why the others
//! are absent. On other architectures all of them are.
//!
//! ```
//! use mmaprobe_kernels::cpu::{Mode, Problems, Processor};
//!
//! let processor = Processor::detect();
//! for (name, reason) in &processor.absent {
//!     println!("no {name}: {reason}");
//! }
//! if let Some(fma) = processor.unit("vfmadd231ps") {
//!     let [a, b, c] = [2.0f32, 3.0, 4.0].map(f32::to_le_bytes);
//!     let mut d = [0; 4];
//!     fma.run(Problems { count: 1, a: &a, b: &b, c: &c }, &mut d, Mode::Default);
//!     assert_eq!(f32::from_le_bytes(d), 10.0);
//! }
//! ```

#[cfg(all(target_os = "macos", target_arch = "aarch64"))]
mod apple;
#[cfg(target_arch = "x86_64")]
mod features;
pub mod repeat;
mod shape;
#[cfg(target_arch = "x86_64")]
mod tile;
#[cfg(target_arch = "x86_64")]
mod vector;

use repeat::{ROUNDS, Repeat};
pub use shape::Shape;
#[cfg(target_arch = "x86_64")]
use shape::{TDPBF16PS, TDPFP16PS, VDPBF16PS, VFMADD231PD, VFMADD231PH, VFMADD231PS};

/// What MXCSR holds while an instruction executes; exceptions are always masked. Only x86-64 has more
/// than the default.
///
/// Whether an instruction obeys it is for inference to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The value after reset: round to nearest even, neither FTZ nor DAZ.
    Default,
    /// RC = 01: round toward −∞.
    RoundDown,
    /// RC = 10: round toward +∞.
    RoundUp,
    /// RC = 11: round toward zero.
    RoundTowardZero,
    /// FTZ.
    FlushToZero,
    /// DAZ.
    DenormalsAreZero,
}

impl Mode {
    /// The default, then everything that differs from it in one field.
    pub const ALL: [Mode; 6] = [
        Mode::Default,
        Mode::RoundDown,
        Mode::RoundUp,
        Mode::RoundTowardZero,
        Mode::FlushToZero,
        Mode::DenormalsAreZero,
    ];

    /// The register's value.
    pub const fn mxcsr(self) -> u32 {
        const RESET: u32 = 0x1F80;
        match self {
            Mode::Default => RESET,
            Mode::RoundDown => RESET | 1 << 13,
            Mode::RoundUp => RESET | 2 << 13,
            Mode::RoundTowardZero => RESET | 3 << 13,
            Mode::FlushToZero => RESET | 1 << 15,
            Mode::DenormalsAreZero => RESET | 1 << 6,
        }
    }

    /// What an instruction's name gets appended in this mode: `rz` in `vfmadd231ps.rz`. The default
    /// has none.
    pub const fn suffix(self) -> Option<&'static str> {
        match self {
            Mode::Default => None,
            Mode::RoundDown => Some("rd"),
            Mode::RoundUp => Some("ru"),
            Mode::RoundTowardZero => Some("rz"),
            Mode::FlushToZero => Some("ftz"),
            Mode::DenormalsAreZero => Some("daz"),
        }
    }

    /// The mode in words.
    pub const fn words(self) -> &'static str {
        match self {
            Mode::Default => "MXCSR as after reset",
            Mode::RoundDown => "MXCSR rounds down",
            Mode::RoundUp => "MXCSR rounds up",
            Mode::RoundTowardZero => "MXCSR rounds toward zero",
            Mode::FlushToZero => "MXCSR flushes subnormal results to zero (FTZ)",
            Mode::DenormalsAreZero => "MXCSR takes subnormal operands for zero (DAZ)",
        }
    }
}

/// Independent problems: each array holds all of them one after another, A row by row, B column by
/// column, C row by row, elements little-endian.
#[derive(Clone, Copy, Debug)]
pub struct Problems<'a> {
    /// Number of problems.
    pub count: usize,
    /// A of all problems.
    pub a: &'a [u8],
    /// B of all problems.
    pub b: &'a [u8],
    /// C of all problems.
    pub c: &'a [u8],
}

/// Runs all problems with the given MXCSR and writes D.
///
/// # Safety
/// The instruction must be present, and the arrays must have the lengths that its shape demands.
type Kernel = unsafe fn(Problems<'_>, &mut [u8], u32);

/// An instruction that this processor has.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    shape: &'static Shape,
    registers: &'static str,
    kernel: Kernel,
    repeat: Repeat,
}

impl Unit {
    /// The instruction and its shape.
    pub fn shape(&self) -> &'static Shape {
        self.shape
    }

    /// The registers it is executed on: `zmm`, `ymm`, `tmm`, or Apple's `X, Y and Z`.
    pub fn registers(&self) -> &'static str {
        self.registers
    }

    /// The modes that it can be executed in, the default first.
    pub fn modes(&self) -> &'static [Mode] {
        if cfg!(target_arch = "x86_64") { &Mode::ALL } else { &[Mode::Default] }
    }

    /// The most accumulators that it can be [repeated](Unit::repeat) on.
    pub fn accumulators(&self) -> usize {
        self.repeat.most
    }

    /// Floating-point operations of one execution, a multiply-add being two.
    pub fn operations(&self) -> u64 {
        let Shape { m, n, k, .. } = *self.shape;
        2 * (m * n * k * self.repeat.problems) as u64
    }

    /// Executes the instruction again and again on registers alone, on so many independent accumulators
    /// in turn; at least `executions` times. Returns how many times it was.
    ///
    /// # Panics
    /// If there is no loop on so many [accumulators](Unit::accumulators), or on none.
    pub fn repeat(&self, accumulators: usize, executions: u64) -> u64 {
        let Repeat { most, run, .. } = self.repeat;
        assert!((1..=most).contains(&accumulators), "{accumulators} accumulators of {most}");
        let in_a_pass = ROUNDS * accumulators as u64;
        let passes = executions.div_ceil(in_a_pass).max(1);
        // SAFETY: a `Unit` is only made once detection has found its instruction; the loop exists, and is
        // passed through at least once.
        unsafe { run(accumulators, passes) }
        passes * in_a_pass
    }

    /// Computes D = A·B + C for each problem, D row by row. MXCSR is the same before and after, its
    /// sticky flags included.
    ///
    /// # Panics
    /// If an array's length is not that of `count` problems, or the mode is none of its [`modes`](Unit::modes).
    pub fn run(&self, problems: Problems<'_>, d: &mut [u8], mode: Mode) {
        assert!(self.modes().contains(&mode), "{} has no mode {mode:?}", self.shape.name);
        let Shape { m, n, k, a, b, accumulator, .. } = *self.shape;
        let lengths = [problems.a.len(), problems.b.len(), problems.c.len(), d.len()];
        let elements = [m * k, n * k, m * n, m * n];
        let formats = [a, b, accumulator, accumulator];
        for ((length, elements), format) in lengths.into_iter().zip(elements).zip(formats) {
            assert_eq!(Some(length), problems.count.checked_mul(elements * format.bytes), "array length");
        }
        // SAFETY: a `Unit` is only made once detection has found its instruction, and its fields are
        // out of reach; the lengths have just been checked.
        unsafe { (self.kernel)(problems, d, mode.mxcsr()) }
    }
}

/// The processor that this program runs on.
#[derive(Clone, Debug)]
pub struct Processor {
    /// CPUID's brand string, or the architecture where there is no CPUID.
    pub brand: String,
    /// What else identifies it, in the order to print: vendor, family, model, stepping, microcode.
    pub properties: Vec<(&'static str, String)>,
    /// The instructions it has, in the order of [`Shape::all`].
    pub units: Vec<Unit>,
    /// The instructions it lacks, with the reason.
    pub absent: Vec<(&'static str, String)>,
}

impl Processor {
    /// Asks the processor, and the operating system where it has a say.
    ///
    /// On Linux this requests permission for AMX tile data, for the whole process.
    #[cfg(target_arch = "x86_64")]
    pub fn detect() -> Processor {
        let features = features::Features::read();
        // SAFETY: the features are those of this processor.
        let (units, absent) = unsafe { offered(&features) };
        Processor { brand: features::brand(), properties: features::properties(), units, absent }
    }

    /// Asks the processor whether it has Apple's matrix unit, by executing `set` in a child process.
    #[cfg(all(target_os = "macos", target_arch = "aarch64"))]
    pub fn detect() -> Processor {
        apple::detect()
    }

    /// Reports that nothing is present: these are x86-64 instructions.
    #[cfg(not(any(target_arch = "x86_64", all(target_os = "macos", target_arch = "aarch64"))))]
    pub fn detect() -> Processor {
        let reason = format!("an x86-64 instruction; this is {}", std::env::consts::ARCH);
        Processor {
            brand: std::env::consts::ARCH.to_owned(),
            properties: Vec::new(),
            units: Vec::new(),
            absent: Shape::all().into_iter().map(|shape| (shape.name, reason.clone())).collect(),
        }
    }

    /// The instruction of that name, if present.
    pub fn unit(&self, name: &str) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.shape.name == name)
    }
}

/// The instructions that come with `features`, and those that do not with the reason.
///
/// # Safety
/// The processor must have these features: the units rely on it.
#[cfg(target_arch = "x86_64")]
unsafe fn offered(features: &features::Features) -> (Vec<Unit>, Vec<(&'static str, String)>) {
    use features::{AMX_BF16, AMX_FP16, AVX512_BF16, AVX512_FP16, AVX512F, FMA, Need};

    let candidates: [(&Shape, &[Need], &str, Kernel, Repeat); 8] = [
        (&TDPBF16PS, &AMX_BF16, "tmm", tile::tdpbf16ps, tile::TDPBF16PS),
        (&TDPFP16PS, &AMX_FP16, "tmm", tile::tdpfp16ps, tile::TDPFP16PS),
        (&VDPBF16PS, &AVX512_BF16, "zmm", vector::vdpbf16ps_zmm, vector::VDPBF16PS_ZMM),
        (&VFMADD231PS, &AVX512F, "zmm", vector::vfmadd231ps_zmm, vector::VFMADD231PS_ZMM),
        (&VFMADD231PS, &FMA, "ymm", vector::vfmadd231ps_ymm, vector::VFMADD231PS_YMM),
        (&VFMADD231PD, &AVX512F, "zmm", vector::vfmadd231pd_zmm, vector::VFMADD231PD_ZMM),
        (&VFMADD231PD, &FMA, "ymm", vector::vfmadd231pd_ymm, vector::VFMADD231PD_YMM),
        (&VFMADD231PH, &AVX512_FP16, "zmm", vector::vfmadd231ph_zmm, vector::VFMADD231PH_ZMM),
    ];
    let (mut units, mut absent) = (Vec::<Unit>::new(), Vec::new());
    for shape in Shape::all() {
        let mut reasons = Vec::new();
        let unit = candidates.iter().filter(|candidate| candidate.0 == shape).find_map(
            |&(_, needs, registers, kernel, repeat)| match features.unmet(needs) {
                None => Some(Unit { shape, registers, kernel, repeat }),
                Some(reason) => {
                    reasons.push(reason);
                    None
                }
            },
        );
        match unit {
            Some(unit) => units.push(unit),
            None => absent.push((shape.name, reasons.join("; "))),
        }
    }
    (units, absent)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn without_avx512_fma_uses_256_bits_and_agrees() {
        let real = features::Features::read();
        // SAFETY: fewer features than the processor's.
        let (units, absent) = unsafe { offered(&real.without_avx512()) };
        let Some(narrow) = units.iter().find(|unit| unit.shape.name == "vfmadd231ps") else {
            eprintln!("NOT RUN: this processor has no FMA");
            return;
        };
        assert_eq!(narrow.registers, "ymm");
        assert!(absent.contains(&("vdpbf16ps", "CPUID.7.1:EAX[5] AVX512-BF16 not reported".to_owned())));
        let processor = Processor::detect();
        for name in ["vfmadd231ps", "vfmadd231pd"] {
            let [wide, narrow] = [&processor.units, &units]
                .map(|units| *units.iter().find(|unit| unit.shape.name == name).unwrap());
            eprintln!("{name}: {} against {}", wide.registers, narrow.registers);
            for count in [0, 1, 3, 4, 5, 7, 8, 9, 100] {
                let bytes = |seed: u8| -> Vec<u8> {
                    (0..count * wide.shape.accumulator.bytes)
                        .map(|i| (i as u8).wrapping_mul(37).wrapping_add(seed))
                        .collect()
                };
                let (a, b, c) = (bytes(1), bytes(2), bytes(3));
                let problems = Problems { count, a: &a, b: &b, c: &c };
                let mut results = [vec![0; c.len()], vec![0; c.len()]];
                for mode in Mode::ALL {
                    wide.run(problems, &mut results[0], mode);
                    narrow.run(problems, &mut results[1], mode);
                    assert_eq!(results[0], results[1], "{name} {mode:?} {count}");
                }
            }
        }
    }

    #[test]
    fn mode_values_are_those_of_the_manual() {
        // Intel SDM volume 1, figure 10-3.
        let values = Mode::ALL.map(Mode::mxcsr);
        assert_eq!(values, [0x1F80, 0x3F80, 0x5F80, 0x7F80, 0x9F80, 0x1FC0]);
    }
}
