//! `sim:NAME`: a virtual device that executes the published sheet of an architecture.
//!
//! NAME is an architecture, a GPU or an ISA target; see [`Catalog::find`]. `sim:NAME+DISPUTE` executes
//! the alternative wherever the sheet has a dispute of that name: `sim:hopper+zeros`. The catalogue can also
//! have hypothetical variants, which no hardware is said to be, to compare with: `sim:cdna3+rz`.
//!
//! Where the architecture's unit is modelled as a machine, as [Apple's](crate::device::apple) is, that
//! machine executes the instructions, and not the sheet.
//!
//! The device lists each instruction in its smallest shape, and takes every shape that the catalogue
//! has: what an output element is does not depend on m and n.

use crate::catalog::{Architecture, Catalog, published};
use crate::device::apple;
use crate::device::sheet::{OpenError, simulate};
use crate::device::simulated::Simulated;
use crate::device::{Batch, Device, DeviceError, Fault, Identity, Instruction};
use crate::model::Model;

/// A virtual device of the catalogue.
#[derive(Clone, Debug)]
pub struct Sim {
    simulated: Simulated,
    architecture: Architecture,
    /// Whether a dispute's alternative, or a variant, is executed: that is a matter of the sheet.
    alternative: bool,
}

/// There is no such virtual device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The name is not in the catalogue.
    #[error("the catalogue has no architecture, GPU or ISA target '{name}'{}", did_you_mean(.near))]
    Unknown {
        /// The name.
        name: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// What the architecture computes is not published.
    #[error(
        "what {0} computes has not been published: there is nothing to simulate (its instructions: mmaprobe instructions --arch {1})"
    )]
    NoSheet(String, String),
    /// The sheet has no such dispute, and the catalogue no such variant.
    #[error("nothing about {architecture} is disputed under the name '{name}'; there are: {}", or_none(.known))]
    NoDispute {
        /// The architecture.
        architecture: String,
        /// The name.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The sheet cannot be executed.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Names to suggest, as the end of a sentence.
pub fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => "; mmaprobe devices lists them".to_string(),
        _ => format!("; did you mean {}?", near.join(" or ")),
    }
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".to_string() } else { names.join(", ") }
}

impl Sim {
    /// Opens what stands after `sim:`.
    ///
    /// # Errors
    /// If the catalogue has no such architecture, or no sheet for it.
    pub fn open(name: &str, catalog: &Catalog) -> Result<Sim, SimError> {
        let (target, dispute) = match name.split_once('+') {
            Some((target, dispute)) => (target, Some(dispute)),
            None => (name, None),
        };
        let found = catalog
            .find(target)
            .ok_or_else(|| SimError::Unknown { name: target.to_string(), near: catalog.near(target) })?;
        let architecture = found.architecture.clone();
        let sheet = architecture.sheet().map_err(OpenError::from)?;
        let mut sheet =
            sheet.ok_or_else(|| SimError::NoSheet(architecture.title.clone(), architecture.name.clone()))?;
        if let Some(dispute) = dispute {
            if sheet.disputes().contains(&dispute) {
                sheet = sheet.with_alternative(dispute);
            } else if let Some(variant) = published::with_variant(&architecture, &sheet, dispute) {
                sheet = variant;
            } else {
                let known = sheet.disputes().into_iter().chain(architecture.variants());
                return Err(SimError::NoDispute {
                    known: known.map(String::from).collect(),
                    architecture: architecture.title.clone(),
                    name: dispute.to_string(),
                });
            }
        }
        let simulated = simulate(&sheet, format!("sim:{name}")).map_err(OpenError::from)?;
        Ok(Sim { simulated, architecture, alternative: dispute.is_some() })
    }
}

impl Device for Sim {
    fn identity(&self) -> &Identity {
        self.simulated.identity()
    }

    fn instructions(&self) -> &[Instruction] {
        self.simulated.instructions()
    }

    fn instruction(&self, name: &str) -> Result<Instruction, String> {
        match self.architecture.families.iter().find_map(|family| family.named(name)) {
            Some(Ok(instruction)) if self.simulated.instruction(&self.listed(&instruction)).is_ok() => {
                Ok(instruction)
            }
            Some(Err(no_such_shape)) => Err(no_such_shape.to_string()),
            _ => self.simulated.instruction(name),
        }
    }

    fn means_nan_bits(&self, instruction: &Instruction) -> bool {
        let listed = self.simulated.instruction(&self.listed(instruction));
        listed.is_ok_and(|listed| self.simulated.means_nan_bits(&listed))
    }

    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        let refused =
            |problem| DeviceError { device: self.identity().name.clone(), fault: Fault::Refused(problem) };
        if self.simulated.instructions().contains(instruction) {
            return match apple::form(&self.architecture, instruction).filter(|_| !self.alternative) {
                Some(_) if !batch.fits(instruction) => {
                    let name = &instruction.name;
                    Err(refused(format!("a batch for `{name}` has arrays of the wrong lengths")))
                }
                Some(form) => Ok(apple::run(form, batch)),
                None => self.simulated.run(instruction, batch),
            };
        }
        if self.instruction(&instruction.name).map_err(refused)? != *instruction {
            return Err(refused(format!("its `{}` is another instruction", instruction.name)));
        }
        self.simulated.run_as(&self.listed(instruction), instruction, batch)
    }
}

impl Sim {
    /// The model that stands for an instruction in the sheet.
    pub fn model(&self, instruction: &Instruction) -> Option<&Model> {
        self.simulated.model(&self.listed(instruction))
    }

    /// The name under which an instruction is listed, which differs from it in m and n.
    fn listed(&self, instruction: &Instruction) -> String {
        let family =
            self.architecture.families.iter().find(|family| family.named(&instruction.name).is_some());
        family.map_or_else(
            || instruction.name.clone(),
            |family| {
                let (m, n) = family.smallest();
                family.name(m, n)
            },
        )
    }
}
