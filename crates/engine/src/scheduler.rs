//! The scheduler: what may happen to an execution, what did, and what should happen next.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::agent::AgentSet;
use crate::failure::Failure;
use crate::ids::{ExecutionId, Instance, NodeId, Seq};
use crate::journal::Record;
use crate::payload::Payload;
use crate::plan::{NodeIdx, Plan};
use crate::projection::{ExecutionStatus, ExecutionSummary, NodeStatus, NodeSummary, WaitReason};
use crate::time::Timestamp;

pub mod action;
mod apply;
mod decide;
pub mod event;
pub mod input;
mod resolve;
mod rules;
mod state;
#[cfg(test)]
mod tests;

use action::{Action, StartAttempt, Task};
use apply::Fold;
use decide::Decision;
use event::{Event, ExecutionStarted, Question, Trigger};
use input::{Input, Timer};
use resolve::Resolver;
use rules::{NodeRule, Performer, SettingsRule};
use state::{Cells, NodeCell, Phase, State};

pub use rules::OverrideLimits;

/// One execution of one plan: a pure state machine that somebody else drives.
///
/// # The driver's contract
///
/// * One input at a time: [`decide`](Execution::decide), then append the records it returns as one
///   unit at [`seq`](Execution::seq), then [`commit`](Execution::commit) them and perform the
///   actions that returns. An empty decision is not appended. Nothing changes before `commit`.
/// * A driver may commit before the append is durable, as long as nothing leaves the process until
///   it is: no attempt that [leaves the process](StartAttempt::leaves_process), no question, no
///   message to a view, no terminal state. If the append then fails, it drops this value, replays
///   the journal, and discards reports that belong to what it dropped.
/// * `now` never goes back between two inputs; an earlier one counts as the last one.
/// * Performing an action twice is harmless. A second report of the same attempt decides to
///   nothing. A [`Input::TimerDue`] is believed: the driver says when its clocks say so.
/// * [`Action::AcquireSlot`] is answered by [`Input::SlotGranted`] once the machine has a place. If
///   that decision starts no attempt of the instance, the place is free again.
/// * [`Action::StopAttempt`] may name an attempt that the driver was never told to start, because one
///   decision started and stopped it. The driver reports such an attempt as stopped.
/// * After a restart: [`replay`](Execution::replay), decide on [`Input::HostRestarted`], append,
///   commit, perform [`outstanding`](Execution::outstanding).
#[derive(Debug)]
pub struct Execution {
    id: ExecutionId,
    plan: Arc<Plan>,
    agents: Arc<AgentSet>,
    rules: Arc<[NodeRule]>,
    state: State,
}

/// An input that makes no sense for this execution. Nothing was decided.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Rejected {
    /// It was started before.
    #[error("the execution has been started already")]
    AlreadyStarted,
    /// It was not started.
    #[error("the execution has not been started")]
    NotStarted,
    /// Its plan has no such node, or no such instance of it.
    #[error("the execution has no node {node}")]
    UnknownNode {
        /// Which.
        node: NodeId,
    },
    /// The node waits for no answer, or not any more.
    #[error("node {node} waits for no answer: it is {}", status.as_str())]
    NothingToAnswer {
        /// Which.
        node: NodeId,
        /// What it is instead of waiting.
        status: NodeStatus,
    },
}

/// What committing a decision leads to.
#[derive(Debug, Default)]
pub struct Committed {
    /// What should now be happening because of it.
    pub actions: Vec<Action>,
    /// The node instances whose summaries changed, in plan order.
    pub touched: Vec<NodeIdx>,
}

impl Execution {
    /// An execution that has not been started: give it [`Input::Start`].
    ///
    /// `agents` are the agents that exist for it; it pins those that the plan names.
    pub fn new(
        id: ExecutionId,
        plan: Arc<Plan>,
        agents: Arc<AgentSet>,
        limits: OverrideLimits,
    ) -> Execution {
        let rules = rules::resolve(&plan, &agents, limits).into();
        let state = State::new(&plan);
        Execution { id, plan, agents, rules, state }
    }

