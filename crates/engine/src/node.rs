//! The node types that exist. A new type is one file in `node/` and its place in the catalog.

mod agent;
mod note;
mod transform;

use serde::Serialize;

use crate::agent::AgentSet;
use crate::definition::Node;
use crate::plan::Work;
use crate::plan::diagnostic::Diagnostic;
use crate::value::Object;

pub(crate) use agent::parameter_names;

/// Every type, in the order a palette shows them.
static CATALOG: [NodeType; 3] = [agent::TYPE, transform::TYPE, note::TYPE];

/// What one type of node is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeType {
    /// The spelling in files.
    pub name: &'static str,
    /// For people.
    pub label: &'static str,
    /// For people: what it does, in one sentence.
    pub description: &'static str,
    /// Where edges may end.
    pub inputs: &'static [Port],
    /// Where edges may start.
    pub outputs: &'static [Port],
    /// Whether nodes of this type name an agent.
    pub needs_agent: bool,
    /// The newest `typeVersion`; the oldest is 1.
    pub version: u32,
    /// What nodes of this type do; `None`: they are not compiled and have no edges.
    #[serde(skip)]
    pub work: Option<fn(&Node) -> Work>,
    /// Finds what is wrong with a node of this type.
    #[serde(skip)]
    pub check: fn(&Checked<'_>) -> Vec<Diagnostic>,
}

/// A named connection point.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// The spelling in files.
    pub name: &'static str,
    /// For people.
    pub label: &'static str,
}

/// A node under inspection, and what is around it.
#[derive(Clone, Copy, Debug)]
pub struct Checked<'a> {
    /// The node.
    pub node: &'a Node,
    /// Its configuration, or an empty object if that is not one.
    pub configuration: &'a Object,
    /// The workflow's configuration, or an empty object if that is not one.
    pub workflow_configuration: &'a Object,
    /// The agents of this machine.
    pub agents: &'a AgentSet,
}

const INPUT: Port = Port { name: "input", label: "Input" };
const OUTPUT: Port = Port { name: "output", label: "Output" };
const ERROR: Port = Port { name: "error", label: "Error" };

/// Lists the node types that exist, in the order a palette shows them.
pub fn catalog() -> &'static [NodeType] {
    &CATALOG
}

/// Returns the node type of this spelling, if there is one.
pub fn node_type(name: &str) -> Option<&'static NodeType> {
    catalog().iter().find(|node_type| node_type.name == name)
}

/// Names the node types that exist, for messages.
pub(crate) fn type_names() -> String {
    catalog().iter().map(|node_type| format!("{:?}", node_type.name)).collect::<Vec<_>>().join(", ")
}

/// What a message calls a node: its name and its id, where they differ.
pub(crate) fn label(node: &Node) -> String {
    match node.name.as_deref() {
        Some(name) if !name.trim().is_empty() && name != node.id.as_str() => {
            format!("{name:?} ({})", node.id)
        }
        _ => format!("{:?}", node.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_type_and_every_port_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = catalog().iter().map(|node_type| node_type.name).collect();
        assert_eq!(names.len(), catalog().len());
        for node_type in catalog() {
            assert!(!node_type.label.is_empty() && node_type.description.ends_with('.'));
            assert!(node_type.version >= 1);
            for ports in [node_type.inputs, node_type.outputs] {
                let names: BTreeSet<&str> = ports.iter().map(|port| port.name).collect();
                assert_eq!(names.len(), ports.len(), "{}", node_type.name);
            }
            assert_eq!(node_type.work.is_none(), node_type.inputs.is_empty());
        }
    }

    #[test]
    fn types_are_found_by_their_spelling() {
        assert_eq!(node_type("agent").map(|found| found.label), Some("Agent"));
        assert!(node_type("Agent").is_none());
        assert_eq!(type_names(), "\"agent\", \"transform\", \"note\"");
    }

    #[test]
    fn messages_call_a_node_by_its_name_and_its_id() {
        let mut node = Node::new("n1");
        assert_eq!(label(&node), "\"n1\"");
        node.name = Some("Fetch".to_owned());
        assert_eq!(label(&node), "\"Fetch\" (n1)");
        node.name = Some("n1".to_owned());
        assert_eq!(label(&node), "\"n1\"");
    }
}
