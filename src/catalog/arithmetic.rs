//! What a catalogue file says an instruction computes: an algorithm, and who disputes what of it.

use mmaprobe_apple::alu::default_nan;
use mmaprobe_model::algorithms::{
    Algorithm, AlgorithmError, Conventions, Output, Types, chain_of_exact_sums,
};
use mmaprobe_model::tree::{Added, NanRule, ZeroTerms};
use mmaprobe_model::{Model, Rounding};
use serde::Deserialize;

use crate::sheet::spelling::Phrase;

/// A published statement about an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The algorithm.
    pub algorithm: Stated,
    /// Which NaN a NaN result is.
    pub nans: Nans,
    /// Who states it.
    pub source: String,
    /// What supports it beyond that.
    pub checked: Checked,
    /// What others state.
    pub disputes: Vec<Disputed>,
    /// What nobody states, and somebody compares with.
    pub variants: Vec<Variant>,
}

impl Published {
    /// The model for an instruction's types.
    ///
    /// # Errors
    /// If the algorithm does not go with the types.
    pub fn model(&self, types: &Types) -> Result<Model, AlgorithmError> {
        Ok(self.nans.applied_to(self.algorithm.model(types, &Conventions::DEFAULT)?))
    }

    /// The model that the other side of a dispute, or a variant, has.
    ///
    /// # Errors
    /// If its algorithm does not go with the types.
    pub fn alternative(&self, alternative: &Alternative, types: &Types) -> Result<Model, AlgorithmError> {
        Ok(self.nans.applied_to(alternative.model(types)?))
    }
}

/// What is published about the NaN that a NaN result is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nans {
    /// Nothing beyond what the algorithm says.
    #[default]
    Algorithm,
    /// Arm's default NaN, whatever NaNs went in: positive and quiet, its payload empty.
    Default,
}

impl Nans {
    fn applied_to(self, mut model: Model) -> Model {
        if self == Nans::Default {
            model.nan = NanRule::Canonical(default_nan(model.d));
        }
        model
    }
}

/// What supports a published statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Checked {
    /// Recordings of real GPUs agree with it.
    Recorded,
    /// Nothing here.
    #[default]
    Published,
}

/// A statement that another publication contradicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disputed {
    /// The name of the dispute.
    pub name: String,
    /// The two sides.
    pub dispute: DisputeText,
    /// What the other side has instead.
    pub alternative: Alternative,
}

/// A hypothetical instruction: one that no hardware is said to have, to compare a real one with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name: `sim:ARCH+NAME` executes it.
    pub name: String,
    /// What is different, in words.
    pub statement: String,
    /// Who compares with it.
    pub source: String,
    /// What it computes.
    pub alternative: Alternative,
}

/// What an instruction computes if something is different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The algorithm.
    pub algorithm: Stated,
    /// Its conventions.
    pub conventions: Conventions,
    /// How every summand is rounded at alignment, if not as the algorithm says.
    pub rounding: Option<Rounding>,
}

impl Alternative {
    /// What becomes of an algorithm by a change.
    ///
    /// # Errors
    /// If another algorithm makes no sense.
    pub fn of(algorithm: Stated, change: &Change) -> Result<Alternative, String> {
        Ok(Alternative {
            algorithm: change.algorithm.as_ref().map_or(Ok(algorithm), Stated::try_from)?,
            conventions: Conventions {
                zeros: change.zeros.map_or(Conventions::DEFAULT.zeros, |zeros| zeros.0),
                floor: change.floor.or(Conventions::DEFAULT.floor),
            },
            rounding: change.rounding.map(|rounding| rounding.0),
        })
    }

