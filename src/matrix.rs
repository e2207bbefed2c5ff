//! Matrices of bit patterns, of any size.

use crate::device::{element, set_element};
use crate::model::Format;

/// A matrix of bit patterns, row by row, its elements little-endian in their format's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    format: Format,
    rows: usize,
    columns: usize,
    bytes: Vec<u8>,
}

impl Matrix {
    /// A matrix of elements that lie row by row.
    ///
    /// # Panics
    /// If there are not rows × columns elements.
    pub fn new(format: Format, rows: usize, columns: usize, bytes: Vec<u8>) -> Matrix {
        assert_eq!(bytes.len(), rows * columns * format.bytes, "bytes of a {rows}×{columns} matrix");
        Matrix { format, rows, columns, bytes }
    }

    /// A matrix of zero bits.
    pub fn zeros(format: Format, rows: usize, columns: usize) -> Matrix {
        Matrix { format, rows, columns, bytes: vec![0; rows * columns * format.bytes] }
    }

    /// The format of its elements.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// Its number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Its number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Its elements, row by row.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bits of an element.
    ///
    /// # Panics
    /// If there is none in this place.
    pub fn get(&self, row: usize, column: usize) -> u64 {
        element(&self.bytes, &self.format, self.index(row, column))
    }

    /// Sets the bits of an element.
    ///
    /// # Panics
    /// If there is none in this place.
    pub fn set(&mut self, row: usize, column: usize, bits: u64) {
        let index = self.index(row, column);
        set_element(&mut self.bytes, &self.format, index, bits);
    }

    /// The elements `columns` of a row.
    ///
    /// # Panics
    /// If they are not all there.
    pub fn part(&self, row: usize, columns: std::ops::Range<usize>) -> &[u8] {
        let first = row * self.columns * self.format.bytes;
        let row = &self.bytes[first..][..self.columns * self.format.bytes];
        &row[columns.start * self.format.bytes..columns.end * self.format.bytes]
    }

    /// Overwrites a part of a row, from `column` on.
    ///
    /// # Panics
    /// If it reaches beyond the row.
    pub fn set_part(&mut self, row: usize, column: usize, elements: &[u8]) {
        let first = row * self.columns * self.format.bytes;
        let row = &mut self.bytes[first..][..self.columns * self.format.bytes];
        row[column * self.format.bytes..][..elements.len()].copy_from_slice(elements);
    }

    /// Rows for columns.
    pub fn transposed(&self) -> Matrix {
        let mut transposed = Matrix::zeros(self.format, self.columns, self.rows);
        for row in 0..self.rows {
            for column in 0..self.columns {
                transposed.set(column, row, self.get(row, column));
            }
        }
        transposed
    }

    /// The first element with bits beyond the width of its format: its row, column and bits.
    pub fn beyond_format(&self) -> Option<(usize, usize, u64)> {
        let width = self.format.bits() + self.format.ignored_low_bits;
        if width as usize == 8 * self.format.bytes {
            return None;
        }
        let bits = |index| element(&self.bytes, &self.format, index);
        let index = (0..self.rows * self.columns).find(|&index| bits(index) >> width != 0)?;
        Some((index / self.columns, index % self.columns, bits(index)))
    }

    fn index(&self, row: usize, column: usize) -> usize {
        assert!(row < self.rows && column < self.columns, "({row}, {column}) lies outside the matrix");
        row * self.columns + column
    }
}
