//! The authored document: what a person edits, before anything is compiled.
//!
//! Reading is tolerant and loses nothing. What does not have the shape of a workflow at all is
//! refused with a [`Problem`]; what is merely wrong is kept as written and becomes a diagnostic of
//! [`crate::plan::compile`]. Fields this version does not know are kept at every level.
//!
//! The types stand here, the work in `definition/`.

mod edges;
mod file;
mod file_name;
pub mod migrate;
mod reader;
pub mod schema;
mod writer;

use std::fmt;

use crate::ids::{EdgeId, NodeId};
use crate::limits::FILE_BYTES_MAX;
use crate::value::{EncodingError, Object, SyntaxError, Value};

/// A workflow as its author wrote it.
///
/// A field that was written as `null` counts as absent; the `null` is remembered in `extra` and
/// written back as long as the field stays absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// Names the JSON Schema of the format.
    pub schema: Option<String>,
    /// The version of the format.
    pub version: Option<String>,
    /// Any JSON value; import replaces it.
    pub id: Option<Value>,
    /// For people.
    pub name: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// When it was made, RFC 3339.
    pub created_at: Option<String>,
    /// When it was last changed, RFC 3339.
    pub updated_at: Option<String>,
    /// Integrations, credentials, agentProperties, parameters, compensation and whatever else.
    /// An object once `compile` accepts it.
    pub configuration: Option<Value>,
    /// JSON Schema of the execution input. As written.
    pub input_schema: Option<Value>,
    /// The node whose output is the execution's.
    pub final_output: Option<NodeId>,
    /// The execution's timeout in seconds. As written.
    pub timeout: Option<Value>,
    /// The failure policy of nodes that name none. As written.
    pub on_failure: Option<Value>,
    /// The nodes, in file order.
    pub nodes: Vec<Node>,
    /// The edges, in file order.
    pub edges: Vec<Edge>,
    /// Author, tags, category and whatever else.
    pub metadata: Option<Object>,
    /// Fields this version does not know, and fields written as `null`, in written order.
    pub extra: Object,
}

/// A node as its author wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique within the definition.
    pub id: NodeId,
    /// Its type; absent means `agent`. See [`crate::node::catalog`].
    pub node_type: Option<String>,
    /// The version of that type's meaning. As written; absent means 1.
    pub type_version: Option<Value>,
    /// For people.
    pub name: Option<String>,
    /// The agent that does its work.
    pub agent_id: Option<String>,
    /// Where it stands on the canvas: an object with the numbers `x` and `y`.
    pub position: Option<Value>,
    /// Parameters and overrides. An object once `compile` accepts it.
    pub configuration: Option<Value>,
    /// Bindings: texts inside the values are templates.
    pub inputs: Option<Object>,
    /// As written.
    pub retry_policy: Option<Value>,
    /// The timeout of one attempt in seconds. As written.
    pub timeout: Option<Value>,
    /// The failure policy. As written.
    pub on_failure: Option<Value>,
    /// Whether it is skipped at the start.
    pub disabled: Option<bool>,
    /// How to undo it. As written.
    pub compensation: Option<Value>,
    /// When it becomes ready. As written.
    pub join: Option<Value>,
    /// Governance rules; kept. As written.
    pub constraints: Option<Value>,
    /// The graph inside a container. As written.
    pub body: Option<Value>,
    /// Fields this version does not know, and fields written as `null`, in written order.
    pub extra: Object,
}

/// An edge as its author wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// Unique within the definition. Made from the ends where the file has none.
    pub id: EdgeId,
    /// The node it starts at.
    pub source: NodeId,
    /// The node it ends at.
    pub target: NodeId,
    /// The port it starts at; absent means `output`.
    pub source_handle: Option<String>,
    /// The port it ends at; absent means `input`.
    pub target_handle: Option<String>,
    /// What the source's output must be like. As written; absent means anything.
    pub condition: Option<Value>,
    /// Fields this version does not know, and fields written as `null`, in written order.
    pub extra: Object,
}

