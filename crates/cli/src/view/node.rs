//! How a node is shown: a mark, and always the words too.

use std::collections::BTreeMap;

use engine::ids::NodeId;
use engine::plan::NodeIdx;
use engine::plan::compile::parse_retry_policy;
use engine::plan::{Plan, PlanNode, Work};
use engine::projection::{NodeStatus, NodeSummary, NotRunReason, WaitReason};
use engine::scheduler::Execution;
use engine::time::Timestamp;

use super::duration::{countdown, duration};
use crate::followed::Followed;
use crate::terminal::{Glyphs, Ink, Style};
use crate::text::one_line;

/// The silhouette that stands for a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Pending,
    /// Turns; the argument says how far.
    Running(usize),
    Completed,
    Failed,
    Retrying,
    Lost,
    Skipped,
    Cancelled,
}

impl Mark {
    /// The mark in its colour; one column wide.
    pub fn paint(self, style: Style) -> String {
        const TURNING: [&str; 4] = ["◐", "◓", "◑", "◒"];
        const TURNING_ASCII: [&str; 4] = ["|", "/", "-", "\\"];
        let (unicode, ascii, ink) = match self {
            Mark::Pending => ("·", ".", Ink::Quiet),
            Mark::Running(turn) => (TURNING[turn % 4], TURNING_ASCII[turn % 4], Ink::Active),
            Mark::Completed => ("✓", "+", Ink::Good),
            Mark::Failed => ("✗", "x", Ink::Bad),
            Mark::Retrying => ("◔", "~", Ink::Attention),
            Mark::Lost => ("?", "?", Ink::Attention),
            Mark::Skipped => ("–", "-", Ink::Quiet),
            Mark::Cancelled => ("⊘", "#", Ink::Quiet),
        };
        let mark = match style.glyphs {
            Glyphs::Unicode => unicode,
            Glyphs::Ascii => ascii,
        };
        style.paint(ink, mark)
    }
}

/// A node as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeLine {
    /// What people call it.
    pub name: String,
    /// Its mark.
    pub mark: Mark,
    /// What has become of it, in words.
    pub words: String,
}

/// What people call the nodes of a plan: each by its name, with its id where the name does not tell.
#[derive(Clone, Debug)]
pub struct Labels {
    by_idx: Box<[String]>,
}

impl Labels {
    /// The labels of a plan's nodes.
    pub fn of(plan: &Plan) -> Labels {
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for node in &plan.nodes {
            *counts.entry(node.name.as_str()).or_default() += 1;
        }
        let label = |node: &PlanNode| match counts[node.name.as_str()] {
            1 => one_line(&node.name),
            _ => one_line(&format!("{} ({})", node.name, node.id)),
        };
        Labels { by_idx: plan.nodes.iter().map(label).collect() }
    }

    /// What the node at a position is called.
    pub fn at(&self, idx: NodeIdx) -> &str {
        &self.by_idx[idx.0 as usize]
    }
}

/// How a node is shown at `now`.
pub fn node_line(followed: &Followed, idx: NodeIdx, now: Timestamp) -> NodeLine {
    let name = followed.labels.at(idx).to_owned();
    let Some(summary) = followed.execution.node_summary(idx) else {
        return NodeLine { name, mark: Mark::Pending, words: "pending".to_owned() };
    };
    let (mark, words) = About { followed, summary: &summary, idx, now }.mark_and_words();
    NodeLine { name, mark, words }
}

/// How many attempts a node may have, where its policy, or its agent's, says so.
pub fn attempts_max(execution: &Execution, idx: NodeIdx) -> Option<u32> {
    let node = execution.plan().node(idx);
    let policy = match (&node.retry, &node.work) {
        (Some(policy), _) => Some(policy.clone()),
        (None, Work::Agent(id)) => execution
            .agents()
            .get(id)
            .and_then(|pinned| pinned.agent.retry_policy.as_ref())
            .and_then(|policy| parse_retry_policy(policy).ok()),
        (None, Work::Transform) => None,
    };
    policy.map(|policy| policy.retries_max.saturating_add(1))
}

/// Why a node did not run, as a sentence's end.
pub fn not_run(followed: &Followed, reason: NotRunReason, origin: Option<&NodeId>) -> String {
    let origin = origin.map(|id| followed.label(id));
    match (reason, origin) {
        (NotRunReason::Disabled, _) => "disabled".to_owned(),
        (NotRunReason::AllEdgesDead, None) => "no edge leads here any more".to_owned(),
        (NotRunReason::AllEdgesDead, Some(origin)) => {
            format!("no edge leads here any more, because of {origin}")
        }
        (NotRunReason::UpstreamFailed, None) => "a node before it failed".to_owned(),
        (NotRunReason::UpstreamFailed, Some(origin)) => format!("{origin} failed before it"),
        (NotRunReason::Cancelled, None) => "ended with the execution".to_owned(),
        (NotRunReason::Cancelled, Some(origin)) => format!("stopped because {origin} failed"),
    }
}