    /// The model for an instruction's types.
    ///
    /// # Errors
    /// If the algorithm does not go with the types.
    pub fn model(&self, types: &Types) -> Result<Model, AlgorithmError> {
        let mut model = self.algorithm.model(types, &self.conventions)?;
        if let Some(rounding) = self.rounding {
            for rule in &mut model.tree.rules {
                if let Added::Fused(fused) = &mut rule.added {
                    fused.alignment.iter_mut().for_each(|alignment| {
                        (alignment.rounding, alignment.far) = (rounding, None);
                    });
                }
            }
        }
        Ok(model)
    }
}

/// A hypothetical instruction, as a catalogue file has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantText {
    /// What is different, in words.
    pub statement: String,
    /// Who compares with it.
    pub source: String,
    /// What is different.
    pub change: Change,
}

/// The two sides of a dispute, as a catalogue file has them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisputeText {
    /// The name of the dispute, if it is not its key: several alternatives can be one publication's.
    #[serde(default)]
    pub name: Option<String>,
    /// What the sheet says.
    pub statement: String,
    /// Who states it.
    pub source: String,
    /// What is stated otherwise.
    pub alternative: String,
    /// Who states that.
    pub alternative_source: String,
    /// What is then different.
    pub change: Change,
}

/// What is different on the other side of a dispute, or in a variant.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Which zeros take part in the largest exponent.
    #[serde(default)]
    pub zeros: Option<Phrase<ZeroTerms>>,
    /// The least that the largest exponent can be.
    #[serde(default)]
    pub floor: Option<i32>,
    /// Another algorithm.
    #[serde(default)]
    pub algorithm: Option<Parameters>,
    /// How every summand is rounded at alignment.
    #[serde(default)]
    pub rounding: Option<Phrase<Rounding>>,
}

/// An algorithm and its parameters, as a catalogue file has them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Which one: one of the paper's nine, or `exact-sums`.
    pub name: String,
    /// Products in a group.
    #[serde(rename = "G", default)]
    pub group: Option<usize>,
    /// Fraction bits at alignment.
    #[serde(rename = "F", default)]
    pub fraction_bits: Option<u32>,
    /// Fraction bits of a dot product when c is added.
    #[serde(rename = "F_dot", default)]
    pub dot_fraction_bits: Option<u32>,
    /// Fraction bits of c when it is added.
    #[serde(rename = "F_c", default)]
    pub c_fraction_bits: Option<u32>,
    /// The distance from which on c is rounded to zero.
    #[serde(default)]
    pub c_rz_below: Option<i32>,
    /// Operations in the chain.
    #[serde(default)]
    pub chain: Option<usize>,
    /// The last rounding.
    #[serde(default)]
    pub out: Option<String>,
    /// `kept` or `flushed`.
    #[serde(default)]
    pub subnormals: Option<String>,
}

/// What an instruction is stated to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stated {
    /// One of the nine algorithms.
    Algorithm(Algorithm),
    /// Correctly rounded sums of so many products and the sum so far, one after another.
    ExactSums {
        /// Products in a sum.
        group: usize,
    },
}

impl Stated {
    /// The model for an instruction's types.
    ///
    /// # Errors
    /// If it does not go with the types.
    pub fn model(&self, types: &Types, conventions: &Conventions) -> Result<Model, AlgorithmError> {
        match self {
            Stated::Algorithm(algorithm) => algorithm.model_under(types, conventions),
            Stated::ExactSums { group } => chain_of_exact_sums(types, *group),
        }
    }
}

impl std::fmt::Display for Stated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stated::Algorithm(algorithm) => algorithm.fmt(f),
            // None of the nine.
            Stated::ExactSums { .. } => f.write_str("unnamed"),
        }
    }
}

impl TryFrom<&Parameters> for Stated {
    type Error = String;

    fn try_from(parameters: &Parameters) -> Result<Stated, String> {
        let mut left = parameters.clone();
        let name = &parameters.name;
        let stated = left.take_algorithm()?;
        let none = Parameters {
            group: None,
            fraction_bits: None,
            dot_fraction_bits: None,
            c_fraction_bits: None,
            c_rz_below: None,
            chain: None,
            out: None,
            subnormals: None,
            name: name.clone(),
        };
        if left == none { Ok(stated) } else { Err(format!("{name} does not have all of these parameters")) }
    }
}

