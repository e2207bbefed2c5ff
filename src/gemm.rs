//! Matrices of any size, multiplied by one instruction of a device.
//!
//! The matrices are cut into tiles of the instruction's shape, and each tile of D is what a plain
//! loop of the instruction leaves in its accumulator:
//!
//! ```text
//! D = C
//! for k0 in 0, k, 2k … K:  D = instruction(A[:, k0..k0+k], B[k0..k0+k, :], D)
//! ```
//!
//! Rows and columns that tiles have beyond the edge are zeros, and what they give is dropped: each
//! element of D depends on its own row and column alone. Products beyond K are another matter: even
//! +0·+0 can change a sum, by turning −0 into +0 or by entering its alignment, so they have to be
//! asked for.

use std::ops::Range;

use rayon::prelude::*;

use crate::device::{Batch, Device, DeviceError, Instruction, run_checked, set_element};
use crate::matrix::Matrix;
use crate::model::{Decoded, Format};

/// What to multiply.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'m> {
    /// A, M×K.
    pub a: &'m Matrix,
    /// B, K×N.
    pub b: &'m Matrix,
    /// C, M×N; zeros where there is none.
    pub c: Option<&'m Matrix>,
    /// The scales of A's blocks, M×(K / block).
    pub sa: Option<&'m Matrix>,
    /// The scales of B's blocks, (K / block)×N.
    pub sb: Option<&'m Matrix>,
}

/// Why matrices cannot be multiplied by an instruction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// A matrix has no elements.
    #[error("{matrix} is empty ({rows}×{columns})")]
    Empty {
        /// Which.
        matrix: &'static str,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
    /// A and B do not go together.
    #[error("A has {columns} columns and B {rows} rows; both should be K (A is M×K, B is K×N)")]
    Inner {
        /// Columns of A.
        columns: usize,
        /// Rows of B.
        rows: usize,
    },
    /// A matrix has another shape than A and B call for.
    #[error("{matrix} should be {what} = {}×{}, and is {}×{}", .expected.0, .expected.1, .found.0, .found.1)]
    Shape {
        /// Which.
        matrix: &'static str,
        /// The shape in words.
        what: String,
        /// The shape it should have.
        expected: (usize, usize),
        /// The shape it has.
        found: (usize, usize),
    },
    /// A matrix has elements of another format than the instruction takes.
    #[error("{matrix} should hold {expected}, and holds {found}")]
    Format {
        /// Which.
        matrix: &'static str,
        /// What the instruction takes.
        expected: &'static str,
        /// What the matrix holds.
        found: &'static str,
    },
    /// K is no multiple of the instruction's.
    #[error(
        "K = {k} is no multiple of {step}, the K of {instruction}; appending products +0·+0 could change \
         results (the sign of a zero, the alignment of a sum): --pad-k appends them all the same"
    )]
    Remainder {
        /// K.
        k: usize,
        /// The instruction's K.
        step: usize,
        /// The instruction.
        instruction: String,
    },
    /// D cannot become the next C.
    #[error(
        "K = {k} takes several steps of {instruction}, whose K is {step}, but its D ({d}) cannot be the \
         next step's C ({c}); use matrices with K ≤ {step}"
    )]
    Chain {
        /// K.
        k: usize,
        /// The instruction's K.
        step: usize,
        /// The instruction.
        instruction: String,
        /// Its format of C.
        c: &'static str,
        /// Its format of D.
        d: &'static str,
    },
    /// Scales are missing.
    #[error("{matrix} is missing: {instruction} takes a {format} scale for each {block} products")]
    NoScales {
        /// Which matrix of scales.
        matrix: &'static str,
        /// The instruction.
        instruction: String,
        /// Format of its scales.
        format: &'static str,
        /// Products that share one.
        block: usize,
    },
    /// There are scales that nothing takes.
    #[error("{matrix} has no use: {instruction} takes no block scales")]
    Scales {
        /// Which matrix of scales.
        matrix: &'static str,
        /// The instruction.
        instruction: String,
    },
}

