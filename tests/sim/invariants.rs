//! What must hold after every step of every execution.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use engine::ids::{EdgeId, Instance, NodeId, Seq};
use engine::journal::Record;
use engine::plan::{Plan, Work};
use engine::retry::RetryPolicy;
use engine::scheduler::Execution;
use engine::scheduler::action::Action;
use engine::scheduler::event::{Event, LateOutcome};
use engine::scheduler::input::{Input, Timer};
use engine::time::Timestamp;

use super::case::{Case, Setup};
use super::dice::Dice;
use super::model::Model;
use super::world::{Checked, Unit};

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    Everything,
    /// Only what does not look at the whole graph again and again.
    Cheap,
}

/// Nodes up to which memory is compared with a replay after every single step.
const NODES_REPLAYED_ALWAYS_MAX: usize = 10;

/// Checks one execution, step by step.
pub struct Checker {
    setup: Rc<Setup>,
    checks: Checks,
    ledger: Ledger,
    model: Option<Model>,
}

/// What the records so far come to.
#[derive(Debug, Default)]
struct Ledger {
    seq: Seq,
    at: Timestamp,
    started_at: Timestamp,
    unowned_ms: u64,
    /// Attempts started, by instance, and whether the last one is still running.
    attempts: BTreeMap<Instance, (u32, bool)>,
    /// Attempts that failed and were not lost.
    failures: BTreeMap<Instance, u32>,
    decided_nodes: BTreeSet<NodeId>,
    decided_edges: BTreeSet<EdgeId>,
    /// Running when everything was cancelled, and not reported since.
    stopping: BTreeSet<Instance>,
    is_cancel_asked: bool,
    is_ended: bool,
}

impl Checker {
    pub fn new(case: &Rc<Case>, setup: &Rc<Setup>, checks: Checks) -> Checker {
        let model = (checks == Checks::Everything).then(|| Model::new(case, setup));
        Checker { setup: Rc::clone(setup), checks, ledger: Ledger::default(), model }
    }

    /// The checker of an execution that was dropped and replayed.
    pub fn rebuilt(
        case: &Rc<Case>,
        setup: &Rc<Setup>,
        checks: Checks,
        units: &[Unit],
    ) -> Checked<Checker> {
        let mut checker = Checker::new(case, setup, checks);
        for unit in units {
            checker.take(unit)?;
        }
        Ok(checker)
    }

    /// Checks a decision, and the execution that has committed it.
    pub fn unit(&mut self, unit: &Unit, execution: &Execution) -> Checked {
        self.take(unit)?;
        if let Some(model) = &self.model {
            model.compare(execution)?;
        }
        if self.checks == Checks::Everything {
            self.actions_fit_the_status(execution)?;
        }
        let n_decided = self.ledger.decided_nodes.len();
        let summary = execution.summary().ok_or("a started execution has no summary")?;
        if summary.nodes_decided as usize != n_decided || summary.seq != self.ledger.seq {
            return Err(format!("{n_decided} nodes are decided, but the summary is {summary:?}"));
        }
        if summary.ended_at.is_some_and(|ended_at| ended_at < summary.started_at) {
            return Err("the execution ended before it started".to_owned());
        }
        Ok(())
    }

    /// Checks an input that led to nothing.
    pub fn nothing_decided(&self, input: &Input, execution: &Execution) -> Checked {
        let must_do_something = match input {
            Input::CancelAsked { .. } | Input::HostRestarted { .. } => {
                !execution.status().is_terminal()
            }
            Input::TimerDue { timer: Timer::ExecutionTimeout } => {
                !execution.status().is_terminal() && self.setup.plan.timeout_ms.is_some()
            }
            Input::Start(_) => true,
            _ => false,
        };
        if must_do_something { Err(format!("{input:?} was decided to nothing")) } else { Ok(()) }
    }

    /// Compares memory with a replay of the journal: always for small graphs, else now and then.
    pub fn replay_now_and_then(
        &self,
        units: &[Unit],
        execution: &Execution,
        dice: &mut Dice,
    ) -> Checked {
        let is_small = self.setup.plan.nodes.len() <= NODES_REPLAYED_ALWAYS_MAX;
        let is_wanted = is_small || execution.is_settled() || dice.chance(15);
        if self.checks == Checks::Cheap || !is_wanted {
            return Ok(());
        }
        let replayed = self.setup.replay(units.iter().flat_map(|unit| &unit.records));
        same(execution, &replayed)
    }

    fn take(&mut self, unit: &Unit) -> Checked {
        for record in &unit.records {
            self.ledger.take(&self.setup.plan, record)?;
        }
        if self.ledger.is_ended && self.ledger.decided_nodes.len() < self.setup.plan.nodes.len() {
            return Err("the execution ended with undecided nodes".to_owned());
        }
        if let Input::CancelAsked { .. } = unit.input {
            let ended = unit.records.last().map(|record| &record.event);
            if !matches!(ended, Some(Event::ExecutionCancelled(_))) {
                return Err("a cancel is one decision with its terminal record".to_owned());
            }
        }
        if let Some(model) = &mut self.model {
            model.take(&unit.input, &unit.records)?;
        }
        Ok(())
    }

