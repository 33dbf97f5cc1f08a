//! The cases of `cases.json`, and the files that the command line needs to run one.

use std::collections::BTreeMap;

use engine::value::{Object, Value};

use crate::sim::case::{Case, Stub, stub_id};

/// One case.
#[derive(Clone, Debug)]
pub struct SemanticsCase {
    pub id: String,
    /// What it is about, in words.
    pub shows: String,
    /// A complete file.
    pub definition: Value,
    /// Scripts by node id.
    pub stubs: Object,
    /// What it is started with, if anything.
    pub input: Option<Value>,
    pub expect: Value,
}

/// Reads all cases, in the order of the file.
pub fn all_cases() -> Vec<SemanticsCase> {
    let file = Value::parse(include_str!("cases.json")).expect("the cases are JSON");
    let cases = file.get("cases").and_then(Value::as_array).expect("the file has a list of cases");
    cases.iter().map(read).collect()
}

fn read(case: &Value) -> SemanticsCase {
    let field = |key: &str| case.get(key).cloned();
    let text = |key: &str| field(key).and_then(|v| v.as_str().map(str::to_owned));
    SemanticsCase {
        id: text("id").expect("a case has an id"),
        shows: text("shows").expect("a case says what it shows"),
        definition: field("definition").expect("a case has a definition"),
        stubs: case.get("stubs").and_then(Value::as_object).cloned().expect("a case has stubs"),
        input: field("input"),
        expect: field("expect").expect("a case expects something"),
    }
}

impl SemanticsCase {
    /// The ends that are right: one, or several where timing decides.
    pub fn expected_ends(&self) -> Vec<Value> {
        match self.expect.get("oneOf").and_then(Value::as_array) {
            Some(ends) => ends.to_vec(),
            None => vec![self.expect.clone()],
        }
    }

    /// The case for the simulation.
    pub fn simulated(&self) -> Case {
        let stubs: BTreeMap<String, Stub> = self
            .stubs
            .iter()
            .map(|(node, script)| (stub_id(node), Stub::new(script.clone())))
            .collect();
        let input = self.input.clone().unwrap_or_else(|| Object::new().into());
        Case { definition: self.definition.clone(), stubs, input }
    }

    /// The definition as a file of its own.
    pub fn definition_file(&self) -> String {
        self.definition.to_json_pretty()
    }

    /// The agents behind the definition as a file of their own.
    pub fn agents_file(&self) -> String {
        let agents = self.stubs.iter().map(|(node, script)| agent_record(node, script)).collect();
        let file: Object = [("agents", Value::Array(agents))].into_iter().collect();
        Value::Object(file).to_json_pretty()
    }
}

fn agent_record(node: &str, script: &Value) -> Value {
    let echoes = script.get("echo").and_then(Value::as_bool) == Some(true);
    let mut record: Object =
        [("id", stub_id(node)), ("name", format!("Stub of {node}"))].into_iter().collect();
    if echoes {
        record.insert("runner", "echo");
    } else {
        record.insert("runner", "scripted");
        record.insert("settings", script.clone());
    }
    record.into()
}
