//! The same cases through the command line, with scripted and echo runners.

use std::fs;
use std::path::Path;

use engine::value::{Object, Value};

use super::compare::{Observed, ObservedNode};
use super::reader::{SemanticsCase, all_cases};
use super::{end_reached, right_ends};
use crate::binary;

/// Binaries that run at the same time, all on one data folder.
const PROCESSES_AT_ONCE: usize = 4;

/// Runs a case, and gives what its `result` line shows.
fn observe(home: &Path, case: &SemanticsCase) -> Result<Observed, String> {
    let file = |kind: &str| home.join(format!("{}.{kind}.json", case.id));
    let (definition, agents) = (file("workflow"), file("agents"));
    fs::write(&definition, case.definition_file()).map_err(|error| error.to_string())?;
    fs::write(&agents, case.agents_file()).map_err(|error| error.to_string())?;
    let (definition, agents) = (definition.to_string_lossy(), agents.to_string_lossy());
    let input = case.input.as_ref().map(Value::to_json);
    let mut arguments = vec!["run", &*definition, "--agents", &*agents, "--trust", "--json"];
    arguments.extend(input.as_deref().into_iter().flat_map(|input| ["--input", input]));
    let output = binary::cyanotype(home, &arguments).output().map_err(|error| error.to_string())?;
    let stdout = String::from_utf8(output.stdout).map_err(|error| error.to_string())?;
    let line = stdout.lines().last().unwrap_or_default();
    let result = Value::parse(line).map_err(|error| {
        format!("{error} in {line:?}, {}", String::from_utf8_lossy(&output.stderr))
    })?;
    Ok(read(&result))
}

fn read(result: &Value) -> Observed {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let empty = Object::new();
    let nodes = result.get("nodes").and_then(Value::as_object).unwrap_or(&empty);
    let nodes = nodes.iter().map(|(id, node)| {
        let seen = ObservedNode {
            status: text(node, "status").unwrap_or_default(),
            attempts: node.get("attempts").and_then(Value::as_u64).unwrap_or_default(),
            input: node.get("input").cloned(),
            reason: text(node, "reason"),
        };
        (id.clone(), seen)
    });
    Observed {
        status: text(result, "status").unwrap_or_default(),
        output: result.get("output").cloned().unwrap_or_default(),
        has_error_note: result.get("error").is_some_and(|error| !error.is_null()),
        nodes: nodes.collect(),
    }
}

#[test]
fn every_case_ends_as_the_rules_say_on_the_command_line() {
    let home = tempfile::tempdir().expect("a folder for the test");
    binary::path();
    let cases = all_cases();
    let share = cases.len().div_ceil(PROCESSES_AT_ONCE);
    let problem = |case: &SemanticsCase| {
        let reached =
            observe(home.path(), case).and_then(|seen| end_reached(&right_ends(case), &seen));
        reached.err().map(|problem| format!("{} ({}):\n{problem}\n", case.id, case.shows))
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = cases
            .chunks(share)
            .map(|cases| scope.spawn(|| cases.iter().filter_map(problem).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no case panics")).collect()
    });
    assert!(failed.is_empty(), "{} cases failed:\n{}", failed.len(), failed.join("\n"));
}
