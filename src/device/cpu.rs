//! This processor's own matrix and fused multiply-add instructions, on x86-64 each in every mode of MXCSR.

use mmaprobe_kernels::cpu::{Mode, Problems, Processor, Shape, Unit};

use super::{Batch, Device, DeviceError, Fault, Identity, Instruction, Provenance};

/// The device `cpu`.
///
/// ```
/// use mmaprobe::device::{Batch, Device, cpu::Cpu, element, set_element};
///
/// # fn main() -> Result<(), mmaprobe::device::DeviceError> {
/// # if mmaprobe_kernels::cpu::Processor::detect().units.is_empty() { return Ok(()) }
/// let cpu = Cpu::open()?;
/// let fma = cpu.instructions().iter().find(|i| i.name == "vfmadd231ps").expect("the least there is");
/// let mut batch = Batch::zeros(fma, 1);
/// set_element(&mut batch.c, &fma.c, 0, 1.0f32.to_bits().into());
/// assert_eq!(element(&cpu.run(fma, &batch)?, &fma.d, 0), u64::from(1.0f32.to_bits()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Cpu {
    identity: Identity,
    instructions: Vec<Instruction>,
    /// What executes each of the instructions.
    executed_by: Vec<(Unit, Mode)>,
}

impl Cpu {
    /// Opens it with the instructions that CPUID reports and the operating system allows.
    ///
    /// # Errors
    /// If there are none at all.
    pub fn open() -> Result<Cpu, DeviceError> {
        Cpu::of(Processor::detect())
    }

    fn of(processor: Processor) -> Result<Cpu, DeviceError> {
        let Processor { brand, properties, units, absent } = processor;
        if units.is_empty() {
            return Err(error(Fault::Start(nothing_present(&brand, &absent))));
        }
        let mut registers: Vec<&str> = units.iter().map(Unit::registers).collect();
        registers.dedup();
        let mut properties: Vec<(String, String)> =
            properties.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        properties.push(("registers".to_owned(), registers.join(", ")));
        if units.iter().any(|unit| unit.modes().len() > 1) {
            let default = format!("{:#06x} unless in a mode", Mode::Default.mxcsr());
            properties.push(("MXCSR".to_owned(), default));
        }
        let executed_by: Vec<(Unit, Mode)> =
            units.iter().flat_map(|&unit| unit.modes().iter().map(move |&mode| (unit, mode))).collect();
        Ok(Cpu {
            identity: Identity {
                name: NAME.to_owned(),
                description: brand,
                properties,
                provenance: Provenance::Measured,
                absent: absent.into_iter().map(|(name, reason)| (name.to_owned(), reason)).collect(),
            },
            instructions: executed_by.iter().map(|(unit, mode)| instruction(unit.shape(), *mode)).collect(),
            executed_by,
        })
    }
}

const NAME: &str = "cpu";

fn error(fault: Fault) -> DeviceError {
    DeviceError { device: NAME.to_owned(), fault }
}

