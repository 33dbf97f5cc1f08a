//! The last line of `--json`: an execution as it ended or stands.

use engine::announcement::{error_note, execution_error, failure_report, payload_or_reference};
use engine::plan::NodeIdx;
use engine::projection::WaitReason;
use engine::time::Timestamp;
use engine::value::{Object, Value};

use crate::followed::Followed;

/// The execution as one JSON object of type `result`.
///
/// `output` is null unless the execution completed; `error` is there if a node failed; of a node,
/// `input` is there if it started, `output` if it completed, `error` if it failed, `reason` if it
/// did not run. Long values are references.
pub fn result(followed: &Followed) -> Value {
    let execution = &followed.execution;
    let summary = execution.summary();
    let mut result = Object::new();
    result.insert("type", "result");
    result.insert("executionId", execution.id().to_string());
    result.insert("status", execution.status().as_str());
    if let Some(reason) = execution.waiting_for() {
        result.insert("waitingFor", reason.as_str());
    }
    result.insert("output", execution.output().map_or(Value::Null, payload_or_reference));
    let error = summary.and_then(|summary| match (summary.failure, summary.error) {
        (Some(failure), error) => {
            let message = error.unwrap_or_else(|| failure.message.clone());
            Some(execution_error(execution, &failure, &message))
        }
        (None, error) => error.as_deref().map(|error| error_note(execution, error)),
    });
    if let Some(error) = error {
        result.insert("error", error);
    }
    if let Some(note) = followed.note() {
        result.insert("note", note);
    }
    let nodes: Object = execution
        .plan()
        .node_indices()
        .map(|idx| (execution.plan().node(idx).id.as_str(), node(followed, idx)))
        .collect();
    result.insert("nodes", nodes);
    Value::Object(result)
}

fn node(followed: &Followed, idx: NodeIdx) -> Value {
    let execution = &followed.execution;
    let summary = execution.node_summary(idx);
    let instant = |at: Option<Timestamp>| at.map(|at| Value::from(at.to_rfc3339()));
    let summary = summary.as_ref();
    let is_lost = summary.is_some_and(|node| node.waiting_for == Some(WaitReason::Lost));
    let fields = [
        ("status", Some(execution.node_status(idx).as_str().into())),
        ("attempts", Some(summary.map_or(0, |node| node.attempts).into())),
        ("waitingFor", summary.and_then(|node| node.waiting_for).map(|for_| for_.as_str().into())),
        ("dueAt", instant(summary.and_then(|node| node.due))),
        ("input", execution.node_input(idx).as_ref().map(payload_or_reference)),
        ("output", execution.node_output(idx).map(payload_or_reference)),
        ("error", execution.node_failure(idx).filter(|_| !is_lost).map(failure_report)),
        ("reason", summary.and_then(|node| node.reason).map(|reason| reason.as_str().into())),
        ("origin", summary.and_then(|node| node.origin.as_ref()).map(|id| id.as_str().into())),
        ("startedAt", instant(summary.and_then(|node| node.started_at))),
        ("completedAt", instant(summary.and_then(|node| node.ended_at))),
    ];
    let known = fields.into_iter().filter_map(|(key, value)| Some((key, value?)));
    Value::Object(known.collect())
}
