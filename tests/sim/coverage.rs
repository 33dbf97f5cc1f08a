//! What a campaign has been through, so that it can be held to have been everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use engine::journal::Record;
use engine::plan::{JoinRule, Plan};
use engine::scheduler::Execution;
use engine::scheduler::event::{Answer, Event, LateOutcome};
use engine::scheduler::input::{Input, Report, Timer};

use super::chaos::Fault;

/// What a campaign must have seen: every kind of record, every input in every state it matters in,
/// every policy, join rule, reason and port.
pub const WANTED: [&str; 109] = [
    "cancelled Asked",
    "cancelled ExecutionTimeout",
    "cancelled Stopped",
    "completed with an error note",
    "completed without its final output",
    "edge Dead after nodeCompleted, port error",
    "edge Dead after nodeCompleted, port output",
    "edge Dead after nodeFailed, port error",
    "edge Dead after nodeFailed, port output",
    "edge Dead after nodeSkipped, port error",
    "edge Dead after nodeSkipped, port output",
    "edge Failed after nodeFailed, port error",
    "edge Failed after nodeFailed, port output",
    "edge Live after nodeCompleted, port output",
    "edge Live after nodeFailed, port error",
    "edge Live after nodeFailed, port output",
    "failed Handled, policy continue",
    "failed Handled, policy failDependents",
    "failed Handled, policy skipDependents",
    "failed Handled, policy stop",
    "failed Tolerated, policy continue",
    "failed Tolerated, policy skipDependents",
    "failed Unhandled, policy failDependents",
    "failed Unhandled, policy stop",
    "failed with agentError",
    "failed with agentNotFound",
    "failed with bindingError",
    "failed with internal",
    "failed with invalidOutput",
    "failed with lost",
    "failed with network",
    "failed with policyDenied",
    "failed with rateLimited",
    "failed with timeout",
    "fault AppendFails",
    "fault Cancel",
    "fault Crash",
    "fault StrayAnswer",
    "input answer complete, waiting-lost",
    "input answer fail, waiting-lost",
    "input answer retry, completed",
    "input answer retry, pending",
    "input answer retry, running",
    "input answer retry, skipped",
    "input answer retry, waiting-lost",
    "input cancel, completed",
    "input cancel, failed",
    "input cancel, running",
    "input report completed, cancelled",
    "input report completed, completed",
    "input report completed, running",
    "input report failed, cancelled",
    "input report failed, failed",
    "input report failed, running",
    "input report failed, waiting-retry",
    "input report lost, running",
    "input report stopped, cancelled",
    "input report stopped, running",
    "input restart, cancelled",
    "input restart, completed",
    "input restart, failed",
    "input restart, running",
    "input retry, waiting-retry",
    "input slot, pending",
    "input start, pending",
    "input timeout, completed",
    "input timeout, running",
    "late completed",
    "late failed",
    "late lost",
    "late stopped",
    "lost, repeats false",
    "lost, repeats true",
    "record attemptFailed",
    "record attemptLost",
    "record attemptStarted",
    "record cancelAsked",
    "record executionCancelled",
    "record executionCompleted",
    "record executionFailed",
    "record executionStarted",
    "record hostRestarted",
    "record humanAnswered",
    "record lateReport",
    "record nodeCompleted",
    "record nodeFailed",
    "record nodeSkipped",
    "record nodeWaiting",
    "record nodesCancelled",
    "record nodesQueued",
    "record retryDue",
    "record retryScheduled",
    "retry due, late false",
    "retry due, late true",
    "skipped AllEdgesDead, join all",
    "skipped AllEdgesDead, join any",
    "skipped AllEdgesDead, join min",
    "skipped Disabled, join all",
    "skipped Disabled, join any",
    "skipped Disabled, join min",
    "started again",
    "started with a warning",
    "started with bindings",
    "started, join all",
    "started, join any",
    "started, join min",
    "upstreamFailed, join all",
    "upstreamFailed, join any",
    "upstreamFailed, join min",
];

/// How often each thing was seen.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    seen: BTreeMap<String, usize>,
}

impl Coverage {
    pub fn add(&mut self, other: &Coverage) {
        for (what, count) in &other.seen {
            *self.seen.entry(what.clone()).or_default() += count;
        }
    }

    /// Notes that something happened while a node or an execution was in some state.
    pub fn input(&mut self, execution: &Execution, input: &Input) {
        let node_is = |instance: &engine::ids::Instance| {
            let idx = execution.plan().node_idx(&instance.node).expect("the world knows its nodes");
            let waiting = execution.node_summary(idx).and_then(|summary| summary.waiting_for);
            let status = execution.node_status(idx).as_str();
            waiting.map_or(status.to_owned(), |reason| format!("{status}-{}", reason.as_str()))
        };
        let execution_is = execution.status().as_str();
        let text = match input {
            Input::Start(_) => format!("input start, {execution_is}"),
            Input::SlotGranted { instance } => format!("input slot, {}", node_is(instance)),
            Input::AttemptReported { instance, report, .. } => {
                let report = match report {
                    Report::Completed { .. } => "completed",
                    Report::Failed { .. } => "failed",
                    Report::Stopped => "stopped",
                    Report::Lost { .. } => "lost",
                };
                format!("input report {report}, {}", node_is(instance))
            }
            Input::TimerDue { timer: Timer::Retry(instance) } => {
                format!("input retry, {}", node_is(instance))
            }
            Input::TimerDue { timer: Timer::ExecutionTimeout } => {
                format!("input timeout, {execution_is}")
            }
            Input::HumanAnswered { instance, answer } => {
                let answer = match answer {
                    Answer::Retry => "retry",
                    Answer::Complete(_) => "complete",
                    Answer::Fail { .. } => "fail",
                };
                format!("input answer {answer}, {}", node_is(instance))
            }
            Input::CancelAsked { .. } => format!("input cancel, {execution_is}"),
            Input::HostRestarted { .. } => format!("input restart, {execution_is}"),
        };
        self.note(text);
    }

