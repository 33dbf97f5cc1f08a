//! What a definition means, and the digest of it.

use super::Draft;
use super::edges::Link;
use super::nodes::Step;
use crate::ids::Digest;
use crate::plan::JoinRule;
use crate::retry::RetryPolicy;
use crate::value::{Object, Value};

/// Digests what makes definitions run alike: with defaults resolved, without names, positions,
/// notes, metadata and unknown fields. Lists keep their order, keys and ways of writing a number
/// do not count.
pub(super) fn digest(draft: &Draft<'_>) -> Digest {
    let definition = draft.definition;
    let edges: Vec<Value> = draft.links.iter().map(edge).collect();
    let nodes: Vec<Value> = draft.steps.iter().map(node).collect();
    let meaning = object([
        ("nodes", Some(nodes.into())),
        ("edges", Some(edges.into())),
        ("configuration", Some(draft.workflow.configuration.clone().into())),
        ("inputSchema", definition.input_schema.clone()),
        ("finalOutput", definition.final_output.as_ref().map(|id| id.as_str().into())),
        ("timeoutMs", draft.workflow.timeout_ms.map(Value::from)),
    ]);
    Digest::of(meaning.to_canonical().as_bytes())
}

fn node(step: &Step<'_>) -> Value {
    let node = step.node;
    let version = node.type_version.as_ref().and_then(Value::as_u64).unwrap_or(1);
    let join = match step.join {
        JoinRule::All => Value::from("all"),
        JoinRule::AtLeast(n) => Value::from(n),
    };
    object([
        ("id", Some(node.id.as_str().into())),
        ("type", Some(node.type_name().into())),
        ("typeVersion", Some(version.into())),
        ("agentId", node.agent_id.as_deref().map(Value::from)),
        ("configuration", Some(step.configuration.clone().into())),
        ("inputs", node.inputs.clone().map(Value::from)),
        ("retryPolicy", step.retry.as_ref().map(retry)),
        ("timeoutMs", step.timeout_ms.map(Value::from)),
        ("onFailure", Some(step.on_failure.as_str().into())),
        ("disabled", Some(step.is_disabled().into())),
        ("join", Some(join)),
        ("compensation", node.compensation.clone()),
        ("body", node.body.clone()),
    ])
}

fn retry(policy: &RetryPolicy) -> Value {
    let errors = policy.retryable_errors.as_ref();
    let errors = errors.map(|words| words.iter().map(|word| Value::from(word.as_str())).collect());
    object([
        ("retriesMax", Some(policy.retries_max.into())),
        ("backoffBaseMs", Some(policy.backoff_base_ms.into())),
        ("backoffMsMax", Some(policy.backoff_ms_max.into())),
        ("backoff", Some(policy.backoff.as_str().into())),
        ("retryableErrors", errors),
    ])
}

fn edge(link: &Link<'_>) -> Value {
    let edge = link.edge;
    object([
        ("id", Some(edge.id.as_str().into())),
        ("source", Some(edge.source.as_str().into())),
        ("target", Some(edge.target.as_str().into())),
        ("sourceHandle", Some(edge.source_port().into())),
        ("targetHandle", Some(edge.target_port().into())),
        ("condition", edge.condition.clone()),
    ])
}

fn object<const N: usize>(fields: [(&'static str, Option<Value>); N]) -> Value {
    let fields = fields.into_iter().filter_map(|(key, value)| Some((key, value?)));
    Value::Object(fields.collect::<Object>())
}
