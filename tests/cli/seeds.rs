//! The blueprints that the program brings along.

use engine::value::Value;

use super::{Desk, text};

#[test]
fn the_shipped_blueprints_are_listed_and_the_demo_runs_at_once() {
    let desk = Desk::new();
    let listed = desk.prints(&["list", "blueprints", "--json"]);
    let lines: Vec<Value> = listed.lines().map(|line| Value::parse(line).unwrap()).collect();
    let find = |name: &str| {
        let found = lines.iter().find(|line| text(line, "name") == name);
        text(found.unwrap_or_else(|| panic!("{name} is missing")), "id").to_owned()
    };
    for name in [
        "Sequential Agent Pipeline",
        "Parallel Fan-Out",
        "Conditional Router",
        "Data Processing Pipeline",
    ] {
        let refused = desk.run(&["run", &find(name)]);
        assert_eq!(refused.code, 2, "{name} has placeholders: {refused:?}");
        assert!(refused.stderr.contains("placeholderAgent"), "{refused:?}");
    }
    let done = desk.run(&["run", &find("Echo Demo Workflow"), "--json", "--input", "[1.0]"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.result().get("output").unwrap().to_json(), "[1.0]");
}

#[test]
fn a_shipped_agent_runs_only_after_consent() {
    let desk = Desk::new();
    let folder = desk.path("looked-at");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "text\n").unwrap();
    let listed = desk.prints(&["list", "blueprints", "--json"]);
    let line = listed.lines().find(|line| line.contains("Folder Inventory")).unwrap();
    let id = text(&Value::parse(line).unwrap(), "id").to_owned();
    let input = format!(r#"{{"folder":{}}}"#, Value::from(folder.display().to_string()).to_json());
    let refused = desk.run(&["run", &id, "--input", &input]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("folder-facts"), "{refused:?}");
}
