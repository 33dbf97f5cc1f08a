//! `transform`: its output is its bound `inputs`; no agent takes part.

use super::{Checked, ERROR, INPUT, NodeType, OUTPUT, label};
use crate::plan::Work;
use crate::plan::diagnostic::{Code, Diagnostic, Place};

pub(super) const TYPE: NodeType = NodeType {
    name: "transform",
    label: "Transform",
    description: "Builds its output from its inputs, without an agent.",
    inputs: &[INPUT],
    outputs: &[OUTPUT, ERROR],
    needs_agent: false,
    version: 1,
    work: Some(|_| Work::Transform),
    check,
};

fn check(checked: &Checked<'_>) -> Vec<Diagnostic> {
    let node = checked.node;
    let mut found = Vec::new();
    if node.inputs.is_none() {
        found.push(Diagnostic::new(
            Code::MissingInputs,
            Place::node(&node.id).field("inputs"),
            format!("transform node {} has no `inputs` to build its output from", label(node)),
            "add `inputs`, for example {\"text\": \"{{ nodes.a.output.text }}\"}",
        ));
    }
    if let Some(agent) = &node.agent_id {
        found.push(Diagnostic::new(
            Code::UnusedField,
            Place::node(&node.id).field("agentId"),
            format!("transform node {} names the agent {agent:?}, which does nothing", label(node)),
            "remove `agentId`, or make it an agent node",
        ));
    }
    found
}
