//! What did happen to an execution: past-tense facts, appended once and never changed.
//!
//! Events are the words of the journal, which lives for ever. Variants and fields are only ever
//! added; a field that is new is optional when read. Golden journals of every released version
//! keep this honest.

use serde::{Deserialize, Serialize};

use crate::condition::Trace;
use crate::failure::Failure;
use crate::ids::{AgentId, Digest, EdgeId, ExecutionId, Instance, NodeId, OwnerId, WorkflowId};
use crate::payload::Payload;
use crate::time::Timestamp;

/// One fact about an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    /// The execution exists. Always the first record, and only the first.
    ExecutionStarted(Box<ExecutionStarted>),
    /// Nodes became ready and wait for a free place; they start in plan order.
    NodesQueued(NodesQueued),
    /// A node did not run.
    NodeSkipped(NodeSkipped),
    /// An attempt is about to run. Recorded before anything leaves the process.
    AttemptStarted(AttemptStarted),
    /// An attempt failed. What follows is another record of the same decision.
    AttemptFailed(AttemptFailed),
    /// Nobody will ever know how an attempt ended.
    AttemptLost(AttemptLost),
    /// The next attempt waits until its due time.
    RetryScheduled(RetryScheduled),
    /// The wait of a retry is over; the node is queued again.
    RetryDue(RetryDue),
    /// A person has to say what is to become of a node.
    NodeWaiting(NodeWaiting),
    /// A person has said it.
    HumanAnswered(HumanAnswered),
    /// A node completed.
    NodeCompleted(NodeCompleted),
    /// A node failed for good.
    NodeFailed(NodeFailed),
    /// Undecided nodes ended together.
    NodesCancelled(NodesCancelled),
    /// Somebody asked for the execution to be cancelled.
    CancelAsked(CancelAsked),
    /// An attempt ended after its node had been decided otherwise. Kept, and triggers nothing.
    LateReport(LateReport),
    /// A process took the execution over from one that is gone.
    HostRestarted(HostRestarted),
    /// The execution completed.
    ExecutionCompleted(ExecutionCompleted),
    /// The execution failed.
    ExecutionFailed(ExecutionFailed),
    /// The execution was cancelled.
    ExecutionCancelled(ExecutionCancelled),
}

/// Where an execution came from and what it pins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionStarted {
    /// The revision of the journal's format.
    pub format: u32,
    /// The plan it runs.
    pub plan: Digest,
    /// The definition that plan was compiled from, as it was drawn.
    pub document: Digest,
    /// The agents that the plan names and that existed, each by digest.
    pub agents: Vec<PinnedAgentRef>,
    /// The execution input with schema defaults filled in.
    pub input: Payload,
    /// The workflow it runs a version of; absent for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowId>,
    /// The workspace it belongs to.
    pub workspace: String,
    /// The file it was read from, for people, where there is no workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Why it was started.
    pub trigger: Trigger,
    /// The outermost execution of its family: itself unless it was spawned.
    pub root: ExecutionId,
    /// The execution that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ExecutionId>,
    /// The node instance of the parent that spawned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<Instance>,
}

/// An agent an execution uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedAgentRef {
    /// Its id.
    pub id: AgentId,
    /// The digest of its record.
    pub digest: Digest,
}

/// Why an execution was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trigger {
    /// A person ran a published workflow.
    Manual,
    /// A person tried a draft.
    TestRun,
    /// A file was run from the command line.
    File,
}

/// See [`Event::NodesQueued`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodesQueued {
    /// Which, in plan order.
    pub instances: Vec<Instance>,
}

/// What became of an edge, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgeDecision {
    /// The edge.
    pub edge: EdgeId,
    /// Its fate.
    pub state: EdgeState,
    /// What its condition saw, where it was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<Trace>>,
}

/// The fate of an edge. Decided once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EdgeState {
    /// Its target gets what its source emitted.
    Live,
    /// Nothing will come along it.
    Dead,
    /// Its source failed and takes its target with it.
    Failed,
}

/// Why a node did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SkipReason {
    /// The definition says so.
    Disabled,
    /// All its edges are dead, or its join cannot be reached any more.
    AllEdgesDead,
}

/// See [`Event::NodeSkipped`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSkipped {
    /// Which.
    pub instance: Instance,
    /// Why.
    pub because: SkipReason,
    /// The node where the skipping began, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<NodeId>,
    /// Its outgoing edges.
    pub edges: Vec<EdgeDecision>,
}

/// See [`Event::AttemptStarted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptStarted {
    /// Which node.
    pub instance: Instance,
    /// The attempt, from 1. The number of one instance never starts twice.
    pub attempt: u32,
    /// The resolved input of this activation, where bindings made it; in its first attempt only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Payload>,
    /// Predecessors whose live edges the join held at the start, where it did not wait for all;
    /// in its first attempt only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Vec<NodeId>>,
    /// The agent's settings with their templates resolved, where there are any; in its first
    /// attempt only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Payload>,
    /// Things a person should know that stop nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// Something a person should know that stops nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// Stable, for programs.
    pub code: String,
    /// For people.
    pub message: String,
}