impl Parameters {
    /// The algorithm; takes the parameters that it has.
    fn take_algorithm(&mut self) -> Result<Stated, String> {
        let name = self.name.clone();
        fn take<T>(name: &str, parameter: &str, value: &mut Option<T>) -> Result<T, String> {
            value.take().ok_or_else(|| format!("{name} needs the parameter `{parameter}`"))
        }
        let algorithm = match name.as_str() {
            "SFMA" => Algorithm::Sfma,
            "GPS" => Algorithm::Gps {
                group: take(&name, "G", &mut self.group)?,
                flushed: match take(&name, "subnormals", &mut self.subnormals)?.as_str() {
                    "kept" => false,
                    "flushed" => true,
                    other => return Err(format!("subnormals are `kept` or `flushed`, not `{other}`")),
                },
            },
            "FDA" => Algorithm::Fda {
                fraction_bits: take(&name, "F", &mut self.fraction_bits)?,
                output: self.take_output()?,
            },
            "CoFDA" => Algorithm::CoFda {
                fraction_bits: take(&name, "F", &mut self.fraction_bits)?,
                chain: take(&name, "chain", &mut self.chain)?,
                output: self.take_output()?,
            },
            "GDFS" => Algorithm::Gdfs {
                group: take(&name, "G", &mut self.group)?,
                fraction_bits: take(&name, "F", &mut self.fraction_bits)?,
                output: self.take_output()?,
            },
            "FDRDA" | "CoFDRDA" | "GFDRDA" | "CoGFDRDA" => {
                let fraction_bits = take(&name, "F", &mut self.fraction_bits)?;
                let dot_fraction_bits = take(&name, "F_dot", &mut self.dot_fraction_bits)?;
                let c_fraction_bits = take(&name, "F_c", &mut self.c_fraction_bits)?;
                if self.take_output()? != Output::Rne23 {
                    return Err(format!("{name} delivers rne23 alone"));
                }
                let mut chain = || take(&name, "chain", &mut self.chain);
                let mut c_rz_below = || take(&name, "c_rz_below", &mut self.c_rz_below);
                match name.as_str() {
                    "FDRDA" => Algorithm::Fdrda { fraction_bits, dot_fraction_bits, c_fraction_bits },
                    "CoFDRDA" => Algorithm::CoFdrda {
                        fraction_bits,
                        dot_fraction_bits,
                        c_fraction_bits,
                        chain: chain()?,
                    },
                    "GFDRDA" => Algorithm::Gfdrda {
                        fraction_bits,
                        dot_fraction_bits,
                        c_fraction_bits,
                        c_rz_below: c_rz_below()?,
                    },
                    _ => Algorithm::CoGfdrda {
                        fraction_bits,
                        dot_fraction_bits,
                        c_fraction_bits,
                        c_rz_below: c_rz_below()?,
                        chain: chain()?,
                    },
                }
            }
            "exact-sums" => {
                return Ok(Stated::ExactSums { group: take(&name, "G", &mut self.group)? });
            }
            _ => {
                return Err(format!(
                    "there is no algorithm `{name}`; expected SFMA, GPS, FDA, CoFDA, GDFS, FDRDA, CoFDRDA, \
                     GFDRDA, CoGFDRDA or exact-sums"
                ));
            }
        };
        Ok(Stated::Algorithm(algorithm))
    }

    fn take_output(&mut self) -> Result<Output, String> {
        let out = self.out.take().ok_or_else(|| format!("{} needs the parameter `out`", self.name))?;
        let all = [Output::Rz23, Output::Rz13, Output::Rne10, Output::Rne23];
        let named = all.into_iter().find(|output| output.to_string() == out);
        named.ok_or_else(|| format!("there is no out `{out}`; expected rz23, rz13, rne10 or rne23"))
    }
}
