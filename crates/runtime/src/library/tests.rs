//! The library on a real store in a folder of its own.

use engine::definition::Definition;
use engine::ids::WorkflowId;
use engine::projection::ExecutionStatus;
use engine::scheduler::event::Trigger;
use engine::value::Value;
use tempfile::TempDir;
use uuid::Uuid;

use super::running::{Version, WorkflowStart};
use super::{Kind, LibraryError};
use crate::app::executions::WatchItem;
use crate::app::{App, AppOptions};
use crate::store::workflow_table::WorkflowStatus;

const HERE: &str = "Personal";

/// An app without the blueprints that the program brings along.
async fn app() -> (TempDir, App) {
    let folder = TempDir::new().unwrap();
    let app = App::open(AppOptions::new(folder.path())).await.unwrap();
    (folder, app)
}

fn definition(text: &str) -> Definition {
    Definition::from_value(Value::parse(text).unwrap()).unwrap()
}

/// A workflow of this name that runs.
fn echo(name: &str) -> Definition {
    let text = format!(
        r#"{{"name":{name:?},"nodes":[{{"id":"a","agentId":"demo-echo-agent"}}],"edges":[]}}"#
    );
    definition(&text)
}

async fn create(app: &App, definition: Definition) -> WorkflowId {
    app.create_workflow(HERE, Kind::Workflow, definition).await.unwrap().header.id
}

fn start(app: &App, workflow: WorkflowId, version: Version) -> WorkflowStart {
    WorkflowStart {
        workspace: HERE.to_owned(),
        workflow,
        version,
        agents: app.agent_set().unwrap(),
        input: None,
        idempotency_key: None,
    }
}

#[tokio::test]
async fn a_new_workflow_is_a_draft_under_a_free_name() {
    let (_folder, app) = app().await;
    for expected in ["Daily", "Daily (Copy)", "Daily (Copy 2)"] {
        let workflow = app.create_workflow(HERE, Kind::Workflow, echo("Daily")).await.unwrap();
        assert_eq!(workflow.header.name, expected);
        assert_eq!(workflow.header.status, WorkflowStatus::Draft);
        assert_eq!(workflow.header.version, 1);
        assert_eq!(workflow.header.id.0.get_version_num(), 7, "ids are UUID v7");
        assert_eq!(workflow.readable().unwrap().name.as_deref(), Some(expected));
    }
    let listed = app.workflows(HERE, Kind::Workflow, None).unwrap();
    let names: Vec<&str> = listed.iter().map(|header| header.name.as_str()).collect();
    assert_eq!(names, ["Daily (Copy 2)", "Daily (Copy)", "Daily"]);
    let elsewhere =
        app.create_workflow("Team", Kind::Workflow, echo("Daily")).await.unwrap().header;
    assert_eq!(elsewhere.name, "Daily", "another workspace has names of its own");
}

#[tokio::test]
async fn every_change_names_the_version_it_was_made_on() {
    let (_folder, app) = app().await;
    let id = create(&app, echo("Daily")).await;
    assert_eq!(app.update_workflow(HERE, id, 1, echo("Weekly")).await.unwrap(), 2);
    let late = app.update_workflow(HERE, id, 1, echo("Monthly")).await.unwrap_err();
    assert_eq!(late.to_string(), "Conflict: workflow was modified concurrently. Please retry.");
    assert_eq!(late.code(), "workflowConflict");
    assert_eq!(app.rename_workflow(HERE, id, 2, "Yearly").await.unwrap(), 3);
    let workflow = app.workflow(HERE, id).unwrap();
    assert_eq!(workflow.title(), "Yearly");
    assert_eq!(workflow.readable().unwrap().name.as_deref(), Some("Yearly"));
    for late in [
        app.publish(HERE, id, 2).await.map(|_| ()),
        app.unpublish(HERE, id, 2).await.map(|_| ()),
        app.delete_workflow(HERE, id, 2).await,
    ] {
        assert_eq!(late.unwrap_err().code(), "workflowConflict");
    }
}

