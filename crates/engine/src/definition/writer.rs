//! From the document's types back to JSON.

use super::{Definition, Edge, Node, file_name, migrate};
use crate::value::{Object, Value};

/// Writes known fields in schema order, then what `extra` holds.
pub(super) fn write(definition: &Definition) -> Value {
    let d = definition;
    let version = d.version.as_deref().unwrap_or(migrate::FORMAT_VERSION);
    let id = d.id.clone().unwrap_or_else(|| Value::from(file_name::slug(d.title())));
    let mut fields = Fields::new(&d.extra, Definition::FIELDS.len());
    fields.text("$schema", &d.schema);
    fields.put("version", Some(Value::from(version)));
    fields.put("id", Some(id));
    fields.text("name", &d.name);
    fields.text("description", &d.description);
    fields.text("createdAt", &d.created_at);
    fields.text("updatedAt", &d.updated_at);
    fields.value("configuration", &d.configuration);
    fields.value("inputSchema", &d.input_schema);
    fields.put("finalOutput", d.final_output.as_ref().map(|id| Value::from(id.as_str())));
    fields.value("timeout", &d.timeout);
    fields.value("onFailure", &d.on_failure);
    fields.put("nodes", Some(d.nodes.iter().map(write_node).collect()));
    fields.put("edges", Some(d.edges.iter().map(write_edge).collect()));
    fields.object("metadata", &d.metadata);
    fields.finish()
}

fn write_node(node: &Node) -> Value {
    let mut fields = Fields::new(&node.extra, Node::FIELDS.len());
    fields.put("id", Some(Value::from(node.id.as_str())));
    fields.text("type", &node.node_type);
    fields.value("typeVersion", &node.type_version);
    fields.text("name", &node.name);
    fields.text("agentId", &node.agent_id);
    fields.value("position", &node.position);
    fields.value("configuration", &node.configuration);
    fields.object("inputs", &node.inputs);
    fields.value("retryPolicy", &node.retry_policy);
    fields.value("timeout", &node.timeout);
    fields.value("onFailure", &node.on_failure);
    fields.put("disabled", node.disabled.map(Value::from));
    fields.value("compensation", &node.compensation);
    fields.value("join", &node.join);
    fields.value("constraints", &node.constraints);
    fields.value("body", &node.body);
    fields.finish()
}

fn write_edge(edge: &Edge) -> Value {
    let mut fields = Fields::new(&edge.extra, Edge::FIELDS.len());
    fields.put("id", Some(Value::from(edge.id.as_str())));
    fields.put("source", Some(Value::from(edge.source.as_str())));
    fields.put("target", Some(Value::from(edge.target.as_str())));
    fields.text("sourceHandle", &edge.source_handle);
    fields.text("targetHandle", &edge.target_handle);
    fields.value("condition", &edge.condition);
    fields.finish()
}

/// An object under construction. Absent fields are left out, or `null` if they were read as such.
struct Fields<'a> {
    written: Vec<(&'static str, Value)>,
    extra: &'a Object,
}

impl Fields<'_> {
    fn new(extra: &Object, n_known: usize) -> Fields<'_> {
        Fields { written: Vec::with_capacity(n_known), extra }
    }

    fn put(&mut self, key: &'static str, value: Option<Value>) {
        if let Some(value) = value {
            self.written.push((key, value));
        } else if self.extra.get(key).is_some_and(Value::is_null) {
            self.written.push((key, Value::Null));
        }
    }

    fn text(&mut self, key: &'static str, text: &Option<String>) {
        self.put(key, text.as_deref().map(Value::from));
    }

    fn value(&mut self, key: &'static str, value: &Option<Value>) {
        self.put(key, value.clone());
    }

    fn object(&mut self, key: &'static str, object: &Option<Object>) {
        self.put(key, object.clone().map(Value::from));
    }

    fn finish(self) -> Value {
        let mut object: Object = self.written.into_iter().collect();
        for (key, value) in self.extra {
            if !object.contains_key(key) {
                object.insert(key.as_str(), value.clone());
            }
        }
        Value::Object(object)
    }
}
