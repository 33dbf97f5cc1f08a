//! What programs outside are told about an execution: one line for each thing that matters to
//! them, under names that never change. The command line's `--json`, logs and notifications all
//! say what [`announcements`] says.

use crate::failure::{Disposition, Failure, Severity};
use crate::ids::{ExecutionId, Instance, NodeId, Seq, WorkflowId};
use crate::journal::Record;
use crate::payload::Payload;
use crate::plan::NodeIdx;
use crate::projection::{ExecutionStatus, NodeStatus, NotRunReason, WaitReason};
use crate::scheduler::Execution;
use crate::scheduler::event::{Event, SkipReason};
use crate::time::Timestamp;
use crate::value::{Object, Value};

/// The names. Those of nodes are told of one node, the others of the execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnnouncementKind {
    /// The execution exists.
    WorkflowStarted,
    /// An attempt of the node is about to run.
    NodeStarted,
    /// The node has an output.
    NodeCompleted,
    /// The node failed for good.
    NodeFailed,
    /// The node will not run.
    NodeSkipped,
    /// The node was ended together with others.
    NodeCancelled,
    /// Another attempt of the node will follow.
    NodeRetrying,
    /// The node waits for a person.
    NodeWaiting,
    /// The execution completed.
    WorkflowCompleted,
    /// The execution failed.
    WorkflowFailed,
    /// The execution was cancelled.
    WorkflowCancelled,
}

impl AnnouncementKind {
    /// The spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            AnnouncementKind::WorkflowStarted => "workflow.started",
            AnnouncementKind::NodeStarted => "workflow.node.started",
            AnnouncementKind::NodeCompleted => "workflow.node.completed",
            AnnouncementKind::NodeFailed => "workflow.node.failed",
            AnnouncementKind::NodeSkipped => "workflow.node.skipped",
            AnnouncementKind::NodeCancelled => "workflow.node.cancelled",
            AnnouncementKind::NodeRetrying => "workflow.node.retrying",
            AnnouncementKind::NodeWaiting => "workflow.node.waiting",
            AnnouncementKind::WorkflowCompleted => "workflow.completed",
            AnnouncementKind::WorkflowFailed => "workflow.failed",
            AnnouncementKind::WorkflowCancelled => "workflow.cancelled",
        }
    }
}

/// One thing that programs outside are told.
#[derive(Clone, Debug, PartialEq)]
pub struct Announcement {
    /// Under which name.
    pub kind: AnnouncementKind,
    /// Of which execution.
    pub execution: ExecutionId,
    /// The workflow it runs a version of; absent for a file.
    pub workflow: Option<WorkflowId>,
    /// The record it comes from. Several may come from one record.
    pub seq: Seq,
    /// The time of that record.
    pub at: Timestamp,
    /// What the node, or the execution, is from then on, as [`NodeStatus`] and
    /// [`ExecutionStatus`] spell it.
    pub status: &'static str,
    /// Of which node instance.
    pub instance: Option<Instance>,
    /// Which attempt: the one that started, or the last one that did.
    pub attempt: Option<u32>,
    /// When a wait is over.
    pub due: Option<Timestamp>,
    /// Why a node did not run, was ended, or waits.
    pub reason: Option<&'static str>,
    /// The node that caused that, where there is one.
    pub origin: Option<NodeId>,
    /// The output of what completed.
    pub output: Option<Payload>,
    /// What went wrong, as [`failure_report`] and [`error_note`] write it.
    pub error: Option<Value>,
}

impl Announcement {
    /// One JSON object: `type`, `seq`, `timestamp`, `executionId`, `workflowId`, `nodeId`,
    /// `status` and whatever else is known. `workflowId` is null for a file.
    pub fn to_value(&self) -> Value {
        let text = |text: &str| Some(Value::from(text));
        let fields = [
            ("type", text(self.kind.as_str())),
            ("seq", Some(Value::from(self.seq.0))),
            ("timestamp", text(&self.at.to_rfc3339())),
            ("executionId", text(&self.execution.to_string())),
            ("workflowId", Some(self.workflow.map_or(Value::Null, |id| id.to_string().into()))),
            ("nodeId", self.instance.as_ref().map(|instance| instance.node.as_str().into())),
            ("status", text(self.status)),
            ("attempt", self.attempt.map(|attempt| Value::from(u64::from(attempt)))),
            ("dueAt", self.due.map(|due| due.to_rfc3339().into())),
            ("reason", self.reason.map(Value::from)),
            ("origin", self.origin.as_ref().map(|origin| origin.as_str().into())),
            ("output", self.output.as_ref().map(payload_or_reference)),
            ("error", self.error.clone()),
        ];
        let known = fields.into_iter().filter_map(|(key, value)| Some((key, value?)));
        Value::Object(known.collect())
    }
}