#[tokio::test]
async fn publishing_pins_a_plan_and_the_draft_goes_its_own_way() {
    let (_folder, app) = app().await;
    let id = create(&app, echo("Daily")).await;
    let report = app.publish(HERE, id, 1).await.unwrap();
    let workflow = app.workflow(HERE, id).unwrap();
    assert_eq!(workflow.header.status, WorkflowStatus::Published);
    assert_eq!(workflow.header.published.unwrap().plan, report.plan);
    assert!(app.store().plan(report.plan).unwrap().is_some());
    assert!(!workflow.has_unpublished_changes());
    app.rename_workflow(HERE, id, 2, "Weekly").await.unwrap();
    assert!(app.workflow(HERE, id).unwrap().has_unpublished_changes());
    let running = app.definition_to_run(HERE, id, Version::Published).unwrap();
    assert_eq!(running.name.as_deref(), Some("Daily"), "what was published still runs");
    let draft = app.definition_to_run(HERE, id, Version::Draft).unwrap();
    assert_eq!(draft.name.as_deref(), Some("Weekly"));
    app.publish(HERE, id, 3).await.unwrap();
    assert!(!app.workflow(HERE, id).unwrap().has_unpublished_changes());
    assert_eq!(app.unpublish(HERE, id, 4).await.unwrap(), 5);
    let error = app.definition_to_run(HERE, id, Version::Published).unwrap_err();
    assert_eq!(error.to_string(), "Only published workflows can be executed");
}

#[tokio::test]
async fn a_workflow_with_errors_is_not_published_and_stays_as_it_was() {
    let (_folder, app) = app().await;
    let broken = r#"{"nodes":[{"id":"a","agentId":"placeholder-x"},{"id":"b","agentId":"?"}],
        "edges":[{"id":"e","source":"a","target":"ghost"}]}"#;
    let id = create(&app, definition(broken)).await;
    let before = app.workflow(HERE, id).unwrap();
    let error = app.publish(HERE, id, 1).await.unwrap_err();
    let LibraryError::Invalid { diagnostics } = &error else { panic!("{error:?}") };
    assert!(diagnostics.len() >= 3, "{diagnostics:?}");
    assert_eq!(app.workflow(HERE, id).unwrap(), before);
}

#[tokio::test]
async fn published_workflows_are_not_deleted() {
    let (_folder, app) = app().await;
    let id = create(&app, echo("Daily")).await;
    app.publish(HERE, id, 1).await.unwrap();
    let error = app.delete_workflow(HERE, id, 2).await.unwrap_err();
    let words = "Cannot delete a published workflow. Unpublish it first.";
    assert_eq!((error.to_string().as_str(), error.code()), (words, "deletePublished"));
    app.unpublish(HERE, id, 2).await.unwrap();
    app.delete_workflow(HERE, id, 3).await.unwrap();
    let error = app.workflow(HERE, id).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.code()),
        ("Workflow not found", "workflowNotFound")
    );
}

#[tokio::test]
async fn another_workspaces_records_are_out_of_reach() {
    let (_folder, app) = app().await;
    let id = create(&app, echo("Daily")).await;
    for denied in [
        app.workflow("Team", id).map(|_| ()),
        app.update_workflow("Team", id, 1, echo("x")).await.map(|_| ()),
        app.publish("Team", id, 1).await.map(|_| ()),
        app.delete_workflow("Team", id, 1).await,
        app.export("Team", id).map(|_| ()),
    ] {
        let error = denied.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.code()), ("Access denied", "accessDenied"));
    }
}

#[tokio::test]
async fn blueprints_are_shared_read_only_and_copied() {
    let (_folder, app) = app().await;
    let template = r#"{"name":"Flow","nodes":[{"id":"a","agentId":"placeholder-a"}],"edges":[]}"#;
    let blueprint =
        app.create_workflow("Team", Kind::Blueprint, definition(template)).await.unwrap();
    let id = blueprint.header.id;
    let error = app.copy_blueprint(HERE, id).await.unwrap_err();
    assert_eq!(error.to_string(), "Only published blueprints can be imported");
    let report = app.publish(HERE, id, 1).await.unwrap();
    assert!(report.diagnostics.iter().any(|found| found.is_error()), "whoever uses it has to map");
    let error = app.rename_workflow(HERE, id, 2, "Mine").await.unwrap_err();
    assert_eq!(error.code(), "editPublishedBlueprint");
    let copy = app.copy_blueprint(HERE, id).await.unwrap();
    assert_eq!(copy.header.name, "Flow (Copy)");
    assert_eq!((copy.kind(), copy.header.status), (Kind::Workflow, WorkflowStatus::Draft));
    assert_eq!(app.copy_blueprint(HERE, id).await.unwrap().header.name, "Flow (Copy 2)");
    assert_eq!(app.workflow("Anyone", id).unwrap().header.version, 2);
    let error = app.copy_blueprint(HERE, copy.header.id).await.unwrap_err();
    assert_eq!(error.code(), "blueprintNotPublished", "a workflow is no blueprint");
}

