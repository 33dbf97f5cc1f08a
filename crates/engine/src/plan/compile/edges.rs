//! The edges, one by one.

use std::collections::{BTreeMap, BTreeSet};

use super::nodes::Step;
use crate::condition::Condition;
use crate::definition::{Definition, Edge};
use crate::ids::{EdgeId, NodeId};
use crate::node::{label, node_type};
use crate::plan::diagnostic::{Code, Diagnostic, Place};

/// The most edges between the same two nodes.
const PARALLEL_MAX: usize = 100;

/// An edge between two steps.
pub(super) struct Link<'a> {
    pub edge: &'a Edge,
    /// Positions of its ends among the steps.
    pub source: usize,
    pub target: usize,
    pub condition: Option<Condition>,
}

/// Checks every edge and returns those that connect two different steps, in file order.
pub(super) fn check<'a>(
    definition: &'a Definition,
    steps: &[Step<'_>],
    found: &mut Vec<Diagnostic>,
) -> Vec<Link<'a>> {
    let mut by_id = BTreeMap::new();
    for (n, step) in steps.iter().enumerate() {
        by_id.entry(&step.node.id).or_insert(n);
    }
    let notes = definition.nodes.iter().filter(|node| {
        node_type(node.type_name()).is_some_and(|node_type| node_type.work.is_none())
    });
    let notes: BTreeSet<&NodeId> = notes.map(|node| &node.id).collect();
    let mut links = Vec::with_capacity(definition.edges.len());
    let ends = Ends { by_id, notes };
    for edge in &definition.edges {
        let condition = read_condition(edge, found);
        let Some((source, target)) = ends.of(edge, found) else { continue };
        check_ports(edge, &steps[source], &steps[target], found);
        if source == target {
            found.push(Diagnostic::new(
                Code::SelfLoop,
                Place::edge(&edge.id),
                format!(
                    "edge {:?} leads from node {} to itself",
                    edge.id,
                    label(steps[source].node)
                ),
                "remove the edge, or let it end at another node",
            ));
        } else {
            links.push(Link { edge, source, target, condition });
        }
    }
    check_duplicates(definition, found);
    check_parallels(&links, steps, found);
    links
}

struct Ends<'a> {
    by_id: BTreeMap<&'a NodeId, usize>,
    notes: BTreeSet<&'a NodeId>,
}

impl Ends<'_> {
    /// The steps an edge connects, unless one of them is not there.
    fn of(&self, edge: &Edge, found: &mut Vec<Diagnostic>) -> Option<(usize, usize)> {
        let ends = [("source", &edge.source, "starts"), ("target", &edge.target, "ends")];
        let [source, target] = ends.map(|(field, id, verb)| {
            let step = self.by_id.get(id).copied();
            if step.is_none() {
                let (code, what, hint) = if self.notes.contains(id) {
                    (Code::EdgeAtNote, "which is a note", "remove the edge; notes have none")
                } else {
                    let hint = "correct the id, or remove the edge";
                    (Code::EdgeToMissingNode, "which does not exist", hint)
                };
                found.push(Diagnostic::new(
                    code,
                    Place::edge(&edge.id).field(field),
                    format!("edge {:?} {verb} at node {id:?}, {what}", edge.id),
                    hint,
                ));
            }
            step
        });
        Some((source?, target?))
    }
}

fn check_ports(edge: &Edge, source: &Step<'_>, target: &Step<'_>, found: &mut Vec<Diagnostic>) {
    let ends = [
        ("sourceHandle", edge.source_port(), source.outputs(), source.node),
        ("targetHandle", edge.target_port(), target.inputs(), target.node),
    ];
    for (field, port, ports, node) in ends {
        let Some(ports) = ports else { continue };
        if ports.contains(&port) {
            continue;
        }
        let there_are: Vec<String> = ports.iter().map(|port| format!("{port:?}")).collect();
        found.push(Diagnostic::new(
            Code::UnknownPort,
            Place::edge(&edge.id).field(field),
            format!("node {} has no port {port:?} for edge {:?}", label(node), edge.id),
            format!("choose one of {}, or remove `{field}`", there_are.join(", ")),
        ));
    }
}

fn read_condition(edge: &Edge, found: &mut Vec<Diagnostic>) -> Option<Condition> {
    match Condition::parse(edge.condition.as_ref()?) {
        Ok(condition) => Some(condition),
        Err(errors) => {
            found.extend(errors.into_iter().map(|error| {
                let path = error.path.to_string();
                let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
                Diagnostic::new(
                    Code::BadCondition,
                    Place::edge(&edge.id).field(format!("condition{dot}{path}")),
                    format!("edge {:?}: {}", edge.id, error.message),
                    "correct the condition, or remove it to follow the edge always",
                )
            }));
            None
        }
    }
}

fn check_duplicates(definition: &Definition, found: &mut Vec<Diagnostic>) {
    let mut ids: BTreeMap<&EdgeId, u32> = BTreeMap::new();
    let mut first_by_meaning = BTreeMap::new();
    for edge in &definition.edges {
        let times = ids.entry(&edge.id).or_default();
        *times += 1;
        if *times == 2 {
            found.push(Diagnostic::new(
                Code::DuplicateEdge,
                Place::edge(&edge.id),
                format!("several edges have the id {:?}", edge.id),
                "give each edge an id of its own",
            ));
        }
        let first = first_by_meaning.entry(edge.meaning()).or_insert(&edge.id);
        if *first != &edge.id {
            found.push(Diagnostic::new(
                Code::IdenticalEdges,
                Place::edge(&edge.id),
                format!("edge {:?} says the same as edge {first:?}", edge.id),
                "remove one of them; a second one changes nothing",
            ));
        }
    }
}

fn check_parallels(links: &[Link<'_>], steps: &[Step<'_>], found: &mut Vec<Diagnostic>) {
    let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for link in links {
        let count = counts.entry((link.source, link.target)).or_default();
        *count += 1;
        if *count == PARALLEL_MAX + 1 {
            found.push(Diagnostic::new(
                Code::TooManyParallelEdges,
                Place::edge(&link.edge.id),
                format!(
                    "there are more than {PARALLEL_MAX} edges from node {} to node {}",
                    label(steps[link.source].node),
                    label(steps[link.target].node)
                ),
                "use one edge whose condition is {\"any\": [...]}",
            ));
        }
    }
}
