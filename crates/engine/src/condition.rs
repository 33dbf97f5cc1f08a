//! Conditions on edges.

use serde::{Deserialize, Serialize};

/// A condition that was parsed.
#[derive(Clone, Debug)]
pub struct Condition;

/// What a condition saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {}
