//! Numbers keep their digits from one end to the other.

use engine::value::Value;

use super::{Desk, agents, at, flow, script, text};

#[test]
fn o_c02_digits_survive_processes_conditions_storage_and_export() {
    // Beside each number another one that a double cannot tell from it.
    for (number, below) in [
        ("17169973925117969", "17169973925117968"),
        ("18446744073709551615", "18446744073709551614"),
        ("123456789012345678901234567890", "123456789012345678901234567889"),
    ] {
        let desk = Desk::new();
        let text_of_flow = format!(
            r#"{{"version":"1.0.0","name":"Digits","nodes":[
                {{"id":"out","agentId":"out"}},{{"id":"cat","agentId":"cat"}},
                {{"id":"same","agentId":"cat","inputs":{{"id":"{{{{ nodes.cat.output.id }}}}"}}}},
                {{"id":"wrong","agentId":"cat"}}],
              "edges":[{{"id":"1","source":"out","target":"cat"}},
                {{"id":"2","source":"cat","target":"same",
                  "condition":{{"field":"id","operator":"greaterThan","value":{below}}}}},
                {{"id":"3","source":"cat","target":"wrong",
                  "condition":{{"field":"id","operator":"equals","value":{below}}}}}],
              "metadata":{{"largest":{number}}}}}"#
        );
        let flow = desk.write("flow.json", &text_of_flow);
        let keep = desk.path("stdin");
        let agents = desk.write(
            "agents.json",
            agents(&[
                ("out", "process", &script(&format!("echo '{{\"id\": {number}}}'"))),
                ("cat", "process", &script(&format!("tee -a '{}'", keep.display()))),
            ]),
        );
        let (flow, agents) = (flow.display().to_string(), agents.display().to_string());
        let done = desk.run(&["run", &flow, "--agents", &agents, "--trust", "--json"]);
        assert_eq!(done.code, 0, "{done:?}");
        let result = done.result();
        let expected = format!(r#"{{"id":{number}}}"#);
        assert_eq!(at(&result, &["nodes", "same", "output"]).unwrap().to_json(), expected);
        assert_eq!(text(at(&result, &["nodes", "wrong"]).unwrap(), "status"), "skipped");
        let stdin = std::fs::read_to_string(&keep).unwrap();
        assert_eq!(stdin.matches(&expected).count(), 2, "what the agents were given: {stdin}");
        let shown = desk.prints(&["show", text(&result, "executionId")]);
        assert!(shown.contains(number), "{shown}");
        let imported = desk.prints(&["import", &flow, "--json"]);
        let id = text(&Value::parse(imported.trim()).unwrap(), "id").to_owned();
        let exported = desk.prints(&["export", &id]);
        assert!(exported.contains(&format!("\"largest\": {number}")), "{exported}");
        assert!(exported.contains(&format!("\"value\": {below}")), "{exported}");
    }
}

#[test]
fn a_number_that_cannot_be_held_is_refused_and_named() {
    let desk = Desk::new();
    let flow = desk.write("flow.json", flow("In", &["demo-echo-agent"], &[]));
    let done = desk.run(&["run", &flow.display().to_string(), "--input", "{\"n\": 1e400}"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("1e400") && done.stderr.contains("column 7"), "{done:?}");
}
