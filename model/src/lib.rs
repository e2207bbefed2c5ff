//! The arithmetic of matrix units, bit for bit.
//!
//! A matrix instruction computes each element of its result as a *dot-add*
//! d = f(c, a₀…a₍K₋₁₎, b₀…b₍K₋₁₎). Every known f is a [sum tree](tree): products and c at the
//! leaves, and at each inner node a sum with its own rules. This crate holds the number
//! [formats](format), the [rounding] modes, [exact] numbers, the tree as data, and its
//! [execution](execute), also on [small integers](scalar) and in [vectors](compiled); the nine
//! published [algorithms] as trees, the [naming] of trees that are one of them, and models as
//! [constants](constant).
//!
//! It is `no_std`, has no dependencies and, but for the feature `simd`, contains no `unsafe`: its source
//! is carried along by every generated model crate.
//!
//! # Example: one fused multiply-add, and what rounding toward zero makes of it
//!
//! ```
//! use mmaprobe_model::{Executor, Model, Rounding, format};
//!
//! let mut fma = Model::chain_of_fma(format::FP32, format::FP32, 1);
//! let (a, b, c) = (1.0f32.to_bits(), (0.75 * f32::EPSILON).to_bits(), 1.0f32.to_bits());
//! let dot_add = |model: &Model| {
//!     let mut executor = Executor::new(model).unwrap();
//!     f32::from_bits(executor.dot_add(&[a.into()], &[b.into()], c.into(), &[], &[]) as u32)
//! };
//! assert_eq!(dot_add(&fma), 1.0 + f32::EPSILON);
//!
//! fma.tree.rules[0].round_to().unwrap().rounding = Rounding::TowardZero;
//! assert_eq!(dot_add(&fma), 1.0);
//! ```
#![no_std]
#![cfg_attr(not(feature = "simd"), forbid(unsafe_code))]

extern crate alloc;
#[cfg(feature = "simd")]
extern crate std;

pub mod algorithms;
pub mod compiled;
pub mod constant;
pub mod exact;
pub mod execute;
pub mod format;
pub mod naming;
pub mod rounding;
pub mod scalar;
pub mod shared;
pub mod tree;

pub use compiled::{Compiled, Level};
pub use exact::Term;
pub use execute::Executor;
pub use format::{Decoded, Format};
pub use rounding::Rounding;
pub use scalar::Scalar;
pub use shared::Shared;
pub use tree::Model;