    /// A terminal execution starts nothing, a settled one wants nothing, a running one always
    /// wants something.
    fn actions_fit_the_status(&self, execution: &Execution) -> Checked {
        let outstanding = execution.outstanding();
        let is_stop = |action: &Action| matches!(action, Action::StopAttempt { .. });
        let fits = match (execution.status().is_terminal(), execution.is_settled()) {
            (_, true) => outstanding.is_empty() && self.ledger.stopping.is_empty(),
            (true, false) => !outstanding.is_empty() && outstanding.iter().all(is_stop),
            (false, false) => {
                let is_timeout = |action: &&Action| {
                    matches!(action, Action::WakeAt { timer: Timer::ExecutionTimeout, .. })
                };
                outstanding.iter().any(|action| !is_timeout(&action))
            }
        };
        if !fits {
            return Err(format!("{:?}, and wants {outstanding:?}", execution.status()));
        }
        self.execution_timeout_is_right(&outstanding)
    }

    /// Time that nobody owned it does not count against its timeout (SPEC 4.10).
    fn execution_timeout_is_right(&self, outstanding: &[Action]) -> Checked {
        let found = outstanding.iter().find_map(|action| match action {
            Action::WakeAt { timer: Timer::ExecutionTimeout, at } => Some(*at),
            _ => None,
        });
        let timeout_ms = self.setup.plan.timeout_ms.filter(|_| !self.ledger.is_ended);
        let wanted =
            timeout_ms.map(|ms| self.ledger.started_at.plus_ms(ms).plus_ms(self.ledger.unowned_ms));
        if found == wanted {
            Ok(())
        } else {
            Err(format!("the execution's timeout is at {found:?}, not {wanted:?}"))
        }
    }
}

/// Everything that can be seen of two executions is equal.
pub fn same(a: &Execution, b: &Execution) -> Checked {
    let differ = |what: &str, a: &dyn std::fmt::Debug, b: &dyn std::fmt::Debug| {
        Err(format!("{what} differs between memory and replay:\n  {a:?}\n  {b:?}"))
    };
    if a.summary() != b.summary() {
        return differ("the summary", &a.summary(), &b.summary());
    }
    if a.outstanding() != b.outstanding() {
        return differ("what is outstanding", &a.outstanding(), &b.outstanding());
    }
    if (a.output(), a.waiting_for(), a.trigger()) != (b.output(), b.waiting_for(), b.trigger()) {
        return differ("the execution", &a.output(), &b.output());
    }
    for idx in a.plan().node_indices() {
        if a.node_summary(idx) != b.node_summary(idx) {
            return differ("a node", &a.node_summary(idx), &b.node_summary(idx));
        }
        if a.node_input(idx) != b.node_input(idx) || a.node_output(idx) != b.node_output(idx) {
            return differ("a node's input", &a.node_input(idx), &b.node_input(idx));
        }
    }
    Ok(())
}

impl Ledger {
    fn take(&mut self, plan: &Plan, record: &Record) -> Checked {
        if record.seq != self.seq.next() || record.at < self.at {
            return Err(format!("after record {} at {}: {record:?}", self.seq, self.at));
        }
        (self.seq, self.at) = (record.seq, record.at);
        let is_allowed_after_end =
            matches!(record.event, Event::LateReport(_) | Event::HostRestarted(_));
        if self.is_ended && !is_allowed_after_end {
            return Err(format!("after the terminal record: {record:?}"));
        }
        self.event(plan, record).map_err(|problem| format!("{problem}: {record:?}"))
    }