/// A class or error type in plain words: `invalidOutput` is "invalid output".
pub fn plain_words(camel_case: &str) -> String {
    let mut words = String::with_capacity(camel_case.len() + 4);
    let mut was_lower = false;
    for c in one_line(camel_case).chars() {
        if c.is_uppercase() && was_lower {
            words.push(' ');
            words.extend(c.to_lowercase());
        } else {
            words.push(c);
        }
        was_lower = c.is_lowercase();
    }
    words
}

struct About<'a> {
    followed: &'a Followed,
    summary: &'a NodeSummary,
    idx: NodeIdx,
    now: Timestamp,
}

impl About<'_> {
    fn mark_and_words(&self) -> (Mark, String) {
        let summary = self.summary;
        match (summary.status, summary.waiting_for) {
            (NodeStatus::Pending, _) => (Mark::Pending, "ready, waits for a place".to_owned()),
            (NodeStatus::Running, _) => {
                let turn = (self.now.0 / 150).rem_euclid(4) as usize;
                let words = format!("running {}{}", self.last_duration(), self.nth_attempt());
                (Mark::Running(turn), words)
            }
            (NodeStatus::Waiting, Some(WaitReason::Lost)) => {
                (Mark::Lost, "lost, needs you".to_owned())
            }
            (NodeStatus::Waiting, _) => (Mark::Retrying, self.retry()),
            (NodeStatus::Completed, _) => {
                let attempt = if summary.attempts > 1 { self.nth_attempt() } else { String::new() };
                (Mark::Completed, format!("completed, {}{attempt}", self.last_duration()))
            }
            (NodeStatus::Failed, _) => (Mark::Failed, self.failed()),
            (NodeStatus::Skipped, _) => {
                (Mark::Skipped, format!("skipped: {}", self.why(NotRunReason::AllEdgesDead)))
            }
            (NodeStatus::Cancelled, _) => {
                (Mark::Cancelled, format!("cancelled: {}", self.why(NotRunReason::Cancelled)))
            }
        }
    }

    fn why(&self, otherwise: NotRunReason) -> String {
        let reason = self.summary.reason.unwrap_or(otherwise);
        not_run(self.followed, reason, self.summary.origin.as_ref())
    }

    fn retry(&self) -> String {
        let left_ms = self.summary.due.map_or(0, |due| due.ms_since(self.now));
        let of = attempts_max(&self.followed.execution, self.idx).map(|max| format!(" of {max}"));
        let next = self.summary.attempts + 1;
        let why = self.summary.failure.as_ref().map(|failure| {
            format!(" ({}: {})", plain_words(&failure.error_type), one_line(&failure.message))
        });
        format!(
            "retry in {}, attempt {next}{}{}",
            countdown(left_ms),
            of.unwrap_or_default(),
            why.unwrap_or_default()
        )
    }

    fn failed(&self) -> String {
        if self.summary.reason == Some(NotRunReason::UpstreamFailed) {
            return format!("not run: {}", self.why(NotRunReason::UpstreamFailed));
        }
        match &self.summary.failure {
            Some(failure) => format!(
                "failed: {}: {}{}",
                plain_words(&failure.error_type),
                one_line(&failure.message),
                self.nth_attempt()
            ),
            None => "failed".to_owned(),
        }
    }

    fn last_duration(&self) -> String {
        let node = &self.followed.execution.plan().node(self.idx).id;
        let last = self.followed.attempts.of(node).last();
        duration(last.map_or(0, |attempt| attempt.duration_ms(self.now)))
    }

    /// Said where there was, or may be, more than one attempt.
    fn nth_attempt(&self) -> String {
        let attempts = self.summary.attempts;
        match attempts_max(&self.followed.execution, self.idx) {
            Some(max) if max > 1 && attempts > 0 => format!(", attempt {attempts} of {max}"),
            _ if attempts > 1 => format!(", attempt {attempts}"),
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_said_in_plain_words() {
        assert_eq!(plain_words("invalidOutput"), "invalid output");
        assert_eq!(plain_words("E42"), "E42");
        assert_eq!(plain_words("HTTPError"), "HTTPError");
    }
}