/// Why the device cannot be opened, and what to do instead.
fn nothing_present(brand: &str, absent: &[(&'static str, String)]) -> String {
    let reasons: Vec<String> = absent.iter().map(|(name, reason)| format!("\n  {name}: {reason}")).collect();
    format!(
        "{brand} has none of the instructions that can be probed:{}\nprobe another device instead",
        reasons.concat()
    )
}

/// An instruction in a mode, as the device offers it.
fn instruction(shape: &Shape, mode: Mode) -> Instruction {
    let base = shape.name;
    let (name, mode_of) = match mode.suffix() {
        None => (base.to_owned(), None),
        Some(suffix) => (format!("{base}.{suffix}"), Some((base.to_owned(), mode.words().to_owned()))),
    };
    Instruction {
        name,
        m: shape.m,
        n: shape.n,
        k: shape.k,
        a: shape.a,
        b: shape.b,
        c: shape.accumulator,
        d: shape.accumulator,
        scale: None,
        mode_of,
    }
}

impl Device for Cpu {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        let Some(index) = self.instructions.iter().position(|offered| offered == instruction) else {
            return Err(error(Fault::Refused(format!("there is no instruction {}", instruction.name))));
        };
        let (unit, mode) = &self.executed_by[index];
        let bytes = instruction.bytes();
        let lengths = [bytes.a, bytes.b, bytes.c, 0, 0].map(|bytes| bytes.checked_mul(batch.count));
        if batch.arrays().map(|array| Some(array.len())) != lengths {
            return Err(error(Fault::Refused(format!(
                "{}: the batch's arrays are not those of {} problems",
                instruction.name, batch.count
            ))));
        }
        let mut d = vec![0; batch.c.len()];
        let problems = Problems { count: batch.count, a: &batch.a, b: &batch.b, c: &batch.c };
        unit.run(problems, &mut d, *mode);
        Ok(d)
    }
}

// Of x86-64: its names and modes.
#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::device::{element, set_element};
    use std::collections::HashSet;

    /// The device, or `None` and a message.
    fn open() -> Option<Cpu> {
        Cpu::open().inspect_err(|error| eprintln!("NOT RUN: {error}")).ok()
    }

    #[test]
    fn bases_come_before_their_modes_and_names_are_unique() {
        let Some(cpu) = open() else { return };
        let names: Vec<&str> = cpu.instructions().iter().map(|i| i.name.as_str()).collect();
        assert_eq!(HashSet::<&&str>::from_iter(&names).len(), names.len());
        assert_eq!(names.len() % Mode::ALL.len(), 0);
        for instructions in cpu.instructions().chunks(Mode::ALL.len()) {
            let base = &instructions[0];
            assert_eq!(base.mode_of, None);
            for mode in &instructions[1..] {
                assert_eq!(mode.mode_of.as_ref().unwrap().0, base.name);
                assert!(mode.name.starts_with(&format!("{}.", base.name)));
                assert_eq!(mode.signature(), base.signature());
            }
        }
        let rz = cpu.instructions().iter().find(|i| i.name == "vfmadd231ps.rz").unwrap();
        assert_eq!(rz.mode_of, Some(("vfmadd231ps".to_owned(), "MXCSR rounds toward zero".to_owned())));
    }

    #[test]
    fn every_instruction_is_present_or_absent_with_a_reason() {
        let Some(cpu) = open() else { return };
        let identity = cpu.identity();
        eprintln!("{identity:#?}");
        for shape in Shape::all() {
            let present = cpu.instructions().iter().any(|i| i.name == shape.name);
            let absent = identity.absent.iter().find(|(name, _)| name == shape.name);
            assert_eq!(present, absent.is_none(), "{}", shape.name);
            assert!(absent.is_none_or(|(_, reason)| !reason.is_empty()));
        }
    }

    #[test]
    fn every_instruction_passes_c_through_and_zero_problems_have_no_answer() {
        let Some(cpu) = open() else { return };
        for instruction in cpu.instructions() {
            // Two is an exponent field with its top bit alone, in every format.
            let two = 1 << (instruction.c.exponent_bits - 1) << instruction.c.fraction_bits;
            let mut batch = Batch::zeros(instruction, 3);
            let last = 3 * instruction.m * instruction.n - 1;
            set_element(&mut batch.c, &instruction.c, last, two);
            let d = cpu.run(instruction, &batch).unwrap();
            assert_eq!(d, batch.c, "{}", instruction.name);
            assert!(cpu.run(instruction, &Batch::default()).unwrap().is_empty());
        }
    }

    #[test]
    fn modes_reach_the_instruction() {
        let Some(cpu) = open() else { return };
        let run = |name: &str| {
            let instruction = cpu.instructions().iter().find(|i| i.name == name).unwrap();
            let mut batch = Batch::zeros(instruction, 1);
            let operands = [1.0, f32::EPSILON / 4.0, 1.0f32].map(|x| x.to_bits().into());
            for (array, bits) in [&mut batch.a, &mut batch.b, &mut batch.c].into_iter().zip(operands) {
                set_element(array, &instruction.c, 0, bits);
            }
            f32::from_bits(element(&cpu.run(instruction, &batch).unwrap(), &instruction.d, 0) as u32)
        };
        assert_eq!(run("vfmadd231ps"), 1.0);
        assert_eq!(run("vfmadd231ps.ru"), 1.0 + f32::EPSILON);
        assert_eq!(run("vfmadd231ps.rd"), 1.0);
    }

    #[test]
    fn wrong_questions_are_refused() {
        let Some(cpu) = open() else { return };
        let known = &cpu.instructions()[0];
        let unknown = Instruction { name: "vfmadd999ps".to_owned(), ..known.clone() };
        let reshaped = Instruction { k: known.k + 1, ..known.clone() };
        let short = Batch { count: 2, ..Batch::zeros(known, 1) };
        for (instruction, batch) in
            [(&unknown, Batch::zeros(&unknown, 1)), (&reshaped, Batch::zeros(&reshaped, 1)), (known, short)]
        {
            let error = cpu.run(instruction, &batch).unwrap_err();
            assert!(matches!(error.fault, Fault::Refused(_)), "{error}");
        }
    }

    #[test]
    fn a_processor_without_anything_is_an_error_that_says_why() {
        let processor = Processor {
            brand: "Z80".to_owned(),
            properties: Vec::new(),
            units: Vec::new(),
            absent: vec![("vfmadd231ps", "CPUID.1:ECX[12] FMA not reported".to_owned())],
        };
        let error = Cpu::of(processor).unwrap_err();
        assert!(matches!(error.fault, Fault::Start(_)));
        assert!(error.to_string().contains("vfmadd231ps: CPUID.1:ECX[12] FMA not reported"), "{error}");
    }
}
