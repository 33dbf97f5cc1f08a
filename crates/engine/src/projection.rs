//! What readers see of an execution: folds of its journal, never written by hand.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::ids::{Digest, ExecutionId, Instance, NodeId, Seq, WorkflowId};
use crate::scheduler::event::{Question, Trigger};
use crate::time::Timestamp;

/// What has become of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExecutionStatus {
    /// It does not have its first record yet.
    Pending,
    /// It has nodes that are not decided.
    Running,
    /// It completed, perhaps with failures that were handled or tolerated.
    Completed,
    /// A failure was not.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl ExecutionStatus {
    /// The spelling in files, rows and events.
    pub fn as_str(self) -> &'static str {
        match self {
            ExecutionStatus::Pending => "pending",
            ExecutionStatus::Running => "running",
            ExecutionStatus::Completed => "completed",
            ExecutionStatus::Failed => "failed",
            ExecutionStatus::Cancelled => "cancelled",
        }
    }

    /// The status of this spelling, if it is one.
    pub fn from_name(name: &str) -> Option<ExecutionStatus> {
        use ExecutionStatus::*;
        [Pending, Running, Completed, Failed, Cancelled].into_iter().find(|s| s.as_str() == name)
    }

    /// Whether nothing follows but the end of attempts that were stopped.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            ExecutionStatus::Completed | ExecutionStatus::Failed | ExecutionStatus::Cancelled
        )
    }
}

/// What has become of a node instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeStatus {
    /// Not ready, or ready without a free place.
    Pending,
    /// It waits for a time or a person.
    Waiting,
    /// An attempt is under way.
    Running,
    /// It has an output.
    Completed,
    /// It failed for good.
    Failed,
    /// It did not run.
    Skipped,
    /// It was ended together with others.
    Cancelled,
}

impl NodeStatus {
    /// The spelling in files, rows and events.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeStatus::Pending => "pending",
            NodeStatus::Waiting => "waiting",
            NodeStatus::Running => "running",
            NodeStatus::Completed => "completed",
            NodeStatus::Failed => "failed",
            NodeStatus::Skipped => "skipped",
            NodeStatus::Cancelled => "cancelled",
        }
    }

    /// The status of this spelling, if it is one.
    pub fn from_name(name: &str) -> Option<NodeStatus> {
        use NodeStatus::*;
        [Pending, Waiting, Running, Completed, Failed, Skipped, Cancelled]
            .into_iter()
            .find(|s| s.as_str() == name)
    }

    /// Whether the node is decided.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            NodeStatus::Completed
                | NodeStatus::Failed
                | NodeStatus::Skipped
                | NodeStatus::Cancelled
        )
    }
}

/// What a waiting node waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WaitReason {
    /// The due time of its next attempt.
    Retry,
    /// A person's word on a lost attempt.
    Lost,
}

impl WaitReason {
    /// The spelling in files, rows and events.
    pub fn as_str(self) -> &'static str {
        match self {
            WaitReason::Retry => "retry",
            WaitReason::Lost => "lost",
        }
    }

    /// The reason of this spelling, if it is one.
    pub fn from_name(name: &str) -> Option<WaitReason> {
        [WaitReason::Retry, WaitReason::Lost].into_iter().find(|r| r.as_str() == name)
    }

    /// Whether a person has to act before the node goes on.
    pub fn needs_a_person(self) -> bool {
        self == WaitReason::Lost
    }
}

impl From<Question> for WaitReason {
    fn from(question: Question) -> Self {
        match question {
            Question::LostAttempt => WaitReason::Lost,
        }
    }
}

/// Why a node did not run, as a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NotRunReason {
    /// The definition disables it.
    Disabled,
    /// All its edges are dead, or its join is out of reach.
    AllEdgesDead,
    /// A node before it failed.
    UpstreamFailed,
    /// It was undecided when everything undecided was cancelled.
    Cancelled,
}

impl NotRunReason {
    /// The spelling in files, rows and events.
    pub fn as_str(self) -> &'static str {
        match self {
            NotRunReason::Disabled => "disabled",
            NotRunReason::AllEdgesDead => "allEdgesDead",
            NotRunReason::UpstreamFailed => "upstreamFailed",
            NotRunReason::Cancelled => "cancelled",
        }
    }

    /// The reason of this spelling, if it is one.
    pub fn from_name(name: &str) -> Option<NotRunReason> {
        use NotRunReason::*;
        [Disabled, AllEdgesDead, UpstreamFailed, Cancelled].into_iter().find(|r| r.as_str() == name)
    }
}

/// An execution at a glance: one row of the history. Folded from its journal.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionSummary {
    /// Which execution.
    pub id: ExecutionId,
    /// The workflow it runs a version of; absent for a file.
    pub workflow: Option<WorkflowId>,
    /// The workspace it belongs to.
    pub workspace: String,
    /// The file it was read from, for people, where there is no workflow.
    pub source: Option<String>,
    /// Why it was started.
    pub trigger: Trigger,
    /// The plan it runs.
    pub plan: Digest,
    /// What has become of it.
    pub status: ExecutionStatus,
    /// What it waits for when nothing of it runs: the most demanding reason among its nodes.
    pub waiting_for: Option<WaitReason>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended; never before `started_at`.
    pub ended_at: Option<Timestamp>,
    /// How many nodes its plan has.
    pub nodes_total: u32,
    /// How many of them are decided.
    pub nodes_decided: u32,
    /// Names the failed nodes, for people; also where the execution completed all the same.
    pub error: Option<String>,
    /// The failure that decided it, if it failed.
    pub failure: Option<Failure>,
    /// The record that holds its output, if it completed.
    pub output_seq: Option<Seq>,
    /// Whether it is terminal and no attempt of it is still to be stopped: nobody need own it.
    pub is_settled: bool,
    /// The last record that was folded.
    pub seq: Seq,
}

/// A node instance at a glance. Folded from its execution's journal; an instance that is pending
/// and was never queued has none.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSummary {
    /// Which.
    pub instance: Instance,
    /// What has become of it.
    pub status: NodeStatus,
    /// What it waits for, while it waits.
    pub waiting_for: Option<WaitReason>,
    /// When the wait is over, where that is a time.
    pub due: Option<Timestamp>,
    /// Attempts started.
    pub attempts: u32,
    /// Why it did not run, if it did not.
    pub reason: Option<NotRunReason>,
    /// The node that caused that, where there is one.
    pub origin: Option<NodeId>,
    /// Its failure: the last attempt's while it waits for a retry, its own once it has failed.
    pub failure: Option<Failure>,
    /// When its first attempt started.
    pub started_at: Option<Timestamp>,
    /// When it was decided.
    pub ended_at: Option<Timestamp>,
    /// The record that decided it; that of a completed node holds its output.
    pub decided_seq: Option<Seq>,
}
