//! Import and export with the real binary.

use std::collections::BTreeSet;

use engine::value::Value;

use super::{Desk, flow, text};

/// Imports a file and gives the ids of its drafts.
fn import(desk: &Desk, file: &str) -> Vec<String> {
    let printed = desk.prints(&["import", file, "--json"]);
    printed.lines().map(|line| text(&Value::parse(line).unwrap(), "id").to_owned()).collect()
}

/// The lines of an exported file but for what each record has of its own.
fn comparable(text: &str) -> Vec<&str> {
    let own = ["  \"id\": ", "  \"name\": ", "  \"createdAt\": ", "  \"updatedAt\": "];
    text.lines().filter(|line| !own.iter().any(|own| line.starts_with(own))).collect()
}

#[test]
fn o_i02_importing_never_touches_what_is_there() {
    let desk = Desk::new();
    let file = desk.write("daily.json", flow("Daily", &["demo-echo-agent"], &[]));
    let file = file.display().to_string();
    let [daily] = &import(&desk, &file)[..] else { panic!("one draft") };
    desk.prints(&["publish", daily]);
    let before = desk.prints(&["export", daily]);
    let same = desk.write("same.json", &before).display().to_string();
    let mut ids = BTreeSet::from([daily.clone()]);
    ids.extend(import(&desk, &same));
    ids.extend(import(&desk, &same));
    let two = desk.write("two.json", format!("[{before},{before}]")).display().to_string();
    ids.extend(import(&desk, &two));
    let numeric = before.replace(&format!("\"id\": \"{daily}\""), "\"id\": 1");
    let numeric = desk.write("numeric.json", numeric).display().to_string();
    ids.extend(import(&desk, &numeric));
    assert_eq!(ids.len(), 6, "every import makes a record of its own");
    assert_eq!(desk.prints(&["export", daily]), before, "the published one is unchanged");
    let listed = desk.prints(&["list", "workflows", "--json"]);
    let names: BTreeSet<String> =
        listed.lines().map(|line| text(&Value::parse(line).unwrap(), "name").to_owned()).collect();
    assert!(names.contains("Daily (Copy)") && names.contains("Daily (Copy 2)"), "{names:?}");
    let replaced = desk.run(&["import", &file, "--replace", daily, "--expected-version", "7"]);
    assert_eq!(replaced.code, 2);
    assert!(replaced.stderr.contains("Conflict: workflow was modified"), "{replaced:?}");
    desk.prints(&["import", &file, "--replace", daily, "--expected-version", "2"]);
}

#[test]
fn o_i05_every_field_comes_back_also_those_that_nobody_knows() {
    let desk = Desk::new();
    let note = r#""x-note":{"n":1.0,"z":[],"a":{}}"#;
    let full = format!(
        r#"{{"$schema":"cyanotype.schema.json","version":"1.0.0","id":"w","name":"Full","description":"d",
        "createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z",
        "configuration":{{"parameters":{{"p":1}},"x":true}},"inputSchema":{{"type":"object"}},
        "finalOutput":"a","timeout":60,"onFailure":"continue",
        "nodes":[{{"id":"a","type":"agent","typeVersion":1,"name":"A","agentId":"demo-echo-agent",
          "position":{{"x":1,"y":2.50}},"configuration":{{"k":"v"}},"inputs":{{"q":"{{{{ input.q }}}}"}},
          "retryPolicy":{{"maxRetries":1,"backoffBase":2,"backoffMax":9,"retryableErrors":["E"],
            "strategy":"fixed",{note}}},
          "timeout":5,"onFailure":"stop","disabled":false,"compensation":{{"tool":"undo"}},
          "join":"all","constraints":{{"c":1}},"body":{{"nodes":[]}},{note}}},
          {{"id":"b","agentId":"demo-echo-agent"}}],
        "edges":[{{"id":"e","source":"a","target":"b","sourceHandle":"output",
          "targetHandle":"input","condition":{{"field":"f","operator":"exists"}},{note}}}],
        "metadata":{{"author":"me","tags":["t"],"category":"c","more":null}},{note}}}"#
    );
    let file = desk.write("full.json", &full).display().to_string();
    let [first] = &import(&desk, &file)[..] else { panic!("one draft") };
    let first = desk.prints(&["export", first]);
    assert_eq!(first.matches("\"x-note\"").count(), 4, "{first}");
    let mut previous = first.clone();
    for round in 0..2 {
        let file = desk.write("round.json", &previous).display().to_string();
        let [id] = &import(&desk, &file)[..] else { panic!("one draft") };
        let next = desk.prints(&["export", id]);
        assert_eq!(comparable(&next), comparable(&first), "round {round}");
        previous = next;
    }
}

#[test]
fn an_export_into_a_folder_gets_a_clean_name_and_replaces_nothing() {
    let desk = Desk::new();
    let file = desk.write("odd.json", flow("../../etc/x", &["demo-echo-agent"], &[]));
    let [id] = &import(&desk, &file.display().to_string())[..] else { panic!("one draft") };
    let folder = desk.path("out");
    std::fs::create_dir(&folder).unwrap();
    let out = folder.display().to_string();
    desk.prints(&["export", id, "--output", &out]);
    desk.prints(&["export", id, "--output", &out]);
    let names: BTreeSet<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|name| name.ends_with(".cyanotype.json")), "{names:?}");
    let taken = folder.join(names.first().unwrap()).display().to_string();
    let refused = desk.run(&["export", id, "--output", &taken]);
    assert_eq!(refused.code, 2, "{refused:?}");
    desk.prints(&["export", id, "--output", &taken, "--force"]);
}

#[test]
fn a_template_of_another_program_is_called_by_its_format() {
    let desk = Desk::new();
    let file = desk.write(
        "template.json",
        r#"{"name":"deep-research","version":1,"root":{"kind":"sequence","children":[]}}"#,
    );
    let file = file.display().to_string();
    for arguments in [&["run", &file][..], &["import", &file], &["validate", &file]] {
        let done = desk.run(arguments);
        assert_eq!(done.code, 2, "{done:?}");
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(said.contains("PersonalClaw") && said.contains("deep-research"), "{said}");
    }
}
