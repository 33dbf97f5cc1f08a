//! Exchange on a real store in a folder of its own.

use std::collections::BTreeSet;

use tempfile::TempDir;

use crate::app::{App, AppOptions};
use crate::library::{Kind, LibraryError};
use crate::store::workflow_table::WorkflowStatus;

const HERE: &str = "Personal";

async fn app() -> (TempDir, App) {
    let folder = TempDir::new().unwrap();
    let app = App::open(AppOptions::new(folder.path())).await.unwrap();
    (folder, app)
}

fn file(id: &str, name: &str) -> String {
    format!(
        r#"{{"version":"1.0.0","id":{id},"name":{},"nodes":[{{"id":"a","agentId":"demo-echo-agent","x-note":{{"n":1}}}}],"edges":[]}}"#,
        serde_json::to_string(name).unwrap()
    )
}

/// The text without what each record has of its own.
fn without_generated(text: &str) -> String {
    let mut value = engine::value::Value::parse(text).unwrap();
    let engine::value::Value::Object(object) = &mut value else { panic!("an object") };
    for key in ["id", "name", "createdAt", "updatedAt"] {
        object.remove(key);
    }
    value.to_json_pretty()
}

#[tokio::test]
async fn o_i02_import_always_makes_new_drafts_under_free_names() {
    let (_folder, app) = app().await;
    let first = app.import(HERE, file("\"w1\"", "Daily").as_bytes()).await.unwrap();
    let daily = first.imported[0].id;
    app.publish(HERE, daily, 1).await.unwrap();
    let before = app.workflow(HERE, daily).unwrap();
    let own_id = file(&format!("\"{daily}\""), "Daily");
    let mut ids = BTreeSet::from([daily]);
    for expected in ["Daily (Copy)", "Daily (Copy 2)"] {
        let report = app.import(HERE, own_id.as_bytes()).await.unwrap();
        let [imported] = &report.imported[..] else { panic!("{report:?}") };
        assert_eq!(imported.name, expected);
        assert_eq!(imported.renamed_from.as_deref(), Some("Daily"));
        assert!(ids.insert(imported.id));
        let draft = app.workflow(HERE, imported.id).unwrap();
        assert_eq!(draft.header.status, WorkflowStatus::Draft);
    }
    assert_eq!(app.workflow(HERE, daily).unwrap(), before, "the published one is untouched");
    let two = format!("[{},{}]", file("\"same\"", "Two"), file("\"same\"", "Two"));
    let report = app.import(HERE, two.as_bytes()).await.unwrap();
    let names: Vec<&str> = report.imported.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["Two", "Two (Copy)"]);
    assert_ne!(report.imported[0].id, report.imported[1].id);
    app.import(HERE, file("1", "Number").as_bytes()).await.unwrap();
}

#[tokio::test]
async fn one_bad_workflow_keeps_the_whole_file_out() {
    let (_folder, app) = app().await;
    let bad = format!(r#"[{},{{"nodes":[{{"id":"a"}},{{"id":"a"}}]}}]"#, file("1", "Good"));
    let error = app.import(HERE, bad.as_bytes()).await.unwrap_err();
    assert!(matches!(error, LibraryError::File(_)), "{error:?}");
    let edges = r#"{"nodes":[{"id":"a"}],"edges":[{"id":"e1","source":"a","target":"ghost"},
        {"id":"e2","source":"ghost","target":"a"},{"id":"e3","source":"a"},
        {"id":"e4","source":"a","target":null}]}"#;
    let message = app.import(HERE, edges.as_bytes()).await.unwrap_err().to_string();
    assert!(["e1", "e2", "e3", "e4"].iter().all(|edge| message.contains(edge)), "{message}");
    assert!(app.workflows(HERE, Kind::Workflow, None).unwrap().is_empty());
}

#[tokio::test]
async fn o_i03_edges_to_unknown_nodes_make_a_draft_that_cannot_be_published() {
    let (_folder, app) = app().await;
    let edges = r#"{"nodes":[{"id":"a","agentId":"demo-echo-agent"}],
        "edges":[{"id":"e1","source":"a","target":"ghost"},{"id":"e2","source":"ghost","target":"a"}]}"#;
    let report = app.import(HERE, edges.as_bytes()).await.unwrap();
    let errors: Vec<String> = report.imported[0]
        .diagnostics
        .iter()
        .filter(|found| found.is_error())
        .map(|found| found.place.to_string())
        .collect();
    assert!(errors.iter().any(|place| place.contains("e1")), "{errors:?}");
    assert!(errors.iter().any(|place| place.contains("e2")), "{errors:?}");
    let error = app.publish(HERE, report.imported[0].id, 1).await.unwrap_err();
    assert_eq!(error.code(), "invalidWorkflow");
}

