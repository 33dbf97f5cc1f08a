//! The attempts of every node, as the journal tells them.

use std::collections::BTreeMap;

use engine::failure::Failure;
use engine::ids::{Instance, NodeId};
use engine::journal::Record;
use engine::scheduler::event::Event;
use engine::time::Timestamp;

/// What is known about the attempts of an execution's nodes. Fed with its records in order.
#[derive(Debug, Default)]
pub struct AttemptLog {
    by_node: BTreeMap<NodeId, Vec<Attempt>>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// When and how it ended, once it has.
    pub ended: Option<(Timestamp, End)>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Completed,
    Failed(Failure),
    /// Nobody knows; what is known instead.
    Lost(String),
    Cancelled,
}

impl AttemptLog {
    /// Takes note of the next record.
    pub fn note(&mut self, record: &Record) {
        let at = record.at;
        match &record.event {
            Event::AttemptStarted(e) => {
                let attempts = self.by_node.entry(e.instance.node.clone()).or_default();
                attempts.push(Attempt { number: e.attempt, started_at: at, ended: None });
            }
            Event::AttemptFailed(e) => self.end(&e.instance, at, End::Failed(e.failure.clone())),
            Event::AttemptLost(e) => self.end(&e.instance, at, End::Lost(e.message.clone())),
            Event::NodeCompleted(e) => self.end(&e.instance, at, End::Completed),
            Event::NodesCancelled(e) => {
                for instance in &e.instances {
                    self.end(instance, at, End::Cancelled);
                }
            }
            _ => {}
        }
    }

    /// The attempts of a node, in order.
    pub fn of(&self, node: &NodeId) -> &[Attempt] {
        self.by_node.get(node).map_or(&[], Vec::as_slice)
    }

    fn end(&mut self, instance: &Instance, at: Timestamp, end: End) {
        let last = self.by_node.get_mut(&instance.node).and_then(|attempts| attempts.last_mut());
        // A node that a person completed has no open attempt: it was lost before.
        if let Some(attempt) = last.filter(|attempt| attempt.ended.is_none()) {
            attempt.ended = Some((at, end));
        }
    }
}

impl Attempt {
    /// How long it took, or has taken until `now`, in ms.
    pub fn duration_ms(&self, now: Timestamp) -> u64 {
        self.ended.as_ref().map_or(now, |(at, _)| *at).ms_since(self.started_at)
    }
}
