//! From JSON to the document's types.

use std::collections::{BTreeMap, BTreeSet};

use super::{Definition, Edge, Node, Problem, described, edges, migrate};
use crate::ids::{EdgeId, NodeId};
use crate::limits::NODES_MAX;
use crate::value::{DEPTH_MAX, Object, Value};

/// How deep a configuration that arrives as text may be nested: a node's configuration lies
/// inside three levels of the document.
const CONFIGURATION_DEPTH_MAX: usize = DEPTH_MAX - 3;

/// Reads a document.
pub(super) fn read(value: Value) -> Result<Definition, Vec<Problem>> {
    let Value::Object(object) = value else {
        let message = format!("a workflow must be an object, but this is {}", described(&value));
        return Err(vec![Problem {
            place: String::new(),
            message,
            hint: "start the file with { and give it `nodes` and `edges`".to_owned(),
        }]);
    };
    let mut reader = Reader { problems: Vec::new() };
    let definition = reader.definition(object);
    if reader.problems.is_empty() { Ok(definition) } else { Err(reader.problems) }
}

/// The object that a field belongs to.
#[derive(Clone, Copy)]
enum At {
    Top,
    Node(usize),
    Edge(usize),
}

impl At {
    fn field(self, name: &str) -> String {
        match self {
            At::Top => name.to_owned(),
            At::Node(n) => format!("nodes[{n}].{name}"),
            At::Edge(n) => format!("edges[{n}].{name}"),
        }
    }
}

struct Reader {
    problems: Vec<Problem>,
}

/// An edge whose ends may be missing.
struct Ends {
    id: Option<String>,
    source: Option<NodeId>,
    target: Option<NodeId>,
    edge: Edge,
}

impl Reader {
    fn definition(&mut self, object: Object) -> Definition {
        let mut d = Definition::default();
        let (mut nodes, mut edges) = (None, None);
        for (key, value) in object {
            if value.is_null() {
                d.extra.insert(key, value);
                continue;
            }
            match key.as_str() {
                "$schema" => d.schema = self.text(At::Top, "$schema", value),
                "version" => d.version = self.version(value),
                "id" => d.id = Some(value),
                "name" => d.name = self.text(At::Top, "name", value),
                "description" => d.description = self.text(At::Top, "description", value),
                "createdAt" => d.created_at = self.text(At::Top, "createdAt", value),
                "updatedAt" => d.updated_at = self.text(At::Top, "updatedAt", value),
                "configuration" => d.configuration = Some(configuration(value)),
                "inputSchema" => d.input_schema = Some(value),
                "finalOutput" => {
                    d.final_output = self.text(At::Top, "finalOutput", value).map(NodeId::from);
                }
                "timeout" => d.timeout = Some(value),
                "onFailure" => d.on_failure = Some(value),
                "nodes" => nodes = self.list("nodes", value),
                "edges" => edges = self.list("edges", value),
                "metadata" => d.metadata = self.object(At::Top, "metadata", value),
                _ => drop(d.extra.insert(key, value)),
            }
        }
        match nodes {
            Some(nodes) => d.nodes = self.nodes(nodes),
            None if self.problems.iter().any(|problem| problem.place == "nodes") => (),
            None => self.refuse("nodes".to_owned(), "there are no `nodes`", "add `nodes`, a list"),
        }
        d.edges = self.edges(edges.unwrap_or_default(), &d.nodes);
        d
    }

    fn version(&mut self, value: Value) -> Option<String> {
        let version = self.text(At::Top, "version", value)?;
        if let Err(problem) = migrate::check(&version) {
            self.problems.push(problem);
        }
        Some(version)
    }

    fn nodes(&mut self, values: Vec<Value>) -> Vec<Node> {
        if values.len() > NODES_MAX {
            self.refuse(
                "nodes".to_owned(),
                format!("there are {} nodes; at most {NODES_MAX} are read", values.len()),
                "split the workflow",
            );
            return Vec::new();
        }
        let nodes: Vec<Node> =
            values.into_iter().enumerate().filter_map(|(n, value)| self.node(n, value)).collect();
        let mut seen = BTreeSet::new();
        let mut reported = BTreeSet::new();
        for node in &nodes {
            if !seen.insert(&node.id) && reported.insert(&node.id) {
                self.refuse(
                    "nodes".to_owned(),
                    format!("several nodes have the id {:?}", node.id),
                    "give each node an id of its own",
                );
            }
        }
        nodes
    }

