//! An execution that is being followed: its journal as far as it has been read, folded.

use std::collections::BTreeMap;

use engine::ids::NodeId;
use engine::journal::Record;
use engine::projection::ExecutionStatus;
use engine::scheduler::Execution;
use engine::scheduler::event::{CancelReason, Event};

use crate::exit::{Exit, TimedOut};
use crate::text::one_line;
use crate::view::attempts::AttemptLog;
use crate::view::node::Labels;

/// An execution that is being followed.
#[derive(Debug)]
pub struct Followed {
    /// Folded up to the last record that was read.
    pub execution: Execution,
    /// What its nodes are called.
    pub labels: Labels,
    /// The attempts of its nodes.
    pub attempts: AttemptLog,
    timed_out: TimedOut,
    note: Option<String>,
    last_lines: BTreeMap<NodeId, String>,
}

impl Followed {
    /// Follows an execution of which no record has been read yet.
    pub fn new(unstarted: Execution) -> Followed {
        Followed {
            labels: Labels::of(unstarted.plan()),
            execution: unstarted,
            attempts: AttemptLog::default(),
            timed_out: TimedOut::No,
            note: None,
            last_lines: BTreeMap::new(),
        }
    }

    /// Takes in the next record.
    pub fn absorb(&mut self, record: &Record) {
        self.execution.absorb(record);
        self.attempts.note(record);
        match &record.event {
            Event::AttemptStarted(e) => {
                self.last_lines.remove(&e.instance.node);
            }
            Event::NodesCancelled(e) if e.because == CancelReason::ExecutionTimeout => {
                self.timed_out = TimedOut::Yes;
            }
            Event::ExecutionCompleted(e) => self.note.clone_from(&e.note),
            _ => {}
        }
    }

    /// Takes in a line that an attempt of a node printed.
    pub fn note_line(&mut self, node: &NodeId, text: &str) {
        if !text.trim().is_empty() {
            self.last_lines.insert(node.clone(), one_line(text.trim()));
        }
    }

    /// The last line that the running attempt of a node printed.
    pub fn last_line(&self, node: &NodeId) -> Option<&str> {
        self.last_lines.get(node).map(String::as_str)
    }

    /// Why its output is null although the definition names a node for it.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// What the node of this id is called.
    pub fn label(&self, node: &NodeId) -> String {
        match self.execution.plan().node_idx(node) {
            Some(idx) => self.labels.at(idx).to_owned(),
            None => one_line(node.as_str()),
        }
    }

    /// What people call it: the name of its workflow.
    pub fn title(&self) -> String {
        one_line(&self.execution.plan().name)
    }

    /// Whether it stands still until a person acts.
    pub fn waits_for_a_person(&self) -> bool {
        self.execution.waiting_for().is_some_and(|reason| reason.needs_a_person())
    }

    /// How it stands, as an exit code.
    pub fn exit(&self) -> Exit {
        Exit::of(self.execution.status(), self.timed_out)
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.execution.status().is_terminal()
    }

    /// What has become of it, in words.
    pub fn status_words(&self) -> &'static str {
        match (self.execution.status(), self.timed_out) {
            (ExecutionStatus::Failed, TimedOut::Yes) => "timed out",
            (ExecutionStatus::Pending | ExecutionStatus::Running, _)
                if self.waits_for_a_person() =>
            {
                "waits for you"
            }
            (status, _) => status.as_str(),
        }
    }
}
