//! `mmaprobe-machines` as devices: of a random machine, inference sees shape and formats alone.

use mmaprobe_machines::defect::{Problems, Unit};
use mmaprobe_machines::{Machine, machine};
use mmaprobe_model::Format;
use mmaprobe_model::tree::Scale;

use crate::device::{
    Batch, Device, DeviceError, Fault, Identity, Instruction, Provenance, element, set_element,
};

/// A device whose one instruction a [`Unit`] computes.
#[derive(Debug)]
pub struct MachineDevice {
    identity: Identity,
    instructions: [Instruction; 1],
    unit: Unit,
}

impl MachineDevice {
    /// The device `name` that is this unit.
    pub fn new(name: &str, unit: Unit) -> MachineDevice {
        let identity = Identity {
            name: name.to_string(),
            description: "a random machine".to_string(),
            properties: Vec::new(),
            provenance: Provenance::Simulated,
            absent: Vec::new(),
        };
        MachineDevice { identity, instructions: [instruction_of(&unit.machine)], unit }
    }

    /// The unit: for whoever judges what was found out about it, never for inference.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }
}

/// What a device says about itself: shape and formats.
fn instruction_of(machine: &Machine) -> Instruction {
    let format = |own: &mmaprobe_machines::format::Format| {
        Format::named(own.name).expect("both crates know the formats by the same names")
    };
    let scale = |scale: machine::Scale| Scale { format: format(&scale.format), block: scale.block };
    Instruction {
        name: "mma".to_string(),
        m: machine.m,
        n: machine.n,
        k: machine.k,
        a: format(&machine.a),
        b: format(&machine.b),
        c: format(&machine.c),
        d: format(&machine.d),
        scale: machine.scale.map(scale),
        mode_of: None,
    }
}

impl Device for MachineDevice {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        let own = &self.instructions[0];
        if instruction != own || !batch.fits(own) {
            let problem = format!("a batch is no batch of `{}`", own.name);
            return Err(DeviceError { device: self.identity.name.clone(), fault: Fault::Refused(problem) });
        }
        let elements = |array: &[u8], format: &Format| {
            (0..array.len() / format.bytes).map(|index| element(array, format, index)).collect()
        };
        let scale = own.scale.map_or(own.c, |scale| scale.format);
        let problems = Problems {
            count: batch.count,
            a: elements(&batch.a, &own.a),
            b: elements(&batch.b, &own.b),
            c: elements(&batch.c, &own.c),
            sa: elements(&batch.sa, &scale),
            sb: elements(&batch.sb, &scale),
        };
        let results = self.unit.run(&problems);
        let mut d = vec![0; results.len() * own.d.bytes];
        for (index, &bits) in results.iter().enumerate() {
            set_element(&mut d, &own.d, index, bits);
        }
        Ok(d)
    }
}
