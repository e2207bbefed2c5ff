//! Virtual devices: instructions whose arithmetic is a [`Model`].

use mmaprobe_model::compiled::Problems;
use mmaprobe_model::tree::NanRule;
use mmaprobe_model::{Compiled, Model};

use crate::device::{Batch, Device, DeviceError, Fault, Identity, Instruction};

/// A device that executes models, in their compiled form.
#[derive(Clone, Debug)]
pub struct Simulated {
    identity: Identity,
    instructions: Vec<Instruction>,
    /// The model of each instruction.
    models: Vec<Compiled>,
}

impl Simulated {
    /// A device with these instructions, each computing what its model says.
    ///
    /// # Errors
    /// If a model does not [fit](check_fit) its instruction, or two instructions have the same name.
    pub fn new(
        identity: Identity,
        instructions: Vec<(Instruction, Model)>,
    ) -> Result<Simulated, DeviceError> {
        let refused = |problem: String| DeviceError {
            device: identity.name.clone(),
            fault: Fault::Description(problem),
        };
        for (index, (instruction, model)) in instructions.iter().enumerate() {
            let name = &instruction.name;
            check_fit(instruction, Some(model))
                .map_err(|misfit| refused(format!("instruction `{name}`: {misfit}")))?;
            if instructions[..index].iter().any(|(other, _)| &other.name == name) {
                return Err(refused(format!("two instructions are named `{name}`")));
            }
        }
        let models = instructions
            .iter()
            .map(|(instruction, model)| {
                Compiled::new(model)
                    .map_err(|error| refused(format!("instruction `{}`: {error}", instruction.name)))
            })
            .collect::<Result<_, _>>()?;
        let instructions = instructions.into_iter().map(|(instruction, _)| instruction).collect();
        Ok(Simulated { identity, instructions, models })
    }

    /// The model of an instruction, by name.
    pub fn model(&self, instruction: &str) -> Option<&Model> {
        self.compiled(instruction).map(Compiled::model)
    }

    fn compiled(&self, instruction: &str) -> Option<&Compiled> {
        let index = self.instructions.iter().position(|other| other.name == instruction)?;
        self.models.get(index)
    }

    /// Runs an instruction that differs from a listed one in name, m and n alone.
    ///
    /// # Errors
    /// If none of that name is listed, or the instruction is not that one's.
    pub fn run_as(
        &self,
        listed: &str,
        instruction: &Instruction,
        batch: &Batch,
    ) -> Result<Vec<u8>, DeviceError> {
        let compiled =
            self.compiled(listed).ok_or_else(|| self.refused(format!("it has no instruction `{listed}`")))?;
        check_fit(instruction, Some(compiled.model()))
            .map_err(|misfit| self.refused(format!("instruction `{}`: {misfit}", instruction.name)))?;
        self.execute(compiled, instruction, batch)
    }

    /// Computes every element of every problem.
    fn execute(
        &self,
        compiled: &Compiled,
        instruction: &Instruction,
        batch: &Batch,
    ) -> Result<Vec<u8>, DeviceError> {
        let bytes = instruction.bytes();
        let lengths = [bytes.a, bytes.b, bytes.c, bytes.sa, bytes.sb].map(|array| array * batch.count);
        if batch.arrays().map(<[u8]>::len) != lengths {
            let problem = format!("a batch for `{}` has arrays of the wrong lengths", instruction.name);
            return Err(self.refused(problem));
        }
        // A model may have no use for the scales that its instruction takes.
        let [a, b, c, sa, sb] = batch.arrays();
        let (sa, sb) = if compiled.model().scale.is_some() { (sa, sb) } else { (&[][..], &[][..]) };
        let problems = Problems { count: batch.count, m: instruction.m, n: instruction.n, a, b, c, sa, sb };
        let mut d = vec![0; bytes.d * batch.count];
        compiled.run(&problems, &mut d);
        Ok(d)
    }

    fn refused(&self, problem: String) -> DeviceError {
        DeviceError { device: self.identity.name.clone(), fault: Fault::Refused(problem) }
    }
}

impl Device for Simulated {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    fn means_nan_bits(&self, instruction: &Instruction) -> bool {
        !instruction.d.has_nan()
            || self.model(&instruction.name).is_none_or(|model| model.nan != NanRule::Unknown)
    }

    fn run(&self, instruction: &Instruction, batch: &Batch) -> Result<Vec<u8>, DeviceError> {
        let model = self
            .instructions
            .iter()
            .position(|own| own == instruction)
            .map(|index| &self.models[index])
            .ok_or_else(|| self.refused(format!("it has no instruction `{}`", instruction.name)))?;
        self.execute(model, instruction, batch)
    }
}

/// Why an instruction makes no sense, or a model is not one of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// The shape is empty, or larger than anything that could be addressed.
    #[error("the shape {m}×{n}×{k} is not possible")]
    Shape {
        /// Rows.
        m: usize,
        /// Columns.
        n: usize,
        /// Products.
        k: usize,
    },
    /// K does not divide into blocks that share a scale.
    #[error("{k} products do not divide into blocks of {block}")]
    Blocks {
        /// Products.
        k: usize,
        /// Products that share a scale.
        block: usize,
    },
    /// The numbers of products differ.
    #[error("its arithmetic adds {found} products, and its shape says {expected}")]
    Products {
        /// In the model.
        found: usize,
        /// In the instruction.
        expected: usize,
    },
    /// An operand is read as a format of another size.
    #[error("its arithmetic reads {operand} as {found}, which differs in size from {expected}")]
    Operand {
        /// The operand.
        operand: char,
        /// In the model.
        found: &'static str,
        /// In the instruction.
        expected: &'static str,
    },
    /// The format of the result differs.
    #[error("its arithmetic delivers {found} instead of {expected}")]
    Result {
        /// In the model.
        found: &'static str,
        /// In the instruction.
        expected: &'static str,
    },
    /// The block scales differ.
    #[error("its arithmetic has other block scales than the instruction")]
    Scale,
    /// The model cannot be executed.
    #[error("{0}")]
    Model(#[from] mmaprobe_model::tree::ModelError),
}

/// Elements along one dimension that an instruction can have.
const MAX_DIMENSION: usize = 1 << 16;

/// Checks that an instruction makes sense, and that a model of it takes and delivers what it does.
///
/// # Errors
/// The first thing that does not fit.
pub fn check_fit(instruction: &Instruction, model: Option<&Model>) -> Result<(), Misfit> {
    let &Instruction { m, n, k, a, b, c, d, scale, .. } = instruction;
    if [m, n, k].iter().any(|&size| size == 0 || size > MAX_DIMENSION) {
        return Err(Misfit::Shape { m, n, k });
    }
    if let Some(scale) = scale
        && (scale.block == 0 || !k.is_multiple_of(scale.block))
    {
        return Err(Misfit::Blocks { k, block: scale.block });
    }
    let Some(model) = model else { return Ok(()) };
    model.check()?;
    if model.k != k {
        return Err(Misfit::Products { found: model.k, expected: k });
    }
    for (operand, found, expected) in [('a', &model.a, a), ('b', &model.b, b), ('c', &model.c, c)] {
        if found.format.bytes != expected.bytes {
            return Err(Misfit::Operand { operand, found: found.format.name, expected: expected.name });
        }
    }
    if model.d != d {
        return Err(Misfit::Result { found: model.d.name, expected: d.name });
    }
    let layout = |scale: mmaprobe_model::tree::Scale| (scale.block, scale.format.bytes);
    if model.scale.is_some_and(|own| Some(layout(own)) != scale.map(layout)) {
        return Err(Misfit::Scale);
    }
    Ok(())
}
