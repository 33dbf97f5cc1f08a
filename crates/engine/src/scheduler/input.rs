//! What may happen to an execution: the only ways to move it.

use crate::failure::Failure;
use crate::ids::{Digest, ExecutionId, Instance, OwnerId, WorkflowId};
use crate::payload::Payload;
use crate::scheduler::event::{Answer, Trigger, Usage, Warning};

/// One thing that happens to an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// It is started. The first input, and only the first.
    Start(Box<Start>),
    /// A place under the machine's limit for the node's kind of runner is free for it.
    SlotGranted {
        /// The node instance that asked for it.
        instance: Instance,
    },
    /// An attempt ended.
    AttemptReported {
        /// The node instance.
        instance: Instance,
        /// Which attempt.
        attempt: u32,
        /// How it ended.
        report: Report,
    },
    /// A timer of [`Action::WakeAt`](super::action::Action::WakeAt) is due. Believed, not compared.
    TimerDue {
        /// Which.
        timer: Timer,
    },
    /// A person answered the question a node waits with.
    HumanAnswered {
        /// The node instance.
        instance: Instance,
        /// What was said.
        answer: Answer,
    },
    /// Somebody wants the execution cancelled.
    CancelAsked {
        /// Where the wish came from, for people.
        by: String,
    },
    /// The process that ran the execution is gone and this one continues it. No attempt that was
    /// running is running any more.
    HostRestarted {
        /// The process start that owns the execution from now on.
        owner: OwnerId,
        /// How long nobody owned it, in ms.
        unowned_ms: u64,
    },
}

/// What an execution is started with. Plan and agents are those of the `Execution` value.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The definition that the plan was compiled from, as it was drawn.
    pub document: Digest,
    /// The execution input, checked against the input schema and with defaults filled in.
    pub input: Payload,
    /// The workflow it runs a version of.
    pub workflow: Option<WorkflowId>,
    /// The workspace it belongs to.
    pub workspace: String,
    /// The file it was read from, for people.
    pub source: Option<String>,
    /// Why it is started.
    pub trigger: Trigger,
    /// Who spawned it, if an execution did.
    pub parent: Option<Parent>,
}

/// The execution that spawned another one and waits for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parent {
    /// The outermost execution of the family.
    pub root: ExecutionId,
    /// The execution that waits.
    pub execution: ExecutionId,
    /// The node instance there.
    pub spawned_by: Instance,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// It gave an output.
    Completed {
        /// The output.
        output: Payload,
        /// Things a person should know that stop nothing.
        warnings: Vec<Warning>,
        /// What it used up.
        usage: Usage,
    },
    /// It failed, or its clock ran out.
    Failed {
        /// How.
        failure: Failure,
        /// What it used up.
        usage: Usage,
    },
    /// It was stopped because of [`Action::StopAttempt`](super::action::Action::StopAttempt).
    Stopped,
    /// Nobody knows: the watchdog gave it up.
    Lost {
        /// What is known, for people.
        message: String,
    },
}

/// Names a timer of an execution.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// The wait before a node's next attempt.
    Retry(Instance),
    /// The execution's own timeout.
    ExecutionTimeout,
}
