//! Where a vector's outputs stand in C and D.

use super::lanes::Lanes;

/// What the lanes of a vector are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Elements of a column of D.
    Rows,
    /// Elements of a row of D.
    Columns,
    /// Any elements, one after the other, also of different problems.
    Pairs,
}

impl Layout {
    /// The layout that wastes least. In pairs no lanes are idle, but both factors have to be gathered for
    /// each vector, which takes longer than computing with them.
    pub fn new(m: usize, n: usize, lanes: usize) -> Layout {
        let idle = |size: usize| size.next_multiple_of(lanes) as f64 / size as f64;
        let (rows, columns) = (idle(m), idle(n));
        match () {
            () if rows.min(columns) > 4.0 => Layout::Pairs,
            () if columns <= rows => Layout::Columns,
            () => Layout::Rows,
        }
    }
}

/// The elements of C and D that a vector stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// Index of the first lane's element.
    pub first: usize,
    /// From lane to lane.
    pub stride: usize,
    /// How many lanes count.
    pub count: usize,
}

impl Places {
    /// Reads elements of 2 or 4 bytes.
    #[inline(always)]
    pub fn gather<L: Lanes>(&self, lanes: L, bytes: usize, from: &[u8]) -> L::W {
        let from = &from[self.first * bytes..];
        if bytes == 4 && self.count == L::N {
            return if self.stride == 1 { lanes.load_bytes(from) } else { lanes.gather(from, self.stride) };
        }
        let mut buffer = [0i32; 16];
        if bytes == 4 {
            let lanes = from.chunks_exact(4).step_by(self.stride).take(self.count);
            for (to, from) in buffer.iter_mut().zip(lanes) {
                *to = i32::from_le_bytes([from[0], from[1], from[2], from[3]]);
            }
        } else {
            let lanes = from.chunks_exact(2).step_by(self.stride).take(self.count);
            for (to, from) in buffer.iter_mut().zip(lanes) {
                *to = u16::from_le_bytes([from[0], from[1]]).into();
            }
        }
        lanes.load(&buffer)
    }

    /// Writes elements of 2 or 4 bytes.
    #[inline(always)]
    pub fn scatter<L: Lanes>(&self, lanes: L, bytes: usize, vector: L::W, to: &mut [u8]) {
        let to = &mut to[self.first * bytes..];
        if bytes == 4 && self.count == L::N {
            return match self.stride {
                1 => lanes.store_bytes(vector, to),
                stride => lanes.scatter(vector, to, stride),
            };
        }
        let mut buffer = [0i32; 16];
        lanes.store(vector, &mut buffer);
        if bytes == 4 {
            for (to, from) in to.chunks_exact_mut(4).step_by(self.stride).zip(&buffer[..self.count]) {
                to.copy_from_slice(&from.to_le_bytes());
            }
        } else {
            for (to, from) in to.chunks_exact_mut(2).step_by(self.stride).zip(&buffer[..self.count]) {
                to.copy_from_slice(&(*from as u16).to_le_bytes());
            }
        }
    }
}
