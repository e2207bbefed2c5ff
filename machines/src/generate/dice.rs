//! Random choices.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded source of random choices.
#[derive(Clone, Debug)]
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    /// The choices for item `index` of a seed, in one of several independent streams.
    pub fn new(seed: u64, index: u64, stream: u64) -> Dice {
        // Multiplication by odd constants keeps all of an index; seeding spreads by SplitMix64.
        let mixed = seed
            ^ index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03).rotate_left(32);
        Dice(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n as u64) as usize
    }

    /// True that often.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// One of these, by their weights.
    pub fn weighted<T: Clone>(&mut self, of: &[(T, usize)]) -> T {
        let mut left = self.below(of.iter().map(|(_, weight)| weight).sum());
        for (choice, weight) in of {
            if left < *weight {
                return choice.clone();
            }
            left -= weight;
        }
        unreachable!("some weight was hit")
    }

    /// In another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