/// What programs outside are told because of a record.
///
/// * `execution`: folded up to the record, the record included, and no further.
///
/// # Panics
/// If the record is not of this execution.
pub fn announcements(execution: &Execution, record: &Record) -> Vec<Announcement> {
    let of = About { execution, record };
    match &record.event {
        Event::ExecutionStarted(_) => {
            vec![of.execution(AnnouncementKind::WorkflowStarted, ExecutionStatus::Running)]
        }
        Event::NodeSkipped(e) => vec![Announcement {
            reason: Some(match e.because {
                SkipReason::Disabled => NotRunReason::Disabled.as_str(),
                SkipReason::AllEdgesDead => NotRunReason::AllEdgesDead.as_str(),
            }),
            origin: e.origin.clone(),
            ..of.node(AnnouncementKind::NodeSkipped, NodeStatus::Skipped, &e.instance)
        }],
        Event::AttemptStarted(e) => vec![Announcement {
            attempt: Some(e.attempt),
            ..of.node(AnnouncementKind::NodeStarted, NodeStatus::Running, &e.instance)
        }],
        Event::AttemptLost(e) if e.repeats => vec![Announcement {
            attempt: Some(e.attempt),
            reason: Some(WaitReason::Lost.as_str()),
            ..of.node(AnnouncementKind::NodeRetrying, NodeStatus::Pending, &e.instance)
        }],
        Event::RetryScheduled(e) => vec![Announcement {
            attempt: of.attempts(&e.instance),
            due: Some(e.due),
            reason: Some(WaitReason::Retry.as_str()),
            error: execution.node_failure(of.idx(&e.instance)).map(failure_report),
            ..of.node(AnnouncementKind::NodeRetrying, NodeStatus::Waiting, &e.instance)
        }],
        Event::NodeWaiting(e) => vec![Announcement {
            attempt: of.attempts(&e.instance),
            reason: Some(WaitReason::from(e.question).as_str()),
            ..of.node(AnnouncementKind::NodeWaiting, NodeStatus::Waiting, &e.instance)
        }],
        Event::NodeCompleted(e) => vec![Announcement {
            attempt: Some(e.attempt),
            output: Some(e.output.clone()),
            ..of.node(AnnouncementKind::NodeCompleted, NodeStatus::Completed, &e.instance)
        }],
        Event::NodeFailed(e) => vec![Announcement {
            attempt: of.attempts(&e.instance),
            reason: e.failure.origin.as_ref().map(|_| NotRunReason::UpstreamFailed.as_str()),
            origin: e.failure.origin.clone(),
            error: Some(failure_report(&e.failure)),
            ..of.node(AnnouncementKind::NodeFailed, NodeStatus::Failed, &e.instance)
        }],
        Event::NodesCancelled(e) => e
            .instances
            .iter()
            .map(|instance| Announcement {
                attempt: of.attempts(instance),
                reason: Some(NotRunReason::Cancelled.as_str()),
                origin: e.origin.clone(),
                ..of.node(AnnouncementKind::NodeCancelled, NodeStatus::Cancelled, instance)
            })
            .collect(),
        Event::ExecutionCompleted(e) => vec![Announcement {
            output: Some(e.output.clone()),
            error: e.error.as_deref().map(|error| error_note(execution, error)),
            ..of.execution(AnnouncementKind::WorkflowCompleted, ExecutionStatus::Completed)
        }],
        Event::ExecutionFailed(e) => vec![Announcement {
            error: Some(execution_error(execution, &e.failure, &e.error)),
            ..of.execution(AnnouncementKind::WorkflowFailed, ExecutionStatus::Failed)
        }],
        Event::ExecutionCancelled(_) => {
            vec![of.execution(AnnouncementKind::WorkflowCancelled, ExecutionStatus::Cancelled)]
        }
        // Each of these is followed by a record that says what comes of it, or changes nothing
        // that anybody outside would act on.
        Event::NodesQueued(_)
        | Event::AttemptFailed(_)
        | Event::AttemptLost(_)
        | Event::RetryDue(_)
        | Event::HumanAnswered(_)
        | Event::CancelAsked(_)
        | Event::LateReport(_)
        | Event::HostRestarted(_) => Vec::new(),
    }
}

