//! Editions of the questions: which random ones are asked, and in which order the first of all.
//!
//! A recording answers whole batches, those of the questions that were asked when it was made. Where what every search asks
//! changes, or its order, the one before stays an edition, so that a recording is not lost by that.
//! What a search asks later depends on what it makes of the answers, and may change without an edition.

/// An edition of the questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edition {
    /// Random bits come first, and then random numbers.
    First,
    /// Random bits come after random numbers: most answers to bits are infinite or NaN where factors have wide
    /// exponents, and a device that changes for good after few answers would have been asked nothing else.
    Second,
    /// Sums whose summands have one sign are among the random questions: nothing else shows what becomes of carries far above
    /// the largest summand. And models are told apart by products of subnormal factors beside what is half an ulp away.
    Third,
}

impl Edition {
    /// All, the oldest first.
    pub const ALL: [Edition; 3] = [Edition::First, Edition::Second, Edition::Third];

    /// What is asked of a device that answers now.
    pub const LATEST: Edition = Edition::Third;

    /// Its number, from 1.
    pub fn number(self) -> u64 {
        match self {
            Edition::First => 1,
            Edition::Second => 2,
            Edition::Third => 3,
        }
    }

    /// The edition of that number, if there is one.
    pub fn numbered(number: u64) -> Option<Edition> {
        Edition::ALL.into_iter().find(|edition| edition.number() == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_edition_is_found_by_its_number() {
        for edition in Edition::ALL {
            assert_eq!(Edition::numbered(edition.number()), Some(edition));
        }
        assert_eq!(Edition::numbered(0), None);
        assert_eq!(Edition::ALL.last(), Some(&Edition::LATEST));
        assert_eq!(Edition::numbered(Edition::LATEST.number() + 1), None);
    }
}
