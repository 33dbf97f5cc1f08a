//! Files that other products have written. They are not part of the repository: the folder
//! `CYANOTYPE_REAL_FILES` (or `../shared/real` beside the repository) holds them where they are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::agent::{Agent, AgentSet, PinnedAgent, RunnerKind};
use engine::definition::{self, Definition, FileError};
use engine::plan::compile::compile;
use engine::plan::diagnostic::{Code, Diagnostic};
use engine::value::Value;

use crate::definition_format::{assert_valid, validator};

/// The files below a folder of real files, by name; `None`, with a word about it, if there are none.
pub fn real_files(folder: &str) -> Option<BTreeMap<String, Vec<u8>>> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/real");
    let root = std::env::var_os("CYANOTYPE_REAL_FILES").map_or_else(default, PathBuf::from);
    let Ok(entries) = fs::read_dir(root.join(folder)) else {
        println!("skipped, no real files");
        return None;
    };
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let json = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let files = json.map(|path| {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        (name, fs::read(&path).expect("the file can be read"))
    });
    Some(files.collect())
}

fn open(name: &str, bytes: &[u8]) -> Definition {
    let mut read = definition::read_file(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(read.len(), 1, "{name}");
    let read = read.remove(0);
    assert_eq!(read.notes, [], "{name}");
    read.definition
}

/// An agent set in which every agent that a definition names echoes.
fn all_agents(definition: &Definition) -> AgentSet {
    let ids = definition.nodes.iter().filter_map(|node| node.agent_id.as_deref());
    let agents = ids.map(|id| Agent::new(id, id, RunnerKind::Echo));
    agents.map(|agent| (agent.id.clone(), Arc::new(PinnedAgent::new(agent)))).collect()
}

fn errors(definition: &Definition, agents: &AgentSet) -> Vec<Diagnostic> {
    let found = compile(definition, agents).diagnostics;
    found.into_iter().filter(Diagnostic::is_error).collect()
}

#[test]
fn files_of_the_first_cloud_product_open_unchanged() {
    let Some(files) = real_files("citadel") else { return };
    assert_eq!(files.len(), 6);
    let validator = validator();
    for (name, bytes) in &files {
        let value = Value::parse(std::str::from_utf8(bytes).expect("UTF-8")).expect("JSON");
        assert_valid(&validator, name, &value);
        let definition = open(name, bytes);
        assert_eq!(definition.to_file(), format!("{}\n", value.to_json_pretty()), "{name}");
        assert_eq!(definition.unknown_fields(), [], "{name}");
    }
}

#[test]
fn templates_of_the_first_cloud_product_run_once_their_agents_are_mapped() {
    let Some(files) = real_files("citadel") else { return };
    for (name, bytes) in &files {
        let definition = open(name, bytes);
        let before = errors(&definition, &AgentSet::new());
        let expected = [Code::PlaceholderAgent, Code::UnknownAgent];
        assert!(before.iter().all(|found| expected.contains(&found.code)), "{name}: {before:?}");
        assert_eq!(before.len(), definition.nodes.len(), "{name}");
        let compiled = compile(&definition, &all_agents(&definition));
        assert_eq!(compiled.diagnostics, [], "{name}");
        assert!(compiled.plan.is_some(), "{name}");
    }
    let echo = PinnedAgent::new(Agent::built_in_echo());
    let machine = AgentSet::from([(Agent::ECHO_ID.into(), Arc::new(echo))]);
    let demo = open("echo demo", &files["echo-demo-workflow.json"]);
    assert_eq!(errors(&demo, &machine), [], "the demo runs as it is");
}

#[test]
fn templates_of_another_product_are_called_by_its_name() {
    let Some(files) = real_files("personalclaw") else { return };
    assert!(files.len() > 10);
    for (name, bytes) in &files {
        let error = definition::read_file(bytes).expect_err(name);
        assert!(matches!(error, FileError::OtherFormat { .. }), "{name}: {error}");
        let called = format!("{:?}", name.trim_end_matches(".json"));
        let message = error.to_string();
        assert!(message.contains("PersonalClaw workflow template"), "{message}");
        assert!(message.contains(&called), "{name}: {message}");
    }
}

#[test]
fn the_definitions_of_the_semantics_cases_compile() {
    let Some(files) = real_files("../cases") else { return };
    let Some(bytes) = files.get("semantics.json") else { return };
    let cases = Value::parse(std::str::from_utf8(bytes).expect("UTF-8")).expect("JSON");
    let cases = cases.get("cases").and_then(Value::as_array).expect("a list of cases");
    assert!(cases.len() > 200);
    let validator = validator();
    for case in cases {
        let name = case.get("id").and_then(Value::as_str).expect("a case has an id");
        let value = case.get("definition").expect("a case has a definition");
        assert_valid(&validator, name, value);
        let definition = open(name, value.to_json().as_bytes());
        assert_eq!(definition.to_value().to_canonical(), value.to_canonical(), "{name}");
        let errors = errors(&definition, &all_agents(&definition));
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}
