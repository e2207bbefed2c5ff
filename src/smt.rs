//! Models as formulas: any instruction's function in SMT-LIB 2 over bit vectors, and what a solver, or
//! reasoning over the tree, proves of it.
//!
//! Valpey et al. ("An SMT Formalization of Mixed-Precision Matrix Multiplication", 2025) wrote three GPUs'
//! dot products as formulas by hand and had solvers find inputs that tell designs apart. Here the formula
//! comes from the sum tree, so every instruction of every sheet has one ([`script::export`]), and each
//! of the paper's questions is a pair of trees: the instruction's, and one that computes otherwise.
//!
//! Solvers are programs on the PATH, started and spoken to through `easy-smt` ([`solver`]); without one the
//! export works, and [`query`] still answers what [reasoning over the tree](crate::reason) can.

pub mod bv;
pub mod encode;
pub mod properties;
pub mod query;
pub mod script;
pub mod solver;
pub mod table4;
pub mod text;