/// A multiplication that fits its instruction.
#[derive(Clone, Debug)]
pub struct Gemm<'m> {
    instruction: &'m Instruction,
    a: &'m Matrix,
    /// B's columns as rows, as batches have them.
    b: Matrix,
    c: Option<&'m Matrix>,
    scales: Option<Scales<'m>>,
}

#[derive(Clone, Debug)]
struct Scales<'m> {
    a: &'m Matrix,
    /// Transposed like B.
    b: Matrix,
    /// Scales of one tile's row or column.
    each: usize,
}

impl<'m> Gemm<'m> {
    /// Checks that the operands fit together and the instruction. With `pad_k`, a K that is no
    /// multiple of the instruction's is completed by products +0·+0 (with scales of 1).
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn new(
        instruction: &'m Instruction,
        operands: Operands<'m>,
        pad_k: bool,
    ) -> Result<Gemm<'m>, Misfit> {
        let Operands { a, b, c, sa, sb } = operands;
        let (m, n, k) = (a.rows(), b.columns(), a.columns());
        for (matrix, name) in [(a, "A"), (b, "B")] {
            if matrix.rows() == 0 || matrix.columns() == 0 {
                return Err(Misfit::Empty { matrix: name, rows: matrix.rows(), columns: matrix.columns() });
            }
        }
        if k != b.rows() {
            return Err(Misfit::Inner { columns: k, rows: b.rows() });
        }
        check_format("A", a, &instruction.a)?;
        check_format("B", b, &instruction.b)?;
        if let Some(c) = c {
            check_format("C", c, &instruction.c)?;
            check_shape("C", c, || "M×N".into(), (m, n))?;
        }
        let name = || instruction.name.clone();
        if !k.is_multiple_of(instruction.k) && !pad_k {
            return Err(Misfit::Remainder { k, step: instruction.k, instruction: name() });
        }
        if k > instruction.k && instruction.c != instruction.d {
            let (c, d) = (instruction.c.name, instruction.d.name);
            return Err(Misfit::Chain { k, step: instruction.k, instruction: name(), c, d });
        }
        let scales = match instruction.scale {
            None => {
                for (matrix, given) in [("SA", sa), ("SB", sb)] {
                    if given.is_some() {
                        return Err(Misfit::Scales { matrix, instruction: name() });
                    }
                }
                None
            }
            Some(scale) => {
                let block = scale.block;
                let missing = |matrix| Misfit::NoScales {
                    matrix,
                    instruction: name(),
                    format: scale.format.name,
                    block,
                };
                let sa = sa.ok_or_else(|| missing("SA"))?;
                let sb = sb.ok_or_else(|| missing("SB"))?;
                let blocks = k.div_ceil(block);
                check_format("SA", sa, &scale.format)?;
                check_format("SB", sb, &scale.format)?;
                check_shape("SA", sa, || format!("M×(K / {block})"), (m, blocks))?;
                check_shape("SB", sb, || format!("(K / {block})×N"), (blocks, n))?;
                Some(Scales { a: sa, b: sb.transposed(), each: instruction.k / block })
            }
        };
        Ok(Gemm { instruction, a, b: b.transposed(), c, scales })
    }

    /// Rows and columns of tiles that D is cut into.
    pub fn tiles(&self) -> (usize, usize) {
        (self.a.rows().div_ceil(self.instruction.m), self.b.rows().div_ceil(self.instruction.n))
    }

    /// Instructions that each tile takes.
    pub fn steps(&self) -> usize {
        self.a.columns().div_ceil(self.instruction.k)
    }

    /// Computes D on all threads of the current rayon pool; the result does not depend on how many
    /// there are. `progress` is told how many more instructions have been computed.
    ///
    /// # Errors
    /// If the device fails.
    pub fn run(&self, device: &dyn Device, progress: &(dyn Fn(u64) + Sync)) -> Result<Matrix, DeviceError> {
        let &Instruction { m, n, d: format, .. } = self.instruction;
        let (tile_rows, tile_columns) = self.tiles();
        let tiles = tile_rows * tile_columns;
        // A few thousand elements of D each: enough to outweigh what a call costs, few enough for
        // caches, and for every thread to get some.
        let per_batch = (4096 / (m * n)).max(1);
        let groups: Vec<Vec<u8>> = (0..tiles.div_ceil(per_batch))
            .into_par_iter()
            .map(|group| {
                let first = group * per_batch;
                self.compute(device, first..(first + per_batch).min(tiles), progress)
            })
            .collect::<Result<_, _>>()?;
        let (rows, columns) = (self.a.rows(), self.b.rows());
        let mut d = Matrix::zeros(format, rows, columns);
        let tile_bytes = m * n * format.bytes;
        for (tile, elements) in groups.iter().flat_map(|group| group.chunks_exact(tile_bytes)).enumerate() {
            let (row, column) = self.corner(tile);
            let width = n.min(columns - column);
            for (i, line) in elements.chunks_exact(n * format.bytes).take(rows - row).enumerate() {
                d.set_part(row + i, column, &line[..width * format.bytes]);
            }
        }
        Ok(d)
    }

    /// The row and column of D at which a tile begins.
    fn corner(&self, tile: usize) -> (usize, usize) {
        let (_, columns) = self.tiles();
        (tile / columns * self.instruction.m, tile % columns * self.instruction.n)
    }

    /// Computes these tiles of D side by side, step after step along K.
    fn compute(
        &self,
        device: &dyn Device,
        tiles: Range<usize>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<u8>, DeviceError> {
        let &Instruction { m, n, k, .. } = self.instruction;
        let count = tiles.len();
        let mut batch = Batch::zeros(self.instruction, count);
        let corners: Vec<(usize, usize)> = tiles.map(|tile| self.corner(tile)).collect();
        if let Some(c) = self.c {
            for (problem, &(row, column)) in corners.iter().enumerate() {
                fill(&mut batch.c, c, (problem, m, row), (n, column), 0);
            }
        }
        for step in 0..self.steps() {
            for (problem, &(row, column)) in corners.iter().enumerate() {
                fill(&mut batch.a, self.a, (problem, m, row), (k, step * k), 0);
                fill(&mut batch.b, &self.b, (problem, n, column), (k, step * k), 0);
                if let Some(scales) = &self.scales {
                    let blocks = (scales.each, step * scales.each);
                    let one = one(scales.a.format());
                    fill(&mut batch.sa, scales.a, (problem, m, row), blocks, one);
                    fill(&mut batch.sb, &scales.b, (problem, n, column), blocks, one);
                }
            }
            // D lies as C does, and has its format where there is another step.
            batch.c = run_checked(device, self.instruction, &batch)?;
            progress(count as u64);
        }
        Ok(batch.c)
    }
}

