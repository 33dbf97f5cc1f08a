//! `note`: text on the canvas. It is not compiled, has no edges and counts nowhere.

use super::NodeType;

pub(super) const TYPE: NodeType = NodeType {
    name: "note",
    label: "Note",
    description: "Text on the canvas that has no part in executions.",
    inputs: &[],
    outputs: &[],
    needs_agent: false,
    version: 1,
    work: None,
    check: |_| Vec::new(),
};
