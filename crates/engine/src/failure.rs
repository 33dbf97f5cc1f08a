//! The one classification of failures, shown everywhere.

use serde::{Deserialize, Serialize};

use crate::ids::NodeId;
use crate::value::{Object, Value};

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureClass {
    /// The node names an agent that this machine does not have.
    AgentNotFound,
    /// The agent itself said that it failed.
    AgentError,
    /// A clock ran out.
    Timeout,
    /// The other side could not be reached.
    Network,
    /// The other side asked to slow down.
    RateLimited,
    /// The agent's result is not what was promised.
    InvalidOutput,
    /// A reference in a template did not resolve.
    BindingError,
    /// A rule forbids it.
    PolicyDenied,
    /// A person was asked and did not agree in time.
    ApprovalAbsent,
    /// The target failed too often lately and is left alone.
    CircuitOpen,
    /// A budget is used up.
    BudgetExceeded,
    /// A node before this one failed.
    UpstreamFailed,
    /// The attempt's process disappeared, so nobody knows how far it came.
    Lost,
    /// It was cancelled.
    Cancelled,
    /// A defect of Cyanotype or of this machine.
    Internal,
}

/// How much a failure matters to the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Expected now and then; usually passes by itself.
    Warning,
    /// Something is wrong with the workflow, its agents or its targets.
    Error,
    /// Cyanotype or the machine is at fault.
    Critical,
}

/// What may sensibly follow a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Disposition {
    /// Trying again may help.
    Retry,
    /// Trying again helps once a person has acted.
    RetryAfterHuman,
    /// Trying again helps once the target has recovered.
    CircuitOpen,
    /// Trying again changes nothing.
    Terminal,
}

impl FailureClass {
    /// Every class, in the order of the specification.
    pub const ALL: [FailureClass; 15] = [
        FailureClass::AgentNotFound,
        FailureClass::AgentError,
        FailureClass::Timeout,
        FailureClass::Network,
        FailureClass::RateLimited,
        FailureClass::InvalidOutput,
        FailureClass::BindingError,
        FailureClass::PolicyDenied,
        FailureClass::ApprovalAbsent,
        FailureClass::CircuitOpen,
        FailureClass::BudgetExceeded,
        FailureClass::UpstreamFailed,
        FailureClass::Lost,
        FailureClass::Cancelled,
        FailureClass::Internal,
    ];