/// Copies a part of a matrix, `height` rows from `row` on and `width` columns from `column` on, into
/// an array of such parts. Beyond the matrix's rows the array stays as it is; beyond its columns it
/// is `padding`.
fn fill(
    array: &mut [u8],
    matrix: &Matrix,
    (problem, height, row): (usize, usize, usize),
    (width, column): (usize, usize),
    padding: u64,
) {
    let format = matrix.format();
    let end = (column + width).min(matrix.columns());
    for i in 0..height.min(matrix.rows() - row) {
        let line = &mut array[(problem * height + i) * width * format.bytes..][..width * format.bytes];
        let part = matrix.part(row + i, column.min(end)..end);
        line[..part.len()].copy_from_slice(part);
        for index in end.saturating_sub(column)..width {
            set_element(line, format, index, padding);
        }
    }
}

/// The pattern of 1 in a format.
fn one(format: &Format) -> u64 {
    format.pack(Decoded::Finite { negative: false, significand: 1 << format.fraction_bits, exponent: 0 })
}

fn check_format(name: &'static str, matrix: &Matrix, expected: &Format) -> Result<(), Misfit> {
    if matrix.format() == expected {
        return Ok(());
    }
    Err(Misfit::Format { matrix: name, expected: expected.name, found: matrix.format().name })
}

fn check_shape(
    name: &'static str,
    matrix: &Matrix,
    what: impl FnOnce() -> String,
    expected: (usize, usize),
) -> Result<(), Misfit> {
    let found = (matrix.rows(), matrix.columns());
    if found == expected {
        return Ok(());
    }
    Err(Misfit::Shape { matrix: name, what: what(), expected, found })
}
