//! Accelerators that nobody has built: a seeded generator of matrix units, and the arithmetic that
//! executes them.
//!
//! What is inferred from answers is only as trustworthy as the answers are independent of the
//! inference. This crate therefore shares no code with it, nor with the sum trees it finds: formats,
//! exact numbers, rounding and execution are written anew, and in another way (signed integers and
//! floors, where `mmaprobe-model` has signs and magnitudes).
//!
//! A [`Machine`] says what one output element is computed to; a [`Unit`] is a machine together with
//! its [`Defect`], if it has one: then it is no function of its operands. [`generate`] draws both.
//!
//! ```
//! use mmaprobe_machines::{Evaluator, generate};
//!
//! let machine = generate::machine(1, 0);
//! let mut evaluator = Evaluator::new(&machine);
//! let zeros = vec![0; machine.k];
//! let scales = vec![0; machine.scale.map_or(0, |scale| machine.k / scale.block)];
//! let d = evaluator.dot_add(&zeros, &zeros, 0, &scales, &scales);
//! assert_eq!(d, evaluator.dot_add(&zeros, &zeros, 0, &scales, &scales));
//! println!("{}", mmaprobe_machines::words::describe(&machine));
//! ```
#![forbid(unsafe_code)]

pub mod defect;
pub mod dyadic;
pub mod execute;
pub mod features;
pub mod format;
pub mod generate;
pub mod machine;
pub mod rounding;
pub mod words;

pub use defect::{Defect, Unit};
pub use execute::Evaluator;
pub use machine::Machine;