    /// The spelling in files, journals and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureClass::AgentNotFound => "agentNotFound",
            FailureClass::AgentError => "agentError",
            FailureClass::Timeout => "timeout",
            FailureClass::Network => "network",
            FailureClass::RateLimited => "rateLimited",
            FailureClass::InvalidOutput => "invalidOutput",
            FailureClass::BindingError => "bindingError",
            FailureClass::PolicyDenied => "policyDenied",
            FailureClass::ApprovalAbsent => "approvalAbsent",
            FailureClass::CircuitOpen => "circuitOpen",
            FailureClass::BudgetExceeded => "budgetExceeded",
            FailureClass::UpstreamFailed => "upstreamFailed",
            FailureClass::Lost => "lost",
            FailureClass::Cancelled => "cancelled",
            FailureClass::Internal => "internal",
        }
    }

    /// The class of this spelling, if it is one.
    pub fn from_name(name: &str) -> Option<FailureClass> {
        FailureClass::ALL.into_iter().find(|class| class.as_str() == name)
    }

    /// Whether a retry policy without a list retries this class.
    pub fn is_retryable(self) -> bool {
        use FailureClass::*;
        matches!(self, Timeout | Network | RateLimited | AgentError | InvalidOutput)
    }

    /// Whether no retry policy whatsoever may retry this class.
    pub fn is_never_retried(self) -> bool {
        use FailureClass::*;
        matches!(self, BindingError | AgentNotFound | PolicyDenied | UpstreamFailed | Cancelled)
    }

    /// How much it matters.
    pub fn severity(self) -> Severity {
        use FailureClass::*;
        match self {
            Timeout | Network | RateLimited | CircuitOpen | Cancelled => Severity::Warning,
            Internal => Severity::Critical,
            _ => Severity::Error,
        }
    }

    /// What may follow.
    pub fn disposition(self) -> Disposition {
        use FailureClass::*;
        match self {
            Timeout | Network | RateLimited | AgentError | InvalidOutput => Disposition::Retry,
            ApprovalAbsent | Lost => Disposition::RetryAfterHuman,
            CircuitOpen => Disposition::CircuitOpen,
            _ => Disposition::Terminal,
        }
    }

    /// What the person can do about it, as one sentence.
    pub fn recommended_action(self) -> &'static str {
        match self {
            FailureClass::AgentNotFound => {
                "Create or import the agent, or choose another one for this node."
            }
            FailureClass::AgentError => "Read the agent's message and its error output.",
            FailureClass::Timeout => "Give the node more time, or find out what it waits for.",
            FailureClass::Network => "Check that the other side can be reached, then run again.",
            FailureClass::RateLimited => "Wait a while, or add a retry policy with a longer wait.",
            FailureClass::InvalidOutput => "Compare the agent's output with what it should print.",
            FailureClass::BindingError => "Correct the names in the node's inputs.",
            FailureClass::PolicyDenied => "Ask whoever set the rule, or change the workflow.",
            FailureClass::ApprovalAbsent => "Approve or reject it, then run again.",
            FailureClass::CircuitOpen => {
                "Wait until the target has recovered, or reset the breaker."
            }
            FailureClass::BudgetExceeded => "Raise the budget, or make the workflow cheaper.",
            FailureClass::UpstreamFailed => "Look at the node that failed first.",
            FailureClass::Lost => "Find out how far the attempt came, then decide what to do.",
            FailureClass::Cancelled => "Run it again if it should be finished.",
            FailureClass::Internal => "Report this, with the log: it is a defect of Cyanotype.",
        }
    }
}

/// One failure of an attempt, a node or an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// What kind of thing went wrong.
    pub class: FailureClass,
    /// The runner's own word for it; the class's spelling where the runner has none.
    pub error_type: String,
    /// For people: what happened and where.
    pub message: String,
    /// References that did not resolve (`bindingError` only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unresolved: Vec<String>,
    /// The node whose failure caused this one (`upstreamFailed` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<NodeId>,
    /// The last lines of the error output, where the runner has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

impl Failure {
    /// A failure whose error type is the class's own spelling.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Failure {
        Failure::typed(class, class.as_str(), message)
    }

    /// A failure with the runner's own word for it.
    pub fn typed(
        class: FailureClass,
        error_type: impl Into<String>,
        message: impl Into<String>,
    ) -> Failure {
        Failure {
            class,
            error_type: error_type.into(),
            message: message.into(),
            unresolved: Vec::new(),
            origin: None,
            stderr: None,
        }
    }

    /// The `{"$failed": {…}}` object that stands in place of an output.
    pub fn to_output(&self) -> Value {
        let text = |s: &str| Value::String(s.to_owned());
        let inner: Object = [
            ("class".to_owned(), text(self.class.as_str())),
            ("errorType".to_owned(), text(&self.error_type)),
            ("message".to_owned(), text(&self.message)),
        ]
        .into_iter()
        .collect();
        Value::Object([("$failed".to_owned(), Value::Object(inner))].into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_reads_back_from_its_spelling() {
        for class in FailureClass::ALL {
            assert_eq!(FailureClass::from_name(class.as_str()), Some(class));
            let json = serde_json::to_string(&class).unwrap();
            assert_eq!(json, format!("\"{}\"", class.as_str()));
        }
        assert_eq!(FailureClass::from_name("Timeout"), None);
    }

    #[test]
    fn no_class_is_both_retryable_and_never_retried() {
        assert!(FailureClass::ALL.iter().all(|c| !(c.is_retryable() && c.is_never_retried())));
    }
}
