//! Bringing a new architecture in: from an ISA target's name to a catalogue file, a parameter sheet, a
//! report and a model crate.
//!
//! A [draft] of the catalogue file is written for people to complete; [check] says what is wrong with it
//! and what is missing around it; a [trial] shows whether a device takes operands where the file says.
//! What inference then finds is held against what is published ([nearest]); nothing here tells inference
//! anything.

pub mod check;
pub mod draft;
pub mod nearest;
pub mod trial;