    /// The execution that these records fold to. Decides nothing.
    ///
    /// # Panics
    /// If the records are not the whole journal of an execution of this plan, in order.
    pub fn replay<'r>(
        id: ExecutionId,
        plan: Arc<Plan>,
        agents: Arc<AgentSet>,
        limits: OverrideLimits,
        records: impl IntoIterator<Item = &'r Record>,
    ) -> Execution {
        let mut execution = Execution::new(id, plan, agents, limits);
        for record in records {
            execution.fold_record(record);
        }
        execution
    }

    /// Says what an input means, as the records to append. Changes nothing.
    ///
    /// Costs what the decision touches, not the size of the graph; only a start, a cancel, a stop
    /// and a restart look at every node.
    pub fn decide(&self, input: Input, now: Timestamp) -> Result<Vec<Record>, Rejected> {
        Decision::new(self, now).decide(input)
    }

    /// Takes over records that [`decide`](Execution::decide) returned, and says what should now
    /// be happening because of them.
    ///
    /// # Panics
    /// If they do not follow the last record.
    pub fn commit(&mut self, records: &[Record]) -> Committed {
        let mut touched = BTreeSet::new();
        let mut started = BTreeSet::new();
        let is_first = self.state.started.is_none() && !records.is_empty();
        for record in records {
            self.note_touched(&record.event, &mut touched);
            if let Event::AttemptStarted(e) = &record.event {
                started.insert(self.fold().idx(&e.instance));
            }
            self.fold_record(record);
        }
        let mut actions = Vec::new();
        if is_first {
            actions.extend(self.execution_timeout());
        }
        for idx in &touched {
            match self.state.node(*idx).phase {
                Phase::Running if !started.contains(idx) => {}
                _ => actions.extend(self.node_action(*idx)),
            }
        }
        actions.extend(self.slots_wanted());
        Committed { actions, touched: touched.into_iter().collect() }
    }

    /// Takes over the next record of the journal that somebody else drives: for readers, who only
    /// look.
    ///
    /// # Panics
    /// If it does not follow the last record.
    pub fn absorb(&mut self, record: &Record) {
        self.fold_record(record);
    }

    /// Everything that should be happening now. Empty once the execution is
    /// [settled](Execution::is_settled).
    pub fn outstanding(&self) -> Vec<Action> {
        let nodes = self.plan.node_indices().filter_map(|idx| self.node_action(idx));
        self.execution_timeout().into_iter().chain(nodes).chain(self.slots_wanted()).collect()
    }

    /// Which execution this is.
    pub fn id(&self) -> ExecutionId {
        self.id
    }

    /// The plan it runs.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The agents that it was given, by id.
    pub fn agents(&self) -> &Arc<AgentSet> {
        &self.agents
    }

    /// Where it came from and what it pins; `None` before it is started.
    pub fn started(&self) -> Option<&ExecutionStarted> {
        self.state.started.as_deref()
    }

    /// The last record that was folded; 0 before the first.
    pub fn seq(&self) -> Seq {
        self.state.totals.seq
    }

    /// The time of the last record.
    pub fn last_at(&self) -> Timestamp {
        self.state.totals.last_at
    }

    /// What has become of it.
    pub fn status(&self) -> ExecutionStatus {
        match (&self.state.totals.ended, &self.state.started) {
            (Some(ended), _) => ended.status,
            (None, Some(_)) => ExecutionStatus::Running,
            (None, None) => ExecutionStatus::Pending,
        }
    }

    /// Whether it is terminal and no attempt of it is still to be stopped.
    pub fn is_settled(&self) -> bool {
        self.state.totals.ended.is_some() && self.state.stopping.is_empty()
    }

    /// Whether it stands still until a time comes or a person acts, and the most demanding reason.
    pub fn waiting_for(&self) -> Option<WaitReason> {
        let totals = &self.state.totals;
        let is_idle = totals.ended.is_none()
            && totals.running == 0
            && self.state.queue.is_empty()
            && self.state.slot_queue.is_empty();
        match (is_idle, totals.waiting_human, totals.waiting_retry) {
            (false, ..) | (true, 0, 0) => None,
            (true, 0, _) => Some(WaitReason::Retry),
            (true, ..) => Some(WaitReason::Lost),
        }
    }

    /// What has become of a node.
    pub fn node_status(&self, idx: NodeIdx) -> NodeStatus {
        decide::status_of(self.state.node(idx))
    }

    /// The input a node was given, if it has started and its bindings resolved.
    pub fn node_input(&self, idx: NodeIdx) -> Option<Payload> {
        let cell = self.state.node(idx);
        let started = self.state.started.as_deref().filter(|_| cell.attempts > 0)?;
        if self.plan.node(idx).inputs.is_some() && cell.input.is_none() {
            return None;
        }
        let (execution, plan, cells) = (self.id, &*self.plan, &self.state);
        Some(Resolver { execution, plan, started, cells }.input(idx))
    }

    /// The output of a node that completed.
    pub fn node_output(&self, idx: NodeIdx) -> Option<&Payload> {
        self.state.node(idx).output.as_ref()
    }

    /// The failure of a node: its own once it has failed, its last attempt's before that.
    pub fn node_failure(&self, idx: NodeIdx) -> Option<&Failure> {
        self.state.node(idx).failure.as_deref()
    }

    /// The execution's output, if it completed.
    pub fn output(&self) -> Option<&Payload> {
        self.state.totals.ended.as_ref()?.output.as_ref()
    }

    /// The execution at a glance; `None` before it is started.
    pub fn summary(&self) -> Option<ExecutionSummary> {
        let started = self.state.started.as_ref()?;
        let totals = &self.state.totals;
        let ended = totals.ended.as_ref();
        Some(ExecutionSummary {
            id: self.id,
            workflow: started.workflow,
            workspace: started.workspace.clone(),
            source: started.source.clone(),
            trigger: started.trigger,
            plan: started.plan,
            status: self.status(),
            waiting_for: self.waiting_for(),
            started_at: totals.started_at,
            ended_at: ended.map(|ended| ended.at),
            nodes_total: self.plan.nodes.len() as u32,
            nodes_decided: totals.decided,
            error: ended.and_then(|ended| ended.error.as_deref()).map(str::to_owned),
            failure: ended.and_then(|ended| ended.failure.as_deref()).cloned(),
            output_seq: ended.filter(|ended| ended.output.is_some()).map(|ended| ended.seq),
            is_settled: self.is_settled(),
            seq: totals.seq,
        })
    }

    /// A node at a glance; `None` while nothing has happened to it.
    pub fn node_summary(&self, idx: NodeIdx) -> Option<NodeSummary> {
        let cell = self.state.node(idx);
        if cell.phase == Phase::Pending {
            return None;
        }
        Some(NodeSummary {
            instance: self.instance(idx),
            status: decide::status_of(cell),
            waiting_for: match cell.phase {
                Phase::WaitingRetry => Some(WaitReason::Retry),
                Phase::WaitingHuman => Some(WaitReason::Lost),
                _ => None,
            },
            due: cell.due,
            attempts: cell.attempts,
            reason: cell.reason,
            origin: cell.origin.map(|origin| self.plan.node(origin).id.clone()),
            failure: cell.failure.as_deref().cloned(),
            started_at: cell.started_at,
            ended_at: cell.ended_at,
            decided_seq: cell.phase.is_decided().then_some(cell.decided_seq),
        })
    }

    /// Why it was started; `None` before.
    pub fn trigger(&self) -> Option<Trigger> {
        self.state.started.as_ref().map(|started| started.trigger)
    }

    fn fold(&self) -> Fold<'_> {
        Fold { plan: &self.plan, rules: &self.rules }
    }

    fn fold_record(&mut self, record: &Record) {
        Fold { plan: &self.plan, rules: &self.rules }.apply(&mut self.state, record);
    }

    fn instance(&self, idx: NodeIdx) -> Instance {
        Instance::top(self.plan.node(idx).id.clone())
    }

    fn note_touched(&self, event: &Event, touched: &mut BTreeSet<NodeIdx>) {
        let instances: &[Instance] = match event {
            Event::NodesQueued(e) => &e.instances,
            Event::NodesCancelled(e) => &e.instances,
            Event::NodeSkipped(e) => std::slice::from_ref(&e.instance),
            Event::AttemptStarted(e) => std::slice::from_ref(&e.instance),
            Event::AttemptFailed(e) => std::slice::from_ref(&e.instance),
            Event::AttemptLost(e) => std::slice::from_ref(&e.instance),
            Event::RetryScheduled(e) => std::slice::from_ref(&e.instance),
            Event::RetryDue(e) => std::slice::from_ref(&e.instance),
            Event::NodeWaiting(e) => std::slice::from_ref(&e.instance),
            Event::HumanAnswered(e) => std::slice::from_ref(&e.instance),
            Event::NodeCompleted(e) => std::slice::from_ref(&e.instance),
            Event::NodeFailed(e) => std::slice::from_ref(&e.instance),
            Event::LateReport(_)
            | Event::ExecutionStarted(_)
            | Event::CancelAsked(_)
            | Event::HostRestarted(_)
            | Event::ExecutionCompleted(_)
            | Event::ExecutionFailed(_)
            | Event::ExecutionCancelled(_) => &[],
        };
        touched.extend(instances.iter().map(|instance| self.fold().idx(instance)));
    }

    fn execution_timeout(&self) -> Option<Action> {
        let totals = &self.state.totals;
        let timeout_ms = self.plan.timeout_ms.filter(|_| totals.ended.is_none())?;
        self.state.started.as_ref()?;
        let at = totals.started_at.plus_ms(timeout_ms).plus_ms(totals.unowned_ms);
        Some(Action::WakeAt { timer: Timer::ExecutionTimeout, at })
    }

    /// The first ready nodes that need a machine-wide place, as many as the execution could start.
    fn slots_wanted(&self) -> impl Iterator<Item = Action> + '_ {
        let free = self.plan.concurrency.saturating_sub(self.state.totals.running) as usize;
        self.state.slot_queue.iter().take(free).filter_map(|idx| {
            let kind = self.rules[idx.0 as usize].slot()?;
            Some(Action::AcquireSlot { instance: self.instance(*idx), kind })
        })
    }

    fn node_action(&self, idx: NodeIdx) -> Option<Action> {
        let cell = self.state.node(idx);
        let instance = || self.instance(idx);
        match cell.phase {
            Phase::Running => Some(Action::StartAttempt(Box::new(self.start_attempt(idx, cell)))),
            Phase::WaitingRetry => {
                Some(Action::WakeAt { timer: Timer::Retry(instance()), at: cell.due? })
            }
            Phase::WaitingHuman => {
                Some(Action::AskHuman { instance: instance(), question: Question::LostAttempt })
            }
            Phase::Cancelled if self.state.stopping.contains(&idx) => {
                Some(Action::StopAttempt { instance: instance(), attempt: cell.attempts })
            }
            _ => None,
        }
    }

    fn start_attempt(&self, idx: NodeIdx, cell: &NodeCell) -> StartAttempt {
        let rule = &self.rules[idx.0 as usize];
        let instance = self.instance(idx);
        let task = match &rule.performer {
            Performer::Agent { agent, settings } => Task::Agent {
                agent: Arc::clone(agent),
                settings: match (&cell.settings, &**settings) {
                    (Some(resolved), _) => resolved.clone(),
                    (None, SettingsRule::Plain(plain)) => plain.clone(),
                    (None, SettingsRule::Templates(_)) => {
                        unreachable!("templates were resolved before the attempt started")
                    }
                },
                params: Arc::clone(&rule.params),
            },
            Performer::Transform => Task::Transform,
            Performer::Missing(agent) => {
                unreachable!("an attempt of the missing agent {agent} fails as it starts")
            }
        };
        StartAttempt {
            idempotency_key: instance.idempotency_key(self.id),
            instance,
            attempt: cell.attempts,
            task,
            input: self.node_input(idx).expect("a running node has started"),
            start_to_close_timeout_ms: rule.start_to_close_timeout_ms,
        }
    }
}
