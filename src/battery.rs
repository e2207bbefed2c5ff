//! The feature battery: the experiments of the literature, put to any instruction of any device.
//!
//! Fasi, Higham, Mikaitis and Pranesh ("Numerical behavior of NVIDIA tensor cores", PeerJ Computer
//! Science 7:e330, 2021) found a unit's features by a dozen inputs whose constants they fitted to each
//! GPU by hand. Here the constants come from the formats and from the alignment bits that a first
//! experiment finds, so that every experiment goes with every instruction. Valpey, Li, Pai and
//! Gopalakrishnan ("An SMT Formalization of Mixed-Precision Matrix Multiplication", 2025) corrected two
//! of the findings; their inputs are here too, and so are generalised forms of three questions that
//! Khattak and Mikaitis ask of later units: how many products are added at once, how many bits are kept
//! below the result's, and how many above.
//!
//! An experiment only says what its inputs show. Where no input can show anything, because a format
//! does not reach far enough or there are too few products, it says that instead.

mod accumulator;
mod accuracy;
mod lab;
mod render;
mod rounding;
mod subnormals;

use crate::device::{Device, DeviceError, Instruction};
pub use lab::{Case, shown};
use lab::{Facts, Lab};
pub use render::{Column, compare, json, markdown, table};

/// What became of one experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A short name, unique within a battery: `guard-digits`.
    pub experiment: &'static str,
    /// What is asked.
    pub question: &'static str,
    /// The paper and its section.
    pub source: &'static str,
    /// The inputs, and what came back; none where no input can show anything.
    pub cases: Vec<Case>,
    /// The answer in a few words, to compare devices by.
    pub verdict: String,
    /// What that means, in a sentence.
    pub meaning: String,
}

/// The first of Fasi et al.'s sections, and the source of most experiments.
pub(crate) const FASI_SUBNORMALS: &str = "Fasi et al. 2021, Support for subnormal numbers";
/// Fasi et al.'s second section.
pub(crate) const FASI_ACCURACY: &str = "Fasi et al. 2021, Accuracy of the dot products";
/// Fasi et al.'s third section.
pub(crate) const FASI_ROUNDING: &str = "Fasi et al. 2021, Rounding modes in tensor core computations";
/// Fasi et al.'s fourth section.
pub(crate) const FASI_ACCUMULATOR: &str = "Fasi et al. 2021, Features of the accumulator";
/// Fasi et al.'s last section.
pub(crate) const FASI_MONOTONICITY: &str = "Fasi et al. 2021, Monotonicity of dot product";

/// An experiment's name, question and source, before it has an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Experiment {
    name: &'static str,
    question: &'static str,
    source: &'static str,
}

impl Experiment {
    pub(crate) const fn new(name: &'static str, question: &'static str, source: &'static str) -> Experiment {
        Experiment { name, question, source }
    }

    /// What the cases show.
    fn finding(self, cases: Vec<Case>, verdict: impl Into<String>, meaning: impl Into<String>) -> Finding {
        Finding {
            experiment: self.name,
            question: self.question,
            source: self.source,
            cases,
            verdict: verdict.into(),
            meaning: meaning.into(),
        }
    }

    /// No input can show anything, for this reason.
    fn impossible(self, why: impl Into<String>) -> Finding {
        self.finding(Vec::new(), "–", format!("Cannot be asked: {}.", why.into()))
    }
}

/// Puts every experiment to an instruction, in the order of the papers.
///
/// # Errors
/// If the device fails.
pub fn run(device: &dyn Device, instruction: &Instruction) -> Result<Vec<Finding>, DeviceError> {
    let lab = Lab::new(device, instruction);
    let facts = Facts::find(&lab)?;
    let lab = lab.scaled_for(&facts);
    let mut findings = Vec::new();
    subnormals::run(&lab, &facts, &mut findings)?;
    accuracy::run(&lab, &facts, &mut findings)?;
    rounding::run(&lab, &facts, &mut findings)?;
    accumulator::run(&lab, &facts, &mut findings)?;
    Ok(findings)
}
