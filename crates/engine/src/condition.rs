//! Conditions on the output of a node, as they stand on edges.
//!
//! A condition is a test `{field, operator, value}` or a group `{all: […]}`, `{any: […]}`,
//! `{not: …}`. It never raises: a missing field or a value of the wrong type makes a test false
//! (`notEquals`: true), and the trace says why. Rules O-C01 to O-C04.

mod evaluate;
mod label;
mod parse;

use serde::{Deserialize, Serialize};

use crate::path::Path;
use crate::value::Value;

/// The deepest JSON a condition may be. Less than the reader's own limit, so that a record that
/// holds the trace of a condition can be read again.
pub const CONDITION_DEPTH_MAX: usize = 100;

/// The most characters of a value that a trace repeats.
pub const SEEN_CHARS_MAX: usize = 256;

/// A condition that was found to be well formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// One comparison.
    Test(Test),
    /// True if every part is; an empty one is true.
    All(Vec<Condition>),
    /// True if some part is; an empty one is false.
    Any(Vec<Condition>),
    /// True if the part is false.
    Not(Box<Condition>),
}

/// A comparison of one place in a value with a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The place; the empty path is the whole output.
    pub field: Path,
    /// How to compare.
    pub operator: Operator,
    /// What to compare with; null for [`Operator::Exists`].
    pub value: Value,
}

/// How a test compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operator {
    /// Present and equal, strict about type; 1 equals 1.0.
    Equals,
    /// The opposite of equals: true for a missing field.
    NotEquals,
    /// A text with this text in it, or a list with an element equal to this.
    Contains,
    /// Greater as a number; texts that are exactly a JSON number count as numbers.
    GreaterThan,
    /// Less as a number; texts that are exactly a JSON number count as numbers.
    LessThan,
    /// Present and not null.
    Exists,
}

/// Why a part of a condition is not well formed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", label::place(path))]
pub struct ConditionError {
    /// The place inside the condition, such as `all[1].operator`; empty for the whole.
    pub path: Path,
    /// What is wrong and what to do, for a person.
    pub message: String,
}

/// What a condition came to, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the condition is true.
    pub holds: bool,
    /// Every test with what it saw.
    pub trace: Trace,
}

/// What each part of a condition came to, in the shape of the condition.
///
/// Every part is evaluated and recorded, also where an earlier one already decided the group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Trace {
    /// One comparison.
    Test(TestTrace),
    /// A group that is true if every part is.
    All {
        /// Whether the group is true.
        holds: bool,
        /// The parts in order.
        parts: Vec<Trace>,
    },
    /// A group that is true if some part is.
    Any {
        /// Whether the group is true.
        holds: bool,
        /// The parts in order.
        parts: Vec<Trace>,
    },
    /// A group that is true if its part is false.
    Not {
        /// Whether the group is true.
        holds: bool,
        /// The part.
        part: Box<Trace>,
    },
}

/// What one comparison saw and came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestTrace {
    /// The path, in its canonical form.
    pub field: String,
    /// How it was compared.
    pub operator: Operator,
    /// The constant as JSON text of at most [`SEEN_CHARS_MAX`] characters, then `…` if it is
    /// longer; absent for `exists`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The value that was seen, written like `expected`; absent if the field was missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Whether the test is true.
    pub holds: bool,
    /// What a person should know about the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// Advice in words, such as the quoted form of a key that has a dot in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What a person should know about the result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// There is nothing at the path.
    PathNotFound,
    /// The two values cannot be compared this way.
    TypeMismatch,
}

impl Condition {
    /// Reads a condition. Keys it does not know are ignored.
    ///
    /// # Errors
    ///
    /// Every place where it is not well formed, in order: an unknown operator, a missing value, a
    /// bad path, a group that is not a list, or one object that is two conditions.
    pub fn parse(value: &Value) -> Result<Condition, Vec<ConditionError>> {
        parse::parse(value)
    }

    /// Returns whether the condition is true for this output, with everything it looked at.
    ///
    /// Pure, and total: whatever the output is, there is a verdict.
    pub fn evaluate(&self, output: &Value) -> Verdict {
        let trace = evaluate::trace(self, output);
        Verdict { holds: trace.holds(), trace }
    }
}

impl Operator {
    /// All operators, in the order they are offered to a person.
    pub const ALL: [Operator; 6] = [
        Operator::Equals,
        Operator::NotEquals,
        Operator::Contains,
        Operator::GreaterThan,
        Operator::LessThan,
        Operator::Exists,
    ];

    /// Returns the word used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Operator::Equals => "equals",
            Operator::NotEquals => "notEquals",
            Operator::Contains => "contains",
            Operator::GreaterThan => "greaterThan",
            Operator::LessThan => "lessThan",
            Operator::Exists => "exists",
        }
    }
}

impl Trace {
    /// Returns whether this part is true.
    pub fn holds(&self) -> bool {
        match self {
            Trace::Test(test) => test.holds,
            Trace::All { holds, .. } | Trace::Any { holds, .. } | Trace::Not { holds, .. } => {
                *holds
            }
        }
    }

    /// Returns every test in the order of the condition.
    pub fn tests(&self) -> Vec<&TestTrace> {
        let mut tests = Vec::new();
        let mut pending = vec![self];
        while let Some(trace) = pending.pop() {
            match trace {
                Trace::Test(test) => tests.push(test),
                Trace::All { parts, .. } | Trace::Any { parts, .. } => {
                    pending.extend(parts.iter().rev());
                }
                Trace::Not { part, .. } => pending.push(part),
            }
        }
        tests
    }
}
