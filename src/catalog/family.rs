//! An instruction of the catalogue: one type pairing, with m and n where they are free.

use mmaprobe_kernels::instruction::Spec;
use mmaprobe_kernels::{cuda, hip};
use mmaprobe_model::algorithms::Types;

use crate::catalog::arithmetic::Published;
use crate::catalog::name;
use crate::device::Instruction;

/// An instruction, or those that differ in m and n alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// What kind of kernel runs it: `mma`, `wgmma`, `mfma`.
    pub kernel: String,
    /// Its name, with `{m}` and `{n}` where they are free.
    pub pattern: String,
    /// What the machine calls it, with the same.
    pub isa: String,
    /// Formats and number of products.
    pub types: Types,
    /// The shapes that it comes in.
    pub tiles: Vec<Tile>,
    /// Independent problems that one execution of it computes.
    pub blocks: usize,
    /// What it computes, if that is published.
    pub published: Option<Published>,
}

/// Shapes: each of the m with each of the n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Rows.
    pub m: Vec<usize>,
    /// Columns: the least, the most, and the step between.
    pub n: Range,
    /// CTAs that compute it together, for instructions that have a choice.
    pub cta_group: Option<u32>,
}

/// The multiples of `step` from `from` to `to`, counted from `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub from: usize,
    /// The most.
    pub to: usize,
    /// The distance from one to the next; not zero.
    pub step: usize,
}

impl Range {
    /// Whether a number is one of them.
    pub fn contains(&self, number: usize) -> bool {
        (self.from..=self.to).contains(&number) && (number - self.from).is_multiple_of(self.step)
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.from == self.to {
            true => write!(f, "{}", self.from),
            false => write!(f, "{} to {} in steps of {}", self.from, self.to, self.step),
        }
    }
}

/// A shape that an instruction does not come in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} has m = {m} and n = {n}, and there are: {shapes}")]
pub struct NoSuchShape {
    /// The name that says so.
    pub name: String,
    /// Rows.
    pub m: usize,
    /// Columns.
    pub n: usize,
    /// What there is, in words.
    pub shapes: String,
}

impl Family {
    /// The smallest m and the smallest n that goes with it.
    pub fn smallest(&self) -> (usize, usize) {
        let shapes = self.tiles.iter().flat_map(|tile| tile.m.iter().map(|&m| (m, tile.n.from)));
        shapes.min().unwrap_or((0, 0))
    }

    /// Elements that share a scale, if it has scales.
    pub fn scale_block(&self) -> Option<usize> {
        self.types.scale.map(|scale| scale.block)
    }

    /// Whether it comes in that shape.
    pub fn has_shape(&self, m: usize, n: usize) -> bool {
        self.tiles.iter().any(|tile| tile.m.contains(&m) && tile.n.contains(n))
    }

    /// Its shapes in words.
    pub fn shapes(&self) -> String {
        let words = |tile: &Tile| {
            let rows: Vec<String> = tile.m.iter().map(usize::to_string).collect();
            let ctas = tile.cta_group.map_or(String::new(), |group| format!(" (cta_group::{group})"));
            format!("m = {}, n = {}{ctas}", rows.join(" or "), tile.n)
        };
        self.tiles.iter().map(words).collect::<Vec<_>>().join("; ")
    }

    /// The instruction of that shape, which it [has](Family::has_shape).
    pub fn instruction(&self, m: usize, n: usize) -> Instruction {
        let Types { a, b, c, d, k, scale } = self.types;
        Instruction { name: self.name(m, n), m, n, k, a, b, c, d, scale, mode_of: None }
    }

    /// What the kernels of NVIDIA GPUs have to know about it in that shape; `None` if none of them is for
    /// it.
    pub fn cuda_spec(&self, m: usize, n: usize) -> Option<cuda::Spec> {
        Some(self.spec(cuda::Kind::named(&self.kernel)?, m, n))
    }

    /// The same for AMD's GPUs.
    pub fn hip_spec(&self, m: usize, n: usize) -> Option<hip::Spec> {
        Some(self.spec(hip::Kind::named(&self.kernel)?, m, n))
    }

    fn spec<K>(&self, kind: K, m: usize, n: usize) -> Spec<K> {
        let Types { a, b, c, d, k, scale } = self.types;
        Spec { kind, m, n, k, a, b, c, d, scale, blocks: self.blocks }
    }

    /// Its name in that shape.
    pub fn name(&self, m: usize, n: usize) -> String {
        with_shape(&self.pattern, m, n)
    }

    /// What the machine calls it in that shape.
    pub fn isa(&self, m: usize, n: usize) -> String {
        with_shape(&self.isa, m, n)
    }

    /// The instruction of that name: `None` if the name is another family's.
    pub fn named(&self, name: &str) -> Option<Result<Instruction, NoSuchShape>> {
        let [m, n] = name::read(&self.pattern, name)?;
        let (smallest_m, smallest_n) = self.smallest();
        let (m, n) = (m.unwrap_or(smallest_m), n.unwrap_or(smallest_n));
        Some(match self.has_shape(m, n) {
            true => Ok(self.instruction(m, n)),
            false => Err(NoSuchShape { name: name.to_string(), m, n, shapes: self.shapes() }),
        })
    }
}

/// A checked pattern with numbers for what is left open in it.
fn with_shape(pattern: &str, m: usize, n: usize) -> String {
    pattern.replace("{m}", &m.to_string()).replace("{n}", &n.to_string())
}
