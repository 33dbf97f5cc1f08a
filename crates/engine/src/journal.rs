//! The journal: an execution's events in order, and how one record is written down.

use crate::ids::Seq;
use crate::payload::{BlobRef, Payload};
use crate::scheduler::event::{Answer, Event, LateOutcome};
use crate::time::Timestamp;

/// The revision of the format that new journals are written in.
pub const FORMAT: u32 = 1;

/// One numbered event.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its position, from 1, without gaps.
    pub seq: Seq,
    /// The scheduler's time when it was decided; never before that of the record before it.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// A record's event as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The variant's name: `nodeCompleted`.
    pub kind: &'static str,
    /// Its fields as one JSON object. Long payloads are replaced by [`BlobRef`]s.
    pub body: String,
}

/// A stored record could not be read. The journal is damaged or was written by a newer version.
#[derive(Debug, thiserror::Error)]
#[error("a record of kind {kind:?} cannot be read: {source}")]
pub struct DecodeError {
    /// The kind it claims to be.
    pub kind: String,
    /// What was wrong with it.
    #[source]
    pub source: serde_json::Error,
}

/// Writes an event down. The caller stores the texts of [`long_payloads`] as blobs beside it.
pub fn encode(event: &Event) -> Encoded {
    let text = serde_json::to_string(event).expect("events are plain data and always serialise");
    let kind = event.kind();
    // `{"<kind>":<body>}`: the kind becomes a column of its own.
    let body = text[kind.len() + 4..text.len() - 1].to_owned();
    Encoded { kind, body }
}

/// Reads an event back. Payloads that were long are still to be loaded; see [`payloads_mut`].
pub fn decode(kind: &str, body: &str) -> Result<Event, DecodeError> {
    serde_json::from_str(&format!("{{\"{kind}\":{body}}}"))
        .map_err(|source| DecodeError { kind: kind.to_owned(), source })
}

/// The payloads of an event that are stored as blobs, with the reference that stands for each.
pub fn long_payloads(event: &Event) -> Vec<(BlobRef, Payload)> {
    let mut event = event.clone();
    payloads_mut(&mut event)
        .into_iter()
        .filter_map(|payload| payload.blob().map(|blob| (blob, payload.clone())))
        .collect()
}

/// Every payload of an event, to load those that are blobs.
pub fn payloads_mut(event: &mut Event) -> Vec<&mut Payload> {
    match event {
        Event::ExecutionStarted(e) => vec![&mut e.input],
        Event::AttemptStarted(e) => e.input.iter_mut().chain(&mut e.settings).collect(),
        Event::NodeCompleted(e) => vec![&mut e.output],
        Event::ExecutionCompleted(e) => vec![&mut e.output],
        Event::HumanAnswered(e) => match &mut e.answer {
            Answer::Complete(output) => vec![output],
            Answer::Retry | Answer::Fail { .. } => Vec::new(),
        },
        Event::LateReport(e) => match &mut e.outcome {
            LateOutcome::Completed(output) => vec![output],
            LateOutcome::Failed(_) | LateOutcome::Stopped | LateOutcome::Lost => Vec::new(),
        },
        Event::NodesQueued(_)
        | Event::NodeSkipped(_)
        | Event::AttemptFailed(_)
        | Event::AttemptLost(_)
        | Event::RetryScheduled(_)
        | Event::RetryDue(_)
        | Event::NodeWaiting(_)
        | Event::NodeFailed(_)
        | Event::NodesCancelled(_)
        | Event::CancelAsked(_)
        | Event::HostRestarted(_)
        | Event::ExecutionFailed(_)
        | Event::ExecutionCancelled(_) => Vec::new(),
    }
}

impl Event {
    /// The variant's name as records spell it.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::ExecutionStarted(_) => "executionStarted",
            Event::NodesQueued(_) => "nodesQueued",
            Event::NodeSkipped(_) => "nodeSkipped",
            Event::AttemptStarted(_) => "attemptStarted",
            Event::AttemptFailed(_) => "attemptFailed",
            Event::AttemptLost(_) => "attemptLost",
            Event::RetryScheduled(_) => "retryScheduled",
            Event::RetryDue(_) => "retryDue",
            Event::NodeWaiting(_) => "nodeWaiting",
            Event::HumanAnswered(_) => "humanAnswered",
            Event::NodeCompleted(_) => "nodeCompleted",
            Event::NodeFailed(_) => "nodeFailed",
            Event::NodesCancelled(_) => "nodesCancelled",
            Event::CancelAsked(_) => "cancelAsked",
            Event::LateReport(_) => "lateReport",
            Event::HostRestarted(_) => "hostRestarted",
            Event::ExecutionCompleted(_) => "executionCompleted",
            Event::ExecutionFailed(_) => "executionFailed",
            Event::ExecutionCancelled(_) => "executionCancelled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Instance;
    use crate::limits::INLINE_PAYLOAD_BYTES_MAX;
    use crate::scheduler::event::{EdgeDecision, EdgeState, NodeCompleted, Usage};

    fn completed(output: Payload) -> Event {
        Event::NodeCompleted(NodeCompleted {
            instance: Instance::top("a".into()),
            attempt: 1,
            output,
            edges: vec![EdgeDecision { edge: "e".into(), state: EdgeState::Live, trace: None }],
            warnings: Vec::new(),
            usage: Usage::default(),
        })
    }

    #[test]
    fn a_record_is_written_compactly_and_reads_back() {
        let event = completed(Payload::parse("1.0").unwrap());
        let encoded = encode(&event);
        assert_eq!(encoded.kind, "nodeCompleted");
        assert_eq!(
            encoded.body,
            r#"{"instance":{"node":"a"},"attempt":1,"output":{"json":1.0},"edges":[{"edge":"e","state":"live"}]}"#
        );
        assert_eq!(decode(encoded.kind, &encoded.body).unwrap(), event);
    }

    #[test]
    fn an_event_without_fields_reads_back() {
        let event = Event::ExecutionCancelled(Default::default());
        let encoded = encode(&event);
        assert_eq!((encoded.kind, encoded.body.as_str()), ("executionCancelled", "{}"));
        assert_eq!(decode(encoded.kind, &encoded.body).unwrap(), event);
    }

    #[test]
    fn long_payloads_are_told_apart_and_loaded_again() {
        let text = format!("\"{}\"", "x".repeat(INLINE_PAYLOAD_BYTES_MAX));
        let event = completed(Payload::parse(&text).unwrap());
        assert_eq!(long_payloads(&event).len(), 1);
        let encoded = encode(&event);
        assert!(encoded.body.len() < 300, "the record holds the reference only");
        let mut back = decode(encoded.kind, &encoded.body).unwrap();
        for payload in payloads_mut(&mut back) {
            assert!(payload.load(text.clone()));
        }
        assert_eq!(back, event);
    }

    #[test]
    fn an_unknown_kind_or_a_torn_body_is_an_error_not_a_panic() {
        assert!(decode("nodeTeleported", "{}").is_err());
        assert!(decode("nodeCompleted", r#"{"instance":{"no"#).is_err());
    }
}