    fn node(&mut self, n: usize, value: Value) -> Option<Node> {
        let at = At::Node(n);
        let object = self.element("nodes", n, value)?;
        let mut id = None;
        let mut node = Node::new("");
        for (key, value) in object {
            if value.is_null() {
                node.extra.insert(key, value);
                continue;
            }
            match key.as_str() {
                "id" => id = Some(self.text(at, "id", value)),
                "type" => node.node_type = self.text(at, "type", value),
                "typeVersion" => node.type_version = Some(value),
                "name" => node.name = self.text(at, "name", value),
                "agentId" => node.agent_id = self.text(at, "agentId", value),
                "position" => node.position = self.position(at, value),
                "configuration" => node.configuration = Some(configuration(value)),
                "inputs" => node.inputs = self.object(at, "inputs", value),
                "retryPolicy" => node.retry_policy = Some(value),
                "timeout" => node.timeout = Some(value),
                "onFailure" => node.on_failure = Some(value),
                "disabled" => node.disabled = self.flag(at, "disabled", value),
                "compensation" => node.compensation = Some(value),
                "join" => node.join = Some(value),
                "constraints" => node.constraints = Some(value),
                "body" => node.body = Some(value),
                _ => drop(node.extra.insert(key, value)),
            }
        }
        if id.is_none() {
            let hint = "add `id`, a text that no other node has";
            self.refuse(format!("nodes[{n}]"), "the node has no id", hint);
        }
        node.id = NodeId::from(id??);
        Some(node)
    }

    fn edges(&mut self, values: Vec<Value>, nodes: &[Node]) -> Vec<Edge> {
        let ids: BTreeSet<&NodeId> = nodes.iter().map(|node| &node.id).collect();
        let n_before = self.problems.len();
        let mut drafts = Vec::with_capacity(values.len());
        let mut dangling = BTreeMap::new();
        for (n, value) in values.into_iter().enumerate() {
            let Some(draft) = self.edge(n, value) else { continue };
            let known = |end: &Option<NodeId>| end.as_ref().is_none_or(|id| ids.contains(id));
            if !known(&draft.source) || !known(&draft.target) {
                dangling.insert(n, dangling_problem(n, &draft, &ids));
            }
            drafts.push(draft);
        }
        if self.problems.len() > n_before {
            let place_of = |problem: &Problem| {
                let place = problem.place.strip_prefix("edges[")?;
                place.split(']').next()?.parse::<usize>().ok()
            };
            self.problems.extend(dangling.into_values());
            self.problems[n_before..].sort_by_key(place_of);
            return Vec::new();
        }
        let given: BTreeSet<EdgeId> =
            drafts.iter().filter_map(|draft| draft.id.as_deref().map(EdgeId::from)).collect();
        let mut free = edges::FreeIds::new(given);
        drafts
            .into_iter()
            .filter_map(|Ends { id, source, target, edge }| {
                let (source, target) = (source?, target?);
                let id = match id {
                    Some(id) => EdgeId::from(id),
                    None => free.take(&source, &target),
                };
                Some(Edge { id, source, target, ..edge })
            })
            .collect()
    }

    fn edge(&mut self, n: usize, value: Value) -> Option<Ends> {
        let at = At::Edge(n);
        let object = self.element("edges", n, value)?;
        let mut id = None;
        let (mut source, mut target) = (None, None);
        let mut edge = Edge::new("", "", "");
        for (key, value) in object {
            if value.is_null() {
                edge.extra.insert(key, value);
                continue;
            }
            match key.as_str() {
                "id" => id = self.text(at, "id", value),
                "source" => source = Some(self.text(at, "source", value)),
                "target" => target = Some(self.text(at, "target", value)),
                "sourceHandle" => edge.source_handle = self.text(at, "sourceHandle", value),
                "targetHandle" => edge.target_handle = self.text(at, "targetHandle", value),
                "condition" => edge.condition = Some(value),
                _ => drop(edge.extra.insert(key, value)),
            }
        }
        for (end, given, what) in [("source", &source, "starts"), ("target", &target, "ends")] {
            if given.is_none() {
                let label = edge_label(n, id.as_deref());
                self.refuse(
                    at.field(end),
                    format!("{label} has no {end}"),
                    format!("add `{end}`, the id of the node where it {what}, or remove the edge"),
                );
            }
        }
        let id_of = |end: Option<Option<String>>| end.flatten().map(NodeId::from);
        Some(Ends { id, source: id_of(source), target: id_of(target), edge })
    }

    fn position(&mut self, at: At, value: Value) -> Option<Value> {
        let n_before = self.problems.len();
        let object = self.object(at, "position", value)?;
        for axis in ["x", "y"] {
            if let Some(value) = object.get(axis)
                && !matches!(value, Value::Number(_) | Value::Null)
            {
                self.wrong_type(at, &format!("position.{axis}"), "a number", value);
            }
        }
        (self.problems.len() == n_before).then_some(Value::Object(object))
    }

