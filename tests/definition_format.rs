//! The file format: its published schema, and documents that use all of it.

use std::fs;
use std::path::{Path, PathBuf};

use engine::definition::{self, Definition, schema};
use engine::value::{Object, Value, to_serde_json};
use jsonschema::Validator;
use serde_json::Value as Json;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is below the root").into()
}

/// A validator for files of workflows.
pub(crate) fn validator() -> Validator {
    jsonschema::draft202012::new(&schema::schema()).expect("the schema is one")
}

/// Panics with every deviation of a document from the schema.
pub(crate) fn assert_valid(validator: &Validator, name: &str, document: &Value) {
    let document = to_serde_json(document);
    let errors: Vec<String> = validator
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {}", errors.join("\n"));
}

#[test]
fn the_published_schema_is_current() {
    let path = root().join("crates/engine/schema/cyanotype.schema.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("the file lies in a folder")).expect("writable");
        fs::write(&path, schema::schema_file()).expect("the schema can be written");
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == schema::schema_file(),
        "{} is not what the types say; run the test again with UPDATE_GOLDEN=1",
        path.display()
    );
}

#[test]
fn shipped_blueprints_follow_the_schema() {
    let validator = validator();
    let folder = root().join("blueprints");
    let mut n_files = 0;
    for entry in fs::read_dir(&folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        let name = path.display().to_string();
        if path.is_dir() || name.ends_with(".agents.json") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("the file is text");
        assert_valid(&validator, &name, &Value::parse(&text).expect("the file is JSON"));
        n_files += 1;
    }
    assert!(n_files >= 5);
}

#[test]
fn what_import_refuses_is_no_valid_document_either() {
    let validator = validator();
    for text in [
        r#"{"version":"1.0.0","id":1,"nodes":[{"id":"a"}],"edges":[{"source":"a"}]}"#,
        r#"{"version":"1.0.0","id":1,"nodes":[{"id":1}],"edges":[]}"#,
        r#"{"version":"1.0.0","id":1,"nodes":{},"edges":[]}"#,
        r#"{"version":"1.0.0","id":1,"nodes":[{"id":"a","disabled":"no"}],"edges":[]}"#,
        r#"{"version":"1.0.0","id":1,"nodes":[{"id":"a","position":[1,2]}],"edges":[]}"#,
    ] {
        let document = Value::parse(text).expect("the text is JSON");
        assert!(!validator.is_valid(&to_serde_json(&document)), "{text}");
        assert!(Definition::from_value(document).is_err(), "{text}");
    }
}

/// Makes values that use everything a schema describes.
struct Sampler<'a> {
    root: &'a Json,
    /// `Definition.property` of everything that was made.
    used: std::collections::BTreeSet<String>,
}

