//! Agents: who does a node's work. A record of this machine, pinned by digest when it is used.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::definition::Problem;
use crate::ids::{AgentId, Digest};
use crate::limits::FILE_BYTES_MAX;
use crate::value::{EncodingError, Object, SyntaxError, Value};

mod reader;
mod settings;
mod writer;

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

    /// The kind of this spelling, if it is one.
    pub fn from_name(name: &str) -> Option<RunnerKind> {
        RunnerKind::ALL.into_iter().find(|kind| kind.as_str() == name)
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
    /// The id of the agent that every machine has.
    pub const ECHO_ID: &'static str = "demo-echo-agent";

    /// The agent that every machine has: it gives back its input.
    pub fn built_in_echo() -> Agent {
        Agent {
            description: Some("Gives back its input. Built in, for demonstrations.".to_owned()),
            category: Some("demo".to_owned()),
            ..Agent::new(Agent::ECHO_ID, "Echo", RunnerKind::Echo)
        }
    }

    /// An agent about which nothing else is said.
    pub fn new(id: impl Into<AgentId>, name: impl Into<String>, runner: RunnerKind) -> Agent {
        Agent {
            id: id.into(),
            name: name.into(),
            description: None,
            icon: None,
            category: None,
            runner,
            settings: Object::new(),
            parameters: None,
            input_schema: None,
            output_schema: None,
            side_effecting: None,
            idempotent: false,
            streams: false,
            timeout: None,
            retry_policy: None,
            extra: Object::new(),
        }
    }

    /// Reads a record. Its timeout and retry policy are kept as written; `compile` checks them.
    ///
    /// # Errors
    ///
    /// Everything that is missing or has the wrong type, the settings of its kind of runner
    /// included.
    pub fn from_value(value: &Value) -> Result<Agent, Vec<Problem>> {
        reader::read(value)
    }

    /// Returns the record: known fields first, then the others as they were written.
    pub fn to_value(&self) -> Value {
        writer::write(self)
    }

    /// Whether an attempt may change the outside world.
    pub fn is_side_effecting(&self) -> bool {
        let scripted = match self.runner {
            RunnerKind::Scripted => self.settings.get("sideEffecting").and_then(Value::as_bool),
            RunnerKind::Echo | RunnerKind::Process => None,
        };
        self.side_effecting.or(scripted).unwrap_or_else(|| self.runner.is_side_effecting())
    }

    /// Whether an attempt whose end is unknown may simply be repeated.
    pub fn is_safe_to_repeat(&self) -> bool {
        self.idempotent || !self.is_side_effecting()
    }

    /// The values that its parameter schema gives to parameters that nobody sets.
    pub fn parameter_defaults(&self) -> Object {
        let properties = self.parameters.as_ref().and_then(|schema| schema.get("properties"));
        let properties = properties.and_then(Value::as_object);
        properties
            .into_iter()
            .flatten()
            .filter_map(|(name, schema)| Some((name.as_str(), schema.get("default")?.clone())))
            .collect()
    }

    /// The parameters that must be set, in the order of its parameter schema.
    pub fn required_parameters(&self) -> impl Iterator<Item = &str> {
        let required = self.parameters.as_ref().and_then(|schema| schema.get("required"));
        required.and_then(Value::as_array).unwrap_or_default().iter().filter_map(Value::as_str)
    }

    /// The settings whose texts are templates, by key.
    pub fn template_fields(&self) -> &'static [&'static str] {
        settings::template_fields(self.runner)
    }

    /// The names of the fields, in written order.
    pub const FIELDS: [&'static str; 15] = [
        "id",
        "name",
        "description",
        "icon",
        "category",
        "runner",
        "settings",
        "parameters",
        "inputSchema",
        "outputSchema",
        "sideEffecting",
        "idempotent",
        "streams",
        "timeout",
        "retryPolicy",
    ];
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

impl PinnedAgent {
    /// Pins a record.
    pub fn new(agent: Agent) -> PinnedAgent {
        let digest = Digest::of(agent.to_value().to_canonical().as_bytes());
        PinnedAgent { agent, digest }
    }
}

/// Why a file does not hold agents. In every case nothing of it may be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentsFileError {
    /// Longer than [`FILE_BYTES_MAX`].
    #[error("the file has {bytes} bytes; at most {FILE_BYTES_MAX} are read")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// The bytes are not text.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// The text is not JSON.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The JSON is something else.
    #[error("this is JSON, but not a file of agents: {missing}")]
    NotAgents {
        /// What is missing, and what to do.
        missing: String,
    },
    /// Some agents have mistakes.
    #[error("{}", Problem::list(.problems))]
    Refused {
        /// All of them.
        problems: Vec<Problem>,
    },
}

/// Reads a file of the form `{"agents": [...]}`.
///
/// # Errors
///
/// If any of the agents is refused, or two have the same id, all are refused.
pub fn read_file(bytes: &[u8]) -> Result<Vec<Agent>, AgentsFileError> {
    reader::read_file(bytes)
}