/// A reason to refuse a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, as a path into the document: `nodes[3].position`. Empty: the document itself.
    pub place: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// Something worth knowing about a document that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where, as a path into the document.
    pub place: String,
    /// What was found or done.
    pub message: String,
}

/// A field that this version does not know and keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The node it belongs to.
    pub node: Option<NodeId>,
    /// The edge it belongs to.
    pub edge: Option<EdgeId>,
    /// Its name.
    pub field: String,
}

/// One workflow of a file, ready to become a draft.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadDefinition {
    /// The workflow, with identical edges merged.
    pub definition: Definition,
    /// What a person should know about how it was read.
    pub notes: Vec<Note>,
}

/// Why a file does not hold workflows. In every case nothing of it may be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
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
    /// The JSON belongs to another program.
    #[error("this is {what}, which Cyanotype cannot import yet")]
    OtherFormat {
        /// The format, with its article and the document's name.
        what: String,
    },
    /// The JSON is something else altogether.
    #[error("this is JSON, but not a workflow: {missing}")]
    NotAWorkflow {
        /// What is missing, and what to do.
        missing: String,
    },
    /// It is a workflow, with mistakes that cannot be kept.
    #[error("{}", Problem::list(.problems))]
    Refused {
        /// All of them.
        problems: Vec<Problem>,
    },
}

impl Definition {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// Everything that cannot be kept: fields of the wrong type, a newer major version of the
    /// format, duplicate node ids, edges without both ends, more than
    /// [`crate::limits::NODES_MAX`] nodes. If an edge lacks an end, edges to unknown nodes are
    /// listed too, so that one look shows every bad edge.
    pub fn from_value(value: Value) -> Result<Definition, Vec<Problem>> {
        reader::read(value)
    }

    /// Returns the document: known fields in schema order, then the others as they were written.
    pub fn to_value(&self) -> Value {
        writer::write(self)
    }

    /// Returns the text of a file: UTF-8, LF, two-space indentation, one final newline. The same
    /// document always gives the same text.
    pub fn to_file(&self) -> String {
        let mut text = self.to_value().to_json_pretty();
        text.push('\n');
        text
    }

    /// Merges edges that have the same ends, ports and condition, and says which.
    ///
    /// The first one stays and takes over what only the others have. Edges whose unknown fields
    /// contradict each other are left alone.
    pub fn merge_identical_edges(&mut self) -> Vec<Note> {
        edges::merge_identical(self)
    }

    /// Lists the fields that this version does not know, in file order.
    pub fn unknown_fields(&self) -> Vec<UnknownField> {
        let mut found = Vec::new();
        let mut list = |node: Option<&NodeId>, edge: Option<&EdgeId>, names: Vec<&str>| {
            found.extend(names.into_iter().map(|field| UnknownField {
                node: node.cloned(),
                edge: edge.cloned(),
                field: field.to_owned(),
            }));
        };
        list(None, None, unknown(&self.extra, &Definition::FIELDS));
        for node in &self.nodes {
            list(Some(&node.id), None, unknown(&node.extra, &Node::FIELDS));
        }
        for edge in &self.edges {
            list(None, Some(&edge.id), unknown(&edge.extra, &Edge::FIELDS));
        }
        found
    }

    /// What people call it: its name, else "Untitled workflow".
    pub fn title(&self) -> &str {
        self.name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or("Untitled workflow")
    }

    /// The names of the fields, in schema order.
    pub const FIELDS: [&str; 15] = [
        "$schema",
        "version",
        "id",
        "name",
        "description",
        "createdAt",
        "updatedAt",
        "configuration",
        "inputSchema",
        "finalOutput",
        "timeout",
        "onFailure",
        "nodes",
        "edges",
        "metadata",
    ];
}

