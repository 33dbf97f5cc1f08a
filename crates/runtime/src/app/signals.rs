//! What one process leaves for the process that drives an execution.

use engine::ids::Instance;
use engine::scheduler::event::Answer;
use engine::scheduler::input::Input;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A wish about an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SignalKind {
    /// Cancel it.
    Cancel {
        /// Where the wish came from, for people.
        by: String,
    },
    /// Answer the question that a node waits with.
    Answer {
        /// The node instance.
        instance: Instance,
        /// What was said.
        answer: Answer,
    },
}

/// A wish as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Signal {
    /// What it is about.
    pub kind: &'static str,
    /// The whole wish.
    pub body: Box<RawValue>,
}

impl SignalKind {
    /// Writes the wish down. A long output is written whole: signals have no blobs.
    pub fn write(&self) -> Signal {
        let kind = match self {
            SignalKind::Cancel { .. } => "cancel",
            SignalKind::Answer { .. } => "answer",
        };
        let body = match self {
            SignalKind::Answer { instance, answer: Answer::Complete(output) } => format!(
                r#"{{"complete":{{"instance":{},"output":{}}}}}"#,
                serde_json::to_string(instance).expect("an instance is plain data"),
                output.text()
            ),
            other => serde_json::to_string(other).expect("a signal is plain data"),
        };
        let body = RawValue::from_string(body).expect("a signal is written as JSON");
        Signal { kind, body }
    }

    /// Reads a wish back; `None` if it is from a newer version or damaged.
    pub fn read(body: &str) -> Option<SignalKind> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        enum Whole {
            Complete { instance: Instance, output: Box<RawValue> },
        }
        if let Ok(Whole::Complete { instance, output }) = serde_json::from_str(body) {
            let output = engine::payload::Payload::parse(output.get()).ok()?;
            return Some(SignalKind::Answer { instance, answer: Answer::Complete(output) });
        }
        serde_json::from_str(body).ok()
    }

    /// The input that the wish comes to.
    pub fn into_input(self) -> Input {
        match self {
            SignalKind::Cancel { by } => Input::CancelAsked { by },
            SignalKind::Answer { instance, answer } => Input::HumanAnswered { instance, answer },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::payload::Payload;

    #[test]
    fn every_wish_reads_back_also_with_a_long_output() {
        let long = format!("[\"{}\",18446744073709551615]", "x".repeat(40_000));
        let instance = Instance::top("a".into());
        let answers = [
            Answer::Retry,
            Answer::Fail { message: "no".to_owned() },
            Answer::Complete(Payload::parse(&long).unwrap()),
        ];
        let mut wishes: Vec<SignalKind> = answers
            .into_iter()
            .map(|answer| SignalKind::Answer { instance: instance.clone(), answer })
            .collect();
        wishes.push(SignalKind::Cancel { by: "the command line".to_owned() });
        for wish in wishes {
            assert_eq!(SignalKind::read(wish.write().body.get()), Some(wish));
        }
        assert_eq!(SignalKind::read("{\"dance\":{}}"), None);
    }
}
