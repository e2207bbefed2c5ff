//! Rounding, as a choice between a floor and the integer after it.

/// Which of its two neighbours an inexact number becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rounding {
    /// RU: toward +∞.
    Up,
    /// RD: toward −∞. Truncation of a two's complement number.
    Down,
    /// RZ: toward zero. Truncation of a magnitude.
    Zero,
    /// RA: away from zero.
    Away,
    /// RNU: to nearest, ties toward +∞.
    NearestUp,
    /// RND: to nearest, ties toward −∞.
    NearestDown,
    /// RNZ: to nearest, ties toward zero.
    NearestZero,
    /// RNA: to nearest, ties away from zero.
    NearestAway,
    /// RNE: to nearest, ties to even.
    NearestEven,
    /// RNO: to nearest, ties to odd.
    NearestOdd,
    /// To the odd neighbour: the lowest bit kept is a sticky bit (von Neumann rounding, "jamming").
    Sticky,
}

/// Where a number lies between two neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the lower neighbour.
    Exact,
    /// Nearer to the lower one.
    BelowHalf,
    /// In the middle.
    Half,
    /// Nearer to the upper one.
    AboveHalf,
}

impl Rounding {
    /// The modes of the MMA-Sim paper's Tables I and II, in their order.
    pub const TABLES: [Rounding; 10] = [
        Rounding::Up,
        Rounding::Down,
        Rounding::Zero,
        Rounding::Away,
        Rounding::NearestUp,
        Rounding::NearestDown,
        Rounding::NearestZero,
        Rounding::NearestAway,
        Rounding::NearestEven,
        Rounding::NearestOdd,
    ];

    /// Whether the number becomes its upper neighbour. `negative` is its sign; `floor_odd` says whether
    /// the lower neighbour is odd, and so the upper one even.
    #[inline]
    pub const fn goes_up(self, negative: bool, floor_odd: bool, place: Place) -> bool {
        match place {
            Place::Exact => return false,
            Place::BelowHalf if self.is_nearest() => return false,
            Place::AboveHalf if self.is_nearest() => return true,
            _ => {}
        }
        match self {
            Rounding::Up | Rounding::NearestUp => true,
            Rounding::Down | Rounding::NearestDown => false,
            Rounding::Zero | Rounding::NearestZero => negative,
            Rounding::Away | Rounding::NearestAway => !negative,
            Rounding::NearestEven => floor_odd,
            Rounding::NearestOdd | Rounding::Sticky => !floor_odd,
        }
    }

    const fn is_nearest(self) -> bool {
        matches!(
            self,
            Rounding::NearestUp
                | Rounding::NearestDown
                | Rounding::NearestZero
                | Rounding::NearestAway
                | Rounding::NearestEven
                | Rounding::NearestOdd
        )
    }

    /// The usual abbreviation; `RS` for the sticky bit.
    pub const fn abbreviation(self) -> &'static str {
        match self {
            Rounding::Up => "RU",
            Rounding::Down => "RD",
            Rounding::Zero => "RZ",
            Rounding::Away => "RA",
            Rounding::NearestUp => "RNU",
            Rounding::NearestDown => "RND",
            Rounding::NearestZero => "RNZ",
            Rounding::NearestAway => "RNA",
            Rounding::NearestEven => "RNE",
            Rounding::NearestOdd => "RNO",
            Rounding::Sticky => "RS",
        }
    }
}

impl std::fmt::Display for Rounding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.abbreviation())
    }
}
