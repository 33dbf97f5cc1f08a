//! Folding events into a state. No rule of the workflow language lives here: an event says what
//! happened, and this file only remembers it.

use std::sync::Arc;

use super::rules::NodeRule;
use super::state::{Cells, Ended, NodeCell, NodeSet, Phase};
use crate::ids::{Instance, Seq};
use crate::journal::Record;
use crate::plan::{NodeIdx, Plan};
use crate::projection::{ExecutionStatus, NotRunReason};
use crate::scheduler::event::{
    Answer, AttemptStarted, EdgeDecision, EdgeState, Event, FailureEffect, NodeFailed, SkipReason,
};
use crate::time::Timestamp;

/// What events are folded against.
#[derive(Clone, Copy)]
pub(super) struct Fold<'a> {
    pub plan: &'a Plan,
    pub rules: &'a [NodeRule],
}

impl Fold<'_> {
    /// Where an instance's node stands.
    ///
    /// # Panics
    /// If the plan has no such node: the journal belongs to another plan.
    pub fn idx(&self, instance: &Instance) -> NodeIdx {
        self.plan
            .node_idx(&instance.node)
            .unwrap_or_else(|| panic!("node {} is not in the pinned plan", instance.node))
    }

    fn queue_of(&self, idx: NodeIdx) -> NodeSet {
        match self.rules[idx.0 as usize].slot() {
            Some(_) => NodeSet::SlotQueue,
            None => NodeSet::Queue,
        }
    }

    /// Folds one record.
    pub fn apply(&self, cells: &mut impl Cells, record: &Record) {
        let (seq, at) = (record.seq, record.at);
        assert_eq!(seq, cells.totals().seq.next(), "records are folded in order, without gaps");
        let totals = cells.totals_mut();
        totals.seq = seq;
        totals.last_at = at;
        match &record.event {
            Event::ExecutionStarted(e) => {
                cells.totals_mut().started_at = at;
                cells.set_started(Arc::new((**e).clone()));
            }
            Event::NodesQueued(e) => {
                for instance in &e.instances {
                    self.enqueue(cells, self.idx(instance));
                }
            }
            Event::NodeSkipped(e) => {
                let idx = self.idx(&e.instance);
                let origin = e.origin.as_ref().and_then(|id| self.plan.node_idx(id));
                let cell = self.decide_node(cells, idx, Phase::Skipped, seq, at);
                cell.origin = origin;
                cell.reason = Some(match e.because {
                    SkipReason::Disabled => NotRunReason::Disabled,
                    SkipReason::AllEdgesDead => NotRunReason::AllEdgesDead,
                });
                self.decide_edges(cells, &e.edges);
            }
            Event::AttemptStarted(e) => self.attempt_started(cells, e, at),
            Event::AttemptFailed(e) => {
                let cell = self.attempt_ended(cells, self.idx(&e.instance));
                cell.failure = Some(Arc::new(e.failure.clone()));
            }
            Event::AttemptLost(e) => {
                let idx = self.idx(&e.instance);
                self.attempt_ended(cells, idx).attempts_lost += 1;
                if e.repeats {
                    self.enqueue(cells, idx);
                }
            }
            Event::RetryScheduled(e) => {
                let cell = cells.node_mut(self.idx(&e.instance));
                cell.phase = Phase::WaitingRetry;
                cell.retries = e.retry;
                cell.due = Some(e.due);
                cells.totals_mut().waiting_retry += 1;
            }
            Event::RetryDue(e) => {
                let idx = self.idx(&e.instance);
                self.leave_phase(cells, idx);
                self.enqueue(cells, idx);
            }
            Event::NodeWaiting(e) => {
                cells.node_mut(self.idx(&e.instance)).phase = Phase::WaitingHuman;
                cells.totals_mut().waiting_human += 1;
            }
            Event::HumanAnswered(e) => {
                let idx = self.idx(&e.instance);
                self.leave_phase(cells, idx);
                match e.answer {
                    Answer::Retry => self.enqueue(cells, idx),
                    Answer::Complete(_) | Answer::Fail { .. } => {
                        cells.node_mut(idx).phase = Phase::Between;
                    }
                }
            }
            Event::NodeCompleted(e) => {
                let idx = self.idx(&e.instance);
                let cell = self.decide_node(cells, idx, Phase::Completed, seq, at);
                cell.output = Some(e.output.clone());
                cell.failure = None;
                cells.totals_mut().completed += 1;
                self.decide_edges(cells, &e.edges);
            }
            Event::NodeFailed(e) => self.node_failed(cells, e, seq, at),
            Event::NodesCancelled(e) => {
                let origin = e.origin.as_ref().and_then(|id| self.plan.node_idx(id));
                for instance in &e.instances {
                    let idx = self.idx(instance);
                    if cells.node(idx).phase == Phase::Running {
                        cells.insert(NodeSet::Stopping, idx);
                    }
                    let cell = self.decide_node(cells, idx, Phase::Cancelled, seq, at);
                    cell.reason = Some(NotRunReason::Cancelled);
                    cell.origin = origin;
                }
            }
            Event::CancelAsked(_) => {}
            Event::LateReport(e) => cells.remove(NodeSet::Stopping, self.idx(&e.instance)),
            Event::HostRestarted(e) => cells.totals_mut().unowned_ms += e.unowned_ms,
            Event::ExecutionCompleted(e) => {
                let mut ended = Ended::new(ExecutionStatus::Completed, seq, at);
                ended.output = Some(e.output.clone());
                ended.error = e.error.as_deref().map(Arc::from);
                cells.totals_mut().ended = Some(ended);
            }
            Event::ExecutionFailed(e) => {
                let mut ended = Ended::new(ExecutionStatus::Failed, seq, at);
                ended.failure = Some(Arc::new(e.failure.clone()));
                ended.error = Some(Arc::from(e.error.as_str()));
                cells.totals_mut().ended = Some(ended);
            }
            Event::ExecutionCancelled(_) => {
                cells.totals_mut().ended = Some(Ended::new(ExecutionStatus::Cancelled, seq, at));
            }
        }
    }

    fn enqueue(&self, cells: &mut impl Cells, idx: NodeIdx) {
        let cell = cells.node_mut(idx);
        cell.phase = Phase::Queued;
        cell.due = None;
        cells.insert(self.queue_of(idx), idx);
    }

    /// Undoes what the totals and sets say about the phase a node is leaving.
    fn leave_phase(&self, cells: &mut impl Cells, idx: NodeIdx) {
        match cells.node(idx).phase {
            Phase::Queued => cells.remove(self.queue_of(idx), idx),
            Phase::Running => cells.totals_mut().running -= 1,
            Phase::WaitingRetry => cells.totals_mut().waiting_retry -= 1,
            Phase::WaitingHuman => cells.totals_mut().waiting_human -= 1,
            Phase::Pending | Phase::Between => {}
            phase => panic!("node {idx:?} is {phase:?} and cannot change any more"),
        }
    }

    fn attempt_started(&self, cells: &mut impl Cells, e: &AttemptStarted, at: Timestamp) {
        let idx = self.idx(&e.instance);
        self.leave_phase(cells, idx);
        cells.totals_mut().running += 1;
        let cell = cells.node_mut(idx);
        assert_eq!(e.attempt, cell.attempts + 1, "attempt numbers of one instance have no gaps");
        cell.phase = Phase::Running;
        cell.attempts = e.attempt;
        cell.started_at.get_or_insert(at);
        if e.input.is_some() {
            cell.input = e.input.clone();
        }
        if e.settings.is_some() {
            cell.settings = e.settings.clone();
        }
        if let Some(live) = &e.live {
            let live = live.iter().filter_map(|id| self.plan.node_idx(id)).collect();
            cell.live = Some(live);
        }
    }

    fn attempt_ended<'c>(&self, cells: &'c mut impl Cells, idx: NodeIdx) -> &'c mut NodeCell {
        assert_eq!(cells.node(idx).phase, Phase::Running, "only a running attempt ends");
        self.leave_phase(cells, idx);
        let cell = cells.node_mut(idx);
        cell.phase = Phase::Between;
        cell
    }

    fn decide_node<'c>(
        &self,
        cells: &'c mut impl Cells,
        idx: NodeIdx,
        phase: Phase,
        seq: Seq,
        at: Timestamp,
    ) -> &'c mut NodeCell {
        self.leave_phase(cells, idx);
        cells.totals_mut().decided += 1;
        let cell = cells.node_mut(idx);
        cell.phase = phase;
        cell.due = None;
        cell.ended_at = Some(at);
        cell.decided_seq = seq;
        cell
    }

    fn node_failed(&self, cells: &mut impl Cells, e: &NodeFailed, seq: Seq, at: Timestamp) {
        let idx = self.idx(&e.instance);
        let origin = e.failure.origin.as_ref().and_then(|id| self.plan.node_idx(id));
        let cell = self.decide_node(cells, idx, Phase::Failed, seq, at);
        cell.failure = Some(Arc::new(e.failure.clone()));
        cell.effect = Some(e.effect);
        if origin.is_some() {
            cell.origin = origin;
            cell.reason = Some(NotRunReason::UpstreamFailed);
        }
        let totals = cells.totals_mut();
        totals.failed += 1;
        totals.first_failed.get_or_insert(idx);
        match e.effect {
            FailureEffect::Handled => {}
            FailureEffect::Tolerated => totals.tolerated += 1,
            FailureEffect::Unhandled => {
                totals.first_unhandled.get_or_insert(idx);
            }
        }
        self.decide_edges(cells, &e.edges);
    }

    /// All edges of one node are decided by one event, so a predecessor counts as decided, and as
    /// live, at most once per event.
    fn decide_edges(&self, cells: &mut impl Cells, decisions: &[EdgeDecision]) {
        for decision in decisions {
            let idx = self
                .plan
                .edge_idx(&decision.edge)
                .unwrap_or_else(|| panic!("edge {} is not in the pinned plan", decision.edge));
            assert!(cells.edge(idx).is_none(), "edge {} is decided once", decision.edge);
            let edge = self.plan.edge(idx);
            let mut first_of_twins = true;
            let mut first_live_of_twins = true;
            for twin in &edge.twins {
                match cells.edge(*twin) {
                    None => {}
                    Some(EdgeState::Live) => (first_of_twins, first_live_of_twins) = (false, false),
                    Some(_) => first_of_twins = false,
                }
            }
            cells.set_edge(idx, decision.state);
            let target = cells.node_mut(edge.target);
            target.edges_undecided -= 1;
            target.predecessors_undecided -= u32::from(first_of_twins);
            match decision.state {
                EdgeState::Live => {
                    target.edges_live += 1;
                    target.predecessors_live += u32::from(first_live_of_twins);
                }
                EdgeState::Dead => {}
                EdgeState::Failed => target.has_failed_edge = true,
            }
        }
    }
}

impl Ended {
    fn new(status: ExecutionStatus, seq: Seq, at: Timestamp) -> Ended {
        Ended { status, at, seq, output: None, failure: None, error: None }
    }
}
