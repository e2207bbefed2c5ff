//! What to ask a matrix unit.
//!
//! A question is a [`DotAdd`]: operands of one output element as bit patterns. Probes know formats
//! and shapes (a [`Signature`]); they never know devices, and never answers. Each file asks one kind
//! of question.
#![forbid(unsafe_code)]

pub mod boundaries;
pub mod brink;
pub mod cancelling;
pub mod crowding;
pub mod edition;
pub mod exchanging;
pub mod grouping;
pub mod handing;
pub mod infinities;
pub mod leftover;
pub mod losses;
pub mod lowered;
pub mod nans;
pub mod nesting;
pub mod order;
pub mod overflowing;
pub mod pairs;
pub mod place;
pub mod precision;
pub mod products;
pub mod question;
pub mod random;
pub mod rounding;
pub mod sparse;
pub mod subnormals;
pub mod sums;
pub mod ties;
pub mod traces;
pub mod trifles;
pub mod vary;
pub mod zeros;

pub use edition::Edition;
pub use place::Dyadic;
pub use question::{DotAdd, Probe, Signature, Summand};
