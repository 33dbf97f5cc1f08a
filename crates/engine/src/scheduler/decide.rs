//! The rules of the workflow language: what an input means for an execution.
//!
//! A decision works on an overlay of the state. Every event is folded into the overlay as soon as
//! it is written, so the rules always look at the state as it will be.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::apply::Fold;
use super::resolve::Resolver;
use super::rules::Performer;
use super::state::{Cells, NodeCell, Overlay, Phase};
use super::{Execution, Rejected};
use crate::condition::Condition;
use crate::failure::{Failure, FailureClass};
use crate::ids::{Instance, NodeId, OwnerId};
use crate::journal::{FORMAT, Record};
use crate::payload::Payload;
use crate::plan::{ERROR_PORT, FailurePolicy, JoinRule, NodeIdx, OUTPUT_PORT, Plan, PlanEdge};
use crate::retry::{JitterKey, next_attempt_at};
use crate::scheduler::event::*;
use crate::scheduler::input::{Input, Report, Start, Timer};
use crate::time::Timestamp;
use crate::value::{DEPTH_MAX, Value};

/// A retry that was noticed this much after it was due is marked as late, in ms.
const LATE_MS_WORTH_TELLING: u64 = 1_000;
/// Failed nodes that an error message names before it only counts them.
const FAILED_NODES_NAMED_MAX: usize = 5;

pub(super) struct Decision<'a> {
    execution: &'a Execution,
    plan: &'a Plan,
    fold: Fold<'a>,
    cells: Overlay<'a>,
    now: Timestamp,
    records: Vec<Record>,
    /// Nodes whose edges have decided that they are skipped, and where that began, in the order in
    /// which they did. What is decided of their edges after that changes nothing.
    to_skip: VecDeque<(NodeIdx, Option<NodeId>)>,
    /// The same for nodes that fail because of another one, and that one. Skips travel as far as
    /// they go before the next failure does, so that a join is out of reach before an edge to it
    /// fails wherever both follow from one event.
    to_fail: VecDeque<(NodeIdx, NodeIdx)>,
    /// The nodes that were ever in `to_skip` or `to_fail`.
    doomed: BTreeSet<NodeIdx>,
    /// Nodes that became ready in this decision and have not started.
    fresh: BTreeSet<NodeIdx>,
}