/// A payload as programs outside get it: itself, or `{"$blob": digest, "bytes": n}` if it is
/// longer than what a record holds in place.
///
/// # Panics
/// If it is short and was not loaded, which cannot happen: only long payloads are stored apart.
pub fn payload_or_reference(payload: &Payload) -> Value {
    match payload.blob() {
        None => payload.value().clone(),
        Some(blob) => Value::Object(
            [("$blob", blob.digest.to_string().into()), ("bytes", Value::from(blob.bytes))]
                .into_iter()
                .collect(),
        ),
    }
}

/// A failure as programs outside get it, with everything its class says about it.
pub fn failure_report(failure: &Failure) -> Value {
    Value::Object(report(failure, &failure.message))
}

/// The failure of an execution: `failure` decided it, and `error` says it all, for people. Its
/// `nodes` are the ids of the nodes that failed by themselves.
pub fn execution_error(execution: &Execution, failure: &Failure, error: &str) -> Value {
    let mut report = report(failure, error);
    report.insert("nodes", failed_nodes(execution));
    Value::Object(report)
}

/// What an execution says about failures that it could live with.
pub fn error_note(execution: &Execution, error: &str) -> Value {
    let fields = [("message", Value::from(error)), ("nodes", failed_nodes(execution))];
    Value::Object(fields.into_iter().collect())
}

fn failed_nodes(execution: &Execution) -> Value {
    let plan = execution.plan();
    let failed = plan.node_indices().filter(|&idx| {
        execution.node_status(idx) == NodeStatus::Failed
            && execution.node_failure(idx).is_some_and(|failure| failure.origin.is_none())
    });
    failed.map(|idx| Value::from(plan.node(idx).id.as_str())).collect()
}

fn report(failure: &Failure, message: &str) -> Object {
    let class = failure.class;
    let severity = match class.severity() {
        Severity::Warning => "warning",
        Severity::Error => "error",
        Severity::Critical => "critical",
    };
    let disposition = match class.disposition() {
        Disposition::Retry => "retry",
        Disposition::RetryAfterHuman => "retryAfterHuman",
        Disposition::CircuitOpen => "circuitOpen",
        Disposition::Terminal => "terminal",
    };
    let mut report: Object = [
        ("class", Value::from(class.as_str())),
        ("errorType", failure.error_type.as_str().into()),
        ("message", message.into()),
        ("retryable", class.is_retryable().into()),
        ("severity", severity.into()),
        ("disposition", disposition.into()),
        ("recommendedAction", class.recommended_action().into()),
    ]
    .into_iter()
    .collect();
    if !failure.unresolved.is_empty() {
        let names = failure.unresolved.iter().map(|name| Value::from(name.as_str()));
        report.insert("unresolved", Value::Array(names.collect()));
    }
    if let Some(origin) = &failure.origin {
        report.insert("origin", Value::from(origin.as_str()));
    }
    if let Some(stderr) = &failure.stderr {
        report.insert("stderr", Value::from(stderr.as_str()));
    }
    report
}

struct About<'a> {
    execution: &'a Execution,
    record: &'a Record,
}

