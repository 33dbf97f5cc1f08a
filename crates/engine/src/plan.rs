//! The compiled, immutable, content-addressed form of one definition version.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::condition::Condition;
use crate::ids::{AgentId, Digest, EdgeId, NodeId};
use crate::retry::RetryPolicy;
use crate::template::Template;
use crate::value::{Object, Value};

pub mod compile;
pub mod diagnostic;

/// The position of a node in [`Plan::nodes`], which is in plan order: topological, ties by
/// position in the file. Meaningful within one plan only; journals hold [`NodeId`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIdx(pub u32);

/// The position of an edge in [`Plan::edges`], which are in file order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeIdx(pub u32);

/// What an execution runs. Made by [`compile::compile`] only, which resolves every default and
/// cannot express a cycle, an unknown node or a bad condition.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The digest of its meaning: two definitions that run alike have the same.
    pub digest: Digest,
    /// The definition's name, for messages and templates.
    pub name: String,
    /// In plan order. Notes are not among them.
    pub nodes: Box<[PlanNode]>,
    /// In file order.
    pub edges: Box<[PlanEdge]>,
    /// Where a node stands, by id.
    pub node_index: IndexMap<NodeId, NodeIdx>,
    /// Where an edge stands, by id.
    pub edge_index: IndexMap<EdgeId, EdgeIdx>,
    /// The node whose output is the execution's, where the definition names one.
    pub final_output: Option<NodeIdx>,
    /// The execution's timeout in ms, if any.
    pub timeout_ms: Option<u64>,
    /// How many nodes may run at the same time; at least 1.
    pub concurrency: u32,
    /// JSON Schema of the execution input, if any.
    pub input_schema: Option<Value>,
    /// The workflow configuration as written: integrations, credentials, agentProperties,
    /// parameters and whatever else it holds.
    pub configuration: Object,
}

/// One node of a plan.
#[derive(Clone, Debug)]
pub struct PlanNode {
    /// Its id in the definition.
    pub id: NodeId,
    /// What people call it: its name, else its agent's name, else its id.
    pub name: String,
    /// What it does.
    pub work: Work,
    /// Whether it is skipped at the start.
    pub is_disabled: bool,
    /// When it becomes ready.
    pub join: JoinRule,
    /// Its own retry policy; `None` means the agent's, if that has one.
    pub retry: Option<RetryPolicy>,
    /// Its own timeout for one attempt, in ms; `None` means the agent's, else the default.
    pub timeout_ms: Option<u64>,
    /// What its unhandled failure does to its edges. The workflow's default is resolved in.
    pub on_failure: FailurePolicy,
    /// Templates whose results make up its input, in file order; `None`: SPEC 4.4 without bindings.
    pub inputs: Option<Box<[(String, InputTemplate)]>>,
    /// The node's configuration as written.
    pub configuration: Object,
    /// Edges that end here, in file order.
    pub incoming: Box<[EdgeIdx]>,
    /// Edges that start here, in file order.
    pub outgoing: Box<[EdgeIdx]>,
    /// Distinct sources of `incoming`, in file order of their first edge.
    pub predecessors: Box<[NodeIdx]>,
    /// The longest way from a root, from 0. Nodes of one level may run at the same time.
    pub level: u32,
}

/// The value of one key of a node's `inputs`: templates in a JSON structure.
#[derive(Clone, Debug)]
pub enum InputTemplate {
    /// A value without templates.
    Literal(Value),
    /// A text that is a template.
    Template(Arc<Template>),
    /// A list with templates somewhere inside.
    Array(Box<[InputTemplate]>),
    /// An object with templates somewhere inside.
    Object(Box<[(String, InputTemplate)]>),
}

/// What a node does once it is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// An agent performs attempts.
    Agent(AgentId),
    /// The output is the node's input, without any agent.
    Transform,
}

/// When a node becomes ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinRule {
    /// All incoming edges are decided, none failed, at least one live. Also for roots.
    All,
    /// So many distinct predecessors have a live edge; from 1 to the number of predecessors.
    AtLeast(u32),
}

/// What an unhandled failure of a node does to its edges other than those on the error port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// They fail, and so do the nodes behind them.
    FailDependents,
    /// They die.
    SkipDependents,
    /// They are evaluated on the `$failed` object.
    Continue,
    /// Everything undecided is cancelled and the execution fails.
    Stop,
}

impl FailurePolicy {
    /// The spelling in files.
    pub fn as_str(self) -> &'static str {
        match self {
            FailurePolicy::FailDependents => "failDependents",
            FailurePolicy::SkipDependents => "skipDependents",
            FailurePolicy::Continue => "continue",
            FailurePolicy::Stop => "stop",
        }
    }
}

/// One edge of a plan.
#[derive(Clone, Debug)]
pub struct PlanEdge {
    /// Its id in the definition.
    pub id: EdgeId,
    /// Where it starts.
    pub source: NodeIdx,
    /// Where it ends.
    pub target: NodeIdx,
    /// The port it starts at; `output` unless the file says otherwise.
    pub source_port: Arc<str>,
    /// The port it ends at; `input` unless the file says otherwise.
    pub target_port: Arc<str>,
    /// What the source's output must be like; `None`: anything.
    pub condition: Option<Arc<Condition>>,
    /// Other edges with the same ends.
    pub twins: Box<[EdgeIdx]>,
}

/// The port on which a node emits its output.
pub const OUTPUT_PORT: &str = "output";
/// The port on which a node emits its failure.
pub const ERROR_PORT: &str = "error";

impl Plan {
    /// The node at a position.
    pub fn node(&self, idx: NodeIdx) -> &PlanNode {
        &self.nodes[idx.0 as usize]
    }

    /// The edge at a position.
    pub fn edge(&self, idx: EdgeIdx) -> &PlanEdge {
        &self.edges[idx.0 as usize]
    }

    /// Where the node of this id stands, if the plan has it.
    pub fn node_idx(&self, id: &NodeId) -> Option<NodeIdx> {
        self.node_index.get(id).copied()
    }

    /// Where the edge of this id stands, if the plan has it.
    pub fn edge_idx(&self, id: &EdgeId) -> Option<EdgeIdx> {
        self.edge_index.get(id).copied()
    }

    /// Every position, in plan order.
    pub fn node_indices(&self) -> impl DoubleEndedIterator<Item = NodeIdx> + use<> {
        (0..self.nodes.len() as u32).map(NodeIdx)
    }

    /// Nodes without outgoing edges, in plan order.
    pub fn sinks(&self) -> impl Iterator<Item = NodeIdx> + '_ {
        self.node_indices().filter(|&idx| self.node(idx).outgoing.is_empty())
    }
}
