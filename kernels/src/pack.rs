//! From the arrays of a batch to those of a kernel, and back.
//!
//! The arrays of a batch hold problem after problem, elements little-endian: A, C and D row by row, B
//! column by column, scales likewise. The arrays of a kernel hold [fragment](Fragment) after fragment.

use crate::fragment::Fragment;

impl Fragment {
    /// Packs problems, in the order of a batch, into the fragments of `⌈problems / blocks⌉` groups.
    /// Bits that hold no element become zero.
    ///
    /// # Panics
    /// If the lengths do not go together.
    pub fn pack(&self, elements: &[u8], groups: &mut [u8]) {
        self.check(elements.len(), groups.len());
        groups.fill(0);
        let (problem, group) = (self.problem_bytes(), self.bytes());
        let chunks = elements.chunks(problem * self.blocks).zip(groups.chunks_exact_mut(group));
        for (elements, group) in chunks {
            let sources = elements.chunks_exact(self.element_bytes);
            match self.bits % 8 {
                0 => {
                    for (element, &place) in sources.zip(self.places()) {
                        group[self.offset(place) / 8..][..self.element_bytes].copy_from_slice(element);
                    }
                }
                // Below a byte, an element can lie across two.
                bits => {
                    for (element, &place) in sources.zip(self.places()) {
                        let offset = self.offset(place);
                        let shifted = u16::from(element[0] & ((1 << bits) - 1)) << (offset % 8);
                        let [low, high] = shifted.to_le_bytes();
                        group[offset / 8] |= low;
                        if high != 0 {
                            group[offset / 8 + 1] |= high;
                        }
                    }
                }
            }
        }
    }

    /// The reverse of [`pack`](Fragment::pack).
    ///
    /// # Panics
    /// If the lengths do not go together.
    pub fn unpack(&self, groups: &[u8], elements: &mut [u8]) {
        self.check(elements.len(), groups.len());
        let (problem, group) = (self.problem_bytes(), self.bytes());
        let chunks = elements.chunks_mut(problem * self.blocks).zip(groups.chunks_exact(group));
        for (elements, group) in chunks {
            let targets = elements.chunks_exact_mut(self.element_bytes);
            match self.bits % 8 {
                0 => {
                    for (element, &place) in targets.zip(self.places()) {
                        element.copy_from_slice(&group[self.offset(place) / 8..][..self.element_bytes]);
                    }
                }
                bits => {
                    for (element, &place) in targets.zip(self.places()) {
                        let offset = self.offset(place);
                        let bytes = [group[offset / 8], *group.get(offset / 8 + 1).unwrap_or(&0)];
                        element[0] = (u16::from_le_bytes(bytes) >> (offset % 8)) as u8 & ((1 << bits) - 1);
                    }
                }
            }
        }
    }

    /// Bytes of one problem in a batch.
    pub fn problem_bytes(&self) -> usize {
        self.outer * self.inner * self.element_bytes
    }

    fn check(&self, elements: usize, groups: usize) {
        let problem = self.problem_bytes();
        assert!(elements.is_multiple_of(problem), "{elements} bytes are not whole problems of {problem}");
        let expected = (elements / problem).div_ceil(self.blocks) * self.bytes();
        assert_eq!(groups, expected, "bytes of the fragments");
    }
}