impl About<'_> {
    fn execution(&self, kind: AnnouncementKind, status: ExecutionStatus) -> Announcement {
        Announcement {
            kind,
            execution: self.execution.id(),
            workflow: self.execution.started().and_then(|started| started.workflow),
            seq: self.record.seq,
            at: self.record.at,
            status: status.as_str(),
            instance: None,
            attempt: None,
            due: None,
            reason: None,
            origin: None,
            output: None,
            error: None,
        }
    }

    fn node(
        &self,
        kind: AnnouncementKind,
        status: NodeStatus,
        instance: &Instance,
    ) -> Announcement {
        Announcement {
            status: status.as_str(),
            instance: Some(instance.clone()),
            ..self.execution(kind, ExecutionStatus::Running)
        }
    }

    fn idx(&self, instance: &Instance) -> NodeIdx {
        self.execution
            .plan()
            .node_idx(&instance.node)
            .unwrap_or_else(|| panic!("node {} is not in the pinned plan", instance.node))
    }

    /// The last attempt that started; absent if none did.
    fn attempts(&self, instance: &Instance) -> Option<u32> {
        let summary = self.execution.node_summary(self.idx(instance))?;
        (summary.attempts > 0).then_some(summary.attempts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Agent, AgentSet, PinnedAgent, RunnerKind};
    use crate::definition::Definition;
    use crate::failure::FailureClass;
    use crate::ids::Digest;
    use crate::limits::{INLINE_PAYLOAD_BYTES_MAX, PROMPT_ADDITION_CHARS_MAX_DEFAULT};
    use crate::plan::compile::compile;
    use crate::scheduler::OverrideLimits;
    use crate::scheduler::event::{Trigger, Usage};
    use crate::scheduler::input::{Input, Report, Start, Timer};
    use std::sync::Arc;
    use uuid::Uuid;

    /// An execution that a test moves by hand, and what was announced of it.
    struct Told {
        execution: Execution,
        now: Timestamp,
        lines: Vec<Value>,
    }

    impl Told {
        /// Starts a definition whose nodes name agents that do what the test says they did.
        fn start(definition: &str, workflow: Option<u128>) -> Told {
            let definition = Definition::from_value(Value::parse(definition).unwrap()).unwrap();
            let agent =
                Agent { side_effecting: Some(true), ..Agent::new("x", "x", RunnerKind::Scripted) };
            let agents: AgentSet = [("x".into(), Arc::new(PinnedAgent::new(agent)))].into();
            let compiled = compile(&definition, &agents);
            let plan = compiled.plan.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
            let limits =
                OverrideLimits { prompt_addition_chars_max: PROMPT_ADDITION_CHARS_MAX_DEFAULT };
            let id = ExecutionId(Uuid::from_u128(1));
            let execution = Execution::new(id, Arc::new(plan), Arc::new(agents), limits);
            let mut told = Told { execution, now: Timestamp(0), lines: Vec::new() };
            told.happens(Input::Start(Box::new(Start {
                document: Digest::of(b"document"),
                input: Payload::parse("{}").unwrap(),
                workflow: workflow.map(|n| WorkflowId(Uuid::from_u128(n))),
                workspace: "Personal".to_owned(),
                source: None,
                trigger: Trigger::File,
                parent: None,
            })));
            told
        }

        fn happens(&mut self, input: Input) {
            self.now = self.now.plus_ms(1_000);
            let records = self.execution.decide(input, self.now).unwrap();
            for record in &records {
                self.execution.absorb(record);
                let told = announcements(&self.execution, record);
                self.lines.extend(told.iter().map(Announcement::to_value));
            }
        }

        fn reports(&mut self, node: &str, attempt: u32, report: Report) {
            let instance = Instance::top(node.into());
            self.happens(Input::AttemptReported { instance, attempt, report });
        }

        fn completes(&mut self, node: &str, attempt: u32, output: &str) {
            let output = Payload::parse(output).unwrap();
            let report =
                Report::Completed { output, warnings: Vec::new(), usage: Usage::default() };
            self.reports(node, attempt, report);
        }

        fn fails(&mut self, node: &str, attempt: u32, failure: Failure) {
            self.reports(node, attempt, Report::Failed { failure, usage: Usage::default() });
        }

        /// The lines, each as its name, its node and the fields named.
        fn shown(&self, fields: &[&str]) -> Vec<String> {
            let show = |line: &Value| {
                let mut shown = line.get("type").and_then(Value::as_str).unwrap().to_owned();
                for field in ["nodeId"].iter().chain(fields) {
                    if let Some(value) = line.get(field) {
                        shown.push_str(&format!(" {}", value.to_json()));
                    }
                }
                shown
            };
            self.lines.iter().map(show).collect()
        }
    }

    const CHAIN: &str = r#"{
        "nodes": [{"id": "a", "agentId": "x"}, {"id": "b", "agentId": "x"}],
        "edges": [{"id": "e", "source": "a", "target": "b"}]
    }"#;

    #[test]
    fn a_run_is_told_from_its_start_to_its_end() {
        let mut told = Told::start(CHAIN, Some(7));
        told.completes("a", 1, r#"{"id":17169973925117969}"#);
        told.completes("b", 1, "18446744073709551615");
        let workflow = "\"00000000-0000-0000-0000-000000000007\"";
        let execution = "\"00000000-0000-0000-0000-000000000001\"";
        let lines: Vec<String> = told.lines.iter().map(Value::to_json).collect();
        assert_eq!(
            lines[0],
            format!(
                r#"{{"type":"workflow.started","seq":1,"timestamp":"1970-01-01T00:00:01.000Z","executionId":{execution},"workflowId":{workflow},"status":"running"}}"#
            )
        );
        assert_eq!(
            told.shown(&["status", "attempt", "output"]),
            [
                r#"workflow.started "running""#,
                r#"workflow.node.started "a" "running" 1"#,
                r#"workflow.node.completed "a" "completed" 1 {"id":17169973925117969}"#,
                r#"workflow.node.started "b" "running" 1"#,
                r#"workflow.node.completed "b" "completed" 1 18446744073709551615"#,
                r#"workflow.completed "completed" 18446744073709551615"#,
            ]
        );
        let seqs: Vec<u64> =
            told.lines.iter().map(|line| line.get("seq").unwrap().as_u64().unwrap()).collect();
        assert!(seqs.is_sorted(), "{seqs:?}");
    }

    #[test]
    fn a_retry_says_when_and_why_and_a_failure_names_its_class() {
        let mut told = Told::start(
            r#"{
                "nodes": [
                    {"id": "a", "agentId": "x", "retryPolicy": {"maxRetries": 1, "backoffBase": 0}},
                    {"id": "b", "agentId": "x"}
                ],
                "edges": [{"id": "e", "source": "a", "target": "b"}]
            }"#,
            None,
        );
        told.fails("a", 1, Failure::typed(FailureClass::Network, "refused", "nobody there"));
        told.happens(Input::TimerDue { timer: Timer::Retry(Instance::top("a".into())) });
        told.fails("a", 2, Failure::new(FailureClass::Timeout, "too slow"));
        assert_eq!(
            told.shown(&["attempt", "dueAt", "reason", "origin"]),
            [
                r#"workflow.started"#,
                r#"workflow.node.started "a" 1"#,
                r#"workflow.node.retrying "a" 1 "1970-01-01T00:00:02.000Z" "retry""#,
                r#"workflow.node.started "a" 2"#,
                r#"workflow.node.failed "a" 2"#,
                r#"workflow.node.failed "b" "upstreamFailed" "a""#,
                r#"workflow.failed"#,
            ]
        );
        let error = |n: usize, key: &str| {
            told.lines[n].get("error").and_then(|error| error.get(key)).cloned()
        };
        assert_eq!(error(2, "errorType"), Some("refused".into()));
        assert_eq!(error(2, "retryable"), Some(true.into()));
        assert_eq!(error(4, "class"), Some("timeout".into()));
        assert_eq!(error(5, "origin"), Some("a".into()));
        assert_eq!(error(6, "class"), Some("timeout".into()));
        assert_eq!(error(6, "nodes"), Some(Value::Array(vec!["a".into()])));
        assert_eq!(told.lines[0].get("workflowId"), Some(&Value::Null), "a file has no workflow");
    }

    #[test]
    fn skips_and_cancels_say_why() {
        let mut told = Told::start(
            r#"{
                "nodes": [{"id": "a", "agentId": "x"}, {"id": "b", "agentId": "x", "disabled": true},
                    {"id": "c", "agentId": "x"}, {"id": "d", "agentId": "x"}],
                "edges": [{"id": "e", "source": "a", "target": "d"},
                    {"id": "f", "source": "b", "target": "c"}]
            }"#,
            None,
        );
        told.happens(Input::CancelAsked { by: "a test".to_owned() });
        assert_eq!(
            told.shown(&["status", "reason", "origin"]),
            [
                r#"workflow.started "running""#,
                r#"workflow.node.skipped "b" "skipped" "disabled""#,
                r#"workflow.node.skipped "c" "skipped" "allEdgesDead" "b""#,
                r#"workflow.node.started "a" "running""#,
                r#"workflow.node.cancelled "a" "cancelled" "cancelled""#,
                r#"workflow.node.cancelled "d" "cancelled" "cancelled""#,
                r#"workflow.cancelled "cancelled""#,
            ]
        );
    }

    #[test]
    fn a_lost_attempt_waits_for_a_person() {
        let mut told = Told::start(CHAIN, None);
        let owner = crate::ids::OwnerId(Uuid::from_u128(9));
        told.happens(Input::HostRestarted { owner, unowned_ms: 5 });
        assert_eq!(
            told.shown(&["status", "attempt", "reason"]).last().unwrap(),
            r#"workflow.node.waiting "a" "waiting" 1 "lost""#
        );
    }

    #[test]
    fn long_outputs_are_told_by_reference() {
        let mut told = Told::start(CHAIN, None);
        let long = format!("\"{}\"", "x".repeat(INLINE_PAYLOAD_BYTES_MAX));
        told.completes("a", 1, &long);
        let line = &told.lines[2];
        let expected =
            format!(r#"{{"$blob":"{}","bytes":{}}}"#, Digest::of(long.as_bytes()), long.len());
        assert_eq!(line.get("output").unwrap().to_json(), expected);
    }
}
