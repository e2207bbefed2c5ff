//! The parameter sheet: what a device's instructions compute, and how that is known.
//!
//! A [`Sheet`] is plain data ([schema]), read and written as YAML ([yaml]). The sum tree of an
//! instruction is written as [arithmetic] that people can read: named rules, and a straight-line
//! program over them. For the terminal it is put in [words], drawn as a tree ([draw]) and laid out in
//! a [table].

pub mod amendment;
pub mod arithmetic;
pub mod draw;
pub mod either;
pub mod folded;
pub mod ordered;
pub mod outline;
pub mod program;
pub mod schema;
pub mod spelling;
pub mod table;
pub mod words;
pub mod yaml;

pub use amendment::Amendment;
pub use arithmetic::{Arithmetic, ArithmeticError};
pub use schema::{Entry, SCHEMA, Sheet, Status};
pub use yaml::{SheetError, load, parse, write};