    /// Notes what was written down.
    pub fn records(&mut self, plan: &Plan, records: &[Record]) {
        for record in records {
            self.note(format!("record {}", record.event.kind()));
            match &record.event {
                Event::NodeSkipped(e) => {
                    let join = join_of(plan, &e.instance.node);
                    self.note(format!("skipped {:?}, join {join}", e.because));
                }
                Event::NodeFailed(e) => {
                    let idx = plan.node_idx(&e.instance.node).expect("it is in the plan");
                    let policy = plan.node(idx).on_failure.as_str();
                    let join = join_of(plan, &e.instance.node);
                    if e.failure.origin.is_some() {
                        self.note(format!("upstreamFailed, join {join}"));
                    } else {
                        self.note(format!("failed {:?}, policy {policy}", e.effect));
                        self.note(format!("failed with {}", e.failure.class.as_str()));
                    }
                }
                Event::AttemptStarted(e) => {
                    let join = join_of(plan, &e.instance.node);
                    self.note(format!("started, join {join}"));
                    self.note_if(!e.warnings.is_empty(), "started with a warning");
                    self.note_if(e.input.is_some(), "started with bindings");
                    self.note_if(e.attempt > 1, "started again");
                }
                Event::AttemptLost(e) => self.note(format!("lost, repeats {}", e.repeats)),
                Event::RetryDue(e) => self.note(format!("retry due, late {}", e.late_ms.is_some())),
                Event::NodesCancelled(e) => self.note(format!("cancelled {:?}", e.because)),
                Event::LateReport(e) => self.note(format!(
                    "late {}",
                    match e.outcome {
                        LateOutcome::Completed(_) => "completed",
                        LateOutcome::Failed(_) => "failed",
                        LateOutcome::Stopped => "stopped",
                        LateOutcome::Lost => "lost",
                    }
                )),
                Event::ExecutionCompleted(e) => {
                    self.note_if(e.error.is_some(), "completed with an error note");
                    self.note_if(e.note.is_some(), "completed without its final output");
                }
                _ => {}
            }
            self.edges(plan, &record.event);
        }
    }

    pub fn fault(&mut self, fault: Fault) {
        self.note(format!("fault {fault:?}"));
    }

    fn edges(&mut self, plan: &Plan, event: &Event) {
        let decisions = match event {
            Event::NodeCompleted(e) => &e.edges,
            Event::NodeFailed(e) => &e.edges,
            Event::NodeSkipped(e) => &e.edges,
            _ => return,
        };
        for decision in decisions {
            let idx = plan.edge_idx(&decision.edge).expect("it is in the plan");
            let port = &plan.edge(idx).source_port;
            self.note(format!("edge {:?} after {}, port {port}", decision.state, event.kind()));
        }
    }

    fn note_if(&mut self, is_so: bool, what: &str) {
        if is_so {
            self.note(what.to_owned());
        }
    }

    fn note(&mut self, what: String) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// What of this list was never seen.
    pub fn missing<'l>(&self, wanted: &[&'l str]) -> BTreeSet<&'l str> {
        wanted.iter().copied().filter(|what| !self.seen.contains_key(*what)).collect()
    }

    /// The table, one thing a line.
    pub fn table(&self) -> String {
        let mut table = String::new();
        for (what, count) in &self.seen {
            writeln!(table, "{count:>9}  {what}").expect("a text takes everything");
        }
        table
    }
}

fn join_of(plan: &Plan, node: &engine::ids::NodeId) -> &'static str {
    let idx = plan.node_idx(node).expect("it is in the plan");
    match plan.node(idx).join {
        JoinRule::All => "all",
        JoinRule::AtLeast(1) => "any",
        JoinRule::AtLeast(_) => "min",
    }
}

#[test]
fn a_campaign_is_held_to_every_kind_of_record() {
    let kinds = [
        "executionStarted",
        "nodesQueued",
        "nodeSkipped",
        "attemptStarted",
        "attemptFailed",
        "attemptLost",
        "retryScheduled",
        "retryDue",
        "nodeWaiting",
        "humanAnswered",
        "nodeCompleted",
        "nodeFailed",
        "nodesCancelled",
        "cancelAsked",
        "lateReport",
        "hostRestarted",
        "executionCompleted",
        "executionFailed",
        "executionCancelled",
    ];
    for kind in kinds {
        assert!(WANTED.contains(&format!("record {kind}").as_str()), "{kind}");
    }
    for fault in Fault::ALL {
        assert!(WANTED.contains(&format!("fault {fault:?}").as_str()), "{fault:?}");
    }
}
