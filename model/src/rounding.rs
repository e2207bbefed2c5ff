//! Rounding modes: those of Tables I and II of the MMA-Sim paper, and rounding to odd.

/// How a number between two neighbours of a grid becomes one of them.
///
/// The first four are directed; the next six round to the nearest neighbour and differ in what they
/// do with a tie. Source: MMA-Sim paper, section III.E, Tables I and II. Rounding to odd is in neither
/// table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rounding {
    /// RU: toward +∞.
    Up,
    /// RD: toward −∞; what truncating a two's complement number does.
    Down,
    /// RZ: toward zero; what truncating a sign-magnitude number does.
    TowardZero,
    /// RA: away from zero.
    AwayFromZero,
    /// RNU: to nearest, ties toward +∞.
    NearestTiesUp,
    /// RND: to nearest, ties toward −∞.
    NearestTiesDown,
    /// RNZ: to nearest, ties toward zero.
    NearestTiesToZero,
    /// RNA: to nearest, ties away from zero.
    NearestTiesAway,
    /// RNE: to nearest, ties to the even neighbour; the default of IEEE 754.
    NearestTiesToEven,
    /// RNO: to nearest, ties to the odd neighbour.
    NearestTiesToOdd,
    /// RO: to the odd neighbour, whichever is nearer: the magnitude is truncated, and its lowest bit set
    /// if anything was lost. ("Jamming", of von Neumann; Boldo and Melquiond 2008, "Emulation of a FMA and
    /// correctly rounded sums: proved algorithms using rounding to odd".)
    ToOdd,
}

impl Rounding {
    /// The modes of the paper, in the order of Tables I and II; [`EVERY`](Rounding::EVERY) has one more.
    pub const ALL: [Rounding; 10] = [
        Rounding::Up,
        Rounding::Down,
        Rounding::TowardZero,
        Rounding::AwayFromZero,
        Rounding::NearestTiesUp,
        Rounding::NearestTiesDown,
        Rounding::NearestTiesToZero,
        Rounding::NearestTiesAway,
        Rounding::NearestTiesToEven,
        Rounding::NearestTiesToOdd,
    ];

    /// Every mode: those of the paper, and rounding to odd.
    pub const EVERY: [Rounding; 11] = {
        let mut every = [Rounding::ToOdd; 11];
        let mut index = 0;
        while index < Rounding::ALL.len() {
            every[index] = Rounding::ALL[index];
            index += 1;
        }
        every
    };

    /// The paper's abbreviation: `RU`, `RD`, `RZ`, `RA`, `RNU`, `RND`, `RNZ`, `RNA`, `RNE`, `RNO`; and
    /// `RO` for rounding to odd.
    pub const fn abbreviation(self) -> &'static str {
        match self {
            Rounding::Up => "RU",
            Rounding::Down => "RD",
            Rounding::TowardZero => "RZ",
            Rounding::AwayFromZero => "RA",
            Rounding::NearestTiesUp => "RNU",
            Rounding::NearestTiesDown => "RND",
            Rounding::NearestTiesToZero => "RNZ",
            Rounding::NearestTiesAway => "RNA",
            Rounding::NearestTiesToEven => "RNE",
            Rounding::NearestTiesToOdd => "RNO",
            Rounding::ToOdd => "RO",
        }
    }

    /// The mode with this abbreviation, if there is one.
    pub fn from_abbreviation(abbreviation: &str) -> Option<Rounding> {
        Rounding::EVERY.into_iter().find(|mode| mode.abbreviation() == abbreviation)
    }

    /// Whether the truncated magnitude has to be incremented.
    ///
    /// `odd` is the lowest bit that is kept, `half` the first bit that is dropped, `rest` whether
    /// any bit after that one is set.
    #[inline]
    pub const fn increments(self, negative: bool, odd: bool, half: bool, rest: bool) -> bool {
        let tie_increments = match self {
            Rounding::Up => return !negative && (half || rest),
            Rounding::Down => return negative && (half || rest),
            Rounding::TowardZero => return false,
            Rounding::AwayFromZero => return half || rest,
            Rounding::ToOdd => return !odd && (half || rest),
            Rounding::NearestTiesUp => !negative,
            Rounding::NearestTiesDown => negative,
            Rounding::NearestTiesToZero => false,
            Rounding::NearestTiesAway => true,
            Rounding::NearestTiesToEven => odd,
            Rounding::NearestTiesToOdd => !odd,
        };
        half && (rest || tie_increments)
    }

    /// Rounds `magnitude`, with `sticky` saying whether more non-zero bits follow it, to a multiple
    /// of 2^`shift`, and returns that multiple divided by 2^`shift`.
    #[inline]
    pub const fn shift_right(self, negative: bool, magnitude: u128, sticky: bool, shift: u32) -> u128 {
        if shift == 0 {
            // Bits that were dropped lie below the half bit, which is then zero.
            return magnitude + self.increments(negative, magnitude & 1 == 1, false, sticky) as u128;
        }
        let (kept, half, rest) = if shift > 128 {
            (0, false, magnitude != 0)
        } else {
            let kept = if shift == 128 { 0 } else { magnitude >> shift };
            let half = magnitude >> (shift - 1) & 1 == 1;
            let rest = magnitude & ((1 << (shift - 1)) - 1) != 0;
            (kept, half, rest)
        };
        kept + self.increments(negative, kept & 1 == 1, half, rest || sticky) as u128
    }
}

impl core::fmt::Display for Rounding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.abbreviation())
    }
}
