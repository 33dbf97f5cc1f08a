//! O-S03: opening a file runs nothing, and a command runs only after consent to exactly it.

use engine::value::Value;

use super::{Desk, agents, flow, script, text};

#[test]
fn o_s03_nothing_runs_before_consent_and_a_change_asks_again() {
    let desk = Desk::new();
    let marker = desk.path("marker");
    let touch = script(&format!("touch '{}'; echo 1", marker.display()));
    let flow = desk.write("flow.json", flow("Touch", &["a"], &[])).display().to_string();
    let bring = |name: &str, settings: &str| {
        desk.write(name, agents(&[("a", "process", settings)])).display().to_string()
    };
    let file = bring("agents.json", &touch);
    desk.prints(&["import", &flow]);
    desk.prints(&["validate", &flow, "--agents", &file]);
    for arguments in [&["run", &flow, "--agents", &file][..], &["agents", "import", &file]] {
        let refused = desk.run(arguments);
        assert_eq!(refused.code, 2, "{refused:?}");
        let arguments = Value::parse(&touch).unwrap().get("args").unwrap().to_json();
        for said in [r#"program      "sh""#, &arguments, "folder", "environment", "--trust"] {
            assert!(refused.stderr.contains(said), "{said} is missing in {refused:?}");
        }
        assert_eq!(refused.stdout, "");
    }
    assert!(!marker.exists(), "nothing has run");
    let done = desk.run(&["run", &flow, "--agents", &file, "--trust"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(marker.exists(), "after consent it runs");
    std::fs::remove_file(&marker).unwrap();
    let again = desk.run(&["run", &flow, "--agents", &file]);
    assert_eq!(again.code, 0, "consent to a content holds: {again:?}");
    std::fs::remove_file(&marker).unwrap();
    let other = bring("other.json", &touch.replace("echo 1", "echo 2"));
    let refused = desk.run(&["run", &flow, "--agents", &other]);
    assert_eq!(refused.code, 2, "one character more is another content: {refused:?}");
    assert!(!marker.exists());
}

#[test]
fn imported_agents_are_of_this_machine_from_then_on() {
    let desk = Desk::new();
    let file = desk.write(
        "agents.json",
        agents(&[("a", "process", &script("echo 41")), ("b", "scripted", r#"{"out":1}"#)]),
    );
    let file = file.display().to_string();
    let flow = desk.write("flow.json", flow("Own", &["a"], &[])).display().to_string();
    let missing = desk.run(&["run", &flow]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("unknownAgent"), "{missing:?}");
    assert_eq!(desk.prints(&["agents", "import", &file, "--trust"]), "added a\nadded b\n");
    assert_eq!(desk.run(&["run", &flow, "--json"]).result().get("output"), Some(&41.into()));
    let shown = desk.prints(&["agents", "show", "a", "--json"]);
    let shown = Value::parse(shown.trim()).unwrap();
    assert_eq!(text(shown.get("agent").unwrap(), "runner"), "process");
    let imported = desk.prints(&["import", &flow, "--json"]);
    let id = text(&Value::parse(imported.trim()).unwrap(), "id").to_owned();
    desk.prints(&["publish", &id]);
    let refused = desk.run(&["agents", "remove", "a"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("Own"), "it names what uses it: {refused:?}");
    desk.prints(&["publish", &id, "--undo"]);
    desk.prints(&["agents", "remove", "a"]);
    assert_eq!(desk.run(&["agents", "show", "a"]).code, 2);
}

#[test]
fn agents_of_a_file_are_for_one_execution_and_hide_those_of_the_machine() {
    let desk = Desk::new();
    let flow = desk.write("flow.json", flow("Own", &["a"], &[])).display().to_string();
    let own = desk.write("own.json", agents(&[("a", "scripted", r#"{"out":1}"#)]));
    desk.prints(&["agents", "import", &own.display().to_string()]);
    let other = desk.write("other.json", agents(&[("a", "scripted", r#"{"out":2}"#)]));
    let other = other.display().to_string();
    let done = desk.run(&["run", &flow, "--agents", &other, "--json"]);
    assert_eq!(done.result().get("output"), Some(&2.into()));
    let done = desk.run(&["run", &flow, "--json"]);
    assert_eq!(done.result().get("output"), Some(&1.into()));
}
