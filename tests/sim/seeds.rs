//! Seeds that once found something. They run in every campaign, before the others.

/// A seed, and what it found.
pub const SEEDS: [(u64, &str); 0] = [];
