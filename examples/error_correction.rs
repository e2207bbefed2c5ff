//! Single-precision products with error correction on a half-precision unit: Valpey et al.'s (2025) Table 5
//! reproduced, and for every generation inputs on which either method is the worse one.
//!
//!     cargo run --release --example error_correction
//!
//! See [`mmaprobe::correction`] for the two methods.

use std::error::Error;

use mmaprobe::catalog::Catalog;
use mmaprobe::correction::{Method, Unit, table_5};
use mmaprobe::device::Device;
use mmaprobe::device::sim::Sim;

/// Instructions of every published generation that takes fp16 and adds in fp32.
const UNITS: [(&str, &str); 10] = [
    ("volta", "mma.m8n8k4.f32.f16.f16.f32"),
    ("turing", "mma.m16n8k8.f32.f16.f16.f32"),
    ("ampere", "mma.m16n8k16.f32.f16.f16.f32"),
    ("ada", "mma.m16n8k16.f32.f16.f16.f32"),
    ("hopper", "mma.m16n8k16.f32.f16.f16.f32"),
    ("blackwell", "mma.m16n8k16.f32.f16.f16.f32"),
    ("rtx_blackwell", "mma.m16n8k16.f32.f16.f16.f32"),
    ("cdna1", "v_mfma_f32_16x16x16f16"),
    ("cdna2", "v_mfma_f32_16x16x16f16"),
    ("cdna3", "v_mfma_f32_16x16x16_f16"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let catalog = Catalog::embedded();
    for (name, instruction) in UNITS {
        let device = Sim::open(name, &catalog)?;
        let instruction = device.instruction(instruction)?;
        let unit = Unit::new(&device, &instruction).ok_or("it takes fp16 and adds in fp32")?;
        println!("# sim:{name}, {}\n", instruction.name);
        println!("Table 5: {}", unit.compare(&[table_5()])?[0]);
        for worse in [Method::OotomoYokota, Method::Markidis] {
            match unit.find_worse(worse, 1)? {
                Some(found) => println!("{found}"),
                None => println!("no input was found on which {worse} is worse\n"),
            }
        }
    }
    Ok(())
}