#[tokio::test]
async fn the_report_says_what_was_kept_merged_and_is_missing() {
    let (_folder, app) = app().await;
    let text = r#"{"x-team":1,"nodes":[{"id":"a","agentId":"ours","x-note":1},
        {"id":"b","agentId":"demo-echo-agent"}],
        "edges":[{"id":"e","source":"a","target":"b"},{"id":"f","source":"a","target":"b"}]}"#;
    let report = app.import(HERE, text.as_bytes()).await.unwrap();
    let imported = &report.imported[0];
    let unknown: Vec<&str> =
        imported.unknown_fields.iter().map(|field| field.field.as_str()).collect();
    assert_eq!(unknown, ["x-team", "x-note"]);
    assert!(imported.notes.iter().any(|note| note.message.contains("merged")));
    assert_eq!(imported.missing_agents, ["ours".into()]);
}

#[tokio::test]
async fn an_export_comes_back_as_the_same_text() {
    let (_folder, app) = app().await;
    let id = app.import(HERE, file("1", "Daily").as_bytes()).await.unwrap().imported[0].id;
    let first = app.export(HERE, id).unwrap();
    assert_eq!(first.file_name, "Daily.cyanotype.json");
    assert!(first.text.contains("\"x-note\""));
    assert_eq!(app.export(HERE, id).unwrap(), first, "the same record gives the same bytes");
    let again = app.import(HERE, first.text.as_bytes()).await.unwrap();
    let second = app.export(HERE, again.imported[0].id).unwrap();
    assert_ne!(first.text, second.text, "id and name differ");
    assert_eq!(without_generated(&second.text), without_generated(&first.text));
    let line = |text: &str| text.lines().filter(|line| !line.contains("\": \"")).count();
    assert_eq!(line(&first.text), line(&second.text));
}

#[tokio::test]
async fn o_i04_odd_names_come_back_exactly() {
    let (_folder, app) = app().await;
    let long = "é".repeat(300);
    let names = [
        "../../etc/x",
        "Auction / Show",
        r"C:\temp\x",
        "CON",
        "nul.json",
        "x.",
        " ",
        "",
        &long,
        "a\u{0}b",
        "x\u{202e}y",
    ];
    let mut files = BTreeSet::new();
    for name in names {
        let report = app.import(HERE, file("1", name).as_bytes()).await.unwrap();
        let exported = app.export(HERE, report.imported[0].id).unwrap();
        assert!(!exported.file_name.contains(['/', '\\', '\0']), "{}", exported.file_name);
        files.insert(exported.text);
    }
    let (_other, elsewhere) = self::app().await;
    let mut restored = BTreeSet::new();
    for text in &files {
        let report = elsewhere.import(HERE, text.as_bytes()).await.unwrap();
        restored.insert(report.imported[0].name.clone());
    }
    assert_eq!(restored, names.iter().map(|name| (*name).to_owned()).collect());
}

#[tokio::test]
async fn replacing_is_an_act_of_its_own_with_a_version() {
    let (_folder, app) = app().await;
    let id = app.import(HERE, file("1", "Daily").as_bytes()).await.unwrap().imported[0].id;
    let other = file("1", "Weekly");
    assert_eq!(app.replace(HERE, id, 1, other.as_bytes()).await.unwrap(), 2);
    assert_eq!(app.workflow(HERE, id).unwrap().header.name, "Weekly");
    let error = app.replace(HERE, id, 1, other.as_bytes()).await.unwrap_err();
    assert_eq!(error.code(), "workflowConflict");
    let two = format!("[{other},{other}]");
    let error = app.replace(HERE, id, 2, two.as_bytes()).await.unwrap_err();
    assert_eq!(error.code(), "notOneWorkflow");
    assert_eq!(app.workflow(HERE, id).unwrap().header.version, 2);
}
