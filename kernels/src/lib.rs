//! How real matrix units are asked: the instructions, their register layouts, and whether they are
//! there at all.
//!
//! Everything vendor-specific is in this crate. It knows bit patterns and shapes; it neither asks
//! questions of its own nor judges answers.

pub mod cpu;
pub mod cuda;
pub mod fault;
pub mod fragment;
pub mod hip;
pub mod instruction;
pub mod pack;
pub mod stream;
