//! Devices for tests: a plain function for each output element, written without sum trees.

use mmaprobe::device::{Batch, Device, DeviceError, Identity, Instruction, Provenance, element, set_element};
use mmaprobe::model::Format;

/// d = f(a, b, c), with the place (problem, i, j) for devices that should not look at it.
pub type Function = dyn Fn(&[u64], &[u64], u64, (usize, usize, usize)) -> u64 + Sync;

/// A device with one instruction, computed element by element by a function.
pub struct Fake {
    identity: Identity,
    instructions: Vec<Instruction>,
    function: Box<Function>,
}

impl Fake {
    pub fn new(
        shape: [usize; 3],
        formats: [Format; 4],
        function: impl Fn(&[u64], &[u64], u64, (usize, usize, usize)) -> u64 + Sync + 'static,
    ) -> Fake {
        let [m, n, k] = shape;
        let [a, b, c, d] = formats;
        let instruction =
            Instruction { name: "fake".to_string(), m, n, k, a, b, c, d, scale: None, mode_of: None };
        Fake {
            identity: Identity {
                name: "fake".to_string(),
                description: "a function".to_string(),
                properties: Vec::new(),
                provenance: Provenance::Measured,
                absent: Vec::new(),
            },
            instructions: vec![instruction],
            function: Box::new(function),
        }
    }
}

impl Device for Fake {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    fn run(&self, i: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        let mut d = vec![0; batch.count * i.bytes().d];
        for problem in 0..batch.count {
            for row in 0..i.m {
                let a: Vec<u64> =
                    (0..i.k).map(|k| element(&batch.a, &i.a, (problem * i.m + row) * i.k + k)).collect();
                for column in 0..i.n {
                    let b: Vec<u64> = (0..i.k)
                        .map(|k| element(&batch.b, &i.b, (problem * i.n + column) * i.k + k))
                        .collect();
                    let at = (problem * i.m + row) * i.n + column;
                    let c = element(&batch.c, &i.c, at);
                    let bits = (self.function)(&a, &b, c, (problem, row, column));
                    set_element(&mut d, &i.d, at, bits);
                }
            }
        }
        Ok(d)
    }
}