/// What an attempt used up, as far as its runner can tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// From the start of the work to its end, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl Usage {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Usage::default()
    }
}

/// See [`Event::AttemptFailed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptFailed {
    /// Which node.
    pub instance: Instance,
    /// Which attempt.
    pub attempt: u32,
    /// How.
    pub failure: Failure,
    /// What it used up.
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
}

/// See [`Event::AttemptLost`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptLost {
    /// Which node.
    pub instance: Instance,
    /// Which attempt.
    pub attempt: u32,
    /// What is known about it, for people.
    pub message: String,
    /// Whether the node is queued again at once, because repeating it is safe.
    pub repeats: bool,
}

/// See [`Event::RetryScheduled`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryScheduled {
    /// Which node.
    pub instance: Instance,
    /// The retry, from 1; lost attempts are not counted.
    pub retry: u32,
    /// When it may start.
    pub due: Timestamp,
}

/// See [`Event::RetryDue`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryDue {
    /// Which node.
    pub instance: Instance,
    /// How much later than due it was noticed, in ms, if that is worth telling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ms: Option<u64>,
}

/// What a node waits for a person to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    /// An attempt with side effects was lost: try again, complete with an output, or fail?
    LostAttempt,
}

/// See [`Event::NodeWaiting`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeWaiting {
    /// Which node.
    pub instance: Instance,
    /// For what.
    pub question: Question,
}

/// What a person said about a lost attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// Start another attempt.
    Retry,
    /// The work was done; this is its output.
    Complete(Payload),
    /// The work was not done, and the node has failed.
    Fail {
        /// Why, for people.
        message: String,
    },
}

/// See [`Event::HumanAnswered`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HumanAnswered {
    /// Which node.
    pub instance: Instance,
    /// What was said.
    pub answer: Answer,
}

/// See [`Event::NodeCompleted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCompleted {
    /// Which.
    pub instance: Instance,
    /// The attempt that did it; for a node that a person completed, the one that was lost.
    pub attempt: u32,
    /// Its output.
    pub output: Payload,
    /// Its outgoing edges.
    pub edges: Vec<EdgeDecision>,
    /// Things a person should know that stop nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What the attempt used up.
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
}

/// What a node's failure does to the rest of the execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureEffect {
    /// An edge on the error port went live.
    Handled,
    /// The node's policy lets the execution go on (`skipDependents`, `continue`).
    Tolerated,
    /// The execution will fail.
    Unhandled,
}

/// See [`Event::NodeFailed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFailed {
    /// Which.
    pub instance: Instance,
    /// How: its last attempt's failure, or `upstreamFailed`.
    pub failure: Failure,
    /// What that does to the execution.
    pub effect: FailureEffect,
    /// Its outgoing edges.
    pub edges: Vec<EdgeDecision>,
}

/// Why undecided nodes ended together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CancelReason {
    /// Somebody cancelled the execution.
    Asked,
    /// A node failed whose policy is `stop`.
    Stopped,
    /// The execution's timeout ran out.
    ExecutionTimeout,
}

/// See [`Event::NodesCancelled`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodesCancelled {
    /// Which, in plan order.
    pub instances: Vec<Instance>,
    /// Why.
    pub because: CancelReason,
    /// The node whose failure stopped them, for `stopped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<NodeId>,
}

/// See [`Event::CancelAsked`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelAsked {
    /// Where the wish came from, for people: "the command line".
    pub by: String,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LateOutcome {
    /// It gave an output after all.
    Completed(Payload),
    /// It failed.
    Failed(Failure),
    /// It was stopped, as it was told to.
    Stopped,
    /// Nobody knows.
    Lost,
}

/// See [`Event::LateReport`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LateReport {
    /// Which node.
    pub instance: Instance,
    /// Which attempt.
    pub attempt: u32,
    /// How it ended.
    pub outcome: LateOutcome,
}

/// See [`Event::HostRestarted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRestarted {
    /// The process start that owns the execution from now on.
    pub owner: OwnerId,
    /// How long nobody owned it, in ms, as far as can be told.
    pub unowned_ms: u64,
}

/// See [`Event::ExecutionCompleted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionCompleted {
    /// Its output.
    pub output: Payload,
    /// Names the failed nodes if there were any: each failure was handled or tolerated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why the output is `null` although the definition names a node for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// See [`Event::ExecutionFailed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionFailed {
    /// The failure that decided it.
    pub failure: Failure,
    /// Names the failed nodes, for people.
    pub error: String,
}

/// See [`Event::ExecutionCancelled`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionCancelled {}
