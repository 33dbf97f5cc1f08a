//! Files of other products through the command line.

use std::collections::BTreeSet;
use std::path::PathBuf;

use engine::definition::Definition;
use engine::value::Value;

use super::{Desk, agents, text};
use crate::field::real_files::real_files;

#[test]
fn files_of_the_first_cloud_product_import_export_and_run() {
    let Some(files) = real_files("citadel") else { return };
    for (name, bytes) in &files {
        let desk = Desk::new();
        let file = desk.write(name, bytes);
        let imported = desk.prints(&["import", &file.display().to_string(), "--json"]);
        let id = text(&Value::parse(imported.trim()).unwrap(), "id").to_owned();
        let exported = desk.prints(&["export", &id]);
        let again = desk.write("again.json", &exported).display().to_string();
        let imported = desk.prints(&["import", &again, "--json"]);
        let second = text(&Value::parse(imported.trim()).unwrap(), "id").to_owned();
        let own = |line: &&str| {
            !["  \"id\":", "  \"name\":", "  \"createdAt\":", "  \"updatedAt\":"]
                .iter()
                .any(|own| line.starts_with(own))
        };
        let exported_again = desk.prints(&["export", &second]);
        assert_eq!(
            exported_again.lines().filter(own).collect::<Vec<_>>(),
            exported.lines().filter(own).collect::<Vec<_>>(),
            "{name}"
        );
        run_once_mapped(&desk, file, bytes);
    }
}

/// Runs a file with an agent in place of each that it names, the demo's own as it is.
fn run_once_mapped(desk: &Desk, file: PathBuf, bytes: &[u8]) {
    let value = Value::parse(std::str::from_utf8(bytes).unwrap()).unwrap();
    let mut definition = Definition::from_value(value).unwrap();
    let mut ids = BTreeSet::new();
    for node in &mut definition.nodes {
        let agent = node.agent_id.as_mut().expect("every node of these names an agent");
        if agent != "demo-echo-agent" {
            *agent = agent.replace("placeholder-", "our-");
            ids.insert(agent.clone());
        }
    }
    let routes = r#"{"out":{"result":{"route":"branch-a","status":"approved"}}}"#;
    let mapped: Vec<(&str, &str, &str)> =
        ids.iter().map(|id| (id.as_str(), "scripted", routes)).collect();
    let agents = desk.write("mapped.agents.json", agents(&mapped)).display().to_string();
    let mapped = desk.write("mapped.json", definition.to_file()).display().to_string();
    let file = if ids.is_empty() { file.display().to_string() } else { mapped };
    let done = desk.run(&["run", &file, "--agents", &agents, "--json"]);
    assert_eq!(done.code, 0, "{file}: {done:?}");
    assert_eq!(text(&done.result(), "status"), "completed");
}

#[test]
fn templates_of_the_agent_product_are_called_by_their_format() {
    let Some(files) = real_files("personalclaw") else { return };
    let desk = Desk::new();
    for (name, bytes) in &files {
        let file = desk.write(name, bytes).display().to_string();
        let done = desk.run(&["run", &file]);
        assert_eq!(done.code, 2, "{name}: {done:?}");
        assert!(done.stderr.contains("PersonalClaw"), "{name}: {done:?}");
    }
}