impl Node {
    /// A node of this id about which nothing else is said.
    pub fn new(id: impl Into<NodeId>) -> Node {
        Node {
            id: id.into(),
            node_type: None,
            type_version: None,
            name: None,
            agent_id: None,
            position: None,
            configuration: None,
            inputs: None,
            retry_policy: None,
            timeout: None,
            on_failure: None,
            disabled: None,
            compensation: None,
            join: None,
            constraints: None,
            body: None,
            extra: Object::new(),
        }
    }

    /// The name of its type, with the default resolved.
    pub fn type_name(&self) -> &str {
        self.node_type.as_deref().unwrap_or("agent")
    }

    /// The names of the fields, in schema order.
    pub const FIELDS: [&str; 16] = [
        "id",
        "type",
        "typeVersion",
        "name",
        "agentId",
        "position",
        "configuration",
        "inputs",
        "retryPolicy",
        "timeout",
        "onFailure",
        "disabled",
        "compensation",
        "join",
        "constraints",
        "body",
    ];
}

impl Edge {
    /// An unconditional edge between the default ports.
    pub fn new(
        id: impl Into<EdgeId>,
        source: impl Into<NodeId>,
        target: impl Into<NodeId>,
    ) -> Edge {
        Edge {
            id: id.into(),
            source: source.into(),
            target: target.into(),
            source_handle: None,
            target_handle: None,
            condition: None,
            extra: Object::new(),
        }
    }

    /// The port it starts at, with the default resolved.
    pub fn source_port(&self) -> &str {
        self.source_handle.as_deref().unwrap_or("output")
    }

    /// The port it ends at, with the default resolved.
    pub fn target_port(&self) -> &str {
        self.target_handle.as_deref().unwrap_or("input")
    }

    /// The names of the fields, in schema order.
    pub const FIELDS: [&str; 6] =
        ["id", "source", "target", "sourceHandle", "targetHandle", "condition"];
}

/// Reads a file: one workflow, or a list of them. Runs nothing and fetches nothing.
///
/// # Errors
///
/// If any of the workflows is refused, all are.
pub fn read_file(bytes: &[u8]) -> Result<Vec<ReadDefinition>, FileError> {
    file::read(bytes)
}

/// Suggests a file name for a workflow, with the extension `.cyanotype.json`.
///
/// It is a plain name on Linux, macOS and Windows: no separators, no control characters, no
/// reserved device name, no trailing dot or space, at most 200 bytes before `.json`. Different
/// workflows may get the same suggestion; see [`free_file_name`].
pub fn suggested_file_name(name: &str) -> String {
    file_name::suggest(name)
}

/// Suggests a file name as [`suggested_file_name`] does, numbered so that it is not taken.
pub fn free_file_name(name: &str, is_taken: impl FnMut(&str) -> bool) -> String {
    file_name::suggest_free(name, is_taken)
}

/// A value as a message shows it: its kind, and the start of its text.
pub(crate) fn described(value: &Value) -> String {
    const CHARS_MAX: usize = 60;
    let text = value.to_json();
    let shown = match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    match value {
        Value::Null => shown,
        _ => format!("the {} {shown}", value.kind()),
    }
}

/// The keys of `extra` that are not known fields remembered as `null`.
fn unknown<'a>(extra: &'a Object, known: &[&str]) -> Vec<&'a str> {
    extra.keys().map(String::as_str).filter(|key| !known.contains(key)).collect()
}

/// The most problems that one message repeats.
const SHOWN_MAX: usize = 20;

impl Problem {
    /// Returns one line for each, without repeating very many.
    pub fn list(problems: &[Problem]) -> String {
        let shown = problems.iter().take(SHOWN_MAX).map(Problem::to_string);
        let more = problems.len().saturating_sub(SHOWN_MAX);
        let rest = (more > 0).then(|| format!("and {more} more"));
        shown.chain(rest).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        write!(f, "{}; {}", self.message, self.hint)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod properties;