impl<'a> Decision<'a> {
    pub fn new(execution: &'a Execution, now: Timestamp) -> Decision<'a> {
        Decision {
            execution,
            plan: &execution.plan,
            fold: execution.fold(),
            cells: Overlay::new(&execution.state),
            now: now.max(execution.state.totals.last_at),
            records: Vec::new(),
            to_skip: VecDeque::new(),
            to_fail: VecDeque::new(),
            doomed: BTreeSet::new(),
            fresh: BTreeSet::new(),
        }
    }

    pub fn decide(mut self, input: Input) -> Result<Vec<Record>, Rejected> {
        let is_started = self.execution.state.started.is_some();
        match input {
            Input::Start(_) if is_started => return Err(Rejected::AlreadyStarted),
            Input::Start(start) => self.start(*start),
            _ if !is_started => return Err(Rejected::NotStarted),
            Input::SlotGranted { instance } => self.slot_granted(&instance)?,
            Input::AttemptReported { instance, attempt, report } => {
                self.attempt_reported(&instance, attempt, report)?;
            }
            Input::TimerDue { timer } => self.timer_due(&timer)?,
            Input::HumanAnswered { instance, answer } => self.human_answered(&instance, answer)?,
            Input::CancelAsked { by } => self.cancel_asked(by),
            Input::HostRestarted { owner, unowned_ms } => self.host_restarted(owner, unowned_ms),
        }
        self.settle();
        Ok(self.records)
    }

    fn emit(&mut self, event: Event) {
        let record = Record { seq: self.cells.totals().seq.next(), at: self.now, event };
        self.fold.apply(&mut self.cells, &record);
        self.records.push(record);
    }

    fn is_ended(&self) -> bool {
        self.cells.totals().ended.is_some()
    }

    fn instance(&self, idx: NodeIdx) -> Instance {
        Instance::top(self.plan.node(idx).id.clone())
    }

    fn known(&self, instance: &Instance) -> Result<NodeIdx, Rejected> {
        let unknown = || Rejected::UnknownNode { node: instance.node.clone() };
        if !instance.iteration.is_empty() || instance.epoch != 0 {
            return Err(unknown());
        }
        self.plan.node_idx(&instance.node).ok_or_else(unknown)
    }

    fn resolver(&self) -> Resolver<'_, Overlay<'a>> {
        Resolver {
            execution: self.execution.id,
            plan: self.plan,
            started: self.cells.started(),
            cells: &self.cells,
        }
    }

    // ---- the inputs ----

    fn start(&mut self, start: Start) {
        let agents = self.execution.agents.iter();
        self.emit(Event::ExecutionStarted(Box::new(ExecutionStarted {
            format: FORMAT,
            plan: self.plan.digest,
            document: start.document,
            agents: agents
                .map(|(id, agent)| PinnedAgentRef { id: id.clone(), digest: agent.digest })
                .collect(),
            input: start.input,
            workflow: start.workflow,
            workspace: start.workspace,
            source: start.source,
            trigger: start.trigger,
            root: start.parent.as_ref().map_or(self.execution.id, |parent| parent.root),
            parent: start.parent.as_ref().map(|parent| parent.execution),
            spawned_by: start.parent.map(|parent| parent.spawned_by),
        })));
        for idx in self.plan.node_indices().filter(|idx| self.plan.node(*idx).is_disabled) {
            self.skip(idx, SkipReason::Disabled, None);
        }
        let is_root =
            |idx: &NodeIdx| self.plan.node(*idx).incoming.is_empty() && !self.is_decided(*idx);
        self.fresh = self.plan.node_indices().filter(is_root).collect();
    }

    fn slot_granted(&mut self, instance: &Instance) -> Result<(), Rejected> {
        let idx = self.known(instance)?;
        let wants_it = self.cells.node(idx).phase == Phase::Queued
            && self.execution.rules[idx.0 as usize].slot().is_some()
            && self.has_free_place();
        if wants_it {
            self.start_attempt(idx);
        }
        Ok(())
    }

    fn attempt_reported(
        &mut self,
        instance: &Instance,
        attempt: u32,
        report: Report,
    ) -> Result<(), Rejected> {
        let idx = self.known(instance)?;
        let cell = self.cells.node(idx);
        if cell.attempts != attempt {
            return Ok(());
        }
        if self.execution.state.stopping.contains(&idx) {
            self.late_report(idx, attempt, report);
        } else if cell.phase == Phase::Running {
            match report {
                Report::Completed { output, warnings, usage } => {
                    self.complete(idx, output, warnings, usage);
                }
                Report::Failed { failure, usage } => self.attempt_failed(idx, failure, usage),
                Report::Stopped => {
                    self.attempt_lost(idx, "it was stopped from outside".to_owned());
                }
                Report::Lost { message } => self.attempt_lost(idx, message),
            }
        }
        Ok(())
    }

    fn late_report(&mut self, idx: NodeIdx, attempt: u32, report: Report) {
        let outcome = match report {
            Report::Completed { output, .. } => LateOutcome::Completed(output),
            Report::Failed { failure, .. } => LateOutcome::Failed(failure),
            Report::Stopped => LateOutcome::Stopped,
            Report::Lost { .. } => LateOutcome::Lost,
        };
        let instance = self.instance(idx);
        self.emit(Event::LateReport(LateReport { instance, attempt, outcome }));
    }

    fn timer_due(&mut self, timer: &Timer) -> Result<(), Rejected> {
        match timer {
            Timer::Retry(instance) => {
                let idx = self.known(instance)?;
                let cell = self.cells.node(idx);
                if let (Phase::WaitingRetry, Some(due)) = (cell.phase, cell.due) {
                    let late_ms =
                        Some(self.now.ms_since(due)).filter(|ms| *ms >= LATE_MS_WORTH_TELLING);
                    self.emit(Event::RetryDue(RetryDue { instance: instance.clone(), late_ms }));
                }
            }
            Timer::ExecutionTimeout => {
                if let (false, Some(timeout_ms)) = (self.is_ended(), self.plan.timeout_ms) {
                    self.time_out(timeout_ms);
                }
            }
        }
        Ok(())
    }

    fn time_out(&mut self, timeout_ms: u64) {
        self.cancel_undecided(CancelReason::ExecutionTimeout, None);
        let seconds = timeout_ms as f64 / 1000.0;
        let failure = Failure::new(
            FailureClass::Timeout,
            format!("the execution was not finished after {seconds} s, its timeout"),
        );
        let error = failure.message.clone();
        self.emit(Event::ExecutionFailed(ExecutionFailed { failure, error }));
    }

    fn human_answered(&mut self, instance: &Instance, answer: Answer) -> Result<(), Rejected> {
        let idx = self.known(instance)?;
        let cell = self.cells.node(idx);
        if cell.phase != Phase::WaitingHuman {
            return Err(Rejected::NothingToAnswer {
                node: instance.node.clone(),
                status: self.execution.node_status(idx),
            });
        }
        let attempt = cell.attempts;
        let instance = instance.clone();
        self.emit(Event::HumanAnswered(HumanAnswered { instance, answer: answer.clone() }));
        match answer {
            Answer::Retry => {}
            Answer::Complete(output) => self.complete(idx, output, Vec::new(), Usage::default()),
            Answer::Fail { message } => {
                let message = match message.trim() {
                    "" => {
                        format!("attempt {attempt} was lost, and a person decided that it failed")
                    }
                    said => said.to_owned(),
                };
                self.fail(idx, Failure::new(FailureClass::Lost, message));
            }
        }
        Ok(())
    }

    fn cancel_asked(&mut self, by: String) {
        if self.is_ended() {
            return;
        }
        self.emit(Event::CancelAsked(CancelAsked { by }));
        self.cancel_undecided(CancelReason::Asked, None);
        self.emit(Event::ExecutionCancelled(ExecutionCancelled {}));
    }

    fn host_restarted(&mut self, owner: OwnerId, unowned_ms: u64) {
        if self.execution.is_settled() {
            return;
        }
        self.emit(Event::HostRestarted(HostRestarted { owner, unowned_ms }));
        for idx in self.execution.state.stopping.iter().copied() {
            self.late_report(
                idx,
                self.cells.node(idx).attempts,
                Report::Lost { message: String::new() },
            );
        }
        for idx in self.plan.node_indices() {
            if self.cells.node(idx).phase == Phase::Running {
                self.attempt_lost(
                    idx,
                    "Cyanotype ended while it ran, so nobody knows how far it came".to_owned(),
                );
            }
        }
    }

    // ---- what follows from them ----

    /// Looks at everything that changed until nothing changes any more, starts what may start,
    /// and ends the execution when all nodes are decided.
    fn settle(&mut self) {
        loop {
            if let Some((idx, origin)) = self.to_skip.pop_front() {
                self.skip(idx, SkipReason::AllEdgesDead, origin);
            } else if let Some((idx, origin)) = self.to_fail.pop_front() {
                self.fail_with_upstream(idx, origin);
            } else if self.is_ended() || !self.start_next() {
                break;
            }
        }
        if self.is_ended() {
            return;
        }
        if self.cells.totals().decided as usize == self.plan.nodes.len() {
            self.end();
        } else if !self.fresh.is_empty() {
            let fresh = std::mem::take(&mut self.fresh);
            let instances = fresh.into_iter().map(|idx| self.instance(idx)).collect();
            self.emit(Event::NodesQueued(NodesQueued { instances }));
        }
    }

    fn is_decided(&self, idx: NodeIdx) -> bool {
        self.cells.node(idx).phase.is_decided()
    }

    fn has_free_place(&self) -> bool {
        self.cells.totals().running < self.plan.concurrency
    }

    /// Starts the first ready node in plan order that needs no place but the execution's own.
    fn start_next(&mut self) -> bool {
        if !self.has_free_place() {
            return false;
        }
        let rules = &self.execution.rules;
        let fresh = self.fresh.iter().copied().find(|idx| rules[idx.0 as usize].slot().is_none());
        let next = match (fresh, self.cells.first_queued()) {
            (Some(a), Some(b)) => a.min(b),
            (Some(idx), None) | (None, Some(idx)) => idx,
            (None, None) => return false,
        };
        self.start_attempt(next);
        true
    }

    /// Looks at the targets of a node that was just decided: whether its edges make them ready, or
    /// decide that they will not run.
    fn look_at_targets(&mut self, idx: NodeIdx) {
        for edge in &self.plan.node(idx).outgoing {
            let target = self.plan.edge(*edge).target;
            let node = self.plan.node(target);
            let is_open = self.cells.node(target).phase == Phase::Pending
                && !node.is_disabled
                && !self.fresh.contains(&target)
                && !self.doomed.contains(&target);
            if !is_open {
                continue;
            }
            match verdict(node.join, self.cells.node(target)) {
                Verdict::Undecided => {}
                Verdict::Ready => {
                    self.fresh.insert(target);
                }
                Verdict::Skipped => {
                    let origin = self.skip_origin(target);
                    self.to_skip.push_back((target, origin));
                    self.doomed.insert(target);
                }
                Verdict::UpstreamFailed => {
                    let origin = self.failed_origin(target);
                    self.to_fail.push_back((target, origin));
                    self.doomed.insert(target);
                }
            }
        }
    }

    fn start_attempt(&mut self, idx: NodeIdx) {
        self.fresh.remove(&idx);
        let rule = &self.execution.rules[idx.0 as usize];
        let cell = self.cells.node(idx);
        let (attempt, is_first) = (cell.attempts + 1, cell.attempts == 0);
        let mut started = AttemptStarted {
            instance: self.instance(idx),
            attempt,
            input: None,
            live: None,
            settings: None,
            warnings: Vec::new(),
        };
        let mut failure = None;
        if is_first {
            started.warnings = rule.warnings.clone();
            if let JoinRule::AtLeast(_) = self.plan.node(idx).join {
                let live = self.resolver().live_now(idx).into_iter();
                started.live = Some(live.map(|p| self.plan.node(p).id.clone()).collect());
            }
            match self.resolver().activation(idx, rule) {
                Ok(resolved) => {
                    (started.input, started.settings) = (resolved.input, resolved.settings);
                }
                Err(problem) => failure = Some(problem),
            }
            if let Some(problem) = self.too_deep(idx, started.input.as_ref()) {
                started.input = None;
                failure = Some(problem);
            }
        }
        if let Performer::Missing(agent) = &rule.performer {
            failure = Some(Failure::new(
                FailureClass::AgentNotFound,
                format!("agent not found: {agent}"),
            ));
        }
        self.emit(Event::AttemptStarted(started));
        if let Some(failure) = failure {
            self.attempt_failed(idx, failure, Usage::default());
        }
    }

    /// The failure of a node whose input was put together from parts and is nested deeper than
    /// any value may be: such a value could be written down, and never read again.
    fn too_deep(&self, idx: NodeIdx, bound: Option<&Payload>) -> Option<Failure> {
        let depth = match bound {
            Some(input) => input.depth(),
            None if self.plan.node(idx).predecessors.len() > 1 => {
                self.resolver().input(idx).depth()
            }
            None => return None,
        };
        (depth > DEPTH_MAX).then(|| {
            let problem =
                format!("its input is nested {depth} levels deep, {DEPTH_MAX} are allowed");
            Failure::typed(FailureClass::BindingError, "inputTooDeep", problem)
        })
    }

    fn attempt_failed(&mut self, idx: NodeIdx, failure: Failure, usage: Usage) {
        let instance = self.instance(idx);
        let attempt = self.cells.node(idx).attempts;
        self.emit(Event::AttemptFailed(AttemptFailed {
            instance: instance.clone(),
            attempt,
            failure: failure.clone(),
            usage,
        }));
        let cell = self.cells.node(idx);
        let retry = cell.attempts - cell.attempts_lost;
        let key = JitterKey { execution: self.execution.id, instance: &instance };
        let due = self.execution.rules[idx.0 as usize]
            .retry
            .as_ref()
            .filter(|policy| policy.covers(&failure))
            .and_then(|policy| next_attempt_at(policy, key, retry, self.now));
        match due {
            Some(due) => {
                self.emit(Event::RetryScheduled(RetryScheduled { instance, retry, due }));
            }
            None => self.fail(idx, failure),
        }
    }

    fn attempt_lost(&mut self, idx: NodeIdx, message: String) {
        let instance = self.instance(idx);
        let attempt = self.cells.node(idx).attempts;
        let repeats = self.execution.rules[idx.0 as usize].is_safe_to_repeat();
        self.emit(Event::AttemptLost(AttemptLost {
            instance: instance.clone(),
            attempt,
            message,
            repeats,
        }));
        if !repeats {
            let question = Question::LostAttempt;
            self.emit(Event::NodeWaiting(NodeWaiting { instance, question }));
        }
    }

    fn complete(&mut self, idx: NodeIdx, output: Payload, warnings: Vec<Warning>, usage: Usage) {
        let edges = self.decide_edges(idx, |edge| {
            if *edge.source_port == *OUTPUT_PORT {
                evaluate(edge, output.value())
            } else {
                (EdgeState::Dead, None)
            }
        });
        self.emit(Event::NodeCompleted(NodeCompleted {
            instance: self.instance(idx),
            attempt: self.cells.node(idx).attempts,
            output,
            edges,
            warnings,
            usage,
        }));
        self.look_at_targets(idx);
    }

    fn skip(&mut self, idx: NodeIdx, because: SkipReason, origin: Option<NodeId>) {
        let edges = self.decide_edges(idx, |_| (EdgeState::Dead, None));
        let instance = self.instance(idx);
        self.emit(Event::NodeSkipped(NodeSkipped { instance, because, origin, edges }));
        self.look_at_targets(idx);
    }

    /// A node has failed for good: the error port first, then its policy.
    fn fail(&mut self, idx: NodeIdx, failure: Failure) {
        let value = failure.to_output();
        let policy = self.plan.node(idx).on_failure;
        let error_edges = self.decide_edges(idx, |edge| evaluate_on(edge, ERROR_PORT, &value));
        let is_handled = error_edges.iter().any(|edge| edge.state == EdgeState::Live);
        let edges = self.decide_edges(idx, |edge| match policy {
            _ if *edge.source_port == *ERROR_PORT => evaluate_on(edge, ERROR_PORT, &value),
            _ if is_handled => (EdgeState::Dead, None),
            FailurePolicy::FailDependents | FailurePolicy::Stop => (EdgeState::Failed, None),
            FailurePolicy::SkipDependents => (EdgeState::Dead, None),
            FailurePolicy::Continue => evaluate(edge, &value),
        });
        let effect = match policy {
            _ if is_handled => FailureEffect::Handled,
            FailurePolicy::SkipDependents | FailurePolicy::Continue => FailureEffect::Tolerated,
            FailurePolicy::FailDependents | FailurePolicy::Stop => FailureEffect::Unhandled,
        };
        let instance = self.instance(idx);
        self.emit(Event::NodeFailed(NodeFailed { instance, failure, effect, edges }));
        self.look_at_targets(idx);
        if policy == FailurePolicy::Stop && !is_handled {
            let origin = self.plan.node(idx).id.clone();
            self.cancel_undecided(CancelReason::Stopped, Some(origin));
            self.end();
        }
    }

    fn fail_with_upstream(&mut self, idx: NodeIdx, origin: NodeIdx) {
        let mut failure = Failure::new(
            FailureClass::UpstreamFailed,
            format!("not run, because {} failed", self.called(origin)),
        );
        failure.origin = Some(self.plan.node(origin).id.clone());
        let edges = self.decide_edges(idx, |_| (EdgeState::Failed, None));
        let instance = self.instance(idx);
        let effect = FailureEffect::Unhandled;
        self.emit(Event::NodeFailed(NodeFailed { instance, failure, effect, edges }));
        self.look_at_targets(idx);
    }

    fn cancel_undecided(&mut self, because: CancelReason, origin: Option<NodeId>) {
        self.to_skip.clear();
        self.to_fail.clear();
        self.fresh.clear();
        let undecided = self.plan.node_indices().filter(|idx| !self.is_decided(*idx));
        let instances: Vec<Instance> = undecided.map(|idx| self.instance(idx)).collect();
        if !instances.is_empty() {
            self.emit(Event::NodesCancelled(NodesCancelled { instances, because, origin }));
        }
    }

    fn decide_edges(
        &self,
        idx: NodeIdx,
        fate: impl Fn(&PlanEdge) -> (EdgeState, Option<Box<crate::condition::Trace>>),
    ) -> Vec<EdgeDecision> {
        let outgoing = self.plan.node(idx).outgoing.iter();
        outgoing
            .map(|edge| {
                let edge = self.plan.edge(*edge);
                let (state, trace) = fate(edge);
                EdgeDecision { edge: edge.id.clone(), state, trace }
            })
            .collect()
    }

    /// The node where the skipping of this one began: behind the first dead edge whose source did
    /// not run or failed.
    fn skip_origin(&self, idx: NodeIdx) -> Option<NodeId> {
        let sources = self.plan.node(idx).incoming.iter().map(|e| self.plan.edge(*e).source);
        sources.into_iter().find_map(|source| {
            let cell = self.cells.node(source);
            match cell.phase {
                Phase::Skipped | Phase::Failed => {
                    Some(self.plan.node(cell.origin.unwrap_or(source)).id.clone())
                }
                _ => None,
            }
        })
    }

    /// The node whose failure reaches this one along its first failed edge.
    fn failed_origin(&self, idx: NodeIdx) -> NodeIdx {
        let source = self
            .plan
            .node(idx)
            .incoming
            .iter()
            .find(|edge| self.cells.edge(**edge) == Some(EdgeState::Failed))
            .map(|edge| self.plan.edge(*edge).source)
            .expect("a node fails with its upstream only along a failed edge");
        self.cells.node(source).origin.unwrap_or(source)
    }

    fn called(&self, idx: NodeIdx) -> String {
        format!("\"{}\"", self.plan.node(idx).name)
    }

    // ---- the end ----

    /// Every node is decided: the status follows from what became of them.
    fn end(&mut self) {
        let totals = self.cells.totals();
        let decisive = match totals.first_unhandled {
            Some(idx) => Some(idx),
            None if totals.tolerated > 0 && totals.completed == 0 => totals.first_failed,
            None => None,
        };
        if let Some(idx) = decisive {
            let failure = self.cells.node(idx).failure.as_deref().cloned();
            let failure = failure.expect("a failed node keeps its failure");
            let error = self.failed_nodes();
            self.emit(Event::ExecutionFailed(ExecutionFailed { failure, error }));
            return;
        }
        let error = (totals.failed > 0).then(|| self.failed_nodes());
        let (output, note) = self.output();
        self.emit(Event::ExecutionCompleted(ExecutionCompleted { output, error, note }));
    }

    /// Names the nodes that failed by themselves, for people.
    fn failed_nodes(&self) -> String {
        let failed: Vec<NodeIdx> = self
            .plan
            .node_indices()
            .filter(|idx| {
                let cell = self.cells.node(*idx);
                cell.phase == Phase::Failed && cell.reason.is_none()
            })
            .collect();
        let named: Vec<String> = failed
            .iter()
            .take(FAILED_NODES_NAMED_MAX)
            .filter_map(|idx| {
                let failure = self.cells.node(*idx).failure.as_ref()?;
                Some(format!("{}: {}", self.called(*idx), failure.message))
            })
            .collect();
        match failed.len().saturating_sub(FAILED_NODES_NAMED_MAX) {
            0 => named.join("; "),
            more => format!("{}; and {more} more", named.join("; ")),
        }
    }

    fn output(&self) -> (Payload, Option<String>) {
        let output_of = |idx: NodeIdx| {
            let cell = self.cells.node(idx);
            cell.output.clone().filter(|_| cell.phase == Phase::Completed)
        };
        if let Some(idx) = self.plan.final_output {
            return match output_of(idx) {
                Some(output) => (output, None),
                None => {
                    let why = format!(
                        "the output is null, because {} did not complete",
                        self.called(idx)
                    );
                    (Payload::null(), Some(why))
                }
            };
        }
        let sinks: Vec<NodeIdx> = self.plan.sinks().collect();
        if let [only] = *sinks {
            return (output_of(only).unwrap_or_else(Payload::null), None);
        }
        let outputs: BTreeMap<NodeIdx, Payload> =
            sinks.into_iter().filter_map(|idx| Some((idx, output_of(idx)?))).collect();
        if outputs.is_empty() {
            return (Payload::null(), None);
        }
        let fields = outputs.into_iter().map(|(idx, o)| (self.plan.node(idx).id.as_str(), o));
        let output = Payload::object(fields);
        if output.depth() > DEPTH_MAX {
            let why = format!(
                "the output is null, because the outputs of the last nodes together would be \
                 nested deeper than {DEPTH_MAX} levels; name one of them as `finalOutput`"
            );
            return (Payload::null(), Some(why));
        }
        (output, None)
    }
}

enum Verdict {
    Undecided,
    Ready,
    Skipped,
    UpstreamFailed,
}

/// Whether a pending node is ready, and if it can no longer be, why.
fn verdict(join: JoinRule, cell: &NodeCell) -> Verdict {
    match join {
        JoinRule::All if cell.has_failed_edge => Verdict::UpstreamFailed,
        JoinRule::All if cell.edges_undecided > 0 => Verdict::Undecided,
        JoinRule::All if cell.edges_live > 0 => Verdict::Ready,
        JoinRule::All => Verdict::Skipped,
        JoinRule::AtLeast(count) if cell.predecessors_live >= count => Verdict::Ready,
        JoinRule::AtLeast(count)
            if cell.predecessors_live + cell.predecessors_undecided >= count =>
        {
            Verdict::Undecided
        }
        JoinRule::AtLeast(_) if cell.has_failed_edge => Verdict::UpstreamFailed,
        JoinRule::AtLeast(_) => Verdict::Skipped,
    }
}

/// Live where there is no condition or it holds.
fn evaluate(edge: &PlanEdge, emitted: &Value) -> (EdgeState, Option<Box<crate::condition::Trace>>) {
    match edge.condition.as_deref().map(|condition: &Condition| condition.evaluate(emitted)) {
        None => (EdgeState::Live, None),
        Some(verdict) if verdict.holds => (EdgeState::Live, Some(Box::new(verdict.trace))),
        Some(verdict) => (EdgeState::Dead, Some(Box::new(verdict.trace))),
    }
}

/// Like [`evaluate`] for edges on one port; others are dead.
fn evaluate_on(
    edge: &PlanEdge,
    port: &str,
    emitted: &Value,
) -> (EdgeState, Option<Box<crate::condition::Trace>>) {
    if *edge.source_port == *port { evaluate(edge, emitted) } else { (EdgeState::Dead, None) }
}

/// Keeps the status in one place for callers that only look.
pub(super) fn status_of(cell: &NodeCell) -> crate::projection::NodeStatus {
    use crate::projection::NodeStatus;
    match cell.phase {
        Phase::Pending | Phase::Queued => NodeStatus::Pending,
        Phase::WaitingRetry | Phase::WaitingHuman => NodeStatus::Waiting,
        Phase::Running | Phase::Between => NodeStatus::Running,
        Phase::Completed => NodeStatus::Completed,
        Phase::Failed => NodeStatus::Failed,
        Phase::Skipped => NodeStatus::Skipped,
        Phase::Cancelled => NodeStatus::Cancelled,
    }
}
