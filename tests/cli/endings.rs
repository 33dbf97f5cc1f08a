//! How a run ends, as an exit code and as the last line of `--json`.

use engine::value::Value;

use super::{Desk, agents, at, flow, script, text};

/// Runs a flow with agents and gives the exit code and the result.
fn run(flow: &str, agents: &str) -> (i32, Value) {
    let desk = Desk::new();
    let flow = desk.write("flow.json", flow);
    let agents = desk.write("agents.json", agents);
    let (flow, agents) = (flow.display().to_string(), agents.display().to_string());
    let done = desk.run(&["run", &flow, "--agents", &agents, "--trust", "--json"]);
    (done.code, done.result())
}

#[test]
fn a_completed_run_ends_with_0() {
    let flow = flow("Fine", &["a", "b"], &["a>b"]);
    let agents = agents(&[("a", "scripted", r#"{"out":1.0}"#), ("b", "echo", "{}")]);
    let (code, result) = run(&flow, &agents);
    assert_eq!(code, 0);
    assert_eq!(text(&result, "status"), "completed");
    assert_eq!(result.get("output").map(Value::to_json).as_deref(), Some("1.0"));
    assert!(result.get("error").is_none(), "{result:?}");
    let b = at(&result, &["nodes", "b"]).unwrap();
    assert_eq!(text(b, "status"), "completed");
    assert_eq!(b.get("attempts").unwrap().to_json(), "1");
    assert_eq!(b.get("input").unwrap().to_json(), "1.0");
    assert!(text(b, "startedAt").ends_with('Z') && text(b, "completedAt").ends_with('Z'));
}

#[test]
fn a_failed_run_ends_with_1_and_says_which_node_and_what_to_do() {
    let flow = flow("Broken", &["a", "b"], &["a>b"]);
    let agents = agents(&[("a", "scripted", r#"{"fail":"Oops"}"#), ("b", "echo", "{}")]);
    let (code, result) = run(&flow, &agents);
    assert_eq!(code, 1);
    assert_eq!(text(&result, "status"), "failed");
    assert_eq!(result.get("output"), Some(&Value::Null));
    let error = result.get("error").unwrap();
    assert_eq!(text(error, "class"), "agentError");
    assert_eq!(text(error, "errorType"), "Oops");
    assert!(!text(error, "recommendedAction").is_empty());
    assert_eq!(error.get("nodes").unwrap().to_json(), r#"["a"]"#);
    let b = at(&result, &["nodes", "b"]).unwrap();
    assert_eq!((text(b, "status"), text(b, "reason")), ("failed", "upstreamFailed"));
    assert_eq!(b.get("attempts").unwrap().to_json(), "0");
    assert!(b.get("input").is_none(), "a node that never started has no input");
}

#[test]
fn an_attempts_timeout_is_a_failure_and_the_executions_own_timeout_ends_with_4() {
    let slow = script("sleep 60");
    let node =
        r#"{"name":"Slow node","nodes":[{"id":"a","agentId":"a","timeout":0.2}],"edges":[]}"#;
    let (code, result) = run(node, &agents(&[("a", "process", &slow)]));
    assert_eq!(code, 1);
    assert_eq!(text(result.get("error").unwrap(), "class"), "timeout");
    let whole = r#"{"name":"Slow run","timeout":0.3,
        "nodes":[{"id":"a","agentId":"a"},{"id":"b","agentId":"a"}],
        "edges":[{"id":"e","source":"a","target":"b"}]}"#;
    let (code, result) = run(whole, &agents(&[("a", "process", &slow)]));
    assert_eq!(code, 4);
    assert_eq!(text(&result, "status"), "failed");
    assert_eq!(text(result.get("error").unwrap(), "class"), "timeout");
    assert_eq!(text(at(&result, &["nodes", "b"]).unwrap(), "status"), "cancelled");
}

#[test]
fn a_tolerated_failure_completes_with_an_error_note() {
    let flow = r#"{"name":"Tolerant","nodes":[
        {"id":"a","agentId":"a","onFailure":"continue"},{"id":"b","agentId":"b"}],
        "edges":[{"id":"e","source":"a","target":"b"}]}"#;
    let agents = agents(&[("a", "scripted", r#"{"fail":"Oops"}"#), ("b", "echo", "{}")]);
    let (code, result) = run(flow, &agents);
    assert_eq!(code, 0);
    let error = result.get("error").unwrap();
    assert_eq!(error.get("nodes").unwrap().to_json(), r#"["a"]"#);
    let input = at(&result, &["nodes", "b", "input", "$failed"]).unwrap();
    assert_eq!(text(input, "errorType"), "Oops");
}

#[test]
fn wrong_usage_and_wrong_files_end_with_2_and_run_nothing() {
    let desk = Desk::new();
    let broken = desk.write("broken.json", "{\n  \"nodes\": [\n    {\"id\": \"a\"},\n  ]\n}");
    let broken = broken.display().to_string();
    let good = desk.write("good.json", flow("Good", &["demo-echo-agent"], &[]));
    let good = good.display().to_string();
    for (arguments, said) in [
        (&["dance"][..], "dance"),
        (&["run", "no-such-file.json"], "no-such-file.json"),
        (&["run", "01a22e10-b561-70fa-8e9c-7892acb7b607"], "Workflow not found"),
        (&["run", &broken], "line 3, column 16"),
        (&["run", &good, "--input", "{\"a\":1,}"], "line 1, column 7"),
        (&["run", &good, "--draft"], "--draft"),
        (&["show", "01a22e10-b561-70fa-8e9c-7892acb7b607"], "Execution not found"),
        (&["cancel", "01a22e10-b561-70fa-8e9c-7892acb7b607"], "Execution not found"),
        (&["resume", "01a22e10-b561-70fa-8e9c-7892acb7b607"], "Execution not found"),
        (&["list", "--status", "happy"], "happy"),
        (&["agents", "show", "nobody"], "Agent not found"),
        (&["export", "nothing"], "nothing"),
    ] {
        let done = desk.run(arguments);
        assert_eq!(done.code, 2, "{arguments:?}: {done:?}");
        assert!(done.stderr.contains(said), "{arguments:?}: {done:?}");
        assert_eq!(done.stdout, "", "{arguments:?}");
    }
    assert!(desk.prints(&["list"]).starts_with("no executions"));
}

#[test]
fn a_data_folder_that_cannot_be_used_ends_with_6() {
    let desk = Desk::new();
    let file = desk.write("file", "in the way").display().to_string();
    let done = desk.run(&["--home", &file, "list"]);
    assert_eq!(done.code, 6, "{done:?}");
    assert!(done.stderr.contains("CYANOTYPE_HOME"), "it says what to do: {done:?}");
    std::fs::create_dir_all(desk.home()).unwrap();
    std::fs::write(desk.home().join("cyanotype.db"), "this is no database, but a long text file")
        .unwrap();
    let done = desk.run(&["list"]);
    assert_eq!(done.code, 6, "{done:?}");
    let kept = std::fs::read_to_string(desk.home().join("cyanotype.db")).unwrap();
    assert!(kept.starts_with("this is no database"), "what is there is left as it is");
}

#[test]
fn an_input_is_checked_against_the_schema_and_its_defaults_are_filled_in() {
    let desk = Desk::new();
    let flow = desk.write(
        "flow.json",
        r#"{"name":"Checked","nodes":[{"id":"a","agentId":"demo-echo-agent"}],"edges":[],
            "inputSchema":{"type":"object","required":["n"],
                "properties":{"n":{"type":"integer"},"m":{"default":7}}}}"#,
    );
    let flow = flow.display().to_string();
    let done = desk.run(&["run", &flow]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains('n'), "{done:?}");
    let done = desk.run(&["run", &flow, "--json", "--input", "{\"n\":1}"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.result().get("output").unwrap().to_json(), r#"{"n":1,"m":7}"#);
}

#[test]
fn the_same_key_gives_the_same_execution() {
    let desk = Desk::new();
    let flow = desk.write("flow.json", flow("Once", &["demo-echo-agent"], &[]));
    let flow = flow.display().to_string();
    let run = |input: &str| {
        desk.run(&["run", &flow, "--json", "--idempotency-key", "k", "--input", input])
    };
    let (first, second) = (run("1"), run("1"));
    assert_eq!((first.code, second.code), (0, 0));
    assert_eq!(first.result(), second.result());
    let other = run("2");
    assert_eq!(other.code, 2, "{other:?}");
    assert!(other.stderr.contains("was already used"), "{other:?}");
    assert_eq!(desk.prints(&["list"]).lines().count(), 1);
}

#[test]
fn only_published_workflows_run_unless_the_draft_is_tried() {
    let desk = Desk::new();
    let flow = desk.write("flow.json", flow("Mine", &["demo-echo-agent"], &[]));
    let imported = desk.prints(&["import", &flow.display().to_string(), "--json"]);
    let id = text(&Value::parse(imported.trim()).unwrap(), "id").to_owned();
    let refused = desk.run(&["run", &id]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("Only published workflows can be executed"), "{refused:?}");
    assert_eq!(desk.run(&["run", &id, "--draft"]).code, 0);
    desk.prints(&["publish", &id]);
    let done = desk.run(&["run", &id, "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(text(&done.lines()[0], "workflowId"), id);
    assert!(desk.prints(&["list"]).contains("Mine"));
    desk.prints(&["publish", &id, "--undo"]);
    assert_eq!(desk.run(&["run", &id]).code, 2);
}
