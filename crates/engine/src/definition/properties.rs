//! What holds for every document: nothing is lost, nothing panics.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use super::{Definition, Edge, Node};
use crate::agent::AgentSet;
use crate::plan::compile::compile;
use crate::value::{Number, Object, Value};

/// Any JSON value of moderate size. Texts look like templates, paths and policies now and then.
fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-z.\\[\\]{}%$# ]{0,12}",
        proptest::sample::select(vec![
            "all",
            "any",
            "stop",
            "continue",
            "error",
            "output",
            "equals",
            "exists",
            "{{ nodes.a.output }}",
            "{{ params.k }}",
            "{{ oops",
            "{{secret:K}}",
            "${output.x}",
            "{\"k\":1}",
            "placeholder-x",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    let number =
        proptest::sample::select(vec!["0", "-0.0", "1", "1.50", "1e3", "17169973925117969", "-1"]);
    let number = number.prop_map(|text| Value::Number(Number::parse(text).unwrap()));
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            object_of(inner).prop_map(Value::from),
        ]
    })
}

/// An object with keys that mean something somewhere, and others.
fn object_of(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Object> {
    let keys = proptest::sample::select(vec![
        "min",
        "maxRetries",
        "backoffMax",
        "strategy",
        "retryableErrors",
        "field",
        "operator",
        "value",
        "not",
        "all",
        "any",
        "tool",
        "args",
        "parameters",
        "agentProperties",
        "compensation",
        "trigger",
        "concurrency",
        "nodes",
        "x-note",
        "k",
        "",
    ]);
    btree_map(keys, values, 0..5).prop_map(|fields| fields.into_iter().collect())
}

fn any_object() -> impl Strategy<Value = Object> {
    object_of(any_value())
}

/// A field that is absent, null, or anything.
fn field(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Option<Value>> {
    option::weighted(0.3, values)
}

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![Just(Value::Null), "[a-d]{0,2}".prop_map(Value::from)]
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    proptest::sample::select(words).prop_map(Value::from)
}

/// A document as import accepts it: right types of the structural fields, anything else.
fn any_document() -> impl Strategy<Value = Value> {
    let node = (
        (field(word(&["agent", "transform", "note", "odd"])), field(any_value()), field(text())),
        (
            field(word(&["x", "placeholder-x", ""])),
            field(any_value()),
            field(any_object().prop_map(Value::from)),
        ),
        (
            field(any_value()),
            field(any_value()),
            field(any_value()),
            field(any::<bool>().prop_map(Value::from)),
        ),
        (field(any_value()), field(any_value()), field(any_value()), any_object()),
    );
    let node = node.prop_map(|(a, b, c, d)| {
        let known = [
            ("type", a.0),
            ("typeVersion", a.1),
            ("name", a.2),
            ("agentId", b.0),
            ("configuration", b.1),
            ("inputs", b.2),
            ("retryPolicy", c.0),
            ("timeout", c.1),
            ("onFailure", c.2),
            ("disabled", c.3),
            ("compensation", d.0),
            ("join", d.1),
            ("body", d.2),
        ];
        object(known, d.3, Node::FIELDS.as_slice())
    });
    let ends = || word(&["a", "b", "c", "d", "ghost"]);
    let port = || field(word(&["output", "error", "input", "left"]));
    let edge = (ends(), ends(), port(), port(), field(any_value()), field(text()), any_object());
    let edge = edge.prop_map(|(source, target, from, to, condition, id, extra)| {
        let known = [
            ("id", id),
            ("source", Some(source)),
            ("target", Some(target)),
            ("sourceHandle", from),
            ("targetHandle", to),
            ("condition", condition),
        ];
        object(known, extra, Edge::FIELDS.as_slice())
    });
    let top = (
        (field(text()), field(any_value()), field(text()), field(any_value()), field(any_value())),
        (field(word(&["a", "ghost"])), field(any_value()), field(any_value()), any_object()),
    );
    (top, vec(node, 0..4), vec(edge, 0..6)).prop_map(|((a, b), nodes, edges)| {
        let nodes = nodes.into_iter().zip(["a", "b", "c", "d"]).map(|(mut node, id)| {
            node.insert("id", id);
            Value::from(node)
        });
        let known = [
            ("version", a.0.map(|_| "1.0.0".into())),
            ("id", a.1),
            ("name", a.2),
            ("configuration", a.3),
            ("inputSchema", a.4),
            ("finalOutput", b.0),
            ("timeout", b.1),
            ("onFailure", b.2),
            ("nodes", Some(nodes.collect())),
            ("edges", Some(edges.into_iter().map(Value::from).collect())),
        ];
        Value::from(object(known, b.3, Definition::FIELDS.as_slice()))
    })
}

fn object<const N: usize>(
    known: [(&str, Option<Value>); N],
    extra: Object,
    fields: &[&str],
) -> Object {
    let known = known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let unknown = extra.into_iter().filter(|(key, _)| !fields.contains(&key.as_str()));
    unknown.chain(known).collect()
}

/// What reading adds: ids of edges, version and id; and configurations that were JSON text.
fn expected(document: &Value, read: &Definition) -> Value {
    let mut expected = document.clone();
    let object = expected.as_object_mut().unwrap();
    for (key, given) in [("version", read.version.is_some()), ("id", read.id.is_some())] {
        if !given {
            object.insert(key, read.to_value().get(key).unwrap().clone());
        }
    }
    if let Some(configuration) = &read.configuration {
        object.insert("configuration", configuration.clone());
    }
    let nodes = object.get_mut("nodes").and_then(Value::as_array_mut).unwrap();
    for (node, read) in nodes.iter_mut().zip(&read.nodes) {
        if let Some(configuration) = &read.configuration {
            node.as_object_mut().unwrap().insert("configuration", configuration.clone());
        }
    }
    let edges = object.get_mut("edges").and_then(Value::as_array_mut).unwrap();
    for (edge, read) in edges.iter_mut().zip(&read.edges) {
        edge.as_object_mut().unwrap().insert("id", read.id.as_str());
    }
    expected
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn p1_p7_reading_and_writing_keep_everything(document in any_document()) {
        let read = Definition::from_value(document.clone()).unwrap();
        let written = read.to_value();
        prop_assert_eq!(&written, &expected(&document, &read));
        let again = Definition::from_value(Value::parse(&read.to_file()).unwrap()).unwrap();
        prop_assert_eq!(again.to_file(), read.to_file(), "the same document gives the same bytes");
    }

    #[test]
    fn merging_identical_edges_settles_at_once(document in any_document()) {
        let mut read = Definition::from_value(document).unwrap();
        read.merge_identical_edges();
        prop_assert_eq!(read.merge_identical_edges(), []);
    }

    #[test]
    fn random_documents_never_panic_compile(document in any_document()) {
        let read = Definition::from_value(document).unwrap();
        let compiled = compile(&read, &AgentSet::new());
        let has_errors = compiled.diagnostics.iter().any(|found| found.is_error());
        prop_assert_eq!(compiled.plan.is_none(), has_errors);
        let again = compile(&read, &AgentSet::new());
        prop_assert_eq!(again.diagnostics, compiled.diagnostics);
    }

    #[test]
    fn random_values_are_read_or_refused_and_never_panic(value in any_value()) {
        let _ = Definition::from_value(value.clone());
        let _ = crate::agent::Agent::from_value(&value);
        let _ = super::read_file(value.to_json().as_bytes());
    }
}
