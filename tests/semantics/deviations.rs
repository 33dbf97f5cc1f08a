//! Cases whose expectation contradicts the specification, with the reason and the right end.

/// One case that is held to another expectation than the file's.
pub struct Deviation {
    /// The case.
    pub id: &'static str,
    /// Why the file is wrong.
    pub reason: &'static str,
    /// The right `expect`, as JSON.
    pub expect: &'static str,
}

pub const DEVIATIONS: [Deviation; 0] = [];