impl Sampler<'_> {
    /// All ways to fill a schema: one for each alternative.
    fn samples(&mut self, schema: &Json, owner: &str, depth: usize) -> Vec<Value> {
        if let Some(example) = schema.get("examples").and_then(|examples| examples.get(0)) {
            return vec![Value::parse(&example.to_string()).expect("an example is JSON")];
        }
        if let Some(name) = schema.get("$ref").and_then(Json::as_str) {
            let name = name.strip_prefix("#/$defs/").expect("references stay inside");
            let target = &self.root["$defs"][name];
            return self.samples(target, name, depth.saturating_sub(1));
        }
        for choice in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(choice).and_then(Json::as_array) {
                let filled = choices.iter().filter(|choice| choice["type"] != "null");
                // What contains itself, such as a condition, ends with its first alternative.
                let filled = filled.take(if depth == 0 { 1 } else { usize::MAX });
                return filled.flat_map(|choice| self.samples(choice, owner, depth)).collect();
            }
        }
        if let Some(choices) = schema.get("enum").and_then(Json::as_array) {
            let filled = choices.iter().filter(|choice| !choice.is_null());
            return filled.map(|choice| Value::parse(&choice.to_string()).expect("JSON")).collect();
        }
        if let Some(word) = schema.get("const") {
            return vec![Value::parse(&word.to_string()).expect("a constant is JSON")];
        }
        match kind(schema) {
            "object" => self.objects(schema, owner, depth),
            "array" => vec![Value::Array(self.samples(&schema["items"], owner, depth))],
            "string" => vec![Value::from("text")],
            "integer" => vec![Value::from(schema["minimum"].as_f64().unwrap_or(0.0) as u64)],
            "number" => vec![Value::parse("1.50").expect("a number")],
            "boolean" => vec![Value::from(true)],
            _ => vec![Value::parse(r#"{"any":[1,null]}"#).expect("JSON")],
        }
    }

    /// So many objects that every alternative of every property is used.
    fn objects(&mut self, schema: &Json, owner: &str, depth: usize) -> Vec<Value> {
        let empty = serde_json::Map::new();
        let properties = schema.get("properties").and_then(Json::as_object).unwrap_or(&empty);
        let mut filled: Vec<(String, Vec<Value>)> = Vec::new();
        for (name, property) in properties {
            self.used.insert(format!("{owner}.{name}"));
            filled.push((name.clone(), self.samples(property, owner, depth)));
        }
        if let Some(values) = schema.get("additionalProperties").filter(|values| **values != false)
        {
            filled.push(("key".to_owned(), self.samples(values, owner, depth)));
        }
        let n_objects = filled.iter().map(|(_, values)| values.len()).max().unwrap_or(1);
        let object = |n: usize| -> Value {
            let fields = filled.iter().filter(|(_, values)| !values.is_empty());
            let fields =
                fields.map(|(name, values)| (name.as_str(), values[n % values.len()].clone()));
            Value::Object(fields.collect::<Object>())
        };
        (0..n_objects).map(object).collect()
    }
}

fn kind(schema: &Json) -> &str {
    match &schema["type"] {
        Json::String(kind) => kind,
        Json::Array(kinds) => kinds
            .iter()
            .filter_map(Json::as_str)
            .find(|kind| *kind != "null")
            .expect("a type besides null"),
        _ => "anything",
    }
}

/// Documents that together use every field of the schema, with ids that differ.
fn complete_documents() -> Vec<Value> {
    let schema = schema::schema();
    let mut sampler = Sampler { root: &schema, used: Default::default() };
    let mut documents = sampler.samples(&schema, "Workflow", 6);
    let described: usize = schema["$defs"]
        .as_object()
        .expect("there are definitions")
        .values()
        .chain([&schema])
        .filter_map(|part| part.get("properties").and_then(Json::as_object))
        .map(serde_json::Map::len)
        .sum();
    assert!(sampler.used.len() >= described, "every described field is used: {:?}", sampler.used);
    for document in &mut documents {
        for list in ["nodes", "edges"] {
            let items = document.as_object_mut().and_then(|object| object.get_mut(list));
            let items = items.and_then(Value::as_array_mut).expect("a list");
            for (n, item) in items.iter_mut().enumerate() {
                let object = item.as_object_mut().expect("an object");
                object.insert("id", format!("{list}-{n}"));
                object.insert("x-note", note());
                if let Some(policy) = object.get_mut("retryPolicy").and_then(Value::as_object_mut) {
                    policy.insert("x-note", note());
                }
            }
        }
        document.as_object_mut().expect("an object").insert("x-note", note());
    }
    documents
}

fn note() -> Value {
    Value::parse(r#"{"n":1}"#).expect("JSON")
}

#[test]
fn o_i05_no_field_is_lost_on_the_way_through_the_product() {
    let validator = validator();
    let documents = complete_documents();
    assert!(documents.len() > 1, "some fields have alternatives");
    for document in documents {
        assert_valid(&validator, "generated", &document);
        let mut current = document.clone();
        for _ in 0..2 {
            let mut read = definition::read_file(current.to_json().as_bytes())
                .unwrap_or_else(|error| panic!("{error}\n{}", current.to_json_pretty()));
            let text = read.remove(0).definition.to_file();
            current = Value::parse(&text).expect("the product writes JSON");
        }
        let expected = with_configurations_read(document);
        assert_eq!(current.to_canonical(), expected.to_canonical());
    }
}

/// Import reads configurations that arrive as JSON text; text that is no object stays as it is.
fn with_configurations_read(document: Value) -> Value {
    let text = document.to_json().replace(r#""configuration":"{}""#, r#""configuration":{}"#);
    Value::parse(&text).expect("JSON")
}
