//! Comparing what a case expects with what was seen, as the note in `cases.json` says.

use std::collections::BTreeMap;

use engine::value::Value;

/// What can be seen of an execution that has ended, whoever ran it.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub status: String,
    pub output: Value,
    /// Whether the result carries an error note.
    pub has_error_note: bool,
    pub nodes: BTreeMap<String, ObservedNode>,
}

/// What can be seen of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedNode {
    pub status: String,
    pub attempts: u64,
    /// Only of nodes that started.
    pub input: Option<Value>,
    pub reason: Option<String>,
}

/// The text that stands for any text.
const ANY_TEXT: &str = "<any text>";

/// Compares an end with what was seen.
///
/// # Errors
/// Every difference, one a line.
pub fn compare(expected: &Value, observed: &Observed) -> Result<(), String> {
    let mut differences = Vec::new();
    let mut differ =
        |what: String, wanted: &dyn std::fmt::Display, found: &dyn std::fmt::Display| {
            differences.push(format!("{what}: expected {wanted}, found {found}"));
        };
    let status = text(expected, "status");
    if status != observed.status {
        differ("status".into(), &status, &observed.status);
    }
    let output = expected.get("output").expect("an end has an output");
    if !matches(output, &observed.output) {
        differ("output".into(), &output.to_json(), &observed.output.to_json());
    }
    let note = expected.get("errorNote").and_then(Value::as_bool).expect("an end says errorNote");
    if note != observed.has_error_note {
        differ("errorNote".into(), &note, &observed.has_error_note);
    }
    let nodes = expected.get("nodes").and_then(Value::as_object).expect("an end has nodes");
    for (id, node) in nodes {
        match observed.nodes.get(id) {
            None => differ(id.clone(), &node.to_json(), &"no such node"),
            Some(found) => compare_node(id, node, found, &mut differ),
        }
    }
    for id in observed.nodes.keys().filter(|id| !nodes.contains_key(id)) {
        differ(id.clone(), &"no such node", &"a node");
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}

fn compare_node(
    id: &str,
    expected: &Value,
    found: &ObservedNode,
    differ: &mut impl FnMut(String, &dyn std::fmt::Display, &dyn std::fmt::Display),
) {
    let status = text(expected, "status");
    if status != found.status {
        differ(format!("{id}.status"), &status, &found.status);
    }
    let attempts = expected.get("attempts").and_then(Value::as_u64).expect("a node has attempts");
    let may_be_fewer = status == "cancelled" && found.attempts < attempts;
    if attempts != found.attempts && !may_be_fewer {
        differ(format!("{id}.attempts"), &attempts, &found.attempts);
    }
    let shown = |input: Option<&Value>| input.map_or_else(|| "none".to_owned(), Value::to_json);
    let input = expected.get("input").filter(|_| !may_be_fewer || found.attempts > 0);
    let is_same = match (input, &found.input) {
        (Some(expected), Some(found)) => matches(expected, found),
        (None, None) => true,
        _ => false,
    };
    if !is_same {
        differ(format!("{id}.input"), &shown(input), &shown(found.input.as_ref()));
    }
    // Only skips and upstreamFailed have their reason listed.
    let reason = expected.get("reason").and_then(Value::as_str);
    let found_reason = found.reason.as_deref().filter(|reason| *reason != "cancelled");
    if reason != found_reason {
        let shown = |reason: Option<&str>| reason.unwrap_or("none").to_owned();
        differ(format!("{id}.reason"), &shown(reason), &shown(found_reason));
    }
}

/// Equal, where [`ANY_TEXT`] equals every text.
fn matches(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::String(wildcard), Value::String(_)) if wildcard == ANY_TEXT => true,
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| matches(expected, found))
        }
        (Value::Object(expected), Value::Object(found)) => {
            expected.len() == found.len()
                && expected.iter().all(|(key, expected)| {
                    found.get(key).is_some_and(|found| matches(expected, found))
                })
        }
        _ => expected == found,
    }
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).expect("an end has this text").to_owned()
}