    fn text(&mut self, at: At, field: &str, value: Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text),
            other => {
                self.wrong_type(at, field, "a text", &other);
                None
            }
        }
    }

    fn flag(&mut self, at: At, field: &str, value: Value) -> Option<bool> {
        match value {
            Value::Bool(flag) => Some(flag),
            other => {
                self.wrong_type(at, field, "true or false", &other);
                None
            }
        }
    }

    fn object(&mut self, at: At, field: &str, value: Value) -> Option<Object> {
        match value {
            Value::Object(object) => Some(object),
            other => {
                self.wrong_type(at, field, "an object", &other);
                None
            }
        }
    }

    fn list(&mut self, field: &str, value: Value) -> Option<Vec<Value>> {
        match value {
            Value::Array(items) => Some(items),
            other => {
                self.wrong_type(At::Top, field, "a list", &other);
                None
            }
        }
    }

    fn element(&mut self, list: &str, n: usize, value: Value) -> Option<Object> {
        match value {
            Value::Object(object) => Some(object),
            other => {
                self.wrong_type(At::Top, &format!("{list}[{n}]"), "an object", &other);
                None
            }
        }
    }

    fn wrong_type(&mut self, at: At, field: &str, expected: &str, found: &Value) {
        let name = field.rsplit('.').next().unwrap_or(field);
        self.refuse(
            at.field(field),
            format!("`{name}` must be {expected}, but is {}", described(found)),
            format!("write {expected}, or leave the field out"),
        );
    }

    fn refuse(&mut self, place: String, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push(Problem { place, message: message.into(), hint: hint.into() });
    }
}

/// An object that arrived as JSON text, as some programs write it, is read; anything else is kept.
fn configuration(value: Value) -> Value {
    let Value::String(text) = &value else { return value };
    match Value::parse(text) {
        Ok(parsed @ Value::Object(_)) if parsed.depth() <= CONFIGURATION_DEPTH_MAX => parsed,
        _ => value,
    }
}

fn edge_label(n: usize, id: Option<&str>) -> String {
    match id {
        Some(id) => format!("edge {id:?}"),
        None => format!("edge number {}", n + 1),
    }
}