    fn event(&mut self, plan: &Plan, record: &Record) -> Checked {
        match &record.event {
            Event::ExecutionStarted(_) if record.seq != Seq(1) => {
                return Err("started twice".to_owned());
            }
            Event::ExecutionStarted(_) => self.started_at = record.at,
            Event::AttemptStarted(e) => {
                if self.is_cancel_asked {
                    return Err("an attempt starts after a cancel".to_owned());
                }
                let (last, is_running) = self.attempts.entry(e.instance.clone()).or_default();
                if e.attempt != *last + 1 || *is_running {
                    return Err(format!("attempt {last} came before"));
                }
                (*last, *is_running) = (e.attempt, true);
            }
            Event::AttemptFailed(e) => {
                self.attempt_ends(&e.instance, e.attempt)?;
                *self.failures.entry(e.instance.clone()).or_default() += 1;
            }
            Event::AttemptLost(e) => self.attempt_ends(&e.instance, e.attempt)?,
            Event::RetryScheduled(e) => self.retry_is_within_bounds(plan, record.at, e)?,
            Event::RetryDue(_) if self.is_cancel_asked => {
                return Err("a retry after a cancel".to_owned());
            }
            Event::NodeCompleted(e) => {
                self.node_decided(plan, &e.instance)?;
                if self.attempts.get(&e.instance).is_none_or(|(n, _)| *n != e.attempt) {
                    return Err("completed by an attempt that never started".to_owned());
                }
                self.edges_decided(plan, &e.instance, e.edges.iter().map(|edge| &edge.edge))?;
                self.attempts.entry(e.instance.clone()).or_default().1 = false;
            }
            Event::NodeFailed(e) => {
                self.node_decided(plan, &e.instance)?;
                self.edges_decided(plan, &e.instance, e.edges.iter().map(|edge| &edge.edge))?;
            }
            Event::NodeSkipped(e) => {
                self.node_decided(plan, &e.instance)?;
                self.edges_decided(plan, &e.instance, e.edges.iter().map(|edge| &edge.edge))?;
                if self.attempts.contains_key(&e.instance) {
                    return Err("skipped after it had started".to_owned());
                }
            }
            Event::NodesCancelled(e) => {
                for instance in &e.instances {
                    self.node_decided(plan, instance)?;
                    if self.attempts.get(instance).is_some_and(|(_, is_running)| *is_running) {
                        self.stopping.insert(instance.clone());
                    }
                }
            }
            Event::CancelAsked(_) => self.is_cancel_asked = true,
            Event::LateReport(e) => {
                if !self.stopping.remove(&e.instance) {
                    return Err("a late report of an attempt that was not being stopped".into());
                }
                let is_shown = !matches!(e.outcome, LateOutcome::Lost) || e.attempt > 0;
                if !is_shown {
                    return Err("a late report of no attempt".to_owned());
                }
            }
            Event::HostRestarted(e) => self.unowned_ms += e.unowned_ms,
            Event::ExecutionCompleted(_)
            | Event::ExecutionFailed(_)
            | Event::ExecutionCancelled(_) => self.is_ended = true,
            Event::NodesQueued(_)
            | Event::RetryDue(_)
            | Event::NodeWaiting(_)
            | Event::HumanAnswered(_) => {}
        }
        Ok(())
    }

    fn attempt_ends(&mut self, instance: &Instance, attempt: u32) -> Checked {
        match self.attempts.get_mut(instance) {
            Some((n, is_running)) if *n == attempt && *is_running => {
                *is_running = false;
                Ok(())
            }
            other => Err(format!("an attempt ends that does not run, {other:?}")),
        }
    }

    fn node_decided(&mut self, plan: &Plan, instance: &Instance) -> Checked {
        if plan.node_idx(&instance.node).is_none() {
            return Err("a node that is not in the plan".to_owned());
        }
        if !self.decided_nodes.insert(instance.node.clone()) {
            return Err("a node is decided twice".to_owned());
        }
        Ok(())
    }

    /// A node's decision decides all its outgoing edges and no others, each once.
    fn edges_decided<'e>(
        &mut self,
        plan: &Plan,
        instance: &Instance,
        edges: impl Iterator<Item = &'e EdgeId>,
    ) -> Checked {
        let idx = plan.node_idx(&instance.node).ok_or("no such node")?;
        let outgoing = plan.node(idx).outgoing.iter().map(|edge| &plan.edge(*edge).id);
        let (wanted, found): (BTreeSet<&EdgeId>, BTreeSet<&EdgeId>) =
            (outgoing.collect(), edges.collect());
        if wanted != found {
            return Err(format!("decides edges {found:?}, not {wanted:?}"));
        }
        match found.into_iter().find(|edge| !self.decided_edges.insert((*edge).clone())) {
            Some(edge) => Err(format!("edge {edge} is decided twice")),
            None => Ok(()),
        }
    }

    fn retry_is_within_bounds(
        &self,
        plan: &Plan,
        at: Timestamp,
        e: &engine::scheduler::event::RetryScheduled,
    ) -> Checked {
        let idx = plan.node_idx(&e.instance.node).ok_or("no such node")?;
        let node = plan.node(idx);
        let failures = self.failures.get(&e.instance).copied().unwrap_or_default();
        if e.retry != failures {
            return Err(format!("retry {} after {failures} failed attempts", e.retry));
        }
        let policy: &RetryPolicy = match (&node.retry, &node.work) {
            (Some(policy), _) => policy,
            // The agent's own; the model knows how many it allows.
            (None, Work::Agent(_)) => return Ok(()),
            (None, Work::Transform) => return Err("a retry without a policy".to_owned()),
        };
        if e.retry > policy.retries_max {
            return Err(format!("more than {} retries", policy.retries_max));
        }
        let wait_ms = e.due.ms_since(at);
        if e.due < at || wait_ms > policy.ceiling_ms(e.retry) {
            return Err(format!("a wait of {wait_ms} ms"));
        }
        Ok(())
    }
}
