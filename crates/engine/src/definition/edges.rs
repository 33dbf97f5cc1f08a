//! Edge ids where a file has none, and the merging of identical edges.

use std::collections::{BTreeMap, BTreeSet};

use super::{Definition, Edge, Note};
use crate::ids::{EdgeId, NodeId};
use crate::value::{Object, Value};

/// Makes edge ids that nothing else uses.
pub(super) struct FreeIds {
    taken: BTreeSet<EdgeId>,
    /// The next number to try, by base, so that many edges between two nodes stay cheap.
    next: BTreeMap<String, u32>,
}

impl FreeIds {
    pub(super) fn new(taken: BTreeSet<EdgeId>) -> FreeIds {
        FreeIds { taken, next: BTreeMap::new() }
    }

    /// `edge-<source>-<target>`, then `edge-<source>-<target>-2` and so on.
    pub(super) fn take(&mut self, source: &NodeId, target: &NodeId) -> EdgeId {
        let base = format!("edge-{source}-{target}");
        let next = self.next.entry(base.clone()).or_insert(1);
        loop {
            let id = match *next {
                1 => EdgeId::from(base.as_str()),
                n => EdgeId::from(format!("{base}-{n}")),
            };
            *next += 1;
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// What makes edges identical: ends, ports and condition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Meaning {
    source: NodeId,
    target: NodeId,
    source_port: String,
    target_port: String,
    condition: Option<String>,
}

impl Edge {
    /// What the edge says, whatever it is called. Identical edges have equal meanings.
    pub(crate) fn meaning(&self) -> Meaning {
        Meaning {
            source: self.source.clone(),
            target: self.target.clone(),
            source_port: self.source_port().to_owned(),
            target_port: self.target_port().to_owned(),
            condition: self.condition.as_ref().map(Value::to_canonical),
        }
    }
}

/// See [`Definition::merge_identical_edges`].
pub(super) fn merge_identical(definition: &mut Definition) -> Vec<Note> {
    let mut first_by_meaning: BTreeMap<Meaning, usize> = BTreeMap::new();
    let mut kept: Vec<Edge> = Vec::with_capacity(definition.edges.len());
    let mut notes = Vec::new();
    for (n, edge) in std::mem::take(&mut definition.edges).into_iter().enumerate() {
        let meaning = edge.meaning();
        match first_by_meaning.get(&meaning) {
            Some(&first) if agree(&kept[first].extra, &edge.extra) => {
                notes.push(Note {
                    place: format!("edges[{n}]"),
                    message: format!(
                        "edge {:?} says the same as edge {:?} and was merged into it",
                        edge.id, kept[first].id
                    ),
                });
                kept[first].extra.extend(edge.extra);
            }
            Some(_) => kept.push(edge),
            None => {
                first_by_meaning.insert(meaning, kept.len());
                kept.push(edge);
            }
        }
    }
    definition.edges = kept;
    notes
}

/// Whether no key has different values in both.
fn agree(one: &Object, other: &Object) -> bool {
    other.iter().all(|(key, value)| one.get(key).is_none_or(|held| held == value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(edges: &str) -> (Vec<String>, Vec<String>) {
        let text = format!(r#"{{"nodes":[{{"id":"a"}},{{"id":"b"}}],"edges":{edges}}}"#);
        let mut definition = Definition::from_value(Value::parse(&text).unwrap()).unwrap();
        let notes = definition.merge_identical_edges();
        (
            definition.edges.iter().map(|edge| edge.id.to_string()).collect(),
            notes.iter().map(Note::to_string).collect(),
        )
    }

    #[test]
    fn edges_with_the_same_ends_ports_and_condition_become_one() {
        let (ids, notes) = merged(
            r#"[{"id":"e1","source":"a","target":"b","condition":{"field":"n","operator":"equals","value":1}},
                {"id":"e2","source":"a","target":"b","sourceHandle":"output","targetHandle":"input",
                 "condition":{"value":1.0,"field":"n","operator":"equals"}},
                {"id":"e3","source":"a","target":"b"},
                {"id":"e4","source":"a","target":"b","sourceHandle":"error"},
                {"id":"e5","source":"b","target":"a"}]"#,
        );
        assert_eq!(ids, ["e1", "e3", "e4", "e5"]);
        assert_eq!(
            notes,
            [r#"edges[1]: edge "e2" says the same as edge "e1" and was merged into it"#]
        );
    }

    #[test]
    fn merging_never_drops_an_unknown_field() {
        let (ids, notes) = merged(
            r#"[{"id":"e1","source":"a","target":"b","x":1},
                {"id":"e2","source":"a","target":"b","x":2},
                {"id":"e3","source":"a","target":"b","y":3}]"#,
        );
        assert_eq!(ids, ["e1", "e2"], "e1 and e2 contradict each other");
        assert_eq!(notes.len(), 1);
    }

    #[test]
    fn edges_without_ids_get_free_ones() {
        let (ids, _) = merged(
            r#"[{"source":"a","target":"b"},
                {"id":"edge-a-b-2","source":"b","target":"a"},
                {"source":"a","target":"b","sourceHandle":"error"},
                {"id":null,"source":"a","target":"b","targetHandle":"other"}]"#,
        );
        assert_eq!(ids, ["edge-a-b", "edge-a-b-2", "edge-a-b-3", "edge-a-b-4"]);
    }
}
