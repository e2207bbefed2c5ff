//! mmaprobe finds out what a matrix unit actually computes, bit for bit.
//!
//! Data flows one way: a [device] answers questions; inference turns answers into a sum tree; a
//! parameter sheet states it with its evidence; validation compares it with the device, and
//! [generation](generate) makes a crate of it, and [`report`] pages for people; [`onboard`] goes all of that
//! way with an architecture that is new. Beside it, [`diff`] finds what tells two devices apart, [`steps`]
//! how an answer comes about, and [`bias`] how far answers are off.
#![warn(missing_docs)]

pub mod batch;
pub mod battery;
pub mod bias;
pub mod bits;
pub mod catalog;
pub mod characterize;
pub mod cli;
pub mod commands;
pub mod correction;
pub mod counterexample;
pub mod device;
pub mod diff;
pub mod explain;
pub mod gemm;
pub mod generate;
pub mod inference;
pub mod literal;
pub mod markdown;
pub mod matrix;
pub mod npy;
pub mod onboard;
pub mod output;
pub mod plot;
pub mod progress;
pub mod reason;
pub mod report;
pub mod selftest;
pub mod sheet;
pub mod shrink;
pub mod smt;
pub mod steps;
pub mod svg;
pub mod table;
pub mod throughput;
pub mod validation;
pub mod vectors;

pub use mmaprobe_model as model;
pub use mmaprobe_probes as probes;
