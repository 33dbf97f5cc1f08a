//! `agent`: an agent of this machine does the work. A node without a type is one.

use std::collections::BTreeSet;

use super::{Checked, ERROR, INPUT, NodeType, OUTPUT, label};
use crate::agent::{Agent, AgentSet};
use crate::definition::Node;
use crate::ids::AgentId;
use crate::plan::Work;
use crate::plan::compile::{parse_retry_policy, parse_timeout};
use crate::plan::diagnostic::{Code, Diagnostic, Place};
use crate::value::{Object, Value};

pub(super) const TYPE: NodeType = NodeType {
    name: "agent",
    label: "Agent",
    description: "Lets an agent do the work.",
    inputs: &[INPUT],
    outputs: &[OUTPUT, ERROR],
    needs_agent: true,
    version: 1,
    work: Some(|node| Work::Agent(AgentId::from(node.agent_id.as_deref().unwrap_or_default()))),
    check,
};

/// What agents of blueprints are called until somebody chooses real ones.
const PLACEHOLDER: &str = "placeholder-";

/// The most agents that a message names.
const NAMED_MAX: usize = 10;

fn check(checked: &Checked<'_>) -> Vec<Diagnostic> {
    let node = checked.node;
    let finding = |code, message: String, hint: String| {
        vec![Diagnostic::new(code, Place::node(&node.id).field("agentId"), message, hint)]
    };
    let Some(id) = node.agent_id.as_deref().filter(|id| !id.trim().is_empty()) else {
        let message = format!("node {} names no agent", label(node));
        return finding(Code::MissingAgent, message, "choose an agent for it".to_owned());
    };
    if let Some(pinned) = checked.agents.get(id) {
        let mut found = missing_parameters(checked, &pinned.agent);
        found.extend(bad_record(node, &pinned.agent));
        return found;
    }
    if id.starts_with(PLACEHOLDER) {
        let message = format!("node {} still has the placeholder agent {id:?}", label(node));
        return finding(Code::PlaceholderAgent, message, "choose a real agent for it".to_owned());
    }
    let message =
        format!("node {} names the agent {id:?}, which is not on this machine", label(node));
    finding(Code::UnknownAgent, message, agents_there_are(checked.agents))
}

fn agents_there_are(agents: &AgentSet) -> String {
    let mut names: Vec<String> =
        agents.keys().take(NAMED_MAX).map(|id| format!("{id:?}")).collect();
    if agents.len() > NAMED_MAX {
        names.push(format!("and {} more", agents.len() - NAMED_MAX));
    }
    match names.is_empty() {
        true => "create or import the agent".to_owned(),
        false => format!("create or import it, or choose one of {}", names.join(", ")),
    }
}

fn missing_parameters(checked: &Checked<'_>, agent: &Agent) -> Vec<Diagnostic> {
    let node = checked.node;
    let set = parameter_names(Some(agent), checked.workflow_configuration, checked.configuration);
    let missing = agent.required_parameters().filter(|name| !set.contains(name));
    missing
        .map(|name| {
            Diagnostic::new(
                Code::MissingParameter,
                Place::node(&node.id).field("configuration"),
                format!(
                    "agent {:?} of node {} requires the parameter {name:?}, which nobody sets",
                    agent.name,
                    label(node)
                ),
                format!(
                    "set it in the node's `configuration`, or in the workflow's `parameters` or \
                     `agentProperties`: {{\"{}\": {{{name:?}: …}}}}",
                    agent.id
                ),
            )
        })
        .collect()
}

/// Names the parameters that somebody sets: the agent's defaults, `agentProperties`, the workflow's
/// `parameters` and the node's configuration.
pub(crate) fn parameter_names<'a>(
    agent: Option<&'a Agent>,
    workflow: &'a Object,
    node: &'a Object,
) -> BTreeSet<&'a str> {
    let schema = agent.and_then(|agent| agent.parameters.as_ref());
    let declared = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let with_default =
        declared.into_iter().flatten().filter(|(_, schema)| schema.get("default").is_some());
    let properties = workflow.get("agentProperties");
    let of_agent = agent.and_then(|agent| properties?.get(agent.id.as_str()));
    let layers = [of_agent, workflow.get("parameters")];
    let set = layers.into_iter().flatten().filter_map(Value::as_object).flat_map(Object::keys);
    with_default.map(|(name, _)| name).chain(set).chain(node.keys()).map(String::as_str).collect()
}

/// What the agent's own record says about retries and time holds where the node says nothing.
fn bad_record(node: &Node, agent: &Agent) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    if let (None, Some(timeout)) = (&node.timeout, &agent.timeout) {
        problems.extend(parse_timeout(timeout).err());
    }
    if let (None, Some(policy)) = (&node.retry_policy, &agent.retry_policy) {
        problems.extend(parse_retry_policy(policy).err().into_iter().flatten());
    }
    problems
        .into_iter()
        .map(|problem| {
            Diagnostic::new(
                Code::BadAgent,
                Place::node(&node.id).field("agentId"),
                format!("agent {:?} of node {}: {}", agent.name, label(node), problem.message),
                format!("correct the agent: {}", problem.hint),
            )
        })
        .collect()
}