#[tokio::test]
async fn shipped_blueprints_are_there_once_and_stay_gone_once_removed() {
    let (folder, app) = app().await;
    app.unload_shipped().await.unwrap();
    app.unload_shipped().await.unwrap();
    let blueprints = app.workflows(HERE, Kind::Blueprint, None).unwrap();
    assert_eq!(blueprints.len(), 8);
    assert!(blueprints.iter().all(|header| header.status == WorkflowStatus::Published));
    let echo = blueprints.iter().find(|header| header.name == "Echo Demo Workflow").unwrap();
    let version = app.unpublish(HERE, echo.id, echo.version).await.unwrap();
    app.delete_workflow(HERE, echo.id, version).await.unwrap();
    app.close().await;
    let app = App::open(AppOptions::new(folder.path())).await.unwrap();
    app.unload_shipped().await.unwrap();
    assert_eq!(app.workflows(HERE, Kind::Blueprint, None).unwrap().len(), 7);
}

#[tokio::test]
async fn published_workflows_run_and_drafts_are_tried() {
    let (_folder, app) = app().await;
    let id = create(&app, echo("Daily")).await;
    let error = app.start_workflow(start(&app, id, Version::Published)).await.unwrap_err();
    assert_eq!(error.code(), "notPublished");
    let tried = app.start_workflow(start(&app, id, Version::Draft)).await.unwrap();
    app.publish(HERE, id, 1).await.unwrap();
    let run = app.start_workflow(start(&app, id, Version::Published)).await.unwrap();
    for (started, trigger) in [(tried, Trigger::TestRun), (run, Trigger::Manual)] {
        let mut watch = app.watch(started.execution, Default::default());
        while let Some(item) = watch.next().await {
            if matches!(item.unwrap(), WatchItem::Ended) {
                break;
            }
        }
        let (summary, _) = app.execution(started.execution).unwrap();
        assert_eq!(summary.status, ExecutionStatus::Completed);
        assert_eq!((summary.workflow, summary.trigger), (Some(id), trigger));
    }
}

#[tokio::test]
async fn o_i03_a_stored_definition_that_is_damaged_opens_as_text_and_does_not_run() {
    let (folder, app) = app().await;
    let id = create(&app, echo("Daily")).await;
    app.close().await;
    let text = r#"{"nodes":[{"id":"a"}],"edges":[{"id":"e3","source":"a"}]}"#;
    let conn = rusqlite::Connection::open(folder.path().join("cyanotype.db")).unwrap();
    conn.execute("UPDATE workflow SET definition = ?1", [text]).unwrap();
    drop(conn);
    let app = App::open(AppOptions::new(folder.path())).await.unwrap();
    let workflow = app.workflow(HERE, id).unwrap();
    let unreadable = workflow.definition.as_ref().unwrap_err();
    assert_eq!(unreadable.text, text);
    assert!(unreadable.problems.iter().any(|problem| problem.to_string().contains("e3")));
    assert_eq!(app.export(HERE, id).unwrap().text, text);
    let error = app.start_workflow(start(&app, id, Version::Draft)).await.unwrap_err();
    assert_eq!(error.code(), "damagedWorkflow");
    assert_eq!(app.publish(HERE, id, 1).await.unwrap_err().code(), "damagedWorkflow");
}

#[tokio::test]
async fn what_does_not_exist_is_said_so() {
    let (_folder, app) = app().await;
    let nobody = WorkflowId(Uuid::now_v7());
    let error = app.workflow(HERE, nobody).unwrap_err();
    assert_eq!(error.code(), "workflowNotFound");
    let error = app.duplicate_workflow(HERE, nobody).await.unwrap_err();
    assert_eq!(error.code(), "workflowNotFound");
}
