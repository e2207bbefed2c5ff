//! What to ask a matrix unit.
//!
//! A question is a [`DotAdd`]: operands of one output element as bit patterns. Probes know formats
//! and shapes (a [`Signature`]); they never know devices, and never answers.
#![forbid(unsafe_code)]

pub mod question;
pub mod random;

pub use question::{DotAdd, Signature};
