//! Agents: who does a node's work. A record of this machine, pinned by digest when it is used.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, Digest};
use crate::value::{Object, Value};

/// Which code performs an agent's attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunnerKind {
    /// Gives back its input.
    Echo,
    /// Runs a program.
    Process,
    /// Plays a script; for tests and demonstrations.
    Scripted,
}

impl RunnerKind {
    /// Every kind that exists.
    pub const ALL: [RunnerKind; 3] = [RunnerKind::Echo, RunnerKind::Process, RunnerKind::Scripted];

    /// The spelling in files.
    pub fn as_str(self) -> &'static str {
        match self {
            RunnerKind::Echo => "echo",
            RunnerKind::Process => "process",
            RunnerKind::Scripted => "scripted",
        }
    }

    /// Whether an attempt takes a place under this machine's limit for the kind before it starts.
    pub fn takes_slot(self) -> bool {
        matches!(self, RunnerKind::Process)
    }

    /// Whether agents of this kind change the outside world unless they say otherwise.
    pub fn is_side_effecting(self) -> bool {
        matches!(self, RunnerKind::Process)
    }
}

impl fmt::Display for RunnerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An agent record.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// Named by nodes.
    pub id: AgentId,
    /// For people.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// A name from the icon set; never an address.
    pub icon: Option<String>,
    /// Groups agents in lists.
    pub category: Option<String>,
    /// Which code performs its attempts.
    pub runner: RunnerKind,
    /// What that code needs to know; its shape depends on `runner`.
    pub settings: Object,
    /// JSON Schema of the parameters that nodes may set, with their defaults.
    pub parameters: Option<Value>,
    /// JSON Schema of the input it expects.
    pub input_schema: Option<Value>,
    /// JSON Schema of the output it promises.
    pub output_schema: Option<Value>,
    /// Whether it changes the outside world; absent means what its kind of runner does.
    pub side_effecting: Option<bool>,
    /// Whether it honours the idempotency key, so that repeating it is safe.
    pub idempotent: bool,
    /// Whether it shows signs of life while it works, so that no fixed timeout applies.
    pub streams: bool,
    /// The timeout of an attempt in seconds, where the node sets none. As written; checked by
    /// `compile`.
    pub timeout: Option<Value>,
    /// The retry policy where the node has none. As written; checked by `compile`.
    pub retry_policy: Option<Value>,
    /// Fields this version does not know, kept as they were.
    pub extra: Object,
}

impl Agent {
    /// Whether an attempt may change the outside world.
    pub fn is_side_effecting(&self) -> bool {
        self.side_effecting.unwrap_or_else(|| self.runner.is_side_effecting())
    }

    /// Whether an attempt whose end is unknown may simply be repeated.
    pub fn is_safe_to_repeat(&self) -> bool {
        self.idempotent || !self.is_side_effecting()
    }
}

/// The agents that one execution pins, by id. A node whose agent is absent fails.
pub type AgentSet = BTreeMap<AgentId, Arc<PinnedAgent>>;

/// An agent record together with its digest.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedAgent {
    /// The record.
    pub agent: Agent,
    /// The digest of everything that the record says.
    pub digest: Digest,
}
