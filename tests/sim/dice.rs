//! Seeded chance. Whoever has the seed can repeat everything.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A source of chance that is the same on every machine.
#[derive(Clone, Debug)]
pub struct Dice(ChaCha8Rng);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number from 0 to `n - 1`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.random_range(low..=high)
    }

    /// True so many times out of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.0.random_range(0..100) < percent
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            items.swap(place, self.below(place + 1));
        }
    }
}
