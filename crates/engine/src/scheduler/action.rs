//! What should now be happening in the world. Derived from the state, never stored.

use std::sync::Arc;

use crate::agent::{PinnedAgent, RunnerKind};
use crate::ids::{Digest, Instance};
use crate::payload::Payload;
use crate::scheduler::event::Question;
use crate::scheduler::input::Timer;
use crate::time::Timestamp;
use crate::value::Object;

/// One thing that should be happening. Performing it twice is harmless: each names its instance,
/// attempt or timer, and a second report of the same attempt decides to nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Ask for a place under the machine's limit for a kind of runner; answer with
    /// [`Input::SlotGranted`](super::input::Input::SlotGranted).
    AcquireSlot {
        /// For which node instance.
        instance: Instance,
        /// Which limit.
        kind: RunnerKind,
    },
    /// Run an attempt and report how it ended.
    StartAttempt(Box<StartAttempt>),
    /// End a running attempt, with everything it started, and report it.
    StopAttempt {
        /// Which node instance.
        instance: Instance,
        /// Which attempt.
        attempt: u32,
    },
    /// Say so when a time has come.
    WakeAt {
        /// Which timer.
        timer: Timer,
        /// When.
        at: Timestamp,
    },
    /// Show a question to people.
    AskHuman {
        /// Which node instance waits.
        instance: Instance,
        /// For what.
        question: Question,
    },
}

/// An attempt that should be running.
#[derive(Clone, Debug, PartialEq)]
pub struct StartAttempt {
    /// Which node instance.
    pub instance: Instance,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Whose work it is.
    pub task: Task,
    /// The node's input.
    pub input: Payload,
    /// The key that all attempts of this instance share.
    pub idempotency_key: Digest,
    /// How long it may take, in ms; `None`: no fixed limit.
    pub start_to_close_timeout_ms: Option<u64>,
}

/// What an attempt does.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// An agent's work.
    Agent {
        /// The agent, as it was when the execution started.
        agent: Arc<PinnedAgent>,
        /// Its settings with all templates resolved.
        settings: Payload,
        /// The parameters in force for this node.
        params: Arc<Object>,
    },
    /// The output is the input.
    Transform,
}

impl StartAttempt {
    /// Whether the attempt may change anything outside the process, so that it must not begin
    /// before the record of its start is on disk.
    pub fn leaves_process(&self) -> bool {
        match &self.task {
            Task::Agent { agent, .. } => match agent.agent.runner {
                RunnerKind::Echo => false,
                RunnerKind::Process => true,
                RunnerKind::Scripted => agent.agent.is_side_effecting(),
            },
            Task::Transform => false,
        }
    }
}
