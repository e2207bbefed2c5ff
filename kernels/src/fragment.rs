//! Where each element of a matrix is while an instruction runs, in terms that all vendors share: fragments,
//! which are [packed](crate::pack) from a batch's arrays and unpacked into them.

use mmaprobe_model::Format;
use mmaprobe_model::format::{E2M1, E2M3, E3M2};

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Matrix {
    /// The left factor, m×k.
    A,
    /// The right factor, k×n.
    B,
    /// The accumulator before, m×n.
    C,
    /// The accumulator after, m×n.
    D,
    /// The scales of A's blocks, m×(k/block).
    ScaleA,
    /// The scales of B's blocks, (k/block)×n.
    ScaleB,
}

impl Matrix {
    /// All of them.
    pub const ALL: [Matrix; 6] = [Matrix::A, Matrix::B, Matrix::C, Matrix::D, Matrix::ScaleA, Matrix::ScaleB];
}

/// What holds a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Registers of a warp's or a warpgroup's lanes.
    Registers {
        /// Lanes: 32 or 128.
        lanes: usize,
        /// Registers of each lane.
        registers: usize,
        /// Bits of a register: 32 or 64.
        width: usize,
    },
    /// Shared memory; a [place](Place)'s register is then a byte.
    Shared {
        /// Bytes.
        bytes: usize,
    },
    /// Vector registers (VGPRs) of a wave's 64 lanes, 32 bits each. An element can reach into the next
    /// register of its lane.
    Vgprs {
        /// Registers of each lane.
        registers: usize,
    },
    /// Columns of 32 bits of tensor memory; a [place](Place)'s register is then a column.
    TensorMemory {
        /// Lanes: 128; 32 for scales, which are repeated in each quarter of the lanes.
        lanes: usize,
        /// Columns.
        columns: usize,
    },
}

impl Home {
    /// Lanes, registers of each, and bits of a register.
    pub fn size(&self) -> (usize, usize, usize) {
        match *self {
            Home::Registers { lanes, registers, width } => (lanes, registers, width),
            Home::Shared { bytes } => (1, bytes, 8),
            Home::Vgprs { registers } => (64, registers, 32),
            Home::TensorMemory { lanes, columns } => (lanes, columns, 32),
        }
    }
}

/// Where an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The lane; 0 in shared memory.
    pub lane: usize,
    /// The register; the byte in shared memory; the column in tensor memory.
    pub register: usize,
    /// The element's lowest bit in it.
    pub bit: usize,
}

/// The layout of one matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// What holds it.
    pub home: Home,
    /// Bits of an element.
    pub bits: usize,
    /// Bytes that an element takes in the arrays of a batch.
    pub element_bytes: usize,
    /// Problems that it holds at the same time.
    pub blocks: usize,
    /// Rows; columns for B and its scales.
    pub outer: usize,
    /// Elements along K, or along n for C and D.
    pub inner: usize,
    /// The places, by problem, outer and inner index.
    places: Vec<Place>,
}

impl Fragment {
    pub(crate) fn new(
        home: Home,
        format: &Format,
        [blocks, outer, inner]: [usize; 3],
        place: impl Fn(usize, usize, usize) -> Place,
    ) -> Fragment {
        let places = (0..blocks * outer * inner)
            .map(|index| place(index / (outer * inner), index / inner % outer, index % inner))
            .collect();
        Fragment {
            home,
            bits: stored_bits(format),
            element_bytes: format.bytes,
            blocks,
            outer,
            inner,
            places,
        }
    }

    /// The place of an element.
    ///
    /// # Panics
    /// If there is no such element.
    pub fn place(&self, block: usize, outer: usize, inner: usize) -> Place {
        assert!(outer < self.outer && inner < self.inner, "element ({outer}, {inner})");
        self.places[(block * self.outer + outer) * self.inner + inner]
    }

    /// The places of all elements, by problem, outer and inner index.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The lowest bit of a place in the fragment's array in global memory: all lanes' first registers,
    /// then all second ones; but a lane's VGPRs one after another, then the next lane's.
    pub fn offset(&self, place: Place) -> usize {
        let (lanes, registers, width) = self.home.size();
        let word = match self.home {
            Home::Vgprs { .. } => place.lane * registers + place.register,
            _ => place.register * lanes + place.lane,
        };
        word * width + place.bit
    }

    /// Bytes of the fragment of one group.
    pub fn bytes(&self) -> usize {
        let (lanes, registers, width) = self.home.size();
        lanes * registers * width / 8
    }

    /// Registers of each lane, bytes of shared memory, or columns of tensor memory.
    pub fn registers(&self) -> usize {
        self.home.size().1
    }
}

/// Bits that an element has where it is stored: all of its bytes, but for formats below 8 bits.
pub(crate) fn stored_bits(format: &Format) -> usize {
    match is_sub_byte(format) {
        true => (1 + format.exponent_bits + format.fraction_bits) as usize,
        false => 8 * format.bytes,
    }
}

/// Where each matrix of a problem, or of a group of them, is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragments {
    /// A, m×k.
    pub a: Fragment,
    /// B; its elements are counted by column first: (j, k).
    pub b: Fragment,
    /// C, m×n.
    pub c: Fragment,
    /// D, m×n.
    pub d: Fragment,
    /// The scales of A's blocks, (i, block), if there are scales.
    pub sa: Option<Fragment>,
    /// The scales of B's blocks, (j, block).
    pub sb: Option<Fragment>,
}

impl Fragments {
    /// That of a matrix; `None` for scales where there are none.
    pub fn of(&self, matrix: Matrix) -> Option<&Fragment> {
        match matrix {
            Matrix::A => Some(&self.a),
            Matrix::B => Some(&self.b),
            Matrix::C => Some(&self.c),
            Matrix::D => Some(&self.d),
            Matrix::ScaleA => self.sa.as_ref(),
            Matrix::ScaleB => self.sb.as_ref(),
        }
    }
}

/// Whether a format has fewer than 8 bits.
pub(crate) fn is_sub_byte(format: &Format) -> bool {
    [E3M2, E2M3, E2M1].contains(format)
}
