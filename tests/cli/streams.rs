//! What goes to which stream: events and the result to the standard output, the rest elsewhere.

use std::collections::BTreeMap;

use engine::value::Value;

use super::{Desk, agents, at, flow, script, text};

#[test]
fn json_lines_are_events_in_order_and_the_result_at_the_end() {
    let desk = Desk::new();
    let flow = desk.write("flow.json", flow("Events", &["a", "b", "c"], &["a>b", "a>c"]));
    let agents = desk.write(
        "agents.json",
        agents(&[
            ("a", "process", &script("echo noise >&2; echo more noise; cat")),
            ("b", "scripted", r#"{"fail":"network","times":1,"then":2}"#),
            ("c", "echo", "{}"),
        ]),
    );
    let text_of = |path: &std::path::Path| path.display().to_string();
    let done = desk.run(&[
        "run",
        &text_of(&flow),
        "--agents",
        &text_of(&agents),
        "--trust",
        "--json",
        "--input",
        "[1]",
    ]);
    assert_eq!(done.code, 1, "{done:?}");
    let lines = done.lines();
    let (result, events) = lines.split_last().unwrap();
    assert_eq!(text(result, "type"), "result");
    let mut last = 0;
    let mut told: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for event in events {
        let seq = event.get("seq").and_then(Value::as_u64).unwrap();
        assert!(seq >= last, "{event:?} comes after record {last}");
        last = seq;
        for key in ["type", "timestamp", "executionId", "status"] {
            text(event, key);
        }
        assert_eq!(event.get("workflowId"), Some(&Value::Null), "a file has no workflow");
        let node = event.get("nodeId").and_then(Value::as_str).unwrap_or("").to_owned();
        told.entry(node).or_default().push(text(event, "type"));
    }
    assert_eq!(told[""], ["workflow.started", "workflow.failed"]);
    assert_eq!(told["a"], ["workflow.node.started", "workflow.node.completed"]);
    assert_eq!(told["b"], ["workflow.node.started", "workflow.node.failed"], "it has no policy");
    assert_eq!(told["c"], ["workflow.node.started", "workflow.node.completed"]);
}

#[test]
fn inputs_come_from_arguments_files_and_the_standard_input() {
    let desk = Desk::new();
    let flow = desk.write("flow.json", flow("In", &["demo-echo-agent"], &[]));
    let flow = flow.display().to_string();
    let input = desk.write("input.json", "\u{feff}{\r\n \"from\": \"file\"\r\n}\r\n");
    let from_file = format!("@{}", input.display());
    let output = |done: &super::Done| done.result().get("output").unwrap().to_json();
    let done = desk.run(&["run", &flow, "--json", "--input", &from_file]);
    assert_eq!(output(&done), r#"{"from":"file"}"#);
    let mut command = desk.command(&["run", &flow, "--json", "--input", "-"]);
    command.stdin(std::fs::File::open(&input).unwrap());
    let done = super::Done::from(command.output().unwrap());
    assert_eq!(output(&done), r#"{"from":"file"}"#);
    let done = desk.run(&["run", &flow, "--json"]);
    assert_eq!(output(&done), "{}");
}

#[test]
fn long_values_are_references_that_show_resolves() {
    let desk = Desk::new();
    let flow = desk.write("flow.json", flow("Long", &["a", "b"], &["a>b"]));
    let printer = script(
        r#"awk 'BEGIN { printf "\""; for (i = 0; i < 20000; i++) printf "é"; print "\"" }'"#,
    );
    let agents =
        desk.write("agents.json", agents(&[("a", "process", &printer), ("b", "echo", "{}")]));
    let (flow, agents) = (flow.display().to_string(), agents.display().to_string());
    let done = desk.run(&["run", &flow, "--agents", &agents, "--trust", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let result = done.result();
    let digest = text(result.get("output").unwrap(), "$blob").to_owned();
    assert_eq!(at(&result, &["output", "bytes"]).unwrap().to_json(), "40002");
    assert_eq!(text(at(&result, &["nodes", "b", "input"]).unwrap(), "$blob"), digest);
    let id = text(&result, "executionId");
    let printed = desk.prints(&["show", id, "--blob", &digest]);
    assert_eq!(printed.trim_end(), format!("\"{}\"", "é".repeat(20_000)));
    let shown = desk.prints(&["show", id]);
    assert!(shown.contains(&digest), "show says how to print it: {shown}");
}

#[test]
fn a_reader_that_goes_away_does_not_end_the_run() {
    let desk = Desk::new();
    let flow = desk.write("flow.json", flow("Unread", &["a", "b"], &["a>b"]));
    let mark = desk.path("mark");
    let slow = script(&format!("sleep 0.3; touch '{}'; echo 1", mark.display()));
    let agents = desk.write("agents.json", agents(&[("a", "echo", "{}"), ("b", "process", &slow)]));
    let (flow, agents) = (flow.display().to_string(), agents.display().to_string());
    let mut command = desk.command(&["run", &flow, "--agents", &agents, "--trust", "--json"]);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(mark.exists());
}

#[test]
fn what_an_agent_prints_cannot_move_the_cursor() {
    let desk = Desk::new();
    let flow = desk.write("flow.json", flow("\\u001b[2JName", &["a"], &[]));
    let evil = script(r#"printf '\033[2J\033]0;x\007evil\n' >&2; printf '"\\u001b[31m<script>"'"#);
    let agents = desk.write("agents.json", agents(&[("a", "process", &evil)]));
    let (flow, agents) = (flow.display().to_string(), agents.display().to_string());
    let done = desk.run(&["run", &flow, "--agents", &agents, "--trust"]);
    assert_eq!(done.code, 0, "{done:?}");
    let is_harmless = |text: &str| text.chars().all(|c| c == '\n' || !c.is_control());
    assert!(is_harmless(&done.stdout) && is_harmless(&done.stderr), "{done:?}");
    assert!(done.stdout.contains("<script>") && done.stdout.contains("evil"), "{done:?}");
}

#[test]
fn colour_comes_only_where_it_is_wanted() {
    let desk = Desk::new();
    let flow = desk.write("flow.json", flow("Plain", &["demo-echo-agent"], &[]));
    let flow = flow.display().to_string();
    assert!(!desk.prints(&["run", &flow]).contains('\x1b'), "a pipe gets none");
    assert!(desk.prints(&["run", &flow, "--color", "always"]).contains('\x1b'));
    let mut command = desk.command(&["run", &flow, "--color", "always"]);
    let output = command.env("NO_COLOR", "1").output().unwrap();
    assert!(output.stdout.contains(&0x1b), "an option counts more than the environment");
}

#[test]
fn completions_are_scripts_for_the_shell() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = desk.prints(&["completions", shell]);
        assert!(script.contains("cyanotype") && script.contains("validate"), "{shell}");
    }
    assert!(!desk.home().exists(), "no data folder is made for it");
}