fn dangling_problem(n: usize, draft: &Ends, ids: &BTreeSet<&NodeId>) -> Problem {
    let label = edge_label(n, draft.id.as_deref());
    let missing = |end: &Option<NodeId>| end.clone().filter(|id| !ids.contains(id));
    let message = match (missing(&draft.source), missing(&draft.target)) {
        (Some(source), Some(target)) => {
            format!("{label} goes from node {source:?} to node {target:?}, and neither exists")
        }
        (Some(source), None) => format!("{label} starts at node {source:?}, which does not exist"),
        (None, Some(target)) => format!("{label} ends at node {target:?}, which does not exist"),
        (None, None) => unreachable!("one of the ends is unknown"),
    };
    Problem {
        place: format!("edges[{n}]"),
        message,
        hint: "correct the id, or remove the edge".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Definition, Vec<String>> {
        Definition::from_value(Value::parse(text).unwrap())
            .map_err(|problems| problems.iter().map(Problem::to_string).collect())
    }

    #[test]
    fn wrong_types_are_refused_with_their_places() {
        let problems = check(
            r#"{"version":1,"name":["x"],"metadata":"m","edges":{},
                "nodes":[{"id":7},{"id":"b","position":[1,2]},{"id":"c","position":{"x":"1"}},
                         {"id":"d","disabled":"yes","inputs":[]},"e",{"name":"f"}]}"#,
        )
        .unwrap_err();
        let places: Vec<&str> =
            problems.iter().map(|problem| problem.split(": ").next().unwrap()).collect();
        let expected = [
            "version",
            "name",
            "metadata",
            "edges",
            "nodes[0].id",
            "nodes[1].position",
            "nodes[2].position.x",
            "nodes[3].disabled",
            "nodes[3].inputs",
            "nodes[4]",
            "nodes[5]",
        ];
        assert_eq!(places, expected);
        assert_eq!(
            problems[5],
            "nodes[1].position: `position` must be an object, but is the list [1,2]; \
             write an object, or leave the field out"
        );
    }

    #[test]
    fn what_is_only_wrong_later_is_kept_as_written() {
        let text = r#"{"version":"1.0.0","id":[1],"configuration":"{oops","timeout":"soon",
            "onFailure":7,"inputSchema":3,
            "nodes":[{"id":"a","type":"no-such-type","typeVersion":"x","retryPolicy":[],
                      "timeout":-1,"onFailure":"no","compensation":1,"join":{"min":"x"},
                      "constraints":[2],"configuration":5,"body":{"nodes":3}}],
            "edges":[{"id":"e","source":"a","target":"ghost","condition":"?"}]}"#;
        let definition = check(text).unwrap();
        assert_eq!(definition.to_value(), Value::parse(text).unwrap());
    }

    #[test]
    fn configuration_that_arrives_as_json_text_is_read() {
        let definition = check(
            r#"{"configuration":"{\"parameters\":{\"n\":1.50}}",
                "nodes":[{"id":"a","configuration":"{}"},{"id":"b","configuration":"[]"}]}"#,
        )
        .unwrap();
        let written = definition.configuration.unwrap().to_json();
        assert_eq!(written, r#"{"parameters":{"n":1.50}}"#);
        assert_eq!(definition.nodes[0].configuration, Some(Value::Object(Object::new())));
        assert_eq!(definition.nodes[1].configuration, Some(Value::from("[]")));
    }

    #[test]
    fn configuration_text_never_makes_a_document_too_deep_to_read_back() {
        for depth in [100, 124, 125, 126, 128] {
            let deep = format!(r#"{{\"a\":{}{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
            let definition =
                check(&format!(r#"{{"nodes":[{{"id":"a","configuration":"{deep}"}}]}}"#)).unwrap();
            assert!(Value::parse(&definition.to_file()).is_ok(), "{depth}");
        }
    }

    #[test]
    fn null_counts_as_absent_and_is_written_back() {
        let mut definition = check(
            r#"{"version":"1.0.0","x":null,"id":"w","name":null,
                "nodes":[{"id":"a","join":null,"agentId":null}],
                "edges":[{"id":"e","source":"a","target":"a","sourceHandle":null}]}"#,
        )
        .unwrap();
        assert_eq!(definition.title(), "Untitled workflow");
        assert_eq!(definition.edges[0].source_port(), "output");
        let expected = [
            r#"{"version":"1.0.0","id":"w","name":null,"#,
            r#""nodes":[{"id":"a","agentId":null,"join":null}],"#,
            r#""edges":[{"id":"e","source":"a","target":"a","sourceHandle":null}],"x":null}"#,
        ];
        assert_eq!(definition.to_value().to_json(), expected.concat());
        assert_eq!(definition.unknown_fields().len(), 1, "x only");
        definition.name = Some("Named".to_owned());
        assert_eq!(definition.to_value().get("name"), Some(&Value::from("Named")));
    }

    #[test]
    fn duplicate_node_ids_are_refused_once_each() {
        let problems =
            check(r#"{"nodes":[{"id":"a"},{"id":"a"},{"id":"a"},{"id":"b"}]}"#).unwrap_err();
        assert_eq!(
            problems,
            ["nodes: several nodes have the id \"a\"; give each node an id of its own"]
        );
    }

    #[test]
    fn too_many_nodes_are_refused() {
        let node = |n: usize| format!(r#"{{"id":"n{n}"}}"#);
        let document = |n_nodes: usize| {
            let nodes: Vec<String> = (0..n_nodes).map(node).collect();
            format!(r#"{{"nodes":[{}]}}"#, nodes.join(","))
        };
        assert_eq!(check(&document(NODES_MAX)).unwrap().nodes.len(), NODES_MAX);
        let problems = check(&document(NODES_MAX + 1)).unwrap_err();
        assert_eq!(
            problems,
            ["nodes: there are 20001 nodes; at most 20000 are read; split the workflow"]
        );
    }

    #[test]
    fn o_i03_every_bad_edge_is_named_with_what_is_missing() {
        let e1 = r#"{"id":"e1","source":"a","target":"ghost"}"#;
        let e2 = r#"{"id":"e2","source":"ghost","target":"a"}"#;
        let e3 = r#"{"id":"e3","source":"a"}"#;
        let e4 = r#"{"id":"e4","source":"a","target":null}"#;
        let document =
            |edges: &[&str]| format!(r#"{{"nodes":[{{"id":"a"}}],"edges":[{}]}}"#, edges.join(","));
        let problems = check(&document(&[e1, e2, e3, e4])).unwrap_err();
        let starts: Vec<&str> =
            problems.iter().map(|problem| problem.split(';').next().unwrap()).collect();
        assert_eq!(
            starts,
            [
                r#"edges[0]: edge "e1" ends at node "ghost", which does not exist"#,
                r#"edges[1]: edge "e2" starts at node "ghost", which does not exist"#,
                r#"edges[2].target: edge "e3" has no target"#,
                r#"edges[3].target: edge "e4" has no target"#,
            ]
        );
        let draft = check(&document(&[e1, e2])).unwrap();
        assert_eq!(draft.edges.len(), 2, "edges to unknown nodes make a draft with diagnostics");
    }
}
